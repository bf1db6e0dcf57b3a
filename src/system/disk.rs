//! A folder on disk that can be read and written.
//!
//! Nothing outside the folder is ever read or written. Reading follows links, unless they point
//! outside or to hidden files; writing follows no links.

mod held;
mod walk;
mod write;

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{bounded, place, relative, words};
use crate::world::{
    AccessError, Entry, EntryKind, ReadError, Walk, World, is_hidden, is_private_key,
};

/// A folder on disk.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The canonical path, with all links resolved.
    root: PathBuf,
    /// A file that may be read although it is hidden, because the user named it.
    named: Option<String>,
    #[cfg(target_os = "linux")]
    folder: Option<Arc<std::os::fd::OwnedFd>>,
}

impl Disk {
    /// Opens a folder.
    ///
    /// # Errors
    /// Returns a phrase that mentions `root`, if it is missing, unreadable, or not a folder.
    pub fn open(root: &Path) -> Result<Disk, AccessError> {
        let shown = root.display();
        match fs::canonicalize(root) {
            Ok(root) if root.is_dir() => Ok(Disk {
                #[cfg(target_os = "linux")]
                folder: beneath::open(&root),
                named: None,
                root,
            }),
            Ok(_) => Err(format!("`{shown}` is not a folder").into()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("`{shown}` does not exist").into())
            }
            Err(error) => Err(format!("`{shown}` cannot be opened: {}", words(&error)).into()),
        }
    }

    /// Opens a folder to write to, creating it if it is missing.
    ///
    /// # Errors
    /// Returns the errors of [`Disk::open`], and fails if the folder cannot be created, is in a
    /// `.git`, or is reached through a link in a repository, because a repository must not decide
    /// where files are written. `root`, if given, is treated as such a repository.
    pub fn create(folder: &Path, root: Option<&Path>) -> Result<Disk, AccessError> {
        let folder = place::to_write(folder, root)?;
        fs::create_dir_all(&folder).map_err(|error| {
            format!(
                "`{}` cannot be created: {}",
                folder.display(),
                words(&error)
            )
        })?;
        Disk::open(&folder)
    }

    /// Allows one file to be read even if it is hidden.
    #[must_use]
    pub fn with_named(self, path: &str) -> Disk {
        Disk {
            named: Some(path.to_owned()),
            ..self
        }
    }

    /// Returns the folder's canonical path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn is_hidden(&self, path: &str) -> bool {
        is_hidden(path) && self.named.as_deref() != Some(path)
    }

    /// Returns the path without `.` and `..`, or an error if the path is hidden.
    fn visible(&self, path: &str) -> Result<String, ReadError> {
        let path = folded(path)?;
        if self.is_hidden(&path) {
            Err(ReadError::Hidden)
        } else {
            Ok(path)
        }
    }

    /// Returns the path of an existing file relative to the root, with links resolved. `path` must
    /// not contain `.` or `..`, and must not be hidden.
    fn resolve(&self, path: &str) -> Result<String, ReadError> {
        #[cfg(target_os = "linux")]
        match self
            .folder
            .as_ref()
            .map(|folder| beneath::look(folder, path))
        {
            Some(beneath::Presence::Found) => return Ok(path.to_owned()),
            Some(beneath::Presence::Missing) => return Err(ReadError::Missing),
            Some(beneath::Presence::Unclear) | None => {}
        }
        let place = self.root.join(path);
        let real = match fs::canonicalize(&place) {
            Ok(real) if !real.starts_with(&self.root) => return Err(ReadError::Outside),
            // After a lossy conversion to text, the path could equal the name of a different file.
            Ok(real) if no_text(&self.root, &real) => return Err(not_utf8()),
            Ok(real) => relative(&self.root, &real),
            Err(error) if fs::symlink_metadata(&place).is_ok() => return Err(broken_link(&error)),
            Err(error) => {
                return Err(self
                    .lost_on_the_way(&place)
                    .unwrap_or_else(|| bounded::failed(&error)));
            }
        };
        if self.is_hidden(&real) {
            Err(ReadError::Hidden)
        } else {
            Ok(real)
        }
    }

    /// Returns why a file does not exist, if a link in its path is broken or points outside the
    /// folder.
    fn lost_on_the_way(&self, place: &Path) -> Option<ReadError> {
        let mut folders = place
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.root);
        let nearest = folders.find(|folder| fs::symlink_metadata(folder).is_ok())?;
        match fs::canonicalize(nearest) {
            Ok(real) => (!real.starts_with(&self.root)).then_some(ReadError::Outside),
            Err(error) => Some(broken_link(&error)),
        }
    }
}

