//! The settings file `reqc.toml`.

mod budget;

use std::fmt;
use std::sync::Arc;

use semver::{Version, VersionReq};

use super::{Glob, Known, MAX_GLOBS, Reader, Special, folders, rules};
use crate::diag::{Diagnostic, Severity};
use crate::source::{FileId, Span, Spanned};
use crate::toml::Table;
pub use budget::{BUDGET_KEYS, Budget};

/// Every key in `reqc.toml`.
pub const CONFIG_KEYS: [&str; 9] = [
    "schema_version",
    "reqc",
    "layer",
    "dialect",
    "golden",
    "rules",
    "allow",
    "extension",
    "budget",
];

/// Every key in an `[[allow]]` entry.
pub const ALLOW_KEYS: [&str; 5] = ["code", "agent", "file", "reason", "expires"];

/// Every key in an `[[extension]]` entry.
pub const EXTENSION_KEYS: [&str; 5] = [
    "provider_instance",
    "fields",
    "values",
    "optional",
    "reason",
];

const CONFIG: Known = Known {
    what: folders::CONFIG,
    keys: &CONFIG_KEYS,
    inner: &[
        ("[reqc]", &REQC_KEYS),
        ("[golden]", &GOLDEN_KEYS),
        ("[[allow]]", &ALLOW_KEYS),
        ("[[extension]]", &EXTENSION_KEYS),
        ("[[budget]]", &BUDGET_KEYS),
    ],
};
const GOLDEN_KEYS: [&str; 1] = ["contexts"];
const REQC_KEYS: [&str; 1] = ["version"];

/// The settings of a repository.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `true` if the file contains `layer = "bundled"`, that is, if this root is the bundled layer.
    pub is_bundled_layer: bool,
    /// The dialect of the templates.
    pub dialect: Dialect,
    /// `golden.contexts`: globs that select the contexts with golden files; `None` selects the
    /// contexts marked `golden`.
    pub golden_contexts: Option<Spanned<Vec<Spanned<Glob>>>>,
    /// `[rules]`: the level of each rule code.
    pub levels: Vec<(Spanned<Arc<str>>, Level)>,
    /// The `[[allow]]` entries.
    pub allows: Vec<Allow>,
    /// The `[[extension]]` entries.
    pub extensions: Vec<Extension>,
    /// The `[[budget]]` entries.
    pub budgets: Vec<Budget>,
}

/// The maximum number of `[[allow]]` entries. Each entry is compared with each finding.
const MAX_ALLOWS: usize = 1_000;
/// The maximum number of entries in `[rules]`, far above the number of rules.
const MAX_LEVELS: usize = 1_000;
/// The maximum number of `[[extension]]` entries.
const MAX_EXTENSIONS: usize = 1_000;
/// The maximum number of `[[budget]]` entries. Each entry is compared with each body.
const MAX_BUDGETS: usize = 100;
/// The maximum number of elements in a list in an `[[extension]]` entry.
const MAX_FIELDS: usize = 1_000;

/// An `[[extension]]` entry, which specifies what a provider instance accepts in addition to its
/// wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The location of the entry.
    pub span: Span,
    /// The provider instance's name.
    pub instance: Arc<str>,
    /// Additional fields, as JSON pointers in which `*` matches any element or member.
    pub fields: Vec<Arc<str>>,
    /// Additional values, each written as a pointer like those in `fields`, `=`, and the value.
    pub values: Vec<Arc<str>>,
    /// Required fields that may be missing, as pointers like those in `fields`.
    pub optional: Vec<Arc<str>>,
    /// The reason; `None` if it is missing, which has been reported as a finding.
    pub reason: Option<Arc<str>>,
}

/// The dialect of a repository's templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Jinja. Inja's spellings are accepted, too.
    #[default]
    Jinja,
    /// Inja's semantics, wherever the two engines differ silently.
    Inja,
}

/// The level of a rule's findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The findings are dropped.
    Off,
    /// The findings have this severity.
    On(Severity),
}

