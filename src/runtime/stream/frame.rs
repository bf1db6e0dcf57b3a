//! One frame of an answer, and limits on its size.

use crate::runtime::{Category, Error};

/// The text of one event, one line, or one whole answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// The event's name, if the framing has event names.
    pub(super) event: Option<String>,
    /// The text; usually one JSON value.
    pub(super) data: String,
    /// `true` if bytes that are not UTF-8 were replaced with U+FFFD.
    pub(super) has_replacements: bool,
}

/// Returns a frame; `None` if its text is empty.
pub(super) fn frame(event: Option<String>, data: &[u8]) -> Option<Frame> {
    let has_replacements = std::str::from_utf8(data).is_err();
    let data = String::from_utf8_lossy(data);
    let data = data.trim();
    (!data.is_empty()).then(|| Frame {
        event,
        data: data.to_owned(),
        has_replacements,
    })
}

/// Returns an error if an amount exceeds its limit.
pub(super) fn within(amount: usize, limit: usize, what: &str, unit: &str) -> Result<(), Error> {
    if amount <= limit {
        return Ok(());
    }
    Err(Error::new(
        Category::Provider,
        format!("{what} has more than {limit} {unit}"),
    ))
}
