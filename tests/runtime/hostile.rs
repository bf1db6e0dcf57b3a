//! Hostile servers: endless answers, answers that repeat the key, and control characters for the
//! terminal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqc::conversation::log::Log;
use reqc::conversation::{Block, Conversation};
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Category, Event, Outcome, RetryPolicy, Session, Transport, TransportOptions};
use reqc::world::MemoryJournal;
use serde_json::json;

use crate::fixture::{KEY, Planted, agent, events, options, said, session, text, transport};
use crate::server::{Act, Server, calls, sse, status, stream_head};

fn hasty() -> TransportOptions {
    TransportOptions {
        connect_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_millis(700),
        answer_timeout: Duration::from_secs(1),
        retry: RetryPolicy::never(),
        ..options()
    }
}

async fn outcome(script: Vec<Act>) -> (Outcome, Duration) {
    let server = Server::start(move |_, _| script.clone()).await;
    let session = Session::new(
        agent(&server.url),
        Transport::new(Arc::new(Planted), hasty()),
        Conversation::default(),
    );
    let began = Instant::now();
    let outcome = session.send(text("Hi")).outcome().await;
    server.quiet().await;
    (outcome, began.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_never_begins_or_never_ends_is_given_up() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_vec();
    let drip = |bytes: &[u8], pause: u64| {
        let act = [
            Act::Bytes(bytes.to_vec()),
            Act::Pause(Duration::from_millis(pause)),
        ];
        act.into_iter().cycle().take(4000 / pause as usize)
    };
    let chunked =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let trailers = [chunked.clone(), b"0\r\n".to_vec()].concat();
    for (what, script) in [
        ("interim answers", drip(&interim.repeat(100), 5).collect()),
        (
            "100 Continue",
            drip(b"HTTP/1.1 100 Continue\r\n\r\n", 5).collect(),
        ),
        ("interim answers, slowly", drip(&interim, 100).collect()),
        (
            "headers",
            vec![
                Act::Bytes(b"HTTP/1.1 200 OK\r\n".to_vec()),
                Act::Forever(b"a: b\r\n".to_vec()),
            ],
        ),
        (
            "one header",
            vec![
                Act::Bytes(b"HTTP/1.1 200 OK\r\na: ".to_vec()),
                Act::Forever(vec![b'x'; 4096]),
            ],
        ),
        (
            "a reason",
            vec![
                Act::Bytes(b"HTTP/1.1 200 ".to_vec()),
                Act::Forever(vec![b'x'; 4096]),
            ],
        ),
        (
            "comments, slowly",
            std::iter::once(stream_head())
                .chain(drip(b": still here\n\n", 100))
                .collect(),
        ),
        (
            "comments",
            vec![stream_head(), Act::Forever(b":\n".to_vec())],
        ),
        (
            "chunk extensions",
            vec![
                Act::Bytes([chunked, b"1;".to_vec()].concat()),
                Act::Forever(vec![b'x'; 4096]),
            ],
        ),
        (
            "trailers",
            vec![Act::Bytes(trailers), Act::Forever(b"a: b\r\n".to_vec())],
        ),
    ] {
        let (outcome, took) = outcome(script).await;
        assert!(
            matches!(&outcome, Outcome::Failed(error) if matches!(error.category, Category::Network | Category::Provider)),
            "{what}: {outcome:?}"
        );
        assert!(took < Duration::from_secs(30), "{what}: {took:?}");
    }
}

/// All spellings of the key that the tests search for.
fn spellings() -> Vec<String> {
    let each = |spell: fn(u8) -> String| KEY.bytes().map(spell).collect::<String>();
    vec![
        KEY.to_owned(),
        KEY.to_uppercase(),
        STANDARD.encode(KEY),
        STANDARD.encode(format!("x{KEY}")),
        URL_SAFE_NO_PAD.encode(format!("xy{KEY}z")),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("{byte:02X}")),
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("&#{byte};")),
        each(|byte| format!("\\u{byte:04x}")),
    ]
}

/// Returns whether a string contains the key in any spelling.
fn tells(text: &str) -> bool {
    let core = |text: String| text[4..text.len() - 4].to_owned();
    let found = |spelling: String| text.to_lowercase().contains(&core(spelling).to_lowercase());
    spellings().into_iter().any(found)
}

