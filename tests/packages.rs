//! Contents and names of packages: manual pages contain the text of `--help`, and files agree on
//! the platforms and the repository.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads documents and runs the binary"
)]

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .replace("\r\n", "\n")
}

fn reqc(arguments: &[&str]) -> String {
    let output = Command::new(program::path())
        .args(arguments)
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn manual_pages_hold_every_command_and_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    reqc(&["man", "--out", out.to_str().expect("UTF-8")]);
    let mut pages: BTreeSet<String> = fs::read_dir(&out)
        .expect("written")
        .map(|page| {
            page.expect("read")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    compare(&out, &mut pages, &[]);
    assert!(pages.is_empty(), "pages of no command: {pages:?}");
}

/// Fails unless the page of a command describes its options and names its subcommands, and likewise
/// for their pages. Removes these pages from the set.
fn compare(out: &Path, pages: &mut BTreeSet<String>, command: &[&str]) {
    let name = ["reqc"]
        .iter()
        .chain(command)
        .copied()
        .collect::<Vec<_>>()
        .join("-");
    let file = format!("{name}.1");
    assert!(pages.remove(&file), "there is no {file}");
    let page = plain(&fs::read_to_string(out.join(&file)).expect("a page"));
    let help = reqc(&[command, &["--help"]].concat());
    let (options, below) = (options(&help), commands(&help));
    assert!(options.len() > 3, "{help}");
    for option in options {
        assert!(
            page.lines().any(|line| begins_entry(line, option)),
            "{file} does not describe {option}:\n{page}"
        );
    }
    for below in below {
        assert!(
            page.contains(&format!("{name}-{below}(1)")),
            "{file} does not name {below}"
        );
        compare(out, pages, &[command, &[below]].concat());
    }
}

/// Returns `true` if a line of a page begins the entry of an option: `-q, --quiet` or
/// `--deny <CODE>`.
fn begins_entry(line: &str, option: &str) -> bool {
    line.starts_with('-') && line.split([' ', ',']).any(|word| word == option)
}

/// Returns the text of a page without roff markup.
fn plain(page: &str) -> String {
    let marks = [
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\-", "-"),
        ("\\*(Aq", "'"),
    ];
    marks.iter().fold(page.to_owned(), |text, (mark, meaning)| {
        text.replace(mark, meaning)
    })
}

/// Returns the options that a help text describes, long and short.
fn options(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .filter(|line| line.len() - line.trim_start().len() < 10)
        .map(str::trim_start);
    let described = lines
        .filter(|line| line.starts_with('-'))
        .flat_map(|line| line.split([' ', ',']));
    described
        .filter(|word| word.starts_with('-') && word.len() > 1)
        .collect()
}

/// Returns the commands that a help text lists, except for `help`.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let lines = listed.lines().take_while(|line| !line.trim().is_empty());
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect()
}

#[test]
fn one_list_of_platforms() {
    let workflow = targets(&document(".github/workflows/release.yml"));
    assert_eq!(workflow.len(), 8, "{workflow:?}");
    assert_eq!(workflow, targets(&document("scripts/npm-packages")));
    assert_eq!(workflow, targets(&document("docs/install.md")));
    let windows: BTreeSet<String> = workflow
        .into_iter()
        .filter(|target| target.contains("windows"))
        .collect();
    assert_eq!(
        windows,
        targets(&document("Cargo.toml")),
        "`cargo binstall` needs to know which archives are no .tgz"
    );
}

#[test]
fn one_name_of_archives() {
    let cargo = document("Cargo.toml");
    assert!(
        cargo.contains("/{ name }-v{ version }-{ target }{ archive-suffix }\""),
        "the address for `cargo binstall`"
    );
    assert!(
        cargo.contains("bin-dir = \"{ name }-v{ version }-{ target }/"),
        "the folder in the archive"
    );
    assert!(
        document(".github/workflows/release.yml").contains("name=reqc-v$VERSION-$TARGET\n"),
        "the name in the release workflow"
    );
    assert!(
        document("docs/install.md")
            .contains("\ntar -xzf reqc-v0.1.0-x86_64-unknown-linux-gnu.tgz\n")
    );
}

#[test]
fn one_version_of_rust() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert!(document("Containerfile").contains(&format!("FROM rust:{rust}-alpine AS build\n")));
    assert!(document("docs/install.md").contains(&format!("the Rust toolchain ({rust} or newer)")));
}

/// Returns the target triples that a string contains.
fn targets(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
    let is_target = |word: &&str| {
        ["x86_64-", "aarch64-"]
            .iter()
            .any(|arch| word.starts_with(arch))
            && word.matches('-').count() > 1
    };
    words.filter(is_target).map(str::to_owned).collect()
}

#[test]
fn one_repository() {
    // The placeholder in the documents until a repository is set.
    let owned = match env!("CARGO_PKG_REPOSITORY") {
        "" => "your-organisation/reqc",
        set => set.strip_prefix("https://github.com/").expect("on GitHub"),
    };
    for path in ["docs/ci.md", "docs/install.md"] {
        let text = document(path);
        let named = ["github.com/", "ghcr.io/", "uses: "]
            .iter()
            .flat_map(|before| text.split(before).skip(1));
        let named: Vec<&str> = named
            .filter(|rest| {
                rest.split(char::is_whitespace)
                    .next()
                    .is_some_and(|word| word.contains("/reqc"))
            })
            .collect();
        assert!(!named.is_empty(), "{path} names no repository");
        for rest in named {
            assert!(
                rest.starts_with(owned),
                "{path} does not name {owned}, as Cargo.toml does: {rest:.60}"
            );
        }
    }
}
