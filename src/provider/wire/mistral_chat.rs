//! Mistral chat completions.
//!
//! Provider-specific blocks: see `mistralai` 3.7, `assistantmessage.py`. IDs have exactly nine
//! letters and digits (mistral-common, `validator.py`).

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::ProviderBlockKind::Sent;
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::{Capability, Server};
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "mistral-chat",
    paths: &["/chat/completions"],
    only_at: Some(Server::Mistral),
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
    answer_form: &["/response_format"],
    longest_answer: &["max_tokens"],
    needs_limit: false,
    tools: ToolForm::Function,
    drops_keywords: false,
    has_arguments_as_text: true,
    ids: IdRule::Alphanumeric(9),
    has_ids: true,
    names: NameRule::Word(64),
    checks_reasoning: false,
    clouds: &[],
    binds_thinking: false,
    has_cache_breakpoints: false,
    own_blocks: ProviderBlockKinds {
        known: &[("reference", Sent), ("tool_reference", Sent)],
        keeps_unknown: true,
    },
    own_place: OwnPlace::PartsOfAssistant,
    batches: None,
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Chat,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &[],
};
