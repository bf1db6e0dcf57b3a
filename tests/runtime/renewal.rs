//! The system prompt and the tools of a session stay the same in every request until the host
//! renews them.

use std::path::Path;
use std::sync::Arc;

use reqc::compile::Compiler;
use reqc::conversation::log::Log;
use reqc::conversation::{Block, Conversation, Item, Message, Role, SystemLayer, Task, Tool};
use reqc::repo::LoadOptions;
use reqc::runtime::compression::Compression;
use reqc::runtime::pool::{PoolOptions, SessionPool};
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Event, Outcome, Session, SessionStart};
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryJournal, MemoryWorld};
use serde_json::json;

use crate::fixture::{environment, events, text, transport};
use crate::server::{Act, Server, status};

const TESTER: &str = r#"
name = "Tester"
extends = "Claude Chat Thinking"
provider_instance = "Scripted"
model = "m"
surroundings = ""
enable_tools = true
system_prompt = '{{ read_file("${PROJECT_DIR}/NOTES.md") }}'
"#;

/// An answer with thinking.
fn thinks(_: usize) -> Vec<Act> {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Yes."},
    ]);
    let answer = json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"});
    status(
        200,
        &[("content-type", "application/json")],
        &answer.to_string(),
    )
}

/// A session of an agent whose prompt reads the project's `NOTES.md`. It continues from the
/// journal.
fn session(
    url: &str,
    project: &Path,
    journal: &MemoryJournal,
    conversation: Conversation,
) -> Session {
    session_of(agent(url, project, TESTER), journal, conversation)
}

/// The agent `Tester`, defined by this profile.
fn agent(url: &str, project: &Path, profile: &str) -> Agent {
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"Claude\"\nurl = \"{url}\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let own = [
        ("providers/scripted.toml", provider.as_str()),
        ("agents/tester.toml", profile),
    ];
    let own = Arc::new(MemoryWorld::from_iter(own));
    let compiler = Compiler::load(own, Arc::new(Embedded::bundled()), LoadOptions::default());
    let mut environment = environment();
    environment.project = Arc::new(Disk::open(project).expect("a folder"));
    Agent::new(Arc::new(compiler), "Tester", environment).expect("it is there")
}

fn session_of(agent: Agent, journal: &MemoryJournal, conversation: Conversation) -> Session {
    Session::journaled(
        agent,
        transport(),
        start(journal, conversation),
        Box::new(journal.clone()),
    )
    .expect("it can be written")
}

fn start(journal: &MemoryJournal, conversation: Conversation) -> SessionStart {
    match Log::parse(&journal.bytes()).expect("a log").log {
        Some(log) => SessionStart::Resumed(log, conversation),
        None => SessionStart::New(conversation),
    }
}

fn write(project: &Path, notes: &str) {
    std::fs::write(project.join("NOTES.md"), notes).expect("written");
}

/// Sends a message. Returns whether system prompt and tools were renewed for it.
async fn send(session: &Session) -> bool {
    let (told, outcome) = events(session.send(text("Is it?"))).await;
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    told.iter()
        .filter(|event| **event == Event::Renewed)
        .count()
        == 1
}

/// The system prompt of the last request, and its number of thinking blocks.
fn last(server: &Server) -> (String, usize) {
    let body = server.received().last().expect("a request").json();
    let messages = body["messages"].as_array().expect("messages").iter();
    let blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    (
        body["system"].to_string(),
        blocks.filter(|block| block["type"] == "thinking").count(),
    )
}

fn tools(server: &Server) -> Vec<String> {
    let body = server.received().last().expect("a request").json();
    let names = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

fn one_tool(name: &str) -> ToolSet {
    let schema = serde_json::Map::from_iter([("type".to_owned(), json!("object"))]);
    let definition = Tool {
        name: name.into(),
        description: "Does it.".into(),
        schema,
    };
    ToolSet::new().with(FnTool::new(definition, |_, _| async {
        ToolOutput::text("done")
    }))
}

#[tokio::test]
async fn the_system_prompt_stays_as_it_was_first_sent_until_it_is_renewed() {
    let server = Server::start(|number, _| thinks(number)).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "The first notes.");
    let begun = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    assert!(!send(&begun).await);
    let (first, _) = last(&server);
    assert!(first.contains("The first notes."), "{first}");
    write(project.path(), "The second notes.");
    assert!(!send(&begun).await);
    assert_eq!(last(&server), (first.clone(), 1));
    let goes_on = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    assert!(!send(&goes_on).await);
    assert_eq!(
        last(&server),
        (first, 2),
        "the same bytes, also after a restart"
    );
    goes_on.renew();
    assert!(send(&goes_on).await);
    let (second, thinking) = last(&server);
    assert!(
        second.contains("The second notes.") && thinking == 0,
        "{second}, {thinking}"
    );
    write(project.path(), "The third notes.");
    assert!(!send(&goes_on).await);
    assert_eq!(
        last(&server),
        (second.clone(), 1),
        "newer thinking is not removed"
    );
    let again = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    assert!(!send(&again).await);
    assert_eq!(last(&server), (second, 2));
}

