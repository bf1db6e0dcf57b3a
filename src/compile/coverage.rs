//! What the contexts reach of the templates: lines, outcomes of decisions, macros, whole templates.
//!
//! What no conversation can reach is excused in the template, on its line:
//! `{# no coverage: REASON #}`.

mod measured;
mod reaching;

pub use measured::{Coverage, FileCoverage, Gap, GapKind, Share, Split};
pub use reaching::Reaching;
