//! Makes untrusted text safe for a terminal, a log and a workflow.
//!
//! Input: any string. Output: a [`Text`] in which every character is visible, only our own line
//! ends end a line, no line is a command to the CI system, and no key is readable. Names, paths,
//! bodies, diffs, server responses and messages from the operating system all pass through here;
//! nothing else is printed. `text!` builds a `Text` around untrusted parts.
//!
//! | input | output |
//! | --- | --- |
//! | an ASCII control character | its picture: `␛`, `␊` |
//! | any other invisible character | its number: `<U+202E>` |
//! | the start of a workflow command | the same with a `\` inserted: `:\:error`, `##\[error]` |
//! | anything that resembles a key, and the login in a URL | `*` for each of its bytes, also in the strings of JSON reports |
//! | in JSON, the first three | an escape: `\u202e`. The value stays the same |

mod commands;
mod document;
mod hidden;

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use owo_colors::{OwoColorize, Style};
use serde::Serialize;
use serde_json::Value;

use crate::secret::masked;
use commands::Commands;
pub(crate) use document::{Within, fence};
pub(crate) use hidden::{Hidden, hidden, name_of};

/// Formats an unsigned integer as `1,234,567`.
pub(crate) fn thousands(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| {
            let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
            [comma.then_some(','), Some(digit)].into_iter().flatten()
        })
        .collect()
}

/// Text that can be printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Returns an empty string.
    pub fn new() -> Text {
        Text::default()
    }

    /// Returns untrusted text on one line.
    pub fn line(foreign: &str) -> Text {
        Text(
            Printer::new(Keep::Nothing)
                .text(&masked(foreign))
                .into_owned(),
        )
    }

    /// Returns untrusted text, keeping its line ends.
    pub fn lines(foreign: &str) -> Text {
        Text(
            Printer::new(Keep::Lines)
                .text(&masked(foreign))
                .into_owned(),
        )
    }

    /// Returns one of our scripts, which contains data that must stay unchanged, including keys.
    pub(crate) fn script(script: &str) -> Text {
        Text(Printer::new(Keep::Lines).text(script).into_owned())
    }

    /// Returns a line of a source file. Tabs are kept, because the excerpt renderer expands them.
    #[cfg(feature = "cli")]
    pub(crate) fn source(line: &str) -> Text {
        Text(Printer::new(Keep::Tabs).text(&masked(line)).into_owned())
    }

    /// Returns the length, in bytes, of [`Text::source`] for a line up to an offset. The text after
    /// the offset also affects the result.
    #[cfg(feature = "cli")]
    pub(crate) fn source_length(line: &str, end: usize) -> usize {
        Printer::new(Keep::Tabs).start(&masked(line), end).len()
    }

    /// Returns a drawing that contains strings that are already safe. Its lines and colours are
    /// kept.
    #[cfg(feature = "cli")]
    pub(crate) fn drawn(drawing: &str) -> Text {
        Text(Printer::new(Keep::Colours).text(drawing).into_owned())
    }

    /// Returns a report as indented JSON that ends with a newline. Masks keys in its strings and
    /// member names.
    pub fn json(value: &impl Serialize) -> Text {
        let mut value = serde_json::to_value(value).expect("strings and numbers have a JSON form");
        mask_strings(&mut value);
        Text::json_data(&value)
    }

    /// Returns a value that must stay as it is, such as a request, as indented JSON that ends with
    /// a newline.
    pub fn json_data(value: &Value) -> Text {
        Text::json_text(&format!("{value:#}\n"))
    }

    /// Returns a value as JSON on its own line.
    pub fn json_line(value: &impl Serialize) -> Text {
        let text = serde_json::to_string(value).expect("strings and numbers have a JSON form");
        Text::json_text(&format!("{text}\n"))
    }

    /// Escapes the invisible characters in JSON without changing its value.
    pub fn json_text(json: &str) -> Text {
        Text(json_safe(json, false).into_owned())
    }

    /// Returns a quoted string on one line, valid in both JSON and TOML.
    pub fn quoted(string: &str) -> Text {
        let json = serde_json::to_string(string).expect("a string has a JSON form");
        Text(json_safe(&json, true).into_owned())
    }

    /// Returns the result of `text!`.
    #[doc(hidden)]
    pub fn assembled(parts: fmt::Arguments<'_>) -> Text {
        Text(parts.to_string())
    }

    /// Returns the text as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of characters. Colour codes count, so measure before you add them.
    pub fn width(&self) -> usize {
        self.0.chars().count()
    }

    /// Appends a string.
    pub fn push(&mut self, more: &Text) {
        self.0.push_str(&more.0);
    }

    /// Applies a style if `colour` is set.
    #[must_use]
    pub fn styled(self, style: Style, colour: bool) -> Text {
        if colour {
            Text(self.0.style(style).to_string())
        } else {
            self
        }
    }

    /// Cuts the text to a number of characters. If it was longer, the last character is `…`.
    #[must_use]
    pub fn cut(self, most: usize) -> Text {
        Text(cut(&self.0, most).into_owned())
    }

    /// Pads the text with spaces to a number of characters.
    #[must_use]
    pub fn padded(self, width: usize) -> Text {
        Text(format!("{:<width$}", self.0))
    }

    /// Removes whitespace at the end.
    #[must_use]
    pub fn trimmed_end(mut self) -> Text {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// Joins strings with a separator.
    pub fn join(texts: &[Text], between: &'static str) -> Text {
        let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
        Text(texts.join(between))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromIterator<Text> for Text {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Text {
        let mut all = Text::new();
        texts.into_iter().for_each(|text| all.push(&text));
        all
    }
}

/// Builds a string from a `format!` pattern. String arguments are untrusted and are put on one
/// line. Arguments follow the pattern, which cannot capture variables.
macro_rules! text {
    ($pattern:literal $(, $argument:expr)* $(,)?) => {
        // Because the pattern is the result of a macro, it cannot capture variables, so every
        // argument passes through `Shown`.
        $crate::text::Text::assembled(format_args!(concat!($pattern) $(, $crate::text::Shown(&$argument))*))
    };
}
pub(crate) use text;

/// The arguments that `text!` accepts: strings are escaped; numbers and safe strings are not.
pub trait Show {
    /// Writes the argument, padded as the pattern specifies.
    ///
    /// # Errors
    ///
    /// Returns the formatter's errors.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// An argument of `text!`.
pub struct Shown<'a, T: Show + ?Sized>(pub &'a T);

impl<T: Show + ?Sized> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

impl Show for str {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Printer::new(Keep::Nothing).text(&masked(self)))
    }
}

