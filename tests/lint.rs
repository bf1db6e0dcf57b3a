//! `reqc lint`: request bodies of other programs, in files of all kinds.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes files and runs the binary"
)]

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use reqc::compile::{Compiler, LintTarget, LoadOptions};
use reqc::lint::{WireFormat, recognise};
use reqc::system::{Disk, Embedded};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn reqc(root: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new(program::path());
    command
        .arg("lint")
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // Writing may fail: some commands end without reading their input.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }
    folder
}

#[test]
fn a_finding_far_into_a_line_names_its_pointer() {
    let text = "x".repeat(300);
    let body =
        json!({"model": "gpt-5.1", "messages": [{"role": "user", "content": text}], "n": "two"});
    let root = folder(&[("body.json", &body.to_string())]);
    let ran = reqc(root.path(), &["body.json", "--format", "short"], "");
    assert!(ran.out.contains(" [at /n]\n"), "{}", ran.out);
    let ran = reqc(root.path(), &["body.json"], "");
    assert!(ran.out.contains("\n  at /n in the body\n"), "{}", ran.out);
    let ran = reqc(root.path(), &["body.json", "--format", "json"], "");
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report["diagnostics"][0]["pointer"], "/n");

    let pretty = serde_json::to_string_pretty(&body).expect("JSON");
    let root = folder(&[("body.json", &pretty)]);
    let ran = reqc(root.path(), &["body.json", "--format", "short"], "");
    assert!(!ran.out.contains(" [at "), "{}", ran.out);
}

#[test]
fn warnings_can_fail_a_run() {
    let body = json!({"url": "https://open.bigmodel.cn/api/paas/v4/chat/completions", "body": {
        "model": "glm-4.6", "temperature": 1.5, "messages": [{"role": "user", "content": "Hi"}],
    }});
    let root = folder(&[("body.json", &body.to_string())]);
    let ran = reqc(root.path(), &["body.json"], "");
    assert!(
        ran.code == 0 && ran.out.ends_with(": 1 warning\n"),
        "{}",
        ran.out
    );
    let ran = reqc(root.path(), &["body.json", "--deny-warnings"], "");
    assert_eq!(ran.code, 1, "{}", ran.out);
}

#[test]
fn the_summary_says_whose_model_is_unknown() {
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).to_string();
    let root = folder(&[
        ("one.json", &body),
        ("two.jsonl", &format!("{body}\n{body}\n")),
    ]);
    let ended = |arguments: &[&str]| reqc(root.path(), arguments, "").out;
    let out = ended(&["one.json"]);
    assert!(
        out.ends_with("no findings; the model is unknown: name it with `--model`\n"),
        "{out}"
    );
    let out = ended(&["two.jsonl"]);
    assert!(
        out.ends_with("no findings; the model of 2 bodies is unknown: name it with `--model`\n"),
        "{out}"
    );
    let out = ended(&["one.json", "--model", "gemini-3-pro"]);
    assert!(out.ends_with("no findings\n"), "{out}");
}

/// Returns the findings of a file, one per line, followed by the summary.
fn told(name: &str, text: &str, arguments: &[&str]) -> (i32, String) {
    let folder = folder(&[(name, text)]);
    let format: &[&str] = if arguments.contains(&"--format") {
        &[]
    } else {
        &["--format", "short"]
    };
    let ran = reqc(folder.path(), &[&[name], format, arguments].concat(), "");
    assert_eq!(ran.err, "", "{}", ran.out);
    (ran.code, ran.out)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn bundled() -> Compiler {
    let disk = Disk::open(&root()).expect("the repository");
    Compiler::load(
        Arc::new(disk),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    )
}

#[test]
fn every_golden_body_is_recognised_and_clean() {
    let compiler = bundled();
    let (mut seen, mut bodies) = (BTreeSet::new(), 0);
    for (id, _) in compiler.agents() {
        let plan = compiler.plan(*id).expect("bundled agents are usable");
        let folder = root()
            .join("golden")
            .join(compiler.hierarchy().get(*id).slug());
        let target = LintTarget {
            instance: Some(plan.instance),
            ..LintTarget::default()
        };
        for entry in fs::read_dir(&folder).expect("golden bodies") {
            let path = entry.expect("a file").path();
            if path.file_name().is_some_and(|name| name == "request.json") {
                continue;
            }
            let body: Value =
                serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
            assert_eq!(recognise(&body), Ok(plan.wire), "{}", path.display());
            let linted = compiler
                .lint(&body, None, &target)
                .expect("it is recognised");
            assert!(
                linted.wire == plan.wire && linted.problems.is_empty(),
                "{}: {linted:?}",
                path.display()
            );
            seen.insert(plan.wire);
            bodies += 1;
        }
    }
    assert_eq!(seen.len(), WireFormat::ALL.len());
    assert!(bodies > 390, "{bodies}");
}

const ORPHAN: &str = r#"{
  "model": "claude-sonnet-5-5",
  "max_tokens": 1000,
  "messages": [
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 degrees"}
    ]}
  ]
}
"#;

/// An OpenAI body with one mistake in its role.
const MISSPELT: &str =
    r#"{"model": "gpt-5.6-luna", "messages": [{"role": "usr", "content": "é"}]}"#;
const RIGHT: &str =
    r#"{"model": "gpt-5.6-luna", "messages": [{"role": "user", "content": "Hello"}]}"#;

#[test]
fn a_body_is_judged_without_any_repository() {
    let (code, out) = told("body.json", ORPHAN, &[]);
    assert_eq!(code, 1);
    assert!(
        out.starts_with("body.json:6:7: error[protocol/orphan-result]: the result of `toolu_1`"),
        "{out}"
    );
    assert!(
        out.ends_with("\n1 body (1 anthropic-messages): 1 error\n"),
        "{out}"
    );
    let (code, out) = told("body.json", RIGHT, &[]);
    assert_eq!(
        (code, out.as_str()),
        (0, "1 body (1 openai-chat): no findings\n")
    );
    let (_, out) = told("body.json", ORPHAN, &["--format", "human"]);
    assert!(
        out.contains("[body.json:6:7]") && !out.contains("reaches"),
        "{out}"
    );
}

