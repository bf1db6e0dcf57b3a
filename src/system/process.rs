//! Runs programs without a shell and with an empty environment, and ends them together with all
//! processes that they started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Disk, in_path, is_program, words};
use crate::repo::ProgramSpec;
use crate::runtime::tools::{BoxFuture, Complaint, Ended, Process, Processes, RunningProgram};
use crate::runtime::trust::{Asker, Grant, digest};
use crate::world::AccessError;

/// The input of a supervised program.
#[derive(Clone, Copy)]
enum Input {
    /// The whole input is available at the start.
    Whole,
    /// The input is a stream that is written while the program runs.
    Stream,
}

/// The maximum size of a repository file whose content becomes part of a grant, in bytes.
const MAX_PROGRAM_BYTES: u64 = 256 * 1024 * 1024;

/// The time that pipes may stay open after the program has ended, because a process that left the
/// program's group may still hold them.
const GRACE: Duration = Duration::from_millis(500);

/// The time that a supervisor has to end all processes.
const SUPERVISOR_GRACE: Duration = Duration::from_secs(3);

/// Runs programs on this machine, in a folder or below it.
#[derive(Debug, Clone)]
pub struct SystemProcesses {
    folder: PathBuf,
    is_supervised: bool,
}

impl SystemProcesses {
    /// Returns a runner that resolves relative paths of programs and working directories against
    /// `folder`, the folder of `tools.toml`.
    ///
    /// # Errors
    ///
    /// Returns a phrase that mentions the folder, if it is missing or not a folder.
    pub fn new(folder: &Path) -> Result<SystemProcesses, AccessError> {
        Ok(SystemProcesses {
            folder: Disk::open(folder)?.root().to_path_buf(),
            is_supervised: false,
        })
    }

    /// Adds a supervisor to each program, so that processes that left the program's group are ended
    /// with it, even if this process is killed. The supervisor is this same program, started again;
    /// therefore, its `main` must begin with [`supervise`](super::supervise). Linux only; has no
    /// effect on other systems.
    #[must_use]
    pub fn supervised(self) -> SystemProcesses {
        SystemProcesses {
            is_supervised: cfg!(target_os = "linux"),
            ..self
        }
    }

    /// Returns the command that runs a program.
    #[cfg(target_os = "linux")]
    fn command(&self, program: &Path, input: Input) -> Command {
        use super::supervisor::{ROLE, SERVER_ROLE};
        if !self.is_supervised {
            return Command::new(program);
        }
        // This refers to the file of the running program, even if its path has been overwritten.
        let mut command = Command::new("/proc/self/exe");
        let role = match input {
            Input::Whole => ROLE,
            Input::Stream => SERVER_ROLE,
        };
        command.arg(role).arg(program);
        command
    }

    #[cfg(not(target_os = "linux"))]
    fn command(&self, program: &Path, _: Input) -> Command {
        Command::new(program)
    }

    /// Finds a program. A name is looked up in `PATH`; a name that contains a separator is a path.
    fn locate(&self, program: &str) -> Result<PathBuf, AccessError> {
        if program.contains(std::path::is_separator) {
            let path = self.folder.join(program);
            return match (path.is_file(), is_program(&path)) {
                (true, true) => Ok(path),
                (true, false) => Err(format!("`{program}` is not executable").into()),
                (false, _) => Err(format!("there is no program `{program}`").into()),
            };
        }
        let found = in_path(program, ENDINGS).next();
        found.ok_or_else(|| format!("there is no program `{program}` in `PATH`").into())
    }

