//! Limits the work of a run. The agents' costs are added up in agent order, so the result does not
//! depend on how threads are scheduled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The maximum work for one agent in all of its contexts, in units.
pub(super) const AGENT_LIMIT: u64 = 1_000_000_000;
/// The cost of each value that no template renders, in units. Such values are still merged, copied,
/// checked and compared.
const STATIC_VALUE: u64 = 250;
/// The cost of explaining and locating one problem in a body, in units.
const PROBLEM: u64 = 50_000;

/// Returns the cost of a body in units, without the cost of its templates.
pub(super) fn of_body(static_values: usize, problems: usize) -> u64 {
    STATIC_VALUE
        .saturating_mul(static_values as u64)
        .saturating_add(PROBLEM.saturating_mul(problems as u64))
}
/// The maximum total size of one agent's bodies, in bytes. They stay in memory until all of them
/// are compiled.
pub(super) const MAX_HELD: usize = 128 << 20;
/// The maximum total number of values that are merged for all agents. Each agent merges the values
/// in its whole chain.
pub(super) const MAX_MERGED: usize = 10_000_000;

/// The work allowed in every run, in units.
const RUN_BASE: u64 = 8_000_000_000;
/// The additional work allowed for each body, in units: twice the usual cost.
const RUN_PER_BODY: u64 = 250_000;

/// Returns the work limit for a run with this number of bodies, in units.
pub(super) fn run_limit(bodies: usize) -> u64 {
    RUN_BASE.saturating_add(RUN_PER_BODY.saturating_mul(bodies as u64))
}

/// The costs of a run's agents, shared by the run's threads.
///
/// An agent is part of the run only if the agents before it have not used up the limit. This
/// depends only on their costs. Threads compile agents in any order, so some compiled agents may be
/// dropped in the end. Once the leading agents have used up the limit, no further agents are
/// started.
pub(super) struct Ledger {
    limit: u64,
    is_spent: AtomicBool,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// The number of leading agents whose costs have been entered.
    next: usize,
    /// The total cost of the leading agents, in units.
    sum: u64,
    /// The costs that were entered before the cost of an earlier agent, by agent index.
    ahead: HashMap<usize, u64>,
}

impl Ledger {
    pub(super) fn new(limit: u64) -> Ledger {
        Ledger {
            limit,
            is_spent: AtomicBool::new(false),
            entries: Mutex::default(),
        }
    }

    /// Returns `true` if the leading agents have used up the limit.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Records an agent's cost.
    pub(super) fn enter(&self, index: usize, cost: u64) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.ahead.insert(index, cost);
        loop {
            let next = entries.next;
            let Some(cost) = entries.ahead.remove(&next) else {
                break;
            };
            entries.next += 1;
            entries.sum = entries.sum.saturating_add(cost);
        }
        if entries.sum >= self.limit {
            self.is_spent.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns the number of leading agents that are part of the run. A cost of `None` means that the
/// agent was not started.
pub(super) fn places(costs: impl Iterator<Item = Option<u64>>, limit: u64) -> usize {
    let mut sum = 0_u64;
    costs
        .take_while(|cost| {
            let has_place = sum < limit;
            sum = sum.saturating_add(cost.unwrap_or(limit));
            has_place && cost.is_some()
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_threads_decides_nothing() {
        let costs = [3, 4, 5, 6];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let ledger = Ledger::new(7);
            let mut done = [None; 4];
            for index in order {
                if !ledger.is_spent() {
                    ledger.enter(index, costs[index]);
                    done[index] = Some(costs[index]);
                }
            }
            assert_eq!(places(done.into_iter(), 7), 2, "{order:?}");
        }
        assert_eq!(places([Some(1), Some(1)].into_iter(), 7), 2);
    }
}
