//! Hostile text from a repository is printed without any effect.
//!
//! Hostile strings are planted in every location of a repository. Every command prints them in
//! every format, with and without colour, and the bytes of standard output and standard error are
//! checked.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes repositories and runs the binary"
)]

mod git;
mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use git::git;
use serde_json::Value;

/// The planted strings, each with a harmless beginning: new lines, control characters, changes of
/// direction, invisible characters, and workflow commands.
const HOSTILE: [&str; 3] = [
    "X\n::error file=x::pwned\n##[error]pwned\r\u{1b}[2J\u{1b}]0;p\u{7}\u{7f}\u{9b}31m\u{85}::add-mask::a",
    "X\u{202e}\u{2066}\u{61c}p\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{3164}\u{e0041}\u{2028}::error::\u{fff9}",
    "::error::pwned ##teamcity[x] ##vso[y] section_start:1:x",
];

/// Writes a TOML string in which every character is an escape.
fn toml(text: &str) -> String {
    let escaped: Vec<String> = text
        .chars()
        .map(|c| format!("\\U{:08X}", u32::from(c)))
        .collect();
    format!("\"{}\"", escaped.concat())
}

/// Writes a JSON string.
fn json(text: &str) -> String {
    Value::from(text).to_string()
}

/// Makes a string usable in a path, by removing characters that no file system permits.
fn path(text: &str) -> String {
    text.replace('/', "-").replace('\0', "")
}

fn write(root: &Path, name: &str, text: &str) {
    let file = root.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("created");
    fs::write(file, text).expect("written");
}

/// Writes a repository that compiles, with a hostile string in every possible location.
fn sound(root: &Path, x: &str) {
    let (t, p) = (toml(x), path(x));
    write(
        root,
        &format!("agents/{p}/{p}.toml"),
        &format!(
            "name = {t}\ndescription = {t}\ntags = [{t}]\nextends = \"Base\"\nsystem_prompt = {t}\nmodel = {t}\n[match]\n\
             file_patterns = [{t}]\npath_patterns = [{t}]\nproject_names = [{t}]\n[body]\n{t} = {t}\n[body.metadata]\n{t} = [{t}]\n"
        ),
    );
    let base = format!(
        "name = \"Base\"\nabstract = true\nextends = \"OpenAI Chat\"\ndescription = {t}\n[body]\nuser = {t}\n"
    );
    write(root, "agents/base.toml", &base);
    write(
        root,
        "agents/helper.toml",
        &format!("name = \"Helper\"\nextends = \"Base\"\nprovider_instance = {t}\n"),
    );
    let provider = format!(
        "name = {t}\ndescription = {t}\nclient_api = \"OpenAI Compatible\"\nurl = \"https://a.example/{}\"\napi_key_ref = {}\n",
        p.chars()
            .filter(|c| !c.is_whitespace() && !c.is_control() && !"?#".contains(*c))
            .collect::<String>(),
        toml(&format!("file:{x}")),
    );
    write(root, &format!("providers/{p}.toml"), &provider);
    let context = format!(
        "{{\"why\": {j}, \"messages\": [{{\"role\": \"user\", \"content\": {j}}}]}}",
        j = json(x)
    );
    write(root, &format!("contexts/{p}.json"), &context);
    write(root, "contexts/mine.json", &context);
    write(
        root,
        &format!("partials/{p}.jinja"),
        &format!("{{# {x} #}}{{{{ \"{}\" }}}}", x.replace(['\n', '"'], " ")),
    );
    write(root, "models.toml", &format!("Helper = {t}\n{t} = {t}\n"));
    write(
        root,
        "rosters.toml",
        &format!(
            "[[roster]]\nname = {t}\nagents = [{t}, \"Helper\", {}]\n",
            toml(&format!("no {x}"))
        ),
    );
    write(
        root,
        "reqc.toml",
        &format!(
            "{t} = 1\n[rules]\n{t} = \"off\"\n\"key/unknown\" = {t}\n\"schema/*\" = \"warning\"\n[golden]\ncontexts = [\"mine\", {t}]\n\
             [[allow]]\ncode = {t}\nreason = {t}\n[[allow]]\ncode = \"text/*\"\nagent = {t}\nfile = {t}\nreason = {t}\n\
             [[extension]]\nprovider_instance = {t}\nfields = [{t}]\nreason = {t}\n"
        ),
    );
    write(
        root,
        &format!("golden/{p}/{p}.json"),
        &format!("{x}\n ::error::a\n{{}}"),
    );
    write(
        root,
        "golden/helper/mine.json",
        &format!("{{\n{x}\n ::error::b\n\t##[error]c\n}}"),
    );
    write(root, &format!("roles/{p}.md"), x);
}