#[tokio::test]
async fn other_tools_and_layers_renew_and_the_same_ones_do_not() {
    let server = Server::start(|number, _| thinks(number)).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "Notes.");
    let layer = |text: &str| SystemLayer {
        name: "rules".into(),
        priority: 100,
        text: text.into(),
    };
    let begun = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    begun.set_tools(one_tool("look"));
    begun.set_layer(layer("Be brief."));
    assert!(
        !send(&begun).await,
        "the first request of a session is not a renewal"
    );
    let goes_on = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    assert!(!send(&goes_on).await);
    assert_eq!(
        (tools(&server), last(&server).1),
        (vec!["look".to_owned()], 1),
        "the session's first tools"
    );
    goes_on.set_tools(one_tool("look"));
    goes_on.set_layer(layer("Be brief."));
    assert!(!send(&goes_on).await, "nothing is other than it was");
    goes_on.set_layer(layer("Be thorough."));
    assert!(send(&goes_on).await);
    assert!(last(&server).0.contains("Be thorough.") && last(&server).1 == 0);
    goes_on.set_tools(one_tool("search"));
    assert!(send(&goes_on).await);
    assert_eq!(
        (tools(&server), last(&server).1),
        (vec!["search".to_owned()], 0)
    );
}

/// Returns a log in the form of an older version, which had neither these kinds of lines nor line
/// numbers.
fn of_older_version(lines: &str, newer: &[&str]) -> String {
    let is_newer = |line: &&str| {
        newer
            .iter()
            .any(|kind| line.starts_with(&format!("{{\"kind\":\"{kind}\"")))
    };
    let without_number = |line: &str| match line.rfind(",\"line\":") {
        Some(at) => format!("{}}}\n", &line[..at]),
        None => line.to_owned(),
    };
    lines
        .split_inclusive('\n')
        .filter(|line| !is_newer(line))
        .map(without_number)
        .collect()
}

#[tokio::test]
async fn a_log_without_instructions_gets_them_with_its_next_request() {
    let server = Server::start(|number, _| thinks(number)).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "Notes.");
    send(&session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    ))
    .await;
    let lines = String::from_utf8(journal.bytes()).expect("UTF-8");
    let older = of_older_version(&lines, &["instructions"]);
    assert_eq!(older.lines().count() + 1, lines.lines().count());
    let journal = MemoryJournal::default();
    reqc::world::Journal::append(&mut journal.clone(), &older).expect("written");
    let goes_on = session(
        &server.url,
        project.path(),
        &journal,
        Conversation::default(),
    );
    assert!(!send(&goes_on).await);
    assert_eq!(last(&server).1, 1);
    let lines = String::from_utf8(journal.bytes()).expect("UTF-8");
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.starts_with("{\"kind\":\"instructions\""))
            .count(),
        1
    );
}

/// A profile with this model, and with more fields in its `[body]`.
fn profile(model: &str, body: &str) -> String {
    TESTER.replace("model = \"m\"", &format!("model = \"{model}\"")) + "[body]\n" + body
}

const BINDS: &str = "claude-opus-5-5";

/// Pairs of bodies that differ in a part that comes before the answers.
const BODIES: [[&str; 2]; 4] = [
    [
        "tools = [{type = \"web_search_20260318\", name = \"web_search\", max_uses = 5}]\n",
        "tools = [{type = \"web_search_20260318\", name = \"web_search\", max_uses = 9}]\n",
    ],
    [
        "max_tokens = 30000\n",
        "tools = [{type = \"web_search_20260318\", name = \"web_search\"}]\n",
    ],
    [
        "system = '[{\"type\": \"text\", \"text\": \"One.\"}]'\n",
        "system = '[{\"type\": \"text\", \"text\": \"Two.\"}]'\n",
    ],
    [
        "messages = '[{\"role\": \"user\", \"content\": \"One.\"}, {% include \"partials/anthropic/messages.jinja\" %}]'\n",
        "messages = '[{\"role\": \"user\", \"content\": \"Two.\"}, {% include \"partials/anthropic/messages.jinja\" %}]'\n",
    ],
];

