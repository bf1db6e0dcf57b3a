//! The program that tests run.

use std::path::PathBuf;

/// Returns the path in the variable `REQC`, or else that of the program that was built with the
/// tests. `.ci/run` names the optimised build: it is what users run, and faster.
#[expect(
    clippy::disallowed_methods,
    reason = "who runs the tests chooses the program"
)]
pub(crate) fn path() -> PathBuf {
    std::env::var_os("REQC").map_or_else(|| env!("CARGO_BIN_EXE_reqc").into(), PathBuf::from)
}
