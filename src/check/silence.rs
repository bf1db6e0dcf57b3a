//! Caches which rules find nothing in a body, depending on the members that they read.
//!
//! A rule reads a body through its [`Subject`], which records each member that the rule reads. If a
//! rule finds nothing in one body, it also finds nothing in any other body of the same route in
//! which these members have equal values. Most bodies of a run differ in only one or two members,
//! so most rules need not run again.
//!
//! Rules that read the same members share one question. These groups of rules are learned while the
//! rules run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::protocol::{self, Rules};
use super::subject::Subject;
use crate::memory::{Identity, Memory, Question};
use crate::provider::{ApiHeaders, Server, WireFormat};
use crate::unit::{Body, Sameness};

/// The destination of bodies, which is a rule's only input besides the members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RouteOf {
    pub(super) wire: WireFormat,
    pub(super) server: Server,
    pub(super) headers: ApiHeaders,
    pub(super) model: Option<String>,
}

impl Question for RouteOf {
    type Answer = Arc<Known>;
}

/// The cached results of the rules for one route.
#[derive(Debug)]
pub(super) struct Known {
    route: Identity,
    learned: RwLock<Learned>,
}

/// The members that rules read, as learned so far.
#[derive(Debug)]
struct Learned {
    /// For each rule, the members that the rule has read so far.
    looks_at: Vec<BTreeSet<Arc<str>>>,
    groups: Arc<[Group]>,
}

/// The [`Question`] of whether rules find nothing, given these members. Only positive results are
/// cached.
#[derive(PartialEq, Eq, Hash)]
struct AreSilent {
    route: Identity,
    rules: Rules,
    /// The members, by name.
    members: Vec<(Arc<str>, Option<Sameness>)>,
}

impl Question for AreSilent {
    type Answer = ();

    fn weight(&self, (): &()) -> usize {
        128 + self
            .members
            .iter()
            .map(|(_, member)| 32 + member.as_ref().map_or(0, Sameness::weight))
            .sum::<usize>()
    }
}

/// A group of rules that read the same members.
#[derive(Debug)]
struct Group {
    members: Vec<Arc<str>>,
    rules: Rules,
}

/// The members that a rule read in one body.
struct Seen {
    rule: usize,
    members: Vec<Arc<str>>,
}

impl Learned {
    fn of(looks_at: Vec<BTreeSet<Arc<str>>>) -> Learned {
        let mut groups: BTreeMap<&BTreeSet<Arc<str>>, Rules> = BTreeMap::new();
        for (rule, members) in looks_at.iter().enumerate() {
            *groups.entry(members).or_default() |= bit(rule);
        }
        Learned {
            groups: groups
                .into_iter()
                .map(|(members, rules)| Group {
                    members: members.iter().cloned().collect(),
                    rules,
                })
                .collect(),
            looks_at,
        }
    }

    /// Returns `true` if a rule read only members that it was already known to read.
    fn has(&self, seen: &Seen) -> bool {
        let known = &self.looks_at[seen.rule];
        seen.members.iter().all(|member| known.contains(member))
    }
}

impl Known {
    pub(super) fn new() -> Known {
        let learned = Learned::of(vec![BTreeSet::new(); protocol::COUNT]);
        Known {
            route: Identity::new(),
            learned: RwLock::new(learned),
        }
    }

    /// Returns the rules that find something in a body. `subject` returns the body with a
    /// placeholder for the agent's own system prompt.
    pub(super) fn loud<'b>(
        &self,
        body: &Body,
        subject: impl FnOnce() -> Subject<'b>,
        memory: &Memory,
    ) -> Rules {
        let members = body.sameness();
        let whole = self.question(
            protocol::EVERY,
            members.iter().map(|(name, _)| name),
            &members,
        );
        if whole
            .as_ref()
            .is_some_and(|whole| memory.recall(whole).is_some())
        {
            return 0;
        }
        let question = |group: &Group| self.question(group.rules, group.members.iter(), &members);
        let is_known =
            |group: &&Group| question(group).is_some_and(|it| memory.recall(&it).is_some());
        let asked = self
            .groups()
            .iter()
            .filter(|group| !is_known(group))
            .fold(0, |all, group| all | group.rules);
        let loud = if asked == 0 {
            0
        } else {
            self.ask(asked, &subject())
        };
        for group in self
            .groups()
            .iter()
            .filter(|group| group.rules & asked != 0 && group.rules & loud == 0)
        {
            question(group)
                .into_iter()
                .for_each(|question| memory.note(question, ()));
        }
        whole
            .filter(|_| loud == 0)
            .into_iter()
            .for_each(|whole| memory.note(whole, ()));
        loud
    }

    /// Runs rules, and learns which members each rule reads. Returns the rules that find something.
    fn ask(&self, asked: Rules, subject: &Subject<'_>) -> Rules {
        let (mut loud, mut seen) = (0, Vec::new());
        for rule in (0..protocol::COUNT).filter(|rule| asked & bit(*rule) != 0) {
            let (is_silent, members) = subject.watched(|| protocol::is_silent(rule, subject));
            if !is_silent {
                loud |= bit(rule);
            }
            seen.push(Seen { rule, members });
        }
        self.learn(seen);
        loud
    }

    /// Records the members that rules read. If any of them is new, the groups are rebuilt.
    fn learn(&self, seen: Vec<Seen>) {
        let is_known = {
            let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
            seen.iter().all(|seen| learned.has(seen))
        };
        if is_known {
            return;
        }
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        let mut looks_at = std::mem::take(&mut learned.looks_at);
        for Seen { rule, members } in seen {
            looks_at[rule].extend(members);
        }
        *learned = Learned::of(looks_at);
    }

    fn groups(&self) -> Arc<[Group]> {
        Arc::clone(
            &self
                .learned
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .groups,
        )
    }

    /// Returns the question for a group of rules; `None` if a member is not shared with other
    /// bodies.
    fn question<'n>(
        &self,
        rules: Rules,
        names: impl Iterator<Item = &'n Arc<str>>,
        members: &[(Arc<str>, Option<Sameness>)],
    ) -> Option<AreSilent> {
        Some(AreSilent {
            route: self.route,
            rules,
            members: names
                .map(
                    |name| match members.iter().find(|(known, _)| known == name) {
                        Some((_, sameness)) => Some((Arc::clone(name), Some(sameness.clone()?))),
                        None => Some((Arc::clone(name), None)),
                    },
                )
                .collect::<Option<_>>()?,
        })
    }
}

fn bit(rule: usize) -> Rules {
    1 << rule
}
