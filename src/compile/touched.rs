//! Which agents some files reach, whatever is done with them: a lower bound of what must be compiled again.
//!
//! What an agent is made of is followed: its chain, the templates' includes, its provider instance, contexts, settings, and the
//! files that its system prompt reads, looks for or lists. Prompts are rendered for that, bodies are not.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::{Compiler, LoadedContext, PromptEnvironment, Reach};
use crate::context::Project;
use crate::golden;
use crate::profile::slug;
use crate::repo::{Layer, LayerKind, folders};
use crate::resolve::ProfileId;
use crate::source::FileId;
use crate::unit::{Plan, Request};
use crate::world::{Entry, EntryKind, ReadError, Walk, World};

/// Some files of a repository.
pub trait Touched: Sync {
    /// Returns `true` if a file is among them.
    fn file(&self, path: &str) -> bool;

    /// Returns `true` if what stands directly in a folder is.
    fn listing(&self, folder: &str) -> bool;
}

/// The paths that somebody named: files, and folders with all that is in them.
#[derive(Debug, Clone, Default)]
pub struct Named(pub Vec<String>);

/// The differences between two sides.
#[derive(Clone)]
pub struct Differing {
    /// The one side.
    pub old: Arc<dyn World>,
    /// The other.
    pub new: Arc<dyn World>,
}

impl Touched for Named {
    fn file(&self, path: &str) -> bool {
        self.0.iter().any(|named| is_in(path, named))
    }

    fn listing(&self, folder: &str) -> bool {
        self.0.iter().any(|named| is_in(folder, named) || is_in(named, folder))
    }
}

/// Returns `true` if a path is another one, or below it.
fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Touched for Differing {
    fn file(&self, path: &str) -> bool {
        self.old.read(path) != self.new.read(path)
    }

    fn listing(&self, folder: &str) -> bool {
        let names = |world: &Arc<dyn World>| {
            let entries = world.list(folder)?;
            Ok::<_, ReadError>(entries.into_iter().map(|entry| (entry.path, entry.kind)).collect::<Vec<_>>())
        };
        names(&self.old) != names(&self.new)
    }
}

/// Files whose settings concern every agent, or may.
const OF_ALL: [&str; 2] = ["reqc.toml", folders::MODEL_FAMILIES];
/// Files at the root that no body is made of.
const OF_NONE: [&str; 2] = ["rosters.toml", "tools.toml"];
const MODELS: &str = "models.toml";

impl Compiler {
    /// Returns what some files of the repository reach, in this state of it. With `golden`, golden files reach the agents that own them.
    /// The files of the result are those that are part of the repository.
    pub fn reach(&self, touched: &dyn Touched, golden: bool) -> Reach {
        let files: BTreeSet<FileId> = self.own_files().filter(|(_, path)| touched.file(path)).map(|it| it.0).collect();
        let mut reach = Reach::default();
        let mut paths: BTreeSet<Arc<str>> =
            files.iter().map(|file| Arc::clone(self.sources().get(*file).path())).collect();
        let is_of_all = |path: &Arc<str>| OF_ALL.contains(&&**path) || is_in(path, folders::SCHEMAS);
        match paths.iter().any(is_of_all) {
            true => reach.agents.extend(self.agents().iter().map(|(id, _)| self.name(*id))),
            false => self.reach_by_files(&files, &mut reach),
        }
        if paths.contains(MODELS) {
            reach.agents.extend(self.repo().models.keys().cloned());
        }
        let contexts = self.contexts().iter().filter(|loaded| files.contains(&loaded.context.file));
        reach.contexts.extend(contexts.map(|loaded| Arc::clone(&loaded.context.name)));
        for (agent, read) in self.reached_by_prompts(touched) {
            reach.agents.insert(agent);
            paths.extend(read);
        }
        if golden {
            self.reach_by_golden(touched, &mut reach, &mut paths);
        }
        paths.extend(OF_NONE.into_iter().filter(|path| touched.file(path)).map(Arc::from));
        Reach { files: Some(paths), ..reach }
    }

