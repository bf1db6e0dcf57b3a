//! Converts the result of a call to the output for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use super::super::ToolOutput;
use crate::conversation::Image;
use crate::runtime::image;

/// Returns the output for the model. Text and images are passed on; other content is replaced with
/// a description. Structured content is used only if there is no other content, because servers
/// repeat it as text.
pub(super) fn output(result: CallToolResult, limit: usize) -> ToolOutput {
    let mut parts = Parts::default();
    result
        .content
        .into_iter()
        .for_each(|block| parts.add(block));
    if parts.is_empty()
        && let Some(structured) = result.structured_content
    {
        parts.texts.push(structured.to_string());
    }
    let (is_error, text) = (result.is_error == Some(true), parts.texts.join("\n"));
    if text.len() > limit {
        let begin = &text[..text.floor_char_boundary(limit)];
        return ToolOutput::error(format!(
            "the tool returned more than {limit} bytes; the result began with:\n{begin}"
        ));
    }
    ToolOutput {
        content: text.into(),
        is_error,
        images: parts.images,
    }
}

/// The text that replaces content of an unknown kind.
pub(super) const UNKNOWN_CONTENT: &str = "[content of a kind that reqc does not support]";

#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    images: Vec<Image>,
    /// The total size of the images so far, in bytes of base64.
    size: u64,
}

impl Parts {
    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.images.is_empty()
    }

    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.image("image", &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.leave_out("audio", &audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let about = [link.title, link.description, link.mime_type]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>();
                let about = if about.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", about.join(", "))
                };
                self.texts
                    .push(format!("[resource {} at {}{about}]", link.name, link.uri));
            }
            _ => self.unknown(),
        }
    }

    fn resource(&mut self, resource: ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.texts.push(format!("[resource at {uri}]\n{text}"));
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                self.image(
                    &format!("resource at {uri}"),
                    mime_type.as_deref().unwrap_or("unknown type"),
                    &blob,
                );
            }
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) {
        self.texts.push(UNKNOWN_CONTENT.to_owned());
    }

    /// Adds an image in a format that providers accept, regardless of its declared type.
    fn image(&mut self, what: &str, media_type: &str, data: &str) {
        let has_room = self.size + data.len() as u64 <= image::MAX_BYTES;
        match image::of_base64(data).filter(|_| has_room) {
            Some(image) => {
                self.size += data.len() as u64;
                self.images.push(image);
            }
            None => self.leave_out(what, media_type, data),
        }
    }

    /// Adds a description that replaces content that models cannot see.
    fn leave_out(&mut self, what: &str, media_type: &str, data: &str) {
        self.texts.push(image::left_out(what, media_type, data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    fn told(result: serde_json::Value, limit: usize) -> ToolOutput {
        output(serde_json::from_value(result).expect("a result"), limit)
    }

    #[test]
    fn every_kind_of_content_says_something() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        let output = told(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": png, "mimeType": "image/jpeg"},
                {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
                {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
                {"type": "resource", "resource": {"uri": "x://t", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "x://b", "mimeType": "image/png", "blob": png}},
                {"type": "resource", "resource": {"uri": "x://c", "blob": "AAAA"}},
            ], "structuredContent": {"a": 1}}),
            1_000,
        );
        let lines = "one\n[image: image/svg+xml, 6 bytes, left out]\n[audio: audio/wav, 6 bytes, left out]\n\
                     [resource a at file:///a (text/plain)]\n[resource at x://t]\ninside\n\
                     [resource at x://c: unknown type, 3 bytes, left out]";
        assert_eq!(&*output.content, lines);
        let types: Vec<&str> = output
            .images
            .iter()
            .map(|image| &*image.media_type)
            .collect();
        assert_eq!(
            (types, output.is_error),
            (vec!["image/png", "image/png"], false)
        );
    }

    #[test]
    fn structured_content_stands_in_for_text() {
        assert_eq!(
            &*told(json!({"structuredContent": {"a": 1}}), 100).content,
            r#"{"a":1}"#
        );
        let both =
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}});
        assert_eq!(&*told(both, 100).content, "x");
    }

    #[test]
    fn errors_and_long_answers_are_errors() {
        let failed = told(
            json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
            100,
        );
        assert_eq!((&*failed.content, failed.is_error), ("no", true));
        let long = told(json!({"content": [{"type": "text", "text": "äääää"}]}), 5);
        assert_eq!(
            (&*long.content, long.is_error),
            (
                "the tool returned more than 5 bytes; the result began with:\nää",
                true
            )
        );
    }
}
