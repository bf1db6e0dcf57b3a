//! What a change of sources does to bodies, by cause.
//!
//! Input: the files of an older and a newer side, compiled. Output: a [`Review`]: which edits of sources changed which bodies, and how.
//! What is said to be a cause is proven: the edit alone, applied to the older side, makes that change. Printing is
//! [`report`](crate::report)'s business, and where sides come from is the caller's.

mod edit;
mod features;
mod keys;
mod prefix;
mod proof;
mod reach;
mod roll;
mod upgrade;

pub use edit::{Edit, EditKind, Hunk};
pub use prefix::PrefixLoss;
pub use proof::Load;
pub use roll::{Listed, Renamed, Roll};
pub use upgrade::AgainstGolden;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::compile::{Compiler, Lowered, LoweredKind, PolicyOptions, Report, Rerouted, Scope, Selection};
use crate::diff::{BodyId, CausedGroup, ChangeKind, ChangedFile, FileChange, Group};
use crate::world::{MemoryWorld, World};
use edit::Edits;
use proof::{Claims, Cluster, Proof};
use reach::Reach;
use upgrade::Parted;

/// A repository at one time.
pub struct Side {
    files: MemoryWorld,
    compiler: Arc<Compiler>,
}

impl Side {
    /// The files of a world, and the compiler that read them.
    pub fn new(world: &dyn World, compiler: Arc<Compiler>) -> Side {
        Side { files: edit::files_of(world), compiler }
    }
}

/// What takes part in a review, and how compilers are made.
pub struct Reviewing<'r> {
    /// The agents and contexts, of the newer side.
    pub selection: &'r Selection,
    /// What is made of findings.
    pub policy: &'r PolicyOptions,
    /// Whether bodies of all contexts are compared, or those that golden files are kept for.
    pub all_contexts: bool,
    /// Makes compilers of files that neither side has.
    pub load: Load<'r>,
}

/// What a change does.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Review {
    /// What is wrong with the newer side.
    pub report: Report,
    /// The causes, those that change most first.
    pub causes: Vec<Cause>,
    /// Changes of bodies that no edit is known for, with the line that wrote what is new.
    pub unexplained: Vec<CausedGroup>,
    /// Agents and contexts that came, went or got another name.
    pub roll: Roll,
    /// Files that go to another agent of a roster.
    pub rerouted: Vec<Rerouted>,
    /// Edits that change no body.
    pub silent: Vec<Edit>,
    /// What the newer side lowers and the older did not.
    pub lowered: Vec<Lowered>,
    /// Every file that differs.
    pub changes: Vec<ChangedFile>,
    /// Whether the older side's sources are known: if not, there are no causes.
    pub has_sources: bool,
}

/// Edits, and what they do to bodies.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cause {
    /// The edits. If they are of several files or keys, only together they do what they do.
    pub edits: Vec<Edit>,
    /// The bodies, as the older side has them and as these edits alone make them.
    pub changes: Vec<ChangedFile>,
    /// What changes in them.
    pub groups: Vec<Group>,
    /// How much of a cached prefix is lost, by body.
    pub prefix: Vec<(BodyId, PrefixLoss)>,
    /// The agents among them of which the newer side has errors.
    pub broken: BTreeSet<Arc<str>>,
}

/// What kind of change a cause is, from harmless to grave. A gate can fail on one and those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No body changes.
    Silent,
    /// Texts only.
    Text,
    /// Other values, and members that are new.
    Value,
    /// Members that are gone.
    Removed,
    /// The request line or the provider.
    Request,
}

impl Class {
    /// All classes, the most harmless first.
    pub const ALL: [Class; 5] = [Class::Silent, Class::Text, Class::Value, Class::Removed, Class::Request];

    /// The word for it in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Silent => "silent",
            Class::Text => "text",
            Class::Value => "value",
            Class::Removed => "removed",
            Class::Request => "request",
        }
    }

    /// That of one change.
    pub fn of_group(group: &Group) -> Class {
        match &group.change.kind {
            _ if group.is_request => Class::Request,
            ChangeKind::File(FileChange::Gone) | ChangeKind::Removed(_) => Class::Removed,
            kind if kind.is_text() => Class::Text,
            _ => Class::Value,
        }
    }
}

