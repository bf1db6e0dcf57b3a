//! Template refusals that have their own rules.

use minijinja::{Error, ErrorKind};

use crate::diag::Rule;

/// A refusal with its own rule, passed through the engine as the source of an error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) rule: &'static Rule,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The file to fix.
    pub(super) file: Option<Box<UnreadableFile>>,
    /// The cause, if it must be fixed elsewhere; findings with the same cause are merged.
    pub(super) cause: Option<String>,
}

/// A file of a layer that is not text.
#[derive(Debug)]
pub(super) struct UnreadableFile {
    /// The file's path in reports.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// The offset of the first invalid byte.
    pub(super) at: usize,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    pub(super) fn new(rule: &'static Rule, message: String) -> Refusal {
        Refusal {
            rule,
            message,
            help: None,
            file: None,
            cause: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::new(ErrorKind::InvalidOperation, refusal.message.clone()).with_source(refusal)
    }
}
