//! The state of a session. Every change is written to the journal before it is made.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::agent::Agent;
use super::super::tools::{ToolOutput, ToolSet};
use super::super::{Category, Error, Event};
use super::summariser::Summariser;
use crate::conversation::log::{CutOff, Entry, Instructions, Log, Sent, Summary};
use crate::conversation::{
    Block, Conversation, Item, Message, ProviderBlock, Role, SystemLayer, Task, TaskKind, Tool,
    Usage, turn_from,
};
use crate::provider::WireFormat;
use crate::tokens::Calibration;
use crate::world::{AccessError, Journal};

/// A session's state.
pub(super) struct State {
    /// Tools, layers, and the task of a completion. The history of a chat is in the log.
    frame: Conversation,
    log: Log,
    journal: Option<Box<dyn Journal>>,
    tools: ToolSet,
    seed: Usage,
    /// The cost of all answers since this state was created, in US dollars; `None` once a cost is
    /// unknown.
    cost: Option<f64>,
    /// `true` if a request is in flight. Items wait until it ends, so that they do not separate a
    /// call from its result.
    busy: bool,
    waiting: VecDeque<Item>,
    /// The length of the history at the start, if the host provided a history. While the history
    /// has this length, the model has not been asked.
    given: Option<usize>,
    /// The additions to the history that have not been reported yet, except answers and results.
    news: Vec<Event>,
    /// The reason the last answer was cut off, if no part of it is in the history to be marked.
    unsaid: Option<CutOff>,
    /// `true` if the history contains the agent's surroundings and the attached files.
    is_told: bool,
    /// The agent's name.
    agent: Arc<str>,
    /// The wire format of the agent's requests.
    wire: WireFormat,
    /// `true` if the next request renders the system prompt again, and omits earlier thinking.
    renews: bool,
    /// The digest of the request in flight.
    asked: Option<Sent>,
    /// The correction for token estimates, learned from answers.
    calibration: Calibration,
}

/// The way a request starts.
pub(super) enum Start {
    /// The request starts with a user message.
    Message(Vec<Block>),
    /// The request starts with the unchanged history.
    Proceed,
    /// The request has no message. It replaces part of the history with a summary.
    Summarise(Arc<dyn Summariser>),
}

/// The input of a round.
pub(super) struct RoundInput {
    pub(super) conversation: Conversation,
    /// The tools that the model can call.
    pub(super) tools: ToolSet,
    /// The prefix of IDs for calls that have none in the model's answer.
    pub(super) id_prefix: String,
    /// `true` if the system prompt and tools differ from those of the last request and must
    /// therefore be recorded.
    pub(super) is_new: bool,
    /// The digest of the request to which thinking in the history is bound; `None` if the system
    /// prompt and tools are new.
    pub(super) bound_to: Option<Sent>,
}

/// The part at the beginning of a history that a summary can replace.
pub(super) struct Compressible {
    /// The conversation to summarise.
    pub(super) conversation: Conversation,
    /// The number of messages to replace.
    pub(super) messages: usize,
}

/// The starting point of a session with a journal.
pub enum SessionStart {
    /// A new session with an empty journal. The conversation's history is written to it first.
    New(Conversation),
    /// The content of an existing journal. Tools and layers come from the conversation, and its
    /// history is added to that of the log.
    Resumed(Log, Conversation),
}

impl SessionStart {
    /// Returns the conversation of the first request, including `message` if given. Nothing is
    /// written.
    ///
    /// # Errors
    ///
    /// Returns an error if there is nothing to ask.
    pub fn preview(
        self,
        agent: &Agent,
        message: Option<Vec<Block>>,
    ) -> Result<Conversation, Error> {
        let mut state = State::restored(agent, self, None)?;
        state.begin(agent, message.map_or(Start::Proceed, Start::Message))?;
        let RoundInput {
            conversation,
            bound_to,
            ..
        } = state.to_ask();
        if bound_to.is_none_or(|earlier| agent.continues(conversation.clone(), &earlier)) {
            return Ok(conversation);
        }
        state.renew();
        Ok(state.to_ask().conversation)
    }
}

