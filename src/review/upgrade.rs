//! The effect of another version of reqc on golden files: bundled files are causes too, although
//! their older text is not here.
//!
//! A golden file that an older version wrote differs for two reasons: the bundled files of this
//! version, and the repository's own edits since. The older side, compiled by this version, is
//! between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Cause, Edit, EditKind, Review, Side};
use crate::compile::reach::FileReach;
use crate::compile::{Compiler, Report};
use crate::diff::{BodyId, ChangedFile};
use crate::source::FileId;

/// Golden files that differ, and what is known of the version that wrote them.
pub struct AgainstGolden {
    /// The findings on the newer side.
    pub report: Report,
    /// The files that differ.
    pub drifts: Vec<ChangedFile>,
    /// The bundled files that held something else when golden files were written.
    pub altered_bundled: Vec<String>,
}

/// Drifts by what made them. A file that both made is in both lists, with what each of them did.
#[derive(Default)]
pub(super) struct Parted {
    /// Those of the repository's own edits.
    pub(super) edited: Vec<ChangedFile>,
    /// The others: the older side, too, makes something other than the golden file has.
    pub(super) others: Vec<ChangedFile>,
}

impl Parted {
    /// `between` has what differs between both sides, compiled by this version.
    pub(super) fn of(drifts: &[ChangedFile], between: &Review) -> Parted {
        let edited: BTreeMap<&BodyId, &ChangedFile> =
            between.changes.iter().map(|it| (&it.subject, it)).collect();
        let mut parted = Parted::default();
        for drift in drifts {
            match edited.get(&drift.subject) {
                Some(edit) if edit.old == drift.old => parted.edited.push(drift.clone()),
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

/// The causes among bundled files, and the drifts that none of them reaches. What several can reach
/// is reported under all of them: none can be applied alone.
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
