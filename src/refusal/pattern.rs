//! Sentences with holes, and the search for them in a string.
//!
//! The search ignores whitespace, quotes, underscores and escapes, and the case of ASCII letters. A
//! sentence is therefore found in JSON, in a Python dictionary, and in terminal output with colours
//! or with line breaks inside words.

mod plain;
mod edges;
mod found;
mod cut;
mod forms;

use std::ops::Range;

use edges::{
    after, before, is_end_of_phrase, is_inside_identifier, is_inside_path, is_inside_word,
    quoted_name,
};
pub(super) use edges::{ends_at, is_over};
pub(super) use forms::{is_general, shorter};
pub(super) use found::Found;
use found::ends_with_status;
pub(super) use plain::Plain;
use plain::{is_compared, plain};

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Fixed words, in the form used for comparison.
    Words(String),
    /// A variable part.
    Hole(Hole),
}

/// A variable part of a sentence.
#[derive(Debug, PartialEq, Eq)]
struct Hole {
    name: String,
    /// `true` if a space or a mark separates the hole from the words before it, so that the hole
    /// does not begin in the middle of a word. For example, `Model {model}` does not match
    /// `models/gemini-3-pro`.
    is_apart: bool,
}

/// A sentence with holes.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    letters: usize,
    /// `true` if there are spaces between the words of the sentence.
    has_spaces: bool,
    /// `true` if the sentence began with `The `, which `parts` leaves out.
    lacks_article: bool,
}

/// The maximum length of a hole in bytes: enough for a list of IDs, but not for another message.
const WIDEST_HOLE: usize = 1_000;

/// The minimum number of letters that a sentence with a hole needs to be recognised inside a
/// string.
const FEWEST_LETTERS: usize = 18;

/// The minimum number of letters that a sentence without a hole needs to be recognised inside a
/// string.
const FEWEST_LETTERS_ALONE: usize = 20;

/// The minimum number of letters that a sentence needs to be recognised as the whole rest of a
/// line.
const FEWEST_LETTERS_OF_MESSAGE: usize = 10;

/// The minimum number of letters in a part of a sentence that is assumed to occur in no other
/// sentence.
const FEWEST_TELLING: usize = 24;

/// Marks that precede a message in program output.
const INTRODUCING: [char; 10] = [
    ':', '=', ']', '>', '|', '-', '(', '\u{23bf}', '\u{274c}', '\u{26a0}',
];

/// The end of a member's name in JSON.
const MEMBER_END: &str = "':";

/// Marks between the clauses of a message.
const CLAUSE_ENDS: [&str; 3] = [": ", "; ", ". "];

/// The name of holes that contain another message.
const INNER_HOLE: &str = "reason";

/// The mark before each message in a list. A message on its own lacks it.
const BULLET: &str = "* ";

/// Returns `true` if a hole stands for a single name. Such a hole cannot contain the end of one
/// message and the beginning of the next.
fn is_name(hole: &str) -> bool {
    matches!(
        hole,
        "name" | "provider" | "model" | "id" | "tool" | "field" | "role" | "group"
    )
}

/// Returns `true` if a hole stands for a part of a body.
fn is_of_body(hole: &str) -> bool {
    matches!(hole, "path" | "field" | "role" | "tool")
}

