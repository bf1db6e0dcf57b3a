//! Reads `model-families.toml`, which describes how models differ from their wire format in what
//! they accept and reject.
//!
//! Input: the file in each layer. Output: [`Family`]s with [`Fact`]s about body members. This
//! module determines which families apply to a model; the bodies are checked elsewhere.

mod bundled;
mod name;
mod place;
mod price;
mod property;
mod told;

pub(super) use bundled::bundled;
pub use name::{ModelName, normal_name};
pub use place::{FoundMember, MemberPath};
pub use price::{Kept, PRICE_KEYS, Price};
pub use property::Property;

use std::sync::Arc;

use foldhash::HashMap;
use serde_json::Value;

use super::{Glob, GlobError, Known, MAX_GLOBS, Reader, rules, tools};
use crate::diag::{Diagnostic, Rank, Severity, citations};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node, Table};

/// Every key in `model-families.toml`.
pub const FAMILIES_KEYS: [&str; 2] = ["schema_version", "family"];

/// Every key in a `[[family]]` entry.
pub const FAMILY_KEYS: [&str; OWN_KEYS.len() + Property::ALL.len()] =
    joined(OWN_KEYS, PROPERTY_KEYS);

/// The keys in a family entry that are not properties.
const OWN_KEYS: [&str; 19] = [
    "name",
    "models",
    "except",
    "wires",
    "servers",
    "of_server",
    "from_version",
    "before_version",
    "without_beta",
    "source",
    "seen",
    "reasoned_calls",
    "cache_minimum",
    "context_window",
    "longest_request",
    "image_patches",
    "price",
    "refuses",
    "takes",
];

/// The key of each property.
const PROPERTY_KEYS: [&str; Property::ALL.len()] = {
    let mut keys = [""; Property::ALL.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = Property::ALL[at].key();
        at += 1;
    }
    keys
};

/// The keys that every kind of fact may have.
const FACT_KEYS: [&str; 9] = [
    "at", "when", "unless", "wires", "level", "says", "help", "source", "seen",
];

/// Every key in a `[[family.refuses]]` entry.
pub const REFUSES_KEYS: [&str; 12] = joined(FACT_KEYS, ["instead", "values", "null"]);

/// Every key in a `[[family.takes]]` entry.
pub const TAKES_KEYS: [&str; 12] = joined(FACT_KEYS, ["one_of", "least", "most"]);

