//! Compares bodies with golden files, or with bodies from an older side.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::compiler::Compiler;
use super::explain::Explainer;
use super::policy::PolicyOptions;
use super::reach::users::Users;
use super::report::{Report, Reporter};
use super::run::AgentBodies;
use super::selection::{Chosen, Names, Selection};
use crate::diff::{self, BodyId, CausedGroup, Change, ChangeKind, ChangedFile};
use crate::export::Request;
use crate::golden::{self, Comparer, Comparison, GoldenFile, GoldenFolder};
use crate::provider::Server;
use crate::source::FileId;
use crate::world::AccessError;

/// The purpose of a comparison with golden files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Golden files will be written, so differences are not findings.
    Write,
    /// Golden files must be up to date, so differences are reported.
    Check,
    /// Only changes are shown, and golden files cause no findings.
    Show,
}

/// The result of comparing the agents in an older and a newer version.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Compared {
    /// The findings on the newer side.
    pub report: Report,
    /// The changed files of agents that have no errors on either side.
    pub changes: Vec<ChangedFile>,
    /// The agents with errors on the newer side, sorted by name.
    pub broken: Vec<BrokenAgent>,
    /// The agents that have errors only on the older side.
    pub mended: BTreeSet<Arc<str>>,
}

/// An agent with errors on the newer side.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrokenAgent {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The agent's state on the older side.
    pub before: Before,
}

impl BrokenAgent {
    /// Returns a broken agent whose older state is unknown. It is treated as compiled, because
    /// it had golden files.
    pub(crate) fn of_unknown_past(agent: Arc<str>) -> BrokenAgent {
        BrokenAgent {
            agent,
            before: Before::Compiled(Vec::new()),
        }
    }
}

/// The older state of an agent that now has errors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Before {
    /// The agent compiled to these files.
    Compiled(Vec<GoldenFile>),
    /// The agent also had errors on the older side.
    Broken,
    /// The agent did not exist.
    Absent,
}

/// The state of an agent on one side.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The agent has errors.
    Broken,
    /// The agent compiles to these files.
    Compiled(Vec<GoldenFile>),
    /// The agent has no errors, and its files were not requested.
    Unasked,
}

impl Outcome {
    /// Renames the agent in the outcome.
    pub(crate) fn of_agent(self, from: &str, to: &str) -> Outcome {
        match self {
            Outcome::Compiled(files) => {
                Outcome::Compiled(files.into_iter().map(|it| it.of_agent(from, to)).collect())
            }
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
    /// Marks older agents as broken, so that their files do not count as removed. The newer side
    /// cannot read the names of these agents.
    pub(crate) fn breaks<'n>(&mut self, agents: impl Iterator<Item = &'n Arc<str>>) {
        for agent in agents {
            self.changes
                .retain(|file| file.subject.agent != *agent || file.new.is_some());
            self.broken.push(BrokenAgent {
                agent: Arc::clone(agent),
                before: Before::Compiled(Vec::new()),
            });
        }
        self.broken.sort_by(|a, b| a.agent.cmp(&b.agent));
    }

    /// Adds an agent on the newer side.
    fn add(&mut self, name: &Arc<str>, older_name: &str, before: Option<Outcome>, after: Outcome) {
        let before = match before {
            None => Before::Absent,
            Some(Outcome::Broken) => Before::Broken,
            Some(outcome) => Before::Compiled(outcome.of_agent(older_name, name).into_files()),
        };
        match (before, after) {
            (_, Outcome::Unasked) => {}
            (before, Outcome::Broken) => self.broken.push(BrokenAgent {
                agent: Arc::clone(name),
                before,
            }),
            (Before::Broken, Outcome::Compiled(_)) => drop(self.mended.insert(Arc::clone(name))),
            (Before::Absent, Outcome::Compiled(files)) => {
                self.changes.extend(changed(name, files, Vec::new()));
            }
            (Before::Compiled(old), Outcome::Compiled(files)) => {
                self.changes.extend(changed(name, files, old));
            }
        }
    }
}

/// Limits a comparison of two sides to some agents.
pub struct Scope<'s> {
    /// Returns `true` if a difference may reach an agent. The function is called with names from
    /// both sides.
    pub is_reached: &'s (dyn Fn(&Arc<str>) -> bool + Sync),
    /// The older names of renamed agents, by their newer names.
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
    /// Returns the agent's golden files: `request.json`, and the bodies for all contexts, or only
    /// for contexts that have golden files.
    pub fn golden_files(&self, all_contexts: bool) -> Vec<GoldenFile> {
        let kept = self
            .bodies
            .iter()
            .filter(|(loaded, _)| all_contexts || loaded.golden);
        golden::files(
            &self.plan,
            kept.map(|(loaded, body)| (&loaded.context.name, body)),
        )
    }

