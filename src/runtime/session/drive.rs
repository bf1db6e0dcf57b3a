//! Drives a request from a message to its outcome, in rounds: ask the model, then run tools.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::agent::{Compiled, Made};
use super::super::exchange::{Ended, Exchange, RoundContext};
use super::super::hooks::{Hooks, MessageDecision, MessageHook, RoundDecision};
use super::super::redact::Redactor;
use super::super::run::Emitter;
use super::super::tool_loop::{Next, RequestId};
use super::super::tools::{ToolOutput, ToolSet};
use super::super::{Answer, Category, Error, Event, Outcome, StopReason, ToolCall};
use super::state::{RoundInput, Start};
use super::{Shared, lock};
use crate::conversation::log::CutOff;
use crate::conversation::{Block, ProviderBlock, ProviderBlockKinds, Usage};
use crate::provider::{AnswerForm, WireFormat};

/// The policy for driving a request.
pub(super) struct Policy {
    pub(super) hooks: Arc<dyn Hooks>,
    /// The hook that sees messages before they are shown, if any.
    pub(super) messages: Option<Arc<dyn MessageHook>>,
    /// The maximum number of tool rounds; 0 for no limit.
    pub(super) limit: u32,
    /// `true` if an interrupted answer with a tool call keeps its text in the history.
    pub(super) keep_text_beside_calls: bool,
}

/// One request, from its start to its outcome.
pub(super) struct RequestTask<'a> {
    pub(super) shared: &'a Shared,
    pub(super) policy: Policy,
    pub(super) emitter: Emitter,
    /// Cancelled together with the request, and when the time limit is exceeded.
    pub(super) cancel: CancellationToken,
    deadline: Option<Deadline>,
    /// `true` if the request was cancelled because it exceeded its time limit.
    is_late: Arc<AtomicBool>,
    request: RequestId,
    /// `true` if a round has started and not ended yet.
    in_turn: AtomicBool,
    /// `true` if a part of the answer is in the history.
    has_kept: AtomicBool,
    /// `true` if compressing the chat has failed. Compression is then not tried again.
    has_given_up: AtomicBool,
}

/// A compiled request with the data needed to run it.
struct Ready {
    compiled: Compiled,
    /// The tools that the model can call.
    tools: ToolSet,
    id_prefix: String,
    /// The estimated number of tokens in the request.
    tokens: u64,
}

impl Drop for RequestTask<'_> {
    fn drop(&mut self) {
        // This also runs if a hook panics or the runtime shuts down.
        self.shared.state().end();
        lock(&self.shared.tool_loop).close(self.request);
    }
}

/// The time by which a request must end.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Deadline {
        // A limit beyond the range of the clock is replaced by thirty years.
        let most = Duration::from_hours(24 * 365 * 30);
        Deadline {
            at: Instant::now() + limit.min(most),
            limit,
        }
    }
}

/// The reason a request ends before its answer is complete. All steps return it as their error.
pub(super) enum Stop {
    Cancelled,
    /// The request exceeded this time limit.
    Late(Duration),
    Failed(Error),
    /// A hook stopped the request.
    Hook(String),
}

impl Stop {
    /// Returns the mark for an answer that was cut off for this reason.
    fn cut_off(&self) -> CutOff {
        match self {
            Stop::Failed(_) => CutOff::Broken,
            Stop::Late(_) => CutOff::TimedOut,
            Stop::Cancelled | Stop::Hook(_) => CutOff::Cancelled,
        }
    }
}