/// Writes the same repository with mistakes whose messages contain the text.
fn broken(root: &Path, x: &str) {
    let (t, p) = (toml(x), path(x));
    sound(root, x);
    let agents = [
        ("extends", format!("name = \"A1\"\nextends = {t}\n")),
        (
            "unknown",
            format!(
                "name = \"A2\"\nextends = \"Base\"\n{t} = 1\ncache_ttl = {t}\nendpoint = {t}\nprovider_instance = {t}\n"
            ),
        ),
        (
            "syntax",
            format!("name = \"A3\"\n{} = = 1\n", x.replace('\n', " ")),
        ),
        (
            "raw",
            format!(
                "name = \"A4\"\nextends = \"Base\"\ndescription = '''{x}'''\n[body]\nx = '''{{{{ {x} }}}}'''\n"
            ),
        ),
        (
            "include",
            format!(
                "name = \"A5\"\nextends = \"Base\"\n[body]\nx = {}\n",
                toml(&format!("{{% include '{x}' %}}"))
            ),
        ),
        (
            "function",
            format!(
                "name = \"A6\"\nextends = \"Base\"\n[body]\nx = {}\n",
                toml(&format!("{{{{ ctx['{x}'] }}}}"))
            ),
        ),
        (
            "json",
            format!(
                "name = \"A7\"\nextends = \"Base\"\n[body]\nx = {}\n",
                toml(&format!("{{{{ ctx.history }}}} {x}"))
            ),
        ),
        (
            "file",
            format!(
                "name = \"A8\"\nextends = \"Base\"\nsystem_prompt = {}\n",
                toml(&format!("{{{{ read_file('{x}') }}}}"))
            ),
        ),
        (
            "unset",
            format!("name = \"A9\"\nextends = \"Base\"\nunset = [{t}]\nabstract = {t}\n"),
        ),
        ("twice", format!("name = {t}\nextends = \"Base\"\n")),
    ];
    for (name, text) in agents {
        write(root, &format!("agents/{name}.toml"), &text);
    }
    write(
        root,
        &format!("providers/{p}2.toml"),
        &format!("name = {t}\nextends = {t}\nclient_api = {t}\nurl = {t}\n"),
    );
    write(
        root,
        "contexts/bad.json",
        &format!(
            "{{{j}: {j}, \"messages\": [{{\"role\": {j}}}]}}",
            j = json(x)
        ),
    );
    write(
        root,
        "contexts/worse.json",
        &format!("{{\"why\": \"x\", {x}"),
    );
    write(root, &format!("schemas/wire/{p}.json"), "{}");
    let schema = format!(
        "{{\"title\": {j}, \"properties\": {{\"user\": {{\"enum\": [{j}]}}, {j}: {{\"type\": {j}}}}}}}",
        j = json(x)
    );
    write(root, "schemas/wire/openai-chat.json", &schema);
    let extensions = format!("{{{j}: {{{j}: {{\"type\": {j}}}}}}}", j = json(x));
    write(
        root,
        "schemas/wire/openai-chat.extensions.json",
        &extensions,
    );
    fs::create_dir_all(root.join(format!("agents/{p}.toml"))).expect("created");
}

