//! A schema that can be used.

use std::sync::{Arc, OnceLock};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::bundled::{Bundled, Extension};
use super::{explain, extend};
use crate::check::Problem;
use crate::json;
use crate::source::SourceText;
use crate::unit::{Body, MemberRef};

/// A schema file with extensions. A bundled one has validators that were compiled with the program; any other is compiled
/// when a body first meets it, and so is every schema that a body breaks, to tell how.
pub(super) struct Document {
    text: Arc<SourceText>,
    /// Those that list one of the names.
    extensions: Vec<Arc<Extensions>>,
    names: Vec<String>,
    bundled: Option<&'static Bundled>,
    value: OnceLock<Value>,
    /// `None` if it cannot be compiled.
    validator: OnceLock<Option<Validator>>,
}

/// A file of extensions.
pub(super) struct Extensions {
    text: Arc<SourceText>,
    /// What a bundled one lists; any other is asked itself.
    names: Option<Vec<&'static str>>,
    value: OnceLock<Value>,
}

/// What is checked.
#[derive(Clone, Copy)]
pub(super) enum Subject<'b> {
    /// A body.
    Body(&'b Body),
    /// A value that no plan made.
    Value(&'b Value),
}

impl Extensions {
    pub(super) fn new(text: &Arc<SourceText>) -> Extensions {
        let names = Bundled::names_in(text.as_str());
        Extensions { text: Arc::clone(text), names, value: OnceLock::new() }
    }

    /// Whether fields are listed under a name.
    pub(super) fn list(&self, name: &str) -> bool {
        match &self.names {
            Some(names) => names.contains(&name),
            None => self.value().get(name).is_some(),
        }
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| parse(&self.text))
    }
}

impl Document {
    /// A schema file with what `extensions` list under `names`.
    pub(super) fn new(text: &Arc<SourceText>, extensions: &[Arc<Extensions>], names: &[String]) -> Document {
        let is_listed = |file: &&Arc<Extensions>| names.iter().any(|name| file.list(name));
        let extensions: Vec<_> = extensions.iter().filter(is_listed).cloned().collect();
        let bundled = match (&extensions[..], names) {
            ([], _) => Bundled::find(text.as_str(), None),
            ([file], [name]) => Bundled::find(text.as_str(), Some(Extension { file: file.text.as_str(), name })),
            _ => None,
        };
        let (value, validator) = (OnceLock::new(), OnceLock::new());
        Document { text: Arc::clone(text), extensions, names: names.to_vec(), bundled, value, validator }
    }

    #[cfg(test)]
    pub(super) fn is_bundled(&self) -> bool {
        self.bundled.is_some()
    }

    /// The schema with its extensions.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let mut value = parse(&self.text);
            self.extensions.iter().for_each(|file| extend::extend(&mut value, file.value(), &self.names));
            value
        })
    }

    /// Whether the schema takes a body. A schema that cannot be compiled takes everything.
    pub(super) fn accepts(&self, subject: Subject<'_>) -> bool {
        match (self.bundled, subject.members()) {
            (Some(bundled), Some(members)) => bundled.accepts(&members),
            _ => self.validator().is_none_or(|validator| validator.is_valid(subject.value())),
        }
    }

    /// What is wrong with a body, in the order of the schema.
    pub(super) fn problems(&self, subject: Subject<'_>) -> Vec<Problem> {
        let explain = |validator| explain::problems(self.value(), validator, subject.value());
        self.validator().map(explain).unwrap_or_default()
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator.get_or_init(|| compile(self.value()).ok()).as_ref()
    }
}

impl<'b> Subject<'b> {
    /// The members; `None` if it is no object.
    fn members(self) -> Option<Vec<MemberRef<'b>>> {
        match self {
            Subject::Body(body) => Some(body.members().collect()),
            Subject::Value(value) => {
                let members = value.as_object()?.iter();
                Some(members.map(|(name, value)| MemberRef { name, value, accepted: None }).collect())
            }
        }
    }

    fn value(self) -> &'b Value {
        match self {
            Subject::Body(body) => body.value(),
            Subject::Value(value) => value,
        }
    }
}

/// A file's value. One that is no JSON was reported when it was loaded, and says nothing.
fn parse(text: &SourceText) -> Value {
    json::parse(text.as_str()).unwrap_or(Value::Bool(true))
}

/// The validator of a schema, or why there is none.
pub(super) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::draft202012::options().offline().build(schema)
}
