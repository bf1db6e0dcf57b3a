//! Replaces text with meaningless text. Each character is replaced with one of the same class, so
//! that lengths and structure stay the same.
//!
//! Roles, tool names, object keys and media types stay unchanged, as do the format's own words in
//! provider blocks. In schemas, only prose and data are replaced. IDs become `call_1`, `call_2` and
//! so on, consistently in all places.

mod own;
mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::media;
use crate::conversation::{Block, Conversation, Document, DocumentSource, Image, Task};

pub(super) fn conversation(conversation: &mut Conversation) {
    match &mut conversation.task {
        Task::Chat(history) => {
            let mut ids = Ids::default();
            history
                .iter_mut()
                .flat_map(|message| &mut message.blocks)
                .for_each(|it| block(it, &mut ids));
        }
        Task::Completion { prefix, suffix } => {
            [prefix, suffix].into_iter().for_each(|it| *it = text(it));
        }
    }
    conversation
        .system_layers
        .iter_mut()
        .for_each(|layer| shared(&mut layer.text));
    for file in &mut conversation.files {
        shared(&mut file.file_path);
        shared(&mut file.content);
    }
    for tool in &mut conversation.tools {
        shared(&mut tool.description);
        schema::redact(&mut tool.schema);
    }
}

fn block(block: &mut Block, ids: &mut Ids) {
    match block {
        Block::Text(it) => shared(it),
        Block::Thinking {
            text, signature, ..
        } => {
            shared(text);
            *signature = opaque(signature).into();
        }
        Block::RedactedThinking { data, .. } => *data = opaque(data).into(),
        Block::ToolUse { id, input, .. } => {
            *id = ids.of(id);
            value(input);
        }
        Block::ToolResult {
            id,
            content,
            images,
            ..
        } => {
            *id = ids.of(id);
            shared(content);
            images.iter_mut().for_each(image);
        }
        Block::Image(it) => image(it),
        Block::Document(it) => document(it),
        Block::Audio(it) => {
            it.data = opaque(&it.data).into();
            it.media_type = kind(&it.media_type).into();
        }
        Block::Stored(it) => it.reference = opaque(&it.reference).into(),
        Block::Provider(it) => {
            own::redact(&mut it.data, ids);
            it.text.iter_mut().for_each(shared);
        }
    }
}

fn document(it: &mut Document) {
    let redacted = match it.source {
        DocumentSource::Base64 => opaque(&it.data),
        DocumentSource::Url => url(&it.data),
        DocumentSource::File | DocumentSource::Text => text(&it.data),
    };
    it.data = redacted.into();
    it.media_type = kind(&it.media_type).into();
    it.title.iter_mut().for_each(shared);
}

/// Returns a media type without its parameters, which may contain file names.
fn kind(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn shared(it: &mut Arc<str>) {
    *it = text(it).into();
}

/// Returns a meaningless string with the same length in bytes.
fn text(original: &str) -> String {
    original.chars().map(character).collect()
}

/// Returns a character of the same class with the same number of bytes.
fn character(c: char) -> char {
    match (c, c.len_utf8()) {
        ('a'..='z', _) => 'x',
        ('A'..='Z', _) => 'X',
        ('0'..='9', _) => '0',
        (_, 1) => c,
        (_, bytes) if c.is_alphabetic() => ['é', '字', '𝐱'][bytes - 2],
        (_, bytes) if c.is_numeric() => ['٠', '０', '𝟎'][bytes - 2],
        _ => c,
    }
}

/// Replaces every string and number in a value. Keys stay unchanged.
fn value(it: &mut Value) {
    match it {
        Value::String(string) => *string = text(string),
        Value::Number(number) => *number = like(number),
        Value::Array(elements) => elements.iter_mut().for_each(value),
        Value::Object(members) => members.values_mut().for_each(value),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns a number with the same number of digits: the first is 1, the others are 0.
fn like(number: &Number) -> Number {
    let mut is_first = true;
    let written = number.to_string();
    let digits = written.chars().map(|c| match c {
        '1'..='9' if std::mem::take(&mut is_first) => '1',
        '0'..='9' => '0',
        other => other,
    });
    digits
        .collect::<String>()
        .parse()
        .unwrap_or_else(|_| Number::from(0))
}

fn image(image: &mut Image) {
    let redacted = match image.is_url {
        true => url(&image.data),
        false => {
            let (kind, rest) = image.data.split_at(media::length_of_kind(&image.data));
            format!("{kind}{}", base64(rest))
        }
    };
    image.data = redacted.into();
    image.media_type = kind(&image.media_type).into();
}

/// Returns a URL with the same scheme, if the scheme is common.
fn url(original: &str) -> String {
    const SCHEMES: [&str; 3] = ["https", "http", "gs"];
    match original
        .split_once("://")
        .filter(|(scheme, _)| SCHEMES.contains(scheme))
    {
        Some((scheme, rest)) => format!("{scheme}://{}", text(rest)),
        None => text(original),
    }
}

/// Replaces a signature or encrypted thinking, which is usually base64.
fn opaque(original: &str) -> String {
    if original.bytes().all(is_base64) {
        base64(original)
    } else {
        text(original)
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns base64 data of the same length that encodes zeros.
fn base64(original: &str) -> String {
    original
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_') {
                'A'
            } else {
                character(c)
            }
        })
        .collect()
}

/// The new IDs, in order of first occurrence.
#[derive(Default)]
struct Ids(HashMap<Arc<str>, Arc<str>>);

impl Ids {
    /// Returns the new ID for an ID in a provider's own block. If the provider requires a prefix,
    /// the new ID keeps it.
    fn in_own(&mut self, id: &str) -> String {
        const PREFIXES: [&str; 2] = ["srvtoolu_", "mcptoolu_"];
        let prefix = PREFIXES
            .into_iter()
            .find(|prefix| id.starts_with(prefix))
            .unwrap_or_default();
        format!("{prefix}{}", self.of(&id.into()))
    }

    fn of(&mut self, id: &Arc<str>) -> Arc<str> {
        let next = self.0.len() + 1;
        Arc::clone(
            self.0
                .entry(Arc::clone(id))
                .or_insert_with(|| format!("call_{next}").into()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn classes_and_lengths_stay() {
        assert_eq!(text("Ab-9, é字𝒜٣!\n😀"), "Xx-0, é字𝐱٠!\n😀");
        let mut input = json!({"path": "a/B.rs", "lines": [-417, 0, 2.75], "all": true});
        value(&mut input);
        assert_eq!(
            input,
            json!({"path": "x/X.xx", "lines": [-100, 0, 1.0], "all": true})
        );
        assert_eq!(
            url("https://example.com/a?b=C1"),
            "https://xxxxxxx.xxx/x?x=X0"
        );
    }

    #[test]
    fn images_keep_their_kind() {
        let mut shot = Image {
            data: "iVBORw0KGgoAAAANSUhEUg==".into(),
            media_type: "image/png".into(),
            is_url: false,
        };
        image(&mut shot);
        assert_eq!(&*shot.data, "iVBORw0KGgoAAAAAAAAAAA==");
    }

    proptest! {
        #[test]
        fn every_character_keeps_its_bytes(original in ".*") {
            let redacted = text(&original);
            prop_assert_eq!(original.len(), redacted.len());
            prop_assert_eq!(text(&redacted), redacted);
        }
    }
}
