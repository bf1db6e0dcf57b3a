//! Counts the pieces of each kind in a string.
//!
//! Tokenizers first split text into words, groups of digits, and runs of punctuation and spaces.
//! Then they split each piece into tokens of their vocabulary. The second step requires the
//! vocabulary, but the number of pieces of each kind does not, and it predicts most of the result.

/// The number of piece kinds.
pub(super) const KINDS: usize = 26;

/// The number of pieces, or of characters in pieces, for each kind.
pub(super) type Pieces = [u64; KINDS];

/// A kind of piece, or a kind of character that is counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Kind {
    /// Words of up to 4 letters after a space.
    Spaced4,
    /// Words of up to 8 letters after a space.
    Spaced8,
    /// Longer words after a space.
    Spaced12,
    /// The letters beyond the twelfth, in words after a space.
    SpacedMore,
    /// Words of up to 2 letters that do not follow a space, such as parts of identifiers.
    Joined2,
    /// Words of up to 5 letters that do not follow a space.
    Joined5,
    /// Longer words that do not follow a space.
    Joined9,
    /// The letters beyond the ninth, in words that do not follow a space.
    JoinedMore,
    /// Letters in all-capital words.
    Capitals,
    /// Groups of up to three digits.
    DigitGroups,
    /// Digits.
    Digits,
    /// Runs of punctuation.
    MarkRuns,
    /// Punctuation characters beyond the first of each run.
    Marks,
    /// Runs of spaces that do not belong to a word.
    SpaceRuns,
    /// Runs of line ends.
    LineEnds,
    /// Characters of text that does not consist of words: base64, hashes, keys.
    Noise,
    /// Words with Latin letters beyond ASCII.
    LatinWords,
    /// The letters in words with Latin letters beyond ASCII.
    Latin,
    Cyrillic,
    Han,
    Kana,
    Hangul,
    /// Words in other alphabets, including Cyrillic.
    OtherWords,
    /// The letters in words in other alphabets, except Cyrillic letters.
    OtherLetters,
    /// Emoji, arrows and all other characters.
    Symbols,
    /// Spaces beyond the first of each run.
    Spaces,
}

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Mark,
    Space,
    Line,
    Cyrillic,
    Han,
    Kana,
    Hangul,
    Other,
    Symbol,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Class::Letter,
        '0'..='9' => Class::Digit,
        '\n' | '\r' => Class::Line,
        ' ' | '\t' => Class::Space,
        '\0'..='\u{7f}' => Class::Mark,
        '\u{400}'..='\u{52f}' => Class::Cyrillic,
        '\u{3040}'..='\u{30ff}' => Class::Kana,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Class::Han,
        '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => Class::Hangul,
        c if c.is_alphabetic() => Class::Other,
        _ => Class::Symbol,
    }
}

/// Counts the pieces in a string. Reads each byte at most a few times.
pub(super) fn pieces(text: &str) -> Pieces {
    let mut scan = Scan {
        pieces: [0; KINDS],
        is_spaced: true,
    };
    let (mut rest, mut words) = (text, 0);
    while let Some(first) = rest.chars().next() {
        // If a run is not noise as a whole, its remaining parts are not examined again.
        let run = if words == 0 {
            Run::at(rest.as_bytes())
        } else {
            Run::default()
        };
        let length = match run.is_noise {
            true => scan.noise(run.length),
            false => scan.take(rest, class(first)),
        };
        words = words.max(run.length).saturating_sub(length);
        rest = &rest[length..];
    }
    scan.pieces
}

struct Scan {
    pieces: Pieces,
    /// `true` if the next piece follows a space, a line end or the start of the text.
    is_spaced: bool,
}

impl Scan {
    fn add(&mut self, kind: Kind, count: usize) {
        self.pieces[kind as usize] += count as u64;
    }

    /// Counts `length` bytes of noise, and returns `length`.
    fn noise(&mut self, length: usize) -> usize {
        self.add(Kind::Noise, length);
        self.is_spaced = false;
        length
    }

    /// Counts the next piece, whose first character has the given class. Returns the length of the
    /// piece in bytes.
    fn take(&mut self, rest: &str, class: Class) -> usize {
        let length = match class {
            Class::Letter => word(rest),
            _ => run(rest, class),
        };
        let piece = &rest[..length];
        match class {
            Class::Letter => self.word(piece),
            Class::Space => self.spaces(piece, &rest[length..]),
            _ => self.run(piece, class),
        }
        self.is_spaced = matches!(class, Class::Space | Class::Line);
        length
    }

