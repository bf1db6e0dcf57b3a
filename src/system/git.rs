//! A repository as it was at a git revision, read from git's objects; the work tree is not touched.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use super::words;
use crate::world::MemoryWorld;

/// Reads the trees of git revisions.
#[derive(Debug)]
pub struct GitRevision;

impl GitRevision {
    /// What `root`, a git work tree or a folder in one, held at revision `rev`: the folders and root files that an
    /// agent repository has. Links that stay inside `root` are followed, others are left out.
    ///
    /// # Errors
    /// One phrase, with git's own words: git cannot be run, `root` is in no repository, `rev` names no commit.
    pub fn load(root: &Path, rev: &str) -> Result<MemoryWorld, String> {
        let commit = commit(root, rev)?;
        let listing = run(git(root).args(["ls-tree", "-r", "-z", &commit]))
            .and_then(|output| stdout(output).map_err(|why| format!("`{rev}` cannot be read: {why}")))?;
        let mut objects = Objects::open(root)?;
        let tree = Tree::read(&listing, &mut objects)?;
        let mut world = MemoryWorld::default();
        for (path, object) in tree.needed() {
            world.insert(path, objects.read(object)?);
        }
        Ok(world)
    }
}

/// The folders that are loaded, besides TOML files at the root.
const FOLDERS: [&str; 6] = ["agents", "contexts", "partials", "providers", "roles", "schemas"];

/// How many links one path may go through.
const MAX_LINKS: usize = 40;

/// Variables that a git hook sets; they would point git to another repository than `root`'s.
const HOOK_VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    for name in HOOK_VARIABLES {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("git cannot be run: {}", words(&error)))
}

/// What a command wrote, or git's first line about why it failed.
fn stdout(output: Output) -> Result<Vec<u8>, String> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or_default();
    Err(format!("git says: {}", line.strip_prefix("fatal: ").unwrap_or(line)))
}

/// The object name of the commit that `rev` stands for.
fn commit(root: &Path, rev: &str) -> Result<String, String> {
    if rev.is_empty() || rev.starts_with('-') || rev.contains(['\0', '\n']) {
        return Err(format!("`{}` is no git revision", rev.escape_debug()));
    }
    stdout(run(git(root).args(["rev-parse", "--git-dir"]))?)
        .map_err(|why| format!("`{}` is in no git repository that can be read: {why}", root.display()))?;
    let name = stdout(run(git(root).args(["rev-parse", "--verify", &format!("{rev}^{{commit}}")]))?)
        .map_err(|why| format!("`{rev}` names no commit: {why}"))?;
    Ok(String::from_utf8_lossy(&name).trim().to_owned())
}

