//! A match of a sentence in a string, and the values in its holes.

use std::ops::Range;

use super::edges::is_of_path;
use super::plain::Plain;
use super::{is_name, weight};

/// A match of a sentence in a string.
#[derive(Debug)]
pub(in crate::refusal) struct Found {
    /// The byte range in the plain text.
    pub(in crate::refusal) range: Range<usize>,
    pub(super) holes: Vec<(String, Range<usize>)>,
}

impl Found {
    /// Returns `true` if the match is the whole text, everything between quotes, or everything
    /// after a status: `Error: 404 Resource not found`.
    pub(super) fn is_all(&self, text: &str) -> bool {
        let before = text[..self.range.start].trim_end();
        let after = text[self.range.end..].trim_start_matches('.').trim_start();
        (before.is_empty() || before.ends_with('\'') || ends_with_status(before))
            && (after.is_empty() || after.starts_with('\''))
    }

    /// Returns `true` if the words are not part of a longer word, name, path or address. Always
    /// returns `true` for Chinese and Japanese words, because there are no spaces between them.
    pub(super) fn stands_alone(&self, text: &str) -> bool {
        let (before, after) = (&text[..self.range.start], &text[self.range.end..]);
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let is_of_address = |c: char| is_of_name(c) || matches!(c, '/' | '.');
        let is_spaceless = text[self.range.clone()].starts_with(|c: char| weight(c) > 1);
        is_spaceless || !before.ends_with(is_of_address) && !after.starts_with(is_of_name)
    }

    /// Returns `true` if each hole is a single word, as names are.
    pub(super) fn holds_names(&self, text: &str) -> bool {
        self.holes
            .iter()
            .all(|(_, range)| !text[range.clone()].trim().contains(' '))
    }

    /// Returns the sentence as it appears in the text, with the quoted words and the quotes that
    /// belong to the sentence.
    pub(in crate::refusal) fn shown<'p>(&self, plain: &'p Plain) -> &'p str {
        let (text, Range { mut start, mut end }) = (&*plain.text, self.range.clone());
        if text[..end].ends_with(' ') {
            end += quoted_length(&text[end..]);
        }
        if text[start..].starts_with([' ', ':']) {
            start = quoted_start(&text[..start]);
        }
        let shown = &text[start..end];
        let (is_quoted_before, is_quoted_after) =
            (text[..start].ends_with('\''), text[end..].starts_with('\''));
        let count = quotes(shown).count();
        match (is_quote_left_out(shown), count % 2 == 1) {
            (true, true) if is_quoted_before => start -= 1,
            (false, true) if is_quoted_after => end += 1,
            (true, false) if count > 0 && is_quoted_before && is_quoted_after => {
                start -= 1;
                end += 1;
            }
            _ => {}
        }
        text[start..end].trim()
    }

    /// Returns the name and the content of each hole.
    pub(in crate::refusal) fn named(&self, plain: &Plain) -> Vec<(String, String)> {
        self.holes
            .iter()
            .map(|(name, range)| {
                (
                    name.clone(),
                    plain.text[range.clone()]
                        .trim_matches([' ', '\''])
                        .to_owned(),
                )
            })
            .collect()
    }

    /// Returns the first name that is written as empty quotes: `model` in `The '' model is odd`.
    pub(in crate::refusal) fn empty_name(&self, plain: &Plain) -> Option<String> {
        let mut names = self.holes.iter().filter(|(name, _)| is_name(name));
        let empty = names.find(|(_, range)| plain.text[range.clone()].trim() == "''");
        empty.map(|(name, _)| name.clone())
    }

    /// Returns the path that the sentence contains: the content of a hole for a path, extended by
    /// adjacent characters that can belong to the path.
    pub(in crate::refusal) fn path(&self, plain: &Plain) -> Option<String> {
        let (_, range) = self
            .holes
            .iter()
            .find(|(name, _)| name == "path" || name == "index")?;
        // A hole at the end of a sentence begins with the space before it, and a hole at the
        // beginning ends with the space after it.
        let value = plain.text[range.clone()].trim_start_matches([' ', '\'', '#']);
        let rest = &plain.text[range.end..];
        if value.is_empty() {
            return quoted_path(rest);
        }
        let from = range.end - value.len();
        let start = plain.text[..from]
            .rfind(|c| !is_of_path(c))
            .map_or(0, |at| at + 1);
        let end = match value.trim_end_matches([' ', '\'']) {
            inner if inner.len() < value.len() => from + inner.len(),
            _ => range.end + rest.find(|c| !is_of_path(c)).unwrap_or(rest.len()),
        };
        let path = plain
            .text
            .get(start..end)?
            .trim_matches(['.', '/', '-', ' ']);
        // A number alone is an index into a list that only the sentence's words identify.
        path.contains(char::is_alphabetic).then(|| path.to_owned())
    }
}

