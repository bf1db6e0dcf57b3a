//! Edge cases of turns: cancelled tools, incomplete answers, and how a session continues after
//! them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqc::conversation::log::{CutOff, Log};
use reqc::conversation::{Block, Conversation, Item, Message, Role, Task, Tool as Definition};
use reqc::runtime::hooks::{Hooks, NoHooks, RoundDecision, ToolDecision, before_tool};
use reqc::runtime::stream::{Decoder, Framing, Limits, Source};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{
    Agent, Answer, Category, ClientApi, Error, Event, Outcome, Refusal, Run, Session, SessionStart,
    StopReason, ToolCall, Transport, TransportOptions, WireFormat,
};
use reqc::world::{Journal, MemoryJournal};
use serde_json::{Value, json};

use crate::fixture::{
    Planted, agent, environment, events, history, options, said, session, text, transport,
};
use crate::server::{Act, Server, calls, says, sse, status, stream_head};

const HALF: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"half an ans"}}]}"#;

fn definition(name: &str) -> Definition {
    let schema = json!({"type": "object"})
        .as_object()
        .cloned()
        .expect("an object");
    Definition {
        name: name.into(),
        description: "".into(),
        schema,
    }
}

/// Two tools: `quick` answers at once, `slow` never does.
fn quick_and_slow() -> ToolSet {
    let quick = FnTool::new(definition("quick"), |_, _| async {
        ToolOutput::text("done")
    });
    let slow = FnTool::new(definition("slow"), |_, _| std::future::pending());
    ToolSet::new().with(quick).with(slow)
}

fn journaled(url: &str, journal: &MemoryJournal) -> Session {
    let loaded = Log::parse(&journal.bytes()).expect("a prefix always loads");
    let start = match loaded.log {
        Some(log) => SessionStart::Resumed(log, Conversation::default()),
        None => SessionStart::New(Conversation::default()),
    };
    let journal: Box<dyn Journal> = Box::new(journal.clone());
    Session::journaled(agent(url), transport(), start, journal).expect("it can be written")
}

/// The role and text of each message in the last request.
fn sent(server: &Server) -> Vec<(String, String)> {
    let body = server.received().last().expect("a request").json();
    let line = |message: &Value| {
        let text = message["content"]
            .as_str()
            .map_or_else(|| message["content"].to_string(), str::to_owned);
        (message["role"].as_str().expect("a role").to_owned(), text)
    };
    body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(line)
        .collect()
}

/// Checks that each call in the last request has a result after it.
fn assert_answered(server: &Server) {
    let body = server.received().last().expect("a request").json();
    let messages = body["messages"].as_array().expect("messages");
    let called = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten();
    let called: Vec<&str> = called
        .map(|call| call["id"].as_str().expect("an id"))
        .collect();
    let answered: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .collect();
    assert_eq!(called, answered, "{body}");
}

async fn until(turn: &mut Run, wanted: impl Fn(&Event) -> bool) {
    while !wanted(&turn.next().await.expect("it comes")) {}
}

#[tokio::test]
async fn what_tools_did_before_a_cancel_is_never_forgotten() {
    for under_hooks in [false, true] {
        // The slow tool is called first. Results must be in the order of the calls nevertheless.
        let both = calls(&[("c1", "slow", "{}"), ("c2", "quick", "{}")]);
        let server = Server::answering(vec![both, says("Ok.")]).await;
        let journal = MemoryJournal::default();
        let session = journaled(&server.url, &journal);
        session.set_tools(quick_and_slow());
        let mut turn = match under_hooks {
            true => session.with_hooks(Arc::new(NoHooks)).send(text("Go")),
            false => session.send(text("Go")),
        };
        until(&mut turn, |event| matches!(event, Event::ToolResult { .. })).await;
        turn.cancel();
        assert_eq!(turn.outcome().await, Outcome::Cancelled);
        let stopped = "error #c1: the request was cancelled while the tool was running; what the tool did before that is unknown";
        let expected = [
            "user: Go",
            "assistant: call slow#c1 | call quick#c2",
            &format!("user: {stopped} | result #c2: done"),
        ];
        assert_eq!(history(&session), expected);
        assert_eq!(
            history(&journaled(&server.url, &journal))[..3],
            expected,
            "the same after a restart"
        );
        events(session.send(text("And now?"))).await;
        assert_answered(&server);
        assert!(
            sent(&server)
                .iter()
                .any(|(_, text)| text.contains("was interrupted"))
        );
    }
}

