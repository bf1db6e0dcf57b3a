//! A process between `reqc` and a tool, which ends when either of them does.
//!
//! A tool may start processes that leave its group and its parents (`setsid`, daemons). On Linux,
//! such processes become children of the nearest *subreaper* above them. This process is that
//! subreaper: it is `reqc`, started again in a different role. It ends when the tool ends or when
//! its standard input is closed, which the system also does if `reqc` is killed. Before it ends, it
//! kills all remaining children.
//!
//! For a tool, this process reads from standard input the length of the tool's input (8 bytes,
//! little-endian) and the input itself. After that, standard input stays open without further data.
//! A server reads standard input itself, and this process only checks whether it is closed. The
//! arguments are the program and its arguments. The program inherits the working folder,
//! environment, and outputs.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait,
};

/// The first argument that makes this program the supervisor of a tool.
pub(super) const ROLE: &str = "--supervise-tool";

/// The first argument that makes this program the supervisor of a server.
pub(super) const SERVER_ROLE: &str = "--supervise-server";

/// The time that a server has to exit on its own after its standard input is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// The time in which the remaining processes must end. Without this limit, processes that start
/// others faster than they are killed would never end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exit status that shells return for a program that cannot be started.
const NOT_STARTED: u8 = 127;

/// Acts as a supervisor if this process was started as one, and returns its exit status; otherwise,
/// returns `None`.
pub fn supervise() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    match role.to_str()? {
        ROLE => Some(run(arguments)),
        SERVER_ROLE => Some(serve(arguments)),
        _ => None,
    }
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    adopt();
    let (Some(program), Some(input)) = (arguments.next(), read_input()) else {
        return ExitCode::from(NOT_STARTED);
    };
    let mut child = match start(&program, arguments, Stdio::piped()) {
        Ok(child) => child,
        Err(status) => return status,
    };
    let stdin = child.stdin.take();
    std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    finish(&child, end_with_parent)
}

fn serve(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    adopt();
    let Some(program) = arguments.next() else {
        return ExitCode::from(NOT_STARTED);
    };
    match start(&program, arguments, Stdio::inherit()) {
        Ok(child) => finish(&child, end_after_parent),
        Err(status) => status,
    }
}

fn start(
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
    stdin: Stdio,
) -> Result<Child, ExitCode> {
    Command::new(program)
        .args(arguments)
        .stdin(stdin)
        .spawn()
        .map_err(|error| {
            let _ = writeln!(
                std::io::stderr(),
                "`{}`: {}",
                program.to_string_lossy(),
                super::words(&error)
            );
            ExitCode::from(NOT_STARTED)
        })
}

/// Waits for the program, which `watch` ends if necessary, and then ends all processes that the
/// program left behind.
fn finish(child: &Child, watch: fn(Pid)) -> ExitCode {
    let Some(program) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return ExitCode::FAILURE;
    };
    std::thread::spawn(move || watch(program));
    let status = wait_for(program);
    end_the_rest();
    leave(status)
}

fn read_input() -> Option<Vec<u8>> {
    let mut length = [0; 8];
    let mut stdin = std::io::stdin().lock();
    stdin.read_exact(&mut length).ok()?;
    let mut input = Vec::new();
    stdin
        .by_ref()
        .take(u64::from_le_bytes(length))
        .read_to_end(&mut input)
        .ok()?;
    Some(input)
}

/// Kills the tool when standard input is closed.
fn end_with_parent(tool: Pid) {
    kill_after(tool, || {
        drop(std::io::copy(
            &mut std::io::stdin().lock(),
            &mut std::io::sink(),
        ));
    });
}

/// Kills the server some time after standard input was closed. The delay lets the server read
/// remaining data, because `poll` reports immediately that a pipe has no writer left.
fn end_after_parent(server: Pid) {
    kill_after(server, || {
        let stdin = std::io::stdin();
        while let Err(rustix::io::Errno::INTR) =
            poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None)
        {}
        std::thread::sleep(FAREWELL);
    });
}

/// Kills a program when `wait` returns. Its process ID cannot have been reused in the meantime.
fn kill_after(program: Pid, wait: impl FnOnce()) {
    let handle = pidfd_open(program, PidfdFlags::empty());
    wait();
    let _ = match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
        Err(_) => kill_process(program, Signal::KILL),
    };
}

/// Waits for the tool, and meanwhile reaps processes that the tool left behind.
fn wait_for(tool: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == tool => return Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Makes this process the parent of orphaned descendants. If this is not permitted, for example in
/// a very strict sandbox, only processes in the program's group are ended.
pub(crate) fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills children until none are left; their own children become children of this process. A child
/// that has not been reaped keeps its process ID, so no other process can be killed by mistake.
pub(crate) fn end_the_rest() {
    let end = Instant::now() + PATIENCE;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(None) if Instant::now() > end => return,
            Ok(None) => {}
        }
        for child in children() {
            // The process may have ended already.
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the children of this process, according to `/proc`.
fn children() -> Vec<Pid> {
    let me = getpid();
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| parent(*pid) == Some(me))
        .collect()
}

/// Returns the parent of a process, from `/proc/PID/stat`: the second field after the process name,
/// which is in parentheses and may contain any character.
fn parent(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    Pid::from_raw(
        stat.rsplit(')')
            .next()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?,
    )
}

/// Exits with the tool's exit status, or the signal that ended it.
fn leave(status: Option<WaitStatus>) -> ExitCode {
    if status.is_some_and(WaitStatus::signaled) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let code = status
        .and_then(WaitStatus::exit_status)
        .and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
