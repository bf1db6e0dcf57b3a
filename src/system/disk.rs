//! A folder on disk, as something to read from and to write to.
//!
//! Nothing outside the folder is ever read or written: every path is checked after its links are resolved.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use walkdir::WalkDir;

use super::words;
use crate::world::{Entry, EntryKind, Output, ReadError, World};

/// A folder on disk.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Canonical: without links.
    root: PathBuf,
    #[cfg(target_os = "linux")]
    folder: Option<Arc<std::os::fd::OwnedFd>>,
}

impl Disk {
    /// Opens a folder.
    ///
    /// # Errors
    /// One phrase that names `root`, if it is missing, unreadable or not a folder.
    pub fn open(root: &Path) -> Result<Disk, String> {
        let shown = root.display();
        match fs::canonicalize(root) {
            Ok(root) if root.is_dir() => Ok(Disk {
                #[cfg(target_os = "linux")]
                folder: beneath::open(&root),
                root,
            }),
            Ok(_) => Err(format!("`{shown}` is not a folder")),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("`{shown}` does not exist")),
            Err(error) => Err(format!("`{shown}` cannot be opened: {}", words(&error))),
        }
    }

    /// Opens a folder, creating it if it is missing.
    ///
    /// # Errors
    /// As [`Disk::open`], or if it cannot be created.
    pub fn create(root: &Path) -> Result<Disk, String> {
        fs::create_dir_all(root)
            .map_err(|error| format!("`{}` cannot be created: {}", root.display(), words(&error)))?;
        Disk::open(root)
    }

    /// The folder's canonical path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path with `.` and `..` folded; links are not looked at.
    fn join(&self, path: &str) -> Result<PathBuf, ReadError> {
        let mut inner = PathBuf::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => inner.push(name),
                Component::CurDir => {}
                Component::ParentDir if inner.pop() => {}
                _ => return Err(ReadError::Outside),
            }
        }
        Ok(self.root.join(inner))
    }

    /// The path of something that exists, links resolved.
    fn resolve(&self, place: &Path) -> Result<PathBuf, ReadError> {
        match fs::canonicalize(place) {
            Ok(real) if real.starts_with(&self.root) => Ok(real),
            Ok(_) => Err(ReadError::Outside),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound if fs::symlink_metadata(place).is_ok() => {
                    ReadError::Failed("the link leads nowhere".to_owned())
                }
                ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing,
                _ => ReadError::Failed(words(&error)),
            }),
        }
    }

    /// Where a file that may not exist yet is written: links resolved.
    fn target(&self, path: &str) -> Result<PathBuf, ReadError> {
        let place = self.join(path)?;
        let known = place.ancestors().find(|part| fs::symlink_metadata(part).is_ok()).unwrap_or(&self.root);
        let real = self.resolve(known)?;
        match place.strip_prefix(known) {
            Ok(rest) if rest.as_os_str().is_empty() => Ok(real),
            Ok(rest) => Ok(real.join(rest)),
            Err(_) => Err(ReadError::Outside),
        }
    }

    fn relative(&self, path: &Path) -> String {
        let inner = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = inner.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    }

    /// The entry at a path that was found; broken links count as files.
    fn entry(&self, path: &Path) -> Entry {
        let kind = if path.is_dir() { EntryKind::Folder } else { EntryKind::File };
        Entry { path: self.relative(path), kind }
    }

    /// What stands directly in a folder; nothing if it cannot be listed.
    fn children(&self, folder: &str) -> impl Iterator<Item = fs::DirEntry> {
        let place = self.join(folder).ok().filter(|place| self.resolve(place).is_ok());
        place.and_then(|place| fs::read_dir(place).ok()).into_iter().flatten().flatten()
    }

    /// What a child is, without another look at what is no link.
    fn child_kind(&self, child: &fs::DirEntry) -> EntryKind {
        match child.file_type() {
            Ok(kind) if kind.is_dir() => EntryKind::Folder,
            Ok(kind) if kind.is_file() => EntryKind::File,
            _ => self.entry(&child.path()).kind,
        }
    }

    /// Whether a walk may go through a link to a folder: it stays inside the root, and does not lead back to a
    /// folder that the walk is in.
    fn may_enter(&self, link: &Path) -> bool {
        let Ok(target) = self.resolve(link) else { return false };
        let mut folders = link.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
        !folders.any(|folder| self.resolve(folder).is_ok_and(|folder| folder.starts_with(&target)))
    }
}

