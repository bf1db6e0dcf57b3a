//! The schemas inside a JSON Schema.

use serde_json::Value;

/// The keywords whose value is one schema.
const ONE: [&str; 10] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// The keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// The keywords whose value maps names to schemas.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Visits a schema and all its subschemas, outermost first.
pub(crate) fn visit<'b>(schema: &'b Value, see: &mut impl FnMut(&'b Value)) {
    let Some(members) = schema.as_object() else {
        return;
    };
    see(schema);
    for (name, value) in members {
        match (name.as_str(), value) {
            (name, Value::Object(_)) if ONE.contains(&name) => visit(value, see),
            (name, Value::Object(named)) if MAPS.contains(&name) => {
                named.values().for_each(|inner| visit(inner, see));
            }
            (name, Value::Array(list)) if LISTS.contains(&name) || name == "items" => {
                list.iter().for_each(|inner| visit(inner, see));
            }
            _ => {}
        }
    }
}

/// Returns the values in a schema that should be schemas but are not.
pub(crate) fn no_schemas(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            (name, Value::Object(named)) if MAPS.contains(&name) => found.extend(named.values()),
            (name, Value::Array(list)) if LISTS.contains(&name) || name == "items" => {
                found.extend(list);
            }
            (name, other) if ONE.contains(&name) => found.push(other),
            _ => {}
        }
    }
    found.retain(|value| !value.is_object() && !value.is_boolean());
    found
}
