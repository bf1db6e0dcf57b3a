//! `reqc context import`: an imported context compiles to the original body, except for the
//! differences that are declared here, and a redacted context contains no private text.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes files and runs the binary"
)]

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use reqc::compile::selection::Names;
use reqc::compile::{Compiler, LoadOptions, PolicyOptions, Selection};
use reqc::conversation::TaskKind;
use reqc::import::{Imported, Request, import};
use reqc::lint::WireFormat;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::{Value, json};

/// Changes that a round trip may make to a body: agents, contexts (`*`, or parts of their names),
/// and the reason. No other body may change.
const LOSSES: [(&[&str], &[&str], &str); 9] = [
    (
        &["Compression"],
        &["*"],
        "the agent ends each conversation with a text of its own: imported it is the user's, and the agent adds it again",
    ),
    (
        &["*"],
        &[
            "attached-files",
            "hostile-text",
            "plain-turn",
            "several-turns",
            "next-turn-other-language",
            "next-turn-other-files",
        ],
        "what agents say of their surroundings, and attached files, are system messages behind the system prompt: imported they are \
         layers as that is, and layers are one text",
    ),
    (
        &["LM Studio Chat", "Ollama OpenAI Chat"],
        &["image-url"],
        "lines of text stand for images, in a list: imported they are text alone, which the agent writes as one string",
    ),
    (
        &["Codestral Chat Tools", "DeepSeek Chat Tools"],
        &["image-", "several-images", "media-beside-tool-results"],
        "lines of text stand for images, in a list: imported they are text alone, which the agent writes as one string",
    ),
    (
        &[
            "Codestral Chat Tools",
            "DeepSeek Chat",
            "LM Studio Chat",
            "Mistral Chat",
            "Mistral Code Review",
            "Mistral Reasoning",
            "Ollama OpenAI Chat",
            "OpenAI Chat",
            "OpenAI Code Review",
            "OpenAI Quick Refactor",
            "OpenAI Compatible Chat",
            "OpenRouter Chat",
            "Qwen Chat",
            "llama.cpp Chat",
        ],
        &["document-text"],
        "a document that is text is a part of text: nothing tells it from others, and text alone the agent writes as one string",
    ),
    (
        &["OpenAI Chat", "OpenAI Code Review", "OpenAI Quick Refactor"],
        &["document-url"],
        "a line of text stands for a document that the API does not fetch, in a list: the same",
    ),
    (
        &[
            "Codestral Chat Tools",
            "DeepSeek Chat",
            "LM Studio Chat",
            "Ollama OpenAI Chat",
            "OpenAI Compatible Chat",
            "Qwen Chat",
            "llama.cpp Chat",
        ],
        &[
            "document-alone",
            "document-base64",
            "document-file",
            "document-url",
        ],
        "a line of text stands for a document that the server does not take, in a list: the same",
    ),
    (
        &[
            "Codestral Chat Tools",
            "DeepSeek Chat",
            "LM Studio Chat",
            "Ollama OpenAI Chat",
            "OpenAI Chat",
            "OpenAI Code Review",
            "OpenAI Quick Refactor",
            "OpenAI Compatible Chat",
            "Qwen Chat",
            "llama.cpp Chat",
        ],
        &["audio", "media-without-words"],
        "a line of text stands for a recording that the server does not take, in a list: the same",
    ),
    (
        &["LM Studio Responses Chat"],
        &["provider-blocks"],
        "items of its own are those of the wire format: imported they are OpenAI's, and LM Studio gets none of these",
    ),
];

/// The minimum number of chat bodies that a round trip must not change.
const EXACT: usize = 2200;

fn compiler(files: Vec<(String, String)>) -> Compiler {
    let own = Arc::new(MemoryWorld::from_iter(files));
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    Compiler::load(own, Arc::new(Embedded::bundled()), options)
}

fn imported(body: &Value, wire: WireFormat, name: &str, redact: bool) -> Imported {
    import(&Request {
        body,
        wire,
        name,
        redact,
    })
    .unwrap_or_else(|why| panic!("{name}: {why}: {body:#}"))
}

/// A body of a bundled agent, and the context that it is compiled from.
struct Trip {
    agent: String,
    context: String,
    body: Value,
    wire: WireFormat,
}

