//! Checks whether paths specified by the user may be written or read.

use std::fs;
use std::path::{Path, PathBuf};

use super::words;
use crate::repo::folders;
use crate::world::AccessError;

/// The maximum number of links in one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Returns the path of a file to write, with `..` and links resolved. The last parts of the path
/// need not exist.
///
/// A link inside a repository is rejected, even if one of the user's links points to it, because a
/// repository must not decide where files are written. Other links belong to the system or the
/// user. Paths inside a `.git` are rejected, too. `root` is treated as a repository even if it is
/// not marked as one.
///
/// # Errors
///
/// Returns a phrase that mentions the location.
pub(crate) fn to_write(path: &Path, root: Option<&Path>) -> Result<PathBuf, AccessError> {
    let place = followed(path, root, "written to")?;
    match place
        .components()
        .any(|part| is_git(&part.as_os_str().to_string_lossy()))
    {
        true => Err(format!(
            "reqc does not write to `{}`: it is in a `.git` folder",
            path.display()
        )
        .into()),
        false => Ok(place),
    }
}

/// Returns the path of a file to read, as named on the command line. Links inside a repository are
/// rejected, whatever their target. `root` and the folder in which the command was started are
/// treated as repositories.
///
/// # Errors
///
/// Returns a phrase that mentions the location.
#[cfg(feature = "cli")]
pub(crate) fn to_read(path: &Path, root: &Path) -> Result<PathBuf, AccessError> {
    followed(path, Some(root), "read")
}

/// Returns the folder in which the command was started; `None` if that is the root of the disk.
fn started_in() -> Option<PathBuf> {
    std::env::current_dir()
        .ok()
        .filter(|folder| folder.parent().is_some())
}

/// Resolves the links in a path one by one. A link inside a repository is an error.
fn followed(path: &Path, root: Option<&Path>, what: &str) -> Result<PathBuf, AccessError> {
    let shown = path.display();
    let whole = std::path::absolute(path)
        .map_err(|error| format!("`{shown}` is not a usable path: {}", words(&error)))?;
    let root = root
        .and_then(|root| fs::canonicalize(root).ok())
        .filter(|root| root.parent().is_some());
    let roots: Vec<PathBuf> = root.into_iter().chain(started_in()).collect();
    let (mut ahead, mut place, mut links) = (parts_of(&whole), PathBuf::new(), 0);
    while let Some(part) = ahead.pop() {
        match part.as_os_str() {
            part if part == "." => continue,
            part if part == ".." => {
                place.pop();
                continue;
            }
            _ => {}
        }
        let next = place.join(&part);
        if !fs::symlink_metadata(&next).is_ok_and(|found| found.is_symlink()) {
            place = next;
            continue;
        }
        links += 1;
        let target = match links > MAX_LINKS {
            true => Err("it leads through too many links".into()),
            false => target(&next, &place, &roots),
        };
        ahead.extend(parts_of(
            &target.map_err(|why| format!("`{shown}` is not {what}: {why}"))?,
        ));
    }
    Ok(place)
}

/// Returns the parts of a path in reverse order.
fn parts_of(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect()
}

/// Returns the target of a link, or an error if the link may not be followed.
fn target(link: &Path, folder: &Path, roots: &[PathBuf]) -> Result<PathBuf, AccessError> {
    let shown = link.display();
    if roots.iter().any(|root| folder.starts_with(root)) || folder.ancestors().any(is_repository) {
        return Err(format!("`{shown}` is a link inside a repository").into());
    }
    fs::read_link(link)
        .map_err(|error| format!("the link `{shown}` cannot be followed: {}", words(&error)).into())
}

/// Returns `true` if a folder is marked as the root of a repository.
pub(super) fn is_repository(folder: &Path) -> bool {
    [".git", folders::CONFIG]
        .iter()
        .any(|name| fs::symlink_metadata(folder.join(name)).is_ok())
}

/// Returns `true` if a file system may treat a name as `.git`, a repository's own folder. Some file
/// systems ignore case, trailing dots and spaces, or a few invisible characters, and some have
/// short names.
fn is_git(name: &str) -> bool {
    let visible: String = name
        .chars()
        .filter(
            |c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'),
        )
        .collect();
    let name = visible.trim_end_matches(['.', ' ']);
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_git_is_known_by_any_of_its_names() {
        assert!(
            [".git", ".GIT", ".git.", ".Git ", "GIT~1", ".g\u{200c}it"]
                .iter()
                .all(|name| is_git(name))
        );
        assert!(
            ![".github", "git", ".gitignore", "a.git"]
                .iter()
                .any(|name| is_git(name))
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_of_a_repository_are_not_followed() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let base = fs::canonicalize(scratch.path()).expect("it is there");
        let link = |target: &str, at: &str| {
            std::os::unix::fs::symlink(target, base.join(at)).expect("a link");
        };
        fs::create_dir_all(base.join("repo/.git/hooks")).expect("writable");
        fs::create_dir_all(base.join("plain/inner")).expect("writable");
        link("../plain", "repo/build");
        link("plain", "mine");
        link("../plain", "plain/inner/up");
        assert_eq!(
            to_write(&base.join("mine/new/x"), None),
            Ok(base.join("plain/new/x"))
        );
        assert_eq!(
            to_write(&base.join("repo/../mine/a"), None),
            Ok(base.join("plain/a"))
        );
        for refused in [
            "repo/build",
            "repo/build/a",
            "repo/.git/hooks",
            "repo/x/../.GIT/y",
        ] {
            assert!(to_write(&base.join(refused), None).is_err(), "{refused}");
        }
        assert!(to_write(&base.join("plain/inner/up"), Some(&base.join("plain"))).is_err());
        // A user's link that points to one in the repository, and circular links.
        link("repo/build", "own");
        link("repo", "repository");
        link("around", "about");
        link("about", "around");
        for refused in [
            "own",
            "own/x",
            "repository/build/x",
            "mine/../repo/build",
            "around/x",
        ] {
            assert!(to_write(&base.join(refused), None).is_err(), "{refused}");
        }
        assert_eq!(
            to_write(&base.join("repository/new"), None),
            Ok(base.join("repo/new"))
        );
        assert!(to_write(&base.join("repo/new"), None).is_ok());
    }
}
