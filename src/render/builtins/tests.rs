//! The tests that templates can use.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, Value};

use super::super::tracked::Native;
use super::super::values;
use super::super::values::undefined as undefined_value;
use super::invalid;
use super::texts::{Text, text_of};

/// Applies a predicate to the single argument.
fn asked(native: &Native<'_, '_>, question: impl Fn(&Value) -> bool) -> Result<bool, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    Ok(question(value))
}

fn of_kind(native: &Native<'_, '_>, kinds: &[ValueKind]) -> Result<bool, Error> {
    asked(native, |value| kinds.contains(&value.kind()))
}

pub(super) fn defined(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, |value| !value.is_undefined())
}

pub(super) fn undefined(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, Value::is_undefined)
}

pub(super) fn none(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, Value::is_none)
}

pub(super) fn boolean(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(native, &[ValueKind::Bool])
}

pub(super) fn is_true(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, |value| {
        value.kind() == ValueKind::Bool && value.is_true()
    })
}

pub(super) fn is_false(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, |value| {
        value.kind() == ValueKind::Bool && !value.is_true()
    })
}

pub(super) fn number(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(native, &[ValueKind::Number])
}

pub(super) fn string(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(native, &[ValueKind::String])
}

pub(super) fn mapping(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(native, &[ValueKind::Map])
}

pub(super) fn sequence(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(native, &[ValueKind::Seq])
}

pub(super) fn iterable(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    of_kind(
        native,
        &[
            ValueKind::Seq,
            ValueKind::Iterable,
            ValueKind::Map,
            ValueKind::String,
        ],
    )
}

pub(super) fn integer(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, Value::is_integer)
}

pub(super) fn float(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    asked(native, |value| value.is_number() && !value.is_integer())
}

pub(super) fn odd(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    remainder(value, 2).map(|rest| rest == Some(1))
}

pub(super) fn even(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    remainder(value, 2).map(|rest| rest == Some(0))
}

pub(super) fn divisibleby(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value, by): (&Value, i128) = from_args(&native.arguments.values)?;
    remainder(value, by).map(|rest| rest == Some(0))
}

/// Returns the non-negative remainder of a division; `None` for a value that is not an integer.
fn remainder(value: &Value, by: i128) -> Result<Option<i128>, Error> {
    match i128::try_from(value.clone()) {
        _ if by == 0 => Err(invalid("cannot divide by 0")),
        Ok(number) if value.is_number() => Ok(Some(number.checked_rem_euclid(by).unwrap_or(0))),
        _ => Ok(None),
    }
}

pub(super) fn startingwith(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value, start): (Text, Text) = from_args(&native.arguments.values)?;
    Ok(value.0.starts_with(&*start.0))
}

pub(super) fn endingwith(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value, end): (Text, Text) = from_args(&native.arguments.values)?;
    Ok(value.0.ends_with(&*end.0))
}

pub(super) fn contains(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    let (value, container): (&Value, &Value) = from_args(&native.arguments.values)?;
    values::weigh(value)?;
    values::weigh(container)?;
    match container.kind() {
        ValueKind::Undefined => Err(undefined_value()),
        ValueKind::String => Ok(container
            .as_str()
            .unwrap_or_default()
            .contains(&text_of(value)?)),
        ValueKind::Map => Ok(!container.get_item(value)?.is_undefined()),
        _ => Ok(values::elements(container)?.contains(value)),
    }
}

/// Compares two values.
fn compared(native: &Native<'_, '_>, compare: fn(&Value, &Value) -> bool) -> Result<bool, Error> {
    let (one, other): (&Value, &Value) = from_args(&native.arguments.values)?;
    values::weigh(one)?;
    values::weigh(other)?;
    Ok(compare(one, other))
}

pub(super) fn eq(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one == other)
}

pub(super) fn ne(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one != other)
}

pub(super) fn lt(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one < other)
}

pub(super) fn le(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one <= other)
}

pub(super) fn gt(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one > other)
}

pub(super) fn ge(native: &mut Native<'_, '_>) -> Result<bool, Error> {
    compared(native, |one, other| one >= other)
}
