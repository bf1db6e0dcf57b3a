//! Reports roster entries for agents that do not exist, or that never receive a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::router::matcher;
use crate::compile::rules;
use crate::diag::{Diagnostic, Suggestions};
use crate::repo::Repo;
use crate::resolve::{self, Hierarchy, ProfileId};
use crate::source::Spanned;

/// Returns findings about roster entries for agents that do not exist, or that never receive a
/// file.
pub(in crate::compile) fn check(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    // An agent may be in many rosters, and merging it is expensive.
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
                None if *known
                    .entry(&agent.value)
                    .or_insert_with(|| accepts_everything(hierarchy, id)) =>
                {
                    takes_all = Some(agent);
                }
                None => {}
            }
        }
    }
    findings
}

fn accepts_everything(hierarchy: &Hierarchy, id: ProfileId) -> bool {
    // The findings of merging are reported elsewhere.
    let chain = hierarchy
        .chain(id)
        .filter(|chain| chain.iter().all(|profile| !profile.broken));
    chain.is_some_and(|chain| matcher(&resolve::resolve_again(chain)).is_unconstrained())
}

fn unknown(
    hierarchy: &Hierarchy,
    agent: &Spanned<Arc<str>>,
    suggestions: &mut Suggestions,
) -> Diagnostic {
    let help = suggestions.did_you_mean(&agent.value, hierarchy.names());
    let message = format!("there is no agent `{}`", agent.value);
    Diagnostic::new(&rules::UNKNOWN_IN_ROSTER, agent.span, message)
        .help(help.unwrap_or_else(|| "`reqc list` shows all agents".to_owned()))
}

fn is_abstract(hierarchy: &Hierarchy, id: ProfileId, agent: &Spanned<Arc<str>>) -> Diagnostic {
    let profile = hierarchy.get(id);
    let place = profile.abstract_at.unwrap_or(profile.name.span);
    let message = format!("`{}` is abstract, so it cannot receive files", agent.value);
    Diagnostic::new(&rules::UNKNOWN_IN_ROSTER, agent.span, message)
        .related(place, "named here")
        .help("name an agent that extends it; `reqc tree` shows them")
}

fn unreachable(agent: &Spanned<Arc<str>>, before: &Spanned<Arc<str>>) -> Diagnostic {
    let message = format!(
        "`{}` never receives a file, because `{}` accepts every file",
        agent.value, before.value
    );
    Diagnostic::new(&rules::UNREACHABLE_IN_ROSTER, agent.span, message)
        .related(before.span, "this agent has no `match`")
        .help(format!("put `{}` last, or give it a `match`", before.value))
}
