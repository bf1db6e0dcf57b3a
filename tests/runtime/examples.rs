//! The programs of `examples/` that each show one part of the runtime, run as a reader would.

#[path = "../../examples/compression.rs"]
#[expect(dead_code, reason = "it is a program: its `main` reads the terminal")]
mod compression;
#[path = "../../examples/pool.rs"]
#[expect(dead_code, reason = "it is a program: its `main` reads the arguments")]
mod pool;
#[path = "../../examples/tokens.rs"]
#[expect(dead_code, reason = "it is a program: its `main` reads standard input")]
mod tokens;

use reqc::runtime::pool::{PoolOptions, SessionPool};
use serde_json::json;

use crate::library::repository;
use crate::server::{Act, Received, Server, says};

/// Two more agents: one that compresses, and the roster that names it.
const MORE: [(&str, &str); 2] = [
    (
        "agents/presser.toml",
        "name = \"Presser\"\nextends = \"Helper\"\nsystem_prompt = \"Compress it.\"\n",
    ),
    (
        "rosters.toml",
        "[[roster]]\nname = \"chat_compression\"\nagents = [\"Presser\"]\n",
    ),
];

fn script(number: usize, request: &Received) -> Vec<Act> {
    match request.json().to_string().contains("Compress it.") {
        true => says("They spoke of monads."),
        false => says(&format!("Answer {number}.")),
    }
}

#[tokio::test]
async fn the_pool_describes_many_files_a_few_at_a_time() {
    let server = Server::start(|_, request| {
        let body = request.json().to_string();
        let name = ["one", "two", "three", "four", "five"]
            .into_iter()
            .find(|name| body.contains(&format!("{name}.rs")));
        says(&format!("About {}.", name.unwrap_or("nothing")))
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &[]);
    let agent = repository.agent("Helper").expect("it is there");
    let pool = SessionPool::new(
        repository.transport(),
        PoolOptions::default().with_sessions(2),
    );
    let files = ["one.rs", "two.rs", "three.rs", "four.rs", "five.rs"]
        .into_iter()
        .map(Into::into);
    let lines = pool::describe_all(&pool, &agent, files).await;
    let expected =
        ["one", "two", "three", "four", "five"].map(|name| format!("{name}.rs: About {name}."));
    assert_eq!(lines, expected);
    assert_eq!((pool.in_use(&agent), pool.idle(&agent)), (0, 2));
}

#[tokio::test]
async fn the_chat_compresses_itself_and_when_it_is_told_to() {
    let server = Server::start(script).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &MORE);
    let file = folder.path().join("chat.jsonl");
    let chat = compression::Chat::open(&repository, "Helper", &file, 4_000).expect("it opens");
    assert_eq!(
        chat.enter("What is a monad?").await.expect("an answer"),
        "Answer 0."
    );
    assert_eq!(
        chat.enter("And a functor?").await.expect("an answer"),
        "Answer 1."
    );
    let tokens = chat.enter("/tokens").await.expect("an estimate");
    assert!(
        tokens.contains("system /messages/0") && tokens.ends_with("in all"),
        "{tokens}"
    );
    assert_eq!(
        chat.enter("/compress").await.expect("a summary"),
        "They spoke of monads."
    );
    assert_eq!(
        chat.session.history().len(),
        3,
        "the summary, and the turn that is kept"
    );
    let long = format!(
        "Read this. {}",
        "A long story about a garden. ".repeat(3_000)
    );
    let answer = chat.enter(&long).await.expect("an answer");
    assert!(
        answer.starts_with("[3 messages were compressed]\nAnswer "),
        "{answer}"
    );
    drop(chat);
    let chat =
        compression::Chat::open(&repository, "Helper", &file, 4_000).expect("it opens again");
    assert!(
        chat.session.history()[0]
            .text()
            .ends_with("They spoke of monads.")
    );
}

#[test]
fn the_report_names_the_largest_part() {
    let body = json!({"system": "Be brief.", "messages": [
        {"role": "user", "content": "A long story about a garden. ".repeat(50)},
        {"role": "user", "content": "What is it about?"},
    ]});
    let report =
        tokens::report(&body, "anthropic-messages", "claude-sonnet-5").expect("it is known");
    assert!(report.ends_with("most of it: /messages/0"), "{report}");
    assert!(
        report.contains(" system\n") && report.contains(" message\n"),
        "{report}"
    );
    assert!(tokens::report(&body, "telegraph", "m").is_err());
}
