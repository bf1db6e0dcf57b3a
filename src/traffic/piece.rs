//! Splits a request body into pieces, in the order in which servers read them. Each piece has
//! fingerprints and a size.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::FixedState;
use serde_json::Value;

use super::read::{holds, text};
use crate::check::prefix::{Part, parts};
use crate::provider::WireFormat;

/// The part of a request to which a piece belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Share {
    /// Definitions of tools.
    Tools,
    /// The system prompt.
    System,
    /// The messages so far.
    History,
    /// Tool results.
    Results,
}

impl Share {
    /// All parts, in the order in which they are displayed.
    pub const ALL: [Share; 4] = [Share::Tools, Share::System, Share::History, Share::Results];

    /// Returns the part's lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Share::Tools => "tools",
            Share::System => "system",
            Share::History => "history",
            Share::Results => "results",
        }
    }

    /// Returns `true` if this part precedes the history.
    pub(super) fn is_fixed(self) -> bool {
        match self {
            Share::Tools | Share::System => true,
            Share::History | Share::Results => false,
        }
    }
}

/// A piece of a request: a tool, a block of the system prompt, or a message.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The fingerprint. It is the same for all content that a server treats as equal.
    pub(super) hash: u64,
    /// A fingerprint that also ignores the order of object members.
    pub(super) loose: u64,
    pub(super) share: Share,
    pub(super) tokens: u64,
    /// The member of the body that contains the piece; the index within it is the next field.
    pub(super) member: &'static str,
    pub(super) index: Option<usize>,
    /// The number of thinking blocks with a signature.
    pub(super) signed: u32,
    /// The role of a message, or a tool name.
    pub(super) label: Arc<str>,
    /// The last cache breakpoint in the piece, if there is one.
    pub(super) mark: Option<Mark>,
    /// The JSON of the piece, if it is kept.
    pub(super) text: Option<Arc<str>>,
}

/// A breakpoint of the prompt cache, with its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) is_hour: bool,
}

/// The maximum size of a piece whose JSON is kept, in bytes. For a larger piece, the fingerprint
/// shows that the piece changed, but not where.
pub(super) const LONGEST_TEXT: usize = 256 << 10;

impl Piece {
    /// Returns the location of the piece in the body, such as `system[0]` or `messages[12]`.
    pub(super) fn place(&self) -> String {
        match self.index {
            Some(index) => format!("{}[{index}]", self.member),
            None => self.member.to_owned(),
        }
    }

    /// Parses the JSON of the piece, if it is kept.
    pub(super) fn value(&self) -> Option<Value> {
        serde_json::from_str(self.text.as_ref()?).ok()
    }

    /// Keeps the JSON of the piece, unless it is too long.
    pub(super) fn keep(&mut self, value: &Value) {
        let text = value.to_string();
        self.text = (text.len() <= LONGEST_TEXT).then(|| text.into());
    }
}

/// Splits a body into pieces, without sizes and JSON.
pub(super) fn cut(body: &Value) -> Vec<Piece> {
    let mut is_leading = true;
    let mut pieces = Vec::new();
    for part in parts(|name| body.get(name)) {
        let share = share(&part, is_leading);
        is_leading = is_leading && share.is_fixed();
        pieces.push(piece(&part, share));
    }
    pieces
}

/// Returns the piece for one message of a transcript.
pub(super) fn of_message(member: &'static str, index: usize, value: &Value) -> Piece {
    let part = Part {
        member,
        index: Some(index),
        value,
    };
    piece(&part, share(&part, false))
}

/// Returns the piece for a member that precedes the history.
pub(super) fn of_prompt(member: &'static str, value: &Value) -> Piece {
    piece(
        &Part {
            member,
            index: None,
            value,
        },
        Share::System,
    )
}

fn piece(part: &Part<'_>, share: Share) -> Piece {
    Piece {
        hash: fingerprint(part.value, Order::OfArguments),
        loose: fingerprint(part.value, Order::Sorted),
        share,
        tokens: 0,
        member: part.member,
        index: part.index,
        signed: signed(part.value),
        label: label(part.value).into(),
        mark: mark(part.value),
        text: None,
    }
}