/// Returns the number of messages whose thinking is bound to a system prompt and tools that older
/// versions did not record. The provider rejects such thinking if the prompt or the tools differ.
fn unbound(log: &Log, agent: &Agent) -> usize {
    match log.instructions() {
        None if has_thinking(log.history()) && agent.binds_thinking() => log.history().len(),
        _ => 0,
    }
}

impl State {
    pub(super) fn new(agent: &Agent, conversation: Conversation) -> State {
        State::restored(agent, SessionStart::New(conversation), None)
            .expect("without a journal nothing can fail")
    }

    fn of(
        agent: &Agent,
        mut frame: Conversation,
        log: Log,
        journal: Option<Box<dyn Journal>>,
    ) -> State {
        // If the host provides no tools and layers, use those from the session's previous run.
        if let Some(known) = log
            .instructions()
            .filter(|known| known.agent == *agent.name())
        {
            if frame.tools.is_empty() {
                frame.tools.clone_from(&known.tools);
            }
            if frame.system_layers.is_empty() {
                frame.system_layers.clone_from(&known.layers);
            }
        }
        let (tools, seed) = (ToolSet::new(), Usage::default());
        let (waiting, news) = (VecDeque::new(), Vec::new());
        State {
            frame,
            log,
            journal,
            tools,
            seed,
            cost: Some(0.0),
            busy: false,
            waiting,
            given: None,
            news,
            unsaid: None,
            is_told: false,
            agent: Arc::clone(agent.name()),
            wire: agent.wire(),
            renews: false,
            asked: None,
            calibration: Calibration::default(),
        }
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
        let unbound = unbound(&log, agent);
        let (frame, history) = part(conversation);
        let known_items = frame.known_items;
        let mut state = State::of(
            agent,
            Conversation {
                known_items: Vec::new(),
                ..frame
            },
            log,
            journal,
        );
        state.is_told = state.frame.is_told || state.says_surroundings();
        // If the host's conversation has open calls, the host may still provide their results.
        if !state.has_open_calls() || !history.is_empty() {
            state.settle(true)?;
        }
        let is_given = !history.is_empty();
        // The history of a completion is empty. In a history from the host, the surroundings go
        // before the first user message.
        let first = turn_from(&history, 0);
        let bound_from = std::mem::take(&mut state.frame.bound_from).min(history.len());
        for (at, message) in history.into_iter().enumerate() {
            if at == first && state.history().len() == at && !state.is_told {
                // Ignore the error here; it is reported when the request is compiled.
                let _ = state.tell_surroundings(agent);
            }
            match known_items.iter().find(|(place, _)| *place == at) {
                Some((_, item)) => state.record(Entry::Item(item.clone()))?,
                None => state.push(message)?,
            }
            if at + 1 == bound_from {
                // Items may precede the messages from the host.
                state.frame.bound_from = state.history().len();
            }
        }
        state.frame.bound_from = state.frame.bound_from.max(unbound);
        state.renews = unbound > 0;
        state.given = is_given.then_some(state.history().len());
        Ok(state)
    }

    /// Closes an interrupted turn before anything is added. Open calls get a result that reports
    /// the interruption, and an item informs the model. If only the answer is missing, this is
    /// reported only if `moves_on` is `true`; otherwise, the next request asks for the answer.
    fn settle(&mut self, moves_on: bool) -> Result<(), Error> {
        let has_open_calls = self.has_open_calls();
        let has_own_calls = !self.own_calls().is_empty();
        let open: Vec<Block> = self
            .log
            .open_calls()
            .into_iter()
            .filter_map(interrupted_call)
            .collect();
        open.into_iter()
            .try_for_each(|result| self.record(Entry::ToolResult(result)))?;
        self.refuse_own_calls(CALL_INTERRUPTED)?;
        let cut_off = self.unsaid.or(self.log.cut_off());
        if (self.log.is_interrupted() || has_own_calls)
            && (moves_on || has_open_calls || cut_off.is_some())
        {
            self.record(Entry::Item(
                cut_off.map_or_else(Item::interrupted, Item::cut_off),
            ))?;
        }
        Ok(())
    }

    /// Returns the provider-specific calls that wait for a result.
    pub(super) fn own_calls(&self) -> Vec<ProviderBlock> {
        self.wire
            .own_blocks()
            .open_calls(self.history())
            .into_iter()
            .cloned()
            .collect()
    }

