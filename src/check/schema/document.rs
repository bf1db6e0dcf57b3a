//! A wire format's schema with its extensions, ready for validation.

use std::sync::{Arc, OnceLock, Weak};

use jsonschema::Validator;
use serde_json::Value;

use super::bundled::Bundled;
use super::cost::cost;
use super::elements::Elements;
use super::graph::Graph;
use super::mistake::{Hint, Mistake, What, fold};
use super::refusal::Refusal;
use super::validator::validator;
use super::{explain, extend, rules, spelling};
use crate::json::{self, Pointer};
use crate::memory::{Identity, Memory, Question};
use crate::provider::WireFormat;
use crate::source::{FileId, SourceText, Span};
use crate::unit::{Body, MemberRef};

/// The maximum cost of validating a body against a schema that is not built into the program.
const MAX_COST: u64 = 20_000_000;
/// The maximum cost of explaining mistakes. To explain them, each mistake is kept with a copy of
/// its value.
pub(super) const MAX_COST_EXPLAINED: u64 = 1_000_000;

/// A schema file with extensions. Validators for bundled schemas are part of the program. A bundled
/// schema is compiled as a whole only when a body violates it, to explain the mistakes. Any other
/// schema is compiled immediately, so every document is usable.
pub(super) struct Document {
    id: Identity,
    wire: WireFormat,
    text: Arc<SourceText>,
    /// The extension files that list one of the names.
    extensions: Vec<Arc<Extensions>>,
    names: Vec<String>,
    bundled: Option<&'static Bundled>,
    is_of_format: bool,
    compiled: OnceLock<Compiled>,
    /// The shared cache. The reference is weak because the cache may contain this document.
    memory: Weak<Memory>,
}

/// The [`Question`] of which mistakes are in a member that several bodies share. The answer is
/// `None` if the mistakes depend on other members.
#[derive(PartialEq, Eq, Hash)]
struct MistakesOf {
    schema: Identity,
    value: Identity,
    name: Box<str>,
}

impl Question for MistakesOf {
    type Answer = Option<Arc<[Mistake]>>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        256 * (1 + answer.as_ref().map_or(0, |mistakes| mistakes.len()))
    }
}

/// A schema and everything derived from it.
pub(super) struct Compiled {
    value: Value,
    graph: Graph,
    validator: OnceLock<Validator>,
    known: explain::Known,
}

/// The [`Question`] of which alternatives the elements of a member have, if the member is a list
/// with alternatives.
#[derive(PartialEq, Eq, Hash)]
struct ElementsOf(Identity, Box<str>);

impl Question for ElementsOf {
    type Answer = Option<Arc<Elements>>;

    fn weight(&self, _: &Self::Answer) -> usize {
        16 * 1024
    }
}

/// A schema file.
pub(super) struct SchemaFile {
    file: FileId,
    text: Arc<SourceText>,
    /// The wire format of the bundled schema that the file equals; `None` for other files.
    bundled: OnceLock<Option<&'static str>>,
}

impl SchemaFile {
    /// Creates a schema file. `built_in` is the wire format of a file that is built into the program;
    /// other files are compared with those.
    pub(super) fn new(file: FileId, text: &Arc<SourceText>, built_in: Option<&str>) -> SchemaFile {
        SchemaFile {
            file,
            text: Arc::clone(text),
            bundled: known(built_in),
        }
    }

    fn bundled(&self) -> Option<&'static str> {
        let text = self.text.as_str();
        *self.bundled.get_or_init(|| Bundled::format_of_schema(text))
    }
}

/// Returns the cell for the wire format of a bundled file. It is empty for files that are not built
/// into the program.
fn known(built_in: Option<&str>) -> OnceLock<Option<&'static str>> {
    built_in.map_or_else(OnceLock::new, |name| Bundled::format(name).into())
}

/// An extension file.
pub(super) struct Extensions {
    file: FileId,
    text: Arc<SourceText>,
    /// The wire format of the bundled extension file that the file equals; `None` for other files,
    /// whose value is parsed instead.
    bundled: OnceLock<Option<&'static str>>,
    value: OnceLock<Value>,
}

