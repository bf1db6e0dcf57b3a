//! A journal on disk: one file that grows by whole lines.
//!
//! Nothing is parsed here. A line is one write, then the disk is asked to keep it. What follows the
//! last newline was left by a process that was killed, or by a write that failed: it is cut off
//! before the next line. One process at a time has the file: the others are told so.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::words;
use crate::conversation::log::Log;
use crate::world::{AccessError, Journal, MAX_SESSION_BYTES, ReadError};

/// A file that lines are appended to.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    /// The number of bytes that are known to be whole lines.
    length: u64,
    /// `true` if the file may hold more: a piece of a line, which must not become the start of the
    /// next one.
    is_torn: bool,
}

/// A journal and what was in it.
#[derive(Debug)]
pub struct OpenedJournal {
    /// The journal.
    pub journal: JournalFile,
    /// Its bytes, empty for a new one; also those after the last newline, which stay until a line
    /// is appended.
    pub bytes: Vec<u8>,
}

impl JournalFile {
    /// Makes a new journal. A file that is empty, or that was cut off inside the first line of a
    /// session, holds nothing: it is begun again.
    ///
    /// # Errors
    ///
    /// A phrase that names the file, also if there is something else at the path already.
    pub fn create(path: &Path) -> Result<JournalFile, AccessError> {
        match open(path, OpenOptions::new().create_new(true)) {
            Ok(opened) => Ok(opened.journal),
            Err(taken) => match open(path, &mut OpenOptions::new()) {
                Ok(opened) if Log::is_cut_header(&opened.bytes) => Ok(opened.journal),
                _ => Err(taken),
            },
        }
    }

    /// Opens a journal that is there.
    ///
    /// # Errors
    ///
    /// A phrase that names the file: it is missing, no file, not to be written, or another process
    /// has it open.
    pub fn open(path: &Path) -> Result<OpenedJournal, AccessError> {
        open(path, &mut OpenOptions::new())
    }

    /// Opens a journal, making it if it is missing.
    ///
    /// # Errors
    ///
    /// As [`JournalFile::open`].
    pub fn open_or_create(path: &Path) -> Result<OpenedJournal, AccessError> {
        open(path, OpenOptions::new().create(true))
    }

    /// Cuts off what is not a whole line.
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
        // Closing is not enough: a process that is just being started holds a copy of every file
        // until its program runs.
        let _ = self.file.unlock();
    }
}

impl Journal for JournalFile {
    fn append(&mut self, line: &str) -> Result<(), AccessError> {
        let written = self.write(line);
        written.map_err(|error| {
            // If it cannot be cut now, the next line tries again.
            let _ = self.cut();
            self.failed("cannot be written", &error).into()
        })
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<OpenedJournal, AccessError> {
    let shown = path.display();
    // A link that came with a repository must not decide which file grows. What is opened is what
    // was looked at.
    let place = super::place::to_write(path, None)?;
    // A pipe would wait for its other end, a device has no end to append to.
    if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
        let what = if place.is_dir() {
            "a folder"
        } else {
            "not a regular file"
        };
        return Err(format!("`{shown}` is {what}").into());
    }
    // What people say to their agents is nobody else's business.
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
                "`{shown}` is in use, by another process or by a session of this one"
            )
            .into());
        }
        // Some file systems have no locks: then it is the person who must not open a file twice.
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

/// All bytes of a journal, read from its start.
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
        (ErrorKind::AlreadyExists, _) => format!("`{shown}` is there already"),
        (ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
            format!(
                "`{shown}` cannot be made: the folder `{}` does not exist",
                folder.display()
            )
        }
        (ErrorKind::NotFound, _) if fs::symlink_metadata(path).is_ok() => {
            format!("`{shown}` is a link to nothing")
        }
        (ErrorKind::NotFound, _) => format!("`{shown}` does not exist"),
        _ => format!("`{shown}` cannot be opened: {}", words(error)),
    }
}

/// Asks the disk to keep the name of a new file too, where that is possible.
fn sync_folder(path: &Path) {
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // The lines themselves are what must not be lost; a file system that cannot do this is no
        // reason to stop.
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
                .ends_with("is in use, by another process or by a session of this one")
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
                .contains("lies in a `.git`")
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
            "`~/no/a` cannot be made: the folder `~/no` does not exist"
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
                .ends_with("is there already")
        );
        assert!(JournalFile::open(&at("file/a")).is_err());
    }
}
