//! The binary, end to end: its exit status, its output, and the files that it writes.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes repositories and runs the binary"
)]

mod git;
mod program;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use git::git;
use tempfile::TempDir;

const AGENT: &str = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n\n[body]\ntemperature = 0.7\n";
const BASE: &str = "name = \"Our Base\"\nabstract = true\nextends = \"OpenAI Chat\"\n";
const CHILD: &str = "name = \"Our Child\"\nextends = \"Our Base\"\n";
const WARNS: &str = "name = \"Helper\"\nextends = \"OpenAI Chat\"\nunset = [\"descriptoin\"]\n";
const BROKEN: &str =
    "name = \"Helper\"\nextends = \"OpenAI Chat\"\n[body]\nx = \"{{ ctx.histroy }}\"\n";

/// Returns a folder of files with a space in its name.
fn repository(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("a folder");
    let root = scratch.path().join("a repository");
    write(&root, files);
    (scratch, root)
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program::path());
    command
        .args(arguments)
        .current_dir(root)
        .env_remove("NO_COLOR")
        .env_remove("CI");
    command
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn reqc(root: &Path, arguments: &[&str]) -> Ran {
    ran(command(root, arguments).output().expect("the binary runs"))
}

/// Returns every file below a folder, with its bytes and modification time.
fn state(root: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                pending.push(entry.path());
                continue;
            }
            let name = entry
                .path()
                .strip_prefix(root)
                .expect("below")
                .to_string_lossy()
                .into_owned();
            let written = entry
                .metadata()
                .and_then(|it| it.modified())
                .expect("a time");
            found.push((name, fs::read(entry.path()).expect("a file"), written));
        }
    }
    found.sort();
    found
}

#[test]
fn a_clean_check_ends_with_0() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    let run = reqc(&root, &["check"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.contains("1 agent"), "{}", run.out);
    assert_eq!(
        reqc(root.parent().expect("a parent"), &["check", "a repository"]).code,
        0
    );
    write(&root, &[("reqc.toml", "")]);
    let run = reqc(&root.join("agents"), &["check"]);
    assert_eq!(run.code, 0, "the root is found from below: {}", run.out);
}

#[test]
fn findings_end_with_1() {
    let (_scratch, root) = repository(&[("agents/helper.toml", BROKEN)]);
    let run = reqc(&root, &["check", "--format", "short"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(run.out.starts_with("agents/helper.toml:4:"), "{}", run.out);
    assert!(run.out.contains("did you mean `history`?"), "{}", run.out);
}

#[test]
fn a_lowered_finding_keeps_the_body() {
    let agent = format!("{AGENT}temperatur = 1\n");
    let (_scratch, root) = repository(&[("agents/helper.toml", &agent)]);
    let run = reqc(&root, &["compile", "--format", "short"]);
    assert!(
        run.code == 1 && run.out.contains("error[schema/unknown-field]"),
        "{}",
        run.out
    );
    assert!(
        !root.join("golden/helper").exists(),
        "an agent with errors writes nothing"
    );

    fs::write(
        root.join("reqc.toml"),
        "[rules]\n\"schema/unknown-field\" = \"warning\"\n",
    )
    .expect("written");
    let run = reqc(&root, &["compile", "--format", "short"]);
    assert!(
        run.code == 0 && run.out.contains("warning[schema/unknown-field]"),
        "{}",
        run.out
    );
    let body = fs::read_to_string(root.join("golden/helper/plain-turn.json")).expect("it is there");
    assert!(body.contains("\"temperatur\": 1"), "{body}");
    assert_eq!(reqc(&root, &["compile", "--check"]).code, 0);
}

#[test]
fn a_roster_that_cannot_be_read_is_reported() {
    let route = |rosters: &str, name: &str| {
        let (_scratch, root) =
            repository(&[("agents/helper.toml", AGENT), ("rosters.toml", rosters)]);
        reqc(&root, &["route", "a.py", "--roster", name])
    };
    let good = "[[roster]]\nname = \"chat\"\nagents = [\"Helper\"]\n";
    let run = route(&format!("{good}[[roster]\n"), "chat");
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(
        run.out.contains("toml/syntax") && run.out.contains("rosters.toml:4"),
        "{}",
        run.out
    );
    let run = route("[[roster]]\nname = \"chat\"\n", "chat");
    assert!(
        run.code == 1 && run.out.contains("key/missing"),
        "{}",
        run.out
    );
    // A mistake in an existing roster does not hide that another one is missing.
    let run = route(&good.replace("Helper", "Helpr"), "chatt");
    assert!(
        run.code == 2 && run.err.contains("did you mean `chat`?"),
        "{}{}",
        run.out,
        run.err
    );
}

#[test]
fn what_cannot_run_ends_with_2() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    for arguments in [
        &["check", "nowhere"][..],
        &["-C", "nowhere", "list"],
        &["chekc"],
        &[],
        &["check", "--bundled", "--no-bundled"],
        &["check", "--model", "x"],
        &["compile", "--check", "--diff"],
        &["check", "--deny", "no/such-rule"],
        &["rule", "no/such-rule"],
        &["render", "Helper"],
        &["render", "Helper", "--context", "completion-prefix-suffix"],
        &["check", "--context", "nowhere"],
        &["compile", "--diff", "no-such-revision"],
        &["compile", "--diff", ""],
    ] {
        let run = reqc(&root, arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {} {}", run.out, run.err);
        assert_eq!(run.out, "", "{arguments:?}");
        assert!(!run.err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn unknown_agents_get_a_suggestion() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    for arguments in [
        &["render", "Helpr", "--context", "plain-turn"][..],
        &["check", "--agent", "Helpr"],
        &["show", "Helpr"],
    ] {
        let run = reqc(&root, arguments);
        assert_eq!(run.code, 2);
        assert!(
            run.err.contains("there is no agent `Helpr`") && run.err.contains("`Helper`"),
            "{}",
            run.err
        );
    }
}

#[test]
fn an_abstract_agent_is_refused_with_its_place_and_its_children() {
    let (_scratch, root) = repository(&[("agents/base.toml", BASE), ("agents/child.toml", CHILD)]);
    for arguments in [
        &["render", "Our Base", "--context", "plain-turn"][..],
        &["compile", "--agent", "Our Base"],
    ] {
        let run = reqc(&root, arguments);
        assert_eq!(run.code, 2, "{}", run.out);
        for part in ["abstract", "agents/base.toml:2", "`Our Child`"] {
            assert!(run.err.contains(part), "{part}: {}", run.err);
        }
    }
    assert!(!root.join("golden").exists());
}

#[test]
fn deny_and_allow_decide_what_fails() {
    let (_scratch, root) = repository(&[("agents/helper.toml", WARNS)]);
    assert_eq!(reqc(&root, &["check"]).code, 0, "a warning does not fail");
    assert_eq!(
        reqc(&root, &["check", "--deny", "extends/unset-nothing"]).code,
        1
    );
    assert_eq!(reqc(&root, &["check", "--deny", "extends/*"]).code, 1);
    let run = reqc(&root, &["check", "--allow", "extends/unset-nothing"]);
    assert!(
        run.code == 0 && !run.out.contains("descriptoin"),
        "{}",
        run.out
    );
    write(
        &root,
        &[(
            "reqc.toml",
            "[rules]\n\"extends/unset-nothing\" = \"error\"\n",
        )],
    );
    assert_eq!(reqc(&root, &["check"]).code, 1);
    assert_eq!(reqc(&root, &["check", "--allow", "extends/*"]).code, 0);
    write(
        &root,
        &[(
            "reqc.toml",
            "[[allow]]\ncode = \"extends/unset-nothing\"\nfile = \"agents/*\"\nreason = \"known\"\n",
        )],
    );
    let run = reqc(&root, &["check"]);
    assert!(
        run.code == 0 && !run.out.contains("descriptoin"),
        "{}",
        run.out
    );
}

#[test]
fn warnings_fail_a_run_that_denies_them() {
    let (_scratch, root) = repository(&[("agents/helper.toml", WARNS)]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    for gate in [&["check"][..], &["compile", "--check"]] {
        assert_eq!(reqc(&root, gate).code, 0, "{gate:?}");
        let run = reqc(&root, &[gate, &["--deny-warnings"]].concat());
        assert!(
            run.code == 1 && run.out.contains("1 warning"),
            "{gate:?}: {}",
            run.out
        );
    }
    assert_eq!(
        reqc(&root, &["compile", "--deny-warnings"]).code,
        2,
        "only allowed with --check"
    );
}

#[test]
fn golden_files_of_an_agent_with_a_key_that_nobody_reads_are_kept() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    let golden =
        || fs::read_to_string(root.join("golden/helper/plain-turn.json")).expect("written");
    let before = golden();
    write(
        &root,
        &[(
            "agents/helper.toml",
            &format!("zebra = 1\n{}", AGENT.replace("0.7", "0.9")),
        )],
    );
    let run = reqc(&root, &["compile"]);
    assert!(
        run.code == 1
            && run
                .out
                .contains("nothing written; agents with errors were left out"),
        "{}",
        run.out
    );
    assert_eq!(golden(), before);
    write(
        &root,
        &[("reqc.toml", "[rules]\n\"key/unknown\" = \"off\"\n")],
    );
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    assert_ne!(golden(), before);
}

#[test]
fn quiet_prints_findings_only() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    for arguments in [
        &["check", "-q"][..],
        &["compile", "-q"],
        &["compile", "--check", "-q"],
    ] {
        let run = reqc(&root, arguments);
        assert_eq!(
            (run.code, run.out.as_str(), run.err.as_str()),
            (0, "", ""),
            "{arguments:?}"
        );
    }
    write(&root, &[("agents/helper.toml", BROKEN)]);
    assert!(reqc(&root, &["check", "-q"]).out.contains("histroy"));
}

#[test]
fn compile_writes_only_what_changed_and_removes_orphans() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("agents/second.toml", BASE),
        ("agents/third.toml", CHILD),
    ]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    let before = state(&root.join("golden"));
    assert!(
        before
            .iter()
            .any(|(name, ..)| name == "helper/request.json"),
        "{before:?}"
    );
    assert!(
        before
            .iter()
            .all(|(name, ..)| !name.starts_with("our-base"))
    );
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    assert_eq!(
        state(&root.join("golden")),
        before,
        "nothing changed: nothing is written"
    );

    write(
        &root,
        &[
            ("agents/helper.toml", &AGENT.replace("0.7", "0.9")),
            ("golden/notes.txt", "mine"),
        ],
    );
    fs::remove_file(root.join("agents/third.toml")).expect("removed");
    let run = reqc(&root, &["compile"]);
    assert_eq!(run.code, 0, "{}", run.out);
    let after = state(&root.join("golden"));
    assert!(
        after
            .iter()
            .all(|(name, ..)| !name.starts_with("our-child")),
        "{after:?}"
    );
    assert!(
        after.iter().any(|(name, ..)| name == "notes.txt"),
        "other files stay"
    );
    assert!(
        !root.join("golden/our-child").exists(),
        "no empty folder is left"
    );
    let request = |state: &[(String, Vec<u8>, std::time::SystemTime)]| {
        state
            .iter()
            .find(|it| it.0 == "helper/request.json")
            .cloned()
    };
    assert_eq!(
        request(&before),
        request(&after),
        "a file that did not change is not written again"
    );
    assert!(
        fs::read_to_string(root.join("golden/helper/plain-turn.json"))
            .expect("there")
            .contains("0.9")
    );
}

#[test]
fn compile_removes_only_what_it_can_prove_its_own() {
    let context = r#"{"name": "extra", "kind": "chat", "why": "x", "golden": true, "history": [{"role": "user", "content": "a"}]}"#;
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
        ("contexts/extra.json", context),
    ]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    let manifest = fs::read_to_string(root.join("golden/.reqc-manifest")).expect("it is written");
    assert!(manifest.lines().any(|line| line == "extra"), "{manifest}");
    let mine = [
        "golden/helper/notes.json",
        "golden/our-child/notes.json",
        "golden/mine/plain-turn.json",
        "golden/web/request.json",
        "golden/web/package.json",
    ];
    mine.iter()
        .for_each(|path| write(&root, &[(path, "{\"agent\": \"web\"}")]));
    fs::remove_file(root.join("contexts/extra.json")).expect("removed");
    fs::remove_file(root.join("agents/child.toml")).expect("removed");
    let run = reqc(&root, &["compile", "--check"]);
    assert!(
        run.code == 1 && run.out.contains("no longer needed"),
        "{}",
        run.out
    );
    let run = reqc(&root, &["compile"]);
    assert!(
        run.code == 0 && run.out.contains("golden/foreign"),
        "{}",
        run.out
    );
    mine.iter()
        .for_each(|path| assert!(root.join(path).exists(), "{path}"));
    assert!(!root.join("golden/helper/extra.json").exists());
    assert!(!root.join("golden/our-child/request.json").exists());
    let manifest = fs::read_to_string(root.join("golden/.reqc-manifest")).expect("it is written");
    assert!(!manifest.lines().any(|line| line == "extra"), "{manifest}");
    assert_eq!(
        reqc(&root, &["compile", "--check"]).code,
        0,
        "other files are not reported as drift"
    );
}

