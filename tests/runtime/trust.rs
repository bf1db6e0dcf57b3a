//! In a repository that the user has not allowed anything, `reqc send` does nothing.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test writes repositories and runs the binary"
)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use crate::fixture::KEY;
use crate::program;
use crate::send::repository;
use crate::server::{Server, calls, says};

/// A repository, the user's state folder, and a server that answers every request.
struct Scene {
    server: Server,
    root: TempDir,
    state: TempDir,
}

impl Scene {
    async fn new() -> Scene {
        let server = Server::start(|_, request| {
            match request.json()["tools"].is_array()
                && request.json()["messages"]
                    .as_array()
                    .is_some_and(|it| it.len() < 3)
            {
                true => calls(&[("c1", "look", "{}")]),
                false => says("ok"),
            }
        })
        .await;
        let root = repository(&server.url);
        Scene {
            server,
            root,
            state: tempfile::tempdir().expect("a folder"),
        }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join(path);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program::path());
        command
            .args(["send", "Tester", "-m", "Hi"])
            .args(arguments)
            .current_dir(self.root.path());
        command
            .env("SCRIPTED_KEY", KEY)
            .env("XDG_STATE_HOME", self.state.path())
            .env_remove("CI");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Returns the exit status, and the text on both outputs.
    async fn send(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().await.expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(said).expect("UTF-8"),
        )
    }

    async fn refuses(&self, arguments: &[&str], why: &str) {
        let before = self.server.received().len();
        let (code, said) = self.send(arguments).await;
        assert!(
            code == 2 && said.contains("is not trusted") && said.contains(why),
            "{why}: {said}"
        );
        assert!(said.contains("--trust") && !said.contains(KEY), "{said}");
        assert_eq!(self.server.received().len(), before, "nothing is sent");
    }

    async fn sends(&self, arguments: &[&str]) {
        let (code, said) = self.send(arguments).await;
        assert_eq!(code, 0, "{said}");
    }
}

fn provider(url: &str, key: &str) -> String {
    format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\napi_key_ref = \"{key}\"\n"
    )
}

#[tokio::test]
async fn servers_and_keys_are_allowed_one_by_one() {
    let scene = Scene::new().await;
    scene
        .refuses(&[], "with the key \"env:SCRIPTED_KEY\"")
        .await;
    scene.refuses(&[], &scene.server.url).await;
    for harmless in ["--dry-run", "--curl"] {
        let (code, said) = scene.send(&[harmless]).await;
        assert!(code == 0 && !said.contains("trust"), "{said}");
    }
    scene.sends(&["--trust"]).await;
    scene.sends(&[]).await;
    let other = Server::start(|_, _| says("mine now")).await;
    scene.write(
        "providers/scripted.toml",
        provider(&other.url, "env:SCRIPTED_KEY"),
    );
    scene.refuses(&[], &other.url).await;
    scene.write(
        "providers/scripted.toml",
        provider(&scene.server.url, "env:HOME"),
    );
    scene.refuses(&[], "env:HOME").await;
    scene.write(
        "providers/scripted.toml",
        provider(&scene.server.url, "env:SCRIPTED_KEY"),
    );
    scene.sends(&[]).await;
    assert!(other.received().is_empty());
    // The same files in another folder are a different repository.
    let copy = Scene {
        root: repository(&scene.server.url),
        ..scene
    };
    copy.refuses(&[], "SCRIPTED_KEY").await;
}