    /// Counts a word in Latin letters.
    fn word(&mut self, word: &str) {
        let letters = word.chars().count();
        if !word.is_ascii() {
            self.add(Kind::LatinWords, 1);
            self.add(Kind::Latin, letters);
        } else if letters > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
            self.add(Kind::Capitals, letters);
            self.add(Kind::Joined2, usize::from(!self.is_spaced));
        } else if self.is_spaced {
            self.add(
                [Kind::Spaced4, Kind::Spaced8, Kind::Spaced12]
                    [usize::from(letters > 4) + usize::from(letters > 8)],
                1,
            );
            self.add(Kind::SpacedMore, letters.saturating_sub(12));
        } else {
            self.add(
                [Kind::Joined2, Kind::Joined5, Kind::Joined9]
                    [usize::from(letters > 2) + usize::from(letters > 5)],
                1,
            );
            self.add(Kind::JoinedMore, letters.saturating_sub(9));
        }
    }

    /// Counts a run of spaces. A single space belongs to the word or punctuation after it.
    fn spaces(&mut self, spaces: &str, rest: &str) {
        let next = rest.chars().next().map(class);
        let joins = match next {
            Some(Class::Letter | Class::Mark | Class::Cyrillic | Class::Hangul | Class::Other) => {
                true
            }
            Some(
                Class::Digit
                | Class::Space
                | Class::Line
                | Class::Han
                | Class::Kana
                | Class::Symbol,
            )
            | None => false,
        };
        self.add(Kind::SpaceRuns, usize::from(spaces.len() > 1 || !joins));
        self.add(Kind::Spaces, spaces.len() - 1);
    }

    /// Counts a run of characters in one class, other than letters and spaces.
    fn run(&mut self, run: &str, class: Class) {
        let characters = run.chars().count();
        match class {
            Class::Digit => {
                self.add(Kind::DigitGroups, characters.div_ceil(3));
                self.add(Kind::Digits, characters);
            }
            Class::Mark => {
                self.add(Kind::MarkRuns, 1);
                self.add(Kind::Marks, characters - 1);
            }
            Class::Line => self.add(Kind::LineEnds, 1),
            Class::Cyrillic => {
                self.add(Kind::OtherWords, 1);
                self.add(Kind::Cyrillic, characters);
            }
            Class::Other => {
                self.add(Kind::OtherWords, 1);
                self.add(Kind::OtherLetters, characters);
            }
            Class::Han => self.add(Kind::Han, characters),
            Class::Kana => self.add(Kind::Kana, characters),
            Class::Hangul => self.add(Kind::Hangul, characters),
            Class::Symbol => self.add(Kind::Symbols, characters),
            // Letters and spaces are counted by other functions.
            Class::Letter | Class::Space => {}
        }
    }
}

/// Returns the length, in bytes, of the run of one class at the start of a string.
fn run(text: &str, of: Class) -> usize {
    text.char_indices()
        .find(|(_, c)| class(*c) != of)
        .map_or(text.len(), |(at, _)| at)
}

/// Returns the length of the word at the start of a string, in bytes. A word consists of capital
/// letters, followed by lower-case letters. If there are several capitals, the last one begins the
/// next word, as in `HTTPServer`.
fn word(text: &str) -> usize {
    let (mut has_small, mut capitals, mut last) = (false, 0, 0);
    for (at, c) in text.char_indices() {
        let is_capital = c.is_uppercase();
        if class(c) != Class::Letter || (is_capital && has_small) {
            return at;
        }
        if !is_capital && capitals > 1 && !has_small {
            return last;
        }
        has_small |= !is_capital;
        capitals += usize::from(is_capital);
        last = at;
    }
    text.len()
}

/// The minimum length of noise, in bytes.
const LEAST_NOISE: usize = 16;

/// The maximum length of a run that is classified as a whole, in bytes.
const MOST_NOISE: usize = 4096;

/// A run of letters, digits and the characters that connect them in base64, hashes and identifiers.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    length: usize,
    /// `true` if letters and digits alternate too often for a run that consists of words.
    is_noise: bool,
}

impl Run {
    /// Returns the run at the start of a string. Its length is 0 if there is none.
    fn at(text: &[u8]) -> Run {
        if !text.first().is_some_and(u8::is_ascii_alphanumeric) {
            return Run::default();
        }
        let length = text
            .iter()
            .take(MOST_NOISE)
            .take_while(|byte| is_part(**byte))
            .count();
        let run = &text[..length];
        let changes = run
            .windows(2)
            .filter(|pair| is_change(pair[0], pair[1]))
            .count();
        let is_noise =
            length >= LEAST_NOISE && changes * 6 >= length && run.iter().any(u8::is_ascii_digit);
        Run { length, is_noise }
    }
}

/// Returns `true` if a byte may be part of a run.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

/// Returns `true` if two neighbouring characters are of different kinds (digit, capital, lower-case
/// letter). A capital that begins a word is not a change.
fn is_change(first: u8, second: u8) -> bool {
    let are_both = first.is_ascii_alphanumeric() && second.is_ascii_alphanumeric();
    let is_digit = first.is_ascii_digit() != second.is_ascii_digit();
    let is_capital = first.is_ascii_uppercase() != second.is_ascii_uppercase();
    let begins_word = first.is_ascii_uppercase() && second.is_ascii_lowercase();
    are_both && (is_digit || is_capital) && !begins_word
}
