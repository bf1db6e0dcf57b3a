//! Compares two request bodies from the same conversation, and finds the content and settings that
//! are missing from one of them.
//!
//! Input: two bodies, each with its wire format; the formats may differ. Output: a [`Comparison`],
//! with the number of pieces of content in both and every [`Difference`]. Both bodies are read into
//! the same kinds of pieces, which are aligned in order. Settings and tools are compared by their
//! meaning. This module does not access files or display comparisons.

mod bodies;
mod files;
pub(crate) mod limits;
mod piece;
mod align;
mod read;
mod settings;
mod texts;
mod tools;
mod differ;

pub use bodies::{LineColumn, PlacedBody, bodies};
pub(crate) use piece::{Content, Piece, canonical};
pub(crate) use read::pieces_of;
pub(crate) use texts::alteration;

pub use files::{Allowed, ComparedFiles, ComparedPair, NamedBodies, PlacedDifference};

use serde_json::Value;

use crate::json::Pointer;
use crate::provider::WireFormat;

/// One of the two bodies.
#[derive(Debug, Clone, Copy)]
pub struct Side<'b> {
    /// The request body.
    pub body: &'b Value,
    /// The body's wire format.
    pub wire: WireFormat,
}

/// The content that two bodies share, and their differences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The number of pieces of content that are in both bodies: strings, calls, results, images,
    /// tools …
    pub shared: usize,
    /// The differences in content, tools and settings.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Returns the differences that are losses in the second body.
    pub fn losses(&self) -> impl Iterator<Item = &Difference> {
        self.differences
            .iter()
            .filter(|difference| difference.kind.is_loss())
    }
}

/// A difference between two bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// The kind of value that differs, as one lower-case word: `text`, `call`, `image`,
    /// `temperature` …
    pub subject: &'static str,
    /// The message, as one sentence without a full stop.
    pub message: String,
    /// The reason the second body's wire format cannot express the value, as a sentence; `None` if
    /// it can, or if that is unknown.
    pub no_place: Option<&'static str>,
    /// The location in the first body, if the value is there.
    pub first: Option<Pointer>,
    /// The location in the second body, if the value is there.
    pub second: Option<Pointer>,
}

impl Difference {
    /// Returns the name that allows the difference, such as `lost/image`.
    pub fn code(&self) -> String {
        format!("{}/{}", self.kind.name(), self.subject)
    }
}

/// The kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// Content in the first body that the second body lacks.
    Lost,
    /// Content in both bodies, but altered in the second body.
    Altered,
    /// Content in both bodies, in a different order.
    Moved,
    /// Content with a different role in the second body.
    Role,
    /// A setting that is missing from the second body, or has a different meaning there.
    Setting,
    /// Content in the second body that the first body lacks.
    Added,
    /// Text that is split differently. Nothing is lost.
    Regrouped,
    /// The model's name, which always differs between two providers.
    Model,
}

impl DifferenceKind {
    /// All kinds.
    pub const ALL: [DifferenceKind; 8] = [
        DifferenceKind::Lost,
        DifferenceKind::Altered,
        DifferenceKind::Moved,
        DifferenceKind::Role,
        DifferenceKind::Setting,
        DifferenceKind::Added,
        DifferenceKind::Regrouped,
        DifferenceKind::Model,
    ];

    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            DifferenceKind::Lost => "lost",
            DifferenceKind::Altered => "altered",
            DifferenceKind::Moved => "moved",
            DifferenceKind::Role => "role",
            DifferenceKind::Setting => "setting",
            DifferenceKind::Added => "added",
            DifferenceKind::Regrouped => "regrouped",
            DifferenceKind::Model => "model",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<DifferenceKind> {
        DifferenceKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Returns `true` if the second body lacks or alters something that the first contains.
    pub fn is_loss(self) -> bool {
        match self {
            DifferenceKind::Lost
            | DifferenceKind::Altered
            | DifferenceKind::Moved
            | DifferenceKind::Role
            | DifferenceKind::Setting => true,
            DifferenceKind::Added | DifferenceKind::Regrouped | DifferenceKind::Model => false,
        }
    }
}

/// Compares two bodies, and returns the content and settings that the second body lacks, alters or
/// adds.
///
/// ```
/// use reqc::compare::{Side, compare};
/// use reqc::lint::WireFormat;
/// use serde_json::json;
///
/// let question = json!({"messages": [{"role": "user", "content": [
///     {"type": "text", "text": "What is this?"},
///     {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
/// ]}]});
/// let translated = json!({"messages": [{"role": "user", "content": "What is this?"}]});
/// let first = Side { body: &question, wire: WireFormat::AnthropicMessages };
/// let second = Side { body: &translated, wire: WireFormat::OpenAiChat };
/// let compared = compare(first, second);
/// assert_eq!(compared.shared, 1);
/// assert_eq!(compared.differences[0].code(), "lost/image");
/// ```
pub fn compare(first: Side<'_>, second: Side<'_>) -> Comparison {
    differ::differ(first, second)
}
