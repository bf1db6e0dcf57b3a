//! The cost of answers, if prices are known.

use std::sync::Arc;

use reqc::compile::Compiler;
use reqc::conversation::Conversation;
use reqc::repo::LoadOptions;
use reqc::runtime::{Agent, Event, Session, Usage};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;

use crate::fixture::{environment, events, text, transport};
use crate::server::{Server, calls, says, sse};

/// Prices for the model family that the tests use.
const PRICES: &str = "[[family]]\nname = \"House\"\nmodels = [\"m\"]\nwires = [\"openai-chat\"]\nsource = \"x\"\n\
                      seen = 2026-11-23\nprice = { input = 1, output = 10 }\n";

fn agent(url: &str, families: &str, more: &str) -> Agent {
    let provider =
        format!("name = \"Scripted\"\nclient_api = \"OpenAI Compatible\"\nurl = \"{url}/v1\"\n");
    let tester = format!(
        "name = \"Tester\"\nextends = \"OpenAI Compatible Chat\"\nprovider_instance = \"Scripted\"\nmodel = \"m\"\n\
         enable_tools = true\nsurroundings = \"\"\n{more}"
    );
    let own = [
        ("providers/scripted.toml", provider.as_str()),
        ("agents/tester.toml", tester.as_str()),
        ("model-families.toml", families),
    ];
    of(&own, "Tester")
}

fn of(own: &[(&str, &str)], name: &str) -> Agent {
    let own: MemoryWorld = own.iter().copied().collect();
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(Arc::new(own), Arc::new(Embedded::bundled()), options);
    Agent::new(Arc::new(compiler), name, environment()).expect("it is there")
}

/// Returns the reported costs, and the cost of the session.
async fn told(families: &str, more: &str) -> (Vec<f64>, Option<f64>) {
    let server = Server::answering(vec![calls(&[("c1", "none", "{}")]), says("Done.")]).await;
    let session = Session::new(
        agent(&server.url, families, more),
        transport(),
        Conversation::default(),
    );
    let (all, _) = events(session.send(text("Hi"))).await;
    let costs = all.iter().filter_map(|event| match event {
        Event::Cost(usd) => Some(*usd),
        _ => None,
    });
    let shown = all
        .iter()
        .filter(|event| matches!(event, Event::Cost(_)))
        .map(Event::to_json);
    assert!(
        shown
            .into_iter()
            .all(|event| event["event"] == "cost" && event["usd"].is_f64())
    );
    (costs.collect(), session.cost())
}

#[tokio::test]
async fn what_an_answer_without_a_count_of_tokens_costs_is_not_known() {
    let answer = r#"{"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}"#;
    let server = Server::answering(vec![sse(&[answer, "[DONE]"])]).await;
    let session = Session::new(
        agent(&server.url, PRICES, ""),
        transport(),
        Conversation::default(),
    );
    assert_eq!(session.cost(), Some(0.0));
    session.send("Hi").text().await.expect("an answer");
    assert_eq!(session.cost(), None);
}

#[tokio::test]
async fn an_answer_costs_what_its_tokens_cost() {
    // 20 input and 5 output tokens: see `calls`.
    assert_eq!(told(PRICES, "").await, (vec![0.000_07], Some(0.000_07)));
    assert_eq!(told("", "").await, (vec![], None));
    assert_eq!(
        told(&PRICES.replace("\"m\"", "\"other\""), "").await,
        (vec![], None)
    );
    assert_eq!(
        told(
            &PRICES.replace("output = 10", "output = 10, most_input = 19"),
            ""
        )
        .await,
        (vec![], None)
    );
    let special = "[body]\nservice_tier = \"priority\"\n";
    assert_eq!(told(PRICES, special).await, (vec![], None));
    // The price may differ at another server.
    assert_eq!(
        told(
            &PRICES.replace("seen =", "servers = [\"OpenAI\"]\nseen ="),
            ""
        )
        .await,
        (vec![], None)
    );
}

#[test]
fn bundled_prices_hold_at_their_server_alone() {
    let usage = Usage {
        input: 1_000_000,
        output: 100_000,
        cache_read: 500_000,
        ..Usage::default()
    };
    let cost = |agent: &Agent| {
        agent
            .compile(Conversation::default())
            .expect("it compiles")
            .cost(&usage)
    };
    let claude = of(&[], "Claude Chat");
    assert_eq!(
        cost(&claude.clone().with_model(Some("claude-opus-4-5-20251101"))),
        Some(5.25)
    );
    assert_eq!(cost(&claude.with_model(Some("claude-opus-0"))), None);
    let proxy = "name = \"Proxy\"\nextends = \"Claude\"\nurl = \"https://proxy.example\"\n";
    let mine = "name = \"Mine\"\nextends = \"Claude Chat\"\nprovider_instance = \"Proxy\"\nmodel = \"claude-opus-4-5\"\n";
    assert_eq!(
        cost(&of(
            &[("providers/p.toml", proxy), ("agents/m.toml", mine)],
            "Mine"
        )),
        None
    );
}

#[test]
fn every_bundled_price_names_its_server_and_its_page() {
    let compiler = Compiler::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let priced: Vec<_> = compiler
        .repo()
        .families
        .iter()
        .filter(|family| family.price.is_some())
        .collect();
    assert!(!priced.is_empty());
    for family in priced {
        assert!(!family.servers.is_empty(), "{}", family.name.value);
        let source = family.origin.source.as_deref().unwrap_or_default();
        assert!(
            source.starts_with("https://") && family.origin.seen.is_some(),
            "{}",
            family.name.value
        );
    }
}
