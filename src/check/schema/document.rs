//! A schema that can be used: taken apart at the members of the body where that is possible.
//!
//! Of a wire format's schema most is never needed: a body has a few of the members that the schema knows. So each member's
//! schema is compiled when a body first has it, and what it says of a value that several bodies hold is remembered. The
//! whole schema is compiled only to tell what is wrong, or if it says more of the body than can be taken apart.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::{Registry, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::explain;
use crate::check::Problem;
use crate::unit::{Body, SharedId};

/// The name of a document for the references into it.
const URI: &str = "reqc:document";

/// A schema.
pub(super) struct Document {
    value: Arc<Value>,
    parts: Option<Parts>,
    registry: OnceLock<Option<Registry<'static>>>,
    /// `None` if it cannot be compiled.
    whole: OnceLock<Option<Validator>>,
}

/// A member of a body: its name, its value, and what tells a value that other bodies hold too.
type Member<'b> = (&'b str, &'b Value, Option<SharedId>);

/// What is checked.
#[derive(Clone, Copy)]
pub(super) enum Subject<'b> {
    /// A body.
    Body(&'b Body),
    /// A value that no plan made.
    Value(&'b Value),
}

impl Document {
    pub(super) fn new(value: Value) -> Document {
        let parts = Parts::of(&value);
        Document { value: Arc::new(value), parts, registry: OnceLock::new(), whole: OnceLock::new() }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the schema takes a body. `narrower` is a schema that this one only widens: what it takes of a member is not
    /// looked at again.
    pub(super) fn accepts(&self, subject: Subject<'_>, narrower: Option<&Document>) -> bool {
        match (&self.parts, subject.members()) {
            (Some(parts), Some(members)) => {
                let accepts = |member: &Member<'_>| {
                    narrower.is_some_and(|narrower| narrower.accepts_member(*member)) || self.accepts_member(*member)
                };
                let is_there = |name: &String| members.iter().any(|(member, ..)| member == name);
                parts.required.iter().all(is_there) && members.iter().all(accepts) && parts.accept_together(&members)
            }
            _ => self.whole().is_none_or(|validator| validator.is_valid(subject.value())),
        }
    }

    /// What is wrong with a body, in the order of the schema. A schema that cannot be compiled takes everything.
    pub(super) fn problems(&self, subject: Subject<'_>) -> Vec<Problem> {
        let explain = |validator| explain::problems(&self.value, validator, subject.value());
        self.whole().map(explain).unwrap_or_default()
    }

    fn accepts_member(&self, (name, value, shared): Member<'_>) -> bool {
        let Some(part) = self.parts.as_ref().and_then(|parts| parts.members.get(name)) else { return false };
        let Some(validator) = part.validator.get_or_init(|| self.compile_member(name)) else { return false };
        let Some(shared) = shared else { return validator.is_valid(value) };
        let known = || part.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&accepted) = known().get(&shared) {
            return accepted;
        }
        let accepted = validator.is_valid(value);
        known().insert(shared, accepted);
        accepted
    }

    fn compile_member(&self, name: &str) -> Option<Validator> {
        let registry = self.registry.get_or_init(|| {
            let document = Registry::new().add(URI, Arc::clone(&self.value)).ok()?;
            document.prepare().ok()
        });
        let reference = json!({"$ref": format!("{URI}#/properties/{name}")});
        jsonschema::draft202012::options().offline().with_registry(registry.as_ref()?).build(&reference).ok()
    }

    fn whole(&self) -> Option<&Validator> {
        self.whole.get_or_init(|| compile(&self.value).ok()).as_ref()
    }
}

/// The validator of a schema, or why there is none.
pub(super) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::draft202012::options().offline().build(schema)
}

impl<'b> Subject<'b> {
    /// The members; `None` if it is no object.
    fn members(self) -> Option<Vec<Member<'b>>> {
        match self {
            Subject::Body(body) => Some(body.members().collect()),
            Subject::Value(value) => {
                Some(value.as_object()?.iter().map(|(name, value)| (name.as_str(), value, None)).collect())
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

/// A schema's root, taken apart.
struct Parts {
    members: HashMap<String, Part>,
    required: Vec<String>,
    together: Option<Together>,
}

/// The schema of one member.
#[derive(Default)]
struct Part {
    /// `None` if it cannot be compiled.
    validator: OnceLock<Option<Validator>>,
    /// Which values of several bodies it takes.
    known: Mutex<HashMap<SharedId, bool>>,
}

/// What a schema says of several members at once.
struct Together {
    schema: Value,
    /// Everything that it names: other members are nothing to it.
    names: BTreeSet<String>,
    validator: OnceLock<Option<Validator>>,
}

/// Keywords of a root that can be asked member by member, or say nothing of a body.
const APART: [&str; 10] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "$defs",
];
/// Keywords of a root that speak of several members at once.
const TOGETHER: [&str; 2] = ["allOf", "dependentSchemas"];
/// Keywords that reach members without their names, or leave the place where they stand.
const UNBOUNDED: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
];

impl Parts {
    /// The parts of a schema; `None` if its root has a keyword whose meaning they would not keep.
    fn of(schema: &Value) -> Option<Parts> {
        let root = schema.as_object()?;
        let is_closed = root.get("type")? == "object" && root.get("additionalProperties")? == false;
        let is_known = |key: &String| APART.contains(&key.as_str()) || TOGETHER.contains(&key.as_str());
        let names = root.get("properties")?.as_object()?.keys();
        let needs_no_escapes =
            |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_closed || !root.keys().all(is_known) || !names.clone().all(needs_no_escapes) {
            return None;
        }
        let members = names.map(|name| (name.clone(), Part::default())).collect();
        let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        let together = root.iter().filter(|(key, _)| TOGETHER.contains(&key.as_str()));
        let together: Map<String, Value> = together.map(|(key, value)| (key.clone(), value.clone())).collect();
        let together = if together.is_empty() { None } else { Some(Together::of(together)?) };
        Some(Parts { members, required, together })
    }

