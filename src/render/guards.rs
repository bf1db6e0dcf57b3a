//! Guards in a template's text: `a ~ b` becomes `__w(a) ~ __w(b)` before it is compiled.
//!
//! The engine's operators cannot be replaced, and a step of theirs may take any time and any memory. So their operands and
//! results pass through functions of ours ([`operators`](super::operators)), which charge for them. What is guarded
//! is decided by [`instrument`](super::instrument). Guards move what follows them, so places in the compiled text are mapped back with
//! [`Guards::original`].

use std::borrow::Cow;
use std::ops::Range;

/// What was inserted into a template's text: offsets in the original, and lengths, in order.
#[derive(Debug, Default)]
pub(super) struct Guards {
    inserted: Vec<(usize, usize)>,
}

/// Changes of a template's text, in any order.
#[derive(Debug, Default)]
pub(super) struct Edits {
    inserted: Vec<Insertion>,
    /// Single bytes that are replaced by others.
    replaced: Vec<(usize, u8)>,
}

#[derive(Debug)]
struct Insertion {
    at: usize,
    text: Cow<'static, str>,
    /// Orders what is inserted at one place: closings first, the inner before the outer; then the rest; then openings, the outer
    /// first; then prefixes.
    order: (u8, usize, usize),
}

impl Edits {
    /// Puts a range into a call; further arguments may follow it.
    pub(super) fn wrap(&mut self, range: &Range<usize>, function: &str, arguments: &str) {
        let index = self.inserted.len();
        let (outermost, len) = (usize::MAX - index, range.len());
        self.insert(range.start, format!("{function}(").into(), (2, usize::MAX - len, outermost));
        self.insert(range.end, format!("{arguments})").into(), (0, len, index));
    }

    /// Inserts text between whatever is put around ranges that end or start there.
    pub(super) fn put(&mut self, at: usize, text: impl Into<Cow<'static, str>>) {
        self.insert(at, text.into(), (1, self.inserted.len(), 0));
    }

    /// Inserts text directly before what begins there, inside of all that is put around it.
    pub(super) fn prefix(&mut self, at: usize, text: impl Into<Cow<'static, str>>) {
        self.insert(at, text.into(), (3, self.inserted.len(), 0));
    }

    fn insert(&mut self, at: usize, text: Cow<'static, str>, order: (u8, usize, usize)) {
        self.inserted.push(Insertion { at, text, order });
    }

    /// Replaces an ASCII character.
    pub(super) fn replace(&mut self, at: usize, with: u8) {
        self.replaced.push((at, with));
    }

    /// The changed text, and the way back.
    pub(super) fn apply(mut self, text: &str) -> (String, Guards) {
        let mut bytes = text.as_bytes().to_vec();
        self.replaced.iter().for_each(|(at, with)| bytes[*at] = *with);
        let text = String::from_utf8(bytes).expect("ASCII is replaced by ASCII");
        self.inserted.sort_by_key(|insertion| (insertion.at, insertion.order));
        let len = self.inserted.iter().map(|insertion| insertion.text.len()).sum::<usize>();
        let (mut guarded, mut from) = (String::with_capacity(text.len() + len), 0);
        for Insertion { at, text: piece, .. } in &self.inserted {
            guarded.push_str(&text[from..*at]);
            guarded.push_str(piece);
            from = *at;
        }
        guarded.push_str(&text[from..]);
        let inserted = self.inserted.iter().map(|insertion| (insertion.at, insertion.text.len())).collect();
        (guarded, Guards { inserted })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_mapped_back() {
        let mut edits = Edits::default();
        edits.wrap(&(3..8), "_g", "");
        edits.wrap(&(14..19), "_g", "");
        let (text, guards) = edits.apply("{{ a + b }}{{ c ~ d }}");
        assert_eq!(text, "{{ _g(a + b) }}{{ _g(c ~ d) }}");
        for (guarded, original) in [(0, 0), (3, 3), (5, 3), (6, 3), (7, 4), (11, 8), (12, 8), (14, 10), (22, 15)] {
            assert_eq!(guards.original(guarded..guarded).start, original, "{guarded}");
        }
        assert_eq!(guards.original(0..text.len()), 0..22);
        assert_eq!(Guards::default().original(1..2), 1..2);
    }

    #[test]
    fn guards_nest() {
        let mut edits = Edits::default();
        edits.wrap(&(0..1), "b", "");
        edits.wrap(&(0..3), "c", ", 2");
        edits.wrap(&(0..1), "a", "");
        edits.wrap(&(2..3), "d", "");
        edits.replace(1, b'-');
        assert_eq!(edits.apply("x+y").0, "c(a(b(x))-d(y), 2)");
    }
}
