//! `protocol/model-media`: media that the model does not accept, or does not accept in this form.

use serde_json::Value;

use super::value::{either, elements, is_type};
use super::{Found, Subject, body_rule};
use crate::check::history::{Kind, Part};
use crate::diag::Severity;
use crate::provider::{TurnForm, WireFormat};
use crate::repo::Property;
use crate::text::cut;

body_rule! {
    Error "protocol/model-media", "the model does not accept this image or audio, or the way in which it is sent",
    "Models of the same API accept different media. A text-only model rejects a request with an image: *Invalid content type. image_url is \
     only supported by certain models* (OpenAI), *unknown variant `image_url`, expected `text`* (DeepSeek). Others accept images, but not \
     in tool results, or not by URL. Most of OpenAI's chat models do not accept audio: *Content blocks are expected to be either text or \
     image_url type*.\n\n\
     * wrong: `{\"type\": \"image_url\", …}` for `deepseek-chat` or `gpt-3.5-turbo`\n\
     * right: a description of the image in words, or a model that accepts images\n\
     * wrong: `{\"fileData\": {\"fileUri\": \"https://example.com/cat.png\"}}` for `gemini-2.0-flash`\n\
     * right: the bytes as `inlineData`, or a file that was uploaded before\n\n\
     `model-families.toml` lists these models (`images`, `audio`, `result_images`, `media_urls`), each with its source. \
     `protocol/media-source` covers the requirements of servers and formats.",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral accepts no images in tool messages before tokenizer 15",
        "vllm-project/vllm#11629": "OpenAI: *image_url is only supported by certain models*",
        "SillyTavern/SillyTavern#3470": "OpenAI's o3-mini, o1-mini and o1-preview reject images",
        "vercel/ai#16757": "Gemini 2.0: *Invalid or unsupported file uri*",
        "BoundaryML/baml#1548": "Gemini: the same error",
        "Zoo-Code-Org/Zoo-Code#1106": "DeepSeek: *unknown variant `image_url`*",
    }
}

/// The media that the model is known to reject, each with the severity of sending it.
struct Refused {
    images: Option<Severity>,
    audio: Option<Severity>,
    in_results: Option<Severity>,
    urls: Option<Severity>,
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let refused = Refused {
        images: subject.facts.refuses(Property::Images),
        audio: subject.facts.refuses(Property::Audio),
        in_results: subject.facts.refuses(Property::ResultImages),
        urls: subject.facts.refuses(Property::MediaUrls),
    };
    if let Refused {
        images: None,
        audio: None,
        in_results: None,
        urls: None,
    } = refused
    {
        return;
    }
    for (_, part) in subject.history().parts() {
        match part.kind {
            Kind::Media => media(subject, &refused, part.value, found),
            Kind::Result(_) => {
                images_of_result(subject.wire, part).for_each(|image| match refused.in_results {
                    Some(level) if refused.images.is_none() => {
                        let note = found.at(
                            image,
                            format!("{} does not accept images in tool results", model(subject)),
                        );
                        note.of_model()
                            .level(level)
                            .help("put them into a user message after all results of the turn");
                    }
                    _ => media(subject, &refused, image, found),
                });
            }
            _ => {}
        }
    }
}

fn media<'b>(subject: &Subject<'b>, refused: &Refused, part: &'b Value, found: &mut Found<'b>) {
    if let Some(level) = refused.images.filter(|_| is_image(subject.wire, part)) {
        let note = found.at(part, format!("{} does not accept images", model(subject)));
        note.of_model()
            .level(level)
            .help("omit the image, describe it in words, or choose a model that accepts images");
    } else if let Some(level) = refused.audio.filter(|_| is_audio(subject.wire, part)) {
        let note = found.at(part, format!("{} does not accept audio", model(subject)));
        note.of_model()
            .level(level)
            .help("send a transcript, or choose a model that accepts audio");
    } else if let Some((level, address)) = refused
        .urls
        .and_then(|level| Some((level, address(subject.wire, part)?)))
    {
        let note = found.at(address, format!("{} does not fetch URLs", model(subject)));
        note.of_model()
            .level(level)
            .help("send the bytes in Base64, or upload the file first");
    }
}

fn model<'b>(subject: &Subject<'b>) -> std::borrow::Cow<'b, str> {
    cut(subject.model.unwrap_or("this model"), 60)
}

/// Returns the images in a tool result.
fn images_of_result<'b>(wire: WireFormat, part: &Part<'b>) -> impl Iterator<Item = &'b Value> {
    let holder = match wire.facts().turns {
        TurnForm::Contents => either(part.value, "functionResponse", "function_response")
            .and_then(|response| response.get("parts")),
        TurnForm::Items => part.value.get("output"),
        TurnForm::Blocks | TurnForm::Messages | TurnForm::None => part.value.get("content"),
    };
    elements(holder)
        .iter()
        .filter(move |part| is_image(wire, part))
}

fn is_image(wire: WireFormat, part: &Value) -> bool {
    match wire.facts().turns {
        TurnForm::Blocks => is_type(part, "image"),
        TurnForm::Items => is_type(part, "input_image"),
        TurnForm::Contents => media_type(part).is_some_and(|known| known.starts_with("image/")),
        TurnForm::Messages | TurnForm::None => is_type(part, "image_url"),
    }
}

fn is_audio(wire: WireFormat, part: &Value) -> bool {
    match wire.facts().turns {
        TurnForm::Contents => media_type(part).is_some_and(|known| known.starts_with("audio/")),
        TurnForm::Blocks | TurnForm::Messages | TurnForm::Items | TurnForm::None => {
            is_type(part, "input_audio")
        }
    }
}

/// Returns the media type that a Gemini part declares.
fn media_type(part: &Value) -> Option<&str> {
    let holder = either(part, "inlineData", "inline_data")
        .or_else(|| either(part, "fileData", "file_data"))?;
    either(holder, "mimeType", "mime_type")?.as_str()
}

/// Returns the member that contains a web address.
fn address(wire: WireFormat, part: &Value) -> Option<&Value> {
    let address = match wire.facts().turns {
        TurnForm::Blocks => part.get("source")?.get("url")?,
        TurnForm::Contents => either(
            either(part, "fileData", "file_data")?,
            "fileUri",
            "file_uri",
        )
        .filter(|uri| !is_known_to_google(uri))?,
        TurnForm::Messages | TurnForm::Items | TurnForm::None => {
            let image = part.get("image_url")?;
            image.get("url").unwrap_or(image)
        }
    };
    address
        .as_str()
        .is_some_and(|url| url.starts_with("http://") || url.starts_with("https://"))
        .then_some(address)
}

/// Returns `true` if a URL belongs to Google: an uploaded file, or a video on `YouTube`.
pub(super) fn is_known_to_google(uri: &Value) -> bool {
    let own = [
        "generativelanguage.googleapis.com",
        "youtube.com",
        "youtu.be",
    ];
    let host = uri
        .as_str()
        .and_then(|uri| uri.split("://").nth(1))
        .and_then(|rest| rest.split(['/', '?']).next());
    host.is_some_and(|host| {
        own.iter()
            .any(|known| host == *known || host.ends_with(&format!(".{known}")))
    })
}
