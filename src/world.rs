//! The only interface to the outside world: the files of a layer, the output folder for golden
//! files, journals, the date, and the clock.
//!
//! The compiler accesses files only through [`World`], so it works in the same way on a folder, the
//! bundled files, a git revision, and a [`MemoryWorld`] in tests. The real implementations are in
//! [`system`](crate::system). Paths are relative to the root of the world, with `/` between their
//! parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The maximum size of a file in bytes. The size is checked before the file is read.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The maximum total size of a repository's files, in bytes.
pub const MAX_REPOSITORY_BYTES: u64 = 128 << 20;

/// The maximum size of a saved session, in bytes. It is large because a session may contain images.
pub const MAX_SESSION_BYTES: u64 = 512 << 20;

/// The maximum number of files and folders that one walk examines.
pub const MAX_ENTRIES: usize = 200_000;

/// The maximum number of links to folders that one walk follows. Each link must be resolved, and
/// each one may double the number of visible files.
pub(crate) const MAX_LINKED_FOLDERS: usize = 1_000;

/// The maximum nesting depth of folders in a walk.
pub const MAX_DEPTH: usize = 64;

/// A read-only tree of files. It contains no hidden files; see [`is_hidden`].
pub trait World: Send + Sync {
    /// Returns the bytes of a regular file, unless it is larger than `limit` bytes. The size is
    /// checked before the file is read.
    ///
    /// # Errors
    ///
    /// Returns the reason the file was not read.
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError>;

    /// Returns the bytes of a regular file.
    ///
    /// # Errors
    ///
    /// Returns the reason the file was not read: [`ReadError::TooLarge`] if it is larger than
    /// [`MAX_FILE_BYTES`].
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.read_within(path, MAX_FILE_BYTES)
    }

    /// Returns `true` if the files are those that are built into the program: their schemas are not
    /// compared with the bundled ones, and the model families are the program's own. Only
    /// [`Embedded`](crate::system::Embedded) returns `true`; a world that wraps it must pass this on.
    fn is_built_in(&self) -> bool {
        false
    }

    /// Returns all files below a folder, and the folders that could not be read. Also returns
    /// folders that have the names of source files, so that a folder with the name `x.toml` can be
    /// reported. A missing folder is treated as empty.
    fn walk(&self, folder: &str) -> Walk;

    /// Returns the entries in a folder, sorted by path. A missing folder is treated as empty.
    ///
    /// # Errors
    ///
    /// Returns the reason the folder was not listed.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError>;

    /// Returns the entries in a folder like [`World::list`], and the number of entries that had to
    /// be examined, including hidden and nested entries.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`World::list`].
    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        let entries = self.list(folder)?;
        let looked_at = entries.len();
        Ok((entries, looked_at))
    }

    /// Returns the kind of the entry at a path. Links are followed.
    ///
    /// # Errors
    ///
    /// Returns the reason the kind is not known, which is [`ReadError::Missing`] if there is no
    /// entry.
    fn kind(&self, path: &str) -> Result<EntryKind, ReadError>;

    /// Returns today's date in UTC as year, month and day; `None` if it is unknown. Used only to
    /// check whether `[[allow]]` entries have expired.
    fn today(&self) -> Option<(i32, u8, u8)> {
        None
    }
}

/// A world that reads each small file only once, and also remembers which files are missing. Used
/// for files that the prompts of many agents include.
pub(crate) struct Remembering {
    world: Arc<dyn World>,
    read: Mutex<HashMap<String, Remembered>>,
}

/// The bytes of a small file, or the reason it was not read.
type Remembered = Result<Arc<[u8]>, ReadError>;

impl Remembering {
    /// The maximum size of a remembered file, in bytes.
    const MAX_KEPT: usize = 64 * 1024;
    /// The maximum number of remembered files.
    const MAX_FILES: usize = 512;

