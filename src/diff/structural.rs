//! Compares two JSON values, member by member and element by element.

use serde_json::{Map, Value};
use similar::DiffOp;

use super::bounded;
use crate::json::Pointer;

/// A difference between two values.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The location in the new value; for a removed value, the location in the old value.
    pub pointer: Pointer,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// A change to a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileChange {
    /// The file is new.
    New,
    /// The file is no longer needed.
    Gone,
    /// The file contains the same JSON, but different bytes.
    Reformatted,
    /// The file did not contain JSON.
    Broken,
}

/// The change at a location.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The file as a whole; the pointer is the root.
    File(FileChange),
    /// An added value.
    Added(Value),
    /// A removed value.
    Removed(Value),
    /// A replaced value: the old and the new value.
    Replaced(Value, Value),
    /// The same members in a different order: the keys in the old order and in the new order.
    Reordered(Vec<String>, Vec<String>),
}

/// Returns the differences between two values, in document order.
pub fn structural(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(&Pointer::root(), old, new, &mut changes);
    changes
}

fn compare(at: &Pointer, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => compare_objects(at, old, new, changes),
        (Value::Array(old), Value::Array(new)) => compare_arrays(at, old, new, changes),
        (old, new) if old == new => {}
        (old, new) => {
            changes.push(Change {
                pointer: at.clone(),
                kind: ChangeKind::Replaced(old.clone(), new.clone()),
            });
        }
    }
}

fn compare_objects(
    at: &Pointer,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        changes.push(Change {
            pointer: at.member(key),
            kind: ChangeKind::Removed(value.clone()),
        });
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) => compare(&at.member(key), before, value, changes),
            None => changes.push(Change {
                pointer: at.member(key),
                kind: ChangeKind::Added(value.clone()),
            }),
        }
    }
    let (before, after) = (common(old, new), common(new, old));
    if before != after {
        changes.push(Change {
            pointer: at.clone(),
            kind: ChangeKind::Reordered(before, after),
        });
    }
}

fn common(from: &Map<String, Value>, other: &Map<String, Value>) -> Vec<String> {
    from.keys()
        .filter(|key| other.contains_key(*key))
        .cloned()
        .collect()
}

fn compare_arrays(at: &Pointer, old: &[Value], new: &[Value], changes: &mut Vec<Change>) {
    let [before, after] = [old, new].map(texts);
    for op in bounded::operations(&bounded::as_strs(&before), &bounded::as_strs(&after)) {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete {
                old_index, old_len, ..
            } => removed(at, old, old_index..old_index + old_len, changes),
            DiffOp::Insert {
                new_index, new_len, ..
            } => added(at, new, new_index..new_index + new_len, changes),
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => {
                // In a replaced run, elements at the same position are treated as versions of each
                // other.
                let paired = old_len.min(new_len);
                for offset in 0..paired {
                    compare(
                        &at.element(new_index + offset),
                        &old[old_index + offset],
                        &new[new_index + offset],
                        changes,
                    );
                }
                removed(at, old, old_index + paired..old_index + old_len, changes);
                added(at, new, new_index + paired..new_index + new_len, changes);
            }
        }
    }
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(Value::to_string).collect::<Vec<_>>()
}

fn removed(at: &Pointer, old: &[Value], range: std::ops::Range<usize>, changes: &mut Vec<Change>) {
    changes.extend(range.map(|index| Change {
        pointer: at.element(index),
        kind: ChangeKind::Removed(old[index].clone()),
    }));
}

fn added(at: &Pointer, new: &[Value], range: std::ops::Range<usize>, changes: &mut Vec<Change>) {
    changes.extend(range.map(|index| Change {
        pointer: at.element(index),
        kind: ChangeKind::Added(new[index].clone()),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests build the values in place"
    )]
    fn shown(old: Value, new: Value) -> Vec<String> {
        structural(&old, &new)
            .iter()
            .map(|change| {
                format!(
                    "{} {:?}",
                    change.pointer.as_str(),
                    std::mem::discriminant(&change.kind)
                        == std::mem::discriminant(&ChangeKind::Added(Value::Null))
                )
            })
            .collect()
    }

    #[test]
    fn scalars_members_and_elements() {
        assert_eq!(
            shown(
                json!({"a": 1, "b": [1, 2]}),
                json!({"a": 2, "b": [1, 2, 3]})
            ),
            ["/a false", "/b/2 true"]
        );
        assert_eq!(
            structural(&json!({"a": 1}), &json!({"a": 1.0})).len(),
            1,
            "1 and 1.0 are different bytes"
        );
        assert_eq!(
            structural(
                &json!([{"t": "x"}, {"t": "y"}]),
                &json!([{"t": "z"}, {"t": "y"}])
            )
            .len(),
            1
        );
    }

    #[test]
    fn long_lists_in_another_order_are_compared_place_by_place() {
        let list = |numbers: Vec<u32>| json!({"a": numbers});
        let count = |old: Vec<u32>, new: Vec<u32>| structural(&list(old), &list(new)).len();
        let shuffled = (0..100_000).map(|at| at * 7_919 % 100_000).collect();
        assert_eq!(count((0..100_000).collect(), shuffled), 100_000 - 2);
        // An additional element at the start of a long list is a single change.
        assert_eq!(count((1..100_000).collect(), (0..100_000).collect()), 1);
    }

    #[test]
    fn order_counts() {
        let (old, new) = (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}));
        let changes = structural(&old, &new);
        assert!(
            matches!(
                &changes[..],
                [Change {
                    kind: ChangeKind::Reordered(..),
                    ..
                }]
            ),
            "{changes:?}"
        );
    }
}