#[test]
fn golden_files_of_older_versions_have_no_manifest() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
    ]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    fs::remove_file(root.join("golden/.reqc-manifest")).expect("removed");
    assert_eq!(
        reqc(&root, &["compile", "--check"]).code,
        0,
        "a missing manifest is not drift"
    );
    fs::remove_file(root.join("agents/child.toml")).expect("removed");
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    assert!(
        !root.join("golden/our-child").exists(),
        "names of contexts count"
    );
    assert!(root.join("golden/.reqc-manifest").exists());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    use std::os::unix::fs::symlink;
    let links = [
        ("golden", "."),
        ("golden", ".git"),
        ("golden/helper", "../.git"),
        ("golden/helper", "../agents"),
        ("golden/helper/plain-turn.json", "../../.git/config"),
        ("golden/.reqc-manifest", "../.git/config"),
    ];
    for (link, target) in links {
        let files = [
            ("agents/helper.toml", AGENT),
            ("web/package.json", "{}"),
            ("web/request.json", "{}"),
            (".git/config", "x"),
        ];
        let (_scratch, root) = repository(&files);
        let at = root.join(link);
        fs::create_dir_all(at.parent().expect("a folder")).expect("writable");
        symlink(target, &at).expect("a link");
        let others = || ["agents", "web", ".git"].map(|folder| state(&root.join(folder)));
        let before = others();
        let run = reqc(&root, &["compile"]);
        assert!(
            run.code == 2 && run.err.contains("link"),
            "{link} -> {target}: {} {}",
            run.out,
            run.err
        );
        assert_eq!(others(), before, "{link} -> {target}");
        assert!(fs::symlink_metadata(at).expect("there").is_symlink());
    }
}

#[cfg(unix)]
#[test]
fn out_is_a_folder_of_its_own() {
    let (scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("reqc.toml", ""),
        ("plain/x", ""),
    ]);
    let outside = scratch.path().join("outside");
    let mine = [
        ("web/request.json", "{}"),
        ("web/package.json", "{}"),
        ("helper/plain-turn.json", "mine"),
    ];
    write(&outside, &mine);
    std::os::unix::fs::symlink("../outside", root.join("build")).expect("a link");
    std::os::unix::fs::symlink("../../outside", root.join("plain/build")).expect("a link");
    let before = state(&outside);
    for out in [
        "build",
        "./build/deep",
        "plain/../build",
        "plain/build",
        ".git/x",
        ".GIT",
        "",
    ] {
        let run = reqc(&root, &["compile", "--out", out]);
        assert_eq!(run.code, 2, "{out}: {} {}", run.out, run.err);
    }
    let run = reqc(&root, &["compile", "--out", "../outside"]);
    assert!(
        run.code == 2 && run.err.contains("was not written by reqc"),
        "{}",
        run.err
    );
    assert_eq!(state(&outside), before);
    assert_eq!(reqc(&root, &["compile", "--out", "made/here"]).code, 0);
    let more = [
        ("made/here/web/request.json", "{}"),
        ("made/here/web/package.json", "{}"),
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
    ];
    write(&root, &more);
    assert_eq!(reqc(&root, &["compile", "--out", "made/here"]).code, 0);
    assert!(root.join("made/here/our-child/request.json").exists());
    fs::remove_file(root.join("agents/child.toml")).expect("removed");
    write(
        &root,
        &[("agents/helper.toml", &AGENT.replace("0.7", "0.8"))],
    );
    assert_eq!(
        reqc(&root, &["compile", "--out", "made/here"]).code,
        0,
        "files of an earlier run are replaced"
    );
    assert!(
        !root.join("made/here/our-child").exists()
            && root.join("made/here/web/package.json").exists()
    );
}

#[test]
fn the_root_is_not_looked_for_above_a_marker() {
    let outer = [("reqc.toml", ""), ("secret.md", "s")];
    let inner = "name = \"Inner\"\nextends = \"OpenAI Chat\"\n";
    let marked = [
        ("reqc.toml", ""),
        (".git/HEAD", ""),
        (".git", "gitdir: /nowhere\n"),
    ];
    for marker in marked {
        let (_scratch, root) = repository(&outer);
        for folder in ["agents", "deep/agents", "other"] {
            let checkout = root.join(folder);
            write(&checkout, &[("inner.toml", inner), marker]);
            assert_eq!(reqc(&checkout, &["compile", "-q"]).code, 0, "{folder}");
            assert!(
                checkout.join("golden/inner").exists() && !root.join("golden").exists(),
                "{folder}"
            );
        }
    }
    let (_scratch, root) = repository(&[("agents/inner.toml", inner), ("outer.toml", AGENT)]);
    assert_eq!(reqc(&root.join("agents"), &["compile", "-q"]).code, 0);
    assert!(
        root.join("agents/golden/inner").exists(),
        "no folder above is marked as the root"
    );
    assert!(!root.join("golden").exists());
    let (_scratch, root) = repository(&[
        ("reqc.toml", ""),
        ("agents/inner.toml", inner),
        ("src/x", ""),
    ]);
    assert_eq!(reqc(&root.join("src"), &["compile", "-q"]).code, 0);
    assert!(root.join("golden").exists());
    let run = reqc(&root, &["-C", "src", "check"]);
    assert!(
        run.out.contains("repo/empty"),
        "a folder that was named is the root: {}",
        run.out
    );
    let run = reqc(&root, &["check", "src"]);
    assert!(
        run.code == 2
            && run
                .err
                .contains("`src` is not part of the agent repository"),
        "{}{}",
        run.out,
        run.err
    );
}

#[test]
fn prompts_read_nothing_hidden() {
    let files = [
        (".git/config", "TOKEN"),
        (".env", "TOKEN"),
        ("keys/id_rsa", "TOKEN"),
        ("tls/server.key", "TOKEN"),
        ("notes/k", "-----BEGIN RSA PRIVATE KEY-----\nTOKEN\n"),
    ];
    let paths = [
        ":/.git/config",
        ":/x/../.git/config",
        ":/.//.git/config",
        "${CONFIG_DIR}/.env",
        ":/.GIT/config",
        ":/keys/id_rsa",
        ":/tls/server.key",
        ":/notes/k",
        ":/roles/link.md",
        ":/roles/git/config",
        ".git/config",
    ];
    for path in paths {
        let prompt = format!("system_prompt = '{{{{ read_file(\"{path}\") }}}}'\n");
        let (_scratch, root) = repository(&[(
            "agents/helper.toml",
            &format!("name = \"Helper\"\nextends = \"OpenAI Chat\"\n{prompt}"),
        )]);
        write(&root, &files);
        #[cfg(unix)]
        {
            fs::create_dir_all(root.join("roles")).expect("writable");
            std::os::unix::fs::symlink("../.env", root.join("roles/link.md")).expect("a link");
            std::os::unix::fs::symlink("../.git", root.join("roles/git")).expect("a link");
        }
        let run = reqc(&root, &["check"]);
        assert!(
            run.code == 1 && !run.out.contains("TOKEN"),
            "{path}: {} {}",
            run.out,
            run.err
        );
        assert!(
            run.out.contains("hidden from system"),
            "{path}: {}",
            run.out
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_a_finding() {
    let (_scratch, root) = repository(&[("b.toml", AGENT)]);
    for (name, target) in [("a.toml", "/dev/zero"), ("c.toml", "/etc/hostname")] {
        std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
    }
    assert!(
        Command::new("mkfifo")
            .arg(root.join("pipe.toml"))
            .status()
            .is_ok_and(|status| status.success())
    );
    let holes = fs::File::create(root.join("holes.toml")).expect("writable");
    holes.set_len((64 << 20) + 1).expect("a file of holes");
    let run = reqc(&root, &["check", "--format", "short"]);
    assert_eq!(run.code, 1, "{} {}", run.out, run.err);
    for (name, rule) in [
        ("a.toml", "repo/unreadable"),
        ("c.toml", "repo/unreadable"),
        ("pipe.toml", "repo/unreadable"),
        ("holes.toml", "repo/too-large"),
    ] {
        assert!(
            run.out
                .lines()
                .any(|line| line.contains(name) && line.contains(rule)),
            "{name}: {}",
            run.out
        );
    }
}

#[cfg(unix)]
#[test]
fn folders_that_cannot_be_looked_into_are_findings() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT), (".hidden/x.toml", AGENT)]);
    for (target, at) in [
        ("../..", "agents/out"),
        ("../nowhere", "agents/lost"),
        ("../.hidden", "agents/hidden"),
        ("/", "partials"),
        (".hidden/x.toml", "models.toml"),
    ] {
        std::os::unix::fs::symlink(target, root.join(at)).expect("a link");
    }
    let run = reqc(&root, &["check", "--format", "short"]);
    assert_eq!(run.code, 1, "{} {}", run.out, run.err);
    for name in [
        "agents/out",
        "agents/lost",
        "agents/hidden",
        "partials",
        "models.toml",
    ] {
        let told = |line: &str| line.contains(name) && line.contains("repo/unreadable");
        assert!(run.out.lines().any(told), "{name}: {}", run.out);
    }
}

