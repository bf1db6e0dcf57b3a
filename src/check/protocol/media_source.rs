//! `protocol/media-source`: an image or a document that the server cannot read.

use serde_json::Value;

use super::super::history::{Entry, Kind, Role, text_of};
use super::media_type::{self, of_data_url};
use super::model_media::is_known_to_google;
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/media-source", "the server cannot read an image or a document in this form",
    "Some servers fetch an image by its URL, others require its bytes in Base64; some accept only a few media types, and none accepts a \
     picture whose bytes have a different type than declared, or are not a picture at all. OpenAI, LM Studio, DeepSeek and Groq reject \
     images in tool results. OpenAI accepts documents as files, but not audio, video or pictures.\n\n\
     * wrong: `\"image_url\": {\"url\": \"https://…\"}` for LM Studio or Ollama\n\
     * right: `\"image_url\": {\"url\": \"data:image/png;base64,…\"}`\n\
     * wrong: `{\"type\": \"input_file\", \"file_data\": \"data:audio/mpeg;base64,…\"}` for OpenAI\n\
     * right: a transcript of it",
    seen "2026-11" {
        "recorded: openllmetry, test_vision_base64":
            "OpenAI: *You uploaded an unsupported image* for text as `image/jpeg`",
        "recorded: pydantic-ai, test_multimodal_tool_return_matrix":
            "OpenAI: *unsupported MIME type 'audio/mpeg'*; Gemini accepts a file of its Files API in a result",
        "anthropics/claude-code#5174": "Claude: *The PDF specified was not valid*",
        "anthropics/anthropic-sdk-python#903": "Claude: *Could not process PDF*",
        "BrokkAi/brokk-app#2269": "Claude: *Only HTTPS URLs are supported*",
        "TutoriaLLM/TutoriaLLM#370":
            "OpenAI: *The audio file could not be decoded or its format is not supported*",
        "pkg:github/ollama/ollama@fb30760#anthropic/anthropic.go":
            "Ollama: *Only base64 images are supported*",
        "vercel/ai#7266": "OpenAI: *Expected a base64-encoded data URL with an application/pdf MIME type*",
        "openai/openai-dotnet#709": "OpenAI: *Expected file type to be a supported format: .pdf but got .png*",
        "pkg:pypi/anthropic@2.12#types/base64_image_source_param.py":
            "Claude: the media types of images",
        "https://ai.google.dev/gemini-api/docs/image-understanding":
            "Gemini: the media types of images",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp: which images it reads",
        "pkg:github/ollama/ollama@fb30760#openai/openai.go": "Ollama: data URLs only",
        "lmstudio-ai/lmstudio-bug-tracker#1120": "LM Studio: no URLs",
        "lmstudio-ai/lmstudio-bug-tracker#1752": "LM Studio: the same refusal",
        "lmstudio-ai/lmstudio-bug-tracker#1027": "LM Studio: no WebP",
        "OpenHands/OpenHands#7700":
            "OpenAI: *Image URLs are only allowed for messages with role 'user'*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in &subject.history().entries {
        for part in &entry.parts {
            match part.kind {
                Kind::Media => media(subject, found, entry, part.value),
                Kind::Result(_) => result(subject, found, part.value),
                _ => {}
            }
        }
    }
}

fn media<'b>(subject: &Subject<'b>, found: &mut Found<'b>, entry: &Entry<'b>, part: &'b Value) {
    match subject.wire {
        WireFormat::AnthropicMessages => anthropic(subject, found, part),
        WireFormat::OpenAiChat => chat(subject, found, part),
        WireFormat::OpenAiResponses => responses(subject, found, part),
        WireFormat::GoogleGenerateContent => google(found, part),
        WireFormat::MistralChat if entry.role == Role::Assistant => found
            .at(part, "Mistral does not accept images in assistant messages")
            .help("put them into a user message"),
        WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Checks the images in a result message.
fn result<'b>(subject: &Subject<'b>, found: &mut Found<'b>, message: &'b Value) {
    match subject.wire {
        WireFormat::OpenAiChat => {
            let parts = message
                .get("content")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            for image in parts
                .iter()
                .filter(|part| text_of(part, "type") == Some("image_url"))
            {
                if matches!(
                    subject.server,
                    Server::OpenAi | Server::LmStudio | Server::DeepSeek | Server::Groq
                ) {
                    let message = format!(
                        "{} does not accept images in tool messages",
                        subject.server.name()
                    );
                    found
                        .at(image, message)
                        .help("put them into a user message after all results of the turn");
                } else {
                    chat(subject, found, image);
                }
            }
        }
        WireFormat::AnthropicMessages => {
            let blocks = message
                .get("content")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            blocks
                .iter()
                .for_each(|block| anthropic(subject, found, block));
        }
        WireFormat::OpenAiResponses => {
            let parts = message
                .get("output")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            parts
                .iter()
                .for_each(|part| responses(subject, found, part));
        }
        WireFormat::GoogleGenerateContent => {
            let response = message
                .get("functionResponse")
                .or_else(|| message.get("function_response"));
            let parts = response
                .and_then(|response| response.get("parts"))
                .and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                google(found, part);
                let file = part.get("fileData").or_else(|| part.get("file_data"));
                let file = file.filter(|_| subject.server == Server::Google);
                if let Some((file, name)) = file.and_then(|file| Some((file, web_address(file)?))) {
                    found
                        .at_member(file, name, "Gemini does not read URLs in function results")
                        .help("send the bytes as `inlineData`");
                }
            }
        }
        WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Returns the name of the member that holds an external web address, if there is one: uploaded
/// files have addresses, too.
fn web_address(file: &Value) -> Option<&'static str> {
    ["fileUri", "file_uri"].into_iter().find(|name| {
        file.get(*name)
            .is_some_and(|value| value.as_str().is_some_and(is_web) && !is_known_to_google(value))
    })
}

fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn chat<'b>(subject: &Subject<'b>, found: &mut Found<'b>, part: &'b Value) {
    let kind = text_of(part, "type").unwrap_or_default();
    match subject.server {
        Server::LlamaCpp if kind == "file" => {
            found
                .at(part, "llama.cpp does not accept files")
                .help("send text, or an image");
        }
        Server::LmStudio | Server::Ollama if kind == "image_url" => {
            local_image(subject, found, part);
        }
        Server::OpenAi if kind == "file" => openai_file(found, part.get("file").unwrap_or(part)),
        _ => {}
    }
    if let Some(image) = part.get("image_url") {
        openai_image(subject, found, image.get("url").unwrap_or(image));
    }
    if subject.server == Server::OpenAi && kind == "input_audio" {
        openai_audio(found, part.get("input_audio").unwrap_or(part));
    }
}

fn is_sound(media_type: &str) -> bool {
    ["audio/", "video/"]
        .iter()
        .any(|kind| media_type.starts_with(kind))
}

/// Reports a recording whose bytes are none: a text, a picture or a document.
fn openai_audio<'b>(found: &mut Found<'b>, audio: &'b Value) {
    let real = text_of(audio, "data").and_then(media_type::media_type);
    if let Some(real) = real.filter(|real| !is_sound(real)) {
        found
            .at_member(
                audio,
                "data",
                format!("the data is of the type `{real}`, not audio"),
            )
            .warning()
            .help("send the intended recording");
    }
}

/// The image types that OpenAI accepts, whatever type the `data:` URL declares.
const OPENAI_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks the bytes of an image in a `data:` URL.
fn openai_image<'b>(subject: &Subject<'b>, found: &mut Found<'b>, url: &'b Value) {
    let Some((_, data)) = url.as_str().and_then(of_data_url) else {
        return;
    };
    if let Some(real) = media_type::media_type(data).filter(|real| !OPENAI_IMAGES.contains(real)) {
        let note = found.at(
            url,
            format!(
                "the bytes are of the type `{real}`, but images must be PNG, JPEG, GIF or WebP"
            ),
        );
        let note = if subject.server == Server::OpenAi {
            note
        } else {
            note.warning()
        };
        note.help("send the intended picture");
    }
}

/// The beginnings of media types that OpenAI refuses as files. For images, a single report is the
/// only source.
const FILES_REFUSED: [&str; 3] = ["audio/", "video/", "image/"];

/// The file extensions of audio and video.
const SOUND_AND_VIDEO: [&str; 10] = [
    ".mp3", ".wav", ".ogg", ".flac", ".m4a", ".aac", ".mp4", ".webm", ".mov", ".avi",
];

/// Reports a file that is not a document.
fn openai_file<'b>(found: &mut Found<'b>, file: &'b Value) {
    let help = "OpenAI accepts documents and text as files: send a transcript, or pictures";
    let said = text_of(file, "file_data")
        .and_then(of_data_url)
        .map(|(said, _)| said);
    if let Some(said) = said.filter(|said| FILES_REFUSED.iter().any(|kind| said.starts_with(kind)))
    {
        let message = format!(
            "OpenAI does not accept files of the type `{}`",
            crate::text::cut(said, 60)
        );
        let note = found.at_member(file, "file_data", message);
        match said.starts_with("image/") {
            true => note
                .warning()
                .help("send it as a picture: `input_image`, or `image_url` in chat"),
            false => note.help(help),
        }
    }
    if text_of(file, "file_data")
        .is_some_and(|data| of_data_url(data).is_none() && !data.is_empty())
    {
        let message =
            "the file is not a data URL: OpenAI requires the media type before the Base64";
        // Based on a single report, whose data was not Base64 either.
        found
            .at_member(file, "file_data", message)
            .warning()
            .help("write `data:application/pdf;base64,…`");
    }
    let path = text_of(file, "file_url")
        .and_then(|url| url.split(['?', '#']).next())
        .map(str::to_lowercase);
    if let Some(end) = SOUND_AND_VIDEO
        .iter()
        .find(|end| path.as_ref().is_some_and(|path| path.ends_with(*end)))
    {
        let message =
            format!("this file looks like audio or video (`{end}`), which OpenAI rejects");
        found
            .at_member(file, "file_url", message)
            .warning()
            .help(help);
    }
}

