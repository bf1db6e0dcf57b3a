//! A session can always continue, whatever the last answer was and wherever it ended. Each
//! transcript of `tests/streams/` is the first answer of sessions: complete, or cut after and
//! within each event by the end of the connection, a cancel, or the end of the process.
//!
//! Each request is checked before it is sent, as `reqc send` does, and no schema may be lowered.
//! New transcripts are included automatically.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_core::Stream;
use reqc::compile::{Compiler, PolicyOptions};
use reqc::conversation::log::Log;
use reqc::conversation::{Block, Conversation, Image, ItemKind, Message, Tool};
use reqc::repo::LoadOptions;
use reqc::runtime::client::{Bytes, HttpBody, HttpClient, HttpError, HttpErrorKind, http};
use reqc::runtime::hooks::{ToolDecision, before_tool};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Category, Error, Event, Outcome, Session, SessionStart, Transport};
use reqc::system::{Embedded, SystemClock};
use reqc::world::{MemoryJournal, MemoryWorld};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{Planted, called, environment, events, options, results};

/// A folder of transcripts, the bundled agent that receives them, a model, and a complete answer
/// with the text `Whole.`
#[derive(Clone, Copy)]
struct Dialect {
    folder: &'static str,
    agent: &'static str,
    model: &'static str,
    whole: fn() -> Value,
}

const DIALECTS: [Dialect; 11] = [
    Dialect {
        folder: "claude",
        agent: "Claude Chat Tools",
        model: "claude-opus-5-5",
        whole: claude,
    },
    Dialect {
        folder: "compatible",
        agent: "OpenAI Compatible Chat",
        model: "m",
        whole: chat,
    },
    Dialect {
        folder: "deepseek",
        agent: "DeepSeek Chat Tools",
        model: "deepseek-v4-pro",
        whole: chat,
    },
    Dialect {
        folder: "google",
        agent: "Gemini Chat Tools",
        model: "gemini-3.8-flash",
        whole: gemini,
    },
    Dialect {
        folder: "llama.cpp/chat",
        agent: "llama.cpp Chat Tools",
        model: "m",
        whole: chat,
    },
    Dialect {
        folder: "llama.cpp/messages",
        agent: "Claude Chat Tools",
        model: "m",
        whole: claude,
    },
    Dialect {
        folder: "mistral",
        agent: "Mistral Chat Tools",
        model: "mistral-medium-3-5",
        whole: chat,
    },
    Dialect {
        folder: "ollama",
        agent: "Ollama Chat Tools",
        model: "qwen3-vl:8b",
        whole: ollama,
    },
    Dialect {
        folder: "openai",
        agent: "OpenAI Chat Tools",
        model: "gpt-5.6-terra",
        whole: chat,
    },
    Dialect {
        folder: "openrouter",
        agent: "OpenRouter Chat Tools",
        model: "openrouter/auto",
        whole: chat,
    },
    Dialect {
        folder: "responses",
        agent: "OpenAI Responses Chat Tools",
        model: "gpt-5.6-sol",
        whole: responses,
    },
];

fn claude() -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Whole."}], "stop_reason": "end_turn"})
}

fn chat() -> Value {
    let message = json!({"role": "assistant", "content": "Whole."});
    json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

fn gemini() -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Whole."}]}, "finishReason": "STOP"}]})
}

fn ollama() -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": "Whole."}, "done": true, "done_reason": "stop"})
}

fn responses() -> Value {
    let text = json!({"type": "output_text", "text": "Whole.", "annotations": []});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]});
    json!({"object": "response", "id": "resp_1", "status": "completed", "output": [message]})
}

/// The way in which the first answer ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The body ends as if the answer was complete.
    Closed,
    /// The connection breaks.
    Broken,
    /// The user cancels after the server has gone silent.
    Cancelled,
    /// The process ends: only the journal is left.
    Killed,
}

/// A server in memory. It gives the first answer once, then complete answers.
struct Memory {
    first: Mutex<Option<http::Response<HttpBody>>>,
    whole: Bytes,
}

impl HttpClient for Memory {
    fn send(
        &self,
        _: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
        let first = self.first.lock().expect("no panics").take();
        let whole = || {
            http::Response::builder()
                .header("content-type", "application/json")
                .body(self.whole.clone().into())
        };
        Box::pin(std::future::ready(Ok(
            first.unwrap_or_else(|| whole().expect("legal"))
        )))
    }
}

/// A body of one piece that never ends; notifies when the piece was read.
struct Silent(Option<Bytes>, Arc<Notify>);

