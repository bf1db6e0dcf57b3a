//! The effect of a change of sources on bodies, by cause.
//!
//! Input: the files of an older and a newer side, compiled. Output: a [`Review`]: which edits of
//! sources changed which bodies, and how. What is said to be a cause is proven: the edit alone,
//! applied to the older side, makes that change. Printing is
//! [`report`](crate::report)'s business, and where sides come from is the caller's.

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
use crate::world::{MemoryWorld, World};
use breaks::{Clusters, Nameless, Trials, Wanted};
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
        Side {
            files: edit::files_of(world),
            compiler,
        }
    }
}

/// The two sides of a review, and how compilers are made.
pub struct Reviewing<'r> {
    /// The agents and contexts, of the newer side.
    pub selection: &'r Selection,
    /// The policy for findings.
    pub policy: &'r PolicyOptions,
    /// `true` if bodies of all contexts are compared, `false` if only those that golden files are
    /// kept for.
    pub all_contexts: bool,
    /// Makes compilers of files that neither side has.
    pub load: Load<'r>,
}

/// The effect of a change.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Review {
    /// The findings on the newer side.
    pub report: Report,
    /// The causes: those that break agents first, then those that change most.
    pub causes: Vec<Cause>,
    /// Agents with errors on the newer side, by name.
    pub broken: Vec<BrokenAgent>,
    /// Agents with errors on the older side alone.
    pub mended: BTreeSet<Arc<str>>,
    /// Changes of bodies that no edit is known for, with the line that wrote what is new.
    pub unexplained: Vec<CausedGroup>,
    /// Agents and contexts that came, went or got another name.
    pub roll: Roll,
    /// Files that go to another agent of a roster.
    pub rerouted: Vec<Rerouted>,
    /// Edits that change no body.
    pub silent: Vec<Edit>,
    /// The checks that the newer side lowers and the older did not.
    pub lowered: Vec<Lowered>,
    /// Every file that differs.
    pub changes: Vec<ChangedFile>,
    /// `true` if the older side's sources are known: if not, there are no causes.
    pub has_sources: bool,
    /// The number of tokens that bodies take more or less; `None` if none does.
    pub growth: Option<Growth>,
}

/// Edits, and what they do to bodies.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cause {
    /// The edits. If they are of several files or keys, only together they do what they do.
    pub edits: Vec<Edit>,
    /// The bodies, as the older side has them and as these edits alone make them.
    pub changes: Vec<ChangedFile>,
    /// The changes in them.
    pub groups: Vec<Group>,
    /// How much of a cached prefix is lost, by body.
    pub prefix: Vec<(BodyId, PrefixLoss)>,
    /// The agents that these edits break: without them they compile.
    pub broken: BTreeSet<Arc<str>>,
    /// The agents that compile with these edits, and had errors before.
    pub mended: BTreeSet<Arc<str>>,
}

/// The kind of change that a cause is, from harmless to grave. A gate can fail on one and those
/// above it.
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
    /// An agent no longer compiles.
    Broken,
}

impl Class {
    /// All classes, the most harmless first.
    pub const ALL: [Class; 6] = [
        Class::Silent,
        Class::Text,
        Class::Value,
        Class::Removed,
        Class::Request,
        Class::Broken,
    ];

    /// The word for it in options and reports.
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

    /// That of one change.
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
    /// Returns what edits change, and what else is known of that.
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

    /// The gravest kind of its changes.
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

    /// The agents that it changes.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes
            .iter()
            .map(|file| &file.subject.agent)
            .collect()
    }

    /// Returns how many bodies it changes; request lines are none.
    pub fn bodies(&self) -> usize {
        self.changes
            .iter()
            .filter(|file| file.subject.context.is_some())
            .count()
    }
}

impl Review {
    /// Returns `true` if nothing differs on the wire, no file goes elsewhere, and nothing is let
    /// through that was not.
    pub fn is_empty(&self) -> bool {
        let has_same_agents = self.newly_broken().next().is_none() && self.mended.is_empty();
        let has_same_bodies = self.changes.is_empty() && self.roll.is_empty();
        has_same_agents && has_same_bodies && self.lowered.is_empty() && self.rerouted.is_empty()
    }

