//! Parses TOML text into a tree in which every node has its location. `json` reads trees without
//! locations, which the build script has converted.
//!
//! This module is the only user of `toml_edit` and its lexer. Input: the normalised text of one
//! file. Output: a [`Table`] in the author's order, with byte spans for keys and values. This
//! module does not interpret the keys.

mod json;
mod mistake;
mod string;

pub use string::decode_map;

use std::ops::Range;

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value itself.
    pub kind: Kind,
    /// The byte range of the value, including quotes and brackets. For a table with a header, the
    /// byte range of the header. Empty if the build script has converted the value.
    pub span: Range<usize>,
}

/// A TOML value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A string, decoded.
    String(String),
    /// A 64-bit integer.
    Integer(i64),
    /// A float; may be `nan` or `inf`.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A date or time, as written.
    Datetime(String),
    /// An array or an array of tables.
    Array(Vec<Node>),
    /// A table, inline or not.
    Table(Table),
}

impl Node {
    /// Returns the number of values, including this one and those inside it.
    fn values(&self) -> usize {
        match &self.kind {
            Kind::Array(elements) => 1 + elements.iter().map(Node::values).sum::<usize>(),
            Kind::Table(table) => 1 + table.values(),
            _ => 1,
        }
    }

    /// Returns `true` if both are the same value, regardless of their locations.
    pub(crate) fn says_the_same(&self, other: &Node) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Array(one), Kind::Array(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.says_the_same(b))
            }
            (Kind::Table(one), Kind::Table(two)) => {
                let members = one.entries.iter().zip(&two.entries);
                one.entries.len() == two.entries.len()
                    && members
                        .into_iter()
                        .all(|((a, x), (b, y))| a.name == b.name && x.says_the_same(y))
            }
            (one, two) => one == two,
        }
    }

    /// Returns the kind of the value, with its article, for messages.
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::String(_) => "a string",
            Kind::Integer(_) => "an integer",
            Kind::Float(_) => "a float",
            Kind::Boolean(_) => "a boolean",
            Kind::Datetime(_) => "a date or time",
            Kind::Array(_) => "an array",
            Kind::Table(_) => "a table",
        }
    }
}

/// A key as written in one location.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The decoded name.
    pub name: String,
    /// The byte range of the key.
    pub span: Range<usize>,
}

/// A table in the author's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The keys and values; keys are unique.
    pub entries: Vec<(Key, Node)>,
}

impl Table {
    /// Returns the value of a key.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// Returns the number of values, including nested ones.
    pub fn values(&self) -> usize {
        self.entries.iter().map(|(_, node)| node.values()).sum()
    }

    /// Returns the value of a key, if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the strings in a key's array, without the array's other elements.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.elements(name).filter_map(|node| match &node.kind {
            Kind::String(text) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the tables in a key's array, without the array's other elements.
    pub(crate) fn tables(&self, name: &str) -> impl Iterator<Item = &Table> {
        self.elements(name).filter_map(|node| match &node.kind {
            Kind::Table(table) => Some(table),
            _ => None,
        })
    }

    fn elements(&self, name: &str) -> impl Iterator<Item = &Node> {
        let array = match self.get(name).map(|node| &node.kind) {
            Some(Kind::Array(elements)) => Some(elements),
            _ => None,
        };
        array.into_iter().flatten()
    }

    /// Returns a key and its value.
    pub fn entry(&self, name: &str) -> Option<&(Key, Node)> {
        self.entries.iter().find(|(key, _)| key.name == name)
    }
}

