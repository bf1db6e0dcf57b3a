//! A summary replaces part of a history: what it replaces, what stays, and that nothing is lost
//! when the process is killed at any step.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use reqc::compile::{Compiler, LoadOptions};
use reqc::conversation::log::{Entry, Log};
use reqc::conversation::{AttachedFile, Block, Conversation, Item, Message, Task, Tool};
use reqc::runtime::client::{Bytes, HttpBody, HttpClient, HttpError, http};
use reqc::runtime::compression::{AutoCompression, Compression};
use reqc::runtime::pool::{PoolOptions, SessionPool};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Category, Error, Event, Outcome, Session, SessionStart, Transport};
use reqc::system::Embedded;
use reqc::world::{AccessError, Journal, MemoryJournal, MemoryWorld};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{Planted, environment, events, history, options, said, transport};
use crate::server::{Act, Received, Server, calls, says, sse, status};

/// The scripted agent's answer to a request for a summary.
const SUMMARY: &str = "They spoke of monads.";
const SHOWN: &str =
    "[Summary of the conversation so far, which it replaces]\n\nThey spoke of monads.";

/// A repository with a chat agent and an agent that compresses its history, both at one server.
fn compiler(url: &str) -> Arc<Compiler> {
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let tester = "name = \"Tester\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n\
                  enable_tools = true\nsystem_prompt = \"Chat.\"\nsurroundings = \"In the garden.\"\n";
    let presser = "name = \"Presser\"\nextends = \"OpenAI Compatible Chat Compression\"\nprovider_instance = \"Scripted\"\n\
                   model = \"m\"\n";
    let own = [
        ("providers/scripted.toml", provider.as_str()),
        ("agents/tester.toml", tester),
        ("agents/presser.toml", presser),
    ];
    let own = Arc::new(MemoryWorld::from_iter(own));
    let compiler = Compiler::load(own, Arc::new(Embedded::bundled()), LoadOptions::default());
    assert!(
        compiler.findings().is_empty(),
        "{:?}",
        compiler.findings().first().map(|it| &it.message)
    );
    Arc::new(compiler)
}

fn agent(compiler: &Arc<Compiler>, name: &str) -> Agent {
    Agent::new(Arc::clone(compiler), name, environment()).expect("it is there")
}

/// A chat with a journal, and the compression of its history.
struct Chat {
    session: Session,
    compression: Compression,
    journal: MemoryJournal,
    compiler: Arc<Compiler>,
}

impl Chat {
    fn new(url: &str) -> Chat {
        Chat::of(url, Conversation::default())
    }

    fn of(url: &str, conversation: Conversation) -> Chat {
        let (compiler, journal) = (compiler(url), MemoryJournal::default());
        let session = open(&compiler, &journal, transport(), conversation);
        let pool = SessionPool::new(transport(), PoolOptions::default());
        let compression = Compression::new(pool, agent(&compiler, "Presser"));
        Chat {
            session,
            compression,
            journal,
            compiler,
        }
    }

    /// Opens the session as a new process would.
    fn reopened(&self) -> Session {
        open(
            &self.compiler,
            &self.journal,
            transport(),
            Conversation::default(),
        )
    }

    async fn ask(&self, text: &str) -> String {
        self.session.send(text).text().await.expect("an answer")
    }

    async fn compress(&self) -> Result<String, Error> {
        self.session.compress(&self.compression).text().await
    }

    /// Returns the log, after a check that its text equals the journal's, byte for byte.
    fn log(&self) -> Log {
        let bytes = self.journal.bytes();
        let log = Log::parse(&bytes).expect("a log").log.expect("a header");
        assert_eq!(log.to_text().as_bytes(), bytes);
        log
    }
}

fn open(
    compiler: &Arc<Compiler>,
    journal: &MemoryJournal,
    transport: Transport,
    new: Conversation,
) -> Session {
    let start = match Log::parse(&journal.bytes()).expect("a log").log {
        Some(log) => SessionStart::Resumed(log, Conversation::default()),
        None => SessionStart::New(new),
    };
    let journal = Box::new(journal.clone());
    Session::journaled(agent(compiler, "Tester"), transport, start, journal)
        .expect("it can be written")
}

