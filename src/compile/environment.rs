//! The part of a conversation's environment that system prompts can see.

use std::sync::Arc;

use foldhash::HashMap;

use crate::context::{Context, Project, State};
use crate::render::{Folders, PromptScope};
use crate::repo::{LayerKind, Repo};
use crate::world::{MemoryWorld, World};

/// The files that prompts may read, by the agents' layer.
pub(super) type Scopes = HashMap<LayerKind, Arc<PromptScope>>;

/// The environment of a conversation that system prompts can see.
#[derive(Clone)]
pub struct PromptEnvironment {
    /// The project's files.
    pub project: Arc<dyn World>,
    /// The project's name.
    pub project_name: Arc<str>,
    /// The language of the file that the user has open.
    pub language: Arc<str>,
    /// The folder names that prompts can see.
    pub folders: Folders,
}

impl PromptEnvironment {
    /// Returns `true` if both environments look the same to prompts: the same project object and
    /// the same names.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_same(&self, other: &PromptEnvironment) -> bool {
        let names = (&self.project_name, &self.language, &self.folders);
        Arc::ptr_eq(&self.project, &other.project)
            && names == (&other.project_name, &other.language, &other.folders)
    }

    /// Returns the virtual project of a context.
    pub fn of(context: &Context) -> PromptEnvironment {
        PromptEnvironment::of_project(&context.project, &context.language)
    }

    /// Returns the virtual project of a turn.
    pub(super) fn of_state(state: &State) -> PromptEnvironment {
        PromptEnvironment::of_project(&state.project, &state.language)
    }

    fn of_project(project: &Project, language: &Arc<str>) -> PromptEnvironment {
        let files = project
            .files
            .iter()
            .map(|(path, text)| (path.clone(), text.as_bytes().to_vec()));
        PromptEnvironment {
            project: Arc::new(files.collect::<MemoryWorld>()),
            project_name: Arc::clone(&project.name),
            language: Arc::clone(language),
            folders: Folders::placeholders(),
        }
    }

    /// Returns the files that the prompts of a layer's agents may read.
    pub(super) fn scope(&self, repo: &Repo, layer: LayerKind) -> Arc<PromptScope> {
        let layers = repo
            .readable_layers(layer)
            .map(|layer| Arc::clone(&layer.world));
        self.scope_of(repo, layer, layers.collect())
    }

    pub(super) fn scope_of(
        &self,
        repo: &Repo,
        layer: LayerKind,
        layers: Vec<Arc<dyn World>>,
    ) -> Arc<PromptScope> {
        Arc::new(PromptScope {
            project: Arc::clone(&self.project),
            project_name: Arc::clone(&self.project_name),
            language: Arc::clone(&self.language),
            layers,
            shown_below: repo
                .readable_layers(layer)
                .map(|layer| repo.shown_below(layer.kind))
                .collect(),
            folders: self.folders.clone(),
        })
    }
}
