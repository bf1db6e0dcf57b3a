//! A folder that is held open while files in it are read, written, and removed, so that it cannot
//! be replaced with a link in between.
//!
//! On Unix, each folder of a path is opened relative to its parent, without following links. On
//! other systems, each folder is checked first.

#[cfg(not(unix))]
pub(super) use looked_at::Held;
#[cfg(unix)]
pub(super) use opened::Held;

/// The message for a link where a folder is expected.
const LINK: &str = "is a link, which is not followed here";

/// Describes what was found where a regular file is expected.
fn in_the_way(is_link: bool, is_folder: bool) -> &'static str {
    match (is_link, is_folder) {
        (true, _) => "there is a link at this path",
        (_, true) => "there is a folder at this path",
        _ => "it is not a regular file",
    }
}

#[cfg(unix)]
mod opened {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::fs::{
        AtFlags, Dir, FileType, Mode, OFlags, mkdirat, open, openat, renameat, statat, unlinkat,
    };
    use rustix::io::Errno;

    use super::{LINK, in_the_way};
    use crate::system::{bounded, words};
    use crate::world::{AccessError, EntryKind, MAX_ENTRIES};

    /// A folder, held open.
    pub(in crate::system::disk) struct Held(OwnedFd);

    /// The maximum number of names that are tried for a temporary file.
    const TRIES: u64 = 100;

    impl Held {
        pub(in crate::system::disk) fn open(folder: &Path) -> Result<Held, AccessError> {
            open(folder, folder_flags(), Mode::empty())
                .map(Held)
                .map_err(said)
        }

        /// Opens a folder in this one; `None` if there is none. An error is a phrase that completes
        /// a sentence whose subject is the folder.
        pub(in crate::system::disk) fn enter(
            &self,
            name: &str,
        ) -> Result<Option<Held>, AccessError> {
            match openat(
                &self.0,
                name,
                folder_flags() | OFlags::NOFOLLOW,
                Mode::empty(),
            ) {
                Ok(folder) => Ok(Some(Held(folder))),
                Err(Errno::NOENT) => Ok(None),
                Err(_) if self.kind(name)? == Some(FileType::Symlink) => Err(LINK.into()),
                Err(error) => Err(format!("cannot be opened: {}", said(error)).into()),
            }
        }

        pub(in crate::system::disk) fn make_folder(&self, name: &str) -> Result<(), AccessError> {
            match mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
                Err(Errno::EXIST) | Ok(()) => Ok(()),
                Err(error) => Err(said(error)),
            }
        }

