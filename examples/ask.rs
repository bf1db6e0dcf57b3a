//! Asks one question to an agent in the repository in this folder or, without a repository, to a
//! bundled agent.
//!
//! ```sh
//! cargo run --example ask -- "Claude Chat" "What is a monad?"
//! ```
//!
//! It sends keys to the servers that the repository specifies, so run it only in repositories that
//! you trust.

use std::error::Error;

use reqc::system::open_repository;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agent, question] = arguments.as_slice() else {
        return Err("usage: ask AGENT QUESTION".into());
    };
    let repository = open_repository(".")?;
    let session = repository.session(agent)?;
    println!("{}", session.send(question.as_str()).text().await?);
    Ok(())
}
