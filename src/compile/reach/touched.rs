//! Some files of a repository, of which somebody asks what they reach.

use std::sync::Arc;

use crate::world::{EntryKind, ReadError, World};

/// Some files of a repository.
pub trait Touched: Sync {
    /// Returns `true` if a file is among them.
    fn file(&self, path: &str) -> bool;

    /// Returns `true` if what is directly in a folder is.
    fn listing(&self, folder: &str) -> bool;
}

/// The paths that somebody named: files, and folders with all that is in them.
#[derive(Debug, Clone, Default)]
pub struct Named(pub Vec<String>);

/// The differences between two sides.
#[derive(Clone)]
pub struct Differing {
    /// The one side.
    pub old: Arc<dyn World>,
    /// The other.
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

/// Returns `true` if a path is another one, or below it.
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

/// Returns what is directly in a folder.
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
