//! The bundled files, which are embedded in the binary at build time.

use std::sync::LazyLock;

use crate::world::{Entry, EntryKind, MemoryWorld, ReadError, Walk, World};

/// The path and the text of each file in the folders of [`folders::ALL`](crate::repo::folders::ALL),
/// separated by zero bytes and compressed by the build script.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bundled.deflate"));

static FILES: LazyLock<String> = LazyLock::new(|| {
    let bytes = miniz_oxide::inflate::decompress_to_vec(COMPRESSED);
    String::from_utf8(bytes.expect("the build compressed it")).expect("the build read UTF-8")
});

/// The files that are embedded in the program.
#[derive(Debug, Clone)]
pub struct Embedded {
    files: MemoryWorld,
}

impl Embedded {
    /// Returns the files of the bundled layer.
    pub fn bundled() -> Embedded {
        let mut files = MemoryWorld::default();
        let mut parts = FILES.split('\0');
        while let (Some(path), Some(text)) = (parts.next(), parts.next()) {
            files.insert_static(path.to_owned(), text.as_bytes());
        }
        Embedded { files }
    }
}

impl World for Embedded {
    fn is_built_in(&self) -> bool {
        true
    }

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
    use std::path::Path;

    use super::*;
    use crate::repo::folders;
    use crate::system::Disk;

    #[test]
    fn the_binary_holds_what_the_folders_hold() {
        let disk = Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
        let bundled = Embedded::bundled();
        for folder in folders::ALL {
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
