//! Each body against the JSON Schema of its wire format.
//!
//! Schemas are compiled when a format is first used. A violation is told in the words of the alternative that the
//! discriminator picks: `x-reqc-discriminator` in a schema names the member that decides between its branches.

mod explain;
pub(crate) mod rules;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
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
    by_wire: BTreeMap<&'static str, Vec<Schema>>,
    extensions: Vec<Extension>,
    /// Fields that client APIs of one wire format add, by their name.
    client_extensions: BTreeMap<String, Vec<Field>>,
}

/// One schema file; parsed and compiled on first use.
struct Schema {
    text: Arc<SourceText>,
    ready: OnceLock<Option<Ready>>,
}

/// A schema that can be used.
struct Ready {
    document: Value,
    validator: Validator,
}

/// A field that is allowed beside those of the schema: where and how it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    /// The containing object, with `*` for any one token.
    container: Vec<String>,
    name: String,
}

impl Schemas {
    /// Reads the schema files of a repository.
    pub fn new(repo: &Repo) -> (Schemas, Vec<Diagnostic>) {
        let mut findings = Vec::new();
        let mut schemas = Schemas { extensions: repo.config.extensions.clone(), ..Schemas::default() };
        for wire in WireFormat::ALL {
            for source in repo.schemas.get(wire.name()).into_iter().flatten() {
                let schema =
                    Schema { text: Arc::clone(repo.sources.get(source.file).source_text()), ready: OnceLock::new() };
                // The bundled schemas are tested; a repository's own is looked at before anything relies on it.
                let finding = (source.layer == LayerKind::Own).then(|| schema.finding(source.file)).flatten();
                match finding {
                    Some(finding) => findings.push(finding),
                    None => schemas.by_wire.entry(wire.name()).or_default().push(schema),
                }
            }
        }
        for source in repo.schemas.get(EXTENSIONS).into_iter().flatten() {
            if let Some(Value::Object(apis)) = read(repo, source.file, &mut findings) {
                schemas.client_extensions.extend(apis.iter().map(|(api, fields)| (api.clone(), client_fields(fields))));
            }
        }
        (schemas, findings)
    }

    /// What is wrong with a body.
    pub(super) fn check(&self, plan: &Plan<'_>, body: &Body) -> Vec<Problem> {
        let schemas = self.by_wire.get(plan.wire.name()).map_or(&[][..], Vec::as_slice);
        let mut problems = Vec::new();
        for schema in schemas {
            let Some(Ready { document, validator }) = schema.ready() else { continue };
            if !validator.is_valid(body.value()) {
                problems.extend(explain::problems(document, validator, body.value()));
            }
        }
        if !problems.is_empty() {
            let allowed = self.allowed(plan);
            problems.retain(|problem| {
                problem.rule != &rules::UNKNOWN_FIELD || !allowed.iter().any(|field| field.is(&problem.pointer))
            });
            problems.dedup_by(|a, b| a.rule == b.rule && a.pointer == b.pointer);
        }
        problems
    }

    /// The extra fields of a plan's client API and provider instance.
    fn allowed(&self, plan: &Plan<'_>) -> Vec<Field> {
        let api = self.client_extensions.get(plan.api.name()).into_iter().flatten().cloned();
        let instance = self.extensions.iter().filter(|extension| extension.instance == plan.instance.name.value);
        let instance = instance.flat_map(|extension| &extension.fields).map(|field| Field::parse(field));
        api.chain(instance).collect()
    }
}

/// The file beside the schemas that lists fields of client APIs.
const EXTENSIONS: &str = "openai-chat.extensions";

fn client_fields(fields: &Value) -> Vec<Field> {
    let containers = fields.as_object().into_iter().flatten();
    let fields = containers.flat_map(|(container, names)| {
        let names: Vec<&String> = names.as_object().map(|names| names.keys().collect()).unwrap_or_default();
        names
            .into_iter()
            .map(|name| Field::parse(&format!("{}/{name}", container.trim_end_matches('/'))))
            .collect::<Vec<_>>()
    });
    fields.collect()
}

impl Field {
    fn parse(pattern: &str) -> Field {
        let mut tokens: Vec<String> = json::Pointer::parse(pattern).tokens().collect();
        let name = tokens.pop().unwrap_or_default();
        Field { container: tokens, name }
    }

    fn is(&self, pointer: &json::Pointer) -> bool {
        let tokens: Vec<String> = pointer.tokens().collect();
        let Some((name, container)) = tokens.split_last() else { return false };
        let same = |pattern: &String, token: &String| pattern == "*" || pattern == token;
        *name == self.name
            && container.len() == self.container.len()
            && self.container.iter().zip(container).all(|(pattern, token)| same(pattern, token))
    }
}

impl Schema {
    fn ready(&self) -> Option<&Ready> {
        self.ready.get_or_init(|| self.compile().ok()).as_ref()
    }

    /// The schema, or what is wrong with it and where.
    fn compile(&self) -> Result<Ready, (String, Range<usize>)> {
        let text = self.text.as_str();
        let document = json::parse(text)
            .map_err(|error| (format!("this schema is not valid JSON: {}", error.problem.message()), error.range))?;
        let validator = jsonschema::draft202012::options().offline().build(&document);
        let validator = validator.map_err(|error| (format!("this schema cannot be used: {error}"), 0..0))?;
        Ok(Ready { document, validator })
    }

    fn finding(&self, file: FileId) -> Option<Diagnostic> {
        let (message, range) = self.compile().err()?;
        Some(Diagnostic::new(&rules::BAD_SCHEMA, Span::new(file, range), message))
    }
}

fn read(repo: &Repo, file: FileId, findings: &mut Vec<Diagnostic>) -> Option<Value> {
    match json::parse(repo.sources.get(file).text()) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("this schema is not valid JSON: {}", error.problem.message());
            findings.push(Diagnostic::new(&rules::BAD_SCHEMA, Span::new(file, error.range), message));
            None
        }
    }
}
