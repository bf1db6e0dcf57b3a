//! Pairs calls with results. A round is a turn of the model, and everything up to the next turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::{NO_MESSAGE, NormalForm, NormalFormChange, NormalFormRules};
use crate::conversation::{Block, Message, Role};

type Numbered = (usize, Message);

impl NormalForm {
    /// Pairs calls with results, and moves results directly after their calls.
    pub(super) fn pair(&mut self, rules: &NormalFormRules) {
        let messages = std::mem::take(&mut self.messages);
        let mut pairing = Pairing {
            taken: HashSet::new(),
            next: HashMap::new(),
            form: self,
        };
        let mut round = Round::default();
        for numbered in messages {
            if numbered.1.is_assistant() && !round.tail.is_empty() {
                pairing.close(std::mem::take(&mut round), false);
            }
            let part = if numbered.1.is_assistant() {
                &mut round.turn
            } else {
                &mut round.tail
            };
            part.push(numbered);
        }
        let may_stay_open = round.tail.is_empty() && !rules.drops_open_calls;
        pairing.close(round, may_stay_open);
    }
}

/// A turn of the model, and everything up to the next turn. The first round may have no turn.
#[derive(Default)]
struct Round {
    turn: Vec<Numbered>,
    tail: Vec<Numbered>,
}

struct Pairing<'f> {
    /// The IDs of all calls so far.
    taken: HashSet<Arc<str>>,
    /// The next number for each word that new IDs begin with.
    next: HashMap<Arc<str>, u64>,
    form: &'f mut NormalForm,
}

/// The position of a call: the index of a message in the turn, and the index of a block in that
/// message.
type CallAt = (usize, usize);

/// A result that is being moved to its call.
struct Placed {
    call: CallAt,
    /// The index of the result's message in the original history.
    index: usize,
    block: Block,
}

