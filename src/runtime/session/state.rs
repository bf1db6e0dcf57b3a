//! What a session knows: every change is a line of its journal first.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::agent::Agent;
use super::super::tools::ToolSet;
use super::super::{Category, Error};
use super::Start;
use crate::conversation::log::{Entry, Log};
use crate::conversation::{Block, Conversation, Item, ItemKind, Message, Role, SystemLayer, Task, TaskKind, Usage};
use crate::world::{AccessError, Journal};

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

/// What a round is about.
pub(super) struct RoundInput {
    pub(super) conversation: Conversation,
    /// The tools that the model is told of.
    pub(super) tools: ToolSet,
    /// What ids begin with that the model's answer leaves out.
    pub(super) id_prefix: String,
}

/// What a session with a journal starts from.
pub enum SessionStart {
    /// Nothing: its journal is empty, and gets the conversation's history first.
    New(Conversation),
    /// What the journal holds. The conversation gives tools and layers; its own history comes after that of the log.
    Resumed(Log, Conversation),
}

impl SessionStart {
    /// The conversation that a first request would be about, with this message if there is one. Nothing is written.
    ///
    /// # Errors
    ///
    /// There is nothing to ask about.
    pub fn preview(self, agent: &Agent, message: Option<Vec<Block>>) -> Result<Conversation, Error> {
        let mut state = State::restored(agent, self, None)?;
        state.begin(message.map_or(Start::Proceed, Start::Message))?;
        Ok(state.to_ask().conversation)
    }
}

impl State {
    pub(super) fn new(agent: &Agent, conversation: Conversation) -> State {
        State::restored(agent, SessionStart::New(conversation), None).expect("without a journal nothing can fail")
    }

    fn of(frame: Conversation, log: Log, journal: Option<Box<dyn Journal>>) -> State {
        let (tools, seed) = (ToolSet::new(), Usage::default());
        State { frame, log, journal, tools, seed, busy: false, waiting: VecDeque::new() }
    }

    pub(super) fn restored(
        agent: &Agent,
        restored: SessionStart,
        mut journal: Option<Box<dyn Journal>>,
    ) -> Result<State, Error> {
        let (log, conversation) = match restored {
            SessionStart::New(conversation) => {
                let log = Log::new(Arc::clone(agent.name()));
                if let Some(journal) = &mut journal {
                    journal.append(&log.to_text()).map_err(unwritable)?;
                }
                (log, conversation)
            }
            SessionStart::Resumed(log, conversation) => (log, conversation),
        };
        let (frame, history) = part(conversation);
        let mut state = State::of(frame, log, journal);
        if state.was_interrupted() {
            state.inject(Item::interrupted())?;
        }
        // The history of a completion is empty.
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

    /// What the next round is about.
    pub(super) fn to_ask(&self) -> RoundInput {
        let mut conversation = self.frame.clone();
        if let Task::Chat(history) = &mut conversation.task {
            *history = self.history().to_vec();
        }
        let id_prefix = format!("call_{}_", self.history().len());
        RoundInput { conversation, tools: self.tools.clone(), id_prefix }
    }

    /// Begins a request; how many messages it added.
    pub(super) fn begin(&mut self, start: Start) -> Result<usize, Error> {
        self.busy = true;
        self.welcome(&start)?;
        match start {
            Start::Message(blocks) if !blocks.iter().any(Block::says_something) => {
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

    /// Lets items in that wait, unless the message has the results that their place belongs to. Results also mean that nothing
    /// was interrupted: the host had the calls.
    fn welcome(&mut self, start: &Start) -> Result<(), Error> {
        let has_results = |blocks: &[Block]| blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        match start {
            Start::Message(blocks) if self.open_calls().is_some() && has_results(blocks) => {
                self.waiting.retain(|item| item.kind() != ItemKind::Interrupt);
                Ok(())
            }
            _ => self.admit_waiting(),
        }
    }

    /// The last message, if it is the model's and has calls: nobody has answered them yet.
    pub(super) fn open_calls(&self) -> Option<Vec<Block>> {
        let last = self.history().last().filter(|last| last.role == Role::Assistant)?;
        let calls = last.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        calls.then(|| last.blocks.clone())
    }

    /// Adds the results of tools, and what waited for them.
    pub(super) fn results(&mut self, blocks: Vec<Block>) -> Result<(), Error> {
        self.push(Message { role: Role::User, blocks, item: None })?;
        self.admit_waiting()
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
        let _ = self.admit_between();
    }

    /// Adds an item, or keeps it for the next place where one may stand.
    pub(super) fn inject(&mut self, item: Item) -> Result<(), Error> {
        if !self.is_chat() {
            return Err(no_history());
        }
        self.waiting.push_back(item);
        self.admit_between()
    }

    /// Adds the items that wait, unless they would part a call from its result.
    fn admit_between(&mut self) -> Result<(), Error> {
        if self.busy || self.open_calls().is_some() { Ok(()) } else { self.admit_waiting() }
    }

    fn admit_waiting(&mut self) -> Result<(), Error> {
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
        if messages > 0 && self.is_chat() { self.record(Entry::Retract { messages }) } else { Ok(()) }
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

    pub(super) fn set_layer(&mut self, layer: SystemLayer) {
        let layers = &mut self.frame.system_layers;
        // One that is set again keeps its place among layers of its priority.
        let known = layers.iter().position(|known| known.name == layer.name);
        match (known, layer.text.trim().is_empty()) {
            (Some(at), true) => drop(layers.remove(at)),
            (Some(at), false) => layers[at] = layer,
            (None, true) => {}
            (None, false) => layers.push(layer),
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

fn unwritable(why: AccessError) -> Error {
    config("the session cannot be written").detail(why)
}

fn no_history() -> Error {
    config("a completion has no history: it takes a prefix and a suffix")
}

fn config(message: &str) -> Error {
    Error::new(Category::Config, message)
}
