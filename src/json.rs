//! JSON text: blanks trailing commas, parses strictly, explains mistakes, and finds the locations
//! of values.
//!
//! Input: text that a template rendered, or a context file. Output: a [`serde_json::Value`] with
//! members in the author's order, a [`JsonError`] with the mistake and its location, or a [`Tree`]
//! that maps JSON pointers to locations. This module is independent of profiles and schemas.

mod commas;
mod pointer;
mod quoted;
mod scan;
mod literal;
pub(crate) mod subschemas;

pub use commas::blank_trailing_commas;
pub(crate) use literal::{Rewritten, Unread, rewritten, rewritten_string};
pub use pointer::Pointer;
pub(crate) use quoted::decode_map;
pub(crate) use scan::MAX_DEPTH;
pub use scan::{Tree, TreeKind};

use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A mistake in JSON text. Only the first mistake is reported, because anything after it would be
/// guesswork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The kind of mistake.
    pub problem: Problem,
    /// The byte range in the text.
    pub range: Range<usize>,
    /// For [`Problem::NotClosed`], the range of the character before which the bracket should have
    /// been closed.
    pub met: Option<Range<usize>>,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem.message())
    }
}

impl std::error::Error for JsonError {}

impl JsonError {
    /// Returns the edit that fixes the mistake, as a range and its replacement; `None` unless the
    /// mistake is a wrong or missing comma.
    pub(crate) fn comma(&self) -> Option<(Range<usize>, &'static str)> {
        match self.problem {
            Problem::DoubledComma | Problem::LeadingComma | Problem::TrailingComma => {
                Some((self.range.clone(), ""))
            }
            // The range covers the previous value; the comma must follow it.
            Problem::MissingComma => Some((self.range.end..self.range.end, ",")),
            _ => None,
        }
    }
}

/// The kinds of mistakes in JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Nothing but whitespace.
    Empty,
    /// Two values or members without a comma between them.
    MissingComma,
    /// A `:` after an element of a list.
    MemberInList,
    /// Two commas in a row.
    DoubledComma,
    /// A comma before the first element.
    LeadingComma,
    /// A comma after the last element that was not blanked.
    TrailingComma,
    /// A bracket that is never closed. The range of the error is the bracket.
    Unclosed(char),
    /// A bracket that is still open at a character that cannot be inside it.
    NotClosed {
        /// The opening bracket.
        open: char,
        /// The character at which the bracket should have been closed.
        met: char,
    },
    /// A closing bracket where no bracket is open.
    ClosesNothing(char),
    /// Text that is not a JSON value: most often a string without its quotes.
    Unquoted(String),
    /// An object key that is not a string.
    KeyNotString,
    /// A comment, with its opening mark.
    Comment(&'static str),
    /// A key without its colon.
    MissingColon,
    /// A key or colon without a value.
    MissingValue,
    /// A string that never ends.
    UnterminatedString,
    /// A raw control character inside a string.
    ControlCharacter(u8),
    /// An escape sequence that JSON does not define.
    BadEscape,
    /// `\ud800`…`\udfff` without its other half.
    LoneSurrogate,
    /// A malformed number.
    BadNumber,
    /// An integer that does not fit in 64 bits, or a float that does not fit in a double.
    NumberOutOfRange,
    /// A duplicate key in an object, with the location of its first occurrence.
    DuplicateKey(String, Range<usize>),
    /// Text after the value.
    SecondValue,
    /// Nesting deeper than 127 levels.
    TooDeep,
}

/// Returns the length in bytes of a string when it is escaped for JSON, without quotes.
pub(crate) fn escaped_len(text: &str) -> usize {
    serde_json::to_string(text)
        .expect("a string serialises into memory")
        .len()
        - "\"\"".len()
}

/// Returns the number of values in a value, including the value itself.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Returns an upper bound on the number of values in JSON text, without parsing it. For text
/// shorter than `SHORT`, returns an estimate.
pub(crate) fn count_values(text: &str) -> usize {
    /// The number of separators below which those inside strings are counted, too.
    const FEW: usize = 10_000;
    const SEPARATORS: [u8; 4] = *b",[{:";
    /// The length in bytes below which the number of values is estimated as one value per eight
    /// bytes. Even dense text of this length contains few values.
    const SHORT: usize = 2_048;
    if text.len() < SHORT {
        return text.len() / 8;
    }
    let rough = SEPARATORS
        .iter()
        .map(|&byte| memchr::memchr_iter(byte, text.as_bytes()).count())
        .sum();
    if rough < FEW {
        return rough;
    }
    let (mut count, mut in_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            byte if !in_string && SEPARATORS.contains(&byte) => count += 1,
            _ => {}
        }
    }
    count
}