/// Returns all bodies of the bundled agents for contexts of this kind.
fn trips(compiler: &Compiler, kind: TaskKind) -> Vec<Trip> {
    let mut trips = Vec::new();
    for (id, _) in compiler.agents() {
        let plan = compiler.plan(*id).expect("bundled agents are usable");
        let agent = compiler.hierarchy().get(*id).name.value.to_string();
        let contexts = compiler
            .contexts()
            .iter()
            .filter(|ready| ready.context.kind() == kind && plan.kind == kind);
        for ready in contexts {
            let context = ready.context.name.to_string();
            let body = compiler
                .body(*id, &context, None)
                .expect("of this kind")
                .expect("it compiles")
                .value()
                .clone();
            trips.push(Trip {
                agent: agent.clone(),
                context,
                body,
                wire: plan.wire,
            });
        }
    }
    trips
}

/// Returns the bodies that a round trip changes.
fn changed(trips: &[Trip]) -> Vec<(&Trip, Value)> {
    let name = |at: usize| format!("trip-{at}");
    let files = trips.iter().enumerate().map(|(at, trip)| {
        let imported = imported(&trip.body, trip.wire, &name(at), false);
        (format!("contexts/{}.json", name(at)), imported.text)
    });
    let compiler = compiler(files.collect());
    assert!(
        compiler.findings().is_empty(),
        "{:?}",
        compiler.findings().first()
    );
    let mut changed = Vec::new();
    for (at, trip) in trips.iter().enumerate() {
        let id = compiler
            .hierarchy()
            .by_name(&trip.agent)
            .expect("a bundled agent");
        let body = compiler
            .body(id, &name(at), None)
            .expect("of this kind")
            .expect("it compiles");
        // Compared as text, because the order of members must stay the same too.
        let [before, after] = [&trip.body, body.value()].map(Value::to_string);
        if before != after {
            changed.push((trip, body.value().clone()));
        }
    }
    changed
}

