//! The facts of each wire format about its own blocks: which go back in the next request, and which
//! only in pairs.
//!
//! Anthropic: `anthropic` 2.12, `types/content_block_param.py`; a server's call without its result
//! is refused, unless the turn was paused. Responses: `openai` 3.54,
//! `types/responses/response_input_item_param.py`; *No tool output found*. Chat Completions:
//! `types/chat/chat_completion_assistant_message_param.py`, which has no place for annotations;
//! OpenRouter takes `images` and `reasoning_details` back (its API document,
//! `ChatAssistantMessage`). Gemini: `google-genai` 3.4, `types.py`, `Part` and `Candidate`.
//! Mistral: `mistralai` 3.7, `assistantmessage.py`.

use super::WireFormat;
use crate::conversation::ProviderBlockKind::{Call, Kept, Result, Sent};
#[cfg(feature = "runtime")]
use crate::conversation::{Block, ProviderBlock};
use crate::conversation::{ProviderBlockKind, ProviderBlockKinds};
#[cfg(feature = "runtime")]
use serde_json::json;

type Kinds = &'static [(&'static str, ProviderBlockKind)];

const ANTHROPIC: Kinds = &[
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
    ("logprobs", Kept),
    ("moderation", Kept),
];

const CHAT: Kinds = &[
    ("custom", Call("id")),
    ("audio", Sent),
    ("images", Sent),
    ("reasoning_details", Sent),
];

const GEMINI: Kinds = &[
    ("groundingMetadata", Kept),
    ("citationMetadata", Kept),
    ("urlContextMetadata", Kept),
    ("safetyRatings", Kept),
    ("logprobsResult", Kept),
    ("avgLogprobs", Kept),
    ("groundingAttributions", Kept),
];

const MISTRAL: Kinds = &[("reference", Sent), ("tool_reference", Sent)];

impl WireFormat {
    /// The result of one of the format's own calls that says why there is none; `None` if the
    /// format has no such result: a computer's is always a picture.
    #[cfg(feature = "runtime")]
    pub(crate) fn own_error(self, call: &ProviderBlock, why: &str) -> Option<Block> {
        let Call(name) = self.own_blocks().of(&call.data) else {
            return None;
        };
        let id = call.data.get(name)?.as_str()?;
        let data = match call.data.get("type")?.as_str()? {
            "custom" => {
                let (id, content) = (id.into(), why.into());
                return Some(Block::ToolResult {
                    id,
                    content,
                    is_error: true,
                    images: Vec::new(),
                });
            }
            "custom_tool_call" => {
                json!({"type": "custom_tool_call_output", "call_id": id, "output": why})
            }
            "apply_patch_call" => {
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": why})
            }
            "shell_call" => {
                let output = json!([{"stdout": "", "stderr": why, "outcome": {"type": "exit", "exit_code": 1}}]);
                json!({"type": "shell_call_output", "call_id": id, "output": output})
            }
            "local_shell_call" => {
                json!({"type": "local_shell_call_output", "id": id, "output": why})
            }
            "mcp_approval_request" => {
                json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": false, "reason": why})
            }
            _ => return None,
        };
        Some(Block::Provider(ProviderBlock {
            origin: call.origin.clone(),
            data,
            text: None,
        }))
    }

    /// Returns what goes back of the format's own blocks.
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
        ProviderBlockKinds {
            known,
            keeps_unknown,
        }
    }
}