/// Returns a path without `.` and `..`. Links are not resolved.
fn folded(path: &str) -> Result<String, ReadError> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy()),
            Component::CurDir => {}
            Component::ParentDir if parts.pop().is_some() => {}
            _ => return Err(ReadError::Outside),
        }
    }
    Ok(parts.join("/"))
}

/// Returns `true` if the part of a path below `root` is not valid Unicode.
fn no_text(root: &Path, path: &Path) -> bool {
    path.to_str().is_none() && path.strip_prefix(root).unwrap_or(path).to_str().is_none()
}

fn not_utf8() -> ReadError {
    ReadError::Failed("its name is not UTF-8".to_owned())
}

fn broken_link(error: &std::io::Error) -> ReadError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ReadError::Failed("the link is broken".to_owned())
        }
        _ => ReadError::Failed(words(error)),
    }
}

impl World for Disk {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let path = self.visible(path)?;
        #[cfg(target_os = "linux")]
        if let Some(found) = self
            .folder
            .as_ref()
            .and_then(|folder| beneath::read(folder, &path, limit))
        {
            return found.and_then(no_key);
        }
        let real = self.resolve(&path)?;
        #[cfg(target_os = "linux")]
        if let Some(found) = self
            .folder
            .as_ref()
            .and_then(|folder| beneath::read(folder, &real, limit))
        {
            return found.and_then(no_key);
        }
        bounded::read(&self.root.join(real), limit).and_then(no_key)
    }

    fn walk(&self, folder: &str) -> Walk {
        walk::walk(self, folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.list_counted(folder).map(|(entries, _)| entries)
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        let folder = self.visible(folder)?;
        match self.resolve(&folder) {
            Ok(_) => walk::children(self, &folder),
            Err(ReadError::Missing) => Ok((Vec::new(), 0)),
            Err(why) => Err(why),
        }
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        let path = self.visible(path)?;
        let real = self.root.join(self.resolve(&path)?);
        Ok(if real.is_dir() {
            EntryKind::Folder
        } else {
            EntryKind::File
        })
    }

    fn today(&self) -> Option<(i32, u8, u8)> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        civil_date(i64::try_from(since.as_secs() / 86_400).ok()?)
    }
}

fn no_key(bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
    if is_private_key(&bytes) {
        Err(ReadError::Hidden)
    } else {
        Ok(bytes)
    }
}

/// Reads below a folder in one step that follows no links. This is enough for most files in a
/// repository.
#[cfg(target_os = "linux")]
mod beneath {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, open as open_path, openat2, statat,
    };
    use rustix::io::Errno;

    use super::bounded;
    use crate::world::ReadError;

    /// Opens a folder to be held open; `None` if that is not possible.
    pub(super) fn open(folder: &Path) -> Option<Arc<OwnedFd>> {
        open_path(
            folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()
        .map(Arc::new)
    }

    /// The result of checking a path without following links.
    pub(super) enum Presence {
        /// The path exists.
        Found,
        /// The path does not exist, and contains no links.
        Missing,
        /// The path needs further checks.
        Unclear,
    }

    /// Checks whether a path exists, without opening the file.
    pub(super) fn look(folder: &OwnedFd, path: &str) -> Presence {
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(
            folder,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        ) {
            Ok(_) => Presence::Found,
            Err(Errno::NOENT | Errno::NOTDIR) => Presence::Missing,
            Err(_) => Presence::Unclear,
        }
    }

    /// Returns the bytes of a file; `None` if further checks are needed, for example to find the
    /// reason for an error.
    pub(super) fn read(
        folder: &OwnedFd,
        path: &str,
        limit: u64,
    ) -> Option<Result<Vec<u8>, ReadError>> {
        // Check the type first, because opening a pipe or device can have side effects. If the file
        // is replaced in between, opening it does not block.
        let found = statat(folder, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(folder, path, flags, Mode::empty(), resolve).ok()?);
        Some(bounded::read_sized(
            file,
            u64::try_from(found.st_size).ok()?,
            limit,
        ))
    }
}