/// Returns the index of the declared loss that covers a body.
fn declared(trip: &Trip) -> Option<usize> {
    let is_of =
        |names: &[&str], name: &str| names.iter().any(|word| *word == "*" || name.contains(word));
    LOSSES.iter().position(|(agents, contexts, _)| {
        is_of(agents, &trip.agent) && is_of(contexts, &trip.context)
    })
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn chats_come_back_up_to_declared_losses() {
    let trips = trips(&compiler(Vec::new()), TaskKind::Chat);
    let changed = changed(&trips);
    let (mut real, mut undeclared) = (BTreeSet::new(), Vec::new());
    for (trip, back) in &changed {
        match declared(trip) {
            Some(at) => drop(real.insert(at)),
            None => undeclared.push((trip, back)),
        }
    }
    let names: Vec<_> = undeclared
        .iter()
        .map(|(trip, _)| format!("{} / {}", trip.agent, trip.context))
        .collect();
    if let Some((trip, back)) = undeclared.first() {
        panic!("{names:#?}\n{:#}\ncomes back as\n{back:#}", trip.body);
    }
    for (at, (agents, contexts, _)) in LOSSES.iter().enumerate() {
        assert!(
            real.contains(&at),
            "{agents:?} / {contexts:?} are declared, and come back"
        );
    }
    let exact = trips.len() - changed.len();
    assert!(
        exact >= EXACT,
        "{exact} of {} come back exactly",
        trips.len()
    );
}

#[test]
fn completions_come_back() {
    let is_completion = |trip: &Trip| {
        [
            WireFormat::MistralFim,
            WireFormat::OllamaGenerate,
            WireFormat::LlamaCppInfill,
        ]
        .contains(&trip.wire)
    };
    let trips = trips(&compiler(Vec::new()), TaskKind::Completion)
        .into_iter()
        .filter(is_completion)
        .collect::<Vec<_>>();
    assert!(trips.len() >= 12, "{}", trips.len());
    let changed: Vec<_> = changed(&trips)
        .into_iter()
        .map(|(trip, back)| format!("{}: {back}", trip.context))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
fn what_is_left_out_of_compiled_bodies_is_what_agents_say() {
    for trip in trips(&compiler(Vec::new()), TaskKind::Chat) {
        let losses = imported(&trip.body, trip.wire, "a", false).losses;
        let other = losses.iter().find(|loss| {
            let pointer = loss.pointer.as_str();
            let says = |why: &str| loss.why.starts_with(why);
            let is_hosted =
                pointer.starts_with("/tools/") && says("a context can contain only function tools");
            let is_of_agent =
                pointer.matches('/').count() == 1 || says("this belongs to the agent") || is_hosted;
            // Cache breakpoints and system items may be lost too, because no format contains the
            // kind of an item.
            !is_of_agent
                && !pointer.ends_with("/cache_control")
                && !loss.why.starts_with("a system message after the first")
                && !loss.why.starts_with("a system message after the prompt")
        });
        assert!(
            other.is_none(),
            "{} / {}: {other:?}",
            trip.agent,
            trip.context
        );
    }
}

/// Collects every string of a value except those that redaction keeps: names, roles, kinds, and the
/// parts of schemas that are not prose.
fn texts<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    const KEPT: [&str; 13] = [
        "name",
        "why",
        "kind",
        "role",
        "type",
        "media_type",
        "system_prompt",
        "required",
        "id",
        "tool_use_id",
        "call_id",
        "server_name",
        "origin",
    ];
    // Words of the wire format, which stay in provider blocks and in sources of documents.
    const WORDS: [&str; 9] = [
        "completed",
        "commentary",
        "final_answer",
        "PYTHON",
        "OUTCOME_OK",
        "base64",
        "url",
        "file",
        "text",
    ];
    match value {
        Value::String(text) if !KEPT.contains(&key) && !WORDS.contains(&text.as_str()) => {
            found.push(text);
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| texts(element, key, found)),
        Value::Object(members) => members
            .iter()
            .for_each(|(name, member)| texts(member, name, found)),
        _ => {}
    }
}

#[test]
fn nothing_of_a_text_is_left_once_it_is_redacted() {
    for trip in trips(&compiler(Vec::new()), TaskKind::Chat) {
        let [plain, redacted] = [false, true].map(|redact| {
            let text = imported(&trip.body, trip.wire, "a", redact).text;
            serde_json::from_str::<Value>(&text).expect("a context is JSON")
        });
        let (mut before, mut after) = (Vec::new(), Vec::new());
        texts(&plain, "", &mut before);
        texts(&redacted, "", &mut after);
        assert_eq!(
            before.len(),
            after.len(),
            "{} / {}",
            trip.agent,
            trip.context
        );
        for (before, after) in before.iter().zip(after) {
            assert_eq!(before.len(), after.len(), "{before} / {after}");
            // The file type of an image and the scheme of a URL are not secret.
            let said = after
                .trim_start_matches("iVBORw0KGgo")
                .trim_start_matches("https://");
            let says = |c: char| c.is_alphanumeric() && !"xX0é字𝐱٠０𝟎A1".contains(c);
            assert!(
                !said.contains(says),
                "{} / {}: {after}",
                trip.agent,
                trip.context
            );
        }
    }
}

#[test]
fn every_agent_takes_redacted_contexts() {
    let trips = trips(&compiler(Vec::new()), TaskKind::Chat);
    let agents = [
        "Claude Chat Tools",
        "OpenAI Chat Tools",
        "Gemini Chat Tools",
        "Ollama Chat Tools",
    ];
    let taken = trips
        .iter()
        .filter(|trip| agents.contains(&trip.agent.as_str()))
        .enumerate();
    let files = taken.map(|(at, trip)| {
        let name = format!("redacted-{at}");
        (
            format!("contexts/{name}.json"),
            imported(&trip.body, trip.wire, &name, true).text,
        )
    });
    let compiler = compiler(files.collect());
    let contexts = Names::of(&compiler)
        .contexts(|name| name.starts_with("redacted-"), "redacted")
        .expect("they were read");
    let agents = Names::of(&compiler)
        .agents(|name| agents.contains(&name), "agents")
        .expect("bundled");
    let selection = Selection {
        agents: Some(agents),
        contexts: Some(contexts),
        ..Selection::default()
    };
    let report = compiler.report(&selection, &PolicyOptions::default());
    assert!(report.summary.bodies > 300, "{}", report.summary.bodies);
    let told: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.rule.code, &finding.message, &finding.contexts))
        .collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// Generates words that no file of contexts contains.
fn secret() -> impl Strategy<Value = String> {
    "[b-wyzB-WYZ]{6,12}( [a-w]{3,9}){0,3}[,.\\n]?"
}

