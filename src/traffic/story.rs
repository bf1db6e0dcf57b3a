//! The story of a conversation.

use std::sync::Arc;

use super::Share;
use crate::provider::WireFormat;

/// The stories of all conversations that were read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stories {
    /// The conversations, in the order of their first requests.
    pub stories: Vec<Story>,
    /// The forms that were read, each with the number of requests.
    pub forms: Vec<(&'static str, usize)>,
    /// Lines and documents that hold no request, or cannot be read.
    pub passed_over: usize,
    /// The first line that is cut off or no JSON.
    pub unreadable: Option<Place>,
    /// The number of lines that are cut off or no JSON.
    pub unreadable_lines: usize,
    /// The number of conversations that were closed early, because too many were open.
    pub closed_early: usize,
    /// The number of further conversations without findings, which are not reported.
    pub untold: usize,
}

impl Stories {
    /// Returns `true` if anything in it ought to be fixed.
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
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The one-based line; of a document with many requests, the line on which the document begins.
    pub line: usize,
}

/// One conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Story {
    /// The first request.
    pub first: Place,
    /// The last request.
    pub last: Place,
    /// The wire format.
    pub wire: WireFormat,
    /// The models, in the order in which they came.
    pub models: Vec<Arc<str>>,
    /// The number of requests, retries included.
    pub requests: usize,
    /// The requests that say exactly what the one before said.
    pub retries: usize,
    /// The requests that say less than one before them: out of order, or sent again from an earlier
    /// point.
    pub earlier: usize,
    /// The requests that the provider refused, by the log.
    pub refused: usize,
    /// The words of the first refusal.
    pub refusal: Option<String>,
    /// How it began.
    pub origin: Origin,
    /// Places at which the prefix stopped being append-only, in the order in which they were first
    /// seen.
    pub breaks: Vec<Break>,
    /// The breaks of further places, which are counted only.
    pub more_breaks: usize,
    /// Points at which a summary replaced the history.
    pub compactions: Vec<Compaction>,
    /// Losses of thinking.
    pub thinking: Vec<ThinkingLoss>,
    /// Messages for which every later request is refused.
    pub poison: Vec<Poison>,
    /// The tokens that the provider counted, beside what the rules predict.
    pub counted: Counted,
    /// Sizes over time.
    pub growth: Growth,
    /// The number of requests to a server that keeps what breakpoints ask for, with a prefix that
    /// is long enough and none.
    pub unmarked: usize,
    /// `true` if the log holds whole request bodies; `false` if it holds messages, without system
    /// prompt and tools.
    pub has_bodies: bool,
}

impl Story {
    /// Returns `true` if anything in it ought to be fixed.
    pub fn has_findings(&self) -> bool {
        self.breaks.iter().any(Break::is_costly)
            || !self.thinking.is_empty()
            || !self.poison.is_empty()
            || self.counted.missed.is_some()
    }

    /// Returns the tokens that were read again, and what that cost in US dollars if the price is
    /// known.
    pub fn lost(&self) -> Loss {
        let breaks = self.breaks.iter().map(|found| found.loss);
        breaks.fold(Loss::default(), Loss::plus)
    }
}

/// How a conversation began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// With a message of its own.
    Began,
    /// As a second end of another conversation.
    Fork {
        /// The conversation, as an index into the stories.
        story: usize,
        /// The number of messages that both share.
        shared: usize,
    },
    /// With a summary of something that was said before.
    Summary,
}

/// Tokens that were read again, and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loss {
    /// The tokens.
    pub tokens: u64,
    /// The requests.
    pub requests: usize,
    /// The US dollars; `None` if a price is not known.
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

/// A place at which a request is not what the one before it began with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Break {
    /// The change.
    pub change: Change,
    /// The place in the body: `system[0]`, `messages[3].content[0].text`.
    pub at: String,
    /// The first byte of the text that differs.
    pub byte: Option<usize>,
    /// The old text, from a little before the change.
    pub before: Option<String>,
    /// The new text.
    pub after: Option<String>,
    /// The number of the first request that differs; the conversation's first is 1.
    pub request: usize,
    /// Where that request is.
    pub place: Place,
    /// The cost: requests, tokens, dollars.
    pub loss: Loss,
    /// Why nothing was lost, if so.
    pub unpriced: Option<Unpriced>,
    /// The number of requests that changed it.
    pub times: usize,
}

impl Break {
    /// Returns `true` if tokens were read again because of it.
    pub fn is_costly(&self) -> bool {
        self.loss.tokens > 0
    }
}

