//! Rendered text around a location, on one line.

use std::fmt;
use std::ops::Range;

use crate::secret::masked;

/// The length of the text shown on either side of a location, in bytes.
const AROUND: usize = 24;

/// The extra distance to search, in bytes: a secret key is recognised only as a whole.
const LOOKED_AT: usize = 256;

/// Returns the range of a string that an excerpt depends on.
pub(super) fn shown(range: &Range<usize>) -> Range<usize> {
    let marked = range.end.min(range.start + AROUND);
    range.start.saturating_sub(AROUND + LOOKED_AT)..marked + AROUND + LOOKED_AT
}

/// The output around a mistake, shown on one line: `…"a": 1 ▶"b"◀: 2…`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Excerpt {
    text: Box<str>,
    marked: Range<usize>,
    /// `true` for each side where output was cut: before the text, inside the mark, and after the
    /// text.
    more: [bool; 3],
}

impl Excerpt {
    /// Returns the text around a range, with secrets masked.
    pub(super) fn new(text: &str, range: &Range<usize>) -> Excerpt {
        let start = text.floor_char_boundary(range.start.saturating_sub(AROUND));
        let (from, to) = (
            text.floor_char_boundary(range.start),
            text.ceil_char_boundary(range.end.min(range.start + AROUND)),
        );
        let end = text.ceil_char_boundary((to + AROUND).min(text.len()));
        let seen = text.ceil_char_boundary(start.saturating_sub(LOOKED_AT));
        let around = &text[seen..text.floor_char_boundary(end + LOOKED_AT)];
        Excerpt {
            text: masked(around)[start - seen..end - seen].into(),
            marked: from - start..to - start,
            more: [start > 0, to < range.end.min(text.len()), end < text.len()],
        }
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.marked;
        let [before, marked, after] = [
            &self.text[..start],
            &self.text[start..end],
            &self.text[end..],
        ]
        .map(squeezed);
        let [head, cut, tail] = self.more.map(|is_more| if is_more { "…" } else { "" });
        match cut.is_empty() {
            true => write!(f, "rendered: {head}{before}▶{marked}◀{after}{tail}"),
            false => write!(f, "rendered: {head}{before}▶{marked}{cut}◀"),
        }
    }
}

/// Returns a string with each run of whitespace replaced by one space.
fn squeezed(part: &str) -> String {
    let mut squeezed = part.split_whitespace().collect::<Vec<_>>().join(" ");
    if part.starts_with(char::is_whitespace) && !squeezed.is_empty() {
        squeezed.insert(0, ' ');
    }
    if part.ends_with(char::is_whitespace) && !squeezed.is_empty() {
        squeezed.push(' ');
    }
    squeezed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, range: &Range<usize>) -> String {
        Excerpt::new(text, range).to_string()
    }

    #[test]
    fn excerpts_are_short_and_mark_the_place() {
        assert_eq!(excerpt("[1 2]", &(3..4)), "rendered: [1 ▶2◀]");
        let long = format!("[{}]", "\"é\", ".repeat(40));
        assert!(excerpt(&long, &(100..101)).chars().count() < 80);
    }
}
