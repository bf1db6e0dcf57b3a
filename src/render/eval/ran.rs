//! Counts the executed statements, and the outcomes of decisions.

use foldhash::HashMap;

use super::super::place::Place;
use super::decisions::Decision;
use super::watch::Watch;

/// Counts of executed statements, and of the outcomes of decisions.
#[derive(Debug, Default)]
pub(in super::super) struct Ran {
    statements: HashMap<Place, u64>,
    decisions: HashMap<Decision, Outcomes>,
}

/// The number of times that a decision had each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// The condition held, the loop had elements, or the value was present.
    pub(crate) held: u64,
    /// The condition failed, the loop had no elements, or the value was absent.
    pub(crate) failed: u64,
}

impl Ran {
    /// Returns the number of times that a statement ran.
    pub(in super::super) fn count(&self, statement: Place) -> u64 {
        self.statements.get(&statement).copied().unwrap_or_default()
    }

    /// Returns the number of times that a decision had each outcome.
    pub(in super::super) fn outcomes(&self, decision: Decision) -> Outcomes {
        self.decisions.get(&decision).copied().unwrap_or_default()
    }

    /// Adds the counts of other renders.
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
