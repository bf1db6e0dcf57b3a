//! Finds the files that system prompts read, look for or list. Only prompts are rendered, not
//! bodies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::touched::Touched;
use crate::compile::compiler::Compiler;
use crate::compile::contexts::LoadedContext;
use crate::compile::environment::PromptEnvironment;
use crate::context::Project;
use crate::repo::Layer;
use crate::resolve::{ProfileId, ResolvedProfile};
use crate::unit::{Plan, Request};
use crate::world::{Entry, EntryKind, ReadError, Walk, World};

/// The files and folders of the repository that an agent's prompts access.
pub(in crate::compile) struct PromptReads {
    agent: Arc<str>,
    asked: BTreeSet<Question>,
}

impl PromptReads {
    /// Returns the accessed files for the prompts of all agents. If an agent cannot be compiled, or
    /// no context reaches a call, only literal names are found.
    pub(super) fn of_all(compiler: &Compiler) -> Vec<PromptReads> {
        let Some(own) = own_layer(compiler) else {
            return Vec::new();
        };
        let settings = settings(compiler);
        let agents: Vec<ProfileId> = compiler.agents().iter().map(|(id, _)| *id).collect();
        agents
            .into_par_iter()
            .map(|id| PromptReads::of(compiler, id, &settings, own))
            .collect()
    }

    fn of(
        compiler: &Compiler,
        id: ProfileId,
        settings: &[Setting<'_>],
        own: &Layer,
    ) -> PromptReads {
        let noting = Arc::new(Noting {
            world: Arc::clone(&own.world),
            asked: Mutex::default(),
        });
        let profile = compiler.resolve(id);
        let templates = profile.iter().flat_map(ResolvedProfile::strings_in_effect);
        for template in templates {
            for path in compiler.engine.files_named_in(template) {
                noting.note(path, false);
            }
        }
        if let Some(plan) = compiler.plan(id) {
            for setting in settings {
                setting.render(compiler, &plan, own, &noting);
            }
        }
        let asked =
            std::mem::take(&mut *noting.asked.lock().unwrap_or_else(PoisonError::into_inner));
        PromptReads {
            agent: Arc::clone(&compiler.hierarchy().get(id).name.value),
            asked,
        }
    }

    pub(super) fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// Returns the touched files that the agent's prompts access.
    pub(super) fn read(&self, touched: &dyn Touched) -> BTreeSet<Arc<str>> {
        let about = self
            .asked
            .iter()
            .filter(|question| question.is_about(touched));
        about.map(|question| Arc::clone(&question.path)).collect()
    }

    pub(super) fn is_about(&self, touched: &dyn Touched) -> bool {
        self.asked.iter().any(|question| question.is_about(touched))
    }
}

/// Returns the repository's own layer.
pub(super) fn own_layer(compiler: &Compiler) -> Option<&Layer> {
    compiler
        .repo()
        .layers
        .iter()
        .find(|layer| compiler.repo().shown_below(layer.kind).is_empty())
}

/// A context with a project and a language that prompts can see.
struct Setting<'c> {
    loaded: &'c LoadedContext,
    environment: PromptEnvironment,
}

/// Returns a context for each project and language that prompts can see.
fn settings(compiler: &Compiler) -> Vec<Setting<'_>> {
    let mut known: Vec<(&Project, &str)> = Vec::new();
    let mut settings = Vec::new();
    for loaded in compiler
        .contexts()
        .iter()
        .filter(|loaded| !loaded.context.conversation.omit_system_prompt)
    {
        for state in &loaded.plain.states {
            let seen = (&state.project, &*state.language);
            if !known.contains(&seen) {
                known.push(seen);
                settings.push(Setting {
                    loaded,
                    environment: PromptEnvironment::of_state(state),
                });
            }
        }
    }
    settings
}

impl Setting<'_> {
    /// Renders the prompts of an agent with `noting` in place of the repository's own layer.
    fn render(&self, compiler: &Compiler, plan: &Plan<'_>, own: &Layer, noting: &Arc<Noting>) {
        let layer = plan.profile.profile.layer;
        let worlds = compiler
            .repo()
            .readable_layers(layer)
            .map(|it| match it.kind == own.kind {
                true => Arc::clone(noting) as Arc<dyn World>,
                false => Arc::clone(&it.world),
            });
        let scope = self
            .environment
            .scope_of(compiler.repo(), layer, worlds.collect());
        let renderer = self.loaded.renderer(&compiler.engine);
        let conversation = &self.loaded.plain.normalised;
        let request = Request {
            conversation,
            scope: &scope,
            model: None,
            memory: None,
        };
        // Errors are reported when the body is compiled.
        drop(plan.system_prompt(compiler.sources(), &renderer, &request));
        drop(
            plan.surroundings
                .map(|template| renderer.prompt(compiler.sources(), template, &scope)),
        );
    }
}

/// A file or folder in a world that a prompt accesses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    path: Arc<str>,
    /// `true` if the prompt lists the folder; `false` if it accesses a single file.
    is_listing: bool,
}

impl Question {
    fn is_about(&self, touched: &dyn Touched) -> bool {
        if self.is_listing {
            touched.listing(&self.path)
        } else {
            touched.file(&self.path)
        }
    }
}

/// A world that records all accesses.
struct Noting {
    world: Arc<dyn World>,
    asked: Mutex<BTreeSet<Question>>,
}

impl Noting {
    fn note(&self, path: &str, is_listing: bool) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(Question {
            path: Arc::from(path),
            is_listing,
        });
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
