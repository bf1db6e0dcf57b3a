//! Reads the known keys of a TOML table, and reports the others.

use std::sync::Arc;

use super::rules;
use crate::diag::{Diagnostic, Severity, did_you_mean, is_misspelling};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node, Table};

/// A reader for the keys of one table. A key with a finding is treated as absent.
///
/// A misspelled key is reported, and read as the key that was probably intended, so that the
/// intended key is not reported as missing.
pub(crate) struct Reader<'t, 'f> {
    file: FileId,
    table: &'t Table,
    findings: &'f mut Vec<Diagnostic>,
    /// The prefix for the headers of inner tables in messages, such as `family.`.
    above: &'static str,
    /// Known keys that are misspelled, each with the index of its entry.
    misspelt: Vec<(&'static str, usize)>,
}

/// The known keys of a table.
pub(crate) struct Known {
    /// A description of the table for messages, with an article.
    pub(crate) what: &'static str,
    /// The keys of the table.
    pub(crate) keys: &'static [&'static str],
    /// The headers of inner tables, with the keys of each table.
    pub(crate) inner: &'static [(&'static str, &'static [&'static str])],
}

impl Known {
    /// Describes a table that contains no other tables.
    pub(crate) const fn flat(what: &'static str, keys: &'static [&'static str]) -> Known {
        Known {
            what,
            keys,
            inner: &[],
        }
    }

    /// Returns the header of the inner table to which a key belongs, and the key's name there. The
    /// key may be given with the table's name in front (`golden_contexts`).
    fn table_of(&self, key: &str) -> Option<(&'static str, &'static str)> {
        self.inner.iter().find_map(|(header, keys)| {
            let path = header.trim_matches(['[', ']']);
            let table = path.rsplit('.').next().unwrap_or(path);
            let name = key
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix(['_', '-', '.']))
                .unwrap_or(key);
            Some((*header, *keys.iter().find(|known| **known == name)?))
        })
    }

    /// Returns the known key that was probably meant.
    fn meant_by(&self, key: &str) -> Option<&'static str> {
        self.keys
            .iter()
            .copied()
            .find(|known| is_misspelling(key, known))
    }
}

/// The maximum number of unknown keys that are reported for one table.
const MOST_UNKNOWN: usize = 1_000;

impl<'t, 'f> Reader<'t, 'f> {
    pub(crate) fn new(
        file: FileId,
        table: &'t Table,
        findings: &'f mut Vec<Diagnostic>,
    ) -> Reader<'t, 'f> {
        Reader {
            file,
            table,
            findings,
            above: "",
            misspelt: Vec::new(),
        }
    }

    /// Sets the prefix for the headers of inner tables in messages, such as `family.`.
    #[must_use]
    pub(crate) fn below(self, above: &'static str) -> Reader<'t, 'f> {
        Reader { above, ..self }
    }

    /// Returns the table's file.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Returns the location of a node in this table's file.
    pub(crate) fn span(&self, node: &Node) -> Span {
        Span::new(self.file, node.span.clone())
    }

    pub(crate) fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// Adds help to the last finding.
    pub(super) fn help(&mut self, help: &str) {
        if let Some(last) = self.findings.pop() {
            self.findings.push(last.help(help));
        }
    }

