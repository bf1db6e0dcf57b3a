//! Reads the `input` of the Responses API: text, or a list of items, including messages.

use serde_json::Value;

use super::{Call, Entry, Kind, Outcome, Part, Role, elements, is_blank, text_of};

pub(super) fn read(input: Option<&Value>) -> Vec<Entry<'_>> {
    match input {
        Some(value @ Value::String(text)) => {
            vec![Entry {
                role: Role::User,
                value,
                parts: vec![Part {
                    kind: Kind::Text(text),
                    value,
                }],
            }]
        }
        items => elements(items).iter().map(item).collect(),
    }
}

fn item(value: &Value) -> Entry<'_> {
    let one = |role, kind| Entry {
        role,
        value,
        parts: vec![Part { kind, value }],
    };
    match text_of(value, "type") {
        None | Some("message") => message(value),
        Some("function_call") => one(
            Role::Assistant,
            Kind::Call(call(value, value.get("arguments"))),
        ),
        // Computer calls, shell calls and patches have neither a name nor arguments.
        Some("custom_tool_call" | "computer_call" | "apply_patch_call" | "shell_call") => {
            one(Role::Assistant, Kind::Call(call(value, None)))
        }
        Some(
            "function_call_output"
            | "custom_tool_call_output"
            | "computer_call_output"
            | "apply_patch_call_output"
            | "shell_call_output",
        ) => one(Role::Tool, Kind::Result(outcome(value))),
        Some("reasoning") => one(Role::Assistant, Kind::Thinking),
        Some(other) => one(Role::Other, Kind::Other(other)),
    }
}

fn message(value: &Value) -> Entry<'_> {
    let parts = match value.get("content") {
        Some(value @ Value::String(text)) => vec![Part {
            kind: Kind::Text(text),
            value,
        }],
        pieces => elements(pieces).iter().map(piece).collect(),
    };
    Entry {
        role: Role::named(text_of(value, "role")),
        value,
        parts,
    }
}

fn call<'b>(value: &'b Value, arguments: Option<&'b Value>) -> Call<'b> {
    Call {
        id: text_of(value, "call_id"),
        id_key: "call_id",
        identified: value,
        name: text_of(value, "name"),
        arguments,
    }
}

fn outcome(value: &Value) -> Outcome<'_> {
    Outcome {
        id: text_of(value, "call_id"),
        id_key: "call_id",
        identified: value,
        name: None,
        is_error: false,
        is_empty: is_blank(value.get("output")),
    }
}

fn piece(value: &Value) -> Part<'_> {
    let kind = match text_of(value, "type").unwrap_or_default() {
        "input_text" | "output_text" => Kind::Text(text_of(value, "text").unwrap_or_default()),
        "refusal" => Kind::Text(text_of(value, "refusal").unwrap_or_default()),
        "input_image" | "input_file" | "input_audio" => Kind::Media,
        other => Kind::Other(other),
    };
    Part { kind, value }
}
