//! Limits the cost of rendering. Each template has an account, which its operations charge.
//!
//! The evaluator counts steps, but one step can process many megabytes of text. The cost of every
//! operation that reads, creates or compares values therefore depends on their size. The cost is
//! counted here, if possible before the operation starts. Units are counted rather than time, so
//! that a template stops at the same operation on every machine.

use std::cell::Cell;

use minijinja::Error;

use super::refusal::Refusal;
use super::rules;

/// The maximum number of units for one template, and for all templates of one body together.
/// Reading a byte costs 1 unit and creating a byte costs 2, so a template holds less than half this
/// number of bytes in memory.
pub(crate) const LIMIT: u64 = 400_000_000;

/// The maximum nesting depth of macros, includes, loops and blocks; an include counts 10, a macro
/// call 4.
pub(super) const RECURSION_LIMIT: usize = 300;
/// The number of nesting levels that an include counts as.
pub(super) const INCLUDE_DEPTH: usize = 10;
/// The maximum output of one template, in bytes.
pub(crate) const MAX_OUTPUT: usize = 32 * 1024 * 1024;
/// The error message for output that exceeds [`MAX_OUTPUT`].
pub(super) const TOO_LARGE: &str = "the output is too large";

/// The cost of an engine step.
pub(super) const STEP: u64 = 16;
/// The cost of visiting a value.
pub(super) const VISIT: u64 = 64;
/// The cost of creating a list.
pub(super) const LIST: u64 = 256;
/// The cost of adding an element to a list.
pub(super) const ELEMENT: u64 = 32;
/// The cost of creating an object.
pub(super) const MAP: u64 = 256;
/// The cost of adding a member to an object.
pub(super) const MEMBER: u64 = 96;
/// The cost of a string that a tag writes. Storing the tag and a run of bytes takes 44 bytes.
pub(super) const WRITE: u64 = 96;
/// The cost of entering a scope. Storing it takes 48 bytes.
pub(super) const SCOPE: u64 = 96;
/// The cost of a file-system query.
pub(super) const FILE: u64 = 10_000;

/// The cost of examining a folder entry.
pub(super) const ENTRY: u64 = 1_000;
/// The maximum number of runs in all strings that a template builds. Beyond this limit, the writers
/// of a string are no longer distinguished. The runs take 32 MiB, enough to collect a thousand
/// messages one by one.
const MAX_RUNS: usize = 1 << 20;

thread_local! {
    /// The units left for the template on this thread.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The runs left for the template on this thread.
    static RUNS_LEFT: Cell<usize> = const { Cell::new(MAX_RUNS) };
}

/// Performs some work under a separate account; also returns the units spent.
pub(super) fn metered<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = (LEFT.replace(LIMIT), RUNS_LEFT.replace(MAX_RUNS));
    let result = work();
    RUNS_LEFT.set(before.1);
    (result, LIMIT - LEFT.replace(before.0))
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

/// Subtracts the runs of a string from the template's limit; returns `false` if too few are left.
pub(super) fn keep_runs(runs: usize) -> bool {
    let rest = RUNS_LEFT.get().checked_sub(runs);
    rest.inspect(|&rest| RUNS_LEFT.set(rest)).is_some()
}

/// Charges for reading bytes.
pub(super) fn read(bytes: usize) -> Result<(), Error> {
    charge(bytes as u64)
}

/// Charges for creating bytes.
pub(super) fn make(bytes: usize) -> Result<(), Error> {
    charge((bytes as u64).saturating_mul(2))
}

/// Charges for creating a list.
pub(super) fn list(len: usize) -> Result<(), Error> {
    charge((len as u64).saturating_mul(ELEMENT).saturating_add(LIST))
}

#[cold]
fn spent() -> Error {
    let message = "the template processes too much data".to_owned();
    Refusal::new(&rules::TOO_MUCH_WORK, message)
        .help("look for a loop that repeatedly copies, joins, compares or searches long strings or lists")
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