/// The reason a schema with its extensions cannot be used, with the location to fix.
#[derive(Debug, Clone)]
pub(super) struct Unusable {
    pub(super) refusal: Refusal,
    pub(super) place: Span,
}

/// A body to validate.
#[derive(Clone, Copy)]
pub(super) enum Input<'b> {
    /// A body that was built with a plan.
    Body(&'b Body),
    /// A value that was built without a plan.
    Value(&'b Value),
    /// A body in the spelling of its schema, with the original.
    Respelt {
        value: &'b Value,
        original: &'b Value,
    },
}

impl Extensions {
    /// Creates an extension file from text whose [form](check_extensions) is valid.
    /// `built_in` is the wire format of a file that is built into the program, as for
    /// [`SchemaFile::new`].
    pub(super) fn new(file: FileId, text: &Arc<SourceText>, built_in: Option<&str>) -> Extensions {
        Extensions {
            file,
            text: Arc::clone(text),
            bundled: known(built_in),
            value: OnceLock::new(),
        }
    }

    fn bundled(&self) -> Option<&'static str> {
        let text = self.text.as_str();
        *self
            .bundled
            .get_or_init(|| Bundled::format_of_extensions(text))
    }

    /// Returns `true` if the file lists fields under a name.
    pub(super) fn list(&self, name: &str) -> bool {
        match self.bundled() {
            Some(format) => Bundled::find(format, Some(name)).is_some(),
            None => !name.starts_with('$') && self.value().get(name).is_some(),
        }
    }

    /// Returns the names under which the file lists fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.value()
            .as_object()
            .into_iter()
            .flat_map(|names| names.keys())
            .filter(|name| !name.starts_with('$'))
    }

    /// Returns the location where the file lists a name.
    fn place(&self, name: &str) -> Span {
        let tree = json::parse_tree(self.text.as_str()).ok();
        let key = tree.and_then(|tree| tree.key_span(name));
        Span::new(self.file, key.unwrap_or(0..0))
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| parse(&self.text))
    }
}

/// The maximum number of names in an extension file.
const MAX_NAMES: usize = 64;

/// Checks that a value has the form of an extension file: names that contain locations, which
/// contain fields with schemas.
///
/// # Errors
///
/// Returns an error for the first location with a different form.
pub(super) fn check_extensions(value: &Value) -> Result<(), Refusal> {
    const FORM: &str = "write `{\"<provider instance>\": {\"<place>\": {\"<field>\": {…}}}}`";
    fn members<'v>(
        value: &'v Value,
        at: &Pointer,
    ) -> Result<&'v serde_json::Map<String, Value>, Refusal> {
        let message = format!(
            "extensions need an object here, not {}",
            json::kind_of(value)
        );
        value
            .as_object()
            .ok_or_else(|| Refusal::new(at.as_str(), message, FORM))
    }
    let root = Pointer::root();
    let names = members(value, &root)?;
    if names.len() > MAX_NAMES {
        return Err(Refusal::new(
            "",
            format!("more than {MAX_NAMES} provider instances have extensions"),
            "remove those that are not used",
        ));
    }
    let fields_of = |fields: &Value, at: &Pointer| {
        members(fields, at)?.iter().try_for_each(|(field, value)| {
            check_field(field, value)
                .map_err(|message| Refusal::new(at.member(field).as_str(), message, FORM))
        })
    };
    if let Some(definitions) = names.get(extend::DEFINITIONS) {
        fields_of(definitions, &root.member(extend::DEFINITIONS))?;
    }
    for (name, places) in names.iter().filter(|(name, _)| !name.starts_with('$')) {
        let at = root.member(name);
        for (place, fields) in members(places, &at)? {
            let at_place = at.member(place);
            if place == extend::BASE {
                check_field(place, fields)
                    .map_err(|message| Refusal::new(at_place.as_str(), message, FORM))?;
            } else {
                fields_of(fields, &at_place)?;
            }
        }
    }
    Ok(())
}

