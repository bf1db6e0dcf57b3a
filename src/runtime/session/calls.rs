//! The tools of one answer: who may run, everybody at once, results in the end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinError, JoinSet};

use super::super::hooks::ToolDecision;
use super::super::tools::{Tool, ToolContext, ToolOutput, ToolSet};
use super::super::{Event, ToolCall};
use super::drive::{RequestTask, Stop};

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

impl RequestTask<'_> {
    /// Runs what may run. Hooks are asked about every call before any of them runs. If the request is cancelled, everything is
    /// stopped.
    pub(super) async fn outputs(
        &self,
        tools: &ToolSet,
        calls: &[ToolCall],
    ) -> Result<Vec<(Arc<str>, ToolOutput)>, Stop> {
        let mut admitted = Vec::new();
        let mut outputs = Vec::with_capacity(calls.len());
        for call in calls {
            match self.admit(tools, call).await? {
                Ok(one) => admitted.push(one),
                Err(output) => outputs.push((call, output)),
            }
        }
        for (call, output) in &outputs {
            self.tell(call, output).await;
        }
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        outputs.extend(self.run_all(admitted).await?);
        Ok(outputs.into_iter().map(|(call, output)| (Arc::clone(&call.id), output)).collect())
    }

    async fn run_all<'c>(&self, admitted: Vec<Admitted<'c>>) -> Result<Vec<(&'c ToolCall, ToolOutput)>, Stop> {
        let redactor = self.redactor();
        let (progress, mut told) = mpsc::channel(64);
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut running = JoinSet::new();
        let mut started: Vec<(Id, &ToolCall)> = Vec::new();
        for Admitted { call, tool, input } in admitted {
            let context = ToolContext::new(Arc::clone(&call.id), self.cancel.child_token(), progress.clone());
            let room = Arc::clone(&room);
            let handle = running.spawn(async move {
                let _turn = room.acquire_owned().await;
                tool.call(input, context).await
            });
            started.push((handle.id(), call));
        }
        drop(progress);
        let mut outputs = Vec::with_capacity(started.len());
        while !running.is_empty() {
            let ended = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    // A tool that does not let itself be stopped is left behind.
                    let _ = tokio::time::timeout(GRACE, running.shutdown()).await;
                    return Err(Stop::Cancelled);
                }
                Some(event) = told.recv() => {
                    self.emitter.emit(redactor.progress(event)).await;
                    continue;
                }
                Some(ended) = running.join_next_with_id() => ended,
            };
            let (id, mut output) = ended.unwrap_or_else(|error| (error.id(), crash(&error)));
            redactor.output(&mut output);
            if let Some((_, call)) = started.iter().find(|(started, _)| *started == id) {
                self.tell(call, &output).await;
                outputs.push((*call, output));
            }
        }
        Ok(outputs)
    }

    async fn tell(&self, call: &ToolCall, output: &ToolOutput) {
        let (id, name) = (Arc::clone(&call.id), Arc::clone(&call.name));
        self.emitter.emit(Event::ToolResult { id, name, output: output.clone() }).await;
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
            ToolDecision::Refuse(reason) => Err(ToolOutput::error(reason)),
        })
    }
}

/// What the model is told of a tool that panicked.
fn crash(error: &JoinError) -> ToolOutput {
    ToolOutput::error(if error.is_panic() { "the tool crashed" } else { "the tool was stopped" })
}
