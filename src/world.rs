//! The one door to the outside: files of a layer, the place goldens are written to, journals, the
//! date, the clock.
//!
//! The compiler sees files only through [`World`], so that it runs the same over a directory, over
//! the bundled files in the binary, over a git revision, and over a [`MemoryWorld`] in tests. The
//! real implementations live in [`system`](crate::system). Paths are relative to the world's root,
//! with `/` between parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The largest file that is read, in bytes. Whatever reads a file asks for its size first.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most bytes that the files of one repository may have together.
pub const MAX_REPOSITORY_BYTES: u64 = 128 << 20;

/// The largest saved session that is read, in bytes: it may hold many images.
pub const MAX_SESSION_BYTES: u64 = 512 << 20;

/// The most files and folders that one walk looks at.
pub const MAX_ENTRIES: usize = 200_000;

/// The most links to folders that one walk goes through: each is resolved, and each may double what
/// is seen.
pub(crate) const MAX_LINKED_FOLDERS: usize = 1_000;

/// The number of folders deep that a walk goes.
pub const MAX_DEPTH: usize = 64;

/// A read-only tree of files. Nothing hidden is in it; see [`is_hidden`].
pub trait World: Send + Sync {
    /// The bytes of a regular file that has `limit` bytes at most; its size is known before it is
    /// read.
    ///
    /// # Errors
    ///
    /// Why there are none.
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError>;

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// Why there are none; [`ReadError::TooLarge`] beyond [`MAX_FILE_BYTES`].
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.read_within(path, MAX_FILE_BYTES)
    }

    /// Everything below a folder that is not itself a folder, plus folders whose name looks like a
    /// file's (so that a directory called `x.toml` can be reported), and what could not be looked
    /// into. A missing folder is empty.
    fn walk(&self, folder: &str) -> Walk;

    /// Returns what is directly in the folder, sorted by path. A missing folder is empty.
    ///
    /// # Errors
    ///
    /// Why it cannot be listed.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError>;

    /// The same, and how many entries were looked at for it: hidden ones too, and what is further
    /// below.
    ///
    /// # Errors
    ///
    /// As [`World::list`].
    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        let entries = self.list(folder)?;
        let looked_at = entries.len();
        Ok((entries, looked_at))
    }

    /// Returns what is at a path, links followed.
    ///
    /// # Errors
    ///
    /// Why that cannot be known; [`ReadError::Missing`] if nothing does.
    fn kind(&self, path: &str) -> Result<EntryKind, ReadError>;

    /// Today's date as (year, month, day), UTC. Used only to expire `[[allow]]` entries.
    fn today(&self) -> Option<(i32, u8, u8)> {
        None
    }
}

/// A world whose small files are read once, and looked for once if they are missing: for what the
/// prompts of many agents ask.
pub(crate) struct Remembering {
    world: Arc<dyn World>,
    read: Mutex<HashMap<String, Remembered>>,
}

/// The bytes of a small file, or why there are none.
type Remembered = Result<Arc<[u8]>, ReadError>;

impl Remembering {
    /// The largest file that is kept, in bytes.
    const MAX_KEPT: usize = 64 * 1024;
    /// The most files that are kept.
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

/// A place to write to. Separate from [`World`]: most stages can only read.
pub trait Output: Send + Sync {
    /// The current bytes of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Why not, in a phrase that names the file.
    fn current(&self, path: &str) -> Result<Option<Vec<u8>>, AccessError>;
    /// Replaces a file atomically, creating its folders.
    ///
    /// # Errors
    ///
    /// Why not, in a phrase that names the file.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), AccessError>;
    /// Removes a file, and its folder if that leaves it empty.
    ///
    /// # Errors
    ///
    /// Why not, in a phrase that names the file.
    fn remove(&self, path: &str) -> Result<(), AccessError>;
    /// Returns what is directly in a folder, by its path, sorted; links are in it as files. A
    /// missing folder is empty.
    ///
    /// # Errors
    ///
    /// Why not, in a phrase that names the folder.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, AccessError>;
}

/// The current time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> SystemTime;
}

/// A place that lines are added to, and stay.
pub trait Journal: Send {
    /// Keeps one complete line, with its newline. Once this returns `Ok`, the line outlives the
    /// process; after an error the journal holds what it held before, and a part of the line at
    /// most after the last newline. Such a part, also one that a killed process left, is cut off
    /// before the next line is added: whoever opens a journal need not do so.
    ///
    /// # Errors
    ///
    /// Why not, in a phrase that names the journal.
    fn append(&mut self, line: &str) -> Result<(), AccessError>;
}

/// Why something outside could not be had or changed: a phrase that says what and why, for people.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessError(String);

/// The phrase: a `main` that returns it shows this.
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

