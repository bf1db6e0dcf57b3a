//! A handle to a running request.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::hooks::Hooks;
use super::{Category, Error, Event, Outcome, StopReason, structured};

/// The number of events that are queued individually. When more are queued, pieces of the same text
/// are joined, and tools' progress reports are dropped.
const EVENTS: usize = 256;

/// A running request, from a message to its outcome, with any number of answers and tool rounds. As
/// a stream, it yields events, and ends with exactly one [`Event::Done`]. Dropping it cancels the
/// request. A slow reader does not block the request: the events are queued, and use no more memory
/// than their text.
#[must_use = "dropping a run cancels its request: read its events, or wait for its `outcome()`"]
pub struct Run {
    queue: Arc<Queue>,
    task: JoinHandle<Outcome>,
    cancel: CancellationToken,
    ended: bool,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Returns the next event; `None` after [`Event::Done`]. Dropping this future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    /// Waits for the outcome, and discards the events.
    pub async fn outcome(self) -> Outcome {
        self.outcome_with(drop).await
    }

    /// Waits for the outcome, and passes each event to `read` as it arrives. The last event,
    /// [`Event::Done`], is returned as the outcome instead.
    ///
    /// ```no_run
    /// # async fn show(session: reqc::runtime::Session) {
    /// use reqc::runtime::Event;
    ///
    /// let run = session.send("What is a monad?");
    /// let outcome = run.outcome_with(|event| if let Event::Text(text) = event { print!("{text}") }).await;
    /// # }
    /// ```
    pub async fn outcome_with(mut self, mut read: impl FnMut(Event)) -> Outcome {
        loop {
            match self.next().await {
                Some(Event::Done(outcome)) => return outcome,
                Some(event) => read(event),
                None => return Outcome::Cancelled,
            }
        }
    }

    /// Waits for the request to end, and returns the text of the answer with the outcome.
    pub async fn answer(self) -> TextAnswer {
        let mut text = String::new();
        let outcome = self
            .outcome_with(|event| match event {
                Event::TurnStart { .. } => text.clear(),
                Event::Text(piece) => text.push_str(&piece),
                _ => {}
            })
            .await;
        TextAnswer { text, outcome }
    }

    /// Waits for the request to end, and returns the text of the answer. See
    /// [`TextAnswer::into_text`].
    ///
    /// # Errors
    ///
    /// Returns an error if the request failed or was cancelled.
    pub async fn text(self) -> Result<String, Error> {
        self.answer().await.into_text()
    }

    /// Waits for the request to end, and returns the answer as a value of a Rust type. See
    /// [`TextAnswer::parse`].
    ///
    /// # Errors
    ///
    /// Returns an error if the request failed or was cancelled, or the answer does not have this
    /// type.
    pub async fn answer_as<T: DeserializeOwned + JsonSchema>(self) -> Result<T, Error> {
        self.answer().await.parse()
    }

    /// Cancels the request. The remaining events can still be read.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Cancels the request if `stop`, for example `tokio::signal::ctrl_c()`, completes before the
    /// request does.
    pub fn cancel_on(self, stop: impl Future + Send + 'static) -> Run {
        let cancel = self.cancel.clone();
        tokio::spawn(async move {
            // Dropping the run also cancels the request.
            tokio::select! {
                _ = stop => cancel.cancel(),
                () = cancel.cancelled() => {}
            }
        });
        self
    }

    /// Returns a token that other code can use to cancel the request.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(event) = ready!(self.queue.lock().poll(context)) {
            return Poll::Ready(Some(event));
        }
        let ended = ready!(Pin::new(&mut self.task).poll(context));
        self.ended = true;
        Poll::Ready(Some(Event::Done(
            ended.unwrap_or_else(|error| crashed(&error)),
        )))
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll_event(context)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended && !self.task.is_finished() {
            tracing::debug!("a run is dropped: its request is cancelled");
        }
        self.cancel.cancel();
        self.queue.lock().read_no_more();
    }
}

/// The text of an answer, and the outcome of its request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TextAnswer {
    /// The model's text in the last round or, for a completion, the text for the gap. It is partial
    /// if the request failed or was cancelled.
    pub text: String,
    /// The outcome of the request.
    pub outcome: Outcome,
}

impl TextAnswer {
    /// Returns the text of a finished request.
    ///
    /// # Errors
    ///
    /// Returns an error if the request failed or was cancelled.
    pub fn into_text(self) -> Result<String, Error> {
        match self.outcome {
            Outcome::Finished(_) => Ok(self.text),
            Outcome::Failed(error) => Err(error),
            Outcome::Cancelled => Err(Error::new(Category::Config, "the request was cancelled")),
        }
    }
}

