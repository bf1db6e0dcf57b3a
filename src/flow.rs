//! Content that is lost on its way from a conversation into a request body.
//!
//! Input: a conversation as templates see it, and the body that was made of it. Output: [`Judged`]:
//! the kinds of content that are there, and every [`Loss`]. The body is read into pieces, as
//! `compare` reads it, and the content is looked for among them. Knows nothing of profiles, files
//! and how a loss is reported.

mod alteration;
mod carried;
pub(crate) mod rules;

pub(crate) use carried::{Expected, judge};

use crate::conversation::{ContentKind, KindSet};
use crate::json::Pointer;

/// The content that a body carries, and the content that it loses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Judged {
    /// The kinds of which something is in the body as it should be.
    pub(crate) held: KindSet,
    /// The losses.
    pub(crate) losses: Vec<Loss>,
}

/// Content that a body does not carry as it should.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loss {
    /// The kind of content.
    pub(crate) kind: ContentKind,
    /// Another kind that it is of, for declarations that name that one.
    pub(crate) also: Option<ContentKind>,
    /// The fate of the content.
    pub(crate) fate: Fate,
    /// Where it is in the template data.
    pub(crate) at: Pointer,
    /// The number of bytes that it has.
    pub(crate) size: usize,
    /// Its beginning.
    pub(crate) shown: Box<str>,
}

/// The fate of content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    /// It is not in the body.
    Dropped,
    /// It is there, but altered: how, as a sentence.
    Altered(String),
    /// It is there more often than in the conversation.
    Duplicated,
    /// It is before what was said earlier.
    Reordered,
}

impl Loss {
    /// The most characters that are shown of a content.
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