const fn joined<const A: usize, const B: usize, const ALL: usize>(
    first: [&'static str; A],
    second: [&'static str; B],
) -> [&'static str; ALL] {
    let mut all = [""; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < A { first[at] } else { second[at - A] };
        at += 1;
    }
    all
}

/// The maximum total number of families, patterns and facts in a file, because each agent is
/// compared with all patterns, and each body with the facts about its model.
const MAX_SIZE: usize = 5_000;

/// The maximum number of values, pointers or conditions under one key of a fact, or of facts in a
/// family.
const MAX_LIST: usize = 100;

/// A group of models to which the same facts apply.
#[derive(Debug, Clone)]
pub struct Family {
    /// The name of the family, unique in its file.
    pub name: Spanned<Arc<str>>,
    /// The patterns for model names in the family.
    pub models: Vec<ModelPattern>,
    /// The patterns for model names that are excluded from the family.
    pub except: Vec<ModelPattern>,
    /// The wire formats for which the facts are valid.
    pub wires: Vec<Spanned<Arc<str>>>,
    /// The servers for which the facts are valid; empty for all servers.
    pub servers: Vec<Spanned<Arc<str>>>,
    /// `true` if the facts are valid only on these servers. If the models are `*`, the facts then
    /// apply to every model on these servers, even if the model's name is unknown.
    pub of_server: bool,
    /// The API version, specified in a header, from which the facts are valid; `None` for all
    /// versions.
    pub from_version: Option<Arc<str>>,
    /// The API version, specified in the URL, from which the facts are no longer valid; `None` for
    /// no limit.
    pub before_version: Option<Arc<str>>,
    /// The beta features, specified in a header, each of which makes the facts invalid.
    pub without_beta: Vec<Spanned<Arc<str>>>,
    /// The source of the facts.
    pub origin: Origin,
    /// The properties of the family's models, each true or false.
    pub properties: Vec<(Property, bool)>,
    /// The severity of the finding for a message with calls that lacks `reasoning_content` while
    /// the model thinks; `None` if the content is optional.
    pub reasoned_calls: Option<Severity>,
    /// The minimum length of a prefix that is cached, in tokens.
    pub cache_minimum: Option<i64>,
    /// The maximum number of tokens in a request and its answer together.
    pub context_window: Option<i64>,
    /// The maximum number of tokens in a request, if it is less than the context window.
    pub longest_request: Option<i64>,
    /// The maximum number of patches into which the model divides an image.
    pub image_patches: Option<i64>,
    /// The models' token prices, if known.
    pub price: Option<Price>,
    /// The facts about body members.
    pub facts: Vec<Fact>,
}

/// The source of facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// A URL, or the names of issues or packages.
    pub source: Option<Arc<str>>,
    /// The date on which the source last contained the fact.
    pub seen: Option<Arc<str>>,
}

impl Origin {
    /// Returns the rank of the most reliable source; `None` if there is no source.
    pub fn rank(&self) -> Option<Rank> {
        citations(self.source.as_deref()?)
            .first()
            .map(|found| found.rank)
    }
}

/// A pattern for model names.
#[derive(Debug, Clone)]
pub struct ModelPattern {
    /// The pattern as written.
    pub text: Spanned<Arc<str>>,
    /// The account that publishes the models; `None` for any account.
    account: Option<Box<str>>,
    /// The literal text that each matching name begins with.
    begins: Box<str>,
    rest: Rest,
}

/// The rest of a pattern after the literal text at its beginning. Most patterns are a name or a
/// prefix, which need no glob.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    Anything,
    /// The rest of the name must match this glob.
    Like(Glob),
}

/// A fact about a body member.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The members to which the fact applies.
    pub at: Vec<MemberPath>,
    /// The requirement for these members.
    pub demand: Demand,
    /// Conditions on the body, all of which must be met for the fact to apply.
    pub when: Vec<Condition>,
    /// Conditions on the body, none of which may be met for the fact to apply.
    pub unless: Vec<Condition>,
    /// The wire formats for which the fact is valid; empty for the family's wire formats.
    pub wires: Vec<Spanned<Arc<str>>>,
    /// The severity of a finding about a violation.
    pub level: Severity,
    /// The consequence of a violation, in the author's words.
    pub says: Option<Arc<str>>,
    /// The help for a violation, in the author's words.
    pub help: Option<Arc<str>>,
    /// The source of the fact. Missing parts are taken from the family.
    pub origin: Origin,
}

/// A requirement for a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// The member must be absent.
    Absent {
        /// The member to use instead, if there is one.
        instead: Option<Arc<str>>,
        /// The rejected values; empty if all values are rejected.
        values: Vec<Value>,
        /// `true` if `null` is rejected too, although it is usually treated as absent. The schema
        /// must accept `null` there; otherwise, it is removed before the facts are checked.
        even_null: bool,
    },
    /// The value must be one of the listed values, or a number in the range.
    Value {
        /// The accepted values.
        one_of: Vec<Value>,
        /// The minimum number, inclusive.
        least: Option<f64>,
        /// The maximum number, inclusive.
        most: Option<f64>,
    },
}

/// A condition on a body.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The value that the path starts from.
    pub from: PathStart,
    /// The member that the condition is about.
    pub at: MemberPath,
    /// The required state.
    pub is: State,
}

/// The value that the path of a condition starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStart {
    /// The body.
    Body,
    /// The member that the fact is about: `./name`.
    Member,
    /// The object that contains this member: `../name`.
    Holder,
}

/// The state that a condition requires of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// `true` if the member must be present, `false` if it must be absent.
    Present(bool),
    /// The member has one of these values.
    OneOf(Vec<Value>),
}