    /// Returns a reader for a table inside this one.
    pub(crate) fn inner<'i>(&'i mut self, table: &'t Table) -> Reader<'t, 'i> {
        Reader {
            file: self.file,
            table,
            findings: self.findings,
            above: self.above,
            misspelt: Vec::new(),
        }
    }

    /// Reports keys that are not known.
    pub(crate) fn only(&mut self, known: &Known) {
        self.only_beside(known, |_| None);
    }

    /// Reports keys that are not known. For some keys, `special` returns a different message, or
    /// indicates that the key is reported elsewhere.
    pub(crate) fn only_beside(&mut self, known: &Known, special: impl Fn(&str) -> Option<Special>) {
        let table = self.table;
        let entries = table.entries.iter().enumerate();
        let mut unknown = entries.filter(|(_, (key, _))| !known.keys.contains(&key.name.as_str()));
        let mut told = 0;
        for (at, (key, _)) in unknown.by_ref() {
            let span = Span::new(self.file, key.span.clone());
            let finding = match special(&key.name) {
                Some(Special::Told) => continue,
                Some(Special::Misplaced(help)) => misplaced(span, &key.name, known.what, help),
                None => self.unknown_key(known, at, &key.name, span),
            };
            self.findings.push(finding);
            told += 1;
            if told == MOST_UNKNOWN {
                break;
            }
        }
        let more = unknown
            .filter(|(_, (key, _))| !matches!(special(&key.name), Some(Special::Told)))
            .count();
        if let Some(last) = self.findings.last_mut().filter(|_| more > 0) {
            last.message.push_str(&format!(", and {more} more"));
        }
    }

    /// Returns the finding about an unknown key, which is misspelled, in the wrong table, or
    /// neither.
    fn unknown_key(&mut self, known: &Known, at: usize, key: &str, span: Span) -> Diagnostic {
        if let Some((header, name)) = known.table_of(key) {
            let help = format!("write `{name}` under `{header}`");
            return misplaced(span, key, known.what, help);
        }
        let message = format!("unknown key `{key}` in {}", known.what);
        let meant = known
            .meant_by(key)
            .filter(|meant| self.get(meant).is_none());
        if let Some(meant) = meant {
            self.misspelt.push((meant, at));
            return Diagnostic::new(&rules::MISSPELT_KEY, span, message)
                .help(format!("did you mean `{meant}`?"));
        }
        let help = did_you_mean(key, known.keys.iter().copied())
            .unwrap_or_else(|| format!("known keys: {}", known.keys.join(", ")));
        Diagnostic::new(&rules::UNKNOWN_KEY, span, message).help(help)
    }

    /// Returns the value of a key, whatever its type, even if the key is misspelled.
    pub(super) fn get(&self, key: &str) -> Option<&'t Node> {
        self.table.get(key).or_else(|| {
            let (_, at) = self.misspelt.iter().find(|(meant, _)| *meant == key)?;
            Some(&self.table.entries[*at].1)
        })
    }

    pub(super) fn wrong_type(&mut self, key: &str, node: &Node, wanted: &str) {
        let message = format!("`{key}` must be {wanted}, not {}", node.describe());
        self.findings.push(Diagnostic::new(
            &rules::WRONG_TYPE,
            Span::new(self.file, node.span.clone()),
            message,
        ));
    }

    fn typed<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl Fn(&'t Kind) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let node = self.get(key)?;
        match read(&node.kind) {
            Some(value) => Some(Spanned {
                value,
                span: self.span(node),
            }),
            None => {
                self.wrong_type(key, node, wanted);
                None
            }
        }
    }

    pub(crate) fn string(&mut self, key: &str) -> Option<Spanned<Arc<str>>> {
        let node = self.get(key)?;
        self.string_at(key, node)
    }

    /// Reads the string in a given entry. Looking up every key of a table by name would take
    /// quadratic time.
    pub(crate) fn string_at(&mut self, key: &str, node: &'t Node) -> Option<Spanned<Arc<str>>> {
        match &node.kind {
            Kind::String(text) => Some(Spanned {
                value: Arc::from(text.as_str()),
                span: self.span(node),
            }),
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

    /// Returns `true` if a key is present, whatever its value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn table(&mut self, key: &str) -> Option<Spanned<&'t Table>> {
        self.typed(key, "a table", |kind| match kind {
            Kind::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(crate) fn tables(&mut self, key: &str) -> Vec<Spanned<&'t Table>> {
        let node = self.get(key);
        let Some(array) = self.typed(key, "an array of tables", |kind| match kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }) else {
            let is_table = node.is_some_and(|node| matches!(node.kind, Kind::Table(_)));
            if let Some(finding) = self.findings.last_mut().filter(|_| is_table) {
                let header = format!("[[{}{key}]]", self.above);
                finding.help = Some(format!(
                    "write `{header}` above its keys, once for each entry"
                ));
            }
            return Vec::new();
        };
        let mut tables = Vec::new();
        for element in array.value {
            match &element.kind {
                Kind::Table(table) => tables.push(Spanned {
                    value: table,
                    span: self.span(element),
                }),
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
                    strings.push(Spanned {
                        value: Arc::from(text.as_str()),
                        span: self.span(element),
                    });
                }
                _ => self.wrong_type(key, element, "an array of strings"),
            }
        }
        Some(Spanned {
            value: strings,
            span: array.span,
        })
    }

    /// Reads a TOML date, or a string that contains a date.
    pub(crate) fn date_or_string(&mut self, key: &str) -> Option<Spanned<Arc<str>>> {
        self.typed(key, "a date", |kind| match kind {
            Kind::String(text) | Kind::Datetime(text) => Some(Arc::from(text.as_str())),
            _ => None,
        })
    }

    /// Returns `true` if there are now more than `before` findings.
    pub(crate) fn found_more_than(&self, before: usize) -> bool {
        self.findings.len() > before
    }

    /// Returns `true` if any finding after the first `before` makes the values that were read
    /// unusable.
    pub(crate) fn found_unusable(&self, before: usize) -> bool {
        self.findings[before..].iter().any(is_fatal)
    }

    /// Returns the location of a string, if it is blank.
    pub(crate) fn blank(&self, key: &str) -> Option<Span> {
        let node = self.get(key)?;
        matches!(&node.kind, Kind::String(text) if text.trim().is_empty()).then(|| self.span(node))
    }

    /// Reads a string that must be one of `choices`.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Option<Spanned<T>> {
        let node = self.get(key)?;
        self.one_of_at(key, node, choices)
    }

    /// Reads the string in a given entry, which must be one of `choices`.
    pub(crate) fn one_of_at<T: Copy>(
        &mut self,
        key: &str,
        node: &'t Node,
        choices: &[(&str, T)],
    ) -> Option<Spanned<T>> {
        let text = self.string_at(key, node)?;
        match choices.iter().find(|(name, _)| *name == &*text.value) {
            Some((_, value)) => Some(Spanned {
                value: *value,
                span: text.span,
            }),
            None => {
                let names = choices.iter().map(|(name, _)| *name);
                self.invalid(key, &text, names);
                None
            }
        }
    }

    /// Reports that a string is not one of `choices`.
    pub(crate) fn invalid<'a>(
        &mut self,
        key: &str,
        found: &Spanned<Arc<str>>,
        choices: impl Iterator<Item = &'a str>,
    ) {
        let choices: Vec<&str> = choices.collect();
        let help = did_you_mean(&found.value, choices.iter().copied())
            .unwrap_or_else(|| format!("write one of: {}", choices.join(", ")));
        let message = format!("`{key}` cannot be `{}`", found.value);
        self.findings
            .push(Diagnostic::new(&rules::INVALID_VALUE, found.span, message).help(help));
    }

    /// Reads `schema_version`. If it is newer than `known`, reports this and returns `false`.
    pub(crate) fn schema_version(&mut self, known: i64) -> bool {
        let version = self.integer("schema_version");
        match version {
            Some(version) if version.value > known => {
                let message = format!(
                    "`schema_version = {}`, but this reqc knows versions up to {known}",
                    version.value
                );
                let finding = Diagnostic::new(&rules::NEWER_SCHEMA, version.span, message);
                self.findings.push(finding.help("upgrade reqc"));
                false
            }
            _ => true,
        }
    }
}

/// Returns `true` if a finding makes the reported item unusable.
pub(crate) fn is_fatal(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && !finding.rule.can_be_lowered
}

/// Special treatment for an unknown key.
pub(crate) enum Special {
    /// The key is reported elsewhere.
    Told,
    /// The key belongs elsewhere; the string is the right location.
    Misplaced(String),
}

fn misplaced(span: Span, key: &str, what: &str, help: String) -> Diagnostic {
    Diagnostic::new(
        &rules::MISPLACED_KEY,
        span,
        format!("`{key}` is in the wrong table: it is not a key of {what}"),
    )
    .help(help)
}
