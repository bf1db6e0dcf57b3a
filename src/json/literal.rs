//! Rewrites values in the syntax of Python or JavaScript as JSON: dictionaries, objects and strings
//! as programs print them.
//!
//! Sources: <https://docs.python.org/3/reference/lexical_analysis.html#string-and-bytes-literals>,
//! <https://docs.python.org/3/library/pprint.html> (long strings are split), and
//! <https://nodejs.org/api/util.html#utilinspectobject-options>.

use std::cell::Cell;
use std::ops::Range;

use serde_json::Number;

use super::scan::MAX_DEPTH;
use crate::source::OffsetMap;

/// A value that was rewritten as JSON.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The value as JSON.
    pub(crate) json: String,
    /// The map from the JSON to the text that contains the value.
    pub(crate) map: OffsetMap,
    /// The offset of the end of the value in the text.
    pub(crate) end: usize,
}

/// The result for text that cannot be read as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The number of bytes that were read before reading failed.
    pub(crate) bytes: usize,
    /// The end of the line or the text, if it cuts off a string in the value.
    pub(crate) cut_at: Option<usize>,
}

/// Rewrites the value that begins at an offset in a text. JSON is copied unchanged.
///
/// `None` and `undefined` become `null`; members without a value (`undefined`, `NOT_GIVEN`) are left
/// out; tuples become arrays, bytes become text, and `Name(key=value)` becomes an object. Anything
/// else that a program prints in place of a value, such as `<function f at 0x7f>`, becomes a string.
/// Colours are skipped. If the text is a value only without a prefix that each line has, such as
/// `app-1 | ` or a time, the prefix is skipped, too.
///
/// # Errors
///
/// Returns an error if the text at the offset is not a complete value.
pub(crate) fn rewritten(text: &str, start: usize) -> Result<Rewritten, Unread> {
    let unread = match rewritten_after(text, "", start) {
        Ok(rewritten) => return Ok(rewritten),
        Err(unread) => unread,
    };
    let read = &text[start..text.floor_char_boundary(start + unread.bytes)];
    let before = line_before(text, start);
    if before.trim().is_empty() || !read.contains('\n') {
        return Err(unread);
    }
    rewritten_after(text, before, start).map_err(|last| Unread {
        bytes: unread.bytes + last.bytes,
        ..last
    })
}

/// Rewrites a value. `before` is the text before it on its line if the lines that follow may begin
/// with the same prefix, and otherwise empty.
fn rewritten_after(text: &str, before: &str, start: usize) -> Result<Rewritten, Unread> {
    let work = Cell::new(0);
    let mut reader = Reader::new(text, before, start, &work);
    let read = reader.value(MAX_DEPTH);
    reader.finish(read)
}

/// Rewrites the string that begins at an offset in a text, without the literals that follow it.
///
/// # Errors
///
/// Returns an error if there is no complete string.
pub(crate) fn rewritten_string(text: &str, start: usize) -> Result<Rewritten, Unread> {
    let work = Cell::new(0);
    let mut reader = Reader::new(text, "", start, &work);
    let read = reader.literal();
    reader.finish(read)
}

struct Reader<'t, 'w> {
    text: &'t str,
    /// The text before the value on its line. The lines that follow may have the same prefix.
    before: &'t str,
    at: usize,
    json: String,
    map: OffsetMap,
    /// `true` while the reader is in a value that is left out.
    is_muted: bool,
    /// The end of the line or the text, if it cuts off a string.
    cut_at: Option<usize>,
    /// The number of bytes that were read by this reader and by those with which it looks ahead.
    work: &'w Cell<usize>,
}

/// The prefix and the quote of a string.
#[derive(Clone, Copy)]
struct Opening {
    quote: u8,
    /// The length of the prefix and the quote, in bytes.
    len: usize,
    is_bytes: bool,
    is_raw: bool,
}

/// A character that is escaped in a string.
struct Escape {
    /// The length of the escape, in bytes.
    len: usize,
    /// The character as JSON; empty for the end of a line that continues.
    json: String,
}

