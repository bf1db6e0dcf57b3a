//! Checks of the CI gate, end to end: reports for other systems, selections, fixes and baselines.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes repositories and runs the binary"
)]

mod git;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use git::git;
use serde_json::Value;
use tempfile::TempDir;

const AGENT: &str = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n\n[body]\ntemperature = 0.7\n";
const BROKEN: &str =
    "name = \"Helper\"\nextends = \"OpenAI Chat\"\n[body]\nx = \"{{ ctx.histroy }}\"\n";

/// The formats of reports.
const FORMATS: [&str; 8] = [
    "human", "short", "json", "sarif", "github", "gitlab", "junit", "markdown",
];

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A temporary folder of files.
struct Folder {
    root: PathBuf,
    _scratch: TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = Folder {
            root: scratch.path().join("a repository"),
            _scratch: scratch,
        };
        fs::create_dir_all(&folder.root).expect("created");
        files
            .iter()
            .for_each(|(path, text)| folder.write(path, text));
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
    let mut command = Command::new(program::path());
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("CI")
        .env_remove("NO_COLOR");
    command.envs(ci.map(|value| ("CI", value)));
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn several_reports_are_written_at_once() {
    let folder = Folder::new(&[("agents/helper.toml", BROKEN)]);
    let files: Vec<String> = FORMATS
        .iter()
        .map(|format| format!("{format}=report.{format}"))
        .collect();
    let mut arguments = vec!["check"];
    files
        .iter()
        .for_each(|file| arguments.extend(["--format", file]));
    let ran = folder.reqc(&arguments);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(
        ran.out.contains("did you mean `history`?"),
        "standard output is for people: {}",
        ran.out
    );
    for format in FORMATS {
        let report = folder.read(&format!("report.{format}"));
        assert!(
            report.contains("template/undefined") && !report.contains('\u{1b}'),
            "{format}: {report}"
        );
        let shown = folder.reqc(&["check", "--format", format]);
        assert_eq!(
            (shown.code, shown.out.as_str()),
            (1, report.as_str()),
            "{format}"
        );
    }
}

#[test]
fn paths_start_at_the_top_of_the_checkout() {
    let folder = Folder::new(&[("team/x/agents/helper.toml", BROKEN), (".git/HEAD", "")]);
    let ran = folder.reqc(&["check", "team/x", "--format", "sarif"]);
    let place = &json(&ran.out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place["uri"], "team/x/agents/helper.toml");
    let ran = folder.reqc(&["check", "team/x", "--format", "github"]);
    assert!(
        ran.out
            .starts_with("::error file=team/x/agents/helper.toml,line=4,"),
        "{}",
        ran.out
    );
}

#[test]
fn annotations_may_stand_beside_a_report_for_people() {
    let folder = Folder::new(&[("agents/helper.toml", BROKEN)]);
    let ran = folder.reqc(&["check", "--format", "human", "--format", "github"]);
    assert!(
        ran.out.starts_with("template/undefined")
            && ran.out.contains("\n::error file=agents/helper.toml")
    );
    for wrong in [["json", "sarif"], ["human", "human"], ["json", "github"]] {
        let ran = folder.reqc(&["check", "--format", wrong[0], "--format", wrong[1]]);
        assert!(
            ran.code == 2 && ran.err.contains("standard output can have only one format"),
            "{wrong:?}: {}",
            ran.err
        );
    }
}

#[test]
fn a_report_goes_only_where_a_file_may_be() {
    let folder = Folder::new(&[("agents/helper.toml", AGENT), ("out/x", "")]);
    let refused = |target: &str, why: &str| {
        let ran = folder.reqc(&["check", "--format", &format!("sarif={target}")]);
        assert!(
            ran.code == 2 && ran.err.contains(why),
            "{target}: {} {}",
            ran.out,
            ran.err
        );
    };
    refused("out", "it is a folder");
    refused("missing/x.sarif", "there is no folder");
    refused(".git/x.sarif", "it is in a `.git` folder");
    refused("", "the file name after `=` is missing");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/tmp", folder.root.join("link")).expect("a link");
        refused("link/x.sarif", "is a link inside a repository");
    }
    let twice = folder.reqc(&["check", "--format", "sarif=a", "--format", "junit=a"]);
    assert!(
        twice.code == 2 && twice.err.contains("two reports would be written to `a`"),
        "{}",
        twice.err
    );
    let unknown = folder.reqc(&["check", "--format", "sarfi=a"]);
    assert!(
        unknown.code == 2 && unknown.err.contains("did you mean `sarif`?"),
        "{}",
        unknown.err
    );
    for other in [
        ["list", "--format", "sarif"],
        ["compile", "--format", "junit=a"],
    ] {
        let ran = folder.reqc(&other);
        assert!(
            ran.code == 2
                && ran
                    .err
                    .contains("`check`, `compile --check` and `lint` write reports"),
            "{other:?}: {}",
            ran.err
        );
    }
}

