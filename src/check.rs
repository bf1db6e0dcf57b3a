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
    /// What is asked of the value: formats may ask different things of values at one place.
    pub asks: Option<String>,
    /// Where it is to be mended, if that is not what wrote the value.
    pub place: Option<Span>,
}

impl Problem {
    /// Whether the problem is the member's name rather than its value.
    pub fn is_about_key(&self) -> bool {
        self.rule.is_about_key
    }
}

/// What is wrong with a body, in the order of the schema.
///
/// A body is not marked as checked: whether one with problems may be used is decided by the policy of a run, which may lower
/// what was found.
pub fn check(schemas: &AgentSchemas, body: &Body) -> Vec<Problem> {
    schemas.problems_of_body(body)
}