/// Returns `true` if a string contains more than a name and runs on into another message: it
/// contains a member's name, or a clause ends outside brackets.
fn reaches_on(text: &str) -> bool {
    let text = text.trim();
    let bare = without_brackets(text);
    text.contains(MEMBER_END) || CLAUSE_ENDS.iter().any(|end| bare.contains(end))
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = text.chars().filter(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    outside.collect()
}

/// The word that may be missing at the beginning of a sentence.
const ARTICLE: &str = "The ";

/// The members in an answer that may contain a sentence.
const MEMBERS: [&str; 4] = ["msg", "message", "detail", "error"];

impl Pattern {
    /// Parses a sentence: `{name}` is a hole, `{{` and `}}` are braces. A list bullet before the
    /// sentence is ignored, as it is in the text that is searched. `The ` at its beginning may be
    /// missing from a message, because people who quote one leave it out.
    pub(super) fn parse(sentence: &str) -> Pattern {
        let mut parts = Vec::new();
        let mut words = String::new();
        let sentence = sentence.trim_start_matches(BULLET);
        let without_article = sentence
            .strip_prefix(ARTICLE)
            .filter(|rest| rest.starts_with(char::is_alphabetic));
        let sentence = without_article.unwrap_or(sentence);
        let mut chars = sentence
            .trim_end_matches(['.', '\u{3002}'])
            .chars()
            .peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('{', Some('{')) | ('}', Some('}')) => {
                    chars.next();
                    words.push(c);
                }
                ('{', _) => {
                    let is_apart = !words.ends_with(char::is_alphanumeric);
                    push_words(&mut parts, &mut words);
                    let name = chars.by_ref().take_while(|c| *c != '}').collect();
                    parts.push(Part::Hole(Hole { name, is_apart }));
                }
                (c, _) => words.push(c),
            }
        }
        push_words(&mut parts, &mut words);
        let letters = parts.iter().map(|part| match part {
            Part::Words(words) => words.chars().map(weight).sum(),
            Part::Hole(_) => 0,
        });
        Pattern {
            letters: letters.sum(),
            parts,
            has_spaces: sentence.contains(' '),
            lacks_article: without_article.is_some(),
        }
    }

    /// Returns `true` if the pattern has enough words to be recognised when the rest of the
    /// sentence is missing from the text.
    pub(super) fn is_telling(&self) -> bool {
        self.letters >= FEWEST_TELLING
    }

    /// Returns the pattern's words, with a mark in place of each hole.
    pub(super) fn shown(&self) -> String {
        let shown = self.parts.iter().map(|part| match part {
            Part::Words(words) => words.as_str(),
            Part::Hole(_) => "{}",
        });
        shown.collect()
    }

    /// Returns the number of letters outside the holes.
    pub(super) fn letters(&self) -> usize {
        self.letters
    }

    /// Returns the length of the words outside the holes, including punctuation.
    pub(super) fn fixed(&self) -> usize {
        self.words().map(str::len).sum()
    }

    /// Returns the longest words between the holes, in the form used for comparison.
    pub(super) fn longest_words(&self) -> &str {
        self.words()
            .max_by_key(|words| words.len())
            .unwrap_or_default()
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Words(words) => Some(words.as_str()),
            Part::Hole(_) => None,
        })
    }

    /// Finds the sentence in a string. A sentence with few letters must be the whole message.
    pub(super) fn find(&self, plain: &Plain) -> Option<Found> {
        self.find_from(plain, 0)
    }

    /// Finds every occurrence of the sentence in a string, up to `most`.
    pub(super) fn find_all(&self, plain: &Plain, most: usize) -> Vec<Found> {
        let next = |found: &Found| self.find_from(plain, plain.folded_from(found.range.end));
        std::iter::successors(self.find(plain), next)
            .take(most)
            .collect()
    }

    /// Finds the sentence in a string, starting at a position in its folded form.
    fn find_from(&self, plain: &Plain, from: usize) -> Option<Found> {
        let first = self.words().next()?;
        let rest = plain.folded.get(from..)?;
        let starts = rest.match_indices(first).map(|(at, _)| from + at);
        let mut all = starts
            .filter(|start| self.may_begin(plain, *start))
            .filter_map(|start| self.at(plain, start))
            .filter(|found| self.is_enough(plain, found));
        let first = all.next()?;
        // A hole may contain words that come before the sentence, so the shortest match is used.
        let shorter = all.take_while(|next| next.range.start < first.range.end);
        let same_end = shorter.filter(|next| next.range.end == first.range.end);
        Some(same_end.last().unwrap_or(first))
    }

    /// Returns `true` if the words of the pattern occur in a string as separate words, regardless
    /// of the text around them.
    pub(super) fn has_phrase(&self, plain: &Plain) -> bool {
        let Some(first) = self.words().next() else {
            return false;
        };
        let starts = plain.folded.match_indices(first).map(|(at, _)| at);
        starts
            .filter_map(|start| self.at(plain, start))
            .any(|found| {
                found.stands_alone(&plain.text)
                    && found.holds_names(&plain.text)
                    && self.is_one_word(plain, &found)
            })
    }

    /// Returns `true` unless the phrase is one word but the match consists of several: `one of`
    /// does not match `oneOf`.
    fn is_one_word(&self, plain: &Plain, found: &Found) -> bool {
        let text = &plain.text[found.range.clone()];
        let text = text.strip_prefix(ARTICLE).unwrap_or(text);
        self.has_spaces || !text.contains(' ')
    }

    /// Returns `true` if the sentence has a hole for the message that it wraps.
    pub(super) fn has_inner(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Hole(hole) if hole.name == INNER_HOLE))
    }

    /// Returns the message in `plain` that the sentence wraps: the text from the `reason` hole
    /// onwards or, if the sentence has no such hole, the text after it. Returns an empty string if
    /// there is no message, and `None` if the text does not contain the sentence.
    pub(super) fn inner<'p>(&self, plain: &'p Plain) -> Option<&'p str> {
        let found = self.find(plain)?;
        let hole = found.holes.iter().find(|(name, _)| name == INNER_HOLE);
        let start = hole.map_or(found.range.end, |(_, range)| range.start);
        Some(plain.text[start..].trim_start_matches(|c: char| !c.is_alphanumeric()))
    }

    /// Returns `true` if a match may be followed by further words. A short sentence that is
    /// followed by other words may mean something else.
    pub(super) fn may_go_on(&self) -> bool {
        self.letters >= FEWEST_TELLING
    }

    /// Returns `true` if the match is too long to be a coincidence, or is the whole message.
    fn is_enough(&self, plain: &Plain, found: &Found) -> bool {
        let fewest = if found.holes.is_empty() {
            FEWEST_LETTERS_ALONE
        } else {
            FEWEST_LETTERS
        };
        let is_long =
            self.letters >= FEWEST_TELLING || self.letters >= fewest && !self.is_name(plain, found);
        let is_whole = found.is_all(&plain.text)
            || self.is_of_path(plain, found)
            || self.is_message(plain, found);
        (is_long || is_whole) && !self.is_identifier(plain, found)
    }

    /// Returns `true` if the match is everything after a mark that introduces a message, as in
    /// `Error: Overloaded`.
    fn is_message(&self, plain: &Plain, found: &Found) -> bool {
        let before = plain.text[..found.range.start].trim_end_matches([' ', '\'']);
        let behind = &plain.text[found.range.end..];
        self.letters >= FEWEST_LETTERS_OF_MESSAGE
            && before.ends_with(INTRODUCING)
            && behind
                .trim_end_matches([' ', '.', '!', ']', ')', '}', '\''])
                .is_empty()
    }

    /// Returns `true` if the words of the sentence occur without spaces, as in the exception name
    /// `InternalServerError`.
    fn is_name(&self, plain: &Plain, found: &Found) -> bool {
        self.has_spaces && !plain.text[found.range.clone()].contains(' ')
    }

    /// Returns `true` if the sentence occurs as one word in lower case, or with underscores for
    /// spaces, as in the type names `invalidrequesterror` and `invalid_request_error`.
    fn is_identifier(&self, plain: &Plain, found: &Found) -> bool {
        let text = &plain.text[found.range.clone()];
        let is_lower = text.bytes().all(|byte| byte.is_ascii_lowercase());
        self.is_name(plain, found) && (is_lower || text.contains('_'))
    }

    /// Returns `true` if a few words follow a path with several steps, as in
    /// `messages.0.content: Field required`.
    fn is_of_path(&self, plain: &Plain, found: &Found) -> bool {
        let begins_with_path =
            matches!(self.parts.first(), Some(Part::Hole(hole)) if hole.name == "path");
        let path = found
            .holes
            .first()
            .map_or("", |(_, range)| &plain.text[range.clone()]);
        begins_with_path
            && path.trim_matches('.').contains(['.', '['])
            && ends_at(plain, found.range.end)
    }

    /// Returns `true` if a sentence may begin at a location. It cannot begin inside a word or path,
    /// nor, without its article, after other words. A status may directly precede it, as in
    /// `400Unsupported value`.
    fn may_begin(&self, plain: &Plain, start: usize) -> bool {
        if self.lacks_article && !begins_message(&plain.text[..plain.places[start]]) {
            return false;
        }
        let begins_with_word = matches!(self.parts.first(), Some(Part::Words(words)) if words.starts_with(char::is_alphanumeric));
        let before = &plain.text[..plain.places[start]];
        // There are no spaces between Chinese and Latin words.
        let is_apart = !before
            .ends_with(|c: char| c.is_alphanumeric() && weight(c) < 2 || matches!(c, '.' | '_'));
        !begins_with_word || is_apart || ends_with_status(before)
    }

    /// Returns `true` if the text before `end` ends with the name of a member of the answer. A hole
    /// at the beginning of a sentence must not match such a name, because `"msg": "Field required"`
    /// contains no path.
    fn is_member(text: &str, end: usize) -> bool {
        let text = text[..end].trim_end_matches([' ', '\'']);
        MEMBERS.contains(&&text[before(text, text.len())..])
    }

    /// Matches the sentence with a string in which its first words begin at `start`.
    fn at(&self, plain: &Plain, start: usize) -> Option<Found> {
        let mut from = plain.places[start];
        let mut at = start;
        let mut holes: Vec<(String, Range<usize>)> = Vec::new();
        let mut open: Option<&str> = None;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Hole(hole) if index == 0 => {
                    let end = from;
                    if Self::is_member(&plain.text, end) {
                        return None;
                    }
                    from = quoted_name(&plain.text, end)
                        .filter(|_| is_name(&hole.name))
                        .unwrap_or_else(|| before(&plain.text, end));
                    if hole.name == "path" && is_end_of_phrase(&plain.text, from..end) {
                        return None;
                    }
                    holes.push((hole.name.clone(), from..end));
                }
                Part::Hole(hole) => {
                    let before = plain.between(start, at).end;
                    if hole.is_apart && is_inside_word(&plain.text, before) {
                        return None;
                    }
                    open = Some(&hole.name);
                }
                Part::Words(words) => {
                    let widest = plain
                        .folded
                        .floor_char_boundary(at + WIDEST_HOLE + words.len());
                    let found = at + plain.folded[at..widest.max(at)].find(words)?;
                    match open.take() {
                        Some(name) => {
                            let range = plain.between(at, found);
                            let value = &plain.text[range.clone()];
                            let is_other = is_name(name) && reaches_on(value)
                                || is_of_body(name)
                                    && (value.trim().is_empty() || value.contains(MEMBER_END));
                            if is_other {
                                return None;
                            }
                            holes.push((name.to_owned(), range));
                        }
                        None if found != at => return None,
                        None => {}
                    }
                    at = found + words.len();
                }
            }
        }
        let mut end = plain.between(start, at).end;
        let is_inside = is_inside_identifier(&plain.text, end) || is_inside_path(&plain.text, end);
        if open.is_none() && is_inside {
            return None;
        }
        if let Some(name) = open {
            let begin = end;
            end = after(&plain.text, begin);
            let value = &plain.text[begin..end];
            let is_named = value.contains(char::is_alphanumeric)
                || value.trim().is_empty() && plain.text[end..].starts_with('\'');
            if is_of_body(name) && (!is_named || value.contains(MEMBER_END)) {
                return None;
            }
            holes.push((name.to_owned(), begin..end));
        }
        let before = plain.text[..from].trim_end_matches('\'');
        let start = before.strip_suffix(ARTICLE).map_or(from, str::len);
        Some(Found {
            range: start..end,
            holes,
        })
    }
}

/// Returns `true` if this text may stand before a message: if it ends with the message's article, a
/// quote, or a mark that introduces a message.
fn begins_message(before: &str) -> bool {
    let unquoted = before.trim_end_matches('\'');
    let words = unquoted.trim_end();
    unquoted.len() < before.len()
        || unquoted.ends_with(ARTICLE)
        || words.is_empty()
        || words.ends_with(INTRODUCING)
}

/// Returns the weight of a character when letters are counted. A Chinese character weighs as much
/// as several Latin ones.
fn weight(c: char) -> usize {
    match c {
        '\u{3400}'..='\u{9fff}' => 3,
        c if c.is_alphabetic() => 1,
        _ => 0,
    }
}

fn push_words(parts: &mut Vec<Part>, words: &mut String) {
    let words = std::mem::take(words);
    if !words.is_empty() {
        let words: String = plain(&words).chars().filter(|c| is_compared(*c)).collect();
        if !words.is_empty() {
            parts.push(Part::Words(words.to_ascii_lowercase()));
        }
    }
}

#[cfg(test)]
mod tests;
