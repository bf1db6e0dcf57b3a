//! A scratch folder with a repository and other files that must stay untouched, in which commands
//! run with limits.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::checks;
use super::recipe::Recipe;
use super::server::Server;

/// A secret that no output or file may contain. It is planted in `.git/config`, `.env`, and the
/// environment.
pub(crate) const SECRET: &str = "cAnArY7f3aSeCrEt";
/// Programs that reqc could be tricked into running; in the sandbox, each leaves a mark.
const PROGRAMS: [&str; 14] = [
    "ssh",
    "less",
    "more",
    "pager",
    "vi",
    "vim",
    "nano",
    "editor",
    "gpg",
    "curl",
    "wget",
    "git-remote-evil",
    "git-upload-pack",
    "git-credential-evil",
];
/// The maximum output of a command; more than this is a violation.
const MOST_OUTPUT: u64 = 256 * 1024 * 1024;

/// A scratch folder with the repository of an attack.
pub(crate) struct Sandbox {
    scratch: tempfile::TempDir,
    root: String,
}

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) arguments: Vec<String>,
    pub(crate) ended: Result<ExitStatus, String>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

/// Runs an attack and returns all violations.
pub(crate) fn run(recipe: &Recipe, reqc: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new(recipe.root.as_deref().unwrap_or("repository"))?;
    let server = recipe
        .server
        .as_ref()
        .map(|script| Server::start(&script.filled(recipe)))
        .transpose()?;
    let url = server
        .as_ref()
        .map(|server| &*server.url)
        .unwrap_or_default();
    let sandboxed = |text: &str| sandbox.fill(text).replace("<<url>>", url);
    let fill = |text: &str| complete(sandboxed(&recipe.fill(text)));
    for (path, text) in recipe.repository() {
        sandbox.write(
            &complete(sandboxed(&path)),
            complete(sandboxed(&text)).as_bytes(),
        )?;
    }
    if let Some(folder) = &recipe.folder {
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/hostile")
                .join(folder),
            &sandbox.root(),
        )?;
    }
    sandbox.set_up(&fill(&recipe.setup))?;
    let before = sandbox.state();
    let mut wrong = Vec::new();
    let mut said = String::new();
    let loose = Recipe {
        status: Vec::new(),
        ..recipe.clone()
    };
    let run = recipe.run.iter().map(|arguments| (recipe, arguments));
    for (recipe, arguments) in run.chain(recipe.also.iter().map(|arguments| (&loose, arguments))) {
        let arguments: Vec<String> = arguments.iter().map(|argument| fill(argument)).collect();
        let mut command = sandbox.command(
            recipe.program.as_deref().unwrap_or(reqc),
            &arguments,
            recipe,
        );
        command.envs(recipe.env.iter().map(|(name, value)| (name, fill(value))));
        let ran = watch(
            &mut command,
            recipe,
            arguments,
            fill(&recipe.stdin).into_bytes(),
        )?;
        let hung = ran.ended.is_err();
        wrong.extend(checks::ran(recipe, &ran));
        said.push_str(&String::from_utf8_lossy(&ran.out));
        said.push_str(&String::from_utf8_lossy(&ran.err));
        if hung {
            break;
        }
    }
    wrong.extend(checks::said(recipe, &said, fill));
    wrong.extend(checks::written(recipe, &sandbox, &before));
    if !wrong.is_empty() {
        wrong.push(format!(
            "-- what was said:\n{}",
            said.chars().take(3000).collect::<String>()
        ));
    }
    Ok(wrong)
}

/// Checks that a string has no unfilled placeholders, and returns it.
fn complete(text: String) -> String {
    let names = text
        .split("<<")
        .skip(1)
        .filter_map(|rest| rest.split_once(">>"))
        .map(|(name, _)| name);
    if let Some(name) = names
        .into_iter()
        .find(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()))
    {
        panic!("unknown placeholder <<{name}>>");
    }
    text
}

impl Sandbox {
    /// Creates a scratch folder with `repository/` (or another name), `outside/`, `home/`, `tmp/`,
    /// `bin/`, and `ran/` for the marks of programs.
    pub(crate) fn new(root: &str) -> std::io::Result<Sandbox> {
        let scratch = tempfile::tempdir()?;
        let sandbox = Sandbox {
            scratch,
            root: root.to_owned(),
        };
        for folder in [root, "outside", "home", "tmp", "bin", "ran"] {
            fs::create_dir_all(sandbox.path(folder))?;
        }
        let outside = [
            ("outside/secret.txt", SECRET),
            ("outside/request.json", "{}"),
            ("outside/package.json", "{\"name\": \"theirs\"}"),
            ("outside/agents/theirs.toml", "name = \"Theirs\"\n"),
            ("outside/golden/theirs/turn.json", "{}"),
            ("home/.netrc", SECRET),
        ];
        for (path, text) in outside {
            let path = sandbox.path(path);
            fs::create_dir_all(path.parent().expect("below the scratch folder"))?;
            fs::write(path, text)?;
        }
        for program in PROGRAMS {
            let path = sandbox.path(&format!("bin/{program}"));
            fs::write(&path, format!("#!/bin/sh\n{}\n", sandbox.mark(program)))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(sandbox)
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.scratch.path().join(relative)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path(&self.root)
    }

    /// Returns a shell command that leaves a mark.
    fn mark(&self, who: &str) -> String {
        format!("touch {}/{who}", self.path("ran").display())
    }

    /// Fills in the placeholders of the sandbox.
    pub(crate) fn fill(&self, text: &str) -> String {
        if !text.contains("<<") {
            return text.to_owned();
        }
        let path = |relative: &str| self.path(relative).display().to_string();
        text.replace("<<secret>>", SECRET)
            .replace("<<ran>>", &self.mark("it"))
            .replace("<<outside>>", &path("outside"))
            .replace("<<scratch>>", &path(""))
            .replace("<<root>>", &self.root().display().to_string())
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, bytes)
    }

