//! The limits on how much work a run may do: what its agents cost, added up in their order,
//! whatever the threads do.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Units of work that one agent may take, over all of its contexts.
pub(super) const AGENT_LIMIT: u64 = 1_000_000_000;
/// Units for each value of a body that no template renders: it is merged, copied, checked and
/// compared.
const STATIC_VALUE: u64 = 250;
/// Units for each problem of a body: it is explained, and its place is looked for.
const PROBLEM: u64 = 50_000;

/// The units of a body beside those of its templates.
pub(super) fn of_body(static_values: usize, problems: usize) -> u64 {
    STATIC_VALUE
        .saturating_mul(static_values as u64)
        .saturating_add(PROBLEM.saturating_mul(problems as u64))
}
/// The most bytes that the bodies of one agent may have together: they are held until all are made.
pub(super) const MAX_HELD: usize = 128 << 20;
/// The most values that are merged for all agents together: each agent merges those of its whole
/// chain.
pub(super) const MAX_MERGED: usize = 10_000_000;

/// Units that every run may take.
const RUN_BASE: u64 = 8_000_000_000;
/// Further units per body: several times what a usual one takes.
const RUN_PER_BODY: u64 = 250_000;

/// The units that a run of so many bodies may take.
pub(super) fn run_limit(bodies: usize) -> u64 {
    RUN_BASE.saturating_add(RUN_PER_BODY.saturating_mul(bodies as u64))
}

/// The account of a run, shared by its threads.
///
/// An agent has its place in the run only if those before it leave something of the limit: that
/// depends on what they cost and on nothing else. Threads take agents in any order, so they may
/// compile some that are dropped in the end; once the agents from the first one on have spent the
/// limit, the others need not begin.
pub(super) struct Ledger {
    limit: u64,
    is_spent: AtomicBool,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// The number of agents, from the first one on, that are entered.
    next: usize,
    /// The units of work that these took.
    sum: u64,
    /// The units of work that agents after them took, by number.
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

    /// Returns `true` if no further agent can have a place.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Enters what an agent cost.
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

/// Returns how many agents have a place, by what they cost; `None` stands for one that did not
/// begin.
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
