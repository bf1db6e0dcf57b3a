//! git as a program: which one, with which environment, and how much it may take.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::repository;
use crate::system::{is_program, words};

/// The largest configuration that is read, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 1 << 20;

/// The most that is read of what git prints.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// Memory that git may ask for, in bytes: it holds one object and what that is stored as a difference from. Linux only.
#[cfg(target_os = "linux")]
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// Processor time that one git may take, in seconds: objects can be made so that each costs seconds to unpack. Linux only.
#[cfg(target_os = "linux")]
const MAX_CPU_SECONDS: u64 = 120;

/// git, to be run in a folder of our own.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    /// What git takes for its repository.
    folder: PathBuf,
    variables: Vec<(String, String)>,
    objects: Option<PathBuf>,
}

impl Git {
    /// The git of `PATH`, run in `folder`. What lies in the work tree is not run, whatever `PATH` says.
    pub(super) fn new(folder: &Path, work_tree: &Path) -> Result<Git, String> {
        let program = program(work_tree).ok_or("git cannot be run: it is in no folder of `PATH`")?;
        Ok(Git { program, folder: folder.to_owned(), variables: Vec::new(), objects: None })
    }

    /// The same with the folder of the objects.
    pub(super) fn with_objects(self, objects: PathBuf) -> Git {
        Git { objects: Some(objects), ..self }
    }

    /// Sets a value of the configuration.
    pub(super) fn configure(&mut self, key: &str, value: &str) {
        let count = self.variables.len() / 2;
        self.variables.push((format!("GIT_CONFIG_KEY_{count}"), key.to_owned()));
        self.variables.push((format!("GIT_CONFIG_VALUE_{count}"), value.to_owned()));
    }

    /// The keys, in lower case but for the middle part, and the values of a configuration file. Nothing is included, and nothing
    /// that it names is run.
    pub(super) fn read_configuration(path: &Path, work_tree: &Path) -> Result<Vec<(String, String)>, String> {
        let Some(bytes) = repository::read(path, MAX_CONFIGURATION_BYTES)? else { return Ok(Vec::new()) };
        let folder = tempfile::tempdir().map_err(|error| words(&error))?;
        let copy = folder.path().join("copy");
        fs::write(&copy, bytes).map_err(|error| words(&error))?;
        let git = Git::new(folder.path(), work_tree)?;
        let listed = git.run(&["config", "--file", "copy", "--no-includes", "--null", "--list"])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let entries = listed.split('\0').filter(|entry| !entry.is_empty());
        Ok(entries
            .map(|entry| entry.split_once('\n').unwrap_or((entry, "true")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect())
    }

    /// A command that knows nothing of the person's and the system's configuration, of hooks and of other repositories.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        let nowhere = self.folder.join("none");
        command.env("GIT_DIR", &self.folder).env("HOME", &nowhere).env("XDG_CONFIG_HOME", &nowhere);
        command.env("GIT_CONFIG_GLOBAL", &nowhere).env("GIT_CONFIG_SYSTEM", &nowhere);
        let fixed = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_PROTOCOL_FROM_USER", "0"),
            ("LC_ALL", "C"),
        ];
        command.envs(fixed).env("GIT_CONFIG_COUNT", (self.variables.len() / 2).to_string());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(objects) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// What a command writes; git's first line about why it failed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        // A file, not a pipe: nobody need read it while git runs.
        let errors = self.folder.join("errors");
        let said = File::create(&errors).map_err(|error| words(&error))?;
        let mut child = start(self.command(arguments).stdout(Stdio::piped()).stderr(said))?;
        let mut bytes = Vec::new();
        let read = child.stdout.take().map(|output| output.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
        let whole = matches!(read, Some(Ok(size)) if (size as u64) < MAX_OUTPUT_BYTES);
        if !whole {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| format!("git cannot be run: {}", words(&error)))?;
        if status.success() && whole {
            return Ok(bytes);
        }
        let said = repository::read(&errors, MAX_OUTPUT_BYTES)?.unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().next().unwrap_or("it was ended");
        Err(format!("git says: {}", line.strip_prefix("fatal: ").unwrap_or(line)))
    }
}

/// Starts git, and bounds what it takes where the system can.
pub(super) fn start(command: &mut Command) -> Result<Child, String> {
    let child = command.spawn().map_err(|error| format!("git cannot be run: {}", words(&error)))?;
    #[cfg(target_os = "linux")]
    if let Some(id) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let limits = [(Resource::Data, MAX_MEMORY_BYTES), (Resource::Cpu, MAX_CPU_SECONDS)];
        for (resource, limit) in limits {
            // It may have ended already.
            let _ = prlimit(Some(id), resource, Rlimit { current: Some(limit), maximum: Some(limit) });
        }
    }
    Ok(child)
}

/// The first git in a folder of `PATH` that does not lie in the work tree. A relative folder means the one that the person stands
/// in, which may be a stranger's.
fn program(work_tree: &Path) -> Option<PathBuf> {
    let name = format!("git{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut programs = folders.map(|folder| folder.join(&name)).filter(|program| is_program(program));
    programs.find(|program| fs::canonicalize(program).is_ok_and(|real| !real.starts_with(work_tree)))
}
