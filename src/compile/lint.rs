//! Checks whole files of bodies that were not compiled from profiles.
//!
//! [`Linting`] reads files, line by line if they are JSON Lines, and returns a
//! [`Report`](super::Report) like a run over a repository.
//! [`Compiler::lint`](super::Compiler::lint) checks one value.

mod document;
mod files;

pub use self::files::Linting;
pub use super::report::LintedBodies;
