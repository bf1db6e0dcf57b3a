//! The first steps of a host: sessions in files, tools of a `tools.toml`, closures as hooks, and
//! answers without an event loop.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use reqc::conversation::Tool;
use reqc::runtime::hooks::{Hooks, ToolDecision, before_tool};
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Category, Event, Outcome, Session, StopReason};
use reqc::system::{OpenedRepository, OpenedTools, open_repository};
use serde_json::json;

use crate::fixture::history;
use crate::server::{Act, Server, calls, says, sse, status};

/// A repository on disk with more files and one agent, which uses this server.
pub(crate) fn repository(
    folder: &Path,
    server: &Server,
    more: &[(&str, &str)],
) -> OpenedRepository {
    let agent = "name = \"Helper\"\nextends = \"llama.cpp Chat Tools\"\nsystem_prompt = \"Help.\"\nsurroundings = \"\"\n";
    let instance = format!(
        "name = \"llama.cpp\"\nclient_api = \"llama.cpp\"\nurl = \"{}\"\n",
        server.url
    );
    let own = [
        ("reqc.toml", ""),
        ("agents/helper.toml", agent),
        ("providers/local.toml", instance.as_str()),
    ];
    for (path, text) in own.iter().chain(more) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }
    open_repository(folder).expect("it is there")
}

#[tokio::test]
async fn a_session_in_a_file_is_new_once_and_goes_on_then() {
    let server = Server::answering(vec![says("One."), says("Two.")]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &[]);
    let file = folder.path().join("chat.jsonl");

    let session = repository
        .session_in("Helper", &file)
        .expect("a new session");
    assert_eq!(session.send("1").text().await.expect("an answer"), "One.");
    let why = repository
        .session_in("Helper", &file)
        .err()
        .expect("it is in use")
        .to_string();
    assert!(
        why.contains("chat.jsonl") && why.contains("in use"),
        "{why}"
    );
    drop(session);

    let session = repository
        .session_in("Helper", &file)
        .expect("the same session");
    assert_eq!(history(&session), ["user: 1", "assistant: One."]);
    assert_eq!(session.send("2").text().await.expect("an answer"), "Two.");

    let why = repository
        .session_in("Helpr", &file)
        .err()
        .expect("there is none");
    assert_eq!(
        (why.category, why.detail.as_deref()),
        (Category::Config, Some("did you mean `Helper`?"))
    );
    fs::write(&file, "no session\n").expect("writable");
    drop(session);
    let why = repository
        .session_in("Helper", &file)
        .err()
        .expect("it is none")
        .to_string();
    assert!(
        why.contains("chat.jsonl` is not a session: line 1"),
        "{why}"
    );
}

