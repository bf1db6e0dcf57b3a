//! The values in a template, each with its origin.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, State, Value};

use super::place::Place;
use super::rope::{FrameId, Input, MAX_INPUTS, Told, Writer};
use super::{account, values};
use crate::json::Pointer;

/// A value and its origin.
#[derive(Debug, Clone, Default)]
pub(super) struct Tracked {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, Default)]
pub(super) enum Origin {
    /// The origin is unknown or not tracked.
    #[default]
    Unknown,
    /// An undefined value, with the expression that should have provided it.
    Missing(Absent),
    /// The undefined value of an inline `if` without `else`, which counts as nothing.
    Nothing,
    /// A value of the data, unchanged.
    Data(Arc<Pointer>),
    /// A text, byte by byte.
    Text(Arc<Told>),
    /// The origins of a list's elements.
    List(Arc<[Origin]>),
    /// The origins of an object's members, in its order.
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
    /// A variable, a member or an element; the place is the expression that reads it.
    Value,
    /// A parameter without a value in the call; the place is its name in the declaration.
    Parameter,
    /// A name that the imported template does not have; the place is the name in the tag.
    Import,
}

impl Absent {
    /// Returns the missing value of an expression.
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

    /// Returns the undefined value that counts as nothing, in the form that the engine's filters
    /// recognise.
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

    /// Returns a text with its writers, if they are tracked.
    pub(super) fn text(told: Told) -> Tracked {
        let value = Value::from(told.text.as_str());
        account::follow(told.runs.len());
        let origin = if told.is_followed() {
            Origin::Text(Arc::new(told))
        } else {
            Origin::Unknown
        };
        Tracked { value, origin }
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

    /// Returns `true` for the undefined value that counts as nothing.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.origin, Origin::Nothing) && self.value.is_undefined()
    }

    /// Returns `true` if it is undefined and must not be used.
    pub(super) fn is_missing(&self) -> bool {
        self.value.is_undefined() && !matches!(self.origin, Origin::Nothing)
    }
}

/// Returns the value of an inline `if` without `else`, which only an expression of the engine can
/// produce.
fn made_by_engine() -> Result<Value, Error> {
    Environment::empty()
        .compile_expression("none if false")?
        .eval(())
}

impl Origin {
    /// Returns the origin of an element of a list.
    pub(super) fn element(&self, index: usize) -> Origin {
        match self {
            Origin::Data(path) => Origin::Data(Arc::new(path.element(index))),
            Origin::List(elements) => elements.get(index).cloned().unwrap_or_default(),
            _ => Origin::Unknown,
        }
    }

    /// Returns the origin of a member of an object; `index` is its position in the object's order.
    pub(super) fn member(&self, name: &str, index: impl FnOnce() -> Option<usize>) -> Origin {
        match self {
            Origin::Data(path) => Origin::Data(Arc::new(path.member(name))),
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

    /// Returns the inputs of a text that was computed from this value.
    pub(super) fn inputs(&self) -> Vec<Input> {
        match self {
            Origin::Data(path) => vec![Input::Data(Arc::clone(path))],
            Origin::Text(told) => told.inputs().take(MAX_INPUTS).collect(),
            _ => Vec::new(),
        }
    }
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

    /// Returns the inputs of a text that was computed from all arguments.
    pub(super) fn inputs(&self) -> Arc<[Input]> {
        self.origins
            .iter()
            .flat_map(Origin::inputs)
            .take(MAX_INPUTS)
            .collect()
    }

    /// Returns the expression of an undefined argument, or of an undefined part of one.
    pub(super) fn missing(&self) -> Option<Absent> {
        self.origins.iter().find_map(Origin::missing)
    }
}

/// Looks up variables of a template.
pub(super) trait Names {
    /// Returns the value of the variable with a name, if it exists.
    fn lookup(&self, name: &str) -> Option<Value>;

    /// Returns the value of the variable with a name, if a template has set it.
    fn lookup_set(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// A call of one of our filters, tests or functions.
pub(super) struct Native<'n, 'e> {
    pub(super) arguments: Arguments,
    /// `true` if writers are tracked.
    pub(super) follows: bool,
    /// The current frame of the render.
    pub(super) frame: FrameId,
    /// The state for the engine's own filters.
    pub(super) state: &'n mut State<'e, 'e>,
    pub(super) names: &'n dyn Names,
}

impl<'e> Native<'_, 'e> {
    /// Returns a value that was computed from the arguments; for a text, they are recorded as its
    /// inputs.
    pub(super) fn computed(&self, value: Value) -> Tracked {
        match value.as_str() {
            Some(text) if self.follows => {
                let mut told = Told::one(
                    text,
                    Writer::Computed {
                        from: self.arguments.inputs(),
                    },
                );
                told.set_frame(self.frame);
                Tracked {
                    origin: Origin::Text(Arc::new(told)),
                    value,
                }
            }
            _ => Tracked::plain(value),
        }
    }

    /// Returns an argument as a text with its writers; the text of any other value counts as
    /// computed.
    pub(super) fn told(&self, index: usize, text: &str) -> Told {
        told_as(&self.arguments.get(index), text, self.follows, self.frame)
    }

    /// Returns any value's text with its writers.
    pub(super) fn told_of(&self, value: &Tracked, text: &str) -> Told {
        told_as(value, text, self.follows, self.frame)
    }

    /// Returns a part of the first argument's text.
    pub(super) fn part(&self, text: &str, range: Range<usize>) -> Tracked {
        match self.follows {
            true => Tracked::text(self.told(0, text).part(range)),
            false => Tracked::plain(&text[range]),
        }
    }

    /// Returns a call with other arguments, made from this one.
    pub(super) fn within(&mut self, arguments: Arguments) -> Native<'_, 'e> {
        let Native {
            follows,
            frame,
            names,
            ..
        } = *self;
        Native {
            arguments,
            follows,
            frame,
            state: &mut *self.state,
            names,
        }
    }

    /// Returns the elements of a list argument, each with its origin.
    ///
    /// # Errors
    ///
    /// Returns an error if it has no elements, or too many.
    pub(super) fn elements(&self, index: usize) -> Result<Vec<Tracked>, Error> {
        elements(&self.arguments.get(index))
    }
}

/// Returns the elements of a list, the keys of an object, or the characters of a text.
///
/// # Errors
///
/// Returns an error if the value has none of them, or too many.
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

/// Returns a value's text with its writers.
pub(super) fn told_as(value: &Tracked, text: &str, follows: bool, frame: FrameId) -> Told {
    if !follows {
        return Told::unfollowed(text);
    }
    match &value.origin {
        Origin::Text(told) if told.text == text => Told::clone(told),
        Origin::Data(path) if value.value.as_object().is_none() => of_data(text, path),
        origin => {
            let mut told = Told::one(
                text,
                Writer::Computed {
                    from: origin.inputs().into(),
                },
            );
            told.set_frame(frame);
            told
        }
    }
}

/// Returns a text that is a value of the data.
pub(super) fn of_data(text: &str, path: &Arc<Pointer>) -> Told {
    Told::one(
        text,
        Writer::Data {
            path: Arc::clone(path),
            at: 0,
        },
    )
}
