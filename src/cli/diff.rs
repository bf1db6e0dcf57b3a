//! `reqc compile --diff`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::args::{Compile, Format};
use super::compile::{Target, compare};
use super::options::{Opened, Options, report};
use super::{Outcome, Status, Terminal};
use crate::compile::{AgentBodies, Compiler, Selection, fails};
use crate::diff::{self, Change, ChangeKind, Group, Subject};
use crate::golden::Drift;
use crate::report::{self, DiffGroup};
use crate::resolve::ProfileId;
use crate::system::GitRevision;

pub(super) fn run(options: &Options, args: &Compile, revision: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let (pairs, mut findings) = match revision {
        None => against_golden(options, &opened, args.all_contexts, terminal.quiet)?,
        Some(revision) => against_revision(options, &opened, revision, args.all_contexts)?,
    };
    let (findings, summary) = {
        let figures = crate::compile::Run {
            results: vec![(); opened.compiler.agents().len()],
            findings: Default::default(),
            bodies: 0,
        };
        let findings = options.settle(&opened, std::mem::take(&mut findings), Vec::new());
        let summary = opened.summary(&figures, &findings);
        (findings, summary)
    };
    if fails(&findings) {
        report(options, &opened, &summary, &findings, terminal);
    }
    let groups = grouped(&opened.compiler, &pairs);
    let text = match (args.text, options.format) {
        (true, _) => textual(&pairs),
        (false, Format::Json) => report::diff_json(&groups),
        (false, _) => report::diff_text(&groups, terminal.width(), terminal.color),
    };
    terminal.text(&text);
    if groups.is_empty() && options.format == Format::Human && !args.text {
        terminal.say("no changes");
    }
    Ok(match args.exit_code && !groups.is_empty() || fails(&findings) {
        true => Status::Findings,
        false => Status::Clean,
    })
}

/// A body before and after; `None` where there is none.
struct Pair {
    subject: Subject,
    path: String,
    old: Option<String>,
    new: Option<String>,
}

type Compared = (Vec<Pair>, crate::diag::Findings);

fn against_golden(
    options: &Options,
    opened: &Opened,
    all_contexts: bool,
    quiet: bool,
) -> Result<Compared, super::Failure> {
    let compared = compare(options, opened, &Target::golden(opened), all_contexts, quiet)?;
    let pairs = compared.results.drifts().iter().map(Pair::of_drift).collect();
    Ok((pairs, compared.findings))
}

impl Pair {
    fn of_drift(drift: &Drift) -> Pair {
        let (slug, name) = drift.path.split_once('/').unwrap_or(("", &drift.path));
        let context = Some(name.trim_end_matches(".json")).filter(|name| *name != "request");
        Pair {
            subject: Subject {
                agent: drift.agent.clone().unwrap_or_else(|| Arc::from(slug)),
                context: context.map(Arc::from),
            },
            path: drift.path.clone(),
            old: drift.old.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            new: drift.new.clone(),
        }
    }
}

fn against_revision(
    options: &Options,
    opened: &Opened,
    revision: &str,
    all_contexts: bool,
) -> Result<Compared, super::Failure> {
    let world = GitRevision::load(&opened.root, revision)?;
    let old = options.load(Arc::new(world));
    let new = &opened.compiler;
    let selection = opened.selection()?;
    let run = new.run(selection, |agent| changed_files(agent, &old, selection, all_contexts));
    let mut pairs: Vec<Pair> = run.results.into_iter().flatten().collect();
    let names: BTreeSet<&str> =
        new.agents().iter().map(|(id, _)| new.hierarchy().get(*id).name.value.as_ref()).collect();
    let gone = |id: &ProfileId| options.is_complete() && !names.contains(old.hierarchy().get(*id).name.value.as_ref());
    let gone: Vec<ProfileId> = old.agents().iter().map(|(id, _)| *id).filter(gone).collect();
    let old_run = old.run(&Selection { agents: Some(gone), ..Selection::default() }, |agent| {
        let files = crate::golden::files(agent, None, all_contexts);
        let name = agent.plan.name();
        let pair = |file: crate::golden::GoldenFile| Pair {
            subject: Subject { agent: Arc::clone(name), context: file.context },
            path: file.path,
            old: Some(file.text),
            new: None,
        };
        files.into_iter().map(pair).collect::<Vec<_>>()
    });
    pairs.extend(old_run.results.into_iter().flatten());
    Ok((pairs, run.findings))
}

