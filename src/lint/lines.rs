//! Reads a file line by line or as a whole. A JSON Lines file may be too large for memory.

use std::io::{BufRead, BufReader, Error, Read};

use crate::world::MAX_FILE_BYTES;

/// The maximum size of a JSON Lines file, in bytes.
const MOST: u64 = 64 << 30;

/// The maximum number of bytes that are skipped at the end of a line that is too large.
const MOST_SKIPPED: u64 = 1 << 30;

/// The size of the parts in which a log is read, in bytes. With the rest of its last line, a part
/// must not exceed the limit of a text.
const PART: u64 = MAX_FILE_BYTES / 2;

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line number, from 1.
    pub(crate) number: usize,
    /// The bytes of the line, without the line ending. A line that exceeds the limit is cut after
    /// its first byte beyond it.
    pub(crate) bytes: Vec<u8>,
}

/// A file, either as one document or as lines.
pub(crate) enum Input<R> {
    /// One document.
    Document(Vec<u8>),
    /// A document in each line.
    Lines(Lines<R>),
}

/// The reason why reading a file of bodies stops. Its message continues a sentence that begins with
/// the file's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputError {
    /// The reader failed.
    Failed(Error),
    /// A document or a line exceeds this number of bytes.
    Document(u64),
    /// All lines together exceed this number of bytes.
    Lines(u64),
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InputError::Failed(error) => Some(error),
            InputError::Document(_) | InputError::Lines(_) => None,
        }
    }
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InputError::Failed(error) => {
                write!(
                    f,
                    "cannot be read: {}",
                    error
                        .to_string()
                        .split(" (os error")
                        .next()
                        .unwrap_or_default()
                )
            }
            InputError::Document(limit) => {
                write!(f, "contains a document of more than {} MiB", limit >> 20)
            }
            InputError::Lines(limit) => write!(f, "is larger than {} GiB", limit >> 30),
        }
    }
}

/// The lines in a file that are not blank.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    read: u64,
    number: usize,
    /// `true` if the file has been found to consist of lines rather than one document.
    is_split: bool,
    /// `true` if the file begins with a line of text.
    is_log: bool,
    /// The lines that were read to detect the form of the file.
    ahead: std::collections::VecDeque<Line>,
}

impl<R: Read> Input<R> {
    /// Detects the form of a file by its first lines. The file consists of lines if the first line
    /// is a complete document and another document follows.
    pub(crate) fn open(reader: R) -> Result<Input<R>, InputError> {
        let mut lines = Lines::new(reader);
        let mut head = Vec::new();
        let (Some(first), Some(second)) =
            (lines.not_blank(&mut head)?, lines.not_blank(&mut head)?)
        else {
            return Ok(Input::Document(head));
        };
        let mut ahead = vec![first, second];
        let are_lines = are_lines(&ahead[0].bytes, &ahead[1].bytes);
        lines.is_log = !are_lines && lines.begin_with_text(&mut ahead, &mut head)?;
        if are_lines || lines.is_log {
            lines.ahead = ahead.into();
            lines.is_split = true;
            return Ok(Input::Lines(lines));
        }
        lines
            .reader
            .take(MAX_FILE_BYTES.saturating_sub(head.len() as u64) + 1)
            .read_to_end(&mut head)
            .map_err(InputError::Failed)?;
        match head.len() as u64 > MAX_FILE_BYTES {
            true => Err(InputError::Document(MAX_FILE_BYTES)),
            false => Ok(Input::Document(head)),
        }
    }
}

/// Returns `true` if two consecutive lines are separate documents.
fn are_lines(first: &[u8], second: &[u8]) -> bool {
    let is_open = first
        .trim_ascii_end()
        .last()
        .is_none_or(|last| b"{[,:".contains(last));
    is_whole(first) || begins(first) && begins(second) && !is_open
}

/// Returns `true` if a line begins an object. If two consecutive lines both begin an object, they
/// are separate documents, unless the first line is still open at its end.
fn begins(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{")
}

fn is_whole(line: &[u8]) -> bool {
    is_json(line.strip_prefix(BOM).unwrap_or(line))
}

/// The maximum number of text lines that are skipped to find a log line with a document.
const MOST_AHEAD: usize = 200;

/// The content of a line in a JSON Lines file or a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A document, even if it is broken.
    Document,
    /// Text, followed by a JSON object from this offset to the end of the line:
    /// `2027-01-31 INFO {"model": …}`.
    DocumentFrom(usize),
    /// Only text.
    Text,
}

