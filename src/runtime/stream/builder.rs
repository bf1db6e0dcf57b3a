//! Converts parts of an answer to events, blocks and calls.
//!
//! The parsers report what they received. This module interprets it for all formats: it determines
//! which pieces form a block, the ID and arguments of a call, when a call is complete, and the stop
//! reason.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Source;
use crate::conversation::{Block, ProviderBlock};
use crate::json::kind_of;
use crate::runtime::{
    Answer, Category, Error, Event, MalformedInput, Refusal, StopReason, ToolCall, Usage, failure,
};

/// The key under which malformed arguments are stored in the history.
const MALFORMED: &str = "_malformed";

/// An answer under construction.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is independent and is set at a different time"
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
    /// `true` if a provider-specific call waits for the host.
    waits_for_host: bool,
    /// The warnings so far, each of which is emitted once.
    warned: Vec<String>,
    /// The number of parts reported as unread.
    not_read: usize,
    /// Members that are kept separately from the message, by name.
    beside: Map<String, Value>,
    /// `true` if an empty answer is an error.
    is_chat: bool,
    refusal: Option<Refusal>,
    closed: bool,
    ended: bool,
    events: Vec<Event>,
}

/// The index of a block in its answer.
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

/// Provider-specific content.
struct Own {
    data: Value,
    text: Option<String>,
    sealed: bool,
}

/// A call that is being received.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is independent and is set at a different time"
)]
struct Call {
    /// The provider's ID until the call starts; after that, the ID in the answer.
    id: Arc<str>,
    name: String,
    json: String,
    /// `true` if the arguments arrived as one value, so they are complete even if empty.
    given: bool,
    /// `true` if further pieces of the name may follow.
    growing: bool,
    /// `true` if the arguments so far are `{}`, which is not emitted yet because some servers begin
    /// with it.
    held: bool,
    started: bool,
    cut: bool,
    done: Option<ToolCall>,
}

/// The maximum length of a tool's name, a call's ID, and a provider's stop reason, in bytes.
/// Providers accept names of 64 characters, and their own IDs have at most 40.
const LONGEST_NAME: usize = 256;

/// The maximum number of parts reported as unread.
const MOST_NOT_READ: usize = 32;

/// The maximum number of blocks in an answer: more than any model produces, but few enough to be
/// searched quickly.
pub(super) const MOST_BLOCKS: usize = 1024;

impl AnswerBuilder {
    /// Returns an empty answer.
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

    /// Moves the events created since the last call to `events`, including the usage if it has
    /// changed.
    pub(super) fn drain(&mut self, events: &mut Vec<Event>) {
        if self.usage != self.told {
            self.told = self.usage;
            self.events.push(Event::Usage(self.usage));
        }
        events.append(&mut self.events);
    }

    /// Adds a piece of text to the last block if that is text, or else to a new block.
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

    /// Opens a new text block.
    pub(super) fn open_text(&mut self) -> BlockIndex {
        self.open(Slot::Text {
            text: String::new(),
            sealed: false,
        })
    }

