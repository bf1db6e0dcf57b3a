//! Finds the part of a regular expression that a server's engine cannot compile.
//!
//! Schemas contain JavaScript's regular expressions, but each server compiles them with the engine
//! of its own language. Input: a pattern, and the engine. Output: the part of the pattern that the
//! engine rejects, as a phrase. The reader accepts everything that it does not recognise.

/// An engine that compiles the patterns of schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The `re` module in Python's standard library.
    Python,
    /// The `regexp` package in Go's standard library, which uses RE2's syntax.
    Go,
}

/// The maximum length of a pattern that is read, in bytes. Some parts of a pattern refer to earlier
/// parts, so the time to read it can grow with the square of its length.
const LONGEST: usize = 4_096;

/// Returns a phrase for the part of a pattern that an engine cannot compile.
pub(crate) fn unread(pattern: &str, engine: Engine) -> Option<String> {
    if pattern.len() > LONGEST {
        return None;
    }
    let mut reader = Reader {
        rest: pattern,
        engine,
        groups: 0,
        open: Vec::new(),
        last: Last::Nothing,
        is_at_start: true,
    };
    reader.read().err()
}

/// The item before the current position, which determines whether a quantifier may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing, at the beginning of a pattern, a group or an alternative.
    Nothing,
    /// An anchor, such as `^` or `\b`.
    Position,
    /// Anything that can be repeated.
    Item,
    /// A quantifier.
    Quantifier,
}

/// One side of a range in a class.
#[derive(Debug, Clone, Copy)]
enum Member {
    One(char),
    /// Several characters, such as `\w`.
    Several,
}

struct Reader<'p> {
    rest: &'p str,
    engine: Engine,
    /// The number of numbered groups that have begun.
    groups: usize,
    /// The open groups: their numbers, or `None` for groups without a number.
    open: Vec<Option<usize>>,
    last: Last,
    is_at_start: bool,
}

/// The maximum number of repetitions that Go accepts.
const MOST_IN_GO: u64 = 1_000;

/// A result whose error is a phrase for the part that the engine rejects.
type Read<T> = Result<T, String>;

