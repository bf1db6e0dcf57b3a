//! Detects media types from the first bytes of data, for the rules about images and files.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A lenient Base64 decoder: padding is optional, and the data may be truncated.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The number of Base64 characters that are examined: a multiple of four.
const LOOKED_AT: usize = 64;

/// File signatures: the offset, the bytes there, and the media type. Source: the specifications of
/// the formats.
const SIGNATURES: [(usize, &[u8], &str); 26] = [
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypavi", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftyphev", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\x01\0", ICON),
    (0, b"%PDF", "application/pdf"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"\xff\xf9", "audio/aac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"<svg", "image/svg+xml"),
];

const ICON: &str = "image/x-icon";

/// Returns `true` if the bytes after an icon's signature are the icon's directory: the number of
/// pictures is 1 to 32, and the reserved byte of the first picture is zero. Raw audio can have the
/// same signature.
fn is_icon(bytes: &[u8]) -> bool {
    matches!(bytes, [_, _, _, _, 1..=32, 0, _, _, _, 0, ..])
}

/// Returns the media type of Base64 data, or `None` if its first bytes match no signature.
pub(super) fn media_type(base64: &str) -> Option<&'static str> {
    let start = base64.get(..LOOKED_AT.min(base64.len() / 4 * 4))?;
    let bytes = LENIENT.decode(start).ok()?;
    let known = SIGNATURES.iter().find(|(at, known, media_type)| {
        begins(&bytes, *at, known) && (*media_type != ICON || is_icon(&bytes))
    });
    known
        .map(|(_, _, media_type)| *media_type)
        .or_else(|| is_text(&bytes).then_some("text/plain"))
}

/// The image types whose files always begin with a known signature.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns `true` if the declared type is in `PICTURES`, but the data does not begin with that
/// type's signature.
pub(super) fn is_no(media_type: &str, base64: &str) -> bool {
    let start = base64.get(..LOOKED_AT.min(base64.len() / 4 * 4));
    let Some(bytes) = start.and_then(|start| LENIENT.decode(start).ok()) else {
        return false;
    };
    PICTURES.contains(&media_type)
        && bytes.len() >= LEAST_TEXT
        && !SIGNATURES
            .iter()
            .any(|(at, known, name)| *name == media_type && begins(&bytes, *at, known))
}

/// Returns `true` if a string can be Base64: standard or URL-safe, with or without padding. Line
/// breaks are allowed.
pub(super) fn is_base64(text: &str) -> bool {
    let is_part = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n' | b' '
            )
    };
    !text.is_empty() && text.bytes().all(is_part)
}

/// The name of a PNG's last chunk.
const LAST_CHUNK: &[u8] = b"IEND";

/// The number of Base64 characters that contain a PNG's signature and header.
const PNG_HEADER: usize = 44;

/// Returns `true` if Base64 data begins with a PNG header, but does not end like a PNG.
pub(super) fn is_cut_png(base64: &str) -> bool {
    if base64.len() < PNG_HEADER || media_type(base64) != Some("image/png") {
        return false;
    }
    // Each group of four characters can be decoded separately.
    let groups = base64.trim_end_matches('=').len().div_ceil(4);
    let tail = groups.saturating_sub(LOOKED_AT / 4) * 4;
    base64
        .get(tail..)
        .and_then(|tail| LENIENT.decode(tail).ok())
        .is_some_and(|bytes| {
            let is_redacted = bytes.iter().all(|byte| *byte == 0);
            let has_end = bytes
                .windows(LAST_CHUNK.len())
                .any(|name| name == LAST_CHUNK);
            !is_redacted && !has_end
        })
}

fn begins(bytes: &[u8], at: usize, known: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(known))
}

/// The minimum number of bytes for which text is recognised.
const LEAST_TEXT: usize = 8;

/// Returns `true` if all bytes are printable ASCII, which no image format begins with.
fn is_text(bytes: &[u8]) -> bool {
    bytes.len() >= LEAST_TEXT
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
}

/// Returns the media type and the Base64 data of a `data:` URL.
pub(super) fn of_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?.split(';').next()?;
    Some((media_type, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_tell_the_type() {
        let known = [
            ("iVBORw0KGgoAAAANSUhEUg", "image/png"),
            ("/9j/4AAQSkZJRgABAQ", "image/jpeg"),
            ("R0lGODlhAQABAAAAACw=", "image/gif"),
            ("UklGRiQAAABXRUJQVlA4IBgAAAA=", "image/webp"),
            ("UklGRiQAAABXQVZFZm10IBAAAAA=", "audio/wav"),
            ("JVBERi0xLjQKJcOkw7zDtsOf", "application/pdf"),
            ("UGxlYXNlIHNldCBhIHVzZXItYWdlbnQ=", "text/plain"),
            ("SUQzBAAAAAAAI1RTU0UAAAAP", "audio/mpeg"),
        ];
        for (base64, expected) in known {
            assert_eq!(media_type(base64), Some(expected), "{base64}");
        }
        for other in ["", "AAAA", "!!!!", "aGVsbG8=", "AAECAwQFBgcICQoLDA0ODw=="] {
            assert_eq!(media_type(other), None, "{other}");
        }
    }

    #[test]
    fn bytes_that_begin_otherwise_are_no_picture() {
        let noise = "AAECAwQFBgcICQoLDA0ODxAREhM=";
        assert!(is_no("image/png", noise));
        assert!(!is_no("image/png", "AAECAwQF"), "too short to tell");
        assert!(!is_no("image/heic", noise), "it has several signatures");
        assert!(!is_no("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAE="));
    }

    #[test]
    fn data_urls_are_taken_apart() {
        assert_eq!(
            of_data_url("data:image/png;base64,AAAA"),
            Some(("image/png", "AAAA"))
        );
        assert_eq!(
            of_data_url("data:audio/mpeg;name=a.mp3;base64,AAAA"),
            Some(("audio/mpeg", "AAAA"))
        );
        assert_eq!(of_data_url("data:text/plain,hello"), None);
        assert_eq!(of_data_url("https://example.org/a,b"), None);
    }
}
