//! Removes keywords whose values have the wrong type, which would make the schema invalid.

use serde_json::{Map, Value};

use super::Lowering;
use crate::json::{Pointer, kind_of};

/// The required type of a keyword's value.
enum Kind {
    Type,
    Schema,
    Schemas,
    SchemasByName,
    Names,
    Number,
    Count,
    Text,
    List,
    Flag,
}

fn kind(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "type" => Kind::Type,
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "additionalItems" => Kind::Schema,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Kind::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            Kind::SchemasByName
        }
        "required" => Kind::Names,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Kind::Number
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Kind::Count,
        "pattern" | "format" | "$ref" | "description" | "title" => Kind::Text,
        "enum" => Kind::List,
        "uniqueItems" => Kind::Flag,
        _ => return None,
    })
}

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

impl Kind {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Kind::Type => {
                is_type(value)
                    || value
                        .as_array()
                        .is_some_and(|names| !names.is_empty() && names.iter().all(is_type))
            }
            Kind::Schema => is_schema(value),
            Kind::Schemas => value
                .as_array()
                .is_some_and(|list| !list.is_empty() && list.iter().all(is_schema)),
            Kind::SchemasByName => value
                .as_object()
                .is_some_and(|named| named.values().all(is_schema)),
            Kind::Names => value
                .as_array()
                .is_some_and(|names| names.iter().all(Value::is_string)),
            Kind::Number => value.is_number(),
            Kind::Count => value
                .as_f64()
                .is_some_and(|count| count >= 0.0 && count.fract() == 0.0),
            Kind::Text => value.is_string(),
            Kind::List => value.is_array(),
            Kind::Flag => value.is_boolean(),
        }
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

impl Lowering<'_> {
    /// Removes keywords with invalid values, together with the keywords whose meaning depends on
    /// them.
    pub(super) fn tidy(&mut self, schema: &mut Map<String, Value>, at: &Pointer) {
        // Older drafts allow a list here.
        let is_older = |name: &str, value: &Value| {
            let takes_lists = self.speech.is_whole() || self.keeps_items;
            name == "items" && value.is_array() && takes_lists
        };
        let wrong: Vec<(String, &str)> = schema
            .iter()
            .filter(|(name, value)| {
                kind(name).is_some_and(|kind| !kind.fits(value)) && !is_older(name, value)
            })
            .map(|(name, value)| (name.clone(), kind_of(value)))
            .collect();
        for (name, kind) in wrong {
            self.lose(at, &name, &format!("is {kind}, which is not a JSON Schema"));
            if name == "items" && !self.speech.is_whole() {
                schema.remove("additionalItems");
            }
            schema.remove(&name);
            if matches!(&*name, "properties" | "patternProperties")
                && schema.remove("additionalProperties").is_some()
            {
                self.lose(at, "additionalProperties", "is not checked");
            }
        }
    }
}
