//! Access to JSON members as they occur in logs.

use serde_json::Value;

/// Returns a member that is a string.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// Returns `true` if a member is a string that is not empty.
pub(super) fn holds(value: &Value, name: &str) -> bool {
    text(value, name).is_some_and(|text| !text.is_empty())
}

/// Returns the first number found at some places.
pub(super) fn count(value: &Value, places: &[&str]) -> Option<u64> {
    places.iter().find_map(|at| value.pointer(at)?.as_u64())
}
