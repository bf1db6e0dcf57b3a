//! Typed system items: what a host program injects into a history.
//!
//! Each has fields for programs and the exact text that the model sees. The text is made once, by
//! the host, and never again: a history that is replayed says what it said then, whatever a host
//! would write today.

use std::sync::Arc;

use super::cut_off::CutOff;
use super::{Block, ItemKind, Message, Role};

/// Something that the host program tells the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Something happened.
    Notification {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// A headline for people.
        title: Option<Arc<str>>,
        /// Its source, for instance a build.
        source: Option<Arc<str>>,
    },
    /// A child agent's life cycle.
    PodEvent {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The child's name.
        agent: Arc<str>,
        /// The event in the life of the child.
        event: PodEvent,
        /// More about it, for instance an error.
        detail: Option<Arc<str>>,
    },
    /// A file was attached.
    FileAttachment {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The path as the person knows it.
        file_path: Arc<str>,
        /// The file's size in bytes, if it is known.
        bytes: Option<u64>,
    },
    /// Something looked up.
    Knowledge {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The query of the search.
        query: Option<Arc<str>>,
        /// Where it was found.
        sources: Vec<Arc<str>>,
    },
    /// A step of a workflow.
    Workflow {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The workflow's name.
        name: Arc<str>,
        /// The step, in the workflow's words.
        step: Arc<str>,
        /// The step's state, in the workflow's words.
        state: Arc<str>,
    },
    /// A turn was interrupted.
    Interrupt {
        /// The exact text that the model sees.
        text: Arc<str>,
        /// The reason of the interruption, if anybody gave one.
        reason: Option<Arc<str>>,
    },
}

/// The events in the life of a child agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodEvent {
    /// It started.
    Started,
    /// It did what it had to do.
    Finished,
    /// It gave up.
    Failed,
    /// Somebody cancelled it.
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

    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            PodEvent::Started => "started",
            PodEvent::Finished => "finished",
            PodEvent::Failed => "failed",
            PodEvent::Cancelled => "cancelled",
        }
    }

    /// The event with a name.
    pub fn from_name(name: &str) -> Option<PodEvent> {
        PodEvent::ALL.into_iter().find(|event| event.name() == name)
    }
}

impl Item {
    /// Returns what a session gets that was restored in the middle of a turn.
    pub fn interrupted() -> Item {
        Item::Interrupt {
            text: Arc::from("The previous turn was interrupted before it was complete."),
            reason: Some(Arc::from("restored")),
        }
    }

    /// Returns what a session gets whose last answer is not complete, before anything goes on.
    pub fn cut_off(why: CutOff) -> Item {
        let what = match why {
            CutOff::Cancelled => "its answer was cancelled before it was complete.",
            CutOff::Broken => "its answer broke off before it was complete.",
            CutOff::Refused => "the model or a filter of its provider refused to answer.",
            CutOff::Paused => "the provider paused it before it was complete.",
            CutOff::TimedOut => "the time for it was over before its answer was complete.",
            CutOff::MaxTokens => "its answer reached the limit of tokens before it was complete.",
        };
        let text = format!("The previous turn was interrupted: {what}");
        Item::Interrupt {
            text: text.into(),
            reason: Some(why.name().into()),
        }
    }

    /// The kind of the item.
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

    /// The exact text that the model sees.
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

    /// The message that stands for it in a history: role `system`, its text, nothing else.
    pub fn to_message(&self) -> Message {
        let blocks = vec![Block::Text(Arc::clone(self.text()))];
        Message {
            role: Role::System,
            blocks,
            item: Some(self.kind()),
        }
    }
}
