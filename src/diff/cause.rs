//! Groups of equal changes, split by the line that caused each change.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use indexmap::IndexMap;

use super::{BodyId, Change, ChangeKind, ChangedFile, Group, group};

/// A group, and the location that caused it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CausedGroup {
    /// The group of equal changes.
    pub group: Group,
    /// The cause as `path:line`, if it is known.
    pub cause: Option<String>,
}

/// The key that groups share if their changes have the same kind, location and cause.
type Likeness = (Discriminant<ChangeKind>, bool, Option<String>, String);

impl CausedGroup {
    fn likeness(&self) -> Likeness {
        let Group {
            change, is_request, ..
        } = &self.group;
        (
            discriminant(&change.kind),
            *is_request,
            self.cause.clone(),
            self.group.pattern(),
        )
    }

    fn absorb(&mut self, other: CausedGroup) {
        self.group.absorb(other.group);
    }
}

/// Returns all changes in the files, with equal changes grouped. `cause` returns the cause of a
/// change as `path:line`, and is called once for each change in each agent.
pub fn grouped(
    files: &[ChangedFile],
    mut cause: impl FnMut(&BodyId, &Change) -> Option<String>,
) -> Vec<CausedGroup> {
    let changes = files.iter().flat_map(|file| {
        file.changes()
            .into_iter()
            .map(|change| (file.subject.clone(), change))
    });
    merged(
        group(changes)
            .into_iter()
            .flat_map(|group| by_cause(&mut cause, group))
            .collect(),
    )
}

/// The maximum number of changes with different values, but of the same kind and at the same
/// location, that are kept in separate groups.
const MOST_APART: usize = 3;

/// Returns all changes in files that share one cause, with equal changes grouped. If there are many
/// changes at one location, they also form a group, even if their values differ between bodies.
pub fn alike(files: &[ChangedFile]) -> Vec<Group> {
    let changes = files.iter().flat_map(|file| {
        file.changes()
            .into_iter()
            .map(|change| (file.subject.clone(), change))
    });
    let likeness = |group: &Group| {
        (
            discriminant(&group.change.kind),
            group.is_request,
            group.pattern(),
        )
    };
    let groups = group(changes);
    let mut known: HashMap<_, (usize, usize)> = HashMap::new();
    groups
        .iter()
        .for_each(|group| known.entry(likeness(group)).or_insert((0, usize::MAX)).0 += 1);
    let mut alike: Vec<Group> = Vec::new();
    for group in groups {
        let (count, first) = known.get_mut(&likeness(&group)).expect("it was counted");
        match alike.get_mut(*first).filter(|_| *count > MOST_APART) {
            Some(first) => first.absorb(group),
            None => {
                *first = alike.len();
                alike.push(group);
            }
        }
    }
    alike
}

/// Splits a group of equal changes by the lines that caused the changes.
fn by_cause(
    cause: &mut impl FnMut(&BodyId, &Change) -> Option<String>,
    group: Group,
) -> Vec<CausedGroup> {
    let mut known: BTreeMap<Arc<str>, Option<String>> = BTreeMap::new();
    let mut groups: IndexMap<Option<String>, CausedGroup> = IndexMap::new();
    let Group {
        pointer,
        change,
        is_request,
        subjects,
        ..
    } = group;
    for subject in subjects {
        let agent = Arc::clone(&subject.agent);
        let cause = known
            .entry(agent)
            .or_insert_with(|| cause(&subject, &change))
            .clone();
        groups
            .entry(cause.clone())
            .or_insert_with(|| CausedGroup {
                group: Group {
                    pointer: pointer.clone(),
                    change: change.clone(),
                    is_request,
                    subjects: Vec::new(),
                    variants: 1,
                    is_moved: false,
                },
                cause: cause.clone(),
            })
            .group
            .subjects
            .push(subject);
    }
    groups.into_values().collect()
}

/// Merges groups with the same location and cause whose values differ between bodies.
fn merged(groups: Vec<CausedGroup>) -> Vec<CausedGroup> {
    let mut merged: Vec<CausedGroup> = Vec::new();
    let mut known: HashMap<Likeness, usize> = HashMap::new();
    for group in groups {
        let same = group
            .cause
            .is_some()
            .then(|| *known.entry(group.likeness()).or_insert(merged.len()));
        match same.filter(|&at| at < merged.len()) {
            Some(at) => merged[at].absorb(group),
            None => merged.push(group),
        }
    }
    merged
}
