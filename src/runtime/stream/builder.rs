//! Parts of an answer → events, blocks, calls.
//!
//! Dialects say what came; this decides what it means, once for all of them: which pieces are one
//! block, which id a call gets, when a call is complete, what its arguments are, and why the model
//! stopped.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Source;
use crate::conversation::{Block, ProviderBlock};
use crate::json::kind_of;
use crate::runtime::{
    Answer, Category, Error, Event, MalformedInput, Refusal, StopReason, ToolCall, Usage, failure,
};

/// The key under which a history keeps the text of arguments that are not an object.
const MALFORMED: &str = "_malformed";

/// An answer that grows.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own that came at its own time"
)]
pub(super) struct AnswerBuilder {
    origin: Arc<str>,
    id_prefix: String,
    slots: Vec<Slot>,
    ids: HashSet<Arc<str>>,
    minted: usize,
    usage: Usage,
    told: Usage,
    stop: Option<StopReason>,
    refused: bool,
    /// `true` if a call in the provider's own form waits for the host.
    waits_for_host: bool,
    /// The warnings that were given.
    warned: Vec<String>,
    /// The number of parts of the answer that nobody reads, as far as warnings told of them.
    not_read: usize,
    /// The members kept beside the message, by name.
    beside: Map<String, Value>,
    /// `true` if an answer without anything is strange.
    is_chat: bool,
    refusal: Option<Refusal>,
    closed: bool,
    ended: bool,
    events: Vec<Event>,
}

/// The place of a block in its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockIndex(usize);

enum Slot {
    Text {
        text: String,
        sealed: bool,
    },
    Thinking {
        text: String,
        signature: String,
        sealed: bool,
    },
    Redacted(String),
    Call(Call),
    Own(Own),
}

/// The content of a provider in its own form.
struct Own {
    data: Value,
    text: Option<String>,
    sealed: bool,
}

/// A call on its way.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own that came at its own time"
)]
struct Call {
    /// As the provider gave it, until the call starts; then as the answer has it.
    id: Arc<str>,
    name: String,
    json: String,
    /// `true` if the arguments came as a value: nothing more will come, also if it is empty.
    given: bool,
    /// `true` if more of the name may come.
    growing: bool,
    /// `true` if the arguments are `{}` so far, which nobody was told: some servers begin with
    /// that.
    held: bool,
    started: bool,
    cut: bool,
    done: Option<ToolCall>,
}

/// The longest name of a tool, id of a call, and word of a provider for why it stopped, in bytes.
/// Providers take names of 64 characters, and their own ids have 40 at most.
const LONGEST_NAME: usize = 256;

/// The most unread parts that are listed.
const MOST_NOT_READ: usize = 32;

/// The number of blocks that an answer may have: more than any model gives, and few enough to
/// search.
pub(super) const MOST_BLOCKS: usize = 1024;

impl AnswerBuilder {
    /// An empty answer.
    pub(super) fn new(source: Source) -> AnswerBuilder {
        AnswerBuilder {
            origin: source.api.name().into(),
            is_chat: source.wire.is_chat(),
            id_prefix: source.id_prefix,
            slots: Vec::new(),
            ids: HashSet::new(),
            minted: 0,
            usage: Usage::default(),
            told: Usage::default(),
            stop: None,
            refused: false,
            waits_for_host: false,
            warned: Vec::new(),
            not_read: 0,
            beside: Map::new(),
            refusal: None,
            closed: false,
            ended: false,
            events: Vec::new(),
        }
    }

    /// Moves the events of what came since the last time, and tells the usage if it changed.
    pub(super) fn drain(&mut self, events: &mut Vec<Event>) {
        if self.usage != self.told {
            self.told = self.usage;
            self.events.push(Event::Usage(self.usage));
        }
        events.append(&mut self.events);
    }

