//! Functions of bodies, and the output of values.

use minijinja::value::{Rest, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::builtins::{Apply, FUNCTIONS};
use super::eval::{Function, Native, Origin, Tracked, of_data, told_as};
use super::rope::{Told, Writer};
use super::{account, inja, values};
use crate::repo::Dialect;
use crate::text::stable_id;

/// The functions of bodies and partials, in addition to those of all templates.
pub(super) const BODY_FUNCTIONS: [&str; 7] = [
    "tojson",
    "existsIn",
    "length",
    "filter_by_type",
    "filter_skip_role",
    "strip_signature_suffix",
    "tool_id",
];

/// The name that replaces `loop.index` where it counts from 0; padding makes it as long as the
/// original.
pub(super) const INDEX_FROM_0: &str = "_i";

/// Functions of bodies, except for `tool_id`, which depends on the wire format.
const OF_BODIES: [(&str, Apply); 6] = [
    ("tojson", tojson),
    ("existsIn", exists_in),
    ("length", length),
    ("filter_by_type", filter_by_type),
    ("filter_skip_role", filter_skip_role),
    ("strip_signature_suffix", strip_signature_suffix),
];

/// Returns the functions that templates of a dialect may call, by name.
pub(super) fn globals(dialect: Dialect) -> Vec<(&'static str, Value)> {
    let of_inja = inja::functions().filter(|_| dialect == Dialect::Inja);
    let of_all = FUNCTIONS
        .into_iter()
        .chain(OF_BODIES)
        .map(|(name, apply)| (name, Function::of(name, apply)));
    of_all.chain(of_inja).collect()
}

/// Writes a value that a template emits. Booleans, lists and maps become JSON, as in the other
/// dialect: the engine's own `True` and `{'a': 1}` are useless in a request.
///
/// # Errors
///
/// Returns an error if the value is undefined or too large.
pub(super) fn emitted(value: &Tracked, follows: bool) -> Result<Told, Error> {
    match value.value.kind() {
        ValueKind::Bool | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let told = json(value, follows)?;
            account::make(told.text.len())?;
            Ok(told)
        }
        ValueKind::Undefined if value.is_nothing() => Ok(Told::new(follows)),
        ValueKind::Undefined => Err(undefined()),
        _ => match value.value.as_str() {
            Some(text) => {
                charge_text(text)?;
                Ok(told_as(value, text, follows, 0))
            }
            None => Ok(told_as(value, &value.value.to_string(), follows, 0)),
        },
    }
}

/// Charges for writing a text.
///
/// # Errors
///
/// Returns an error if it is too large, or the cost exceeds the limit.
pub(super) fn charge_text(text: &str) -> Result<(), Error> {
    account::make(within_limit(text)?.len())
}

/// Rejects a text above the limit of all output: a captured text is not written yet, and could keep
/// growing.
fn within_limit(text: &str) -> Result<&str, Error> {
    match text.len() > super::MAX_OUTPUT {
        true => Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE)),
        false => Ok(text),
    }
}

/// The message of errors when [`MAX_OUTPUT`](super::MAX_OUTPUT) is exceeded.
pub(super) const TOO_LARGE: &str = "the output is too large";

/// Writes compact JSON, escaping only what JSON requires. Indentation arguments are rejected rather
/// than ignored.
pub(super) fn tojson(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, rest): (&Value, Rest<Value>) = from_args(&native.arguments.values)?;
    match rest.is_empty() {
        true => json(&native.arguments.get(0), native.follows).map(Tracked::text),
        false => Err(Error::new(
            ErrorKind::TooManyArguments,
            "tojson takes one value and writes it compactly",
        )),
    }
}

/// Returns a value as compact JSON.
///
/// # Errors
///
/// Returns an error for undefined values, integers beyond 64 bits, and values without a JSON form.
pub(super) fn to_json(value: &Value) -> Result<String, Error> {
    json(&Tracked::plain(value.clone()), false).map(|told| told.text)
}

/// Returns a value as compact JSON, with its writers if they are tracked.
fn json(value: &Tracked, follows: bool) -> Result<Told, Error> {
    let mut out = JsonWriter {
        out: Told::new(follows),
        follows,
    };
    out.write(&value.value, &value.origin, 0)?;
    account::make(2 * out.out.text.len())?;
    Ok(out.out)
}

/// Writes values as JSON.
struct JsonWriter {
    out: Told,
    follows: bool,
}

