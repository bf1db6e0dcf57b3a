//! Invisible characters: controls, directional marks, zero-width characters.
//!
//! The properties are Unicode's: `Default_Ignorable_Code_Point` (which includes `Bidi_Control`),
//! the general categories `Cc`, `Cf`, `Zl` and `Zp` except for visible marks, noncharacters, and a
//! few symbols that are rendered blank. Some are legitimate in their context: joiners between
//! emoji, joiners in scripts that need them, and variation selectors after their base.

use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, Emoji, GeneralCategory, Ideographic,
    JoiningType, NoncharacterCodePoint, PrependedConcatenationMark, Script,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Returns `true` if a character is invisible on its own. Line ends and tabs count as invisible.
pub(super) fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_control = match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator => true,
        GeneralCategory::Format => {
            !CodePointSetData::new::<PrependedConcatenationMark>().contains(c)
        }
        _ => false,
    };
    is_control
        || BLANK.contains(&c)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<NoncharacterCodePoint>().contains(c)
}

/// Symbols and letters that fonts render as blank, although Unicode does not class them as
/// ignorable: a braille pattern without dots, a null notehead, and a script's filler character.
const BLANK: [char; 3] = ['\u{2800}', '\u{1d159}', '\u{16fe4}'];

/// Returns `true` if a hidden character is legitimate between the characters before and after it.
pub(super) fn belongs(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match c {
        '\u{200d}' if is_emoji(before) || before == '\u{fe0f}' => after.is_some_and(is_emoji),
        '\u{200c}' | '\u{200d}' => needs_joiners(before) && !is_of_another_script(before, after),
        '\u{180b}'..='\u{180f}' => ('\u{1820}'..='\u{18aa}').contains(&before),
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before) || matches!(before, '0'..='9' | '#' | '*'),
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => {
            CodePointSetData::new::<Ideographic>().contains(before)
        }
        _ => false,
    }
}

fn is_emoji(c: char) -> bool {
    !c.is_ascii() && CodePointSetData::new::<Emoji>().contains(c)
}

/// Returns `true` if a joiner may follow a character: a letter or mark of a cursive script, or a
/// sign that joins consonants (RFC 5892, appendices A.1 and A.2).
fn needs_joiners(c: char) -> bool {
    let joins = CodePointMapData::<JoiningType>::new().get(c);
    let is_transparent = joins == JoiningType::Transparent && is_mark_of_such(c);
    is_transparent
        || [
            JoiningType::DualJoining,
            JoiningType::LeftJoining,
            JoiningType::RightJoining,
        ]
        .contains(&joins)
        || CodePointMapData::<CanonicalCombiningClass>::new().get(c)
            == CanonicalCombiningClass::Virama
}

/// Returns `true` if the next character determines whether a character counts as hidden.
#[cfg(any(test, all(feature = "cli", feature = "runtime")))]
pub(super) fn depends_on_what_follows(before: Option<char>, c: char) -> bool {
    let Some(before) = before else { return false };
    matches!(c, '\u{200c}' | '\u{200d}')
        && (is_emoji(before) || before == '\u{fe0f}' || needs_joiners(before))
}

/// Returns `true` if the next character is a letter or digit on which a joiner after `before` has
/// no effect. If whitespace or punctuation follows, returns `false`, because some words end with a
/// joiner that has a visible effect.
fn is_of_another_script(before: char, after: Option<char>) -> bool {
    let Some(after) = after.filter(|after| after.is_alphanumeric()) else {
        return false;
    };
    let scripts = [before, after].map(|c| CodePointMapData::<Script>::new().get(c));
    let is_shared = scripts
        .iter()
        .any(|script| [Script::Common, Script::Inherited].contains(script));
    after.is_ascii() || !is_shared && scripts[0] != scripts[1]
}

/// Returns `true` for a mark in the Arabic, Hebrew or Indic blocks, which may come between a letter
/// and its joiner.
fn is_mark_of_such(c: char) -> bool {
    ('\u{0591}'..='\u{0dff}').contains(&c) && !is_hidden(c)
}

/// A hidden character in a string, with its byte offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) at: usize,
    pub(crate) char: char,
}

/// Returns the invisible characters in a string that are not legitimate at their position. Line
/// ends and tabs count as legitimate.
pub(crate) fn hidden(text: &str) -> impl Iterator<Item = Hidden> + '_ {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let at = next + plain_length(&text.as_bytes()[next..]);
            let char = text[at..].chars().next()?;
            next = at + char.len_utf8();
            if is_hidden(char)
                && !belongs(
                    text[..at].chars().next_back(),
                    char,
                    text[next..].chars().next(),
                )
            {
                return Some(Hidden { at, char });
            }
        }
    })
}

/// Returns the length of the visible ASCII, line ends and tabs at the start of a string, in bytes.
/// Whole blocks are tested at once, because that is faster.
fn plain_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = BLOCK
        * bytes
            .chunks_exact(BLOCK)
            .take_while(|block| {
                block
                    .iter()
                    .fold(true, |plain, byte| plain & is_plain(*byte))
            })
            .count();
    blocks
        + bytes[blocks..]
            .iter()
            .take_while(|byte| is_plain(**byte))
            .count()
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