    /// A piece of text: goes on with the last block if that is text.
    pub(super) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let place = match self.slots.last() {
            Some(Slot::Text { sealed: false, .. }) => self.last(),
            _ => self.open_text(),
        };
        self.text_at(place, piece);
    }

    /// A new block of text.
    pub(super) fn open_text(&mut self) -> BlockIndex {
        self.open(Slot::Text {
            text: String::new(),
            sealed: false,
        })
    }

    /// A piece of a block's text.
    pub(super) fn text_at(&mut self, place: BlockIndex, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match &mut self.slots[place.0] {
            Slot::Text { text, .. } => {
                text.push_str(piece);
                self.events.push(Event::Text(piece.to_owned()));
            }
            Slot::Thinking { .. } | Slot::Redacted(_) | Slot::Call(_) | Slot::Own(_) => {
                self.not_read("a piece of text came for a block of another type");
            }
        }
    }

    /// Returns `true` if a block is one of text.
    pub(super) fn takes_text(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Text { .. })
    }

    /// Returns `true` if a block of text is more than white space.
    pub(super) fn has_words(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Text { text, .. } if !text.trim().is_empty())
    }

    /// Returns `true` if nothing was said in a block of text or of thinking.
    pub(super) fn is_blank(&self, place: BlockIndex) -> bool {
        match &self.slots[place.0] {
            Slot::Text { text, .. } | Slot::Thinking { text, .. } => text.is_empty(),
            Slot::Redacted(data) => data.is_empty(),
            Slot::Call(call) => call.json.is_empty(),
            Slot::Own(_) => false,
        }
    }

    /// Returns `true` if a block of reasoning has a signature.
    pub(super) fn is_signed(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Thinking { signature, .. } if !signature.is_empty())
    }

    /// A piece of reasoning: goes on with the last block if that is reasoning without a signature.
    pub(super) fn thinking(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let place = match self.slots.last() {
            Some(Slot::Thinking {
                signature,
                sealed: false,
                ..
            }) if signature.is_empty() => self.last(),
            _ => self.open_thinking(),
        };
        self.thinking_at(place, piece);
    }

    /// A new block of reasoning.
    pub(super) fn open_thinking(&mut self) -> BlockIndex {
        self.open(Slot::Thinking {
            text: String::new(),
            signature: String::new(),
            sealed: false,
        })
    }

    /// A piece of a block's reasoning.
    pub(super) fn thinking_at(&mut self, place: BlockIndex, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match &mut self.slots[place.0] {
            Slot::Thinking { text, .. } => {
                text.push_str(piece);
                self.events.push(Event::Thinking(piece.to_owned()));
            }
            Slot::Text { .. } | Slot::Redacted(_) | Slot::Call(_) | Slot::Own(_) => {
                self.not_read("a piece of reasoning came for a block of another type");
            }
        }
    }

    /// A piece of a block's signature.
    pub(super) fn signature_at(&mut self, place: BlockIndex, piece: &str) {
        match &mut self.slots[place.0] {
            Slot::Thinking { signature, .. } => signature.push_str(piece),
            Slot::Text { .. } | Slot::Redacted(_) | Slot::Call(_) | Slot::Own(_) => {
                if !piece.is_empty() {
                    self.not_read("a signature came for a block of another type");
                }
            }
        }
    }

    /// The end of a block: nothing is added to it, and its signature is whole.
    pub(super) fn seal(&mut self, place: BlockIndex) {
        match &mut self.slots[place.0] {
            Slot::Text { sealed, .. } | Slot::Thinking { sealed, .. } => *sealed = true,
            Slot::Own(own) => own.sealed = true,
            Slot::Redacted(_) | Slot::Call(_) => {}
        }
    }

    /// The end of the last block.
    pub(super) fn seal_last(&mut self) {
        if !self.slots.is_empty() {
            self.seal(self.last());
        }
    }

    /// Returns `true` if the last block is text or thinking: only then can something go on with it.
    pub(super) fn ends_in_words(&self) -> bool {
        matches!(
            self.slots.last(),
            None | Some(Slot::Text { .. } | Slot::Thinking { .. })
        )
    }

    /// Something in the provider's own form, which may still grow.
    pub(super) fn open_own(&mut self, data: Value) -> BlockIndex {
        self.open(Slot::Own(Own {
            data,
            text: None,
            sealed: false,
        }))
    }

    /// Something in the provider's own form, complete.
    pub(super) fn own(&mut self, data: Value) -> BlockIndex {
        let place = self.open_own(data);
        self.seal(place);
        place
    }

    /// Turns a call into something in the provider's own form, which holds its signature itself.
    pub(super) fn make_own(&mut self, place: BlockIndex, data: Value) {
        self.slots[place.0] = Slot::Own(Own {
            data,
            text: None,
            sealed: true,
        });
        let before = place
            .0
            .checked_sub(1)
            .and_then(|index| self.slots.get_mut(index));
        if let Some(Slot::Thinking { signature, .. }) = before {
            signature.clear();
        }
    }

    /// Returns what is known of something in the provider's own form.
    pub(super) fn own_data(&mut self, place: BlockIndex) -> Option<&mut Value> {
        match &mut self.slots[place.0] {
            Slot::Own(own) => Some(&mut own.data),
            _ => None,
        }
    }

    /// A piece of what something in the provider's own form says in words.
    pub(super) fn own_words(&mut self, place: BlockIndex, piece: &str) {
        if let Slot::Own(own) = &mut self.slots[place.0]
            && !piece.is_empty()
        {
            own.text.get_or_insert_default().push_str(piece);
            self.events.push(Event::Text(piece.to_owned()));
        }
    }

    /// Turns a block of text into one in the provider's own form, which says the same.
    pub(super) fn text_as_own(&mut self, place: BlockIndex, data: impl FnOnce(&str) -> Value) {
        if let Slot::Text { text, .. } = &mut self.slots[place.0] {
            let text = std::mem::take(text);
            self.slots[place.0] = Slot::Own(Own {
                data: data(&text),
                text: Some(text),
                sealed: true,
            });
        }
    }

    /// Turns blocks of text into one in the provider's own form, in the place of the first, which
    /// says the same as all of them.
    pub(super) fn texts_as_own(&mut self, places: &[BlockIndex], data: Value) {
        let Some((first, others)) = places.split_first() else {
            return;
        };
        let more: String = others.iter().map(|place| self.take_text(*place)).collect();
        if let Slot::Text { text, .. } = &mut self.slots[first.0] {
            text.push_str(&more);
        }
        self.text_as_own(*first, |_| data);
    }

    /// Drops something in the provider's own form, unless the answer says something beside it and
    /// thinking.
    pub(super) fn drop_unless_said(&mut self, place: BlockIndex) {
        if !self
            .slots
            .iter()
            .enumerate()
            .any(|(index, slot)| index != place.0 && slot.says_something())
        {
            self.slots[place.0] = Slot::Text {
                text: String::new(),
                sealed: true,
            };
        }
    }

    fn take_text(&mut self, place: BlockIndex) -> String {
        match &mut self.slots[place.0] {
            Slot::Text { text, sealed } => {
                *sealed = true;
                std::mem::take(text)
            }
            _ => String::new(),
        }
    }

    /// A call in the provider's own form waits for the host.
    pub(super) fn waits_for_host(&mut self) {
        self.waits_for_host = true;
    }

    /// Tells, once, of something that is not kept.
    pub(super) fn warn(&mut self, message: &str) {
        if !self.warned.iter().any(|told| told == message) {
            self.warned.push(message.to_owned());
            self.events.push(Event::Warning(message.to_owned()));
        }
    }

    /// Tells, once, of a part of the answer that is not read: a whole phrase, such as "the event
    /// `x` is unknown".
    pub(super) fn not_read(&mut self, what: &str) {
        let message = format!("a part of the answer is not read: {what}");
        if self.warned.contains(&message) || self.not_read > MOST_NOT_READ {
            return;
        }
        self.not_read += 1;
        match self.not_read > MOST_NOT_READ {
            true => self.warn("more parts of the answer are not read: no further ones are listed"),
            false => self.warn(&message),
        }
    }

    /// Keeps something that is not part of the message in a block of its own; the last one of a
    /// name counts.
    pub(super) fn beside(&mut self, name: &str, value: &Value) {
        self.beside.insert(name.to_owned(), value.clone());
    }

    /// The same for what comes in pieces: lists grow.
    pub(super) fn beside_in_pieces(&mut self, name: &str, value: &Value) {
        put_together(self.beside.entry(name).or_insert(Value::Null), value);
    }

    /// A signature for what comes next: on the reasoning just before, or on reasoning without
    /// words.
    pub(super) fn sign_next(&mut self, signature: &str) {
        let place = self.slots.len();
        self.sign_before(place, signature);
    }

    /// Returns the block that the next signature belongs to, which may come later: the reasoning
    /// just before, or reasoning without words.
    pub(super) fn place_of_signature(&mut self) -> BlockIndex {
        match self.slots.last() {
            Some(Slot::Thinking { signature, .. }) if signature.is_empty() => self.last(),
            _ => self.open_thinking(),
        }
    }

    /// A signature for the text that was just said: the reasoning before it carries it, and the
    /// text is over.
    pub(super) fn sign_text(&mut self, signature: &str) {
        match self.slots.last_mut() {
            Some(Slot::Text { sealed, .. }) => {
                *sealed = true;
                let place = self.slots.len() - 1;
                self.sign_before(place, signature);
            }
            _ => self.sign_next(signature),
        }
    }

    /// Only for parsers that keep no [`BlockIndex`]: blocks from `place` on may move.
    fn sign_before(&mut self, place: usize, mark: &str) {
        let before = place
            .checked_sub(1)
            .and_then(|index| self.slots.get_mut(index));
        if let Some(Slot::Thinking {
            signature, sealed, ..
        }) = before
            && signature.is_empty()
        {
            mark.clone_into(signature);
            *sealed = true;
            return;
        }
        self.slots.insert(
            place,
            Slot::Thinking {
                text: String::new(),
                signature: mark.to_owned(),
                sealed: true,
            },
        );
    }

    /// Reasoning that only the provider can read. The same twice in a row is one.
    pub(super) fn redacted(&mut self, data: &str) {
        let repeated = matches!(self.slots.last(), Some(Slot::Redacted(last)) if last == data);
        if !data.is_empty() && !repeated {
            self.open(Slot::Redacted(data.to_owned()));
        }
    }

    /// Turns a block of reasoning into one that only the provider can read.
    pub(super) fn redact(&mut self, place: BlockIndex, data: &str) {
        self.slots[place.0] = Slot::Redacted(data.to_owned());
    }

    /// A new call. It starts when its name is known; an id that is empty or taken is replaced then.
    pub(super) fn open_call(&mut self, id: &str, name: &str) -> BlockIndex {
        let place = self.open(Slot::Call(Call {
            id: id.into(),
            name: name.to_owned(),
            ..Call::default()
        }));
        self.start(place);
        place
    }

    /// A new call of a provider whose names may come in pieces: it starts with its arguments, or
    /// with what comes next.
    pub(super) fn open_growing_call(&mut self, id: &str, name: &str) -> BlockIndex {
        self.open(Slot::Call(Call {
            id: id.into(),
            name: name.to_owned(),
            growing: true,
            ..Call::default()
        }))
    }

    /// Adds what came late of a call: its id, its name or a piece of that. A name may be repeated.
    pub(super) fn name_call(&mut self, place: BlockIndex, id: &str, name: &str) {
        if let Slot::Call(call) = &mut self.slots[place.0]
            && !call.started
        {
            if call.id.is_empty() {
                call.id = id.into();
            }
            if name.starts_with(&call.name) {
                name.clone_into(&mut call.name);
            } else {
                call.name.push_str(name);
            }
            self.start(place);
        }
    }

    /// Nothing more of a call's name comes.
    fn settle(&mut self, place: BlockIndex) {
        if let Slot::Call(call) = &mut self.slots[place.0]
            && std::mem::take(&mut call.growing)
        {
            self.start(place);
        }
    }

    /// A piece of the JSON text of a call's arguments.
    pub(super) fn arguments(&mut self, place: BlockIndex, piece: &str) {
        let Slot::Call(call) = &mut self.slots[place.0] else {
            if !piece.is_empty() {
                self.not_read("a piece of arguments came for a block of another type");
            }
            return;
        };
        if piece.is_empty() || (call.held && piece.trim().is_empty()) {
            return;
        }
        if std::mem::take(&mut call.held) {
            call.json.clear();
        }
        if call.growing && call.json.is_empty() && piece.trim() == "{}" {
            piece.clone_into(&mut call.json);
            call.held = true;
            return;
        }
        self.settle(place);
        if let Slot::Call(call) = &mut self.slots[place.0]
            && call.done.is_none()
        {
            call.json.push_str(piece);
            if call.started {
                self.events.push(Event::ToolCallArguments {
                    id: Arc::clone(&call.id),
                    json: piece.to_owned(),
                });
            }
        }
    }

    /// Arguments as some servers send them: text, a value, or nothing.
    pub(super) fn arguments_value(&mut self, place: BlockIndex, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.arguments(place, text),
            value => {
                if let Slot::Call(call) = &mut self.slots[place.0] {
                    call.given = true;
                }
                self.arguments(place, &value.to_string());
            }
        }
    }

    /// Returns `true` if a call's arguments are a whole object already.
    pub(super) fn has_whole_arguments(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.json.trim_end().ends_with('}') && call.input().is_ok())
    }

    /// Returns `true` if a call's arguments are these.
    pub(super) fn has_arguments(&self, place: BlockIndex, arguments: &Value) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.input().as_ref() == Ok(arguments))
    }

    /// Returns `true` if a call's arguments are `{}` so far, which may not have been all.
    pub(super) fn is_held(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.held)
    }

    /// Returns `true` if a call has this name and these arguments, a text or a value.
    pub(super) fn is_call(&self, place: BlockIndex, name: &str, arguments: &Value) -> bool {
        let Slot::Call(call) = &self.slots[place.0] else {
            return false;
        };
        let parsed = match arguments {
            Value::String(text) => serde_json::from_str(text).ok(),
            value => Some(value.clone()),
        };
        call.name == name && parsed.is_some_and(|arguments| call.input() == Ok(arguments))
    }

    /// The provider says that a call is complete. One without arguments, or with arguments that are
    /// no object, may have been cut by the limit of output tokens: the answer's end decides.
    pub(super) fn end_call(&mut self, place: BlockIndex) {
        if self.has_whole_arguments(place) {
            self.complete_call(place);
        }
    }

    /// The provider says that a call is not complete.
    pub(super) fn cut_call(&mut self, place: BlockIndex) {
        if let Slot::Call(call) = &mut self.slots[place.0] {
            call.cut = true;
        }
    }

    /// Returns what is known of the tokens.
    pub(super) fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }

    /// Why the model stopped. With this, the answer is complete.
    pub(super) fn stop(&mut self, stop: StopReason) {
        self.stop = Some(match stop {
            StopReason::Other(word) if !is_name(&word) => StopReason::Other("other".to_owned()),
            stop => stop,
        });
    }

    /// Ends an answer for which the server gives no reason to stop: it is complete if it says
    /// something and none of its calls is cut.
    pub(super) fn stop_without_reason(&mut self) {
        let says_something = self.slots.iter().any(Slot::says_something);
        if self.stop.is_none()
            && says_something
            && (0..self.slots.len()).all(|index| self.is_uncut(index))
        {
            self.stop = Some(StopReason::EndTurn);
            self.warn(
                "the server does not say why the model stopped: the answer counts as complete",
            );
        }
    }

    /// Returns `false` for a call whose arguments break off.
    fn is_uncut(&self, index: usize) -> bool {
        match &self.slots[index] {
            Slot::Call(call) => {
                call.is_nothing() || call.given || self.has_whole_arguments(BlockIndex(index))
            }
            _ => true,
        }
    }

    /// Returns `true` if the model came to the end of what it had to say: nothing cut it off.
    pub(super) fn stopped_by_itself(&self) -> bool {
        matches!(
            self.stop,
            Some(StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence)
        )
    }

    /// The answer is a refusal, whatever the reason says.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Notes the provider's words on a refusal; only the first word counts.
    pub(super) fn refused_for(&mut self, category: &str, explanation: &str) {
        let refusal = Refusal {
            category: said(category),
            explanation: said(explanation),
        };
        if refusal != Refusal::default() && self.refusal.is_none() {
            self.refusal = Some(refusal);
        }
    }

    /// Puts some blocks in this order, in the places that they have together. Only where no
    /// [`BlockIndex`] is used any more.
    pub(super) fn put_in_order(&mut self, order: &[BlockIndex]) {
        let mut places = order.to_vec();
        places.sort_by_key(|place| place.0);
        let mut slots: Vec<Option<Slot>> = self.slots.drain(..).map(Some).collect();
        let moved: Vec<Option<Slot>> = order.iter().map(|place| slots[place.0].take()).collect();
        places
            .into_iter()
            .zip(moved)
            .for_each(|(place, slot)| slots[place.0] = slot);
        self.slots = slots.into_iter().flatten().collect();
    }

    /// Nothing that follows matters.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns how many blocks there are.
    pub(super) fn block_count(&self) -> usize {
        self.slots.len()
    }

    /// Ends the answer: completes its calls and says why the model stopped.
    pub(super) fn end(&mut self) -> Result<StopReason, Error> {
        let Some(stop) = self.stop.clone() else {
            let error = match self.closed {
                true => Error::new(
                    Category::Provider,
                    "the server ended the answer before it was complete",
                ),
                false => Error::new(
                    Category::Network,
                    "the connection ended before the answer was complete",
                ),
            };
            return Err(error.retryable());
        };
        self.slots
            .retain(|slot| !matches!(slot, Slot::Call(call) if call.is_nothing()));
        for index in 0..self.slots.len() {
            if self.is_whole_call(index, &stop)? {
                self.complete_call(BlockIndex(index));
            }
        }
        self.ended = true;
        let stop = self.agreed(stop);
        let is_over = matches!(stop, StopReason::EndTurn | StopReason::StopSequence);
        if is_over && self.is_chat && !self.slots.iter().any(Slot::says_something) {
            self.warn("the answer is complete, and says nothing");
        }
        Ok(stop)
    }

    /// Returns whether a call may count as complete now that the answer is.
    fn is_whole_call(&self, index: usize, stop: &StopReason) -> Result<bool, Error> {
        let Slot::Call(call) = &self.slots[index] else {
            return Ok(false);
        };
        let cut = *stop == StopReason::MaxTokens
            && !call.given
            && !self.has_whole_arguments(BlockIndex(index));
        if call.cut || cut {
            return Ok(false);
        }
        if !is_name(&call.name) {
            let what = if call.name.is_empty() {
                "without a name"
            } else {
                "whose name no tool can have"
            };
            return Err(Error::new(
                Category::Provider,
                format!("the answer has a tool call {what}"),
            ));
        }
        Ok(true)
    }

    /// The reason that the rest of the answer agrees with: servers say `stop` beside calls, and
    /// `tool_calls` without any.
    fn agreed(&self, stop: StopReason) -> StopReason {
        let calls = self
            .slots
            .iter()
            .any(|slot| matches!(slot, Slot::Call(Call { done: Some(_), .. })));
        match stop {
            StopReason::MaxTokens | StopReason::Refusal => stop,
            _ if self.refused => StopReason::Refusal,
            _ if calls || self.waits_for_host => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::EndTurn,
            stop => stop,
        }
    }

    /// The blocks and calls.
    pub(super) fn into_answer(self) -> Answer {
        let mut answer = Answer {
            usage: self.usage,
            refusal: self.refusal,
            ..Answer::default()
        };
        let last = self.slots.len().saturating_sub(1);
        for (index, slot) in self.slots.into_iter().enumerate() {
            // What is the provider's own goes back as it is, or not at all.
            let whole = self.ended || (index < last && !matches!(slot, Slot::Own(_)));
            if let Slot::Call(Call {
                done: Some(call), ..
            }) = &slot
            {
                answer.calls.push(call.clone());
            }
            answer.blocks.extend(slot.into_block(whole, &self.origin));
        }
        for (name, value) in self.beside {
            let data = Value::Object(Map::from_iter([(name, value)]));
            let origin = Arc::clone(&self.origin);
            answer.blocks.push(Block::Provider(ProviderBlock {
                origin,
                data,
                text: None,
            }));
        }
        answer
    }

    /// Returns `true` if there are more blocks than an answer has: nothing of it is worth more
    /// work.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() > MOST_BLOCKS
    }

    /// A new block; of a full answer the last one, which takes only what is of its kind.
    fn open(&mut self, slot: Slot) -> BlockIndex {
        if !self.slots.is_empty() {
            self.settle(self.last());
        }
        if !self.is_full() {
            self.slots.push(slot);
        }
        self.last()
    }

    fn last(&self) -> BlockIndex {
        BlockIndex(self.slots.len() - 1)
    }

    /// Starts a call whose name is known.
    fn start(&mut self, place: BlockIndex) {
        let Slot::Call(call) = &mut self.slots[place.0] else {
            return;
        };
        if call.started || call.growing || !is_name(&call.name) {
            return;
        }
        call.started = true;
        let free = is_name(&call.id) && !self.ids.contains(&call.id);
        let id = if free {
            Arc::clone(&call.id)
        } else {
            mint(&self.id_prefix, &mut self.minted, &self.ids)
        };
        call.id = Arc::clone(&id);
        self.ids.insert(Arc::clone(&id));
        self.events.push(Event::ToolCallStart {
            id: Arc::clone(&id),
            name: call.name.as_str().into(),
        });
        if !call.json.is_empty() && !call.held {
            self.events.push(Event::ToolCallArguments {
                id,
                json: call.json.clone(),
            });
        }
    }

    fn complete_call(&mut self, place: BlockIndex) {
        self.settle(place);
        if let Slot::Call(call) = &mut self.slots[place.0]
            && call.done.is_none()
            && call.started
        {
            let done = ToolCall {
                id: Arc::clone(&call.id),
                name: call.name.as_str().into(),
                input: call.input(),
            };
            call.done = Some(done.clone());
            if std::mem::take(&mut call.held) {
                self.events.push(Event::ToolCallArguments {
                    id: Arc::clone(&done.id),
                    json: call.json.clone(),
                });
            }
            self.events.push(Event::ToolCallEnd(done));
        }
    }
}