#[tokio::test]
async fn a_session_that_is_dropped_in_the_middle_of_a_turn_goes_on_when_it_is_opened_again() {
    let half = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half an ans"}}]}"#;
    let hanging = sse(&[half]).into_iter().chain([Act::Hang]).collect();
    let server = Server::answering(vec![hanging, says("Whole.")]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (opened, file) = (
        repository(folder.path(), &server, &[]),
        folder.path().join("chat.jsonl"),
    );
    let session = opened.session_in("Helper", &file).expect("a new file");
    let mut run = session.send("Hi");
    while !matches!(run.next().await, Some(Event::Text(_))) {}
    let error = opened
        .session_in("Helper", &file)
        .err()
        .expect("it is in use");
    assert!(
        error
            .message
            .ends_with("is in use by another process or by another session of this process"),
        "{error}"
    );
    drop(run);
    session.idle().await;
    drop(session);

    let session = opened.session_in("Helper", &file).expect("it is free");
    assert_eq!(
        history(&session)[..2],
        ["user: Hi", "assistant: half an ans"]
    );
    assert_eq!(
        session.send("And?").text().await.expect("an answer"),
        "Whole."
    );
    assert!(
        history(&session)[2].contains("interrupted"),
        "{:?}",
        history(&session)
    );
    assert_eq!(session.history()[4].text(), "Whole.");
}

#[tokio::test]
async fn a_closure_decides_about_calls_and_events_need_no_loop() {
    let answers = vec![
        calls(&[("c1", "remove", r#"{"path":"/"}"#), ("c2", "now", "{}")]),
        says("Kept."),
    ];
    let server = Server::answering(answers).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = repository(folder.path(), &server, &[])
        .session("Helper")
        .expect("a session");
    let path =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let remove = Tool::new("remove", "Removes a file.", path);
    let now = Tool::new("now", "The time.", json!(null));
    session.set_tools(
        ToolSet::new()
            .with(FnTool::new(remove, |_, _| async {
                ToolOutput::text("gone")
            }))
            .with(FnTool::new(now, |_, _| async { ToolOutput::text("noon") })),
    );

    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let careful = before_tool(move |call| {
        seen.lock().expect("ours").push(call.name.to_string());
        if &*call.name == "remove" {
            ToolDecision::refuse("never")
        } else {
            ToolDecision::Run
        }
    });
    let (mut text, mut results) = (String::new(), Vec::new());
    // An `Arc` of hooks can also be used as hooks.
    let hooks: Arc<dyn Hooks> = Arc::new(careful);
    let outcome = session
        .with_hooks(hooks)
        .send("Go")
        .outcome_with(|event| match event {
            Event::Text(piece) => text.push_str(&piece),
            Event::ToolResult { name, output, .. } => {
                results.push(format!("{name}: {}", output.content));
            }
            Event::Done(_) => unreachable!("that is the outcome"),
            _ => {}
        });
    assert_eq!(outcome.await, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(*asked.lock().expect("ours"), ["remove", "now"]);
    assert_eq!(
        (text.as_str(), results),
        (
            "Kept.",
            vec!["remove: never".to_owned(), "now: noon".to_owned()]
        )
    );
}

#[tokio::test]
async fn tools_of_a_file_that_cannot_be_used_say_where_and_why() {
    let server = Server::answering(vec![]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &[]);
    let transport = repository.transport();
    let why = repository
        .start_tools(&transport)
        .await
        .err()
        .expect("there is none")
        .to_string();
    assert!(why.contains("tools.toml` cannot be read"), "{why}");

    let file = folder.path().join("tools.toml");
    let tool = "[[tool]]\nname = \"a\"\ndescription = \"A\"\ncommand = [\"./none\"]\n";
    fs::write(&file, tool).expect("writable");
    // A missing program is only a warning; its tool answers with an error.
    let opened = OpenedTools::open(&file).expect("it is there");
    assert_eq!(
        (opened.file.tools.len(), opened.findings[0].rule.code),
        (1, "tools/no-program")
    );
    let tools = repository
        .start_tools(&transport)
        .await
        .expect("no server has to start");
    assert_eq!(tools.set.names().collect::<Vec<_>>(), ["a"]);

    fs::write(&file, format!("{tool}timeout_seconds = 0\n")).expect("writable");
    let why = repository
        .start_tools(&transport)
        .await
        .err()
        .expect("it has a mistake");
    assert_eq!(
        (why.category, why.message.as_str()),
        (Category::Config, "the tools cannot be used")
    );
    let detail = why.detail.expect("where and why");
    assert!(
        detail.contains("tools.toml:5 `timeout_seconds`"),
        "{detail}"
    );
}

#[tokio::test]
async fn a_completion_is_one_call_too() {
    let answer = r#"{"content":"a + b","stop":true,"stop_type":"eos","tokens_evaluated":3,"tokens_predicted":4}"#;
    let server = Server::answering(vec![status(200, &[], answer)]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let opened = repository(folder.path(), &server, &[]);
    let gap = opened
        .completion("llama.cpp Infill", "fn sum(a: i32, b: i32) -> i32 { ", " }")
        .expect("it is bundled");
    assert_eq!(gap.proceed().text().await.expect("an answer"), "a + b");
    let body = server.received()[0].json();
    assert_eq!(
        (&body["input_prefix"], &body["input_suffix"]),
        (&json!("fn sum(a: i32, b: i32) -> i32 { "), &json!(" }"))
    );
    let error = opened
        .completion("Helper", "", "")
        .expect("it is there")
        .proceed()
        .text()
        .await
        .expect_err("a chat");
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::Config, "`Helper` is a chat agent")
    );
}

#[tokio::test]
async fn prompts_read_the_project_that_is_there() {
    let server = Server::answering(vec![says("Ok.")]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = "name = \"Reader\"\nextends = \"llama.cpp Chat Tools\"\nsurroundings = \"\"\n\
                 system_prompt = \"In ${PROJECT_DIR}: {{ read_file('${PROJECT_DIR}/RULES.md') }}\"\n";
    let opened = repository(
        folder.path(),
        &server,
        &[("agents/reader.toml", agent), ("RULES.md", "Use tabs.")],
    );
    opened
        .session("Reader")
        .expect("a session")
        .send("Hi")
        .text()
        .await
        .expect("an answer");
    let place = folder.path().canonicalize().expect("it is there");
    let wanted = format!("In {}: Use tabs.", place.display());
    assert_eq!(
        server.received()[0].json()["messages"][0]["content"],
        wanted
    );
}

/// The compiler warns about an unused run. Without `#[must_use]`, this expectation would be
/// unfulfilled.
#[expect(unused_must_use, reason = "that is what is tested")]
#[deny(unfulfilled_lint_expectations)]
fn _forgotten(session: &Session) {
    session.send("Hi");
    session.with_hooks(reqc::runtime::hooks::NoHooks).send("Hi");
}
