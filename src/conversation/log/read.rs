//! Parses lines as entries. Unknown keys are ignored, but kept as part of the line.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{CutOff, Entry, Header, Instructions, Sent, Summary, VERSION};
use crate::conversation::{
    Audio, Block, DEFAULT_PRIORITY, Document, DocumentSource, Image, Item, ItemKind, Message,
    PodEvent, ProviderBlock, Role, StoredContent, SystemLayer, Tool, Usage,
};
use crate::json::parse;

/// The result of reading a line, or a part of one.
pub(in crate::conversation) type Read<T> = Result<T, LineError>;

/// The reason why a line cannot be read, as one lower-case phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::conversation) struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LineError {}

impl From<String> for LineError {
    fn from(phrase: String) -> LineError {
        LineError(phrase)
    }
}

impl From<&str> for LineError {
    fn from(phrase: &str) -> LineError {
        LineError(phrase.to_owned())
    }
}

/// Parses the first line. A byte-order mark is kept as part of the line.
pub(super) fn header(raw: &[u8]) -> Read<(Header, String)> {
    let (line, raw) = object(raw, "\u{feff}")?;
    if line.text("kind")? != "session".into() {
        return Err("a log must begin with a line of kind `session`".into());
    }
    match line.count("version")? {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => {
            return Err(format!(
                "the log has version {newer}, but this reqc knows versions up to {VERSION}: upgrade reqc"
            )
            .into());
        }
        Some(other) => return Err(format!("unknown log format version {other}").into()),
        None => return Err("`version` is missing".into()),
    }
    Ok((
        Header {
            agent: line.text("agent")?,
            created: line.optional("created")?,
        },
        raw,
    ))
}

/// Parses a line after the first. Returns its entry, its number, which older programs omitted, and
/// its text.
pub(super) fn entry(raw: &[u8]) -> Read<(Entry, Option<u64>, String)> {
    let (line, raw) = object(raw, "")?;
    let number = line.0.get("line").and_then(Value::as_u64);
    Ok((entry_of(&line)?, number, raw))
}

/// Returns the entry of a parsed line.
pub(in crate::conversation) fn entry_of(line: &Object) -> Read<Entry> {
    let kind = line.text("kind")?;
    Ok(match &*kind {
        "message" => match line.optional("cut_off")? {
            None => Entry::Message(message(line)?),
            Some(reason) => Entry::Partial {
                message: message(line)?,
                cut_off: cut_off(&reason)?,
            },
        },
        "tool_result" => Entry::ToolResult(tool_result(line)?),
        "retract" => Entry::Retract {
            messages: line.size("messages")?.ok_or("`messages` is missing")?,
        },
        "instructions" => Entry::Instructions(instructions(line)?),
        "sent" => Entry::Sent(sent(line)?),
        "usage" => Entry::Usage(usage(line)?),
        "summary" => Entry::Summary(summary(line)?),
        "session" => return Err("the session begins a second time".into()),
        kind => match ItemKind::from_name(kind) {
            Some(kind) => Entry::Item(item(kind, line)?),
            None => return Err(format!("`{}` is not a kind of line", excerpt(kind)).into()),
        },
    })
}

/// A JSON object in a line.
pub(in crate::conversation) struct Object(Map<String, Value>);

/// Parses a line, which may begin with `mark`.
fn object(raw: &[u8], mark: &str) -> Read<(Object, String)> {
    let written = std::str::from_utf8(raw)
        .map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))?;
    let text = written.strip_prefix(mark).unwrap_or(written);
    if text.trim().is_empty() {
        return Err("the line is blank: every line of a log must be an object".into());
    }
    let value = parse(text).map_err(|error| {
        let column = text[..error.range.start].chars().count() + 1;
        format!(
            "not JSON at column {column}: {}",
            error.problem.message_without_text()
        )
    })?;
    Ok((Object::of(value, "the line")?, written.to_owned()))
}

impl Object {
    pub(in crate::conversation) fn of(value: Value, what: &str) -> Read<Object> {
        match value {
            Value::Object(members) => Ok(Object(members)),
            _ => Err(format!("{what} is not an object").into()),
        }
    }

