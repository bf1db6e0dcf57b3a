//! The documents say what the code does: `docs/rules.md` and `docs/rules/` are written by the code,
//! references name every key, function and command, and links lead somewhere.
//!
//! `REQC_UPDATE_DOCS=1 cargo test --test docs` rewrites `docs/rules.md`, `docs/rules/` and
//! `docs/answers.md`.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads documents and runs the binary"
)]

mod program;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use reqc::compile::all_rules;
use reqc::conversation::log::{CutOff, Entry, Instructions, Log, Sent};
use reqc::conversation::{Block, ContentKind, ItemKind, PodEvent, Usage};
use reqc::diag::Rule;
use reqc::profile::KEYS;
use reqc::provider::{ClientApi, WireFormat};
use reqc::render::{TemplateKind, function_names};
use reqc::repo::{
    FAMILIES_KEYS, FAMILY_KEYS, PRICE_KEYS, REFUSES_KEYS, ROSTER_KEYS, SERVER_KEYS, TAKES_KEYS,
    TOOL_KEYS,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .replace("\r\n", "\n")
}

/// Fails unless the document has each name in code marks.
fn mentions<'a>(path: &str, names: impl IntoIterator<Item = &'a str>) {
    let text = document(path);
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| !has_name(&text, name))
        .collect();
    assert!(missing.is_empty(), "{path} does not mention {missing:?}");
}

/// Returns whether the name is in the text as code: `` `name` ``, `` `name(…)` `` or `` `[name]`
/// ``.
fn has_name(text: &str, name: &str) -> bool {
    [
        format!("`{name}`"),
        format!("`{name}("),
        format!("`[{name}]`"),
    ]
    .iter()
    .any(|form| text.contains(form))
}

#[test]
fn the_pages_of_rules_are_up_to_date() {
    is_up_to_date("docs/rules.md", rules());
    let mut pages: Vec<String> = Vec::new();
    for (family, rules) in families() {
        pages.push(format!("{family}.md"));
        is_up_to_date(
            &format!("docs/rules/{family}.md"),
            family_page(family, &rules),
        );
    }
    let there = fs::read_dir(root().join("docs/rules"))
        .expect("a folder")
        .flatten();
    let mut there: Vec<String> = there
        .map(|page| page.file_name().to_string_lossy().into_owned())
        .collect();
    there.sort();
    assert_eq!(
        there, pages,
        "each family has a page, and no other is there"
    );
}

#[cfg(feature = "runtime")]
#[test]
fn the_page_of_answers_is_up_to_date() {
    is_up_to_date("docs/answers.md", answers());
}

fn is_up_to_date(path: &str, written: String) {
    if updating() {
        let path = root().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("docs/ can be written");
        fs::write(path, written).expect("docs/ can be written");
        return;
    }
    assert!(
        document(path) == written,
        "{path} is out of date: run `REQC_UPDATE_DOCS=1 cargo test --test docs` and look at the change"
    );
}

/// Returns what becomes of each part of an answer, one table per decoder.
#[cfg(feature = "runtime")]
fn answers() -> String {
    let mut text = String::from(
        "# Parts of an answer\n\n<!-- Written by tests/docs.rs from the tables in src/runtime/stream/*.rs. Change those, \
         then run REQC_UPDATE_DOCS=1 cargo test --test docs -->\n\nFor each wire format, the members that a decoder \
         knows at each place of an answer:\n\n\
         - *read*: it becomes text, thinking, a call, usage, or the outcome.\n\
         - *kept*: it stands in a `provider_block` as it came. What is \"not sent back\" is for the host alone.\n\
         - *ignored on purpose*: it says nothing that a host would miss, for the reason given.\n\
         - *anything else*: a member or type that is not listed is kept, or a `warning` event names it, once per \
         request. `null` and empty values say nothing and draw no warning.\n",
    );
    let formats = [
        ("Anthropic Messages", WireFormat::AnthropicMessages),
        (
            "Chat Completions, and Mistral's two formats",
            WireFormat::OpenAiChat,
        ),
        ("OpenAI Responses", WireFormat::OpenAiResponses),
        ("Gemini", WireFormat::GoogleGenerateContent),
        ("Ollama", WireFormat::OllamaChat),
        ("llama.cpp infill", WireFormat::LlamaCppInfill),
    ];
    for (title, wire) in formats {
        let _ = write!(
            text,
            "\n## {title}\n\n{}",
            reqc::runtime::stream::markdown_of(wire)
        );
    }
    text
}

