//! Counts the tokens in pieces. The counts are cached, because each request repeats the pieces of
//! the previous one.

use std::sync::Mutex;

use foldhash::HashMap;
use serde_json::{Value, json};

use super::piece::{Piece, chained, of_name};
use crate::provider::WireFormat;
use crate::tokens::{PartKind, TokenEstimate};

/// The maximum number of cached counts per shard.
const MOST: usize = 16_384;

/// The number of shards, which allow threads to work without waiting for each other.
const SHARDS: usize = 32;

/// A token counter for pieces.
pub(super) struct Sizer {
    known: Vec<Mutex<HashMap<u64, u64>>>,
}

impl Sizer {
    pub(super) fn new() -> Sizer {
        Sizer {
            known: (0..SHARDS)
                .map(|_| Mutex::new(HashMap::default()))
                .collect(),
        }
    }

    /// Sets the size of a piece.
    pub(super) fn size(&self, piece: &mut Piece, value: &Value, wire: WireFormat, model: &str) {
        let key = chained(chained(of_name(wire.name()), of_name(model)), piece.hash);
        let shard = &self.known[usize::try_from(key % SHARDS as u64).unwrap_or_default()];
        let known = shard.lock().ok().and_then(|known| known.get(&key).copied());
        piece.tokens = known.unwrap_or_else(|| {
            let tokens = estimate(piece, value, wire, model);
            if let Ok(mut known) = shard.lock() {
                if known.len() >= MOST {
                    known.clear();
                }
                known.insert(key, tokens);
            }
            tokens
        });
    }
}

/// Estimates the tokens in a piece as if it were the only piece of a body.
fn estimate(piece: &Piece, value: &Value, wire: WireFormat, model: &str) -> u64 {
    let member = match piece.index {
        Some(_) => json!([value]),
        None => value.clone(),
    };
    let body = json!({piece.member: member});
    let estimate = TokenEstimate::of(&body, wire, model);
    estimate.total() - estimate.of_kind(PartKind::Frame)
}
