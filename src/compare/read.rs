//! Reads a body into pieces: the system prompt first, then the history.

use foldhash::{HashMap, HashSet};

use serde_json::Value;

use super::Side;
use super::piece::{Answer, Call, Content, Piece, canonical};
use crate::check::history::{self, Entry, History, Kind, Outcome, Part, Role, elements, text_of};
use crate::conversation::Block;
use crate::import::forms;
use crate::json;
use crate::provider::{TurnForm, WireFormat};

/// Reads the content of a body.
pub(super) fn pieces(side: Side<'_>) -> Vec<Piece<'_>> {
    pieces_of(side.wire, &|name| side.body.get(name))
}

/// Reads the content of a body; `member` returns its members.
pub(crate) fn pieces_of<'b>(
    wire: WireFormat,
    member: &dyn Fn(&str) -> Option<&'b Value>,
) -> Vec<Piece<'b>> {
    let mut reader = Reader {
        wire,
        pieces: Vec::new(),
        calls: Calls::default(),
    };
    for value in forms::prompt_members(wire)
        .iter()
        .filter_map(|name| member(name))
    {
        reader.prompt(value);
    }
    match history::member_of(wire) {
        Some(_) => {
            let history = History::read(wire, member);
            history.entries.iter().for_each(|entry| reader.entry(entry));
        }
        None => reader.without_history(member),
    }
    reader.pieces
}

struct Reader<'b> {
    wire: WireFormat,
    pieces: Vec<Piece<'b>>,
    calls: Calls,
}

impl<'b> Reader<'b> {
    fn push(&mut self, role: Role, content: Content, value: &'b Value) {
        self.pieces.push(Piece {
            role,
            content,
            value,
        });
    }

