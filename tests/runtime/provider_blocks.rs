//! Blocks that only one provider knows, and names that a model invents, must not block a session.

use std::sync::Arc;

use reqc::compile::{Compiler, PolicyOptions};
use reqc::conversation::{Block, Conversation, Message, ProviderBlock, Role, Task, Tool};
use reqc::repo::LoadOptions;
use reqc::runtime::tools::{FnTool, ToolOutput, ToolSet};
use reqc::runtime::{Agent, Event, Outcome, Session};
use reqc::system::{Embedded, SystemClock};
use reqc::world::MemoryWorld;
use serde_json::{Value, json};

use crate::fixture::{environment, events, history, text, transport};
use crate::server::{Act, Server, sse, status};

/// A client API, the bundled agent that tests it, and a function that makes a complete answer of
/// some blocks.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    api: &'static str,
    agent: &'static str,
    answer: fn(&Value) -> Value,
}

const CLAUDE: Format = Format {
    api: "Claude",
    agent: "Claude Chat Tools",
    answer: claude,
};
const RESPONSES: Format = Format {
    api: "OpenAI (Responses API)",
    agent: "OpenAI Responses Chat Tools",
    answer: responses,
};
const GEMINI: Format = Format {
    api: "Google AI",
    agent: "Gemini Chat Tools",
    answer: gemini,
};
const CHAT: Format = Format {
    api: "OpenAI (Chat Completions)",
    agent: "OpenAI Chat Tools",
    answer: chat,
};
const OPENROUTER: Format = Format {
    api: "OpenRouter",
    agent: "OpenRouter Chat Tools",
    answer: chat,
};
const MISTRAL: Format = Format {
    api: "Mistral AI",
    agent: "Mistral Chat Tools",
    answer: chat,
};

fn claude(content: &Value) -> Value {
    let calls = content
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"));
    let stop = if calls { "tool_use" } else { "end_turn" };
    json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop})
}

fn responses(output: &Value) -> Value {
    json!({"object": "response", "id": "resp_1", "status": "completed", "output": output})
}

fn gemini(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

fn chat(calls: &Value) -> Value {
    let message = json!({"role": "assistant", "content": "Ok.", "tool_calls": calls});
    json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

fn answered(answer: &Value) -> Vec<Act> {
    status(
        200,
        &[("content-type", "application/json")],
        &answer.to_string(),
    )
}

impl Format {
    /// A session that checks each request before it is sent, as `reqc send` does, and permits no
    /// lowered schema.
    fn session(self, url: &str) -> Session {
        self.session_about(url, Conversation::default())
    }

    fn session_about(self, url: &str, conversation: Conversation) -> Session {
        let Format { api, agent, .. } = self;
        let provider = format!(
            "name = \"Scripted\"\nclient_api = \"{api}\"\nurl = \"{url}\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n"
        );
        let tester = format!(
            "name = \"Tester\"\nextends = \"{agent}\"\nprovider_instance = \"Scripted\"\nmodel = \"maker/m\"\nsurroundings = \"\"\n"
        );
        let own = [
            ("providers/scripted.toml", provider.as_str()),
            ("agents/tester.toml", tester.as_str()),
        ];
        let own = Arc::new(MemoryWorld::from_iter(own));
        let compiler = Compiler::load(own, Arc::new(Embedded::bundled()), LoadOptions::default());
        let policy = PolicyOptions {
            deny: vec!["schema/*".to_owned()],
            ..PolicyOptions::default()
        };
        let agent = Agent::new(Arc::new(compiler), "Tester", environment())
            .expect("it is there")
            .checked(policy);
        let schema = json!({"type": "object", "properties": {}})
            .as_object()
            .cloned()
            .expect("an object");
        let tool = Tool {
            name: "read_file".into(),
            description: "Reads.".into(),
            schema,
        };
        let session = Session::new(
            agent,
            transport().with_clock(Arc::new(SystemClock)),
            conversation,
        );
        session.set_tools(
            ToolSet::new().with(FnTool::new(tool, |_, _| async { ToolOutput::text("read") })),
        );
        session
    }

    /// Returns the body of the request that follows an answer of these blocks.
    async fn after(self, blocks: Value) -> Value {
        let (first, then) = (
            answered(&(self.answer)(&blocks)),
            answered(&(self.answer)(&self.text())),
        );
        let server = Server::answering(vec![first, then.clone(), then]).await;
        let session = self.session(&server.url);
        for message in ["Hi", "And?"] {
            let (told, outcome) = events(session.send(text(message))).await;
            assert!(
                matches!(outcome, Outcome::Finished(_)),
                "{}: {outcome:?} {told:?}",
                self.agent
            );
        }
        server.received().last().expect("a request").json()
    }

    /// A block of text in the answer format of this API.
    fn text(self) -> Value {
        match self.api {
            "Claude" => json!([{"type": "text", "text": "Ok."}]),
            "Google AI" => json!([{"text": "Ok."}]),
            "OpenAI (Responses API)" => json!([{
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Ok.", "annotations": []}],
            }]),
            _ => json!([]),
        }
    }

    /// A tool call in the answer format of this API.
    fn call(self, name: &str) -> Value {
        match self.api {
            "Claude" => json!([{"type": "tool_use", "id": "c1", "name": name, "input": {}}]),
            "Google AI" => json!([{"functionCall": {"name": name, "args": {}}}]),
            "OpenAI (Responses API)" => json!([{
                "type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": "{}",
                "status": "completed",
            }]),
            _ => {
                json!([{"id": "callabc12", "type": "function", "function": {"name": name, "arguments": "{}"}}])
            }
        }
    }
}

/// Collects all values of the fields with this name, in order.
fn members<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| members(element, name, found)),
        Value::Object(all) => all.iter().for_each(|(known, member)| {
            if known == name {
                found.push(member);
            }
            members(member, name, found);
        }),
        _ => {}
    }
}

