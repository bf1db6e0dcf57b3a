//! The normal form of a history. Both the compiler and the runtime render histories in this form.
//!
//! There are three steps. The first drops content that the target does not accept, the second drops
//! empty content, and the third pairs calls with results, and moves each result directly after its
//! call. The second step is then repeated, because a message may have lost its calls.

mod names;
mod provider;
mod rounds;

pub use names::NameRule;
pub use provider::{ProviderBlockKind, ProviderBlockKinds};

use std::sync::Arc;

use super::{Block, Message, Role};

/// The requirements of a request's target. The default values are suitable for every target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalFormRules {
    /// The client API of the request. Thinking from a different origin is dropped; `None` accepts
    /// any origin.
    pub origin: Option<Arc<str>>,
    /// `true` if the API rejects thinking without a signature, so such thinking is dropped.
    pub needs_signature: bool,
    /// `true` if the API rejects a turn that ends with thinking, so thinking is dropped from the
    /// end of turns.
    pub needs_end: bool,
    /// `true` if calls without results in the last round are dropped, too, because no request can
    /// contain them.
    pub drops_open_calls: bool,
    /// The treatment of provider-specific blocks.
    pub own_blocks: ProviderBlockKinds,
    /// The tool names that the target accepts in calls. A call with any other name is renamed.
    pub names: NameRule,
    /// The number of messages at the beginning whose thinking is dropped, because it is not bound
    /// to the current instructions.
    pub bound_from: usize,
}

/// A history in normal form, and the changes that were made to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    /// The history in normal form.
    pub history: Vec<Message>,
    /// The changes: blocks that were dropped, moved, inserted or renamed, in the order of the
    /// original messages.
    pub changes: Vec<NormalFormChange>,
}

/// A deviation from normal form that was corrected. Indices refer to messages of the original
/// history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormalFormChange {
    /// A tool call that was dropped because it has no result.
    CallWithoutResult {
        /// The message's index.
        message: usize,
        /// The call's ID.
        id: Arc<str>,
    },
    /// A tool result that was dropped because the preceding turn does not contain its call.
    ResultWithoutCall {
        /// The message's index.
        message: usize,
        /// The ID in the result.
        id: Arc<str>,
    },
    /// A result that was dropped because its call already has a result.
    SecondResult {
        /// The message's index.
        message: usize,
        /// The ID in the result.
        id: Arc<str>,
    },
    /// A call with the ID of an earlier call. The call and its result get a new ID.
    RepeatedId {
        /// The message's index.
        message: usize,
        /// The repeated ID.
        id: Arc<str>,
    },
    /// A call without an ID. The call and its result get an ID.
    CallWithoutId {
        /// The message's index.
        message: usize,
    },
    /// A call to a tool whose name the target rejects. The call gets a different name.
    RefusedName {
        /// The message's index.
        message: usize,
        /// The rejected name.
        name: Arc<str>,
    },
    /// A result that was not at the start of the user message after its call, and was moved there.
    ResultApart {
        /// The message's index.
        message: usize,
        /// The ID in the result.
        id: Arc<str>,
    },
    /// An error result without text, which gets the text [`NO_MESSAGE`].
    ErrorWithoutText {
        /// The message's index.
        message: usize,
        /// The ID in the result.
        id: Arc<str>,
    },
    /// Thinking that was dropped because a different client API produced it.
    ForeignThinking {
        /// The message's index.
        message: usize,
    },
    /// Thinking that was dropped because it precedes the last renewal of system prompt and tools.
    UnboundThinking {
        /// The message's index.
        message: usize,
    },
    /// A provider-specific block that is not sent back, because it belongs to a different provider
    /// or is only for the host. It was replaced with its text, if it has any.
    OwnBlock {
        /// The message's index.
        message: usize,
    },
    /// A provider-specific call that was dropped because it has no result, or a provider-specific
    /// result that was dropped because it has no call. A call that was already sent in the middle
    /// of its turn is kept, and gets an error as its result.
    OwnHalf {
        /// The message's index.
        message: usize,
    },
    /// Thinking that was dropped because it lacks a required signature.
    UnsignedThinking {
        /// The message's index.
        message: usize,
    },
    /// Thinking that was dropped because its turn contains nothing else, or because something must
    /// follow it at the end of the turn.
    ThinkingAlone {
        /// The message's index.
        message: usize,
    },
    /// A message that was dropped because it has no blocks, or only blank text.
    EmptyMessage {
        /// The message's index.
        message: usize,
    },
}