#[test]
fn standard_input_and_several_files_are_read() {
    let folder = folder(&[("b.json", RIGHT), ("a.json", MISSPELT)]);
    let ran = reqc(
        folder.path(),
        &["b.json", "-", "a.json", "--format", "short"],
        ORPHAN,
    );
    let places: Vec<&str> = ran
        .out
        .lines()
        .filter_map(|line| line.split(": error").next())
        .collect();
    assert_eq!(places[..2], ["<stdin>:6:7", "a.json:1:49"], "{}", ran.out);
    assert!(
        ran.out
            .ends_with("3 bodies (1 anthropic-messages, 2 openai-chat): 2 errors\n"),
        "{}",
        ran.out
    );
}

#[test]
fn lists_and_batches_are_taken_apart() {
    let openai = format!(
        "{{\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {MISSPELT}}}\n\
         {{\"custom_id\": \"b\", \"method\": \"POST\", \"url\": \"/v1/embeddings\", \"body\": {{\"model\": \"m\", \"input\": \"a\"}}}}\n\n\
         {{\"custom_id\": \"c\", \"method\": \"POST\", \"url\": \"/v1/responses\", \"body\": {{\"model\": \"gpt-5.6-luna\", \"input\": 5}}}}\n"
    );
    let (code, out) = told("batch.txt", &openai, &[]);
    assert_eq!(code, 1);
    assert!(
        out.starts_with("batch.txt:1:125: error[schema/invalid-value]"),
        "{out}"
    );
    assert!(out.contains("\nbatch.txt:4:105: error[schema/"), "{out}");
    assert!(
        out.contains(
            "\nbatch.txt:4:45: error[lint/batch-mixed]: `url` is `/v1/responses`, and line 1 has"
        ),
        "{out}"
    );
    assert!(
        out.ends_with(
            "2 bodies (1 openai-chat, 1 openai-responses): 5 errors, 1 other request skipped\n"
        ),
        "{out}"
    );

    let anthropic = json!({"requests": [{"custom_id": "a", "params": {"model": "claude-sonnet-5-5", "messages": [
        {"role": "user", "content": "Hello"}
    ]}}]});
    let (_, out) = told(
        "batch.json",
        &serde_json::to_string_pretty(&anthropic).expect("JSON"),
        &[],
    );
    assert!(
        out.starts_with("batch.json:5:17: error[schema/missing-field]: `/max_tokens` is missing"),
        "{out}"
    );
    let line = anthropic.pointer("/requests/0").expect("there").to_string();
    let (_, out) = told("batch.jsonl", &format!("{line}\n{line}\n"), &[]);
    assert!(
        out.contains("batch.jsonl:2:27: error[schema/missing-field]"),
        "{out}"
    );

    let (_, out) = told("list.json", &format!("[\n{RIGHT},\n{MISSPELT}\n]\n"), &[]);
    assert!(
        out.starts_with("list.json:3:49: error")
            && out.contains("\n2 bodies (2 openai-chat): 1 error"),
        "{out}"
    );
}

#[test]
fn a_batch_whose_job_names_the_model_needs_none() {
    let line = r#"{"custom_id": "a", "body": {"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}}"#;
    let other = line.replace("\"a\"", "\"b\"");
    for arguments in [&["--wire", "mistral-chat"][..], &[]] {
        let (code, out) = told("b.jsonl", &format!("{line}\n{other}"), arguments);
        assert_eq!(
            (code, out.as_str()),
            (0, "2 bodies (2 mistral-chat): no findings\n")
        );
    }
    let bare = r#"{"messages": [{"role": "user", "content": "Hello"}]}"#;
    let (code, out) = told(
        "b.json",
        bare,
        &["--wire", "openai-chat", "--provider", "OpenAI"],
    );
    assert!(code == 1 && out.contains("`/model` is missing"), "{out}");
    assert_eq!(
        told(
            "b.json",
            bare,
            &["--wire", "openai-chat", "--model", "gpt-5.6-luna"]
        )
        .0,
        0
    );
}

#[test]
fn an_mcp_server_needs_a_toolset_if_a_header_asks_for_the_newer_connector() {
    let request = |beta| {
        json!({
            "method": "POST",
            "url": "https://api.anthropic.com/v1/messages",
            "headers": {"anthropic-version": "2023-06-01", "anthropic-beta": beta},
            "body": {
                "model": "claude-sonnet-4-5",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "Hello"}],
                "mcp_servers": [{"type": "url", "url": "https://example.com/sse", "name": "notes"}],
            },
        })
        .to_string()
    };
    let (code, out) = told("new.json", &request("mcp-client-2025-11-20"), &[]);
    assert!(code == 1 && out.contains("no `mcp_toolset`"), "{out}");
    let (code, out) = told("old.json", &request("mcp-client-2025-04-04"), &[]);
    assert_eq!(code, 0, "{out}");
}

/// Returns a HAR file with an entry for each URL and body.
fn har(entries: &[(&str, &str)]) -> String {
    let entry = |(url, body): &(&str, &str)| {
        let headers = json!([{"name": "x-api-key", "value": "hidden-in-no-form"}]);
        let data = json!({"mimeType": "application/json", "text": body});
        json!({"request": {"method": "POST", "url": url, "headers": headers, "postData": data}, "response": {"status": 400}})
    };
    json!({"log": {"version": "1.2", "entries": entries.iter().map(entry).collect::<Value>()}})
        .to_string()
}