#[tokio::test]
async fn a_result_is_kept_before_it_is_shown() {
    let server =
        Server::answering(vec![calls(&[("c1", "quick", "{}"), ("c2", "slow", "{}")])]).await;
    let journal = MemoryJournal::default();
    let session = journaled(&server.url, &journal);
    session.set_tools(quick_and_slow());
    let mut turn = session.send(text("Go"));
    until(&mut turn, |event| matches!(event, Event::ToolResult { .. })).await;
    let log = Log::parse(&journal.bytes()).unwrap().log.unwrap();
    assert!(
        matches!(log.history()[2].blocks.as_slice(), [Block::ToolResult { content, .. }] if **content == *"done")
    );
    assert_eq!(log.open_calls().len(), 1);
}

#[tokio::test]
async fn killed_at_any_write_a_round_of_tools_goes_on_with_a_result_for_each_call() {
    let rounds = |number: usize| match number {
        0 => calls(&[
            ("c1", "quick", "{}"),
            ("c2", "quick", "{}"),
            ("c3", "quick", "{}"),
        ]),
        _ => says("Ok."),
    };
    let server = Server::start(move |number, _| rounds(number)).await;
    let whole = MemoryJournal::default();
    let session = journaled(&server.url, &whole);
    session.set_tools(quick_and_slow());
    events(session.send(text("Go"))).await;
    assert_eq!(
        history(&session)[2],
        "user: result #c1: done | result #c2: done | result #c3: done"
    );
    let bytes = whole.bytes();
    let ends: Vec<usize> = (1..=bytes.len())
        .filter(|end| bytes[end - 1] == b'\n')
        .collect();
    assert!(
        ends.len() >= 9,
        "each step has a line: {}",
        String::from_utf8_lossy(&bytes)
    );
    for end in ends.into_iter().flat_map(|end| [end - 3, end]) {
        let journal = MemoryJournal::holding(&bytes[..end]);
        let known = Log::parse(&bytes[..end])
            .unwrap()
            .log
            .map_or(0, |log| log.to_text().matches("\"done\"").count());
        let session = journaled(&server.url, &journal);
        events(session.send(text("And now?"))).await;
        assert_answered(&server);
        assert_eq!(
            sent(&server)
                .iter()
                .filter(|(_, text)| text == "done")
                .count(),
            known,
            "{end}"
        );
        assert_eq!(
            Log::parse(&journal.bytes()).unwrap().tail_bytes,
            0,
            "{end}: nothing is glued to a torn line"
        );
    }
}

/// Leaves an answer incomplete in the given way.
async fn cut_off(server: &Server, session: &Session, why: CutOff) {
    let mut turn = session.send(text("Hi"));
    if why == CutOff::Cancelled {
        until(&mut turn, |event| matches!(event, Event::Text(_))).await;
        turn.cancel();
    }
    let outcome = turn.outcome().await;
    match why {
        CutOff::Cancelled => assert_eq!(outcome, Outcome::Cancelled),
        CutOff::Broken => assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}"),
        CutOff::Refused => assert_eq!(outcome, Outcome::Finished(StopReason::Refusal)),
        _ => assert_eq!(outcome, Outcome::Finished(StopReason::MaxTokens)),
    }
    assert_eq!((history(session).len(), server.received().len()), (2, 1));
}

fn answers(why: CutOff) -> Vec<Vec<Act>> {
    let ends = |reason: &str| {
        let stop =
            format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        sse(&[HALF, &stop, "[DONE]"])
    };
    let first = match why {
        CutOff::Cancelled => sse(&[HALF]).into_iter().chain([Act::Hang]).collect(),
        CutOff::Broken => sse(&[HALF]),
        CutOff::Refused => ends("content_filter"),
        _ => ends("length"),
    };
    vec![first, says("Whole."), says("More.")]
}

