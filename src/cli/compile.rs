//! `reqc compile`: write golden bodies, or compare them.

use std::path::Path;
use std::sync::Arc;

use super::args::{Compile, Format};
use super::options::{Found, Opened, Options, report};
use super::progress::Progress;
use super::{Failure, Outcome, Status, Terminal, diff};
use crate::compile::{AgentBodies, golden_slug};
use crate::diag::{Diagnostic, Findings};
use crate::golden::{self, Drift};
use crate::report::count;
use crate::source::{SourceText, Span};
use crate::system::Disk;
use crate::text::{Text, text};
use crate::world::Output;

pub(super) fn run(options: &Options, args: &Compile, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    if let Some(revision) = &args.diff {
        let revision = Some(revision.as_str()).filter(|revision| !revision.is_empty());
        return diff::run(options, args, revision, terminal);
    }
    let mut opened = options.open()?;
    let target = Target::of(options, &opened, args)?;
    let Compared { drifts, findings, agents, bodies } =
        compare(options, &opened, &target, args.all_contexts, terminal.quiet)?;
    let drifted = args.check && !drifts.is_empty();
    let more = if drifted { vec![drift_finding(&mut opened, &drifts, &target)] } else { Vec::new() };
    let findings = options.settle(&opened, Found { findings, more, bodies });
    let status = report(options, &opened, &options.summary(&opened, agents, bodies, &findings), &findings, terminal);
    if args.check {
        if options.format == Format::Human {
            terminal.text(&diff::of_drifts(&opened, &drifts, terminal));
        }
        return Ok(status);
    }
    // A run that made nothing does not know what should be there.
    if bodies == 0 && status == Status::Findings {
        return Ok(status);
    }
    golden::apply(target.output.as_ref(), &target.folder, &drifts)?;
    if options.format == Format::Human {
        terminal.say(&written(&drifts, &target.shown));
    }
    Ok(status)
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
            Some(path) => Target::folder(&options.directory().join(path)),
        }
    }

    pub(super) fn golden(opened: &Opened) -> Target {
        let output = Arc::clone(&opened.disk) as Arc<dyn Output>;
        Target { output, folder: golden::FOLDER.to_owned(), shown: format!("{}/", golden::FOLDER) }
    }

    fn folder(path: &Path) -> Result<Target, Failure> {
        let shown = path.display().to_string();
        let disk = Disk::create(path)?;
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

/// What is selected, compiled and compared.
pub(super) struct Compared {
    /// The files that differ.
    pub(super) drifts: Vec<Drift>,
    /// Findings of the run.
    pub(super) findings: Findings,
    /// How many agents were compiled.
    pub(super) agents: usize,
    /// How many bodies were made.
    pub(super) bodies: usize,
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
    let with_surplus = options.is_complete() && compiler.is_fully_read();
    let mut orphans = Vec::new();
    if with_surplus {
        let names = compiler.agents().iter().map(|(id, _)| &compiler.hierarchy().get(*id).name.value);
        orphans = golden::orphans(target.output.as_ref(), &target.folder, names)?;
    }
    let run = compiler.run(opened.selection()?, |agent: &AgentBodies<'_>| {
        progress.tick();
        if options.is_broken(opened, agent) {
            return Ok(Vec::new());
        }
        let (output, folder) = (target.output.as_ref(), &target.folder);
        let files = golden::files(agent, None, all_contexts);
        let surplus = match with_surplus {
            true => golden::surplus(output, folder, &golden_slug(agent.plan.name()), &files)?,
            false => Vec::new(),
        };
        let mut drifts = golden::compare(output, folder, agent.plan.name(), files)?;
        drifts.extend(surplus);
        Ok(drifts)
    });
    drop(progress);
    let (agents, mut drifts) = (run.results.len(), Vec::new());
    for found in run.results {
        drifts.extend(found.map_err(|error: String| Failure::from(error))?);
    }
    drifts.extend(orphans);
    drifts.retain(|drift| drift.new.is_some() || target.is_ours(&drift.path));
    Ok(Compared { drifts, findings: run.findings, agents, bodies: run.bodies })
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
    let file = opened.compiler_mut().add_source(path, text);
    let message = format!("golden files are out of date: {}", parts.join(", "));
    let mut finding = Diagnostic::new(&golden::rules::DRIFT, Span::file_start(file), message);
    for drift in drifts {
        if let Some(agent) = &drift.agent {
            finding = finding.reaching(agent, drift.context.as_ref());
        }
    }
    finding.help("`reqc compile --diff` shows what changed; `reqc compile` writes the files")
}

fn written(drifts: &[Drift], folder: &str) -> Text {
    let written = drifts.iter().filter(|drift| drift.new.is_some()).count();
    let removed = drifts.len() - written;
    match (written, removed) {
        (0, 0) => text!("{}: up to date", folder),
        (0, removed) => text!("{}: {} removed", folder, count(removed, "file")),
        (written, 0) => text!("{}: {} written", folder, count(written, "file")),
        (written, removed) => text!("{}: {} written, {} removed", folder, count(written, "file"), removed),
    }
}