impl<'t, 'w> Reader<'t, 'w> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn new(text: &'t str, before: &'t str, at: usize, work: &'w Cell<usize>) -> Reader<'t, 'w> {
        Reader {
            text,
            before,
            at,
            json: String::new(),
            map: OffsetMap::default(),
            is_muted: false,
            cut_at: None,
            work,
        }
    }

    /// Returns the value, if it was read.
    fn finish(self, read: Option<()>) -> Result<Rewritten, Unread> {
        match read {
            Some(()) => Ok(Rewritten {
                json: self.json,
                map: self.map,
                end: self.at,
            }),
            None => Err(Unread {
                bytes: self.work.get() + 1,
                cut_at: self.cut_at,
            }),
        }
    }

    fn count(&self, bytes: usize) {
        self.work.set(self.work.get() + bytes);
    }

    /// Copies bytes of the text to the JSON.
    fn copy(&mut self, len: usize) {
        self.count(len);
        if !self.is_muted {
            self.json.push_str(&self.text[self.at..self.at + len]);
            self.map.push_verbatim(self.at, len);
        }
        self.at += len;
    }

    /// Writes JSON in place of bytes of the text.
    fn replace(&mut self, len: usize, json: &str) {
        self.count(len);
        if !self.is_muted {
            self.json.push_str(json);
            self.map.push_opaque(self.at, len, json.len());
        }
        self.at += len;
    }

    /// Copies blanks and line ends. Skips colours, and the prefix of each line.
    fn blank(&mut self) {
        while let Some(byte) = self.byte() {
            match byte {
                b'\n' => {
                    self.copy(1);
                    let prefix = common_prefix(self.before, &self.text[self.at..]);
                    self.replace(prefix, "");
                }
                b' ' | b'\t' | b'\r' => {
                    let rest = self.text[self.at..].bytes();
                    let blanks = rest.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
                    self.copy(blanks.count());
                }
                0x1b => match colour(&self.text[self.at..]) {
                    0 => return,
                    len => self.replace(len, ""),
                },
                _ => return,
            }
        }
    }

    /// Returns a reader that starts at the first character, at or after an offset, that is not
    /// blank.
    fn ahead(&self, at: usize) -> Reader<'t, 'w> {
        let mut ahead = Reader::new(self.text, self.before, at, self.work);
        ahead.is_muted = true;
        ahead.blank();
        ahead
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.blank();
        match self.byte()? {
            b'{' => {
                self.copy(1);
                self.members(depth, b'}', b':')
            }
            b'[' => {
                self.copy(1);
                self.elements(depth, b']')
            }
            b'(' => self.parentheses(depth),
            b'<' => self.angle(depth),
            _ if self.opening().is_some() => self.string().or_else(|| self.cut()),
            _ => self.word(depth),
        }
    }

    /// Notes the end of the line or the text, if a string that could not be read reaches it.
    fn cut(&mut self) -> Option<()> {
        let is_end = self.byte().is_none_or(|byte| byte == b'\n');
        self.cut_at = is_end.then_some(self.at);
        None
    }

    /// Reads the members of an object up to its closing bracket.
    fn members(&mut self, depth: usize, end: u8, colon: u8) -> Option<()> {
        let mut is_first = true;
        loop {
            let member = self.ahead(self.at);
            if member.byte()? == end {
                self.blank();
                self.sign(end, "}");
                return Some(());
            }
            let was_muted = self.is_muted;
            self.is_muted = was_muted || member.is_empty_member(colon);
            self.separate(is_first);
            is_first = is_first && self.is_muted;
            self.key(colon)?;
            self.blank();
            if self.byte()? != colon {
                return None;
            }
            self.sign(colon, ":");
            self.value(depth)?;
            self.is_muted = was_muted;
            self.comma(end)?;
        }
    }

    fn elements(&mut self, depth: usize, end: u8) -> Option<()> {
        let mut is_first = true;
        while self.ahead(self.at).byte()? != end {
            self.separate(is_first);
            is_first = false;
            self.value(depth)?;
            self.comma(end)?;
        }
        self.blank();
        self.sign(end, "]");
        Some(())
    }

    /// Writes a punctuation character, or its JSON equivalent if that is different.
    fn sign(&mut self, sign: u8, json: &str) {
        match json.as_bytes() == [sign] {
            true => self.copy(1),
            false => self.replace(1, json),
        }
    }

    /// Skips the comma after a value. Without a comma, the closing bracket must follow.
    fn comma(&mut self, end: u8) -> Option<()> {
        self.blank();
        match self.byte()? {
            b',' => self.at += 1,
            other if other == end => {}
            _ => return None,
        }
        Some(())
    }

    /// Writes the comma that was skipped before a value, unless nothing precedes it.
    fn separate(&mut self, is_first: bool) {
        if !is_first && !self.is_muted {
            self.at -= 1;
            self.copy(1);
        }
        self.blank();
    }

    /// Skips a byte that must come next.
    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.byte()? == byte).then(|| self.at += 1)
    }

    /// Reads a key: a string, a name, or a symbol in brackets.
    fn key(&mut self, colon: u8) -> Option<()> {
        if self.opening().is_some() {
            return self.string();
        }
        if self.byte()? == b'[' && colon == b':' {
            let symbol = within(&self.text[self.at..], LONGEST_NAME);
            self.at += symbol.find(']')? + 1;
            return Some(());
        }
        let name = self.name();
        if name.is_empty() {
            return None;
        }
        self.replace(0, "\"");
        self.copy(name.len());
        self.replace(0, "\"");
        Some(())
    }

    /// Returns `true` if the member that follows has no value, or has a symbol as its key.
    fn is_empty_member(&self, colon: u8) -> bool {
        let mut ahead = self.ahead(self.at);
        if ahead.byte() == Some(b'[') {
            return true;
        }
        let is_key = ahead.key(colon).is_some();
        ahead.blank();
        if !is_key || ahead.eat(colon).is_none() {
            return false;
        }
        ahead.blank();
        let is_argument = colon == b'=';
        match ahead.byte() {
            Some(b'<') => {
                let end = ahead.angle_end();
                end.is_some_and(|end| is_not_given(&ahead.text[ahead.at..end]))
            }
            _ => {
                let name = ahead.name();
                name == "undefined" || is_not_given(name) || is_argument && name == "None"
            }
        }
    }

    /// Reads a tuple, or a string in parentheses.
    fn parentheses(&mut self, depth: usize) -> Option<()> {
        let mut ahead = self.ahead(self.at + 1);
        let is_string = ahead.opening().is_some() && ahead.string().is_some();
        ahead.blank();
        if is_string && ahead.byte() == Some(b')') {
            self.at += 1;
            self.blank();
            self.string()?;
            self.blank();
            return self.eat(b')');
        }
        self.replace(1, "[");
        self.elements(depth, b')')
    }

    /// Reads the representation of an object in angle brackets. For an enumeration, the
    /// representation contains the value: `<Role.USER: 'user'>`.
    fn angle(&mut self, depth: usize) -> Option<()> {
        let end = self.angle_end()?;
        let inner = &self.text[self.at..end];
        let Some((name, value)) = inner[1..].split_once(": ") else {
            return self.opaque(end);
        };
        if name.contains(' ') || !value.starts_with(['\'', '"']) {
            return self.opaque(end);
        }
        self.at += inner.len() - value.len();
        self.value(depth)?;
        self.eat(b'>')
    }

    fn angle_end(&self) -> Option<usize> {
        let mut depth = 0_usize;
        let rest = within(&self.text[self.at..], LONGEST_REPRESENTATION);
        self.count(rest.len());
        for (offset, byte) in rest.bytes().enumerate() {
            match byte {
                b'<' => depth += 1,
                b'>' if depth == 1 => return Some(self.at + offset + 1),
                b'>' => depth -= 1,
                b'\n' => return None,
                _ => {}
            }
        }
        None
    }

    /// Writes the text up to an offset as a string.
    fn opaque(&mut self, end: usize) -> Option<()> {
        let json = serde_json::to_string(&self.text[self.at..end]).ok()?;
        self.replace(end - self.at, &json);
        Some(())
    }

    /// Returns the name that comes next, which may contain dots; empty if there is none.
    fn name(&self) -> &'t str {
        let rest = &self.text[self.at..];
        if rest.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.') {
            return "";
        }
        let end = rest
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '$' | '.')))
            .unwrap_or(rest.len());
        self.count(end);
        &rest[..end]
    }

    /// Reads a number, a constant, an object with the name of its class, or a call.
    fn word(&mut self, depth: usize) -> Option<()> {
        let name = self.name();
        match name {
            "" => return self.number(),
            "true" | "false" | "null" => self.copy(name.len()),
            "True" => self.replace(name.len(), "true"),
            "False" => self.replace(name.len(), "false"),
            "None" | "undefined" | "nan" | "NaN" | "inf" | "Infinity" => {
                self.replace(name.len(), "null");
            }
            _ if is_not_given(name) && !self.text[self.at + name.len()..].starts_with('(') => {
                self.replace(name.len(), "null");
            }
            _ => return self.of_class(name, depth),
        }
        Some(())
    }

    /// Reads an object with the name of its class before it: `Name(key=value)` in Python, `Name {…}`
    /// in JavaScript.
    fn of_class(&mut self, name: &str, depth: usize) -> Option<()> {
        self.at += name.len();
        let rest = &self.text[self.at..];
        if !rest.starts_with('(') {
            let object = rest.trim_start_matches(' ');
            self.at = self.text.len() - object.len();
            return object.starts_with('{').then(|| self.value(depth))?;
        }
        if self.has_named_arguments() {
            self.replace(1, "{");
            return self.members(depth, b')', b'=');
        }
        // The first argument represents the object, as in `SecretStr('…')`.
        self.at += 1;
        self.value(depth)?;
        self.blank();
        self.comma(b')')?;
        let was_muted = std::mem::replace(&mut self.is_muted, true);
        self.elements(depth, b')')?;
        self.is_muted = was_muted;
        Some(())
    }

    /// Returns `true` if a list of arguments is empty or begins with a named one.
    fn has_named_arguments(&self) -> bool {
        let arguments = self.ahead(self.at + 1);
        let name = arguments.name();
        let after = &self.text[arguments.at + name.len()..];
        after.starts_with(if name.is_empty() { ')' } else { '=' })
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|sign: char| !(sign.is_ascii_alphanumeric() || matches!(sign, '+' | '-' | '.')))
            .unwrap_or(rest.len());
        self.count(end);
        let word = &rest[..end];
        if serde_json::from_str::<Number>(word).is_ok() {
            self.copy(end);
            return Some(());
        }
        let is_endless = matches!(word, "-inf" | "-Infinity");
        let number: f64 = word.parse().ok()?;
        let number = Number::from_f64(number).map(|number| number.to_string());
        self.replace(end, number.as_deref().or(is_endless.then_some("null"))?);
        Some(())
    }

    /// Returns the prefix and the quote of the string that comes next; `None` if no string does.
    fn opening(&self) -> Option<Opening> {
        let rest = &self.text.as_bytes()[self.at..];
        let prefix = rest
            .iter()
            .take(2)
            .take_while(|byte| b"bBrRuUfF".contains(byte))
            .count();
        let quote = *rest.get(prefix)?;
        let is_prefixed = |letter: u8| {
            rest[..prefix]
                .iter()
                .any(|byte| byte.eq_ignore_ascii_case(&letter))
        };
        matches!(quote, b'\'' | b'"' | b'`').then_some(Opening {
            quote,
            len: prefix + 1,
            is_bytes: is_prefixed(b'b'),
            is_raw: is_prefixed(b'r'),
        })
    }

    /// Reads a string, which may consist of several literals: Python joins adjacent literals, and
    /// JavaScript joins them with `+`.
    fn string(&mut self) -> Option<()> {
        let mut opening = self.open()?;
        loop {
            self.characters(opening)?;
            let mut next = self.ahead(self.at + 1);
            if next.eat(b'+').is_some() {
                next.blank();
            }
            let Some(following) = next.opening() else {
                self.sign(opening.quote, "\"");
                return Some(());
            };
            opening = following;
            self.at = next.at + opening.len;
        }
    }

    /// Reads one literal.
    fn literal(&mut self) -> Option<()> {
        let opening = self.open()?;
        self.characters(opening)?;
        self.sign(opening.quote, "\"");
        Some(())
    }

    /// Reads the prefix and the quote of a string.
    fn open(&mut self) -> Option<Opening> {
        let opening = self.opening()?;
        match opening.quote {
            b'"' if opening.len == 1 => self.copy(1),
            _ => self.replace(opening.len, "\""),
        }
        Some(opening)
    }

    /// Reads the characters of a string up to its closing quote. Only JavaScript's template
    /// literals may contain line ends.
    fn characters(&mut self, opening: Opening) -> Option<()> {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest
                .iter()
                .position(|byte| *byte == opening.quote || matches!(byte, b'\\' | b'"' | 0..=0x1f));
            self.copy(plain.unwrap_or(rest.len()));
            let byte = self.byte()?;
            if byte == opening.quote {
                return Some(());
            }
            if byte == b'\n' && opening.quote != b'`' {
                return None;
            }
            if byte != b'\\' || opening.is_raw {
                let json = quoted(char::from(byte));
                self.replace(1, &json);
                continue;
            }
            let Escape { len, json } = escape(&self.text[self.at..], opening.is_bytes)?;
            match self.text[self.at..].starts_with(&json) && len == json.len() {
                true => self.copy(len),
                false => self.replace(len, &json),
            }
        }
    }
}

