//! The stories of conversations, as reported.

use std::sync::Arc;

use super::Share;
use crate::provider::WireFormat;

/// The stories of all conversations in some files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stories {
    /// The stories, in the order of their first requests.
    pub stories: Vec<Story>,
    /// The formats of the logs, each with its number of requests.
    pub forms: Vec<(&'static str, usize)>,
    /// The number of lines and documents that contain no request or cannot be read.
    pub passed_over: usize,
    /// The first line that is truncated or not JSON.
    pub unreadable: Option<Place>,
    /// The number of lines that are truncated or not JSON.
    pub unreadable_lines: usize,
    /// The number of conversations that were closed early because too many were open.
    pub closed_early: usize,
    /// The number of conversations without findings that are not in `stories`.
    pub untold: usize,
}

impl Stories {
    /// Returns `true` if any story reports a problem that should be fixed.
    pub fn has_findings(&self) -> bool {
        self.stories.iter().any(Story::has_findings)
    }

    /// Returns the total number of requests.
    pub fn requests(&self) -> usize {
        self.stories.iter().map(|story| story.requests).sum()
    }
}

/// A location in a log file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as named by the caller.
    pub file: Arc<str>,
    /// The line, counted from 1. If a document contains several requests, the line on which the
    /// request begins.
    pub line: usize,
}

/// The story of one conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Story {
    /// The location of the first request.
    pub first: Place,
    /// The location of the last request.
    pub last: Place,
    /// The wire format.
    pub wire: WireFormat,
    /// The models, in order of appearance.
    pub models: Vec<Arc<str>>,
    /// The number of requests, including retries.
    pub requests: usize,
    /// The number of requests that are identical to the previous one.
    pub retries: usize,
    /// The number of requests that contain only the beginning of an earlier one, because they are
    /// out of order or were sent again from an earlier point.
    pub earlier: usize,
    /// The number of requests that the provider rejected, according to the log.
    pub refused: usize,
    /// The error message of the first rejection.
    pub refusal: Option<String>,
    /// The way the conversation began.
    pub origin: Origin,
    /// The breaks, in the order of their first occurrence. At a break, the prefix stopped being
    /// append-only.
    pub breaks: Vec<Break>,
    /// The number of further breaks, which are not reported individually.
    pub more_breaks: usize,
    /// The points at which a summary replaced the history.
    pub compactions: Vec<Compaction>,
    /// The losses of thinking.
    pub thinking: Vec<ThinkingLoss>,
    /// The messages that cause all later requests to be rejected.
    pub poison: Vec<Poison>,
    /// The provider's token counts, compared with the prediction.
    pub counted: Counted,
    /// The sizes of the requests over time.
    pub growth: Growth,
    /// The number of requests without breakpoints, although their prefix is long enough to be
    /// cached, and the server caches only at breakpoints.
    pub unmarked: usize,
    /// `true` if the log contains whole request bodies; `false` if it contains only the messages,
    /// without the system prompt and tools.
    pub has_bodies: bool,
}

impl Story {
    /// Returns `true` if the story reports a problem that should be fixed.
    pub fn has_findings(&self) -> bool {
        self.breaks.iter().any(Break::is_costly)
            || !self.thinking.is_empty()
            || !self.poison.is_empty()
            || self.counted.missed.is_some()
    }

    /// Returns the number of tokens that were processed again because they were not read from the
    /// cache, the number of requests, and the cost in US dollars if the price is known.
    pub fn lost(&self) -> Loss {
        let breaks = self.breaks.iter().map(|found| found.loss);
        breaks.fold(Loss::default(), Loss::plus)
    }
}

/// The way a conversation began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The conversation began with its own message.
    Began,
    /// The conversation began as a branch of a different one.
    Fork {
        /// The index of the other conversation's story.
        story: usize,
        /// The number of messages that both have in common.
        shared: usize,
    },
    /// The conversation began with a summary of an earlier one.
    Summary,
}

