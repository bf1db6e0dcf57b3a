//! A long chat in a small context window. Before the window is full, a summary replaces the
//! conversation so far.
//!
//! ```sh
//! cargo run --example compression -- "Claude Chat" chat.jsonl
//! ```
//!
//! Type `/compress` to compress now, or `/tokens` to see the size of the next request. An empty
//! line ends the chat.

use std::error::Error;
use std::io::BufRead;
use std::path::Path;

use reqc::runtime::compression::{AutoCompression, Compression};
use reqc::runtime::pool::{PoolOptions, SessionPool};
use reqc::runtime::{Error as RunError, Event, Session};
use reqc::system::{OpenedRepository, open_repository};

/// The context window that this program assumes, in tokens. It is small, so that compression
/// happens soon.
const WINDOW: u64 = 16_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agent, file] = arguments.as_slice() else {
        return Err("usage: compression AGENT FILE".into());
    };
    let repository = open_repository(".")?;
    let chat = Chat::open(&repository, agent, file.as_ref(), WINDOW)?;
    for line in std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        println!(
            "{}",
            chat.enter(&line)
                .await
                .unwrap_or_else(|error| error.to_string())
        );
    }
    Ok(())
}

/// A chat that is compressed automatically.
pub(crate) struct Chat {
    pub(crate) session: Session,
    compression: Compression,
}

impl Chat {
    /// Opens the chat in a file. The summarising agent is the one in the roster `chat_compression`,
    /// or else the bundled agent for the same provider.
    pub(crate) fn open(
        repository: &OpenedRepository,
        agent: &str,
        file: &Path,
        window: u64,
    ) -> Result<Chat, Box<dyn Error>> {
        let session = repository.session_in(agent, file)?;
        let pool = SessionPool::new(repository.transport(), PoolOptions::default());
        let compression =
            Compression::new(pool, repository.agent(agent)?.compression_agent()?).keeping(1);
        let auto = AutoCompression::new(compression.clone()).with_window(window);
        session.set_auto_compression(Some(auto))?;
        Ok(Chat {
            session,
            compression,
        })
    }

    /// Processes a line that the user entered, and returns the text to print.
    pub(crate) async fn enter(&self, line: &str) -> Result<String, RunError> {
        match line {
            "/compress" => self.session.compress(&self.compression).text().await,
            "/tokens" => self.tokens(),
            message => self.ask(message).await,
        }
    }

    /// Returns a description of the size of the next request, by part.
    fn tokens(&self) -> Result<String, RunError> {
        let estimate = self.session.estimate()?;
        let parts = estimate
            .parts
            .iter()
            .map(|part| format!("{:>7} {} {}\n", part.tokens, part.kind.name(), part.pointer));
        Ok(format!(
            "{}{:>7} in all",
            parts.collect::<String>(),
            estimate.total()
        ))
    }

    async fn ask(&self, message: &str) -> Result<String, RunError> {
        let (mut text, mut notes) = (String::new(), String::new());
        let run = self.session.send(message);
        let outcome = run.outcome_with(|event| match event {
            Event::Text(piece) => text.push_str(&piece),
            Event::Compressed { messages, .. } => {
                notes = format!("[{messages} messages were compressed]\n");
            }
            _ => {}
        });
        match outcome.await {
            reqc::runtime::Outcome::Failed(error) => Err(error),
            _ => Ok(notes + &text),
        }
    }
}