impl JsonWriter {
    fn write(&mut self, value: &Value, origin: &Origin, depth: usize) -> Result<(), Error> {
        if self.out.text.len() > super::MAX_OUTPUT {
            return Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE));
        }
        if depth > crate::json::MAX_DEPTH {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                "the value is nested too deeply",
            ));
        }
        match value.kind() {
            ValueKind::Undefined => return Err(undefined()),
            ValueKind::None => self.leaf("null", origin),
            ValueKind::Bool => self.leaf(if value.is_true() { "true" } else { "false" }, origin),
            ValueKind::Number => self.leaf(&number(value)?, origin),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), origin),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, origin, depth)?,
            ValueKind::Map => self.object(value, origin, depth)?,
            kind => {
                return Err(Error::new(
                    ErrorKind::BadSerialization,
                    format!("a {kind} has no JSON form"),
                ));
            }
        }
        Ok(())
    }

    fn leaf(&mut self, text: &str, origin: &Origin) {
        match (self.follows, origin) {
            (false, _) => self.out.text.push_str(text),
            (true, Origin::Data(path)) => self.out.push(&of_data(text, path)),
            (true, origin) => self.out.push_one(
                text,
                Writer::Computed {
                    from: origin.inputs().into(),
                },
            ),
        }
    }

    fn string(&mut self, text: &str, origin: &Origin) {
        if !self.follows {
            return self.out.push_json(text);
        }
        let told = match origin {
            Origin::Text(told) if told.text == text => told.escaped(),
            Origin::Data(path) => of_data(text, path).escaped(),
            origin => Told::one(
                text,
                Writer::Computed {
                    from: origin.inputs().into(),
                },
            )
            .escaped(),
        };
        self.out.push(&told);
    }

    /// Writes the punctuation between and around values.
    fn sign(&mut self, text: &str) {
        match self.follows {
            true => self.out.push_one(text, Writer::Tag),
            false => self.out.text.push_str(text),
        }
    }

    fn list(&mut self, value: &Value, origin: &Origin, depth: usize) -> Result<(), Error> {
        let mut is_empty = true;
        for (index, element) in value.try_iter()?.enumerate() {
            self.sign(if is_empty { "[" } else { "," });
            is_empty = false;
            let origin = if self.follows {
                origin.element(index)
            } else {
                Origin::Unknown
            };
            self.write(&element, &origin, depth + 1)?;
        }
        match is_empty {
            true => self.empty("[]", origin),
            false => self.sign("]"),
        }
        Ok(())
    }

    fn object(&mut self, value: &Value, origin: &Origin, depth: usize) -> Result<(), Error> {
        let mut is_empty = true;
        for (index, key) in value.try_iter()?.enumerate() {
            let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            let mut lead = Told::unfollowed(if is_empty { "{" } else { "," });
            is_empty = false;
            lead.push_json(&name);
            lead.text.push(':');
            self.sign(&lead.text);
            let origin = if self.follows {
                origin.member(&name, || Some(index))
            } else {
                Origin::Unknown
            };
            self.write(&value.get_item(&key)?, &origin, depth + 1)?;
        }
        match is_empty {
            true => self.empty("{}", origin),
            false => self.sign("}"),
        }
        Ok(())
    }

    /// Writes an empty list or object, which counts as a leaf.
    fn empty(&mut self, text: &str, origin: &Origin) {
        match origin {
            Origin::Data(_) => self.leaf(text, origin),
            _ => self.sign(text),
        }
    }
}

fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        let fits = i64::try_from(value.clone()).is_ok() || u64::try_from(value.clone()).is_ok();
        if !fits {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                format!("the integer {value} does not fit 64 bits"),
            ));
        }
        return Ok(value.to_string());
    }
    let float = f64::try_from(value.clone())?;
    if !float.is_finite() {
        return Err(Error::new(
            ErrorKind::BadSerialization,
            format!("{float} has no JSON form"),
        ));
    }
    serde_json::to_string(&float)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Returns the error for an undefined value, whose origin is recorded with the value.
pub(super) fn undefined() -> Error {
    Error::from(ErrorKind::UndefinedError)
}

/// Returns a text argument of a function.
///
/// # Errors
///
/// Returns an error if the value is not text.
pub(super) fn text(value: &Value) -> Result<&str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None if value.is_undefined() => Err(undefined()),
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

fn exists_in(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (object, key): (&Value, &Value) = from_args(&native.arguments.values)?;
    match object.kind() {
        ValueKind::Undefined => Err(undefined()),
        _ => Ok(Tracked::plain(!object.get_attr(text(key)?)?.is_undefined())),
    }
}

/// Returns the number of elements, members or characters.
pub(super) fn length(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined()),
        kind => value.len().map(Tracked::plain).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("a {kind} has no length"),
            )
        }),
    }
}

fn filter_by_type(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, kind): (&Value, &Value) = from_args(&native.arguments.values)?;
    let kind = text(kind)?;
    filter(native, "type", |found| found == kind)
}

fn filter_skip_role(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, role): (&Value, &Value) = from_args(&native.arguments.values)?;
    let role = text(role)?;
    filter(native, "role", |found| found != role)
}

