//! The conversation that an agent receives from a context.
//!
//! Most agents receive it unchanged from the context file. An agent with `surroundings` gets their
//! text and attached files as additional messages in the turns in which they arrived.

use std::sync::{Arc, Weak};

use super::compiler::Compiler;
use super::contexts::LoadedContext;
use super::turns::Version;
use crate::conversation::TaskKind;
use crate::diag::Diagnostic;
use crate::memory::{Identity, Question};
use crate::render::coverage::Runs;
use crate::render::{PromptScope, Renderer, TemplateId};
use crate::repo::LayerKind;
use crate::unit::{Costed, Plan};

/// A [`Question`] about the text of surroundings in each turn of a context. The layer determines
/// the files that the surroundings can read.
#[derive(PartialEq, Eq, Hash)]
struct TextsOf(Identity, TemplateId, LayerKind);

impl Question for TextsOf {
    type Answer = Costed<Result<Texts, Box<Diagnostic>>>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        256 + answer.result.as_ref().map_or(0, bytes)
    }
}

/// A [`Question`] about the version of a context for agents whose surroundings have these contents.
#[derive(PartialEq, Eq, Hash, Clone)]
struct VersionOf(Identity, Texts);

impl Question for VersionOf {
    type Answer = Arc<Version>;

    fn weight(&self, version: &Arc<Version>) -> usize {
        version.weight() + bytes(&self.1)
    }
}

/// A [`Question`] about a version that is still in use. A version of a very long conversation is
/// too large for the cache, but it is needed to find each location in its bodies.
#[derive(PartialEq, Eq, Hash)]
struct VersionInUse(VersionOf);

impl Question for VersionInUse {
    type Answer = Weak<Version>;

    fn weight(&self, _: &Weak<Version>) -> usize {
        1024 + bytes(&self.0.1)
    }
}

/// The text of the surroundings, by turn.
type Texts = Vec<Arc<str>>;

fn bytes(texts: &Texts) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

/// A version, and the cost of its surroundings in units of work.
pub(super) type Sent = Costed<Result<Arc<Version>, Box<Diagnostic>>>;

/// Returns the conversation in a context as an agent receives it.
pub(super) fn version(
    compiler: &Compiler,
    plan: &Plan<'_>,
    loaded: &LoadedContext,
    renderer: &Renderer<'_>,
) -> Sent {
    let Some(template) = plan.surroundings.filter(|_| plan.kind == TaskKind::Chat) else {
        return Costed {
            result: Ok(Arc::clone(&loaded.plain)),
            cost: 0,
        };
    };
    let layer = plan.profile.profile.layer;
    let asked = TextsOf(loaded.id, template, layer);
    let Costed { result, cost } = compiler
        .memory
        .ask(asked, || texts(compiler, template, layer, loaded, renderer));
    Costed {
        result: result.map(|texts| version_with(compiler, texts, loaded)),
        cost,
    }
}

/// Returns the version of a context for surroundings with these contents.
fn version_with(compiler: &Compiler, texts: Texts, loaded: &LoadedContext) -> Arc<Version> {
    let (memory, asked) = (&compiler.memory, VersionOf(loaded.id, texts));
    let in_use = VersionInUse(asked.clone());
    if let Some(known) = memory
        .recall(&asked)
        .or_else(|| memory.recall(&in_use)?.upgrade())
    {
        return known;
    }
    let version = Arc::new(Version::told(&loaded.plain.states, &asked.1));
    memory.note(in_use, Arc::downgrade(&version));
    memory.note(asked, Arc::clone(&version));
    version
}

/// Returns the text of surroundings in each turn.
fn texts(
    compiler: &Compiler,
    template: TemplateId,
    layer: LayerKind,
    loaded: &LoadedContext,
    renderer: &Renderer<'_>,
) -> Costed<Result<Texts, Box<Diagnostic>>> {
    let scopes = scopes(loaded, layer);
    if loaded.context.conversation.omit_system_prompt {
        return Costed {
            result: Ok(scopes.map(|_| Arc::from("")).collect()),
            cost: 0,
        };
    }
    let mut cost = 0_u64;
    let texts = scopes.map(|scope: &Arc<PromptScope>| {
        let (prompt, _) = renderer.prompt(compiler.sources(), template, scope);
        cost = cost.saturating_add(prompt.cost);
        prompt.output.map(|text| Arc::from(text.text().trim()))
    });
    let result = texts.collect();
    Costed { result, cost }
}

/// Evaluates surroundings in each turn of a context, and counts the statements that run.
pub(super) fn count_runs(
    plan: &Plan<'_>,
    loaded: &LoadedContext,
    renderer: &Renderer<'_>,
    runs: &mut Runs,
) {
    let template = plan
        .surroundings
        .filter(|_| plan.kind == TaskKind::Chat)
        .filter(|_| !loaded.context.conversation.omit_system_prompt);
    let Some(template) = template else { return };
    for scope in scopes(loaded, plan.profile.profile.layer) {
        renderer.run_prompt(template, scope, runs);
    }
}

/// Returns the files that prompts see in each turn of a context, including the last.
fn scopes(loaded: &LoadedContext, layer: LayerKind) -> impl Iterator<Item = &Arc<PromptScope>> {
    loaded
        .turns
        .iter()
        .chain([&loaded.scopes])
        .map(move |scopes| &scopes[&layer])
}
