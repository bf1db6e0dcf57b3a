//! Which tools run concurrently, and with which arguments.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqc::conversation::Tool as Definition;
use reqc::runtime::hooks::{Hooks, ToolDecision};
use reqc::runtime::tools::{BoxFuture, Tool, ToolContext, ToolOutput, ToolSet, TypedTool};
use reqc::runtime::{Category, Event, Outcome, StopReason, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fixture::{events, history, session, text};
use crate::server::{Server, calls, says};

/// A tool that notes when it begins and ends, and yields in between so that others can begin.
struct Noting {
    definition: Definition,
    is_concurrent: bool,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn new(name: &str, is_concurrent: bool, notes: &Arc<Mutex<Vec<String>>>) -> Noting {
        let schema = json!({"type": "object", "properties": {"ms": {"type": "integer"}}});
        let Value::Object(schema) = schema else {
            unreachable!("it is one")
        };
        let definition = Definition {
            name: name.into(),
            description: "notes".into(),
            schema,
        };
        Noting {
            definition,
            is_concurrent,
            notes: Arc::clone(notes),
        }
    }
}

impl Tool for Noting {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call(&self, input: Value, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            self.notes
                .lock()
                .unwrap()
                .push(format!("+{}", self.definition.name));
            tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or(0))).await;
            self.notes
                .lock()
                .unwrap()
                .push(format!("-{}", self.definition.name));
            ToolOutput::text(&*self.definition.name)
        })
    }

    fn is_concurrent(&self) -> bool {
        self.is_concurrent
    }
}

