//! Masks fragments of keys in the messages of findings. For example, a template parses a key
//! without quotes as a subtraction of names, and reports one of the names as undefined.

use std::collections::HashSet;

use crate::diag::Diagnostic;
use crate::source::{FileId, Sources};

/// Masks fragments of keys in the messages of findings. Only keys in the files that a finding
/// points into are masked.
pub(super) fn hide(findings: &mut [Diagnostic], sources: &Sources) {
    for finding in findings {
        let labels = std::iter::once(&finding.primary).chain(&finding.related);
        let files: HashSet<FileId> = labels.map(|label| label.span.file).collect();
        for piece in files
            .into_iter()
            .flat_map(|file| sources.get(file).masked_pieces())
        {
            mask(finding, piece);
        }
    }
}

fn mask(finding: &mut Diagnostic, piece: &str) {
    let labels = std::iter::once(&mut finding.primary).chain(&mut finding.related);
    let said = labels
        .map(|label| &mut label.message)
        .chain([&mut finding.message])
        .chain(&mut finding.help);
    for text in said.filter(|text| text.contains(piece)) {
        *text = text.replace(piece, &"*".repeat(piece.len()));
    }
}
