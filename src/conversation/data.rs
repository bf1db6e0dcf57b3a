//! The template variable `ctx` as plain data. The documentation describes it in the table “Template
//! data”.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{AttachedFile, Block, Conversation, Document, Image, Message, Task, Tool};

/// The members of `ctx`.
pub(crate) const CTX_MEMBERS: &[&str] = &[
    "history",
    "prefix",
    "suffix",
    "files_metadata",
    "tools",
    "system_prompt",
];

/// The members of each kind of object in a conversation's template data. A test compares this table
/// with the data.
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

/// The types of blocks, in contexts and in templates.
pub(crate) const BLOCK_TYPES: [&str; 9] = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "image",
    "document",
    "audio",
    "provider_block",
];

/// The members of objects in [`TEMPLATE_DATA`] whose value is always one of these words.
const WORDS: [(&str, &str, &[&str]); 3] = [
    ("message", "role", &["user", "assistant", "system"]),
    ("block", "type", &BLOCK_TYPES),
    ("block", "source", &["base64", "url", "file", "text"]),
];

/// Returns the name and the possible words of an object's member; `None` if the member can have
/// other values.
pub(crate) fn words_of(
    object: &str,
    member: &str,
) -> Option<(&'static str, &'static [&'static str])> {
    WORDS
        .into_iter()
        .find(|(known, name, _)| *known == object && *name == member)
        .map(|(_, name, words)| (name, words))
}

/// The lists in [`TEMPLATE_DATA`] that are never empty, because the normal form drops messages
/// without content.
pub(crate) const NEVER_EMPTY: [&str; 1] = ["content_blocks"];

/// The lists in [`TEMPLATE_DATA`] that are omitted if they are empty.
pub(crate) const MISSING_IF_EMPTY: [&str; 3] = ["images", "files_metadata", "tools"];

/// Returns the members of the given kind of object in [`TEMPLATE_DATA`]; empty for an unknown kind.
pub(crate) fn members_of(object: &str) -> &'static [&'static str] {
    TEMPLATE_DATA
        .into_iter()
        .find(|(known, _)| *known == object)
        .map(|(_, members)| members)
        .unwrap_or_default()
}

/// The representation of template data: as JSON, or as values of a template engine.
pub(crate) trait DataValues {
    type Value;

