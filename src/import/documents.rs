//! Reads documents and audio recordings from bodies of all wire formats.

use serde_json::Value;

use super::lost::Lost;
use super::media;
use crate::conversation::{Audio, Block, Document, DocumentSource};

/// The address of Gemini's files. IDs without an address refer to files at this address.
const GEMINI_FILES: &str = "https://generativelanguage.googleapis.com/v1beta/files/";

const PDF: &str = "application/pdf";

/// Returns the document or recording in a part; `None` for any other part, or if there is no data.
pub(super) fn block(part: &Value) -> Option<Block> {
    let block = match text(part, "/type") {
        Some("document") => of_anthropic(part)?,
        Some("file" | "input_file") => of_file(part.get("file").unwrap_or(part))?,
        Some("document_url") => Block::Document(of_url(
            text(part, "/document_url")?,
            text(part, "/document_name"),
        )),
        Some("input_audio") => recording(part.get("input_audio")?)?,
        Some(_) => return None,
        None => of_gemini(part)?,
    };
    let data = match &block {
        Block::Document(it) => &it.data,
        Block::Audio(it) => &it.data,
        _ => return None,
    };
    (!data.trim().is_empty()).then_some(block)
}

/// Reports the members of a document or recording that a context cannot contain.
pub(super) fn rest<'b>(part: &'b Value, block: &Block, lost: &mut Lost<'b>) {
    const READ: [&str; 15] = [
        "type",
        "source",
        "title",
        "citations",
        "file",
        "filename",
        "file_data",
        "file_url",
        "file_id",
        "document_url",
        "document_name",
        "input_audio",
        "inlineData",
        "inline_data",
        "fileData",
    ];
    const WHY: &str = "contexts do not support this";
    if let Some(cites) = part.get("citations").filter(|cites| cites.is_object()) {
        lost.tell(cites, super::OF_AGENTS);
    }
    lost.rest(part, &READ, WHY);
    let is_file = matches!(
        block,
        Block::Document(Document {
            source: DocumentSource::File,
            ..
        })
    );
    let of_file: &[&str] = if is_file {
        &["file_id", "filename"]
    } else {
        &["file_data", "file_url", "filename"]
    };
    for (inner, read) in [
        ("file", of_file),
        ("source", &["type", "media_type", "data", "url", "file_id"]),
        ("input_audio", &["data", "format"]),
        ("inlineData", &["mimeType", "data", "displayName"]),
        ("inline_data", &["mime_type", "data", "display_name"]),
        ("fileData", &["mimeType", "fileUri", "displayName"]),
        ("file_data", &["mime_type", "file_uri", "display_name"]),
    ] {
        part.get(inner)
            .into_iter()
            .for_each(|inner| lost.rest(inner, read, WHY));
    }
}

fn text<'v>(value: &'v Value, at: &str) -> Option<&'v str> {
    value.pointer(at).and_then(Value::as_str)
}

fn document(source: DocumentSource, data: &str, media_type: &str, title: Option<&str>) -> Document {
    let media_type = if media_type.trim().is_empty() {
        PDF
    } else {
        media_type
    };
    let title = title.filter(|title| !title.is_empty()).map(Into::into);
    Document {
        source,
        data: data.into(),
        media_type: media_type.into(),
        title,
    }
}

fn of_anthropic(part: &Value) -> Option<Block> {
    let (title, kind) = (text(part, "/title"), text(part, "/source/media_type"));
    let document = match text(part, "/source/type")? {
        "base64" => document(
            DocumentSource::Base64,
            text(part, "/source/data")?,
            kind.unwrap_or(PDF),
            title,
        ),
        "text" => document(
            DocumentSource::Text,
            text(part, "/source/data")?,
            kind.unwrap_or("text/plain"),
            title,
        ),
        "url" => of_url(text(part, "/source/url")?, title),
        "file" => document(
            DocumentSource::File,
            text(part, "/source/file_id")?,
            PDF,
            title,
        ),
        _ => return None,
    };
    Some(Block::Document(document))
}

/// Reads a file as `OpenAI`, compatible servers and Mistral write it: a data URL, an address, or an
/// ID.
fn of_file(file: &Value) -> Option<Block> {
    let title = text(file, "/filename");
    let document = match text(file, "/file_data").or_else(|| text(file, "/file_url")) {
        Some(url) if url.starts_with("data:") || url.contains("://") => of_url(url, title),
        Some(data) => document(
            DocumentSource::Base64,
            data,
            by_name(title.unwrap_or_default()),
            title,
        ),
        None => document(
            DocumentSource::File,
            text(file, "/file_id")?,
            by_name(title.unwrap_or_default()),
            title,
        ),
    };
    Some(Block::Document(document))
}

/// Reads a data URL or an address. The file extension in an address shows the kind of document; a
/// PDF is assumed if the extension is unknown.
fn of_url(url: &str, title: Option<&str>) -> Document {
    match media::data_of(url) {
        Some((kind, data)) => document(DocumentSource::Base64, data, kind, title),
        None => document(
            DocumentSource::Url,
            url,
            by_name(url.split(['?', '#']).next().unwrap_or_default()),
            title,
        ),
    }
}

fn by_name(name: &str) -> &'static str {
    match name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase())
        .as_deref()
    {
        Some("txt") => "text/plain",
        Some("md") => "text/markdown",
        Some("html" | "htm") => "text/html",
        Some("csv") => "text/csv",
        Some("docx") => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => PDF,
    }
}

