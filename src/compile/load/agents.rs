//! Prepares agents. Each agent is resolved once, for the findings about its merged profile and for
//! its templates.

use foldhash::HashMap;

use super::missing;
use crate::compile::compiler::{Compiler, is_agent};
use crate::compile::explain::entrance::at_entrance;
use crate::compile::{budget, rules, run};
use crate::diag::Diagnostic;
use crate::panics::caught;
use crate::resolve::{self, Hierarchy, ProfileId};
use crate::unit::Plan;

/// Prepares the agents of a repository.
pub(super) struct Preparing<'a> {
    compiler: &'a mut Compiler,
    /// The agents, each with `true` if it can be compiled.
    agents: Vec<(ProfileId, bool)>,
    findings: Vec<Diagnostic>,
}

impl<'a> Preparing<'a> {
    pub(super) fn new(compiler: &'a mut Compiler) -> Preparing<'a> {
        Preparing {
            compiler,
            agents: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Prepares all agents or, with `wanted`, only the agents whose names it accepts. If there are
    /// findings, or if it accepts no name, all agents are prepared, so that findings name the
    /// agents that they reach.
    pub(super) fn all(mut self, wanted: Option<&dyn Fn(&str) -> bool>) {
        self.refuse_too_many_values();
        let Compiler {
            repo, hierarchy, ..
        } = &*self.compiler;
        self.agents = hierarchy
            .ids()
            .filter(|&id| is_agent(repo, hierarchy, id))
            .map(|id| (id, false))
            .collect();
        let mut first: Vec<bool> = match wanted {
            Some(wanted) if self.is_clean() => self
                .agents
                .iter()
                .map(|(id, _)| wanted(&self.compiler.hierarchy.get(*id).name.value))
                .collect(),
            _ => vec![true; self.agents.len()],
        };
        self.prepare_marked(&first);
        if !self.findings.is_empty() || !first.contains(&true) {
            first
                .iter_mut()
                .for_each(|is_prepared| *is_prepared = !*is_prepared);
            self.prepare_marked(&first);
        }
        self.findings.extend(missing::check(
            &self.compiler.repo,
            &self.compiler.hierarchy,
        ));
        self.check_folders();
        let Preparing {
            compiler,
            mut agents,
            findings,
        } = self;
        agents.sort_by(|a, b| {
            compiler
                .hierarchy
                .get(a.0)
                .name
                .value
                .cmp(&compiler.hierarchy.get(b.0).name.value)
        });
        compiler.agents = agents;
        compiler.findings.extend(findings);
    }

    /// Returns `true` if none of the findings so far may reach agents.
    fn is_clean(&self) -> bool {
        self.findings.is_empty()
            && !self
                .compiler
                .findings
                .iter()
                .any(|finding| self.may_reach_agents(finding))
    }

    fn prepare_marked(&mut self, marked: &[bool]) {
        for (at, _) in marked
            .iter()
            .enumerate()
            .filter(|(_, is_marked)| **is_marked)
        {
            self.agents[at].1 = self.prepare(self.agents[at].0);
        }
    }

    /// Returns `true` if a finding from loading is in a file that agents use.
    fn may_reach_agents(&self, finding: &Diagnostic) -> bool {
        let Compiler {
            repo, hierarchy, ..
        } = &*self.compiler;
        let file = finding.primary.span.file;
        hierarchy.ids().any(|id| hierarchy.get(id).file == file)
            || repo.partials.values().any(|partial| partial.file == file)
            || repo
                .instances
                .keys()
                .any(|name| repo.instance_files(name).contains(&file))
    }

    /// Prepares an agent; returns `true` if it can be compiled.
    fn prepare(&mut self, id: ProfileId) -> bool {
        let Compiler {
            repo,
            hierarchy,
            engine,
            ..
        } = &mut *self.compiler;
        let Some(chain) = hierarchy.chain(id) else {
            return false;
        };
        let before = self.findings.len();
        let findings = &mut self.findings;
        let prepared = caught(|| {
            let resolved = resolve::resolve(chain, findings);
            Plan::prepare(repo, engine, &resolved, findings)
        });
        if let Some(profile) = self
            .compiler
            .resolve(id)
            .filter(|_| self.findings.len() > before)
        {
            for finding in self.findings.split_off(before) {
                self.findings
                    .push(at_entrance(self.compiler.sources(), finding, &profile));
            }
        }
        prepared.unwrap_or_else(|panic| {
            self.findings
                .push(run::lost(&self.compiler.hierarchy, id, &panic));
            false
        })
    }

    /// Marks agents as unusable if their golden folder cannot be created, or if another agent has
    /// the same folder.
    fn check_folders(&mut self) {
        let hierarchy = &self.compiler.hierarchy;
        let mut slugs: HashMap<String, usize> = HashMap::default();
        for at in 0..self.agents.len() {
            let id = self.agents[at].0;
            if hierarchy.chain(id).is_none() {
                continue;
            }
            let profile = hierarchy.get(id);
            if let Some(finding) = rules::unusable_slug(profile) {
                self.findings.push(finding);
                self.agents[at].1 = false;
            }
            if let Some(&other) = slugs.get(&profile.slug()) {
                self.findings.push(rules::slug_collision(
                    profile,
                    hierarchy.get(self.agents[other].0),
                ));
                // Neither of the two agents may write to the folder.
                self.agents[other].1 = false;
                self.agents[at].1 = false;
            } else {
                slugs.insert(profile.slug(), at);
            }
        }
    }

    /// Marks the first agent that exceeds the limit on merged values, and all agents after it, as
    /// unusable.
    fn refuse_too_many_values(&mut self) {
        let Compiler {
            repo, hierarchy, ..
        } = &mut *self.compiler;
        let (mut merged, mut beyond) = (0_usize, Vec::new());
        for id in hierarchy.ids().filter(|&id| is_agent(repo, hierarchy, id)) {
            merged = merged.saturating_add(values(hierarchy, id));
            if merged > budget::MAX_MERGED {
                beyond.push(id);
            }
        }
        if let Some(first) = beyond.first() {
            beyond.iter().for_each(|&id| hierarchy.refuse(id));
            self.findings
                .push(rules::too_many_values(hierarchy, *first, beyond.len()));
        }
    }
}

/// Returns the number of values that an agent merges: the sum over its chain.
fn values(hierarchy: &Hierarchy, id: ProfileId) -> usize {
    hierarchy
        .chain(id)
        .map_or(0, |chain| chain.iter().map(|profile| profile.values).sum())
}
