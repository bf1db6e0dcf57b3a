//! Finds the edits that changed each body, and verifies them by compiling.
//!
//! Each edit is applied to the older side separately, and the bodies that it can reach are compiled
//! again. If the separate effects on a body add up to the actual change, each edit is a separate
//! cause. Otherwise, edits whose effect depends on the others are joined into one cause, and the
//! proof is repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::edit::Edits;
use super::features::Features;
use super::reach::Reach;
use super::roll::OlderNames;
use crate::compile::{Compiler, Selection};
use crate::diff::ChangedFile;
use crate::world::MemoryWorld;

/// Creates a compiler for some files, limited to the agents whose names the given function accepts.
pub type Load<'l> = &'l dyn Fn(MemoryWorld, &dyn Fn(&str) -> bool) -> Compiler;

/// Edits that form one cause because they have their effect only together.
pub(super) type Cluster = BTreeSet<usize>;

/// The new text of the bodies that a cluster changes, by the body's index.
pub(super) type Claims = BTreeMap<usize, Option<String>>;

/// The edits and bodies of a proof.
pub(super) struct Proof<'p> {
    pub(super) edits: &'p Edits,
    pub(super) older: &'p MemoryWorld,
    pub(super) load: Load<'p>,
    pub(super) reach: &'p [Reach],
    /// The differing bodies.
    pub(super) bodies: &'p [ChangedFile],
    pub(super) names: &'p OlderNames,
    /// The edits that break agents. The new bodies of these agents are compiled without these
    /// edits.
    pub(super) left_out: &'p BTreeMap<Arc<str>, Cluster>,
}

/// The maximum numbers of compilation rounds and of edits tried individually. If there are more
/// edits, those of each file are tried together.
const MOST_ROUNDS: usize = 12;
const MOST_TRIED: usize = 60;