#[tokio::test]
async fn what_follows_an_answer_that_was_cut_off_says_so() {
    for why in CutOff::ALL
        .into_iter()
        .filter(|why| !matches!(why, CutOff::Paused | CutOff::TimedOut))
    {
        for (restarts, asks) in [(false, false), (false, true), (true, false), (true, true)] {
            let server = Server::answering(answers(why)).await;
            let journal = MemoryJournal::default();
            let mut session = journaled(&server.url, &journal);
            cut_off(&server, &session, why).await;
            let log = Log::parse(&journal.bytes()).unwrap().log.unwrap();
            assert_eq!(
                (log.cut_off(), log.is_interrupted()),
                (Some(why), true),
                "{why:?}"
            );
            assert!(
                log.to_text()
                    .contains(&format!("\"cut_off\":\"{}\"", why.name())),
                "{}",
                log.to_text()
            );
            if restarts {
                session = journaled(&server.url, &journal);
            }
            let turn = if asks {
                session.send(text("And?"))
            } else {
                session.proceed()
            };
            assert_eq!(
                turn.outcome().await,
                Outcome::Finished(StopReason::EndTurn),
                "{why:?}"
            );
            let lines = history(&session);
            let mut expected = vec!["user: Hi", "assistant: half an ans", lines[2].as_str()];
            expected.extend(
                asks.then_some("user: And?")
                    .into_iter()
                    .chain(["assistant: Whole."]),
            );
            assert_eq!(lines, expected);
            assert!(
                lines[2].starts_with("system: The previous turn was interrupted: "),
                "{}",
                lines[2]
            );
            assert_ne!(
                sent(&server).last().unwrap().0,
                "assistant",
                "never as the beginning of an answer"
            );
            // The interruption is reported only once.
            events(session.send(text("More?"))).await;
            assert_eq!(
                history(&session)
                    .iter()
                    .filter(|line| line.contains("interrupted"))
                    .count(),
                1
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_without_a_word_is_told_too() {
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#;
    let server = Server::answering(vec![sse(&[stop, "[DONE]"]), says("Ok.")]).await;
    let session = session(&server.url);
    assert_eq!(
        session.send(text("Hi")).outcome().await,
        Outcome::Finished(StopReason::Refusal)
    );
    assert_eq!(history(&session), ["user: Hi"]);
    events(session.proceed()).await;
    let told = "system: The previous turn was interrupted: the model or a filter of its provider refused to answer.";
    assert_eq!(history(&session), ["user: Hi", told, "assistant: Ok."]);
}

#[tokio::test]
async fn an_item_comes_behind_word_of_the_answer_that_was_cut_off() {
    let server = Server::answering(answers(CutOff::Broken)).await;
    let session = session(&server.url);
    cut_off(&server, &session, CutOff::Broken).await;
    session
        .inject(Item::Notification {
            text: "It is noon.".into(),
            title: None,
            source: None,
        })
        .unwrap();
    let lines = history(&session);
    assert!(
        lines[2].contains("was interrupted") && lines[3].contains("noon"),
        "{lines:?}"
    );
    events(session.send(text("And?"))).await;
    assert_eq!(
        history(&session)
            .iter()
            .filter(|line| line.contains("interrupted"))
            .count(),
        1
    );
}

#[tokio::test]
async fn calls_of_a_refused_answer_do_not_run() {
    let mut refused = calls(&[("c1", "quick", "{}")]);
    for act in &mut refused {
        if let Act::Bytes(bytes) = act {
            *bytes = String::from_utf8_lossy(bytes)
                .replace("\"tool_calls\"}", "\"content_filter\"}")
                .into_bytes();
        }
    }
    let server = Server::answering(vec![refused]).await;
    let session = session(&server.url);
    session.set_tools(quick_and_slow());
    assert_eq!(
        session.send(text("Go")).outcome().await,
        Outcome::Finished(StopReason::Refusal)
    );
    assert_eq!(history(&session), ["user: Go"]);
}

#[tokio::test]
async fn a_complete_chat_has_nothing_to_go_on_with() {
    let server = Server::answering(vec![says("Hello."), says("Again.")]).await;
    let journal = MemoryJournal::default();
    let first = journaled(&server.url, &journal);
    events(first.send(text("Hi"))).await;
    for session in [first.clone(), journaled(&server.url, &journal)] {
        let Outcome::Failed(error) = session.proceed().outcome().await else {
            panic!("it has no question")
        };
        assert_eq!(error.category, Category::Config);
        assert!(error.message.contains("nothing to answer"), "{error}");
    }
    assert_eq!(
        server.received().len(),
        1,
        "the answer is not sent as the beginning of another"
    );
    first
        .inject(Item::Notification {
            text: "It is noon.".into(),
            title: None,
            source: None,
        })
        .unwrap();
    assert_eq!(
        first.proceed().outcome().await,
        Outcome::Finished(StopReason::EndTurn)
    );
}

#[tokio::test]
async fn a_host_may_begin_the_answer_itself() {
    let server = Server::answering(vec![says(" upon a time.")]).await;
    let message = |role, said: &str| Message {
        role,
        blocks: text(said),
        item: None,
    };
    let given = vec![
        message(Role::User, "Tell."),
        message(Role::Assistant, "Once"),
    ];
    let conversation = Conversation {
        task: Task::Chat(given),
        ..Conversation::default()
    };
    let session = Session::new(agent(&server.url), transport(), conversation);
    assert_eq!(
        session.proceed().outcome().await,
        Outcome::Finished(StopReason::EndTurn)
    );
    assert_eq!(
        sent(&server).last().unwrap(),
        &("assistant".to_owned(), "Once".to_owned())
    );
}

#[tokio::test]
async fn a_question_that_was_cancelled_is_told_when_another_one_comes() {
    let server = Server::answering(vec![vec![Act::Hang], says("Ok.")]).await;
    let session = session(&server.url);
    let turn = session.send(text("One"));
    while server.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    turn.cancel();
    assert_eq!(turn.outcome().await, Outcome::Cancelled);
    events(session.send(text("Two"))).await;
    let told = "system: The previous turn was interrupted: its answer was cancelled before it was complete.";
    assert_eq!(
        history(&session),
        ["user: One", told, "user: Two", "assistant: Ok."]
    );
}

#[tokio::test]
async fn a_failure_in_a_later_round_is_tried_again_without_a_word() {
    let answers = vec![
        calls(&[("c1", "quick", "{}")]),
        status(400, &[], "{}"),
        says("Ok."),
    ];
    let server = Server::answering(answers).await;
    let session = session(&server.url);
    session.set_tools(quick_and_slow());
    assert!(matches!(
        session.send(text("Go")).outcome().await,
        Outcome::Failed(_)
    ));
    assert_eq!(history(&session).len(), 3, "the tool's result stays");
    assert_eq!(
        session.proceed().outcome().await,
        Outcome::Finished(StopReason::EndTurn)
    );
    assert_eq!(history(&session).len(), 4);
}

fn failed(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_breaks_within_an_answer_may_succeed_later_and_is_not_tried_again() {
    let silent = sse(&[HALF]).into_iter().chain([Act::Hang]).collect();
    let garbled = sse(&[HALF, "{\"choices\":nonsense}"]);
    for broken in [
        sse(&[HALF]),
        silent,
        garbled,
        vec![stream_head()],
        vec![Act::Hang],
    ] {
        let server = Server::answering(vec![broken]).await;
        let options = TransportOptions {
            idle_timeout: Duration::from_millis(200),
            ..options()
        };
        let session = Session::new(
            agent(&server.url),
            Transport::new(Arc::new(Planted), options),
            Conversation::default(),
        );
        let error = failed(session.send(text("Hi")).outcome().await);
        assert!(error.retryable, "{error}");
        assert_eq!(server.received().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn a_server_says_whether_to_try_again() {
    for (code, wish, tries) in [
        (503, "false", 1),
        (429, "false", 1),
        (400, "true", 4),
        (503, "perhaps", 4),
    ] {
        let server =
            Server::start(move |_, _| status(code, &[("x-should-retry", wish)], "{}")).await;
        let error = failed(session(&server.url).send(text("Hi")).outcome().await);
        assert_eq!(
            (server.received().len(), error.retryable),
            (tries, tries > 1),
            "{code} {wish}"
        );
    }
}

#[tokio::test]
async fn the_ids_of_requests_and_answers_reach_errors_and_events() {
    let overloaded = r#"{"error":{"message":"no"},"request_id":"req_body"}"#;
    for (headers, wanted) in [
        (vec![("request-id", "req_1")], "req_body"),
        (vec![("X-Request-Id", "a b")], "req_body"),
    ] {
        let server = Server::answering(vec![status(400, &headers, overloaded)]).await;
        let error = failed(session(&server.url).send(text("Hi")).outcome().await);
        assert_eq!(error.request_id(), Some(wanted));
    }
    let server = Server::answering(vec![status(401, &[("x-request-id", "req_2")], "{}")]).await;
    let error = failed(session(&server.url).send(text("Hi")).outcome().await);
    assert!(error.to_string().ends_with("(request req_2)"), "{error}");
    assert_eq!(error.to_json()["request_id"], "req_2");

    let begun = r#"{"id":"chatcmpl-1","model":"m-2026","choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_3\r\nconnection: close\r\n\r\n";
    let acts = vec![
        Act::Bytes(head.into()),
        Act::Bytes(format!("data: {begun}\n\n").into()),
    ];
    let server = Server::answering(vec![acts]).await;
    let (events, outcome) = events(session(&server.url).send(text("Hi"))).await;
    let start = events.iter().find_map(|event| match event {
        Event::AnswerStart(info) => Some(info.clone()),
        _ => None,
    });
    let start = start.expect("the answer began");
    let known = [&start.request_id, &start.response_id, &start.model]
        .map(|it| it.as_deref().unwrap_or_default().to_owned());
    assert_eq!(known, ["req_3", "chatcmpl-1", "m-2026"]);
    assert_eq!(
        failed(outcome).response.as_deref(),
        Some(&start),
        "the error names the answer that broke off"
    );
}

#[tokio::test]
async fn an_error_within_a_stream_names_its_request() {
    let told =
        r#"{"error":{"message":"Overloaded","type":"overloaded_error"},"request_id":"req_4"}"#;
    let nameless = r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_5\r\nconnection: close\r\n\r\n";
    for (error, wanted) in [(told, "req_4"), (nameless, "req_5")] {
        let acts = vec![
            Act::Bytes(head.into()),
            Act::Bytes(format!("data: {HALF}\n\ndata: {error}\n\n").into()),
        ];
        let server = Server::answering(vec![acts, says("Ok.")]).await;
        let session = session(&server.url);
        let error = failed(session.send(text("Hi")).outcome().await);
        assert_eq!(
            (error.request_id(), error.retryable),
            (Some(wanted), true),
            "{error}"
        );
        assert_eq!(
            session.send(text("And?")).text().await,
            Ok("Ok.".to_owned())
        );
    }
}

/// Decodes a complete answer.
fn decoded(
    wire: WireFormat,
    framing: Framing,
    answer: &str,
) -> (Answer, Result<StopReason, Error>) {
    let source = Source {
        api: ClientApi::Claude,
        wire,
        id_prefix: "call_".into(),
    };
    let mut decoder = Decoder::new(source, framing, Limits::default());
    let pushed = decoder.push(answer.as_bytes(), &mut Vec::new());
    let ended = pushed.and_then(|()| decoder.finish(&mut Vec::new()));
    (decoder.into_answer(), ended)
}

#[test]
fn refusals_keep_the_providers_words() {
    let said = |refusal: &Option<Refusal>| {
        let refusal = refusal.clone().unwrap_or_default();
        (
            refusal.category.unwrap_or_default(),
            refusal.explanation.unwrap_or_default(),
        )
    };
    let claude = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\",\"stop_details\":\
                  {\"type\":\"refusal\",\"category\":\"cyber\",\"explanation\":\"It could enable harm.\"}}}\n\n\
                  data: {\"type\":\"message_stop\"}\n\n";
    let gemini = r#"{"candidates":[{"content":{"parts":[{"text":"ha"}]},"finishReason":"SAFETY","finishMessage":"Unsafe.","safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","blocked":true},{"category":"X"}]}]}"#;
    let azure = r#"{"choices":[{"index":0,"message":{"content":""},"finish_reason":"content_filter","content_filter_results":{"hate":{"filtered":true,"severity":"high"},"violence":{"filtered":false}}}]}"#;
    let cases = [
        (
            WireFormat::AnthropicMessages,
            Framing::Sse,
            claude,
            "cyber",
            "It could enable harm.",
        ),
        (
            WireFormat::GoogleGenerateContent,
            Framing::Whole,
            gemini,
            "SAFETY (HARM_CATEGORY_HARASSMENT)",
            "Unsafe.",
        ),
        (WireFormat::OpenAiChat, Framing::Whole, azure, "hate", ""),
    ];
    for (wire, framing, answer, category, explanation) in cases {
        let (answer, ended) = decoded(wire, framing, answer);
        assert_eq!(ended, Ok(StopReason::Refusal));
        assert_eq!(
            said(&answer.refusal),
            (category.to_owned(), explanation.to_owned())
        );
    }
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[{"category":"HARM_CATEGORY_HATE_SPEECH","blocked":true}]}}"#;
    let (_, ended) = decoded(WireFormat::GoogleGenerateContent, Framing::Whole, blocked);
    assert_eq!(
        ended.unwrap_err().detail.as_deref(),
        Some("SAFETY (HARM_CATEGORY_HATE_SPEECH)")
    );
}

#[tokio::test]
async fn a_refused_question_can_be_taken_back() {
    let server = Server::answering(answers(CutOff::Refused)).await;
    let session = session(&server.url);
    let (events, _) = events(session.send(text("Hi"))).await;
    assert!(
        matches!(
            events[events.len() - 2..],
            [Event::Refused(_), Event::TurnEnd { .. }]
        ),
        "{events:?}"
    );
    session.take_back(2).unwrap();
    assert_eq!(history(&session), [""; 0]);
    assert_eq!(session.take_back(1).unwrap_err().category, Category::Config);
    session.send(text("Hello")).outcome().await;
    assert_eq!(history(&session), ["user: Hello", "assistant: Whole."]);
}

/// Sees every event. Refuses every tool, and stops in the second round if `stops`, without a
/// reason.
#[derive(Default)]
struct Terse {
    stops: bool,
    seen: Mutex<Vec<&'static str>>,
}

impl Hooks for Terse {
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        let stops = self.stops && round == 2;
        Box::pin(async move {
            if stops {
                RoundDecision::Stop(" ".into())
            } else {
                RoundDecision::Go
            }
        })
    }

    fn before_tool<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        Box::pin(async { ToolDecision::Refuse(String::new()) })
    }

    fn observe(&self, event: &Event) {
        let name = event.to_json()["event"]
            .as_str()
            .expect("a name")
            .to_owned();
        self.seen
            .lock()
            .unwrap()
            .push(Box::leak(name.into_boxed_str()));
    }
}

#[tokio::test]
async fn an_empty_reason_gets_a_default() {
    let server = Server::answering(vec![calls(&[("c1", "quick", "{}")])]).await;
    let session = session(&server.url);
    session.set_tools(quick_and_slow());
    let hooks = Arc::new(Terse {
        stops: true,
        ..Terse::default()
    });
    let outcome = session.with_hooks(hooks).send(text("Go")).outcome().await;
    let Outcome::Finished(StopReason::Stopped(reason)) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(reason, "a hook stopped the request: no reason was given");
    assert_eq!(
        history(&session)[2],
        "user: error #c1: the call was refused: no reason was given"
    );
}

#[tokio::test]
async fn observers_see_messages_items_the_start_of_an_answer_and_the_end_of_one_that_failed() {
    let server = Server::answering(vec![sse(&[HALF]), says("Whole.")]).await;
    let session = session(&server.url);
    session
        .inject(Item::Notification {
            text: "It is noon.".into(),
            title: None,
            source: None,
        })
        .unwrap();
    let hooks = Arc::<Terse>::default();
    let watched = session.with_hooks(Arc::clone(&hooks) as Arc<dyn Hooks>);
    watched.send(text("Hi")).outcome().await;
    let first = [
        "item",
        "message",
        "turn_start",
        "answer_start",
        "text",
        "turn_cut_off",
        "done",
    ];
    assert_eq!(std::mem::take(&mut *hooks.seen.lock().unwrap()), first);
    watched.proceed().outcome().await;
    let second = [
        "item",
        "turn_start",
        "answer_start",
        "text",
        "usage",
        "turn_end",
        "done",
    ];
    assert_eq!(*hooks.seen.lock().unwrap(), second);
}

#[tokio::test]
async fn a_failed_turn_says_what_stays() {
    for (answer, stays) in [(sse(&[HALF]), true), (status(400, &[], "{}"), false)] {
        let server = Server::answering(vec![answer]).await;
        let session = session(&server.url);
        let (events, outcome) = events(session.send(text("Hi"))).await;
        let Some(Event::TurnCutOff {
            reason: CutOff::Broken,
            kept,
            error: Some(error),
        }) = events.last()
        else {
            panic!("{events:?}")
        };
        assert_eq!((*kept, error), (stays, &failed(outcome)));
        assert_eq!(history(&session).len(), if stays { 2 } else { 0 });
    }
}

#[tokio::test]
async fn a_turn_that_nobody_reads_comes_to_its_end_and_loses_nothing() {
    let piece = |number: usize| {
        json!({"choices": [{"index": 0, "delta": {"content": format!("{number} ")}}]}).to_string()
    };
    let mut data: Vec<String> = (0..2_000).map(piece).collect();
    data.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.into());
    data.push("[DONE]".into());
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let server = Server::answering(vec![sse(&data)]).await;
    let session = session(&server.url);
    let turn = session.send(text("Hi"));
    tokio::time::timeout(Duration::from_secs(20), session.idle())
        .await
        .expect("it does not hang");
    let (events, outcome) = events(turn).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert!(
        events.len() < 300,
        "pieces that wait are joined: {}",
        events.len()
    );
    let numbers: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    assert_eq!(said(&events), numbers.join(" ") + " ");
}

#[tokio::test]
async fn the_answers_text_is_one_call() {
    // Text that the model writes before it calls a tool is not part of the answer.
    let mut first = calls(&[("c1", "quick", "{}")]);
    first.insert(1, Act::Bytes(format!("data: {HALF}\n\n").into()));
    let server = Server::answering(vec![first, says("Done."), status(400, &[], "{}")]).await;
    let session = session(&server.url);
    session.set_tools(quick_and_slow());
    let answer = session.send(text("Go")).answer().await;
    assert_eq!(
        history(&session)[1],
        "assistant: half an ans | call quick#c1"
    );
    assert_eq!(answer.into_text(), Ok("Done.".to_owned()));
    assert_eq!(
        session
            .send(text("Go"))
            .answer()
            .await
            .into_text()
            .unwrap_err()
            .status,
        Some(400)
    );
}

#[tokio::test]
async fn a_plain_session_has_a_limit_of_rounds_that_can_be_set() {
    let server = Server::start(|_, _| calls(&[("c", "quick", "{}")])).await;
    let session = session(&server.url);
    session.set_tools(quick_and_slow());
    session.set_round_limit(1);
    let error = failed(session.send(text("Go")).outcome().await);
    assert_eq!(
        (error.category, server.received().len()),
        (Category::Tool, 2)
    );
}

#[test]
fn an_agent_that_cannot_be_used_names_what_was_found() {
    let broken = "name = \"Broken\"\nextends = \"Claude Chat\"\n[body]\nmax_tokens = [\n";
    let own = reqc::world::MemoryWorld::from_iter([("agents/broken.toml", broken)]);
    let bundled = Arc::new(reqc::system::Embedded::bundled());
    let compiler =
        reqc::compile::Compiler::load(Arc::new(own), bundled, reqc::repo::LoadOptions::default());
    let error = Agent::new(Arc::new(compiler), "Broken", environment())
        .err()
        .expect("it cannot be used");
    let detail = error.detail.expect("the findings");
    assert!(
        detail.contains("agents/broken.toml:") && detail.contains("toml/"),
        "{detail}"
    );
}

/// Refuses call `c3`, and rewrites the arguments of all others.
fn meddling() -> impl Hooks {
    before_tool(|call| match &*call.id {
        "c3" => ToolDecision::refuse("not this"),
        _ => ToolDecision::Rewrite(json!({"by": "the hook"})),
    })
}

#[tokio::test]
async fn a_cancel_among_calls_that_hooks_changed_leaves_a_result_for_each() {
    let answer = calls(&[
        ("c1", "slow", "{}"),
        ("c2", "echo", "{}"),
        ("c3", "echo", "{}"),
        ("c4", "echo", "{"),
    ]);
    let server = Server::answering(vec![answer, says("Ok.")]).await;
    let journal = MemoryJournal::default();
    let session = journaled(&server.url, &journal);
    let echo = FnTool::new(definition("echo"), |input, _| async move {
        ToolOutput::text(input.to_string())
    });
    session.set_tools(quick_and_slow().with(echo));
    let mut run = session.with_hooks(Arc::new(meddling())).send(text("Go"));
    for _ in ["c2", "c3", "c4"] {
        until(&mut run, |event| matches!(event, Event::ToolResult { .. })).await;
    }
    run.cancel();
    assert_eq!(run.outcome().await, Outcome::Cancelled);
    let lines = history(&session);
    let results: Vec<&str> = lines[2].split(" | ").collect();
    assert!(
        results[0].starts_with("user: error #c1: the request was cancelled"),
        "{lines:#?}"
    );
    assert_eq!(
        results[1..3],
        [r#"result #c2: {"by":"the hook"}"#, "error #c3: not this"]
    );
    assert!(
        results[3].starts_with("error #c4: the arguments are not a JSON object"),
        "{lines:#?}"
    );
    assert_eq!(
        history(&journaled(&server.url, &journal))[..3],
        lines,
        "the same after a restart"
    );
    events(session.send(text("And now?"))).await;
    assert_answered(&server);
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_call_leaves_the_words_alone() {
    let begun = r#"{"choices":[{"index":0,"delta":{"content":"Well, "}}]}"#;
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"quick","arguments":"{\"a\":"}}]}}]}"#;
    let filtered = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#;
    let refused = r#"{"choices":[{"index":0,"delta":{"refusal":"no."},"finish_reason":"stop"}]}"#;
    for (end, said) in [(filtered, "Well, "), (refused, "Well, no.")] {
        let server = Server::answering(vec![sse(&[begun, call, end, "[DONE]"]), says("Ok.")]).await;
        let session = session(&server.url);
        session.set_tools(quick_and_slow());
        assert_eq!(
            session.send(text("Go")).outcome().await,
            Outcome::Finished(StopReason::Refusal)
        );
        let words: String = history(&session)[1].replace(" | ", "");
        assert_eq!(words, format!("assistant: {said}"));
        events(session.send(text("And now?"))).await;
        assert_answered(&server);
        assert!(
            sent(&server)
                .iter()
                .any(|(_, text)| text.contains("was interrupted"))
        );
    }
}

