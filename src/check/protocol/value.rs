//! Looking into values: what several rules do.

use serde_json::Value;

/// The elements of a list; none of anything else.
pub(super) fn elements(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A member under either of the two names that Gemini reads.
pub(super) fn either<'b>(value: &'b Value, camel: &str, snake: &str) -> Option<&'b Value> {
    value.get(camel).or_else(|| value.get(snake))
}

/// Returns `true` if an object has a `type`.
pub(super) fn is_type(value: &Value, kind: &str) -> bool {
    value.get("type").is_some_and(|found| found == kind)
}