impl Pairing<'_> {
    fn close(&mut self, mut round: Round, may_stay_open: bool) {
        if !has(&round.turn) && !has(&round.tail) {
            self.form.messages.append(&mut round.turn);
            self.form.messages.append(&mut round.tail);
            return;
        }
        let (results, mut tail, joins) = self.results(&round.turn, round.tail);
        let mut by_message: HashMap<usize, Vec<Placed>> = HashMap::new();
        for result in results {
            by_message.entry(result.call.0).or_default().push(result);
        }
        let last = round.turn.len().saturating_sub(1);
        for (at, (index, mut message)) in round.turn.into_iter().enumerate() {
            let mut results = by_message.remove(&at).unwrap_or_default();
            self.calls(
                index,
                &mut message,
                &mut results,
                may_stay_open && at == last,
            );
            self.form.messages.push((index, message));
            match tail.first_mut() {
                Some((_, first)) if at == last && joins => {
                    let results: Vec<Block> = self.with_texts(results);
                    first.blocks.splice(0..0, results);
                }
                _ => self.put(results),
            }
        }
        self.form.messages.append(&mut tail);
    }

    /// Returns the results in a round that answer a call, the other messages after the turn, and
    /// `true` if the results stay in the first of these messages, because it contained some of
    /// them. Only plain user messages may contain results; results in a system message or an item
    /// are moved.
    fn results(
        &mut self,
        turn: &[Numbered],
        tail: Vec<Numbered>,
    ) -> (Vec<Placed>, Vec<Numbered>, bool) {
        let mut open = open_calls(turn);
        let (mut results, mut rest, mut joins) = (Vec::<Placed>::new(), Vec::new(), false);
        for (index, mut message) in tail {
            let holds_results = message.role == Role::User && message.item.is_none();
            let mut others = Vec::with_capacity(message.blocks.len());
            let (before, was_empty) = (results.len(), message.blocks.is_empty());
            for block in std::mem::take(&mut message.blocks) {
                let Some(id) = block.result_id().cloned() else {
                    others.extend(self.unless_call(index, block));
                    continue;
                };
                match open.get_mut(&id).map(VecDeque::pop_front) {
                    Some(Some(call)) => {
                        let first = results.first().map_or(index, |first| first.index);
                        if !holds_results
                            || !rest.is_empty()
                            || !others.is_empty()
                            || index != first
                            || call.0 + 1 < turn.len()
                        {
                            self.tell(NormalFormChange::ResultApart { message: index, id });
                        }
                        results.push(Placed { call, index, block });
                    }
                    Some(None) => self.tell(NormalFormChange::SecondResult { message: index, id }),
                    None => self.tell(NormalFormChange::ResultWithoutCall { message: index, id }),
                }
            }
            if !others.is_empty() || was_empty {
                joins |= holds_results && rest.is_empty() && results.len() > before;
                rest.push((
                    index,
                    Message {
                        blocks: others,
                        ..message
                    },
                ));
            }
        }
        (results, rest, joins)
    }

    /// Returns the block; `None` if it is a call, because only the model may call tools.
    fn unless_call(&mut self, message: usize, block: Block) -> Option<Block> {
        match block.call_id() {
            Some(id) => {
                self.tell(NormalFormChange::CallWithoutResult {
                    message,
                    id: Arc::clone(id),
                });
                None
            }
            None => Some(block),
        }
    }

    /// Drops the calls in a message that have no result, and gives new IDs to calls with a repeated
    /// ID.
    fn calls(
        &mut self,
        index: usize,
        message: &mut Message,
        results: &mut [Placed],
        may_stay_open: bool,
    ) {
        let mut answered: HashMap<usize, &mut Placed> = results
            .iter_mut()
            .map(|result| (result.call.1, result))
            .collect();
        let blocks = std::mem::take(&mut message.blocks);
        for (at, mut block) in blocks.into_iter().enumerate() {
            let result = answered.remove(&at);
            if let Some(id) = block.result_id() {
                self.tell(NormalFormChange::ResultWithoutCall {
                    message: index,
                    id: Arc::clone(id),
                });
                continue;
            }
            if let Block::ToolUse { id, .. } = &mut block {
                if result.is_none() && !may_stay_open {
                    self.tell(NormalFormChange::CallWithoutResult {
                        message: index,
                        id: Arc::clone(id),
                    });
                    continue;
                }
                if let Some(own) = self.own_id(index, id) {
                    if let Some(Placed {
                        block: Block::ToolResult { id, .. },
                        ..
                    }) = result
                    {
                        *id = Arc::clone(&own);
                    }
                    *id = own;
                }
            }
            message.blocks.push(block);
        }
    }

    /// Returns a new ID for a call whose ID is missing or already used; `None` if the call can keep
    /// its ID.
    fn own_id(&mut self, message: usize, id: &Arc<str>) -> Option<Arc<str>> {
        if id.is_empty() {
            self.tell(NormalFormChange::CallWithoutId { message });
            return Some(self.numbered("call", 1));
        }
        if self.taken.insert(Arc::clone(id)) {
            return None;
        }
        self.tell(NormalFormChange::RepeatedId {
            message,
            id: Arc::clone(id),
        });
        Some(self.numbered(id, 2))
    }

    /// Returns an unused ID that consists of a word and the next number, starting with `first`.
    fn numbered(&mut self, word: &str, first: u64) -> Arc<str> {
        let mut number = self.next.get(word).copied().unwrap_or(first);
        loop {
            let own: Arc<str> = format!("{word}_{number}").into();
            number += 1;
            if self.taken.insert(Arc::clone(&own)) {
                self.next.insert(word.into(), number);
                return own;
            }
        }
    }

    /// Adds a message with the results after the message with their calls.
    fn put(&mut self, results: Vec<Placed>) {
        if let Some(index) = results.first().map(|first| first.index) {
            let blocks = self.with_texts(results);
            self.form.messages.push((
                index,
                Message {
                    role: Role::User,
                    blocks,
                    item: None,
                },
            ));
        }
    }

    fn with_texts(&mut self, results: Vec<Placed>) -> Vec<Block> {
        results
            .into_iter()
            .map(|result| self.with_text(result))
            .collect()
    }

    /// Returns the block of a result. An error without content gets a default string.
    fn with_text(&mut self, result: Placed) -> Block {
        let mut block = result.block;
        if let Block::ToolResult {
            id,
            content,
            is_error: true,
            images,
        } = &mut block
            && content.trim().is_empty()
            && images.is_empty()
        {
            self.tell(NormalFormChange::ErrorWithoutText {
                message: result.index,
                id: Arc::clone(id),
            });
            *content = NO_MESSAGE.into();
        }
        block
    }

    fn tell(&mut self, change: NormalFormChange) {
        self.form.changes.push(change);
    }
}

fn has(messages: &[Numbered]) -> bool {
    messages.iter().any(|(_, message)| message.has_pairs())
}

/// Returns the calls in a turn by ID, each list in order.
fn open_calls(turn: &[Numbered]) -> HashMap<Arc<str>, VecDeque<CallAt>> {
    let mut open: HashMap<Arc<str>, VecDeque<CallAt>> = HashMap::new();
    for (at, (_, message)) in turn.iter().enumerate() {
        for (block, id) in message
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(block, it)| Some((block, it.answered_id()?)))
        {
            open.entry(id).or_default().push_back((at, block));
        }
    }
    open
}

impl Block {
    /// Returns the ID that results refer to, if the block is a call: an ordinary call, or a custom
    /// tool's call in Chat Completions, whose result has the common form.
    fn answered_id(&self) -> Option<Arc<str>> {
        match self {
            Block::Provider(own) if own.data.get("type")? == "custom" => {
                Some(own.data.get("id")?.as_str()?.into())
            }
            block => block.call_id().cloned(),
        }
    }
}

impl Message {
    fn has_pairs(&self) -> bool {
        self.blocks
            .iter()
            .any(|block| block.call_id().is_some() || block.result_id().is_some())
    }
}
