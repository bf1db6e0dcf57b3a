//! Traverses values, charging for the cost and limiting the depth. Also returns the errors for
//! missing values, and for values that are not strings.

use indexmap::IndexMap;
use minijinja::value::{DynObject, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::account::{self, ELEMENT, VISIT};
use super::refusal::Refusal;
use super::rules;

/// The maximum nesting depth of values, the same as for JSON.
const MAX_DEPTH: usize = crate::json::MAX_DEPTH;

/// The members of the engine's objects.
pub(super) type Members = IndexMap<Value, Value>;

/// The content of one of the engine's objects.
pub(super) enum Shape<'v> {
    Elements(&'v [Value]),
    Members(&'v Members),
    /// A different engine object, such as a loop or a function.
    Other,
}

/// Returns the content of an object.
pub(super) fn shape(object: &DynObject) -> Shape<'_> {
    if let Some(list) = object.downcast_ref::<Vec<Value>>() {
        Shape::Elements(list)
    } else if let Some(map) = object.downcast_ref::<Members>() {
        Shape::Members(map)
    } else if let Some(tuple) = object.downcast_ref::<Tuple>() {
        Shape::Elements(tuple)
    } else {
        Shape::Other
    }
}

/// Charges for reading a value and all its content once, counting shared parts each time. Returns
/// the units.
pub(super) fn weigh(value: &Value) -> Result<u64, Error> {
    weigh_at(value, 0)
}

fn weigh_at(value: &Value, depth: usize) -> Result<u64, Error> {
    let Some(object) = value.as_object() else {
        let units = 1 + value.as_bytes().map_or(0, <[u8]>::len) as u64;
        account::charge(units)?;
        return Ok(units);
    };
    check_depth(depth)?;
    account::charge(VISIT)?;
    let mut units = VISIT;
    match shape(object) {
        Shape::Elements(elements) => {
            for element in elements {
                units += weigh_at(element, depth + 1)?;
            }
        }
        Shape::Members(members) => {
            for (key, member) in members {
                units += weigh_at(key, depth + 1)? + weigh_at(member, depth + 1)?;
            }
        }
        Shape::Other if value.kind() == ValueKind::Map => {
            for (key, member) in object.try_iter_pairs().into_iter().flatten() {
                units += weigh_at(&key, depth + 1)? + weigh_at(&member, depth + 1)?;
            }
        }
        Shape::Other => {
            for element in object.try_iter().into_iter().flatten() {
                units += weigh_at(&element, depth + 1)?;
            }
        }
    }
    Ok(units)
}

/// Rejects values that nest too deeply.
///
/// # Errors
///
/// Returns an error if `depth` exceeds the maximum depth of values.
pub(super) fn check_depth(depth: usize) -> Result<(), Error> {
    match depth > MAX_DEPTH {
        true => Err(Refusal::new(
            &rules::TOO_DEEP,
            format!("the value is nested more than {MAX_DEPTH} levels deep"),
        )
        .help("look for a list or an object that a loop puts into itself")
        .into()),
        false => Ok(()),
    }
}

/// Returns the elements of a list, the keys of an object, or the characters of a string, and
/// charges for them.
pub(super) fn elements(value: &Value) -> Result<Vec<Value>, Error> {
    if value.is_undefined() {
        return Err(undefined());
    }
    match value.as_object().map(shape) {
        Some(Shape::Elements(elements)) => {
            account::list(elements.len())?;
            Ok(elements.to_vec())
        }
        Some(Shape::Members(members)) => {
            account::list(members.len())?;
            Ok(members.keys().cloned().collect())
        }
        _ => {
            account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
            account::list(0)?;
            let mut collected = Vec::new();
            for element in value.try_iter()? {
                account::charge(ELEMENT)?;
                collected.push(element);
            }
            Ok(collected)
        }
    }
}

/// Returns the number of elements in an engine-made list, or the number of bytes in a string.
pub(super) fn breadth(value: &Value) -> usize {
    match value.as_object().map(shape) {
        Some(Shape::Elements(elements)) => elements.len(),
        Some(Shape::Members(_)) => 1,
        Some(Shape::Other) => value.len().unwrap_or(0),
        None => value.as_bytes().map_or(1, <[u8]>::len),
    }
}

/// Returns a member's position in an object.
pub(super) fn position(value: &Value, name: &str) -> Option<usize> {
    match value.as_object().map(shape) {
        Some(Shape::Members(members)) => members.get_index_of(&Value::from(name)),
        _ => None,
    }
}

/// Returns the error for an undefined value, whose origin is recorded with the value.
pub(super) fn undefined() -> Error {
    Error::from(ErrorKind::UndefinedError)
}

/// Returns a function's text argument.
///
/// # Errors
///
/// Returns an error if the value is not text.
pub(super) fn text(value: &Value) -> Result<&str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None if value.is_undefined() => Err(undefined()),
        None => {
            let message = format!("a string is needed here, not {}", kind_in_words(value));
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}

/// Returns the kind of a value with its article.
pub(super) fn kind_in_words(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::None => "`none`",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a string",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "an object",
        _ => "this value",
    }
}

/// Returns a number as JSON.
///
/// # Errors
///
/// Returns an error for integers beyond 64 bits, and for values that are not finite numbers.
pub(super) fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        let fits = i64::try_from(value.clone()).is_ok() || u64::try_from(value.clone()).is_ok();
        if !fits {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                format!("the integer {value} does not fit in 64 bits"),
            ));
        }
        return Ok(value.to_string());
    }
    let float = f64::try_from(value.clone())?;
    if !float.is_finite() {
        return Err(Error::new(
            ErrorKind::BadSerialization,
            format!("JSON cannot represent {float}"),
        ));
    }
    serde_json::to_string(&float)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Returns the name of a kind of value, with its article, for use in messages.
pub(super) fn named(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Undefined => "an undefined value",
        ValueKind::None => "`none`",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a string",
        ValueKind::Bytes => "a sequence of bytes",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "an object",
        _ => "this value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_article() {
        let values = [
            Value::UNDEFINED,
            Value::from(()),
            Value::from(true),
            Value::from(1),
            Value::from("a"),
            Value::from_bytes(vec![1]),
            Value::from(vec![1]),
            Value::from(std::collections::BTreeMap::from([("a", 1)])),
        ];
        let found: Vec<&str> = values.iter().map(|value| named(value.kind())).collect();
        let expected = [
            "an undefined value",
            "`none`",
            "a boolean",
            "a number",
            "a string",
            "a sequence of bytes",
            "a list",
            "an object",
        ];
        assert_eq!(found, expected);
    }
}
