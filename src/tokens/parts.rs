//! The parts of a body, and the content in them that a model reads.
//!
//! The wire format defines the names of the parts. Within a part, text is counted, but settings
//! such as roles, IDs, signatures and cache markers are not. Tokens that a server adds (around each
//! message, and in the prompt that explains tools) are counted if their number is published.

use serde_json::{Map, Value};

use super::TokenPart;
use super::media::{self, PictureRule};
use crate::provider::WireFormat;

/// The kinds of parts in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartKind {
    /// The system prompt.
    System,
    /// The definitions of tools, and the prompt that the server uses to explain them.
    Tools,
    /// The schema of a structured answer.
    Schema,
    /// One message or item of the conversation.
    Message,
    /// The text before and after the gap that a completion fills.
    Prompt,
    /// Tokens that the server adds to every request.
    Frame,
}

impl PartKind {
    /// All kinds.
    pub const ALL: [PartKind; 6] = [
        PartKind::System,
        PartKind::Tools,
        PartKind::Schema,
        PartKind::Message,
        PartKind::Prompt,
        PartKind::Frame,
    ];

    /// Returns the stable lower-case name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            PartKind::System => "system",
            PartKind::Tools => "tools",
            PartKind::Schema => "schema",
            PartKind::Message => "message",
            PartKind::Prompt => "prompt",
            PartKind::Frame => "frame",
        }
    }
}

/// Returns the names of the members whose content a model reads.
pub(super) fn members(wire: WireFormat) -> impl Iterator<Item = &'static str> {
    let facts = wire.facts();
    let of_answer = facts
        .answer_form
        .iter()
        .filter_map(|pointer| pointer.split('/').nth(1));
    let others = facts
        .system
        .iter()
        .chain(&facts.history)
        .chain(facts.prompt);
    others.copied().chain(of_answer).chain(["tools"])
}

/// Converts member names to pointers.
fn pointers(members: &[&str]) -> Vec<String> {
    members.iter().map(|name| format!("/{name}")).collect()
}

/// The number of tokens that a server adds to a body.
struct Frame {
    request: u64,
    message: u64,
    /// The tokens that are added once if there are tools.
    tools: u64,
    /// The tokens that are added for each tool.
    tool: u64,
}

/// Returns the published numbers of tokens that servers add. OpenAI: 3 tokens for each message and
/// 3 before the answer (its cookbook, “How to count tokens with tiktoken”), and about a dozen for
/// each function. Anthropic: 346 tokens to explain tools to Claude 4
/// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>). Chat templates of
/// open models: 4 tokens for each message.
fn frame(wire: WireFormat) -> Frame {
    match wire {
        WireFormat::AnthropicMessages => Frame {
            request: 3,
            message: 4,
            tools: 346,
            tool: 12,
        },
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => Frame {
            request: 3,
            message: 3,
            tools: 12,
            tool: 12,
        },
        WireFormat::GoogleGenerateContent => Frame {
            request: 0,
            message: 2,
            tools: 0,
            tool: 8,
        },
        WireFormat::MistralChat => Frame {
            request: 1,
            message: 2,
            tools: 2,
            tool: 8,
        },
        WireFormat::OllamaChat => Frame {
            request: 3,
            message: 4,
            tools: 150,
            tool: 8,
        },
        WireFormat::OllamaGenerate | WireFormat::MistralFim | WireFormat::LlamaCppInfill => Frame {
            request: 4,
            message: 0,
            tools: 0,
            tool: 0,
        },
    }
}

/// Members that no model reads, such as names, IDs, markers and encrypted content.
const UNREAD: [&str; 22] = [
    "type",
    "role",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "signature",
    "thought_signature",
    "thoughtSignature",
    "encrypted_content",
    "cache_control",
    "media_type",
    "mimeType",
    "mime_type",
    "status",
    "detail",
    "phase",
    "prefix",
    "strict",
    "is_error",
    "citations",
    "container",
];

/// Members whose value a model reads as JSON, including the names in the value.
const AS_JSON: [&str; 5] = ["input", "args", "arguments", "response", "parameters"];

/// A counter for the tokens of a body.
pub(super) struct Counter<'c> {
    /// The function that counts the tokens of a string.
    pub(super) count: &'c dyn Fn(&str) -> u64,
    pub(super) wire: WireFormat,
    pub(super) pictures: PictureRule,
}