/// Checks that a member of a location is a field with its schema, or one of the special lists.
fn check_field(name: &str, value: &Value) -> Result<(), String> {
    let is_list = |is_element: &dyn Fn(&Value) -> bool| {
        value
            .as_array()
            .is_some_and(|list| list.iter().all(is_element))
    };
    let (is_right, wanted) = match name {
        extend::OPTIONAL | extend::REQUIRED | extend::UNKNOWN | extend::BASE => {
            (is_list(&Value::is_string), "this must be a list of names")
        }
        extend::ALTERNATIVES => (is_list(&is_schema), "this must be a list of schemas"),
        _ => (is_schema(value), "a field's schema must be an object"),
    };
    is_right
        .then_some(())
        .ok_or_else(|| format!("{wanted}, not {}", json::kind_of(value)))
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

impl Document {
    /// Combines a schema file with the entries of `extensions` under `names`.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is not usable, which never happens with bundled files.
    pub(super) fn new(
        wire: WireFormat,
        schema: &SchemaFile,
        extensions: &[Arc<Extensions>],
        names: &[String],
        memory: &Weak<Memory>,
    ) -> Result<Document, Unusable> {
        let extensions: Vec<_> = extensions
            .iter()
            .filter(|file| names.iter().any(|name| file.list(name)))
            .cloned()
            .collect();
        let format = schema.bundled();
        let of_format = format.and_then(|format| Bundled::find(format, None));
        let bundled = match (&extensions[..], names) {
            ([], _) => of_format,
            ([listed], [name]) => format
                .filter(|_| listed.bundled() == format)
                .and_then(|format| Bundled::find(format, Some(name))),
            _ => None,
        };
        let names = names.to_vec();
        let (is_of_format, compiled) = (of_format.is_some(), OnceLock::new());
        let (id, text) = (Identity::new(), Arc::clone(&schema.text));
        let memory = Weak::clone(memory);
        let document = Document {
            id,
            wire,
            text,
            extensions,
            names,
            bundled,
            is_of_format,
            compiled,
            memory,
        };
        if document.bundled.is_none() {
            let compiled = document
                .compile()
                .map_err(|refusal| document.unusable(schema.file, refusal))?;
            document.compiled.get_or_init(|| compiled);
        }
        Ok(document)
    }

    /// Returns the approximate size of the document in bytes. A bundled schema takes little memory
    /// until a body violates it.
    pub(super) fn weight(&self) -> usize {
        let compiled = if self.bundled.is_some() {
            0
        } else {
            16 * self.text.as_str().len()
        };
        1024 + compiled
    }

    /// Returns `true` if the schema file is the bundled one, without a repository's changes.
    pub(super) fn is_of_format(&self) -> bool {
        self.is_of_format
    }

    #[cfg(test)]
    pub(super) fn is_bundled(&self) -> bool {
        self.bundled.is_some()
    }

    /// Returns the schema with its extensions.
    pub(super) fn value(&self) -> &Value {
        &self.compiled().value
    }

    /// Returns the mistakes in a body, in schema order. The list is empty only if the schema
    /// accepts the body.
    pub(super) fn mistakes(&self, subject: Input<'_>) -> Vec<Mistake> {
        if let (Some(bundled), Some(members)) = (self.bundled, subject.members())
            && bundled.accepts(&members)
        {
            return Vec::new();
        }
        if let Some(mistakes) = self.mistakes_of_members(subject) {
            return mistakes;
        }
        let (compiled, value) = (self.compiled(), subject.value());
        let cost = cost(&compiled.graph, value).filter(|cost| *cost <= MAX_COST);
        let mistakes = match cost {
            // The generated validators have already found that the body is invalid.
            None if self.bundled.is_none() => return vec![unchecked()],
            Some(_) if self.bundled.is_none() && compiled.validator().is_valid(value) => {
                return Vec::new();
            }
            Some(cost) if cost <= MAX_COST_EXPLAINED => {
                let (schema, original) = (compiled.known_schema(), subject.original());
                explain::mistakes(schema, compiled.validator(), value, original)
            }
            _ => Vec::new(),
        };
        if mistakes.is_empty() {
            vec![self.unexplained(subject)]
        } else {
            mistakes
        }
    }

    /// Returns a body's mistakes if all of them are inside its members. Skips valid members, and
    /// checks an invalid member only once if other bodies share it.
    fn mistakes_of_members(&self, subject: Input<'_>) -> Option<Vec<Mistake>> {
        let (bundled, members) = (self.bundled?, subject.members()?);
        if matches!(subject, Input::Respelt { .. }) {
            return None;
        }
        let refused = bundled.refused_alone(&members)?;
        match refused.as_slice() {
            [] => None,
            [only] => match only.shared() {
                Some((value, memory)) => {
                    let asked = MistakesOf {
                        schema: self.id,
                        value,
                        name: only.name.into(),
                    };
                    memory
                        .ask(asked, || self.told_of_one(only).map(Into::into))
                        .map(|told| told.to_vec())
                }
                None => self.told_of_one(only),
            },
            several => self.told_of(several),
        }
    }

    fn told_of_one(&self, member: &MemberRef<'_>) -> Option<Vec<Mistake>> {
        let compiled = self.compiled();
        let of_elements = compiled.elements(member.name).and_then(|elements| {
            let list = explain::Found {
                at: Pointer::root().member(member.name),
                value: member.value(),
            };
            let (schema, graph) = (compiled.known_schema(), &compiled.graph);
            let mut mistakes = elements.mistakes(schema, graph, &list, MAX_COST_EXPLAINED)?;
            fold(&mut mistakes);
            Some(mistakes)
        });
        of_elements
            .filter(|mistakes| !mistakes.is_empty())
            .or_else(|| self.told_of(&[*member]))
    }

    fn told_of(&self, refused: &[MemberRef<'_>]) -> Option<Vec<Mistake>> {
        let compiled = self.compiled();
        let value: Value = refused
            .iter()
            .map(|member| (member.name.to_owned(), member.value().clone()))
            .collect();
        cost(&compiled.graph, &value).filter(|cost| *cost <= MAX_COST_EXPLAINED)?;
        let (schema, validator) = (compiled.known_schema(), compiled.validator());
        let mut mistakes = explain::mistakes(schema, validator, &value, &value);
        // `value` lacks the valid members, so mistakes about missing members are dropped: no
        // required member is missing in the body itself.
        let places: Vec<Pointer> = refused
            .iter()
            .map(|member| Pointer::root().member(member.name))
            .collect();
        mistakes.retain(|mistake| places.iter().any(|at| mistake.pointer.below(at).is_some()));
        (!mistakes.is_empty()).then_some(mistakes)
    }

    /// Returns a single mistake for a body whose mistakes cannot be found within the work limit.
    /// Its location is the first invalid member, if that is known.
    fn unexplained(&self, subject: Input<'_>) -> Mistake {
        let members = subject.members().unwrap_or_default();
        let refused = self.bundled.and_then(|bundled| bundled.refused(&members));
        let pointer = refused.map_or(Pointer::root(), |name| Pointer::root().member(name));
        let pointer = spelling::original(pointer.as_str(), subject.original());
        let message = format!(
            "the API does not accept `{pointer}`; the value is too large to locate the mistake"
        );
        let help = "check a smaller conversation to see the exact location".to_owned();
        Mistake::value(pointer, message, Hint::Other(help))
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            self.compile()
                .unwrap_or_else(|refusal| panic!("a bundled schema: {refusal:?}"))
        })
    }

    fn compile(&self) -> Result<Compiled, Refusal> {
        let mut value = parse(&self.text);
        for file in &self.extensions {
            // Locations are resolved through references, so the references must be valid.
            Graph::of(&value)?;
            extend::extend(&mut value, file.value(), &self.names).map_err(|()| {
                Refusal::new(
                    "",
                    "the extensions make the schema too large",
                    "extend fewer places, or use smaller schemas",
                )
            })?;
        }
        let mut compiled = Compiled::new(value, &self.memory)?;
        compiled.known.wire = Some(self.wire);
        if self.bundled.is_none() {
            compiled.checked()?;
        }
        Ok(compiled)
    }

    /// Adds a location to a refusal. The location is the extension's if there is one, because the
    /// schema file alone is valid.
    fn unusable(&self, file: FileId, refusal: Refusal) -> Unusable {
        let extension = self.extensions.last();
        let named = extension.and_then(|file| {
            self.names
                .iter()
                .find(|name| file.list(name))
                .map(|name| file.place(name))
        });
        Unusable {
            refusal,
            place: named.unwrap_or_else(|| Span::file_start(file)),
        }
    }
}