    /// Returns the agent's requests for all contexts, or only for contexts that have golden files.
    fn requests(&self, all_contexts: bool) -> Vec<Request> {
        let kept = self
            .bodies
            .iter()
            .filter(|(loaded, _)| all_contexts || loaded.golden);
        let requests = kept.map(|(loaded, body)| Request {
            agent: Arc::clone(self.plan.name()),
            context: Arc::clone(&loaded.context.name),
            instance: Arc::clone(&self.plan.instance.name.value),
            wire: self.plan.wire,
            server: Server::of(self.plan.instance, self.plan.api),
            line: self.plan.request_line(None),
            body: body.pretty(),
        });
        requests.collect()
    }
}

/// Compares a repository's bodies with golden files, or with bodies from an older side.
#[derive(Clone, Copy)]
pub struct Comparing<'a> {
    /// The repository; when comparing two sides, the newer repository.
    pub compiler: &'a Compiler,
    /// The selected agents and contexts.
    pub selection: &'a Selection,
    /// The policy of the run.
    pub options: &'a PolicyOptions,
    /// `true` to compile bodies for all contexts, `false` to compile them only for contexts that
    /// have golden files.
    pub all_contexts: bool,
}

impl<'a> Comparing<'a> {
    /// Compiles all selected bodies and compares them with the files in a folder. `tick` is called
    /// once for each agent.
    ///
    /// # Errors
    ///
    /// Returns an error if a golden file cannot be read.
    pub fn golden(
        &self,
        folder: &GoldenFolder,
        purpose: Purpose,
        tick: impl Fn() + Sync,
    ) -> Result<(Report, Comparison), AccessError> {
        let reporter = self.reporter();
        let contexts = self
            .compiler
            .contexts
            .iter()
            .map(|loaded| loaded.context.name.as_ref());
        let is_everything =
            self.selection.is_everything() && Names::of(self.compiler).are_all_known();
        let comparer = Comparer::new(folder, contexts, is_everything)?;
        let (mut found, agents) = reporter.found(|agent| {
            tick();
            let files = (!reporter.is_broken(agent)).then(|| agent.golden_files(self.all_contexts));
            files
                .map(|files| comparer.agent(agent.plan.name(), files))
                .transpose()
        });
        let agents = agents.into_iter().collect::<Result<_, _>>()?;
        let comparison = comparer.finish(agents, self.agent_names())?;
        let comparison = match purpose {
            Purpose::Check => comparison,
            Purpose::Write | Purpose::Show => comparison.made_from(bundled_prints(self.compiler)),
        };
        if purpose == Purpose::Check {
            found
                .findings
                .extend(comparison.drift_finding(&mut found.sources));
        }
        if purpose != Purpose::Show {
            found
                .findings
                .extend(comparison.foreign_finding(&mut found.sources));
        }
        Ok((reporter.judged(found), comparison))
    }

    /// Builds all selected requests of agents without errors, sorted by agent and context.
    pub fn requests(&self) -> (Report, Vec<Request>) {
        let reporter = self.reporter();
        let (report, agents) = reporter.each(|agent| match reporter.is_broken(agent) {
            true => Vec::new(),
            false => agent.requests(self.all_contexts),
        });
        (report, agents.into_iter().flatten().collect())
    }

