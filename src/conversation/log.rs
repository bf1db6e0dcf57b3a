//! A session as JSON Lines, in event order.
//!
//! Input: bytes stored by a [`Journal`](crate::world::Journal), or [`Entry`]s. Output: lines to
//! append, and the history that they describe. A newline commits a line: anything after the last
//! newline is ignored. Every line is kept verbatim, so loading and saving changes no byte, even if
//! a newer program wrote keys that this version does not read. Lines are numbered, so a line lost
//! in an editor or a merge is detected. This module does not access files: a
//! [`Journal`](crate::world::Journal) removes [`Loaded::tail_bytes`] before it appends.
//!
//! ```
//! use reqc::conversation::log::{Entry, Log};
//! use reqc::conversation::{Block, Message, Role};
//!
//! let mut log = Log::new("Claude Chat");
//! let line = log.append(Entry::Message(Message { role: Role::User, blocks: vec![Block::Text("hi".into())], item: None }));
//! assert_eq!(line, "{\"kind\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"line\":2}\n");
//!
//! let bytes = format!("{}{{\"kind\":\"mess", log.to_text());
//! let loaded = Log::parse(bytes.as_bytes()).expect("what is not complete does not count");
//! assert_eq!(loaded.tail_bytes, 13);
//! assert_eq!(loaded.log.expect("the header is complete").history(), log.history());
//! ```

pub(super) mod read;
pub(super) mod write;

pub use super::cut_off::CutOff;
pub(crate) use write::{MAX_INPUT_DEPTH, block as block_json, depth};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::{Block, Item, ItemKind, Message, Role, SystemLayer, Tool, Usage};

/// The newest version of the log format that this crate supports.
pub const VERSION: u64 = 1;

/// A session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    header: Header,
    lines: Vec<Line>,
    history: Vec<Message>,
    /// The reasons why answers in the history are incomplete, by message index.
    cut_off: BTreeMap<usize, CutOff>,
    /// The typed items in the history, by message index.
    items: BTreeMap<usize, Item>,
    /// If the last message consists of results that arrived one by one, the positions of the calls
    /// that they answer, by ID.
    #[expect(
        clippy::box_collection,
        reason = "keeps the log small compared with the other ways to start a session"
    )]
    collecting: Option<Box<HashMap<Arc<str>, usize>>>,
    usage: Usage,
    instructions: Option<Box<Instructions>>,
    bound: Box<Bound>,
    /// `true` if the history begins with a summary.
    is_summarised: bool,
}

/// The facts that determine which thinking in the history is still bound.
#[derive(Debug, Clone, Default, PartialEq)]
struct Bound {
    /// The number of messages before the last renewal of the instructions.
    from: usize,
    /// The digests of requests whose answers contain thinking, each with the index of the answer.
    sent: Vec<(usize, Sent)>,
}

/// The content, apart from the history, that is the same in every request of a session until the
/// host renews it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instructions {
    /// The agent that uses these instructions.
    pub agent: Arc<str>,
    /// The whole system prompt, exactly as it was sent; blank if there is none.
    pub prompt: Arc<str>,
    /// The tools that are offered to the model.
    pub tools: Vec<Tool>,
    /// The named layers that are part of the prompt.
    pub layers: Vec<SystemLayer>,
    /// In the first instructions of a log: the number of messages exchanged before them, under
    /// different instructions. Ignored in later instructions, which renew the session, so all
    /// messages before them were exchanged under earlier instructions.
    pub bound_from: usize,
}

/// A digest of a request, which shows whether a later request begins with the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The number of parts: tools, blocks of the system prompt, and blocks of messages.
    pub parts: usize,
    /// The digest of the parts, in hexadecimal.
    pub digest: Arc<str>,
}

/// A summary that replaces the beginning of the history when its line is read. The log keeps the
/// replaced lines.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of messages and items that are replaced at the beginning of the history,
    /// including an earlier summary. Of the replaced items, the latest surroundings and the latest
    /// version of each attached file are kept after the summary.
    pub messages: usize,
    /// The exact text that the model sees, as a user message.
    pub text: Arc<str>,
    /// The agent that wrote the summary, if an agent wrote it.
    pub agent: Option<Arc<str>>,
    /// The tokens used for writing the summary. They are added to the session's usage, like those
    /// of an answer.
    pub usage: Usage,
}

