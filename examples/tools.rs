//! Tools that are closures, and hooks that refuse one call, observe every event, and replace the
//! answer.
//!
//! ```sh
//! llama-server -m model.gguf --jinja --port 8080 &
//! cargo run --example tools -- http://127.0.0.1:8080 "What is 20 + 22? Then remove everything."
//! ```
//!
//! With the third argument `required`, the model calls a tool in every round, until the limit below
//! ends the loop.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, LoadOptions};
use reqc::conversation::{Conversation, Tool};
use reqc::runtime::hooks::{BoxFuture, Hooks, MessageDecision, MessageHook, ToolDecision};
use reqc::runtime::secret::MemorySecrets;
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Event, Session, ToolCall, Transport, TransportOptions};
use reqc::system::{Embedded, project_environment};
use reqc::world::MemoryWorld;
use serde_json::json;

/// The maximum number of tool rounds; a request that needs more fails.
const ROUNDS: u32 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (url, question, choice) = match arguments.as_slice() {
        [url, question] => (url, question, "auto"),
        [url, question, choice] => (url, question, choice.as_str()),
        _ => return Err("usage: tools URL QUESTION [required]".into()),
    };
    let transport = Transport::new(
        Arc::new(MemorySecrets::default()),
        TransportOptions::default(),
    );
    let session = Session::new(agent(url, choice)?, transport, Conversation::default());
    session.set_tools(tools());
    let agent_loop = session
        .with_hooks(Careful)
        .with_message_hook(Careful)
        .with_limit(ROUNDS);
    let mut run = agent_loop.send(question.as_str());
    while let Some(event) = run.next().await {
        match event {
            Event::Text(text) => println!("{text}"),
            Event::Done(outcome) => println!("{outcome:?}"),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the tools that the model can call.
fn tools() -> ToolSet {
    let numbers = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let add = FnTool::new(
        Tool::new("add", "Adds two numbers.", numbers),
        |input, context| async move {
            context.progress("adding").await;
            // Calls that do not conform to the schema above have already been rejected, but the
            // integers in other calls may be too large for this program.
            match (input["a"].as_i64(), input["b"].as_i64()) {
                (Some(a), Some(b)) => ToolOutput::text(a.saturating_add(b).to_string()),
                _ => ToolOutput::error("`a` and `b` are too large"),
            }
        },
    );
    let remove = FnTool::new(
        Tool::new("remove", "Removes everything.", json!(null)),
        |_, _| async { unreachable!("the hook below refuses it") },
    );
    ToolSet::new().with(add).with(remove)
}

/// Hooks that check every call.
struct Careful;

impl Hooks for Careful {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        Box::pin(async move {
            match &*call.name {
                "remove" => ToolDecision::refuse("nobody removes anything here"),
                _ => ToolDecision::Run,
            }
        })
    }

    fn observe(&self, event: &Event) {
        if let Event::ToolCallEnd(_) | Event::ToolProgress { .. } | Event::ToolResult { .. } = event
        {
            eprintln!("{}", event.to_json());
        }
    }
}

/// Holds back the answer until it is complete, so that it can be replaced.
impl MessageHook for Careful {
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, MessageDecision> {
        // The history keeps the model's own words.
        Box::pin(async move { MessageDecision::Replace(text.to_uppercase()) })
    }
}

/// Returns an agent whose requests offer its tools to the model.
fn agent(url: &str, choice: &str) -> Result<Agent, Box<dyn Error>> {
    let instance = format!("name = \"llama.cpp\"\nclient_api = \"llama.cpp\"\nurl = \"{url}\"\n");
    let profile = format!(
        "name = \"Helper\"\nextends = \"llama.cpp Chat Tools\"\n\n[body]\ntool_choice = {choice:?}\n"
    );
    let files = [
        ("providers/local.toml", instance.as_str()),
        ("agents/helper.toml", profile.as_str()),
    ];
    let compiler = Compiler::load(
        Arc::new(MemoryWorld::from_iter(files)),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    // The agent's prompts mention the current folder.
    let here = Path::new(".").canonicalize()?;
    let environment = project_environment(&here, &here)?;
    Ok(Agent::new(Arc::new(compiler), "Helper", environment)?)
}
