//! The `reqwest` clients: those that the runtime creates on first use, and one that a host may
//! configure.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::{Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::http::{HttpBody, HttpClient, HttpError, HttpErrorKind};
use super::{TransportOptions, cause};
use crate::provider::is_loopback;
use crate::runtime::future::BoxFuture;
use crate::runtime::{Category, Error};

/// A transport's clients: one each for this machine and for other hosts, with and without TLS.
pub(super) struct Clients {
    options: TransportOptions,
    made: [OnceLock<Result<Client, Error>>; 4],
}

impl Clients {
    pub(super) fn new(options: &TransportOptions) -> Clients {
        Clients {
            options: options.clone(),
            made: Default::default(),
        }
    }

    /// Returns the client for a URL.
    pub(super) fn get(&self, url: &http::Uri) -> Result<&Client, HttpError> {
        let (near, tls) = (
            url.host().is_some_and(is_loopback),
            url.scheme_str() != Some("http"),
        );
        let client = &self.made[usize::from(near) * 2 + usize::from(tls)];
        let made = client.get_or_init(|| self.make(near, tls)).as_ref();
        made.map_err(|error| HttpError::new(HttpErrorKind::Setup, error.clone()))
    }

    /// Creates a client. Proxies are not used for this machine. Without TLS, no certificates are
    /// loaded, because a minimal container may have none.
    fn make(&self, near: bool, tls: bool) -> Result<Client, Error> {
        let builder = Client::builder()
            .connect_timeout(self.options.connect_timeout)
            .read_timeout(self.options.idle_timeout);
        let builder = if near { builder.no_proxy() } else { builder };
        let builder = if tls {
            builder
        } else {
            builder.tls_certs_only([])
        };
        build(builder)
    }
}

impl HttpClient for Clients {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<HttpBody>, HttpError>> {
        Box::pin(async move { send(self.get(request.uri())?, request).await })
    }
}

/// A `reqwest` client that the host configures, with its own proxies, certificates, timeouts and
/// pool. It never follows redirects, regardless of its builder, so that no key is sent to another
/// host.
#[derive(Debug, Clone)]
pub struct ReqwestClient(Client);

impl ReqwestClient {
    /// Builds the client from a builder
    /// ([`reqwest::Client::builder`](crate::runtime::client::reqwest::Client::builder)). The
    /// builder's proxies are also used for this machine.
    ///
    /// # Errors
    ///
    /// Returns an error if the client cannot be built.
    pub fn new(builder: ClientBuilder) -> Result<ReqwestClient, Error> {
        build(builder).map(ReqwestClient)
    }

    /// Returns the inner client, which the host can use to send its own requests over the same
    /// connections.
    pub fn client(&self) -> &Client {
        &self.0
    }
}

impl HttpClient for ReqwestClient {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<HttpBody>, HttpError>> {
        Box::pin(send(&self.0, request))
    }
}

fn build(builder: ClientBuilder) -> Result<Client, Error> {
    // If another part of the program has already installed a provider, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    builder.redirect(Policy::none()).build().map_err(|error| {
        Error::new(Category::Config, "the HTTP client cannot be set up").detail(cause(&error))
    })
}

async fn send(client: &Client, request: Request<Bytes>) -> Result<Response<HttpBody>, HttpError> {
    let response = client.execute(request.try_into()?).await?;
    let (status, version, headers) = (
        response.status(),
        response.version(),
        response.headers().clone(),
    );
    let mut answer = Response::new(HttpBody::new(Pieces(Box::pin(response.bytes_stream()))));
    (
        *answer.status_mut(),
        *answer.version_mut(),
        *answer.headers_mut(),
    ) = (status, version, headers);
    Ok(answer)
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> HttpError {
        let kind = match (error.is_connect(), error.is_timeout()) {
            (true, true) => HttpErrorKind::ConnectTimeout,
            (true, false) => HttpErrorKind::Connect,
            (false, true) => HttpErrorKind::Silence,
            (false, false) => HttpErrorKind::Broken,
        };
        HttpError::new(kind, error.without_url())
    }
}

/// The body of a `reqwest` response, with its errors converted to ours.
struct Pieces<S>(Pin<Box<S>>);

impl<S: Stream<Item = reqwest::Result<Bytes>>> Stream for Pieces<S> {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0
            .as_mut()
            .poll_next(context)
            .map(|piece| piece.map(|bytes| bytes.map_err(HttpError::from)))
    }
}