/// The index of all rules: a table for each family, each code with a link to its page.
fn rules() -> String {
    let mut text = String::from(
        "# Rules\n\n<!-- Written by tests/docs.rs from the code. Change src/*/rules.rs, then run \
         REQC_UPDATE_DOCS=1 cargo test --test docs -->\n\nEvery finding has one of these codes. `reqc rule CODE` shows the \
         page of one; how levels are changed and findings silenced is in [cli.md](cli.md#which-findings-fail-a-run).\n",
    );
    for (family, rules) in families() {
        let _ = write!(
            text,
            "\n## [`{family}`](rules/{family}.md)\n\n| code | level | what is wrong |\n| --- | --- | --- |\n"
        );
        for rule in rules {
            let (code, anchor) = (rule.code, rule.code.replace('/', ""));
            let level = rule.severity.name();
            let _ = writeln!(
                text,
                "| [`{code}`](rules/{family}.md#{anchor}) | {level} | {} |",
                rule.summary
            );
        }
    }
    text
}

/// The rules of a family, in order of their codes: what `reqc rule` prints of each.
fn family_page(family: &str, rules: &[&Rule]) -> String {
    let mut text = format!(
        "# `{family}`\n\n<!-- Written by tests/docs.rs from the code. Change src/*/rules.rs, then run \
         REQC_UPDATE_DOCS=1 cargo test --test docs -->\n\nOne family of [rules](../rules.md).\n"
    );
    for rule in rules {
        let _ = write!(
            text,
            "\n## {}\n\n{}: {}.\n\n{}\n",
            rule.code,
            rule.severity.name(),
            rule.summary,
            rule.full_page()
        );
    }
    text
}

fn families() -> BTreeMap<&'static str, Vec<&'static Rule>> {
    let mut families: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in all_rules() {
        let (family, _) = rule.code.split_once('/').expect("a code has a family");
        families.entry(family).or_default().push(rule);
    }
    families
}

#[test]
fn every_rule_has_a_page_that_says_more_than_its_summary() {
    for rule in all_rules() {
        assert!(rule.page.len() > rule.summary.len() + 40, "{}", rule.code);
        assert!(!rule.summary.ends_with('.'), "{}", rule.code);
        assert!(
            rule.page.ends_with(['.', '`', ')']) || rule.page.contains("\n* "),
            "{}",
            rule.code
        );
    }
}

#[test]
fn every_key_of_a_profile_is_described() {
    mentions("docs/profiles.md", KEYS);
}

#[test]
fn every_kind_of_content_is_described() {
    mentions("docs/flow.md", ContentKind::ALL.map(ContentKind::name));
}

#[test]
fn every_key_of_rosters_and_tools_is_described() {
    let of_rosters = ROSTER_KEYS.map(|key| format!("roster.{key}"));
    mentions("docs/profiles.md", of_rosters.iter().map(String::as_str));
    mentions("docs/tools.md", TOOL_KEYS.into_iter().chain(SERVER_KEYS));
}

#[test]
fn every_key_of_model_families_is_described() {
    mentions(
        "docs/models.md",
        FAMILIES_KEYS
            .into_iter()
            .chain(FAMILY_KEYS)
            .chain(REFUSES_KEYS)
            .chain(TAKES_KEYS)
            .chain(PRICE_KEYS),
    );
}

