//! Groups equal changes in many bodies.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::bounded::middles;
use super::hunks::{TextHunk, hunks};
use super::{Change, ChangeKind, FileChange};
use crate::json::Pointer;
use crate::secret::masked;
use crate::text::cut;

/// The agent and context of a compared body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId {
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The context; `None` for the agent's request line.
    pub context: Option<Arc<str>>,
}

/// A change, and the bodies in which it occurs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// The pointer, with `*` for indices that differ between bodies.
    pub pointer: String,
    /// The change in the first of these bodies.
    pub change: Change,
    /// `true` if the change is in `request.json`.
    pub is_request: bool,
    /// The bodies with the change, in the order in which they were added.
    pub subjects: Vec<BodyId>,
    /// The number of different changes in the group. It is greater than 1 if the values differ
    /// between bodies.
    pub variants: usize,
    /// `true` if the removed value is now elsewhere in the same bodies.
    pub is_moved: bool,
}

impl Group {
    /// Returns the agents in whose bodies the change occurs, sorted.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.subjects.iter().map(|subject| &subject.agent).collect()
    }
}

/// Marks members that were removed at one location and added with the same value at another
/// location in the same bodies. For example, a cache breakpoint moves when a tool is added after
/// the tool that had the breakpoint.
pub(crate) fn mark_moved(groups: &mut [Group]) {
    let moved: Vec<bool> = groups.iter().map(|group| is_moved(group, groups)).collect();
    groups
        .iter_mut()
        .zip(moved)
        .for_each(|(group, is_moved)| group.is_moved = is_moved);
}

fn is_moved(gone: &Group, groups: &[Group]) -> bool {
    let ChangeKind::Removed(value) = &gone.change.kind else {
        return false;
    };
    let name = gone.pointer.rsplit('/').next().unwrap_or_default();
    // The index of a list element is not a name.
    if gone.variants > 1
        || name.is_empty()
        || name == "*"
        || name.bytes().all(|byte| byte.is_ascii_digit())
    {
        return false;
    }
    let arrives = |group: &&Group| match &group.change.kind {
        ChangeKind::Added(new) => {
            group.pointer.ends_with(&format!("/{name}")) && new == value || holds(new, name, value)
        }
        _ => false,
    };
    let new: BTreeSet<&BodyId> = groups
        .iter()
        .filter(arrives)
        .flat_map(|group| &group.subjects)
        .collect();
    gone.subjects.iter().all(|subject| new.contains(subject))
}

