//! Finds the body to import in a file.

use std::fmt;
use std::io::Read;

use crate::diag::count;
use crate::json;
use crate::lint::{FoundBody, Input, InputError, Unrecognised, find, recognise};
use crate::provider::WireFormat;
use crate::source::SourceText;

/// Selects a body in a file, counting from 1. The first body is the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// The line number, in a JSON Lines file.
    pub line: Option<usize>,
    /// The number of the body among all bodies, or among the bodies on the line.
    pub body: Option<usize>,
}

/// A body in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Picked {
    /// The body as JSON.
    pub value: serde_json::Value,
    /// The body's wire format.
    pub wire: WireFormat,
    /// The number of bodies to choose from.
    pub bodies: usize,
}

/// Finds a body in a file: JSON, JSON Lines, a batch, a log or a HAR file. `wire` is the format of
/// the bodies, if it is known.
///
/// # Errors
///
/// Returns an error if the file cannot be read or has no such body, or if the wire format cannot be
/// recognised.
pub fn pick(
    reader: impl Read,
    wire: Option<WireFormat>,
    choice: Choice,
) -> Result<Picked, PickError> {
    let mut search = Search {
        wire,
        choice,
        bodies: 0,
        found: None,
        broken: None,
        is_session: false,
    };
    match Input::open(reader)? {
        Input::Document(bytes) if choice.line.is_none_or(|line| line == 1) => {
            search.document(1, &bytes);
        }
        Input::Document(_) => return Err(PickError::NoLines),
        Input::Lines(mut lines) => loop {
            let chunk = lines.chunk()?;
            if chunk.is_empty() {
                break;
            }
            let wanted = chunk
                .iter()
                .filter(|line| choice.line.is_none_or(|number| number == line.number));
            wanted.for_each(|line| search.document(line.number, &line.bytes));
        },
    }
    search.picked()
}

/// The reason no body was found. The message continues a sentence that begins with the file's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum PickError {
    /// The file cannot be read, or is too large.
    Input(InputError),
    /// A line was requested, but the file is one document.
    NoLines,
    /// The first line that might be a body is not JSON.
    Broken {
        /// The line, counted from 1.
        line: usize,
        /// The mistake, as a phrase.
        why: String,
    },
    /// The file does not have the requested body.
    NoSuchBody {
        /// The requested body.
        choice: Choice,
        /// The number of bodies in the file, or on the requested line.
        bodies: usize,
    },
    /// The wire format of the body cannot be recognised.
    Format(Unrecognised),
    /// The file is a session log, whose lines are not bodies.
    Session,
}

impl fmt::Display for PickError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PickError::Input(why) => why.fmt(f),
            PickError::NoLines => f.write_str("is one document, not JSON Lines: it has no other line"),
            PickError::Broken { line, why } => write!(f, "cannot be read: line {line}: {why}"),
            PickError::NoSuchBody { choice, bodies } => {
                let place = choice.line.map_or_else(String::new, |line| format!(" on line {line}"));
                match bodies {
                    0 => write!(f, "contains no request body{place}"),
                    _ => write!(f, "contains {}{place}, not {}", count(*bodies, "body"), choice.body.unwrap_or(1)),
                }
            }
            PickError::Format(why @ Unrecognised::Unsupported(_)) => write!(f, "cannot be read: {why}"),
            PickError::Format(why) => write!(f, "is ambiguous: {why}"),
            PickError::Session => f.write_str(
                "is a session, not a request body: `reqc send AGENT --resume FILE --dry-run` prints the next body",
            ),
        }
    }
}

impl std::error::Error for PickError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PickError::Input(why) => Some(why),
            PickError::Format(why) => Some(why),
            _ => None,
        }
    }
}

impl From<InputError> for PickError {
    fn from(why: InputError) -> PickError {
        PickError::Input(why)
    }
}

struct Search {
    wire: Option<WireFormat>,
    choice: Choice,
    bodies: usize,
    found: Option<FoundBody>,
    /// The first line that is not JSON, and the mistake.
    broken: Option<(usize, String)>,
    is_session: bool,
}

impl Search {
    fn document(&mut self, line: usize, bytes: &[u8]) {
        let text = match SourceText::from_bytes(bytes) {
            Ok(text) => text,
            Err(error) => return self.is_broken(line, &error.to_string()),
        };
        let document = match json::parse(text.as_str()) {
            Ok(document) => document,
            Err(error) => return self.is_broken(line, &error.to_string()),
        };
        self.is_session |= line == 1 && is_session(&document);
        for body in find(document, self.wire).bodies {
            self.bodies += 1;
            if self.bodies == self.choice.body.unwrap_or(1) {
                self.found = Some(body);
            }
        }
    }

    fn is_broken(&mut self, line: usize, why: &str) {
        self.broken.get_or_insert_with(|| (line, why.to_owned()));
    }

    fn picked(self) -> Result<Picked, PickError> {
        if self.is_session {
            return Err(PickError::Session);
        }
        let Some(FoundBody {
            value, endpoint, ..
        }) = self.found
        else {
            return Err(self.nothing());
        };
        let wire = self
            .wire
            .or(endpoint.as_ref().map(|endpoint| endpoint.wire))
            .map_or_else(|| recognise(&value), Ok);
        let wire = wire.map_err(PickError::Format)?;
        Ok(Picked {
            value,
            wire,
            bodies: self.bodies,
        })
    }

    fn nothing(self) -> PickError {
        match (self.bodies, self.broken) {
            (0, Some((line, why))) => PickError::Broken { line, why },
            (bodies, _) => PickError::NoSuchBody {
                choice: self.choice,
                bodies,
            },
        }
    }
}

/// Returns `true` if a document is the first line of a session log.
fn is_session(document: &serde_json::Value) -> bool {
    document.get("kind").is_some_and(|kind| kind == "session")
        && document.get("version").is_some()
        && has_text("agent", document)
}

fn has_text(name: &str, document: &serde_json::Value) -> bool {
    document.get(name).is_some_and(serde_json::Value::is_string)
}
