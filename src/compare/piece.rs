//! The pieces of a conversation, in one form for all wire formats.

use serde_json::Value;

use super::limits;
use crate::check::history::Role;
use crate::conversation::{Audio, ContentKind, Document, DocumentSource, Image};
use crate::provider::WireFormat;

/// A piece of content, and the value in the body that contains it.
#[derive(Debug)]
pub(crate) struct Piece<'b> {
    /// The author's role.
    pub(crate) role: Role,
    /// The content, regardless of the wire format.
    pub(crate) content: Content,
    /// The value in the body.
    pub(crate) value: &'b Value,
}

/// The content of a piece.
#[derive(Debug)]
pub(crate) enum Content {
    /// Text in a message or in the system prompt.
    Text(String),
    /// The model's reasoning.
    Thinking(String),
    /// The provider's signature for reasoning.
    Signature(String),
    /// Reasoning that only the provider can read.
    Redacted(String),
    /// A tool call.
    Call(Call),
    /// The result of a call.
    Result(Answer),
    /// An image.
    Image(Image),
    /// A document.
    Document(Document),
    /// An audio recording.
    Audio(Audio),
    /// The text on one side of a completion's gap, with the name of the side.
    Gap(&'static str, String),
    /// A cache breakpoint.
    CacheMark,
    /// Any other content, as its kind and its JSON.
    Other(String, String),
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The tool name.
    pub(crate) name: String,
    /// The arguments as canonical JSON, or the free text.
    pub(crate) arguments: String,
    /// The index of the call in its body, which results refer to.
    pub(crate) number: usize,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The text of the result.
    pub(crate) text: String,
    /// `true` if the tool failed.
    pub(crate) is_error: bool,
    /// The index of the call that the result answers; `None` if there is no such call.
    pub(crate) call: Option<usize>,
}

impl Piece<'_> {
    /// Returns a key for the content. Two pieces have equal content if their keys are equal.
    pub(super) fn key(&self) -> String {
        let subject = self.content.subject();
        match &self.content {
            Content::Text(text)
            | Content::Thinking(text)
            | Content::Signature(text)
            | Content::Redacted(text) => {
                format!("{subject}\0{text}")
            }
            Content::Call(call) => format!("{subject}\0{}\0{}", call.name, call.arguments),
            Content::Result(answer) => format!("{subject}\0{}\0{}", answer.is_error, answer.text),
            Content::Image(image) => format!("{subject}\0{}", image.data),
            Content::Document(document) => {
                format!("{subject}\0{}\0{}", document.source.name(), document.data)
            }
            Content::Audio(audio) => format!("{subject}\0{}", audio.data),
            Content::Gap(side, text) => format!("{subject}\0{side}\0{text}"),
            Content::CacheMark => subject.to_owned(),
            Content::Other(kind, json) => format!("{subject}\0{kind}\0{json}"),
        }
    }

