//! The effect of a different version of reqc on golden files. Bundled files are causes too,
//! although their older text is not available.
//!
//! A golden file written by an older version differs for two reasons: the bundled files of this
//! version, and the repository's own edits since then. The older side, compiled by this version,
//! separates the two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Cause, Edit, EditKind, Review, Side};
use crate::compile::reach::FileReach;
use crate::compile::{Compiler, Report};
use crate::diff::{BodyId, ChangedFile};
use crate::source::FileId;

/// Differing golden files, and the facts known about the version that wrote them.
pub struct AgainstGolden {
    /// The findings on the newer side.
    pub report: Report,
    /// The differing files.
    pub drifts: Vec<ChangedFile>,
    /// The bundled files whose content was different when the golden files were written.
    pub altered_bundled: Vec<String>,
}

/// Drifts by their origin. A file with both origins is in both lists, each time with the
/// corresponding part of its change.
#[derive(Default)]
pub(super) struct Parted {
    /// Changes caused by the repository's own edits.
    pub(super) edited: Vec<ChangedFile>,
    /// The other changes: even the older side, compiled by this version, differs from the golden
    /// file.
    pub(super) others: Vec<ChangedFile>,
}

impl Parted {
    /// Splits drift by its origin. `between` contains the differences between the two sides,
    /// compiled by this version.
    pub(super) fn of(drifts: &[ChangedFile], between: &Review) -> Parted {
        let edited: BTreeMap<&BodyId, &ChangedFile> =
            between.changes.iter().map(|it| (&it.subject, it)).collect();
        let mut parted = Parted::default();
        for drift in drifts {
            match edited.get(&drift.subject) {
                Some(edit) if edit.old == drift.old => parted.edited.push(drift.clone()),
                Some(edit) if edit.new.is_none() && drift.new.is_none() => {
                    parted.edited.push(drift.clone());
                }
                Some(edit) if edit.old.is_some() && drift.old.is_some() => {
                    parted.edited.push((*edit).clone());
                    parted.others.push(ChangedFile {
                        new: edit.old.clone(),
                        ..drift.clone()
                    });
                }
                _ => parted.others.push(drift.clone()),
            }
        }
        parted
    }
}

/// Returns the bundled files that caused changes, and the remaining drifts: files that were added
/// or removed, or that no bundled file reaches. A drift that several bundled files can reach is
/// reported for all of them, because none can be applied separately.
pub(super) fn causes(
    altered: &[String],
    others: Vec<ChangedFile>,
    newer: &Side,
) -> (Vec<Cause>, Vec<ChangedFile>) {
    let reached = Reached::of(altered, &newer.compiler);
    let mut by_files: BTreeMap<BTreeSet<&str>, Vec<ChangedFile>> = BTreeMap::new();
    let mut open = Vec::new();
    for file in others {
        let files: BTreeSet<&str> = altered
            .iter()
            .map(String::as_str)
            .filter(|it| reached.has(it, &file))
            .collect();
        match files.is_empty() || file.old.is_none() || file.new.is_none() {
            true => open.push(file),
            false => by_files.entry(files).or_default().push(file),
        }
    }
    let causes = by_files.into_iter().map(|(files, changes)| {
        let edits = files.into_iter().map(bundled).collect();
        Cause::of(edits, changes)
    });
    (causes.collect(), open)
}

fn bundled(path: &str) -> Edit {
    Edit {
        path: path.into(),
        kind: EditKind::Bundled,
        hunks: Vec::new(),
    }
}

/// The agents and contexts that bundled files reach.
struct Reached {
    agents: BTreeMap<String, BTreeSet<Arc<str>>>,
    contexts: BTreeMap<String, Arc<str>>,
}

impl Reached {
    fn of(paths: &[String], side: &Compiler) -> Reached {
        let agents = FileReach::new(side)
            .agents_by_path(&paths.iter().map(String::as_str).collect())
            .unwrap_or_default();
        let contexts = side
            .contexts()
            .iter()
            .map(|it| (path(it.context.file, side), Arc::clone(&it.context.name)));
        Reached {
            agents,
            contexts: contexts.collect(),
        }
    }

    fn has(&self, path: &str, file: &ChangedFile) -> bool {
        let is_agent = self
            .agents
            .get(path)
            .is_some_and(|names| names.contains(&file.subject.agent));
        is_agent
            || self
                .contexts
                .get(path)
                .is_some_and(|name| file.subject.context.as_ref() == Some(name))
    }
}

fn path(file: FileId, side: &Compiler) -> String {
    side.sources().get(file).path().to_string()
}
