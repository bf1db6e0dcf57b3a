//! What can go wrong once a body is to be sent.

use std::fmt;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// Whose business it is.
    pub category: Category,
    /// One lower-case phrase for people.
    pub message: String,
    /// The provider's own words, if it said any; at most a few hundred bytes.
    pub detail: Option<String>,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// Whose business an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The agent, its provider instance or the host's settings: nothing was sent.
    Config,
    /// The key is missing, wrong, or not allowed to do this (HTTP 401, 403).
    Auth,
    /// The connection: it could not be made, broke, or was silent for too long.
    Network,
    /// The provider: it is overloaded, failed, or broke its own protocol.
    Provider,
    /// The provider refuses the request as it is (HTTP 400, 404, 413, 422).
    Validation,
    /// The tool loop: too many rounds, or nothing to go on with.
    Tool,
}

impl Category {
    /// The stable lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Category::Config => "config",
            Category::Auth => "auth",
            Category::Network => "network",
            Category::Provider => "provider",
            Category::Validation => "validation",
            Category::Tool => "tool",
        }
    }
}

impl Error {
    /// An error without detail that no retry can mend.
    pub fn new(category: Category, message: impl Into<String>) -> Error {
        Error { category, message: message.into(), detail: None, status: None, retryable: false }
    }

    /// With the provider's own words.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// Which may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Error {
        self.retryable = true;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category.name(), self.message)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