/// Returns `true` if a value contains a member with this name and value, at any depth.
fn holds(value: &Value, name: &str, wanted: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get(name) == Some(wanted) || members.values().any(|it| holds(it, name, wanted))
        }
        Value::Array(items) => items.iter().any(|it| holds(it, name, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Groups equal changes. The groups are in the order of their first change, and the changes in each
/// body are in document order.
pub fn group(changes: impl IntoIterator<Item = (BodyId, Change)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(bool, String, Identity), usize> = HashMap::new();
    for (subject, change) in changes {
        let is_request = subject.context.is_none();
        let key = (is_request, pattern(&change.pointer), change.kind.identity());
        match known.get(&key) {
            Some(&index) => groups[index].add(subject, &change),
            None => {
                known.insert(key, groups.len());
                let pointer = change.pointer.to_string();
                groups.push(Group {
                    pointer,
                    change,
                    is_request,
                    subjects: vec![subject],
                    variants: 1,
                    is_moved: false,
                });
            }
        }
    }
    groups
}

impl Group {
    /// Returns the change's pointer, with `*` for every index.
    pub fn pattern(&self) -> String {
        pattern(&self.change.pointer)
    }

    /// Adds the bodies of another group. The change shown for the group stays the same.
    pub fn absorb(&mut self, other: Group) {
        self.pointer = merge(&self.pointer, &other.pointer);
        self.subjects.extend(other.subjects);
        self.variants += other.variants;
    }

    fn add(&mut self, subject: BodyId, change: &Change) {
        if change.pointer != self.change.pointer {
            self.pointer = merge(&self.pointer, change.pointer.as_str());
        }
        self.subjects.push(subject);
    }
}

/// Returns a pointer with `*` for every index.
fn pattern(pointer: &Pointer) -> String {
    let tokens = pointer
        .as_str()
        .split('/')
        .map(|token| if is_index(token) { "*" } else { token });
    tokens.collect::<Vec<_>>().join("/")
}

/// Merges two pointers with the same pattern, with `*` where they differ.
fn merge(a: &str, b: &str) -> String {
    let tokens = a
        .split('/')
        .zip(b.split('/'))
        .map(|(a, b)| if a == b { a } else { "*" });
    tokens.collect::<Vec<_>>().join("/")
}

fn is_index(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// The identity of a change: its kind and the JSON text of both values. Values that differ only in
/// the order of keys are different.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    Added(String),
    Removed(String),
    Replaced(String, String),
    /// The changed lines of a multi-line string, without the lines around them.
    Lines(Vec<TextHunk>),
    Reordered(Vec<String>, Vec<String>),
    File(FileChange),
}

impl ChangeKind {
    /// Returns `true` if a string was replaced with another string.
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            ChangeKind::Replaced(Value::String(_), Value::String(_))
        )
    }

    /// Returns the changed lines of a multi-line string that was replaced; `None` for other
    /// changes.
    pub fn hunks(&self) -> Option<Vec<TextHunk>> {
        match self {
            ChangeKind::Replaced(Value::String(old), Value::String(new))
                if old.contains('\n') || new.contains('\n') =>
            {
                Some(hunks(old, new))
            }
            _ => None,
        }
    }

    fn identity(&self) -> Identity {
        if let Some(hunks) = self.hunks() {
            return Identity::Lines(hunks);
        }
        match self {
            ChangeKind::Added(new) => Identity::Added(new.to_string()),
            ChangeKind::Removed(old) => Identity::Removed(old.to_string()),
            ChangeKind::Replaced(old, new) => Identity::Replaced(old.to_string(), new.to_string()),
            ChangeKind::Reordered(old, new) => Identity::Reordered(old.clone(), new.clone()),
            ChangeKind::File(change) => Identity::File(*change),
        }
    }

    /// Returns the change on one line: `0.7 → 1.0`, `+ "x"`, `- "x"`; long values are cut to
    /// `width` characters each.
    pub fn describe(&self, width: usize) -> String {
        match self {
            ChangeKind::File(FileChange::New) => "new".to_owned(),
            ChangeKind::File(FileChange::Gone) => "gone".to_owned(),
            ChangeKind::File(FileChange::Reformatted) => {
                "the same JSON with different formatting".to_owned()
            }
            ChangeKind::File(FileChange::Broken) => "the file did not contain JSON".to_owned(),
            ChangeKind::Added(value) => format!("+ {}", cut(&value.to_string(), width)),
            ChangeKind::Removed(value) => format!("- {}", cut(&value.to_string(), width)),
            ChangeKind::Replaced(old, new) => {
                let (old, new) = (shown(old), shown(new));
                let (old, new) = around_difference(&old, &new, width);
                format!("{old} → {new}")
            }
            ChangeKind::Reordered(old, new) => {
                let (old_range, new_range) = middles(old, new);
                let (old, new) = (old[old_range].join(", "), new[new_range].join(", "));
                format!(
                    "keys in a different order: {} → {}",
                    cut(&old, width),
                    cut(&new, width)
                )
            }
        }
    }
}

/// Returns a value as JSON, with secrets masked.
fn shown(value: &Value) -> String {
    masked(&value.to_string()).into_owned()
}

/// Cuts two long strings to the part in which they differ.
fn around_difference(old: &str, new: &str, width: usize) -> (String, String) {
    if old.chars().count() <= width && new.chars().count() <= width {
        return (old.to_owned(), new.to_owned());
    }
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let skipped = same.saturating_sub(width / 3);
    (window(old, skipped, width), window(new, skipped, width))
}

fn window(text: &str, skipped: usize, width: usize) -> String {
    let rest: String = text.chars().skip(skipped).collect();
    format!(
        "{}{}",
        if skipped > 0 { "…" } else { "" },
        cut(&rest, width)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::structural;
    use serde_json::json;

    fn subject(agent: &str, context: &str) -> BodyId {
        BodyId {
            agent: agent.into(),
            context: Some(context.into()),
        }
    }

    #[test]
    fn equal_changes_become_one_group() {
        let changes =
            [("a", "x"), ("a", "y"), ("b", "x")]
                .into_iter()
                .flat_map(|(agent, context)| {
                    let found =
                        structural(&json!({"temperature": 0.7}), &json!({"temperature": 1.0}));
                    found
                        .into_iter()
                        .map(move |change| (subject(agent, context), change))
                });
        let groups = group(changes);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].subjects.len(), 3);
        assert_eq!(groups[0].agents().len(), 2);
        assert_eq!(groups[0].change.kind.describe(40), "0.7 → 1.0");
    }

    #[test]
    fn places_that_differ_by_index_show_a_star() {
        let at = |index: usize| Change {
            pointer: Pointer::root()
                .member("messages")
                .element(index)
                .member("role"),
            kind: ChangeKind::Removed(json!("x")),
        };
        let groups = group([(subject("a", "x"), at(0)), (subject("a", "y"), at(3))]);
        assert_eq!(groups[0].pointer, "/messages/*/role");
    }

    #[test]
    fn long_texts_are_cut_to_what_differs() {
        let (old, new) = (
            format!("{}a", "x".repeat(100)),
            format!("{}b", "x".repeat(100)),
        );
        let (old, new) = around_difference(&old, &new, 30);
        assert_eq!(
            (old.as_str(), new.as_str()),
            ("…xxxxxxxxxxa", "…xxxxxxxxxxb")
        );
    }
}