impl Stream for Silent {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.take() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None => {
                self.1.notify_one();
                Poll::Pending
            }
        }
    }
}

/// An answer that begins with these bytes and ends in this way. For a body that never ends, the
/// second value notifies when they were read.
fn answer(kind: &str, bytes: &[u8], end: End) -> (http::Response<HttpBody>, Arc<Notify>) {
    let (piece, heard) = (Bytes::copy_from_slice(bytes), Arc::<Notify>::default());
    let body = match end {
        End::Closed => HttpBody::of_pieces([Ok(piece)]),
        End::Broken => HttpBody::of_pieces([
            Ok(piece),
            Err(HttpError::new(HttpErrorKind::Broken, "the cable is cut")),
        ]),
        End::Cancelled | End::Killed => HttpBody::new(Silent(Some(piece), Arc::clone(&heard))),
    };
    (
        http::Response::builder()
            .header("content-type", kind)
            .body(body)
            .expect("legal"),
        heard,
    )
}

/// A transcript: its name, its `Content-Type`, its bytes, and the offsets at which it is cut.
struct Transcript {
    name: String,
    kind: &'static str,
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

fn transcripts(folder: &str) -> Vec<Transcript> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/streams")
        .join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("one").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let (kind, separator) = match path.extension()?.to_str()? {
            "sse" => ("text/event-stream", "\n\n"),
            "ndjson" => ("application/x-ndjson", "\n"),
            "json" => ("application/json", "}"),
            _ => return None,
        };
        let bytes = std::fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        let ends = text
            .match_indices(separator)
            .map(|(at, found)| at + found.len());
        // After each event, and in the middle of the next one.
        let mut cuts: Vec<usize> = ends
            .flat_map(|end| [end, end + 40])
            .filter(|cut| *cut < bytes.len())
            .collect();
        if kind == "application/json" {
            cuts = vec![bytes.len() / 2];
        }
        cuts.extend([0, bytes.len()]);
        Some(Transcript {
            name: format!("{folder}/{}", path.file_name()?.to_str()?),
            kind,
            bytes,
            cuts,
        })
    };
    paths.into_iter().filter_map(read).collect()
}

impl Dialect {
    /// An agent whose requests pass `reqc check`.
    fn agent(self) -> Agent {
        let Dialect { agent, model, .. } = self;
        let tester = format!(
            "name = \"Tester\"\nextends = \"{agent}\"\nmodel = \"{model}\"\nsurroundings = \"\"\nenable_tools = true\n"
        );
        let own = [("agents/tester.toml", tester.as_str())];
        let own = Arc::new(MemoryWorld::from_iter(own));
        let compiler = Compiler::load(own, Arc::new(Embedded::bundled()), LoadOptions::default());
        let policy = PolicyOptions {
            deny: vec!["schema/*".to_owned()],
            ..PolicyOptions::default()
        };
        Agent::new(Arc::new(compiler), "Tester", environment())
            .expect("it is there")
            .checked(policy)
    }

    /// A client that gives this answer once, then complete answers.
    fn client(self, first: http::Response<HttpBody>) -> Transport {
        let (first, whole) = (Mutex::new(Some(first)), (self.whole)().to_string().into());
        let client = Arc::new(Memory { first, whole });
        Transport::new(Arc::new(Planted), options())
            .with_clock(Arc::new(SystemClock))
            .with_client(client)
    }
}

/// All tools that the transcripts call; each answers at once.
fn tools() -> ToolSet {
    let names = [
        "look",
        "read",
        "read_file",
        "write_file",
        "list_files",
        "get_weather",
        "get_time",
        "now",
        "list",
        "open",
        "close",
        "shout",
    ];
    let mut tools = ToolSet::new();
    for name in names {
        let schema = json!({"type": "object", "properties": {}})
            .as_object()
            .cloned()
            .expect("an object");
        let definition = Tool {
            name: name.into(),
            description: "Does it.".into(),
            schema,
        };
        tools.insert(Arc::new(FnTool::new(definition, |_, _| async {
            ToolOutput::text("did it")
        })));
    }
    tools
}

fn open(agent: &Agent, transport: &Transport, journal: &MemoryJournal) -> Session {
    let start = match Log::parse(&journal.bytes()).expect("it loads").log {
        Some(log) => SessionStart::Resumed(log, Conversation::default()),
        None => SessionStart::New(Conversation::default()),
    };
    let session = Session::journaled(
        agent.clone(),
        transport.clone(),
        start,
        Box::new(journal.clone()),
    );
    let session = session.expect("it can be written");
    session.set_tools(tools());
    session
}

