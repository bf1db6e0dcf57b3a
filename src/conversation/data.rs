//! `ctx` as templates see it: the table “Template data” of the documentation, as plain data.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Block, Conversation, Document, Image, Message, Task, Tool};

/// The members of `ctx`.
pub(crate) const CTX_MEMBERS: &[&str] = &["history", "prefix", "suffix", "files_metadata", "tools", "system_prompt"];

/// What templates see of a conversation: the members of each kind of object. A test compares it with the data.
pub(crate) const TEMPLATE_DATA: [(&str, &[&str]); 5] = [
    ("ctx", CTX_MEMBERS),
    ("file", &["file_path", "content"]),
    ("tool", &["name", "description", "schema"]),
    ("message", &["role", "content", "content_blocks", "images"]),
    (
        "block",
        &[
            "type",
            "text",
            "thinking",
            "signature",
            "origin",
            "data",
            "id",
            "name",
            "input",
            "tool_use_id",
            "content",
            "is_error",
            "images",
            "media_type",
            "is_url",
            "source",
            "title",
        ],
    ),
];

impl Conversation {
    /// The members of `ctx`, without `system_prompt`, which also depends on the agent.
    pub fn template_data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        match &self.task {
            Task::Chat(history) => {
                data.insert("history".into(), history_data(history));
            }
            Task::Completion { prefix, suffix } => {
                data.insert("prefix".into(), prefix.as_str().into());
                data.insert("suffix".into(), suffix.as_str().into());
                data.insert("history".into(), Value::Array(Vec::new()));
            }
        }
        if !self.files.is_empty() {
            let files = self.files.iter().map(|file| json!({"file_path": &*file.file_path, "content": &*file.content}));
            data.insert("files_metadata".into(), files.collect());
        }
        if !self.tools.is_empty() {
            data.insert("tools".into(), self.tools.iter().map(tool_data).collect());
        }
        data
    }
}

fn tool_data(tool: &Tool) -> Value {
    json!({"name": &*tool.name, "description": &*tool.description, "schema": &tool.schema})
}

fn history_data(history: &[Message]) -> Value {
    let mut tool_names = HashMap::new();
    let mut messages = Vec::with_capacity(history.len());
    for message in history {
        for block in &message.blocks {
            if let Block::ToolUse { id, name, .. } = block {
                tool_names.insert(id.as_ref(), name.as_ref());
            }
        }
        messages.push(message_data(message, &tool_names));
    }
    Value::Array(messages)
}

fn message_data(message: &Message, tool_names: &HashMap<&str, &str>) -> Value {
    let text: String = message.blocks.iter().filter_map(Block::text).collect();
    let images: Vec<Value> = message.blocks.iter().filter_map(Block::image).map(image_data).collect();
    let blocks: Vec<Value> = message.blocks.iter().map(|block| block_data(block, tool_names)).collect();
    let mut data = Map::new();
    data.insert("role".into(), message.role.name().into());
    data.insert("content".into(), text.into());
    data.insert("content_blocks".into(), blocks.into());
    if !images.is_empty() {
        data.insert("images".into(), images.into());
    }
    Value::Object(data)
}

fn block_data(block: &Block, tool_names: &HashMap<&str, &str>) -> Value {
    let mut data = Map::new();
    let mut set = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
    match block {
        Block::Text(text) => {
            set("type", "text".into());
            set("text", text.as_ref().into());
        }
        Block::Thinking { text, signature, origin } => {
            set("type", "thinking".into());
            set("thinking", text.as_ref().into());
            set("signature", signature.as_ref().into());
            origin.iter().for_each(|origin| set("origin", origin.as_ref().into()));
        }
        Block::RedactedThinking { data: opaque, origin } => {
            set("type", "redacted_thinking".into());
            set("data", opaque.as_ref().into());
            origin.iter().for_each(|origin| set("origin", origin.as_ref().into()));
        }
        Block::ToolUse { id, name, input } => {
            set("type", "tool_use".into());
            set("id", id.as_ref().into());
            set("name", name.as_ref().into());
            set("input", input.clone());
        }
        Block::ToolResult { id, content, is_error, images } => {
            set("type", "tool_result".into());
            set("tool_use_id", id.as_ref().into());
            set("name", tool_names.get(id.as_ref()).copied().unwrap_or("").into());
            set("content", content.as_ref().into());
            set("is_error", (*is_error).into());
            if !images.is_empty() {
                set("images", images.iter().map(image_data).collect());
            }
        }
        Block::Image(image) => return image_data(image),
        Block::Document(document) => return document_data(document),
        Block::Audio(audio) => {
            set("type", "audio".into());
            set("data", audio.data.as_ref().into());
            set("media_type", audio.media_type.as_ref().into());
        }
        Block::Provider(own) => {
            set("type", "provider_block".into());
            set("origin", own.origin.as_ref().into());
            set("data", own.data.clone());
        }
    }
    Value::Object(data)
}