#[tokio::test]
async fn what_a_provider_sent_goes_back_whatever_the_schemas_know_of_it() {
    let location = json!({"type": "brand_new_location", "cited_text": "x"});
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}, "brand_new": 1});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let phased = json!({
        "type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "phase": "brand_new",
        "content": [{"type": "output_text", "text": "x", "annotations": []}],
    });
    let sent = [
        (CLAUDE, vec![json!({"type": "brand_new", "x": 1})]),
        (CLAUDE, vec![search, found]),
        (
            CLAUDE,
            vec![json!({"type": "text", "text": "brand_new", "citations": [location]})],
        ),
        (
            CLAUDE,
            vec![json!({"type": "text", "text": "brand_new", "citations": [{}]})],
        ),
        (RESPONSES, vec![json!({"type": "brand_new", "id": "bn_1"})]),
        (RESPONSES, vec![phased]),
        (GEMINI, vec![json!({"brand_new": {"x": 1}})]),
    ];
    for (format, mut blocks) in sent {
        blocks.extend(format.text().as_array().expect("a list").clone());
        let body = format.after(Value::Array(blocks.clone())).await;
        assert!(
            body.to_string().contains("brand_new"),
            "{}: {blocks:?}: {body}",
            format.agent
        );
    }
}

#[tokio::test]
async fn citations_of_nothing_are_no_text() {
    let location = json!({"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "d",
        "start_char_index": 0, "end_char_index": 1});
    let empty = json!({"type": "text", "text": "", "citations": [location]});
    let body = CLAUDE
        .after(json!([empty, {"type": "text", "text": "Ok."}]))
        .await;
    assert!(!body.to_string().contains("citations"), "{body}");
}

#[tokio::test]
async fn a_name_that_a_model_made_up_gets_one_that_can_be_sent() {
    for format in [CLAUDE, RESPONSES, GEMINI, CHAT, MISTRAL] {
        for name in ["functions.read_file", "a b/c", "1ü", &"x".repeat(200)] {
            let body = format.after(format.call(name)).await;
            let history = ["messages", "input", "contents"]
                .into_iter()
                .find_map(|name| body.get(name));
            let mut names = Vec::new();
            members(history.expect("a history"), "name", &mut names);
            assert!(
                names.iter().all(|one| *one == names[0]) && !names.is_empty(),
                "{}: {names:?}",
                format.agent
            );
            assert!(names[0] != "read_file", "never that of a tool");
        }
    }
}

/// A Claude stream that breaks off after these blocks.
fn breaks_off(blocks: &[Value]) -> Vec<Act> {
    let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
    let parts = (0..).zip(blocks).flat_map(|(index, block)| {
        let begin = json!({"type": "content_block_start", "index": index, "content_block": block});
        [begin, json!({"type": "content_block_stop", "index": index})]
    });
    let events: Vec<String> = [start]
        .into_iter()
        .chain(parts)
        .map(|event| event.to_string())
        .collect();
    sse(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn what_a_provider_ran_is_kept_when_the_connection_breaks_before_the_first_word() {
    let thinking = json!({"type": "thinking", "thinking": "h", "signature": "c2ln"});
    let call = json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "pay", "server_name": "s", "input": {"eur": 5}});
    let paid = json!([{"type": "text", "text": "paid"}]);
    let result = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false, "content": paid});
    let server = Server::answering(vec![
        breaks_off(&[thinking, call, result]),
        answered(&claude(&CLAUDE.text())),
    ])
    .await;
    let session = CLAUDE.session(&server.url);
    assert!(matches!(
        events(session.send(text("Pay"))).await.1,
        Outcome::Failed(_)
    ));
    assert!(matches!(
        events(session.send(text("Did you?"))).await.1,
        Outcome::Finished(_)
    ));
    let body = server.received()[1].json().to_string();
    assert!(
        body.contains("Pay") && body.contains("paid") && body.contains("was interrupted"),
        "{body}"
    );
}

