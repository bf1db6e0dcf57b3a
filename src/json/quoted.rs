//! Maps the text of a JSON string to locations in its file.

use crate::source::OffsetMap;

/// Returns the map from the text of a string to its file. `literal` is the valid string with its
/// quotes, and `start` is its offset in the file.
pub(crate) fn decode_map(literal: &str, start: usize) -> OffsetMap {
    let mut map = OffsetMap::default();
    let (mut at, end) = (1, literal.len().saturating_sub(1));
    while at < end {
        let plain = memchr::memchr(b'\\', &literal.as_bytes()[at..end]).unwrap_or(end - at);
        map.push_verbatim(start + at, plain);
        at += plain;
        if at < end {
            let (length, decoded) = escape(&literal[at..end]);
            map.push_opaque(start + at, length, decoded);
            at += length;
        }
    }
    map
}

/// Returns the length of the escape at the start of a string, and the length of the character that
/// it encodes, both in bytes.
fn escape(text: &str) -> (usize, usize) {
    match (text.as_bytes().get(1), unit(0, text)) {
        (Some(b'u'), Some(0xD800..=0xDFFF)) => (12.min(text.len()), 4),
        (Some(b'u'), Some(unit)) => (6, char::from_u32(unit).map_or(1, char::len_utf8)),
        _ => (2.min(text.len()), 1),
    }
}

fn unit(at: usize, text: &str) -> Option<u32> {
    text.get(at + 2..at + 6)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_counted() {
        let map = decode_map(r#""a\u00e9\ud83d\ude00\n€b""#, 10);
        assert_eq!(map.derived_len(), "aé😀\n€b".len());
        assert_eq!(map.to_source_range(1..3), 12..18);
        assert_eq!(map.to_source_range(3..7), 18..30);
        assert_eq!(
            map.to_source_range("aé😀\n€".len().."aé😀\n€b".len()),
            35..36
        );
    }

    proptest! {
        #[test]
        fn what_is_not_escaped_is_found_byte_by_byte(text in r#"([a-zé€😀"\\/\n\t\u{1}]){0,30}"#) {
            let literal = serde_json::to_string(&text).expect("a string");
            let map = decode_map(&literal, 0);
            prop_assert_eq!(map.derived_len(), text.len());
            for (at, c) in text.char_indices().filter(|(_, c)| !"\"\\/\n\t\u{1}".contains(*c)) {
                let range = map.to_source_range(at..at + c.len_utf8());
                prop_assert_eq!(&literal[range], c.to_string());
            }
        }
    }
}
