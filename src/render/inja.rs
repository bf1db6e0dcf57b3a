//! Functions of the inja engine, for repositories with `dialect = "inja"`.
//!
//! They have the semantics of inja 3.5, `include/inja/renderer.hpp` in github.com/pantor/inja; the
//! file functions are in [`prompt`](super::prompt).

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::builtins::{Filter, Test};
use super::objects::Function;
use super::tracked::{Native, Origin, Tracked};
use super::values::undefined;
use super::{account, values};

/// The name that replaces `loop.index` where the index counts from 0. Padding makes the name as
/// long as the original.
pub(super) const INDEX_FROM_0: &str = "_i";

/// The functions in addition to those for all templates.
pub(super) const FUNCTIONS: [&str; 26] = [
    "at",
    "capitalize",
    "default",
    "divisibleBy",
    "even",
    "exists",
    "first",
    "float",
    "int",
    "isArray",
    "isBoolean",
    "isFloat",
    "isInteger",
    "isNumber",
    "isObject",
    "isString",
    "join",
    "last",
    "lower",
    "max",
    "min",
    "odd",
    "replace",
    "round",
    "sort",
    "upper",
];

/// Functions that are implemented as filters here.
const FILTERS: [&str; 13] = [
    "capitalize",
    "default",
    "first",
    "float",
    "int",
    "join",
    "last",
    "lower",
    "max",
    "min",
    "replace",
    "sort",
    "upper",
];

/// Functions that are implemented as tests here, with the names of the tests.
const TESTS: [(&str, &str); 10] = [
    ("divisibleBy", "divisibleby"),
    ("even", "even"),
    ("odd", "odd"),
    ("isArray", "sequence"),
    ("isBoolean", "boolean"),
    ("isFloat", "float"),
    ("isInteger", "integer"),
    ("isNumber", "number"),
    ("isObject", "mapping"),
    ("isString", "string"),
];

/// Returns the functions as values, by name.
pub(super) fn functions() -> impl Iterator<Item = (&'static str, Value)> {
    let filters = FILTERS
        .into_iter()
        .map(|name| (name, Function::of(name, Filter::named(name).apply)));
    let tests = TESTS
        .into_iter()
        .map(|(name, test)| (name, asking(name, Test::named(test))));
    let own = [
        ("at", Function::of("at", at)),
        ("exists", Function::of("exists", exists)),
        ("round", Function::of("round", round)),
        (INDEX_FROM_0, Function::of(INDEX_FROM_0, index)),
    ];
    filters.chain(tests).chain(own)
}

fn asking(name: &'static str, test: Test) -> Value {
    Function::with(name, move |native| (test.ask)(native).map(Tracked::plain))
}

/// Returns `loop.index`, which counts from 0.
fn index(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (this,): (Value,) = from_args(&native.arguments.values)?;
    this.get_attr("index0").map(Tracked::plain)
}

/// Returns the alternative to an inja function in a repository that does not use inja.
pub(super) fn instead(name: &str) -> Option<String> {
    let written = match name {
        "at" => "list[index]",
        "exists" => "ctx.member is defined",
        "default" => "value | default(other)",
        "round" => "value | round(precision)",
        _ if FILTERS.contains(&name) => return Some(switch(&format!("value | {name}"))),
        _ => {
            let (_, test) = TESTS.iter().find(|(function, _)| *function == name)?;
            return Some(switch(&format!("value is {test}")));
        }
    };
    Some(switch(written))
}

fn switch(written: &str) -> String {
    format!(
        "write `{written}`; with `dialect = \"inja\"` in reqc.toml, the inja function works too"
    )
}

/// Returns an element by its index, or a member by its name; an error if it does not exist.
fn at(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (container, key): (&Value, &Value) = from_args(&native.arguments.values)?;
    account::read(values::breadth(container))?;
    let is_before_first =
        container.kind() != ValueKind::Map && key.as_i64().is_some_and(|index| index < 0);
    let found = match container.kind() {
        _ if is_before_first => Value::UNDEFINED,
        ValueKind::Undefined => return Err(undefined()),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => container.get_item(key)?,
        kind => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("{} has no elements", values::named(kind)),
            ));
        }
    };
    if found.is_undefined() {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("there is no element {key}"),
        ));
    }
    let within = &native.arguments.origins[0];
    let origin = match (key.as_str(), key.as_usize()) {
        (Some(name), _) => within.member(name, || values::position(container, name)),
        (None, Some(index)) => within.element(index),
        (None, None) => Origin::Unknown,
    };
    Ok(Tracked {
        value: found,
        origin,
    })
}

/// Returns `true` if the template's data has a value at a path of names and indices, separated by
/// dots.
fn exists(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (path,): (&str,) = from_args(&native.arguments.values)?;
    account::read(path.len())?;
    let mut names = path.split('.');
    let first = names.next().unwrap_or_default();
    let Some(mut value) = native.names.lookup(first) else {
        return Ok(Tracked::plain(false));
    };
    for name in names {
        let inner = match (value.kind(), name.parse::<usize>()) {
            (ValueKind::Seq, Ok(index)) => value.get_item(&Value::from(index)),
            (ValueKind::Map, _) => value.get_attr(name),
            _ => return Ok(Tracked::plain(false)),
        };
        value = inner?;
    }
    Ok(Tracked::plain(!value.is_undefined()))
}

/// Rounds half away from zero; without decimals, the result is an integer.
fn round(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value, precision): (f64, Option<i32>) = from_args(&native.arguments.values)?;
    let precision = precision.unwrap_or(0);
    let scale = 10_f64.powi(precision);
    let rounded = (value * scale).round() / scale;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is a whole number, and the conversion saturates"
    )]
    Ok(match precision {
        0 if rounded.is_finite() => Tracked::plain(rounded as i64),
        _ => Tracked::plain(rounded),
    })
}

/// Returns the members of an object as pairs, sorted by name as in inja's data. Returns any other
/// value unchanged.
///
/// # Errors
///
/// Returns an error if there are too many members.
pub(super) fn pairs(value: Tracked) -> Result<Tracked, Error> {
    if value.value.kind() != ValueKind::Map {
        return Ok(value);
    }
    account::list(4 * values::breadth(&value.value))?;
    let mut keys: Vec<(usize, Value)> = value.value.try_iter()?.enumerate().collect();
    keys.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut pairs = Vec::with_capacity(keys.len());
    for (index, key) in keys {
        let member = Tracked {
            value: value.value.get_item(&key)?,
            origin: value
                .origin
                .member(key.as_str().unwrap_or_default(), || Some(index)),
        };
        pairs.push(Tracked::list(vec![Tracked::plain(key), member]));
    }
    Ok(Tracked::list(pairs))
}

#[cfg(test)]
mod tests {
    use crate::render::eval::render_alone;
    use crate::repo::Dialect;

    #[test]
    fn numbers_and_elements_are_those_of_the_original() {
        let render = |template: &str| render_alone(template, Dialect::Inja);
        assert_eq!(
            render("{{ round(2.5) }} {{ round(2.46, 1) }} {{ round(-2.5, 0) }}").as_deref(),
            Ok("3 2.5 -3")
        );
        assert_eq!(render("{{ at([1, 2], 1) }}").as_deref(), Ok("2"));
        assert!(
            render("{{ at([1, 2], -1) }}")
                .expect_err("before the first")
                .contains("there is no element -1")
        );
    }
}