impl Reader<'_> {
    fn read(&mut self) -> Read<()> {
        while let Some(c) = self.bump() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    if self.open.pop().is_none() {
                        return Err("it closes a group that is not open".to_owned());
                    }
                    self.last = Last::Item;
                }
                '|' => self.last = Last::Nothing,
                '*' | '+' | '?' => self.quantifier(c)?,
                '{' => match self.bounds() {
                    Some((least, most)) => {
                        self.check_bounds(least, most)?;
                        self.quantifier(c)?;
                    }
                    None => self.last = Last::Item,
                },
                '^' | '$' => self.last = Last::Position,
                _ => self.last = Last::Item,
            }
            self.is_at_start = false;
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => Err("a group is not closed".to_owned()),
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Skips a text if the rest of the pattern begins with it. Returns `true` if it does.
    fn skips(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        rest.inspect(|rest| self.rest = rest).is_some()
    }

    /// Skips up to `most` characters that satisfy a condition, and returns them.
    fn run(&mut self, most: usize, is_one: impl Fn(char) -> bool) -> &str {
        let skipped = self.rest.chars().take(most).take_while(|c| is_one(*c));
        let (run, rest) = self.rest.split_at(skipped.map(char::len_utf8).sum());
        self.rest = rest;
        run
    }

    /// Checks a quantifier that has just been read, and skips the `?` or `+` after it.
    fn quantifier(&mut self, sign: char) -> Read<()> {
        let repeats = match (self.last, self.engine) {
            (Last::Item, _) | (Last::Position, Engine::Go) => true,
            (Last::Nothing | Last::Quantifier, _) | (Last::Position, Engine::Python) => false,
        };
        if !repeats {
            return Err(format!(
                "`{sign}` does not follow anything that can be repeated"
            ));
        }
        if !self.skips("?") && self.engine == Engine::Python {
            self.skips("+");
        }
        self.last = Last::Quantifier;
        Ok(())
    }

    /// Reads the rest of `{2}`, `{2,}` or `{2,3}`. Other braces are literal characters.
    fn bounds(&mut self) -> Option<(u64, Option<u64>)> {
        let (inner, rest) = self.rest.split_once('}')?;
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        // Python also accepts `{,3}` as bounds.
        let has_least = !least.is_empty() || self.engine == Engine::Python && inner.contains(',');
        if !has_least || !is_number(least, '9') || !is_number(most, '9') {
            return None;
        }
        self.rest = rest;
        let lower = if least.is_empty() { 0 } else { number(least) };
        Some((lower, (!most.is_empty()).then(|| number(most))))
    }

    fn check_bounds(&self, least: u64, most: Option<u64>) -> Read<()> {
        if most.is_some_and(|most| most < least) {
            return Err("the upper limit of a quantifier is below its lower limit".to_owned());
        }
        let is_too_much = least.max(most.unwrap_or_default()) > MOST_IN_GO;
        match self.engine == Engine::Go && is_too_much {
            true => Err(format!("it repeats something more than {MOST_IN_GO} times")),
            false => Ok(()),
        }
    }

    /// Reads the beginning of a group.
    fn group(&mut self) -> Read<()> {
        let before = std::mem::replace(&mut self.last, Last::Nothing);
        if !self.skips("?") {
            self.number_group();
            return Ok(());
        }
        let is_python = self.engine == Engine::Python;
        if self.skips(":") || is_python && self.skips(">") {
            self.open.push(None);
            return Ok(());
        }
        if ["=", "!", "<=", "<!"].iter().any(|look| self.skips(look)) {
            self.open.push(None);
            return match is_python {
                true => Ok(()),
                false => Err("it contains a lookahead or lookbehind".to_owned()),
            };
        }
        if self.skips("P<") || !is_python && self.skips("<") {
            self.run(usize::MAX, |c| c != '>');
            self.skips(">");
            self.number_group();
            return Ok(());
        }
        let is_comment = is_python && self.skips("#");
        if is_comment || is_python && self.skips("P=") {
            self.run(usize::MAX, |c| c != ')');
            self.skips(")");
            self.last = if is_comment { before } else { Last::Item };
            return Ok(());
        }
        if is_python && self.skips("(") {
            self.run(usize::MAX, |c| c != ')');
            self.skips(")");
            self.open.push(None);
            return Ok(());
        }
        self.flags()
    }

    fn number_group(&mut self) {
        self.groups += 1;
        self.open.push(Some(self.groups));
    }

    /// Reads the flags of a group such as `(?i:`, or of the whole pattern such as `(?i)`.
    fn flags(&mut self) -> Read<()> {
        let known = match self.engine {
            Engine::Python => "aiLmsux-",
            Engine::Go => "imsU-",
        };
        let is_for_all = self.is_at_start || self.engine == Engine::Go;
        let before = self.rest;
        self.run(usize::MAX, |c| known.contains(c));
        if self.skips(":") {
            self.open.push(None);
            return Ok(());
        }
        if is_for_all && self.skips(")") {
            return Ok(());
        }
        let shown: String = before.chars().take(1).collect();
        Err(format!("it contains `(?{shown}`"))
    }

    /// Reads an escape outside a class.
    fn escape(&mut self) -> Read<()> {
        self.last = Last::Item;
        let Some(c) = self.bump() else {
            return Err("it ends with a backslash".to_owned());
        };
        match c {
            'b' | 'B' | 'A' => self.last = Last::Position,
            'Z' if self.engine == Engine::Python => self.last = Last::Position,
            'z' if self.engine == Engine::Go => self.last = Last::Position,
            'Q' if self.engine == Engine::Go => {
                let end = self.rest.find("\\E").map_or(self.rest.len(), |at| at + 2);
                self.rest = &self.rest[end..];
            }
            '1'..='9' => self.back_reference(c)?,
            c => drop(self.escaped(c)?),
        }
        Ok(())
    }

    /// Reads the rest of a reference to a group, or of a character given by its octal number.
    fn back_reference(&mut self, first: char) -> Read<()> {
        if self.engine == Engine::Go {
            let follows = self.rest.starts_with(is_octal);
            return match first < '8' && follows {
                true => {
                    self.run(2, is_octal);
                    Ok(())
                }
                false => Err(format!("it contains the back-reference `\\{first}`")),
            };
        }
        let second = self.run(1, |c| c.is_ascii_digit()).to_owned();
        let two = format!("{first}{second}");
        let third_is_octal = self.rest.starts_with(is_octal);
        if two.len() == 2 && first < '4' && is_number(&two, '7') && third_is_octal {
            self.bump();
            return Ok(());
        }
        let group = two.parse().unwrap_or(usize::MAX);
        match group > self.groups || self.open.contains(&Some(group)) {
            true => Err(format!("`\\{two}` refers to no earlier group")),
            false => Ok(()),
        }
    }

    /// Reads the rest of an escape that has the same meaning inside and outside a class.
    fn escaped(&mut self, c: char) -> Read<Member> {
        let is_go = self.engine == Engine::Go;
        let hexadecimal = match c {
            'x' if is_go && self.rest.starts_with('{') => {
                self.run(usize::MAX, |c| c != '}');
                self.skips("}");
                return Ok(Member::Several);
            }
            'x' => Some(2),
            'u' if !is_go => Some(4),
            'U' if !is_go => Some(8),
            _ => None,
        };
        if let Some(digits) = hexadecimal {
            let run = self.run(digits, |c| c.is_ascii_hexdigit());
            let code = u32::from_str_radix(run, 16).ok();
            return match (run.len() == digits, code.and_then(char::from_u32)) {
                (true, Some(c)) => Ok(Member::One(c)),
                // Half of a surrogate pair.
                (true, None) => Ok(Member::Several),
                (false, _) => Err(format!("it contains `\\{c}` without {digits} digits")),
            };
        }
        match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Ok(Member::Several),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => Ok(Member::One(control(c))),
            '0' => {
                let run = self.run(2, is_octal);
                let code = u32::from_str_radix(run, 8).unwrap_or_default();
                Ok(char::from_u32(code).map_or(Member::Several, Member::One))
            }
            'p' | 'P' if is_go => self.property(c),
            'N' if !is_go && self.rest.starts_with('{') => {
                self.run(usize::MAX, |c| c != '}');
                self.skips("}");
                Ok(Member::Several)
            }
            c if c.is_ascii_alphanumeric() || is_go && !c.is_ascii() => {
                Err(format!("it contains `\\{c}`"))
            }
            c => Ok(Member::One(c)),
        }
    }

    /// Reads the name of a Unicode property. Go accepts only the bare name of a category or a
    /// script, as in `\p{Greek}`.
    fn property(&mut self, sign: char) -> Read<Member> {
        if !self.skips("{") {
            self.bump();
            return Ok(Member::Several);
        }
        let name = self.run(usize::MAX, |c| c != '}').to_owned();
        let is_closed = self.skips("}");
        let plain = name.strip_prefix('^').unwrap_or(&name);
        let is_name = plain.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        match is_closed && !plain.is_empty() && is_name {
            true => Ok(Member::Several),
            false => Err(format!(
                "it contains `\\{sign}{{{}}}`",
                crate::text::cut(&name, 40)
            )),
        }
    }

    /// Reads a class.
    fn class(&mut self) -> Read<()> {
        self.skips("^");
        let mut is_first = true;
        loop {
            let from = self.rest;
            let Some(c) = self.bump() else {
                return Err(
                    "a class is not closed: `[]` and `[^]` are classes only in JavaScript"
                        .to_owned(),
                );
            };
            if c == ']' && !is_first {
                self.last = Last::Item;
                return Ok(());
            }
            is_first = false;
            let low = self.member(c)?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if !is_range || self.rest.len() == 1 {
                continue;
            }
            // After an item that represents several characters, Go treats the hyphen as a literal.
            if matches!(low, Member::Several) && self.engine == Engine::Go {
                continue;
            }
            self.bump();
            let high = self.bump().unwrap_or_default();
            let high = self.member(high)?;
            let is_right =
                matches!((low, high), (Member::One(low), Member::One(high)) if low <= high);
            if !is_right {
                let shown = &from[..from.len() - self.rest.len()];
                return Err(format!(
                    "`{}` is not a valid character range",
                    crate::text::cut(shown, 40)
                ));
            }
        }
    }

    /// Reads the rest of a class member whose first character is `c`.
    fn member(&mut self, c: char) -> Read<Member> {
        if c == '['
            && self.engine == Engine::Go
            && self.rest.starts_with(':')
            && let Some(end) = self.rest.find(":]")
        {
            self.rest = &self.rest[end + 2..];
            return Ok(Member::Several);
        }
        if c != '\\' {
            return Ok(Member::One(c));
        }
        let Some(c) = self.bump() else {
            return Err("it ends with a backslash".to_owned());
        };
        match c {
            'b' if self.engine == Engine::Python => Ok(Member::One('\u{8}')),
            '1'..='7' => {
                let run = self.run(2, is_octal).to_owned();
                match self.engine == Engine::Go && run.is_empty() {
                    true => Err(format!("it contains `\\{c}`")),
                    false => {
                        let code = u32::from_str_radix(&format!("{c}{run}"), 8).unwrap_or_default();
                        Ok(char::from_u32(code).map_or(Member::Several, Member::One))
                    }
                }
            }
            c => self.escaped(c),
        }
    }
}

