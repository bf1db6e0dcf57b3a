//! In place of the supervisor where there are no subreapers: what leaves a tool's group is lost.

use std::process::ExitCode;

/// Returns whether this process was started as a supervisor: never.
pub fn supervise() -> Option<ExitCode> {
    None
}

pub(crate) fn adopt() {}

pub(crate) fn end_the_rest() {}