#[test]
fn every_format_knows_a_refusal_in_the_middle_of_a_call() {
    let claude = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n\
                  data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\"}}\n\n\
                  data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let responses = "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"i\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"\"}}\n\n\
                     data: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"i\",\"output_index\":0,\"delta\":\"{\"}\n\n\
                     data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}}}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}}]}\n\n\
                  data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"SAFETY\"}]}\n\n";
    for (wire, answer) in [
        (WireFormat::AnthropicMessages, claude),
        (WireFormat::OpenAiResponses, responses),
        (WireFormat::GoogleGenerateContent, gemini),
    ] {
        assert_eq!(
            decoded(wire, Framing::Sse, answer).1,
            Ok(StopReason::Refusal),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_of_a_journal_is_named_and_nothing_is_dropped() {
    let server = Server::answering(vec![calls(&[("c1", "quick", "{}")]), says("Ok.")]).await;
    let journal = MemoryJournal::default();
    let session = journaled(&server.url, &journal);
    session.set_tools(quick_and_slow());
    events(session.send(text("Go"))).await;
    let whole = String::from_utf8(journal.bytes()).expect("text");
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() >= 7, "{whole}");
    for (index, line) in lines.iter().enumerate() {
        for damage in [&line[..line.len() / 2], "", "\0\0\0", "{}"] {
            let mut damaged = lines.clone();
            damaged[index] = damage;
            match Log::parse((damaged.join("\n") + "\n").as_bytes()) {
                Err(error) => assert_eq!(error.line, index + 1, "{error}"),
                Ok(_) => panic!("line {} is `{damage}`, without an error", index + 1),
            }
        }
    }
}

#[tokio::test]
async fn two_sessions_over_one_journal_leave_one_that_loads() {
    let server = Server::start(|_, _| says("Ok.")).await;
    let journal = MemoryJournal::default();
    events(journaled(&server.url, &journal).send(text("Begin"))).await;
    let (one, other) = (
        journaled(&server.url, &journal),
        journaled(&server.url, &journal),
    );
    let (first, second) = tokio::join!(
        one.send(text("A")).outcome(),
        other.send(text("B")).outcome()
    );
    assert_eq!(
        (first, second),
        (
            Outcome::Finished(StopReason::EndTurn),
            Outcome::Finished(StopReason::EndTurn)
        )
    );
    let lines = history(&journaled(&server.url, &journal));
    for said in ["user: Begin", "user: A", "user: B"] {
        assert_eq!(
            lines.iter().filter(|line| *line == said).count(),
            1,
            "{lines:?}"
        );
    }
}

#[tokio::test]
async fn a_session_goes_on_with_tools_of_other_names() {
    let answers = vec![
        calls(&[("c1", "quick", "{}")]),
        says("Ok."),
        calls(&[("c2", "quick", "{}")]),
        says("Fine."),
    ];
    let server = Server::answering(answers).await;
    let journal = MemoryJournal::default();
    let session = journaled(&server.url, &journal);
    session.set_tools(quick_and_slow());
    events(session.send(text("Go"))).await;
    let session = journaled(&server.url, &journal);
    session.set_tools(
        ToolSet::new().with(FnTool::new(definition("fast"), |_, _| async {
            ToolOutput::text("new")
        })),
    );
    assert_eq!(
        session.send(text("Again")).outcome().await,
        Outcome::Finished(StopReason::EndTurn)
    );
    let lines = history(&session);
    assert_eq!(lines[2], "user: result #c1: done", "the result stays");
    assert_eq!(
        lines[6],
        "user: error #c2: there is no tool `quick`; available tools: fast"
    );
    assert_answered(&server);
}
