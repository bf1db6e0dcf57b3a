//! Maps from derived text to its source.

use std::ops::Range;

/// A map between derived text and its source, stored as a list of pieces.
///
/// A piece is either *verbatim* (source and derived bytes are identical) or *opaque* (an escape or
/// a line ending, where only the whole piece corresponds to its source bytes).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OffsetMap {
    pieces: Vec<Piece>,
    source_end: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    derived: u32,
    derived_len: u32,
    source: u32,
    source_len: u32,
    verbatim: bool,
}

impl Piece {
    fn derived_end(&self) -> u32 {
        self.derived + self.derived_len
    }

    fn source_end(&self) -> u32 {
        self.source + self.source_len
    }
}

impl OffsetMap {
    /// Returns a map from a string to itself.
    pub fn identity(len: usize) -> OffsetMap {
        let mut map = OffsetMap::default();
        map.push_verbatim(0, len);
        map
    }

    /// Appends `len` bytes copied unchanged from `source`.
    pub fn push_verbatim(&mut self, source: usize, len: usize) {
        self.push(source, len, len, true);
    }

    /// Appends `derived_len` bytes that represent the `source_len` bytes at `source`. For omitted
    /// text, `derived_len` is 0.
    pub fn push_opaque(&mut self, source: usize, source_len: usize, derived_len: usize) {
        self.push(source, source_len, derived_len, false);
    }

    fn push(&mut self, source: usize, source_len: usize, derived_len: usize, verbatim: bool) {
        let (source, source_len, derived_len) =
            (source as u32, source_len as u32, derived_len as u32);
        self.source_end = self.source_end.max(source + source_len);
        if derived_len == 0 {
            return;
        }
        if verbatim
            && let Some(last) = self.pieces.last_mut()
            && last.verbatim
            && last.source_end() == source
        {
            last.derived_len += derived_len;
            last.source_len += source_len;
            return;
        }
        let derived = self.derived_len() as u32;
        self.pieces.push(Piece {
            derived,
            derived_len,
            source,
            source_len,
            verbatim,
        });
    }

    /// Returns the length of the derived text, in bytes.
    pub fn derived_len(&self) -> usize {
        self.pieces
            .last()
            .map_or(0, |piece| piece.derived_end() as usize)
    }

    /// Returns the source offset for a derived offset. Inside an opaque piece, this is the start of
    /// the piece; at the end of the derived text or beyond, it is the end of the source.
    pub fn to_source(&self, derived: usize) -> usize {
        match self.piece_at(derived) {
            Some(piece) if piece.verbatim => {
                piece.source as usize + (derived - piece.derived as usize)
            }
            Some(piece) => piece.source as usize,
            None => self
                .pieces
                .last()
                .map_or(self.source_end, Piece::source_end) as usize,
        }
    }

    /// Returns the source range for a derived range. Opaque pieces at the edges are included
    /// completely.
    pub fn to_source_range(&self, derived: Range<usize>) -> Range<usize> {
        let start = self.to_source(derived.start);
        if derived.end <= derived.start {
            return start..start;
        }
        let end = match self.piece_at(derived.end - 1) {
            Some(piece) if piece.verbatim => {
                piece.source as usize + (derived.end - piece.derived as usize)
            }
            Some(piece) => piece.source_end() as usize,
            None => self.to_source(derived.end),
        };
        start..end.max(start)
    }

    /// Returns the derived offset for a source offset; `None` if no derived text comes from the
    /// byte at this offset.
    pub fn to_derived(&self, source: usize) -> Option<usize> {
        let index = self
            .pieces
            .partition_point(|piece| piece.source_end() as usize <= source);
        let piece = self
            .pieces
            .get(index)
            .filter(|piece| piece.source as usize <= source)?;
        Some(match piece.verbatim {
            true => piece.derived as usize + (source - piece.source as usize),
            false => piece.derived as usize,
        })
    }

    fn piece_at(&self, derived: usize) -> Option<&Piece> {
        let index = self
            .pieces
            .partition_point(|piece| piece.derived_end() as usize <= derived);
        self.pieces.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_escapes_whole() {
        // source `ab\u0041cd`, derived `abAcd`
        let mut map = OffsetMap::default();
        map.push_verbatim(0, 2);
        map.push_opaque(2, 6, 1);
        map.push_verbatim(8, 2);
        assert_eq!(map.to_source_range(2..3), 2..8);
        assert_eq!(map.to_source_range(1..4), 1..9);
        assert_eq!(map.to_source(3), 8);
        assert_eq!(map.to_source(5), 10);
        assert_eq!(map.to_derived(5), Some(2));
        assert_eq!(map.to_derived(9), Some(4));
        assert_eq!(map.to_derived(10), None);
    }

    #[test]
    fn dropped_text_leaves_no_piece() {
        let mut map = OffsetMap::default();
        map.push_opaque(0, 3, 0);
        map.push_verbatim(3, 4);
        assert_eq!(map.to_source(0), 3);
        assert_eq!(map.to_derived(1), None);
    }
}
