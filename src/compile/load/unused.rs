//! Reports unused parts of a repository: roles, partials, contexts, provider instances and bases.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::compile::compiler::Compiler;
use crate::compile::rules;
use crate::conversation::TaskKind;
use crate::diag::{Diagnostic, Severity};
use crate::render::full_name;
use crate::repo::{LayerKind, Repo};
use crate::resolve::{Hierarchy, ProfileId};
use crate::source::{FileId, SourceText, Span, Spanned};
use crate::toml::Kind;
use crate::world::EntryKind;

/// Returns findings about unused parts. If the repository has errors, nothing is reported, because
/// a misspelled name would be reported twice. Contexts are reported only with `has_all`, which
/// means that all agents are prepared.
pub(super) fn check(compiler: &Compiler, has_all: bool) -> Vec<Diagnostic> {
    let (repo, hierarchy) = (&compiler.repo, &compiler.hierarchy);
    let is_whole = compiler
        .findings
        .iter()
        .all(|finding| finding.severity < Severity::Error);
    let has_agents = hierarchy
        .ids()
        .any(|id| is_own(hierarchy, id) && !hierarchy.get(id).is_abstract());
    if !is_whole || !has_agents || repo.is_bundled_root {
        return Vec::new();
    }
    let mut unused = bases(hierarchy);
    // The partials of an unused base are not reported, because the base itself is.
    if unused.is_empty() {
        unused.extend(partials(repo));
    }
    unused.extend(instances(repo, hierarchy));
    unused.extend(roles(repo));
    if has_all {
        unused.extend(contexts(compiler));
    }
    unused
}

fn is_own(hierarchy: &Hierarchy, id: ProfileId) -> bool {
    hierarchy.get(id).layer == LayerKind::Own
}

/// Returns abstract profiles that no profile extends.
fn bases(hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let parents: HashSet<ProfileId> = hierarchy
        .ids()
        .filter_map(|id| hierarchy.parent(id))
        .collect();
    let unused = hierarchy
        .ids()
        .filter(|id| is_own(hierarchy, *id) && !parents.contains(id))
        .map(|id| hierarchy.get(id));
    let abstract_ones = unused.filter(|profile| profile.is_abstract());
    let finding = |name: &Spanned<Arc<str>>| {
        let message = format!("no profile extends the abstract profile `{}`", name.value);
        Diagnostic::new(&rules::UNUSED, name.span, message)
            .help("remove it, or write a profile that extends it")
    };
    abstract_ones
        .map(|profile| finding(&profile.name))
        .collect()
}

