//! Sorts a layer's files into kinds, by their folders and names.

use super::folders;
use crate::world::{Entry, EntryKind, ReadError, Unread, World};

/// The kind of source file that a file was probably meant to be, judged by its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Like {
    Profile,
    Partial,
    Context,
    Schema,
    Provider,
    /// A file at the root: probably a profile in a flat repository, or a settings file.
    AtRoot,
}

/// The paths of a layer's files by kind.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) profiles: Vec<String>,
    /// The partials, each with its name (`partials/…`) and its path.
    pub(super) partials: Vec<(String, String)>,
    pub(super) contexts: Vec<String>,
    pub(super) schemas: Vec<String>,
    pub(super) providers: Vec<String>,
    /// Other files, which are not read, each with the kind that it was probably meant to be.
    pub(super) others: Vec<(String, Like)>,
    /// Hidden files that have the name of a source file.
    pub(super) hidden: Vec<String>,
    /// The folders that could not be listed.
    pub(super) unread: Vec<Unread>,
}

/// The folders that contain source files.
const FOLDERS: [(&str, Like); 5] = [
    (folders::AGENTS, Like::Profile),
    (folders::PARTIALS, Like::Partial),
    (folders::CONTEXTS, Like::Context),
    ("schemas/wire", Like::Schema),
    (folders::PROVIDERS, Like::Provider),
];

/// The files at the root that are read, but not as profiles.
pub(super) const SETTINGS: [&str; 5] = [
    folders::CONFIG,
    "models.toml",
    folders::MODEL_FAMILIES,
    "rosters.toml",
    "tools.toml",
];

/// Files at the root that belong to other programs.
pub(super) const FOREIGN: [&str; 4] = [
    "Cargo.toml",
    "pyproject.toml",
    "rustfmt.toml",
    "clippy.toml",
];

impl Listing {
    pub(super) fn of(world: &dyn World) -> Listing {
        let mut listing = Listing::default();
        let is_flat = matches!(
            world.kind(folders::AGENTS),
            Err(ReadError::Missing) | Ok(EntryKind::File)
        );
        for (folder, like) in FOLDERS {
            for path in listing.below(world, folder) {
                listing.file(path, like);
            }
        }
        listing.files_in_place_of_folders(world);
        listing.root(world, is_flat);
        listing
    }

    fn file(&mut self, path: String, like: Like) {
        match (like, partial_name(&path)) {
            (Like::Profile | Like::Partial, Some(name)) => {
                self.partials.push((name.to_owned(), path));
            }
            (Like::Profile | Like::Partial, None) if path.ends_with(".toml") => {
                self.profiles.push(path);
            }
            (Like::Context, _) if path.ends_with(".json") => self.contexts.push(path),
            (Like::Schema, _) if path.ends_with(".json") => self.schemas.push(path),
            (Like::Provider, _) if path.ends_with(".toml") => self.providers.push(path),
            (like, _) => self.others.push((path, like)),
        }
    }

    fn below(&mut self, world: &dyn World, folder: &str) -> Vec<String> {
        let found = world.walk(folder);
        self.unread.extend(found.unread);
        self.hidden.extend(found.hidden);
        found.entries.into_iter().map(|entry| entry.path).collect()
    }

    /// Reports files that have the names of folders, because they hide everything that belongs in
    /// those folders.
    fn files_in_place_of_folders(&mut self, world: &dyn World) {
        let folders = FOLDERS.map(|(folder, _)| folder).into_iter().chain([
            folders::SCHEMAS,
            folders::ROLES,
            "golden",
        ]);
        for folder in folders.filter(|folder| world.kind(folder) == Ok(EntryKind::File)) {
            let why = ReadError::Failed("it is a file, not a folder".to_owned());
            self.unread.push(Unread {
                path: folder.to_owned(),
                why,
            });
        }
    }

    /// Lists the files at the root. In a flat repository, these are the profiles.
    fn root(&mut self, world: &dyn World, is_flat: bool) {
        let entries = match world.list("") {
            Ok(entries) => entries,
            Err(why) if is_flat => {
                return self.unread.push(Unread {
                    path: ".".to_owned(),
                    why,
                });
            }
            // The root need not be listable, as long as the source folders can be listed.
            Err(_) => return,
        };
        for Entry { path, kind } in entries {
            match kind {
                EntryKind::Folder if !path.ends_with(".toml") => self.folder_at_root(world, &path),
                _ if SETTINGS.contains(&path.as_str()) => {}
                _ if is_flat && path.ends_with(".toml") && !FOREIGN.contains(&path.as_str()) => {
                    self.profiles.push(path);
                }
                EntryKind::File => self.others.push((path, Like::AtRoot)),
                EntryKind::Folder => {}
            }
        }
    }

    /// Lists a folder whose name differs from that of a source folder only in case, or in spaces or
    /// dots at its ends.
    fn folder_at_root(&mut self, world: &dyn World, path: &str) {
        let plain = plain_name(path);
        let like = FOLDERS
            .into_iter()
            .find(|(folder, _)| *folder == plain && *folder != path);
        // On a case-insensitive file system, this is the same folder, which was already read.
        let Some((_, like)) =
            like.filter(|(folder, _)| world.kind(folder) == Err(ReadError::Missing))
        else {
            return;
        };
        let files = self.below(world, path);
        self.others
            .extend(files.into_iter().map(|path| (path, like)));
    }
}

/// Returns a name in lower case, without spaces and dots at its ends.
pub(super) fn plain_name(name: &str) -> String {
    name.trim_matches(|c: char| c.is_whitespace() || c == '.')
        .to_lowercase()
}

/// Returns the name by which templates include a file in a `partials/` folder: the part of the path
/// that starts at the first such folder; `None` for other files.
fn partial_name(path: &str) -> Option<&str> {
    if !path.ends_with(".jinja") {
        return None;
    }
    if path.starts_with("partials/") {
        return Some(path);
    }
    path.find("/partials/").map(|at| &path[at + 1..])
}
