//! Sentences with holes, and the search for them in a text.
//!
//! Texts are compared without white space, quotes and escapes, and ASCII letters without case. A
//! sentence is therefore found in JSON, in a Python dictionary, and in terminal output with colours
//! or with line breaks inside words.

use std::ops::Range;

/// A text in its plain form, and the form used for comparison.
#[derive(Debug)]
pub(super) struct Plain {
    /// The text with one kind of quote, and one space for each run of white space.
    pub(super) text: String,
    /// The form used for comparison: without spaces and quotes, in lower case.
    folded: String,
    /// The position in `text` of each byte of `folded`, followed by the end.
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

    /// Returns the form used for comparison: without spaces and quotes, in lower case.
    pub(super) fn folded(&self) -> &str {
        &self.folded
    }

    /// Returns the range of the text that corresponds to a range of `folded`.
    fn between(&self, start: usize, end: usize) -> Range<usize> {
        let start = self.places[start];
        // The end is directly after the last character, because quotes and spaces may come before
        // the next one.
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
        if first == '\n' {
            rest = without_line_mark(rest);
        }
        let c = match c {
            '"' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => '\'',
            '\u{2010}'..='\u{2015}' => '-',
            // Box-drawing characters that terminals print around a text.
            '\u{2500}'..='\u{259f}' => ' ',
            // Zero-width characters, and marks of omitted characters.
            '\u{200b}'..='\u{200d}' | '\u{feff}' | NOTHING => continue,
            // Chinese texts use most punctuation marks in both widths.
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

/// Removes the mark at the beginning of a quoted line, a diff line or a comment.
fn without_line_mark(line: &str) -> &str {
    let inner = line.trim_start_matches(' ');
    LINE_MARKS
        .iter()
        .find_map(|mark| inner.strip_prefix(mark))
        .unwrap_or(line)
}

const LINE_MARKS: [&str; 7] = ["- ", "+ ", "> ", "# ", "// ", "* ", "| "];

/// Stands for a character without meaning: a backslash or a colour.
const NOTHING: char = '\0';

/// Returns the narrow form of a full-width character, for example of the Chinese comma.
fn narrow(c: char) -> char {
    char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
}

/// Decodes an escape at the beginning of a text: the character, and the length of the escape in
/// bytes.
fn written(text: &str) -> Option<(char, usize)> {
    match *text.as_bytes().first()? {
        b'\\' => match *text.as_bytes().get(1)? {
            b'n' | b't' | b'r' => Some((' ', 2)),
            b'u' => unicode(text).or(Some(('\\', 1))),
            // A backslash before a mark, as in JSON and Markdown.
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

/// Decodes `\u0027`. The escape character of a colour sequence becomes [`NOTHING`].
fn unicode(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = 6;
    let c = char::from_u32(u32::from_str_radix(text.get(2..LENGTH)?, 16).ok()?)?;
    if c == '\x1b' {
        let length = colour(&text[LENGTH..]).unwrap_or_default();
        return Some((NOTHING, LENGTH + length));
    }
    Some((c, LENGTH))
}

/// Returns the length in bytes of a terminal sequence after its escape character: `[31m`.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | '?'))?;
    inner[end..]
        .starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(end + 2)
}

/// HTML entities, without the `&`.
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
    /// Fixed words, in the form used for comparison.
    Words(String),
    /// A variable part.
    Hole(Hole),
}

/// A variable part of a sentence.
#[derive(Debug, PartialEq, Eq)]
struct Hole {
    name: String,
    /// `true` if a space or a mark separates the hole from the words before it, so that it does not
    /// begin in the middle of a word: `Model {model}` does not match `models/gemini-3-pro`.
    is_apart: bool,
}

/// A sentence with holes.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    letters: usize,
    /// `true` if there are spaces between the words of the sentence.
    has_spaces: bool,
}

/// The maximum length of a hole in bytes: enough for a list of ids, but not for another message.
const WIDEST_HOLE: usize = 1_000;

/// The minimum number of letters with which a sentence with a hole is recognised inside a text.
const FEWEST_LETTERS: usize = 18;

/// The minimum number of letters with which a sentence without a hole is recognised inside a text.
const FEWEST_LETTERS_ALONE: usize = 20;

/// The minimum number of letters with which a sentence is recognised as the whole rest of a line.
const FEWEST_LETTERS_OF_MESSAGE: usize = 10;

/// Marks after which a message begins in the output of programs.
const INTRODUCING: [char; 10] = [
    ':', '=', ']', '>', '|', '-', '(', '\u{23bf}', '\u{274c}', '\u{26a0}',
];

/// The end of a member's name in JSON.
const MEMBER_END: &str = "':";

/// Marks between the clauses of a message.
const CLAUSE_ENDS: [&str; 3] = [": ", "; ", ". "];

/// The name of holes that contain another message.
const INNER_HOLE: &str = "reason";

/// Returns `true` if a hole stands for a single name. Such a hole cannot contain the end of one
/// message and the beginning of the next.
fn is_name(hole: &str) -> bool {
    matches!(
        hole,
        "name" | "provider" | "model" | "id" | "tool" | "field" | "role" | "group"
    )
}

/// Returns `true` if a hole names a part of a body.
fn is_of_body(hole: &str) -> bool {
    matches!(hole, "path" | "field" | "role" | "tool")
}

/// Returns `true` if a text reaches beyond a name into another message: it contains the name of a
/// member, or the end of a clause, outside brackets.
fn reaches_on(text: &str) -> bool {
    let text = text.trim();
    let bare = text.split(['(', '[']).next().unwrap_or_default();
    text.contains(MEMBER_END) || CLAUSE_ENDS.iter().any(|end| bare.contains(end))
}

/// Members of answers that contain a sentence.
const MEMBERS: [&str; 4] = ["msg", "message", "detail", "error"];

/// Error classes before sentences, which some servers and clients omit or replace.
const CLASSES: [&str; 11] = [
    "<400> InternalError.Algo.InvalidParameter: ",
    "InternalError.Algo.InvalidParameter: ",
    "Failed to deserialize the JSON body into the target type: ",
    "Invalid JSON payload received. ",
    "Invalid request content: ",
    "Invalid request: ",
    "Malformed input request: ",
    "Jinja Exception: ",
    "Value error, ",
    "messages: ",
    "The model returned the following errors: ",
];

/// The beginning of a sentence that starts with a hole for a reason, so that only its end is fixed.
const BARE_REASON: &str = "{reason}";

/// Returns shorter forms by which a sentence can also be recognised: without the error class or
/// path before it, and without the advice after each full stop.
pub(super) fn shorter(sentence: &str) -> Vec<&str> {
    let bare = CLASSES
        .iter()
        .chain(["{path}: "].iter())
        .find_map(|class| sentence.strip_prefix(class))
        .filter(|bare| !bare.starts_with(BARE_REASON));
    let mut shorter: Vec<&str> = bare.into_iter().collect();
    for whole in bare.into_iter().chain([sentence]) {
        let parts = whole.match_indices(". ").map(|(at, _)| &whole[..=at]);
        // A class begins another message.
        shorter
            .extend(parts.filter(|part| !CLASSES.iter().any(|it| part.ends_with(it.trim_end()))));
    }
    shorter
}

/// The minimum number of letters of a part of a sentence that cannot also be part of another
/// sentence.
const FEWEST_TELLING: usize = 24;

/// Words that say of a refusal only that it is one.
const GENERAL: [&str; 22] = [
    "a",
    "an",
    "arguments",
    "bad",
    "body",
    "error",
    "failed",
    "input",
    "invalid",
    "is",
    "not",
    "of",
    "or",
    "parameter",
    "parameters",
    "provided",
    "provider",
    "request",
    "server",
    "the",
    "unexpected",
    "your",
];

/// Returns `true` if a sentence has no word that says what is wrong. Many servers use such
/// sentences.
pub(super) fn is_general(sentence: &str) -> bool {
    let mut words = sentence
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty());
    words.all(|word| GENERAL.contains(&word.to_lowercase().as_str()))
}

impl Pattern {
    /// Parses a sentence: `{name}` is a hole, `{{` and `}}` are braces.
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
        }
    }

