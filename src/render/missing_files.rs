//! Finds calls in system prompts that read nonexistent files of the layers, whether or not a
//! context reaches the calls.

use std::sync::Arc;

use super::analyse::{Analysis, FileRead};
use super::folders::Folders;
use super::prompt::PromptScope;
use super::refusal::Refusal;
use super::{Engine, rules};
use crate::diag::Diagnostic;
use crate::repo::{LayerKind, Repo};
use crate::source::Span;
use crate::world::{EntryKind, MemoryWorld};

impl Engine {
    /// Records calls that read a nonexistent file by a literal name. Paths that the template tests
    /// with `file_exists` are exempt. If the template computes a tested path or lists a folder, all
    /// paths are exempt.
    pub(super) fn note_missing_files(&mut self, repo: &Repo) {
        let scope = files_of_layers(repo);
        let prompts = self
            .analyses
            .iter()
            .filter(|(name, _)| self.prompts.contains(*name));
        let mut slips = Vec::new();
        for (name, analysis) in prompts {
            for read in unconditional(analysis) {
                if is_there(&scope, read) {
                    continue;
                }
                if let Some(refusal) = refusal(&scope, read) {
                    let span = self.span(&repo.sources, name, read.range.clone());
                    let slip = Diagnostic::new(refusal.rule, span, refusal.message);
                    slips.push(slip.maybe_help(refusal.help).caused_by(refusal.cause));
                }
            }
        }
        self.slips.extend(slips);
    }

    /// Returns the paths that a template in a profile reads by literal names, whether or not a
    /// context reaches the calls. `literal` is the location of the template's text.
    pub(crate) fn files_named_in(&self, literal: Span) -> impl Iterator<Item = &str> {
        let id = self.by_span.get(&literal);
        let analysis = id.and_then(|id| self.analyses.get(&self.templates[id.0 as usize].name));
        analysis
            .into_iter()
            .flat_map(|analysis| &analysis.file_reads)
            .map(|read| &*read.within)
    }
}

/// Returns the reads of files whose existence the template does not test.
fn unconditional(analysis: &Analysis) -> impl Iterator<Item = &FileRead> {
    let tested = &analysis.tested_files;
    analysis
        .file_reads
        .iter()
        .filter(|read| !analysis.tests_any_file && !tested.contains(&read.path))
}

fn is_there(scope: &PromptScope, read: &FileRead) -> bool {
    scope
        .layers
        .iter()
        .any(|world| world.kind(&read.within) == Ok(EntryKind::File))
}

/// Returns the refusal of a call, if the file is missing.
fn refusal(scope: &PromptScope, read: &FileRead) -> Option<Refusal> {
    let refusal = scope.read_file(&read.path).err()?;
    let refusal = match &read.role {
        Some(id) => scope.about_role(id, refusal),
        None => refusal,
    };
    (refusal.rule == &rules::PROMPT_MISSING).then_some(refusal)
}

/// Returns a scope with the files that the repository's prompts may read, and an empty project.
fn files_of_layers(repo: &Repo) -> PromptScope {
    let layers = || repo.readable_layers(LayerKind::Own);
    PromptScope {
        project: Arc::new(MemoryWorld::default()),
        project_name: Arc::default(),
        language: Arc::default(),
        layers: layers().map(|layer| Arc::clone(&layer.world)).collect(),
        shown_below: layers().map(|layer| repo.shown_below(layer.kind)).collect(),
        folders: Folders::placeholders(),
    }
}