    fn text(text: &str) -> Self::Value;
    fn flag(flag: bool) -> Self::Value;
    fn json(json: &Value) -> Self::Value;
    fn list(elements: Vec<Self::Value>) -> Self::Value;
    fn object(members: Vec<(&'static str, Self::Value)>) -> Self::Value;
}

/// Represents template data as JSON.
struct Json;

impl DataValues for Json {
    type Value = Value;

    fn text(text: &str) -> Value {
        text.into()
    }

    fn flag(flag: bool) -> Value {
        flag.into()
    }

    fn json(json: &Value) -> Value {
        json.clone()
    }

    fn list(elements: Vec<Value>) -> Value {
        Value::Array(elements)
    }

    fn object(members: Vec<(&'static str, Value)>) -> Value {
        Value::Object(
            members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    }
}

impl Conversation {
    /// Returns the members of `ctx`, except `system_prompt`, which also depends on the agent.
    pub fn template_data(&self) -> Map<String, Value> {
        let data = self.template_data_in::<Json>();
        data.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// Returns the data of [`Conversation::template_data`] in the representation `D`.
    pub(crate) fn template_data_in<D: DataValues>(&self) -> Vec<(&'static str, D::Value)> {
        let mut data = match &self.task {
            Task::Chat(history) => vec![("history", history_data::<D>(history))],
            Task::Completion { prefix, suffix } => {
                vec![
                    ("prefix", D::text(prefix)),
                    ("suffix", D::text(suffix)),
                    ("history", D::list(Vec::new())),
                ]
            }
        };
        if !self.files.is_empty() {
            data.push((
                "files_metadata",
                D::list(self.files.iter().map(file_data::<D>).collect()),
            ));
        }
        if !self.tools.is_empty() {
            data.push((
                "tools",
                D::list(self.tools.iter().map(tool_data::<D>).collect()),
            ));
        }
        data
    }
}

fn file_data<D: DataValues>(file: &AttachedFile) -> D::Value {
    D::object(vec![
        ("file_path", D::text(&file.file_path)),
        ("content", D::text(&file.content)),
    ])
}

fn tool_data<D: DataValues>(tool: &Tool) -> D::Value {
    D::object(vec![
        ("name", D::text(&tool.name)),
        ("description", D::text(&tool.description)),
        ("schema", D::json(&Value::Object(tool.schema.clone()))),
    ])
}

fn history_data<D: DataValues>(history: &[Message]) -> D::Value {
    let mut tool_names = HashMap::new();
    let mut messages = Vec::with_capacity(history.len());
    for message in history {
        for block in &message.blocks {
            if let Block::ToolUse { id, name, .. } = block {
                tool_names.insert(id.as_ref(), name.as_ref());
            }
        }
        messages.push(message_data::<D>(message, &tool_names));
    }
    D::list(messages)
}

fn message_data<D: DataValues>(message: &Message, tool_names: &HashMap<&str, &str>) -> D::Value {
    let text: String = message.blocks.iter().filter_map(Block::text).collect();
    let blocks = message
        .blocks
        .iter()
        .map(|block| block_data::<D>(block, tool_names))
        .collect();
    let mut data = vec![
        ("role", D::text(message.role.name())),
        ("content", D::text(&text)),
        ("content_blocks", D::list(blocks)),
    ];
    let images: Vec<D::Value> = message
        .blocks
        .iter()
        .filter_map(Block::image)
        .map(image_data::<D>)
        .collect();
    if !images.is_empty() {
        data.push(("images", D::list(images)));
    }
    D::object(data)
}

fn block_data<D: DataValues>(block: &Block, tool_names: &HashMap<&str, &str>) -> D::Value {
    let kind = |kind: &str| ("type", D::text(kind));
    let origin =
        |origin: &Option<Arc<str>>| origin.as_ref().map(|origin| ("origin", D::text(origin)));
    D::object(match block {
        Block::Text(text) => vec![kind("text"), ("text", D::text(text))],
        Block::Thinking {
            text,
            signature,
            origin: from,
        } => {
            let said = [
                kind("thinking"),
                ("thinking", D::text(text)),
                ("signature", D::text(signature)),
            ];
            said.into_iter().chain(origin(from)).collect()
        }
        Block::RedactedThinking { data, origin: from } => {
            [kind("redacted_thinking"), ("data", D::text(data))]
                .into_iter()
                .chain(origin(from))
                .collect()
        }
        Block::ToolUse { id, name, input } => {
            vec![
                kind("tool_use"),
                ("id", D::text(id)),
                ("name", D::text(name)),
                ("input", D::json(input)),
            ]
        }
        Block::ToolResult {
            id,
            content,
            is_error,
            images,
        } => {
            let mut data = vec![
                kind("tool_result"),
                ("tool_use_id", D::text(id)),
                (
                    "name",
                    D::text(tool_names.get(id.as_ref()).copied().unwrap_or("")),
                ),
                ("content", D::text(content)),
                ("is_error", D::flag(*is_error)),
            ];
            if !images.is_empty() {
                data.push((
                    "images",
                    D::list(images.iter().map(image_data::<D>).collect()),
                ));
            }
            data
        }
        Block::Image(image) => return image_data::<D>(image),
        Block::Document(document) => return document_data::<D>(document),
        Block::Audio(audio) => {
            vec![
                kind("audio"),
                ("data", D::text(&audio.data)),
                ("media_type", D::text(&audio.media_type)),
            ]
        }
        // Only a conversation whose content was never loaded contains a stored block, because the
        // runtime's requests contain the content itself.
        Block::Stored(it) => {
            vec![kind("text"), ("text", D::text(&it.reference))]
        }
        Block::Provider(own) => {
            vec![
                kind("provider_block"),
                ("origin", D::text(&own.origin)),
                ("data", D::json(&own.data)),
            ]
        }
    })
}

fn document_data<D: DataValues>(document: &Document) -> D::Value {
    let Document {
        source,
        data,
        media_type,
        title,
    } = document;
    let mut members = vec![
        ("type", D::text("document")),
        ("source", D::text(source.name())),
        ("data", D::text(data)),
        ("media_type", D::text(media_type)),
    ];
    members.extend(title.as_ref().map(|title| ("title", D::text(title))));
    D::object(members)
}

fn image_data<D: DataValues>(image: &Image) -> D::Value {
    D::object(vec![
        ("type", D::text("image")),
        ("data", D::text(&image.data)),
        ("media_type", D::text(&image.media_type)),
        ("is_url", D::flag(image.is_url)),
    ])
}

/// A string in a conversation, and the position, relative to it, of a value in the template data.
pub(crate) struct Anchor<'c> {
    pub(crate) text: &'c str,
    pub(crate) relation: Relation,
}

/// The position of a value relative to a string.
pub(crate) enum Relation {
    /// The value is the text.
    Itself,
    /// The value is at this path below the object that contains the text.
    Beside(Vec<String>),
    /// The value is this member of the message that contains the text.
    InMessage(&'static str),
    /// The value is the message that contains the text.
    Message,
}

/// Returns the message text that a value in the template data comes from, or else the text closest
/// to that value; `None` if the history has no such message.
pub(crate) fn anchor<'c>(
    history: &'c [Message],
    message: usize,
    path: &[&str],
) -> Option<Anchor<'c>> {
    let message = history.get(message)?;
    if let ["content_blocks", index, "name"] = path
        && let Block::ToolResult { id, .. } = message.blocks.get(index.parse::<usize>().ok()?)?
    {
        return called_name(history, id).map(|text| Anchor {
            text,
            relation: Relation::Itself,
        });
    }
    let first = message.blocks.first().map(Block::anchor_text)?;
    let blocks = |path: &[&str]| -> Option<Anchor<'c>> {
        let (index, rest) = path.split_first()?;
        Some(
            message
                .blocks
                .get(index.parse::<usize>().ok()?)?
                .anchor(rest),
        )
    };
    match path {
        ["role"] => {
            let member = if message.item.is_some() {
                "kind"
            } else {
                "role"
            };
            Some(Anchor {
                text: first,
                relation: Relation::InMessage(member),
            })
        }
        ["content"] => match message.blocks.iter().find_map(Block::text) {
            Some(text) => Some(Anchor {
                text,
                relation: Relation::Itself,
            }),
            None => Some(Anchor {
                text: first,
                relation: Relation::Message,
            }),
        },
        ["content_blocks", rest @ ..] if !rest.is_empty() => blocks(rest),
        ["content_blocks"] => Some(Anchor {
            text: first,
            relation: Relation::InMessage("content"),
        }),
        ["images", index, rest @ ..] => {
            let mut images = message
                .blocks
                .iter()
                .filter(|block| block.image().is_some());
            Some(images.nth(index.parse::<usize>().ok()?)?.anchor(rest))
        }
        _ => Some(Anchor {
            text: first,
            relation: Relation::Message,
        }),
    }
}

/// Returns the tool name in the call with this ID.
fn called_name<'c>(history: &'c [Message], wanted: &str) -> Option<&'c str> {
    history
        .iter()
        .flat_map(|message| &message.blocks)
        .find_map(|block| match block {
            Block::ToolUse { id, name, .. } if **id == *wanted => Some(&**name),
            _ => None,
        })
}