#[tokio::test]
async fn the_message_stays_once_an_answer_has_begun() {
    let thinking = json!({"type": "thinking", "thinking": "h", "signature": "c2ln"});
    let call = json!({"type": "tool_use", "id": "c1", "name": "read_file", "input": {}});
    for blocks in [vec![thinking], vec![call]] {
        let server =
            Server::answering(vec![breaks_off(&blocks), answered(&claude(&CLAUDE.text()))]).await;
        let session = CLAUDE.session(&server.url);
        assert!(matches!(
            events(session.send(text("Hi"))).await.1,
            Outcome::Failed(_)
        ));
        assert_eq!(history(&session), ["user: Hi"]);
        assert!(matches!(
            events(session.proceed()).await.1,
            Outcome::Finished(_)
        ));
        assert!(
            history(&session)[1].contains("broke off"),
            "{:?}",
            history(&session)
        );
    }
}

#[tokio::test]
async fn a_finished_answer_that_says_nothing_is_told_and_can_be_asked_again() {
    let thinking = json!({"type": "thinking", "thinking": "h", "signature": "c2ln"});
    let hidden = json!({"type": "redacted_thinking", "data": "x"});
    for block in [thinking, hidden, json!({"type": "text", "text": "\n"})] {
        let answers = vec![
            answered(&claude(&json!([block]))),
            answered(&claude(&CLAUDE.text())),
        ];
        let server = Server::answering([answers.clone(), answers].concat()).await;
        let session = CLAUDE.session(&server.url);
        let (told, _) = events(session.send(text("Hi"))).await;
        assert!(
            told.iter().any(|event| matches!(event, Event::Warning(_))),
            "{told:?}"
        );
        assert!(matches!(
            events(session.send(text("And?"))).await.1,
            Outcome::Finished(_)
        ));
        assert!(
            server.received()[1]
                .json()
                .to_string()
                .contains("was interrupted")
        );
        let session = CLAUDE.session(&server.url);
        events(session.send(text("Hi"))).await;
        assert!(matches!(
            events(session.proceed()).await.1,
            Outcome::Finished(_)
        ));
    }
}

#[tokio::test]
async fn a_reason_that_means_not_complete_cuts_an_answer_off() {
    let gemini = |reason: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "half"}]}, "finishReason": reason}]});
    let responses = json!({
        "object": "response", "id": "r", "status": "incomplete", "incomplete_details": {"reason": "brand_new"},
        "output": RESPONSES.text(),
    });
    let chat = |reason: &str| {
        let message = json!({"role": "assistant", "content": "half"});
        json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
    };
    let answers = [
        (GEMINI, gemini("OTHER"), true),
        (RESPONSES, responses, true),
        (CHAT, chat("abort"), true),
        (CHAT, chat("eos"), false),
        (GEMINI, gemini("STOP"), false),
    ];
    for (format, answer, is_cut_off) in answers {
        let next = answered(&(format.answer)(&format.text()));
        let server = Server::answering(vec![answered(&answer), next]).await;
        let session = format.session(&server.url);
        events(session.send(text("Hi"))).await;
        events(session.send(text("And?"))).await;
        let body = server.received()[1].json().to_string();
        assert_eq!(body.contains(CUT_OFF), is_cut_off, "{answer}");
    }
}

/// A part of the text that tells the model about the interruption.
const CUT_OFF: &str = "broke off";

