//! Searches the text of prompts and bodies for characters that reviewers cannot see but models can,
//! and for markers of an unfinished merge.
//!
//! The search covers the raw text of files, decoded names, and paths. The conversations of contexts
//! may contain hidden characters on purpose.

use std::collections::HashSet;
use std::ops::Range;

use crate::compile::rules::{CONFLICT, INVISIBLE};
use crate::diag::{Diagnostic, Severity};
use crate::repo::{LayerKind, Repo};
use crate::resolve::Hierarchy;
use crate::source::{FileId, SourceText, Span, Spanned};
use crate::text::{Hidden, hidden, name_of};

/// The maximum total size of the roles that are searched, in bytes. The rest is ignored.
const MAX_ROLE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of locations that are reported for one file.
const MOST: usize = 20;

/// Returns findings about files and names.
pub(super) fn check(
    repo: &mut Repo,
    hierarchy: &Hierarchy,
    known: &[Diagnostic],
) -> Vec<Diagnostic> {
    let contexts: HashSet<FileId> = repo.contexts.iter().map(|source| source.file).collect();
    let mut findings: Vec<Diagnostic> = Vec::new();
    // Bundled files come with the program.
    for (file, source) in repo
        .sources
        .iter()
        .filter(|(_, source)| !source.is_bundled())
    {
        findings.extend(in_name(
            source.path(),
            Span::file_start(file),
            "the file's path",
        ));
        if !contexts.contains(&file) {
            findings.extend(in_text(file, source.path(), source.text()));
        }
        findings.extend(conflict(file, source.text()).filter(|finding| !is_told(finding, known)));
    }
    findings.extend(in_names(repo, hierarchy));
    findings.extend(in_roles(repo));
    findings
}

/// Returns the findings in a file.
fn in_text(file: FileId, path: &str, text: &str) -> Vec<Diagnostic> {
    let mut runs = runs(text);
    let mut findings: Vec<Diagnostic> = runs
        .by_ref()
        .take(MOST)
        .map(|run| at(file, path, &run))
        .collect();
    let more = runs.count();
    if let Some(last) = findings.last_mut().filter(|_| more > 0) {
        last.message = format!("{}, and {more} more occurrences in this file", last.message);
    }
    findings
}

/// Returns a finding about the first unfinished merge in a file.
fn conflict(file: FileId, text: &str) -> Option<Diagnostic> {
    let start = mark(text, "<<<<<<< ", 0)?;
    let middle = mark(text, "=======\n", start)?;
    let end = mark(text, ">>>>>>> ", middle)?;
    let finding = Diagnostic::new(
        &CONFLICT,
        Span::new(file, line_at(text, start)),
        "an unfinished merge",
    );
    let finding = finding.label("one version").related(
        Span::new(file, line_at(text, end)),
        "the other version ends here",
    );
    Some(finding.help("keep the intended version, and remove the markers"))
}

fn line_at(text: &str, at: usize) -> Range<usize> {
    at..text[at..].find('\n').map_or(text.len(), |len| at + len)
}

/// Returns the start of the first line at or after a location that begins with a marker.
fn mark(text: &str, mark: &str, from: usize) -> Option<usize> {
    memchr::memmem::find_iter(&text.as_bytes()[from..], mark)
        .map(|at| from + at)
        .find(|&at| at == 0 || text.as_bytes()[at - 1] == b'\n')
}

/// Returns `true` if an error already reports that the markers make the file unreadable.
fn is_told(conflict: &Diagnostic, known: &[Diagnostic]) -> bool {
    let (marks, end) = (
        conflict.primary.span,
        conflict.related.iter().map(|label| label.span.end).max(),
    );
    known.iter().any(|finding| {
        let span = finding.primary.span;
        span.file == marks.file
            && finding.rule.severity == Severity::Error
            && span.start >= marks.start
            && Some(span.start) <= end
    })
}

/// A run of adjacent hidden characters.
struct Run {
    start: usize,
    end: usize,
    first: char,
    chars: usize,
}