#[test]
fn names_that_some_system_does_not_take_are_refused() {
    let context = |name: &str| {
        format!(
            r#"{{"name": "{name}", "kind": "chat", "why": "x", "history": [{{"role": "user", "content": "a"}}]}}"#
        )
    };
    let long = "x".repeat(300);
    let agent = |name: &str| format!("name = \"{name}\"\nextends = \"OpenAI Chat\"\n");
    let (_scratch, root) = repository(&[
        ("agents/a.toml", &agent("Aux")),
        ("agents/b.toml", &agent(&long)),
        ("contexts/one.json", &context("one")),
        ("contexts/two.json", &context("ONE")),
        ("contexts/three.json", &context("com1")),
        ("contexts/four.json", &context(&long)),
        ("contexts/five.json", &context("REQUEST")),
        ("contexts/six.json", &context("Plain-Turn")),
    ]);
    let run = reqc(&root, &["check", "--format", "short"]);
    assert_eq!(run.code, 1, "{} {}", run.out, run.err);
    let wanted = [
        ("agents/a.toml:1", "golden/unusable-name"),
        ("agents/b.toml:1", "golden/unusable-name"),
        ("contexts/two.json:1", "repo/duplicate-name"),
        ("contexts/three.json:1", "context/invalid"),
        ("contexts/four.json:1", "context/invalid"),
        ("contexts/five.json:1", "context/invalid"),
        ("contexts/six.json:1", "repo/bundled-name"),
    ];
    for (place, rule) in wanted {
        assert!(
            run.out
                .lines()
                .any(|line| line.contains(place) && line.contains(rule)),
            "{place}: {}",
            run.out
        );
    }
}

#[test]
fn compile_leaves_the_golden_files_of_broken_agents_alone() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
    ]);
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    let before = state(&root.join("golden/helper"));
    let fails_in_one_context = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n[body]\nx = \"{% if ctx.files_metadata is defined %}{{ ctx.nothing }}{% endif %}1\"\n";
    for broken in [
        BROKEN,
        fails_in_one_context,
        "name = \"Helper\"\nextends = \"Nobody\"\n",
        "name = \"Helper\"\n[body]\nx = \n",
    ] {
        write(
            &root,
            &[
                ("agents/helper.toml", broken),
                (
                    "agents/child.toml",
                    &format!("{CHILD}model = \"m{}\"\n", broken.len()),
                ),
            ],
        );
        let run = reqc(&root, &["compile"]);
        assert_eq!(run.code, 1, "{broken}: {}", run.out);
        assert_eq!(state(&root.join("golden/helper")), before, "{broken}");
        let child =
            fs::read_to_string(root.join("golden/our-child/plain-turn.json")).expect("there");
        assert!(
            child.contains(&format!("\"m{}\"", broken.len())),
            "the others are written: {child}"
        );
    }
}

#[test]
fn check_of_golden_files_writes_nothing() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    let run = reqc(&root, &["compile", "--check"]);
    assert_eq!(run.code, 1, "nothing was compiled yet: {}", run.out);
    assert!(!root.join("golden").exists());
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    assert_eq!(reqc(&root, &["compile", "--check"]).code, 0);
    write(
        &root,
        &[("agents/helper.toml", &AGENT.replace("0.7", "1.0"))],
    );
    let before = state(&root);
    let run = reqc(&root, &["compile", "--check"]);
    assert_eq!(run.code, 1);
    assert!(
        run.out.contains("golden/drift")
            && run.out.contains("/temperature")
            && run.out.contains("0.7 → 1.0"),
        "{}",
        run.out
    );
    assert_eq!(state(&root), before);
    assert_eq!(
        reqc(&root, &["compile", "--check", "--format", "json"]).code,
        1
    );
}

/// Golden files show which value is missing; the sources show the line that removed it.
#[test]
fn what_golden_files_have_and_bodies_lack_is_told_at_the_entry_that_removed_it() {
    let agent = "name = \"Helper\"\nextends = \"OpenAI Chat\"\n";
    let (_scratch, root) = repository(&[("agents/helper.toml", agent)]);
    assert_eq!(reqc(&root, &["compile", "-q"]).code, 0);
    write(
        &root,
        &[(
            "agents/helper.toml",
            &format!("{agent}unset = [\"stream_options\"]\n"),
        )],
    );
    let run = reqc(&root, &["compile", "--diff"]);
    assert!(
        run.out.contains("/stream_options") && run.out.contains("agents/helper.toml:3"),
        "{} {}",
        run.out,
        run.err
    );
}

#[test]
fn diffs_are_grouped_and_named_by_their_cause() {
    let (_scratch, root) = repository(&[
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
        (
            "agents/twin.toml",
            "name = \"Twin\"\nextends = \"Our Base\"\n",
        ),
    ]);
    write(
        &root,
        &[(
            "agents/base.toml",
            &format!("{BASE}[body]\ntemperature = 0.7\n"),
        )],
    );
    assert_eq!(reqc(&root, &["compile", "-q"]).code, 0);
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    for arguments in [
        &["compile", "--diff"][..],
        &["compile", "--diff", "HEAD"],
        &["compile", "--diff", "--exit-code"],
        &["compile", "--diff", "HEAD", "--exit-code"],
    ] {
        let run = reqc(&root, arguments);
        assert_eq!(
            (run.code, run.out.as_str()),
            (0, "no changes\n"),
            "{arguments:?} {}",
            run.err
        );
    }
    write(
        &root,
        &[(
            "agents/base.toml",
            &format!("{BASE}[body]\ntemperature = 1.0\n"),
        )],
    );
    let before = state(&root);
    for arguments in [&["compile", "--diff"][..], &["compile", "--diff", "HEAD"]] {
        let run = reqc(&root, arguments);
        assert_eq!(run.code, 0, "{}", run.err);
        for part in [
            "of 2 agents",
            "/temperature",
            "0.7 → 1.0",
            "agents/base.toml:5",
        ] {
            assert!(run.out.contains(part), "{part}: {}", run.out);
        }
        assert_eq!(run.out.matches("/temperature").count(), 1, "{}", run.out);
        let status = [arguments, &["--exit-code"]].concat();
        assert_eq!(reqc(&root, &status).code, 1);
        let text = reqc(&root, &[arguments, &["--text"]].concat());
        assert!(text.out.contains("-  \"temperature\": 0.7"), "{}", text.out);
    }
    assert_eq!(state(&root), before, "a diff writes nothing");
    fs::remove_file(root.join("agents/twin.toml")).expect("removed");
    let run = reqc(&root, &["compile", "--diff", "HEAD"]);
    assert!(run.out.contains("Twin"), "{}", run.out);
}

/// Golden files show only the folder of removed bodies; the sources show the agent and the cause.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn what_is_gone_from_golden_files_is_told_by_its_cause() {
    const CONTEXT: &str = r#"{"name": "ours", "why": "A test.", "kind": "chat", "golden": true, "history": [{"role": "user", "content": "Hi"}]}"#;
    let twin = "name = \"Twin Agent\"\nextends = \"Our Base\"\n";
    let files = [
        ("agents/base.toml", BASE),
        ("agents/child.toml", CHILD),
        ("agents/twin.toml", twin),
        ("contexts/ours.json", CONTEXT),
        ("reqc.toml", "# ours\n"),
    ];
    let changed = |change: &dyn Fn(&Path)| {
        let (_scratch, root) = repository(&files);
        assert_eq!(reqc(&root, &["compile", "-q"]).code, 0);
        git(&root, &["init", "-q"]);
        git(&root, &["add", "."]);
        git(&root, &["commit", "-q", "-m", "first"]);
        change(&root);
        [&["compile", "--diff"][..], &["compile", "--diff", "HEAD"]].map(|arguments| {
            let run = reqc(&root, arguments);
            let is_vague = run.out.contains("no edit is known")
                || run.out.contains("change no compared body")
                || run.out.contains("other removed bodies");
            assert!(!is_vague, "{arguments:?}: {}", run.out);
            run.out
        })
    };
    let gone = changed(&|root| {
        fs::remove_file(root.join("agents/twin.toml")).expect("removed");
    });
    assert!(
        gone.iter()
            .all(|out| out.contains("removed agents: Twin Agent (")),
        "{gone:?}"
    );
    let gone = changed(&|root| {
        fs::remove_file(root.join("contexts/ours.json")).expect("removed");
    });
    assert!(
        gone.iter()
            .all(|out| out.contains("removed contexts: ours (2 bodies)")),
        "{gone:?}"
    );
    let renamed = changed(&|root| {
        write(
            root,
            &[("agents/twin.toml", &twin.replace("Twin Agent", "Sister"))],
        );
    });
    for out in &renamed {
        assert!(out.contains("renamed: Twin Agent → Sister"), "{out}");
        assert!(!out.contains("gone") && !out.contains("new"), "{out}");
    }
    let renamed = changed(&|root| {
        let edited = twin.replace("Twin Agent", "Sister") + "[body]\nseed = 1\n";
        write(root, &[("agents/twin.toml", &edited)]);
    });
    for out in &renamed {
        assert!(out.contains("/seed + 1") && !out.contains("gone"), "{out}");
    }
    let renamed = changed(&|root| {
        write(
            root,
            &[("contexts/ours.json", &CONTEXT.replace("ours", "theirs"))],
        );
    });
    assert!(
        renamed
            .iter()
            .all(|out| out.contains("renamed context: ours → theirs")),
        "{renamed:?}"
    );
    let chosen = changed(&|root| {
        write(
            root,
            &[(
                "reqc.toml",
                "# ours\n[golden]\ncontexts = [\"plain-turn\"]\n",
            )],
        );
    });
    for out in &chosen {
        assert!(out.contains("reqc.toml:2") && out.contains("gone"), "{out}");
    }
    let chosen = changed(&|root| {
        let edited = CONTEXT.replace("true", "false");
        write(root, &[("contexts/ours.json", &edited)]);
    });
    for out in &chosen {
        assert!(
            out.contains("contexts/ours.json:1") && out.contains("in 2 bodies"),
            "{out}"
        );
    }
}