/// An `[[allow]]` entry, which suppresses findings and gives a reason.
#[derive(Debug, Clone)]
pub struct Allow {
    /// The location of the entry.
    pub span: Span,
    /// The code of the rule whose findings the entry suppresses.
    pub code: Arc<str>,
    /// If set, only findings that affect a matching agent are suppressed.
    pub agent: Option<Glob>,
    /// If set, only findings in a matching file are suppressed.
    pub file: Option<Glob>,
    /// The reason; `None` if it is missing, which has been reported as a finding.
    pub reason: Option<Arc<str>>,
    /// The last day on which the entry applies.
    pub expires: Option<Date>,
    /// `true` if the entry itself has findings. In that case, it is not reported as unused.
    pub(crate) broken: bool,
}

/// A calendar date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day, 1 to 31.
    pub day: u8,
}

impl Config {
    /// Reads `reqc.toml`.
    pub(super) fn read(file: FileId, table: &Table, findings: &mut Vec<Diagnostic>) -> Config {
        let mut reader = Reader::new(file, table, findings);
        reader.only_beside(&CONFIG, level_above_rules);
        reader.schema_version(1);
        let is_bundled_layer = reader
            .one_of("layer", &[("bundled", true), ("own", false)])
            .is_some_and(|it| it.value);
        let dialect = reader.one_of(
            "dialect",
            &[("jinja", Dialect::Jinja), ("inja", Dialect::Inja)],
        );
        let reqc = reader.table("reqc");
        let golden = reader.table("golden");
        let levels = reader.table("rules");
        let allows = reader.tables("allow");
        let extensions = reader.tables("extension");
        let budgets = reader.tables("budget");
        if let Some(one) = budgets.get(MAX_BUDGETS) {
            reader.too_many("budget", "entries", MAX_BUDGETS, one.span);
        }
        if let Some(one) = allows.get(MAX_ALLOWS) {
            reader.too_many("allow", "entries", MAX_ALLOWS, one.span);
        }
        if let Some(one) = extensions.get(MAX_EXTENSIONS) {
            reader.too_many("extension", "entries", MAX_EXTENSIONS, one.span);
        }
        if let Some(reqc) = reqc {
            check_version(file, reqc.value, findings);
        }
        let (allows, extensions) = (
            allows.into_iter().take(MAX_ALLOWS),
            extensions.into_iter().take(MAX_EXTENSIONS),
        );
        Config {
            is_bundled_layer,
            dialect: dialect.map(|it| it.value).unwrap_or_default(),
            golden_contexts: golden
                .and_then(|golden| golden_contexts(file, golden.value, findings)),
            levels: levels
                .map(|levels| read_levels(file, levels.value, findings))
                .unwrap_or_default(),
            extensions: extensions
                .filter_map(|entry| Extension::read(file, entry, findings))
                .collect(),
            allows: allows
                .filter_map(|entry| Allow::read(file, entry, findings))
                .collect(),
            budgets: { budgets.into_iter().take(MAX_BUDGETS) }
                .filter_map(|entry| Budget::read(file, entry, findings))
                .collect(),
        }
    }
}

/// Reports a rule code that is used as a key outside `[rules]`.
fn level_above_rules(key: &str) -> Option<Special> {
    key.contains('/')
        .then(|| Special::Misplaced("rule levels go under `[rules]`".to_owned()))
}

/// Checks that `[reqc] version` is valid, and that this program satisfies it.
fn check_version(file: FileId, table: &Table, findings: &mut Vec<Diagnostic>) {
    const THIS: &str = env!("CARGO_PKG_VERSION");
    let mut reader = Reader::new(file, table, findings);
    reader.only(&Known::flat("[reqc]", &REQC_KEYS));
    let Some(wanted) = reader.string("version") else {
        return;
    };
    let this = Version::parse(THIS).expect("the version of a package is one");
    match VersionReq::parse(&wanted.value) {
        Ok(requirement) if requirement.matches(&this) => {}
        Ok(_) => {
            let message = format!(
                "this is reqc {THIS}, but the repository requires `{}`",
                wanted.value
            );
            let finding = Diagnostic::new(&rules::OTHER_VERSION, wanted.span, message);
            reader.report(finding.help(
                "install a matching version; or change the line, and check `reqc compile --diff`",
            ));
        }
        Err(why) => {
            let message = format!("`version` is not a valid version requirement: {why}");
            let finding = Diagnostic::new(&rules::INVALID_VALUE, wanted.span, message);
            reader.report(finding.help(
                "for example, write `version = \"0.9\"`, or `\"=0.9.1\"` for exactly that version",
            ));
        }
    }
}