    pub(crate) fn new(world: Arc<dyn World>) -> Remembering {
        Remembering {
            world,
            read: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World for Remembering {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        if limit != MAX_FILE_BYTES {
            return self.world.read_within(path, limit);
        }
        if let Some(found) = self.known().get(path) {
            return found
                .as_ref()
                .map(|bytes| bytes.to_vec())
                .map_err(Clone::clone);
        }
        let found = self.world.read(path);
        let is_small = found
            .as_ref()
            .map_or(true, |bytes| bytes.len() <= Remembering::MAX_KEPT);
        let mut known = self.known();
        if is_small && known.len() < Remembering::MAX_FILES {
            known.insert(
                path.to_owned(),
                found
                    .as_ref()
                    .map(|bytes| bytes.as_slice().into())
                    .map_err(Clone::clone),
            );
        }
        found
    }

    fn walk(&self, folder: &str) -> Walk {
        self.world.walk(folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.world.list(folder)
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        self.world.list_counted(folder)
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        self.world.kind(path)
    }

    fn today(&self) -> Option<(i32, u8, u8)> {
        self.world.today()
    }
}

/// A destination to which files are written. It is separate from [`World`], because most stages
/// only read.
pub trait Output: Send + Sync {
    /// Returns the current bytes of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the file and the reason.
    fn current(&self, path: &str) -> Result<Option<Vec<u8>>, AccessError>;
    /// Replaces a file atomically, creating its folders if necessary.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the file and the reason.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), AccessError>;
    /// Removes a file, and its folder if the folder is empty afterwards.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the file and the reason.
    fn remove(&self, path: &str) -> Result<(), AccessError>;
    /// Returns the entries in a folder, sorted by path. Links are listed as files. A missing folder
    /// is treated as empty.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the folder and the reason.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, AccessError>;
}

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> SystemTime;
}

/// A destination to which lines are appended permanently.
pub trait Journal: Send {
    /// Stores one complete line, including its newline. If this returns `Ok`, the line is preserved
    /// even if the process ends. If it returns an error, the journal is unchanged, except that part
    /// of the line may follow the last newline. Such a part is removed before the next line is
    /// appended, even if it was left by a killed process, so callers need not remove it.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the journal and the reason.
    fn append(&mut self, line: &str) -> Result<(), AccessError>;
}

/// The reason something outside the program could not be read or changed, as a phrase for users.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessError(String);

/// Formats the phrase like [`Display`](std::fmt::Display), because `main` prints the `Debug` form
/// of an error.
impl std::fmt::Debug for AccessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for AccessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AccessError {}

impl From<String> for AccessError {
    fn from(phrase: String) -> AccessError {
        AccessError(phrase)
    }
}

impl From<&str> for AccessError {
    fn from(phrase: &str) -> AccessError {
        AccessError(phrase.to_owned())
    }
}

impl From<ReadError> for AccessError {
    fn from(error: ReadError) -> AccessError {
        AccessError(error.to_string())
    }
}

impl From<AccessError> for String {
    fn from(error: AccessError) -> String {
        error.0
    }
}

/// An entry in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the root of the world.
    pub path: String,
    /// The kind of entry: a file or a folder.
    pub kind: EntryKind,
}

/// The results of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Files, and folders that have the names of source files, sorted by path.
    pub entries: Vec<Entry>,
    /// The folders whose content could not be read, sorted by path.
    pub unread: Vec<Unread>,
    /// Hidden files that have the names of source files, and hidden links to folders, sorted by
    /// path. They are only listed, and never read.
    pub hidden: Vec<String>,
}

impl Walk {
    /// Returns the result of walking a folder that cannot be read.
    pub(crate) fn unread(path: &str, why: ReadError) -> Walk {
        Walk {
            unread: vec![Unread {
                path: path.to_owned(),
                why,
            }],
            ..Walk::default()
        }
    }
}

/// A folder whose content could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The path relative to the root of the world.
    pub path: String,
    /// The reason the content could not be read.
    pub why: ReadError,
}

/// The kind of an entry in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, or a link to a regular file inside the root.
    File,
    /// A folder.
    Folder,
}

/// The reason a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no file at the path.
    Missing,
    /// The path is a folder.
    Folder,
    /// The path leads outside the root when its links are resolved.
    Outside,
    /// The path is hidden, directly or when its links are resolved; see [`is_hidden`].
    Hidden,
    /// The file exceeds the maximum size.
    TooLarge {
        /// The size of the file, in bytes.
        size: u64,
        /// The maximum size, in bytes.
        limit: u64,
    },
    /// Any other error, in the system's words.
    Failed(String),
}

