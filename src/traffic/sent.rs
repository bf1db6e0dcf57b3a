//! One request in a log, and the facts about its answer.

use std::sync::Arc;

use serde_json::Value;

use super::piece::Piece;
use super::story::Place;
use crate::conversation::Usage;
use crate::provider::{Server, WireFormat};

/// One request in a log.
pub(super) struct Sent {
    pub(super) wire: WireFormat,
    pub(super) server: Server,
    pub(super) model: Arc<str>,
    pub(super) pieces: Vec<Piece>,
    /// The body, from which the text of new pieces is taken. A request from a transcript has no
    /// body.
    pub(super) body: Option<Value>,
    /// The `prompt_cache_retention` of the body.
    pub(super) retention: Option<String>,
    /// The settings that affect the cache, with their fingerprints.
    pub(super) settings: Vec<(&'static str, u64)>,
    pub(super) answer: Answer,
    /// The time at which the request was sent, in milliseconds since 1970.
    pub(super) time: Option<i64>,
    pub(super) place: Place,
    /// The flaws in the history's messages that make the provider reject the request.
    pub(super) flaws: Vec<Flaw>,
    /// The transcript that contains the request. Each transcript is one conversation.
    pub(super) thread: Option<u64>,
    /// `true` if, according to the log, a summary replaced the history.
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

    /// Keeps the JSON of a piece, unless it is already kept.
    pub(super) fn keep_text(&mut self, at: usize) {
        let Some(body) = &self.body else { return };
        let piece = &mut self.pieces[at];
        if piece.text.is_none()
            && let Some(value) = value_of(body, piece)
        {
            piece.keep(value);
        }
    }

    /// Returns the JSON value of a piece.
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

/// Returns `true` if the settings ask the server to cache the whole request.
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

/// The facts that a log contains about an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) usage: Option<Usage>,
    /// `true` if the usage says how many tokens came from the cache.
    pub(super) tells_cache: bool,
    /// The input tokens written to the cache for an hour.
    pub(super) hour_written: u64,
    /// `true` if the answer contains signed thinking.
    pub(super) is_signed: bool,
    /// `true` if the log shows that the provider answered, even if it does not contain the answer.
    pub(super) is_answered: bool,
    /// The provider's error message, if it rejected the request.
    pub(super) refusal: Option<String>,
}

impl Answer {
    /// Returns `true` if the provider accepted the request.
    pub(super) fn is_accepted(&self) -> bool {
        let has_output = self.usage.is_some_and(|usage| usage.output > 0);
        self.refusal.is_none() && (self.is_answered || has_output)
    }
}

/// An error in a message that makes the provider reject the request.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) rule: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The index of the message's piece.
    pub(super) piece: usize,
}
