//! The output is the same on every machine: it does not depend on the number of threads, the
//! working directory, the time zone, the locale, the home folder, the path of the repository, or
//! the order in which its files were created.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself copies repositories and runs the binary"
)]

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Properties of a machine that must not affect the output.
struct Machine {
    threads: &'static str,
    zone: &'static str,
    locale: &'static str,
    home: PathBuf,
    directory: PathBuf,
}

fn machines(scratch: &Path) -> Vec<Machine> {
    let machine = |threads, zone, locale, home: PathBuf, directory: PathBuf| {
        fs::create_dir_all(&home).expect("a home folder");
        Machine {
            threads,
            zone,
            locale,
            home,
            directory,
        }
    };
    vec![
        machine("1", "UTC", "C", scratch.join("home"), scratch.to_path_buf()),
        machine(
            "2",
            "Asia/Kathmandu",
            "tr_TR.UTF-8",
            scratch.join("other home"),
            root().to_path_buf(),
        ),
        machine(
            "7",
            "America/St_Johns",
            "de_DE.UTF-8",
            scratch.join("дом"),
            root().join("src"),
        ),
    ]
}

impl Machine {
    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(program::path())
            .args(arguments)
            .current_dir(&self.directory)
            .env("RAYON_NUM_THREADS", self.threads)
            .env("TZ", self.zone)
            .env("LANG", self.locale)
            .env("LC_ALL", self.locale)
            .env("HOME", &self.home)
            .env_remove("CI")
            .output()
            .expect("the binary runs")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// Returns all files below a folder, sorted by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => pending.push(path),
                path => {
                    let name = path
                        .strip_prefix(folder)
                        .expect("below the folder")
                        .to_string_lossy()
                        .into_owned();
                    found.insert(name, fs::read(&path).expect("a file"));
                }
            }
        }
    }
    found
}

/// Copies the repository's own sources, created in reverse order.
fn copy_reversed(target: &Path) {
    for folder in [
        "agents",
        "contexts",
        "partials",
        "providers",
        "roles",
        "schemas",
    ] {
        for (name, bytes) in files(&root().join(folder)).into_iter().rev() {
            let path = target.join(folder).join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, bytes).expect("written");
        }
    }
    fs::copy(root().join("reqc.toml"), target.join("reqc.toml")).expect("copied");
}

#[test]
fn bodies_are_the_same_on_every_machine() {
    let scratch = tempfile::tempdir().expect("a folder");
    let copy = scratch.path().join("a copy with spaces");
    copy_reversed(&copy);
    let mut first: Option<BTreeMap<String, Vec<u8>>> = None;
    for (index, machine) in machines(scratch.path()).iter().enumerate() {
        for (place, repository) in [("here", root()), ("copy", copy.as_path())] {
            let out = scratch.path().join(format!("out-{index}-{place}"));
            let run = machine.run(&[
                "compile",
                "--out",
                text(&out),
                "--all-contexts",
                "-C",
                text(repository),
                "--quiet",
            ]);
            assert_eq!(
                run.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&run.stdout)
            );
            let bodies = files(&out);
            assert!(bodies.len() > 200, "{}", bodies.len());
            let known = first.get_or_insert_with(|| bodies.clone());
            let differing: Vec<&String> = bodies
                .keys()
                .filter(|name| known.get(*name) != bodies.get(*name))
                .collect();
            assert!(
                differing.is_empty() && known.len() == bodies.len(),
                "{index} {place}: {differing:?}"
            );
        }
    }
}

/// Writes profiles with a mistake of each stage, in reverse order if `backwards`.
fn broken(target: &Path, backwards: bool) {
    let mut sources: Vec<(String, String)> = vec![
        (
            "agents/cycle_a.toml".into(),
            "name = \"A\"\nextends = \"B\"\n".into(),
        ),
        (
            "agents/cycle_b.toml".into(),
            "name = \"B\"\nextends = \"A\"\n".into(),
        ),
        ("agents/syntax.toml".into(), "name = \"Syntax\n".into()),
        (
            "agents/typo.toml".into(),
            "name = \"Typo\"\nextends = \"OpenAI Chta\"\n".into(),
        ),
        ("partials/broken.jinja".into(), "{% if %}".into()),
        (
            "providers/none.toml".into(),
            "name = \"Mine\"\napi_key_ref = \"sk-123\"\n".into(),
        ),
        (
            "contexts/wrong.json".into(),
            "{\"name\": \"wrong\", \"kind\": \"chat\"".into(),
        ),
    ];
    for index in 0..12 {
        let body =
            "[body]\nmessages = \"[{{ ctx.histroy }}]\"\nn = \"{% include 'nowhere.jinja' %}\"\n";
        let text =
            format!("name = \"Agent {index}\"\nextends = \"OpenAI Chat\"\ntypo = {index}\n{body}");
        sources.push((format!("agents/agent_{index}.toml"), text));
        let text = format!(
            "name = \"Late {index}\"\nextends = \"Claude Chat\"\n[body]\nx = \"{{{{ ctx.nothing }}}}\"\n"
        );
        sources.push((format!("agents/late_{index}.toml"), text));
    }
    if backwards {
        sources.reverse();
    }
    for (path, text) in sources {
        let path = target.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }
}

#[test]
fn findings_are_the_same_on_every_machine() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (forwards, backwards) = (scratch.path().join("one"), scratch.path().join("two other"));
    broken(&forwards, false);
    broken(&backwards, true);
    for format in ["json", "short", "human"] {
        let mut first: Option<Vec<u8>> = None;
        for machine in machines(scratch.path()) {
            for repository in [&forwards, &backwards] {
                let run = machine.run(&["check", "--format", format, "-C", text(repository)]);
                assert_eq!(
                    run.status.code(),
                    Some(1),
                    "{}",
                    String::from_utf8_lossy(&run.stderr)
                );
                let known = first.get_or_insert_with(|| run.stdout.clone());
                assert_eq!(
                    String::from_utf8_lossy(known),
                    String::from_utf8_lossy(&run.stdout),
                    "{format}"
                );
            }
        }
        let shown = String::from_utf8(first.expect("runs")).expect("UTF-8");
        let codes = [
            "extends/cycle",
            "extends/unknown-parent",
            "include/missing",
            "Agent 7",
        ];
        let expected = if format == "short" {
            &codes[..3]
        } else {
            &codes[..]
        };
        expected
            .iter()
            .for_each(|code| assert!(shown.contains(code), "{code} in {shown}"));
    }
}
