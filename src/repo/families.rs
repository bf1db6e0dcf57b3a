//! `model-families.toml`: what models take and refuse, beside what their wire format does.
//!
//! Input: the file of each layer. Output: [`Family`]s with [`Fact`]s about members of bodies. Which
//! of them mention a model is told here; bodies are looked at elsewhere.

mod name;
mod place;
mod price;
mod property;
mod told;

pub use name::{ModelName, normal_name};
pub use place::MemberPath;
pub use price::{Kept, PRICE_KEYS, Price};
pub use property::Property;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Glob, GlobError, Known, MAX_GLOBS, Reader, rules, tools};
use crate::diag::{Diagnostic, Rank, Severity, citations};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node, Table};

/// Every key of `model-families.toml`.
pub const FAMILIES_KEYS: [&str; 2] = ["schema_version", "family"];

/// Every key of a `[[family]]` entry.
pub const FAMILY_KEYS: [&str; OWN_KEYS.len() + Property::ALL.len()] =
    joined(OWN_KEYS, PROPERTY_KEYS);

/// Keys of a family that are not properties.
const OWN_KEYS: [&str; 16] = [
    "name",
    "models",
    "except",
    "wires",
    "servers",
    "of_server",
    "from_version",
    "without_beta",
    "source",
    "seen",
    "reasoned_calls",
    "cache_minimum",
    "context_window",
    "price",
    "refuses",
    "takes",
];

/// A key for each property.
const PROPERTY_KEYS: [&str; Property::ALL.len()] = {
    let mut keys = [""; Property::ALL.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = Property::ALL[at].key();
        at += 1;
    }
    keys
};

/// Keys of every fact.
const FACT_KEYS: [&str; 9] = [
    "at", "when", "unless", "wires", "level", "says", "help", "source", "seen",
];

/// Every key of a `[[family.refuses]]` entry.
pub const REFUSES_KEYS: [&str; 11] = joined(FACT_KEYS, ["instead", "values"]);

/// Every key of a `[[family.takes]]` entry.
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

/// The most families, patterns and facts of a file, together: each agent is held against all
/// patterns, and each body against the facts of its model.
const MAX_SIZE: usize = 5_000;

/// The most values, pointers or conditions of one key of a fact, and facts of a family.
const MAX_LIST: usize = 100;

/// Models of which the same is known.
#[derive(Debug, Clone)]
pub struct Family {
    /// The name that people use; unique in a file.
    pub name: Spanned<Arc<str>>,
    /// Patterns of the names that belong to it.
    pub models: Vec<ModelPattern>,
    /// Patterns of those among them that do not.
    pub except: Vec<ModelPattern>,
    /// The wire formats that this is known of.
    pub wires: Vec<Spanned<Arc<str>>>,
    /// The servers that this is known of; empty for all that serve these models.
    pub servers: Vec<Spanned<Arc<str>>>,
    /// `true` if it is a rule of these servers for every model, named or not: elsewhere it says
    /// nothing.
    pub of_server: bool,
    /// The version of the API, as a header names it, from which on it is so; `None` for all.
    pub from_version: Option<Arc<str>>,
    /// The beta feature, as a header names it, with which it is not so.
    pub without_beta: Option<Arc<str>>,
    /// Where it was found, and when.
    pub origin: Origin,
    /// The properties of these models, yes or no.
    pub properties: Vec<(Property, bool)>,
    /// The severity of a message with calls that does not carry its `reasoning_content` while the
    /// model thinks; `None` if it need not.
    pub reasoned_calls: Option<Severity>,
    /// The shortest prefix that is cached, in tokens.
    pub cache_minimum: Option<i64>,
    /// The most tokens of a request and its answer together.
    pub context_window: Option<i64>,
    /// The price of tokens.
    pub price: Option<Price>,
    /// The facts known of members of bodies.
    pub facts: Vec<Fact>,
}

/// Where a fact was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// An address, or the names of issues.
    pub source: Option<Arc<str>>,
    /// The day on which it was seen there.
    pub seen: Option<Arc<str>>,
}

impl Origin {
    /// Returns the rank of its best source; `None` if it names no address.
    pub fn rank(&self) -> Option<Rank> {
        citations(self.source.as_deref()?)
            .first()
            .map(|found| found.rank)
    }
}

/// A pattern of model names.
#[derive(Debug, Clone)]
pub struct ModelPattern {
    /// As it is written.
    pub text: Spanned<Arc<str>>,
    /// The first characters of each name.
    begins: Box<str>,
    rest: Rest,
}

/// The rest of a name after its beginning. Most patterns are a name or its beginning, and need no
/// glob.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    Anything,
    /// The whole name, its beginning included, is like this.
    Like(Glob),
}

/// Something that is known of a member of bodies.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The members that it mentions.
    pub at: Vec<MemberPath>,
    /// The demand on them.
    pub demand: Demand,
    /// It holds only for bodies that are like all of these.
    pub when: Vec<Condition>,
    /// It does not hold for bodies that are like any of these.
    pub unless: Vec<Condition>,
    /// The wire formats that it is known of; empty for those of the family.
    pub wires: Vec<Spanned<Arc<str>>>,
    /// How bad it is to do otherwise.
    pub level: Severity,
    /// The consequence, in the words of the author.
    pub says: Option<Arc<str>>,
    /// The advice, in the words of the author.
    pub help: Option<Arc<str>>,
    /// Where it was found; what is empty is as in the family.
    pub origin: Origin,
}