    /// Returns `true` if the last turn has no complete answer.
    pub(super) fn is_open(&self) -> bool {
        self.log.is_interrupted() || self.has_open_calls()
    }

    /// Returns `true` if a block is a result, in the common or a provider-specific form.
    pub(super) fn is_result(&self, block: &Block) -> bool {
        matches!(block, Block::ToolResult { .. }) || self.wire.own_blocks().is_result(block)
    }

    /// Adjusts the correction for token estimates, given the provider's token count for a request.
    pub(super) fn learn(&mut self, estimated: u64, usage: &Usage) {
        self.calibration.learn(estimated, usage.input);
    }

    /// Returns the correction for token estimates.
    pub(super) fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Returns `true` if any call in the last answer, common or provider-specific, has no result.
    fn has_open_calls(&self) -> bool {
        !self.log.open_calls().is_empty() || !self.own_calls().is_empty()
    }

    /// Adds an error result to each open provider-specific call, because no tool of a session
    /// handles such calls. Returns their number.
    pub(super) fn refuse_own_calls(&mut self, why: &str) -> Result<usize, Error> {
        let calls = self.own_calls();
        let errors: Vec<Block> = calls
            .iter()
            .filter_map(|call| self.wire.own_error(call, why))
            .collect();
        let (common, own): (Vec<Block>, Vec<Block>) = errors
            .into_iter()
            .partition(|error| matches!(error, Block::ToolResult { .. }));
        common
            .into_iter()
            .try_for_each(|error| self.record(Entry::ToolResult(error)))?;
        if !own.is_empty() {
            self.record(Entry::Message(Message {
                role: Role::User,
                blocks: own,
                item: None,
            }))?;
        }
        Ok(calls.len())
    }

    /// Returns `true` if the history contains the agent's surroundings.
    fn says_surroundings(&self) -> bool {
        self.log
            .items()
            .any(|item| item.as_surroundings().is_some())
    }

    /// Adds the agent's surroundings and attached files to the history, unless it already contains
    /// them.
    fn tell_surroundings(&mut self, agent: &Agent) -> Result<(), Error> {
        let Some(text) = agent.surroundings(self.frame.omit_system_prompt)? else {
            return Ok(());
        };
        self.is_told = true;
        let said = self
            .log
            .items()
            .filter_map(Item::as_surroundings)
            .next_back();
        let is_new = said.map_or(!text.is_empty(), |said| !text.is_empty() && *said != text);
        let attached = self
            .frame
            .files
            .iter()
            .map(Item::attached)
            .filter(|file| self.log.items().all(|item| item != file));
        let news: Vec<Item> = is_new
            .then(|| Item::surroundings(text))
            .into_iter()
            .chain(attached)
            .collect();
        news.into_iter()
            .try_for_each(|item| self.record(Entry::Item(item)))
    }

    pub(super) fn history(&self) -> &[Message] {
        self.log.history()
    }

    fn is_chat(&self) -> bool {
        self.frame.kind() == TaskKind::Chat
    }

    /// Returns the input for the next round.
    pub(super) fn to_ask(&self) -> RoundInput {
        let mut conversation = self.frame.clone();
        let (mut is_new, mut bound_to) = (false, None);
        if let Task::Chat(history) = &mut conversation.task {
            *history = self.history().to_vec();
            conversation.is_told = self.is_told;
            let known = self.known_instructions();
            is_new = known.is_none();
            if let Some(known) = known {
                conversation.known_prompt = Some(Arc::clone(&known.prompt));
            }
            let is_renewed = is_new && self.log.instructions().is_some();
            let bound_from = if is_renewed {
                self.history().len()
            } else {
                self.log.bound_from()
            };
            conversation.bound_from = conversation.bound_from.max(bound_from);
            bound_to = self.log.sent().filter(|_| !is_new).cloned();
        }
        if self.is_told {
            conversation.files.clear();
        }
        let id_prefix = format!("call_{}_", self.history().len());
        RoundInput {
            conversation,
            tools: self.tools.clone(),
            id_prefix,
            is_new,
            bound_to,
        }
    }

