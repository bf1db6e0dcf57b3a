//! The story of a conversation.

use std::sync::Arc;

use super::Share;
use crate::provider::WireFormat;

/// The stories of all conversations.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stories {
    /// The conversations, in the order of their first requests.
    pub stories: Vec<Story>,
    /// The log formats found, each with the number of its requests.
    pub forms: Vec<(&'static str, usize)>,
    /// The number of lines and documents that contain no request or cannot be read.
    pub passed_over: usize,
    /// The first line that is cut off or not JSON.
    pub unreadable: Option<Place>,
    /// The number of lines that are cut off or not JSON.
    pub unreadable_lines: usize,
    /// The number of conversations closed early because too many were open.
    pub closed_early: usize,
    /// The number of other conversations without findings, which are not reported.
    pub untold: usize,
}

impl Stories {
    /// Returns `true` if a story reports something to fix.
    pub fn has_findings(&self) -> bool {
        self.stories.iter().any(Story::has_findings)
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.stories.iter().map(|story| story.requests).sum()
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as named by the caller.
    pub file: Arc<str>,
    /// The line, counted from 1. For a document with several requests, the line on which it begins.
    pub line: usize,
}

/// One conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Story {
    /// The place of the first request.
    pub first: Place,
    /// The place of the last request.
    pub last: Place,
    /// The wire format.
    pub wire: WireFormat,
    /// The models, in order of appearance.
    pub models: Vec<Arc<str>>,
    /// The number of requests, including retries.
    pub requests: usize,
    /// The number of requests that repeat the previous one exactly.
    pub retries: usize,
    /// The number of requests that contain only a beginning of an earlier one: they are out of
    /// order, or were sent again from an earlier point.
    pub earlier: usize,
    /// The number of requests that the provider refused, according to the log.
    pub refused: usize,
    /// The message of the first refusal.
    pub refusal: Option<String>,
    /// The way it began.
    pub origin: Origin,
    /// The places where the prefix stopped being append-only, in the order of their first
    /// occurrence.
    pub breaks: Vec<Break>,
    /// The number of breaks at further places, which are only counted.
    pub more_breaks: usize,
    /// The points where a summary replaced the history.
    pub compactions: Vec<Compaction>,
    /// Losses of thinking.
    pub thinking: Vec<ThinkingLoss>,
    /// Messages that cause every later request to be refused.
    pub poison: Vec<Poison>,
    /// The provider's token counts, compared with the prediction.
    pub counted: Counted,
    /// Sizes over time.
    pub growth: Growth,
    /// The number of requests without breakpoints whose prefix is long enough to be cached, at a
    /// server that caches only at breakpoints.
    pub unmarked: usize,
    /// `true` if the log contains whole request bodies; `false` if it contains only messages,
    /// without system prompt and tools.
    pub has_bodies: bool,
}

impl Story {
    /// Returns `true` if it reports something to fix.
    pub fn has_findings(&self) -> bool {
        self.breaks.iter().any(Break::is_costly)
            || !self.thinking.is_empty()
            || !self.poison.is_empty()
            || self.counted.missed.is_some()
    }

    /// Returns the tokens that were read again, and their cost in US dollars if the price is known.
    pub fn lost(&self) -> Loss {
        let breaks = self.breaks.iter().map(|found| found.loss);
        breaks.fold(Loss::default(), Loss::plus)
    }
}

/// The beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It began with a message of its own.
    Began,
    /// It branched off from another conversation.
    Fork {
        /// The index of that conversation among the stories.
        story: usize,
        /// The number of messages that both have in common.
        shared: usize,
    },
    /// It began with a summary of an earlier conversation.
    Summary,
}

/// Tokens that were read again, and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loss {
    /// The number of tokens.
    pub tokens: u64,
    /// The number of requests.
    pub requests: usize,
    /// The cost in US dollars; `None` if a price is not known.
    pub dollars: Option<f64>,
}

impl Loss {
    pub(super) fn plus(self, other: Loss) -> Loss {
        let dollars = match (self.dollars, other.dollars) {
            (Some(a), Some(b)) => Some(a + b),
            (one, None) | (None, one) => one,
        };
        Loss {
            tokens: self.tokens + other.tokens,
            requests: self.requests + other.requests,
            dollars,
        }
    }
}

/// A place where a request differs from the beginning that it should share with the previous one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Break {
    /// The change.
    pub change: Change,
    /// The place in the body, for example `system[0]` or `messages[3].content[0].text`.
    pub at: String,
    /// The offset of the first differing byte in the text.
    pub byte: Option<usize>,
    /// The old text, beginning shortly before the change.
    pub before: Option<String>,
    /// The new text at the same place.
    pub after: Option<String>,
    /// The number of the first request that differs; the conversation's first request is 1.
    pub request: usize,
    /// The place of that request.
    pub place: Place,
    /// The cost: requests, tokens, and dollars.
    pub loss: Loss,
    /// The reason why nothing was lost, if so.
    pub unpriced: Option<Unpriced>,
    /// The number of requests that made this change.
    pub times: usize,
}

impl Break {
    /// Returns `true` if it caused tokens to be read again.
    pub fn is_costly(&self) -> bool {
        self.loss.tokens > 0
    }
}

/// The reasons why a change costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpriced {
    /// No breakpoint asks Anthropic's servers to cache anything.
    NotCached,
    /// The text after the change is too short for any cache.
    TooShort,
    /// The cache had expired anyway.
    Expired,
}

