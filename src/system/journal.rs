//! A journal on disk: a file to which whole lines are appended.
//!
//! Nothing is parsed here. Each line is written with one call and then flushed to disk. Bytes after
//! the last newline are left over from a killed process or a failed write, and are removed before
//! the next line is written. Only one process at a time can open the file; others get an error.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::words;
use crate::conversation::log::Log;
use crate::world::{AccessError, Journal, MAX_SESSION_BYTES, ReadError};

/// A file to which lines are appended.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    /// The length of the file's complete lines, in bytes.
    length: u64,
    /// `true` if the file may also contain an incomplete line, which must not become the beginning
    /// of the next line.
    is_torn: bool,
}

/// A journal that was opened, with its content.
#[derive(Debug)]
pub struct OpenedJournal {
    /// The journal, to which further lines can be appended.
    pub journal: JournalFile,
    /// The bytes of the file; empty if it is new. Any bytes after the last newline are included,
    /// and stay in the file until a line is appended.
    pub bytes: Vec<u8>,
}

impl JournalFile {
    /// Creates a journal. Overwrites an existing file only if it is empty, or contains only part of
    /// a session's first line.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the file, for example if the file already exists.
    pub fn create(path: &Path) -> Result<JournalFile, AccessError> {
        match open(path, OpenOptions::new().create_new(true)) {
            Ok(opened) => Ok(opened.journal),
            Err(taken) => match open(path, &mut OpenOptions::new()) {
                Ok(opened) if Log::is_cut_header(&opened.bytes) => Ok(opened.journal),
                _ => Err(taken),
            },
        }
    }

    /// Opens an existing journal.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if it is missing, is not a regular file, is not
    /// writable, or is open in another process.
    pub fn open(path: &Path) -> Result<OpenedJournal, AccessError> {
        open(path, &mut OpenOptions::new())
    }

    /// Opens a journal, or creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`JournalFile::open`].
    pub fn open_or_create(path: &Path) -> Result<OpenedJournal, AccessError> {
        open(path, OpenOptions::new().create(true))
    }

    /// Removes an incomplete line from the end of the file.
    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_data()?;
        self.file.seek(SeekFrom::End(0))?;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, line: &str) -> std::io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        self.is_torn = true;
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        self.is_torn = false;
        Ok(())
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> String {
        format!("`{}` {what}: {}", self.path.display(), words(error))
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        // Closing the file does not suffice, because a process that is being started has copies of
        // all file descriptors until its program runs.
        let _ = self.file.unlock();
    }
}

impl Journal for JournalFile {
    fn append(&mut self, line: &str) -> Result<(), AccessError> {
        let written = self.write(line);
        written.map_err(|error| {
            // If this fails, it is tried again before the next line.
            let _ = self.cut();
            self.failed("cannot be written", &error).into()
        })
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<OpenedJournal, AccessError> {
    let shown = path.display();
    // A link in a repository must not decide which file is written. The path that is checked is
    // also the one that is opened.
    let place = super::place::to_write(path, None)?;
    // A pipe would wait for its other end, and nothing can be appended to a device.
    if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
        let what = if place.is_dir() {
            "a folder"
        } else {
            "not a regular file"
        };
        return Err(format!("`{shown}` is {what}").into());
    }
    // Conversations with agents are private, so only the user may read the file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(super::bounded::unlinked());
    }
    let mut file = options
        .read(true)
        .write(true)
        .open(&place)
        .map_err(|error| cannot_open(path, &error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Err(format!(
                "`{shown}` is in use by another process or by another session of this process"
            )
            .into());
        }
        // Some file systems do not support locks. There, the user must take care not to open a file
        // twice.
        Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => {
            return Err(format!("`{shown}` cannot be locked: {}", words(&error)).into());
        }
        _ => {}
    }
    let bytes = whole(&mut file).map_err(|why| format!("`{shown}` cannot be read: {why}"))?;
    if bytes.is_empty() {
        sync_folder(&place);
    }
    let whole_lines = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let is_torn = whole_lines < bytes.len();
    let journal = JournalFile {
        file,
        path: path.to_owned(),
        length: whole_lines as u64,
        is_torn,
    };
    Ok(OpenedJournal { journal, bytes })
}

