//! Added, removed, and renamed agents and contexts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Class;
use super::edit::{Edit, EditKind, Edits};
use crate::compile::Compiler;
use crate::compile::policy::LoweredKind;
use crate::context::Context;
use crate::diff::{BodyId, ChangedFile};
use crate::golden::GoldenFile;
use crate::profile::slug;
use crate::world::{MemoryWorld, World as _};

/// The changes in the lists of agents and contexts.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Roll {
    /// Added agents.
    pub agents: Vec<Listed>,
    /// Removed agents.
    pub gone_agents: Vec<Listed>,
    /// Renamed agents.
    pub renamed: Vec<Renamed>,
    /// Added contexts.
    pub contexts: Vec<Listed>,
    /// Removed contexts.
    pub gone_contexts: Vec<Listed>,
    /// Renamed contexts.
    pub renamed_contexts: Vec<Renamed>,
    /// Contexts whose file exists but can no longer be read.
    pub broken_contexts: Vec<Listed>,
    /// Other bodies that exist on one side only, although their agent and context exist on both.
    pub bodies: Vec<ChangedFile>,
}

/// An added or removed item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The item's name.
    pub name: Arc<str>,
    /// The file that defines or defined the item.
    pub path: Arc<str>,
    /// The number of bodies added or removed with the item.
    pub bodies: usize,
}

/// A renamed agent or context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renamed {
    /// The former name.
    pub from: Arc<str>,
    /// The new name.
    pub to: Arc<str>,
    /// The file that defines the agent or context.
    pub path: Arc<str>,
}

impl Renamed {
    fn of(to: &Arc<str>, from: &Arc<str>, path: Arc<str>) -> Renamed {
        Renamed {
            from: Arc::clone(from),
            to: Arc::clone(to),
            path,
        }
    }
}

/// Names, with the paths of the files that define them.
type Named<'s> = BTreeMap<&'s Arc<str>, Arc<str>>;

/// Returns the agents of a side.
fn agents(side: &Compiler) -> Named<'_> {
    let of = |id| {
        let profile = side.hierarchy().get(id);
        (
            &profile.name.value,
            Arc::clone(side.sources().get(profile.file).path()),
        )
    };
    side.agents().iter().map(|(id, _)| of(*id)).collect()
}

/// Returns the contexts of a side.
fn contexts(side: &Compiler) -> Named<'_> {
    let of = |it: &'_ Context| Arc::clone(side.sources().get(it.file).path());
    side.contexts()
        .iter()
        .map(|loaded| (&loaded.context.name, of(&loaded.context)))
        .collect()
}

/// The former names of renamed agents and contexts, by their new names.
#[derive(Debug, Default)]
pub(super) struct OlderNames {
    pub(super) agents: BTreeMap<Arc<str>, Arc<str>>,
    pub(super) contexts: BTreeMap<Arc<str>, Arc<str>>,
}

impl OlderNames {
    /// Finds names that changed in a file, even if the file was moved.
    pub(super) fn of(edits: &Edits, older: &Compiler, newer: &Compiler) -> OlderNames {
        OlderNames {
            agents: renamed(edits, &agents(older), &agents(newer)),
            contexts: renamed(edits, &contexts(older), &contexts(newer)),
        }
    }

    /// Returns `true` if this is the former name of a renamed agent or context.
    pub(super) fn was(&self, name: &Arc<str>, kind: LoweredKind) -> bool {
        match kind {
            LoweredKind::Agent => self.agents.values().any(|it| it == name),
            LoweredKind::Context => self.contexts.values().any(|it| it == name),
            _ => false,
        }
    }
}