    /// Returns `true` if the pattern has enough words to be recognised when the rest of the
    /// sentence is missing from the text.
    pub(super) fn is_telling(&self) -> bool {
        self.letters >= FEWEST_TELLING
    }

    /// Returns the words of the pattern, with a mark in place of each hole.
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

    /// Returns the length of the words outside its holes, with their marks.
    pub(super) fn fixed(&self) -> usize {
        self.words().map(str::len).sum()
    }

    /// Returns the longest words between its holes, in the form used for comparison.
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

    /// Finds the sentence in a text. A sentence with few letters must be the whole message.
    pub(super) fn find(&self, plain: &Plain) -> Option<Found> {
        let first = self.words().next()?;
        let starts = plain.folded.match_indices(first).map(|(at, _)| at);
        let mut all = starts
            .filter(|start| self.may_begin(plain, *start))
            .filter_map(|start| self.at(plain, start))
            .filter(|found| self.is_enough(plain, found));
        let first = all.next()?;
        // A hole may have taken in words that come before the sentence: the shortest match counts.
        let shorter = all.take_while(|next| next.range.start < first.range.end);
        let same_end = shorter.filter(|next| next.range.end == first.range.end);
        Some(same_end.last().unwrap_or(first))
    }

    /// Returns `true` if the words of the pattern occur in a text as separate words, whatever is
    /// around them.
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
        self.has_spaces || !plain.text[found.range.clone()].contains(' ')
    }

    /// Returns `true` if the sentence has a hole for the message that it wraps.
    pub(super) fn has_inner(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Hole(hole) if hole.name == INNER_HOLE))
    }

    /// Returns the message that the sentence wraps in a text: the text that begins at the hole for
    /// a reason, or else the text after the sentence. Empty if there is no message; `None` if the
    /// text does not contain the sentence.
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
        is_long
            || found.is_all(&plain.text)
            || self.is_of_path(plain, found)
            || self.is_message(plain, found)
    }

    /// Returns `true` if the match is everything that follows a mark which introduces a message:
    /// `Error: Overloaded`.
    fn is_message(&self, plain: &Plain, found: &Found) -> bool {
        let before = plain.text[..found.range.start].trim_end_matches([' ', '\'']);
        let behind = &plain.text[found.range.end..];
        self.letters >= FEWEST_LETTERS_OF_MESSAGE
            && before.ends_with(INTRODUCING)
            && behind
                .trim_end_matches([' ', '.', '!', ']', ')', '\''])
                .is_empty()
    }

    /// Returns `true` if the words of the sentence occur without spaces, as in the name of an
    /// exception: `InternalServerError`.
    fn is_name(&self, plain: &Plain, found: &Found) -> bool {
        self.has_spaces && !plain.text[found.range.clone()].contains(' ')
    }

    /// Returns `true` if a few words follow a path of several steps:
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

    /// Returns `true` if a sentence may begin at a place. It cannot begin inside a word or path.
    fn may_begin(&self, plain: &Plain, start: usize) -> bool {
        let begins_with_word = matches!(self.parts.first(), Some(Part::Words(words)) if words.starts_with(char::is_alphanumeric));
        let before = plain.text[..plain.places[start]].chars().next_back();
        !begins_with_word || before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_'))
    }

    /// Returns `true` if the text before `end` ends with the name of a member of the answer. A hole
    /// at the beginning of a sentence must not match such a name: `"msg": "Field required"`
    /// contains no path.
    fn is_member(text: &str, end: usize) -> bool {
        let text = text[..end].trim_end_matches([' ', '\'']);
        MEMBERS.contains(&&text[before(text, text.len())..])
    }

    /// Matches the sentence with a text in which its first words begin at `start`.
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
                    from = before(&plain.text, end);
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
        if open.is_none() && is_inside_identifier(&plain.text, end) {
            return None;
        }
        if let Some(name) = open {
            let begin = end;
            end = after(&plain.text, begin);
            let is_nothing = plain.text[begin..end].trim().is_empty();
            if is_of_body(name) && is_nothing && !plain.text[end..].starts_with('\'') {
                return None;
            }
            holes.push((name.to_owned(), begin..end));
        }
        Some(Found {
            range: from..end,
            holes,
        })
    }

    /// Finds the beginning of the sentence where a text is cut off: at its end, or at an ellipsis.
    /// The beginning must be long enough. If `is_ended` is false, only an ellipsis is accepted.
    pub(super) fn find_cut(&self, plain: &Plain, is_ended: bool) -> Option<Range<usize>> {
        let first = self.words().next()?;
        let beginning = &first[..first.floor_char_boundary(BEGINNING.min(first.len()))];
        let starts = plain.folded.match_indices(beginning).map(|(at, _)| at);
        starts
            .filter(|start| self.may_begin(plain, *start))
            .find_map(|start| self.cut_at(plain, start, is_ended))
    }

    /// Matches the beginning of the sentence with a text that contains it at `start`.
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