#[tokio::test]
async fn calls_in_the_providers_own_form_get_an_error_when_nobody_answers_them() {
    let custom = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c9", "name": "sql", "input": "select"});
    let custom_of_chat =
        json!({"id": "callabc19", "type": "custom", "custom": {"name": "sql", "input": "select"}});
    let computer = json!({"type": "computer_call", "id": "cu_1", "call_id": "c8", "status": "completed",
        "pending_safety_checks": [], "action": {"type": "screenshot"}});
    for (format, call, is_answered) in [
        (RESPONSES, custom, true),
        (CHAT, custom_of_chat, true),
        (RESPONSES, computer, false),
    ] {
        // A single call waits for the host, which continues without a result.
        let body = format.after(json!([call])).await.to_string();
        assert!(body.contains("turn was interrupted"), "{body}");
        assert_eq!(
            body.contains("before the tool returned a result"),
            is_answered,
            "{body}"
        );
        // With another call next to it, the loop continues by itself.
        let mut both = format.call("read_file");
        both.as_array_mut().expect("a list").push(call.clone());
        let body = format.after(both).await.to_string();
        assert_eq!(
            body.contains("there is no such tool here"),
            is_answered,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_function_that_gemini_ran_itself_goes_back_with_its_result() {
    let response =
        json!({"functionResponse": {"name": "read_file", "response": {"output": "Seen."}}});
    let call = json!({"functionCall": {"name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "c2ln"});
    for parts in [vec![response.clone()], vec![call, response]] {
        let mut sent = parts.clone();
        sent.push(json!({"text": "Ok."}));
        let body = GEMINI.after(Value::Array(sent.clone())).await;
        assert_eq!(
            body["contents"][1],
            json!({"role": "model", "parts": sent}),
            "{body}"
        );
        assert_eq!(
            body["contents"].as_array().map(Vec::len),
            Some(3),
            "no tool ran: {body}"
        );
    }
}

#[tokio::test]
async fn an_event_names_what_is_kept_in_the_providers_own_form() {
    // These items have no `id`, since IDs that tie items to reasoning are removed.
    let custom =
        json!({"type": "custom_tool_call", "call_id": "c9", "name": "sql", "input": "select"});
    let custom_of_chat =
        json!({"id": "callabc19", "type": "custom", "custom": {"name": "sql", "input": "select"}});
    let search = json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}});
    let unknown = json!({"type": "brand_new", "x": 1});
    let kept = [
        (RESPONSES, custom, "custom_tool_call", true),
        (CHAT, custom_of_chat, "custom", true),
        (RESPONSES, search, "web_search_call", false),
        (CLAUDE, unknown, "brand_new", false),
    ];
    for (format, data, kind, is_open) in kept {
        let server = Server::answering(vec![answered(&(format.answer)(&json!([data])))]).await;
        let (told, outcome) = events(format.session(&server.url).send(text("Hi"))).await;
        assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
        let blocks = told.iter().filter_map(|event| match event {
            Event::ProviderBlock {
                block,
                is_open_call,
                ..
            } => Some((block.kind(), *is_open_call, &block.data)),
            _ => None,
        });
        assert_eq!(
            blocks.collect::<Vec<_>>(),
            [(kind, is_open, &data)],
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn members_that_came_several_times_are_written_once() {
    let own = |data: Value| {
        Block::Provider(ProviderBlock {
            origin: OPENROUTER.api.into(),
            data,
            text: None,
        })
    };
    let image = |url: &str| json!({"images": [{"type": "image_url", "image_url": {"url": url}}]});
    let audio = |id: &str| own(json!({"audio": {"id": id, "transcript": "Ok."}}));
    let blocks = vec![
        own(image("https://a")),
        audio("audio_1"),
        own(image("https://b")),
        audio("audio_2"),
    ];
    let asks = || Message {
        role: Role::User,
        blocks: vec![Block::Text("Hi".into())],
        item: None,
    };
    let history = vec![
        asks(),
        Message {
            role: Role::Assistant,
            blocks,
            item: None,
        },
        asks(),
    ];
    let conversation = Conversation {
        task: Task::Chat(history),
        ..Conversation::default()
    };
    let server = Server::answering(vec![answered(&chat(&json!([])))]).await;
    let (_, outcome) = events(
        OPENROUTER
            .session_about(&server.url, conversation)
            .proceed(),
    )
    .await;
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    let body = server.received()[0].json();
    let answer = body["messages"]
        .as_array()
        .and_then(|all| all.iter().find(|it| it["role"] == "assistant"));
    let answer = answer.expect("it is there");
    assert_eq!(answer["audio"], json!({"id": "audio_2"}));
    assert_eq!(
        answer["images"].as_array().map(Vec::len),
        Some(2),
        "{answer}"
    );
}

#[tokio::test]
async fn a_spoken_answer_that_expired_goes_back_in_words() {
    for (expires_at, is_known) in [(1_u64, false), (9_999_999_999, true)] {
        let data =
            json!({"audio": {"id": "audio_1", "expires_at": expires_at, "transcript": "Spoken."}});
        let spoken = ProviderBlock {
            origin: CHAT.api.into(),
            data,
            text: Some("Spoken.".into()),
        };
        let asks = || Message {
            role: Role::User,
            blocks: vec![Block::Text("Hi".into())],
            item: None,
        };
        let answer = Message {
            role: Role::Assistant,
            blocks: vec![Block::Provider(spoken)],
            item: None,
        };
        let task = Task::Chat(vec![asks(), answer, asks()]);
        let server = Server::answering(vec![answered(&chat(&json!([])))]).await;
        let session = CHAT.session_about(
            &server.url,
            Conversation {
                task,
                ..Conversation::default()
            },
        );
        assert!(matches!(
            events(session.proceed()).await.1,
            Outcome::Finished(_)
        ));
        let body = server.received()[0].json().to_string();
        assert_eq!(
            (body.contains("audio_1"), body.contains("Spoken.")),
            (is_known, !is_known),
            "{body}"
        );
    }
}
