//! Lowers a schema: finds the most similar schema that a provider accepts and that is not stricter.
//!
//! Input: an argument schema, and the abilities of a provider's schema dialect ([`Speech`]).
//! Output: a schema that accepts every value that the original accepts, and the lost checks. A
//! keyword is omitted by itself only if the schema then accepts more values. If the schema would
//! accept fewer values, for example because the keyword is inside `not` or `if`, the whole `not` or
//! `if` is omitted.

mod refs;
mod speech;
mod conjunction;
mod typed;
mod tidy;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::json::Pointer;
use refs::Refs;
pub use speech::Speech;

/// A keyword that a lowered schema no longer checks, or checks less strictly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The location in the original schema that contains the keyword.
    pub pointer: String,
    /// The keyword that was removed or replaced.
    pub keyword: String,
    /// The effect on the keyword, as a phrase.
    pub became: String,
}

/// A lowered schema.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Lowered {
    /// The schema that the provider accepts.
    pub schema: Value,
    /// The checks that the schema no longer performs.
    pub losses: Vec<Loss>,
}

/// The reason why a dialect cannot express a schema without making it stricter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsayable {
    /// The location in the original schema.
    pub pointer: String,
    /// The reason, as a phrase.
    pub why: String,
}

/// The maximum number of schemas that may be inserted in place of references. One schema may be
/// inserted in many places.
const MOST_NODES: usize = 5_000;

/// The maximum nesting depth of schemas.
const DEEPEST: usize = 100;

/// Lowers an argument schema, which must be an object.
///
/// # Errors
///
/// Returns the reason if every schema in the dialect would be stricter.
pub fn lower(schema: &Value, speech: &Speech) -> Result<Lowered, Unsayable> {
    // The root becomes an object. References to the root may then have a wrong target.
    let narrows_root = speech.is_plain_root && schema.get("type") != Some(&"object".into());
    let keeps_refs = speech.takes_refs && !(narrows_root && refs::holds_root(schema));
    let first = attempt(schema, speech, keeps_refs);
    match first {
        // The target of a reference may have been omitted.
        Ok(lowered) if keeps_refs && Refs::of(&lowered.schema).has_dangling(&lowered.schema) => {
            attempt(schema, speech, false)
        }
        first => first,
    }
}

fn attempt(schema: &Value, speech: &Speech, keeps_refs: bool) -> Result<Lowered, Unsayable> {
    let mut lowering = Lowering {
        speech,
        keeps_refs,
        // A reference to another place may have a target that becomes weaker.
        keeps_items: speech.keeps_items && !refs::leaves_definitions(schema),
        refs: Refs::of(schema),
        losses: Vec::new(),
        open: Vec::new(),
        nodes: 0,
    };
    let root = match schema {
        Value::Object(members) => members.clone(),
        Value::Bool(true) => Map::new(),
        other => {
            lowering.lose(
                &Pointer::root(),
                "the schema",
                &format!("is {}: nothing is checked", crate::json::kind_of(other)),
            );
            Map::new()
        }
    };
    let root = if speech.is_plain_root {
        lowering.led_by_root(root)
    } else {
        root
    };
    let mut lowered = lowering.node(&root, &Pointer::root(), 0);
    if speech.is_plain_root {
        lowering.root(&mut lowered);
    }
    let schema = lowering.said(lowered)?;
    Ok(Lowered {
        schema,
        losses: lowering.losses,
    })
}

struct Lowering<'s> {
    speech: &'s Speech,
    keeps_refs: bool,
    /// `true` if `items` and `$defs` are kept as they are.
    keeps_items: bool,
    refs: Refs<'s>,
    losses: Vec<Loss>,
    /// The references that are currently being expanded.
    open: Vec<String>,
    nodes: usize,
}