    /// Runs the set-up script in the repository.
    fn set_up(&self, script: &str) -> Result<(), String> {
        if script.is_empty() {
            return Ok(());
        }
        let mut command = Command::new("sh");
        command
            .args(["-euc", script])
            .current_dir(self.root())
            .env("OUTSIDE", self.path("outside"))
            .env_remove("CI");
        command
            .env("REQC", crate::program::path())
            .env("SECRET", SECRET)
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{name}_NAME"), "Test")
                .env(format!("GIT_{name}_EMAIL"), "test@example.com");
        }
        let output = command.output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "the set-up failed: {}",
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    /// Returns a command with system limits on processor time, address space and file size.
    fn command(&self, program: &Path, arguments: &[String], recipe: &Recipe) -> Command {
        let seconds = recipe.seconds.unwrap_or(10) * slower(recipe);
        let hard = seconds + 2;
        let script = format!(
            "ulimit -c 0; ulimit -St {seconds}; ulimit -Ht {hard}; ulimit -v 16000000; ulimit -f 2000000; exec \"$@\""
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, "sh"])
            .arg(program)
            .args(arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(self.root().join(recipe.fill(&recipe.cwd)))
            .env_clear();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8");
        command
            .env("GITHUB_TOKEN", SECRET)
            .env("SECRET_TOKEN", SECRET)
            .env("RAYON_NUM_THREADS", "2");
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The marks that programs left.
    pub(crate) fn marks(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("ran"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Everything in the scratch folder except marks: type, size, modification time, and the
    /// content of short files.
    pub(crate) fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.scratch.path().to_owned()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(it) = entry.metadata() else { continue };
                let path = entry.path();
                let inside = path
                    .strip_prefix(self.scratch.path())
                    .expect("below")
                    .to_owned();
                if it.is_dir() {
                    if inside != Path::new("ran") {
                        found.insert(inside, "folder".to_owned());
                        pending.push(path);
                    }
                    continue;
                }
                let text = match it.is_file() && it.len() < 1 << 16 {
                    true => fs::read(&path).unwrap_or_default(),
                    false => Vec::new(),
                };
                let times = (it.mtime(), it.mtime_nsec());
                found.insert(
                    inside,
                    format!("{:o} {} {times:?} {text:?}", it.mode(), it.len()),
                );
            }
        }
        found
    }

    /// Returns the paths that have changed since, relative to the scratch folder.
    pub(crate) fn changes(&self, before: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let after = self.state();
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let new = after
            .iter()
            .filter(|(path, state)| before.get(*path) != Some(*state))
            .map(|(path, _)| path);
        gone.chain(new).cloned().collect()
    }

    /// Makes a path in the scratch folder relative to the repository; `None` if it is outside.
    pub(crate) fn in_repository<'p>(&self, path: &'p Path) -> Option<&'p str> {
        path.strip_prefix(&self.root).ok().and_then(Path::to_str)
    }
}

/// Runs a command and kills it with all its children if it takes too much memory or time.
fn watch(
    command: &mut Command,
    recipe: &Recipe,
    arguments: Vec<String>,
    stdin: Vec<u8>,
) -> Result<Ran, Box<dyn std::error::Error>> {
    let (patience, megabytes) = (
        recipe.patience.unwrap_or(40) * slower(recipe),
        recipe.megabytes.unwrap_or(1024),
    );
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().expect("piped");
    thread::spawn(move || input.write_all(&stdin));
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let ended = wait(&mut child, Duration::from_secs(patience), megabytes * 1024);
    // Children that outlive the command would keep its pipes open.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let bytes = |reader: thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    Ok(Ran {
        arguments,
        ended,
        out: bytes(out),
        err: bytes(err),
    })
}

/// Returns how many times slower this build is than the optimised one for which the limits are
/// written. `REQC` names an optimised build.
fn slower(recipe: &Recipe) -> u64 {
    let is_of_this_build = crate::program::path() == Path::new(env!("CARGO_BIN_EXE_reqc"));
    if cfg!(debug_assertions) && recipe.program.is_none() && is_of_this_build {
        5
    } else {
        1
    }
}

fn wait(child: &mut Child, patience: Duration, kilobytes: u64) -> Result<ExitStatus, String> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    let why = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return match status.signal() {
                // SIGXCPU.
                Some(24) => Err("spent its processor time".to_owned()),
                _ => Ok(status),
            };
        }
        let resident = resident(child.id());
        if resident > kilobytes {
            break format!("held {} MB", resident / 1024);
        }
        if started.elapsed() > patience {
            break format!("ran for more than {} s", patience.as_secs());
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
    Err(why)
}

/// The peak memory of a process in kB; 0 if the system does not report it.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe
            .expect("piped")
            .take(MOST_OUTPUT)
            .read_to_end(&mut bytes);
        bytes
    })
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, target)?;
        } else if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