    /// The agents that can be compiled in only one of two states of a repository.
    pub fn differently_usable(&self, other: &Compiler) -> BTreeSet<Arc<str>> {
        let usable = |compiler: &Compiler| -> BTreeSet<Arc<str>> {
            let usable = compiler.agents().iter().filter(|(_, usable)| *usable);
            usable.map(|(id, _)| compiler.name(*id)).collect()
        };
        usable(self).symmetric_difference(&usable(other)).cloned().collect()
    }

    fn name(&self, id: ProfileId) -> Arc<str> {
        Arc::clone(&self.hierarchy().get(id).name.value)
    }

    /// The repository's own layer.
    fn own_layer(&self) -> Option<&Layer> {
        self.repo().layers.iter().find(|layer| self.repo().shown_below(layer.kind).is_empty())
    }

    /// The files of the repository that were read while loading, with their paths.
    fn own_files(&self) -> impl Iterator<Item = (FileId, &Arc<str>)> {
        let files = self.sources().iter().map(|(id, file)| (id, file.path()));
        files.filter(|(_, path)| !path.starts_with("bundled:") && !path.ends_with('/'))
    }

    /// By what agents are made of; and by findings, since what is broken is made of nothing.
    fn reach_by_files(&self, files: &BTreeSet<FileId>, reach: &mut Reach) {
        match self.agents_by_file(files) {
            Some(reached) => reach.agents.extend(reached.into_values().flatten()),
            None => reach.agents.extend(self.agents().iter().map(|(id, _)| self.name(*id))),
        }
        let findings = self.findings().iter().filter(|finding| {
            let mut places = std::iter::once(&finding.primary).chain(&finding.related);
            places.any(|label| files.contains(&label.span.file))
        });
        reach.agents.extend(findings.flat_map(|finding| finding.agents.iter().cloned()));
    }

    /// For each of some sets of files the agents whose prompts ask for any of them.
    pub(crate) fn agents_by_prompts(&self, sets: &[&dyn Touched]) -> Vec<BTreeSet<Arc<str>>> {
        let asked = self.asked_by_prompts();
        sets.iter()
            .map(|touched| {
                let reached =
                    asked.iter().filter(|(_, asked)| asked.iter().any(|question| question.is_about(*touched)));
                reached.map(|(agent, _)| Arc::clone(agent)).collect()
            })
            .collect()
    }

    /// The agents whose prompts ask for some files, and for which.
    fn reached_by_prompts(&self, touched: &dyn Touched) -> Vec<(Arc<str>, BTreeSet<Arc<str>>)> {
        let reached = self.asked_by_prompts().into_iter().map(|(agent, asked)| {
            let read = asked.into_iter().filter(|question| question.is_about(touched)).map(|it| it.path);
            (agent, read.collect::<BTreeSet<Arc<str>>>())
        });
        reached.filter(|(_, read)| !read.is_empty()).collect()
    }

    /// Returns what the prompts of all agents ask for.
    fn asked_by_prompts(&self) -> Vec<(Arc<str>, BTreeSet<Question>)> {
        let settings = self.settings();
        let usable: Vec<ProfileId> = self.agents().iter().filter(|(_, usable)| *usable).map(|(id, _)| *id).collect();
        let asked =
            |id| settings.iter().flat_map(|(loaded, setting)| self.asked_by_prompt(id, loaded, setting)).collect();
        usable.into_par_iter().map(|id| (self.name(id), asked(id))).collect()
    }

    /// A context for each project and language that prompts can see.
    fn settings(&self) -> Vec<(&LoadedContext, PromptEnvironment)> {
        let mut known: Vec<(&Project, &str)> = Vec::new();
        let mut settings = Vec::new();
        for loaded in self.contexts().iter().filter(|loaded| !loaded.context.conversation.omit_system_prompt) {
            for state in &loaded.plain.states {
                let setting = (&state.project, &*state.language);
                if !known.contains(&setting) {
                    known.push(setting);
                    settings.push((loaded, PromptEnvironment::of_state(&state.project, &state.language)));
                }
            }
        }
        settings
    }

