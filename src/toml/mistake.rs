//! Explains why text is not TOML, in terms of the text itself.
//!
//! The parser reports what it expected, but authors need to know what is wrong with their text,
//! such as a comment in another language's syntax, typographic quotes, or a merge conflict. These
//! mistakes are recognised by the text around them. Any other mistake is described by the parser's
//! message.

use std::ops::Range;

use toml_parser::lexer::{Token, TokenKind};

use super::{Kind, Node, SyntaxError, Table, parse};

/// The mistake that the parser found, and the text around it.
struct Mistake<'t> {
    text: &'t str,
    /// The parser's message, on one line.
    detail: String,
    span: Range<usize>,
    /// The offset at which the line with the mistake starts.
    line_start: usize,
    /// The line with the mistake, without its line ending.
    line: &'t str,
}

/// A function that recognises one kind of mistake.
type Recognise<'t> = fn(&Mistake<'t>) -> Option<SyntaxError>;

/// Converts the parser's error to an explanation.
pub(super) fn explain(text: &str, error: &toml_edit::TomlError) -> SyntaxError {
    let span = error.span().unwrap_or(text.len()..text.len());
    let start = text.floor_char_boundary(span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].split('\n').next().unwrap_or_default();
    let detail = error.message().trim().replace('\n', ", ");
    let mistake = Mistake {
        text,
        detail,
        span: start..text.ceil_char_boundary(span.end.max(start)),
        line_start,
        line,
    };
    let recognised: [Recognise<'_>; 9] = [
        Mistake::conflict,
        Mistake::json,
        Mistake::unclosed_string,
        Mistake::typographic_quotes,
        Mistake::comment,
        Mistake::twice,
        Mistake::colon,
        Mistake::bare_value,
        Mistake::second_value,
    ];
    recognised
        .iter()
        .find_map(|recognise| recognise(&mistake))
        .unwrap_or_else(|| mistake.by_message())
}

