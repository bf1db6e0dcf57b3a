//! The git program: its location, its environment, and the limits on its output.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::file;
use super::running::Running;
use crate::system::{in_path, words};
use crate::world::AccessError;

/// The maximum size of a configuration file, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 1 << 20;

/// The maximum size of git's output, in bytes.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// The git program, which runs in our own folder.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    /// The folder in which git runs.
    folder: PathBuf,
    /// The folder that git treats as its repository.
    own: PathBuf,
    variables: Vec<(String, String)>,
    objects: Option<PathBuf>,
}

impl Git {
    /// Finds git in `PATH`, to be run in `folder`. A program in an untrusted checkout is never run,
    /// whatever `PATH` contains.
    pub(super) fn new(folder: &Path, strangers: &Strangers) -> Result<Git, AccessError> {
        let program = strangers
            .program()
            .ok_or("git cannot be run: no folder in `PATH` outside the tree contains it")?;
        Ok(Git {
            program,
            folder: folder.to_owned(),
            own: folder.to_owned(),
            variables: Vec::new(),
            objects: None,
        })
    }

    /// Sets the folder that git treats as its repository: `folder` itself or, for a linked work
    /// tree, a folder inside it.
    pub(super) fn with_own_folder(self, own: PathBuf) -> Git {
        Git { own, ..self }
    }

    /// Sets the object folder.
    pub(super) fn with_objects(self, objects: PathBuf) -> Git {
        Git {
            objects: Some(objects),
            ..self
        }
    }

    /// Sets a configuration value for git.
    pub(super) fn configure(&mut self, key: &str, value: &str) {
        let count = self.variables.len() / 2;
        self.variables
            .push((format!("GIT_CONFIG_KEY_{count}"), key.to_owned()));
        self.variables
            .push((format!("GIT_CONFIG_VALUE_{count}"), value.to_owned()));
    }

    /// Returns the entries of a configuration file. Keys are in lower case except for their middle
    /// part. Included files are not read, and no program that the file specifies is run.
    pub(super) fn read_configuration(
        path: &Path,
        strangers: &Strangers,
    ) -> Result<Vec<(String, String)>, AccessError> {
        let Some(bytes) = file::read(path, MAX_CONFIGURATION_BYTES)? else {
            return Ok(Vec::new());
        };
        let folder = tempfile::tempdir().map_err(|error| words(&error))?;
        let copy = folder.path().join("copy");
        fs::write(&copy, bytes).map_err(|error| words(&error))?;
        let git = Git::new(folder.path(), strangers)?;
        let listed = git.run(&[
            "config",
            "--file",
            "copy",
            "--no-includes",
            "--null",
            "--list",
        ])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let entries = listed.split('\0').filter(|entry| !entry.is_empty());
        Ok(entries
            .map(|entry| entry.split_once('\n').unwrap_or((entry, "true")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect())
    }

    /// Returns a command that ignores the configuration of the user and the system, hooks, and
    /// other repositories.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
        {
            command.env_remove(name);
        }
        let nowhere = self.folder.join("none");
        command
            .env("GIT_DIR", &self.own)
            .env("HOME", &nowhere)
            .env("XDG_CONFIG_HOME", &nowhere);
        command
            .env("GIT_CONFIG_GLOBAL", &nowhere)
            .env("GIT_CONFIG_SYSTEM", &nowhere);
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
        command
            .envs(fixed)
            .env("GIT_CONFIG_COUNT", (self.variables.len() / 2).to_string());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(objects) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        command
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs a command. Returns its output, or the first line of git's error message.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, AccessError> {
        // Errors are written to a file rather than a pipe, which would have to be read while git
        // runs.
        let errors = self.folder.join("errors");
        let said = File::create(&errors).map_err(|error| words(&error))?;
        let running = Running::start(self.command(arguments).stdout(Stdio::piped()).stderr(said))?;
        let mut bytes = Vec::new();
        let read = running
            .take_output()
            .map(|output| output.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
        let whole = matches!(read, Some(Ok(size)) if (size as u64) < MAX_OUTPUT_BYTES);
        if !whole {
            running.end();
        }
        let status = running.wait()?;
        if status.success() && whole {
            return Ok(bytes);
        }
        let said = file::read(&errors, MAX_OUTPUT_BYTES)?.unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().next().unwrap_or("it was stopped");
        Err(format!("git says: {}", line.strip_prefix("fatal: ").unwrap_or(line)).into())
    }
}

/// Checkouts whose files may be untrusted, so that no program in them is run.
#[derive(Debug, Clone, Default)]
pub(super) struct Strangers {
    folders: Vec<PathBuf>,
}

impl Strangers {
    /// Returns all checkouts that contain a canonical path, including submodules and the checkouts
    /// that contain them.
    pub(super) fn around(path: &Path) -> Strangers {
        Strangers::default().and(path)
    }

    /// Adds the checkouts that contain a further canonical path. A checkout of the whole disk is
    /// excluded, because it contains the system's programs.
    pub(super) fn and(mut self, path: &Path) -> Strangers {
        let found = path
            .ancestors()
            .filter(|folder| fs::symlink_metadata(folder.join(".git")).is_ok())
            .filter(|folder| folder.parent().is_some());
        self.folders.extend(found.map(Path::to_owned));
        self
    }

    /// Returns the first `git` on `PATH` that is not inside a checkout, either directly or
    /// through a link.
    fn program(&self) -> Option<PathBuf> {
        in_path("git", &[std::env::consts::EXE_SUFFIX]).find(|program| {
            program
                .parent()
                .is_some_and(|folder| self.is_outside(folder))
                && self.is_outside(program)
        })
    }

    /// Returns `true` if a path, with its links resolved, is not in any of the checkouts.
    fn is_outside(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else {
            return false;
        };
        !self.folders.iter().any(|folder| real.starts_with(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_of_any_checkout_around_is_not_run() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let base = fs::canonicalize(scratch.path()).expect("it is there");
        fs::create_dir_all(base.join("above/.git")).expect("writable");
        fs::create_dir_all(base.join("above/sub/inner")).expect("writable");
        fs::write(base.join("above/sub/.git"), "gitdir: ../.git/modules/sub\n").expect("writable");
        let found = Strangers::around(&base.join("above/sub/inner")).folders;
        assert_eq!(found[..2], [base.join("above/sub"), base.join("above")]);
        assert!(!found.contains(&PathBuf::from("/")));
        let strangers = Strangers {
            folders: vec![PathBuf::from("/")],
        };
        assert!(
            Git::new(&base, &strangers)
                .expect_err("all is theirs")
                .to_string()
                .contains("outside the tree")
        );
    }
}
