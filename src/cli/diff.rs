//! `reqc compile --diff`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::args::{Compile, Format};
use super::compile::{Compared, Target, compare};
use super::options::{Found, Opened, Options, report};
use super::{Failure, Outcome, Status, Terminal};
use crate::compile::{Compiler, Lowered, Selection, fails};
use crate::diag::Findings;
use crate::diff::{self, Change, ChangeKind, FileChange, Group, Subject};
use crate::golden::{self, Drift, GoldenFile};
use crate::json::Pointer;
use crate::report::{self, DiffGroup};
use crate::resolve::ProfileId;
use crate::system::GitRevision;
use crate::text::{Text, text};

pub(super) fn run(options: &Options, args: &Compile, revision: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    options.selection(&opened, terminal)?;
    let Changed { pairs, findings, agents, bodies, lowered } = match revision {
        None => against_golden(options, &opened, args.all_contexts, terminal.quiet)?,
        Some(revision) => against_revision(options, &opened, revision, args.all_contexts)?,
    };
    let findings = options.settle(&opened, Found { findings, more: Vec::new(), bodies });
    if fails(&findings) {
        let status =
            report(options, &opened, &options.summary(&opened, agents, bodies, &findings), &findings, terminal);
        if options.format == Format::Json {
            return Ok(status);
        }
    }
    let groups = grouped(&opened.compiler, &pairs);
    let is_same = groups.is_empty() && lowered.is_empty();
    let text = match (args.text, options.format) {
        (true, _) => textual(&pairs),
        (false, Format::Json) => report::diff_json(&groups, &lowered),
        (false, _) => report::diff_text(&groups, terminal.width(), terminal.color),
    };
    if options.format != Format::Json {
        terminal.text(&report::lowered_text(&lowered));
    }
    terminal.text(&text);
    if is_same && options.format == Format::Human && !args.text {
        terminal.say(&match fails(&findings) {
            true => text!("no changes in what could be compiled"),
            false => text!("no changes"),
        });
    }
    Ok(match args.exit_code && !is_same || fails(&findings) {
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

/// What was compared, and what was found on the way.
struct Changed {
    pairs: Vec<Pair>,
    findings: Findings,
    agents: usize,
    bodies: usize,
    /// What the older side did not lower.
    lowered: Vec<Lowered>,
}

fn against_golden(options: &Options, opened: &Opened, all_contexts: bool, quiet: bool) -> Result<Changed, Failure> {
    let Compared { drifts, findings, agents, bodies, .. } =
        compare(options, opened, &Target::golden(opened), all_contexts, quiet)?;
    let pairs = drifts.iter().map(Pair::of_drift).collect();
    // Golden files do not tell what was lowered when they were written.
    Ok(Changed { pairs, findings, agents, bodies, lowered: Vec::new() })
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
) -> Result<Changed, Failure> {
    let old = options.load(Arc::new(GitRevision::load(&opened.root, revision)?));
    let new = &opened.compiler;
    let selection = opened.selection()?;
    let mut before = old_files(&old, new, selection, all_contexts);
    let run = new.run(selection, |agent| {
        // Of an agent with errors nothing is known to have changed: the errors are told.
        let files = (!options.is_broken(opened, agent)).then(|| golden::files(agent, None, all_contexts));
        (Arc::clone(agent.plan.name()), files)
    });
    let (agents, mut pairs) = (run.results.len(), Vec::new());
    for (name, files) in run.results {
        let mut known = before.remove(&name).unwrap_or_default();
        let Some(files) = files else { continue };
        for file in files {
            let old = known.iter().position(|old| old.path == file.path).map(|at| known.remove(at).text);
            pairs.extend(Pair::of_files(&name, file, old));
        }
        pairs.extend(known.into_iter().map(|file| Pair::gone(&name, file)));
    }
    if options.is_complete() {
        let compiled: HashSet<&Arc<str>> =
            new.agents().iter().map(|(id, _)| &new.hierarchy().get(*id).name.value).collect();
        for (name, files) in before.into_iter().filter(|(name, _)| !compiled.contains(name)) {
            pairs.extend(files.into_iter().map(|file| Pair::gone(&name, file)));
        }
    }
    let lowered = options.newly_lowered(opened, &old);
    Ok(Changed { pairs, findings: run.findings, agents, bodies: run.bodies, lowered })
}

/// The files of the old repository's agents, by name; of a selection only those that are in it.
fn old_files(
    old: &Compiler,
    new: &Compiler,
    selection: &Selection,
    all_contexts: bool,
) -> BTreeMap<Arc<str>, Vec<GoldenFile>> {
    let name = |id: &ProfileId| Arc::clone(&new.hierarchy().get(*id).name.value);
    let agents =
        selection.agents.as_ref().map(|ids| ids.iter().filter_map(|id| old.hierarchy().by_name(&name(id))).collect());
    let selection = Selection { agents, contexts: selection.contexts.clone(), ..Selection::default() };
    let run = old.run(&selection, |agent| (Arc::clone(agent.plan.name()), golden::files(agent, None, all_contexts)));
    run.results.into_iter().collect()
}

impl Pair {
    /// A file whose text changed; `None` if it did not.
    fn of_files(agent: &Arc<str>, file: GoldenFile, old: Option<String>) -> Option<Pair> {
        let changed = old.as_deref() != Some(file.text.as_str());
        let subject = Subject { agent: Arc::clone(agent), context: file.context };
        changed.then_some(Pair { subject, path: file.path, old, new: Some(file.text) })
    }

    fn gone(agent: &Arc<str>, file: GoldenFile) -> Pair {
        let subject = Subject { agent: Arc::clone(agent), context: file.context };
        Pair { subject, path: file.path, old: Some(file.text), new: None }
    }
}

/// The text that `--check` shows below its findings.
pub(super) fn of_drifts(opened: &Opened, drifts: &[Drift], terminal: &Terminal) -> Text {
    let pairs: Vec<Pair> = drifts.iter().map(Pair::of_drift).collect();
    report::diff_text(&grouped(&opened.compiler, &pairs), terminal.width(), terminal.color)
}

fn grouped(compiler: &Compiler, pairs: &[Pair]) -> Vec<DiffGroup> {
    let changes = pairs.iter().flat_map(|pair| pair.changes().into_iter().map(|change| (pair.subject.clone(), change)));
    let sizes = pairs.iter().map(|pair| (&pair.subject, pair.new.as_ref().map_or(0, String::len)));
    let mut causes = Causes { compiler, sizes: sizes.collect(), left: HashMap::new() };
    merged(diff::group(changes).into_iter().flat_map(|group| by_cause(&mut causes, group)).collect())
}

/// Finds the lines that caused changes. Each is found by making the body once more, so of each agent only as many are found as
/// that takes a bounded time: the first ones.
struct Causes<'c> {
    compiler: &'c Compiler,
    /// The bytes of the new text of each subject.
    sizes: HashMap<&'c Subject, usize>,
    /// The bytes that may still be made of each agent.
    left: HashMap<Arc<str>, usize>,
}

/// The most bytes of an agent's bodies that are made to find causes.
const MAX_MADE: usize = 8 * 1024 * 1024;
/// What a body costs to make, however small it is, in bytes.
const MADE_AT_LEAST: usize = 16 * 1024;

impl Causes<'_> {
    /// The place that caused a change: the one that wrote the new value.
    fn of(&mut self, subject: &Subject, change: &Change) -> Option<String> {
        let id = self.compiler.hierarchy().by_name(&subject.agent)?;
        let (old, new) = match &change.kind {
            ChangeKind::Added(new) => (None, new),
            ChangeKind::Replaced(old, new) => (Some(old), new),
            ChangeKind::Removed(_) | ChangeKind::Reordered(..) | ChangeKind::File(_) => return None,
        };
        let context = subject.context.as_deref()?;
        let left = self.left.entry(Arc::clone(&subject.agent)).or_insert(MAX_MADE);
        *left = left.checked_sub(MADE_AT_LEAST + self.sizes.get(subject).copied().unwrap_or_default())?;
        let span = self.compiler.cause(id, context, &change.pointer, old, new)?;
        Some(self.compiler.sources().describe(span))
    }
}

impl Pair {
    fn changes(&self) -> Vec<Change> {
        let file = |change| vec![Change { pointer: Pointer::root(), kind: ChangeKind::File(change) }];
        let (old, new) = match (&self.old, &self.new) {
            // Whole files are told by name, not by content.
            (None, _) => return file(FileChange::New),
            (_, None) => return file(FileChange::Gone),
            (Some(old), Some(new)) => (serde_json::from_str::<Value>(old), serde_json::from_str::<Value>(new)),
        };
        let (Ok(old), Ok(new)) = (old, new) else { return file(FileChange::Broken) };
        let changes = diff::structural(&old, &new);
        if changes.is_empty() { file(FileChange::Reformatted) } else { changes }
    }
}

/// A group of equal changes as one for each line that caused them: asked once per agent.
fn by_cause(causes: &mut Causes<'_>, group: Group) -> Vec<DiffGroup> {
    let mut known: BTreeMap<Arc<str>, Option<String>> = BTreeMap::new();
    let mut groups: IndexMap<Option<String>, DiffGroup> = IndexMap::new();
    for subject in group.subjects {
        let agent = Arc::clone(&subject.agent);
        let cause = known.entry(agent).or_insert_with(|| causes.of(&subject, &group.change)).clone();
        match groups.get_mut(&cause) {
            Some(known) => known.group.subjects.push(subject),
            None => {
                let part = Group {
                    pointer: group.pointer.clone(),
                    change: group.change.clone(),
                    is_request: group.is_request,
                    subjects: vec![subject],
                };
                groups.insert(cause.clone(), DiffGroup { group: part, cause, variants: 1 });
            }
        }
    }
    groups.into_values().collect()
}

/// Changes of one place because of one line, whose values differ from body to body, as one.
fn merged(groups: Vec<DiffGroup>) -> Vec<DiffGroup> {
    let mut merged: Vec<DiffGroup> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for group in groups {
        let same = group.cause.is_some().then(|| *known.entry(group.likeness()).or_insert(merged.len()));
        match same.filter(|&at| at < merged.len()) {
            Some(at) => merged[at].absorb(group),
            None => merged.push(group),
        }
    }
    merged
}

fn textual(pairs: &[Pair]) -> Text {
    let whole = |side: &Option<String>| side.clone().unwrap_or_default();
    pairs.iter().map(|pair| Text::lines(&diff::textual(&whole(&pair.old), &whole(&pair.new), &pair.path))).collect()
}
