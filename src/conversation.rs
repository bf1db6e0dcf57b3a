//! Conversations: messages, blocks, tools, typed system items; their normal form; `ctx` as
//! templates see it.
//!
//! Input: values read by [`context`](crate::context) or built by a host program. Output: a
//! [`Conversation`] in normal form and the [`template data`](Conversation::template_data); a
//! [`Log`](log::Log), which is a history as JSON lines. With serde, messages, blocks and their
//! parts have the form that contexts and logs give them. Knows nothing of templates or wire
//! formats.

mod content_kind;
mod cut_off;
mod data;
mod item;
mod arrival;
mod normalise;
mod usage;
pub mod log;
mod json;

pub(crate) use arrival::{Arrival, arrived_before, placed, turn_from, with_arrivals};
pub use content_kind::ContentKind;
pub(crate) use content_kind::KindSet;
pub(crate) use data::{
    Anchor, CTX_MEMBERS, DataValues, MISSING_IF_EMPTY, NEVER_EMPTY, Relation, TEMPLATE_DATA,
    anchor, members_of,
};
pub use item::{Item, PodEvent};
pub(crate) use normalise::depends_on_target;
pub use normalise::{
    NO_MESSAGE, NameRule, Normal, NormalFormChange, NormalFormRules, ProviderBlockKind,
    ProviderBlockKinds, normalise,
};
pub use usage::Usage;

use std::sync::Arc;

use serde_json::{Map, Value};

/// Everything that one request is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The task of the model.
    pub task: Task,
    /// The offered tools.
    pub tools: Vec<Tool>,
    /// Attached files.
    pub files: Vec<AttachedFile>,
    /// Named layers of the system prompt beside the agent's own.
    pub system_layers: Vec<SystemLayer>,
    /// `true` if the agent's own system prompt is left out.
    pub omit_system_prompt: bool,
    /// The number of messages before the last renewal of system prompt and tools; 0 if there was
    /// none. APIs that bind thinking to the messages before it get no thinking from these messages.
    pub bound_from: usize,
    /// The whole system prompt, if it is already known (blank means none); otherwise, it is
    /// rendered. A session keeps the prompt that it rendered first.
    pub known_prompt: Option<Arc<str>>,
    /// `true` if the history already contains what arrived with its turns: the agent's surroundings
    /// and attached files. Otherwise, an agent with `surroundings` gets both before the user's
    /// first message.
    pub is_told: bool,
    /// Facts about typed items of the history beyond their text, each with the index of its
    /// message. A session keeps them in its log.
    pub known_items: Vec<(usize, Item)>,
}

/// A chat to continue, or a gap to fill.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Continue a chat.
    Chat(Vec<Message>),
    /// Complete code between a prefix and a suffix; both may be empty.
    Completion {
        /// The text before the gap.
        prefix: String,
        /// The text after the gap.
        suffix: String,
    },
}

impl Default for Task {
    fn default() -> Task {
        Task::Chat(Vec::new())
    }
}

/// The two kinds of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// A chat.
    Chat,
    /// A completion.
    Completion,
}

impl TaskKind {
    /// Returns `chat` or `completion`.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Chat => "chat",
            TaskKind::Completion => "completion",
        }
    }
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user, and whatever is sent for them: tool results.
    User,
    /// The model.
    Assistant,
    /// The host program.
    System,
}

impl Role {
    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }

    /// Returns the role with this name.
    pub fn from_name(name: &str) -> Option<Role> {
        [Role::User, Role::Assistant, Role::System]
            .into_iter()
            .find(|role| role.name() == name)
    }
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The sender.
    pub role: Role,
    /// The content, in order.
    pub blocks: Vec<Block>,
    /// The kind of typed system item, if it is one.
    pub item: Option<ItemKind>,
}

impl Message {
    /// Returns a message of the user.
    pub fn user(content: impl Into<Content>) -> Message {
        Message {
            role: Role::User,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Returns a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Message {
        Message {
            role: Role::Assistant,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Returns the words of the message: its text blocks and the text of provider blocks, without
    /// thinking, calls, and results.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(Arc::clone(text)),
                Block::Provider(own) => own.text.clone(),
                _ => None,
            })
            .map(|text| text.to_string())
            .collect()
    }
}

/// The content of a message: a text, a block, or several blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content(pub Vec<Block>);

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Content {
        Content(blocks)
    }
}

impl<const N: usize> From<[Block; N]> for Content {
    fn from(blocks: [Block; N]) -> Content {
        Content(blocks.into())
    }
}