    /// Returns the system prompt, tools and layers of the last request; `None` if there was none,
    /// or if the host has changed them.
    fn known_instructions(&self) -> Option<&Instructions> {
        self.log
            .instructions()
            .filter(|_| !self.renews)
            .filter(|known| {
                let said = (&known.agent, &known.tools, &known.layers);
                said == (&self.agent, &self.frame.tools, &self.frame.system_layers)
            })
    }

    /// Records a newly rendered system prompt, with the tools and layers of its request.
    pub(super) fn instruct(
        &mut self,
        prompt: Arc<str>,
        tools: Vec<Tool>,
        layers: Vec<SystemLayer>,
    ) -> Result<(), Error> {
        let is_first = self.log.instructions().is_none();
        let (agent, bound_from) = (
            Arc::clone(&self.agent),
            if is_first { self.frame.bound_from } else { 0 },
        );
        let is_renewed = !is_first || (self.renews && bound_from > 0);
        self.record(Entry::Instructions(Instructions {
            agent,
            prompt,
            tools,
            layers,
            bound_from,
        }))?;
        self.renews = false;
        self.news.extend(is_renewed.then_some(Event::Renewed));
        Ok(())
    }

    /// Stores the digest of a request that is about to be sent.
    pub(super) fn sends(&mut self, sent: Option<Sent>) {
        self.asked = sent;
    }

    pub(super) fn renew(&mut self) {
        self.renews = true;
        self.frame.known_prompt = None;
    }

    /// Begins a request. Returns the number of messages that it added, which are removed if there
    /// is no answer.
    pub(super) fn begin(&mut self, agent: &Agent, start: Start) -> Result<usize, Error> {
        self.busy = true;
        let mut before = self.history().len();
        let added = self
            .settle_before(&start, &mut before)
            .and_then(|()| self.add(agent, start));
        match added {
            Ok(()) => Ok(self.history().len() - before),
            Err(error) => {
                // The original error is more informative than a failed write.
                let _ = self.retract(self.history().len() - before);
                Err(error)
            }
        }
    }

    /// Begins to compress the chat. Items added from now on wait.
    pub(super) fn begin_compression(&mut self, keep_turns: usize) -> Result<Compressible, Error> {
        let compressible = self.compressible(keep_turns).ok_or_else(|| {
            config("there is nothing to compress")
                .detail("there is no answered turn before the messages that must be kept")
        })?;
        self.busy = true;
        Ok(compressible)
    }

    /// Replaces messages with a summary.
    pub(super) fn summarise(&mut self, summary: Summary) -> Result<(), Error> {
        self.record(Entry::Summary(summary))?;
        self.given = None;
        // The remaining thinking is bound to the replaced messages.
        self.frame.bound_from = self.history().len();
        Ok(())
    }

    /// Closes an interrupted turn before a request. The host's results and items are kept even if
    /// the request fails, so `before` includes them.
    fn settle_before(&mut self, start: &Start, before: &mut usize) -> Result<(), Error> {
        if matches!(start, Start::Message(blocks) if self.has_results(blocks)) {
            return Ok(());
        }
        // A history from the host is sent unchanged, because calls without results are omitted from
        // requests.
        if matches!(start, Start::Proceed) && self.is_given() && self.waiting.is_empty() {
            return Ok(());
        }
        let stays = !self.waiting.is_empty() || self.has_open_calls();
        let moves_on = matches!(start, Start::Message(_)) && !self.is_given();
        self.settle(moves_on)?;
        self.admit_waiting()?;
        if stays {
            *before = self.history().len();
        }
        Ok(())
    }

    /// Adds the messages that a request starts with.
    fn add(&mut self, agent: &Agent, start: Start) -> Result<(), Error> {
        match start {
            Start::Message(blocks) if !blocks.iter().any(Block::says_something) => {
                Err(config("there is nothing to send: the message is empty"))
            }
            Start::Message(blocks) => {
                if self.is_chat() && !self.has_results(&blocks) {
                    self.tell_surroundings(agent)?;
                }
                let message = Message {
                    role: Role::User,
                    blocks,
                    item: None,
                };
                self.push(message.clone())?;
                self.news.push(Event::Message(message));
                Ok(())
            }
            Start::Proceed if self.is_chat() && self.history().is_empty() => {
                Err(config("there is nothing to continue: the history is empty"))
            }
            Start::Proceed if self.ends_with_an_answer() || self.log.ends_with_summary() => Err(
                config("there is nothing to answer: the history ends with the model's answer")
                    .detail("send a message, or inject an item"),
            ),
            // `begin_compression` starts a compression.
            Start::Proceed | Start::Summarise(_) => Ok(()),
        }
    }