        fn kind(&self, name: &str) -> Result<Option<FileType>, AccessError> {
            match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(said(error)),
            }
        }

        /// Returns `true` if there is a regular file with this name, and an error if there is
        /// anything else.
        fn has_file(&self, name: &str) -> Result<bool, AccessError> {
            match self.kind(name)? {
                None => Ok(false),
                Some(FileType::RegularFile) => Ok(true),
                Some(kind) => {
                    Err(in_the_way(kind == FileType::Symlink, kind == FileType::Directory).into())
                }
            }
        }

        /// Returns the bytes of a file; `None` if there is none.
        pub(in crate::system::disk) fn read(
            &self,
            name: &str,
            limit: u64,
        ) -> Result<Option<Vec<u8>>, AccessError> {
            if !self.has_file(name)? {
                return Ok(None);
            }
            let flags = OFlags::RDONLY
                | OFlags::NOFOLLOW
                | OFlags::NONBLOCK
                | OFlags::NOCTTY
                | OFlags::CLOEXEC;
            let file = openat(&self.0, name, flags, Mode::empty()).map_err(said)?;
            Ok(Some(bounded::read_opened(File::from(file), limit)?))
        }

        /// Replaces a file atomically, by renaming a new one, so that readers see either the old or
        /// the new bytes.
        pub(in crate::system::disk) fn write(
            &self,
            name: &str,
            bytes: &[u8],
        ) -> Result<(), AccessError> {
            self.has_file(name)?;
            let (new, mut file) = self.new_file()?;
            let written = file.write_all(bytes).map_err(|error| words(&error).into());
            let written =
                written.and_then(|()| renameat(&self.0, &new, &self.0, name).map_err(said));
            if written.is_err() {
                let _ = unlinkat(&self.0, &new, AtFlags::empty());
            }
            written
        }

        fn new_file(&self) -> Result<(String, File), AccessError> {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            for _ in 0..TRIES {
                let name = format!(
                    ".reqc-{}-{}.tmp",
                    std::process::id(),
                    COUNT.fetch_add(1, Ordering::Relaxed)
                );
                match openat(&self.0, &name, flags, Mode::from_raw_mode(0o666)) {
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(said(error)),
                    Ok(file) => return Ok((name, File::from(file))),
                }
            }
            Err("all names for a temporary file are taken".into())
        }

        pub(in crate::system::disk) fn remove(&self, name: &str) -> Result<(), AccessError> {
            match self.has_file(name)? {
                true => unlinkat(&self.0, name, AtFlags::empty()).map_err(said),
                false => Ok(()),
            }
        }

        /// Removes a folder if it is empty.
        pub(in crate::system::disk) fn remove_folder(&self, name: &str) {
            // This fails if the folder is not empty, which is intended.
            let _ = unlinkat(&self.0, name, AtFlags::REMOVEDIR);
        }

        /// Returns the names in this folder, in no particular order.
        pub(in crate::system::disk) fn names(
            &self,
        ) -> Result<Vec<(String, EntryKind)>, AccessError> {
            let mut names = Vec::new();
            for found in Dir::read_from(&self.0).map_err(said)?.take(MAX_ENTRIES + 3) {
                let found = found.map_err(said)?;
                let name = found.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    let kind = match found.file_type() {
                        FileType::Unknown => self.kind(&name)?.unwrap_or(FileType::Unknown),
                        kind => kind,
                    };
                    let is_folder = kind == FileType::Directory;
                    names.push((
                        name,
                        if is_folder {
                            EntryKind::Folder
                        } else {
                            EntryKind::File
                        },
                    ));
                }
            }
            Ok(names)
        }
    }

    fn folder_flags() -> OFlags {
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
    }

    fn said(error: Errno) -> AccessError {
        words(&error.into()).into()
    }
}

#[cfg(any(not(unix), test))]
mod looked_at {
    use std::fs;
    use std::io::{ErrorKind, Write};
    use std::path::{Path, PathBuf};

    use super::{LINK, in_the_way};
    use crate::system::{bounded, words};
    use crate::world::{AccessError, EntryKind, MAX_ENTRIES};

    /// A folder that was not a link when it was checked.
    pub(in crate::system::disk) struct Held(PathBuf);

    impl Held {
        #[expect(clippy::unnecessary_wraps, reason = "on Unix opening can fail")]
        pub(in crate::system::disk) fn open(folder: &Path) -> Result<Held, AccessError> {
            Ok(Held(folder.to_owned()))
        }

