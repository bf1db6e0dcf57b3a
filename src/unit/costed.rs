//! Results with their cost in work, and the sizes of values.

use serde_json::Value;

/// A result, with the units of work that are charged to each of its users. Users that find the
/// result already computed are charged as well, so that the cost does not depend on which thread
/// came first.
#[derive(Debug, Clone)]
pub(crate) struct Costed<T> {
    pub(crate) result: T,
    pub(crate) cost: u64,
}

impl<T> Costed<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Costed<U> {
        Costed {
            result: change(self.result),
            cost: self.cost,
        }
    }
}

/// The memory overhead of a value, or of a list or object with a few members, in bytes.
pub(super) const HOLDER: usize = 64;

/// Returns the approximate size of a value in bytes.
pub(super) fn weight(value: &Value) -> usize {
    HOLDER
        + match value {
            Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(weight).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| key.len() + weight(value))
                .sum(),
            _ => 0,
        }
}
