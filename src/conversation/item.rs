//! Typed system items: messages that a host program adds to a history.
//!
//! Each item has fields for programs, and the exact text that the model sees. The host writes that
//! text only once, so a replayed history contains the same text even if a newer host would write a
//! different one.

use std::sync::Arc;

use super::cut_off::CutOff;
use super::{Block, ItemKind, Message, Role};

/// A message from the host program to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Something happened.
    Notification {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// A headline for people, if there is one.
        title: Option<Arc<str>>,
        /// The source, such as a build, if known.
        source: Option<Arc<str>>,
    },
    /// The state of a child agent changed.
    PodEvent {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The child agent's name.
        agent: Arc<str>,
        /// The new state.
        event: PodEvent,
        /// Further details, such as an error, if there are any.
        detail: Option<Arc<str>>,
    },
    /// A file was attached.
    FileAttachment {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The path of the file, as the user knows it.
        file_path: Arc<str>,
        /// The file's size in bytes, if known.
        bytes: Option<u64>,
    },
    /// Information that was looked up.
    Knowledge {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The search query, if there was one.
        query: Option<Arc<str>>,
        /// The locations where the information was found.
        sources: Vec<Arc<str>>,
    },
    /// A step of a workflow.
    Workflow {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The workflow's name.
        name: Arc<str>,
        /// The name of the step.
        step: Arc<str>,
        /// The state of the step, in the workflow's own terms.
        state: Arc<str>,
    },
    /// A turn was interrupted.
    Interrupt {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The reason for the interruption, if one was given.
        reason: Option<Arc<str>>,
    },
}

/// The events in the life of a child agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodEvent {
    /// The child started.
    Started,
    /// The child completed its task.
    Finished,
    /// The child gave up.
    Failed,
    /// The child was cancelled.
    Cancelled,
}

impl PodEvent {
    /// All events.
    pub const ALL: [PodEvent; 4] = [
        PodEvent::Started,
        PodEvent::Finished,
        PodEvent::Failed,
        PodEvent::Cancelled,
    ];

    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            PodEvent::Started => "started",
            PodEvent::Finished => "finished",
            PodEvent::Failed => "failed",
            PodEvent::Cancelled => "cancelled",
        }
    }

    /// Returns the event with this name.
    pub fn from_name(name: &str) -> Option<PodEvent> {
        PodEvent::ALL.into_iter().find(|event| event.name() == name)
    }
}

impl Item {
    /// Returns the item for a session that was restored in the middle of a turn.
    pub fn interrupted() -> Item {
        Item::Interrupt {
            text: Arc::from("The previous turn was interrupted before it was complete."),
            reason: Some(Arc::from("restored")),
        }
    }

    /// Returns the item for a session whose last answer is incomplete. It is added before the
    /// session continues.
    pub fn cut_off(why: CutOff) -> Item {
        let what = match why {
            CutOff::Cancelled => "its answer was cancelled before it was complete.",
            CutOff::Broken => "its answer broke off before it was complete.",
            CutOff::Refused => "the model or a filter of its provider refused to answer.",
            CutOff::Paused => "the provider paused it before it was complete.",
            CutOff::TimedOut => "it timed out before its answer was complete.",
            CutOff::MaxTokens => "its answer reached the token limit before it was complete.",
        };
        let text = format!("The previous turn was interrupted: {what}");
        Item::Interrupt {
            text: text.into(),
            reason: Some(why.name().into()),
        }
    }

    /// Returns the kind of the item.
    pub fn kind(&self) -> ItemKind {
        match self {
            Item::Notification { .. } => ItemKind::Notification,
            Item::PodEvent { .. } => ItemKind::PodEvent,
            Item::FileAttachment { .. } => ItemKind::FileAttachment,
            Item::Knowledge { .. } => ItemKind::Knowledge,
            Item::Workflow { .. } => ItemKind::Workflow,
            Item::Interrupt { .. } => ItemKind::Interrupt,
        }
    }

    /// Returns the exact text that the model sees.
    pub fn text(&self) -> &Arc<str> {
        match self {
            Item::Notification { text, .. }
            | Item::PodEvent { text, .. }
            | Item::FileAttachment { text, .. }
            | Item::Knowledge { text, .. }
            | Item::Workflow { text, .. }
            | Item::Interrupt { text, .. } => text,
        }
    }

    /// Returns the message for this item in a history, which has the role `system` and contains
    /// only the text.
    pub fn to_message(&self) -> Message {
        let blocks = vec![Block::Text(Arc::clone(self.text()))];
        Message {
            role: Role::System,
            blocks,
            item: Some(self.kind()),
        }
    }
}