    /// Removes and returns a member.
    pub(in crate::conversation) fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    pub(in crate::conversation) fn optional(&self, key: &str) -> Read<Option<Arc<str>>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().into())),
            Some(_) => Err(format!("`{key}` is not a string").into()),
        }
    }

    pub(in crate::conversation) fn text(&self, key: &str) -> Read<Arc<str>> {
        self.optional(key)?
            .ok_or_else(|| format!("`{key}` is missing").into())
    }

    fn flag(&self, key: &str) -> Read<bool> {
        match self.0.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("`{key}` is neither true nor false").into()),
        }
    }

    fn count(&self, key: &str) -> Read<Option<u64>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| format!("`{key}` is not a count").into()),
        }
    }

    /// Returns a member that is a non-negative integer; `None` if it is missing.
    fn size(&self, key: &str) -> Read<Option<usize>> {
        let size = self.count(key)?.map(usize::try_from).transpose();
        size.map_err(|_| format!("`{key}` is too large").into())
    }

    fn list<T>(&self, key: &str, read: impl Fn(&Value) -> Read<T>) -> Read<Vec<T>> {
        match self.0.get(key) {
            Some(Value::Array(elements)) => elements.iter().map(read).collect(),
            Some(_) => Err(format!("`{key}` is not an array").into()),
            None => Err(format!("`{key}` is missing").into()),
        }
    }
}

fn message(line: &Object) -> Read<Message> {
    let role = line.text("role")?;
    let role =
        Role::from_name(&role).ok_or_else(|| format!("`{}` is not a role", excerpt(&role)))?;
    let item = match line.optional("item")? {
        Some(kind) => Some(
            ItemKind::from_name(&kind)
                .ok_or_else(|| format!("`{}` is not an item", excerpt(&kind)))?,
        ),
        None => None,
    };
    Ok(Message {
        role,
        blocks: line.list("content", block)?,
        item,
    })
}

/// Reads a message or typed item in a log's form, or in a context's form, in which a string may
/// replace the blocks.
pub(in crate::conversation) fn message_of(line: &Object) -> Read<Message> {
    match (
        line.optional("kind")?
            .as_deref()
            .and_then(ItemKind::from_name),
        line.0.get("content"),
    ) {
        (Some(kind), _) => Ok(Message {
            item: Some(kind),
            role: Role::System,
            blocks: vec![Block::Text(line.text("text")?)],
        }),
        (None, Some(Value::String(text))) => {
            let mut line = line.0.clone();
            line.insert(
                "content".to_owned(),
                Value::Array(vec![json!({"type": "text", "text": text})]),
            );
            message(&Object(line))
        }
        (None, _) => message(line),
    }
}

fn cut_off(reason: &str) -> Read<CutOff> {
    CutOff::from_name(reason)
        .ok_or_else(|| format!("`{}` is not a valid value for `cut_off`", excerpt(reason)).into())
}

pub(in crate::conversation) fn block(value: &Value) -> Read<Block> {
    let block = Object::of(value.clone(), "a block")?;
    Ok(match &*block.text("type")? {
        "text" => Block::Text(block.text("text")?),
        "thinking" => Block::Thinking {
            text: block.text("thinking")?,
            signature: block.optional("signature")?.unwrap_or_default(),
            origin: block.optional("origin")?,
        },
        "redacted_thinking" => Block::RedactedThinking {
            data: block.text("data")?,
            origin: block.optional("origin")?,
        },
        "tool_use" => Block::ToolUse {
            id: block.text("id")?,
            name: block.text("name")?,
            input: input(&block)?,
        },
        "tool_result" => tool_result(&block)?,
        "image" => Block::Image(image(&block)?),
        "document" => Block::Document(document(&block)?),
        "audio" => Block::Audio(Audio {
            data: block.text("data")?,
            media_type: block.text("media_type")?,
        }),
        "stored" => Block::Stored(StoredContent {
            reference: block.text("reference")?,
            media_type: block.text("media_type")?,
            bytes: block.count("bytes")?.ok_or("`bytes` is missing")?,
            sha256: block.text("sha256")?,
        }),
        "provider_block" => Block::Provider(ProviderBlock {
            origin: block.text("origin")?,
            data: written(&block, ["data", "data_json"])?,
            text: block.optional("text")?,
        }),
        other => return Err(format!("`{}` is not a type of block", excerpt(other)).into()),
    })
}

fn input(block: &Object) -> Read<Value> {
    let written = written(block, ["input", "input_json"])?;
    Ok(Value::Object(Object::of(written, "`input`")?.0))
}

/// Returns the value of the first key or, if that is missing, parses the JSON text under the
/// second.
fn written(block: &Object, [key, as_text]: [&str; 2]) -> Read<Value> {
    match (block.0.get(key), block.optional(as_text)?) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some(text)) => {
            parse(&text).map_err(|error| format!("`{as_text}`: {}", error.problem.message()).into())
        }
        (None, None) => Err(format!("`{key}` is missing").into()),
    }
}

fn document(block: &Object) -> Read<Document> {
    let source = block.text("source")?;
    let source = DocumentSource::from_name(&source)
        .ok_or_else(|| format!("`{}` is not a source of documents", excerpt(&source)))?;
    let (data, media_type) = (block.text("data")?, block.text("media_type")?);
    Ok(Document {
        source,
        data,
        media_type,
        title: block.optional("title")?,
    })
}

