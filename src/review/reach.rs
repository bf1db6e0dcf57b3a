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
    /// Bodies of these contexts.
    Contexts(BTreeSet<Arc<str>>),
    /// Any body.
    Everything,
}

impl Reach {
    /// Whether it can change bodies of an agent.
    pub(super) fn has_agent(&self, name: &Arc<str>) -> bool {
        match self {
            Reach::Nothing => false,
            Reach::Agents(names) => names.contains(name),
            Reach::Contexts(_) | Reach::Everything => true,
        }
    }
}

/// The reach of each edit.
pub(super) fn of_edits(edits: &Edits, older: &Compiler, newer: &Compiler) -> Vec<Reach> {
    let paths: BTreeSet<&str> = (0..edits.all.len()).flat_map(|edit| edits.paths(edit)).collect();
    let agents = [older, newer].map(|side| side.agents_of_files(&paths));
    let contexts = [older, newer].map(contexts_of_files);
    (0..edits.all.len()).map(|edit| of_edit(edits, edit, &agents, &contexts)).collect()
}

/// Names by the paths of files.
type Named = BTreeMap<String, BTreeSet<Arc<str>>>;

/// The contexts that files hold; a file may be called anything.
fn contexts_of_files(side: &Compiler) -> Named {
    let mut named = Named::new();
    for ready in side.contexts() {
        let path = side.sources().get(ready.context.file).path().to_string();
        named.entry(path).or_default().insert(Arc::clone(&ready.context.name));
    }
    named
}

fn of_edit(edits: &Edits, edit: usize, agents: &[Option<Named>; 2], contexts: &[Named; 2]) -> Reach {
    if edits.all[edit].kind == EditKind::Comments {
        return Reach::Nothing;
    }
    let paths = edits.paths(edit);
    let below = |folder: &str| paths.iter().all(|path| path.starts_with(&format!("{folder}/")));
    if below(folders::SCHEMAS) || paths.iter().all(|path| *path == folders::MODEL_FAMILIES) {
        return Reach::Nothing;
    }
    let of_both = |older: &Named, newer: &Named| -> BTreeSet<Arc<str>> {
        let names = paths.iter().flat_map(|path| older.get(*path).into_iter().chain(newer.get(*path)));
        names.flatten().cloned().collect()
    };
    if below(folders::CONTEXTS) {
        return Reach::Contexts(of_both(&contexts[0], &contexts[1]));
    }
    match agents {
        [Some(older), Some(newer)] if below(folders::AGENTS) || below(folders::PARTIALS) => {
            Reach::Agents(of_both(older, newer))
        }
        _ => Reach::Everything,
    }
}
