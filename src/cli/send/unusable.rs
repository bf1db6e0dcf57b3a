//! The reasons why there is nothing to send.

use super::super::Failure;
use crate::diag::Diagnostic;
use crate::source::Sources;

/// The reasons why there is nothing to send.
pub(super) enum Unusable {
    Failure(Failure),
    Findings(Vec<Diagnostic>),
    /// Findings in files that are not part of the repository.
    FindingsIn(Sources, Vec<Diagnostic>),
}

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Unusable {
        Unusable::Failure(failure)
    }
}