impl Problem {
    /// Returns the message, which is one lower-case phrase.
    pub fn message(&self) -> String {
        match self {
            Problem::Empty => "there is no JSON value".into(),
            Problem::MissingComma => "a comma is missing after this value".into(),
            Problem::MemberInList => "this key is in a list, not in an object".into(),
            Problem::DoubledComma => "there are two commas in a row".into(),
            Problem::LeadingComma => "there is a comma before the first element".into(),
            Problem::TrailingComma => "there is a comma after the last element".into(),
            Problem::Unclosed(bracket) => format!("this `{bracket}` is never closed"),
            Problem::NotClosed { open, met } => {
                format!("this `{open}` is not closed before `{met}`")
            }
            Problem::ClosesNothing(found) => format!("`{found}` has no matching opening bracket"),
            Problem::Unquoted(text) => format!("`{text}` is not a JSON value"),
            Problem::KeyNotString => "an object key must be a string in double quotes".into(),
            Problem::Comment(mark) => {
                format!("JSON does not allow comments, but this `{mark}` starts one")
            }
            Problem::MissingColon => "a `:` is missing after this key".into(),
            Problem::MissingValue => "a value is missing here".into(),
            Problem::UnterminatedString => "this string never ends".into(),
            Problem::ControlCharacter(byte) => {
                format!("unescaped control character (0x{byte:02x}) in a string")
            }
            Problem::BadEscape => "this is not a valid JSON escape".into(),
            Problem::LoneSurrogate => "a lone surrogate escape is not a character".into(),
            Problem::BadNumber => "this is not a JSON number".into(),
            Problem::NumberOutOfRange => "this number does not fit in 64 bits".into(),
            Problem::DuplicateKey(key, _) => format!("the key `{key}` appears twice"),
            Problem::SecondValue => "there is more than one JSON value".into(),
            Problem::TooDeep => format!("nested deeper than {MAX_DEPTH} levels"),
        }
    }

    /// Returns a message that quotes none of the text, for files that may contain secrets.
    pub(crate) fn message_without_text(&self) -> String {
        match self {
            Problem::Unquoted(_) => "this is not a JSON value".into(),
            Problem::DuplicateKey(..) => "a key appears twice".into(),
            problem => problem.message(),
        }
    }

    /// Returns the advice for the mistake; `None` if there is no typical advice.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Problem::Unquoted(text) if matches!(text.as_str(), "None" | "True" | "False") => {
                "JSON writes `null`, `true` and `false`; `{{ tojson(value) }}` does so for you"
            }
            Problem::Unquoted(_) => {
                "a value spliced in without quotes? write `{{ tojson(value) }}`, which quotes and escapes it"
            }
            Problem::ControlCharacter(_) => {
                "`{{ tojson(value) }}` escapes a value; in literal text write `\\n` or `\\t`, or `\\\\n` or `\\\\t` where TOML processes escapes"
            }
            Problem::BadEscape | Problem::LoneSurrogate => {
                "a string spliced in by hand? write `{{ tojson(value) }}`, which escapes it"
            }
            Problem::UnterminatedString => {
                "an unescaped quote or line break inside? write `{{ tojson(value) }}` instead of quotes around the value"
            }
            Problem::MissingComma => {
                "partials may write a `,` after every element: the one before `]` or `}` is removed for you"
            }
            Problem::MemberInList => {
                "write `{` before the members of each element, and `}` after them"
            }
            Problem::DoubledComma | Problem::LeadingComma => {
                "only a comma directly before `]` or `}` is removed for you; put this one under the same condition as the element it belongs to"
            }
            Problem::SecondValue => {
                "a template must render exactly one value: wrap several in `[…]`, or split them over several keys"
            }
            Problem::Comment(_) => {
                "remove it; to comment a template, write `{# … #}`, which is not rendered"
            }
            Problem::KeyNotString => "write the key in double quotes: `{\"key\": …}`",
            Problem::DuplicateKey(..) => {
                "write the key once; a condition can choose between two values"
            }
            Problem::NumberOutOfRange => "send it as a string, if the API allows that",
            Problem::Unclosed(_) | Problem::NotClosed { .. } | Problem::ClosesNothing(_) => {
                "every bracket needs its matching closing bracket: one is missing, or one branch opens a bracket that another closes"
            }
            Problem::Empty => {
                "a template that renders nothing drops its key, but this one renders something around the missing value"
            }
            Problem::TrailingComma => "remove it",
            Problem::MissingColon => "write `\"key\": value`",
            Problem::MissingValue => "write a value, or leave out the key and its comma",
            Problem::BadNumber => {
                "JSON has no leading zeros, no `+`, and no number without digits on both sides of the dot"
            }
            Problem::TooDeep => {
                "look for a template that includes itself, or send the value as a string"
            }
        })
    }
}

/// Parses text that must contain exactly one JSON value. Parsing is strict: RFC 8259, no duplicate
/// keys, integers within 64 bits. Trailing commas are an error; call [`blank_trailing_commas`]
/// first.
///
/// # Errors
///
/// Returns the first mistake and its location.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    match parse_fast(text) {
        Some(value) => Ok(value),
        None => Err(scan::scan(text).err().unwrap_or(JsonError {
            problem: Problem::BadNumber,
            range: 0..text.len(),
            met: None,
        })),
    }
}

/// Parses text, and keeps the location of every value.
///
/// # Errors
///
/// Returns the same errors as [`parse`].
pub fn parse_tree(text: &str) -> Result<Tree, JsonError> {
    scan::scan(text)
}