fn reqc(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program::path());
    command
        .args(arguments)
        .current_dir(root)
        .env_remove("NO_COLOR")
        .env_remove("CI")
        .output()
        .expect("the binary runs")
}

/// Returns the first part of a string that must not be printed. Shares no code with the
/// implementation.
fn wrong_in(text: &str) -> Option<String> {
    let colour = |rest: &str| {
        let rest = rest.strip_prefix('[')?;
        rest.find(|c: char| !c.is_ascii_digit() && c != ';')
            .filter(|&end| rest[end..].starts_with('m'))
    };
    for (at, c) in text.char_indices() {
        let is_hidden = match c {
            '\n' => false,
            '\u{1b}' => colour(&text[at + 1..]).is_none(),
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => true,
            c => c.is_control(),
        };
        if is_hidden {
            return Some(format!(
                "{c:?} in {:?}",
                &text[text.floor_char_boundary(at.saturating_sub(60))..]
            ));
        }
    }
    let commands = ["::", "section_start:", "section_end:"];
    let is_command = |line: &&str| {
        let start = line.trim_start();
        commands.iter().any(|command| start.starts_with(command))
            || ["##[", "##vso[", "##teamcity["]
                .iter()
                .any(|command| line.contains(command))
    };
    text.lines()
        .find(is_command)
        .map(|line| format!("the line {line:?}"))
}

fn assert_text(root: &Path, arguments: &[&str]) -> Output {
    let output = reqc(root, arguments);
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        assert_eq!(wrong_in(text), None, "{arguments:?}");
    }
    let code = output.status.code().expect("not killed");
    assert!((0..=2).contains(&code), "{arguments:?}: {code}");
    output
}

/// Returns every command that reads a repository, with normal and hostile arguments.
fn commands(x: &str) -> Vec<Vec<&str>> {
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["check"],
        vec!["compile", "--check"],
        vec!["compile", "--diff"],
        vec!["list"],
        vec!["list", "--all"],
        vec!["list", "--tag", x],
        vec!["tree"],
        vec!["contexts"],
        vec!["show", x],
        vec!["show", "Helper"],
        vec!["route", x, "--roster", x],
        vec!["route", "a.py", "--roster", x, "--project", x],
        vec!["route", "a.py", "--roster", "none"],
        vec!["render", x, "--context", "none"],
        vec!["render", "A7", "--context", "mine"],
        vec!["render", "Helper", "--context", "mine", "--curl"],
        vec!["check", "--agent", x],
        vec!["check", "--context", x],
        vec!["check", x],
        vec!["-C", x, "list"],
        vec!["rule", x],
        vec!["schema", x],
        vec!["init"],
        vec!["check", "--allow", x],
        vec!["check", "--deny", x],
        vec!["compile", "--diff", x],
        vec!["compile", "--diff=HEAD"],
        vec!["compile", "--all-contexts", "--check"],
        vec![x],
        vec!["check", x, x],
        vec!["check", "--format", x],
        vec!["--color", x],
        vec!["compile", x, "--chekc"],
    ];
    if cfg!(feature = "runtime") {
        commands.extend([
            vec!["providers"],
            vec!["send", x, "--dry-run", "--message", x],
            vec!["send", "Helper", "--dry-run", "--message", "hello"],
            vec!["send", "Helper", "--curl", "--message", x],
            vec!["send", "Helper", "--dry-run", "--context", x],
            vec![
                "send",
                "Helper",
                "--dry-run",
                "--tools",
                x,
                "--message",
                "hello",
            ],
            vec!["send", "Helper", "--dry-run", "--resume", x],
            vec!["send", "Helper", "--image", x],
            vec!["send", "Helper", x],
        ]);
    }
    commands
}

