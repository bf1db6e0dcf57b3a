//! The implementations of the traits in [`world`](crate::world): the disk, the files embedded in
//! the binary, git, and the clock.
//!
//! This is the only module that uses `std::fs`, processes, the system clock, or `std::env` (apart
//! from command-line arguments). Input: a folder, or a git revision. Output: a [`World`] to read
//! from, and an [`Output`](crate::world::Output) to write to. The module does not interpret the
//! content of files. All worlds list the same files in the same order: sorted bytewise by path,
//! with `/` between parts.

mod bounded;
mod embedded;
mod git;
mod place;
mod disk;
#[cfg(feature = "runtime")]
mod content;
mod journal;
#[cfg(feature = "runtime")]
mod secrets;
#[cfg(feature = "runtime")]
#[cfg_attr(not(target_os = "linux"), path = "system/unsupervised.rs")]
mod supervisor;
#[cfg(feature = "runtime")]
mod process;
#[cfg(feature = "runtime")]
mod tools;
mod opened;
#[cfg(feature = "runtime")]
mod trust;
#[cfg(feature = "cli")]
mod named;

#[cfg(feature = "runtime")]
pub use content::FolderContent;
pub use disk::Disk;
pub use embedded::Embedded;
pub use git::GitRevision;
pub use journal::{JournalFile, OpenedJournal};
#[cfg(feature = "runtime")]
pub use opened::SessionFile;
pub use opened::{OpenedRepository, open_repository, project_environment};
#[cfg(feature = "runtime")]
pub use process::SystemProcesses;
#[cfg(feature = "runtime")]
pub use secrets::SystemSecrets;
#[cfg(feature = "runtime")]
pub use supervisor::supervise;
#[cfg(all(feature = "cli", feature = "runtime"))]
pub(crate) use supervisor::{adopt, end_the_rest};
#[cfg(feature = "runtime")]
pub use tools::{OpenedTools, RunningTools};
#[cfg(feature = "runtime")]
pub use trust::TrustFolder;

use std::path::{Path, PathBuf};

use crate::golden;
use crate::repo::folders;
#[cfg(feature = "runtime")]
use crate::world::ReadError;
use crate::world::{AccessError, Clock, World};

/// Returns the system's description of an error, without the error number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns a path relative to a folder, with `/` between its parts.
fn relative(folder: &Path, path: &Path) -> String {
    if cfg!(unix)
        && let (Some(folder), Some(path)) = (folder.to_str(), path.to_str())
        && let Some(plain) = path
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'))
        && !plain.starts_with("./")
        && !["//", "/./"].iter().any(|odd| plain.contains(odd))
        && !plain.starts_with('/')
    {
        return plain.trim_end_matches('/').to_owned();
    }
    let inner = path.strip_prefix(folder).unwrap_or(path);
    let parts: Vec<_> = inner
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    parts.join("/")
}

/// Returns `true` if a file is executable.
#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Returns the paths of programs with this name and one of these extensions in the folders of
/// `PATH`. Relative folders are skipped, because they depend on the current folder, which may
/// contain untrusted files.
fn in_path(name: &str, endings: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .collect();
    let files = folders.into_iter().flat_map(move |folder| {
        endings
            .iter()
            .map(|ending| file(&folder, ending, name))
            .collect::<Vec<_>>()
    });
    files.filter(|path| is_program(path))
}

fn file(folder: &Path, ending: &str, name: &str) -> PathBuf {
    folder.join(format!("{name}{ending}"))
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> std::time::SystemTime {
        std::time::SystemTime::now()
    }
}

#[cfg(feature = "cli")]
pub(crate) use named::{
    below, below_checkout, is_ci, is_input, no_color, open, open_descriptor, root_around, size,
    write_named,
};
#[cfg(all(feature = "cli", feature = "runtime"))]
pub(crate) use named::{read_input, read_text};
#[cfg(feature = "cli")]
pub(crate) use place::to_read;
#[cfg(all(feature = "cli", feature = "runtime"))]
pub(crate) use place::to_write;