/// Returns a repository with two branches that make different edits to their common base.
fn branches() -> (TempDir, PathBuf) {
    let (scratch, root) = repository(&[
        (
            "agents/base.toml",
            &format!("{BASE}[body]\ntemperature = 0.7\n"),
        ),
        ("agents/child.toml", CHILD),
        ("agents/other.toml", &other(1)),
    ]);
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    git(&root, &["checkout", "-q", "-b", "topic"]);
    write(
        &root,
        &[(
            "agents/base.toml",
            &format!("{BASE}[body]\ntemperature = 1.0\n"),
        )],
    );
    git(&root, &["commit", "-q", "-a", "-m", "topic"]);
    git(&root, &["checkout", "-q", "main"]);
    write(&root, &[("agents/other.toml", &other(2))]);
    git(&root, &["commit", "-q", "-a", "-m", "main"]);
    git(&root, &["checkout", "-q", "topic"]);
    (scratch, root)
}

fn other(seed: u32) -> String {
    format!("name = \"Other\"\nextends = \"OpenAI Chat\"\n[body]\nseed = {seed}\n")
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn a_branch_is_compared_from_where_it_diverged() {
    let (_scratch, root) = branches();
    for range in ["main", "main...topic", "main...HEAD", "main..."] {
        let run = reqc(&root, &["compile", "--diff", range]);
        let is_told = run.out.starts_with("compared with ") && run.out.contains("diverged\n");
        assert!(
            is_told && run.out.contains("0.7 → 1.0"),
            "{range} {} {}",
            run.out,
            run.err
        );
        assert!(!run.out.contains("/seed"), "{range} {}", run.out);
    }
    for range in [
        &["main", "--no-merge-base"][..],
        &["main..topic"],
        &["main..HEAD"],
    ] {
        let run = reqc(&root, &[&["compile", "--diff"], range].concat());
        assert!(
            run.out.starts_with("2 causes") && run.out.contains("/seed 2 → 1"),
            "{range:?} {}",
            run.out
        );
    }
    let run = reqc(&root, &["check", "--affected", "main"]);
    assert!(
        run.out.starts_with("1 agent "),
        "changes of others are not this branch's: {}",
        run.out
    );
    // If nothing has diverged, the output does not mention it.
    let run = reqc(&root, &["compile", "--diff", "HEAD~1"]);
    assert!(
        run.out.starts_with("1 cause · 1 of 2 agents"),
        "{}",
        run.out
    );
    assert_eq!(
        reqc(&root, &["compile", "--diff", "topic..main~1..x"]).code,
        2
    );
    // A branch that is only behind has no changes.
    git(&root, &["checkout", "-q", "main~1"]);
    let run = reqc(&root, &["compile", "--diff", "main"]);
    assert!(run.out.contains("diverged\nno changes\n"), "{}", run.out);
}

/// Golden files of another version, whose base had a different temperature.
#[test]
fn what_another_version_changes_is_told_by_its_files() {
    let (_scratch, root) = branches();
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    let manifest = fs::read_to_string(root.join("golden/.reqc-manifest")).expect("a manifest");
    let partial = manifest
        .lines()
        .find(|line| line.contains("bundled:partials/"))
        .expect("a bundled file");
    let (print, path) = partial.split_once(' ').expect("two words");
    let older = manifest.replace(print, "0123456789abcdef");
    write(&root, &[("golden/.reqc-manifest", &older)]);
    let body = root.join("golden/other/plain-turn.json");
    let text = fs::read_to_string(&body).expect("a body").replacen(
        "\"seed\": 1",
        "\"seed\": 1,\n  \"user\": \"x\"",
        1,
    );
    fs::write(&body, text).expect("written");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "golden"]);
    write(&root, &[("agents/other.toml", &other(5))]);
    let run = reqc(&root, &["compile", "--diff"]);
    let parts = [
        path,
        "different text in this version of reqc",
        "/user - \"x\"",
        "agents/other.toml",
        "/seed 1 → 5",
    ];
    let missing: Vec<&&str> = parts
        .iter()
        .filter(|part| !run.out.contains(**part))
        .collect();
    assert!(
        run.out.starts_with("2 causes") && missing.is_empty(),
        "{missing:?} {}",
        run.out
    );
    assert!(!run.out.contains("no edit is known"), "{}", run.out);
    assert_eq!(reqc(&root, &["compile", "--agent", "Our Child"]).code, 0);
    assert_eq!(
        fs::read_to_string(root.join("golden/.reqc-manifest")).expect("a manifest"),
        older,
        "not all were written"
    );
    assert_eq!(reqc(&root, &["compile"]).code, 0);
    assert_eq!(
        fs::read_to_string(root.join("golden/.reqc-manifest")).expect("a manifest"),
        manifest
    );
}

#[test]
fn what_is_staged_is_a_side() {
    let (_scratch, root) = branches();
    write(&root, &[("agents/other.toml", &other(3))]);
    git(&root, &["add", "."]);
    write(&root, &[("agents/other.toml", &other(4))]);
    let run = reqc(&root, &["compile", "--diff", "--staged"]);
    assert!(
        run.out.contains("/seed 1 → 3") && !run.out.contains("temperature"),
        "{} {}",
        run.out,
        run.err
    );
    let run = reqc(&root, &["compile", "--diff", "HEAD~1", "--staged"]);
    assert!(
        run.out.contains("/seed 1 → 3") && run.out.contains("0.7 → 1.0"),
        "{} {}",
        run.out,
        run.err
    );
    assert!(
        reqc(&root, &["compile", "--diff", "HEAD"])
            .out
            .contains("/seed 1 → 4")
    );
    assert_eq!(
        reqc(&root, &["compile", "--diff", "main..topic", "--staged"]).code,
        2
    );
}

#[test]
fn a_gate_fails_on_a_class_of_changes() {
    let (_scratch, root) = branches();
    let code = |class: &str| reqc(&root, &["compile", "--diff", "HEAD~1", "--fail-on", class]).code;
    assert_eq!(
        [
            code("text"),
            code("value"),
            code("removed"),
            code("request")
        ],
        [1, 1, 0, 0]
    );
    let run = reqc(&root, &["compile", "--diff", "HEAD~1", "--fail-on", "typo"]);
    assert!(
        run.code == 2 && run.err.contains("silent, text, value, removed, request"),
        "{}",
        run.err
    );
}

#[test]
fn a_review_writes_what_is_accepted() {
    let (_scratch, root) = branches();
    assert_eq!(reqc(&root, &["compile", "-q"]).code, 0);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "golden"]);
    assert!(reqc(&root, &["review"]).out.contains("up to date"));
    write(
        &root,
        &[(
            "agents/base.toml",
            &format!("{BASE}[body]\ntemperature = 0.1\n"),
        )],
    );
    write(&root, &[("agents/other.toml", &other(5))]);
    let run = reqc(&root, &["review"]);
    assert!(run.code == 2 && run.err.contains("--accept"), "{}", run.err);
    let run = reqc(&root, &["review", "--accept", "3"]);
    assert!(
        run.code == 2 && run.err.contains("there is no cause 3"),
        "{}",
        run.err
    );
    let run = reqc(&root, &["review", "--accept", "2"]);
    assert!(
        run.code == 1 && run.out.contains("left unchanged"),
        "{} {}",
        run.out,
        run.err
    );
    let told = reqc(&root, &["compile", "--diff"]).out;
    assert!(told.starts_with("1 cause"), "{told}");
    assert_eq!(reqc(&root, &["review", "--accept", "1"]).code, 0);
    assert_eq!(reqc(&root, &["compile", "--check"]).code, 0);
    let both = format!("{BASE}[body]\ntemperature = 0.2\nseed = 3\n");
    write(&root, &[("agents/base.toml", &both)]);
    let run = reqc(&root, &["review", "--accept", "1"]);
    assert!(
        run.out
            .contains("also accept cause 2, because a file is written only"),
        "{}",
        run.out
    );
}

/// Text of a repository has no effect in a comment or a web page.
#[test]
fn hostile_text_does_not_act_in_reviews() {
    let (_scratch, root) = branches();
    let hostile = "</code></details>@all <script>x</script> ![x](javascript:y) ````` ::error::x";
    write(
        &root,
        &[(
            "agents/other.toml",
            &format!("system_prompt = '''a\n{hostile}\n```\nb'''\n{}", other(1)),
        )],
    );
    let html = reqc(&root, &["compile", "--diff", "HEAD", "--format", "html"]);
    for acting in ["<script", "</details>@", "](javascript:"] {
        assert!(!html.out.contains(acting), "{acting}: {}", html.out);
    }
    let markdown = reqc(
        &root,
        &["compile", "--diff", "HEAD", "--format", "markdown"],
    );
    // A code block ends at a line that consists only of its own fence.
    let mut fence: Option<&str> = None;
    for line in markdown.out.lines() {
        let ticks = &line.trim_start()
            [..line.trim_start().len() - line.trim_start().trim_start_matches('`').len()];
        match fence {
            Some(open) if line.trim() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => assert!(
                !line.contains("<script") && !line.contains("@all"),
                "{line}"
            ),
        }
    }
    assert!(
        fence.is_none() && markdown.out.contains("<script"),
        "{}",
        markdown.out
    );
}

#[test]
fn a_diff_works_below_the_top_of_a_git_repository() {
    let (_scratch, top) = repository(&[
        ("sub folder/agents/helper.toml", AGENT),
        ("other/agents/x.toml", "not toml"),
    ]);
    git(&top, &["init", "-q"]);
    git(&top, &["add", "."]);
    git(&top, &["commit", "-q", "-m", "first"]);
    let root = top.join("sub folder");
    write(
        &root,
        &[("agents/helper.toml", &AGENT.replace("0.7", "0.8"))],
    );
    let run = reqc(&root, &["compile", "--diff", "HEAD"]);
    assert!(
        run.code == 0 && run.out.contains("0.7 → 0.8"),
        "{} {}",
        run.out,
        run.err
    );
}

