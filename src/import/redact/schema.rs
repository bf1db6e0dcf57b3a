//! Redacts tool schemas. Prose and examples are replaced; types, limits and property names stay.

use serde_json::{Map, Value};

use super::{text, value};

/// Keywords whose value is prose.
const PROSE: [&str; 3] = ["description", "title", "$comment"];

/// Keywords whose value is data for a tool's arguments.
const DATA: [&str; 4] = ["const", "default", "example", "examples"];

/// Keywords whose value maps names to schemas.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

pub(super) fn redact(schema: &mut Map<String, Value>) {
    // A pattern with replaced letters would have a different meaning, or be invalid.
    if schema.get("pattern").is_some_and(Value::is_string) {
        schema.shift_remove("pattern");
    }
    for (keyword, inner) in schema.iter_mut() {
        match (keyword.as_str(), inner) {
            (name, Value::String(prose)) if PROSE.contains(&name) => *prose = text(prose),
            ("enum", inner) => choices(inner),
            (name, inner) if DATA.contains(&name) => value(inner),
            (name, Value::Object(schemas)) if NAMED.contains(&name) => {
                schemas.values_mut().for_each(below);
            }
            (_, inner) => below(inner),
        }
    }
}

fn below(it: &mut Value) {
    match it {
        Value::Object(schema) => redact(schema),
        Value::Array(schemas) => schemas.iter_mut().for_each(below),
        _ => {}
    }
}

/// Replaces the values of an enumeration. Different values may become equal, so duplicates are
/// removed.
fn choices(it: &mut Value) {
    value(it);
    if let Value::Array(values) = it {
        let mut kept: Vec<Value> = Vec::with_capacity(values.len());
        std::mem::take(values).into_iter().for_each(|value| {
            if !kept.contains(&value) {
                kept.push(value);
            }
        });
        *values = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_types_stay() {
        let mut schema = json!({
            "type": "object",
            "description": "A file",
            "properties": {
                "description": {"type": "string", "pattern": "^a\\d$", "enum": ["one", "two", "three"]},
                "pattern": {"type": "integer", "default": 17}
            },
            "required": ["pattern"]
        });
        redact(schema.as_object_mut().expect("an object"));
        let expected = json!({
            "type": "object",
            "description": "X xxxx",
            "properties": {
                "description": {"type": "string", "enum": ["xxx", "xxxxx"]},
                "pattern": {"type": "integer", "default": 10}
            },
            "required": ["pattern"]
        });
        assert_eq!(schema, expected);
    }
}
