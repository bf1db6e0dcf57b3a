//! `protocol/media-source`: an image or a document that the server cannot read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::history::{Entry, Kind, Role, text_of};
use super::media_type::{self, of_data_url};
use super::model_media::is_known_to_google;
use super::{Found, Subject, body_rule};
use crate::provider::{
    LMDEPLOY, MISTRAL_RS, Server, Software, UrlParts, VLLM_MLX, WireFormat, is_claude_model,
    is_workers_ai_model,
};
use crate::repo::Property;

body_rule! {
    Error "protocol/media-source", "the server cannot read an image or a document in this form",
    "Some servers fetch an image by its URL, others require its bytes in Base64; some accept only a few media types, and none accepts a \
     picture whose bytes have a different type than declared, or are not a picture at all. OpenAI, LM Studio, DeepSeek and Groq reject \
     images in tool results. OpenAI accepts documents as files, but not audio, video or pictures. Reported as warnings: an encrypted PDF \
     for Anthropic, an archive, a word processor document and a `gs://` URI for Gemini's own API, and an image URL for Moonshot and \
     Workers AI. Gemini reads `$ref` in a function's result as the name of one of the result's media. OpenAI requires each file to have a \
     name. Xiaomi MiMo accepts neither WebM videos nor AAC recordings. Also reported as warnings: a `data:` URL that is not in Base64, a \
     `data:` URL whose media type differs from its data (for Claude in OpenAI's format), and a value for audio or video that is not a URL at all. According to user reports, DeepSeek requires tool \
     results to be a string (a warning). No provider can fetch from an address in a private network, such as \
     `http://localhost:3000/a.png`.\n\n\
     * wrong: `\"image_url\": {\"url\": \"https://…\"}` for LM Studio or Ollama\n\
     * right: `\"image_url\": {\"url\": \"data:image/png;base64,…\"}`\n\
     * wrong: `{\"type\": \"input_file\", \"file_data\": \"data:audio/mpeg;base64,…\"}` for OpenAI\n\
     * right: a transcript of it",
    seen "2026-11" {
        "recorded: openllmetry, test_vision_base64":
            "OpenAI: *You uploaded an unsupported image*, for text that is declared as `image/jpeg`",
        "recorded: genai, providers/xiaomi/testdata/TestClient/Scoreboard/mimo-v2.5/GenSyncMultiModal-Video-webm-Inline.yaml":
            "MiMo: *invalid video format, only mp4/wmv/mov/avi are supported*",
        "recorded: genai, providers/xiaomi/testdata/TestClient/Scoreboard/mimo-v2.5/GenSyncMultiModal-Audio-aac-Inline.yaml":
            "MiMo: *invalid audio format, only mp3/flac/m4a/wav/ogg are supported*",
        "recorded: pydantic-ai, test_multimodal_tool_return_matrix":
            "OpenAI: *unsupported MIME type 'audio/mpeg'*; Gemini accepts a file of its Files API in a result",
        "coze-dev/coze-studio#393":
            "Volcengine: *Error while downloading*, for an address in a private network",
        "coze-dev/coze-studio#577": "Volcengine: *Timeout while downloading url*, in the same case",
        "agentscope-ai/agentscope-java#2700": "Qwen: *Failed to download multimodal content*",
        "https://www.alibabacloud.com/help/en/model-studio/error-code":
            "Qwen: URLs must be public",
        "pydantic/pydantic-ai#4445": "OpenAI: *got unsupported MIME type*, in Chat Completions",
        "openai/openai-agents-python#2376": "OpenAI: *The file type you uploaded is not supported*",
        "steven-jianhao-li/zotero-AI-Butler#160": "Volcengine: *Invalid base64 image_url*",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/multimodal/media/image.py":
            "vLLM: *Failed to load image*",
        "openai/openai-node#1463": "OpenAI: *Please make sure your image is valid*",
        "vercel/ai#1544": "OpenAI: the same error",
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
            "Claude's SDK lists the media types of images",
        "https://ai.google.dev/gemini-api/docs/image-understanding":
            "Gemini lists the media types of images",
        "openai/openai-agents-python#1513":
            "OpenAI: *Missing required parameter: '….file.file_id'*, for a file without `filename`",
        "langchain-ai/langchainjs#9512": "OpenAI: the same error",
        "laravel/ai#324": "OpenAI Responses: *Missing required parameter*, in the same case",
        "QwenLM/qwen-code#2320":
            "DeepSeek: *invalid type: sequence, expected a string*, for a tool message",
        "Gitlawb/openclaude#774": "DeepSeek: the same error, in April 2026",
        "OpenHands/software-agent-sdk#3155": "Moonshot rejects image URLs, measured",
        "HeyPuter/puter#2931": "Moonshot rejects them too",
        "zaidmukaddam/scira#248": "Workers AI: *URL image sources are not supported*",
        "pkg:pypi/litellm@1.110.2": "Gemini through a gateway: *File type not supported*",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp's code shows which images it reads",
        "pkg:github/ollama/ollama@fb30760#openai/openai.go": "Ollama accepts only data URLs",
        "lmstudio-ai/lmstudio-bug-tracker#2008":
            "LM Studio: *Only text tool_result blocks are supported*",
        "lmstudio-ai/lmstudio-bug-tracker#1590": "LM Studio: the same error",
        "lmstudio-ai/lmstudio-bug-tracker#1120": "LM Studio rejects URLs",
        "lmstudio-ai/lmstudio-bug-tracker#1752": "LM Studio: the same error",
        "lmstudio-ai/lmstudio-bug-tracker#1027": "LM Studio rejects WebP images",
        "cline/cline#8977": "llama.cpp: *Failed to load image or audio file*, for WebP",
        "can1357/oh-my-pi#2922": "llama.cpp does not read WebP images",
        "https://github.com/EricLBuehler/mistral.rs/blob/9e922623f24b32d41f3892b74f0eed18707f4e6c/mistralrs-server-core/src/media_source.rs":
            "mistral.rs: *Remote media URLs must not target private or local IP addresses*",
        "pkg:pypi/lmdeploy@0.18.0#lmdeploy/vl/media/connection.py":
            "LMDeploy fetches media only from public addresses",
        "https://github.com/waybarrios/vllm-mlx/blob/4b654c09e61029afa1c061a3684bff0d4c385b3c/vllm_mlx/models/mllm.py":
            "vllm-mlx: *Remote media URL targets a blocked host*",
        "https://platform.claude.com/docs/en/build-with-claude/pdf-support":
            "Claude accepts only PDFs without passwords and encryption",
        "anthropics/claude-code#19013": "Claude: *The PDF specified is password protected*",
        "https://github.com/BerriAI/litellm/blob/main/litellm/llms/fireworks_ai/chat/transformation.py":
            "Fireworks accepts no files, according to a gateway's code",
        "googleapis/python-genai#71": "Gemini: *Invalid or unsupported file uri*",
        "vercel/ai#16757": "Gemini: the same error",
        "agno-agi/agno#3964": "Vertex AI: *mimeType parameter … which is not supported*",
        "mistralai/client-python#212": "Mistral: *Invalid document type*",
        "mistralai/platform-docs-public#211": "Mistral: the same error",
        "vercel/ai#14369":
            "Gemini: *The referenced name … does not match to a display_name in the function_response.parts*",
        "RooCodeInc/Roo-Code#11430": "Gemini: the same error",
        "langchain-ai/langchain-google#999": "Gemini: *Unsupported file uri*, for `gs://`",
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
    for url in addresses(part) {
        // GLM-4V reads bare Base64.
        let is_bare = subject.server == Server::ZAi && url.as_str().is_some_and(is_picture);
        if !is_bare {
            unreachable(url, fetches_private_urls(subject), found);
        }
        if url.as_str().is_some_and(is_plain_data) {
            found
                .at(url, "this `data:` URL is not in Base64")
                .warning()
                .help("write `;base64,` after the media type, and the bytes in Base64");
        }
    }
    match subject.wire {
        WireFormat::AnthropicMessages => anthropic(subject, found, part),
        WireFormat::OpenAiChat => chat(subject, found, part),
        WireFormat::OpenAiResponses => responses(subject, found, part),
        WireFormat::GoogleGenerateContent => {
            google(found, part);
            if subject
                .headers
                .is_below("generativelanguage.googleapis.com")
            {
                cloud_storage(found, part);
            }
        }
        WireFormat::MistralChat if entry.role == Role::Assistant => found
            .at(part, "Mistral does not accept images in assistant messages")
            .help("put them into a user message"),
        WireFormat::MistralChat => mistral(subject, found, part),
        WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Reports an image that is sent as a document, and data that is not a PDF or not audio.
fn mistral<'b>(subject: &Subject<'b>, found: &mut Found<'b>, part: &'b Value) {
    let document = part.get("document_url");
    if let Some(url) = document {
        other_document(url, url.as_str().and_then(of_data_url), found);
    }
    if let Some(audio) = part.get("input_audio") {
        let data = audio.get("data").unwrap_or(audio);
        input_audio(subject, found, audio, data);
    }
    let said = text_of(part, "document_url")
        .and_then(of_data_url)
        .map(|(said, _)| said);
    if said.is_some_and(|said| said.starts_with("image/")) {
        found
            .at_member(
                part,
                "document_url",
                "Mistral does not accept an image as a document",
            )
            .help("send it as a part of type `image_url`");
    }
}

/// Returns `true` if a string is the Base64 of a picture, without a `data:` prefix.
fn is_picture(text: &str) -> bool {
    media_type::media_type(text).is_some_and(|real| real.starts_with("image/"))
}

/// Reports data that is declared as a PDF, but is something else. `url` is the media type and the
/// Base64 data of a `data:` URL.
fn other_document<'b>(at: &'b Value, url: Option<(&str, &str)>, found: &mut Found<'b>) {
    let data = url.filter(|(said, _)| *said == PDF).map(|(_, data)| data);
    let real = data.and_then(media_type::media_type);
    if let Some(real) = real.filter(|real| *real != PDF) {
        found
            .at(at, format!("the data is `{real}`, not PDF"))
            .warning()
            .help("send the intended document");
    }
}

/// Reports data that is declared as a video, but is text, an image or a document.
fn other_video<'b>(subject: &Subject<'b>, found: &mut Found<'b>, part: &'b Value) {
    let Some(video) = part.get("video_url") else {
        return;
    };
    let url = video.get("url").unwrap_or(video);
    // vLLM's clients send the frames of a video as pictures of type `video/jpeg`.
    let data = url.as_str().and_then(of_data_url);
    let data = data.filter(|(said, _)| *said != "video/jpeg");
    let real = data.and_then(|(_, data)| media_type::media_type(data));
    if let Some(real) = real.filter(|real| !is_sound(real) && *real != "image/gif") {
        let note = found.at(url, format!("the data is `{real}`, not a video"));
        let note = match subject.server {
            Server::Qwen => note,
            _ => note.warning(),
        };
        note.help("send the intended video");
    }
}