impl Summary {
    /// Returns a summary that used no tokens.
    pub fn new(messages: usize, text: impl Into<Arc<str>>) -> Summary {
        Summary {
            messages,
            text: text.into(),
            ..Summary::default()
        }
    }

    /// Returns the message that contains the summary in a history. It has the user's role, because
    /// a model's text about tool results must not be mistaken for text from the host program.
    fn to_message(&self) -> Message {
        Message {
            role: Role::User,
            blocks: vec![Block::Text(Arc::clone(&self.text))],
            item: None,
        }
    }
}

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The time when the session started, as text from the host, because this crate does not read
    /// the clock.
    pub created: Option<Arc<str>>,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message was added to the history.
    Message(Message),
    /// An incomplete answer was added to the history.
    Partial {
        /// The part of the answer that arrived.
        message: Message,
        /// The reason the answer is incomplete.
        cut_off: CutOff,
    },
    /// A tool finished. Its result, a [`Block::ToolResult`], is added to one message with the
    /// results of all calls in the last answer, in call order.
    ToolResult(Block),
    /// A typed system item was added to the history.
    Item(Item),
    /// The system prompt and tools of the next requests. Later instructions replace earlier ones.
    /// Models that bind thinking then no longer get the thinking in earlier messages.
    Instructions(Instructions),
    /// The digest of the request that the next message answers. A model that binds thinking binds
    /// the thinking in that answer to this request.
    Sent(Sent),
    /// The last messages and items were removed from the history because sending them failed, or
    /// because the host removed them.
    Retract {
        /// The number of messages and items.
        messages: usize,
    },
    /// A summary replaces the beginning of the history.
    Summary(Summary),
    /// Tokens were used. The counts are added up over the whole log, even if messages are removed.
    Usage(Usage),
}

#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// The line as it is in the file, with its newline.
    raw: String,
    /// The parsed entry; `None` for the header.
    entry: Option<Entry>,
}

/// The result of parsing a log, up to the last complete line.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The log; `None` if even the first line is incomplete, so the session has not begun.
    pub log: Option<Log>,
    /// The number of bytes after the last complete line.
    pub tail_bytes: usize,
}

/// The reason why bytes are not a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogError {
    /// The line, counted from 1.
    pub line: usize,
    /// The message: one phrase that begins in lower case.
    pub message: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LogError {}

#[cfg(feature = "runtime")]
impl LogError {
    /// Returns the message for a file. An error in the first line means that the file is not a
    /// session; an error in a later line means that the session is damaged.
    pub(crate) fn of_file(&self, shown: &str) -> String {
        match self.line {
            1 => format!("`{shown}` is not a session: {self}"),
            _ => format!("`{shown}` is a session with a damaged line: {self}"),
        }
    }
}

/// Returns the positions of an answer's calls by ID. If several calls have the same ID, returns the
/// position of the first.
fn places_of_calls(answer: Option<&Message>) -> HashMap<Arc<str>, usize> {
    let mut places = HashMap::new();
    for id in answer
        .iter()
        .flat_map(|it| &it.blocks)
        .filter_map(Block::call_id)
    {
        let next = places.len();
        places.entry(Arc::clone(id)).or_insert(next);
    }
    places
}

/// Checks, as far as possible, that no line is missing before this one. Each line contains its
/// number, but may be at a later position, because two sessions may have written to the same
/// journal. Older programs wrote no numbers; in their logs, the call for a result must be in an
/// earlier line. `calls` contains the IDs of earlier calls.
fn follows(
    entry: &Entry,
    number: Option<u64>,
    at: usize,
    calls: &mut HashSet<Arc<str>>,
) -> read::Read<()> {
    if let Entry::Message(message) | Entry::Partial { message, .. } = entry {
        calls.extend(message.blocks.iter().flat_map(ids_of_call));
    }
    let what = match (number, entry) {
        (Some(number), _) if number > at as u64 => match number - at as u64 {
            1 => {
                format!("a line before it is missing (this was line {number} when it was written)")
            }
            missing => {
                format!(
                    "{missing} lines before it are missing (this was line {number} when it was written)"
                )
            }
        },
        (None, Entry::ToolResult(result))
            if result.result_id().is_some_and(|id| !calls.contains(id)) =>
        {
            "the line with its call is missing".to_owned()
        }
        _ => return Ok(()),
    };
    Err(
        format!("{what}: restore the removed lines, or remove this line and all lines after it")
            .into(),
    )
}

