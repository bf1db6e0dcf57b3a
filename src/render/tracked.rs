//! Values on their way through a template, each with where it came from.

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

/// Where a value came from.
#[derive(Debug, Clone, Default)]
pub(super) enum Origin {
    /// Nothing is known, or nobody follows.
    #[default]
    Unknown,
    /// An undefined value: what should have given it.
    Missing(Absent),
    /// The undefined value of an inline `if` without `else`, which counts as nothing.
    Nothing,
    /// A value of the data, as it is.
    Data(Arc<Pointer>),
    /// A text, byte by byte.
    Text(Arc<Told>),
    /// Of a list: its elements.
    List(Arc<[Origin]>),
    /// Of an object: its members, in its order.
    Map(Arc<[Origin]>),
}

/// Something that a template asks for and that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) at: Place,
    pub(super) kind: AbsentKind,
}

/// Kinds of things that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentKind {
    /// A variable, a member or an element: the place is the expression that asks for it.
    Value,
    /// A parameter that a call gives no value: the place is its name in the declaration.
    Parameter,
    /// A name that the template does not have from which it is imported: the place is the name in
    /// the tag.
    Import,
}

impl Absent {
    /// Returns what is missing where an expression asks for it.
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

    /// Returns a value of which nothing is known.
    pub(super) fn plain(value: impl Into<Value>) -> Tracked {
        Tracked {
            value: value.into(),
            origin: Origin::Unknown,
        }
    }

    /// Returns the undefined value that counts as nothing, as filters of the engine know it.
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

    /// Returns a text with its writers, if they are followed.
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

    /// Returns whether it is the undefined value that counts as nothing.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.origin, Origin::Nothing) && self.value.is_undefined()
    }

    /// Returns whether it is undefined and may not be used.
    pub(super) fn is_missing(&self) -> bool {
        self.value.is_undefined() && !matches!(self.origin, Origin::Nothing)
    }
}

/// Returns the value of an inline `if` without `else`, which only an expression of the engine gives
/// out.
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

    /// Returns the origin of a member of an object, `index` being its place in the object's order.
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

    /// Returns the expression that gave an undefined value, in the value or in what it holds.
    pub(super) fn missing(&self) -> Option<Absent> {
        match self {
            Origin::Missing(absent) => Some(*absent),
            Origin::List(parts) | Origin::Map(parts) => parts.iter().find_map(Origin::missing),
            _ => None,
        }
    }

    /// Returns what a text was made of that was computed from this.
    pub(super) fn inputs(&self) -> Vec<Input> {
        match self {
            Origin::Data(path) => vec![Input::Data(Arc::clone(path))],
            Origin::Text(told) => told.inputs().take(MAX_INPUTS).collect(),
            _ => Vec::new(),
        }
    }
}

/// The arguments of a call: values and their origins, side by side.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: Vec<Value>,
    pub(super) origins: Vec<Origin>,
}

impl Arguments {
    /// Adds one.
    pub(super) fn push(&mut self, argument: Tracked) {
        self.values.push(argument.value);
        self.origins.push(argument.origin);
    }

    /// Returns the argument at an index; nothing of which anything is known if there is none.
    pub(super) fn get(&self, index: usize) -> Tracked {
        let value = self.values.get(index).cloned().unwrap_or_default();
        Tracked {
            value,
            origin: self.origins.get(index).cloned().unwrap_or_default(),
        }
    }

    /// Returns what a text was made of that was computed from all of them.
    pub(super) fn inputs(&self) -> Arc<[Input]> {
        self.origins
            .iter()
            .flat_map(Origin::inputs)
            .take(MAX_INPUTS)
            .collect()
    }

    /// Returns the expression that gave an undefined argument, or a part of one.
    pub(super) fn missing(&self) -> Option<Absent> {
        self.origins.iter().find_map(Origin::missing)
    }
}

/// Looks up variables of a template.
pub(super) trait Names {
    /// Returns the value of a variable, if there is one of that name.
    fn lookup(&self, name: &str) -> Option<Value>;

    /// Returns the value of a variable, if a template has set one of that name.
    fn lookup_set(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// A call of a filter, a test or a function of ours.
pub(super) struct Native<'n, 'e> {
    pub(super) arguments: Arguments,
    /// `true` if writers are followed.
    pub(super) follows: bool,
    /// Where the render is.
    pub(super) frame: FrameId,
    /// The state that the engine's own filters ask for.
    pub(super) state: &'n mut State<'e, 'e>,
    pub(super) names: &'n dyn Names,
}

impl<'e> Native<'_, 'e> {
    /// Returns a value that was computed from the arguments: a text is known to be made of them.
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

    /// Returns an argument as a text with its writers: that of a value that is not text is
    /// computed.
    pub(super) fn told(&self, index: usize, text: &str) -> Told {
        told_as(&self.arguments.get(index), text, self.follows, self.frame)
    }

    /// Returns any value's text with its writers.
    pub(super) fn told_of(&self, value: &Tracked, text: &str) -> Told {
        told_as(value, text, self.follows, self.frame)
    }

    /// Returns a part of the text that is the first argument.
    pub(super) fn part(&self, text: &str, range: Range<usize>) -> Tracked {
        match self.follows {
            true => Tracked::text(self.told(0, text).part(range)),
            false => Tracked::plain(&text[range]),
        }
    }

    /// Returns a call with other arguments from here.
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

    /// Returns the elements of an argument that is a list, each with its origin.
    ///
    /// # Errors
    ///
    /// If it has no elements, or too many.
    pub(super) fn elements(&self, index: usize) -> Result<Vec<Tracked>, Error> {
        elements(&self.arguments.get(index))
    }
}

/// Returns the elements of a list, the keys of an object, or the characters of a text.
///
/// # Errors
///
/// If the value has none of them, or too many.
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