impl Show for String {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().show(f)
    }
}

impl Show for Arc<str> {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).show(f)
    }
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).show(f)
    }
}

impl Show for Text {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Show for usize {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The control characters to leave unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// None.
    Nothing,
    /// Line ends.
    Lines,
    /// Line ends and tabs.
    Tabs,
    /// Line ends and colours.
    Colours,
}

/// Makes a stream of text pieces safe. Keeps track of the current line across pieces.
#[derive(Debug)]
pub(crate) struct Printer {
    keep: Keep,
    commands: Commands,
    /// The previous character.
    before: Option<char>,
    /// A joiner at the end of a piece: only the next piece shows whether it belongs there.
    #[cfg(feature = "cli")]
    held: Option<char>,
}

impl Printer {
    fn new(keep: Keep) -> Printer {
        Printer {
            keep,
            commands: Commands::default(),
            before: None,
            #[cfg(feature = "cli")]
            held: None,
        }
    }

    /// Returns a printer for all output to one stream.
    #[cfg(feature = "cli")]
    pub(crate) fn of_stream() -> Printer {
        Printer::new(Keep::Colours)
    }

    /// Makes the next piece of untrusted text safe, and keeps its line ends and tabs.
    #[cfg(any(test, all(feature = "cli", feature = "runtime")))]
    pub(crate) fn foreign(&mut self, piece: &str) -> Text {
        let piece: String = self.held.take().into_iter().chain(piece.chars()).collect();
        let (text, last) = self.without_open_end(&piece);
        let keep = std::mem::replace(&mut self.keep, Keep::Tabs);
        let text = Text(self.text(text).into_owned());
        (self.keep, self.held) = (keep, last);
        text
    }

