//! Conversations: messages, blocks, tools, typed system items; their normal form; `ctx` as
//! templates see it.
//!
//! Input: values read by [`context`](crate::context) or built by a host program. Output: a
//! [`Conversation`] in normal form and the [`template data`](Conversation::template_data); a
//! [`Log`](log::Log), which is a history as JSON lines. With serde, messages, blocks and what they
//! are made of have the form that contexts and logs give them. Knows nothing of templates or wire
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
    /// The tools that are offered.
    pub tools: Vec<Tool>,
    /// Attached files.
    pub files: Vec<AttachedFile>,
    /// Named layers of the system prompt beside the agent's own.
    pub system_layers: Vec<SystemLayer>,
    /// `true` if the agent's own system prompt is left out.
    pub omit_system_prompt: bool,
    /// The first message after the last renewal of system prompt and tools; 0 if there was none.
    /// Thinking in messages before it is left out for APIs that bind thinking to what was before
    /// it.
    pub bound_from: usize,
    /// The whole system prompt, if it is known; blank if there is none. Else it is rendered. A
    /// session keeps the one that it rendered first.
    pub known_prompt: Option<Arc<str>>,
    /// `true` if what came with turns is in the history: what an agent says of its surroundings,
    /// and attached files. If not, an agent with `surroundings` is told both before the first
    /// message of the person.
    pub is_told: bool,
    /// The facts known of typed items of the history beside their text, each with its message's
    /// place. A session keeps it in its log.
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

/// Which of the two a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// A chat.
    Chat,
    /// A completion.
    Completion,
}

impl TaskKind {
    /// `chat` or `completion`.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Chat => "chat",
            TaskKind::Completion => "completion",
        }
    }
}

/// The role of the one who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person, and what stands in for them: tool results.
    User,
    /// The model.
    Assistant,
    /// The host program.
    System,
}

impl Role {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }

    /// The role with a name.
    pub fn from_name(name: &str) -> Option<Role> {
        [Role::User, Role::Assistant, Role::System]
            .into_iter()
            .find(|role| role.name() == name)
    }
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The role of the one who speaks.
    pub role: Role,
    /// The content, in order.
    pub blocks: Vec<Block>,
    /// The kind of typed system item, if it is one.
    pub item: Option<ItemKind>,
}

impl Message {
    /// Returns what the person says.
    pub fn user(content: impl Into<Content>) -> Message {
        Message {
            role: Role::User,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Returns what the model said.
    pub fn assistant(content: impl Into<Content>) -> Message {
        Message {
            role: Role::Assistant,
            blocks: content.into().0,
            item: None,
        }
    }

    /// Returns what it says in words: its texts, and those in a provider's own form, without
    /// thinking, calls and results.
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
    /// The model calls a tool.
    ToolUse {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The arguments.
        input: Value,
    },
    /// A tool's answer.
    ToolResult {
        /// The id of the call that it answers.
        id: Arc<str>,
        /// The answer's text.
        content: Arc<str>,
        /// `true` if the tool failed.
        is_error: bool,
        /// Images in the answer.
        images: Vec<Image>,
    },
    /// An image.
    Image(Image),
    /// A document, for instance a PDF.
    Document(Document),
    /// A recording.
    Audio(Audio),
    /// An image, a document or a recording that the host keeps: its bytes come when a request is
    /// made.
    Stored(StoredContent),
    /// Something that one provider said or did in a form of its own.
    Provider(ProviderBlock),
}

/// A document that the person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// In which form it comes.
    pub source: DocumentSource,
    /// The base64 without a `data:` prefix, the URL, the id or the text.
    pub data: Arc<str>,
    /// The MIME type.
    pub media_type: Arc<str>,
    /// The title or file name, if it has one.
    pub title: Option<Arc<str>>,
}

/// In which form a document comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentSource {
    /// Its bytes in base64.
    Base64,
    /// An address from which the provider gets it.
    Url,
    /// The id of a file that was uploaded to the provider.
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

    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            DocumentSource::Base64 => "base64",
            DocumentSource::Url => "url",
            DocumentSource::File => "file",
            DocumentSource::Text => "text",
        }
    }

    /// The source with a name.
    pub fn from_name(name: &str) -> Option<DocumentSource> {
        DocumentSource::ALL
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// A recording that the person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// Base64 data without a `data:` prefix.
    pub data: Arc<str>,
    /// The MIME type, for instance `audio/wav`.
    pub media_type: Arc<str>,
}

/// A reference to content that the host keeps elsewhere. It holds what is needed to know the same
/// bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// The name by which the host finds it, for instance a path.
    pub reference: Arc<str>,
    /// The MIME type, which says whether it is an image, a recording or a document.
    pub media_type: Arc<str>,
    /// The number of bytes that it has.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: Arc<str>,
}

/// A piece of an answer that only its provider understands: a tool that the server ran and its
/// result, citations of a text, a compaction, a call of a custom tool. It goes back unchanged to
/// where it came from, in its place, and nowhere else.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderBlock {
    /// The client API that produced it.
    pub origin: Arc<str>,
    /// The block, item, part or members of a message, in the provider's own form.
    pub data: Value,
    /// The words that stand for it where it does not go, if there are any.
    pub text: Option<Arc<str>>,
}

impl ProviderBlock {
    /// Until when the provider knows what it names, in seconds since 1970: a spoken answer goes
    /// back by its id alone.
    #[cfg(feature = "runtime")]
    pub(crate) fn expires_at(&self) -> Option<u64> {
        self.data.pointer("/audio/expires_at")?.as_u64()
    }

    /// Returns what the provider calls it: its `type`, or else the name of its first member.
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
    /// A tool whose arguments have this JSON Schema, an object. Anything else, for instance `null`,
    /// stands for a tool without arguments.
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

/// A file that the person attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// The path as the person knows it.
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

/// The priority of a layer that does not say one.
pub(crate) const DEFAULT_PRIORITY: i64 = 100;

/// The kinds of typed system items: what the host program injects into a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Something happened.
    Notification,
    /// A child agent's life cycle.
    PodEvent,
    /// A file was attached.
    FileAttachment,
    /// Something looked up.
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

    /// The `kind` tag.
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

    /// The kind with a tag.
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

    /// With its history in the normal form that every target wants; a completion stays as it is.
    #[must_use]
    pub fn into_normal_form(mut self) -> Conversation {
        if let Task::Chat(history) = &self.task {
            let before = &history[..self.bound_from.min(history.len())];
            self.bound_from = normalise(before, &NormalFormRules::default()).history.len();
            self.task = Task::Chat(normalise(history, &NormalFormRules::default()).history);
        }
        self
    }

    /// With words in the place of what its provider does not know any more.
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

    /// Returns how many content blocks there are: what template limits grow with.
    pub fn block_count(&self) -> usize {
        match &self.task {
            Task::Chat(history) => history.iter().map(|message| message.blocks.len()).sum(),
            Task::Completion { .. } => 1,
        }
    }

    /// The whole system prompt: the agent's own and the layers by priority, joined by a blank line,
    /// blank ones skipped. `None` if nothing is left.
    pub fn system_prompt(&self, own: Option<&str>) -> Option<String> {
        let texts: Vec<&str> = self
            .prompt_parts(own)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        (!texts.is_empty()).then(|| texts.join(PROMPT_SEPARATOR))
    }

    /// The parts of the system prompt in order: the number of the layer, or `None` for the agent's
    /// own part, and the text.
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
