//! `reqc coverage`: shows how much of the templates the contexts cover.

use serde_json::Value;

use super::args::{Coverage as Arguments, Format};
use super::import::{name_of, write_new};
use super::options::Options;
use super::{Failure, Outcome, Status, Terminal};
use crate::compile::Compiler;
use crate::compile::coverage::{Coverage, Gap, Reaching};
use crate::report::{coverage_html, coverage_json, coverage_lcov, coverage_text};
use crate::text::Text;

pub(super) fn run(options: &Options, args: &Arguments, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let selection = options.selection(&opened, terminal)?;
    let coverage = Coverage::measure(&opened.compiler, selection);
    if coverage.agents == 0 {
        return Err(Failure::new("no agent can be compiled").help("`reqc check` shows why"));
    }
    let shown = options.formats.shown;
    terminal.text(&coverage_as(shown, &coverage));
    options
        .formats
        .write_files(|format| coverage_as(format, &coverage))?;
    if let Some(file) = &args.write_context {
        let (gap, found) = reaching(&opened.compiler, &coverage, args.gap.as_deref())?;
        let text = context_text(&coverage, gap, &found, &name_of(file));
        let path = options.path(file);
        write_new(&path, &opened.root, &text, "--write-context", terminal)?;
        terminal.note(&format!(
            "in this context, which is based on `{}`, agent `{}` covers the gap",
            found.changed, found.agent
        ));
    }
    let is_enough = args.fail_under.is_none_or(|least| {
        coverage.lines().percent() >= least && coverage.outcomes().percent() >= least
    });
    Ok(if is_enough {
        Status::Clean
    } else {
        Status::Findings
    })
}

fn coverage_as(format: Format, coverage: &Coverage) -> Text {
    match format {
        Format::Json => Text::json(&coverage_json(coverage)),
        Format::Lcov => coverage_lcov(coverage),
        Format::Html => coverage_html(coverage),
        _ => coverage_text(coverage),
    }
}

/// Returns a gap, with a context that reaches it.
fn reaching<'c>(
    compiler: &Compiler,
    coverage: &'c Coverage,
    place: Option<&str>,
) -> Result<(&'c Gap, Reaching), Failure> {
    let asked = coverage
        .gaps()
        .filter(|gap| place.is_none_or(|place| is_at(coverage, gap, place)));
    let asked: Vec<&Gap> = asked.collect();
    if asked.is_empty() {
        let why = match place {
            Some(place) => format!("there is no gap at `{place}`"),
            None => "there is no gap".to_owned(),
        };
        return Err(Failure::new(why).help("`reqc coverage` lists the gaps"));
    }
    let found = asked
        .into_iter()
        .find_map(|gap| Some((gap, coverage.reaching(compiler, gap)?)));
    found.ok_or_else(|| {
        Failure::new("no context that covers it was found").help(
            "write one by hand; if no context can cover it, mark the line: `{# no coverage: REASON #}`",
        )
    })
}

/// Returns `true` if a gap is at `place`, which is a file, a line, or a column.
fn is_at(coverage: &Coverage, gap: &Gap, place: &str) -> bool {
    let source = coverage.sources.get(gap.span.file);
    let at = source.position(gap.span.range().start);
    let path = source.path();
    let places = [
        path.to_string(),
        format!("{path}:{}", at.line),
        format!("{path}:{}:{}", at.line, at.column),
    ];
    places.contains(&place.trim_start_matches("./").to_owned())
}

/// Returns the text of a context file, which mentions the gap that the context covers.
fn context_text(coverage: &Coverage, gap: &Gap, found: &Reaching, name: &str) -> String {
    let needs = gap.needs.as_deref().unwrap_or_default();
    let why = format!("Covers {}: {needs}.", coverage.sources.describe(gap.span));
    let mut context = found.context.clone();
    context["name"] = Value::from(name);
    context["why"] = Value::from(why);
    if let Some(members) = context.as_object_mut() {
        members.shift_remove("golden");
    }
    format!("{context:#}\n")
}