/// Returns the error for a request that exceeded its time limit. A retry starts with the full
/// limit.
fn late(limit: Duration) -> Error {
    Error::new(
        Category::Timeout,
        format!("the run did not end within {limit:?}"),
    )
    .retryable()
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
            Stop::Late(limit) => Outcome::Failed(late(limit)),
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
        cancel: &CancellationToken,
        deadline: Option<Deadline>,
    ) -> RequestTask<'a> {
        let request = lock(&shared.tool_loop).open(policy.limit);
        let cancel = cancel.child_token();
        let (is_late, in_turn, has_kept, has_given_up) = Default::default();
        RequestTask {
            shared,
            policy,
            emitter,
            cancel,
            deadline,
            is_late,
            request,
            in_turn,
            has_kept,
            has_given_up,
        }
    }

    /// Stops the request when its time limit is exceeded. This future never completes: a
    /// stopped request ends on its own branch of the `select!`.
    fn watch(&self) -> impl Future<Output = Infallible> + use<> {
        let (cancel, is_late, deadline) = (
            self.cancel.clone(),
            Arc::clone(&self.is_late),
            self.deadline,
        );
        async move {
            if let Some(deadline) = deadline {
                tokio::time::sleep_until(deadline.at).await;
                is_late.store(!cancel.is_cancelled(), Ordering::Relaxed);
                cancel.cancel();
            }
            std::future::pending().await
        }
    }

    /// Returns why something outside the request stopped it.
    pub(super) fn stopped(&self) -> Stop {
        match self.deadline {
            Some(deadline) if self.is_late.load(Ordering::Relaxed) => Stop::Late(deadline.limit),
            _ => Stop::Cancelled,
        }
    }

    pub(super) async fn run(mut self, start: Start) -> Outcome {
        let watch = self.watch();
        let ended = tokio::select! {
            biased;
            ended = self.work(start) => ended,
            never = watch => match never {},
        };
        let outcome = match ended {
            Ok(stop) => Outcome::Finished(stop),
            Err(stop) => {
                self.tell_cut_off(&stop);
                stop.into()
            }
        };
        self.shared.state().end();
        self.tell_news();
        // Remove the state of the tool loop before the end is reported.
        lock(&self.shared.tool_loop).close(self.request);
        self.emitter.done(outcome)
    }

    async fn work(&mut self, start: Start) -> Result<StopReason, Stop> {
        match start {
            Start::Summarise(summariser) => self.compress(&*summariser).await,
            start @ (Start::Message(_) | Start::Proceed) => self.rounds(start).await,
        }
    }

    pub(super) fn has_given_up_compression(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    pub(super) fn give_up_compression(&self) {
        self.has_given_up.store(true, Ordering::Relaxed);
    }

    async fn rounds(&mut self, start: Start) -> Result<StopReason, Stop> {
        let begun = self.shared.state().begin(&self.shared.agent, start);
        self.tell_news();
        let mut undo = begun?;
        for round in 1.. {
            // Only messages that this request added can be removed, and only before an answer to
            // them has begun.
            let added = std::mem::take(&mut undo);
            let (asked, tools) = match self.ask(round).await {
                Err(stop @ (Stop::Failed(_) | Stop::Late(_))) => {
                    return Err(self.take_back(added, stop));
                }
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
        unreachable!("the loop ends only by returning")
    }

    /// Checks the round limit for a paused turn, which continues with the same history. Each pause
    /// is counted as a round.
    fn allow_pause(&self, round: u32) -> Result<(), Error> {
        match self.policy.limit {
            0 => Ok(()),
            limit if round <= limit => Ok(()),
            limit => Err(Error::new(
                Category::Tool,
                format!("the provider paused its turn more than {limit} times"),
            )),
        }
    }

    /// Compiles the history, and sends it to get an answer. Also returns the tools that the model
    /// could call.
    async fn ask(&self, round: u32) -> Result<(Exchange, ToolSet), Stop> {
        if let RoundDecision::Stop(reason) = self
            .unless_cancelled(self.policy.hooks.before_turn(round))
            .await?
        {
            return Err(Stop::Hook(or_default(reason, STOPPED)));
        }
        self.in_turn.store(true, Ordering::Relaxed);
        self.has_kept.store(false, Ordering::Relaxed);
        self.emitter.emit(Event::TurnStart { round });
        let ready = self.compile().await?;
        let ready = if self.compress_if_full(ready.tokens).await? {
            self.compile().await?
        } else {
            ready
        };
        let Ready {
            compiled,
            tools,
            id_prefix,
            tokens,
        } = ready;
        if compiled.exposes_key() {
            tracing::warn!(
                url = compiled.address(),
                "the key is sent unencrypted: use https"
            );
        }
        let context = RoundContext {
            transport: &self.shared.transport,
            emitter: &self.emitter,
            cancel: &self.cancel,
            hold: self.policy.messages.is_some(),
        };
        let exchange = context.exchange(&compiled, id_prefix).await;
        self.tell_cost(&compiled, &exchange);
        if matches!(exchange.ended, Ended::Complete(_)) {
            self.shared.state().learn(tokens, &exchange.answer.usage);
        }
        Ok((exchange, tools))
    }

    /// Compiles the history. If the system prompt and tools are new, records them. If other text to
    /// which thinking is bound has changed, renews the session and compiles again.
    async fn compile(&self) -> Result<Ready, Stop> {
        loop {
            let RoundInput {
                conversation,
                tools,
                id_prefix,
                is_new,
                bound_to,
            } = self.shared.state().to_ask();
            let (tools_said, layers_said) = (
                conversation.tools.clone(),
                conversation.system_layers.clone(),
            );
            let conversation = match self.shared.transport.now() {
                Some(now) => conversation.without_expired(now),
                None => conversation,
            };
            let made = self.shared.agent.compile_apart(conversation, bound_to);
            let Made {
                compiled,
                prompt,
                sent,
                is_bound,
                tokens,
            } = self.unless_cancelled(made).await??;
            let mut state = self.shared.state();
            if !is_bound {
                state.renew();
                continue;
            }
            if let Some(prompt) = prompt.filter(|_| is_new) {
                state.instruct(prompt, tools_said, layers_said)?;
            }
            state.sends(sent);
            drop(state);
            self.tell_news();
            return Ok(Ready {
                compiled,
                tools,
                id_prefix,
                tokens,
            });
        }
    }

    /// Reports the cost of an answer, and adds it to the total. The cost is unknown if the answer
    /// was cut off or the server did not report token counts.
    fn tell_cost(&self, compiled: &Compiled, exchange: &Exchange) {
        let usage = &exchange.answer.usage;
        let is_whole = matches!(exchange.ended, Ended::Complete(_));
        let is_counted = *usage != Usage::default();
        let has_begun = is_whole || exchange.calls_begun || !exchange.answer.blocks.is_empty();
        if !is_counted && !has_begun {
            return;
        }
        let cost = compiled.cost(usage).filter(|_| is_whole && is_counted);
        self.shared.state().add_cost(cost);
        if let Some(cost) = cost {
            self.emitter.emit(Event::Cost(cost));
        }
    }

    /// Adds the answer to the history. If nothing was received, removes the `added` messages.
    async fn keep_answer(
        &self,
        exchange: Exchange,
        added: usize,
    ) -> Result<(StopReason, Vec<ToolCall>), Stop> {
        let Exchange {
            answer,
            held,
            calls_begun,
            ended,
            wire,
            ..
        } = exchange;
        let Answer {
            mut blocks,
            mut calls,
            usage,
            refusal,
        } = answer;
        match ended {
            Ended::Complete(stop) => {
                if stop == StopReason::Refusal {
                    // Tools called in a refused answer are not run.
                    blocks.retain(|block| !matches!(block, Block::ToolUse { .. }));
                    calls.clear();
                }
                self.keep(
                    blocks,
                    cut_off(&stop, wire).filter(|_| calls.is_empty()),
                    usage,
                )?;
                if let Err(stop) = self.show(held).await {
                    return Err(self.give_up_calls(stop));
                }
                if stop == StopReason::Refusal {
                    self.emitter
                        .emit(Event::Refused(refusal.unwrap_or_default()));
                }
                self.in_turn.store(false, Ordering::Relaxed);
                self.emitter.emit(Event::TurnEnd { stop: stop.clone() });
                Ok((stop, calls))
            }
            Ended::Cancelled => {
                let stop = self.stopped();
                // The message of a cancelled request is always kept.
                let added = if matches!(stop, Stop::Cancelled) {
                    0
                } else {
                    added
                };
                self.keep_part(blocks, calls_begun, wire, usage, added, &stop)?;
                Err(stop)
            }
            Ended::Broken(error) => {
                let stop = error.into();
                if self.keep_part(blocks, calls_begun, wire, usage, added, &stop)? {
                    self.show(held).await?;
                }
                Err(stop)
            }
        }
    }

    /// Keeps and marks the usable part of a failed answer, and returns `true` if there is one. If
    /// no answer had begun, removes the `added` messages.
    fn keep_part(
        &self,
        blocks: Vec<Block>,
        calls_begun: bool,
        wire: WireFormat,
        usage: Usage,
        added: usize,
        stop: &Stop,
    ) -> Result<bool, Error> {
        let has_begun = calls_begun || !blocks.is_empty();
        let kept = self.kept(blocks, calls_begun, wire);
        let is_part = !kept.is_empty();
        if !has_begun {
            // If writing fails, the request's own error is more informative.
            let _ = self.shared.state().retract(added);
        }
        let is_cut_off = has_begun || matches!(stop, Stop::Cancelled);
        self.keep(kept, is_cut_off.then(|| stop.cut_off()), usage)?;
        Ok(is_part)
    }

    /// Writes the answer before its usage, so that the answer is kept even if writing the usage
    /// fails.
    fn keep(&self, blocks: Vec<Block>, cut_off: Option<CutOff>, usage: Usage) -> Result<(), Error> {
        let mut state = self.shared.state();
        let own: Vec<ProviderBlock> = blocks.iter().filter_map(provider_block).cloned().collect();
        let is_empty = blocks.is_empty();
        state.answer(blocks, cut_off)?;
        self.has_kept.store(!is_empty, Ordering::Relaxed);
        let open = if own.is_empty() {
            Vec::new()
        } else {
            state.own_calls()
        };
        for block in own {
            let is_open_call = open.contains(&block);
            self.emitter.emit(Event::ProviderBlock {
                block,
                is_open_call,
            });
        }
        state.count(usage)
    }

    /// Removes the messages that a failed request added, and returns the request's error. That
    /// error is also returned if writing fails, because it is more informative.
    fn take_back(&self, added: usize, stop: Stop) -> Stop {
        let _ = self.shared.state().retract(added);
        stop
    }

    /// Returns the usable part of an incomplete answer: text and the results of the provider's
    /// tools, but no calls to the host's tools. If there was such a call, runs with hooks drop the
    /// text, too.
    fn kept(&self, mut blocks: Vec<Block>, calls_begun: bool, wire: WireFormat) -> Vec<Block> {
        let own_blocks = wire.own_blocks();
        blocks.retain(|block| !matches!(block, Block::ToolUse { .. }));
        if calls_begun && !self.policy.keep_text_beside_calls {
            blocks.retain(|block| matches!(block, Block::Provider(_)) && !has_text(block));
        }
        if blocks
            .iter()
            .any(|block| has_text(block) || is_done(block, &own_blocks))
        {
            blocks
        } else {
            Vec::new()
        }
    }

    /// Shows text that was held back, as decided by the message hook.
    async fn show(&self, held: String) -> Result<(), Stop> {
        if held.is_empty() {
            return Ok(());
        }
        let decision = match &self.policy.messages {
            Some(hook) => self.unless_cancelled(hook.before_message(&held)).await?,
            None => MessageDecision::AsIs,
        };
        let text = match decision {
            MessageDecision::AsIs => held,
            MessageDecision::Replace(text) => text,
            MessageDecision::Suppress => return Ok(()),
        };
        self.emitter.emit(Event::Text(text));
        Ok(())
    }

    /// Runs the tools of an answer, and adds their results.
    async fn run_tools(&self, tools: &ToolSet, calls: &[ToolCall]) -> Result<(), Stop> {
        let outputs = match self.outputs(tools, calls).await {
            Ok(outputs) => outputs,
            Err(stop) => return Err(self.give_up_calls(stop)),
        };
        let blocks = lock(&self.shared.tool_loop).returned(self.request, outputs);
        match blocks {
            Ok(blocks) => {
                let kept = self.shared.state().results(blocks);
                self.tell_news();
                Ok(kept?)
            }
            Err(error) => Err(self.give_up_calls(error.into())),
        }
    }

    /// Reports additions to the history other than answers and results.
    fn tell_news(&self) {
        let news = self.shared.state().news();
        news.into_iter().for_each(|event| self.emitter.emit(event));
    }

    /// Reports the end of a round that has no complete answer, if a round has started.
    fn tell_cut_off(&self, stop: &Stop) {
        let reason = stop.cut_off();
        let error = match stop {
            Stop::Failed(error) => Some(error.clone()),
            Stop::Late(limit) => Some(late(*limit)),
            Stop::Cancelled | Stop::Hook(_) => None,
        };
        if self.in_turn.swap(false, Ordering::Relaxed) {
            let kept = self.has_kept.load(Ordering::Relaxed);
            self.emitter.emit(Event::TurnCutOff {
                reason,
                kept,
                error,
            });
        }
    }

    /// Adds a result with the reason to each call whose tool will not run.
    fn give_up_calls(&self, stop: Stop) -> Stop {
        let why = match &stop {
            Stop::Cancelled => "the request was cancelled",
            Stop::Late(_) => "the request timed out",
            Stop::Failed(error) => error.message.as_str(),
            Stop::Hook(reason) => reason.as_str(),
        };
        let output = ToolOutput::error(format!("the tool did not run: {why}"));
        let open = self.shared.state().open_calls();
        for (id, name) in open {
            if let Err(stop) = self.finish(&id, &name, output.clone()) {
                return stop;
            }
        }
        stop
    }

    /// Returns the IDs of the calls without a result.
    pub(super) fn open_calls(&self) -> Vec<Arc<str>> {
        self.shared
            .state()
            .open_calls()
            .into_iter()
            .map(|(id, _)| id)
            .collect()
    }

    /// Records the result of a call, then reports it.
    pub(super) fn finish(
        &self,
        id: &Arc<str>,
        name: &Arc<str>,
        output: ToolOutput,
    ) -> Result<(), Stop> {
        self.shared.state().result(id, output.clone())?;
        self.emitter.emit(Event::ToolResult {
            id: Arc::clone(id),
            name: Arc::clone(name),
            output,
        });
        Ok(())
    }

    /// Returns a redactor for the keys that were sent, which tools may output.
    pub(super) fn redactor(&self) -> Redactor {
        self.shared.transport.redactor()
    }

    /// Returns the maximum number of tools from one answer that run at the same time.
    pub(super) fn tools_at_once(&self) -> usize {
        self.shared.tools_at_once.load(Ordering::Relaxed)
    }

    pub(super) async fn unless_cancelled<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        self.cancel
            .run_until_cancelled(future)
            .await
            .ok_or_else(|| self.stopped())
    }
}

fn is_done(block: &Block, own_blocks: &ProviderBlockKinds) -> bool {
    matches!(block, Block::Provider(own) if own_blocks.is_done(&own.data))
}

fn has_text(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::Provider(own) => own.text.is_some(),
        _ => false,
    }
}