/// Software that rejects media at private addresses, even if the software runs in the same network.
const FETCHES_ONLY_PUBLIC_URLS: [Software; 3] = [LMDEPLOY, MISTRAL_RS, VLLM_MLX];

/// Returns `true` if the server may run in the client's local network and fetch media from there.
fn fetches_private_urls(subject: &Subject<'_>) -> bool {
    let is_local = matches!(
        subject.server,
        Server::LmStudio | Server::Ollama | Server::LlamaCpp | Server::Unknown
    );
    let software = subject.headers.software;
    is_local && !software.is_some_and(|it| FETCHES_ONLY_PUBLIC_URLS.contains(&it))
}

/// The members in parts and blocks that contain a URL, or an object with a URL.
const ADDRESSES: [&str; 6] = [
    "image_url",
    "video_url",
    "audio_url",
    "file_url",
    "document_url",
    "source",
];

/// Returns the URLs of media in a part.
fn addresses(part: &Value) -> impl Iterator<Item = &Value> {
    ADDRESSES
        .iter()
        .filter_map(|name| part.get(*name))
        .map(|holder| holder.get("url").unwrap_or(holder))
}

/// Returns `true` if a `data:` URL contains plain text instead of Base64. The servers read only
/// Base64. Source:
/// <https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/multimodal/media/connector.py>.
fn is_plain_data(url: &str) -> bool {
    url.strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
        .is_some_and(|(kind, _)| !kind.ends_with(";base64"))
}

