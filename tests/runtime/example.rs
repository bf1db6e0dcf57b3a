//! The program of `examples/agent.rs`, run as a reader would.

#[path = "../../examples/agent.rs"]
#[expect(dead_code, reason = "it is a program: its `main` reads the terminal")]
mod agent;

#[path = "../../examples/attachments.rs"]
#[expect(
    dead_code,
    reason = "it is a program: its `main` reads the command line"
)]
mod attachments;

#[path = "../../examples/models.rs"]
#[expect(
    dead_code,
    reason = "it is a program: its `main` reads the command line"
)]
mod models;

#[path = "../../examples/refactor.rs"]
#[expect(
    dead_code,
    reason = "it is a program: its `main` reads the command line"
)]
mod refactor;

use std::sync::Arc;
use std::time::Duration;

use reqc::runtime::{Outcome, StopReason};

use crate::fixture::history;
use crate::library::repository;
use crate::server::{Act, Server, calls, says};

#[tokio::test]
async fn it_runs_its_tool_asks_its_hook_is_cancelled_and_goes_on_with_its_file() {
    let wanted = [
        ("c1", "divide", r#"{"dividend":7,"divisor":2}"#),
        ("c2", "divide", r#"{"dividend":7e9,"divisor":2}"#),
        ("c3", "divide", r#"{"dividend":7,"divisor":0}"#),
        ("c4", "divide", r#"{"dividend":7}"#),
    ];
    let answers = vec![
        calls(&wanted),
        says("3.5"),
        vec![Act::Hang],
        says("As you like."),
    ];
    let server = Arc::new(Server::answering(answers).await);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (repository, file) = (
        repository(folder.path(), &server, &[]),
        folder.path().join("chat.jsonl"),
    );

    let session = agent::open(&repository, "Helper", &file).expect("a new session");
    let outcome = agent::ask(&session, "What is 7 / 2?", std::future::pending::<()>()).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    let results = "user: result #c1: 3.5 | error #c2: that is too much | error #c3: nothing is divided by zero | error #c4: the \
                   arguments do not match the schema of `divide`: \"divisor\" is a required property";
    assert_eq!(history(&session)[2..], [results, "assistant: 3.5"]);
    let sent = server.received()[0].json().to_string();
    assert!(sent.contains("The number that is divided."), "{sent}");

    assert_eq!(
        agent::ask(&session, "And then?", third_request(Arc::clone(&server))).await,
        Outcome::Cancelled
    );
    drop(session);

    let session = agent::open(&repository, "Helper", &file).expect("the same session");
    let outcome = agent::ask(&session, "Never mind.", std::future::pending::<()>()).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    let told = "system: The previous turn was interrupted before it was complete.";
    assert_eq!(
        history(&session)[4..],
        [
            "user: And then?",
            told,
            "user: Never mind.",
            "assistant: As you like."
        ]
    );
}

async fn third_request(server: Arc<Server>) {
    while server.received().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_smaller_examples_do_what_they_say() {
    let fenced = "Here it is:\n```rust\nif a {\n    c();\n}\n```\n";
    let list = crate::server::status(200, &[], r#"{"data":[{"id":"m"}]}"#);
    let server = Arc::new(Server::answering(vec![says(fenced), list, says("A tree.")]).await);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repository = repository(folder.path(), &server, &[]);

    let code = refactor::refactor(
        &repository,
        "Helper",
        "    if a {\n        b();\n    }\n",
        "Call c.",
    )
    .await;
    assert_eq!(code.expect("an answer"), "    if a {\n        c();\n    }");

    let agent = repository.agent("Helper").expect("it is there");
    assert_eq!(
        models::unknown(&agent, &repository.transport())
            .await
            .expect("a list"),
        ["m"]
    );

    std::fs::write(folder.path().join("tree.png"), b"\x89PNG\r\n\x1a\n0000").expect("writable");
    let said = attachments::ask(
        &repository,
        "Helper",
        folder.path(),
        "tree.png",
        "What is this?",
    )
    .await;
    assert_eq!(said.expect("an answer"), "A tree.");
    assert!(
        server.received()[2]
            .json()
            .to_string()
            .contains("data:image/png;base64,iVBORw0KGgowMDAw")
    );
}
