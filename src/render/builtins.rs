//! Filters, tests and functions that every template may use: this list is all there is, and each charges for what it does.
//!
//! They mean what they mean in Jinja. What no request needs is left out, [`instead`] tells what to write.

#![expect(clippy::needless_pass_by_value, reason = "the engine converts arguments to values, not to references")]

use std::collections::HashSet;

use minijinja::value::{DynObject, Kwargs, Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions as engine};

use super::account;
use super::analyse::Callable;
use super::functions::undefined;
use super::values::{self, Holder, Members};

/// The functions, beside those of bodies and prompts.
pub(super) const FUNCTIONS: [&str; 3] = ["range", "dict", "namespace"];

/// The filters.
pub(super) const FILTERS: [&str; 34] = [
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "first",
    "float",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
];

/// The tests.
pub(super) const TESTS: [&str; 35] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];

/// What to write instead of a name of Jinja that is not on the lists.
pub(super) fn instead(name: &str, what: Callable) -> Option<&'static str> {
    match what {
        Callable::Filter => instead_of_filter(name),
        Callable::Test => instead_of_test(name),
        Callable::Method => instead_of_method(name),
        Callable::Function => instead_of_function(name),
    }
}

fn instead_of_filter(name: &str) -> Option<&'static str> {
    Some(match name {
        "safe" | "e" | "escape" | "forceescape" => {
            "leave it out: nothing is escaped here; `tojson` writes a value as JSON"
        }
        "pprint" | "format" | "filesizeformat" => "join texts with `~`, and write values with `tojson`",
        "attr" => "write `value[name]`",
        "batch" | "slice" => "write a slice, such as `list[:10]`",
        "groupby" => "loop over the values that there are, with `selectattr` inside",
        "dictsort" => "write `object | items`, which keeps the order of the object",
        "chain" => "write `first + second`",
        "zip" => "loop over one list, and write `other[loop.index0]` for the other one",
        "sum" => "add up in a loop, in a namespace",
        "bool" => "write `true if value else false`",
        "random" => "a request must be the same each time: choose one",
        _ => return None,
    })
}

fn instead_of_test(name: &str) -> Option<&'static str> {
    Some(match name {
        "safe" | "escaped" => "leave it out: nothing is escaped here",
        "sameas" => "write `==`",
        "upper" => "write `value == value | upper`",
        "lower" => "write `value == value | lower`",
        "filter" | "test" => "`docs/templates.md` lists the filters and tests that there are",
        _ => return None,
    })
}

fn instead_of_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "changed" => "keep the value of the iteration before in a namespace, and compare",
        "cycle" => "write `[\"a\", \"b\"][loop.index0 % 2]`",
        _ => return None,
    })
}

fn instead_of_function(name: &str) -> Option<&'static str> {
    Some(match name {
        "debug" => "write `tojson(value)`",
        "cycler" => "write `[\"a\", \"b\"][loop.index0 % 2]`",
        "joiner" => "write `{% if not loop.first %},{% endif %}`; a comma before `]` or `}` is dropped anyway",
        "raise_exception" => "what must not happen is best left to the checks of `reqc`",
        "strftime_now" => "a request must not depend on the clock",
        _ => return None,
    })
}

pub(super) fn install(environment: &mut Environment<'static>) {
    environment.add_function("range", range);
    environment.add_function("dict", dict);
    environment.add_function("namespace", namespace);
    install_text_filters(environment);
    install_list_filters(environment);
    install_tests(environment);
}

fn install_text_filters(environment: &mut Environment<'static>) {
    environment.add_filter("lower", |text: Text| text.mapped(str::to_lowercase));
    environment.add_filter("upper", |text: Text| text.mapped(str::to_uppercase));
    environment.add_filter("title", |text: Text| text.mapped(|text| filters::title(text.into())));
    environment.add_filter("capitalize", |text: Text| text.mapped(capitalized));
    environment.add_filter("trim", trim);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("split", split);
    environment.add_filter("lines", |text: Text| listed(&text.0, text.0.lines()));
    environment.add_filter("string", |value: &Value| text_of(value).map(Value::from));
    environment.add_filter("abs", |value: Value| filters::abs(value));
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("round", round);
    for name in ["default", "d"] {
        environment.add_filter(name, filters::default);
    }
}

