//! Pieces of keys in what findings say: a template, for instance, reads a key without quotes as a
//! difference of names, and calls one of them undefined.

use std::collections::HashSet;

use crate::diag::Diagnostic;
use crate::source::{FileId, Sources};

/// Masks pieces of keys in what findings say: a template, for instance, reads a key without quotes
/// as a difference of names, and calls one of them undefined. The keys are those of the files that
/// a finding points into.
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
