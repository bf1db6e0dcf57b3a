//! Splits the bytes of an answer into frames, before any JSON is parsed.
//!
//! Input: bytes, split at any position. Output: [`Frame`]s that do not depend on the splits. If the
//! first byte contradicts the server's `content-type`, the byte is trusted, because JSON text is
//! never Server-Sent Events, and vice versa.

use super::frame::{Frame, frame, within};
use super::sse::Sse;
use super::{Framing, Limits};
use crate::runtime::Error;

/// Splits an answer into frames.
pub(super) struct Framer {
    kind: Kind,
    limits: Limits,
    /// The number of bytes so far, without comments and whitespace.
    content_bytes: usize,
}

enum Kind {
    /// Only whitespace has arrived so far. Contains the declared framing.
    Undecided(Framing),
    Sse(Sse),
    Lines(Vec<u8>),
    Whole(Vec<u8>),
}

impl Framer {
    /// Returns a framer for an answer with this declared framing.
    pub(super) fn new(framing: Framing, limits: Limits) -> Framer {
        Framer {
            kind: Kind::Undecided(framing),
            limits,
            content_bytes: 0,
        }
    }

    /// Returns the number of bytes so far, without comments and whitespace.
    pub(super) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// Reads bytes up to the end of the next line. Returns the number of bytes read, and the frame
    /// that they complete, if any.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Frame>), Error> {
        let taken = self.take_line(bytes)?;
        let is_comment = matches!(&self.kind, Kind::Sse(sse) if sse.was_comment());
        if !is_comment && !matches!(self.kind, Kind::Undecided(_)) {
            let content = bytes[..taken.0]
                .iter()
                .filter(|byte| !byte.is_ascii_whitespace())
                .count();
            self.content_bytes = self.content_bytes.saturating_add(content);
        }
        Ok(taken)
    }

    fn take_line(&mut self, bytes: &[u8]) -> Result<(usize, Option<Frame>), Error> {
        match &mut self.kind {
            Kind::Undecided(framing) => {
                let skipped = bytes
                    .iter()
                    .position(|byte| !is_skipped(*byte))
                    .unwrap_or(bytes.len());
                if let Some(first) = bytes.get(skipped) {
                    self.kind = Kind::by_first_byte(*framing, *first);
                }
                Ok((skipped, None))
            }
            Kind::Sse(sse) => sse.take(bytes, self.limits),
            Kind::Lines(line) => take_line(line, bytes, self.limits),
            Kind::Whole(text) => {
                text.extend_from_slice(bytes);
                within(text.len(), self.limits.event, "the answer", "bytes")?;
                Ok((bytes.len(), None))
            }
        }
    }

    /// Returns `true` if the answer is framed as one JSON value.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.kind, Kind::Whole(_))
    }

    /// Removes and returns the names of received fields that the standard does not define.
    pub(super) fn unknown_fields(&mut self) -> Vec<String> {
        match &mut self.kind {
            Kind::Sse(sse) => sse.unknown_fields(),
            Kind::Undecided(_) | Kind::Lines(_) | Kind::Whole(_) => Vec::new(),
        }
    }

    /// Returns the last frame, if any, at the end of the connection.
    pub(super) fn finish(&mut self) -> Option<Frame> {
        match &mut self.kind {
            Kind::Undecided(_) => None,
            Kind::Sse(sse) => sse.finish(),
            Kind::Lines(text) | Kind::Whole(text) => frame(None, &std::mem::take(text)),
        }
    }
}

impl Kind {
    fn by_first_byte(framing: Framing, first: u8) -> Kind {
        match (framing, matches!(first, b'{' | b'[')) {
            (_, false) => Kind::Sse(Sse::default()),
            (Framing::Lines, true) => Kind::Lines(Vec::new()),
            (Framing::Sse | Framing::Whole, true) => Kind::Whole(Vec::new()),
        }
    }
}

/// Returns `true` for bytes that cannot begin an answer: whitespace and the bytes of a byte-order
/// mark.
fn is_skipped(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}

fn take_line(
    line: &mut Vec<u8>,
    bytes: &[u8],
    limits: Limits,
) -> Result<(usize, Option<Frame>), Error> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
    within(line.len(), limits.line, "a line", "bytes")?;
    match end {
        Some(end) => Ok((end + 1, frame(None, &std::mem::take(line)))),
        None => Ok((bytes.len(), None)),
    }
}
