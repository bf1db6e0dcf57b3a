//! The one door to the outside: files of a layer, the place goldens are written to, journals, the date.
//!
//! The compiler sees files only through [`World`], so that it runs the same over a directory, over the bundled
//! files in the binary, over a git revision, and over a [`MemoryWorld`] in tests. The real implementations live
//! in [`system`](crate::system). Paths are relative to the world's root, with `/` between parts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A read-only tree of files.
pub trait World: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// Why there are none.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError>;

    /// Everything below a folder that is not itself a folder, plus folders whose name looks like a file's
    /// (so that a directory called `x.toml` can be reported), sorted by path. A missing folder is empty.
    fn walk(&self, folder: &str) -> Vec<Entry>;

    /// The same, but only what stands directly in the folder.
    fn list(&self, folder: &str) -> Vec<Entry>;

    /// What stands at a path, links followed.
    ///
    /// # Errors
    ///
    /// Why that cannot be told; [`ReadError::Missing`] if nothing does.
    fn kind(&self, path: &str) -> Result<EntryKind, ReadError>;

    /// Today's date as (year, month, day), UTC. Used only to expire `[[allow]]` entries.
    fn today(&self) -> Option<(i32, u8, u8)> {
        None
    }
}

/// A place to write to. Separate from [`World`]: most stages can only read.
pub trait Output: Send + Sync {
    /// The current bytes of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// A phrase that names the file.
    fn current(&self, path: &str) -> Result<Option<Vec<u8>>, String>;
    /// Replaces a file atomically, creating its folders.
    ///
    /// # Errors
    ///
    /// A phrase that names the file.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), String>;
    /// Removes a file, and its folder if that leaves it empty.
    ///
    /// # Errors
    ///
    /// A phrase that names the file.
    fn remove(&self, path: &str) -> Result<(), String>;
    /// All files below a folder, sorted.
    fn files(&self, folder: &str) -> Vec<String>;
    /// The names of the folders directly in a folder, sorted.
    fn folders(&self, folder: &str) -> Vec<String>;
}

/// A place that lines are added to, and stay.
pub trait Journal: Send {
    /// Keeps one complete line, with its newline. Once this returns `Ok`, the line outlives the process; after an error the
    /// journal holds what it held before, and a part of the line at most behind the last newline.
    ///
    /// # Errors
    ///
    /// A phrase that names the journal.
    fn append(&mut self, line: &str) -> Result<(), String>;
}

/// One thing that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the root.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A readable file, or a link to one inside the root.
    File,
    /// A folder.
    Folder,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// There is nothing at the path.
    Missing,
    /// A folder stands there.
    Folder,
    /// The path, links resolved, leaves the root.
    Outside,
    /// Anything else, in the system's words.
    Failed(String),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Missing => f.write_str("there is no such file"),
            ReadError::Folder => f.write_str("it is a folder, not a file"),
            ReadError::Outside => f.write_str("it lies outside the repository"),
            ReadError::Failed(why) => f.write_str(why),
        }
    }
}

/// A world that is a map from paths to bytes.
#[derive(Debug, Clone, Default)]
pub struct MemoryWorld {
    files: BTreeMap<String, Cow<'static, [u8]>>,
}

impl MemoryWorld {
    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), Cow::Owned(bytes.into()));
    }

    /// The same for bytes that are part of the program.
    pub(crate) fn insert_static(&mut self, path: String, bytes: &'static [u8]) {
        self.files.insert(path, Cow::Borrowed(bytes));
    }

    /// All paths and their bytes, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), &**bytes))
    }
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for MemoryWorld {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> MemoryWorld {
        let mut world = MemoryWorld::default();
        files.into_iter().for_each(|(path, bytes)| world.insert(path, bytes));
        world
    }
}

impl World for MemoryWorld {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        match self.files.get(path) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(self.kind(path).map_or_else(|error| error, |_| ReadError::Folder)),
        }
    }

    fn walk(&self, folder: &str) -> Vec<Entry> {
        let below = self.files.keys().filter(|path| is_below(path, folder));
        below.map(|path| Entry { path: path.clone(), kind: EntryKind::File }).collect()
    }

    fn list(&self, folder: &str) -> Vec<Entry> {
        let skip = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let mut entries: Vec<Entry> = Vec::new();
        for path in self.files.keys().filter(|path| is_below(path, folder)) {
            let name = path[skip..].split('/').next().unwrap_or_default();
            let child = &path[..skip + name.len()];
            let kind = if child.len() == path.len() { EntryKind::File } else { EntryKind::Folder };
            if entries.last().is_none_or(|last| last.path != child) {
                entries.push(Entry { path: child.to_owned(), kind });
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        if self.files.contains_key(path) {
            return Ok(EntryKind::File);
        }
        match self.files.keys().any(|file| is_below(file, path)) {
            true => Ok(EntryKind::Folder),
            false => Err(ReadError::Missing),
        }
    }
}

/// A journal in memory. Clones share their bytes, so that a test can look at what a session wrote.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl MemoryJournal {
    /// A journal that holds bytes already.
    pub fn holding(bytes: impl Into<Vec<u8>>) -> MemoryJournal {
        MemoryJournal { bytes: Arc::new(Mutex::new(bytes.into())), room: None }
    }

    /// The same journal with room for so many bytes altogether. The line that does not fit is written as far as it does,
    /// as if the process had been killed in the middle; it and every later one fail.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> MemoryJournal {
        MemoryJournal { room: Some(bytes), ..self }
    }

    /// What was written.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, line: &str) -> Result<(), String> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.room.map_or(line.len(), |room| room.saturating_sub(bytes.len()));
        bytes.extend(line.bytes().take(room));
        if room < line.len() {
            self.room = Some(bytes.len());
            return Err("the journal in memory is full".to_owned());
        }
        Ok(())
    }
}

/// Whether a path lies below a folder; the folder `""` is the root.
fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Folds `.` and `..` out of a relative path; `None` if it leaves the root or is absolute.
pub fn normalise_path(path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\\') || path.contains('\0') || path.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fold_and_never_escape() {
        assert_eq!(normalise_path("a/./b/../c").as_deref(), Some("a/c"));
        assert_eq!(normalise_path("a/../../c"), None);
        assert_eq!(normalise_path("/etc/passwd"), None);
        assert_eq!(normalise_path("C:/x"), None);
    }

    #[test]
    fn a_full_journal_keeps_a_part_of_the_line() {
        let journal = MemoryJournal::holding("a\n").with_room(5);
        let mut session: Box<dyn Journal> = Box::new(journal.clone());
        assert_eq!(session.append("b\n"), Ok(()));
        assert!(session.append("cd\n").is_err() && session.append("").is_ok() && session.append("e").is_err());
        assert_eq!(journal.bytes(), b"a\nb\nc");
    }

    #[test]
    fn memory_worlds_know_folders() {
        let world = MemoryWorld::from_iter([("agents/a.toml", "")]);
        assert_eq!(world.kind("agents"), Ok(EntryKind::Folder));
        assert_eq!(world.read("agents"), Err(ReadError::Folder));
        assert_eq!(world.walk("agents").len(), 1);
        assert_eq!(world.walk("agent").len(), 0);
    }
}
