//! The limits on the cost of rendering: one account per template, charged by the size of what an
//! operation touches.
//!
//! The engine counts steps, and a step can touch a text of many megabytes. So whatever reads, makes
//! or compares values charges for their size here, before it works where that is possible. Units
//! are counted, never time: a template ends at the same operation on every machine.

use std::cell::Cell;

use minijinja::Error;

use super::refusal::Refusal;
use super::rules;

/// Units that one template may spend; the templates of one body share as many. A byte that is read
/// costs 1, one that is made 2: the memory that a template can hold on to stays below half of this,
/// in bytes.
pub(crate) const LIMIT: u64 = 400_000_000;

/// How deep macros, includes, loops and blocks may nest; an include counts 10, a macro call 4.
pub(super) const RECURSION_LIMIT: usize = 300;
/// The largest output of one template, in bytes.
pub(crate) const MAX_OUTPUT: usize = 32 * 1024 * 1024;
/// The message of errors where [`MAX_OUTPUT`] is passed.
pub(super) const TOO_LARGE: &str = "the output is too large";

/// A step of the engine.
pub(super) const STEP: u64 = 16;
/// A value that is visited.
pub(super) const VISIT: u64 = 64;
/// A list that is made.
pub(super) const LIST: u64 = 256;
/// An element that is added to a list.
pub(super) const ELEMENT: u64 = 32;
/// An object that is made.
pub(super) const MAP: u64 = 256;
/// A member that is added to an object.
pub(super) const MEMBER: u64 = 96;
/// A question to a file system.
pub(super) const FILE: u64 = 10_000;

/// An entry of a folder that is looked at.
pub(super) const ENTRY: u64 = 1_000;
/// A run of bytes whose writer is known.
const RUN: u64 = 80;

thread_local! {
    /// The units that the template of this thread may still spend.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Does some work under an account of its own; also gives what was spent.
pub(super) fn metered<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = LEFT.replace(LIMIT);
    let result = work();
    (result, LIMIT - LEFT.replace(before))
}

/// Charges units.
pub(super) fn charge(units: u64) -> Result<(), Error> {
    let rest = LEFT.get().checked_sub(units);
    LEFT.set(rest.unwrap_or(0));
    match rest {
        Some(_) => Ok(()),
        None => Err(spent()),
    }
}

/// Charges for runs of bytes whose writers are followed. Whoever spends too much is reported at the
/// next charge.
pub(super) fn follow(runs: usize) {
    let _ = charge(RUN.saturating_mul(runs as u64));
}

/// Charges for bytes that are read.
pub(super) fn read(bytes: usize) -> Result<(), Error> {
    charge(bytes as u64)
}

/// Charges for bytes that are made.
pub(super) fn make(bytes: usize) -> Result<(), Error> {
    charge((bytes as u64).saturating_mul(2))
}

/// Charges for a list that is made.
pub(super) fn list(len: usize) -> Result<(), Error> {
    charge((len as u64).saturating_mul(ELEMENT).saturating_add(LIST))
}

#[cold]
fn spent() -> Error {
    let message = "the template works on too much data".to_owned();
    Refusal::new(&rules::TOO_MUCH_WORK, message)
        .help("look for a loop that copies, joins, compares or searches long texts or lists again and again")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_apart() {
        let (inner, spent) = metered(|| {
            let (result, inner) = metered(|| charge(LIMIT + 1));
            assert!(result.is_err());
            charge(5).expect("the outer account is untouched");
            inner
        });
        assert_eq!((inner, spent), (LIMIT, 5));
    }
}