/// Returns the IDs by which results can refer to a block; empty if the block is not a call.
fn ids_of_call(block: &Block) -> Vec<Arc<str>> {
    match block {
        Block::ToolUse { id, .. } => vec![Arc::clone(id)],
        Block::Provider(own) => ["id", "call_id"]
            .iter()
            .filter_map(|name| own.data.get(name)?.as_str().map(Into::into))
            .collect(),
        _ => Vec::new(),
    }
}

/// Splits a map into the entries below an index, and the others.
fn parted<T>(mut all: BTreeMap<usize, T>, at: usize) -> (BTreeMap<usize, T>, BTreeMap<usize, T>) {
    let rest = all.split_off(&at);
    (all, rest)
}

/// Returns the items that a summary keeps: the latest surroundings, and the latest version of each
/// attached file.
fn latest(items: BTreeMap<usize, Item>) -> Vec<Item> {
    let mut seen = HashSet::new();
    let mut latest: Vec<Item> = Vec::new();
    for item in items.into_values().rev() {
        let subject = match &item {
            Item::FileAttachment { file_path, .. } => Some(Some(Arc::clone(file_path))),
            item if item.as_surroundings().is_some() => Some(None),
            _ => None,
        };
        if subject.is_some_and(|subject| seen.insert(subject)) {
            latest.push(item);
        }
    }
    latest.reverse();
    latest
}

impl Log {
    /// Creates the log for an agent's new session.
    pub fn new(agent: impl Into<Arc<str>>) -> Log {
        Log::with_header(Header {
            agent: agent.into(),
            created: None,
        })
    }

    /// Creates the log of a new session with this header.
    pub fn with_header(header: Header) -> Log {
        let raw = write::header(&header);
        Log::begin(header, raw)
    }

    fn begin(header: Header, raw: String) -> Log {
        Log {
            header,
            lines: vec![Line { raw, entry: None }],
            history: Vec::new(),
            cut_off: BTreeMap::new(),
            items: BTreeMap::new(),
            collecting: None,
            usage: Usage::default(),
            instructions: None,
            bound: Box::default(),
            is_summarised: false,
        }
    }

    /// Parses a log. Bytes after the last newline are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error for the first complete line that cannot be part of a log.
    pub fn parse(bytes: &[u8]) -> Result<Loaded, LogError> {
        let complete = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut log: Option<Log> = None;
        let mut calls = HashSet::new();
        for (index, raw) in bytes[..complete]
            .split_inclusive(|&byte| byte == b'\n')
            .enumerate()
        {
            let read = match &mut log {
                None => read::header(raw).map(|(header, raw)| log = Some(Log::begin(header, raw))),
                Some(log) => read::entry(raw).and_then(|(entry, number, raw)| {
                    follows(&entry, number, index + 1, &mut calls)?;
                    log.replay(entry, raw)
                }),
            };
            read.map_err(|why| LogError {
                line: index + 1,
                message: why.to_string(),
            })?;
        }
        Ok(Loaded {
            log,
            tail_bytes: bytes.len() - complete,
        })
    }

    /// Returns `true` if the bytes may be the beginning of a log that was cut off within its first
    /// line, so the file contains no data worth keeping.
    pub fn is_cut_header(bytes: &[u8]) -> bool {
        let begin = write::header_begin();
        !bytes.contains(&b'\n')
            && (bytes.starts_with(begin.as_bytes()) || begin.as_bytes().starts_with(bytes))
    }

    fn replay(&mut self, entry: Entry, raw: String) -> read::Read<()> {
        match &entry {
            Entry::Retract { messages } if *messages > self.history.len() => {
                let known = self.history.len();
                Err(format!("{messages} messages are removed, but there are only {known}").into())
            }
            Entry::Summary(summary) if summary.messages > self.history.len() => {
                let known = self.history.len();
                Err(format!(
                    "a summary replaces {} messages, but there are {known}",
                    summary.messages
                )
                .into())
            }
            _ => {
                self.push(entry, raw);
                Ok(())
            }
        }
    }

