//! Sentences with holes, and where they are in a text.
//!
//! Texts are compared without white space, quotes and escapes, and without regard to the case of
//! ASCII letters. So a sentence is found in JSON, in a Python dictionary, and in what a terminal
//! coloured, or wrapped in the middle of a word.

use std::ops::Range;

/// A text in its plain form, and what of it is compared.
#[derive(Debug)]
pub(super) struct Plain {
    /// The text with one kind of quotes, and one space for each run of white space.
    pub(super) text: String,
    /// The text that is compared: without spaces and quotes, in lower case.
    folded: String,
    /// For each byte of `folded` where it is in `text`, and the end.
    places: Vec<usize>,
}

impl Plain {
    pub(super) fn of(text: &str) -> Plain {
        let text = plain(text);
        let (mut folded, mut places) = (
            String::with_capacity(text.len()),
            Vec::with_capacity(text.len() + 1),
        );
        for (at, c) in text.char_indices().filter(|(_, c)| is_compared(*c)) {
            folded.push(c.to_ascii_lowercase());
            places.extend(at..at + c.len_utf8());
        }
        places.push(text.len());
        Plain {
            text,
            folded,
            places,
        }
    }

    /// Returns what is compared: without spaces and quotes, in lower case.
    pub(super) fn folded(&self) -> &str {
        &self.folded
    }

    /// Returns what of the text is between two places of what is compared.
    fn between(&self, start: usize, end: usize) -> Range<usize> {
        let start = self.places[start];
        // After the last character, not in front of the next one: quotes and spaces may be
        // between.
        let end = if end == 0 {
            start
        } else {
            self.places[end - 1] + 1
        };
        start.min(end)..end.max(start)
    }
}

fn is_compared(c: char) -> bool {
    c != ' ' && c != '\''
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (c, length) = written(rest).unwrap_or((first, first.len_utf8()));
        rest = &rest[length..];
        let c = match c {
            '"' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => '\'',
            '\u{2010}'..='\u{2015}' => '-',
            // What terminals draw beside a text.
            '\u{2500}'..='\u{259f}' => ' ',
            // Characters of no width, and marks for what was left out.
            '\u{200b}'..='\u{200d}' | '\u{feff}' | NOTHING => continue,
            // Chinese texts have both forms of most marks.
            '\u{ff01}'..='\u{ff5e}' => narrow(c),
            '\u{3002}' => '.',
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if c != ' ' || !plain.ends_with(' ') {
            plain.push(c);
        }
    }
    plain
}

/// Stands for what is written and means nothing: a backslash, a colour.
const NOTHING: char = '\0';

/// Returns the character of a wide one: a comma for the Chinese comma.
fn narrow(c: char) -> char {
    char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
}

/// Returns the character that an escape at the beginning of a text stands for, and how many bytes
/// the escape has.
fn written(text: &str) -> Option<(char, usize)> {
    match *text.as_bytes().first()? {
        b'\\' => match *text.as_bytes().get(1)? {
            b'n' | b't' | b'r' => Some((' ', 2)),
            b'u' => unicode(text).or(Some(('\\', 1))),
            // A backslash in front of a mark, as JSON and Markdown have them.
            c if c.is_ascii_punctuation() => Some((NOTHING, 1)),
            _ => None,
        },
        b'\x1b' => colour(&text[1..]).map(|length| (NOTHING, length + 1)),
        b'&' => ENTITIES
            .iter()
            .find(|(name, _)| text[1..].starts_with(name))
            .map(|(name, c)| (*c, name.len() + 1)),
        _ => None,
    }
}

/// Returns the character of `\u0027`; nothing for a colour that is written so.
fn unicode(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = 6;
    let c = char::from_u32(u32::from_str_radix(text.get(2..LENGTH)?, 16).ok()?)?;
    if c == '\x1b' {
        let length = colour(&text[LENGTH..]).unwrap_or_default();
        return Some((NOTHING, LENGTH + length));
    }
    Some((c, LENGTH))
}

/// Returns how many bytes of a text belong to the sequence of a terminal that has begun: `[31m`.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | '?'))?;
    inner[end..]
        .starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(end + 2)
}