fn share(part: &Part<'_>, is_leading: bool) -> Share {
    match part.member {
        "tools" | "tool_config" | "toolConfig" => Share::Tools,
        "system" | "instructions" | "system_instruction" | "systemInstruction" => Share::System,
        _ if is_leading && is_system(part.value) => Share::System,
        _ if is_result(part.value) => Share::Results,
        _ => Share::History,
    }
}

fn is_system(message: &Value) -> bool {
    message
        .get("role")
        .and_then(Value::as_str)
        .is_some_and(|role| matches!(role, "system" | "developer"))
}

/// Returns `true` for a message with tool results.
fn is_result(message: &Value) -> bool {
    let is_of_tool = matches!(text(message, "role"), Some("tool" | "function"));
    if is_of_tool
        || matches!(
            text(message, "type"),
            Some("function_call_output" | "custom_tool_call_output")
        )
    {
        return true;
    }
    blocks(message).iter().any(|block| {
        block.get("type").is_some_and(|kind| kind == "tool_result")
            || block.get("functionResponse").is_some()
            || block.get("function_response").is_some()
    })
}

fn blocks(message: &Value) -> &[Value] {
    let list = ["content", "parts"]
        .into_iter()
        .find_map(|name| message.get(name)?.as_array());
    list.map_or(&[], Vec::as_slice)
}

/// Returns a tool name, or else the role or type of a message.
fn label(value: &Value) -> String {
    let names = ["/name", "/function/name", "/role", "/type"];
    let found = names.into_iter().find_map(|at| value.pointer(at)?.as_str());
    let found = found.or_else(|| value.as_object()?.keys().next().map(String::as_str));
    found.unwrap_or_default().chars().take(80).collect()
}

/// Returns the number of thinking blocks with a signature.
fn signed(value: &Value) -> u32 {
    let own = std::slice::from_ref(value).iter();
    u32::try_from(
        own.chain(blocks(value))
            .filter(|block| is_signed(block))
            .count(),
    )
    .unwrap_or(u32::MAX)
}

fn is_signed(block: &Value) -> bool {
    match text(block, "type") {
        Some("thinking") => holds(block, "signature"),
        Some("redacted_thinking") => holds(block, "data"),
        Some("reasoning") => holds(block, "encrypted_content"),
        _ => holds(block, "thoughtSignature") || holds(block, "thought_signature"),
    }
}

/// Returns the last breakpoint of a piece.
fn mark(value: &Value) -> Option<Mark> {
    let own = value.get(CACHE_CONTROL).filter(|mark| !mark.is_null());
    let own = own.map(|mark| Mark {
        is_hour: mark.get("ttl").is_some_and(|ttl| ttl == "1h"),
    });
    own.or_else(|| blocks(value).iter().rev().find_map(mark))
}

const CACHE_CONTROL: &str = "cache_control";

/// The object members whose order affects a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The order of members has no effect.
    Sorted,
    /// The order has an effect inside arguments and schemas, which servers pass to the model as JSON.
    OfArguments,
    /// The order of all members has an effect.
    Written,
}

/// The names of members whose JSON the model sees unchanged.
const FREE: [&str; 9] = [
    "input",
    "args",
    "arguments",
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "response",
    "schema",
];

/// Returns a hash of a value, ignoring cache breakpoints. A string and a list with one text block
/// have the same hash.
fn fingerprint(value: &Value, order: Order) -> u64 {
    let mut hasher = FixedState::with_seed(SEED).build_hasher();
    feed(value, order, &mut hasher);
    hasher.finish()
}

const SEED: u64 = 0x7265_7163;

fn feed(value: &Value, order: Order, hasher: &mut impl Hasher) {
    match plain_text(value) {
        Some(text) => {
            hasher.write_u8(1);
            hasher.write(text.as_bytes());
            hasher.write_u8(0xff);
        }
        None => feed_other(value, order, hasher),
    }
}

