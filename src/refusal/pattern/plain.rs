//! Strings without whitespace, quotes, underscores, escapes and case.

use std::ops::Range;

/// A string in its plain form, and the form used for comparison.
#[derive(Debug)]
pub(in crate::refusal) struct Plain {
    /// The text with one kind of quote, and one space for each run of whitespace.
    pub(in crate::refusal) text: String,
    /// The form used for comparison: in lower case, without spaces, quotes or
    /// underscores.
    pub(super) folded: String,
    /// The position in `text` of each byte of `folded`, followed by the end.
    pub(super) places: Vec<usize>,
}

impl Plain {
    pub(in crate::refusal) fn of(text: &str) -> Plain {
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

    /// Returns the form used for comparison: without spaces, quotes and underscores, in lower case.
    pub(in crate::refusal) fn folded(&self) -> &str {
        &self.folded
    }

    /// Returns `true` if this text contains another text, ignoring spaces, quotes and case.
    pub(in crate::refusal) fn contains(&self, other: &Plain) -> bool {
        self.folded.contains(&other.folded)
    }

    /// Returns the position in `folded` of the first character at or after a position in `text`.
    pub(super) fn folded_from(&self, at: usize) -> usize {
        self.places.partition_point(|place| *place < at)
    }

    /// Returns the range of the text that corresponds to a range of `folded`.
    pub(super) fn between(&self, start: usize, end: usize) -> Range<usize> {
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

/// Returns `true` if a character is considered when strings are compared. Markdown removes
/// underscores: `Invalid maxtokens value`.
pub(super) fn is_compared(c: char) -> bool {
    !matches!(c, ' ' | '\'' | '_')
}

pub(super) fn plain(text: &str) -> String {
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
            // Box-drawing characters that terminals print around a string.
            '\u{2500}'..='\u{259f}' => ' ',
            // Zero-width characters, and markers for omitted characters.
            '\u{200b}'..='\u{200d}' | '\u{feff}' | NOTHING => continue,
            // Chinese text uses most punctuation marks in both widths.
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

/// A placeholder for a character without meaning: a backslash or a colour code.
const NOTHING: char = '\0';

/// Returns the narrow form of a full-width character, such as the Chinese comma.
fn narrow(c: char) -> char {
    char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
}

/// Decodes an escape at the beginning of a string: the character, and the length of the escape in
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

/// Returns the length in bytes of a terminal sequence after its escape character, such as `[31m`.
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
