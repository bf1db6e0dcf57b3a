//! The normal form of a history, from which both the compiler and the runtime render.
//!
//! Normalising takes three steps. The first drops content that the target does not take, the second
//! drops empty content, and the third pairs calls with results and moves each result right after
//! its call. The second step is then repeated, since a message may have lost its calls.

mod names;
mod provider;
mod rounds;

pub use names::NameRule;
pub use provider::{ProviderBlockKind, ProviderBlockKinds};

use std::sync::Arc;

use super::{Block, Message, Role};

/// The requirements of a request's target. The default holds for every target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalFormRules {
    /// The client API of the request; thinking of another origin is dropped. `None` accepts any
    /// origin.
    pub origin: Option<Arc<str>>,
    /// `true` if the API refuses thinking without a signature, which is then dropped.
    pub needs_signature: bool,
    /// `true` if the API refuses a turn that ends with thinking, which is then dropped from the
    /// end.
    pub needs_end: bool,
    /// `true` if open calls of the last round are dropped too, because no request can contain them.
    pub drops_open_calls: bool,
    /// The provider's own blocks that are sent back.
    pub own_blocks: ProviderBlockKinds,
    /// The names of called tools that the target accepts; a call with another name is renamed.
    pub names: NameRule,
    /// The number of messages whose thinking is no longer bound to the current instructions and is
    /// dropped.
    pub bound_from: usize,
}

/// A history in normal form, and the changes made to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    /// The history.
    pub history: Vec<Message>,
    /// The changes (drops, moves, insertions), in the order of the original messages.
    pub changes: Vec<NormalFormChange>,
}

/// A deviation from normal form. Indices refer to the messages of the original history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormalFormChange {
    /// A tool call without a result; dropped.
    CallWithoutResult {
        /// The message's index.
        message: usize,
        /// The call's id.
        id: Arc<str>,
    },
    /// A tool result without a call in the turn before; dropped.
    ResultWithoutCall {
        /// The message's index.
        message: usize,
        /// The id that the result names.
        id: Arc<str>,
    },
    /// A second result for a call; dropped.
    SecondResult {
        /// The message's index.
        message: usize,
        /// The id that the result names.
        id: Arc<str>,
    },
    /// A call with the id of an earlier call; it and its result get another id.
    RepeatedId {
        /// The message's index.
        message: usize,
        /// The id.
        id: Arc<str>,
    },
    /// A call without an id; it and its result get one.
    CallWithoutId {
        /// The message's index.
        message: usize,
    },
    /// A call to a tool whose name the target refuses; it and its result get another name.
    RefusedName {
        /// The message's index.
        message: usize,
        /// The name.
        name: Arc<str>,
    },
    /// A result that is not at the start of the user message after its call; moved.
    ResultApart {
        /// The message's index.
        message: usize,
        /// The id that the result names.
        id: Arc<str>,
    },
    /// An error result without text; gets [`NO_MESSAGE`].
    ErrorWithoutText {
        /// The message's index.
        message: usize,
        /// The id that the result names.
        id: Arc<str>,
    },
    /// Thinking that another client API produced; dropped.
    ForeignThinking {
        /// The message's index.
        message: usize,
    },
    /// Thinking from before the last renewal of system prompt and tools; dropped.
    UnboundThinking {
        /// The message's index.
        message: usize,
    },
    /// A provider's own block that is not sent back, because it belongs to another provider or is
    /// meant only for the host. Its text, if any, replaces it.
    OwnBlock {
        /// The message's index.
        message: usize,
    },
    /// A provider's own call without its result, or a result without its call; dropped. A call that
    /// was sent in the middle of its turn is kept, and gets an error as its result.
    OwnHalf {
        /// The message's index.
        message: usize,
    },
    /// Thinking without a signature where one is needed; dropped.
    UnsignedThinking {
        /// The message's index.
        message: usize,
    },
    /// A turn that contains only thinking, or thinking at the end of a turn where something must
    /// follow; dropped.
    ThinkingAlone {
        /// The message's index.
        message: usize,
    },
    /// A message without blocks, or with only blank text; dropped.
    EmptyMessage {
        /// The message's index.
        message: usize,
    },
}

