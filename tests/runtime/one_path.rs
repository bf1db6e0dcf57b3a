//! The runtime sends exactly what was compiled, for every bundled agent in every context.

use std::sync::Arc;

use reqc::compile::live::Live;
use reqc::compile::{Compiler, PromptEnvironment};
use reqc::conversation::{Block, Conversation, Task};
use reqc::golden::request_json;
use reqc::repo::{LoadOptions, SecretRef};
use reqc::runtime::{Agent, Session, SessionStart};
use reqc::system::Embedded;
use reqc::unit::Plan;
use reqc::world::MemoryWorld;
use serde_json::Value;

use crate::fixture::{KEY, transport};
use crate::server::{Received, Server, status};

const ALL: LoadOptions = LoadOptions {
    with_bundled: true,
    without_bundled: false,
};

/// The bundled agents, unchanged.
fn bundled() -> Compiler {
    Compiler::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        ALL,
    )
}

/// The bundled agents, with the URL of every provider instance moved to a local server; paths stay.
fn moved(compiler: &Compiler, server: &str) -> Compiler {
    let mut own = MemoryWorld::default();
    for (number, instance) in compiler.repo().instances.values().enumerate() {
        let (_, rest) = instance.url.value.split_once("://").expect("a URL");
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let mut text = format!("name = {:?}\n", &*instance.name.value);
        text.push_str(&format!(
            "client_api = {:?}\nurl = \"{server}{path}\"\n",
            &*instance.client_api.value
        ));
        if let Some(key) = &instance.api_key_ref {
            let SecretRef::Env(name) = &key.value else {
                panic!("bundled instances name variables")
            };
            text.push_str(&format!("api_key_ref = \"env:{name}\"\n"));
        }
        if !instance.headers.is_empty() {
            text.push_str("[headers]\n");
            instance
                .headers
                .iter()
                .for_each(|(name, value)| text.push_str(&format!("{name:?} = {:?}\n", &**value)));
        }
        own.insert(format!("providers/{number}.toml"), text);
    }
    Compiler::load(Arc::new(own), Arc::new(Embedded::bundled()), ALL)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_that_a_server_gets_are_those_of_the_golden_file() {
    let server = Server::start(|_, _| status(400, &[], "{}")).await;
    let original = bundled();
    let moved = Arc::new(moved(&original, &server.url));
    let transport = transport();
    let mut sent = 0;
    for &(id, usable) in original.agents() {
        assert!(usable);
        let plan = original.plan(id).expect("it is usable");
        // Golden bodies of agents without a model contain a placeholder that is never sent, so both
        // requests get the same model.
        let model = plan.default_model().unwrap_or("some-model");
        let request: Value = serde_json::from_str(&request_json(&plan, Some(model))).expect("JSON");
        for ready in original
            .contexts()
            .iter()
            .filter(|ready| ready.context.kind() == plan.kind)
        {
            let context = &ready.context;
            let agent = Agent::new(
                Arc::clone(&moved),
                plan.name(),
                PromptEnvironment::of(context),
            )
            .expect("the same agents");
            let agent = agent.with_model(Some(model));
            let conversation = Live::new(&original, &plan)
                .conversation_of(context)
                .expect("no findings");
            let session = Session::new(agent, transport.clone(), conversation);
            let outcome = session.proceed().outcome().await;
            let received = server.take_received();
            sent += 1;
            let [received] = received.as_slice() else {
                panic!("{}, {}: {outcome:?}", plan.name(), context.name);
            };
            let expected = original
                .body(id, &context.name, Some(model))
                .expect("it fits")
                .expect("no findings");
            assert_eq!(
                String::from_utf8_lossy(&received.body),
                expected.compact(),
                "{}, {}",
                plan.name(),
                context.name
            );
            compare(received, &request);
        }
    }
    assert!(sent > 900, "{sent} bodies are not all");
    server.quiet().await;
}

#[test]
fn a_session_that_begins_with_turns_does_not_tell_again_what_came_in_them() {
    let compiler = Arc::new(bundled());
    let mut agents = compiler
        .agents()
        .iter()
        .filter_map(|&(id, _)| compiler.plan(id));
    let context = |name: &str| &compiler.context(name).expect("it is bundled").context;
    let files = context("next-turn-other-files");
    let is_told = |plan: &Plan<'_>| {
        Live::new(&compiler, plan)
            .conversation_of(files)
            .is_ok_and(|conversation| conversation.is_told)
    };
    let plan = agents
        .find(is_told)
        .expect("a bundled agent has surroundings");
    for name in ["next-turn-other-files", "next-turn-other-language"] {
        let context = context(name);
        let agent = Agent::new(
            Arc::clone(&compiler),
            plan.name(),
            PromptEnvironment::of(context),
        )
        .expect("it can be used");
        let conversation = Live::new(&compiler, &plan)
            .conversation_of(context)
            .expect("no findings");
        let length = |conversation: &Conversation| match &conversation.task {
            Task::Chat(history) => history.len(),
            Task::Completion { .. } => 0,
        };
        let told = length(&conversation);
        assert!(told > context.history().len(), "{name}");
        let begun = SessionStart::New(conversation)
            .preview(&agent, Some(vec![Block::Text("And now?".into())]));
        assert_eq!(length(&begun.expect("it can be asked")), told + 1, "{name}");
    }
}

/// Checks that method, path, query and headers are those of `request.json`, with the real key.
fn compare(received: &Received, request: &Value) {
    let (_, rest) = request["url"]
        .as_str()
        .expect("a URL")
        .split_once("://")
        .expect("a scheme");
    assert_eq!(received.target, rest[rest.find('/').expect("a path")..]);
    assert_eq!(received.method, request["method"]);
    for (name, value) in request["headers"].as_object().expect("headers") {
        let value = value.as_str().expect("text");
        let expected = match (value.find("${"), value.find('}')) {
            (Some(from), Some(to)) => format!("{}{KEY}{}", &value[..from], &value[to + 1..]),
            _ => value.to_owned(),
        };
        assert_eq!(received.header(name), Some(expected.as_str()), "{name}");
    }
    // Only headers that HTTP itself needs may be added.
    let own = ["host", "accept", "user-agent", "content-length"];
    let more = received
        .headers
        .iter()
        .filter(|(name, _)| request["headers"].get(name).is_none());
    let more: Vec<&str> = more
        .map(|(name, _)| name.as_str())
        .filter(|name| !own.contains(name))
        .collect();
    assert_eq!(more, [""; 0]);
}