fn install_list_filters(environment: &mut Environment<'static>) {
    for name in ["length", "count"] {
        environment.add_filter(name, super::functions::length);
    }
    environment.add_filter("first", first);
    environment.add_filter("last", last);
    environment.add_filter("list", |value: &Value| values::elements(value));
    environment.add_filter("items", items);
    environment.add_filter("join", join);
    environment.add_filter("reverse", reverse);
    environment.add_filter("map", map);
    environment.add_filter("min", |value: &Value, options: Kwargs| Ok(sorted(value, &options)?.into_iter().next()));
    environment.add_filter("max", |value: &Value, options: Kwargs| Ok(sorted(value, &options)?.pop()));
    environment.add_filter("sort", |value: &Value, options: Kwargs| sorted(value, &options));
    environment.add_filter("unique", unique);
    environment
        .add_filter("select", |state: &mut State, value: &Value, args: Rest<Value>| select(state, value, &args, true));
    environment
        .add_filter("reject", |state: &mut State, value: &Value, args: Rest<Value>| select(state, value, &args, false));
    environment.add_filter("selectattr", |state: &mut State, value: &Value, args: Rest<Value>| {
        select_by(state, value, &args, true)
    });
    environment.add_filter("rejectattr", |state: &mut State, value: &Value, args: Rest<Value>| {
        select_by(state, value, &args, false)
    });
}

fn install_tests(environment: &mut Environment<'static>) {
    let of_kind = |kinds: &'static [ValueKind]| move |value: &Value| kinds.contains(&value.kind());
    environment.add_test("defined", |value: &Value| !value.is_undefined());
    environment.add_test("undefined", Value::is_undefined);
    environment.add_test("none", Value::is_none);
    environment.add_test("boolean", of_kind(&[ValueKind::Bool]));
    environment.add_test("true", |value: &Value| value.kind() == ValueKind::Bool && value.is_true());
    environment.add_test("false", |value: &Value| value.kind() == ValueKind::Bool && !value.is_true());
    environment.add_test("number", of_kind(&[ValueKind::Number]));
    environment.add_test("string", of_kind(&[ValueKind::String]));
    environment.add_test("mapping", of_kind(&[ValueKind::Map]));
    environment.add_test("sequence", of_kind(&[ValueKind::Seq]));
    environment
        .add_test("iterable", of_kind(&[ValueKind::Seq, ValueKind::Iterable, ValueKind::Map, ValueKind::String]));
    for name in ["int", "integer"] {
        environment.add_test(name, Value::is_integer);
    }
    environment.add_test("float", |value: &Value| value.is_number() && !value.is_integer());
    environment.add_test("odd", |value: &Value| remainder(value, 2).map(|rest| rest == Some(1)));
    environment.add_test("even", |value: &Value| remainder(value, 2).map(|rest| rest == Some(0)));
    environment.add_test("divisibleby", |value: &Value, by: i128| remainder(value, by).map(|rest| rest == Some(0)));
    environment.add_test("startingwith", |value: Text, start: Text| value.0.starts_with(&*start.0));
    environment.add_test("endingwith", |value: Text, end: Text| value.0.ends_with(&*end.0));
    environment.add_test("in", contains);
    comparisons(environment, &["eq", "equalto", "=="], |a, b| a == b);
    comparisons(environment, &["ne", "!="], |a, b| a != b);
    comparisons(environment, &["lt", "lessthan", "<"], |a, b| a < b);
    comparisons(environment, &["le", "<="], |a, b| a <= b);
    comparisons(environment, &["gt", "greaterthan", ">"], |a, b| a > b);
    comparisons(environment, &["ge", ">="], |a, b| a >= b);
}

fn comparisons(environment: &mut Environment<'static>, names: &[&'static str], compare: fn(&Value, &Value) -> bool) {
    for &name in names {
        environment.add_test(name, move |a: &Value, b: &Value| {
            values::weigh(a)?;
            values::weigh(b)?;
            Ok::<bool, Error>(compare(a, b))
        });
    }
}

/// A text as an argument.
struct Text(std::sync::Arc<str>);

impl<'a> minijinja::value::ArgType<'a> for Text {
    type Output = Text;