/// What HTML writes for marks, behind the `&`.
const ENTITIES: [(&str, char); 7] = [
    ("quot;", '"'),
    ("apos;", '\''),
    ("#39;", '\''),
    ("#x27;", '\''),
    ("lt;", '<'),
    ("gt;", '>'),
    ("amp;", '&'),
];

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Words that are always there, as they are compared.
    Words(String),
    /// A part that varies, with its name.
    Hole(String),
}

/// A sentence with holes.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    letters: usize,
    /// `true` if spaces stand between its words.
    has_spaces: bool,
}

/// The most bytes that a hole takes: a list of ids, but no other message.
const WIDEST_HOLE: usize = 1_000;

/// Sentences with fewer letters than this say too little to be looked for in the middle of a text,
/// though a hole of theirs names something there.
const FEWEST_LETTERS: usize = 18;

/// The same for sentences without a hole.
const FEWEST_LETTERS_ALONE: usize = 20;

/// The members of answers that hold a sentence.
const MEMBERS: [&str; 4] = ["msg", "message", "detail", "error"];

/// The classes of errors that stand in front of sentences: some servers and clients leave them out,
/// or write others.
const CLASSES: [&str; 10] = [
    "<400> InternalError.Algo.InvalidParameter: ",
    "InternalError.Algo.InvalidParameter: ",
    "Failed to deserialize the JSON body into the target type: ",
    "Invalid JSON payload received. ",
    "Invalid request content: ",
    "Invalid request: ",
    "Malformed input request: ",
    "Jinja Exception: ",
    "Value error, ",
    "The model returned the following errors: ",
];

/// Returns the parts of a sentence that suffice to recognise it: the sentence without the class of
/// errors or the path in front, and both of them without the advice behind the first full stop.
pub(super) fn shorter(sentence: &str) -> Vec<&str> {
    let bare = CLASSES
        .iter()
        .chain(["{path}: "].iter())
        .find_map(|class| sentence.strip_prefix(class));
    let mut shorter: Vec<&str> = bare.into_iter().collect();
    for whole in bare.into_iter().chain([sentence]) {
        shorter.extend(without_advice(whole));
    }
    shorter
}

/// Returns a text up to its first full stop, if more follows.
fn without_advice(text: &str) -> Option<&str> {
    let end = text.find(". ")? + 1;
    Some(&text[..end])
}

/// A part of a sentence with fewer letters than this may be part of another one.
const FEWEST_TELLING: usize = 24;

