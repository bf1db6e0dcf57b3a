//! Validates each body against the JSON Schema of its wire format.
//!
//! The bundled schemas are compiled together with the program. A repository's schemas are compiled
//! when a format is first used, once for each set of extensions. If a schema has alternatives, a
//! violation is explained by the alternative that the discriminator selects. The discriminator is a
//! member of the value; `x-reqc-discriminator` in the schema specifies its name.

mod bundled;
mod node;
mod fields;
mod extend;
mod refusal;
mod pattern;
mod graph;
mod cost;
mod validator;
pub(crate) mod rules;
mod mistake;
mod allowed;
pub(crate) mod spelling;
mod words;
mod unknown;
mod explain;
mod elements;
mod document;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use allowed::Allowed;
use bundled::Bundled;
use document::{Document, Extensions, Input, SchemaFile, Unusable, check_extensions};
use refusal::Refusal;
use serde_json::Value;

use explain::MAX_PROBLEMS;
pub(crate) use mistake::Proposal;
use mistake::{Hint, Mistake, What};

use super::Problem;
use crate::diag::Diagnostic;
use crate::json;
use crate::memory::{Identity, Memory, Question};
use crate::provider::{ApiHeaders, ClientApi, Server, WireFormat};
use crate::repo::{Instance, LayerKind, Repo};
use crate::source::{FileId, SourceText, Span};
use crate::unit::Body;

/// The schemas of all wire formats: the bundled ones and the repository's.
#[derive(Default)]
pub struct Schemas {
    /// The schema files by wire format.
    files: BTreeMap<Arc<str>, Vec<SchemaFile>>,
    /// The exceptions in `reqc.toml`.
    allowed: Vec<Arc<Allowed>>,
    memory: Arc<Memory>,
    /// Identifies these schemas in [`Question`]s.
    id: Identity,
    /// The extension files by wire format.
    extensions: BTreeMap<Arc<str>, Vec<Arc<Extensions>>>,
}

/// A foreign schema, for which the cost of validation can be measured in advance.
#[cfg(feature = "runtime")]
pub(crate) struct Measured(graph::Graph);

#[cfg(feature = "runtime")]
impl Measured {
    /// Measures a schema; returns `None` if its cost is unbounded or cannot be predicted.
    pub(crate) fn of(schema: &Value) -> Option<Measured> {
        graph::Graph::of(schema).ok().map(Measured)
    }

    /// Returns `true` if validating a value takes little work.
    pub(crate) fn is_cheap(&self, value: &Value) -> bool {
        cost::cost(&self.0, value).is_some_and(|cost| cost <= document::MAX_COST_EXPLAINED)
    }
}

/// Returns `true` if the text of a schema or extension file equals the text built into the program.
pub(crate) fn is_built_in(text: &str) -> bool {
    Bundled::format_of_schema(text).is_some() || Bundled::format_of_extensions(text).is_some()
}

/// The end of an extension file's name, before `.json`.
const EXTENSIONS: &str = ".extensions";

/// The maximum size of a repository's schema file, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The [`Question`] of which schemas a wire format has, including the extension entries under given
/// names.
#[derive(PartialEq, Eq, Hash)]
struct DocumentsOf {
    schemas: Identity,
    wire: WireFormat,
    names: Vec<String>,
}

impl Question for DocumentsOf {
    type Answer = Documents;

    fn weight(&self, documents: &Documents) -> usize {
        256 + documents
            .all
            .iter()
            .flatten()
            .map(Document::weight)
            .sum::<usize>()
    }
}

/// The schemas of a wire format, including unusable ones.
#[derive(Clone)]
struct Documents {
    /// The names of the wire format and its extensions. This text identifies the schemas, for
    /// example in messages.
    name: Arc<str>,
    all: Arc<[Result<Document, Unusable>]>,
}

/// The schemas that the bodies of one agent are checked against.
pub struct AgentSchemas {
    documents: Documents,
    allowed: Vec<Arc<Allowed>>,
    ignored: Ignored,
}

