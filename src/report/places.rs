//! The locations of findings, with paths as other programs expect them, and fingerprints that
//! identify findings.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::diag::Diagnostic;
use crate::source::{BUNDLED, Sources, Span, is_bundled};
use crate::text::hex;

/// The location of a report's folder in its checkout. A report's paths are relative to this folder,
/// but CI systems need paths relative to the root of the checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    /// The folder relative to the root of the checkout: `""` or `a/b`.
    folder: String,
}

/// A location with one-based numbers. Columns count characters, and the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) end_line: usize,
    pub(super) end_column: usize,
}

impl Region {
    pub(super) fn of(span: Span, sources: &Sources) -> Region {
        let file = sources.get(span.file);
        let (start, end) = (
            file.position(span.start as usize),
            file.position(span.end as usize),
        );
        Region {
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }
}

impl Checkout {
    /// Creates a `Checkout` for reports whose paths start from this folder; `""` is the root of the
    /// checkout.
    pub fn at(folder: impl Into<String>) -> Checkout {
        Checkout {
            folder: folder.into(),
        }
    }

    /// Returns a path relative to the root of the checkout. The names of bundled files and of files
    /// outside the checkout are unchanged.
    pub(super) fn path<'p>(&self, shown: &'p str) -> Cow<'p, str> {
        let is_foreign = is_bundled(shown) || shown.starts_with('/');
        if is_foreign || self.folder.is_empty() {
            return Cow::Borrowed(shown);
        }
        let (mut folders, mut rest) = (self.folder.as_str(), shown);
        while let Some(above) = rest.strip_prefix("../") {
            if folders.is_empty() {
                return Cow::Borrowed(shown);
            }
            (folders, rest) = (
                folders.rsplit_once('/').map_or("", |(parent, _)| parent),
                above,
            );
        }
        Cow::Owned(if folders.is_empty() {
            rest.to_owned()
        } else {
            format!("{folders}/{rest}")
        })
    }
}

/// Returns the path of a bundled file, relative to the bundled files' own root.
pub(super) fn bundled_path(shown: &str) -> Option<&str> {
    shown.strip_prefix(BUNDLED)
}

/// Fingerprints of a report's findings, which stay the same if lines are moved. Each consists of
/// the rule, the file, and the text that the finding points at, with a number to distinguish equal
/// findings.
#[derive(Debug, Default)]
pub(super) struct Fingerprints(HashMap<[u8; 32], usize>);

/// The maximum length, in bytes, of a line that is used as a whole for a fingerprint. Only the
/// labelled part of a longer line is used.
const LONGEST_LINE: usize = 400;

impl Fingerprints {
    /// Returns the fingerprint of the next finding, in the report's order: 32 hexadecimal digits.
    pub(super) fn next(&mut self, finding: &Diagnostic, sources: &Sources) -> String {
        let file = sources.get(finding.primary.span.file);
        let text = cited(finding.primary.span, sources);
        let parts = [finding.rule.code, file.path(), text.trim()];
        let same: [u8; 32] = digest(&parts);
        let number = self.0.entry(same).or_default();
        *number += 1;
        let whole = digest(&[&hex(&same), &number.to_string()]);
        hex(&whole[..16])
    }
}

/// Returns the text that a finding points at, in a form that is safe to display.
fn cited(span: Span, sources: &Sources) -> Cow<'_, str> {
    let (file, range) = (sources.get(span.file), span.range());
    let text = file.text();
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text
        .ceil_char_boundary(range.end.min(text.len()))
        .max(start);
    file.shown(
        file.line_around(start, LONGEST_LINE)
            .unwrap_or_else(|| start..text.floor_char_boundary(end.min(start + LONGEST_LINE))),
    )
}

/// Returns the SHA-256 of several parts. The length of each part is included, so that no finding
/// can be forged to have the fingerprint of a different one.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ERROR, find, source};
    use super::*;

    #[test]
    fn paths_start_at_the_top_of_the_checkout() {
        let checkout = Checkout::at("team/prompts");
        assert_eq!(checkout.path("agents/a.toml"), "team/prompts/agents/a.toml");
        assert_eq!(checkout.path("agents/"), "team/prompts/agents/");
        assert_eq!(checkout.path("../log.json"), "team/log.json");
        assert_eq!(checkout.path("../../log.json"), "log.json");
        assert_eq!(checkout.path("../../../log.json"), "../../../log.json");
        assert_eq!(
            checkout.path("bundled:agents/a.toml"),
            "bundled:agents/a.toml"
        );
        assert_eq!(checkout.path("/tmp/a"), "/tmp/a");
        assert_eq!(Checkout::default().path("agents/a.toml"), "agents/a.toml");
    }

    #[test]
    fn fingerprints_survive_moved_lines_and_tell_equal_ones_apart() {
        let prints = |text: &str| -> Vec<String> {
            let mut sources = Sources::default();
            let file = source(&mut sources, "a.toml", text);
            let first = Diagnostic::new(&ERROR, find(&sources, file, "x"), "m");
            let last = text.rfind('x').expect("it is there");
            let second = Diagnostic::new(&ERROR, Span::new(file, last..last + 1), "m");
            let mut prints = Fingerprints::default();
            [first, second]
                .iter()
                .map(|finding| prints.next(finding, &sources))
                .collect()
        };
        let (plain, moved) = (
            prints("x = 1\nx = 1\n"),
            prints("# new\n\n  x = 1\n# new\nx = 1\n"),
        );
        assert_eq!(plain, moved);
        assert_ne!(plain[0], plain[1]);
        assert_ne!(plain[0], prints("x = 2\nx = 1\n")[0]);
    }
}
