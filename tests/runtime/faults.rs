//! A hundred concurrent sessions over connections that break in every way: each request ends
//! exactly once, no connection stays open, and every session file is complete.
//!
//! The faults follow from a seed, which a failing test prints; their timing depends on the machine.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads the files that sessions wrote"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqc::conversation::log::Log;
use reqc::conversation::{Block, Conversation, Message, Role};
use reqc::runtime::hooks::Hooks;
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{
    Agent, Event, Outcome, Run, Session, SessionStart, Transport, TransportOptions,
};
use reqc::system::JournalFile;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

use crate::fixture::{Planted, agent, called, events, options, results, said, text};
use crate::server::{Act, Received, Server, calls, says, status};

const SESSIONS: u64 = 100;
const TURNS: usize = 3;

/// A small random number generator (splitmix64). A seed and a number determine its output.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, number: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn time(&mut self, limit_ms: u64) -> Duration {
        Duration::from_micros(self.below(limit_ms * 1000))
    }
}

/// Prints the seed if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}

/// The fault of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Closed with a reset before anything is read.
    Refused,
    Delayed(Duration),
    /// Reset after this many bytes of the answer, which can be none, or end in the head or the
    /// body.
    ResetAfter(usize),
    /// Closed after this many bytes, as if the answer was complete.
    CutAfter(usize),
    /// Random bytes are inserted after this many bytes.
    GarbageAfter(usize),
    /// Passed on in pieces of at most this many bytes.
    Split(usize),
}

impl Fault {
    fn roll(dice: &mut Dice) -> Fault {
        // A head has about 90 bytes, an answer up to 700.
        let place = |dice: &mut Dice| dice.below(600) as usize;
        match dice.below(10) {
            0 => Fault::Refused,
            1 => Fault::Delayed(dice.time(30)),
            2 | 3 => Fault::ResetAfter(place(dice)),
            4 => Fault::CutAfter(place(dice)),
            5 => Fault::GarbageAfter(place(dice)),
            6 | 7 => Fault::Split(1 + dice.below(7) as usize),
            _ => Fault::None,
        }
    }
}

/// A proxy between clients and a server that breaks connections.
struct Proxy {
    url: String,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    async fn start(server: &Server, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let target = server.url.trim_start_matches("http://").to_owned();
        let open = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&open);
        let task = tokio::spawn(async move {
            for number in 0.. {
                let Ok((client, _)) = listener.accept().await else {
                    return;
                };
                let (counter, target) = (Arc::clone(&counter), target.clone());
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = relay(client, &target, Dice::new(seed, number)).await;
                    counter.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Proxy { url, open, task }
    }
}

async fn relay(mut client: TcpStream, target: &str, mut dice: Dice) -> std::io::Result<()> {
    let fault = Fault::roll(&mut dice);
    if fault == Fault::Refused {
        return client.set_zero_linger();
    }
    let mut server = TcpStream::connect(target).await?;
    let reset = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        tokio::select! {
            // Ends when the client closes its connection; the proxy then closes the one to the
            // server.
            _ = tokio::io::copy(&mut from_client, &mut to_server) => false,
            reset = answer(&mut from_server, &mut to_client, fault, &mut dice) => reset?,
        }
    };
    if reset {
        client.set_zero_linger()
    } else {
        client.shutdown().await
    }
}

/// Passes an answer on until the fault occurs. Returns whether a reset must follow.
async fn answer(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    fault: Fault,
    dice: &mut Dice,
) -> std::io::Result<bool> {
    if let Fault::Delayed(time) = fault {
        tokio::time::sleep(time).await;
    }
    let mut passed = 0;
    let mut bytes = [0; 4096];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(false);
        }
        let bytes = &bytes[..count];
        match fault {
            Fault::ResetAfter(place) | Fault::CutAfter(place) if passed + count > place => {
                to.write_all(&bytes[..place - passed]).await?;
                return Ok(matches!(fault, Fault::ResetAfter(_)));
            }
            Fault::GarbageAfter(place) if (passed..passed + count).contains(&place) => {
                let garbage: Vec<u8> = (0..=dice.below(40)).map(|_| dice.next() as u8).collect();
                to.write_all(&bytes[..place - passed]).await?;
                to.write_all(&garbage).await?;
                to.write_all(&bytes[place - passed..]).await?;
            }
            Fault::Split(most) => {
                for piece in bytes.chunks(most) {
                    to.write_all(piece).await?;
                    tokio::task::yield_now().await;
                }
            }
            _ => to.write_all(bytes).await?,
        }
        passed += count;
    }
}

