//! The folder that git treats as the repository. It contains our configuration, and copies of the
//! files that map names to commits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use walkdir::WalkDir;

use super::file::read;
use super::program::Git;
use super::repository::Repository;
use crate::system::{relative, words};
use crate::world::AccessError;

/// The maximum total size of copied files, in bytes.
const MAX_REFS_BYTES: u64 = 64 << 20;

/// The maximum size of a single ref file, in bytes.
const MAX_REF_BYTES: u64 = 4 << 10;

/// The maximum number of ref files, and of their log files.
const MAX_REFS: usize = 200_000;

/// Git's configuration, used instead of the user's and the repository's. Windows and caches are
/// small because memory is limited.
const CONFIGURATION: &str = "\
[core]
\tbare = true
\trepositoryformatversion = 1
\tfsmonitor = false
\thooksPath = none
\tcommitGraph = false
\tmultiPackIndex = false
\tbigFileThreshold = 1m
\tpackedGitWindowSize = 16m
\tpackedGitLimit = 256m
\tdeltaBaseCacheLimit = 64m
[protocol]
\tallow = never
[gc]
\tauto = 0
";

/// A folder that stands in for a repository. Dropping this removes the folder.
#[derive(Debug)]
pub(super) struct StandIn {
    folder: TempDir,
    /// The folder for the files of a linked work tree itself, with its trailing `/`; empty for the
    /// main work tree.
    own: &'static str,
    git: Git,
    format: ObjectFormat,
    is_partial: bool,
    is_shallow: bool,
    /// The number of bytes that may still be copied.
    left: u64,
}

/// The folder in the stand-in for the files of a linked work tree itself, with its trailing `/`.
const FURTHER: &str = "worktrees/own/";

