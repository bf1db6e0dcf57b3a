//! A schema that can be used: taken apart at the members of the body where that is possible.
//!
//! Of a wire format's schema most is never needed: a body has a few of the members that the schema knows. So each member's
//! schema is compiled when a body first has it, that of a list with a discriminator by its [`Elements`], and what it says of
//! a value that several bodies hold is remembered. The whole schema is compiled only to tell what is wrong, or if it says
//! more of the body than can be taken apart.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::{Registry, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::elements::Elements;
use super::explain;
use super::patterns::{LazyPattern, Patterns, small};
use crate::check::Problem;
use crate::unit::{Body, SharedId};

/// The name of a document for the references into it.
const URI: &str = "reqc:document";
/// The name of what a document says of several members at once.
const TOGETHER_URI: &str = "reqc:together";

/// A schema.
pub(super) struct Document {
    value: Arc<Value>,
    parts: Option<Parts>,
    patterns: Arc<Patterns>,
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
    pub(super) fn new(value: Value, patterns: &Arc<Patterns>) -> Document {
        let parts = Parts::of(&value);
        let (value, patterns) = (Arc::new(value), Arc::clone(patterns));
        Document { value, parts, patterns, registry: OnceLock::new(), whole: OnceLock::new() }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the schema takes a body. `narrower` is a schema that this one only widens: what it takes of a member is not
    /// looked at again.
    pub(super) fn accepts(&self, subject: Subject<'_>, narrower: Option<&Document>) -> bool {
        match (&self.parts, subject.members()) {
            (Some(parts), Some(members)) => {
                let is_there = |name: &String| members.iter().any(|(member, ..)| member == name);
                parts.required.iter().all(is_there)
                    && members.iter().all(|member| self.accepts_member(*member, narrower))
                    && self.accepts_together(parts, &members)
            }
            _ => self.whole().is_none_or(|validator| validator.is_valid(subject.value())),
        }
    }

    /// What is wrong with a body, in the order of the schema. A schema that cannot be compiled takes everything.
    pub(super) fn problems(&self, subject: Subject<'_>) -> Vec<Problem> {
        let explain = |validator| explain::problems(&self.value, validator, subject.value());
        self.whole().map(explain).unwrap_or_default()
    }

    fn accepts_member(&self, member: Member<'_>, narrower: Option<&Document>) -> bool {
        if narrower.is_some_and(|narrower| narrower.accepts_member(member, None)) {
            return true;
        }
        let (name, value, shared) = member;
        let Some(part) = self.part(name) else { return false };
        let known = || part.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(accepted) = shared.and_then(|shared| known().get(&shared).copied()) {
            return accepted;
        }
        let accepted = match (part.elements(&self.value, name), value) {
            (Some(elements), Value::Array(list)) => {
                let narrower = narrower.and_then(|narrower| narrower.part(name)?.elements(&narrower.value, name));
                elements.accept(list, narrower, |pointer| self.compile(&format!("{URI}#{pointer}")))
            }
            _ => {
                let validator = part.validator.get_or_init(|| self.compile(&format!("{URI}#{}", pointer(name))));
                validator.as_ref().is_some_and(|validator| validator.is_valid(value))
            }
        };
        if let Some(shared) = shared {
            known().insert(shared, accepted);
        }
        accepted
    }

    fn accepts_together(&self, parts: &Parts, members: &[Member<'_>]) -> bool {
        let Some(together) = &parts.together else { return true };
        let named = members.iter().filter(|(name, ..)| together.names.contains(*name));
        let named: Value = named.map(|(name, value, _)| ((*name).to_owned(), (*value).clone())).collect();
        let validator = together.validator.get_or_init(|| self.compile(TOGETHER_URI));
        validator.as_ref().is_some_and(|validator| validator.is_valid(&named))
    }

    fn part(&self, name: &str) -> Option<&Part> {
        self.parts.as_ref()?.members.get(name)
    }

    /// The validator of what a reference names.
    fn compile(&self, reference: &str) -> Option<Validator> {
        let registry = self.registry.get_or_init(|| {
            let document = Registry::new().add(URI, Arc::clone(&self.value)).ok()?;
            let together = self.parts.as_ref().and_then(|parts| parts.together.as_ref());
            let together = together.map_or(Value::Bool(true), |together| together.schema.clone());
            document.add(TOGETHER_URI, together).ok()?.prepare().ok()
        });
        let patterns = Arc::clone(&self.patterns);
        // What the reference names says itself which draft it is.
        let options = small().with_registry(registry.as_ref()?);
        let options =
            options.with_keyword("pattern", move |_, value, _| Ok(Box::new(LazyPattern(patterns.keyword(value)))));
        options.build(&json!({"$ref": reference})).ok()
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
    /// `None` if it is no list with a discriminator.
    elements: OnceLock<Option<Elements>>,
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
}

impl Part {
    fn elements(&self, document: &Value, name: &str) -> Option<&Elements> {
        self.elements.get_or_init(|| Elements::of(document, &pointer(name))).as_ref()
    }
}

/// Where the schema of a member stands.
fn pointer(member: &str) -> String {
    format!("/properties/{member}")
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
        Document::new(schema.clone(), &Arc::default()).parts.is_some()
    }

    /// What a schema says of a body, by its parts if it has any: the same as the whole.
    fn accepts(schema: &Value, body: &Value) -> bool {
        let accepted = Document::new(schema.clone(), &Arc::default()).accepts(Subject::Value(body), None);
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
    fn lists_with_a_discriminator_take_what_the_whole_takes() {
        let text = |kind: &str, pattern: &str, required: Value| {
            json!({
                "type": "object",
                "properties": {"type": {"const": kind}, "text": {"type": "string", "pattern": pattern}},
                "required": required,
                "additionalProperties": false
            })
        };
        let schema = closed(json!({"properties": {"a": {
            "type": ["array", "string"],
            "minItems": 1,
            "maxItems": 2,
            "items": {"x-reqc-discriminator": "type", "oneOf": [
                text("x", "^x+$", json!(["type", "text"])), {"$ref": "#/$defs/y"}, text("z", "(", json!(["type"]))
            ]}
        }}, "$defs": {"y": text("y", "\\S", json!([]))}}));
        let document = Document::new(schema.clone(), &Arc::default());
        assert!(document.part("a").expect("a part").elements(&schema, "a").is_some());
        for (a, expected) in [
            (json!("text"), true),
            (json!([{"type": "x", "text": "xx"}]), true),
            (json!([{"type": "x", "text": "xy"}]), false),
            (json!([{"type": "x"}]), false),
            (json!([{"type": "y", "text": "y"}, {"text": "x"}]), true),
            (json!([{"text": " "}]), false),
            (json!([{"type": "w"}]), false),
            (json!([{"type": 1}]), false),
            (json!(["x"]), false),
            (json!([]), false),
            (json!([{}, {}, {}]), false),
        ] {
            let body = json!({"a": a});
            let mut valid = schema.clone();
            // A pattern that is no regular expression hurts only those who meet it.
            valid["properties"]["a"]["items"]["oneOf"][2] = text("z", "z", json!(["type"]));
            assert_eq!(accepts(&valid, &body), expected, "{body}");
            assert_eq!(document.accepts(Subject::Value(&body), None), expected, "{body}");
        }
        let mut wider = schema.clone();
        wider["properties"]["a"]["items"]["oneOf"][0]["properties"]["more"] = json!({"type": "integer"});
        let wider = Document::new(wider, &Arc::default());
        let body = json!({"a": [{"type": "x", "text": "x", "more": 1}, {"type": "y"}]});
        assert!(!document.accepts(Subject::Value(&body), None));
        assert!(wider.accepts(Subject::Value(&body), Some(&document)));
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
