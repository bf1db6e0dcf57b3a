//! Writes files below a folder, but never through a link, and never hidden files.

#[cfg(target_os = "linux")]
use super::beneath;
use super::held::Held;
use super::{Disk, folded};
use crate::golden;
use crate::world::{AccessError, Entry, MAX_ENTRIES, MAX_FILE_BYTES, Output, ReadError, is_hidden};

/// The path of a file to write, split into its folders and its name.
struct Way<'p> {
    folders: Vec<&'p str>,
    name: &'p str,
}

impl<'p> Way<'p> {
    fn to(path: &'p str) -> Result<Way<'p>, AccessError> {
        let (folders, name) = match path.rsplit_once('/') {
            Some((folders, name)) => (folders.split('/').collect(), name),
            None => (Vec::new(), path),
        };
        match path.split('/').find(|part| refused(part)) {
            _ if name.is_empty() => Err(ReadError::Outside.into()),
            Some(part) => Err(format!("reqc does not write to `{part}`").into()),
            None => Ok(Way { folders, name }),
        }
    }
}

/// Returns `true` if a part of a path is hidden. The manifest is the only hidden file that reqc may
/// write.
fn refused(part: &str) -> bool {
    is_hidden(part) && part != golden::MANIFEST
}

impl Disk {
    /// Opens one folder after another; `None` if one is missing and `make` is `false`.
    fn enter(&self, folders: &[&str], make: bool) -> Result<Option<Held>, AccessError> {
        let mut held = Held::open(self.root())?;
        for (index, name) in folders.iter().enumerate() {
            let path = &folders[..=index];
            if make {
                held.make_folder(name)
                    .map_err(|why| at(path, &format!("cannot be created: {why}")))?;
            }
            match held.enter(name).map_err(|why| at(path, &why.to_string()))? {
                Some(inner) => held = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(held))
    }

    fn current_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, AccessError> {
        let path = folded(path)?;
        let way = Way::to(&path)?;
        #[cfg(target_os = "linux")]
        if let Some(found) = self
            .folder
            .as_ref()
            .and_then(|folder| beneath::read(folder, &path, MAX_FILE_BYTES))
        {
            return Ok(Some(found?));
        }
        match self.enter(&way.folders, false)? {
            Some(folder) => folder.read(way.name, MAX_FILE_BYTES),
            None => Ok(None),
        }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), AccessError> {
        let path = folded(path)?;
        let way = Way::to(&path)?;
        match self.enter(&way.folders, true)? {
            Some(folder) => folder.write(way.name, bytes),
            None => Err("its folder was removed".into()),
        }
    }

    fn take_away(&self, path: &str) -> Result<(), AccessError> {
        let path = folded(path)?;
        let way = Way::to(&path)?;
        let Some(folder) = self.enter(&way.folders, false)? else {
            return Ok(());
        };
        folder.remove(way.name)?;
        if let Some((last, above)) = way.folders.split_last()
            && let Some(parent) = self.enter(above, false)?
        {
            parent.remove_folder(last);
        }
        Ok(())
    }

    fn entries(&self, folder: &str) -> Result<Vec<Entry>, AccessError> {
        let folder = folded(folder)?;
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        let Some(held) = self.enter(&parts, false)? else {
            return Ok(Vec::new());
        };
        let names = held.names()?;
        if names.len() > MAX_ENTRIES {
            return Err(
                format!("there are more than {MAX_ENTRIES} files and folders in it").into(),
            );
        }
        let mut entries: Vec<Entry> = names
            .into_iter()
            .map(|(name, kind)| Entry {
                path: path(name, &folder),
                kind,
            })
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }
}

fn at(path: &[&str], why: &str) -> AccessError {
    format!("`{}` {why}", path.join("/")).into()
}

fn path(name: String, folder: &String) -> String {
    if folder.is_empty() {
        name
    } else {
        format!("{folder}/{name}")
    }
}

impl Output for Disk {
    fn current(&self, path: &str) -> Result<Option<Vec<u8>>, AccessError> {
        self.current_bytes(path)
            .map_err(|why| format!("`{path}` cannot be read: {why}").into())
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), AccessError> {
        self.write(path, bytes)
            .map_err(|why| format!("`{path}` cannot be written: {why}").into())
    }

    fn remove(&self, path: &str) -> Result<(), AccessError> {
        self.take_away(path)
            .map_err(|why| format!("`{path}` cannot be removed: {why}").into())
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, AccessError> {
        self.entries(folder)
            .map_err(|why| format!("`{folder}` cannot be listed: {why}").into())
    }
}