/// The text for an error result that has none: some APIs refuse an error without content.
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
            NormalFormChange::ForeignThinking { .. } => "thinking of another client API".into(),
            NormalFormChange::OwnBlock { .. } => {
                "a block that this client API does not accept back".into()
            }
            NormalFormChange::OwnHalf { .. } => {
                "a call of a provider tool without its result, or a result without its call".into()
            }
            NormalFormChange::UnboundThinking { .. } => {
                "thinking from before the system prompt and tools were renewed".into()
            }
            NormalFormChange::UnsignedThinking { .. } => "thinking without a signature".into(),
            NormalFormChange::ThinkingAlone { .. } => "thinking without content after it".into(),
            NormalFormChange::EmptyMessage { .. } => "a message without content".into(),
        }
    }

    /// Returns how the deviation was handled, and what to do about it in a context file.
    pub fn help(&self) -> &'static str {
        match self {
            NormalFormChange::CallWithoutResult { .. }
            | NormalFormChange::ResultWithoutCall { .. }
            | NormalFormChange::SecondResult { .. } => {
                "it is dropped before rendering: remove it, or complete the pair"
            }
            NormalFormChange::RepeatedId { .. } => {
                "it gets a different id before rendering: give each call a unique id"
            }
            NormalFormChange::CallWithoutId { .. } => "it gets an id before rendering: write one",
            NormalFormChange::RefusedName { .. } => "it gets a different name before rendering",
            NormalFormChange::ResultApart { .. } => {
                "it is moved before rendering: put all results of a turn at the start of the message after the calls"
            }
            NormalFormChange::ErrorWithoutText { .. } => {
                "it gets a fixed text before rendering: describe what failed"
            }
            NormalFormChange::ForeignThinking { .. }
            | NormalFormChange::UnboundThinking { .. }
            | NormalFormChange::OwnBlock { .. }
            | NormalFormChange::OwnHalf { .. }
            | NormalFormChange::UnsignedThinking { .. }
            | NormalFormChange::ThinkingAlone { .. }
            | NormalFormChange::EmptyMessage { .. } => "it is dropped before rendering: remove it",
        }
    }
}

/// Brings a history into normal form. Idempotent.
///
/// A *turn* is a run of assistant messages. Its *round* extends to the next turn.
///
/// * Calls without a result in their round are dropped, except those of the last message unless
///   [`NormalFormRules::drops_open_calls`] is set. Results without a call and second results are
///   dropped too.
/// * The results of a round form one message directly after the message with their calls.
/// * A call with the id of an earlier call gets another id, as does its result. A call without an
///   id gets one.
/// * A call to a tool whose name the target refuses gets another name, always the same for the same
///   name.
/// * An error result without text and images gets [`NO_MESSAGE`].
/// * Turns that contain only thinking and messages without content (no block, or only blank text)
///   are dropped.
/// * Thinking that the target does not take is dropped. Blocks of another provider are dropped or
///   replaced by their text.
/// * If a target is given, a provider's own calls and results are dropped unless they form a pair.
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

/// A history that is being normalised: each message with its index in the original history.
struct NormalForm {
    messages: Vec<(usize, Message)>,
    changes: Vec<NormalFormChange>,
}

impl NormalForm {
    /// Takes the blocks that the target accepts; replaces others by their text, if any.
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

    /// Drops messages without content, and thinking that nothing follows.
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

/// Drops the thinking of a turn that contains nothing else. If the API requires it, also drops
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
    /// Returns `true` if it is thinking, readable or not.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(
            self,
            Block::Thinking { .. } | Block::RedactedThinking { .. }
        )
    }

    /// Returns `true` if the block has content: it is neither thinking nor blank text.
    pub(crate) fn says_something(&self) -> bool {
        match self {
            Block::Text(text) => !text.trim().is_empty(),
            block => !block.is_thinking(),
        }
    }

    /// Returns the text that replaces the block where it cannot be sent.
    fn in_words(&self) -> Option<Block> {
        match self {
            Block::Provider(own) => own.text.clone().map(Block::Text),
            _ => None,
        }
    }

    /// Returns the id of the call, if the block is a call.
    pub(super) fn call_id(&self) -> Option<&Arc<str>> {
        match self {
            Block::ToolUse { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Returns the id of the answered call, if the block is a result.
    pub(super) fn result_id(&self) -> Option<&Arc<str>> {
        match self {
            Block::ToolResult { id, .. } => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