#[test]
fn out_writes_somewhere_else_and_touches_nothing_there() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("contexts/mine.json", MINE),
        ("data/keep/config.json", "{}"),
    ]);
    assert_eq!(
        reqc(&root, &["compile", "--out", "snap shots", "--all-contexts"]).code,
        0
    );
    assert!(root.join("snap shots/helper/thinking.json").exists());
    assert!(!root.join("golden").exists());
    let from_above = reqc(
        root.parent().expect("a parent"),
        &["-C", "a repository", "compile", "--out", "more"],
    );
    assert_eq!(from_above.code, 0, "{}", from_above.err);
    assert!(
        root.join("more/helper/request.json").exists(),
        "as if started there"
    );
    for out in ["data", "."] {
        assert_eq!(reqc(&root, &["compile", "--out", out]).code, 0);
        assert!(root.join(out).join("helper/request.json").exists());
        assert!(
            root.join("data/keep/config.json").exists(),
            "files of others stay"
        );
        assert!(
            root.join("contexts/mine.json").exists(),
            "the repository's own files stay"
        );
    }
}

const MINE: &str = r#"{"name": "mine", "why": "w", "kind": "chat", "golden": false, "history": [{"role": "user", "content": "x"}]}"#;

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    for arguments in [
        &["list", "--all", "--bundled"][..],
        &["contexts"],
        &["models"],
        &["completions", "bash"],
        &["render", "Helper", "--context", "long-conversation"],
    ] {
        let mut child = command(&root, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        drop(child.stdout.take());
        let mut err = String::new();
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut err)
            .expect("UTF-8");
        let status = child.wait().expect("ends");
        assert_eq!(
            (err.as_str(), status.code()),
            ("", Some(0)),
            "{arguments:?}"
        );
    }
}

/// Adds a model family, and replaces a bundled one.
const FAMILIES: &str = "[[family]]\nname = \"House\"\nmodels = [\"house-*\"]\nexcept = [\"house-2*\"]\nwires = [\"openai-chat\"]\n\
    source = \"wiki\"\nseen = 2026-11-22\nprefill = false\n\n[[family.takes]]\nat = \"/max_tokens\"\nmost = 100\n\
    when = { \"/tools\" = true }\nlevel = \"warning\"\n\n[[family]]\nname = \"Claude Opus 4.5\"\nmodels = [\"claude-opus-4.5*\"]\n\
    wires = [\"anthropic-messages\"]\nsource = \"our account\"\nseen = 2026-11-22\n";

#[test]
fn models_are_told_with_their_sources() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("model-families.toml", FAMILIES),
    ]);
    let house = reqc(&root, &["models", "team/House-1-2026-01-31"]);
    let expected = "house-1: 1 family\n\nHouse (openai-chat)\n  wiki; seen 2026-11-22\n  - rejects a final assistant turn\n\
        \x20 - accepts at most 100 for `max_tokens`, while `tools` is present [warning]\n";
    assert_eq!((house.out.as_str(), house.code), (expected, 0));
    assert!(
        reqc(&root, &["models", "house-2"])
            .out
            .contains("nothing is known about this model")
    );
    let opus = reqc(
        &root,
        &[
            "models",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "--no-bundled",
        ],
    )
    .out;
    assert!(
        opus.contains("our account") && opus.contains("Claude up to 4.5"),
        "{opus}"
    );
    assert!(
        !opus.contains("can1357/oh-my-pi#2985"),
        "the bundled entry is replaced: {opus}"
    );
    let listed = reqc(&root, &["models", "--format", "json"]);
    let families: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
    let families = families.as_array().expect("an array");
    assert!(
        families
            .iter()
            .all(|family| family["source"].is_string() && family["seen"].is_string())
    );
    let last = families.last().expect("families");
    assert_eq!(
        (&last["name"], &last["facts"]),
        (
            &serde_json::json!("Claude Opus 4.5"),
            &serde_json::json!([])
        )
    );
    let house = &families[families.len() - 2]["facts"][0];
    assert_eq!(
        (&house["when"], &house["most"]),
        (
            &serde_json::json!({"/tools": true}),
            &serde_json::json!(100.0)
        )
    );
}

#[test]
fn colours_are_asked_for() {
    let (_scratch, root) = repository(&[("agents/helper.toml", BROKEN)]);
    let escapes = |arguments: &[&str], no_color: Option<&str>| {
        let mut command = command(&root, arguments);
        command.envs(no_color.map(|value| ("NO_COLOR", value)));
        ran(command.output().expect("runs")).out.contains('\u{1b}')
    };
    assert!(!escapes(&["check"], None), "a pipe is not a terminal");
    assert!(escapes(&["check", "--color", "always"], None));
    assert!(
        escapes(&["check", "--color", "always"], Some("1")),
        "the flag is nearer than the environment"
    );
    assert!(!escapes(&["check", "--color", "never"], None));
    assert!(!escapes(&["check", "--color", "auto"], Some("1")));
    assert!(
        !escapes(&["check", "--format", "json", "--color", "always"], None),
        "JSON holds no colours"
    );
}

#[test]
fn init_makes_a_repository_that_passes() {
    let scratch = tempfile::tempdir().expect("a folder");
    let run = reqc(scratch.path(), &["init", "new folder"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    let root = scratch.path().join("new folder");
    assert_eq!(reqc(&root, &["compile", "--check"]).code, 0);
    assert_eq!(reqc(&root, &["check", "--deny", "key/*"]).code, 0);
    assert_eq!(
        reqc(
            &root,
            &["render", "Reviewer", "--context", "review-request"]
        )
        .code,
        0
    );
    let before = state(&root);
    let again = reqc(&root, &["init"]);
    assert_eq!((again.code, again.out.as_str()), (2, ""));
    assert!(
        again.err.contains("already contains agents/, reqc.toml"),
        "{}",
        again.err
    );
    assert_eq!(state(&root), before);
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).expect("created");
    assert_eq!(
        reqc(&empty, &["init", "-q"]).code,
        0,
        "an empty folder will do"
    );
    assert_eq!(reqc(&empty, &["compile", "--check", "-q"]).out, "");
}

#[test]
fn init_writes_beside_other_files_and_replaces_none() {
    let files = [
        ("README.md", "# Ours\n"),
        (".gitignore", "target\n"),
        ("src/main.py", "pass\n"),
    ];
    let (_scratch, root) = repository(&files);
    let run = reqc(&root, &["init"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(
        run.out
            .contains("README.md                      already exists"),
        "{}",
        run.out
    );
    for (path, text) in files {
        assert_eq!(fs::read_to_string(root.join(path)).expect("kept"), text);
    }
    assert_eq!(reqc(&root, &["compile", "--check"]).code, 0);
    for taken in ["reqc.toml", "roles/reviewer.md", "agents/ours.toml"] {
        let (_scratch, root) = repository(&[(taken, "")]);
        let before = state(&root);
        assert_eq!(reqc(&root, &["init"]).code, 2, "{taken}");
        assert_eq!(state(&root), before, "{taken}");
    }
}

#[test]
fn help_lists_the_options_that_a_command_uses() {
    let scratch = tempfile::tempdir().expect("a folder");
    let help = |command: &str| reqc(scratch.path(), &[command, "--help"]).out;
    let lists = |command: &str, option: &str| {
        help(command)
            .lines()
            .any(|line| line.trim().starts_with(option))
    };
    assert!(lists("check", "--agent") && !lists("check", "--model"));
    assert!(lists("render", "--model") && !lists("render", "--deny"));
    assert!(lists("lint", "- sarif:") && !lists("list", "- sarif:"));
    assert!(
        help("explain").contains("--context <NAME> <AGENT>"),
        "{}",
        help("explain")
    );
    assert!(!help("--help").contains("`GitLab`") && !help("check").contains("`JUnit`"));
    for command in ["check", "compile", "list", "tree", "contexts", "providers"] {
        let run = reqc(scratch.path(), &[command, "--model", "m"]);
        let refused = format!("`--model` has no effect on `reqc {command}`");
        assert!(
            run.code == 2 && run.err.contains(&refused),
            "{command}: {}",
            run.err
        );
    }
}

#[test]
fn curl_and_golden_files_hold_no_secret() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("agents/c.toml", "name = \"C\"\nextends = \"Claude Chat\"\n"),
    ]);
    for agent in ["Helper", "C"] {
        let run = command(
            &root,
            &["render", agent, "--context", "plain-turn", "--curl"],
        )
        .env("OPENAI_API_KEY", "very-secret-value")
        .env("ANTHROPIC_API_KEY", "very-secret-value")
        .output();
        let run = ran(run.expect("runs"));
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(
            run.out.starts_with("curl ") && run.out.contains("_API_KEY}"),
            "{}",
            run.out
        );
        assert!(!run.out.contains("very-secret-value"));
    }
    let run = command(&root, &["compile"])
        .env("OPENAI_API_KEY", "very-secret-value")
        .output();
    assert_eq!(ran(run.expect("runs")).code, 0);
    let written = state(&root.join("golden"));
    assert!(
        written
            .iter()
            .all(|(_, bytes, _)| !String::from_utf8_lossy(bytes).contains("very-secret-value"))
    );
}

#[test]
fn render_prints_what_the_golden_file_holds() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    assert_eq!(reqc(&root, &["compile", "-q"]).code, 0);
    let golden = fs::read_to_string(root.join("golden/helper/plain-turn.json")).expect("written");
    assert_eq!(
        reqc(&root, &["render", "Helper", "--context", "plain-turn"]).out,
        golden
    );
    let other = reqc(
        &root,
        &[
            "render",
            "Helper",
            "--context",
            "plain-turn",
            "--model",
            "m-1",
        ],
    )
    .out;
    assert!(other.contains("\"model\": \"m-1\""), "{other}");
}

#[test]
fn render_prints_what_a_request_takes() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    let ran = reqc(
        &root,
        &["render", "Helper", "--context", "tool-turn", "--tokens"],
    );
    let ran = if ran.code == 0 {
        ran
    } else {
        reqc(
            &root,
            &["render", "Helper", "--context", "plain-turn", "--tokens"],
        )
    };
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains(" system   /messages/0\n") && ran.out.contains(" total, estimated with"),
        "{}",
        ran.out
    );
    let json = reqc(
        &root,
        &[
            "render",
            "Helper",
            "--context",
            "plain-turn",
            "--tokens",
            "--format",
            "json",
        ],
    )
    .out;
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let parts = document["parts"].as_array().expect("parts");
    let sum: u64 = parts
        .iter()
        .filter_map(|part| part["tokens"].as_u64())
        .sum();
    assert_eq!(document["total"].as_u64(), Some(sum));
    assert_eq!(
        reqc(
            &root,
            &[
                "render",
                "Helper",
                "--context",
                "plain-turn",
                "--tokens",
                "--compact"
            ]
        )
        .code,
        2
    );
}

