//! The effect of source changes on bodies, by cause.
//!
//! Input: the files of an older and a newer side, and a compiler for each. Output: a [`Review`],
//! which contains the edits to sources, and the changes to bodies that each edit causes. Every
//! reported cause is verified: the edit alone, applied to the older side, causes that change.
//! [`report`](crate::report) prints reviews; the caller decides where the sides come from.

mod features;
mod growth;
mod keys;
mod edit;
mod prefix;
mod reach;
mod roll;
mod proof;
mod breaks;
mod upgrade;

pub use edit::{Edit, EditKind, Hunk};
pub use growth::Growth;
pub use prefix::PrefixLoss;
pub use proof::Load;
use roll::OlderNames;
pub use roll::{Listed, Renamed, Roll};
pub use upgrade::AgainstGolden;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::compile::compare::{Before, BrokenAgent, Compared, Comparing, Scope, grouped};
use crate::compile::policy::{Lowered, LoweredKind, newly_lowered};
use crate::compile::route::{Rerouted, rerouted};
use crate::compile::{Compiler, PolicyOptions, Report, Selection};
use crate::diff::{BodyId, CausedGroup, ChangeKind, ChangedFile, FileChange, Group};
use crate::repo::folders;
use crate::world::{MemoryWorld, World};
use breaks::{Clusters, Nameless, Trials, Wanted};
use edit::Edits;
use proof::{Claims, Cluster, Proof};
use reach::Reach;
use upgrade::Parted;

/// A repository at one point in time.
pub struct Side {
    files: MemoryWorld,
    compiler: Arc<Compiler>,
}

impl Side {
    /// Creates a side from a world's files and the compiler that read them.
    pub fn new(world: &dyn World, compiler: Arc<Compiler>) -> Side {
        Side {
            files: edit::files_of(world),
            compiler,
        }
    }
}

/// The settings of a review, and a function that creates compilers.
pub struct Reviewing<'r> {
    /// The newer side's agents and contexts to compare.
    pub selection: &'r Selection,
    /// The policy for findings.
    pub policy: &'r PolicyOptions,
    /// `true` to compare the bodies of all contexts. Otherwise, only contexts with golden files are
    /// compared.
    pub all_contexts: bool,
    /// Creates a compiler for a mixture of both sides' files.
    pub load: Load<'r>,
}

/// The effect of a source change.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Review {
    /// The findings on the newer side.
    pub report: Report,
    /// The causes: first those that break agents, then the others, by severity and size.
    pub causes: Vec<Cause>,
    /// The agents with errors on the newer side, by name.
    pub broken: Vec<BrokenAgent>,
    /// The agents with errors on the older side only.
    pub mended: BTreeSet<Arc<str>>,
    /// Changes in bodies without a known cause, each with the line that wrote the new value.
    pub unexplained: Vec<CausedGroup>,
    /// The agents and contexts that were added, removed, or renamed.
    pub roll: Roll,
    /// The files that a roster now routes to a different agent.
    pub rerouted: Vec<Rerouted>,
    /// Edits that change no body.
    pub silent: Vec<Edit>,
    /// The checks that only the newer side lowers.
    pub lowered: Vec<Lowered>,
    /// Every file that differs.
    pub changes: Vec<ChangedFile>,
    /// `true` if the sources of the older side are known. Without them, there are no causes.
    pub has_sources: bool,
    /// The change in the number of tokens in bodies; `None` if no body's token count changes.
    pub growth: Option<Growth>,
}

/// Edits and their effect on bodies.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cause {
    /// The edits. If they concern several files or keys, they have this effect only together.
    pub edits: Vec<Edit>,
    /// The bodies on the older side, each with the result of applying only these edits.
    pub changes: Vec<ChangedFile>,
    /// The changes in these bodies.
    pub groups: Vec<Group>,
    /// The lost part of the cached prefix, by body.
    pub prefix: Vec<(BodyId, PrefixLoss)>,
    /// The agents that these edits break. Without the edits, these agents compile.
    pub broken: BTreeSet<Arc<str>>,
    /// The agents that these edits fix. They had errors before.
    pub mended: BTreeSet<Arc<str>>,
}

/// The severity of a cause, from harmless to severe. A gate can fail on a class and every class
/// above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No body changes.
    Silent,
    /// Only text changes.
    Text,
    /// Other values change, or members are added.
    Value,
    /// Members are removed.
    Removed,
    /// The request line or the provider changes.
    Request,
    /// An agent no longer compiles.
    Broken,
}