/// Keeps the elements of the first argument whose member passes a test.
fn filter(
    native: &Native<'_, '_>,
    member: &str,
    keep: impl Fn(&str) -> bool,
) -> Result<Tracked, Error> {
    let list = native.arguments.get(0);
    if list.value.is_undefined() {
        return Err(undefined());
    }
    account::list(values::breadth(&list.value))?;
    let mut kept = Vec::new();
    for (index, element) in list.value.try_iter()?.enumerate() {
        let found = element.get_attr(member)?;
        account::read(found.as_bytes().map_or(0, <[u8]>::len))?;
        if keep(found.as_str().unwrap_or_default()) {
            let origin = if native.follows {
                list.origin.element(index)
            } else {
                Origin::Unknown
            };
            kept.push(Tracked {
                value: element,
                origin,
            });
        }
    }
    Ok(Tracked::list(kept))
}

fn strip_signature_suffix(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    let text = text(value)?;
    account::make(text.len())?;
    let end = text.find("\n[Signature: ").unwrap_or(text.len());
    Ok(native.part(text, 0..end))
}

/// The rule of a wire format for the ids of tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdRule {
    /// Any string.
    Any,
    /// Any characters, from one to this many.
    AtMost(usize),
    /// One or more of `[A-Za-z0-9_-]`.
    Word,
    /// `[A-Za-z0-9]`, exactly this many.
    Alphanumeric(usize),
}

impl IdRule {
    /// Returns the id if it is valid, or else a valid replacement, which is the same for a call and
    /// its result.
    pub fn apply(self, id: &str) -> String {
        if self.fits(id) {
            id.to_owned()
        } else {
            stable_id(id)
        }
    }

    fn fits(self, id: &str) -> bool {
        match self {
            IdRule::Any => true,
            IdRule::AtMost(limit) => (1..=limit).contains(&id.chars().count()),
            IdRule::Word => {
                !id.is_empty()
                    && id
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            }
            IdRule::Alphanumeric(len) => {
                id.len() == len && id.bytes().all(|b| b.is_ascii_alphanumeric())
            }
        }
    }

    /// Returns the `tool_id` function of templates.
    pub(super) fn function(self) -> Value {
        Function::with("tool_id", move |native| {
            let (id,): (&Value,) = from_args(&native.arguments.values)?;
            let id = text(id)?;
            account::make(4 * id.len())?;
            match self.apply(id) {
                same if same == id => Ok(native.part(id, 0..id.len())),
                other => Ok(native.computed(Value::from(other))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str) -> Result<String, String> {
        crate::render::eval::render_alone(template, Dialect::Jinja)
    }

    #[test]
    fn tojson_is_compact_and_escapes_nothing_more_than_json_needs() {
        assert_eq!(
            render(r#"{{ {"b": "<&>'é\u2028", "a": [1, 1.0, none, true]} | tojson }}"#)
                .expect("renders"),
            "{\"b\":\"<&>'é\u{2028}\",\"a\":[1,1.0,null,true]}"
        );
        assert_eq!(
            render("{{ tojson(tojson({})) }}").expect("renders"),
            "\"{}\""
        );
        assert!(
            render("{{ tojson(18446744073709551616) }}")
                .expect_err("too large")
                .contains("64 bits")
        );
        assert!(
            render("{{ tojson([none.x]) }}").is_err(),
            "undefined is strict inside lists too"
        );
    }

    #[test]
    fn what_is_emitted_without_tojson_is_json_too() {
        assert_eq!(
            render("{{ true }} {{ [1, 'é', false] }} {{ {'a': none} }}").expect("renders"),
            r#"true [1,"é",false] {"a":null}"#
        );
        assert_eq!(
            render("{{ 'a\"b' }} {{ 1 }} {{ 1.5 }}").expect("renders"),
            "a\"b 1 1.5"
        );
        assert!(
            render("{{ [none.x] }}").is_err(),
            "undefined is strict inside lists too"
        );
    }

    #[test]
    fn helpers_do_what_their_names_say() {
        assert_eq!(
            render(r#"{{ length("abc") }}{{ length([1]) }}"#).expect("renders"),
            "31"
        );
        assert_eq!(
            render(r#"{{ existsIn({"a": 1}, "a") }}{{ existsIn({"a": 1}, "b") }}"#)
                .expect("renders"),
            "truefalse"
        );
        assert_eq!(
            render(r#"{{ filter_by_type([{"type": "a"}, {"type": "b"}], "b") | length }}"#)
                .expect("renders"),
            "1"
        );
        assert_eq!(
            render(r#"{{ strip_signature_suffix("t\n[Signature: x]") }}"#).expect("renders"),
            "t"
        );
        assert_eq!(
            render(r#"{{ "a" + "<cursor>" + "b" }}"#).expect("renders"),
            "a<cursor>b"
        );
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
        assert_eq!(
            IdRule::Word.apply("a b"),
            IdRule::Alphanumeric(9).apply("a b")
        );
        assert_ne!(IdRule::Word.apply(""), "");
        assert_eq!(IdRule::Any.apply("any thing"), "any thing");
    }
}