/// The way in which a session continues.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// In another process.
    restarts: bool,
    /// Without a new message at first.
    proceeds: bool,
}

/// Runs a session whose first answer is a part of a transcript, and checks that it can continue.
async fn lives(
    dialect: Dialect,
    agent: &Agent,
    transcript: &Transcript,
    cut: usize,
    end: End,
    next: Next,
) {
    let what = format!("{} cut at {cut}, {end:?}, {next:?}", transcript.name);
    let (first, heard) = answer(transcript.kind, &transcript.bytes[..cut], end);
    let (transport, journal) = (dialect.client(first), MemoryJournal::default());
    let session = open(agent, &transport, &journal);
    let run = session.send("Hi");
    let cancel = run.cancellation();
    let (is_finished, journal) = tokio::select! {
        (_, outcome) = events(run) => (matches!(outcome, Outcome::Finished(_)), journal),
        () = heard.notified() => match end {
            End::Killed => (false, MemoryJournal::holding(journal.bytes())),
            _ => {
                cancel.cancel();
                session.idle().await;
                (false, journal)
            }
        },
    };
    let log = Log::parse(&journal.bytes())
        .expect("it loads")
        .log
        .expect("it has a header");
    let is_interrupted = log.is_interrupted();
    assert!(
        is_finished || is_interrupted || log.history().is_empty(),
        "{what}: {:#?}",
        log.history()
    );
    let session = if next.restarts || end == End::Killed {
        open(agent, &transport, &journal)
    } else {
        session
    };
    if next.proceeds {
        let outcome = session.proceed().outcome().await;
        let has_none = |error: &Error| {
            error.category == Category::Config && error.message.starts_with("there is nothing to ")
        };
        let is_fine = matches!(&outcome, Outcome::Finished(_))
            || matches!(&outcome, Outcome::Failed(error) if has_none(error));
        assert!(is_fine, "{what}: {outcome:?}\n{:#?}", session.history());
    }
    for message in ["And?", "More?"] {
        let (told, outcome) = events(session.send(message)).await;
        assert!(
            matches!(outcome, Outcome::Finished(_)),
            "{what}: {outcome:?} {told:#?}\n{:#?}",
            session.history()
        );
    }
    let history = session.history();
    let interruptions = history
        .iter()
        .filter(|message| matches!(&message.item, Some(ItemKind::Interrupt)))
        .count();
    // If the answer ended by itself, an interruption depends on its content: for example, on a call
    // that waits for the host.
    let expected = if is_finished {
        interruptions.min(1)
    } else {
        usize::from(is_interrupted)
    };
    assert_eq!(interruptions, expected, "{what}: {history:#?}");
    for (at, message) in history.iter().enumerate() {
        let answered = history.get(at + 1).map(results).unwrap_or_default();
        assert!(
            answered.starts_with(&called(message)),
            "{what}: {history:#?}"
        );
        let own = message
            .blocks
            .iter()
            .filter(|block| matches!(block, Block::Provider(_)))
            .count();
        assert!(
            answered.len() <= called(message).len() + own,
            "{what}: {history:#?}"
        );
    }
}

/// A complete answer of a dialect that calls these tools, each with its own ID.
fn calling(folder: &str, names: &[&str]) -> Value {
    let each = |call: fn(&str, String) -> Value| -> Vec<Value> {
        names
            .iter()
            .enumerate()
            .map(|(at, name)| call(name, format!("callid00{at}")))
            .collect()
    };
    match folder {
        "claude" | "llama.cpp/messages" => {
            let content =
                each(|name, id| json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"})
        }
        "google" => {
            let parts =
                each(|name, id| json!({"functionCall": {"id": id, "name": name, "args": {}}}));
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
        }
        "ollama" => {
            let calls = each(|name, _| json!({"function": {"name": name, "arguments": {}}}));
            let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
            json!({"model": "m", "message": message, "done": true, "done_reason": "stop"})
        }
        "responses" => {
            let output = each(|name, id| {
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": "{}",
                    "status": "completed"})
            });
            json!({"object": "response", "id": "resp_1", "status": "completed", "output": output})
        }
        _ => {
            let calls = each(
                |name, id| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}),
            );
            let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
            json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
        }
    }
}

/// `look` and `open` answer at once, `read` and `list` never.
fn some_tools() -> ToolSet {
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {}})
            .as_object()
            .cloned()
            .expect("an object");
        Tool {
            name: name.into(),
            description: "Does it.".into(),
            schema,
        }
    };
    let slow = |name| FnTool::new(tool(name), |_, _| std::future::pending());
    let quick = |name| FnTool::new(tool(name), |_, _| async { ToolOutput::text("did it") });
    ToolSet::new()
        .with(slow("read"))
        .with(quick("look"))
        .with(slow("list"))
        .with(quick("open"))
}

