//! How much of the templates the contexts cover, as text, as JSON, in a format for editors and
//! coverage services, and as a page.

mod html;
mod lcov;

pub use html::coverage_html;
pub use lcov::coverage_lcov;

use serde_json::{Value, json};

use super::thousands;
use crate::compile::coverage::{Coverage, FileCoverage, Gap, Share};
use crate::diag::count;
use crate::source::Position;
use crate::text::{Text, text};

/// Returns the gaps by file, and the totals, in human-readable form.
pub fn coverage_text(coverage: &Coverage) -> Text {
    let mut shown = Text::new();
    for file in coverage.files.iter().filter(|file| !file.gaps.is_empty()) {
        shown.push(&text!(
            "{}  {}\n",
            Text::line(&file.path),
            Text::line(&shares(file.lines(), file.outcomes()))
        ));
        for gap in &file.gaps {
            let at = position(coverage, gap);
            let place = format!("{}:{}:{}", file.path, at.line, at.column);
            shown.push(&text!(
                "  {}  {}\n",
                Text::line(&place),
                Text::line(&sentence(gap))
            ));
        }
        shown.push(&text!("\n"));
    }
    shown.push(&text!("{}\n", Text::line(&summary(coverage))));
    shown
}

/// Returns all totals and gaps as JSON.
pub fn coverage_json(coverage: &Coverage) -> Value {
    let files = coverage.files.iter().map(|file| file_json(coverage, file));
    json!({
        "version": 1,
        "agents": coverage.agents,
        "contexts": coverage.contexts,
        "lines": share_json(coverage.lines()),
        "outcomes": share_json(coverage.outcomes()),
        "files": files.collect::<Vec<_>>(),
    })
}

fn file_json(coverage: &Coverage, file: &FileCoverage) -> Value {
    let gaps = file.gaps.iter().map(|gap| {
        let at = position(coverage, gap);
        json!({
            "line": at.line,
            "column": at.column,
            "kind": gap.kind.name(),
            "missing": gap.missing,
            "needs": gap.needs,
        })
    });
    json!({
        "path": &*file.path,
        "lines": share_json(file.lines()),
        "outcomes": share_json(file.outcomes()),
        "gaps": gaps.collect::<Vec<_>>(),
    })
}

/// Returns the position at which a gap begins.
fn position(coverage: &Coverage, gap: &Gap) -> Position {
    let source = coverage.sources.get(gap.span.file);
    source.position(gap.span.range().start)
}

fn share_json(share: Share) -> Value {
    json!({"reached": share.reached, "all": share.all})
}

/// Returns a sentence that describes a gap, and the data that would reach it.
fn sentence(gap: &Gap) -> String {
    match &gap.needs {
        Some(needs) => format!("{}: to cover it, add a context where {needs}", gap.missing),
        None => gap.missing.clone(),
    }
}

/// Returns the totals in words.
fn summary(coverage: &Coverage) -> String {
    let gaps = match coverage.gaps().count() {
        0 => "no gaps".to_owned(),
        gaps => count(gaps, "gap"),
    };
    let [agents, contexts, files] = [
        count(coverage.agents, "agent"),
        count(coverage.contexts, "context"),
        count(coverage.files.len(), "file"),
    ];
    let shares = shares(coverage.lines(), coverage.outcomes());
    format!("{agents} × {contexts}, {files}: {shares}, {gaps}")
}

fn shares(lines: Share, outcomes: Share) -> String {
    format!("{}, {}", share("lines", lines), share("outcomes", outcomes))
}

fn share(name: &str, share: Share) -> String {
    let Share { reached, all } = share;
    let percent = percent(share);
    let [reached, all] = [reached, all].map(thousands);
    format!("{name} {percent} % ({reached} of {all})")
}

/// Returns a share as a percentage with one decimal, rounded down so that only full coverage is
/// 100.
fn percent(share: Share) -> String {
    let percent = (share.percent() * 10.0).floor() / 10.0;
    match percent.fract() == 0.0 {
        true => format!("{percent:.0}"),
        false => format!("{percent:.1}"),
    }
}
