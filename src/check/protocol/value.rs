//! Functions for reading values, shared by several rules.

use serde_json::Value;

/// Returns the elements in a list; an empty slice for any other value.
pub(super) fn elements(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns a member by either of the two names that Gemini accepts.
pub(super) fn either<'b>(value: &'b Value, camel: &str, snake: &str) -> Option<&'b Value> {
    value.get(camel).or_else(|| value.get(snake))
}

/// Returns `true` if an object's `type` is `kind`.
pub(super) fn is_type(value: &Value, kind: &str) -> bool {
    value.get("type").is_some_and(|found| found == kind)
}
