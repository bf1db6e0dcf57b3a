//! `reqc compare`: every golden body equals itself, every removed part is reported, and other
//! differences are reported as in `tests/compare/*/expected.txt`.

#![expect(clippy::disallowed_methods, reason = "the test reads files")]

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use reqc::compare::{Allowed, ComparedFiles, DifferenceKind, NamedBodies, Side, compare};
use reqc::json::Pointer;
use reqc::lint::WireFormat;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    paths
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all golden bodies, with their wire formats.
fn golden_bodies() -> BTreeMap<PathBuf, (WireFormat, Value)> {
    let mut bodies = BTreeMap::new();
    for folder in files(&root().join("golden"))
        .into_iter()
        .filter(|path| path.is_dir())
    {
        let request = json(&folder.join("request.json"));
        let wire = request["wire"]
            .as_str()
            .and_then(WireFormat::from_name)
            .expect("a wire format");
        for path in files(&folder)
            .into_iter()
            .filter(|path| !path.ends_with("request.json"))
        {
            let body = json(&path);
            bodies.insert(path, (wire, body));
        }
    }
    assert!(bodies.len() > 500, "{} golden bodies", bodies.len());
    bodies
}

#[test]
fn every_golden_body_equals_itself() {
    for (path, (wire, body)) in golden_bodies() {
        let side = Side { body: &body, wire };
        assert_eq!(compare(side, side).differences, [], "{}", path.display());
    }
}

/// Lists whose elements are parts of a conversation.
const LISTS: [&str; 13] = [
    "messages",
    "contents",
    "input",
    "content",
    "parts",
    "tool_calls",
    "system",
    "tools",
    "images",
    "functionDeclarations",
    "summary",
    "output",
    "input_extra",
];

/// Members whose whole value is a part of a conversation.
const MEMBERS: [&str; 13] = [
    "system",
    "instructions",
    "systemInstruction",
    "prompt",
    "suffix",
    "input_prefix",
    "input_suffix",
    "thinking",
    "signature",
    "reasoning_content",
    "arguments",
    "description",
    "is_error",
];

/// Finds all locations of a body that can be removed.
fn removable(value: &Value, at: &Pointer, is_list: bool, found: &mut Vec<Pointer>) {
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let place = at.element(index);
                if is_list {
                    found.push(place.clone());
                }
                removable(element, &place, false, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let place = at.member(name);
                // Members of these names inside tool schemas are not part of the conversation.
                if [
                    "schema",
                    "parameters",
                    "input_schema",
                    "parametersJsonSchema",
                ]
                .contains(&name.as_str())
                {
                    continue;
                }
                if MEMBERS.contains(&name.as_str()) && !is_default(name, member) {
                    found.push(place.clone());
                }
                removable(member, &place, LISTS.contains(&name.as_str()), found);
            }
        }
        _ => {}
    }
}

/// Returns `true` if a member means the same as no member.
fn is_default(name: &str, member: &Value) -> bool {
    let is_off = name == "thinking" && member["type"] == "disabled";
    let says_nothing = member.as_object().is_some_and(serde_json::Map::is_empty);
    is_off
        || says_nothing
        || [Value::Bool(false), Value::from(""), Value::from("{}")].contains(member)
}

fn without(body: &Value, at: &Pointer) -> Value {
    let mut body = body.clone();
    let parent = at.parent().expect("no root");
    let last = at.tokens().last().expect("no root");
    match body.pointer_mut(parent.as_str()).expect("it is there") {
        Value::Array(elements) => drop(elements.remove(last.parse().expect("an index"))),
        Value::Object(members) => drop(members.shift_remove(&last)),
        _ => unreachable!("only these hold others"),
    }
    body
}

