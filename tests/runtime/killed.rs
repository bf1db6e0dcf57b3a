//! `reqc send` is killed, or interrupted by Ctrl-C: the content of its file, and how it continues.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test writes a repository, runs the binary and reads its files"
)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use reqc::conversation::log::Log;
use reqc::conversation::{Block, ItemKind, Message, Role};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{KEY, STATE};
use crate::program;
use crate::server::{Act, Received, Server, calls, says, sse, stream_head};

const KILLS: u32 = 20;
/// A tool whose program never ends.
const TOOLS: &str = r#"
[[tool]]
name = "wait"
description = "Waits."
command = ["./wait"]
env = ["PATH"]
"#;
/// A tool that ends at once.
const QUICK: &str = r#"
[[tool]]
name = "quick"
description = "Ends."
command = ["./quick"]
env = ["PATH"]
"#;

/// A repository on disk with one agent, whose server is on this machine.
fn repository(url: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let tester = "name = \"Tester\"\nextends = \"OpenAI Compatible Chat\"\nsurroundings = \"\"\nprovider_instance = \"Scripted\"\n\
                  model = \"m\"\nenable_tools = true\n";
    for (path, text) in [
        ("reqc.toml", ""),
        ("providers/scripted.toml", &provider),
        ("agents/tester.toml", tester),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    folder
}

fn send(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program::path());
    command
        .args(["send", "--trust", "Tester"])
        .args(arguments)
        .current_dir(folder)
        .env("SCRIPTED_KEY", KEY);
    command.env("XDG_STATE_HOME", STATE);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs blocking work on another thread.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

/// Answers with twenty pieces over half a second; a message with `again` is answered at once.
fn slowly(_: usize, request: &Received) -> Vec<Act> {
    let body = request.json();
    let last = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message");
    if last.to_string().contains("again") {
        return says("Here again.");
    }
    let piece = |number| {
        json!({"choices": [{"index": 0, "delta": {"content": format!("{number} ")}}]}).to_string()
    };
    let mut data: Vec<String> = (0..20).map(piece).collect();
    data.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.into());
    data.push("[DONE]".into());
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    sse(&data)
        .into_iter()
        .flat_map(|act| [act, Act::Pause(Duration::from_millis(25))])
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_leaves_a_session_that_goes_on() {
    let server = Server::start(slowly).await;
    let folder = repository(&server.url);
    let root = folder.path().to_owned();
    let whole = {
        let root = root.clone();
        let began = Instant::now();
        let ran = aside(move || {
            send(&root, &["-m", "first", "--save", "whole"])
                .output()
                .expect("it runs")
        })
        .await;
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        began.elapsed()
    };
    let mut interrupted = 0;
    for number in 1..=KILLS {
        let root = root.clone();
        // Every other process is surely killed during its answer, however busy the machine is.
        let moment = match number % 2 {
            0 => Moment::Said(number / 2),
            _ => Moment::After(whole * number / (KILLS + 1)),
        };
        interrupted += u32::from(
            aside(move || kill_and_resume(&root, &format!("{number}.jsonl"), moment)).await,
        );
    }
    assert!(
        interrupted >= KILLS / 2,
        "only {interrupted} of {KILLS} were killed within a turn"
    );
    server.quiet().await;
}

/// When a process is killed.
enum Moment {
    After(Duration),
    /// Once it has printed this piece of its answer.
    Said(u32),
}

impl Moment {
    /// Waits for this moment, and returns the output of the process if it was read, so that it
    /// stays open.
    fn wait(self, child: &mut Child) -> Option<ChildStdout> {
        match self {
            Moment::After(moment) => {
                std::thread::sleep(moment);
                None
            }
            Moment::Said(piece) => Some(read_until(child, &format!("{piece} ")).0),
        }
    }
}

/// Kills a request at this moment and resumes it. Returns whether a turn was cut off.
fn kill_and_resume(root: &Path, file: &str, moment: Moment) -> bool {
    let mut child = send(root, &["-m", "first", "--save", file])
        .spawn()
        .expect("it starts");
    let _out = moment.wait(&mut child);
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    let Ok(before) = std::fs::read(root.join(file)) else {
        return false;
    };
    let loaded = Log::parse(&before).expect("the log of a killed process loads");
    let resumed = send(root, &["-m", "again", "--resume", file])
        .output()
        .expect("it runs");
    let Some(log) = loaded.log else {
        assert_eq!(resumed.status.code(), Some(2), "a session that never began");
        return false;
    };
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
    assert_eq!(resumed.stdout, b"Here again.\n");
    let after = std::fs::read(root.join(file)).expect("it is there");
    assert!(
        after.starts_with(&before[..before.len() - loaded.tail_bytes]),
        "earlier messages stay"
    );
    let loaded = Log::parse(&after).expect("it loads");
    let grown = loaded.log.expect("a header");
    assert_eq!(
        (loaded.tail_bytes, grown.to_text().into_bytes()),
        (0, after)
    );
    let added: Vec<&Message> = grown.history().iter().skip(log.history().len()).collect();
    let notes = added
        .iter()
        .filter(|message| message.item == Some(ItemKind::Interrupt))
        .count();
    assert_eq!(
        notes,
        usize::from(log.is_interrupted()),
        "the model is told about the interruption: {added:#?}"
    );
    assert_eq!(said(added.last().expect("an answer")), "Here again.");
    log.is_interrupted()
}

fn said(message: &Message) -> &str {
    match message.blocks.as_slice() {
        [Block::Text(text)] if message.role == Role::Assistant => text,
        other => panic!("{other:?}"),
    }
}

/// Reads the output of a process until it contains a string.
fn read_until(child: &mut Child, once: &str) -> (ChildStdout, Vec<u8>) {
    let mut out = child.stdout.take().expect("piped");
    let mut printed = Vec::new();
    while !String::from_utf8_lossy(&printed).contains(once) {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("it prints that");
        printed.push(byte[0]);
    }
    (out, printed)
}

/// Signals a process once its output contains a string. Returns its exit status, its output, and
/// the time that it took to end.
fn interrupt(mut child: Child, signal: Signal, once: &str) -> (ExitStatus, String, Duration) {
    let (mut out, mut printed) = read_until(&mut child, once);
    let began = Instant::now();
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    out.read_to_end(&mut printed).expect("UTF-8");
    let Output { status, .. } = child.wait_with_output().expect("it ended");
    (
        status,
        String::from_utf8_lossy(&printed).into_owned(),
        began.elapsed(),
    )
}

fn history(path: PathBuf) -> Vec<Message> {
    let bytes = std::fs::read(path).expect("it is there");
    let loaded = Log::parse(&bytes).expect("it loads");
    assert_eq!(loaded.tail_bytes, 0);
    loaded.log.expect("a header").history().to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_it_soon_and_keeps_what_was_said() {
    let begun = r#"{"choices":[{"index":0,"delta":{"content":"A part"}}]}"#;
    let server =
        Server::start(move |_, _| sse(&[begun]).into_iter().chain([Act::Hang]).collect()).await;
    let folder = repository(&server.url);
    let root = folder.path().to_owned();
    let (status, printed, took) = aside(move || {
        let child = send(&root, &["-m", "first", "--save", "file"])
            .spawn()
            .expect("it starts");
        interrupt(child, Signal::INT, "A part")
    })
    .await;
    assert_eq!((status.code(), printed.as_str()), (Some(130), "A part\n"));
    assert!(took < Duration::from_secs(2), "{took:?}");
    let history = history(folder.path().join("file"));
    assert_eq!(history.len(), 2);
    assert_eq!(said(&history[1]), "A part");
    server.quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_works_while_nobody_takes_the_output() {
    let piece = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(4096)
    );
    let server =
        Server::start(move |_, _| vec![stream_head(), Act::Forever(piece.clone().into_bytes())])
            .await;
    let folder = repository(&server.url);
    let root = folder.path().to_owned();
    let (code, took) = aside(move || {
        let mut child = send(&root, &["-m", "first", "--save", "file"])
            .spawn()
            .expect("it starts");
        let mut out = child.stdout.take().expect("piped");
        out.read_exact(&mut [0; 1]).expect("it prints");
        // Waits until the pipe is full and the program waits for a reader.
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        let status = child.wait().expect("it ended");
        drop(out);
        (status.code(), began.elapsed())
    })
    .await;
    assert_eq!(code, Some(130));
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(
        history(folder.path().join("file")).len(),
        2,
        "the received part is kept"
    );
    server.quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_end_the_tools_too() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        a_signal_ends_the_tools_too(signal).await;
    }
}

async fn a_signal_ends_the_tools_too(signal: Signal) {
    let server = Server::start(|_, _| calls(&[("c1", "wait", "{}")])).await;
    let folder = repository(&server.url);
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("tools.toml", TOOLS);
    write("wait", "#!/bin/sh\necho $$ > started\nsleep 60 &\nwait\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("wait"), mode).expect("ours");
    let root = folder.path().to_owned();
    let (status, leader, took) = aside(move || {
        let arguments = [
            "-m",
            "first",
            "--save",
            "file",
            "--tools",
            "tools.toml",
            "--format",
            "events",
        ];
        let child = send(&root, &arguments).spawn().expect("it starts");
        let began = Instant::now();
        let leader = loop {
            let started = std::fs::read_to_string(root.join("started")).unwrap_or_default();
            match started.trim().parse::<i32>() {
                Ok(leader) => break leader,
                Err(_) => assert!(
                    began.elapsed() < Duration::from_secs(10),
                    "the tool does not start"
                ),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (status, _, took) = interrupt(child, signal, "");
        (status, leader, took)
    })
    .await;
    assert_eq!(status.code(), Some(130));
    assert!(took < Duration::from_secs(2), "{took:?}");
    let left = history(folder.path().join("file"));
    let is_stopped = |block: &Block| matches!(block, Block::ToolResult { content, is_error: true, .. } if content.contains("was cancelled"));
    assert!(
        left.len() == 3 && left[2].blocks.iter().all(is_stopped),
        "{left:?}"
    );
    let leader = Pid::from_raw(leader).expect("a process");
    let began = Instant::now();
    while rustix::process::test_kill_process(leader).is_ok() {
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "the tool outlives the request"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    server.quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_did_before_its_process_was_killed_is_known_after_a_restart() {
    let server = Server::start(|number, _| match number {
        0 => calls(&[("c1", "wait", "{}"), ("c2", "quick", "{}")]),
        _ => says("Ok."),
    });
    let server = server.await;
    let folder = repository(&server.url);
    let both = format!("{QUICK}{TOOLS}");
    let tools = [
        ("tools.toml", &*both),
        ("quick", "#!/bin/sh\necho deployed\n"),
        ("wait", "#!/bin/sh\nsleep 60\n"),
    ];
    for (name, text) in tools {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("ours");
    }
    let root = folder.path().to_owned();
    let resumed = aside(move || {
        let arguments = [
            "-m",
            "first",
            "--save",
            "file",
            "--tools",
            "tools.toml",
            "--format",
            "events",
        ];
        let child = send(&root, &arguments).spawn().expect("it starts");
        interrupt(child, Signal::KILL, "\"event\":\"tool_result\"");
        send(
            &root,
            &["-m", "again", "--resume", "file", "--tools", "tools.toml"],
        )
        .output()
        .expect("it runs")
    })
    .await;
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
    let sent = server.received()[1].json();
    let results = sent["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] == "tool");
    let results: Vec<String> = results.map(ToString::to_string).collect();
    assert!(
        results.len() == 2 && results[0].contains("it is unknown whether the tool ran"),
        "{results:?}"
    );
    assert!(results[1].contains("deployed"), "{results:?}");
}
