//! HTTP: sends a compiled request, and returns a response that has begun, or the reason there is
//! none.
//!
//! Requests are retried here, but only before the first byte of an answer. Redirects are not
//! followed, because the key would be sent along.

mod backoff;
mod http;
mod client;

use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue as HttpValue, Request, Response};
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};

use super::failure;
use super::redact::Redactor;
use super::secret::Secrets;
use super::stream::Limits;
use super::{Category, Error, ResponseInfo};
use crate::provider::{Header, HeaderValue, RequestLine, UrlParts, is_loopback};
use crate::repo::SecretRef;
use crate::world::Clock;
pub(super) use backoff::Backoff;
pub use backoff::RetryPolicy;
use client::Clients;
pub use client::ReqwestClient;
pub use http::{HttpBody, HttpClient, HttpError, HttpErrorKind};

/// The time limits, size limits and retry policy of a [`Transport`].
#[derive(Debug, Clone, PartialEq)]
pub struct TransportOptions {
    /// The time limit for establishing a connection.
    pub connect_timeout: Duration,
    /// The maximum time for which a server may be idle, both before and within the answer. Before
    /// the answer, interim responses (1xx) count as idle time; within the answer, comments and
    /// blank lines do.
    pub idle_timeout: Duration,
    /// The time limit for one answer, from its first byte to its last.
    pub answer_timeout: Duration,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The size limits of an answer.
    pub limits: Limits,
}

impl Default for TransportOptions {
    /// Returns ten seconds for connecting, five minutes of idle time, which thinking models need,
    /// and two hours for an answer.
    fn default() -> TransportOptions {
        TransportOptions {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(5),
            answer_timeout: Duration::from_hours(2),
            retry: RetryPolicy::default(),
            limits: Limits::default(),
        }
    }
}

/// A request that can be sent.
pub(super) trait Outgoing: Send + Sync {
    /// Returns the method, URL and headers.
    fn line(&self) -> &RequestLine;

    /// Returns the provider instance's name.
    fn instance(&self) -> &str;

    /// Returns the body, which may be empty.
    fn body(&self) -> Bytes;

    /// Returns the URL for display, without credentials and query.
    fn address(&self) -> String {
        UrlParts::of(&self.line().url).to_string()
    }
}

/// Sends requests. Sessions that share a transport share its connections.
#[derive(Clone)]
pub struct Transport {
    client: Arc<dyn HttpClient>,
    /// The transport's own clients, which also connect to MCP servers.
    own: Arc<Clients>,
    secrets: Arc<dyn Secrets>,
    /// A redactor for every key that was sent.
    redactor: Arc<Mutex<Redactor>>,
    clock: Option<Arc<dyn Clock>>,
    pub(super) options: TransportOptions,
}

/// An error before the first byte of an answer, with the delay that the server asks for, if any.
pub(super) struct Refused {
    pub(super) error: Error,
    /// `true` if a retry is worthwhile: it may succeed, and if not, it fails quickly.
    pub(super) again: bool,
    pub(super) retry_after: Option<Duration>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused {
            again: error.retryable,
            error,
            retry_after: None,
        }
    }
}

impl Refused {
    /// Returns the error for a server that was idle for too long. It is not retried, because
    /// another attempt would take as long.
    fn after_silence(error: Error) -> Refused {
        Refused {
            again: false,
            ..error.retryable().into()
        }
    }
}

/// The maximum number of bytes that are read of an error's body.
const ERROR_BYTES: usize = 64 * 1024;

/// The time limit for reading an error's body.
const ERROR_TIME: Duration = Duration::from_secs(10);

impl Transport {
    /// Returns a transport that reads keys from `secrets`. Proxies are configured by `HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, but are never used for this machine itself. The
    /// system's certificates are used; on Linux, `SSL_CERT_FILE` and `SSL_CERT_DIR` override them.
    pub fn new(secrets: Arc<dyn Secrets>, options: TransportOptions) -> Transport {
        let own = Arc::new(Clients::new(&options));
        let client = Arc::clone(&own) as Arc<dyn HttpClient>;
        Transport {
            client,
            own,
            secrets,
            redactor: Arc::default(),
            clock: None,
            options,
        }
    }

    /// Returns the time in seconds since 1970; `None` without a clock.
    pub(super) fn now(&self) -> Option<u64> {
        let now = self.clock.as_deref()?.now();
        now.duration_since(std::time::UNIX_EPOCH)
            .ok()
            .map(|since| since.as_secs())
    }

