//! Navigation in a schema document.

use serde_json::Value;

/// Follows the `$ref`s of a schema within the document.
pub(crate) fn follow<'s>(schema: &'s Value, mut node: &'s Value) -> &'s Value {
    for _ in 0..16 {
        let target = node
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| schema.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) => node = target,
            None => break,
        }
    }
    node
}