#[test]
fn explain_tells_where_a_piece_of_a_context_went() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    let explain = |agent: &str, context: &str, content: &str| {
        reqc(
            &root,
            &[
                "explain",
                agent,
                "--context",
                context,
                "--content",
                content,
                "--format",
                "json",
            ],
        )
    };
    let run = explain("Claude Chat", "tool-round-trip", "/history/2/blocks/0");
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let pointers: Vec<&str> = document["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| value["pointer"].as_str())
        .collect();
    assert_eq!(
        pointers,
        [
            "/messages/2/content/0/tool_use_id",
            "/messages/2/content/0/content"
        ]
    );
    let run = explain("OpenAI Chat", "thinking", "/history/1/content/0");
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let lost = document["lost"][0].as_str().expect("a sentence");
    assert!(
        document["values"] == serde_json::json!([])
            && lost.starts_with("thinking is not in the body. "),
        "{lost}"
    );
    let run = explain("Claude Chat", "plain-turn", "/history/9");
    assert!(
        run.code == 2 && run.err.contains("has nothing at `/history/9`"),
        "{}",
        run.err
    );
}

#[test]
fn completions_and_help_are_printed() {
    let scratch = tempfile::tempdir().expect("a folder");
    let run = reqc(scratch.path(), &["completions", "bash"]);
    assert!(
        run.code == 0 && run.out.contains("complete -F"),
        "{}",
        run.err
    );
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["compile", "--help"],
        &["rule"],
        &["rule", "extends/cycle"],
    ] {
        let run = reqc(scratch.path(), arguments);
        assert!(
            run.code == 0 && !run.out.is_empty() && run.err.is_empty(),
            "{arguments:?}: {}",
            run.err
        );
    }
}

#[test]
fn a_flat_folder_inside_another_repository_is_its_own_root() {
    let flat = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collections/flat");
    let run = reqc(&flat, &["list"]);
    assert!(
        run.code == 0
            && run.out.contains("Relay Claude Chat")
            && !run.out.contains("\nGemini Chat "),
        "{}",
        run.out
    );
    // Its templates do not know attached files, documents or provider blocks.
    let allowed = [
        "--allow",
        "protocol/*",
        "--allow",
        "schema/invalid-value",
        "--allow",
        "provider/other-format",
        "--allow",
        "flow/*",
    ];
    let run = reqc(&flat, &[&["check"][..], &allowed].concat());
    assert_eq!(run.code, 0, "{}", run.out);
}

