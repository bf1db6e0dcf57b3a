//! Whole files of bodies that no profile made.
//!
//! [`Linting`] reads files, line by line if they are JSON Lines, and gives a [`Report`](super::Report) as a run over a repository
//! does. [`Compiler::lint`](super::Compiler::lint) judges one value.

mod document;
mod files;

pub use self::files::Linting;
pub use super::report::LintedBodies;
