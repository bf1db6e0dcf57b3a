//! Finds the changes between two bodies by JSON pointer, and groups equal changes in many bodies.
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

use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag};

/// Returns the operations that convert the old lines to the new lines.
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

/// The number of equal lines shown around changes.
const CONTEXT: usize = 3;

/// Returns a textual diff of a file. It starts with `diff a/NAME b/NAME`, because Buildkite treats
/// the usual `--- a/NAME` as the title of a group.
pub fn textual(old: &str, new: &str, name: &str) -> String {
    format!("diff a/{name} b/{name}\n{}", unified(old, new))
}

/// Returns the hunks of a unified diff.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut text = String::new();
    for hunk in similar::group_diff_ops(line_operations(&old, &new), CONTEXT) {
        text.push_str(&format!("{}\n", UnifiedHunkHeader::new(&hunk)));
        for operation in hunk {
            let (tag, before, after) = operation.as_tag_tuple();
            if tag == DiffTag::Equal {
                add_lines(&mut text, ' ', &old[before]);
            } else {
                add_lines(&mut text, '-', &old[before]);
                add_lines(&mut text, '+', &new[after]);
            }
        }
    }
    text
}

fn add_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}