#[test]
fn every_line_of_a_log_is_described() {
    mentions("docs/sessions.md", ItemKind::ALL.map(ItemKind::name));
    mentions("docs/sessions.md", PodEvent::ALL.map(PodEvent::name));
    mentions(
        "docs/sessions.md",
        CutOff::ALL.map(CutOff::name).into_iter().chain(["cut_off"]),
    );
    let mut log = Log::new("A");
    log.append(Entry::Usage(Usage::default()));
    log.append(Entry::Retract { messages: 0 });
    log.append(Entry::Instructions(Instructions {
        bound_from: 1,
        ..Instructions::default()
    }));
    log.append(Entry::Sent(Sent {
        parts: 1,
        digest: "".into(),
    }));
    let result = Block::ToolResult {
        id: "1".into(),
        content: "".into(),
        is_error: false,
        images: Vec::new(),
    };
    log.append(Entry::ToolResult(result));
    for line in log.lines() {
        let line: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).expect("JSON");
        mentions(
            "docs/sessions.md",
            line.keys().map(String::as_str).chain(line["kind"].as_str()),
        );
    }
    // The page's own example is a log.
    let page = document("docs/sessions.md");
    let example = page
        .split("```text\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("an example");
    let log = Log::parse(example.as_bytes())
        .expect("it can be read")
        .log
        .expect("it has a header");
    assert_eq!((log.history().len(), log.to_text().as_str()), (3, example));
}

#[test]
fn every_client_api_and_wire_format_is_described() {
    mentions("docs/profiles.md", ClientApi::ALL.map(ClientApi::name));
    mentions("docs/profiles.md", WireFormat::ALL.map(WireFormat::name));
}

#[test]
fn every_function_of_templates_is_described() {
    for kind in [TemplateKind::Body, TemplateKind::Prompt] {
        mentions("docs/templates.md", function_names(kind).iter().copied());
    }
}

#[test]
fn every_command_and_option_is_described() {
    let help = help(&[]);
    let (_, commands) = help
        .split_once("Commands:\n")
        .expect("the help lists the commands");
    let commands = commands.lines().take_while(|line| !line.trim().is_empty());
    let commands: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() > 5, "{commands:?}");
    let (readme, reference) = (document("README.md"), document("docs/cli.md"));
    for command in commands.into_iter().filter(|command| *command != "help") {
        assert!(
            readme.contains(&format!("reqc {command}")),
            "README.md does not mention `reqc {command}`"
        );
        assert!(
            reference.contains(&format!("reqc {command}")),
            "docs/cli.md does not mention `reqc {command}`"
        );
        for option in options(&self::help(&[command])) {
            assert!(
                reference.contains(&format!("`{option}")),
                "docs/cli.md does not mention {option} of {command}"
            );
        }
    }
}

fn help(command: &[&str]) -> String {
    let output = Command::new(program::path())
        .args(command)
        .arg("--help")
        .output()
        .expect("it runs");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The long options that a help text lists.
fn options(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',']));
    words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .collect()
}

#[test]
fn what_the_readme_shows_is_what_happens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        fs::write(path, text).expect("writable");
    };
    let readme = document("README.md");
    let toml: Vec<&str> = readme
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let [broken, explainer] = toml[..] else {
        panic!("two profiles, not {}", toml.len())
    };

    write("broken/agents/summariser.toml", broken);
    let mut readme = Readme {
        text: readme.clone(),
        at: 0,
    };
    readme.shows(&folder.path().join("broken"), &["check"]);
    readme.shows(root(), &["compile", "--check"]);
    readme.shows(folder.path(), &["init", "prompts"]);
    let prompts = folder.path().join("prompts");
    write("prompts/agents/explainer.toml", explainer);
    readme.shows(&prompts, &["check"]);
    readme.shows(&prompts, &["compile"]);
    write(
        "prompts/agents/explainer.toml",
        &explainer.replace("0.3", "0.5"),
    );
    readme.shows(&prompts, &["compile", "--diff"]);
    readme.shows(&prompts, &["compile"]);
    readme.shows(
        &prompts,
        &["render", "Explainer", "--context", "plain-turn"],
    );
    if updating() {
        fs::write(root().join("README.md"), readme.text).expect("writable");
    }
}

