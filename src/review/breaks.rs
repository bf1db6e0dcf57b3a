//! Finds the edits that break or fix agents, and verifies them by compiling.
//!
//! An edit breaks an agent if applying only this edit to the older side causes an error of a rule
//! for which the agent has an error on the newer side too. If no single edit does, the cause is the
//! smallest set of edits that does so together. Edits that fix agents are found in the same way,
//! with the absence of errors as the proof.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::edit::{EditKind, Edits};
use super::proof::{Cluster, Load};
use super::reach::Reach;
use super::roll::OlderNames;
use crate::compile::compare::{Before, BrokenAgent, Comparing, Outcome, changed};
use crate::compile::{PolicyOptions, Report, Selection};
use crate::diag::Severity;
use crate::diff::ChangedFile;
use crate::world::MemoryWorld;

/// The maximum number of edits tried individually. If there are more, the edits of each file are
/// tried together.
const MOST_TRIED: usize = 60;

/// The edits to verify, and the data needed to verify them.
pub(super) struct Trials<'t> {
    pub(super) edits: &'t Edits,
    pub(super) reach: &'t [Reach],
    pub(super) older: &'t MemoryWorld,
    pub(super) load: Load<'t>,
    pub(super) policy: &'t PolicyOptions,
    pub(super) all_contexts: bool,
    pub(super) contexts: Option<&'t Vec<Arc<str>>>,
    pub(super) names: &'t OlderNames,
    pub(super) nameless: &'t Nameless,
}

/// The agents that each cluster of edits breaks or fixes.
pub(super) type Clusters = BTreeMap<Cluster, BTreeSet<Arc<str>>>;

/// The codes of errors, by agent.
pub(super) type Codes = BTreeMap<Arc<str>, BTreeSet<&'static str>>;

/// The effect that edits are expected to have on agents.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// The edits cause one of these errors, which are listed by agent.
    Errors(&'w Codes),
    /// The edits remove all errors of these agents.
    NoError(&'w BTreeSet<Arc<str>>),
}

impl Wanted<'_> {
    fn agents(&self) -> BTreeSet<&Arc<str>> {
        match self {
            Wanted::Errors(codes) => codes.keys().collect(),
            Wanted::NoError(agents) => agents.iter().collect(),
        }
    }

    fn is_met(&self, agent: &Arc<str>, made: &Made) -> bool {
        match (self, made.codes.get(agent)) {
            (Wanted::Errors(codes), Some(found)) => codes
                .get(agent)
                .is_some_and(|codes| !codes.is_disjoint(found)),
            (Wanted::Errors(_), None) => false,
            (Wanted::NoError(_), found) => found.is_none() && made.outcomes.contains_key(agent),
        }
    }
}

/// The older side, compiled with some edits. Agents are listed under their names on the newer side.
struct Made {
    outcomes: BTreeMap<Arc<str>, Outcome>,
    codes: Codes,
}

/// The agents whose names cannot be read because of errors in their files, with the paths of these
/// files. Findings cannot mention these agents by name.
pub(super) type Nameless = BTreeMap<Arc<str>, Arc<str>>;

/// Keeps the missing agents whose files exist but contain errors.
pub(super) fn nameless(gone: Nameless, report: &Report) -> Nameless {
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let paths: BTreeSet<&Arc<str>> = errors
        .map(|error| report.sources.get(error.primary.span.file).path())
        .collect();
    gone.into_iter()
        .filter(|(_, path)| paths.contains(path))
        .collect()
}

/// Returns the codes of a report's errors, by agent.
pub(super) fn codes_of(report: &Report, nameless: &Nameless) -> Codes {
    let mut codes = Codes::new();
    for finding in report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
    {
        let path = report.sources.get(finding.primary.span.file).path();
        for (agent, _) in nameless.iter().filter(|(_, of_agent)| *of_agent == path) {
            codes
                .entry(Arc::clone(agent))
                .or_default()
                .insert(finding.rule.code);
        }
        for agent in &finding.agents {
            codes
                .entry(Arc::clone(agent))
                .or_default()
                .insert(finding.rule.code);
        }
    }
    codes
}

