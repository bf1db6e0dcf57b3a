//! Functions of the inja engine, for repositories that say `dialect = "inja"`.
//!
//! Their meaning is that of inja 3.5, `include/inja/renderer.hpp` in github.com/pantor/inja; that of the file functions is
//! [`prompt`](super::prompt)'s.

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::functions::undefined;
use super::{account, values};

/// The functions beside those that every template has.
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

/// What iterates over an object by key and value; guards put it around.
pub(super) const PAIRS: &str = "__kv";

/// Functions that are filters here.
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

/// Functions that are tests here, and their names.
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

pub(super) fn install(environment: &mut Environment<'static>) {
    for name in FILTERS {
        let apply = move |state: &mut State, args: Rest<Value>| state.apply_filter(name, &args);
        environment.add_function(name, apply);
    }
    for (name, test) in TESTS {
        let perform = move |state: &mut State, args: Rest<Value>| state.perform_test(test, &args);
        environment.add_function(name, perform);
    }
    environment.add_function("at", at);
    environment.add_function("exists", exists);
    environment.add_function("round", round);
    environment.add_function(PAIRS, pairs);
}

/// What to write instead of a function of inja in a repository that does not say that it uses inja.
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
    format!("write `{written}`; the function is inja's: `dialect = \"inja\"` in reqc.toml has it")
}

/// An element by its index, or a member by its name; an error if there is none.
fn at(container: &Value, key: &Value) -> Result<Value, Error> {
    account::read(values::breadth(container))?;
    let is_before_first = container.kind() != ValueKind::Map && key.as_i64().is_some_and(|index| index < 0);
    let found = match container.kind() {
        _ if is_before_first => Value::UNDEFINED,
        ValueKind::Undefined => return Err(undefined(container)),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => container.get_item(key)?,
        kind => return Err(Error::new(ErrorKind::InvalidOperation, format!("a {kind} has no elements"))),
    };
    match found.is_undefined() {
        true => Err(Error::new(ErrorKind::InvalidOperation, format!("there is no element {key}"))),
        false => Ok(found),
    }
}

/// Whether the template's data has a value at a path of names and indexes with dots between them.
fn exists(state: &mut State, path: &str) -> Result<bool, Error> {
    account::read(path.len())?;
    let mut names = path.split('.');
    let first = names.next().unwrap_or_default();
    let Some(mut value) = state.lookup(first) else { return Ok(false) };
    for name in names {
        let inner = match (value.kind(), name.parse::<usize>()) {
            (ValueKind::Seq, Ok(index)) => value.get_item(&Value::from(index)),
            (ValueKind::Map, _) => value.get_attr(name),
            _ => return Ok(false),
        };
        value = inner?;
    }
    Ok(!value.is_undefined())
}

/// Rounds half away from zero; without digits behind the point the result is an integer.
fn round(value: f64, precision: Option<i32>) -> Value {
    let precision = precision.unwrap_or(0);
    let scale = 10_f64.powi(precision);
    let rounded = (value * scale).round() / scale;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and what does not fit ends at the largest integer"
    )]
    match precision {
        0 if rounded.is_finite() => Value::from(rounded as i64),
        _ => Value::from(rounded),
    }
}

/// The members of an object as pairs, sorted by name as inja's data are; anything else as it is.
fn pairs(value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Ok(value);
    }
    account::list(4 * values::breadth(&value))?;
    let mut keys: Vec<Value> = value.try_iter()?.collect();
    keys.sort();
    let pair = |key: Value| Ok(Value::from(vec![key.clone(), value.get_item(&key)?]));
    keys.into_iter().map(pair).collect::<Result<Vec<Value>, Error>>().map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::functions;
    use crate::repo::Dialect;

    #[test]
    fn numbers_and_elements_are_those_of_the_original() {
        let render = |template: &str| {
            let mut environment = Environment::empty();
            functions::install(&mut environment, Dialect::Inja);
            environment.render_str(template, ()).map_err(|error| error.to_string())
        };
        assert_eq!(render("{{ round(2.5) }} {{ round(2.46, 1) }} {{ round(-2.5, 0) }}").as_deref(), Ok("3 2.5 -3"));
        assert_eq!(render("{{ at([1, 2], 1) }}").as_deref(), Ok("2"));
        assert!(render("{{ at([1, 2], -1) }}").expect_err("before the first").contains("there is no element -1"));
    }
}