impl From<Block> for Content {
    fn from(block: Block) -> Content {
        Content(vec![block])
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Block::Text(text.into()).into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Block::Text(text.into()).into()
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text(Arc<str>),
    /// The model's reasoning, with the provider's signature (`""` if there is none).
    Thinking {
        /// The reasoning.
        text: Arc<str>,
        /// The signature.
        signature: Arc<str>,
        /// The client API that produced it, if known.
        origin: Option<Arc<str>>,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking {
        /// The opaque data.
        data: Arc<str>,
        /// The client API that produced it, if known.
        origin: Option<Arc<str>>,
    },
    /// A tool call by the model.
    ToolUse {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The arguments.
        input: Value,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        id: Arc<str>,
        /// The text of the result.
        content: Arc<str>,
        /// `true` if the tool failed.
        is_error: bool,
        /// Images in the result.
        images: Vec<Image>,
    },
    /// An image.
    Image(Image),
    /// A document, for example a PDF.
    Document(Document),
    /// An audio recording.
    Audio(Audio),
    /// An image, document, or recording that the host keeps; its bytes are loaded when a request is
    /// made.
    Stored(StoredContent),
    /// Content in a form that only one provider uses.
    Provider(ProviderBlock),
}

/// A document from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The form in which the data is given.
    pub source: DocumentSource,
    /// The base64 without a `data:` prefix, the URL, the id or the text.
    pub data: Arc<str>,
    /// The MIME type.
    pub media_type: Arc<str>,
    /// The title or file name, if it has one.
    pub title: Option<Arc<str>>,
}

/// The forms in which a document can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentSource {
    /// Its bytes in base64.
    Base64,
    /// A URL from which the provider downloads it.
    Url,
    /// The id of a file that has been uploaded to the provider.
    File,
    /// Its text.
    Text,
}

impl DocumentSource {
    /// All sources.
    pub const ALL: [DocumentSource; 4] = [
        DocumentSource::Base64,
        DocumentSource::Url,
        DocumentSource::File,
        DocumentSource::Text,
    ];

    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            DocumentSource::Base64 => "base64",
            DocumentSource::Url => "url",
            DocumentSource::File => "file",
            DocumentSource::Text => "text",
        }
    }

    /// Returns the source with this name.
    pub fn from_name(name: &str) -> Option<DocumentSource> {
        DocumentSource::ALL
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// A recording from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// Base64 data without a `data:` prefix.
    pub data: Arc<str>,
    /// The MIME type, for example `audio/wav`.
    pub media_type: Arc<str>,
}

/// A reference to content that the host keeps elsewhere, with the facts needed to recognise the
/// same bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// The name under which the host finds it, for example a path.
    pub reference: Arc<str>,
    /// The MIME type, which tells images, recordings, and documents apart.
    pub media_type: Arc<str>,
    /// The number of bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: Arc<str>,
}

/// A piece of an answer that only its provider understands: a tool that the server ran and its
/// result, citations of a text, a compaction, a call of a custom tool. It is returned unchanged, at
/// the same place, to the API that produced it, and is sent to no other.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderBlock {
    /// The client API that produced it.
    pub origin: Arc<str>,
    /// The block, item, part or members of a message, in the provider's own form.
    pub data: Value,
    /// Text that replaces the block for other APIs, if there is any.
    pub text: Option<Arc<str>>,
}

impl ProviderBlock {
    /// Returns when the content that the block refers to expires at the provider, in seconds since
    /// 1970. For example, a spoken answer is sent back only as its id.
    #[cfg(feature = "runtime")]
    pub(crate) fn expires_at(&self) -> Option<u64> {
        self.data.pointer("/audio/expires_at")?.as_u64()
    }

    /// Returns the provider's name for the block: its `type`, or else the name of its first member.
    pub fn kind(&self) -> &str {
        kind_of(&self.data)
    }
}

fn kind_of(data: &Value) -> &str {
    data.get("type")
        .and_then(Value::as_str)
        .or_else(|| {
            data.as_object()
                .and_then(|members| members.keys().next())
                .map(String::as_str)
        })
        .unwrap_or_default()
}

/// An image: base64 data or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Base64 data without a `data:` prefix, or the URL.
    pub data: Arc<str>,
    /// The MIME type.
    pub media_type: Arc<str>,
    /// `true` if `data` is a URL.
    pub is_url: bool,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name that the model calls.
    pub name: Arc<str>,
    /// The description of the tool.
    pub description: Arc<str>,
    /// JSON Schema of the arguments.
    pub schema: Map<String, Value>,
}

impl Tool {
    /// Returns a tool whose arguments have this JSON Schema, which must be an object. Any other
    /// value, for example `null`, means a tool without arguments.
    ///
    /// ```
    /// use reqc::conversation::Tool;
    /// use serde_json::json;
    ///
    /// let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    /// assert_eq!(Tool::new("remove", "Removes a file.", path).schema["required"], json!(["path"]));
    /// assert_eq!(Tool::new("now", "The time.", json!(null)).schema["properties"], json!({}));
    /// ```
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, schema: Value) -> Tool {
        let schema = match schema {
            Value::Object(schema) => schema,
            _ => Map::from_iter([
                ("type".to_owned(), "object".into()),
                ("properties".to_owned(), Value::Object(Map::new())),
            ]),
        };
        Tool {
            name: name.into(),
            description: description.into(),
            schema,
        }
    }
}

/// A file that the user attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// The path as the user knows it.
    pub file_path: Arc<str>,
    /// The text.
    pub content: Arc<str>,
}

