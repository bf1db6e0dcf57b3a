//! From a message to an outcome: rounds of asking and of running tools.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::super::exchange::{Ended, Exchange, Wire};
use super::super::hooks::{Hooks, Permission, Showing, Turning};
use super::super::tool_loop::{Next, RequestId};
use super::super::tools::{Tool, ToolContext, ToolOutput};
use super::super::turn::Emitter;
use super::super::{Error, Event, Outcome, StopReason, ToolCall};
use super::{Shared, lock};
use crate::conversation::{Block, Message, Role};

/// What a request begins with.
pub(super) enum Start {
    /// A message of the user.
    Message(Vec<Block>),
    /// What is there.
    Proceed,
}

/// How a request is driven.
pub(super) struct Policy {
    pub(super) hooks: Arc<dyn Hooks>,
    /// How often tools may run; 0 for no limit.
    pub(super) limit: u32,
    /// What an aborted answer that holds a tool call leaves behind: its text, or nothing.
    pub(super) keep_text_beside_calls: bool,
}

/// One request, from its start to its outcome.
pub(super) struct Drive<'a> {
    shared: &'a Shared,
    policy: Policy,
    emitter: Emitter,
    cancel: CancellationToken,
    request: RequestId,
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        lock(&self.shared.tool_loop).close(self.request);
    }
}

/// Why a request ends before its answer does; the way out of every step.
enum Stop {
    Cancelled,
    Failed(Error),
    /// A hook stopped it.
    Hook(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Outcome {
        match stop {
            Stop::Cancelled => Outcome::Cancelled,
            Stop::Failed(error) => Outcome::Failed(error),
            Stop::Hook(reason) => Outcome::Finished(StopReason::Stopped(reason)),
        }
    }
}

impl<'a> Drive<'a> {
    pub(super) fn new(shared: &'a Shared, policy: Policy, emitter: Emitter, cancel: CancellationToken) -> Drive<'a> {
        let request = lock(&shared.tool_loop).open(policy.limit);
        Drive { shared, policy, emitter, cancel, request }
    }

    pub(super) async fn run(mut self, start: Start) -> Outcome {
        let outcome = match self.rounds(start).await {
            Ok(stop) => Outcome::Finished(stop),
            Err(stop) => stop.into(),
        };
        self.shared.state().end();
        // The state of the loop is gone before anybody hears of the end.
        lock(&self.shared.tool_loop).close(self.request);
        self.emitter.done(outcome)
    }

    async fn rounds(&mut self, start: Start) -> Result<StopReason, Stop> {
        let mut undo = self.shared.state().begin(start)?;
        for round in 1.. {
            let asked = self.ask(round).await;
            // Only what this request itself added can be taken back, and only while nothing came of it.
            let added = std::mem::take(&mut undo);
            let (stop, calls) = match asked {
                Err(Stop::Failed(error)) => {
                    self.shared.state().retract(added)?;
                    return Err(error.into());
                }
                Err(stop) => return Err(stop),
                Ok(exchange) => self.settle(exchange, added).await?,
            };
            let has_tools = self.shared.state().has_tools();
            let calls = if has_tools { calls } else { Vec::new() };
            let next = lock(&self.shared.tool_loop).answered(self.request, calls);
            match next {
                Ok(Next::Finish) => return Ok(stop),
                Ok(Next::Run(calls)) => self.run_tools(calls).await?,
                Err(error) => return Err(self.give_up_calls(error.into())),
            }
        }
        unreachable!("rounds do not run out")
    }

    /// Compiles what is there and exchanges it for an answer.
    async fn ask(&self, round: u32) -> Result<Exchange, Stop> {
        if let Turning::Stop(reason) = self.unless_cancelled(self.policy.hooks.before_turn(round)).await? {
            return Err(Stop::Hook(reason));
        }
        self.emitter.emit(Event::TurnStart { round }).await;
        let (conversation, id_prefix) = self.shared.state().to_ask();
        let compiled = self.unless_cancelled(self.shared.agent.compile_apart(conversation)).await??;
        if compiled.exposes_key() {
            tracing::warn!(url = compiled.line.url, "the key travels in the clear: use https");
        }
        let wire = Wire {
            transport: &self.shared.transport,
            emitter: &self.emitter,
            cancel: &self.cancel,
            hold: self.policy.hooks.holds_messages(),
        };
        Ok(wire.exchange(&compiled, id_prefix).await)
    }

    /// Puts what came into the history. `added` messages go if nothing did.
    async fn settle(&self, exchange: Exchange, added: usize) -> Result<(StopReason, Vec<ToolCall>), Stop> {
        let Exchange { answer, held, calls_begun, ended } = exchange;
        self.shared.state().count(answer.usage)?;
        match ended {
            Ended::Complete(stop) => {
                self.shared.state().answer(answer.blocks)?;
                self.show(held).await?;
                self.emitter.emit(Event::TurnEnd { stop: stop.clone() }).await;
                Ok((stop, answer.calls))
            }
            Ended::Cancelled => {
                self.shared.state().answer(self.kept(answer.blocks, calls_begun))?;
                Err(Stop::Cancelled)
            }
            Ended::Broken(error) => {
                let kept = self.kept(answer.blocks, calls_begun);
                let mut state = self.shared.state();
                if kept.is_empty() {
                    state.retract(added)?;
                } else {
                    state.answer(kept)?;
                }
                Err(error.into())
            }
        }
    }

    /// What is left of an answer that was not completed: text, never a call.
    fn kept(&self, mut blocks: Vec<Block>, calls_begun: bool) -> Vec<Block> {
        blocks.retain(|block| !matches!(block, Block::ToolUse { .. }));
        let has_text = blocks.iter().any(|block| matches!(block, Block::Text(text) if !text.trim().is_empty()));
        let keep = has_text && (self.policy.keep_text_beside_calls || !calls_begun);
        if keep { blocks } else { Vec::new() }
    }

    /// Shows text that was held back, as hooks want it.
    async fn show(&self, held: String) -> Result<(), Stop> {
        if held.is_empty() {
            return Ok(());
        }
        let text = match self.unless_cancelled(self.policy.hooks.before_message(&held)).await? {
            Showing::AsIs => held,
            Showing::Replace(text) => text,
            Showing::Suppress => return Ok(()),
        };
        self.emitter.emit(Event::Text(text)).await;
        Ok(())
    }

    /// Runs the tools of an answer and adds their results.
    async fn run_tools(&self, calls: Vec<ToolCall>) -> Result<(), Stop> {
        let outputs = match self.outputs(&calls).await {
            Ok(outputs) => outputs,
            Err(stop) => return Err(self.give_up_calls(stop)),
        };
        let blocks = lock(&self.shared.tool_loop).returned(self.request, outputs);
        match blocks {
            Ok(blocks) => {
                let mut state = self.shared.state();
                state.push(Message { role: Role::User, blocks, item: None })?;
                Ok(state.admit_waiting()?)
            }
            Err(error) => Err(self.give_up_calls(error.into())),
        }
    }

    /// Takes calls that will never be answered out of the history.
    fn give_up_calls(&self, stop: Stop) -> Stop {
        let mut state = self.shared.state();
        let blocks = state.history().last().map(|message| message.blocks.clone()).unwrap_or_default();
        let kept = self.kept(blocks, true);
        match state.retract(1).and_then(|()| state.answer(kept)) {
            Ok(()) => stop,
            Err(error) => error.into(),
        }
    }

    /// Runs what may run, all at once. Everything is stopped if the request is cancelled.
    async fn outputs(&self, calls: &[ToolCall]) -> Result<Vec<(Arc<str>, ToolOutput)>, Stop> {
        let (progress, mut told) = mpsc::channel(64);
        let mut running = JoinSet::new();
        let mut started: Vec<(Id, &ToolCall)> = Vec::new();
        let mut outputs = Vec::with_capacity(calls.len());
        for call in calls {
            match self.admit(call).await? {
                Ok((tool, input)) => {
                    let context = ToolContext::new(Arc::clone(&call.id), self.cancel.child_token(), progress.clone());
                    let handle = running.spawn(async move { tool.call(input, context).await });
                    started.push((handle.id(), call));
                }
                Err(output) => outputs.push(self.told(call, output).await),
            }
        }
        drop(progress);
        while !running.is_empty() {
            let ended = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
                Some(event) = told.recv() => {
                    self.emitter.emit(event).await;
                    continue;
                }
                Some(ended) = running.join_next_with_id() => ended,
            };
            let (id, output) = ended.unwrap_or_else(|error| (error.id(), crash(&error)));
            if let Some((_, call)) = started.iter().find(|(started, _)| *started == id) {
                outputs.push(self.told(call, output).await);
            }
        }
        Ok(outputs)
    }