    fn from_value(value: Option<&'a Value>) -> Result<Text, Error> {
        let value = value.ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
        match value.kind() {
            // Whoever takes a text may read all of it.
            ValueKind::String => {
                account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
                Ok(Text(value.to_str().unwrap_or_else(|| "".into())))
            }
            ValueKind::Undefined => Err(undefined(value)),
            _ => Ok(Text(text_of(value)?.into())),
        }
    }
}

impl Text {
    fn mapped(&self, change: impl Fn(&str) -> String) -> Result<String, Error> {
        account::make(4 * self.0.len())?;
        Ok(change(&self.0))
    }
}

/// A value as text, as the engine writes it.
fn text_of(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(undefined(value));
    }
    let units = values::weigh(value)?;
    account::charge(4 * units)?;
    Ok(value.to_string())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + &chars.as_str().to_lowercase()
}

fn trim(text: Text, chars: Option<&str>) -> Result<Value, Error> {
    const MAX_CHARS: usize = 64;
    account::make(text.0.len())?;
    let trimmed = match chars {
        None => text.0.trim(),
        Some(chars) if chars.len() > MAX_CHARS => {
            return Err(invalid(format!("`trim` takes at most {MAX_CHARS} characters to trim")));
        }
        Some(chars) => {
            account::read(text.0.len() * chars.len())?;
            text.0.trim_matches(&chars.chars().collect::<Vec<char>>()[..])
        }
    };
    Ok(Value::from(trimmed))
}

fn replace(text: Text, from: Text, to: Text) -> Result<String, Error> {
    account::read(4 * text.0.len())?;
    let found = text.0.matches(&*from.0).count();
    account::make(text.0.len().saturating_add(found.saturating_mul(to.0.len())))?;
    Ok(text.0.replace(&*from.0, &to.0))
}

fn indent(text: Text, width: u32, first: Option<bool>, blank: Option<bool>) -> Result<String, Error> {
    const MAX_WIDTH: u32 = 1_000;
    if width > MAX_WIDTH {
        return Err(invalid(format!("`indent` takes a width of at most {MAX_WIDTH}")));
    }
    let (first, blank) = (first.unwrap_or(false), blank.unwrap_or(false));
    account::read(text.0.len())?;
    account::make(text.0.len() + text.0.lines().count() * width as usize)?;
    let (margin, mut indented) = (" ".repeat(width as usize), String::new());
    for (index, line) in text.0.strip_suffix('\n').unwrap_or(&text.0).split('\n').enumerate() {
        let is_indented = if index == 0 { first } else { blank || !line.trim_end_matches('\r').is_empty() };
        indented.push_str(if index == 0 { "" } else { "\n" });
        indented.push_str(if is_indented { &margin } else { "" });
        indented.push_str(line);
    }
    Ok(indented)
}

fn split(text: Text, separator: Option<&Value>, count: Option<i64>) -> Result<Vec<Value>, Error> {
    let separator = separator.filter(|separator| !separator.is_none());
    let limit = count.and_then(|count| usize::try_from(count).ok()).map(|count| count.saturating_add(1));
    let text = &text.0;
    match (separator.map(|separator| separator.as_str().ok_or_else(|| invalid("`split` splits at a text"))), limit) {
        (None, None) => listed(text, text.split_whitespace()),
        (None, Some(limit)) => listed(text, words(text, limit)),
        (Some(separator), None) => listed(text, text.split(separator?)),
        (Some(separator), Some(limit)) => listed(text, text.splitn(limit, separator?)),
    }
}

/// The first words of a text, and the rest as the last one.
fn words(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let (mut rest, mut left) = (text.trim_start(), limit);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        left = left.saturating_sub(1);
        let end = if left == 0 { rest.len() } else { rest.find(char::is_whitespace).unwrap_or(rest.len()) };
        let (word, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(word.trim_end())
    })
}

/// Parts of a text as a list.
fn listed<'t>(text: &str, parts: impl Iterator<Item = &'t str>) -> Result<Vec<Value>, Error> {
    account::make(text.len())?;
    parts.map(|part| account::charge(account::ELEMENT).map(|()| Value::from(part))).collect()
}

