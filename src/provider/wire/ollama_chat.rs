//! Ollama `/api/chat`. Tools may have any name.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::Capability;
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "ollama-chat",
    paths: &["/api/chat"],
    only_at: None,
    begins_with: &["messages"],
    has_model_in_body: true,
    has_two_spellings: false,
    capabilities: &[Capability::Tools, Capability::Thinking],
    turns: TurnForm::Messages,
    history: Some("messages"),
    continued_by: &[],
    system: &[],
    prompt: &[],
    gap: None,
    answer_form: &["/format"],
    longest_answer: &[],
    needs_limit: false,
    tools: ToolForm::Function,
    drops_keywords: true,
    has_arguments_as_text: false,
    ids: IdRule::Any,
    has_ids: false,
    names: NameRule::Any,
    checks_reasoning: false,
    clouds: &[],
    binds_thinking: false,
    has_cache_breakpoints: false,
    own_blocks: ProviderBlockKinds {
        known: &[],
        keeps_unknown: true,
    },
    own_place: OwnPlace::Nowhere,
    batches: None,
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Ollama,
    #[cfg(feature = "runtime")]
    streams_lines: true,
    #[cfg(feature = "runtime")]
    events: &[],
};
