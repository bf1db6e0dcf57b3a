//! The regular expressions of all schemas, each compiled when a value first meets it: most of them never do, and the same
//! few stand in many places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::{Keyword, ValidationError, ValidationOptions, Validator};
use serde_json::{Value, json};

/// The patterns that were met so far, by their text.
#[derive(Default)]
pub(super) struct Patterns(Mutex<HashMap<String, Arc<Pattern>>>);

/// The keyword `pattern`.
pub(super) struct Pattern {
    schema: Value,
    /// `None` if it is no regular expression.
    validator: OnceLock<Option<Validator>>,
}

impl Patterns {
    /// The keyword `pattern` with a value.
    pub(super) fn keyword(&self, value: &Value) -> Arc<Pattern> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(Pattern { schema: json!({"pattern": value}), validator: OnceLock::new() });
        Arc::clone(known.entry(value.to_string()).or_insert_with(make))
    }
}

/// Options for schemas of one keyword that means the same in all drafts: the oldest, whose own schema is compiled first, has
/// the smallest.
pub(super) fn small() -> ValidationOptions<'static> {
    jsonschema::draft4::options().offline()
}

impl Pattern {
    fn matches(&self, value: &Value) -> bool {
        let validator = self.validator.get_or_init(|| small().build(&self.schema).ok());
        validator.as_ref().is_some_and(|validator| validator.is_valid(value))
    }
}

/// A pattern as a schema holds it. Whoever wants to know more than whether a value fits asks the whole schema.
pub(super) struct LazyPattern(pub(super) Arc<Pattern>);

impl<'i> Keyword<'i> for LazyPattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.0.matches(instance) {
            true => Ok(()),
            false => Err(ValidationError::custom("does not match the pattern")),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.0.matches(instance)
    }
}