fn int(
    state: &State,
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Value, Error> {
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    filters::int(state, value, default, base, options)
}

fn float(state: &State, value: &Value, default: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    filters::float(state, value, default, options)
}

fn round(value: Value, precision: Option<i32>, method: Option<&str>, options: Kwargs) -> Result<Value, Error> {
    const MAX_PRECISION: u32 = 30;
    let named: Option<i32> = options.get("precision")?;
    if precision.or(named).is_some_and(|precision| precision.unsigned_abs() > MAX_PRECISION) {
        return Err(invalid(format!("`round` takes a precision of at most {MAX_PRECISION}")));
    }
    filters::round(value, precision, method, options)
}

fn first(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(undefined(value)),
        ValueKind::String => {
            let first = value.as_str().and_then(|text| text.chars().next());
            Ok(first.map(|first| Value::from(first.to_string())).unwrap_or_default())
        }
        _ => Ok(value.try_iter()?.next().unwrap_or_default()),
    }
}

fn last(value: &Value) -> Result<Value, Error> {
    Ok(match value.as_str() {
        Some(text) => text.chars().next_back().map(|last| Value::from(last.to_string())),
        None => values::elements(value)?.pop(),
    }
    .unwrap_or_default())
}

fn items(value: &Value) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(undefined(value)),
        ValueKind::Map => {
            account::list(0)?;
            let pairs = value.as_object().and_then(DynObject::try_iter_pairs).into_iter().flatten();
            let pair = |(key, member)| {
                account::charge(account::LIST + 3 * account::ELEMENT)?;
                Ok(Value::from(Tuple::from([key, member])))
            };
            pairs.map(pair).collect()
        }
        kind => Err(invalid(format!("`items` takes an object, not a {kind}"))),
    }
}

fn reverse(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(undefined(value)),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            account::make(4 * text.len())?;
            Ok(Value::from(text.chars().rev().collect::<String>()))
        }
        _ => {
            let mut elements = values::elements(value)?;
            elements.reverse();
            Ok(Value::from(elements))
        }
    }
}

fn join(value: &Value, separator: Option<Text>, options: Kwargs) -> Result<String, Error> {
    let attribute: Option<&str> = options.get("attribute")?;
    let named: Option<&str> = options.get("d")?;
    options.assert_all_used()?;
    let separator = match &separator {
        Some(separator) => &*separator.0,
        None => named.unwrap_or_default(),
    };
    let mut joined = String::new();
    for (index, element) in values::elements(value)?.iter().enumerate() {
        let element = attribute.map_or_else(|| Ok(element.clone()), |path| member(element, path))?;
        let between = if index == 0 { "" } else { separator };
        account::make(between.len() + element.as_bytes().map_or(0, <[u8]>::len))?;
        joined.push_str(between);
        match element.as_str() {
            Some(text) => joined.push_str(text),
            None => joined.push_str(&text_of(&element)?),
        }
    }
    Ok(joined)
}

/// A member by its path: names, and numbers for elements, with dots between.
fn member(value: &Value, path: &str) -> Result<Value, Error> {
    account::charge(account::VISIT + path.len() as u64)?;
    let mut found = value.clone();
    for part in path.split('.') {
        found = match part.parse::<usize>() {
            Ok(index) if found.kind() != ValueKind::Map => {
                account::read(4 * values::breadth(&found))?;
                found.get_item_by_index(index)?
            }
            _ => found.get_attr(part)?,
        };
    }
    Ok(found)
}

fn map(state: &mut State, value: &Value, args: Rest<Value>, options: Kwargs) -> Result<Vec<Value>, Error> {
    let elements = values::elements(value)?;
    if let Some(path) = options.get::<Option<&str>>("attribute")? {
        let default: Option<Value> = options.get("default")?;
        options.assert_all_used()?;
        return elements.iter().map(|element| member_or(element, path, default.as_ref())).collect();
    }
    let (name, args) = args.split_first().ok_or_else(|| invalid("`map` needs a filter, or `attribute=…`"))?;
    let name = name.as_str().ok_or_else(|| invalid("`map` takes the name of a filter"))?;
    // Calls within calls: each would add to the depth of the stack.
    if matches!(name, "map" | "select" | "reject" | "selectattr" | "rejectattr") {
        return Err(invalid(format!("`map` cannot apply `{name}`: write a loop")));
    }
    let mut mapped = Vec::with_capacity(elements.len());
    for element in elements {
        account::charge(account::ELEMENT)?;
        let args: Vec<Value> = std::iter::once(element).chain(args.iter().cloned()).collect();
        mapped.push(state.apply_filter(name, &args)?);
    }
    Ok(mapped)
}

