//! The tools of one answer: who may run, in which order they begin, results as they come.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::super::hooks::ToolDecision;
use super::super::tools::{Tool, ToolContext, ToolOutput, ToolSet};
use super::super::{Event, ToolCall};
use super::drive::{RequestTask, Stop, or_default};

/// How long tools may take to go away when they are stopped.
const GRACE: Duration = Duration::from_secs(1);

/// A tool that may run, and its arguments.
struct Admitted<'c> {
    call: &'c ToolCall,
    tool: Arc<dyn Tool>,
    input: Value,
}

/// The tools of an answer that have begun, in the order of their calls, and those that wait.
struct Running<'c> {
    waiting: VecDeque<Admitted<'c>>,
    tasks: JoinSet<ToolOutput>,
    begun: Vec<(Id, &'c ToolCall)>,
    /// `true` if the one that runs wants to be alone.
    is_alone: bool,
    /// The most that may run at the same time.
    most: usize,
}

impl<'c> Running<'c> {
    /// The next one that may begin now: none overtakes another.
    fn next(&mut self) -> Option<Admitted<'c>> {
        let may_join = self.waiting.front()?.tool.is_concurrent() && !self.is_alone;
        let has_room = self.tasks.len() < self.most;
        if self.tasks.is_empty() || (may_join && has_room) {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    fn begin(&mut self, cancel: &CancellationToken, progress: &mpsc::Sender<Event>) {
        while let Some(Admitted { call, tool, input }) = self.next() {
            self.is_alone = !tool.is_concurrent();
            let context =
                ToolContext::new(Arc::clone(&call.id), cancel.child_token(), progress.clone());
            let task = self
                .tasks
                .spawn(async move { tool.call(input, context).await });
            self.begun.push((task.id(), call));
        }
    }

    fn call_of(&self, id: Id) -> Option<&'c ToolCall> {
        self.begun
            .iter()
            .find(|(begun, _)| *begun == id)
            .map(|(_, call)| *call)
    }
}

/// Results by the id of their call.
type Outputs = Vec<(Arc<str>, ToolOutput)>;

