//! Processes that a tool starts end with the tool, even with `setsid`, as daemons, or if they
//! ignore signals.

#![expect(
    clippy::disallowed_methods,
    reason = "the test writes a repository, runs the binary and looks at processes"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::fixture::{KEY, STATE};
use crate::program;
use crate::send::repository;
use crate::server::{Server, calls, says};

/// Writes its process ID to a file, then sleeps.
const STAY: &str = "echo $$ >> pids; exec sleep 300";

/// A repository whose tool is a shell script, and a server that calls it once.
async fn scene(script: &str, more: &str) -> (Server, TempDir) {
    let server =
        Server::answering(vec![calls(&[("c1", "work", "{\"a\":1}")]), says("Done.")]).await;
    let folder = repository(&server.url);
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write(
        "tools.toml",
        &format!(
            "[[tool]]\nname = \"work\"\ndescription = \"d\"\ncommand = [\"./work\"]\nenv = [\"PATH\"]\n{more}\n"
        ),
    );
    // The file exists from the start, so that a script that waits for lines in it does not fail.
    write("pids", "");
    write(
        "stay",
        &format!("#!/bin/sh\ntrap '' TERM HUP INT\n{STAY}\n"),
    );
    write("work", &format!("#!/bin/sh\n{script}\n"));
    for name in ["stay", "work"] {
        std::fs::set_permissions(folder.path().join(name), PermissionsExt::from_mode(0o755))
            .expect("ours");
    }
    (server, folder)
}

fn start(root: &Path) -> Child {
    let mut command = Command::new(program::path());
    command.args([
        "send",
        "--trust",
        "Tester",
        "-m",
        "Go",
        "--tools",
        "tools.toml",
        "--format",
        "events",
    ]);
    command
        .current_dir(root)
        .env("SCRIPTED_KEY", KEY)
        .env("XDG_STATE_HOME", STATE);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Waits until this many processes have written their IDs, and returns the IDs.
async fn pids(root: &Path, count: usize) -> Vec<Pid> {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(root.join("pids")).unwrap_or_default();
        let pids: Vec<Pid> = text
            .lines()
            .filter_map(|line| Pid::from_raw(line.trim().parse().ok()?))
            .collect();
        if pids.len() >= count {
            return pids;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "only {} of {count} started",
            pids.len()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

async fn all_end(pids: &[Pid]) {
    let began = Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{pids:?} outlive their tool"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Starts processes in every way that leaves a tool's process group.
const ESCAPES: &str = "setsid ./stay & (setsid ./stay &) ; (./stay & ) ; env -i PATH=\"$PATH\" setsid setsid ./stay > /dev/null 2>&1 < /dev/null &";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_leaves_behind_ends_with_it() {
    let (server, folder) = scene(
        &format!(
            "{ESCAPES}\nwhile [ $(wc -l < pids) -lt 4 ]; do sleep 0.05; done; cat; echo; echo left"
        ),
        "",
    )
    .await;
    let output = start(folder.path())
        .wait_with_output()
        .await
        .expect("it ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains(r#""content":"{\"a\":1}\nleft\n""#), "{said}");
    let last = server.received()[1].json()["messages"]
        .as_array()
        .and_then(|it| it.last().cloned());
    assert_eq!(last.expect("a result")["content"], "{\"a\":1}\nleft\n");
    all_end(&pids(folder.path(), 4).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_takes_too_long_ends_with_all_that_it_started() {
    let (_server, folder) = scene(
        &format!("trap '' TERM HUP INT\n{ESCAPES}\nexec ./stay"),
        "timeout_seconds = 2",
    )
    .await;
    let output = start(folder.path())
        .wait_with_output()
        .await
        .expect("it ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        said.contains("the tool was stopped after 2 seconds"),
        "{said}"
    );
    all_end(&pids(folder.path(), 5).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_outlives_reqc_however_that_ends() {
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let (_server, folder) = scene(&format!("{ESCAPES}\nexec ./stay"), "").await;
        let mut child = start(folder.path());
        let pids = pids(folder.path(), 5).await;
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        let reqc = Pid::from_raw(i32::try_from(child.id().expect("it runs")).expect("a number"))
            .expect("a process");
        kill_process(reqc, signal).expect("ours");
        child.wait().await.expect("it ends");
        all_end(&pids).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_kills_its_supervisor_gains_nothing() {
    let script = format!(
        "{ESCAPES}\nwhile [ $(wc -l < pids) -lt 4 ]; do sleep 0.05; done; kill -9 $PPID; exec ./stay"
    );
    let (_server, folder) = scene(&script, "").await;
    let output = start(folder.path())
        .wait_with_output()
        .await
        .expect("it ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("the tool was killed by a signal"), "{said}");
    all_end(&pids(folder.path(), 4).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_ends_as_if_nobody_stood_between() {
    for (script, told) in [
        (
            "echo out; echo why >&2; exit 3",
            "the tool failed with exit status 3:\\nwhy",
        ),
        ("kill -9 $$", "the tool was killed by a signal"),
        (
            "env | sort | cut -d= -f1 | grep -v -e _ -e PWD -e SHLVL; exit 0",
            "\"content\":\"PATH\\n\"",
        ),
    ] {
        let (_server, folder) = scene(script, "").await;
        let output = start(folder.path())
            .wait_with_output()
            .await
            .expect("it ends");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(said.contains(told), "{script}: {said}");
    }
}
