//! Stored content in files below a folder, such as the folder of a session.

use std::path::Path;

use super::Disk;
use crate::conversation::StoredContent;
use crate::runtime::content::{ContentLoader, MAX_BYTES, stored};
use crate::runtime::{Category, Error};
use crate::world::{AccessError, World};

/// Files below a folder, identified by relative paths with `/`. No path reaches outside the folder,
/// not even through links. Hidden files and private keys are not read.
pub struct FolderContent(Disk);

impl FolderContent {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder does not exist.
    pub fn open(folder: &Path) -> Result<FolderContent, AccessError> {
        Disk::open(folder).map(FolderContent)
    }

    /// Creates a reference to a file below the folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is too large, or has a type that messages
    /// cannot contain.
    pub fn store(&self, path: &str) -> Result<StoredContent, Error> {
        let bytes = self.load(path);
        let bytes = bytes.map_err(|why| {
            Error::new(
                Category::Config,
                format!("`{path}` cannot be attached: {why}"),
            )
        })?;
        stored(path, &bytes)
    }
}

impl ContentLoader for FolderContent {
    fn load(&self, reference: &str) -> Result<Vec<u8>, AccessError> {
        let is_below = !reference.starts_with('/')
            && !reference.contains(['\\', ':'])
            && reference
                .split('/')
                .all(|part| !matches!(part, "" | "." | ".."));
        if !is_below {
            return Err("it is not a path below the session's folder".into());
        }
        self.0
            .read_within(reference, MAX_BYTES)
            .map_err(|error| error.to_string().into())
    }
}
