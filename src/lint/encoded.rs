//! Decodes bodies that captures store as Base64: in HAR files (`encoding`), in cassettes of Ruby's
//! VCR (`base64_string`), and in those of VCR.py (`!!binary`). Such a body may also be compressed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde_json::{Map, Value};

/// The maximum size of all decoded bodies in a document, in bytes.
const LARGEST: usize = 128 * 1024 * 1024;

/// The first bytes of data that gzip compressed with its only method, DEFLATE.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

/// Decodes the bodies in a document.
pub(crate) struct Decoder {
    /// The number of bytes that may still be decoded.
    left: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { left: LARGEST }
    }
}

impl Decoder {
    /// Replaces the encoded request body in an entry of a capture with its text. Leaves it unchanged
    /// if it is not text.
    pub(crate) fn decode_request(&mut self, entry: &mut Value) {
        self.decode(entry, ["/request/postData", "/request/body"]);
    }

    /// Replaces the encoded bodies in an entry of a capture with their text, like
    /// [`decode_request`](Decoder::decode_request).
    pub(crate) fn decode_exchange(&mut self, entry: &mut Value) {
        self.decode_request(entry);
        self.decode(entry, ["/response/content", "/response/body"]);
    }

    fn decode(&mut self, entry: &mut Value, places: [&str; 2]) {
        for place in places {
            if let Some(Value::Object(body)) = entry.pointer_mut(place) {
                self.decode_body(body);
            }
        }
    }

    fn decode_body(&mut self, body: &mut Map<String, Value>) {
        let is_base64 = body.get("encoding").is_some_and(|it| it == "base64");
        let (from, to) = if is_base64 {
            ("text", "text")
        } else {
            ("base64_string", "string")
        };
        let encoded = body.get(from).and_then(Value::as_str);
        if let Some(text) = encoded.and_then(|it| self.text(it)) {
            body.remove("encoding");
            body.insert(to.to_owned(), Value::String(text));
        }
    }

    /// Returns the text that Base64 encodes, which may be broken into lines; `None` if it is not
    /// text, or if the document's bodies are too large.
    pub(crate) fn text(&mut self, base64: &str) -> Option<String> {
        let digits: String = base64.split_whitespace().collect();
        let bytes = STANDARD.decode(digits).ok()?;
        let bytes = match compressed(&bytes) {
            Some(data) => decompress_to_vec_with_limit(data, self.left).ok()?,
            None => bytes,
        };
        self.left = self.left.checked_sub(bytes.len())?;
        String::from_utf8(bytes).ok()
    }
}

/// Returns the compressed data in a gzip file; `None` if this is not a gzip file.
///
/// Source: <https://www.rfc-editor.org/rfc/rfc1952#section-2.3>.
fn compressed(file: &[u8]) -> Option<&[u8]> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let flags = *file.strip_prefix(&GZIP)?.first()?;
    let mut rest = file.get(10..)?;
    if flags & EXTRA != 0 {
        let length = u16::from_le_bytes([*rest.first()?, *rest.get(1)?]);
        rest = rest.get(2 + usize::from(length)..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = memchr::memchr(0, rest)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a gzip file with these flags and optional fields.
    fn gzip(text: &str, flags: u8, fields: &[u8]) -> String {
        let data = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6);
        let head = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        STANDARD.encode([&head[..], fields, &data].concat())
    }

    fn decoded_text(base64: &str) -> Option<String> {
        Decoder::default().text(base64)
    }

    #[test]
    fn the_size_of_decoded_bodies_is_limited() {
        let mut decoder = Decoder { left: 10_000 };
        let large = gzip(&"a".repeat(6_000), 0, b"");
        assert_eq!(decoder.text(&large).map(|text| text.len()), Some(6_000));
        assert_eq!(decoder.text(&large), None);
        assert_eq!(decoder.text("e30=").as_deref(), Some("{}"));
    }

    #[test]
    fn compressed_bodies_are_decoded() {
        assert_eq!(
            decoded_text(&gzip("plain", 0, b"")).as_deref(),
            Some("plain")
        );
        let fields = b"\x02\x00xxname\0comment\0cc";
        let all = gzip("all fields", 2 | 4 | 8 | 16, fields);
        assert_eq!(decoded_text(&all).as_deref(), Some("all fields"));
        assert_eq!(
            decoded_text(&gzip("cut off", 8, b"a name without end")),
            None
        );
        assert_eq!(decoded_text("H4sI"), None);
        assert_eq!(decoded_text("/////w=="), None);
    }

    #[test]
    fn bodies_of_captures_are_decoded() {
        let mut entry = json!({
            "request": {"postData": {"text": "{}"}, "body": {"encoding": "UTF-8", "base64_string": "e30="}},
            "response": {"content": {"encoding": "base64", "text": "bm8\n="}, "body": {"base64_string": "?"}},
        });
        Decoder::default().decode_exchange(&mut entry);
        let expected = json!({
            "request": {"postData": {"text": "{}"}, "body": {"base64_string": "e30=", "string": "{}"}},
            "response": {"content": {"text": "no"}, "body": {"base64_string": "?"}},
        });
        assert_eq!(entry, expected);
    }
}
