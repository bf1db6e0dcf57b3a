//! Finds the files below a folder, following links that do not point outside. The walk is bounded,
//! and reports everything that it could not examine.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, Error, IntoIter, WalkDir};

use super::{Disk, broken_link, no_text, not_utf8};
use crate::system::{bounded, relative, words};
use crate::world::{
    Entry, EntryKind, MAX_DEPTH, MAX_ENTRIES, MAX_LINKED_FOLDERS, ReadError, Unread, Walk,
    is_hidden, names_source,
};

/// Returns everything below a folder; see [`World::walk`](crate::world::World::walk).
pub(super) fn walk(disk: &Disk, folder: &str) -> Walk {
    let resolved = disk
        .visible(folder)
        .and_then(|folder| disk.resolve(&folder).map(|_| folder));
    let folder = match resolved {
        Ok(folder) => folder,
        Err(ReadError::Missing) => return Walk::default(),
        Err(why) => return Walk::unread(folder, why),
    };
    let mut walker = Walker {
        disk,
        found: Walk::default(),
        seen: 0,
        links: 0,
        real: HashMap::new(),
    };
    match walker.run(
        WalkDir::new(disk.root.join(&folder))
            .follow_links(true)
            .min_depth(1)
            .into_iter(),
    ) {
        Ok(()) => sorted(walker.found),
        // Which files were found before the failure depends on the system's listing order, so
        // discard them.
        Err(why) => Walk::unread(&folder, why),
    }
}

struct Walker<'d> {
    disk: &'d Disk,
    found: Walk,
    seen: usize,
    links: usize,
    /// The canonical paths of folders that contain links.
    real: HashMap<PathBuf, PathBuf>,
}

impl Walker<'_> {
    fn run(&mut self, mut walk: IntoIter) -> Result<(), ReadError> {
        while let Some(found) = walk.next() {
            self.see()?;
            match found {
                Ok(entry) if entry.file_type().is_dir() && begins_with_dot(entry.path()) => {
                    walk.skip_current_dir();
                    self.hidden_folder(&entry)?;
                }
                Ok(entry) if no_text(&self.disk.root, entry.path()) => {
                    if entry.file_type().is_dir() {
                        walk.skip_current_dir();
                    }
                    self.unread(&relative(&self.disk.root, entry.path()), not_utf8());
                }
                Ok(entry) if entry.file_type().is_dir() => self.folder(&entry, &mut walk)?,
                Ok(entry) if is_hidden_name(entry.path()) => self.hidden(entry.path()),
                Ok(entry) => self.file(relative(&self.disk.root, entry.path())),
                Err(error) => self.failure(&error),
            }
        }
        Ok(())
    }

    fn file(&mut self, path: String) {
        self.found.entries.push(Entry {
            path,
            kind: EntryKind::File,
        });
    }

    fn hidden(&mut self, path: &Path) {
        let path = relative(&self.disk.root, path);
        if names_source(&path) {
            self.found.hidden.push(path);
        }
    }

    /// Records the files in a hidden folder that have the names of source files. `.git` is skipped,
    /// because sources are not kept there.
    fn hidden_folder(&mut self, entry: &DirEntry) -> Result<(), ReadError> {
        if entry.file_name() == ".git" {
            return Ok(());
        }
        if entry.path_is_symlink() {
            self.found
                .hidden
                .push(relative(&self.disk.root, entry.path()));
            return Ok(());
        }
        let below = WalkDir::new(entry.path())
            .follow_links(false)
            .follow_root_links(false);
        for inner in below
            .into_iter()
            .filter_entry(|inner| inner.file_name() != ".git")
            .flatten()
        {
            self.see()?;
            if !inner.file_type().is_dir() {
                self.hidden(inner.path());
            }
        }
        Ok(())
    }

    fn see(&mut self) -> Result<(), ReadError> {
        self.seen += 1;
        match self.seen > MAX_ENTRIES {
            true => Err(ReadError::Failed(format!(
                "there are more than {MAX_ENTRIES} files and folders below it"
            ))),
            false => Ok(()),
        }
    }

    fn folder(&mut self, entry: &DirEntry, walk: &mut IntoIter) -> Result<(), ReadError> {
        let path = relative(&self.disk.root, entry.path());
        if entry.depth() > MAX_DEPTH {
            walk.skip_current_dir();
            self.unread(
                &path,
                ReadError::Failed(format!("it is more than {MAX_DEPTH} folders deep")),
            );
        } else if entry.path_is_symlink() {
            self.links += 1;
            if self.links > MAX_LINKED_FOLDERS {
                return Err(ReadError::Failed(format!(
                    "there are more than {MAX_LINKED_FOLDERS} links to folders below it"
                )));
            }
            self.link(&path, entry.path(), walk);
        }
        if looks_like_file(&path) {
            self.found.entries.push(Entry {
                path,
                kind: EntryKind::Folder,
            });
        }
        Ok(())
    }

    /// Checks a link to a folder. The target is walked if it is inside the root and does not
    /// contain the link itself.
    fn link(&mut self, path: &str, link: &Path, walk: &mut IntoIter) {
        match self.disk.resolve(path) {
            Ok(target) => {
                let target = self.disk.root.join(target);
                let root = &self.disk.root;
                let mut folders = link
                    .ancestors()
                    .skip(1)
                    .take_while(|folder| folder.starts_with(root));
                if folders.any(|folder| real_folder(&mut self.real, folder).starts_with(&target)) {
                    walk.skip_current_dir();
                }
            }
            Err(why) => {
                walk.skip_current_dir();
                self.unread(path, why);
            }
        }
    }

    /// Records a broken link, a link to one of its parent folders, or a folder that cannot be
    /// listed.
    fn failure(&mut self, error: &Error) {
        let Some(place) = error.path().filter(|path| !is_hidden_name(path)) else {
            return;
        };
        let path = relative(&self.disk.root, place);
        if no_text(&self.disk.root, place) {
            return self.unread(&path, not_utf8());
        }
        if error.loop_ancestor().is_some() {
            if looks_like_file(&path) {
                self.found.entries.push(Entry {
                    path,
                    kind: EntryKind::Folder,
                });
            }
            return;
        }
        let is_link = fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink());
        match error.io_error() {
            // Reading the file later reports the error. Links without an extension are not source
            // files, but may have been folders.
            _ if is_link && place.extension().is_some() => self.file(path),
            Some(error) if is_link => self.unread(&path, broken_link(error)),
            Some(error) if error.kind() != ErrorKind::NotFound => {
                self.unread(&path, ReadError::Failed(words(error)));
            }
            _ => {}
        }
    }

    fn unread(&mut self, path: &str, why: ReadError) {
        self.found.unread.push(Unread {
            path: path.to_owned(),
            why,
        });
    }
}