        fn found(&self, name: &str) -> Result<Option<fs::Metadata>, AccessError> {
            match fs::symlink_metadata(self.0.join(name)) {
                Ok(found) => Ok(Some(found)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(words(&error).into()),
            }
        }

        /// Opens a folder in this one; `None` if there is none. An error is a phrase that completes
        /// a sentence whose subject is the folder.
        pub(in crate::system::disk) fn enter(
            &self,
            name: &str,
        ) -> Result<Option<Held>, AccessError> {
            match self.found(name)? {
                None => Ok(None),
                Some(found) if found.is_dir() => Ok(Some(Held(self.0.join(name)))),
                Some(found) if found.is_symlink() => Err(LINK.into()),
                Some(_) => Err("is not a folder".into()),
            }
        }

        pub(in crate::system::disk) fn make_folder(&self, name: &str) -> Result<(), AccessError> {
            match fs::create_dir(self.0.join(name)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(words(&error).into()),
                _ => Ok(()),
            }
        }

        /// Returns `true` if there is a regular file with this name, and an error if there is
        /// anything else.
        fn has_file(&self, name: &str) -> Result<bool, AccessError> {
            match self.found(name)? {
                None => Ok(false),
                Some(found) if found.is_file() => Ok(true),
                Some(found) => Err(in_the_way(found.is_symlink(), found.is_dir()).into()),
            }
        }

        /// Returns the bytes of a file; `None` if there is none.
        pub(in crate::system::disk) fn read(
            &self,
            name: &str,
            limit: u64,
        ) -> Result<Option<Vec<u8>>, AccessError> {
            match self.has_file(name)? {
                true => Ok(Some(bounded::read(&self.0.join(name), limit)?)),
                false => Ok(None),
            }
        }

        /// Replaces a file atomically, by renaming a new one, so that readers see either the old or
        /// the new bytes.
        pub(in crate::system::disk) fn write(
            &self,
            name: &str,
            bytes: &[u8],
        ) -> Result<(), AccessError> {
            self.has_file(name)?;
            let new = tempfile::Builder::new()
                .prefix(".reqc-")
                .suffix(".tmp")
                .tempfile_in(&self.0);
            let mut new = new.map_err(|error| words(&error))?;
            new.write_all(bytes).map_err(|error| words(&error))?;
            new.persist(self.0.join(name))
                .map_err(|error| words(&error.error))?;
            Ok(())
        }

        pub(in crate::system::disk) fn remove(&self, name: &str) -> Result<(), AccessError> {
            match self.has_file(name)? {
                true => fs::remove_file(self.0.join(name)).map_err(|error| words(&error).into()),
                false => Ok(()),
            }
        }

        /// Removes a folder if it is empty.
        pub(in crate::system::disk) fn remove_folder(&self, name: &str) {
            // This fails if the folder is not empty, which is intended.
            let _ = fs::remove_dir(self.0.join(name));
        }

        /// Returns the names in this folder, in no particular order.
        pub(in crate::system::disk) fn names(
            &self,
        ) -> Result<Vec<(String, EntryKind)>, AccessError> {
            let mut names = Vec::new();
            for found in fs::read_dir(&self.0)
                .map_err(|error| words(&error))?
                .take(MAX_ENTRIES + 1)
            {
                let found = found.map_err(|error| words(&error))?;
                let is_folder = found.file_type().is_ok_and(|kind| kind.is_dir());
                let kind = if is_folder {
                    EntryKind::Folder
                } else {
                    EntryKind::File
                };
                names.push((found.file_name().to_string_lossy().into_owned(), kind));
            }
            Ok(names)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Tests that both implementations behave in the same way.
    macro_rules! holds {
        ($name:ident, $held:ty) => {
            #[test]
            fn $name() {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let root = folder.path();
                fs::create_dir(root.join("inner")).expect("writable");
                fs::write(root.join("file"), "old").expect("writable");
                symlink("file", root.join("alias")).expect("a link");
                symlink("inner", root.join("folder")).expect("a link");
                let held = <$held>::open(folder.path()).expect("it is there");
                assert_eq!(held.read("file", 3), Ok(Some(b"old".to_vec())));
                assert_eq!(held.read("none", 3), Ok(None));
                assert!(held.read("file", 2).is_err());
                assert_eq!(
                    held.read("alias", 3),
                    Err("there is a link at this path".into())
                );
                assert_eq!(
                    held.write("alias", b"x"),
                    Err("there is a link at this path".into())
                );
                assert_eq!(
                    held.remove("alias"),
                    Err("there is a link at this path".into())
                );
                assert_eq!(
                    held.write("inner", b"x"),
                    Err("there is a folder at this path".into())
                );
                assert_eq!(held.enter("folder").err(), Some(super::LINK.into()));
                assert!(
                    held.enter("file").is_err()
                        && held.enter("none").is_ok_and(|found| found.is_none())
                );
                assert_eq!(held.write("file", b"new"), Ok(()));
                assert_eq!(
                    held.make_folder("made")
                        .and_then(|()| held.make_folder("made")),
                    Ok(())
                );
                held.remove_folder("made");
                let inner = held.enter("inner").expect("a folder").expect("it is there");
                assert_eq!(inner.write("a", b"1"), Ok(()));
                held.remove_folder("inner");
                assert_eq!(inner.remove("a").and_then(|()| inner.remove("a")), Ok(()));
                held.remove_folder("inner");
                let mut names = held.names().expect("it can be listed");
                names.sort_by(|a, b| a.0.cmp(&b.0));
                assert_eq!(
                    names
                        .iter()
                        .map(|(name, _)| name.as_str())
                        .collect::<Vec<_>>(),
                    ["alias", "file", "folder"]
                );
                assert_eq!(fs::read(root.join("file")).expect("readable"), b"new");
            }
        };
    }

    holds!(by_opening, super::opened::Held);
    holds!(by_looking, super::looked_at::Held);
}
