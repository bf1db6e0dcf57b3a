//! The errors once a body is to be sent, and what a provider says of its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a request failed.
///
/// A `main` that returns it shows what [`Display`](fmt::Display) shows: so does its `Debug` form.
/// `{:#?}` has the members.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The category of failure, which says who can fix it.
    pub category: Category,
    /// One lower-case phrase for people.
    pub message: String,
    /// The provider's own words, if it said any; at most a few hundred bytes.
    pub detail: Option<String>,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// `true` if the same request may succeed later. That is more than what is tried again by
    /// itself: nothing is once an answer has begun.
    pub retryable: bool,
    /// How long the provider asks to be left alone, if it said so.
    pub retry_after: Option<Duration>,
    /// The facts that the provider gave of its answer, if it said anything: the ids to ask it
    /// about, and the model.
    pub response: Option<Arc<ResponseInfo>>,
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
    /// The time that the host gives a whole run was over:
    /// [`Session::set_run_timeout`](super::Session::set_run_timeout).
    Timeout,
}

/// The facts that a provider gives of its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseInfo {
    /// Its id of the request, from the answer's headers or its error: what its support asks for.
    pub request_id: Option<Arc<str>>,
    /// Its id of the answer.
    pub response_id: Option<Arc<str>>,
    /// The model that answered, which may be another than the one that was asked for.
    pub model: Option<Arc<str>>,
}

impl ResponseInfo {
    /// This, and what only the other one knows.
    pub(super) fn or(self, other: &ResponseInfo) -> ResponseInfo {
        ResponseInfo {
            request_id: self.request_id.or_else(|| other.request_id.clone()),
            response_id: self.response_id.or_else(|| other.response_id.clone()),
            model: self.model.or_else(|| other.model.clone()),
        }
    }
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
            Category::Timeout => "timeout",
        }
    }
}

impl Error {
    /// An error without detail that no retry can fix.
    pub fn new(category: Category, message: impl Into<String>) -> Error {
        let message = message.into();
        Error {
            category,
            message,
            detail: None,
            status: None,
            retryable: false,
            retry_after: None,
            response: None,
        }
    }

    /// With the provider's own words.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// With what is known of the answer; what is known already stays.
    #[must_use]
    pub(crate) fn with_response(mut self, info: &ResponseInfo) -> Error {
        let known = self
            .response
            .as_deref()
            .cloned()
            .unwrap_or_default()
            .or(info);
        self.response = (known != ResponseInfo::default()).then(|| Arc::new(known));
        self
    }

    /// The provider's id of the request, to ask it about.
    pub fn request_id(&self) -> Option<&str> {
        self.response.as_ref()?.request_id.as_deref()
    }

    /// The same failure, marked as one that another attempt may not meet.
    #[must_use]
    pub fn retryable(mut self) -> Error {
        self.retryable = true;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category.name(), self.message)?;
        self.detail
            .iter()
            .try_for_each(|detail| write!(f, ": {detail}"))?;
        if let Some(wish) = self.retry_after.filter(|wish| !wish.is_zero()) {
            write!(
                f,
                " (the provider asks to wait {} s before the next request)",
                wish.as_secs_f64().ceil()
            )?;
        }
        self.request_id()
            .into_iter()
            .try_for_each(|id| write!(f, " (request {id})"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let Error {
            category,
            message,
            detail,
            status,
            retryable,
            retry_after,
            response,
        } = self;
        let mut members = f.debug_struct("Error");
        members
            .field("category", category)
            .field("message", message)
            .field("detail", detail)
            .field("status", status);
        members
            .field("retryable", retryable)
            .field("retry_after", retry_after)
            .field("response", response)
            .finish()
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_returns_it_shows_a_sentence_and_a_programmer_sees_the_members() {
        let error = Error::new(Category::Config, "there is no usable agent `A`")
            .detail("did you mean `B`?");
        assert_eq!(
            format!("{error:?}"),
            "config: there is no usable agent `A`: did you mean `B`?"
        );
        let members = format!("{error:#?}");
        for member in [
            "Config",
            "there is no",
            "did you mean",
            "status: None",
            "retryable: false",
            "response: None",
        ] {
            assert!(members.contains(member), "{member}: {members}");
        }
    }
}
