//! Makes a difference small enough to read, by removing everything that is not needed.

use super::Source;

/// The maximum number of attempts to leave something out.
const MOST_TRIES: usize = 1_500;

/// Removes tags, strings and lines, one by one and in pairs, as long as the templates still differ.
pub(super) fn shrunk(sources: Vec<Source>, differs: impl Fn(&[Source]) -> bool) -> Vec<Source> {
    let mut shrink = Shrink {
        sources,
        differs,
        tries: 0,
    };
    while shrink.tries < MOST_TRIES && shrink.is_smaller() {}
    shrink.sources.retain(|source| !source.text.is_empty());
    shrink.sources
}

struct Shrink<D> {
    sources: Vec<Source>,
    differs: D,
    tries: usize,
}

impl<D: Fn(&[Source]) -> bool> Shrink<D> {
    /// Leaves something out of each template; returns `true` if that was possible.
    fn is_smaller(&mut self) -> bool {
        let mut is_smaller = false;
        for index in 0..self.sources.len() {
            is_smaller |= self.without(index, String::new()) || self.without_parts(index);
        }
        is_smaller
    }

    fn without_parts(&mut self, index: usize) -> bool {
        let mut is_smaller = false;
        let mut first = 0;
        while first < pieces(&self.sources[index].text).len() {
            match self.without_from(index, first) {
                true => is_smaller = true,
                false => first += 1,
            }
        }
        is_smaller
    }

    /// Leaves out a piece: alone, with everything up to another piece, or with another piece.
    fn without_from(&mut self, index: usize, first: usize) -> bool {
        let text = self.sources[index].text.clone();
        let pieces = pieces(&text);
        for last in (first..pieces.len()).rev() {
            let run = [&pieces[..first], &pieces[last + 1..]].concat().concat();
            let pair = [
                &pieces[..first],
                &pieces[first + 1..last.max(first + 1)],
                &pieces[last + 1..],
            ];
            if self.without(index, run) || self.without(index, pair.concat().concat()) {
                return true;
            }
        }
        false
    }

    /// Keeps a shorter string if the templates still differ.
    fn without(&mut self, index: usize, text: String) -> bool {
        if self.tries >= MOST_TRIES || text.len() >= self.sources[index].text.len() {
            return false;
        }
        self.tries += 1;
        let before = std::mem::replace(&mut self.sources[index].text, text);
        let still_differs = (self.differs)(&self.sources);
        if !still_differs {
            self.sources[index].text = before;
        }
        still_differs
    }
}

/// Cuts a template into tags and the text between them.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut rest, mut is_tag) = (text, false);
    while !rest.is_empty() {
        let signs: &[&str] = if is_tag {
            &["%}", "}}", "#}"]
        } else {
            &["{%", "{{", "{#"]
        };
        let at = signs
            .iter()
            .filter_map(|sign| rest.find(sign))
            .min()
            .map(|at| at + 2 * usize::from(is_tag));
        let (piece, after) = rest.split_at(at.unwrap_or(rest.len()));
        if !piece.is_empty() {
            pieces.push(piece);
        }
        (rest, is_tag) = (after, !is_tag);
    }
    pieces
}