impl RequestTask<'_> {
    /// Runs what may run. Hooks are asked about every call before any of them runs. Each result is
    /// kept as soon as it is there. If the request is cancelled, everything is stopped.
    pub(super) async fn outputs(
        &self,
        tools: &ToolSet,
        calls: &[ToolCall],
    ) -> Result<Outputs, Stop> {
        let mut admitted = Vec::new();
        let mut outputs = Outputs::with_capacity(calls.len());
        for call in calls {
            match self.admit(tools, call).await? {
                Ok(one) => admitted.push(one),
                Err(output) => outputs.push((Arc::clone(&call.id), output)),
            }
        }
        for (id, output) in &outputs {
            let call = calls
                .iter()
                .find(|call| call.id == *id)
                .expect("it was asked about");
            self.finish(id, &call.name, output.clone())?;
        }
        if self.cancel.is_cancelled() {
            return Err(self.stopped());
        }
        outputs.extend(self.run_all(admitted).await?);
        Ok(outputs)
    }

    /// Runs tools, in the order of their calls as far as they do not run at the same time.
    async fn run_all(&self, admitted: Vec<Admitted<'_>>) -> Result<Outputs, Stop> {
        let redactor = self.redactor();
        let (progress, mut told) = mpsc::channel(64);
        let mut outputs = Outputs::with_capacity(admitted.len());
        let most = self.tools_at_once();
        let (waiting, begun) = (admitted.into(), Vec::new());
        let mut running = Running {
            waiting,
            tasks: JoinSet::new(),
            begun,
            is_alone: false,
            most,
        };
        running.begin(&self.cancel, &progress);
        while !running.tasks.is_empty() {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.stop_all(running).await?;
                    return Err(self.stopped());
                }
                Some(event) = told.recv() => self.emitter.emit(redactor.progress(event)),
                Some(ended) = running.tasks.join_next_with_id() => {
                    let (id, output) = ended.unwrap_or_else(|error| (error.id(), crash(&error)));
                    outputs.extend(self.ended(&running, id, output)?);
                    running.begin(&self.cancel, &progress);
                }
            }
        }
        Ok(outputs)
    }

    /// Keeps what a tool said, without keys, and without what would spoil later requests.
    fn ended(
        &self,
        running: &Running<'_>,
        id: Id,
        output: ToolOutput,
    ) -> Result<Option<(Arc<str>, ToolOutput)>, Stop> {
        let Some(call) = running.call_of(id) else {
            return Ok(None);
        };
        let mut output = output.fit_for_history();
        self.redactor().output(&mut output);
        self.finish(&call.id, &call.name, output.clone())?;
        Ok(Some((Arc::clone(&call.id), output)))
    }

    /// Stops the tools. What has ended by then is kept; the others that began get a result that
    /// says that they were cancelled.
    async fn stop_all(&self, mut running: Running<'_>) -> Result<(), Stop> {
        running.tasks.abort_all();
        // A tool that does not let itself be stopped is left behind.
        let deadline = Instant::now() + GRACE;
        while let Ok(Some(ended)) = timeout_at(deadline, running.tasks.join_next_with_id()).await {
            if let Some((id, output)) = ended_by_itself(ended) {
                self.ended(&running, id, output)?;
            }
        }
        let open = self.open_calls();
        let told = match self.stopped() {
            Stop::Late(_) => LATE,
            _ => CANCELLED,
        };
        for (_, call) in running.begun {
            if open.contains(&call.id) {
                self.finish(&call.id, &call.name, ToolOutput::error(told))?;
            }
        }
        Ok(())
    }

    /// Returns the tool and the arguments that it runs with, or the output that the model gets
    /// instead.
    async fn admit<'c>(
        &self,
        tools: &ToolSet,
        call: &'c ToolCall,
    ) -> Result<Result<Admitted<'c>, ToolOutput>, Stop> {
        let Some(tool) = tools.get(&call.name) else {
            let known: Vec<&str> = tools.names().collect();
            let told = format!(
                "there is no tool `{}`; there are: {}",
                call.name,
                known.join(", ")
            );
            return Ok(Err(ToolOutput::error(told)));
        };
        let input = match &call.input {
            Ok(input) => input,
            Err(malformed) => {
                let told = format!(
                    "the arguments are not a JSON object ({}); call `{}` again",
                    malformed.problem, call.name
                );
                return Ok(Err(ToolOutput::error(told)));
            }
        };
        // What cannot run is not asked about.
        if let Some(mistake) = tools.mistake(&call.name, input) {
            return Ok(Err(ToolOutput::error(mistake)));
        }
        let input = match self
            .unless_cancelled(self.policy.hooks.before_tool(call))
            .await?
        {
            ToolDecision::Rewrite(rewritten) if rewritten.is_object() => {
                if let Some(mistake) = tools.mistake(&call.name, &rewritten) {
                    return Ok(Err(ToolOutput::error(format!(
                        "{mistake} (a hook rewrote them)"
                    ))));
                }
                rewritten
            }
            ToolDecision::Run | ToolDecision::Rewrite(_) => input.clone(),
            ToolDecision::Refuse(reason) => {
                return Ok(Err(ToolOutput::error(or_default(reason, REFUSED))));
            }
        };
        Ok(Ok(Admitted {
            call,
            tool: Arc::clone(tool),
            input,
        }))
    }
}

/// The result of a tool that was not stopped from outside. Whether a tool still says that it was,
/// or is gone before, is chance.
fn ended_by_itself(ended: Result<(Id, ToolOutput), JoinError>) -> Option<(Id, ToolOutput)> {
    match ended {
        Ok((_, output)) if output.is_cancelled() => None,
        Ok(ended) => Some(ended),
        Err(error) if error.is_cancelled() => None,
        Err(error) => Some((error.id(), crash(&error))),
    }
}

/// The answer to a call that a hook refuses without a reason.
const REFUSED: &str = "the call was refused: no reason was given";

/// The answer to a call whose tool was stopped because the request was.
const CANCELLED: &str =
    "the request was cancelled while the tool ran: what it did up to then is not known";

/// The answer to a call whose tool was stopped because the time for the request was over.
const LATE: &str =
    "the time for the request was over while the tool ran: what it did up to then is not known";

/// Returns what the model is told of a tool that panicked.
fn crash(error: &JoinError) -> ToolOutput {
    ToolOutput::error(if error.is_panic() {
        "the tool crashed"
    } else {
        "the tool was stopped"
    })
}
