//! Runs the tools of one answer: admits calls, starts tools in order, and collects their results.

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

/// The time that tools have to end after they are stopped.
const GRACE: Duration = Duration::from_secs(1);

/// A tool that may run, with its arguments.
struct Admitted<'c> {
    call: &'c ToolCall,
    tool: Arc<dyn Tool>,
    input: Value,
}

/// The running tools of an answer, in call order, and those that wait to start.
struct Running<'c> {
    waiting: VecDeque<Admitted<'c>>,
    tasks: JoinSet<ToolOutput>,
    begun: Vec<(Id, &'c ToolCall)>,
    /// `true` if the running tool must run alone.
    is_alone: bool,
    /// The maximum number of tools running at the same time.
    most: usize,
}

impl<'c> Running<'c> {
    /// Returns the next tool if it may start now. A tool never starts before an earlier one.
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

/// Results, each with the ID of its call.
type Outputs = Vec<(Arc<str>, ToolOutput)>;

impl RequestTask<'_> {
    /// Runs the tools of an answer. Hooks decide on every call before any tool runs. Each result is
    /// recorded as soon as it is available. Cancelling the request stops all tools.
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
                .expect("each output belongs to one of these calls");
            self.finish(id, &call.name, output.clone())?;
        }
        if self.cancel.is_cancelled() {
            return Err(self.stopped());
        }
        outputs.extend(self.run_all(admitted).await?);
        Ok(outputs)
    }

    /// Runs tools, starting them in call order.
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

    /// Records a tool's output, after removing keys and content that would break later requests.
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

    /// Stops all tools. Results that arrive within the grace period are kept; the other tools that
    /// had started get a result that reports the cancellation.
    async fn stop_all(&self, mut running: Running<'_>) -> Result<(), Stop> {
        running.tasks.abort_all();
        // A tool that cannot be stopped is abandoned.
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

    /// Returns the tool with its arguments or, if the tool may not run, the output for the model.
    async fn admit<'c>(
        &self,
        tools: &ToolSet,
        call: &'c ToolCall,
    ) -> Result<Result<Admitted<'c>, ToolOutput>, Stop> {
        let Some(tool) = tools.get(&call.name) else {
            let known: Vec<&str> = tools.names().collect();
            let told = format!(
                "there is no tool `{}`; available tools: {}",
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
        // Hooks are not consulted about a call that cannot run.
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

/// Returns the result of a tool that ended by itself; `None` if it was cancelled. A stopped tool
/// may or may not report the cancellation before it ends, so its report is ignored.
fn ended_by_itself(ended: Result<(Id, ToolOutput), JoinError>) -> Option<(Id, ToolOutput)> {
    match ended {
        Ok((_, output)) if output.is_cancelled() => None,
        Ok(ended) => Some(ended),
        Err(error) if error.is_cancelled() => None,
        Err(error) => Some((error.id(), crash(&error))),
    }
}

/// The output of a call that a hook refused without giving a reason.
const REFUSED: &str = "the call was refused: no reason was given";

/// The output of a call whose tool was stopped because the request was cancelled.
const CANCELLED: &str = "the request was cancelled while the tool was running; what the tool did before that is unknown";

/// The output of a call whose tool was stopped because the request exceeded its time limit.
const LATE: &str =
    "the request timed out while the tool was running; what the tool did before that is unknown";

/// Returns the output that tells the model about a crash.
fn crash(error: &JoinError) -> ToolOutput {
    ToolOutput::error(if error.is_panic() {
        "the tool crashed"
    } else {
        "the tool was stopped"
    })
}
