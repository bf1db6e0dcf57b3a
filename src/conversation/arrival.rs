//! The items that come into a conversation with a turn: attached files, and what an agent says of
//! its surroundings.
//!
//! An agent with `surroundings` gets both as typed items of the turn in which they came, so that
//! its requests only add to each other.

use std::sync::Arc;

use super::{AttachedFile, Block, Item, Message, Role};

/// Items that came before a message, counted without any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) at: usize,
    pub(crate) items: Vec<Item>,
}

/// A history with the items that came.
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

/// Returns how many items came before a message or with it.
pub(crate) fn arrived_before(at: usize, arrivals: &[Arrival]) -> usize {
    arrivals
        .iter()
        .filter(|arrival| arrival.at < at)
        .map(|arrival| arrival.items.len())
        .sum()
}

/// The items that came, each with its place in the history that has them.
pub(crate) fn placed(arrivals: &[Arrival]) -> Vec<(usize, Item)> {
    let items = arrivals
        .iter()
        .flat_map(|arrival| arrival.items.iter().map(|item| (arrival.at, item.clone())));
    items
        .enumerate()
        .map(|(before, (at, item))| (at + before, item))
        .collect()
}

/// The first message of a new turn that the person wrote, at or after a message: what came with the
/// turn came with it.
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
    /// A file that the person attached, or one whose content changed.
    pub fn attached(file: &AttachedFile) -> Item {
        let text = file.said().map(|(_, part)| part).concat();
        let bytes = u64::try_from(file.content.len()).ok();
        Item::FileAttachment {
            text: text.into(),
            file_path: Arc::clone(&file.file_path),
            bytes,
        }
    }

    /// Returns what an agent says of its surroundings, when that changed.
    pub fn surroundings(text: Arc<str>) -> Item {
        Item::Notification {
            text,
            title: None,
            source: Some(Arc::from(SURROUNDINGS)),
        }
    }

    /// The text of [`Item::surroundings`], if it is one.
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
    /// Returns what is said of it, part by part: members of it with their names, and the words
    /// between them.
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

/// Where [`Item::surroundings`] come from.
const SURROUNDINGS: &str = "surroundings";
