//! Removes keys from text that comes from outside. All answers, errors and tool results pass
//! through here.
//!
//! Input: the keys that requests carried, and a string. Output: the text with `[key]` in place of
//! each key. A key is found verbatim, and also as
//!
//! - hexadecimal, base64 and base64url, with or without padding and at any offset in the encoded
//!   text;
//! - percent-encoding, JSON escapes, and HTML character references, for all of its characters or
//!   only some.
//!
//! Letter case is significant only in base64. A key that was encoded twice, reversed, or
//! interspersed with other text is not found; a server that has the key can always express it in an
//! unforeseen way. Keys of fewer than [`SHORTEST`] characters are ignored, because ordinary words
//! would be removed along with them.

mod events;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;

use super::tool_output::ToolOutput;
use super::{Answer, Error, Event, MalformedInput, Refusal, ResponseInfo, StopReason, ToolCall};
use crate::conversation::Block;
use crate::text::hex;
pub(super) use events::Redacting;

/// The text that replaces a key.
const MARK: &str = "[key]";

/// The minimum length of a key that is searched for, in characters.
const SHORTEST: usize = 8;

/// The minimum number of characters at the end of a truncated string that are treated as the
/// beginning of a key. Fewer may be a coincidence.
const TELLING: usize = 4;

/// The maximum number of characters that represent one character, as in `&#x000041;`.
const LONGEST_SPELLING: usize = 10;

/// Finds keys in text. Cheap to clone; its debug output is empty.
#[derive(Clone, Default)]
pub(super) struct Redactor {
    spellings: Arc<[Spelling]>,
}

/// A form in which a key may occur in text.
struct Spelling {
    signs: Vec<char>,
    /// `true` if case is significant, and if `-` and `_` are equivalent to `+` and `/`.
    is_base64: bool,
}

/// The result of a search at an offset in a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A key that ends at this offset.
    Key(usize),
    /// The text ends with this number of a key's first characters.
    Start(usize),
    Nothing,
}

/// A string that arrives in pieces. If a piece may end with the beginning of a key, that end is
/// held back until the next piece.
#[derive(Default)]
pub(super) struct Flow {
    waiting: String,
}

impl Redactor {
    /// Returns a redactor that also finds this key.
    pub(super) fn with(&self, key: &str) -> Redactor {
        if self.text(key) == MARK {
            return self.clone();
        }
        let known = self.spellings.iter().map(|known| Spelling {
            signs: known.signs.clone(),
            ..*known
        });
        Redactor {
            spellings: known.chain(spellings(key)).collect(),
        }
    }

    /// Returns `true` if there are no keys to search for.
    pub(super) fn is_idle(&self) -> bool {
        self.spellings.is_empty()
    }

    /// Removes keys from a whole string.
    pub(super) fn text(&self, text: &str) -> String {
        let (clean, rest) = self.split(text);
        clean + &self.remainder(rest, SHORTEST)
    }

    /// Removes keys from a string that may have been cut off in the middle of one.
    pub(super) fn cut_text(&self, text: &str) -> String {
        let whole = text.trim_end_matches('…');
        let (clean, rest) = self.split(whole);
        clean + &self.remainder(rest, TELLING) + &text[whole.len()..]
    }

    /// Adds the next piece of a string, and returns the text that can be reported now.
    pub(super) fn next(&self, flow: &mut Flow, piece: &str) -> String {
        flow.waiting.push_str(piece);
        let (clean, rest) = self.split(&flow.waiting);
        let rest = rest.to_owned();
        flow.waiting = rest;
        clean
    }

    /// Returns the text that is still held back after the last piece of a string.
    pub(super) fn last(&self, flow: &mut Flow) -> String {
        self.remainder(&std::mem::take(&mut flow.waiting), SHORTEST)
    }