fn image_anchor<'c>(image: &'c Image, path: &[&str]) -> Anchor<'c> {
    let relation = Relation::Beside(path.iter().map(|&token| token.to_owned()).collect());
    Anchor {
        text: &image.data,
        relation,
    }
}

impl Block {
    /// Returns the text that identifies the block. Which text this is depends on the kind of block.
    fn anchor_text(&self) -> &str {
        match self {
            Block::Text(text) | Block::Thinking { text, .. } => text,
            Block::RedactedThinking { data, .. } => data,
            Block::ToolUse { id, .. } | Block::ToolResult { id, .. } => id,
            Block::Image(image) => &image.data,
            Block::Document(document) => &document.data,
            Block::Audio(audio) => &audio.data,
            Block::Stored(content) => &content.reference,
            Block::Provider(own) => &own.origin,
        }
    }

    fn anchor(&self, path: &[&str]) -> Anchor<'_> {
        match (self, path) {
            // A single string may be the whole content of the message.
            (Block::Text(text), ["text"]) => return itself(text),
            (Block::ToolResult { content, .. }, ["content"]) => return itself(content),
            (Block::ToolResult { images, .. }, ["images", index, rest @ ..]) => {
                if let Some(image) = index
                    .parse()
                    .ok()
                    .and_then(|index: usize| images.get(index))
                {
                    return image_anchor(image, rest);
                }
            }
            _ => {}
        }
        let relation = Relation::Beside(path.iter().map(|&token| token.to_owned()).collect());
        Anchor {
            text: self.anchor_text(),
            relation,
        }
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

fn itself(text: &str) -> Anchor<'_> {
    Anchor {
        text,
        relation: Relation::Itself,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Audio, DocumentSource, ProviderBlock, Role};
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn results_get_their_tools_name_and_texts_are_joined() {
        let call = Block::ToolUse {
            id: "1".into(),
            name: "ls".into(),
            input: json!({}),
        };
        let result = Block::ToolResult {
            id: "1".into(),
            content: "ok".into(),
            is_error: false,
            images: vec![],
        };
        let history = vec![
            Message {
                role: Role::Assistant,
                blocks: vec![Block::Text("a".into()), call, Block::Text("b".into())],
                item: None,
            },
            Message {
                role: Role::User,
                blocks: vec![result],
                item: None,
            },
        ];
        let data = history_data::<Json>(&history);
        assert_eq!(data[0]["content"], "ab");
        assert_eq!(data[1]["content_blocks"][0]["name"], "ls");
        assert_eq!(data[1].get("images"), None);
    }

