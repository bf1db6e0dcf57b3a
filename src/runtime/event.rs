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

/// Something that happened. The last event of a request is [`Event::Done`], and there is exactly
/// one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A message of the person joined the history.
    Message(Message),
    /// A typed item joined the history: the host injected it, or the session tells the model of an
    /// interruption.
    Item(Item),
    /// System prompt and tools are new, because the host renewed them or changed one of them,
    /// because the agent writes something else to which thinking is bound, or because an older
    /// program's log does not say what it is bound to. For APIs that bind thinking to what was
    /// before it, thinking of earlier messages is left out from here on.
    Renewed,
    /// A summary took the place of the beginning of the history. Thinking after it is left out from
    /// here on for APIs that bind it to what was before.
    Compressed {
        /// The number of messages and items that the summary stands for.
        messages: usize,
        /// The exact text that the model sees in their place.
        summary: Arc<str>,
        /// The tokens that the summary took.
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
    /// A piece of the JSON text of a call's arguments.
    ToolCallArguments {
        /// The call's id.
        id: Arc<str>,
        /// The piece.
        json: String,
    },
    /// A call is complete. One that began but never ends was cut off, or its provider ran it.
    ToolCallEnd(ToolCall),
    /// A tool says how far it is.
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
    /// Something in the provider's own form is kept of the answer of this round: a call that the
    /// provider ran, its result, sources, a kind that is not known here. It goes back to the
    /// provider as it came, as far as requests have a place for it.
    ProviderBlock {
        /// The block that is kept.
        block: ProviderBlock,
        /// `true` if it is a call that waits for a result, such as one of a custom tool. No tool of
        /// a session takes it: the host brings the result with its next message, or the call gets
        /// an error.
        is_open_call: bool,
    },
    /// Tokens counted so far in this round: replaces what was reported before.
    Usage(Usage),
    /// The cost of this round's answer, in US dollars: its tokens alone. Told only where the prices
    /// are known.
    Cost(f64),
    /// The request is tried again.
    Retry {
        /// Which attempt comes, counted from 2.
        attempt: u32,
        /// How long until then.
        delay: Duration,
        /// The error.
        error: Error,
    },
    /// Something of the answer that is not kept, as one phrase: a second choice, say, or a part
    /// that the decoder does not know. Each is reported once per request.
    Warning(String),
    /// The model or a filter of the provider refused: why, as far as the provider says. What came
    /// of the answer stays in the history, and is marked;
    /// [`Session::take_back`](super::Session::take_back) removes it.
    Refused(Refusal),
    /// The answer of this round is complete.
    TurnEnd {
        /// Why the model stopped.
        stop: StopReason,
    },
    /// This round ended without a whole answer.
    TurnCutOff {
        /// The reason of the end.
        reason: CutOff,
        /// `true` if what came of the answer stays in the history, where it is marked.
        kept: bool,
        /// The error, unless the request was cancelled.
        error: Option<Error>,
    },
    /// The request ended.
    Done(Outcome),
}

/// Why an answer was refused, in the provider's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of content that it was refused for, for instance `cyber` or `SAFETY`.
    pub category: Option<String>,
    /// An explanation for people.
    pub explanation: Option<String>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It has an answer.
    Finished(StopReason),
    /// It has none, or only a part of one.
    Failed(Error),
    /// Somebody cancelled it.
    Cancelled,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// The limit of output tokens, or of the context, was reached.
    MaxTokens,
    /// A stop sequence of the body came up.
    StopSequence,
    /// The model or a filter of the provider refused.
    Refusal,
    /// The provider paused a long turn: the same history goes on with it. A session asks again by
    /// itself.
    Paused,
    /// A hook stopped the turn, with this reason.
    Stopped(String),
    /// Another reason, in the provider's word.
    Other(String),
}

/// A complete tool call of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments, always an object; or the text that is not one, with what is wrong with it.
    pub input: Result<Value, MalformedInput>,
}

/// Arguments that are not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedInput {
    /// The text of the model.
    pub text: String,
    /// The mistake, as one phrase.
    pub problem: String,
}

/// The answer of a model in one round: complete, or as far as it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Text, thinking and complete tool calls, in order. A call with malformed arguments is here
    /// with its text under the key `_malformed`, so that the history shows the model what it wrote.
    pub blocks: Vec<Block>,
    /// The complete tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The tokens it took, also if it is not complete.
    pub usage: Usage,
    /// Why it was refused, if the provider says so.
    pub refusal: Option<Refusal>,
}

impl StopReason {
    /// The stable name.
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