/// The bodies of `tests/bodies/`, which providers reject or accept, with their wire formats.
static BODIES: LazyLock<Vec<(WireFormat, Value)>> = LazyLock::new(|| {
    let mut bodies = Vec::new();
    for (verdict, wire) in ["wrong", "right"]
        .into_iter()
        .flat_map(|it| WireFormat::ALL.map(|wire| (it, wire)))
    {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/bodies")
            .join(verdict)
            .join(wire.name());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).expect("a file");
            let mut file: Value = serde_json::from_str(&text).expect("JSON");
            bodies.push((wire, file["body"].take()));
        }
    }
    bodies
});

#[test]
fn bodies_that_providers_refuse_make_contexts_too() {
    assert!(BODIES.len() > 100, "{}", BODIES.len());
    for (wire, body) in BODIES.iter() {
        imported(body, *wire, "a", false);
        imported(body, *wire, "a", true);
    }
}

/// Returns the number of values in a value, including itself.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// Returns the value with this index, counted depth first.
fn nth<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(elements) => elements.iter_mut().find_map(|element| nth(element, at)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, at)),
        _ => None,
    }
}

fn strange() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(-1.5)),
        Just(json!("")),
        Just(json!("tool")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"type": "text", "text": "a"}, {"type": "image"}, 7])),
        Just(json!({"type": "tool_use", "id": "", "name": "", "input": "{}"})),
        Just(json!({"role": "system", "content": ["a"]})),
    ]
}

/// Checks that the text contains no six consecutive letters of a secret.
fn assert_tells_nothing(text: &str, secrets: &[String]) {
    for word in secrets
        .iter()
        .flat_map(|secret| secret.split(|c: char| !c.is_alphabetic()))
    {
        for run in word.as_bytes().windows(6) {
            let run = std::str::from_utf8(run).expect("ASCII");
            assert!(!text.contains(run), "{run} is in {text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_altered_body_makes_a_context(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), new in strange()) {
        let (wire, mut body) = BODIES[which.index(BODIES.len())].clone();
        let mut at = at.index(size(&body));
        if let Some(value) = nth(&mut body, &mut at) {
            *value = new;
        }
        imported(&body, wire, "a", false);
    }

    #[test]
    fn secrets_of_a_body_are_in_no_redacted_context(secrets in prop::collection::vec(secret(), 9)) {
        let arguments = json!({"path": secrets[0], "deep": [{"a": secrets[1]}]});
        let body = json!({
            "messages": [
                {"role": "system", "content": secrets[2]},
                {"role": "user", "content": [
                    {"type": "text", "text": secrets[3]},
                    {"type": "image_url", "image_url": {"url": format!("https://example.com/{}", secrets[4])}}
                ]},
                {"role": "assistant", "content": secrets[5], "reasoning_content": secrets[6], "tool_calls": [
                    {"id": secrets[7], "type": "function", "function": {"name": "ls", "arguments": arguments.to_string()}}
                ]},
                {"role": "tool", "tool_call_id": secrets[7], "content": secrets[8]}
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "description": secrets[0], "parameters": {
                "type": "object", "properties": {"path": {"type": "string", "description": secrets[1], "enum": [secrets[2]]}}
            }}}]
        });
        let text = imported(&body, WireFormat::OpenAiChat, "a", true).text;
        assert_tells_nothing(&text, &secrets);
        prop_assert_eq!(text.matches("call_1").count(), 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn secrets_of_documents_and_own_blocks_are_in_no_redacted_context(s in prop::collection::vec(secret(), 16)) {
        let body = json!({"messages": [
            {"role": "user", "content": [
                {"type": "document", "source": {"type": "base64", "media_type": format!("application/pdf;name={}", s[0]), "data": s[1]}, "title": s[2]},
                {"type": "document", "source": {"type": "url", "url": format!("https://{}.example/{}", s[3], s[4])}},
                {"type": "document", "source": {"type": "file", "file_id": s[5]}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": s[6]}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": s[7]}]}}
            ]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": format!("srvtoolu_{}", s[8]), "name": "web_search",
                 "input": {"type": s[9], "name": s[10], "id": s[11], "status": s[12]}},
                {"type": "web_search_tool_result", "tool_use_id": format!("srvtoolu_{}", s[8]),
                 "content": [{"type": "web_search_result", "name": s[13], "url": format!("{}://{}", s[14], s[15]), "status": s[0]}]},
                {"type": "text", "text": s[1], "citations": [{"type": "char_location", "cited_text": s[2], "title": s[3]}]},
                {"type": "compaction", "content": s[4]}
            ]}
        ]});
        let text = imported(&body, WireFormat::AnthropicMessages, "a", true).text;
        assert_tells_nothing(&text, &s);
        prop_assert_eq!(text.matches("srvtoolu_call_1").count(), 2);
    }
}