/// Returns whether this is the request for a summary.
fn is_for_summary(body: &Value) -> bool {
    let messages = body["messages"].as_array().expect("messages");
    messages.last().is_some_and(|last| {
        last["content"]
            .to_string()
            .contains("Compress the conversation so far.")
    })
}

/// Answers chat requests with their number, and the compressing agent with the summary.
fn script(number: usize, request: &Received) -> Vec<Act> {
    if is_for_summary(&request.json()) {
        says(SUMMARY)
    } else {
        says(&format!("Answer {number}."))
    }
}

#[tokio::test]
async fn the_chat_goes_on_with_the_summary_and_the_log_keeps_what_it_stands_for() {
    let server = Server::start(script).await;
    let chat = Chat::new(&server.url);
    chat.ask("What is a monad?").await;
    chat.ask("And a functor?").await;
    let (told, outcome) = events(chat.session.compress(&chat.compression)).await;
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    assert_eq!(said(&told), SUMMARY);
    let compressed = told.iter().find_map(|event| match event {
        Event::Compressed {
            messages,
            summary,
            usage,
        } => Some((*messages, summary.to_string(), usage.input)),
        _ => None,
    });
    assert_eq!(compressed, Some((5, SHOWN.to_owned(), 10)));
    // The surroundings stay, and the usage of the summary counts.
    assert_eq!(
        history(&chat.session),
        [
            format!("user: {SHOWN}"),
            "system: In the garden.".to_owned()
        ]
    );
    assert_eq!(chat.session.usage().input, 30);

    // The request for the summary has the history and the layer, but no tools.
    let asked = server.received()[2].json();
    let text = asked.to_string();
    for part in [
        "What is a monad?",
        "Answer 1.",
        "replaces the conversation",
        "You compress conversations",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(asked.get("tools"), None);

    chat.ask("And then?").await;
    let next = server.received()[3].json();
    let text = next.to_string();
    assert!(
        text.contains(SUMMARY) && text.contains("And then?") && text.contains("Chat."),
        "{text}"
    );
    assert!(
        !text.contains("monad?") && !text.contains("Answer 1."),
        "{text}"
    );

    let log = chat.log();
    let old: Vec<String> = log
        .entries()
        .filter_map(|entry| match entry {
            Entry::Message(message) => Some(message.text()),
            _ => None,
        })
        .collect();
    assert_eq!(
        old,
        [
            "What is a monad?",
            "Answer 0.",
            "And a functor?",
            "Answer 1.",
            "And then?",
            "Answer 3."
        ]
    );
    assert_eq!(log.history(), chat.session.history());
    assert_eq!(log.usage(), chat.session.usage());

    // A new process sends the same beginning.
    let again = chat.reopened();
    again.send("Still there?").text().await.expect("an answer");
    let resumed = server.received()[4].json();
    let (before, after) = (
        next["messages"].as_array().unwrap(),
        resumed["messages"].as_array().unwrap(),
    );
    assert_eq!(after[..before.len()], before[..]);
    server.quiet().await;
}

#[tokio::test]
async fn a_second_summary_stands_for_the_first_one_too() {
    let server = Server::start(script).await;
    let chat = Chat::new(&server.url);
    chat.ask("One?").await;
    chat.compress().await.expect("a summary");
    let error = chat.compress().await.expect_err("a summary of a summary");
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::Config, "there is nothing to compress")
    );
    chat.ask("Two?").await;
    chat.compress().await.expect("a summary");
    assert_eq!(
        history(&chat.session),
        [
            format!("user: {SHOWN}"),
            "system: In the garden.".to_owned()
        ]
    );
    assert!(
        server.received()[3]
            .json()
            .to_string()
            .contains("They spoke of monads.")
    );
    assert_eq!(chat.log().history(), chat.session.history());
    let nothing = chat
        .reopened()
        .proceed()
        .text()
        .await
        .expect_err("there is no question to answer");
    assert!(nothing.message.contains("nothing to answer"), "{nothing}");
}

