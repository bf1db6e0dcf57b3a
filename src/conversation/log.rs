//! A session as JSON Lines: what was said, in the order in which it became true.
//!
//! Input: bytes that a [`Journal`](crate::world::Journal) kept, or [`Entry`]s. Output: lines to
//! append, and the history that they tell. The newline is the commit point: what is after the last
//! one does not count. Every line is kept as it is, so that saving what was loaded changes no byte,
//! also if a newer program wrote keys that nothing reads here. Each has its number, so that one
//! that an editor or a merge lost is missed. Knows nothing of files: a
//! [`Journal`](crate::world::Journal) cuts [`Loaded::tail_bytes`] off before it appends.
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

/// The newest version of logs that this crate knows.
pub const VERSION: u64 = 1;

/// A session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    header: Header,
    lines: Vec<Line>,
    history: Vec<Message>,
    /// Why answers of the history are not complete, by their index.
    cut_off: BTreeMap<usize, CutOff>,
    /// The typed items of the history, by their index.
    items: BTreeMap<usize, Item>,
    /// If the last message is made of results that came one by one: the calls that they answer,
    /// with their places.
    #[expect(
        clippy::box_collection,
        reason = "a log stays small beside what else a session may begin with"
    )]
    collecting: Option<Box<HashMap<Arc<str>, usize>>>,
    usage: Usage,
    instructions: Option<Box<Instructions>>,
    bound: Box<Bound>,
    /// `true` if the history begins with a summary.
    is_summarised: bool,
}

/// The conversation that thinking of the history is bound to.
#[derive(Debug, Clone, Default, PartialEq)]
struct Bound {
    /// The number of messages that are before the last renewal of the instructions.
    from: usize,
    /// The summaries of requests that were answered with thinking, each by the place of its answer.
    sent: Vec<(usize, Sent)>,
}

/// The words of a session to the model beside the history: said again in every request, until the
/// host renews it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instructions {
    /// The agent whose they are.
    pub agent: Arc<str>,
    /// The whole system prompt, exactly as it was sent; blank if there is none.
    pub prompt: Arc<str>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// The named layers that are part of the prompt.
    pub layers: Vec<SystemLayer>,
    /// Of the first ones of a log: how many messages of the history were said under others. Later
    /// ones renew what is before them.
    pub bound_from: usize,
}

/// The summary of a request: whether a later one begins with the same can be known without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The number of parts that it had: tools, blocks of the system prompt and of messages.
    pub parts: usize,
    /// A digest of them, as hexadecimal digits.
    pub digest: Arc<str>,
}

/// A summary, and what it stands for: from its line on the history begins with it, in the place of
/// what was said up to then. The log keeps the lines of that.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of messages and items at the beginning of the history that it stands for; an
    /// earlier summary counts as one. Of the items, the latest word on surroundings and the latest
    /// version of each attached file stay, after the summary.
    pub messages: usize,
    /// The exact text that the model sees, as a message of the user.
    pub text: Arc<str>,
    /// The agent that wrote it, if one did.
    pub agent: Option<Arc<str>>,
    /// The tokens that it took. They count as those of an answer.
    pub usage: Usage,
}

impl Summary {
    /// A summary that nobody paid for.
    pub fn new(messages: usize, text: impl Into<Arc<str>>) -> Summary {
        Summary {
            messages,
            text: text.into(),
            ..Summary::default()
        }
    }

    /// The message that stands for it in a history. It is the user's: what a model wrote about what
    /// tools said is not a word of the host program.
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
    /// When the session began, in the host's words; nothing here reads a clock.
    pub created: Option<Arc<str>>,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message was added to the history.
    Message(Message),
    /// An answer that is not complete was added to the history.
    Partial {
        /// The part that came.
        message: Message,
        /// Why there is no more.
        cut_off: CutOff,
    },
    /// A tool ended: its result, a [`Block::ToolResult`], joins those of the other calls of the
    /// last answer. They are one message of the history, in the order of the calls.
    ToolResult(Block),
    /// A typed system item was added to the history.
    Item(Item),
    /// System prompt and tools from the next request on. A second one renews the first: thinking
    /// before it is left out where models bind it.
    Instructions(Instructions),
    /// The summary of the request to which the next message is the answer: its thinking is bound to
    /// that where models bind it.
    Sent(Sent),
    /// The last messages and items of the history are taken back: their dispatch failed.
    Retract {
        /// How many.
        messages: usize,
    },
    /// A summary takes the place of the beginning of the history.
    Summary(Summary),
    /// Tokens were spent; added up over the log, also if messages are taken back.
    Usage(Usage),
}

#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// As it is in the file, with its newline.
    raw: String,
    /// `None` for the header.
    entry: Option<Entry>,
}

/// The log that some bytes hold, as far as it is complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The log; `None` if not even the first line is complete: the session never began.
    pub log: Option<Log>,
    /// The number of bytes at the end that are not a complete line.
    pub tail_bytes: usize,
}

/// Why bytes are not a log.
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

#[cfg(feature = "runtime")]
impl LogError {
    /// Returns what is wrong with a file: its first line says that it is a session, a later one may
    /// be damaged.
    pub(crate) fn of_file(&self, shown: &str) -> String {
        match self.line {
            1 => format!("`{shown}` is not a session: {self}"),
            _ => format!("`{shown}` is a session with a damaged line: {self}"),
        }
    }
}

