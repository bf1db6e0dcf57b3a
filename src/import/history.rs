//! Reads the history: converts the turns of a body to messages.

use serde_json::{Map, Value};

use super::lost::Lost;
use super::own::Provider;
use super::pairs::Pairs;
use super::{documents, media, prompt, thinking};
use crate::check::history::{Call, Entry, Kind, Outcome, Part, Role as Speaker, elements};
use crate::conversation::log::{MAX_INPUT_DEPTH, depth};
use crate::conversation::{Block, Image, ItemKind, Message, Role};
use crate::json;
use crate::provider::{TurnForm, WireFormat};

/// Messages, each with the first value in the body that it was read from.
pub(super) struct Messages<'b> {
    pub(super) messages: Vec<Message>,
    pub(super) values: Vec<&'b Value>,
}

/// Reads the turns after the system prompt.
pub(super) fn read<'b>(wire: WireFormat, turns: &[Entry<'b>], lost: &mut Lost<'b>) -> Messages<'b> {
    let said = Messages {
        messages: Vec::new(),
        values: Vec::new(),
    };
    let provider = Provider::of(wire, turns);
    let mut reader = Reader {
        wire,
        provider,
        lost,
        said,
        pairs: Pairs::default(),
        last: None,
    };
    turns.iter().for_each(|turn| reader.turn(turn));
    reader.said
}

/// Reads the question in a body without a history, which consists of text and images.
pub(super) fn question<'b>(body: &'b Value, lost: &mut Lost<'b>) -> Option<Message> {
    let mut blocks: Vec<Block> = body
        .get("prompt")
        .and_then(Value::as_str)
        .map(|text| Block::Text(text.into()))
        .into_iter()
        .collect();
    for value in body
        .get("images")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match media::image(value) {
            Some(image) => blocks.push(Block::Image(image)),
            None => lost.tell(value, NO_IMAGE),
        }
    }
    (!blocks.is_empty()).then_some(Message {
        role: Role::User,
        blocks,
        item: None,
    })
}

const NO_MEMBER: &str = "contexts do not support this";
const NO_IMAGE: &str = "contexts support only text and images here";
const NO_SUCH: &str = "contexts do not support such a part for this role";
const NO_MEDIA: &str = "contexts support only images, documents and audio recordings";

struct Reader<'b, 'l> {
    wire: WireFormat,
    provider: Provider,
    lost: &'l mut Lost<'b>,
    said: Messages<'b>,
    pairs: Pairs,
    /// The speaker of the last message.
    last: Option<Speaker>,
}