/// Assigns removed golden files to their agents and contexts, by the newer side's names. The path
/// of a golden file contains only the agent's folder, from which the agent is determined.
pub(super) fn named(
    drifts: &[ChangedFile],
    names: &OlderNames,
    older: &Compiler,
    newer: &Compiler,
) -> Vec<ChangedFile> {
    let (agents_newly, contexts_newly) = (by_older(&names.agents), by_older(&names.contexts));
    let then = agents(older).into_keys().map(|name| {
        let now = agents_newly.get(name).copied().unwrap_or(name);
        (slug(name), Arc::clone(now))
    });
    // If an agent on the newer side has the same folder, the folder belongs to that agent.
    let now = agents(newer).into_keys();
    let now = now.map(|name| (slug(name), Arc::clone(name)));
    let by_folder: BTreeMap<String, Arc<str>> = then.chain(now).collect();
    let mut files = drifts.to_vec();
    for file in files.iter_mut().filter(|file| file.new.is_none()) {
        let folder = file.path.split('/').next().unwrap_or_default();
        if let Some(name) = by_folder.get(folder) {
            file.subject.agent = Arc::clone(name);
        }
        if let Some(context) = &mut file.subject.context
            && let Some(&name) = contexts_newly.get(context)
        {
            *context = Arc::clone(name);
        }
    }
    files
}

/// Returns the newer name for each older one.
fn by_older(olds: &BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<&Arc<str>, &Arc<str>> {
    olds.iter().map(|(new, old)| (old, new)).collect()
}

/// Joins the removed golden files of renamed agents and contexts with the new ones that replace
/// them, and leaves out pairs that are equal.
pub(super) fn joined(drifts: &[ChangedFile], names: &OlderNames) -> Vec<ChangedFile> {
    let (gone, mut joined): (Vec<ChangedFile>, Vec<ChangedFile>) =
        drifts.iter().cloned().partition(|file| file.new.is_none());
    let mut gone: BTreeMap<BodyId, ChangedFile> = gone
        .into_iter()
        .map(|file| (file.subject.clone(), file))
        .collect();
    for file in joined.iter_mut().filter(|file| file.old.is_none()) {
        let Some(before) = gone.remove(&file.subject) else {
            continue;
        };
        let text = before.old.unwrap_or_default();
        let before = GoldenFile {
            path: before.path,
            context: file.subject.context.clone(),
            text,
        };
        let (to, from) = (&file.subject.agent, names.agents.get(&file.subject.agent));
        file.old = Some(before.of_agent(from.unwrap_or(to), to).text);
    }
    joined.extend(gone.into_values());
    joined.retain(|file| file.old != file.new);
    joined
}

/// Returns the agents that exist only on the older side although their files are still there.
pub(super) fn gone_agents(
    names: &OlderNames,
    older: &Compiler,
    newer: &Compiler,
    now: &MemoryWorld,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let after = agents(newer);
    let older: Vec<(&Arc<str>, Arc<str>)> = agents(older).into_iter().collect();
    let gone = older.into_iter().filter(|(name, path)| {
        !after.contains_key(*name) && !names.was(name, LoweredKind::Agent) && now.read(path).is_ok()
    });
    gone.map(|(name, path)| (Arc::clone(name), path)).collect()
}

/// Pairs the bodies of a renamed context with its former bodies.
pub(super) fn paired(
    changes: Vec<ChangedFile>,
    older_contexts: &BTreeMap<Arc<str>, Arc<str>>,
) -> Vec<ChangedFile> {
    let newer: BTreeMap<&Arc<str>, &Arc<str>> =
        older_contexts.iter().map(|(new, old)| (old, new)).collect();
    let mut gone: BTreeMap<BodyId, ChangedFile> = BTreeMap::new();
    let mut paired = Vec::new();
    for file in changes {
        let name = file
            .subject
            .context
            .as_ref()
            .and_then(|context| newer.get(context));
        match name.filter(|_| file.new.is_none()) {
            Some(name) => {
                let subject = BodyId {
                    context: Some(Arc::clone(name)),
                    ..file.subject.clone()
                };
                gone.insert(subject, file);
            }
            None => paired.push(file),
        }
    }
    for file in paired.iter_mut().filter(|file| file.old.is_none()) {
        file.old = gone.remove(&file.subject).and_then(|before| before.old);
    }
    paired.extend(gone.into_values());
    paired.retain(|file| file.old != file.new);
    paired
}

fn renamed(edits: &Edits, before: &Named<'_>, after: &Named<'_>) -> BTreeMap<Arc<str>, Arc<str>> {
    let moved: BTreeMap<Arc<str>, Arc<str>> = edits.all.iter().filter_map(moved).collect();
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let gone: BTreeMap<&Arc<str>, &Arc<str>> = gone.map(|(name, path)| (path, *name)).collect();
    let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
    let renamed = new.filter_map(|(name, path)| {
        let from = moved.get(path).unwrap_or(path);
        Some((Arc::clone(name), Arc::clone(gone.get(from)?)))
    });
    renamed.collect()
}

fn moved(edit: &Edit) -> Option<(Arc<str>, Arc<str>)> {
    match &edit.kind {
        EditKind::Moved { from } => Some((Arc::clone(&edit.path), Arc::clone(from))),
        _ => None,
    }
}

/// The number of bodies added or removed with each agent and each context.
#[derive(Default)]
struct Counts<'f> {
    agents: BTreeMap<&'f Arc<str>, usize>,
    contexts: BTreeMap<&'f Arc<str>, usize>,
}