/// Returns the text before an offset on the same line; nothing if the line is long.
fn line_before(text: &str, at: usize) -> &str {
    let near = text.ceil_char_boundary(at.saturating_sub(LONGEST_PREFIX));
    match text[near..at].rfind('\n') {
        Some(end) => &text[near + end + 1..at],
        None if near == 0 => &text[..at],
        None => "",
    }
}

/// Returns the length of the prefix that two lines share: the name of a container, a time, or a
/// mark such as `>`. Digits may differ. The prefix ends with a blank or a separator; if nothing else
/// is on the line, they may be missing.
fn common_prefix(one: &str, other: &str) -> usize {
    const SEPARATORS: [char; 4] = [' ', '\t', '|', '>'];
    let pairs = one.bytes().zip(other.bytes());
    let same = pairs.take_while(|(one, other)| {
        let is_same = one == other || one.is_ascii_digit() && other.is_ascii_digit();
        is_same && !b"{}\"'".contains(other)
    });
    let (common, rest) = other.split_at(other.floor_char_boundary(same.count()));
    let of_one = one.get(common.len()..).unwrap_or_default();
    let is_cut = rest.starts_with(['\r', '\n']) && of_one.starts_with(SEPARATORS);
    let end = match is_cut {
        true => common.len(),
        false => common.rfind(SEPARATORS).map_or(0, |sign| sign + 1),
    };
    match common[..end].trim().is_empty() {
        true => 0,
        false => end,
    }
}

