//! Results that cost work, and how much values hold.

use serde_json::Value;

/// A result, and the units of work that it costs whoever uses it: also those that find it made
/// already, so that no account depends on which thread came first.
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

/// The memory that holds a value, a list or an object of a few members, in bytes.
pub(super) const HOLDER: usize = 64;

/// Returns about how many bytes a value holds.
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