    /// Adds a safe string, checking only whether its position makes it a command.
    #[cfg(feature = "cli")]
    pub(crate) fn own<'t>(&mut self, text: &'t Text) -> Cow<'t, str> {
        match self.held.take() {
            None => self.text(&text.0),
            Some(held) => Cow::Owned(self.text(&format!("{held}{}", text.0)).into_owned()),
        }
    }

    /// Splits off a joiner at the end of a piece.
    #[cfg(any(test, all(feature = "cli", feature = "runtime")))]
    fn without_open_end<'t>(&self, piece: &'t str) -> (&'t str, Option<char>) {
        let mut chars = piece.chars();
        let Some(last) = chars.next_back() else {
            return (piece, None);
        };
        let before = chars.clone().next_back().or(self.before);
        match hidden::depends_on_what_follows(before, last) {
            true => (chars.as_str(), Some(last)),
            false => (piece, None),
        }
    }

    fn text<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        self.start(piece, piece.len())
    }

    /// Returns the safe form of a piece up to an offset.
    fn start<'t>(&mut self, piece: &'t str, end: usize) -> Cow<'t, str> {
        let mut out: Option<String> = None;
        let mut at = 0;
        while let Some(c) = piece[at..].chars().next().filter(|_| at < end) {
            let (length, escaped) = self.next(&piece[at..], c);
            match (escaped, &mut out) {
                (Some(escaped), None) => out = Some(format!("{}{escaped}", &piece[..at])),
                (Some(escaped), Some(out)) => out.push_str(&escaped),
                (None, Some(out)) => out.push_str(&piece[at..at + length]),
                (None, None) => {}
            }
            at += length;
        }
        out.map_or(Cow::Borrowed(&piece[..at]), Cow::Owned)
    }

    /// Returns the length of the next unit in bytes, and its replacement; `None` if the unit stays
    /// unchanged.
    fn next(&mut self, rest: &str, c: char) -> (usize, Option<String>) {
        if let Some(length) = colour_length(rest).filter(|_| self.keep == Keep::Colours) {
            return (length, None);
        }
        let seen = self.is_seen(c, &rest[c.len_utf8()..]);
        // A joiner that stays is invisible to readers and to CI systems.
        let apart = match seen && hidden::is_hidden(c) && !matches!(c, '\n' | '\t') {
            true => false,
            false => self.commands.is_before(if seen { c } else { '\u{2400}' }),
        };
        self.before = Some(c);
        let escaped = match (apart, seen) {
            (false, true) => None,
            (true, true) => Some(format!("\\{c}")),
            (_, false) => Some(visible(c)),
        };
        (c.len_utf8(), escaped)
    }

    fn is_seen(&self, c: char, rest: &str) -> bool {
        match c {
            ' '..='~' => true,
            '\n' => self.keep != Keep::Nothing,
            '\t' => self.keep == Keep::Tabs,
            c => !hidden::is_hidden(c) || hidden::belongs(self.before, c, rest.chars().next()),
        }
    }
}

/// Returns the length of the colour code that a string begins with: `ESC [`, digits or `;`, then
/// `m`.
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

/// Returns the visible form of an invisible character.
fn visible(c: char) -> String {
    match c {
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(c)).map_or_else(String::new, String::from)
        }
        '\u{7f}' => "\u{2421}".to_owned(),
        c => format!("<U+{:04X}>", u32::from(c)),
    }
}

/// Escapes invisible characters and workflow commands in JSON. TOML strings use a different escape
/// for characters above U+FFFF.
fn json_safe(json: &str, for_toml: bool) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut commands = Commands::default();
    for (at, c) in json.char_indices() {
        let is_command = commands.is_before(c);
        let stays = matches!(c, '\n') || !hidden::is_hidden(c) && !is_command;
        if stays {
            out.iter_mut().for_each(|out| out.push(c));
            continue;
        }
        let out = out.get_or_insert_with(|| json[..at].to_owned());
        // Writing into a string cannot fail.
        let _ = match for_toml && u32::from(c) > 0xffff {
            true => write!(out, "\\U{:08x}", u32::from(c)),
            false => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .try_for_each(|unit| write!(out, "\\u{unit:04x}")),
        };
    }
    out.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// Cuts a string to a number of characters, the last of which is `…` if the string was longer. Keys
/// are masked first, because a part of a key would not be recognised.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most.saturating_sub(1)) else {
        return masked(text);
    };
    if text[end..].chars().nth(1).is_none() {
        return masked(text);
    }
    let seen = text.floor_char_boundary(end.saturating_add(LONGEST_KEY));
    Cow::Owned(format!("{}…", &masked(&text[..seen])[..end]))
}

