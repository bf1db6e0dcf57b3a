//! The program that tests run.

use std::path::PathBuf;

/// Returns the path in the variable `REQC`, or else that of the program that was built with the
/// tests. `.ci/run` names the optimised build: it is what users run, and faster.
pub(crate) fn path() -> PathBuf {
    given().unwrap_or_else(|| env!("CARGO_BIN_EXE_reqc").into())
}

/// Returns `true` if `REQC` names the program, which is then an optimised one.
#[allow(dead_code, reason = "only attacks have limits of time")]
pub(crate) fn is_given() -> bool {
    given().is_some()
}

#[expect(
    clippy::disallowed_methods,
    reason = "who runs the tests chooses the program"
)]
fn given() -> Option<PathBuf> {
    std::env::var_os("REQC").map(PathBuf::from)
}