/// Returns provider instances that no profile and no other instance refers to.
fn instances(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let own = || {
        repo.instances
            .values()
            .filter(|instance| instance.layer == LayerKind::Own)
    };
    if own().next().is_none() {
        return Vec::new();
    }
    let settings = hierarchy
        .ids()
        .filter_map(|id| hierarchy.get(id).settings.get("provider_instance"));
    let named: HashSet<&str> = settings
        .filter_map(|node| match &node.kind {
            Kind::String(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let extended: HashSet<FileId> = repo
        .instances
        .keys()
        .flat_map(|name| repo.instance_files(name).iter().skip(1).copied())
        .collect();
    let unused = own().filter(|instance| {
        !named.contains(&*instance.name.value) && !extended.contains(&instance.name.span.file)
    });
    let finding = |name: &Spanned<Arc<str>>| {
        let message = format!("no profile uses the provider instance `{}`", name.value);
        let help = format!(
            "remove it, or write `provider_instance = \"{}\"` in a profile",
            name.value
        );
        Diagnostic::new(&rules::UNUSED, name.span, message).help(help)
    };
    unused.map(|instance| finding(&instance.name)).collect()
}

/// Returns partials that no profile and no used partial refers to. Any quoted name is treated as a
/// use, even in a value that every profile overrides.
fn partials(repo: &Repo) -> Vec<Diagnostic> {
    let mut unused: BTreeMap<&str, FileId> = repo
        .partials
        .iter()
        .filter(|(_, partial)| partial.layer == LayerKind::Own)
        .map(|(name, partial)| (&**name, partial.file))
        .collect();
    let profiles = repo.profiles.iter().filter(|it| it.layer == LayerKind::Own);
    let mut next: Vec<FileId> = profiles.map(|it| it.file).collect();
    while let Some(file) = next.pop() {
        if unused.is_empty() {
            break;
        }
        let text = repo.sources.get(file).text();
        let quoted = text.split(['"', '\'', '\\']);
        next.extend(quoted.filter_map(|name| unused.remove(&*full_name(name))));
    }
    unused
        .into_iter()
        .map(|(name, file)| {
            let message = format!("nothing includes the partial `{name}`");
            let help = format!("remove the file, or write `{{% include \"{name}\" %}}`");
            Diagnostic::new(&rules::UNUSED, Span::file_start(file), message).help(help)
        })
        .collect()
}

/// Returns contexts of a kind that no agent has.
fn contexts(compiler: &Compiler) -> Vec<Diagnostic> {
    let contexts = compiler.contexts.iter().map(|loaded| &loaded.context);
    let mut own = contexts
        .filter(|context| context.layer == LayerKind::Own)
        .peekable();
    if own.peek().is_none() {
        return Vec::new();
    }
    let agents = compiler.agents.iter();
    let kinds: HashSet<TaskKind> = agents
        .filter_map(|(id, _)| compiler.plan(*id))
        .map(|plan| plan.kind)
        .collect();
    own.filter(|context| !kinds.contains(&context.kind()))
        .map(|context| {
            let message = format!("no agent is compiled in the context `{}`", context.name);
            let help = format!(
                "remove the file, or write an agent for contexts of kind `{}`",
                context.kind().name()
            );
            Diagnostic::new(&rules::UNUSED, Span::file_start(context.file), message).help(help)
        })
        .collect()
}

/// Returns roles that no template refers to. Returns no roles if a template computes a name, or
/// refers to a role that does not exist.
fn roles(repo: &Repo) -> Vec<Diagnostic> {
    let Some(layer) = repo
        .layers
        .iter()
        .find(|layer| layer.kind == LayerKind::Own)
    else {
        return Vec::new();
    };
    let walk = layer.world.walk("roles");
    let files = walk
        .entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::File && entry.path.ends_with(".md"));
    let files: Vec<&str> = files.map(|entry| entry.path.as_str()).collect();
    let Some(named) = (!files.is_empty()).then(|| named_roles(repo)).flatten() else {
        return Vec::new();
    };
    let is_there = |path: &String| {
        repo.layers
            .iter()
            .any(|layer| layer.world.kind(path) == Ok(EntryKind::File))
    };
    if !named.iter().all(is_there) {
        return Vec::new();
    }
    files
        .into_iter()
        .filter(|path| !named.contains(*path))
        .map(|path| {
            let file = repo.sources.find_or_add(path, || {
                SourceText::salvage(&layer.world.read(path).unwrap_or_default())
            });
            let id = path.trim_start_matches("roles/").trim_end_matches(".md");
            let message = format!("no system prompt uses the role `{id}`");
            let help = format!(
                "remove the file, or write `{{{{ agent_role('{id}') }}}}` in a `system_prompt`"
            );
            Diagnostic::new(&rules::UNUSED, Span::file_start(file), message).help(help)
        })
        .collect()
}

/// The maximum length of a role's path that is searched for in templates, in bytes.
const LONGEST_PATH: usize = 300;

/// Returns the paths of all roles that templates refer to; `None` if a template computes a name.
fn named_roles(repo: &Repo) -> Option<BTreeSet<String>> {
    let sources = repo.profiles.iter().chain(repo.partials.values());
    let mut named = BTreeSet::new();
    for source in sources {
        let text = repo.sources.get(source.file).text();
        for (at, call) in text.match_indices("agent_role(") {
            named.insert(format!("roles/{}.md", quoted(&text[at + call.len()..])?));
        }
        for (at, folder) in text.match_indices("roles/") {
            let path = &text[at..text.floor_char_boundary(at + LONGEST_PATH)];
            let end = path.find(['\'', '"', '\\', '\n']).unwrap_or(path.len());
            if path
                .get(folder.len()..end)
                .is_some_and(|path| path.ends_with(".md"))
            {
                named.insert(path[..end].to_owned());
            }
        }
    }
    Some(named)
}

/// Returns the quoted word at the start of a string, in any quotes, including escaped ones.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let text = text.strip_prefix('\\').unwrap_or(text);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..]
        .split(quote)
        .next()
        .map(|inner| inner.trim_end_matches('\\'))
}