/// The number of bytes at the beginning of a sentence by which a cut-off sentence is found.
const BEGINNING: usize = 16;

/// The minimum number of letters in a cut-off sentence.
const FEWEST_CUT: usize = 32;

/// Finds the beginning of some words at the end of a cut-off text. Returns its offset, and the
/// length of the part of the words that the text contains.
fn beginning_at_cut(text: &str, words: &str, is_ended: bool) -> Option<(usize, usize)> {
    let lengths = words.char_indices().map(|(at, _)| at).rev();
    lengths
        .take_while(|length| *length >= FEWEST_BEHIND_HOLE)
        .find_map(|length| {
            let offset = text.find(&words[..length])?;
            is_cut(&text[offset + length..], is_ended).then_some((offset, length))
        })
}

/// The minimum number of bytes after a hole in a cut-off sentence.
const FEWEST_BEHIND_HOLE: usize = 4;

/// Returns `true` if the rest of a text shows that the text was cut off: it is empty, or begins
/// with an ellipsis.
fn is_cut(rest: &str, is_ended: bool) -> bool {
    is_ended && rest.is_empty() || rest.starts_with("...") || rest.starts_with('\u{2026}')
}

/// Returns `true` if some words have letters on both sides of an offset.
fn is_within_word(words: &str, at: usize) -> bool {
    words[..at].ends_with(char::is_alphabetic) && words[at..].starts_with(char::is_alphabetic)
}

