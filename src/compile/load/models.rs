//! Reports models that an agent's provider cannot serve, at the location where the agent or
//! `models.toml` specifies them.

use std::collections::{HashMap, HashSet};

use crate::compile::compiler::is_agent;
use crate::diag::Diagnostic;
use crate::profile::Profile;
use crate::provider::{
    KnownModels, MODEL_PLACEHOLDER, Server, UnservedModel, rules, unserved_model,
};
use crate::repo::{Instance, Repo};
use crate::resolve::Hierarchy;
use crate::source::Span;
use crate::text::cut;
use crate::toml::Kind;

/// A value in a profile, and the profile's distance from the agent, in levels.
struct Inherited<'p> {
    value: &'p str,
    span: Span,
    level: usize,
}

/// Returns a finding for each model that an agent's instance and endpoint cannot serve.
pub(super) fn check(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let models = KnownModels::new(&repo.families);
    let mut findings = Vec::new();
    let mut seen: HashSet<(Span, Span, Span)> = HashSet::new();
    let mut verdicts: HashMap<(Server, &str), Option<UnservedModel>> = HashMap::new();
    let agents = hierarchy.ids().filter(|&id| is_agent(repo, hierarchy, id));
    for chain in agents.filter_map(|id| hierarchy.chain(id)) {
        let Some(agent) = chain.first() else {
            continue;
        };
        let (Some(named), Some(endpoint)) = (
            value(&chain, "provider_instance"),
            value(&chain, "endpoint"),
        ) else {
            continue;
        };
        let Some(instance) = repo.instances.get(named.value) else {
            continue;
        };
        let of_profile = value(&chain, "model");
        let of_client = repo.models.get(&agent.name.value).map(|model| Inherited {
            value: &model.value,
            span: model.span,
            level: 0,
        });
        for model in of_profile.into_iter().chain(of_client) {
            if !seen.insert((model.span, named.span, endpoint.span)) {
                continue;
            }
            let server = Server::named_or_by_host(instance);
            let verdict = server.and_then(|server| {
                let verdict = verdicts
                    .entry((server, model.value))
                    .or_insert_with(|| unserved_model(server, model.value, &models));
                Some((server, verdict.as_ref()?))
            });
            let finding = doubled(&model, &endpoint).or_else(|| {
                let (server, verdict) = verdict?;
                Some(unserved(&model, instance, server, verdict))
            });
            findings.extend(finding.map(|finding| match named.level < model.level {
                true => finding.told_at(named.span, "this is inherited"),
                false => finding,
            }));
        }
    }
    findings
}

/// Returns a key's nearest value in a chain of profiles.
fn value<'p>(chain: &[&'p Profile], key: &str) -> Option<Inherited<'p>> {
    chain.iter().enumerate().find_map(|(level, profile)| {
        let node = profile.settings.get(key)?;
        let Kind::String(value) = &node.kind else {
            return None;
        };
        let span = Span::new(profile.file, node.span.clone());
        Some(Inherited { value, span, level })
    })
}

/// Returns the finding for a model's name that repeats the part of the endpoint's path directly
/// before the model.
fn doubled(model: &Inherited<'_>, endpoint: &Inherited<'_>) -> Option<Diagnostic> {
    let (before, _) = endpoint.value.split_once(MODEL_PLACEHOLDER)?;
    let part = before.strip_suffix('/')?.rsplit('/').next()?;
    let rest = model.value.strip_prefix(part)?.strip_prefix('/')?;
    let message = format!("the path of the request contains `{}` twice", cut(part, 40));
    let finding = Diagnostic::new(&rules::DOUBLED_PATH, model.span, message);
    let finding = finding.related(
        endpoint.span,
        "the endpoint already contains it before the model",
    );
    Some(finding.help(format!("write `{}`", cut(rest, 80))))
}

fn unserved(
    model: &Inherited<'_>,
    instance: &Instance,
    server: Server,
    verdict: &UnservedModel,
) -> Diagnostic {
    let message = verdict.message(model.value, server);
    let otherwise = format!("a provider instance other than `{}`", instance.name.value);
    Diagnostic::new(verdict.rule(), model.span, message)
        .help(verdict.help(server, &otherwise))
        .at_most(verdict.severity(server))
}