/// The number of bytes beyond the cut that are searched for keys; no key is longer.
const LONGEST_KEY: usize = 8192;

/// Masks keys in all strings and member names of a value.
pub(crate) fn mask_strings(value: &mut Value) {
    match value {
        Value::String(string) => {
            if let Cow::Owned(shown) = masked(string) {
                *string = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_strings),
        Value::Object(members) => {
            let has_keys = members
                .keys()
                .any(|name| matches!(masked(name), Cow::Owned(_)));
            if has_keys {
                let all = std::mem::take(members).into_iter();
                members.extend(all.map(|(name, value)| (masked(&name).into_owned(), value)));
            }
            members.values_mut().for_each(mask_strings);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a stable ID of nine letters and digits, computed from an ID or a name. It is valid in
/// every format. The hash is 64-bit FNV-1a, in base 62.
pub(crate) fn stable_id(id: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::with_capacity(9);
    for _ in 0..9 {
        text.push(char::from(DIGITS[(hash % 62) as usize]));
        hash /= 62;
    }
    text
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn digit(number: u8) -> char {
    char::from_digit(u32::from(number), 16).expect("below 16")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_foreign_is_hidden_or_ends_a_line() {
        let shown = |text: &str| Text::line(text).to_string();
        assert_eq!(shown("a\u{1b}[2J\r\nb\tc\u{7f}"), "a␛[2J␍␊b␉c␡");
        assert_eq!(
            shown("a\u{202e}b\u{9b}c\u{e0041}"),
            "a<U+202E>b<U+009B>c<U+E0041>"
        );
        assert_eq!(
            shown("x\u{200b}\u{200d}y\u{feff}\u{2028}\u{ad}"),
            "x<U+200B><U+200D>y<U+FEFF><U+2028><U+00AD>"
        );
        assert_eq!(Text::lines("a\n\u{1b}b\n").to_string(), "a\n␛b\n");
    }

    #[test]
    fn what_people_write_stays() {
        for text in [
            "é 漢字 한국어",
            "👩‍💻 👩🏽‍💻 ❤️ 1️⃣ 🏳️‍🌈",
            "می‌خواهم",
            "क्‍ष",
            "שלום עולם",
            "葛󠄀",
        ] {
            assert_eq!(Text::line(text).as_str(), text);
            assert_eq!(hidden(text).next(), None, "{text}");
        }
    }

    #[test]
    fn joiners_stay_where_they_join() {
        let shown = |text: &str| Text::line(text).to_string();
        assert_eq!(shown("क्\u{200d}nce"), "क्<U+200D>nce");
        assert_eq!(shown("क्\u{200d}é م\u{200c}1"), "क्<U+200D>é م<U+200C>1");
        assert_eq!(
            shown("👩\u{200d} 👩\u{200d}x ❤\u{fe0f}\u{200d}"),
            "👩<U+200D> 👩<U+200D>x ❤\u{fe0f}<U+200D>"
        );
        // Malayalam and Persian words that end with a joiner, and a mark before a joiner.
        for text in ["അവന്\u{200d} ", "അത്\u{200c}", "ه\u{200d}.ش", "مَ\u{200c}خ"]
        {
            assert_eq!(Text::line(text).as_str(), text);
            assert_eq!(hidden(text).next(), None, "{text}");
        }
        assert_eq!(hidden("👩\u{200d}x").count(), 1);
    }

    #[test]
    fn joiners_wait_for_the_next_piece() {
        let shown = |pieces: &[&str]| {
            let mut printer = Printer::of_stream();
            let shown: String = pieces
                .iter()
                .map(|piece| printer.foreign(piece).to_string())
                .collect();
            shown + &printer.own(&text!("\n"))
        };
        assert_eq!(shown(&["👩\u{200d}", "💻"]), "👩\u{200d}💻\n");
        assert_eq!(shown(&["👩", "\u{200d}", "", "x"]), "👩<U+200D>x\n");
        assert_eq!(shown(&["👩", "\u{200d}"]), "👩<U+200D>\n");
    }

    #[test]
    fn no_line_is_a_workflow_command() {
        let shown = |text: &str| Text::lines(text).to_string();
        assert_eq!(
            shown("::error::x\n \t::set-output"),
            ":\\:error::x\n ␉::set-output"
        );
        assert_eq!(shown("\u{a0}::error::x"), "\u{a0}:\\:error::x");
        assert_eq!(shown("a ##[error]b ##vso[c]"), "a ##\\[error]b ##vso\\[c]");
        assert_eq!(shown("##teamcity[x] ###[y]"), "##teamcity\\[x] ###\\[y]");
        assert_eq!(shown("section_start:1:x"), "section_start\\:1:x");
        assert_eq!(
            shown("travis_fold:start:x\ntravis_time:start:x"),
            "travis_fold\\:start:x\ntravis_time\\:start:x"
        );
        assert_eq!(
            shown("#\u{fe0f}#\u{fe0f}[error]x"),
            "#\u{fe0f}#\u{fe0f}\\[error]x"
        );
        assert_eq!(
            shown("std::error, ## [x], a::b"),
            "std::error, ## [x], a::b"
        );
    }

    #[test]
    fn no_line_is_the_head_of_a_group() {
        let shown = |text: &str| Text::lines(text).to_string();
        assert_eq!(
            shown("--- a\n+++\tb\n~~~ c\n^^^ +++"),
            "---\\ a\n+++␉b\n~~~\\ c\n^^^\\ +++"
        );
        assert_eq!(
            Text::source("+++\tb\n  --- a").as_str(),
            "+++\\\tb\n  ---\\ a"
        );
        for text in [
            "---\nname: x\n---\n",
            "-----BEGIN x",
            "a --- b",
            "---|---",
            "- - -",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn pieces_are_seen_together() {
        let mut printer = Printer::of_stream();
        let pieces = ["a\n", " ", ":", ":error::", "\n#", "#", "vso", "[x"];
        let shown: String = pieces
            .iter()
            .map(|piece| printer.foreign(piece).to_string())
            .collect();
        assert_eq!(shown, "a\n :\\:error::\n##vso\\[x");
        let name = ":";
        let text = text!("{}{}", name, ":error::");
        assert_eq!(Printer::of_stream().own(&text), ":\\:error::");
    }

    #[test]
    fn colours_of_ours_stay() {
        assert_eq!(
            Text::drawn("\u{1b}[1;31mx\u{1b}[0m\u{1b}[2J").as_str(),
            "\u{1b}[1;31mx\u{1b}[0m␛[2J"
        );
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"a\u{202e}": "\u{7f}\u{9b}\u{e0041}👩‍💻 ##[error] ::"});
        let text = Text::json(&value);
        assert!(
            text.contains("a\\u202e") && text.contains("##\\u005berror"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
        assert_eq!(
            Text::quoted("\u{e0041}\u{202e}").as_str(),
            "\"\\U000e0041\\u202e\""
        );
    }

    #[test]
    fn texts_are_cut_once_and_whole() {
        assert_eq!(cut("héllo", 5), "héllo");
        assert_eq!(cut("héllo!", 5), "héll…");
        assert_eq!(cut("", 5), "");
    }

    #[test]
    fn names_are_those_of_unicode() {
        assert_eq!(name_of('\u{202e}'), "U+202E RIGHT-TO-LEFT OVERRIDE");
        assert_eq!(name_of('\u{fe0f}'), "U+FE0F VARIATION SELECTOR-16");
        assert_eq!(name_of('\u{e01ef}'), "U+E01EF VARIATION SELECTOR-256");
        assert_eq!(name_of('\u{fff0}'), "U+FFF0");
    }

    proptest! {
        #[test]
        fn any_text_is_fit_and_stays_fit(foreign in "([:#\\[ \\nax]|\\PC|\\p{C}){0,40}") {
            let line = Text::line(&foreign);
            prop_assert!(!line.contains(|c: char| c.is_control()));
            prop_assert_eq!(Text::line(&line), line.clone());
            let lines = Text::lines(&foreign);
            prop_assert!(lines.lines().all(|line| !line.trim_start().starts_with("::") && !line.contains("##[")));
            prop_assert_eq!(Text::drawn(&lines), lines);
        }

        #[test]
        fn any_json_keeps_its_value(foreign in "([#\\[a]|\\PC|\\p{C}){0,40}") {
            let text = Text::json(&foreign);
            prop_assert!(text.is_char_boundary(text.len()) && !text.contains("##["));
            prop_assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), foreign);
        }
    }
}
