//! `reqc compile`: write golden bodies, or compare them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::args::{Compile, Format};
use super::options::{Opened, Options, report};
use super::progress::Progress;
use super::{Failure, Outcome, Status, Terminal, diff};
use crate::compile::{AgentBodies, Run, fails, golden_slug};
use crate::diag::Diagnostic;
use crate::golden::{self, Drift};
use crate::source::{SourceText, Span};
use crate::system::Disk;
use crate::world::Output;

pub(super) fn run(options: &Options, args: &Compile, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    if let Some(revision) = &args.diff {
        let revision = Some(revision.as_str()).filter(|revision| !revision.is_empty());
        return diff::run(options, args, revision, terminal);
    }
    let mut opened = options.open()?;
    let target = Target::of(options, &opened, args)?;
    let mut run = compare(options, &opened, &target, args.all_contexts, terminal.quiet)?;
    let mut more = Vec::new();
    if args.check && !run.results.drifts().is_empty() {
        more.push(drift_finding(&mut opened, run.results.drifts(), &target));
    }
    let findings = options.settle(&opened, std::mem::take(&mut run.findings), more);
    let summary = opened.summary(&run.figures(), &findings);
    let status = report(options, &opened, &summary, &findings, terminal);
    if args.check {
        if options.format == Format::Human {
            terminal.text(&diff::of_drifts(&opened, run.results.drifts(), terminal));
        }
        return Ok(status);
    }
    golden::apply(target.output.as_ref(), &target.folder, run.results.drifts())?;
    if options.format != Format::Json {
        terminal.say(&written(run.results.drifts(), &target.shown));
    }
    Ok(if fails(&findings) { Status::Findings } else { status })
}

/// Where bodies go.
pub(super) struct Target {
    pub(super) output: Arc<dyn Output>,
    pub(super) folder: String,
    shown: String,
}

impl Target {
    fn of(options: &Options, opened: &Opened, args: &Compile) -> Result<Target, Failure> {
        match &args.out {
            None => Ok(Target::golden(opened)),
            Some(path) => Target::folder(options.directory().join(path)),
        }
    }

    pub(super) fn golden(opened: &Opened) -> Target {
        let output = Arc::clone(&opened.disk) as Arc<dyn Output>;
        Target { output, folder: golden::FOLDER.to_owned(), shown: format!("{}/", golden::FOLDER) }
    }

    fn folder(path: PathBuf) -> Result<Target, Failure> {
        let shown = path.display().to_string();
        let disk = Disk::create(&path)?;
        Ok(Target { output: Arc::new(disk), folder: String::new(), shown })
    }

    /// Whether a file that nothing asks for was written by us. Everything in `golden/` was; in a folder that somebody
    /// named, only what lies beside a `request.json`.
    fn is_ours(&self, path: &str) -> bool {
        let beside =
            |(slug, _)| self.output.current(&format!("{slug}/{}", golden::REQUEST)).is_ok_and(|it| it.is_some());
        !self.folder.is_empty() || path.split_once('/').is_some_and(beside)
    }
}

/// The drifts of each agent, and of the files that belong to none.
pub(super) struct Comparison {
    drifts: Vec<Drift>,
}

impl Comparison {
    pub(super) fn drifts(&self) -> &[Drift] {
        &self.drifts
    }
}

/// A run whose results were put together.
pub(super) struct Compared {
    pub(super) results: Comparison,
    pub(super) findings: crate::diag::Findings,
    agents: usize,
    bodies: usize,
}

impl Compared {
    /// The run's figures in the form that summaries are made from.
    pub(super) fn figures(&self) -> Run<()> {
        Run { results: vec![(); self.agents], findings: crate::diag::Findings::default(), bodies: self.bodies }
    }
}

/// Compiles what is selected and compares it with what the target holds.
pub(super) fn compare(
    options: &Options,
    opened: &Opened,
    target: &Target,
    all_contexts: bool,
    quiet: bool,
) -> Result<Compared, Failure> {
    let compiler = &opened.compiler;
    let progress = Progress::start(compiler.agents().len(), quiet);
    let run = compiler.run(opened.selection()?, |agent: &AgentBodies<'_>| {
        progress.tick();
        if agent.failed {
            return Ok((None, BTreeSet::new(), Vec::new()));
        }
        let files = golden::files(agent, None, all_contexts);
        let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
        let drifts = golden::compare(target.output.as_ref(), &target.folder, agent.plan.name(), files)?;
        Ok((Some(golden_slug(agent.plan.name())), paths, drifts))
    });
    drop(progress);
    let (agents, mut drifts) = (run.results.len(), Vec::new());
    let (mut expected, mut compiled) = (BTreeSet::new(), BTreeSet::new());
    for result in run.results {
        let (slug, paths, found) = result.map_err(|error: String| Failure::new(error))?;
        compiled.extend(slug);
        expected.extend(paths);
        drifts.extend(found);
    }
    if options.is_complete() && compiler.is_fully_read() {
        let all = compiler.agents().iter().map(|(id, _)| golden_slug(&compiler.hierarchy().get(*id).name.value));
        let kept: BTreeSet<String> = all.filter(|slug| !compiled.contains(slug)).collect();
        let orphans = golden::orphans(target.output.as_ref(), &target.folder, &expected, &kept)?;
        drifts.extend(orphans.into_iter().filter(|drift| target.is_ours(&drift.path)));
    }
    Ok(Compared { results: Comparison { drifts }, findings: run.findings, agents, bodies: run.bodies })
}

/// One finding for all files that differ.
fn drift_finding(opened: &mut Opened, drifts: &[Drift], target: &Target) -> Diagnostic {
    let count = |keep: fn(&Drift) -> bool| drifts.iter().filter(|drift| keep(drift)).count();
    let changed = count(|drift| drift.old.is_some() && drift.new.is_some());
    let (missing, orphaned) = (count(|drift| drift.old.is_none()), count(|drift| drift.new.is_none()));
    let parts = [(changed, "differ"), (missing, "missing"), (orphaned, "not asked for")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let first = &drifts[0];
    let path = format!("{}{}", target.shown, first.path);
    let text = SourceText::salvage(first.old.as_deref().unwrap_or_default());
    let file = opened.compiler.add_source(path, text);
    let message = format!("golden files are out of date: {}", parts.join(", "));
    let mut finding = Diagnostic::new(&golden::rules::DRIFT, Span::file_start(file), message);
    for drift in drifts {
        if let Some(agent) = &drift.agent {
            finding = finding.reaching(agent, drift.context.as_ref());
        }
    }
    finding.help("`reqc compile --diff` shows what changed; `reqc compile` writes the files")
}

fn written(drifts: &[Drift], folder: &str) -> String {
    let written = drifts.iter().filter(|drift| drift.new.is_some()).count();
    let removed = drifts.len() - written;
    match (written, removed) {
        (0, 0) => format!("{folder}: up to date"),
        (written, 0) => format!("{folder}: {written} files written"),
        (written, removed) => format!("{folder}: {written} files written, {removed} removed"),
    }
}