    /// The agents that do not compile, and did before or are new.
    pub fn newly_broken(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before != Before::Broken)
            .map(|it| &it.agent)
    }

    /// The agents that compiled, and no longer do.
    pub fn no_longer_compiled(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| matches!(it.before, Before::Compiled(_)))
            .map(|it| &it.agent)
    }

    /// The agents that are new, and do not compile.
    pub fn new_and_broken(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before == Before::Absent)
            .map(|it| &it.agent)
    }

    /// The agents that compile on neither side, so that nothing is known of their bodies.
    pub fn uncompared(&self) -> impl Iterator<Item = &Arc<str>> {
        self.broken
            .iter()
            .filter(|it| it.before == Before::Broken)
            .map(|it| &it.agent)
    }

    /// The agents that no longer compile, and no edit is known to break.
    pub fn broken_by_nothing_known(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_told = |name: &Arc<str>| self.causes.iter().any(|cause| cause.broken.contains(name));
        self.newly_broken().filter(move |name| !is_told(name))
    }

    /// Edits that change no body, and do something anyway, or may.
    pub fn beside(&self) -> impl Iterator<Item = &Edit> {
        self.silent.iter().filter(|edit| edit.acts())
    }

    /// The agents with bodies or request lines that differ.
    pub fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.changes
            .iter()
            .map(|file| &file.subject.agent)
            .collect()
    }

    /// Returns how many bodies differ; request lines are none.
    pub fn bodies(&self) -> usize {
        self.changes
            .iter()
            .filter(|file| file.subject.context.is_some())
            .count()
    }

    /// The agents of which a part of a cached prefix is lost.
    pub fn agents_losing_prefix(&self) -> BTreeSet<&Arc<str>> {
        self.causes
            .iter()
            .flat_map(|cause| &cause.prefix)
            .map(|(subject, _)| &subject.agent)
            .collect()
    }

    /// The gravest kind of change.
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

    /// Returns what the newer side does to the bodies of the older one.
    pub fn between(older: &Side, newer: &Side, reviewing: &Reviewing<'_>) -> Review {
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let names = OlderNames::of(&edits, &older.compiler, &newer.compiler);
        // What judges bodies reaches none, and may let all of them pass or fail.
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
        // What has another name is not gone, and what cannot be read is an error.
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

    /// Returns what the newer side does to golden files, and why as far as an older side tells it:
    /// the one that golden files were last written from.
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
        let parted = Parted::of(&drifts, &between);
        let (upgrade, open) = upgrade::causes(&altered_bundled, parted.others, newer);
        let edits = Edits::between(&older.files, &newer.files);
        let reach = reach::of_edits(&edits, &older.compiler, &newer.compiler);
        let names = OlderNames::of(&edits, &older.compiler, &newer.compiler);
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

    /// Takes over which agents two sides of sources break and fix, and why: golden files do not
    /// tell.
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

    /// The cause that some edits are; a new one, if they change no body.
    fn cause_of(&mut self, edits: Vec<Edit>) -> &mut Cause {
        let known = self.causes.iter().position(|cause| cause.edits == edits);
        let at = known.unwrap_or_else(|| {
            self.causes.push(Cause::of(edits, Vec::new()));
            self.causes.len() - 1
        });
        &mut self.causes[at]
    }

    /// The causes that change most come first.
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

/// The files of an older side with some of the edits that lead to a newer one.
pub fn applied(
    older: &MemoryWorld,
    newer: &MemoryWorld,
    chosen: impl Fn(&Edit) -> bool,
) -> MemoryWorld {
    let edits = Edits::between(older, newer);
    edits.applied(older, |edit| chosen(&edits.all[edit]))
}

/// Two sides, and what differs between their files.
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
        let (causes, mut silent) = self.causes(&both, &left_out, reviewing);
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
        let roll = Roll::of(
            &one,
            &self.names,
            &self.older.compiler,
            &self.newer.compiler,
            &self.newer.files,
        );
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

    /// The causes of changes, and the edits that change nothing.
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

    /// Edits that nothing else tells.
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

/// Returns which edits break agents, and which fix them.
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

/// The edits of all clusters, by agent.
fn by_agent(clusters: &Clusters) -> BTreeMap<Arc<str>, Cluster> {
    let mut edits: BTreeMap<Arc<str>, Cluster> = BTreeMap::new();
    for (cluster, agents) in clusters {
        agents
            .iter()
            .for_each(|agent| edits.entry(Arc::clone(agent)).or_default().extend(cluster));
    }
    edits
}

/// The agents that errors of a report reach, where nothing is known of the older side.
fn broken_by_report(report: &Report) -> Vec<BrokenAgent> {
    let agents = breaks::codes_of(report, &Nameless::new()).into_keys();
    agents.map(BrokenAgent::of_unknown_past).collect()
}