    /// Returns `true` if a request starts with the host's results for open calls, so the turn was
    /// not interrupted.
    fn has_results(&self, blocks: &[Block]) -> bool {
        let own = self.wire.own_blocks();
        let has_results = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolResult { .. }) || own.is_result(block));
        has_results && self.has_open_calls()
    }

    /// Returns `true` if the last message is a non-empty model answer. A history from the host may
    /// end with only the beginning of an answer, which does not count.
    fn ends_with_an_answer(&self) -> bool {
        let is_answer = self.history().last().is_some_and(|last| {
            last.role == Role::Assistant && last.blocks.iter().any(Block::says_something)
        });
        is_answer && !self.is_given()
    }

    /// Returns `true` if nothing has been added to the history from the host.
    fn is_given(&self) -> bool {
        self.given == Some(self.history().len())
    }

    /// Adds the result of a tool.
    pub(super) fn result(&mut self, id: &Arc<str>, output: ToolOutput) -> Result<(), Error> {
        self.record(Entry::ToolResult(output.into_block(Arc::clone(id))))
    }

    /// Ends a tool round: adds missing results, and the items that waited.
    pub(super) fn results(&mut self, blocks: Vec<Block>) -> Result<(), Error> {
        let open: Vec<Arc<str>> = self.open_calls().into_iter().map(|(id, _)| id).collect();
        for block in blocks {
            if matches!(&block, Block::ToolResult { id, .. } if open.contains(id)) {
                self.record(Entry::ToolResult(block))?;
            }
        }
        if self.refuse_own_calls(NO_TOOL_TAKES_IT)? > 0 {
            self.news.push(Event::Warning(
                "no tool of this session handles provider-specific calls".to_owned(),
            ));
        }
        self.admit_waiting()
    }

    /// Returns the IDs of calls without results, each with its tool's name.
    pub(super) fn open_calls(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.log
            .open_calls()
            .into_iter()
            .filter_map(|block| match block {
                Block::ToolUse { id, name, .. } => Some((Arc::clone(id), Arc::clone(name))),
                _ => None,
            })
            .collect()
    }

    pub(super) fn push(&mut self, message: Message) -> Result<(), Error> {
        match self.is_chat() {
            true => self.record(Entry::Message(message)),
            false => Err(no_history()),
        }
    }

    /// Ends the request, regardless of its outcome.
    pub(super) fn end(&mut self) {
        self.busy = false;
        // Items that cannot be written wait for the next request, which reports the error.
        let _ = self.admit_between();
    }

    /// Adds an item now, or as soon as items may be added.
    pub(super) fn inject(&mut self, item: Item) -> Result<(), Error> {
        if !self.is_chat() {
            return Err(no_history());
        }
        self.waiting.push_back(item);
        self.admit_between()
    }

    /// Adds the waiting items, unless they would separate a call from its result.
    fn admit_between(&mut self) -> Result<(), Error> {
        if self.busy || !self.log.open_calls().is_empty() {
            Ok(())
        } else {
            self.admit_waiting()
        }
    }

    fn admit_waiting(&mut self) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            self.settle(false)?;
        }
        while let Some(item) = self.waiting.front() {
            self.record(Entry::Item(item.clone()))?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn record(&mut self, entry: Entry) -> Result<(), Error> {
        let news = match &entry {
            Entry::Item(item) => Some(Event::Item(item.clone())),
            _ => None,
        };
        let journal = &mut self.journal;
        self.log.append_kept(entry, |line| match journal {
            Some(journal) => journal.append(line).map_err(unwritable),
            None => Ok(()),
        })?;
        self.news.extend(news);
        Ok(())
    }

    /// Adds the model's answer. Does nothing if the answer is empty or there is no history.
    pub(super) fn answer(
        &mut self,
        blocks: Vec<Block>,
        cut_off: Option<CutOff>,
    ) -> Result<(), Error> {
        if blocks.is_empty() || !self.is_chat() {
            self.unsaid = cut_off.or(self.unsaid);
            return Ok(());
        }
        self.unsaid = None;
        self.bind(&blocks)?;
        let message = Message {
            role: Role::Assistant,
            blocks,
            item: None,
        };
        self.record(match cut_off {
            Some(cut_off) => Entry::Partial { message, cut_off },
            None => Entry::Message(message),
        })
    }

    /// Records the digest of the answered request if thinking is bound to it: thinking in the
    /// answer, or in a history from the host.
    fn bind(&mut self, answer: &[Block]) -> Result<(), Error> {
        let Some(asked) = self.asked.take() else {
            return Ok(());
        };
        if thinks(answer) || self.log.sent().is_none() && has_thinking(self.history()) {
            self.record(Entry::Sent(asked))?;
        }
        Ok(())
    }

    /// Returns the user messages and items added to the history since the last call.
    pub(super) fn news(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.news)
    }

    /// Removes messages because the host asked for it.
    pub(super) fn take_back(&mut self, messages: usize) -> Result<(), Error> {
        if self.busy {
            return Err(config(
                "messages cannot be removed while a request is running",
            ));
        }
        let known = self.history().len();
        if messages > known {
            return Err(config("there are not that many messages to remove")
                .detail(format!("{messages} of {known}")));
        }
        self.unsaid = None;
        self.retract(messages)
    }

    /// Removes the last messages.
    pub(super) fn retract(&mut self, messages: usize) -> Result<(), Error> {
        if messages == 0 || !self.is_chat() {
            return Ok(());
        }
        self.record(Entry::Retract { messages })?;
        self.frame.bound_from = self.frame.bound_from.min(self.history().len());
        self.is_told = self.frame.is_told || self.says_surroundings();
        Ok(())
    }

    pub(super) fn count(&mut self, usage: Usage) -> Result<(), Error> {
        if usage == Usage::default() {
            Ok(())
        } else {
            self.record(Entry::Usage(usage))
        }
    }

    /// Adds the cost of an answer; `None` if it is unknown.
    pub(super) fn add_cost(&mut self, cost: Option<f64>) {
        self.cost = self.cost.and_then(|sum| Some(sum + cost?));
    }

    /// Returns the cost of all answers; `None` if the cost of any is unknown.
    pub(super) fn cost(&self) -> Option<f64> {
        self.cost.map(|sum| (sum * 1e9).round() / 1e9)
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
        // If a layer is replaced, it keeps its position among layers of the same priority.
        let known = layers.iter().position(|known| known.name == layer.name);
        match (known, layer.text.trim().is_empty()) {
            (Some(at), true) => drop(layers.remove(at)),
            (Some(at), false) => layers[at] = layer,
            (None, true) => {}
            (None, false) => layers.push(layer),
        }
    }
}

