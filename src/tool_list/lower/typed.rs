//! The final step for Moonshot, where each schema has one type, with keywords for that type only.
//!
//! A keyword next to an `anyOf` does not also occur in the alternatives, and an `enum` contains
//! only values of its schema's type.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::speech::{is_annotation, lose, says_nothing, types};
use super::{Loss, conjunction};
use crate::json::Pointer;

/// Keywords that are only meaningful together. They are moved into alternatives together.
const GROUPS: [&[&str]; 4] = [
    &[
        "properties",
        "required",
        "patternProperties",
        "additionalProperties",
    ],
    &["items", "prefixItems", "additionalItems"],
    &["contains", "minContains", "maxContains"],
    &["if", "then", "else"],
];

/// At least one of these keywords must define the type of a property.
const KINDS: [&str; 5] = ["type", "anyOf", "oneOf", "allOf", "$ref"];

/// The types of JSON Schema; `number` includes integers.
const ALL_KINDS: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

/// Converts a schema. `losses` receives the checks that it no longer performs.
pub(super) fn typed(root: Map<String, Value>, losses: &mut Vec<Loss>) -> Value {
    Value::Object(node(root, &Pointer::root(), losses))
}

fn schema(schema: Value, at: &Pointer, losses: &mut Vec<Loss>) -> Value {
    match schema {
        Value::Object(members) => Value::Object(node(members, at, losses)),
        other => other,
    }
}

fn node(mut node: Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) -> Map<String, Value> {
    into_alternatives(&mut node, at, losses);
    for (name, value) in &mut node {
        let at = at.member(name);
        match (name.as_str(), value) {
            ("properties", Value::Object(inner)) => {
                for (name, property) in inner {
                    let at = at.member(name);
                    let told = schema(property.take(), &at, losses);
                    *property = of_a_kind(told);
                }
            }
            (
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(inner),
            ) => {
                for (name, value) in inner {
                    *value = schema(value.take(), &at.member(name), losses);
                }
            }
            (
                "items" | "additionalProperties" | "then" | "else" | "propertyNames",
                value @ Value::Object(_),
            ) => *value = schema(value.take(), &at, losses),
            ("not" | "if" | "contains", value) => exact(value, &at),
            ("oneOf", Value::Array(inner)) => {
                for (index, value) in inner.iter_mut().enumerate() {
                    exact(value, &at.element(index));
                }
            }
            ("anyOf" | "allOf" | "prefixItems", Value::Array(inner)) => {
                for (index, value) in inner.iter_mut().enumerate() {
                    *value = schema(value.take(), &at.element(index), losses);
                }
            }
            _ => {}
        }
    }
    fit_enum(&mut node, at, losses);
    one_type_each(node, at, losses)
}

/// Converts a schema that must not become weaker, unless the conversion would lose a check.
fn exact(value: &mut Value, at: &Pointer) {
    let mut losses = Vec::new();
    let told = schema(value.clone(), at, &mut losses);
    if losses.is_empty() {
        *value = told;
    }
}

/// Moves the type of a schema, and the keywords that also occur in one of its alternatives, into
/// all of its alternatives.
fn into_alternatives(node: &mut Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) {
    let Some(Value::Array(branches)) = node.get("anyOf") else {
        return;
    };
    // An alternative that accepts nothing can be omitted.
    let branches: Vec<Map<String, Value>> = branches
        .iter()
        .filter(|branch| **branch != Value::Bool(false))
        .map(|branch| branch.as_object().cloned().unwrap_or_default())
        .collect();
    if branches.is_empty() {
        node.remove("anyOf");
        lose(losses, at, "anyOf", "accepts nothing, and is not checked");
        return;
    }
    let names: Vec<String> = node
        .keys()
        .filter(|name| is_moved(name, &branches))
        .cloned()
        .collect();
    let moved = names
        .into_iter()
        .filter_map(|name| node.remove(&name).map(|value| (name, value)));
    let moved: Map<String, Value> = moved.collect();
    let mut inner = Vec::new();
    for (index, mut branch) in branches.into_iter().enumerate() {
        let at = at.member("anyOf").element(index);
        for keyword in conjunction::join(&mut branch, &moved) {
            lose(
                losses,
                &at,
                &keyword,
                "occurs twice with different values: only the other one is kept",
            );
        }
        require_defined(&mut branch, &at, losses);
        inner.push(Value::Object(branch));
    }
    node.insert("anyOf".to_owned(), Value::Array(inner));
}

/// Returns `true` if a keyword of a schema must be moved into the schema's alternatives.
fn is_moved(name: &str, branches: &[Map<String, Value>]) -> bool {
    if name == "anyOf" || is_annotation(name) || says_nothing(name) {
        return false;
    }
    let group = GROUPS.iter().find(|group| group.contains(&name));
    let own = [name];
    let together = group.copied().unwrap_or(&own);
    matches!(name, "type" | "enum" | "const")
        || together
            .iter()
            .any(|name| branches.iter().any(|branch| branch.contains_key(*name)))
}

/// Removes names from `required` that are not among the properties.
fn require_defined(node: &mut Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) {
    let properties = node.get("properties").and_then(Value::as_object).cloned();
    let Some(Value::Array(required)) = node.get_mut("required") else {
        return;
    };
    let before = required.len();
    required.retain(|name| {
        name.as_str().is_none_or(|name| {
            let mut properties = properties.iter();
            properties.any(|properties| properties.contains_key(name))
        })
    });
    let (is_less, is_empty) = (required.len() < before, required.is_empty());
    if is_less {
        lose(
            losses,
            at,
            "required",
            "no longer lists names that are not in `properties`",
        );
    }
    if is_less && is_empty {
        node.remove("required");
    }
}

