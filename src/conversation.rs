//! Conversations: messages, blocks, tools, typed system items, their normal form, and the template
//! variable `ctx`.
//!
//! Input: values read by [`context`](crate::context) or built by a host program. Output: a
//! [`Conversation`] in normal form and its [template data](Conversation::template_data), or a
//! [`Log`](log::Log), which stores a history as JSON lines. The serde form of messages, blocks and
//! their parts is the same in contexts and logs. This module does not depend on templates or wire
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
    Anchor, BLOCK_TYPES, CTX_MEMBERS, DataValues, MISSING_IF_EMPTY, NEVER_EMPTY, Relation,
    TEMPLATE_DATA, anchor, members_of, words_of,
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

/// The content of one request, independent of the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The task for the model.
    pub task: Task,
    /// The tools offered to the model.
    pub tools: Vec<Tool>,
    /// Attached files.
    pub files: Vec<AttachedFile>,
    /// Named layers that are added to the agent's own system prompt.
    pub system_layers: Vec<SystemLayer>,
    /// `true` if the agent's own system prompt is omitted.
    pub omit_system_prompt: bool,
    /// The number of messages before the last renewal of system prompt and tools; 0 if there was
    /// none. For APIs that bind thinking to the messages before it, thinking is omitted from these
    /// messages.
    pub bound_from: usize,
    /// The complete system prompt, if it is already known (blank for none); `None` if it must be
    /// rendered. A session keeps the prompt that it rendered first.
    pub known_prompt: Option<Arc<str>>,
    /// `true` if the history already contains the agent's surroundings and the attached files, as
    /// items of the turns in which they arrived. Otherwise, an agent with `surroundings` gets both
    /// before the user's first message.
    pub is_told: bool,
    /// Facts about typed items in the history that are not in the items' text, each with the
    /// message's index. A session records them in its log.
    pub known_items: Vec<(usize, Item)>,
}

/// The task for the model: to continue a chat, or to fill a gap.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Continue a chat.
    Chat(Vec<Message>),
    /// Fill the gap between a prefix and a suffix, either of which may be empty.
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
    /// Continuing a conversation.
    Chat,
    /// Filling the gap between a prefix and a suffix.
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
    /// The user, who also sends tool results.
    User,
    /// The model.
    Assistant,
    /// The host program, with a typed system item.
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

/// A message in a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The sender of the message.
    pub role: Role,
    /// The content, in order.
    pub blocks: Vec<Block>,
    /// The kind of typed system item; `None` if the message is not one.
    pub item: Option<ItemKind>,
}

impl Message {
    /// Creates a message from the user.
    pub fn user(content: impl Into<Content>) -> Message {
        Message {
            role: Role::User,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Creates a message from the model.
    pub fn assistant(content: impl Into<Content>) -> Message {
        Message {
            role: Role::Assistant,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Returns the text of the message: its text blocks and the text of provider blocks, without
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

/// The content of a message, which can be created from a string, one block, or several blocks.
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

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text(Arc<str>),
    /// The model's thinking, with the provider's signature (`""` if there is none).
    Thinking {
        /// The text of the thinking.
        text: Arc<str>,
        /// The provider's signature; `""` if there is none.
        signature: Arc<str>,
        /// The client API that produced the thinking, if known.
        origin: Option<Arc<str>>,
    },
    /// Thinking that only the provider can read.
    RedactedThinking {
        /// The opaque data.
        data: Arc<str>,
        /// The client API that produced the thinking, if known.
        origin: Option<Arc<str>>,
    },
    /// A tool call by the model.
    ToolUse {
        /// The call's ID.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The arguments as JSON.
        input: Value,
    },
    /// The result of a tool call, sent to the model.
    ToolResult {
        /// The ID of the call to which the result belongs.
        id: Arc<str>,
        /// The text of the result.
        content: Arc<str>,
        /// `true` if the tool failed.
        is_error: bool,
        /// The images in the result.
        images: Vec<Image>,
    },
    /// An image.
    Image(Image),
    /// A document, for example a PDF.
    Document(Document),
    /// An audio recording.
    Audio(Audio),
    /// An image, document, or recording that the host stores. Its bytes are loaded when a request
    /// is built.
    Stored(StoredContent),
    /// Content in a provider-specific form.
    Provider(ProviderBlock),
}

/// A document from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The form in which the data is given.
    pub source: DocumentSource,
    /// The base64 data without a `data:` prefix, the URL, the file ID, or the text.
    pub data: Arc<str>,
    /// The MIME type.
    pub media_type: Arc<str>,
    /// The title or file name, if there is one.
    pub title: Option<Arc<str>>,
}

/// The form in which a document is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentSource {
    /// Base64 of the document's bytes.
    Base64,
    /// A URL from which the provider downloads the document.
    Url,
    /// The ID of a file uploaded to the provider.
    File,
    /// The text of the document.
    Text,
}

impl DocumentSource {
    /// All forms.
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

    /// Returns the form with this name.
    pub fn from_name(name: &str) -> Option<DocumentSource> {
        DocumentSource::ALL
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// An audio recording from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// Base64 data without a `data:` prefix.
    pub data: Arc<str>,
    /// The MIME type, for example `audio/wav`.
    pub media_type: Arc<str>,
}

/// A reference to content that the host stores, with facts that allow changed bytes to be detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// The name by which the host finds the content, such as a path.
    pub reference: Arc<str>,
    /// The MIME type, which distinguishes images, recordings, and documents.
    pub media_type: Arc<str>,
    /// The size of the content in bytes.
    pub bytes: u64,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub sha256: Arc<str>,
}

/// A part of an answer that only its provider understands: a call that the server ran and its
/// result, the citations of a text block, a compaction, or a call to a custom tool. It is sent
/// back, unchanged and in the same position, only to the API that produced it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderBlock {
    /// The client API that produced the block.
    pub origin: Arc<str>,
    /// The block, item, part or message members, in the provider's own form.
    pub data: Value,
    /// Text that replaces the block for other APIs; `None` to omit the block.
    pub text: Option<Arc<str>>,
}

impl ProviderBlock {
    /// Returns the time, in seconds since 1970, at which the provider's copy of the block's content
    /// expires; `None` if it does not expire. For example, an audio answer is sent back only as the
    /// ID of the provider's copy.
    #[cfg(feature = "runtime")]
    pub(crate) fn expires_at(&self) -> Option<u64> {
        self.data.pointer("/audio/expires_at")?.as_u64()
    }

