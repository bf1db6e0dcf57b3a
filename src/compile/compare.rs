//! Bodies against golden files, and against those of an older side.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{AgentBodies, Compiler, Lowered, PolicyOptions, Report, Selection};
use crate::diff::{self, BodyId, CausedGroup, Change, ChangeKind, ChangedFile};
use crate::export::Request;
use crate::golden::{self, Comparer, Comparison, GoldenFile, GoldenFolder};
use crate::provider::Server;
use crate::resolve::ProfileId;
use crate::source::FileId;
use crate::world::AccessError;

/// The purpose of a comparison with golden files.
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

/// The agents of two sides, compared.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Compared {
    /// The findings on the newer side.
    pub report: Report,
    /// The files that differ, of agents without errors on either side.
    pub changes: Vec<ChangedFile>,
    /// The agents with errors on the newer side, by name.
    pub broken: Vec<BrokenAgent>,
    /// The agents with errors on the older side alone.
    pub mended: BTreeSet<Arc<str>>,
}

/// An agent with errors on the newer side.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrokenAgent {
    /// Its name.
    pub agent: Arc<str>,
    /// Its state on the older side.
    pub before: Before,
}

impl BrokenAgent {
    /// An agent that golden files were written of at some time.
    pub(crate) fn of_unknown_past(agent: Arc<str>) -> BrokenAgent {
        BrokenAgent { agent, before: Before::Compiled(Vec::new()) }
    }
}

/// The state on the older side of an agent that has errors now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Before {
    /// It was compiled to these files.
    Compiled(Vec<GoldenFile>),
    /// It had errors too.
    Broken,
    /// It was not there.
    Absent,
}

/// The state of an agent on one side.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It has errors.
    Broken,
    /// It is compiled to these files.
    Compiled(Vec<GoldenFile>),
    /// It has no errors, and nobody asked for its files.
    Unasked,
}

impl Outcome {
    /// The same of an agent that has another name.
    pub(crate) fn of_agent(self, from: &str, to: &str) -> Outcome {
        match self {
            Outcome::Compiled(files) => Outcome::Compiled(files.into_iter().map(|it| it.of_agent(from, to)).collect()),
            Outcome::Broken | Outcome::Unasked => self,
        }
    }

    fn into_files(self) -> Vec<GoldenFile> {
        match self {
            Outcome::Compiled(files) => files,
            Outcome::Broken | Outcome::Unasked => Vec::new(),
        }
    }
}

impl Compared {
    /// Takes agents of the older side for broken: the newer side cannot read their names. Their files are not gone.
    pub(crate) fn breaks<'n>(&mut self, agents: impl Iterator<Item = &'n Arc<str>>) {
        for agent in agents {
            let is_of = |file: &ChangedFile| file.subject.agent == *agent && file.new.is_none();
            self.changes.retain(|file| !is_of(file));
            self.broken.push(BrokenAgent { agent: Arc::clone(agent), before: Before::Compiled(Vec::new()) });
        }
        self.broken.sort_by(|a, b| a.agent.cmp(&b.agent));
    }

    /// Adds an agent of the newer side.
    fn add(&mut self, name: &Arc<str>, older_name: &str, before: Option<Outcome>, after: Outcome) {
        let renamed = |files: Vec<GoldenFile>| files.into_iter().map(|it| it.of_agent(older_name, name)).collect();
        let before = match before {
            None => Before::Absent,
            Some(Outcome::Broken) => Before::Broken,
            Some(outcome) => Before::Compiled(renamed(outcome.into_files())),
        };
        match (before, after) {
            (_, Outcome::Unasked) => {}
            (before, Outcome::Broken) => self.broken.push(BrokenAgent { agent: Arc::clone(name), before }),
            (Before::Broken, Outcome::Compiled(_)) => drop(self.mended.insert(Arc::clone(name))),
            (Before::Absent, Outcome::Compiled(files)) => self.changes.extend(changed(name, files, Vec::new())),
            (Before::Compiled(old), Outcome::Compiled(files)) => self.changes.extend(changed(name, files, old)),
        }
    }
}

/// The part of two sides that has to be compared.
pub struct Scope<'s> {
    /// Tells if anything that differs can reach an agent; asked with names of both sides.
    pub is_reached: &'s (dyn Fn(&Arc<str>) -> bool + Sync),
    /// The names of agents on the older side, by their name on the newer one, if that differs.
    pub older_names: &'s BTreeMap<Arc<str>, Arc<str>>,
}