/// One thing that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the root.
    pub path: String,
    /// The kind: a file or a folder.
    pub kind: EntryKind,
}

/// The entries that a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Files, sorted by path.
    pub entries: Vec<Entry>,
    /// The paths that could not be looked into, sorted by path: what is in there is not known.
    pub unread: Vec<Unread>,
    /// Hidden files that are called like source files, and hidden links to folders, sorted by path.
    /// They are only named: nothing reads them.
    pub hidden: Vec<String>,
}

impl Walk {
    /// A walk that found nothing but that it cannot look into a folder.
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

/// A folder that could not be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Path relative to the root.
    pub path: String,
    /// Why it could not be looked into.
    pub why: ReadError,
}

/// The kind of thing at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A readable file, or a link to one inside the root.
    File,
    /// A folder.
    Folder,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// There is nothing at the path.
    Missing,
    /// A folder is there.
    Folder,
    /// The path, links resolved, leaves the root.
    Outside,
    /// The path, links resolved, is hidden; see [`is_hidden`].
    Hidden,
    /// The file is larger than what may be read.
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest size that would have been read.
        limit: u64,
    },
    /// Anything else, in the system's words.
    Failed(String),
}

impl std::error::Error for ReadError {}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Missing => f.write_str("there is no such file"),
            ReadError::Folder => f.write_str("it is a folder, not a file"),
            ReadError::Outside => f.write_str("it lies outside the repository"),
            ReadError::Hidden => {
                f.write_str("files whose name begins with a dot, and private keys, are not read")
            }
            ReadError::TooLarge { size, limit } => {
                write!(f, "it has {size} bytes; the limit is {limit}")
            }
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

    /// Removes a file, if it is there.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Adds a file whose bytes are part of the program.
    pub(crate) fn insert_static(&mut self, path: String, bytes: &'static [u8]) {
        self.files.insert(path, Cow::Borrowed(bytes));
    }

    /// The paths below a folder; the folder `""` is the root.
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

    /// Returns what is directly in a folder. What lies below a folder in it is skipped, however
    /// much it is.
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
            // Whatever begins with `child/` comes before `child0`.
            from = match kind {
                EntryKind::File => Bound::Excluded(path.clone()),
                EntryKind::Folder => Bound::Included(format!("{child}0")),
            };
            *looked_at += 1;
            // Only files are called like keys.
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

    /// All paths and their bytes, sorted by path.
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

/// A journal in memory. Clones share their bytes, so that a test can look at what a session wrote.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl MemoryJournal {
    /// A journal that holds bytes already.
    pub fn holding(bytes: impl Into<Vec<u8>>) -> MemoryJournal {
        MemoryJournal {
            bytes: Arc::new(Mutex::new(bytes.into())),
            room: None,
        }
    }

    /// The same journal with room for so many bytes altogether. The line that does not fit is
    /// written as far as it does, as if the process had been killed in the middle; it and every
    /// later one fail.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> MemoryJournal {
        MemoryJournal {
            room: Some(bytes),
            ..self
        }
    }

    /// Returns what was written.
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

/// Returns `true` if nothing may read what lies at a path: a part of it begins with a dot, or its
/// name is one that private keys have. There lie the tokens of a checkout (`.git/config`), of a
/// person (`.env`, `.netrc`), and what programs keep for themselves.
pub fn is_hidden(path: &str) -> bool {
    (path.starts_with('.') || path.contains("/.")) && has_dot_name(path) || is_key_name(path)
}

fn has_dot_name(path: &str) -> bool {
    path.split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Returns `true` if a path ends as those of source files do, whatever the case.
pub(crate) fn names_source(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["toml", "jinja", "json"]
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known))
}

/// Names of private keys, whatever the case: those of `ssh-keygen`, and the endings of what key
/// stores are kept in.
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

/// Returns `true` if a file holds nothing but a private key, whatever its name: its first line says
/// so.
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

/// Returns the reason why some common system cannot have a file or folder of this name; `None` if
/// all can. On Windows some names are devices, whatever their ending
/// (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>), and almost everywhere a name
/// takes 255 bytes at most.
pub(crate) fn unusable_name(name: &str) -> Option<&'static str> {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    match stem.as_str() {
        _ if name.len() > 255 => Some("it has more than 255 bytes"),
        _ if name.ends_with(['.', ' ']) => Some("Windows drops a dot or a space at the end"),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" => Some("that is a device on Windows"),
        stem if is_numbered(stem, "com") || is_numbered(stem, "lpt") => {
            Some("that is a device on Windows")
        }
        _ => None,
    }
}

/// Returns `true` for a device and one digit: `com1`.
fn is_numbered(stem: &str, device: &str) -> bool {
    let number = stem.strip_prefix(device).unwrap_or_default();
    number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The path of something in a folder; the folder `""` is the root.
pub(crate) fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
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
