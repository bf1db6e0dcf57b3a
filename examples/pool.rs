//! Runs small jobs in parallel: summarises each file in one line, a few files at a time.
//!
//! ```sh
//! cargo run --example pool -- "Claude Chat" src/*.rs
//! ```
//!
//! It sends keys to the servers that the repository specifies, so run it only in repositories that
//! you trust.

use std::error::Error;
use std::path::PathBuf;

use reqc::runtime::pool::{PoolOptions, SessionPool};
use reqc::runtime::{Agent, Error as RunError};
use reqc::system::open_repository;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let agent = arguments.next().ok_or("usage: pool AGENT FILE…")?;
    let repository = open_repository(".")?;
    let pool = SessionPool::new(
        repository.transport(),
        PoolOptions::default().with_sessions(3),
    );
    for line in describe_all(
        &pool,
        &repository.agent(&agent)?,
        arguments.map(PathBuf::from),
    )
    .await
    {
        println!("{line}");
    }
    Ok(())
}

/// Returns a line for each file, in order. The pool limits how many requests run at the same time.
pub(crate) async fn describe_all(
    pool: &SessionPool,
    agent: &Agent,
    files: impl Iterator<Item = PathBuf>,
) -> Vec<String> {
    let mut jobs = JoinSet::new();
    for (number, file) in files.enumerate() {
        let (pool, agent) = (pool.clone(), agent.clone());
        jobs.spawn(async move {
            let said = describe(&pool, &agent, &file)
                .await
                .unwrap_or_else(|error| error.to_string());
            (number, format!("{}: {said}", file.display()))
        });
    }
    let mut lines = jobs.join_all().await;
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Describes a file in one line. The session is empty when it is acquired, and returns to the pool
/// at the end of this function.
async fn describe(
    pool: &SessionPool,
    agent: &Agent,
    file: &std::path::Path,
) -> Result<String, RunError> {
    let session = pool.acquire(agent).await;
    session
        .send(format!(
            "In one line: what may be in a file called {}?",
            file.display()
        ))
        .text()
        .await
}