fn has_thinking(history: &[Message]) -> bool {
    history.iter().any(|message| thinks(&message.blocks))
}

fn thinks(blocks: &[Block]) -> bool {
    blocks.iter().any(Block::is_thinking)
}

/// Separates a conversation from its history.
fn part(mut conversation: Conversation) -> (Conversation, Vec<Message>) {
    let history = match &mut conversation.task {
        Task::Chat(history) => std::mem::take(history),
        Task::Completion { .. } => Vec::new(),
    };
    (conversation, history)
}

/// Returns the result for a call that was interrupted together with its session; `None` if the
/// block is not a call.
fn interrupted_call(call: &Block) -> Option<Block> {
    match call {
        Block::ToolUse { id, .. } => {
            Some(ToolOutput::error(CALL_INTERRUPTED).into_block(Arc::clone(id)))
        }
        _ => None,
    }
}

/// The result of a call whose outcome is unknown.
const CALL_INTERRUPTED: &str = "the turn was interrupted before the tool returned a result; it is unknown whether the tool ran";

/// The result sent for a provider-specific call when other calls in the same response were run by
/// tools.
const NO_TOOL_TAKES_IT: &str = "there is no such tool here: the call was not run";

fn unwritable(why: AccessError) -> Error {
    config("the session cannot be saved").detail(why)
}

fn no_history() -> Error {
    config("a completion has no history: it consists of a prefix and a suffix")
}

fn config(message: &str) -> Error {
    Error::new(Category::Config, message)
}
