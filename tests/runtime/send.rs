//! `reqc send`, end to end.

use std::path::Path;
use std::process::Stdio;

use reqc::conversation::log::Log;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::fixture::{KEY, STATE};
use crate::program;
use crate::server::{Server, calls, says, sse, status};

/// The signature of a PNG and a few bytes: enough for readers, which check only the signature here.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000";

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A repository with one agent, which uses this server.
pub(crate) fn repository(url: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    write(folder.path(), "providers/scripted.toml", &provider);
    let tester = "name = \"Tester\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\n\
                  model = \"m\"\nenable_tools = true\nsurroundings = \"\"\n";
    write(folder.path(), "agents/tester.toml", tester);
    folder
}

fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(path, bytes).expect("written");
}

async fn reqc(root: &Path, arguments: &[&str], input: &str) -> Ran {
    run_with(root, &[&["send", "--trust"], arguments].concat(), input).await
}

/// Runs `reqc` with these arguments and without input.
pub(crate) async fn run(root: &Path, arguments: &[&str]) -> Ran {
    run_with(root, arguments, "").await
}

async fn run_with(root: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new(program::path());
    command
        .args(arguments)
        .current_dir(root)
        .env("SCRIPTED_KEY", KEY)
        .env_remove("HTTP_PROXY");
    command.env("XDG_STATE_HOME", STATE);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("piped");
    // Writing may fail: most commands do not read their input.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert!(
        !ran.out.contains(KEY) && !ran.err.contains(KEY),
        "no key is ever printed: {} {}",
        ran.out,
        ran.err
    );
    ran
}

#[tokio::test]
async fn an_answer_goes_to_standard_output() {
    let server = Server::start(|_, _| says("Grüße, 世界!")).await;
    let root = repository(&server.url);
    let ran = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "Grüße, 世界!\n", "")
    );
    let ran = reqc(root.path(), &["Tester", "-"], "from a pipe\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = server.received()[1].json();
    assert_eq!(
        body["messages"].as_array().unwrap().last().unwrap()["content"],
        "from a pipe\n"
    );
    assert_eq!(
        server.received()[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
}

#[tokio::test]
async fn a_dry_run_shows_what_is_sent() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    let dry = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--model", "other", "--dry-run"],
        "",
    )
    .await;
    let (head, body) = dry.out.split_once("\n\n").expect("head and body");
    assert_eq!(
        head.lines().next(),
        Some(format!("POST {}/v1/chat/completions", server.url).as_str())
    );
    assert!(
        head.contains("authorization: Bearer ${SCRIPTED_KEY}"),
        "{head}"
    );
    assert!(server.received().is_empty());
    let curl = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--model", "other", "--curl"],
        "",
    )
    .await;
    assert!(curl.out.contains("\"${SCRIPTED_KEY}\""), "{}", curl.out);
    reqc(root.path(), &["Tester", "-m", "Hi", "--model", "other"], "").await;
    let shown: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(server.received()[0].body, shown.to_string().into_bytes());
    assert_eq!(shown["model"], "other");
}

/// An agent whose bodies have an error that `reqc check` reports.
const WRONG: &str = "name = \"Wrong\"\nextends = \"Tester\"\n[body]\nmax_tokens = \"many\"\n";

#[tokio::test]
async fn what_check_refuses_is_not_sent() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    write(root.path(), "agents/wrong.toml", WRONG);
    let ran = reqc(root.path(), &["Wrong", "-m", "Hi", "--format", "short"], "").await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.starts_with("agents/wrong.toml:4:") && ran.out.contains("error[schema/"),
        "{}",
        ran.out
    );
    assert!(
        ran.err.contains("nothing was sent") && ran.err.contains("`--force`"),
        "{}",
        ran.err
    );
    assert!(server.received().is_empty());
    let dry = reqc(root.path(), &["Wrong", "-m", "Hi", "--dry-run"], "").await;
    assert!(
        dry.code == 1 && dry.out.contains("\"max_tokens\": \"many\""),
        "{}",
        dry.out
    );
    assert!(dry.err.contains("schema/"), "{}", dry.err);
    let ran = reqc(root.path(), &["Wrong", "-m", "Hi", "--force"], "").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "ok\n"), "{}", ran.err);
    assert_eq!(server.received()[0].json()["max_tokens"], "many");
}

/// An agent whose bodies are correct until they contain the results of a tool.
const WRONG_LATER: &str = "name = \"Later\"\nextends = \"Tester\"\n[body]\nmax_tokens = \"\"\"\n\
    {% if ctx.history | length > 1 %}\"many\"{% else %}7{% endif %}\n\"\"\"\n";

