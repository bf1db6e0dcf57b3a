//! Access to files and paths named on the command line, and facts about the environment.

use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::place::to_write;
use super::{bounded, find_root, relative};
#[cfg(feature = "runtime")]
use super::{read_bytes, words};
#[cfg(feature = "runtime")]
use crate::world::MAX_FILE_BYTES;
use crate::world::{AccessError, Output};

/// Opens a regular file at any path on the disk. Used for files named on the command line that are
/// read in parts.
///
/// # Errors
/// Returns a phrase that completes a sentence whose subject is the file.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, AccessError> {
    bounded::open(path).map_err(|why| format!("cannot be read: {why}").into())
}

/// Opens a file that is already open in this process, given a path such as `/dev/fd/63`, which
/// shells use to pass a program's output. Returns `None` for all other paths. As with standard
/// input, the caller limits how much is read.
pub(crate) fn open_descriptor(path: &Path) -> Option<Result<std::fs::File, AccessError>> {
    descriptor(path)?;
    let opened = bounded::open_descriptor(path);
    Some(opened.map_err(|why| format!("cannot be read: {why}").into()))
}

/// Returns `true` for a path that means standard input: `-`, `/dev/stdin`, and the path of its
/// descriptor.
pub(crate) fn is_input(path: &Path) -> bool {
    path == Path::new("-")
        || cfg!(unix) && path == Path::new("/dev/stdin")
        || descriptor(path) == Some(0)
}

/// Returns the number of the descriptor at a path such as `/dev/fd/63`.
fn descriptor(path: &Path) -> Option<u32> {
    let name = ["/dev/fd", "/proc/self/fd"]
        .into_iter()
        .find_map(|folder| path.strip_prefix(folder).ok())?;
    let number = name.to_str()?.parse().ok()?;
    cfg!(unix).then_some(number)
}

/// Returns the size of a regular file in bytes; 0 for anything else.
pub(crate) fn size(path: &Path) -> u64 {
    open(path)
        .and_then(|file| file.metadata().map_err(|why| why.to_string().into()))
        .map_or(0, |data| data.len())
}

/// Returns the text of a regular file at any path on the disk. Used for files named on the command
/// line.
///
/// # Errors
///
/// Returns a phrase that completes a sentence whose subject is the file.
#[cfg(feature = "runtime")]
pub(crate) fn read_text(path: &Path) -> Result<String, AccessError> {
    let bytes = read_bytes(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".into())
}

/// Returns all of standard input as text.
///
/// # Errors
///
/// Returns a phrase that completes a sentence whose subject is “standard input”.
#[cfg(feature = "runtime")]
pub(crate) fn read_input() -> Result<String, AccessError> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::io::stdin()
        .lock()
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text);
    read.map_err(|error| format!("cannot be read: {}", words(&error)))?;
    match text.len() as u64 > MAX_FILE_BYTES {
        true => Err(format!("is larger than {} MiB", MAX_FILE_BYTES >> 20).into()),
        false => Ok(text),
    }
}

/// Writes a file named on the command line atomically. Its folder must exist. Links in a
/// repository are not followed.
///
/// # Errors
///
/// Returns a phrase that says why the file cannot be written.
pub(crate) fn write_named(path: &Path, bytes: &[u8]) -> Result<(), AccessError> {
    let place = to_write(path, None)?;
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return Err("it is a folder".into());
    };
    if place.is_dir() {
        return Err("it is a folder".into());
    }
    if !folder.is_dir() {
        return Err(format!("there is no folder `{}`", folder.display()).into());
    }
    let name = name
        .to_str()
        .ok_or_else(|| "its name is not UTF-8".to_owned())?;
    Disk::open(folder)?.replace(name, bytes)
}

/// Returns the path of a folder relative to its checkout, which is the nearest parent folder, or
/// the folder itself, that contains a `.git`; `None` if there is none.
pub(crate) fn below_checkout(folder: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(folder).ok()?;
    let top = folder
        .ancestors()
        .find(|folder| std::fs::symlink_metadata(folder.join(".git")).is_ok())?;
    Some(relative(top, &folder))
}

/// Returns `true` if this process runs in CI, where no questions can be asked, and only requested
/// files are written.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI")
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Returns `true` if `NO_COLOR` requests plain output; see <https://no-color.org>.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Returns the root of the agent repository that contains a file or folder, as determined by
/// [`find_root`].
///
/// # Errors
///
/// Returns a phrase if the path does not exist.
pub(crate) fn root_around(path: &Path) -> Result<PathBuf, AccessError> {
    let is_folder = match path.metadata() {
        Ok(found) => found.is_dir(),
        Err(_) => return Err(format!("`{}` does not exist", path.display()).into()),
    };
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    find_root(if is_folder { path } else { parent }, false)
}

/// Returns the path of an existing file relative to a root, with `/` between its parts; `""` for
/// the root itself. The last part is not resolved if it is a link.
///
/// # Errors
///
/// Returns a phrase if the path does not exist or is outside the root.
pub(crate) fn below(root: &Path, path: &Path) -> Result<String, AccessError> {
    std::fs::symlink_metadata(path).map_err(|_| missing(path))?;
    let real_root = std::fs::canonicalize(root).map_err(|_| missing(path))?;
    let place = match (path.is_dir(), path.parent(), path.file_name()) {
        (false, Some(folder), Some(name)) => {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            std::fs::canonicalize(folder)
                .map_err(|_| missing(path))?
                .join(name)
        }
        _ => std::fs::canonicalize(path).map_err(|_| missing(path))?,
    };
    match place.starts_with(&real_root) {
        true => Ok(relative(&real_root, &place)),
        false => {
            let (path, root) = (path.display(), root.display());
            Err(format!("`{path}` is outside the agent repository `{root}`").into())
        }
    }
}

fn missing(path: &Path) -> AccessError {
    format!("`{}` does not exist", path.display()).into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_of_descriptors_are_known() {
        let number = |path: &str| descriptor(Path::new(path));
        assert_eq!(number("/dev/fd/63"), Some(63));
        assert_eq!(number("/proc/self/fd/0"), Some(0));
        for path in [
            "/dev/fd",
            "/dev/fd/x",
            "/dev/fd/../sda",
            "/dev/fd/1/a",
            "fd/1",
            "/proc/1/fd/0",
        ] {
            assert_eq!(number(path), None, "{path}");
        }
        let inputs = ["-", "/dev/stdin", "/dev/fd/0"];
        assert!(inputs.iter().all(|path| is_input(Path::new(path))));
        assert!(!is_input(Path::new("/dev/fd/3")) && !is_input(Path::new("stdin")));
    }
}