/// A reason for which a change loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpriced {
    /// No breakpoint asks Anthropic's servers to keep anything.
    NotCached,
    /// So little was after the change that no cache keeps it.
    TooShort,
    /// So much time passed that the cache had expired anyway.
    Expired,
}

/// The kinds of changes of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A date or a time.
    Time,
    /// An id: a UUID or a long number.
    Id,
    /// A tool's definition.
    Tool(String),
    /// Tools in another order.
    ToolOrder,
    /// Tools that came or went.
    ToolSet {
        /// Names of those that came.
        added: Vec<String>,
        /// Names of those that went.
        removed: Vec<String>,
    },
    /// The system prompt.
    System,
    /// A message, written in another way.
    Message,
    /// Signatures or blocks of thinking that a message lost.
    Thinking,
    /// Members of an object in another order.
    KeyOrder,
    /// Messages that were left out.
    Removed(usize),
    /// Messages that were put in between.
    Inserted(usize),
    /// A setting beside the conversation on which the cache depends.
    Setting(&'static str),
    /// Another model.
    Model {
        /// The model before.
        from: Arc<str>,
        /// The model now.
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

/// A history that was replaced by a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of the first request with the summary.
    pub request: usize,
    /// The tokens of the history before.
    pub before: u64,
    /// The tokens of the history after.
    pub after: u64,
}

/// A loss of thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinkingLoss {
    /// The kind of loss.
    pub kind: ThinkingLossKind,
    /// The number of the first request.
    pub request: usize,
    /// Where it is.
    pub place: Place,
    /// The place in the body.
    pub at: String,
    /// The number of requests.
    pub requests: usize,
}

/// The ways in which thinking is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkingLossKind {
    /// Blocks that were sent before, or that the answer held, are gone.
    Dropped,
    /// Blocks that one model signed are sent to another.
    OtherModel {
        /// The model that signed them.
        from: Arc<str>,
        /// The model that they are sent to.
        to: Arc<str>,
    },
    /// The blocks before it changed, and the model binds it to them.
    Unbound,
}

/// A message for which every later request is refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poison {
    /// The code of the rule that finds it.
    pub rule: &'static str,
    /// The flaw in words.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place of the message in the body: `messages[3]`.
    pub at: String,
    /// The number of the first request that holds it.
    pub request: usize,
    /// Where that is.
    pub place: Place,
    /// The requests that hold it.
    pub requests: usize,
    /// The request that came after the last one with it, if the session went on without.
    pub mended: Option<usize>,
}

/// The tokens that the provider counted.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Counted {
    /// The answers whose usage is in the log.
    pub answers: usize,
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Input tokens that came from a cache.
    pub read: u64,
    /// Input tokens that were written to a cache.
    pub written: u64,
    /// Output tokens.
    pub output: u64,
    /// Requests for which the rules predict a hit of the cache, and the provider counted much less.
    pub missed: Option<Missed>,
    /// Requests before which so much time passed that the cache had expired.
    pub expired: Option<Expired>,
}

/// Hits of the cache that the rules predict and the provider did not count.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missed {
    /// The number of the first request.
    pub request: usize,
    /// Where it is.
    pub place: Place,
    /// The tokens that the rules predict for it.
    pub predicted: u64,
    /// The tokens that the provider counted for it.
    pub counted: u64,
    /// All tokens that were read again, the requests and the price.
    pub loss: Loss,
}

/// Caches that expired in a pause.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expired {
    /// The number of the first request.
    pub request: usize,
    /// The longest pause, in seconds.
    pub pause: u64,
    /// Tokens, requests and price.
    pub loss: Loss,
}

/// Sizes over time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Growth {
    /// A point for each request; of long conversations for every second, fourth … one.
    pub points: Vec<Point>,
    /// The messages that added the most, the largest first.
    pub steepest: Vec<Step>,
    /// The context window of the last model, in tokens.
    pub window: Option<u64>,
    /// The tokens that a request adds, over the last ones.
    pub per_request: Option<u64>,
    /// The requests until the context window is full, at that pace.
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
    /// Tokens that came from a cache: as counted, or else as predicted.
    pub cached: u64,
}

impl Point {
    /// Returns the tokens of all parts.
    pub fn total(&self) -> u64 {
        self.tokens.iter().sum()
    }
}

/// A message that made a request grow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the first request that holds it.
    pub request: usize,
    /// The place in the body.
    pub at: String,
    /// The part that it belongs to.
    pub share: Share,
    /// The role, or the name of a tool.
    pub label: Arc<str>,
    /// Its tokens.
    pub tokens: u64,
}