/// Reports a string that is not a URL, and a URL that only works in the client's own network,
/// unless the server is in that network.
fn unreachable<'b>(url: &'b Value, is_local: bool, found: &mut Found<'b>) {
    let Some(text) = url.as_str() else {
        return;
    };
    if !text.contains(':') {
        found
            .at(url, "this is neither a web URL nor a `data:` URL")
            .warning()
            .help("write the URL of the file, or its bytes in Base64 as a `data:` URL");
    } else if !is_local && is_web(text) && UrlParts::of(text).is_private() {
        found
            .at(
                url,
                "the provider cannot fetch this URL: its host is private",
            )
            .help("send the bytes in Base64, or use a public URL");
    }
}

/// Reports a tool result that is a list of parts.
fn deepseek_result<'b>(found: &mut Found<'b>, message: &'b Value) {
    if message.get("content").is_some_and(Value::is_array) {
        found
            .at_member(
                message,
                "content",
                "according to user reports, DeepSeek requires a string as the content of a tool message",
            )
            .warning()
            .help("send a string; put images into a user message");
    }
}

/// Checks the images in a message with a tool result.
fn result<'b>(subject: &Subject<'b>, found: &mut Found<'b>, message: &'b Value) {
    match subject.wire {
        WireFormat::OpenAiChat => {
            let parts = message
                .get("content")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            if subject.server == Server::DeepSeek {
                deepseek_result(found, message);
            }
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
            for block in blocks {
                if subject.server == Server::LmStudio && text_of(block, "type") != Some("text") {
                    found
                        .at(block, "LM Studio accepts only text as the result of a tool")
                        .help("put images into a user message after all results of the turn");
                }
                anthropic(subject, found, block);
            }
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
            if subject.facts.refuses(Property::ResultImages).is_none() {
                let names = named_parts(parts.map(Vec::as_slice).unwrap_or_default());
                if let Some(output) = response.and_then(|response| response.get("response")) {
                    loose_references(output, &names, 0, found);
                }
            }
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

/// Returns the names of the media in a function's result.
fn named_parts(parts: &[Value]) -> Vec<&str> {
    parts
        .iter()
        .filter_map(|part| part.get("inlineData").or_else(|| part.get("inline_data")))
        .filter_map(|data| text_of(data, "displayName").or_else(|| text_of(data, "display_name")))
        .collect()
}

/// The maximum depth to which results are searched.
const DEPTH: usize = 64;

/// Reports each `$ref` in a function's result that does not refer to one of the result's media.
/// Gemini interprets every `$ref` there as the name of a medium.
fn loose_references<'b>(value: &'b Value, names: &[&str], depth: usize, found: &mut Found<'b>) {
    if depth > DEPTH {
        return;
    }
    match value {
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| loose_references(element, names, depth + 1, found)),
        Value::Object(members) => {
            for (name, member) in members {
                let target = member.as_str().filter(|_| name == "$ref");
                if target.is_some_and(|target| !names.contains(&target)) {
                    let message = "Gemini reads `$ref` in a result as the name of one of the result's media, but none has this name";
                    found
                        .at(member, message)
                        .help("send the result as text, or rename the field");
                } else {
                    loose_references(member, names, depth + 1, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the name of the member that contains an external web address, if there is one. Addresses
/// of files uploaded to Google are not external.
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
        _ if kind == "file" && subject.level_of(Server::Fireworks).is_some() => {
            found
                .at(
                    part,
                    "Fireworks does not accept files (source: a gateway's code)",
                )
                .warning()
                .help("send text, or an image");
        }
        Server::LmStudio | Server::Ollama if kind == "image_url" => {
            local_image(subject, found, part);
        }
        Server::LlamaCpp if kind == "image_url" => llamacpp_image(found, part),
        Server::OpenAi if kind == "file" => openai_file(found, part.get("file").unwrap_or(part)),
        Server::Moonshot if kind == "image_url" => unfetched(Server::Moonshot.name(), found, part),
        Server::Unknown
            if kind == "image_url" && subject.model.is_some_and(is_workers_ai_model) =>
        {
            unfetched("Workers AI", found, part);
        }
        _ => {}
    }
    if subject.server != Server::OpenAi && kind == "file" {
        archive(found, part.get("file").unwrap_or(part));
    }
    if let Some(image) = part.get("image_url") {
        openai_image(subject, found, image.get("url").unwrap_or(image));
    }
    if matches!(
        subject.server,
        Server::OpenAi | Server::Ollama | Server::Qwen | Server::Unknown
    ) && kind == "input_audio"
    {
        let audio = part.get("input_audio").unwrap_or(part);
        if let Some(data) = audio.get("data") {
            input_audio(subject, found, audio, data);
        }
    }
    other_video(subject, found, part);
    if subject.server == Server::MiMo {
        mimo(found, part);
    }
    if subject.server == Server::OpenAi && kind == "file" {
        chat_file(found, part.get("file").unwrap_or(part));
    }
}

/// Reports a `WebM` video and an AAC recording for Xiaomi `MiMo`, which looks at the data, and not
/// at the declared format. Recorded: genai, `providers/xiaomi`.
fn mimo<'b>(found: &mut Found<'b>, part: &'b Value) {
    let video = part.get("video_url");
    let url = video.map(|video| video.get("url").unwrap_or(video));
    if let Some(url) = url.filter(|url| url.as_str().is_some_and(is_webm)) {
        found
            .at(
                url,
                "Xiaomi MiMo accepts MP4, WMV, MOV and AVI videos, not WebM or Matroska",
            )
            .help("convert the video to MP4");
    }
    let sent = part.get("input_audio").and_then(|audio| audio.get("data"));
    let real = sent
        .and_then(Value::as_str)
        .and_then(media_type::media_type);
    if let Some(sent) = sent.filter(|_| real == Some("audio/aac")) {
        found
            .at(
                sent,
                "Xiaomi MiMo accepts MP3, FLAC, M4A, WAV and Ogg recordings, not AAC",
            )
            .help("convert the recording to MP3");
    }
}

/// Returns `true` if a URL leads to a `WebM` video, or is a `data:` URL with one.
fn is_webm(url: &str) -> bool {
    match of_data_url(url) {
        Some((_, data)) => media_type::media_type(data) == Some("video/webm"),
        None => {
            let path = url.split(['?', '#']).next().unwrap_or(url);
            path.to_ascii_lowercase().ends_with(".webm")
        }
    }
}

/// Reports an image URL for a server that, according to user reports, does not download images.
fn unfetched<'b>(server: &str, found: &mut Found<'b>, part: &'b Value) {
    let url = addresses(part).find(|url| url.as_str().is_some_and(is_web));
    if let Some(url) = url {
        found
            .at(
                url,
                format!("according to user reports, {server} does not fetch images"),
            )
            .warning()
            .help("send it as `data:image/png;base64,…`");
    }
}

/// Reports an archive that is sent as a file: models read documents, but not the files in an
/// archive.
fn archive<'b>(found: &mut Found<'b>, file: &'b Value) {
    let said = text_of(file, "file_data")
        .and_then(of_data_url)
        .map(|(said, _)| said);
    if said == Some(ARCHIVE) {
        found
            .at_member(
                file,
                "file_data",
                "this is an archive, and no server is known to unpack archives",
            )
            .warning()
            .help("send the files in it");
    }
}

fn is_sound(media_type: &str) -> bool {
    ["audio/", "video/"]
        .iter()
        .any(|kind| media_type.starts_with(kind))
}

/// Reports a file that is not a PDF. Chat Completions was observed to read only PDFs.
fn chat_file<'b>(found: &mut Found<'b>, file: &'b Value) {
    let said = text_of(file, "file_data")
        .and_then(of_data_url)
        .map(|(said, _)| said);
    if let Some(said) = said.filter(|said| *said != PDF && !is_refused_as_file(said)) {
        let message = format!(
            "a report says that Chat Completions reads only PDF files, not `{}`",
            crate::text::cut(said, 60)
        );
        found
            .at_member(file, "file_data", message)
            .warning()
            .help("send the text of the file, or use the Responses API");
    }
}

/// Reports audio whose bytes are not audio, but text, an image or a document, or whose format
/// differs from the declared one. Qwen and Mistral also accept URLs and `data:` URLs.
fn input_audio<'b>(
    subject: &Subject<'b>,
    found: &mut Found<'b>,
    audio: &'b Value,
    sent: &'b Value,
) {
    let Some(data) = sent.as_str() else {
        return;
    };
    let takes_urls = [Server::Qwen, Server::Mistral].contains(&subject.server);
    let data = match of_data_url(data) {
        Some((_, data)) if takes_urls => data,
        None if takes_urls && data.contains("://") => {
            unreachable(sent, false, found);
            return;
        }
        _ => data,
    };
    if !media_type::is_base64(data) {
        found
            .at(sent, "this is not Base64")
            .help("encode the bytes of the recording once");
        return;
    }
    let Some(real) = media_type::media_type(data) else {
        return;
    };
    let declared = text_of(audio, "format").unwrap_or_default();
    if !is_sound(real) {
        found
            .at(sent, format!("the data is `{real}`, not audio"))
            .warning()
            .help("send the intended recording");
    } else if is_other_sound(declared, real) {
        found
            .at_member(
                audio,
                "format",
                format!("the data is `{real}`, but the body says `{declared}`"),
            )
            .warning()
            .help("declare the format of the recording, or convert it");
    }
}

