//! A digest of a request, which is enough to check later whether another request begins with this
//! one.

use std::fmt::Write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::own;
use crate::conversation::log::Sent;
use crate::text::hex;
use crate::unit::Body;

/// Returns the digest of a request.
pub(crate) fn sent(body: &Body) -> Sent {
    let parts = texts(body);
    Sent {
        parts: parts.len(),
        digest: digest(&parts).into(),
    }
}

/// Returns `true` if a request begins with the whole content of an earlier one.
pub(crate) fn begins_with(body: &Body, sent: &Sent) -> bool {
    texts(body)
        .get(..sent.parts)
        .is_some_and(|parts| digest(parts) == *sent.digest)
}

/// Returns a 128-bit digest. It need not be cryptographic, because nobody benefits from a
/// collision.
fn digest(parts: &[String]) -> String {
    let mut hasher = Sha256::new();
    // The parts are JSON, so none contains a line break.
    parts
        .iter()
        .for_each(|part| hasher.update(format!("{part}\n")));
    hex(&hasher.finalize()[..16])
}

/// Returns the content of a request in pieces, in the order in which servers read it. The pieces
/// stay the same if adjacent messages with the same role are merged, or if text becomes a list of
/// one block.
fn texts(body: &Body) -> Vec<String> {
    own(body)
        .into_iter()
        .flat_map(|part| of_part(part.member, part.grows(), part.value))
        .collect()
}

fn of_part(member: &str, is_message: bool, value: &Value) -> Vec<String> {
    match (value.as_object().filter(|_| is_message), value) {
        (Some(message), _) => {
            let mut beside = message.clone();
            let content = beside.shift_remove("content").unwrap_or_default();
            let beside = written(member, &Value::Object(beside));
            blocks(&content)
                .iter()
                .map(|block| written(&beside, block))
                .collect()
        }
        (None, Value::String(_)) => blocks(value)
            .iter()
            .map(|block| written(member, block))
            .collect(),
        (None, value) => vec![written(member, value)],
    }
}

fn written(begins: &str, value: &Value) -> String {
    let mut text = begins.to_owned();
    write(value, &mut text);
    text
}

/// Returns the blocks in a message's content; text counts as one block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::String(_) => {
            let kind = ("type".to_owned(), Value::from("text"));
            vec![Value::Object(Map::from_iter([
                kind,
                ("text".to_owned(), content.clone()),
            ]))]
        }
        other => vec![other.clone()],
    }
}

/// Writes a value as canonical JSON: sorted members, without cache breakpoints.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .filter(|(name, _)| *name != super::place::MARK)
                .collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                match value {
                    Value::String(_) if name == "content" => {
                        write(&Value::Array(blocks(value)), text);
                    }
                    value => write(value, text),
                }
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write(element, text);
                text.push(',');
            }
            text.push(']');
        }
        value => {
            let _ = write!(text, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the pieces of messages.
    fn pieces(messages: &Value) -> Vec<String> {
        let messages = messages.as_array().expect("a list");
        messages
            .iter()
            .flat_map(|message| of_part("messages", true, message))
            .collect()
    }

    #[test]
    fn what_servers_read_alike_is_alike() {
        let earlier = json!([{"role": "user", "content": "one"}]);
        let later = json!([{"content": [
            {"text": "one", "type": "text", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "two"},
        ], "role": "user"}, {"role": "assistant", "content": "three"}]);
        assert_eq!(pieces(&earlier), pieces(&later)[..1]);
        assert_eq!(pieces(&later).len(), 3);
        for other in [
            json!([{"role": "assistant", "content": "one"}]),
            json!([{"role": "user", "content": "One"}]),
        ] {
            assert_ne!(digest(&pieces(&earlier)), digest(&pieces(&other)));
        }
    }

    #[test]
    fn a_system_prompt_may_become_a_list() {
        let block = json!({"type": "text", "text": "Be brief."});
        assert_eq!(
            of_part("system", false, &json!("Be brief.")),
            of_part("system", false, &block)
        );
        assert_ne!(
            of_part("system", false, &block),
            of_part("tools", false, &block)
        );
    }
}
