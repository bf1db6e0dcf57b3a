//! The reqc binary that tests run.

use std::path::PathBuf;

/// Returns the path in the variable `REQC`, or else that of the binary built with the tests.
/// `.ci/run` sets it to the optimised build, which users run and which is faster.
#[expect(
    clippy::disallowed_methods,
    reason = "who runs the tests chooses the program"
)]
pub(crate) fn path() -> PathBuf {
    std::env::var_os("REQC").map_or_else(|| env!("CARGO_BIN_EXE_reqc").into(), PathBuf::from)
}