fn error(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> SyntaxError {
    SyntaxError {
        message: message.into(),
        span,
        help: Some(help.into()),
        edit: None,
        first: None,
    }
}

impl Mistake<'_> {
    /// Converts a range within the line to a range within the text.
    fn in_line(&self, range: Range<usize>) -> Range<usize> {
        self.line_start + range.start..self.line_start + range.end
    }

    /// Returns the rest of the line, from the mistake on.
    fn rest(&self) -> &str {
        self.line
            .get(self.span.start - self.line_start..)
            .unwrap_or_default()
    }

    fn conflict(&self) -> Option<SyntaxError> {
        let mark = conflict_mark(self.line)?;
        let help = "keep one of the two versions, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`";
        Some(error(
            self.in_line(0..mark.len()),
            "a merge conflict was left in the file",
            help,
        ))
    }

    fn json(&self) -> Option<SyntaxError> {
        let start = self.text.len() - self.text.trim_start().len();
        let help = "write `key = value`, one per line; a table begins with its `[header]`";
        self.text[start..]
            .starts_with('{')
            .then(|| error(start..start + 1, "this is JSON, not TOML", help))
    }

    /// Recognises a string without a closing quote, at the mistake or on the line above it.
    fn unclosed_string(&self) -> Option<SyntaxError> {
        let tokens = toml_parser::Source::new(self.text).lex().into_vec();
        let from = self.text[..self.line_start.saturating_sub(1)]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let (at, token) = tokens.iter().enumerate().find(|(_, token)| {
            let is_near = token.span().end() >= from && token.span().start() <= self.span.end;
            is_near && is_unclosed(self.text, token)
        })?;
        let follows_word = at
            .checked_sub(1)
            .is_some_and(|before| tokens[before].kind() == TokenKind::Atom);
        if follows_word {
            return None;
        }
        let start = token.span().start();
        let quotes = quotes(&self.text[start..]);
        let written = &self.text[start..token.span().end()];
        let help = match (quotes.len(), written.contains(TYPOGRAPHIC)) {
            (_, true) => {
                format!(
                    "a string that begins with `{quotes}` ends with `{quotes}`: replace the typographic quotes"
                )
            }
            (1, _) => {
                format!(
                    "write `{quotes}` at its end; text of several lines goes between `\"\"\"` and `\"\"\"`"
                )
            }
            _ => format!("write `{quotes}` at its end"),
        };
        Some(error(
            start..start + quotes.len(),
            "this string is never closed",
            help,
        ))
    }

    fn typographic_quotes(&self) -> Option<SyntaxError> {
        let at = self.line.find(TYPOGRAPHIC)?;
        // Typographic quotes are allowed inside strings and comments.
        let is_in_code = toml_parser::Source::new(self.text).lex().any(|token| {
            let range = token.span().start()..token.span().end();
            token.kind() == TokenKind::Atom && range.contains(&(self.line_start + at))
        });
        if !is_in_code {
            return None;
        }
        let len = self.line[at..].chars().next().map_or(0, char::len_utf8);
        let found = &self.line[at..at + len];
        Some(error(
            self.in_line(at..at + len),
            format!("`{found}` is a typographic quote"),
            "strings go between straight quotes: `\"…\"` or `'…'`",
        ))
    }

    fn comment(&self) -> Option<SyntaxError> {
        let rest = self.rest();
        // The parser treats a comment after an unquoted value as part of the value.
        let behind = rest
            .match_indices(' ')
            .map(|(space, _)| &rest[space + 1..])
            .take(MOST_WORDS);
        let found = [self.line.trim_start(), rest.trim_start()]
            .into_iter()
            .chain(behind)
            .find(|text| FOREIGN_COMMENTS.iter().any(|mark| text.starts_with(mark)))?;
        let mark = FOREIGN_COMMENTS.iter().find(|it| found.starts_with(**it))?;
        let start = self.line.len() - found.len();
        let message = format!("`{mark}` does not start a comment in TOML");
        Some(error(
            self.in_line(start..start + mark.len()),
            message,
            "write `#` instead",
        ))
    }

    fn twice(&self) -> Option<SyntaxError> {
        if !self.detail.starts_with("duplicate key") {
            return None;
        }
        let name = self.text.get(self.span.clone()).unwrap_or_default();
        let is_header = self.line.trim_start().starts_with('[');
        let (what, help) = match is_header {
            true => ("the table", "write the keys of both under one header"),
            false => ("the key", "remove one of the two"),
        };
        let twice = error(
            self.span.clone(),
            format!("{what} `{}` appears twice", crate::text::cut(name, 40)),
            help,
        );
        Some(SyntaxError {
            first: self.first(is_header),
            ..twice
        })
    }

    /// Returns the first occurrence of a duplicate key or table.
    fn first(&self, is_header: bool) -> Option<Range<usize>> {
        let above = parse(&self.text[..self.line_start]).ok()?;
        let upto = self.span.end - self.line_start;
        let path = match is_header {
            true => path_of(self.line.get(..upto)?.trim_start_matches([' ', '\t', '[']))?,
            false => {
                let headers = self.text[..self.line_start].lines().rev();
                let header = headers
                    .map(str::trim)
                    .find(|line| line.starts_with('[') && line.contains(']'));
                let table = header.map(|line| {
                    line.trim_start_matches('[')
                        .split(']')
                        .next()
                        .unwrap_or_default()
                });
                let mut path = table.map_or(Some(Vec::new()), path_of)?;
                path.extend(path_of(self.line.get(..upto)?)?);
                path
            }
        };
        locate(&above, &path)
    }

    /// Recognises `key: value`, the notation of YAML and JSON.
    fn colon(&self) -> Option<SyntaxError> {
        let is_about_sign = ["key with no value", "missing assignment"]
            .iter()
            .any(|it| self.detail.starts_with(it));
        let key = self.line.find(':').filter(|_| is_about_sign)?;
        if self
            .line
            .find('=')
            .is_some_and(|sign| sign < key && !self.detail.starts_with("missing assignment"))
        {
            return None;
        }
        let at = match self.rest().trim_start().starts_with(':') {
            true => self.line.len() - self.rest().trim_start().len(),
            false => key,
        };
        let message = "this is a `:`, but TOML uses `=`";
        Some(error(
            self.in_line(at..at + 1),
            message,
            "write `key = value`",
        ))
    }

    /// Recognises a word where a value is expected.
    fn bare_value(&self) -> Option<SyntaxError> {
        let is_about = [
            "string values must be quoted",
            "invalid boolean",
            "invalid float",
        ]
        .iter()
        .any(|it| self.detail.starts_with(it));
        // For malformed numbers, the parser's message is better.
        let is_word = !self
            .rest()
            .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
        if !is_about || !is_word && self.detail.starts_with("invalid float") {
            return None;
        }
        let word = self.text.get(self.span.clone()).unwrap_or_default().trim();
        if word.is_empty() {
            return Some(error(
                self.span.clone(),
                "a value is missing here",
                "write one, or leave the key out",
            ));
        }
        let bare = word.trim_end_matches([';', ',']);
        let help = match bare.to_ascii_lowercase().as_str() {
            _ if bare.len() < word.len() && bare.parse::<bool>().is_ok() => {
                format!(
                    "remove the `{}`: TOML lines do not end with a semicolon or comma",
                    &word[bare.len()..]
                )
            }
            "true" | "yes" | "on" => "write `true`".to_owned(),
            "false" | "no" | "off" => "write `false`".to_owned(),
            "null" | "none" | "nil" | "undefined" => {
                "TOML has no such value: leave the key out".to_owned()
            }
            _ if bare.len() > LONGEST_SHOWN => "write it in quotes".to_owned(),
            _ => format!("write it in quotes: `\"{bare}\"`"),
        };
        // A long word may be a secret. The excerpt masks it, and no message repeats it.
        let message = match word.len() > LONGEST_SHOWN {
            true => "this is not a TOML value".to_owned(),
            false => format!("`{word}` is not a TOML value"),
        };
        Some(error(self.span.clone(), message, help))
    }

    /// Recognises more text after a value on the same line.
    fn second_value(&self) -> Option<SyntaxError> {
        if !self.detail.starts_with("unexpected key or value") {
            return None;
        }
        let rest = self.rest().trim_start();
        let ends_string = self.line[..self.line.len() - self.rest().len()]
            .trim_end()
            .ends_with(['"', '\'']);
        let after_digits = ends_with_digits(&self.line[..self.line.len() - self.rest().len()]);
        let is_fraction = rest.len() == self.rest().len()
            && rest
                .strip_prefix(',')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let help = match rest {
            _ if after_digits && is_fraction => {
                "write `.` before the digits of a fraction, or `[1, 5]` for two numbers"
            }
            _ if rest.starts_with([';', ',']) => {
                "remove it: TOML lines do not end with a semicolon or comma"
            }
            _ if rest.split('#').next().unwrap_or_default().contains('=') => {
                "write each key on its own line"
            }
            _ if ends_string => {
                "inside a string, write `\\\"` for a quote, or put the text between `'` and `'`"
            }
            _ => "remove it, or begin a comment with `#`",
        };
        let at = self.line.len() - rest.len();
        // After an unquoted value, the parser's error covers the next key up to its `=`.
        let key = self.line[..at].trim_end();
        let (start, end) = match rest.starts_with('=') {
            true => (key.rfind(' ').map_or(0, |space| space + 1), key.len()),
            false => (at, at + rest.split_whitespace().next().map_or(0, str::len)),
        };
        Some(error(
            self.in_line(start..end),
            "this comes after a value, on the same line",
            help,
        ))
    }

    /// Returns the error for a mistake that none of the functions above recognises.
    fn by_message(&self) -> SyntaxError {
        let known = BY_MESSAGE
            .iter()
            .find(|(begins, _, _)| self.detail.starts_with(begins));
        let (message, help) = known
            .map_or((self.detail.as_str(), GENERAL), |(_, message, help)| {
                (message, help)
            });
        SyntaxError {
            edit: self.comma(message),
            ..error(self.span.clone(), message, help)
        }
    }

    /// Returns the edit that adds or removes a comma; `None` if the mistake is about something
    /// else. A comma cannot be added after a comment.
    fn comma(&self, message: &str) -> Option<(Range<usize>, &'static str)> {
        match message {
            ONE_COMMA_TOO_MANY => Some((self.span.clone(), "")),
            COMMA_MISSING => {
                let before = self.text[..self.span.start].trim_end();
                let line = before.rsplit('\n').next().unwrap_or_default();
                (!line.contains('#')).then_some((before.len()..before.len(), ","))
            }
            _ => None,
        }
    }
}