impl std::error::Error for ReadError {}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Missing => f.write_str("there is no such file"),
            ReadError::Folder => f.write_str("it is a folder, not a file"),
            ReadError::Outside => f.write_str("it is outside the repository"),
            ReadError::Hidden => {
                f.write_str("files whose names begin with a dot, and private keys, are not read")
            }
            ReadError::TooLarge { size, limit } => {
                write!(f, "it has {size} bytes; the limit is {limit}")
            }
            ReadError::Failed(why) => f.write_str(why),
        }
    }
}

/// A world in memory, which maps paths to bytes.
#[derive(Debug, Clone, Default)]
pub struct MemoryWorld {
    files: BTreeMap<String, Cow<'static, [u8]>>,
}

impl MemoryWorld {
    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), Cow::Owned(bytes.into()));
    }

    /// Removes a file, if it exists.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Adds a file whose bytes are embedded in the program.
    pub(crate) fn insert_static(&mut self, path: String, bytes: &'static [u8]) {
        self.files.insert(path, Cow::Borrowed(bytes));
    }

    /// Returns the paths of files below a folder; `""` is the root.
    fn below(&self, folder: &str) -> impl Iterator<Item = &String> {
        let start = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let paths = self
            .files
            .range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
        paths
            .map(|(path, _)| path)
            .take_while(move |path| path.starts_with(&start))
    }

    /// Returns the entries in a folder, and counts the entries examined. Skips the content of
    /// subfolders, so the time does not depend on their size.
    fn children(&self, folder: &str, looked_at: &mut usize) -> Result<Vec<Entry>, ReadError> {
        if is_hidden(folder) {
            return Err(ReadError::Hidden);
        }
        let start = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let (mut entries, mut from) = (Vec::new(), Bound::Included(start.clone()));
        while let Some((path, _)) = self
            .files
            .range::<String, _>((from, Bound::Unbounded))
            .next()
        {
            let Some(rest) = path.strip_prefix(&start) else {
                break;
            };
            let child = &path[..start.len() + rest.find('/').unwrap_or(rest.len())];
            let kind = if child.len() == path.len() {
                EntryKind::File
            } else {
                EntryKind::Folder
            };
            // All paths that begin with `child/` sort before `child0`.
            from = match kind {
                EntryKind::File => Bound::Excluded(path.clone()),
                EntryKind::Folder => Bound::Included(format!("{child}0")),
            };
            *looked_at += 1;
            // Only the names of files, not of folders, can mark private keys.
            let is_visible = match kind {
                EntryKind::File => !is_hidden(path),
                EntryKind::Folder => !is_hidden(&format!("{child}/")),
            };
            if is_visible {
                entries.push(Entry {
                    path: child.to_owned(),
                    kind,
                });
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Returns all paths with their bytes, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(path, bytes)| (path.as_str(), &**bytes))
    }
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for MemoryWorld {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> MemoryWorld {
        let mut world = MemoryWorld::default();
        files
            .into_iter()
            .for_each(|(path, bytes)| world.insert(path, bytes));
        world
    }
}

impl World for MemoryWorld {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        match self.files.get(path) {
            _ if is_hidden(path) => Err(ReadError::Hidden),
            Some(bytes) if bytes.len() as u64 > limit => Err(ReadError::TooLarge {
                size: bytes.len() as u64,
                limit,
            }),
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(self
                .kind(path)
                .map_or_else(|error| error, |_| ReadError::Folder)),
        }
    }

    fn walk(&self, folder: &str) -> Walk {
        if is_hidden(folder) {
            return Walk::unread(folder, ReadError::Hidden);
        }
        let mut walk = Walk::default();
        for path in self.below(folder) {
            match is_hidden(path) {
                false => walk.entries.push(Entry {
                    path: path.clone(),
                    kind: EntryKind::File,
                }),
                true if names_source(path) && !path.split('/').any(|part| part == ".git") => {
                    walk.hidden.push(path.clone());
                }
                true => {}
            }
        }
        walk
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        let mut looked_at = 0;
        let entries = self.children(folder, &mut looked_at)?;
        Ok((entries, looked_at))
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.children(folder, &mut 0)
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        match self.files.contains_key(path) {
            _ if is_hidden(path) => Err(ReadError::Hidden),
            true => Ok(EntryKind::File),
            false if self.below(path).next().is_some() => Ok(EntryKind::Folder),
            false => Err(ReadError::Missing),
        }
    }
}

