//! Determines the bodies that an edit can reach, before compiling. The result may contain too many
//! bodies, but never too few.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::edit::{EditKind, Edits};
use crate::compile::Compiler;
use crate::compile::reach::{FileReach, Named, Touched};
use crate::repo::folders;

/// The bodies that an edit can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// No bodies.
    Nothing,
    /// The bodies of these agents.
    Agents(BTreeSet<Arc<str>>),
    /// The bodies of these contexts.
    Contexts(BTreeSet<Arc<str>>),
    /// All bodies.
    Everything,
}

impl Reach {
    /// Returns `true` if the edit can change bodies of an agent.
    pub(super) fn has_agent(&self, name: &Arc<str>) -> bool {
        match self {
            Reach::Nothing => false,
            Reach::Agents(names) => names.contains(name),
            Reach::Contexts(_) | Reach::Everything => true,
        }
    }
}

/// Returns the reach of each edit.
pub(super) fn of_edits(edits: &Edits, older: &Compiler, newer: &Compiler) -> Vec<Reach> {
    let all: BTreeSet<&str> = (0..edits.all.len())
        .flat_map(|edit| edits.paths(edit))
        .collect();
    let asked: Vec<Named> = (0..edits.all.len())
        .map(|edit| asked(&edits.paths(edit)))
        .collect();
    let known = [older, newer].map(|side| Known::of(side, &all, &asked));
    (0..edits.all.len())
        .map(|edit| of_edit(edits, edit, &known))
        .collect()
}

/// Returns the paths of an edit's files, in the form in which prompts refer to files.
fn asked(paths: &BTreeSet<&str>) -> Named {
    Named(paths.iter().map(|path| (*path).to_owned()).collect())
}

/// Names of agents or contexts by file path.
type ByPath = BTreeMap<String, BTreeSet<Arc<str>>>;

/// The facts about edited files on one side.
struct Known {
    /// The agents that use each file; `None` if some are unknown.
    agents: Option<ByPath>,
    /// The contexts in each file.
    contexts: ByPath,
    /// For each edit, the agents whose prompts refer to its files.
    prompts: Vec<BTreeSet<Arc<str>>>,
}

impl Known {
    fn of(side: &Compiler, paths: &BTreeSet<&str>, asked: &[Named]) -> Known {
        let sets: Vec<&dyn Touched> = asked.iter().map(|it| it as &dyn Touched).collect();
        let prompts = FileReach::new(side).agents_by_prompts(&sets);
        Known {
            agents: FileReach::new(side).agents_by_path(paths),
            contexts: contexts_of_files(side),
            prompts,
        }
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the contexts defined in each file, whatever the file's name.
fn contexts_of_files(side: &Compiler) -> ByPath {
    let mut named = ByPath::new();
    for loaded in side.contexts() {
        let path = side.sources().get(loaded.context.file).path().to_string();
        named
            .entry(path)
            .or_default()
            .insert(Arc::clone(&loaded.context.name));
    }
    named
}

/// Files that can affect every agent.
const OF_ALL: [&str; 2] = [folders::CONFIG, "models.toml"];

fn of_edit(edits: &Edits, edit: usize, known: &[Known; 2]) -> Reach {
    if edits.all[edit].kind == EditKind::Comments {
        return Reach::Nothing;
    }
    let paths = edits.paths(edit);
    let prompts: BTreeSet<Arc<str>> = known
        .iter()
        .flat_map(|side| side.prompts[edit].iter().cloned())
        .collect();
    if below(folders::SCHEMAS, &paths) || paths.iter().all(|path| *path == folders::MODEL_FAMILIES)
    {
        return if prompts.is_empty() {
            Reach::Nothing
        } else {
            Reach::Agents(prompts)
        };
    }
    if below(folders::CONTEXTS, &paths) && prompts.is_empty() {
        return Reach::Contexts(of_both([&known[0].contexts, &known[1].contexts], &paths));
    }
    let [Some(older), Some(newer)] = [&known[0].agents, &known[1].agents] else {
        return Reach::Everything;
    };
    if below(folders::CONTEXTS, &paths) || paths.iter().any(|path| OF_ALL.contains(path)) {
        return Reach::Everything;
    }
    Reach::Agents(
        of_both([older, newer], &paths)
            .into_iter()
            .chain(prompts)
            .collect(),
    )
}

fn of_both([older, newer]: [&ByPath; 2], paths: &BTreeSet<&str>) -> BTreeSet<Arc<str>> {
    let names = paths
        .iter()
        .flat_map(|path| older.get(*path).into_iter().chain(newer.get(*path)));
    names.flatten().cloned().collect()
}

fn below(folder: &str, paths: &BTreeSet<&str>) -> bool {
    paths.iter().all(|path| is_below(path, folder))
}
