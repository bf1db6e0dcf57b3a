//! `protocol/media-limit`: images and documents that exceed a provider's limits on size or number.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::media_type::of_data_url;
use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::check::history::Kind;
use crate::provider::{Server, WireFormat};
use crate::tokens;

body_rule! {
    Error "protocol/media-limit", "an image or a document is larger than the API accepts, or there are too many",
    "Anthropic limits images and documents in a request: 10 MB of Base64 per image (5 MB on Bedrock and Vertex AI, and in the API until \
     2026); 8,000 pixels per side, or 2,000 if there are more than 20 images; 600 images and 600 PDF pages, or 100 of each for a model with \
     a window of 200,000 tokens; and 32 MB in total: *image exceeds 10 MB maximum: 11174516 bytes > 10485760 bytes*. One such image in the \
     history makes every later request fail.\n\n\
     Qwen requires that the sides of an image have at least 10 pixels and differ by a factor of at most 200, and accepts 10 MB of Base64 \
     per image (images of a single pixel are not reported); Groq accepts 5 images in a request; Vertex AI accepts 10 videos. An image \
     above one of these limits is a warning: 10,485,760 bytes for MiniMax and Volcengine, and 30,000 patches of 32 × 32 pixels for \
     GPT-5.6, unless `detail` reduces the image.\n\n\
     * wrong: a screenshot with a side of 9,000 pixels\n\
     * right: the same, scaled down to 1,568 pixels, which is all that the model sees",
    of AnthropicMessages, OpenAiChat, OpenAiResponses, GoogleGenerateContent;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/vision.md":
            "Claude accepts 8,000 pixels per side (2,000 with many images), and 100 or 600 images, depending on the model",
        "https://platform.claude.com/docs/en/build-with-claude/pdf-support":
            "Claude accepts up to 32 MB and 600 pages, or 100 pages for context windows below 1M",
        "https://www.alibabacloud.com/help/en/model-studio/error-code":
            "Qwen: *Exceeded limit on max bytes per data-uri item*, *The image length and width do not meet the model restrictions*",
        "https://www.alibabacloud.com/help/en/model-studio/vision":
            "Qwen limits the sides of an image and their ratio",
        "https://console.groq.com/docs/vision": "Groq accepts at most 5 images in a request",
        "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/models/gemini/2-5-pro":
            "Vertex AI accepts at most 10 videos in a prompt",
        "NousResearch/hermes-agent#76039": "MiniMax: *media exceeds size limit*",
        "NousResearch/hermes-agent#97070": "MiniMax: the same error",
        "https://www.volcengine.com/docs/82379/1299023":
            "Volcengine: *the size of the input image exceeds the limit*",
        "NousResearch/hermes-agent#106186":
            "OpenAI: *The image you provided requires … patches after processing, exceeding the limit*",
        "NousResearch/hermes-agent#106525": "OpenAI: the same error",
        "anthropics/claude-code#19631": "Claude: *image exceeds 5 MB maximum*",
        "daya0576/pi-imessage#5": "the same error",
        "aipoch/open-science#225": "the limit applies to the Base64 text",
        "anthropics/claude-code#4778": "*image dimensions exceed max allowed size: 8000 pixels*",
        "anthropics/claude-code#9375": "*for many-image requests: 2000 pixels*",
        "anthropics/claude-code#5707": "*A maximum of 100 PDF pages may be provided*",
    }
}

const GEMINI: &[WireFormat] = &[WireFormat::GoogleGenerateContent];

const MEGABYTE: usize = 1024 * 1024;

/// The number of images above which stricter limits apply.
const MANY_IMAGES: usize = 20;

/// The context window below which a model accepts fewer images and pages.
const LONG_WINDOW: i64 = 1_000_000;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    patches(subject, found);
    // Other servers have their own undocumented limits.
    match subject.server {
        Server::Qwen => qwen(subject, found),
        Server::Groq => groq(subject, found),
        Server::MiniMax | Server::Volcengine => large(subject, found),
        Server::Vertex if GEMINI.contains(&subject.wire) => videos(subject, found),
        server if server.is_claude() => anthropic(subject, found),
        _ => {}
    }
}

/// The maximum number of images in a request to Groq.
const GROQ_IMAGES: usize = 5;

fn groq<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    too_many("images", "Groq", GROQ_IMAGES, &pictures(subject), found);
}

/// Reports the first image or other medium beyond a maximum number. `what` is the kind of media,
/// and `who` is the server that sets the maximum.
fn too_many<'b>(what: &str, who: &str, most: usize, media: &[&'b Value], found: &mut Found<'b>) {
    if let Some(further) = media.get(most) {
        let message = format!(
            "{} {what}, but {who} accepts at most {most} in a request",
            media.len()
        );
        found.at(further, message).help(format!(
            "leave out the oldest {what}, or describe them in words"
        ));
    }
}

