//! Writes entries as lines.
//!
//! Blocks are written as in context files, so that a real conversation can be turned into a
//! context.

use serde_json::{Map, Value, json};

use super::{Entry, Header, Instructions, Sent, Summary, VERSION};
use crate::conversation::{
    Block, Document, Image, Item, Message, ProviderBlock, SystemLayer, Tool, Usage,
};

/// The nesting depth beyond which arguments are written as a JSON string. The line adds a few
/// levels, and must remain readable for a parser with a depth limit.
pub(crate) const MAX_INPUT_DEPTH: usize = 100;

pub(super) fn header(header: &Header) -> String {
    let mut line = object("session");
    line.insert("version".into(), VERSION.into());
    line.insert("agent".into(), (*header.agent).into());
    text(&mut line, "created", header.created.as_deref());
    finish(line)
}

/// Returns the text that every log begins with.
pub(super) fn header_begin() -> String {
    let mut line = object("session");
    line.insert("version".into(), VERSION.into());
    let whole = finish(line);
    whole.trim_end_matches(['}', '\n']).to_owned()
}

/// Returns the line for an entry, with this number.
pub(super) fn entry(entry: &Entry, number: usize) -> String {
    let mut line = members(entry);
    line.insert("line".into(), number.into());
    finish(line)
}

/// Returns the members of the line for an entry.
pub(in crate::conversation) fn members(entry: &Entry) -> Map<String, Value> {
    match entry {
        Entry::Message(it) => message(it),
        Entry::Partial {
            message: it,
            cut_off,
        } => {
            let mut line = message(it);
            line.insert("cut_off".into(), cut_off.name().into());
            line
        }
        Entry::ToolResult(it) => tool_result(it),
        Entry::Item(it) => item(it),
        Entry::Instructions(it) => instructions(it),
        Entry::Sent(it) => sent(it),
        Entry::Retract { messages } => {
            let mut line = object("retract");
            line.insert("messages".into(), (*messages).into());
            line
        }
        Entry::Summary(it) => summary(it),
        Entry::Usage(it) => {
            let mut line = object("usage");
            line.extend(usage(*it));
            line
        }
    }
}

/// Returns the complete line. JSON escapes every control character, so the only newline is at the
/// end.
fn finish(line: Map<String, Value>) -> String {
    let mut text = Value::Object(line).to_string();
    text.push('\n');
    text
}

fn object(kind: &str) -> Map<String, Value> {
    Map::from_iter([("kind".to_owned(), Value::from(kind))])
}

fn text(line: &mut Map<String, Value>, key: &str, value: Option<&str>) {
    value
        .into_iter()
        .for_each(|value| drop(line.insert(key.to_owned(), value.into())));
}

fn message(it: &Message) -> Map<String, Value> {
    let mut line = object("message");
    line.extend(message_members(it));
    line
}

/// Returns the members of a message, without the `kind` of its line.
pub(in crate::conversation) fn message_members(message: &Message) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("role".into(), message.role.name().into());
    text(
        &mut line,
        "item",
        message.item.map(crate::conversation::ItemKind::name),
    );
    line.insert("content".into(), message.blocks.iter().map(block).collect());
    line
}

/// Returns the members of a result. Except for the first key, they are the same as for a result in
/// a message.
fn tool_result(result: &Block) -> Map<String, Value> {
    let mut line = object("tool_result");
    if let Value::Object(members) = block(result) {
        line.extend(members.into_iter().filter(|(key, _)| key != "type"));
    }
    line
}

/// Returns the members of instructions. Tools and layers are written as in a context.
fn instructions(it: &Instructions) -> Map<String, Value> {
    let mut line = object("instructions");
    line.insert("agent".into(), (*it.agent).into());
    line.insert("prompt".into(), (*it.prompt).into());
    line.insert("tools".into(), it.tools.iter().map(tool).collect());
    line.insert(
        "system_layers".into(),
        it.layers.iter().map(layer).collect(),
    );
    if it.bound_from > 0 {
        line.insert("bound_from".into(), it.bound_from.into());
    }
    line
}

fn sent(it: &Sent) -> Map<String, Value> {
    let mut line = object("sent");
    line.insert("parts".into(), it.parts.into());
    line.insert("digest".into(), (*it.digest).into());
    line
}

fn summary(it: &Summary) -> Map<String, Value> {
    let mut line = object("summary");
    line.insert("messages".into(), it.messages.into());
    line.insert("text".into(), (*it.text).into());
    text(&mut line, "agent", it.agent.as_deref());
    line.insert("usage".into(), Value::Object(usage(it.usage)));
    line
}

pub(in crate::conversation) fn layer(it: &SystemLayer) -> Value {
    json!({"name": &*it.name, "priority": it.priority, "text": &*it.text})
}