impl Pattern {
    /// Reads a sentence: `{name}` is a hole, `{{` and `}}` are braces.
    pub(super) fn parse(sentence: &str) -> Pattern {
        let mut parts = Vec::new();
        let mut words = String::new();
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
                    push_words(&mut parts, &mut words);
                    parts.push(Part::Hole(
                        chars.by_ref().take_while(|c| *c != '}').collect(),
                    ));
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
        }
    }

    /// Returns `true` if its words are enough to look for in a text when the sentence has more.
    pub(super) fn is_telling(&self) -> bool {
        self.letters >= FEWEST_TELLING
    }

    /// Returns its words, with a mark for each hole.
    pub(super) fn shown(&self) -> String {
        let shown = self.parts.iter().map(|part| match part {
            Part::Words(words) => words.as_str(),
            Part::Hole(_) => "{}",
        });
        shown.collect()
    }

    /// Returns how many letters it has outside its holes.
    pub(super) fn letters(&self) -> usize {
        self.letters
    }

    /// Returns the longest words between its holes, as they are compared.
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

    /// Finds where the sentence is in a text; one of few letters must be all that is said.
    pub(super) fn find(&self, plain: &Plain) -> Option<Found> {
        let first = self.words().next()?;
        let starts = plain.folded.match_indices(first).map(|(at, _)| at);
        starts
            .filter(|start| self.may_begin(plain, *start))
            .filter_map(|start| self.at(plain, start))
            .find(|found| self.is_enough(plain, found))
    }

    /// Returns `true` if what was found is too long to be a coincidence, or is all that was said.
    fn is_enough(&self, plain: &Plain, found: &Found) -> bool {
        let fewest = if found.holes.is_empty() {
            FEWEST_LETTERS_ALONE
        } else {
            FEWEST_LETTERS
        };
        let is_long =
            self.letters >= FEWEST_TELLING || self.letters >= fewest && !self.is_name(plain, found);
        is_long || found.is_all(&plain.text) || self.is_of_path(plain, found)
    }

    /// Returns `true` if the words of the sentence stand in the text without spaces, as in the name
    /// of an exception: `InternalServerError`.
    fn is_name(&self, plain: &Plain, found: &Found) -> bool {
        self.has_spaces && !plain.text[found.range.clone()].contains(' ')
    }

    /// Returns `true` for a few words after a path of several steps: `messages.0.content: Field
    /// required`.
    fn is_of_path(&self, plain: &Plain, found: &Found) -> bool {
        let begins_with_path =
            matches!(self.parts.first(), Some(Part::Hole(name)) if name == "path");
        let path = found
            .holes
            .first()
            .map_or("", |(_, range)| &plain.text[range.clone()]);
        begins_with_path
            && path.trim_matches('.').contains(['.', '['])
            && ends_at(plain, found.range.end)
    }

    /// Returns `true` if a sentence may begin at a place: not in the middle of a word or a path.
    fn may_begin(&self, plain: &Plain, start: usize) -> bool {
        let begins_with_word = matches!(self.parts.first(), Some(Part::Words(words)) if words.starts_with(char::is_alphanumeric));
        let before = plain.text[..plain.places[start]].chars().next_back();
        !begins_with_word || before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_'))
    }

    /// Returns `true` if the name of a member of the answer stands before a place, where a hole
    /// begins the sentence: `"msg": "Field required"` names no path.
    fn is_member(text: &str, end: usize) -> bool {
        let text = text[..end].trim_end_matches([' ', '\'']);
        MEMBERS.contains(&&text[before(text, text.len())..])
    }

    /// Holds the sentence against a text in which its first words begin at `start`.
    fn at(&self, plain: &Plain, start: usize) -> Option<Found> {
        let mut from = plain.places[start];
        let mut at = start;
        let mut holes: Vec<(String, Range<usize>)> = Vec::new();
        let mut open: Option<&str> = None;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Hole(name) if index == 0 => {
                    let end = from;
                    if Self::is_member(&plain.text, end) {
                        return None;
                    }
                    from = before(&plain.text, end);
                    holes.push((name.clone(), from..end));
                }
                Part::Hole(name) => open = Some(name),
                Part::Words(words) => {
                    let widest = plain
                        .folded
                        .floor_char_boundary(at + WIDEST_HOLE + words.len());
                    let found = at + plain.folded[at..widest.max(at)].find(words)?;
                    match open.take() {
                        Some(name) => holes.push((name.to_owned(), plain.between(at, found))),
                        None if found != at => return None,
                        None => {}
                    }
                    at = found + words.len();
                }
            }
        }
        let mut end = plain.between(start, at).end;
        if let Some(name) = open {
            let begin = end;
            end = after(&plain.text, begin);
            holes.push((name.to_owned(), begin..end));
        }
        Some(Found {
            range: from..end,
            holes,
        })
    }

    /// Returns where a text has the beginning of the sentence and is cut there: it ends, or dots
    /// stand for the rest. What is left must be telling by itself. A text that has not ended is cut
    /// only where dots are.
    pub(super) fn find_cut(&self, plain: &Plain, is_ended: bool) -> Option<Range<usize>> {
        let first = self.words().next()?;
        let beginning = &first[..first.floor_char_boundary(BEGINNING.min(first.len()))];
        let starts = plain.folded.match_indices(beginning).map(|(at, _)| at);
        starts
            .filter(|start| self.may_begin(plain, *start))
            .find_map(|start| self.cut_at(plain, start, is_ended))
    }

    /// Holds the beginning of the sentence against a text that has it at `start`.
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
            return (is_cut(&plain.folded[end..], is_ended) && letters >= FEWEST_CUT)
                .then(|| plain.between(start, end));
        }
        None
    }

    /// Returns how much of the sentence's words a text has in their order, in hundredths; 0 for
    /// sentences of few words.
    pub(super) fn nearness(&self, plain: &Plain) -> usize {
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

/// The first bytes of a sentence that is cut by which it is looked for.
const BEGINNING: usize = 16;

/// The fewest letters of a sentence that is cut.
const FEWEST_CUT: usize = 32;

/// Returns where a text that is cut has the beginning of some words at its end, and how much of
/// them.
fn beginning_at_cut(text: &str, words: &str, is_ended: bool) -> Option<(usize, usize)> {
    let lengths = words.char_indices().map(|(at, _)| at).rev();
    lengths
        .take_while(|length| *length >= FEWEST_BEHIND_HOLE)
        .find_map(|length| {
            let offset = text.find(&words[..length])?;
            is_cut(&text[offset + length..], is_ended).then_some((offset, length))
        })
}

/// The fewest bytes behind a hole by which a sentence that is cut goes on.
const FEWEST_BEHIND_HOLE: usize = 4;

/// Returns `true` if what follows says that a text was cut: nothing, or dots.
fn is_cut(rest: &str, is_ended: bool) -> bool {
    is_ended && rest.is_empty() || rest.starts_with("...") || rest.starts_with('\u{2026}')
}

/// The fewest bytes of a sentence that another one may be near to.
const FEWEST_NEAR: usize = 40;

/// Cuts words into pieces that are looked for one by one.
fn pieces(words: &str) -> impl Iterator<Item = &str> {
    const LENGTH: usize = 12;
    let mut rest = words;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LENGTH.min(rest.len())));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns how many letters a character counts for: a Chinese one says as much as several Latin ones.
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