/// The unknown fields that a server ignores, with the server's name.
#[derive(Clone, Copy)]
enum Ignored {
    None,
    /// At most fields in messages, for the models that ignore them, and in the tools of a Chat
    /// Completions request.
    InElements(Server),
    All(&'static str),
}

impl Ignored {
    /// Returns the server's name, if it ignores this field in a body.
    fn by(self, at: &json::Pointer, body: &Value) -> Option<&'static str> {
        match self {
            Ignored::None => None,
            Ignored::InElements(server) => {
                let model = body.get("model").and_then(Value::as_str);
                let is_ignored = is_of_message(at) && server.ignores_fields_of_messages(model)
                    || server.ignores_fields_of_tools()
                        && body.get("messages").is_some()
                        && is_of_tool(at);
                is_ignored.then(|| server.name())
            }
            Ignored::All(server) => Some(server),
        }
    }
}

/// Returns `true` if a field belongs to a message, but not to its content: it is not known whether
/// fields in parts of the content are ignored, too.
fn is_of_message(at: &json::Pointer) -> bool {
    let tokens: Vec<String> = at.tokens().take(3).collect();
    matches!(tokens.as_slice(), [first, _, field] if first == "messages" && field != "content")
}

/// Returns `true` if a field belongs to a tool or its function, but not to the schema of its
/// arguments.
fn is_of_tool(at: &json::Pointer) -> bool {
    let tokens: Vec<String> = at.tokens().take(5).collect();
    match tokens.as_slice() {
        [first, _, _] => first == "tools",
        [first, _, function, _] => first == "tools" && function == "function",
        _ => false,
    }
}

impl Schemas {
    /// Collects the schema files of a repository. The repository's own files are compiled
    /// immediately, so that mistakes in them are reported.
    pub fn new(repo: &Repo, memory: &Arc<Memory>) -> (Schemas, Vec<Diagnostic>) {
        let mut findings = Vec::new();
        let entries = repo.config.extensions.iter();
        let known = entries.filter(|entry| repo.instances.contains_key(&entry.instance));
        let allowed = known.map(|entry| Arc::new(Allowed::new(entry))).collect();
        let mut schemas = Schemas {
            allowed,
            memory: Arc::clone(memory),
            ..Schemas::default()
        };
        let mut own: Vec<(WireFormat, Arc<Extensions>)> = Vec::new();
        for (name, sources) in &repo.schemas {
            for source in sources {
                let text = repo.sources.get(source.file).source_text();
                let is_own = source.layer == LayerKind::Own;
                let is_built_in = repo.has_built_in_layer && !is_own;
                match (
                    is_own.then(|| usable(source.file, name, text)).transpose(),
                    name.strip_suffix(EXTENSIONS),
                ) {
                    (Err(finding), _) => findings.push(*finding),
                    (Ok(wire), Some(format)) => {
                        let file = Arc::new(Extensions::new(
                            source.file,
                            text,
                            is_built_in.then_some(format),
                        ));
                        own.extend(wire.map(|wire| (wire, Arc::clone(&file))));
                        schemas
                            .extensions
                            .entry(format.into())
                            .or_default()
                            .push(file);
                    }
                    (Ok(_), None) => {
                        schemas
                            .files
                            .entry(Arc::clone(name))
                            .or_default()
                            .push(SchemaFile::new(
                                source.file,
                                text,
                                is_built_in.then_some(name),
                            ));
                    }
                }
            }
        }
        for (wire, extensions) in own {
            findings.extend(schemas.unusable_extensions(wire, &extensions));
        }
        (schemas, findings)
    }

    /// Returns the findings about a repository's own extensions: each name must produce a valid
    /// schema, whether or not an agent uses it.
    fn unusable_extensions(&self, wire: WireFormat, extensions: &Extensions) -> Vec<Diagnostic> {
        let variants = extensions
            .names()
            .map(|name| self.variant(wire, std::slice::from_ref(name)));
        let unusable = variants.flat_map(|documents| {
            let unusable = documents
                .all
                .iter()
                .filter_map(|document| document.as_ref().err().cloned());
            unusable.collect::<Vec<_>>()
        });
        unusable
            .map(|unusable| finding(unusable.refusal, unusable.place))
            .collect()
    }