/// Runs every command in every format in repositories with this hostile text.
fn plant(x: &str) {
    for (turn, make) in [(0, sound as fn(&Path, &str)), (2, broken)] {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().join("repository");
        fs::create_dir_all(&root).expect("created");
        git(&root, &["init", "-q", "-b", "main"]);
        write(
            &root,
            "agents/helper.toml",
            "name = \"Helper\"\nextends = \"OpenAI Chat\"\n",
        );
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "before"]);
        make(&root, x);
        for (index, arguments) in commands(x).into_iter().enumerate() {
            // Most commands run in only one of the four formats for each repository, because there
            // are many.
            let looks: [&[&str]; 4] = [
                &["--color", "never"],
                &["--color", "always"],
                &["--format", "short"],
                &["--format", "json"],
            ];
            for look in looks
                .iter()
                .enumerate()
                .filter(|(at, _)| index < 3 || (index + at + turn) % 4 == 0)
                .map(|(_, look)| look)
            {
                let arguments: Vec<&str> = look.iter().chain(&arguments).copied().collect();
                let output = assert_text(&root, &arguments);
                let is_json = look.contains(&"json") && !output.stdout.is_empty();
                if is_json
                    && !arguments.contains(&"send")
                    && !["init", "--curl"]
                        .iter()
                        .any(|other| arguments.contains(other))
                {
                    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
                    assert!(
                        serde_json::from_str::<Value>(text).is_ok(),
                        "{arguments:?}: {text}"
                    );
                }
            }
        }
        assert_text(&root, &["compile", "--diff", "--text"]);
        assert_text(&root, &["compile", "--diff=HEAD", "--text"]);
    }
}

#[test]
fn lines_and_controls_are_seen() {
    plant(HOSTILE[0]);
}

#[test]
fn what_turns_or_has_no_width_is_seen() {
    plant(HOSTILE[1]);
}

#[test]
fn commands_are_broken() {
    plant(HOSTILE[2]);
}

/// JSON reports contain names exactly, as visible characters.
#[test]
fn programs_get_the_names_as_they_are() {
    let scratch = tempfile::tempdir().expect("a folder");
    for x in HOSTILE {
        let root = scratch.path().join(format!("{}", x.len()));
        write(
            &root,
            "agents/a.toml",
            &format!("name = {}\nextends = \"OpenAI Chat\"\n", toml(x)),
        );
        let output = assert_text(&root, &["list", "--format", "json"]);
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(list[0]["name"], x);
    }
}

/// A body written to a pipe is exact, byte for byte.
#[test]
fn piped_bodies_are_exact() {
    let scratch = tempfile::tempdir().expect("a folder");
    let agent = format!(
        "name = \"Helper\"\nextends = \"OpenAI Chat\"\n[body]\nuser = {}\n",
        toml("a\u{202e}b")
    );
    write(scratch.path(), "agents/a.toml", &agent);
    let output = reqc(
        scratch.path(),
        &["render", "Helper", "--context", "plain-turn"],
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("a\u{202e}b"));
}

/// Reports for people stay short enough to read, however many findings there are.
#[test]
fn a_flood_of_findings_is_bounded_for_people() {
    let scratch = tempfile::tempdir().expect("a folder");
    let keys: Vec<String> = (0..500)
        .map(|index| format!("unknown_{index} = 1\n"))
        .collect();
    let keys = keys.concat();
    let long = "n".repeat(20_000);
    let agent = format!("name = \"Helper {long}\"\nextends = \"OpenAI Chat\"\n{keys}");
    write(scratch.path(), "agents/a.toml", &agent);
    for format in ["human", "short"] {
        let output = assert_text(scratch.path(), &["check", "--format", format]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            text.contains(
                "… and 400 more findings of key/unknown; `--format json` lists all of them"
            ),
            "{text}"
        );
        assert!(text.len() < 100_000, "{}", text.len());
    }
    let output = assert_text(scratch.path(), &["check", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let told = report["diagnostics"].as_array().into_iter().flatten();
    assert_eq!(
        told.filter(|told| told["code"] == "key/unknown").count(),
        500
    );
}
