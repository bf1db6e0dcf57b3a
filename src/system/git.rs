//! Reads a repository at a git revision from git's objects, without touching the work tree.
//!
//! Apart from objects, git would read files that may be untrusted: a configuration that specifies
//! programs, hooks, and other repositories. Therefore, git never sees the repository itself. It
//! gets a folder of our own, which contains our configuration and a copy of the refs, and the
//! object folder, which has been checked for links and pipes.

mod file;
mod running;
mod program;
mod repository;
mod stand_in;
mod objects;
mod tree;

use std::path::Path;

use objects::Objects;
use repository::Repository;
use stand_in::StandIn;
use tree::Trees;

use crate::world::{AccessError, MemoryWorld};

/// Reads git revisions.
#[derive(Debug)]
pub struct GitRevision;

impl GitRevision {
    /// Returns the content of `root` at revision `rev`: the folders and root files of an agent
    /// repository. `root` is a git work tree or a folder in one. Links that do not point outside
    /// `root` are followed; others are omitted.
    ///
    /// # Errors
    /// Returns a phrase that includes git's own message, if git cannot be run, `root` is not in a
    /// readable repository, `rev` is not a commit, or objects are missing or too large.
    pub fn load(root: &Path, rev: &str) -> Result<MemoryWorld, AccessError> {
        let (repository, stand_in) = stand_in(root, &[rev])?;
        let commit = stand_in.commit(rev).map_err(|why| no_commit(rev, &why))?;
        let world = Objects::open(stand_in.git(), stand_in.object_format())
            .and_then(|objects| Trees::of_commit(objects, &commit, repository.prefix()))
            .and_then(|mut trees| trees.world());
        world.map_err(|why| {
            let advice = stand_in.advice(rev);
            format!("`{rev}` cannot be read: {why}{advice}").into()
        })
    }

    /// Returns the staged content of the work tree, limited to the same folders and files as
    /// [`GitRevision::load`].
    ///
    /// # Errors
    /// Returns the errors of [`GitRevision::load`], and fails if there is no readable index.
    pub fn staged(root: &Path) -> Result<MemoryWorld, AccessError> {
        let (repository, mut stand_in) = stand_in(root, &[])?;
        let entries = stand_in.staged(&repository).map_err(no_index)?;
        let objects = Objects::open(stand_in.git(), stand_in.object_format()).map_err(no_index)?;
        let mut trees = Trees::of_index(objects, entries, repository.prefix()).map_err(no_index)?;
        trees
            .world()
            .map_err(|why| no_index(format!("{why}{}", stand_in.advice("HEAD"))))
    }

    /// Returns the merge base of two revisions; `None` if it is the first of the two.
    ///
    /// # Errors
    /// Returns the errors of [`GitRevision::load`], and fails if the available histories have no
    /// common commit.
    pub fn merge_base(root: &Path, one: &str, other: &str) -> Result<Option<String>, AccessError> {
        let (_, stand_in) = stand_in(root, &[one, other])?;
        let (first, second) = (commit(one, &stand_in)?, commit(other, &stand_in)?);
        let base = stand_in.merge_base(&first, &second);
        let base =
            base.map_err(|why| format!("`{one}` and `{other}` have no common ancestor: {why}"))?;
        Ok((base != first).then_some(base))
    }
}

fn commit(rev: &str, stand_in: &StandIn) -> Result<String, AccessError> {
    stand_in.commit(rev).map_err(|why| no_commit(rev, &why))
}

fn no_commit(rev: &str, why: &AccessError) -> AccessError {
    // This is git's message for an unknown name.
    let why = match why.to_string() {
        said if said.ends_with("Needed a single revision") => {
            "git knows no branch, tag or commit with this name".to_owned()
        }
        said => said,
    };
    format!("`{rev}` is not a commit: {why}").into()
}

