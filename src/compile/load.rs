//! Reads and checks a repository. This is all the work that does not depend on a conversation, and
//! it is done only once.

mod missing;
mod models;
mod agents;
mod secrets;
mod texts;
mod unused;

use std::collections::HashMap;
use std::sync::Arc;

use self::agents::Preparing;
use super::compiler::Compiler;
use super::contexts::{LoadedContext, Readable};
use super::leaves_out::Declarations;
use super::reach::users::note_on_findings;
use super::route::rosters;
use super::{policy, rules};
use crate::check::{Schemas, check_families};
use crate::context;
use crate::diag::{Diagnostic, Severity};
use crate::memory::Memory;
use crate::profile;
use crate::provider;
use crate::render::{Engine, rules as render_rules};
use crate::repo::{self, LoadOptions, Repo};
use crate::resolve::Hierarchy;
use crate::source::Span;
use crate::world::World;

/// Reads and checks a repository. Prepares only the agents whose names `wanted` accepts. Prepares
/// all agents if `wanted` is missing or accepts no name, or if there are findings.
pub(super) fn load(
    own: Arc<dyn World>,
    bundled: Arc<dyn World>,
    options: LoadOptions,
    wanted: Option<&dyn Fn(&str) -> bool>,
) -> Compiler {
    let loaded = repo::load(own, bundled, options);
    let (mut repo, mut findings) = (loaded.repo, loaded.findings);
    let (profiles, more) = profile::read_all(&repo);
    findings.extend(more);
    // Text that looks like a key is never shown, not even in an excerpt of its own file.
    findings.extend(secrets::check(&mut repo, &findings));
    let (hierarchy, more) = Hierarchy::build(profiles, repo.config.dialect);
    findings.extend(more);
    let (contexts, more) = context::read_all(&repo, &provider::origins(repo.instances.values()));
    findings.extend(more);
    let memory = Arc::new(Memory::default());
    let (engine, more) = Engine::new(&repo, &memory);
    findings.extend(more);
    findings.extend(provider::check_instances(&repo));
    let (schemas, more) = Schemas::new(&repo, &memory);
    findings.extend(more);
    findings.extend(check_families(&repo));
    if repo.is_empty() && !findings.iter().any(|finding| is_unlisted(&repo, finding)) {
        findings.push(rules::empty(&mut repo.sources));
    }
    findings.extend(texts::check(&mut repo, &hierarchy, &findings));
    findings.extend(policy::check_codes(&repo.config));
    findings.extend(rules::unknown_agents(&repo, &hierarchy));
    findings.extend(models::check(&repo, &hierarchy));
    findings.extend(rosters::check(&repo, &hierarchy));
    findings.extend(rules::unknown_contexts(&repo, &contexts));
    findings.extend(rules::unknown_instances(&repo));
    let readable = Readable::of(&repo);
    let contexts = contexts
        .into_iter()
        .map(|context| LoadedContext::new(&repo, context, &readable))
        .collect();
    let (schemas, agents) = (Arc::new(schemas), Vec::new());
    let declarations = Declarations::default();
    let mut compiler = Compiler {
        repo,
        hierarchy,
        engine,
        schemas,
        contexts,
        memory,
        declarations,
        agents,
        findings,
        impossible: HashMap::new(),
        slips: Vec::new(),
    };
    Preparing::new(&mut compiler).all(wanted);
    let unused = unused::check(&compiler, wanted.is_none());
    compiler.findings.extend(unused);
    compiler.slips = compiler.engine.take_slips(&compiler.repo);
    note_on_findings(&mut compiler);
    compiler.impossible = impossible(&compiler.findings);
    compiler
}

/// Returns the locations of the errors about members that cannot exist, by agent.
fn impossible(findings: &[Diagnostic]) -> HashMap<Arc<str>, Vec<Span>> {
    let mut places: HashMap<Arc<str>, Vec<Span>> = HashMap::new();
    let errors = findings.iter().filter(|finding| {
        finding.rule == &render_rules::IMPOSSIBLE_MEMBER && finding.severity == Severity::Error
    });
    for finding in errors {
        for agent in &finding.agents {
            let of_agent = places.entry(Arc::clone(agent)).or_default();
            of_agent.push(finding.primary.span);
        }
    }
    places
}

/// Returns `true` if the folder of agents could not be listed.
fn is_unlisted(repo: &Repo, finding: &Diagnostic) -> bool {
    &**repo.sources.get(finding.primary.span.file).path() == repo::folders::AGENTS
}