    /// Returns the grant that a user gives by allowing a program as a tool or server. The grant
    /// includes the content of each file named on the program's command line that is in the folder
    /// of `tools.toml` or in the repository with this `root`.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if one of the files cannot be read.
    pub fn grant(
        &self,
        asker: Asker,
        program: &ProgramSpec,
        root: &Path,
    ) -> Result<Grant, AccessError> {
        let found = self
            .locate(&program.name.value)
            .ok()
            .and_then(|path| std::fs::canonicalize(path).ok());
        let folder: PathBuf = self
            .folder
            .join(&program.working_directory)
            .components()
            .collect();
        // A file may also be given in the form `--option=FILE`.
        let words = program
            .arguments
            .iter()
            .flat_map(|argument| [Some(&**argument), argument.split_once('=').map(|it| it.1)]);
        let named = words.flatten().map(|word| folder.join(word));
        let mut files = Vec::new();
        for path in found.iter().cloned().chain(named) {
            files.extend(self.content(&path, root)?);
        }
        Ok(Grant::Program {
            asker,
            program: found.map_or_else(|| program.name.value.to_string(), |path| shown(&path)),
            arguments: program.arguments.clone(),
            folder: shown(&folder),
            environment: program.environment.clone(),
            files,
        })
    }

    /// Returns the path of a file and the digest of its content. Returns `None` if the path is not
    /// a file, or is in neither the repository nor the folder of `tools.toml`.
    fn content(&self, path: &Path, root: &Path) -> Result<Option<(String, String)>, AccessError> {
        let Ok(real) = std::fs::canonicalize(path) else {
            return Ok(None);
        };
        let is_theirs = real.starts_with(root)
            || real.starts_with(&self.folder)
            || path.starts_with(&self.folder);
        if !is_theirs || !real.is_file() {
            return Ok(None);
        }
        let shown = real.to_string_lossy().into_owned();
        let bytes = super::read_bytes(&real, MAX_PROGRAM_BYTES)
            .map_err(|why| format!("`{shown}` {why}"))?;
        Ok(Some((shown, digest(&bytes))))
    }

    /// Returns the working directory, with links resolved. It was checked when `tools.toml` was
    /// read, but may have changed since.
    fn directory(&self, spec: &ProgramSpec) -> Result<PathBuf, AccessError> {
        let folder = std::fs::canonicalize(self.folder.join(&spec.working_directory));
        let folder =
            folder.map_err(|error| format!("`{}`: {}", spec.working_directory, words(&error)))?;
        match folder.starts_with(&self.folder) {
            true => Ok(folder),
            false => Err(format!(
                "`{}` is outside the folder of `tools.toml`",
                spec.working_directory
            )
            .into()),
        }
    }

    fn spawn(&self, spec: &ProgramSpec, input: Input) -> Result<Child, AccessError> {
        let program = self.locate(&spec.name.value)?;
        let environment = spec
            .environment
            .iter()
            .filter_map(|name| Some((&**name, std::env::var_os(&**name)?)));
        let environment: Vec<(&str, OsString)> = environment.collect();
        let mut command = self.command(&program, input);
        command
            .args(spec.arguments.iter().map(AsRef::<str>::as_ref))
            .current_dir(self.directory(spec)?);
        command.env_clear().envs(environment);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A supervisor exits on its own after it has ended the other processes.
        command.kill_on_drop(!self.is_supervised);
        #[cfg(unix)]
        command.process_group(0);
        command
            .spawn()
            .map_err(|error| format!("`{}`: {}", spec.name.value, words(&error)).into())
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Processes for SystemProcesses {
    fn find(&self, program: &str) -> Result<(), AccessError> {
        self.locate(program).map(drop)
    }

    fn run<'a>(&'a self, process: Process<'a>) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            match self.spawn(&process.spec.program, Input::Whole) {
                Ok(child) => {
                    Running::new(child, self.is_supervised)
                        .finish(process)
                        .await
                }
                Err(why) => Ended::Failed(why.into()),
            }
        })
    }

    fn start(
        &self,
        program: &ProgramSpec,
        complaint: Complaint,
    ) -> Result<RunningProgram, AccessError> {
        let mut child = self.spawn(program, Input::Stream)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("its pipes are missing".into());
        };
        let stderr = child.stderr.take();
        let mut listening = JoinSet::new();
        listening.spawn(async move { keep_end(stderr, &complaint).await });
        let mut group = Group {
            leader: child.id(),
            is_supervised: self.is_supervised,
        };
        let ended = Box::pin(async move {
            let status = child.wait().await;
            group.kill();
            // Read the rest of the program's error output.
            let _ = timeout(GRACE, listening.join_next()).await;
            status.ok().and_then(|status| status.code())
        });
        Ok(RunningProgram {
            input: Box::new(input),
            output: Box::new(output),
            ended,
        })
    }
}