/// Returns the length of the escape sequence for a colour that a text begins with.
///
/// Source: <https://ecma-international.org/publications-and-standards/standards/ecma-48/> (SGR).
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let sequence = within(codes, LONGEST_COLOUR);
    let end = sequence.find(|sign: char| !(sign.is_ascii_digit() || sign == ';' || sign == ':'));
    end.filter(|end| codes[*end..].starts_with('m'))
        .map_or(0, |end| text.len() - codes.len() + end + 1)
}

/// Returns `true` for the names of the objects that SDKs use for parameters that are not set.
fn is_not_given(name: &str) -> bool {
    match name.strip_prefix('<') {
        Some(object) => ["NOT_GIVEN", "NotGiven", "Omit object"]
            .iter()
            .any(|mark| object.contains(mark)),
        None => ["NOT_GIVEN", "NotGiven", "Omit", "omit"].contains(&name),
    }
}

/// The maximum length of the name of a symbol or a character, in bytes.
const LONGEST_NAME: usize = 200;

/// The maximum length of an object in angle brackets, in bytes.
const LONGEST_REPRESENTATION: usize = 2_000;

/// The maximum length of the codes of a colour, in bytes.
const LONGEST_COLOUR: usize = 64;

/// The maximum length of the text before a value on its line, in bytes, if it is to be compared.
const LONGEST_PREFIX: usize = 1_000;

