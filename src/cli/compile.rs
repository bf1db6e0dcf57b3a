//! `reqc compile`: write golden bodies, or compare them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::args::{Compile, Format};
use super::options::{Found, Opened, Options, report};
use super::progress::Progress;
use super::{Failure, Outcome, Status, Terminal, diff};
use crate::compile::{AgentBodies, golden_slug};
use crate::diag::{Diagnostic, Findings};
use crate::golden::{self, Drift, Manifest, Proof, Surplus};
use crate::report::count;
use crate::source::{SourceText, Span};
use crate::system::Disk;
use crate::text::{Text, text};
use crate::world::Output;

pub(super) fn run(options: &Options, args: &Compile, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    if let Some(revision) = &args.diff {
        return diff::run(options, args, revision.as_deref(), terminal);
    }
    let mut opened = options.open()?;
    options.selection(&opened, terminal)?;
    let target = Target::of(options, &opened, args)?;
    let Compared { drifts, foreign, manifest, kept, findings, agents, bodies } =
        compare(options, &opened, &target, args.all_contexts, terminal.quiet)?;
    let drifted = args.check && !drifts.is_empty();
    let mut more = if drifted { vec![drift_finding(&mut opened, &drifts, &target)] } else { Vec::new() };
    more.extend((!foreign.is_empty()).then(|| foreign_finding(&mut opened, &foreign, &target)));
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
    target.write(manifest, &drifts, &kept)?;
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
    proof: Proof,
}

impl Target {
    fn of(options: &Options, opened: &Opened, args: &Compile) -> Result<Target, Failure> {
        match &args.out {
            None => Ok(Target::golden(opened)),
            Some(path) if path.as_os_str().is_empty() => Err(Failure::new("`--out` names no folder")),
            Some(path) => Target::folder(&options.directory().join(path), &opened.root),
        }
    }

    pub(super) fn golden(opened: &Opened) -> Target {
        let output = Arc::clone(&opened.disk) as Arc<dyn Output>;
        let (folder, shown) = (golden::FOLDER.to_owned(), format!("{}/", golden::FOLDER));
        Target { output, folder, shown, proof: Proof::Names }
    }

    fn folder(path: &Path, root: &Path) -> Result<Target, Failure> {
        let shown = path.display().to_string();
        let disk = Disk::create(path, Some(root))?;
        Ok(Target { output: Arc::new(disk), folder: String::new(), shown, proof: Proof::Contents })
    }

    fn manifest(&self, opened: &Opened) -> Result<Manifest, Failure> {
        let contexts = opened.compiler.contexts().iter().map(|ready| ready.context.name.as_ref());
        Ok(Manifest::read(self.output.as_ref(), &self.folder, self.proof, contexts)?)
    }

    /// Makes what is there what should be there. The manifest lists a file before it is there and until it is gone.
    fn write(&self, mut manifest: Manifest, drifts: &[Drift], kept: &Kept) -> Result<(), Failure> {
        let output = self.output.as_ref();
        let other = "name another folder with `--out`, or delete the file";
        manifest.check(drifts).map_err(|why| Failure::new(format!("{}: {why}", self.shown)).help(other))?;
        manifest.extend(output, &self.folder, &kept.lines)?;
        golden::apply(output, &self.folder, drifts)?;
        let removed = |line: &str| drifts.iter().any(|drift| drift.new.is_none() && drift.path == line);
        manifest.retain(output, &self.folder, |line| match self.proof {
            Proof::Names => !kept.is_all || kept.lines.contains_key(line),
            Proof::Contents => kept.lines.contains_key(line) || !removed(line),
        })?;
        Ok(())
    }
}

/// What the manifest lists after a run.
#[derive(Default)]
pub(super) struct Kept {
    lines: BTreeMap<String, String>,
    /// Whether this is all there is: every agent took part and could be compiled.
    is_all: bool,
}

/// What is selected, compiled and compared.
pub(super) struct Compared {
    /// The files that differ.
    pub(super) drifts: Vec<Drift>,
    /// The paths of files among them that were not written here.
    foreign: Vec<String>,
    /// What was written by earlier runs.
    manifest: Manifest,
    kept: Kept,
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
    let (output, folder, manifest) = (target.output.as_ref(), &target.folder, target.manifest(opened)?);
    let is_all = options.is_complete() && compiler.is_fully_read();
    let lists_folders = is_all && target.proof == Proof::Names;
    let mut surplus = Surplus::default();
    if lists_folders {
        let names = compiler.agents().iter().map(|(id, _)| &compiler.hierarchy().get(*id).name.value);
        surplus = golden::orphans(output, folder, names, &manifest)?;
    }
    let run = compiler.run(opened.selection()?, |agent: &AgentBodies<'_>| {
        progress.tick();
        if options.is_broken(opened, agent) {
            return Ok(None);
        }
        let files = golden::files(agent, None, all_contexts);
        let lines = Manifest::lines(target.proof, &files);
        let surplus = match lists_folders {
            true => golden::surplus(output, folder, &golden_slug(agent.plan.name()), &files, &manifest)?,
            false => Surplus::default(),
        };
        Ok(Some((golden::compare(output, folder, agent.plan.name(), files)?, lines, surplus)))
    });
    drop(progress);
    let (agents, mut drifts, mut kept) = (run.results.len(), Vec::new(), Kept::default());
    kept.is_all = is_all && agents == compiler.agents().len();
    for found in run.results {
        let Some((differing, lines, more)) = found.map_err(|error: String| Failure::from(error))? else {
            kept.is_all = false;
            continue;
        };
        drifts.extend(differing);
        kept.lines.extend(lines);
        drifts.extend(more.drifts);
        surplus.foreign.extend(more.foreign);
    }
    drifts.extend(surplus.drifts);
    if kept.is_all && target.proof == Proof::Contents {
        let expected = kept.lines.keys().map(String::as_str).collect();
        drifts.extend(manifest.unasked(output, folder, &expected)?);
    }
    let (findings, bodies) = (run.findings, run.bodies);
    Ok(Compared { drifts, foreign: surplus.foreign, manifest, kept, findings, agents, bodies })
}

/// One finding for all files that were not written here.
fn foreign_finding(opened: &mut Opened, paths: &[String], target: &Target) -> Diagnostic {
    let file = opened.compiler_mut().add_source(format!("{}{}", target.shown, paths[0]), SourceText::salvage(b""));
    let others = match paths.len() {
        1 => String::new(),
        _ => format!(", and neither were {} others", paths.len() - 1),
    };
    let message = format!("`{}{}` was not written by reqc{others}", target.shown, paths[0]);
    let finding = Diagnostic::new(&golden::rules::FOREIGN, Span::file_start(file), message);
    finding.help("it is left alone: delete it if it is the body of a context that was removed, else move it")
}

/// One finding for all files that differ.
fn drift_finding(opened: &mut Opened, drifts: &[Drift], target: &Target) -> Diagnostic {
    let count = |keep: fn(&Drift) -> bool| drifts.iter().filter(|drift| keep(drift)).count();
    let changed = count(|drift| drift.old.is_some() && drift.new.is_some());
    let (missing, orphaned) = (count(|drift| drift.old.is_none()), count(|drift| drift.new.is_none()));
    let parts = [(changed, "differ"), (missing, "missing"), (orphaned, "no longer needed")];
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