/// The text for error results that have none, because some APIs reject an error without content.
pub const NO_MESSAGE: &str = "The tool failed without a message.";

impl NormalFormChange {
    /// Returns the index of the message in the original history.
    pub fn message(&self) -> usize {
        match self {
            NormalFormChange::CallWithoutResult { message, .. }
            | NormalFormChange::ResultWithoutCall { message, .. }
            | NormalFormChange::SecondResult { message, .. }
            | NormalFormChange::RepeatedId { message, .. }
            | NormalFormChange::RefusedName { message, .. }
            | NormalFormChange::ResultApart { message, .. }
            | NormalFormChange::ErrorWithoutText { message, .. }
            | NormalFormChange::CallWithoutId { message }
            | NormalFormChange::ForeignThinking { message }
            | NormalFormChange::OwnBlock { message }
            | NormalFormChange::OwnHalf { message }
            | NormalFormChange::UnboundThinking { message }
            | NormalFormChange::UnsignedThinking { message }
            | NormalFormChange::ThinkingAlone { message }
            | NormalFormChange::EmptyMessage { message } => *message,
        }
    }

    /// Describes the deviation in one lower-case phrase.
    pub fn describe(&self) -> String {
        match self {
            NormalFormChange::CallWithoutResult { id, .. } => {
                format!("the tool call `{id}` has no result")
            }
            NormalFormChange::ResultWithoutCall { id, .. } => {
                format!("the tool result for `{id}` has no matching call before it")
            }
            NormalFormChange::SecondResult { id, .. } => {
                format!("the tool call `{id}` already has a result")
            }
            NormalFormChange::RepeatedId { id, .. } => {
                format!("an earlier tool call also has the id `{id}`")
            }
            NormalFormChange::CallWithoutId { .. } => "a tool call has no id".into(),
            NormalFormChange::RefusedName { name, .. } => {
                format!("this client API does not accept `{name}` as a tool name")
            }
            NormalFormChange::ResultApart { id, .. } => {
                format!(
                    "the tool result for `{id}` is not at the start of the user message after its call"
                )
            }
            NormalFormChange::ErrorWithoutText { id, .. } => {
                format!("the error result for `{id}` has no text")
            }
            NormalFormChange::ForeignThinking { .. } => "thinking from another client API".into(),
            NormalFormChange::OwnBlock { .. } => {
                "a block that this client API does not accept back".into()
            }
            NormalFormChange::OwnHalf { .. } => {
                "a call to a provider tool without its result, or a result without its call".into()
            }
            NormalFormChange::UnboundThinking { .. } => {
                "thinking from before the system prompt and tools were renewed".into()
            }
            NormalFormChange::UnsignedThinking { .. } => "thinking without a signature".into(),
            NormalFormChange::ThinkingAlone { .. } => "thinking without content after it".into(),
            NormalFormChange::EmptyMessage { .. } => "a message without content".into(),
        }
    }