impl Cause {
    /// What edits change, and what else is known of that.
    fn of(edits: Vec<Edit>, changes: Vec<ChangedFile>, report: &Report) -> Cause {
        let groups = crate::diff::alike(&changes);
        let loss = |file: &ChangedFile| Some((file.subject.clone(), prefix::loss(file)?));
        let prefix = changes.iter().filter_map(loss).collect();
        let agents: BTreeSet<&Arc<str>> = changes.iter().map(|file| &file.subject.agent).collect();
        let errors = report.findings.iter().filter(|finding| finding.severity == crate::diag::Severity::Error);
        let broken = errors.flat_map(|finding| &finding.agents).filter(|name| agents.contains(name)).cloned().collect();
        Cause { edits, changes, groups, prefix, broken }
    }

    /// The gravest kind of its changes.
    pub fn class(&self) -> Class {
        self.groups.iter().map(Class::of_group).max().unwrap_or(Class::Silent)
    }

    /// The agents that it changes.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes.iter().map(|file| &file.subject.agent).collect()
    }

    /// How many bodies it changes; request lines are none.
    pub fn bodies(&self) -> usize {
        self.changes.iter().filter(|file| file.subject.context.is_some()).count()
    }
}

impl Review {
    /// Whether nothing differs on the wire, no file goes elsewhere, and nothing is let through that was not.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.lowered.is_empty() && self.roll.is_empty() && self.rerouted.is_empty()
    }

    /// Edits that change no body, and do something all the same, or may.
    pub fn beside(&self) -> impl Iterator<Item = &Edit> {
        self.silent.iter().filter(|edit| edit.acts())
    }

    /// The agents with bodies or request lines that differ.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes.iter().map(|file| &file.subject.agent).collect()
    }

    /// How many bodies differ; request lines are none.
    pub fn bodies(&self) -> usize {
        self.changes.iter().filter(|file| file.subject.context.is_some()).count()
    }

    /// The agents of which a part of a cached prefix is lost.
    pub fn agents_losing_prefix(&self) -> BTreeSet<&Arc<str>> {
        self.causes.iter().flat_map(|cause| &cause.prefix).map(|(subject, _)| &subject.agent).collect()
    }

    /// The gravest kind of change.
    pub fn class(&self) -> Class {
        let unexplained = self.unexplained.iter().map(|it| Class::of_group(&it.group));
        self.causes.iter().map(Cause::class).chain(unexplained).chain(self.roll.class()).max().unwrap_or(Class::Silent)
    }

    /// What the newer side does to the bodies of the older one.
    pub fn between(older: &Side, newer: &Side, reviewing: &Reviewing<'_>) -> Review {
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let older_names = roll::older_names(&edits, &older.compiler, &newer.compiler);
        let is_reached =
            |name: &Arc<str>| older_names.contains_key(name) || reach.iter().any(|reach| reach.has_agent(name));
        let scope = Scope { is_reached: &is_reached, older_names: &older_names };
        let (selection, policy) = (reviewing.selection, reviewing.policy);
        let (report, changes) =
            newer.compiler.compare_older(&older.compiler, selection, policy, reviewing.all_contexts, &scope);
        let mut lowered = newer.compiler.newly_lowered(&older.compiler, policy);
        // An agent that has another name is not gone.
        let is_renamed = |name: &Arc<str>| older_names.values().any(|older| older == name);
        lowered.retain(|it| it.kind != LoweredKind::Agent || !is_renamed(&it.what));
        let rerouted = newer.compiler.rerouted(&older.compiler, &older_names);
        let explained = Explained { older, newer, edits, reach, older_names };
        Review { rerouted, lowered, ..explained.review(report, changes, Vec::new(), reviewing) }
    }

    /// What the newer side does to golden files, and why as far as an older side tells it: the one that golden files were last
    /// written from.
    pub fn of_golden(golden: AgainstGolden, older: Option<&Side>, newer: &Side, reviewing: &Reviewing<'_>) -> Review {
        let AgainstGolden { report, drifts, altered_bundled } = golden;
        let Some(older) = older else {
            let unexplained = newer.compiler.grouped(&drifts);
            return Review { report, unexplained, changes: drifts, ..Review::default() };
        };
        let parted = Parted::of(&drifts, &Review::between(older, newer, reviewing));
        let (upgrade, open) = upgrade::causes(&altered_bundled, parted.others, newer, &report);
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let older_names = roll::older_names(&edits, &older.compiler, &newer.compiler);
        let explained = Explained { older, newer, edits, reach, older_names };
        let mut review = explained.review(report, parted.edited, open, reviewing);
        review.causes.extend(upgrade);
        review.sort();
        Review { changes: drifts, ..review }
    }

    /// The causes that change most come first.
    fn sort(&mut self) {
        self.causes.sort_by_key(|cause| std::cmp::Reverse((cause.class(), cause.changes.len())));
    }
}