/// The keys in the file.
const FILE: Known = Known {
    what: "model-families.toml",
    keys: &FAMILIES_KEYS,
    inner: &[("[[family]]", &FAMILY_KEYS)],
};
/// The keys in a family entry.
const FAMILY: Known = Known {
    what: "a [[family]] entry",
    keys: &FAMILY_KEYS,
    inner: &[
        ("[[family.refuses]]", &REFUSES_KEYS),
        ("[[family.takes]]", &TAKES_KEYS),
        ("[family.price]", &PRICE_KEYS),
    ],
};
/// The keys in a `refuses` entry.
const REFUSAL: Known = Known::flat("a [[family.refuses]] entry", &REFUSES_KEYS);
/// The keys in a `takes` entry.
const TAKEN: Known = Known::flat("a [[family.takes]] entry", &TAKES_KEYS);

/// Merges the families of both layers. The repository's families come last, and replace bundled
/// families with the same name.
pub(super) fn merged(bundled: Vec<Family>, own: Vec<Family>) -> Vec<Family> {
    let mut families: Vec<Family> = bundled
        .into_iter()
        .filter(|family| !is_replaced(family, &own))
        .collect();
    families.extend(own);
    families
}

fn is_replaced(family: &Family, own: &[Family]) -> bool {
    own.iter()
        .any(|other| other.name.value == family.name.value)
}

/// Reads `model-families.toml`.
pub(super) fn read(file: FileId, table: &Table, findings: &mut Vec<Diagnostic>) -> Vec<Family> {
    let mut reader = Reader::new(file, table, findings);
    reader.only(&FILE);
    reader.schema_version(1);
    let mut families: Vec<Family> = Vec::new();
    let mut known: HashMap<Arc<str>, Span> = HashMap::default();
    let mut size = 0;
    for entry in reader.tables("family") {
        if size > MAX_SIZE {
            let message = format!(
                "the families before this one already have more than {MAX_SIZE} patterns and facts"
            );
            findings.push(
                Diagnostic::new(&rules::INVALID_VALUE, entry.span, message)
                    .help("use fewer patterns and facts"),
            );
            break;
        }
        size += 1;
        let Some(family) = Family::read(file, &entry, findings) else {
            continue;
        };
        size += family.models.len() + family.except.len() + family.facts.len();
        match known.get(&family.name.value) {
            Some(first) => {
                let message = format!("the family `{}` is defined twice", family.name.value);
                let finding = Diagnostic::new(&rules::REPEATED_FAMILY, family.name.span, message);
                findings.push(
                    finding
                        .related(*first, "first defined here")
                        .help("rename one of them"),
                );
            }
            None => {
                known.insert(Arc::clone(&family.name.value), family.name.span);
                families.push(family);
            }
        }
    }
    families
}

impl Family {
    /// Returns `true` if a model belongs to the family.
    pub fn has(&self, model: &ModelName) -> bool {
        self.models.iter().any(|pattern| pattern.is_match(model))
            && !self.except.iter().any(|pattern| pattern.is_match(model))
    }

    /// Returns `true` if the family applies to this model in particular, rather than to all models
    /// on a server.
    pub fn is_about(&self, model: &ModelName) -> bool {
        !self.is_of_whole_server() && self.has(model)
    }

    /// Returns `true` if the family applies to every model on its servers, even if the model's name
    /// is unknown.
    pub fn is_of_whole_server(&self) -> bool {
        self.of_server
            && self
                .models
                .iter()
                .any(|pattern| &*pattern.text.value == "*")
    }

    /// Returns the value of a property; `None` if the family does not set it.
    pub fn property(&self, property: Property) -> Option<bool> {
        self.properties
            .iter()
            .find(|(known, _)| *known == property)
            .map(|(_, is)| *is)
    }

