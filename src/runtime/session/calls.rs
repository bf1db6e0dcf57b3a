//! The tools of one answer: who may run, everybody at once, results in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::super::hooks::ToolDecision;
use super::super::tools::{Tool, ToolContext, ToolOutput, ToolSet};
use super::super::{Event, ToolCall};
use super::drive::{RequestTask, Stop, or_default};

/// How many tools of one answer run at the same time; the others wait for their turn.
pub(super) const AT_ONCE: usize = 16;

/// How long tools may take to go away when they are stopped.
const GRACE: Duration = Duration::from_secs(1);

/// A tool that may run, and its arguments.
struct Admitted<'c> {
    call: &'c ToolCall,
    tool: Arc<dyn Tool>,
    input: Value,
}

/// A tool that runs, or waits for its turn.
struct Started<'c> {
    id: Id,
    call: &'c ToolCall,
    has_begun: Arc<AtomicBool>,
}

/// Results by the id of their call.
type Outputs = Vec<(Arc<str>, ToolOutput)>;

impl RequestTask<'_> {
    /// Runs what may run. Hooks are asked about every call before any of them runs. Each result is kept as soon as it is there. If
    /// the request is cancelled, everything is stopped.
    pub(super) async fn outputs(&self, tools: &ToolSet, calls: &[ToolCall]) -> Result<Outputs, Stop> {
        let mut admitted = Vec::new();
        let mut outputs = Outputs::with_capacity(calls.len());
        for call in calls {
            match self.admit(tools, call).await? {
                Ok(one) => admitted.push(one),
                Err(output) => outputs.push((Arc::clone(&call.id), output)),
            }
        }
        for (id, output) in &outputs {
            let call = calls.iter().find(|call| call.id == *id).expect("it was asked about");
            self.finish(id, &call.name, output.clone())?;
        }
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        outputs.extend(self.run_all(admitted).await?);
        Ok(outputs)
    }

    async fn run_all(&self, admitted: Vec<Admitted<'_>>) -> Result<Outputs, Stop> {
        let redactor = self.redactor();
        let (progress, mut told) = mpsc::channel(64);
        let mut running = JoinSet::new();
        let started = self.start_all(admitted, &mut running, &progress);
        drop(progress);
        let mut outputs = Outputs::with_capacity(started.len());
        while !running.is_empty() {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.stop_all(running, &started).await?;
                    return Err(Stop::Cancelled);
                }
                Some(event) = told.recv() => self.emitter.emit(redactor.progress(event)),
                Some(ended) = running.join_next_with_id() => {
                    let (id, output) = ended.unwrap_or_else(|error| (error.id(), crash(&error)));
                    outputs.extend(self.ended(&started, id, output)?);
                }
            }
        }
        Ok(outputs)
    }

    fn start_all<'c>(
        &self,
        admitted: Vec<Admitted<'c>>,
        running: &mut JoinSet<ToolOutput>,
        progress: &mpsc::Sender<Event>,
    ) -> Vec<Started<'c>> {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let start = |Admitted { call, tool, input }: Admitted<'c>| {
            let context = ToolContext::new(Arc::clone(&call.id), self.cancel.child_token(), progress.clone());
            let (room, has_begun) = (Arc::clone(&room), Arc::<AtomicBool>::default());
            let begins = Arc::clone(&has_begun);
            let task = running.spawn(async move {
                let _turn = room.acquire_owned().await;
                begins.store(true, Ordering::Relaxed);
                tool.call(input, context).await
            });
            Started { id: task.id(), call, has_begun }
        };
        admitted.into_iter().map(start).collect()
    }

    /// Keeps what a tool said, without keys.
    fn ended(
        &self,
        started: &[Started<'_>],
        id: Id,
        mut output: ToolOutput,
    ) -> Result<Option<(Arc<str>, ToolOutput)>, Stop> {
        let Some(Started { call, .. }) = started.iter().find(|started| started.id == id) else { return Ok(None) };
        self.redactor().output(&mut output);
        self.finish(&call.id, &call.name, output.clone())?;
        Ok(Some((Arc::clone(&call.id), output)))
    }

    /// Stops the tools. What has ended by then is kept; the others get a result that says that they were cancelled.
    async fn stop_all(&self, mut running: JoinSet<ToolOutput>, started: &[Started<'_>]) -> Result<(), Stop> {
        running.abort_all();
        // A tool that does not let itself be stopped is left behind.
        let deadline = Instant::now() + GRACE;
        while let Ok(Some(ended)) = timeout_at(deadline, running.join_next_with_id()).await {
            if let Some((id, output)) = ended_by_itself(ended) {
                self.ended(started, id, output)?;
            }
        }
        let open = self.open_calls();
        for Started { call, .. } in started.iter().filter(|it| it.has_begun.load(Ordering::Relaxed)) {
            if open.contains(&call.id) {
                self.finish(&call.id, &call.name, ToolOutput::error(CANCELLED))?;
            }
        }
        Ok(())
    }

    /// The tool and the arguments that it runs with, or what the model is told instead.
    async fn admit<'c>(&self, tools: &ToolSet, call: &'c ToolCall) -> Result<Result<Admitted<'c>, ToolOutput>, Stop> {
        let Some(tool) = tools.get(&call.name) else {
            let known: Vec<&str> = tools.names().collect();
            let told = format!("there is no tool `{}`; there are: {}", call.name, known.join(", "));
            return Ok(Err(ToolOutput::error(told)));
        };
        let input = match &call.input {
            Ok(input) => input,
            Err(malformed) => {
                let told =
                    format!("the arguments are no JSON object ({}); call `{}` again", malformed.problem, call.name);
                return Ok(Err(ToolOutput::error(told)));
            }
        };
        let admitted = |input: Value| Ok(Admitted { call, tool: Arc::clone(tool), input });
        Ok(match self.unless_cancelled(self.policy.hooks.before_tool(call)).await? {
            ToolDecision::Rewrite(rewritten) if rewritten.is_object() => admitted(rewritten),
            ToolDecision::Run | ToolDecision::Rewrite(_) => admitted(input.clone()),
            ToolDecision::Refuse(reason) => Err(ToolOutput::error(or_default(reason, REFUSED))),
        })
    }
}

/// The result of a tool that was not stopped from outside.
fn ended_by_itself(ended: Result<(Id, ToolOutput), JoinError>) -> Option<(Id, ToolOutput)> {
    match ended {
        Ok(ended) => Some(ended),
        Err(error) if error.is_cancelled() => None,
        Err(error) => Some((error.id(), crash(&error))),
    }
}

/// What the model is told of a call that a hook refuses without a reason.
const REFUSED: &str = "the call was refused: no reason was given";

/// What the model is told of a tool that was stopped because the request was.
const CANCELLED: &str = "the request was cancelled while the tool ran: what it did up to then is not known";

/// What the model is told of a tool that panicked.
fn crash(error: &JoinError) -> ToolOutput {
    ToolOutput::error(if error.is_panic() { "the tool crashed" } else { "the tool was stopped" })
}