    /// Returns why a wire format cannot express the piece, as a sentence; `None` if it can.
    pub(super) fn no_place(&self, wire: WireFormat) -> Option<&'static str> {
        match self.content {
            Content::CacheMark => limits::reason_against_cache_marks(wire),
            _ => limits::reason(wire, self.kind()?),
        }
    }

    /// Returns the piece's kind of content, as used in `wire-limits.toml`; `None` if that file has
    /// no such kind.
    fn kind(&self) -> Option<ContentKind> {
        Some(match &self.content {
            Content::Text(_) if self.role == Role::System => ContentKind::SystemPrompt,
            Content::Thinking(_) => ContentKind::Thinking,
            Content::Signature(_) => ContentKind::Signatures,
            Content::Redacted(_) => ContentKind::RedactedThinking,
            Content::Image(image) if image.is_url => ContentKind::ImageUrls,
            Content::Image(_) => ContentKind::Images,
            Content::Document(document) => match document.source {
                DocumentSource::Text => ContentKind::DocumentText,
                DocumentSource::Url => ContentKind::DocumentUrls,
                DocumentSource::File => ContentKind::DocumentFiles,
                DocumentSource::Base64 if *document.media_type == *"application/pdf" => {
                    ContentKind::PdfDocuments
                }
                DocumentSource::Base64 => ContentKind::OtherDocuments,
            },
            Content::Audio(_) => ContentKind::Audio,
            Content::Call(_) => ContentKind::ToolCalls,
            Content::Result(_) => ContentKind::ToolResults,
            Content::Text(_) | Content::Gap(..) | Content::CacheMark | Content::Other(..) => {
                return None;
            }
        })
    }

    /// Returns the text if the piece is text in a message; otherwise `None`.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if the piece is blank text.
    pub(super) fn is_blank(&self) -> bool {
        self.text().is_some_and(|text| text.trim().is_empty())
    }

    /// Returns a phrase for the piece, such as "an image from the user (image/png, 12 KB)".
    pub(super) fn describe(&self) -> String {
        let by = said_by(self.role);
        match &self.content {
            Content::Text(text) => format!("text {by}{}", quoted(text)),
            Content::Thinking(text) => format!("thinking{}", quoted(text)),
            Content::Signature(_) => "the thinking signature".to_owned(),
            Content::Redacted(_) => "redacted thinking".to_owned(),
            Content::Call(call) => format!("the call to `{}`", call.name),
            Content::Result(answer) => format!("the tool result{}", quoted(&answer.text)),
            Content::Image(image) => {
                format!(
                    "an image {by} ({}, {})",
                    image.media_type,
                    size(&image.data, image.is_url)
                )
            }
            Content::Document(document) => {
                let title = document
                    .title
                    .as_ref()
                    .map_or_else(String::new, |title| format!(" `{title}`"));
                format!("the document{title} {by} ({})", document.media_type)
            }
            Content::Audio(audio) => format!(
                "an audio recording {by} ({}, {})",
                audio.media_type,
                size(&audio.data, false)
            ),
            Content::Gap(side, text) => format!("the {side}{}", quoted(text)),
            Content::CacheMark => "a prompt cache breakpoint".to_owned(),
            Content::Other(kind, _) => format!("`{kind}` {by}"),
        }
    }
}

impl Content {
    /// Returns the kind of content as one lower-case word, or as two words joined by `-`.
    pub(super) fn subject(&self) -> &'static str {
        match self {
            Content::Text(_) => "text",
            Content::Thinking(_) => "thinking",
            Content::Signature(_) => "signature",
            Content::Redacted(_) => "redacted-thinking",
            Content::Call(_) => "call",
            Content::Result(_) => "result",
            Content::Image(_) => "image",
            Content::Document(_) => "document",
            Content::Audio(_) => "audio",
            Content::Gap(..) => "gap",
            Content::CacheMark => "cache-mark",
            Content::Other(..) => "other",
        }
    }
}

/// Returns a phrase for the author.
pub(super) fn said_by(role: Role) -> &'static str {
    match role {
        Role::System => "from the system prompt",
        Role::User => "from the user",
        Role::Assistant => "from the assistant",
        Role::Tool => "from a tool",
        Role::Other => "with an unknown role",
    }
}

/// Returns the beginning of a string in parentheses, or a note that the text is blank.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: Vec<&str> = text.split_whitespace().collect();
    match line.is_empty() {
        true => " (blank)".to_owned(),
        false => format!(" (\"{}\")", crate::text::cut(&line.join(" "), LONGEST)),
    }
}

/// Describes the size of base64 data; returns `by URL` for a URL.
fn size(data: &str, is_url: bool) -> String {
    if is_url {
        return "by URL".to_owned();
    }
    let bytes = data.len() / 4 * 3;
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{} KB", bytes / 1024),
    }
}

/// Returns a value as JSON with sorted members.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            let members: Vec<String> = sorted
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(canonical).collect();
            format!("[{}]", elements.join(","))
        }
        leaf => leaf.to_string(),
    }
}