/// The README and how far it was compared: commands are in the order in which they are run.
struct Readme {
    text: String,
    at: usize,
}

impl Readme {
    /// Fails unless the command comes next and, below it, exactly its output; rewrites the output
    /// if that is asked for.
    fn shows(&mut self, folder: &Path, command: &[&str]) {
        let prompt = format!("$ reqc {}\n", command.join(" "));
        let output = run(folder, command);
        let found = self.text[self.at..]
            .find(&prompt)
            .unwrap_or_else(|| panic!("README.md does not show {prompt}"));
        let start = self.at + found + prompt.len();
        if updating() {
            let rest = &self.text[start..];
            let end = ["\n$ ", "\n```"]
                .iter()
                .filter_map(|mark| rest.find(mark))
                .min()
                .map_or(rest.len(), |at| at + 1);
            self.text.replace_range(start..start + end, &output);
        }
        assert!(
            self.text[start..].starts_with(&output),
            "README.md does not show:\n{prompt}{output}"
        );
        self.at = start + output.len();
    }
}

/// Returns whether documents are to be rewritten rather than compared.
fn updating() -> bool {
    std::env::var_os("REQC_UPDATE_DOCS").is_some_and(|value| value == "1")
}

fn run(folder: &Path, command: &[&str]) -> String {
    let output = Command::new(program::path())
        .args(command)
        .current_dir(folder)
        .env_remove("CI")
        .output()
        .expect("it runs");
    String::from_utf8(output.stdout).expect("output is text")
}

#[test]
fn relative_links_lead_somewhere() {
    let mut broken = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(root().join(&path)).expect("it was listed");
        for link in links(&text) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = match target {
                "" => path.clone(),
                target => path.parent().unwrap_or(Path::new("")).join(target),
            };
            let there = root().join(&file);
            let has_anchor = || {
                let text = fs::read_to_string(&there).unwrap_or_default();
                text.lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| slug(line) == anchor)
            };
            if !there.exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

/// The Markdown files of the root, of `docs/` and of `docs/rules/`.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/rules"] {
        let entries = fs::read_dir(root().join(folder))
            .expect("the folder is there")
            .flatten();
        let names = entries.map(|entry| Path::new(folder).join(entry.file_name()));
        found.extend(names.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    found.sort();
    assert!(found.len() > 5, "{found:?}");
    found
}

/// Targets of inline links that are no URLs, outside code blocks.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        links.extend(
            line.split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
                .map(|(target, _)| target),
        );
    }
    links.retain(|link| !link.contains("://"));
    links
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    let text = heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(' ', "-");
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .collect()
}

/// The threat model names the code that keeps a promise and the attacks on it.
#[test]
fn the_threat_model_names_what_is_there() {
    let text = document("docs/security.md");
    let marked = text.split('`').skip(1).step_by(2);
    let paths = marked.filter(|name| {
        ["src/", "tests/", "scripts/"]
            .iter()
            .any(|start| name.starts_with(start))
    });
    let missing: Vec<&str> = paths.filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "docs/security.md names {missing:?}");
    let families = fs::read_dir(root().join("tests/hostile"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path());
    let families = families.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let names: Vec<String> = families
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let promised: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "control")
        .collect();
    mentions("docs/security.md", promised);
}