/// Returns the content of a line. A line that begins like a document is treated as one, even if it
/// is broken.
pub(crate) fn content(line: &str) -> Content {
    let trimmed = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    let inner = trimmed.strip_prefix('[').map(str::trim_start);
    let begins = trimmed.starts_with('{')
        || inner.is_some_and(|inner| inner.is_empty() || inner.starts_with(['{', '[', '"', ']']));
    if begins || is_json(trimmed.as_bytes()) {
        return Content::Document;
    }
    let starts = memchr::memchr_iter(b'{', line.as_bytes()).take(MOST_STARTS);
    let whole = starts
        .into_iter()
        .find(|start| is_json(&line.as_bytes()[*start..]));
    whole.map_or(Content::Text, Content::DocumentFrom)
}

/// The maximum number of braces in a line that are tried as the start of a document.
const MOST_STARTS: usize = 16;

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

const BOM: &[u8] = "\u{feff}".as_bytes();

impl<R: Read> Lines<R> {
    fn new(reader: R) -> Lines<R> {
        Lines {
            reader: BufReader::with_capacity(1 << 16, reader),
            read: 0,
            number: 0,
            is_split: false,
            is_log: false,
            ahead: [].into(),
        }
    }

    /// Returns `true` if the file begins with a line of text.
    pub(crate) fn are_of_log(&self) -> bool {
        self.is_log
    }

    /// Reads the next lines as one text, up to [`PART`] and the end of the line there. Returns the text and the number of its first line. The text is empty at the end of the file.
    pub(crate) fn text(&mut self) -> Result<(usize, Vec<u8>), InputError> {
        let first = self
            .ahead
            .front()
            .map_or(self.number + 1, |line| line.number);
        let (mut text, mut number) = (Vec::new(), first);
        for line in self.ahead.drain(..) {
            text.extend(std::iter::repeat_n(b'\n', line.number - number));
            text.extend(line.bytes);
            text.push(b'\n');
            number = line.number + 1;
        }
        let most = PART.saturating_sub(text.len() as u64);
        let start = text.len();
        (&mut self.reader)
            .take(most)
            .read_to_end(&mut text)
            .map_err(InputError::Failed)?;
        if text.len() as u64 >= PART && !text.ends_with(b"\n") {
            (&mut self.reader)
                .take(MAX_FILE_BYTES)
                .read_until(b'\n', &mut text)
                .map_err(InputError::Failed)?;
        }
        self.read += (text.len() - start) as u64;
        self.number = number - 1 + memchr::memchr_iter(b'\n', &text[start..]).count();
        match self.read > MOST {
            true => Err(InputError::Lines(MOST)),
            false => Ok((first, text)),
        }
    }

    /// Returns `true` if a file begins with lines of text, followed by a line with a document.
    /// Keeps the lines that it reads.
    fn begin_with_text(
        &mut self,
        ahead: &mut Vec<Line>,
        head: &mut Vec<u8>,
    ) -> Result<bool, InputError> {
        for at in 0..MOST_AHEAD {
            if at == ahead.len() {
                let next = self.not_blank(head)?;
                let is_large = head.len() as u64 > MAX_FILE_BYTES;
                let Some(line) = next.filter(|_| !is_large) else {
                    return Ok(false);
                };
                ahead.push(line);
            }
            let text = String::from_utf8_lossy(&ahead[at].bytes);
            match content(&text) {
                Content::Text => {}
                Content::DocumentFrom(_) => return Ok(true),
                // If the first line were a document, it would have been recognised.
                Content::Document => return Ok(at > 0 && is_json(text.trim().as_bytes())),
            }
        }
        Ok(false)
    }

    /// Returns the next lines: enough to share among threads, but only a few if they are large.
    pub(crate) fn chunk(&mut self) -> Result<Vec<Line>, InputError> {
        const LINES: usize = 512;
        const BYTES: usize = 4 << 20;
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < LINES && bytes < BYTES {
            let Some(line) = self.next()? else { break };
            bytes += line.bytes.len();
            chunk.push(line);
        }
        Ok(chunk)
    }

