//! Determines which agent handles a file: the first agent in a roster whose `match` accepts the
//! file.
//!
//! ```sh
//! llama-server -m model.gguf --port 8080 &
//! cargo run --example routing -- http://127.0.0.1:8080 src/main.rs
//! cargo run --example routing -- http://127.0.0.1:8080 README.md
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use reqc::compile::route::Router;
use reqc::compile::{Compiler, LoadOptions};
use reqc::conversation::Conversation;
use reqc::repo::FileToRoute;
use reqc::runtime::secret::MemorySecrets;
use reqc::runtime::{Agent, Session, Transport, TransportOptions};
use reqc::system::{Embedded, project_environment};
use reqc::world::MemoryWorld;

const ROSTERS: &str = r#"
[[roster]]
name = "review"
agents = ["Rust Reviewer", "Reviewer"]
"#;

const RUST_REVIEWER: &str = r#"
name = "Rust Reviewer"
extends = "Reviewer"
match.file_patterns = ["*.rs"]
"#;

/// An agent without `match`, which therefore accepts every file.
const REVIEWER: &str = r#"
name = "Reviewer"
extends = "llama.cpp Chat"

[body]
max_tokens = 200
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file] = arguments.as_slice() else {
        return Err("usage: routing URL FILE".into());
    };
    let compiler = Arc::new(compiler(url));
    let roster = compiler
        .repo()
        .rosters
        .first()
        .ok_or("`rosters.toml` names one")?;
    let route = Router::new(&compiler).route(roster, &FileToRoute::new(file, None));
    for (name, why) in &route.passed {
        println!("not {name}: {why}");
    }
    let id = route.agent.ok_or("no agent accepts this file")?;
    let name = Arc::clone(&compiler.hierarchy().get(id).name.value);
    println!("{name}:");

    // The agents' prompts mention the current folder.
    let here = Path::new(".").canonicalize()?;
    let environment = project_environment(&here, &here)?;
    let agent = Agent::new(Arc::clone(&compiler), &name, environment)?;
    let transport = Transport::new(
        Arc::new(MemorySecrets::default()),
        TransportOptions::default(),
    );
    let session = Session::new(agent, transport, Conversation::default());
    let question = format!("What would you look at first in {file}?");
    let outcome = session.send(question).outcome().await;
    println!("{outcome:?}");
    for message in session.history() {
        println!("{}: {:?}", message.role.name(), message.blocks);
    }
    Ok(())
}

fn compiler(url: &str) -> Compiler {
    let instance = format!("name = \"llama.cpp\"\nclient_api = \"llama.cpp\"\nurl = \"{url}\"\n");
    let own = MemoryWorld::from_iter([
        ("providers/local.toml", instance.as_str()),
        ("rosters.toml", ROSTERS),
        ("agents/reviewer.toml", REVIEWER),
        ("agents/rust_reviewer.toml", RUST_REVIEWER),
    ]);
    Compiler::load(
        Arc::new(own),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    )
}
