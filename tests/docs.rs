//! The documents agree with the code: `docs/rules.md`, `docs/rules/` and `docs/answers.md` are
//! generated, references name every key, function and command, all links have a target, and
//! commands print the output that the documents show.
//!
//! `REQC_UPDATE_DOCS=1 cargo test --test docs` rewrites the generated pages and the shown output.

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
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .replace("\r\n", "\n")
}

/// Fails unless the document has each name as code.
fn mentions<'a>(path: &str, names: impl IntoIterator<Item = &'a str>) {
    let text = document(path);
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| !has_name(&text, name))
        .collect();
    assert!(missing.is_empty(), "{path} does not mention {missing:?}");
}

/// Returns whether the text has the name as code: `` `name` ``, `` `name(…)` `` or `` `[name]` ``.
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
        "each family has a page, and there are no others"
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

/// Returns the page about the parts of answers, with one table per decoder.
#[cfg(feature = "runtime")]
fn answers() -> String {
    let mut text = String::from(
        "# Parts of an answer\n\n<!-- Written by tests/docs.rs from the tables in src/runtime/stream/*.rs. Change those, \
         then run REQC_UPDATE_DOCS=1 cargo test --test docs -->\n\nFor each wire format, the fields that a decoder \
         knows at each place of an answer:\n\n\
         - *read*: it becomes text, thinking, a call, usage, or the outcome.\n\
         - *kept*: it is kept unchanged in a `provider_block`. What is \"not sent back\" is only for the host.\n\
         - *ignored on purpose*: it says nothing that a host would miss, for the reason given.\n\
         - *anything else*: a field or type that is not listed is kept, or a `warning` event names it, once per \
         request. `null` and empty values cause no warning.\n",
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

/// Returns the index of all rules: a table for each family, with links from each code to its page.
fn rules() -> String {
    let mut text = String::from(
        "# Rules\n\n<!-- Written by tests/docs.rs from the code. Change src/*/rules.rs, then run \
         REQC_UPDATE_DOCS=1 cargo test --test docs -->\n\nEvery finding has one of these codes. `reqc rule CODE` shows the \
         page of one; [cli.md](cli.md#which-findings-fail-a-run) describes how to change levels and to allow findings.\n",
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

/// Returns the page of a family: the output of `reqc rule` for each rule, in the order of codes.
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
        let line: serde_json::Map<String, Value> = serde_json::from_str(line).expect("JSON");
        mentions(
            "docs/sessions.md",
            line.keys().map(String::as_str).chain(line["kind"].as_str()),
        );
    }
    // The example in the document must be a log.
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
    let path = |name: &str| folder.path().join(name);
    let readme = document("README.md");
    let [broken, explainer] = fenced(&readme, "toml")[..] else {
        panic!("README.md does not show two profiles")
    };

    write(&path("broken"), "agents/summariser.toml", broken);
    lonely_result(&path("bodies"));
    let mut page = Page::open("README.md");
    page.shows(&path("broken"), "check");
    page.shows(&path("bodies"), "lint body.json --format short");
    page.shows(root(), "compile --check");
    page.shows(folder.path(), "init prompts");
    let prompts = path("prompts");
    write(&prompts, "agents/explainer.toml", explainer);
    page.shows(&prompts, "check");
    page.shows(&prompts, "compile");
    write(
        &prompts,
        "agents/explainer.toml",
        &explainer.replace("0.3", "0.5"),
    );
    page.shows(&prompts, "compile --diff");
    page.shows(&prompts, "compile");
    page.shows(&prompts, "render Explainer --context plain-turn");
    page.close();
}

/// The place where a shown command runs.
enum Place {
    /// This repository.
    Here,
    /// A folder with the files that a function writes.
    Folder(fn(&Path)),
    /// Nowhere, for this reason: the output is not compared.
    LeftOut(&'static str),
}

/// The blocks of `docs/*.md` that begin with `$ reqc …`, in the order of the pages.
const SHOWN: [(&str, &str, Place); 26] = [
    (
        "append-only.md",
        "check --context next-turn-other-language",
        Place::Folder(language_in_the_prompt),
    ),
    ("cli.md", "check", Place::Folder(initial)),
    (
        "cli.md",
        "check --fix --dry-run",
        Place::Folder(misspelt_key),
    ),
    ("cli.md", "compile --diff origin/main", TWO_BRANCHES),
    ("cli.md", "compile --diff origin/main", TWO_BRANCHES),
    ("cli.md", "lint body.json", Place::Folder(lonely_result)),
    ("cli.md", "show Reviewer", Place::Folder(initial)),
    (
        "cli.md",
        "explain \"Claude Chat\" /messages/1/content/1/input/path --context tool-round-trip --bundled",
        Place::Folder(initial),
    ),
    (
        "cli.md",
        "explain \"OpenAI Chat\" --context thinking --content /history/1/blocks/0 --bundled",
        Place::Folder(initial),
    ),
    (
        "cli.md",
        "impact roles/assistant.md:3 --agent \"Claude*\"",
        Place::Here,
    ),
    (
        "cli.md",
        "context import refund.har --redact --out contexts/refund.json",
        Place::Folder(recording),
    ),
    (
        "cli.md",
        "providers",
        Place::LeftOut("it shows the keys of the machine"),
    ),
    (
        "cli.md",
        "route src/a.py --roster chat",
        Place::Folder(roster),
    ),
    ("cli.md", "schema", Place::Here),
    (
        "compare.md",
        "compare before.json after.json",
        Place::Folder(translated),
    ),
    ("contexts.md", "contexts --context 'image-*'", Place::Here),
    ("coverage.md", "coverage", Place::Folder(gaps)),
    (
        "coverage.md",
        "coverage --gap partials/ours/metadata.jinja:3 --write-context contexts/help-command.json",
        Place::Folder(gaps),
    ),
    (
        "json.md",
        "check --context plain-turn --format json",
        Place::Folder(misspelt_member),
    ),
    (
        "json.md",
        "compile --diff --format json",
        Place::LeftOut("values inside lines are abridged"),
    ),
    (
        "lint.md",
        "lint body.json --format short",
        Place::Folder(lonely_result),
    ),
    (
        "lint.md",
        "lint batch.jsonl --format short",
        Place::Folder(batch),
    ),
    (
        "lint.md",
        "lint --session agent.jsonl",
        Place::Folder(session),
    ),
    ("models.md", "models anthropic/claude-opus-4.5", Place::Here),
    (
        "tools-check.md",
        "tools check --mcp-command -- npx -y @modelcontextprotocol/server-memory",
        Place::LeftOut("it downloads a server"),
    ),
    (
        "why400.md",
        "why400 \"messages.1: tool_use ids were found without tool_result blocks immediately after: toolu_1. Each tool_use block must have a corresponding tool_result block in the next message.\" --body body.json",
        Place::Folder(lonely_call),
    ),
];

const TWO_BRANCHES: Place = Place::LeftOut("it needs two branches, and names a commit");

#[test]
fn what_the_documents_show_is_what_happens() {
    let pages = documents();
    let pages = pages
        .iter()
        .filter(|path| path.parent() == Some("docs".as_ref()));
    let mut places = SHOWN.iter();
    for path in pages {
        let mut page = Page::open(&path.to_string_lossy());
        for command in page.commands() {
            let Some((name, expected, place)) = places.next() else {
                panic!("SHOWN does not list {}: {command}", page.path)
            };
            assert!(
                path.ends_with(name) && *expected == command,
                "SHOWN has {name}: {expected}\ninstead of {}: {command}",
                page.path
            );
            let folder = tempfile::tempdir().expect("a temporary folder");
            match place {
                Place::Here => page.shows(root(), &command),
                Place::Folder(set_up) => {
                    set_up(folder.path());
                    page.shows(folder.path(), &command);
                }
                Place::LeftOut(why) => assert!(!why.is_empty()),
            }
        }
        page.close();
    }
    let rest: Vec<_> = places.map(|(page, command, _)| (page, command)).collect();
    assert!(rest.is_empty(), "no page shows {rest:?}");
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
    fs::write(path, text).expect("writable");
}

/// Returns the contents of the code blocks in a language.
fn fenced<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    text.split(&format!("```{language}\n"))
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

/// Writes the repository that `reqc init` creates.
fn initial(root: &Path) {
    run(root, &["init".to_owned()]);
}

/// Writes the agent of `docs/append-only.md`, whose system prompt contains the language.
fn language_in_the_prompt(root: &Path) {
    let page = document("docs/append-only.md");
    write(root, "agents/reviewer.toml", fenced(&page, "toml")[0]);
}

fn misspelt_key(root: &Path) {
    write(
        root,
        "agents/helper.toml",
        "name = \"Helper\"\nextend = \"OpenAI Chat\"\n",
    );
}

/// Writes the profile of `README.md` that has a mistake, and an exception for another agent.
fn misspelt_member(root: &Path) {
    let readme = document("README.md");
    write(root, "agents/summariser.toml", fenced(&readme, "toml")[0]);
    write(
        root,
        "reqc.toml",
        "# Our settings.\n\n[reqc]\nversion = \"0.1\"\n\n# The reviewer replaces a table.\n\n[[allow]]\n\
         code = \"extends/kind-change\"\nagent = \"Reviewer*\"\n\
         reason = \"the base's table is replaced on purpose\"\nexpires = 2027-06-30\n",
    );
}

fn roster(root: &Path) {
    let [reviewer, rust_reviewer, _] = AROUND;
    for (path, text) in [reviewer, rust_reviewer] {
        write(root, path, text);
    }
    write(
        root,
        "rosters.toml",
        "[[roster]]\nname = \"chat\"\nagents = [\"Rust Reviewer\", \"Reviewer\"]\n",
    );
}

/// Writes an agent with a partial that no context covers completely.
fn gaps(root: &Path) {
    write(
        root,
        "agents/reviewer.toml",
        "name = \"Reviewer\"\nextends = \"OpenAI Chat\"\n\n[body]\nstore = true\n\
         metadata = '{% include \"partials/ours/metadata.jinja\" %}'\n",
    );
    write(
        root,
        "partials/ours/metadata.jinja",
        "{\n  \"length\": \"{% if ctx.history | length > 100 %}long{% else %}short{% endif %}\",\n  \
         \"command\": \"{% if (ctx.history | last).content == \"/help\" %}help{% else %}none{% endif %}\"\n}\n",
    );
}

/// Writes the body of `docs/lint.md`, whose result has no call.
fn lonely_result(root: &Path) {
    let page = document("docs/lint.md");
    write(root, "body.json", fenced(&page, "json")[0]);
}

/// Writes a body whose call has no result.
fn lonely_call(root: &Path) {
    write(
        root,
        "body.json",
        r#"{
  "model": "claude-sonnet-5-5",
  "max_tokens": 1000,
  "messages": [
    {"role": "user", "content": "How warm is it in Bergen?"},
    {"role": "assistant", "content": [
      {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bergen"}}
    ]},
    {"role": "user", "content": "Well?"}
  ],
  "tools": [{"name": "get_weather", "input_schema": {"type": "object"}}]
}
"#,
    );
}

/// Writes a batch whose last line repeats an id.
fn batch(root: &Path) {
    let lines = ["a", "b", "a"].map(|id| {
        json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": "gpt-5.6-luna", "messages": [{"role": "user", "content": "Is it warm?"}]}})
    });
    write(root, "batch.jsonl", &json_lines(&lines));
}

/// Writes the requests of an agent whose system prompt contains the time.
fn session(root: &Path) {
    let rules: Vec<String> = (1..=100)
        .map(|number| {
            format!(
                "Rule {number}: name the file and the line of each mistake, and say how to fix it."
            )
        })
        .collect();
    let rules = rules.join(" ");
    let mut messages = Vec::new();
    let mut lines = Vec::new();
    for number in 0..8 {
        let question = format!("Review file {number}: it renames a function and adds a test.");
        messages.push(json!({"role": "user", "content": question}));
        let prompt = format!(
            "Time: 2026-11-25T10:0{number}:00Z\nYou are a careful reviewer of code. {rules}"
        );
        lines.push(json!({
            "model": "claude-sonnet-5", "max_tokens": 1000,
            "system": [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}],
            "messages": messages.clone(),
        }));
        messages.push(json!({"role": "assistant", "content": "It is correct, and the test covers the new name."}));
    }
    write(root, "agent.jsonl", &json_lines(&lines));
}

/// Writes a HAR file with three requests, which use more tools than functions.
fn recording(root: &Path) {
    let body = json!({
        "model": "claude-sonnet-5", "max_tokens": 1000, "temperature": 0.2, "stream": true,
        "messages": [{"role": "user", "content": "Refund order 7."}],
        "tools": [
            {"name": "refund", "input_schema": {"type": "object"}},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
    });
    let entry = json!({"request": {
        "method": "POST", "url": "https://api.anthropic.com/v1/messages", "headers": [],
        "postData": {"mimeType": "application/json", "text": body.to_string()},
    }});
    let har = json!({"log": {"version": "1.2", "entries": [entry, entry, entry]}});
    write(root, "refund.har", &har.to_string());
    fs::create_dir(root.join("contexts")).expect("writable");
}

/// Writes a body, and a translation of it that loses an image and an error mark.
fn translated(root: &Path) {
    write(
        root,
        "before.json",
        r#"{
  "model": "claude-sonnet-5-5",
  "max_tokens": 1000,
  "messages": [
    {"role": "user", "content": [
      {"type": "text", "text": "Which city is this, and how warm is it there?"},
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}
    ]},
    {"role": "assistant", "content": [
      {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bergen"}}
    ]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such city", "is_error": true}
    ]}
  ],
  "tools": [{"name": "get_weather", "input_schema": {"type": "object"}}]
}
"#,
    );
    write(
        root,
        "after.json",
        r#"{
  "model": "claude-sonnet-5-5",
  "max_tokens": 1000,
  "messages": [
    {"role": "user", "content": "Which city is this, and how warm is it there?"},
    {"role": "assistant", "tool_calls": [
      {"id": "toolu_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Bergen\"}"}}
    ]},
    {"role": "tool", "tool_call_id": "toolu_1", "content": "no such city"}
  ],
  "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
}
"#,
    );
}

