//! A complete program, from a repository to a chat: an agent with tools, a hook, a time limit, and
//! a session file.
//!
//! ```sh
//! cargo run --example agent -- "Claude Chat Tools" chat.jsonl
//! ```
//!
//! If it is run again with the same file, it continues the chat. Ctrl-C cancels an answer, and an
//! empty line ends the chat.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use reqc::runtime::hooks::{ToolDecision, before_tool};
use reqc::runtime::tools::{ToolContext, ToolSet, TypedTool};
use reqc::runtime::{Event, Outcome, Session, ToolCall};
use reqc::system::{OpenedRepository, open_repository};
use schemars::JsonSchema;
use serde::Deserialize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agent, file] = arguments.as_slice() else {
        return Err("usage: agent AGENT FILE".into());
    };
    let session = open(&open_repository(".")?, agent, file.as_ref())?;
    println!("{} messages so far", session.history().len());
    for line in std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        println!("{:?}", ask(&session, &line, tokio::signal::ctrl_c()).await);
    }
    Ok(())
}

/// Opens the session in a file, or starts a new one.
pub(crate) fn open(
    repository: &OpenedRepository,
    agent: &str,
    file: &Path,
) -> Result<Session, Box<dyn Error>> {
    let session = repository.session_in(agent, file)?;
    session.set_tools(ToolSet::new().with(TypedTool::new(
        "divide",
        "Divides two numbers.",
        divide,
    )));
    session.set_run_timeout(Some(Duration::from_mins(5)));
    Ok(session)
}

/// What the model sends to `divide`.
#[derive(Deserialize, JsonSchema)]
struct Division {
    /// The number that is divided.
    dividend: f64,
    divisor: f64,
}

async fn divide(input: Division, _: ToolContext) -> Result<String, &'static str> {
    if input.divisor == 0.0 {
        Err("nothing is divided by zero")
    } else {
        Ok((input.dividend / input.divisor).to_string())
    }
}

/// Checks each call before its tool runs.
fn careful(call: &ToolCall) -> ToolDecision {
    let is_large = call
        .input
        .as_ref()
        .is_ok_and(|input| input["dividend"].as_f64() > Some(1e6));
    if is_large {
        ToolDecision::refuse("that is too much")
    } else {
        ToolDecision::Run
    }
}

/// Asks one question, and waits until it is answered or `stop` completes.
pub(crate) async fn ask(
    session: &Session,
    question: &str,
    stop: impl Future + Send + 'static,
) -> Outcome {
    let run = session
        .with_hooks(before_tool(careful))
        .send(question)
        .cancel_on(stop);
    run.outcome_with(|event| {
        match event {
            Event::Text(text) => print!("{text}"),
            Event::ToolResult { name, output, .. } => println!("[{name}: {}]", output.content),
            _ => {}
        }
        // If the terminal is gone, no output is needed.
        let _ = std::io::stdout().flush();
    })
    .await
}
