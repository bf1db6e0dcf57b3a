//! A scanner that records locations and explains mistakes. It is slower than the parser, so it is
//! used only if text is invalid or if locations are needed.

use std::ops::Range;

use foldhash::quality::RandomState;
use indexmap::IndexMap;

use super::{JsonError, Pointer, Problem};
use crate::text::cut;

/// The maximum nesting depth, the same as in `serde_json`.
pub(crate) const MAX_DEPTH: usize = 127;

/// The location of a JSON value, and the values inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The byte range of the value.
    pub span: Range<usize>,
    /// The kind of value, with the values inside it.
    pub kind: TreeKind,
}

/// The kind of a [`Tree`] node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeKind {
    /// A string, number, boolean or null.
    Scalar,
    /// The elements of a list.
    Array(Vec<Tree>),
    /// The members of an object by key, each with the byte range of its key.
    Object(IndexMap<String, (Range<usize>, Tree), RandomState>),
}

impl Tree {
    /// Returns the value that a pointer refers to.
    pub fn locate(&self, pointer: &Pointer) -> Option<&Tree> {
        pointer
            .tokens()
            .try_fold(self, |tree, token| match &tree.kind {
                TreeKind::Scalar => None,
                TreeKind::Array(elements) => elements.get(token.parse::<usize>().ok()?),
                TreeKind::Object(members) => members.get(&token).map(|(_, value)| value),
            })
    }

    /// Collects the byte ranges between the values in lists and objects: brackets, commas, keys and
    /// the surrounding whitespace.
    pub(crate) fn gaps(&self, at: &Pointer, found: &mut Vec<(Pointer, Range<usize>)>) {
        let parts: Vec<(Pointer, &Tree)> = match &self.kind {
            TreeKind::Scalar => return,
            TreeKind::Array(elements) => elements
                .iter()
                .enumerate()
                .map(|(index, tree)| (at.element(index), tree))
                .collect(),
            TreeKind::Object(members) => members
                .iter()
                .map(|(name, (_, tree))| (at.member(name), tree))
                .collect(),
        };
        let mut from = self.span.start;
        for (inner, tree) in parts {
            found.push((at.clone(), from..tree.span.start));
            from = tree.span.end;
            tree.gaps(&inner, found);
        }
        found.push((at.clone(), from..self.span.end));
    }

    /// Returns the pointer to the scalar, the empty list or the empty object that contains a byte;
    /// `None` if the byte is between values.
    pub(crate) fn path_to(&self, byte: usize) -> Option<Pointer> {
        let (mut tree, mut path) = (self, Pointer::root());
        loop {
            (path, tree) = match &tree.kind {
                TreeKind::Array(elements) if !elements.is_empty() => {
                    let index = elements
                        .iter()
                        .position(|element| element.span.contains(&byte))?;
                    (path.element(index), &elements[index])
                }
                TreeKind::Object(members) if !members.is_empty() => {
                    let (key, (_, value)) = members
                        .iter()
                        .find(|(_, (_, value))| value.span.contains(&byte))?;
                    (path.member(key), value)
                }
                TreeKind::Scalar | TreeKind::Array(_) | TreeKind::Object(_) => {
                    return tree.span.contains(&byte).then_some(path);
                }
            };
        }
    }

    /// Returns the byte range of a member's key; `None` if there is no such member.
    pub fn key_span(&self, key: &str) -> Option<Range<usize>> {
        match &self.kind {
            TreeKind::Object(members) => members.get(key).map(|(span, _)| span.clone()),
            _ => None,
        }
    }
}

/// Scans text that must contain exactly one JSON value.
pub(super) fn scan(text: &str) -> Result<Tree, JsonError> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        open: Vec::new(),
    };
    scanner.skip_space();
    if scanner.peek().is_none() {
        return Err(fail(Problem::Empty, 0..text.len()));
    }
    let value = scanner.value()?;
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(value),
        Some(found @ (b']' | b'}')) => {
            Err(fail(Problem::ClosesNothing(found as char), scanner.here()))
        }
        Some(_) => Err(fail(Problem::SecondValue, scanner.here())),
    }
}

