//! The part of a repository to which a run is limited: paths, the reach of changed files, or a
//! shard.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Failure;
use super::args::Part;
use super::options::{Opened, Options};
use crate::compile::Compiler;
use crate::compile::reach::{Differing, FileReach, Named, Touched, differently_usable};
use crate::compile::selection::Reach;
use crate::golden;
use crate::repo::folders;
use crate::system::{self, GitRevision};
use crate::text::cut;
use crate::world::World;

impl Part {
    fn is_whole(&self) -> bool {
        self.paths.is_empty() && self.affected.is_none() && self.shard.is_none()
    }
}

/// Opens the repository for a command, limited to a part of it. If `golden` is set, a changed
/// golden file affects the agent that owns it.
pub(super) fn open(options: &Options, part: &Part, golden: bool) -> Result<Opened, Failure> {
    let given: Vec<PathBuf> = part.paths.iter().map(|path| options.path(path)).collect();
    let options = in_repository_of(options, &given)?;
    let named = named(options.directory(), &given)?;
    if part.is_whole()
        || named
            .as_ref()
            .is_some_and(|named| named.0.iter().any(String::is_empty))
    {
        return options.open_selected();
    }
    let mut opened = options.open()?;
    opened.limit_to_shard(part.shard);
    if let Some(named) = named {
        let reach = FileReach::new(&opened.compiler).of(&named, golden);
        check_named(&named, &reach)?;
        opened.limit_to(reach);
    }
    if let Some(revision) = &part.affected {
        let reach = affected(
            &options,
            &opened,
            revision.as_deref().unwrap_or("HEAD"),
            golden,
        )?;
        opened.limit_to(reach);
    }
    Ok(opened)
}

/// Returns options for the repository around the first path, or for the folder if one was named.
fn in_repository_of(options: &Options, paths: &[PathBuf]) -> Result<Options, Failure> {
    match paths.first().filter(|_| !options.is_named()) {
        None => Ok(options.clone()),
        Some(first) => Ok(options.in_folder(system::root_around(first)?)),
    }
}

/// Returns the paths relative to the root; `None` if no path was named.
fn named(root: &Path, paths: &[PathBuf]) -> Result<Option<Named>, Failure> {
    let named = paths
        .iter()
        .map(|path| system::below(root, path).map_err(Failure::from))
        .collect::<Result<Vec<String>, Failure>>()?;
    Ok((!named.is_empty()).then_some(Named(named)))
}

/// Reports a path that is not part of the repository, which is usually a mistake.
fn check_named(named: &Named, reach: &Reach) -> Result<(), Failure> {
    let is_known = |path: &String| {
        let alone = Named(vec![path.clone()]);
        let mut conventional = folders::ALL.iter().chain([&golden::FOLDER]);
        let is_conventional =
            conventional.any(|folder| Named(vec![(*folder).to_owned()]).file(path));
        is_conventional || reach.files.iter().flatten().any(|file| alone.file(file))
    };
    match named.0.iter().find(|path| !is_known(path)) {
        None => Ok(()),
        Some(path) => Err(Failure::new(format!("`{}` is not part of the agent repository", cut(path, 200))).help(
            "name profiles, partials, roles, contexts, provider instances, schemas, settings, or folders that contain them",
        )),
    }
}

/// Returns everything that is affected, on either side, by the changes made since the branch forked
/// from `revision`.
fn affected(
    options: &Options,
    opened: &Opened,
    revision: &str,
    golden: bool,
) -> Result<Reach, Failure> {
    // Commits that others added to `revision` later are not part of the branch. If the merge base
    // is not available, `revision` itself is used, so that too much is compiled rather than too
    // little.
    let base = GitRevision::merge_base(&opened.root, revision, "HEAD")
        .ok()
        .flatten();
    let older: Arc<dyn World> = Arc::new(GitRevision::load(
        &opened.root,
        base.as_deref().unwrap_or(revision),
    )?);
    let differing = Differing {
        old: Arc::clone(&older),
        new: Arc::clone(&opened.disk) as Arc<dyn World>,
    };
    let before: Compiler = options.load_all(older);
    let [now, then] =
        [&*opened.compiler, &before].map(|side| FileReach::new(side).of(&differing, golden));
    let usable = Reach {
        agents: differently_usable(&opened.compiler, &before),
        ..Reach::default()
    };
    // Findings about the repository as a whole are reported, since any change may have caused them.
    Ok(Reach {
        files: None,
        ..now.or(then).or(usable)
    })
}