    fn read(
        file: FileId,
        entry: &Spanned<&Table>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Family> {
        let mut reader = Reader::new(file, entry.value, findings).below("family.");
        reader.only(&FAMILY);
        reader.missing(
            "a [[family]] entry",
            entry.span,
            &["name", "models", "wires", "source", "seen"],
        );
        let (name, models) = (reader.string("name"), reader.patterns("models"));
        let except = reader.patterns("except").unwrap_or_default();
        let (wires, servers, origin) = (
            reader.names("wires"),
            reader.names("servers"),
            reader.origin(),
        );
        let of_server = reader.boolean("of_server").is_some_and(|it| it.value);
        let from_version = reader.string("from_version").map(|it| it.value);
        let before_version = reader.string("before_version").map(|it| it.value);
        let without_beta = reader.one_or_more("without_beta").unwrap_or_default();
        let reasoned_calls = reader.level("reasoned_calls");
        let properties = Property::ALL
            .into_iter()
            .filter_map(|property| Some((property, reader.boolean(property.key())?.value)))
            .collect();
        let cache_minimum = reader.integer("cache_minimum").map(|it| it.value);
        let context_window = reader.integer("context_window").map(|it| it.value);
        let longest_request = reader.integer("longest_request").map(|it| it.value);
        let image_patches = reader.integer("image_patches").map(|it| it.value);
        let price = Price::read(&mut reader);
        let mut facts = Fact::read_all(&mut reader, "refuses", &REFUSAL);
        facts.extend(Fact::read_all(&mut reader, "takes", &TAKEN));
        let (name, models) = (name?, models?);
        Some(Family {
            name,
            models,
            except,
            wires,
            servers,
            of_server,
            from_version,
            before_version,
            without_beta,
            origin,
            properties,
            reasoned_calls,
            cache_minimum,
            context_window,
            longest_request,
            image_patches,
            price,
            facts,
        })
    }
}

impl ModelPattern {
    /// Parses a pattern. An error contains the mistake and its location.
    fn new(text: Spanned<Arc<str>>) -> Result<ModelPattern, (GlobError, Span)> {
        let (account, pattern) = name::normal_pattern(&text.value);
        let plain = pattern
            .find(['*', '?', '[', ']', '{', '}', '\\'])
            .unwrap_or(pattern.len());
        let rest = match &pattern[plain..] {
            "" => Rest::Nothing,
            "*" => Rest::Anything,
            _ => Rest::Like(Glob::new(&pattern).map_err(|why| (why, text.span))?),
        };
        Ok(ModelPattern {
            text,
            account: account.map(String::into_boxed_str),
            begins: pattern[..plain].into(),
            rest,
        })
    }

    /// Returns `true` if a model name matches, with or without its date.
    pub fn is_match(&self, model: &ModelName) -> bool {
        let is_published_there = self.account.as_deref().is_none_or(|name| model.is_of(name));
        is_published_there
            && (self.is_like(model.normal())
                || model.dated().is_some_and(|name| self.is_like(name)))
    }

    fn is_like(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&*self.begins) else {
            return false;
        };
        match &self.rest {
            Rest::Nothing => rest.is_empty(),
            Rest::Anything => true,
            Rest::Like(glob) => glob.is_match(name),
        }
    }
}

impl Fact {
    /// Reads a family's entries under a key.
    fn read_all(reader: &mut Reader<'_, '_>, key: &str, known: &Known) -> Vec<Fact> {
        let entries = reader.tables(key);
        if let Some(further) = entries.get(MAX_LIST) {
            reader.too_many(key, "entries", MAX_LIST, further.span);
        }
        let entries = entries.into_iter().take(MAX_LIST);
        entries
            .filter_map(|entry| Fact::read(&mut reader.inner(entry.value), &entry, known))
            .collect()
    }

    fn read(reader: &mut Reader<'_, '_>, entry: &Spanned<&Table>, known: &Known) -> Option<Fact> {
        reader.only(known);
        reader.missing(known.what, entry.span, &["at"]);
        let (at, demand) = (reader.places("at"), Demand::read(reader, known.keys));
        let (when, unless, wires) = (
            reader.conditions("when"),
            reader.conditions("unless"),
            reader.names("wires"),
        );
        let level = reader.level("level");
        let (says, help, origin) = (
            reader.string("says"),
            reader.string("help"),
            reader.origin(),
        );
        let (says, help) = (says.map(|it| it.value), help.map(|it| it.value));
        let (at, demand) = (at?, demand?);
        if demand.is_empty() {
            let finding = Diagnostic::new(
                &rules::MISSING_KEY,
                entry.span,
                format!("{} needs `one_of`, `least` or `most`", known.what),
            );
            reader.report(finding.help("list the accepted values"));
            return None;
        }
        let level = level.unwrap_or(Severity::Error);
        Some(Fact {
            at,
            demand,
            when: when?,
            unless: unless?,
            wires,
            level,
            says,
            help,
            origin,
        })
    }
}