fn fail(problem: Problem, range: Range<usize>) -> JsonError {
    JsonError {
        problem,
        range,
        met: None,
    }
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The offsets of the open brackets.
    open: Vec<usize>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns the error for a bracket that is still open at a character that cannot be inside it.
    /// The error is placed at the bracket, because the bracket is the mistake.
    fn not_closed(&self, open: usize) -> JsonError {
        let here = self.here();
        let met = self.text[here.clone()].chars().next().unwrap_or_default();
        let problem = Problem::NotClosed {
            open: self.bytes[open] as char,
            met,
        };
        JsonError {
            problem,
            range: open..open + 1,
            met: Some(here),
        }
    }

    /// Returns the range of the character at the cursor; an empty range at the end of the text.
    fn here(&self) -> Range<usize> {
        let len = self.text[self.at..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        self.at..self.at + len
    }

    /// Returns the range of the token at the cursor, for messages that quote the token.
    fn token_here(&self) -> Range<usize> {
        match self.peek() {
            Some(b'"') => {
                let mut probe = Scanner {
                    text: self.text,
                    bytes: self.bytes,
                    at: self.at,
                    open: Vec::new(),
                };
                match probe.string() {
                    Ok(_) => self.at..probe.at,
                    Err(_) => self.here(),
                }
            }
            Some(byte) if is_word(byte) => self.word(),
            _ => self.here(),
        }
    }

    /// Returns the range up to the next structural character or line end.
    fn word(&self) -> Range<usize> {
        let rest = &self.text[self.at..];
        let len = rest
            .find(['{', '}', '[', ']', ',', ':', '"', '\n'])
            .unwrap_or(rest.len());
        self.at..self.at + rest[..len].trim_end().len().max(1)
    }

    /// Returns `true` if only whitespace precedes the cursor on its line.
    fn begins_line(&self) -> bool {
        self.text[..self.at]
            .lines()
            .next_back()
            .is_none_or(|line| line.trim().is_empty())
    }

    /// Returns an error if a comment begins at the cursor, because JSON has no comments. A `#`
    /// begins a comment only before a space or at the start of a line.
    fn comment(&self) -> Option<JsonError> {
        let rest = &self.text[self.at..];
        let mark = ["//", "/*", "#", "<!--"]
            .into_iter()
            .find(|mark| rest.starts_with(mark))?;
        let is_comment =
            mark != "#" || rest[1..].starts_with([' ', '\t', '#', '\n']) || self.begins_line();
        let line = rest.lines().next().unwrap_or_default().trim_end();
        let range = self.at..self.at + line.len();
        is_comment.then(|| fail(Problem::Comment(mark), self.clamp(&range)))
    }

    fn value(&mut self) -> Result<Tree, JsonError> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                self.string()?;
                Ok(self.scalar(start))
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Ok(self.scalar(start))
            }
            Some(b',') => Err(fail(Problem::MissingValue, self.here())),
            Some(found @ (b']' | b'}')) => Err(match self.open.last() {
                Some(&open) if pair(self.bytes[open]) == found => {
                    fail(Problem::MissingValue, self.here())
                }
                Some(&open) => self.not_closed(open),
                None => fail(Problem::ClosesNothing(found as char), self.here()),
            }),
            Some(_) => {
                for literal in ["true", "false", "null"] {
                    let rest = &self.text[self.at..];
                    if rest.starts_with(literal)
                        && !rest[literal.len()..].bytes().next().is_some_and(is_word)
                    {
                        self.at += literal.len();
                        return Ok(self.scalar(start));
                    }
                }
                if let Some(comment) = self.comment() {
                    return Err(comment);
                }
                let word = self.word();
                Err(fail(
                    Problem::Unquoted(cut(&self.text[self.clamp(&word)], 41).into_owned()),
                    self.clamp(&word),
                ))
            }
            None => Err(match self.open.last() {
                Some(&open) => fail(Problem::Unclosed(self.bytes[open] as char), open..open + 1),
                None => fail(Problem::Empty, start..start),
            }),
        }
    }

    /// Extends a range so that it ends at a character boundary.
    fn clamp(&self, range: &Range<usize>) -> Range<usize> {
        range.start..self.text.ceil_char_boundary(range.end)
    }

    fn scalar(&self, start: usize) -> Tree {
        Tree {
            span: start..self.at,
            kind: TreeKind::Scalar,
        }
    }

    fn enter(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        if self.open.len() >= MAX_DEPTH {
            return Err(fail(Problem::TooDeep, start..start + 1));
        }
        self.open.push(start);
        self.at += 1;
        self.skip_space();
        Ok(start)
    }

    fn array(&mut self) -> Result<Tree, JsonError> {
        let start = self.enter()?;
        let mut elements = Vec::new();
        if !self.closes(b']') {
            self.no_leading_comma()?;
            loop {
                let start = self.at;
                elements.push(self.value()?);
                let end = self.at;
                self.skip_space();
                if self.bytes[start] == b'"' && self.peek() == Some(b':') {
                    return Err(fail(Problem::MemberInList, start..end));
                }
                self.at = end;
                if self.separator(b']')? {
                    break;
                }
            }
        }
        Ok(self.leave(start, TreeKind::Array(elements)))
    }

    fn object(&mut self) -> Result<Tree, JsonError> {
        let start = self.enter()?;
        let mut members: IndexMap<String, (Range<usize>, Tree), RandomState> = IndexMap::default();
        if !self.closes(b'}') {
            self.no_leading_comma()?;
            loop {
                let (key, span) = self.key()?;
                let first = members.get(&key).map(|(span, _)| span.clone());
                let value = self.value()?;
                if let Some(first) = first {
                    return Err(fail(Problem::DuplicateKey(key, first), span));
                }
                members.insert(key, (span, value));
                if self.separator(b'}')? {
                    break;
                }
            }
        }
        Ok(self.leave(start, TreeKind::Object(members)))
    }

    fn leave(&mut self, start: usize, kind: TreeKind) -> Tree {
        self.at += 1;
        self.open.pop();
        Tree {
            span: start..self.at,
            kind,
        }
    }

    fn closes(&self, close: u8) -> bool {
        self.peek() == Some(close)
    }

    fn no_leading_comma(&self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b',') => Err(fail(Problem::LeadingComma, self.here())),
            _ => Ok(()),
        }
    }

    fn key(&mut self) -> Result<(String, Range<usize>), JsonError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            Some(b']' | b'}') | None => drop(self.value()?),
            // After a comma, the object was probably meant to end here. At the start of an object,
            // the value was probably meant as a key.
            Some(b'{' | b'[') if !self.text[..self.at].trim_end().ends_with('{') => {
                return Err(self.not_closed(*self.open.last().expect("a key belongs in an object")));
            }
            Some(_) => {
                let token = self.token_here();
                return Err(self
                    .comment()
                    .unwrap_or_else(|| fail(Problem::KeyNotString, self.clamp(&token))));
            }
        }
        let key = self.string()?;
        let span = start..self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(match self.peek() {
                None => self.value().expect_err("at the end there is no value"),
                Some(_) => fail(Problem::MissingColon, span),
            });
        }
        self.at += 1;
        self.skip_space();
        Ok((key, span))
    }

    /// Reads the separator after an element. Returns `true` for the closing bracket, and `false` if
    /// another element follows.
    fn separator(&mut self, close: u8) -> Result<bool, JsonError> {
        // A value always ends with an ASCII byte.
        let last = self.at.saturating_sub(1)..self.at;
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == close => return Ok(true),
            Some(b',') => {}
            Some(b']' | b'}') | None => {
                return Err(self
                    .value()
                    .expect_err("neither a closing bracket nor the end is a value"));
            }
            Some(_) => {
                return Err(self
                    .comment()
                    .unwrap_or_else(|| fail(Problem::MissingComma, last)));
            }
        }
        let comma = self.at;
        self.at += 1;
        self.skip_space();
        match self.peek() {
            Some(b',') => Err(fail(Problem::DoubledComma, self.here())),
            Some(byte) if byte == close => Err(fail(Problem::TrailingComma, comma..comma + 1)),
            _ => Ok(false),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(fail(Problem::UnterminatedString, start..start + 1)),
                Some(b'"') => break,
                Some(b'\\') => self.escape(start)?,
                Some(byte) if byte < 0x20 => {
                    return Err(fail(Problem::ControlCharacter(byte), self.here()));
                }
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(serde_json::from_str(&self.text[start..self.at]).unwrap_or_default())
    }

    fn escape(&mut self, string: usize) -> Result<(), JsonError> {
        let start = self.at;
        match self.bytes.get(start + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.unit(start)? {
                0xD800..=0xDBFF => match self.bytes.get(start + 6..start + 8) {
                    Some(b"\\u") if (0xDC00..=0xDFFF).contains(&self.unit(start + 6)?) => {
                        self.at += 12;
                    }
                    _ => return Err(fail(Problem::LoneSurrogate, start..start + 6)),
                },
                0xDC00..=0xDFFF => return Err(fail(Problem::LoneSurrogate, start..start + 6)),
                _ => self.at += 6,
            },
            Some(_) => {
                let end = self.text.ceil_char_boundary(start + 2);
                return Err(fail(Problem::BadEscape, start..end));
            }
            None => return Err(fail(Problem::UnterminatedString, string..string + 1)),
        }
        Ok(())
    }

    /// Returns the UTF-16 code unit of the escape `\uXXXX` at offset `at`.
    fn unit(&self, at: usize) -> Result<u32, JsonError> {
        let hex = self
            .text
            .get(at + 2..at + 6)
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        hex.and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .ok_or_else(|| fail(Problem::BadEscape, at..self.text.len().min(at + 2)))
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        if !is_number(text) {
            return Err(fail(Problem::BadNumber, start..self.at));
        }
        let integer = !text.contains(['.', 'e', 'E']);
        let fits = match integer {
            true => text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok(),
            false => text.parse::<f64>().is_ok_and(f64::is_finite),
        };
        if fits {
            Ok(())
        } else {
            Err(fail(Problem::NumberOutOfRange, start..self.at))
        }
    }
}

/// Returns `true` if text is a number as defined in section 6 of RFC 8259.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        ),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'_' | b'-' | b'$' | b'\'')
}

fn pair(open: u8) -> u8 {
    if open == b'{' { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_find_places() {
        let text = r#"{"a/b": [1, {"c": "x"}]}"#;
        let tree = scan(text).expect("valid");
        let pointer = Pointer::root().member("a/b").element(1).member("c");
        assert_eq!(
            &text[tree.locate(&pointer).expect("there").span.clone()],
            "\"x\""
        );
        assert_eq!(tree.locate(&Pointer::root().member("none")), None);
    }
}
