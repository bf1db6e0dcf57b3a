//! Items that enter a conversation at the beginning of a turn: attached files, and the agent's text
//! about its surroundings.
//!
//! For an agent with `surroundings`, both become typed items of the turn in which they arrive, so
//! that each request only extends the previous one.

use std::sync::Arc;

use super::{AttachedFile, Block, Item, Message, Role};

/// Items that arrived directly before a message. Arrived items are not counted in the message's
/// index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) at: usize,
    pub(crate) items: Vec<Item>,
}

/// Returns a history with the arrived items inserted.
pub(crate) fn with_arrivals(history: &[Message], arrivals: &[Arrival]) -> Vec<Message> {
    let mut all = Vec::with_capacity(history.len() + arrivals.len());
    for at in 0..=history.len() {
        arrivals
            .iter()
            .filter(|arrival| arrival.at == at)
            .for_each(|arrival| all.extend(arrival.items.iter().map(Item::to_message)));
        all.extend(history.get(at).cloned());
    }
    all
}

/// Returns the number of items that arrived with this message or earlier.
pub(crate) fn arrived_before(at: usize, arrivals: &[Arrival]) -> usize {
    arrivals
        .iter()
        .filter(|arrival| arrival.at < at)
        .map(|arrival| arrival.items.len())
        .sum()
}

/// Returns the arrived items, each with its index in the history that includes them.
pub(crate) fn placed(arrivals: &[Arrival]) -> Vec<(usize, Item)> {
    let items = arrivals
        .iter()
        .flat_map(|arrival| arrival.items.iter().map(|item| (arrival.at, item.clone())));
    items
        .enumerate()
        .map(|(before, (at, item))| (at + before, item))
        .collect()
}

/// Returns the index of the first user message at or after `from` that is not a tool result. Items
/// that arrive with a turn are placed before it.
pub(crate) fn turn_from(history: &[Message], from: usize) -> usize {
    history
        .iter()
        .skip(from)
        .position(|message| message.role == Role::User && !is_result(message))
        .map_or(history.len(), |at| from + at)
}

fn is_result(message: &Message) -> bool {
    message
        .blocks
        .iter()
        .any(|block| matches!(block, Block::ToolResult { .. }))
}

impl Item {
    /// Returns the item for a file that was newly attached, or whose content has changed.
    pub fn attached(file: &AttachedFile) -> Item {
        let text = file.said().map(|(_, part)| part).concat();
        let bytes = u64::try_from(file.content.len()).ok();
        Item::FileAttachment {
            text: text.into(),
            file_path: Arc::clone(&file.file_path),
            bytes,
        }
    }

    /// Returns the item for an agent's surroundings, which is added whenever they have changed.
    pub fn surroundings(text: Arc<str>) -> Item {
        Item::Notification {
            text,
            title: None,
            source: Some(Arc::from(SURROUNDINGS)),
        }
    }

    /// Returns the text of an item created by [`Item::surroundings`]; `None` for other items.
    pub fn as_surroundings(&self) -> Option<&Arc<str>> {
        match self {
            Item::Notification {
                text,
                source: Some(source),
                ..
            } if **source == *SURROUNDINGS => Some(text),
            _ => None,
        }
    }
}

impl AttachedFile {
    /// Returns the text that presents the file to the model, in parts: values of members, each with
    /// the member's name, and the literal text between them.
    pub(crate) fn said(&self) -> [(Option<&'static str>, &str); 5] {
        [
            (None, "The user has attached this file:\n\n<file path=\""),
            (Some("file_path"), &self.file_path),
            (None, "\">\n"),
            (Some("content"), &self.content),
            (None, "\n</file>"),
        ]
    }
}

/// The `source` of items created by [`Item::surroundings`].
const SURROUNDINGS: &str = "surroundings";