impl<'b> Reader<'b, '_> {
    fn turn(&mut self, turn: &Entry<'b>) {
        let speaker = self.provider.speaker(turn);
        match speaker {
            Speaker::System => self.system_item(turn),
            Speaker::Other => self
                .lost
                .tell(turn.value, "contexts do not support turns of this kind"),
            Speaker::User | Speaker::Assistant | Speaker::Tool => self.message(speaker, turn),
        }
        self.last = Some(speaker);
    }

    fn system_item(&mut self, turn: &Entry<'b>) {
        let Some(text) = prompt::text_of(turn, self.lost) else {
            return;
        };
        self.lost.tell(
            turn.value,
            "a system message after the first: it is now an item of kind `notification`",
        );
        let blocks = vec![Block::Text(text.into())];
        self.push(
            turn,
            Message {
                role: Role::System,
                blocks,
                item: Some(ItemKind::Notification),
            },
        );
    }

    fn message(&mut self, speaker: Speaker, turn: &Entry<'b>) {
        let role = if speaker == Speaker::Assistant {
            Role::Assistant
        } else {
            Role::User
        };
        let own = if self.provider.is_own_message(turn.value) {
            self.own(turn.value)
        } else {
            None
        };
        let blocks = match own {
            Some(block) => vec![block],
            None => self.blocks(role, turn),
        };
        // Each result and each Responses API item is a separate turn.
        let goes_on = match speaker {
            Speaker::Tool => true,
            Speaker::Assistant => self.turns() == TurnForm::Items,
            _ => false,
        };
        match self
            .said
            .messages
            .last_mut()
            .filter(|_| goes_on && self.last == Some(speaker))
        {
            Some(message) => message.blocks.extend(blocks),
            None => self.push(
                turn,
                Message {
                    role,
                    blocks,
                    item: None,
                },
            ),
        }
    }

    fn blocks(&mut self, role: Role, turn: &Entry<'b>) -> Vec<Block> {
        let is_answer = role == Role::Assistant;
        let mut blocks = if is_answer {
            thinking::beside(turn.value)
        } else {
            Vec::new()
        };
        let own = if is_answer {
            self.provider.members(turn.value)
        } else {
            Vec::new()
        };
        let (mut read, own): (Vec<&str>, Vec<Block>) = own.into_iter().unzip();
        let images = elements(
            turn.value
                .get("images")
                .filter(|_| read.contains(&"images")),
        );
        for part in turn
            .parts
            .iter()
            .filter(|part| !images.iter().any(|image| std::ptr::eq(image, part.value)))
        {
            self.part(role, turn, part, &mut blocks);
        }
        blocks.extend(own);
        // A Responses API item is both a turn and its only part.
        if turn
            .parts
            .iter()
            .all(|part| !std::ptr::eq(part.value, turn.value))
        {
            self.lost
                .shape(turn.value, &["content", "parts", "images", "tool_calls"]);
            read.extend(self.of_message(turn));
            self.lost.rest(turn.value, &read, NO_MEMBER);
        }
        blocks
    }

    /// Returns a part, item or message in the provider's own form, if requests can contain it.
    fn own(&mut self, value: &'b Value) -> Option<Block> {
        self.provider.block(value, self.lost)
    }

    fn push(&mut self, turn: &Entry<'b>, message: Message) {
        self.said.messages.push(message);
        self.said.values.push(turn.value);
    }

    fn turns(&self) -> TurnForm {
        self.wire.facts().turns
    }

    /// Returns the message members that are read.
    fn of_message(&self, turn: &Entry<'b>) -> Vec<&'static str> {
        match (self.turns(), turn.role) {
            (TurnForm::Contents, _) => vec!["role", "parts"],
            (TurnForm::Items, _) => vec!["type", "role", "content"],
            (TurnForm::Blocks, _) => vec!["role", "content"],
            (TurnForm::Messages | TurnForm::None, Speaker::Assistant) => [
                &["role", "content", "images", "tool_calls", "function_call"],
                &thinking::BESIDE[..],
            ]
            .concat(),
            (TurnForm::Messages | TurnForm::None, _) => vec!["role", "content", "images"],
        }
    }

    fn part(&mut self, role: Role, turn: &Entry<'b>, part: &Part<'b>, blocks: &mut Vec<Block>) {
        let own = if self.provider.is_own(role, part) {
            self.own(part.value)
        } else {
            None
        };
        match own {
            Some(own) => blocks.push(own),
            None => self.common_part(role, turn, part, blocks),
        }
    }

    /// Reads a part of a kind that exists in all formats.
    fn common_part(
        &mut self,
        role: Role,
        turn: &Entry<'b>,
        part: &Part<'b>,
        blocks: &mut Vec<Block>,
    ) {
        match (part.kind, role) {
            (Kind::Text(text), _) => self.text(role, part.value, text, blocks),
            (Kind::Call(call), Role::Assistant) => match unknown_call(self.wire, part.value) {
                Some(kind) => self.lost.tell(
                    part.value,
                    format!("contexts do not support calls of type `{kind}`"),
                ),
                None => {
                    signed(part.value, blocks);
                    let block = self.call(part.value, &call);
                    blocks.push(block);
                }
            },
            (Kind::Result(outcome), Role::User) => blocks.push(self.result(part.value, &outcome)),
            // Reasoning next to the content was already read.
            (Kind::Thinking, Role::Assistant) if part.value.is_string() => {}
            (Kind::Thinking, Role::Assistant) => self.thinking(part.value, blocks),
            (Kind::Media, Role::User) => match self.media(part.value) {
                Some(block) => blocks.push(block),
                None => self.own_part(role, turn, part, NO_MEDIA, blocks),
            },
            (Kind::Other(name), _) if !name.is_empty() => {
                self.own_part(
                    role,
                    turn,
                    part,
                    &format!("contexts do not support parts of type `{name}`"),
                    blocks,
                );
            }
            (Kind::Media | Kind::Other(_), _) => self.own_part(role, turn, part, NO_SUCH, blocks),
            _ => self.lost.tell(part.value, NO_SUCH),
        }
    }

    /// Reads a part of a kind that only this provider has. If requests cannot contain the part, it
    /// is lost.
    fn own_part(
        &mut self,
        role: Role,
        turn: &Entry<'b>,
        part: &Part<'b>,
        why: &str,
        blocks: &mut Vec<Block>,
    ) {
        let is_taken = self.provider.takes_parts(role, turn, part);
        match is_taken.then(|| self.own(part.value)).flatten() {
            Some(own) => blocks.push(own),
            None => self.lost.tell(part.value, why),
        }
    }

    fn text(&mut self, role: Role, value: &'b Value, text: &str, blocks: &mut Vec<Block>) {
        let is_signed = role == Role::Assistant;
        if is_signed {
            signed(value, blocks);
        }
        blocks.push(Block::Text(text.into()));
        let of_signature: &[&str] = if is_signed { &thinking::SIGNATURE } else { &[] };
        self.lost.rest(
            value,
            &[&["type", "text", "refusal"], of_signature].concat(),
            NO_MEMBER,
        );
    }

    /// Reads an image, a document or a recording.
    fn media(&mut self, value: &'b Value) -> Option<Block> {
        if let Some(image) = media::image(value) {
            self.image_rest(value);
            return Some(Block::Image(image));
        }
        let block = documents::block(value)?;
        documents::rest(value, &block, self.lost);
        Some(block)
    }

    fn image_rest(&mut self, value: &'b Value) {
        const READ: [&str; 7] = [
            "type",
            "source",
            "image_url",
            "inlineData",
            "inline_data",
            "fileData",
            "file_data",
        ];
        // A default value need not be kept.
        let detail: &[&str] = if value.get("detail").is_some_and(|detail| detail == "auto") {
            &["detail"]
        } else {
            &[]
        };
        self.lost
            .rest(value, &[&READ[..], detail].concat(), NO_MEMBER);
        if let Some(inner) = value.get("image_url") {
            self.lost.rest(inner, &["url"], NO_MEMBER);
        }
    }

    fn thinking(&mut self, value: &'b Value, blocks: &mut Vec<Block>) {
        const READ: [&str; 12] = [
            "type",
            "thinking",
            "signature",
            "data",
            "closed",
            "text",
            "thought",
            "thoughtSignature",
            "thought_signature",
            "summary",
            "content",
            "encrypted_content",
        ];
        match thinking::block(value) {
            Some(block) => {
                blocks.push(block);
                self.lost.rest(value, &READ, NO_MEMBER);
            }
            None => self
                .lost
                .tell(value, "reasoning that is stored only on the server"),
        }
    }

    fn call(&mut self, value: &'b Value, call: &Call<'b>) -> Block {
        let of_part: &[&str] = match self.turns() {
            TurnForm::Blocks => &["type", "id", "name", "input"],
            TurnForm::Items => &["type", "call_id", "name", "arguments", "input"],
            TurnForm::Contents => &[
                "functionCall",
                "function_call",
                "thoughtSignature",
                "thought_signature",
            ],
            // In the older form, the call is the function itself.
            TurnForm::Messages | TurnForm::None => {
                &["type", "id", "function", "custom", "name", "arguments"]
            }
        };
        self.lost.rest(value, of_part, NO_MEMBER);
        let inner = ["function", "custom"]
            .into_iter()
            .find_map(|name| value.get(name))
            .unwrap_or(call.identified);
        if !std::ptr::eq(inner, value) {
            self.lost.rest(
                inner,
                &["id", "name", "arguments", "args", "input"],
                NO_MEMBER,
            );
        }
        let name = call.name.unwrap_or_default();
        let free = inner.get("input").filter(|_| call.arguments.is_none());
        let input = self.arguments(call.arguments.or(free));
        Block::ToolUse {
            id: self.pairs.called(call.id, name).into(),
            name: name.into(),
            input,
        }
    }

    /// Returns arguments as an object. Some formats write them as text.
    fn arguments(&mut self, arguments: Option<&'b Value>) -> Value {
        let Some(arguments) = arguments else {
            return empty();
        };
        let parsed = match arguments {
            Value::String(text) if text.trim().is_empty() => Some(empty()),
            Value::String(text) => json::parse(text).ok(),
            other => Some(other.clone()),
        };
        match parsed {
            Some(object @ Value::Object(_)) if depth(&object) <= MAX_INPUT_DEPTH => object,
            Some(Value::Null) => empty(),
            Some(other) if depth(&other) > MAX_INPUT_DEPTH => {
                self.lost
                    .tell(arguments, "arguments that are nested too deeply");
                empty()
            }
            _ => {
                self.lost.tell(
                    arguments,
                    "arguments that are not a JSON object: they are now an object with a member `input`",
                );
                Value::Object(Map::from_iter([("input".to_owned(), arguments.clone())]))
            }
        }
    }

    fn result(&mut self, value: &'b Value, outcome: &Outcome<'b>) -> Block {
        let id = self.pairs.answered(outcome.id, outcome.name).into();
        let (content, images) = match self.turns() {
            TurnForm::Contents => self.response(value, outcome.identified),
            TurnForm::Blocks => {
                self.lost.shape(value, &["content"]);
                self.lost.rest(
                    value,
                    &["type", "tool_use_id", "content", "is_error"],
                    NO_MEMBER,
                );
                self.content(value.get("content"))
            }
            TurnForm::Items => {
                self.lost.shape(value, &["output"]);
                self.lost
                    .rest(value, &["type", "call_id", "output"], NO_MEMBER);
                self.content(value.get("output"))
            }
            TurnForm::Messages | TurnForm::None => {
                const READ: [&str; 6] = [
                    "role",
                    "content",
                    "tool_call_id",
                    "tool_name",
                    "name",
                    "images",
                ];
                self.lost.shape(value, &["content", "images"]);
                self.lost.rest(value, &READ, NO_MEMBER);
                let (text, mut images) = self.content(value.get("content"));
                images.extend(self.content(value.get("images")).1);
                (text, images)
            }
        };
        Block::ToolResult {
            id,
            content: content.into(),
            is_error: outcome.is_error,
            images,
        }
    }

    /// Reads the text and images of a result. The content is a string or a list of parts.
    fn content(&mut self, content: Option<&'b Value>) -> (String, Vec<Image>) {
        let parts = match content {
            Some(Value::String(text)) => return (text.clone(), Vec::new()),
            Some(Value::Array(parts)) => parts,
            _ => return (String::new(), Vec::new()),
        };
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in parts {
            match (part.get("text").and_then(Value::as_str), media::image(part)) {
                (Some(text), _) => {
                    if !texts.is_empty() {
                        self.lost
                            .tell(part, "a result contains a single text: this part follows the earlier text on a new line");
                    }
                    texts.push(text);
                    self.lost.rest(part, &["type", "text"], NO_MEMBER);
                }
                (None, Some(image)) => {
                    images.push(image);
                    self.image_rest(part);
                }
                (None, None) => self.lost.tell(part, NO_IMAGE),
            }
        }
        (texts.join("\n"), images)
    }

    /// Reads the response of a Gemini function, which is an object. Returns the text in the object,
    /// or the whole object as JSON.
    fn response(&mut self, part: &'b Value, function: &'b Value) -> (String, Vec<Image>) {
        self.lost
            .rest(part, &["functionResponse", "function_response"], NO_MEMBER);
        self.lost
            .rest(function, &["id", "name", "response", "parts"], NO_MEMBER);
        let text = match function.get("response") {
            Some(response @ Value::Object(members)) => match members.iter().next() {
                Some((name, Value::String(text)))
                    if members.len() == 1 && ["output", "error"].contains(&name.as_str()) =>
                {
                    text.clone()
                }
                _ => {
                    self.lost.tell(
                        response,
                        "tool results must be text: this value was converted to a JSON string",
                    );
                    response.to_string()
                }
            },
            _ => String::new(),
        };
        (text, self.content(function.get("parts")).1)
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// Returns the kind of a Chat Completions call that is neither a function call nor a custom tool
/// call. The locations of the name and arguments of such a call are unknown.
fn unknown_call(wire: WireFormat, call: &Value) -> Option<&str> {
    let kind = call.get("type")?.as_str()?;
    let is_read = ["function", "custom", "name"]
        .iter()
        .any(|name| call.get(name).is_some());
    match wire {
        WireFormat::OpenAiChat => (!is_read).then_some(kind),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => None,
    }
}

/// Adds Gemini's signature on a call or text to the thought before it.
fn signed(value: &Value, blocks: &mut Vec<Block>) {
    let Some(signed) = thinking::signature(value) else {
        return;
    };
    match blocks.last_mut() {
        Some(Block::Thinking { signature, .. }) if signature.is_empty() => {
            *signature = signed.into();
        }
        _ => blocks.push(thinking::thought("", signed)),
    }
}
