//! Finds the repository that contains a folder, and decides whether its files can be trusted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

use super::file::read;
use super::program::{Git, Strangers};
use crate::system::{relative, words};
use crate::world::AccessError;

/// The maximum size of a file that contains a path, in bytes.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// The maximum number of files and folders in an object store.
const MAX_OBJECT_FILES: usize = 4_000_000;

/// The maximum number of object stores that a repository borrows from; each must be checked.
const MAX_STORES: usize = 50;

/// The file in an object store that lists the stores from which it borrows objects.
const ALTERNATES: &str = "info/alternates";

/// The maximum number of linked work trees that are examined.
const MAX_WORK_TREES: usize = 1_000;

/// The maximum length of a chain of borrowed object stores; git itself follows five.
const MAX_BORROWED: usize = 5;

/// A git repository with a work tree.
#[derive(Debug)]
pub(super) struct Repository {
    /// The root folder of the work tree.
    work_tree: PathBuf,
    /// The folder that contains `HEAD`.
    own: PathBuf,
    /// The folder that contains refs, configuration, and objects, which work trees share.
    common: PathBuf,
    prefix: String,
    strangers: Strangers,
}

impl Repository {
    /// Finds the repository that contains a folder, given by its canonical path.
    pub(super) fn around(root: &Path) -> Result<Repository, AccessError> {
        let found = root
            .ancestors()
            .find(|folder| fs::symlink_metadata(folder.join(".git")).is_ok());
        let work_tree = found
            .ok_or("neither it nor a folder above has a `.git`")?
            .to_owned();
        let strangers = Strangers::around(&work_tree);
        let own = own_folder(&work_tree, &strangers)?;
        let common = common_folder(&own)?;
        let strangers = further_work_trees(&common)?
            .iter()
            .fold(strangers.and(&own), |all, tree| all.and(tree));
        let inner = root.strip_prefix(&work_tree).unwrap_or(root);
        inner.to_str().ok_or("its path is not UTF-8")?;
        let prefix = relative(&work_tree, root);
        let repository = Repository {
            work_tree,
            own,
            common,
            prefix,
            strangers,
        };
        repository.check_objects(&repository.objects(), 0, &mut BTreeSet::new())?;
        Ok(repository)
    }

    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    pub(super) fn common(&self) -> &Path {
        &self.common
    }

    pub(super) fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    /// Returns the path of the folder within the work tree.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Checks the object store, because git opens any file in it: links could point elsewhere, and
    /// pipes could block.
    fn check_objects(
        &self,
        store: &Path,
        borrowed: usize,
        known: &mut BTreeSet<PathBuf>,
    ) -> Result<(), AccessError> {
        if known.len() > MAX_STORES {
            return Err(format!("it borrows objects from more than {MAX_STORES} folders").into());
        }
        for (count, found) in WalkDir::new(store)
            .follow_root_links(false)
            .into_iter()
            .enumerate()
        {
            let found = found.map_err(|error| format!("its objects cannot be listed: {error}"))?;
            let kind = found.file_type();
            if !kind.is_file() && !kind.is_dir() {
                return Err(format!(
                    "`{}` is neither a file nor a folder",
                    found.path().display()
                )
                .into());
            }
            if count > MAX_OBJECT_FILES {
                return Err(format!("it has more than {MAX_OBJECT_FILES} object files").into());
            }
        }
        let lines = pointer(&store.join(ALTERNATES))?.unwrap_or_default();
        for line in lines
            .split('\n')
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let other = borrowed_store(store, line)?;
            if borrowed >= MAX_BORROWED {
                let message =
                    format!("its chain of alternate object folders is longer than {MAX_BORROWED}");
                return Err(message.into());
            }
            if !other.starts_with(&self.work_tree)
                && !other.starts_with(&self.common)
                && !is_allowed(&other)
            {
                let shown = other.display();
                return Err(format!(
                    "it borrows objects from `{shown}`, which an attacker could have set up. If you set it up yourself, list that folder in `GIT_ALTERNATE_OBJECT_DIRECTORIES`; otherwise, copy the objects with `git repack -a -d`, and then delete `{}`",
                    store.join(ALTERNATES).display()
                ).into());
            }
            if known.insert(other.clone()) {
                self.check_objects(&other, borrowed + 1, known)?;
            }
        }
        Ok(())
    }
}

/// Returns the object folder specified by a line of `info/alternates`. Git interprets quotes, and
/// resolves `..` before links, so lines that git may interpret differently are rejected.
fn borrowed_store(store: &Path, line: &str) -> Result<PathBuf, AccessError> {
    if line.starts_with('"')
        || line.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
    {
        return Err(refused());
    }
    let mut folded = PathBuf::new();
    for part in store.join(line).components() {
        match part {
            Component::ParentDir => drop(folded.pop()),
            part => folded.push(part),
        }
    }
    let other = canonical(&folded)?;
    if canonical(&store.join(line))? == other {
        Ok(other)
    } else {
        Err(refused())
    }
}

