//! Exceptions in `reqc.toml`: `[[extension]]` entries, which apply to the servers of provider
//! instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::mistake::{Mistake, What};
use super::rules;
use crate::json::Pointer;
use crate::repo::{Extension, Instance};
use crate::source::Span;

/// An `[[extension]]` entry.
#[derive(Debug)]
pub(super) struct Allowed {
    entry: Extension,
    fields: Vec<PointerPattern>,
    /// Locations, and the values that are allowed there, as text.
    values: Vec<(PointerPattern, String)>,
    optional: Vec<PointerPattern>,
    /// `true` as soon as the entry has allowed something.
    used: AtomicBool,
}

impl Allowed {
    pub(super) fn new(entry: &Extension) -> Allowed {
        let places = |patterns: &[_]| {
            patterns
                .iter()
                .map(|pattern: &Arc<str>| PointerPattern::parse(pattern))
                .collect()
        };
        let values = entry
            .values
            .iter()
            .filter_map(|value| value.split_once('='));
        Allowed {
            fields: places(&entry.fields),
            values: values
                .map(|(place, value)| (PointerPattern::parse(place), value.to_owned()))
                .collect(),
            optional: places(&entry.optional),
            entry: entry.clone(),
            used: AtomicBool::new(false),
        }
    }

    /// Returns `true` if the entry is for an instance or for one of its ancestors.
    pub(super) fn is_for(&self, instance: &Instance) -> bool {
        instance.is_a(&self.entry.instance)
    }

    /// Returns the location of the entry if it never allowed anything.
    pub(super) fn unused(&self) -> Option<Span> {
        (!self.used.load(Ordering::Relaxed)).then_some(self.entry.span)
    }

    /// Returns `true` if the entry allows a mistake. Removes allowed names from a mistake about
    /// missing fields.
    pub(super) fn lets_pass(&self, mistake: &mut Mistake, body: &Value) -> bool {
        let at: Vec<String> = mistake.pointer.tokens().collect();
        let (used, passes) = match &mut mistake.what {
            What::Missing(names) => {
                let before = names.len();
                names.retain(|name| !self.optional.iter().any(|place| place.is_member(&at, name)));
                (names.len() < before, names.is_empty())
            }
            // An allowed field may be the one that the object requires.
            What::NoneOf { .. } => {
                let passes = self.takes_member(&at, &mistake.pointer, body);
                (passes, passes)
            }
            _ if mistake.rule == &rules::UNKNOWN_FIELD => {
                let passes = self.fields.iter().any(|place| place.is(&at));
                (passes, passes)
            }
            _ if [&rules::INVALID_VALUE, &rules::WRONG_TYPE].contains(&mistake.rule) => {
                let passes = self.takes_value(&at, &mistake.pointer, body);
                (passes, passes)
            }
            _ => (false, false),
        };
        self.used.fetch_or(used, Ordering::Relaxed);
        passes
    }

    /// Returns `true` if an object has an allowed member.
    fn takes_member(&self, at: &[String], object: &Pointer, body: &Value) -> bool {
        let object = body.pointer(object.as_str()).and_then(Value::as_object);
        object.is_some_and(|members| {
            members
                .keys()
                .any(|name| self.fields.iter().any(|place| place.is_member(at, name)))
        })
    }

    fn takes_value(&self, at: &[String], pointer: &Pointer, body: &Value) -> bool {
        let listed = self.values.iter().filter(|(place, _)| place.is(at));
        let mut listed = listed.map(|(_, value)| value).peekable();
        let Some(found) = listed.peek().and_then(|_| body.pointer(pointer.as_str())) else {
            return false;
        };
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned);
        listed.any(|value| *value == found)
    }
}

/// A pattern for locations in bodies: a JSON pointer in which `*` matches any single token.
#[derive(Debug, PartialEq, Eq)]
struct PointerPattern {
    tokens: Vec<String>,
}

impl PointerPattern {
    fn parse(pattern: &str) -> PointerPattern {
        PointerPattern {
            tokens: Pointer::parse(pattern).tokens().collect(),
        }
    }

    fn is(&self, tokens: &[String]) -> bool {
        tokens.len() == self.tokens.len()
            && self
                .tokens
                .iter()
                .zip(tokens)
                .all(|(pattern, token)| fits(pattern, token))
    }

    /// Returns `true` if the pattern matches the member `name` of the value at `tokens`.
    fn is_member(&self, tokens: &[String], name: &str) -> bool {
        let Some((last, object)) = self.tokens.split_last() else {
            return false;
        };
        fits(last, name)
            && object.len() == tokens.len()
            && object
                .iter()
                .zip(tokens)
                .all(|(pattern, token)| fits(pattern, token))
    }
}

fn fits(pattern: &str, token: &str) -> bool {
    pattern == "*" || pattern == token
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::schema::mistake::Hint;
    use crate::source::{SourceText, Sources};
    use serde_json::json;

    fn allowed() -> Allowed {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
        let file = Sources::default().add("reqc.toml", SourceText::salvage(b""));
        Allowed::new(&Extension {
            span: Span::file_start(file),
            instance: "Mine".into(),
            fields: list(&["/top_k", "/messages/*/tag"]),
            values: list(&[
                "/service_tier=batch",
                "/tools/*/type=search",
                "/max_tokens=-1",
            ]),
            optional: list(&["/model", "/messages/*/content"]),
            reason: None,
        })
    }

    #[test]
    fn values_pass_where_they_are_listed() {
        let (allowed, body) = (
            allowed(),
            json!({"service_tier": "batch", "max_tokens": -1, "tools": [{"type": "fetch"}]}),
        );
        let passes = |at: &str| {
            let mut mistake = Mistake::value(Pointer::parse(at), String::new(), Hint::None);
            allowed.lets_pass(&mut mistake, &body)
        };
        assert!(allowed.unused().is_some());
        assert!(!passes("/tools/0/type"), "another value is listed");
        assert!(!passes("/top_k"), "only the name is listed");
        assert!(allowed.unused().is_some());
        assert!(passes("/service_tier") && passes("/max_tokens"));
        assert!(allowed.unused().is_none());
    }

    #[test]
    fn optional_fields_may_be_missing_one_by_one() {
        let allowed = allowed();
        let mut mistake = Mistake::missing(Pointer::parse("/messages/3"), "content", Hint::None);
        assert!(allowed.lets_pass(&mut mistake, &json!({})));
        let missing =
            |names: &[&str]| What::Missing(names.iter().map(|name| (*name).to_owned()).collect());
        let mut mistake = Mistake::missing(Pointer::root(), "model", Hint::None);
        mistake.what = missing(&["messages", "model"]);
        assert!(!allowed.lets_pass(&mut mistake, &json!({})));
        assert_eq!(mistake.what, missing(&["messages"]));
    }

    #[test]
    fn a_field_that_is_let_pass_may_be_the_one_that_is_needed() {
        let body = json!({"messages": [{"tag": "x"}, {"other": "x"}]});
        let none_of = |at: &str| {
            let mut mistake = Mistake::value(Pointer::parse(at), String::new(), Hint::None);
            mistake.what = What::NoneOf {
                names: vec!["text".to_owned()],
                message: "it contains text".to_owned(),
            };
            mistake
        };
        let allowed = allowed();
        assert!(
            !allowed.lets_pass(&mut none_of("/messages/1"), &body),
            "another field is there"
        );
        assert!(allowed.unused().is_some());
        assert!(allowed.lets_pass(&mut none_of("/messages/0"), &body));
        assert!(allowed.unused().is_none());
    }
}
