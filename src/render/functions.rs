//! Functions and filters of bodies, and the output limit.

use std::io;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value, escape_formatter};

use super::{account, builtins, inja, operators, values};
use crate::repo::Dialect;
use crate::text::stable_id;

/// The functions that bodies and partials may call, beside those of the engine.
pub(super) const BODY_FUNCTIONS: [&str; 7] =
    ["tojson", "existsIn", "length", "filter_by_type", "filter_skip_role", "strip_signature_suffix", "tool_id"];

/// What `loop.index` is rewritten to where it counts from 0: as long as the original, with padding.
pub(super) const INDEX_FROM_0: &str = "_i";

pub(super) fn install(environment: &mut Environment<'static>, dialect: Dialect) {
    operators::install(environment);
    builtins::install(environment);
    environment.add_function("tojson", tojson);
    environment.add_filter("tojson", tojson);
    environment.add_function("existsIn", exists_in);
    environment.add_function("length", length);
    environment.add_function("filter_by_type", filter_by_type);
    environment.add_function("filter_skip_role", filter_skip_role);
    environment.add_function("strip_signature_suffix", strip_signature_suffix);
    if dialect == Dialect::Inja {
        inja::install(environment);
        environment.add_function(INDEX_FROM_0, |this: Value| this.get_attr("index0"));
    }
}

/// Writes a value that a template emits. Booleans, lists and maps are JSON, as in the other dialect: the engine's own
/// `True` and `{'a': 1}` are of no use to a request.
pub(super) fn emit(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let text = to_json(value)?;
            account::make(text.len())?;
            out.write_str(&text).map_err(Error::from)
        }
        ValueKind::String => match value.as_str() {
            Some(text) => {
                account::make(within_limit(text)?.len())?;
                out.write_str(text).map_err(Error::from)
            }
            None => escape_formatter(out, state, value),
        },
        _ => escape_formatter(out, state, value),
    }
}

/// Refuses a text that is larger than all output may be: what is captured is not written yet, and could grow on.
fn within_limit(text: &str) -> Result<&str, Error> {
    match text.len() > super::MAX_OUTPUT {
        true => Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE)),
        false => Ok(text),
    }
}

/// What the engine's errors say where [`MAX_OUTPUT`](super::MAX_OUTPUT) is passed.
pub(super) const TOO_LARGE: &str = "the output is too large";

/// Compact JSON, nothing escaped beyond what JSON needs. Indentation arguments are refused rather than ignored.
#[expect(clippy::needless_pass_by_value, reason = "the engine's argument conversion gives the rest by value")]
fn tojson(value: &Value, rest: Rest<Value>) -> Result<String, Error> {
    match rest.is_empty() {
        true => to_json(value),
        false => Err(Error::new(ErrorKind::TooManyArguments, "tojson takes one value and writes it compactly")),
    }
}

/// A value as compact JSON. Undefined values, integers beyond 64 bits and what has no JSON form are errors.
pub(super) fn to_json(value: &Value) -> Result<String, Error> {
    let mut out = Vec::with_capacity(64);
    write_json(&mut out, value, 0)?;
    account::make(2 * out.len())?;
    Ok(String::from_utf8(out).expect("JSON of strings is UTF-8"))
}

fn write_json(out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), Error> {
    if out.len() > super::MAX_OUTPUT {
        return Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE));
    }
    if depth > crate::json::MAX_DEPTH {
        return Err(Error::new(ErrorKind::BadSerialization, "the value is nested too deeply"));
    }
    match value.kind() {
        ValueKind::Undefined => return Err(undefined(value)),
        ValueKind::None => out.extend_from_slice(b"null"),
        ValueKind::Bool => out.extend_from_slice(if value.is_true() { b"true" } else { b"false" }),
        ValueKind::Number => write_number(out, value)?,
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            write_each(out, value, *b"[]", |out, element| write_json(out, &element, depth + 1))?;
        }
        ValueKind::Map => write_each(out, value, *b"{}", |out, key| {
            match key.as_str() {
                Some(text) => write_string(out, text),
                None => write_string(out, &key.to_string()),
            }
            out.push(b':');
            write_json(out, &value.get_item(&key)?, depth + 1)
        })?,
        kind => return Err(Error::new(ErrorKind::BadSerialization, format!("a {kind} has no JSON form"))),
    }
    Ok(())
}

