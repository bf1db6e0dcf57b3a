//! The time limit that a host sets for a run. The tests advance the clock instead of waiting.

use std::sync::Arc;
use std::time::Duration;

use reqc::conversation::{Conversation, Tool as Definition};
use reqc::runtime::hooks::{Hooks, ToolDecision};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{
    Category, Event, Outcome, Run, Session, SessionStart, ToolCall, Transport, TransportOptions,
};
use reqc::world::MemoryJournal;

use crate::fixture::{Planted, agent, events, history, options};
use crate::server::{Act, Server, calls, says, sse, stream_head};

const LIMIT: Duration = Duration::from_mins(10);

/// A session with all other limits far away, and its journal.
fn session(server: &Server) -> (Session, MemoryJournal) {
    let far = Duration::from_hours(9);
    let options = TransportOptions {
        idle_timeout: far,
        answer_timeout: far,
        ..options()
    };
    let journal = MemoryJournal::default();
    let start = SessionStart::New(Conversation::default());
    let transport = Transport::new(Arc::new(Planted), options);
    let session = Session::journaled(
        agent(&server.url),
        transport,
        start,
        Box::new(journal.clone()),
    )
    .expect("memory");
    session.set_run_timeout(Some(LIMIT));
    (session, journal)
}

/// Reads until such an event comes, then lets the time limit pass. Returns the remaining events and
/// the outcome.
async fn late_after(mut run: Run, is_it: impl Fn(&Event) -> bool) -> (Vec<Event>, Outcome) {
    while let Some(event) = run.next().await {
        if is_it(&event) {
            break;
        }
    }
    tokio::time::pause();
    tokio::time::advance(LIMIT).await;
    tokio::time::resume();
    events(run).await
}

fn assert_late(outcome: &Outcome) {
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((error.category, error.retryable), (Category::Timeout, true));
    assert_eq!(error.message, "the run did not end within 600s");
}

fn tool(
    name: &str,
    does: fn() -> BoxFuture<'static, ToolOutput>,
) -> FnTool<
    impl Fn(serde_json::Value, reqc::runtime::tools::ToolContext) -> BoxFuture<'static, ToolOutput>,
> {
    let schema = serde_json::json!({"type": "object"})
        .as_object()
        .cloned()
        .expect("an object");
    FnTool::new(
        Definition {
            name: name.into(),
            description: "a tool".into(),
            schema,
        },
        move |_, _| does(),
    )
}

#[tokio::test]
async fn what_came_of_an_answer_is_kept_and_marked_and_the_next_message_says_so() {
    let part = vec![
        stream_head(),
        Act::Bytes(
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half\"}}]}\n\n".to_vec(),
        ),
        Act::Hang,
    ];
    let server = Server::answering(vec![part, says("Whole.")]).await;
    let (session, journal) = session(&server);
    let (rest, outcome) =
        late_after(session.send("Go"), |event| matches!(event, Event::Text(_))).await;
    assert_late(&outcome);
    let [
        Event::TurnCutOff {
            reason,
            kept: true,
            error: Some(error),
        },
    ] = rest.as_slice()
    else {
        panic!("{rest:?}")
    };
    assert_eq!(
        (reason.name(), error.category),
        ("timed_out", Category::Timeout)
    );
    assert!(
        text(&journal).contains("\"cut_off\":\"timed_out\""),
        "{}",
        text(&journal)
    );
    let (_, outcome) = events(session.send("Go on")).await;
    assert!(
        matches!(outcome, Outcome::Finished(_)),
        "each run gets the full time: {outcome:?}"
    );
    let told =
        "system: The previous turn was interrupted: it timed out before its answer was complete.";
    assert_eq!(
        history(&session),
        [
            "user: Go",
            "assistant: Half",
            told,
            "user: Go on",
            "assistant: Whole."
        ]
    );
}

#[tokio::test]
async fn without_an_answer_the_history_is_as_it_was() {
    let server = Server::answering(vec![vec![Act::Hang]]).await;
    let (session, _) = session(&server);
    let run = session.send("Go");
    while server.received().is_empty() {
        tokio::task::yield_now().await;
    }
    let (rest, outcome) = late_after(run, |event| matches!(event, Event::TurnStart { .. })).await;
    assert_late(&outcome);
    assert!(
        matches!(rest.as_slice(), [Event::TurnCutOff { kept: false, .. }]),
        "{rest:?}"
    );
    assert_eq!(history(&session), [""; 0]);
}

#[tokio::test]
async fn tools_that_ended_keep_their_results_and_the_others_say_why_they_have_none() {
    let wanted = [
        ("c1", "quick", "{}"),
        ("c2", "slow", "{}"),
        ("c3", "slow", "{}"),
    ];
    let server = Server::answering(vec![calls(&wanted)]).await;
    let (session, journal) = session(&server);
    session.set_tools_at_once(2);
    let quick = tool("quick", || Box::pin(async { ToolOutput::text("done") }));
    let slow = tool("slow", || Box::pin(std::future::pending()));
    session.set_tools(ToolSet::new().with(quick).with(slow));
    let (rest, outcome) = late_after(session.send("Go"), |event| {
        matches!(event, Event::ToolResult { .. })
    })
    .await;
    assert_late(&outcome);
    let told = "the request timed out while the tool was running; what the tool did before that is unknown";
    assert_eq!(
        history(&session),
        [
            "user: Go",
            "assistant: call quick#c1 | call slow#c2 | call slow#c3",
            &format!("user: result #c1: done | error #c2: {told} | error #c3: {told}")
        ],
        "the third begins once the first has ended"
    );
    assert_eq!(
        rest.iter()
            .filter(|event| matches!(event, Event::ToolResult { .. }))
            .count(),
        2
    );
    assert_eq!(
        text(&journal).matches("\"kind\":\"tool_result\"").count(),
        3
    );
}

/// Never answers.
struct Silent;

impl Hooks for Silent {
    fn before_tool<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn hooks_have_no_more_time_than_the_run() {
    let server = Server::answering(vec![calls(&[("c1", "quick", "{}")])]).await;
    let (session, _) = session(&server);
    session.set_tools(ToolSet::new().with(tool("quick", || {
        Box::pin(async { ToolOutput::text("done") })
    })));
    let run = session.with_hooks(Arc::new(Silent)).send("Go");
    let (_, outcome) = late_after(run, |event| matches!(event, Event::TurnEnd { .. })).await;
    assert_late(&outcome);
    let told = "user: error #c1: the tool did not run: the request timed out";
    assert_eq!(history(&session).last().map(String::as_str), Some(told));
}

#[tokio::test]
async fn whoever_cancels_first_has_cancelled() {
    let part = sse(&[r#"{"choices":[{"index":0,"delta":{"content":"Half"}}]}"#])
        .into_iter()
        .chain([Act::Hang])
        .collect();
    let server = Server::answering(vec![part]).await;
    let (session, journal) = session(&server);
    let mut run = session.send("Go");
    while !matches!(run.next().await, Some(Event::Text(_)) | None) {}
    run.cancel();
    let (_, outcome) = late_after(run, |_| true).await;
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(
        text(&journal).contains("\"cut_off\":\"cancelled\""),
        "{}",
        text(&journal)
    );
}

fn text(journal: &MemoryJournal) -> String {
    String::from_utf8(journal.bytes()).expect("text")
}