#[test]
fn captures_are_read_and_show_nothing_but_bodies() {
    let right_at_mistral = RIGHT.replace("gpt-5.6-luna", "mistral-large-latest");
    let text = har(&[
        ("https://api.openai.com/v1/chat/completions", MISSPELT),
        ("https://example.com/collect", "{\"messages\": []}"),
        (
            "https://api.mistral.ai/v1/chat/completions",
            &right_at_mistral,
        ),
    ]);
    let (code, out) = told("capture", &text, &[]);
    assert_eq!(code, 1);
    let place = text.find(r#"\"usr\""#).expect("there") + 1;
    assert!(
        out.starts_with(&format!("capture:1:{place}: error[schema/invalid-value]")),
        "{place}\n{out}"
    );
    assert!(
        out.contains("2 bodies (1 openai-chat, 1 mistral-chat): 1 error, 1 other request skipped"),
        "{out}"
    );
    let (_, out) = told("capture", &text, &["--format", "human"]);
    assert!(
        out.contains("usr") && !out.contains("hidden-in-no-form") && !out.contains("https://"),
        "{out}"
    );

    let url =
        "https://gateway.example/hidden-in-no-form/v1/v1/chat/completions?key=hidden-in-no-form";
    let (_, out) = told("capture", &har(&[(url, RIGHT)]), &["--format", "human"]);
    assert!(
        out.contains("`v1` twice") && !out.contains("hidden-in-no-form"),
        "{out}"
    );

    let text = har(&[(
        "https://api.openai.com/v1/chat/completions",
        "{\"model\": ]",
    )]);
    let (_, out) = told("capture", &text, &[]);
    assert!(
        out.contains(": error[lint/syntax]: a value is missing here")
            || out.contains("error[lint/syntax]"),
        "{out}"
    );
    let (code, out) = told("capture", &har(&[("https://example.com/", "{}")]), &[]);
    assert!(
        code == 1 && out.contains("error[lint/no-body]: the only request in this file"),
        "{out}"
    );
}

#[test]
fn what_a_url_says_of_server_and_model_counts() {
    let gemini = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent?key=k";
    let body = r#"{"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}"#;
    let azure = "https://x.openai.azure.com/openai/deployments/ours/chat/completions?api-version=1";
    let bare = r#"{"messages": [{"role": "user", "content": "Hello"}]}"#;
    let (code, out) = told("capture", &har(&[(gemini, body), (azure, bare)]), &[]);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            "2 bodies (1 openai-chat, 1 google-generate-content): no findings\n"
        )
    );
    // A field that one server accepts: correct there, unknown to OpenAI, and possibly correct at an
    // unknown server.
    let thinks = r#"{"model": "m/m", "enable_thinking": true, "stream": true, "messages": [{"role": "user", "content": "Hello"}]}"#;
    let at = |url: &str| told("capture", &har(&[(url, thinks)]), &[]);
    assert_eq!(
        at("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions").0,
        0
    );
    assert!(
        at("https://api.openai.com/v1/chat/completions")
            .1
            .contains("error[schema/unknown-field]")
    );
    let (code, out) = at("https://example.com/v1/chat/completions");
    assert!(
        code == 0 && out.contains("warning[schema/unknown-field]"),
        "{out}"
    );
    assert_eq!(told("b.json", thinks, &["--provider", "Qwen"]).0, 0);
}

#[test]
fn urls_that_lead_nowhere_are_told_at_the_url() {
    let body = json!({"model": "gpt-5.2", "messages": [{"role": "user", "content": "Hello"}]});
    let told_at = |url: &str| {
        let text = format!("{}\n", json!({"request": {"body": body, "url": url}}));
        let place = text.find("\"http").expect("there") + 1;
        (place, told("log.jsonl", &text, &[]))
    };
    let (place, (code, out)) = told_at("https://api.openai.com/v1/v1/chat/completions");
    assert!(
        code == 1
            && out.starts_with(&format!(
                "log.jsonl:1:{place}: error[lint/wrong-path]: the path of the URL contains `v1` twice (help: send the request to a path that ends with `/v1/chat/completions`;"
            )),
        "{out}"
    );
    let (_, (code, out)) = told_at("https://api.openai.com/chat/completions");
    assert!(code == 1 && out.contains("lacks the version `v1`"), "{out}");
    let (_, (code, out)) = told_at("https://gateway.example/v1/v1/chat/completions");
    assert!(
        code == 0 && out.contains("warning[lint/wrong-path]"),
        "{out}"
    );
    let (_, (code, out)) = told_at("https://gateway.example/chat/completions");
    assert!(code == 0 && !out.contains("wrong-path"), "{out}");
}