    /// Sets a clock. It is used to check whether audio answers in the history have expired, and to
    /// compute the delay if `Retry-After` is a date and the response has no `Date` header. Without
    /// a clock, such a delay is ignored.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Transport {
        self.clock = Some(clock);
        self
    }

    /// Replaces the transport's own client with one from the host: a [`ReqwestClient`] that the
    /// host configures, or any other implementation, for example in memory. Retries and the limits
    /// of time and size still apply, except for the connection timeout, which is up to the client.
    /// As always, permission for requests must be checked beforehand: see [`trust`](super::trust).
    /// MCP servers are still accessed with the transport's own clients.
    #[must_use]
    pub fn with_client(mut self, client: Arc<dyn HttpClient>) -> Transport {
        self.client = client;
        self
    }

    /// Returns a redactor for every key sent so far.
    pub(super) fn redactor(&self) -> Redactor {
        self.redactor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn remember(&self, key: &SecretString) {
        let mut redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        *redactor = redactor.with(key.expose_secret());
    }

    /// Makes one attempt. Completes when the head of a successful answer arrives.
    pub(super) async fn attempt(
        &self,
        request: &dyn Outgoing,
    ) -> Result<Response<HttpBody>, Refused> {
        let http = self.http(request).await?;
        let answer = self.execute(http, request).await;
        answer.map_err(|refused| Refused {
            error: self.redactor().error(refused.error),
            ..refused
        })
    }

    async fn execute(
        &self,
        http: Request<Bytes>,
        request: &dyn Outgoing,
    ) -> Result<Response<HttpBody>, Refused> {
        let patience = self.options.connect_timeout + self.options.idle_timeout;
        let sent = tokio::time::timeout(patience, self.client.send(http)).await;
        let sent = sent.map_err(|_| Refused::after_silence(no_answer(request)))?;
        let response = sent.map_err(|error| network(&error, request))?;
        let info = named(response.headers());
        let status = response.status().as_u16();
        if status == 204 {
            let error = Error::new(Category::Provider, "the answer is empty (HTTP 204)");
            return Err(Refused::after_silence(error.with_response(&info)));
        }
        let is_page =
            content_type(response.headers()).is_some_and(|kind| kind.starts_with("text/html"));
        if response.status().is_success() && !is_page {
            if let Some(coding) = coding(response.headers()) {
                let message = format!(
                    "the answer of {} is encoded as {coding}, which the request did not ask for",
                    place(request)
                );
                return Err(Error::new(Category::Provider, message)
                    .with_response(&info)
                    .into());
            }
            return Ok(response);
        }
        if response.status().is_redirection() {
            return Err(redirected(&response).with_response(&info).into());
        }
        let refused = self.refused(response, status, request).await;
        Err(Refused {
            error: refused.error.with_response(&info),
            ..refused
        })
    }

    async fn refused(
        &self,
        mut response: Response<HttpBody>,
        status: u16,
        request: &dyn Outgoing,
    ) -> Refused {
        let headers = response.headers();
        let retry_after = backoff::retry_after(headers, self.clock.as_deref());
        let coding = coding(headers);
        let wish = should_retry(headers);
        let kind = content_type(headers).map(str::to_owned);
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(bytes)) = response.body_mut().piece().await {
                let room = ERROR_BYTES - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if body.len() == ERROR_BYTES {
                    break;
                }
            }
        };
        // If reading the error's body fails, use the part that was read.
        let _ = tokio::time::timeout(ERROR_TIME, read).await;
        let mut error = failure::from_status(status, kind.as_deref(), &body);
        // If the response is a web page or the endpoint is unknown, the URL may be wrong.
        if matches!(status, 200..300 | 404 | 405) {
            error.message.push_str(&format!(" at {}", place(request)));
        }
        if let Some(coding) = coding {
            error.detail = Some(format!(
                "its error message is encoded as {coding}, which the request did not ask for"
            ));
        }
        let retry_after = retry_after.or_else(|| backoff::delay(&failure::retry_delay(&body)?));
        error.retryable = wish.unwrap_or(error.retryable);
        Refused {
            again: error.retryable,
            error,
            retry_after,
        }
    }

    /// Returns the request with its key.
    async fn http(&self, request: &dyn Outgoing) -> Result<Request<Bytes>, Error> {
        let address = request.address();
        let url = reqwest::Url::parse(&request.line().url)
            .map_err(|error| config(format!("`{address}` is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(config(format!(
                "`{address}` must begin with http:// or https://"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(config(format!(
                "the URL of `{address}` contains credentials: put the key in `api_key_ref`"
            )));
        }
        let mut http = Request::new(request.body());
        *http.method_mut() = request
            .line()
            .method
            .parse()
            .map_err(|_| config("the method is invalid".into()))?;
        *http.uri_mut() = url
            .as_str()
            .parse()
            .map_err(|error| config(format!("`{address}` is not a URL: {error}")))?;
        *http.headers_mut() = self.headers(&request.line().headers).await?;
        http.headers_mut()
            .entry(USER_AGENT)
            .or_insert(HttpValue::from_static(OWN_NAME));
        Ok(http)
    }

    /// Returns the client for a URL, and the headers with their key.
    pub(super) async fn client_of(
        &self,
        url: &str,
        headers: &[Header],
    ) -> Result<(reqwest::Client, HeaderMap), Error> {
        let parsed = reqwest::Url::parse(url).map_err(|error| no_url(url, &error))?;
        let uri = parsed
            .as_str()
            .parse()
            .map_err(|error: ::http::uri::InvalidUri| no_url(url, &error))?;
        let client = self.own.get(&uri).map_err(|error| unusable(&error))?;
        Ok((client.clone(), self.headers(headers).await?))
    }

    async fn headers(&self, headers: &[Header]) -> Result<HeaderMap, Error> {
        let mut map = HeaderMap::with_capacity(headers.len());
        for header in headers {
            let name =
                HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| illegal(header))?;
            map.insert(
                name,
                self.value(&header.value)
                    .await?
                    .ok_or_else(|| illegal(header))?,
            );
        }
        Ok(map)
    }

    /// Reads a key. This may block, so it runs on a separate thread.
    async fn key(&self, reference: SecretRef) -> Result<SecretString, Error> {
        let secrets = Arc::clone(&self.secrets);
        let read = tokio::task::spawn_blocking(move || secrets.read(&reference)).await;
        Ok(read.map_err(|_| Error::new(Category::Auth, "looking up the key panicked"))??)
    }

    /// Returns a header's value, including the key if it contains one; `None` if the value contains
    /// characters that headers must not contain.
    async fn value(&self, value: &HeaderValue) -> Result<Option<HttpValue>, Error> {
        match value {
            HeaderValue::Plain(text) => Ok(HttpValue::from_str(text).ok()),
            HeaderValue::Key { prefix, key } => {
                let key = self.key(key.clone()).await?;
                let mut value =
                    HttpValue::from_str(&format!("{prefix}{}", key.expose_secret())).ok();
                value.iter_mut().for_each(|value| value.set_sensitive(true));
                self.remember(&key);
                Ok(value)
            }
        }
    }
}

