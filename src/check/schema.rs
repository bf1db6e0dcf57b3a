//! Each body against the JSON Schema of its wire format.
//!
//! Schemas are parsed when a format is first used, once per set of extensions, and compiled as far as bodies need them. A
//! violation is told in the words of the alternative that the discriminator picks: `x-reqc-discriminator` in a schema names
//! the member that decides.

mod document;
mod elements;
mod explain;
mod extend;
mod patterns;
pub(crate) mod rules;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use document::{Document, Subject};
use patterns::Patterns;
use serde_json::Value;

use super::Problem;
use crate::diag::Diagnostic;
use crate::json;
use crate::provider::WireFormat;
use crate::repo::{Extension, LayerKind, Repo};
use crate::source::{FileId, SourceText, Span};
use crate::unit::{Body, Plan};

/// The schemas of all wire formats, of both layers.
#[derive(Default)]
pub struct Schemas {
    /// The schema files by wire format, and the extension files by `<format>.extensions`.
    files: BTreeMap<Arc<str>, Vec<Arc<SourceText>>>,
    /// Fields that `reqc.toml` allows.
    allowed: Vec<Extension>,
    parsed: Mutex<HashMap<Variant, Slot>>,
    /// The parsed extension files.
    extensions: Mutex<HashMap<WireFormat, Arc<[Value]>>>,
    patterns: Arc<Patterns>,
}

/// A wire format and the names that its extensions are listed under.
type Variant = (WireFormat, Vec<String>);
/// Where parsed schemas are kept.
type Slot = Arc<OnceLock<Arc<[Document]>>>;

/// What the bodies of one agent are checked against.
pub struct AgentSchemas {
    all: Arc<Schemas>,
    wire: WireFormat,
    /// Without extensions.
    plain: Arc<[Document]>,
    /// The names that extensions may be listed under.
    names: Option<Vec<String>>,
    allowed: Vec<Field>,
}

impl Schemas {
    /// Takes the schema files of a repository; its own are compiled at once, so that mistakes in them are told.
    pub fn new(repo: &Repo) -> (Schemas, Vec<Diagnostic>) {
        let mut findings = Vec::new();
        let mut schemas = Schemas { allowed: repo.config.extensions.clone(), ..Schemas::default() };
        for (name, sources) in &repo.schemas {
            for source in sources {
                let text = repo.sources.get(source.file).source_text();
                let unusable = (source.layer == LayerKind::Own).then(|| unusable(source.file, name, text)).flatten();
                match unusable {
                    Some(finding) => findings.push(finding),
                    None => schemas.files.entry(Arc::clone(name)).or_default().push(Arc::clone(text)),
                }
            }
        }
        (schemas, findings)
    }

    /// What the bodies of a plan are checked against: the schemas of its wire format, with the extensions of its provider
    /// instance and client API.
    pub fn of(self: &Arc<Schemas>, plan: &Plan<'_>) -> AgentSchemas {
        let own = self.allowed.iter().filter(|extension| extension.instance == plan.instance.name.value);
        let allowed = own.flat_map(|extension| &extension.fields).map(|field| Field::parse(field)).collect();
        let names = [plan.instance.name.value.to_string(), plan.api.name().to_owned()];
        let is_extended = self.files.contains_key(extension_file(plan.wire).as_str());
        AgentSchemas {
            all: Arc::clone(self),
            wire: plan.wire,
            plain: self.parsed(plan.wire, &[]),
            names: is_extended.then(|| names.to_vec()),
            allowed,
        }
    }

    /// The schemas of a format with the extensions that are listed under some names; made once, by whoever comes first.
    fn parsed(&self, wire: WireFormat, names: &[String]) -> Arc<[Document]> {
        let slot = {
            let mut slots = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((wire, names.to_vec())).or_default())
        };
        let make = || if names.is_empty() { self.parse(wire) } else { self.extend(wire, names) };
        Arc::clone(slot.get_or_init(make))
    }

    fn parse(&self, wire: WireFormat) -> Arc<[Document]> {
        self.documents(wire.name()).map(|document| Document::new(document, &self.patterns)).collect()
    }

    fn extend(&self, wire: WireFormat, names: &[String]) -> Arc<[Document]> {
        let extensions = self.extensions(wire);
        let extended = |plain: &Document| {
            let mut document = plain.value().clone();
            extensions.iter().for_each(|extensions| extend::extend(&mut document, extensions, names));
            Document::new(document, &self.patterns)
        };
        self.parsed(wire, &[]).iter().map(extended).collect()
    }

    fn extensions(&self, wire: WireFormat) -> Arc<[Value]> {
        let mut extensions = self.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(extensions.entry(wire).or_insert_with(|| self.documents(&extension_file(wire)).collect()))
    }

    fn documents(&self, name: &str) -> impl Iterator<Item = Value> {
        let files = self.files.get(name).into_iter().flatten();
        files.filter_map(|text| json::parse(text.as_str()).ok())
    }
}

