//! Reports agents that lack a required setting, at the profile that should set it. A base that many
//! agents share is reported once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::compile::compiler::is_agent;
use crate::diag::Diagnostic;
use crate::profile::{Profile, below_header, misplaced_below};
use crate::repo::{Repo, rules as repo_rules};
use crate::resolve::{Hierarchy, ProfileId};
use crate::source::Span;

/// The keys that every agent must set or inherit.
const REQUIRED: [&str; 3] = ["provider_instance", "endpoint", "body"];

/// Returns a finding for each profile that should have set a required key.
pub(super) fn check(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let agents: Vec<ProfileId> = hierarchy
        .ids()
        .filter(|&id| is_agent(repo, hierarchy, id))
        .collect();
    let mut findings = Vec::new();
    let mut lacking: BTreeMap<ProfileId, BTreeSet<&str>> = BTreeMap::new();
    for key in REQUIRED {
        let without: Vec<ProfileId> = agents
            .iter()
            .filter(|id| {
                hierarchy
                    .chain(**id)
                    .is_some_and(|chain| !chain.iter().any(|it| sets(it, key)))
            })
            .copied()
            .collect();
        if without.is_empty() {
            continue;
        }
        let setters = above_setters(hierarchy, key);
        let mut by_blamed: BTreeMap<ProfileId, Vec<ProfileId>> = BTreeMap::new();
        for id in without {
            match misplaced(hierarchy, id, key) {
                Some(finding) => findings.push(finding),
                None => by_blamed
                    .entry(blamed(repo, hierarchy, id, &setters))
                    .or_default()
                    .push(id),
            }
        }
        for (base, agents) in by_blamed {
            // A base may leave a setting to the only agent that extends it.
            let place = if let [only] = agents.as_slice() {
                *only
            } else {
                base
            };
            lacking.entry(place).or_default().insert(key);
        }
    }
    findings.extend(
        lacking
            .into_iter()
            .map(|(id, keys)| lacks(hierarchy.get(id), &keys)),
    );
    findings
}

fn sets(profile: &Profile, key: &str) -> bool {
    profile.settings.get(key).is_some()
}

/// Returns the profiles that set a key, and all their ancestors.
fn above_setters(hierarchy: &Hierarchy, key: &str) -> HashSet<ProfileId> {
    let setters = hierarchy.ids().filter(|&id| sets(hierarchy.get(id), key));
    setters.flat_map(|id| hierarchy.lineage(id)).collect()
}

/// Returns the profile that should set a missing key: among an agent and its ancestors, the most
/// distant profile that is itself compiled, or whose descendants all lack the key.
fn blamed(
    repo: &Repo,
    hierarchy: &Hierarchy,
    id: ProfileId,
    setters: &HashSet<ProfileId>,
) -> ProfileId {
    hierarchy
        .lineage(id)
        .into_iter()
        .rev()
        .find(|at| {
            repo.is_compiled(hierarchy.get(*at).layer)
                && (!hierarchy.get(*at).is_abstract() || !setters.contains(at))
        })
        .unwrap_or(id)
}

/// Returns the finding about a setting that is present, but below a header.
fn misplaced(hierarchy: &Hierarchy, id: ProfileId, key: &str) -> Option<Diagnostic> {
    hierarchy.lineage(id).into_iter().find_map(|id| {
        let profile = hierarchy.get(id);
        ["extends", key].into_iter().find_map(|key| {
            let (header, place) = below_header(&profile.settings, key)?;
            Some(misplaced_below(Span::new(profile.file, place), key, header))
        })
    })
}

fn lacks(profile: &Profile, keys: &BTreeSet<&str>) -> Diagnostic {
    let written = REQUIRED.into_iter().filter(|key| keys.contains(key));
    let written: Vec<String> = written
        .map(|key| {
            if key == "body" {
                "`[body]`".to_owned()
            } else {
                format!("`{key}`")
            }
        })
        .collect();
    let what = if profile.is_abstract() {
        "base"
    } else {
        "agent"
    };
    let message = format!(
        "the {what} `{}` lacks {}",
        profile.name.value,
        written.join(" and ")
    );
    let help = match (profile.is_abstract(), &profile.extends) {
        (true, _) => "no agent that extends it sets this either: set it here, or in each of them",
        (false, Some(_)) => {
            "set it here or in a profile that this one extends, or mark this one `abstract = true`"
        }
        (false, None) => {
            "set it here, inherit it with `extends = \"…\"`, or mark this one `abstract = true`"
        }
    };
    Diagnostic::new(&repo_rules::MISSING_KEY, profile.name.span, message).help(help)
}