/// Returns the parts of a body that the import loses, as pointers and reasons.
fn losses(wire: WireFormat, body: &Value) -> Vec<(String, String)> {
    let losses = imported(body, wire, "a", false).losses.into_iter();
    losses
        .map(|loss| (loss.pointer.as_str().to_owned(), loss.why))
        .collect()
}

#[test]
fn a_message_behind_the_prompt_is_told_to_join_it() {
    let asked = json!({"role": "user", "content": "q"});
    let alone = json!({"messages": [{"role": "system", "content": "a"}, asked]});
    assert_eq!(losses(WireFormat::OpenAiChat, &alone), []);
    let behind = json!({"messages": [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, asked]});
    let told = losses(WireFormat::OpenAiChat, &behind);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "/messages/1");
    assert!(
        told[0].1.starts_with("a system message after the prompt"),
        "{told:?}"
    );
    let beside =
        json!({"instructions": "a", "input": [{"role": "developer", "content": "b"}, asked]});
    assert_eq!(
        losses(WireFormat::OpenAiResponses, &beside)[0].0,
        "/input/0"
    );
}

#[test]
fn what_no_context_holds_is_told() {
    let body = json!({
        "model": "m",
        "messages": [
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "a"}, {"type": "file", "file": {}}]},
            {"role": "assistant", "content": "b", "refusal": null, "annotations": [1], "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "["}, "index": 0},
                {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "3", "type": "of_tomorrow", "of_tomorrow": {"name": "f"}}
            ]},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
            {"role": "system", "content": "e"},
            {"role": "critic", "content": "f"},
            {"role": "user", "content": "g"},
            {"role": "assistant", "content": "h"}
        ],
        "tools": [{"type": "web_search"}, {"type": "function", "function": {"name": "f", "strict": true}}]
    });
    let told = losses(WireFormat::OpenAiChat, &body);
    let places: BTreeSet<&str> = told.iter().map(|(pointer, _)| pointer.as_str()).collect();
    let expected = [
        "/messages/0/content/1",
        "/messages/0/name",
        "/messages/1",
        "/messages/1/annotations",
        "/messages/1/tool_calls/0/function/arguments",
        "/messages/1/tool_calls/0/index",
        "/messages/1/tool_calls/2",
        "/messages/2/content/1",
        "/messages/3",
        "/messages/4",
        "/model",
        "/tools/0",
        "/tools/1/function/strict",
    ];
    assert_eq!(
        places.into_iter().collect::<Vec<_>>(),
        expected,
        "{told:#?}"
    );
}

#[test]
fn members_of_another_type_are_told() {
    let body = json!({
        "messages": [{"role": "user", "content": {"a": 1}}, {"role": "assistant", "content": "b", "tool_calls": {}}],
        "tools": {"name": "f"}
    });
    let told: BTreeSet<String> = losses(WireFormat::OpenAiChat, &body)
        .into_iter()
        .map(|(pointer, _)| pointer)
        .collect();
    let expected = [
        "/messages/0",
        "/messages/0/content",
        "/messages/1/tool_calls",
        "/tools",
    ];
    assert_eq!(
        told.iter().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
}

#[test]
fn what_a_server_keeps_is_told_and_older_forms_are_read() {
    let body = json!({"model": "m", "previous_response_id": "resp_1", "input": "a"});
    let told = losses(WireFormat::OpenAiResponses, &body);
    let why = |of: &str| {
        told.iter()
            .find(|(pointer, _)| pointer == of)
            .map(|(_, why)| why.as_str())
    };
    assert_eq!(
        why("/previous_response_id"),
        Some("this refers to content on the server, which the body does not contain")
    );
    assert_eq!(
        why("/model"),
        Some("this belongs to the agent, not to a context")
    );

    let body = json!({
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{\"b\": 1}"}},
            {"role": "function", "name": "f", "content": "c"}
        ],
        "functions": [{"name": "f", "parameters": {"type": "object"}}]
    });
    assert_eq!(losses(WireFormat::OpenAiChat, &body), []);
    let context: Value =
        serde_json::from_str(&imported(&body, WireFormat::OpenAiChat, "a", false).text)
            .expect("JSON");
    assert_eq!(context["tools"][0]["name"], "f");
    assert_eq!(
        context["history"][1]["content"][0]["input"],
        json!({"b": 1})
    );
    assert_eq!(context["history"][2]["content"][0]["content"], "c");
}