#[tokio::test]
async fn turns_that_are_kept_and_one_without_an_answer_stay_word_for_word() {
    let server = Server::start(|number, request| match number {
        3 => status(400, &[], "no"),
        _ => script(number, request),
    })
    .await;
    let chat = Chat::new(&server.url);
    for question in ["One?", "Two?", "Three?"] {
        chat.ask(question).await;
    }
    chat.session
        .inject(Item::Notification {
            text: "It rains.".into(),
            title: None,
            source: None,
        })
        .expect("written");
    let keeping = chat.compression.clone().keeping(1);
    let failed = chat
        .session
        .compress(&keeping)
        .text()
        .await
        .expect_err("the agent fails");
    assert_eq!(failed.category, Category::Validation);
    assert!(
        failed
            .message
            .starts_with("the conversation was not compressed: "),
        "{failed}"
    );
    assert_eq!(chat.session.history().len(), 8, "it is as it was");
    chat.session
        .compress(&keeping)
        .text()
        .await
        .expect("a summary");
    let kept = [
        "system: In the garden.",
        "user: Three?",
        "assistant: Answer 2.",
        "system: It rains.",
    ];
    assert_eq!(history(&chat.session)[0], format!("user: {SHOWN}"));
    assert_eq!(history(&chat.session)[1..], kept);
    assert!(!server.received()[4].json().to_string().contains("Three?"));
    // Summarises everything that the model has seen: the messages after its last answer stay.
    chat.compress().await.expect("a summary");
    assert_eq!(
        history(&chat.session)[1..],
        ["system: In the garden.", "system: It rains."]
    );
    let too_many = chat.compression.clone().keeping(7);
    assert!(chat.session.compress(&too_many).text().await.is_err());
    assert_eq!(chat.log().history(), chat.session.history());
}

/// A tool whose result is long.
fn tools() -> ToolSet {
    let look = Tool::new("look", "Looks.", json!({"type": "object"}));
    ToolSet::new().with(FnTool::new(look, |_, _| async {
        ToolOutput::text("a long result ".repeat(1_500))
    }))
}

#[tokio::test]
async fn calls_that_the_host_has_to_answer_stay_open() {
    let server = Server::start(|number, request| match number {
        1 => calls(&[("c1", "look", "{}")]),
        _ => script(number, request),
    })
    .await;
    let chat = Chat::new(&server.url);
    chat.ask("One?").await;
    chat.session.send("Look.").outcome().await;
    chat.compress().await.expect("a summary");
    let kept = [
        "system: In the garden.",
        "user: Look.",
        "assistant: call look#c1",
    ];
    assert_eq!(history(&chat.session)[1..], kept);
    let result = Block::ToolResult {
        id: "c1".into(),
        content: "Trees.".into(),
        is_error: false,
        images: vec![],
    };
    assert_eq!(
        chat.session.send(result).text().await.expect("an answer"),
        "Answer 3."
    );
    assert_eq!(chat.log().history(), chat.session.history());
}

#[tokio::test]
async fn of_attached_files_the_latest_version_stays() {
    let server = Server::start(script).await;
    let file = |content: &str| AttachedFile {
        file_path: "a.txt".into(),
        content: content.into(),
    };
    let new = Conversation {
        files: vec![file("first words")],
        ..Conversation::default()
    };
    let chat = Chat::of(&server.url, new);
    chat.ask("One?").await;
    chat.session
        .inject(Item::attached(&file("second words")))
        .expect("written");
    chat.ask("Two?").await;
    chat.compress().await.expect("a summary");
    chat.ask("Three?").await;
    let sent = server.received()[3].json().to_string();
    assert!(sent.contains("second words"), "{sent}");
    assert_eq!(sent.matches("In the garden.").count(), 1, "{sent}");
    assert_eq!(chat.log().history(), chat.session.history());
}

