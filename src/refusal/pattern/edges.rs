//! The edges of sentences and of the values in their holes.

use std::ops::Range;

use super::WIDEST_HOLE;
use super::plain::Plain;

/// Returns the beginning of the word that ends at `end`, before its closing quote if it has one.
pub(super) fn before(text: &str, end: usize) -> usize {
    let start = text.ceil_char_boundary(end.saturating_sub(WIDEST_HOLE));
    let word = text[start..end].trim_end();
    let quoted = word
        .strip_suffix('\'')
        .filter(|word| word.ends_with(|c| is_of_path(c) || c == '}'));
    let word = quoted.unwrap_or(word);
    let start = start + word.rfind([' ', '\'', '{', '(']).map_or(0, |at| at + 1);
    start + after_sentence(&text[start..end])
}

/// Returns the beginning of the name in quotes that ends at `end`. The name may contain spaces.
pub(super) fn quoted_name(text: &str, end: usize) -> Option<usize> {
    let name = text[..end].trim_end().strip_suffix('\'')?;
    let opening = name.rfind('\'')?;
    let is_closing = text[..opening].ends_with(char::is_alphanumeric);
    let is_short = (1..=LONGEST_NAME).contains(&(name.len() - opening - 1));
    (is_short && !is_closing).then_some(opening + 1)
}

/// The maximum length of a name in quotes, in bytes.
const LONGEST_NAME: usize = 100;

/// Words that precede a member's name.
const BEFORE_NAME: [&str; 12] = [
    "argument",
    "at",
    "attribute",
    "field",
    "for",
    "in",
    "key",
    "member",
    "option",
    "param",
    "parameter",
    "property",
];

/// Returns `true` if a word before a colon is the last word of a phrase, not a path. An example is
/// `provider` in `Error from provider: Field required`. Paths with several steps are always treated
/// as paths.
pub(super) fn is_end_of_phrase(text: &str, word: Range<usize>) -> bool {
    let path = &text[word.clone()];
    if !text[word.end..].starts_with(':') || path.contains(['.', '[', '/', '\'']) {
        return false;
    }
    if path.contains(')') && !path.contains('(') {
        return true;
    }
    let Some(before) = text[..word.start].strip_suffix(' ') else {
        return false;
    };
    let last = before.rsplit(' ').next().unwrap_or_default();
    last.ends_with(char::is_alphabetic) && !BEFORE_NAME.contains(&&*last.to_ascii_lowercase())
}

/// Returns the offset at which the path begins in the last word before a sentence. AWS writes the
/// next path directly after the previous sentence, as in `is not permitted#/messages: …`.
fn after_sentence(word: &str) -> usize {
    word.rfind('#')
        .filter(|at| {
            matches!(word[at + 1..].trim_end(), "" | "'") || word[at + 1..].starts_with('/')
        })
        .unwrap_or_default()
}

/// Returns the end of a value that begins at `start`: a quote, a brace, or the end of a sentence.
pub(super) fn after(text: &str, start: usize) -> usize {
    let rest = &text[start..text.floor_char_boundary(start + WIDEST_HOLE)];
    let ends = [rest.find('\''), rest.find(". "), rest.find('}')];
    start
        + ends
            .into_iter()
            .flatten()
            .filter(|end| *end > 0)
            .min()
            .unwrap_or(rest.len())
}

/// Returns `true` if no further word of the same sentence follows a location.
pub(in crate::refusal) fn ends_at(plain: &Plain, end: usize) -> bool {
    let rest = plain.text[end..].trim_start_matches([')', ']']);
    rest.is_empty()
        || rest.starts_with(['.', ',', ';', ':', '\'', '(', '<', '}', '!'])
        || rest.starts_with(" (")
}

/// Returns `true` if there are letters or digits directly on both sides of a location in a string.
pub(super) fn is_inside_word(text: &str, at: usize) -> bool {
    text[..at].ends_with(char::is_alphanumeric)
        && text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns `true` if a location is between two words of an identifier: `ChatCompletion|Request`.
pub(super) fn is_inside_identifier(text: &str, at: usize) -> bool {
    text[..at].ends_with(|c: char| c.is_ascii_lowercase())
        && text[at..].starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns `true` if a location is between two steps of a path: `response_format|.type`.
pub(super) fn is_inside_path(text: &str, at: usize) -> bool {
    let next = text[at..].strip_prefix('.').unwrap_or_default();
    let before = &text[..at];
    let path = &before[before.trim_end_matches(is_of_path).len()..];
    path.contains(['_', '.', '[']) && next.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// Returns `true` if the sentence ends at a location: no further word follows, not even after a
/// quote, and no reason after a colon.
pub(in crate::refusal) fn is_over(plain: &Plain, end: usize) -> bool {
    let rest = plain.text[end..].trim_start_matches('\'');
    let goes_on = rest
        .strip_prefix(' ')
        .is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    ends_at(plain, end) && !goes_on && !rest.starts_with(':')
}

pub(super) fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '-' | '/')
}
