//! A repository, read and checked: what all rooms work on.

use std::sync::Arc;

use super::contexts::LoadedContext;
use super::leaves_out::Declarations;
use crate::check::Schemas;
use crate::diag::Diagnostic;
use crate::memory::Memory;
#[cfg(feature = "cli")]
use crate::memory::MemoryUse;
use crate::render::Engine;
use crate::repo::Repo;
use crate::resolve::{self, Hierarchy, ProfileId, ResolvedProfile};
use crate::source::Sources;
use crate::unit::Plan;

/// A repository, read and checked.
pub struct Compiler {
    pub(super) repo: Repo,
    pub(super) hierarchy: Hierarchy,
    pub(super) engine: Engine,
    pub(super) schemas: Arc<Schemas>,
    pub(super) contexts: Vec<LoadedContext>,
    /// The answers that several agents and contexts ask for.
    pub(super) memory: Arc<Memory>,
    /// The entries of `leaves_out` in profiles, as far as they were seen.
    pub(super) declarations: Declarations,
    /// Concrete agents of the compiled layers, sorted by name, and whether they can be compiled.
    pub(super) agents: Vec<(ProfileId, bool)>,
    pub(super) findings: Vec<Diagnostic>,
}

/// Stack of the worker threads: deep but limited recursion in templates needs more than the usual 2
/// MiB.
pub(crate) const STACK_BYTES: usize = 16 * 1024 * 1024;

impl Compiler {
    /// Returns the findings of loading, in no particular order.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// Returns the repository.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// Returns every source file.
    pub fn sources(&self) -> &Sources {
        &self.repo.sources
    }

    /// Returns all profiles.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Returns all contexts, sorted by name.
    pub fn contexts(&self) -> &[LoadedContext] {
        &self.contexts
    }

    /// Returns the context with a name.
    pub fn context(&self, name: &str) -> Option<&LoadedContext> {
        self.contexts
            .iter()
            .find(|loaded| &*loaded.context.name == name)
    }

    /// Returns the agents that are compiled, sorted by name; the flag says whether they can be.
    pub fn agents(&self) -> &[(ProfileId, bool)] {
        &self.agents
    }

    /// Merges a profile over its ancestors; `None` if the chain is broken.
    pub fn resolve(&self, id: ProfileId) -> Option<ResolvedProfile<'_>> {
        // What merging finds was reported while loading.
        Some(resolve::resolve_again(self.hierarchy.chain(id)?))
    }

    /// Returns the plan of an agent; `None` if it has findings that make it unusable.
    pub fn plan(&self, id: ProfileId) -> Option<Plan<'_>> {
        Plan::new(&self.repo, &self.engine, &self.memory, self.resolve(id)?)
    }

    /// Returns how much work was shared so far, and how much memory that takes.
    #[cfg(feature = "cli")]
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.memory.usage()
    }
}

/// Returns `true` if a profile is an agent that is compiled, as far as its own file tells.
pub(super) fn is_agent(repo: &Repo, hierarchy: &Hierarchy, id: ProfileId) -> bool {
    let profile = hierarchy.get(id);
    !profile.is_abstract() && repo.is_compiled(profile.layer) && !hierarchy.is_taken(id)
}
