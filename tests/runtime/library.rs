//! What a host calls first: sessions in files, tools of a `tools.toml`, hooks that are closures, events without a loop.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use reqc::conversation::Tool;
use reqc::runtime::hooks::{Hooks, ToolDecision, before_tool};
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Category, Event, Outcome, StopReason};
use reqc::system::{OpenedRepository, OpenedTools, open_repository};
use serde_json::json;

use crate::fixture::history;
use crate::server::{Server, calls, says};

/// A repository on disk with one agent, whose server is this one, and more files.
pub(crate) fn repository(folder: &Path, server: &Server, more: &[(&str, &str)]) -> OpenedRepository {
    let agent =
        "name = \"Helper\"\nextends = \"llama.cpp Chat Tools\"\nsystem_prompt = \"Help.\"\nsurroundings = \"\"\n";
    let instance = format!("name = \"llama.cpp\"\nclient_api = \"llama.cpp\"\nurl = \"{}\"\n", server.url);
    let own = [("reqc.toml", ""), ("agents/helper.toml", agent), ("providers/local.toml", instance.as_str())];
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

    let session = repository.session_in("Helper", &file).expect("a new session");
    assert_eq!(session.send("1").text().await.expect("an answer"), "One.");
    let why = repository.session_in("Helper", &file).err().expect("it is in use").to_string();
    assert!(why.contains("chat.jsonl") && why.contains("in use"), "{why}");
    drop(session);

    let session = repository.session_in("Helper", &file).expect("the same session");
    assert_eq!(history(&session), ["user: 1", "assistant: One."]);
    assert_eq!(session.send("2").text().await.expect("an answer"), "Two.");

    let why = repository.session_in("Helpr", &file).err().expect("there is none");
    assert_eq!((why.category, why.detail.as_deref()), (Category::Config, Some("did you mean `Helper`?")));
    fs::write(&file, "no session\n").expect("writable");
    drop(session);
    let why = repository.session_in("Helper", &file).err().expect("it is none").to_string();
    assert!(why.contains("chat.jsonl` is not a session: line 1"), "{why}");
}

#[tokio::test]
async fn a_closure_decides_about_calls_and_events_need_no_loop() {
    let answers = vec![calls(&[("c1", "remove", r#"{"path":"/"}"#), ("c2", "now", "{}")]), says("Kept.")];
    let server = Server::answering(answers).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = repository(folder.path(), &server, &[]).session("Helper").expect("a session");
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let remove = Tool::new("remove", "Removes a file.", path);
    let now = Tool::new("now", "The time.", json!(null));
    session.set_tools(
        ToolSet::new()
            .with(FnTool::new(remove, |_, _| async { ToolOutput::text("gone") }))
            .with(FnTool::new(now, |_, _| async { ToolOutput::text("noon") })),
    );

    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let careful = before_tool(move |call| {
        seen.lock().expect("ours").push(call.name.to_string());
        if &*call.name == "remove" { ToolDecision::refuse("never") } else { ToolDecision::Run }
    });
    let (mut text, mut results) = (String::new(), Vec::new());
    // An `Arc` of hooks is hooks too.
    let hooks: Arc<dyn Hooks> = Arc::new(careful);
    let outcome = session.with_hooks(hooks).send("Go").outcome_with(|event| match event {
        Event::Text(piece) => text.push_str(&piece),
        Event::ToolResult { name, output, .. } => results.push(format!("{name}: {}", output.content)),
        Event::Done(_) => unreachable!("that is the outcome"),
        _ => {}
    });
    assert_eq!(outcome.await, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(*asked.lock().expect("ours"), ["remove", "now"]);
    assert_eq!((text.as_str(), results), ("Kept.", vec!["remove: never".to_owned(), "now: noon".to_owned()]));
}

#[tokio::test]
async fn tools_of_a_file_that_cannot_be_used_say_where_and_why() {
    let server = Server::answering(vec![]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &[]);
    let transport = repository.transport();
    let why = repository.start_tools(&transport).await.err().expect("there is none").to_string();
    assert!(why.contains("tools.toml` cannot be read"), "{why}");

    let file = folder.path().join("tools.toml");
    let tool = "[[tool]]\nname = \"a\"\ndescription = \"A\"\ncommand = [\"./none\"]\n";
    fs::write(&file, tool).expect("writable");
    // A program that is not there is a warning: its tool answers with an error.
    let opened = OpenedTools::open(&file).expect("it is there");
    assert_eq!((opened.file.tools.len(), opened.findings[0].rule.code), (1, "tools/no-program"));
    let tools = repository.start_tools(&transport).await.expect("nothing has to start");
    assert_eq!(tools.set.names().collect::<Vec<_>>(), ["a"]);

    fs::write(&file, format!("{tool}timeout_seconds = 0\n")).expect("writable");
    let why = repository.start_tools(&transport).await.err().expect("it has a mistake");
    assert_eq!((why.category, why.message.as_str()), (Category::Config, "the tools cannot be used"));
    let detail = why.detail.expect("where and why");
    assert!(detail.contains("tools.toml:5 `timeout_seconds`"), "{detail}");
}