/// A child process and its resources. Dropping it ends the processes; tokio reaps the child.
struct Running {
    child: Child,
    group: Group,
    /// Standard input. A supervisor runs its tool as long as this is open.
    stdin: Option<ChildStdin>,
}

impl Running {
    fn new(mut child: Child, is_supervised: bool) -> Running {
        let stdin = child.stdin.take();
        Running {
            group: Group {
                leader: child.id(),
                is_supervised,
            },
            child,
            stdin,
        }
    }

    async fn finish(mut self, process: Process<'_>) -> Ended {
        let (mut output, complaint) = (Vec::new(), Complaint::default());
        let limit = process.spec.time_limit;
        let ended = timeout(limit, self.exchange(process, &mut output, &complaint)).await;
        let complaint = complaint.into_bytes();
        if !matches!(ended, Ok(Ok(_))) {
            self.end().await;
        }
        match ended {
            Ok(Ok(status)) => Ended::Exited {
                code: status.code(),
                output,
                complaint,
            },
            Ok(Err(Stop::TooMuch)) => Ended::TooMuchOutput { output },
            Ok(Err(Stop::Failed(why))) => Ended::Failed(why),
            Err(_) => Ended::TimedOut { complaint },
        }
    }

    /// Ends all processes before it returns. Does not wait for processes that cannot be killed.
    async fn end(&mut self) {
        self.stdin = None;
        if self.group.is_supervised {
            let _ = timeout(SUPERVISOR_GRACE, self.child.wait()).await;
        }
        self.group.kill();
        let _ = timeout(GRACE, self.child.kill()).await;
    }

    /// Writes, reads, and waits at the same time, because the program may do these in any order.
    async fn exchange(
        &mut self,
        process: Process<'_>,
        output: &mut Vec<u8>,
        complaint: &Complaint,
    ) -> Result<ExitStatus, Stop> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let is_supervised = self.group.is_supervised;
        let stdin = &mut self.stdin;
        let feed = async {
            if let Some(pipe) = stdin {
                let length = (process.input.len() as u64).to_le_bytes();
                // The program need not read its input.
                let _ = pipe
                    .write_all(if is_supervised { &length } else { &[] })
                    .await;
                let _ = pipe.write_all(process.input.as_bytes()).await;
                let _ = pipe.flush().await;
            }
            if !is_supervised {
                *stdin = None;
            }
            Ok(())
        };
        let read = read_up_to(stdout, output, process.spec.output_limit);
        let listen = async { keep_end(stderr, complaint).await.map_err(Stop::from) };
        let mut pipes = pin!(async { tokio::try_join!(feed, read, listen).map(drop) });
        let status = tokio::select! {
            read = &mut pipes => {
                read?;
                self.child.wait().await
            }
            status = self.child.wait() => {
                // Processes that the program left behind hold the pipes open.
                self.group.kill();
                timeout(GRACE, pipes).await.unwrap_or(Ok(()))?;
                status
            }
        };
        self.group.kill();
        status.map_err(Stop::from)
    }
}

/// The reasons to stop waiting for a program.
enum Stop {
    TooMuch,
    Failed(String),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failed(words(&error))
    }
}

async fn read_up_to(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> Result<(), Stop> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; 8 * 1024];
    loop {
        let length = pipe.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..length.min(room)]);
        if length > room {
            return Err(Stop::TooMuch);
        }
    }
}

/// Reads everything, and keeps only the end.
async fn keep_end(
    pipe: Option<impl AsyncRead + Unpin>,
    complaint: &Complaint,
) -> std::io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; 8 * 1024];
    loop {
        match pipe.read(&mut chunk).await? {
            0 => return Ok(()),
            length => complaint.push(&chunk[..length]),
        }
    }
}