impl Compiled {
    /// Prepares a schema for validation.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is not a JSON Schema or if its cost is unbounded.
    pub(super) fn new(mut value: Value, memory: &Weak<Memory>) -> Result<Compiled, Refusal> {
        if let Some(members) = value.as_object_mut() {
            // The document's own identifier and draft would change the meaning of references.
            members.shift_remove("$id");
            members.shift_remove("$schema");
            members.shift_remove("$vocabulary");
        }
        let known = explain::Known {
            schema: Identity::new(),
            memory: Weak::clone(memory),
            wire: None,
        };
        Ok(Compiled {
            graph: Graph::of(&value)?,
            value,
            validator: OnceLock::new(),
            known,
        })
    }

    /// Compiles the validator.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is not a JSON Schema.
    pub(super) fn checked(&self) -> Result<(), Refusal> {
        let made = validator(&self.value)?;
        self.validator.get_or_init(|| made);
        Ok(())
    }

    fn known_schema(&self) -> explain::KnownSchema<'_> {
        explain::KnownSchema {
            value: &self.value,
            known: &self.known,
        }
    }

    fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| {
            validator(&self.value).unwrap_or_else(|refusal| panic!("a bundled schema: {refusal:?}"))
        })
    }

    /// Returns the alternatives for a member, if it is a list whose elements are distinguished by
    /// one of their members.
    fn elements(&self, name: &str) -> Option<Arc<Elements>> {
        self.known
            .ask(ElementsOf(self.known.schema, name.into()), || {
                Elements::of(&self.value, &self.graph, name).map(Arc::new)
            })
    }

    #[cfg(test)]
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.validator().is_valid(value)
    }
}

