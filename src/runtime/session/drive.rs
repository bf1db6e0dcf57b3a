//! From a message to an outcome: rounds of asking and of running tools.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::exchange::{Ended, Exchange, RoundContext};
use super::super::hooks::{Hooks, MessageDecision, RoundDecision};
use super::super::redact::Redactor;
use super::super::tool_loop::{Next, RequestId};
use super::super::tools::ToolSet;
use super::super::turn::Emitter;
use super::super::{Answer, Category, Error, Event, Outcome, StopReason, ToolCall};
use super::state::RoundInput;
use super::{Shared, lock};
use crate::conversation::{Block, Usage};

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
pub(super) struct RequestTask<'a> {
    shared: &'a Shared,
    pub(super) policy: Policy,
    pub(super) emitter: Emitter,
    pub(super) cancel: CancellationToken,
    request: RequestId,
}

impl Drop for RequestTask<'_> {
    fn drop(&mut self) {
        // Also if a hook panicked, or the runtime goes away.
        self.shared.state().end();
        lock(&self.shared.tool_loop).close(self.request);
    }
}

/// Why a request ends before its answer does; the way out of every step.
pub(super) enum Stop {
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

impl<'a> RequestTask<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        policy: Policy,
        emitter: Emitter,
        cancel: CancellationToken,
    ) -> RequestTask<'a> {
        let request = lock(&shared.tool_loop).open(policy.limit);
        RequestTask { shared, policy, emitter, cancel, request }
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
            // Only what this request itself added can be taken back, and only while nothing came of it.
            let added = std::mem::take(&mut undo);
            let (asked, tools) = match self.ask(round).await {
                Err(Stop::Failed(error)) => return Err(self.take_back(added, error)),
                asked => asked?,
            };
            let (stop, calls) = self.keep_answer(asked, added).await?;
            if stop == StopReason::Paused && calls.is_empty() {
                self.allow_pause(round)?;
                continue;
            }
            let calls = if tools.is_empty() { Vec::new() } else { calls };
            let next = lock(&self.shared.tool_loop).answered(self.request, calls);
            match next {
                Ok(Next::Finish) => return Ok(stop),
                Ok(Next::Run(calls)) => self.run_tools(&tools, &calls).await?,
                Err(error) => return Err(self.give_up_calls(error.into())),
            }
        }
        unreachable!("rounds do not run out")
    }

    /// A turn that paused goes on with the same history; each pause is a round.
    fn allow_pause(&self, round: u32) -> Result<(), Error> {
        match self.policy.limit {
            0 => Ok(()),
            limit if round <= limit => Ok(()),
            limit => Err(Error::new(Category::Tool, format!("the provider paused its turn more than {limit} times"))),
        }
    }

    /// Compiles what is there and exchanges it for an answer. The tools are those that the model was told of.
    async fn ask(&self, round: u32) -> Result<(Exchange, ToolSet), Stop> {
        if let RoundDecision::Stop(reason) = self.unless_cancelled(self.policy.hooks.before_turn(round)).await? {
            return Err(Stop::Hook(reason));
        }
        self.emitter.emit(Event::TurnStart { round }).await;
        let RoundInput { conversation, tools, id_prefix } = self.shared.state().to_ask();
        let compiled = self.unless_cancelled(self.shared.agent.compile_apart(conversation)).await??;
        if compiled.exposes_key() {
            tracing::warn!(url = compiled.address(), "the key travels in the clear: use https");
        }
        let context = RoundContext {
            transport: &self.shared.transport,
            emitter: &self.emitter,
            cancel: &self.cancel,
            hold: self.policy.hooks.holds_messages(),
        };
        Ok((context.exchange(&compiled, id_prefix).await, tools))
    }

    /// Puts what came into the history. `added` messages go if nothing did.
    async fn keep_answer(&self, exchange: Exchange, added: usize) -> Result<(StopReason, Vec<ToolCall>), Stop> {
        let Exchange { answer, held, calls_begun, ended } = exchange;
        let Answer { blocks, calls, usage } = answer;
        match ended {
            Ended::Complete(stop) => {
                self.keep(blocks, usage)?;
                if let Err(stop) = self.show(held).await {
                    return Err(self.give_up_calls(stop));
                }
                self.emitter.emit(Event::TurnEnd { stop: stop.clone() }).await;
                Ok((stop, calls))
            }
            Ended::Cancelled => {
                self.keep(self.kept(blocks, calls_begun), usage)?;
                Err(Stop::Cancelled)
            }
            Ended::Broken(error) => {
                let kept = self.kept(blocks, calls_begun);
                if kept.is_empty() {
                    let stop = self.take_back(added, error);
                    self.keep(kept, usage)?;
                    return Err(stop);
                }
                self.keep(kept, usage)?;
                self.show(held).await?;
                Err(error.into())
            }
        }
    }

    /// The answer first: what was said must not get lost because of what it cost.
    fn keep(&self, blocks: Vec<Block>, usage: Usage) -> Result<(), Error> {
        let mut state = self.shared.state();
        state.answer(blocks)?;
        state.count(usage)
    }

    /// Takes back what a request added that failed. If that cannot be written, the request's own error still says more.
    fn take_back(&self, added: usize, error: Error) -> Stop {
        let _ = self.shared.state().retract(added);
        Stop::Failed(error)
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
            MessageDecision::AsIs => held,
            MessageDecision::Replace(text) => text,
            MessageDecision::Suppress => return Ok(()),
        };
        self.emitter.emit(Event::Text(text)).await;
        Ok(())
    }

    /// Runs the tools of an answer and adds their results.
    async fn run_tools(&self, tools: &ToolSet, calls: &[ToolCall]) -> Result<(), Stop> {
        let outputs = match self.outputs(tools, calls).await {
            Ok(outputs) => outputs,
            Err(stop) => return Err(self.give_up_calls(stop)),
        };
        let blocks = lock(&self.shared.tool_loop).returned(self.request, outputs);
        match blocks {
            Ok(blocks) => Ok(self.shared.state().results(blocks)?),
            Err(error) => Err(self.give_up_calls(error.into())),
        }
    }

    /// Takes calls that will never be answered out of the history, if there are any.
    fn give_up_calls(&self, stop: Stop) -> Stop {
        let mut state = self.shared.state();
        let Some(blocks) = state.open_calls() else { return stop };
        let kept = self.kept(blocks, true);
        match state.retract(1).and_then(|()| state.answer(kept)) {
            Ok(()) => stop,
            Err(error) => error.into(),
        }
    }

    /// Finds the keys that were sent, which tools may say back.
    pub(super) fn redactor(&self) -> Redactor {
        self.shared.transport.redactor()
    }

    pub(super) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T, Stop> {
        self.cancel.run_until_cancelled(future).await.ok_or(Stop::Cancelled)
    }
}