fn member_or(element: &Value, path: &str, default: Option<&Value>) -> Result<Value, Error> {
    match (member(element, path), default) {
        (Ok(found), Some(default)) if found.is_undefined() => Ok(default.clone()),
        (Err(_), Some(default)) => Ok(default.clone()),
        (found, _) => found,
    }
}

fn select(state: &mut State, value: &Value, args: &[Value], wanted: bool) -> Result<Vec<Value>, Error> {
    filtered(state, value, args, wanted, |element| Ok(element.clone()))
}

fn select_by(state: &mut State, value: &Value, args: &[Value], wanted: bool) -> Result<Vec<Value>, Error> {
    let (path, args) = args.split_first().ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let path = path.as_str().ok_or_else(|| invalid("the attribute's name must be a text"))?;
    filtered(state, value, args, wanted, |element| member(element, path))
}

/// The elements whose part passes a test, or does not; without a test, whose part is true.
fn filtered(
    state: &mut State,
    value: &Value,
    args: &[Value],
    wanted: bool,
    part: impl Fn(&Value) -> Result<Value, Error>,
) -> Result<Vec<Value>, Error> {
    let mut kept = Vec::new();
    for element in values::elements(value)? {
        account::charge(account::VISIT)?;
        let part = part(&element)?;
        let passes = match args.split_first() {
            None => part.is_true(),
            Some((test, rest)) => {
                let test = test.as_str().ok_or_else(|| invalid("the name of a test must be a text"))?;
                let args: Vec<Value> = std::iter::once(part).chain(rest.iter().cloned()).collect();
                state.perform_test(test, &args)?
            }
        };
        if passes == wanted {
            kept.push(element);
        }
    }
    Ok(kept)
}

/// What lists are sorted by.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Integer(i128),
    Float(f64),
    Text(String),
}

impl Key {
    fn of(value: &Value, with_case: bool) -> Result<Key, Error> {
        match value.kind() {
            ValueKind::Undefined => Err(undefined(value)),
            ValueKind::Bool => Ok(Key::Integer(i128::from(value.is_true()))),
            ValueKind::Number => Ok(match i128::try_from(value.clone()) {
                Ok(integer) if value.is_integer() => Key::Integer(integer),
                _ => Key::Float(f64::try_from(value.clone())?),
            }),
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                account::make(text.len())?;
                Ok(Key::Text(if with_case { text.to_owned() } else { text.to_lowercase() }))
            }
            kind => Err(invalid(format!("texts and numbers have an order, a {kind} has none: name an `attribute`"))),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "an order of integers and floats need not be exact")]
    fn compare(&self, other: &Key) -> std::cmp::Ordering {
        match (self, other) {
            (Key::Integer(a), Key::Integer(b)) => a.cmp(b),
            (Key::Integer(a), Key::Float(b)) => (*a as f64).total_cmp(b),
            (Key::Float(a), Key::Integer(b)) => a.total_cmp(&(*b as f64)),
            (Key::Float(a), Key::Float(b)) => a.total_cmp(b),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::Text(_), _) => std::cmp::Ordering::Greater,
            (_, Key::Text(_)) => std::cmp::Ordering::Less,
        }
    }

    fn len(&self) -> usize {
        match self {
            Key::Text(text) => text.len(),
            _ => size_of::<Key>(),
        }
    }
}

fn sorted(value: &Value, options: &Kwargs) -> Result<Vec<Value>, Error> {
    let attribute: Option<&str> = options.get("attribute")?;
    let with_case = options.get::<Option<bool>>("case_sensitive")?.unwrap_or(false);
    let reverse = options.get::<Option<bool>>("reverse")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut keyed = Vec::new();
    for element in values::elements(value)? {
        let part = attribute.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        keyed.push((Key::of(&part, with_case)?, element));
    }
    // Integers and floats together are compared as floats: one order for all.
    if keyed.iter().any(|(key, _)| matches!(key, Key::Float(_))) {
        keyed.iter_mut().for_each(|(key, _)| key.make_float());
    }
    let bytes: usize = keyed.iter().map(|(key, _)| key.len()).sum();
    account::read(bytes.saturating_mul(keyed.len().max(1).ilog2() as usize + 1))?;
    keyed.sort_by(|(a, _), (b, _)| if reverse { b.compare(a) } else { a.compare(b) });
    Ok(keyed.into_iter().map(|(_, element)| element).collect())
}