fn json_lines(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

/// A document that shows commands, and the position up to which it was compared.
struct Page {
    path: String,
    text: String,
    at: usize,
}

/// A line in shown output that matches any number of lines.
const ELLIPSIS: &str = "…";

impl Page {
    fn open(path: &str) -> Page {
        Page {
            path: path.to_owned(),
            text: document(path),
            at: 0,
        }
    }

    /// Returns the commands that begin code blocks, without `reqc`.
    fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("```") {
                let mut block = lines.by_ref().take_while(|line| !line.starts_with("```"));
                let first = block.next().and_then(|line| line.strip_prefix("$ reqc "));
                commands.extend(first.map(str::to_owned));
                block.for_each(drop);
            }
        }
        commands
    }

    /// Fails unless the command comes next, followed by its output. Rewrites the output instead if
    /// documents are updated, unless it contains an ellipsis.
    fn shows(&mut self, folder: &Path, command: &str) {
        let prompt = format!("$ reqc {command}\n");
        let output = run(folder, &words(command));
        let found = self.text[self.at..]
            .find(&prompt)
            .unwrap_or_else(|| panic!("{} does not show {prompt}", self.path));
        let start = self.at + found + prompt.len();
        let rest = &self.text[start..];
        let end = ["\n$ ", "\n```"]
            .iter()
            .filter_map(|mark| rest.find(mark))
            .min()
            .map_or(rest.len(), |at| at + 1);
        let shown: Vec<&str> = rest[..end].lines().collect();
        let real: Vec<&str> = output.lines().collect();
        if updating() && !shown.iter().any(|line| line.trim() == ELLIPSIS) {
            self.text.replace_range(start..start + end, &output);
            self.at = start + output.len();
            return;
        }
        assert!(
            fits(&shown, &real),
            "{} does not show:\n{prompt}{output}",
            self.path
        );
        self.at = start + end;
    }

    /// Writes the updated document.
    fn close(self) {
        if updating() && self.text != document(&self.path) {
            fs::write(root().join(&self.path), self.text).expect("writable");
        }
    }
}