    /// Returns what the prompt of an agent asks of the repository's own files.
    fn asked_by_prompt(
        &self,
        id: ProfileId,
        loaded: &LoadedContext,
        environment: &PromptEnvironment,
    ) -> BTreeSet<Question> {
        let (Some(plan), Some(own)) = (self.plan(id), self.own_layer()) else { return BTreeSet::new() };
        let noting = Arc::new(Noting { world: Arc::clone(&own.world), asked: Mutex::default() });
        self.render_prompt(&plan, (loaded, environment), own.kind, &noting);
        std::mem::take(&mut noting.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Renders a prompt that sees another world in the place of a layer's.
    fn render_prompt(
        &self,
        plan: &Plan<'_>,
        (loaded, environment): (&LoadedContext, &PromptEnvironment),
        own: LayerKind,
        noting: &Arc<Noting>,
    ) {
        let layer = plan.profile.profile.layer;
        let worlds = self
            .repo()
            .readable_layers(layer)
            .map(|it| match it.kind == own {
                true => Arc::clone(noting) as Arc<dyn World>,
                false => Arc::clone(&it.world),
            })
            .collect();
        let scope = environment.scope_of(self.repo(), layer, worlds);
        let normalised = &loaded.plain.normalised;
        let renderer = self.engine.renderer(LoadedContext::size_class(normalised));
        let request = Request { conversation: normalised, scope: &scope, model: None, memory: None };
        // What goes wrong is found when the body is made.
        drop(plan.system_prompt(self.sources(), &renderer, &request));
        drop(plan.surroundings.map(|template| renderer.prompt(self.sources(), template, &scope)));
    }

    /// The agents that own golden files, and whether other golden files are meant.
    fn reach_by_golden(&self, touched: &dyn Touched, reach: &mut Reach, paths: &mut BTreeSet<Arc<str>>) {
        let Some(own) = self.own_layer() else { return };
        let agents: HashMap<String, Arc<str>> =
            self.agents().iter().map(|(id, _)| self.name(*id)).map(|name| (slug(&name), name)).collect();
        let folders = own.world.list(golden::FOLDER).unwrap_or_default();
        for folder in folders.into_iter().filter(|entry| entry.kind == EntryKind::Folder) {
            let files = own.world.list(&folder.path).unwrap_or_default();
            let touched = files.into_iter().filter(|file| touched.file(&file.path));
            let touched: Vec<Arc<str>> = touched.map(|file| Arc::from(file.path)).collect();
            let slug = folder.path.rsplit('/').next().unwrap_or_default();
            reach.agents.extend(agents.get(slug).filter(|_| !touched.is_empty()).cloned());
            paths.extend(touched);
        }
    }
}

/// A question of a prompt to a world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    path: Arc<str>,
    /// `true` if it asked for what stands in the folder.
    is_listing: bool,
}

impl Question {
    fn is_about(&self, touched: &dyn Touched) -> bool {
        if self.is_listing { touched.listing(&self.path) } else { touched.file(&self.path) }
    }
}

/// A world that notes what it is asked.
struct Noting {
    world: Arc<dyn World>,
    asked: Mutex<BTreeSet<Question>>,
}

impl Noting {
    fn note(&self, path: &str, is_listing: bool) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(Question { path: Arc::from(path), is_listing });
    }
}

impl World for Noting {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        self.note(path, false);
        self.world.read_within(path, limit)
    }

    fn walk(&self, folder: &str) -> Walk {
        self.note(folder, true);
        self.world.walk(folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.note(folder, true);
        self.world.list(folder)
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        self.note(folder, true);
        self.world.list_counted(folder)
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        self.note(path, false);
        self.world.kind(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_for_what_is_in_them() {
        let named = Named(vec!["agents/x".to_owned(), "roles/a.md".to_owned()]);
        assert!(named.file("agents/x/a.toml") && named.file("roles/a.md"));
        assert!(!named.file("agents/xy.toml") && !named.file("roles/b.md"));
        assert!(named.listing("roles") && named.listing("agents/x/y") && !named.listing("partials"));
    }
}
