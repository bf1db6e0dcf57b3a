//! Splits Server-Sent Events into frames.
//!
//! This is our own code rather than a crate, because it is only a page long, and crates do not
//! cover three things: limits for every buffer, an event that the server did not end, and real
//! servers' deviations from the standard. The standard is
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>. `id` and `retry` are ignored,
//! because they serve reconnection, which is not possible within an answer.
//!
//! Beyond the standard:
//! - `error: {…}` is read as an event named `error` (llama.cpp reported failures in this way
//!   through 2025, ggml-org/llama.cpp#16109).
//! - A line that begins with `{` or `[` cannot be a field. The text from there to the next blank
//!   line is read as an event (Gemini reports failures in the middle of a stream as bare JSON).
//! - An event at the end of the connection is complete even without a blank line.

use super::Limits;
use super::frame::{Frame, frame, within};
use crate::runtime::Error;

/// The event received so far.
#[derive(Default)]
pub(super) struct Sse {
    line: Vec<u8>,
    /// `true` if the last line ended with a carriage return, which may still be followed by a line
    /// feed.
    after_return: bool,
    event: Option<String>,
    data: Vec<u8>,
    /// `true` if the lines are bare JSON.
    bare: bool,
    /// `true` if the current or latest line is a comment.
    is_comment: bool,
    /// The names of non-standard fields that have not been reported yet.
    unknown_fields: Vec<String>,
}

/// The maximum number of non-standard fields to remember.
const MOST_FIELDS: usize = 8;

/// The maximum length of a remembered field name, in bytes.
const LONGEST_FIELD: usize = 80;

impl Sse {
    /// Reads bytes up to the end of the next line. Returns the number of bytes read, and the event
    /// that they complete, if any.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        limits: Limits,
    ) -> Result<(usize, Option<Frame>), Error> {
        if std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n') {
            return Ok((1, None));
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        self.line
            .extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        within(
            self.line.len(),
            limits.line,
            "a line of the stream",
            "bytes",
        )?;
        self.is_comment = self.line.first() == Some(&b':');
        let Some(end) = end else {
            return Ok((bytes.len(), None));
        };
        self.after_return = bytes[end] == b'\r';
        let line = std::mem::take(&mut self.line);
        let frame = self.take_line(&line);
        within(
            self.data.len(),
            limits.event,
            "an event of the stream",
            "bytes",
        )?;
        Ok((end + 1, frame))
    }

    /// Returns `true` if the latest bytes belong to a comment.
    pub(super) fn was_comment(&self) -> bool {
        self.is_comment
    }

    /// Returns an event that the server has not ended, if there is one.
    pub(super) fn finish(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line).or_else(|| self.dispatch())
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Frame> {
        if line.is_empty() {
            return self.dispatch();
        }
        self.bare |= self.data.is_empty() && matches!(line[0], b'{' | b'[');
        if self.bare {
            self.add(line);
            return None;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = colon.map_or((line, &[][..]), |at| (&line[..at], &line[at + 1..]));
        self.field(name, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    /// Reads a field. A comment is a field without a name.
    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => self.add(value),
            b"event" => self.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"error" => {
                self.event = Some("error".to_owned());
                self.add(value);
            }
            // A comment, or reconnection data, which is not used.
            b"" | b"id" | b"retry" => {}
            unknown if self.unknown_fields.len() < MOST_FIELDS => {
                let name = &unknown[..unknown.len().min(LONGEST_FIELD)];
                self.unknown_fields
                    .push(String::from_utf8_lossy(name).into_owned());
            }
            // The limit of remembered fields is reached.
            _ => {}
        }
    }

    /// Removes and returns the names of non-standard fields.
    pub(super) fn unknown_fields(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unknown_fields)
    }

    fn add(&mut self, text: &[u8]) {
        if !self.data.is_empty() {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(text);
    }

    fn dispatch(&mut self) -> Option<Frame> {
        self.bare = false;
        frame(self.event.take(), &std::mem::take(&mut self.data))
    }
}

/// Returns `true` if a string may begin a stream.
pub(super) fn could_begin(text: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"", b"data", b"event", b"id", b"retry", b"error"];
    let line = text
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .next()
        .unwrap_or_default();
    match line.iter().position(|byte| *byte == b':') {
        Some(colon) => names.contains(&&line[..colon]),
        None => names.iter().any(|name| name.starts_with(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]], limits: Limits) -> Result<Vec<(String, String)>, Error> {
        let mut sse = Sse::default();
        let mut found = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let (taken, frame) = sse.take(rest, limits)?;
                rest = &rest[taken..];
                found.extend(frame);
            }
        }
        found.extend(sse.finish());
        Ok(found
            .into_iter()
            .map(|frame| (frame.event.unwrap_or_default(), frame.data))
            .collect())
    }

    fn all(text: &str) -> Vec<(String, String)> {
        events(&[text.as_bytes()], Limits::default()).expect("within limits")
    }

    fn one(event: &str, data: &str) -> (String, String) {
        (event.to_owned(), data.to_owned())
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("event: a{end}data: 1{end}{end}data:2{end}{end}");
            assert_eq!(all(&text), [one("a", "1"), one("", "2")], "{end:?}");
        }
    }

    #[test]
    fn lines_of_data_are_joined_and_comments_ignored() {
        assert_eq!(
            all(": hi\n\nid: 7\nretry: 10\ndata: {\ndata: }\n\ndata\n\n:\n"),
            [one("", "{\n}")]
        );
    }

    #[test]
    fn an_event_without_its_blank_line_counts() {
        assert_eq!(all("data: 1\n\ndata: 2"), [one("", "1"), one("", "2")]);
    }

    #[test]
    fn bare_json_and_error_fields_are_events() {
        assert_eq!(
            all("data: 1\n\n{\n  \"error\": 2\n}\n"),
            [one("", "1"), one("", "{\n  \"error\": 2\n}")]
        );
        assert_eq!(
            all("error: {\"code\":500}\n\n"),
            [one("error", "{\"code\":500}")]
        );
    }

    #[test]
    fn characters_survive_a_cut() {
        let text = "data: “😀”\r\n\r\n".as_bytes();
        for cut in 0..text.len() {
            let found =
                events(&[&text[..cut], &text[cut..]], Limits::default()).expect("within limits");
            assert_eq!(found, [one("", "“😀”")], "cut at {cut}");
        }
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let limits = Limits {
            line: 10,
            event: 12,
            answer: 1000,
        };
        assert!(events(&[b"data: 12345"], limits).is_err());
        assert!(events(&[b"data: 1234\ndata: 1234\ndata: 1234\n"], limits).is_err());
        assert!(events(&[b"data: 1234\n\ndata: 1234\n\n"], limits).is_ok());
    }
}
