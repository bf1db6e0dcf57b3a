//! A running git process, with limits on memory, processor time, and idle time.
//!
//! The time limit ends a git process that waits without using the processor, for example for a pipe
//! or an unreachable disk. Each sign of activity restarts it.

use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::system::words;
use crate::world::AccessError;

/// The maximum memory of a git process, in bytes. It must hold one object and the objects on which
/// the object's delta is based. Linux only.
#[cfg(target_os = "linux")]
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// The maximum processor time of a git process, in seconds. Malicious objects can take seconds each
/// to unpack. Linux only.
#[cfg(target_os = "linux")]
const MAX_CPU_SECONDS: u64 = 120;

/// The maximum time without output from git.
const MAX_SILENCE: Duration = Duration::from_mins(1);

/// The interval at which a git process that has closed its output is checked.
const LOOK: Duration = Duration::from_millis(2);

/// A running git process. Dropping it kills the process and waits for it.
pub(super) struct Running {
    child: Arc<Mutex<Child>>,
    /// Sends signs of activity to the watching thread, which ends when this is dropped.
    alive: Sender<()>,
    is_late: Arc<AtomicBool>,
}

impl Running {
    /// Starts git, with resource limits if the system supports them.
    pub(super) fn start(command: &mut Command) -> Result<Running, AccessError> {
        Running::start_within(command, MAX_SILENCE)
    }

    fn start_within(command: &mut Command, silence: Duration) -> Result<Running, AccessError> {
        let child = command
            .spawn()
            .map_err(|error| format!("git cannot be run: {}", words(&error)))?;
        #[cfg(target_os = "linux")]
        bound(&child);
        let (child, is_late) = (
            Arc::new(Mutex::new(child)),
            Arc::new(AtomicBool::new(false)),
        );
        let (alive, signs) = channel();
        let running = Running {
            child: Arc::clone(&child),
            alive,
            is_late: Arc::clone(&is_late),
        };
        thread::spawn(move || {
            let ended = loop {
                match signs.recv_timeout(silence) {
                    Ok(()) => {}
                    Err(ended) => break ended,
                }
            };
            if ended == RecvTimeoutError::Timeout {
                is_late.store(true, Ordering::SeqCst);
                let _ = locked(&child).kill();
            }
        });
        Ok(running)
    }

    pub(super) fn take_input(&self) -> Option<ChildStdin> {
        locked(&self.child).stdin.take()
    }

    pub(super) fn take_output(&self) -> Option<ChildStdout> {
        locked(&self.child).stdout.take()
    }

    /// Restarts the time limit.
    pub(super) fn lives(&self) {
        // If the watching thread has ended, git has been killed.
        let _ = self.alive.send(());
    }

    /// Returns an error if git was killed because it was silent for too long.
    pub(super) fn why(&self) -> Option<AccessError> {
        let is_late = self.is_late.load(Ordering::SeqCst);
        is_late.then(|| {
            format!(
                "git was stopped: it wrote nothing for {} s",
                MAX_SILENCE.as_secs()
            )
            .into()
        })
    }

    pub(super) fn end(&self) {
        let _ = locked(&self.child).kill();
    }

    /// Waits until git has exited.
    pub(super) fn wait(self) -> Result<ExitStatus, AccessError> {
        loop {
            // `wait` would hold the lock, which the watching thread needs.
            let ended = locked(&self.child).try_wait();
            match ended.map_err(|error| format!("git cannot be run: {}", words(&error)))? {
                Some(status) => return self.why().map_or(Ok(status), Err),
                None => thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Git only reads, so it can be killed at any time. Waiting prevents a zombie process.
        self.end();
        let _ = locked(&self.child).wait();
    }
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
fn bound(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    for (resource, limit) in [
        (Resource::Data, MAX_MEMORY_BYTES),
        (Resource::Cpu, MAX_CPU_SECONDS),
    ] {
        // If the process has already ended, this fails.
        let _ = prlimit(
            Some(id),
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        );
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::process::Stdio;
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Running::start_within(&mut command, Duration::from_millis(300)).expect("it starts")
    }

    #[test]
    fn what_waits_for_ever_is_ended() {
        let started = Instant::now();
        // First with its output open, then with its output closed.
        for script in ["exec sleep 100", "exec >/dev/null; exec sleep 100"] {
            let running = shell(script);
            let mut said = String::new();
            running
                .take_output()
                .expect("a pipe")
                .read_to_string(&mut said)
                .expect("readable");
            assert!(
                running
                    .wait()
                    .expect_err("it is late")
                    .to_string()
                    .contains("wrote nothing"),
                "{script}"
            );
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_shows_signs_of_life_goes_on() {
        let running = shell("sleep 1; echo done");
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            running.lives();
        }
        let mut said = String::new();
        running
            .take_output()
            .expect("a pipe")
            .read_to_string(&mut said)
            .expect("readable");
        assert_eq!(
            (
                said.as_str(),
                running.wait().is_ok_and(|status| status.success())
            ),
            ("done\n", true)
        );
    }
}
