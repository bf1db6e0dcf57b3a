//! Why a schema cannot be used.

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Where in the document, as a JSON pointer.
    pub(super) at: String,
    /// One lower-case phrase.
    pub(super) message: String,
    /// The next step.
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
