//! Performs one round: sends a compiled request and receives an answer.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::agent::Compiled;
use super::redact::Redacting;
use super::run::Emitter;
use super::stream::{Decoder, Framing, Source};
use super::transport::{
    Backoff, HttpBody, HttpError, HttpErrorKind, Refused, Transport, broken, content_type, endless,
    named,
};
use super::{Answer, Error, Event, ResponseInfo, StopReason};
use crate::provider::WireFormat;

/// The time allowed for a connection to end after its answer, so that it can be reused.
const GRACE: Duration = Duration::from_millis(50);

/// The result of a round.
pub(super) struct Exchange {
    /// The answer, complete or partial.
    pub(super) answer: Answer,
    /// Text that is held back for hooks and has not been shown yet.
    pub(super) held: String,
    /// `true` if any part of an answer arrived.
    pub(super) has_begun: bool,
    /// `true` if the model began to call a tool.
    pub(super) calls_begun: bool,
    /// The way the round ended.
    pub(super) ended: Ended,
    /// The wire format of the request.
    pub(super) wire: WireFormat,
}

/// The way a round ended.
pub(super) enum Ended {
    Complete(StopReason),
    Broken(Error),
    Cancelled,
}

/// Everything that a round needs apart from its request.
pub(super) struct RoundContext<'a> {
    pub(super) transport: &'a Transport,
    pub(super) emitter: &'a Emitter,
    pub(super) cancel: &'a CancellationToken,
    /// `true` if text is held back for hooks.
    pub(super) hold: bool,
}

/// The time limit for a server that sends no content, even if it keeps the connection alive.
struct Patience {
    limit: Duration,
    until: Instant,
    /// The number of content bytes that had arrived when the current time limit started.
    seen: usize,
}

impl Patience {
    fn new(limit: Duration) -> Patience {
        Patience {
            limit,
            until: Instant::now() + limit,
            seen: 0,
        }
    }

    /// Returns the next piece of the body. Restarts the time limit if content has arrived since the
    /// last call.
    async fn piece(
        &mut self,
        body: &mut HttpBody,
        content: usize,
    ) -> Result<Option<Bytes>, HttpError> {
        if content > self.seen {
            (self.seen, self.until) = (content, Instant::now() + self.limit);
        }
        let waited = timeout_at(self.until, body.piece()).await;
        waited.unwrap_or_else(|_| {
            Err(HttpError::new(
                HttpErrorKind::Silence,
                "no data arrived in time",
            ))
        })
    }
}

/// An answer that is being received: its metadata, and the stages that process its bytes and
/// events.
struct Incoming {
    info: ResponseInfo,
    decoder: Decoder,
    redacting: Redacting,
}

impl Exchange {
    fn nothing(ended: Ended, wire: WireFormat) -> Exchange {
        Exchange {
            answer: Answer::default(),
            held: String::new(),
            has_begun: false,
            calls_begun: false,
            ended,
            wire,
        }
    }
}