    /// Returns the provider's name for the kind of block: its `type`, or else the name of its first
    /// member.
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
    /// The name by which the model calls the tool.
    pub name: Arc<str>,
    /// The description of the tool.
    pub description: Arc<str>,
    /// The JSON Schema of the arguments.
    pub schema: Map<String, Value>,
}

impl Tool {
    /// Creates a tool whose arguments have this JSON Schema, which must be an object. Any other
    /// value, such as `null`, creates a tool without arguments.
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
    /// The path of the file, as the user knows it.
    pub file_path: Arc<str>,
    /// The text of the file.
    pub content: Arc<str>,
}

/// A named layer of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLayer {
    /// The layer's name.
    pub name: Arc<str>,
    /// The position among the layers, which are joined in ascending order. The agent's own prompt
    /// has priority 0, and the default is 100.
    pub priority: i64,
    /// The text; a blank layer is omitted.
    pub text: Arc<str>,
}

/// The priority of a layer that does not specify one.
pub(crate) const DEFAULT_PRIORITY: i64 = 100;

/// The kinds of typed system items. Such items are messages that the host program adds to a
/// history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Something happened.
    Notification,
    /// The state of a child agent changed.
    PodEvent,
    /// A file was attached.
    FileAttachment,
    /// Information was looked up.
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
    /// Returns the kind of task: chat or completion.
    pub fn kind(&self) -> TaskKind {
        match self.task {
            Task::Chat(_) => TaskKind::Chat,
            Task::Completion { .. } => TaskKind::Completion,
        }
    }

    /// Returns the conversation with its history in the normal form that every target accepts. A
    /// completion is returned unchanged.
    #[must_use]
    pub fn into_normal_form(mut self) -> Conversation {
        if let Task::Chat(history) = &self.task {
            let before = &history[..self.bound_from.min(history.len())];
            self.bound_from = normalise(before, &NormalFormRules::default()).history.len();
            self.task = Task::Chat(normalise(history, &NormalFormRules::default()).history);
        }
        self
    }

    /// Replaces provider-stored content that has expired with text. `now` is in seconds since 1970.
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

    /// Returns the number of content blocks. Template limits grow with this number.
    pub fn block_count(&self) -> usize {
        match &self.task {
            Task::Chat(history) => history.iter().map(|message| message.blocks.len()).sum(),
            Task::Completion { .. } => 1,
        }
    }

    /// Returns the complete system prompt: the agent's own prompt and the layers in order of
    /// priority, without blank ones, joined by blank lines. `None` if all are blank.
    pub fn system_prompt(&self, own: Option<&str>) -> Option<String> {
        let texts: Vec<&str> = self
            .prompt_parts(own)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        (!texts.is_empty()).then(|| texts.join(PROMPT_SEPARATOR))
    }

    /// Returns the non-blank parts of the system prompt in order, each with the index of its layer,
    /// or `None` for the agent's own prompt.
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

/// The separator between the parts of a system prompt.
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
