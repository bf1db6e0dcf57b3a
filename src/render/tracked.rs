//! The values in a template, each with its origin.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, State, Value};

use super::data_path::DataPath;
use super::place::Place;
use super::rope::{self, Input, MAX_INPUTS, Rope, Run, Runs, ValueText, Writer};
use super::{account, values};

/// A value and its origin.
#[derive(Debug, Clone, Default)]
pub(super) struct Tracked {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, Default)]
pub(super) enum Origin {
    /// The origin is unknown.
    #[default]
    Unknown,
    /// An undefined value, with the expression that should have provided it.
    Missing(Absent),
    /// The undefined value of an inline `if` without `else`, which is rendered as empty text.
    Nothing,
    /// A literal, or the name of a folder.
    Literal(Place),
    /// A data value, unchanged.
    Data(DataPath),
    /// A string, byte by byte.
    Text(Arc<Vec<Run>>),
    /// The origins of a list's elements.
    List(Arc<[Origin]>),
    /// The origins of an object's members, in member order.
    Map(Arc<[Origin]>),
}

/// A missing value that a template reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) at: Place,
    pub(super) kind: AbsentKind,
}

/// Kinds of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentKind {
    /// A variable, a member or an element; the location is the expression that reads it.
    Value,
    /// A parameter without a value in the call; the location is its name in the declaration.
    Parameter,
    /// A name that the imported template lacks; the location is the name in the tag.
    Import,
}

impl Absent {
    /// Returns the `Absent` for an expression that has no value.
    pub(super) fn value(at: Place) -> Absent {
        Absent {
            at,
            kind: AbsentKind::Value,
        }
    }
}

impl Tracked {
    /// Returns an undefined value.
    pub(super) fn missing(absent: Absent) -> Tracked {
        Tracked {
            value: Value::UNDEFINED,
            origin: Origin::Missing(absent),
        }
    }

    /// Returns a value with unknown origin.
    pub(super) fn plain(value: impl Into<Value>) -> Tracked {
        Tracked {
            value: value.into(),
            origin: Origin::Unknown,
        }
    }

    /// Returns the undefined value that is rendered as empty text. The engine's filters recognise
    /// this value.
    pub(super) fn nothing() -> Tracked {
        static NOTHING: OnceLock<Value> = OnceLock::new();
        let value = NOTHING
            .get_or_init(|| made_by_engine().unwrap_or_default())
            .clone();
        Tracked {
            value,
            origin: Origin::Nothing,
        }
    }

    /// Returns a string with its writers, if these can still be distinguished.
    pub(super) fn text(mut rope: Rope) -> Tracked {
        if !account::keep_runs(rope.runs.len()) {
            rope.forget();
        }
        Tracked {
            value: Value::from(rope.text),
            origin: Origin::Text(Arc::new(rope.runs)),
        }
    }

    /// Returns a list of values.
    pub(super) fn list(elements: Vec<Tracked>) -> Tracked {
        let is_known = elements
            .iter()
            .any(|element| !matches!(element.origin, Origin::Unknown));
        let (values, origins): (Vec<Value>, Vec<Origin>) = elements
            .into_iter()
            .map(|element| (element.value, element.origin))
            .unzip();
        let origin = if is_known {
            Origin::List(origins.into())
        } else {
            Origin::Unknown
        };
        Tracked {
            value: Value::from(values),
            origin,
        }
    }

    /// Returns `true` for the undefined value that is rendered as empty text.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.origin, Origin::Nothing) && self.value.is_undefined()
    }

    /// Returns `true` if the value is undefined and must not be used.
    pub(super) fn is_missing(&self) -> bool {
        self.value.is_undefined() && !matches!(self.origin, Origin::Nothing)
    }
}

/// Returns the value of an inline `if` without `else`, which only an engine expression can produce.
fn made_by_engine() -> Result<Value, Error> {
    Environment::empty()
        .compile_expression("none if false")?
        .eval(())
}

impl Origin {
    /// Returns the origin of a list's element.
    pub(super) fn element(&self, index: usize) -> Origin {
        match self {
            Origin::Data(path) => Origin::Data(path.element(index)),
            Origin::List(elements) => elements.get(index).cloned().unwrap_or_default(),
            _ => Origin::Unknown,
        }
    }

    /// Returns the origin of an object's member; `index` is the member's position in the object's
    /// order.
    pub(super) fn member(&self, name: &str, index: impl FnOnce() -> Option<usize>) -> Origin {
        match self {
            Origin::Data(path) => Origin::Data(path.member(name)),
            Origin::Map(members) => index()
                .and_then(|index| members.get(index))
                .cloned()
                .unwrap_or_default(),
            _ => Origin::Unknown,
        }
    }

    /// Returns the expression of an undefined value: this one, or one inside it.
    pub(super) fn missing(&self) -> Option<Absent> {
        match self {
            Origin::Missing(absent) => Some(*absent),
            Origin::List(parts) | Origin::Map(parts) => parts.iter().find_map(Origin::missing),
            _ => None,
        }
    }

