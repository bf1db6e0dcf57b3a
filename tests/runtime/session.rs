//! Sessions: the state that a request leaves, however it ends.

use std::sync::Arc;
use std::time::Duration;

use reqc::conversation::{Block, Conversation, Item, SystemLayer};
use reqc::runtime::{Agent, Category, Event, Outcome, Session, SessionStart, StopReason};
use reqc::world::{Journal, MemoryJournal};

use crate::fixture::{agent, events, history, said, session, text, transport};
use crate::server::{Act, Server, says, sse, status, stream_head};

const HALF: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half an ans"}}]}"#;
const CALL: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"pa"}}]}}]}"#;

fn hanging(data: &[&str]) -> Vec<Act> {
    let mut acts = sse(data);
    acts.push(Act::Hang);
    acts
}

#[tokio::test]
async fn an_answer_streams_and_joins_the_history() {
    let server = Server::answering(vec![says("Hello."), says("Again.")]).await;
    let session = session(&server.url);
    let (first, outcome) = events(session.send(text("Hi"))).await;
    assert_eq!(
        (said(&first).as_str(), outcome),
        ("Hello.", Outcome::Finished(StopReason::EndTurn))
    );
    assert!(
        matches!(
            first[..3],
            [
                Event::Message(_),
                Event::TurnStart { round: 1 },
                Event::AnswerStart(_)
            ]
        ),
        "{first:?}"
    );
    assert_eq!(
        first.last(),
        Some(&Event::TurnEnd {
            stop: StopReason::EndTurn
        })
    );
    events(session.send(text("More"))).await;
    assert_eq!(
        history(&session),
        [
            "user: Hi",
            "assistant: Hello.",
            "user: More",
            "assistant: Again."
        ]
    );
    assert_eq!((session.usage().input, session.usage().output), (20, 4));
    let body = server.received()[1].json();
    let messages: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages[messages.len() - 3..],
        ["user", "assistant", "user"]
    );
    assert_eq!(session.open_requests(), 0);
    server.quiet().await;
}

#[tokio::test]
async fn a_failed_dispatch_leaves_the_history_as_it_was() {
    let refused = status(
        400,
        &[],
        r#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#,
    );
    let server = Server::answering(vec![refused, says("Better.")]).await;
    let session = session(&server.url);
    let (_, outcome) = events(session.send(text("Hi"))).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (error.category, error.status, error.retryable),
        (Category::Validation, Some(400), false)
    );
    assert!(error.to_string().contains("no such model"), "{error}");
    assert_eq!(history(&session), [""; 0]);
    events(session.send(text("Hi again"))).await;
    assert_eq!(history(&session), ["user: Hi again", "assistant: Better."]);
}