/// Refuses some requests, calls tools in two rounds if there are tools, then answers, piece by
/// piece.
fn script(number: usize, request: &Received) -> Vec<Act> {
    match number % 23 {
        3 => return status(503, &[], "{}"),
        8 => {
            return status(
                429,
                &[("retry-after", "0")],
                r#"{"error":{"message":"slow down"}}"#,
            );
        }
        13 => return status(400, &[], r#"{"error":{"message":"no"}}"#),
        21 => return vec![says("Never ends.").swap_remove(0), Act::Hang],
        _ => {}
    }
    let body = request.json();
    let messages = body["messages"].as_array().expect("a list");
    let results = messages
        .iter()
        .rev()
        .take_while(|message| message["role"] != "user");
    let results = results.filter(|message| message["role"] == "tool").count();
    let answer = match (body.get("tools").is_some(), results) {
        (true, 0) => calls(&[("c1", "look", "{}"), ("c2", "look", r#"{"at": "b"}"#)]),
        (true, 2) => calls(&[("c3", "look", "no object")]),
        _ => says("An answer of some length, so that there is a middle to break in."),
    };
    answer
        .into_iter()
        .flat_map(|act| [act, Act::Pause(Duration::from_millis(1))])
        .collect()
}

/// A tool that takes a short time.
fn tools() -> ToolSet {
    let schema = json!({"type": "object"})
        .as_object()
        .cloned()
        .expect("an object");
    let definition = reqc::conversation::Tool {
        name: "look".into(),
        description: "looks".into(),
        schema,
    };
    ToolSet::new().with(FnTool::new(definition, |_, _| async {
        tokio::time::sleep(Duration::from_millis(3)).await;
        ToolOutput::text("seen")
    }))
}

/// Counts the requests that end, including those whose turn was dropped.
#[derive(Default)]
struct Ends(AtomicUsize);

impl Hooks for Ends {
    fn observe(&self, event: &Event) {
        if matches!(event, Event::Done(_)) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The events of a request and its outcome; `None` if its turn was dropped.
type Heard = Option<(Vec<Event>, Outcome)>;

/// Reads a turn to its end, or cancels it after a while, or drops it.
async fn watch(mut turn: Run, dice: &mut Dice) -> Heard {
    match dice.below(6) {
        0 => {
            let cancel = turn.cancellation();
            let patience = dice.time(60);
            let cancelling = tokio::spawn(async move {
                tokio::time::sleep(patience).await;
                cancel.cancel();
            });
            let heard = events(turn).await;
            cancelling.abort();
            Some(heard)
        }
        1 => {
            for _ in 0..dice.below(8) {
                if let Some(Event::Done(_)) = turn.next().await {
                    break;
                }
            }
            None
        }
        _ => Some(events(turn).await),
    }
}

/// Runs one session from its start to its last request. Returns the events of each request.
async fn live(agent: Agent, transport: Transport, path: &Path, mut dice: Dice) -> Vec<Heard> {
    let journal = Box::new(JournalFile::create(path).expect("a new file"));
    let session = Session::journaled(
        agent,
        transport,
        SessionStart::New(Conversation::default()),
        journal,
    );
    let session = session.expect("the file can be written");
    if dice.below(2) == 0 {
        session.set_tools(tools());
    }
    let ends = Arc::<Ends>::default();
    let hooked = session.with_hooks(Arc::clone(&ends) as Arc<dyn Hooks>);
    let under_hooks = dice.below(2) == 0;
    let mut heard = Vec::new();
    let mut overtaken = None;
    for number in 0..TURNS {
        let message = text(&format!("message {number}"));
        let turn = if under_hooks {
            hooked.send(message)
        } else {
            session.send(message)
        };
        if dice.below(5) == 0 && overtaken.is_none() && number + 1 < TURNS {
            // The next message cancels this turn.
            overtaken = Some((number, turn));
            heard.push(None);
        } else {
            heard.push(watch(turn, &mut dice).await);
        }
    }
    if let Some((number, turn)) = overtaken {
        heard[number] = Some(events(turn).await);
    }
    session.idle().await;
    assert_eq!(session.open_requests(), 0);
    if under_hooks {
        assert_eq!(
            ends.0.load(Ordering::SeqCst),
            TURNS,
            "each request ends once"
        );
    }
    let history = session.history();
    check_history(&history, &heard);
    drop((session, hooked));
    // The session was idle, so its file is free.
    let opened = JournalFile::open(path).expect("it is free");
    let loaded = Log::parse(&opened.bytes).expect("it loads");
    let log = loaded.log.expect("it has a header");
    assert_eq!(
        (loaded.tail_bytes, log.to_text().into_bytes()),
        (0, opened.bytes)
    );
    assert_eq!(log.history(), history);
    heard
}

fn check_history(history: &[Message], heard: &[Heard]) {
    for (at, message) in history.iter().enumerate() {
        let results = history.get(at + 1).map(results).unwrap_or_default();
        assert_eq!(
            called(message),
            results,
            "calls and results belong together: {history:#?}"
        );
    }
    let asked = |(at, message): (usize, &Message)| match message.role {
        Role::User => text_of(message).map(|text| (at, text)),
        _ => None,
    };
    let asked: Vec<(usize, String)> = history.iter().enumerate().filter_map(asked).collect();
    assert!(
        asked.windows(2).all(|pair| pair[0].1 < pair[1].1),
        "messages keep their order: {asked:?}"
    );
    for (number, heard) in heard.iter().enumerate() {
        let at = asked
            .iter()
            .position(|(_, text)| *text == format!("message {number}"));
        match heard {
            Some((events, Outcome::Finished(_))) => {
                let at = at.expect("a message that was answered stays");
                let end = asked.get(at + 1).map_or(history.len(), |(next, _)| *next);
                let answers = history[asked[at].0 + 1..end]
                    .iter()
                    .filter(|message| message.role == Role::Assistant);
                let answer: String = answers.filter_map(text_of).collect();
                assert_eq!(answer, said(events), "the answer stays");
            }
            Some((_, Outcome::Cancelled)) => {
                assert!(at.is_some(), "a message that was cancelled stays");
            }
            Some((_, Outcome::Failed(_))) | None => {}
        }
    }
}

/// The text of a message, if there is any.
fn text_of(message: &Message) -> Option<String> {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let texts: Vec<String> = message.blocks.iter().filter_map(text).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// Waits until a count reaches its expected value.
async fn settles(what: &str, expected: usize, count: impl Fn() -> usize) {
    for _ in 0..4000 {
        if count() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: {} instead of {expected}", count());
}

async fn storm(seed: u64) {
    let seed = Seed(seed);
    let metrics = Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(script).await;
    let proxy = Proxy::start(&server, seed.0).await;
    let agent = agent(&proxy.url);
    let options = TransportOptions {
        idle_timeout: Duration::from_secs(1),
        ..options()
    };
    let transport = Transport::new(Arc::new(Planted), options);
    let mut sessions = JoinSet::new();
    for number in 0..SESSIONS {
        let (agent, transport) = (agent.clone(), transport.clone());
        let path = folder.path().join(format!("{number}.jsonl"));
        let dice = Dice::new(!seed.0, number);
        sessions.spawn(async move { live(agent, transport, &path, dice).await });
    }
    let mut heard: Vec<Heard> = Vec::new();
    while let Some(ended) = sessions.join_next().await {
        heard.extend(ended.expect("no session panics"));
    }
    check_variety(&heard);
    server.quiet().await;
    settles("connections to the proxy", 0, || {
        proxy.open.load(Ordering::SeqCst)
    })
    .await;
    check_files(folder.path(), &agent, &transport);
    drop((transport, proxy, server));
    settles("tasks", before, || metrics.num_alive_tasks()).await;
}

/// Checks that requests end in every way: a run in which nothing or everything fails proves
/// nothing.
fn check_variety(heard: &[Heard]) {
    let mut ends = [0; 4];
    for heard in heard {
        ends[match heard {
            Some((_, Outcome::Finished(_))) => 0,
            Some((_, Outcome::Failed(_))) => 1,
            Some((_, Outcome::Cancelled)) => 2,
            None => 3,
        }] += 1;
    }
    assert!(
        ends.iter().all(|&count| count >= 10),
        "finished, failed, cancelled, dropped: {ends:?}"
    );
}

/// Loads every session again. Only a notice of an interruption may be added to its file.
fn check_files(folder: &Path, agent: &Agent, transport: &Transport) {
    for number in 0..SESSIONS {
        let path = folder.join(format!("{number}.jsonl"));
        let opened = JournalFile::open(&path).expect("it is there");
        let log = Log::parse(&opened.bytes)
            .expect("it loads")
            .log
            .expect("it has a header");
        let interrupted = log.is_interrupted();
        let restored = SessionStart::Resumed(log, Conversation::default());
        let session = Session::journaled(
            agent.clone(),
            transport.clone(),
            restored,
            Box::new(opened.journal),
        );
        drop(session.expect("the file can be written"));
        let after = std::fs::read(&path).expect("it is there");
        let added = String::from_utf8_lossy(
            after
                .strip_prefix(&*opened.bytes)
                .expect("only the end is new"),
        );
        assert_eq!(
            (interrupted, added.lines().count()),
            (added.contains("interrupt"), usize::from(interrupted))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_breaks_every_request_ends_once_and_nothing_stays_open() {
    for seed in [1, 2, 3, 20_261_122] {
        storm(seed).await;
    }
}