impl<'f> Counts<'f> {
    fn add(&mut self, file: &'f ChangedFile) {
        let bodies = self.agents.entry(&file.subject.agent).or_default();
        if let Some(context) = &file.subject.context {
            *bodies += 1;
            *self.contexts.entry(context).or_default() += 1;
        }
    }
}

/// Returns the items that exist on one side only.
fn only(here: &Named<'_>, there: &Named<'_>, bodies: impl Fn(&Arc<str>) -> usize) -> Vec<Listed> {
    let only = here.iter().filter(|(name, _)| !there.contains_key(*name));
    only.map(|(name, path)| Listed {
        name: Arc::clone(name),
        path: Arc::clone(path),
        bodies: bodies(name),
    })
    .collect()
}

impl Roll {
    /// Assigns bodies that exist on one side only to the agent or context with which they were
    /// added or removed.
    pub(super) fn of(
        files: &[ChangedFile],
        names: &OlderNames,
        older: &Compiler,
        newer: &Compiler,
        now: &MemoryWorld,
    ) -> Roll {
        let (agents_then, agents_now) = (agents(older), agents(newer));
        let (contexts_then, contexts_now) = (contexts(older), contexts(newer));
        let mut counts = Counts::default();
        files.iter().for_each(|file| counts.add(file));
        let of_agent = |name: &Arc<str>| counts.agents.get(name).copied().unwrap_or_default();
        let of_context = |name: &Arc<str>| counts.contexts.get(name).copied().unwrap_or_default();
        let mut roll = Roll {
            agents: only(&agents_now, &agents_then, of_agent),
            gone_agents: only(&agents_then, &agents_now, of_agent),
            renamed: names
                .agents
                .iter()
                .map(|(to, from)| Renamed::of(to, from, path(to, &agents_now)))
                .collect(),
            contexts: only(&contexts_now, &contexts_then, of_context),
            gone_contexts: only(&contexts_then, &contexts_now, of_context),
            renamed_contexts: names
                .contexts
                .iter()
                .map(|(to, from)| Renamed::of(to, from, path(to, &contexts_now)))
                .collect(),
            broken_contexts: Vec::new(),
            bodies: Vec::new(),
        };
        let older: BTreeSet<&Arc<str>> = names.agents.values().collect();
        roll.agents
            .retain(|it| takes_part(it, &counts.agents) && !names.agents.contains_key(&it.name));
        roll.gone_agents
            .retain(|it| takes_part(it, &counts.agents) && !older.contains(&it.name));
        let older: BTreeSet<&Arc<str>> = names.contexts.values().collect();
        roll.contexts
            .retain(|it| !names.contexts.contains_key(&it.name));
        roll.gone_contexts.retain(|it| !older.contains(&it.name));
        (roll.broken_contexts, roll.gone_contexts) = roll
            .gone_contexts
            .into_iter()
            .partition(|it| now.read(&it.path).is_ok());
        let agents = all_names(&roll.agents, &roll.gone_agents);
        let mut contexts = all_names(&roll.contexts, &roll.gone_contexts);
        contexts.extend(roll.broken_contexts.iter().map(|it| Arc::clone(&it.name)));
        let is_told = |file: &&ChangedFile| {
            agents.contains(&file.subject.agent)
                || file
                    .subject
                    .context
                    .as_ref()
                    .is_some_and(|it| contexts.contains(it))
        };
        roll.bodies = files
            .iter()
            .filter(|file| !is_told(file))
            .cloned()
            .collect();
        roll
    }

