//! A repository on disk and the project that its agents work in: what a program starts from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, Embedded, find_root};
use crate::compile::{Compiler, Folders, LoadOptions, Setting};
use crate::world::World;

/// A repository of agents, loaded from disk.
#[non_exhaustive]
pub struct OpenedRepository {
    /// Its root.
    pub root: PathBuf,
    /// Its agents and the bundled ones.
    pub compiler: Arc<Compiler>,
    /// What prompts see: the real folder as the project, the real paths.
    pub setting: Setting,
}

/// Loads the repository around a folder. The folder is the project that its agents work in. Mistakes of the repository are in
/// [`Compiler::findings`].
///
/// # Errors
///
/// A phrase, if the folder does not exist or cannot be read.
pub fn open_repository(folder: &Path) -> Result<OpenedRepository, String> {
    let root = find_root(folder, false)?;
    let options = LoadOptions { with_bundled: true, ..LoadOptions::default() };
    let compiler = Compiler::load(Arc::new(Disk::open(&root)?), Arc::new(Embedded::bundled()), options);
    let setting = project_setting(folder, &root)?;
    Ok(OpenedRepository { root, compiler: Arc::new(compiler), setting })
}

/// What prompts see of a project on disk, with the paths as they are; `config` is the folder of the repository.
///
/// # Errors
///
/// A phrase, if the project's folder does not exist or cannot be read.
pub fn project_setting(project: &Path, config: &Path) -> Result<Setting, String> {
    let disk = Disk::open(project)?;
    let name = disk.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = |path: &Path| Arc::from(path.to_string_lossy().as_ref());
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    let folders = Folders { project: text(disk.root()), config: text(config), home: text(&home) };
    let project: Arc<dyn World> = Arc::new(disk);
    Ok(Setting { project, project_name: name.into(), language: Arc::from(""), folders })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_folder_and_the_agents_are_those_around_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = folder.path().join("project");
        std::fs::create_dir_all(folder.path().join("agents")).expect("writable");
        std::fs::create_dir_all(&project).expect("writable");
        std::fs::write(folder.path().join("reqc.toml"), "").expect("writable");
        let opened = open_repository(&project).expect("it is there");
        assert!(opened.compiler.findings().is_empty() && !opened.compiler.agents().is_empty());
        let place = project.canonicalize().expect("it is there");
        assert_eq!((&*opened.setting.project_name, Path::new(&*opened.setting.folders.project)), ("project", &*place));
        assert_eq!(opened.root, folder.path().canonicalize().expect("it is there"));
        assert!(open_repository(&folder.path().join("none")).is_err());
    }
}