#[test]
fn routing_tells_who_gets_a_file_and_why_others_do_not() {
    let rust = "name = \"Rust\"\nextends = \"OpenAI Chat\"\n[match]\nfile_patterns = [\"*.rs\"]\nproject_names = [\"Core\"]\n";
    let child = "name = \"Tests\"\nextends = \"Rust\"\n[match]\npath_patterns = [\"tests/*\"]\n";
    let rosters = "[[roster]]\nname = \"chat\"\nagents = [\"Tests\", \"Rust\", \"OpenAI Chat\"]\n\n\
                   [[roster]]\nname = \"edit\"\nagents = [\"Rust\"]\n";
    let files = [
        ("agents/rust.toml", rust),
        ("agents/tests.toml", child),
        ("rosters.toml", rosters),
    ];
    let (_scratch, root) = repository(&files);
    assert_eq!(reqc(&root, &["check"]).code, 0);

    let inherited = reqc(
        &root,
        &[
            "route",
            "tests\\a.RS",
            "--roster",
            "chat",
            "--project",
            "Core",
        ],
    );
    assert_eq!((inherited.code, inherited.out.as_str()), (0, "Tests\n"));
    let other = reqc(
        &root,
        &["route", "a.py", "--roster", "chat", "--project", "Core"],
    );
    assert_eq!(other.code, 0);
    assert_eq!(
        other.out,
        "OpenAI Chat\n  not Tests: `file_patterns` is `*.rs`, which `a.py` does not match; `path_patterns` is `tests/*`, which \
         `a.py` does not match\n  not Rust: `file_patterns` is `*.rs`, which `a.py` does not match\n"
    );
    let none = reqc(&root, &["route", "a.rs", "--roster", "edit"]);
    assert_eq!(none.code, 1);
    assert_eq!(
        none.out,
        "no agent in the roster `edit` accepts `a.rs`\n  not Rust: `project_names` is `Core`, but no project is given\n"
    );
    let json = reqc(
        &root,
        &["route", "a.rs", "--roster", "edit", "--format", "json"],
    );
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!((json.code, &value["agent"]), (1, &serde_json::Value::Null));
    assert_eq!(value["passed"][0]["mismatches"][0]["key"], "project_names");
    let unknown = reqc(&root, &["route", "a.rs", "--roster", "caht"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(
        unknown.err.contains("did you mean `chat`?"),
        "{}",
        unknown.err
    );
}

#[cfg(feature = "runtime")]
#[test]
fn providers_tell_whether_keys_are_found_and_never_show_them() {
    let team = |name: &str, key: &str| {
        format!(
            "name = \"{name}\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://x.example/v1\"\n{key}\n"
        )
    };
    let files = [
        (
            "agents/a.toml",
            "name = \"A\"\nextends = \"OpenAI Chat\"\nprovider_instance = \"By File\"\n",
        ),
        (
            "agents/b.toml",
            "name = \"B\"\nextends = \"OpenAI Chat\"\nprovider_instance = \"By Name\"\n",
        ),
        (
            "providers/file.toml",
            &team("By File", "api_key_ref = \"file:.keys/team\""),
        ),
        (
            "providers/name.toml",
            &team("By Name", "api_key_ref = \"env:REQC_TEST_KEY\""),
        ),
        ("providers/none.toml", &team("Open", "server = \"vLLM\"")),
        (".keys/team", "planted-in-a-file\n"),
    ];
    let (_scratch, root) = repository(&files);
    for (value, found) in [
        (Some("planted-in-the-environment"), true),
        (Some(""), false),
        (None, false),
    ] {
        for format in ["human", "json"] {
            let mut command = command(&root, &["providers", "--format", format]);
            match value {
                Some(value) => command.env("REQC_TEST_KEY", value),
                None => command.env_remove("REQC_TEST_KEY"),
            };
            let run = ran(command.output().expect("the binary runs"));
            assert_eq!((run.code, run.err.as_str()), (0, ""));
            assert!(!run.out.contains("planted"), "{}", run.out);
            if format == "human" {
                assert_eq!(
                    run.out
                        .contains("By Name: the environment variable `REQC_TEST_KEY` is"),
                    !found
                );
                assert!(
                    run.out.contains("https://x.example/v1 (vLLM)"),
                    "{}",
                    run.out
                );
                continue;
            }
            let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
            let row = |name: &str| {
                rows.iter()
                    .find(|row| row["name"] == name)
                    .expect("it is listed")
            };
            assert_eq!(row("By Name")["key_found"], found);
            assert_eq!(
                (&row("By File")["key_found"], &row("By File")["agents"]),
                (&true.into(), &1.into())
            );
            assert_eq!(row("Open")["key_found"], serde_json::Value::Null);
            assert_eq!(row("Open")["server"], "vLLM");
            assert_eq!(row("By Name")["server"], serde_json::Value::Null);
        }
    }
}

#[test]
fn a_secret_in_an_address_is_shown_nowhere_and_written_nowhere() {
    let agent = |name: &str, more: &str| {
        format!("name = \"{name}\"\nextends = \"OpenAI Compatible Chat\"\nmodel = \"m\"\n{more}\n")
    };
    let files = [
        ("agents/a.toml", &agent("A", "endpoint = \"chat/completions?api_key=hunter2hunter2\"")),
        ("agents/b.toml", &agent("B", "provider_instance = \"Mine\"")),
        ("agents/c.toml", &"name = \"C\"\nextends = \"A\"\nendpoint = \"v1/x\"\n".to_owned()),
        ("agents/d.toml", &agent("D", "")),
        (
            "providers/mine.toml",
            &"name = \"Mine\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://me:hunter2@h.example/v1\"\n"
                .to_owned(),
        ),
    ];
    let (_scratch, root) = repository(&files.map(|(path, text)| (path, text.as_str())));
    for line in [
        "check",
        "compile",
        "compile --diff",
        "list --all",
        "tree",
        "show A",
        "show B",
        "show C",
        "render A --context plain-turn",
        "render B --context plain-turn --curl",
    ] {
        for format in ["human", "short", "json"] {
            let arguments: Vec<&str> = line.split(' ').chain(["--format", format]).collect();
            let ran = reqc(&root, &arguments);
            assert!(
                !format!("{}{}", ran.out, ran.err).contains("hunter2"),
                "{line}: {}{}",
                ran.out,
                ran.err
            );
        }
    }
    for broken in ["a", "b", "c"] {
        assert!(!root.join("golden").join(broken).exists(), "{broken}");
    }
}

#[cfg(feature = "runtime")]
#[test]
fn send_tells_what_check_says_of_the_agent() {
    let other = WARNS.replace("Helper", "Other");
    let files = [("agents/helper.toml", WARNS), ("agents/other.toml", &other)];
    let (_scratch, root) = repository(&files);
    let send = |arguments: &[&str]| {
        reqc(
            &root,
            &[
                &["send", "Helper", "-m", "Hi", "--model", "m", "--dry-run"],
                arguments,
            ]
            .concat(),
        )
    };
    let (run, check) = (send(&[]), reqc(&root, &["check", "--agent", "Helper"]));
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        check.out.starts_with(&format!("{}\n", run.err)) && run.err.contains("descriptoin"),
        "{}",
        run.err
    );
    let line = "agents/helper.toml:3:10: warning[extends/unset-nothing]: ";
    let run = send(&["--format", "short"]);
    assert!(
        run.err.starts_with(line) && run.err.lines().count() == 1,
        "{}",
        run.err
    );
    assert_eq!(send(&["--allow", "extends/unset-nothing"]).err, "");
}

#[cfg(unix)]
#[test]
fn a_curl_command_finds_its_key_from_any_folder() {
    let provider = "name = \"Mine\"\nclient_api = \"OpenAI Compatible\"\nurl = \"http://localhost:1\"\napi_key_ref = \"file:it's/key\"\n";
    let agent =
        "name = \"Helper\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Mine\"\n";
    let files = [
        ("providers/mine.toml", provider),
        ("agents/helper.toml", agent),
        ("it's/key", "planted\n"),
    ];
    let (scratch, root) = repository(&files);
    let arguments = [
        "render",
        "Helper",
        "--context",
        "plain-turn",
        "--model",
        "m",
        "--curl",
        "-C",
        "a repository",
    ];
    let run = reqc(scratch.path(), &arguments);
    assert!(!run.out.contains("planted"), "{}{}", run.out, run.err);
    // Prints the arguments of curl instead of running it.
    let script = format!(
        "curl() {{ printf '%s\\n' \"$@\"; cat >/dev/null; }}\n{}",
        run.out
    );
    for folder in [scratch.path(), &root, &root.join("agents")] {
        let told = ran(Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .output()
            .expect("a shell"));
        assert!(
            told.out.contains("authorization: Bearer planted\n"),
            "{}{}",
            told.out,
            told.err
        );
    }
}

#[cfg(feature = "runtime")]
#[test]
fn send_offers_the_tools_of_a_file_and_says_what_is_wrong_with_it() {
    let tools = "[[tool]]\nname = \"look\"\ndescription = \"Looks.\"\ncommand = [\"./look\"]\n";
    let agent = "name = \"Helper\"\nextends = \"OpenAI Chat Tools\"\n";
    let wrong = "[[tool]]\nname = \"no name\"\n";
    let files = [
        ("reqc.toml", ""),
        ("agents/helper.toml", agent),
        ("own/tools.toml", tools),
        ("wrong.toml", wrong),
    ];
    let (_scratch, root) = repository(&files);
    let ran = reqc(
        &root,
        &[
            "send",
            "Helper",
            "-m",
            "Hi",
            "--dry-run",
            "--tools",
            "own/tools.toml",
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\"name\": \"look\""), "{}", ran.out);
    assert!(
        ran.err.starts_with("tools/no-program\n") && ran.err.contains("[own/tools.toml:4:"),
        "{}",
        ran.err
    );
    let ran = reqc(
        &root,
        &[
            "send",
            "Helper",
            "-m",
            "Hi",
            "--dry-run",
            "--tools",
            "wrong.toml",
            "--format",
            "short",
        ],
    );
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("wrong.toml:2"), "{}", ran.out);
    let both = "[[server]]\nname = \"s\"\ncommand = [\"./s\"]\nurl = \"https://h.example/mcp\"\n";
    fs::write(root.join("both.toml"), both).expect("written");
    let ran = reqc(
        &root,
        &[
            "send",
            "Helper",
            "-m",
            "Hi",
            "--dry-run",
            "--tools",
            "both.toml",
            "--format",
            "short",
        ],
    );
    assert!(
        ran.code == 1
            && ran
                .out
                .contains("both.toml:1:1: error[tools/server-connection]"),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = reqc(
        &root,
        &[
            "send",
            "Helper",
            "-m",
            "Hi",
            "--dry-run",
            "--tools",
            "none.toml",
            "--format",
            "short",
        ],
    );
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("`none.toml` cannot be read"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_run_that_makes_no_body_is_an_error() {
    let (_scratch, root) = repository(&[
        ("agents/base.toml", BASE),
        ("golden/old/plain-turn.json", "{}\n"),
    ]);
    for arguments in [
        &["check"][..],
        &["compile", "--check"],
        &["compile", "--diff"],
        &["compile"],
        &["check", "--quiet"],
    ] {
        let run = reqc(&root, arguments);
        assert!(
            run.code == 1 && run.out.contains("select/no-body"),
            "{arguments:?}: {} {}",
            run.out,
            run.err
        );
        let run = reqc(&root, &[arguments, &["--format", "json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        let mut told = report["diagnostics"].as_array().into_iter().flatten();
        let is_told =
            told.any(|told| told["code"] == "select/no-body" && told["severity"] == "error");
        assert!(run.code == 1 && is_told, "{arguments:?}: {report:#}");
    }
    assert!(
        root.join("golden/old/plain-turn.json").exists(),
        "existing files stay"
    );
    assert_eq!(
        reqc(&root, &["list"]).code,
        0,
        "`list` does not compile any agent"
    );
    assert!(
        reqc(&root, &["check", "--allow", "select/no-body"])
            .err
            .contains("cannot be allowed")
    );

    write(&root, &[("agents/child.toml", CHILD)]);
    let chat = ["check", "--agent", "Our Child", "--context"];
    assert_eq!(reqc(&root, &[&chat[..], &["plain-turn"]].concat()).code, 0);
    let run = reqc(
        &root,
        &[
            &chat[..],
            &["completion-prefix-suffix", "--format", "short"],
        ]
        .concat(),
    );
    assert!(
        run.code == 1 && run.out.contains("`Our Child` has no body, because "),
        "{}",
        run.out
    );
    let run = reqc(&root, &["check", "--no-bundled", "--format", "short"]);
    assert!(
        run.code == 1 && run.out.contains("extends/unknown-parent") && !run.out.contains("select/"),
        "{}",
        run.out
    );
}

#[test]
fn empty_arguments_are_errors() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    let options = [
        "--agent",
        "--context",
        "--model",
        "--allow",
        "--deny",
        "-C",
        "--format",
        "--color",
    ];
    let mut commands: Vec<Vec<&str>> = options
        .iter()
        .map(|option| vec!["check", option, ""])
        .collect();
    commands.extend([
        vec!["check", ""],
        vec!["compile", "--out", ""],
        vec!["list", "--tag", ""],
        vec!["show", ""],
    ]);
    commands.extend([
        vec![
            "render",
            "Helper",
            "--context",
            "plain-turn",
            "--model",
            " ",
        ],
        vec!["init", ""],
        vec!["rule", ""],
    ]);
    commands.extend([
        vec!["route", "a.py", "--roster", ""],
        vec!["route", "", "--roster", "x"],
        vec!["schema", ""],
    ]);
    for arguments in commands {
        let run = reqc(&root, &arguments);
        assert!(
            run.code == 2 && run.out.is_empty() && !run.err.is_empty(),
            "{arguments:?}: {} {}",
            run.out,
            run.err
        );
    }
    assert!(!root.join("golden").exists());
}

const LOWERED: &str = "[rules]\n\"key/unknown\" = \"off\"\n\"schema/*\" = \"warning\"\n\"text/invisible\" = \"error\"\n\n\
    [[allow]]\ncode = \"key/*\"\nagent = \"Help*\"\nreason = \"for a test\"\nexpires = 2999-01-31\n\n\
    [[allow]]\ncode = \"key/*\"\nreason = \"long ago\"\nexpires = 2001-01-31\n\n\
    [[extension]]\nprovider_instance = \"OpenAI\"\nfields = [\"/a\"]\nreason = \"new\"\n";

#[test]
fn what_is_lowered_is_reported() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    assert!(
        !reqc(&root, &["check"]).out.contains("lowered"),
        "nothing is"
    );
    write(
        &root,
        &[
            ("reqc.toml", LOWERED),
            ("schemas/wire/openai-chat.json", "{}"),
        ],
    );
    let run = reqc(
        &root,
        &[
            "check",
            "--allow",
            "coverage/unused",
            "--allow",
            "key/unknown",
        ],
    );
    assert_eq!(run.code, 2, "an unknown code is no allowance: {}", run.err);
    let run = reqc(&root, &["check", "--allow", "key/unknown"]);
    let line = "checks reduced: 2 rules, 1 [[allow]], 1 [[extension]], 1 schema, 1 --allow; `--format json` lists them";
    assert!(run.code == 0 && run.out.contains(line), "{}", run.out);
    let run = reqc(&root, &["check", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let told: Vec<String> = report["lowered"]
        .as_array()
        .expect("a list")
        .iter()
        .map(ToString::to_string)
        .collect();
    let parts = [
        "\"to\":\"off\"",
        "\"to\":\"warning\"",
        "for a test",
        "\"fields\":[\"/a\"]",
        "\"kind\":\"schema\"",
    ];
    assert!(
        told.len() == 5
            && told
                .iter()
                .zip(parts)
                .all(|(told, part)| told.contains(part)),
        "{told:#?}"
    );
    assert!(
        told[2].contains("2999-01-31")
            && told[2].contains("Help*")
            && told[2].contains("\"line\":7"),
        "{}",
        told[2]
    );
}

/// A repository that claims to be the bundled layer, but has no schemas.
#[test]
fn a_bundled_layer_without_schemas_is_reported() {
    let provider = "name = \"P\"\nclient_api = \"OpenAI\"\nurl = \"https://a.example/v1\"\n";
    let agent = "name = \"A\"\nprovider_instance = \"P\"\nendpoint = \"chat/completions\"\n[body]\nnonsense = 1\n";
    let context = "{\"why\": \"w\", \"messages\": [{\"role\": \"user\", \"content\": \"c\"}]}";
    let (_scratch, root) = repository(&[
        ("agents/a.toml", agent),
        ("providers/p.toml", provider),
        ("contexts/c.json", context),
        ("reqc.toml", "layer = \"bundled\"\n"),
    ]);
    let run = reqc(&root, &["check"]);
    assert!(
        run.out
            .contains("checks reduced: a bundled layer without schemas"),
        "{} {}",
        run.out,
        run.err
    );
}

#[test]
fn a_diff_tells_what_a_change_lowers() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("reqc.toml", "[rules]\n\"key/unknown\" = \"error\"\n"),
    ]);
    write(
        &root,
        &[(
            "schemas/wire/openai-chat.json",
            "{\"required\": [\"model\"]}",
        )],
    );
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "before"]);
    assert_eq!(
        reqc(&root, &["compile", "--diff", "HEAD"]).out,
        "no changes\n"
    );

    write(
        &root,
        &[("reqc.toml", "\n\n[rules]\n\"key/unknown\" = \"error\"\n")],
    );
    assert_eq!(
        reqc(&root, &["compile", "--diff", "HEAD"]).out,
        "no changes\n",
        "the same setting on another line"
    );

    write(&root, &[("reqc.toml", LOWERED)]);
    let run = reqc(&root, &["compile", "--diff", "HEAD"]);
    let parts = [
        "reqc.toml:2: key/unknown = \"off\"",
        "key/unknown is no longer an error",
        "reqc.toml:7: [[allow]] key/* for agents `Help*` until 2999-01-31: for a test",
    ];
    assert!(
        run.code == 0 && parts.iter().all(|part| run.out.contains(part)),
        "{}",
        run.out
    );
    assert!(
        !run.out.contains("no changes\n") && !run.out.contains("a schema of the repository"),
        "{}",
        run.out
    );
    assert_eq!(
        reqc(&root, &["compile", "--diff", "HEAD", "--exit-code"]).code,
        1
    );

    fs::remove_file(root.join("reqc.toml")).expect("removed");
    write(&root, &[("schemas/wire/openai-chat.json", "{}")]);
    let run = reqc(&root, &["compile", "--diff", "HEAD", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let told: Vec<String> = report["lowered"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["kind"].to_string())
        .collect();
    assert_eq!(
        told,
        ["\"schema\"", "\"rule\""],
        "an edited schema, and a rule that is no longer an error"
    );
    fs::remove_file(root.join("schemas/wire/openai-chat.json")).expect("removed");
    let run = reqc(&root, &["compile", "--diff", "HEAD"]);
    assert!(
        run.out
            .contains("schemas/wire/openai-chat.json was removed"),
        "{}",
        run.out
    );
}

/// An unknown context name can be that of a file with errors.
#[test]
fn a_context_that_cannot_be_read_is_told_where_it_is_asked_for() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        ("contexts/own.json", "{\"name\": \"own\""),
    ]);
    for command in [
        vec!["check"],
        vec!["compile", "--check"],
        vec!["compile", "--diff"],
        vec!["compile"],
        vec!["contexts"],
    ] {
        let run = reqc(
            &root,
            &[&command[..], &["--context", "own", "--format", "json"]].concat(),
        );
        let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        assert_eq!(
            report["diagnostics"][0]["code"], "context/syntax",
            "{command:?}"
        );
        assert!(
            run.code == 2 && run.err.contains("the context `own` is left out"),
            "{command:?}: {}",
            run.err
        );
    }
    for command in ["render", "explain"] {
        let run = reqc(&root, &[command, "Helper", "--context", "own"]);
        assert!(
            run.code == 2 && run.out.contains("contexts/own.json:1:1"),
            "{command}: {}",
            run.out
        );
        assert!(
            run.err.contains("the context `own` is left out"),
            "{command}: {}",
            run.err
        );
    }
    for (place, told) in [
        (
            "agents/helper.toml:0",
            "starting at 1: `agents/helper.toml:3:7`",
        ),
        (
            "agents/helper.toml:x",
            "starting at 1: `agents/helper.toml:3:7`",
        ),
        ("agents/helper.toml:99", "has no line 99: it has "),
        ("agents/helper.toml:1:999", "has no column 999: it has "),
        (
            "partials/openai/messages.jinja:1",
            "did you mean `bundled:partials/openai/messages.jinja`?",
        ),
    ] {
        let run = reqc(&root, &["impact", place]);
        assert!(
            run.code == 2 && run.err.contains(told),
            "{place}: {}",
            run.err
        );
    }
    let run = reqc(&root, &["impact", "contexts/own.json:1"]);
    assert!(
        run.code == 2 && run.err.contains("is left out because it has errors"),
        "{}",
        run.err
    );
    assert!(reqc(&root, &["check", "--context", "nobody"]).code == 2);
    fs::remove_file(root.join("contexts/own.json")).expect("removed");
    let run = reqc(&root, &["check", "--context", "own", "--format", "json"]);
    assert!(run.code == 2 && run.out.is_empty(), "{}", run.out);
}

