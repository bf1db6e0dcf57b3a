//! Reports mistakes that would otherwise go unnoticed in a run.

use std::collections::BTreeSet;

use super::rules::NO_BODY;
use super::selection::Chosen;
use crate::diag::Diagnostic;
use crate::resolve::ProfileId;

impl Chosen<'_> {
    /// Returns findings about agents that no context fits, and about a run without bodies.
    pub(super) fn unmade(&self, bodies: usize) -> Vec<Diagnostic> {
        // A run that is limited to changed files or to one shard may be empty.
        if self.selection.may_be_empty() {
            return Vec::new();
        }
        let agents = self.usable();
        // Contexts that were selected explicitly may be for only some agents.
        if bodies > 0 && self.selection.contexts.is_some() {
            return Vec::new();
        }
        let kinds: BTreeSet<&str> = self
            .contexts()
            .map(|loaded| loaded.context.kind().name())
            .collect();
        // Merging is expensive; if there are contexts of both kinds, they fit every agent.
        let unmade: Vec<ProfileId> = agents
            .into_iter()
            .filter(|_| kinds.len() < 2)
            .filter(|id| {
                self.compiler
                    .plan(*id)
                    .is_some_and(|plan| !kinds.contains(plan.kind.name()))
            })
            .collect();
        let findings: Vec<Diagnostic> = unmade
            .into_iter()
            .map(|id| self.fits_no_context(id))
            .collect();
        match findings.is_empty() && bodies == 0 {
            true => self.nothing_to_make().into_iter().collect(),
            false => findings,
        }
    }

    fn fits_no_context(&self, id: ProfileId) -> Diagnostic {
        let name = &self.compiler.hierarchy.get(id).name;
        let message = format!(
            "`{}` has no body, because there is no context of its kind",
            name.value
        );
        let finding = Diagnostic::new(&NO_BODY, name.span, message).reaching(&name.value, None);
        finding
            .help("`reqc contexts` shows the kind of each context; select one of the right kind, or add one")
    }

    /// Returns a finding at the first profile of the repository; a repository without profiles
    /// already has a finding.
    fn nothing_to_make(&self) -> Option<Diagnostic> {
        let profiles = self
            .compiler
            .hierarchy
            .ids()
            .map(|id| self.compiler.hierarchy.get(id));
        let mut own: Vec<_> = profiles
            .filter(|profile| self.compiler.repo.is_compiled(profile.layer))
            .collect();
        own.sort_by_key(|profile| {
            (
                self.compiler.repo.sources.get(profile.file).path(),
                profile.name.span.start,
            )
        });
        let first = own.first()?;
        let message = match own.iter().all(|profile| profile.is_abstract()) {
            true => "the run compiles no body: every profile is abstract",
            false => "the run compiles no body",
        };
        let finding = Diagnostic::new(
            &NO_BODY,
            first.abstract_at.unwrap_or(first.name.span),
            message,
        );
        Some(
            finding
                .help("add an agent that extends it, or compile the bundled ones with `--bundled`"),
        )
    }
}