    /// Compiles all selected bodies on this side, and the older side's bodies that may differ. Only
    /// agents without errors on both sides are compared; agents with errors on one side are
    /// reported separately.
    pub fn with_older(&self, older: &Compiler, scope: &Scope<'_>) -> Compared {
        let (report, after) = self.outcomes(&|name| scope.is_reached(name));
        let of_older: BTreeMap<&Arc<str>, &Arc<str>> = self
            .agent_names()
            .map(|name| (scope.older_name(name), name))
            .collect();
        let chosen = self.older_selection(older, scope);
        let (_, mut before) = Comparing {
            compiler: older,
            selection: &chosen,
            ..*self
        }
        .outcomes(&|name| {
            let newer = of_older.get(name).copied();
            scope.is_reached(name)
                || newer.is_some_and(|newer| scope.is_reached(newer) || is_broken(after.get(newer)))
        });
        let mut compared = Compared {
            report,
            ..Compared::default()
        };
        for (name, outcome) in after {
            let older_name = scope.older_name(&name);
            compared.add(&name, older_name, before.remove(older_name), outcome);
        }
        if self.selection.is_everything() {
            for (name, outcome) in before
                .into_iter()
                .filter(|(name, _)| !of_older.contains_key(name))
            {
                compared
                    .changes
                    .extend(changed(&name, Vec::new(), outcome.into_files()));
            }
        }
        compared
    }

    /// Returns the outcome of each selected agent, and a report. Agents that `is_asked` rejects
    /// only report errors.
    pub(crate) fn outcomes(
        &self,
        is_asked: &(dyn Fn(&Arc<str>) -> bool + Sync),
    ) -> (Report, BTreeMap<Arc<str>, Outcome>) {
        let reporter = self.reporter();
        let (report, agents) = reporter.each(|agent| {
            let name = Arc::clone(agent.plan.name());
            let outcome = match reporter.is_broken(agent) {
                true => Outcome::Broken,
                false if is_asked(&name) => {
                    Outcome::Compiled(agent.golden_files(self.all_contexts))
                }
                false => Outcome::Unasked,
            };
            (name, outcome)
        });
        let hierarchy = &self.compiler.hierarchy;
        let unusable = Chosen::new(self.compiler, self.selection).unusable();
        let unusable = unusable
            .into_iter()
            .map(|id| (Arc::clone(&hierarchy.get(id).name.value), Outcome::Broken));
        (report, agents.into_iter().chain(unusable).collect())
    }

    fn reporter(&self) -> Reporter<'a> {
        Reporter::new(self.compiler, self.selection, self.options)
    }

    fn agent_names(&self) -> impl ExactSizeIterator<Item = &'a Arc<str>> + use<'a> {
        let compiler = self.compiler;
        compiler
            .agents
            .iter()
            .map(|(id, _)| &compiler.hierarchy.get(*id).name.value)
    }

    /// Returns the selection for an older side: the same agents under their older names, or all
    /// agents.
    fn older_selection(&self, older: &Compiler, scope: &Scope<'_>) -> Selection {
        let mut chosen = Selection {
            contexts: self.selection.contexts.clone(),
            ..Selection::default()
        };
        if let Some(ids) = &self.selection.agents {
            let names = ids
                .iter()
                .map(|id| scope.older_name(&self.compiler.hierarchy.get(*id).name.value));
            chosen.agents = Some(
                names
                    .filter_map(|name| older.hierarchy.by_name(name))
                    .collect(),
            );
        }
        chosen
    }
}

fn is_broken(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Broken))
}