    /// Reads the member that contains a system prompt, which is text, a list of blocks, or content
    /// with parts.
    fn prompt(&mut self, member: &'b Value) {
        match member {
            Value::String(text) => self.push(Role::System, Content::Text(text.clone()), member),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.prompt_block(block)),
            Value::Object(_) => match member.get("parts") {
                Some(parts) => self.prompt(parts),
                None => self.prompt_block(member),
            },
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.other(Role::System, "system", member),
        }
    }

    fn prompt_block(&mut self, block: &'b Value) {
        match block {
            Value::String(text) => self.push(Role::System, Content::Text(text.clone()), block),
            _ => match text_of(block, "text") {
                Some(text) => {
                    self.push(Role::System, Content::Text(text.to_owned()), block);
                    self.rest(Role::System, block, &["type", "text"]);
                }
                None => self.other(Role::System, kind_of(block), block),
            },
        }
    }

    /// Reads the prefix, suffix, question and images in formats without a history.
    fn without_history(&mut self, body: &dyn Fn(&str) -> Option<&'b Value>) {
        const SIDES: [(&str, &str); 3] = [
            ("suffix", "suffix"),
            ("input_prefix", "prefix"),
            ("input_suffix", "suffix"),
        ];
        if let Some((value, prompt)) =
            body("prompt").and_then(|value| Some((value, value.as_str()?)))
        {
            let gap = self.wire.facts().gap;
            let is_question = gap.is_some_and(|gap| gap.needs_after && body(gap.after).is_none());
            let content = match is_question {
                true => Content::Text(prompt.to_owned()),
                false => Content::Gap("prefix", prompt.to_owned()),
            };
            self.push(Role::User, content, value);
        }
        for (name, side) in SIDES {
            if let Some((value, text)) = body(name).and_then(|value| Some((value, value.as_str()?)))
            {
                self.push(Role::User, Content::Gap(side, text.to_owned()), value);
            }
        }
        elements(body("images"))
            .iter()
            .for_each(|value| self.media(Role::User, value));
        elements(body("input_extra"))
            .iter()
            .for_each(|value| self.other(Role::User, "file", value));
    }

    fn entry(&mut self, entry: &Entry<'b>) {
        if entry.role == Role::Assistant {
            self.thinking_beside(entry.value);
        }
        for part in &entry.parts {
            self.part(entry.role, part);
        }
        // A Responses API item, or a Chat Completions result, is both an entry and its only part.
        if entry
            .parts
            .iter()
            .all(|part| !std::ptr::eq(part.value, entry.value))
        {
            self.rest(
                entry.role,
                entry.value,
                members_of_message(self.wire, entry.role),
            );
        }
    }

    /// Reads reasoning next to a message's content.
    fn thinking_beside(&mut self, message: &'b Value) {
        let value = forms::BESIDE
            .into_iter()
            .filter_map(|name| message.get(name))
            .find(|value| !value.is_null());
        for block in forms::thinking_beside(message) {
            self.thought(block, value.unwrap_or(message));
        }
    }

    fn thought(&mut self, block: Block, value: &'b Value) {
        match block {
            Block::Thinking {
                text, signature, ..
            } => {
                if !text.is_empty() || signature.is_empty() {
                    self.push(Role::Assistant, Content::Thinking(text.to_string()), value);
                }
                if !signature.is_empty() {
                    self.push(
                        Role::Assistant,
                        Content::Signature(signature.to_string()),
                        value,
                    );
                }
            }
            Block::RedactedThinking { data, .. } => {
                self.push(Role::Assistant, Content::Redacted(data.to_string()), value);
            }
            _ => self.other(Role::Assistant, "thinking", value),
        }
    }

    fn part(&mut self, role: Role, part: &Part<'b>) {
        let value = part.value;
        match part.kind {
            Kind::Text(text) => {
                self.push(role, Content::Text(text.to_owned()), value);
                self.signature_of_part(value);
                self.rest(
                    role,
                    value,
                    &[
                        "type",
                        "text",
                        "refusal",
                        "thoughtSignature",
                        "thought_signature",
                    ],
                );
            }
            Kind::Call(call) => {
                let inner = ["function", "custom"]
                    .into_iter()
                    .find_map(|name| value.get(name))
                    .unwrap_or(call.identified);
                let free = inner.get("input").filter(|_| call.arguments.is_none());
                let name = call.name.unwrap_or_default().to_owned();
                let number = self.calls.made(call.id, &name);
                let arguments = arguments(call.arguments.or(free));
                self.push(
                    role,
                    Content::Call(Call {
                        name,
                        arguments,
                        number,
                    }),
                    value,
                );
                self.signature_of_part(value);
                self.rest(role, value, &OF_CALLS);
            }
            Kind::Result(outcome) => self.result(role, value, &outcome),
            // This reasoning was already read, next to the content.
            Kind::Thinking if value.is_string() => {}
            Kind::Thinking => match forms::thinking(value) {
                Some(block) => self.thought(block, value),
                None => self.other(role, "reasoning", value),
            },
            Kind::Media => self.media(role, value),
            Kind::Other(kind) => self.other(role, kind, value),
        }
    }

    /// Reads Gemini's signature on a text part or a call.
    fn signature_of_part(&mut self, value: &'b Value) {
        if let Some(signature) = forms::signature(value) {
            self.push(
                Role::Assistant,
                Content::Signature(signature.to_owned()),
                value,
            );
        }
    }

    fn result(&mut self, role: Role, value: &'b Value, outcome: &Outcome<'b>) {
        let content = match self.wire.facts().turns {
            TurnForm::Contents => outcome.identified.get("response"),
            TurnForm::Items => value.get("output"),
            TurnForm::Blocks | TurnForm::Messages | TurnForm::None => value.get("content"),
        };
        let call = self.calls.answered(outcome.id, outcome.name);
        let answer = Answer {
            text: text_of_result(content),
            is_error: outcome.is_error,
            call,
        };
        self.push(role, Content::Result(answer), value);
        let beside = [outcome.identified.get("parts"), value.get("images")];
        let inside = content.filter(|content| content.is_array());
        for part in beside
            .into_iter()
            .flatten()
            .chain(inside)
            .flat_map(|parts| elements(Some(parts)))
        {
            if text_of(part, "text").is_none() {
                self.media(role, part);
            }
        }
        self.rest(role, value, &OF_RESULTS);
    }

    /// Reads an image, a document or a recording. Any other medium is kept as JSON.
    fn media(&mut self, role: Role, value: &'b Value) {
        let content = match (forms::image(value), forms::document(value)) {
            (Some(image), _) => Content::Image(image),
            (None, Some(Block::Document(document))) => Content::Document(document),
            (None, Some(Block::Audio(audio))) => Content::Audio(audio),
            _ => return self.other(role, kind_of(value), value),
        };
        self.push(role, content, value);
        self.mark(role, value);
    }

    fn other(&mut self, role: Role, kind: &str, value: &'b Value) {
        self.push(
            role,
            Content::Other(kind.to_owned(), canonical(value)),
            value,
        );
    }

    fn mark(&mut self, role: Role, value: &'b Value) {
        if let Some(mark) = value.get("cache_control").filter(|mark| !mark.is_null()) {
            self.push(role, Content::CacheMark, mark);
        }
    }

    /// Adds the members of an object that were not read, each as a separate piece.
    fn rest(&mut self, role: Role, object: &'b Value, read: &[&str]) {
        self.mark(role, object);
        for (name, value) in object.as_object().into_iter().flatten() {
            let is_read = name == "cache_control" || read.contains(&name.as_str());
            if !is_read && !says_nothing(value) {
                self.other(role, name, value);
            }
        }
    }
}