/// Parses text without locating mistakes; returns `None` if there is a mistake.
fn parse_fast(text: &str) -> Option<Value> {
    let mut oversized = false;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict {
        oversized: &mut oversized,
    }
    .deserialize(&mut deserializer)
    .ok()?;
    deserializer.end().ok()?;
    (!oversized || scan::scan(text).is_ok()).then_some(value)
}

/// Builds a [`Value`]. Rejects duplicate keys, and records whether any float is so large that it
/// may represent an integer beyond 64 bits.
struct Strict<'a> {
    oversized: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // Integers beyond 64 bits arrive as floats. From 2^63 on, the text must therefore be
        // scanned again.
        *self.oversized |= value.abs() >= 9.2e18;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Strict {
            oversized: self.oversized,
        })? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(Strict {
                oversized: self.oversized,
            })?;
            if map.insert(key, value).is_some() {
                return Err(serde::de::Error::custom("duplicate key"));
            }
        }
        Ok(Value::Object(map))
    }
}

/// Returns the kind of a value with its article, for example “a string”.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> (Problem, &str) {
        let error = parse(text).expect_err(text);
        (error.problem, &text[error.range])
    }

    #[test]
    fn numbers_survive_exactly() {
        let text = "[9007199254740993,-9223372036854775808,18446744073709551615,1.0,0.1,1e-7]";
        assert_eq!(parse(text).expect("valid").to_string(), text);
        assert_eq!(
            problem("[18446744073709551616]"),
            (Problem::NumberOutOfRange, "18446744073709551616")
        );
        assert_eq!(problem("[1e999]"), (Problem::NumberOutOfRange, "1e999"));
        assert!(parse("[1e30]").is_ok(), "a float may be large");
    }

    #[test]
    fn each_mistake_is_named_at_its_place() {
        assert_eq!(problem(r"[1 2]"), (Problem::MissingComma, "1"));
        assert_eq!(problem(r#"[{}, "a": 1]"#), (Problem::MemberInList, "\"a\""));
        assert_eq!(problem(r#"{"a": "b": 1}"#), (Problem::MissingComma, "\""));
        assert_eq!(problem(r#"{"a": 1 "b": 2}"#), (Problem::MissingComma, "1"));
        assert_eq!(problem(r"[1,,2]").0, Problem::DoubledComma);
        assert_eq!(problem(r"[,1]").0, Problem::LeadingComma);
        assert_eq!(problem(r"[1,]").0, Problem::TrailingComma);
        assert_eq!(
            problem(r#"{"a": [1}"#).0,
            Problem::NotClosed {
                open: '[',
                met: '}'
            }
        );
        assert_eq!(problem(r"[[1]"), (Problem::Unclosed('['), "["));
        assert_eq!(
            problem(r#"{"a": hello world}"#),
            (Problem::Unquoted("hello world".into()), "hello world")
        );
        assert_eq!(problem(r#"1, "x": 2"#).0, Problem::SecondValue);
        assert_eq!(
            problem(r#"{"a":1,"a":2}"#),
            (Problem::DuplicateKey("a".into(), 1..4), "\"a\"")
        );
        assert_eq!(problem("\"a\nb\"").0, Problem::ControlCharacter(b'\n'));
        assert_eq!(problem(r#""\ud800""#).0, Problem::LoneSurrogate);
        assert_eq!(problem(r#""\q""#).0, Problem::BadEscape);
        assert_eq!(problem("\"abc").0, Problem::UnterminatedString);
        assert_eq!(problem("{a: 1}").0, Problem::KeyNotString);
        assert_eq!(problem("[\n  # why\n 1]"), (Problem::Comment("#"), "# why"));
        assert_eq!(
            problem("{\n  // why\n \"a\": 1}"),
            (Problem::Comment("//"), "// why")
        );
        assert_eq!(
            problem("[1, // why\n 2]"),
            (Problem::Comment("//"), "// why")
        );
        assert_eq!(
            problem("[1 /* why */, 2]"),
            (Problem::Comment("/*"), "/* why */, 2]")
        );
        assert_eq!(problem("{\"a\": #fff}").0, Problem::Unquoted("#fff".into()));
        assert_eq!(problem(r#"{"a" 1}"#).0, Problem::MissingColon);
        assert_eq!(problem(r#"{"a":}"#).0, Problem::MissingValue);
        assert_eq!(problem("01").0, Problem::BadNumber);
        assert_eq!(problem("  ").0, Problem::Empty);
        assert_eq!(problem("]").0, Problem::ClosesNothing(']'));
        assert_eq!(problem(&"[".repeat(200)).0, Problem::TooDeep);
    }

    proptest! {
        /// The scanner and the fast parser accept the same strings.
        #[test]
        fn scanner_and_parser_agree(text in r#"([\[\]{},:" \n]|true|null|-?[0-9]{1,2}(\.[0-9])?(e[0-9]{1,3})?|"a"|"b"|\\u[d0][8c]00|x){0,14}"#) {
            prop_assert_eq!(parse_fast(&text).is_some(), scan::scan(&text).is_ok(), "{}", text);
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