impl Counter<'_> {
    pub(super) fn parts(&self, body: &Value) -> Vec<TokenPart> {
        let (facts, frame) = (self.wire.facts(), frame(self.wire));
        let answer_form: Vec<String> = facts
            .answer_form
            .iter()
            .copied()
            .map(str::to_owned)
            .collect();
        let mut parts = Vec::new();
        if frame.request > 0 {
            parts.push(TokenPart {
                kind: PartKind::Frame,
                pointer: String::new(),
                tokens: frame.request,
            });
        }
        self.add_whole(body, pointers(facts.system), PartKind::System, &mut parts);
        self.add_tools(body, &frame, &mut parts);
        self.add_whole(body, answer_form, PartKind::Schema, &mut parts);
        for place in pointers(facts.history.as_slice()) {
            self.add_messages(body, &place, frame.message, &mut parts);
        }
        self.add_whole(body, pointers(facts.prompt), PartKind::Prompt, &mut parts);
        parts
    }

    /// Adds each listed member as one part.
    fn add_whole(
        &self,
        body: &Value,
        places: Vec<String>,
        kind: PartKind,
        parts: &mut Vec<TokenPart>,
    ) {
        for place in places {
            let Some(value) = body.pointer(&place).filter(|value| !value.is_null()) else {
                continue;
            };
            let tokens = match kind {
                PartKind::Schema => self.json(value),
                _ => self.value(value),
            };
            parts.push(TokenPart {
                kind,
                pointer: place,
                tokens,
            });
        }
    }

    fn add_tools(&self, body: &Value, frame: &Frame, parts: &mut Vec<TokenPart>) {
        let Some(tools) = body
            .get("tools")
            .and_then(Value::as_array)
            .filter(|tools| !tools.is_empty())
        else {
            return;
        };
        let texts: u64 = tools.iter().map(|tool| self.json(tool)).sum();
        let tokens = texts + frame.tools + frame.tool * tools.len() as u64;
        parts.push(TokenPart {
            kind: PartKind::Tools,
            pointer: "/tools".to_owned(),
            tokens,
        });
    }

    /// Adds the messages in an array as parts. A string in place of the array is one message.
    fn add_messages(&self, body: &Value, place: &str, around: u64, parts: &mut Vec<TokenPart>) {
        match body.pointer(place) {
            Some(Value::Array(messages)) => {
                for (at, message) in messages.iter().enumerate() {
                    let pointer = format!("{place}/{at}");
                    parts.push(TokenPart {
                        kind: kind(message),
                        pointer,
                        tokens: self.value(message) + around,
                    });
                }
            }
            Some(text @ Value::String(_)) => {
                let tokens = self.value(text) + around;
                parts.push(TokenPart {
                    kind: PartKind::Message,
                    pointer: place.to_owned(),
                    tokens,
                });
            }
            _ => {}
        }
    }

    /// Returns the number of tokens in the content of a value that a model reads.
    fn value(&self, value: &Value) -> u64 {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(elements) => elements.iter().map(|element| self.value(element)).sum(),
            Value::Object(members) => self.object(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    fn object(&self, members: &Map<String, Value>) -> u64 {
        if let Some(media) = media::of(members) {
            return self.pictures.tokens(&media, self.count);
        }
        let read = members
            .iter()
            .filter(|(name, _)| !UNREAD.contains(&name.as_str()));
        let tokens = read.map(|(name, value)| {
            match AS_JSON.contains(&name.as_str()) && !value.is_string() {
                true => self.json(value),
                false => self.value(value),
            }
        });
        tokens.sum()
    }

    /// Returns the number of tokens in a string, or in the medium that the string represents.
    fn text(&self, text: &str) -> u64 {
        match media::of_text(text) {
            Some(media) => self.pictures.tokens(&media, self.count),
            None => (self.count)(text),
        }
    }

    /// Returns the number of tokens in a value that a model reads as JSON.
    fn json(&self, value: &Value) -> u64 {
        (self.count)(&value.to_string())
    }
}

/// Returns the part kind of a message. Instructions are treated as a system prompt.
fn kind(message: &Value) -> PartKind {
    match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => PartKind::System,
        _ => PartKind::Message,
    }
}