    fn push(&mut self, entry: Entry, raw: String) {
        match &entry {
            Entry::Usage(usage) => self.usage = self.usage.plus(*usage),
            Entry::ToolResult(result) => self.collect(result.clone()),
            Entry::Message(message) => self.add(message.clone()),
            Entry::Item(item) => {
                self.items.insert(self.history.len(), item.clone());
                self.add(item.to_message());
            }
            Entry::Partial { message, cut_off } => {
                self.cut_off.insert(self.history.len(), *cut_off);
                self.add(message.clone());
            }
            Entry::Instructions(instructions) => {
                let is_first = self
                    .instructions
                    .replace(Box::new(instructions.clone()))
                    .is_none();
                let said = self.history.len();
                self.bound.from = if is_first {
                    instructions.bound_from.min(said)
                } else {
                    said
                };
            }
            Entry::Summary(summary) => self.summarise(summary),
            Entry::Sent(sent) => self.bound.sent.push((self.history.len(), sent.clone())),
            Entry::Retract { messages } => {
                self.history
                    .truncate(self.history.len().saturating_sub(*messages));
                self.cut_off.split_off(&self.history.len());
                self.items.split_off(&self.history.len());
                self.bound.from = self.bound.from.min(self.history.len());
                self.bound.sent.retain(|(at, _)| *at < self.history.len());
                self.collecting = None;
                self.is_summarised &= !self.history.is_empty();
            }
        }
        self.lines.push(Line {
            raw,
            entry: Some(entry),
        });
    }

    fn add(&mut self, message: Message) {
        self.history.push(message);
        self.collecting = None;
    }