/// The process group whose leader is the child.
struct Group {
    /// The leader's process ID; `None` after the group was killed, because the ID may then be
    /// reused.
    leader: Option<u32>,
    /// `true` if the leader is a supervisor, which must live until it has ended the other
    /// processes.
    is_supervised: bool,
}

impl Group {
    #[cfg(unix)]
    fn kill(&mut self) {
        let leader = self
            .leader
            .take()
            .and_then(|leader| i32::try_from(leader).ok());
        if let Some(leader) = leader.and_then(rustix::process::Pid::from_raw) {
            // This fails if no process is left, which is the usual case.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        // The child itself is killed through its own handle.
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_supervised {
            self.kill();
        }
    }
}

/// The extensions of program files. On Windows, a file without an extension is probably a script
/// for another system.
const ENDINGS: &[&str] = if cfg!(windows) {
    &[".exe", ".cmd", ".bat", ""]
} else {
    &[""]
};

// The tests inspect processes through `/proc`.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;
    use crate::repo::{ToolSpec, read_tools};
    use crate::source::Sources;

    /// Returns a tool that runs a shell command line in a folder.
    fn shell(folder: &Path, line: &str, more: &str) -> ToolSpec {
        // JSON strings are valid TOML strings.
        tool(
            folder,
            &serde_json::json!(["sh", "-c", line]).to_string(),
            more,
        )
    }

    fn tool(folder: &Path, command: &str, more: &str) -> ToolSpec {
        let text =
            format!("[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = {command}\n{more}\n");
        fs::write(folder.join("tools.toml"), text).expect("writable");
        let world = Disk::open(folder).expect("it is there");
        let (mut file, findings) = read_tools(&world, "tools.toml", &mut Sources::default());
        assert_eq!(findings, []);
        file.tools.remove(0)
    }

    async fn run(folder: &Path, spec: &ToolSpec, input: &str) -> Ended {
        SystemProcesses::new(folder)
            .expect("a folder")
            .run(Process { spec, input })
            .await
    }

    fn exited(code: i32, output: &str, complaint: &str) -> Ended {
        Ended::Exited {
            code: Some(code),
            output: output.into(),
            complaint: complaint.into(),
        }
    }

