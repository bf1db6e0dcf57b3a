//! Runs one input through loading, compiling and reports, and checks the results.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use reqc::compile::explain::{Explainer, Explanation};
use reqc::compile::{Compiler, PolicyOptions, Report, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::report::{Format as _, Human, Json, Layout, Short};
use reqc::source::Span;
use reqc::world::MemoryWorld;

use crate::corpus::Files;

/// The result of an input.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) bodies: usize,
    /// The rules of its findings, with the number of findings of each.
    pub(crate) codes: BTreeMap<&'static str, usize>,
    /// The first check that failed.
    pub(crate) wrong: Option<String>,
}

/// Stores the panics of all threads instead of printing them.
pub(crate) fn watch_panics() -> Arc<std::sync::Mutex<Option<String>>> {
    let last = Arc::<std::sync::Mutex<Option<String>>>::default();
    let kept = Arc::clone(&last);
    panic::set_hook(Box::new(move |info| {
        *kept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(info.to_string());
    }));
    last
}

/// Checks one input. Every eighth one, by `number`, is compiled twice.
pub(crate) fn check(
    base: &Arc<MemoryWorld>,
    files: &Files,
    number: u64,
    panicked: &std::sync::Mutex<Option<String>>,
) -> Outcome {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut outcome = Outcome::default();
        let first = compile(base, files, false, &mut outcome);
        if number.is_multiple_of(8) && outcome.wrong.is_none() {
            let again = compile(
                base,
                files,
                number.is_multiple_of(16),
                &mut Outcome::default(),
            );
            if first != again {
                outcome.wrong = Some(format!("two runs differ:\n{first}\n----\n{again}"));
            }
        }
        outcome
    }));
    let mut outcome = outcome.unwrap_or_default();
    if let Some(what) = panicked
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .take()
    {
        outcome.wrong = Some(format!("panic: {what}"));
    }
    outcome
}

/// Compiles an input, and returns all results as one string.
fn compile(
    base: &Arc<MemoryWorld>,
    files: &Files,
    without_memo: bool,
    outcome: &mut Outcome,
) -> String {
    let own: MemoryWorld = files
        .iter()
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect();
    let compiler = Compiler::load(Arc::new(own), Arc::clone(base) as _, LoadOptions::default());
    let selection = Selection {
        without_memo,
        ..Selection::default()
    };
    let (report, bodies) = compiler.report_each(&selection, &PolicyOptions::default(), |agent| {
        let bodies = agent
            .bodies
            .iter()
            .map(|(ready, body)| format!("{}: {}\n", ready.context.name, body.pretty()));
        bodies.collect::<String>()
    });
    outcome.bodies += report.summary.bodies;
    report
        .findings
        .iter()
        .for_each(|finding| *outcome.codes.entry(finding.rule.code).or_default() += 1);
    let bug = report
        .findings
        .iter()
        .find(|finding| finding.rule.code.starts_with("internal/"));
    let bug = bug.map(|finding| {
        format!(
            "panic: {} {}",
            finding.message,
            finding.help.as_deref().unwrap_or_default()
        )
    });
    let wrong = bug.or_else(|| {
        report
            .findings
            .iter()
            .find_map(|finding| misplaced(&compiler, finding))
    });
    let wrong = wrong.or_else(|| unexplained(&compiler));
    let reports = reports(&report);
    outcome.wrong = wrong.or_else(|| reports.iter().find_map(|text| unfit(text)));
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&reports[2]) {
        outcome.wrong = Some(format!("the report is not JSON: {error}"));
    }
    reports.concat() + &bodies.concat()
}

fn reports(report: &Report) -> [String; 3] {
    let layout = Layout::default();
    let [human, short] = [
        Human(layout).report(report, &[]),
        Short(layout).report(report, &[]),
    ];
    [
        shown(&human),
        shown(&short),
        shown(&Json.report(report, &[])),
    ]
}

fn shown(text: &impl std::fmt::Display) -> String {
    text.to_string()
}

/// Returns a message if a location of the finding is outside its file.
fn misplaced(compiler: &Compiler, finding: &Diagnostic) -> Option<String> {
    let mut places = [&finding.primary]
        .into_iter()
        .chain(&finding.related)
        .map(|label| label.span);
    let wrong = places.find(|span| is_outside(compiler, *span));
    wrong.map(|span| {
        format!(
            "{}: the place {span:?} is not in its file",
            finding.rule.code
        )
    })
}

fn is_outside(compiler: &Compiler, span: Span) -> bool {
    let text = compiler.sources().get(span.file).text();
    let (start, end) = (span.range().start, span.range().end);
    start > end || end > text.len() || !text.is_char_boundary(start) || !text.is_char_boundary(end)
}

/// Returns a message if a source of a value is outside its file. Only one body of the first two
/// agents is explained, because each is rendered again.
fn unexplained(compiler: &Compiler) -> Option<String> {
    compiler.agents().iter().take(2).find_map(|(id, _)| {
        let explained = compiler.contexts().iter().find_map(|ready| {
            Explainer::new(compiler).explain(*id, &ready.context.name, None, None)
        });
        let explained = explained?.ok()?;
        let wrong = |value: &Explanation| {
            let sources = value.sources.iter().flat_map(|source| {
                let steps = source.steps.iter().map(|step| step.span);
                source
                    .span
                    .into_iter()
                    .chain(source.tag)
                    .chain(source.made_of.iter().copied())
                    .chain(steps)
            });
            let mut spans = value
                .literal
                .into_iter()
                .chain(value.overrode.iter().copied())
                .chain(sources);
            spans.any(|span| is_outside(compiler, span))
        };
        let value = explained.values.iter().find(|value| wrong(value))?;
        Some(format!(
            "an explanation of a value is no place of a file: {}",
            value.pointer
        ))
    })
}

#[cfg(unix)]
fn unfit(text: &str) -> Option<String> {
    crate::hostile::checks::text("a report", text.as_bytes())
}

#[cfg(not(unix))]
fn unfit(_: &str) -> Option<String> {
    None
}
