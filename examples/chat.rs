//! A chat in the terminal, with its session in a file.
//!
//! ```sh
//! llama-server -m model.gguf --port 8080 &
//! cargo run --example chat -- http://127.0.0.1:8080 chat.jsonl
//! ```
//!
//! If it is run again with the same file, it continues the chat. If it was killed during an answer,
//! the model is told about it.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, LoadOptions};
use reqc::runtime::secret::MemorySecrets;
use reqc::runtime::{Agent, Event, Outcome, Run, Transport, TransportOptions};
use reqc::system::{Embedded, SessionFile, project_environment};
use reqc::world::MemoryWorld;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file] = arguments.as_slice() else {
        return Err("usage: chat URL FILE".into());
    };
    // A local server needs no key.
    let transport = Transport::new(
        Arc::new(MemorySecrets::default()),
        TransportOptions::default(),
    );
    let session = SessionFile::open_or_create(Path::new(file))?.session(agent(url)?, transport)?;
    println!(
        "{} messages so far; an empty line ends the chat",
        session.history().len()
    );
    for line in std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        show(session.send(line)).await;
    }
    println!("{:?}", session.usage());
    Ok(())
}

/// Returns a bundled agent whose provider instance is replaced. For a repository on disk, use a
/// `system::Disk` instead.
fn agent(url: &str) -> Result<Agent, Box<dyn Error>> {
    let instance = format!("name = \"llama.cpp\"\nclient_api = \"llama.cpp\"\nurl = \"{url}\"\n");
    let own = MemoryWorld::from_iter([("providers/local.toml", instance.as_str())]);
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(Arc::new(own), Arc::new(Embedded::bundled()), options);
    // The agent's prompts mention the current folder.
    let here = Path::new(".").canonicalize()?;
    let environment = project_environment(&here, &here)?;
    Ok(Agent::new(
        Arc::new(compiler),
        "llama.cpp Chat",
        environment,
    )?)
}

async fn show(mut run: Run) {
    while let Some(event) = run.next().await {
        match event {
            Event::Text(text) => print!("{text}"),
            Event::Retry { error, .. } => eprintln!("{error}; trying again"),
            // The message was removed from the history, so the chat can continue.
            Event::Done(Outcome::Failed(error)) => eprintln!("{error}"),
            Event::Done(_) => println!(),
            _ => {}
        }
        // If the terminal is gone, no output is needed.
        let _ = std::io::stdout().flush();
    }
}
