//! The gate: reports for other systems, what takes part, fixes, baselines, end to end.

#![expect(clippy::disallowed_methods, reason = "the test itself writes repositories and runs the binary")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const AGENT: &str = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n\n[body]\ntemperature = 0.7\n";
const BROKEN: &str = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n[body]\nx = \"{{ ctx.histroy }}\"\n";

/// The formats that a report can be written in.
const FORMATS: [&str; 8] = ["human", "short", "json", "sarif", "github", "gitlab", "junit", "markdown"];

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A folder of files.
struct Folder {
    root: PathBuf,
    _scratch: TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = Folder { root: scratch.path().join("a repository"), _scratch: scratch };
        fs::create_dir_all(&folder.root).expect("created");
        files.iter().for_each(|(path, text)| folder.write(path, text));
        folder
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn reqc(&self, arguments: &[&str]) -> Ran {
        run(&self.root, arguments, None)
    }

    fn in_ci(&self, arguments: &[&str]) -> Ran {
        run(&self.root, arguments, Some("true"))
    }
}

fn run(folder: &Path, arguments: &[&str], ci: Option<&str>) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reqc"));
    command.args(arguments).current_dir(folder).env_remove("CI").env_remove("NO_COLOR");
    command.envs(ci.map(|value| ("CI", value)));
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code().expect("not killed"), out: text(output.stdout), err: text(output.stderr) }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn several_reports_are_written_at_once() {
    let folder = Folder::new(&[("agents/helper.toml", BROKEN)]);
    let files: Vec<String> = FORMATS.iter().map(|format| format!("{format}=report.{format}")).collect();
    let mut arguments = vec!["check"];
    files.iter().for_each(|file| arguments.extend(["--format", file]));
    let ran = folder.reqc(&arguments);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(ran.out.contains("did you mean `history`?"), "standard output is for people: {}", ran.out);
    for format in FORMATS {
        let report = folder.read(&format!("report.{format}"));
        assert!(report.contains("template/undefined") && !report.contains('\u{1b}'), "{format}: {report}");
        let shown = folder.reqc(&["check", "--format", format]);
        assert_eq!((shown.code, shown.out.as_str()), (1, report.as_str()), "{format}");
    }
}

#[test]
fn paths_start_at_the_top_of_the_checkout() {
    let folder = Folder::new(&[("team/x/agents/helper.toml", BROKEN), (".git/HEAD", "")]);
    let ran = folder.reqc(&["check", "team/x", "--format", "sarif"]);
    let place = &json(&ran.out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place["uri"], "team/x/agents/helper.toml");
    let ran = folder.reqc(&["check", "team/x", "--format", "github"]);
    assert!(ran.out.starts_with("::error file=team/x/agents/helper.toml,line=4,"), "{}", ran.out);
}

#[test]
fn annotations_may_stand_beside_a_report_for_people() {
    let folder = Folder::new(&[("agents/helper.toml", BROKEN)]);
    let ran = folder.reqc(&["check", "--format", "human", "--format", "github"]);
    assert!(ran.out.starts_with("template/undefined") && ran.out.contains("\n::error file=agents/helper.toml"));
    for wrong in [["json", "sarif"], ["human", "human"], ["json", "github"]] {
        let ran = folder.reqc(&["check", "--format", wrong[0], "--format", wrong[1]]);
        assert!(ran.code == 2 && ran.err.contains("standard output gets one format"), "{wrong:?}: {}", ran.err);
    }
}

