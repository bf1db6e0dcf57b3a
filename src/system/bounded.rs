//! The place where the bytes of files come in: regular files only, and never more than a limit.
//!
//! A pipe would wait for its other end, a device has no end, and a file of holes has any size that
//! it likes: so all three are told apart before the first byte is read.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::Path;

use super::words;
use crate::world::ReadError;

/// The bytes of a regular file, links followed.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_opened(unchecked(path)?, limit)
}

/// A regular file to read piece by piece, links followed: how much of it is read is the reader's
/// business.
#[cfg(feature = "cli")]
pub(super) fn open(path: &Path) -> Result<File, ReadError> {
    let file = unchecked(path)?;
    regular(&file.metadata().map_err(|error| failed(&error))?)?;
    Ok(file)
}

/// Returns what lies at a path; it was a regular file a moment ago.
fn unchecked(path: &Path) -> Result<File, ReadError> {
    // Looked at first: opening a device does something to it. What takes its place in between does
    // not block.
    regular(&fs::metadata(path).map_err(|error| failed(&error))?)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, non_blocking());
    options
        .read(true)
        .open(path)
        .map_err(|error| failed(&error))
}

/// The bytes of an opened file, if it is a regular one.
pub(super) fn read_opened(file: File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let found = file.metadata().map_err(|error| failed(&error))?;
    regular(&found)?;
    read_sized(file, found.len(), limit)
}

/// The bytes of an opened regular file whose size was asked for.
pub(super) fn read_sized(file: File, size: u64, limit: u64) -> Result<Vec<u8>, ReadError> {
    if size > limit {
        return Err(ReadError::TooLarge { size, limit });
    }
    // Room for one byte more: the read that finds the end needs no other buffer. `take` keeps the
    // standard library from asking for the size again, and a file that grows meanwhile from growing
    // beyond the limit.
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

/// The flags of an open that waits for nobody, and makes no terminal the process's own.
#[cfg(unix)]
pub(super) fn non_blocking() -> i32 {
    (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY)
        .bits()
        .cast_signed()
}

/// The same for a path whose links were followed: none may have come in between.
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
