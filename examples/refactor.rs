//! Lets an agent rewrite code, and prepares the result to replace the original: it removes fences,
//! and restores the original indentation.
//!
//! `cargo run --example refactor -- "Claude Chat" "Use a match." < src/main.rs`

use reqc::runtime::Error;
use reqc::runtime::clean::{AnswerPlace, clean};
use reqc::system::{OpenedRepository, open_repository};

/// Returns the code as rewritten by an agent.
pub(crate) async fn refactor(
    repository: &OpenedRepository,
    agent: &str,
    code: &str,
    wish: &str,
) -> Result<String, Error> {
    let session = repository.session(agent)?;
    let answer = session
        .send(format!("{wish} Answer with the code alone.\n\n{code}"))
        .text()
        .await?;
    let place = AnswerPlace {
        replaced: code,
        ..AnswerPlace::default()
    };
    Ok(clean(&answer, &place).into_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [agent, wish] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "AGENT WISH")?;
    let code = std::io::read_to_string(std::io::stdin())?;
    println!(
        "{}",
        refactor(&open_repository(".")?, &agent, &code, &wish).await?
    );
    Ok(())
}