fn feed_other(value: &Value, order: Order, hasher: &mut impl Hasher) {
    match value {
        Value::Null => hasher.write_u8(2),
        Value::Bool(is_true) => hasher.write_u8(3 + u8::from(*is_true)),
        Value::Number(number) => {
            hasher.write_u8(5);
            hasher.write(number.to_string().as_bytes());
            hasher.write_u8(0xff);
        }
        Value::String(text) => {
            hasher.write_u8(1);
            hasher.write(text.as_bytes());
            hasher.write_u8(0xff);
        }
        Value::Array(elements) => {
            hasher.write_u8(6);
            hasher.write_usize(elements.len());
            elements
                .iter()
                .for_each(|element| feed(element, order, hasher));
        }
        Value::Object(members) => {
            hasher.write_u8(7);
            let mut members: Vec<(&String, &Value)> = members
                .iter()
                .filter(|(name, _)| *name != CACHE_CONTROL)
                .collect();
            if order != Order::Written {
                members.sort_unstable_by_key(|(name, _)| *name);
            }
            hasher.write_usize(members.len());
            for (name, value) in members {
                hasher.write(name.as_bytes());
                hasher.write_u8(0xff);
                feed(value, within(order, name), hasher);
            }
        }
    }
}

fn within(order: Order, member: &str) -> Order {
    match order {
        Order::OfArguments if FREE.contains(&member) => Order::Written,
        order => order,
    }
}

/// Returns the text of a block that has no other content, or of a list with one such block; `None`
/// for other values.
fn plain_text(value: &Value) -> Option<&str> {
    match value {
        Value::Array(blocks) => match blocks.as_slice() {
            [block @ Value::Object(_)] => plain_text(block),
            _ => None,
        },
        Value::Object(members) => {
            let is_plain = members
                .keys()
                .all(|name| matches!(name.as_str(), "type" | "text" | CACHE_CONTROL));
            let is_text = members
                .get("type")
                .is_none_or(|kind| kind == "text" || kind == "input_text");
            members
                .get("text")
                .filter(|_| is_plain && is_text)?
                .as_str()
        }
        _ => None,
    }
}

/// Extends the fingerprint of a history with the fingerprint of one more message.
pub(super) fn chained(before: u64, hash: u64) -> u64 {
    let mut hasher = FixedState::with_seed(before).build_hasher();
    hasher.write_u64(hash);
    hasher.finish()
}

/// Returns the fingerprint of an empty history in a wire format.
pub(super) fn first_link(wire: WireFormat) -> u64 {
    chained(SEED, fingerprint(&Value::from(wire.name()), Order::Sorted))
}

/// Returns the fingerprint of a name.
pub(super) fn of_name(name: &str) -> u64 {
    fingerprint(&Value::from(name), Order::Sorted)
}

/// Returns the fingerprint of a setting.
pub(super) fn of_setting(value: &Value) -> u64 {
    fingerprint(value, Order::Sorted)
}

pub(super) fn is_answer(piece: &Piece) -> bool {
    matches!(&*piece.label, "assistant" | "model" | "reasoning")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn breakpoints_and_the_two_forms_of_a_text_are_the_same() {
        let plain = cut(&json!({"system": "a", "messages": [{"role": "user", "content": "b"}]}));
        let marked = cut(&json!({
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
                "role": "user"}],
        }));
        let hashes = |pieces: &[Piece]| pieces.iter().map(|piece| piece.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&plain), hashes(&marked));
        assert_eq!(marked[1].mark, Some(Mark { is_hour: true }));
        assert_eq!(marked[1].place(), "messages[0]");
    }

    #[test]
    fn the_order_of_arguments_counts_and_that_of_a_message_does_not() {
        let message =
            |input: Value| json!([{"type": "tool_use", "id": "a", "name": "n", "input": input}]);
        let body = |input: &str| {
            let input = serde_json::from_str(input).expect("JSON");
            cut(&json!({"messages": [{"role": "assistant", "content": message(input)}]})).remove(0)
        };
        let (first, second) = (body(r#"{"a": 1, "b": 2}"#), body(r#"{"b": 2, "a": 1}"#));
        assert_ne!(first.hash, second.hash);
        assert_eq!(first.loose, second.loose);
    }

    #[test]
    fn shares_and_signatures() {
        let body = json!({"tools": [{"type": "function", "function": {"name": "read"}}], "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "x"}]},
            {"role": "tool", "content": "r"}, {"role": "system", "content": "late"},
        ]});
        let pieces = cut(&body);
        let shares: Vec<Share> = pieces.iter().map(|piece| piece.share).collect();
        let names: Vec<&str> = shares.iter().map(|share| share.name()).collect();
        assert_eq!(
            names,
            [
                "tools", "system", "history", "history", "results", "history"
            ]
        );
        assert_eq!((pieces[3].signed, &*pieces[0].label), (1, "read"));
    }
}
