//! Each body against the JSON Schema of its wire format.
//!
//! The bundled schemas are compiled with the program; those of a repository when a format is first used, once per set of
//! extensions. A violation is told in the words of the alternative that the discriminator picks: `x-reqc-discriminator` in a schema names
//! the member that decides.

mod bundled;
mod document;
mod explain;
mod extend;
mod node;
pub(crate) mod rules;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use document::{Document, Extensions, Subject};
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
    /// The schema files by wire format.
    files: BTreeMap<Arc<str>, Vec<Arc<SourceText>>>,
    /// Fields that `reqc.toml` allows.
    allowed: Vec<Extension>,
    documents: Mutex<HashMap<Variant, Arc<[Document]>>>,
    /// The extension files by wire format.
    extensions: BTreeMap<Arc<str>, Vec<Arc<Extensions>>>,
}

/// How the name of a file of extensions ends.
const EXTENSIONS: &str = ".extensions";

/// A wire format and the names that its extensions are listed under.
type Variant = (WireFormat, Vec<String>);

/// What the bodies of one agent are checked against.
pub struct AgentSchemas {
    documents: Arc<[Document]>,
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
                match (unusable, name.strip_suffix(EXTENSIONS)) {
                    (Some(finding), _) => findings.push(finding),
                    (None, Some(format)) => {
                        schemas.extensions.entry(format.into()).or_default().push(Arc::new(Extensions::new(text)));
                    }
                    (None, None) => schemas.files.entry(Arc::clone(name)).or_default().push(Arc::clone(text)),
                }
            }
        }
        (schemas, findings)
    }

    /// What the bodies of a plan are checked against: the schemas of its wire format, with the extensions of its provider
    /// instance and client API.
    pub fn of(&self, plan: &Plan<'_>) -> AgentSchemas {
        let own = self.allowed.iter().filter(|extension| extension.instance == plan.instance.name.value);
        let allowed = own.flat_map(|extension| &extension.fields).map(|field| Field::parse(field)).collect();
        let extensions = self.extensions.get(plan.wire.name()).map(Vec::as_slice).unwrap_or_default();
        let names = [&*plan.instance.name.value, plan.api.name()].into_iter();
        let listed = names.filter(|name| extensions.iter().any(|file| file.list(name)));
        let mut names: Vec<String> = listed.map(str::to_owned).collect();
        names.dedup();
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let documents = documents.entry((plan.wire, names)).or_insert_with_key(|(wire, names)| {
            let files = self.files.get(wire.name()).into_iter().flatten();
            files.map(|text| Document::new(text, extensions, names)).collect()
        });
        AgentSchemas { documents: Arc::clone(documents), allowed }
    }
}

impl AgentSchemas {
    /// The schemas, with their extensions written into them.
    pub fn documents(&self) -> impl Iterator<Item = &Value> {
        self.documents.iter().map(Document::value)
    }

    /// What is wrong with a body, in the order of the schema.
    pub fn problems(&self, body: &Value) -> Vec<Problem> {
        self.problems_of(Subject::Value(body))
    }

    /// As [`AgentSchemas::problems`], without another look at values that other bodies hold too.
    pub(super) fn problems_of_body(&self, body: &Body) -> Vec<Problem> {
        self.problems_of(Subject::Body(body))
    }

    fn problems_of(&self, subject: Subject<'_>) -> Vec<Problem> {
        let broken = self.documents.iter().filter(|document| !document.accepts(subject));
        let mut problems: Vec<Problem> = broken.flat_map(|document| document.problems(subject)).collect();
        if problems.is_empty() {
            return problems;
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
    let wire = name.trim_end_matches(EXTENSIONS);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Compiler, Selection};
    use crate::repo::LoadOptions;
    use crate::system::{Disk, Embedded};

    /// Bodies of bundled agents are checked by what was compiled with the program: no schema is even parsed.
    #[test]
    fn bundled_schemas_come_with_their_validators() {
        let root = Disk::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
        let compiler = Compiler::load(Arc::new(root), Arc::new(Embedded::bundled()), LoadOptions::default());
        let (schemas, _) = Schemas::new(compiler.repo());
        let run = compiler.run(&Selection::default(), |agent| {
            let schemas = schemas.of(&agent.plan);
            assert_eq!(schemas.documents.len(), 1);
            assert!(schemas.documents.iter().all(Document::is_bundled), "{}", agent.plan.name());
        });
        assert!(!run.results.is_empty());
    }
}