/// A journal in memory. Clones share the same bytes, so a test can inspect what a session wrote.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl MemoryJournal {
    /// Returns a journal with some initial content.
    pub fn holding(bytes: impl Into<Vec<u8>>) -> MemoryJournal {
        MemoryJournal {
            bytes: Arc::new(Mutex::new(bytes.into())),
            room: None,
        }
    }

    /// Limits the total size of the journal. A line that exceeds it is written partially, as if the
    /// process had been killed in the middle. That write and all later ones return an error.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> MemoryJournal {
        MemoryJournal {
            room: Some(bytes),
            ..self
        }
    }

    /// Returns the content of the journal.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, line: &str) -> Result<(), AccessError> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.room.is_none_or(|room| bytes.len() < room) {
            let whole_lines = bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            bytes.truncate(whole_lines);
        }
        let room = self
            .room
            .map_or(line.len(), |room| room.saturating_sub(bytes.len()));
        bytes.extend(line.bytes().take(room));
        if room < line.len() {
            self.room = Some(bytes.len());
            return Err("the journal in memory is full".into());
        }
        Ok(())
    }
}

/// Returns `true` if the file at a path must not be read, because a part of the path begins with a
/// dot, or because private keys commonly have this file name. Such files contain a checkout's
/// tokens (`.git/config`), a user's tokens (`.env`, `.netrc`), or programs' private data.
pub fn is_hidden(path: &str) -> bool {
    (path.starts_with('.') || path.contains("/.")) && has_dot_name(path) || is_key_name(path)
}

fn has_dot_name(path: &str) -> bool {
    path.split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Returns `true` if a path has the extension of a source file, ignoring case.
pub(crate) fn names_source(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["toml", "jinja", "json"]
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known))
}

/// Returns `true` if private keys commonly have this file name, ignoring case: it is a name used by
/// `ssh-keygen`, or has the extension of a key store.
fn is_key_name(path: &str) -> bool {
    const NAMES: [&str; 6] = [
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_ecdsa_sk",
        "id_ed25519_sk",
    ];
    const ENDINGS: [&str; 9] = [
        "pem", "key", "p8", "p12", "pfx", "jks", "keystore", "ppk", "kdbx",
    ];
    if [".toml", ".jinja", ".json", ".md"]
        .iter()
        .any(|usual| path.ends_with(usual))
    {
        return false;
    }
    let name = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    is(&NAMES, name)
        || name
            .rsplit_once('.')
            .is_some_and(|(_, ending)| is(&ENDINGS, ending))
}

fn is(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns `true` if a file contains a private key and nothing else, judged by its first line.
pub(crate) fn is_private_key(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let line = text
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    line.starts_with(b"PuTTY-User-Key-File-")
        || line.starts_with(b"-----BEGIN ")
            && line.ends_with(b"-----")
            && memchr::memmem::find(line, b"PRIVATE KEY").is_some()
}

/// Returns why a common operating system does not allow a file or folder with this name; `None` if
/// all common systems allow it. On Windows, some names refer to devices, regardless of their
/// extension (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>). On almost all
/// systems, a name can have at most 255 bytes.
pub(crate) fn unusable_name(name: &str) -> Option<&'static str> {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    match stem.as_str() {
        _ if name.len() > 255 => Some("it is longer than 255 bytes"),
        _ if name.ends_with(['.', ' ']) => Some("Windows drops a trailing dot or space"),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" => {
            Some("it is a device name on Windows")
        }
        stem if is_numbered(stem, "com") || is_numbered(stem, "lpt") => {
            Some("it is a device name on Windows")
        }
        _ => None,
    }
}