impl Class {
    /// All classes, from harmless to severe.
    pub const ALL: [Class; 6] = [
        Class::Silent,
        Class::Text,
        Class::Value,
        Class::Removed,
        Class::Request,
        Class::Broken,
    ];

    /// Returns the class's name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Silent => "silent",
            Class::Text => "text",
            Class::Value => "value",
            Class::Removed => "removed",
            Class::Request => "request",
            Class::Broken => "broken",
        }
    }

    /// Returns the class of a group of changes.
    pub fn of_group(group: &Group) -> Class {
        match &group.change.kind {
            _ if group.is_request => Class::Request,
            ChangeKind::Removed(_) if group.is_moved => Class::Value,
            ChangeKind::File(FileChange::Gone) | ChangeKind::Removed(_) => Class::Removed,
            kind if kind.is_text() => Class::Text,
            _ => Class::Value,
        }
    }
}

impl Cause {
    /// Creates a cause from edits and the bodies that they change, and computes the other fields.
    fn of(edits: Vec<Edit>, changes: Vec<ChangedFile>) -> Cause {
        let mut groups = crate::diff::alike(&changes);
        crate::diff::mark_moved(&mut groups);
        let prefix = changes
            .iter()
            .filter_map(|file| Some((file.subject.clone(), prefix::loss(file)?)))
            .collect();
        Cause {
            edits,
            changes,
            groups,
            prefix,
            broken: BTreeSet::new(),
            mended: BTreeSet::new(),
        }
    }

    /// Returns the class of the cause's most severe change.
    pub fn class(&self) -> Class {
        let broken = (!self.broken.is_empty()).then_some(Class::Broken);
        let mended = (!self.mended.is_empty()).then_some(Class::Value);
        self.groups
            .iter()
            .map(Class::of_group)
            .chain(broken)
            .chain(mended)
            .max()
            .unwrap_or(Class::Silent)
    }

    fn takes(&mut self, broken: BTreeSet<Arc<str>>, mended: BTreeSet<Arc<str>>) {
        self.broken.extend(broken);
        self.mended.extend(mended);
    }

    /// Returns the agents whose bodies or request lines the cause changes.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes
            .iter()
            .map(|file| &file.subject.agent)
            .collect()
    }

    /// Returns the number of bodies that the cause changes, not counting request lines.
    pub fn bodies(&self) -> usize {
        self.changes
            .iter()
            .filter(|file| file.subject.context.is_some())
            .count()
    }
}

impl Review {
    /// Returns `true` if nothing changes on the wire or in the agents that compile, no file is
    /// routed differently, and no check is lowered.
    pub fn is_empty(&self) -> bool {
        let has_same_agents = self.newly_broken().next().is_none() && self.mended.is_empty();
        let has_same_bodies = self.changes.is_empty() && self.roll.is_empty();
        has_same_agents && has_same_bodies && self.lowered.is_empty() && self.rerouted.is_empty()
    }

