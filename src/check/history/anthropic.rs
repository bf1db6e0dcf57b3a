//! Reads Anthropic's `messages`, whose content is text or a list of blocks.

use serde_json::Value;

use super::{Call, Entry, Kind, Outcome, Part, Role, elements, is_blank, text_of};

pub(super) fn read(messages: Option<&Value>) -> Vec<Entry<'_>> {
    elements(messages).iter().map(message).collect()
}

fn message(value: &Value) -> Entry<'_> {
    let parts = match value.get("content") {
        Some(value @ Value::String(text)) => vec![Part {
            kind: Kind::Text(text),
            value,
        }],
        blocks => elements(blocks).iter().map(block).collect(),
    };
    Entry {
        role: Role::named(text_of(value, "role")),
        value,
        parts,
    }
}

fn block(value: &Value) -> Part<'_> {
    let kind = match text_of(value, "type").unwrap_or_default() {
        "text" => Kind::Text(text_of(value, "text").unwrap_or_default()),
        "tool_use" => Kind::Call(Call {
            id: text_of(value, "id"),
            id_key: "id",
            identified: value,
            name: text_of(value, "name"),
            arguments: value.get("input"),
        }),
        "tool_result" => Kind::Result(Outcome {
            id: text_of(value, "tool_use_id"),
            id_key: "tool_use_id",
            identified: value,
            name: None,
            is_error: value.get("is_error") == Some(&Value::Bool(true)),
            is_empty: is_blank(value.get("content")),
        }),
        "thinking" | "redacted_thinking" => Kind::Thinking,
        "image" | "document" => Kind::Media,
        other => Kind::Other(other),
    };
    Part { kind, value }
}