#[tokio::test]
async fn what_is_no_whole_summary_changes_nothing() {
    let cut = r#"{"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":"length"}]}"#;
    let wrong = [
        (sse(&[cut, "[DONE]"]), "max_tokens"),
        (says(" \n"), "no text"),
        (calls(&[("c1", "look", "{}")]), "tool_use"),
        (status(500, &[], "no"), ""),
    ];
    for (acts, words) in wrong {
        let server = Server::start(
            move |number, request| match is_for_summary(&request.json()) {
                true => acts.clone(),
                false => script(number, request),
            },
        )
        .await;
        let chat = Chat::new(&server.url);
        chat.ask("One?").await;
        let before = chat.journal.bytes();
        let error = chat.compress().await.expect_err("it is no summary");
        assert!(
            error
                .message
                .starts_with("the conversation was not compressed: "),
            "{error}"
        );
        assert!(error.message.contains(words), "{error}");
        assert_eq!(chat.journal.bytes(), before);
        assert!(
            chat.session.send("Two?").text().await.is_ok(),
            "the chat continues"
        );
    }
}

#[tokio::test]
async fn a_message_cancels_a_summary_and_items_wait_for_it() {
    let server = Server::start(|number, request| match is_for_summary(&request.json()) {
        true => vec![Act::Hang],
        false => script(number, request),
    })
    .await;
    let chat = Chat::new(&server.url);
    chat.ask("One?").await;
    let run = chat.session.compress(&chat.compression);
    while server.received().len() < 2 {
        tokio::task::yield_now().await;
    }
    chat.session
        .inject(Item::Notification {
            text: "It rains.".into(),
            title: None,
            source: None,
        })
        .expect("it waits");
    assert_eq!(chat.session.history().len(), 3);
    assert_eq!(
        chat.session.take_back(1).expect_err("it is busy").category,
        Category::Config
    );
    let answer = chat.session.send("Two?").text().await.expect("an answer");
    assert_eq!(answer, "Answer 2.");
    assert_eq!(run.outcome().await, Outcome::Cancelled);
    assert_eq!(
        history(&chat.session)[3..5],
        ["system: It rains.", "user: Two?"]
    );
    assert_eq!(chat.compression.pool.in_use(&chat.compression.agent), 0);
    server.quiet().await;
}

#[tokio::test]
async fn a_request_that_is_too_large_is_compressed_before_it_is_sent_also_between_rounds_of_tools()
{
    let server = Server::start(
        |number, request| match (is_for_summary(&request.json()), number) {
            (true, _) => says(SUMMARY),
            (false, 0..4) => calls(&[("c", "look", "{}")]),
            (false, _) => says("Done."),
        },
    )
    .await;
    let chat = Chat::new(&server.url);
    chat.session.set_tools(tools());
    let window = chat.session.estimate().expect("it compiles").total() + 1_500;
    let unknown = AutoCompression::new(chat.compression.clone());
    let error = chat
        .session
        .set_auto_compression(Some(unknown.clone()))
        .expect_err("the context window of `m` is unknown");
    assert!(
        error
            .message
            .contains("context window of `Tester` is unknown"),
        "{error}"
    );
    let nonsense = unknown.clone().with_window(1_000).at_share(f64::NAN);
    assert!(chat.session.set_auto_compression(Some(nonsense)).is_err());
    let auto = unknown.with_window(window).at_share(1.0);
    chat.session
        .set_auto_compression(Some(auto))
        .expect("it is known");
    let (told, outcome) = events(chat.session.send("Look around.")).await;
    assert!(
        matches!(outcome, Outcome::Finished(_)),
        "{outcome:?} {told:#?}"
    );
    assert_eq!(said(&told), "Done.", "the summary is none of the answer");
    let compressed = told
        .iter()
        .filter(|event| matches!(event, Event::Compressed { .. }))
        .count();
    assert!(compressed >= 1, "{told:#?}");
    // Each call has exactly one result.
    for request in server.received() {
        let body = request.json();
        let messages = body["messages"].as_array().expect("messages");
        let called = messages
            .iter()
            .filter(|message| !message["tool_calls"].is_null())
            .count();
        let results = messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .count();
        assert_eq!(called, results, "{body}");
    }
    assert_eq!(chat.log().history(), chat.session.history());
}