    /// Returns the agents that do not compile, and either compiled before or are new.
    pub fn newly_broken(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before != Before::Broken)
            .map(|it| &it.agent)
    }

    /// Returns the agents that compiled before and no longer do.
    pub fn no_longer_compiled(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| matches!(it.before, Before::Compiled(_)))
            .map(|it| &it.agent)
    }

    /// Returns the new agents that do not compile.
    pub fn new_and_broken(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before == Before::Absent)
            .map(|it| &it.agent)
    }

    /// Returns the agents that compile on neither side, so their bodies cannot be compared.
    pub fn uncompared(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before == Before::Broken)
            .map(|it| &it.agent)
    }

    /// Returns the newly broken agents that no known edit breaks.
    pub fn broken_by_nothing_known(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_told = |name: &Arc<str>| self.causes.iter().any(|cause| cause.broken.contains(name));
        self.newly_broken().filter(move |name| !is_told(name))
    }

    /// Returns the edits that change no body but may have other effects.
    pub fn beside(&self) -> impl Iterator<Item = &Edit> {
        self.silent.iter().filter(|edit| edit.acts())
    }

    /// Returns the agents whose bodies or request lines differ.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes
            .iter()
            .map(|file| &file.subject.agent)
            .collect()
    }

    /// Returns the number of bodies that differ, not counting request lines.
    pub fn bodies(&self) -> usize {
        // The golden file of a renamed agent is both removed and new.
        let bodies: BTreeSet<&BodyId> = self
            .changes
            .iter()
            .map(|file| &file.subject)
            .filter(|subject| subject.context.is_some())
            .collect();
        bodies.len()
    }

    /// Returns the agents that lose part of a cached prefix.
    pub fn agents_losing_prefix(&self) -> BTreeSet<&Arc<str>> {
        self.causes
            .iter()
            .flat_map(|cause| &cause.prefix)
            .map(|(subject, _)| &subject.agent)
            .collect()
    }

    /// Returns the class of the most severe change.
    pub fn class(&self) -> Class {
        let unexplained = self.unexplained.iter().map(|it| Class::of_group(&it.group));
        let broken = self.newly_broken().next().map(|_| Class::Broken);
        let others = unexplained.chain(self.roll.class()).chain(broken);
        self.causes
            .iter()
            .map(Cause::class)
            .chain(others)
            .max()
            .unwrap_or(Class::Silent)
    }

    /// Compares the bodies of both sides and finds the causes of the differences.
    pub fn between(older: &Side, newer: &Side, reviewing: &Reviewing<'_>) -> Review {
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let names = OlderNames::of(&edits, &older.compiler, &newer.compiler);
        // Edits that change no body, for example edits to schemas, may still make all bodies pass
        // or fail.
        let judges = edits
            .all
            .iter()
            .zip(&reach)
            .any(|(edit, reach)| *reach == Reach::Nothing && edit.acts());
        let is_reached = |name: &Arc<str>| {
            judges
                || names.agents.contains_key(name)
                || reach.iter().any(|reach| reach.has_agent(name))
        };
        let scope = Scope {
            is_reached: &is_reached,
            older_names: &names.agents,
        };
        let comparing = Comparing {
            compiler: &newer.compiler,
            selection: reviewing.selection,
            options: reviewing.policy,
            all_contexts: reviewing.all_contexts,
        };
        let compared = comparing.with_older(&older.compiler, &scope);
        let mut lowered = newly_lowered(&newer.compiler, &older.compiler, reviewing.policy);
        // Renamed items are not removed, and unreadable items are reported as errors.
        lowered.retain(|it| !names.was(&it.what, it.kind));
        let rerouted = rerouted(&newer.compiler, &older.compiler, &names.agents);
        let explained = Explained {
            older,
            newer,
            edits,
            reach,
            names,
        };
        let review = explained.review(compared, Vec::new(), reviewing);
        let unread: BTreeSet<&Arc<str>> = review
            .roll
            .broken_contexts
            .iter()
            .map(|it| &it.name)
            .collect();
        lowered.retain(|it| it.kind != LoweredKind::Context || !unread.contains(&it.what));
        let broken: BTreeSet<&Arc<str>> = review.broken.iter().map(|it| &it.agent).collect();
        lowered.retain(|it| it.kind != LoweredKind::Agent || !broken.contains(&it.what));
        let growth = growth::of(&review.changes, &newer.compiler, reviewing.selection);
        Review {
            rerouted,
            lowered,
            growth,
            ..review
        }
    }

    /// Compares bodies with golden files. Causes are known only if there is an older side, whose
    /// sources the golden files were last written from.
    pub fn of_golden(
        golden: AgainstGolden,
        older: Option<&Side>,
        newer: &Side,
        reviewing: &Reviewing<'_>,
    ) -> Review {
        let AgainstGolden {
            report,
            drifts,
            altered_bundled,
        } = golden;
        let Some(older) = older else {
            let unexplained = grouped(&newer.compiler, &drifts);
            let broken = broken_by_report(&report);
            let growth = growth::of(&drifts, &newer.compiler, reviewing.selection);
            return Review {
                report,
                unexplained,
                broken,
                changes: drifts,
                growth,
                ..Review::default()
            };
        };
        let between = Review::between(older, newer, reviewing);
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let names = OlderNames::of(&edits, &older.compiler, &newer.compiler);
        let drifts = roll::named(&drifts, &names, &older.compiler, &newer.compiler);
        let parted = Parted::of(&roll::joined(&drifts, &names), &between);
        let (upgrade, open) = upgrade::causes(&altered_bundled, parted.others, newer);
        let explained = Explained {
            older,
            newer,
            edits,
            reach,
            names,
        };
        let compared = Compared {
            report,
            changes: parted.edited,
            ..Compared::default()
        };
        let mut review = explained.review(compared, open, reviewing);
        review.causes.extend(upgrade);
        review.takes_verdicts(between);
        review.sort();
        let growth = growth::of(&drifts, &newer.compiler, reviewing.selection);
        Review {
            changes: drifts,
            growth,
            ..review
        }
    }

    /// Adopts the broken and fixed agents and their causes from `between`, because golden files do
    /// not show them.
    fn takes_verdicts(&mut self, between: Review) {
        for cause in between
            .causes
            .into_iter()
            .filter(|cause| !changed_agents(cause).is_empty())
        {
            self.silent.retain(|edit| !cause.edits.contains(edit));
            self.cause_of(cause.edits).takes(cause.broken, cause.mended);
        }
        (self.broken, self.mended) = (between.broken, between.mended);
    }

    /// Returns the cause with these edits. If they change no body, adds a new cause.
    fn cause_of(&mut self, edits: Vec<Edit>) -> &mut Cause {
        let known = self.causes.iter().position(|cause| cause.edits == edits);
        let at = known.unwrap_or_else(|| {
            self.causes.push(Cause::of(edits, Vec::new()));
            self.causes.len() - 1
        });
        &mut self.causes[at]
    }

    /// Sorts the causes, the most severe and largest first.
    fn sort(&mut self) {
        self.causes.sort_by_key(|cause| {
            std::cmp::Reverse((cause.class(), cause.broken.len(), cause.changes.len()))
        });
    }
}

