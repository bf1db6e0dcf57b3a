//! JSON in streams, and small helpers for all parsers. A missing value, null, and a value of an
//! unexpected type are treated the same, because servers use all three for "nothing".

use std::sync::Arc;

use serde_json::Value;

use crate::runtime::{ResponseInfo, failure};
use crate::text::cut;

/// An element of a frame.
pub(super) enum Element {
    /// A JSON value.
    Value(Value),
    /// A JSON value in which lone surrogates were replaced.
    Mended(Value),
    /// `[DONE]`, which marks the end of the stream.
    Done,
}

/// Returns the values in a frame. There are several if a server omits blank lines between events.
pub(super) fn values(text: &str) -> impl Iterator<Item = Result<Element, serde_json::Error>> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with("[DONE]") {
            rest = "";
            return Some(Ok(Element::Done));
        }
        let (item, after) = first(rest);
        rest = after;
        Some(item)
    })
}

/// Returns the first value in a string, and the rest of the text; after an error, the rest is
/// empty.
fn first(text: &str) -> (Result<Element, serde_json::Error>, &str) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => (
            Ok(Element::Value(value)),
            text[stream.byte_offset()..].trim_start(),
        ),
        Some(Err(error)) => {
            match mend(text).and_then(|mended| serde_json::from_str(&mended).ok()) {
                Some(value) => (Ok(Element::Mended(value)), ""),
                None => (Err(error), ""),
            }
        }
        None => (Err(serde::de::Error::custom("nothing")), ""),
    }
}

/// The JSON pointers to an answer's ID: in Anthropic's `message`, in Responses' `response`, in the
/// chunks of the other formats, and under Gemini's own name.
const ID_PLACES: [&str; 4] = ["/message/id", "/response/id", "/id", "/responseId"];
const MODEL_PLACES: [&str; 4] = [
    "/message/model",
    "/response/model",
    "/model",
    "/modelVersion",
];

/// Records the ID and the model of an answer if a value contains them. Values that are already
/// known are kept.
pub(super) fn note_info(info: &mut ResponseInfo, value: &Value) {
    if info.response_id.is_none() {
        info.response_id = first_id(value, ID_PLACES);
    }
    if info.model.is_none() {
        info.model = first_id(value, MODEL_PLACES);
    }
}

fn first_id(value: &Value, places: [&str; 4]) -> Option<Arc<str>> {
    places
        .iter()
        .filter_map(|place| value.pointer(place)?.as_str())
        .find_map(failure::id)
}

/// Returns `true` if a string ends in the middle of a JSON value or of `[DONE]`.
pub(super) fn is_cut(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let error = values.by_ref().find_map(Result::err);
    "[DONE]".starts_with(text.trim()) || error.is_some_and(|error| error.is_eof())
}

/// Returns a string with lone surrogate escapes replaced by replacement characters; `None` if it
/// contains none. Servers that count UTF-16 units split characters beyond the basic plane, and each
/// half becomes an escape that no JSON parser accepts.
fn mend(text: &str) -> Option<String> {
    let mut mended = text.to_owned();
    let mut at = 0;
    while let Some(found) = text[at..].find("\\u") {
        let start = at + found;
        let escaped = text[..start]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\')
            .count()
            % 2
            == 1;
        at = start + 2;
        match (escaped, unit(text, start), unit(text, start + 6)) {
            (false, Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => at = start + 12,
            (false, Some(0xD800..0xE000), _) => mended.replace_range(start..start + 6, "\\ufffd"),
            _ => {}
        }
    }
    (mended != text).then_some(mended)
}

/// Returns the UTF-16 unit of the escape at `start`.
fn unit(text: &str, start: usize) -> Option<u32> {
    let digits = text.get(start..start + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns a provider's name in a form suitable for display: short and on one line.
pub(super) fn name(name: &str) -> String {
    cut(&failure::snippet(name.as_bytes()), 80).into_owned()
}

/// Returns a member that is a string; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a member that is a list; empty if there is no list.
pub(super) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the non-negative integer at a JSON pointer, if there is one.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// Returns `true` for the first of several choices or candidates: its index is 0 or missing.
pub(super) fn is_first(choice: &Value) -> bool {
    count(choice, "/index").unwrap_or_default() == 0
}

/// Sets a count to a new value, if there is one.
pub(super) fn set(target: &mut u64, count: Option<u64>) {
    if let Some(count) = count {
        *target = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        values(text)
            .map(|item| match item {
                Ok(Element::Value(value) | Element::Mended(value)) => value.to_string(),
                Ok(Element::Done) => "done".to_owned(),
                Err(problem) => format!("wrong: {problem}"),
            })
            .collect()
    }

    #[test]
    fn values_may_follow_each_other() {
        assert_eq!(
            all("{\"a\":1}\n{\"b\":2}\n[DONE]"),
            ["{\"a\":1}", "{\"b\":2}", "done"]
        );
        assert_eq!(all("nonsense").len(), 1);
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        assert_eq!(all(r#"{"a":"x\ud83d"}"#), ["{\"a\":\"x\u{fffd}\"}"]);
        assert_eq!(
            all(r#"{"a":"\ud83d\ude00\ude00"}"#),
            ["{\"a\":\"😀\u{fffd}\"}"]
        );
        assert_eq!(all(r#"{"a":"\\ud83d"}"#), [r#"{"a":"\\ud83d"}"#]);
    }

    #[test]
    fn what_is_cut_is_known() {
        for text in ["{\"a\":", "[DO", "[{},", "\"x"] {
            assert!(is_cut(text), "{text}");
        }
        assert!(!is_cut("{}") && !is_cut("nonsense"));
    }
}