/// Returns the path in quotes that a string begins with.
fn quoted_path(text: &str) -> Option<String> {
    let (path, _) = text.strip_prefix('\'')?.split_once('\'')?;
    (path.contains(char::is_alphabetic) && path.chars().all(is_of_path)).then(|| path.to_owned())
}

/// Returns the length of the quoted word at the start of a string, or of a list of such words.
fn quoted_length(text: &str) -> usize {
    const BETWEEN: [&str; 7] = [", and ", ", or ", " and ", " or ", ", ", ",", ""];
    let mut length = 0;
    let mut rest = text;
    for _ in 0..MOST_QUOTED {
        let separator = BETWEEN
            .iter()
            .find(|it| rest.starts_with(&format!("{it}'")));
        let Some(separator) = separator.filter(|it| it.is_empty() == (length == 0)) else {
            break;
        };
        let Some(quoted) = quoted_word(&rest[separator.len()..]) else {
            break;
        };
        length += separator.len() + quoted;
        rest = &text[length..];
    }
    length
}

/// Returns the length of the quoted word at the start of a text, with its quotes: `'a'`, or `''a''`
/// if it is quoted twice. Marks between quotes are not a word.
fn quoted_word(text: &str) -> Option<usize> {
    let word = text.trim_start_matches('\'');
    let opening = text.len() - word.len();
    let end = word.find('\'')?;
    let closing = word[end..].len() - word[end..].trim_start_matches('\'').len();
    match (opening, word[..end].contains(char::is_alphanumeric)) {
        (1 | 2, true) => Some(opening + end + opening.min(closing)),
        (2, false) => Some(opening),
        _ => None,
    }
}

/// The maximum number of quoted words that are shown after a sentence.
const MOST_QUOTED: usize = 20;

/// Returns the start of the quoted word at the end of a string; the end of the text if there is
/// none.
fn quoted_start(text: &str) -> usize {
    let word = text.strip_suffix('\'').and_then(|rest| rest.rfind('\''));
    word.unwrap_or(text.len())
}

/// Returns the positions of the quotes in a text. Apostrophes between letters are not quotes.
fn quotes(text: &str) -> impl Iterator<Item = usize> {
    let quotes = text.match_indices('\'').map(|(at, _)| at);
    quotes.filter(|at| {
        !text[..*at].ends_with(char::is_alphabetic)
            || !text[at + 1..].starts_with(char::is_alphabetic)
    })
}

/// Returns `true` if the first quote in a text closes a word, which means that its opening quote is
/// missing.
fn is_quote_left_out(text: &str) -> bool {
    let first = quotes(text).next().unwrap_or_default();
    text[..first].ends_with(|c: char| c.is_alphanumeric())
}

/// Returns `true` if a string ends with the status of a refusal, as SDKs write it before the
/// provider's message: `BadRequestError: 400`, `HTTP 400 -`.
pub(super) fn ends_with_status(text: &str) -> bool {
    let text = text.trim_end_matches([' ', ':', '-']);
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let status = &text[before.len()..];
    status.len() == 3
        && status.starts_with(['4', '5'])
        && !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'))
}