    /// Returns the schemas for the bodies of a wire format, with the extensions of the provider
    /// instance, its ancestors, its client API, the sites in its URL, and its server.
    pub fn of(&self, wire: WireFormat, instance: Option<(&Instance, ClientApi)>) -> AgentSchemas {
        let server = instance.map(|(instance, api)| Server::of(instance, api));
        let headers = instance.map(|(instance, api)| api.api_headers(instance, []));
        self.for_server(wire, server, instance, &headers.unwrap_or_default())
    }

    /// Returns the same schemas as [`Schemas::of`], but for a given server; there may be no
    /// instance.
    pub(super) fn for_server(
        &self,
        wire: WireFormat,
        server: Option<Server>,
        instance: Option<(&Instance, ClientApi)>,
        headers: &ApiHeaders,
    ) -> AgentSchemas {
        let name = instance.map(|(instance, _)| &*instance.name.value);
        let own = self
            .allowed
            .iter()
            .filter(|entry| instance.is_some_and(|(instance, _)| entry.is_for(instance)));
        let allowed = own.cloned().collect();
        let extensions = self.extensions_of(wire);
        // Specific extensions come last and override general ones.
        let of_server: Option<&str> = server.map(Server::extensions);
        let general = of_server
            .into_iter()
            .chain(headers.sites.iter().map(|site| site.name()))
            .chain(instance.map(|(_, api)| api.name()));
        let bases = instance
            .iter()
            .flat_map(|(instance, _)| instance.bases.iter().rev())
            .map(AsRef::as_ref);
        let mut names: Vec<String> = Vec::new();
        for listed in general
            .chain(bases)
            .chain(name)
            .filter(|name| extensions.iter().any(|file| file.list(name)))
        {
            if !names.iter().any(|known| known == listed) {
                names.push(listed.to_owned());
            }
        }
        AgentSchemas {
            documents: self.variant(wire, &names),
            allowed,
            ignored: Ignored::None,
        }
    }

    /// Returns the locations of `[[extension]]` entries that never allowed anything.
    pub(crate) fn unused(&self) -> impl Iterator<Item = Span> {
        self.allowed.iter().filter_map(|entry| entry.unused())
    }

