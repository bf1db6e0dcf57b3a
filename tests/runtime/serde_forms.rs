//! Serde reads and writes the same forms as contexts and logs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use reqc::compile::Compiler;
use reqc::conversation::log::{CutOff, Entry, Log};
use reqc::conversation::{
    AttachedFile, Block, Content, Conversation, Image, Item, Message, SystemLayer, Task, Tool,
    Usage,
};
use reqc::repo::LoadOptions;
use reqc::runtime::{Event, Outcome};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::events;
use crate::server::{Server, says};

/// Checks that a value survives a round trip through text, and returns it as JSON.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(it: &T) -> Value {
    let text = serde_json::to_string(it).expect("it can be written");
    assert_eq!(serde_json::from_str::<T>(&text).expect(&text), *it);
    serde_json::to_value(it).expect("it can be written")
}

fn read<T: DeserializeOwned>(file: &Value, key: &str) -> Vec<T> {
    let elements = file[key].as_array().into_iter().flatten();
    elements
        .map(|it| T::deserialize(it).unwrap_or_else(|why| panic!("{why}: {it}")))
        .collect()
}

/// Returns the messages of a context file's history, of all turns.
fn history(file: &Value) -> Vec<Message> {
    let turns = file["turns"].as_array().into_iter().flatten();
    std::iter::once(file)
        .chain(turns)
        .flat_map(|it| read(it, "history"))
        .collect()
}

#[test]
fn contexts_are_read_as_the_compiler_reads_them_and_survive() {
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        options,
    );
    assert!(compiler.contexts().len() > 40);
    for ready in compiler.contexts() {
        let context = &ready.context;
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("contexts/{}.json", context.name));
        let file: Value =
            serde_json::from_slice(&fs::read(&path).expect("its file")).expect("JSON");
        assert_eq!(history(&file), context.history(), "{}", context.name);
        let mut log = Log::new("A");
        for message in context.history() {
            let mut written = round_trip(message);
            message
                .blocks
                .iter()
                .for_each(|block| drop(round_trip(block)));
            if message.item.is_none() {
                // A log has the same form, plus the kind and the number of the line.
                let line: Value = serde_json::from_str(log.append(Entry::Message(message.clone())))
                    .expect("JSON");
                written["kind"] = "message".into();
                written["line"] = log.lines().count().into();
                assert_eq!(line, written);
            }
        }
        if file["turns"].is_null() {
            assert_eq!(read::<Tool>(&file, "tools"), context.conversation.tools);
            assert_eq!(
                read::<AttachedFile>(&file, "files"),
                context.conversation.files
            );
            assert_eq!(
                read::<SystemLayer>(&file, "system_layers"),
                context.conversation.system_layers
            );
            assert_eq!(
                Conversation::deserialize(&file).expect("a conversation"),
                context.conversation,
                "{}",
                context.name
            );
        }
        round_trip(&context.conversation);
        context
            .conversation
            .tools
            .iter()
            .for_each(|tool| drop(round_trip(tool)));
        context
            .conversation
            .files
            .iter()
            .for_each(|file| drop(round_trip(file)));
        context
            .conversation
            .system_layers
            .iter()
            .for_each(|layer| drop(round_trip(layer)));
    }
}