/// The reason why a string is not TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message, one lower-case phrase.
    pub message: String,
    /// The byte range of the invalid text.
    pub span: Range<usize>,
    /// Advice on how to fix the mistake, if any.
    pub help: Option<String>,
    /// The edit that fixes the mistake, if there is one.
    pub edit: Option<(Range<usize>, &'static str)>,
    /// The location of the first occurrence, for a duplicate.
    pub first: Option<Range<usize>>,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// The maximum length of text to parse, in bytes. The parser may need a hundred times as much
/// memory.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The maximum number of separators between keys and values: each takes half a kilobyte during
/// parsing.
const MAX_VALUES: usize = 250_000;

/// Returns the location where a string exceeds the maximum number of keys and values. Separators
/// inside strings and comments do not count.
fn too_many_values(text: &str) -> Option<Range<usize>> {
    use toml_parser::lexer::TokenKind;
    // Few texts contain this many separator bytes, even counting those in strings.
    if memchr::memchr3_iter(b',', b'=', b'.', text.as_bytes()).count() <= MAX_VALUES {
        return None;
    }
    let tokens = toml_parser::Source::new(text).lex();
    let mut signs = tokens.filter(|token| {
        matches!(
            token.kind(),
            TokenKind::Comma | TokenKind::Equals | TokenKind::Dot
        )
    });
    let beyond = signs.nth(MAX_VALUES)?.span();
    Some(beyond.start()..beyond.end())
}

/// Returns `true` if a comment begins at a byte offset; a `#` in a string does not begin one.
pub(crate) fn begins_comment(text: &str, at: usize) -> bool {
    use toml_parser::lexer::TokenKind;
    let mut tokens = toml_parser::Source::new(text).lex();
    tokens.any(|token| token.kind() == TokenKind::Comment && token.span().start() == at)
}

/// Parses one file.
///
/// # Errors
///
/// Returns the first mistake and its location, or an error if the text is too long or has too many
/// values.
pub fn parse(text: &str) -> Result<Table, SyntaxError> {
    if text.len() > MAX_BYTES {
        let end = text.floor_char_boundary(MAX_BYTES);
        return Err(too_large(
            end..end,
            &format!("a TOML file can have at most {} MiB", MAX_BYTES >> 20),
        ));
    }
    if let Some(span) = too_many_values(text) {
        return Err(too_large(
            span,
            &format!("a TOML file can have at most {MAX_VALUES} keys and values"),
        ));
    }
    let document =
        toml_edit::Document::parse(text).map_err(|error| mistake::explain(text, &error))?;
    Ok(table(document.as_table()))
}

fn too_large(span: Range<usize>, message: &str) -> SyntaxError {
    let help = "split the file, or move long text into files that templates read".to_owned();
    SyntaxError {
        message: message.to_owned(),
        span,
        help: Some(help),
        edit: None,
        first: None,
    }
}

/// Returns the parts of invalid text that can still be read: everything above the mistake, and
/// those lines above the first table that are valid TOML on their own.
pub fn salvage(text: &str, error: &SyntaxError) -> Option<Table> {
    let header = first_header(text);
    let mut table = above(text, error).unwrap_or_default();
    let mut at = 0;
    for line in text[..header].split_inclusive('\n').take(SALVAGED_LINES) {
        let single = parse(line).map(|single| single.entries).unwrap_or_default();
        for (mut key, mut node) in single
            .into_iter()
            .filter(|(_, node)| !matches!(node.kind, Kind::Table(_)))
        {
            if table.get(&key.name).is_none() {
                key.span = key.span.start + at..key.span.end + at;
                node.span = node.span.start + at..node.span.end + at;
                table.entries.push((key, node));
            }
        }
        at += line.len();
    }
    Some(table).filter(|table| !table.entries.is_empty())
}

/// Returns the table above the mistake or, if that does not parse, above the first table header.
pub fn above(text: &str, error: &SyntaxError) -> Option<Table> {
    let line = text[..text.floor_char_boundary(error.span.start)]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    [line, first_header(text).min(line)]
        .into_iter()
        .find_map(|end| parse(&text[..end]).ok())
}

/// Returns the offset of the first table header.
fn first_header(text: &str) -> usize {
    if text.starts_with('[') {
        0
    } else {
        text.find("\n[").map_or(text.len(), |newline| newline + 1)
    }
}

/// The maximum number of lines to try individually.
const SALVAGED_LINES: usize = 200;

/// Converts `toml_edit`'s tree.
fn table(table: &dyn toml_edit::TableLike) -> Table {
    let mut entries = Vec::with_capacity(table.len());
    for (name, inner) in table.iter() {
        let span = table.key(name).and_then(toml_edit::Key::span);
        let node = item(inner, span.clone());
        let key = Key {
            name: name.to_owned(),
            span: span.unwrap_or(node.span.clone()),
        };
        entries.push((key, node));
    }
    Table { entries }
}

fn item(item: &toml_edit::Item, key: Option<Range<usize>>) -> Node {
    match item {
        toml_edit::Item::Value(inner) => value(inner, key),
        toml_edit::Item::Table(inner) => Node {
            kind: Kind::Table(table(inner)),
            span: inner.span().or(key).unwrap_or_default(),
        },
        toml_edit::Item::ArrayOfTables(inner) => {
            let tables = inner.iter().map(|inner| Node {
                kind: Kind::Table(table(inner)),
                span: inner.span().or(key.clone()).unwrap_or_default(),
            });
            Node {
                kind: Kind::Array(exactly(tables)),
                span: inner.span().or(key.clone()).unwrap_or_default(),
            }
        }
        toml_edit::Item::None => Node {
            kind: Kind::Table(Table::default()),
            span: key.unwrap_or_default(),
        },
    }
}

fn value(from: &toml_edit::Value, key: Option<Range<usize>>) -> Node {
    let span = from.span().or(key).unwrap_or_default();
    let kind = match from {
        toml_edit::Value::String(inner) => Kind::String(inner.value().clone()),
        toml_edit::Value::Integer(inner) => Kind::Integer(*inner.value()),
        toml_edit::Value::Float(inner) => Kind::Float(*inner.value()),
        toml_edit::Value::Boolean(inner) => Kind::Boolean(*inner.value()),
        toml_edit::Value::Datetime(inner) => Kind::Datetime(inner.value().to_string()),
        toml_edit::Value::Array(inner) => {
            let mut elements = Vec::with_capacity(inner.len());
            elements.extend(inner.iter().map(|it| value(it, Some(span.clone()))));
            Kind::Array(elements)
        }
        toml_edit::Value::InlineTable(inner) => Kind::Table(table(inner)),
    };
    Node { kind, span }
}

/// Collects a list without spare capacity: the tables of profiles stay in memory, and most are
/// smaller than a list's first allocation.
fn exactly<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = items.collect();
    list.shrink_to_fit();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_order_are_the_authors() {
        let text = "z = 1\n[body]\nb.c = 'x'\na = [1, {k = 2.0}]\n[body.t]\n";
        let root = parse(text).expect("valid");
        assert_eq!(root.entries[0].0.name, "z");
        let Kind::Table(body) = &root.get("body").expect("there").kind else {
            panic!("a table")
        };
        assert_eq!(
            body.entries
                .iter()
                .map(|(key, _)| key.name.as_str())
                .collect::<Vec<_>>(),
            ["b", "a", "t"]
        );
        let a = body.get("a").expect("there");
        assert_eq!(&text[a.span.clone()], "[1, {k = 2.0}]");
        assert_eq!(&text[body.entry("a").expect("there").0.span.clone()], "a");
    }

    #[test]
    fn values_are_counted_and_texts_are_not() {
        let list = |count: usize| format!("a = [{}]\n", "1,".repeat(count));
        assert!(parse(&list(200_000)).is_ok());
        let error = parse(&list(300_000)).expect_err("too many");
        assert!(
            error.message.contains("250000 keys") && error.span.start > 400_000,
            "{error:?}"
        );
        let prose = "a=1, ".repeat(100_000);
        assert!(
            parse(&format!(
                "a = \"\"\"{prose}\"\"\"\nb = '''{prose}'''\n# {prose}\n"
            ))
            .is_ok()
        );
    }

    #[test]
    fn errors_have_a_place() {
        let error = parse("a = 1\nb = [1,\n").expect_err("unclosed");
        assert!(error.span.start >= 6, "{error:?}");
    }

    #[test]
    fn what_stands_above_a_mistake_can_be_read() {
        let names = |text: &str| {
            let table = salvage(text, &parse(text).expect_err("a mistake")).unwrap_or_default();
            table
                .entries
                .into_iter()
                .map(|(key, _)| key.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("a = 1\nb = 2\nc =\n"), ["a", "b"]);
        assert_eq!(names("a = 1\n[t]\nb = \"\"\"\nopen\n"), ["a", "t"]);
        assert_eq!(names("a = \"\nb = 1\n"), ["b"]);
        assert_eq!(names("a = 1\nb: 2\nc = 3\n[t]\nd = 4\n"), ["a", "c"]);
    }
}