/// Returns `true` if the declared format is `wav` or `mp3`, and the data has a different media
/// type. Other declared formats are not compared.
fn is_other_sound(declared: &str, real: &str) -> bool {
    match declared {
        "wav" => real != "audio/wav",
        "mp3" => real != "audio/mpeg",
        _ => false,
    }
}

/// The image types that OpenAI and Claude accept. For OpenAI, the type in the `data:` URL does not
/// matter.
const COMMON_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks the bytes of an image in a `data:` URL.
fn openai_image<'b>(subject: &Subject<'b>, found: &mut Found<'b>, url: &'b Value) {
    let Some((said, data)) = url.as_str().and_then(of_data_url) else {
        return;
    };
    if !media_type::is_base64(data) {
        let note = found.at(url, "the text after `base64,` is not Base64");
        let is_sure = matches!(
            subject.server,
            Server::OpenAi | Server::Unknown | Server::Volcengine
        );
        let note = if is_sure { note } else { note.warning() };
        note.help("encode the bytes of the image once, or write its URL without `data:`");
        return;
    }
    let is_sure = subject.server.is_openai();
    let real = media_type::media_type(data).filter(|real| is_other(said, real));
    if let Some(real) = real.filter(|_| subject.model.is_some_and(is_claude_model)) {
        let said = crate::text::cut(said, 40);
        found
            .at(
                url,
                format!("the data is `{real}`, but the URL says `{said}`, which Claude rejects"),
            )
            .warning()
            .help(format!("write `{real}`, or send the intended image"));
        return;
    }
    if is_unknown_picture(said, data) {
        let note = found.at(url, no_picture(said));
        let note = if is_sure { note } else { note.warning() };
        note.help("send the intended image");
    }
    if let Some(real) =
        media_type::media_type(data).filter(|real| !is_taken_image(subject.server, real))
    {
        let note = found.at(
            url,
            match takes_other_images(subject.server) {
                true => format!("the data is `{real}`, which the server does not read as an image"),
                false => {
                    format!("the data is `{real}`, but images must be PNG, JPEG, GIF or WebP")
                }
            },
        );
        let note = if is_sure { note } else { note.warning() };
        note.help("send the intended image");
    } else if media_type::is_cut_png(data) {
        found
            .at(
                url,
                "the image is cut off: a PNG ends with the chunk `IEND`",
            )
            .warning()
            .help("send the whole image");
    }
}

