//! References within the schemas in a body.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::Pointer;
use crate::json::subschemas::visit;

/// Returns the target of a schema that is a reference; `None` for other schemas.
pub(super) fn of(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

/// Returns `true` if a schema refers to a location in its document that does not exist.
pub(super) fn is_lost(root: &Value, inner: &Value) -> bool {
    let target = of(inner).and_then(Pointer::of_fragment);
    target.is_some_and(|target| root.pointer(target.as_str()).is_none())
}

/// Returns the reference targets that belong to a cycle or lead to one.
///
/// Targets without references are removed, then targets that refer only to removed ones, and so on.
/// The remaining targets are the result. The work is linear in the targets' size.
pub(super) fn in_circles(root: &Value) -> HashSet<Pointer> {
    let targets = targets(root);
    let mut referring: HashMap<&Pointer, Vec<&Pointer>> = HashMap::new();
    let mut open: HashMap<&Pointer, usize> = HashMap::new();
    for (target, next) in &targets {
        open.insert(target, next.len());
        for other in next {
            referring.entry(other).or_default().push(target);
        }
    }
    let mut ended: Vec<&Pointer> = open
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(target, _)| *target)
        .collect();
    while let Some(end) = ended.pop() {
        open.remove(end);
        for target in referring.remove(end).unwrap_or_default() {
            if let Some(count) = open.get_mut(target) {
                *count -= 1;
                if *count == 0 {
                    ended.push(target);
                }
            }
        }
    }
    open.into_keys().cloned().collect()
}

/// Returns all targets in a schema, each with the targets to which it refers.
fn targets(root: &Value) -> HashMap<Pointer, Vec<Pointer>> {
    let mut targets = HashMap::new();
    let mut open = within(root);
    while let Some(target) = open.pop() {
        if targets.contains_key(&target) {
            continue;
        }
        let next = root
            .pointer(target.as_str())
            .map(within)
            .unwrap_or_default();
        open.extend(next.iter().cloned());
        targets.insert(target, next);
    }
    targets
}

/// Returns the targets to which a schema and its subschemas refer.
fn within(schema: &Value) -> Vec<Pointer> {
    let mut found = Vec::new();
    visit(schema, &mut |inner| {
        found.extend(of(inner).and_then(Pointer::of_fragment));
    });
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn circular(schema: &Value) -> Vec<String> {
        let mut found: Vec<String> = in_circles(schema)
            .into_iter()
            .map(|it| it.as_str().to_owned())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn circles_are_found_at_any_length() {
        let own = json!({"properties": {"below": {"$ref": "#"}}});
        assert_eq!(circular(&own), [""]);
        let two = json!({
            "properties": {"a": {"$ref": "#/$defs/a%20b"}, "c": {"$ref": "#/$defs/c"}},
            "$defs": {
                "a b": {"items": {"$ref": "#/$defs/d"}},
                "d": {"anyOf": [{"$ref": "#/$defs/a b"}, {"type": "null"}]},
                "c": {"properties": {"x": {"$ref": "#/$defs/e"}, "y": {"$ref": "#/$defs/e"}}},
                "e": {"type": "string"},
            },
        });
        assert_eq!(circular(&two), ["/$defs/a b", "/$defs/d"]);
    }

    #[test]
    fn what_leads_nowhere_is_no_circle() {
        for schema in [
            json!({"$ref": "#/$defs/none"}),
            json!({"$ref": "https://example.com/a.json"}),
            json!({"$ref": "#anchor"}),
            json!({"$ref": 1}),
            json!(true),
        ] {
            assert!(circular(&schema).is_empty(), "{schema}");
        }
    }

    #[test]
    fn a_long_chain_is_followed_once() {
        let last = 50_000;
        let defs: serde_json::Map<String, Value> = (0..last)
            .map(|at| {
                let next = format!("#/$defs/{}", at + 1);
                (at.to_string(), json!({"items": {"$ref": next}}))
            })
            .collect();
        let mut schema = json!({"$ref": "#/$defs/0", "$defs": defs});
        assert!(circular(&schema).is_empty());
        schema["$defs"][last.to_string()] = json!({"$ref": "#/$defs/0"});
        assert_eq!(circular(&schema).len(), last + 1);
    }
}