/// The demand on a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// It must not be there.
    Absent {
        /// The member to use instead.
        instead: Option<Arc<str>>,
        /// The values that are refused; if there are none, every value is.
        values: Vec<Value>,
    },
    /// Its value must be one of these, or a number in this range.
    Value {
        /// The values that are taken.
        one_of: Vec<Value>,
        /// The least number, included.
        least: Option<f64>,
        /// The greatest number, included.
        most: Option<f64>,
    },
}

/// A condition on a body.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The member.
    pub at: MemberPath,
    /// The state that it has to be in.
    pub is: State,
}

/// The state of a member that counts.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is there, or it is not.
    Present(bool),
    /// It has one of these values.
    OneOf(Vec<Value>),
}

/// The file.
const FILE: Known = Known {
    what: "model-families.toml",
    keys: &FAMILIES_KEYS,
    inner: &[("family", &FAMILY_KEYS)],
};
/// An entry of it.
const FAMILY: Known = Known {
    what: "a [[family]] entry",
    keys: &FAMILY_KEYS,
    inner: &[
        ("refuses", &REFUSES_KEYS),
        ("takes", &TAKES_KEYS),
        ("price", &PRICE_KEYS),
    ],
};
/// Facts of an entry.
const REFUSAL: Known = Known::flat("a [[family.refuses]] entry", &REFUSES_KEYS);
/// Facts of an entry.
const TAKEN: Known = Known::flat("a [[family.takes]] entry", &TAKES_KEYS);

/// The families of both layers: those of the repository replace bundled ones of the same name, and
/// follow the others.
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
    let mut known: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    let mut size = 0;
    for entry in reader.tables("family") {
        if size > MAX_SIZE {
            let message = format!(
                "the families before this one have more than {MAX_SIZE} patterns and facts"
            );
            findings.push(
                Diagnostic::new(&rules::INVALID_VALUE, entry.span, message)
                    .help("say the same with fewer"),
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
                let message = format!("the family `{}` is there twice", family.name.value);
                let finding = Diagnostic::new(&rules::REPEATED_FAMILY, family.name.span, message);
                findings.push(
                    finding
                        .related(*first, "first here")
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

    /// Returns `true` if it says something of a model, and not of whatever a server runs.
    pub fn is_about(&self, model: &ModelName) -> bool {
        !self.of_server && self.has(model)
    }

    /// Returns what it says of a property; `None` if nothing.
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
        let mut reader = Reader::new(file, entry.value, findings);
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
        let without_beta = reader.string("without_beta").map(|it| it.value);
        let reasoned_calls = reader.level("reasoned_calls");
        let properties = Property::ALL
            .into_iter()
            .filter_map(|property| Some((property, reader.boolean(property.key())?.value)))
            .collect();
        let cache_minimum = reader.integer("cache_minimum").map(|it| it.value);
        let context_window = reader.integer("context_window").map(|it| it.value);
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
            without_beta,
            origin,
            properties,
            reasoned_calls,
            cache_minimum,
            context_window,
            price,
            facts,
        })
    }
}

impl ModelPattern {
    /// A pattern, or what is wrong with it, and where.
    fn new(text: Spanned<Arc<str>>) -> Result<ModelPattern, (GlobError, Span)> {
        let pattern = name::normal_pattern(&text.value);
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
            begins: pattern[..plain].into(),
            rest,
        })
    }

    /// Returns `true` if a name is like that, without its date or with it.
    pub fn is_match(&self, model: &ModelName) -> bool {
        self.is_like(model.normal()) || model.dated().is_some_and(|name| self.is_like(name))
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
    /// The entries of one key of a family.
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
            reader.report(finding.help("say which values are taken"));
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

impl Demand {
    /// Returns what the keys of an entry ask; `None` if one has a finding.
    fn read(reader: &mut Reader<'_, '_>, known: &[&str]) -> Option<Demand> {
        if known.contains(&"instead") {
            let values = reader.listed_values("values")?;
            return Some(Demand::Absent {
                instead: reader.string("instead").map(|it| it.value),
                values,
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

    /// One pointer, or several.
    fn places(&mut self, key: &str) -> Option<Vec<MemberPath>> {
        let texts = match &self.get(key)?.kind {
            Kind::Array(elements) if elements.len() > MAX_LIST => {
                let span = self.span(self.get(key)?);
                self.too_many(key, "pointers", MAX_LIST, span);
                return None;
            }
            Kind::Array(_) => self.strings(key)?.value,
            _ => vec![self.string(key)?],
        };
        texts
            .into_iter()
            .map(|text| self.pointer(key, &text.value, text.span))
            .collect()
    }

    fn pointer(&mut self, key: &str, text: &str, span: Span) -> Option<MemberPath> {
        if text.len() > 1 && text.starts_with('/') {
            return Some(MemberPath::new(text));
        }
        let message =
            format!("`{key}` names a member by its JSON pointer, and `{text}` is not one");
        self.report(
            Diagnostic::new(&rules::INVALID_VALUE, span, message)
                .help("write it as `/temperature`"),
        );
        None
    }

    /// A table of pointers and what must be there; `None` if it has a finding.
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
                let at = self.pointer(key, &name.name, Span::new(file, name.span.clone()))?;
                let is = match &node.kind {
                    Kind::Boolean(is_there) => State::Present(*is_there),
                    _ => State::OneOf(self.values(&name.name, node)?),
                };
                Some(Condition { at, is })
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

    /// The values of a list that must not be empty; none if the key is absent, `None` if it has a
    /// finding.
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
                    "list what is taken; what is never taken belongs under [[family.refuses]]",
                ),
            );
        }
        !values.is_empty()
    }

    /// A number; `None` if it is not one, `Some(None)` if it is absent.
    #[expect(
        clippy::option_option,
        reason = "wrong, absent and there are three things"
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