/// The name of the file that lists extensions of a format.
fn extension_file(wire: WireFormat) -> String {
    format!("{}.extensions", wire.name())
}

impl AgentSchemas {
    /// The schemas, with their extensions written into them.
    pub fn documents(&self) -> Vec<Value> {
        self.extended().iter().map(|document| document.value().clone()).collect()
    }

    fn extended(&self) -> Arc<[Document]> {
        let Some(names) = &self.names else { return Arc::clone(&self.plain) };
        let extensions = self.all.extensions(self.wire);
        let is_listed = |name: &&String| extensions.iter().any(|listed| listed.get(name.as_str()).is_some());
        let listed: Vec<String> = names.iter().filter(is_listed).cloned().collect();
        self.all.parsed(self.wire, &listed)
    }

    /// What is wrong with a body, in the order of the schema.
    pub fn problems(&self, body: &Value) -> Vec<Problem> {
        self.problems_of(Subject::Value(body))
    }

    /// As [`AgentSchemas::problems`], without another look at values that other bodies hold too.
    pub(super) fn problems_of_body(&self, body: &Body) -> Vec<Problem> {
        self.problems_of(Subject::Body(body))
    }

    /// Extensions only add to what is taken: what the plain schema accepts needs no look at them.
    fn problems_of(&self, subject: Subject<'_>) -> Vec<Problem> {
        if self.plain.iter().all(|document| document.accepts(subject, None)) {
            return Vec::new();
        }
        let mut problems = Vec::new();
        for (document, plain) in self.extended().iter().zip(self.plain.iter()) {
            if !document.accepts(subject, Some(plain)) {
                problems.extend(document.problems(subject));
            }
        }
        problems.retain(|problem| !self.allows(problem));
        let told: Vec<bool> = problems.iter().map(|problem| explain::is_told_at_key(problem, &problems)).collect();
        let mut told = told.into_iter();
        problems.retain(|_| told.next() != Some(true));
        problems.dedup_by(|next, kept| explain::absorb(kept, next));
        problems
    }

    fn allows(&self, problem: &Problem) -> bool {
        problem.rule == &rules::UNKNOWN_FIELD && self.allowed.iter().any(|field| field.is(&problem.pointer))
    }
}

/// A field that `reqc.toml` allows: a JSON pointer in which `*` stands for any one token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    tokens: Vec<String>,
}

impl Field {
    fn parse(pattern: &str) -> Field {
        Field { tokens: json::Pointer::parse(pattern).tokens().collect() }
    }

    fn is(&self, pointer: &json::Pointer) -> bool {
        let tokens: Vec<String> = pointer.tokens().collect();
        let same = |(pattern, token): (&String, &String)| pattern == "*" || pattern == token;
        tokens.len() == self.tokens.len() && self.tokens.iter().zip(&tokens).all(same)
    }
}

/// What is wrong with a repository's own schema file.
fn unusable(file: FileId, name: &str, text: &SourceText) -> Option<Diagnostic> {
    let finding =
        |message: String, range: Range<usize>| Diagnostic::new(&rules::BAD_SCHEMA, Span::new(file, range), message);
    let wire = name.trim_end_matches(".extensions");
    if !WireFormat::ALL.iter().any(|known| known.name() == wire) {
        let known = WireFormat::ALL.map(WireFormat::name).join(", ");
        return Some(finding(format!("`{wire}` is no wire format"), 0..0).help(format!("known are: {known}")));
    }
    match json::parse(text.as_str()) {
        Ok(document) => {
            let error = document::compile(&document).err()?;
            let at = json::Pointer::parse(error.instance_path().as_str());
            let tree = json::parse_tree(text.as_str()).ok();
            let place = tree.as_ref().and_then(|tree| tree.locate(&at)).filter(|_| at.parent().is_some());
            let message = match at.parent() {
                Some(_) => format!("no JSON Schema has such a value at `{at}`"),
                None => "this schema cannot be used".to_owned(),
            };
            Some(finding(message, place.map_or(0..0, |tree| tree.span.clone())).help(error.to_string()))
        }
        Err(error) => Some(finding(format!("this schema is not valid JSON: {}", error.problem.message()), error.range)),
    }
}