const COMMA_MISSING: &str = "a comma is missing before this";
const ONE_COMMA_TOO_MANY: &str = "there is one comma too many";

/// The help for mistakes without more specific help.
const GENERAL: &str =
    "a line is `key = value`, `[table]`, or a comment that begins with `#`; strings are in quotes";

/// For each parser message, its beginning, our message, and the help.
const BY_MESSAGE: [(&str, &str, &str); 20] = [
    (
        "missing escaped value",
        "this is not a valid escape",
        BACKSLASH,
    ),
    (
        "too few unicode value digits",
        "`\\u` and `\\U` must be followed by a hexadecimal code point",
        BACKSLASH,
    ),
    (
        "value is not a valid unicode",
        "no character has this code",
        BACKSLASH,
    ),
    ("invalid escape", "this is not a valid escape", BACKSLASH),
    (
        "missing comma between array elements",
        COMMA_MISSING,
        "write `,` between elements, or close the array above with `]`",
    ),
    (
        "missing comma between key-value pairs",
        COMMA_MISSING,
        "write `,` between the entries of `{ … }`",
    ),
    ("extra comma", ONE_COMMA_TOO_MANY, "remove it"),
    (
        "integer number overflowed",
        "this number does not fit: TOML's integers are between -9223372036854775808 and 9223372036854775807",
        "put it in quotes if it is an identifier rather than a number",
    ),
    (
        "floating-point number overflowed",
        "this number does not fit: TOML's floats are between -1.8e308 and 1.8e308",
        "put it in quotes if it is an identifier rather than a number",
    ),
    (
        "cannot recurse further",
        "this is nested too deeply",
        "write fewer levels of arrays and tables",
    ),
    (
        "recursion limit",
        "this is nested too deeply",
        "write fewer levels of arrays and tables",
    ),
    (
        "unclosed array table",
        "`[[` is never closed",
        "write `]]` at the end of the header",
    ),
    (
        "unclosed array",
        "`[` is never closed",
        "write `]` after the last element",
    ),
    (
        "unclosed inline table",
        "`{` is never closed",
        "write `}` after the last entry",
    ),
    (
        "unclosed table",
        "`[` is never closed",
        "write `]` at the end of the header",
    ),
    (
        "extra `=`",
        "there is one `=` too many",
        "write `key = value`",
    ),
    (
        "extra assignment",
        "there is one `=` too many",
        "write `key = value`",
    ),
    (
        "key with no value",
        "this key has no value",
        "write `key = value`",
    ),
    (
        "missing assignment",
        "this key has no value",
        "write `key = value`",
    ),
    (
        "invalid key-value pair",
        "a key cannot begin like this",
        GENERAL,
    ),
];

