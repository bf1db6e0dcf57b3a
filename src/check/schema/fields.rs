//! Functions for finding keywords and fields in a schema document.

use serde_json::Value;

use super::node::follow;

/// Returns the schema object that contains the keyword at a path.
pub(super) fn keyword_owner<'s>(schema: &'s Value, path: &str) -> Option<&'s Value> {
    let owner = path.rfind('/').map_or("", |at| &path[..at]);
    schema.pointer(owner)
}

pub(super) fn property_schema<'s>(node: Option<&'s Value>, name: &str) -> Option<&'s Value> {
    node?.get("properties")?.get(name)
}

/// Returns the fields that a schema object lists, also through `allOf` and `$ref`.
pub(super) fn known_fields(schema: &Value, node: Option<&Value>) -> Vec<String> {
    let Some(node) = node.map(|node| follow(schema, node)) else {
        return Vec::new();
    };
    let own = node
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|fields| fields.keys().cloned());
    let parts = node
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut known: Vec<String> = own
        .chain(parts.flat_map(|part| known_fields(schema, Some(part))))
        .collect();
    known.sort();
    known.dedup();
    known
}
