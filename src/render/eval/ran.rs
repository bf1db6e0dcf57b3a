//! Counts the statements that ran, and the outcomes of decisions.

use foldhash::HashMap;

use super::super::place::Place;
use super::decisions::Decision;
use super::watch::Watch;

/// How often statements ran, and decisions came to their outcomes.
#[derive(Debug, Default)]
pub(in super::super) struct Ran {
    statements: HashMap<Place, u64>,
    decisions: HashMap<Decision, Outcomes>,
}

/// How often a decision came to each of its outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// The condition held, the loop had elements, the value was there.
    pub(crate) held: u64,
    /// The opposite.
    pub(crate) failed: u64,
}

impl Ran {
    /// Returns how often a statement ran.
    pub(in super::super) fn count(&self, statement: Place) -> u64 {
        self.statements.get(&statement).copied().unwrap_or_default()
    }

    /// Returns how often a decision came to each outcome.
    pub(in super::super) fn outcomes(&self, decision: Decision) -> Outcomes {
        self.decisions.get(&decision).copied().unwrap_or_default()
    }

    /// Adds what ran elsewhere.
    pub(in super::super) fn add(&mut self, other: Ran) {
        for (at, count) in other.statements {
            *self.statements.entry(at).or_default() += count;
        }
        for (decision, outcomes) in other.decisions {
            let sum = self.decisions.entry(decision).or_default();
            sum.held += outcomes.held;
            sum.failed += outcomes.failed;
        }
    }
}

impl Watch for Ran {
    const FOLLOWS: bool = false;

    fn ran(&mut self, at: Place) {
        *self.statements.entry(at).or_default() += 1;
    }

    fn decided(&mut self, decision: Decision, holds: bool) {
        let outcomes = self.decisions.entry(decision).or_default();
        match holds {
            true => outcomes.held += 1,
            false => outcomes.failed += 1,
        }
    }
}