/// Returns `true` if a server also accepts BMP, TIFF, HEIC and other images.
fn takes_other_images(server: Server) -> bool {
    [Server::Qwen, Server::Volcengine].contains(&server)
}

/// Returns `true` if a server accepts images of a media type.
fn is_taken_image(server: Server, real: &str) -> bool {
    let is_other = real.starts_with("image/") && real != "image/svg+xml";
    COMMON_IMAGES.contains(&real) || takes_other_images(server) && is_other
}

fn no_picture(said: &str) -> String {
    format!("the data is not a valid `{said}` image")
}

/// Prefixes of media types that OpenAI rejects as files. The only source for images is a single
/// report.
const FILES_REFUSED: [&str; 4] = ["audio/", "video/", "image/", ARCHIVE];
/// The media type of archives. The only source is a single report.
const ARCHIVE: &str = "application/zip";

/// The file extensions of audio and video.
const SOUND_AND_VIDEO: [&str; 10] = [
    ".mp3", ".wav", ".ogg", ".flac", ".m4a", ".aac", ".mp4", ".webm", ".mov", ".avi",
];

fn is_refused_as_file(media_type: &str) -> bool {
    FILES_REFUSED
        .iter()
        .any(|kind| media_type.starts_with(kind))
}

/// Reports a file without a name, and a file that is not a document.
fn openai_file<'b>(found: &mut Found<'b>, file: &'b Value) {
    if text_of(file, "file_data").is_some() && text_of(file, "filename").is_none() {
        found
            .at(file, "a file with `file_data` needs a `filename`")
            .help("add `filename`, such as `report.pdf`");
    }
    let help = "OpenAI accepts documents and text as files: send a transcript, or images";
    let said = text_of(file, "file_data")
        .and_then(of_data_url)
        .map(|(said, _)| said);
    if let Some(said) = said.filter(|said| is_refused_as_file(said)) {
        let message = format!(
            "OpenAI does not accept files of type `{}`",
            crate::text::cut(said, 60)
        );
        let note = found.at_member(file, "file_data", message);
        if said.starts_with("image/") {
            note.warning()
                .help("send it as an image: `input_image`, or `image_url` in chat");
        } else if said == ARCHIVE {
            note.warning().help("send the files in it");
        } else {
            note.help(help);
        }
    }
    let data = text_of(file, "file_data").and_then(of_data_url);
    if let Some(sent) = file.get("file_data") {
        other_document(sent, data, found);
    }
    if data.is_some_and(|(_, data)| !media_type::is_base64(data)) {
        found
            .at_member(file, "file_data", "the text after `base64,` is not Base64")
            .help("encode the bytes of the file once");
    }
    if text_of(file, "file_data")
        .is_some_and(|data| of_data_url(data).is_none() && !data.is_empty())
    {
        let message =
            "the file is not a data URL: OpenAI requires the media type before the Base64";
        // The source is a single report, in which the data was not Base64 either.
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

/// Reports a `WebP` image, which llama.cpp's decoder (`stb_image`) does not read.
fn llamacpp_image<'b>(found: &mut Found<'b>, part: &'b Value) {
    let Some(holder) = part.get("image_url") else {
        return;
    };
    let url = holder.get("url").unwrap_or(holder);
    let is_webp = |text: &str| text.starts_with("data:image/webp");
    if url.as_str().is_some_and(is_webp) {
        found
            .at(url, "llama.cpp does not read WebP")
            .help("send it as `data:image/png;base64,…`");
    }
}

