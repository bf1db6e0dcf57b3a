//! Runs the shell steps of `action.yml` as GitHub does, with programs that record how they are
//! called.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes files and runs a shell"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Appends its arguments to `calls`, one per line, and writes a report to each file that `--format`
/// names.
const REQC: &str = r#"#!/bin/bash
printf '%s\n' "$@" '--' >>"$SCRATCH/calls"
for argument in "$@"; do
  case $argument in *=*.md|*=*.sarif) echo "${argument%%=*} of $1 $2" >"${argument#*=}" ;; esac
done
case "$*" in *--diff*) exit "${REVIEWED:-0}" ;; *) exit "${CHECKED:-0}" ;; esac
"#;

/// Finds no existing comment, and stores the body of the comment that it is asked to write.
const GH: &str = r#"#!/bin/bash
printf '%s\n' "$@" '--' >>"$SCRATCH/gh-calls"
for argument in "$@"; do case $argument in body=@*) cat "${argument#body=@}" >>"$SCRATCH/comment" ;; esac; done
"#;

struct Harness {
    scratch: TempDir,
}

struct Ran {
    code: i32,
    out: String,
    output: String,
}

impl Harness {
    fn new() -> Harness {
        let harness = Harness {
            scratch: tempfile::tempdir().expect("a folder"),
        };
        for (name, text) in [("reqc", REQC), ("gh", GH)] {
            let path = harness.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        harness
    }

    fn path(&self) -> &Path {
        self.scratch.path()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Runs a step as `shell: bash` does.
    fn step(&self, name: &str, set: &[(&str, &str)]) -> Ran {
        let script = self.path().join("step.sh");
        fs::write(&script, step(name)).expect("written");
        let (output, summary) = (self.path().join("output"), self.path().join("summary"));
        fs::write(&output, "").expect("written");
        let path = format!(
            "{}:{}",
            self.path().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(&script)
            .current_dir(self.path());
        command
            .env("SCRATCH", self.path())
            .env("PATH", path)
            .env("RUNNER_TEMP", self.path().join("temp"));
        command
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_STEP_SUMMARY", summary);
        command.envs([
            ("PROGRAM", "reqc"),
            ("COMMAND", "check"),
            ("DIRECTORY", "."),
            ("REVIEW", "true"),
        ]);
        command.envs([
            ("GITHUB_WORKFLOW", "ci"),
            ("GITHUB_JOB", "gate"),
            ("GITHUB_REPOSITORY", "a/b"),
            ("NUMBER", "7"),
        ]);
        let ran = command
            .envs(set.iter().copied())
            .output()
            .expect("bash runs");
        Ran {
            code: ran.status.code().expect("not killed"),
            out: String::from_utf8_lossy(&ran.stdout).into_owned()
                + &String::from_utf8_lossy(&ran.stderr),
            output: fs::read_to_string(output).expect("written"),
        }
    }
}

/// Returns the script of a step of the action.
fn step(name: &str) -> String {
    let action = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"))
        .expect("the action");
    let (_, step) = action
        .split_once(&format!("name: {name}\n      "))
        .expect("a step of the name");
    let (_, script) = step.split_once("run: |\n").expect("a script");
    let lines = script
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("        "));
    let lines: Vec<&str> = lines
        .map(|line| line.strip_prefix("        ").unwrap_or(line))
        .collect();
    lines.join("\n") + "\n"
}

/// Returns the value of an output of a step.
fn value<'r>(ran: &'r Ran, key: &str) -> &'r str {
    ran.output
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_default()
}

#[test]
fn arguments_are_taken_whole() {
    let harness = Harness::new();
    let arguments = "--agent 'Claude Chat'\n  --deny-warnings \"a b\" $HOME *\n";
    let ran = harness.step("reqc", &[("ARGUMENTS", arguments)]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let calls = harness.read("calls");
    assert!(
        calls.ends_with("\n--agent\nClaude Chat\n--deny-warnings\na b\n$HOME\n*\n--\n"),
        "{calls}"
    );
    let ran = Harness::new().step("reqc", &[("ARGUMENTS", "--agent 'Claude Chat")]);
    assert!(
        ran.code == 2
            && ran
                .out
                .contains("::error title=reqc::the input arguments has a quote"),
        "{}",
        ran.out
    );
    let harness = Harness::new();
    assert_eq!(harness.step("reqc", &[("ARGUMENTS", " \n")]).code, 0);
    assert!(
        harness.read("calls").ends_with("reqc.md\n--\n"),
        "{}",
        harness.read("calls")
    );
}

#[test]
fn a_pull_request_is_reviewed() {
    let harness = Harness::new();
    let set = [("BASE", "abc"), ("REVIEW_ARGUMENTS", "--fail-on removed")];
    let ran = harness.step("reqc", &set);
    assert_eq!(value(&ran, "status"), "0", "{}", ran.out);
    assert!(
        harness.read("calls").contains("\ncompile\n--diff\nabc\n"),
        "{}",
        harness.read("calls")
    );
    assert_eq!(
        harness.read("summary"),
        "markdown of check --format\nmarkdown of compile --diff\n"
    );
    let (id, reports) = (
        value(&ran, "id").to_owned(),
        value(&ran, "reports").to_owned(),
    );
    let ran = harness.step("comment", &[("REPORTS", &reports), ("ID", &id)]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let comment =
        format!("<!-- reqc:{id} -->\nmarkdown of check --format\nmarkdown of compile --diff\n");
    assert_eq!(harness.read("comment"), comment);
    let status =
        |set: &[(&str, &str)]| value(&Harness::new().step("reqc", set), "status").to_owned();
    assert_eq!(status(&[set[0], set[1], ("REVIEWED", "1")]), "1");
    assert_eq!(
        status(&[set[0], ("REVIEWED", "1")]),
        "0",
        "the check finds the same mistakes"
    );
    assert_eq!(status(&[set[0], ("CHECKED", "1")]), "1");
}

#[test]
fn uses_are_told_apart() {
    let id = |set: &[(&str, &str)]| value(&Harness::new().step("reqc", set), "id").to_owned();
    let plain = id(&[]);
    assert!(plain.len() == 12 && plain == id(&[]), "{plain}");
    for other in [
        ("DIRECTORY", "x"),
        ("COMMAND", "compile"),
        ("ARGUMENTS", "-q"),
        ("GITHUB_JOB", "other"),
    ] {
        assert_ne!(id(&[other]), plain, "{other:?}");
    }
    assert_eq!(id(&[("ID", "team-a.1")]), "team-a.1");
    assert_eq!(Harness::new().step("reqc", &[("ID", "a b -->")]).code, 2);
}