impl Condition {
    /// Returns the path as it is written in a file.
    pub fn path(&self) -> String {
        format!("{}{}", self.from.dots(), self.at.pointer)
    }
}

impl PathStart {
    /// Returns the beginning of a path that starts from this value.
    fn dots(self) -> &'static str {
        match self {
            PathStart::Body => "",
            PathStart::Member => ".",
            PathStart::Holder => "..",
        }
    }

    /// Splits the path of a condition into its start and a pointer.
    fn of(path: &str) -> (PathStart, &str) {
        let (dots, pointer) = path.split_at(path.find('/').unwrap_or(0));
        match dots {
            "." => (PathStart::Member, pointer),
            ".." => (PathStart::Holder, pointer),
            _ => (PathStart::Body, path),
        }
    }
}

impl Demand {
    /// Reads an entry's requirement; returns `None` if a finding was reported.
    fn read(reader: &mut Reader<'_, '_>, known: &[&str]) -> Option<Demand> {
        if known.contains(&"instead") {
            let values = reader.listed_values("values")?;
            return Some(Demand::Absent {
                instead: reader.string("instead").map(|it| it.value),
                values,
                even_null: reader.boolean("null").is_some_and(|it| it.value),
            });
        }
        let one_of = reader.listed_values("one_of")?;
        Some(Demand::Value {
            one_of,
            least: reader.number("least")?,
            most: reader.number("most")?,
        })
    }

    fn is_empty(&self) -> bool {
        matches!(self, Demand::Value { one_of, least: None, most: None } if one_of.is_empty())
    }
}