    /// Replaces the beginning of the history with a summary. Thinking after the summary was bound
    /// to the replaced messages, so it is unbound from now on.
    fn summarise(&mut self, summary: &Summary) {
        let end = summary.messages.min(self.history.len());
        let (items, rest) = parted(std::mem::take(&mut self.items), end);
        let items = latest(items);
        // The length of the new beginning: the summary and the kept items.
        let begin = 1 + items.len();
        let messages =
            std::iter::once(summary.to_message()).chain(items.iter().map(Item::to_message));
        self.history.splice(..end, messages.collect::<Vec<_>>());
        let kept = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| (1 + at, item));
        self.items = kept
            .chain(rest.into_iter().map(|(at, item)| (at - end + begin, item)))
            .collect();
        let (_, cut_off) = parted(std::mem::take(&mut self.cut_off), end);
        self.cut_off = cut_off
            .into_iter()
            .map(|(at, why)| (at - end + begin, why))
            .collect();
        *self.bound = Bound {
            from: self.history.len(),
            sent: Vec::new(),
        };
        if self.history.len() == begin {
            self.collecting = None;
        }
        self.usage = self.usage.plus(summary.usage);
        self.is_summarised = true;
    }

    /// Adds a result to the other results for its answer, in call order.
    fn collect(&mut self, result: Block) {
        let Some(places) = &self.collecting else {
            self.collecting = Some(Box::new(places_of_calls(self.history.last())));
            return self.history.push(Message {
                role: Role::User,
                blocks: vec![result],
                item: None,
            });
        };
        let Some(results) = self.history.last_mut() else {
            return;
        };
        let place = |block: &Block| {
            block
                .result_id()
                .and_then(|id| places.get(id))
                .copied()
                .unwrap_or(places.len())
        };
        let at = results
            .blocks
            .partition_point(|known| place(known) <= place(&result));
        results.blocks.insert(at, result);
    }

    /// Adds an entry, and returns its line with the newline. The number of messages in an
    /// [`Entry::Retract`] or [`Entry::Summary`] is limited to the length of the history.
    pub fn append(&mut self, entry: Entry) -> &str {
        let kept: Result<(), std::convert::Infallible> = self.append_kept(entry, |_| Ok(()));
        kept.expect("this `keep` never fails");
        self.lines.last().map_or("", |line| &line.raw)
    }

    /// Adds an entry like [`Log::append`], but only if `keep` accepts its line. If a journal cannot
    /// store the line, the log is unchanged.
    ///
    /// # Errors
    ///
    /// Returns the errors of `keep`.
    pub fn append_kept<E>(
        &mut self,
        entry: Entry,
        keep: impl FnOnce(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let entry = match entry {
            Entry::Retract { messages } => Entry::Retract {
                messages: messages.min(self.history.len()),
            },
            Entry::Summary(summary) => Entry::Summary(Summary {
                messages: summary.messages.min(self.history.len()),
                ..summary
            }),
            entry => entry,
        };
        let raw = write::entry(&entry, self.lines.len() + 1);
        keep(&raw)?;
        self.push(entry, raw);
        Ok(())
    }

    /// Returns the history that the log describes. The text of items is taken from the log and
    /// never generated again.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Returns the typed items in the history, in order.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.values()
    }

    /// Returns the system prompt and tools of the last request; `None` if there was no request, or
    /// if an older program wrote the log.
    pub fn instructions(&self) -> Option<&Instructions> {
        self.instructions.as_deref()
    }

    /// Returns the number of messages before the last renewal of system prompt and tools; 0 if
    /// there was none.
    pub fn bound_from(&self) -> usize {
        self.bound.from
    }

    /// Returns the digest of the last request to which any thinking in the history is bound; `None`
    /// if there is no such thinking, or if an older program wrote the log.
    pub fn sent(&self) -> Option<&Sent> {
        let is_answered = |at: usize| {
            self.history
                .get(at)
                .is_some_and(|answer| answer.role == Role::Assistant)
        };
        self.bound
            .sent
            .iter()
            .rev()
            .find(|(at, _)| *at >= self.bound.from && is_answered(*at))
            .map(|(_, sent)| sent)
    }

    /// Returns the total token usage of the session.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the agent's name.
    pub fn agent(&self) -> &str {
        &self.header.agent
    }

    /// Returns the header, which is the first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the entries in order, without the header.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.lines.iter().filter_map(|line| line.entry.as_ref())
    }

    /// Returns the lines as they are in the file, each with its newline, beginning with the header.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.raw.as_str())
    }

    /// Returns the content of the file.
    pub fn to_text(&self) -> String {
        self.lines().collect()
    }

    /// Returns `true` if the last message still requires a response: it is the user's or contains
    /// tool results, or it is an answer that has open calls, was cut off, or is empty. Returns
    /// `false` if an interrupt item follows the message; other items are ignored.
    pub fn is_interrupted(&self) -> bool {
        let mut items = self.history.iter().rev().map_while(|message| message.item);
        if items.any(|item| item == ItemKind::Interrupt) {
            return false;
        }
        let last = self
            .history
            .iter()
            .rev()
            .find(|message| message.item.is_none());
        // A summary requires no response.
        let last = last.filter(|_| !self.ends_with_summary());
        last.is_some_and(|message| match message.role {
            Role::User => true,
            Role::Assistant => {
                let blocks = &message.blocks;
                let is_open = blocks.iter().any(|block| block.call_id().is_some());
                self.cut_off().is_some() || is_open || !blocks.iter().any(Block::says_something)
            }
            Role::System => false,
        })
    }

    /// Returns `true` if the history begins with a summary.
    pub fn is_summarised(&self) -> bool {
        self.is_summarised
    }

    /// Returns `true` if no message follows a summary; items are ignored.
    pub fn ends_with_summary(&self) -> bool {
        self.is_summarised
            && self
                .history
                .iter()
                .rposition(|message| message.item.is_none())
                == Some(0)
    }

    /// Returns the reason why the last answer is incomplete; `None` if it is complete, or if the
    /// history does not end with an answer. Items are ignored.
    pub fn cut_off(&self) -> Option<CutOff> {
        let last = self
            .history
            .iter()
            .rposition(|message| message.item.is_none())?;
        self.cut_off.get(&last).copied()
    }

    /// Returns the calls without results ([`Block::ToolUse`]) in the answer that ends the history.
    pub fn open_calls(&self) -> Vec<&Block> {
        let (answer, results) = match self.history.as_slice() {
            [.., answer, results] if self.collecting.is_some() => {
                (answer, results.blocks.as_slice())
            }
            [.., answer] => (answer, [].as_slice()),
            [] => return Vec::new(),
        };
        let answered: HashSet<&Arc<str>> = results.iter().filter_map(Block::result_id).collect();
        match answer.role {
            Role::Assistant => answer
                .blocks
                .iter()
                .filter(|block| block.call_id().is_some_and(|id| !answered.contains(id)))
                .collect(),
            Role::User | Role::System => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