#[test]
fn a_conversation_keeps_what_only_a_session_knows() {
    let item = Item::Notification {
        text: "Done.".into(),
        title: None,
        source: Some("ci".into()),
    };
    let conversation = Conversation {
        task: Task::Chat(vec![item.to_message(), Message::user("Hi")]),
        omit_system_prompt: true,
        bound_from: 1,
        known_prompt: Some("Be short.".into()),
        is_told: true,
        known_items: vec![(0, item)],
        ..Conversation::default()
    };
    let written = round_trip(&conversation);
    let keys: Vec<&str> = written
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "history",
            "system_prompt",
            "bound_from",
            "known_prompt",
            "is_told",
            "known_items"
        ]
    );
    assert_eq!(round_trip(&Conversation::default()), json!({"history": []}));
    let gap = Task::Completion {
        prefix: "a".into(),
        suffix: String::new(),
    };
    assert_eq!(
        round_trip(&Conversation {
            task: gap,
            ..Conversation::default()
        }),
        json!({"prefix": "a", "suffix": ""})
    );
    for (wrong, why) in [
        (
            json!({}),
            "a conversation has a `history`, or a `prefix` and a `suffix`",
        ),
        (
            json!({"history": [], "suffix": ""}),
            "a conversation has a `history`, or a `prefix` and a `suffix`",
        ),
        (
            json!({"history": [{"role": "judge", "content": ""}]}),
            "`history`: `judge` is not a role",
        ),
        (
            json!({"history": [], "system_prompt": "none"}),
            "`system_prompt` is neither `profile` nor `omit`",
        ),
    ] {
        assert_eq!(
            Conversation::deserialize(&wrong)
                .expect_err("wrong")
                .to_string(),
            why,
            "{wrong}"
        );
    }
}

#[test]
fn the_forms_are_those_of_the_documentation() {
    let image = Image {
        data: "AAAA".into(),
        media_type: "image/png".into(),
        is_url: false,
    };
    let written =
        json!({"type": "image", "data": "AAAA", "media_type": "image/png", "is_url": false});
    assert_eq!(
        (round_trip(&image), round_trip(&Block::Image(image))),
        (written.clone(), written)
    );
    assert_eq!(
        round_trip(&Message::user("Hi")),
        json!({"role": "user", "content": [{"type": "text", "text": "Hi"}]})
    );
    let item = Item::Notification {
        text: "Done.".into(),
        title: None,
        source: Some("ci".into()),
    };
    assert_eq!(
        round_trip(&item),
        json!({"kind": "notification", "text": "Done.", "source": "ci"})
    );
    assert_eq!(
        round_trip(&item.to_message()),
        json!({"kind": "notification", "text": "Done."})
    );
    assert_eq!(round_trip(&CutOff::TimedOut), json!("timed_out"));
    let usage = Usage {
        input: 3,
        ..Usage::default()
    };
    assert_eq!(
        round_trip(&usage),
        json!({"input": 3, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0})
    );
    let short: Message = serde_json::from_value(json!({"role": "assistant", "content": "Hi"}))
        .expect("as in a context");
    assert_eq!(short, Message::assistant(Content::from("Hi")));
    let layer: SystemLayer =
        serde_json::from_value(json!({"name": "a", "text": "b"})).expect("as in a context");
    assert_eq!(layer.priority, 100);
}

#[test]
fn what_is_something_else_is_told() {
    let wrong = |value: Value| {
        serde_json::from_value::<Message>(value)
            .expect_err("it is wrong")
            .to_string()
    };
    assert_eq!(
        wrong(json!({"role": "robot", "content": []})),
        "`robot` is not a role"
    );
    assert_eq!(wrong(json!({"role": "user"})), "`content` is missing");
    assert_eq!(wrong(json!([])), "a message is not an object");
    let block =
        serde_json::from_value::<Image>(json!({"type": "text", "text": ""})).expect_err("a text");
    assert_eq!(block.to_string(), "it is not an image");
}

#[tokio::test]
async fn events_are_written_as_reqc_send_writes_them() {
    let server = Server::answering(vec![says("Hello.")]).await;
    let (events, outcome) = events(crate::fixture::session(&server.url).send("Hi")).await;
    for event in events.iter().chain([&Event::Done(outcome.clone())]) {
        assert_eq!(
            serde_json::to_value(event).expect("it can be written"),
            event.to_json()
        );
    }
    assert_eq!(
        json!(outcome),
        json!({"state": "finished", "stop": "end_turn"})
    );
    assert_eq!(json!(Outcome::Cancelled), json!({"state": "cancelled"}));
}
