//! What each wire format says of its own blocks: which go back in the next request, and which only in pairs.
//!
//! Anthropic: `anthropic` 2.12, `types/content_block_param.py`; a server's call without its result is refused, unless the
//! turn was paused. Responses: `openai` 3.54, `types/responses/response_input_item_param.py`; *No tool output found*. Chat
//! Completions: `types/chat/chat_completion_assistant_message_param.py`, which has no place for annotations; OpenRouter takes
//! `images` and `reasoning_details` back (its API document, `ChatAssistantMessage`). Gemini: `google-genai` 3.4, `types.py`, `Part` and `Candidate`.
//! Mistral: `mistralai` 3.7, `assistantmessage.py`.

use super::WireFormat;
use crate::conversation::ProviderBlockKind::{Call, Kept, Result, Sent};
use crate::conversation::{ProviderBlockKind, ProviderBlockKinds};

type Kinds = &'static [(&'static str, ProviderBlockKind)];

const ANTHROPIC: Kinds = &[
    ("server_tool_use", Call("id")),
    ("mcp_tool_use", Call("id")),
    ("web_search_tool_result", Result("tool_use_id")),
    ("web_fetch_tool_result", Result("tool_use_id")),
    ("code_execution_tool_result", Result("tool_use_id")),
    ("bash_code_execution_tool_result", Result("tool_use_id")),
    ("text_editor_code_execution_tool_result", Result("tool_use_id")),
    ("tool_search_tool_result", Result("tool_use_id")),
    ("advisor_tool_result", Result("tool_use_id")),
    ("mcp_tool_result", Result("tool_use_id")),
];

const RESPONSES: Kinds = &[
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
];

const CHAT: Kinds = &[("custom", Call("id")), ("audio", Sent), ("images", Sent), ("reasoning_details", Sent)];

const GEMINI: Kinds =
    &[("groundingMetadata", Kept), ("citationMetadata", Kept), ("urlContextMetadata", Kept), ("safetyRatings", Kept)];

const MISTRAL: Kinds = &[("reference", Sent), ("tool_reference", Sent)];

impl WireFormat {
    /// What goes back of the format's own blocks.
    pub(crate) fn own_blocks(self) -> ProviderBlockKinds {
        let (known, keeps_unknown) = match self {
            WireFormat::AnthropicMessages => (ANTHROPIC, false),
            WireFormat::OpenAiResponses => (RESPONSES, false),
            WireFormat::GoogleGenerateContent => (GEMINI, false),
            WireFormat::OpenAiChat => (CHAT, true),
            WireFormat::MistralChat => (MISTRAL, true),
            WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => (&[][..], true),
        };
        ProviderBlockKinds { known, keeps_unknown }
    }
}
