//! Reads JSON members in the forms found in logs.

use serde_json::Value;

/// Returns a member that is a string.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// Returns `true` if a member is a non-empty string.
pub(super) fn holds(value: &Value, name: &str) -> bool {
    text(value, name).is_some_and(|text| !text.is_empty())
}

/// The maximum number of tokens in an answer. A larger number is not a token count, and sums of
/// such numbers could overflow.
const MOST_TOKENS: u64 = 1 << 40;

/// Returns the first token count that is found at one of these JSON pointers.
pub(super) fn count(value: &Value, places: &[&str]) -> Option<u64> {
    places
        .iter()
        .filter_map(|at| value.pointer(at)?.as_u64())
        .find(|count| *count <= MOST_TOKENS)
}
