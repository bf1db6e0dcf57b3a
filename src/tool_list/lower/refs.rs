//! References within a schema.

use std::collections::HashSet;

use serde_json::Value;

use crate::json::Pointer;

/// A schema document whose references can be resolved.
pub(super) struct Refs<'s> {
    root: &'s Value,
    /// `true` if an inner schema has its own `$id`. References are then relative to this `$id`.
    is_rebased: bool,
}

/// The maximum length of a reference chain.
const LONGEST: usize = 20;

impl<'s> Refs<'s> {
    pub(super) fn of(root: &'s Value) -> Refs<'s> {
        let is_rebased = any(root, &mut |value| {
            !std::ptr::eq(value, root) && value.get("$id").is_some_and(Value::is_string)
        });
        Refs { root, is_rebased }
    }

    /// Returns the target of a reference; `None` if it is not in the document.
    pub(super) fn find(&self, target: &str) -> Option<&'s Value> {
        let pointer = Pointer::of_fragment(target).filter(|_| !self.is_rebased)?;
        self.root
            .pointer(pointer.as_str())
            .filter(|found| found.is_object() || found.is_boolean())
    }

    /// Returns a schema or, if it is a reference, the reference's final target.
    pub(super) fn resolved(&self, schema: &Value) -> Value {
        let mut schema = schema;
        let mut seen = HashSet::new();
        while let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let is_new = seen.insert(target) && seen.len() < LONGEST;
            match self.find(target).filter(|_| is_new) {
                Some(next) => schema = next,
                None => return Value::Object(serde_json::Map::new()),
            }
        }
        schema.clone()
    }

    /// Returns `true` if a reference in a schema has no target.
    pub(super) fn has_dangling(&self, schema: &Value) -> bool {
        let dangles = |value: &Value| {
            let target = value.get("$ref").and_then(Value::as_str);
            target.is_some_and(|target| self.find(target).is_none())
        };
        any(schema, &mut |value| dangles(value))
    }
}

/// Returns `true` if a schema contains a reference.
pub(super) fn holds_any(schema: &Value) -> bool {
    any(schema, &mut |value| {
        ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .any(|name| value.get(*name).is_some())
    })
}

/// Returns `true` if a schema contains a reference to the root.
pub(super) fn holds_root(schema: &Value) -> bool {
    any(schema, &mut |value| {
        value
            .get("$ref")
            .is_some_and(|target| *target == "#" || *target == "")
    })
}

/// Returns `true` if a schema contains a reference to anything but its `$defs`.
pub(super) fn leaves_definitions(schema: &Value) -> bool {
    any(schema, &mut |value| {
        let target = value.get("$ref").and_then(Value::as_str);
        target.is_some_and(|target| !target.starts_with("#/$defs/"))
    })
}

/// Returns `true` if a value, or any value in it, satisfies the condition.
fn any(value: &Value, is_one: &mut dyn FnMut(&Value) -> bool) -> bool {
    is_one(value)
        || match value {
            Value::Array(elements) => elements.iter().any(|element| any(element, is_one)),
            Value::Object(members) => members.values().any(|member| any(member, is_one)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}