pub(in crate::conversation) fn tool(tool: &Tool) -> Value {
    let schema = Value::Object(tool.schema.clone());
    let mut members = Map::new();
    text(&mut members, "name", Some(&tool.name));
    text(&mut members, "description", Some(&tool.description));
    match depth(&schema) > MAX_INPUT_DEPTH {
        true => text(&mut members, "schema_json", Some(&schema.to_string())),
        false => drop(members.insert("schema".to_owned(), schema)),
    }
    Value::Object(members)
}

/// Returns a block in the form that context files and logs use.
pub(crate) fn block(block: &Block) -> Value {
    let mut value = match block {
        Block::Text(text) => return json!({"type": "text", "text": &**text}),
        Block::Image(it) => return image(it),
        Block::Document(it) => return document(it),
        Block::Audio(it) => {
            return json!({"type": "audio", "data": &*it.data, "media_type": &*it.media_type});
        }
        Block::Stored(it) => {
            return json!({
                "type": "stored", "reference": &*it.reference, "media_type": &*it.media_type, "bytes": it.bytes,
                "sha256": &*it.sha256,
            });
        }
        Block::Provider(it) => return provider_block(it),
        Block::Thinking {
            text, signature, ..
        } => {
            json!({"type": "thinking", "thinking": &**text, "signature": &**signature})
        }
        Block::RedactedThinking { data, .. } => {
            json!({"type": "redacted_thinking", "data": &**data})
        }
        Block::ToolUse { id, name, input } if depth(input) > MAX_INPUT_DEPTH => {
            json!({"type": "tool_use", "id": &**id, "name": &**name, "input_json": input.to_string()})
        }
        Block::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": &**id, "name": &**name, "input": input})
        }
        Block::ToolResult {
            id,
            content,
            is_error,
            images,
        } => {
            json!({"type": "tool_result", "tool_use_id": &**id, "content": result(content, images), "is_error": is_error})
        }
    };
    if let (
        Value::Object(members),
        Block::Thinking { origin, .. } | Block::RedactedThinking { origin, .. },
    ) = (&mut value, block)
    {
        text(members, "origin", origin.as_deref());
    }
    value
}

/// Returns the content of a result: the text alone, or the text and the images.
fn result(content: &str, images: &[Image]) -> Value {
    match images {
        [] => content.into(),
        images => {
            let text = json!({"type": "text", "text": content});
            std::iter::once(text)
                .chain(images.iter().map(image))
                .collect()
        }
    }
}

fn document(document: &Document) -> Value {
    let mut members = Map::new();
    text(&mut members, "type", Some("document"));
    text(&mut members, "source", Some(document.source.name()));
    text(&mut members, "data", Some(&document.data));
    text(&mut members, "media_type", Some(&document.media_type));
    text(&mut members, "title", document.title.as_deref());
    Value::Object(members)
}

fn provider_block(own: &ProviderBlock) -> Value {
    let mut members = Map::new();
    text(&mut members, "type", Some("provider_block"));
    text(&mut members, "origin", Some(&own.origin));
    if depth(&own.data) > MAX_INPUT_DEPTH {
        text(&mut members, "data_json", Some(&own.data.to_string()));
    } else {
        members.insert("data".into(), own.data.clone());
    }
    text(&mut members, "text", own.text.as_deref());
    Value::Object(members)
}

fn image(image: &Image) -> Value {
    json!({"type": "image", "data": &*image.data, "media_type": &*image.media_type, "is_url": image.is_url})
}

/// Returns the nesting depth of arrays and objects in a value.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

pub(in crate::conversation) fn item(item: &Item) -> Map<String, Value> {
    let mut line = object(item.kind().name());
    line.insert("text".into(), (**item.text()).into());
    match item {
        Item::Notification { title, source, .. } => {
            text(&mut line, "title", title.as_deref());
            text(&mut line, "source", source.as_deref());
        }
        Item::PodEvent {
            agent,
            event,
            detail,
            ..
        } => {
            text(&mut line, "agent", Some(agent));
            text(&mut line, "event", Some(event.name()));
            text(&mut line, "detail", detail.as_deref());
        }
        Item::FileAttachment {
            file_path, bytes, ..
        } => {
            text(&mut line, "file_path", Some(file_path));
            bytes
                .iter()
                .for_each(|bytes| drop(line.insert("bytes".into(), (*bytes).into())));
        }
        Item::Knowledge { query, sources, .. } => {
            text(&mut line, "query", query.as_deref());
            line.insert(
                "sources".into(),
                sources
                    .iter()
                    .map(|source| Value::from(&**source))
                    .collect(),
            );
        }
        Item::Workflow {
            name, step, state, ..
        } => {
            for (key, value) in [("name", name), ("step", step), ("state", state)] {
                text(&mut line, key, Some(value));
            }
        }
        Item::Interrupt { reason, .. } => text(&mut line, "reason", reason.as_deref()),
    }
    line
}

pub(in crate::conversation) fn usage(usage: Usage) -> Map<String, Value> {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
        ("reasoning", usage.reasoning),
    ];
    counts
        .map(|(key, count)| (key.to_owned(), count.into()))
        .into_iter()
        .collect()
}
