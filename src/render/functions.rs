//! Functions for bodies, and the list of all functions that templates in a dialect may call.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, Value};

use super::builtins::{FUNCTIONS, lists};
use super::objects::{Apply, Function};
use super::tracked::{Native, Tracked};
use super::values::{text, undefined};
use super::writing::tojson;
use super::{account, inja, values};
use crate::repo::Dialect;
use crate::text::stable_id;

/// The functions for bodies and partials, in addition to those for all templates.
pub(super) const BODY_FUNCTIONS: [&str; 7] = [
    "tojson",
    "existsIn",
    "length",
    "filter_by_type",
    "filter_skip_role",
    "strip_signature_suffix",
    "tool_id",
];

/// Functions for bodies, except `tool_id`, which depends on the wire format.
const OF_BODIES: [(&str, Apply); 6] = [
    ("tojson", tojson),
    ("existsIn", exists_in),
    ("length", lists::length),
    ("filter_by_type", filter_by_type),
    ("filter_skip_role", filter_skip_role),
    ("strip_signature_suffix", strip_signature_suffix),
];

/// Returns the functions that templates in a dialect may call, by name.
pub(super) fn globals(dialect: Dialect) -> Vec<(&'static str, Value)> {
    let of_inja = inja::functions().filter(|_| dialect == Dialect::Inja);
    let of_all = FUNCTIONS
        .into_iter()
        .chain(OF_BODIES)
        .map(|(name, apply)| (name, Function::of(name, apply)));
    of_all.chain(of_inja).collect()
}

fn exists_in(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (object, key): (&Value, &Value) = from_args(&native.arguments.values)?;
    match object.kind() {
        ValueKind::Undefined => Err(undefined()),
        _ => Ok(Tracked::plain(!object.get_attr(text(key)?)?.is_undefined())),
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
            kept.push(Tracked {
                value: element,
                origin: list.origin.element(index),
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

/// A wire format's rule for tool-call IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdRule {
    /// Any string.
    Any,
    /// One to this many characters of any kind.
    AtMost(usize),
    /// One or more of `[A-Za-z0-9_-]`.
    Word,
    /// Exactly this many of `[A-Za-z0-9]`.
    Alphanumeric(usize),
}

impl IdRule {
    /// Returns the ID if it is valid, or else a valid replacement, which is the same for a call and
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

    /// Returns the `tool_id` function for templates.
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
