//! Recognises images from users and tools, and converts them for messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::conversation::Image;

/// The maximum size of an image to send, in bytes before base64 encoding. Anthropic accepts 5 MB,
/// OpenAI and Gemini up to 20 MB per request.
pub const MAX_BYTES: u64 = 15 * 1024 * 1024;

/// Returns `true` if an image's source is a URL that providers download themselves.
pub fn is_url(source: &str) -> bool {
    source.starts_with("https://") || source.starts_with("http://")
}

/// Returns `true` if an image's source is a URL that providers do not download. Check first that
/// there is no file with this name, because file names may contain colons.
pub fn is_other_url(source: &str) -> bool {
    source.starts_with("data:")
        || source
            .split_once("://")
            .is_some_and(|(scheme, _)| is_scheme(scheme))
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the image at a URL, without downloading it.
pub fn at_url(url: &str) -> Image {
    Image {
        data: url.into(),
        media_type: by_extension(url).into(),
        is_url: true,
    }
}

/// Returns an image with these bytes; `None` unless providers accept its format: PNG, JPEG, GIF or
/// WebP.
pub fn of_bytes(bytes: &[u8]) -> Option<Image> {
    let media_type = sniff(bytes)?;
    Some(Image {
        data: STANDARD.encode(bytes).into(),
        media_type: media_type.into(),
        is_url: false,
    })
}

/// Returns the image in base64 text; `None` if the text is not base64, is larger than
/// [`MAX_BYTES`], or is not in an accepted format.
pub(super) fn of_base64(data: &str) -> Option<Image> {
    let has_room = data.len() as u64 / 4 * 3 <= MAX_BYTES;
    of_bytes(&has_room.then(|| STANDARD.decode(data).ok())??)
}

/// Returns the text that replaces base64 data that a model cannot see.
pub(super) fn left_out(what: &str, media_type: &str, data: &str) -> String {
    format!(
        "[{what}: {media_type}, {} bytes, left out]",
        data.len() / 4 * 3
    )
}

/// Returns the media type, determined from the first bytes (WHATWG MIME Sniffing, 6.1) regardless
/// of the file name; `None` if they are not an image in an accepted format.
pub(super) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Returns the probable media type of an image at a URL: that of the extension, or JPEG.
fn by_extension(url: &str) -> &'static str {
    let path = url
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    match path.rsplit('.').next() {
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ => "image/jpeg",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_content() {
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(sniff(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(sniff(b"GIF89a"), Some("image/gif"));
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(sniff(b"<svg/>"), None);
        assert_eq!(sniff(b""), None);
    }

    #[test]
    fn urls_are_not_fetched() {
        assert!(is_url("https://example.com/a.png") && !is_url("C:/a.png"));
        assert!(
            [
                "ftp://a/b.png",
                "data:image/png;base64,AA==",
                "HTTP://a/b.png"
            ]
            .into_iter()
            .all(is_other_url)
        );
        assert!(
            !["C:/a.png", "C://a.png", "a:b.png", "a.png"]
                .into_iter()
                .any(is_other_url)
        );
        let image = at_url("https://example.com/a.PNG?size=2");
        assert_eq!((&*image.media_type, image.is_url), ("image/png", true));
    }
}