/// Removes the values of an `enum` that do not have the type of the schema. No value could match
/// them.
fn fit_enum(node: &mut Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) {
    let kinds = node.get("type").map(types).unwrap_or_default();
    let Some(Value::Array(values)) = node.get_mut("enum") else {
        return;
    };
    values.retain(|value| kinds.is_empty() || kinds.iter().any(|kind| is_of_kind(value, kind)));
    if values.is_empty() {
        node.remove("enum");
        lose(losses, at, "enum", "accepts nothing, and is not checked");
    }
}

fn is_of_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        kind => kind_of_value(value) == kind,
    }
}

fn kind_of_value(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Splits a schema that has several types and other keywords into alternatives, and adds types to a
/// schema that has an `enum` but no type.
fn one_type_each(
    mut node: Map<String, Value>,
    at: &Pointer,
    losses: &mut Vec<Loss>,
) -> Map<String, Value> {
    let kinds = node.get("type").map(types).unwrap_or_default();
    let values = node.get("enum").and_then(Value::as_array);
    match (kinds.as_slice(), values) {
        ([], Some(values)) if !node.contains_key("anyOf") => {
            let kinds: BTreeSet<&str> = values.iter().map(kind_of_value).collect();
            split(
                node,
                &kinds.into_iter().map(str::to_owned).collect::<Vec<_>>(),
            )
        }
        ([] | [_], _) => node,
        ([_, _], Some(_)) if is_nullable(&kinds) => node,
        (several, _) => {
            let is_alone = node
                .keys()
                .all(|name| name == "type" || is_annotation(name) || says_nothing(name));
            if is_alone {
                return node;
            }
            let several = several.to_vec();
            node.remove("type");
            drop_large(&mut node, at, losses);
            split(node, &several)
        }
    }
}

/// The maximum size of a subschema that is repeated for each type, in values. Each level of such a
/// schema repeats the levels inside it.
const LARGEST_REPEATED: usize = 200;

/// Removes the subschemas that are too large to be repeated for each type.
fn drop_large(node: &mut Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) {
    const REPEATED: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
    let large = REPEATED.into_iter().filter(|name| {
        let value = node.get(*name);
        value.is_some_and(|value| values_in(value) > LARGEST_REPEATED)
    });
    for name in large.collect::<Vec<_>>() {
        node.remove(name);
        // Without its condition, a consequence would apply to every value.
        if name == "if" {
            node.remove("then");
            node.remove("else");
        }
        lose(
            losses,
            at,
            name,
            "is not checked: it is too large to be repeated for each type",
        );
    }
}

/// Returns the number of values in a value, including itself.
fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(values_in).sum::<usize>(),
        Value::Object(members) => members.values().map(values_in).sum(),
        _ => 0,
    }
}

/// Returns `true` if Moonshot's validator accepts an `enum` next to these two types: `null` and a
/// type other than object or array.
fn is_nullable(kinds: &[String]) -> bool {
    let holds = ["object", "array"];
    kinds.iter().any(|kind| kind == "null") && !kinds.iter().any(|kind| holds.contains(&&**kind))
}

/// Adds a type to a property that has none: the type of its values, or alternatives for all types.
fn of_a_kind(property: Value) -> Value {
    let members = match property {
        Value::Object(members) => members,
        other => return other,
    };
    if KINDS.iter().any(|name| members.contains_key(*name)) {
        return Value::Object(members);
    }
    let kinds: Vec<String> = match members.get("const") {
        Some(value) => vec![kind_of_value(value).to_owned()],
        None => ALL_KINDS.map(str::to_owned).to_vec(),
    };
    Value::Object(split(members, &kinds))
}

/// Returns a schema with one type, or with alternatives that have one type each. Annotations and
/// definitions stay next to the alternatives.
fn split(mut node: Map<String, Value>, kinds: &[String]) -> Map<String, Value> {
    if let [kind] = kinds {
        node.insert("type".to_owned(), json!(kind));
        return node;
    }
    let (annotations, checks): (Map<String, Value>, Map<String, Value>) = node
        .into_iter()
        .partition(|(name, _)| is_annotation(name) || says_nothing(name));
    let mut branches = Vec::new();
    for kind in kinds {
        let applicable = checks.iter().filter(|(name, _)| applies(name, kind));
        let mut branch: Map<String, Value> = applicable
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        branch.insert("type".to_owned(), json!(kind));
        if let Some(Value::Array(values)) = branch.get_mut("enum") {
            values.retain(|value| is_of_kind(value, kind));
            if values.is_empty() {
                continue;
            }
        }
        branches.push(Value::Object(branch));
    }
    let mut said = annotations;
    said.insert("anyOf".to_owned(), Value::Array(branches));
    said
}

/// Returns `true` if a keyword checks values of a type.
fn applies(keyword: &str, kind: &str) -> bool {
    match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas" => kind == "object",
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains"
        | "minContains" | "maxContains" => kind == "array",
        "minLength" | "maxLength" | "pattern" | "format" => kind == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(kind, "number" | "integer")
        }
        _ => true,
    }
}