/// Returns the control character that a letter after a backslash represents.
fn control(letter: char) -> char {
    match letter {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ => '\u{b}',
    }
}

fn is_octal(c: char) -> bool {
    matches!(c, '0'..='7')
}

/// Returns `true` if a text consists of digits from 0 to `most`.
fn is_number(text: &str, most: char) -> bool {
    text.chars().all(|c| ('0'..=most).contains(&c))
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

/// A part of a pattern that may have a special meaning. All other characters are literal, or are
/// read by [`Reader`].
enum Sign<'p> {
    /// A character after a backslash.
    Escaped { sign: char, is_in_class: bool },
    /// The text after a parenthesis that opens a group.
    Group(&'p str),
}

/// The escapes and the groups of a pattern, in order.
struct Signs<'p> {
    rest: &'p str,
    is_in_class: bool,
}

impl<'p> Signs<'p> {
    fn of(pattern: &'p str) -> Signs<'p> {
        Signs {
            rest: pattern,
            is_in_class: false,
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }
}

impl<'p> Iterator for Signs<'p> {
    type Item = Sign<'p>;

    fn next(&mut self) -> Option<Sign<'p>> {
        loop {
            match self.bump()? {
                '\\' => {
                    return Some(Sign::Escaped {
                        sign: self.bump()?,
                        is_in_class: self.is_in_class,
                    });
                }
                '[' => self.is_in_class = true,
                ']' => self.is_in_class = false,
                '(' if !self.is_in_class => return Some(Sign::Group(self.rest)),
                _ => {}
            }
        }
    }
}

/// The beginnings of lookahead and lookbehind groups, after the opening parenthesis.
const LOOKAROUND: [&str; 4] = ["?=", "?!", "?<=", "?<!"];

fn lookaround(group: &str) -> Option<&'static str> {
    LOOKAROUND.into_iter().find(|look| group.starts_with(look))
}

