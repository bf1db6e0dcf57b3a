//! `provider/literal-key` for keys that are where nobody looks for one: in prompts, partials,
//! contexts, settings and comments.
//!
//! What reads a value knows more of it and told it already; here the text of every file is looked
//! at as it is. Whatever is found is hidden from all excerpts.

use std::collections::HashSet;

use crate::diag::Diagnostic;
use crate::repo::Repo;
use crate::repo::rules::LITERAL_SECRET;
use crate::secret;
use crate::source::{FileId, Span};

/// The number of keys of one file that are reported.
const MOST: usize = 20;

/// Findings about keys in files, except for those that `known` tells already. Keys of all of them
/// are masked.
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
    // What is part of the program is not a stranger's, and schemas are large and never sent.
    let is_looked_at =
        |file: FileId, path: &str| !path.starts_with("bundled:") && !schemas.contains(&file);
    for (file, source) in repo
        .sources
        .iter()
        .filter(|(file, source)| is_looked_at(*file, source.path()))
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
    finding.help("remove it: keys belong in `api_key_ref`, by reference; if a real key was committed, revoke it")
}