fn document_data(document: &Document) -> Value {
    let Document { source, data, media_type, title } = document;
    let mut value = json!({"type": "document", "source": source.name(), "data": &**data, "media_type": &**media_type});
    if let (Value::Object(members), Some(title)) = (&mut value, title) {
        members.insert("title".into(), (**title).into());
    }
    value
}

fn image_data(image: &Image) -> Value {
    json!({"type": "image", "data": &*image.data, "media_type": &*image.media_type, "is_url": image.is_url})
}

/// A text of a conversation, and where a value of the template data stands, seen from it.
pub(crate) struct Anchor<'c> {
    pub(crate) text: &'c str,
    pub(crate) relation: Relation,
}

/// Where a value stands, seen from a text.
pub(crate) enum Relation {
    /// It is the text.
    Itself,
    /// Below the object that holds the text.
    Beside(Vec<String>),
    /// A member of the message that holds the text.
    InMessage(&'static str),
    /// The message that holds the text.
    Message,
}

/// What a value of a message's template data is made of; `None` if it is not in the history.
pub(crate) fn anchor<'c>(history: &'c [Message], message: usize, path: &[&str]) -> Option<Anchor<'c>> {
    let message = history.get(message)?;
    if let ["content_blocks", index, "name"] = path
        && let Block::ToolResult { id, .. } = message.blocks.get(index.parse::<usize>().ok()?)?
    {
        return called_name(history, id).map(|text| Anchor { text, relation: Relation::Itself });
    }
    let first = message.blocks.first().map(Block::anchor_text)?;
    let blocks = |path: &[&str]| -> Option<Anchor<'c>> {
        let (index, rest) = path.split_first()?;
        Some(message.blocks.get(index.parse::<usize>().ok()?)?.anchor(rest))
    };
    match path {
        ["role"] => {
            let member = if message.item.is_some() { "kind" } else { "role" };
            Some(Anchor { text: first, relation: Relation::InMessage(member) })
        }
        ["content"] => match message.blocks.iter().find_map(Block::text) {
            Some(text) => Some(Anchor { text, relation: Relation::Itself }),
            None => Some(Anchor { text: first, relation: Relation::Message }),
        },
        ["content_blocks", rest @ ..] if !rest.is_empty() => blocks(rest),
        ["content_blocks"] => Some(Anchor { text: first, relation: Relation::InMessage("content") }),
        ["images", index, rest @ ..] => {
            let mut images = message.blocks.iter().filter(|block| block.image().is_some());
            Some(images.nth(index.parse::<usize>().ok()?)?.anchor(rest))
        }
        _ => Some(Anchor { text: first, relation: Relation::Message }),
    }
}

/// The name that the call with an id has.
fn called_name<'c>(history: &'c [Message], wanted: &str) -> Option<&'c str> {
    history.iter().flat_map(|message| &message.blocks).find_map(|block| match block {
        Block::ToolUse { id, name, .. } if **id == *wanted => Some(&**name),
        _ => None,
    })
}

fn image_anchor<'c>(image: &'c Image, path: &[&str]) -> Anchor<'c> {
    let relation = Relation::Beside(path.iter().map(|&token| token.to_owned()).collect());
    Anchor { text: &image.data, relation }
}

impl Block {
    /// A text that every block of its kind has.
    fn anchor_text(&self) -> &str {
        match self {
            Block::Text(text) | Block::Thinking { text, .. } => text,
            Block::RedactedThinking { data, .. } => data,
            Block::ToolUse { id, .. } | Block::ToolResult { id, .. } => id,
            Block::Image(image) => &image.data,
            Block::Document(document) => &document.data,
            Block::Audio(audio) => &audio.data,
            Block::Provider(own) => &own.origin,
        }
    }

