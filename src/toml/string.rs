//! Maps a decoded TOML string back to its literal in the file.

use crate::source::OffsetMap;

/// Returns the map from the decoded text of a string to offsets in its file.
///
/// `literal` is the string as written, including its quotes, and `at` is its offset in the file.
/// The literal has already been parsed, so it is well formed; for a malformed one, the map would
/// merely be imprecise. Grammar: TOML 1.1, section “String”.
pub fn decode_map(literal: &str, at: usize) -> OffsetMap {
    let (quote, multiline) = match literal.as_bytes() {
        [b'"', b'"', b'"', ..] => (b'"', true),
        [b'\'', b'\'', b'\'', ..] => (b'\'', true),
        [b'\'', ..] => (b'\'', false),
        _ => (b'"', false),
    };
    let fence = if multiline { 3 } else { 1 };
    let end = literal
        .len()
        .saturating_sub(fence)
        .max(fence.min(literal.len()));
    let mut start = fence.min(literal.len());
    if multiline {
        // A newline directly after the opening quotes is not part of the string.
        start += newline_len(&literal.as_bytes()[start..end]);
    }
    let mut map = OffsetMap::default();
    if start > 0 {
        map.push_opaque(at, start, 0);
    }
    match quote {
        b'\'' => map.push_verbatim(at + start, end - start),
        _ => push_basic(&mut map, literal, start..end, at),
    }
    map
}

fn push_basic(map: &mut OffsetMap, literal: &str, range: std::ops::Range<usize>, at: usize) {
    let bytes = literal.as_bytes();
    let (mut from, mut cursor) = (range.start, range.start);
    while cursor < range.end {
        if bytes[cursor] != b'\\' {
            cursor += 1;
            continue;
        }
        map.push_verbatim(at + from, cursor - from);
        let (source_len, decoded_len) = escape(&literal[cursor..range.end]);
        map.push_opaque(at + cursor, source_len, decoded_len);
        cursor += source_len;
        from = cursor;
    }
    map.push_verbatim(at + from, range.end.saturating_sub(from));
}

/// Returns the lengths of the escape or line continuation at the start of `text`: its source length
/// and its decoded length, both in bytes.
fn escape(text: &str) -> (usize, usize) {
    let digits = match text.as_bytes().get(1) {
        Some(b'x') => 2,
        Some(b'u') => 4,
        Some(b'U') => 8,
        Some(b' ' | b'\t' | b'\n' | b'\r') => {
            let rest = &text[1..];
            return (
                1 + rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len(),
                0,
            );
        }
        Some(_) => return (2, 1),
        None => return (1, 0),
    };
    let code = text
        .get(2..2 + digits)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let decoded = code.and_then(char::from_u32).map_or(1, char::len_utf8);
    ((2 + digits).min(text.len()), decoded)
}

fn newline_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml::{Kind, parse};
    use proptest::prelude::*;

    /// Parses `k = <literal>`, and checks that each decoded byte maps to the location where it was
    /// written.
    fn round_trips(literal: &str) {
        let text = format!("k = {literal}\n");
        let root = parse(&text).unwrap_or_else(|error| panic!("{literal}: {error:?}"));
        let node = root.get("k").expect("there");
        let Kind::String(decoded) = &node.kind else {
            panic!("a string")
        };
        let map = decode_map(&text[node.span.clone()], node.span.start);
        assert_eq!(map.derived_len(), decoded.len(), "{literal}");
        for (offset, _) in decoded.char_indices() {
            let source = map.to_source_range(offset..offset + 1);
            let written = &text.as_bytes()[source.clone()];
            assert!(
                written[0] == b'\\' || written[0] == decoded.as_bytes()[offset],
                "{literal}: byte {offset} maps to {source:?}"
            );
            assert_eq!(map.to_derived(source.start), Some(offset), "{literal}");
        }
    }

    #[test]
    fn every_form_of_string_round_trips() {
        for literal in [
            r#""plain""#,
            r#""tab\tquote\"uA\U0001F600\e\x41 end""#,
            "'liter\\al'",
            "\"\"\"\nfirst\nsecond \\\n   joined\\n\"\"\"",
            "\"\"\"no newline \"\" inside\"\"\"",
            "\"\"\"ends with quotes\"\"\"\"\"",
            "'''\nraw \\n text'''",
            "\"\"",
            "''''''",
            "\"\"\"\"\"\"",
        ] {
            round_trips(literal);
        }
    }

    proptest! {
        #[test]
        fn any_multi_line_basic_string_round_trips(body in r#"([a-zé😀 ]|\\n|\\t|\\"|\\u00e9|\\U0001F600|\\\n  |\n)*"#) {
            round_trips(&format!("\"\"\"{body}\"\"\""));
        }
    }
}