/// Returns `true` if a text goes on with another sentence, as after a message that a client cut off
/// to add its own advice.
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

/// Returns the weight of a character when letters are counted: a Chinese character weighs as much
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

/// Returns the beginning of the word that ends at `end`, before its closing quote if it has one.
fn before(text: &str, end: usize) -> usize {
    let start = text.ceil_char_boundary(end.saturating_sub(WIDEST_HOLE));
    let word = text[start..end].trim_end();
    let quoted = word
        .strip_suffix('\'')
        .filter(|word| word.ends_with(|c| is_of_path(c) || c == '}'));
    let word = quoted.unwrap_or(word);
    let start = start + word.rfind([' ', '\'', '{', '(']).map_or(0, |at| at + 1);
    start + after_sentence(&text[start..end])
}

/// Words before the name of a member.
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

/// Returns `true` if a word before a colon is the last one of a phrase, and no path: `provider` in
/// `Error from provider: Field required`. Paths of several steps are paths after any word.
fn is_end_of_phrase(text: &str, word: Range<usize>) -> bool {
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

/// Returns the path in quotes with which a text begins.
fn quoted_path(text: &str) -> Option<String> {
    let (path, _) = text.strip_prefix('\'')?.split_once('\'')?;
    (path.contains(char::is_alphabetic) && path.chars().all(is_of_path)).then(|| path.to_owned())
}

/// Returns where the path begins in the last word before a sentence: AWS writes the next path
/// directly after the previous sentence, as in `is not permitted#/messages: …`.
fn after_sentence(word: &str) -> usize {
    word.rfind('#')
        .filter(|at| {
            matches!(word[at + 1..].trim_end(), "" | "'") || word[at + 1..].starts_with('/')
        })
        .unwrap_or_default()
}

/// Returns the end of a value that begins at `start`: a quote, a brace, or the end of a sentence.
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

/// Returns `true` if there are letters or digits directly on both sides of a place in a text.
fn is_inside_word(text: &str, at: usize) -> bool {
    text[..at].ends_with(char::is_alphanumeric)
        && text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns `true` if a place is between two words of an identifier: `ChatCompletion|Request`.
fn is_inside_identifier(text: &str, at: usize) -> bool {
    text[..at].ends_with(|c: char| c.is_ascii_lowercase())
        && text[at..].starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns `true` if the sentence ends at a place: neither a further word, even after a quote, nor
/// a reason after a colon follows.
pub(super) fn is_over(plain: &Plain, end: usize) -> bool {
    let rest = plain.text[end..].trim_start_matches('\'');
    let goes_on = rest
        .strip_prefix(' ')
        .is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    ends_at(plain, end) && !goes_on && !rest.starts_with(':')
}

/// A match of a sentence in a text.
#[derive(Debug)]
pub(super) struct Found {
    /// The byte range in the plain text.
    pub(super) range: Range<usize>,
    holes: Vec<(String, Range<usize>)>,
}

impl Found {
    /// Returns `true` if the match is the whole text, everything between quotes, or everything
    /// after a status: `Error: 404 Resource not found`.
    fn is_all(&self, text: &str) -> bool {
        let before = text[..self.range.start].trim_end();
        let after = text[self.range.end..].trim_start_matches('.').trim_start();
        (before.is_empty() || before.ends_with('\'') || ends_with_status(before))
            && (after.is_empty() || after.starts_with('\''))
    }

    /// Returns `true` if the words are not part of a longer word, name, path or address. Chinese
    /// and Japanese words have no spaces between them.
    fn stands_alone(&self, text: &str) -> bool {
        let (before, after) = (&text[..self.range.start], &text[self.range.end..]);
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let is_of_address = |c: char| is_of_name(c) || matches!(c, '/' | '.');
        let is_spaceless = text[self.range.clone()].starts_with(|c: char| weight(c) > 1);
        is_spaceless || !before.ends_with(is_of_address) && !after.starts_with(is_of_name)
    }

    /// Returns `true` if each hole is a single word, as names are.
    fn holds_names(&self, text: &str) -> bool {
        self.holes
            .iter()
            .all(|(_, range)| !text[range.clone()].trim().contains(' '))
    }

    /// Returns the sentence as it appears in the text, with the quoted words and the quotes that
    /// belong to the sentence.
    pub(super) fn shown<'p>(&self, plain: &'p Plain) -> &'p str {
        let (text, Range { mut start, mut end }) = (&*plain.text, self.range.clone());
        if text[..end].ends_with(' ') {
            end += quoted_length(&text[end..]);
        }
        if text[start..].starts_with([' ', ':']) {
            start = quoted_start(&text[..start]);
        }
        let shown = &text[start..end];
        if shown.matches('\'').count() % 2 == 1 {
            match is_quote_left_out(shown) {
                true if text[..start].ends_with('\'') => start -= 1,
                false if text[end..].starts_with('\'') => end += 1,
                true | false => {}
            }
        }
        text[start..end].trim()
    }

    /// Returns the name and the content of each hole.
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

    /// Returns the first name that is written as empty quotes: `model` in `The '' model is odd`.
    pub(super) fn empty_name(&self, plain: &Plain) -> Option<String> {
        let mut names = self.holes.iter().filter(|(name, _)| is_name(name));
        let empty = names.find(|(_, range)| plain.text[range.clone()].trim() == "''");
        empty.map(|(name, _)| name.clone())
    }

    /// Returns the path that the sentence names: the content of a hole for a path, extended by
    /// adjacent characters that can belong to the path.
    pub(super) fn path(&self, plain: &Plain) -> Option<String> {
        let (_, range) = self
            .holes
            .iter()
            .find(|(name, _)| name == "path" || name == "index")?;
        // A hole at the end of a sentence begins with the space before it, and one at the beginning
        // ends with the space after it.
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
        // A number alone is a position in a list that only the sentence names.
        path.contains(char::is_alphabetic).then(|| path.to_owned())
    }
}

/// Returns the length of the quoted word at the start of a text, or of a list of such words.
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
        let word = &rest[separator.len() + 1..];
        let Some(end) = word.find('\'') else {
            break;
        };
        length += separator.len() + end + 2;
        rest = &text[length..];
    }
    length
}

