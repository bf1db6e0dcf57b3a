//! Reads the `messages` of Chat Completions, Mistral and Ollama, which have the same form: calls
//! are in a member next to the content, and each result is a separate message.

use serde_json::Value;

use super::{Call, Entry, Kind, Outcome, Part, Role, elements, is_blank, text_of};

pub(super) fn read(messages: Option<&Value>) -> Vec<Entry<'_>> {
    elements(messages).iter().map(message).collect()
}

fn message(value: &Value) -> Entry<'_> {
    let role = Role::named(text_of(value, "role"));
    let parts = match role {
        Role::Tool => vec![result(value)],
        _ => said(value),
    };
    Entry { role, value, parts }
}

fn result(value: &Value) -> Part<'_> {
    let outcome = Outcome {
        id: text_of(value, "tool_call_id"),
        id_key: "tool_call_id",
        identified: value,
        name: text_of(value, "tool_name").or_else(|| text_of(value, "name")),
        is_error: false,
        is_empty: is_blank(value.get("content")),
    };
    Part {
        kind: Kind::Result(outcome),
        value,
    }
}

/// Returns the content, thinking, images (for Ollama) and calls of a message.
fn said(message: &Value) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = match message.get("content") {
        Some(value @ Value::String(text)) => vec![Part {
            kind: Kind::Text(text),
            value,
        }],
        content => elements(content).iter().map(piece).collect(),
    };
    if let Some(value) = message.get("thinking").filter(|value| value.is_string()) {
        parts.push(Part {
            kind: Kind::Thinking,
            value,
        });
    }
    parts.extend(elements(message.get("images")).iter().map(|value| Part {
        kind: Kind::Media,
        value,
    }));
    parts.extend(elements(message.get("tool_calls")).iter().map(call));
    // The older form: a single call without an ID.
    parts.extend(
        message
            .get("function_call")
            .filter(|value| value.is_object())
            .map(call),
    );
    parts
}

fn piece(value: &Value) -> Part<'_> {
    let kind = match text_of(value, "type").unwrap_or_default() {
        "text" => Kind::Text(text_of(value, "text").unwrap_or_default()),
        "refusal" => Kind::Text(text_of(value, "refusal").unwrap_or_default()),
        "image_url" | "input_audio" | "audio_url" | "file" | "video_url" | "document_url" => {
            Kind::Media
        }
        "thinking" => Kind::Thinking,
        other => Kind::Other(other),
    };
    Part { kind, value }
}

/// Reads a call; a call to a free-text tool has `custom` instead of `function`.
fn call(value: &Value) -> Part<'_> {
    let (function, arguments) = match value.get("custom") {
        Some(custom) => (custom, None),
        None => {
            let function = value.get("function").unwrap_or(value);
            (function, function.get("arguments"))
        }
    };
    let call = Call {
        id: text_of(value, "id"),
        id_key: "id",
        identified: value,
        name: text_of(function, "name"),
        arguments,
    };
    Part {
        kind: Kind::Call(call),
        value,
    }
}
