//! Compares the cost of a session from a pool with that of a new session, of a new session whose
//! agent is also looked up, and of a new session with its own transport. `cargo bench --bench pool`
//! prints medians of interleaved runs; the ratios are reliable, the times are not.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqc::compile::{Compiler, Folders, LoadOptions, PromptEnvironment};
use reqc::conversation::Conversation;
use reqc::runtime::pool::{PoolOptions, SessionPool};
use reqc::runtime::secret::MemorySecrets;
use reqc::runtime::{Agent, Session, Transport, TransportOptions};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 15;
const SESSIONS: u32 = 1_000;

fn main() {
    let compiler = Arc::new(compiler());
    let agent = agent(&compiler);
    let transport = Transport::new(
        Arc::new(MemorySecrets::default()),
        TransportOptions::default(),
    );
    let pool = SessionPool::new(transport.clone(), PoolOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("it starts");
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        times[0].push(runtime.block_on(pooled(&pool, &agent)));
        times[1].push(timed(|| drop(black_box(new(&agent, &transport)))));
        times[2].push(timed(|| {
            drop(black_box(new(&self::agent(&compiler), &transport)));
        }));
        let own = || {
            Transport::new(
                Arc::new(MemorySecrets::default()),
                TransportOptions::default(),
            )
        };
        times[3].push(timed(|| drop(black_box(new(&agent, &own())))));
    }
    let names = [
        "a session of the pool",
        "a new session",
        "a new session and agent",
        "a new session and transport",
    ];
    for (name, times) in names.into_iter().zip(&mut times) {
        times.sort_unstable();
        println!("{name:<28} {:>12?}", times[RUNS / 2] / SESSIONS);
    }
}

async fn pooled(pool: &SessionPool, agent: &Agent) -> Duration {
    let begun = Instant::now();
    for _ in 0..SESSIONS {
        drop(black_box(pool.acquire(agent).await));
    }
    begun.elapsed()
}

fn timed(mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..SESSIONS).for_each(|_| work());
    begun.elapsed()
}

fn new(agent: &Agent, transport: &Transport) -> Session {
    Session::new(agent.clone(), transport.clone(), Conversation::default())
}

fn compiler() -> Compiler {
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    Compiler::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        options,
    )
}

fn agent(compiler: &Arc<Compiler>) -> Agent {
    let environment = PromptEnvironment {
        project: Arc::new(MemoryWorld::default()),
        project_name: "bench".into(),
        language: "".into(),
        folders: Folders::placeholders(),
    };
    Agent::new(Arc::clone(compiler), "Claude Chat", environment).expect("it is bundled")
}