/// Reports the URL of an image, because local servers do not download images.
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
    } else if subject.server.is_openai() && text_of(part, "type") == Some("input_file") {
        openai_file(found, part);
    }
    if let Some(url) = part.get("image_url") {
        openai_image(subject, found, url);
    }
}

/// Prefixes of media types that Gemini accepts inline.
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

/// Returns `true` if a URL refers to the client's own disk, or contains the data itself.
fn is_local(uri: &str) -> bool {
    ["file:", "data:", "blob:"]
        .iter()
        .any(|scheme| uri.starts_with(scheme))
}

/// Returns `true` if a media type identifies an office document or an archive.
fn is_office(media_type: &str) -> bool {
    media_type.starts_with("application/vnd.")
        || ["application/msword", "application/zip"].contains(&media_type)
}

/// Reports an uploaded file of a type that Gemini does not read, such as an office document.
fn google_file<'b>(found: &mut Found<'b>, part: &'b Value) {
    let Some(file) = part.get("fileData").or_else(|| part.get("file_data")) else {
        return;
    };
    let uri = ["fileUri", "file_uri"]
        .into_iter()
        .find_map(|name| Some((name, text_of(file, name)?)));
    if let Some((name, _)) = uri.filter(|(_, uri)| is_local(uri)) {
        found
            .at_member(file, name, "Gemini cannot fetch this URI")
            .help("upload the file and send its URI, or send the bytes as `inlineData`");
    }
    let name = ["mimeType", "mime_type"]
        .into_iter()
        .find(|name| file.get(*name).is_some());
    let said = name.and_then(|name| Some((name, text_of(file, name)?)));
    if let Some((name, said)) = said.filter(|(_, said)| is_office(said)) {
        let message = format!(
            "a report says that Gemini does not accept `{}`",
            crate::text::cut(said, 60)
        );
        found
            .at_member(file, name, message)
            .warning()
            .help("send it as PDF, or its text");
    }
}