/// Tokens that were processed again because they were not read from the cache, and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loss {
    /// The number of tokens.
    pub tokens: u64,
    /// The number of requests in which this happened.
    pub requests: usize,
    /// The additional cost in US dollars; `None` if a price is unknown.
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

/// A break: a location where a request differs from the previous one, although it should begin with
/// the same content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Break {
    /// The kind of change.
    pub change: Change,
    /// The location in the body, for example `system[0]` or `messages[3].content[0].text`.
    pub at: String,
    /// The offset of the first differing byte in the text, if the change is in a string.
    pub byte: Option<usize>,
    /// The old text, starting shortly before the change.
    pub before: Option<String>,
    /// The new text in the same location.
    pub after: Option<String>,
    /// The number of the first request that differs. Requests are counted from 1.
    pub request: usize,
    /// The location of that request.
    pub place: Place,
    /// The tokens that were processed again, the requests, and the cost.
    pub loss: Loss,
    /// The reason nothing was lost; `None` if tokens were lost.
    pub unpriced: Option<Unpriced>,
    /// The number of requests with this change.
    pub times: usize,
}

impl Break {
    /// Returns `true` if the break caused tokens to be processed again.
    pub fn is_costly(&self) -> bool {
        self.loss.tokens > 0
    }
}

/// The reasons why a break may cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpriced {
    /// No breakpoint asks Anthropic's servers to cache anything.
    NotCached,
    /// The previous request is too short to be cached.
    TooShort,
    /// The cache entry had already expired.
    Expired,
}

/// The kinds of changes in a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A date or time changed.
    Time,
    /// An ID changed, such as a UUID or a long number.
    Id,
    /// The definition of the tool with this name changed.
    Tool(String),
    /// The order of the tools changed.
    ToolOrder,
    /// Tools were added or removed.
    ToolSet {
        /// The names of the added tools.
        added: Vec<String>,
        /// The names of the removed tools.
        removed: Vec<String>,
    },
    /// The system prompt changed.
    System,
    /// A message was rewritten.
    Message,
    /// Signatures or thinking blocks were removed.
    Thinking,
    /// The order of object members changed.
    KeyOrder,
    /// This many messages were removed.
    Removed(usize),
    /// This many messages were inserted.
    Inserted(usize),
    /// A setting outside the conversation changed, and the setting affects the cache. Contains the
    /// setting's name.
    Setting(&'static str),
    /// The model changed.
    Model {
        /// The previous model.
        from: Arc<str>,
        /// The new model.
        to: Arc<str>,
    },
}

impl Change {
    /// Returns the stable name of the kind of change.
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

/// A point at which a summary replaced the history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of the first request with the summary.
    pub request: usize,
    /// The number of tokens in the history before the summary.
    pub before: u64,
    /// The number of tokens in the history after the summary.
    pub after: u64,
}

/// A loss of thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinkingLoss {
    /// The kind of loss.
    pub kind: ThinkingLossKind,
    /// The number of the first request affected.
    pub request: usize,
    /// The location of that request.
    pub place: Place,
    /// The location in the body.
    pub at: String,
    /// The number of requests affected.
    pub requests: usize,
}

/// The ways thinking is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkingLossKind {
    /// Thinking blocks that had been sent before, or that an answer contained, were removed.
    Dropped,
    /// Thinking blocks signed by one model are sent to another.
    OtherModel {
        /// The model that signed them.
        from: Arc<str>,
        /// The model to which they are sent.
        to: Arc<str>,
    },
    /// The content before a thinking block changed, although the model binds thinking to it.
    Unbound,
}

/// A message that causes all later requests to be rejected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poison {
    /// The code of the rule that detects it.
    pub rule: &'static str,
    /// The message of the finding.
    pub message: String,
    /// The help of the finding, if it has one.
    pub help: Option<String>,
    /// The location of the message in the body, such as `messages[3]`.
    pub at: String,
    /// The number of further messages with the same error.
    pub also: usize,
    /// The number of the first request that contains the message.
    pub request: usize,
    /// The location of that request.
    pub place: Place,
    /// The number of requests with the message.
    pub requests: usize,
    /// The number of the first request without the message, if the conversation continued without
    /// it.
    pub mended: Option<usize>,
}