/// Returns the fingerprints of the bundled files that golden files depend on, by path: files in
/// chains, includes, provider instances and contexts.
fn bundled_prints(compiler: &Compiler) -> BTreeMap<String, String> {
    let sources = compiler.sources();
    let bundled = sources.iter().filter(|(_, file)| file.is_bundled());
    let bundled: BTreeSet<FileId> = bundled.map(|(id, _)| id).collect();
    let reached = Users::of(compiler).by_file(&bundled).unwrap_or_default();
    let mut used: BTreeSet<FileId> = reached.into_keys().collect();
    let contexts = compiler
        .contexts
        .iter()
        .filter(|loaded| loaded.golden)
        .map(|loaded| loaded.context.file);
    used.extend(contexts.filter(|file| bundled.contains(file)));
    let prints = used.into_iter().map(|id| {
        let file = sources.get(id);
        (
            file.path().to_string(),
            golden::fingerprint(file.source_text().as_str().as_bytes()),
        )
    });
    prints.collect()
}

/// Groups file changes by cause. Each group has the line that caused its changes.
pub fn grouped(compiler: &Compiler, changes: &[ChangedFile]) -> Vec<CausedGroup> {
    let sizes = changes
        .iter()
        .map(|file| (&file.subject, file.new.as_ref().map_or(0, String::len)));
    let mut causes = Causes {
        compiler,
        sizes: sizes.collect(),
        left: HashMap::new(),
    };
    diff::grouped(changes, |subject, change| causes.of(subject, change))
}

/// Returns the changed files of an agent, followed by its removed files.
pub(crate) fn changed(
    agent: &Arc<str>,
    files: Vec<GoldenFile>,
    mut known: Vec<GoldenFile>,
) -> Vec<ChangedFile> {
    let mut changes = Vec::new();
    for file in files {
        let old = known
            .iter()
            .position(|old| old.path == file.path)
            .map(|at| known.remove(at).text);
        if old.as_ref() != Some(&file.text) {
            let subject = BodyId {
                agent: Arc::clone(agent),
                context: file.context,
            };
            changes.push(ChangedFile {
                subject,
                path: file.path,
                old,
                new: Some(file.text),
            });
        }
    }
    for file in known {
        let subject = BodyId {
            agent: Arc::clone(agent),
            context: file.context,
        };
        changes.push(ChangedFile {
            subject,
            path: file.path,
            old: Some(file.text),
            new: None,
        });
    }
    changes
}

/// Finds the lines that caused changes. Each search recompiles the body, so the work for one agent
/// is limited, and causes are found only for the agent's first changes.
struct Causes<'c> {
    compiler: &'c Compiler,
    /// The size of each subject's new text, in bytes.
    sizes: HashMap<&'c BodyId, usize>,
    /// The number of bytes that may still be recompiled for each agent.
    left: HashMap<Arc<str>, usize>,
}

/// The maximum number of bytes that are compiled for one agent to find causes.
const MAX_MADE: usize = 8 * 1024 * 1024;
/// The minimum cost of compiling a body, in bytes.
const MADE_AT_LEAST: usize = 16 * 1024;

impl Causes<'_> {
    /// Returns the location where the new value of a change was written, or where a missing value
    /// should have been written; `None` if the location is unknown, or if the agent's limit is used
    /// up.
    fn of(&mut self, subject: &BodyId, change: &Change) -> Option<String> {
        let id = self.compiler.hierarchy().by_name(&subject.agent)?;
        let (old, new) = match &change.kind {
            ChangeKind::Added(new) => (None, Some(new)),
            ChangeKind::Replaced(old, new) => (Some(old), Some(new)),
            ChangeKind::Removed(_) => (None, None),
            ChangeKind::Reordered(..) | ChangeKind::File(_) => return None,
        };
        let context = subject.context.as_deref()?;
        let left = self
            .left
            .entry(Arc::clone(&subject.agent))
            .or_insert(MAX_MADE);
        *left =
            left.checked_sub(MADE_AT_LEAST + self.sizes.get(subject).copied().unwrap_or_default())?;
        let span = Explainer::new(self.compiler).cause(id, context, &change.pointer, old, new)?;
        Some(self.compiler.sources().describe(span))
    }
}
