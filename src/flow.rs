//! Finds content that is lost between a conversation and a request body.
//!
//! Input: a conversation as templates see it, and the body compiled from it. Output: a [`Judged`],
//! with the kinds of content in the body and every [`Loss`]. As in `compare`, the body is split
//! into pieces, which are searched for the content. This module does not use profiles, access files
//! or report losses.

mod alteration;
mod carried;
pub(crate) mod rules;

pub(crate) use carried::{Expected, judge};

use crate::conversation::{ContentKind, KindSet};
use crate::json::Pointer;

/// The kinds of content that a body contains, and the losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Judged {
    /// The kinds of content that the body contains correctly at least once.
    pub(crate) held: KindSet,
    /// The content that the body does not contain, or contains incorrectly.
    pub(crate) losses: Vec<Loss>,
}

/// Content that a body does not contain correctly.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loss {
    /// The kind of content.
    pub(crate) kind: ContentKind,
    /// A second kind that the content belongs to. A declaration may name either kind.
    pub(crate) also: Option<ContentKind>,
    /// The fate of the content.
    pub(crate) fate: Fate,
    /// The location in the template data.
    pub(crate) at: Pointer,
    /// The size of the content in bytes.
    pub(crate) size: usize,
    /// The beginning of the content.
    pub(crate) shown: Box<str>,
}

/// The fate of content that was lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    /// The content is not in the body.
    Dropped,
    /// The content was changed; the string describes how.
    Altered(String),
    /// The content is in the body more often than in the conversation.
    Duplicated,
    /// The content comes before earlier content.
    Reordered,
}

impl Loss {
    /// The maximum number of characters of the content to show.
    const SHOWN: usize = 60;

    fn new(kind: ContentKind, fate: Fate, at: Pointer, content: &str) -> Loss {
        let shown = crate::text::cut(content, Loss::SHOWN).into();
        Loss {
            kind,
            also: None,
            fate,
            at,
            size: content.len(),
            shown,
        }
    }
}