/// Hostile names and strings.
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
    let folder = Folder::new(&[(".git/HEAD", "")]);
    for (number, text) in HOSTILE.iter().enumerate() {
        let quoted = serde_json::to_string(text)
            .expect("a string")
            .replace('\u{202e}', "\\u202e");
        let agent = format!(
            "name = {quoted}\nextends = \"OpenAI Chat\"\n{quoted} = 1\n[body]\nx = {quoted}\n"
        );
        folder.write(&format!("agents/helper{number}.toml"), &agent);
    }
    for format in FORMATS {
        let ran = folder.reqc(&["check", "--format", format]);
        assert_eq!(ran.code, 1, "{format}: {} {}", ran.out, ran.err);
        acts_in_nothing(format, &ran.out);
    }
}

fn acts_in_nothing(format: &str, report: &str) {
    assert!(
        !report.contains(['\u{1b}', '\r', '\u{202e}']),
        "{format}: {report}"
    );
    assert!(!report.contains("##["), "{format}: {report}");
    let starts = [
        "::error file=agents/helper",
        "::warning file=agents/helper",
        "::notice title=reqc::",
    ];
    let own = |line: &str| starts.iter().any(|start| line.starts_with(start));
    let is_command =
        |line: &&str| line.trim_start().starts_with("::") && !(format == "github" && own(line));
    assert_eq!(report.lines().find(is_command), None, "{format}");
    match format {
        "markdown" => assert_eq!(outside_of_code(report), None),
        "sarif" => {
            let results = &json(report)["runs"][0]["results"];
            let texts: Vec<String> = results
                .as_array()
                .expect("a list")
                .iter()
                .map(|it| it["message"].to_string())
                .collect();
            assert!(texts.iter().all(|text| !text.contains("[x](")), "{texts:?}");
        }
        "junit" => assert!(
            !report.contains("]]>") && !report.contains("<x>") && !report.contains("<script")
        ),
        "json" | "gitlab" => drop(json(report)),
        _ => {}
    }
}

/// Returns a line outside code blocks that reqc itself did not write.
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
    let ran = run(
        &folder.root.join("bodies"),
        &["lint", "one.json", "--format", "gitlab"],
        None,
    );
    assert_eq!(
        json(&ran.out)[0]["location"]["path"],
        "bodies/one.json",
        "{} {}",
        ran.out,
        ran.err
    );
}

#[test]
fn where_ci_is_set_nothing_is_written_that_was_not_asked_for() {
    let folder = Folder::new(&[("agents/helper.toml", AGENT)]);
    let refused = folder.in_ci(&["compile"]);
    assert!(
        refused.code == 2
            && refused
                .err
                .contains("write them anyway with `reqc compile --write`"),
        "{}",
        refused.err
    );
    assert!(!folder.root.join("golden").exists());
    assert_eq!(folder.in_ci(&["compile", "--out", "bodies"]).code, 0);
    assert_eq!(folder.in_ci(&["compile", "--write"]).code, 0);
    assert_eq!(folder.in_ci(&["compile", "--check"]).code, 0);
}

