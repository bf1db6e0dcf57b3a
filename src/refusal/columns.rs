//! The form in which the program contains the dictionary. Entries are stored by key instead of by
//! entry, because values of the same key are similar and so compress better.
//!
//! The build script includes this file and writes what [`data`](super::data) reads.

use serde::{Deserialize, Serialize};

/// All files of `refusals/`, ordered by name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Columns {
    pub(crate) files: Vec<File>,
    pub(crate) sentence: Vec<String>,
    pub(crate) same: Vec<Vec<String>>,
    pub(crate) status: Vec<Option<i64>>,
    pub(crate) kind: Vec<Option<String>>,
    pub(crate) wraps: Vec<bool>,
    pub(crate) rule: Vec<Option<String>>,
    pub(crate) unruled: Vec<Option<String>>,
    pub(crate) meaning: Vec<String>,
    pub(crate) remedy: Vec<String>,
    pub(crate) seen: Vec<String>,
    pub(crate) sources: Vec<Vec<String>>,
}

/// The keys at the top of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) provider: String,
    pub(crate) name: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) codes: Vec<String>,
    pub(crate) marks: Vec<String>,
    /// The number of entries in the file.
    pub(crate) entries: usize,
}
