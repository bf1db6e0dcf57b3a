//! The bundled files, which are embedded in the binary at build time.

use std::path::Path;

use include_dir::{Dir, include_dir};

use super::relative;
use crate::repo::folders;
use crate::world::{self, Entry, EntryKind, MemoryWorld, ReadError, Walk, World};

/// The embedded folders, the same as [`folders::ALL`](crate::repo::folders::ALL), repeated
/// here because a macro must read them as literals.
static FOLDERS: [(&str, Dir<'_>); 6] = [
    ("agents", include_dir!("$CARGO_MANIFEST_DIR/agents")),
    ("contexts", include_dir!("$CARGO_MANIFEST_DIR/contexts")),
    ("partials", include_dir!("$CARGO_MANIFEST_DIR/partials")),
    ("providers", include_dir!("$CARGO_MANIFEST_DIR/providers")),
    ("roles", include_dir!("$CARGO_MANIFEST_DIR/roles")),
    ("schemas", include_dir!("$CARGO_MANIFEST_DIR/schemas")),
];

/// The content of `model-families.toml`, which contains facts about models.
static MODEL_FAMILIES: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/model-families.toml"));

/// The files that are embedded in the program.
#[derive(Debug, Clone)]
pub struct Embedded {
    files: MemoryWorld,
}

impl Embedded {
    /// Returns the files of the bundled layer.
    pub fn bundled() -> Embedded {
        let mut files = MemoryWorld::default();
        files.insert_static(folders::MODEL_FAMILIES.to_owned(), MODEL_FAMILIES);
        FOLDERS
            .iter()
            .for_each(|(name, folder)| add(&mut files, name, folder));
        Embedded { files }
    }
}

fn add(files: &mut MemoryWorld, name: &str, folder: &'static Dir<'static>) {
    for file in folder.files() {
        files.insert_static(
            world::join(name, &relative(Path::new(""), file.path())),
            file.contents(),
        );
    }
    folder.dirs().for_each(|inner| add(files, name, inner));
}

impl World for Embedded {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        self.files.read_within(path, limit)
    }

    fn walk(&self, folder: &str) -> Walk {
        self.files.walk(folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.files.list(folder)
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        self.files.list_counted(folder)
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        self.files.kind(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Disk;

    #[test]
    fn the_binary_holds_what_the_folders_hold() {
        let disk = Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
        let bundled = Embedded::bundled();
        assert_eq!(FOLDERS.each_ref().map(|(name, _)| *name), folders::ALL);
        assert_eq!(
            bundled.read(folders::MODEL_FAMILIES),
            disk.read(folders::MODEL_FAMILIES)
        );
        for (folder, _) in &FOLDERS {
            let found = bundled.walk(folder);
            assert!(!found.entries.is_empty());
            assert_eq!(found, disk.walk(folder));
            assert_eq!(bundled.list(folder), World::list(&disk, folder));
            for entry in found.entries {
                assert_eq!(bundled.read(&entry.path), disk.read(&entry.path));
            }
        }
    }
}
