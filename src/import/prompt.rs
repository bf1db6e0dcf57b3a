//! Reads the system prompt as layers.

use serde_json::Value;

use super::lost::Lost;
use crate::check::history::{Entry, Kind};
use crate::conversation::SystemLayer;
use crate::provider::WireFormat;

/// Returns the members of a body that contain a system prompt.
pub(super) fn members(wire: WireFormat) -> &'static [&'static str] {
    wire.facts().system
}

/// Returns a layer for each text in the member, and for each system message at the start of the
/// history.
pub(super) fn layers<'b>(
    body: &'b Value,
    wire: WireFormat,
    leading: &[Entry<'b>],
    lost: &mut Lost<'b>,
) -> Vec<SystemLayer> {
    let mut texts = Vec::new();
    for member in members(wire).iter().filter_map(|name| body.get(*name)) {
        member_texts(member, &mut texts, lost);
    }
    for (index, entry) in leading.iter().enumerate() {
        // The system message is separate from the prompt if the format has the prompt outside the
        // history, or if another system message precedes this one.
        if index > 0 || !members(wire).is_empty() {
            lost.tell(
                entry.value,
                "a system message after the prompt: it is now a layer of the system prompt",
            );
        }
        texts.extend(text_of(entry, lost));
    }
    named(texts)
}

/// Returns layers with these contents, in order.
pub(super) fn named(texts: Vec<String>) -> Vec<SystemLayer> {
    let is_alone = texts.len() == 1;
    texts
        .into_iter()
        .enumerate()
        .map(|(index, text)| {
            let name = if is_alone {
                "system".to_owned()
            } else {
                format!("system-{}", index + 1)
            };
            SystemLayer {
                name: name.into(),
                priority: 100,
                text: text.into(),
            }
        })
        .collect()
}

/// Reads a string, a list of text blocks (Anthropic), or content with parts (Gemini).
fn member_texts<'b>(member: &'b Value, texts: &mut Vec<String>, lost: &mut Lost<'b>) {
    match member {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(blocks) => {
            blocks
                .iter()
                .for_each(|block| match block.get("text").and_then(Value::as_str) {
                    Some(text) => {
                        texts.push(text.to_owned());
                        lost.rest(block, &["type", "text"], "contexts do not support this");
                    }
                    None => lost.tell(block, "a system prompt can be only text"),
                });
        }
        Value::Object(_) => {
            if let Some(parts) = member.get("parts") {
                member_texts(parts, texts, lost);
            }
            lost.rest(member, &["role", "parts"], "contexts do not support this");
        }
        _ => lost.tell(member, "it is not a string"),
    }
}

/// Returns the text of a system message; `None` if the message has none.
pub(super) fn text_of<'b>(entry: &Entry<'b>, lost: &mut Lost<'b>) -> Option<String> {
    lost.rest(
        entry.value,
        &["type", "role", "content"],
        "contexts do not support this",
    );
    let mut texts = Vec::new();
    for part in &entry.parts {
        match part.kind {
            Kind::Text(text) => {
                texts.push(text);
                lost.rest(
                    part.value,
                    &["type", "text", "refusal"],
                    "contexts do not support this",
                );
            }
            _ => lost.tell(part.value, "a system message can contain only text"),
        }
    }
    (!texts.is_empty()).then(|| texts.concat())
}
