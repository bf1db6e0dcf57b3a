//! Measures in advance how much work it takes to validate a value against a schema.
//!
//! The measure is an upper bound. Its unit is the work of applying one schema to one value; it
//! includes the work for text and comparisons. A validator that stops at the first mistake does
//! less work. A schema that is reached in several ways is measured only once, so measuring is cheap
//! even if validation takes exponential time.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;

use super::graph::{Graph, Schema, SchemaId};

/// The maximum number of measurements. Each pair of schema and value is one measurement.
const MAX_PAIRS: u64 = 2_000_000;
/// The number of bytes whose processing takes as long as applying one schema.
const BYTES: u64 = 64;
/// The number of values that are copied in the time that it takes to apply one schema.
const COPIED: u64 = 8;

/// Returns the cost of validating a value against a whole document; `None` if there is too much to
/// measure.
pub(super) fn cost(graph: &Graph, value: &Value) -> Option<u64> {
    cost_of(graph, 0, value)
}

/// Returns the cost of validating a value against one schema of the document.
pub(super) fn cost_of(graph: &Graph, schema: SchemaId, value: &Value) -> Option<u64> {
    let mut meter = Meter {
        graph,
        nodes: nodes(value),
        known: HashMap::new(),
        left: MAX_PAIRS,
    };
    meter.cost(schema, 0)
}

/// A value, the total number of values in it, and the range of its children.
struct Node<'v> {
    value: &'v Value,
    /// The number of values in this value, including itself.
    size: u64,
    /// The indexes of the direct children.
    parts: Range<usize>,
}

/// Lists a value and all values in it. The children of each value form one range of the list.
fn nodes(value: &Value) -> Vec<Node<'_>> {
    let mut nodes = vec![node(value)];
    let mut next = 0;
    while next < nodes.len() {
        let first = nodes.len();
        match nodes[next].value {
            Value::Array(elements) => nodes.extend(elements.iter().map(node)),
            Value::Object(members) => nodes.extend(members.values().map(node)),
            _ => {}
        }
        nodes[next].parts = first..nodes.len();
        next += 1;
    }
    for at in (0..nodes.len()).rev() {
        nodes[at].size += nodes[nodes[at].parts.clone()]
            .iter()
            .map(|part| part.size)
            .sum::<u64>();
    }
    nodes
}

fn node(value: &Value) -> Node<'_> {
    Node {
        value,
        size: 1,
        parts: 0..0,
    }
}

struct Meter<'g, 'v> {
    graph: &'g Graph,
    nodes: Vec<Node<'v>>,
    /// The measured costs of schemas that are reached in several ways, by schema and by index of
    /// the value.
    known: HashMap<(SchemaId, usize), u64>,
    left: u64,
}

impl<'g> Meter<'g, '_> {
    fn cost(&mut self, id: SchemaId, at: usize) -> Option<u64> {
        let schema = &self.graph.schemas[id];
        if schema.uses > 1
            && let Some(known) = self.known.get(&(id, at))
        {
            return Some(*known);
        }
        self.left = self.left.checked_sub(1)?;
        let mut cost = own(schema, &self.nodes[at]);
        for inner in &schema.same {
            cost = cost.saturating_add(self.cost(*inner, at)?);
        }
        cost = cost.saturating_add(self.parts(schema, at)?);
        if schema.uses > 1 {
            self.known.insert((id, at), cost);
        }
        Some(cost)
    }

    fn parts(&mut self, schema: &'g Schema, at: usize) -> Option<u64> {
        let (mut cost, parts) = (0_u64, self.nodes[at].parts.clone());
        match self.nodes[at].value {
            Value::Object(members) => {
                for (name, part) in members.keys().zip(parts) {
                    cost = cost.saturating_add(self.member(schema, name, part)?);
                }
            }
            Value::Array(_) => {
                for (index, part) in parts.enumerate() {
                    let described = schema
                        .first_elements
                        .get(index)
                        .copied()
                        .or(schema.elements);
                    for id in described.into_iter().chain(schema.contains) {
                        cost = cost.saturating_add(self.cost(id, part)?);
                    }
                }
            }
            _ => {}
        }
        Some(cost)
    }

    fn member(&mut self, schema: &'g Schema, name: &str, at: usize) -> Option<u64> {
        let length = name.len() as u64;
        let named = schema.names.map_or(0, |id| {
            self.graph.schemas[id]
                .expansion
                .saturating_mul(1 + length / BYTES)
        });
        let mut cost = 1_u64.saturating_add(named);
        let others = schema
            .other_properties
            .filter(|_| !schema.properties.contains_key(name));
        for id in schema
            .properties
            .get(name)
            .copied()
            .into_iter()
            .chain(others)
        {
            cost = cost.saturating_add(self.cost(id, at)?);
        }
        for (pattern, id) in &schema.by_pattern {
            let matched = 1 + pattern.saturating_mul(length) / BYTES;
            cost = cost
                .saturating_add(matched)
                .saturating_add(self.cost(*id, at)?);
        }
        Some(cost)
    }
}

/// Returns the cost of a schema's own keywords, including copies of the value for alternatives that
/// do not accept it.
fn own(schema: &Schema, node: &Node<'_>) -> u64 {
    let text = node.value.as_str().map_or(0, str::len) as u64;
    let of_text = (text / BYTES).saturating_add(schema.pattern.saturating_mul(text) / BYTES);
    let compared = if schema.is_unique { node.size } else { 0 };
    let copied = schema.alternatives.saturating_mul(node.size) / COPIED;
    schema
        .weight
        .saturating_add(of_text)
        .saturating_add(compared)
        .saturating_add(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "tests build both in place")]
    fn of(schema: Value, value: Value) -> Option<u64> {
        cost(&Graph::of(&schema).expect("usable"), &value)
    }

    /// Each level is reached in two ways, so each level of the value doubles the work, but not the
    /// time for measuring it.
    #[test]
    fn exponential_work_is_measured_in_linear_time() {
        let twice = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let deep = (0..100).fold(json!(1), |value, _| json!({"a": value}));
        assert!(of(twice, deep).is_some_and(|cost| cost > u64::MAX / 2));
    }

    #[test]
    fn ordinary_work_is_linear() {
        let schema = json!({"properties": {"a": {"items": {"oneOf": [{"type": "string"}, {"type": "number"}]}}}});
        let value = |len: usize| json!({"a": vec![1; len]});
        let (once, twice) = (of(schema.clone(), value(1000)), of(schema, value(2000)));
        assert!(
            once.zip(twice)
                .is_some_and(|(once, twice)| twice <= once * 2 && once < 10_000),
            "{once:?} {twice:?}"
        );
    }

    #[test]
    fn long_texts_count_by_their_pattern() {
        let schema = |pattern: &str| json!({"pattern": pattern});
        let text = json!("a".repeat(1_000_000));
        let (simple, large) = (
            of(schema("^[a-z]+$"), text.clone()),
            of(schema("(a{50}){50}"), text),
        );
        assert!(
            simple < Some(200_000) && large > Some(30_000_000),
            "{simple:?} {large:?}"
        );
    }
}