impl<'t> Reader<'t, '_> {
    fn origin(&mut self) -> Origin {
        let source = self.string("source").map(|it| it.value);
        Origin {
            source,
            seen: self.date("seen").map(|it| it.to_string().into()),
        }
    }

    fn level(&mut self, key: &str) -> Option<Severity> {
        let levels = [("warning", Severity::Warning), ("error", Severity::Error)];
        self.one_of(key, &levels).map(|it| it.value)
    }

    fn names(&mut self, key: &str) -> Vec<Spanned<Arc<str>>> {
        let Some(names) = self.strings(key) else {
            return Vec::new();
        };
        if names.value.len() > MAX_LIST {
            self.too_many(key, "names", MAX_LIST, names.span);
            return Vec::new();
        }
        names.value
    }

    fn patterns(&mut self, key: &str) -> Option<Vec<ModelPattern>> {
        let texts = self.strings(key)?;
        if texts.value.len() > MAX_GLOBS {
            self.too_many(key, "globs", MAX_GLOBS, texts.span);
            return None;
        }
        let mut patterns = Vec::new();
        for text in texts.value {
            match ModelPattern::new(text) {
                Ok(pattern) => patterns.push(pattern),
                Err((why, span)) => {
                    let message = format!("`{key}` contains an invalid glob: {why}");
                    self.report(Diagnostic::new(&rules::INVALID_VALUE, span, message));
                }
            }
        }
        Some(patterns)
    }

    /// Reads one pointer or a list of pointers; returns `None` if a finding was reported.
    fn places(&mut self, key: &str) -> Option<Vec<MemberPath>> {
        self.one_or_more(key)?
            .into_iter()
            .map(|text| self.pointer(key, &text.value, text.span))
            .collect()
    }

    /// Reads a string, or an array of strings; returns `None` if the key is absent or a finding was
    /// recorded.
    fn one_or_more(&mut self, key: &str) -> Option<Vec<Spanned<Arc<str>>>> {
        match &self.get(key)?.kind {
            Kind::Array(elements) if elements.len() > MAX_LIST => {
                let span = self.span(self.get(key)?);
                self.too_many(key, "strings", MAX_LIST, span);
                None
            }
            Kind::Array(_) => Some(self.strings(key)?.value),
            _ => Some(vec![self.string(key)?]),
        }
    }

    fn pointer(&mut self, key: &str, text: &str, span: Span) -> Option<MemberPath> {
        if text.len() > 1 && text.starts_with('/') {
            let wildcards = text.split('/').filter(|step| *step == place::SCHEMAS);
            if wildcards.count() > 1 {
                let message = format!("`{key}` has `**` more than once");
                self.report(
                    Diagnostic::new(&rules::INVALID_VALUE, span, message)
                        .help("leave one out: `**` stands for schemas at any depth"),
                );
                return None;
            }
            return Some(MemberPath::new(text));
        }
        let message = format!(
            "`{key}` names a member by its JSON pointer, but `{text}` is not a JSON pointer"
        );
        self.report(
            Diagnostic::new(&rules::INVALID_VALUE, span, message)
                .help("write it as `/temperature`"),
        );
        None
    }

    /// Reads a table of pointers and their required states; returns `None` if a finding was
    /// reported.
    fn conditions(&mut self, key: &str) -> Option<Vec<Condition>> {
        if self.get(key).is_none() {
            return Some(Vec::new());
        }
        let Spanned { value: table, span } = self.table(key)?;
        if table.entries.len() > MAX_LIST {
            self.too_many(key, "conditions", MAX_LIST, span);
            return None;
        }
        let file = self.file();
        table
            .entries
            .iter()
            .map(|(name, node)| {
                let (from, text) = PathStart::of(&name.name);
                let at = self.pointer(key, text, Span::new(file, name.span.clone()))?;
                let is = match &node.kind {
                    Kind::Boolean(is_there) => State::Present(*is_there),
                    _ => State::OneOf(self.values(&name.name, node)?),
                };
                Some(Condition { from, at, is })
            })
            .collect()
    }

    fn values(&mut self, key: &str, node: &'t Node) -> Option<Vec<Value>> {
        match &node.kind {
            Kind::Array(elements) if elements.len() > MAX_LIST => {
                let span = self.span(node);
                self.too_many(key, "values", MAX_LIST, span);
                return None;
            }
            _ => {}
        }
        match tools::node_json(self, node)? {
            Value::Array(values) => Some(values),
            _ => {
                self.wrong_type(key, node, "an array");
                None
            }
        }
    }

    /// Reads a list of values that must not be empty if it is present. Returns an empty list if the
    /// key is absent, and `None` if a finding was reported.
    fn listed_values(&mut self, key: &str) -> Option<Vec<Value>> {
        let Some(node) = self.get(key) else {
            return Some(Vec::new());
        };
        Some(self.values(key, node)?).filter(|values| self.is_filled(key, node, values))
    }

    fn is_filled(&mut self, key: &str, node: &Node, values: &[Value]) -> bool {
        if values.is_empty() {
            let finding = Diagnostic::new(
                &rules::INVALID_VALUE,
                self.span(node),
                format!("`{key}` lists no value"),
            );
            self.report(
                finding.help(
                    "list what the model accepts; what it never accepts belongs under [[family.refuses]]",
                ),
            );
        }
        !values.is_empty()
    }

    /// Reads a number; returns `None` if a finding was reported, `Some(None)` if the key is absent.
    #[expect(
        clippy::option_option,
        reason = "invalid, absent and present are three different cases"
    )]
    fn number(&mut self, key: &str) -> Option<Option<f64>> {
        let Some(node) = self.get(key) else {
            return Some(None);
        };
        match &node.kind {
            #[expect(clippy::cast_precision_loss, reason = "limits are small")]
            Kind::Integer(number) => Some(Some(*number as f64)),
            Kind::Float(number) => Some(Some(*number)),
            _ => {
                self.wrong_type(key, node, "a number");
                None
            }
        }
    }
}
