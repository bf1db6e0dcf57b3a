//! Bodies against golden files, and against those of an older side.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{AgentBodies, Body, Compiler, LoadedContext, Lowered, PolicyOptions, Report, Selection};
use crate::diff::{self, BodyId, CausedGroup, Change, ChangeKind, ChangedFile};
use crate::export::Request;
use crate::golden::{self, Comparer, Comparison, GoldenFile, GoldenFolder};
use crate::provider::Server;
use crate::resolve::ProfileId;
use crate::source::{FileId, SourceFile};
use crate::world::AccessError;

/// What comparing with golden files is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// To write them: that they differ is no finding.
    Write,
    /// To prove that they are up to date.
    Check,
    /// To show what changed: nothing about golden files is a finding.
    Show,
}

/// What of two sides has to be compared.
pub struct Scope<'s> {
    /// Whether anything that differs can reach an agent; asked with names of both sides.
    pub is_reached: &'s (dyn Fn(&Arc<str>) -> bool + Sync),
    /// What agents were called on the older side, by their name on the newer one, if that differs.
    pub older_names: &'s BTreeMap<Arc<str>, Arc<str>>,
}

impl Scope<'_> {
    fn older_name<'n>(&'n self, name: &'n Arc<str>) -> &'n Arc<str> {
        self.older_names.get(name).unwrap_or(name)
    }
}

impl AgentBodies<'_> {
    /// The agent's golden files: `request.json`, and the bodies of the contexts that golden files are kept for, or of all.
    pub fn golden_files(&self, all_contexts: bool) -> Vec<GoldenFile> {
        let kept = self.bodies.iter().filter(|(loaded, _)| all_contexts || loaded.golden);
        golden::files(&self.plan, kept.map(|(loaded, body)| (&loaded.context.name, body)))
    }

    /// The agent's requests, of the same contexts.
    fn requests(&self, all_contexts: bool) -> Vec<Request> {
        let kept = self.bodies.iter().filter(|(loaded, _)| all_contexts || loaded.golden);
        let request = |(loaded, body): &(&LoadedContext, Body)| Request {
            agent: Arc::clone(self.plan.name()),
            context: Arc::clone(&loaded.context.name),
            instance: Arc::clone(&self.plan.instance.name.value),
            wire: self.plan.wire,
            server: Server::of(self.plan.instance, self.plan.api),
            line: self.plan.request_line(None),
            body: body.pretty(),
        };
        kept.map(request).collect()
    }
}

impl Compiler {
    /// Makes every selected body and compares it with what a folder holds. `tick` is called once per agent.
    ///
    /// # Errors
    ///
    /// A phrase, if a golden file cannot be read.
    pub fn compare_golden(
        &self,
        folder: &GoldenFolder,
        selection: &Selection,
        options: &PolicyOptions,
        (purpose, all_contexts): (Purpose, bool),
        tick: impl Fn() + Sync,
    ) -> Result<(Report, Comparison), AccessError> {
        let contexts = self.contexts.iter().map(|loaded| loaded.context.name.as_ref());
        let comparer = Comparer::new(folder, contexts, selection.is_everything() && self.is_fully_read())?;
        let (mut found, agents) = self.found(selection, |agent| {
            tick();
            let files = (!self.is_broken(agent, options)).then(|| agent.golden_files(all_contexts));
            files.map(|files| comparer.agent(agent.plan.name(), files)).transpose()
        });
        let names = self.agents.iter().map(|(id, _)| &self.hierarchy.get(*id).name.value);
        let comparison = comparer.finish(agents.into_iter().collect::<Result<_, _>>()?, names)?;
        let comparison = match purpose {
            Purpose::Check => comparison,
            Purpose::Write | Purpose::Show => comparison.made_from(self.bundled_prints()),
        };
        if purpose == Purpose::Check {
            found.findings.extend(comparison.drift_finding(&mut found.sources));
        }
        if purpose != Purpose::Show {
            found.findings.extend(comparison.foreign_finding(&mut found.sources));
        }
        Ok((self.judged(found, selection, options), comparison))
    }

    /// The bundled files that golden files are made from, with fingerprints: of chains, includes, provider instances and contexts.
    fn bundled_prints(&self) -> BTreeMap<String, String> {
        let is_bundled = |(_, file): &(FileId, &SourceFile)| file.path().starts_with("bundled:");
        let bundled: BTreeSet<FileId> = self.sources().iter().filter(is_bundled).map(|(id, _)| id).collect();
        let reached = self.agents_by_file(&bundled).unwrap_or_default();
        let contexts = self.contexts.iter().filter(|loaded| loaded.golden).map(|loaded| loaded.context.file);
        let used: BTreeSet<FileId> =
            reached.into_keys().chain(contexts.filter(|file| bundled.contains(file))).collect();
        let print = |id: FileId| {
            let file = self.sources().get(id);
            (file.path().to_string(), golden::fingerprint(file.source_text().as_str().as_bytes()))
        };
        used.into_iter().map(print).collect()
    }

    /// Every selected request of agents without errors, by agent and context.
    pub fn requests(
        &self,
        selection: &Selection,
        options: &PolicyOptions,
        all_contexts: bool,
    ) -> (Report, Vec<Request>) {
        let (report, agents) = self.report_each(selection, options, |agent| match self.is_broken(agent, options) {
            true => Vec::new(),
            false => agent.requests(all_contexts),
        });
        (report, agents.into_iter().flatten().collect())
    }

