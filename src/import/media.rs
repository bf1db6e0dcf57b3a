//! Reads images from bodies of all wire formats.

use serde_json::Value;

use crate::conversation::Image;

/// Returns the image in a part; `None` for anything else, such as documents, audio, video and files
/// given by ID.
pub(super) fn image(part: &Value) -> Option<Image> {
    match part {
        Value::String(data) => Some(inline(data, None)),
        // Anthropic's documents have a source, too.
        Value::Object(_) if text_at(part, "/type") == Some("image") => {
            match text_at(part, "/source/type")? {
                "base64" => Some(inline(
                    text_at(part, "/source/data")?,
                    text_at(part, "/source/media_type"),
                )),
                "url" => Some(at_url(text_at(part, "/source/url")?, None)),
                _ => None,
            }
        }
        _ => image_url(part).map(of_url).or_else(|| of_gemini(part)),
    }
}

fn text_at<'v>(part: &'v Value, at: &str) -> Option<&'v str> {
    part.pointer(at).and_then(Value::as_str)
}

fn image_url(part: &Value) -> Option<&str> {
    text_at(part, "/image_url").or_else(|| text_at(part, "/image_url/url"))
}

fn of_gemini(part: &Value) -> Option<Image> {
    if let Some(data) = either(part, "inlineData", "inline_data") {
        return Some(inline(
            &member(data, "data", "data")?,
            Some(&image_kind(data)?),
        ));
    }
    let file = either(part, "fileData", "file_data")?;
    Some(at_url(
        &member(file, "fileUri", "file_uri")?,
        Some(&image_kind(file)?),
    ))
}

fn either<'v>(part: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    part.get(camel).or_else(|| part.get(snake))
}

fn image_kind(value: &Value) -> Option<String> {
    member(value, "mimeType", "mime_type").filter(|kind| kind.starts_with("image/"))
}

fn member(value: &Value, camel: &str, snake: &str) -> Option<String> {
    value
        .get(camel)
        .or_else(|| value.get(snake))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// Reads a URL or a data URL.
fn of_url(url: &str) -> Image {
    match data_of(url) {
        Some((media_type, data)) => inline(data, Some(media_type)),
        None => at_url(url, None),
    }
}

/// Returns the media type and the base64 data in a data URL; `None` for any other URL.
pub(super) fn data_of(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

fn inline(data: &str, media_type: Option<&str>) -> Image {
    let media_type = media_type.unwrap_or_else(|| kind(data).unwrap_or("image/png"));
    Image {
        data: data.into(),
        media_type: media_type.into(),
        is_url: false,
    }
}

/// Returns an image at an address. A missing media type is derived from the file extension in the
/// URL; the default is JPEG.
fn at_url(url: &str, media_type: Option<&str>) -> Image {
    let path = url
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let by_name = match path.rsplit('.').next() {
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ => "image/jpeg",
    };
    Image {
        data: url.into(),
        media_type: media_type.unwrap_or(by_name).into(),
        is_url: true,
    }
}

/// The first bytes of each image type in base64 (WHATWG MIME Sniffing, 6.1), and the number of
/// characters that identify the type.
const KINDS: [(&str, usize, &str); 4] = [
    ("iVBORw0KGgo", 12, "image/png"),
    ("/9j/", 4, "image/jpeg"),
    ("R0lGOD", 8, "image/gif"),
    ("UklGR", 16, "image/webp"),
];

fn kind(data: &str) -> Option<&'static str> {
    KINDS
        .into_iter()
        .find(|(start, ..)| data.starts_with(start))
        .map(|(.., kind)| kind)
}

/// Returns the number of base64 characters that identify the type of an image; 0 if the type is
/// unknown.
pub(super) fn length_of_kind(data: &str) -> usize {
    KINDS
        .into_iter()
        .find(|(start, ..)| data.starts_with(start))
        .map_or(0, |(_, length, _)| length.min(data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_is_read() {
        let png = "iVBORw0KGgoAAAAN";
        let data = Image {
            data: png.into(),
            media_type: "image/png".into(),
            is_url: false,
        };
        for part in [
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}),
            json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{png}")}}),
            json!({"type": "image_url", "image_url": format!("data:image/png;base64,{png}")}),
            json!({"type": "input_image", "detail": "auto", "image_url": format!("data:image/png;base64,{png}")}),
            json!({"inlineData": {"mimeType": "image/png", "data": png}}),
            json!({"inline_data": {"mime_type": "image/png", "data": png}}),
            json!(png),
        ] {
            assert_eq!(image(&part).as_ref(), Some(&data), "{part}");
        }
        let named = Image {
            data: "https://a.b/c.gif?d".into(),
            media_type: "image/gif".into(),
            is_url: true,
        };
        assert_eq!(
            image(&json!({"type": "image_url", "image_url": {"url": "https://a.b/c.gif?d"}})),
            Some(named)
        );
        assert_eq!(
            image(&json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGR"}})),
            None
        );
        assert_eq!(
            image(&json!({"type": "document", "source": {"type": "url", "url": "https://a.b"}})),
            None
        );
    }
}