#[tokio::test]
async fn a_summary_that_fails_by_itself_is_a_warning_and_the_request_is_sent() {
    let server = Server::start(|number, request| match is_for_summary(&request.json()) {
        true => status(400, &[], "no"),
        false => script(number, request),
    })
    .await;
    let chat = Chat::new(&server.url);
    chat.ask("One?").await;
    let auto = AutoCompression::new(chat.compression.clone()).with_window(1);
    chat.session
        .set_auto_compression(Some(auto))
        .expect("it is known");
    let (told, _) = events(chat.session.send("Two?")).await;
    assert_eq!(said(&told), "Answer 2.");
    let warnings: Vec<&String> = told
        .iter()
        .filter_map(|event| match event {
            Event::Warning(warning) => Some(warning),
            _ => None,
        })
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("was not compressed") && warnings[0].contains("sent uncompressed"),
        "{warnings:?}"
    );
    chat.session.set_auto_compression(None).expect("it is off");
    chat.ask("Three?").await;
    assert_eq!(server.received().len(), 4);
}

/// Kills the process at step number `at`. Writes to the journal, requests, and pieces of answers
/// are steps.
struct Reaper {
    at: usize,
    steps: AtomicUsize,
    dead: Notify,
}

impl Reaper {
    fn new(at: usize) -> Arc<Reaper> {
        Arc::new(Reaper {
            at,
            steps: AtomicUsize::new(0),
            dead: Notify::new(),
        })
    }

    /// Returns whether the process survives this step. If not, it is killed in the middle of it.
    fn lives(&self) -> bool {
        self.step() == Life::Lives
    }

    fn step(&self) -> Life {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        if step >= self.at {
            self.dead.notify_one();
        }
        match step.cmp(&self.at) {
            std::cmp::Ordering::Less => Life::Lives,
            std::cmp::Ordering::Equal => Life::Dies,
            std::cmp::Ordering::Greater => Life::IsDead,
        }
    }
}

/// The state of the process during a step.
#[derive(PartialEq)]
enum Life {
    Lives,
    Dies,
    IsDead,
}

/// A journal whose last line is cut in half when the process is killed.
struct Mortal {
    reaper: Arc<Reaper>,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Journal for Mortal {
    fn append(&mut self, line: &str) -> Result<(), AccessError> {
        let mut kept = self.kept.lock().expect("no panics");
        match self.reaper.step() {
            Life::Lives => {
                kept.extend(line.as_bytes());
                return Ok(());
            }
            Life::Dies => kept.extend(&line.as_bytes()[..line.len() / 2]),
            Life::IsDead => {}
        }
        Err("the process was killed".into())
    }
}

/// An in-memory server; each piece of an answer is a step.
struct Client(Arc<Reaper>);

impl HttpClient for Client {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
        let body: Value = serde_json::from_slice(request.body()).expect("JSON");
        let reaper = Arc::clone(&self.0);
        Box::pin(async move {
            if !reaper.lives() {
                std::future::pending::<()>().await;
            }
            let body = HttpBody::new(Pieces {
                reaper,
                pieces: pieces(&body),
            });
            Ok(http::Response::builder()
                .header("content-type", "text/event-stream")
                .body(body)
                .expect("legal"))
        })
    }
}

/// The pieces of an answer, last one first.
fn pieces(asked: &Value) -> Vec<String> {
    let text = if is_for_summary(asked) {
        SUMMARY
    } else {
        "A long answer in a few words."
    };
    let delta = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}});
    let words = text.split_inclusive(' ').rev();
    let events = ["[DONE]".to_owned(), usage.to_string(), stop.to_string()];
    events
        .into_iter()
        .chain(words.map(|word| delta(word).to_string()))
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

struct Pieces {
    reaper: Arc<Reaper>,
    pieces: Vec<String>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        if !self.reaper.lives() {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(self.pieces.pop().map(|piece| Ok(Bytes::from(piece))))
    }
}

/// Runs a process that continues from the journal until all work is done or it is killed. Returns
/// whether it was killed.
async fn process(compiler: &Arc<Compiler>, kept: &Arc<Mutex<Vec<u8>>>, at: usize) -> bool {
    let reaper = Reaper::new(at);
    let work = work(Arc::clone(compiler), Arc::clone(kept), Arc::clone(&reaper));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("it starts");
    let task = runtime.spawn(work);
    let killed = tokio::select! {
        biased;
        () = reaper.dead.notified() => true,
        ended = task => {
            ended.expect("no panic");
            false
        }
    };
    // This stops all its tasks.
    runtime.shutdown_background();
    killed
}