    /// Returns `true` if nothing was added, removed, or renamed.
    pub fn is_empty(&self) -> bool {
        *self == Roll::default()
    }

    /// Returns the class of the most severe change; `None` if nothing changed except that contexts
    /// without bodies were added.
    pub(super) fn class(&self) -> Option<Class> {
        let gone = !self.gone_agents.is_empty()
            || !self.gone_contexts.is_empty()
            || self.bodies.iter().any(|file| file.new.is_none());
        let renamed = !self.renamed.is_empty() || !self.renamed_contexts.is_empty();
        let new = renamed
            || !self.agents.is_empty()
            || self.contexts.iter().any(|it| it.bodies > 0)
            || !self.bodies.is_empty();
        match (self.broken_contexts.is_empty(), gone, new) {
            (false, ..) => Some(Class::Broken),
            (true, true, _) => Some(Class::Removed),
            (true, false, new) => new.then_some(Class::Value),
        }
    }

    /// Returns the paths of the files whose addition, removal, or renaming is reported here.
    pub(super) fn paths(&self) -> BTreeSet<(&str, bool)> {
        let lists = [
            &self.agents,
            &self.contexts,
            &self.gone_agents,
            &self.gone_contexts,
        ];
        let whole = lists.into_iter().flatten();
        let renamed = self
            .renamed
            .iter()
            .chain(&self.renamed_contexts)
            .map(|it| (&*it.path, false));
        let broken = self.broken_contexts.iter().map(|it| (&*it.path, false));
        let whole = whole.map(|it| (&*it.path, true));
        whole.chain(renamed).chain(broken).collect()
    }
}

fn all_names(one: &[Listed], other: &[Listed]) -> BTreeSet<Arc<str>> {
    one.iter()
        .chain(other)
        .map(|it| Arc::clone(&it.name))
        .collect()
}

/// Returns `true` if an agent has compared bodies. Agents without any are missing from
/// `counts_agents`.
fn takes_part(it: &Listed, counts_agents: &BTreeMap<&Arc<str>, usize>) -> bool {
    counts_agents.contains_key(&it.name)
}

/// Returns the path of the file that now defines an agent or a context; empty if there is none.
fn path(name: &Arc<str>, now: &BTreeMap<&Arc<str>, Arc<str>>) -> Arc<str> {
    now.get(name).map_or_else(|| Arc::from(""), Arc::clone)
}

/// Returns `true` if the effect of an edit is already reported here, as an addition, removal, or
/// renaming.
pub(super) fn tells(paths: &BTreeSet<(&str, bool)>, edit: &Edit) -> bool {
    let is_name = match &edit.kind {
        EditKind::Key(key) => &**key == "name",
        EditKind::Moved { .. } => true,
        // A context's name is in a JSON file, whose edits have no keys.
        EditKind::Lines => edit.path.ends_with(".json"),
        _ => false,
    };
    edit.is_whole_file() && paths.contains(&(&*edit.path, true))
        || is_name && paths.contains(&(&*edit.path, false))
}