/// Reports an image address: local servers do not download images.
fn local_image<'b>(subject: &Subject<'b>, found: &mut Found<'b>, part: &'b Value) {
    let Some(holder) = part.get("image_url") else {
        return;
    };
    let (url, object) = match holder {
        Value::String(url) => (url.as_str(), None),
        object => (text_of(object, "url").unwrap_or_default(), Some(object)),
    };
    let (server, help) = (
        subject.server.name(),
        "send it as `data:image/png;base64,…`",
    );
    let message = if is_web(url) {
        format!("{server} does not fetch images")
    } else if subject.server == Server::LmStudio && url.starts_with("data:image/webp") {
        format!("{server} does not read WebP")
    } else {
        return;
    };
    match object {
        Some(object) => found.at_member(object, "url", message).help(help),
        None => found.at(holder, message).help(help),
    }
}

fn responses<'b>(subject: &Subject<'b>, found: &mut Found<'b>, part: &'b Value) {
    if subject.server == Server::LlamaCpp && text_of(part, "type") == Some("input_file") {
        found
            .at(part, "llama.cpp does not accept files")
            .help("send text, or an image");
    } else if subject.server == Server::OpenAi && text_of(part, "type") == Some("input_file") {
        openai_file(found, part);
    }
    if let Some(url) = part.get("image_url") {
        openai_image(subject, found, url);
    }
}

/// The beginnings of media types that Gemini accepts inline.
const GEMINI_TYPES: [&str; 13] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/avif",
    "audio/",
    "video/",
    "application/pdf",
    "text/",
    "application/x-javascript",
    "application/x-python",
    "application/rtf",
];

fn google<'b>(found: &mut Found<'b>, part: &'b Value) {
    let Some(data) = part.get("inlineData").or_else(|| part.get("inline_data")) else {
        return;
    };
    let name = if data.get("mime_type").is_some() {
        "mime_type"
    } else {
        "mimeType"
    };
    let Some(media_type) = text_of(data, name) else {
        return;
    };
    if !GEMINI_TYPES
        .iter()
        .any(|known| media_type.starts_with(known))
    {
        let message = format!(
            "Gemini does not accept `{}` as inline data",
            crate::text::cut(media_type, 60)
        );
        let help = match media_type {
            "image/jpg" => "the correct name is `image/jpeg`",
            _ => "images must be PNG, JPEG, WebP, HEIC or HEIF; documents must be PDF or text",
        };
        found.at_member(data, name, message).help(help);
    } else if let Some(real) = text_of(data, "data")
        .and_then(media_type::media_type)
        .filter(|real| is_other(media_type, real))
    {
        mismatch(found, data, name, real);
    }
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>, block: &'b Value) {
    let Some(source) = block.get("source") else {
        return;
    };
    let kind = text_of(source, "type");
    if subject.server == Server::Ollama && kind.is_some_and(|kind| kind != "base64") {
        found
            .at_member(source, "type", "Ollama accepts images only in Base64")
            .help("send the bytes: `\"type\": \"base64\"`");
        return;
    }
    let is_plain = text_of(source, "url").is_some_and(|url| url.starts_with("http://"));
    if kind == Some("url") && is_plain && subject.server == Server::Anthropic {
        found
            .at_member(
                source,
                "url",
                "a report says that Anthropic fetches only `https` URLs",
            )
            .warning()
            .help("use an `https` URL, or send the bytes in Base64");
    }
    if kind == Some("base64") {
        anthropic_bytes(subject, found, source);
    }
}

fn anthropic_bytes<'b>(subject: &Subject<'b>, found: &mut Found<'b>, source: &'b Value) {
    let (Some(said), Some(data)) = (text_of(source, "media_type"), text_of(source, "data")) else {
        return;
    };
    let Some(real) = media_type::media_type(data) else {
        return;
    };
    if is_other(said, real) {
        mismatch(found, source, "media_type", real);
    } else if said == PDF && real != PDF && subject.server.is_claude() {
        found
            .at_member(
                source,
                "data",
                format!("the data is of the type `{real}`, not PDF"),
            )
            .help("send the intended document");
    }
}

const PDF: &str = "application/pdf";

/// Returns `true` if the bytes are of another type than the image declares. HEIF has several names.
fn is_other(said: &str, real: &str) -> bool {
    said.starts_with("image/") && said != real && !(is_heif(said) && is_heif(real))
}

fn is_heif(name: &str) -> bool {
    matches!(name, "image/heic" | "image/heif")
}

fn mismatch<'b>(found: &mut Found<'b>, holder: &'b Value, name: &'static str, real: &str) {
    let message = format!("the bytes are of the type `{real}`");
    found
        .at_member(holder, name, message)
        .help(format!("write `{real}`, or send the intended picture"));
}
