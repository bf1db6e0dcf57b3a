//! Reads the content of files; no other module does. Only regular files are read, up to a limit.
//! The exception is a file that the caller's shell has opened, which is read like standard input.
//!
//! A pipe waits for its other end, a device may have no end, and a sparse file can claim any size.
//! Therefore, all of them are detected before the first byte is read.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::Path;

use super::words;
use crate::world::ReadError;

/// Returns the bytes of a regular file, following links.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_opened(unchecked(path)?, limit)
}

/// Opens a regular file, following links. The caller limits how much of it is read.
#[cfg(feature = "cli")]
pub(super) fn open(path: &Path) -> Result<File, ReadError> {
    let file = unchecked(path)?;
    regular(&file.metadata().map_err(|error| failed(&error))?)?;
    Ok(file)
}

/// Opens a file that this process already has open, such as the end of a pipe (`/dev/fd/63`).
#[cfg(feature = "cli")]
pub(super) fn open_descriptor(path: &Path) -> Result<File, ReadError> {
    let file = File::open(path).map_err(|error| failed(&error))?;
    let found = file.metadata().map_err(|error| failed(&error))?;
    match found.is_dir() {
        true => regular(&found).map(|()| file),
        false => Ok(file),
    }
}

/// Opens a path that was a regular file when it was checked.
fn unchecked(path: &Path) -> Result<File, ReadError> {
    // Check the type first, because opening a device can have side effects. If the file is replaced
    // in between, opening it does not block.
    regular(&fs::metadata(path).map_err(|error| failed(&error))?)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, non_blocking());
    options
        .read(true)
        .open(path)
        .map_err(|error| failed(&error))
}

/// Returns the bytes of an opened file, or an error if it is not a regular file.
pub(super) fn read_opened(file: File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let found = file.metadata().map_err(|error| failed(&error))?;
    regular(&found)?;
    read_sized(file, found.len(), limit)
}

/// Returns the bytes of an opened regular file whose size is known.
pub(super) fn read_sized(file: File, size: u64, limit: u64) -> Result<Vec<u8>, ReadError> {
    if size > limit {
        return Err(ReadError::TooLarge { size, limit });
    }
    // With one extra byte, the last read detects the end without another buffer. `take` prevents
    // the standard library from querying the size again, and enforces the limit if the file is
    // growing.
    let mut bytes = Vec::new();
    let room = usize::try_from(size)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    bytes
        .try_reserve_exact(room)
        .map_err(|_| ReadError::Failed("there is not enough memory".to_owned()))?;
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    match bytes.len() as u64 {
        size if size > limit => Err(ReadError::TooLarge { size, limit }),
        _ => Ok(bytes),
    }
}

fn regular(found: &fs::Metadata) -> Result<(), ReadError> {
    match found.file_type() {
        kind if kind.is_dir() => Err(ReadError::Folder),
        kind if kind.is_file() => Ok(()),
        _ => Err(ReadError::Failed("it is not a regular file".to_owned())),
    }
}

pub(super) fn failed(error: &std::io::Error) -> ReadError {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ReadError::Missing,
        _ => ReadError::Failed(words(error)),
    }
}

/// Returns flags for an open call that does not block and does not acquire a controlling terminal.
#[cfg(unix)]
pub(super) fn non_blocking() -> i32 {
    (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY)
        .bits()
        .cast_signed()
}

/// Returns the flags of [`non_blocking`], plus one that makes opening a link fail, for a path whose
/// links have been resolved.
#[cfg(unix)]
pub(super) fn unlinked() -> i32 {
    non_blocking() | rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        fs::write(&path, "12345").expect("writable");
        assert_eq!(read(&path, 5).as_deref(), Ok(b"12345".as_slice()));
        assert_eq!(
            read(&path, 4),
            Err(ReadError::TooLarge { size: 5, limit: 4 })
        );
        assert_eq!(read(folder.path(), 4), Err(ReadError::Folder));
        assert_eq!(read(&folder.path().join("b"), 4), Err(ReadError::Missing));
        File::create(&path)
            .and_then(|file| file.set_len(1 << 40))
            .expect("a file of holes");
        assert_eq!(
            read(&path, 1 << 20),
            Err(ReadError::TooLarge {
                size: 1 << 40,
                limit: 1 << 20
            })
        );
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_not_opened() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(
                read(path, 10),
                Err(ReadError::Failed("it is not a regular file".to_owned()))
            );
        }
    }
}