/// The files of one agent that differ from what the old repository compiles to.
fn changed_files(agent: &AgentBodies<'_>, old: &Compiler, selection: &Selection, all_contexts: bool) -> Vec<Pair> {
    let name = agent.plan.name();
    let old_files = old.hierarchy().by_name(name).map(|id| {
        let selection = Selection { agents: Some(vec![id]), contexts: selection.contexts.clone(), model: None };
        old.compile_one(id, &selection, |agent| crate::golden::files(agent, None, all_contexts)).unwrap_or_default()
    });
    let mut old_files = old_files.unwrap_or_default();
    let mut pairs = Vec::new();
    for file in crate::golden::files(agent, None, all_contexts) {
        let before = old_files.iter().position(|old| old.path == file.path).map(|at| old_files.remove(at).text);
        if before.as_deref() != Some(file.text.as_str()) {
            let subject = Subject { agent: Arc::clone(name), context: file.context };
            pairs.push(Pair { subject, path: file.path, old: before, new: Some(file.text) });
        }
    }
    pairs.extend(old_files.into_iter().map(|file| Pair {
        subject: Subject { agent: Arc::clone(name), context: file.context },
        path: file.path,
        old: Some(file.text),
        new: None,
    }));
    pairs
}

/// The text that `--check` shows below its findings.
pub(super) fn of_drifts(opened: &Opened, drifts: &[Drift], terminal: &Terminal) -> String {
    let pairs: Vec<Pair> = drifts.iter().map(Pair::of_drift).collect();
    report::diff_text(&grouped(&opened.compiler, &pairs), terminal.width(), terminal.color)
}

fn grouped(compiler: &Compiler, pairs: &[Pair]) -> Vec<DiffGroup> {
    let changes = pairs.iter().flat_map(|pair| pair.changes().into_iter().map(|change| (pair.subject.clone(), change)));
    diff::group(changes).into_iter().map(|group| with_cause(compiler, group)).collect()
}

impl Pair {
    fn changes(&self) -> Vec<Change> {
        let parse = |text: &Option<String>| {
            text.as_ref().map(|text| serde_json::from_str::<Value>(text).unwrap_or(Value::Null))
        };
        let whole = |kind: ChangeKind| vec![Change { pointer: crate::json::Pointer::root(), kind }];
        match (parse(&self.old), parse(&self.new)) {
            // Whole files are told by name, not by content.
            (None, Some(_)) => whole(ChangeKind::Added(Value::Null)),
            (Some(_), None) => whole(ChangeKind::Removed(Value::Null)),
            (Some(old), Some(new)) => {
                let changes = diff::structural(&old, &new);
                // The same value in other bytes: somebody reformatted the file.
                if changes.is_empty() { whole(ChangeKind::Replaced(Value::Null, Value::Null)) } else { changes }
            }
            (None, None) => Vec::new(),
        }
    }
}

/// Adds the place that wrote the new value.
fn with_cause(compiler: &Compiler, group: Group) -> DiffGroup {
    let cause = || {
        let first = &group.subjects[0];
        let id = compiler.hierarchy().by_name(&first.agent)?;
        let pointer = &group.change.pointer;
        let span = match (&first.context, &group.change.kind) {
            (Some(context), ChangeKind::Added(_) | ChangeKind::Replaced(..)) => compiler.trace(id, context, pointer)?,
            _ => return None,
        };
        Some(compiler.sources().describe(span))
    };
    let cause = if group.change.pointer.as_str().is_empty() { None } else { cause() };
    DiffGroup { group, cause }
}

fn textual(pairs: &[Pair]) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_default();
    pairs.iter().map(|pair| diff::textual(&text(&pair.old), &text(&pair.new), &pair.path)).collect()
}