impl World for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        #[cfg(target_os = "linux")]
        if let Some(bytes) = self.folder.as_ref().and_then(|folder| beneath::read(folder, path)) {
            return Ok(bytes);
        }
        let real = self.resolve(&self.join(path)?)?;
        match fs::metadata(&real) {
            Ok(found) if found.is_dir() => Err(ReadError::Folder),
            Ok(found) if !found.is_file() => Err(ReadError::Failed("it is not a regular file".to_owned())),
            Ok(_) => fs::read(&real).map_err(|error| ReadError::Failed(words(&error))),
            Err(error) => Err(ReadError::Failed(words(&error))),
        }
    }

    fn walk(&self, folder: &str) -> Vec<Entry> {
        let Ok(place) = self.join(folder) else { return Vec::new() };
        if self.resolve(&place).is_err() {
            return Vec::new();
        }
        let mut entries = Vec::new();
        let mut walk = WalkDir::new(place).follow_links(true).min_depth(1).into_iter();
        while let Some(found) = walk.next() {
            let entry = match &found {
                Ok(found) if found.file_type().is_dir() => {
                    if found.path_is_symlink() && !self.may_enter(found.path()) {
                        walk.skip_current_dir();
                    }
                    Entry { path: self.relative(found.path()), kind: EntryKind::Folder }
                }
                Ok(found) => Entry { path: self.relative(found.path()), kind: EntryKind::File },
                // A broken link, a link to a folder that holds it, a folder that may not be listed.
                Err(error) => match error.path() {
                    Some(path) if error.depth() > 0 => self.entry(path),
                    _ => continue,
                },
            };
            if entry.kind == EntryKind::File || looks_like_file(&entry.path) {
                entries.push(entry);
            }
        }
        sorted(entries)
    }

    fn list(&self, folder: &str) -> Vec<Entry> {
        let entry = |child: fs::DirEntry| Entry { path: self.relative(&child.path()), kind: self.child_kind(&child) };
        sorted(self.children(folder).map(entry).collect())
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        let real = self.resolve(&self.join(path)?)?;
        Ok(if real.is_dir() { EntryKind::Folder } else { EntryKind::File })
    }

    fn today(&self) -> Option<(i32, u8, u8)> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        civil_date(i64::try_from(since.as_secs() / 86_400).ok()?)
    }
}

