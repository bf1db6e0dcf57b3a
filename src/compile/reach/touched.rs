//! Sets of files in a repository whose reach is requested.

use std::sync::Arc;

use crate::world::{EntryKind, ReadError, World};

/// A set of files in a repository.
pub trait Touched: Sync {
    /// Returns `true` if the set contains this file.
    fn file(&self, path: &str) -> bool;

    /// Returns `true` if files in the set affect the listing of this folder.
    fn listing(&self, folder: &str) -> bool;
}

/// A set of paths: files, and folders with everything in them.
#[derive(Debug, Clone, Default)]
pub struct Named(pub Vec<String>);

/// The files that differ between two sides.
#[derive(Clone)]
pub struct Differing {
    /// The older side.
    pub old: Arc<dyn World>,
    /// The newer side.
    pub new: Arc<dyn World>,
}

impl Touched for Named {
    fn file(&self, path: &str) -> bool {
        self.0.iter().any(|named| is_in(path, named))
    }

    fn listing(&self, folder: &str) -> bool {
        self.0
            .iter()
            .any(|named| is_in(folder, named) || is_in(named, folder))
    }
}

/// Returns `true` if a path is the folder itself or is below it.
pub(super) fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Touched for Differing {
    fn file(&self, path: &str) -> bool {
        self.old.read(path) != self.new.read(path)
    }

    fn listing(&self, folder: &str) -> bool {
        names(&self.old, folder) != names(&self.new, folder)
    }
}

/// Returns the entries directly in a folder.
fn names(world: &Arc<dyn World>, folder: &str) -> Result<Vec<(String, EntryKind)>, ReadError> {
    let entries = world.list(folder)?;
    Ok(entries
        .into_iter()
        .map(|entry| (entry.path, entry.kind))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_for_what_is_in_them() {
        let named = Named(vec!["agents/x".to_owned(), "roles/a.md".to_owned()]);
        assert!(named.file("agents/x/a.toml") && named.file("roles/a.md"));
        assert!(!named.file("agents/xy.toml") && !named.file("roles/b.md"));
        assert!(
            named.listing("roles") && named.listing("agents/x/y") && !named.listing("partials")
        );
    }
}
