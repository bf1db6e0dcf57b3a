//! Agents, transports and sessions that talk to a scripted server.

use std::sync::Arc;
use std::time::Duration;

use reqc::compile::{Compiler, PromptEnvironment};
use reqc::conversation::{Block, Conversation, Message};
use reqc::render::Folders;
use reqc::repo::{LoadOptions, SecretRef};
use reqc::runtime::secret::{SecretError, Secrets};
use reqc::runtime::stream::Limits;
use reqc::runtime::{
    Agent, Event, Outcome, RetryPolicy, Run, Session, Transport, TransportOptions,
};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use secrecy::SecretString;

/// The key that every test sends.
pub(crate) const KEY: &str = "planted-key-7f3a";

/// The folder where `reqc` remembers permissions, outside the repository of every test.
pub(crate) const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// Answers every reference with [`KEY`].
pub(crate) struct Planted;

impl Secrets for Planted {
    fn read(&self, _: &SecretRef) -> Result<SecretString, SecretError> {
        Ok(KEY.into())
    }
}

/// A repository with one agent, `Tester`, that speaks Chat Completions with a server.
pub(crate) fn compiler(url: &str) -> Arc<Compiler> {
    compiler_of(url, "surroundings = \"\"")
}

/// The same, with more lines in the agent's file.
pub(crate) fn compiler_of(url: &str, more: &str) -> Arc<Compiler> {
    let provider = format!(
        "name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let tester = format!(
        "name = \"Tester\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\n\
         model = \"m\"\nenable_tools = true\n{more}\n"
    );
    let own = [
        ("providers/scripted.toml", provider.as_str()),
        ("agents/tester.toml", tester.as_str()),
    ];
    let own = MemoryWorld::from_iter(own);
    let compiler = Compiler::load(
        Arc::new(own),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let wrong: Vec<&str> = compiler
        .findings()
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(wrong, [""; 0]);
    Arc::new(compiler)
}

/// An empty project.
pub(crate) fn environment() -> PromptEnvironment {
    PromptEnvironment {
        project: Arc::new(MemoryWorld::default()),
        project_name: "test".into(),
        language: "".into(),
        folders: Folders::placeholders(),
    }
}

pub(crate) fn agent(url: &str) -> Agent {
    Agent::new(compiler(url), "Tester", environment()).expect("it is there")
}

/// Short timeouts, so that a test that hangs fails soon.
pub(crate) fn options() -> TransportOptions {
    TransportOptions {
        connect_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        answer_timeout: Duration::from_secs(30),
        limits: Limits {
            line: 256 * 1024,
            event: 512 * 1024,
            answer: 2 * 1024 * 1024,
        },
        retry: RetryPolicy {
            retries: 3,
            min_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(20),
            ..RetryPolicy::default()
        },
    }
}

pub(crate) fn transport() -> Transport {
    Transport::new(Arc::new(Planted), options())
}

pub(crate) fn session(url: &str) -> Session {
    Session::new(agent(url), transport(), Conversation::default())
}

pub(crate) fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.into())]
}

/// All events of a turn, and its outcome.
pub(crate) async fn events(mut turn: Run) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        match event {
            Event::Done(outcome) => {
                assert!(turn.next().await.is_none(), "nothing comes after the end");
                return (events, outcome);
            }
            event => events.push(event),
        }
    }
    panic!("a turn ends with `Done`")
}

/// The text in these events.
pub(crate) fn said(events: &[Event]) -> String {
    let text = |event: &Event| match event {
        Event::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// A history in lines, each with a role and its blocks in short form.
pub(crate) fn history(session: &Session) -> Vec<String> {
    let block = |block: &Block| match block {
        Block::Text(text) => text.to_string(),
        Block::ToolUse { id, name, .. } => format!("call {name}#{id}"),
        Block::ToolResult {
            id,
            content,
            is_error,
            ..
        } => {
            format!(
                "{} #{id}: {content}",
                if *is_error { "error" } else { "result" }
            )
        }
        other => format!("{other:?}"),
    };
    let line = |message: &Message| {
        let blocks: Vec<String> = message.blocks.iter().map(block).collect();
        format!("{}: {}", message.role.name(), blocks.join(" | "))
    };
    session.history().iter().map(line).collect()
}

/// The IDs of the calls in a message.
pub(crate) fn called(message: &Message) -> Vec<&str> {
    let ids = message.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.as_ref()),
        _ => None,
    });
    ids.collect()
}

/// The IDs of the calls that this message has results for.
pub(crate) fn results(message: &Message) -> Vec<&str> {
    let ids = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { id, .. } => Some(id.as_ref()),
        _ => None,
    });
    ids.collect()
}