    /// Returns the text without keys, and the end of the text if it may be the beginning of a key.
    fn split<'t>(&self, text: &'t str) -> (String, &'t str) {
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            match self.find(&text[at..]) {
                Found::Key(length) => {
                    clean.push_str(MARK);
                    at += length;
                }
                Found::Start(_) => return (clean, &text[at..]),
                Found::Nothing => {
                    clean.push(c);
                    at += c.len_utf8();
                }
            }
        }
        (clean, "")
    }

    /// Returns text that was held back. If it ends with at least the first `telling`
    /// characters of a key, these are treated as a truncated key.
    fn remainder(&self, text: &str, telling: usize) -> String {
        let mut clean = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match self.find(rest) {
                Found::Start(signs) if signs >= telling => return clean + MARK,
                Found::Key(length) => {
                    clean.push_str(MARK);
                    rest = &rest[length..];
                }
                _ => {
                    clean.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        clean
    }

    /// Searches for the longest key at the beginning of a string.
    fn find(&self, text: &str) -> Found {
        let mut best = Found::Nothing;
        for spelling in self.spellings.iter() {
            best = match (best, spelling.find(text)) {
                (Found::Key(a), Found::Key(b)) => Found::Key(a.max(b)),
                (Found::Key(a), _) => Found::Key(a),
                (_, Found::Key(b)) => Found::Key(b),
                (Found::Start(a), Found::Start(b)) => Found::Start(a.max(b)),
                (best, Found::Nothing) => best,
                (Found::Nothing, found) => found,
            };
        }
        best
    }

    fn shared(&self, text: &mut Arc<str>) {
        let clean = self.text(text);
        if clean != **text {
            *text = clean.into();
        }
    }

    /// Removes keys from an error.
    pub(super) fn error(&self, mut error: Error) -> Error {
        error.message = self.cut_text(&error.message);
        error.detail = error.detail.map(|detail| self.cut_text(&detail));
        error.response = error
            .response
            .map(|info| Arc::new(self.info(info.as_ref().clone())));
        error
    }

    /// Removes keys from the metadata of a response.
    pub(super) fn info(&self, mut info: ResponseInfo) -> ResponseInfo {
        [&mut info.request_id, &mut info.response_id, &mut info.model]
            .into_iter()
            .flatten()
            .for_each(|it| self.shared(it));
        info
    }

    /// Removes keys from a refusal's category and explanation.
    fn refusal(&self, refusal: &mut Refusal) {
        let texts = [&mut refusal.category, &mut refusal.explanation];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| *text = self.cut_text(text));
    }

    /// Removes keys from a model's answer.
    pub(super) fn answer(&self, answer: &mut Answer) {
        if !self.is_idle() {
            answer.blocks.iter_mut().for_each(|block| self.block(block));
            answer.calls.iter_mut().for_each(|call| self.call(call));
            answer
                .refusal
                .iter_mut()
                .for_each(|refusal| self.refusal(refusal));
        }
    }

    /// Removes keys from a tool's output.
    pub(super) fn output(&self, output: &mut ToolOutput) {
        if !self.is_idle() {
            self.shared(&mut output.content);
        }
    }

    /// Removes keys from a tool's progress event.
    pub(super) fn progress(&self, event: Event) -> Event {
        match event {
            Event::ToolProgress { id, text } => Event::ToolProgress {
                id,
                text: self.text(&text),
            },
            event => event,
        }
    }

    /// Removes keys from a stop reason.
    pub(super) fn stop(&self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::Other(word) => StopReason::Other(self.text(&word)),
            stop => stop,
        }
    }

    fn call(&self, call: &mut ToolCall) {
        self.shared(&mut call.id);
        self.shared(&mut call.name);
        match &mut call.input {
            Ok(input) => self.value(input),
            Err(MalformedInput { text, problem }) => {
                *text = self.text(text);
                *problem = self.text(problem);
            }
        }
    }

    fn block(&self, block: &mut Block) {
        match block {
            Block::Text(text) => self.shared(text),
            Block::Thinking {
                text, signature, ..
            } => {
                self.shared(text);
                self.shared(signature);
            }
            Block::RedactedThinking { data, .. } => self.shared(data),
            Block::ToolUse { id, name, input } => {
                self.shared(id);
                self.shared(name);
                self.value(input);
            }
            Block::ToolResult { content, .. } => self.shared(content),
            Block::Provider(own) => {
                self.value(&mut own.data);
                own.text.iter_mut().for_each(|text| self.shared(text));
            }
            Block::Image(_) | Block::Document(_) | Block::Audio(_) | Block::Stored(_) => {}
        }
    }

    /// Removes keys from the strings, member names and numbers of a JSON value.
    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) if self.text(&number.to_string()).contains(MARK) => {
                *value = MARK.into();
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(members) => {
                let clean = std::mem::take(members).into_iter().map(|(key, mut value)| {
                    self.value(&mut value);
                    (self.text(&key), value)
                });
                *members = clean.collect();
            }
            _ => {}
        }
    }
}

impl Spelling {
    /// Follows all interpretations of the text at once, because a `%` may be literal or the start
    /// of `%25`.
    fn find(&self, text: &str) -> Found {
        if !self.may_begin(text) {
            return Found::Nothing;
        }
        let mut places = vec![0];
        let mut next = Vec::new();
        for (number, sign) in self.signs.iter().enumerate() {
            for place in places.drain(..) {
                let rest = &text[place..];
                if number > 0 && may_be_cut(rest) {
                    return Found::Start(number);
                }
                let read = [
                    rest.chars().next().map(|c| (c, c.len_utf8())),
                    spelled(rest),
                ];
                let same = read
                    .into_iter()
                    .flatten()
                    .filter(|(c, _)| self.is_same(*sign, *c));
                next.extend(same.map(|(_, length)| place + length));
            }
            std::mem::swap(&mut places, &mut next);
            places.dedup();
            if places.is_empty() {
                return if number == 0 && may_be_cut(text) {
                    Found::Start(0)
                } else {
                    Found::Nothing
                };
            }
        }
        places.into_iter().max().map_or(Found::Nothing, Found::Key)
    }

