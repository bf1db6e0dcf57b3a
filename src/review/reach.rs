//! Which bodies an edit can reach, before anything is compiled: never fewer than it does reach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::edit::{EditKind, Edits};
use crate::compile::Compiler;
use crate::repo::folders;

/// What an edit can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// No body.
    Nothing,
    /// Bodies of these agents.
    Agents(BTreeSet<Arc<str>>),
    /// Bodies of one context.
    Context(Arc<str>),
    /// Any body.
    Everything,
}

impl Reach {
    /// Whether it can change bodies of an agent.
    pub(super) fn has_agent(&self, name: &Arc<str>) -> bool {
        match self {
            Reach::Nothing => false,
            Reach::Agents(names) => names.contains(name),
            Reach::Context(_) | Reach::Everything => true,
        }
    }
}

/// The reach of each edit.
pub(super) fn of_edits(edits: &Edits, older: &Compiler, newer: &Compiler) -> Vec<Reach> {
    let paths: BTreeSet<&str> = (0..edits.all.len()).flat_map(|edit| edits.paths(edit)).collect();
    let known = [older, newer].map(|side| side.agents_of_files(&paths));
    (0..edits.all.len()).map(|edit| of_edit(edits, edit, &known)).collect()
}

type Known = Option<BTreeMap<String, BTreeSet<Arc<str>>>>;

fn of_edit(edits: &Edits, edit: usize, known: &[Known; 2]) -> Reach {
    if edits.all[edit].kind == EditKind::Comments {
        return Reach::Nothing;
    }
    let paths = edits.paths(edit);
    let below = |folder: &str| paths.iter().all(|path| path.starts_with(&format!("{folder}/")));
    if below(folders::SCHEMAS) || paths.iter().all(|path| *path == folders::MODEL_FAMILIES) {
        return Reach::Nothing;
    }
    if below(folders::CONTEXTS) && paths.len() == 1 {
        let name = paths.iter().next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        return Reach::Context(name.trim_end_matches(".json").into());
    }
    let [Some(older), Some(newer)] = known else { return Reach::Everything };
    if below(folders::AGENTS) || below(folders::PARTIALS) {
        let names = paths.iter().flat_map(|path| older.get(*path).into_iter().chain(newer.get(*path)));
        return Reach::Agents(names.flatten().cloned().collect());
    }
    Reach::Everything
}
