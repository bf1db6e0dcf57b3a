//! Finds the changes between two bodies by JSON pointer, and groups equal changes of many bodies.
//!
//! Input: pairs of JSON values, or files that contain them. Output: [`Change`]s and [`Group`]s as
//! data; [`report`](crate::report) prints them, and the caller provides the cause of a change.

mod bounded;
mod hunks;
mod structural;
mod group;
mod file;
mod cause;
mod words;

pub use cause::{CausedGroup, alike, grouped};
pub use file::ChangedFile;
pub(crate) use group::mark_moved;
pub use group::{BodyId, Group, group};
pub use hunks::TextHunk;
pub use structural::{Change, ChangeKind, FileChange, structural};
pub use words::{Word, words};

use similar::{DiffOp, TextDiff};

/// Returns the operations that convert some lines to others.
pub(crate) fn line_operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    bounded::operations(old, new)
}

/// Returns the similarity of two strings by lines, from 0 to 1.
pub(crate) fn similarity(old: &str, new: &str) -> f32 {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    similar::diff_ratio(&line_operations(&old, &new), old.len(), new.len())
}

/// Returns the similarity of two strings by words, from 0 to 1.
pub(crate) fn word_similarity(old: &str, new: &str) -> f32 {
    let (old, new) = (words_of(old), words_of(new));
    similar::diff_ratio(&line_operations(&old, &new), old.len(), new.len())
}

fn words_of(text: &str) -> Vec<&str> {
    str::split_inclusive(text, |c: char| !c.is_alphanumeric()).collect()
}

/// Returns a textual diff with three lines of context. If long strings have little in common,
/// everything between the first and the last difference is replaced. It starts with
/// `diff a/NAME b/NAME`, because Buildkite treats the usual `--- a/NAME` as the title of a group.
pub fn textual(old: &str, new: &str, name: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    let header = format!("diff a/{name} b/{name}\n");
    if bounded::is_cheap(&before, &after) {
        return format!(
            "{header}{}",
            TextDiff::from_lines(old, new)
                .unified_diff()
                .context_radius(3)
        );
    }
    let (removed, added) = bounded::middles(&before, &after);
    let hunk = format!("@@ -{} +{} @@\n", place(&removed), place(&added));
    let removed = before[removed].iter().map(|it| line('-', it));
    let added = after[added].iter().map(|it| line('+', it));
    [header, hunk]
        .into_iter()
        .chain(removed)
        .chain(added)
        .collect()
}

fn place(range: &std::ops::Range<usize>) -> String {
    format!("{},{}", range.start + 1, range.len())
}

fn line(sign: char, line: &str) -> String {
    format!("{sign}{}\n", line.trim_end_matches('\n'))
}
