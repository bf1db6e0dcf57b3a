//! Reasons why schemas cannot be used.

/// The reason a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The location in the document, as a JSON pointer.
    pub(super) at: String,
    /// The message: one lower-case phrase.
    pub(super) message: String,
    /// Advice on how to fix the schema.
    pub(super) help: Option<String>,
}

impl Refusal {
    pub(super) fn new(at: &str, message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal {
            at: at.to_owned(),
            message: message.into(),
            help: Some(help.into()),
        }
    }
}