/// Writes what a value holds between brackets, with commas.
fn write_each(
    out: &mut Vec<u8>,
    value: &Value,
    [open, close]: [u8; 2],
    mut write: impl FnMut(&mut Vec<u8>, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(open);
    for (index, inner) in value.try_iter()?.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, inner)?;
    }
    out.push(close);
    Ok(())
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string serialises into memory");
}

fn write_number(out: &mut Vec<u8>, value: &Value) -> Result<(), Error> {
    if value.is_integer() {
        let fits = i64::try_from(value.clone()).is_ok() || u64::try_from(value.clone()).is_ok();
        if !fits {
            return Err(Error::new(ErrorKind::BadSerialization, format!("the integer {value} does not fit 64 bits")));
        }
        out.extend_from_slice(value.to_string().as_bytes());
        return Ok(());
    }
    let float = f64::try_from(value.clone())?;
    if !float.is_finite() {
        return Err(Error::new(ErrorKind::BadSerialization, format!("{float} has no JSON form")));
    }
    serde_json::to_writer(out, &float).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// The engine's own error for an undefined value: it knows which expression gave it.
pub(super) fn undefined(value: &Value) -> Error {
    value.get_attr("").err().unwrap_or_else(|| Error::from(ErrorKind::UndefinedError))
}

/// A text that a function is given. What is undefined tells by which expression it was given.
pub(super) fn text(value: &Value) -> Result<&str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None if value.is_undefined() => Err(undefined(value)),
        None => {
            let message = format!("a text is needed, not {}", kind_in_words(value));
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}

fn kind_in_words(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::None => "`none`",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "an object",
        _ => "this value",
    }
}

fn exists_in(object: &Value, key: &Value) -> Result<bool, Error> {
    match object.kind() {
        ValueKind::Undefined => Err(undefined(object)),
        _ => Ok(!object.get_attr(text(key)?)?.is_undefined()),
    }
}

pub(super) fn length(value: &Value) -> Result<usize, Error> {
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined(value)),
        kind => value.len().ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("a {kind} has no length"))),
    }
}

fn filter_by_type(blocks: &Value, kind: &Value) -> Result<Vec<Value>, Error> {
    let kind = text(kind)?;
    filter(blocks, "type", |found| found == kind)
}

fn filter_skip_role(history: &Value, role: &Value) -> Result<Vec<Value>, Error> {
    let role = text(role)?;
    filter(history, "role", |found| found != role)
}

fn filter(list: &Value, member: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<Value>, Error> {
    if list.is_undefined() {
        return Err(undefined(list));
    }
    account::list(values::breadth(list))?;
    let mut kept = Vec::new();
    for element in list.try_iter()? {
        let found = element.get_attr(member)?;
        account::read(found.as_bytes().map_or(0, <[u8]>::len))?;
        if keep(found.as_str().unwrap_or_default()) {
            kept.push(element);
        }
    }
    Ok(kept)
}

fn strip_signature_suffix(value: &Value) -> Result<String, Error> {
    let text = text(value)?;
    account::make(text.len())?;
    Ok(text.split("\n[Signature: ").next().unwrap_or_default().to_owned())
}

/// What a wire format asks of the ids of tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdRule {
    /// Any string.
    Any,
    /// Any characters, at least one and at most this many.
    AtMost(usize),
    /// One or more of `[A-Za-z0-9_-]`.
    Word,
    /// `[A-Za-z0-9]`, exactly this many.
    Alphanumeric(usize),
}

impl IdRule {
    /// The id itself if it fits; else a stable one that fits, the same for a call and its result.
    pub fn apply(self, id: &str) -> String {
        if self.fits(id) { id.to_owned() } else { stable_id(id) }
    }