/// Returns all bytes of a journal.
fn whole(file: &mut File) -> Result<Vec<u8>, ReadError> {
    let copy = file
        .try_clone()
        .map_err(|error| super::bounded::failed(&error))?;
    super::bounded::read_opened(copy, MAX_SESSION_BYTES)
}

fn cannot_open(path: &Path, error: &std::io::Error) -> String {
    let shown = path.display();
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match (error.kind(), folder) {
        (ErrorKind::AlreadyExists, _) => format!("`{shown}` already exists"),
        (ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
            format!(
                "`{shown}` cannot be created: the folder `{}` does not exist",
                folder.display()
            )
        }
        (ErrorKind::NotFound, _) if fs::symlink_metadata(path).is_ok() => {
            format!("`{shown}` is a broken link")
        }
        (ErrorKind::NotFound, _) => format!("`{shown}` does not exist"),
        _ => format!("`{shown}` cannot be opened: {}", words(error)),
    }
}

/// Also flushes the folder to disk if possible, so that the name of a new file is preserved.
fn sync_folder(path: &Path) {
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // Only the lines themselves matter, so ignore a file system that does not support this.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_never_begins_the_next_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.jsonl");
        let mut journal = JournalFile::create(&path).expect("a new file");
        journal.append("one\n").expect("writable");
        drop(journal);
        fs::write(&path, "one\ntw").expect("writable");
        let OpenedJournal { mut journal, bytes } = JournalFile::open(&path).expect("it is there");
        assert_eq!(bytes, b"one\ntw");
        assert_eq!(
            fs::read(&path).expect("readable"),
            b"one\ntw",
            "nothing is cut before there is a line"
        );
        journal.append("2\n").expect("writable");
        journal.append("3\n").expect("writable");
        drop(journal);
        let opened = JournalFile::open_or_create(&path).expect("it is there");
        assert_eq!(opened.bytes, b"one\n2\n3\n");
    }

    #[test]
    fn two_cannot_have_one_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.jsonl");
        let first = JournalFile::create(&path).expect("a new file");
        assert!(
            JournalFile::open(&path)
                .expect_err("locked")
                .to_string()
                .ends_with("is in use by another process or by another session of this process")
        );
        drop(first);
        assert!(JournalFile::open(&path).is_ok());
    }

    #[test]
    fn a_journal_is_measured_before_it_is_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.jsonl");
        File::create(&path)
            .and_then(|file| file.set_len(MAX_SESSION_BYTES + 1))
            .expect("a file of holes");
        assert!(
            JournalFile::open(&path)
                .expect_err("too large")
                .to_string()
                .contains("the limit is")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_of_a_repository_is_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = folder.path().join("repository");
        fs::create_dir_all(repository.join(".git")).expect("writable");
        fs::write(folder.path().join("a.jsonl"), "").expect("writable");
        std::os::unix::fs::symlink("../a.jsonl", repository.join("a.jsonl")).expect("a link");
        assert!(
            JournalFile::open(&repository.join("a.jsonl"))
                .expect_err("a link")
                .to_string()
                .contains("is a link")
        );
        assert!(
            JournalFile::create(&repository.join(".git/a.jsonl"))
                .expect_err("git")
                .to_string()
                .contains("is in a `.git` folder")
        );
    }

    #[test]
    fn bad_paths_are_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let said = |found: Result<OpenedJournal, AccessError>| {
            let text = found.expect_err("a bad path").to_string();
            text.replace(&folder.path().display().to_string(), "~")
        };
        assert_eq!(said(JournalFile::open(folder.path())), "`~` is a folder");
        assert_eq!(
            said(JournalFile::open(&at("none"))),
            "`~/none` does not exist"
        );
        let inner = said(JournalFile::open_or_create(&at("no/a")));
        assert_eq!(
            inner,
            "`~/no/a` cannot be created: the folder `~/no` does not exist"
        );
        fs::write(at("empty"), "").expect("writable");
        assert!(
            JournalFile::create(&at("empty")).is_ok(),
            "it holds nothing"
        );
        fs::write(at("file"), "notes").expect("writable");
        assert!(
            JournalFile::create(&at("file"))
                .expect_err("taken")
                .to_string()
                .ends_with("already exists")
        );
        assert!(JournalFile::open(&at("file/a")).is_err());
    }
}