/// Reports a file in Cloud Storage, which Vertex AI reads, but not Gemini's own API.
fn cloud_storage<'b>(found: &mut Found<'b>, part: &'b Value) {
    let file = part.get("fileData").or_else(|| part.get("file_data"));
    let named = ["fileUri", "file_uri"].into_iter().find_map(|name| {
        let file = file?;
        text_of(file, name)?
            .starts_with("gs://")
            .then_some((file, name))
    });
    if let Some((file, name)) = named {
        let message =
            "according to reports from 2024 and 2025, Gemini's own API rejects `gs://` URIs";
        found
            .at_member(file, name, message)
            .warning()
            .help("register or upload the file with the Files API, and send its URI");
    }
}

/// Reports a media type that is not in Gemini's documentation. In recorded requests, Gemini 3.1 and
/// 3.5 accept GIF.
fn inline_type<'b>(found: &mut Found<'b>, data: &'b Value, name: &str, media_type: &str) {
    let shown = crate::text::cut(media_type, 60);
    if media_type == "image/gif" {
        found
            .at_member(data, name, "some Gemini models do not accept `image/gif`")
            .warning()
            .help("send PNG, JPEG or WebP");
        return;
    }
    let help = match media_type {
        "image/jpg" => "the correct name is `image/jpeg`",
        _ => "images must be PNG, JPEG, WebP, HEIC or HEIF; documents must be PDF or text",
    };
    let message = format!("Gemini does not accept `{shown}` as inline data");
    found.at_member(data, name, message).help(help);
}