impl Scope<'_> {
    fn is_reached(&self, name: &Arc<str>) -> bool {
        (self.is_reached)(name)
    }

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
        kept.map(|(loaded, body)| Request {
            agent: Arc::clone(self.plan.name()),
            context: Arc::clone(&loaded.context.name),
            instance: Arc::clone(&self.plan.instance.name.value),
            wire: self.plan.wire,
            server: Server::of(self.plan.instance, self.plan.api),
            line: self.plan.request_line(None),
            body: body.pretty(),
        })
        .collect()
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
        let bundled: BTreeSet<FileId> =
            self.sources().iter().filter(|(_, file)| file.path().starts_with("bundled:")).map(|(id, _)| id).collect();
        let reached = self.agents_by_file(&bundled).unwrap_or_default();
        let contexts = self.contexts.iter().filter(|loaded| loaded.golden).map(|loaded| loaded.context.file);
        let used: BTreeSet<FileId> =
            reached.into_keys().chain(contexts.filter(|file| bundled.contains(file))).collect();
        used.into_iter()
            .map(|id| {
                let file = self.sources().get(id);
                (file.path().to_string(), golden::fingerprint(file.source_text().as_str().as_bytes()))
            })
            .collect()
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

    /// Makes every selected body of this side, and those of an older one that may differ. Only agents without errors on both
    /// sides are compared; which agents have errors on one side alone is told beside that.
    pub fn compare_older(
        &self,
        older: &Compiler,
        selection: &Selection,
        options: &PolicyOptions,
        all_contexts: bool,
        scope: &Scope<'_>,
    ) -> Compared {
        let (report, after) = self.outcomes(selection, options, all_contexts, &|name| scope.is_reached(name));
        let is_broken = |name: &Arc<str>| matches!(after.get(name), Some(Outcome::Broken));
        let of_older: BTreeMap<&Arc<str>, &Arc<str>> =
            self.agent_names().map(|name| (scope.older_name(name), name)).collect();
        let chosen = older.selection_of(self, selection, scope);
        let (_, mut before) = older.outcomes(&chosen, options, all_contexts, &|name| {
            scope.is_reached(name)
                || of_older.get(name).is_some_and(|newer| scope.is_reached(newer) || is_broken(newer))
        });
        let mut compared = Compared { report, ..Compared::default() };
        for (name, outcome) in after {
            let older_name = scope.older_name(&name);
            compared.add(&name, older_name, before.remove(older_name), outcome);
        }
        if selection.is_everything() {
            let gone = before.into_iter().filter(|(name, _)| !of_older.contains_key(name));
            gone.for_each(|(name, outcome)| compared.changes.extend(changed(&name, Vec::new(), outcome.into_files())));
        }
        compared
    }

    /// Returns what becomes of each selected agent, and a report of that. Of agents that are not asked for, only errors are told.
    pub(crate) fn outcomes(
        &self,
        selection: &Selection,
        options: &PolicyOptions,
        all_contexts: bool,
        is_asked: &(dyn Fn(&Arc<str>) -> bool + Sync),
    ) -> (Report, BTreeMap<Arc<str>, Outcome>) {
        let (report, agents) = self.report_each(selection, options, |agent| {
            let name = Arc::clone(agent.plan.name());
            let outcome = match self.is_broken(agent, options) {
                true => Outcome::Broken,
                false if is_asked(&name) => Outcome::Compiled(agent.golden_files(all_contexts)),
                false => Outcome::Unasked,
            };
            (name, outcome)
        });
        let unusable = self.agents.iter().filter(|(id, usable)| !usable && self.chosen_agent(selection, *id));
        let unusable = unusable.map(|(id, _)| (Arc::clone(&self.hierarchy.get(*id).name.value), Outcome::Broken));
        (report, agents.into_iter().chain(unusable).collect())
    }

    fn agent_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.agents.iter().map(|(id, _)| &self.hierarchy.get(*id).name.value)
    }

    /// Returns what this side lowers and an older one did not.
    pub fn newly_lowered(&self, older: &Compiler, options: &PolicyOptions) -> Vec<Lowered> {
        self.policy(options, false).newly_lowered(self, &older.policy(options, false), older)
    }

    /// The agents of this side that a selection on another one has, or all.
    fn selection_of(&self, newer: &Compiler, selection: &Selection, scope: &Scope<'_>) -> Selection {
        let older_name = |id: &ProfileId| scope.older_name(&newer.hierarchy.get(*id).name.value);
        let agents = selection.agents.as_ref();
        let agents = agents.map(|ids| ids.iter().filter_map(|id| self.hierarchy.by_name(older_name(id))).collect());
        Selection { agents, contexts: selection.contexts.clone(), ..Selection::default() }
    }

    /// Changes of files in groups, each with the line of this side that caused it.
    pub fn grouped(&self, changes: &[ChangedFile]) -> Vec<CausedGroup> {
        let sizes = changes.iter().map(|file| (&file.subject, file.new.as_ref().map_or(0, String::len)));
        let mut causes = Causes { compiler: self, sizes: sizes.collect(), left: HashMap::new() };
        diff::grouped(changes, |subject, change| causes.of(subject, change))
    }
}

/// The files of an agent whose text changed, then those that are gone.
pub(crate) fn changed(agent: &Arc<str>, files: Vec<GoldenFile>, mut known: Vec<GoldenFile>) -> Vec<ChangedFile> {
    let subject = |context: Option<Arc<str>>| BodyId { agent: Arc::clone(agent), context };
    let mut changes = Vec::new();
    for file in files {
        let old = known.iter().position(|old| old.path == file.path).map(|at| known.remove(at).text);
        if old.as_ref() != Some(&file.text) {
            changes.push(ChangedFile { subject: subject(file.context), path: file.path, old, new: Some(file.text) });
        }
    }
    changes.extend(known.into_iter().map(|file| ChangedFile {
        subject: subject(file.context),
        path: file.path,
        old: Some(file.text),
        new: None,
    }));
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
/// The least memory that making a body takes, in bytes.
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
