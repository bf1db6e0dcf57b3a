//! Rendered text around a place, on one line.

use std::ops::Range;

/// How much is shown on either side of a place, in bytes.
const AROUND: usize = 24;

/// What an excerpt may show of a text.
pub(super) fn shown(range: &Range<usize>) -> Range<usize> {
    /// The most bytes of a character.
    const CHARACTER: usize = 4;
    let marked = range.end.min(range.start + AROUND);
    range.start.saturating_sub(AROUND + CHARACTER)..marked + AROUND + CHARACTER
}

/// The output around a mistake, on one line: `…"a": 1 ▶"b"◀: 2…`.
pub(super) fn excerpt(text: &str, range: &Range<usize>) -> String {
    let start = text.floor_char_boundary(range.start.saturating_sub(AROUND));
    let (from, to) =
        (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end.min(range.start + AROUND)));
    let end = text.ceil_char_boundary((to + AROUND).min(text.len()));
    let squeeze = |part: &str| {
        let mut squeezed = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if part.starts_with(char::is_whitespace) && !squeezed.is_empty() {
            squeezed.insert(0, ' ');
        }
        if part.ends_with(char::is_whitespace) && !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed
    };
    let (before, marked) = (squeeze(&text[start..from]), squeeze(&text[from..to]));
    let head = if start > 0 { "…" } else { "" };
    if to < range.end.min(text.len()) {
        return format!("rendered: {head}{before}▶{marked}…◀");
    }
    let (after, tail) = (squeeze(&text[to..end]), if end < text.len() { "…" } else { "" });
    format!("rendered: {head}{before}▶{marked}◀{after}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_mark_the_place() {
        assert_eq!(excerpt("[1 2]", &(3..4)), "rendered: [1 ▶2◀]");
        let long = format!("[{}]", "\"é\", ".repeat(40));
        assert!(excerpt(&long, &(100..101)).chars().count() < 80);
    }
}