impl Lowering<'_> {
    fn lose(&mut self, at: &Pointer, keyword: &str, became: &str) {
        let loss = Loss {
            pointer: at.as_str().to_owned(),
            keyword: keyword.to_owned(),
            became: became.to_owned(),
        };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// Replaces a reference at the root with its target, but keeps the root's definitions.
    fn led_by_root(&mut self, root: Map<String, Value>) -> Map<String, Value> {
        if !root.contains_key("$ref") {
            return root;
        }
        let at = Pointer::root();
        let checks = root
            .keys()
            .filter(|name| !speech::is_annotation(name) && !speech::says_nothing(name));
        for name in checks
            .filter(|name| *name != "$ref")
            .cloned()
            .collect::<Vec<_>>()
        {
            self.lose(&at, &name, "is next to `$ref`, and is not checked");
        }
        let mut found = match self.refs.resolved(&Value::Object(root.clone())) {
            Value::Object(found) if !found.is_empty() => found,
            _ => {
                self.lose(
                    &at,
                    "$ref",
                    "refers to a schema that cannot be resolved, and is not checked",
                );
                Map::new()
            }
        };
        found.extend(root.into_iter().filter(|(name, _)| is_definition(name)));
        found
    }

    /// Lowers a schema that is not the root.
    fn schema(&mut self, schema: &Value, at: &Pointer, depth: usize) -> Value {
        match schema {
            Value::Object(members) => Value::Object(self.node(members, at, depth)),
            Value::Bool(false) if !self.speech.takes_booleans => {
                self.lose(at, "false", "is not checked: any value is accepted");
                json!({})
            }
            Value::Bool(false) => Value::Bool(false),
            // `true`, or a value that is not a schema.
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => json!({}),
        }
    }

    fn node(
        &mut self,
        members: &Map<String, Value>,
        at: &Pointer,
        depth: usize,
    ) -> Map<String, Value> {
        self.nodes += 1;
        if depth > DEEPEST || self.nodes > MOST_NODES {
            self.lose(
                at,
                "the schema",
                "is too deep or too large, and is not checked",
            );
            return Map::new();
        }
        let mut out = members.clone();
        self.tidy(&mut out, at);
        if let Some(Value::String(target)) = out.get("$ref").cloned()
            && (!self.keeps_refs || self.refs.find(&target).is_none())
        {
            return self.written_out(&out, &target, at, depth);
        }
        if self.speech.has_lone_refs && out.contains_key("$ref") {
            self.alone(&mut out, at);
        }
        self.below(&mut out, at, depth);
        self.respelled(&mut out, at, depth);
        self.only_known(&mut out, at);
        out
    }

    /// Replaces a reference with its lowered target. Keywords next to a reference only apply in
    /// newer drafts, so omitting them does not make the schema stricter in any draft.
    fn written_out(
        &mut self,
        beside: &Map<String, Value>,
        target: &str,
        at: &Pointer,
        depth: usize,
    ) -> Map<String, Value> {
        let checks = beside
            .keys()
            .filter(|name| !speech::is_annotation(name) && *name != "$ref");
        for name in checks.cloned().collect::<Vec<_>>() {
            self.lose(at, &name, "is next to `$ref`, and is not checked");
        }
        let mut found = match self.refs.find(target) {
            _ if self.open.iter().any(|open| open == target) => {
                self.lose(
                    at,
                    "$ref",
                    "refers back to itself: deeper values are not checked",
                );
                Map::new()
            }
            None => {
                self.lose(
                    at,
                    "$ref",
                    "refers to no schema of this document, and is not checked",
                );
                Map::new()
            }
            Some(found) => {
                self.open.push(target.to_owned());
                let found = self.schema(found, at, depth + 1);
                self.open.pop();
                match found {
                    Value::Object(found) => found,
                    // The target is `false`, which is not an object.
                    _ => Map::from_iter([("not".to_owned(), json!({}))]),
                }
            }
        };
        let annotations = beside
            .iter()
            .filter(|(name, _)| self.speech.keeps_annotation(name));
        for (name, value) in annotations {
            found.insert(name.clone(), value.clone());
        }
        found
    }

    /// Removes the keywords next to a reference, except definitions.
    fn alone(&mut self, out: &mut Map<String, Value>, at: &Pointer) {
        let beside = out
            .keys()
            .filter(|name| !matches!(name.as_str(), "$ref" | "$defs" | "definitions"));
        for name in beside.cloned().collect::<Vec<_>>() {
            out.remove(&name);
            if !speech::is_annotation(&name) && !speech::says_nothing(&name) {
                self.lose(at, &name, "is next to `$ref`, and is not checked");
            }
        }
    }

    /// Lowers the schemas inside a schema.
    fn below(&mut self, out: &mut Map<String, Value>, at: &Pointer, depth: usize) {
        for name in [
            "properties",
            "patternProperties",
            "$defs",
            "definitions",
            "dependentSchemas",
        ] {
            let Some(Value::Object(inner)) = out.get(name).cloned() else {
                continue;
            };
            if self.keeps_items && is_definition(name) {
                let mut definitions = Value::Object(inner);
                self.without_patterns_by_name(&mut definitions, &at.member(name));
                out.insert(name.to_owned(), definitions);
                continue;
            }
            if !self.speech.keeps(name) && name != "properties" {
                continue;
            }
            let at = at.member(name);
            let lowered = inner.iter().map(|(key, schema)| {
                (key.clone(), self.schema(schema, &at.member(key), depth + 1))
            });
            let lowered: Map<String, Value> = lowered.collect();
            out.insert(name.to_owned(), Value::Object(lowered));
        }
        for name in [
            "items",
            "additionalProperties",
            "additionalItems",
            "propertyNames",
            "then",
            "else",
            "unevaluatedProperties",
            "unevaluatedItems",
        ] {
            let Some(inner @ Value::Object(_)) = out.get(name).cloned() else {
                continue;
            };
            if name == "items" && self.keeps_items {
                let mut inner = inner;
                self.without_patterns(&mut inner, &at.member(name));
                out.insert(name.to_owned(), inner);
                continue;
            }
            if self.speech.keeps(name) {
                out.insert(
                    name.to_owned(),
                    self.schema(&inner, &at.member(name), depth + 1),
                );
            }
        }
        for name in ["anyOf", "allOf", "prefixItems", "items"] {
            let Some(Value::Array(inner)) = out.get(name).cloned() else {
                continue;
            };
            if name == "items" && self.keeps_items {
                continue;
            }
            if !self.speech.keeps(name) && name != "allOf" {
                continue;
            }
            let lowered = inner.iter().enumerate();
            let lowered: Vec<Value> = lowered
                .map(|(index, schema)| {
                    self.schema(schema, &at.member(name).element(index), depth + 1)
                })
                .collect();
            out.insert(name.to_owned(), Value::Array(lowered));
        }
        self.exact(out, at, depth);
    }

    /// Removes the patterns that are not allowed from a schema that is otherwise kept as it is.
    /// Those in `not`, `if`, `oneOf` and `contains` stay, because these would become stricter.
    fn without_patterns(&mut self, schema: &mut Value, at: &Pointer) {
        let Value::Object(members) = schema else {
            return;
        };
        for name in self.speech.refused_patterns(members) {
            if name == "pattern" {
                members.remove(name);
                self.lose(at, name, "is not checked");
            }
        }
        for (name, inner) in members {
            let at = at.member(name);
            match name.as_str() {
                "items" | "additionalProperties" | "then" | "else" | "propertyNames" => {
                    self.without_patterns(inner, &at);
                }
                "anyOf" | "allOf" | "prefixItems" => {
                    let inner = inner.as_array_mut().into_iter().flatten().enumerate();
                    inner.for_each(|(index, inner)| {
                        self.without_patterns(inner, &at.element(index));
                    });
                }
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" => self.without_patterns_by_name(inner, &at),
                _ => {}
            }
        }
    }

    fn without_patterns_by_name(&mut self, schemas: &mut Value, at: &Pointer) {
        let schemas = schemas.as_object_mut().into_iter().flatten();
        schemas.for_each(|(name, inner)| self.without_patterns(inner, &at.member(name)));
    }

    /// Lowers schemas that must not become weaker: those in `not` and `if`, the alternatives of
    /// `oneOf`, and `contains` with an upper limit.
    fn exact(&mut self, out: &mut Map<String, Value>, at: &Pointer, depth: usize) {
        for name in ["not", "if", "contains"] {
            let Some(inner) = out.get(name).cloned().filter(|_| self.speech.keeps(name)) else {
                continue;
            };
            if name == "contains" && !out.contains_key("maxContains") {
                let lowered = self.schema(&inner, &at.member(name), depth + 1);
                out.insert(name.to_owned(), lowered);
                continue;
            }
            match self.unchanged(&inner, &at.member(name), depth) {
                Some(same) => {
                    out.insert(name.to_owned(), same);
                }
                None => self.drop_group(out, at, name),
            }
        }
        let Some(Value::Array(inner)) = out.get("oneOf").cloned() else {
            return;
        };
        let same: Option<Vec<Value>> = match self.speech.keeps("oneOf") {
            true => {
                let each = inner.iter().enumerate();
                each.map(|(index, schema)| {
                    self.unchanged(schema, &at.member("oneOf").element(index), depth)
                })
                .collect()
            }
            false => None,
        };
        if let Some(same) = same {
            out.insert("oneOf".to_owned(), Value::Array(same));
            return;
        }
        out.remove("oneOf");
        if out.contains_key("anyOf") || !self.speech.keeps("anyOf") {
            self.lose(at, "oneOf", "is not checked");
            self.forget_unevaluated(out, at);
            return;
        }
        self.lose(
            at,
            "oneOf",
            "became `anyOf`: several alternatives may match",
        );
        let lowered = inner.iter().enumerate();
        let lowered: Vec<Value> = lowered
            .map(|(index, schema)| {
                self.schema(schema, &at.member("oneOf").element(index), depth + 1)
            })
            .collect();
        out.insert("anyOf".to_owned(), Value::Array(lowered));
    }

    /// Returns a lowered schema if it loses nothing; otherwise `None`. References count as a loss
    /// unless the dialect is complete, because their targets may lose something elsewhere.
    fn unchanged(&mut self, schema: &Value, at: &Pointer, depth: usize) -> Option<Value> {
        let before = self.losses.len();
        let holds_refs = self.keeps_refs && !self.speech.is_whole() && refs::holds_any(schema);
        let lowered = self.schema(schema, at, depth + 1);
        // A default does not check anything.
        let mut losses = self.losses[before..].iter();
        let is_same = losses.all(|loss| loss.keyword == "default") && !holds_refs;
        self.losses.truncate(before);
        is_same.then_some(lowered)
    }

    /// Removes a keyword, together with the keywords whose meaning depends on it.
    fn drop_group(&mut self, out: &mut Map<String, Value>, at: &Pointer, name: &str) {
        let with: &[&str] = match name {
            "if" => &["then", "else"],
            "contains" => &["minContains", "maxContains"],
            "patternProperties" | "properties" => &["additionalProperties"],
            "prefixItems" => &["items"],
            _ => &[],
        };
        for name in [name]
            .iter()
            .chain(with)
            .filter(|name| out.contains_key(**name))
            .copied()
            .collect::<Vec<_>>()
        {
            out.remove(name);
            self.lose(at, name, "is not checked");
        }
        self.forget_unevaluated(out, at);
    }

    /// Removes the `unevaluated…` keywords. Their meaning depends on neighbouring keywords; once
    /// lowering has removed those keywords, the `unevaluated…` keywords would reject valid values.
    fn forget_unevaluated(&mut self, out: &mut Map<String, Value>, at: &Pointer) {
        for name in ["unevaluatedProperties", "unevaluatedItems"] {
            if out.remove(name).is_some() {
                self.lose(at, name, "is not checked");
            }
        }
    }

    /// Replaces keywords with equivalent or similar keywords that the dialect has.
    fn respelled(&mut self, out: &mut Map<String, Value>, at: &Pointer, depth: usize) {
        if !self.speech.keeps("const")
            && let Some(value) = out.remove("const")
        {
            match out.contains_key("enum") {
                true => self.lose(at, "const", "is not checked"),
                false => drop(out.insert("enum".to_owned(), json!([value]))),
            }
        }
        for (name, wider) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            let can_widen =
                !self.speech.keeps(name) && self.speech.keeps(wider) && !out.contains_key(wider);
            if can_widen && let Some(bound) = out.remove(name) {
                self.lose(
                    at,
                    name,
                    &format!("became `{wider}`: the bound itself is accepted"),
                );
                out.insert(wider.to_owned(), bound);
            }
        }
        if !self.speech.keeps("allOf")
            && let Some(Value::Array(all)) = out.remove("allOf")
        {
            let all: Vec<Value> = all
                .iter()
                .map(|part| self.led_to(part, at, depth))
                .collect();
            self.joined(out, &all, "allOf", at);
        }
        let least = out.get("minItems").and_then(Value::as_u64);
        if self
            .speech
            .most_min_items
            .is_some_and(|most| least.is_some_and(|least| least > most))
        {
            self.lose(at, "minItems", "became 1");
            out.insert("minItems".to_owned(), json!(1));
        }
        if self.speech.needs_items && is_type(out, "array") && !out.contains_key("items") {
            out.insert("items".to_owned(), json!({}));
        }
        if self.speech.defines_required {
            self.require_defined(out, at);
        }
        if self.speech.requires_properties {
            self.require_something(out, at);
        }
    }

    /// Removes `required` from a schema without properties.
    fn require_something(&mut self, out: &mut Map<String, Value>, at: &Pointer) {
        let properties = out.get("properties").and_then(Value::as_object);
        if properties.is_some_and(|properties| !properties.is_empty()) {
            return;
        }
        let required = out.remove("required");
        if required.is_some_and(|names| names.as_array().is_some_and(|names| !names.is_empty())) {
            self.lose(at, "required", "is not checked: no property is declared");
        }
    }

    /// Removes names from `required` that are not among the properties.
    fn require_defined(&mut self, out: &mut Map<String, Value>, at: &Pointer) {
        let Some(Value::Object(properties)) = out.get("properties") else {
            return;
        };
        let Some(Value::Array(required)) = out.get("required") else {
            return;
        };
        let kept: Vec<Value> = required
            .iter()
            .filter(|name| {
                let name = name.as_str();
                name.is_none_or(|name| properties.contains_key(name))
            })
            .cloned()
            .collect();
        if kept.len() < required.len() {
            out.insert("required".to_owned(), kept.into());
            self.lose(
                at,
                "required",
                "no longer lists names that are not in `properties`",
            );
        }
    }

    /// Removes keywords that the dialect does not have.
    fn only_known(&mut self, out: &mut Map<String, Value>, at: &Pointer) {
        let strangers: Vec<String> = out
            .keys()
            .filter(|name| !self.speech.keeps(name))
            .cloned()
            .collect();
        for name in strangers.iter().map(String::as_str) {
            let is_idle = out
                .get(name)
                .is_some_and(|value| *value == Value::Bool(true) || *value == json!({}));
            let is_idle = is_idle && matches!(name, "additionalProperties" | "items");
            if is_idle || speech::is_annotation(name) || speech::says_nothing(name) {
                out.remove(name);
                if name == "default" {
                    self.lose(at, name, "is left out: the model does not see it");
                }
            } else if out.contains_key(name) {
                self.drop_group(out, at, name);
            }
        }
        let format = out.get("format").and_then(Value::as_str);
        if format.is_some_and(|format| !self.speech.takes_format(format)) {
            out.remove("format");
            self.lose(at, "format", "is not checked");
        }
        for name in self.speech.refused_patterns(out) {
            self.drop_group(out, at, name);
        }
    }

    /// Removes keywords that are not allowed at the root.
    fn root(&mut self, out: &mut Map<String, Value>) {
        let at = Pointer::root();
        for name in ["enum", "not", "const"] {
            if self.speech.refuses_at_root.contains(&name) && out.remove(name).is_some() {
                self.lose(&at, name, "is not allowed at the root, and is not checked");
            }
        }
        if self.speech.refuses_at_root.contains(&"allOf")
            && let Some(Value::Array(all)) = out.remove("allOf")
        {
            let all: Vec<Value> = all.iter().map(|part| self.led_to(part, &at, 0)).collect();
            self.joined(out, &all, "allOf", &at);
        }
        for name in ["anyOf", "oneOf"] {
            if self.speech.refuses_at_root.contains(&name)
                && let Some(Value::Array(any)) = out.remove(name)
            {
                let any: Vec<Value> = any.iter().map(|part| self.led_to(part, &at, 0)).collect();
                self.lose(
                    &at,
                    name,
                    "is not allowed at the root: its properties are merged into one list",
                );
                self.forget_unevaluated(out, &at);
                conjunction::alternatives(out, &any);
            }
        }
        // Arguments are always an object, so no check is lost.
        out.insert("type".to_owned(), "object".into());
        out.entry("properties").or_insert_with(|| json!({}));
        self.named_properties(out);
    }

    /// Keeps only the properties whose names the provider accepts. Other properties are still
    /// allowed, but not checked.
    fn named_properties(&mut self, out: &mut Map<String, Value>) {
        let Some(is_taken) = self.speech.takes_property else {
            return;
        };
        let names = out
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys);
        let strange: Vec<String> = names.filter(|name| !is_taken(name)).cloned().collect();
        if strange.is_empty() {
            return;
        }
        let at = Pointer::root();
        for name in &strange {
            if let Some(properties) = out.get_mut("properties").and_then(Value::as_object_mut) {
                properties.remove(name);
            }
            self.lose(
                &at.member("properties"),
                name,
                "has a name that is not allowed, and is not declared",
            );
        }
        if out
            .get("additionalProperties")
            .is_some_and(|it| *it != Value::Bool(true))
        {
            out.remove("additionalProperties");
            self.lose(
                &at,
                "additionalProperties",
                "is not checked: a property cannot be declared",
            );
        }
        self.forget_unevaluated(out, &at);
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| {
                name.as_str()
                    .is_none_or(|name| !strange.iter().any(|it| it == name))
            });
        }
    }

    /// Returns a part of a schema that has already been lowered. If the part is a reference, it is
    /// replaced with its lowered target.
    fn led_to(&mut self, part: &Value, at: &Pointer, depth: usize) -> Value {
        match part.get("$ref") {
            Some(_) => {
                let found = self.refs.resolved(part);
                self.schema(&found, at, depth + 1)
            }
            None => part.clone(),
        }
    }

    /// Merges the parts of an `allOf` into the surrounding schema. Conflicting keywords are lost.
    fn joined(&mut self, out: &mut Map<String, Value>, all: &[Value], name: &str, at: &Pointer) {
        for (index, part) in all.iter().enumerate() {
            let Some(part) = part.as_object() else {
                continue;
            };
            for keyword in conjunction::join(out, part) {
                let at = at.member(name).element(index);
                self.lose(
                    &at,
                    &keyword,
                    "occurs twice with different values: only the other one is kept",
                );
            }
        }
        self.forget_unevaluated(out, at);
    }

    /// Applies the final step for the dialect.
    fn said(&mut self, lowered: Map<String, Value>) -> Result<Value, Unsayable> {
        match self.speech.finish {
            speech::Finish::AsItIs => Ok(Value::Object(lowered)),
            speech::Finish::OpenApi => speech::open_api(lowered, &mut self.losses),
            speech::Finish::Typed => Ok(typed::typed(lowered, &mut self.losses)),
            speech::Finish::Closed { needs_all } => {
                speech::closed(lowered, needs_all, &mut self.losses)
            }
        }
    }
}

fn is_definition(name: &str) -> bool {
    matches!(name, "$defs" | "definitions")
}

pub(super) fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}
