//! What [`guards`](super::guards) wrap operators of the engine in: they charge for operands and results, and refuse what the
//! engine would choke on.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::MAX_OUTPUT;
use super::account;
use super::functions::{TOO_LARGE, undefined};
use super::recursion;
use super::values::{self, Holder};

/// Around a sum or a product.
pub(super) const RESULT: &str = "__g";
/// Around what is compared, joined to a text, or a key.
pub(super) const WHOLE: &str = "__w";
/// Around what is indexed or searched for something small.
pub(super) const BREADTH: &str = "__v";
/// Around what is multiplied.
pub(super) const FACTOR: &str = "__m";
/// Instead of a slice.
pub(super) const SLICE: &str = "__s";
/// Before long literal text.
pub(super) const TEXT: &str = "__c";
/// Around what a variable keeps.
pub(super) const VARIABLE: &str = "__d";
/// Around what a namespace keeps.
pub(super) const NAMESPACE: &str = "__n";

/// Around what may be missing: then it has no members either.
pub(super) const OPTIONAL: &str = "__o";
/// Around a loop that could be called.
pub(super) const LOOP: &str = "__l";

/// What names of guards begin with: no template may use such a name.
pub(super) const RESERVED: &str = "__";

/// Whether a function is a guard that gives on its first argument.
pub(super) fn is_guard(name: &str) -> bool {
    [RESULT, WHOLE, BREADTH, FACTOR, VARIABLE, NAMESPACE, LOOP, OPTIONAL].contains(&name)
}

/// The longest list that adding or repeating may make.
const MAX_ELEMENTS: usize = 1_000_000;

pub(super) fn install(environment: &mut Environment<'static>) {
    environment.add_function(RESULT, result);
    environment.add_function(WHOLE, whole);
    environment.add_function(BREADTH, breadth);
    environment.add_function(FACTOR, factor);
    environment.add_function(OPTIONAL, optional);
    environment.add_function(SLICE, slice);
    environment.add_function(TEXT, text);
    environment.add_function(VARIABLE, |value: Value| keep(value, Holder::Variable));
    environment.add_function(NAMESPACE, |value: Value| keep(value, Holder::Namespace));
    recursion::install(environment);
}

/// A result, charged once per operation that led to it. The engine adds and repeats lists lazily: here they become lists,
/// so that nothing lazy can pile up.
fn result(value: Value, operations: Option<u64>) -> Result<Value, Error> {
    let operations = operations.unwrap_or(1);
    match value.kind() {
        ValueKind::String => {
            let len = within_limit(&value)?;
            account::charge(2 * len as u64 * operations)?;
            Ok(value)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let len = value.len().unwrap_or(0);
            if len > MAX_ELEMENTS {
                return Err(too_large());
            }
            account::charge(account::ELEMENT * len as u64 * (operations - 1))?;
            match value.is_tuple() {
                true => account::list(len).map(|()| value),
                false => Ok(Value::from(values::elements(&value)?)),
            }
        }
        _ => Ok(value),
    }
}

/// A value of which all may be read, as often as it is read.
fn whole(value: Value, times: Option<u64>) -> Result<Value, Error> {
    let times = times.unwrap_or(1);
    match value.as_object() {
        // A list or an object as text is a good deal longer than its parts.
        Some(_) => {
            let units = values::weigh(&value)?;
            account::charge(units.saturating_mul(4 * times - 1))?;
        }
        None => account::charge(2 * times * within_limit(&value)? as u64)?,
    }
    Ok(value)
}

/// A value whose elements or characters may be looked through.
fn breadth(value: Value) -> Result<Value, Error> {
    account::read(4 * values::breadth(&value))?;
    Ok(value)
}

/// A value that may be repeated: the engine would repeat a tuple before anybody could ask how long it gets.
fn factor(value: Value) -> Value {
    match value.downcast_object_ref::<Tuple>() {
        Some(tuple) => Value::from(tuple.to_vec()),
        None => value,
    }
}

/// A value of which a member is asked for that may be missing.
fn optional(value: Value) -> Value {
    match value.is_undefined() {
        true => Value::from_pairs(std::iter::empty::<(&str, Value)>()),
        false => value,
    }
}

/// Charges for literal text that follows.
fn text(len: usize) -> Result<(), Error> {
    account::make(len)
}

fn keep(value: Value, place: Holder) -> Result<Value, Error> {
    values::keep(&value, place)?;
    Ok(value)
}

/// The length of a text in bytes, if it is not larger than all output may be.
fn within_limit(value: &Value) -> Result<usize, Error> {
    let len = value.as_bytes().map_or(0, <[u8]>::len);
    match len > MAX_OUTPUT {
        true => Err(too_large()),
        false => Ok(len),
    }
}

fn too_large() -> Error {
    Error::new(ErrorKind::WriteFailure, TOO_LARGE)
}

/// `value[start:end:step]`, as Python has it.
fn slice(value: &Value, start: Value, end: Value, step: Option<Value>) -> Result<Value, Error> {
    let (start, end) = (bound(start)?, bound(end)?);
    let step = bound(step.unwrap_or_else(|| Value::from(())))?.unwrap_or(1);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot slice by a step of 0"));
    }
    match value.kind() {
        ValueKind::Undefined => Err(undefined(value)),
        ValueKind::None => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            account::make(4 * text.len())?;
            let chars: Vec<char> = text.chars().collect();
            Ok(Value::from(picked(&chars, start, end, step).collect::<String>()))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let elements = values::elements(value)?;
            let picked: Vec<Value> = picked(&elements, start, end, step).collect();
            Ok(if value.is_tuple() { Value::from(Tuple::from(picked)) } else { Value::from(picked) })
        }
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("value of type {kind} cannot be sliced"))),
    }
}

fn bound(value: Value) -> Result<Option<i64>, Error> {
    match value.is_none() {
        true => Ok(None),
        false => i64::try_from(value).map(Some),
    }
}

/// The elements of a slice; the step is not 0.
fn picked<T: Clone>(all: &[T], start: Option<i64>, end: Option<i64>, step: i64) -> impl Iterator<Item = T> {
    let len = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamped = |index: i64| from_end(index).clamp(lowest, highest);
    let first = start.map_or(if step > 0 { lowest } else { highest }, clamped);
    let end = end.map_or(if step > 0 { highest } else { lowest }, clamped);
    let inside = move |index: &i64| if step > 0 { *index < end } else { *index > end };
    let indices = std::iter::successors(Some(first), move |index| index.checked_add(step)).take_while(inside);
    indices.filter_map(|index| all.get(usize::try_from(index).ok()?).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let all: Vec<i64> = (0..5).collect();
        let slice = |start, stop, step| picked(&all, start, stop, step).collect::<Vec<_>>();
        assert_eq!(slice(None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(slice(Some(-2), None, 1), [3, 4]);
        assert_eq!(slice(None, Some(-2), 2), [0, 2]);
        assert_eq!(slice(Some(3), Some(0), -2), [3, 1]);
        assert_eq!(slice(Some(1), Some(-9), -1), [1, 0]);
        assert_eq!(slice(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
        assert_eq!(slice(Some(i64::MAX), Some(i64::MIN), i64::MIN), [4]);
        assert_eq!(slice(Some(9), None, 1), [0i64; 0]);
        assert_eq!(picked(&[0i64; 0], None, None, -1).count(), 0);
    }
}
