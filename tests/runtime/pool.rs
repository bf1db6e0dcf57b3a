//! A pool of one-shot sessions: acquired sessions are empty, their number is bounded, and no use of
//! a session affects later ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqc::conversation::{Conversation, SystemLayer, Task, Tool};
use reqc::runtime::client::{Bytes, HttpBody, HttpClient, HttpError, http};
use reqc::runtime::pool::{PoolOptions, PooledSession, SessionPool};
use reqc::runtime::tools::{BoxFuture, FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Outcome, Transport};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fixture::{Planted, agent, history, options};

const BOUND: usize = 5;
const TASKS: usize = 64;
const ACQUISITIONS: usize = 10_000;

/// A server in memory that answers at once or never, as the message asks. Counts open requests.
#[derive(Default)]
struct Memory {
    open: AtomicUsize,
    most: AtomicUsize,
}

/// An open request; closes when it is dropped.
struct Open(Arc<Memory>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Client(Arc<Memory>);

impl HttpClient for Client {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
        let open = self.0.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(open, Ordering::SeqCst);
        let open = Open(Arc::clone(&self.0));
        let hangs = String::from_utf8_lossy(request.body()).contains("never");
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            drop(open);
            Ok(answer())
        })
    }
}

fn answer() -> http::Response<HttpBody> {
    let pieces = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ];
    let body = HttpBody::of_pieces(pieces.map(|piece| Ok(Bytes::from(piece))));
    http::Response::builder()
        .header("content-type", "text/event-stream")
        .body(body)
        .expect("legal")
}

/// A pool, its agent, and its server.
struct Fixture {
    pool: SessionPool,
    agent: Agent,
    memory: Arc<Memory>,
}

fn fixture() -> Fixture {
    let memory = Arc::<Memory>::default();
    let client = Arc::new(Client(Arc::clone(&memory)));
    let transport = Transport::new(Arc::new(Planted), options()).with_client(client);
    let pool = SessionPool::new(transport, PoolOptions::default().with_sessions(BOUND));
    Fixture {
        pool,
        agent: agent("https://nowhere.invalid"),
        memory,
    }
}

/// Leaves in a session all kinds of state that the next user must not see.
fn litter(session: &PooledSession) {
    let echo = Tool::new("echo", "Says it again.", json!({"type": "object"}));
    session.set_tools(ToolSet::new().with(FnTool::new(echo, |_, _| async {
        ToolOutput::text("again")
    })));
    session.set_layer(SystemLayer {
        name: "litter".into(),
        priority: 1,
        text: "Litter.".into(),
    });
    session.set_run_timeout(Some(Duration::from_nanos(1)));
    session.set_round_limit(1);
}

fn assert_empty(session: &PooledSession) {
    assert_eq!(session.history(), []);
    assert_eq!((session.usage().input, session.cost()), (0, Some(0.0)));
    assert_eq!(session.open_requests(), 0);
}

#[tokio::test]
async fn what_is_acquired_knows_nothing_of_who_had_it_before() {
    let Fixture { pool, agent, .. } = fixture();
    let first = pool.acquire(&agent).await;
    assert_eq!(
        first.send("Is it?").text().await.expect("an answer"),
        "Yes."
    );
    litter(&first);
    first.release().await;
    assert_eq!((pool.idle(&agent), pool.in_use(&agent)), (1, 0));

    let second = pool.acquire(&agent).await;
    assert_empty(&second);
    assert_eq!((pool.idle(&agent), pool.in_use(&agent)), (0, 1));
    // The layer, the tool, and the limit of a nanosecond are gone.
    assert_eq!(
        second.send("Is it?").outcome().await,
        Outcome::Finished(reqc::runtime::StopReason::EndTurn)
    );
    let body = agent
        .compile(conversation(&second))
        .expect("it compiles")
        .body;
    assert!(
        !body.compact().contains("itter") && !body.compact().contains("echo"),
        "{}",
        body.compact()
    );
}

fn conversation(session: &PooledSession) -> Conversation {
    Conversation {
        task: Task::Chat(session.history()),
        ..Conversation::default()
    }
}

#[tokio::test]
async fn a_clone_that_outlives_its_guard_is_nobody_elses_session() {
    let Fixture { pool, agent, .. } = fixture();
    let guard = pool.acquire(&agent).await;
    let clone = reqc::runtime::Session::clone(&guard);
    drop(guard);
    assert_eq!((pool.idle(&agent), pool.in_use(&agent)), (0, 0));
    let next = pool.acquire(&agent).await;
    assert_eq!(
        clone.send("Mine.").text().await.expect("it still works"),
        "Yes."
    );
    assert_empty(&next);
    assert_eq!(history(&clone), ["user: Mine.", "assistant: Yes."]);
}