fn config(message: String) -> Error {
    Error::new(Category::Config, message)
}

fn no_url(url: &str, error: &dyn std::fmt::Display) -> Error {
    config(format!("`{url}` is not a URL: {error}"))
}

fn illegal(header: &Header) -> Error {
    config(format!("`{}` is not a valid header", header.name))
}

/// The name of this program in requests, unless the agent sets a different one.
const OWN_NAME: &str = concat!("reqc/", env!("CARGO_PKG_VERSION"));

/// Returns the media type of an answer.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

/// Returns the content coding of a body, if there is one. Requests ask for no coding, and a client
/// that decodes the body removes the header.
fn coding(headers: &HeaderMap) -> Option<String> {
    let coding = failure::snippet(headers.get(CONTENT_ENCODING)?.as_bytes());
    let is_none = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    (!is_none).then(|| format!("`content-encoding: {coding}`"))
}

/// Returns the provider's ID for a request, from one of these headers: Anthropic's `request-id`;
/// `x-request-id` of OpenAI and most others; the specific headers of Azure, Amazon, Google,
/// Mistral, OpenRouter, `DeepSeek` and `LiteLLM`.
pub(super) fn named(headers: &HeaderMap) -> ResponseInfo {
    const NAMES: [&str; 10] = [
        "request-id",
        "x-request-id",
        "apim-request-id",
        "x-amzn-requestid",
        "x-goog-request-id",
        "mistral-correlation-id",
        "x-generation-id",
        "x-ds-trace-id",
        "x-litellm-call-id",
        "cf-ray",
    ];
    let request_id = NAMES
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .find_map(failure::id);
    ResponseInfo {
        request_id,
        ..ResponseInfo::default()
    }
}

/// Returns the server's explicit advice on retrying, which overrides the status.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn redirected<B>(response: &Response<B>) -> Error {
    let target = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("nowhere");
    let message = format!(
        "the server redirects to {}",
        failure::snippet(target.as_bytes())
    );
    let mut error = Error::new(Category::Config, message)
        .detail("set the provider instance's `url` to the new address");
    error.status = Some(response.status().as_u16());
    error
}

/// Returns the destination of a request, for error messages.
fn place(request: &dyn Outgoing) -> String {
    format!(
        "{} (provider instance `{}`)",
        request.address(),
        request.instance()
    )
}

/// Returns the error for a server that keeps sending data but never begins an answer.
fn no_answer(request: &dyn Outgoing) -> Error {
    Error::new(
        Category::Network,
        format!("{} did not start to answer in time", place(request)),
    )
}

