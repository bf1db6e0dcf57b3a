//! Agents and contexts that are new, gone or renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Class;
use super::edit::{Edit, EditKind, Edits};
use crate::compile::Compiler;
use crate::diff::ChangedFile;

/// Who came and who went.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Roll {
    /// Agents that are new.
    pub agents: Vec<Listed>,
    /// Agents that are gone.
    pub gone_agents: Vec<Listed>,
    /// Agents with another name.
    pub renamed: Vec<Renamed>,
    /// Contexts that are new.
    pub contexts: Vec<Listed>,
    /// Contexts that are gone.
    pub gone_contexts: Vec<Listed>,
    /// Further bodies that only one side has: of agents and contexts that both have.
    pub bodies: Vec<ChangedFile>,
}

/// Something that is new or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its name.
    pub name: Arc<str>,
    /// The file that says it, or said it.
    pub path: Arc<str>,
    /// How many bodies come or go with it.
    pub bodies: usize,
}

/// An agent with another name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renamed {
    /// What it was called.
    pub from: Arc<str>,
    /// What it is called.
    pub to: Arc<str>,
    /// The file that says it.
    pub path: Arc<str>,
}

/// Names of agents, with the paths of their files.
fn agents(side: &Compiler) -> BTreeMap<&Arc<str>, &Arc<str>> {
    let of = |id| {
        let profile = side.hierarchy().get(id);
        (&profile.name.value, side.sources().get(profile.file).path())
    };
    side.agents().iter().map(|(id, _)| of(*id)).collect()
}

/// Names of contexts, with the paths of their files.
fn contexts(side: &Compiler) -> BTreeMap<&Arc<str>, Arc<str>> {
    let path = |name: &Arc<str>| {
        let path = format!("contexts/{name}.json");
        let known = side.sources().iter().any(|(_, file)| **file.path() == *path);
        if known { path.into() } else { format!("bundled:{path}").into() }
    };
    side.contexts().iter().map(|ready| (&ready.context.name, path(&ready.context.name))).collect()
}

/// What agents were called, by their new names: the same file, or the file that was moved, says another name.
pub(super) fn older_names(edits: &Edits, older: &Compiler, newer: &Compiler) -> BTreeMap<Arc<str>, Arc<str>> {
    let (before, after) = (agents(older), agents(newer));
    let moved = |edit: &Edit| match &edit.kind {
        EditKind::Moved { from } => Some((Arc::clone(&edit.path), Arc::clone(from))),
        _ => None,
    };
    let moved: BTreeMap<Arc<str>, Arc<str>> = edits.all.iter().filter_map(moved).collect();
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let gone: BTreeMap<&Arc<str>, &Arc<str>> = gone.map(|(name, path)| (*path, *name)).collect();
    let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
    let renamed = new.filter_map(|(name, path)| {
        let from = moved.get(*path).unwrap_or(path);
        Some((Arc::clone(name), Arc::clone(gone.get(from)?)))
    });
    renamed.collect()
}

impl Roll {
    /// Puts bodies that only one side has under what they came or went with.
    pub(super) fn of(
        files: &[ChangedFile],
        older_names: &BTreeMap<Arc<str>, Arc<str>>,
        older: &Compiler,
        newer: &Compiler,
    ) -> Roll {
        let (agents_then, agents_now) = (agents(older), agents(newer));
        let (contexts_then, contexts_now) = (contexts(older), contexts(newer));
        let renamed = older_names.iter().map(|(to, from)| {
            let path = agents_now.get(to).map_or_else(|| Arc::from(""), |path| Arc::clone(path));
            Renamed { from: Arc::clone(from), to: Arc::clone(to), path }
        });
        let mut roll = Roll { renamed: renamed.collect(), ..Roll::default() };
        let is_renamed =
            |name: &Arc<str>| older_names.contains_key(name) || older_names.values().any(|old| old == name);
        let bodies = |is_it: &dyn Fn(&ChangedFile) -> bool| {
            files.iter().filter(|file| file.subject.context.is_some() && is_it(file)).count()
        };
        let of_agent = |name: &Arc<str>| bodies(&|file| file.subject.agent == *name);
        let of_context = |name: &Arc<str>| bodies(&|file| file.subject.context.as_ref() == Some(name));
        let listed = |name: &Arc<str>, path: &Arc<str>, bodies| Listed {
            name: Arc::clone(name),
            path: Arc::clone(path),
            bodies,
        };
        let told: BTreeSet<&Arc<str>> = files.iter().map(|file| &file.subject.agent).collect();
        let only = |here: &BTreeMap<&Arc<str>, &Arc<str>>, there: &BTreeMap<&Arc<str>, &Arc<str>>| -> Vec<Listed> {
            let only =
                here.iter().filter(|(name, _)| !there.contains_key(*name) && told.contains(*name) && !is_renamed(name));
            only.map(|(name, path)| listed(name, path, of_agent(name))).collect()
        };
        roll.agents = only(&agents_now, &agents_then);
        roll.gone_agents = only(&agents_then, &agents_now);
        let only = |here: &BTreeMap<&Arc<str>, Arc<str>>, there: &BTreeMap<&Arc<str>, Arc<str>>| -> Vec<Listed> {
            let only = here.iter().filter(|(name, _)| !there.contains_key(*name));
            only.map(|(name, path)| listed(name, path, of_context(name))).collect()
        };
        roll.contexts = only(&contexts_now, &contexts_then);
        roll.gone_contexts = only(&contexts_then, &contexts_now);
        let is_told = |file: &&ChangedFile| {
            let agent = &file.subject.agent;
            let context = file.subject.context.as_ref();
            roll.agents.iter().any(|it| it.name == *agent)
                || roll.gone_agents.iter().any(|it| it.name == *agent)
                || roll.contexts.iter().any(|it| Some(&it.name) == context)
                || roll.gone_contexts.iter().any(|it| Some(&it.name) == context)
        };
        roll.bodies = files.iter().filter(|file| !is_told(file)).cloned().collect();
        roll
    }

    /// Whether nobody came or went.
    pub fn is_empty(&self) -> bool {
        *self == Roll::default()
    }

    /// The kind of change that this is.
    pub(super) fn class(&self) -> Option<Class> {
        let gone = !self.gone_agents.is_empty() || self.bodies.iter().any(|file| file.new.is_none());
        let new = !self.agents.is_empty() || !self.renamed.is_empty() || !self.bodies.is_empty();
        if gone { Some(Class::Removed) } else { new.then_some(Class::Value) }
    }

    /// Whether what an edit does is told here.
    pub(super) fn tells(&self, edit: &Edit) -> bool {
        let path = &edit.path;
        let added = self.agents.iter().chain(&self.contexts).any(|it| it.path == *path);
        let gone = self.gone_agents.iter().chain(&self.gone_contexts).any(|it| it.path == *path);
        let is_name = match &edit.kind {
            EditKind::Key(key) => &**key == "name",
            EditKind::Moved { .. } => true,
            _ => false,
        };
        (added || gone) && edit.is_whole_file() || is_name && self.renamed.iter().any(|it| it.path == *path)
    }
}