impl RoundContext<'_> {
    /// Sends a request and reads its answer to the end.
    pub(super) async fn exchange(&self, request: &Compiled, id_prefix: String) -> Exchange {
        match self.cancel.run_until_cancelled(self.connect(request)).await {
            None => Exchange::nothing(Ended::Cancelled, request.wire),
            Some(Err(error)) => Exchange::nothing(Ended::Broken(error), request.wire),
            Some(Ok(response)) => self.read(request, response, id_prefix).await,
        }
    }

    /// Sends the request, and retries it until an answer begins or no further retry could succeed.
    async fn connect(&self, request: &Compiled) -> Result<Response<HttpBody>, Error> {
        let mut backoff = Backoff::new(&self.transport.options.retry);
        for attempt in 2.. {
            tracing::debug!(url = request.address(), attempt = attempt - 1, "sending");
            let Refused {
                error,
                again,
                retry_after,
            } = match self.transport.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(refused) => refused,
            };
            let delay = if again {
                backoff.next(retry_after)
            } else {
                None
            };
            let Some(delay) = delay else {
                return Err(Error {
                    retry_after,
                    ..error
                });
            };
            tracing::debug!(%error, ?delay, "trying again");
            self.emitter.emit(Event::Retry {
                attempt,
                delay,
                error,
            });
            tokio::time::sleep(delay).await;
        }
        unreachable!("the loop ends only by returning")
    }

    async fn read(
        &self,
        request: &Compiled,
        mut response: Response<HttpBody>,
        id_prefix: String,
    ) -> Exchange {
        let redactor = self.transport.redactor();
        let framing = Framing::of(content_type(response.headers()), request.wire);
        let source = Source {
            api: request.api,
            wire: request.wire,
            id_prefix,
        };
        let mut exchange = Exchange::nothing(Ended::Cancelled, request.wire);
        let mut incoming = Incoming {
            info: named(response.headers()),
            decoder: Decoder::new(source, framing, self.transport.options.limits),
            redacting: Redacting::new(redactor.clone()),
        };
        let limit = self.transport.options.answer_timeout;
        let read = async {
            let read = self.pump(request, response.body_mut(), &mut incoming, &mut exchange);
            timeout(limit, read)
                .await
                .unwrap_or_else(|_| Ended::Broken(endless(request, limit)))
        };
        if let Some(ended) = self.cancel.run_until_cancelled(read).await {
            exchange.ended = match ended {
                Ended::Broken(error) => {
                    let info = incoming.info.clone().or(incoming.decoder.info());
                    Ended::Broken(redactor.error(error.with_response(&info)))
                }
                Ended::Complete(stop) => Ended::Complete(redactor.stop(stop)),
                Ended::Cancelled => Ended::Cancelled,
            };
        }
        self.tell(incoming.redacting.last(), &mut exchange);
        exchange.answer = incoming.decoder.into_answer();
        redactor.answer(&mut exchange.answer);
        exchange
    }

    /// Reads until the answer or the connection ends, or the time limit is exceeded.
    async fn pump(
        &self,
        request: &Compiled,
        body: &mut HttpBody,
        incoming: &mut Incoming,
        exchange: &mut Exchange,
    ) -> Ended {
        let mut cut_off = None;
        let mut patience = Patience::new(self.transport.options.idle_timeout);
        while !incoming.decoder.is_complete() {
            let mut events = Vec::new();
            let pushed = match patience.piece(body, incoming.decoder.content_bytes()).await {
                Ok(Some(bytes)) => incoming.decoder.push(&bytes, &mut events),
                Ok(None) => break,
                Err(error) => {
                    cut_off = Some(broken(&error, request));
                    break;
                }
            };
            self.tell_next(events, incoming, exchange);
            if let Err(error) = pushed {
                return Ended::Broken(error);
            }
        }
        let mut events = Vec::new();
        let finished = incoming.decoder.finish(&mut events);
        self.tell_next(events, incoming, exchange);
        match finished {
            Ok(stop) => {
                // The remaining bytes are irrelevant, but the connection can be reused only if it
                // is read to the end.
                let _ = timeout(GRACE, async {
                    while let Ok(Some(_)) = body.piece().await {}
                })
                .await;
                Ended::Complete(stop)
            }
            Err(error) => Ended::Broken(cut_off.unwrap_or(error)),
        }
    }

    /// Emits the decoded events. Emits the start of the answer before the first of them.
    fn tell_next(&self, events: Vec<Event>, incoming: &mut Incoming, exchange: &mut Exchange) {
        let Incoming {
            info,
            decoder,
            redacting,
        } = incoming;
        if decoder.has_begun() && !std::mem::replace(&mut exchange.has_begun, true) {
            let info = self
                .transport
                .redactor()
                .info(info.clone().or(decoder.info()));
            self.emitter.emit(Event::AnswerStart(info));
        }
        self.tell(
            events
                .into_iter()
                .flat_map(|event| redacting.next(event))
                .collect(),
            exchange,
        );
    }

    fn tell(&self, events: Vec<Event>, exchange: &mut Exchange) {
        exchange.calls_begun |= events
            .iter()
            .any(|event| matches!(event, Event::ToolCallStart { .. }));
        for event in events {
            match event {
                Event::Text(text) if self.hold => exchange.held.push_str(&text),
                event => self.emitter.emit(event),
            }
        }
    }
}