    /// Returns a description of how the deviation was corrected, and what to change in a context
    /// file.
    pub fn help(&self) -> &'static str {
        match self {
            NormalFormChange::CallWithoutResult { .. }
            | NormalFormChange::ResultWithoutCall { .. }
            | NormalFormChange::SecondResult { .. } => {
                "reqc drops it before rendering; remove it, or complete the pair"
            }
            NormalFormChange::RepeatedId { .. } => {
                "reqc changes the id before rendering; give each call a unique id"
            }
            NormalFormChange::CallWithoutId { .. } => {
                "reqc generates an id before rendering; add one to the context"
            }
            NormalFormChange::RefusedName { .. } => "reqc changes the name before rendering",
            NormalFormChange::ResultApart { .. } => {
                "reqc moves it before rendering; put all results of a turn at the start of the message after the calls"
            }
            NormalFormChange::ErrorWithoutText { .. } => {
                "reqc adds a fixed text before rendering; describe what failed"
            }
            NormalFormChange::ForeignThinking { .. }
            | NormalFormChange::UnboundThinking { .. }
            | NormalFormChange::OwnBlock { .. }
            | NormalFormChange::OwnHalf { .. }
            | NormalFormChange::UnsignedThinking { .. }
            | NormalFormChange::ThinkingAlone { .. }
            | NormalFormChange::EmptyMessage { .. } => "reqc drops it before rendering; remove it",
        }
    }
}

/// Converts a history to normal form. Idempotent.
///
/// A *turn* is a sequence of assistant messages. Its *round* extends to the next turn.
///
/// * Calls without a result in their round are dropped. Unless
///   [`NormalFormRules::drops_open_calls`] is set, those in the last message are kept. Results
///   without a call and second results are dropped, too.
/// * The results in a round form one message directly after the message that contains their calls.
/// * A call with the ID of an earlier call gets a new ID, and its result gets the same one. A call
///   without an ID gets one.
/// * A call to a tool whose name the target rejects gets a different name, which is always the same
///   for the same original name.
/// * An error result without text and images gets [`NO_MESSAGE`].
/// * Turns that contain only thinking are dropped. Messages without content (no block, or only
///   blank text) are dropped too.
/// * Thinking that the target does not accept is dropped. Blocks from a different provider are
///   dropped, or replaced with their text.
/// * If a target is given, provider-specific calls and results are dropped unless they form a pair.
pub fn normalise(history: &[Message], rules: &NormalFormRules) -> Normal {
    let mut form = NormalForm {
        messages: Vec::with_capacity(history.len()),
        changes: Vec::new(),
    };
    form.take(history, rules);
    form.pair_own(rules);
    form.strip(rules);
    form.pair(rules);
    form.strip(rules);
    form.changes.sort_by_key(NormalFormChange::message);
    Normal {
        history: form
            .messages
            .into_iter()
            .map(|(_, message)| message)
            .collect(),
        changes: form.changes,
    }
}

/// Returns `true` if the normal form of a history may depend on the target.
pub(crate) fn depends_on_target(history: &[Message]) -> bool {
    history
        .iter()
        .flat_map(|message| &message.blocks)
        .any(|block| match block {
            Block::Provider(_) => true,
            Block::ToolUse { name, .. } => !names::is_plain(name),
            block => block.is_thinking(),
        })
        || history
            .last()
            .is_some_and(|last| last.blocks.iter().any(|block| block.call_id().is_some()))
}

/// A history that is being normalised. Each message has its index in the original history.
struct NormalForm {
    messages: Vec<(usize, Message)>,
    changes: Vec<NormalFormChange>,
}

impl NormalForm {
    /// Adds the blocks that the target accepts. Other blocks are replaced with their text, if they
    /// have any.
    fn take(&mut self, history: &[Message], rules: &NormalFormRules) {
        for (index, message) in history.iter().enumerate() {
            let mut blocks = Vec::with_capacity(message.blocks.len());
            for block in &message.blocks {
                match refusal(block, index, rules) {
                    Some(change) => {
                        self.changes.push(change);
                        blocks.extend(block.in_words());
                    }
                    None => blocks.push(rules.named(block, index, &mut self.changes)),
                }
            }
            self.messages.push((
                index,
                Message {
                    role: message.role,
                    blocks,
                    item: message.item,
                },
            ));
        }
    }