fn tool_result(block: &Object) -> Read<Block> {
    let (mut content, mut images) = (String::new(), Vec::new());
    if let Some(Value::String(text)) = block.0.get("content") {
        content.push_str(text);
    } else {
        for part in block.list("content", self::block)? {
            match part {
                Block::Text(text) => content.push_str(&text),
                Block::Image(image) => images.push(image),
                _ => {
                    return Err(
                        "a tool result contains something other than text and images".into(),
                    );
                }
            }
        }
    }
    let (id, is_error) = (block.text("tool_use_id")?, block.flag("is_error")?);
    Ok(Block::ToolResult {
        id,
        content: content.into(),
        is_error,
        images,
    })
}

fn image(block: &Object) -> Read<Image> {
    Ok(Image {
        data: block.text("data")?,
        media_type: block.text("media_type")?,
        is_url: block.flag("is_url")?,
    })
}

pub(in crate::conversation) fn item(kind: ItemKind, line: &Object) -> Read<Item> {
    let text = line.text("text")?;
    Ok(match kind {
        ItemKind::Notification => Item::Notification {
            text,
            title: line.optional("title")?,
            source: line.optional("source")?,
        },
        ItemKind::PodEvent => {
            let event = line.text("event")?;
            let event = PodEvent::from_name(&event)
                .ok_or_else(|| format!("`{}` is not an event", excerpt(&event)))?;
            Item::PodEvent {
                text,
                agent: line.text("agent")?,
                event,
                detail: line.optional("detail")?,
            }
        }
        ItemKind::FileAttachment => Item::FileAttachment {
            text,
            file_path: line.text("file_path")?,
            bytes: line.count("bytes")?,
        },
        ItemKind::Knowledge => Item::Knowledge {
            text,
            query: line.optional("query")?,
            sources: line.list("sources", |value| {
                value
                    .as_str()
                    .map(Into::into)
                    .ok_or("a source is not a string".into())
            })?,
        },
        ItemKind::Workflow => Item::Workflow {
            text,
            name: line.text("name")?,
            step: line.text("step")?,
            state: line.text("state")?,
        },
        ItemKind::Interrupt => Item::Interrupt {
            text,
            reason: line.optional("reason")?,
        },
    })
}

fn instructions(line: &Object) -> Read<Instructions> {
    let (agent, prompt) = (line.text("agent")?, line.text("prompt")?);
    let (tools, layers) = (
        line.list("tools", tool)?,
        line.list("system_layers", layer)?,
    );
    Ok(Instructions {
        agent,
        prompt,
        tools,
        layers,
        bound_from: line.size("bound_from")?.unwrap_or(0),
    })
}

fn sent(line: &Object) -> Read<Sent> {
    Ok(Sent {
        parts: line.size("parts")?.ok_or("`parts` is missing")?,
        digest: line.text("digest")?,
    })
}

fn summary(line: &Object) -> Read<Summary> {
    let messages = line.size("messages")?.ok_or("`messages` is missing")?;
    let usage = match line.0.get("usage") {
        None => Usage::default(),
        Some(value) => usage(&Object::of(value.clone(), "`usage`")?)?,
    };
    Ok(Summary {
        messages,
        text: line.text("text")?,
        agent: line.optional("agent")?,
        usage,
    })
}

pub(in crate::conversation) fn tool(value: &Value) -> Read<Tool> {
    let tool = Object::of(value.clone(), "a tool")?;
    let Value::Object(schema) = written(&tool, ["schema", "schema_json"])? else {
        return Err("the `schema` of a tool is not an object".into());
    };
    Ok(Tool {
        name: tool.text("name")?,
        description: tool.text("description")?,
        schema,
    })
}

pub(in crate::conversation) fn layer(value: &Value) -> Read<SystemLayer> {
    let layer = Object::of(value.clone(), "a layer")?;
    let priority = layer
        .0
        .get("priority")
        .map_or(Some(DEFAULT_PRIORITY), Value::as_i64);
    let priority = priority.ok_or("the `priority` of a layer is not a number")?;
    Ok(SystemLayer {
        name: layer.text("name")?,
        priority,
        text: layer.text("text")?,
    })
}

pub(in crate::conversation) fn usage(line: &Object) -> Read<Usage> {
    let count = |key: &str| Ok::<u64, LineError>(line.count(key)?.unwrap_or(0));
    Ok(Usage {
        input: count("input")?,
        output: count("output")?,
        cache_read: count("cache_read")?,
        cache_write: count("cache_write")?,
        reasoning: count("reasoning")?,
    })
}

/// Returns the beginning of a string that may be too long for a message.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