    /// Returns one block of each kind, each with all optional parts.
    fn every_block() -> Vec<Block> {
        let image = || Image {
            data: "d".into(),
            media_type: "image/png".into(),
            is_url: false,
        };
        let blocks = vec![
            Block::Text("t".into()),
            Block::Thinking {
                text: "t".into(),
                signature: "s".into(),
                origin: Some("o".into()),
            },
            Block::RedactedThinking {
                data: "d".into(),
                origin: Some("o".into()),
            },
            Block::ToolUse {
                id: "1".into(),
                name: "n".into(),
                input: json!({}),
            },
            Block::ToolResult {
                id: "1".into(),
                content: "c".into(),
                is_error: true,
                images: vec![image()],
            },
            Block::Image(image()),
            Block::Document(Document {
                source: DocumentSource::Text,
                data: "d".into(),
                media_type: "text/plain".into(),
                title: Some("t".into()),
            }),
            Block::Audio(Audio {
                data: "d".into(),
                media_type: "audio/wav".into(),
            }),
            Block::Provider(ProviderBlock {
                origin: "o".into(),
                data: json!({}),
                text: None,
            }),
        ];
        // Add new kinds to the list above.
        blocks.iter().for_each(|block| match block {
            Block::Text(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Image(_)
            | Block::Document(_)
            | Block::Audio(_)
            | Block::Stored(_)
            | Block::Provider(_) => {}
        });
        blocks
    }

    #[test]
    fn the_table_of_members_is_what_templates_get() {
        let message = Message {
            role: Role::User,
            blocks: every_block(),
            item: None,
        };
        let chat = Conversation {
            task: Task::Chat(vec![message]),
            files: vec![AttachedFile {
                file_path: "f".into(),
                content: "c".into(),
            }],
            tools: vec![Tool {
                name: "n".into(),
                description: "d".into(),
                schema: Map::new(),
            }],
            ..Conversation::default()
        };
        let completion = Conversation {
            task: Task::Completion {
                prefix: "p".into(),
                suffix: "s".into(),
            },
            ..Conversation::default()
        };
        let (chat, completion) = (chat.template_data(), completion.template_data());
        let message = chat["history"][0].as_object().expect("an object");
        let blocks = message["content_blocks"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_object);
        let keys = |objects: Vec<&Map<String, Value>>| -> BTreeSet<String> {
            objects.into_iter().flat_map(Map::keys).cloned().collect()
        };
        let mut ctx = keys(vec![&chat, &completion]);
        // The system prompt also depends on the agent.
        ctx.insert("system_prompt".to_owned());
        let file = chat["files_metadata"][0].as_object().expect("an object");
        let tool = chat["tools"][0].as_object().expect("an object");
        let given = [
            ctx,
            keys(vec![file]),
            keys(vec![tool]),
            keys(vec![message]),
            keys(blocks.collect()),
        ];
        for ((what, members), given) in TEMPLATE_DATA.into_iter().zip(given) {
            let members: BTreeSet<String> =
                members.iter().map(|&member| member.to_owned()).collect();
            assert_eq!(members, given, "{what}");
        }
    }
}
