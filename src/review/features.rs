//! Bodies as counts of their content, so that changes can be added up.
//!
//! The effects of two edits on a body are independent if the changes in counts caused by each alone
//! add up to the change caused by both. Words are counted together with the preceding word, and
//! array elements by their content, so that order matters but indices do not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The number of occurrences of each feature; in a difference, the increase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Features(HashMap<u64, i64>);

impl Features {
    /// Returns the features of a body, or no features if there is no body.
    pub(super) fn of(text: Option<&str>) -> Features {
        let mut features = Features::default();
        match text.map(serde_json::from_str::<Value>) {
            Some(Ok(value)) => features.add_value(&mut String::new(), &value),
            Some(Err(_)) => features.count(("text", text)),
            None => features.count("none"),
        }
        features
    }

    fn count(&mut self, feature: impl Hash) {
        // The hash is the same in every run, because its keys are fixed.
        let mut hasher = DefaultHasher::new();
        feature.hash(&mut hasher);
        *self.0.entry(hasher.finish()).or_default() += 1;
    }

    fn add_value(&mut self, at: &mut String, value: &Value) {
        let length = at.len();
        match value {
            Value::Object(members) => {
                let mut before = "";
                for (key, value) in members {
                    self.count(("member", &*at, before, key));
                    before = key;
                    at.push('/');
                    at.push_str(key);
                    self.add_value(at, value);
                    at.truncate(length);
                }
            }
            Value::Array(elements) => {
                let mut before = None;
                at.push_str("/*");
                for element in elements {
                    let kind = kind(element);
                    self.count(("element", &*at, &before, &kind));
                    before = kind;
                    self.add_value(at, element);
                }
                at.truncate(length);
            }
            Value::String(text) => self.add_text(at, text),
            other => self.count(("value", &*at, other.to_string())),
        }
    }

    fn add_text(&mut self, at: &str, text: &str) {
        let mut before = "";
        for word in text
            .split_inclusive(|c: char| !c.is_alphanumeric())
            .chain([""])
        {
            self.count(("word", at, before, word));
            before = word;
        }
    }

    /// Subtracts the counts of `other`.
    pub(super) fn minus(mut self, other: &Features) -> Features {
        for (feature, count) in &other.0 {
            *self.0.entry(*feature).or_default() -= count;
        }
        self.0.retain(|_, count| *count != 0);
        self
    }

    /// Adds the counts of `other`.
    pub(super) fn plus(mut self, other: &Features) -> Features {
        for (feature, count) in &other.0 {
            *self.0.entry(*feature).or_default() += count;
        }
        self.0.retain(|_, count| *count != 0);
        self
    }
}

/// Returns the value that distinguishes an array element from its neighbours.
fn kind(element: &Value) -> Option<String> {
    let members = element.as_object()?;
    let told = ["role", "type", "name", "id", "call_id", "tool_call_id"];
    let nested = members
        .get("function")
        .and_then(|function| function.get("name"));
    let known = told
        .iter()
        .filter_map(|key| members.get(*key))
        .chain(nested);
    Some(known.map(Value::to_string).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(old: &str, new: &str) -> Features {
        Features::of(Some(new)).minus(&Features::of(Some(old)))
    }

    #[test]
    fn what_is_done_at_different_places_adds_up() {
        let old = r#"{"a": 1, "t": "one two three four five six", "l": [{"role": "user"}]}"#;
        let first = r#"{"a": 2, "t": "one two three four five six", "l": [{"role": "user"}]}"#;
        let second = r#"{"a": 1, "t": "ONE two three four five six", "l": [{"role": "system"}, {"role": "user"}]}"#;
        let third = r#"{"a": 1, "t": "one two three four FIVE six", "l": [{"role": "user"}]}"#;
        let all = r#"{"a": 2, "t": "ONE two three four FIVE six", "l": [{"role": "system"}, {"role": "user"}]}"#;
        let sum = difference(old, first)
            .plus(&difference(old, second))
            .plus(&difference(old, third));
        assert_eq!(sum, difference(old, all));
        assert_ne!(
            difference(old, first).plus(&difference(old, second)),
            difference(old, all)
        );
    }

    #[test]
    fn what_meets_does_not_add_up() {
        let (old, first, second, both) = (r#""a b""#, r#""A b""#, r#""a B""#, r#""A B""#);
        assert_ne!(
            difference(old, first).plus(&difference(old, second)),
            difference(old, both)
        );
    }

    #[test]
    fn order_counts() {
        assert_ne!(
            difference(r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#),
            Features::default()
        );
        assert_ne!(
            difference(r#""a b c d""#, r#""a c b d""#),
            Features::default()
        );
        assert_ne!(
            difference(
                r#"[{"role": "x"}, {"role": "y"}]"#,
                r#"[{"role": "y"}, {"role": "x"}]"#
            ),
            Features::default()
        );
    }
}
