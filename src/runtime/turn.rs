//! The handle of a running request.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::hooks::Hooks;
use super::{Category, Error, Event, Outcome};

/// How many events may wait for their receiver before the answer is read no further.
const EVENTS: usize = 256;

/// A request that runs. Its events end with exactly one [`Event::Done`]; dropping it cancels the request.
pub struct Turn {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<Outcome>,
    cancel: CancellationToken,
    ended: bool,
}

impl Turn {
    /// The next event; `None` after [`Event::Done`]. Nothing is lost if this future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.events.recv().await {
            return Some(event);
        }
        if self.ended {
            return None;
        }
        let outcome = Pin::new(&mut self.task).await.unwrap_or_else(|error| crashed(&error));
        self.ended = true;
        Some(Event::Done(outcome))
    }

    /// Waits for the end and drops the events on the way.
    pub async fn outcome(mut self) -> Outcome {
        loop {
            match self.next().await {
                Some(Event::Done(outcome)) => return outcome,
                Some(_) => {}
                None => return Outcome::Cancelled,
            }
        }
    }

    /// Cancels the request. What it still has to say can be read.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Cancels the request from elsewhere.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn crashed(error: &tokio::task::JoinError) -> Outcome {
    match error.is_panic() {
        true => Outcome::Failed(Error::new(Category::Config, "a hook or the runtime itself panicked")),
        false => Outcome::Cancelled,
    }
}

/// Where the events of a request go.
pub(super) struct Emitter {
    sender: mpsc::Sender<Event>,
    hooks: Arc<dyn Hooks>,
    cancel: CancellationToken,
}

impl Emitter {
    pub(super) async fn emit(&self, event: Event) {
        self.hooks.observe(&event);
        // A receiver that is gone, or slow while the request is cancelled, misses the event.
        let _ = self.cancel.run_until_cancelled(self.sender.send(event)).await;
    }

    /// For the last event, which [`Turn::next`] gives to the receiver itself.
    pub(super) fn done(&self, outcome: Outcome) -> Outcome {
        let event = Event::Done(outcome);
        self.hooks.observe(&event);
        match event {
            Event::Done(outcome) => outcome,
            _ => unreachable!("it was made above"),
        }
    }
}

/// Starts a request: `run` gets the emitter of its events.
pub(super) fn start<F>(hooks: Arc<dyn Hooks>, cancel: CancellationToken, run: impl FnOnce(Emitter) -> F) -> Turn
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let (sender, events) = mpsc::channel(EVENTS);
    let task = tokio::spawn(run(Emitter { sender, hooks, cancel: cancel.clone() }));
    Turn { events, task, cancel, ended: false }
}