impl Output for Disk {
    fn current(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadError::Missing) => Ok(None),
            Err(error) => Err(format!("`{path}` cannot be read: {error}")),
        }
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let failed = |why: String| format!("`{path}` cannot be written: {why}");
        let target = self.target(path).map_err(|error| failed(error.to_string()))?;
        if target.is_dir() {
            return Err(failed("a folder stands there".to_owned()));
        }
        write_beside(&target, bytes).map_err(|error| failed(words(&error)))
    }

    fn remove(&self, path: &str) -> Result<(), String> {
        let failed = |why: String| format!("`{path}` cannot be removed: {why}");
        let place = self.join(path).map_err(|error| failed(error.to_string()))?;
        let Some(parent) = place.parent().filter(|parent| parent.starts_with(&self.root)) else {
            return Err(failed(ReadError::Outside.to_string()));
        };
        match self.resolve(parent) {
            Ok(_) => {}
            Err(ReadError::Missing) => return Ok(()),
            Err(error) => return Err(failed(error.to_string())),
        }
        match fs::remove_file(&place) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(words(&error))),
            _ => {}
        }
        if parent != self.root {
            // Fails, as it should, unless the folder is empty.
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }

    fn folders(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .children(folder)
            .filter(|child| self.child_kind(child) == EntryKind::Folder)
            .map(|child| child.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    fn files(&self, folder: &str) -> Vec<String> {
        let files = self.walk(folder).into_iter().filter(|entry| entry.kind == EntryKind::File);
        files.map(|entry| entry.path).collect()
    }
}

/// Reading below a folder in one step, which the kernel keeps from leaving it: most files of a repository need no more.
#[cfg(target_os = "linux")]
mod beneath {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, open as open_path, openat2, statat};

    /// A folder, if it can be held open.
    pub(super) fn open(folder: &Path) -> Option<Arc<OwnedFd>> {
        open_path(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Arc::new)
    }

    /// The bytes of a file; `None` if that needs a closer look, for instance to tell why not.
    pub(super) fn read(folder: &OwnedFd, path: &str) -> Option<Vec<u8>> {
        // Behind a link, `..` is another folder for the kernel than for the eye.
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        // Looked at first: opening a pipe or a device does something to it. What takes its place in between does not block.
        let found = statat(folder, path, AtFlags::empty()).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = File::from(openat2(folder, path, flags, Mode::empty(), resolve).ok()?);
        // Room for one byte more: the read that finds the end needs no other buffer. `take` keeps the standard library from
        // asking for the size again.
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(found.st_size).ok()?.checked_add(1)?).ok()?;
        file.take(u64::MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Writes a new file next to `target` and moves it there: readers see the old bytes or the new ones.
fn write_beside(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = target.parent().unwrap_or(target);
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".reqc-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// Whether a folder's name would be taken for a source file's.
fn looks_like_file(path: &str) -> bool {
    [".toml", ".jinja", ".json"].iter().any(|ending| path.ends_with(ending))
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries.dedup();
    entries
}

/// The date of a day counted from 1970-01-01 (Hinnant's `civil_from_days`).
fn civil_date(days: i64) -> Option<(i32, u8, u8)> {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some((i32::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn folder(files: &[&str]) -> (tempfile::TempDir, Disk) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk::open(dir.path()).expect("it exists");
        for path in files {
            disk.replace(path, path.as_bytes()).expect("writable");
        }
        (dir, disk)
    }

    fn paths(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn opening_says_what_is_wrong() {
        let (dir, _) = folder(&["file"]);
        assert!(Disk::open(&dir.path().join("none")).expect_err("missing").ends_with("does not exist"));
        assert!(Disk::open(&dir.path().join("file")).expect_err("a file").ends_with("is not a folder"));
        assert!(Disk::create(&dir.path().join("x/y")).is_ok());
    }

    #[test]
    fn walks_are_sorted_by_whole_path() {
        let (_dir, disk) = folder(&["t/a/b", "t/a-b", "t/a.toml", "t/a/.hidden", "t/B", "t/é", "u"]);
        assert_eq!(paths(&disk.walk("t")), ["t/B", "t/a-b", "t/a.toml", "t/a/.hidden", "t/a/b", "t/é"]);
        assert_eq!(paths(&disk.list("t")), ["t/B", "t/a", "t/a-b", "t/a.toml", "t/é"]);
        assert_eq!(paths(&disk.list("")), ["t", "u"]);
        assert_eq!(disk.files(""), ["t/B", "t/a-b", "t/a.toml", "t/a/.hidden", "t/a/b", "t/é", "u"]);
        assert_eq!(disk.walk("none"), []);
        assert_eq!(disk.walk("u"), []);
    }

    #[test]
    fn a_memory_world_lists_the_same() {
        let files = ["t/a/b", "t/a-b", "t/a.toml", "t/a/c", "t/B", "u"];
        let (_dir, disk) = folder(&files);
        let memory = crate::world::MemoryWorld::from_iter(files.map(|path| (path, path)));
        for folder in ["", "t", "t/a", "none"] {
            assert_eq!(disk.walk(folder), memory.walk(folder));
            assert_eq!(disk.list(folder), memory.list(folder));
        }
    }

    #[test]
    fn folders_with_a_file_name_are_told() {
        let (_dir, disk) = folder(&["agents/x.toml/inner.toml"]);
        let found = disk.walk("agents");
        assert_eq!(found[0], Entry { path: "agents/x.toml".into(), kind: EntryKind::Folder });
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
            assert_eq!(paths(&disk.walk("p")), ["p/a.toml", "p/file.toml", "p/folder/b.toml", "p/out"]);
            assert_eq!(disk.read("p/file.toml").as_deref(), Ok(b"q/b.toml".as_slice()));
            for path in ["p/out", "p/out-folder/secret.toml", "p/out-folder"] {
                assert_eq!(disk.read(path), Err(ReadError::Outside));
                assert_eq!(disk.kind(path), Err(ReadError::Outside));
            }
            assert_eq!(disk.walk("p/out-folder"), []);
            assert_eq!(disk.list("p/out-folder"), []);
        }

        #[test]
        fn broken_links_and_loops_end() {
            let (_dir, disk) = folder(&["p/a"]);
            link(&disk, "nowhere", "p/broken");
            link(&disk, "self", "p/self");
            link(&disk, "../p", "p/up");
            link(&disk, "..", "p/x.toml");
            assert_eq!(paths(&disk.walk("p")), ["p/a", "p/broken", "p/self", "p/x.toml"]);
            assert_eq!(disk.walk("p")[3].kind, EntryKind::Folder);
            assert_eq!(disk.read("p/broken"), Err(ReadError::Failed("the link leads nowhere".into())));
            assert!(matches!(disk.read("p/self"), Err(ReadError::Failed(_))));
        }

        #[test]
        fn names_that_are_no_text_are_shown_as_well_as_possible() {
            use std::os::unix::ffi::OsStrExt;
            let (dir, disk) = folder(&[]);
            let name = std::ffi::OsStr::from_bytes(b"a\xff.toml");
            if fs::write(dir.path().join(name), "").is_ok() {
                assert_eq!(paths(&disk.walk("")), ["a\u{fffd}.toml"]);
                assert_eq!(disk.read("a\u{fffd}.toml"), Err(ReadError::Missing));
            }
        }

        #[test]
        fn pipes_do_not_block() {
            let (dir, disk) = folder(&[]);
            let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status();
            if made.is_ok_and(|status| status.success()) {
                assert!(matches!(disk.read("pipe"), Err(ReadError::Failed(_))));
            }
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
            for path in ["out/new", "out/a/b", "file", "broken", "broken/x", "../x", "/x"] {
                assert!(disk.replace(path, b"!").is_err(), "{path}");
            }
            assert!(disk.remove("out/file").is_err());
            assert_eq!(fs::read(outside.path().join("file")).expect("untouched"), b"file");
            assert_eq!(disk.replace("alias", b"new"), Ok(()));
            assert_eq!(disk.read("in/target").as_deref(), Ok(b"new".as_slice()));
        }

        #[test]
        fn new_files_have_usual_permissions() {
            let (dir, disk) = folder(&["a"]);
            fs::write(dir.path().join("b"), "").expect("writable");
            let mode = |name: &str| fs::metadata(disk.root.join(name)).expect("there").permissions().mode();
            assert_eq!(mode("a"), mode("b"));
        }
    }

    #[test]
    fn replacing_leaves_nothing_behind() {
        let (_dir, disk) = folder(&["golden/a/b.json"]);
        assert_eq!(disk.replace("golden/a/b.json", b"new"), Ok(()));
        assert_eq!(disk.current("golden/a/b.json"), Ok(Some(b"new".to_vec())));
        assert_eq!(disk.current("golden/a/c.json"), Ok(None));
        assert_eq!(disk.files(""), ["golden/a/b.json"]);
        assert!(disk.replace("golden/a", b"").expect_err("a folder").contains("a folder stands there"));
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
