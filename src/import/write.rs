//! Writes the text of a context file.

use serde_json::{Map, Value, json};

use super::Request;
use crate::conversation::log::block_json;
use crate::conversation::{Block, Conversation, Message, Task};
use crate::text::Text;

/// Returns the text of the file. Invisible characters are written as escapes, keys are in the order
/// of `docs/contexts.md`, and each value is on its own line.
pub(super) fn context(request: &Request<'_>, conversation: &Conversation) -> String {
    let mut members = Map::new();
    let mut set = |key: &str, value: Value| drop(members.insert(key.to_owned(), value));
    let redacted = if request.redact { ", redacted" } else { "" };
    set("name", request.name.into());
    set(
        "why",
        format!(
            "Imported from a body of `{}`{redacted}.",
            request.wire.name()
        )
        .into(),
    );
    set("kind", conversation.kind().name().into());
    if !conversation.tools.is_empty() {
        let tools = conversation.tools.iter();
        set(
            "tools",
            tools.map(|it| json!({"name": *it.name, "description": *it.description, "schema": it.schema})).collect(),
        );
    }
    if !conversation.files.is_empty() {
        let files = conversation.files.iter();
        set(
            "files",
            files
                .map(|it| json!({"file_path": *it.file_path, "content": *it.content}))
                .collect(),
        );
    }
    if !conversation.system_layers.is_empty() {
        let layers = conversation.system_layers.iter();
        set(
            "system_layers",
            layers
                .map(|it| json!({"name": *it.name, "text": *it.text}))
                .collect(),
        );
    }
    set("system_prompt", "omit".into());
    match &conversation.task {
        Task::Chat(history) => set("history", history.iter().map(message).collect()),
        Task::Completion { prefix, suffix } => {
            set("prefix", prefix.as_str().into());
            set("suffix", suffix.as_str().into());
        }
    }
    // Reviewers must be able to see the whole content of the file.
    Text::json_data(&Value::Object(members)).as_str().to_owned()
}

fn message(message: &Message) -> Value {
    match (message.item, message.blocks.as_slice()) {
        (Some(item), [Block::Text(text)]) => json!({"kind": item.name(), "text": **text}),
        (_, [Block::Text(text)]) => json!({"role": message.role.name(), "content": **text}),
        (_, blocks) => {
            json!({"role": message.role.name(), "content": blocks.iter().map(block_json).collect::<Vec<_>>()})
        }
    }
}