    /// Adds a piece to a text block.
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
                self.not_read("a piece of text arrived for a block of a different type");
            }
        }
    }

    /// Returns `true` if a block is a text block.
    pub(super) fn takes_text(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Text { .. })
    }

    /// Returns `true` if a block is a text block that is not blank.
    pub(super) fn has_words(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Text { text, .. } if !text.trim().is_empty())
    }

    /// Returns `true` if a block is empty.
    pub(super) fn is_blank(&self, place: BlockIndex) -> bool {
        match &self.slots[place.0] {
            Slot::Text { text, .. } | Slot::Thinking { text, .. } => text.is_empty(),
            Slot::Redacted(data) => data.is_empty(),
            Slot::Call(call) => call.json.is_empty(),
            Slot::Own(_) => false,
        }
    }

    /// Returns `true` if a thinking block has a signature.
    pub(super) fn is_signed(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Thinking { signature, .. } if !signature.is_empty())
    }

    /// Adds a piece of thinking to the last block if that is thinking without a signature, or else
    /// to a new block.
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

    /// Opens a new thinking block.
    pub(super) fn open_thinking(&mut self) -> BlockIndex {
        self.open(Slot::Thinking {
            text: String::new(),
            signature: String::new(),
            sealed: false,
        })
    }

    /// Adds a piece to a thinking block.
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
                self.not_read("a piece of reasoning arrived for a block of a different type");
            }
        }
    }

    /// Adds a piece to a block's signature.
    pub(super) fn signature_at(&mut self, place: BlockIndex, piece: &str) {
        match &mut self.slots[place.0] {
            Slot::Thinking { signature, .. } => signature.push_str(piece),
            Slot::Text { .. } | Slot::Redacted(_) | Slot::Call(_) | Slot::Own(_) => {
                if !piece.is_empty() {
                    self.not_read("a signature arrived for a block of a different type");
                }
            }
        }
    }

    /// Ends a block. Nothing more is added to it, and its signature is complete.
    pub(super) fn seal(&mut self, place: BlockIndex) {
        match &mut self.slots[place.0] {
            Slot::Text { sealed, .. } | Slot::Thinking { sealed, .. } => *sealed = true,
            Slot::Own(own) => own.sealed = true,
            Slot::Redacted(_) | Slot::Call(_) => {}
        }
    }

    /// Ends the last block.
    pub(super) fn seal_last(&mut self) {
        if !self.slots.is_empty() {
            self.seal(self.last());
        }
    }

    /// Returns `true` if the last block is text or thinking that can be extended.
    pub(super) fn ends_in_words(&self) -> bool {
        matches!(
            self.slots.last(),
            None | Some(Slot::Text { .. } | Slot::Thinking { .. })
        )
    }

    /// Opens a provider-specific block, which may still grow.
    pub(super) fn open_own(&mut self, data: Value) -> BlockIndex {
        self.open(Slot::Own(Own {
            data,
            text: None,
            sealed: false,
        }))
    }

    /// Adds a complete provider-specific block.
    pub(super) fn own(&mut self, data: Value) -> BlockIndex {
        let place = self.open_own(data);
        self.seal(place);
        place
    }

    /// Converts a call to a provider-specific block that contains the call's signature.
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

    /// Returns the data of a provider-specific block; `None` for any other block.
    pub(super) fn own_data(&mut self, place: BlockIndex) -> Option<&mut Value> {
        match &mut self.slots[place.0] {
            Slot::Own(own) => Some(&mut own.data),
            _ => None,
        }
    }

    /// Adds a piece to the text of a provider-specific block.
    pub(super) fn own_words(&mut self, place: BlockIndex, piece: &str) {
        if let Slot::Own(own) = &mut self.slots[place.0]
            && !piece.is_empty()
        {
            own.text.get_or_insert_default().push_str(piece);
            self.events.push(Event::Text(piece.to_owned()));
        }
    }

    /// Converts a text block to a provider-specific block with the same text.
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

    /// Merges text blocks into one provider-specific block, which contains all of their text and
    /// takes the place of the first.
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

    /// Drops a provider-specific block if everything else in the answer is thinking.
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

    /// Records that a provider-specific call waits for the host.
    pub(super) fn waits_for_host(&mut self) {
        self.waits_for_host = true;
    }

    /// Emits a warning about content that is not kept, unless it was emitted before.
    pub(super) fn warn(&mut self, message: &str) {
        if !self.warned.iter().any(|told| told == message) {
            self.warned.push(message.to_owned());
            self.events.push(Event::Warning(message.to_owned()));
        }
    }

    /// Reports a part of the answer that is not read, unless it was reported before. `what` is a
    /// clause such as "the event `x` is unknown".
    pub(super) fn not_read(&mut self, what: &str) {
        let message = format!("part of the response is ignored: {what}");
        if self.warned.contains(&message) || self.not_read > MOST_NOT_READ {
            return;
        }
        self.not_read += 1;
        match self.not_read > MOST_NOT_READ {
            true => self.warn("more parts of the response are ignored, but not listed"),
            false => self.warn(&message),
        }
    }

    /// Keeps a value from outside the message in a separate block. A later value with the same name
    /// replaces it.
    pub(super) fn beside(&mut self, name: &str, value: &Value) {
        self.beside.insert(name.to_owned(), value.clone());
    }

    /// Keeps a value like [`AnswerBuilder::beside`], but merges later pieces into it; lists are
    /// extended.
    pub(super) fn beside_in_pieces(&mut self, name: &str, value: &Value) {
        put_together(self.beside.entry(name).or_insert(Value::Null), value);
    }

    /// Adds a signature for the block that follows. It is stored in the thinking just before, or in
    /// a new thinking block without text.
    pub(super) fn sign_next(&mut self, signature: &str) {
        let place = self.slots.len();
        self.sign_before(place, signature);
    }

    /// Returns the block that stores the signature of the next block: the thinking just before, or
    /// a new thinking block without text. The signature may arrive later.
    pub(super) fn place_of_signature(&mut self) -> BlockIndex {
        match self.slots.last() {
            Some(Slot::Thinking { signature, .. }) if signature.is_empty() => self.last(),
            _ => self.open_thinking(),
        }
    }

    /// Adds a signature for the preceding text, and ends that text. The signature is stored in the
    /// thinking before the text.
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

    /// Adds a signature to the thinking before `place`. Only for parsers that store no
    /// [`BlockIndex`], because later blocks may move.
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

    /// Adds redacted thinking, which only the provider can read. If it equals the previous one, it
    /// is ignored.
    pub(super) fn redacted(&mut self, data: &str) {
        let repeated = matches!(self.slots.last(), Some(Slot::Redacted(last)) if last == data);
        if !data.is_empty() && !repeated {
            self.open(Slot::Redacted(data.to_owned()));
        }
    }

    /// Converts a thinking block to a redacted one, which only the provider can read.
    pub(super) fn redact(&mut self, place: BlockIndex, data: &str) {
        self.slots[place.0] = Slot::Redacted(data.to_owned());
    }

    /// Opens a new call. The call starts when its name is known; a missing or duplicate ID is then
    /// replaced.
    pub(super) fn open_call(&mut self, id: &str, name: &str) -> BlockIndex {
        let place = self.open(Slot::Call(Call {
            id: id.into(),
            name: name.to_owned(),
            ..Call::default()
        }));
        self.start(place);
        place
    }

    /// Opens a new call from a provider that may send names in pieces. The call starts when its
    /// arguments or the next block begin.
    pub(super) fn open_growing_call(&mut self, id: &str, name: &str) -> BlockIndex {
        self.open(Slot::Call(Call {
            id: id.into(),
            name: name.to_owned(),
            growing: true,
            ..Call::default()
        }))
    }

    /// Adds an ID or a name that arrived late, or a piece of the name, to a call. A name that
    /// starts with the previous pieces replaces them.
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

    /// Marks a call's name as complete.
    fn settle(&mut self, place: BlockIndex) {
        if let Slot::Call(call) = &mut self.slots[place.0]
            && std::mem::take(&mut call.growing)
        {
            self.start(place);
        }
    }

    /// Adds a piece to the JSON text of a call's arguments.
    pub(super) fn arguments(&mut self, place: BlockIndex, piece: &str) {
        let Slot::Call(call) = &mut self.slots[place.0] else {
            if !piece.is_empty() {
                self.not_read("a piece of arguments arrived for a block of a different type");
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

    /// Adds arguments in any form that servers send: text, a value, or null.
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

    /// Returns `true` if the arguments of a call already form a complete object.
    pub(super) fn has_whole_arguments(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.json.trim_end().ends_with('}') && call.input().is_ok())
    }

    /// Returns `true` if a call has these arguments.
    pub(super) fn has_arguments(&self, place: BlockIndex, arguments: &Value) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.input().as_ref() == Ok(arguments))
    }

    /// Returns `true` if the arguments of a call are `{}` so far and may be incomplete.
    pub(super) fn is_held(&self, place: BlockIndex) -> bool {
        matches!(&self.slots[place.0], Slot::Call(call) if call.held)
    }

    /// Returns `true` if a call has this name and these arguments, given as text or as a value.
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

    /// Ends a call that the provider reports as complete. If its arguments are missing or not an
    /// object, it may have been cut off by the output token limit; this is decided at the end of
    /// the answer.
    pub(super) fn end_call(&mut self, place: BlockIndex) {
        if self.has_whole_arguments(place) {
            self.complete_call(place);
        }
    }

    /// Marks a call that the provider reports as incomplete.
    pub(super) fn cut_call(&mut self, place: BlockIndex) {
        if let Slot::Call(call) = &mut self.slots[place.0] {
            call.cut = true;
        }
    }

    /// Returns a mutable reference to the token counts.
    pub(super) fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }

    /// Sets the stop reason, which completes the answer.
    pub(super) fn stop(&mut self, stop: StopReason) {
        self.stop = Some(match stop {
            StopReason::Other(word) if !is_name(&word) => StopReason::Other("other".to_owned()),
            stop => stop,
        });
    }

    /// Ends an answer without a stop reason. It is complete if it has content and no call is cut
    /// off.
    pub(super) fn stop_without_reason(&mut self) {
        let says_something = self.slots.iter().any(Slot::says_something);
        if self.stop.is_none()
            && says_something
            && (0..self.slots.len()).all(|index| self.is_uncut(index))
        {
            self.stop = Some(StopReason::EndTurn);
            self.warn(
                "the server does not say why the model stopped; the answer is treated as complete",
            );
        }
    }

    /// Returns `false` if the block is a call whose arguments are cut off.
    fn is_uncut(&self, index: usize) -> bool {
        match &self.slots[index] {
            Slot::Call(call) => {
                call.is_nothing() || call.given || self.has_whole_arguments(BlockIndex(index))
            }
            _ => true,
        }
    }

    /// Returns `true` if the model finished by itself and was not cut off.
    pub(super) fn stopped_by_itself(&self) -> bool {
        matches!(
            self.stop,
            Some(StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence)
        )
    }

    /// Marks the answer as a refusal, regardless of the stop reason.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Records the provider's reason for a refusal. The first reason is kept.
    pub(super) fn refused_for(&mut self, category: &str, explanation: &str) {
        let refusal = Refusal {
            category: said(category),
            explanation: said(explanation),
        };
        if refusal != Refusal::default() && self.refusal.is_none() {
            self.refusal = Some(refusal);
        }
    }

    /// Reorders blocks within the positions that they occupy together. Call this only when no
    /// [`BlockIndex`] will be used any more.
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

    /// Closes the answer. Anything that follows is ignored.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the number of blocks.
    pub(super) fn block_count(&self) -> usize {
        self.slots.len()
    }

    /// Ends the answer: completes its calls, and returns the stop reason.
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
            self.warn("the answer is complete but empty");
        }
        Ok(stop)
    }

    /// Returns `true` if a call is complete, given the stop reason of the answer.
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
                "whose name is not a valid tool name"
            };
            return Err(Error::new(
                Category::Provider,
                format!("the answer has a tool call {what}"),
            ));
        }
        Ok(true)
    }

    /// Corrects the stop reason to match the content: some servers report `stop` when there are
    /// tool calls, or `tool_calls` when there are none.
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

    /// Returns the blocks and calls.
    pub(super) fn into_answer(self) -> Answer {
        let mut answer = Answer {
            usage: self.usage,
            refusal: self.refusal,
            ..Answer::default()
        };
        let last = self.slots.len().saturating_sub(1);
        for (index, slot) in self.slots.into_iter().enumerate() {
            // A provider-specific block is sent back unchanged or not at all.
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

    /// Returns `true` if the block limit is exceeded, so further parsing is pointless.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() > MOST_BLOCKS
    }

    /// Opens a new block. In a full answer, returns the last block, which accepts only pieces of
    /// its own kind.
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

/// Merges a piece into a value: lists are extended, objects are merged, anything else is replaced.
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

/// Returns `true` if a string from a server can be a name, an ID or a stop reason: not empty,
/// short, and on one line.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST_NAME && !word.contains(|c: char| c.is_control())
}

/// Returns an ID that no other call in the answer has.
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
    /// Returns `true` if a call has neither name nor arguments.
    fn is_nothing(&self) -> bool {
        self.name.is_empty() && self.json.trim().is_empty()
    }

    /// Returns the arguments. Empty text means no arguments, because several servers send `""` for
    /// a call without any.
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
    /// Returns `true` if the block has content that a later request would contain.
    fn says_something(&self) -> bool {
        match self {
            Slot::Text { text, .. } => !text.trim().is_empty(),
            Slot::Thinking { .. } | Slot::Redacted(_) => false,
            Slot::Call(_) | Slot::Own(_) => true,
        }
    }

    /// Returns the finished block; `None` if it is empty. A signature is kept only if it is
    /// complete.
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
