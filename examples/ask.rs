//! One question to an agent of the repository around the current folder, and the text of its answer.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run --example ask -- "Claude Chat" "What is a monad?"
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use reqc::conversation::{Block, Conversation};
use reqc::runtime::{Agent, Session, Transport, TransportOptions};
use reqc::system::{SystemSecrets, open_repository};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agent, question] = arguments.as_slice() else { return Err("usage: ask AGENT QUESTION".into()) };
    let repository = open_repository(Path::new("."))?;
    let agent = Agent::new(repository.compiler, agent, repository.setting)?;
    let transport = Transport::new(Arc::new(SystemSecrets::new(repository.root)), TransportOptions::default());
    let session = Session::new(agent, transport, Conversation::default());
    let answer = session.send(vec![Block::Text(question.as_str().into())]).answer().await;
    println!("{}", answer.into_text()?);
    Ok(())
}
