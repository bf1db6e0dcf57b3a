//! The files of a commit. Links are followed as on disk, with the same limits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::objects::Objects;
use crate::repo::folders;
use crate::text::hex;
use crate::world::{
    AccessError, MAX_DEPTH, MAX_ENTRIES, MAX_FILE_BYTES, MAX_LINKED_FOLDERS, MemoryWorld,
    is_hidden, join,
};

/// The maximum number of links in one path.
const MAX_LINKS: usize = 40;

/// The maximum length of a link's target, in bytes.
const MAX_LINK_BYTES: u64 = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
    /// A submodule, that is, a commit of another repository.
    Submodule,
}

/// A file, folder, or link at a path.
#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    object: String,
}

/// The content of a folder.
#[derive(Debug, Default)]
struct Nodes {
    named: BTreeMap<String, Node>,
    /// The names that are not valid Unicode, after a lossy conversion. A converted name may equal
    /// another name.
    no_text: Vec<(String, Kind)>,
}

type Folder = Arc<Nodes>;

/// The trees of one commit, read on demand.
pub(super) struct Trees {
    objects: Objects,
    /// The folder to which the world's paths are relative; `None` if the commit has no such folder.
    root: Option<Node>,
    folders: HashMap<String, Folder>,
    links: HashMap<String, String>,
    seen: usize,
    linked: usize,
}

/// Object names by the paths under which the files are visible.
type Files = BTreeMap<String, String>;

impl Trees {
    pub(super) fn of_commit(
        objects: Objects,
        commit: &str,
        prefix: &str,
    ) -> Result<Trees, AccessError> {
        Trees::of_root(objects, format!("{commit}^{{tree}}"), HashMap::new()).below(prefix)
    }

    /// Builds trees from the files of an index, each given as a mode, an object name, and a path.
    pub(super) fn of_index(
        objects: Objects,
        files: Vec<(String, String, String)>,
        prefix: &str,
    ) -> Result<Trees, AccessError> {
        let mut folders: HashMap<String, Nodes> = HashMap::from([(named(""), Nodes::default())]);
        for (mode, object, path) in files {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
            for end in folder
                .match_indices('/')
                .map(|(at, _)| at)
                .chain(Some(folder.len()).filter(|end| *end > 0))
            {
                let above = &folder[..end];
                let (parent, name) = above.rsplit_once('/').unwrap_or(("", above));
                let node = Node {
                    kind: Kind::Folder,
                    object: named(above),
                };
                folders
                    .entry(named(parent))
                    .or_default()
                    .named
                    .entry(name.to_owned())
                    .or_insert(node);
            }
            let node = Node {
                kind: Kind::of_mode(&mode),
                object,
            };
            folders
                .entry(named(folder))
                .or_default()
                .named
                .entry(name.to_owned())
                .or_insert(node);
        }
        let folders = folders
            .into_iter()
            .map(|(name, nodes)| (name, Arc::new(nodes)))
            .collect();
        Trees::of_root(objects, named(""), folders).below(prefix)
    }

    fn of_root(objects: Objects, object: String, folders: HashMap<String, Folder>) -> Trees {
        let root = Some(Node {
            kind: Kind::Folder,
            object,
        });
        Trees {
            objects,
            root,
            folders,
            links: HashMap::new(),
            seen: 0,
            linked: 0,
        }
    }

    /// Returns the trees below a folder.
    fn below(mut self, prefix: &str) -> Result<Trees, AccessError> {
        let trees = &mut self;
        for part in prefix.split('/').filter(|part| !part.is_empty()) {
            let Some(root) = trees.root.take() else { break };
            let found = trees.folder(&root)?.named.get(part).cloned();
            trees.root = found.filter(|node| node.kind == Kind::Folder);
        }
        Ok(self)
    }

    /// Reads all files of an agent repository.
    pub(super) fn world(&mut self) -> Result<MemoryWorld, AccessError> {
        let mut files = Files::new();
        if let Some(root) = self.root.clone() {
            self.expand("", &root, &mut vec![String::new()], &mut files)?;
        }
        let mut world = MemoryWorld::default();
        for (path, object) in files {
            let bytes = self.objects.read(&object, "blob", MAX_FILE_BYTES);
            world.insert(
                path.as_str(),
                bytes.map_err(|why| format!("`{path}`: {why}"))?,
            );
        }
        Ok(world)
    }