/// Returns the error for an answer that does not end.
pub(super) fn endless(request: &dyn Outgoing, limit: Duration) -> Error {
    let message = format!(
        "the answer of {} did not finish within {} seconds",
        place(request),
        limit.as_secs()
    );
    Error::new(Category::Network, message).retryable()
}

/// Returns the error for a connection that failed before an answer.
fn network(error: &HttpError, request: &dyn Outgoing) -> Refused {
    let is_connect = matches!(
        error.kind,
        HttpErrorKind::Connect | HttpErrorKind::ConnectTimeout
    );
    let problem = tls_problem(error).filter(|_| is_connect);
    if let Some(error) = problem.and_then(|problem| not_secure(problem, request)) {
        return error.into();
    }
    let place = place(request);
    let message = match error.kind {
        HttpErrorKind::Setup => return unusable(error).into(),
        HttpErrorKind::ConnectTimeout => format!("connecting to {place} timed out"),
        HttpErrorKind::Connect => format!("{place} cannot be reached"),
        HttpErrorKind::Silence => format!("{place} sent nothing for too long"),
        HttpErrorKind::Broken => format!("the connection to {place} was lost before an answer"),
    };
    // A port on this machine accepts a connection at once. Silence after that means that the server
    // expects a different protocol.
    let is_stuck =
        error.kind == HttpErrorKind::ConnectTimeout && is_tls_at_home(&request.line().url);
    let told = Error::new(Category::Network, message);
    match (is_stuck, error.kind) {
        (true, _) => told
            .detail(format!("{}; {PLAIN_HELP}", cause(error)))
            .into(),
        (false, HttpErrorKind::Silence) => Refused::after_silence(told.detail(cause(error))),
        (false, _) => told.detail(cause(error)).retryable().into(),
    }
}

/// Returns the error for an HTTP client that cannot be used.
fn unusable(error: &HttpError) -> Error {
    let own = error
        .source()
        .and_then(|cause| cause.downcast_ref::<Error>())
        .cloned();
    own.unwrap_or_else(|| {
        Error::new(Category::Config, "the HTTP client cannot be used").detail(cause(error))
    })
}

/// The help for a server that does not respond in TLS.
const PLAIN_HELP: &str =
    "if the server does not use TLS, write `http://` in the provider instance's `url`";

fn is_tls_at_home(url: &str) -> bool {
    let url = reqwest::Url::parse(url);
    url.is_ok_and(|url| url.scheme() == "https" && url.host_str().is_some_and(is_loopback))
}

/// Returns the error for a TLS failure that no retry can fix; `None` if a retry may succeed.
fn not_secure(problem: &rustls::Error, request: &dyn Outgoing) -> Option<Error> {
    let place = place(request);
    let (message, help) = match problem {
        rustls::Error::InvalidCertificate(_) => (
            format!("the certificate of {place} is not trusted"),
            "; on Linux, `SSL_CERT_FILE` sets which certificates to trust instead of the system's",
        ),
        rustls::Error::InvalidMessage(_) => (
            format!("the server at {place} does not use TLS"),
            "; did you mean `http://` in the provider instance's `url`?",
        ),
        rustls::Error::AlertReceived(rustls::AlertDescription::InternalError) => return None,
        _ => (format!("the TLS handshake with {place} failed"), ""),
    };
    // A certificate may contain any text.
    let problem = failure::snippet(problem.to_string().as_bytes());
    Some(Error::new(Category::Network, message).detail(format!("{problem}{help}")))
}

/// Returns the error for a connection that failed in the middle of an answer.
pub(super) fn broken(error: &HttpError, request: &dyn Outgoing) -> Error {
    let place = place(request);
    let message = match error.kind == HttpErrorKind::Silence {
        true => format!("{place} stopped sending"),
        false => format!("the connection to {place} was lost"),
    };
    Error::new(Category::Network, message)
        .detail(cause(error))
        .retryable()
}

/// Returns the TLS failure that caused an error, if any.
fn tls_problem(error: &HttpError) -> Option<&rustls::Error> {
    std::iter::successors(error.source(), |&error| error.source()).find_map(tls_error)
}

/// Returns the TLS error that an error is or contains. Also searches inside I/O errors, which do
/// not expose their content as their source.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    error
        .downcast_ref()
        .or_else(|| tls_error(error.downcast_ref::<std::io::Error>()?.get_ref()?))
}

/// Returns the innermost cause, which is the most specific. Never contains the URL.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    match error.source() {
        Some(_) => failure::snippet(deepest.to_string().as_bytes()),
        None => "no details".to_owned(),
    }
}