/// Returns the beginning of a text, up to this number of bytes.
fn within(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns a character as it is written in a JSON string.
fn quoted(sign: char) -> String {
    let json = serde_json::to_string(&sign).unwrap_or_default();
    json[1..json.len() - 1].to_owned()
}

/// Returns the escape at the start of a text.
fn escape(text: &str, is_bytes: bool) -> Option<Escape> {
    let sign = text[1..].chars().next()?;
    let of = |len: usize, sign: char| Escape {
        len,
        json: quoted(sign),
    };
    Some(match sign {
        'n' | 't' | 'r' | 'b' | 'f' | '"' | '\\' | '/' => Escape {
            len: 2,
            json: text[..2].to_owned(),
        },
        '\'' | '`' | '$' => of(2, sign),
        'a' => of(2, '\u{7}'),
        'v' => of(2, '\u{b}'),
        '\n' => Escape {
            len: 2,
            json: String::new(),
        },
        '0'..='7' => {
            let digits = text[1..]
                .bytes()
                .take(3)
                .take_while(|it| matches!(it, b'0'..=b'7'));
            let len = digits.count();
            let code = u32::from_str_radix(&text[1..=len], 8).ok()?;
            of(1 + len, char::from_u32(code)?)
        }
        'x' if is_bytes => bytes(text)?,
        'x' => of(4, char::from_u32(hex(text, 2..4)?)?),
        'u' if !is_bytes => {
            hex(text, 2..6)?;
            Escape {
                len: 6,
                json: text[..6].to_owned(),
            }
        }
        'U' if !is_bytes => of(10, char::from_u32(hex(text, 2..10)?).unwrap_or('\u{fffd}')),
        // Decoding this would require a table of Unicode character names.
        'N' if text[2..].starts_with('{') => {
            of(within(text, LONGEST_NAME).find('}')? + 1, '\u{fffd}')
        }
        // Python keeps the backslash of an unknown escape.
        _ => Escape {
            len: 1,
            json: "\\\\".to_owned(),
        },
    })
}

fn hex(text: &str, digits: Range<usize>) -> Option<u32> {
    u32::from_str_radix(text.get(digits)?, 16).ok()
}

/// Returns the character that escaped bytes encode in UTF-8: `\xc3\xa9`.
fn bytes(text: &str) -> Option<Escape> {
    let mut encoded = Vec::new();
    while encoded.len() < 4 && text[4 * encoded.len()..].starts_with("\\x") {
        let at = 4 * encoded.len();
        encoded.push(u8::try_from(hex(text, at + 2..at + 4)?).ok()?);
        if let Ok(character) = std::str::from_utf8(&encoded) {
            return Some(Escape {
                len: 4 * encoded.len(),
                json: quoted(character.chars().next()?),
            });
        }
    }
    Some(Escape {
        len: 4,
        json: quoted(char::REPLACEMENT_CHARACTER),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn value(text: &str) -> Option<Value> {
        let rewritten = rewritten(text, 0).ok()?;
        Some(
            serde_json::from_str(&rewritten.json)
                .unwrap_or_else(|error| panic!("{text:?} becomes {:?}: {error}", rewritten.json)),
        )
    }

    #[test]
    fn python_becomes_json() {
        for (text, expected) in [
            (
                "{'a': None, 'b': (1, 2.5), 'c': [True, False]}",
                json!({"a": null, "b": [1, 2.5], "c": [true, false]}),
            ),
            (
                r#"{'a': "It's \"é\" \x41\n\t\\ \U0001F600 \d", 'b': ('x',), 'c': ()}"#,
                json!({"a": "It's \"é\" A\n\t\\ 😀 \\d", "b": ["x"], "c": []}),
            ),
            (
                "{'a': ('one '\n  \"two's\"), 'b': 'x' 'y', }",
                json!({"a": "one two's", "b": "xy"}),
            ),
            (
                r"{'a': b'caf\xc3\xa9 \xff\'', 'b': r'\d'}",
                json!({"a": "café \u{fffd}'", "b": "\\d"}),
            ),
            (
                "{'a': NOT_GIVEN, 'b': <openai.NotGiven object at 0x7f>, 'c': 1, 'd': omit}",
                json!({"c": 1}),
            ),
            (
                "{'a': <Role.USER: 'user'>, 'f': <function f at 0x7f>}",
                json!({"a": "user", "f": "<function f at 0x7f>"}),
            ),
            (
                "[Message(content=None, role='user', calls=[Call(id='1')]), Timeout(), SecretStr('**'), date(2026, 1, 2)]",
                json!([{"role": "user", "calls": [{"id": "1"}]}, {}, "**", 2026]),
            ),
            (
                "{'a': nan, 'b': -inf, 'c': 1., 'd': -1e5}",
                json!({"a": null, "b": null, "c": 1.0, "d": -1e5}),
            ),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn javascript_becomes_json() {
        for (text, expected) in [
            (
                "{\n  model: 'm',\n  stop: undefined,\n  'x-y': [ `a`, \"it's\" ],\n  list: [ undefined ]\n}",
                json!({"model": "m", "x-y": ["a", "it's"], "list": [null]}),
            ),
            (
                "{ a: 'one\\n' +\n    'two', [Symbol(b.c)]: true }",
                json!({"a": "one\ntwo"}),
            ),
            ("Headers { a: 1, b: Map {} }", json!({"a": 1, "b": {}})),
            (
                "{ a: \u{1b}[32m'one'\u{1b}[39m, \u{1b}[1;31mb\u{1b}[0m: [ \u{1b}[33m1\u{1b}[39m ] }",
                json!({"a": "one", "b": [1]}),
            ),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_prefix_of_each_line_is_skipped() {
        let expected = json!({"a": "one two", "b": [1]});
        for prefix in [
            "app-1  | ",
            "> ",
            "2026-11-30T07:44:3#.12#Z ",
            "\u{1b}[36mapp |\u{1b}[0m ",
            "Nov 30 07:4#:38 host app[123]: ",
            "\t",
        ] {
            let line = |number: usize, text: &str| {
                let prefix = prefix.replace('#', &number.to_string());
                format!("{prefix}{text}")
            };
            let text = [
                line(1, "INFO sent {"),
                line(2, "  'a': 'one '"),
                line(3, "    'two',"),
                line(4, "").trim_end().to_owned(),
                line(5, "  'b': ["),
                line(6, "    1"),
                line(7, "  ]"),
                line(8, "}"),
            ]
            .join("\n");
            let start = text.find('{').expect("a brace");
            let Rewritten { json, map, .. } = rewritten(&text, start).expect(&text);
            assert_eq!(
                serde_json::from_str::<Value>(&json).ok(),
                Some(expected.clone())
            );
            let at = json.find('1').expect("a number");
            let place = map.to_source_range(at..at + 1);
            assert!(text[place.end..].starts_with('\n'), "{text}");
        }
    }

    #[test]
    fn content_is_not_taken_for_a_prefix() {
        for (text, start, expected) in [
            ("{\n  'a': 1\n}{\n  'a': 2\n}\n", 12, json!({"a": 2})),
            (
                "app | {\napp |   'a': 1\napp | }{\napp |   'a': 2\napp | }\n",
                30,
                json!({"a": 2}),
            ),
            (
                "x: [{\n 'a': 1\n}, {\n 'a': 2\n}, {}]",
                3,
                json!([{"a": 1}, {"a": 2}, {}]),
            ),
            (
                "2026-11-30 sent {\n'a': [\n2\n]\n}\n",
                16,
                json!({"a": [2]}),
            ),
            (
                "'request': {\n'model': 1,\n'request': 2\n}\n",
                11,
                json!({"model": 1, "request": 2}),
            ),
        ] {
            let Rewritten { json, .. } = rewritten(text, start).expect(text);
            assert_eq!(
                serde_json::from_str::<Value>(&json).ok(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn other_text_is_not_a_value() {
        for text in [
            "",
            "{",
            "{'a'",
            "{'a': ",
            "{'a': 'b",
            "{'a': }",
            "{a}",
            "{1: 2}",
            "{{{{",
            "{'a' 'b'}",
            "{'a': [Array]}",
            "{'a': x y}",
            "{'a': '\\x4'}",
            "{'a': '\\u12'}",
            "{'a': <b",
            "['a' 1]",
            "{ a: [ 1, ... 3 more items ] }",
            "A(",
            "A(b=",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        for (open, times) in [
            ("[", 5_000),
            ("{'a':", 5_000),
            ("A(", 5_000),
            ("A(b=", 5_000),
            ("(", 60),
            ("{[", 5_000),
        ] {
            assert_eq!(value(&open.repeat(times)), None, "{open}");
        }
    }

    #[test]
    fn a_string_that_is_cut_off_ends_with_its_line() {
        for (text, expected) in [
            ("{'a': 'b {c}", Some(12)),
            ("{'a': 'b\n'}", Some(8)),
            ("{'a': ['b', \"c\\\"\n", Some(16)),
            ("{'a': `b\nc`", None),
            ("{'a': 'b' c", None),
            ("{'a", None),
        ] {
            let unread = rewritten(text, 0).expect_err("not a value");
            assert_eq!(unread.cut_at, expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = r#"x = {'a': "it's", b: '"\x41"'}"#;
        let Rewritten { json, map, end } = rewritten(text, 4).expect("a value");
        assert_eq!(
            (json.as_str(), end),
            (r#"{"a": "it's", "b": "\"A\""}"#, text.len())
        );
        for (part, expected) in [
            ("\"it's\"", "\"it's\""),
            ("\"b\"", "b"),
            ("A", r"\x41"),
            (r#""\"A\"""#, r#"'"\x41"'"#),
        ] {
            let at = json.find(part).expect("a part");
            assert_eq!(&text[map.to_source_range(at..at + part.len())], expected);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "([a-z\\\\'\"`/\n\u{1}é😀$]){0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z'\"é\\\\ ]{0,4}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_copied(value in any_json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
                let rewritten = rewritten(&text, 0).expect("JSON");
                prop_assert_eq!(&rewritten.json, &text);
                prop_assert_eq!(rewritten.end, text.len());
                prop_assert_eq!(rewritten.map, OffsetMap::identity(text.len()));
            }
        }

        #[test]
        fn any_text_is_read(text in "([{}\\[\\]()<>:,='\"`\\\\bxuN A1.\n+-]){0,40}") {
            for start in 0..text.len() {
                if let Ok(rewritten) = rewritten(&text, start) {
                    prop_assert!(rewritten.end <= text.len());
                    prop_assert!(crate::json::parse(&rewritten.json).is_ok() || !rewritten.json.is_empty());
                    prop_assert_eq!(rewritten.map.derived_len(), rewritten.json.len());
                }
            }
        }
    }
}