    fn accept_together(&self, members: &[Member<'_>]) -> bool {
        let Some(together) = &self.together else { return true };
        let named = members.iter().filter(|(name, ..)| together.names.contains(*name));
        let named: Value = named.map(|(name, value, _)| ((*name).to_owned(), (*value).clone())).collect();
        let validator = together.validator.get_or_init(|| compile(&together.schema).ok());
        validator.as_ref().is_some_and(|validator| validator.is_valid(&named))
    }
}

impl Together {
    fn of(keywords: Map<String, Value>) -> Option<Together> {
        let schema = Value::Object(keywords);
        let mut names = BTreeSet::new();
        collect_names(&schema, &mut names).then(|| Together { schema, names, validator: OnceLock::new() })
    }
}

/// Every key and every string of a schema: among them the names of all members that it speaks of. `false` if it may speak of
/// others, too.
fn collect_names(schema: &Value, names: &mut BTreeSet<String>) -> bool {
    match schema {
        Value::String(text) => {
            names.insert(text.clone());
            true
        }
        Value::Array(elements) => elements.iter().all(|element| collect_names(element, names)),
        Value::Object(members) => members.iter().all(|(key, value)| {
            names.insert(key.clone());
            let compares_objects = matches!(key.as_str(), "const" | "enum") && !holds_only_leaves(value);
            !compares_objects && !UNBOUNDED.contains(&key.as_str()) && collect_names(value, names)
        }),
        _ => true,
    }
}

fn holds_only_leaves(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().all(holds_only_leaves),
        Value::Object(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_apart(schema: &Value) -> bool {
        Document::new(schema.clone()).parts.is_some()
    }

    /// What a schema says of a body, by its parts if it has any: the same as the whole.
    fn accepts(schema: &Value, body: &Value) -> bool {
        let accepted = Document::new(schema.clone()).accepts(Subject::Value(body), None);
        assert_eq!(accepted, compile(schema).expect("a schema").is_valid(body), "{body}");
        accepted
    }

    fn closed(more: Value) -> Value {
        let mut schema = json!({
            "$id": "test:closed",
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/number"}, "b": {"type": "string"}, "c": {"items": {"$ref": "#/$defs/number"}}
            },
            "required": ["a"],
            "additionalProperties": false,
            "$defs": {"number": {"type": "number", "minimum": 1}}
        });
        let (Value::Object(members), Value::Object(more)) = (&mut schema, more) else { panic!("objects") };
        members.extend(more);
        schema
    }

    #[test]
    fn the_parts_take_what_the_whole_takes() {
        let schema = closed(json!({"dependentSchemas": {"b": {"properties": {"a": {"maximum": 5}}}}}));
        assert!(is_apart(&schema));
        for (body, expected) in [
            (json!({"a": 1}), true),
            (json!({"a": 6}), true),
            (json!({"a": 6, "b": ""}), false),
            (json!({"a": 5, "b": "", "c": [1, 2]}), true),
            (json!({"a": 5, "c": [0]}), false),
            (json!({"a": "1"}), false),
            (json!({"b": ""}), false),
            (json!({"a": 1, "d": 1}), false),
            (json!([1]), false),
        ] {
            assert_eq!(accepts(&schema, &body), expected, "{body}");
        }
    }

    #[test]
    fn what_reaches_members_without_their_names_is_left_whole() {
        assert!(is_apart(&closed(json!({}))));
        for more in [
            json!({"additionalProperties": true}),
            json!({"patternProperties": {"^x": true}}),
            json!({"maxProperties": 1}),
            json!({"anyOf": [{"required": ["a"]}]}),
            json!({"allOf": [{"maxProperties": 1}]}),
            json!({"allOf": [{"$ref": "#/$defs/number"}]}),
            json!({"allOf": [{"not": {"const": {"a": 1}}}]}),
            json!({"properties": {"a/b": {}}}),
        ] {
            let schema = closed(more);
            assert!(!is_apart(&schema), "{schema}");
            accepts(&schema, &json!({"a": 1, "b": ""}));
        }
    }
}
