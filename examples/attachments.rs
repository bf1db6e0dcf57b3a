//! Sends a file that the session refers to but does not contain. The bytes are read from the
//! session's folder for each request.
//!
//! `cargo run --example attachments -- "Claude Chat" tree.png "What is this?"`

use std::path::Path;
use std::sync::Arc;

use reqc::conversation::{Block, Conversation};
use reqc::runtime::{Category, Error, Session, SessionStart};
use reqc::system::{FolderContent, JournalFile, OpenedRepository, open_repository};

/// Asks about a file below a folder, and writes the session to the same folder.
pub(crate) async fn ask(
    repository: &OpenedRepository,
    agent: &str,
    folder: &Path,
    file: &str,
    question: &str,
) -> Result<String, Error> {
    let files = FolderContent::open(folder).map_err(|why| Error::new(Category::Config, why))?;
    let message = vec![
        Block::Text(question.into()),
        Block::Stored(files.store(file)?),
    ];
    let journal = JournalFile::create(&folder.join("session.jsonl"));
    let journal = journal.map_err(|why| Error::new(Category::Config, why))?;
    let agent = repository.agent(agent)?.with_content(Arc::new(files));
    let start = SessionStart::New(Conversation::default());
    let session = Session::journaled(agent, repository.transport(), start, Box::new(journal))?;
    session.send(message).text().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [agent, file, question] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "AGENT FILE QUESTION")?;
    println!(
        "{}",
        ask(
            &open_repository(".")?,
            &agent,
            Path::new("."),
            &file,
            &question
        )
        .await?
    );
    Ok(())
}