impl Proof<'_> {
    /// Returns the causes, ordered by their first edit, each with the new text of the bodies that
    /// it changes on its own.
    pub(super) fn causes(&self) -> Vec<(Cluster, Claims)> {
        let candidates = self.candidates();
        let several: Vec<usize> = (0..self.bodies.len())
            .filter(|&body| candidates[body].len() > 1)
            .collect();
        let mut state = State {
            proof: self,
            clusters: self.begin(&candidates, &several),
            candidates,
            made: HashMap::new(),
        };
        for round in 0..=MOST_ROUNDS {
            let open = state.unexplained(&several);
            if open.is_empty() || !state.join(&open, round == MOST_ROUNDS) {
                break;
            }
        }
        state.join_hunks();
        state.claims()
    }

    /// Returns, for each body, the edits that can reach it.
    fn candidates(&self) -> Vec<BTreeSet<usize>> {
        let mut by_agent: HashMap<&Arc<str>, Vec<usize>> = HashMap::new();
        let mut by_context: HashMap<&Arc<str>, Vec<usize>> = HashMap::new();
        let mut everywhere = Vec::new();
        for (edit, reach) in self.reach.iter().enumerate() {
            match reach {
                Reach::Nothing => {}
                Reach::Agents(names) => names
                    .iter()
                    .for_each(|name| by_agent.entry(name).or_default().push(edit)),
                Reach::Contexts(names) => names
                    .iter()
                    .for_each(|name| by_context.entry(name).or_default().push(edit)),
                Reach::Everything => everywhere.push(edit),
            }
        }
        self.bodies
            .iter()
            .map(|file| {
                let (agent, context) = (&file.subject.agent, file.subject.context.as_ref());
                let names = [Some(agent), Some(self.older_name(agent))]
                    .into_iter()
                    .flatten();
                let by_agent = names.filter_map(|name| by_agent.get(name)).flatten();
                let older = context.and_then(|name| self.names.contexts.get(name));
                let by_context = context
                    .into_iter()
                    .chain(older)
                    .filter_map(|name| by_context.get(name))
                    .flatten();
                let left_out = self.left_out.get(agent);
                let all = by_agent.chain(by_context).chain(&everywhere).copied();
                all.filter(|edit| left_out.is_none_or(|it| !it.contains(edit)))
                    .collect()
            })
            .collect()
    }

    fn older_name<'n>(&'n self, name: &'n Arc<str>) -> &'n Arc<str> {
        self.names.agents.get(name).unwrap_or(name)
    }

    /// Returns one cluster for each edit, or for each file if too many edits must be tried.
    fn begin(&self, candidates: &[BTreeSet<usize>], several: &[usize]) -> Vec<Cluster> {
        let tried: BTreeSet<usize> = several
            .iter()
            .flat_map(|&body| &candidates[body])
            .copied()
            .collect();
        let all = 0..self.edits.all.len();
        if tried.len() <= MOST_TRIED {
            return all.map(|edit| Cluster::from([edit])).collect();
        }
        let mut by_file: BTreeMap<&str, Cluster> = BTreeMap::new();
        for edit in all {
            by_file
                .entry(&self.edits.all[edit].path)
                .or_default()
                .insert(edit);
        }
        by_file.into_values().collect()
    }

    /// Builds the given bodies of the older side with the given edits applied, except edits that
    /// break the body's agent.
    fn made(
        &self,
        chosen: impl Fn(usize) -> bool,
        bodies: &[usize],
    ) -> HashMap<usize, Option<String>> {
        let mut by_left_out: BTreeMap<Option<&Cluster>, Vec<usize>> = BTreeMap::new();
        for &body in bodies {
            by_left_out
                .entry(self.left_out.get(&self.bodies[body].subject.agent))
                .or_default()
                .push(body);
        }
        let parts = by_left_out.into_iter().map(|(left_out, bodies)| {
            self.made_with(
                |edit| chosen(edit) && left_out.is_none_or(|it| !it.contains(&edit)),
                &bodies,
            )
        });
        parts.flatten().collect()
    }

    fn made_with(
        &self,
        chosen: impl Fn(usize) -> bool,
        bodies: &[usize],
    ) -> HashMap<usize, Option<String>> {
        let subjects = || bodies.iter().map(|&body| &self.bodies[body].subject);
        let names: BTreeSet<&Arc<str>> = subjects()
            .flat_map(|subject| [&subject.agent, self.older_name(&subject.agent)])
            .collect();
        let compiler = (self.load)(self.edits.applied(self.older, chosen), &|name| {
            names.contains(&Arc::from(name))
        });
        let agents = names
            .iter()
            .filter_map(|name| compiler.hierarchy().by_name(name))
            .collect();
        let contexts: BTreeSet<&Arc<str>> = subjects()
            .filter_map(|subject| subject.context.as_ref())
            .collect();
        let older = contexts
            .iter()
            .filter_map(|name| self.names.contexts.get(*name));
        let contexts = Some(contexts.iter().copied().chain(older).cloned().collect());
        let selection = Selection {
            agents: Some(agents),
            contexts,
            ..Selection::default()
        };
        let run = compiler.run(&selection, |agent| {
            (Arc::clone(agent.plan.name()), agent.golden_files(true))
        });
        let newer_names: HashMap<&Arc<str>, &Arc<str>> = self
            .names
            .agents
            .iter()
            .map(|(new, old)| (old, new))
            .collect();
        let contexts: HashMap<&Arc<str>, &Arc<str>> = self
            .names
            .contexts
            .iter()
            .map(|(new, old)| (old, new))
            .collect();
        let mut found: HashMap<(Arc<str>, Option<Arc<str>>), String> = HashMap::new();
        for (agent, files) in run.results {
            let name = *newer_names.get(&agent).unwrap_or(&&agent);
            let files = files.into_iter().map(|file| file.of_agent(&agent, name));
            let subject = |context| (Arc::clone(name), newer_context(context, &contexts));
            found.extend(files.map(|file| (subject(file.context), file.text)));
        }
        let text = |body: usize| {
            let subject = &self.bodies[body].subject;
            found
                .get(&(Arc::clone(&subject.agent), subject.context.clone()))
                .cloned()
        };
        bodies.iter().map(|&body| (body, text(body))).collect()
    }
}