    fn extensions_of(&self, wire: WireFormat) -> &[Arc<Extensions>] {
        self.extensions
            .get(wire.name())
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns the cache that these schemas share with the rest of the repository.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the identity of these schemas in [`Question`]s.
    pub(super) fn id(&self) -> Identity {
        self.id
    }

    fn variant(&self, wire: WireFormat, names: &[String]) -> Documents {
        let asked = DocumentsOf {
            schemas: self.id,
            wire,
            names: names.to_vec(),
        };
        self.memory.ask(asked, || self.compiled(wire, names))
    }

    fn compiled(&self, wire: WireFormat, names: &[String]) -> Documents {
        let name = format!("{} {}", wire.name(), names.join(" ")).into();
        let files = self.files.get(wire.name()).into_iter().flatten();
        let (extensions, memory) = (self.extensions_of(wire), Arc::downgrade(&self.memory));
        Documents {
            name,
            all: files
                .map(|schema| Document::new(wire, schema, extensions, names, &memory))
                .collect(),
        }
    }
}

/// A function that tests whether the model accepts a proposal.
pub(super) type IsTaken<'t> = &'t dyn Fn(&Proposal<'_>) -> bool;

/// The verdict of schemas on a body.
#[derive(Default)]
pub(super) struct Verdict {
    /// The problems, in schema order, at locations in the original body.
    pub(super) problems: Vec<Problem>,
    /// The body in the spelling of its schema, if that differs from the original.
    pub(super) respelt: Option<Value>,
}

impl AgentSchemas {
    /// Adapts the schemas to a destination: if the server ignores unknown fields, they only cause
    /// warnings. Violations of a repository's own schema remain errors.
    #[must_use]
    pub(super) fn at(mut self, server: Server, headers: &ApiHeaders) -> AgentSchemas {
        let mut sites = headers.sites.iter();
        let refuses = !headers.allows_unknown_fields
            && (server.refuses_unknown_fields() || sites.any(|site| site.refuses_unknown_fields()));
        self.ignored = match refuses {
            true => Ignored::InElements(server),
            false => Ignored::All(server.name()),
        };
        self
    }

    /// Returns the usable schemas, with their extensions applied.
    pub fn documents(&self) -> impl Iterator<Item = &Value> {
        self.documents
            .all
            .iter()
            .filter_map(|document| document.as_ref().ok())
            .map(Document::value)
    }

    /// Returns the problems in a body, in schema order. An unusable schema is a problem in every
    /// body.
    pub fn problems(&self, body: &Value) -> Vec<Problem> {
        self.ask(body, &|_| true).problems
    }

    /// Returns the problems, as [`AgentSchemas::problems`] does, and the body in the spelling of
    /// its schema. Advice contains only proposals that `is_taken` accepts.
    pub(super) fn ask(&self, body: &Value, is_taken: IsTaken<'_>) -> Verdict {
        self.verdict_on(Input::Value(body), is_taken)
    }

    /// Returns the same verdict as [`AgentSchemas::ask`], but checks a value only once if several
    /// bodies share it.
    pub(super) fn ask_of_body(&self, body: &Body, is_taken: IsTaken<'_>) -> Verdict {
        self.verdict_on(Input::Body(body), is_taken)
    }

    fn verdict_on(&self, subject: Input<'_>, is_taken: IsTaken<'_>) -> Verdict {
        let mut mistakes = self.mistakes(subject);
        if mistakes.is_empty() {
            return Verdict::default();
        }
        // The schema has one spelling of each name. A body with the other spelling fails at first,
        // and is checked again after conversion.
        let respelt = self
            .documents()
            .find_map(|schema| spelling::respelt(schema, || subject.value()));
        let respelt = respelt.or_else(|| self.without_nulls(subject.value(), &mistakes));
        if let Some(respelt) = &respelt {
            mistakes = self.mistakes(Input::Respelt {
                value: respelt,
                original: subject.value(),
            });
        }
        Verdict {
            problems: self.told(mistakes, subject, is_taken),
            respelt,
        }
    }

    /// Returns the body without the `null` values that are mistakes, for a server that treats
    /// `null` as absent.
    fn without_nulls(&self, body: &Value, mistakes: &[Mistake]) -> Option<Value> {
        if !matches!(self.ignored, Ignored::All(_)) {
            return None;
        }
        spelling::without_nulls(
            body,
            mistakes
                .iter()
                .filter(|mistake| matches!(mistake.what, What::Unfit { found: "null", .. }))
                .map(|mistake| &mistake.pointer),
        )
    }

    fn told(
        &self,
        mut mistakes: Vec<Mistake>,
        subject: Input<'_>,
        is_taken: IsTaken<'_>,
    ) -> Vec<Problem> {
        // A server that ignores unknown fields loses nothing if those fields are `null`.
        mistakes.retain(|mistake| {
            let value = || subject.value().pointer(mistake.pointer.as_str());
            mistake.passed_over_by.is_none() || value() != Some(&Value::Null)
        });
        mistakes.retain_mut(|mistake| {
            !self
                .allowed
                .iter()
                .any(|entry| entry.lets_pass(mistake, subject.value()))
        });
        mistake::drop_misspelt(&mut mistakes);
        mistakes.dedup_by(|next, kept| mistake::absorb(kept, next));
        cut(&mut mistakes);
        mistakes
            .into_iter()
            .map(|mistake| mistake.proposing(is_taken).told(&self.documents.name))
            .collect()
    }

    fn mistakes(&self, subject: Input<'_>) -> Vec<Mistake> {
        let mut mistakes: Vec<Mistake> = Vec::new();
        for document in self.documents.all.iter() {
            match document {
                Err(unusable) => mistakes.push(unusable.mistake()),
                Ok(document) => {
                    mistakes.extend(document.mistakes(subject).into_iter().map(|mistake| {
                        match unknown(&mistake) {
                            _ if !document.is_of_format() => mistake.in_own_words(),
                            true => Mistake {
                                passed_over_by: self.ignored.by(&mistake.pointer, subject.value()),
                                ..mistake
                            },
                            false => mistake,
                        }
                    }));
                }
            }
        }
        mistakes
    }
}

fn unknown(mistake: &Mistake) -> bool {
    mistake.rule == &rules::UNKNOWN_FIELD
}

/// Keeps only the first mistakes, and adds a notice if there are more.
fn cut(mistakes: &mut Vec<Mistake>) {
    if mistakes.len() <= MAX_PROBLEMS {
        return;
    }
    mistakes.truncate(MAX_PROBLEMS);
    let message =
        format!("this body has more than {MAX_PROBLEMS} problems: the rest are not shown");
    let help = "fix the ones shown: they often have a common cause".to_owned();
    mistakes.push(Mistake::value(
        json::Pointer::root(),
        message,
        Hint::Other(help),
    ));
}

impl Unusable {
    fn mistake(&self) -> Mistake {
        Mistake {
            rule: &rules::BAD_SCHEMA,
            pointer: json::Pointer::root(),
            what: What::Other(self.refusal.message.clone()),
            hint: self.refusal.help.clone().into(),
            passed_over_by: None,
            asks: None,
            place: Some(self.place),
        }
    }
}

/// Returns the wire format of a repository's own schema file.
///
/// # Errors
///
/// Returns a finding if the file is not usable.
fn usable(file: FileId, name: &str, text: &SourceText) -> Result<WireFormat, Box<Diagnostic>> {
    let at = |message: String, range: Range<usize>, help: Option<String>| {
        Box::new(finding(
            Refusal {
                at: String::new(),
                message,
                help,
            },
            Span::new(file, range),
        ))
    };
    let format = name.strip_suffix(EXTENSIONS);
    let wire = format.unwrap_or(name);
    let Some(known) = WireFormat::ALL
        .into_iter()
        .find(|known| known.name() == wire)
    else {
        let known = WireFormat::ALL.map(WireFormat::name).join(", ");
        let message = format!(
            "`{}` is not a wire format",
            crate::text::cut(wire, graph::QUOTED)
        );
        return Err(at(message, 0..0, Some(format!("wire formats: {known}"))));
    };
    if text.as_str().len() > MAX_BYTES {
        let help = "keep only what the wire format needs".to_owned();
        return Err(at(
            "a schema can be at most 1 MiB in size".to_owned(),
            0..0,
            Some(help),
        ));
    }
    let value = json::parse(text.as_str()).map_err(|error| {
        at(
            format!("this schema is not valid JSON: {}", error.problem.message()),
            error.range,
            None,
        )
    })?;
    let checked = match format {
        Some(_) => check_extensions(&value),
        None => {
            document::Compiled::new(value, &Arc::default()).and_then(|compiled| compiled.checked())
        }
    };
    checked.map_err(|refusal| {
        let tree = Some(&refusal.at)
            .filter(|at| !at.is_empty())
            .and_then(|_| json::parse_tree(text.as_str()).ok());
        let place = tree
            .as_ref()
            .and_then(|tree| tree.locate(&json::Pointer::parse(&refusal.at)));
        let span = Span::new(file, place.map_or(0..0, |tree| tree.span.clone()));
        Box::new(finding(refusal, span))
    })?;
    Ok(known)
}

fn finding(refusal: Refusal, place: Span) -> Diagnostic {
    Diagnostic::new(&rules::BAD_SCHEMA, place, refusal.message).maybe_help(refusal.help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Compiler, Selection};
    use crate::repo::LoadOptions;
    use crate::system::{Disk, Embedded};

    /// Bodies of bundled agents are checked by validators that were compiled with the program;
    /// their schemas are not even parsed.
    #[test]
    fn bundled_schemas_come_with_their_validators() {
        let root =
            Disk::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
        let compiler = Compiler::load(
            Arc::new(root),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let (schemas, _) = Schemas::new(compiler.repo(), &Arc::default());
        let run = compiler.run(&Selection::default(), |agent| {
            let schemas = schemas.of(agent.plan.wire, Some((agent.plan.instance, agent.plan.api)));
            assert_eq!(schemas.documents.all.len(), 1);
            assert!(
                schemas
                    .documents
                    .all
                    .iter()
                    .all(|document| document.as_ref().is_ok_and(Document::is_bundled)),
                "{}",
                agent.plan.name()
            );
        });
        assert!(!run.results.is_empty());
    }
}