const BACKSLASH: &str =
    "write `\\\\` for a backslash, or put the text between `'` and `'`, where nothing is escaped";

/// The maximum length of a word that a message repeats, in bytes. API keys are longer.
const LONGEST_SHOWN: usize = 15;

/// The comment openers of other languages.
const FOREIGN_COMMENTS: [&str; 5] = ["//", "/*", "--", "<!--", "{#"];

/// The maximum number of words per line that are searched for a comment.
const MOST_WORDS: usize = 100;

/// Typographic quotes that word processors insert.
const TYPOGRAPHIC: [char; 12] = ['“', '”', '„', '‟', '‘', '’', '‚', '‛', '«', '»', '＂', '`'];

/// Returns the merge-conflict marker that a line consists of, if any.
fn conflict_mark(line: &str) -> Option<&'static str> {
    ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
        .into_iter()
        .find(|mark| {
            line.strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r']))
        })
}

/// Returns the quotes that a string begins with.
fn quotes(literal: &str) -> &'static str {
    ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quotes| literal.starts_with(quotes))
        .unwrap_or("\"")
}

/// Returns `true` if a line ends with a whole number, and not with a date or a time.
fn ends_with_digits(line: &str) -> bool {
    let value = line
        .rsplit([' ', '\t', '=', '[', ','])
        .next()
        .unwrap_or_default();
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

fn is_unclosed(text: &str, token: &Token) -> bool {
    let is_string = matches!(
        token.kind(),
        TokenKind::BasicString
            | TokenKind::LiteralString
            | TokenKind::MlBasicString
            | TokenKind::MlLiteralString
    );
    let literal = &text[token.span().start()..token.span().end()];
    let quotes = quotes(literal);
    is_string
        && !literal
            .get(quotes.len()..)
            .is_some_and(|rest| rest.ends_with(quotes))
}

/// Returns the parts in a dotted key.
fn path_of(key: &str) -> Option<Vec<String>> {
    let mut table = parse(&format!("{key} = 0")).ok()?;
    let mut path = Vec::new();
    while let Some((key, node)) = table.entries.pop() {
        path.push(key.name);
        match node.kind {
            Kind::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
    None
}

/// Returns the location of the last key on a nested path of keys.
fn locate(table: &Table, path: &[String]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, node) = table.entry(first)?;
    if rest.is_empty() {
        return Some(key.span.clone());
    }
    match &node.kind {
        Kind::Table(inner) => locate(inner, rest),
        Kind::Array(elements) => match elements.last()? {
            Node {
                kind: Kind::Table(inner),
                ..
            } => locate(inner, rest),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message, the marked text, and the help for invalid TOML.
    fn told(text: &str) -> (String, &str, String) {
        let error = parse(text).expect_err(text);
        (
            error.message,
            &text[error.span],
            error.help.expect("every mistake has help"),
        )
    }

    #[test]
    fn what_other_languages_write_is_recognised() {
        for (text, marked, word) in [
            ("a = 1\n<<<<<<< HEAD\nb = 1\n", "<<<<<<<", "merge conflict"),
            ("a = 1\n=======\nb = 1\n", "=======", "merge conflict"),
            ("a = [\n>>>>>>> x\n]\n", ">>>>>>>", "merge conflict"),
            ("{\"a\": 1}\n", "{", "JSON"),
            ("a = 1 // no\n", "//", "comment"),
            ("/* no */\n", "/*", "comment"),
            ("-- no\n", "--", "comment"),
            ("a: 1\n", ":", "`=`"),
            ("t = {\n  a: 1 }\n", ":", "`=`"),
            ("a = “x”\n", "“", "typographic"),
            ("a = [‘x’]\n", "‘", "typographic"),
            ("a = \"x”\n", "\"", "never closed"),
            ("a = \"x\nb = 1\n", "\"", "never closed"),
            ("a = \"\"\"x\nb = 1\n", "\"\"\"", "never closed"),
            ("a = True\n", "True", "not a TOML value"),
            ("a = nothing\n", "nothing", "not a TOML value"),
            ("a =\n", "", "missing"),
            ("a = 1 b = 2\n", "b", "after a value"),
            ("a = 1;\n", "1;", ""),
            ("a = \"say \"hi\" now\"\n", "hi\"", "after a value"),
        ] {
            let (message, found, help) = told(text);
            assert!(
                message.contains(word) || help.contains(word),
                "{text}: {message} ({help})"
            );
            assert_eq!(found, marked, "{text}: {message}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_told_with_both_ends() {
        for text in [
            "a = 9223372036854775808\n",
            "a = -9223372036854775809\n",
            "a = 0xFFFFFFFFFFFFFFFFFF\n",
            "a = 1e999\n",
            "a = -1e999\n",
        ] {
            let (message, _, help) = told(text);
            assert!(
                message.contains("does not fit") && message.contains("between -"),
                "{text}: {message}"
            );
            assert!(help.contains("quotes"), "{text}: {help}");
        }
    }

    #[test]
    fn only_whole_numbers_before_a_comma_are_fractions() {
        for (text, is_fraction) in [
            ("a = 1,5\n", true),
            ("a = -1_000,5\n", true),
            ("a=0,5\n", true),
            ("a = 2025-01-01,5\n", false),
            ("a = 12:30:00,5\n", false),
            ("a = 1.5,5\n", false),
        ] {
            let (_, _, help) = told(text);
            assert_eq!(help.contains("fraction"), is_fraction, "{text}: {help}");
        }
    }

    #[test]
    fn what_is_there_twice_shows_the_first() {
        for (text, first) in [
            ("a = 1\na = 2\n", 0),
            ("[t]\na = 1\n[u]\n[t]\n", 1),
            ("[t]\nb = 1\na = 1\na = 2\n", 10),
            ("[[t]]\na = 1\n[[t]]\nb = 1\nb = 2\n", 18),
            ("t.a = 1\nt.a = 2\n", 2),
            ("[\"x y\".z]\na = 1\na = 2\n", 10),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.message.contains("appears twice"), "{text}: {error:?}");
            assert_eq!(error.first.expect(text).start, first, "{text}");
        }
    }
}