/// An answer calls four tools: a hook refuses one without a reason, one ends, and two still run
/// when the user cancels. The process then ends at any line of the log. The next request must be
/// correct, with a result for each call.
#[tokio::test]
async fn tools_that_were_refused_cancelled_and_forgotten_poison_nothing() {
    for dialect in DIALECTS {
        let agent = dialect.agent();
        let called = ["read", "look", "open", "list"];
        let first = calling(dialect.folder, &called).to_string();
        let (first, _) = answer("application/json", first.as_bytes(), End::Closed);
        let (transport, journal) = (dialect.client(first), MemoryJournal::default());
        let session = open(&agent, &transport, &journal);
        session.set_tools(some_tools());
        let hooked = session.with_hooks(before_tool(|call| match &*call.name {
            "open" => ToolDecision::refuse(" "),
            _ => ToolDecision::Run,
        }));
        let mut run = hooked.send("Hi");
        let mut results_left = 2;
        while results_left > 0 {
            match run.next().await {
                Some(Event::ToolResult { .. }) => results_left -= 1,
                Some(Event::Done(outcome)) => panic!("{}: {outcome:?}", dialect.folder),
                _ => {}
            }
        }
        run.cancel();
        assert_eq!(
            run.outcome().await,
            Outcome::Cancelled,
            "{}",
            dialect.folder
        );
        let said = |message: &Message| -> Vec<String> {
            let said = message.blocks.iter().filter_map(|block| match block {
                Block::ToolResult { content, .. } => Some(content.chars().take(24).collect()),
                _ => None,
            });
            said.collect()
        };
        let stopped = "the request was cancelled";
        assert_eq!(
            said(&session.history()[2]),
            [
                &stopped[..24],
                "did it",
                "the call was refused: no",
                &stopped[..24]
            ]
        );
        drop((session, hooked));

        let whole = journal.bytes();
        let ends: Vec<usize> = (1..=whole.len())
            .filter(|end| whole[end - 1] == b'\n')
            .collect();
        assert!(ends.len() >= 7, "{}", String::from_utf8_lossy(&whole));
        for end in ends.into_iter().flat_map(|end| [end - 3, end]) {
            let journal = MemoryJournal::holding(&whole[..end]);
            let session = open(&agent, &transport, &journal);
            let (told, outcome) = events(session.send("And?")).await;
            assert!(
                matches!(outcome, Outcome::Finished(_)),
                "{} {end}: {outcome:?} {told:#?}",
                dialect.folder
            );
            let history = session.history();
            for (at, message) in history.iter().enumerate() {
                let answered = history.get(at + 1).map(results).unwrap_or_default();
                assert_eq!(
                    self::called(message),
                    answered,
                    "{} {end}: {history:#?}",
                    dialect.folder
                );
            }
        }
    }
}

/// Unusual outputs of a host's tool, including some that no server accepts.
fn odd_outputs() -> Vec<(&'static str, ToolOutput)> {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let image = |data: &str, media_type: &str, is_url: bool| {
        let image = Image {
            data: data.into(),
            media_type: media_type.into(),
            is_url,
        };
        ToolOutput {
            content: "".into(),
            is_error: false,
            images: vec![image],
        }
    };
    let failed = |output: ToolOutput| ToolOutput {
        is_error: true,
        ..output
    };
    vec![
        ("a picture", image(PNG, "image/png", false)),
        (
            "a picture of a failure",
            failed(image(PNG, "image/png", false)),
        ),
        ("a bitmap", image("Qk0=", "image/bmp", false)),
        (
            "a drawing",
            image("PHN2Zz48L3N2Zz4=", "image/svg+xml", false),
        ),
        ("no bytes", image("", "image/png", false)),
        ("no base64", image("%%%", "image/png", false)),
        ("another type", image(PNG, "image/jpeg", false)),
        ("no type", image(PNG, "", false)),
        (
            "a document",
            image("JVBERi0xLjQK", "application/pdf", false),
        ),
        (
            "an address",
            image("https://example.com/a.png", "image/png", true),
        ),
        (
            "an address of a file",
            image("file:///etc/passwd", "image/png", true),
        ),
        ("an address that is none", image("", "image/png", true)),
        (
            "control characters",
            ToolOutput::text("a\0b\u{1b}[31m\u{7f}\u{feff}\u{202e}\u{fffd}\r\n"),
        ),
        ("nothing", ToolOutput::text("")),
        ("a failure without a word", ToolOutput::error(" \n")),
        (
            "a template",
            ToolOutput::text("{{ x }}{% raw %}\",}]\\u0000</tool>"),
        ),
    ]
}

