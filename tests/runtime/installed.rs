//! The lists of models that servers offer, in the form of every client API.

use std::sync::Arc;

use reqc::compile::{Compiler, LoadOptions};
use reqc::runtime::installed::{InstalledModel, ModelList};
use reqc::runtime::{Category, Error, Transport};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;

use crate::fixture::{KEY, Planted, options};
use crate::server::{Server, status};

/// A list of models in the form of one API.
struct List {
    api: &'static str,
    /// The path of the instance's URL, after the server's address.
    base: &'static str,
    target: &'static str,
    answer: &'static str,
    /// Each model's ID, title and context window.
    models: &'static [(&'static str, Option<&'static str>, Option<u64>)],
}

const LISTS: [List; 9] = [
    List {
        api: "Claude",
        base: "",
        target: "/v1/models?limit=1000",
        answer: r#"{"data":[{"type":"model","id":"claude-opus-5-5","display_name":"Claude Opus 5.5","created_at":"2026-08-01T00:00:00Z"}],"has_more":false,"first_id":"claude-opus-5-5","last_id":"claude-opus-5-5"}"#,
        models: &[("claude-opus-5-5", Some("Claude Opus 5.5"), None)],
    },
    List {
        api: "Google AI",
        base: "",
        target: "/v1beta/models?pageSize=1000",
        answer: r#"{"models":[{"name":"models/gemini-3-pro","displayName":"Gemini 3 Pro","inputTokenLimit":1048576}]}"#,
        models: &[("gemini-3-pro", Some("Gemini 3 Pro"), Some(1_048_576))],
    },
    List {
        api: "OpenAI (Chat Completions)",
        base: "/v1",
        target: "/v1/models",
        answer: r#"{"object":"list","data":[{"id":"gpt-5.6","object":"model","created":1,"owned_by":"openai"},{"id":"b"}]}"#,
        models: &[("gpt-5.6", None, None), ("b", None, None)],
    },
    List {
        api: "OpenRouter",
        base: "/api/v1",
        target: "/api/v1/models",
        answer: r#"{"data":[{"id":"anthropic/claude-opus-5.5","name":"Anthropic: Opus","context_length":200000}]}"#,
        models: &[(
            "anthropic/claude-opus-5.5",
            Some("Anthropic: Opus"),
            Some(200_000),
        )],
    },
    List {
        api: "Mistral AI",
        base: "",
        target: "/v1/models",
        answer: r#"{"object":"list","data":[{"id":"mistral-large-latest","max_context_length":131072,"name":"mistral-large-latest"}]}"#,
        models: &[("mistral-large-latest", None, Some(131_072))],
    },
    List {
        api: "llama.cpp",
        base: "",
        target: "/v1/models",
        answer: r#"{"models":[{"name":"tiny.gguf","model":"tiny.gguf","size":"","details":{"family":""}}],"object":"list","data":[{"id":"tiny.gguf","aliases":["tiny.gguf"],"meta":{"n_ctx":4096,"n_ctx_train":8192,"size":574720}}]}"#,
        models: &[("tiny.gguf", None, Some(4096))],
    },
    List {
        api: "LM Studio (Chat Completions)",
        base: "/v1",
        target: "/v1/models",
        answer: r#"{"data":[{"id":"qwen3-8b","object":"model"}],"object":"list"}"#,
        models: &[("qwen3-8b", None, None)],
    },
    List {
        api: "Ollama (Native)",
        base: "",
        target: "/api/tags",
        answer: r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","size":5200000000,"details":{"family":"qwen3"}}]}"#,
        models: &[("qwen3:8b", None, None)],
    },
    List {
        api: "OpenAI Compatible",
        base: "/v1",
        target: "/v1/models",
        answer: r#"{"object":"list","data":[{"id":"m","max_model_len":4096}]}"#,
        models: &[("m", None, Some(4096))],
    },
];

