//! A repository that has been read and checked: the input to all modules here.

use std::collections::HashMap;
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
use crate::source::{Sources, Span};
use crate::unit::Plan;

/// A repository that has been read and checked.
pub struct Compiler {
    pub(super) repo: Repo,
    pub(super) hierarchy: Hierarchy,
    pub(super) engine: Engine,
    pub(super) schemas: Arc<Schemas>,
    pub(super) contexts: Vec<LoadedContext>,
    /// The cache of answers that agents and contexts share.
    pub(super) memory: Arc<Memory>,
    /// The `leaves_out` entries seen in profiles so far.
    pub(super) declarations: Declarations,
    /// The concrete agents in the compiled layers, sorted by name, each with `true` if it can be
    /// compiled.
    pub(super) agents: Vec<(ProfileId, bool)>,
    pub(super) findings: Vec<Diagnostic>,
    /// The locations of the errors about members that cannot exist, by agent. They explain lost
    /// content.
    pub(super) impossible: HashMap<Arc<str>, Vec<Span>>,
    /// Findings about expressions in templates that always fail. They are reported unless a body
    /// has already failed at the same expression.
    pub(super) slips: Vec<Diagnostic>,
}

/// The stack size of worker threads: templates recurse deeply, within limits, and need more than
/// the usual 2 MiB.
pub(crate) const STACK_BYTES: usize = 16 * 1024 * 1024;

impl Compiler {
    /// Returns the findings from loading, in no particular order.
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

    /// Returns the context with this name.
    pub fn context(&self, name: &str) -> Option<&LoadedContext> {
        self.contexts
            .iter()
            .find(|loaded| &*loaded.context.name == name)
    }

    /// Returns the compiled agents, sorted by name, each with `true` if it can be compiled.
    pub fn agents(&self) -> &[(ProfileId, bool)] {
        &self.agents
    }

    /// Merges a profile over its ancestors; returns `None` if the chain is broken.
    pub fn resolve(&self, id: ProfileId) -> Option<ResolvedProfile<'_>> {
        // Loading has already reported the findings from merging.
        Some(resolve::resolve_again(self.hierarchy.chain(id)?))
    }

    /// Returns the plan of an agent; `None` if findings make it unusable.
    pub fn plan(&self, id: ProfileId) -> Option<Plan<'_>> {
        Plan::new(&self.repo, &self.engine, &self.memory, self.resolve(id)?)
    }

    /// Returns statistics about the work shared so far, and the cache's memory use.
    #[cfg(feature = "cli")]
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.memory.usage()
    }
}

/// Returns `true` if a profile's own file makes it an agent to compile.
pub(super) fn is_agent(repo: &Repo, hierarchy: &Hierarchy, id: ProfileId) -> bool {
    let profile = hierarchy.get(id);
    !profile.is_abstract() && repo.is_compiled(profile.layer) && !hierarchy.is_taken(id)
}