impl Key {
    #[expect(clippy::cast_precision_loss, reason = "an order of integers and floats need not be exact")]
    fn make_float(&mut self) {
        if let Key::Integer(integer) = self {
            *self = Key::Float(*integer as f64);
        }
    }
}

fn unique(value: &Value, options: Kwargs) -> Result<Vec<Value>, Error> {
    let attribute: Option<&str> = options.get("attribute")?;
    let with_case = options.get::<Option<bool>>("case_sensitive")?.unwrap_or(false);
    options.assert_all_used()?;
    let (mut seen, mut kept) = (HashSet::new(), Vec::new());
    for element in values::elements(value)? {
        let part = attribute.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        let text = super::functions::to_json(&part)?;
        account::make(text.len() + size_of::<String>())?;
        if seen.insert(if with_case { text } else { text.to_lowercase() }) {
            kept.push(element);
        }
    }
    Ok(kept)
}

fn range(lower: i64, upper: Option<i64>, step: Option<i64>) -> Result<Vec<Value>, Error> {
    const MAX: usize = 100_000;
    let (start, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(invalid("cannot create a range with a step of 0"));
    }
    let numbers = || {
        let inside = move |number: &i64| if step > 0 { *number < end } else { *number > end };
        std::iter::successors(Some(start), move |number| number.checked_add(step)).take_while(inside)
    };
    let len = numbers().take(MAX + 1).count();
    if len > MAX {
        return Err(invalid(format!("a range has at most {MAX} numbers")));
    }
    account::list(len)?;
    Ok(numbers().map(Value::from).collect())
}

fn dict(value: Option<&Value>, members: Kwargs) -> Result<Value, Error> {
    let mut made = Members::new();
    if let Some(value) = value.filter(|value| !value.is_none()) {
        if value.kind() != ValueKind::Map {
            return Err(invalid("`dict` takes an object, or `name=value`"));
        }
        let pairs = value.as_object().and_then(DynObject::try_iter_pairs).into_iter().flatten();
        for (key, member) in pairs {
            account::charge(account::MEMBER.saturating_add(4 * values::weigh(&key)?))?;
            made.insert(key, member);
        }
    }
    for name in members.args() {
        account::make(name.len())?;
        made.insert(Value::from(name), members.get::<Value>(name)?);
    }
    let made = Value::from_object(made);
    values::keep(&made, Holder::Variable)?;
    Ok(made)
}

fn namespace(value: Option<&Value>, members: Kwargs) -> Result<Value, Error> {
    const MAX: usize = 256;
    let made = dict(value, members)?;
    values::keep(&made, Holder::Namespace)?;
    if made.len().is_some_and(|len| len > MAX) {
        return Err(invalid(format!("a namespace begins with at most {MAX} members")));
    }
    engine::namespace(Some(ValueOrKwargs::from(made)))
}

/// The remainder of a division, from 0 on; `None` for what is no integer.
fn remainder(value: &Value, by: i128) -> Result<Option<i128>, Error> {
    match i128::try_from(value.clone()) {
        _ if by == 0 => Err(invalid("cannot divide by 0")),
        Ok(number) if value.is_number() => Ok(Some(number.checked_rem_euclid(by).unwrap_or(0))),
        _ => Ok(None),
    }
}

fn contains(value: &Value, container: &Value) -> Result<bool, Error> {
    values::weigh(value)?;
    values::weigh(container)?;
    match container.kind() {
        ValueKind::Undefined => Err(undefined(container)),
        ValueKind::String => Ok(container.as_str().unwrap_or_default().contains(&text_of(value)?)),
        ValueKind::Map => Ok(!container.get_item(value)?.is_undefined()),
        _ => Ok(values::elements(container)?.contains(value)),
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