fn list(api: &str, url: &str) -> ModelList {
    let provider = format!(
        "name = \"P\"\nclient_api = \"{api}\"\nurl = \"{url}\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
    );
    let own = MemoryWorld::from_iter([("providers/p.toml", provider.as_str())]);
    let compiler = Compiler::load(
        Arc::new(own),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    ModelList::of_instance(&compiler, "P").expect("it is there")
}

async fn fetch(api: &str, url: &str) -> Result<Vec<InstalledModel>, Error> {
    list(api, url)
        .fetch(&Transport::new(Arc::new(Planted), options()))
        .await
}

#[tokio::test]
async fn every_api_lists_its_models() {
    for List {
        api,
        base,
        target,
        answer,
        models,
    } in LISTS
    {
        let server = Server::answering(vec![status(
            200,
            &[("content-type", "application/json")],
            answer,
        )])
        .await;
        let found = fetch(api, &format!("{}{base}", server.url))
            .await
            .unwrap_or_else(|error| panic!("{api}: {error}"));
        let told: Vec<_> = found
            .iter()
            .map(|model| (&*model.id, model.title.as_deref(), model.context_window))
            .collect();
        assert_eq!(told, models, "{api}");
        let received = &server.received()[0];
        assert_eq!(
            (received.method.as_str(), received.target.as_str()),
            ("GET", target),
            "{api}"
        );
        assert!(
            received
                .headers
                .iter()
                .any(|(_, value)| value.contains(KEY)),
            "{api}: the key goes along"
        );
        assert!(
            received.body.is_empty() && received.header("content-type").is_none(),
            "{api}"
        );
    }
}

#[tokio::test]
async fn what_is_known_of_a_model_stands_beside_it() {
    let answer = r#"{"data":[{"id":"claude-opus-5-5"},{"id":"nobody-knows-it"}]}"#;
    let server = Server::answering(vec![status(200, &[], answer)]).await;
    let found = fetch("Claude", &server.url).await.expect("a list");
    assert!(
        !found[0].families.is_empty() && found[1].families.is_empty(),
        "{found:?}"
    );
}

#[tokio::test]
async fn pages_are_read_to_the_end() {
    let page = |id: &str, more: bool| {
        status(
            200,
            &[],
            &format!(r#"{{"data":[{{"id":"{id}"}}],"has_more":{more},"last_id":"{id}&x"}}"#),
        )
    };
    let server = Server::answering(vec![page("a", true), page("b", true), page("c", false)]).await;
    let found = fetch("Claude", &server.url).await.expect("a list");
    let ids: Vec<&str> = found.iter().map(|model| &*model.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let targets: Vec<String> = server
        .received()
        .into_iter()
        .map(|received| received.target)
        .collect();
    assert_eq!(targets[1], "/v1/models?limit=1000&after_id=a%26x");
    let google = |name: &str, next: &str| {
        status(
            200,
            &[],
            &format!(r#"{{"models":[{{"name":"models/{name}"}}],"nextPageToken":"{next}"}}"#),
        )
    };
    let server = Server::answering(vec![google("a", "t/1"), google("b", "")]).await;
    assert_eq!(
        fetch("Google AI", &server.url).await.expect("a list").len(),
        2
    );
    assert_eq!(
        server.received()[1].target,
        "/v1beta/models?pageSize=1000&pageToken=t%2F1"
    );
}

#[tokio::test]
async fn a_list_without_end_is_an_error() {
    let page = r#"{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}"#;
    let server = Server::start(move |_, _| status(200, &[], page)).await;
    let error = fetch("Claude", &server.url).await.expect_err("no end");
    assert!(error.message.contains("does not end"), "{error}");
}

#[tokio::test]
async fn failures_are_told_and_show_no_key() {
    let echo = format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#);
    let strange = format!(r#"{{"hello":"{KEY}"}}"#);
    let cases = [
        (status(401, &[], &echo), Category::Auth),
        (status(404, &[], "{}"), Category::Validation),
        (status(200, &[], &strange), Category::Provider),
        (
            status(200, &[], &format!("not JSON {KEY}")),
            Category::Provider,
        ),
        (
            status(200, &[("content-type", "text/html")], "<p>Log in"),
            Category::Provider,
        ),
    ];
    for (answer, category) in cases {
        let server = Server::answering(vec![answer]).await;
        let error = fetch("OpenAI Compatible", &server.url)
            .await
            .expect_err("a failure");
        assert_eq!(error.category, category, "{error}");
        assert!(
            !error.to_string().contains(KEY) && !format!("{error:#?}").contains(KEY),
            "{error}"
        );
    }
    let found = r#"{"data":[{"id":"m"}]}"#;
    let server = Server::answering(vec![status(503, &[], "{}"), status(200, &[], found)]).await;
    assert_eq!(
        fetch("OpenAI Compatible", &server.url)
            .await
            .expect("after a retry")
            .len(),
        1
    );
    let hostile = format!(r#"{{"data":[{{"id":"{KEY}"}}]}}"#);
    let server = Server::answering(vec![status(200, &[], &hostile)]).await;
    assert_eq!(
        &*fetch("OpenAI Compatible", &server.url)
            .await
            .expect("a list")[0]
            .id,
        "[key]"
    );
}

#[tokio::test]
async fn an_agent_asks_its_own_server() {
    let server = Server::answering(vec![status(200, &[], r#"{"data":[{"id":"m"}]}"#)]).await;
    let agent = crate::fixture::agent(&server.url);
    let found = agent
        .installed_models(&crate::fixture::transport())
        .await
        .expect("a list");
    assert_eq!(&*found[0].id, "m");
    assert_eq!(server.received()[0].target, "/v1/models");
}

#[tokio::test]
async fn the_command_asks_first_and_prints_both_forms() {
    let server =
        Server::start(|_, _| status(200, &[], r#"{"data":[{"id":"gpt-5.6"},{"id":"x"}]}"#)).await;
    let root = crate::send::repository(&server.url);
    let refused = crate::send::run(root.path(), &["models", "--installed", "Scripted"]).await;
    assert!(
        refused.code == 2 && refused.err.contains("is not trusted"),
        "{}",
        refused.err
    );
    assert!(server.received().is_empty(), "nothing was asked");
    let shown = crate::send::run(
        root.path(),
        &["models", "--installed", "Scripted", "--trust"],
    )
    .await;
    assert!(
        shown.code == 0 && shown.out.contains("gpt-5.6"),
        "{}{}",
        shown.out,
        shown.err
    );
    assert!(shown.out.contains("unknown"), "{}", shown.out);
    let json = crate::send::run(
        root.path(),
        &["models", "--installed", "Scripted", "--format", "json"],
    )
    .await;
    let told: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(told["models"][0]["id"], "gpt-5.6");
    assert!(
        !told["models"][0]["families"]
            .as_array()
            .expect("a list")
            .is_empty(),
        "{told}"
    );
    let unknown = crate::send::run(root.path(), &["models", "--installed", "Scriptet"]).await;
    assert!(
        unknown.code == 2 && unknown.err.contains("did you mean `Scripted`?"),
        "{}",
        unknown.err
    );
}
