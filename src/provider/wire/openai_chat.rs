//! OpenAI Chat Completions.
//!
//! Provider-specific blocks: `types/chat/chat_completion_assistant_message_param.py` of `openai`
//! 3.54 cannot express annotations; OpenRouter accepts `images` and `reasoning_details` (see
//! `ChatAssistantMessage` in its API document). IDs have at most 40 characters. Tool names: see
//! `FunctionObject` in OpenAI's specification.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{BatchService, Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::ProviderBlockKind::{Call, Sent};
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::Capability;
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "openai-chat",
    paths: &["/chat/completions"],
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
    answer_form: &["/response_format"],
    longest_answer: &["max_completion_tokens", "max_tokens"],
    needs_limit: false,
    tools: ToolForm::Function,
    drops_keywords: false,
    has_arguments_as_text: true,
    ids: IdRule::AtMost(40),
    has_ids: true,
    names: NameRule::Word(64),
    checks_reasoning: false,
    clouds: &[],
    binds_thinking: false,
    has_cache_breakpoints: false,
    own_blocks: ProviderBlockKinds {
        known: &[
            ("custom", Call("id")),
            ("audio", Sent),
            ("images", Sent),
            ("reasoning_details", Sent),
        ],
        keeps_unknown: true,
    },
    own_place: OwnPlace::Members,
    batches: Some(BatchService::OpenAi("/v1/chat/completions")),
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Chat,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &[],
};
