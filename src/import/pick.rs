//! The body of a file that is imported.

use std::io::Read;

use crate::json;
use crate::lint::{Endpoint, FoundBody, Input, find, recognise};
use crate::provider::WireFormat;
use crate::source::SourceText;

/// Which body of a file, counted from 1; the first if nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// On a line of JSON Lines.
    pub line: Option<usize>,
    /// Among all bodies, or those of the line.
    pub body: Option<usize>,
}

/// A body of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Picked {
    /// The body.
    pub value: serde_json::Value,
    /// Its wire format.
    pub wire: WireFormat,
    /// How many bodies there were to choose from.
    pub bodies: usize,
}

/// Finds a body in a file: JSON, JSON Lines, a batch, a log or a HAR file. `wire` is its format, if somebody said so.
///
/// # Errors
///
/// A phrase that goes on after the file's name: it cannot be read, holds no such body, or the wire format is not certain.
pub fn pick(reader: impl Read, wire: Option<WireFormat>, choice: Choice) -> Result<Picked, String> {
    let mut search = Search { wire, choice, bodies: 0, found: None, broken: None };
    match Input::open(reader).map_err(|why| why.to_string())? {
        Input::Document(bytes) if choice.line.is_none_or(|line| line == 1) => search.document(1, &bytes),
        Input::Document(_) => return Err("is one document, not JSON Lines: it has no other line".to_owned()),
        Input::Lines(mut lines) => loop {
            let chunk = lines.chunk().map_err(|why| why.to_string())?;
            if chunk.is_empty() {
                break;
            }
            let wanted = chunk.iter().filter(|line| choice.line.is_none_or(|number| number == line.number));
            wanted.for_each(|line| search.document(line.number, &line.bytes));
        },
    }
    search.picked()
}

struct Search {
    wire: Option<WireFormat>,
    choice: Choice,
    bodies: usize,
    found: Option<FoundBody>,
    /// The first line that is no JSON, and why.
    broken: Option<String>,
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
        for body in find(document, self.wire).bodies {
            self.bodies += 1;
            if self.bodies == self.choice.body.unwrap_or(1) {
                self.found = Some(body);
            }
        }
    }

    fn is_broken(&mut self, line: usize, why: &str) {
        self.broken.get_or_insert_with(|| format!("line {line}: {why}"));
    }

    fn picked(self) -> Result<Picked, String> {
        let Some(FoundBody { value, endpoint, .. }) = self.found else { return Err(self.nothing()) };
        let of_url = |endpoint: &Endpoint| endpoint.wire;
        let wire = self.wire.or(endpoint.as_ref().map(of_url)).map_or_else(|| recognise(&value), Ok);
        let wire = wire.map_err(|why| format!("is not certain: {why}"))?;
        Ok(Picked { value, wire, bodies: self.bodies })
    }

    fn nothing(self) -> String {
        let place = self.choice.line.map_or_else(String::new, |line| format!(" on line {line}"));
        match (self.bodies, self.broken) {
            (0, Some(why)) => format!("cannot be read: {why}"),
            (0, None) => format!("holds no request body{place}"),
            (bodies, _) => {
                format!("holds {}{place}, not {}", crate::diag::count(bodies, "body"), self.choice.body.unwrap_or(1))
            }
        }
    }
}