    async fn told(&self, call: &ToolCall, output: ToolOutput) -> (Arc<str>, ToolOutput) {
        let (id, name) = (Arc::clone(&call.id), Arc::clone(&call.name));
        self.emitter.emit(Event::ToolResult { id, name, output: output.clone() }).await;
        (Arc::clone(&call.id), output)
    }

    /// The tool and the arguments that it runs with, or what the model is told instead.
    async fn admit(&self, call: &ToolCall) -> Result<Result<(Arc<dyn Tool>, Value), ToolOutput>, Stop> {
        let tool = match self.shared.state().tool(&call.name) {
            Ok(tool) => tool,
            Err(output) => return Ok(Err(output)),
        };
        let input = match &call.input {
            Ok(input) => input.clone(),
            Err(malformed) => {
                let told =
                    format!("the arguments are no JSON object ({}); call `{}` again", malformed.problem, call.name);
                return Ok(Err(ToolOutput::error(told)));
            }
        };
        Ok(match self.unless_cancelled(self.policy.hooks.before_tool(call)).await? {
            Permission::Rewrite(rewritten) if rewritten.is_object() => Ok((tool, rewritten)),
            Permission::Run | Permission::Rewrite(_) => Ok((tool, input)),
            Permission::Refuse(reason) => Err(ToolOutput::error(reason)),
        })
    }

    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T, Stop> {
        self.cancel.run_until_cancelled(future).await.ok_or(Stop::Cancelled)
    }
}

/// What the model is told of a tool that panicked.
fn crash(error: &JoinError) -> ToolOutput {
    ToolOutput::error(if error.is_panic() { "the tool crashed" } else { "the tool was stopped" })
}