/// Returns the mistake for a body that cannot be validated against a repository's schema within the
/// work limit.
fn unchecked() -> Mistake {
    let message =
        "checking this body against the repository's schema exceeds the work limit".to_owned();
    let help =
        "simplify the schema: the cost grows with the number of its alternatives and with the size of the body".to_owned();
    Mistake {
        rule: &rules::BAD_SCHEMA,
        pointer: Pointer::root(),
        what: What::Other(message),
        hint: Hint::Other(help),
        passed_over_by: None,
        asks: None,
        place: None,
    }
}

impl<'b> Input<'b> {
    pub(super) fn value(self) -> &'b Value {
        match self {
            Input::Body(body) => body.value(),
            Input::Value(value) | Input::Respelt { value, .. } => value,
        }
    }

    /// Returns the body's members; `None` if the body is not an object.
    fn members(self) -> Option<Vec<MemberRef<'b>>> {
        match self {
            Input::Body(body) => Some(body.members().collect()),
            Input::Value(value) | Input::Respelt { value, .. } => {
                let members = value.as_object()?.iter();
                Some(
                    members
                        .map(|(name, value)| MemberRef::new(name, value))
                        .collect(),
                )
            }
        }
    }

    /// Returns the original body, whose names are used in mistakes.
    fn original(self) -> &'b Value {
        match self {
            Input::Respelt { original, .. } => original,
            _ => self.value(),
        }
    }
}

/// Parses a file. Text that is not JSON was already reported when the file was loaded.
fn parse(text: &SourceText) -> Value {
    json::parse(text.as_str()).unwrap_or(Value::Bool(false))
}