/// The maximum ratio between the sides of an image for Qwen.
const QWEN_RATIO: u32 = 200;
/// The minimum length of an image's shorter side for Qwen, in pixels.
const QWEN_SIDE: u32 = 10;
/// The maximum size of an image for Qwen, in bytes of Base64.
const QWEN_BYTES: usize = 10 * MEGABYTE;

fn qwen<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for url in pictures(subject) {
        let Some((_, data)) = url.as_str().and_then(of_data_url) else {
            continue;
        };
        if data.len() > QWEN_BYTES {
            let message = format!(
                "an image of {} bytes in Base64 is too large: Qwen accepts 10 MB",
                data.len()
            );
            found
                .at(url, message)
                .help("scale the image down, or send its URL");
        }
        let sides = (tokens::shortest_side(data), tokens::longest_side(data));
        let (Some(short), Some(long)) = sides else {
            continue;
        };
        // Single-pixel images are placeholders in tests and contexts.
        if short < QWEN_SIDE && long > 1 {
            let message = format!(
                "a side of this image has {short} pixels: Qwen requires at least {QWEN_SIDE}"
            );
            found
                .at(url, message)
                .help("scale the image up, or leave it out");
        } else if long / short > QWEN_RATIO {
            let message = format!(
                "the sides of this image differ by a factor of {}: Qwen accepts at most {QWEN_RATIO}",
                long / short
            );
            found.at(url, message).help("cut the image into pieces");
        }
    }
}

/// The maximum size of an image for `MiniMax` and Volcengine, in bytes.
const MOST_BYTES: usize = 10 * MEGABYTE;

/// Reports images whose data is larger than [`MOST_BYTES`].
fn large<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let urls = pictures(subject).into_iter();
    let in_urls = urls.filter_map(|url| Some((url, of_data_url(url.as_str()?)?.1)));
    let blocks = media(subject)
        .into_iter()
        .filter(|block| is_type(block, "image"));
    let in_blocks = blocks
        .filter_map(base64)
        .filter_map(|data| Some((data, data.as_str()?)));
    for (place, data) in in_urls.chain(in_blocks) {
        let bytes = data.len() / 4 * 3;
        if bytes > MOST_BYTES {
            let message = format!(
                "an image of {bytes} bytes is too large: {} reportedly accepts at most {MOST_BYTES}",
                subject.server.name()
            );
            found
                .at(place, message)
                .warning()
                .help("scale the image down");
        }
    }
}

/// The side of a square patch into which models divide an image, in pixels.
const PATCH: u32 = 32;

/// Reports images that the model divides into too many patches. With `detail: "high"` or `"low"`,
/// the API reduces them first.
fn patches<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some((most, _)) = subject.facts.value(|family| family.image_patches) else {
        return;
    };
    let parts = subject.history().parts().map(|(_, part)| part.value);
    for (part, image) in parts.filter_map(|part| Some((part, part.get("image_url")?))) {
        let url = image.get("url").unwrap_or(image);
        let detail = image.get("detail").or_else(|| part.get("detail"));
        let is_reduced = detail.is_some_and(|detail| detail == "high" || detail == "low");
        let data = url.as_str().and_then(of_data_url).map(|(_, data)| data);
        let sides =
            data.and_then(|data| Some((tokens::shortest_side(data)?, tokens::longest_side(data)?)));
        let Some((short, long)) = sides.filter(|_| !is_reduced) else {
            continue;
        };
        let patches = i64::from(short.div_ceil(PATCH)) * i64::from(long.div_ceil(PATCH));
        if patches > most {
            let message = format!(
                "according to user reports, an image of {patches} patches is too large: the limit is {most}"
            );
            found.at(url, message).warning().help(
                "scale the image down (a patch is 32 × 32 pixels), or set `detail` to `high`",
            );
        }
    }
}

/// The maximum number of videos in a request to Vertex AI.
const VERTEX_VIDEOS: usize = 10;

fn videos<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let parts = subject.history().parts().map(|(_, part)| part.value);
    let videos: Vec<&Value> = parts.filter(|part| is_video(part)).collect();
    too_many("videos", "Vertex AI", VERTEX_VIDEOS, &videos, found);
}

/// Returns `true` if a part of a Gemini request is a video.
fn is_video(part: &Value) -> bool {
    let names = ["inlineData", "inline_data", "fileData", "file_data"];
    let mut data = names.iter().filter_map(|name| part.get(*name));
    data.any(|data| {
        let media_type = data.get("mimeType").or_else(|| data.get("mime_type"));
        let media_type = media_type.and_then(Value::as_str).unwrap_or_default();
        media_type.starts_with("video/")
    })
}

/// Returns the URLs of the images in messages and items of OpenAI's formats.
fn pictures<'b>(subject: &Subject<'b>) -> Vec<&'b Value> {
    let parts = subject.history().parts();
    let images = parts.filter_map(|(_, part)| part.value.get("image_url"));
    images
        .map(|image| image.get("url").unwrap_or(image))
        .collect()
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let media = media(subject);
    let images: Vec<&Value> = media
        .iter()
        .copied()
        .filter(|block| is_type(block, "image"))
        .collect();
    for image in &images {
        if let Some(data) = base64(image) {
            bytes(subject.server, data, found);
            pixels(data, images.len(), found);
        }
    }
    too_many("images", "this model", most(subject), &images, found);
    pages(subject, &media, found);
    whole(subject, &media, found);
}

