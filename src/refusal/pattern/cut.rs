//! Finds sentences that are cut off in a string, and sentences that resemble a string.

use std::ops::Range;

use super::plain::Plain;
use super::{Part, Pattern, WIDEST_HOLE, weight};

impl Pattern {
    /// Finds the beginning of the sentence where a string is cut off: at its end, or at an
    /// ellipsis. The beginning must be long enough. If `is_ended` is false, only an ellipsis is
    /// accepted.
    pub(in crate::refusal) fn find_cut(
        &self,
        plain: &Plain,
        is_ended: bool,
    ) -> Option<Range<usize>> {
        let beginning = self.beginning()?;
        let starts = plain.folded.match_indices(beginning).map(|(at, _)| at);
        starts
            .filter(|start| self.may_begin(plain, *start))
            .find_map(|start| self.cut_at(plain, start, is_ended))
    }

    /// Returns the first letters of the sentence, in the form used for comparison; `None` if it has
    /// no words.
    pub(in crate::refusal) fn beginning(&self) -> Option<&str> {
        let first = self.words().next()?;
        Some(&first[..first.floor_char_boundary(BEGINNING.min(first.len()))])
    }

    /// Matches the beginning of the sentence with a string that contains it at `start`.
    fn cut_at(&self, plain: &Plain, start: usize, is_ended: bool) -> Option<Range<usize>> {
        let (mut at, mut letters, mut in_hole) = (start, 0, false);
        for part in &self.parts {
            let Part::Words(words) = part else {
                in_hole = at > start;
                continue;
            };
            let rest = &plain.folded[at..];
            let found = if in_hole {
                rest.find(words.as_str())
            } else {
                rest.starts_with(words.as_str()).then_some(0)
            };
            if let Some(offset) = found.filter(|offset| *offset <= WIDEST_HOLE) {
                at += offset + words.len();
                letters += words.chars().map(weight).sum::<usize>();
                in_hole = false;
                continue;
            }
            if in_hole {
                let (offset, length) = beginning_at_cut(rest, words, is_ended)?;
                letters += words[..length].chars().map(weight).sum::<usize>();
                let end = at + offset + length;
                return (letters >= FEWEST_CUT).then(|| plain.between(start, end));
            }
            let same = rest
                .char_indices()
                .zip(words.chars())
                .find(|((_, left), right)| left != right)
                .map_or(rest.len().min(words.len()), |((at, _), _)| at);
            letters += rest[..same].chars().map(weight).sum::<usize>();
            let end = at + same;
            let range = plain.between(start, end);
            let is_cut = is_cut(&plain.folded[end..], is_ended)
                || is_within_word(words, same) && goes_on(&plain.text[range.end..]);
            return (is_cut && letters >= FEWEST_CUT).then_some(range);
        }
        None
    }

    /// Returns the percentage of the sentence's words that the text contains in order; 0 for
    /// sentences with few words.
    pub(in crate::refusal) fn nearness(&self, plain: &Plain) -> usize {
        let (mut all, mut met, mut at) = (0, 0, 0);
        for piece in self.words().flat_map(pieces) {
            all += piece.len();
            if let Some(found) = plain.folded[at..].find(piece) {
                met += piece.len();
                at += found + piece.len();
            }
        }
        if all < FEWEST_NEAR {
            0
        } else {
            met * 100 / all
        }
    }
}

/// The number of initial bytes by which a cut-off sentence is found.
const BEGINNING: usize = 16;

/// The minimum number of letters in a cut-off sentence.
const FEWEST_CUT: usize = 32;

/// Finds the beginning of some words at the end of a cut-off string. Returns its offset, and how
/// many bytes of the words the text contains.
fn beginning_at_cut(text: &str, words: &str, is_ended: bool) -> Option<(usize, usize)> {
    let lengths = words.char_indices().map(|(at, _)| at).rev();
    lengths
        .take_while(|length| *length >= FEWEST_BEHIND_HOLE)
        .find_map(|length| {
            let offset = text.find(&words[..length])?;
            is_cut(&text[offset + length..], is_ended).then_some((offset, length))
        })
}

/// The minimum number of bytes that must match after a hole in a sentence that is cut off.
const FEWEST_BEHIND_HOLE: usize = 4;

/// What clients write where they cut off a message, in the form used for comparison.
const CUT_MARKS: [&str; 3] = ["...", "\u{2026}", "(truncated"];

/// Returns `true` if the rest of a string shows that the text was cut off: it is empty, or begins
/// with an ellipsis or a similar mark.
fn is_cut(rest: &str, is_ended: bool) -> bool {
    is_ended && rest.is_empty() || CUT_MARKS.iter().any(|mark| rest.starts_with(mark))
}

/// Returns `true` if some words have letters on both sides of an offset.
fn is_within_word(words: &str, at: usize) -> bool {
    words[..at].ends_with(char::is_alphabetic) && words[at..].starts_with(char::is_alphabetic)
}

/// Returns `true` if a string continues with another sentence, as after a message that a client cut
/// off to add its own advice.
fn goes_on(rest: &str) -> bool {
    let next = rest.strip_prefix(['.', ',']).unwrap_or_default();
    next.starts_with(' ')
}

/// The minimum length of a sentence that is compared by similarity, in bytes.
const FEWEST_NEAR: usize = 40;

/// Splits words into pieces, which are searched for separately.
fn pieces(words: &str) -> impl Iterator<Item = &str> {
    const LENGTH: usize = 12;
    let mut rest = words;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LENGTH.min(rest.len())));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