/// Returns where the word that ends at `end` begins.
fn before(text: &str, end: usize) -> usize {
    let start = text.ceil_char_boundary(end.saturating_sub(WIDEST_HOLE));
    start
        + text[start..end]
            .trim_end()
            .rfind([' ', '\'', '{', '('])
            .map_or(0, |at| at + 1)
}

/// Returns where what begins at `start` ends: at a quote, or at the end of a sentence.
fn after(text: &str, start: usize) -> usize {
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

/// Returns `true` if no further word of the same sentence follows a place.
pub(super) fn ends_at(plain: &Plain, end: usize) -> bool {
    let rest = plain.text[end..].trim_start_matches([')', ']']);
    rest.is_empty()
        || rest.starts_with(['.', ',', ';', ':', '\'', '(', '<', '}', '!'])
        || rest.starts_with(" (")
}

/// Returns `true` if nothing of the same sentence follows a place: no further word, and no reason
/// behind a colon.
pub(super) fn is_over(plain: &Plain, end: usize) -> bool {
    ends_at(plain, end) && !plain.text[end..].trim_start_matches('\'').starts_with(':')
}

/// Where a sentence stands in a text.
#[derive(Debug)]
pub(super) struct Found {
    /// The bytes of the plain text.
    pub(super) range: Range<usize>,
    holes: Vec<(String, Range<usize>)>,
}

impl Found {
    /// Returns `true` if the sentence is all of the text, all that is between quotes, or all that
    /// stands behind a status: `Error: 404 Resource not found`.
    fn is_all(&self, text: &str) -> bool {
        let before = text[..self.range.start].trim_end();
        let after = text[self.range.end..].trim_start_matches('.').trim_start();
        (before.is_empty() || before.ends_with('\'') || ends_with_status(before))
            && (after.is_empty() || after.starts_with('\''))
    }

    /// Returns what is in each hole.
    pub(super) fn named(&self, plain: &Plain) -> Vec<(String, String)> {
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

    /// Returns the path that the sentence names: what is in such a hole, with the words that touch
    /// it.
    pub(super) fn path(&self, plain: &Plain) -> Option<String> {
        let (_, range) = self
            .holes
            .iter()
            .find(|(name, _)| name == "path" || name == "index")?;
        let start = plain.text[..range.start]
            .rfind(|c| !is_of_path(c))
            .map_or(0, |at| at + 1);
        let rest = &plain.text[range.end..];
        let end = range.end + rest.find(|c| !is_of_path(c)).unwrap_or(rest.len());
        let path = plain.text.get(start..end)?.trim_matches(['.', '/', '-']);
        (!path.is_empty()).then(|| path.to_owned())
    }
}

/// Returns `true` if a text ends with the status of a refusal, as SDKs write it in front of what the
/// provider says: `BadRequestError: 400`, `HTTP 400 -`.
fn ends_with_status(text: &str) -> bool {
    let text = text.trim_end_matches([' ', ':', '-']);
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let status = &text[before.len()..];
    status.len() == 3
        && status.starts_with(['4', '5'])
        && !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'))
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '-' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(sentence: &str, text: &str) -> Option<Vec<(String, String)>> {
        let plain = Plain::of(text);
        Some(Pattern::parse(sentence).find(&plain)?.named(&plain))
    }

    #[test]
    fn a_sentence_is_found_in_whatever_wraps_it() {
        let sentence = "Unsupported parameter: '{field}' is not supported with this model.";
        let expected = Some(vec![("field".to_owned(), "max_tokens".to_owned())]);
        for text in [
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            r#"{"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
            r#"Error code: 400 - {'error': {'message': "Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
            r#"{"raw": "{\"message\": \"Unsupported parameter: \\\"max_tokens\\\" is not supported\n with this model\"}"}"#,
        ] {
            assert_eq!(holes(sentence, text), expected, "{text}");
        }
        assert_eq!(holes(sentence, "Unsupported parameter: nothing"), None);
    }

    #[test]
    fn holes_at_the_ends_and_braces() {
        let found = |sentence, text| holes(sentence, text).map(|mut holes| holes.remove(0).1);
        let text = "got: registry/llama3 does not support tools at all. Try another";
        assert_eq!(
            found("{model} does not support tools at all", text).as_deref(),
            Some("registry/llama3")
        );
        assert_eq!(
            found(
                "this model is not known: {model}",
                "this model is not known: m-1. Bye"
            )
            .as_deref(),
            Some("m-1")
        );
        assert_eq!(
            found(
                "the value {{{name}}} is unknown here",
                "the value {x} is unknown here"
            )
            .as_deref(),
            Some("x")
        );
    }

    #[test]
    fn few_letters_must_be_all_that_is_said() {
        assert!(holes("Overloaded", r#"{"message": "Overloaded"}"#).is_some());
        assert!(holes("Overloaded", "Overloaded").is_some());
        assert!(holes("Overloaded", "the server was overloaded by a client").is_none());
    }

    #[test]
    fn few_letters_behind_a_status_are_all_that_is_said() {
        let sentence = "Resource not found";
        for text in [
            "404 Resource not found",
            "NotFoundError: 404 Resource not found.",
            "request failed: HTTP 404 - Resource not found",
            "Error: 404: Resource not found",
        ] {
            assert!(holes(sentence, text).is_some(), "{text}");
        }
        for text in [
            "in row 404. Resource not found",
            "line 1404 Resource not found",
            "took 1.404 Resource not found",
            "after 200 Resource not found",
            "404 Resource not found in the cache",
        ] {
            assert!(holes(sentence, text).is_none(), "{text}");
        }
    }

    #[test]
    fn wraps_gutters_and_quotes_make_no_difference() {
        let sentence = "messages.{path}: thinking blocks must not be changed by anybody";
        for text in [
            "messages.1:thinking blocks must not be changed by anybody",
            "\u{258f} messages.1: thinking blo\n\u{258f} cks must not be changed by anybody",
            "messages.1: `thinking` blocks must not be changed by anybody",
        ] {
            assert_eq!(
                holes(sentence, text),
                Some(vec![("path".to_owned(), "1".to_owned())]),
                "{text}"
            );
        }
    }

    #[test]
    fn no_sentence_begins_in_the_middle_of_a_path() {
        let sentence = "cache_control: Extra inputs are not permitted";
        assert!(holes(sentence, "cache_control: Extra inputs are not permitted").is_some());
        assert!(
            holes(
                sentence,
                "messages.1.content.0.cache_control: Extra inputs are not permitted"
            )
            .is_none()
        );
    }

    #[test]
    fn the_name_of_a_member_fills_no_hole() {
        let sentence = "{path}: Extra inputs are not permitted";
        let text = r#"{"loc": ["body", "store"], "msg": "Extra inputs are not permitted"}"#;
        assert!(holes(sentence, text).is_none());
        assert!(holes(sentence, "store: Extra inputs are not permitted").is_some());
    }

    #[test]
    fn the_name_of_an_exception_is_no_sentence() {
        let sentence = "Cannot read the body";
        assert!(holes(sentence, "openai.CannotReadTheBody: 400").is_none());
        assert!(
            holes(
                "Cannot read your whole body",
                "a. Cannot read your whole body. b"
            )
            .is_some()
        );
    }

    #[test]
    fn a_chinese_sentence_counts_by_its_characters() {
        let sentence = "{field} 参数非法。请检查文档。";
        let text = "400: messages 参数非法。请检查文档。 (1214)";
        let expected = vec![("field".to_owned(), "messages".to_owned())];
        assert_eq!(holes(sentence, text), Some(expected));
    }

    #[test]
    fn a_shorter_form_ends_where_the_sentence_does() {
        let end = |text: &str| {
            let plain = Plain::of(text);
            let found = Pattern::parse("The schema of the tool is not valid").find(&plain);
            found.is_some_and(|found| is_over(&plain, found.range.end))
        };
        assert!(end("The schema of the tool is not valid. Mend it"));
        assert!(end(
            "'message': 'The schema of the tool is not valid', 'code': 1"
        ));
        assert!(!end(
            "The schema of the tool is not valid: 'type' is missing"
        ));
    }

    #[test]
    fn escapes_of_every_kind_are_read() {
        let sentence =
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
        for text in [
            r"Messages with role \u0027tool\u0027 must be a response to a preceding message with \u0027tool_calls\u0027",
            "\x1b[31mMessages with role 'tool'\x1b[0m must be a \x1b[1;33mresponse\x1b[0m to a preceding message with 'tool_calls'",
            r"\u001b[31mMessages with role 'tool' must be a response\u001b[0m to a preceding message with 'tool_calls'",
            "Messages with role &#39;tool&#39; must be a response to a preceding message with &quot;tool_calls&quot;",
            r"Messages with role \`tool\` must be a response to a preceding message with tool\_calls",
            "Messages with role 'tool' must be a re\u{200b}sponse to a preceding message with 'tool_calls'",
        ] {
            assert!(
                Pattern::parse(sentence).find(&Plain::of(text)).is_some(),
                "{text}"
            );
        }
        let sentence = "余额不足或无可用资源包,请充值。";
        assert!(
            Pattern::parse(sentence)
                .find(&Plain::of("余额不足或无可用资源包，请充值"))
                .is_some()
        );
        assert_eq!(
            Plain::of(r"C:\users & \u12 \x &lt").text,
            r"C:\users & \u12 \x &lt"
        );
    }

    #[test]
    fn a_cut_sentence_is_found_if_what_is_left_tells() {
        let pattern = Pattern::parse(
            "Unsupported value: '{field}' does not support {value} with this model. Only the default (1) value is supported.",
        );
        let cut = |text: &str| {
            let plain = Plain::of(text);
            pattern
                .find_cut(&plain, true)
                .map(|range| plain.text[range].to_owned())
        };
        assert!(
            cut("400 Unsupported value: 'temperature' does not support 0.3 with this mo").is_some()
        );
        assert!(
            cut("Unsupported value: 'temperature' does not support 0.3 with this… (more)")
                .is_some()
        );
        assert!(
            cut("Unsupported value: 'temperature' does not support 0.3 with this...").is_some()
        );
        // Another sentence that begins alike, and one that is cut too early.
        assert!(
            cut("Unsupported value: 'temperature' does not support 0.3 with this tier").is_none()
        );
        assert!(cut("Unsupported value: 'temp").is_none());
    }

    #[test]
    fn a_cut_sentence_is_near() {
        let pattern = Pattern::parse(
            "Expected a thinking block, but found {kind}. When thinking is on, the last message must start with one",
        );
        let near = |text| pattern.nearness(&Plain::of(text));
        assert!(
            near("Expected a thinking block, but found text. When thinking is on, the last") > 60
        );
        assert!(near("The server has a thinking cap") < 30);
    }

    #[test]
    fn the_path_is_told_with_the_words_that_touch_it() {
        let path = |sentence, text| {
            let plain = Plain::of(text);
            Pattern::parse(sentence)
                .find(&plain)
                .and_then(|found| found.path(&plain))
        };
        let text = "messages.3.content.0: tool_use ids were found";
        assert_eq!(
            path("messages.{path}: tool_use ids were found", text).as_deref(),
            Some("messages.3.content.0")
        );
        let text = "Invalid value at 'input[2].content[0]' of this request";
        assert_eq!(
            path("Invalid value at '{path}' of this request", text).as_deref(),
            Some("input[2].content[0]")
        );
    }
}
