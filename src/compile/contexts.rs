//! Loaded contexts, with the data that is derived from each context only once.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;

use super::environment::{PromptEnvironment, Scopes};
use super::turns::Version;
use crate::context::{Context, ContextSource, State};
use crate::memory::Identity;
use crate::render::{Engine, Renderer};
use crate::repo::{Layer, LayerKind, Repo};
use crate::source::Sources;
use crate::unit::{NormalisedConversation, Plan, Request};
use crate::world::{Remembering, World};

/// A context, together with derived data that is computed only once.
pub struct LoadedContext {
    /// The context as loaded.
    pub context: Context,
    /// `true` if this repository has golden files for bodies in this context.
    pub golden: bool,
    pub(super) plain: Arc<Version>,
    /// The context's identity in cache keys.
    pub(super) id: Identity,
    pub(super) scopes: Arc<Scopes>,
    source: OnceLock<Option<ContextSource>>,
    /// The files that prompts see in each earlier turn.
    pub(super) turns: Vec<Arc<Scopes>>,
}

impl LoadedContext {
    pub(super) fn new(repo: &Repo, context: Context, layers: &Readable) -> LoadedContext {
        let golden = match &repo.config.golden_contexts {
            Some(globs) => globs
                .value
                .iter()
                .any(|glob| glob.value.is_match(&context.name)),
            None => context.golden,
        };
        let turns = context
            .earlier
            .iter()
            .map(|state| layers.scopes(repo, &PromptEnvironment::of_state(state)));
        let turns = turns.collect();
        let scopes = layers.scopes(repo, &PromptEnvironment::of(&context));
        let states: Vec<State> = context
            .earlier
            .iter()
            .cloned()
            .chain([context.last()])
            .collect();
        let plain = Arc::new(Version::new(states, Vec::new()));
        LoadedContext {
            context,
            golden,
            plain,
            id: Identity::new(),
            scopes,
            source: OnceLock::new(),
            turns,
        }
    }

    /// Returns an agent's request for a version of the conversation.
    pub(super) fn request<'a>(
        &'a self,
        plan: &Plan<'_>,
        version: &'a Version,
        model: Option<&'a str>,
    ) -> Request<'a> {
        let scope = &self.scopes[&plan.profile.profile.layer];
        Request {
            conversation: &version.normalised,
            scope,
            model,
            memory: None,
        }
    }

    /// Returns the context file, with the locations of its values.
    pub(super) fn source(&self, sources: &Sources) -> Option<&ContextSource> {
        self.source
            .get_or_init(|| {
                ContextSource::read(&self.context, sources.get(self.context.file).text())
            })
            .as_ref()
    }

    /// Returns a renderer for conversations of this size.
    pub(super) fn renderer<'e>(&self, engine: &'e Engine) -> Renderer<'e> {
        engine.renderer(self.size_class())
    }

    fn size_class(&self) -> usize {
        size_class(&self.plain.normalised)
    }
}

/// Returns the number of content blocks in a conversation, rounded up to a power of two.
fn size_class(normalised: &NormalisedConversation) -> usize {
    normalised.conversation.block_count().next_power_of_two()
}

/// The files that prompts may read, by the agent's layer. All contexts share them, so each file is
/// read once.
pub(super) struct Readable(HashMap<LayerKind, Vec<Arc<dyn World>>>);

impl Readable {
    pub(super) fn of(repo: &Repo) -> Readable {
        let all: HashMap<LayerKind, Arc<dyn World>> = repo
            .layers
            .iter()
            .map(|layer| (layer.kind, remembering(layer)))
            .collect();
        let readable = repo.layers.iter().map(|layer| {
            let worlds = repo
                .readable_layers(layer.kind)
                .map(|layer| Arc::clone(&all[&layer.kind]));
            (layer.kind, worlds.collect())
        });
        Readable(readable.collect())
    }

    fn scopes(&self, repo: &Repo, environment: &PromptEnvironment) -> Arc<Scopes> {
        let kinds = repo.layers.iter().map(|layer| layer.kind);
        Arc::new(
            kinds
                .map(|kind| {
                    (
                        kind,
                        environment.scope_of(repo, kind, self.0[&kind].clone()),
                    )
                })
                .collect(),
        )
    }
}

fn remembering(layer: &Layer) -> Arc<dyn World> {
    Arc::new(Remembering::new(Arc::clone(&layer.world)))
}

/// One renderer for each size of conversation.
pub(super) struct Renderers<'e> {
    by_size: HashMap<usize, Renderer<'e>>,
}

impl<'e> Renderers<'e> {
    pub(super) fn new(engine: &'e Engine, contexts: &[LoadedContext]) -> Renderers<'e> {
        let mut by_size = HashMap::default();
        for loaded in contexts {
            by_size
                .entry(loaded.size_class())
                .or_insert_with(|| loaded.renderer(engine));
        }
        Renderers { by_size }
    }

    pub(super) fn get(&self, loaded: &LoadedContext) -> &Renderer<'e> {
        &self.by_size[&loaded.size_class()]
    }
}