#[tokio::test]
async fn a_profile_that_writes_another_beginning_renews() {
    let server = Server::start(|number, _| thinks(number)).await;
    let project = tempfile::tempdir().expect("a folder");
    write(project.path(), "Notes.");
    let agent = |model: &str, body: &str| agent(&server.url, project.path(), &profile(model, body));
    for [before, after] in BODIES {
        let journal = MemoryJournal::default();
        let goes_on =
            |model, body| session_of(agent(model, body), &journal, Conversation::default());
        assert!(!send(&goes_on(BINDS, before)).await);
        let resumed = goes_on(BINDS, before);
        assert!(!send(&resumed).await && !send(&resumed).await);
        assert_eq!(last(&server).1, 2, "{before}");
        // A preview shows exactly the request that is sent afterwards.
        let preview = start(&journal, Conversation::default())
            .preview(&agent(BINDS, after), Some(text("Is it?")));
        let preview = agent(BINDS, after)
            .compile(preview.expect("it can be asked"))
            .expect("it compiles");
        assert!(send(&goes_on(BINDS, after)).await, "{after}");
        assert_eq!(last(&server).1, 0, "{after}");
        assert_eq!(
            server.received().last().expect("a request").json(),
            *preview.body.value()
        );
        assert!(!send(&goes_on(BINDS, after)).await, "{after}");
        assert_eq!(last(&server).1, 1, "thinking since then stays: {after}");
    }
}

#[tokio::test]
async fn nothing_is_left_out_for_models_that_bind_nothing() {
    let server = Server::start(|number, _| thinks(number)).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "Notes.");
    for (asked, body) in BODIES[0].into_iter().enumerate() {
        let agent = agent(
            &server.url,
            project.path(),
            &profile("claude-sonnet-4-5", body),
        );
        assert!(!send(&session_of(agent, &journal, Conversation::default())).await);
        assert_eq!(last(&server).1, asked);
    }
}

/// Older versions stored neither the system prompt and tools nor the requests that were sent.
#[tokio::test]
async fn a_log_of_an_older_version_leaves_thinking_out_where_it_is_bound() {
    let server = Server::start(|number, _| thinks(number)).await;
    let project = tempfile::tempdir().expect("a folder");
    for (model, is_bound) in [(BINDS, true), ("claude-sonnet-4-5", false)] {
        let agent = || agent(&server.url, project.path(), &profile(model, ""));
        let goes_on =
            |journal: &MemoryJournal| session_of(agent(), journal, Conversation::default());
        let written = MemoryJournal::default();
        write(project.path(), "The first notes.");
        assert!(!send(&goes_on(&written)).await && !send(&goes_on(&written)).await);
        let lines = String::from_utf8(written.bytes()).expect("UTF-8");
        let older = of_older_version(&lines, &["instructions", "sent"]);
        assert!(older.len() < lines.len() && older.contains("c2ln"));
        let mut journal = MemoryJournal::default();
        reqc::world::Journal::append(&mut journal, &older).expect("in memory");
        write(project.path(), "The second notes.");
        let preview =
            start(&journal, Conversation::default()).preview(&agent(), Some(text("Is it?")));
        let preview = agent()
            .compile(preview.expect("it can be asked"))
            .expect("it compiles");
        assert_eq!(send(&goes_on(&journal)).await, is_bound, "{model}");
        let (prompt, thinking) = last(&server);
        assert!(prompt.contains("The second notes."), "{prompt}");
        assert_eq!(thinking, if is_bound { 0 } else { 2 }, "{model}");
        assert_eq!(
            server.received().last().expect("a request").json(),
            *preview.body.value()
        );
        let again = goes_on(&journal);
        assert!(!send(&again).await);
        assert_eq!(
            last(&server),
            (prompt, if is_bound { 1 } else { 3 }),
            "{model}"
        );
        // If no answer contains thinking, there is nothing to leave out.
        let mut plain = MemoryJournal::default();
        let unsigned = older
            .replace("{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"c2ln\",\"origin\":\"Claude\"},", "");
        assert!(!unsigned.contains("c2ln"), "{unsigned}");
        reqc::world::Journal::append(&mut plain, &unsigned).expect("in memory");
        assert!(!send(&goes_on(&plain)).await, "{model}");
    }
}

