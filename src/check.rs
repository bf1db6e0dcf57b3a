//! Rules of content: what is wrong with a body that is valid JSON.
//!
//! Input: a [`Body`] and its plan. Output: [`Problem`]s at JSON pointers; the compiler turns them into findings at the
//! lines that wrote them. One folder or file per family of rules. Nothing here reads files or prints.

pub(crate) mod schema;

pub use schema::{AgentSchemas, Schemas};

use crate::diag::Rule;
use crate::json::Pointer;
use crate::source::Span;
use crate::unit::Body;

/// Something wrong at a place of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// Where in the body.
    pub pointer: Pointer,
    /// One lower-case phrase.
    pub message: String,
    /// The next step.
    pub help: Option<String>,
    /// Where it is to be mended, if that is not what wrote the value.
    pub place: Option<Span>,
}

impl Problem {
    /// Whether the problem is the member's name rather than its value.
    pub fn is_about_key(&self) -> bool {
        self.rule.is_about_key
    }
}

/// A body that every check accepted. Only this module makes one.
#[derive(Debug)]
pub struct CheckedBody<'b>(&'b Body);

impl CheckedBody<'_> {
    /// The body.
    pub fn body(&self) -> &Body {
        self.0
    }
}

/// Checks one body.
///
/// # Errors
///
/// The problems, in the order of the schema.
pub fn check<'b>(schemas: &AgentSchemas, body: &'b Body) -> Result<CheckedBody<'b>, Vec<Problem>> {
    let problems = schemas.problems_of_body(body);
    if problems.is_empty() { Ok(CheckedBody(body)) } else { Err(problems) }
}
