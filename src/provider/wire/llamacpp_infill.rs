//! llama.cpp `/infill`, which uses the loaded model.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{Facts, Gap, OwnPlace, ToolForm, TurnForm};
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "llamacpp-infill",
    paths: &["/infill"],
    only_at: None,
    begins_with: &["input_prefix", "input_suffix"],
    has_model_in_body: false,
    has_two_spellings: false,
    capabilities: &[],
    turns: TurnForm::None,
    history: None,
    continued_by: &[],
    system: &[],
    prompt: &["input_extra", "input_prefix", "prompt", "input_suffix"],
    gap: Some(Gap {
        before: "input_prefix",
        after: "input_suffix",
        needs_after: false,
    }),
    answer_form: &[],
    longest_answer: &[],
    needs_limit: false,
    tools: ToolForm::Function,
    drops_keywords: false,
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
    answers: AnswerForm::Infill,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &[],
};