/// The hash function used for object names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Returns the length of an object name in bytes.
    pub(super) fn bytes(self) -> usize {
        match self {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }

    /// Returns `true` if a string is an object name in hexadecimal.
    pub(super) fn names(self, text: &str) -> bool {
        text.len() == 2 * self.bytes() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

impl StandIn {
    /// Creates a stand-in for a repository, with the logs of its refs if `with_history` is `true`.
    pub(super) fn of(repository: &Repository, with_history: bool) -> Result<StandIn, AccessError> {
        let folder = tempfile::tempdir().map_err(|error| words(&error))?;
        let own = if repository.own() == repository.common() {
            ""
        } else {
            FURTHER
        };
        let git =
            Git::new(folder.path(), repository.strangers())?.with_objects(repository.objects());
        let mut git = git.with_own_folder(folder.path().join(own));
        let configuration =
            Git::read_configuration(&repository.common().join("config"), repository.strangers())?;
        let (format, extension) = match value_of(&configuration, "extensions.objectformat") {
            None | Some("sha1") => (ObjectFormat::Sha1, ""),
            Some("sha256") => (
                ObjectFormat::Sha256,
                "[extensions]\n\tobjectFormat = sha256\n",
            ),
            Some(other) => {
                return Err(format!("its object format is `{}`", other.escape_debug()).into());
            }
        };
        if with_history {
            upstreams(&configuration).for_each(|(key, value)| git.configure(key, value));
        }
        let is_partial = configuration.iter().any(|(key, value)| {
            key == "extensions.partialclone" || key.ends_with(".promisor") && value != "false"
        });
        let is_reftable = value_of(&configuration, "extensions.refstorage") == Some("reftable");
        let left = MAX_REFS_BYTES;
        let mut stand_in = StandIn {
            folder,
            own,
            git,
            format,
            is_partial,
            is_shallow: false,
            left,
        };
        let storage = if is_reftable {
            "[extensions]\n\trefStorage = reftable\n"
        } else {
            ""
        };
        stand_in.write(
            "config",
            format!("{CONFIGURATION}{extension}{storage}").as_bytes(),
        )?;
        stand_in.copy_work_tree(repository.common(), "", is_reftable, with_history)?;
        if own == FURTHER {
            stand_in.write(&format!("{FURTHER}commondir"), b"../..\n")?;
            stand_in.copy_work_tree(repository.own(), FURTHER, is_reftable, with_history)?;
        }
        stand_in.check_head()?;
        stand_in.is_shallow = stand_in.copy_file(repository.common(), "shallow", "")?;
        Ok(stand_in)
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    pub(super) fn object_format(&self) -> ObjectFormat {
        self.format
    }

    /// Returns the object name of a revision's commit.
    pub(super) fn commit(&self, rev: &str) -> Result<String, AccessError> {
        // Two steps are needed, because everything after `:/` would be part of the text to search
        // for.
        let object = self.object(rev)?;
        self.object(&format!("{object}^{{commit}}"))
    }

    /// Returns the merge base of two commits.
    pub(super) fn merge_base(&self, one: &str, other: &str) -> Result<String, AccessError> {
        let base = self.git.run(&["merge-base", one, other]);
        let base = base.map_err(|why| format!("{why}{}", self.advice(one)))?;
        Ok(String::from_utf8_lossy(&base).trim().to_owned())
    }

    /// Returns the mode, object name, and path of each staged file. For a file with a merge
    /// conflict, returns only the first version.
    pub(super) fn staged(
        &mut self,
        repository: &Repository,
    ) -> Result<Vec<(String, String, String)>, AccessError> {
        if !self.copy_file(repository.own(), "index", self.own)? {
            return Err("nothing was ever staged".into());
        }
        let shared: Vec<String> = fs::read_dir(repository.own())
            .map_err(|error| words(&error))?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| name.starts_with("sharedindex."))
            .collect();
        for name in shared {
            self.copy_file(repository.own(), &name, self.own)?;
        }
        let listed = self.git.run(&["ls-files", "--stage", "-z"])?;
        Ok(String::from_utf8_lossy(&listed)
            .split('\0')
            .filter_map(|line| {
                let (about, path) = line.split_once('\t')?;
                let mut about = about.split(' ');
                Some((
                    about.next()?.to_owned(),
                    about.next()?.to_owned(),
                    path.to_owned(),
                ))
            })
            .collect())
    }

    /// Returns the name of the only object that a revision refers to.
    fn object(&self, rev: &str) -> Result<String, AccessError> {
        let name = self
            .git
            .run(&["rev-parse", "--verify", "--end-of-options", rev]);
        let name = name.map_err(|why| format!("{why}{}", self.advice(rev)))?;
        let name = String::from_utf8_lossy(&name).trim().to_owned();
        match self.format.names(&name) {
            true => Ok(name),
            false => Err("it does not name exactly one object".into()),
        }
    }

    /// Returns advice on what to do about missing objects.
    pub(super) fn advice(&self, rev: &str) -> String {
        match (self.is_partial, self.is_shallow) {
            (true, _) => {
                format!("; the clone is partial, and reqc fetches nothing: run `git archive {rev} >/dev/null` to fetch the rest")
            }
            (_, true) => {
                "; the clone is shallow: run `git fetch --unshallow` to fetch the rest (for actions/checkout: `fetch-depth: 0`)"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), AccessError> {
        let path = self.folder.path().join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(path, bytes))
            .map_err(|error| words(&error).into())
    }

    /// Copies a regular file of a repository to the same path below `to`; `false` if there is no
    /// such file.
    fn copy_file(&mut self, from: &Path, name: &str, to: &str) -> Result<bool, AccessError> {
        let Some(bytes) = read(&from.join(name), self.left)? else {
            return Ok(false);
        };
        self.left -= bytes.len() as u64;
        self.write(&format!("{to}{name}"), &bytes).map(|()| true)
    }

    /// Copies the files of one work tree, or those that all work trees share: `HEAD` and similar
    /// files, refs, and their logs if needed.
    fn copy_work_tree(
        &mut self,
        from: &Path,
        to: &str,
        is_reftable: bool,
        with_history: bool,
    ) -> Result<(), AccessError> {
        self.copy_heads(from, to)?;
        self.copy_refs(from, to, is_reftable)?;
        match with_history {
            true => self.copy_folder(from, "logs", to),
            false => Ok(()),
        }
    }

    /// Copies `HEAD` and similar files, such as `FETCH_HEAD` and `ORIG_HEAD`.
    fn copy_heads(&mut self, from: &Path, to: &str) -> Result<(), AccessError> {
        for (count, found) in fs::read_dir(from)
            .map_err(|error| words(&error))?
            .enumerate()
        {
            if count > MAX_REFS {
                return Err(format!("its `.git` has more than {MAX_REFS} files").into());
            }
            let name = found
                .map_err(|error| words(&error))?
                .file_name()
                .to_string_lossy()
                .into_owned();
            if name.ends_with("HEAD")
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            {
                self.copy_file(from, &name, to)?;
            }
        }
        Ok(())
    }

    /// Checks that `HEAD` names a branch or a commit; otherwise, git does not accept a repository.
    fn check_head(&self) -> Result<(), AccessError> {
        let bytes = read(
            &self.folder.path().join(self.own).join("HEAD"),
            MAX_REFS_BYTES,
        )?
        .unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        let is_named = match text.strip_prefix("ref:") {
            Some(target) => is_ref(target.trim()),
            None => self.format.names(text),
        };
        // With reftable, git writes a name to `HEAD` that no branch can have.
        match is_named || text == "ref: refs/heads/.invalid" {
            true => Ok(()),
            false => Err("its `HEAD` is neither a branch nor a commit".into()),
        }
    }

    fn copy_refs(&mut self, from: &Path, to: &str, is_reftable: bool) -> Result<(), AccessError> {
        let refs = self.folder.path().join(to).join("refs");
        fs::create_dir_all(refs).map_err(|error| words(&error))?;
        if is_reftable {
            self.copy_file(from, "refs/heads", to)?;
            self.copy_folder(from, "reftable", to)?;
            return self.check_tables(to);
        }
        let packed = read(&from.join("packed-refs"), self.left)?.unwrap_or_default();
        self.left -= packed.len() as u64;
        let packed = String::from_utf8_lossy(&packed).into_owned();
        let named = packed.lines().filter_map(|line| line.split_once(' '));
        let named = named.filter(|(name, path)| self.format.names(name) && is_ref(path));
        let mut refs: BTreeMap<String, String> = named
            .map(|(name, path)| (path.to_owned(), name.to_owned()))
            .collect();
        for path in files(from, "refs")?.into_iter().filter(|path| is_ref(path)) {
            let bytes = read(&from.join(&path), MAX_REF_BYTES)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            match text.strip_prefix("ref:") {
                Some(target) if is_ref(target.trim()) => {
                    self.write(
                        &format!("{to}{path}"),
                        format!("ref: {}\n", target.trim()).as_bytes(),
                    )?;
                }
                // For a linked work tree, git reads refs only from files.
                _ if self.format.names(&text) && !to.is_empty() => {
                    self.write(&format!("{to}{path}"), text.as_bytes())?;
                }
                _ if self.format.names(&text) => drop(refs.insert(path, text)),
                _ => {}
            }
        }
        let lines: Vec<String> = refs
            .iter()
            .map(|(path, name)| format!("{name} {path}\n"))
            .collect();
        self.write(&format!("{to}packed-refs"), lines.concat().as_bytes())
    }

    /// Checks that the list contains only tables that were copied, because git opens the listed
    /// files at any path.
    fn check_tables(&self, to: &str) -> Result<(), AccessError> {
        let list = self.folder.path().join(to).join("reftable/tables.list");
        let list = read(&list, MAX_REFS_BYTES)?.unwrap_or_default();
        match list
            .split(|byte| *byte == b'\n')
            .filter(|name| !name.is_empty())
            .all(is_name_of_table)
        {
            true => Ok(()),
            false => Err("its `reftable/tables.list` names files in other folders".into()),
        }
    }

    /// Copies the regular files of a folder.
    fn copy_folder(&mut self, from: &Path, name: &str, to: &str) -> Result<(), AccessError> {
        for path in files(from, name)? {
            self.copy_file(from, &path, to)?;
        }
        Ok(())
    }
}

/// Returns the paths of the regular files below a folder, with `/` between their parts. Links are
/// skipped, even if the folder itself is one.
fn files(from: &Path, folder: &str) -> Result<Vec<String>, AccessError> {
    let mut paths = Vec::new();
    for (count, found) in WalkDir::new(from.join(folder))
        .follow_root_links(false)
        .into_iter()
        .enumerate()
    {
        let found = match found {
            Ok(found) => found,
            Err(_) if count == 0 => return Ok(paths),
            Err(error) => return Err(format!("its {folder} cannot be listed: {error}").into()),
        };
        if count > MAX_REFS {
            return Err(format!("it has more than {MAX_REFS} {folder}").into());
        }
        // Git cannot be given a name that is not valid Unicode.
        if found.file_type().is_file() && found.path().to_str().is_some() {
            paths.push(relative(from, found.path()));
        }
    }
    Ok(paths)
}

/// Returns the last value of a key.
fn value_of<'c>(configuration: &'c [(String, String)], key: &str) -> Option<&'c str> {
    let mut entries = configuration.iter().rev();
    let (_, value) = entries.find(|(name, _)| name == key)?;
    Some(value)
}

/// Returns the settings that `@{upstream}` and `@{push}` need. For a remote, these include the refs
/// to fetch and push, but nothing that git could contact or run.
fn upstreams(configuration: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    configuration
        .iter()
        .filter(move |(key, _)| is_asked(key))
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn is_asked(key: &str) -> bool {
    ends_with_one_of(key, "branch.", ["remote", "merge", "pushremote"])
        || ends_with_one_of(key, "remote.", ["fetch", "push", "pushdefault"])
        || matches!(key, "remote.pushdefault" | "push.default")
}

/// Returns `true` for a key of the form `SECTION.….NAME` with one of these names.
fn ends_with_one_of(key: &str, section: &str, names: [&str; 3]) -> bool {
    let name = key
        .strip_prefix(section)
        .and_then(|rest| rest.rsplit_once('.'));
    name.is_some_and(|(_, name)| names.contains(&name))
}

/// Returns `true` if this is a possible name of a reftable file in the same folder.
fn is_name_of_table(name: &[u8]) -> bool {
    name.ends_with(b".ref")
        && name[0] != b'.'
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// Returns `true` if a path is a valid ref name and the ref does not replace objects
/// (`git help check-ref-format`).
fn is_ref(path: &str) -> bool {
    path.starts_with("refs/")
        && !path.starts_with("refs/replace/")
        && !path.contains("..")
        && path
            .chars()
            .all(|c| !c.is_control() && !" ~^:?*[\\".contains(c))
        && path.split('/').all(is_part_of_ref)
}

fn is_part_of_ref(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && !part.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_refs_stay_in_their_folder() {
        assert!(
            ["refs/heads/main", "refs/tags/v1.0", "refs/heads/é"]
                .iter()
                .all(|path| is_ref(path))
        );
        for path in [
            "HEAD",
            "refs/../x",
            "refs//x",
            "refs/heads/.x",
            "refs/replace/x",
            "refs/heads/a b",
            "refs/a.lock",
        ] {
            assert!(!is_ref(path), "{path}");
        }
    }
}