/// Changes that no body shows: which agents are compiled, in which contexts, and where requests go.
#[test]
fn a_diff_tells_what_a_change_takes_away() {
    let agent =
        |name: &str, more: &str| format!("name = \"{name}\"\nextends = \"OpenAI Chat\"\n{more}");
    let context = |name: &str, golden: bool| {
        let history = "[{\"role\": \"user\", \"content\": \"x\"}]";
        format!(
            "{{\"name\": \"{name}\", \"why\": \"w\", \"kind\": \"chat\", \"golden\": {golden}, \"history\": {history}}}"
        )
    };
    let (_scratch, root) = repository(&[
        ("agents/a.toml", &agent("A", "")),
        ("agents/b.toml", &agent("B", "")),
        (
            "agents/c.toml",
            &agent("C", "match.file_patterns = [\"*.rs\"]\n"),
        ),
        ("contexts/one.json", &context("one", true)),
        ("contexts/two.json", &context("two", true)),
        ("contexts/three.json", &context("three", true)),
        ("models.toml", "A = \"m1\"\nC = \"m2\"\n"),
        (
            "reqc.toml",
            "[rules]\n\"extends/*\" = \"warning\"\n\"extends/unset-nothing\" = \"error\"\n",
        ),
    ]);
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "before"]);
    fs::remove_file(root.join("agents/a.toml")).expect("removed");
    fs::remove_file(root.join("contexts/one.json")).expect("removed");
    write(
        &root,
        &[
            ("agents/b.toml", &agent("B", "abstract = true\n")),
            (
                "agents/c.toml",
                &agent("C", "match.file_patterns = [\"*\"]\n"),
            ),
            ("contexts/two.json", &context("two", false)),
            ("models.toml", "C = \"m3\"\n"),
            (
                "reqc.toml",
                "dialect = \"inja\"\n[golden]\ncontexts = [\"plain-turn\"]\n\
                 [rules]\n\"extends/unset-nothing\" = \"error\"\n\"extends/*\" = \"warning\"\n",
            ),
        ],
    );
    let told = reqc(&root, &["compile", "--diff", "HEAD"]).out;
    let parts = [
        "the agent A was removed",
        "agents/b.toml:3: the agent B is now abstract",
        "the context one was removed",
        "the context two no longer has golden bodies",
        "reqc.toml:3: the context three no longer has golden bodies",
        "extends/unset-nothing is no longer an error",
        "models.toml:1: the model of C is `m3`",
        "models.toml no longer sets a model for A",
        "the dialect is `inja`",
    ];
    let missing: Vec<&&str> = parts.iter().filter(|part| !told.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} in {told}");
    let report = reqc(&root, &["check"]).out;
    assert!(
        report.contains("golden contexts"),
        "a report without a revision also shows it: {report}"
    );
}

#[cfg(unix)]
#[test]
fn a_file_of_models_that_leads_outside_is_an_error() {
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    std::os::unix::fs::symlink("/etc/hostname", root.join("models.toml")).expect("linked");
    let run = reqc(&root, &["check", "--format", "short"]);
    assert!(
        run.code == 1 && run.out.contains("models.toml:1:1: error[repo/unreadable]"),
        "{}",
        run.out
    );
}

/// Programs in any language can pass a conversation and get the request.
#[test]
fn a_conversation_of_standard_input_becomes_a_request() {
    use std::io::Write as _;
    let (_scratch, root) = repository(&[("agents/helper.toml", AGENT)]);
    let render = |input: &str, more: &[&str]| {
        let mut child = Command::new(program::path())
            .args(
                [
                    &[
                        "render",
                        "Helper",
                        "--context",
                        "-",
                        "-C",
                        root.to_str().expect("UTF-8"),
                    ],
                    more,
                ]
                .concat(),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        child
            .stdin
            .take()
            .expect("piped")
            .write_all(input.as_bytes())
            .expect("written");
        let output = child.wait_with_output().expect("it ends");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let hello = "{\"history\": [{\"role\": \"user\", \"content\": \"Hello?\"}]}";
    let (code, body) = render(hello, &["--compact"]);
    assert!(
        code == Some(0) && body.lines().count() == 1 && body.contains("\"content\":\"Hello?\""),
        "{body}"
    );
    let (_, request) = render(hello, &["--format", "json", "--model", "m"]);
    let request: serde_json::Value = serde_json::from_str(&request).expect("JSON");
    assert_eq!(request["body"]["model"], "m");
    assert_eq!(request["method"], "POST");
    assert!(
        request["url"]
            .as_str()
            .is_some_and(|url| url.ends_with("/chat/completions")),
        "{request}"
    );
    let (code, told) = render(
        "{\"history\": [{\"role\": \"user\", \"contnet\": \"Hello?\"}]}",
        &["--format", "short"],
    );
    assert!(code == Some(1) && told.contains("<stdin>:1:31"), "{told}");
    let (code, _) = render("{", &[]);
    assert_eq!(code, Some(1));
}

/// Output for other programs is checked like requests that are sent.
#[test]
fn requests_are_laid_out_for_other_programs() {
    let (_scratch, root) = repository(&[
        ("agents/helper.toml", AGENT),
        (
            "agents/claude.toml",
            "name = \"A very long name: of an agent / whose id has to be cut somewhere to fit\"\nextends = \"Claude Chat\"\n",
        ),
    ]);
    let layouts = [
        ("jsonl", 22),
        ("har", 22),
        ("batch-openai", 11),
        ("batch-anthropic", 11),
    ];
    for (layout, requests) in layouts {
        let run = reqc(&root, &["compile", "--out", layout, "--layout", layout]);
        assert!(
            run.code == 0 && run.out.contains(&format!("{requests} requests in 1 file")),
            "{} {}",
            run.out,
            run.err
        );
        let file = fs::read_dir(root.join(layout))
            .expect("a folder")
            .next()
            .expect("a file")
            .expect("an entry")
            .path();
        let path = file.to_string_lossy().into_owned();
        let lint = reqc(&root, &["lint", &path]);
        assert!(
            lint.code == 0 && lint.out.contains(&format!("{requests} bodies")),
            "{layout}: {}",
            lint.out
        );
        let text = fs::read_to_string(&file).expect("text");
        assert_eq!(
            text.contains("stream"),
            !layout.starts_with("batch"),
            "{layout}"
        );
        assert_eq!(
            reqc(&root, &["compile", "--out", layout, "--layout", layout]).code,
            0,
            "the same again"
        );
        fs::write(&file, "{}").expect("writable");
        let again = reqc(&root, &["compile", "--out", layout, "--layout", layout]);
        assert!(
            again.code == 2 && again.err.contains("already exists"),
            "{}",
            again.err
        );
    }
    let batch = fs::read_to_string(root.join("batch-anthropic/messages.json")).expect("text");
    assert_eq!(batch, "{}");
    let ids = reqc(
        &root,
        &["compile", "--out", "ids", "--layout", "batch-anthropic"],
    );
    let batch: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root.join("ids/messages.json")).expect("text"))
            .expect("JSON");
    let ids_of: Vec<&str> = batch["requests"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["custom_id"].as_str())
        .collect();
    let is_id = |id: &&str| {
        id.len() <= 64
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    assert!(
        ids_of.iter().all(is_id) && ids_of.len() == 11,
        "{} {ids_of:?}",
        ids.err
    );
    assert_eq!(
        ids_of
            .iter()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        11
    );
    assert_eq!(
        reqc(&root, &["compile", "--out", "curl", "--layout", "curl"]).code,
        0
    );
    let script = root.join("curl/helper/plain-turn.sh");
    assert!(
        Command::new("sh")
            .arg("-n")
            .arg(&script)
            .status()
            .expect("sh runs")
            .success()
    );
    assert_eq!(reqc(&root, &["compile", "--layout", "har"]).code, 2);
}

#[test]
fn options_that_other_programs_have_get_a_tip() {
    let root = tempfile::tempdir().expect("a folder");
    for (arguments, tip) in [
        (&["check", "--json"][..], "`--format json` writes JSON"),
        (&["lint", "a.json", "--strict"], "`--deny-warnings`"),
        (
            &["why400", "no", "--request", "a.json"],
            "`reqc why400 --body FILE`",
        ),
        (
            &["why400", "--file", "a.txt"],
            "there is no option `--file`",
        ),
    ] {
        let run = reqc(root.path(), arguments);
        assert!(
            run.code == 2 && run.err.contains(tip),
            "{arguments:?}: {}",
            run.err
        );
    }
}