fn golden_contexts(
    file: FileId,
    table: &Table,
    findings: &mut Vec<Diagnostic>,
) -> Option<Spanned<Vec<Spanned<Glob>>>> {
    let mut reader = Reader::new(file, table, findings);
    reader.only(&Known::flat("[golden]", &GOLDEN_KEYS));
    let patterns = reader.strings("contexts")?;
    if patterns.value.len() > MAX_GLOBS {
        reader.too_many("contexts", "globs", MAX_GLOBS, patterns.span);
        return None;
    }
    let globs = patterns.value.iter().filter_map(|pattern| {
        glob(&mut reader, "contexts", pattern).map(|value| Spanned {
            value,
            span: pattern.span,
        })
    });
    Some(Spanned {
        value: globs.collect(),
        span: patterns.span,
    })
}

fn glob(reader: &mut Reader<'_, '_>, key: &str, pattern: &Spanned<Arc<str>>) -> Option<Glob> {
    match Glob::new(&pattern.value) {
        Ok(glob) => Some(glob),
        Err(why) => {
            let message = format!("`{key}` is not a valid glob: {why}");
            reader.report(Diagnostic::new(
                &rules::INVALID_VALUE,
                pattern.span,
                message,
            ));
            None
        }
    }
}

fn read_levels(
    file: FileId,
    table: &Table,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(Spanned<Arc<str>>, Level)> {
    let mut reader = Reader::new(file, table, findings);
    let choices = [
        ("off", Level::Off),
        ("warning", Level::On(Severity::Warning)),
        ("error", Level::On(Severity::Error)),
    ];
    let mut levels = Vec::new();
    if let Some((key, _)) = table.entries.get(MAX_LEVELS) {
        reader.too_many(
            "rules",
            "entries",
            MAX_LEVELS,
            Span::new(file, key.span.clone()),
        );
    }
    for (key, node) in table.entries.iter().take(MAX_LEVELS) {
        if let Some(level) = reader.one_of_at(&key.name, node, &choices) {
            let code = Spanned {
                value: Arc::from(key.name.as_str()),
                span: Span::new(file, key.span.clone()),
            };
            levels.push((code, level.value));
        }
    }
    levels
}

impl Allow {
    fn read(file: FileId, entry: Spanned<&Table>, findings: &mut Vec<Diagnostic>) -> Option<Allow> {
        let before = findings.len();
        let mut reader = Reader::new(file, entry.value, findings);
        reader.only(&Known::flat("[[allow]]", &ALLOW_KEYS));
        let agent = reader.string("agent");
        let agent = agent.and_then(|pattern| glob(&mut reader, "agent", &pattern));
        let path = reader.string("file");
        let path = path.and_then(|pattern| glob(&mut reader, "file", &pattern));
        let expires = reader.date("expires");
        let (code, reason) = (reader.string("code"), reader.string("reason"));
        reader.missing("an [[allow]] entry", entry.span, &["code", "reason"]);
        let reason = reason.map(|it| it.value);
        let broken = reader.found_more_than(before);
        Some(Allow {
            span: code.as_ref()?.span,
            code: code?.value,
            agent,
            file: path,
            reason,
            expires,
            broken,
        })
    }
}

impl Extension {
    fn read(
        file: FileId,
        entry: Spanned<&Table>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Extension> {
        let mut reader = Reader::new(file, entry.value, findings);
        reader.only(&Known::flat("[[extension]]", &EXTENSION_KEYS));
        let (instance, reason) = (reader.string("provider_instance"), reader.string("reason"));
        let lists = ["fields", "values", "optional"].map(|key| (key, reader.strings(key)));
        let is_empty = lists.iter().all(|(key, _)| !reader.has(key));
        let needed: &[&str] = if is_empty {
            &EXTENSION_NEEDS
        } else {
            &["provider_instance", "reason"]
        };
        reader.missing("an [[extension]] entry", entry.span, needed);
        if let Some((key, list)) = lists
            .iter()
            .find(|(_, list)| list.as_ref().is_some_and(is_too_long))
        {
            reader.too_many(key, "entries", MAX_FIELDS, list.as_ref()?.span);
            return None;
        }
        let [fields, values, optional] =
            lists.map(|(_, list)| list.map(|list| list.value).unwrap_or_default());
        if let Some(value) = values.iter().find(|value| !value.value.contains('=')) {
            let finding = Diagnostic::new(
                &rules::INVALID_VALUE,
                value.span,
                "this has no `=` and no value",
            );
            reader.report(finding.help("write the place and the value: `\"/service_tier=batch\"`"));
            return None;
        }
        let instance = instance?;
        Some(Extension {
            span: instance.span,
            instance: instance.value,
            fields: texts(fields),
            values: texts(values),
            optional: texts(optional),
            reason: reason.map(|it| it.value),
        })
    }
}

fn texts(list: Vec<Spanned<Arc<str>>>) -> Vec<Arc<str>> {
    list.into_iter().map(|text| text.value).collect()
}

/// The required keys in an `[[extension]]` entry.
const EXTENSION_NEEDS: [&str; 3] = ["provider_instance", "fields", "reason"];

fn is_too_long(list: &Spanned<Vec<Spanned<Arc<str>>>>) -> bool {
    list.value.len() > MAX_FIELDS
}

/// Required keys whose values are lists.
const LIST_KEYS: [&str; 5] = ["fields", "agents", "command", "models", "wires"];

impl Reader<'_, '_> {
    /// Reports the required keys that an entry lacks, and a blank reason.
    pub(super) fn missing(&mut self, what: &str, span: Span, needed: &[&str]) {
        let missing: Vec<&str> = needed
            .iter()
            .copied()
            .filter(|key| !self.has(key))
            .collect();
        if !missing.is_empty() {
            let message = format!("{what} needs `{}`", missing.join("` and `"));
            let lines: Vec<String> = missing
                .iter()
                .map(|key| match LIST_KEYS.contains(key) {
                    true => format!("`{key} = [\"…\"]`"),
                    false => format!("`{key} = \"…\"`"),
                })
                .collect();
            self.report(
                Diagnostic::new(&rules::MISSING_KEY, span, message)
                    .help(format!("add {}", lines.join(" and "))),
            );
        }
        if let Some(span) = self.blank("reason").filter(|_| needed.contains(&"reason")) {
            let finding =
                Diagnostic::new(&rules::INVALID_VALUE, span, "`reason` must not be empty");
            self.report(finding.help("give the reason: reviewers read it"));
        }
    }

    /// Reports a list that has more elements than allowed.
    pub(crate) fn too_many(&mut self, key: &str, what: &str, most: usize, span: Span) {
        let message = format!("`{key}` has more than {most} {what}");
        self.report(Diagnostic::new(&rules::INVALID_VALUE, span, message).help("shorten it"));
    }

    /// Reads a date. Reports a value that is not a date, and returns `None`.
    pub(super) fn date(&mut self, key: &str) -> Option<Date> {
        let text = self.date_or_string(key)?;
        let date = Date::parse(&text.value);
        if date.is_none() {
            let message = format!("`{key}` must be a date");
            let help = format!("write year, month and day: `{key} = 2027-01-31`");
            self.report(Diagnostic::new(&rules::INVALID_VALUE, text.span, message).help(help));
        }
        date
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(feature = "cli")]
impl Date {
    /// Returns the date if it exists in the calendar.
    pub(crate) fn is_valid(self) -> Option<Date> {
        Date::parse(&self.to_string())
    }

    /// Returns the date that is this number of days later.
    pub(crate) fn after(self, days: u32) -> Date {
        (0..days).fold(self, |date, _| date.next())
    }

    fn next(self) -> Date {
        let Date { year, month, day } = self;
        match (day < self.days_in_month(), month) {
            (true, _) => Date {
                day: day + 1,
                ..self
            },
            (false, 12) => Date {
                year: year + 1,
                month: 1,
                day: 1,
            },
            (false, _) => Date {
                year,
                month: month + 1,
                day: 1,
            },
        }
    }
}

impl Date {
    fn days_in_month(self) -> u8 {
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 => 28 + u8::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Parses a date in the form `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Date> {
        let mut parts = text.splitn(3, '-');
        let date = Date {
            year: parts.next()?.parse().ok()?,
            month: parts.next()?.parse().ok()?,
            day: parts.next()?.parse().ok()?,
        };
        ((1..=12).contains(&date.month) && (1..=date.days_in_month()).contains(&date.day))
            .then_some(date)
    }
}
