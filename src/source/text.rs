//! Converts bytes to normalised source text.

use super::OffsetMap;

/// The maximum size of a source file, in bytes: positions are 32-bit.
pub const MAX_SOURCE_BYTES: usize = crate::world::MAX_FILE_BYTES as usize;

/// The number of bytes shown after the first byte that is not text. Each byte that is not text
/// takes up three bytes when shown.
const SALVAGED_BYTES: usize = 4 * 1024;

/// The normalised text of a source file: UTF-8 without a byte-order mark or NUL, with `\n` line
/// endings.
#[derive(Debug)]
pub struct SourceText {
    text: Box<str>,
    /// The map to the file; `None` if the text equals the file.
    map: Option<Box<OffsetMap>>,
}

/// The reason why bytes are not source text. Offsets are byte offsets in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// The text is UTF-16.
    Utf16 {
        /// `UTF-16LE` or `UTF-16BE`.
        encoding: &'static str,
    },
    /// The bytes from `offset` on are not UTF-8.
    NotUtf8 {
        /// The offset of the first invalid byte.
        offset: usize,
    },
    /// The text contains a NUL byte.
    Nul {
        /// The offset of the NUL byte.
        offset: usize,
    },
    /// The file has more than [`MAX_SOURCE_BYTES`] bytes.
    TooLarge {
        /// The size of the file in bytes.
        size: usize,
    },
}

impl std::fmt::Display for TextError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TextError::Utf16 { encoding } => write!(f, "the text is {encoding}"),
            TextError::NotUtf8 { offset } => write!(f, "byte {offset} is not UTF-8"),
            TextError::Nul { offset } => write!(f, "byte {offset} is NUL"),
            TextError::TooLarge { size } => write!(f, "it is too large ({size} bytes)"),
        }
    }
}

impl std::error::Error for TextError {}

impl SourceText {
    /// Decodes and normalises the bytes of a file.
    ///
    /// # Errors
    ///
    /// Returns why the bytes are not source text.
    pub fn from_bytes(bytes: &[u8]) -> Result<SourceText, TextError> {
        if bytes.len() > MAX_SOURCE_BYTES {
            return Err(TextError::TooLarge { size: bytes.len() });
        }
        let raw = std::str::from_utf8(bytes).map_err(|error| {
            unless_utf_16(
                bytes,
                TextError::NotUtf8 {
                    offset: error.valid_up_to(),
                },
            )
        })?;
        if let Some(offset) = raw.find('\0') {
            return Err(unless_utf_16(bytes, TextError::Nul { offset }));
        }
        Ok(SourceText::normalise(raw))
    }

    /// Returns the part of an invalid file that can be shown: its valid start and a little more, so
    /// that a finding has a location.
    pub fn salvage(bytes: &[u8]) -> SourceText {
        let bytes = &bytes[..bytes.len().min(MAX_SOURCE_BYTES)];
        let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let valid = memchr::memchr(0, &bytes[..valid]).unwrap_or(valid);
        let shown = &bytes[..bytes.len().min(valid.saturating_add(SALVAGED_BYTES))];
        if let Some(encoding) = utf_16(bytes).filter(|_| valid < bytes.len()) {
            let units = shown.chunks_exact(2).map(|pair| match encoding {
                "UTF-16BE" => u16::from_be_bytes([pair[0], pair[1]]),
                _ => u16::from_le_bytes([pair[0], pair[1]]),
            });
            let text: String = char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            return SourceText::normalise(&text.replace('\0', "\u{fffd}"));
        }
        SourceText::normalise(&String::from_utf8_lossy(shown).replace('\0', "\u{fffd}"))
    }

    fn normalise(raw: &str) -> SourceText {
        let skipped = if raw.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let body = &raw[skipped..];
        if skipped == 0 && !(body.contains('\r') && body.contains("\r\n")) {
            return SourceText {
                text: body.into(),
                map: None,
            };
        }
        let (mut text, mut map) = (String::with_capacity(body.len()), OffsetMap::default());
        let mut at = skipped;
        for line in body.split_inclusive("\r\n") {
            let kept = line.strip_suffix("\r\n").unwrap_or(line);
            text.push_str(kept);
            map.push_verbatim(at, kept.len());
            if kept.len() < line.len() {
                text.push('\n');
                map.push_opaque(at + kept.len(), 2, 1);
            }
            at += line.len();
        }
        SourceText {
            text: text.into(),
            map: Some(Box::new(map)),
        }
    }