    /// Returns `false` if the first character of a string cannot begin a key. This is only a quick
    /// check, so `true` does not mean that a key begins there.
    fn may_begin(&self, text: &str) -> bool {
        let first = text.chars().next();
        first.is_some_and(|c| matches!(c, '\\' | '%' | '&') || self.is_same(self.signs[0], c))
    }

    fn is_same(&self, sign: char, c: char) -> bool {
        match (self.is_base64, c) {
            (true, '-') => sign == '+',
            (true, '_') => sign == '/',
            (true, c) => sign == c,
            (false, c) => sign.eq_ignore_ascii_case(&c),
        }
    }
}

/// Returns all forms of a key that are searched for; none if the key is too short.
fn spellings(key: &str) -> Vec<Spelling> {
    if key.chars().count() < SHORTEST {
        return Vec::new();
    }
    let plain = [key, &hex(key.as_bytes())].map(|text| Spelling {
        signs: text.chars().collect(),
        is_base64: false,
    });
    let base64 = (0..3).map(|before| Spelling {
        signs: base64_core(key, before),
        is_base64: true,
    });
    plain.into_iter().chain(base64).collect()
}

/// Returns the part of a key's base64 that does not depend on the surrounding text, if `before`
/// bytes precede the key in its group of three.
fn base64_core(key: &str, before: usize) -> Vec<char> {
    let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(key.bytes()).collect();
    let whole_bits = bytes.len() * 8 / 6;
    let first = (before * 8).div_ceil(6);
    STANDARD_NO_PAD
        .encode(&bytes)
        .chars()
        .take(whole_bits)
        .skip(first)
        .collect()
}

/// Returns the character that an escape sequence represents, and the length of the sequence.
fn spelled(text: &str) -> Option<(char, usize)> {
    match text.as_bytes() {
        [b'\\', b'u', ..] => Some((code(text.get(2..6)?, 16)?, 6)),
        [b'\\', b'x', ..] => Some((code(text.get(2..4)?, 16)?, 4)),
        [b'\\', c @ (b'/' | b'"' | b'\\' | b'\''), ..] => Some((char::from(*c), 2)),
        [b'%', ..] => Some((code(text.get(1..3)?, 16)?, 3)),
        [b'&', ..] => {
            let window = text
                .as_bytes()
                .iter()
                .take(LONGEST_SPELLING)
                .position(|byte| *byte == b';')?;
            Some((reference(&text[1..window])?, window + 1))
        }
        _ => None,
    }
}

fn code(digits: &str, radix: u32) -> Option<char> {
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}

/// Returns the character of an HTML character reference, given without `&` and `;`.
fn reference(name: &str) -> Option<char> {
    let code = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => digits.parse(),
        },
        None => {
            let names = [
                ("amp", '&'),
                ("lt", '<'),
                ("gt", '>'),
                ("quot", '"'),
                ("apos", '\''),
                ("sol", '/'),
            ];
            return names
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, c)| c);
        }
    };
    char::from_u32(code.ok()?)
}

