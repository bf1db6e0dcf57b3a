//! The real world behind [`world`](crate::world)'s traits: the disk, the files in the binary, git, the clock.
//!
//! The only module that calls `std::fs`, `std::env`, processes or the clock. Input: a folder, or a git revision.
//! Output: a [`World`](crate::world::World) to read from and an [`Output`](crate::world::Output) to write to. It
//! does not know what any file means, and every world here lists the same files in the same order: sorted by
//! path, byte for byte, with `/` between parts.

mod disk;
mod embedded;
mod git;
mod journal;
#[cfg(feature = "runtime")]
mod process;
#[cfg(feature = "runtime")]
mod secrets;
#[cfg(feature = "runtime")]
#[cfg_attr(not(target_os = "linux"), path = "system/unsupervised.rs")]
mod supervisor;
#[cfg(feature = "runtime")]
mod trust;

pub use disk::Disk;
pub use embedded::Embedded;
pub use git::GitRevision;
pub use journal::{JournalFile, OpenedJournal};
#[cfg(feature = "runtime")]
pub use process::SystemProcesses;
#[cfg(feature = "runtime")]
pub use secrets::SystemSecrets;
#[cfg(feature = "runtime")]
pub use supervisor::supervise;
#[cfg(feature = "runtime")]
pub(crate) use supervisor::{adopt, end_the_rest};
#[cfg(feature = "runtime")]
pub use trust::TrustFolder;
#[cfg(feature = "runtime")]
pub(crate) use trust::is_ci;

use std::path::{Path, PathBuf};

/// The system's words for an error, without its number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// This machine's clock.
#[cfg(feature = "runtime")]
pub(crate) fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// The bytes of a file anywhere on the disk, for what the command line names.
///
/// # Errors
///
/// A phrase that goes on after the file's name.
#[cfg(feature = "runtime")]
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let failed = |error: std::io::Error| format!("cannot be read: {}", words(&error));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > limit {
        true => Err(format!("is larger than {} MiB", limit >> 20)),
        false => Ok(bytes),
    }
}

/// The text of a file anywhere on the disk, for what the command line names.
///
/// # Errors
///
/// A phrase that goes on after the file's name.
#[cfg(feature = "runtime")]
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {}", words(&error)))
}

/// Where the person stands.
#[cfg(feature = "runtime")]
pub(crate) struct Places {
    /// The current folder.
    pub(crate) project: PathBuf,
    /// The person's home; the root if there is none.
    pub(crate) home: PathBuf,
}

#[cfg(feature = "runtime")]
impl Places {
    /// The places of this process.
    pub(crate) fn here() -> Result<Places, String> {
        let project = std::env::current_dir();
        let project = project.map_err(|error| format!("the current folder is not there: {}", words(&error)))?;
        Ok(Places { project, home: std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")) })
    }
}

/// Whether `NO_COLOR` asks for plain output; see <https://no-color.org>.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The root of the agent repository around a folder: the folder itself if it looks like one, else the nearest
/// ancestor that does, else the folder.
///
/// # Errors
///
/// A phrase, if the folder does not exist or is none.
pub fn find_root(folder: &Path) -> Result<PathBuf, String> {
    let start = Disk::open(folder)?.root().to_path_buf();
    let has_profiles = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| is_flat_profile(&entry.path()))
    };
    let is_root = |folder: &&Path| folder.join("reqc.toml").is_file() || folder.join("agents").is_dir();
    // Somebody who stands in `agents/` means the repository, although the folder holds profiles.
    let inside = |folder: &&Path| is_root(folder) && start.strip_prefix(folder).is_ok_and(is_part);
    if let Some(root) = start.ancestors().skip(1).find(inside) {
        return Ok(root.to_path_buf());
    }
    if is_root(&start.as_path()) || has_profiles(&start) {
        return Ok(start);
    }
    Ok(start.ancestors().find(is_root).map_or(start.clone(), Path::to_path_buf))
}

/// Whether a path relative to a root lies in one of the folders that a repository has by convention.
fn is_part(rest: &Path) -> bool {
    let first = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.is_some_and(|first| {
        ["agents", "partials", "contexts", "roles", "providers", "golden", "schemas"].contains(&first.as_str())
    })
}

/// Whether a file may be a profile of a flat repository: a TOML file with a top-level `name`.
fn is_flat_profile(path: &Path) -> bool {
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    is_toml
        && std::fs::read_to_string(path).is_ok_and(|text| {
            text.lines().take_while(|line| !line.starts_with('[')).any(|line| line.trim_start().starts_with("name"))
        })
}