/// Returns the bytes of a regular file at any path on the disk. Used for files named on the command
/// line.
///
/// # Errors
///
/// Returns a phrase that completes a sentence whose subject is the file.
#[cfg(feature = "runtime")]
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, AccessError> {
    bounded::read(path, limit).map_err(|why| match why {
        ReadError::TooLarge { limit, .. } => format!("is larger than {} MiB", limit >> 20).into(),
        why => format!("cannot be read: {why}").into(),
    })
}

/// Finds the root of the agent repository that contains a folder. If the folder is one of a
/// repository's source folders, such as `agents/`, or is inside one, this is the root of that
/// repository. Otherwise, it is the folder itself if it looks like a root, or else the nearest
/// parent folder that does. The search ends at the first folder that contains a `reqc.toml` or a
/// `.git`, because anything above it belongs to another project. If there is no such folder, if the
/// search finds nothing, or if the user `named` the folder, the root is the folder itself.
///
/// # Errors
///
/// Returns a phrase if the folder does not exist or is not a folder.
pub fn find_root(folder: &Path, named: bool) -> Result<PathBuf, AccessError> {
    let disk = Disk::open(folder)?;
    let start = disk.root().to_path_buf();
    let Some(end) = start
        .ancestors()
        .position(place::is_repository)
        .filter(|_| !named)
    else {
        return Ok(start);
    };
    let mut roots_above = start.ancestors().take(end + 1).skip(1).filter(is_root);
    // In `agents/`, the user means the repository, even though that folder itself contains
    // profiles.
    if let Some(root) = roots_above
        .clone()
        .find(|folder| start.strip_prefix(folder).is_ok_and(is_part))
    {
        return Ok(root.to_path_buf());
    }
    if is_root(&start.as_path()) || has_profiles(&disk) {
        return Ok(start);
    }
    Ok(roots_above.next().map_or(start.clone(), Path::to_path_buf))
}

fn is_root(folder: &&Path) -> bool {
    is_marked(folder) || folder.join(folders::AGENTS).is_dir()
}

/// Returns `true` if a folder contains a `reqc.toml`, which marks it as a root.
fn is_marked(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(folders::CONFIG)).is_ok()
}

/// Returns `true` if a path relative to a root is one of the conventional folders of a repository,
/// or is inside one.
fn is_part(rest: &Path) -> bool {
    let first = rest
        .components()
        .next()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.is_some_and(|first| first == golden::FOLDER || folders::ALL.contains(&first.as_str()))
}

/// Returns `true` if a folder may be a flat repository, that is, if it contains a profile: a TOML
/// file with a top-level `name`.
fn has_profiles(disk: &Disk) -> bool {
    // If a folder cannot be listed, return `true`, so that no parent folder is used instead.
    let Ok(entries) = World::list(disk, "") else {
        return true;
    };
    entries
        .iter()
        .filter(|entry| entry.path.ends_with(".toml"))
        .any(|entry| is_flat_profile(disk, &entry.path))
}

fn is_flat_profile(disk: &Disk, path: &str) -> bool {
    let text = disk.read_within(path, MAX_PROBE_BYTES).unwrap_or_default();
    has_name(&String::from_utf8_lossy(&text))
}

/// Returns `true` if the text of a TOML file, which may be broken, has a top-level `name`.
fn has_name(text: &str) -> bool {
    text.lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .any(|(key, _)| key.trim().trim_matches(['"', '\'']) == "name")
}

/// The maximum size, in bytes, of a file that is read to check whether it is a profile.
const MAX_PROBE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::has_name;

    #[test]
    fn a_profile_has_a_top_level_name() {
        assert!(has_name("# Small\n\"name\" = \"Small\"\n[body]\n"));
        assert!(has_name("extends = \n name= \"broken above\""));
        assert!(!has_name("names = [\"a\"]\n"));
        assert!(!has_name("[package]\nname = \"other\"\n"));
    }
}