    /// Makes every selected body of this side, and those of an older one that may differ: what does differ.
    pub fn compare_older(
        &self,
        older: &Compiler,
        selection: &Selection,
        options: &PolicyOptions,
        all_contexts: bool,
        scope: &Scope<'_>,
    ) -> (Report, Vec<ChangedFile>) {
        let mut before = older.files_of_selection(self, selection, all_contexts, scope);
        let (report, agents) = self.report_each(selection, options, |agent| {
            let name = agent.plan.name();
            // Of an agent with errors nothing is known to have changed: the errors are told.
            let is_asked = (scope.is_reached)(name) && !self.is_broken(agent, options);
            (Arc::clone(name), is_asked.then(|| agent.golden_files(all_contexts)))
        });
        let mut changes = Vec::new();
        for (name, files) in agents {
            let known = before.remove(scope.older_name(&name)).unwrap_or_default();
            let known = known.into_iter().map(|file| file.of_agent(scope.older_name(&name), &name)).collect();
            changes.extend(files.map(|files| changed(&name, files, known)).unwrap_or_default());
        }
        if selection.is_everything() {
            let compiled: HashSet<&Arc<str>> =
                self.agents.iter().map(|(id, _)| scope.older_name(&self.hierarchy.get(*id).name.value)).collect();
            let gone = before.into_iter().filter(|(name, _)| !compiled.contains(name));
            changes.extend(gone.flat_map(|(name, files)| changed(&name, Vec::new(), files)));
        }
        (report, changes)
    }

    /// What this side lowers and an older one did not.
    pub fn newly_lowered(&self, older: &Compiler, options: &PolicyOptions) -> Vec<Lowered> {
        self.policy(options, false).newly_lowered(self, &older.policy(options, false), older)
    }

    /// The files of this side's agents, by name; of a selection on another side only those that are in it.
    fn files_of_selection(
        &self,
        newer: &Compiler,
        selection: &Selection,
        all_contexts: bool,
        scope: &Scope<'_>,
    ) -> BTreeMap<Arc<str>, Vec<GoldenFile>> {
        let of_newer = |id: &ProfileId| self.hierarchy.by_name(scope.older_name(&newer.hierarchy.get(*id).name.value));
        let chosen: Vec<ProfileId> = match &selection.agents {
            Some(ids) => ids.iter().filter_map(of_newer).collect(),
            None => self.agents.iter().map(|(id, _)| *id).collect(),
        };
        let is_reached = |id: &ProfileId| (scope.is_reached)(&self.hierarchy.get(*id).name.value);
        let agents = Some(chosen.into_iter().filter(is_reached).collect());
        let selection = Selection { agents, contexts: selection.contexts.clone(), ..Selection::default() };
        let run = self.run(&selection, |agent| (Arc::clone(agent.plan.name()), agent.golden_files(all_contexts)));
        run.results.into_iter().collect()
    }

    /// Changes of files in groups, each with the line of this side that caused it.
    pub fn grouped(&self, changes: &[ChangedFile]) -> Vec<CausedGroup> {
        let sizes = changes.iter().map(|file| (&file.subject, file.new.as_ref().map_or(0, String::len)));
        let mut causes = Causes { compiler: self, sizes: sizes.collect(), left: HashMap::new() };
        diff::grouped(changes, |subject, change| causes.of(subject, change))
    }
}

/// The files of an agent whose text changed, then those that are gone.
fn changed(agent: &Arc<str>, files: Vec<GoldenFile>, mut known: Vec<GoldenFile>) -> Vec<ChangedFile> {
    let subject = |context: Option<Arc<str>>| BodyId { agent: Arc::clone(agent), context };
    let mut changes = Vec::new();
    for file in files {
        let old = known.iter().position(|old| old.path == file.path).map(|at| known.remove(at).text);
        if old.as_ref() != Some(&file.text) {
            changes.push(ChangedFile { subject: subject(file.context), path: file.path, old, new: Some(file.text) });
        }
    }
    let gone = |file: GoldenFile| ChangedFile {
        subject: subject(file.context),
        path: file.path,
        old: Some(file.text),
        new: None,
    };
    changes.extend(known.into_iter().map(gone));
    changes
}

/// Finds the lines that caused changes. Each is found by making the body once more, so of each agent only as many are found as
/// that takes a bounded time: the first ones.
struct Causes<'c> {
    compiler: &'c Compiler,
    /// The bytes of the new text of each subject.
    sizes: HashMap<&'c BodyId, usize>,
    /// The bytes that may still be made of each agent.
    left: HashMap<Arc<str>, usize>,
}

/// The most bytes of an agent's bodies that are made to find causes.
const MAX_MADE: usize = 8 * 1024 * 1024;
/// What a body costs to make, however small it is, in bytes.
const MADE_AT_LEAST: usize = 16 * 1024;

impl Causes<'_> {
    /// The place that caused a change: the one that wrote the new value, or that should have written it.
    fn of(&mut self, subject: &BodyId, change: &Change) -> Option<String> {
        let id = self.compiler.hierarchy().by_name(&subject.agent)?;
        let (old, new) = match &change.kind {
            ChangeKind::Added(new) => (None, Some(new)),
            ChangeKind::Replaced(old, new) => (Some(old), Some(new)),
            ChangeKind::Removed(_) => (None, None),
            ChangeKind::Reordered(..) | ChangeKind::File(_) => return None,
        };
        let context = subject.context.as_deref()?;
        let left = self.left.entry(Arc::clone(&subject.agent)).or_insert(MAX_MADE);
        *left = left.checked_sub(MADE_AT_LEAST + self.sizes.get(subject).copied().unwrap_or_default())?;
        let span = self.compiler.cause(id, context, &change.pointer, old, new)?;
        Some(self.compiler.sources().describe(span))
    }
}
