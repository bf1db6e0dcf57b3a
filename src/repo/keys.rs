//! Reading the known keys of a TOML table, with findings for the rest.

use std::sync::Arc;

use super::rules;
use crate::diag::{Diagnostic, did_you_mean};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node, Table};

/// Reads keys of one table; every mistake becomes a finding and the key counts as absent.
pub(crate) struct Reader<'t, 'f> {
    file: FileId,
    table: &'t Table,
    findings: &'f mut Vec<Diagnostic>,
}

/// How many unknown keys of one table are told.
const MOST_UNKNOWN: usize = 1_000;

impl<'t, 'f> Reader<'t, 'f> {
    pub(crate) fn new(file: FileId, table: &'t Table, findings: &'f mut Vec<Diagnostic>) -> Reader<'t, 'f> {
        Reader { file, table, findings }
    }

    /// The file of the table.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The place of a node of this table.
    pub(crate) fn span(&self, node: &Node) -> Span {
        Span::new(self.file, node.span.clone())
    }

    pub(crate) fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// A reader of a table inside this one.
    pub(crate) fn inner<'i>(&'i mut self, table: &'t Table) -> Reader<'t, 'i> {
        Reader { file: self.file, table, findings: self.findings }
    }

    /// Warns of keys that are not in `known`.
    pub(crate) fn only(&mut self, what: &str, known: &[&str]) {
        self.only_beside(what, known, |_| false);
    }

    /// Warns of keys that are not in `known`, leaving out those that have findings of their own.
    pub(crate) fn only_beside(&mut self, what: &str, known: &[&str], is_reported: impl Fn(&str) -> bool) {
        let is_unknown = |name: &str| !known.contains(&name) && !is_reported(name);
        let mut unknown = self.table.entries.iter().map(|(key, _)| key).filter(|key| is_unknown(&key.name));
        for key in unknown.by_ref().take(MOST_UNKNOWN) {
            let span = Span::new(self.file, key.span.clone());
            let help = did_you_mean(&key.name, known.iter().copied())
                .unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
            self.findings.push(
                Diagnostic::new(&rules::UNKNOWN_KEY, span, format!("unknown key `{}` in {what}", key.name)).help(help),
            );
        }
        let more = unknown.count();
        if let Some(last) = self.findings.last_mut().filter(|_| more > 0) {
            last.message.push_str(&format!(", and {more} more"));
        }
    }

    pub(super) fn wrong_type(&mut self, key: &str, node: &Node, wanted: &str) {
        let message = format!("`{key}` must be {wanted}, not {}", node.describe());
        self.findings.push(Diagnostic::new(&rules::WRONG_TYPE, Span::new(self.file, node.span.clone()), message));
    }

    fn typed<T>(&mut self, key: &str, wanted: &str, read: impl Fn(&'t Kind) -> Option<T>) -> Option<Spanned<T>> {
        let node = self.table.get(key)?;
        match read(&node.kind) {
            Some(value) => Some(Spanned { value, span: self.span(node) }),
            None => {
                self.wrong_type(key, node, wanted);
                None
            }
        }
    }

    pub(crate) fn string(&mut self, key: &str) -> Option<Spanned<Arc<str>>> {
        let node = self.table.get(key)?;
        self.string_at(key, node)
    }

    /// The string of an entry that is at hand: looking up each key of a table would take the square of their number.
    pub(crate) fn string_at(&mut self, key: &str, node: &'t Node) -> Option<Spanned<Arc<str>>> {
        match &node.kind {
            Kind::String(text) => Some(Spanned { value: Arc::from(text.as_str()), span: self.span(node) }),
            _ => {
                self.wrong_type(key, node, "a string");
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Option<Spanned<bool>> {
        self.typed(key, "true or false", |kind| match kind {
            Kind::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn integer(&mut self, key: &str) -> Option<Spanned<i64>> {
        self.typed(key, "an integer", |kind| match kind {
            Kind::Integer(value) => Some(*value),
            _ => None,
        })
    }

    /// The value of a key, whatever it is.
    pub(crate) fn node(&self, key: &str) -> Option<&'t Node> {
        self.table.get(key)
    }

    pub(crate) fn table(&mut self, key: &str) -> Option<Spanned<&'t Table>> {
        self.typed(key, "a table", |kind| match kind {
            Kind::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(crate) fn tables(&mut self, key: &str) -> Vec<Spanned<&'t Table>> {
        let Some(array) = self.typed(key, "an array of tables", |kind| match kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }) else {
            return Vec::new();
        };
        let mut tables = Vec::new();
        for element in array.value {
            match &element.kind {
                Kind::Table(table) => tables.push(Spanned { value: table, span: self.span(element) }),
                _ => self.wrong_type(key, element, "an array of tables"),
            }
        }
        tables
    }

    pub(crate) fn strings(&mut self, key: &str) -> Option<Spanned<Vec<Spanned<Arc<str>>>>> {
        let array = self.typed(key, "an array of strings", |kind| match kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        })?;
        let mut strings = Vec::new();
        for element in array.value {
            match &element.kind {
                Kind::String(text) => {
                    strings.push(Spanned { value: Arc::from(text.as_str()), span: self.span(element) });
                }
                _ => self.wrong_type(key, element, "an array of strings"),
            }
        }
        Some(Spanned { value: strings, span: array.span })
    }

    /// A TOML date, or one in a string.
    pub(crate) fn date_or_string(&mut self, key: &str) -> Option<Spanned<Arc<str>>> {
        self.typed(key, "a date", |kind| match kind {
            Kind::String(text) | Kind::Datetime(text) => Some(Arc::from(text.as_str())),
            _ => None,
        })
    }

    /// A string that must be one of a few.
    pub(crate) fn one_of<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<Spanned<T>> {
        let node = self.table.get(key)?;
        self.one_of_at(key, node, choices)
    }

    /// The same of an entry that is at hand.
    pub(crate) fn one_of_at<T: Copy>(
        &mut self,
        key: &str,
        node: &'t Node,
        choices: &[(&str, T)],
    ) -> Option<Spanned<T>> {
        let text = self.string_at(key, node)?;
        match choices.iter().find(|(name, _)| *name == &*text.value) {
            Some((_, value)) => Some(Spanned { value: *value, span: text.span }),
            None => {
                let names = choices.iter().map(|(name, _)| *name);
                self.invalid(key, &text, names);
                None
            }
        }
    }

    /// A finding about a string that is not one of `choices`.
    pub(crate) fn invalid<'a>(&mut self, key: &str, found: &Spanned<Arc<str>>, choices: impl Iterator<Item = &'a str>) {
        let choices: Vec<&str> = choices.collect();
        let help = did_you_mean(&found.value, choices.iter().copied())
            .unwrap_or_else(|| format!("write one of: {}", choices.join(", ")));
        let message = format!("`{key}` cannot be `{}`", found.value);
        self.findings.push(Diagnostic::new(&rules::INVALID_VALUE, found.span, message).help(help));
    }

    /// `schema_version`: a finding and `false` if it is newer than `known`.
    pub(crate) fn schema_version(&mut self, known: i64) -> bool {
        let version = self.integer("schema_version");
        match version {
            Some(version) if version.value > known => {
                let message =
                    format!("`schema_version = {}`, but this reqc knows versions up to {known}", version.value);
                let finding = Diagnostic::new(&rules::NEWER_SCHEMA, version.span, message);
                self.findings.push(finding.help("upgrade reqc"));
                false
            }
            _ => true,
        }
    }
}