/// A `git cat-file --batch` process. It is asked for one object at a time, so that no pipe fills up.
struct Objects {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Objects {
    fn open(root: &Path) -> Result<Objects, String> {
        let mut command = git(root);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("git cannot be run: {}", words(&error)))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Objects { child, input, output: BufReader::new(output) }),
            _ => Err("git cannot be run: it has no pipes".to_owned()),
        }
    }

    fn read(&mut self, object: &str) -> Result<Vec<u8>, String> {
        self.ask(object).map_err(|error| format!("git object {object} cannot be read: {}", words(&error)))
    }

    fn ask(&mut self, object: &str) -> std::io::Result<Vec<u8>> {
        writeln!(self.input, "{object}")?;
        self.input.flush()?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        // `<object> <type> <size>`, or `<object> missing`.
        let size = header.trim_end().rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
        let size = size.ok_or_else(|| std::io::Error::other(format!("git says: {}", header.trim_end())))?;
        let mut bytes = Vec::new();
        self.output.by_ref().take(size).read_to_end(&mut bytes)?;
        let mut newline = [0];
        self.output.read_exact(&mut newline)?;
        Ok(bytes)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // It only reads, so it can be ended at any time; waiting keeps it from staying as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The files below the root at one revision: path → object name.
#[derive(Default)]
struct Tree {
    files: BTreeMap<String, String>,
    /// Path → what the link says.
    links: BTreeMap<String, String>,
}

impl Tree {
    /// Reads `ls-tree -r -z`: `<mode> <type> <object>\t<path>\0` for each file.
    fn read(listing: &[u8], objects: &mut Objects) -> Result<Tree, String> {
        let mut tree = Tree::default();
        for line in listing.split(|&byte| byte == 0) {
            let line = String::from_utf8_lossy(line);
            let Some((about, path)) = line.split_once('\t') else { continue };
            let mut about = about.split(' ');
            match (about.next(), about.next(), about.next()) {
                (Some("120000"), _, Some(object)) => {
                    let target = String::from_utf8_lossy(&objects.read(object)?).into_owned();
                    tree.links.insert(path.to_owned(), target);
                }
                (_, Some("blob"), Some(object)) => drop(tree.files.insert(path.to_owned(), object.to_owned())),
                _ => {}
            }
        }
        Ok(tree)
    }

    /// The files to load, as paths that may lead through links, and their objects.
    fn needed(&self) -> BTreeMap<String, &str> {
        let mut found = BTreeMap::new();
        self.expand("", "", &mut Vec::new(), &mut found);
        found
    }

    /// Adds what lies in the folder `real`, shown under the path `shown`. `trail` are the links that led here.
    fn expand<'a>(&'a self, shown: &str, real: &str, trail: &mut Vec<&'a str>, found: &mut BTreeMap<String, &'a str>) {
        for (path, object) in below(&self.files, real) {
            let path = format!("{shown}{}", &path[real.len()..]);
            if is_needed(&path) {
                found.insert(path, object);
            }
        }
        for (link, _) in below(&self.links, real) {
            let shown = format!("{shown}{}", &link[real.len()..]);
            let Some(target) = self.resolve(link) else { continue };
            if let Some(object) = self.files.get(&target) {
                if is_needed(&shown) {
                    found.insert(shown, object);
                }
                continue;
            }
            let folder = if target.is_empty() { String::new() } else { format!("{target}/") };
            trail.push(link);
            let loops = trail.len() > MAX_LINKS || trail.iter().any(|link| link.starts_with(&folder));
            if !loops && is_in_needed_folder(&shown) {
                self.expand(&format!("{shown}/"), &folder, trail, found);
            }
            trail.pop();
        }
    }

    /// The path with all its links followed; `None` if that leaves the root or never ends.
    fn resolve(&self, path: &str) -> Option<String> {
        let mut ahead: Vec<&str> = path.split('/').rev().collect();
        let (mut done, mut links): (Vec<&str>, usize) = (Vec::new(), 0);
        while let Some(part) = ahead.pop() {
            match part {
                "" | "." => continue,
                ".." => drop(done.pop()?),
                part => done.push(part),
            }
            if let Some(target) = self.links.get(&done.join("/")) {
                links += 1;
                if target.starts_with('/') || links > MAX_LINKS {
                    return None;
                }
                done.pop();
                ahead.extend(target.split('/').rev());
            }
        }
        Some(done.join("/"))
    }
}

/// The entries whose path starts with `folder`, which is empty or ends with `/`.
fn below<'a>(map: &'a BTreeMap<String, String>, folder: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = map.range(folder.to_owned()..).take_while(move |(path, _)| path.starts_with(folder));
    entries.map(|(path, value)| (path.as_str(), value.as_str()))
}

fn is_needed(path: &str) -> bool {
    match path.split_once('/') {
        Some(_) => is_in_needed_folder(path),
        None => path.ends_with(".toml"),
    }
}

