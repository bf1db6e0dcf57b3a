//! A session as JSON Lines: what was said, in the order in which it became true.
//!
//! Input: bytes that a [`Journal`](crate::world::Journal) kept, or [`Entry`]s. Output: lines to append, and the history
//! that they tell. The newline is the commit point: what stands behind the last one was never said. Every line is kept
//! as it is, so that saving what was loaded changes no byte, also if a newer program wrote keys that nothing reads
//! here. Knows nothing of files: who opens one cuts [`Loaded::tail_bytes`] off before it appends.
//!
//! ```
//! use reqc::conversation::log::{Entry, Log};
//! use reqc::conversation::{Block, Message, Role};
//!
//! let mut log = Log::new("Claude Chat");
//! let line = log.append(Entry::Message(Message { role: Role::User, blocks: vec![Block::Text("hi".into())], item: None }));
//! assert_eq!(line, "{\"kind\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n");
//!
//! let bytes = format!("{}{{\"kind\":\"mess", log.to_text());
//! let loaded = Log::parse(bytes.as_bytes()).expect("what is not complete does not count");
//! assert_eq!(loaded.tail_bytes, 13);
//! assert_eq!(loaded.log.expect("the header is complete").history(), log.history());
//! ```

mod read;
mod write;

pub(crate) use write::{MAX_INPUT_DEPTH, block as block_json, depth};

use std::fmt;
use std::sync::Arc;

use super::{Block, Item, Message, Role, Usage};

/// The newest version of logs that this crate knows.
pub const VERSION: u64 = 1;

/// A session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    header: Header,
    lines: Vec<Line>,
    history: Vec<Message>,
    usage: Usage,
}

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The agent's name.
    pub agent: Arc<str>,
    /// When the session began, in the host's words; nothing here reads a clock.
    pub created: Option<Arc<str>>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message was added to the history.
    Message(Message),
    /// A typed system item was added to the history.
    Item(Item),
    /// The last messages and items of the history are taken back: their dispatch failed.
    Retract {
        /// How many.
        messages: usize,
    },
    /// Tokens were spent; added up over the log, also if messages are taken back.
    Usage(Usage),
}

#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// As it stands in the file, with its newline.
    raw: String,
    /// `None` for the header.
    entry: Option<Entry>,
}

/// What bytes held.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The log; `None` if not even the first line is complete: the session never began.
    pub log: Option<Log>,
    /// How many bytes at the end are not a complete line. They must be cut off before anything is appended.
    pub tail_bytes: usize,
}

/// Why bytes are no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogError {
    /// The line, counted from 1.
    pub line: usize,
    /// One lower-case phrase.
    pub message: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LogError {}

impl Log {
    /// The log of a session that begins, with its header.
    pub fn new(agent: impl Into<Arc<str>>) -> Log {
        Log::with_header(Header { agent: agent.into(), created: None })
    }

    /// The log of a session that begins.
    pub fn with_header(header: Header) -> Log {
        let raw = write::header(&header);
        Log::begin(header, raw)
    }

    fn begin(header: Header, raw: String) -> Log {
        Log { header, lines: vec![Line { raw, entry: None }], history: Vec::new(), usage: Usage::default() }
    }

    /// Reads a log. What follows the last newline is not looked at.
    ///
    /// # Errors
    ///
    /// The first complete line that is none of a log.
    pub fn parse(bytes: &[u8]) -> Result<Loaded, LogError> {
        let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let mut log: Option<Log> = None;
        for (index, raw) in bytes[..complete].split_inclusive(|&byte| byte == b'\n').enumerate() {
            let read = match &mut log {
                None => read::header(raw).map(|(header, raw)| log = Some(Log::begin(header, raw))),
                Some(log) => read::entry(raw).and_then(|(entry, raw)| log.replay(entry, raw)),
            };
            read.map_err(|message| LogError { line: index + 1, message })?;
        }
        Ok(Loaded { log, tail_bytes: bytes.len() - complete })
    }

    fn replay(&mut self, entry: Entry, raw: String) -> Result<(), String> {
        match &entry {
            Entry::Retract { messages } if *messages > self.history.len() => {
                let known = self.history.len();
                Err(format!("{messages} messages are taken back, but there are only {known}"))
            }
            _ => {
                self.push(entry, raw);
                Ok(())
            }
        }
    }

    fn push(&mut self, entry: Entry, raw: String) {
        match &entry {
            Entry::Message(message) => self.history.push(message.clone()),
            Entry::Item(item) => self.history.push(item.to_message()),
            Entry::Retract { messages } => self.history.truncate(self.history.len().saturating_sub(*messages)),
            Entry::Usage(usage) => self.usage = self.usage.plus(*usage),
        }
        self.lines.push(Line { raw, entry: Some(entry) });
    }

    /// Adds an entry and gives its complete line, with the newline. An [`Entry::Retract`] takes back no more than there is.
    pub fn append(&mut self, entry: Entry) -> &str {
        let kept: Result<(), std::convert::Infallible> = self.append_kept(entry, |_| Ok(()));
        kept.expect("nothing refuses it");
        self.lines.last().map_or("", |line| &line.raw)
    }

    /// As [`Log::append`], but only once `keep` has the line: what a journal refuses was never said.
    ///
    /// # Errors
    ///
    /// Those of `keep`.
    pub fn append_kept<E>(&mut self, entry: Entry, keep: impl FnOnce(&str) -> Result<(), E>) -> Result<(), E> {
        let entry = match entry {
            Entry::Retract { messages } => Entry::Retract { messages: messages.min(self.history.len()) },
            entry => entry,
        };
        let raw = write::entry(&entry);
        keep(&raw)?;
        self.push(entry, raw);
        Ok(())
    }

    /// The history that the log tells. Texts of items are those of the log, never made anew.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The tokens of all answers.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The agent's name.
    pub fn agent(&self) -> &str {
        &self.header.agent
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.lines.iter().filter_map(|line| line.entry.as_ref())
    }

    /// The lines as they stand in the file, each with its newline, the header first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.raw.as_str())
    }

    /// The whole file.
    pub fn to_text(&self) -> String {
        self.lines().collect()
    }

    /// Whether somebody still waits: the last message is the person's, or tool results, without an answer, or the
    /// model's with calls that have no results. Items are not looked at.
    pub fn is_interrupted(&self) -> bool {
        let last = self.history.iter().rev().find(|message| message.item.is_none());
        last.is_some_and(|message| match message.role {
            Role::User => true,
            Role::Assistant => message.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. })),
            Role::System => false,
        })
    }
}

#[cfg(test)]
mod tests;
