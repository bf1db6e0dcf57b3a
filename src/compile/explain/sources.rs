//! Finds the origin of a run in a value's text.

use super::places::{Arrived, Piece, Places};
use crate::json::Pointer;
use crate::render::{By, ReadPlace, Step, Written};
use crate::source::Span;

/// The origin of a run in a value's text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValueSource {
    /// The kind of source.
    pub kind: SourceKind,
    /// The text to edit, if it is in a file.
    pub span: Option<Span>,
    /// The text or tag in the template that wrote the run.
    pub tag: Option<Span>,
    /// The steps that led to this source, innermost first.
    pub steps: Vec<Step>,
    /// The location in the template data, for values from a conversation.
    pub data: Option<Pointer>,
    /// The sources of a computed string.
    pub made_of: Vec<Span>,
    /// The number of bytes that the source wrote, counted in the text that it wrote.
    pub len: usize,
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// Literal text in a template.
    Template,
    /// A value from the conversation.
    Data,
    /// A file that a prompt read.
    File,
    /// The text that a tag writes around values.
    Tag,
    /// A value computed by a tag, so its location is inferred.
    Computed,
}

impl SourceKind {
    /// Returns `true` if the location is inferred: it contributes to the value but does not contain
    /// it.
    pub fn is_inferred(self) -> bool {
        self == SourceKind::Computed
    }

    /// Returns the kind's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Template => "template",
            SourceKind::Data => "data",
            SourceKind::File => "file",
            SourceKind::Tag => "tag",
            SourceKind::Computed => "computed",
        }
    }
}

impl Places<'_> {
    /// Returns the origins of a run. Messages added to a turn have their own template or their own
    /// text in the context.
    pub(super) fn sources_of(&self, written: Written) -> Vec<ValueSource> {
        let arrived = match &written.by {
            By::Data { path, bytes } => self.arrived(path, bytes.clone()),
            _ => None,
        };
        match arrived {
            Some(Arrived::Rendered(turn, runs)) => runs
                .into_iter()
                .map(|it| self.source_in_turn(turn, it))
                .collect(),
            Some(Arrived::Joined(pieces)) => {
                let source = self.source(written);
                pieces.iter().map(|piece| source.piece(piece)).collect()
            }
            None => vec![self.source(written)],
        }
    }

    /// Returns the origin of a run in a turn's surroundings text.
    fn source_in_turn(&self, turn: usize, written: Written) -> ValueSource {
        let context = self.file();
        let span = match &written.by {
            By::Data { path, .. } => context.and_then(|it| it.setting_span(path, turn)),
            By::File { file, .. } if file.place == ReadPlace::Project => {
                context.and_then(|it| it.project_file_span(&file.path, turn))
            }
            _ => None,
        };
        let source = self.source(written);
        ValueSource {
            span: span.or(source.span),
            ..source
        }
    }

    fn source(&self, written: Written) -> ValueSource {
        let mut source = ValueSource {
            kind: SourceKind::Template,
            span: Some(written.span),
            tag: Some(written.statement()),
            steps: written.steps,
            data: None,
            made_of: Vec::new(),
            len: written.output.len(),
        };
        match written.by {
            By::Template => {}
            By::Tag => source.kind = SourceKind::Tag,
            // The program itself chooses the role of the message that represents an item.
            By::Data { path, .. } if self.is_role_of_item(&path) => {
                source.kind = SourceKind::Computed;
                source.made_of.extend(self.data_span(&path));
            }
            By::Data { path, .. } => {
                source.kind = SourceKind::Data;
                source.span = self.data_span(&path);
                source.data = Some((*path).clone());
            }
            By::File { file, bytes } => {
                source.kind = SourceKind::File;
                source.span = self.file_span(&file, Some(bytes));
            }
            By::Computed(from) => {
                source.kind = SourceKind::Computed;
                source.made_of = from.iter().filter_map(|from| self.span_of(from)).collect();
            }
        }
        source
    }

    /// Returns the single value in the context that a provider step wrote.
    pub(super) fn source_of_step(&self, path: Pointer) -> ValueSource {
        ValueSource {
            kind: SourceKind::Data,
            span: self.data_span(&path),
            tag: None,
            steps: Vec::new(),
            data: Some(path),
            made_of: Vec::new(),
            len: 0,
        }
    }
}

impl ValueSource {
    /// Returns the origin of one part of a joined string. A part that is in no file was written by
    /// the tag.
    fn piece(&self, piece: &Piece) -> ValueSource {
        let (kind, span) = match piece.span {
            Some(span) => (SourceKind::Data, Some(span)),
            None => (SourceKind::Tag, self.tag),
        };
        ValueSource {
            kind,
            span,
            len: piece.len,
            ..self.clone()
        }
    }
}