#[test]
fn whatever_is_taken_out_is_told() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (path, (wire, body)) in golden_bodies() {
        let mut places = Vec::new();
        removable(&body, &Pointer::root(), false, &mut places);
        for place in places {
            let less = without(&body, &place);
            tried += 1;
            let compared = compare(Side { body: &body, wire }, Side { body: &less, wire });
            if compared.losses().next().is_none() {
                missed.push(format!("{} {place}", path.display()));
            }
        }
    }
    println!("{tried} parts taken out");
    assert!(tried > 5_000, "{tried}");
    assert!(
        missed.is_empty(),
        "{} of {tried} not told:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn planted_differences_are_told() {
    let folder = root().join("tests/compare");
    let mut wrong = Vec::new();
    for case in files(&folder).into_iter().filter(|path| path.is_dir()) {
        let (first, second) = (
            json(&case.join("first.json")),
            json(&case.join("second.json")),
        );
        let wire = |body: &Value| {
            reqc::lint::recognise(body).unwrap_or_else(|why| panic!("{}: {why}", case.display()))
        };
        let compared = compare(
            Side {
                body: &first,
                wire: wire(&first),
            },
            Side {
                body: &second,
                wire: wire(&second),
            },
        );
        let told = compared
            .differences
            .iter()
            .filter(|it| it.kind != DifferenceKind::Model)
            .map(|it| {
                let place =
                    |at: &Option<Pointer>| at.as_ref().map_or("-".to_owned(), ToString::to_string);
                let no_place = it
                    .no_place
                    .map(|why| format!(" (no place: {why})"))
                    .unwrap_or_default();
                format!(
                    "{}: {}{no_place} [{} | {}]\n",
                    it.code(),
                    it.message,
                    place(&it.first),
                    place(&it.second)
                )
            });
        let told: String = told.collect();
        let expected = case.join("expected.txt");
        if std::env::var("REQC_WRITE_COMPARE").is_ok() {
            fs::write(&expected, &told).expect("writable");
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(told.as_str()) {
            wrong.push(format!("{}:\n{told}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(program::path());
    let output = command
        .arg("compare")
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_exit_status_tells_of_losses() {
    let case = root().join("tests/compare/image-lost");
    let (code, out, _) = run(&case, &["first.json", "second.json"]);
    assert_eq!(code, 1);
    assert!(out.contains("lost/image"), "{out}");
    assert!(out.contains("first.json:"), "{out}");
    let (code, out, _) = run(
        &case,
        &["first.json", "second.json", "--allow", "lost/image"],
    );
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("(allowed)"), "{out}");
    let (code, out, _) = run(&case, &["first.json", "second.json", "--allow", "no-place"]);
    assert_eq!(code, 1, "Chat Completions has a place for images: {out}");
    let case_without_place = root().join("tests/compare/no-place-for-signatures-and-marks");
    let (code, out, _) = run(
        &case_without_place,
        &["first.json", "second.json", "--allow", "no-place"],
    );
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("ollama-chat cannot carry it: "), "{out}");
    let (code, out, _) = run(&case, &["second.json", "first.json"]);
    assert_eq!(code, 0, "additions are not losses: {out}");
    let (code, out, _) = run(&case, &["first.json", "second.json", "--format", "json"]);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &document["losses"]), (1, &Value::from(1)));
    assert_eq!(
        document["pairs"][0]["differences"][0]["first"]["pointer"],
        "/messages/0/content/1"
    );
    let (_, out, _) = run(
        &case,
        &["first.json", "second.json", "--format", "markdown"],
    );
    assert!(out.contains("| difference | what | where |"), "{out}");
}

#[test]
fn bodies_of_long_files_are_paired_by_what_the_user_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |said: &str| {
        format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{said}\"}}]}}\n")
    };
    fs::write(
        folder.path().join("a.jsonl"),
        [line("one"), line("two"), line("three")].concat(),
    )
    .expect("written");
    fs::write(
        folder.path().join("b.jsonl"),
        [line("one"), line("three")].concat(),
    )
    .expect("written");
    let (code, out, err) = run(
        folder.path(),
        &[
            "a.jsonl",
            "b.jsonl",
            "--from",
            "openai-chat",
            "--to",
            "openai-chat",
        ],
    );
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("a.jsonl:2: this body has no counterpart in b.jsonl"),
        "{out}"
    );
    assert!(out.contains("a.jsonl:3 (openai-chat) → b.jsonl:2"), "{out}");
}

