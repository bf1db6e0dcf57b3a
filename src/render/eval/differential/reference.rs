//! The engine itself, with everything that templates use: one bridge adds each of reqc's own
//! filters, tests and functions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::value::{Object, ObjectRepr, Rest, ValueKind, ValueOrKwargs};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
    escape_formatter,
};

use super::Source;
use crate::render::account::{RECURSION_LIMIT, TOO_LARGE};
use crate::render::analyse::full_name;
use crate::render::builtins::{FILTERS, TESTS};
use crate::render::dialect::syntax;
use crate::render::eval::environment as strict;
use crate::render::objects::Function;
use crate::render::tracked::{Arguments, Names, Native, Origin, Tracked};
use crate::render::{functions, inja, writing};
use crate::repo::Dialect;

/// The name of the function that iterates over an object by key and value.
pub(super) const PAIRS: &str = "__pairs";

/// The engine's fuel. It exceeds the needs of any template that the evaluator can run within its
/// steps. The engine needs a limit, because it may enter an endless loop.
const FUEL: u64 = 5_000_000;

/// Returns the engine with the templates of a run.
///
/// # Errors
///
/// Returns an error if one of them does not parse.
pub(super) fn environment(
    templates: &[Source],
    dialect: Dialect,
) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(RECURSION_LIMIT);
    environment.set_debug(true);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(format);
    environment.set_path_join_callback(|name, _| full_name(name));
    environment.set_syntax(syntax(dialect));
    add_builtins(&mut environment, dialect);
    for template in templates {
        environment.add_template_owned(template.name.clone(), with_pairs(template))?;
    }
    Ok(environment)
}

/// Wraps each value that a loop iterates over by key and value in a function call. This moves no
/// line.
fn with_pairs(template: &Source) -> String {
    let mut ranges = template.pairs.clone();
    ranges.sort_by_key(|range| range.start);
    let mut text = template.text.clone();
    for range in ranges.iter().rev() {
        text.insert(range.end, ')');
        text.insert_str(range.start, &format!("{PAIRS}("));
    }
    text
}

fn add_builtins(environment: &mut Environment<'static>, dialect: Dialect) {
    for filter in FILTERS {
        environment.add_filter(
            filter.name,
            move |state: &State, given: Rest<ValueOrKwargs>| {
                bridge(state, given.into_values(), |native| (filter.apply)(native))
                    .map(|it| it.value)
            },
        );
    }
    for test in TESTS {
        environment.add_test(
            test.name,
            move |state: &State, given: Rest<ValueOrKwargs>| {
                bridge(state, given.into_values(), |native| (test.ask)(native))
            },
        );
    }
    for (name, function) in functions::globals(dialect) {
        environment.add_global(name, bridged(&function));
    }
    environment.add_function("namespace", minijinja::functions::namespace);
    environment.add_function(PAIRS, |value: Value| {
        inja::pairs(Tracked::plain(value)).map(|it| it.value)
    });
}

/// Returns one of reqc's own values in a form that the engine can call.
pub(super) fn bridged(value: &Value) -> Value {
    match value.downcast_object::<Function>() {
        Some(function) => Value::from_object(Bridge(function)),
        None => value.clone(),
    }
}

/// One of reqc's own functions, in a form that the engine can call.
struct Bridge(Arc<Function>);

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Object for Bridge {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, given: &[Value]) -> Result<Value, Error> {
        bridge(state, given.to_vec(), |native| (self.0.call)(native)).map(|it| it.value)
    }
}

/// The variables of the engine's state.
struct StateNames<'s, 't, 'e>(&'s State<'t, 'e>);

impl Names for StateNames<'_, '_, '_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.0.lookup(name)
    }
}

fn bridge<R>(
    state: &State<'_, '_>,
    values: Vec<Value>,
    call: impl for<'n> FnOnce(&mut Native<'n, 'static>) -> Result<R, Error>,
) -> Result<R, Error> {
    static STRICT: OnceLock<Environment<'static>> = OnceLock::new();
    let origins = values.iter().map(|_| Origin::Unknown).collect();
    let mut empty = STRICT.get_or_init(strict).empty_state();
    let mut native = Native {
        arguments: Arguments { values, origins },
        state: &mut empty,
        names: &StateNames(state),
    };
    call(&mut native)
}

fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => out
            .write_str(&writing::to_json(value)?)
            .map_err(Error::from),
        _ => match value.as_str() {
            Some(text) if text.len() > crate::render::MAX_OUTPUT => {
                Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE))
            }
            Some(text) => out.write_str(text).map_err(Error::from),
            None => escape_formatter(out, state, value),
        },
    }
}