fn provider_block(block: &Block) -> Option<&ProviderBlock> {
    match block {
        Block::Provider(own) => Some(own),
        _ => None,
    }
}

/// Returns the mark for an answer that ended normally but is incomplete.
fn cut_off(stop: &StopReason, wire: WireFormat) -> Option<CutOff> {
    match stop {
        StopReason::Refusal => Some(CutOff::Refused),
        StopReason::MaxTokens => Some(CutOff::MaxTokens),
        StopReason::Paused => Some(CutOff::Paused),
        StopReason::Other(word) if is_broken_off(word, wire) => Some(CutOff::Broken),
        _ => None,
    }
}

/// Returns `true` if an unknown stop reason means that the answer is incomplete. Responses and
/// Gemini use one fixed word for complete answers; other servers have their own words for both
/// cases: `vLLM` and `SGLang` send `abort`.
fn is_broken_off(word: &str, wire: WireFormat) -> bool {
    const UNFINISHED: [&str; 8] = [
        "abort",
        "aborted",
        "cancel",
        "cancelled",
        "canceled",
        "incomplete",
        "timeout",
        "unload",
    ];
    match wire.facts().answers {
        AnswerForm::Responses | AnswerForm::Gemini => true,
        AnswerForm::Claude | AnswerForm::Chat | AnswerForm::Ollama | AnswerForm::Infill => {
            UNFINISHED.contains(&word.to_ascii_lowercase().as_str())
        }
    }
}

/// The reason reported if a hook stops a request without giving one.
const STOPPED: &str = "a hook stopped the request: no reason was given";

/// Returns a reason, or the default if it is blank.
pub(super) fn or_default(reason: String, default: &str) -> String {
    if reason.trim().is_empty() {
        default.to_owned()
    } else {
        reason
    }
}