fn said(text: &str) -> Option<String> {
    Some(failure::snippet(text.as_bytes())).filter(|text| !text.is_empty())
}

/// Adds a piece to what is known of a value: lists grow, members are put together, anything else is
/// replaced.
fn put_together(known: &mut Value, piece: &Value) {
    match (known, piece) {
        (Value::Array(known), Value::Array(more)) => known.extend(more.iter().cloned()),
        (Value::Object(known), Value::Object(more)) => {
            for (name, piece) in more {
                put_together(known.entry(name.as_str()).or_insert(Value::Null), piece);
            }
        }
        (known, piece) => known.clone_from(piece),
    }
}

/// Returns `true` if a word of a server may be a name, an id or a reason: something, short, and on
/// one line.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST_NAME && !word.contains(|c: char| c.is_control())
}

/// An id that no call of the answer has.
fn mint(prefix: &str, minted: &mut usize, taken: &HashSet<Arc<str>>) -> Arc<str> {
    loop {
        *minted += 1;
        let id: Arc<str> = format!("{prefix}{minted}").into();
        if !taken.contains(&id) {
            return id;
        }
    }
}

impl Call {
    /// A call that never became one.
    fn is_nothing(&self) -> bool {
        self.name.is_empty() && self.json.trim().is_empty()
    }