/// Returns the repository that contains a folder, and a stand-in for it that contains some
/// revisions.
fn stand_in(root: &Path, revisions: &[&str]) -> Result<(Repository, StandIn), AccessError> {
    if let Some(rev) = revisions
        .iter()
        .find(|rev| rev.is_empty() || rev.starts_with('-') || rev.contains(['\0', '\n']))
    {
        return Err(format!("`{}` is not a git revision", rev.escape_debug()).into());
    }
    let root = std::fs::canonicalize(root).map_err(|error| super::words(&error))?;
    let repository = Repository::around(&root).map_err(|why| no_repository(&root, &why))?;
    let needs_reflogs = revisions.iter().any(|rev| rev.contains("@{"));
    let stand_in =
        StandIn::of(&repository, needs_reflogs).map_err(|why| no_repository(&root, &why))?;
    Ok((repository, stand_in))
}

fn no_repository(root: &Path, why: &AccessError) -> AccessError {
    format!(
        "`{}` is not in a readable git repository: {why}",
        root.display()
    )
    .into()
}

fn no_index(why: impl std::fmt::Display) -> AccessError {
    format!("the staged files cannot be read: {why}").into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::system::Disk;
    use crate::world::{Output as _, World};

    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, Disk) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk::open(dir.path()).expect("it exists");
        must(&disk, &["init", "-q", "-b", "main"]);
        files
            .iter()
            .for_each(|(path, text)| disk.replace(path, text.as_bytes()).expect("writable"));
        (dir, disk)
    }

    fn must(disk: &Disk, args: &[&str]) -> String {
        let identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
        ];
        let output = Command::new("git")
            .current_dir(disk.root())
            .args(identity)
            .args(args)
            .output()
            .expect("git runs");
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
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
        assert_eq!(
            paths(&world),
            ["agents/a.toml", "agents/é x.toml", "reqc.toml"]
        );
        assert_eq!(
            world.read("agents/a.toml").as_deref(),
            Ok(b"old".as_slice())
        );
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
        let names: Vec<String> = (0..300)
            .map(|index| format!("agents/{index:03}.toml"))
            .collect();
        let files: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), large.as_str()))
            .collect();
        let (_dir, disk) = repository(&files);
        disk.replace("agents/empty.toml", b"").expect("writable");
        commit_all(&disk);
        let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
        assert_eq!(
            world
                .iter()
                .filter(|(_, bytes)| bytes.len() == large.len())
                .count(),
            300
        );
        assert_eq!(
            world.read("agents/empty.toml").as_deref(),
            Ok(b"".as_slice())
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_on_disk() {
        use std::os::unix::fs::symlink;
        let (_dir, disk) = repository(&[
            ("agents/a.toml", "a"),
            ("common/b.toml", "b"),
            ("common/deep/c.toml", "c"),
        ]);
        let links = [
            ("../common/b.toml", "agents/file.toml"),
            ("../common", "agents/folder"),
            ("file.toml", "agents/again.toml"),
            ("../agents", "agents/loop"),
            ("../../agents", "common/deep/back"),
            ("common", "partials"),
        ];
        let lost = [
            ("/etc/hostname", "agents/absolute"),
            ("../../x", "agents/out"),
            ("none", "agents/broken"),
        ];
        for (target, at) in links.into_iter().chain(lost) {
            symlink(target, disk.root().join(at)).expect("a link");
        }
        commit_all(&disk);
        let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
        for folder in ["agents", "partials"] {
            let mut on_disk = disk.walk(folder).entries;
            on_disk.retain(|entry| {
                !lost
                    .iter()
                    .any(|(_, at)| entry.path.ends_with(&at["agents".len()..]))
            });
            assert_eq!(world.walk(folder).entries, on_disk);
            for entry in on_disk {
                assert_eq!(world.read(&entry.path), disk.read(&entry.path));
            }
        }
    }

    #[test]
    fn failures_are_told_in_one_phrase() {
        let (_dir, disk) = repository(&[("agents/a.toml", "")]);
        commit_all(&disk);
        let failure = |root: &Path, rev: &str| {
            GitRevision::load(root, rev)
                .expect_err("it fails")
                .to_string()
        };
        assert_eq!(
            failure(disk.root(), "--help"),
            "`--help` is not a git revision"
        );
        assert_eq!(failure(disk.root(), ""), "`` is not a git revision");
        assert_eq!(
            failure(disk.root(), "none"),
            "`none` is not a commit: git knows no branch, tag or commit with this name"
        );
        assert!(
            failure(disk.root(), "HEAD:agents")
                .starts_with("`HEAD:agents` is not a commit: git says: ")
        );
        let plain = tempfile::tempdir().expect("a temporary folder");
        assert!(failure(plain.path(), "HEAD").ends_with(
            "is not in a readable git repository: neither it nor a folder above has a `.git`"
        ));
    }

    #[test]
    fn revisions_are_named_in_every_way() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        two_commits(&disk);
        let short = must(&disk, &["rev-parse", "--short", "HEAD~1"]);
        let described = format!("v1-0-g{short}");
        for name in FIRST_COMMIT
            .iter()
            .copied()
            .chain([described.as_str(), &short])
        {
            let world =
                GitRevision::load(disk.root(), name).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(
                world.read("agents/a.toml").as_deref(),
                Ok(b"1".as_slice()),
                "{name}"
            );
        }
        let second = GitRevision::load(disk.root(), "main").expect("it is there");
        assert_eq!(second.read("agents/a.toml").as_deref(), Ok(b"2".as_slice()));
    }

    /// Revision names that refer to the first of two commits.
    const FIRST_COMMIT: &[&str] = &[
        "HEAD~1",
        "HEAD^",
        "origin/main",
        "origin",
        "v1",
        "v1^{commit}",
        "refs/tags/v1",
        "FETCH_HEAD",
        "@{upstream}",
        "main@{1}",
        "HEAD@{1}",
        "HEAD^{/two}~1",
        "HEAD^{/one}",
        ":/^one",
        ":/!-two",
        "v1^{/one}",
        "v1^0",
        "v1~0",
        "@~",
        "@^{}^1",
        "@{u}",
        "@{push}",
        "main@{push}",
        "@{-1}",
        "main@{now}~1",
    ];

    /// Creates two commits on `main`. The first is tagged, has been fetched, and is the tip of a
    /// remote branch and of another branch.
    fn two_commits(disk: &Disk) {
        commit_all(disk);
        must(disk, &["tag", "-a", "-m", "tagged", "v1"]);
        must(disk, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
        must(
            disk,
            &[
                "symbolic-ref",
                "refs/remotes/origin/HEAD",
                "refs/remotes/origin/main",
            ],
        );
        must(disk, &["pack-refs", "--all"]);
        let fetched = format!(
            "{}\t\tbranch 'main' of x\n",
            must(disk, &["rev-parse", "HEAD"])
        );
        fs::write(disk.root().join(".git/FETCH_HEAD"), fetched).expect("writable");
        must(disk, &["config", "remote.origin.url", "x"]);
        must(
            disk,
            &[
                "config",
                "remote.origin.fetch",
                "+refs/heads/*:refs/remotes/origin/*",
            ],
        );
        must(disk, &["config", "branch.main.remote", "origin"]);
        must(disk, &["config", "branch.main.merge", "refs/heads/main"]);
        must(disk, &["checkout", "-q", "-b", "side"]);
        must(disk, &["checkout", "-q", "main"]);
        disk.replace("agents/a.toml", b"2").expect("writable");
        must(disk, &["commit", "-q", "-a", "-m", "two"]);
    }

    #[test]
    fn further_work_trees_submodules_and_shallow_clones_are_read() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let [tree, shallow, above] =
            ["tree", "shallow", "above"].map(|name| scratch.path().join(name));
        let [tree_text, shallow_text, disk_text] =
            [&tree, &shallow, disk.root()].map(|path| path.display().to_string());
        must(&disk, &["worktree", "add", "-q", "--detach", &tree_text]);
        must(
            &disk,
            &[
                "clone",
                "-q",
                "--depth",
                "1",
                &format!("file://{disk_text}"),
                &shallow_text,
            ],
        );
        fs::create_dir(&above).expect("writable");
        let above = Disk::open(&above).expect("it is there");
        must(&above, &["init", "-q"]);
        must(
            &above,
            &[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "--quiet",
                "add",
                &disk_text,
                "sub",
            ],
        );
        for root in [tree, shallow, above.root().join("sub")] {
            let world = GitRevision::load(&root, "HEAD").expect("a commit");
            assert_eq!(paths(&world), ["agents/a.toml"], "{}", root.display());
        }
    }

    #[test]
    fn a_git_folder_elsewhere_must_say_whose_it_is() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let base = fs::canonicalize(scratch.path()).expect("it is there");
        let (own, tree) = (base.join("data"), base.join("tree"));
        let [own_text, tree_text] = [&own, &tree].map(|path| path.display().to_string());
        must(
            &disk,
            &[
                "clone",
                "-q",
                "--separate-git-dir",
                &own_text,
                &disk.root().display().to_string(),
                &tree_text,
            ],
        );
        let why = GitRevision::load(&tree, "HEAD")
            .expect_err("anybody can write such a file")
            .to_string();
        let command = format!("`git --git-dir={own_text} config core.worktree {tree_text}`");
        assert!(
            why.contains("does not refer back to this work tree") && why.contains(&command),
            "{why}"
        );
        must(
            &disk,
            &[
                "--git-dir",
                &own_text,
                "config",
                "core.worktree",
                &tree_text,
            ],
        );
        assert_eq!(
            paths(&GitRevision::load(&tree, "HEAD").expect("a commit")),
            ["agents/a.toml"]
        );
    }

    #[test]
    fn borrowed_objects_are_copied_by_what_the_message_says() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let clone = scratch.path().join("clone");
        must(
            &disk,
            &[
                "clone",
                "-q",
                "--shared",
                &disk.root().display().to_string(),
                &clone.display().to_string(),
            ],
        );
        let why = GitRevision::load(&clone, "HEAD")
            .expect_err("anybody can write such a file")
            .to_string();
        assert!(
            why.contains("`git repack -a -d`, and then delete `"),
            "{why}"
        );
        must(
            &Disk::open(&clone).expect("it is there"),
            &["repack", "-a", "-d", "-q"],
        );
        fs::remove_file(why.rsplit('`').nth(1).expect("a path")).expect("it is there");
        assert_eq!(
            paths(&GitRevision::load(&clone, "HEAD").expect("a commit")),
            ["agents/a.toml"]
        );
    }

    #[test]
    fn a_further_work_tree_has_a_head_of_its_own() {
        for format in ["files", "reftable"] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let disk = Disk::open(dir.path()).expect("it exists");
            let scratch = tempfile::tempdir().expect("a temporary folder");
            let tree = scratch.path().join("tree");
            must(
                &disk,
                &[
                    "init",
                    "-q",
                    "-b",
                    "main",
                    &format!("--ref-format={format}"),
                ],
            );
            disk.replace("agents/a.toml", b"1").expect("writable");
            commit_all(&disk);
            must(
                &disk,
                &[
                    "worktree",
                    "add",
                    "-q",
                    "-b",
                    "side",
                    &tree.display().to_string(),
                ],
            );
            disk.replace("agents/a.toml", b"2").expect("writable");
            commit_all(&disk);
            let further = Disk::open(&tree).expect("it is there");
            must(&further, &["update-ref", "refs/bisect/bad", "HEAD"]);
            for (rev, text) in [
                ("HEAD", "1"),
                ("HEAD@{0}", "1"),
                ("side", "1"),
                ("refs/bisect/bad", "1"),
                ("main-worktree/HEAD", "2"),
            ] {
                let world = GitRevision::load(&tree, rev)
                    .unwrap_or_else(|why| panic!("{format} {rev}: {why}"));
                assert_eq!(
                    world.read("agents/a.toml").as_deref(),
                    Ok(text.as_bytes()),
                    "{format} {rev}"
                );
            }
            let world = GitRevision::load(disk.root(), "HEAD").expect("a commit");
            assert_eq!(
                world.read("agents/a.toml").as_deref(),
                Ok(b"2".as_slice()),
                "{format}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_git_that_is_a_link_is_not_followed() {
        use std::os::unix::fs::symlink;
        let (_other, other) = repository(&[("agents/secret.toml", "1")]);
        commit_all(&other);
        let theirs = must(&other, &["rev-parse", "HEAD"]);
        for folder in ["objects", "refs", "logs"] {
            let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
            commit_all(&disk);
            let ours = disk.root().join(".git").join(folder);
            fs::remove_dir_all(&ours).expect("it is there");
            symlink(other.root().join(".git").join(folder), &ours).expect("a link");
            for rev in [theirs.as_str(), "HEAD", "main@{0}"] {
                let found = GitRevision::load(disk.root(), rev);
                assert!(
                    found
                        .as_ref()
                        .map_or(true, |world| paths(world) == ["agents/a.toml"]),
                    "{folder} {rev}"
                );
            }
        }
    }

    #[test]
    fn what_is_copied_is_bounded_altogether() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        for name in ["A_HEAD", "B_HEAD", "C_HEAD"] {
            let holes = fs::File::create(disk.root().join(".git").join(name)).expect("writable");
            holes.set_len(30 << 20).expect("a file of holes");
        }
        assert!(
            GitRevision::load(disk.root(), "HEAD")
                .expect_err("too much")
                .to_string()
                .contains("the limit is")
        );
    }

    #[test]
    fn nothing_is_fetched_for_a_partial_clone() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let blob = must(&disk, &["rev-parse", "HEAD:agents/a.toml"]);
        fs::remove_file(
            disk.root()
                .join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..])),
        )
        .expect("it is loose");
        let ran = disk.root().join("ran");
        must(&disk, &["config", "extensions.partialClone", "origin"]);
        must(&disk, &["config", "core.repositoryFormatVersion", "1"]);
        must(&disk, &["config", "remote.origin.url", "."]);
        must(&disk, &["config", "remote.origin.promisor", "true"]);
        for key in [
            "remote.origin.uploadpack",
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "alias.cat-file",
            "diff.external",
        ] {
            must(
                &disk,
                &[
                    "config",
                    key,
                    &format!("touch '{}'; git-upload-pack", ran.display()),
                ],
            );
        }
        let why = GitRevision::load(disk.root(), "HEAD")
            .expect_err("an object is missing")
            .to_string();
        assert!(
            why.contains("is missing; the clone is partial, and reqc fetches nothing"),
            "{why}"
        );
        assert!(!ran.exists());
    }

    #[test]
    fn a_repository_as_plain_files_is_none() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let scratch = tempfile::tempdir().expect("a temporary folder");
        for name in ["HEAD", "config", "objects", "refs"] {
            fs::rename(
                disk.root().join(".git").join(name),
                scratch.path().join(name),
            )
            .expect("it moves");
        }
        let why = GitRevision::load(scratch.path(), "HEAD")
            .expect_err("a bare repository")
            .to_string();
        assert!(why.contains("has a `.git`"), "{why}");
        fs::write(scratch.path().join(".git"), "gitdir: .\n").expect("writable");
        assert!(
            GitRevision::load(scratch.path(), "HEAD").is_ok(),
            "a folder of the work tree itself may hold it"
        );
        let inner = scratch.path().join("inner");
        fs::create_dir(&inner).expect("writable");
        fs::write(inner.join(".git"), "gitdir: ..\n").expect("writable");
        assert!(
            GitRevision::load(&inner, "HEAD")
                .expect_err("outside")
                .to_string()
                .contains("does not refer back")
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_leads_git_away_or_keeps_it_is_found_before() {
        use std::os::unix::fs::symlink;
        let (_other, other) = repository(&[("agents/a.toml", "1")]);
        commit_all(&other);
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        commit_all(&disk);
        let git = disk.root().join(".git");
        let failure = || {
            GitRevision::load(disk.root(), "HEAD")
                .expect_err("it is refused")
                .to_string()
        };
        let objects = other.root().join(".git/objects").display().to_string();
        fs::create_dir_all(git.join("objects/info")).expect("writable");
        fs::write(git.join("objects/info/alternates"), format!("{objects}\n")).expect("writable");
        assert!(failure().contains("it borrows objects from"));
        fs::remove_file(git.join("objects/info/alternates")).expect("it is there");
        symlink(&objects, git.join("objects/zz")).expect("a link");
        assert!(failure().contains("neither a file nor a folder"));
        fs::remove_file(git.join("objects/zz")).expect("it is there");
        fs::write(
            git.join("commondir"),
            other.root().join(".git").display().to_string(),
        )
        .expect("writable");
        assert!(failure().contains("is not part of"));
        fs::remove_file(git.join("commondir")).expect("it is there");
        let made = Command::new("mkfifo")
            .arg(git.join("refs/heads/pipe"))
            .status();
        assert!(made.is_ok_and(|status| status.success()));
        fs::create_dir_all(git.join("refs/replace")).expect("writable");
        assert!(GitRevision::load(disk.root(), "HEAD").is_ok());
        fs::write(git.join("refs/heads/holes"), "")
            .and_then(|()| {
                fs::File::options()
                    .write(true)
                    .open(git.join("refs/heads/holes"))
            })
            .and_then(|file| file.set_len(1 << 40))
            .expect("a file of holes");
        assert!(failure().contains("the limit is"));
    }

    #[cfg(unix)]
    #[test]
    fn links_of_a_revision_are_bounded() {
        use std::os::unix::fs::symlink;
        let (_dir, disk) = repository(&[("agents/a.toml", "1"), ("agents/d30/x.toml", "")]);
        for level in 0..30 {
            fs::create_dir_all(disk.root().join(format!("agents/d{level}"))).expect("writable");
            for name in ["a", "b"] {
                symlink(
                    format!("../d{}", level + 1),
                    disk.root().join(format!("agents/d{level}/{name}")),
                )
                .expect("a link");
            }
        }
        commit_all(&disk);
        assert!(
            GitRevision::load(disk.root(), "HEAD")
                .expect_err("too many")
                .to_string()
                .contains("links to folders")
        );
    }

    #[cfg(unix)]
    #[test]
    fn nothing_hidden_is_in_a_revision() {
        use std::os::unix::fs::symlink;
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        fs::create_dir_all(disk.root().join("roles/.x")).expect("writable");
        fs::write(disk.root().join(".env"), "KEY=1").expect("writable");
        fs::write(disk.root().join("roles/.x/y.md"), "KEY=1").expect("writable");
        symlink("../.env", disk.root().join("roles/env.md")).expect("a link");
        symlink(".x", disk.root().join("roles/x")).expect("a link");
        commit_all(&disk);
        assert_eq!(
            paths(&GitRevision::load(disk.root(), "HEAD").expect("a commit")),
            ["agents/a.toml"]
        );
    }

    #[test]
    fn a_file_of_a_revision_is_measured_before_it_is_read() {
        let (_dir, disk) = repository(&[("agents/a.toml", "1")]);
        fs::File::create(disk.root().join("agents/b.toml"))
            .and_then(|file| file.set_len(crate::world::MAX_FILE_BYTES + 1))
            .expect("a file of holes");
        commit_all(&disk);
        assert!(
            GitRevision::load(disk.root(), "HEAD")
                .expect_err("too large")
                .to_string()
                .contains("the limit is")
        );
    }
}