fn newer_context(
    name: Option<Arc<str>>,
    contexts: &HashMap<&Arc<str>, &Arc<str>>,
) -> Option<Arc<str>> {
    match name {
        Some(name) => Some(
            contexts
                .get(&name)
                .map_or(Arc::clone(&name), |newer| Arc::clone(newer)),
        ),
        None => None,
    }
}

struct State<'p> {
    proof: &'p Proof<'p>,
    clusters: Vec<Cluster>,
    /// The edits that can reach each body.
    candidates: Vec<BTreeSet<usize>>,
    /// The bodies compiled with only some edits.
    made: HashMap<(Cluster, usize), Option<String>>,
}

impl State<'_> {
    /// Returns, for each body, the indices of the clusters that can reach it.
    fn reaching(&self) -> Vec<BTreeSet<usize>> {
        let mut owner: HashMap<usize, usize> = HashMap::new();
        for (at, cluster) in self.clusters.iter().enumerate() {
            owner.extend(cluster.iter().map(|edit| (*edit, at)));
        }
        self.candidates
            .iter()
            .map(|edits| {
                edits
                    .iter()
                    .filter_map(|edit| owner.get(edit).copied())
                    .collect()
            })
            .collect()
    }

    /// Returns the edits of a cluster that can reach a body.
    fn part(&self, cluster: &Cluster, body: usize) -> Cluster {
        cluster
            .intersection(&self.candidates[body])
            .copied()
            .collect()
    }

    /// Compiles some bodies with each cluster alone, unless that has been done.
    fn make(&mut self, bodies: &[usize]) {
        let reaching = self.reaching();
        let mut open: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &body in bodies {
            for &at in &reaching[body] {
                let part = self.part(&self.clusters[at], body);
                if part != self.candidates[body] && !self.made.contains_key(&(part, body)) {
                    open.entry(at).or_default().push(body);
                }
            }
        }
        for (at, open) in open {
            let cluster = self.clusters[at].clone();
            for (body, text) in self.proof.made(|edit| cluster.contains(&edit), &open) {
                self.made.insert((self.part(&cluster, body), body), text);
            }
        }
    }

    /// Returns the body compiled with only a cluster; `None` if the cluster cannot reach it.
    fn alone(&self, cluster: &Cluster, body: usize) -> Option<&Option<String>> {
        let part = self.part(cluster, body);
        match part.is_empty() {
            true => None,
            false if part == self.candidates[body] => Some(&self.proof.bodies[body].new),
            false => self.made.get(&(part, body)),
        }
    }

    /// Returns the difference in features between a string and the body on the older side.
    fn difference(&self, body: usize, text: Option<&str>) -> Features {
        Features::of(text).minus(&Features::of(self.proof.bodies[body].old.as_deref()))
    }

    /// Returns the bodies for which the separate effects of clusters do not add up.
    fn unexplained(&mut self, bodies: &[usize]) -> Vec<usize> {
        self.make(bodies);
        let reaching = self.reaching();
        let adds_up = |body: &usize| {
            let file = &self.proof.bodies[*body];
            let mut sum = Features::default();
            for text in reaching[*body]
                .iter()
                .filter_map(|at| self.alone(&self.clusters[*at], *body))
            {
                if *text != file.old {
                    sum = sum.plus(&self.difference(*body, text.as_deref()));
                }
            }
            sum == self.difference(*body, file.new.as_deref())
        };
        bodies
            .iter()
            .copied()
            .filter(|body| !adds_up(body))
            .collect()
    }

    /// Joins clusters whose effect on some bodies depends on other clusters. If there are no such
    /// clusters, or if `all` is set, it joins all clusters that can reach the body. Returns `true`
    /// if any were joined.
    fn join(&mut self, bodies: &[usize], all: bool) -> bool {
        let mut joined: Vec<BTreeSet<usize>> = Vec::new();
        let all_reaching = self.reaching();
        let without: Vec<HashMap<usize, Option<String>>> = match all {
            true => Vec::new(),
            false => self.without_each(&all_reaching, bodies),
        };
        for &body in bodies {
            let reaching = &all_reaching[body];
            let meeting: BTreeSet<usize> = reaching
                .iter()
                .copied()
                .filter(|at| {
                    let Some(without) = without.get(*at).and_then(|without| without.get(&body))
                    else {
                        return false;
                    };
                    let new = Features::of(self.proof.bodies[body].new.as_deref());
                    let beside = new.minus(&Features::of(without.as_deref()));
                    let alone = self
                        .alone(&self.clusters[*at], body)
                        .and_then(Option::as_deref);
                    beside != self.difference(body, alone)
                })
                .collect();
            joined.push(if meeting.len() > 1 {
                meeting
            } else {
                reaching.clone()
            });
        }
        self.unite(joined)
    }

    /// Compiles some bodies of the newer side, each time without one of the clusters that can reach
    /// them.
    fn without_each(
        &self,
        reaching: &[BTreeSet<usize>],
        bodies: &[usize],
    ) -> Vec<HashMap<usize, Option<String>>> {
        let mut reached: Vec<Vec<usize>> = vec![Vec::new(); self.clusters.len()];
        bodies
            .iter()
            .for_each(|&body| reaching[body].iter().for_each(|&at| reached[at].push(body)));
        self.clusters
            .iter()
            .zip(reached)
            .map(|(cluster, reached)| match reached.is_empty() {
                true => HashMap::new(),
                false => self.proof.made(|edit| !cluster.contains(&edit), &reached),
            })
            .collect()
    }

    /// Merges the clusters with the indices of each set. Returns `true` if any were merged.
    fn unite(&mut self, sets: Vec<BTreeSet<usize>>) -> bool {
        let before = self.clusters.len();
        let mut owner: Vec<usize> = (0..before).collect();
        for set in sets {
            let Some(&first) = set.first() else { continue };
            let merged: BTreeSet<usize> = set.iter().map(|&at| owner[at]).collect();
            let to = owner[first];
            owner
                .iter_mut()
                .filter(|it| merged.contains(it))
                .for_each(|it| *it = to);
        }
        let mut united: BTreeMap<usize, Cluster> = BTreeMap::new();
        for (at, cluster) in std::mem::take(&mut self.clusters).into_iter().enumerate() {
            united.entry(owner[at]).or_default().extend(cluster);
        }
        self.clusters = united.into_values().collect();
        self.clusters.len() < before
    }

    /// Joins hunks of the same file that change the same bodies, so that they are reported
    /// together.
    fn join_hunks(&mut self) {
        let claims = self.claims();
        let edits = &self.proof.edits.all;
        let mut like: BTreeMap<(&str, Vec<usize>), BTreeSet<usize>> = BTreeMap::new();
        for (at, (cluster, bodies)) in claims.iter().enumerate() {
            let paths: BTreeSet<&str> = cluster.iter().map(|edit| &*edits[*edit].path).collect();
            if let [path] = paths.into_iter().collect::<Vec<_>>()[..] {
                let is_text = cluster
                    .iter()
                    .all(|edit| edits[*edit].kind == super::EditKind::Lines);
                let bodies: Vec<usize> = bodies.keys().copied().collect();
                if is_text && !bodies.is_empty() {
                    like.entry((path, bodies)).or_default().insert(at);
                }
            }
        }
        let sets = like.into_values().filter(|set| set.len() > 1).collect();
        if self.unite(sets) {
            self.make(&(0..self.proof.bodies.len()).collect::<Vec<_>>());
        }
    }

    /// Returns the clusters, each with the new text of the bodies that it changes on its own.
    fn claims(&self) -> Vec<(Cluster, Claims)> {
        let mut claims: Vec<(Cluster, Claims)> = self
            .clusters
            .iter()
            .map(|it| (it.clone(), Claims::new()))
            .collect();
        for (body, reaching) in self.reaching().iter().enumerate() {
            for &at in reaching {
                let text = self.alone(&self.clusters[at], body);
                if let Some(text) = text.filter(|text| **text != self.proof.bodies[body].old) {
                    claims[at].1.insert(body, text.clone());
                }
            }
        }
        claims
    }
}