/// The kinds of changes of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A date or a time.
    Time,
    /// An id, such as a UUID or a long number.
    Id,
    /// A tool's definition.
    Tool(String),
    /// The order of tools.
    ToolOrder,
    /// Added or removed tools.
    ToolSet {
        /// The names of added tools.
        added: Vec<String>,
        /// The names of removed tools.
        removed: Vec<String>,
    },
    /// The system prompt.
    System,
    /// A message that was rewritten.
    Message,
    /// Removed signatures or blocks of thinking.
    Thinking,
    /// The order of object members.
    KeyOrder,
    /// Removed messages, with their number.
    Removed(usize),
    /// Inserted messages, with their number.
    Inserted(usize),
    /// A setting outside the conversation that affects the cache.
    Setting(&'static str),
    /// The model.
    Model {
        /// The previous model.
        from: Arc<str>,
        /// The new model.
        to: Arc<str>,
    },
}

impl Change {
    /// Returns the stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Change::Time => "time",
            Change::Id => "id",
            Change::Tool(_) => "tool",
            Change::ToolOrder => "tool-order",
            Change::ToolSet { .. } => "tool-set",
            Change::System => "system",
            Change::Message => "message",
            Change::Thinking => "thinking",
            Change::KeyOrder => "key-order",
            Change::Removed(_) => "removed",
            Change::Inserted(_) => "inserted",
            Change::Setting(_) => "setting",
            Change::Model { .. } => "model",
        }
    }
}

/// A replacement of the history by a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of the first request with the summary.
    pub request: usize,
    /// The number of tokens in the history before.
    pub before: u64,
    /// The number of tokens in the history after.
    pub after: u64,
}

/// A loss of thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinkingLoss {
    /// The kind of loss.
    pub kind: ThinkingLossKind,
    /// The number of the first request concerned.
    pub request: usize,
    /// The place of that request.
    pub place: Place,
    /// The place in the body.
    pub at: String,
    /// The number of requests concerned.
    pub requests: usize,
}

/// The ways in which thinking is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkingLossKind {
    /// Blocks that had been sent before, or that an answer contained, were removed.
    Dropped,
    /// Blocks signed by one model are sent to another.
    OtherModel {
        /// The model that signed them.
        from: Arc<str>,
        /// The model that they are sent to.
        to: Arc<str>,
    },
    /// The blocks before the thinking changed, and the model binds thinking to them.
    Unbound,
}

/// A message that causes every later request to be refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poison {
    /// The code of the rule that detects it.
    pub rule: &'static str,
    /// The error in words.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place of the message in the body: `messages[3]`.
    pub at: String,
    /// The number of further messages with the same error.
    pub also: usize,
    /// The number of the first request that contains it.
    pub request: usize,
    /// The place of that request.
    pub place: Place,
    /// The number of requests that contain it.
    pub requests: usize,
    /// The number of the first request without it, if the session continued without it.
    pub mended: Option<usize>,
}

/// The provider's token counts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Counted {
    /// The number of answers whose usage is in the log.
    pub answers: usize,
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Input tokens that came from a cache.
    pub read: u64,
    /// Input tokens that were written to a cache.
    pub written: u64,
    /// Output tokens.
    pub output: u64,
    /// Requests with far fewer cached tokens than predicted.
    pub missed: Option<Missed>,
    /// Requests after a pause in which the cache expired.
    pub expired: Option<Expired>,
}

/// Predicted cache hits that the provider did not count.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missed {
    /// The number of the first request.
    pub request: usize,
    /// The place of that request.
    pub place: Place,
    /// The number of tokens predicted for it.
    pub predicted: u64,
    /// The number of tokens that the provider counted for it.
    pub counted: u64,
    /// The total loss: all tokens that were read again, the requests, and the cost.
    pub loss: Loss,
}

/// Caches that expired during a pause.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expired {
    /// The number of the first request.
    pub request: usize,
    /// The longest pause, in seconds.
    pub pause: u64,
    /// The loss: tokens, requests, and cost.
    pub loss: Loss,
}

/// Sizes over time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Growth {
    /// A point for each request; in long conversations, for every second, fourth, … request.
    pub points: Vec<Point>,
    /// The messages that added the most, the largest first.
    pub steepest: Vec<Step>,
    /// The context window of the last model, in tokens.
    pub window: Option<u64>,
    /// The average number of tokens that the last requests added.
    pub per_request: Option<u64>,
    /// `true` if that average is of the provider's own counts, not of estimates.
    pub is_counted: bool,
    /// The number of requests until the context window is full, at that pace.
    pub requests_left: Option<u64>,
}

/// The size of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// The number of the request.
    pub request: usize,
    /// Tokens by part, in the order of [`Share::ALL`].
    pub tokens: [u64; 4],
    /// Input tokens that the provider counted.
    pub counted: Option<u64>,
    /// Tokens from a cache, as counted or else as predicted.
    pub cached: u64,
}

impl Point {
    /// Returns the total number of tokens.
    pub fn total(&self) -> u64 {
        self.tokens.iter().sum()
    }
}

/// A message that made a request grow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the first request that contains it.
    pub request: usize,
    /// The place in the body.
    pub at: String,
    /// The part that it belongs to.
    pub share: Share,
    /// The role, or the name of a tool.
    pub label: Arc<str>,
    /// The number of its tokens.
    pub tokens: u64,
}