/// A named layer of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLayer {
    /// The name.
    pub name: Arc<str>,
    /// Layers are joined in this order; the agent's own prompt has priority 0, the default is 100.
    pub priority: i64,
    /// The text; blank layers are skipped.
    pub text: Arc<str>,
}

/// The priority of a layer that sets none.
pub(crate) const DEFAULT_PRIORITY: i64 = 100;

/// The kinds of typed system items, which are messages that the host program adds to a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Something happened.
    Notification,
    /// A child agent's life cycle.
    PodEvent,
    /// A file was attached.
    FileAttachment,
    /// Information that was looked up.
    Knowledge,
    /// A step of a workflow.
    Workflow,
    /// A turn was interrupted.
    Interrupt,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [ItemKind; 6] = [
        ItemKind::Notification,
        ItemKind::PodEvent,
        ItemKind::FileAttachment,
        ItemKind::Knowledge,
        ItemKind::Workflow,
        ItemKind::Interrupt,
    ];

    /// Returns the `kind` tag.
    pub fn name(self) -> &'static str {
        match self {
            ItemKind::Notification => "notification",
            ItemKind::PodEvent => "pod_event",
            ItemKind::FileAttachment => "file_attachment",
            ItemKind::Knowledge => "knowledge",
            ItemKind::Workflow => "workflow",
            ItemKind::Interrupt => "interrupt",
        }
    }

    /// Returns the kind with this tag.
    pub fn from_name(name: &str) -> Option<ItemKind> {
        ItemKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Conversation {
    /// Returns whether this is a chat or a completion.
    pub fn kind(&self) -> TaskKind {
        match self.task {
            Task::Chat(_) => TaskKind::Chat,
            Task::Completion { .. } => TaskKind::Completion,
        }
    }

    /// Returns the conversation with its history in the normal form that every target accepts; a
    /// completion is unchanged.
    #[must_use]
    pub fn into_normal_form(mut self) -> Conversation {
        if let Task::Chat(history) = &self.task {
            let before = &history[..self.bound_from.min(history.len())];
            self.bound_from = normalise(before, &NormalFormRules::default()).history.len();
            self.task = Task::Chat(normalise(history, &NormalFormRules::default()).history);
        }
        self
    }

    /// Replaces content that has expired at its provider with text.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub(crate) fn without_expired(mut self, now: u64) -> Conversation {
        let Task::Chat(history) = &mut self.task else {
            return self;
        };
        for block in history.iter_mut().flat_map(|message| &mut message.blocks) {
            if let Block::Provider(own) = block
                && own.expires_at().is_some_and(|end| end <= now)
            {
                *block = Block::Text(own.text.clone().unwrap_or_default());
            }
        }
        self
    }

    /// Returns the number of content blocks, with which template limits grow.
    pub fn block_count(&self) -> usize {
        match &self.task {
            Task::Chat(history) => history.iter().map(|message| message.blocks.len()).sum(),
            Task::Completion { .. } => 1,
        }
    }

    /// Returns the whole system prompt: the agent's own prompt and the layers in order of priority,
    /// joined by a blank line, without blank parts. `None` if nothing is left.
    pub fn system_prompt(&self, own: Option<&str>) -> Option<String> {
        let texts: Vec<&str> = self
            .prompt_parts(own)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        (!texts.is_empty()).then(|| texts.join(PROMPT_SEPARATOR))
    }

    /// Returns the parts of the system prompt in order: the text, and the index of its layer or
    /// `None` for the agent's own part.
    pub(crate) fn prompt_parts<'t>(
        &'t self,
        own: Option<&'t str>,
    ) -> Vec<(Option<usize>, &'t str)> {
        let own = own
            .filter(|_| !self.omit_system_prompt)
            .map(|text| (0, None, text));
        let layers = self.system_layers.iter().enumerate();
        let layers =
            layers.map(|(index, layer)| (layer.priority, Some(index), layer.text.as_ref()));
        let mut parts: Vec<(i64, Option<usize>, &str)> = own.into_iter().chain(layers).collect();
        parts.retain(|(_, _, text)| !text.trim().is_empty());
        parts.sort_by_key(|(priority, ..)| *priority);
        parts
            .into_iter()
            .map(|(_, layer, text)| (layer, text))
            .collect()
    }
}

/// The text between the parts of a system prompt.
pub(crate) const PROMPT_SEPARATOR: &str = "\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_join_by_priority_and_blank_ones_go() {
        let layer = |name: &str, priority, text: &str| SystemLayer {
            name: name.into(),
            priority,
            text: text.into(),
        };
        let conversation = Conversation {
            system_layers: vec![
                layer("b", 100, "late"),
                layer("a", -1, "early"),
                layer("c", 100, "later"),
                layer("d", 5, " "),
            ],
            ..Conversation::default()
        };
        assert_eq!(
            conversation.system_prompt(Some("own")).as_deref(),
            Some("early\n\nown\n\nlate\n\nlater")
        );
        let omitted = Conversation {
            omit_system_prompt: true,
            ..Conversation::default()
        };
        assert_eq!(omitted.system_prompt(Some("own")), None);
    }
}