fn runs(text: &str) -> impl Iterator<Item = Run> + '_ {
    let mut found = hidden(text).peekable();
    std::iter::from_fn(move || {
        let Hidden { at, char } = found.next()?;
        let mut run = Run {
            start: at,
            end: at + char.len_utf8(),
            first: char,
            chars: 1,
        };
        while let Some(next) = found.next_if(|next| next.at == run.end) {
            run.end += next.char.len_utf8();
            run.chars += 1;
        }
        Some(run)
    })
}

fn at(file: FileId, path: &str, run: &Run) -> Diagnostic {
    let number = u32::from(run.first);
    let escape = if number > 0xffff {
        format!("\\U{number:08X}")
    } else {
        format!("\\u{number:04X}")
    };
    let help = match path.rsplit('.').next() {
        Some("toml") => {
            format!("remove it; if it is intended, write `{escape}` in a double-quoted string")
        }
        Some("md" | "json") => "remove it".to_owned(),
        _ => format!("remove it; if it is intended, write `{{{{ \"{escape}\" }}}}`"),
    };
    Diagnostic::new(&INVISIBLE, Span::new(file, run.start..run.end), told(run)).help(help)
}

fn told(run: &Run) -> String {
    let name = name_of(run.first);
    match run.chars {
        1 => format!("invisible character: {name}"),
        more => format!("{more} invisible characters; the first is {name}"),
    }
}

/// Reports a name with an invisible character, even if the character is written as an escape.
fn in_name(name: &str, span: Span, what: &str) -> Option<Diagnostic> {
    let found = name
        .chars()
        .find(|c| c.is_control())
        .or_else(|| hidden(name).next().map(|hidden| hidden.char))?;
    let message = format!("{what} contains an invisible character: {}", name_of(found));
    Some(
        Diagnostic::new(&INVISIBLE, span, message)
            .help("remove it: it makes different names look the same"),
    )
}

/// Checks names that are written with escapes. Other names are covered by the search in raw
/// strings.
fn in_names(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let profiles = hierarchy
        .ids()
        .map(|id| (&hierarchy.get(id).name, "the agent's name"));
    let instances = repo
        .instances
        .values()
        .map(|instance| (&instance.name, "the provider instance's name"));
    let rosters = repo
        .rosters
        .iter()
        .map(|roster| (&roster.name, "the roster's name"));
    let names = profiles.chain(instances).chain(rosters);
    let escaped = names.filter(|(name, _)| hidden(repo.sources.slice(name.span)).next().is_none());
    escaped
        .filter_map(|(Spanned { value, span }, what)| in_name(value, *span, what))
        .collect()
}

/// Checks the roles that prompts can request, which are otherwise read only on demand.
fn in_roles(repo: &mut Repo) -> Vec<Diagnostic> {
    let own = repo
        .layers
        .iter()
        .filter(|layer| layer.kind == LayerKind::Own || repo.is_bundled_root);
    let (mut found, mut left) = (Vec::new(), MAX_ROLE_BYTES);
    for layer in own.filter(|layer| layer.active) {
        let entries = layer.world.walk("roles").entries;
        for path in entries
            .into_iter()
            .map(|entry| entry.path)
            .filter(|path| path.ends_with(".md"))
        {
            // An unreadable file is reported where a prompt requests it.
            let Ok(bytes) = layer.world.read_within(&path, left) else {
                continue;
            };
            left -= bytes.len() as u64;
            let text = SourceText::from_bytes(&bytes).ok();
            found.extend(
                text.filter(|text| {
                    runs(text.as_str()).next().is_some()
                        || mark(text.as_str(), "<<<<<<< ", 0).is_some()
                })
                .map(|text| (path, text)),
            );
        }
    }
    let mut findings = Vec::new();
    for (path, text) in found {
        let file = repo.sources.add(path.as_str(), text);
        let text = repo.sources.get(file).text();
        findings.extend(in_text(file, &path, text));
        findings.extend(conflict(file, text));
    }
    findings
}