    /// Returns the normalised text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Converts an offset in the normalised text to an offset in the file, in bytes.
    pub fn to_file_offset(&self, offset: usize) -> usize {
        self.map
            .as_ref()
            .map_or(offset, |map| map.to_source(offset))
    }
}

/// Returns the encoding of bytes that begin like UTF-16: with its byte-order mark, or with zeros in
/// every other byte, as text in Latin scripts does. Returns `None` for other bytes.
fn utf_16(bytes: &[u8]) -> Option<&'static str> {
    let start = &bytes[..bytes.len().min(64)];
    match start {
        [0xff, 0xfe, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] => Some("UTF-16BE"),
        _ if start.len() >= 4 && 8 * zeros(1, start) >= 3 * start.len() && zeros(0, start) == 0 => {
            Some("UTF-16LE")
        }
        _ if start.len() >= 4 && 8 * zeros(0, start) >= 3 * start.len() && zeros(1, start) == 0 => {
            Some("UTF-16BE")
        }
        _ => None,
    }
}

/// Returns `error`, or the error for UTF-16 if the bytes look like UTF-16.
fn unless_utf_16(bytes: &[u8], error: TextError) -> TextError {
    utf_16(bytes).map_or(error, |encoding| TextError::Utf16 { encoding })
}

fn zeros(parity: usize, start: &[u8]) -> usize {
    start
        .iter()
        .skip(parity)
        .step_by(2)
        .filter(|byte| **byte == 0)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn utf_16_is_recognised_and_shown_as_it_was_meant() {
        let text = "name = \"é\"\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(u16::to_be_bytes)
            .collect();
        for (bytes, encoding) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
            assert_eq!(
                SourceText::from_bytes(&bytes).err(),
                Some(TextError::Utf16 { encoding })
            );
            assert_eq!(SourceText::salvage(&bytes).as_str(), text);
        }
        assert_eq!(
            SourceText::from_bytes(b"ab\0 \xff").err(),
            Some(TextError::NotUtf8 { offset: 4 })
        );
    }

    #[test]
    fn marks_and_line_endings_go_and_offsets_stay_true() {
        let text = SourceText::from_bytes("\u{feff}a\r\nb\rc\r\n".as_bytes()).expect("valid");
        assert_eq!(text.as_str(), "a\nb\rc\n");
        assert_eq!(text.to_file_offset(0), 3);
        assert_eq!(text.to_file_offset(1), 4);
        assert_eq!(text.to_file_offset(2), 6);
        assert_eq!(text.to_file_offset(6), 11);
    }

    #[test]
    fn refuses_what_is_no_text() {
        assert_eq!(
            SourceText::from_bytes(b"ab\xff").unwrap_err(),
            TextError::NotUtf8 { offset: 2 }
        );
        assert_eq!(
            SourceText::from_bytes(b"a\0b").unwrap_err(),
            TextError::Nul { offset: 1 }
        );
    }

    #[test]
    fn little_is_kept_of_what_is_no_text() {
        assert_eq!(
            SourceText::salvage(&vec![0; 1 << 20]).as_str().len(),
            3 * SALVAGED_BYTES
        );
        assert_eq!(SourceText::salvage(b"a\nb\xff").as_str(), "a\nb\u{fffd}");
    }

    proptest! {
        #[test]
        fn every_kept_byte_is_found_in_the_file(raw in "(\u{feff})?([a-zé\"]|\r\n|\n|\r){0,40}") {
            let text = SourceText::from_bytes(raw.as_bytes()).expect("no NUL in the pattern");
            for (offset, byte) in text.as_str().bytes().enumerate() {
                let there = raw.as_bytes()[text.to_file_offset(offset)];
                prop_assert!(there == byte || (there == b'\r' && byte == b'\n'));
            }
        }
    }
}
