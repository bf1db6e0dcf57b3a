//! Parses GBNF, llama.cpp's format for grammars, to find mistakes that llama.cpp rejects.

use std::collections::BTreeSet;

/// The maximum number of repetitions that llama.cpp unrolls.
pub(super) const MOST_REPETITIONS: u64 = 2_000;

/// The maximum nesting depth of groups. The rest of a deeper grammar is not checked.
const DEEPEST: usize = 100;

/// A mistake in a grammar.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// The grammar cannot be parsed any further.
    Unread {
        /// The line number, counted from 1.
        line: usize,
        /// The expected text, as a phrase.
        expected: &'static str,
    },
    /// A name that is used, but not defined by a rule.
    Undefined(String),
    /// There is no rule named `root`.
    Rootless,
    /// An item's number of repetitions, which is too large for llama.cpp to unroll.
    Repeated(u64),
    /// An item's maximum number of repetitions, which is too large for builds before August 2026 to
    /// unroll.
    RepeatedForSome(u64),
    /// Groups are nested so deeply that the rest was not checked. This is not a mistake.
    TooDeep,
}

/// Returns the first mistake in a grammar.
pub(super) fn mistake(text: &str) -> Option<Mistake> {
    let mut reader = Reader {
        text: text.as_bytes(),
        at: 0,
        depth: 0,
        defined: BTreeSet::new(),
        used: BTreeSet::new(),
        most: None,
    };
    match reader.grammar() {
        Err(Mistake::TooDeep) => None,
        Err(mistake) => Some(mistake),
        Ok(()) => reader.unresolved(),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    defined: BTreeSet<&'t [u8]>,
    used: BTreeSet<&'t [u8]>,
    /// The largest upper bound of a repetition that exceeds the limit.
    most: Option<u64>,
}

impl<'t> Reader<'t> {
    fn grammar(&mut self) -> Result<(), Mistake> {
        self.space(true);
        while self.peek().is_some() {
            self.rule()?;
        }
        Ok(())
    }

    fn unresolved(&self) -> Option<Mistake> {
        if let Some(name) = self.used.difference(&self.defined).next() {
            return Some(Mistake::Undefined(String::from_utf8_lossy(name).into()));
        }
        if !self.defined.contains(b"root".as_slice()) {
            return Some(Mistake::Rootless);
        }
        self.most.map(Mistake::RepeatedForSome)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fault(&self, expected: &'static str) -> Mistake {
        let read = &self.text[..self.at.min(self.text.len())];
        let line = 1 + memchr::memchr_iter(b'\n', read).count();
        Mistake::Unread { line, expected }
    }

    /// Skips blanks and comments. If `goes_on` is `true`, also skips line ends.
    fn space(&mut self, goes_on: bool) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\r' | b'\n' if goes_on => self.at += 1,
                b'#' => {
                    while self.peek().is_some_and(|byte| !b"\r\n".contains(&byte)) {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Result<&'t [u8], Mistake> {
        let start = self.at;
        while self.peek().is_some_and(is_of_name) {
            self.at += 1;
        }
        match self.at {
            end if end == start => Err(self.fault("a name of letters, digits and `-`")),
            end => Ok(&self.text[start..end]),
        }
    }

    fn rule(&mut self) -> Result<(), Mistake> {
        let name = self.name()?;
        self.space(false);
        if !self.text[self.at..].starts_with(b"::=") {
            return Err(self.fault("`::=` after a name of letters, digits and `-`"));
        }
        self.at += 3;
        self.space(true);
        self.alternatives(false)?;
        if self.peek().is_some_and(|byte| !b"\r\n".contains(&byte)) {
            return Err(self.fault("the end of the line"));
        }
        self.defined.insert(name);
        self.space(true);
        Ok(())
    }

    fn alternatives(&mut self, goes_on: bool) -> Result<(), Mistake> {
        self.sequence(goes_on)?;
        while self.peek() == Some(b'|') {
            self.at += 1;
            self.space(true);
            self.sequence(goes_on)?;
        }
        Ok(())
    }

    fn sequence(&mut self, goes_on: bool) -> Result<(), Mistake> {
        let mut has_item = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.quoted(b'"', "the `\"` that ends a string")?,
                b'[' => self.quoted(b']', "the `]` that ends a character class")?,
                b'<' => self.token()?,
                b'!' if self.text.get(self.at + 1) == Some(&b'<') => {
                    self.at += 1;
                    self.token()?;
                }
                b'(' => self.group()?,
                b'.' => self.at += 1,
                b'*' | b'+' | b'?' if has_item => self.at += 1,
                b'{' if has_item => self.repetition()?,
                b'*' | b'+' | b'?' | b'{' => return Err(self.fault("something to repeat")),
                _ if is_of_name(byte) => {
                    let name = self.name()?;
                    self.used.insert(name);
                }
                _ => return Ok(()),
            }
            has_item = true;
            self.space(goes_on);
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Mistake::TooDeep);
        }
        self.at += 1;
        self.space(true);
        self.alternatives(true)?;
        if self.peek() != Some(b')') {
            return Err(self.fault("the `)` that ends a group"));
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// Reads a string or a character class.
    fn quoted(&mut self, end: u8, expected: &'static str) -> Result<(), Mistake> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            if byte == end {
                self.at += 1;
                return Ok(());
            }
            self.at += 1;
            if byte == b'\\' {
                self.escape()?;
            }
        }
        self.at = start;
        Err(self.fault(expected))
    }

    fn escape(&mut self) -> Result<(), Mistake> {
        let digits = match self.peek() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            Some(b't' | b'r' | b'n' | b'\\' | b'"' | b'[' | b']') => 0,
            _ => return Err(self.fault("a known escape after `\\`")),
        };
        self.at += 1;
        for _ in 0..digits {
            if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                return Err(self.fault("hexadecimal digits"));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Reads a token of the vocabulary, `<…>`.
    fn token(&mut self) -> Result<(), Mistake> {
        let end = self.text[self.at..].iter().position(|byte| *byte == b'>');
        match end {
            Some(end) => self.at += end + 1,
            None => return Err(self.fault("the `>` that ends a token")),
        }
        Ok(())
    }

    fn repetition(&mut self) -> Result<(), Mistake> {
        self.at += 1;
        self.space(true);
        let least = self
            .number()
            .ok_or_else(|| self.fault("a number of repetitions"))?;
        self.space(true);
        let mut most = Some(least);
        if self.peek() == Some(b',') {
            self.at += 1;
            self.space(true);
            most = self.number();
            self.space(true);
        }
        if self.peek() != Some(b'}') {
            return Err(self.fault("the `}` that ends a repetition"));
        }
        self.at += 1;
        if least > MOST_REPETITIONS {
            return Err(Mistake::Repeated(least));
        }
        let above = most.filter(|most| *most > MOST_REPETITIONS);
        self.most = self.most.max(above);
        Ok(())
    }

    fn number(&mut self) -> Option<u64> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        match digits {
            "" => None,
            digits => Some(digits.parse().unwrap_or(u64::MAX)),
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_grammars_are_read() {
        for text in [
            "root ::= \"yes\" | \"no\"",
            "root ::= (\"yes\" | \"no\") ws?\nws ::= [ \\t\\n]*\n# a comment (\n",
            "root  ::= item{2,5} item{3} item{1,}\nitem ::= \"- [\" [^\\]\\n\"]+ \"](\" . \")\" \"\\n\"",
            "root ::= (\n  \"a\" |\n  \"b\"\n)+\r\n",
            "# first\n\nroot ::= x-1 |\n  \"\\u00e9\\x41\"\nx-1 ::= <|end|> | !<[12]>",
            "root ::= \"a\" |",
        ] {
            assert_eq!(mistake(text), None, "{text}");
        }
        assert_eq!(mistake(&format!("root ::= {}", "(".repeat(5_000))), None);
    }

    #[test]
    fn mistakes_are_found() {
        for (text, line) in [
            ("root ::= (\"yes\" | \"no\"", 1),
            ("root ::= \"yes", 1),
            ("root ::= \"a\"\nroot_b ::= \"b\"", 2),
            ("root = \"a\"", 1),
            ("root ::= * \"a\"", 1),
            ("root ::= \"\\d\"", 1),
            ("root ::= \"a\"{x}", 1),
            ("root ::= \"a\" )", 1),
        ] {
            let found = mistake(text);
            assert!(
                matches!(found, Some(Mistake::Unread { line: at, .. }) if at == line),
                "{text}: {found:?}"
            );
        }
        assert_eq!(
            mistake("root ::= word"),
            Some(Mistake::Undefined("word".to_owned()))
        );
        assert_eq!(mistake("start ::= \"a\""), Some(Mistake::Rootless));
        assert_eq!(
            mistake("root ::= \"a\"{3000}"),
            Some(Mistake::Repeated(3_000))
        );
        assert_eq!(
            mistake("root ::= \"a\"{0,3000}"),
            Some(Mistake::RepeatedForSome(3_000))
        );
    }
}