/// The call members that are read. IDs themselves are not compared; they only match results with
/// calls.
const OF_CALLS: [&str; 12] = [
    "type",
    "id",
    "call_id",
    "name",
    "input",
    "arguments",
    "function",
    "custom",
    "functionCall",
    "function_call",
    "thoughtSignature",
    "thought_signature",
];

/// The result members that are read.
const OF_RESULTS: [&str; 14] = [
    "type",
    "id",
    "role",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "tool_name",
    "name",
    "content",
    "output",
    "is_error",
    "images",
    "functionResponse",
    "function_response",
];

/// Returns the message members that are read.
fn members_of_message(wire: WireFormat, role: Role) -> &'static [&'static str] {
    match (wire.facts().turns, role) {
        (TurnForm::Contents, _) => &["role", "parts"],
        (TurnForm::Items, _) => &["type", "role", "content"],
        (TurnForm::Blocks | TurnForm::Messages | TurnForm::None, Role::Assistant) => &[
            "role",
            "content",
            "images",
            "tool_calls",
            "function_call",
            "thinking",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
        ],
        (TurnForm::Blocks | TurnForm::Messages | TurnForm::None, _) => {
            &["role", "content", "images"]
        }
    }
}

/// Returns `true` if a member has the same meaning as an absent member.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the `type` of a value, or the name of its first member.
fn kind_of(value: &Value) -> &str {
    text_of(value, "type").unwrap_or_else(|| {
        value
            .as_object()
            .and_then(|members| members.keys().next())
            .map_or("value", String::as_str)
    })
}

/// Returns arguments as canonical JSON, even if they are written as text. Text that is not JSON is
/// returned unchanged.
fn arguments(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => {
            json::parse(text).map_or_else(|_| text.clone(), |value| canonical(&value))
        }
        Some(value) => canonical(value),
    }
}

/// Returns the text of a result: the text itself, the text of its parts, the text in Gemini's
/// object, or its JSON.
fn text_of_result(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| text_of(part, "text"))
                .collect();
            texts.join("\n")
        }
        Some(value @ Value::Object(members)) => match members.iter().next() {
            Some((name, Value::String(text)))
                if members.len() == 1
                    && ["output", "error", "result", "content"].contains(&name.as_str()) =>
            {
                text.clone()
            }
            _ => canonical(value),
        },
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
    }
}

/// Matches results with calls: by ID or, without IDs, by the order of each tool's calls.
#[derive(Default)]
struct Calls {
    by_id: HashMap<String, usize>,
    /// The tool of each call.
    tools: Vec<String>,
    answered: HashSet<usize>,
}

impl Calls {
    /// Adds a call, and returns its index.
    fn made(&mut self, id: Option<&str>, name: &str) -> usize {
        let number = self.tools.len();
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.by_id.insert(id.to_owned(), number);
        }
        self.tools.push(name.to_owned());
        number
    }

    /// Returns the index of the call that a result answers.
    fn answered(&mut self, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let number = match id.filter(|id| !id.is_empty()) {
            Some(id) => self.by_id.get(id).copied(),
            None => self.oldest_open(name),
        }?;
        self.answered.insert(number);
        Some(number)
    }

    fn oldest_open(&self, name: Option<&str>) -> Option<usize> {
        (0..self.tools.len()).find(|call| {
            !self.answered.contains(call) && name.is_none_or(|name| name == self.tools[*call])
        })
    }
}
