//! Reports keys (`provider/literal-key`) in unexpected places: in prompts, partials, contexts,
//! settings and comments.
//!
//! The raw text of every file is searched. Keys in expected places have already been reported by
//! the code that reads them, because that code has more information about them. All keys are masked
//! in excerpts.

use std::collections::HashSet;

use crate::diag::Diagnostic;
use crate::repo::Repo;
use crate::repo::rules::LITERAL_SECRET;
use crate::secret;
use crate::source::{FileId, Span};

/// The maximum number of keys that are reported for one file.
const MOST: usize = 20;

/// Returns findings about keys in files, except for keys that `known` already reports. All keys are
/// masked.
pub(super) fn check(repo: &mut Repo, known: &[Diagnostic]) -> Vec<Diagnostic> {
    let told: Vec<Span> = known
        .iter()
        .filter(|it| it.rule == &LITERAL_SECRET)
        .map(|it| it.primary.span)
        .collect();
    let is_told = |span: Span| {
        told.iter()
            .any(|it| it.file == span.file && it.start < span.end && span.start < it.end)
    };
    let mut found: Vec<Span> = Vec::new();
    let schemas: HashSet<FileId> = repo
        .schemas
        .values()
        .flatten()
        .map(|source| source.file)
        .collect();
    // Bundled files come with the program and are trusted; schemas are large and never sent.
    for (file, source) in repo
        .sources
        .iter()
        .filter(|(file, source)| !source.is_bundled() && !schemas.contains(file))
    {
        found.extend(
            secret::keys_in_text(source.text())
                .into_iter()
                .take(MOST)
                .map(|place| Span::new(file, place)),
        );
    }
    told.iter()
        .chain(&found)
        .for_each(|span| repo.sources.mask(*span));
    found
        .into_iter()
        .filter(|span| !is_told(*span))
        .map(finding)
        .collect()
}

fn finding(span: Span) -> Diagnostic {
    let finding = Diagnostic::new(&LITERAL_SECRET, span, "the file contains a key")
        .label("this looks like the key itself");
    finding.help("remove it: keys must be referenced with `api_key_ref`; if a real key was committed, revoke it")
}