fn refused() -> AccessError {
    AccessError::from("its `objects/info/alternates` contains an ambiguous path")
}

/// Returns `true` if the user allows git objects to be borrowed from a folder.
fn is_allowed(folder: &Path) -> bool {
    let named = std::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES").unwrap_or_default();
    std::env::split_paths(&named)
        .any(|named| fs::canonicalize(named).is_ok_and(|named| named == folder))
}

/// Returns a work tree's own git folder, which is its `.git` or the folder to which its `.git`
/// refers.
fn own_folder(work_tree: &Path, strangers: &Strangers) -> Result<PathBuf, AccessError> {
    let marker = work_tree.join(".git");
    let real = canonical(&marker)?;
    let (own, is_pointed_to) = match real.is_dir() {
        true => (real, false),
        false => {
            let text = pointer(&marker)?.unwrap_or_default();
            let target = text
                .strip_prefix("gitdir:")
                .ok_or("its `.git` is neither a folder nor a file that points to one")?;
            (canonical(&work_tree.join(target.trim()))?, true)
        }
    };
    let is_theirs = own.starts_with(work_tree) || is_named_by_person(&own);
    match is_theirs || is_pointed_to && points_back(&own, work_tree, &marker, strangers)? {
        true => Ok(own),
        false => Err(leads_away(&own, work_tree).into()),
    }
}

/// Returns `true` if the user specifies a folder as the repository, with git's own variable
/// `GIT_DIR`.
fn is_named_by_person(folder: &Path) -> bool {
    std::env::var_os("GIT_DIR")
        .is_some_and(|named| fs::canonicalize(named).is_ok_and(|named| named == folder))
}

fn leads_away(folder: &Path, work_tree: &Path) -> String {
    let (folder, work_tree) = (folder.display(), work_tree.display());
    format!(
        "its `.git` points to `{folder}`, which does not refer back to this work tree: if you set this up yourself, run `git \
         --git-dir={folder} config core.worktree {work_tree}`, or set the environment variable GIT_DIR to it"
    )
}

/// Returns `true` if a folder outside the work tree refers back to it. The author of a checkout has
/// no control over folders outside the checkout.
fn points_back(
    own: &Path,
    work_tree: &Path,
    marker: &Path,
    strangers: &Strangers,
) -> Result<bool, AccessError> {
    // A linked work tree: `<repository>/worktrees/<name>/gitdir` contains the path of its `.git`.
    if let Some(back) = pointer(&own.join("gitdir"))? {
        return Ok(fs::canonicalize(own.join(back.trim())).is_ok_and(|back| back == marker));
    }
    // A submodule: `core.worktree` in its configuration contains the path of the work tree.
    for name in ["config", "config.worktree"] {
        for (key, value) in Git::read_configuration(&own.join(name), strangers)? {
            if key == "core.worktree"
                && fs::canonicalize(own.join(value)).is_ok_and(|back| back == work_tree)
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the folder that a linked work tree shares with the main one.
fn common_folder(own: &Path) -> Result<PathBuf, AccessError> {
    let Some(text) = pointer(&own.join("commondir"))? else {
        return Ok(own.to_owned());
    };
    let common = canonical(&own.join(text.trim()))?;
    match own.parent() == Some(&common.join("worktrees")) {
        true => Ok(common),
        false => Err(format!("`{}` is not part of `{}`", own.display(), common.display()).into()),
    }
}

/// Returns the folders of a repository's linked work trees.
fn further_work_trees(common: &Path) -> Result<Vec<PathBuf>, AccessError> {
    let Ok(found) = fs::read_dir(common.join("worktrees")) else {
        return Ok(Vec::new());
    };
    let mut trees = Vec::new();
    for (count, tree) in found.flatten().enumerate() {
        if count > MAX_WORK_TREES {
            return Err(format!("it has more than {MAX_WORK_TREES} work trees").into());
        }
        let marker = pointer(&tree.path().join("gitdir")).unwrap_or_default();
        let marker =
            marker.and_then(|marker| fs::canonicalize(tree.path().join(marker.trim())).ok());
        trees.extend(marker.and_then(|marker| marker.parent().map(Path::to_owned)));
    }
    Ok(trees)
}

fn canonical(path: &Path) -> Result<PathBuf, AccessError> {
    fs::canonicalize(path)
        .map_err(|error| format!("`{}` cannot be opened: {}", path.display(), words(&error)).into())
}

fn pointer(path: &Path) -> Result<Option<String>, AccessError> {
    let bytes = read(path, MAX_POINTER_BYTES)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
