//! Routing: the first agent of a roster whose `match` accepts a file.

mod rerouted;

pub use rerouted::Rerouted;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Compiler, rules};
use crate::conversation::TaskKind;
use crate::diag::{Diagnostic, Suggestions};
use crate::profile::MATCH_KEYS;
use crate::repo::{FileToRoute, Matcher, Mismatch, Repo, Roster};
use crate::resolve::{self, Hierarchy, MergedTable, ProfileId, ResolvedProfile};
use crate::source::Spanned;
use crate::toml::Kind;

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The agent; `None` if no agent of the roster accepts.
    pub agent: Option<ProfileId>,
    /// The agents before it, in order, and why each was passed over.
    pub passed: Vec<(Arc<str>, PassedOver)>,
}

/// Why an agent was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassedOver {
    /// Its `match` does not accept the file.
    Mismatch(Vec<Mismatch>),
    /// There is no such agent, it is abstract, or it has findings that make it unusable.
    Unusable,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassedOver::Mismatch(mismatches) => {
                let texts: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
            PassedOver::Unusable => f.write_str("it cannot be used: `reqc check` says why"),
        }
    }
}

impl Compiler {
    /// The first agent of a roster that accepts a file.
    pub fn route(&self, roster: &Roster, subject: &FileToRoute) -> Route {
        let mut passed = Vec::new();
        for agent in &roster.agents {
            let why = match self.candidate(&agent.value) {
                None => PassedOver::Unusable,
                Some((id, profile)) => match matcher(&profile).mismatches(subject) {
                    accepted if accepted.is_empty() => return Route { agent: Some(id), passed },
                    mismatches => PassedOver::Mismatch(mismatches),
                },
            };
            passed.push((Arc::clone(&agent.value), why));
        }
        Route { agent: None, passed }
    }

    /// The agent that compresses the chats of another: the first of the roster `chat_compression` that can be used and accepts every file, or,
    /// in a repository without that roster, the first with the tag `compression` that uses the same provider instance.
    pub fn compression_agent(&self, chat: ProfileId) -> Option<ProfileId> {
        let roster = self.repo().rosters.iter().find(|roster| *roster.name.value == *COMPRESSION_ROSTER);
        if let Some(roster) = roster {
            return self.route(roster, &FileToRoute::new("", None)).agent;
        }
        let instance = &self.plan(chat)?.instance.name.value;
        let usable = self.agents.iter().filter(|(_, usable)| *usable).map(|(id, _)| *id);
        usable
            .filter(|id| self.resolve(*id).is_some_and(|profile| profile.strings("tags").contains(&COMPRESSION_TAG)))
            .find(|id| {
                self.plan(*id).is_some_and(|plan| plan.kind == TaskKind::Chat && plan.instance.name.value == *instance)
            })
    }

    /// An agent that could be sent.
    fn candidate(&self, name: &str) -> Option<(ProfileId, ResolvedProfile<'_>)> {
        let id = self.hierarchy.by_name(name).filter(|&id| !self.hierarchy.get(id).is_abstract())?;
        let is_broken = self.agents.iter().any(|(agent, usable)| *agent == id && !usable);
        (!is_broken).then(|| self.resolve(id).map(|profile| (id, profile)))?
    }
}

/// The roster of the agents that compress chats.
const COMPRESSION_ROSTER: &str = "chat_compression";

/// The tag of agents that compress chats.
const COMPRESSION_TAG: &str = "compression";

/// Returns what a profile's `match` accepts.
fn matcher(profile: &ResolvedProfile<'_>) -> Matcher {
    let [files, paths, projects] = match_patterns(profile);
    Matcher::new(files, paths, projects)
}

/// The patterns of a profile's `match`: of files, paths and projects.
pub(super) fn match_patterns<'r>(profile: &ResolvedProfile<'r>) -> [Vec<&'r str>; 3] {
    MATCH_KEYS.map(|key| patterns(profile, key))
}

fn patterns<'r>(profile: &ResolvedProfile<'r>, key: &str) -> Vec<&'r str> {
    let table = profile.merged.get("match").and_then(|it| it.table());
    match table.and_then(|table: &MergedTable<'r>| table.get(key)).map(|it| &it.node.kind) {
        Some(Kind::Array(elements)) => elements
            .iter()
            .filter_map(|it| match &it.kind {
                Kind::String(text) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Findings about agents in rosters: those that do not exist, and those that never get anything.
pub(super) fn check(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    // An agent may be in many rosters, and merging it is the costly part.
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let mut suggestions = Suggestions::default();
    for roster in &repo.rosters {
        let mut takes_all: Option<&Spanned<Arc<str>>> = None;
        for agent in &roster.agents {
            let Some(id) = hierarchy.by_name(&agent.value) else {
                findings.push(unknown(hierarchy, agent, &mut suggestions));
                continue;
            };
            if hierarchy.get(id).is_abstract() {
                findings.push(is_abstract(hierarchy, id, agent));
                continue;
            }
            match takes_all {
                Some(before) => findings.push(unreachable(agent, before)),
                None if *known.entry(&agent.value).or_insert_with(|| accepts_everything(hierarchy, id)) => {
                    takes_all = Some(agent);
                }
                None => {}
            }
        }
    }
    findings
}

fn accepts_everything(hierarchy: &Hierarchy, id: ProfileId) -> bool {
    // What merging finds is told elsewhere.
    let chain = hierarchy.chain(id).filter(|chain| chain.iter().all(|profile| !profile.broken));
    chain.is_some_and(|chain| matcher(&resolve::resolve_again(chain)).is_unconstrained())
}

fn unknown(hierarchy: &Hierarchy, agent: &Spanned<Arc<str>>, suggestions: &mut Suggestions) -> Diagnostic {
    let help = suggestions.did_you_mean(&agent.value, hierarchy.names());
    let message = format!("there is no agent `{}`", agent.value);
    Diagnostic::new(&rules::UNKNOWN_IN_ROSTER, agent.span, message)
        .help(help.unwrap_or_else(|| "`reqc list` shows all agents".to_owned()))
}

fn is_abstract(hierarchy: &Hierarchy, id: ProfileId, agent: &Spanned<Arc<str>>) -> Diagnostic {
    let profile = hierarchy.get(id);
    let place = profile.abstract_at.unwrap_or(profile.name.span);
    let message = format!("`{}` is abstract: it is never sent by itself", agent.value);
    Diagnostic::new(&rules::UNKNOWN_IN_ROSTER, agent.span, message)
        .related(place, "said here")
        .help("name an agent that extends it; `reqc tree` shows them")
}

fn unreachable(agent: &Spanned<Arc<str>>, before: &Spanned<Arc<str>>) -> Diagnostic {
    let message = format!("`{}` never gets anything: `{}` accepts everything", agent.value, before.value);
    Diagnostic::new(&rules::UNREACHABLE_IN_ROSTER, agent.span, message)
        .related(before.span, "this agent has no `match`")
        .help(format!("put `{}` last, or give it a `match`", before.value))
}