#[cfg(unix)]
#[tokio::test]
async fn what_check_refuses_after_results_is_not_sent() {
    let answers = || {
        vec![
            calls(&[("c1", "shout", r#"{"text":"hey"}"#)]),
            says("It shouted."),
        ]
    };
    let server = Server::answering(answers()).await;
    let root = repository(&server.url);
    write(root.path(), "agents/later.toml", WRONG_LATER);
    let tools = "[[tool]]\nname = \"shout\"\ndescription = \"Shouts.\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n\
                 [tool.schema]\ntype = \"object\"\nproperties.text = { type = \"string\" }\n";
    write(root.path(), "tools/tools.toml", tools);
    let arguments = [
        "Later",
        "-m",
        "Go",
        "--tools",
        "tools/tools.toml",
        "--save",
        "s.jsonl",
    ];
    let ran = reqc(root.path(), &arguments, "").await;
    assert_eq!(
        (ran.code, server.received().len()),
        (1, 1),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(
        ran.err.contains("agents/later.toml:5:") && ran.err.contains("schema/"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("was not sent") && ran.err.contains("`--force`"),
        "{}",
        ran.err
    );
    let saved = std::fs::read_to_string(root.path().join("s.jsonl")).expect("saved");
    assert!(
        saved.contains("HEY"),
        "results of tools that ran are kept: {saved}"
    );
    let server = Server::answering(answers()).await;
    let other = repository(&server.url);
    write(other.path(), "agents/later.toml", WRONG_LATER);
    write(other.path(), "tools/tools.toml", tools);
    let ran = reqc(
        other.path(),
        &[
            "Later",
            "-m",
            "Go",
            "--tools",
            "tools/tools.toml",
            "--force",
        ],
        "",
    )
    .await;
    assert_eq!(
        (ran.code, ran.out.as_str(), server.received().len()),
        (0, "It shouted.\n", 2),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn what_the_repository_allows_is_sent() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    write(root.path(), "agents/wrong.toml", WRONG);
    let allow =
        "[[allow]]\ncode = \"schema/*\"\nagent = \"Wrong\"\nreason = \"our server reads words\"\n";
    write(root.path(), "reqc.toml", allow);
    let ran = reqc(root.path(), &["Wrong", "-m", "Hi"], "").await;
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "ok\n", "")
    );
    let ran = reqc(
        root.path(),
        &["Wrong", "-m", "Hi", "--deny", "schema/*"],
        "",
    )
    .await;
    assert_eq!(
        ran.code, 0,
        "an entry of the repository comes first: {}{}",
        ran.out, ran.err
    );
}

#[tokio::test]
async fn images_are_recognised_by_content() {
    let server = Server::start(|_, _| says("A picture.")).await;
    let root = repository(&server.url);
    write(root.path(), "picture.txt", PNG);
    write(root.path(), "text.png", "no picture");
    let arguments = [
        "Tester",
        "-m",
        "What is this?",
        "--image",
        "picture.txt",
        "--image",
        "https://example.com/b.webp",
    ];
    let ran = reqc(root.path(), &arguments, "").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let content = server.received()[0].json()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()["content"]
        .clone();
    let urls: Vec<&str> = content
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["image_url"]["url"].as_str())
        .collect();
    assert!(
        urls[0].starts_with("data:image/png;base64,iVBORw0KGgo"),
        "{urls:?}"
    );
    assert_eq!(urls[1], "https://example.com/b.webp");
    let large = std::fs::File::create(root.path().join("large.png")).expect("made");
    large
        .set_len(15 * 1024 * 1024 + 1)
        .expect("a sparse file can be created");
    let data = format!("data:image/png;base64,{}", "A".repeat(4000));
    for image in ["ftp://example.com/a.png", "file:///a.png", &data] {
        let ran = reqc(root.path(), &["Tester", "--image", image], "").await;
        let told = "is neither a file nor an http URL\n  help: give a file, or a URL that begins with https://";
        assert!(
            ran.code == 2 && ran.err.contains(told) && ran.err.len() < 400,
            "{}",
            ran.err
        );
    }
    for (image, why) in [
        ("text.png", "is not a PNG"),
        ("nothing.png", "cannot be read"),
        ("agents", "cannot be read"),
        ("large.png", "is larger than 15 MiB"),
    ] {
        let ran = reqc(root.path(), &["Tester", "--image", image], "").await;
        assert_eq!(ran.code, 2);
        assert!(
            ran.err.contains(image) && ran.err.contains(why),
            "{}",
            ran.err
        );
    }
}

#[tokio::test]
async fn a_context_can_be_sent_by_name_and_as_a_file() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    let named = reqc(root.path(), &["Tester", "--context", "plain-turn"], "").await;
    assert_eq!(named.code, 0, "{}", named.err);
    let file = r#"{"name":"mine","why":"a test","kind":"chat","history":[{"role":"user","content":[{"type":"text","text":"from a file"}]}]}"#;
    write(root.path(), "mine.json", file);
    let ran = reqc(root.path(), &["Tester", "--context", "mine.json"], "").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        server.received()[1]
            .json()
            .to_string()
            .contains("from a file")
    );
    write(root.path(), "broken.json", "{\"name\": \"mine\",}");
    let ran = reqc(root.path(), &["Tester", "--context", "broken.json"], "").await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("context/syntax") && ran.out.contains("broken.json:1"),
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn a_session_is_saved_and_goes_on() {
    let server = Server::start(|number, _| says(&format!("Answer {number}."))).await;
    let root = repository(&server.url);
    let file = root.path().join("s.jsonl");
    assert_eq!(
        reqc(
            root.path(),
            &["Tester", "-m", "One", "--save", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    let again = reqc(
        root.path(),
        &["Tester", "-m", "One", "--save", "s.jsonl"],
        "",
    )
    .await;
    assert_eq!(again.code, 2, "an existing session is not overwritten");
    assert!(again.err.contains("already exists"), "{}", again.err);
    assert_eq!(
        reqc(
            root.path(),
            &["Tester", "-m", "Two", "--resume", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    let first = std::fs::read(&file).expect("written");
    assert_eq!(
        reqc(
            root.path(),
            &[
                "Tester", "-m", "Three", "--resume", "s.jsonl", "--save", "t.jsonl"
            ],
            ""
        )
        .await
        .code,
        0
    );
    assert_eq!(
        std::fs::read(&file).expect("written"),
        first,
        "the old file stays as it is"
    );
    let log = Log::parse(&std::fs::read(root.path().join("t.jsonl")).expect("written"))
        .expect("a session")
        .log
        .unwrap();
    assert_eq!(log.history().len(), 6);
    assert_eq!(server.received().len(), 3);
    write(root.path(), "bad.jsonl", "{\n");
    for (path, why) in [
        ("bad.jsonl", "line 1"),
        ("no.jsonl", "does not exist"),
        ("agents", "is a folder"),
    ] {
        let ran = reqc(root.path(), &["Tester", "-m", "x", "--resume", path], "").await;
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    let mut damaged: Vec<&[u8]> = first.split_inclusive(|byte| *byte == b'\n').collect();
    damaged[1] = b"{\"kind\":\"mess\n";
    std::fs::write(&file, damaged.concat()).expect("writable");
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "x", "--resume", "s.jsonl"],
        "",
    )
    .await;
    assert!(
        ran.err
            .contains("`s.jsonl` is a session with a damaged line: line 2: "),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("a copy of the part before line 2"),
        "{}",
        ran.err
    );
    assert_eq!(
        std::fs::read(&file).expect("written"),
        damaged.concat(),
        "it stays as it is"
    );
}

#[tokio::test]
async fn what_is_found_in_a_context_file_is_told_beside_the_answer() {
    let server = Server::answering(vec![says("Ok.")]).await;
    let root = repository(&server.url);
    let context = r#"{"name": "c", "why": "", "kind": "chat", "history": [{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "origin": "Scripted"}, {"type": "text", "text": "Hello."}]},
        {"role": "user", "content": "And now?"}]}"#;
    write(root.path(), "c.json", context);
    let ran = reqc(root.path(), &["Tester", "--context", "c.json"], "").await;
    assert_eq!((ran.code, ran.out.trim()), (0, "Ok."), "{}", ran.err);
    assert!(ran.err.contains("context/unknown-origin"), "{}", ran.err);
    assert!(
        ran.err.contains("`Scripted` is a provider instance"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn a_session_keeps_the_system_prompt_that_it_began_with() {
    let server = Server::start(|number, _| says(&format!("Answer {number}."))).await;
    let root = repository(&server.url);
    let reader = "name = \"Reader\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n\
                  system_prompt = '{{ read_file(\"${PROJECT_DIR}/NOTES.md\") }}'\n";
    write(root.path(), "agents/reader.toml", reader);
    write(root.path(), "NOTES.md", "The first notes.");
    assert_eq!(
        reqc(
            root.path(),
            &["Reader", "-m", "One", "--save", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    write(root.path(), "NOTES.md", "The second notes.");
    let dry = reqc(
        root.path(),
        &["Reader", "-m", "Two", "--resume", "s.jsonl", "--dry-run"],
        "",
    )
    .await;
    assert!(
        dry.out.contains("The first notes.") && !dry.out.contains("The second notes."),
        "{}",
        dry.out
    );
    assert_eq!(
        reqc(
            root.path(),
            &["Reader", "-m", "Two", "--resume", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    let prompts: Vec<Value> = server
        .received()
        .iter()
        .map(|it| it.json()["messages"][0].clone())
        .collect();
    assert_eq!(prompts[0], prompts[1]);
    // Another agent sends its own system prompt.
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Three", "--resume", "s.jsonl"],
        "",
    )
    .await;
    assert!(
        ran.code == 0
            && ran
                .err
                .contains("the system prompt and the tools were renewed"),
        "{}",
        ran.err
    );
    assert_ne!(server.received()[2].json()["messages"][0], prompts[0]);
}

/// Messages that were sent stay the same; changes in the project are sent with the next turn.
#[tokio::test]
async fn a_session_goes_on_in_a_project_that_changed() {
    let server = Server::start(|number, _| says(&format!("Answer {number}."))).await;
    let root = repository(&server.url);
    let teller = "name = \"Teller\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n";
    write(root.path(), "agents/teller.toml", teller);
    write(root.path(), "AGENTS.md", "- The first rule.\n");
    assert_eq!(
        reqc(
            root.path(),
            &["Teller", "-m", "One", "--save", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    assert_eq!(
        reqc(
            root.path(),
            &["Teller", "-m", "Two", "--resume", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    write(root.path(), "AGENTS.md", "- The second rule.\n");
    assert_eq!(
        reqc(
            root.path(),
            &["Teller", "-m", "Three", "--resume", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    let bodies: Vec<Value> = server
        .received()
        .iter()
        .map(super::server::Received::json)
        .collect();
    let messages = |body: usize| {
        bodies[body]["messages"]
            .as_array()
            .expect("messages")
            .clone()
    };
    for body in 0..2 {
        let (before, after) = (messages(body), messages(body + 1));
        assert_eq!(
            after[..before.len()],
            before[..],
            "request {} is a prefix of the next",
            body + 1
        );
    }
    let says = |body: usize, text: &str| {
        messages(body)
            .iter()
            .filter(|message| message["content"].to_string().contains(text))
            .count()
    };
    assert_eq!(
        (
            says(1, "The first rule."),
            says(2, "The first rule."),
            says(2, "The second rule.")
        ),
        (1, 1, 1)
    );
}

/// The folder given with `-C` is the project, as if the command was started there.
#[tokio::test]
async fn a_named_folder_is_the_project() {
    let server = Server::start(|_, _| says("Hi.")).await;
    let root = repository(&server.url);
    let teller = "name = \"Teller\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n";
    write(root.path(), "agents/teller.toml", teller);
    write(
        root.path(),
        "AGENTS.md",
        "- The rule of the named folder.\n",
    );
    write(
        root.path(),
        "elsewhere/AGENTS.md",
        "- The rule of where the caller stands.\n",
    );
    let ran = reqc(
        &root.path().join("elsewhere"),
        &["Teller", "-m", "One", "-C", ".."],
        "",
    )
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = server.received()[0].json().to_string();
    assert!(
        body.contains("The rule of the named folder.") && !body.contains("where the caller stands"),
        "{body}"
    );
}

#[tokio::test]
async fn results_for_programs_are_json() {
    let server = Server::start(|_, _| says("Hi.")).await;
    let root = repository(&server.url);
    let ran = reqc(root.path(), &["Tester", "-m", "Hi", "--format", "json"], "").await;
    let result: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(
        (&result["text"], &result["outcome"]["state"]),
        (&"Hi.".into(), &"finished".into())
    );
    assert_eq!(result["usage"]["input"], 10);
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--format", "events"],
        "",
    )
    .await;
    let events: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("one event a line"))
        .collect();
    assert_eq!(
        (&events[0]["event"], &events[0]["text"]),
        (&"message".into(), &"Hi".into())
    );
    assert_eq!(events[1]["event"], "turn_start");
    assert_eq!(events.last().unwrap()["event"], "done");
}

#[tokio::test]
async fn failures_say_what_the_provider_said() {
    let refused = status(
        400,
        &[],
        r#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#,
    );
    let half = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half"}}]}"#;
    let server = Server::answering(vec![refused, sse(&[half])]).await;
    let root = repository(&server.url);
    let ran = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.starts_with("error: validation: ") && ran.err.contains("no such model"),
        "{}",
        ran.err
    );
    let ran = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
    assert_eq!((ran.code, ran.out.as_str()), (2, "half\n"));
    assert!(ran.err.starts_with("error: network: "), "{}", ran.err);
}

#[tokio::test]
async fn an_answer_without_text_is_told() {
    let call = calls(&[("c1", "look", "{}")]);
    let server = Server::answering(vec![says(""), says(" \n"), call, says("")]).await;
    let root = repository(&server.url);
    for (out, told) in [
        (
            "",
            "the answer is complete but empty\nthe answer has no text (stop reason: end_turn)\n",
        ),
        (
            " \n",
            "the answer is complete but empty\nthe answer has no text (stop reason: end_turn)\n",
        ),
        (
            "",
            "look({})\nthe answer has no text (stop reason: tool_use)\n",
        ),
    ] {
        let ran = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (0, out, told)
        );
    }
    let ran = reqc(root.path(), &["Tester", "-m", "Hi", "-q"], "").await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[tokio::test]
async fn wrong_usage_is_told_before_anything_is_sent() {
    let server = Server::start(|_, _| says("never")).await;
    let root = repository(&server.url);
    write(
        root.path(),
        "agents/broken.toml",
        "name = \"Broken\"\nextends = \"Tester\"\n[body]\nx = \"{{ ctx.nope }}\"\n",
    );
    for (arguments, code, told) in [
        (&["Tester"][..], 2, "there is nothing to send"),
        (&["Testr", "-m", "x"], 2, "did you mean `Tester`?"),
        (&["Tester", "x"], 2, "unexpected argument `x`"),
        (
            &["Tester", "--context", "nope"],
            2,
            "no context is named `nope`",
        ),
        (
            &["Tester", "--context", "zzzz"],
            2,
            "`reqc contexts` shows every context",
        ),
        (
            &["Tester", "--context", "plain-trun"],
            2,
            "did you mean `plain-turn`?",
        ),
        (
            &["Tester", "-m", "x", "--tools", "nope.toml"],
            2,
            "`nope.toml` cannot be read",
        ),
        (
            &["OpenAI Compatible Chat", "-m", "x"],
            2,
            "no model for `OpenAI Compatible Chat`",
        ),
        (&["Broken", "-m", "x"], 1, "agents/broken.toml:4"),
    ] {
        let ran = reqc(root.path(), arguments, "").await;
        let all = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, code, "{arguments:?}: {all}");
        assert!(all.contains(told), "{arguments:?}: {all}");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_and_plain_http_with_a_key_warns() {
    let proxy = Server::start(|_, _| says("Through a proxy.")).await;
    let root = repository("http://llm.example");
    let mut command = Command::new(program::path());
    command
        .args(["send", "--trust", "Tester", "-m", "Hi"])
        .current_dir(root.path())
        .env("SCRIPTED_KEY", KEY);
    command.env("XDG_STATE_HOME", STATE);
    let output = command
        .env("HTTP_PROXY", &proxy.url)
        .env("NO_PROXY", "")
        .output()
        .await
        .expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Through a proxy.\n"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("the key is sent unencrypted to http://llm.example/v1/chat/completions"),
        "{told}"
    );
    assert!(
        proxy.received()[0]
            .target
            .starts_with("http://llm.example/")
    );
}

#[tokio::test]
async fn settings_with_errors_are_reported_and_nothing_is_sent() {
    let server = Server::start(|_, _| says("never")).await;
    let broken_key = format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{}/v1\"\napi_key_ref = \"env:\"\n",
        server.url
    );
    for (path, text) in [
        ("providers/scripted.toml", broken_key.as_str()),
        ("models.toml", "Tester = 5\n"),
        ("models.toml", "Tester = \n"),
    ] {
        let root = repository(&server.url);
        write(root.path(), path, text);
        let ran = reqc(
            root.path(),
            &["Tester", "-m", "Hi", "--format", "short"],
            "",
        )
        .await;
        assert_eq!(ran.code, 1, "{path}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(path), "{}", ran.out);
    }
    assert!(server.received().is_empty());
}

/// Control characters and workflow commands in an answer are made visible and have no effect, also
/// in a log of CI. Programs get the answer unchanged.
#[tokio::test]
async fn answers_command_neither_terminal_nor_workflow() {
    let hostile = "a\u{1b}[2J\n::add-mask::b\n\t##[error]c\u{202e}\u{200b}d";
    let server = Server::start(move |_, _| says(hostile)).await;
    let root = repository(&server.url);
    let ran = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
    assert_eq!(
        ran.out,
        "a␛[2J\n:\\:add-mask::b\n\t##\\[error]c<U+202E><U+200B>d\n"
    );
    let ran = reqc(root.path(), &["Tester", "-m", "Hi", "--format", "json"], "").await;
    assert!(
        !ran.out.contains(['\u{202e}', '\u{200b}']) && !ran.out.contains("##["),
        "{}",
        ran.out
    );
    let result: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(result["text"], hostile);
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--format", "events"],
        "",
    )
    .await;
    assert!(
        !ran.out.contains(['\u{202e}', '\u{200b}']) && !ran.out.contains("##["),
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn nothing_is_no_message_and_no_model() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    for (arguments, input) in [
        (&["Tester", "-"][..], ""),
        (&["Tester", "-"], " \n"),
        (&["Tester", "-m", ""], ""),
    ] {
        let ran = reqc(root.path(), arguments, input).await;
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("there is nothing to send"), "{}", ran.err);
    }
    assert!(server.received().is_empty());
    reqc(root.path(), &["Tester", "-m", "Hi", "--model", ""], "").await;
    assert_eq!(server.received()[0].json()["model"], "m");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    for arguments in [
        &["send", "--trust", "Tester", "-m", "Hi", "--format", "json"][..],
        &["list"],
        &["check"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        let mut command = Command::new(program::path());
        command
            .args(arguments)
            .current_dir(root.path())
            .env("SCRIPTED_KEY", KEY)
            .stdout(full);
        command.env("XDG_STATE_HOME", STATE);
        let child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = child.wait_with_output().await.expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"),
            "{arguments:?}"
        );
    }
}

#[tokio::test]
async fn this_machine_is_reached_without_a_proxy_and_without_certificates() {
    let (server, proxy) = (
        Server::start(|_, _| says("Direct.")).await,
        Server::start(|_, _| says("No.")).await,
    );
    let root = repository(&server.url);
    let mut command = Command::new(program::path());
    command
        .args(["send", "--trust", "Tester", "-m", "Hi"])
        .current_dir(root.path())
        .env("SCRIPTED_KEY", KEY);
    command.env("XDG_STATE_HOME", STATE);
    command
        .env("HTTP_PROXY", &proxy.url)
        .env("NO_PROXY", "")
        .env("SSL_CERT_FILE", root.path().join("none.pem"));
    let output = command.output().await.expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Direct.\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(proxy.received().is_empty());
}

#[tokio::test]
async fn a_dry_run_of_a_resumed_session_shows_what_is_sent_and_changes_nothing() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    let unfinished = "{\"kind\":\"session\",\"version\":1,\"agent\":\"Tester\"}\n\
                      {\"kind\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"One\"}]}\n{\"kin";
    write(root.path(), "s.jsonl", unfinished);
    let dry = reqc(
        root.path(),
        &["Tester", "-m", "Two", "--resume", "s.jsonl", "--dry-run"],
        "",
    )
    .await;
    assert_eq!(
        std::fs::read_to_string(root.path().join("s.jsonl")).expect("written"),
        unfinished
    );
    let (_, body) = dry.out.split_once("\n\n").expect("head and body");
    let shown: Value = serde_json::from_str(body).expect("JSON");
    assert!(shown.to_string().contains("was interrupted"), "{shown}");
    assert_eq!(
        reqc(
            root.path(),
            &["Tester", "-m", "Two", "--resume", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    assert_eq!(server.received()[0].body, shown.to_string().into_bytes());
}

#[tokio::test]
async fn resuming_without_a_message_goes_on_only_where_something_is_missing() {
    let half = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half"}}]}"#;
    let server = Server::answering(vec![sse(&[half]), says("Whole.")]).await;
    let root = repository(&server.url);
    assert_ne!(
        reqc(
            root.path(),
            &["Tester", "-m", "One", "--save", "s.jsonl"],
            ""
        )
        .await
        .code,
        0
    );
    assert_eq!(
        reqc(root.path(), &["Tester", "--resume", "s.jsonl"], "")
            .await
            .code,
        0
    );
    let sent = server.received()[1].json();
    let last = sent["messages"]
        .as_array()
        .expect("messages")
        .last()
        .expect("one")
        .to_string();
    assert!(
        last.contains("was interrupted") && !last.contains("assistant"),
        "{sent}"
    );
    let again = reqc(root.path(), &["Tester", "--resume", "s.jsonl"], "").await;
    assert!(
        again.code == 2 && again.err.contains("nothing to answer"),
        "{}",
        again.err
    );
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn findings_in_tools_toml_name_the_file_as_it_was_given() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    write(
        root.path(),
        "my/tools.toml",
        "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"./none\"]\n",
    );
    write(
        root.path(),
        "my/misspelt.toml",
        "[[tool]]\nname = \"t\"\ndescription = \"d\"\nevn = 1\n",
    );
    write(root.path(), "my/wrong.toml", "[[tool]\n");
    for (given, place, code) in [
        ("my/wrong.toml", "my/wrong.toml:1:", 1),
        ("./my/wrong.toml", "./my/wrong.toml:1:", 1),
        ("my/tools.toml", "[my/tools.toml:4:12]", 0),
        ("my/misspelt.toml", "[my/misspelt.toml:4:1]", 1),
    ] {
        let ran = reqc(root.path(), &["Tester", "-m", "Hi", "--tools", given], "").await;
        let all = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, code, "{all}");
        assert!(all.contains(place) && !all.contains("0 agents"), "{all}");
    }
    assert_eq!(server.received().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_tool_that_is_not_executable_is_told() {
    let server = Server::answering(vec![says("ok")]).await;
    let root = repository(&server.url);
    write(
        root.path(),
        "tools.toml",
        "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"./t.sh\"]\n",
    );
    write(root.path(), "t.sh", "#!/bin/sh\n");
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Go", "--tools", "tools.toml"],
        "",
    )
    .await;
    assert_eq!(ran.out, "ok\n");
    assert!(
        ran.err.contains("tools/no-program") && ran.err.contains("`./t.sh` is not executable"),
        "{}",
        ran.err
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_tool_that_says_nothing_is_told() {
    let server = Server::answering(vec![calls(&[("c1", "quiet", "{}")]), says("Done.")]).await;
    let root = repository(&server.url);
    write(
        root.path(),
        "tools.toml",
        "[[tool]]\nname = \"quiet\"\ndescription = \"d\"\ncommand = [\"true\"]\n",
    );
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Go", "--tools", "tools.toml"],
        "",
    )
    .await;
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("Done.\n", "quiet({})\nquiet returned: (no output)\n")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn programs_of_tools_toml_run_in_a_loop() {
    let server = Server::answering(vec![
        calls(&[("c1", "shout", r#"{"text":"hey"}"#)]),
        says("It shouted."),
    ])
    .await;
    let root = repository(&server.url);
    let tools = "[[tool]]\nname = \"shout\"\ndescription = \"Shouts.\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n\
                 [tool.schema]\ntype = \"object\"\nproperties.text = { type = \"string\" }\n";
    write(root.path(), "tools/tools.toml", tools);
    let ran = reqc(
        root.path(),
        &["Tester", "-m", "Go", "--tools", "tools/tools.toml"],
        "",
    )
    .await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "It shouted.\n"));
    assert!(
        ran.err.contains("shout({\"text\":\"hey\"})") && ran.err.contains("shout returned:"),
        "{}",
        ran.err
    );
    let messages = server.received()[1].json()["messages"].clone();
    assert_eq!(
        messages.as_array().unwrap().last().unwrap()["content"],
        "{\"TEXT\":\"HEY\"}"
    );
    assert_eq!(
        server.received()[0].json()["tools"][0]["function"]["name"],
        "shout"
    );
}

/// Adds an agent that compresses chats to the repository.
fn with_compression(root: &Path) {
    let presser = "name = \"Presser\"\nextends = \"OpenAI Compatible Chat Compression\"\nprovider_instance = \"Scripted\"\n\
                   model = \"m\"\n";
    write(root, "agents/presser.toml", presser);
    write(
        root,
        "rosters.toml",
        "[[roster]]\nname = \"chat_compression\"\nagents = [\"Presser\"]\n",
    );
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn compress_puts_a_summary_in_the_place_of_a_session() {
    let server = Server::start(|_, request| {
        let body = request.json().to_string();
        says(if body.contains("Compress the conversation so far.") {
            "A summary."
        } else {
            "An answer."
        })
    })
    .await;
    let root = repository(&server.url);
    let nobody = reqc(
        root.path(),
        &["Tester", "-m", "One?", "--save", "chat.jsonl", "--compress"],
        "",
    )
    .await;
    assert_eq!(nobody.code, 2, "{}", nobody.err);
    with_compression(root.path());
    let nothing = reqc(root.path(), &["Tester", "-m", "One?", "--compress"], "").await;
    assert_eq!(nothing.code, 2, "{}", nothing.err);
    assert!(
        nothing.err.contains("there is nothing to compress"),
        "{}",
        nothing.err
    );
    assert!(server.received().is_empty());
    reqc(
        root.path(),
        &["Tester", "-m", "One?", "--save", "chat.jsonl"],
        "",
    )
    .await;

    let ran = reqc(
        root.path(),
        &["Tester", "--resume", "chat.jsonl", "--compress"],
        "",
    )
    .await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "A summary.\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("2 messages were replaced with a summary"),
        "{}",
        ran.err
    );
    reqc(
        root.path(),
        &["Tester", "-m", "Two?", "--resume", "chat.jsonl"],
        "",
    )
    .await;
    let arguments = [
        "Tester",
        "-m",
        "Three?",
        "--resume",
        "chat.jsonl",
        "--compress",
        "--format",
        "events",
    ];
    let ran = reqc(root.path(), &arguments, "").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let events: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        (&events[0]["event"], &events[0]["messages"]),
        (&"compressed".into(), &3.into())
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| event["event"] == "done")
            .count(),
        1
    );
    let last = server
        .received()
        .last()
        .expect("a request")
        .json()
        .to_string();
    assert!(
        last.contains("A summary.") && last.contains("Three?") && !last.contains("Two?"),
        "{last}"
    );
    let log = std::fs::read(root.path().join("chat.jsonl")).expect("it is there");
    let loaded = Log::parse(&log).expect("it loads").log.expect("a header");
    assert_eq!(
        (loaded.to_text().as_bytes(), loaded.history().len()),
        (log.as_slice(), 3)
    );
    assert!(
        loaded.to_text().contains("Two?"),
        "the log keeps the original messages"
    );
    let again = reqc(
        root.path(),
        &[
            "Tester",
            "--resume",
            "chat.jsonl",
            "--compress",
            "--dry-run",
        ],
        "",
    )
    .await;
    assert_eq!(again.code, 2, "{}", again.err);
}

#[tokio::test]
async fn compress_also_asks_before_it_sends_to_a_server_of_the_repository() {
    let (server, other) = (
        Server::start(|_, _| says("Yes.")).await,
        Server::start(|_, _| says("A summary.")).await,
    );
    let root = repository(&server.url);
    with_compression(root.path());
    let provider = format!(
        "name = \"Other\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{}/v1\"\n",
        other.url
    );
    write(root.path(), "providers/other.toml", provider);
    let presser = "name = \"Presser\"\nextends = \"OpenAI Compatible Chat Compression\"\nprovider_instance = \"Other\"\n\
                   model = \"m\"\n";
    write(root.path(), "agents/presser.toml", presser);
    reqc(
        root.path(),
        &["Tester", "-m", "One?", "--save", "chat.jsonl"],
        "",
    )
    .await;
    let mut command = Command::new(program::path());
    command
        .args(["send", "Tester", "--resume", "chat.jsonl", "--compress"])
        .current_dir(root.path());
    command
        .env("SCRIPTED_KEY", KEY)
        .env("CI", "1")
        .env("XDG_STATE_HOME", root.path().join("state"));
    let output = command
        .stdin(Stdio::null())
        .output()
        .await
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && told.contains(&other.url),
        "{told}"
    );
    assert!(other.received().is_empty());
    let ran = reqc(
        root.path(),
        &["Tester", "--resume", "chat.jsonl", "--compress"],
        "",
    )
    .await;
    assert_eq!(
        (ran.code, ran.out.as_str(), other.received().len()),
        (0, "A summary.\n", 1),
        "{}",
        ran.err
    );
}

/// The answer is cleaned so that it can be written to a file; the session keeps the original.
#[tokio::test]
async fn an_answer_is_cleaned_if_asked_for() {
    let server = Server::start(|_, _| says("Here it is:\n```rust\nf();\n```\n")).await;
    let root = repository(&server.url);
    let plain = reqc(root.path(), &["Tester", "-m", "Hi"], "").await;
    assert_eq!(plain.out, "Here it is:\n```rust\nf();\n```\n");
    let cleaned = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--clean", "--save", "s.jsonl"],
        "",
    )
    .await;
    assert_eq!(cleaned.out, "f();\n", "{}", cleaned.err);
    let log = std::fs::read_to_string(root.path().join("s.jsonl")).expect("it is saved");
    assert!(log.contains("Here it is"), "{log}");
    let json = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--clean", "--format", "json"],
        "",
    )
    .await;
    let result: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(result["text"], "f();");
    let events = reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--clean", "--format", "events"],
        "",
    )
    .await;
    let texts: Vec<Value> = events
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let texts: Vec<&Value> = texts
        .iter()
        .filter(|event| event["event"] == "text")
        .map(|it| &it["text"])
        .collect();
    assert_eq!(texts, ["f();"]);
}

/// A log that was cut inside its first line can be started again.
#[tokio::test]
async fn a_log_cut_inside_its_first_line_is_begun_anew() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    reqc(
        root.path(),
        &["Tester", "-m", "Hi", "--save", "whole.jsonl"],
        "",
    )
    .await;
    let whole = std::fs::read(root.path().join("whole.jsonl")).expect("it was saved");
    let header = whole.iter().position(|byte| *byte == b'\n').expect("lines");
    for cut in [0, 1, 5, header / 2, header] {
        write(root.path(), "cut.jsonl", &whole[..cut]);
        let refused = reqc(
            root.path(),
            &["Tester", "-m", "Hi", "--resume", "cut.jsonl"],
            "",
        )
        .await;
        let help = "use `--save cut.jsonl`";
        assert!(
            refused.code == 2 && refused.err.contains(help),
            "{cut}: {}",
            refused.err
        );
        let begun = reqc(
            root.path(),
            &["Tester", "-m", "Hi", "--save", "cut.jsonl"],
            "",
        )
        .await;
        assert_eq!(begun.code, 0, "{cut}: {}", begun.err);
        let log = std::fs::read(root.path().join("cut.jsonl")).expect("it is there");
        assert_eq!(Log::parse(&log).expect("a log").tail_bytes, 0, "{cut}");
        let resumed = reqc(
            root.path(),
            &["Tester", "-m", "And?", "--resume", "cut.jsonl"],
            "",
        )
        .await;
        assert_eq!(resumed.code, 0, "{cut}: {}", resumed.err);
    }
    for other in [
        "notes without a line end",
        "{\"kind\":\"other\"",
        "a line\n",
    ] {
        write(root.path(), "notes", other);
        let refused = reqc(root.path(), &["Tester", "-m", "Hi", "--save", "notes"], "").await;
        assert!(
            refused.code == 2 && refused.err.contains("already exists"),
            "{other}: {}",
            refused.err
        );
        assert_eq!(
            std::fs::read_to_string(root.path().join("notes")).expect("it is there"),
            other
        );
    }
}

/// A case in which nothing is sent.
struct UnsentCase {
    arguments: &'static [&'static str],
    /// A part of the outcome's message or detail.
    says: &'static str,
    code: i32,
}

const fn unsent(arguments: &'static [&'static str], says: &'static str, code: i32) -> UnsentCase {
    UnsentCase {
        arguments,
        says,
        code,
    }
}

/// Programs read one JSON object a line. The last one is the outcome, even if nothing is sent.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
async fn nothing_sent_is_an_outcome_too() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    let extends = "extends = \"Tester\"\n";
    write(
        root.path(),
        "agents/wrong.toml",
        format!("name = \"Wrong\"\n{extends}[body]\ntemperature = \"hot\"\n"),
    );
    write(
        root.path(),
        "agents/broken.toml",
        format!("name = \"Broken\"\n{extends}[body]\nx = \"{{{{ ctx.nothing }}}}\"\n"),
    );
    write(
        root.path(),
        "agents/lost.toml",
        "name = \"Lost\"\nextends = \"Nobody\"\n",
    );
    write(
        root.path(),
        "agents/keyless.toml",
        format!("name = \"Keyless\"\n{extends}provider_instance = \"Keyless\"\n"),
    );
    let keyless = "name = \"Keyless\"\nclient_api = \"OpenAI Compatible\"\nurl = \"http://127.0.0.1:9\"\n\
                   api_key_ref = \"env:REQC_NOT_SET\"\n";
    write(root.path(), "providers/keyless.toml", keyless);
    write(root.path(), "bad_tools.toml", "[[tool]]\nnonsense = 1\n");
    write(
        root.path(),
        "server.toml",
        "[[server]]\nname = \"s\"\ncommand = [\"/nowhere/at/all\"]\n",
    );
    write(root.path(), "log.jsonl", "no log\n");
    let cases = [
        unsent(&["Nobody", "-m", "Hi"], "Nobody", 2),
        unsent(&["Wrong", "-m", "Hi"], "errors", 1),
        unsent(&["Broken", "-m", "Hi"], "errors", 1),
        unsent(&["Lost", "-m", "Hi"], "Nobody", 1),
        unsent(&["Keyless", "-m", "Hi"], "REQC_NOT_SET", 2),
        unsent(&["Tester"], "nothing to send", 2),
        unsent(
            &["Tester", "-m", "Hi", "--tools", "bad_tools.toml"],
            "errors",
            1,
        ),
        unsent(&["Tester", "-m", "Hi", "--tools", "server.toml"], "s", 2),
        unsent(
            &["Tester", "-m", "Hi", "--tools", "missing.toml"],
            "missing.toml",
            2,
        ),
        unsent(
            &["Tester", "-m", "Hi", "--image", "missing.png"],
            "missing.png",
            2,
        ),
        unsent(&["Tester", "--resume", "missing.jsonl"], "missing.jsonl", 2),
        unsent(&["Tester", "--resume", "log.jsonl"], "log.jsonl", 2),
        unsent(
            &["Tester", "-m", "Hi", "--save", "log.jsonl"],
            "log.jsonl",
            2,
        ),
        unsent(
            &["Tester", "-m", "Hi", "--context", "missing"],
            "missing",
            2,
        ),
        unsent(&["Tester", "-m", "Hi", "--deny", "no/rule"], "no/rule", 2),
        unsent(&["Tester", "-m", "Hi", "-C", "missing"], "missing", 2),
        unsent(
            &["Tester", "-m", "Hi", "--format", "sarif=x"],
            "this command",
            2,
        ),
        unsent(&["Tester", "what"], "what", 2),
        unsent(&["Tester", "--no-such-option"], "command line", 2),
        unsent(
            &["Tester", "-m", "Hi", "--compress", "--curl"],
            "command line",
            2,
        ),
    ];
    for UnsentCase {
        arguments,
        says,
        code,
    } in cases
    {
        for format in ["events", "json"] {
            let ran = reqc(
                root.path(),
                &[arguments, &["--format", format]].concat(),
                "",
            )
            .await;
            let text = if format == "json" {
                ran.out.replace('\n', " ")
            } else {
                ran.out.clone()
            };
            let objects: Vec<Value> = text
                .lines()
                .map(|line| {
                    serde_json::from_str(line)
                        .unwrap_or_else(|_| panic!("{arguments:?} {format}: {}", ran.out))
                })
                .collect();
            let last = objects
                .last()
                .unwrap_or_else(|| panic!("{arguments:?} {format}: no outcome; {}", ran.err));
            let outcome = if format == "json" {
                &last["outcome"]
            } else {
                last
            };
            assert_eq!(outcome["state"], "failed", "{arguments:?} {format}: {last}");
            assert!(format == "json" || last["event"] == "done", "{last}");
            assert!(
                last.to_string().contains(says),
                "{arguments:?} {format}: {last}"
            );
            assert_eq!(
                ran.code, code,
                "{arguments:?} {format}: {}{}",
                ran.out, ran.err
            );
        }
    }
    assert!(server.received().is_empty());
}

/// The JSON objects of standard output: one a line, or a single one, depending on the format.
fn objects(ran: &Ran, format: &str) -> Vec<Value> {
    let parse = |text: &str| {
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{format}: {}{}", ran.out, ran.err))
    };
    match format {
        "events" => ran.out.lines().map(parse).collect(),
        _ => vec![parse(&ran.out)],
    }
}

/// A request that is only shown is also JSON for programs, followed by an outcome.
#[tokio::test]
async fn a_request_that_is_only_shown_is_an_object_with_an_outcome() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    write(
        root.path(),
        "agents/wrong.toml",
        "name = \"Wrong\"\nextends = \"Tester\"\n[body]\ntemperature = \"hot\"\n",
    );
    for (agent, more, state, code) in [
        ("Tester", None, "not_sent", 0),
        ("Wrong", None, "failed", 1),
        ("Wrong", Some("--force"), "not_sent", 0),
    ] {
        for (shown, format) in [
            ("--dry-run", "events"),
            ("--curl", "events"),
            ("--dry-run", "json"),
            ("--curl", "json"),
        ] {
            let arguments = [agent, "-m", "Hi\nthere", shown, "--format", format]
                .into_iter()
                .chain(more);
            let ran = reqc(root.path(), &arguments.collect::<Vec<_>>(), "").await;
            assert_eq!(ran.code, code, "{agent} {shown} {format}: {}", ran.err);
            let objects = objects(&ran, format);
            let (request, outcome) = match objects.as_slice() {
                [request, done] if format == "events" => {
                    assert_eq!(
                        (&request["event"], &done["event"]),
                        (&"request".into(), &"done".into())
                    );
                    (request, done)
                }
                [document] if format == "json" => (&document["request"], &document["outcome"]),
                others => panic!("{others:?}"),
            };
            assert_eq!(outcome["state"], state, "{agent} {shown} {format}");
            let findings = &objects.last().expect("one")["diagnostics"];
            assert_eq!(
                findings.as_array().is_some_and(|all| !all.is_empty()),
                state == "failed",
                "{findings}"
            );
            assert_eq!(
                request["body"]["messages"][1]["content"], "Hi\nthere",
                "{request}"
            );
            assert_eq!(
                (&request["method"], &request["wire"]),
                (&"POST".into(), &"openai-chat".into())
            );
            assert_eq!(
                request["headers"]["authorization"], "Bearer ${SCRIPTED_KEY}",
                "{request}"
            );
            let curl = request["curl"].as_str();
            assert_eq!(
                curl.is_some_and(|text| text.starts_with("curl -sS")),
                shown == "--curl",
                "{request}"
            );
        }
    }
    assert!(server.received().is_empty());
}