fn changed_agents(cause: &Cause) -> Vec<Arc<str>> {
    cause
        .broken
        .iter()
        .chain(&cause.mended)
        .cloned()
        .collect::<Vec<_>>()
}

/// Applies some of the edits between two sides to the files of the older side.
pub fn applied(
    older: &MemoryWorld,
    newer: &MemoryWorld,
    chosen: impl Fn(&Edit) -> bool,
) -> MemoryWorld {
    let edits = Edits::between(older, newer);
    edits.applied(older, |edit| chosen(&edits.all[edit]))
}

/// The maximum number of edits that are tried because they may change which contexts have golden
/// files.
const MOST_CHOICES: usize = 20;

/// Returns the contexts that have golden files.
fn with_golden_files(side: &Compiler) -> BTreeSet<Arc<str>> {
    let golden = side.contexts().iter().filter(|it| it.golden);
    golden.map(|it| Arc::clone(&it.context.name)).collect()
}

/// Returns the edits in `silent` that may change which contexts have golden files: edits to the
/// settings, followed by edits to contexts if `flags_count` is set. A context's flag has an effect
/// only if a side has no `golden.contexts`.
fn may_choose(edits: &[Edit], silent: &BTreeSet<usize>, flags_count: bool) -> Vec<usize> {
    let settings = silent.iter().filter(|&&edit| sets_golden(&edits[edit]));
    let flags = silent
        .iter()
        .filter(|&&edit| flags_count && may_flag(&edits[edit]));
    settings.chain(flags).copied().take(MOST_CHOICES).collect()
}

/// Returns `true` if an edit to `reqc.toml` may change `golden.contexts`.
fn sets_golden(edit: &Edit) -> bool {
    let may_set = match &edit.kind {
        EditKind::Key(_) => matches!(edit.key(), Some("golden.contexts" | "golden")),
        EditKind::Added | EditKind::Removed | EditKind::Lines => true,
        EditKind::Moved { .. } | EditKind::Comments | EditKind::Bundled => false,
    };
    may_set && &*edit.path == folders::CONFIG
}

/// Returns `true` if an edit to a context may change whether the context is marked as golden.
fn may_flag(edit: &Edit) -> bool {
    let may_flag = match edit.kind {
        EditKind::Added | EditKind::Removed | EditKind::Lines => true,
        EditKind::Key(_) | EditKind::Moved { .. } | EditKind::Comments | EditKind::Bundled => false,
    };
    may_flag && folders::is_in(&edit.path, folders::CONTEXTS)
}

/// Returns `true` if a golden file was added because its context now has golden files, or removed
/// because its context no longer has them.
fn is_chosen(file: &ChangedFile, then: &BTreeSet<Arc<str>>, now: &BTreeSet<Arc<str>>) -> bool {
    file.subject.context.as_ref().is_some_and(|context| {
        then.contains(context) != now.contains(context)
            && now.contains(context) == file.new.is_some()
    })
}

