//! Combines an agent and a context, and renders their request body.

use std::sync::Arc;

use super::compiler::Compiler;
use super::contexts::LoadedContext;
use super::surroundings;
use super::turns::Version;
use crate::check::Checks;
use crate::diag::Diagnostic;
use crate::render::Renderer;
use crate::resolve::ProfileId;
use crate::source::Sources;
use crate::unit::{Body, Plan, Record, Request, SystemPrompt};

/// An agent, and a context that fits it.
pub(super) struct Pairing<'c> {
    pub(super) plan: Plan<'c>,
    pub(super) loaded: &'c LoadedContext,
    renderer: Renderer<'c>,
    version: Arc<Version>,
    sources: &'c Sources,
}

impl<'c> Pairing<'c> {
    /// Pairs an agent and a context. Returns `None` if the agent is unusable or the context does
    /// not fit it, and `Err` if the agent's surroundings cannot be rendered.
    pub(super) fn of(
        compiler: &'c Compiler,
        id: ProfileId,
        context: &str,
    ) -> Option<Result<Pairing<'c>, Vec<Diagnostic>>> {
        let (plan, loaded) = (compiler.plan(id)?, compiler.context(context)?);
        if loaded.context.kind() != plan.kind {
            return None;
        }
        let renderer = loaded.renderer(&compiler.engine);
        let version = surroundings::version(compiler, &plan, loaded, &renderer).result;
        let sources = compiler.sources();
        Some(match version {
            Ok(version) => Ok(Pairing {
                plan,
                loaded,
                renderer,
                version,
                sources,
            }),
            Err(finding) => Err(vec![*finding]),
        })
    }

    /// Returns the request for a model. Without a model, the profile's own model is used.
    pub(super) fn request<'a>(&'a self, model: Option<&'a str>) -> Request<'a> {
        self.loaded.request(&self.plan, &self.version, model)
    }

    /// Compiles the body.
    pub(super) fn body(&self, request: &Request<'_>) -> Result<Body, Vec<Diagnostic>> {
        self.plan.body(self.sources, &self.renderer, request)
    }

    /// Returns the record of where the body's values come from.
    pub(super) fn record<'a>(&'a self, request: &'a Request<'a>, body: &'a Body) -> Record<'a> {
        Record::new(&self.plan, self.sources, &self.renderer, request, body)
    }
}

/// An agent's body in a context, and everything that it was compiled from.
pub(super) struct Compiled<'a> {
    pub(super) compiler: &'a Compiler,
    pub(super) plan: &'a Plan<'a>,
    pub(super) checks: &'a Checks,
    pub(super) loaded: &'a LoadedContext,
    pub(super) version: &'a Version,
    pub(super) renderer: &'a Renderer<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) body: &'a Body,
    pub(super) prompt: Option<&'a SystemPrompt>,
}