/// The IDs of the results that the events report, in order.
fn told(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| {
            if let Event::ToolResult { id, .. } = event {
                Some(&**id)
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn one_after_another_in_the_order_of_the_calls_if_the_host_says_so() {
    let wanted = [
        ("c1", "a", r#"{"ms":30}"#),
        ("c2", "b", r#"{"ms":0}"#),
        ("c3", "a", r#"{"ms":10}"#),
    ];
    for most in [0, 1] {
        let server = Server::answering(vec![calls(&wanted), says("Ok.")]).await;
        let notes = Arc::default();
        let session = session(&server.url);
        session.set_tools(
            ToolSet::new()
                .with(Noting::new("a", true, &notes))
                .with(Noting::new("b", true, &notes)),
        );
        session.set_tools_at_once(most);
        let (events, outcome) = events(session.send(text("Go"))).await;
        assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
        assert_eq!(*notes.lock().unwrap(), ["+a", "-a", "+b", "-b", "+a", "-a"]);
        assert_eq!(told(&events), ["c1", "c2", "c3"]);
        assert_eq!(
            history(&session)[2],
            "user: result #c1: a | result #c2: b | result #c3: a"
        );
    }
}

#[tokio::test]
async fn without_that_results_are_told_as_they_come_and_sent_in_the_order_of_the_calls() {
    let wanted = [("c1", "a", r#"{"ms":60}"#), ("c2", "b", "{}")];
    let server = Server::answering(vec![calls(&wanted), says("Ok.")]).await;
    let notes = Arc::default();
    let session = session(&server.url);
    session.set_tools(
        ToolSet::new()
            .with(Noting::new("a", true, &notes))
            .with(Noting::new("b", true, &notes)),
    );
    let (events, _) = events(session.send(text("Go"))).await;
    assert_eq!(told(&events), ["c2", "c1"]);
    assert_eq!(history(&session)[2], "user: result #c1: a | result #c2: b");
}

#[tokio::test]
async fn a_tool_that_is_not_concurrent_runs_alone_and_nobody_overtakes_it() {
    let wanted = [
        ("c1", "read", r#"{"ms":20}"#),
        ("c2", "read", r#"{"ms":20}"#),
        ("c3", "write", r#"{"ms":10}"#),
        ("c4", "read", r#"{"ms":20}"#),
        ("c5", "read", r#"{"ms":20}"#),
    ];
    let server = Server::answering(vec![calls(&wanted), says("Ok.")]).await;
    let notes = Arc::default();
    let session = session(&server.url);
    let tools = ToolSet::new()
        .with(Noting::new("read", true, &notes))
        .with(Noting::new("write", false, &notes));
    session.set_tools(tools);
    events(session.send(text("Go"))).await;
    let (two, alone) = (["+read", "+read", "-read", "-read"], ["+write", "-write"]);
    assert_eq!(*notes.lock().unwrap(), [&two[..], &alone, &two].concat());
}

#[tokio::test]
async fn those_that_wait_for_their_turn_when_the_request_is_cancelled_did_not_run() {
    let wanted = [
        ("c1", "a", "{}"),
        ("c2", "a", r#"{"ms":60000}"#),
        ("c3", "a", "{}"),
    ];
    let server = Server::answering(vec![calls(&wanted)]).await;
    let notes = Arc::default();
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(Noting::new("a", true, &notes)));
    session.set_tools_at_once(1);
    let mut running = session.send(text("Go"));
    while !matches!(running.next().await, Some(Event::ToolResult { .. }) | None) {}
    // The second call begins as soon as the first has ended.
    while notes.lock().unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
    running.cancel();
    assert_eq!(running.outcome().await, Outcome::Cancelled);
    let results = &history(&session)[2];
    assert!(
        results.starts_with("user: result #c1: a | error #c2: the request was cancelled while"),
        "{results}"
    );
    assert!(
        results.ends_with("| error #c3: the tool did not run: the request was cancelled"),
        "{results}"
    );
}

/// Rewrites the arguments of each call to `rewrite`, if it is set, and counts the calls.
#[derive(Default)]
struct Asked {
    times: AtomicUsize,
    rewrite: Option<Value>,
}

impl Hooks for Asked {
    fn before_tool<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        self.times.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            self.rewrite
                .clone()
                .map_or(ToolDecision::Run, ToolDecision::Rewrite)
        })
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_go_back_to_the_model_and_nobody_is_asked() {
    let server = Server::answering(vec![
        calls(&[("c1", "a", r#"{"ms":"soon"}"#)]),
        says("Sorry."),
    ])
    .await;
    let (notes, hooks) = (Arc::default(), Arc::new(Asked::default()));
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(Noting::new("a", true, &notes)));
    events(
        session
            .with_hooks(Arc::clone(&hooks) as Arc<dyn Hooks>)
            .send(text("Go")),
    )
    .await;
    let told = "the arguments do not match the schema of `a`: at `/ms`, \"soon\" is not of type \"integer\"";
    assert_eq!(history(&session)[2], format!("user: error #c1: {told}"));
    let sent = server.received()[1].json().to_string();
    assert!(
        sent.contains("the arguments do not match the schema of `a`"),
        "{sent}"
    );
    assert!(notes.lock().unwrap().is_empty() && hooks.times.load(Ordering::SeqCst) == 0);
}

#[tokio::test]
async fn what_a_hook_rewrites_has_to_fit_as_well() {
    let server = Server::answering(vec![calls(&[("c1", "a", "{}")]), says("Ok.")]).await;
    let (notes, hooks) = (
        Arc::default(),
        Asked {
            rewrite: Some(json!({"ms": "later"})),
            ..Asked::default()
        },
    );
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(Noting::new("a", true, &notes)));
    events(session.with_hooks(Arc::new(hooks)).send(text("Go"))).await;
    let results = &history(&session)[2];
    assert!(
        results.ends_with("is not of type \"integer\" (a hook rewrote them)"),
        "{results}"
    );
    assert!(notes.lock().unwrap().is_empty());
}

/// A location to look for.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Place {
    /// Its name.
    name: String,
    height: Option<i32>,
}

#[tokio::test]
async fn a_typed_tool_is_called_with_its_type_or_not_at_all() {
    let wanted = [
        ("c1", "find", r#"{"name":"K2","height":8611}"#),
        ("c2", "find", r#"{"height":"high"}"#),
    ];
    let server = Server::answering(vec![calls(&wanted), says("Ok.")]).await;
    let find = TypedTool::new("find", "Finds a place.", |place: Place, _| async move {
        place
            .height
            .map(|height| json!({"name": place.name, "height": height}))
            .ok_or("nobody knows how high it is")
    });
    let session = session(&server.url);
    session.set_tools(ToolSet::new().with(find.not_concurrent()));
    session.send("Go").outcome().await;
    let results = history(&session)[2].clone();
    assert!(
        results.starts_with(
            r#"user: result #c1: {"name":"K2","height":8611} | error #c2: the arguments do not match"#
        ),
        "{results}"
    );
    assert!(
        results.contains(r#"at `/height`, "high" is not of type"#)
            && results.contains("\"name\" is a required property"),
        "{results}"
    );
    let offered = &server.received()[0].json()["tools"][0]["function"];
    assert_eq!(
        offered["parameters"]["properties"]["name"],
        json!({"type": "string", "description": "Its name."})
    );
    assert_eq!(offered["parameters"]["required"], json!(["name"]));
    assert!(!offered.to_string().contains("int32"), "{offered}");
}

#[tokio::test]
async fn a_structured_answer_is_a_value_or_an_error_that_says_where_it_is_not() {
    let answers = vec![
        says(r#"{"name":"K2","height":8611}"#),
        says(r#"{"name":7}"#),
        says("K2, of course."),
    ];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    let place = session.send("Which?").answer_as::<Place>().await;
    assert_eq!(
        place,
        Ok(Place {
            name: "K2".into(),
            height: Some(8611)
        })
    );
    let error = session
        .send("Which?")
        .answer_as::<Place>()
        .await
        .expect_err("a number");
    assert_eq!(
        error.message,
        "the answer does not match `Place`: at `/name`, 7 is not of type \"string\""
    );
    let answer = session.send("Which?").answer().await;
    let error = answer.parse::<Place>().expect_err("no JSON");
    assert_eq!(
        (error.category, answer.text.as_str()),
        (Category::Provider, "K2, of course.")
    );
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_no_value() {
    let cut = r#"{"choices":[{"index":0,"delta":{"content":"{}"},"finish_reason":"length"}]}"#;
    let server = Server::answering(vec![crate::server::sse(&[cut, "[DONE]"])]).await;
    let error = session(&server.url)
        .send("Which?")
        .answer_as::<Place>()
        .await
        .expect_err("it is cut off");
    assert_eq!(
        error.message,
        "the answer is incomplete: it ended with `max_tokens`"
    );
}

#[tokio::test]
async fn a_typed_tool_without_arguments_takes_an_object_without_members() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    let unit = TypedTool::new("now", "Tells the time.", |(): (), _| async { "noon" });
    let named = TypedTool::new("today", "Tells the day.", |_: Nothing, _| async {
        "Monday"
    });
    let tools = ToolSet::new().with(unit).with(named);
    for definition in tools.definitions() {
        let schema = Value::Object(definition.schema);
        assert_eq!(
            (&schema["type"], &schema["properties"]),
            (&json!("object"), &json!({})),
            "{}",
            definition.name
        );
    }
    let answers = vec![
        calls(&[
            ("c1", "now", "{}"),
            ("c2", "today", ""),
            ("c3", "now", "[]"),
        ]),
        says("Ok."),
    ];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    session.set_tools(tools);
    events(session.send(text("When?"))).await;
    let history = history(&session);
    assert!(
        history[2].starts_with("user: result #c1: noon | result #c2: Monday | error #c3: "),
        "{}",
        history[2]
    );
}