    /// Adds the content of a folder that is visible under the path `shown`. `trail` contains the
    /// resolved paths of the folders on the way here; the last one is the folder itself.
    fn expand(
        &mut self,
        shown: &str,
        folder: &Node,
        trail: &mut Vec<String>,
        files: &mut Files,
    ) -> Result<(), AccessError> {
        if trail.len() > MAX_DEPTH {
            return Err(format!("`{shown}` is more than {MAX_DEPTH} folders deep").into());
        }
        let nodes = self.folder(folder)?;
        if let Some((name, _)) = nodes
            .no_text
            .iter()
            .find(|(name, kind)| is_needed(&join(shown, name), *kind))
        {
            return Err(format!("the name of `{}` is not UTF-8", join(shown, name)).into());
        }
        for (name, node) in nodes.named.iter().filter(|(name, _)| !is_hidden(name)) {
            let path = join(shown, name);
            if !is_needed(&path, node.kind) {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(format!("there are more than {MAX_ENTRIES} files and folders").into());
            }
            let real = join(trail.last().map_or("", String::as_str), name);
            match node.kind {
                Kind::File => drop(files.insert(path, node.object.clone())),
                Kind::Folder => self.enter(&path, node, real, trail, files)?,
                Kind::Link => self.follow(&path, &real, trail, files)?,
                Kind::Submodule => {}
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        shown: &str,
        folder: &Node,
        real: String,
        trail: &mut Vec<String>,
        files: &mut Files,
    ) -> Result<(), AccessError> {
        trail.push(real);
        let expanded = self.expand(shown, folder, trail, files);
        trail.pop();
        expanded
    }

    fn follow(
        &mut self,
        shown: &str,
        link: &str,
        trail: &mut Vec<String>,
        files: &mut Files,
    ) -> Result<(), AccessError> {
        let Some((target, node)) = self.resolve(link)? else {
            return Ok(());
        };
        if node.kind == Kind::File && is_needed(shown, Kind::File) {
            files.insert(shown.to_owned(), node.object);
            return Ok(());
        }
        // Following a link to one of its parent folders would never end.
        let is_loop = trail.iter().any(|folder| {
            target.is_empty() || *folder == target || folder.starts_with(&format!("{target}/"))
        });
        if node.kind != Kind::Folder || is_loop || !is_needed(shown, Kind::Folder) {
            return Ok(());
        }
        self.linked += 1;
        if self.linked > MAX_LINKED_FOLDERS {
            return Err(
                format!("there are more than {MAX_LINKED_FOLDERS} links to folders").into(),
            );
        }
        self.enter(shown, &node, target, trail, files)
    }

    /// Follows all links in a path. Returns the resolved path and its node; `None` if it does not
    /// exist, leaves the root, contains too many links, or is hidden.
    fn resolve(&mut self, path: &str) -> Result<Option<(String, Node)>, AccessError> {
        let Some(root) = self.root.clone() else {
            return Ok(None);
        };
        let mut ahead: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let (mut done, mut links): (Vec<(String, Node)>, usize) = (Vec::new(), 0);
        while let Some(part) = ahead.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." if done.pop().is_some() => continue,
                ".." => return Ok(None),
                _ => {}
            }
            let folder = done.last().map_or(&root, |(_, node)| node);
            if folder.kind != Kind::Folder {
                return Ok(None);
            }
            let Some(node) = self.folder(&folder.clone())?.named.get(&part).cloned() else {
                return Ok(None);
            };
            if node.kind == Kind::Link {
                links += 1;
                let Some(target) = self.link(&node)?.filter(|_| links <= MAX_LINKS) else {
                    return Ok(None);
                };
                ahead.extend(target.split('/').rev().map(str::to_owned));
                continue;
            }
            done.push((part, node));
        }
        let path = done
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join("/");
        let node = done.pop().map_or(root, |(_, node)| node);
        Ok((!is_hidden(&path)).then_some((path, node)))
    }

