//! Guards around what can grow: `a + b`, `a ~ b`, `a * b` become `_g(a + b)` before they are compiled.
//!
//! Steps are limited, but in thirty steps a text that is added to itself is a thousand million times as long. The guard
//! refuses values that are larger than all output may be. It moves what follows, so places in the compiled text are
//! mapped back with [`Guards::original`].

use std::ops::Range;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::MAX_OUTPUT;
use super::functions::TOO_LARGE;

/// The name of the guard as templates call it.
pub(super) const GUARD: &str = "_g";
const OPEN: &str = "_g(";
const CLOSE: &str = ")";
/// The longest list that adding or repeating may make.
const MAX_ELEMENTS: usize = 1_000_000;

/// What was inserted into a template's text: offsets in the original, and lengths, in order.
#[derive(Debug, Default)]
pub(super) struct Guards {
    inserted: Vec<(usize, usize)>,
}

/// The text with a guard around each of the ranges, which do not overlap.
pub(super) fn insert(text: &str, ranges: &[Range<usize>]) -> (String, Guards) {
    let mut pieces: Vec<(usize, &str)> =
        ranges.iter().flat_map(|range| [(range.start, OPEN), (range.end, CLOSE)]).collect();
    pieces.sort_by_key(|(at, _)| *at);
    let (mut guarded, mut from) = (String::with_capacity(text.len() + 4 * ranges.len()), 0);
    for (at, piece) in &pieces {
        guarded.push_str(&text[from..*at]);
        guarded.push_str(piece);
        from = *at;
    }
    guarded.push_str(&text[from..]);
    (guarded, Guards { inserted: pieces.iter().map(|(at, piece)| (*at, piece.len())).collect() })
}

impl Guards {
    /// The range of the original text that a range of the guarded one stands for.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn offset(&self, guarded: usize) -> usize {
        let mut shift = 0;
        for (at, len) in &self.inserted {
            if guarded < at + shift + len {
                return guarded.saturating_sub(shift).min(*at);
            }
            shift += len;
        }
        guarded - shift
    }
}

/// The guard: the value itself, unless it is too large.
pub(super) fn guard(value: Value) -> Result<Value, Error> {
    let is_too_large = match value.kind() {
        ValueKind::String => value.as_str().is_some_and(|text| text.len() > MAX_OUTPUT),
        ValueKind::Seq | ValueKind::Iterable => value.len().is_some_and(|len| len > MAX_ELEMENTS),
        _ => false,
    };
    match is_too_large {
        true => Err(Error::new(ErrorKind::WriteFailure, TOO_LARGE)),
        false => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_mapped_back() {
        let (text, guards) = insert("{{ a + b }}{{ c ~ d }}", &[3..8, 14..19]);
        assert_eq!(text, "{{ _g(a + b) }}{{ _g(c ~ d) }}");
        for (guarded, original) in [(0, 0), (3, 3), (5, 3), (6, 3), (7, 4), (11, 8), (12, 8), (14, 10), (22, 15)] {
            assert_eq!(guards.original(guarded..guarded).start, original, "{guarded}");
        }
        assert_eq!(guards.original(0..text.len()), 0..22);
        assert_eq!(Guards::default().original(1..2), 1..2);
    }
}