/// Returns `true` if a pattern contains a lookahead or lookbehind.
pub(crate) fn has_lookaround(pattern: &str) -> bool {
    Signs::of(pattern).any(|sign| matches!(sign, Sign::Group(group) if lookaround(group).is_some()))
}

/// Returns `true` if a pattern names a Unicode property, as in `\p{L}`.
pub(super) fn has_property(pattern: &str) -> bool {
    Signs::of(pattern).any(|sign| {
        matches!(
            sign,
            Sign::Escaped {
                sign: 'p' | 'P',
                ..
            }
        )
    })
}

/// Returns the part of a pattern that Claude's strict mode does not support: look-around,
/// back-references and word boundaries.
pub(crate) fn unread_by_claude(pattern: &str) -> Option<String> {
    Signs::of(pattern).find_map(|sign| match sign {
        Sign::Escaped {
            sign: sign @ ('1'..='9' | 'k' | 'b' | 'B'),
            is_in_class: false,
        } => Some(format!("\\{sign}")),
        Sign::Escaped { .. } => None,
        Sign::Group(group) => Some(format!("({}", lookaround(group)?)),
    })
}

/// Returns the first part of a pattern that llama.cpp cannot convert: an escape that it copies into
/// its grammar although grammars do not support this escape, or the beginning of a group.
pub(crate) fn unread_by_grammar(pattern: &str) -> Option<String> {
    /// The escapes that grammars support.
    const OF_GRAMMARS: &str = "xuUtrn\\\"[]";
    /// The escaped characters that llama.cpp writes without the backslash, outside classes.
    const WRITTEN_PLAINLY: &str = "^$.[]()|{}*+?";
    Signs::of(pattern).find_map(|sign| match sign {
        Sign::Escaped { sign, is_in_class } => {
            let is_plain = !is_in_class && WRITTEN_PLAINLY.contains(sign);
            (!is_plain && !OF_GRAMMARS.contains(sign)).then(|| format!("\\{sign}"))
        }
        Sign::Group(group) => {
            let kind = group.strip_prefix('?')?.chars().next();
            let shown = kind.map(String::from).unwrap_or_default();
            (kind != Some(':')).then(|| format!("(?{shown}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_compiles_what_its_own_module_compiles() {
        for pattern in [
            r"\u00e9",
            r"\x41",
            r"(?P<a>x)(?P=a)",
            r"\Z",
            r"[\b]",
            r"(a)\1",
            r"[]a]",
            r"a++",
            r"a{,3}",
            r"a{x}",
            r"(?i)a",
            r"(?i:a)",
            r"(?>a)",
            r"(?#c)a",
            r"\-\/\_\#",
            r"[\1]",
            r"\07",
            r"(?=a)*",
            r"(?:a)",
            r"(?s-i:a)",
            r"[--a]",
            r"[a-]",
            r"[-a]",
            r"[[:alpha:]]",
            r"[a&&b]",
            r"\d-\w",
            r"^(?!\.)[A-Za-z0-9_'+\-\.]*$",
            r"^https?:\/\/\S+$",
            r"[\w.-]+",
            r"^(?:a|b){2,3}?$",
            "é",
        ] {
            assert_eq!(unread(pattern, Engine::Python), None, "{pattern}");
        }
    }

    #[test]
    fn python_does_not_compile_what_is_javascripts_own() {
        for pattern in [
            r"\p{L}",
            r"[\p{L}-]",
            r"\P{Lu}",
            r"\u{1F600}",
            r"\u00e",
            r"\x4",
            r"\cA",
            r"\k<a>",
            r"(?<a>x)",
            r"\z",
            r"[\Z]",
            r"[\B]",
            r"\e",
            r"\1",
            r"(a\1)",
            r"[\w-.]",
            r"[.-\w]",
            r"[z-a]",
            r"[]",
            r"[^]",
            r"a**",
            r"*a",
            r"(*a)",
            r"a|*b",
            r"a{2,1}",
            r"{3}",
            r"(a",
            r"a)",
            r"a(?i)",
            r"\8",
            r"[\8]",
            r"a{3}{4}",
            r"a{3}*",
            r"a?{2}",
            r"a*??",
            r"^*",
            r"$*",
            r"\b+",
            r"(?^a)",
            r"[a-\d]",
            r"[a--b]",
            r"\G",
            r"\h",
            r"\R",
            r"\",
        ] {
            assert!(unread(pattern, Engine::Python).is_some(), "{pattern}");
        }
        let told = unread(r"^(?!__)[^\p{Cc}\p{Cf}]{1,200}$", Engine::Python);
        assert_eq!(told.as_deref(), Some(r"it contains `\p`"));
    }

    #[test]
    fn go_reads_the_syntax_of_re2() {
        for pattern in [
            r"\p{L}",
            r"\pN",
            r"[\p{Greek}x]",
            r"(?P<a>x)",
            r"(?<a>x)",
            r"[\w-.]",
            r"^*",
            r"\z",
            r"\/\-\_",
            r"[[:alpha:]]",
            r"(?i)a",
            r"a(?i)b",
            r"\x{1F600}",
            r"a{,3}",
            r"a{1000}",
        ] {
            assert_eq!(unread(pattern, Engine::Go), None, "{pattern}");
        }
        for pattern in [
            r"^(?!\.)a",
            r"(?=a)",
            r"(?<=a)b",
            r"(?<!a)b",
            r"(a)\1",
            r"\u00e9",
            r"\cA",
            r"\Z",
            r"(?>a)",
            r"a++",
            r"a{1001}",
            r"[]",
            r"\p{Script=Greek}",
            r"[\b]",
            r"\k<a>",
        ] {
            assert!(unread(pattern, Engine::Go).is_some(), "{pattern}");
        }
    }

    #[test]
    fn claude_has_no_look_around_in_strict_schemas() {
        for pattern in [r"^\d{3}$", r"^(?:a|b)+$", r"[\b(?=]", r"\(?=a"] {
            assert_eq!(unread_by_claude(pattern), None, "{pattern}");
        }
        for pattern in [r"^(?!a)", r"(a)\1", r"\bword\b", r"(?<=a)b"] {
            assert!(unread_by_claude(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn grammars_have_few_escapes() {
        for pattern in [
            r"^[a-b]+$",
            r"^\.\(\]$",
            r"^a\\b$",
            r"^(?:a|b)$",
            r"^[\]\[]$",
        ] {
            assert_eq!(unread_by_grammar(pattern), None, "{pattern}");
        }
        for (pattern, what) in [
            (r"^[a\-b]+$", r"\-"),
            (r"^https:\/\/x$", r"\/"),
            (r"^\d+$", r"\d"),
            (r"^[\.]$", r"\."),
            (r"^(?!a)b$", "(?!"),
        ] {
            assert_eq!(
                unread_by_grammar(pattern).as_deref(),
                Some(what),
                "{pattern}"
            );
        }
    }
}