/// Returns the Unicode name of a hidden character, such as `U+202E RIGHT-TO-LEFT OVERRIDE`. If the
/// character has no name, returns only the number.
pub(crate) fn name_of(c: char) -> String {
    let number = u32::from(c);
    let name = NAMES
        .iter()
        .find(|(known, _)| *known == c)
        .map(|(_, name)| (*name).to_owned());
    let name = name.or_else(|| match c {
        '\u{fe00}'..='\u{fe0f}' => Some(format!("VARIATION SELECTOR-{}", number - 0xfe00 + 1)),
        '\u{e0100}'..='\u{e01ef}' => Some(format!("VARIATION SELECTOR-{}", number - 0xe0100 + 17)),
        '\u{e0020}'..='\u{e007e}' => Some(format!("TAG {}", char::from((number - 0xe0000) as u8))),
        _ => None,
    });
    name.map_or_else(
        || format!("U+{number:04X}"),
        |name| format!("U+{number:04X} {name}"),
    )
}

/// The Unicode names of common hidden characters, from `UnicodeData.txt`. For a control, this is
/// its first alias in `NameAliases.txt`.
const NAMES: [(char, &str); 73] = [
    ('\u{0}', "NULL"),
    ('\u{1}', "START OF HEADING"),
    ('\u{2}', "START OF TEXT"),
    ('\u{3}', "END OF TEXT"),
    ('\u{4}', "END OF TRANSMISSION"),
    ('\u{5}', "ENQUIRY"),
    ('\u{6}', "ACKNOWLEDGE"),
    ('\u{7}', "ALERT"),
    ('\u{8}', "BACKSPACE"),
    ('\t', "CHARACTER TABULATION"),
    ('\n', "LINE FEED"),
    ('\u{b}', "LINE TABULATION"),
    ('\u{c}', "FORM FEED"),
    ('\u{d}', "CARRIAGE RETURN"),
    ('\u{e}', "SHIFT OUT"),
    ('\u{f}', "SHIFT IN"),
    ('\u{18}', "CANCEL"),
    ('\u{1a}', "SUBSTITUTE"),
    ('\u{1b}', "ESCAPE"),
    ('\u{7f}', "DELETE"),
    ('\u{85}', "NEXT LINE"),
    ('\u{9b}', "CONTROL SEQUENCE INTRODUCER"),
    ('\u{9d}', "OPERATING SYSTEM COMMAND"),
    ('\u{ad}', "SOFT HYPHEN"),
    ('\u{34f}', "COMBINING GRAPHEME JOINER"),
    ('\u{61c}', "ARABIC LETTER MARK"),
    ('\u{115f}', "HANGUL CHOSEONG FILLER"),
    ('\u{1160}', "HANGUL JUNGSEONG FILLER"),
    ('\u{17b4}', "KHMER VOWEL INHERENT AQ"),
    ('\u{17b5}', "KHMER VOWEL INHERENT AA"),
    ('\u{180b}', "MONGOLIAN FREE VARIATION SELECTOR ONE"),
    ('\u{180c}', "MONGOLIAN FREE VARIATION SELECTOR TWO"),
    ('\u{180d}', "MONGOLIAN FREE VARIATION SELECTOR THREE"),
    ('\u{180e}', "MONGOLIAN VOWEL SEPARATOR"),
    ('\u{180f}', "MONGOLIAN FREE VARIATION SELECTOR FOUR"),
    ('\u{200b}', "ZERO WIDTH SPACE"),
    ('\u{200c}', "ZERO WIDTH NON-JOINER"),
    ('\u{200d}', "ZERO WIDTH JOINER"),
    ('\u{200e}', "LEFT-TO-RIGHT MARK"),
    ('\u{200f}', "RIGHT-TO-LEFT MARK"),
    ('\u{2028}', "LINE SEPARATOR"),
    ('\u{2029}', "PARAGRAPH SEPARATOR"),
    ('\u{202a}', "LEFT-TO-RIGHT EMBEDDING"),
    ('\u{202b}', "RIGHT-TO-LEFT EMBEDDING"),
    ('\u{202c}', "POP DIRECTIONAL FORMATTING"),
    ('\u{202d}', "LEFT-TO-RIGHT OVERRIDE"),
    ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE"),
    ('\u{2060}', "WORD JOINER"),
    ('\u{2061}', "FUNCTION APPLICATION"),
    ('\u{2062}', "INVISIBLE TIMES"),
    ('\u{2063}', "INVISIBLE SEPARATOR"),
    ('\u{2064}', "INVISIBLE PLUS"),
    ('\u{2066}', "LEFT-TO-RIGHT ISOLATE"),
    ('\u{2067}', "RIGHT-TO-LEFT ISOLATE"),
    ('\u{2068}', "FIRST STRONG ISOLATE"),
    ('\u{2069}', "POP DIRECTIONAL ISOLATE"),
    ('\u{206a}', "INHIBIT SYMMETRIC SWAPPING"),
    ('\u{206b}', "ACTIVATE SYMMETRIC SWAPPING"),
    ('\u{206c}', "INHIBIT ARABIC FORM SHAPING"),
    ('\u{206d}', "ACTIVATE ARABIC FORM SHAPING"),
    ('\u{206e}', "NATIONAL DIGIT SHAPES"),
    ('\u{206f}', "NOMINAL DIGIT SHAPES"),
    ('\u{2800}', "BRAILLE PATTERN BLANK"),
    ('\u{3164}', "HANGUL FILLER"),
    ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE"),
    ('\u{ffa0}', "HALFWIDTH HANGUL FILLER"),
    ('\u{fff9}', "INTERLINEAR ANNOTATION ANCHOR"),
    ('\u{fffa}', "INTERLINEAR ANNOTATION SEPARATOR"),
    ('\u{fffb}', "INTERLINEAR ANNOTATION TERMINATOR"),
    ('\u{16fe4}', "KHITAN SMALL SCRIPT FILLER"),
    ('\u{1d159}', "MUSICAL SYMBOL NULL NOTEHEAD"),
    ('\u{e0001}', "LANGUAGE TAG"),
    ('\u{e007f}', "CANCEL TAG"),
];