#[test]
fn a_report_goes_only_where_a_file_may_be() {
    let folder = Folder::new(&[("agents/helper.toml", AGENT), ("out/x", "")]);
    let refused = |target: &str, why: &str| {
        let ran = folder.reqc(&["check", "--format", &format!("sarif={target}")]);
        assert!(ran.code == 2 && ran.err.contains(why), "{target}: {} {}", ran.out, ran.err);
    };
    refused("out", "it is a folder");
    refused("missing/x.sarif", "there is no folder");
    refused(".git/x.sarif", "it lies in a `.git`");
    refused("", "no file is named");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/tmp", folder.root.join("link")).expect("a link");
        refused("link/x.sarif", "is a link that lies in a repository");
    }
    let twice = folder.reqc(&["check", "--format", "sarif=a", "--format", "junit=a"]);
    assert!(twice.code == 2 && twice.err.contains("two reports go to `a`"), "{}", twice.err);
    let unknown = folder.reqc(&["check", "--format", "sarfi=a"]);
    assert!(unknown.code == 2 && unknown.err.contains("did you mean `sarif`?"), "{}", unknown.err);
    for other in [["list", "--format", "sarif"], ["compile", "--format", "junit=a"]] {
        let ran = folder.reqc(&other);
        assert!(
            ran.code == 2 && ran.err.contains("`check`, `compile --check` and `lint` do"),
            "{other:?}: {}",
            ran.err
        );
    }
}

/// What a stranger can put into names and texts.
const HOSTILE: [&str; 10] = [
    "`` ` ```",
    "a | b",
    "</details><script>alert(1)</script>",
    "@octocat #1",
    "::error file=x::y",
    "]]></failure><x>",
    "[x](javascript:alert(1))",
    "##[error]x",
    "%0A::set-output name=a::b",
    "\u{1b}[2J\r\u{202e}",
];

#[test]
fn nothing_of_a_repository_acts_in_a_report() {
    for text in HOSTILE {
        let quoted = serde_json::to_string(text).expect("a string").replace('\u{202e}', "\\u202e");
        let agent = format!("name = {quoted}\nextends = \"OpenAI Chat\"\n{quoted} = 1\n[body]\nx = {quoted}\n");
        let folder = Folder::new(&[("agents/helper.toml", &agent), (".git/HEAD", "")]);
        for format in FORMATS {
            let ran = folder.reqc(&["check", "--format", format]);
            assert_eq!(ran.code, 1, "{format}: {} {}", ran.out, ran.err);
            acts_in_nothing(format, &ran.out);
        }
    }
}

fn acts_in_nothing(format: &str, report: &str) {
    assert!(!report.contains(['\u{1b}', '\r', '\u{202e}']), "{format}: {report}");
    assert!(!report.contains("##["), "{format}: {report}");
    let own = |line: &str| line.starts_with("::error file=agents/helper.toml,") || line.starts_with("::warning file=");
    let is_command = |line: &&str| line.trim_start().starts_with("::") && !(format == "github" && own(line));
    assert_eq!(report.lines().find(is_command), None, "{format}");
    match format {
        "markdown" => assert_eq!(outside_of_code(report), None),
        "sarif" => {
            let results = &json(report)["runs"][0]["results"];
            let texts: Vec<String> =
                results.as_array().expect("a list").iter().map(|it| it["message"].to_string()).collect();
            assert!(texts.iter().all(|text| !text.contains("[x](")), "{texts:?}");
        }
        "junit" => assert!(!report.contains("]]>") && !report.contains("<x>") && !report.contains("<script")),
        "json" | "gitlab" => drop(json(report)),
        _ => {}
    }
}

/// A line outside of blocks of code that is not one of ours.
fn outside_of_code(markdown: &str) -> Option<&str> {
    let mut fence: Option<&str> = None;
    for line in markdown.lines() {
        match fence {
            Some(end) if line == end => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some(line.trim_end_matches("text")),
            None if line.is_empty() || line.starts_with("### reqc: ") || line == "</details>" => {}
            None if line.starts_with("<details") && line.ends_with("</summary>") => {}
            None => return Some(line),
        }
    }
    None
}

#[test]
fn lint_writes_reports_too() {
    let body = r#"{"model": "gpt-5", "messages": [{"role": "user", "content": 7}]}"#;
    let folder = Folder::new(&[("bodies/one.json", body), (".git/HEAD", "")]);
    let ran = run(&folder.root.join("bodies"), &["lint", "one.json", "--format", "gitlab"], None);
    assert_eq!(json(&ran.out)[0]["location"]["path"], "bodies/one.json", "{} {}", ran.out, ran.err);
}
