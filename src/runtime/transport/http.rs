//! A trait for sending requests, which a host can implement to provide its own HTTP client.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::{Request, Response};

use crate::runtime::future::BoxFuture;

/// Sends one request. Returns the status and headers of the response, and its body as a stream of
/// bytes.
///
/// The request is complete: its headers contain the key, marked as
/// [sensitive](http::HeaderValue::is_sensitive), and no other secret. An implementation
///
/// - sends it once: retries, timeouts and the interpretation of statuses are up to the
///   [`Transport`](super::Transport),
/// - follows no redirect, because the key would be sent along, but returns a response with a 3xx
///   status unchanged,
/// - neither reveals nor stores the sensitive header.
///
/// Dropping a future or a body closes its connection, which is how requests are cancelled.
///
/// ```
/// use reqc::runtime::tools::BoxFuture;
/// use reqc::runtime::client::{Bytes, HttpBody, HttpClient, HttpError, http};
///
/// /// Answers everything with the same words.
/// struct Canned(&'static str);
///
/// impl HttpClient for Canned {
///     fn send(&self, _: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
///         Box::pin(async { Ok(http::Response::new(self.0.into())) })
///     }
/// }
/// ```
pub trait HttpClient: Send + Sync {
    /// Sends a request. Completes when the head of the response arrives.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no response. A response with an error status is not an error.
    fn send(&self, request: Request<Bytes>)
    -> BoxFuture<'_, Result<Response<HttpBody>, HttpError>>;
}

/// The body of a response, as a stream.
pub struct HttpBody(Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>);

impl HttpBody {
    /// Returns the body for a stream of pieces.
    pub fn new(pieces: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> HttpBody {
        HttpBody(Box::pin(pieces))
    }

    /// Returns a body that consists of known pieces.
    pub fn of_pieces<I>(pieces: I) -> HttpBody
    where
        I: IntoIterator<Item = Result<Bytes, HttpError>>,
        I::IntoIter: Send + Unpin + 'static,
    {
        HttpBody::new(Pieces(pieces.into_iter()))
    }

    /// Returns the next piece; `None` at the end.
    pub(in crate::runtime) async fn piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        std::future::poll_fn(|context| self.0.as_mut().poll_next(context))
            .await
            .transpose()
    }
}

impl<T: Into<Bytes>> From<T> for HttpBody {
    fn from(whole: T) -> HttpBody {
        HttpBody::of_pieces(std::iter::once(Ok(whole.into())).collect::<Vec<_>>())
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}

struct Pieces<I>(I);

impl<I: Iterator<Item = Result<Bytes, HttpError>> + Unpin> Stream for Pieces<I> {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

/// The reason a response is missing or was interrupted.
#[derive(Debug)]
pub struct HttpError {
    /// The kind of error, which determines whether the request is retried.
    pub kind: HttpErrorKind,
    cause: Box<dyn Error + Send + Sync>,
}

/// The kind of an [`HttpError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The client itself cannot be used. Not retried.
    Setup,
    /// No connection could be made.
    Connect,
    /// Connecting took too long.
    ConnectTimeout,
    /// The server was idle for too long. Not retried, because another attempt would take as long.
    Silence,
    /// The connection was interrupted.
    Broken,
}

impl HttpError {
    /// Returns an error with its cause, which is an error or a phrase. The cause must not reveal
    /// the request's headers.
    pub fn new(kind: HttpErrorKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> HttpError {
        HttpError {
            kind,
            cause: cause.into(),
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
