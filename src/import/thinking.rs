//! Reads the model's reasoning from bodies of all wire formats.

use serde_json::Value;

use crate::conversation::Block;
use crate::provider::ClientApi;

/// The text that joins the parts of one thought, for formats that split thoughts.
const BETWEEN: &str = "\n\n";

/// Returns the reasoning in a part, which is a block, a chunk, an item, or text.
pub(super) fn block(part: &Value) -> Option<Block> {
    match text(part, "type") {
        "redacted_thinking" => Some(Block::RedactedThinking {
            data: text(part, "data").into(),
            origin: None,
        }),
        "reasoning" => item(part),
        "thinking" => Some(thought(
            &words(part.get("thinking")),
            text(part, "signature"),
        )),
        _ => match part.as_str() {
            Some(text) => Some(thought(text, "")),
            None => Some(thought(
                text(part, "text"),
                signature(part).unwrap_or_default(),
            )),
        },
    }
}

fn text<'v>(part: &'v Value, name: &str) -> &'v str {
    part.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a thinking block whose origin is unknown.
pub(super) fn thought(text: &str, signature: &str) -> Block {
    Block::Thinking {
        text: text.into(),
        signature: signature.into(),
        origin: None,
    }
}

/// The names of Gemini's signature on a part.
pub(super) const SIGNATURE: [&str; 2] = ["thoughtSignature", "thought_signature"];

/// Returns Gemini's signature on a part. The documented placeholder for calls from other models is
/// not a signature.
pub(super) fn signature(part: &Value) -> Option<&str> {
    let signature = SIGNATURE
        .into_iter()
        .find_map(|name| part.get(name)?.as_str())?;
    (signature != "skip_thought_signature_validator").then_some(signature)
}

/// Reads a Responses API item; returns `None` if it only refers to content stored on the server.
fn item(item: &Value) -> Option<Block> {
    let said: Vec<String> = ["summary", "content"]
        .into_iter()
        .map(|name| words(item.get(name)))
        .collect();
    let text = said
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(BETWEEN);
    let signature = item
        .get("encrypted_content")
        .and_then(Value::as_str)
        .unwrap_or_default();
    (!text.is_empty() || !signature.is_empty()).then(|| thought(&text, signature))
}

/// Returns a string, or the joined text of parts.
fn words(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join(BETWEEN)
        }
        _ => String::new(),
    }
}

/// The members next to a message's content that contain reasoning, under the names that Ollama and
/// servers with Chat Completions use.
pub(crate) const BESIDE: [&str; 4] = [
    "thinking",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
];

/// Returns the reasoning next to a message's content. If there are details, the text next to them
/// is ignored, because the details contain the same text.
pub(super) fn beside(message: &Value) -> Vec<Block> {
    if let Some(details) = message.get("reasoning_details").and_then(Value::as_array) {
        return details.iter().filter_map(detail).collect();
    }
    let text = BESIDE
        .into_iter()
        .find_map(|name| message.get(name)?.as_str());
    text.filter(|text| !text.is_empty())
        .map(|text| thought(text, ""))
        .into_iter()
        .collect()
}

/// Reads a detail as `OpenRouter` writes it. `OpenRouter` accepts only its own details back.
fn detail(detail: &Value) -> Option<Block> {
    let origin = Some(ClientApi::OpenRouter.name().into());
    match text_of(detail, "type")? {
        "reasoning.encrypted" => Some(Block::RedactedThinking {
            data: text_of(detail, "data")?.into(),
            origin,
        }),
        _ => Some(Block::Thinking {
            text: text_of(detail, "text")
                .or_else(|| text_of(detail, "summary"))?
                .into(),
            signature: text_of(detail, "signature").unwrap_or_default().into(),
            origin,
        }),
    }
}

fn text_of<'v>(detail: &'v Value, name: &str) -> Option<&'v str> {
    detail.get(name).and_then(Value::as_str)
}