/// Returns the date of a day counted from 1970-01-01 (Hinnant's `civil_from_days`); `None` if it is
/// out of range.
fn civil_date(days: i64) -> Option<(i32, u8, u8)> {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some((
        i32::try_from(year).ok()?,
        u8::try_from(month).ok()?,
        u8::try_from(day).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{MAX_DEPTH, MAX_FILE_BYTES, Output, Unread};

    /// Creates a folder with these files.
    fn folder(files: &[&str]) -> (tempfile::TempDir, Disk) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk::open(dir.path()).expect("it exists");
        for path in files {
            let place = disk.root.join(path);
            fs::create_dir_all(place.parent().expect("a folder")).expect("writable");
            fs::write(place, path).expect("writable");
        }
        (dir, disk)
    }

    fn paths(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    fn walked(disk: &Disk, folder: &str) -> Vec<String> {
        let found = disk.walk(folder);
        assert_eq!(found.unread, []);
        found.entries.into_iter().map(|entry| entry.path).collect()
    }

    fn listed(disk: &Disk, folder: &str) -> Vec<String> {
        let entries = World::list(disk, folder).expect("it can be listed");
        entries.into_iter().map(|entry| entry.path).collect()
    }

    /// Returns all files below the root, including hidden ones.
    fn everything(disk: &Disk) -> Vec<String> {
        let found = walkdir::WalkDir::new(disk.root())
            .into_iter()
            .flatten()
            .filter(|found| found.file_type().is_file());
        let mut paths: Vec<String> = found
            .map(|found| relative(disk.root(), found.path()))
            .collect();
        paths.sort();
        paths
    }

    #[test]
    fn opening_says_what_is_wrong() {
        let (dir, _) = folder(&["file"]);
        assert!(
            Disk::open(&dir.path().join("none"))
                .expect_err("missing")
                .to_string()
                .ends_with("does not exist")
        );
        assert!(
            Disk::open(&dir.path().join("file"))
                .expect_err("a file")
                .to_string()
                .ends_with("is not a folder")
        );
        assert!(Disk::create(&dir.path().join("x/y"), None).is_ok());
    }

    #[test]
    fn walks_are_sorted_by_whole_path() {
        let (_dir, disk) = folder(&[
            "t/a/b",
            "t/a-b",
            "t/a.toml",
            "t/a/.hidden",
            "t/B",
            "t/é",
            "u",
        ]);
        assert_eq!(
            walked(&disk, "t"),
            ["t/B", "t/a-b", "t/a.toml", "t/a/b", "t/é"]
        );
        assert_eq!(
            listed(&disk, "t"),
            ["t/B", "t/a", "t/a-b", "t/a.toml", "t/é"]
        );
        assert_eq!(listed(&disk, ""), ["t", "u"]);
        assert_eq!(
            paths(&Output::list(&disk, "t/a").expect("it can be listed")),
            ["t/a/.hidden", "t/a/b"]
        );
        assert_eq!(disk.walk("none"), Walk::default());
        assert_eq!(disk.walk("u"), Walk::default());
    }

    #[test]
    fn a_memory_world_lists_the_same() {
        let files = [
            "t/a/b",
            "t/a-b",
            "t/a.toml",
            "t/a/c",
            "t/B",
            "t/x.key/y",
            "t/y.key",
            "t/.z/a",
            "u",
        ];
        let (_dir, disk) = folder(&files);
        let memory = crate::world::MemoryWorld::from_iter(files.map(|path| (path, path)));
        for folder in ["", "t", "t/a", "none", "t/.z"] {
            assert_eq!(disk.walk(folder), memory.walk(folder));
            assert_eq!(World::list(&disk, folder), memory.list(folder));
        }
    }

    #[test]
    fn folders_with_a_file_name_are_told() {
        let (_dir, disk) = folder(&["agents/x.toml/inner.toml"]);
        let found = disk.walk("agents").entries;
        assert_eq!(
            found[0],
            Entry {
                path: "agents/x.toml".into(),
                kind: EntryKind::Folder
            }
        );
        assert_eq!(found.len(), 2);
        assert_eq!(disk.read("agents/x.toml"), Err(ReadError::Folder));
    }

    #[test]
    fn reading_never_leaves_the_root() {
        let (_dir, disk) = folder(&["a"]);
        assert_eq!(disk.read("a").as_deref(), Ok(b"a".as_slice()));
        assert_eq!(disk.read("x/.././a").as_deref(), Ok(b"a".as_slice()));
        assert_eq!(disk.read("b"), Err(ReadError::Missing));
        assert_eq!(disk.read("a/b"), Err(ReadError::Missing));
        assert_eq!(disk.read("../a"), Err(ReadError::Outside));
        assert_eq!(disk.read("/etc/passwd"), Err(ReadError::Outside));
        assert!(matches!(disk.read("a\0b"), Err(ReadError::Failed(_))));
        assert_eq!(disk.kind(""), Ok(EntryKind::Folder));
        let holes = fs::File::create(disk.root.join("a")).expect("writable");
        holes.set_len(MAX_FILE_BYTES + 1).expect("a file of holes");
        let found = disk.read("a");
        assert_eq!(
            found,
            Err(ReadError::TooLarge {
                size: MAX_FILE_BYTES + 1,
                limit: MAX_FILE_BYTES
            })
        );
    }

    #[cfg(unix)]
    mod links {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, symlink};

        fn link(disk: &Disk, target: &str, at: &str) {
            symlink(target, disk.root.join(at)).expect("a link");
        }

        #[test]
        fn links_are_followed_inside_and_refused_outside() {
            let (outside, _) = folder(&["secret", "deep/secret.toml"]);
            let (_dir, disk) = folder(&["p/a.toml", "q/b.toml"]);
            let out = outside.path().display();
            link(&disk, "../q/b.toml", "p/file.toml");
            link(&disk, "../q", "p/folder");
            link(&disk, &format!("{out}/secret"), "p/out");
            link(&disk, &format!("{out}/deep"), "p/out-folder");
            let found = disk.walk("p");
            assert_eq!(
                paths(&found.entries),
                ["p/a.toml", "p/file.toml", "p/folder/b.toml", "p/out"]
            );
            assert_eq!(
                found.unread,
                [Unread {
                    path: "p/out-folder".into(),
                    why: ReadError::Outside
                }]
            );
            assert_eq!(
                disk.read("p/file.toml").as_deref(),
                Ok(b"q/b.toml".as_slice())
            );
            for path in ["p/out", "p/out-folder/secret.toml", "p/out-folder"] {
                assert_eq!(disk.read(path), Err(ReadError::Outside));
                assert_eq!(disk.kind(path), Err(ReadError::Outside));
            }
            assert_eq!(
                disk.walk("p/out-folder"),
                Walk::unread("p/out-folder", ReadError::Outside)
            );
            assert_eq!(World::list(&disk, "p/out-folder"), Err(ReadError::Outside));
        }

        #[test]
        fn broken_links_and_loops_end() {
            let (_dir, disk) = folder(&["p/a"]);
            link(&disk, "nowhere", "p/broken");
            link(&disk, "self", "p/self");
            link(&disk, "../p", "p/up");
            link(&disk, "..", "p/x.toml");
            link(&disk, "nowhere", "p/lost.md");
            let found = disk.walk("p");
            assert_eq!(paths(&found.entries), ["p/a", "p/lost.md", "p/x.toml"]);
            assert_eq!(
                found
                    .unread
                    .iter()
                    .map(|it| it.path.as_str())
                    .collect::<Vec<_>>(),
                ["p/broken", "p/self"]
            );
            assert_eq!(found.entries[2].kind, EntryKind::Folder);
            assert_eq!(
                disk.read("p/broken"),
                Err(ReadError::Failed("the link is broken".into()))
            );
            assert!(matches!(disk.read("p/self"), Err(ReadError::Failed(_))));
        }

        #[test]
        fn names_that_are_no_text_are_told_and_never_another_file() {
            use std::os::unix::ffi::OsStrExt;
            let (dir, disk) = folder(&["agents/a\u{fffd}.toml", "p/x"]);
            let at = |folder: &str, name: &[u8]| {
                dir.path()
                    .join(folder)
                    .join(std::ffi::OsStr::from_bytes(name))
            };
            if fs::write(at("agents", b"a\xff.toml"), "theirs").is_err() {
                // This file system does not support such names.
                return;
            }
            fs::create_dir(at("agents", b"d\xff"))
                .and_then(|()| fs::write(at("agents", b"d\xff/b.toml"), ""))
                .expect("made");
            symlink("../p", at("agents", b"l\xff")).expect("a link");
            symlink(
                std::ffi::OsStr::from_bytes(b"a\xff.toml"),
                dir.path().join("agents/link.toml"),
            )
            .expect("a link");
            let found = disk.walk("agents");
            assert_eq!(
                paths(&found.entries),
                ["agents/a\u{fffd}.toml", "agents/link.toml"]
            );
            let told: Vec<&str> = found.unread.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(
                told,
                [
                    "agents/a\u{fffd}.toml",
                    "agents/d\u{fffd}",
                    "agents/l\u{fffd}"
                ]
            );
            assert!(found.unread.iter().all(|it| it.why == not_utf8()));
            assert_eq!(
                disk.read("agents/a\u{fffd}.toml").as_deref(),
                Ok("agents/a\u{fffd}.toml".as_bytes())
            );
            assert_eq!(disk.read("agents/link.toml"), Err(not_utf8()));
            assert!(World::list(&disk, "agents").is_err());
        }

        #[test]
        fn pipes_do_not_block() {
            let (dir, disk) = folder(&[]);
            let made = std::process::Command::new("mkfifo")
                .arg(dir.path().join("pipe"))
                .status();
            if made.is_ok_and(|status| status.success()) {
                assert!(matches!(disk.read("pipe"), Err(ReadError::Failed(_))));
                assert!(disk.current("pipe").is_err() && disk.replace("pipe", b"").is_err());
            }
            link(&disk, "/dev/zero", "zero");
            assert_eq!(disk.read("zero"), Err(ReadError::Outside));
        }

        #[test]
        fn writing_never_leaves_the_root() {
            let (outside, _) = folder(&["file"]);
            let (_dir, disk) = folder(&["in/target"]);
            let out = outside.path().display();
            link(&disk, &format!("{out}"), "out");
            link(&disk, &format!("{out}/file"), "file");
            link(&disk, "nowhere", "broken");
            link(&disk, "in/target", "alias");
            link(&disk, ".", "here");
            fs::hard_link(outside.path().join("file"), disk.root.join("hard"))
                .expect("a hard link");
            for path in [
                "out/new", "out/a/b", "file", "broken", "broken/x", "../x", "/x", "alias",
                "here/new", ".git/x", "in/.x",
            ] {
                assert!(disk.replace(path, b"!").is_err(), "{path}");
            }
            for path in ["out/file", "alias", "here/in/target", "out"] {
                assert!(disk.remove(path).is_err(), "{path}");
            }
            assert_eq!(disk.replace("hard", b"new"), Ok(()));
            assert_eq!(
                fs::read(outside.path().join("file")).expect("untouched"),
                b"file"
            );
            assert!(disk.current("alias").is_err() && disk.current("here/in/target").is_err());
            assert!(Output::list(&disk, "out").is_err());
        }

        #[test]
        fn nothing_hidden_is_reached_by_any_way() {
            let (_dir, disk) = folder(&[".git/config", ".env", "a/x", "keys/id_rsa"]);
            fs::write(
                disk.root.join("plain"),
                "-----BEGIN OPENSSH PRIVATE KEY-----\n",
            )
            .expect("writable");
            link(&disk, "../.git", "a/git");
            link(&disk, "../.git/config", "a/config.md");
            link(&disk, "config.md", "a/again.md");
            link(&disk, "../keys/id_rsa", "a/key.md");
            let paths = [
                ".git/config",
                "a/../.git/config",
                ".//.git/config",
                ".env",
                "a/git/config",
                "a/config.md",
                "a/again.md",
                "a/key.md",
                "plain",
            ];
            for path in paths {
                assert_eq!(disk.read(path), Err(ReadError::Hidden), "{path}");
                assert!(
                    path == "plain" || disk.kind(path) == Err(ReadError::Hidden),
                    "{path}"
                );
            }
            for folder in [".git", "a/git", "a/../.git"] {
                assert_eq!(
                    World::list(&disk, folder),
                    Err(ReadError::Hidden),
                    "{folder}"
                );
                assert_eq!(disk.walk(folder), Walk::unread(folder, ReadError::Hidden));
            }
            assert_eq!(
                disk.walk("a").unread,
                [Unread {
                    path: "a/git".into(),
                    why: ReadError::Hidden
                }]
            );
            assert_eq!(
                disk.with_named(".env").read(".env").as_deref(),
                Ok(b".env".as_slice())
            );
        }

        #[test]
        fn links_that_double_and_folders_without_end_are_told() {
            let (_dir, disk) = folder(&["p/a.toml"]);
            for level in 0..30 {
                fs::create_dir_all(disk.root.join(format!("p/d{level}"))).expect("writable");
                for name in ["a", "b"] {
                    link(
                        &disk,
                        &format!("../d{}", level + 1),
                        &format!("p/d{level}/{name}"),
                    );
                }
            }
            fs::create_dir_all(disk.root.join("p/d30")).expect("writable");
            let found = disk.walk("p");
            assert_eq!(found.entries, []);
            assert!(found.unread[0].why.to_string().contains("links to folders"));
            let deep = vec!["d"; MAX_DEPTH + 5].join("/");
            fs::create_dir_all(disk.root.join("q").join(&deep)).expect("writable");
            assert!(
                disk.walk("q").unread[0]
                    .why
                    .to_string()
                    .contains("folders deep")
            );
        }

        #[test]
        fn new_files_have_usual_permissions() {
            let (dir, disk) = folder(&["a"]);
            fs::write(dir.path().join("b"), "").expect("writable");
            let mode = |name: &str| {
                fs::metadata(disk.root.join(name))
                    .expect("there")
                    .permissions()
                    .mode()
            };
            assert_eq!(mode("a"), mode("b"));
        }
    }

    #[test]
    fn replacing_leaves_nothing_behind() {
        let (_dir, disk) = folder(&["golden/a/b.json"]);
        assert_eq!(disk.replace("golden/a/b.json", b"new"), Ok(()));
        assert_eq!(disk.current("golden/a/b.json"), Ok(Some(b"new".to_vec())));
        assert_eq!(disk.current("golden/a/c.json"), Ok(None));
        assert_eq!(everything(&disk), ["golden/a/b.json"]);
        assert!(
            disk.replace("golden/a", b"")
                .expect_err("a folder")
                .to_string()
                .contains("there is a folder at this path")
        );
        assert!(disk.current("golden/a").is_err());
    }

    #[test]
    fn removing_takes_an_empty_folder_along() {
        let (_dir, disk) = folder(&["golden/a/1", "golden/a/2", "top"]);
        assert_eq!(disk.remove("golden/a/1"), Ok(()));
        assert_eq!(disk.kind("golden/a"), Ok(EntryKind::Folder));
        assert_eq!(disk.remove("golden/a/2"), Ok(()));
        assert_eq!(disk.kind("golden/a"), Err(ReadError::Missing));
        assert_eq!(disk.kind("golden"), Ok(EntryKind::Folder));
        assert_eq!(disk.remove("golden/none/1"), Ok(()));
        assert_eq!(disk.remove("top"), Ok(()));
        assert!(disk.remove("golden").is_err());
        assert!(disk.remove("").is_err());
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(civil_date(0), Some((1970, 1, 1)));
        assert_eq!(civil_date(11_016), Some((2000, 2, 29)));
        assert_eq!(civil_date(19_782), Some((2024, 2, 29)));
        assert_eq!(civil_date(20_453), Some((2025, 12, 31)));
        assert_eq!(civil_date(-1), Some((1969, 12, 31)));
    }
}
