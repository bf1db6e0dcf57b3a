//! The transport of a request: one trait, so that a host may bring its own client.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::{Request, Response};

use crate::runtime::future::BoxFuture;

/// Sends one request and gives the head of its response, with the body as it comes: status,
/// headers, a stream of bytes.
///
/// The request is complete: its headers hold the key, marked as
/// [sensitive](http::HeaderValue::is_sensitive), and nothing else that is secret. Who implements this
///
/// - sends it once: retries, timeouts and the judgement of statuses are the
///   [`Transport`](super::Transport)'s,
/// - follows no redirect: the key would go along. A response with a status of 3xx is given back as
///   it is,
/// - shows the sensitive header to nobody, and does not keep it.
///
/// A future or a body that is dropped closes its connection: that is how requests are cancelled.
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
    /// Sends a request. Resolves when the head of the response is there.
    ///
    /// # Errors
    ///
    /// There is no response. A status that says no is a response.
    fn send(&self, request: Request<Bytes>)
    -> BoxFuture<'_, Result<Response<HttpBody>, HttpError>>;
}

/// The body of a response, as it comes.
pub struct HttpBody(Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>);

impl HttpBody {
    /// The body that a stream of pieces is.
    pub fn new(pieces: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> HttpBody {
        HttpBody(Box::pin(pieces))
    }

    /// A body whose pieces are known.
    pub fn of_pieces<I>(pieces: I) -> HttpBody
    where
        I: IntoIterator<Item = Result<Bytes, HttpError>>,
        I::IntoIter: Send + Unpin + 'static,
    {
        HttpBody::new(Pieces(pieces.into_iter()))
    }

    /// The next piece; `None` at the end.
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

/// Why there is no response, or no more of one.
#[derive(Debug)]
pub struct HttpError {
    /// The kind of failure: it decides what is tried again.
    pub kind: HttpErrorKind,
    cause: Box<dyn Error + Send + Sync>,
}

/// The subject of an [`HttpError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The client itself cannot be used. Not tried again.
    Setup,
    /// No connection could be made.
    Connect,
    /// Making the connection took too long.
    ConnectTimeout,
    /// The server was silent for too long. Not tried again: the next silence would last as long.
    Silence,
    /// The connection broke.
    Broken,
}

impl HttpError {
    /// A failure with what caused it: an error, or a phrase. It must not show the request's
    /// headers.
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
