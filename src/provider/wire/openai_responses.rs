//! OpenAI Responses.
//!
//! Provider-specific blocks: see `openai` 3.54, `types/responses/response_input_item_param.py`, and
//! the error *No tool output found*. Without encrypted content, the server cannot find a reasoning
//! item that it has not stored. A turn that ends with reasoning is rejected (vercel/ai#7099). A
//! `call_id` has 1 to 64 characters. Tool names: see `FunctionToolCall` in OpenAI's specification.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{BatchService, Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::ProviderBlockKind::{Call, Kept, Result};
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::Capability;
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "openai-responses",
    paths: &["/responses"],
    only_at: None,
    begins_with: &["input", "previous_response_id", "conversation"],
    has_model_in_body: true,
    has_two_spellings: false,
    capabilities: &[Capability::Tools, Capability::Thinking],
    turns: TurnForm::Items,
    history: Some("input"),
    continued_by: &["previous_response_id", "conversation"],
    system: &["instructions"],
    prompt: &[],
    gap: None,
    answer_form: &["/text/format"],
    longest_answer: &["max_output_tokens"],
    needs_limit: false,
    tools: ToolForm::Typed,
    drops_keywords: false,
    has_arguments_as_text: true,
    ids: IdRule::AtMost(64),
    has_ids: true,
    names: NameRule::Word(128),
    checks_reasoning: true,
    clouds: &[],
    binds_thinking: false,
    has_cache_breakpoints: false,
    own_blocks: ProviderBlockKinds {
        known: &[
            ("custom_tool_call", Call("call_id")),
            ("custom_tool_call_output", Result("call_id")),
            ("computer_call", Call("call_id")),
            ("computer_call_output", Result("call_id")),
            ("shell_call", Call("call_id")),
            ("shell_call_output", Result("call_id")),
            ("apply_patch_call", Call("call_id")),
            ("apply_patch_call_output", Result("call_id")),
            ("local_shell_call", Call("call_id")),
            ("local_shell_call_output", Result("id")),
            ("mcp_approval_request", Call("id")),
            ("mcp_approval_response", Result("approval_request_id")),
            ("logprobs", Kept),
            ("moderation", Kept),
        ],
        keeps_unknown: false,
    },
    own_place: OwnPlace::Items,
    batches: Some(BatchService::OpenAi("/v1/responses")),
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Responses,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &["response."],
};