/// The calls of an answer, with their places; of equal ids the first.
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

/// Returns whether a line may be where it does: none is missing before it, as far as that can be
/// known. A line knows its own number; it may be further down, since two sessions may have written
/// one journal. Lines of older programs have none: of those, a result needs the call that it
/// answers, in any line before. `calls` holds the ids of those.
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
            1 => format!("a line before it is missing, since it was written as line {number}"),
            missing => format!(
                "{missing} lines before it are missing, since it was written as line {number}"
            ),
        },
        (None, Entry::ToolResult(result))
            if result.result_id().is_some_and(|id| !calls.contains(id)) =>
        {
            "the line with the call that it answers is missing".to_owned()
        }
        _ => return Ok(()),
    };
    Err(
        format!("{what}: put back what was removed, or remove this line and all that follow")
            .into(),
    )
}

/// The ids by which results may name a block.
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

/// The entries of a map below a place, and all others.
fn parted<T>(mut all: BTreeMap<usize, T>, at: usize) -> (BTreeMap<usize, T>, BTreeMap<usize, T>) {
    let rest = all.split_off(&at);
    (all, rest)
}

/// The items that stay where a summary replaces others: the latest word on surroundings, and the
/// latest version of each attached file.
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
    /// The log of a session that begins, with its header.
    pub fn new(agent: impl Into<Arc<str>>) -> Log {
        Log::with_header(Header {
            agent: agent.into(),
            created: None,
        })
    }

    /// The log of a session that begins.
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

    /// Reads a log. What follows the last newline is not looked at.
    ///
    /// # Errors
    ///
    /// The first complete line that is not one of a log.
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

    /// Returns whether bytes may be the beginning of a log that was cut off inside its first line:
    /// a file of them holds nothing.
    pub fn is_cut_header(bytes: &[u8]) -> bool {
        let begin = write::header_begin();
        !bytes.contains(&b'\n')
            && (bytes.starts_with(begin.as_bytes()) || begin.as_bytes().starts_with(bytes))
    }

    fn replay(&mut self, entry: Entry, raw: String) -> read::Read<()> {
        match &entry {
            Entry::Retract { messages } if *messages > self.history.len() => {
                let known = self.history.len();
                Err(
                    format!("{messages} messages are taken back, but there are only {known}")
                        .into(),
                )
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

    /// Puts a summary in the place of what it stands for. Thinking after it was bound to that.
    fn summarise(&mut self, summary: &Summary) {
        let end = summary.messages.min(self.history.len());
        let (items, rest) = parted(std::mem::take(&mut self.items), end);
        let items = latest(items);
        // The summary and the items that stay.
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

    /// Adds a result to those of the same answer, at its call's place.
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

    /// Adds an entry and gives its complete line, with the newline. An [`Entry::Retract`] takes
    /// back no more than there is, an
    /// [`Entry::Summary`] stands for no more.
    pub fn append(&mut self, entry: Entry) -> &str {
        let kept: Result<(), std::convert::Infallible> = self.append_kept(entry, |_| Ok(()));
        kept.expect("nothing refuses it");
        self.lines.last().map_or("", |line| &line.raw)
    }

    /// As [`Log::append`], but only once `keep` has the line: what a journal refuses does not
    /// count.
    ///
    /// # Errors
    ///
    /// Those of `keep`.
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

    /// The history that the log tells. Texts of items are those of the log, never made again.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The typed items of the history, in order.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.values()
    }

    /// System prompt and tools of the last request; `None` if there was none, or if an older
    /// program wrote the log.
    pub fn instructions(&self) -> Option<&Instructions> {
        self.instructions.as_deref()
    }

    /// Returns how many messages are before the last renewal of system prompt and tools; 0 if there
    /// was none.
    pub fn bound_from(&self) -> usize {
        self.bound.from
    }

    /// Returns what the last request said to which thinking of the history is bound; `None` if
    /// there is no such thinking, or if an older program wrote the log.
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

    /// The lines as they are in the file, each with its newline, the header first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.raw.as_str())
    }

    /// The whole file.
    pub fn to_text(&self) -> String {
        self.lines().collect()
    }

    /// Returns `true` if somebody still waits: the last message is the person's, or tool results,
    /// without an answer, or the model's with calls that have no results, or an answer that was cut
    /// off or says nothing. Not if an interrupt item says so already; other items are not looked
    /// at.
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
        // A summary is nothing that somebody waits for an answer to.
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

    /// Returns `true` if nothing was said since a summary; items are not looked at.
    pub fn ends_with_summary(&self) -> bool {
        self.is_summarised
            && self
                .history
                .iter()
                .rposition(|message| message.item.is_none())
                == Some(0)
    }

    /// Returns why the answer that the history ends with is not complete; `None` if it is, or if
    /// there is none. Items are not looked at.
    pub fn cut_off(&self) -> Option<CutOff> {
        let last = self
            .history
            .iter()
            .rposition(|message| message.item.is_none())?;
        self.cut_off.get(&last).copied()
    }

    /// The calls ([`Block::ToolUse`]) of the answer that the history ends with which have no result
    /// yet.
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
