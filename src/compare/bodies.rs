//! All bodies in a file, with the locations of their values.

use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use super::Side;
use crate::import::PickError;
use crate::json::{self, Pointer};
use crate::lint::{
    Content, FoundBody, Input, Places, Settings, content, find, place_in_record, recognise,
};
use crate::provider::WireFormat;
use crate::source::SourceText;

/// A body in a file.
#[derive(Debug, Clone)]
pub struct PlacedBody {
    /// The body as JSON.
    pub value: Value,
    /// The body's wire format.
    pub wire: WireFormat,
    /// The document, or the line of JSON Lines, that contains the body.
    text: Arc<str>,
    /// The number of the first line of `text` in the file.
    line: usize,
    /// The string in the text that contains the body as JSON; `None` if the body is not in a
    /// string.
    string: Option<Pointer>,
    /// The location of the body in the text or in that string.
    at: Pointer,
    /// The members of the body that are elsewhere in a log record.
    settings: Option<Settings>,
}

/// A location in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl PlacedBody {
    /// Creates a placed body from a whole document.
    pub fn whole(value: Value, wire: WireFormat, text: &str) -> PlacedBody {
        PlacedBody {
            value,
            wire,
            text: text.into(),
            line: 1,
            string: None,
            at: Pointer::root(),
            settings: None,
        }
    }

    /// Returns the body as a side of a comparison.
    pub fn side(&self) -> Side<'_> {
        Side {
            body: &self.value,
            wire: self.wire,
        }
    }

    /// Returns the line of the file on which the body begins.
    pub fn first_line(&self) -> usize {
        self.places(&[Pointer::root()])
            .first()
            .map_or(self.line, |place| place.line)
    }

    /// Returns the locations of values in the file, in the order of `pointers`.
    pub fn places(&self, pointers: &[Pointer]) -> Vec<LineColumn> {
        let mut places = Places::new(&self.text);
        let starts = pointers.iter().map(|pointer| {
            let pointer = place_in_record(&self.at, self.settings.as_ref(), pointer);
            places.of(self.string.as_ref(), &pointer, false).start
        });
        starts.map(|start| self.line_column(start)).collect()
    }

    fn line_column(&self, offset: usize) -> LineColumn {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        LineColumn {
            line: self.line + line,
            column,
        }
    }
}

/// Reads all bodies in a file: JSON, JSON Lines, a batch, a log or a HAR file. `wire` is the format
/// of the bodies, if it is known.
///
/// # Errors
///
/// Returns an error if the file cannot be read or has no body, or if a body's wire format cannot be
/// recognised.
pub fn bodies(reader: impl Read, wire: Option<WireFormat>) -> Result<Vec<PlacedBody>, PickError> {
    let mut found = Vec::new();
    match Input::open(reader)? {
        Input::Document(bytes) => read(1, &bytes, wire, &mut found)?,
        Input::Lines(mut lines) => loop {
            let chunk = lines.chunk()?;
            if chunk.is_empty() {
                break;
            }
            for line in &chunk {
                read(line.number, &line.bytes, wire, &mut found)?;
            }
        },
    }
    match found.is_empty() {
        true => Err(PickError::NoSuchBody {
            choice: crate::import::Choice::default(),
            bodies: 0,
        }),
        false => Ok(found),
    }
}

fn read(
    line: usize,
    bytes: &[u8],
    wire: Option<WireFormat>,
    found: &mut Vec<PlacedBody>,
) -> Result<(), PickError> {
    let source = SourceText::from_bytes(bytes).map_err(|why| broken(why.to_string(), line))?;
    let text = match content(source.as_str()) {
        Content::Document => source.as_str(),
        Content::DocumentFrom(at) => source.as_str().get(at..).unwrap_or_default(),
        Content::Text => return Ok(()),
    };
    let document = json::parse(text).map_err(|why| broken(why.to_string(), line))?;
    let text: Arc<str> = text.into();
    for FoundBody {
        value,
        string,
        at,
        endpoint,
        settings,
        ..
    } in find(document, wire).bodies
    {
        let of_url = endpoint.map(|endpoint| endpoint.wire);
        let wire = wire
            .or(of_url)
            .map_or_else(|| recognise(&value), Ok)
            .map_err(PickError::Format)?;
        found.push(PlacedBody {
            value,
            wire,
            text: Arc::clone(&text),
            line,
            string,
            at,
            settings,
        });
    }
    Ok(())
}

fn broken(why: String, line: usize) -> PickError {
    PickError::Broken { line, why }
}
