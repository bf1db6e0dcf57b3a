//! Error results for a provider's own kinds of calls that the host cannot answer.

use serde_json::json;

use super::WireFormat;
use crate::conversation::ProviderBlockKind::Call;
use crate::conversation::{Block, ProviderBlock};

impl WireFormat {
    /// Returns a result for one of the format's own calls, with the reason the call was not run.
    /// Returns `None` if the format has no such result: for example, the result of a computer call
    /// is always an image.
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
}
