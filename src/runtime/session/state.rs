//! What a session knows: every change is a line of its journal first.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::agent::Agent;
use super::super::tools::{Tool, ToolOutput, ToolSet};
use super::super::{Category, Error};
use super::Start;
use crate::conversation::log::{Entry, Log};
use crate::conversation::{Block, Conversation, Item, ItemKind, Message, Role, SystemLayer, Task, TaskKind, Usage};
use crate::world::Journal;

/// A session's state.
pub(super) struct State {
    /// Tools, layers, and the task of a completion; the history of a chat is not here but in the log.
    frame: Conversation,
    log: Log,
    journal: Option<Box<dyn Journal>>,
    tools: ToolSet,
    seed: Usage,
    /// Whether a request is in flight: then items wait, so that they part no call from its result.
    busy: bool,
    waiting: VecDeque<Item>,
}

/// What a journaled session begins with.
pub enum Restored {
    /// Nothing: its journal is empty, and gets the conversation's history first.
    New(Conversation),
    /// What the journal holds. The conversation gives tools and layers; its own history comes after that of the log.
    Loaded(Log, Conversation),
}

impl State {
    pub(super) fn new(agent: &Agent, conversation: Conversation) -> State {
        let (frame, history) = part(conversation);
        let mut log = Log::new(Arc::clone(agent.name()));
        for message in history {
            log.append(Entry::Message(message));
        }
        State::of(frame, log, None)
    }

    fn of(frame: Conversation, log: Log, journal: Option<Box<dyn Journal>>) -> State {
        let (tools, seed) = (ToolSet::new(), Usage::default());
        State { frame, log, journal, tools, seed, busy: false, waiting: VecDeque::new() }
    }

    pub(super) fn restored(agent: &Agent, restored: Restored, mut journal: Box<dyn Journal>) -> Result<State, Error> {
        let (log, conversation) = match restored {
            Restored::New(conversation) => {
                let log = Log::new(Arc::clone(agent.name()));
                log.lines().try_for_each(|line| journal.append(line)).map_err(unwritable)?;
                (log, conversation)
            }
            Restored::Loaded(log, conversation) => (log, conversation),
        };
        let (frame, history) = part(conversation);
        let mut state = State::of(frame, log, Some(journal));
        if state.was_interrupted() {
            state.inject(Item::interrupted())?;
        }
        history.into_iter().try_for_each(|message| state.push(message))?;
        Ok(state)
    }

    /// Whether the log ends in the middle of a turn, and does not say so yet.
    fn was_interrupted(&self) -> bool {
        let told = self.history().last().is_some_and(|message| message.item == Some(ItemKind::Interrupt));
        self.log.is_interrupted() && !told
    }

    pub(super) fn history(&self) -> &[Message] {
        self.log.history()
    }

    fn is_chat(&self) -> bool {
        self.frame.kind() == TaskKind::Chat
    }

    /// What is to be compiled, and what ids begin with that the model's answer leaves out.
    pub(super) fn to_ask(&self) -> (Conversation, String) {
        let mut conversation = self.frame.clone();
        if let Task::Chat(history) = &mut conversation.task {
            *history = self.history().to_vec();
        }
        (conversation, format!("call_{}_", self.history().len()))
    }

    /// Begins a request; how many messages it added.
    pub(super) fn begin(&mut self, start: Start) -> Result<usize, Error> {
        self.busy = true;
        self.admit_waiting()?;
        match start {
            Start::Message(blocks) if blocks.is_empty() => {
                Err(config("there is nothing to send: the message is empty"))
            }
            Start::Message(blocks) => {
                self.push(Message { role: Role::User, blocks, item: None })?;
                Ok(1)
            }
            Start::Proceed if self.is_chat() && self.history().is_empty() => {
                Err(config("there is nothing to go on with: the history is empty"))
            }
            Start::Proceed => Ok(0),
        }
    }

    pub(super) fn push(&mut self, message: Message) -> Result<(), Error> {
        match self.is_chat() {
            true => self.record(Entry::Message(message)),
            false => Err(no_history()),
        }
    }

    /// The request has ended, however it did.
    pub(super) fn end(&mut self) {
        self.busy = false;
        // What cannot be written now waits for the next request, which then tells of it.
        let _ = self.admit_waiting();
    }

    /// Adds an item, or keeps it for the next place where one may stand.
    pub(super) fn inject(&mut self, item: Item) -> Result<(), Error> {
        if !self.is_chat() {
            return Err(no_history());
        }
        self.waiting.push_back(item);
        if self.busy { Ok(()) } else { self.admit_waiting() }
    }

    /// Adds the items that wait: between turns, or after the results of tools.
    pub(super) fn admit_waiting(&mut self) -> Result<(), Error> {
        while let Some(item) = self.waiting.front() {
            self.record(Entry::Item(item.clone()))?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn record(&mut self, entry: Entry) -> Result<(), Error> {
        let journal = &mut self.journal;
        self.log.append_kept(entry, |line| match journal {
            Some(journal) => journal.append(line).map_err(unwritable),
            None => Ok(()),
        })
    }

    /// Adds what the model said; nothing if it said nothing, or if there is no history to add to.
    pub(super) fn answer(&mut self, blocks: Vec<Block>) -> Result<(), Error> {
        if blocks.is_empty() || !self.is_chat() {
            return Ok(());
        }
        self.push(Message { role: Role::Assistant, blocks, item: None })
    }

    /// Takes the last messages back.
    pub(super) fn retract(&mut self, messages: usize) -> Result<(), Error> {
        if messages > 0 { self.record(Entry::Retract { messages }) } else { Ok(()) }
    }

    pub(super) fn count(&mut self, usage: Usage) -> Result<(), Error> {
        if usage == Usage::default() { Ok(()) } else { self.record(Entry::Usage(usage)) }
    }

    pub(super) fn usage(&self) -> Usage {
        self.seed.plus(self.log.usage())
    }

    pub(super) fn seed_usage(&mut self, usage: Usage) {
        self.seed = self.seed.plus(usage);
    }

    pub(super) fn set_tools(&mut self, tools: ToolSet) {
        self.frame.tools = tools.definitions();
        self.tools = tools;
    }

    pub(super) fn has_tools(&self) -> bool {
        self.tools.names().next().is_some()
    }

    /// The tool with a name, or what the model is told.
    pub(super) fn tool(&self, name: &str) -> Result<Arc<dyn Tool>, ToolOutput> {
        self.tools.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.tools.names().collect();
            ToolOutput::error(format!("there is no tool `{name}`; there are: {}", known.join(", ")))
        })
    }

    pub(super) fn set_layer(&mut self, layer: SystemLayer) {
        let layers = &mut self.frame.system_layers;
        layers.retain(|known| known.name != layer.name);
        if !layer.text.trim().is_empty() {
            layers.push(layer);
        }
    }
}

/// A conversation without its history, and the history.
fn part(mut conversation: Conversation) -> (Conversation, Vec<Message>) {
    let history = match &mut conversation.task {
        Task::Chat(history) => std::mem::take(history),
        Task::Completion { .. } => Vec::new(),
    };
    (conversation, history)
}

fn unwritable(why: String) -> Error {
    config("the session cannot be written").detail(why)
}

fn no_history() -> Error {
    config("a completion has no history: it takes a prefix and a suffix")
}

fn config(message: &str) -> Error {
    Error::new(Category::Config, message)
}
