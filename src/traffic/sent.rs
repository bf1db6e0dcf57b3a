//! One request as the log has it, and what the log says of its answer.

use std::sync::Arc;

use serde_json::Value;

use super::piece::Piece;
use super::story::Place;
use crate::conversation::Usage;
use crate::provider::{Server, WireFormat};

/// One request.
pub(super) struct Sent {
    pub(super) wire: WireFormat,
    pub(super) server: Server,
    pub(super) model: Arc<str>,
    pub(super) pieces: Vec<Piece>,
    /// The body, from which the texts of new pieces are taken. Transcripts have none.
    pub(super) body: Option<Value>,
    /// Fingerprints of settings on which the cache depends.
    pub(super) settings: Vec<(&'static str, u64)>,
    pub(super) answer: Answer,
    /// When it was sent, in milliseconds.
    pub(super) time: Option<i64>,
    pub(super) place: Place,
    /// The flaws for which the provider refuses it, in messages of the history.
    pub(super) flaws: Vec<Flaw>,
    /// The transcript that it belongs to, which is one conversation by itself.
    pub(super) thread: Option<u64>,
    /// `true` if the log says that a summary replaced the history.
    pub(super) is_compacted: bool,
    pub(super) form: &'static str,
}

impl Sent {
    /// Returns the pieces of the history.
    pub(super) fn history(&self) -> &[Piece] {
        &self.pieces[self.fixed()..]
    }

    /// Returns how many pieces are before the history.
    pub(super) fn fixed(&self) -> usize {
        fixed(&self.pieces)
    }

    /// Returns `true` if a member of the body asks the server to keep all of it.
    pub(super) fn asks_for_all(&self) -> bool {
        asks_for_all(&self.settings)
    }

    /// Keeps the text of a piece, if that is not done.
    pub(super) fn keep_text(&mut self, at: usize) {
        let Some(body) = &self.body else { return };
        let piece = &mut self.pieces[at];
        if piece.text.is_none()
            && let Some(value) = value_of(body, piece)
        {
            piece.keep(value);
        }
    }

    /// Returns the value of a piece.
    pub(super) fn value(&self, at: usize) -> Option<Value> {
        let piece = &self.pieces[at];
        let of_body = self.body.as_ref().and_then(|body| value_of(body, piece));
        of_body.cloned().or_else(|| piece.value())
    }
}

fn value_of<'b>(body: &'b Value, piece: &Piece) -> Option<&'b Value> {
    let member = body.get(piece.member)?;
    match piece.index {
        Some(index) => member.get(index),
        None => Some(member),
    }
}

/// Returns `true` if settings ask the server to keep the whole request.
pub(super) fn asks_for_all(settings: &[(&'static str, u64)]) -> bool {
    settings.iter().any(|(name, _)| *name == super::WHOLE)
}

/// Returns how many pieces are before the history.
pub(super) fn fixed(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .take_while(|piece| piece.share.is_fixed())
        .count()
}

/// The facts that the log has of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) usage: Option<Usage>,
    /// `true` if it holds signed thinking.
    pub(super) is_signed: bool,
    /// The words of the provider when it refused the request.
    pub(super) refusal: Option<String>,
}

/// A message for which the request is refused.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) rule: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The piece, as an index.
    pub(super) piece: usize,
}