/// Returns the images and documents in the history, including those in tool results.
fn media<'b>(subject: &Subject<'b>) -> Vec<&'b Value> {
    let mut media = Vec::new();
    for (_, part) in subject.history().parts() {
        match part.kind {
            Kind::Media => media.push(part.value),
            Kind::Result(_) => media.extend(
                elements(part.value.get("content"))
                    .iter()
                    .filter(|block| is_type(block, "image") || is_type(block, "document")),
            ),
            _ => {}
        }
    }
    media
}

/// Returns the Base64 data of a block.
fn base64(block: &Value) -> Option<&Value> {
    let source = block
        .get("source")
        .filter(|source| is_type(source, "base64"))?;
    source.get("data").filter(|data| data.is_string())
}

fn bytes<'b>(server: Server, data: &'b Value, found: &mut Found<'b>) {
    let length = data.as_str().map_or(0, str::len);
    let most = if server == Server::Anthropic { 10 } else { 5 };
    let help = "scale the image down to 1,568 pixels, or save it as JPEG";
    if length > most * MEGABYTE {
        let message = format!(
            "an image of {length} bytes in Base64 is too large: {} accepts {most} MB",
            server.name()
        );
        found.at(data, message).help(help);
    } else if length > 5 * MEGABYTE {
        let message = format!(
            "Bedrock, Vertex AI and older API versions reject an image of {length} bytes in Base64: their limit is 5 MB"
        );
        found.at(data, message).warning().help(help);
    }
}

fn pixels<'b>(data: &'b Value, images: usize, found: &mut Found<'b>) {
    let Some(side) = data.as_str().and_then(tokens::longest_side) else {
        return;
    };
    let (most, why) = if images > MANY_IMAGES {
        (2_000, " in a request with more than 20 images")
    } else {
        (8_000, "")
    };
    if side > most {
        found
            .at(
                data,
                format!("an image with a side of {side} pixels is too large: Anthropic accepts {most}{why}"),
            )
            .help("scale the image down to 1,568 pixels: the model sees no more");
    }
}

/// Returns the maximum number of images, or of PDF pages, in a request to the model.
fn most(subject: &Subject<'_>) -> usize {
    match subject.facts.context_window() {
        Some((window, _)) if window < LONG_WINDOW => 100,
        _ => 600,
    }
}

/// The assumed minimum size of a page, in bytes. A document that is too small to exceed the page
/// limit is not parsed.
const LEAST_PAGE: usize = 64;

fn pages<'b>(subject: &Subject<'b>, media: &[&'b Value], found: &mut Found<'b>) {
    let most = most(subject);
    let documents = media
        .iter()
        .copied()
        .filter(|block| is_type(block, "document"));
    let data: Vec<&Value> = documents.filter_map(base64).collect();
    let length: usize = data
        .iter()
        .filter_map(|data| data.as_str())
        .map(str::len)
        .sum();
    if length < most * LEAST_PAGE {
        return;
    }
    let mut all = 0;
    for document in data {
        all += document.as_str().map_or(0, pages_of);
        if all > most {
            let message =
                format!("{all} PDF pages, but this model accepts at most {most} in a request");
            found
                .at(document, message)
                .help("send only the relevant pages, or their text");
            return;
        }
    }
}

/// Returns the number of pages that a PDF declares: the highest count of a node in its page tree.
/// Returns 0 if the page tree is compressed.
fn pages_of(base64: &str) -> usize {
    let Ok(bytes) = STANDARD.decode(base64) else {
        return 0;
    };
    let text = String::from_utf8_lossy(&bytes);
    let nodes = text
        .split("<<")
        .filter_map(|dictionary| dictionary.split(">>").next());
    nodes
        .filter(|node| is_node(node))
        .filter_map(count_of)
        .max()
        .unwrap_or(0)
}

fn is_node(dictionary: &str) -> bool {
    dictionary.contains("/Type /Pages") || dictionary.contains("/Type/Pages")
}

fn count_of(dictionary: &str) -> Option<usize> {
    let rest = dictionary.split("/Count").nth(1)?.trim_start();
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// Reports a request whose Base64 data alone exceeds the total limit.
fn whole<'b>(subject: &Subject<'b>, media: &[&'b Value], found: &mut Found<'b>) {
    if subject.server != Server::Anthropic {
        return;
    }
    let mut all = 0;
    for data in media.iter().copied().filter_map(base64) {
        all += data.as_str().map_or(0, str::len);
        if all > 32 * MEGABYTE {
            found
                .at(
                    data,
                    "the images and documents exceed 32 MB, the maximum size of a request",
                )
                .help("upload them with the Files API, or send fewer");
            return;
        }
    }
}