/// Reads a recording: an object that specifies the format, or only the data, whose first bytes show
/// the format.
fn recording(value: &Value) -> Option<Block> {
    let (data, kind) = match value {
        Value::String(text) => match media::data_of(text) {
            Some((kind, data)) => (data, kind.to_owned()),
            None if text.contains("://") => return None,
            None => (
                text.as_str(),
                if text.starts_with("UklGR") {
                    "audio/wav"
                } else {
                    "audio/mpeg"
                }
                .to_owned(),
            ),
        },
        object => (text(object, "/data")?, of_format(text(object, "/format")?)),
    };
    Some(Block::Audio(Audio {
        data: data.into(),
        media_type: kind.into(),
    }))
}

fn of_format(format: &str) -> String {
    match format {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    }
}

/// Reads Gemini's inline data, or a Gemini file. Video is neither a document nor a recording.
fn of_gemini(part: &Value) -> Option<Block> {
    let member =
        |value: &Value, names| either(value, names).and_then(|it| it.as_str().map(str::to_owned));
    let inline = either(part, ["inlineData", "inline_data"]);
    let held = inline.or_else(|| either(part, ["fileData", "file_data"]))?;
    let kind = member(held, ["mimeType", "mime_type"])?;
    let title = member(held, ["displayName", "display_name"]);
    let is = |family: &str| kind.starts_with(family);
    if is("image/") || is("video/") || (is("audio/") && inline.is_none()) {
        return None;
    }
    if inline.is_none() {
        let uri = member(held, ["fileUri", "file_uri"])?;
        let id = uri
            .strip_prefix(GEMINI_FILES)
            .filter(|id| !id.is_empty() && !id.contains('/'));
        let source = if id.is_some() {
            DocumentSource::File
        } else {
            DocumentSource::Url
        };
        return Some(Block::Document(document(
            source,
            id.unwrap_or(&uri),
            &kind,
            title.as_deref(),
        )));
    }
    let data = member(held, ["data", "data"])?;
    Some(match is("audio/") {
        true => Block::Audio(Audio {
            data: data.into(),
            media_type: kind.into(),
        }),
        false => Block::Document(document(
            DocumentSource::Base64,
            &data,
            &kind,
            title.as_deref(),
        )),
    })
}

fn either<'v>(value: &'v Value, names: [&str; 2]) -> Option<&'v Value> {
    names.into_iter().find_map(|name| value.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(part: &Value) -> (&'static str, String, String, Option<String>) {
        match block(part) {
            Some(Block::Document(it)) => (
                it.source.name(),
                it.data.to_string(),
                it.media_type.to_string(),
                it.title.map(|it| it.to_string()),
            ),
            Some(Block::Audio(it)) => (
                "audio",
                it.data.to_string(),
                it.media_type.to_string(),
                None,
            ),
            other => panic!("{part}: {other:?}"),
        }
    }

    #[test]
    fn every_form_is_read() {
        let url = "data:application/pdf;base64,JVBE";
        for part in [
            json!({"type": "document", "source": {"type": "base64", "media_type": PDF, "data": "JVBE"}, "title": "a"}),
            json!({"type": "file", "file": {"filename": "a", "file_data": url}}),
            json!({"type": "input_file", "filename": "a", "file_data": url}),
            json!({"type": "document_url", "document_url": url, "document_name": "a"}),
            json!({"inline_data": {"mime_type": PDF, "data": "JVBE", "display_name": "a"}}),
        ] {
            assert_eq!(
                read(&part),
                ("base64", "JVBE".into(), PDF.into(), Some("a".into())),
                "{part}"
            );
        }
        for part in [
            json!({"type": "document", "source": {"type": "url", "url": "https://a.b/c.TXT?d"}}),
            json!({"type": "file", "file": {"file_data": "https://a.b/c.TXT?d"}}),
            json!({"type": "input_file", "file_url": "https://a.b/c.TXT?d"}),
            json!({"type": "document_url", "document_url": "https://a.b/c.TXT?d"}),
            json!({"fileData": {"mimeType": "text/plain", "fileUri": "https://a.b/c.TXT?d"}}),
        ] {
            assert_eq!(
                read(&part),
                (
                    "url",
                    "https://a.b/c.TXT?d".into(),
                    "text/plain".into(),
                    None
                ),
                "{part}"
            );
        }
        for part in [
            json!({"type": "document", "source": {"type": "file", "file_id": "f"}}),
            json!({"type": "file", "file": {"file_id": "f"}}),
            json!({"type": "file", "file_id": "f"}),
            json!({"type": "input_file", "file_id": "f"}),
            json!({"file_data": {"mime_type": PDF, "file_uri": format!("{GEMINI_FILES}f")}}),
        ] {
            assert_eq!(
                read(&part),
                ("file", "f".into(), PDF.into(), None),
                "{part}"
            );
        }
        for part in [
            json!({"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}}),
            json!({"type": "input_audio", "input_audio": "UklGR"}),
            json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGR"}}),
        ] {
            assert_eq!(
                read(&part),
                ("audio", "UklGR".into(), "audio/wav".into(), None),
                "{part}"
            );
        }
    }

    #[test]
    fn what_is_neither_is_not_read() {
        for part in [
            json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}),
            json!({"fileData": {"fileUri": "https://youtu.be/a"}}),
            json!({"type": "document", "source": {"type": "content", "content": []}}),
            json!({"type": "document", "source": {"type": "text", "data": " "}}),
            json!({"type": "image", "source": {"type": "file", "file_id": "f"}}),
            json!({"type": "input_audio", "input_audio": "https://a.b/c.wav"}),
            json!("text"),
        ] {
            assert_eq!(block(&part), None, "{part}");
        }
    }
}
