//! Finds the agents that a change to the given files can affect. It may find too many agents, but
//! never too few.
//!
//! It follows everything that an agent is compiled from: its chain, the templates' includes, its
//! provider instance, contexts, settings, and the files that its system prompt reads, looks for or
//! lists.

mod touched;
mod prompts;
pub(super) mod users;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use self::prompts::{PromptReads, own_layer};
use self::touched::is_in;
pub use self::touched::{Differing, Named, Touched};
use self::users::Users;
use super::compiler::Compiler;
use super::selection::Reach;
use crate::golden;
use crate::profile::slug;
use crate::repo::folders;
use crate::resolve::ProfileId;
use crate::source::FileId;
use crate::world::EntryKind;

/// Files whose settings may affect every agent.
const OF_ALL: [&str; 2] = [folders::CONFIG, folders::MODEL_FAMILIES];
/// Files at the root that affect no body.
const OF_NONE: [&str; 2] = ["rosters.toml", "tools.toml"];
const MODELS: &str = "models.toml";

/// Searches for the agents and contexts that the given files reach.
pub struct FileReach<'a> {
    compiler: &'a Compiler,
}

impl<'a> FileReach<'a> {
    /// Creates a search in the loaded state of a repository.
    pub fn new(compiler: &'a Compiler) -> FileReach<'a> {
        FileReach { compiler }
    }

    /// Returns all agents and contexts that touched files in the loaded repository reach. With
    /// `golden`, golden files reach the agents that own them. The result lists only files that are
    /// part of the repository.
    pub fn of(&self, touched: &dyn Touched, golden: bool) -> Reach {
        let files: BTreeSet<FileId> = self
            .own_files()
            .filter(|(_, path)| touched.file(path))
            .map(|it| it.0)
            .collect();
        let mut reach = Reach::default();
        let paths = files
            .iter()
            .map(|file| Arc::clone(self.compiler.sources().get(*file).path()));
        let mut paths: BTreeSet<Arc<str>> = paths.collect();
        match paths
            .iter()
            .any(|path| OF_ALL.contains(&&**path) || is_in(path, folders::SCHEMAS))
        {
            true => reach.agents.extend(self.all()),
            false => self.reach_by_files(&files, &mut reach),
        }
        if paths.contains(MODELS) {
            reach
                .agents
                .extend(self.compiler.repo().models.keys().cloned());
        }
        let contexts = self
            .compiler
            .contexts()
            .iter()
            .filter(|loaded| files.contains(&loaded.context.file));
        reach
            .contexts
            .extend(contexts.map(|loaded| Arc::clone(&loaded.context.name)));
        for reads in PromptReads::of_all(self.compiler) {
            let read = reads.read(touched);
            if !read.is_empty() {
                reach.agents.insert(Arc::clone(reads.agent()));
                paths.extend(read);
            }
        }
        if golden {
            self.reach_by_golden(touched, &mut reach, &mut paths);
        }
        paths.extend(
            OF_NONE
                .into_iter()
                .filter(|path| touched.file(path))
                .map(Arc::from),
        );
        Reach {
            files: Some(paths),
            ..reach
        }
    }

    /// Returns, for each path, the agents that use a file with this path; `None` if the includes to
    /// follow exceed the limit.
    pub(crate) fn agents_by_path(
        &self,
        paths: &BTreeSet<&str>,
    ) -> Option<BTreeMap<String, BTreeSet<Arc<str>>>> {
        Users::of(self.compiler).by_path(paths)
    }

    /// Returns, for each set of files, the agents whose prompts access any file in the set.
    pub(crate) fn agents_by_prompts(&self, sets: &[&dyn Touched]) -> Vec<BTreeSet<Arc<str>>> {
        let reads = PromptReads::of_all(self.compiler);
        let mut agents = Vec::with_capacity(sets.len());
        for touched in sets {
            let about = reads.iter().filter(|it| it.is_about(*touched));
            agents.push(about.map(|it| Arc::clone(it.agent())).collect());
        }
        agents
    }

    /// Returns the repository files that were read during loading, with their paths.
    fn own_files(&self) -> impl Iterator<Item = (FileId, &Arc<str>)> {
        let files = self
            .compiler
            .sources()
            .iter()
            .filter(|(_, file)| !file.is_bundled())
            .map(|(id, file)| (id, file.path()));
        files.filter(|(_, path)| !path.ends_with('/'))
    }

    fn all(&self) -> impl Iterator<Item = Arc<str>> {
        self.compiler
            .agents()
            .iter()
            .map(|(id, _)| name(self.compiler, *id))
    }

    /// Adds the agents that are compiled from the given files. Broken agents have no list of files,
    /// so they are added by their findings.
    fn reach_by_files(&self, files: &BTreeSet<FileId>, reach: &mut Reach) {
        match Users::of(self.compiler).by_file(files) {
            Some(reached) => reach.agents.extend(reached.into_values().flatten()),
            None => reach.agents.extend(self.all()),
        }
        for finding in self.compiler.findings() {
            let mut places = std::iter::once(&finding.primary).chain(&finding.related);
            if places.any(|label| files.contains(&label.span.file)) {
                reach.agents.extend(finding.agents.iter().cloned());
            }
        }
    }

    /// Adds the agents that own touched golden files, and the paths of these files.
    fn reach_by_golden(
        &self,
        touched: &dyn Touched,
        reach: &mut Reach,
        paths: &mut BTreeSet<Arc<str>>,
    ) {
        let Some(own) = own_layer(self.compiler) else {
            return;
        };
        let agents: HashMap<String, Arc<str>> =
            self.all().map(|name| (slug(&name), name)).collect();
        let folders = own.world.list(golden::FOLDER).unwrap_or_default();
        for folder in folders
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::Folder)
        {
            let files = own.world.list(&folder.path).unwrap_or_default();
            let touched = files.into_iter().filter(|file| touched.file(&file.path));
            let touched: Vec<Arc<str>> = touched.map(|file| Arc::from(file.path)).collect();
            let slug = folder.path.rsplit('/').next().unwrap_or_default();
            reach
                .agents
                .extend(agents.get(slug).filter(|_| !touched.is_empty()).cloned());
            paths.extend(touched);
        }
    }
}

/// Returns the agents that can be compiled in only one of two states of a repository.
pub fn differently_usable(one: &Compiler, other: &Compiler) -> BTreeSet<Arc<str>> {
    usable(one)
        .symmetric_difference(&usable(other))
        .cloned()
        .collect()
}

fn usable(compiler: &Compiler) -> BTreeSet<Arc<str>> {
    let usable = compiler.agents().iter().filter(|(_, usable)| *usable);
    usable.map(|(id, _)| name(compiler, *id)).collect()
}

fn name(compiler: &Compiler, id: ProfileId) -> Arc<str> {
    Arc::clone(&compiler.hierarchy().get(id).name.value)
}