    fn anchor(&self, path: &[&str]) -> Anchor<'_> {
        let itself = |text| Anchor { text, relation: Relation::Itself };
        match (self, path) {
            // A text may stand for its whole message.
            (Block::Text(text), ["text"]) => return itself(text),
            (Block::ToolResult { content, .. }, ["content"]) => return itself(content),
            (Block::ToolResult { images, .. }, ["images", index, rest @ ..]) => {
                if let Some(image) = index.parse().ok().and_then(|index: usize| images.get(index)) {
                    return image_anchor(image, rest);
                }
            }
            _ => {}
        }
        let relation = Relation::Beside(path.iter().map(|&token| token.to_owned()).collect());
        Anchor { text: self.anchor_text(), relation }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Block::Text(text) => Some(text),
            _ => None,
        }
    }

    fn image(&self) -> Option<&Image> {
        match self {
            Block::Image(image) => Some(image),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{AttachedFile, Audio, DocumentSource, ProviderBlock, Role};
    use std::collections::BTreeSet;

    #[test]
    fn results_get_their_tools_name_and_texts_are_joined() {
        let call = Block::ToolUse { id: "1".into(), name: "ls".into(), input: json!({}) };
        let result = Block::ToolResult { id: "1".into(), content: "ok".into(), is_error: false, images: vec![] };
        let history = vec![
            Message {
                role: Role::Assistant,
                blocks: vec![Block::Text("a".into()), call, Block::Text("b".into())],
                item: None,
            },
            Message { role: Role::User, blocks: vec![result], item: None },
        ];
        let data = history_data(&history);
        assert_eq!(data[0]["content"], "ab");
        assert_eq!(data[1]["content_blocks"][0]["name"], "ls");
        assert_eq!(data[1].get("images"), None);
    }

    /// One block of each kind, with everything that it may have.
    fn every_block() -> Vec<Block> {
        let image = || Image { data: "d".into(), media_type: "image/png".into(), is_url: false };
        let blocks = vec![
            Block::Text("t".into()),
            Block::Thinking { text: "t".into(), signature: "s".into(), origin: Some("o".into()) },
            Block::RedactedThinking { data: "d".into(), origin: Some("o".into()) },
            Block::ToolUse { id: "1".into(), name: "n".into(), input: json!({}) },
            Block::ToolResult { id: "1".into(), content: "c".into(), is_error: true, images: vec![image()] },
            Block::Image(image()),
            Block::Document(Document {
                source: DocumentSource::Text,
                data: "d".into(),
                media_type: "text/plain".into(),
                title: Some("t".into()),
            }),
            Block::Audio(Audio { data: "d".into(), media_type: "audio/wav".into() }),
            Block::Provider(ProviderBlock { origin: "o".into(), data: json!({}), text: None }),
        ];
        // A new kind belongs in the list above.
        blocks.iter().for_each(|block| match block {
            Block::Text(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Image(_)
            | Block::Document(_)
            | Block::Audio(_)
            | Block::Provider(_) => {}
        });
        blocks
    }

    #[test]
    fn the_table_of_members_is_what_templates_get() {
        let message = Message { role: Role::User, blocks: every_block(), item: None };
        let chat = Conversation {
            task: Task::Chat(vec![message]),
            files: vec![AttachedFile { file_path: "f".into(), content: "c".into() }],
            tools: vec![Tool { name: "n".into(), description: "d".into(), schema: Map::new() }],
            ..Conversation::default()
        };
        let completion = Conversation {
            task: Task::Completion { prefix: "p".into(), suffix: "s".into() },
            ..Conversation::default()
        };
        let (chat, completion) = (chat.template_data(), completion.template_data());
        let message = chat["history"][0].as_object().expect("an object");
        let blocks = message["content_blocks"].as_array().expect("a list").iter().filter_map(Value::as_object);
        let keys = |objects: Vec<&Map<String, Value>>| -> BTreeSet<String> {
            objects.into_iter().flat_map(Map::keys).cloned().collect()
        };
        let mut ctx = keys(vec![&chat, &completion]);
        // Beside the conversation it depends on the agent.
        ctx.insert("system_prompt".to_owned());
        let file = chat["files_metadata"][0].as_object().expect("an object");
        let tool = chat["tools"][0].as_object().expect("an object");
        let given = [ctx, keys(vec![file]), keys(vec![tool]), keys(vec![message]), keys(blocks.collect())];
        for ((what, members), given) in TEMPLATE_DATA.into_iter().zip(given) {
            let members: BTreeSet<String> = members.iter().map(|&member| member.to_owned()).collect();
            assert_eq!(members, given, "{what}");
        }
    }
}
