//! Measures how much of the templates the contexts cover: lines, outcomes of decisions, macros, and
//! whole templates.
//!
//! Code that no conversation can reach is excused by a comment on its line:
//! `{# no coverage: REASON #}`.

mod measured;
mod reaching;

pub use measured::{Coverage, FileCoverage, Gap, GapKind, Share, Split};
pub use reaching::Reaching;