    /// Returns `true` if a process exists and is not a zombie.
    fn is_alive(process: &str) -> bool {
        let state = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
        state.is_ok_and(|state| {
            !state
                .rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('Z'))
        })
    }

    async fn dies(process: &str) -> bool {
        for _ in 0..100 {
            if !is_alive(process) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    async fn written(path: &Path) -> String {
        loop {
            match fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    #[tokio::test]
    async fn programs_read_and_answer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        assert_eq!(
            run(at, &tool(at, "[\"cat\"]", ""), "{\"a\":1}").await,
            exited(0, "{\"a\":1}", "")
        );
        let large = "x".repeat(1_000_000);
        assert_eq!(
            run(at, &tool(at, "[\"true\"]", ""), &large).await,
            exited(0, "", "")
        );
        let echo = tool(at, "[\"cat\"]", "max_output_bytes = 1000000");
        assert_eq!(run(at, &echo, &large).await, exited(0, &large, ""));
        let fails = shell(at, "echo out; echo why >&2; exit 3", "");
        assert_eq!(run(at, &fails, "").await, exited(3, "out\n", "why\n"));
        let killed = run(at, &shell(at, "kill -9 $$", ""), "").await;
        assert!(
            matches!(killed, Ended::Exited { code: None, .. }),
            "{killed:?}"
        );
        let literal = tool(at, "[\"printf\", \"%s\", \"$HOME;*\"]", "");
        assert_eq!(run(at, &literal, "").await, exited(0, "$HOME;*", ""));
    }

    #[tokio::test]
    async fn nothing_is_inherited_unless_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        assert_eq!(
            run(at, &tool(at, "[\"env\"]", ""), "").await,
            exited(0, "", "")
        );
        let path = std::env::var("PATH").expect("it is set");
        let named = tool(
            at,
            "[\"env\"]",
            "env = [\"PATH\", \"REQC_TEST_NO_SUCH_VARIABLE\"]",
        );
        assert_eq!(
            run(at, &named, "").await,
            exited(0, &format!("PATH={path}\n"), "")
        );
    }

    #[tokio::test]
    async fn programs_and_folders_are_found_beside_the_file() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        fs::create_dir(at.join("inner")).expect("writable");
        fs::write(at.join("here"), "#!/bin/sh\npwd -P").expect("writable");
        fs::set_permissions(at.join("here"), fs::Permissions::from_mode(0o755))
            .expect("our own file");
        let inner = tool(at, "[\"./here\"]", "working_directory = \"inner\"");
        let expected = fs::canonicalize(at.join("inner")).expect("it is there");
        assert_eq!(
            run(at, &inner, "").await,
            exited(0, &format!("{}\n", expected.display()), "")
        );
        fs::remove_dir(at.join("inner")).expect("it is empty");
        symlink("/", at.join("inner")).expect("writable");
        let outside = run(at, &inner, "").await;
        assert_eq!(
            outside,
            Ended::Failed("`inner` is outside the folder of `tools.toml`".to_owned())
        );
        let none = run(at, &tool(at, "[\"reqc-no-such-program\"]", ""), "").await;
        assert_eq!(
            none,
            Ended::Failed("there is no program `reqc-no-such-program` in `PATH`".to_owned())
        );
        let processes = SystemProcesses::new(at).expect("a folder");
        assert!(processes.find("sh").is_ok() && processes.find("./none").is_err());
        fs::write(at.join("text"), "#!/bin/sh\n").expect("writable");
        assert_eq!(
            processes.find("./text"),
            Err("`./text` is not executable".into())
        );
    }

    #[tokio::test]
    async fn limits_end_a_program_and_what_it_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        let mut slow = shell(at, "sleep 100 & echo $! > pid; echo so far >&2; wait", "");
        slow.time_limit = Duration::from_millis(400);
        assert_eq!(
            run(at, &slow, "").await,
            Ended::TimedOut {
                complaint: b"so far\n".to_vec()
            }
        );
        assert!(dies(&written(&at.join("pid")).await).await);

        let endless = shell(at, "while :; do echo yes; done", "max_output_bytes = 10");
        assert_eq!(
            run(at, &endless, "").await,
            Ended::TooMuchOutput {
                output: b"yes\nyes\nye".to_vec()
            }
        );
        let exact = shell(at, "printf 0123456789", "max_output_bytes = 10");
        assert_eq!(run(at, &exact, "").await, exited(0, "0123456789", ""));

        let loud = run(
            at,
            &shell(
                at,
                "i=0; while [ $i -lt 3000 ]; do echo $i >&2; i=$((i+1)); done",
                "",
            ),
            "",
        )
        .await;
        let Ended::Exited { complaint, .. } = loud else {
            panic!("{loud:?}")
        };
        assert_eq!(complaint.len(), Complaint::MAX_BYTES);
        assert!(complaint.ends_with(b"2999\n"));
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        let begun = Instant::now();
        let leaves = shell(at, "sleep 100 & echo $! > pid; echo done", "");
        assert_eq!(run(at, &leaves, "").await, exited(0, "done\n", ""));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(dies(&written(&at.join("pid")).await).await);
    }

    #[tokio::test]
    async fn a_dropped_run_leaves_no_process() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path().to_path_buf();
        let spec = shell(&at, "echo $$ > leader; sleep 100 & echo $! > pid; wait", "");
        let inner = at.clone();
        let task = tokio::spawn(async move { run(&inner, &spec, "").await });
        let (leader, other) = (
            written(&at.join("leader")).await,
            written(&at.join("pid")).await,
        );
        assert!(is_alive(&leader) && is_alive(&other));
        task.abort();
        assert!(task.await.is_err());
        assert!(dies(&leader).await && dies(&other).await);
    }
}
