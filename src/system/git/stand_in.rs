//! The folder that git takes for the repository: our configuration, and copies of what tells which commit a name means.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use walkdir::WalkDir;

use super::program::Git;
use super::repository::{Repository, read};
use crate::system::words;

/// The largest file of refs that is copied, in bytes.
const MAX_REFS_BYTES: u64 = 64 << 20;

/// The largest file of one ref.
const MAX_REF_BYTES: u64 = 4 << 10;

/// The most files of refs, and of their logs.
const MAX_REFS: usize = 200_000;

/// Nothing of the person's and nothing of the repository's. Windows and caches are small, since memory is bounded.
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

/// A folder that stands in for a repository. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct StandIn {
    folder: TempDir,
    git: Git,
    format: ObjectFormat,
    is_partial: bool,
    is_shallow: bool,
}

/// How objects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Bytes of a name.
    pub(super) fn bytes(self) -> usize {
        match self {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }

    /// Whether a text is a name, in hexadecimal digits.
    pub(super) fn names(self, text: &str) -> bool {
        text.len() == 2 * self.bytes() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

impl StandIn {
    /// Stands in for a repository, with the history of its refs if that is needed.
    pub(super) fn of(repository: &Repository, with_history: bool) -> Result<StandIn, String> {
        let folder = tempfile::tempdir().map_err(|error| words(&error))?;
        let mut git = Git::new(folder.path(), repository.work_tree())?.with_objects(repository.objects());
        let configuration = Git::read_configuration(&repository.common().join("config"), repository.work_tree())?;
        let value =
            |key: &str| configuration.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        let (format, extension) = match value("extensions.objectformat") {
            None | Some("sha1") => (ObjectFormat::Sha1, ""),
            Some("sha256") => (ObjectFormat::Sha256, "[extensions]\n\tobjectFormat = sha256\n"),
            Some(other) => return Err(format!("its objects are named by `{}`", other.escape_debug())),
        };
        if with_history {
            upstreams(&configuration).for_each(|(key, value)| git.configure(key, value));
        }
        let is_partial = configuration
            .iter()
            .any(|(key, value)| key == "extensions.partialclone" || key.ends_with(".promisor") && value != "false");
        let is_reftable = value("extensions.refstorage").is_some_and(|storage| storage == "reftable");
        let mut stand_in = StandIn { folder, git, format, is_partial, is_shallow: false };
        let storage = if is_reftable { "[extensions]\n\trefStorage = reftable\n" } else { "" };
        stand_in.write("config", format!("{CONFIGURATION}{extension}{storage}").as_bytes())?;
        stand_in.copy_heads(repository.own())?;
        stand_in.check_head(is_reftable)?;
        stand_in.copy_refs(repository.common(), is_reftable)?;
        if with_history {
            stand_in.copy_folder(repository.common(), "logs")?;
            stand_in.copy_file(repository.own(), "logs/HEAD")?;
        }
        stand_in.is_shallow = stand_in.copy_file(repository.common(), "shallow")?;
        Ok(stand_in)
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    pub(super) fn object_format(&self) -> ObjectFormat {
        self.format
    }

    /// The name of the commit that a revision stands for.
    pub(super) fn commit(&self, rev: &str) -> Result<String, String> {
        let name = self.git.run(&["rev-parse", "--verify", &format!("{rev}^{{commit}}")]);
        let name = name.map_err(|why| format!("{why}{}", self.advice(rev)))?;
        let name = String::from_utf8_lossy(&name).trim().to_owned();
        match self.format.names(&name) {
            true => Ok(name),
            false => Err("git gives no name of an object".to_owned()),
        }
    }

    /// What to do if objects are missing.
    pub(super) fn advice(&self, rev: &str) -> String {
        match (self.is_partial, self.is_shallow) {
            (true, _) => {
                format!("; the clone is partial, and reqc fetches nothing: `git archive {rev} >/dev/null` does")
            }
            (_, true) => "; the clone is shallow: `git fetch --unshallow` gets the rest".to_owned(),
            _ => String::new(),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.path().join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(path, bytes)).map_err(|error| words(&error))
    }

    /// Copies a regular file; whether it is there.
    fn copy_file(&self, from: &Path, name: &str) -> Result<bool, String> {
        match read(&from.join(name), MAX_REFS_BYTES)? {
            Some(bytes) => self.write(name, &bytes).map(|()| true),
            None => Ok(false),
        }
    }

    /// `HEAD` and its kin: `FETCH_HEAD`, `ORIG_HEAD` and others.
    fn copy_heads(&self, own: &Path) -> Result<(), String> {
        for (count, found) in fs::read_dir(own).map_err(|error| words(&error))?.enumerate() {
            if count > MAX_REFS {
                return Err(format!("its `.git` holds more than {MAX_REFS} files"));
            }
            let name = found.map_err(|error| words(&error))?.file_name().to_string_lossy().into_owned();
            if name.ends_with("HEAD") && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
                self.copy_file(own, &name)?;
            }
        }
        Ok(())
    }

    /// git takes no folder for a repository whose `HEAD` is neither a branch nor a commit.
    fn check_head(&self, is_reftable: bool) -> Result<(), String> {
        let bytes = read(&self.folder.path().join("HEAD"), MAX_REFS_BYTES)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // What git writes where the branch is in a table.
        let in_table = is_reftable && text.trim() == "ref: refs/heads/.invalid";
        let names =
            |text: &str| text.strip_prefix("ref:").map_or(self.format.names(text), |target| is_ref(target.trim()));
        match in_table || names(text.trim()) {
            true => Ok(()),
            false => Err("its `HEAD` names no branch and no commit".to_owned()),
        }
    }

    fn copy_refs(&self, common: &Path, is_reftable: bool) -> Result<(), String> {
        fs::create_dir_all(self.folder.path().join("refs")).map_err(|error| words(&error))?;
        if is_reftable {
            self.copy_file(common, "refs/heads")?;
            self.copy_folder(common, "reftable")?;
            return self.check_tables();
        }
        let packed = read(&common.join("packed-refs"), MAX_REFS_BYTES)?.unwrap_or_default();
        let packed = String::from_utf8_lossy(&packed).into_owned();
        let named = packed.lines().filter_map(|line| line.split_once(' '));
        let named = named.filter(|(name, path)| self.format.names(name) && is_ref(path));
        let mut refs: BTreeMap<String, String> = named.map(|(name, path)| (path.to_owned(), name.to_owned())).collect();
        for path in files(common, "refs")?.into_iter().filter(|path| is_ref(path)) {
            let bytes = read(&common.join(&path), MAX_REF_BYTES)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            match text.strip_prefix("ref:") {
                Some(target) if is_ref(target.trim()) => {
                    self.write(&path, format!("ref: {}\n", target.trim()).as_bytes())?;
                }
                _ if self.format.names(&text) => drop(refs.insert(path, text)),
                _ => {}
            }
        }
        let lines: Vec<String> = refs.iter().map(|(path, name)| format!("{name} {path}\n")).collect();
        self.write("packed-refs", lines.concat().as_bytes())
    }

    /// git opens the tables that the list names, wherever they are: they must be those that were copied.
    fn check_tables(&self) -> Result<(), String> {
        let list = read(&self.folder.path().join("reftable/tables.list"), MAX_REFS_BYTES)?.unwrap_or_default();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let is_table = |name: &[u8]| name.ends_with(b".ref") && name[0] != b'.' && name.iter().all(is_plain);
        match list.split(|byte| *byte == b'\n').filter(|name| !name.is_empty()).all(is_table) {
            true => Ok(()),
            false => Err("its `reftable/tables.list` names files elsewhere".to_owned()),
        }
    }

    /// Copies the regular files of a folder.
    fn copy_folder(&self, from: &Path, name: &str) -> Result<(), String> {
        let mut left = MAX_REFS_BYTES;
        for path in files(from, name)? {
            let bytes = read(&from.join(&path), left)?.unwrap_or_default();
            left -= bytes.len() as u64;
            self.write(&path, &bytes)?;
        }
        Ok(())
    }
}

/// The paths of the regular files below a folder, with `/` between their parts; links are left out.
fn files(from: &Path, folder: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for (count, found) in WalkDir::new(from.join(folder)).into_iter().enumerate() {
        let found = match found {
            Ok(found) => found,
            Err(_) if count == 0 => return Ok(paths),
            Err(error) => return Err(format!("its {folder} cannot be listed: {error}")),
        };
        if count > MAX_REFS {
            return Err(format!("it has more than {MAX_REFS} {folder}"));
        }
        if found.file_type().is_file() {
            let parts = found.path().strip_prefix(from).unwrap_or(found.path()).components();
            let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
            paths.push(parts.join("/"));
        }
    }
    Ok(paths)
}

/// What `@{upstream}` asks the configuration for.
fn upstreams(configuration: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    let is_asked = |key: &str| {
        key.starts_with("branch.") && (key.ends_with(".remote") || key.ends_with(".merge"))
            || key.starts_with("remote.") && key.ends_with(".fetch")
    };
    configuration.iter().filter(move |(key, _)| is_asked(key)).map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Whether a path is the name of a ref, and no replacement of objects (`git help check-ref-format`).
fn is_ref(path: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && !part.ends_with('.');
    let is_allowed = |c: char| !c.is_control() && !" ~^:?*[\\".contains(c);
    path.starts_with("refs/")
        && !path.starts_with("refs/replace/")
        && !path.contains("..")
        && path.chars().all(is_allowed)
        && path.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_refs_stay_in_their_folder() {
        assert!(["refs/heads/main", "refs/tags/v1.0", "refs/heads/é"].iter().all(|path| is_ref(path)));
        for path in ["HEAD", "refs/../x", "refs//x", "refs/heads/.x", "refs/replace/x", "refs/heads/a b", "refs/a.lock"]
        {
            assert!(!is_ref(path), "{path}");
        }
    }
}
