//! Profile keys that are under `[body]` by mistake and are therefore sent, because everything after
//! a table header belongs to that table.

use crate::check::schema::rules::UNKNOWN_FIELD;
use crate::diag::{Diagnostic, Edit};
use crate::profile;
use crate::source::{Sources, Span};
use crate::toml::{self, Kind};

/// Adds help to a finding about a field that is unknown to the API but is a profile key, which
/// belongs above the header. Includes the edit that moves the key there.
pub(super) fn explained(finding: Diagnostic, pointer: &str, sources: &Sources) -> Diagnostic {
    let key = pointer
        .strip_prefix('/')
        .filter(|key| profile::KEYS.contains(key));
    let Some(key) = key.filter(|_| finding.rule == &UNKNOWN_FIELD) else {
        return finding;
    };
    let edit = moved(key, finding.primary.span, sources);
    match edit.is_some() {
        true => finding
            .help(format!("`{key}` is a profile key: move it above `[body]`"))
            .maybe_fix(edit),
        false => finding,
    }
}

/// Returns the edit that moves a key in `[body]` above the header; `None` if the key is not on
/// separate lines, or is already set above the header.
fn moved(key: &str, place: Span, sources: &Sources) -> Option<Edit> {
    let text = sources.get(place.file).text();
    let top = toml::parse(text).ok()?;
    let Kind::Table(body) = &top.get("body")?.kind else {
        return None;
    };
    let (name, value) = body.entry(key)?;
    if name.span.start != place.start as usize || top.get(key).is_some() {
        return None;
    }
    let start = line_start(text, name.span.start);
    let end = value.span.end
        + text[value.span.end..]
            .find('\n')
            .map_or(text.len() - value.span.end, |at| at + 1);
    let header = text[..start]
        .match_indices("[body]")
        .map(|(at, _)| at)
        .find(|at| line_start(text, *at) == *at)?;
    let is_alone = text[start..name.span.start].trim().is_empty();
    let moved = text[start..end].trim_end_matches('\n');
    is_alone.then(|| {
        Edit::new(
            Span::new(place.file, header..end),
            format!("{moved}\n{}", &text[header..start]),
        )
    })
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}