/// The request after any tool output is correct, and tells the model how the tool ended.
#[tokio::test]
async fn what_tools_give_back_poisons_nothing() {
    let mut poisoned = Vec::new();
    for dialect in DIALECTS {
        let agent = dialect.agent();
        for (what, output) in odd_outputs() {
            let first = calling(dialect.folder, &["look"]).to_string();
            let (first, _) = answer("application/json", first.as_bytes(), End::Closed);
            let (transport, journal) = (dialect.client(first), MemoryJournal::default());
            let mut session = open(&agent, &transport, &journal);
            let definition = tools()
                .get("look")
                .expect("it is there")
                .definition()
                .clone();
            session.set_tools(ToolSet::new().with(FnTool::new(definition, move |_, _| {
                let output = output.clone();
                async { output }
            })));
            for message in ["Hi", "And?", "Later"] {
                let outcome = session.send(message).outcome().await;
                if !matches!(outcome, Outcome::Finished(_)) {
                    poisoned.push(format!(
                        "{}, {what}, {message}: {outcome:?}",
                        dialect.folder
                    ));
                }
                let Some(Block::ToolResult {
                    content, images, ..
                }) = session.history()[2].blocks.first().cloned()
                else {
                    panic!("{}: there is a result", dialect.folder)
                };
                match what {
                    "a bitmap" => assert_eq!(
                        (&*content, images.len()),
                        ("[image: image/bmp, 3 bytes, left out]", 0)
                    ),
                    "an address of a file" => {
                        assert_eq!(&*content, "[image at file:///etc/passwd, left out]");
                    }
                    "another type" => assert_eq!(&*images[0].media_type, "image/png"),
                    "control characters" => {
                        assert!(content.starts_with("a\u{fffd}b\u{1b}"), "{content:?}");
                    }
                    _ => {}
                }
                if message == "And?" {
                    drop(session);
                    session = open(&agent, &transport, &journal);
                }
            }
        }
    }
    assert!(poisoned.is_empty(), "{poisoned:#?}");
}

/// Tests all cuts and ends of the transcripts of a dialect.
async fn poison(folder: &str) {
    let dialect = *DIALECTS
        .iter()
        .find(|dialect| dialect.folder == folder)
        .expect("it is in the table");
    let agent = dialect.agent();
    let mut number = 0;
    for transcript in transcripts(folder) {
        for &cut in &transcript.cuts {
            // Each cut is tested with one end, in turn; the empty and the complete answer with all
            // of them.
            let is_edge = cut == 0 || cut == transcript.bytes.len();
            let ends = [End::Closed, End::Broken, End::Cancelled, End::Killed];
            for end in ends
                .into_iter()
                .enumerate()
                .filter(|(at, _)| is_edge || number % ends.len() == *at)
                .map(|(_, end)| end)
            {
                let next = Next {
                    restarts: number % 3 == 0,
                    proceeds: number % 2 == 0,
                };
                lives(dialect, &agent, &transcript, cut, end, next).await;
            }
            number += 1;
        }
    }
}

#[tokio::test]
async fn nothing_of_claude_poisons_what_follows() {
    poison("claude").await;
}

#[tokio::test]
async fn nothing_of_compatible_poisons_what_follows() {
    poison("compatible").await;
}

#[tokio::test]
async fn nothing_of_deepseek_poisons_what_follows() {
    poison("deepseek").await;
}

#[tokio::test]
async fn nothing_of_google_poisons_what_follows() {
    poison("google").await;
}

#[tokio::test]
async fn nothing_of_llama_cpp_chat_poisons_what_follows() {
    poison("llama.cpp/chat").await;
}

#[tokio::test]
async fn nothing_of_llama_cpp_messages_poisons_what_follows() {
    poison("llama.cpp/messages").await;
}

#[tokio::test]
async fn nothing_of_mistral_poisons_what_follows() {
    poison("mistral").await;
}

#[tokio::test]
async fn nothing_of_ollama_poisons_what_follows() {
    poison("ollama").await;
}

#[tokio::test]
async fn nothing_of_openai_poisons_what_follows() {
    poison("openai").await;
}

#[tokio::test]
async fn nothing_of_openrouter_poisons_what_follows() {
    poison("openrouter").await;
}

#[tokio::test]
async fn nothing_of_responses_poisons_what_follows() {
    poison("responses").await;
}