#[tokio::test]
async fn dropping_one_while_it_runs_cancels_it_and_its_place_is_free_once_it_has_ended() {
    let Fixture {
        pool,
        agent,
        memory,
    } = fixture();
    let guard = pool.acquire(&agent).await;
    let mut run = guard.send("never");
    while memory.open.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let event = run.next().await;
    assert!(event.is_some());
    drop(guard);
    assert_eq!(run.outcome().await, Outcome::Cancelled);
    assert_eq!(memory.open.load(Ordering::SeqCst), 0);
    let all = acquire_all(&pool, &agent).await;
    all.iter().for_each(assert_empty);
}

/// Acquires as many sessions as the pool allows. Fails if a place was lost.
async fn acquire_all(pool: &SessionPool, agent: &Agent) -> Vec<PooledSession> {
    let mut all = Vec::new();
    for _ in 0..BOUND {
        let next = tokio::time::timeout(Duration::from_secs(20), pool.acquire(agent)).await;
        all.push(next.expect("no place was lost"));
    }
    all
}

#[tokio::test]
async fn who_asks_first_is_served_first_and_who_gives_up_takes_no_session_along() {
    let Fixture { pool, agent, .. } = fixture();
    let mut held = acquire_all(&pool, &agent).await;
    let order = Arc::<std::sync::Mutex<Vec<usize>>>::default();
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (pool, agent, order) = (pool.clone(), agent.clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let _session = pool.acquire(&agent).await;
            order.lock().expect("no panics").push(number);
        }));
        tokio::task::yield_now().await;
    }
    // Every third user gives up while waiting.
    tasks
        .iter()
        .step_by(3)
        .for_each(tokio::task::JoinHandle::abort);
    tokio::task::yield_now().await;
    held.truncate(BOUND - 1);
    for task in tasks {
        let _ = task.await;
    }
    let expected: Vec<usize> = (0..20).filter(|number| number % 3 != 0).collect();
    assert_eq!(*order.lock().expect("no panics"), expected);
}

#[tokio::test]
async fn agents_that_differ_share_nothing_and_those_that_nobody_uses_are_forgotten() {
    let Fixture { pool, agent, .. } = fixture();
    let held = pool.acquire(&agent).await;
    for number in 0..100 {
        let other = agent.clone().with_model(Some(format!("m{number}")));
        drop(pool.acquire(&other).await);
        assert_eq!(pool.idle(&other), 1);
    }
    let first = agent.clone().with_model(Some("m0"));
    let last = agent.clone().with_model(Some("m99"));
    assert_eq!(
        (pool.idle(&first), pool.idle(&last)),
        (0, 1),
        "the oldest session was dropped"
    );
    assert_eq!(pool.in_use(&agent), 1, "sessions in use stay");
    drop(held);
    assert_eq!(pool.idle(&agent), 1);
}

/// Uses a session in one of eight ways, depending on the number.
async fn use_one(pool: &SessionPool, agent: &Agent, number: usize) {
    match number % 8 {
        0 => drop(tokio::time::timeout(Duration::ZERO, pool.acquire(agent)).await),
        1 => {
            let session = pool.acquire(agent).await;
            litter(&session);
            panic!("a user panics on purpose");
        }
        2 => {
            let session = pool.acquire(agent).await;
            assert_empty(&session);
            let run = session.send("never");
            tokio::task::yield_now().await;
            drop(session);
            drop(run);
        }
        3 if number.is_multiple_of(80) => {
            let session = pool.acquire(agent).await;
            assert_empty(&session);
            let _clone = reqc::runtime::Session::clone(&session);
        }
        4 if number.is_multiple_of(20) => {
            let session = pool.acquire(agent).await;
            assert_empty(&session);
            assert_eq!(
                session.send("Is it?").text().await.expect("an answer"),
                "Yes."
            );
            session.release().await;
        }
        _ => {
            let session = pool.acquire(agent).await;
            assert_empty(&session);
            litter(&session);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_acquisitions_from_64_tasks_with_cancellations_and_panics() {
    let Fixture {
        pool,
        agent,
        memory,
    } = fixture();
    let next = Arc::<AtomicUsize>::default();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (pool, agent, next) = (pool.clone(), agent.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= ACQUISITIONS {
                    return;
                }
                let (pool, agent) = (pool.clone(), agent.clone());
                let user = tokio::spawn(async move { use_one(&pool, &agent, number).await });
                let is_expected = number % 8 == 1;
                // Some users are aborted at any point: while they wait, or in the middle of their
                // work.
                if number.is_multiple_of(7) {
                    user.abort();
                }
                match user.await {
                    Err(error) if error.is_panic() && !is_expected => {
                        std::panic::resume_unwind(error.into_panic())
                    }
                    _ => {}
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no session was anything but empty");
    }
    let all = acquire_all(&pool, &agent).await;
    all.iter().for_each(assert_empty);
    assert_eq!(
        pool.in_use(&agent),
        BOUND,
        "all places are in use, and no more"
    );
    assert_eq!(
        memory.open.load(Ordering::SeqCst),
        0,
        "returned sessions have no open requests"
    );
    let most = memory.most.load(Ordering::SeqCst);
    assert!((1..=BOUND).contains(&most), "{most} requests at a time");
}
