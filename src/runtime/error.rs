//! Errors in sending a request, and a provider's metadata about its response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The error of a failed request.
///
/// If `main` returns this error, its [`Display`](fmt::Display) form is printed, because the `Debug`
/// form is the same. `{:#?}` prints the fields.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The category, which indicates who can fix the error.
    pub category: Category,
    /// The message for users: one phrase that begins in lower case.
    pub message: String,
    /// The provider's own message, if any; at most a few hundred bytes.
    pub detail: Option<String>,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// `true` if the same request may succeed later. Not every such request is retried
    /// automatically: once an answer has begun, its request is never retried.
    pub retryable: bool,
    /// The delay that the provider asks for before a retry, if any.
    pub retry_after: Option<Duration>,
    /// The provider's metadata about its response, if any: the IDs that its support needs, and the
    /// model.
    pub response: Option<Arc<ResponseInfo>>,
}

/// The category of an [`Error`], by the party that can fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The agent, its provider instance or the host's settings are wrong. Nothing was sent.
    Config,
    /// The key is missing, invalid, or lacks permission (HTTP 401, 403).
    Auth,
    /// The connection failed, was interrupted, or was silent for too long.
    Network,
    /// The provider is overloaded, failed, or violated its own protocol.
    Provider,
    /// The provider rejected the request as invalid (HTTP 400, 404, 413, 422).
    Validation,
    /// The tool loop reached its round limit, or there was nothing to continue with.
    Tool,
    /// The host's time limit for a whole run was exceeded:
    /// [`Session::set_run_timeout`](super::Session::set_run_timeout).
    Timeout,
}

/// A provider's metadata about its response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseInfo {
    /// The provider's ID for the request, from the headers or the error. The provider's support
    /// needs it.
    pub request_id: Option<Arc<str>>,
    /// The provider's ID for the answer.
    pub response_id: Option<Arc<str>>,
    /// The model that produced the answer, which may differ from the requested one.
    pub model: Option<Arc<str>>,
}

impl ResponseInfo {
    /// Returns this metadata, with missing values taken from another response.
    pub(super) fn or(self, other: &ResponseInfo) -> ResponseInfo {
        ResponseInfo {
            request_id: self.request_id.or_else(|| other.request_id.clone()),
            response_id: self.response_id.or_else(|| other.response_id.clone()),
            model: self.model.or_else(|| other.model.clone()),
        }
    }
}

impl Category {
    /// Returns the category's stable lower-case name.
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
    /// Returns an error without detail that cannot be retried.
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

    /// Adds the provider's own message.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// Adds metadata about the response; values that are already set are kept.
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

    /// Returns the provider's ID for the request, which its support needs.
    pub fn request_id(&self) -> Option<&str> {
        self.response.as_ref()?.request_id.as_deref()
    }

    /// Marks the error as one that a retry may resolve.
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
