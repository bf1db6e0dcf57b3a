//! Reads files of a repository, up to a limit.

use std::fs;
use std::path::Path;

use crate::system::bounded;
use crate::world::{AccessError, ReadError};

/// Returns the bytes of a regular file; `None` if there is no file, or if it is a link or something
/// else.
pub(super) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, AccessError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(ReadError::Failed("it is a link".to_owned())),
        Ok(_) => bounded::read(path, limit),
        Err(error) => Err(bounded::failed(&error)),
    };
    match found {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ReadError::Missing) => Ok(None),
        Err(why) => Err(format!("`{}` cannot be read: {why}", path.display()).into()),
    }
}