impl Trials<'_> {
    /// Returns the clusters of edits with the wanted effect, and the agents that each affects.
    pub(super) fn causes(&self, wanted: Wanted<'_>) -> Clusters {
        let mut clusters = Clusters::new();
        let mut open: BTreeSet<&Arc<str>> = wanted.agents();
        for piece in self.pieces(&open) {
            let reached: BTreeSet<&Arc<str>> = wanted
                .agents()
                .into_iter()
                .filter(|agent| !self.candidates(agent).is_disjoint(&piece))
                .collect();
            let done = self.done(&piece, &reached, wanted);
            open.retain(|agent| !done.contains(*agent));
            if !done.is_empty() {
                clusters.insert(piece, done);
            }
        }
        for (candidates, agents) in self.by_candidates(&open) {
            let (cluster, done) = self.together(candidates, &agents, wanted);
            if !done.is_empty() {
                clusters.entry(cluster).or_default().extend(done);
            }
        }
        clusters
    }

    /// Returns the changes in broken agents that remain without the edits that break these agents.
    pub(super) fn beside(
        &self,
        broken: &[BrokenAgent],
        left_out: &BTreeMap<Arc<str>, Cluster>,
    ) -> Vec<ChangedFile> {
        let mut by_cluster: BTreeMap<&Cluster, Vec<&BrokenAgent>> = BTreeMap::new();
        for agent in broken {
            if let Some(cluster) = left_out
                .get(&agent.agent)
                .filter(|it| **it != self.candidates(&agent.agent))
            {
                by_cluster.entry(cluster).or_default().push(agent);
            }
        }
        let mut changes = Vec::new();
        for (cluster, agents) in by_cluster {
            let names = agents.iter().map(|it| &it.agent).collect();
            let mut made = self.made(|edit| !cluster.contains(&edit), &names);
            for BrokenAgent { agent, before, .. } in agents {
                if let (Before::Compiled(old), Some(Outcome::Compiled(new))) =
                    (before, made.outcomes.remove(agent))
                {
                    changes.extend(changed(agent, new, old.clone()));
                }
            }
        }
        changes
    }

    /// Returns the edits that can reach an agent. Schemas reach no body but check all of them, so
    /// edits to schemas are included.
    fn candidates(&self, agent: &Arc<str>) -> Cluster {
        let older = self.names.agents.get(agent).unwrap_or(agent);
        let reaches = |(edit, reach): (usize, &Reach)| match reach {
            Reach::Nothing => self.edits.all[edit].kind != EditKind::Comments,
            reach => reach.has_agent(agent) || reach.has_agent(older),
        };
        (0..)
            .zip(self.reach)
            .filter(|it| reaches(*it))
            .map(|(edit, _)| edit)
            .collect()
    }

    /// Returns the clusters to try separately: each edit that can reach one of the agents, or all
    /// edits in a file if there are many.
    fn pieces(&self, agents: &BTreeSet<&Arc<str>>) -> Vec<Cluster> {
        let edits: Cluster = agents
            .iter()
            .flat_map(|agent| self.candidates(agent))
            .collect();
        if edits.len() <= MOST_TRIED {
            return edits
                .into_iter()
                .map(|edit| Cluster::from([edit]))
                .collect();
        }
        let mut by_file: BTreeMap<&str, Cluster> = BTreeMap::new();
        for edit in edits {
            by_file
                .entry(&self.edits.all[edit].path)
                .or_default()
                .insert(edit);
        }
        by_file.into_values().take(MOST_TRIED).collect()
    }

    fn by_candidates<'a>(
        &self,
        agents: &BTreeSet<&'a Arc<str>>,
    ) -> BTreeMap<Cluster, BTreeSet<&'a Arc<str>>> {
        let mut by_candidates: BTreeMap<Cluster, BTreeSet<&Arc<str>>> = BTreeMap::new();
        for agent in agents {
            by_candidates
                .entry(self.candidates(agent))
                .or_default()
                .insert(*agent);
        }
        by_candidates
    }

    /// Reduces a cluster to the edits needed for the wanted effect. Returns these edits and the
    /// agents that they affect.
    fn together(
        &self,
        mut cluster: Cluster,
        agents: &BTreeSet<&Arc<str>>,
        wanted: Wanted<'_>,
    ) -> (Cluster, BTreeSet<Arc<str>>) {
        let mut done = self.done(&cluster, agents, wanted);
        if done.len() < agents.len() || cluster.len() > MOST_TRIED {
            return (cluster, done);
        }
        for edit in cluster.clone() {
            let fewer: Cluster = cluster.iter().copied().filter(|it| *it != edit).collect();
            let of_fewer = self.done(&fewer, agents, wanted);
            if of_fewer.len() == done.len() {
                (cluster, done) = (fewer, of_fewer);
            }
        }
        (cluster, done)
    }

    /// Returns the given agents on which the cluster alone has the wanted effect.
    fn done(
        &self,
        cluster: &Cluster,
        agents: &BTreeSet<&Arc<str>>,
        wanted: Wanted<'_>,
    ) -> BTreeSet<Arc<str>> {
        if agents.is_empty() || cluster.is_empty() {
            return BTreeSet::new();
        }
        let made = self.made(|edit| cluster.contains(&edit), agents);
        agents
            .iter()
            .filter(|agent| wanted.is_met(agent, &made))
            .map(|agent| Arc::clone(agent))
            .collect()
    }

    fn made(&self, chosen: impl Fn(usize) -> bool, agents: &BTreeSet<&Arc<str>>) -> Made {
        let newer: BTreeMap<&Arc<str>, &Arc<str>> = self
            .names
            .agents
            .iter()
            .map(|(new, old)| (old, new))
            .collect();
        let older = agents
            .iter()
            .filter_map(|agent| self.names.agents.get(*agent));
        let names: BTreeSet<&Arc<str>> = agents.iter().copied().chain(older).collect();
        let compiler = (self.load)(self.edits.applied(self.older, chosen), &|name| {
            names.contains(&Arc::from(name))
        });
        let ids = names
            .iter()
            .filter_map(|name| compiler.hierarchy().by_name(name))
            .collect();
        let selection = Selection {
            agents: Some(ids),
            contexts: self.contexts.cloned(),
            ..Selection::default()
        };
        let (options, all_contexts) = (self.policy, self.all_contexts);
        let comparing = Comparing {
            compiler: &compiler,
            selection: &selection,
            options,
            all_contexts,
        };
        let (report, outcomes) = comparing.outcomes(&|_| true);
        let newer_name = |name: Arc<str>| {
            newer
                .get(&name)
                .map_or(Arc::clone(&name), |newer| Arc::clone(newer))
        };
        Made {
            outcomes: outcomes
                .into_iter()
                .map(|(name, it)| {
                    let newer = newer_name(Arc::clone(&name));
                    (Arc::clone(&newer), it.of_agent(&name, &newer))
                })
                .collect(),
            codes: codes_of(&report, self.nameless)
                .into_iter()
                .map(|(name, it)| (newer_name(name), it))
                .collect(),
        }
    }
}