/// Every TOML example of the documents works when it is copied: a whole file as it is, a part of a
/// profile below the name of a bundled parent.
#[test]
fn every_toml_example_works_when_it_is_copied() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in documents().iter().filter(|path| path.starts_with("docs")) {
        for example in document(&path.to_string_lossy()).split("```toml\n").skip(1) {
            let example = example.split("```").next().expect("a first part");
            tried += 1;
            let shown = || format!("{}:\n{example}", path.display());
            match (
                copied(example),
                MISTAKEN.iter().find(|(of, _)| path.ends_with(of)),
            ) {
                (Ok(()), None) => {}
                (Ok(()), Some((_, code))) => wrong.push(format!("{}\nit lacks {code}", shown())),
                (Err(why), Some((_, code))) if why.contains(code) => {}
                (Err(why), _) => wrong.push(format!("{}\n{why}", shown())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(tried > 20, "{tried} examples");
}

/// Documents whose examples show a mistake, with the rule that finds it.
const MISTAKEN: [(&str, &str); 1] = [("append-only.md", "protocol/thinking-prefix")];

/// Bundled agents that a part of a profile is tried with.
const PARENTS: [&str; 2] = ["OpenAI Chat", "Claude Chat Tools"];

/// What is around an example: agents that others name, and fields that examples make up.
const AROUND: [(&str, &str); 3] = [
    (
        "agents/around/reviewer.toml",
        "name = \"Reviewer\"\nextends = \"OpenAI Chat\"\n",
    ),
    (
        "agents/around/rust_reviewer.toml",
        "name = \"Rust Reviewer\"\nextends = \"OpenAI Chat\"\n[match]\nfile_patterns = [\"*.rs\"]\n",
    ),
    (
        "providers/local.toml",
        "name = \"Local\"\nclient_api = \"OpenAI Compatible\"\nurl = \"http://localhost:8080/v1\"\n",
    ),
];
const MADE_UP: &str = "[[extension]]\nprovider_instance = \"OpenAI\"\nreason = \"examples make them up\"\n\
     fields = [\"/a\", \"/b\", \"/c\", \"/d\", \"/e\", \"/f\", \"/g\", \"/ctx\"]\n";

/// Tries an example in a repository of its own.
fn copied(example: &str) -> Result<(), String> {
    let keys = example
        .lines()
        .map(|line| line.split(['=', ' ']).next().unwrap_or_default());
    let has = |wanted: &[&str]| keys.clone().any(|key| wanted.contains(&key));
    let place = match () {
        () if has(&["[dependencies]", "[[rule]]"]) => return Ok(()),
        () if has(&["[[family]]"]) => "model-families.toml",
        () if has(&["[[tool]]", "[[server]]"]) => "tools.toml",
        () if has(&["[[roster]]"]) => "rosters.toml",
        () if has(&[
            "[golden]",
            "[[budget]]",
            "[[extension]]",
            "[[allow]]",
            "[rules]",
            "[reqc]",
        ]) =>
        {
            "reqc.toml"
        }
        () if has(&["client_api"]) => "providers/local.toml",
        () if has(&["\"Reviewer\""]) => "models.toml",
        () if has(&["name"]) => "agents/example.toml",
        () => return part_of_a_profile(example),
    };
    checked(place, example)
}

/// Tries a part of a profile with each parent: it fits one of them.
fn part_of_a_profile(example: &str) -> Result<(), String> {
    let tries = PARENTS.map(|parent| {
        let whole = format!("name = \"Example\"\nextends = \"{parent}\"\n{example}");
        checked("agents/example.toml", &whole)
    });
    match tries.iter().any(Result::is_ok) {
        true => Ok(()),
        false => Err(tries.into_iter().filter_map(Result::err).collect()),
    }
}

fn checked(place: &str, text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let around = AROUND.iter().copied().chain([("reqc.toml", MADE_UP)]);
    // An example that defines an agent stands alone: agents around it may have its name.
    let around =
        around.filter(|(path, _)| !(place == "agents/example.toml" && path.starts_with("agents/")));
    for (path, text) in around.chain([(place, text)]) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        fs::write(path, text).expect("writable");
    }
    let mut command = Command::new(program::path());
    command.current_dir(folder.path()).args(match place {
        "tools.toml" => &[
            "send",
            "Reviewer",
            "-m",
            "Hi",
            "--tools",
            "tools.toml",
            "--dry-run",
            "--trust",
        ][..],
        _ => &["check", "--format", "short"][..],
    });
    let output = command
        .env_remove("CI")
        .env("XDG_CONFIG_HOME", folder.path())
        .output()
        .expect("it runs");
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        }
    }
}
