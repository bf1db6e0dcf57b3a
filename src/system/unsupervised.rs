//! Replaces the supervisor on systems without subreapers, where processes that leave a tool's group
//! are not ended.

use std::process::ExitCode;

/// Returns `None`, because no process is started as a supervisor.
pub fn supervise() -> Option<ExitCode> {
    None
}

pub(crate) fn adopt() {}

pub(crate) fn end_the_rest() {}
