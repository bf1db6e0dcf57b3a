//! What changed between two bodies, by JSON pointer, and equal changes of many bodies as one.
//!
//! Input: pairs of JSON values. Output: [`Change`]s and [`Group`]s as data; printing is [`report`](crate::report)'s
//! business.

mod group;
mod structural;

pub use group::{Group, Subject, group};
pub use structural::{Change, ChangeKind, FileChange, structural};

use similar::TextDiff;

/// A textual diff with three lines of context, for those who ask for it.
pub fn textual(old: &str, new: &str, name: &str) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}