/// Does what is left of the work: two questions, a summary, and a third question.
async fn work(compiler: Arc<Compiler>, kept: Arc<Mutex<Vec<u8>>>, reaper: Arc<Reaper>) {
    let loaded = Log::parse(&kept.lock().expect("no panics"))
        .expect("the log of a killed process can be loaded");
    // Cuts off half a line, as the journal on disk does.
    let whole = kept.lock().expect("no panics").len() - loaded.tail_bytes;
    kept.lock().expect("no panics").truncate(whole);
    let start = match loaded.log {
        Some(log) => SessionStart::Resumed(log, Conversation::default()),
        None => SessionStart::New(Conversation::default()),
    };
    let transport = Transport::new(Arc::new(Planted), options())
        .with_client(Arc::new(Client(Arc::clone(&reaper))));
    let pool = SessionPool::new(transport.clone(), PoolOptions::default());
    let compression = Compression::new(pool, agent(&compiler, "Presser"));
    let journal = Box::new(Mortal { reaper, kept });
    let Ok(session) = Session::journaled(agent(&compiler, "Tester"), transport, start, journal)
    else {
        return;
    };
    let said = |history: &[Message], text: &str| {
        history.iter().any(|message| message.text().contains(text))
    };
    for question in ["First?", "Second?"] {
        let is_summarised = said(&session.history(), SUMMARY);
        if !is_summarised
            && !said(&session.history(), question)
            && session.send(question).text().await.is_err()
        {
            return;
        }
    }
    if !said(&session.history(), SUMMARY) && session.compress(&compression).text().await.is_err() {
        return;
    }
    if !said(&session.history(), "Third?") {
        let _ = session.send("Third?").text().await;
    }
}

/// Returns the body that an agent compiles from a log.
fn body(compiler: &Arc<Compiler>, log: &Log) -> String {
    let conversation = Conversation {
        task: Task::Chat(log.history().to_vec()),
        is_told: true,
        known_prompt: log.instructions().map(|known| Arc::clone(&known.prompt)),
        ..Conversation::default()
    };
    agent(compiler, "Tester")
        .compile(conversation)
        .expect("it compiles")
        .body
        .compact()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_at_any_step_loses_nothing_and_goes_on() {
    let compiler = compiler("https://nowhere.invalid");
    let mut points = 0;
    for at in 0.. {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        if !process(&compiler, &kept, at).await {
            break;
        }
        points += 1;
        let left = kept.lock().expect("no panics").clone();
        let before = Log::parse(&left).expect("it loads");
        let whole = &left[..left.len() - before.tail_bytes];
        assert!(!process(&compiler, &kept, usize::MAX).await);
        let after = kept.lock().expect("no panics").clone();
        assert!(
            after.starts_with(whole),
            "{at}: what was written stays, byte for byte"
        );
        let log = Log::parse(&after).expect("it loads").log.expect("a header");
        assert_eq!(log.to_text().as_bytes(), after, "{at}");
        check(&compiler, &log, at);
    }
    assert!(points >= 50, "only {points} points");
    println!("killed at {points} points");
}

/// Checks a finished log, which must be complete wherever the process was killed.
fn check(compiler: &Arc<Compiler>, log: &Log, at: usize) {
    let lines = log.to_text();
    for text in ["First?", "Second?", "Third?"] {
        assert_eq!(
            lines.matches(text).count(),
            1,
            "{at}: {text} is there once: {lines}"
        );
    }
    let summaries = log
        .entries()
        .filter(|entry| matches!(entry, Entry::Summary(_)))
        .count();
    assert_eq!(summaries, 1, "{at}: {lines}");
    let texts: Vec<String> = log.history().iter().map(Message::text).collect();
    assert_eq!(texts[0], SHOWN, "{at}");
    assert!(texts.iter().any(|text| text == "Third?"), "{at}: {texts:?}");
    // The reloaded log results in the same request, byte for byte.
    let again = Log::parse(lines.as_bytes())
        .expect("it loads")
        .log
        .expect("a header");
    assert_eq!(body(compiler, &again), body(compiler, log), "{at}");
}
