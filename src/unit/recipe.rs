//! What bodies are made from, beside a conversation: agents that make members from the same make the same members, so that what is
//! found out of those of one agent holds for the others.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;

use super::body::{Body, cost_of_holes};
use super::plan::{Part, Plan};
use super::prompt::SystemPrompt;
use crate::provider::{CachePlan, ClientApi, WireFormat};
use crate::render::{Renderer, Space, TemplateId};

/// What some members of bodies are made from, beside the conversation and the system prompt. Several agents may have an equal one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Recipe(Arc<Ingredients>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ingredients {
    api: ClientApi,
    wire: WireFormat,
    with_tools: bool,
    cache: Option<CachePlan>,
    /// Whether the agent has a system prompt for itself, which templates only write.
    has_own_prompt: bool,
    /// The members: JSON, with the numbers of templates.
    members: String,
}

/// Stands before the number of a template. In JSON it is always escaped.
const TEMPLATE: char = '\u{1}';

impl Plan<'_> {
    /// What some members are made from, by their names and whether they are constant; `None` if no other agent makes them from
    /// the same.
    pub(crate) fn recipe(&self, renderer: &Renderer<'_>, is_asked: impl Fn(&str, bool) -> bool) -> Option<Recipe> {
        let has_own_prompt = self.has_own_prompt(renderer);
        let is_shared = |template| {
            let is_written_around = !renderer.reads_prompt(template) || self.splices(renderer, template);
            renderer.is_shared(template) && (!has_own_prompt || is_written_around)
        };
        let mut members = String::new();
        for (name, part) in self.body.iter().filter(|(name, part)| is_asked(name, part.is_constant())) {
            part.write(name, &is_shared, &mut members)?;
        }
        let (with_tools, cache) = (self.with_tools, self.cache.clone());
        let ingredients = Ingredients { api: self.api, wire: self.wire, with_tools, cache, has_own_prompt, members };
        Some(Recipe(Arc::new(ingredients)))
    }
}

impl Part {
    /// Writes a part, and what it is called; `None` if a template is of this agent alone.
    fn write(&self, name: &str, is_shared: &impl Fn(TemplateId) -> bool, text: &mut String) -> Option<()> {
        let _ = write!(text, "{}:", serde_json::Value::from(name));
        match self {
            Part::Constant(value) => drop(write!(text, "{value}")),
            Part::Member(shared) => drop(write!(text, "{}", shared.value())),
            Part::Template(template, _) if is_shared(*template) => drop(write!(text, "{TEMPLATE}{template:?}")),
            Part::Template(..) => return None,
            Part::Array(parts) => {
                text.push('[');
                parts.iter().try_for_each(|part| part.write("", is_shared, text))?;
                text.push(']');
            }
            Part::Table(parts) => {
                text.push('{');
                parts.iter().try_for_each(|(name, part)| part.write(name, is_shared, text))?;
                text.push('}');
            }
        }
        text.push(',');
        Some(())
    }
}

/// What requests cost that were made and found to be good, for agents that would make the same again.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<HashMap<ProofKey, Taken>>);

/// What a proof depends on, beside the conversations.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProofKey {
    recipe: Recipe,
    /// The system prompts of the two requests; `None` if the proof holds for any prompt that both have.
    prompts: Option<[Option<SystemPrompt>; 2]>,
    /// The units of work of the prompt.
    cost: u64,
    /// Whether the model binds thinking to what stands before it.
    is_bound: bool,
}

/// What holds a proof, in bytes.
const PROOF: usize = 160;

/// What a request cost.
#[derive(Debug, Clone, Copy)]
struct Taken {
    cost: u64,
    /// How long its prompt is as JSON, and how often that is written.
    prompt_len: usize,
    holes: usize,
}

impl ProofKey {
    /// `None` if each of the two requests has a prompt of the agent's own, and not the same.
    pub(crate) fn new(
        recipe: &Recipe,
        [earlier, later]: [&Option<SystemPrompt>; 2],
        cost: u64,
        is_bound: bool,
    ) -> Option<ProofKey> {
        let prompts = match recipe.0.has_own_prompt && earlier.is_some() {
            true if earlier == later => None,
            true => return None,
            false => Some([earlier.clone(), later.clone()]),
        };
        Some(ProofKey { recipe: recipe.clone(), prompts, cost, is_bound })
    }

    /// Whether the proof has to hold whatever the prompt says.
    pub(crate) fn is_for_any_prompt(&self) -> bool {
        self.prompts.is_none()
    }
}

impl Proofs {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().expect("not poisoned").len()
    }

    /// The units of work of a request that needs no proof any more.
    pub(crate) fn cost(&self, key: &ProofKey, prompt: Option<&SystemPrompt>) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = known.get(key)?;
        // A longer prompt may be too much work.
        let less = taken.prompt_len.checked_sub(prompt_len(prompt))?;
        Some(taken.cost.saturating_sub(cost_of_holes(taken.holes, less)))
    }

    pub(super) fn note(&self, key: ProofKey, (body, cost): (&Body, u64), prompt: Option<&SystemPrompt>, space: &Space) {
        let taken = Taken { cost, prompt_len: prompt_len(prompt), holes: body.holes() };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(&key) {
            Some(known) if known.prompt_len < taken.prompt_len => *known = taken,
            None if space.take(PROOF) => drop(known.insert(key, taken)),
            _ => {}
        }
    }
}

fn prompt_len(prompt: Option<&SystemPrompt>) -> usize {
    prompt.map_or(0, |prompt| prompt.escaped().len())
}