#[test]
fn the_last_line_is_the_command_that_accepts() {
    let folder = Folder::new(&[("x y/agents/helper.toml", AGENT)]);
    let last = |arguments: &[&str]| {
        let ran = folder.reqc(arguments);
        assert_eq!(ran.code, 1, "{}", ran.out);
        ran.out.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        last(&["-C", "x y", "compile", "--check"]),
        "to accept the changes: reqc compile -C 'x y'"
    );
    assert_eq!(
        last(&[
            "-C", "x y", "compile", "--check", "--agent", "Helper", "--format", "short"
        ]),
        "to accept the changes: reqc compile -C 'x y' --agent Helper"
    );
    folder.write("x y/agents/helper.toml", BROKEN);
    assert!(
        !last(&["-C", "x y", "compile", "--check"]).contains("to accept"),
        "errors come first"
    );
}

const OTHER: &str =
    "name = \"Other\"\nextends = \"OpenAI Chat\"\n[body]\ny = \"{{ ctx.histroy }}\"\n";

#[test]
fn paths_limit_what_is_checked() {
    let folder = Folder::new(&[
        ("agents/x/helper.toml", AGENT),
        ("agents/y/other.toml", OTHER),
        ("roles/unused.md", "x"),
        ("docs/x.md", "x"),
        ("reqc.toml", ""),
    ]);
    assert_eq!(folder.reqc(&["check"]).code, 1);
    let ran = folder.reqc(&["check", "agents/x/helper.toml"]);
    assert!(
        ran.code == 0 && ran.out.starts_with("1 agent × "),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = folder.reqc(&["check", "agents/x"]);
    assert!(
        ran.code == 0 && ran.out.starts_with("1 agent × "),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = folder.reqc(&[
        "check",
        "agents/x/helper.toml",
        "agents/y/other.toml",
        "--format",
        "short",
    ]);
    assert!(
        ran.code == 1 && ran.out.contains("agents/y/other.toml:4"),
        "{}{}",
        ran.out,
        ran.err
    );
    // Run from the parent folder, as hooks of a repository with several folders do, and from
    // inside.
    let above = folder.root.parent().expect("a folder");
    let ran = run(above, &["check", "a repository/agents/x/helper.toml"], None);
    assert!(
        ran.code == 0 && ran.out.starts_with("1 agent × "),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = run(
        &folder.root.join("agents"),
        &["check", "y/other.toml"],
        None,
    );
    assert!(
        ran.code == 1 && ran.out.contains("1 agent"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(
        folder.reqc(&["check", "."]).out,
        folder.reqc(&["check"]).out,
        "the root selects the whole repository"
    );
}

#[test]
fn a_path_that_is_nothing_of_the_repository_is_told() {
    let folder = Folder::new(&[
        ("agents/helper.toml", AGENT),
        ("docs/x.md", "x"),
        ("reqc.toml", ""),
        (".git/HEAD", ""),
    ]);
    let told = |arguments: &[&str], what: &str| {
        let ran = folder.reqc(&[&["check"], arguments].concat());
        assert!(
            ran.code == 2 && ran.err.contains(what),
            "{arguments:?}: {}{}",
            ran.out,
            ran.err
        );
    };
    told(
        &["docs/x.md"],
        "`docs/x.md` is not part of the agent repository",
    );
    told(
        &["agents/helper.toml", "docs/x.md"],
        "`docs/x.md` is not part of the agent repository",
    );
    told(&["agents/gone.toml"], "`agents/gone.toml` does not exist");
    told(
        &["agents/helper.toml", "/tmp"],
        "`/tmp` is outside the agent repository",
    );
    told(&["--affected", "HEAD", "agents"], "cannot be used with");
    told(&["--shard", "3/2"], "write the number of the shard");
}

#[test]
fn only_what_changed_files_reach_is_checked() {
    let reader =
        "name = \"Reader\"\nextends = \"OpenAI Chat\"\nsystem_prompt = '{{ agent_role(\"x\") }}'\n";
    let folder = Folder::new(&[
        ("agents/helper.toml", AGENT),
        ("agents/reader.toml", reader),
        ("roles/x.md", "x"),
        ("reqc.toml", ""),
    ]);
    assert_eq!(folder.reqc(&["compile"]).code, 0);
    git(&folder.root, &["init", "-q"]);
    git(&folder.root, &["add", "-A"]);
    git(&folder.root, &["commit", "-qm", "x"]);
    let first = |arguments: &[&str]| {
        folder
            .reqc(arguments)
            .out
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        first(&["check", "--affected"]).starts_with("0 agents × "),
        "{}",
        first(&["check", "--affected"])
    );
    folder.write("roles/x.md", "y");
    let ran = folder.reqc(&["check", "--affected", "HEAD"]);
    assert!(
        ran.code == 0 && ran.out.starts_with("1 agent × "),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = folder.reqc(&["compile", "--check", "--affected"]);
    assert!(
        ran.code == 1 && ran.out.contains("(Reader)") && !ran.out.contains("Helper"),
        "{}{}",
        ran.out,
        ran.err
    );
    // Golden files can be edited by hand.
    folder.write("golden/helper/plain-turn.json", "{}");
    let ran = folder.reqc(&["compile", "--check", "--affected"]);
    assert!(
        ran.code == 1 && ran.out.contains("2 agents × "),
        "{}{}",
        ran.out,
        ran.err
    );
}

const UNQUOTED: &str = r#"name = "Third"
extends = "OpenAI Chat"
[body]
metadata = '{"a": "{{ ctx.history[0].content }}x"}'
"#;

/// Mistakes, each with the text that fixes it.
const MISTAKES: [(&str, &str, &str); 12] = [
    (
        "agents/a.toml",
        "name = \"A\"\nextend = \"OpenAI Chat\"\n",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = 'OpenAI Caht'\n",
        "name = \"A\"\nextends = 'OpenAI Chat'\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\r\nextends = \"OpenAI Chat\"\r\nprovider_instance = \"OpenA\"\r\n",
        "name = \"A\"\r\nextends = \"OpenAI Chat\"\r\nprovider_instance = \"OpenAI\"\r\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n[body]\nuser = \"{{ ctx.histroy[0].content | tojson }}\"\n",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n[body]\nuser = \"{{ ctx.history[0].content | tojson }}\"\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n[body]\nstop = '[\"a\" \"b\" \"c\", {{ tojson(\"d\") }}]'\n",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n[body]\nstop = '[\"a\", \"b\", \"c\", {{ tojson(\"d\") }}]'\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n[body]\nstop = '[\"a\",, \"b\", {{ tojson(\"d\") }}]'\n",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n[body]\nstop = '[\"a\", \"b\", {{ tojson(\"d\") }}]'\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n[body]\nuser = '\"{{ ctx.history[0].content }}\"'\n",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n[body]\nuser = '{{ tojson(ctx.history[0].content) }}'\n",
    ),
    (
        "reqc.toml",
        "# ours\n[[allow]]\ncode = \"key/unknown\"\nreason = \"x\"\n\n[rules] # levels\n",
        "# ours\n[rules] # levels\n",
    ),
    (
        "contexts/mine.json",
        "{\"name\": \"mine\", \"kind\": \"chat\" \"why\": \"w\",, \"history\": [{\"role\": \"user\", \"content\": \"x\"},]}\n",
        "{\"name\": \"mine\", \"kind\": \"chat\", \"why\": \"w\", \"history\": [{\"role\": \"user\", \"content\": \"x\"}]}\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n# ours\n[body]\ncache_breakpoints = [\n  \"tools\",\n]\nenable_tools = true # on\n\nseed = 1\n",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n# ours\ncache_breakpoints = [\n  \"tools\",\n]\nenable_tools = true # on\n[body]\n\nseed = 1\n",
    ),
    (
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\ntags = [\"a\" \"b\",, \"c\"]\n",
        "name = \"A\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\ntags = [\"a\", \"b\", \"c\"]\n",
    ),
    (
        "reqc.toml",
        "[rules]\n\"schema/unknown-feild\" = \"error\"\n",
        "[rules]\n\"schema/unknown-field\" = \"error\"\n",
    ),
];

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn what_has_one_right_answer_is_mended() {
    for (path, wrong, right) in MISTAKES {
        let sound = [
            ("agents/a.toml", "name = \"A\"\nextends = \"OpenAI Chat\"\n"),
            (path, wrong),
        ];
        let folder = Folder::new(&sound);
        let found = folder.reqc(&["check", "--format", "json"]);
        let shown = folder.reqc(&["check", "--fix", "--dry-run"]);
        assert!(
            shown.out.starts_with(&format!("{path}\n@@ ")),
            "{wrong}: {}\n{}",
            shown.out,
            found.out
        );
        assert_eq!(folder.read(path), wrong, "nothing is written");
        let fixes: Vec<Value> = json(&found.out)["diagnostics"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it["fixes"].clone())
            .collect();
        assert!(
            fixes.iter().any(|fixes| fixes[0]["file"] == path),
            "{fixes:?}"
        );
        let sarif = json(&folder.reqc(&["check", "--format", "sarif"]).out);
        let results = sarif["runs"][0]["results"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert!(
            results.iter().any(
                |result| result["fixes"][0]["artifactChanges"][0]["replacements"][0].is_object()
            )
        );
        let mended = folder.reqc(&["check", "--fix"]);
        assert_eq!(folder.read(path), right, "{}", mended.out);
        assert!(mended.out.starts_with("fixed: "), "{}", mended.out);
        assert_eq!(
            folder.reqc(&["check"]).code,
            0,
            "{}",
            folder.reqc(&["check"]).out
        );
        assert!(
            folder
                .reqc(&["check", "--fix"])
                .out
                .starts_with("fixed: 0 edits of 0 files\n")
        );
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn mending_makes_nothing_worse() {
    let texts = [
        BROKEN.to_owned(),
        UNQUOTED.to_owned(),
        // As `extends`, this would cause another error.
        "name = \"B\"\nextend = \"Nobody\"\n[body]\nx = 1\n".to_owned(),
        // There are two possible fixes.
        "name = \"C\"\nextends = \"Ollama Chat\"\n[body]\nx = '{% for m in ctx.history %}{\"a\": 1} {% endfor %}'\n"
            .to_owned(),
        format!("{BROKEN}y = \"{{{{ ctx.histroy }}}}{{{{ ctx.histroy }}}}\"\nprovider_instnce = \"x\"\n"),
    ];
    for text in texts {
        let folder = Folder::new(&[("agents/a.toml", &text)]);
        let errors =
            || json(&folder.reqc(&["check", "--format", "json"]).out)["summary"]["errors"].as_u64();
        let before = errors();
        let shown = folder.reqc(&["check", "--fix", "--dry-run", "--format", "short"]);
        assert_eq!(folder.read("agents/a.toml"), text, "{}", shown.out);
        folder.reqc(&["check", "--fix"]);
        assert!(
            errors() <= before,
            "{text}\n{}",
            folder.read("agents/a.toml")
        );
    }
}

const ODD: &str =
    "name = \"Helper\"\nextends = \"OpenAI Chat\"\nretries = 3\n\n[body]\ntemperatur = 1\n";

#[test]
fn a_baseline_silences_what_is_found_today() {
    let before = "# ours\r\n[rules]\r\n";
    let folder = Folder::new(&[("agents/[odd].toml", ODD), ("reqc.toml", before)]);
    assert_eq!(folder.reqc(&["check"]).code, 1);
    let ran = folder.reqc(&["baseline", "--reason", "before the gate"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(
        ran.out
            .starts_with("reqc.toml: 2 entries for 2 findings, until 20"),
        "{}",
        ran.out
    );
    let text = folder.read("reqc.toml");
    assert!(
        text.starts_with(before) && text.contains("reason = \"before the gate\"\r\nexpires = 20"),
        "{text}"
    );
    assert_eq!(folder.reqc(&["check", "--deny-warnings"]).code, 0);
    assert!(
        folder
            .reqc(&["baseline"])
            .out
            .starts_with("there is nothing to allow\n")
    );
    assert_eq!(folder.read("reqc.toml"), text);
    // Fixed findings make their entries stale, and `--fix` removes the entries.
    folder.write("agents/[odd].toml", AGENT);
    assert!(folder.reqc(&["check"]).out.contains("2 warnings"));
    folder.reqc(&["check", "--fix"]);
    assert_eq!(folder.read("reqc.toml"), before);
}

#[test]
fn a_baseline_holds_nothing_that_cannot_be_allowed() {
    let folder = Folder::new(&[("agents/a.toml", BROKEN)]);
    let ran = folder.reqc(&["baseline"]);
    assert!(
        ran.code == 1 && ran.out.contains("; 1 finding cannot be allowed"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(!folder.root.join("reqc.toml").exists());
    let folder = Folder::new(&[("agents/a.toml", ODD), ("reqc.toml", "allow = []\n")]);
    let ran = folder.reqc(&["baseline"]);
    assert!(
        ran.code == 2 && ran.err.contains("write `[[allow]]` tables"),
        "{}",
        ran.err
    );
    assert_eq!(folder.read("reqc.toml"), "allow = []\n");
    let ran = folder.reqc(&["baseline", "--expires", "2001-01-01"]);
    assert!(
        ran.code == 2 && ran.err.contains("is not a date in the future"),
        "{}",
        ran.err
    );
}

#[test]
fn a_pinned_version_refuses_another_one() {
    let folder = Folder::new(&[
        ("agents/a.toml", AGENT),
        ("reqc.toml", "[reqc]\nversion = \"=0.0.7\"\n"),
    ]);
    for command in ["check", "compile"] {
        let ran = folder.reqc(&[command, "--format", "short"]);
        assert!(
            ran.code == 1
                && ran
                    .out
                    .contains("reqc.toml:2:11: error[config/other-version]"),
            "{}",
            ran.out
        );
    }
    folder.write(
        "reqc.toml",
        concat!("[reqc]\nversion = \"", env!("CARGO_PKG_VERSION"), "\"\n"),
    );
    assert_eq!(folder.reqc(&["check"]).code, 0);
}

/// Returns the scripts of a workflow file, each with the name of its step.
fn scripts(yaml: &str) -> Vec<(String, String)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut found, mut name): (Vec<(String, String)>, String) = (Vec::new(), String::new());
    let lines: Vec<&str> = yaml.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some((_, said)) = line.split_once("name: ") {
            said.clone_into(&mut name);
        }
        let Some(script) = line.trim_start().strip_prefix("run: ") else {
            continue;
        };
        let inside = lines[at + 1..]
            .iter()
            .take_while(|inner| inner.is_empty() || indent(inner) > indent(line));
        let block = inside
            .map(|inner| inner.get(indent(line) + 2..).unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n");
        found.push((
            name.clone(),
            if script == "|" {
                block
            } else {
                script.to_owned()
            },
        ));
    }
    found
}

/// Stands in for `gh`: finds one existing comment or none, and logs its arguments.
const GH: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$GH_LOG"
case "$*" in *--paginate*) [ -z "$GH_KNOWN" ] || echo "$GH_KNOWN" ;; esac
exit "${GH_STATUS:-0}"
"#;

struct Workflow {
    folder: Folder,
    scripts: Vec<(String, String)>,
}

impl Workflow {
    fn new(agent: &str) -> Workflow {
        let yaml = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"))
            .expect("it is there");
        let folder = Folder::new(&[
            ("team/agents/a.toml", agent),
            (".git/HEAD", ""),
            ("bin/gh", GH),
            ("temp/x", ""),
        ]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.root.join("bin/gh"), mode).expect("a program");
        }
        Workflow {
            folder,
            scripts: scripts(&yaml),
        }
    }

    fn step(&self, name: &str, variables: &[(&str, &str)]) -> Ran {
        let script = &self
            .scripts
            .iter()
            .find(|(step, _)| step == name)
            .expect("the step is there")
            .1;
        let at = |path: &str| self.folder.root.join(path);
        let path = format!(
            "{}:{}",
            at("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("bash");
        command
            .args([
                "--noprofile",
                "--norc",
                "-e",
                "-o",
                "pipefail",
                "-c",
                script,
            ])
            .current_dir(at("team"));
        command
            .env("PATH", path)
            .env("CI", "true")
            .env("RUNNER_TEMP", at("temp"))
            .env("PROGRAM", program::path());
        command
            .env("GITHUB_OUTPUT", at("output"))
            .env("GITHUB_STEP_SUMMARY", at("summary"))
            .env("GH_LOG", at("gh.log"));
        command
            .env("GITHUB_REPOSITORY", "o/r")
            .env("NUMBER", "7")
            .env("REPORTS", at("temp/reqc/gate"));
        command.envs([
            ("ARGUMENTS", ""),
            ("ID", "gate"),
            ("REVIEW", "true"),
            ("REVIEW_ARGUMENTS", ""),
            ("BASE", ""),
        ]);
        let output = command
            .envs(variables.iter().copied())
            .output()
            .expect("bash runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ran {
            code: output.status.code().expect("not killed"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

#[cfg(unix)]
#[test]
fn the_steps_of_the_action_run() {
    let workflow = Workflow::new(BROKEN);
    for (name, script) in &workflow.scripts {
        assert!(
            !script.contains("${{"),
            "{name}: what a workflow puts into a script, a stranger may have written"
        );
    }
    let ran = workflow.step("reqc", &[("COMMAND", "compile")]);
    assert!(
        ran.code == 0 && ran.out.contains("\n::error file=team/agents/a.toml,line=4"),
        "{}{}",
        ran.out,
        ran.err
    );
    let output = workflow.folder.read("output");
    assert!(
        output.starts_with("status=1\nid=gate\nreports=")
            && workflow.folder.read("summary").starts_with("### reqc: ")
    );
    assert!(
        workflow
            .folder
            .read("temp/reqc/gate/reqc.sarif")
            .contains("team/agents/a.toml")
    );
    let log = || workflow.folder.read("gh.log");
    assert_eq!(workflow.step("comment", &[]).code, 0);
    assert!(
        log().contains("--method POST repos/o/r/issues/7/comments -F body=@"),
        "{}",
        log()
    );
    assert!(
        workflow
            .folder
            .read("temp/reqc/gate/comment.md")
            .starts_with("<!-- reqc:gate -->\n### reqc: ")
    );
    assert_eq!(workflow.step("comment", &[("GH_KNOWN", "42")]).code, 0);
    assert!(
        log().contains("--method PATCH repos/o/r/issues/comments/42 -F body=@"),
        "{}",
        log()
    );
    let refused = workflow.step("comment", &[("GH_STATUS", "1")]);
    assert!(
        refused.code == 0
            && refused
                .out
                .starts_with("::notice title=reqc::no comment was written")
    );
    assert_eq!(workflow.step("result", &[("STATUS", "1")]).code, 1);
    assert_eq!(workflow.step("result", &[("STATUS", "")]).code, 2);
    assert_eq!(
        workflow.step("reqc", &[("COMMAND", "check; touch x")]).code,
        2
    );
    let ran = workflow.step(
        "reqc",
        &[
            ("COMMAND", "check"),
            ("ARGUMENTS", "--agent no$(touch${IFS}x)"),
        ],
    );
    assert!(
        ran.code == 0
            && workflow
                .folder
                .read("output")
                .ends_with("status=2\nid=gate\n"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(!workflow.folder.root.join("team/x").exists());
}

#[test]
fn the_hooks_run_for_every_commit_and_take_files_if_they_are_given_any() {
    let hooks =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml"))
            .expect("there");
    let entries: Vec<&str> = hooks
        .lines()
        .filter_map(|line| line.trim().strip_prefix("entry: reqc "))
        .collect();
    assert_eq!(entries, ["check", "compile --check"]);
    // A commit that only deletes files passes no file names, so the hooks must not need any.
    for setting in ["always_run: true", "pass_filenames: false"] {
        assert_eq!(hooks.matches(setting).count(), entries.len(), "{setting}");
    }
    let folder = Folder::new(&[
        ("team/agents/a.toml", AGENT),
        ("team/roles/x.md", "x"),
        ("team/reqc.toml", ""),
        (".git/HEAD", ""),
    ]);
    assert_eq!(folder.reqc(&["-C", "team", "compile"]).code, 0);
    for entry in entries {
        for file in [
            "agents/a.toml",
            "roles/x.md",
            "reqc.toml",
            "golden/helper/plain-turn.json",
            "golden/.reqc-manifest",
        ] {
            let file = format!("team/{file}");
            let given: Vec<&str> = entry.split(' ').chain([file.as_str()]).collect();
            let ran = folder.reqc(&given);
            let is_golden = file.contains("golden") && entry == "check";
            assert!(
                ran.code == 0 || is_golden,
                "{given:?}: {}{}",
                ran.out,
                ran.err
            );
        }
    }
}