/// Returns `true` if a name is a device name followed by one digit, such as `com1`.
fn is_numbered(stem: &str, device: &str) -> bool {
    let number = stem.strip_prefix(device).unwrap_or_default();
    number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Joins a folder and a path; `""` is the root.
pub(crate) fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// Resolves `.` and `..` in a relative path; `None` if the path leads outside the root or is
/// absolute.
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
        assert!(
            session.append("cd\n").is_err()
                && session.append("").is_ok()
                && session.append("e").is_err()
        );
        assert_eq!(journal.bytes(), b"a\nb\nc");
    }

    #[test]
    fn memory_worlds_know_folders() {
        let world = MemoryWorld::from_iter([("agents/a.toml", "")]);
        assert_eq!(world.kind("agents"), Ok(EntryKind::Folder));
        assert_eq!(world.read("agents"), Err(ReadError::Folder));
        assert_eq!(world.walk("agents").entries.len(), 1);
        assert_eq!(world.walk("agent").entries.len(), 0);
    }

    #[test]
    fn lists_skip_what_lies_deeper() {
        let deep = (0..1000).map(|number| (format!("a/b/{number}"), ""));
        let world: MemoryWorld = deep
            .chain(["a/b.md", "a/b0", "a/c"].map(|path| (path.to_owned(), "")))
            .collect();
        let (entries, looked_at) = world.list_counted("a").expect("it can be listed");
        assert_eq!(
            entries
                .iter()
                .map(|entry| entry.path.as_str())
                .collect::<Vec<_>>(),
            ["a/b", "a/b.md", "a/b0", "a/c"]
        );
        assert_eq!(looked_at, 4);
    }

    #[test]
    fn names_are_usable_on_every_system() {
        for name in [
            "con",
            "NUL.json",
            "aux.x.json",
            "com1",
            "Lpt9.json",
            "a.",
            "b ",
            "con .json",
        ] {
            assert!(unusable_name(name).is_some(), "{name}");
        }
        assert!(
            unusable_name(&"x".repeat(256)).is_some() && unusable_name(&"x".repeat(255)).is_none()
        );
        assert!(
            ["console", "com", "com10", "a.con", "nul-", "x.json"]
                .iter()
                .all(|name| unusable_name(name).is_none())
        );
    }

    #[test]
    fn hidden_is_what_begins_with_a_dot_or_is_a_key() {
        for path in [
            ".git/config",
            "a/.env.local",
            "..x",
            ".GIT /config",
            "id_rsa",
            "keys/ID_RSA",
            "a/server.PEM",
            "x.key.",
        ] {
            assert!(is_hidden(path), "{path}");
        }
        for path in [
            "agents/a.toml",
            "a.b/c",
            "keys.md",
            "id_rsa.pub",
            "",
            "a/b.",
            "key",
        ] {
            assert!(!is_hidden(path), "{path}");
        }
    }

    #[test]
    fn a_file_that_is_a_key_is_known_by_its_first_line() {
        assert!(is_private_key(
            b"\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc"
        ));
        assert!(is_private_key(b"-----BEGIN RSA PRIVATE KEY-----\r\nabc"));
        assert!(!is_private_key(b"-----BEGIN CERTIFICATE-----\nabc"));
        assert!(!is_private_key(b"Say -----BEGIN RSA PRIVATE KEY-----"));
    }

    #[test]
    fn memory_worlds_are_bounded_and_hide_the_same() {
        let world = MemoryWorld::from_iter([
            ("a", "12345"),
            (".env", "KEY"),
            ("x/.git/config", "token"),
            ("x/y", ""),
        ]);
        assert_eq!(
            world.read_within("a", 4),
            Err(ReadError::TooLarge { size: 5, limit: 4 })
        );
        assert_eq!(world.read("x/.git/config"), Err(ReadError::Hidden));
        assert_eq!(world.kind("x/.git"), Err(ReadError::Hidden));
        assert_eq!(world.kind(".none"), Err(ReadError::Hidden));
        let names = |entries: Vec<Entry>| {
            entries
                .into_iter()
                .map(|entry| entry.path)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(world.walk("").entries), ["a", "x/y"]);
        assert_eq!(names(world.list("").expect("it can be listed")), ["a", "x"]);
    }
}
