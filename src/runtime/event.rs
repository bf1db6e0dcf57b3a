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
    /// A typed item was added to the history, either by the host, or by the session to inform the
    /// model about an interruption.
    Item(Item),
    /// The system prompt and tools were renewed, for one of these reasons: the host renewed or
    /// changed them; the text to which thinking is bound has changed; or the log was written by an
    /// older version, which did not record that text. For APIs that bind thinking to the messages
    /// before it, thinking in earlier messages is omitted from now on.
    Renewed,
    /// A summary replaced the beginning of the history. For APIs that bind thinking to the messages
    /// before it, thinking in the remaining messages is omitted from now on.
    Compressed {
        /// The number of messages and items that the summary replaces.
        messages: usize,
        /// The exact text that the model sees instead.
        summary: Arc<str>,
        /// The tokens used to write the summary.
        usage: Usage,
    },
    /// A request is about to be sent.
    TurnStart {
        /// The round of the tool loop, counted from 1.
        round: u32,
    },
    /// The answer has begun.
    AnswerStart(ResponseInfo),
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The model began a tool call.
    ToolCallStart {
        /// The call's ID, unique within its answer.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
    },
    /// A piece of the JSON text that contains a call's arguments.
    ToolCallArguments {
        /// The call's ID.
        id: Arc<str>,
        /// The next piece of the text.
        json: String,
    },
    /// A tool call is complete. A call without this event was cut off, or was run by the provider.
    ToolCallEnd(ToolCall),
    /// A tool reported progress.
    ToolProgress {
        /// The call's ID.
        id: Arc<str>,
        /// The progress as text.
        text: String,
    },
    /// A tool returned a result.
    ToolResult {
        /// The call's ID.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The tool's output.
        output: ToolOutput,
    },
    /// The answer of this round contains a provider-specific block: a call that the provider ran,
    /// its result, sources, or a block of an unknown kind. It is sent back to the provider
    /// unchanged, unless requests cannot contain it.
    ProviderBlock {
        /// The block as the provider sent it.
        block: ProviderBlock,
        /// `true` if the block is a call that waits for a result, such as a call to a custom tool.
        /// No tool of a session handles it: either the host adds the result to its next message, or
        /// the call gets an error.
        is_open_call: bool,
    },
    /// The tokens used so far in this round; replaces the previous counts.
    Usage(Usage),
    /// The cost of this round's answer in US dollars. Reported only if the prices are known.
    Cost(f64),
    /// The request is about to be retried.
    Retry {
        /// The number of the next attempt, counted from 2.
        attempt: u32,
        /// The delay before the attempt.
        delay: Duration,
        /// The error of the previous attempt.
        error: Error,
    },
    /// A part of the answer was not kept, for example a second choice or a part that the decoder
    /// does not recognise. Contains one phrase; each phrase is reported once per request.
    Warning(String),
    /// The model or a provider filter refused to answer. Contains the provider's reason. The
    /// partial answer stays in the history and is marked;
    /// [`Session::take_back`](super::Session::take_back) removes it.
    Refused(Refusal),
    /// The answer of this round is complete.
    TurnEnd {
        /// The reason the model stopped.
        stop: StopReason,
    },
    /// The round ended without a complete answer.
    TurnCutOff {
        /// The reason the answer is incomplete.
        reason: CutOff,
        /// `true` if the partial answer stays in the history, marked as incomplete.
        kept: bool,
        /// The error, unless the request was cancelled.
        error: Option<Error>,
    },
    /// The request ended.
    Done(Outcome),
}

/// A provider's reason for refusing to answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The provider's category for the refused content, such as `cyber` or `SAFETY`.
    pub category: Option<String>,
    /// The provider's explanation for users.
    pub explanation: Option<String>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The request finished; contains the reason the model stopped.
    Finished(StopReason),
    /// The request failed, with no answer or only a partial one.
    Failed(Error),
    /// The request was cancelled.
    Cancelled,
}

/// The reason a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer.
    EndTurn,
    /// The model called tools and waits for their results.
    ToolUse,
    /// The answer reached the output token limit or the end of the context window.
    MaxTokens,
    /// The model produced one of the stop sequences in the body.
    StopSequence,
    /// The model or a provider filter refused to answer.
    Refusal,
    /// The provider paused a long turn. A request with the same history continues it; a session
    /// sends that request automatically.
    Paused,
    /// A hook stopped the turn. Contains its reason.
    Stopped(String),
    /// Any other reason, in the provider's wording.
    Other(String),
}

/// A complete tool call in an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's ID.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments, which are always an object, or the malformed text and the error in it.
    pub input: Result<Value, MalformedInput>,
}

/// Arguments that are not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedInput {
    /// The model's text.
    pub text: String,
    /// The error in the text, as one phrase.
    pub problem: String,
}

/// A model's answer in one round, complete or partial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Text, thinking and complete tool calls, in order. Malformed arguments are stored as text
    /// under the key `_malformed`, so that the model sees its own output in the history.
    pub blocks: Vec<Block>,
    /// The complete tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The tokens used in the round, even if the answer is incomplete.
    pub usage: Usage,
    /// The provider's reason for refusing to answer, if it gives one.
    pub refusal: Option<Refusal>,
}

impl StopReason {
    /// Returns the stable name of the reason.
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
