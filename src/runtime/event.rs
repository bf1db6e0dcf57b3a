//! The events of a request: one typed stream for every wire format.

mod json;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::error::{Error, ResponseInfo};
use super::tool_output::ToolOutput;
use crate::conversation::log::CutOff;
use crate::conversation::{Block, Item, Message, ProviderBlock, Usage};
#[cfg(feature = "cli")]
pub(crate) use json::named;

/// An event of a request. The last event of every request is its only [`Event::Done`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A user message was added to the history.
    Message(Message),
    /// A typed item was added to the history: by the host, or by the session to tell the model of
    /// an interruption.
    Item(Item),
    /// The system prompt and tools are new, because the host renewed or changed them, because the
    /// agent produces a different text that thinking is bound to, or because the log of an older
    /// version does not record that text. For APIs that bind thinking to the messages before it,
    /// thinking in earlier messages is omitted from now on.
    Renewed,
    /// A summary replaced the beginning of the history. For APIs that bind thinking to the messages
    /// before it, the thinking after the summary is omitted from now on.
    Compressed {
        /// The number of messages and items that the summary replaces.
        messages: usize,
        /// The exact text that the model sees instead.
        summary: Arc<str>,
        /// The tokens that were used for the summary.
        usage: Usage,
    },
    /// A body is about to be sent; rounds count from 1.
    TurnStart {
        /// The round of the tool loop.
        round: u32,
    },
    /// The answer begins.
    AnswerStart(ResponseInfo),
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The model begins to call a tool.
    ToolCallStart {
        /// The call's id, unique in its answer.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
    },
    /// Adds a piece to the JSON text of a call's arguments.
    ToolCallArguments {
        /// The call's id.
        id: Arc<str>,
        /// The piece.
        json: String,
    },
    /// A call is complete. A call without this event was cut off, or the provider ran it.
    ToolCallEnd(ToolCall),
    /// A tool reports its progress.
    ToolProgress {
        /// The call's id.
        id: Arc<str>,
        /// The text of its report.
        text: String,
    },
    /// A tool answered.
    ToolResult {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The answer.
        output: ToolOutput,
    },
    /// A block in the provider's own form was kept from the answer of this round: a call that the
    /// provider ran, its result, sources, or an unknown kind. It is sent back to the provider
    /// unchanged, as far as requests have a place for it.
    ProviderBlock {
        /// The block that is kept.
        block: ProviderBlock,
        /// `true` if it is a call that waits for a result, such as one of a custom tool. No tool of
        /// a session handles it: either the host adds the result to its next message, or the call
        /// gets an error.
        is_open_call: bool,
    },
    /// Tokens counted so far in this round; replaces the previous count.
    Usage(Usage),
    /// The cost of the tokens of this round's answer, in US dollars. Reported only if the prices
    /// are known.
    Cost(f64),
    /// The request is retried.
    Retry {
        /// The number of the next attempt, counted from 2.
        attempt: u32,
        /// The delay before the attempt.
        delay: Duration,
        /// The error of the previous attempt.
        error: Error,
    },
    /// A part of the answer that is not kept, as one phrase: for example a second choice, or a part
    /// unknown to the decoder. Each is reported once per request.
    Warning(String),
    /// The model or a filter of the provider refused to answer, with the provider's reason. The
    /// partial answer stays in the history, and is marked;
    /// [`Session::take_back`](super::Session::take_back) removes it.
    Refused(Refusal),
    /// The answer of this round is complete.
    TurnEnd {
        /// The stop reason.
        stop: StopReason,
    },
    /// The round ended without a complete answer.
    TurnCutOff {
        /// The cause.
        reason: CutOff,
        /// `true` if the partial answer stays in the history, where it is marked.
        kept: bool,
        /// The error, unless the request was cancelled.
        error: Option<Error>,
    },
    /// The request ended.
    Done(Outcome),
}

/// The reason why an answer was refused, in the provider's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The category of refused content, such as `cyber` or `SAFETY`.
    pub category: Option<String>,
    /// An explanation for users.
    pub explanation: Option<String>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The request has an answer.
    Finished(StopReason),
    /// The request has no answer, or only a partial one.
    Failed(Error),
    /// The request was cancelled.
    Cancelled,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer.
    EndTurn,
    /// The model wants tools to run.
    ToolUse,
    /// The limit of output tokens or the context limit was reached.
    MaxTokens,
    /// A stop sequence of the body occurred.
    StopSequence,
    /// The model or a filter of the provider refused to answer.
    Refusal,
    /// The provider paused a long turn: a request with the same history continues it. A session
    /// sends that request automatically.
    Paused,
    /// A hook stopped the turn, with this reason.
    Stopped(String),
    /// Another reason, as named by the provider.
    Other(String),
}

/// A complete tool call of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments, always an object; or the malformed text with its mistake.
    pub input: Result<Value, MalformedInput>,
}

/// Arguments that are not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedInput {
    /// The model's text.
    pub text: String,
    /// The mistake, as one phrase.
    pub problem: String,
}

/// The answer of a model in one round, complete or partial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Text, thinking and complete tool calls, in order. For a call with malformed arguments, the
    /// text is under the key `_malformed`, so that the model sees its own output in the history.
    pub blocks: Vec<Block>,
    /// The complete tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The tokens of the round, even if the answer is incomplete.
    pub usage: Usage,
    /// The reason for a refusal, if the provider gives one.
    pub refusal: Option<Refusal>,
}

impl StopReason {
    /// Returns the stable name.
    pub fn name(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal => "refusal",
            StopReason::Paused => "pause_turn",
            StopReason::Stopped(_) => "stopped",
            StopReason::Other(word) => word,
        }
    }
}
