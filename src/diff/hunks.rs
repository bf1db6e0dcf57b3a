//! Finds the lines in which two strings differ.

use similar::DiffTag;

use super::bounded;

/// Lines of a string that were replaced with other lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TextHunk {
    /// The removed lines.
    pub removed: Vec<String>,
    /// The added lines.
    pub added: Vec<String>,
}

/// Returns the changed lines, in order.
pub(super) fn hunks(old: &str, new: &str) -> Vec<TextHunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let operations = bounded::operations(&old, &new)
        .into_iter()
        .map(|operation| operation.as_tag_tuple());
    let differing = operations.filter(|(tag, ..)| *tag != DiffTag::Equal);
    differing
        .map(|(_, before, after)| TextHunk {
            removed: lines(&old[before]),
            added: lines(&new[after]),
        })
        .collect()
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
