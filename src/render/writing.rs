//! Writes values: as text where a template emits them, and as JSON.

use minijinja::value::{Rest, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::account::{self, MAX_OUTPUT, TOO_LARGE};
use super::rope::{Rope, Writer};
use super::tracked::{Native, Origin, Tracked};
use super::values::{named, number, undefined};

/// Writes a value that a template emits. Booleans, lists and maps become JSON, as in inja, because
/// the engine's own `True` and `{'a': 1}` are useless in a request.
///
/// # Errors
///
/// Returns an error if the value is undefined or too large.
pub(super) fn emitted(value: &Tracked) -> Result<Rope, Error> {
    match value.value.kind() {
        ValueKind::Bool | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let rope = json(value)?;
            account::make(rope.text.len())?;
            Ok(rope)
        }
        ValueKind::Undefined if value.is_nothing() => Ok(Rope::default()),
        ValueKind::Undefined => Err(undefined()),
        _ => Ok(value.rope(&value.value.to_string())),
    }
}

/// Charges for writing a string.
///
/// # Errors
///
/// Returns an error if the string is too large, or if the cost exceeds the limit.
pub(super) fn charge_text(text: &str) -> Result<(), Error> {
    account::make(within_limit(text)?.len())
}

/// Rejects a string that exceeds the limit on the whole output. A captured string has not been
/// written yet, and could keep growing.
fn within_limit(text: &str) -> Result<&str, Error> {
    match text.len() > MAX_OUTPUT {
        true => Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE)),
        false => Ok(text),
    }
}

/// Writes compact JSON, escaping only what JSON requires. Indentation arguments are rejected rather
/// than ignored.
pub(super) fn tojson(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, rest): (&Value, Rest<Value>) = from_args(&native.arguments.values)?;
    match rest.is_empty() {
        true => json(&native.arguments.get(0)).map(Tracked::text),
        false => Err(Error::new(
            ErrorKind::TooManyArguments,
            "`tojson` accepts only one argument; its output is always compact",
        )),
    }
}

/// Returns a value as compact JSON.
///
/// # Errors
///
/// Returns an error for undefined values, integers beyond 64 bits, and values without a JSON form.
pub(super) fn to_json(value: &Value) -> Result<String, Error> {
    json(&Tracked::plain(value.clone())).map(|rope| rope.text)
}

/// Returns a value as compact JSON, with its writers.
fn json(value: &Tracked) -> Result<Rope, Error> {
    let mut out = JsonWriter(Rope::default());
    out.write(value, 0)?;
    account::make(2 * out.0.text.len())?;
    Ok(out.0)
}

/// A JSON writer for values.
struct JsonWriter(Rope);

impl JsonWriter {
    fn write(&mut self, value: &Tracked, depth: usize) -> Result<(), Error> {
        if self.0.text.len() > MAX_OUTPUT {
            return Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE));
        }
        if depth > crate::json::MAX_DEPTH {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                "the value is nested too deeply",
            ));
        }
        match value.value.kind() {
            ValueKind::Undefined => return Err(undefined()),
            ValueKind::None => self.leaf("null", value),
            ValueKind::Bool => {
                let text = if value.value.is_true() {
                    "true"
                } else {
                    "false"
                };
                self.leaf(text, value);
            }
            ValueKind::Number => self.leaf(&number(&value.value)?, value),
            ValueKind::String => {
                let text = value.value.as_str().unwrap_or_default();
                self.0.push_json(value.with_runs(text).slice());
            }
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.object(value, depth)?,
            kind => {
                return Err(Error::new(
                    ErrorKind::BadSerialization,
                    format!("JSON cannot represent {}", named(kind)),
                ));
            }
        }
        Ok(())
    }

    fn leaf(&mut self, text: &str, value: &Tracked) {
        self.0.push(value.with_runs(text).slice());
    }

    /// Writes the punctuation between and around values.
    fn sign(&mut self, text: &str) {
        self.0.push_one(text, Writer::Tag);
    }

    fn list(&mut self, list: &Tracked, depth: usize) -> Result<(), Error> {
        let mut is_empty = true;
        for (index, value) in list.value.try_iter()?.enumerate() {
            self.sign(if is_empty { "[" } else { "," });
            is_empty = false;
            let origin = list.origin.element(index);
            self.write(&Tracked { value, origin }, depth + 1)?;
        }
        match is_empty {
            true => self.empty("[]", &list.origin),
            false => self.sign("]"),
        }
        Ok(())
    }

    fn object(&mut self, object: &Tracked, depth: usize) -> Result<(), Error> {
        let mut is_empty = true;
        for (index, key) in object.value.try_iter()?.enumerate() {
            let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            let json = serde_json::to_string(&name).expect("a string serialises into memory");
            let lead = if is_empty { "{" } else { "," };
            is_empty = false;
            self.sign(&[lead, &json, ":"].concat());
            let origin = object.origin.member(&name, || Some(index));
            let value = object.value.get_item(&key)?;
            self.write(&Tracked { value, origin }, depth + 1)?;
        }
        match is_empty {
            true => self.empty("{}", &object.origin),
            false => self.sign("}"),
        }
        Ok(())
    }

    /// Writes an empty list or object, which can be a data value.
    fn empty(&mut self, text: &str, origin: &Origin) {
        let writer = match origin {
            Origin::Data(path) => Writer::Data {
                path: path.clone(),
                at: 0,
            },
            _ => Writer::Tag,
        };
        self.0.push_one(text, writer);
    }
}

#[cfg(test)]
mod tests {
    use crate::repo::Dialect;

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
}