fn google<'b>(found: &mut Found<'b>, part: &'b Value) {
    google_file(found, part);
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
        inline_type(found, data, name, media_type);
    } else if let Some(real) = text_of(data, "data")
        .and_then(media_type::media_type)
        .filter(|real| is_other(media_type, real))
    {
        mismatch(found, data, name, real);
    } else if let Some(real) = text_of(data, "data")
        .and_then(media_type::media_type)
        .filter(|real| media_type == PDF && *real != PDF)
    {
        found
            .at_member(data, "data", format!("the data is `{real}`, not PDF"))
            .warning()
            .help("send the intended document");
    } else if text_of(data, "data").is_some_and(|bytes| is_unknown_picture(media_type, bytes)) {
        found
            .at_member(data, "data", no_picture(media_type))
            .help("send the intended image");
    }
}

fn is_unknown_picture(said: &str, data: &str) -> bool {
    media_type::media_type(data).is_none() && media_type::is_no(said, data)
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>, block: &'b Value) {
    let Some(source) = block.get("source") else {
        return;
    };
    let kind = text_of(source, "type");
    if subject.server == Server::Ollama && kind.is_some_and(|kind| kind != "base64") {
        found
            .at_member(source, "type", "Ollama accepts images only as Base64")
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
        let data = text_of(source, "data").filter(|_| !subject.server.is_claude());
        if data.is_some_and(|data| !media_type::is_base64(data)) {
            let note = found.at_member(source, "data", "this is not Base64");
            let note = if subject.server == Server::Ollama {
                note
            } else {
                note.warning()
            };
            note.help("encode the bytes of the image once");
            return;
        }
        anthropic_bytes(subject, found, source);
    }
}

fn anthropic_bytes<'b>(subject: &Subject<'b>, found: &mut Found<'b>, source: &'b Value) {
    let (Some(said), Some(data)) = (text_of(source, "media_type"), text_of(source, "data")) else {
        return;
    };
    if said == PDF && subject.server.is_claude() && is_encrypted(data) {
        found
            .at_member(
                source,
                "data",
                "the PDF is encrypted, and Anthropic reads only unencrypted ones",
            )
            .warning()
            .help("send an unencrypted copy");
    }
    let Some(real) = media_type::media_type(data) else {
        if subject.server.is_claude() && is_unknown_picture(said, data) {
            found
                .at_member(source, "data", no_picture(said))
                .help("send the intended image");
        }
        return;
    };
    if is_other(said, real) {
        mismatch(found, source, "media_type", real);
    } else if said == PDF && real != PDF && subject.server.is_claude() {
        found
            .at_member(source, "data", format!("the data is `{real}`, not PDF"))
            .help("send the intended document");
    }
}

const PDF: &str = "application/pdf";

/// Returns `true` if a PDF's trailer contains the key `Encrypt`. Trailers in a compressed stream
/// are not read.
fn is_encrypted(data: &str) -> bool {
    STANDARD
        .decode(data)
        .is_ok_and(|bytes| memchr::memmem::find(&bytes, b"/Encrypt ").is_some())
}

/// Returns `true` if the type of the bytes differs from the declared image type. The two names of
/// HEIF are treated as equal.
fn is_other(said: &str, real: &str) -> bool {
    said.starts_with("image/") && said != real && !(is_heif(said) && is_heif(real))
}

fn is_heif(name: &str) -> bool {
    matches!(name, "image/heic" | "image/heif")
}

fn mismatch<'b>(found: &mut Found<'b>, holder: &'b Value, name: &'static str, real: &str) {
    let declared = holder.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = format!(
        "the data is `{real}`, but the body says `{}`",
        crate::text::cut(declared, 40)
    );
    // Gemini accepts every kind of file in the same member.
    let is_file = name == "media_type" && !real.starts_with("image/");
    let help = match is_file {
        true => "send the intended image; a PDF or text file needs a block of type `document`"
            .to_owned(),
        false if name == "media_type" && !COMMON_IMAGES.contains(&real) => {
            "send the intended image, as PNG, JPEG, GIF or WebP".to_owned()
        }
        false => format!("write `{real}`, or send the intended file"),
    };
    let note = found.at_member(holder, name, message);
    let note = if name == "media_type" {
        note
    } else {
        note.warning()
    };
    note.help(help);
}
