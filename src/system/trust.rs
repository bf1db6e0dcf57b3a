//! The permissions granted by the user of this machine. Each grant is a small file in the folder
//! for application state.
//!
//! A file is valid only if it and its folder belong to the user, nobody else has access to them,
//! and the folder is outside the repository. Therefore, a checkout can never grant permissions to
//! itself.

use std::fs;
use std::path::{Path, PathBuf};

use super::words;
use crate::runtime::trust::TrustStore;
use crate::world::AccessError;

/// A folder that contains a file for each permitted grant.
#[derive(Debug, Clone)]
pub struct TrustFolder {
    /// The folder, or the reason grants cannot be recorded.
    folder: Result<PathBuf, AccessError>,
}

impl TrustFolder {
    /// Returns the current user's trust folder: `reqc/trust` in `$XDG_STATE_HOME` or, if this
    /// variable is not set, in `~/.local/state` (`~/Library/Application Support` on macOS,
    /// `%LOCALAPPDATA%` on Windows). `root` is the canonical root of the repository.
    pub fn of_person(root: &Path) -> TrustFolder {
        let folder = state_folder().ok_or_else(|| "the home folder cannot be determined".into());
        TrustFolder {
            folder: folder.and_then(|folder| outside(&folder.join("reqc").join("trust"), root)),
        }
    }
}

impl TrustStore for TrustFolder {
    fn is_trusted(&self, fingerprint: &str) -> bool {
        let Ok(folder) = &self.folder else {
            return false;
        };
        is_private(folder, fs::Metadata::is_dir)
            && is_private(&folder.join(fingerprint), fs::Metadata::is_file)
    }

    fn remember(&self, fingerprint: &str, text: &str) -> Result<(), AccessError> {
        let folder = self.folder.clone()?;
        create_private(&folder).map_err(|error| unwritable(&folder, &error))?;
        if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir() && is_ours(&found)) {
            return Err(format!("other users can write `{}`", folder.display()).into());
        }
        let path = folder.join(fingerprint);
        write_aside(&folder, text, &path).map_err(|error| unwritable(&folder, &error))
    }
}

/// Writes a temporary file and renames it, so that nothing is written through a link. Only the user
/// can read the file.
fn write_aside(folder: &Path, text: &str, path: &Path) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

fn unwritable(folder: &Path, error: &std::io::Error) -> AccessError {
    format!("`{}` cannot be written: {}", folder.display(), words(error)).into()
}

fn is_private(path: &Path, kind: fn(&fs::Metadata) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| kind(&found) && is_ours(&found))
}

/// Returns the folder for application state on this machine; see
/// <https://specifications.freedesktop.org/basedir-spec/latest/>.
fn state_folder() -> Option<PathBuf> {
    variable("XDG_STATE_HOME").or_else(|| match std::env::consts::OS {
        "windows" => variable("LOCALAPPDATA"),
        "macos" => Some(home()?.join("Library/Application Support")),
        _ => Some(home()?.join(".local/state")),
    })
}

fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Returns the folder, or an error if it is in the checkout that contains `root`.
fn outside(folder: &Path, root: &Path) -> Result<PathBuf, AccessError> {
    let checkout = root
        .ancestors()
        .find(|folder| folder.join(".git").exists())
        .unwrap_or(root);
    let known = folder
        .ancestors()
        .find_map(|part| Some((fs::canonicalize(part).ok()?, part)));
    let real = known.map_or_else(
        || folder.to_owned(),
        |(real, part)| real.join(folder.strip_prefix(part).unwrap_or(Path::new(""))),
    );
    match real.starts_with(checkout) {
        true => Err(format!("`{}` is inside the repository", folder.display()).into()),
        false => Ok(real),
    }
}

/// Creates a folder and its parents, with access only for this user.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns `true` if a file belongs to this user, and nobody else has access to it.
#[cfg(unix)]
fn is_ours(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let others = found.mode() & 0o077;
    found.uid() == rustix::process::geteuid().as_raw() && others == 0
}

#[cfg(not(unix))]
fn is_ours(_found: &fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn at(state: &Path, root: &Path) -> TrustFolder {
        TrustFolder {
            folder: outside(&state.join("reqc/trust"), root),
        }
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    fn what_was_remembered_is_trusted() {
        let (state, root) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let store = at(state.path(), root.path());
        assert!(!store.is_trusted("ab"));
        store.remember("ab", "text\n").expect("writable");
        assert!(at(state.path(), root.path()).is_trusted("ab") && !store.is_trusted("cd"));
        let folder = store.folder.clone().expect("outside");
        assert_eq!(
            (mode_of(&folder), mode_of(&folder.join("ab"))),
            (0o700, 0o600)
        );
    }

    #[test]
    fn what_others_can_write_or_bring_is_not_trusted() {
        let (state, root) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let store = at(state.path(), root.path());
        store.remember("ab", "text\n").expect("writable");
        let folder = store.folder.clone().expect("outside");
        set_mode(&folder.join("ab"), 0o644);
        assert!(
            !store.is_trusted("ab"),
            "files of a checkout look like this"
        );
        set_mode(&folder.join("ab"), 0o600);
        set_mode(&folder, 0o777);
        assert!(!store.is_trusted("ab") && store.remember("cd", "").is_err());
        set_mode(&folder, 0o700);
        symlink(folder.join("ab"), folder.join("link")).expect("writable");
        assert!(store.is_trusted("ab") && !store.is_trusted("link"));
        // A home folder inside the checkout, directly and through a link.
        fs::create_dir(root.path().join("home")).expect("writable");
        symlink(root.path().join("home"), state.path().join("elsewhere")).expect("writable");
        let root = fs::canonicalize(root.path()).expect("it is there");
        for inside in [root.join("home"), state.path().join("elsewhere")] {
            let store = at(&inside, &root);
            assert!(store.remember("ab", "").is_err() && !store.is_trusted("ab"));
        }
    }
}
