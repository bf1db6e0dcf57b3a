//! Replaces trailing commas with spaces.

use memchr::{memchr2, memchr3};

/// Replaces each trailing comma with a space, so that all offsets stay valid.
///
/// A trailing comma follows a value and is followed, after whitespace, by `}` or `]`. Commas in
/// strings, doubled commas and leading commas are left alone. The parser reports the last two as
/// mistakes.
pub fn blank_trailing_commas(text: String) -> String {
    let bytes = text.as_bytes();
    let (mut commas, mut at) = (Vec::new(), 0);
    while let Some(found) = memchr3(b'"', b'}', b']', &bytes[at..]) {
        let place = at + found;
        if bytes[place] == b'"' {
            at = string_end(bytes, place);
        } else {
            commas.extend(trailing_comma(&bytes[..place]));
            at = place + 1;
        }
    }
    if commas.is_empty() {
        return text;
    }
    let mut bytes = text.into_bytes();
    commas.into_iter().for_each(|comma| bytes[comma] = b' ');
    String::from_utf8(bytes).expect("only ASCII bytes were replaced, by ASCII bytes")
}

/// Returns the offset of a trailing comma in the text before a closing bracket: a comma at the end
/// of the text that follows a value.
fn trailing_comma(before: &[u8]) -> Option<usize> {
    let comma = last(before).filter(|&at| before[at] == b',')?;
    let value = last(&before[..comma])?;
    (!matches!(before[value], b'{' | b'[' | b':' | b',')).then_some(comma)
}

fn last(bytes: &[u8]) -> Option<usize> {
    bytes
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Returns the offset after the closing quote of the string that starts at `at`, or the end of the
/// text if there is no closing quote.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match bytes[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blank(text: &str) -> String {
        blank_trailing_commas(text.to_owned())
    }

    #[test]
    fn trailing_commas_go_and_mistakes_stay() {
        assert_eq!(blank(r#"[1, {"a": 2,}, ]"#), r#"[1, {"a": 2 }  ]"#);
        assert_eq!(blank("[1,,]"), "[1,,]");
        assert_eq!(blank("[,]"), "[,]");
        assert_eq!(blank(r#"{"a":,}"#), r#"{"a":,}"#);
        assert_eq!(blank(r#"[",]", "\",}",]"#), r#"[",]", "\",}" ]"#);
        assert_eq!(blank(r#"["open,]"#), r#"["open,]"#);
        assert_eq!(blank("[\"\\"), "[\"\\");
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i64>().prop_map(Into::into),
            "[\"\\\\,\\]}a é]{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::vec(("[a-c,\\]\"]{0,3}", inner), 0..5)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_json_is_untouched(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("serialises")] {
                prop_assert_eq!(&blank(&text), &text);
            }
        }

        #[test]
        fn idempotent_and_length_preserving(text in "[\\[\\]{},:\"\\\\ a1\n]{0,30}") {
            let once = blank(&text);
            prop_assert_eq!(once.len(), text.len());
            prop_assert_eq!(&blank(&once), &once);
        }

        #[test]
        fn only_commas_outside_strings_change(value in json()) {
            // Puts a trailing comma after the last element of each list and object in valid text.
            let text = value.to_string();
            let mut commas = String::new();
            let (mut in_string, mut escaped, mut last) = (false, false, ' ');
            for c in text.chars() {
                if !in_string && matches!(c, ']' | '}') && !matches!(last, '[' | '{') {
                    commas.push(',');
                }
                commas.push(c);
                match c {
                    _ if escaped => escaped = false,
                    '\\' if in_string => escaped = true,
                    '"' => in_string = !in_string,
                    _ => {}
                }
                last = c;
            }
            let parsed: serde_json::Value = serde_json::from_str(&blank(&commas)).expect("blanked text is JSON");
            prop_assert_eq!(parsed, value);
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>()) {
            prop_assert_eq!(blank(&text).len(), text.len());
        }
    }
}