/// Returns whether the lines match; an ellipsis matches any number of lines.
fn fits(shown: &[&str], real: &[&str]) -> bool {
    match (shown.split_first(), real.split_first()) {
        (None, None) => true,
        (Some((line, rest)), _) if line.trim() == ELLIPSIS => {
            (0..=real.len()).any(|from| fits(rest, &real[from..]))
        }
        (Some((line, shown)), Some((same, real))) => {
            line.trim_end() == same.trim_end() && fits(shown, real)
        }
        _ => false,
    }
}

/// Splits a command into its arguments, as a shell does.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("one is there").push(c),
        }
    }
    words
}

/// The documents that state the number of messages in `refusals/`, with the words after the number.
const COUNTED: [(&str, &str); 2] = [
    ("docs/why400.md", " messages in total"),
    ("CHANGELOG.md", " error messages (`refusals/`)"),
];

#[test]
fn the_number_of_messages_is_right() {
    let files = fs::read_dir(root().join("refusals"))
        .expect("a folder")
        .flatten();
    let messages: usize = files
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .map(|text| text.matches("[[refusal]]\n").count())
        .sum();
    let hundreds = (messages + 50) / 100;
    let number = format!("{},{}00", hundreds / 10, hundreds % 10);
    for (path, after) in COUNTED {
        let text = document(path);
        let end = text
            .find(after)
            .unwrap_or_else(|| panic!("{path}: no number"));
        let start = text[..end].rfind("about ").expect("a number") + "about ".len();
        if updating() {
            let text = format!("{}{number}{}", &text[..start], &text[end..]);
            fs::write(root().join(path), text).expect("writable");
        } else {
            assert_eq!(text[start..end], number, "{path}: {messages} messages");
        }
    }
}