/// Returns `true` if a string is empty, or ends in the middle of an escape sequence.
fn may_be_cut(text: &str) -> bool {
    let is_open = match text.as_bytes() {
        [] => true,
        [b'\\', rest @ ..] => {
            rest.is_empty()
                || matches!(rest, [b'u', ..] if rest.len() < 5)
                || matches!(rest, [b'x', ..] if rest.len() < 3)
        }
        [b'%', rest @ ..] => rest.len() < 2,
        [b'&', rest @ ..] => rest.len() < LONGEST_SPELLING - 1 && !rest.contains(&b';'),
        _ => false,
    };
    is_open
        && text
            .bytes()
            .skip(1)
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'#')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-pl/anted+7f3a";

    fn redactor() -> Redactor {
        Redactor::default().with(KEY)
    }

    fn spelled_out() -> Vec<String> {
        let each = |spell: &dyn Fn(u8) -> String| KEY.bytes().map(spell).collect::<String>();
        let base64 = |before: &str, after: &str| {
            let text = format!("{before}{KEY}{after}");
            let standard = base64::engine::general_purpose::STANDARD.encode(&text);
            let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&text);
            [standard, url]
        };
        let mut all = vec![
            KEY.to_owned(),
            KEY.to_uppercase(),
            each(&|byte| format!("{byte:02x}")),
            each(&|byte| format!("{byte:02X}")),
            each(&|byte| format!("%{byte:02X}")),
            each(&|byte| format!("\\u{byte:04x}")),
            each(&|byte| format!("\\x{byte:02X}")),
            each(&|byte| format!("&#{byte};")),
            each(&|byte| format!("&#x{byte:02X};")),
            KEY.replace('/', "\\/"),
            KEY.replace('/', "%2f").replace('+', "%2B"),
            KEY.replace('a', "&#97;"),
        ];
        for before in ["", "a", "ab", "Bearer "] {
            for after in ["", "z", "zz"] {
                all.extend(base64(before, after));
            }
        }
        all
    }

    #[test]
    fn a_key_is_found_in_every_spelling() {
        for text in spelled_out() {
            let clean = redactor().text(&format!("It is «{text}».")).to_lowercase();
            assert!(
                clean.contains("[key]") && clean.starts_with("it is «") && clean.ends_with("»."),
                "{text}: {clean}"
            );
            assert!(
                clean.len() < 35,
                "little of the text around it goes or stays: {text}: {clean}"
            );
        }
    }

    #[test]
    fn a_key_in_pieces_is_found_wherever_it_is_cut() {
        for text in spelled_out() {
            let text = format!("It is «{text}».");
            let whole = redactor().text(&text);
            for cut in (1..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let mut flow = Flow::default();
                let pieces =
                    [&text[..cut], &text[cut..]].map(|piece| redactor().next(&mut flow, piece));
                assert_eq!(
                    pieces.concat() + &redactor().last(&mut flow),
                    whole,
                    "{text} at {cut}"
                );
            }
            let mut flow = Flow::default();
            let single: String = text
                .chars()
                .map(|c| redactor().next(&mut flow, &c.to_string()))
                .collect();
            assert_eq!(
                single + &redactor().last(&mut flow),
                whole,
                "{text} in single characters"
            );
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let texts = [
            "",
            "s",
            "sk-",
            "100 % of & \\ things",
            "&amp; \\u0041 %41",
            "sk-pl",
            "ünï 😀 \\",
            "c2st",
            "&#",
        ];
        for text in texts {
            let mut flow = Flow::default();
            let clean: String = text
                .chars()
                .map(|c| redactor().next(&mut flow, &c.to_string()))
                .collect();
            assert_eq!(clean + &redactor().last(&mut flow), text);
        }
        assert_eq!(
            Redactor::default().with("short").text("a short word"),
            "a short word"
        );
    }

    #[test]
    fn a_text_that_was_cut_in_a_key_loses_the_piece() {
        assert_eq!(redactor().cut_text("wrong key sk-pl/an"), "wrong key [key]");
        assert_eq!(redactor().cut_text("wrong key sk-pl…"), "wrong key [key]…");
        assert_eq!(redactor().cut_text("a task"), "a task");
    }

    #[test]
    fn values_lose_keys_everywhere() {
        let digits = Redactor::default().with("12345678");
        let mut value = serde_json::json!({"12345678": [12_345_678, "x12345678y", {"a": true}]});
        digits.value(&mut value);
        assert_eq!(
            value.to_string(),
            r#"{"[key]":["[key]","x[key]y",{"a":true}]}"#
        );
    }

    proptest::proptest! {
        #[test]
        fn any_key_is_found_in_any_text_in_any_pieces(
            key in "[!-~]{8,40}",
            before in "[ -~]{0,9}",
            after in "[ -~]{0,9}",
            spelled in 0..8_usize,
            cuts in proptest::collection::vec(0..400_usize, 0..6),
        ) {
            let each = |spell: &dyn Fn(u8) -> String| key.bytes().map(spell).collect::<String>();
            let text = match spelled {
                0 => key.clone(),
                1 => hex(key.as_bytes()),
                2 => each(&|byte| format!("%{byte:02x}")),
                3 => each(&|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }),
                4 => serde_json::to_string(&key).expect("text"),
                5 => each(&|byte| format!("&#{byte};")),
                6 => each(&|byte| format!("\\u{byte:04X}")),
                _ => base64::engine::general_purpose::STANDARD.encode(format!("{before}{key}{after}")),
            };
            let text = format!("{before} {text} {after}");
            let redactor = Redactor::default().with(&key);
            let whole = redactor.text(&text);
            proptest::prop_assert!(whole.contains(MARK), "{text}: {whole}");
            let mut flow = Flow::default();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: String = cuts.windows(2).map(|ends| redactor.next(&mut flow, &text[ends[0]..ends[1]])).collect();
            proptest::prop_assert_eq!(pieces + &redactor.last(&mut flow), whole);
        }
    }
}