#[test]
fn calls_without_ids_are_answered_in_their_order() {
    let call = |path: &str| json!({"functionCall": {"name": "read", "args": {"path": path}}});
    let result =
        |text: &str| json!({"functionResponse": {"name": "read", "response": {"output": text}}});
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [call("1"), call("2")]},
        {"role": "user", "parts": [result("one"), result("two")]}
    ]});
    let context: Value =
        serde_json::from_str(&imported(&body, WireFormat::GoogleGenerateContent, "a", false).text)
            .expect("JSON");
    let ids = |message: usize, member: &str| {
        let blocks = context["history"][message]["content"]
            .as_array()
            .expect("blocks")
            .iter();
        blocks
            .map(|block| block[member].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(1, "id"), ids(2, "tool_use_id"));
    assert_eq!(context["history"][2]["content"][1]["content"], "two");
}

/// Returns the blocks in the messages of an imported context, and the losses.
fn blocks(wire: WireFormat, body: &Value) -> (Vec<Value>, Vec<(String, String)>) {
    let context: Value =
        serde_json::from_str(&imported(body, wire, "a", false).text).expect("JSON");
    let messages = context["history"].as_array().expect("messages").iter();
    let blocks = messages
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
        .collect();
    (blocks, losses(wire, body))
}

#[test]
fn what_only_its_provider_knows_is_kept_as_it_is() {
    let anthropic = json!({"messages": [{"role": "user", "content": [
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}]}},
        {"type": "of_tomorrow", "data": {"a": [1]}}
    ]}]});
    let responses = json!({"input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_id": "f"}]},
        {"type": "mcp_approval_request", "id": "m", "name": "n", "arguments": "{}", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": true},
        {"type": "of_tomorrow", "id": "o"}
    ]});
    let gemini = json!({"contents": [
        {"role": "user", "parts": [{"fileData": {"fileUri": "https://youtu.be/a"}}, {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}]},
        {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"toolCall": {"a": 1}}]}
    ]});
    for (wire, body, own) in [
        (WireFormat::AnthropicMessages, anthropic, 3),
        (WireFormat::OpenAiResponses, responses, 3),
        (WireFormat::GoogleGenerateContent, gemini, 4),
    ] {
        let (blocks, lost) = blocks(wire, &body);
        assert_eq!(lost, [], "{blocks:#?}");
        let own_blocks = blocks
            .iter()
            .filter(|block| block["type"] == "provider_block");
        let sent: Vec<&Value> = own_blocks.map(|block| &block["data"]).collect();
        assert_eq!(sent.len(), own, "{blocks:#?}");
        let text = body.to_string();
        assert!(
            sent.iter().all(|data| text.contains(&data.to_string())),
            "{sent:#?}"
        );
    }
}

#[test]
fn calls_of_custom_tools_keep_their_results_and_answers_their_members() {
    let call =
        json!({"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}});
    let images =
        json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}}]);
    let body = json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "assistant", "content": "b", "images": images, "annotations": [{"type": "url_citation"}]}
    ]});
    let (blocks, lost) = blocks(WireFormat::OpenAiChat, &body);
    assert_eq!(
        lost,
        [(
            "/messages/3/annotations".to_owned(),
            "contexts do not support this".to_owned()
        )]
    );
    assert_eq!(
        blocks[0],
        json!({"type": "provider_block", "origin": "OpenRouter", "data": call})
    );
    assert_eq!(
        (&blocks[1]["tool_use_id"], &blocks[1]["content"]),
        (&json!("c1"), &json!("1"))
    );
    assert_eq!(blocks[3]["data"], json!({"images": images}));
}