#[test]
fn a_known_server_is_asked_only_for_models_that_it_serves() {
    let told_of = |url: &str, model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]});
        told(
            "log.jsonl",
            &format!("{}\n", json!({"url": url, "body": body})),
            &[],
        )
    };
    let openai = "https://api.openai.com/v1/chat/completions";
    let (code, out) = told_of(openai, "claude-sonnet-4-5");
    assert!(
        code == 1
            && out.contains(
                "error[provider/unserved-model]: `claude-sonnet-4-5` is one of Anthropic's models"
            ),
        "{out}"
    );
    let (code, out) = told_of(openai, "openai/gpt-5.2");
    assert!(
        code == 1 && out.contains("(help: write `gpt-5.2`)"),
        "{out}"
    );
    let (code, out) = told_of(openai, "gpt-5.2");
    assert!(code == 0 && !out.contains("unserved-model"), "{out}");
    let (code, out) = told_of(
        "https://gateway.example/v1/chat/completions",
        "claude-sonnet-4-5",
    );
    assert!(code == 0 && !out.contains("unserved-model"), "{out}");
    // Without a URL, the server is guessed.
    let text = json!({"model": "anthropic/claude-sonnet-4.5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]});
    let (_, out) = told(
        "body.json",
        &text.to_string(),
        &["--wire", "anthropic-messages"],
    );
    assert!(!out.contains("unserved-model"), "{out}");
    let google = "https://generativelanguage.googleapis.com/v1beta/models/gpt-5.2:generateContent";
    let line = json!({"url": google, "body": {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}});
    let (code, out) = told("log.jsonl", &line.to_string(), &[]);
    assert!(
        code == 1 && out.contains("`gpt-5.2` is one of OpenAI's models"),
        "{out}"
    );
}

#[test]
fn logs_hold_bodies_as_objects_and_as_text() {
    let line = json!({"timestamp": 1, "request": {"url": "https://api.openai.com/v1/chat/completions", "body": MISSPELT}});
    let text = format!(
        "{line}\n{}\n",
        json!({"level": "info", "message": "started"})
    );
    let (_, out) = told("log.jsonl", &text, &[]);
    let place = text.find(r#"\"usr\""#).expect("there") + 1;
    assert!(
        out.starts_with(&format!("log.jsonl:1:{place}: error[schema/invalid-value]")),
        "{out}"
    );
    assert!(out.contains("log.jsonl:2:1: error[lint/no-body]"), "{out}");
    let (_, out) = told("log.jsonl", &text, &["--allow", "lint/no-body"]);
    assert!(!out.contains("no-body"), "{out}");
}

#[test]
fn a_port_that_servers_share_makes_no_errors() {
    let line = |body: &Value| {
        let url = "http://localhost:1234/v1/chat/completions";
        json!({"url": url, "body": body}).to_string()
    };
    let video = json!({"model": "ours", "messages": [{"role": "user", "content": [
        {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
    ]}]});
    let told_of = |args: &[&str]| told("b.json", &line(&video), args);
    let (code, out) = told_of(&[]);
    let guessed = "warning[schema/invalid-value]: `/messages/0/content/0/type` cannot be `video_url` (only the port suggests LM Studio)";
    assert!(code == 0 && out.contains(guessed), "{out}");
    // A server that the user names is certain.
    let (code, out) = told_of(&["--provider", "LM Studio (Chat Completions)"]);
    let certain = "error[schema/invalid-value]: `/messages/0/content/0/type` cannot be `video_url`";
    assert!(code == 1 && out.contains(certain), "{out}");
    let (code, out) = told("b.json", &line(&json!({"model": "ours"})), &[]);
    assert!(
        code == 1 && out.contains("error[schema/missing-field]"),
        "{out}"
    );
}

#[test]
fn formats_that_are_not_supported_are_named() {
    let converse = r#"{"messages": [{"role": "user", "content": [{"text": "Hello"}]}], "inferenceConfig": {"maxTokens": 9}}"#;
    let plain =
        r#"{"model": "command-a-03-2025", "messages": [{"role": "user", "content": "Hello"}]}"#;
    let bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream";
    let by_url = |url: &str, body: &str| format!(r#"{{"url": "{url}", "body": {body}}}"#);
    for (text, api) in [
        (converse.to_owned(), "Amazon Bedrock's Converse API"),
        (by_url(bedrock, plain), "Amazon Bedrock's Converse API"),
        (
            by_url("https://api.cohere.com/v2/chat", plain),
            "Cohere's chat API",
        ),
        (
            r#"{"model": "qwen-max", "input": {"messages": []}, "parameters": {}}"#.to_owned(),
            "DashScope's own generation API",
        ),
        (
            r#"{"model": "gemini-3-pro", "input": "Hi", "system_instruction": "Be brief."}"#
                .to_owned(),
            "Gemini's Interactions API",
        ),
        (
            by_url(
                "https://a.snowflakecomputing.com/api/v2/cortex/inference:complete",
                plain,
            ),
            "Snowflake Cortex's own completion API (`inference:complete`)",
        ),
    ] {
        let (code, out) = told("b.json", &text, &[]);
        let message = format!(
            "error[lint/unsupported-format]: this is a request to {api}, a format that is not supported"
        );
        assert!(code == 1 && out.contains(&message), "{out}");
        assert_eq!(out.matches("error[").count(), 1, "{out}");
    }
    let compatible = by_url(
        "https://api.cohere.ai/compatibility/v1/chat/completions",
        plain,
    );
    assert_eq!(told("b.json", &compatible, &[]).0, 0);
    // The path names the model; the format is that of its maker.
    let imported = by_url(
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn:aws:bedrock:us-east-1:1:imported-model/a/invoke",
        r#"{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 10}"#,
    );
    let (code, out) = told("b.json", &imported, &[]);
    assert!(code == 0 && !out.contains("warning"), "{out}");
    // At a chat endpoint, this is a chat body with an unknown field.
    let dashscope = by_url(
        "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
        r#"{"model": "qwen-max", "input": {"messages": []}, "parameters": {}}"#,
    );
    let (code, out) = told("b.jsonl", &dashscope, &[]);
    let error = "error[schema/unknown-field]: the API has no field `input`";
    assert!(code == 1 && out.contains(error), "{out}");
    let (code, out) = told("b.json", converse, &["--wire", "anthropic-messages"]);
    assert!(code == 1 && out.contains("schema/missing-field"), "{out}");
    let log = format!(
        "{}\n{}\n",
        by_url(bedrock, plain),
        by_url("https://gpu.example/v1/chat/completions", plain)
    );
    let allowed = ["--allow", "lint/unsupported-format"];
    assert_eq!(told("log.jsonl", &log, &allowed).0, 0);
}

#[test]
fn a_format_that_is_not_certain_is_asked_for() {
    let body = r#"{"model": "llama3.2:3b", "messages": [{"role": "user", "content": "Hello"}]}"#;
    let (code, out) = told("b.json", body, &[]);
    assert!(
        code == 1
            && out.contains(
                "error[lint/unknown-format]: this body may be `openai-chat` or `ollama-chat`"
            ),
        "{out}"
    );
    assert!(
        out.contains("`--wire`") && out.ends_with("0 bodies: 1 error\n"),
        "{out}"
    );
    for arguments in [
        ["--wire", "ollama-chat"],
        ["--provider", "Ollama"],
        ["--provider", "Ollama OpenAI"],
    ] {
        assert_eq!(told("b.json", body, &arguments).0, 0, "{arguments:?}");
    }
    let folder = folder(&[("b.json", body)]);
    let failed = |arguments: &[&str]| {
        let ran = reqc(folder.path(), &[&["b.json"], arguments].concat(), "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        ran.err
    };
    assert!(failed(&["--wire", "openai-chatt"]).contains("did you mean `openai-chat`?"));
    assert!(failed(&["--provider", "Olama"]).contains("did you mean `Ollama`"));
    assert!(
        failed(&["--provider", "Claude", "--wire", "openai-chat"])
            .contains("`Claude` does not accept `openai-chat`")
    );
}

/// Lines of programs that print a request whose role is misspelt, each with the text at which the
/// finding is.
const PRINTED: [(&str, &str); 8] = [
    (
        "[2027-01-31 12:00:00 - openai._base_client:482 - DEBUG] Request options: {'method': 'post', 'url': '/chat/completions', \
         'timeout': Timeout(connect=5.0), 'json_data': {'messages': [{'role': 'usr', 'content': \"It's\"}], 'model': 'gpt-5.2'}}\n",
        "'usr'",
    ),
    (
        "POST Request Sent from LiteLLM:\ncurl -X POST \\\nhttps://api.openai.com/v1/ \\\n-d '{'model': 'gpt-5.2', 'messages': [{'role': 'usr', 'content': 'a'}]}'\n",
        "'usr'",
    ),
    (
        "send: b'POST /v1/chat/completions HTTP/1.1\\r\\nHost: api.openai.com\\r\\n'\n\
         send: b'{\"model\": \"gpt-5.2\", \"messages\": [{\"content\": \"it\\'s \\\\\"so\\\\\"\", \"role\": \"usr\"}]}'\n",
        "\"usr\"",
    ),
    (
        "APICallError [AI_APICallError]: no {\n  url: 'https://api.openai.com/v1/chat/completions',\n  requestBodyValues: {\n    \
         model: 'gpt-5.2',\n    stop: undefined,\n    messages: [ { role: 'usr', content: \"it's\" } ]\n  },\n  data: undefined\n}\n",
        "'usr'",
    ),
    (
        "> POST /v1/chat/completions HTTP/1.1\n> Host: api.openai.com\n\n{\n  \"model\": \"gpt-5.2\",\n  \"messages\": [\n    \
         {\"role\": \"usr\", \"content\": \"a\"}\n  ]\n}\n< HTTP/1.1 400\n{\"error\": {\"message\": \"no\"}}\n",
        "\"usr\"",
    ),
    (
        "openai.BadRequestError: no POST https://api.openai.com/v1/chat/completions b'{\"model\":\"gpt-5.2\",\"messages\":[{\"role\":\"usr\",\"content\":\"\\xc3\\xa9\"}]}'\n",
        "\"usr\"",
    ),
    (
        "12:00 started\n12:01 sent {'model': 'gpt-5.2', 'messages': [{'content': ('one '\n 'two'), 'role': <Role.X: 'usr'>}]}\n12:02 done\n",
        "'usr'",
    ),
    (
        "INFO body=\"{\\\"model\\\":\\\"gpt-5.2\\\",\\\"messages\\\":[{\\\"role\\\":\\\"usr\\\",\\\"content\\\":\\\"a\\\"}]}\" x=1\n",
        "\\\"usr",
    ),
];

#[test]
fn bodies_that_programs_print_are_checked_at_their_places() {
    for (text, mark) in PRINTED {
        let at = text.find(mark).expect("there");
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
        let (code, out) = told("debug.log", text, &[]);
        assert!(
            code == 1
                && out.starts_with(&format!(
                    "debug.log:{line}:{column}: error[schema/invalid-value]"
                ))
                && out.ends_with("1 body (1 openai-chat): 1 error\n"),
            "{text}{out}"
        );
    }
    let log = PRINTED.map(|(text, _)| text).concat();
    let (_, out) = told("debug.log", &log, &[]);
    assert!(
        out.ends_with("8 bodies (8 openai-chat): 8 errors\n"),
        "{out}"
    );
}

#[test]
fn a_printed_body_is_checked_but_is_no_json() {
    let text = "{'model': 'gpt-5.2', 'messages': [{'role': 'usr', 'content': None}]}";
    let (_, out) = told("body.json", text, &[]);
    assert!(
        out.starts_with("body.json:1:2: error[lint/syntax]: an object key must be")
            && out.contains("body.json:1:44: error[schema/invalid-value]"),
        "{out}"
    );
    // A log without a body, and one whose body is abbreviated.
    let (_, out) = told("a.log", "[12:00] up\nError code: 400\n", &[]);
    assert!(
        out.starts_with("a.log:1:1: error[lint/no-body]: this text contains no request body"),
        "{out}"
    );
    let (_, out) = told(
        "a.log",
        "sent {\n  body: { model: 'm', messages: [Array] }\n}\n",
        &[],
    );
    assert!(out.contains("`JSON.stringify`"), "{out}");
    // In JSON with another mistake, nothing but the mistake is reported.
    let text = r#"{"model": "gpt-5.2", "messages": [{"role": "usr", "content": ""},]}"#;
    let (_, out) = told("body.json", text, &[]);
    assert!(
        out.ends_with("0 bodies: 1 error\n") && out.contains("lint/syntax"),
        "{out}"
    );
}

#[test]
fn what_is_no_json_is_told_at_its_place() {
    let (_, out) = told(
        "b.json",
        "{\n  \"model\": \"m\",,\n  \"messages\": []\n}\n",
        &[],
    );
    assert!(
        out.starts_with("b.json:2:16: error[lint/syntax]: there are two commas in a row\n"),
        "{out}"
    );
    let (_, out) = told(
        "b.jsonl",
        &format!("{RIGHT}\n{{\"model\": None}}\n{RIGHT}\n"),
        &[],
    );
    assert!(
        out.starts_with("b.jsonl:2:11: error[lint/syntax]: `None` is not a JSON value"),
        "{out}"
    );
    assert!(out.contains("\n2 bodies (2 openai-chat): 1 error"), "{out}");
    for (text, rule) in [
        ("", "lint/syntax"),
        ("[]", "lint/no-body"),
        ("[5]", "lint/no-body"),
        ("{\"id\": 1}", "lint/no-body"),
        ("{\"a\": 1, \"a\": 2}", "lint/syntax"),
        ("{\"a\": \"\0\"}", "repo/not-text"),
    ] {
        let (code, out) = told("b.json", text, &[]);
        assert!(
            code == 1 && out.contains(&format!("error[{rule}]")),
            "{text:?}: {out}"
        );
    }
    let folder = folder(&[]);
    fs::write(folder.path().join("latin1"), b"{\n\"a\": \"\xe9\"}").expect("written");
    let ran = reqc(folder.path(), &["latin1", "--format", "short"], "");
    assert!(
        ran.out
            .starts_with("latin1:2:7: error[repo/not-text]: this is not UTF-8"),
        "{}",
        ran.out
    );
}

#[test]
fn the_policy_of_the_repository_counts() {
    let policy = "[rules]\n\"schema/unknown-field\" = \"warning\"\n\n[[allow]]\ncode = \"protocol/orphan-result\"\nfile = \"bodies/*\"\nreason = \"a test\"\n";
    let field = r#"{"model": "gpt-5.6-luna", "temprature": 1, "messages": [{"role": "user", "content": "Hello"}]}"#;
    let folder = folder(&[
        ("reqc.toml", policy),
        ("bodies/a.json", ORPHAN),
        ("a.json", ORPHAN),
        ("b.json", field),
    ]);
    let lint = |arguments: &[&str]| {
        reqc(
            folder.path(),
            &[&["--format", "short"], arguments].concat(),
            "",
        )
    };
    let ran = lint(&["bodies/a.json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(lint(&["a.json"]).code, 1);
    let ran = lint(&["b.json"]);
    assert!(
        ran.code == 0
            && ran
                .out
                .contains("b.json:1:27: warning[schema/unknown-field]"),
        "{}",
        ran.out
    );
    assert_eq!(lint(&["b.json", "--deny", "schema/*"]).code, 1);
    fs::write(folder.path().join("reqc.toml"), "[rules").expect("written");
    let ran = lint(&["bodies/a.json"]);
    assert!(
        ran.code == 1 && ran.out.contains("reqc.toml:1:"),
        "a policy that cannot be read: {}",
        ran.out
    );
}

#[test]
fn programs_get_the_same_document_as_ever() {
    let folder = folder(&[("a.json", ORPHAN)]);
    let ran = reqc(folder.path(), &["a.json", "--format", "json"], "");
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        report["summary"]["formats"],
        json!([{"name": "anthropic-messages", "bodies": 1}])
    );
    assert_eq!(report["diagnostics"][0]["line"], 6);
    assert_eq!(report["diagnostics"][0]["agents"], json!([]));
    let ran = reqc(
        folder.path(),
        &["a.json", "-q", "--allow", "protocol/*"],
        "",
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn many_lines_are_told_in_their_order_and_bounded() {
    let line = r#"{"model": "gpt-5.6-luna", "messages": [], "x": 1}"#;
    let text = format!("{line}\n").repeat(10_500);
    let (code, out) = told("many.jsonl", &text, &["--format", "json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &report["summary"]["bodies"]), (1, &json!(10_500)));
    let findings = report["diagnostics"].as_array().expect("a list");
    let lines: Vec<u64> = findings
        .iter()
        .map(|finding| finding["line"].as_u64().expect("a line"))
        .collect();
    assert!(
        lines.is_sorted() && lines.last() == Some(&10_000),
        "{:?}",
        lines.last()
    );
    let left_out = report["summary"]["left_out"].as_array().expect("a list");
    assert!(
        left_out.len() == 2 && left_out.iter().all(|it| it["findings"] == 500),
        "one entry for each rule: {left_out:?}"
    );
    assert_eq!(report["summary"]["errors"], 21_000);
    let (_, out) = told("many.jsonl", &text, &[]);
    assert!(
        out.contains("… and 10,400 more findings of ")
            && out.contains("`--format json` lists the first 10,000\n"),
        "{out}"
    );
}

#[test]
fn lines_of_text_among_documents_are_skipped_with_one_warning() {
    let log = format!("{MISSPELT}\n[INFO] up\nready\n2027-01-31 10:00 INFO {MISSPELT}\n{{broken\n");
    let (code, out) = told("a.log", &log, &[]);
    let lines: Vec<&str> = out.lines().collect();
    let rules = [
        "schema/invalid-value",
        "lint/no-body",
        "schema/invalid-value",
        "lint/syntax",
    ];
    for ((line, number), rule) in lines.iter().zip([1, 2, 4, 5]).zip(rules) {
        assert!(
            line.starts_with(&format!("a.log:{number}:")) && line.contains(rule),
            "{out}"
        );
    }
    assert!(
        code == 1 && lines[1].contains("warning[lint/no-body]: 2 lines are skipped"),
        "{out}"
    );
    let (_, out) = told("a.log", &log, &["--allow", "lint/no-body"]);
    assert!(
        !out.contains("lint/no-body") && out.contains("2 bodies"),
        "{out}"
    );
}

#[test]
fn a_log_is_read_as_text() {
    let answer = r#"{"error": {"message": "no"}}"#;
    let log =
        format!("started\n{MISSPELT}\n[INFO] up\n{answer}\n10:00 INFO {MISSPELT}\n{{\"a\": 1\n");
    let (code, out) = told("a.log", &log, &[]);
    let lines: Vec<&str> = out.lines().collect();
    let column = MISSPELT.find("\"usr\"").expect("there") + 1;
    for (line, place) in lines
        .iter()
        .zip([(2, column), (5, column + "10:00 INFO ".len()), (6, 1)])
    {
        assert!(
            line.starts_with(&format!("a.log:{}:{}: error", place.0, place.1)),
            "{out}"
        );
    }
    assert!(code == 1 && lines[2].contains("lint/syntax"), "{out}");
    assert!(
        lines[3].ends_with("2 bodies (2 openai-chat): 3 errors"),
        "{out}"
    );
    assert_eq!(told("b.log", &format!("started\n{RIGHT}\n"), &[]).0, 0);
    // Only a body is shown: the text around it may contain a key.
    let log = "12:00 {'headers': {'x-api-key': 'odd-key'}, 'json_data': {'model': 'gpt-5.2', 'messages': [{'role': 'usr', 'content': 'a'}]}}\n";
    let folder = folder(&[("a.log", log)]);
    let shown = reqc(folder.path(), &["a.log"], "").out;
    assert!(
        shown.contains("'usr'") && !shown.contains("odd-key"),
        "{shown}"
    );
    // A comment does not make a log of a document, and JSON with a mistake is reported.
    let (_, out) = told(
        "b.json",
        &format!("// a body\n{}\n", RIGHT.replace("]}", "],}")),
        &[],
    );
    assert!(out.contains("lint/syntax"), "{out}");
    let doubled = "sent {'model': 'a', 'model': 'b', 'messages': []}\nthen\n";
    assert!(
        told("a.log", doubled, &[])
            .1
            .contains("a.log:1:21: error[lint/syntax]")
    );
}

#[test]
fn links_of_a_repository_are_not_followed() {
    let folder = folder(&[("own/reqc.toml", ""), ("secret.json", "{\"password\": 1}")]);
    std::os::unix::fs::symlink("../secret.json", folder.path().join("own/body.json"))
        .expect("a link");
    let ran = reqc(&folder.path().join("own"), &["body.json"], "");
    assert!(
        ran.code == 2 && ran.err.contains("is a link inside a repository"),
        "{}{}",
        ran.out,
        ran.err
    );
}

/// Returns three requests of one conversation whose system prompt contains the time and hostile
/// text.
fn session() -> String {
    let request = |turn: usize| {
        let hostile = "<script>alert(1)</script> </svg> \u{1b}[2J ```\n## @all ![x](javascript:y)";
        let system = format!(
            "Time: 2026-11-25T10:00:0{turn}Z {hostile}\n{}",
            "Read with care. ".repeat(900)
        );
        let mut messages =
            vec![json!({"role": "user", "content": format!("Look at it. {hostile}")})];
        for at in 0..turn {
            messages.push(json!({"role": "assistant", "content": format!("Answer {at}.")}));
            messages.push(json!({"role": "user", "content": format!("Question {at}.")}));
        }
        let system = json!({"role": "system", "content": system});
        let messages = [vec![system], messages].concat();
        json!({"model": "<b>gpt-5</b>", "messages": messages})
    };
    (0..3)
        .map(|turn| request(turn).to_string() + "\n")
        .collect()
}

#[test]
fn a_session_is_told_in_all_formats_and_nothing_in_it_acts() {
    let folder = folder(&[("log.jsonl", &session())]);
    let ran = reqc(folder.path(), &["--session", "log.jsonl"], "");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    assert!(
        ran.out.contains(
            "cache lost at request 2: the date or time in `messages[0].content`, from byte 24;"
        ),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\u{1b}'));
    let html = reqc(
        folder.path(),
        &["--session", "log.jsonl", "--format", "html"],
        "",
    )
    .out;
    assert!(
        html.starts_with("<!doctype html>")
            && html.contains("<svg ")
            && html.contains("default-src 'none'")
    );
    for hostile in ["<script", "<b>", "javascript:", "@all", "\u{1b}"] {
        assert!(!html.contains(hostile), "{hostile}");
    }
    assert_eq!(html.matches("</svg>").count(), 1);
    // Labels with units, outside the drawing.
    assert!(
        !html.contains("<text") && html.contains(" tokens</p>\n<svg"),
        "{html}"
    );
    assert!(html.contains("<span>request 1</span><span>request 3</span>"));
    assert!(html.contains("in <code>messages"), "{html}");
    let json: Value = serde_json::from_str(
        &reqc(
            folder.path(),
            &["--session", "log.jsonl", "--format", "json"],
            "",
        )
        .out,
    )
    .expect("JSON");
    assert_eq!(json["stories"][0]["breaks"][0]["change"], "time");
    assert_eq!(json["stories"][0]["breaks"][0]["times"], 2);
    let markdown = reqc(
        folder.path(),
        &["--session", "log.jsonl", "--format", "markdown"],
        "",
    )
    .out;
    assert!(
        markdown.contains("### conversation 1")
            && markdown.contains("in <code>messages")
            && !markdown.contains("<b>"),
        "{markdown}"
    );
    let refused = reqc(
        folder.path(),
        &["--session", "log.jsonl", "--format", "sarif"],
        "",
    );
    assert_eq!(refused.code, 2, "{}", refused.out);
}

#[test]
fn conversations_that_are_not_shown_are_counted() {
    let body = |at: usize| {
        let question = format!("Question {at}: what is in file {at} of this project, and why?");
        json!({"model": "gpt-5", "messages": [{"role": "user", "content": question}]}).to_string()
    };
    let lines: String = (0..25).map(|at| body(at) + "\n").collect();
    let folder = folder(&[("log.jsonl", &lines)]);
    for format in [&[][..], &["--format", "html"], &["--format", "markdown"]] {
        let out = reqc(
            folder.path(),
            &[&["--session", "log.jsonl"], format].concat(),
            "",
        )
        .out;
        let told = "5 more conversations, without problems, are not shown";
        assert!(out.contains(told), "{format:?}: {out}");
        assert!(out.contains("conversation 20") && !out.contains("conversation 21"));
    }
}

#[test]
fn a_session_without_the_option_is_told_of_it() {
    let line = |uuid: &str, message: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{message}}}\n"
        )
    };
    let user = line("a", r#"{"role":"user","content":"Hi"}"#);
    let answer = line(
        "b",
        r#"{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hello"}],"usage":{"input_tokens":3,"output_tokens":1}}"#,
    );
    let messages = r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]"#;
    let folder = folder(&[
        ("session.jsonl", &format!("{user}{answer}")),
        ("history.json", messages),
        ("other.json", r#"{"a": 1}"#),
    ]);
    for (file, told) in [
        (
            "session.jsonl",
            "it belongs to a session file (Claude Code session)",
        ),
        (
            "history.json",
            "it belongs to a session file (list of messages)",
        ),
        ("other.json", "`--wire`"),
    ] {
        let ran = reqc(folder.path(), &[file, "--format", "short"], "");
        assert!(
            ran.code == 1 && ran.out.contains(told) && ran.out.contains(" 1 error"),
            "{file}: {}",
            ran.out
        );
    }
}

#[test]
fn a_session_without_a_request_is_no_session() {
    let folder = folder(&[("log.jsonl", "{\"level\": \"info\"}\n")]);
    let ran = reqc(folder.path(), &["--session", "log.jsonl"], "");
    assert_eq!(ran.code, 2, "{}", ran.out);
}

#[test]
fn a_session_with_nothing_to_mend_is_clean() {
    let clean: Vec<String> = session()
        .lines()
        .map(|line| {
            format!(
                "{}\n",
                line.replacen("10:00:01", "10:00:00", 1)
                    .replacen("10:00:02", "10:00:00", 1)
            )
        })
        .collect();
    let clean = clean.concat();
    let folder = folder(&[("log.jsonl", &clean)]);
    let ran = reqc(folder.path(), &["--session", "log.jsonl"], "");
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.out
            .contains("3 requests in 1 conversation; no problems found"),
        "{}",
        ran.out
    );
    // The same requests again from standard input continue the conversation.
    let ran = reqc(folder.path(), &["--session", "log.jsonl", "-"], &clean);
    assert!(
        ran.out.contains("6 requests in 1 conversation"),
        "{}",
        ran.out
    );
}

#[test]
fn sessions_of_agents_are_told_once() {
    let line = |kind: &str, uuid: &str| json!({"type": kind, "uuid": uuid, "parentUuid": null, "sessionId": "s", "message": {"role": kind, "content": "hi"}});
    let lines: String = [
        line("user", "a"),
        line("assistant", "b"),
        json!({"type": "mode", "mode": "normal"}),
        line("user", "c"),
    ]
    .iter()
    .map(|line| line.to_string() + "\n")
    .collect();
    for arguments in [&[][..], &["--wire", "anthropic-messages"]] {
        let (code, out) = told("session.jsonl", &lines, arguments);
        assert_eq!((code, out.matches("lint/no-body").count()), (1, 1), "{out}");
        assert!(
            out.contains("session.jsonl:1:1") && out.contains("Claude Code session"),
            "{out}"
        );
        assert!(out.contains("`reqc lint --session`"), "{out}");
    }
}

#[test]
fn what_is_found_in_place_of_a_body_is_named() {
    for (text, expected) in [
        (
            json!({"object": "chat.completion", "choices": []}),
            "a model's answer",
        ),
        (
            json!({"type": "error", "error": {"type": "a", "message": "no"}}),
            "`reqc why400`",
        ),
        (
            json!(json!({"model": "m", "messages": []}).to_string()),
            "written as JSON twice",
        ),
        (
            json!([{"role": "user", "content": "a"}]),
            "list of messages",
        ),
        (
            json!({"model": "gpt-3.5-turbo-instruct", "prompt": "a", "n": 2}),
            "text completions API",
        ),
        (
            json!({"type": "turn.prompt", "input": [{"type": "text", "text": "hi"}]}),
            "a log record",
        ),
    ] {
        let (code, out) = told("a.json", &text.to_string(), &[]);
        assert!(code == 1 && out.contains(expected), "{text}: {out}");
    }
}

#[test]
fn a_record_of_litellm_is_judged_as_its_request() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let record = json!({"id": "chatcmpl-1", "call_type": "acompletion", "model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}, call],
        "model_parameters": {"max_tokens": 5}, "response": {"id": "x"}, "status": "failure", "startTime": 1.0});
    let (code, out) = told("log.json", &record.to_string(), &[]);
    assert_eq!((code, out.matches("error[").count()), (1, 1), "{out}");
    assert!(out.contains("protocol/unanswered-call"), "{out}");
    let spend = json!([{"request_id": "r1", "model": "m", "messages": {}, "response": {},
        "proxy_server_request": {"model": "claude-sonnet-5", "max_tokens": 10, "messages": [{"role": "user", "content": ""}]}}]);
    let (code, out) = told("spend.json", &spend.to_string(), &[]);
    assert!(
        code == 1 && out.contains("1 anthropic-messages") && !out.contains("no-body"),
        "{out}"
    );
}

#[test]
fn a_capture_with_only_a_format_that_is_not_supported_says_so() {
    let url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20240620-v1/converse";
    let body = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let (code, out) = told("a.har", &har(&[(url, body)]), &[]);
    assert!(
        code == 1 && out.contains("error[lint/unsupported-format]"),
        "{out}"
    );
    assert!(out.contains("Converse") && !out.contains("--wire"), "{out}");
}

#[test]
fn what_is_no_text_gets_fitting_advice() {
    let folder = folder(&[("nul.json", "{\"a\": \u{0}1}")]);
    fs::write(folder.path().join("a.json.gz"), [0x1f, 0x8b, 8, 0, 0xff]).expect("written");
    let ran = reqc(folder.path(), &["a.json.gz", "--format", "short"], "");
    assert!(ran.out.contains("decompress it first"), "{}", ran.out);
    let (_, out) = told("py.json", "{'model': 'm', 'messages': [None]}", &[]);
    assert!(out.contains("`json.dumps`"), "{out}");
    let ran = reqc(folder.path(), &["nul.json", "--format", "short"], "");
    assert!(ran.out.contains("no NUL bytes"), "{}", ran.out);
}

#[cfg(unix)]
#[test]
fn pipes_that_a_shell_names_are_read() {
    let folder = folder(&[("body.json", RIGHT)]);
    let bash = |script: &str| {
        let output = Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(program::path())
            .current_dir(folder.path())
            .env("NO_COLOR", "1")
            .output()
            .expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text, err)
    };
    for script in [
        "$1 lint <(cat body.json)",
        "cat body.json | $1 lint /dev/stdin",
        "$1 lint /dev/stdin < body.json",
        "$1 compare body.json <(cat body.json)",
        "$1 compare <(cat body.json) <(cat body.json)",
        "$1 lint --session <(cat body.json)",
        "$1 context import <(cat body.json)",
    ] {
        let (code, out, err) = bash(script);
        assert_eq!(code, Some(0), "{script}: {out}{err}");
    }
    let (code, _, err) = bash("$1 compare /dev/stdin - < body.json");
    assert!(
        code == Some(2) && err.contains("only one of the two"),
        "{err}"
    );
    let (code, _, err) = bash("mkfifo pipe; $1 lint pipe");
    assert!(
        code == Some(2) && err.contains("not a regular file"),
        "{err}"
    );
    let (code, _, err) = bash("$1 lint /dev/fd/97");
    assert!(code == Some(2) && err.contains("/dev/fd/97"), "{err}");
}

#[test]
fn a_named_server_decides_the_rules() {
    const LAB: &str = "name = \"Lab\"\nclient_api = \"OpenAI Compatible\"\nurl = \"http://10.0.0.7:8000/v1\"\nserver = \"vLLM\"\n";
    let at = |host: &str, options: &[&str]| {
        let body =
            json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": []});
        let request = json!({"url": format!("{host}/v1/chat/completions"), "body": body});
        let request = request.to_string();
        let folder = folder(&[
            ("reqc.toml", ""),
            ("providers/lab.toml", LAB),
            ("r.json", &request),
        ]);
        let arguments = ["r.json", "--format", "short"];
        reqc(folder.path(), &[&arguments, options].concat(), "").out
    };
    let (lab, other) = ("http://10.0.0.7:8000", "http://10.0.0.8:8000");
    assert!(at(lab, &[]).contains("error[protocol/empty-content]: vLLM"));
    assert!(at(other, &[]).contains("warning[protocol/empty-content]: vLLM"));
    assert!(at(other, &["--server", "VLLM"]).contains("error[protocol/empty-content]: vLLM"));
    assert!(at(other, &["--server", "SGLang"]).contains("no findings"));
    assert!(at(lab, &["--server", "SGLang"]).contains("no findings"));
    // The operator of the URL's host does not apply, either.
    let nvidia = "https://integrate.api.nvidia.com";
    assert!(at(nvidia, &["--server", "vLLM"]).contains("error[protocol/empty-content]: vLLM"));
    // Naming an operator has the same effect as its URL.
    for host in ["https://x.openai.azure.com", lab, "http://localhost:8080"] {
        let named = at(host, &["--server", "Azure"]);
        assert_eq!(named, at("https://x.openai.azure.com", &[]), "{host}");
    }
}