/// The files of an older side with some of the edits that lead to a newer one.
pub fn applied(older: &MemoryWorld, newer: &MemoryWorld, chosen: impl Fn(&Edit) -> bool) -> MemoryWorld {
    let edits = Edits::between(older, newer);
    edits.applied(older, |edit| chosen(&edits.all[edit]))
}

/// Two sides, and what differs between their files.
struct Explained<'s> {
    older: &'s Side,
    newer: &'s Side,
    edits: Edits,
    reach: Vec<Reach>,
    older_names: BTreeMap<Arc<str>, Arc<str>>,
}

impl Explained<'_> {
    fn review(
        &self,
        report: Report,
        changes: Vec<ChangedFile>,
        others: Vec<ChangedFile>,
        reviewing: &Reviewing<'_>,
    ) -> Review {
        let (both, one): (Vec<ChangedFile>, Vec<ChangedFile>) =
            changes.into_iter().partition(|file| file.old.is_some() && file.new.is_some());
        let proof = Proof {
            edits: &self.edits,
            older: &self.older.files,
            load: reviewing.load,
            reach: &self.reach,
            bodies: &both,
            older_names: &self.older_names,
        };
        let mut causes: Vec<Cause> = Vec::new();
        let mut silent: BTreeSet<usize> = (0..self.edits.all.len()).collect();
        for (cluster, claims) in proof.causes() {
            if !claims.is_empty() {
                silent.retain(|edit| !cluster.contains(edit));
                causes.push(self.cause(&cluster, claims, &both, &report));
            }
        }
        let explained: BTreeSet<&BodyId> = causes.iter().flat_map(|it| &it.changes).map(|it| &it.subject).collect();
        let open = both.iter().filter(|file| !explained.contains(&file.subject)).cloned();
        let open: Vec<ChangedFile> = open.chain(others).collect();
        let roll = Roll::of(&one, &self.older_names, &self.older.compiler, &self.newer.compiler);
        let unexplained = self.newer.compiler.grouped(&open);
        let paths = roll.paths();
        let silent = silent.into_iter().map(|edit| &self.edits.all[edit]);
        let silent = silent.filter(|edit| !roll::tells(&paths, edit)).cloned().collect();
        let changes = both.into_iter().chain(one).chain(open).collect();
        let mut review =
            Review { report, causes, unexplained, roll, silent, changes, has_sources: true, ..Review::default() };
        review.sort();
        review
    }

    fn cause(&self, cluster: &Cluster, claims: Claims, bodies: &[ChangedFile], report: &Report) -> Cause {
        let edits = cluster.iter().map(|&edit| self.edits.all[edit].clone()).collect();
        let claimed = |(body, text): (usize, Option<String>)| ChangedFile { new: text, ..bodies[body].clone() };
        let changes: Vec<ChangedFile> = claims.into_iter().map(claimed).collect();
        Cause::of(edits, changes, report)
    }
}
