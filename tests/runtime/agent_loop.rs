//! The agent loop: tools and hooks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqc::conversation::Tool as Definition;
use reqc::runtime::hooks::{
    Hooks, MessageDecision, MessageHook, NoHooks, RoundDecision, ToolDecision,
};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Category, Event, Outcome, Session, StopReason, ToolCall, Usage};
use serde_json::{Value, json};

use crate::fixture::{events, history, said, session, text};
use crate::server::{Act, Server, calls, says, sse};

fn definition(name: &str) -> Definition {
    let schema = json!({"type": "object", "properties": {}})
        .as_object()
        .cloned()
        .expect("an object");
    Definition {
        name: name.into(),
        description: format!("does {name}").into(),
        schema,
    }
}

/// A tool that returns its input.
fn echo(name: &str) -> impl reqc::runtime::tools::Tool + 'static {
    FnTool::new(definition(name), |input, _| async move {
        ToolOutput::text(input.to_string())
    })
}

/// A session with the tools `look` and `count`.
async fn with_tools(answers: Vec<Vec<Act>>) -> (Server, Session) {
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(echo("look")).with(echo("count")));
    (server, session)
}

#[derive(Default)]
struct Watching {
    turns: AtomicUsize,
    stop_at: Option<usize>,
    refuse: Option<&'static str>,
    rewrite: Option<Value>,
    show: Option<MessageDecision>,
    seen: Mutex<Vec<Event>>,
    asked: Mutex<Vec<String>>,
}

impl Hooks for Watching {
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        Box::pin(async move {
            self.turns.store(round as usize, Ordering::SeqCst);
            match self.stop_at {
                Some(at) if at == round as usize => RoundDecision::Stop("enough".into()),
                _ => RoundDecision::Go,
            }
        })
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(call.name.to_string());
            match (&self.refuse, &self.rewrite) {
                (Some(name), _) if **name == *call.name => ToolDecision::Refuse("not here".into()),
                (_, Some(input)) => ToolDecision::Rewrite(input.clone()),
                _ => ToolDecision::Run,
            }
        })
    }

    fn observe(&self, event: &Event) {
        self.seen.lock().unwrap().push(event.clone());
    }
}

impl MessageHook for Watching {
    fn before_message<'a>(&'a self, _: &'a str) -> BoxFuture<'a, MessageDecision> {
        Box::pin(async move { self.show.clone().unwrap_or(MessageDecision::AsIs) })
    }
}

