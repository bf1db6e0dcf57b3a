//! Replaces the supervisor on systems without subreapers, where processes that left a tool's group
//! are not ended.

use std::process::ExitCode;

/// Returns `None`, because no process is started as a supervisor on this system.
pub fn supervise() -> Option<ExitCode> {
    None
}

pub(crate) fn adopt() {}

pub(crate) fn end_the_rest() {}