    /// Returns the target of a link; `None` if it is absolute or not a path.
    fn link(&mut self, link: &Node) -> Result<Option<String>, AccessError> {
        if let Some(known) = self.links.get(&link.object) {
            return Ok(Some(known.clone()));
        }
        let bytes = self.objects.read(&link.object, "blob", MAX_LINK_BYTES)?;
        let Ok(target) = String::from_utf8(bytes) else {
            return Ok(None);
        };
        if target.is_empty() || target.starts_with('/') || target.contains('\0') {
            return Ok(None);
        }
        self.links.insert(link.object.clone(), target.clone());
        Ok(Some(target))
    }

    fn folder(&mut self, node: &Node) -> Result<Folder, AccessError> {
        if let Some(known) = self.folders.get(&node.object) {
            return Ok(Arc::clone(known));
        }
        let bytes = self.objects.read(&node.object, "tree", MAX_FILE_BYTES)?;
        let folder: Folder =
            Arc::new(parse(&bytes, self.objects.format().bytes()).ok_or("a tree is damaged")?);
        self.folders
            .insert(node.object.clone(), Arc::clone(&folder));
        Ok(folder)
    }
}

/// Returns a name for a folder in an index, which is not an object. The name is the path, preceded
/// by a character that no object name begins with.
fn named(folder: &str) -> String {
    format!("/{folder}")
}

/// Parses a tree object, which contains for each entry `<mode> <name>\0` and the bytes of an object
/// name.
fn parse(mut bytes: &[u8], name_bytes: usize) -> Option<Nodes> {
    let mut nodes = Nodes::default();
    while !bytes.is_empty() {
        let end = memchr::memchr(0, bytes)?;
        let about = String::from_utf8_lossy(&bytes[..end]);
        let (mode, name) = about.split_once(' ')?;
        let object = bytes.get(end + 1..end + 1 + name_bytes)?;
        // Git itself never writes trees with names that point elsewhere.
        if !matches!(name, "" | "." | "..") && !name.contains('/') {
            let kind = Kind::of_mode(mode);
            match std::str::from_utf8(&bytes[..end]) {
                Ok(_) => drop(nodes.named.insert(
                    name.to_owned(),
                    Node {
                        kind,
                        object: hex(object),
                    },
                )),
                Err(_) => nodes.no_text.push((name.to_owned(), kind)),
            }
        }
        bytes = &bytes[end + 1 + name_bytes..];
    }
    Some(nodes)
}

impl Kind {
    fn of_mode(mode: &str) -> Kind {
        match mode.trim_start_matches('0') {
            "40000" => Kind::Folder,
            "120000" => Kind::Link,
            "160000" => Kind::Submodule,
            _ => Kind::File,
        }
    }
}

/// Returns `true` if an agent repository may have files at a path: in one of its folders, or a TOML
/// file at the root. A link may point to either.
fn is_needed(path: &str, kind: Kind) -> bool {
    let (first, is_inside) = path
        .split_once('/')
        .map_or((path, false), |(first, _)| (first, true));
    let is_folder = folders::ALL.contains(&first);
    match kind {
        Kind::File => is_folder && is_inside || !is_inside && path.ends_with(".toml"),
        Kind::Folder => is_folder,
        Kind::Link => is_folder || !is_inside && path.ends_with(".toml"),
        Kind::Submodule => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_read_and_names_that_lead_elsewhere_left_out() {
        let entry = |about: &str| [about.as_bytes(), &[0, 0xab], &[0x12; 19]].concat();
        let tree = [
            entry("100644 a"),
            entry("40000 b"),
            entry("120000 c"),
            entry("100644 .."),
            entry("100644 x/y"),
        ]
        .concat();
        let nodes = parse(&tree, 20).expect("a tree").named;
        assert_eq!(nodes.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(
            (nodes["b"].kind, nodes["a"].object.as_str()),
            (Kind::Folder, format!("ab{}", "12".repeat(19)).as_str())
        );
        assert!(parse(&tree[..30], 20).is_none());
        let no_text = [b"100644 a\xff\0".as_slice(), &[0; 20]].concat();
        let nodes = parse(&no_text, 20).expect("a tree");
        assert!(nodes.named.is_empty() && nodes.no_text == [("a\u{fffd}".to_owned(), Kind::File)]);
    }
}