/// Returns the canonical path of a folder, or its own path if the canonical one cannot be
/// determined.
fn real_folder<'r>(known: &'r mut HashMap<PathBuf, PathBuf>, folder: &Path) -> &'r Path {
    if !known.contains_key(folder) {
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        known.insert(folder.to_owned(), real);
    }
    &known[folder]
}

/// Returns the visible entries of a folder, and the number of all its entries, including hidden
/// ones.
pub(super) fn children(disk: &Disk, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
    let children = match fs::read_dir(disk.root.join(folder)) {
        Ok(children) => children,
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok((Vec::new(), 0)),
        Err(error) => return Err(bounded::failed(&error)),
    };
    let (mut entries, mut looked_at) = (Vec::new(), 0);
    for child in children.take(MAX_ENTRIES + 1) {
        let child = child.map_err(|error| bounded::failed(&error))?;
        looked_at += 1;
        if begins_with_dot(&child.path()) {
            continue;
        }
        if child.file_name().to_str().is_none() {
            let name = child.file_name().to_string_lossy().into_owned();
            return Err(ReadError::Failed(format!(
                "it contains a name that is not valid UTF-8: `{name}`"
            )));
        }
        let kind = child_kind(&child);
        if kind == EntryKind::Folder || !is_hidden_name(&child.path()) {
            entries.push(Entry {
                path: relative(&disk.root, &child.path()),
                kind,
            });
        }
    }
    if looked_at > MAX_ENTRIES {
        return Err(ReadError::Failed(format!(
            "there are more than {MAX_ENTRIES} files and folders in it"
        )));
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries.dedup();
    Ok((entries, looked_at))
}

/// Returns the kind of an entry. Only links need another system call.
fn child_kind(child: &fs::DirEntry) -> EntryKind {
    let is_folder = match child.file_type() {
        Ok(kind) if kind.is_dir() => true,
        Ok(kind) if kind.is_file() => false,
        _ => child.path().is_dir(),
    };
    if is_folder {
        EntryKind::Folder
    } else {
        EntryKind::File
    }
}

fn begins_with_dot(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn is_hidden_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_hidden(&name.to_string_lossy()))
}

/// Returns `true` if the name of a folder looks like the name of a source file.
fn looks_like_file(path: &str) -> bool {
    [".toml", ".jinja", ".json"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

fn sorted(mut found: Walk) -> Walk {
    found.entries.sort_by(|a, b| a.path.cmp(&b.path));
    found.entries.dedup();
    found.unread.sort_by(|a, b| a.path.cmp(&b.path));
    found.unread.dedup();
    found.hidden.sort();
    found.hidden.dedup();
    found
}