fn is_in_needed_folder(path: &str) -> bool {
    path.split('/').next().is_some_and(|folder| FOLDERS.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Disk;
    use crate::world::{Output as _, World};

    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, Disk) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk::open(dir.path()).expect("it exists");
        must(&disk, &["init", "-q"]);
        files.iter().for_each(|(path, text)| disk.replace(path, text.as_bytes()).expect("writable"));
        (dir, disk)
    }

    fn must(disk: &Disk, args: &[&str]) {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        stdout(run(git(disk.root()).args(identity).args(args)).expect("git runs")).expect("git succeeds");
    }

    fn commit_all(disk: &Disk) {
        must(disk, &["add", "-A"]);
        must(disk, &["commit", "-q", "-m", "one"]);
    }

    fn paths(world: &MemoryWorld) -> Vec<&str> {
        world.iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn a_revision_is_read_beside_the_work_tree() {
        let files = [
            ("agents/a.toml", "old"),
            ("agents/é x.toml", ""),
            ("reqc.toml", ""),
            ("src/x.toml", ""),
            ("golden/g", ""),
        ];
        let (_dir, disk) = repository(&files);
        commit_all(&disk);
        disk.replace("agents/a.toml", b"new").expect("writable");
        disk.remove("reqc.toml").expect("removable");
        let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
        assert_eq!(paths(&world), ["agents/a.toml", "agents/é x.toml", "reqc.toml"]);
        assert_eq!(world.read("agents/a.toml").as_deref(), Ok(b"old".as_slice()));
        assert_eq!(disk.read("agents/a.toml").as_deref(), Ok(b"new".as_slice()));
    }

    #[test]
    fn a_folder_of_the_work_tree_can_be_the_root() {
        let (_dir, disk) = repository(&[("sub/agents/a.toml", "x"), ("agents/b.toml", "y")]);
        commit_all(&disk);
        let world = GitRevision::load(&disk.root().join("sub"), "HEAD").expect("a commit");
        assert_eq!(paths(&world), ["agents/a.toml"]);
    }

    #[test]
    fn many_and_large_files_do_not_block() {
        let large = "x".repeat(300_000);
        let names: Vec<String> = (0..300).map(|index| format!("agents/{index:03}.toml")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), large.as_str())).collect();
        let (_dir, disk) = repository(&files);
        disk.replace("agents/empty.toml", b"").expect("writable");
        commit_all(&disk);
        let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
        assert_eq!(world.iter().filter(|(_, bytes)| bytes.len() == large.len()).count(), 300);
        assert_eq!(world.read("agents/empty.toml").as_deref(), Ok(b"".as_slice()));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_on_disk() {
        use std::os::unix::fs::symlink;
        let (_dir, disk) = repository(&[("agents/a.toml", "a"), ("common/b.toml", "b"), ("common/deep/c.toml", "c")]);
        let links = [
            ("../common/b.toml", "agents/file.toml"),
            ("../common", "agents/folder"),
            ("file.toml", "agents/again.toml"),
            ("../agents", "agents/loop"),
            ("../../agents", "common/deep/back"),
            ("common", "partials"),
        ];
        let lost = [("/etc/hostname", "agents/absolute"), ("../../x", "agents/out"), ("none", "agents/broken")];
        for (target, at) in links.into_iter().chain(lost) {
            symlink(target, disk.root().join(at)).expect("a link");
        }
        commit_all(&disk);
        let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
        for folder in ["agents", "partials"] {
            let mut on_disk = disk.walk(folder);
            on_disk.retain(|entry| !lost.iter().any(|(_, at)| entry.path.ends_with(&at["agents".len()..])));
            assert_eq!(world.walk(folder), on_disk);
            for entry in on_disk {
                assert_eq!(world.read(&entry.path), disk.read(&entry.path));
            }
        }
    }

    #[test]
    fn failures_are_told_in_one_phrase() {
        let (_dir, disk) = repository(&[("agents/a.toml", "")]);
        commit_all(&disk);
        let failure = |root: &Path, rev: &str| GitRevision::load(root, rev).expect_err("it fails");
        assert_eq!(failure(disk.root(), "--help"), "`--help` is no git revision");
        assert_eq!(failure(disk.root(), ""), "`` is no git revision");
        assert!(failure(disk.root(), "none").starts_with("`none` names no commit: git says: "));
        assert!(failure(disk.root(), "HEAD:agents").starts_with("`HEAD:agents` names no commit: git says: "));
        let plain = tempfile::tempdir().expect("a temporary folder");
        assert!(failure(plain.path(), "HEAD").contains("is in no git repository that can be read: git says: "));
    }
}