#[tokio::test]
async fn an_answer_that_breaks_off_fails_and_keeps_its_text() {
    let mut reset = sse(&[HALF]);
    reset.push(Act::Pause(Duration::from_millis(20)));
    reset.push(Act::Reset);
    for broken in [
        sse(&[HALF]),
        reset,
        sse(&[HALF, r#"{"error":{"message":"overloaded","code":503}}"#]),
    ] {
        let server = Server::answering(vec![broken]).await;
        let session = session(&server.url);
        let (events, outcome) = events(session.send(text("Hi"))).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        assert_eq!(said(&events), "half an ans");
        assert_eq!(history(&session), ["user: Hi", "assistant: half an ans"]);
        assert_eq!(
            server.received().len(),
            1,
            "nothing is retried once an answer has begun"
        );
    }
}

#[tokio::test]
async fn an_answer_that_breaks_before_its_first_word_leaves_nothing() {
    let server = Server::answering(vec![vec![stream_head()]]).await;
    let session = session(&server.url);
    let (_, outcome) = events(session.send(text("Hi"))).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(history(&session), [""; 0]);
}

#[tokio::test]
async fn cancelling_keeps_the_text_and_drops_the_partial_call() {
    let server = Server::answering(vec![hanging(&[HALF, CALL])]).await;
    let session = session(&server.url);
    let mut turn = session.send(text("Hi"));
    loop {
        match turn.next().await {
            Some(Event::ToolCallStart { .. }) => turn.cancel(),
            Some(Event::Done(outcome)) => break assert_eq!(outcome, Outcome::Cancelled),
            Some(_) => {}
            None => panic!("no end"),
        }
    }
    assert_eq!(history(&session), ["user: Hi", "assistant: half an ans"]);
    assert_eq!(session.open_requests(), 0);
    server.quiet().await;
}

#[tokio::test]
async fn cancelling_takes_effect_while_the_server_says_nothing() {
    // The server sends nothing, only headers, or asks for a wait between attempts.
    let backing_off = status(429, &[("retry-after", "100")], "{}");
    for silent in [vec![Act::Hang], vec![stream_head(), Act::Hang], backing_off] {
        let server = Server::answering(vec![silent]).await;
        let session = session(&server.url);
        let turn = session.send(text("Hi"));
        while server.received().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        turn.cancel();
        assert_eq!(turn.outcome().await, Outcome::Cancelled);
        assert_eq!(history(&session), ["user: Hi"]);
        server.quiet().await;
    }
}

#[tokio::test]
async fn cancelling_takes_effect_while_connecting() {
    // The server accepts the connection but never answers the TLS handshake.
    let server = Server::answering(vec![]).await;
    let session = session(&server.url.replace("http://", "https://"));
    let turn = session.send(text("Hi"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    turn.cancel();
    let outcome = tokio::time::timeout(Duration::from_secs(1), turn.outcome())
        .await
        .expect("at once");
    assert_eq!(outcome, Outcome::Cancelled);
    server.quiet().await;
}

#[tokio::test]
async fn dropping_a_turn_cancels_it() {
    let server = Server::answering(vec![hanging(&[HALF])]).await;
    let session = session(&server.url);
    let mut turn = session.send(text("Hi"));
    while !matches!(turn.next().await, Some(Event::Text(_))) {}
    drop(turn);
    session.idle().await;
    assert_eq!(history(&session), ["user: Hi", "assistant: half an ans"]);
    server.quiet().await;
}

#[tokio::test]
async fn another_request_cancels_the_one_in_flight_and_comes_after_it() {
    let server = Server::answering(vec![hanging(&[HALF]), says("Whole.")]).await;
    let session = session(&server.url);
    let mut first = session.send(text("One"));
    while !matches!(first.next().await, Some(Event::Text(_))) {}
    let second = session.send(text("Two"));
    assert_eq!(
        second.outcome().await,
        Outcome::Finished(StopReason::EndTurn)
    );
    assert_eq!(first.outcome().await, Outcome::Cancelled);
    let told = "system: The previous turn was interrupted: its answer was cancelled before it was complete.";
    assert_eq!(
        history(&session),
        [
            "user: One",
            "assistant: half an ans",
            told,
            "user: Two",
            "assistant: Whole."
        ]
    );
    server.quiet().await;
}

#[tokio::test]
async fn many_requests_at_once_leave_every_message_in_order() {
    let server = Server::start(|_, _| says("ok")).await;
    let session = session(&server.url);
    let turns: Vec<_> = (0..20)
        .map(|number| session.send(text(&number.to_string())))
        .collect();
    let mut outcomes = Vec::new();
    for turn in turns {
        outcomes.push(turn.outcome().await);
    }
    assert_eq!(outcomes.pop(), Some(Outcome::Finished(StopReason::EndTurn)));
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == Outcome::Cancelled),
        "{outcomes:?}"
    );
    let said: Vec<String> = history(&session)
        .into_iter()
        .filter(|line| line.starts_with("user"))
        .collect();
    let expected: Vec<String> = (0..20).map(|number| format!("user: {number}")).collect();
    assert_eq!(said, expected);
    server.quiet().await;
}

#[tokio::test]
async fn an_empty_message_and_an_empty_history_are_never_sent() {
    let server = Server::answering(vec![]).await;
    let session = session(&server.url);
    for turn in [session.send(Vec::new()), session.proceed()] {
        let (_, outcome) = events(turn).await;
        assert!(
            matches!(&outcome, Outcome::Failed(error) if error.category == Category::Config),
            "{outcome:?}"
        );
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn without_a_model_nothing_is_sent() {
    let compiler = reqc::compile::Compiler::load(
        Arc::new(reqc::world::MemoryWorld::default()),
        Arc::new(reqc::system::Embedded::bundled()),
        reqc::repo::LoadOptions {
            with_bundled: true,
            without_bundled: false,
        },
    );
    let nameless = Agent::new(
        Arc::new(compiler),
        "OpenAI Compatible Chat",
        crate::fixture::environment(),
    );
    let session = Session::new(nameless.unwrap(), transport(), Conversation::default());
    let (_, outcome) = events(session.send(text("Hi"))).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::Config, "no model for `OpenAI Compatible Chat`")
    );
    // Neither the message nor its surroundings stay.
    assert_eq!(history(&session), [""; 0]);
}

#[tokio::test]
async fn what_surrounds_a_message_that_failed_is_told_with_the_next_one() {
    let server = Server::answering(vec![
        status(400, &[], "{}"),
        says("ok"),
        status(400, &[], "{}"),
        says("ok"),
    ])
    .await;
    let compiler = crate::fixture::compiler_of(
        &server.url,
        "surroundings = \"Here is {{ project_name }}.\"",
    );
    let tester = Agent::new(compiler, "Tester", crate::fixture::environment()).unwrap();
    let session = Session::new(tester, transport(), Conversation::default());
    assert!(matches!(
        events(session.send(text("Hi"))).await.1,
        Outcome::Failed(_)
    ));
    assert_eq!(history(&session), [""; 0]);
    assert!(matches!(
        events(session.send(text("Hi"))).await.1,
        Outcome::Finished(_)
    ));
    let told = ["system: Here is test.", "user: Hi", "assistant: ok"];
    assert_eq!(history(&session), told);
    assert!(matches!(
        events(session.send(text("More"))).await.1,
        Outcome::Failed(_)
    ));
    assert_eq!(history(&session), told);
    assert!(matches!(
        events(session.send(text("More"))).await.1,
        Outcome::Finished(_)
    ));
    assert_eq!(history(&session)[3..], ["user: More", "assistant: ok"]);
}

#[tokio::test]
async fn a_failure_after_an_answer_that_was_cut_off_leaves_no_item() {
    let answers = vec![sse(&[HALF]), status(400, &[], "{}"), says("ok")];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    assert!(matches!(
        events(session.send(text("Hi"))).await.1,
        Outcome::Failed(_)
    ));
    let before = history(&session);
    assert!(matches!(
        events(session.send(text("Go on"))).await.1,
        Outcome::Failed(_)
    ));
    assert_eq!(history(&session), before);
    assert!(matches!(
        events(session.send(text("Go on"))).await.1,
        Outcome::Finished(_)
    ));
    assert!(
        history(&session)[2].starts_with("system: The previous turn was interrupted"),
        "{:?}",
        history(&session)
    );
}

#[tokio::test]
async fn layers_and_items_reach_the_next_request() {
    let server = Server::answering(vec![says("ok")]).await;
    let session = session(&server.url);
    let layer = |name: &str, text: &str| SystemLayer {
        name: name.into(),
        priority: 100,
        text: text.into(),
    };
    session.set_layer(layer("rules", "Be brief."));
    session.set_layer(layer("gone", "Never seen."));
    session.set_layer(layer("gone", " "));
    session.set_layer(layer("memory", "Remember."));
    session.set_layer(layer("rules", "Be very brief."));
    session
        .inject(Item::Notification {
            text: "The build is green.".into(),
            title: None,
            source: None,
        })
        .unwrap();
    events(session.send(text("Hi"))).await;
    let body = server.received()[0].json().to_string();
    assert!(body.contains("The build is green."), "{body}");
    assert!(
        body.contains("Be very brief.\\n\\nRemember."),
        "a layer that is set again keeps its place: {body}"
    );
    assert!(
        !body.contains("Never seen.") && !body.contains("Be brief."),
        "{body}"
    );
}

#[tokio::test]
async fn a_blank_message_is_not_sent() {
    let server = Server::answering(vec![]).await;
    let session = session(&server.url);
    let (_, outcome) = events(session.send(text(" \n"))).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        error.message,
        "there is nothing to send: the message is empty"
    );
    assert_eq!(history(&session), [""; 0]);
}

#[tokio::test]
async fn an_item_never_parts_a_call_from_its_result() {
    let answers = vec![
        crate::server::calls(&[("c1", "look", "{}")]),
        says("ok"),
        status(400, &[], "{}"),
    ];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    let injecting = session.clone();
    let definition = reqc::conversation::Tool {
        name: "look".into(),
        description: "".into(),
        schema: serde_json::json!({"type": "object"})
            .as_object()
            .cloned()
            .unwrap(),
    };
    session.set_tools(reqc::runtime::tools::ToolSet::new().with(
        reqc::runtime::tools::FnTool::new(definition, move |_, _| {
            let item = Item::Notification {
                text: "It is noon.".into(),
                title: None,
                source: None,
            };
            injecting.inject(item).unwrap();
            async { reqc::runtime::tools::ToolOutput::text("seen") }
        }),
    ));
    events(session.send(text("Look"))).await;
    let expected = [
        "user: Look",
        "assistant: call look#c1",
        "user: result #c1: seen",
        "system: It is noon.",
        "assistant: ok",
    ];
    assert_eq!(history(&session), expected);
    // When a request fails, its own messages are removed, and those that others added stay.
    let mut turn = session.send(text("Again"));
    while !matches!(turn.next().await, Some(Event::TurnStart { .. })) {}
    session
        .inject(Item::Notification {
            text: "It is one.".into(),
            title: None,
            source: None,
        })
        .unwrap();
    assert!(matches!(turn.outcome().await, Outcome::Failed(_)));
    assert_eq!(history(&session)[expected.len()..], ["system: It is one."]);
}

#[tokio::test]
async fn the_model_is_the_clients() {
    let own = |url: &str| {
        let provider = format!(
            "name = \"S\"\nclient_api = \"Google AI\"\nurl = \"{url}\"\napi_key_ref = \"env:K\"\n"
        );
        let agent = "name = \"A\"\nextends = \"Gemini Chat\"\nprovider_instance = \"S\"\nmodel = \"profile\"\n";
        let files = [
            ("providers/s.toml", provider.as_str()),
            ("agents/a.toml", agent),
            ("models.toml", "A = \"override\"\n"),
        ];
        let own = Arc::new(reqc::world::MemoryWorld::from_iter(files));
        let bundled = Arc::new(reqc::system::Embedded::bundled());
        Arc::new(reqc::compile::Compiler::load(
            own,
            bundled,
            reqc::repo::LoadOptions::default(),
        ))
    };
    let server = Server::start(|_, _| status(400, &[], "{}")).await;
    for given in [None, Some("given")] {
        let agent = Agent::new(own(&server.url), "A", crate::fixture::environment())
            .unwrap()
            .with_model(given);
        let session = Session::new(agent, transport(), Conversation::default());
        session.send(text("Hi")).outcome().await;
    }
    let targets: Vec<String> = server
        .received()
        .into_iter()
        .map(|received| received.target)
        .collect();
    assert!(targets[0].contains("/models/override:"), "{targets:?}");
    assert!(targets[1].contains("/models/given:"), "{targets:?}");
}

#[tokio::test]
async fn a_session_goes_on_from_its_journal() {
    let server = Server::answering(vec![says("One."), says("Two.")]).await;
    let journal = MemoryJournal::default();
    let begin = SessionStart::New(Conversation::default());
    let first = Session::journaled(
        agent(&server.url),
        transport(),
        begin,
        Box::new(journal.clone()),
    )
    .unwrap();
    events(first.send(text("Hi"))).await;
    let log = reqc::conversation::log::Log::parse(&journal.bytes())
        .unwrap()
        .log
        .unwrap();
    assert_eq!(log.to_text().as_bytes(), journal.bytes());
    let restored = SessionStart::Resumed(log, Conversation::default());
    let second = Session::journaled(
        agent(&server.url),
        transport(),
        restored,
        Box::new(journal.clone()),
    )
    .unwrap();
    assert_eq!(second.usage(), first.usage());
    events(second.send(text("And?"))).await;
    assert_eq!(
        history(&second),
        [
            "user: Hi",
            "assistant: One.",
            "user: And?",
            "assistant: Two."
        ]
    );
}

/// A journal that records, for each line, how many requests the server had received by then.
struct Watched {
    inner: MemoryJournal,
    seen: Arc<std::sync::Mutex<Vec<(String, usize)>>>,
    received: Arc<dyn Fn() -> usize + Send + Sync>,
}

impl Journal for Watched {
    fn append(&mut self, line: &str) -> Result<(), reqc::world::AccessError> {
        self.seen
            .lock()
            .unwrap()
            .push((line.to_owned(), (self.received)()));
        self.inner.append(line)
    }
}

#[tokio::test]
async fn each_line_is_written_before_the_model_sees_it() {
    let server = Arc::new(Server::answering(vec![says("One."), says("Two.")]).await);
    let seen = Arc::<std::sync::Mutex<Vec<(String, usize)>>>::default();
    let counting = Arc::clone(&server);
    let received = Arc::new(move || counting.received().len());
    let journal = Watched {
        inner: MemoryJournal::default(),
        seen: Arc::clone(&seen),
        received,
    };
    let begin = SessionStart::New(Conversation::default());
    let session =
        Session::journaled(agent(&server.url), transport(), begin, Box::new(journal)).unwrap();
    events(session.send(text("first question"))).await;
    session
        .inject(Item::Notification {
            text: "an item".into(),
            title: None,
            source: None,
        })
        .unwrap();
    events(session.send(text("second question"))).await;
    let seen = seen.lock().unwrap();
    let requests_before = |what: &str| {
        seen.iter()
            .find(|(line, _)| line.contains(what))
            .expect(what)
            .1
    };
    assert_eq!(requests_before("first question"), 0);
    assert_eq!(requests_before("One."), 1);
    assert_eq!(requests_before("an item"), 1);
    assert_eq!(requests_before("second question"), 1);
}

#[tokio::test]
async fn killed_at_every_write_the_journal_loads_and_tells_of_the_interruption() {
    let server = Server::start(|_, _| says("An answer.")).await;
    let whole = MemoryJournal::default();
    let run = async |journal: MemoryJournal| {
        let begin = SessionStart::New(Conversation::default());
        let session =
            Session::journaled(agent(&server.url), transport(), begin, Box::new(journal)).ok()?;
        let (_, outcome) = events(session.send(text("Hi"))).await;
        Some(outcome)
    };
    run(whole.clone()).await;
    let bytes = whole.bytes();
    let ends: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    for room in ends.iter().flat_map(|end| [end - 1, end - 7, *end]) {
        let journal = MemoryJournal::default().with_room(room);
        let outcome = run(journal.clone()).await;
        if room < bytes.len() {
            assert!(
                !matches!(outcome, Some(Outcome::Finished(_))),
                "{room}: what is not written did not happen"
            );
        }
        let loaded =
            reqc::conversation::log::Log::parse(&journal.bytes()).expect("a prefix always loads");
        let Some(log) = loaded.log else { continue };
        assert_eq!(
            log.to_text().len() + loaded.tail_bytes,
            journal.bytes().len()
        );
        let waits = log.is_interrupted();
        let again = MemoryJournal::holding(log.to_text());
        let restored = SessionStart::Resumed(log, Conversation::default());
        let session = Session::journaled(
            agent(&server.url),
            transport(),
            restored,
            Box::new(again.clone()),
        )
        .unwrap();
        let told = history(&session)
            .last()
            .is_some_and(|line| line.contains("was interrupted"));
        assert_eq!(told, waits, "{room}: {:?}", history(&session));
        // A second restart does not report the interruption again.
        let log = reqc::conversation::log::Log::parse(&again.bytes())
            .unwrap()
            .log
            .unwrap();
        let text = log.to_text();
        let restored = SessionStart::Resumed(log, Conversation::default());
        Session::journaled(
            agent(&server.url),
            transport(),
            restored,
            Box::new(again.clone()),
        )
        .unwrap();
        assert_eq!(again.bytes(), text.into_bytes());
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_stops_the_request_before_it_is_sent() {
    let server = Server::start(|_, _| says("An answer.")).await;
    let header = {
        let journal = MemoryJournal::default();
        let begin = SessionStart::New(Conversation::default());
        Session::journaled(
            agent(&server.url),
            transport(),
            begin,
            Box::new(journal.clone()),
        )
        .unwrap();
        journal.bytes().len()
    };
    let journal = MemoryJournal::default().with_room(header);
    let begin = SessionStart::New(Conversation::default());
    let session =
        Session::journaled(agent(&server.url), transport(), begin, Box::new(journal)).unwrap();
    let (_, outcome) = events(session.send(text("Hi"))).await;
    assert!(
        matches!(&outcome, Outcome::Failed(error) if error.category == Category::Config),
        "{outcome:?}"
    );
    assert!(server.received().is_empty());
    assert!(session.history().is_empty());
}

#[tokio::test]
async fn tool_calls_without_tools_are_the_hosts_business() {
    let answer = crate::server::calls(&[("c1", "look", "{}")]);
    let server = Server::answering(vec![answer, says("Seen.")]).await;
    let session = session(&server.url);
    let (_, outcome) = events(session.send(text("Look"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::ToolUse));
    let result = Block::ToolResult {
        id: "c1".into(),
        content: "a tree".into(),
        is_error: false,
        images: Vec::new(),
    };
    events(session.send(vec![result])).await;
    assert_eq!(
        history(&session),
        [
            "user: Look",
            "assistant: call look#c1",
            "user: result #c1: a tree",
            "assistant: Seen."
        ]
    );
}

fn note(text: &str) -> Item {
    Item::Notification {
        text: text.into(),
        title: None,
        source: None,
    }
}

fn result(id: &str) -> Block {
    Block::ToolResult {
        id: id.into(),
        content: "seen".into(),
        is_error: false,
        images: Vec::new(),
    }
}

#[tokio::test]
async fn an_item_waits_until_the_host_has_answered_calls() {
    let answers = vec![
        crate::server::calls(&[("c1", "look", "{}")]),
        says("Ok."),
        says("Yes."),
    ];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    events(session.send(text("Look"))).await;
    session.inject(note("It is noon.")).unwrap();
    events(session.send(vec![result("c1")])).await;
    let expected = [
        "user: Look",
        "assistant: call look#c1",
        "user: result #c1: seen",
        "assistant: Ok.",
        "system: It is noon.",
    ];
    assert_eq!(history(&session), expected);
    events(session.send(text("And?"))).await;
    assert!(
        server.received()[2]
            .json()
            .to_string()
            .contains("It is noon.")
    );
}

#[tokio::test]
async fn a_restored_session_whose_host_brings_the_results_was_not_interrupted() {
    let answer = || crate::server::calls(&[("c1", "look", "{}")]);
    for (blocks, told) in [(vec![result("c1")], false), (text("Never mind"), true)] {
        let server = Server::answering(vec![answer(), says("Ok.")]).await;
        let journal = MemoryJournal::default();
        let begin = SessionStart::New(Conversation::default());
        let first = Session::journaled(
            agent(&server.url),
            transport(),
            begin,
            Box::new(journal.clone()),
        )
        .unwrap();
        events(first.send(text("Look"))).await;
        let log = reqc::conversation::log::Log::parse(&journal.bytes())
            .unwrap()
            .log
            .unwrap();
        let restored = SessionStart::Resumed(log, Conversation::default());
        let second =
            Session::journaled(agent(&server.url), transport(), restored, Box::new(journal))
                .unwrap();
        events(second.send(blocks)).await;
        assert_eq!(
            history(&second)
                .iter()
                .any(|line| line.contains("was interrupted")),
            told,
            "{:?}",
            history(&second)
        );
    }
}

/// A journal that refuses lines that contain a word.
struct Refusing(MemoryJournal, &'static str);

impl Journal for Refusing {
    fn append(&mut self, line: &str) -> Result<(), reqc::world::AccessError> {
        if line.contains(self.1) {
            Err("the disk is full".into())
        } else {
            self.0.append(line)
        }
    }
}

#[tokio::test]
async fn what_cannot_be_written_at_any_place_did_not_happen() {
    for (word, left) in [("\"usage\"", 2), ("An answer.", 1), ("\"Hi\"", 0)] {
        let server = Server::answering(vec![says("An answer.")]).await;
        let journal = MemoryJournal::default();
        let begin = SessionStart::New(Conversation::default());
        let refusing = Box::new(Refusing(journal.clone(), word));
        let session = Session::journaled(agent(&server.url), transport(), begin, refusing).unwrap();
        let (_, outcome) = events(session.send(text("Hi"))).await;
        assert!(
            matches!(&outcome, Outcome::Failed(error) if error.category == Category::Config),
            "{word}: {outcome:?}"
        );
        assert_eq!(session.history().len(), left, "{word}");
        let log = reqc::conversation::log::Log::parse(&journal.bytes())
            .unwrap()
            .log
            .unwrap();
        assert_eq!(
            log.history(),
            session.history(),
            "the journal has the same history"
        );
    }
    // The error of the request is reported, not the failure to remove its messages.
    let server = Server::answering(vec![status(401, &[], "{}")]).await;
    let journal = Box::new(Refusing(MemoryJournal::default(), "retract"));
    let begin = SessionStart::New(Conversation::default());
    let session = Session::journaled(agent(&server.url), transport(), begin, journal).unwrap();
    let (_, outcome) = events(session.send(text("Hi"))).await;
    assert!(
        matches!(&outcome, Outcome::Failed(error) if error.category == Category::Auth),
        "{outcome:?}"
    );
}

/// A session of a Claude agent at a local server.
fn claude(url: &str) -> Session {
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"Claude\"\nurl = \"{url}\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let tester = "name = \"Tester\"\nextends = \"Claude Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n";
    let own = reqc::world::MemoryWorld::from_iter([
        ("providers/scripted.toml", provider.as_str()),
        ("agents/tester.toml", tester),
    ]);
    let bundled = Arc::new(reqc::system::Embedded::bundled());
    let compiler =
        reqc::compile::Compiler::load(Arc::new(own), bundled, reqc::repo::LoadOptions::default());
    let agent = Agent::new(Arc::new(compiler), "Tester", crate::fixture::environment())
        .expect("it is there");
    Session::new(agent, transport(), Conversation::default())
}

/// A complete Claude answer.
fn claude_says(content: &serde_json::Value, stop: &str) -> Vec<Act> {
    let answer = serde_json::json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop});
    status(
        200,
        &[("content-type", "application/json")],
        &answer.to_string(),
    )
}

#[tokio::test]
async fn a_turn_that_paused_goes_on_with_the_same_history() {
    let search = serde_json::json!([
        {"type": "text", "text": "Searching."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    ]);
    let found = serde_json::json!([
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Nothing found."},
    ]);
    let answers = vec![
        claude_says(&search, "pause_turn"),
        claude_says(&found, "end_turn"),
        claude_says(&found, "end_turn"),
    ];
    let server = Server::answering(answers).await;
    let session = claude(&server.url);
    let (told, outcome) = events(session.send(text("Search."))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(said(&told), "Searching.Nothing found.");
    let bodies: Vec<_> = server
        .received()
        .iter()
        .map(super::server::Received::json)
        .collect();
    let last = bodies[1]["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .cloned()
        .unwrap();
    assert_eq!(
        (last["role"].as_str(), &last["content"][1]["id"]),
        (Some("assistant"), &search[1]["id"])
    );
    let (_, outcome) = events(session.send(text("Thanks."))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    let turn = &server.received()[2].json()["messages"][1]["content"];
    let kinds: Vec<&str> = turn
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        ["text", "server_tool_use", "web_search_tool_result", "text"]
    );
}

#[tokio::test]
async fn a_provider_that_only_pauses_is_stopped() {
    let pausing = serde_json::json!([{"type": "text", "text": "Wait."}]);
    let server = Server::answering(
        (0..20)
            .map(|_| claude_says(&pausing, "pause_turn"))
            .collect(),
    )
    .await;
    let (_, outcome) = events(claude(&server.url).send(text("Search."))).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (error.category, error.message.as_str()),
        (
            Category::Tool,
            "the provider paused its turn more than 10 times"
        )
    );
}
