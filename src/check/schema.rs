//! Each body against the JSON Schema of its wire format.
//!
//! Schemas are parsed and compiled when a format is first used, once per set of extensions. A violation is told in the words
//! of the alternative that the discriminator picks: `x-reqc-discriminator` in a schema names the member that decides.

mod explain;
mod extend;
pub(crate) mod rules;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Problem;
use crate::diag::Diagnostic;
use crate::json;
use crate::provider::WireFormat;
use crate::repo::{Extension, LayerKind, Repo};
use crate::source::{FileId, SourceText, Span};
use crate::unit::Plan;

/// The schemas of all wire formats, of both layers.
#[derive(Default)]
pub struct Schemas {
    /// The schema files by wire format, and the extension files by `<format>.extensions`.
    files: BTreeMap<Arc<str>, Vec<Arc<SourceText>>>,
    /// Fields that `reqc.toml` allows.
    extensions: Vec<Extension>,
    compiled: Mutex<HashMap<Variant, Slot>>,
}

/// A wire format and the names that its extensions are listed under.
type Variant = (WireFormat, Vec<String>);
/// Where compiled schemas are kept.
type Slot = Arc<OnceLock<Arc<[Schema]>>>;

/// A schema that can be used.
struct Schema {
    document: Value,
    validator: Validator,
}

/// What the bodies of one agent are checked against.
pub struct AgentSchemas {
    all: Arc<Schemas>,
    wire: WireFormat,
    /// Without extensions.
    plain: Arc<[Schema]>,
    /// The names that extensions may be listed under.
    names: Option<Vec<String>>,
    allowed: Vec<Field>,
}

impl Schemas {
    /// Takes the schema files of a repository; its own are compiled at once, so that mistakes in them are told.
    pub fn new(repo: &Repo) -> (Schemas, Vec<Diagnostic>) {
        let mut findings = Vec::new();
        let mut schemas = Schemas { extensions: repo.config.extensions.clone(), ..Schemas::default() };
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
        let own = self.extensions.iter().filter(|extension| extension.instance == plan.instance.name.value);
        let allowed = own.flat_map(|extension| &extension.fields).map(|field| Field::parse(field)).collect();
        let names = [plan.instance.name.value.to_string(), plan.api.name().to_owned()];
        let is_extended = self.files.contains_key(extension_file(plan.wire).as_str());
        AgentSchemas {
            all: Arc::clone(self),
            wire: plan.wire,
            plain: self.compiled(plan.wire, &[]),
            names: is_extended.then(|| names.to_vec()),
            allowed,
        }
    }

    /// The schemas of a format with the extensions that are listed under some names; compiled once, by whoever comes first.
    fn compiled(&self, wire: WireFormat, names: &[String]) -> Arc<[Schema]> {
        let slot = {
            let mut slots = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((wire, names.to_vec())).or_default())
        };
        Arc::clone(slot.get_or_init(|| self.compile(wire, names)))
    }

    fn compile(&self, wire: WireFormat, names: &[String]) -> Arc<[Schema]> {
        let files = |name: &str| self.files.get(name).into_iter().flatten();
        let extensions = files(&extension_file(wire)).filter(|_| !names.is_empty());
        let extensions: Vec<Value> = extensions.filter_map(|text| json::parse(text.as_str()).ok()).collect();
        let schema = |text: &Arc<SourceText>| {
            let mut document = json::parse(text.as_str()).ok()?;
            extensions.iter().for_each(|extensions| extend::extend(&mut document, extensions, names));
            let validator = validator(&document).ok()?;
            Some(Schema { document, validator })
        };
        files(wire.name()).filter_map(schema).collect()
    }
}

/// The name of the file that lists extensions of a format.
fn extension_file(wire: WireFormat) -> String {
    format!("{}.extensions", wire.name())
}

impl AgentSchemas {
    /// The schemas, with their extensions written into them.
    pub fn documents(&self) -> Vec<Value> {
        self.extended().iter().map(|schema| schema.document.clone()).collect()
    }

    fn extended(&self) -> Arc<[Schema]> {
        match &self.names {
            Some(names) => self.all.compiled(self.wire, names),
            None => Arc::clone(&self.plain),
        }
    }

    /// What is wrong with a body, in the order of the schema. Extensions only add to what is taken: a body that the plain
    /// schema accepts needs no look at them.
    pub fn problems(&self, body: &Value) -> Vec<Problem> {
        if is_valid(&self.plain, body) {
            return Vec::new();
        }
        let mut problems = Vec::new();
        for schema in self.extended().iter().filter(|schema| !schema.validator.is_valid(body)) {
            problems.extend(explain::problems(&schema.document, &schema.validator, body));
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

fn is_valid(schemas: &[Schema], body: &Value) -> bool {
    schemas.iter().all(|schema| schema.validator.is_valid(body))
}

/// The validator of a schema, or why there is none.
fn validator(document: &Value) -> Result<Validator, ValidationError<'_>> {
    jsonschema::draft202012::options().offline().build(document)
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
            let error = validator(&document).err()?;
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