    fn fits(self, id: &str) -> bool {
        match self {
            IdRule::Any => true,
            IdRule::AtMost(limit) => (1..=limit).contains(&id.chars().count()),
            IdRule::Word => !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')),
            IdRule::Alphanumeric(len) => id.len() == len && id.bytes().all(|b| b.is_ascii_alphanumeric()),
        }
    }

    /// `tool_id` as templates call it.
    pub(super) fn function(self) -> Value {
        Value::from_function(move |id: &Value| {
            let id = text(id)?;
            account::make(4 * id.len()).map(|()| self.apply(id))
        })
    }
}

/// A buffer that refuses to grow beyond a limit.
pub(super) struct Limited {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Limited {
    pub(super) fn new(limit: usize) -> Limited {
        Limited { bytes: Vec::with_capacity(1024), limit, full: false }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.bytes).expect("templates write strings")
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::Error::other("the output limit is reached"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::UndefinedBehavior;

    fn render(template: &str) -> Result<String, String> {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        install(&mut environment, Dialect::Jinja);
        environment.set_formatter(emit);
        environment.render_str(template, ()).map_err(|error| error.to_string())
    }

    #[test]
    fn tojson_is_compact_and_escapes_nothing_more_than_json_needs() {
        assert_eq!(
            render(r#"{{ {"b": "<&>'é\u2028", "a": [1, 1.0, none, true]} | tojson }}"#).expect("renders"),
            "{\"b\":\"<&>'é\u{2028}\",\"a\":[1,1.0,null,true]}"
        );
        assert_eq!(render("{{ tojson(tojson({})) }}").expect("renders"), "\"{}\"");
        assert!(render("{{ tojson(18446744073709551616) }}").expect_err("too large").contains("64 bits"));
        assert!(render("{{ tojson([none.x]) }}").is_err(), "undefined is strict inside lists too");
    }

    #[test]
    fn what_is_emitted_without_tojson_is_json_too() {
        assert_eq!(
            render("{{ true }} {{ [1, 'é', false] }} {{ {'a': none} }}").expect("renders"),
            r#"true [1,"é",false] {"a":null}"#
        );
        assert_eq!(render("{{ 'a\"b' }} {{ 1 }} {{ 1.5 }}").expect("renders"), "a\"b 1 1.5");
        assert!(render("{{ [none.x] }}").is_err(), "undefined is strict inside lists too");
    }

    #[test]
    fn helpers_do_what_their_names_say() {
        assert_eq!(render(r#"{{ length("abc") }}{{ length([1]) }}"#).expect("renders"), "31");
        assert_eq!(
            render(r#"{{ existsIn({"a": 1}, "a") }}{{ existsIn({"a": 1}, "b") }}"#).expect("renders"),
            "truefalse"
        );
        assert_eq!(
            render(r#"{{ filter_by_type([{"type": "a"}, {"type": "b"}], "b") | length }}"#).expect("renders"),
            "1"
        );
        assert_eq!(render(r#"{{ strip_signature_suffix("t\n[Signature: x]") }}"#).expect("renders"), "t");
        assert_eq!(render(r#"{{ "a" + "<cursor>" + "b" }}"#).expect("renders"), "a<cursor>b");
    }

    #[test]
    fn ids_that_fit_stay_and_others_become_stable() {
        assert_eq!(IdRule::Alphanumeric(9).apply("abcDEF123"), "abcDEF123");
        let made = IdRule::Alphanumeric(9).apply("toolu_01");
        assert_eq!(made.len(), 9);
        assert_eq!(IdRule::Alphanumeric(9).apply("toolu_01"), made);
        assert_ne!(IdRule::Alphanumeric(9).apply("toolu_02"), made);
        assert_eq!(IdRule::AtMost(40).apply("call 1"), "call 1");
        assert_eq!(IdRule::AtMost(4).apply("call_1").len(), 9);
        assert_eq!(IdRule::Word.apply("a b"), IdRule::Alphanumeric(9).apply("a b"));
        assert_ne!(IdRule::Word.apply(""), "");
        assert_eq!(IdRule::Any.apply("any thing"), "any thing");
    }
}