/// The token counts that the provider reported, added up over all answers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Counted {
    /// The number of answers whose usage is in the log.
    pub answers: usize,
    /// Input tokens, including cached ones.
    pub input: u64,
    /// The number of answers whose usage says how many tokens were read from a cache.
    pub told: usize,
    /// The input tokens for the answers counted in `told`.
    pub told_input: u64,
    /// Input tokens read from a cache.
    pub read: u64,
    /// Input tokens written to a cache.
    pub written: u64,
    /// Output tokens.
    pub output: u64,
    /// Requests for which the provider reported far fewer cached tokens than predicted, if there
    /// are any.
    pub missed: Option<Missed>,
    /// Requests after a pause in which the cache expired, if there are any.
    pub expired: Option<Expired>,
    /// The number of requests that should have read tokens from the cache. Counts only requests to
    /// models whose answers never report cached tokens.
    pub uncached: usize,
}

/// Cache hits that were predicted, but that the provider did not report: fewer than half of the
/// predicted tokens came from the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missed {
    /// The number of the first request.
    pub request: usize,
    /// The location of that request.
    pub place: Place,
    /// The number of cached tokens predicted for that request.
    pub predicted: u64,
    /// The number of cached tokens that the provider reported for that request.
    pub counted: u64,
    /// The time between that request and the previous one in seconds, if the log contains it.
    pub pause: Option<u64>,
    /// The numbers of the requests, up to 200.
    pub requests: Vec<usize>,
    /// The total loss: the tokens that were processed again, the requests, and the cost.
    pub loss: Loss,
}

/// Cache entries that expired during pauses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expired {
    /// The number of the first request whose cache entry had expired.
    pub request: usize,
    /// The longest pause in seconds.
    pub pause: u64,
    /// The numbers of the requests, up to 200.
    pub requests: Vec<usize>,
    /// The total loss: the tokens, the requests, and the cost.
    pub loss: Loss,
}

/// The sizes of a conversation's requests over time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Growth {
    /// A point for each request or, in a long conversation, for every second, fourth, … request.
    pub points: Vec<Point>,
    /// The messages that added the most tokens, the largest first.
    pub steepest: Vec<Step>,
    /// The context window of the last model, in tokens.
    pub window: Option<u64>,
    /// The number of tokens that each request adds, if the requests grow: the median of the last
    /// steps, not including steps before the last summary.
    pub per_request: Option<u64>,
    /// The number of steps from which `per_request` is computed.
    pub steps: usize,
    /// `true` if the provider counted both the first and the last request.
    pub is_counted: bool,
    /// The size of the last request before the last summary.
    pub summary_at: Option<u64>,
    /// The estimated size of the messages in a session file, if the provider counted so much less
    /// that the agent cannot have sent all of them in its last request.
    pub unsent: Option<u64>,
    /// The number of requests, growing by `per_request` each, until the context window is full or,
    /// after a summary, until the size `summary_at` is reached again.
    pub requests_left: Option<u64>,
}

/// The size of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// The number of the request.
    pub request: usize,
    /// The number of tokens in each part, in the order of [`Share::ALL`], corrected by the
    /// provider's counts.
    pub tokens: [u64; 4],
    /// The number of tokens that the provider counted in addition to `tokens`, for example for a
    /// system prompt that the log does not contain.
    pub other: u64,
    /// The number of input tokens that the provider reported, if it did.
    pub counted: Option<u64>,
    /// The number of tokens read from a cache, as reported or else as predicted.
    pub cached: u64,
}

impl Point {
    /// Returns the total number of tokens.
    pub fn total(&self) -> u64 {
        self.tokens.iter().sum::<u64>() + self.other
    }
}

/// A message that added many tokens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the first request with the message.
    pub request: usize,
    /// The location in the body.
    pub at: String,
    /// The part to which the message belongs.
    pub share: Share,
    /// The role of the message, or a tool name.
    pub label: Arc<str>,
    /// The number of tokens in the message.
    pub tokens: u64,
}
