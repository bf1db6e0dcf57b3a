//! Finds the first agent in a roster whose `match` accepts a file.

use std::fmt;
use std::sync::Arc;

use crate::compile::compiler::Compiler;
use crate::conversation::TaskKind;
use crate::profile::MATCH_KEYS;
use crate::repo::{FileToRoute, Matcher, Mismatch, Roster};
use crate::resolve::{MergedTable, ProfileId, ResolvedProfile};
use crate::toml::Kind;

/// The route of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The agent; `None` if no agent in the roster accepts the file.
    pub agent: Option<ProfileId>,
    /// The agents that were skipped before that agent, in order, with the reason for each.
    pub passed: Vec<(Arc<str>, PassedOver)>,
}

/// The reason an agent was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassedOver {
    /// The agent's `match` does not accept the file.
    Mismatch(Vec<Mismatch>),
    /// The agent does not exist, is abstract, or has findings that make it unusable.
    Unusable,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassedOver::Mismatch(mismatches) => {
                let texts: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
            PassedOver::Unusable => f.write_str("it cannot be used: `reqc check` shows why"),
        }
    }
}

/// Routes files to agents.
pub struct Router<'a> {
    compiler: &'a Compiler,
}

impl<'a> Router<'a> {
    /// Creates a router for a repository's rosters and agents.
    pub fn new(compiler: &'a Compiler) -> Router<'a> {
        Router { compiler }
    }

    /// Returns the first agent in a roster that accepts a file, and the agents that were skipped.
    pub fn route(&self, roster: &Roster, subject: &FileToRoute) -> Route {
        let mut passed = Vec::new();
        for agent in &roster.agents {
            let why = match self.candidate(&agent.value) {
                None => PassedOver::Unusable,
                Some((id, profile)) => match matcher(&profile).mismatches(subject) {
                    accepted if accepted.is_empty() => {
                        return Route {
                            agent: Some(id),
                            passed,
                        };
                    }
                    mismatches => PassedOver::Mismatch(mismatches),
                },
            };
            passed.push((Arc::clone(&agent.value), why));
        }
        Route {
            agent: None,
            passed,
        }
    }

    /// Returns the agent that compresses another agent's chats: the first usable one in the roster
    /// `chat_compression` that accepts every file or, without that roster, the first one with the
    /// tag `compression` and the same provider instance.
    pub fn compression_agent(&self, chat: ProfileId) -> Option<ProfileId> {
        let roster = self
            .compiler
            .repo()
            .rosters
            .iter()
            .find(|roster| *roster.name.value == *COMPRESSION_ROSTER);
        if let Some(roster) = roster {
            return self.route(roster, &FileToRoute::new("", None)).agent;
        }
        let instance = &self.compiler.plan(chat)?.instance.name.value;
        let usable = self
            .compiler
            .agents
            .iter()
            .filter(|(_, usable)| *usable)
            .map(|(id, _)| *id);
        let mut compressing = usable.filter(|id| {
            self.compiler
                .resolve(*id)
                .is_some_and(|profile| profile.strings("tags").contains(&COMPRESSION_TAG))
        });
        compressing.find(|id| {
            let plan = self.compiler.plan(*id);
            plan.is_some_and(|plan| {
                plan.kind == TaskKind::Chat && plan.instance.name.value == *instance
            })
        })
    }

    /// Returns the agent with this name; `None` if it cannot be used.
    pub(super) fn candidate(&self, name: &str) -> Option<(ProfileId, ResolvedProfile<'a>)> {
        let id = self
            .compiler
            .hierarchy
            .by_name(name)
            .filter(|&id| !self.compiler.hierarchy.get(id).is_abstract())?;
        let is_broken = self
            .compiler
            .agents
            .iter()
            .any(|(agent, usable)| *agent == id && !usable);
        (!is_broken).then(|| self.compiler.resolve(id).map(|profile| (id, profile)))?
    }
}

/// The roster of agents that compress chats.
const COMPRESSION_ROSTER: &str = "chat_compression";

/// The tag of agents that compress chats.
const COMPRESSION_TAG: &str = "compression";

/// Returns the matcher for a profile's `match`.
pub(super) fn matcher(profile: &ResolvedProfile<'_>) -> Matcher {
    let [files, paths, projects] = match_patterns(profile);
    Matcher::new(files, paths, projects)
}

/// Returns the patterns of a profile's `match`: for files, for paths and for projects.
pub(super) fn match_patterns<'r>(profile: &ResolvedProfile<'r>) -> [Vec<&'r str>; 3] {
    MATCH_KEYS.map(|key| patterns(profile, key))
}

fn patterns<'r>(profile: &ResolvedProfile<'r>, key: &str) -> Vec<&'r str> {
    let table = profile.merged.get("match").and_then(|it| it.table());
    match table
        .and_then(|table: &MergedTable<'r>| table.get(key))
        .map(|it| &it.node.kind)
    {
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