    /// Drops messages without content, and thinking that must not be alone or last.
    fn strip(&mut self, rules: &NormalFormRules) {
        let changes = &mut self.changes;
        self.messages.retain(|(index, message)| {
            let stays = message
                .blocks
                .iter()
                .any(|block| block.is_thinking() || block.says_something());
            if !stays {
                changes.push(NormalFormChange::EmptyMessage { message: *index });
            }
            stays
        });
        for turn in self
            .messages
            .chunk_by_mut(|(_, one), (_, other)| one.is_assistant() && other.is_assistant())
        {
            if turn[0].1.is_assistant() {
                drop_last_thoughts(turn, rules, &mut self.changes);
            }
        }
        self.messages
            .retain(|(_, message)| !message.blocks.is_empty());
    }
}

/// Drops the thinking in a turn that contains nothing else. If the API requires it, also drops
/// thinking at the end of a turn.
fn drop_last_thoughts(
    turn: &mut [(usize, Message)],
    rules: &NormalFormRules,
    changes: &mut Vec<NormalFormChange>,
) {
    let end = turn
        .iter()
        .rposition(|(_, message)| says(message).is_some());
    let from = match end {
        Some(_) if !rules.needs_end => return,
        Some(end) => end,
        None => 0,
    };
    for numbered in &mut turn[from..] {
        let (index, message) = numbered;
        let kept = says(message).map_or(0, |last| last + 1);
        if message.blocks[kept..].iter().any(Block::is_thinking) {
            message.blocks.truncate(kept);
            changes.push(NormalFormChange::ThinkingAlone { message: *index });
        }
    }
}

fn says(message: &Message) -> Option<usize> {
    message.blocks.iter().rposition(Block::says_something)
}

fn refusal(block: &Block, message: usize, rules: &NormalFormRules) -> Option<NormalFormChange> {
    let foreign = |origin: &Option<Arc<str>>| {
        origin
            .as_ref()
            .zip(rules.origin.as_ref())
            .is_some_and(|(from, to)| from != to)
    };
    match block {
        Block::Thinking { origin, .. } | Block::RedactedThinking { origin, .. }
            if foreign(origin) =>
        {
            Some(NormalFormChange::ForeignThinking { message })
        }
        Block::Thinking { signature, .. } if rules.needs_signature && signature.is_empty() => {
            Some(NormalFormChange::UnsignedThinking { message })
        }
        Block::Thinking { .. } | Block::RedactedThinking { .. } if message < rules.bound_from => {
            Some(NormalFormChange::UnboundThinking { message })
        }
        Block::Provider(own) if !rules.takes(own) => Some(NormalFormChange::OwnBlock { message }),
        _ => None,
    }
}

impl Message {
    fn is_assistant(&self) -> bool {
        self.role == Role::Assistant
    }
}

impl Block {
    /// Returns `true` if the block is thinking, readable or redacted.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(
            self,
            Block::Thinking { .. } | Block::RedactedThinking { .. }
        )
    }

    /// Returns `true` if the block has content, that is, if it is neither thinking nor blank text.
    pub(crate) fn says_something(&self) -> bool {
        match self {
            Block::Text(text) => !text.trim().is_empty(),
            block => !block.is_thinking(),
        }
    }

    /// Returns a text block that replaces this block where it cannot be sent; `None` if it has no
    /// text.
    fn in_words(&self) -> Option<Block> {
        match self {
            Block::Provider(own) => own.text.clone().map(Block::Text),
            _ => None,
        }
    }

    /// Returns the call's ID if the block is a call.
    pub(super) fn call_id(&self) -> Option<&Arc<str>> {
        match self {
            Block::ToolUse { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Returns the ID of the answered call if the block is a result.
    pub(super) fn result_id(&self) -> Option<&Arc<str>> {
        match self {
            Block::ToolResult { id, .. } => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