    /// Skips the rest of a line that is too large.
    fn skip_line(&mut self) -> Result<(), InputError> {
        let most = self.read + MOST_SKIPPED;
        loop {
            if self.read > most {
                return Err(InputError::Document(MAX_FILE_BYTES));
            }
            let buffer = self.reader.fill_buf().map_err(InputError::Failed)?;
            let end = memchr::memchr(b'\n', buffer);
            let skipped = end.map_or(buffer.len(), |at| at + 1);
            self.reader.consume(skipped);
            self.read += skipped as u64;
            if end.is_some() || skipped == 0 {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Option<Line>, InputError> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.not_blank(&mut Vec::new()),
        }
    }

    /// Returns the next line that is not blank; adds everything that was read to `head`.
    fn not_blank(&mut self, head: &mut Vec<u8>) -> Result<Option<Line>, InputError> {
        loop {
            let start = head.len();
            let mut reader = (&mut self.reader).take(MAX_FILE_BYTES + 1);
            let read = reader.read_until(b'\n', head).map_err(InputError::Failed)? as u64;
            self.read += read;
            self.number += 1;
            if read > MAX_FILE_BYTES {
                // The other lines can be read only if the file is known to consist of lines.
                if !self.is_split {
                    return Err(InputError::Document(MAX_FILE_BYTES));
                }
                self.skip_line()?;
            }
            if self.read > MOST {
                return Err(InputError::Lines(MOST));
            }
            if read == 0 {
                return Ok(None);
            }
            let line = head[start..].strip_suffix(b"\n").unwrap_or(&head[start..]);
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Line {
                    number: self.number,
                    bytes: line.to_vec(),
                }));
            }
            // Large numbers of blank lines are dropped. Blank lines before a document are kept, so
            // that its line numbers stay correct.
            if head.len() as u64 > MAX_FILE_BYTES {
                return Err(InputError::Document(MAX_FILE_BYTES));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Option<Vec<(usize, String)>> {
        match Input::open(text.as_bytes()).expect("it is read") {
            Input::Document(bytes) => {
                assert_eq!(bytes, text.as_bytes());
                None
            }
            Input::Lines(mut lines) => Some(
                lines
                    .chunk()
                    .expect("read")
                    .into_iter()
                    .map(|line| (line.number, String::from_utf8(line.bytes).expect("text")))
                    .collect(),
            ),
        }
    }

    #[test]
    fn documents_and_lines_are_told_apart() {
        for document in [
            "",
            "\n\n",
            "{}",
            "\n{}\n",
            "{\n}\n",
            "[\n{}\n]",
            "{\"a\":\n{}}",
            "[1,\n2]",
            "\u{feff}{\n}",
        ] {
            assert_eq!(lines(document), None, "{document:?}");
        }
        let all = [(1, "{}".to_owned()), (3, "{".to_owned())];
        assert_eq!(lines("{}\n\n{\n").as_deref(), Some(&all[..]));
        assert!(lines("\u{feff}{}\n{}").is_some());
        assert!(
            lines("{\"a\": x}\n{\"a\": 1}\n").is_some(),
            "a first line that is broken"
        );
        for log in [
            "started\n{}\n",
            "[INFO] up\nready\n\n12:00 {\"a\": 1}\n",
            "10:00 a {x} {\"a\": 1}\nb\n",
        ] {
            assert!(lines(log).is_some(), "{log:?}");
        }
        for text in ["a\nb\n", "a\n{\n}\n", "a: 1\nb: {\n"] {
            assert_eq!(lines(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_large_does_not_hide_the_others() {
        let huge = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_FILE_BYTES as usize));
        let text = format!("{{}}\n{{}}\n{huge}\n{{}}\n");
        let Ok(Input::Lines(mut lines)) = Input::open(text.as_bytes()) else {
            panic!("these are lines");
        };
        let mut read = Vec::new();
        while let Some(line) = lines.next().expect("it is read") {
            read.push((line.number, line.bytes.len() as u64));
        }
        assert_eq!(read, [(1, 2), (2, 2), (3, MAX_FILE_BYTES + 1), (4, 2)]);
        assert!(matches!(
            Input::open(huge.as_bytes()),
            Err(InputError::Document(_))
        ));
    }

    #[test]
    fn a_log_is_read_in_large_parts() {
        let line = format!("12:00 {{\"a\": \"{}\"}}\n", "x".repeat(1 << 20));
        let count = (PART >> 20) as usize + 3;
        let log = format!("\nstarted\n\n{}", line.repeat(count));
        let Ok(Input::Lines(mut lines)) = Input::open(log.as_bytes()) else {
            panic!("these are lines");
        };
        assert!(lines.are_of_log());
        let (first, text) = lines.text().expect("it is read");
        assert_eq!(first, 2);
        let (second, rest) = lines.text().expect("it is read");
        assert_eq!(second, 2 + memchr::memchr_iter(b'\n', &text).count());
        assert!((PART..MAX_FILE_BYTES).contains(&(text.len() as u64)) && text.ends_with(b"\n"));
        assert_eq!([b"\n", &text[..], &rest[..]].concat(), log.as_bytes());
        assert!(lines.text().expect("it is read").1.is_empty());
    }

    #[test]
    fn text_before_a_document_is_none_of_it() {
        assert_eq!(
            content("2027-01-31 INFO {\"a\": {}} "),
            Content::DocumentFrom(16)
        );
        assert_eq!(
            content("[12:00] {x} é {\"a\": 1}"),
            Content::DocumentFrom(15)
        );
        assert_eq!(
            ["{\"a\":", "[{", "\u{feff}{}", "null", "7"].map(content),
            [Content::Document; 5]
        );
        assert_eq!(
            ["started", "[INFO] up", "a {\"b\": 1} c", "12:00"].map(content),
            [Content::Text; 4]
        );
    }
}