#[test]
fn two_agents_are_compared_on_a_context() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = [
        "--agent",
        "Claude Chat Tools",
        "--agent",
        "OpenAI Chat Tools",
    ];
    let (_, out, err) = run(
        folder.path(),
        &[&agents[..], &["--bundled", "--context", "tool-round-trip"]].concat(),
    );
    assert!(
        out.contains(
            "Claude Chat Tools:1 (anthropic-messages) → OpenAI Chat Tools:1 (openai-chat)"
        ),
        "{out}{err}"
    );
    assert!(!out.contains("lost/result"), "{out}");
}

#[test]
fn what_cannot_be_compared_says_why() {
    let case = root().join("tests/compare/image-lost");
    for (arguments, why) in [
        (&["first.json", "none.json"][..], "none.json"),
        (
            &["-", "-"],
            "standard input can be only one of the two files",
        ),
        (&[], "name two files or two agents to compare"),
        (
            &["first.json", "second.json", "--allow", "lsot"],
            "unknown kind of difference: `lsot`",
        ),
        (&["first.json", "expected.txt"], "expected.txt"),
        (
            &["first.json", "second.json", "--from", "opnai-chat"],
            "there is no wire format `opnai-chat`",
        ),
    ] {
        let (code, out, err) = run(&case, arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{err}");
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
}

/// Returns a body with this many messages.
fn long(messages: usize) -> Value {
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        serde_json::json!({"role": role, "content": format!("message number {at}")})
    };
    serde_json::json!({"model": "gpt-5", "messages": (0..messages).map(message).collect::<Vec<_>>()})
}

#[test]
fn long_bodies_lose_only_what_is_missing() {
    let (whole, part) = (long(1_601), long(1_001));
    let wire = WireFormat::OpenAiChat;
    let side = |body| Side { body, wire };
    let compared = compare(side(&whole), side(&part));
    assert_eq!((compared.shared, compared.differences.len()), (1_001, 600));
    assert!(
        compared
            .differences
            .iter()
            .all(|it| it.kind == DifferenceKind::Lost)
    );
    let grown = compare(side(&part), side(&whole));
    assert_eq!((grown.differences.len(), grown.losses().count()), (600, 0));
    // The first messages are missing, and the last one differs.
    let mut other = whole.clone();
    let messages = other["messages"].as_array_mut().expect("a list");
    messages.drain(..900);
    messages.last_mut().expect("a message")["content"] = "another end".into();
    let compared = compare(side(&whole), side(&other));
    assert!(
        !compared
            .differences
            .iter()
            .any(|it| it.kind == DifferenceKind::Moved)
    );
}

#[test]
fn bodies_of_long_files_are_paired() {
    let line = |at: usize| {
        let body = serde_json::json!({"model": "gpt-5", "messages": [{"role": "user", "content": format!("q{at}")}]});
        format!("{body}\n")
    };
    let read = |name: &str, bodies: std::ops::Range<usize>| {
        let text: String = bodies.map(line).collect();
        let bodies = reqc::compare::bodies(text.as_bytes(), None).expect("bodies");
        NamedBodies {
            name: name.to_owned(),
            bodies,
        }
    };
    let compared = ComparedFiles::of(
        read("a", 0..1_600),
        read("b", 0..1_000),
        &Allowed::default(),
    );
    assert_eq!(
        (
            compared.pairs.len(),
            compared.unpaired_first.len(),
            compared.unpaired_second.len()
        ),
        (1_000, 600, 0)
    );
    assert_eq!(
        (compared.losses(), compared.unpaired_first[0]),
        (600, 1_001)
    );
}

#[test]
fn a_default_that_is_written_out_is_a_value() {
    let body =
        |choice: &str| serde_json::json!({"model": "gpt-5", "messages": [], "tool_choice": choice});
    let wire = WireFormat::OpenAiChat;
    let (required, auto) = (body("required"), body("auto"));
    let compared = compare(
        Side {
            body: &required,
            wire,
        },
        Side { body: &auto, wire },
    );
    assert_eq!(
        compared.differences[0].message,
        "`tool-choice` changed from `any` to `auto`"
    );
    assert_eq!(
        compared.differences[0].second,
        Some(Pointer::parse("/tool_choice"))
    );
    let none = serde_json::json!({"model": "gpt-5", "messages": []});
    let compared = compare(Side { body: &none, wire }, Side { body: &auto, wire });
    assert_eq!(compared.differences, []);
}