#[tokio::test]
async fn a_key_file_is_shown_with_what_its_links_lead_to_and_not_opened() {
    let scene = Scene::new().await;
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("id"), "private-line-1234\n").expect("written");
    symlink(home.path().join("id"), scene.root.path().join("key")).expect("linked");
    scene.write(
        "providers/scripted.toml",
        provider(&scene.server.url, "file:key"),
    );
    let real = std::fs::canonicalize(home.path().join("id")).expect("it is there");
    scene.refuses(&[], &format!("the file {real:?}")).await;
    scene.sends(&["--trust"]).await;
    std::fs::write(home.path().join("other"), "another-line-1234\n").expect("written");
    std::fs::remove_file(scene.root.path().join("key")).expect("ours");
    symlink(home.path().join("other"), scene.root.path().join("key")).expect("linked");
    scene.refuses(&[], "other").await;
    // Reading these neither blocks nor goes on forever.
    for (place, why) in [
        ("/dev/zero", "not a regular file"),
        ("fifo", "not a regular file"),
        (".", "not a regular file"),
    ] {
        if place == "fifo" {
            let made = std::process::Command::new("mkfifo")
                .arg(scene.root.path().join(place))
                .status()
                .expect("it runs");
            assert!(made.success());
        }
        scene.write(
            "providers/scripted.toml",
            provider(&scene.server.url, &format!("file:{place}")),
        );
        scene.refuses(&[], place).await;
        let (code, said) = scene.send(&["--trust"]).await;
        assert!(code == 2 && said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn machines_are_not_asked_and_a_checkout_cannot_trust_itself() {
    let scene = Scene::new().await;
    let ran = scene
        .command(&[])
        .env("CI", "true")
        .output()
        .await
        .expect("it runs");
    assert_eq!(ran.status.code(), Some(2));
    let inside = scene.root.path().join("state");
    let said = |output: std::process::Output| String::from_utf8(output.stderr).expect("UTF-8");
    let allowed = scene
        .command(&["--trust"])
        .env("XDG_STATE_HOME", &inside)
        .output()
        .await
        .expect("it runs");
    assert_eq!(allowed.status.code(), Some(0));
    assert!(said(allowed).contains("only to this run"));
    let again = scene
        .command(&[])
        .env("XDG_STATE_HOME", &inside)
        .output()
        .await
        .expect("it runs");
    assert_eq!(again.status.code(), Some(2));
    assert!(!inside.exists());
    // A repository that claims to be the bundled layer is not trusted either.
    scene.write("reqc.toml", "layer = \"bundled\"\n");
    let (code, said) = scene.send(&[]).await;
    assert!(code != 0, "{said}");
    assert_eq!(scene.server.received().len(), 1);
}

#[tokio::test]
async fn tools_are_allowed_with_the_content_of_what_they_run() {
    let scene = Scene::new().await;
    scene.sends(&["--trust"]).await;
    let ran = scene.root.path().join("ran");
    let script = |line: &str| format!("#!/bin/sh\n{line}\n");
    let tool = |command: &str, more: &str| {
        format!("[[tool]]\nname = \"look\"\ndescription = \"d\"\ncommand = {command}\n{more}\n")
    };
    let program = scene.write("look", script("echo > ran; echo found"));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
    scene.write("tools.toml", tool("[\"./look\", \"a b\"]", ""));
    let tools = ["--tools", "tools.toml"];
    scene.refuses(&tools, "the tool \"look\" runs").await;
    scene.refuses(&tools, "\"a b\"").await;
    assert!(!ran.exists());
    scene.sends(&["--tools", "tools.toml", "--trust"]).await;
    assert!(ran.exists());
    scene.sends(&tools).await;
    for changed in [
        tool("[\"./look\", \"a\", \"b\"]", ""),
        tool("[\"./look\", \"a b\"]", "env = [\"SCRIPTED_KEY\"]"),
    ] {
        scene.write("tools.toml", changed);
        scene.refuses(&tools, "the tool").await;
    }
    scene.write("tools.toml", tool("[\"./look\", \"a b\"]", ""));
    scene.sends(&tools).await;
    scene.write("look", script("curl https://evil.example"));
    scene.refuses(&tools, "look").await;
    // The script is an argument of its interpreter.
    scene.write("tools.toml", tool("[\"sh\", \"look\"]", ""));
    scene.write("look", script("echo fine"));
    scene.sends(&["--tools", "tools.toml", "--trust"]).await;
    scene.write("look", script("echo not so fine"));
    scene.refuses(&tools, "look").await;
}

#[tokio::test]
async fn names_of_a_repository_are_quoted() {
    let scene = Scene::new().await;
    let name = "x\\n::error::pwned\\u001b[31m\\u202e";
    let provider =
        provider(&scene.server.url, "env:SCRIPTED_KEY").replace("Scripted\"", &format!("{name}\""));
    scene.write("providers/scripted.toml", provider);
    let tester =
        std::fs::read_to_string(scene.root.path().join("agents/tester.toml")).expect("it is there");
    scene.write(
        "agents/tester.toml",
        tester.replace("\"Scripted\"", &format!("\"{name}\"")),
    );
    let (code, said) = scene.send(&[]).await;
    assert!(code == 2 && said.contains("is not trusted"), "{said}");
    assert!(
        !said.contains(['\u{1b}', '\u{202e}']) && !said.lines().any(|line| line.starts_with("::")),
        "{said}"
    );
}

#[tokio::test]
async fn looking_at_providers_reads_no_file_and_asks_no_keyring() {
    let scene = Scene::new().await;
    let fifo = scene.root.path().join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("it runs")
            .success()
    );
    let list = |key: &str| {
        scene.write("providers/scripted.toml", provider(&scene.server.url, key));
        let mut command = Command::new(program::path());
        command
            .args(["providers", "--format", "json"])
            .current_dir(scene.root.path());
        command
            .env("SCRIPTED_KEY", KEY)
            .env("XDG_STATE_HOME", scene.state.path())
            .kill_on_drop(true);
        command
    };
    let unreadable = scene.write("locked", "abc");
    std::fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o000)).expect("ours");
    for (key, found) in [
        ("file:fifo", serde_json::json!(false)),
        ("file:/dev/zero", serde_json::json!(false)),
        ("file:locked", serde_json::json!(true)),
        ("keyring:login/me", serde_json::Value::Null),
        ("env:SCRIPTED_KEY", serde_json::json!(true)),
    ] {
        let output = list(key).output().await.expect("it runs");
        let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let row = rows
            .as_array()
            .and_then(|rows| rows.iter().find(|row| row["name"] == "Scripted"))
            .expect("a row");
        assert_eq!(row["key_found"], found, "{row}");
    }
}