    /// Returns the inputs of a string that was computed from this value.
    pub(super) fn inputs(&self) -> Vec<Input> {
        match self {
            Origin::Data(path) => vec![Input::Data(path.clone())],
            Origin::Literal(place) => vec![Input::Template(*place)],
            Origin::Text(runs) => rope::inputs(runs).take(MAX_INPUTS).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the writer of a string that was computed from this value.
    pub(super) fn computed(&self) -> Writer {
        Writer::Computed(Arc::new(self.inputs()))
    }
}

impl Tracked {
    /// Returns the text in which this value is written, with its writers.
    pub(super) fn with_runs<'t>(&'t self, text: &'t str) -> ValueText<'t> {
        let writer = match &self.origin {
            Origin::Text(runs) if is_covered(text, runs) => {
                let runs = Runs::Many(runs);
                return ValueText { text, runs };
            }
            Origin::Data(path) if self.value.as_object().is_none() => Writer::Data {
                path: path.clone(),
                at: 0,
            },
            Origin::Literal(place) if self.is_written_as(text) => Writer::Template(*place),
            origin => origin.computed(),
        };
        let runs = Runs::One(Run::new(text.len(), writer));
        ValueText { text, runs }
    }

    /// Returns `true` if the value of a literal has this text.
    fn is_written_as(&self, text: &str) -> bool {
        match self.value.as_str() {
            Some(own) => own == text,
            None => values::number(&self.value).is_ok_and(|number| number == text),
        }
    }

    /// Returns this value's text with its writers.
    pub(super) fn rope(&self, text: &str) -> Rope {
        Rope {
            text: text.to_owned(),
            runs: self.with_runs(text).slice().runs.to_vec(),
        }
    }
}

/// Returns `true` if runs cover a string.
fn is_covered(text: &str, runs: &[Run]) -> bool {
    runs.iter().map(Run::len).sum::<usize>() == text.len()
}

/// The arguments of a call, as parallel lists of values and origins.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: Vec<Value>,
    pub(super) origins: Vec<Origin>,
}

impl Arguments {
    /// Adds an argument.
    pub(super) fn push(&mut self, argument: Tracked) {
        self.values.push(argument.value);
        self.origins.push(argument.origin);
    }

    /// Returns the argument at an index; if there is none, an undefined value with unknown origin.
    pub(super) fn get(&self, index: usize) -> Tracked {
        let value = self.values.get(index).cloned().unwrap_or_default();
        Tracked {
            value,
            origin: self.origins.get(index).cloned().unwrap_or_default(),
        }
    }

    /// Returns the inputs of a string that was computed from all arguments.
    pub(super) fn inputs(&self) -> Vec<Input> {
        self.origins
            .iter()
            .flat_map(Origin::inputs)
            .take(MAX_INPUTS)
            .collect()
    }

    /// Returns the expression of an undefined argument, or of an argument's undefined part.
    pub(super) fn missing(&self) -> Option<Absent> {
        self.origins.iter().find_map(Origin::missing)
    }
}

/// Looks up template variables.
pub(super) trait Names {
    /// Returns the value of the variable with this name, if it exists.
    fn lookup(&self, name: &str) -> Option<Value>;

    /// Returns the value of the variable with this name, if a template has set it.
    fn lookup_set(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// A call to one of our filters, tests or functions.
pub(super) struct Native<'n, 'e> {
    pub(super) arguments: Arguments,
    /// The state for the engine's own filters.
    pub(super) state: &'n mut State<'e, 'e>,
    pub(super) names: &'n dyn Names,
}

impl<'e> Native<'_, 'e> {
    /// Returns a value that was computed from the arguments; for a string, the arguments are
    /// recorded as its inputs.
    pub(super) fn computed(&self, value: Value) -> Tracked {
        let Some(text) = value.as_str() else {
            return Tracked::plain(value);
        };
        let from = self.arguments.inputs();
        let run = Run::new(text.len(), Writer::Computed(Arc::new(from)));
        Tracked {
            value,
            origin: Origin::Text(Arc::new(vec![run])),
        }
    }

    /// Returns the text of an argument with its writers; the text of a list or an object is
    /// recorded as computed.
    pub(super) fn rope(&self, index: usize, text: &str) -> Rope {
        self.arguments.get(index).rope(text)
    }

    /// Returns a part of the first argument's text.
    pub(super) fn part(&self, text: &str, range: Range<usize>) -> Tracked {
        Tracked::text(self.arguments.get(0).with_runs(text).slice().part(range))
    }

    /// Returns a call with different arguments, based on this call.
    pub(super) fn within(&mut self, arguments: Arguments) -> Native<'_, 'e> {
        Native {
            arguments,
            state: &mut *self.state,
            names: self.names,
        }
    }

    /// Returns the elements of a list argument, each with its origin.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument has no elements, or too many.
    pub(super) fn elements(&self, index: usize) -> Result<Vec<Tracked>, Error> {
        elements(&self.arguments.get(index))
    }
}

/// Returns the elements of a list, the keys of an object, or the characters of a string.
///
/// # Errors
///
/// Returns an error if the value has no such elements, or too many.
pub(super) fn elements(list: &Tracked) -> Result<Vec<Tracked>, Error> {
    let values = values::elements(&list.value)?;
    let has_places = matches!(list.value.kind(), ValueKind::Seq | ValueKind::Iterable);
    Ok(values
        .into_iter()
        .enumerate()
        .map(|(index, value)| Tracked {
            value,
            origin: origin(index, has_places, list),
        })
        .collect())
}

fn origin(index: usize, has_places: bool, list: &Tracked) -> Origin {
    if has_places {
        list.origin.element(index)
    } else {
        Origin::Unknown
    }
}