    /// The arguments. No text is no arguments: several servers send `""` for a call without any.
    fn input(&self) -> Result<Value, MalformedInput> {
        if self.json.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let problem = match serde_json::from_str(&self.json) {
            Ok(Value::Object(object)) => return Ok(Value::Object(object)),
            Ok(other) => format!("{}, not an object", kind_of(&other)),
            Err(error) => error.to_string(),
        };
        Err(MalformedInput {
            text: self.json.clone(),
            problem,
        })
    }
}

impl Slot {
    /// Returns `true` if it says something: of an answer of other blocks, no next request holds
    /// anything.
    fn says_something(&self) -> bool {
        match self {
            Slot::Text { text, .. } => !text.trim().is_empty(),
            Slot::Thinking { .. } | Slot::Redacted(_) => false,
            Slot::Call(_) | Slot::Own(_) => true,
        }
    }

    /// The block, if it holds anything. A signature counts only when it is whole.
    fn into_block(self, whole: bool, origin: &Arc<str>) -> Option<Block> {
        let (own_origin, origin) = (origin, Some(Arc::clone(origin)));
        match self {
            Slot::Text { text, .. } => (!text.is_empty()).then(|| Block::Text(text.into())),
            Slot::Thinking {
                text,
                signature,
                sealed,
            } => {
                let signature = if whole || sealed {
                    signature
                } else {
                    String::new()
                };
                let blank = text.is_empty() && signature.is_empty();
                (!blank).then(|| Block::Thinking {
                    text: text.into(),
                    signature: signature.into(),
                    origin,
                })
            }
            Slot::Redacted(data) => Some(Block::RedactedThinking {
                data: data.into(),
                origin,
            }),
            Slot::Own(own) if !whole && !own.sealed => {
                own.text.map(|text| Block::Text(text.into()))
            }
            Slot::Own(own) => Some(Block::Provider(ProviderBlock {
                origin: Arc::clone(own_origin),
                data: own.data,
                text: own.text.filter(|text| !text.is_empty()).map(Into::into),
            })),
            Slot::Call(call) => call.done.map(ToolCall::into_block),
        }
    }
}

impl ToolCall {
    fn into_block(self) -> Block {
        let input = self
            .input
            .unwrap_or_else(|input| Value::Object(malformed(input)));
        Block::ToolUse {
            id: self.id,
            name: self.name,
            input,
        }
    }
}

fn malformed(input: MalformedInput) -> Map<String, Value> {
    Map::from_iter([(MALFORMED.to_owned(), Value::String(input.text))])
}