/// Returns whether documents are rewritten instead of compared.
fn updating() -> bool {
    std::env::var_os("REQC_UPDATE_DOCS").is_some_and(|value| value == "1")
}

/// Runs the program, and returns its standard output followed by its standard error.
fn run(folder: &Path, command: &[String]) -> String {
    let output = Command::new(program::path())
        .args(command)
        .current_dir(folder)
        .env_remove("CI")
        .output()
        .expect("it runs");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("output is text")
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

/// The Markdown files in the root, `docs/` and `docs/rules/`.
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

/// The targets of inline links outside code blocks, except URLs.
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

/// The anchor of a heading.
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

/// The files and attacks that the threat model names exist, and it names every family of attacks.
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

/// Every TOML example of the documents works when it is copied: complete files as they are, and
/// parts of a profile after the name of a bundled parent.
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

/// Documents whose examples show a mistake, with the rule that reports it.
const MISTAKEN: [(&str, &str); 1] = [("append-only.md", "protocol/thinking-prefix")];

/// Bundled agents that parts of a profile are tested with.
const PARENTS: [&str; 2] = ["OpenAI Chat", "Claude Chat Tools"];

/// Files around an example: agents that examples name, and fields that they make up.
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

/// Checks an example in a repository of its own.
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

/// Checks a part of a profile with each parent. One of them must accept it.
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
    // An agent in an example can have the name of one around it, so these are left out.
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