#[tokio::test]
async fn a_loop_of_two_rounds_compiles_each_body_from_the_grown_history() {
    let (server, session) = with_tools(vec![
        calls(&[("c1", "look", r#"{"at":"é"}"#)]),
        calls(&[("c2", "count", "{}")]),
        says("Two."),
    ])
    .await;
    let (events, outcome) = events(session.send(text("Go"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(
        history(&session),
        [
            "user: Go",
            "assistant: call look#c1",
            "user: result #c1: {\"at\":\"é\"}",
            "assistant: call count#c2",
            "user: result #c2: {}",
            "assistant: Two."
        ]
    );
    let rounds: Vec<u32> = events
        .iter()
        .filter_map(|event| {
            if let Event::TurnStart { round } = event {
                Some(*round)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(rounds, [1, 2, 3]);
    assert_eq!(
        session.usage(),
        Usage {
            input: 50,
            output: 12,
            ..Usage::default()
        }
    );
    let received = server.received();
    assert_eq!(received.len(), 3);
    let grown = received[2].json();
    let roles: Vec<&str> = grown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles[roles.len() - 5..],
        ["user", "assistant", "tool", "assistant", "tool"]
    );
    let first = received[0].json();
    let tools: Vec<&str> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["look", "count"]);
    assert_eq!(session.open_requests(), 0);
}

#[tokio::test]
async fn an_unknown_tool_beside_a_known_one_is_answered_with_an_error() {
    let (server, session) = with_tools(vec![
        calls(&[("c1", "lok", "{}"), ("c2", "look", "{}")]),
        says("Sorry."),
    ])
    .await;
    events(session.send(text("Go"))).await;
    let line = &history(&session)[2];
    assert_eq!(
        line,
        "user: error #c1: there is no tool `lok`; available tools: look, count | result #c2: {}"
    );
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn malformed_arguments_are_an_error_for_the_model_and_never_an_empty_object() {
    let (_server, session) =
        with_tools(vec![calls(&[("c1", "look", r#"{"at":"#)]), says("Again.")]).await;
    events(session.send(text("Go"))).await;
    let line = &history(&session)[2];
    assert!(
        line.starts_with("user: error #c1: the arguments are not a JSON object"),
        "{line}"
    );
}

#[tokio::test]
async fn a_call_without_an_id_gets_one() {
    let (server, session) = with_tools(vec![
        calls(&[("", "look", "{}"), ("", "count", "{}")]),
        says("Ok."),
    ])
    .await;
    events(session.send(text("Go"))).await;
    let body = server.received()[1].json();
    let messages = body["messages"].as_array().unwrap();
    let ids: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(
        ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()),
        "{ids:?}"
    );
}

#[tokio::test]
async fn the_same_id_in_two_rounds_is_answered_twice() {
    let round = || calls(&[("call_0", "look", "{}")]);
    let (_server, session) = with_tools(vec![round(), round(), says("Done.")]).await;
    let (_, outcome) = events(session.send(text("Go"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(
        history(&session)
            .iter()
            .filter(|line| line.contains("result #call_0"))
            .count(),
        2
    );
}

#[tokio::test]
async fn calls_count_whatever_the_finish_reason_says() {
    let mut lying = calls(&[("c1", "look", "{}")]);
    for act in &mut lying {
        if let Act::Bytes(bytes) = act {
            *bytes = String::from_utf8_lossy(bytes)
                .replace("\"tool_calls\"}", "\"stop\"}")
                .into_bytes();
        }
    }
    let (server, session) = with_tools(vec![lying, says("Done.")]).await;
    events(session.send(text("Go"))).await;
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn the_limit_of_rounds_ends_in_a_tool_error() {
    let server = Server::start(|_, _| calls(&[("c", "look", "{}")])).await;
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(echo("look")));
    let (_, outcome) = events(session.send(text("Go"))).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.category, Category::Tool);
    assert_eq!(
        server.received().len(),
        11,
        "ten rounds of tools, and the answer that asks for one more"
    );
    let last = history(&session).pop().unwrap();
    let told = "user: error #c: the tool did not run: the model still calls tools after 10 rounds of tool calls";
    assert_eq!(last, told, "each call has a result");
    let limited = session
        .with_hooks(Arc::new(Watching::default()))
        .with_limit(2);
    let (_, outcome) = events(limited.send(text("Go"))).await;
    assert!(
        matches!(&outcome, Outcome::Failed(error) if error.message.contains("2 rounds")),
        "{outcome:?}"
    );
    assert_eq!(server.received().len(), 14);
}

#[tokio::test]
async fn an_agent_loop_has_fifty_rounds() {
    let server = Server::start(|_, _| calls(&[("c", "look", "{}")])).await;
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(echo("look")));
    let (_, outcome) = events(
        session
            .with_hooks(Arc::new(Watching::default()))
            .send(text("Go")),
    )
    .await;
    assert!(
        matches!(&outcome, Outcome::Failed(error) if error.message.contains("after 50 rounds")),
        "{outcome:?}"
    );
    assert_eq!(server.received().len(), 51);
}

/// It depends on timing whether a cancelled tool still reports that it was cancelled, as programs
/// and MCP servers do. The result must be the same.
#[tokio::test]
async fn tools_that_are_cancelled_together_leave_the_same_result() {
    let (_server, session) =
        with_tools(vec![calls(&[("c1", "says", "{}"), ("c2", "gone", "{}")])]).await;
    let says = FnTool::new(definition("says"), |_, context| async move {
        context.cancelled.cancelled().await;
        ToolOutput::error("the tool was cancelled")
    });
    let gone = FnTool::new(definition("gone"), |_, _| {
        std::future::pending::<ToolOutput>()
    });
    session.set_tools(ToolSet::new().with(says).with(gone));
    let run = session
        .send(text("Go"))
        .cancel_on(tokio::time::sleep(Duration::from_millis(200)));
    assert_eq!(events(run).await.1, Outcome::Cancelled);
    let last = history(&session).pop().expect("results");
    let told: Vec<&str> = last
        .split(" | ")
        .map(|result| result.split_once(": the").map_or(result, |it| it.1))
        .collect();
    assert!(told.len() == 2 && told[0] == told[1], "{last}");
}

#[tokio::test]
async fn parallel_calls_run_in_parallel_and_answer_in_call_order() {
    let server = Server::answering(vec![
        calls(&[("c1", "first", "{}"), ("c2", "second", "{}")]),
        says("Ok."),
    ])
    .await;
    let session = session(&server.url);
    // Each tool waits for the other, so they would hang if they ran one after the other.
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    let mut tools = ToolSet::new();
    for (name, after) in [("first", 30), ("second", 0)] {
        let meeting = Arc::clone(&meeting);
        tools = tools.with(FnTool::new(definition(name), move |_, _| {
            let meeting = Arc::clone(&meeting);
            async move {
                meeting.wait().await;
                tokio::time::sleep(Duration::from_millis(after)).await;
                ToolOutput::text(name)
            }
        }));
    }
    session.set_tools(tools);
    events(session.send(text("Go"))).await;
    assert_eq!(
        history(&session)[2],
        "user: result #c1: first | result #c2: second"
    );
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error_for_the_model() {
    let (_server, session) = with_tools(vec![
        calls(&[("c1", "boom", "{}"), ("c2", "look", "{}")]),
        says("Ok."),
    ])
    .await;
    let boom = FnTool::new(definition("boom"), |_, _| async move { panic!("planted") });
    session.set_tools(ToolSet::new().with(boom).with(echo("look")));
    let (_, outcome) = events(session.send(text("Go"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(
        history(&session)[2],
        "user: error #c1: the tool crashed | result #c2: {}"
    );
}

#[tokio::test]
async fn a_slow_tool_tells_its_progress_and_is_stopped_by_cancelling() {
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (server, session) = with_tools(vec![calls(&[("c1", "slow", "{}")])]).await;
    let dropped = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&dropped);
    session.set_tools(
        ToolSet::new().with(FnTool::new(definition("slow"), move |_, context| {
            let gone = Gone(Arc::clone(&counter));
            async move {
                let _gone = gone;
                context.progress("half way").await;
                std::future::pending().await
            }
        })),
    );
    let mut turn = session.send(text("Go"));
    while !matches!(turn.next().await, Some(Event::ToolProgress { text, .. }) if text == "half way")
    {
    }
    turn.cancel();
    assert_eq!(turn.outcome().await, Outcome::Cancelled);
    let told = "user: error #c1: the request was cancelled while the tool was running; what the tool did before that is unknown";
    assert_eq!(
        history(&session),
        ["user: Go", "assistant: call slow#c1", told]
    );
    assert_eq!(
        dropped.load(Ordering::SeqCst),
        1,
        "the tool is gone before the request has ended"
    );
    assert_eq!(session.open_requests(), 0);
    server.quiet().await;
}

#[tokio::test]
async fn a_hook_stops_a_turn() {
    let (server, session) = with_tools(vec![calls(&[("c1", "look", "{}")]), says("Never.")]).await;
    let hooks = Arc::new(Watching {
        stop_at: Some(2),
        ..Watching::default()
    });
    let (_, outcome) = events(session.with_hooks(hooks).send(text("Go"))).await;
    assert_eq!(
        outcome,
        Outcome::Finished(StopReason::Stopped("enough".into()))
    );
    assert_eq!(server.received().len(), 1);
    assert_eq!(history(&session).len(), 3, "earlier messages stay");
}

#[tokio::test]
async fn a_hook_refuses_a_tool() {
    let (_server, session) = with_tools(vec![
        calls(&[("c1", "look", "{}"), ("c2", "count", "{}")]),
        says("Ok."),
    ])
    .await;
    let hooks = Arc::new(Watching {
        refuse: Some("look"),
        ..Watching::default()
    });
    events(
        session
            .with_hooks(Arc::clone(&hooks) as Arc<dyn Hooks>)
            .send(text("Go")),
    )
    .await;
    assert_eq!(
        history(&session)[2],
        "user: error #c1: not here | result #c2: {}"
    );
    assert_eq!(*hooks.asked.lock().unwrap(), ["look", "count"]);
}

#[tokio::test]
async fn a_hook_rewrites_arguments_for_the_execution_only() {
    for (rewritten, ran_with) in [
        (json!({"at": "b"}), "{\"at\":\"b\"}"),
        (json!("malformed"), "{\"at\":\"a\"}"),
    ] {
        let (server, session) =
            with_tools(vec![calls(&[("c1", "look", r#"{"at":"a"}"#)]), says("Ok.")]).await;
        let hooks = Arc::new(Watching {
            rewrite: Some(rewritten),
            ..Watching::default()
        });
        events(session.with_hooks(hooks).send(text("Go"))).await;
        assert_eq!(
            history(&session)[2],
            format!("user: result #c1: {ran_with}")
        );
        let body = server.received()[1].json().to_string();
        assert!(
            body.contains(r#"{\"at\":\"a\"}"#),
            "the history keeps what the model said: {body}"
        );
    }
}

#[tokio::test]
async fn a_hook_suppresses_or_replaces_what_is_shown() {
    for (show, shown) in [
        (MessageDecision::Suppress, ""),
        (MessageDecision::Replace("[removed]".into()), "[removed]"),
        (MessageDecision::AsIs, "The secret."),
    ] {
        let (_server, session) = with_tools(vec![says("The secret.")]).await;
        let hooks = Arc::new(Watching {
            show: Some(show),
            ..Watching::default()
        });
        let (events, _) = events(
            session
                .with_hooks(Arc::new(NoHooks))
                .with_message_hook(hooks)
                .send(text("Go")),
        )
        .await;
        assert_eq!(said(&events), shown);
        assert_eq!(
            history(&session)[1],
            "assistant: The secret.",
            "the history keeps the original"
        );
    }
}

#[tokio::test]
async fn the_observer_sees_what_the_receiver_sees_and_the_end() {
    let (_server, session) = with_tools(vec![calls(&[("c1", "look", "{}")]), says("Ok.")]).await;
    let hooks = Arc::new(Watching::default());
    let (mut received, outcome) = events(
        session
            .with_hooks(Arc::clone(&hooks) as Arc<dyn Hooks>)
            .send(text("Go")),
    )
    .await;
    received.push(Event::Done(outcome));
    assert_eq!(*hooks.seen.lock().unwrap(), received);
}

#[tokio::test]
async fn an_aborted_answer_of_the_agent_loop_stays_if_it_is_text_only() {
    let half = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half"}}]}"#;
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{"}}]}}]}"#;
    for (data, left) in [(vec![half], 2), (vec![half, call], 1)] {
        let mut acts = sse(&data);
        acts.push(Act::Hang);
        let (_server, session) = with_tools(vec![acts]).await;
        let mut turn = session
            .with_hooks(Arc::new(Watching::default()))
            .send(text("Go"));
        let mut seen = 0;
        while seen < data.len() {
            let event = turn
                .next()
                .await
                .expect("text and call are reported before the stream ends");
            seen += usize::from(matches!(
                event,
                Event::Text(_) | Event::ToolCallStart { .. }
            ));
        }
        turn.cancel();
        assert_eq!(turn.outcome().await, Outcome::Cancelled);
        assert_eq!(history(&session).len(), left, "{:?}", history(&session));
    }
}

#[tokio::test]
async fn usage_adds_up_over_rounds_and_can_be_seeded() {
    let (_server, session) = with_tools(vec![calls(&[("c1", "look", "{}")]), says("Ok.")]).await;
    session.seed_usage(Usage {
        input: 1000,
        output: 100,
        ..Usage::default()
    });
    events(
        session
            .with_hooks(Arc::new(Watching::default()))
            .send(text("Go")),
    )
    .await;
    assert_eq!(
        session.usage(),
        Usage {
            input: 1030,
            output: 107,
            ..Usage::default()
        }
    );
}

#[tokio::test]
async fn tools_can_be_swapped_between_rounds() {
    let (server, session) = with_tools(vec![calls(&[("c1", "look", "{}")]), says("Ok.")]).await;
    let swapping = session.clone();
    session.set_tools(
        ToolSet::new().with(FnTool::new(definition("look"), move |_, _| {
            swapping.set_tools(ToolSet::new().with(echo("other")));
            async move { ToolOutput::text("swapped") }
        })),
    );
    events(session.send(text("Go"))).await;
    let offered = server.received()[1].json()["tools"][0]["function"]["name"].clone();
    assert_eq!(offered, "other");
}

#[tokio::test]
async fn hooks_are_asked_about_every_call_before_any_tool_runs() {
    struct Late {
        ran: Arc<AtomicUsize>,
        seen: Mutex<Vec<usize>>,
    }
    impl Hooks for Late {
        fn before_tool<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                self.seen
                    .lock()
                    .unwrap()
                    .push(self.ran.load(Ordering::SeqCst));
                ToolDecision::Run
            })
        }
    }
    let (_server, session) = with_tools(vec![
        calls(&[("c1", "count", "{}"), ("c2", "count", "{}")]),
        says("Ok."),
    ])
    .await;
    let ran = Arc::<AtomicUsize>::default();
    let counting = Arc::clone(&ran);
    session.set_tools(
        ToolSet::new().with(FnTool::new(definition("count"), move |_, _| {
            counting.fetch_add(1, Ordering::SeqCst);
            async { ToolOutput::text("ran") }
        })),
    );
    let hooks = Arc::new(Late {
        ran: Arc::clone(&ran),
        seen: Mutex::default(),
    });
    events(
        session
            .with_hooks(Arc::clone(&hooks) as Arc<dyn Hooks>)
            .send(text("Go")),
    )
    .await;
    assert_eq!(
        (
            hooks.seen.lock().unwrap().as_slice(),
            ran.load(Ordering::SeqCst)
        ),
        ([0, 0].as_slice(), 2)
    );
}

#[tokio::test]
async fn only_some_of_many_calls_run_at_the_same_time() {
    let ids: Vec<String> = (0..60).map(|number| format!("c{number}")).collect();
    let many: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "busy", "{}")).collect();
    let (_server, session) = with_tools(vec![calls(&many), says("Ok.")]).await;
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counts = (Arc::clone(&now), Arc::clone(&most));
    session.set_tools(
        ToolSet::new().with(FnTool::new(definition("busy"), move |_, _| {
            let (now, most) = counts.clone();
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                ToolOutput::text("done")
            }
        })),
    );
    events(session.send(text("Go"))).await;
    assert_eq!(session.history()[2].blocks.len(), 60);
    assert_eq!(most.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn a_round_runs_with_the_tools_that_the_model_was_told_of() {
    let mut slowly = calls(&[("c1", "look", "{}")]);
    slowly.insert(1, Act::Pause(Duration::from_millis(200)));
    let (server, session) = with_tools(vec![slowly, says("Ok.")]).await;
    let turn = session.send(text("Go"));
    while server.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    session.set_tools(ToolSet::new().with(echo("other")));
    events(turn).await;
    assert_eq!(history(&session)[2], "user: result #c1: {}");
    assert_eq!(
        server.received()[1].json()["tools"][0]["function"]["name"],
        "other"
    );
}

#[tokio::test]
async fn cancelling_while_a_message_waits_to_be_shown_answers_its_calls() {
    struct Pondering;
    impl MessageHook for Pondering {
        fn before_message<'a>(&'a self, _: &'a str) -> BoxFuture<'a, MessageDecision> {
            Box::pin(std::future::pending())
        }
    }
    let both = r#"{"choices":[{"index":0,"delta":{"content":"Let me look.","tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let (_server, session) = with_tools(vec![sse(&[both, "[DONE]"])]).await;
    let mut turn = session
        .with_hooks(Arc::new(NoHooks))
        .with_message_hook(Arc::new(Pondering))
        .send(text("Go"));
    while !matches!(turn.next().await, Some(Event::ToolCallEnd(_))) {}
    tokio::time::sleep(Duration::from_millis(30)).await;
    turn.cancel();
    assert_eq!(turn.outcome().await, Outcome::Cancelled);
    let told = "user: error #c1: the tool did not run: the request was cancelled";
    assert_eq!(
        history(&session),
        ["user: Go", "assistant: Let me look. | call look#c1", told]
    );
}

#[tokio::test]
async fn text_that_was_held_back_is_shown_if_it_stays() {
    struct Holding;
    impl MessageHook for Holding {
        fn before_message<'a>(&'a self, _: &'a str) -> BoxFuture<'a, MessageDecision> {
            Box::pin(async { MessageDecision::AsIs })
        }
    }
    let half = r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    let (_server, session) = with_tools(vec![sse(&[half])]).await;
    let (events, outcome) = events(
        session
            .with_hooks(Arc::new(NoHooks))
            .with_message_hook(Arc::new(Holding))
            .send(text("Go")),
    )
    .await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(
        (said(&events).as_str(), history(&session)[1].as_str()),
        ("half", "assistant: half")
    );
}

#[tokio::test]
async fn a_hook_that_panics_ends_the_request_and_nothing_else() {
    struct Planted;
    impl Hooks for Planted {
        fn before_turn(&self, _: u32) -> BoxFuture<'_, RoundDecision> {
            panic!("planted")
        }
    }
    let (_server, session) = with_tools(vec![says("Ok.")]).await;
    let (_, outcome) = events(session.with_hooks(Arc::new(Planted)).send(text("Go"))).await;
    assert!(
        matches!(&outcome, Outcome::Failed(error) if error.message.contains("panicked")),
        "{outcome:?}"
    );
    assert_eq!(session.open_requests(), 0);
    let note = reqc::conversation::Item::Notification {
        text: "A note.".into(),
        title: None,
        source: None,
    };
    session.inject(note).unwrap();
    assert_eq!(
        history(&session).last().unwrap(),
        "system: A note.",
        "no request is running, so it does not wait"
    );
    let (_, outcome) = events(session.send(text("Again"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
}