/// OpenRouter needs all kinds of reasoning back unmodified and in order
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>; its specification,
/// `ReasoningDetailUnion`).
#[test]
fn reasoning_of_openrouter_comes_back_as_it_was_and_goes_nowhere_else() {
    let details = json!([
        {"type": "reasoning.text", "text": "I read.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0, "id": "r1"},
        {"type": "reasoning.encrypted", "data": "ZW5j", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.summary", "summary": "Reading.", "format": "openai-responses-v1", "index": 2},
        {"type": "reasoning.of_tomorrow", "x": [1]}
    ]);
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let body = json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "reasoning": "I read.", "reasoning_details": details, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "b"},
        {"role": "assistant", "content": "c", "reasoning_details": [{"type": "reasoning.text", "text": "Done."}]},
        {"role": "user", "content": "d"}
    ]});
    let wire = WireFormat::OpenAiChat;
    let (blocks, lost) = blocks(wire, &body);
    assert_eq!(lost, [], "{blocks:#?}");
    // For other providers, it becomes thinking with a known origin.
    let thoughts: Vec<&Value> = blocks
        .iter()
        .filter(|block| block["origin"] == "OpenRouter")
        .collect();
    let kinds: Vec<&Value> = thoughts.iter().map(|block| &block["type"]).collect();
    assert_eq!(
        kinds,
        [
            "thinking",
            "redacted_thinking",
            "thinking",
            "provider_block",
            "thinking",
            "provider_block"
        ],
        "{blocks:#?}"
    );
    let text = imported(&body, wire, "routed", false).text;
    let compiler = compiler(vec![("contexts/routed.json".to_owned(), text)]);
    let sent = |agent: &str| {
        let id = compiler
            .hierarchy()
            .by_name(agent)
            .expect("a bundled agent");
        compiler
            .body(id, "routed", None)
            .expect("of this kind")
            .expect("it compiles")
            .value()
            .to_string()
    };
    let back: Value = serde_json::from_str(&sent("OpenRouter Chat Tools")).expect("JSON");
    let messages = back["messages"].as_array().expect("messages");
    let [first, second] = [1, 3].map(|at| &messages[at]["reasoning_details"]);
    assert_eq!(
        (first, second),
        (
            &details,
            &json!([{"type": "reasoning.text", "text": "Done."}])
        ),
        "{back:#}"
    );
    for other in [
        "Claude Chat Tools",
        "OpenAI Responses Chat Tools",
        "Gemini Chat Tools",
        "DeepSeek Chat Tools",
    ] {
        let sent = sent(other);
        assert!(
            !["I read.", "c2ln", "ZW5j", "of_tomorrow", "Reading."]
                .iter()
                .any(|said| sent.contains(said)),
            "{other}: {sent}"
        );
    }
}

