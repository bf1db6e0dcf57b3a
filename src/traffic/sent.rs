//! One request of a log, and what the log contains of its answer.

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
    /// The body, from which the texts of new pieces are taken. Transcripts have no bodies.
    pub(super) body: Option<Value>,
    /// Fingerprints of settings that affect the cache.
    pub(super) settings: Vec<(&'static str, u64)>,
    pub(super) answer: Answer,
    /// The time of sending, in milliseconds since 1970.
    pub(super) time: Option<i64>,
    pub(super) place: Place,
    /// The flaws in messages of the history that cause the provider to refuse it.
    pub(super) flaws: Vec<Flaw>,
    /// The transcript that it belongs to; each transcript is one conversation.
    pub(super) thread: Option<u64>,
    /// `true` if the log reports that a summary replaced the history.
    pub(super) is_compacted: bool,
    pub(super) form: &'static str,
}

impl Sent {
    /// Returns the pieces of the history.
    pub(super) fn history(&self) -> &[Piece] {
        &self.pieces[self.fixed()..]
    }

    /// Returns the number of pieces before the history.
    pub(super) fn fixed(&self) -> usize {
        fixed(&self.pieces)
    }

    /// Returns `true` if the body asks the server to cache it as a whole.
    pub(super) fn asks_for_all(&self) -> bool {
        asks_for_all(&self.settings)
    }

    /// Stores the text of a piece, if that has not been done.
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

/// Returns `true` if settings ask the server to cache the whole request.
pub(super) fn asks_for_all(settings: &[(&'static str, u64)]) -> bool {
    settings.iter().any(|(name, _)| *name == super::WHOLE)
}

/// Returns the number of pieces before the history.
pub(super) fn fixed(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .take_while(|piece| piece.share.is_fixed())
        .count()
}

/// The facts about an answer in the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) usage: Option<Usage>,
    /// `true` if it contains signed thinking.
    pub(super) is_signed: bool,
    /// The provider's message, if it refused the request.
    pub(super) refusal: Option<String>,
}

/// An error in a message that causes the request to be refused.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) rule: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The index of the piece.
    pub(super) piece: usize,
}