/// An answer that contains a text as text, as reasoning and in the arguments of a call, in pieces
/// of `size` characters.
fn repeating(secret: &str, size: usize) -> Vec<Act> {
    let pieces: Vec<String> = secret
        .chars()
        .collect::<Vec<_>>()
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect();
    let delta =
        |delta: serde_json::Value| json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
    let mut data: Vec<String> = vec![delta(json!({"role": "assistant", "content": "It is "}))];
    data.extend(
        pieces
            .iter()
            .map(|piece| delta(json!({"reasoning_content": piece}))),
    );
    data.extend(pieces.iter().map(|piece| delta(json!({"content": piece}))));
    let call = |arguments: &str| json!({"index": 0, "function": {"arguments": arguments}});
    let begin = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":\""}});
    data.push(delta(json!({"tool_calls": [begin]})));
    let escaped = |piece: &String| piece.replace('\\', "\\\\");
    data.extend(
        pieces
            .iter()
            .map(|piece| delta(json!({"tool_calls": [call(&escaped(piece))]}))),
    );
    data.push(delta(json!({"tool_calls": [call("\"}")]})));
    data.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
    data.push("[DONE]".to_owned());
    sse(&data.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_key_that_is_said_back_is_neither_told_nor_kept() {
    for secret in spellings() {
        for size in [1, 3, 1000] {
            let answer = repeating(&secret, size);
            let server = Server::start(move |_, _| answer.clone()).await;
            let journal = MemoryJournal::default();
            let restored = reqc::runtime::SessionStart::New(Conversation::default());
            let session = Session::journaled(
                agent(&server.url),
                transport(),
                restored,
                Box::new(journal.clone()),
            );
            let session = session.expect("a journal in memory");
            let (events, outcome) = events(session.send(text("Hi"))).await;
            assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
            assert!(
                said(&events).starts_with("It is ") && said(&events).contains("[key]"),
                "{}",
                said(&events)
            );
            let told: Vec<String> = events
                .iter()
                .map(|event| event.to_json().to_string())
                .collect();
            let told = told.join("\n");
            let arguments: String = events
                .iter()
                .filter_map(|event| match event {
                    Event::ToolCallArguments { json, .. } => Some(json.as_str()),
                    _ => None,
                })
                .collect();
            let thought: String = events
                .iter()
                .filter_map(|event| match event {
                    Event::Thinking(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let kept = String::from_utf8(journal.bytes()).expect("UTF-8");
            for (what, text) in [
                ("text", said(&events)),
                ("events", told),
                ("arguments", arguments),
                ("thinking", thought),
                ("session", kept.clone()),
            ] {
                assert!(
                    !tells(&text),
                    "{what} in pieces of {size} of {secret}: {text}"
                );
            }
            let log = Log::parse(kept.as_bytes())
                .expect("it loads")
                .log
                .expect("a header");
            assert_eq!(
                log.to_text(),
                kept,
                "loading and saving again changes no byte"
            );
        }
    }
}

#[tokio::test]
async fn a_key_is_not_told_by_errors_and_tools_either() {
    for secret in spellings() {
        let error = status(
            400,
            &[],
            &json!({"error": {"message": format!("no {secret}"), "type": secret.clone()}})
                .to_string(),
        );
        let redirect = status(
            307,
            &[("location", &format!("https://evil.example/{secret}"))],
            "",
        );
        let half = vec![
            stream_head(),
            Act::Bytes(
                format!("data: {{\"error\":{{\"message\":{}}}}}\n\n", json!(secret)).into_bytes(),
            ),
        ];
        let page = status(
            502,
            &[("content-type", "text/html")],
            &format!("<p>{secret}</p>"),
        );
        for script in [error, redirect, half, page] {
            let server = Server::start(move |_, _| script.clone()).await;
            let options = TransportOptions {
                retry: RetryPolicy::never(),
                ..options()
            };
            let session = Session::new(
                agent(&server.url),
                Transport::new(Arc::new(Planted), options),
                Conversation::default(),
            );
            let outcome = session.send(text("Hi")).outcome().await;
            let told = format!("{outcome:?} {}", outcome.to_json());
            assert!(
                matches!(outcome, Outcome::Failed(_)) && !tells(&told),
                "{told}"
            );
        }
    }
    let server = Server::answering(vec![
        calls(&[("c1", "leak", "{}")]),
        sse(&[
            r#"{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ]),
    ])
    .await;
    let session = session(&server.url);
    let definition = reqc::conversation::Tool {
        name: "leak".into(),
        description: "d".into(),
        schema: serde_json::Map::new(),
    };
    session.set_tools(ToolSet::new().with(FnTool::new(definition, async |_, _| {
        ToolOutput::text(format!("it is {KEY}"))
    })));
    let (events, _) = events(session.send(text("Hi"))).await;
    let result = |event: &Event| matches!(event, Event::ToolResult { output, .. } if &*output.content == "it is [key]");
    assert!(events.iter().any(result), "{events:#?}");
    let kept = session.history();
    assert!(kept.iter().flat_map(|message| &message.blocks).any(
        |block| matches!(block, Block::ToolResult { content, .. } if &**content == "it is [key]")
    ));
}