/// Both sides, and the differences between their files.
struct Explained<'s> {
    older: &'s Side,
    newer: &'s Side,
    edits: Edits,
    reach: Vec<Reach>,
    names: OlderNames,
}

impl Explained<'_> {
    fn review(
        &self,
        mut compared: Compared,
        others: Vec<ChangedFile>,
        reviewing: &Reviewing<'_>,
    ) -> Review {
        let (older, newer) = (&self.older.compiler, &self.newer.compiler);
        let gone = roll::gone_agents(&self.names, older, newer, &self.newer.files);
        let nameless = breaks::nameless(gone, &compared.report);
        compared.breaks(nameless.keys());
        let trials = self.trials(reviewing, &nameless);
        let (breaking, mending) = verdicts(&trials, &compared);
        let left_out = by_agent(&breaking);
        let Compared {
            report,
            mut changes,
            broken,
            mended,
            ..
        } = compared;
        changes.extend(trials.beside(&broken, &left_out));
        let changes = roll::paired(changes, &self.names.contexts);
        let (both, one): (Vec<ChangedFile>, Vec<ChangedFile>) = changes
            .into_iter()
            .partition(|file| file.old.is_some() && file.new.is_some());
        let (mut causes, mut silent) = self.causes(&both, &left_out, reviewing);
        for edit in breaking.keys().chain(mending.keys()).flatten() {
            silent.remove(edit);
        }
        let explained: BTreeSet<&BodyId> = causes
            .iter()
            .flat_map(|it| &it.changes)
            .map(|it| &it.subject)
            .collect();
        let open = both
            .iter()
            .filter(|file| !explained.contains(&file.subject))
            .cloned();
        let open: Vec<ChangedFile> = open.chain(others).collect();
        let mut roll = Roll::of(
            &one,
            &self.names,
            &self.older.compiler,
            &self.newer.compiler,
            &self.newer.files,
        );
        causes.extend(self.choices(&mut roll.bodies, &mut silent, reviewing));
        let unexplained = grouped(&self.newer.compiler, &open);
        let silent = self.told_alone(silent, &roll);
        let changes = both.into_iter().chain(one).chain(open).collect();
        let review = Review {
            report,
            causes,
            unexplained,
            roll,
            silent,
            changes,
            ..Review::default()
        };
        let mut review = Review {
            broken,
            mended,
            has_sources: true,
            ..review
        };
        for (cluster, agents) in breaking {
            review
                .cause_of(self.edits(&cluster))
                .takes(agents, BTreeSet::new());
        }
        for (cluster, agents) in mending {
            review
                .cause_of(self.edits(&cluster))
                .takes(BTreeSet::new(), agents);
        }
        review.sort();
        review
    }

    fn trials<'t>(&'t self, reviewing: &Reviewing<'t>, nameless: &'t Nameless) -> Trials<'t> {
        Trials {
            edits: &self.edits,
            reach: &self.reach,
            older: &self.older.files,
            load: reviewing.load,
            policy: reviewing.policy,
            all_contexts: reviewing.all_contexts,
            contexts: reviewing.selection.contexts.as_ref(),
            names: &self.names,
            nameless,
        }
    }

    /// Returns the causes of changes, and the edits that change nothing.
    fn causes(
        &self,
        bodies: &[ChangedFile],
        left_out: &BTreeMap<Arc<str>, Cluster>,
        reviewing: &Reviewing<'_>,
    ) -> (Vec<Cause>, BTreeSet<usize>) {
        let proof = Proof {
            edits: &self.edits,
            older: &self.older.files,
            load: reviewing.load,
            reach: &self.reach,
            bodies,
            names: &self.names,
            left_out,
        };
        let mut causes: Vec<Cause> = Vec::new();
        let mut silent: BTreeSet<usize> = (0..self.edits.all.len()).collect();
        for (cluster, claims) in proof.causes() {
            if !claims.is_empty() {
                silent.retain(|edit| !cluster.contains(edit));
                causes.push(self.cause(&cluster, claims, bodies));
            }
        }
        (causes, silent)
    }

    /// Returns the edits that change which contexts have golden files, with the bodies that they
    /// add or remove. Removes these bodies from `bodies`, and the edits from `silent`.
    fn choices(
        &self,
        bodies: &mut Vec<ChangedFile>,
        silent: &mut BTreeSet<usize>,
        reviewing: &Reviewing<'_>,
    ) -> Vec<Cause> {
        let then = with_golden_files(&self.older.compiler);
        let sides = [&self.older.compiler, &self.newer.compiler];
        let flags_count = sides
            .iter()
            .any(|side| side.repo().config.golden_contexts.is_none());
        let mut causes = Vec::new();
        for edit in may_choose(&self.edits.all, silent, flags_count) {
            if bodies.is_empty() {
                break;
            }
            let files = self.edits.applied(&self.older.files, |other| other == edit);
            let now = with_golden_files(&(reviewing.load)(files, &|_| false));
            let (chosen, others): (Vec<ChangedFile>, Vec<ChangedFile>) = std::mem::take(bodies)
                .into_iter()
                .partition(|file| is_chosen(file, &then, &now));
            *bodies = others;
            if !chosen.is_empty() {
                silent.remove(&edit);
                causes.push(Cause::of(vec![self.edits.all[edit].clone()], chosen));
            }
        }
        causes
    }

    /// Returns the silent edits whose effect `roll` does not report.
    fn told_alone(&self, silent: BTreeSet<usize>, roll: &Roll) -> Vec<Edit> {
        let paths = roll.paths();
        let silent = silent.into_iter().map(|edit| &self.edits.all[edit]);
        silent
            .filter(|edit| !roll::tells(&paths, edit))
            .cloned()
            .collect()
    }

    fn edits(&self, cluster: &Cluster) -> Vec<Edit> {
        cluster
            .iter()
            .map(|&edit| self.edits.all[edit].clone())
            .collect()
    }

    fn cause(&self, cluster: &Cluster, claims: Claims, bodies: &[ChangedFile]) -> Cause {
        Cause::of(
            self.edits(cluster),
            claims
                .into_iter()
                .map(|(body, text)| ChangedFile {
                    new: text,
                    ..bodies[body].clone()
                })
                .collect(),
        )
    }
}