/// The maximum number of quoted words that are shown after a sentence.
const MOST_QUOTED: usize = 20;

/// Returns the start of the quoted word at the end of a text; the end of the text if there is none.
fn quoted_start(text: &str) -> usize {
    let word = text.strip_suffix('\'').and_then(|rest| rest.rfind('\''));
    word.unwrap_or(text.len())
}

/// Returns `true` if the first quote in a text closes a word, which means that its opening quote is
/// missing.
fn is_quote_left_out(text: &str) -> bool {
    let first = text.find('\'').unwrap_or_default();
    text[..first].ends_with(|c: char| c.is_alphanumeric())
}

/// Returns `true` if a text ends with the status of a refusal, as SDKs write it before the
/// provider's message: `BadRequestError: 400`, `HTTP 400 -`.
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
    fn a_sentence_may_be_cut_off_before_advice_of_a_client() {
        let pattern =
            Pattern::parse("odd tool choice requires the server to have a tool parser set");
        let cut = |text: &str| pattern.find_cut(&Plain::of(text), false).is_some();
        assert!(cut(
            "odd tool choice requires the server to hav. Check the logs for more"
        ));
        assert!(!cut(
            "odd tool choice requires the server to have no tools. Check the logs"
        ));
        assert!(!cut("odd tool choice requires the server to hav and more"));
    }

    #[test]
    fn general_words_tell_nothing() {
        assert!(is_general("Invalid request parameters."));
        assert!(!is_general("Invalid request: odd parameters."));
    }

    #[test]
    fn a_sentence_is_shown_with_its_quoted_words() {
        let shown = |sentence: &str, text: &str| {
            let plain = Plain::of(text);
            let found = Pattern::parse(sentence).find(&plain).expect("it is found");
            found.shown(&plain).to_owned()
        };
        for (sentence, text, expected) in [
            (
                "the odd value is unknown here: {name}",
                r#"{"message": "the odd value is unknown here: "a". Bye"}"#,
                "the odd value is unknown here: 'a'",
            ),
            (
                "the odd supported values are: {values}",
                "the odd supported values are: 'a', 'b', and 'c'. Bye",
                "the odd supported values are: 'a', 'b', and 'c'",
            ),
            (
                "auto' is an odd choice here",
                r#"{'message': '"auto" is an odd choice here', 'code': 400}"#,
                "'auto' is an odd choice here",
            ),
            (
                "'{path}' : for an odd role the following must hold",
                "'messages.2' : for an odd role the following must hold",
                "'messages.2' : for an odd role the following must hold",
            ),
        ] {
            assert_eq!(shown(sentence, text), expected, "{sentence}");
        }
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
    fn the_end_of_a_phrase_is_no_path() {
        let sentence = "{path}: the odd value is unknown here";
        for (text, expected) in [
            ("400 odd: the odd value is unknown here", "odd"),
            ("API Error: odd: the odd value is unknown here", "odd"),
            ("error in field odd: the odd value is unknown here", "odd"),
            ("of server a.0.b: the odd value is unknown here", "a.0.b"),
        ] {
            let expected = Some(vec![("path".to_owned(), expected.to_owned())]);
            assert_eq!(holes(sentence, text), expected, "{text}");
        }
        for text in [
            "400 Error from provider: the odd value is unknown here",
            "Error from provider (Odd): the odd value is unknown here",
            "LLM request failed: the odd value is unknown here",
        ] {
            assert_eq!(holes(sentence, text), None, "{text}");
        }
    }

    #[test]
    fn few_letters_must_be_all_that_is_said() {
        assert!(holes("Overloaded", r#"{"message": "Overloaded"}"#).is_some());
        assert!(holes("Overloaded", "Overloaded").is_some());
        assert!(holes("Overloaded", "the server was overloaded by a client").is_none());
        for text in [
            "API Error: Overloaded",
            "  \u{23bf}  Overloaded.",
            "[retry 3] Overloaded",
            "the request failed (Overloaded)",
        ] {
            assert!(holes("Overloaded", text).is_some(), "{text}");
        }
        assert!(holes("Overloaded", "API Error: Overloaded by a client").is_none());
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
            "> messages.1: thinking blocks must\n> not be changed by anybody",
            "// messages.1: thinking blocks must\n  // not be changed by anybody",
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
    fn a_hole_begins_in_no_word() {
        let sentence = "The model {model} is not supported by this server";
        assert!(holes(sentence, "The model x-1 is not supported by this server").is_some());
        assert!(holes(sentence, "The model\n`x-1` is not supported by this server").is_some());
        let other = "The models/x-1: something is not supported by this server";
        assert!(holes(sentence, other).is_none());
    }

    #[test]
    fn a_name_does_not_reach_into_another_message() {
        let sentence = "Provider {name} not supported at all";
        assert!(holes(sentence, "Provider 'odd' not supported at all").is_some());
        let text = r#"{"message": "Provider failed", "raw": "Odd is not supported at all"}"#;
        assert!(holes(sentence, text).is_none());
    }

    #[test]
    fn a_name_does_not_reach_into_another_clause() {
        let sentence = "Model '{model}' is not supported here";
        for text in [
            "Model 'odd-1' is not supported here",
            "Model Odd 1 (large) is not supported here",
            "Model odd:latest is not supported here",
        ] {
            assert!(holes(sentence, text).is_some(), "{text}");
        }
        for text in [
            "model 'odd-1' with streaming: status 400 lookaround is not supported here",
            "The model returned the following errors: that is not supported here",
            "model odd-1 was called. That is not supported here",
        ] {
            assert!(holes(sentence, text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_phrase_of_one_word_is_one_word() {
        let has = |phrase, text| Pattern::parse(phrase).has_phrase(&Plain::of(text));
        assert!(has("oneOf", "odd: oneOf is not welcome"));
        assert!(!has("oneOf", "odd must be one of a, b"));
        assert!(has("one of", "odd must be one of a, b"));
    }

    #[test]
    fn a_sentence_stands_around_another() {
        let inner = |sentence, text| {
            let plain = Plain::of(text);
            Pattern::parse(sentence).inner(&plain).map(str::to_owned)
        };
        let expected = Some("the odd thing".to_owned());
        let text = "Upstream error from Odd: the odd thing";
        assert_eq!(
            inner("Upstream error from {provider}: {reason}", text),
            expected
        );
        let text = "400 the provider refused the request: the odd thing";
        assert_eq!(inner("the provider refused the request", text), expected);
        assert_eq!(
            inner("the provider refused the request", "the odd thing"),
            None
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
        // Another sentence with the same beginning, and a text that is cut off too early.
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
        let text = "The odd schema is not welcome. Found at properties.email";
        assert_eq!(
            path("The odd schema is not welcome. Found at {path}", text).as_deref(),
            Some("properties.email")
        );
        let text = "Invalid value at 'input[2].content[0]' of this request";
        assert_eq!(
            path("Invalid value at '{path}' of this request", text).as_deref(),
            Some("input[2].content[0]")
        );
        let sentence = "{path} is missing an odd member";
        for text in [
            "400 input[2] is missing an odd member",
            "400 'input[2]' is missing an odd member",
            "400 it is not permitted#/input[2] is missing an odd member",
        ] {
            assert_eq!(path(sentence, text).as_deref(), Some("input[2]"), "{text}");
        }
        for text in [
            "400 '' is missing an odd member",
            "400 it is not permitted# is missing an odd member",
        ] {
            assert_eq!(path(sentence, text), None, "{text}");
        }
    }

    #[test]
    fn a_path_in_quotes_at_the_end_is_told() {
        let path = |text| {
            let plain = Plain::of(text);
            Pattern::parse("the odd value is not one of these - '{path}'")
                .find(&plain)
                .and_then(|found| found.path(&plain))
        };
        assert_eq!(
            path("the odd value is not one of these - 'messages.2.role' (id 7)").as_deref(),
            Some("messages.2.role")
        );
        assert_eq!(path("the odd value is not one of these - 'a b'"), None);
    }

    #[test]
    fn a_hole_for_a_part_of_a_body_holds_its_name() {
        let matches =
            |sentence: &str, text: &str| Pattern::parse(sentence).find(&Plain::of(text)).is_some();
        let sentence = "Parameter {field} was not received by the odd server";
        for (text, expected) in [
            ("Parameter `odd` was not received by the odd server", true),
            ("Parameter '' was not received by the odd server", true),
            (
                "The odd parameter was not received by the odd server",
                false,
            ),
        ] {
            assert_eq!(matches(sentence, text), expected, "{text}");
        }
        let sentence = "Unknown odd parameter: 'odd_format.{field}'";
        assert!(matches(sentence, "Unknown odd parameter: 'odd_format.a'."));
        assert!(!matches(sentence, "Unknown odd parameter: 'odd_format'."));
    }

    #[test]
    fn a_sentence_begins_after_what_stands_before_it() {
        let sentence = "Invalid '{path}'. An odd value is expected here";
        for text in [
            r#"{"type": "invalid_odd", "code": "odd", "message": "Invalid 'a[1].b'. An odd value is expected here"}"#,
            "Invalid request: Invalid 'a[1].b'. An odd value is expected here",
        ] {
            let plain = Plain::of(text);
            let found = Pattern::parse(sentence).find(&plain).expect(text);
            assert_eq!(found.path(&plain).as_deref(), Some("a[1].b"), "{text}");
        }
    }

    #[test]
    fn a_sentence_does_not_end_inside_an_identifier() {
        let pattern = Pattern::parse("odd errors of the reader for OddAnswer");
        for (text, expected) in [
            ("2 odd errors of the reader for OddAnswer", true),
            ("2 odd errors of the reader for OddAnswers", true),
            ("2 odd errors of the reader for OddAnswerRequest", false),
        ] {
            assert_eq!(pattern.find(&Plain::of(text)).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn empty_names_are_told() {
        let empty = |text| {
            let plain = Plain::of(text);
            let found = Pattern::parse("The '{model}' model is not welcome at the odd server");
            found.find(&plain).map(|found| found.empty_name(&plain))
        };
        assert_eq!(
            empty(r#"{"detail": "The '' model is not welcome at the odd server"}"#),
            Some(Some("model".to_owned()))
        );
        for text in [
            "The 'a' model is not welcome at the odd server",
            "The model is not welcome at the odd server",
        ] {
            assert_eq!(empty(text), Some(None), "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_no_path() {
        let path = |text| {
            let plain = Plain::of(text);
            Pattern::parse("an odd message at index {index} is not welcome")
                .find(&plain)
                .and_then(|found| found.path(&plain))
        };
        assert_eq!(path("an odd message at index 4 is not welcome"), None);
        assert_eq!(
            path("an odd message at index messages[4] is not welcome").as_deref(),
            Some("messages[4]")
        );
    }
}
