//! Anthropic Messages.
//!
//! Provider-specific blocks: see `anthropic` 2.12, `types/content_block_param.py`. A server-side
//! call without its result is rejected, unless the turn was paused. Unsigned thinking and turns
//! that end with thinking (tailcallhq/forgecode#2107) are rejected. Newer models reject thinking
//! after a change in the messages before it. IDs match `^[a-zA-Z0-9_-]+$`, tool names
//! `^[a-zA-Z0-9_-]{1,128}$`.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{BatchService, Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::ProviderBlockKind::{Call, Kept, Result};
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::{Capability, Server};
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "anthropic-messages",
    paths: &["/messages"],
    only_at: None,
    begins_with: &["messages"],
    has_model_in_body: true,
    has_two_spellings: false,
    capabilities: &[Capability::Tools, Capability::Thinking],
    turns: TurnForm::Blocks,
    history: Some("messages"),
    continued_by: &[],
    system: &["system"],
    prompt: &[],
    gap: None,
    answer_form: &["/output_config/format", "/output_format"],
    longest_answer: &["max_tokens"],
    needs_limit: true,
    tools: ToolForm::Plain,
    drops_keywords: false,
    has_arguments_as_text: false,
    ids: IdRule::Word,
    has_ids: true,
    names: NameRule::Word(128),
    checks_reasoning: true,
    clouds: &[Server::Vertex, Server::Bedrock],
    binds_thinking: true,
    has_cache_breakpoints: true,
    own_blocks: ProviderBlockKinds {
        known: &[
            ("server_tool_use", Call("id")),
            ("mcp_tool_use", Call("id")),
            ("web_search_tool_result", Result("tool_use_id")),
            ("web_fetch_tool_result", Result("tool_use_id")),
            ("code_execution_tool_result", Result("tool_use_id")),
            ("bash_code_execution_tool_result", Result("tool_use_id")),
            (
                "text_editor_code_execution_tool_result",
                Result("tool_use_id"),
            ),
            ("tool_search_tool_result", Result("tool_use_id")),
            ("advisor_tool_result", Result("tool_use_id")),
            ("mcp_tool_result", Result("tool_use_id")),
            ("container", Kept),
            ("context_management", Kept),
        ],
        keeps_unknown: false,
    },
    own_place: OwnPlace::Parts,
    batches: Some(BatchService::Anthropic),
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Claude,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &["message_", "content_block_"],
};