impl TextAnswer {
    /// Parses the agent's structured output, JSON that conforms to the type's schema
    /// ([`schema_of`](super::tools::schema_of)), as a value of a Rust type.
    ///
    /// # Errors
    ///
    /// Returns an error if the request failed or was cancelled, or if the answer is incomplete, is
    /// not JSON, or does not conform to the schema. The error contains the location and the
    /// expected value. The text remains available in this value.
    pub fn parse<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Error> {
        structured::parse(self.complete()?)
    }

    /// Returns the text, or an error if the model did not complete it.
    pub(super) fn complete(&self) -> Result<&str, Error> {
        match &self.outcome {
            Outcome::Finished(
                StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_),
            ) => Ok(&self.text),
            Outcome::Finished(stop) => Err(Error::new(
                Category::Provider,
                format!("the answer is incomplete: it ended with `{}`", stop.name()),
            )),
            _ => self.clone().into_text().map(|_| self.text.as_str()),
        }
    }
}

fn crashed(error: &tokio::task::JoinError) -> Outcome {
    match error.is_panic() {
        true => Outcome::Failed(Error::new(
            Category::Config,
            "a hook or the runtime itself panicked",
        )),
        false => Outcome::Cancelled,
    }
}

/// The queue of events for the reader.
#[derive(Default)]
struct Queue(Mutex<Waiting>);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queued events, and the waker of a reader that waits for one.
#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    reader: Option<Waker>,
    is_complete: bool,
    is_unread: bool,
}

impl Waiting {
    /// Returns the next event; `None` after the last one.
    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Event>> {
        match self.events.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if self.is_complete => Poll::Ready(None),
            None => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn push(&mut self, event: Event) {
        if self.is_unread {
            return;
        }
        let has_room = self.events.len() < EVENTS;
        let told = if has_room {
            Some(event)
        } else {
            self.events.back_mut().and_then(|last| last.absorb(event))
        };
        self.events.extend(told);
        self.wake();
    }

    fn complete(&mut self) {
        self.is_complete = true;
        self.wake();
    }

    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn read_no_more(&mut self) {
        self.is_unread = true;
        self.events.clear();
    }
}

impl Event {
    /// Merges another event into this one, or returns that event if it cannot be merged.
    fn absorb(&mut self, next: Event) -> Option<Event> {
        match (self, next) {
            (Event::Text(text), Event::Text(piece))
            | (Event::Thinking(text), Event::Thinking(piece)) => {
                text.push_str(&piece);
            }
            (
                Event::ToolCallArguments { id, json },
                Event::ToolCallArguments {
                    id: next,
                    json: piece,
                },
            ) if *id == next => {
                json.push_str(&piece);
            }
            (Event::Usage(usage), Event::Usage(next)) => *usage = next,
            (_, Event::ToolProgress { .. }) => {}
            (_, next) => return Some(next),
        }
        None
    }
}

/// Sends the events of a request to its reader.
pub(super) struct Emitter {
    queue: Arc<Queue>,
    hooks: Arc<dyn Hooks>,
    /// The warnings emitted so far; each is emitted once per run.
    warned: Mutex<HashSet<String>>,
}

impl Emitter {
    pub(super) fn emit(&self, event: Event) {
        if let Event::Warning(message) = &event {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            if !warned.insert(message.clone()) {
                return;
            }
        }
        self.hooks.observe(&event);
        self.queue.lock().push(event);
    }

    /// Passes the last event to the hooks only. The [`Run`] itself passes it to the reader.
    pub(super) fn done(&self, outcome: Outcome) -> Outcome {
        let event = Event::Done(outcome);
        self.hooks.observe(&event);
        match event {
            Event::Done(outcome) => outcome,
            _ => unreachable!("the event is `Done`"),
        }
    }
}

impl Drop for Emitter {
    fn drop(&mut self) {
        self.queue.lock().complete();
    }
}

/// Starts a request. `run` receives the emitter for the request's events.
pub(super) fn start<F>(
    hooks: Arc<dyn Hooks>,
    cancel: CancellationToken,
    run: impl FnOnce(Emitter) -> F,
) -> Run
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let queue = Arc::<Queue>::default();
    let emitter = Emitter {
        queue: Arc::clone(&queue),
        hooks,
        warned: Mutex::default(),
    };
    let task = tokio::spawn(run(emitter));
    Run {
        queue,
        task,
        cancel,
        ended: false,
    }
}