#[test]
fn members_that_tie_items_to_others_and_breakpoints_are_told() {
    let cached = json!({"type": "ephemeral"});
    let body = json!({"messages": [
        {"role": "user", "content": [
            {"type": "document", "source": {"type": "file", "file_id": "f"}, "citations": {"enabled": true}, "context": "c"}
        ]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "b", "citations": [{"type": "char_location"}], "cache_control": cached}
        ]}
    ]});
    let (of_anthropic, lost) = blocks(WireFormat::AnthropicMessages, &body);
    let places: BTreeSet<&str> = lost.iter().map(|(pointer, _)| pointer.as_str()).collect();
    let expected = [
        "/messages/0/content/0/citations",
        "/messages/0/content/0/context",
        "/messages/1/content/0/cache_control",
    ];
    assert_eq!(places.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(of_anthropic[1]["text"], "b");
    assert_eq!(of_anthropic[1]["data"].get("cache_control"), None);

    let body = json!({"input": [
        {"role": "user", "content": "a"},
        {"type": "message", "id": "msg_1", "role": "assistant", "phase": "final_answer", "content": [{"type": "output_text", "text": "b"}]},
        {"type": "item_reference", "id": "rs_1"}
    ]});
    let (of_responses, lost) = blocks(WireFormat::OpenAiResponses, &body);
    let places: Vec<&str> = lost.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(places, ["/input/1/id", "/input/2"]);
    assert_eq!(
        (&of_responses[0]["text"], &of_responses[0]["data"]["phase"]),
        (&json!("b"), &json!("final_answer"))
    );
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Writes a file into a folder and imports it there.
fn ran(folder: &Path, file: (&str, &str), arguments: &[&str]) -> Ran {
    fs::write(folder.join(file.0), file.1).expect("written");
    let mut command = Command::new(program::path());
    command
        .args(["context", "import", file.0])
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1");
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

const LINES: &str = concat!(
    r#"{"body": {"model": "gpt-5.6-luna", "messages": [{"role": "user", "content": "one"}]}}"#,
    "\n",
    r#"{"url": "/v1/messages", "body": {"model": "ours", "messages": [{"role": "user", "content": "two"}]}}"#,
    "\n"
);

#[test]
fn the_command_prints_a_context_and_beside_it_what_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = ran(folder.path(), ("my log.jsonl", LINES), &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    let context: Value = serde_json::from_str(&first.out).expect("a context");
    assert_eq!(
        (&context["name"], &context["history"][0]["content"]),
        (&json!("my-log"), &json!("one"))
    );
    assert!(
        first
            .err
            .starts_with("the file has 2 bodies: this is number 1"),
        "{}",
        first.err
    );
    assert!(
        first.err.contains("\n  /model: this belongs to the agent"),
        "{}",
        first.err
    );
    for arguments in [["--line", "2"], ["--body", "2"]] {
        let second = ran(folder.path(), ("my log.jsonl", LINES), &arguments);
        assert!(
            second.out.contains("`anthropic-messages`") && second.out.contains("two"),
            "{}",
            second.out
        );
    }
    let quiet = ran(folder.path(), ("my log.jsonl", LINES), &["-q"]);
    assert_eq!(
        (quiet.code, quiet.err.as_str(), quiet.out),
        (0, "", first.out)
    );
}

#[test]
fn a_context_that_is_written_is_one_of_the_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::create_dir(at.join("agents")).expect("created");
    let written = ran(
        at,
        ("a.jsonl", LINES),
        &["--out", "contexts/asked.json", "--redact"],
    );
    assert_eq!(written.code, 0, "{}", written.err);
    let text = fs::read_to_string(at.join("contexts/asked.json")).expect("written");
    assert!(
        text.contains(r#""name": "asked""#) && text.contains("xxx") && !text.contains("one"),
        "{text}"
    );
    let again = ran(at, ("a.jsonl", LINES), &["--out", "contexts/asked.json"]);
    assert!(
        again.code == 2 && again.err.contains("already exists"),
        "{}",
        again.err
    );
    assert_eq!(
        fs::read_to_string(at.join("contexts/asked.json")).expect("still there"),
        text
    );
    let mut listing = Command::new(program::path());
    let listed = listing
        .args(["contexts", "--context", "asked"])
        .current_dir(at)
        .output()
        .expect("the binary runs");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("asked (chat)"));
}

const SESSION: &str = "{\"kind\":\"session\",\"version\":1,\"agent\":\"A\"}\n\
    {\"kind\":\"instructions\",\"agent\":\"A\",\"prompt\":\"Help.\",\"tools\":[],\"system_layers\":[],\"line\":2}\n";

#[test]
fn what_makes_no_context_is_a_failure_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let ambiguous = r#"{"model": "ours", "messages": [{"role": "user", "content": "a"}]}"#;
    for (text, arguments, why) in [
        (ambiguous, &[] as &[&str], "may be"),
        (
            ambiguous,
            &["--from", "openai"],
            "there is no wire format `openai`",
        ),
        (
            ambiguous,
            &["--from", "openai-chat", "--name", "a/b"],
            "not a valid context name",
        ),
        (
            ambiguous,
            &["--from", "openai-chat", "--body", "2"],
            "contains 1 body, not 2",
        ),
        (
            ambiguous,
            &["--from", "openai-chat", "--line", "2"],
            "no other line",
        ),
        (
            LINES,
            &["--line", "3"],
            "contains no request body on line 3",
        ),
        ("{\"messages\": [,]}", &[], "cannot be read: line 1"),
        ("[]", &[], "contains no request body"),
        (SESSION, &[], "is a session, not a request body"),
    ] {
        let ran = ran(folder.path(), ("a.json", text), arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{arguments:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(why), "{arguments:?}: {}", ran.err);
    }
}