#[tokio::test]
async fn a_renewal_of_the_history_that_a_session_begins_with_is_kept() {
    let server = Server::start(|number, _| thinks(number)).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "Notes.");
    let thought = |text: &str| {
        let origin = Some("Claude".into());
        let thinking = Block::Thinking {
            text: text.into(),
            signature: "c2ln".into(),
            origin,
        };
        Message {
            role: Role::Assistant,
            blocks: vec![thinking, Block::Text("Yes.".into())],
            item: None,
        }
    };
    let asks = || Message {
        role: Role::User,
        blocks: vec![Block::Text("Is it?".into())],
        item: None,
    };
    let history = vec![asks(), thought("Before."), asks(), thought("Since.")];
    let given = Conversation {
        task: Task::Chat(history),
        bound_from: 2,
        ..Conversation::default()
    };
    let profile = profile(BINDS, "").replace("surroundings = \"\"", "surroundings = \"Here.\"");
    let goes_on = |conversation| {
        session_of(
            agent(&server.url, project.path(), &profile),
            &journal,
            conversation,
        )
    };
    assert!(!send(&goes_on(given)).await);
    assert_eq!(last(&server).1, 1);
    assert!(!send(&goes_on(Conversation::default())).await);
    assert_eq!(last(&server).1, 2, "removed thinking stays out");
}

/// An answer with thinking, followed by this block.
fn thought_and(block: &serde_json::Value, stop: &str) -> Vec<Act> {
    let content = json!([{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, block]);
    let answer =
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop});
    status(
        200,
        &[("content-type", "application/json")],
        &answer.to_string(),
    )
}

#[tokio::test]
async fn a_session_that_only_goes_on_is_never_renewed() {
    let call =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let (says, searches) = (
        json!({"type": "text", "text": "Yes."}),
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}),
    );
    let own = json!({"type": "brand_new", "x": 1});
    let answers = [
        thought_and(&call("a", "look"), "tool_use"),
        thought_and(&says, "end_turn"),
        thought_and(&call("a", "made.up"), "tool_use"),
        thought_and(&says, "max_tokens"),
        thought_and(&searches, "pause_turn"),
        thought_and(&says, "end_turn"),
        vec![],
        thought_and(&json!({"type": "text", "text": "No."}), "refusal"),
        thought_and(&own, "end_turn"),
        thought_and(&says, "end_turn"),
    ];
    let server =
        Server::start(move |number, _| answers.get(number).unwrap_or(&answers[9]).clone()).await;
    let (project, journal) = (
        tempfile::tempdir().expect("a folder"),
        MemoryJournal::default(),
    );
    write(project.path(), "Notes.");
    let profile = profile(BINDS, "");
    for asked in 0..8 {
        let session = session_of(
            agent(&server.url, project.path(), &profile),
            &journal,
            Conversation::default(),
        );
        session.set_tools(one_tool("look"));
        if asked % 3 == 1 {
            let (title, source) = (None, None);
            session
                .inject(Item::Notification {
                    text: "News.".into(),
                    title,
                    source,
                })
                .expect("it can be written");
        }
        let run = if asked == 5 {
            session.proceed()
        } else {
            session.send(text("Is it?"))
        };
        let (told, _) = events(run).await;
        assert!(!told.contains(&Event::Renewed), "{asked}: {told:?}");
        if asked == 6 {
            session.take_back(1).expect("it is there");
        }
    }
    assert!(last(&server).1 > 4, "{}", last(&server).1);
}

#[tokio::test]
async fn thinking_behind_a_summary_is_left_out_where_it_is_bound_to_what_stood_before() {
    for model in [BINDS, "claude-sonnet-4-5"] {
        let server = Server::start(|number, _| thinks(number)).await;
        let (project, journal) = (
            tempfile::tempdir().expect("a folder"),
            MemoryJournal::default(),
        );
        write(project.path(), "Notes.");
        let agent = || agent(&server.url, project.path(), &profile(model, ""));
        let session = session_of(agent(), &journal, Conversation::default());
        send(&session).await;
        send(&session).await;
        let pool = SessionPool::new(transport(), PoolOptions::default());
        let compression = Compression::new(pool, agent()).keeping(1);
        session
            .compress(&compression)
            .text()
            .await
            .expect("a summary");
        assert!(!send(&session).await, "the system prompt is as it was");
        assert_eq!(last(&server).1, 0, "{model}");
        assert!(last(&server).0.contains("Notes."), "{model}");
        // Newer thinking is bound to the summarised history, so it stays.
        let again = session_of(agent(), &journal, Conversation::default());
        assert!(!send(&again).await);
        assert_eq!(last(&server).1, 1, "{model}");
    }
}