/// Returns the edits that break agents, and those that fix them.
fn verdicts(trials: &Trials<'_>, compared: &Compared) -> (Clusters, Clusters) {
    let mut codes = breaks::codes_of(&compared.report, trials.nameless);
    let broken: BTreeSet<&Arc<str>> = compared
        .broken
        .iter()
        .filter(|it| it.before != Before::Broken)
        .map(|it| &it.agent)
        .collect();
    codes.retain(|agent, _| broken.contains(agent));
    (
        trials.causes(Wanted::Errors(&codes)),
        trials.causes(Wanted::NoError(&compared.mended)),
    )
}

/// Returns the edits of all clusters, grouped by agent.
fn by_agent(clusters: &Clusters) -> BTreeMap<Arc<str>, Cluster> {
    let mut edits: BTreeMap<Arc<str>, Cluster> = BTreeMap::new();
    for (cluster, agents) in clusters {
        agents
            .iter()
            .for_each(|agent| edits.entry(Arc::clone(agent)).or_default().extend(cluster));
    }
    edits
}

/// Returns the agents affected by errors in a report, for a review without an older side.
fn broken_by_report(report: &Report) -> Vec<BrokenAgent> {
    let agents = breaks::codes_of(report, &Nameless::new()).into_keys();
    agents.map(BrokenAgent::of_unknown_past).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str, kind: EditKind) -> Edit {
        Edit {
            path: path.into(),
            kind,
            hunks: Vec::new(),
        }
    }

    #[test]
    fn settings_choose_before_contexts() {
        let mut edits: Vec<Edit> = (0..MOST_CHOICES)
            .map(|at| edit(&format!("contexts/{at}.json"), EditKind::Lines))
            .collect();
        edits.push(edit("contexts-old/x.json", EditKind::Lines));
        edits.push(edit("reqc.toml", EditKind::Comments));
        edits.push(edit("reqc.toml", EditKind::Key("rules.x".into())));
        edits.push(edit("reqc.toml", EditKind::Key("golden.contexts".into())));
        edits.push(edit("a/reqc.toml", EditKind::Key("golden.contexts".into())));
        let (silent, set) = ((0..edits.len()).collect(), edits.len() - 2);
        let first: Vec<usize> = std::iter::once(set).chain(0..MOST_CHOICES - 1).collect();
        assert_eq!(may_choose(&edits, &silent, true), first);
        assert_eq!(may_choose(&edits, &silent, false), [set]);
        let spoken = BTreeSet::from([set - 1, set + 1, MOST_CHOICES, MOST_CHOICES + 1]);
        assert_eq!(may_choose(&edits, &spoken, true), [0; 0]);
    }
}
