//! Handwritten sessions, one for each problem that must be reported, and for each case that must
//! not.

use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::compile::LoadOptions;
use crate::system::Embedded;
use crate::world::MemoryWorld;

fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let nothing = Arc::new(MemoryWorld::default());
        Compiler::load(
            nothing,
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        )
    })
}

fn told(lines: &[Value]) -> Stories {
    told_text(&written(lines))
}

/// Writes JSON Lines.
fn written(lines: &[Value]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

fn told_text(text: &str) -> Stories {
    let mut traffic = Traffic::new(compiler(), None);
    traffic
        .read("log.jsonl", text.as_bytes())
        .expect("it is read");
    traffic.end()
}

fn one(lines: &[Value]) -> Story {
    let stories = told(lines).stories;
    assert_eq!(
        stories.len(),
        1,
        "{:?}",
        stories
            .iter()
            .map(|story| story.requests)
            .collect::<Vec<_>>()
    );
    stories.into_iter().next().expect("one")
}

/// Returns the kinds of changes in a story, each with its first request.
fn changes(story: &Story) -> Vec<(&'static str, usize)> {
    story
        .breaks
        .iter()
        .map(|found| (found.change.name(), found.request))
        .collect()
}

/// Returns a string that is long enough to be cached.
fn long(of: &str) -> String {
    format!("{of} reads every file with care and says what it does. ").repeat(160)
}

fn user(text: impl std::fmt::Display) -> Value {
    json!({"role": "user", "content": format!("{text}: please look at this file and say what it does, in detail and with reasons")})
}

fn assistant(text: impl std::fmt::Display) -> Value {
    json!({"role": "assistant", "content": format!("{text}: it reads lines, sorts them by their length and writes them to a file")})
}

/// Returns the messages of a conversation up to and including a turn, counted from 0.
fn talk(name: &str, turn: usize) -> Vec<Value> {
    let answered = (0..turn).flat_map(|at| {
        [
            user(format!("{name} {at}")),
            assistant(format!("{name} {at}")),
        ]
    });
    answered.chain([user(format!("{name} {turn}"))]).collect()
}

/// Returns a request to Claude that asks the server to cache the system prompt and the messages.
fn claude(system: &str, messages: &[Value]) -> Value {
    let mark = json!({"type": "ephemeral"});
    let mut messages = messages.to_vec();
    if let Some(last) = messages.last_mut() {
        match last["content"].as_str().map(str::to_owned) {
            Some(text) => {
                last["content"] = json!([{"type": "text", "text": text, "cache_control": mark}]);
            }
            None => last["content"][0]["cache_control"] = mark.clone(),
        }
    }
    json!({
        "model": "claude-sonnet-5", "max_tokens": 1000, "messages": messages,
        "system": [{"type": "text", "text": system, "cache_control": mark}],
    })
}

fn gpt(system: &str, messages: &[Value]) -> Value {
    let system = json!({"role": "system", "content": system});
    let messages = [&[system], messages].concat();
    json!({"model": "gpt-5", "messages": messages})
}

fn grown(name: &str, turns: usize) -> Vec<Value> {
    (0..turns)
        .map(|turn| claude(&long(name), &talk(name, turn)))
        .collect()
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "input_schema": {"type": "object", "properties": {}}})
}

#[test]
fn a_conversation_that_only_grows_has_nothing_to_mend() {
    let story = one(&grown("alpha", 6));
    assert!(!story.has_findings(), "{story:?}");
    assert_eq!((story.requests, story.growth.points.len()), (6, 6));
    assert!(story.growth.points[5].cached > story.growth.points[1].cached);
    assert!(story.growth.per_request.is_some() && story.growth.window == Some(1_000_000));
}

#[test]
fn a_date_in_the_system_prompt_is_found_with_its_price() {
    let story = one(&[dated(24, 0), dated(24, 1), dated(25, 2), dated(25, 3)]);
    let [found] = story.breaks.as_slice() else {
        panic!("{:?}", story.breaks)
    };
    assert_eq!(
        (&found.change, found.request, found.times),
        (&Change::Time, 3, 1)
    );
    assert_eq!(found.at, "system[0].text");
    assert_eq!(
        found.byte,
        Some(long("a").len() + "Today is 2026-11-2".len())
    );
    assert!(
        found
            .before
            .as_ref()
            .is_some_and(|text| text.ends_with("2026-11-24."))
    );
    assert!(found.loss.tokens > 1_000 && found.loss.dollars.is_some_and(|dollars| dollars > 0.0));
    assert_eq!(found.place.line, 3);
    // Each request is sent twice.
    let story = one(&(0..5)
        .map(|turn| dated(20 + turn, turn))
        .collect::<Vec<_>>());
    assert_eq!(
        (story.breaks[0].times, story.breaks[0].loss.requests),
        (4, 4)
    );
}

fn dated(day: usize, turn: usize) -> Value {
    claude(
        &format!("{}Today is 2026-11-{day}.", long("a")),
        &talk("a", turn),
    )
}

#[test]
fn what_is_not_cached_costs_nothing() {
    let story = one(&[dated_and_unmarked(24, 0), dated_and_unmarked(25, 1)]);
    assert_eq!(
        (story.breaks[0].unpriced, story.unmarked),
        (Some(Unpriced::NotCached), 2)
    );
    assert!(!story.has_findings());
    let short = one(&[
        gpt("It is 10:00:01.", &talk("a", 0)),
        gpt("It is 10:00:09.", &talk("a", 1)),
    ]);
    assert_eq!(short.breaks[0].unpriced, Some(Unpriced::TooShort));
}

fn dated_and_unmarked(day: usize, turn: usize) -> Value {
    let mut body = claude(
        &format!("{}Today is 2026-11-{day}.", long("a")),
        &talk("a", turn),
    );
    body["system"][0]
        .as_object_mut()
        .expect("a block")
        .remove("cache_control");
    let last = body["messages"].as_array().expect("messages").len() - 1;
    body["messages"][last]["content"][0]
        .as_object_mut()
        .expect("a block")
        .remove("cache_control");
    body
}

#[test]
fn tools_that_change_are_told_by_their_kind_of_change() {
    let (read, write) = (
        tool("read", "Reads a file."),
        tool("write", "Writes a file."),
    );
    let both = || vec![read.clone(), write.clone()];
    let story = one(&[
        with_tools(both(), 0),
        with_tools(vec![write.clone(), read.clone()], 1),
    ]);
    assert_eq!(changes(&story), [("tool-order", 2)]);
    let story = one(&[
        with_tools(both(), 0),
        with_tools(vec![read.clone(), tool("write", "Writes a file, now.")], 1),
    ]);
    assert_eq!(story.breaks[0].change, Change::Tool("write".to_owned()));
    assert_eq!(story.breaks[0].at, "tools[1].description");
    let story = one(&[with_tools(both(), 0), with_tools(vec![read.clone()], 1)]);
    assert_eq!(
        story.breaks[0].change,
        Change::ToolSet {
            added: vec![],
            removed: vec!["write".to_owned()]
        }
    );
    assert_eq!(
        changes(&one(&[with_tools(both(), 0), with_tools(both(), 1)])),
        []
    );
}

fn with_tools(tools: Vec<Value>, turn: usize) -> Value {
    let mut body = claude(&long("a"), &talk("a", turn));
    body["tools"] = tools.into();
    body
}

#[test]
fn messages_that_change_are_told_by_their_kind_of_change() {
    let system = long("a");
    let all = talk("a", 4);
    let changed = |edit: fn(&mut Vec<Value>)| {
        let mut messages = talk("a", 5);
        edit(&mut messages);
        one(&[claude(&system, &all), claude(&system, &messages)])
    };
    let rewritten = changed(|messages| {
        messages[1]["content"] = json!("a 0: it reads lines, sorts them by their length and …");
    });
    assert_eq!(changes(&rewritten), [("message", 2)]);
    assert_eq!(rewritten.breaks[0].at, "messages[1].content");
    assert_eq!(
        changes(&changed(|messages| drop(messages.drain(0..2)))),
        [("removed", 2)]
    );
    assert_eq!(
        changes(&changed(|messages| messages.insert(2, user("remember")))),
        [("inserted", 2)]
    );
    assert_eq!(changes(&changed(|_| {})), []);
}

#[test]
fn members_in_another_order_are_told() {
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}]});
    let request = |input: &str, more: &[Value]| {
        let mut body = claude(
            &long("a"),
            &[&[user("a"), read_call(input), result.clone()], more].concat(),
        );
        body["tools"] = json!([tool("read", "Reads.")]);
        body
    };
    let more = [assistant("b"), user("c")];
    let story = one(&[
        request(r#"{"path": "a", "line": 1}"#, &[]),
        request(r#"{"line": 1, "path": "a"}"#, &more),
    ]);
    assert_eq!(changes(&story), [("key-order", 2)]);
    assert_eq!(
        changes(&one(&[
            request(r#"{"a": 1, "b": 1}"#, &[]),
            request(r#"{"a": 1, "b": 1}"#, &more)
        ])),
        []
    );
}

fn read_call(input: &str) -> Value {
    let input: Value = serde_json::from_str(input).expect("JSON");
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": input}]})
}

#[test]
fn settings_on_which_the_cache_depends_are_told() {
    let story = one(&[with_effort(1, 0), with_effort(2, 1), with_effort(2, 2)]);
    assert_eq!(changes(&story), [("setting", 2)]);
    assert_eq!(changes(&one(&[with_effort(1, 0), with_effort(1, 1)])), []);
}

fn with_effort(budget: u64, turn: usize) -> Value {
    let mut body = claude(&long("a"), &talk("a", turn));
    body["output_config"] = json!({"effort": if budget > 1 { "high" } else { "low" }});
    body
}

#[test]
fn conversations_that_run_beside_each_other_are_kept_apart() {
    let (alpha, beta) = (grown("alpha", 4), grown("beta", 4));
    let mixed: Vec<Value> = alpha
        .into_iter()
        .zip(beta)
        .flat_map(|(a, b)| [a, b])
        .collect();
    let stories = told(&mixed).stories;
    assert_eq!(
        stories
            .iter()
            .map(|story| story.requests)
            .collect::<Vec<_>>(),
        [4, 4]
    );
    assert!(stories.iter().all(|story| !story.has_findings()));
}

#[test]
fn subagents_share_the_system_prompt_and_nothing_else() {
    let system = long("same");
    let mixed: Vec<Value> = requests_of(&system, "one")
        .into_iter()
        .zip(requests_of(&system, "two"))
        .flat_map(|(a, b)| [a, b])
        .collect();
    let stories = told(&mixed).stories;
    assert_eq!(stories.len(), 2);
    assert!(
        stories
            .iter()
            .all(|story| story.origin == Origin::Began && !story.has_findings()),
        "{stories:?}"
    );
}

fn requests_of(system: &str, name: &'static str) -> Vec<Value> {
    (0..3)
        .map(|turn| claude(system, &talk(name, turn)))
        .collect()
}

#[test]
fn another_agent_with_the_same_first_message_is_another_conversation() {
    let title = gpt(
        "Write a title of five words for what follows, and nothing else at all.",
        &talk("a", 0),
    );
    let stories = told(&[
        gpt(&long("a"), &talk("a", 0)),
        title,
        gpt(&long("a"), &talk("a", 1)),
    ])
    .stories;
    assert_eq!(
        stories
            .iter()
            .map(|story| story.requests)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    let mut other = gpt(&long("a"), &talk("a", 0));
    other["model"] = json!("gpt-5-mini");
    assert_eq!(
        told(&[gpt(&long("a"), &talk("a", 0)), other]).stories.len(),
        2,
        "one question to two models"
    );
}

#[test]
fn retries_and_requests_out_of_order_are_no_breaks() {
    let all = grown("a", 4);
    let story = one(&[
        all[0].clone(),
        all[1].clone(),
        all[1].clone(),
        all[3].clone(),
        all[2].clone(),
    ]);
    assert_eq!((story.requests, story.retries, story.earlier), (5, 1, 1));
    assert!(!story.has_findings(), "{story:?}");
}

#[test]
fn a_fork_is_two_conversations() {
    let mut other = talk("a", 2);
    other.extend([
        assistant("a 2"),
        user("something quite different, namely the weather of tomorrow in Rome, where it is warm"),
    ]);
    let system = long("a");
    let stories = told(&[
        claude(&system, &talk("a", 2)),
        claude(&system, &talk("a", 3)),
        claude(&system, &other),
        claude(&system, &talk("a", 4)),
    ]);
    let stories = stories.stories;
    assert_eq!(
        stories
            .iter()
            .map(|story| story.requests)
            .collect::<Vec<_>>(),
        [3, 1]
    );
    assert_eq!(
        stories[1].origin,
        Origin::Fork {
            story: 0,
            shared: 6
        }
    );
    assert!(stories.iter().all(|story| !story.has_findings()));
}

#[test]
fn a_run_that_begins_like_an_earlier_one_is_a_conversation_from_its_first_request() {
    let run = |name: &str, turn: usize| {
        let later = talk(name, turn + 1).split_off(2);
        let messages = match turn {
            0 => talk("same", 0),
            _ => [
                &[user("same 0")][..],
                &[assistant(name)],
                &later[..2 * turn - 1],
            ]
            .concat(),
        };
        claude(&long("same"), &messages)
    };
    let requests = |lines: &[Value]| -> Vec<(usize, usize)> {
        let stories = told(lines).stories;
        assert!(
            stories.iter().all(|story| !story.has_findings()),
            "{stories:?}"
        );
        stories
            .iter()
            .map(|story| (story.requests, story.earlier))
            .collect()
    };
    let first = [run("a", 0), run("a", 1), run("a", 2)];
    let second = [run("b", 0), run("b", 1), run("b", 2)];
    assert_eq!(
        requests(&[&first[..], &second[..]].concat()),
        [(3, 0), (3, 0)]
    );
    // The same run again, which then continues in a different way.
    let mut third = first.to_vec();
    third.truncate(2);
    let mut other = run("a", 1);
    let more = [
        assistant("other"),
        user("something quite different, namely the weather of tomorrow in Rome"),
    ];
    other["messages"]
        .as_array_mut()
        .expect("messages")
        .extend(more);
    third.push(other);
    assert_eq!(
        requests(&[&first[..], &third[..]].concat()),
        [(3, 0), (3, 0)]
    );
    // A request that is only late stays in its conversation.
    let late = [
        first[0].clone(),
        first[2].clone(),
        first[1].clone(),
        run("a", 3),
    ];
    assert_eq!(requests(&late), [(4, 1)]);
}

#[test]
fn a_summary_for_the_history_is_legitimate() {
    let system = long("a");
    let summary = user(
        "This session is being continued from a previous conversation that ran out of context. The summary",
    );
    let last = talk("a", 4).split_off(7);
    let story = one(&[
        claude(&system, &talk("a", 3)),
        claude(&system, &talk("a", 4)),
        claude(
            &system,
            &[&[summary.clone(), assistant("yes")], last.as_slice()].concat(),
        ),
    ]);
    assert_eq!((story.compactions.len(), story.breaks.len()), (1, 0));
    assert_eq!(story.compactions[0].request, 3);
    assert!(!story.has_findings());
    // Nothing is shared with the first conversation, so this is reported as one that begins with a
    // summary.
    let stories = told(&[claude(&system, &talk("a", 4)), claude(&system, &[summary])]).stories;
    assert_eq!(stories[1].origin, Origin::Summary);
}

#[test]
fn two_formats_in_one_file_are_two_conversations() {
    let mixed: Vec<Value> = (0..3)
        .flat_map(|turn| {
            [
                claude(&long("a"), &talk("a", turn)),
                gpt(&long("a"), &talk("a", turn)),
            ]
        })
        .collect();
    let stories = told(&mixed).stories;
    let wires: Vec<WireFormat> = stories.iter().map(|story| story.wire).collect();
    assert_eq!(
        wires,
        [WireFormat::AnthropicMessages, WireFormat::OpenAiChat]
    );
    assert!(
        stories
            .iter()
            .all(|story| story.requests == 3 && !story.has_findings())
    );
}

#[test]
fn a_file_that_is_cut_in_the_middle_of_a_line_is_read_up_to_there() {
    let text = written(&grown("a", 3));
    let stories = told_text(&text[..text.len() - 40]);
    assert_eq!((stories.requests(), stories.unreadable_lines), (2, 1));
    assert_eq!(stories.unreadable.map(|place| place.line), Some(3));
}

fn thought(signature: &str) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Let me see.", "signature": signature}, {"type": "text", "text": "It sorts lines."},
    ]})
}

#[test]
fn thinking_that_is_dropped_or_goes_to_another_model_is_told() {
    let system = long("a");
    let messages =
        |thinking: Value, more: usize| [&[user("a"), thinking], &talk("b", more)[..]].concat();
    let bare =
        json!({"role": "assistant", "content": [{"type": "text", "text": "It sorts lines."}]});
    let (signed, bare) = (thought("c2lnbmVk"), bare);
    let kept = one(&[
        claude(&system, &messages(signed.clone(), 0)),
        claude(&system, &messages(signed.clone(), 1)),
    ]);
    assert!(kept.thinking.is_empty());
    let story = one(&[
        claude(&system, &messages(signed.clone(), 0)),
        claude(&system, &messages(bare.clone(), 1)),
    ]);
    assert_eq!(story.thinking[0].kind, ThinkingLossKind::Dropped);
    assert_eq!(changes(&story), [("thinking", 2)]);
    let mut other = claude(&system, &messages(signed.clone(), 1));
    other["model"] = json!("claude-haiku-4-5");
    let story = one(&[claude(&system, &messages(signed.clone(), 0)), other]);
    assert!(
        matches!(story.thinking[0].kind, ThinkingLossKind::OtherModel { .. }),
        "{:?}",
        story.thinking
    );
    // The answer contained a signature, which is missing from the next request.
    let answer = json!({"content": thought("c2lnbmVk")["content"], "usage": {"input_tokens": 9, "output_tokens": 3}});
    let first = || answered(&claude(&system, &[user("a")]), &answer);
    assert_eq!(
        one(&[
            first(),
            answered(&after_thinking(&system, bare), &json!({}))
        ])
        .thinking[0]
            .request,
        2
    );
    assert!(
        one(&[
            first(),
            answered(&after_thinking(&system, signed), &json!({}))
        ])
        .thinking
        .is_empty()
    );
}

fn answered(body: &Value, answer: &Value) -> Value {
    json!({"url": "https://api.anthropic.com/v1/messages", "body": body, "response": answer})
}

fn after_thinking(system: &str, thinking: Value) -> Value {
    claude(system, &[user("a"), thinking, user("b")])
}

#[test]
fn thinking_that_is_bound_to_what_changed_is_told() {
    let story = one(&[signed_request(24, 0), signed_request(25, 1)]);
    assert_eq!(story.thinking[0].kind, ThinkingLossKind::Unbound);
    assert_eq!(story.thinking[0].at, "messages[1]");
    assert!(
        one(&[signed_request(24, 0), signed_request(24, 1)])
            .thinking
            .is_empty()
    );
}

fn signed_request(day: usize, turn: usize) -> Value {
    let messages = [&[user("a"), thought("c2lnbmVk")], &talk("b", turn)[..]].concat();
    let mut body = claude(&format!("{}Today is 2026-11-{day}.", long("a")), &messages);
    body["model"] = json!("claude-opus-5-5");
    body
}

#[test]
fn the_message_that_poisons_a_session_is_named() {
    let system = long("a");
    let empty = json!({"role": "user", "content": [{"type": "text", "text": ""}]});
    let story = one(&[
        claude(&system, &talk("a", 1)),
        claude(&system, &poisoned(&empty, 0)),
        claude(&system, &poisoned(&empty, 1)),
    ]);
    let [poison] = story.poison.as_slice() else {
        panic!("{:?}", story.poison)
    };
    assert_eq!(
        (
            poison.at.as_str(),
            poison.request,
            poison.requests,
            poison.mended
        ),
        ("messages[4]", 2, 2, None)
    );
    // A later request does not contain the message.
    let mended = [&talk("a", 1)[..], &[assistant("x")], &talk("b", 2)[..]].concat();
    let story = one(&[
        claude(&system, &poisoned(&empty, 0)),
        claude(&system, &poisoned(&empty, 1)),
        claude(&system, &mended),
    ]
    .map(|mut body| {
        body["messages"][0] = user("a 0");
        body
    }));
    assert_eq!(
        story
            .poison
            .iter()
            .map(|poison| poison.mended)
            .collect::<Vec<_>>(),
        [Some(3)]
    );
    // The provider accepted the message, so the rule does not apply there.
    let taken = one(&[
        logged(&claude(&system, &poisoned(&empty, 0))),
        logged(&claude(&system, &poisoned(&empty, 1))),
    ]);
    assert!(taken.poison.is_empty());
}

fn poisoned(empty: &Value, more: usize) -> Vec<Value> {
    [
        &talk("a", 1)[..],
        &[assistant("x"), empty.clone(), assistant("y")],
        &talk("b", more)[..],
    ]
    .concat()
}

fn logged(body: &Value) -> Value {
    json!({"body": body, "response": {"usage": {"input_tokens": 2_000, "output_tokens": 3}}})
}

fn counted(body: &Value, read: u64, input: u64, time: &str) -> Value {
    let usage = json!({
        "input_tokens": input - read, "cache_read_input_tokens": read, "cache_creation_input_tokens": 0, "output_tokens": 5,
    });
    json!({"url": "https://api.anthropic.com/v1/messages", "timestamp": time, "body": body, "response": {"usage": usage}})
}

#[test]
fn what_the_provider_counted_is_compared_with_what_the_rules_predict() {
    let all = grown("a", 4);
    let (first, second) = ("2026-11-25T10:00:00Z", "2026-11-25T10:00:30Z");
    let hit = one(&[
        counted_at(&all, 0, 0, first),
        counted_at(&all, 1, 5_000, second),
        counted_at(&all, 2, 5_100, "2026-11-25T10:01:00Z"),
    ]);
    assert!(
        hit.counted.missed.is_none() && hit.counted.answers == 3,
        "{:?}",
        hit.counted
    );
    let missed = one(&[
        counted_at(&all, 0, 4_000, first),
        counted_at(&all, 1, 5_000, second),
        counted_at(&all, 2, 0, "2026-11-25T10:01:00Z"),
    ]);
    let found = missed.counted.missed.expect("a miss");
    assert_eq!(
        (found.request, found.counted, found.loss.requests),
        (3, 0, 1)
    );
    assert!(
        (5_000..=5_100).contains(&found.predicted),
        "{}",
        found.predicted
    );
    let paused = one(&[
        counted_at(&all, 0, 4_000, first),
        counted_at(&all, 1, 5_000, second),
        counted_at(&all, 2, 0, "2026-11-25T10:12:00Z"),
    ]);
    assert!(paused.counted.missed.is_none());
    assert_eq!(
        paused
            .counted
            .expired
            .map(|expired| (expired.request, expired.pause)),
        Some((3, 690))
    );
}

/// Returns a request to OpenAI at a minute of an hour, with the number of cached tokens.
fn cached(turn: usize, minute: u64, read: u64, retention: Option<&str>) -> Value {
    let mut body = gpt(&long("a"), &talk("a", turn));
    if let Some(retention) = retention {
        body["prompt_cache_retention"] = json!(retention);
    }
    let input = 5_000 + 100 * turn as u64;
    json!({
        "url": "https://api.openai.com/v1/chat/completions", "timestamp": format!("2026-03-25T10:{minute:02}:00Z"), "body": body,
        "response": {"usage": {"prompt_tokens": input, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": read}}},
    })
}

#[test]
fn a_miss_after_the_life_of_the_cache_is_an_expiry() {
    let paused = |retention: Option<&str>| {
        one(&[
            cached(0, 0, 0, retention),
            cached(1, 1, 4_992, retention),
            cached(2, 9, 0, retention),
        ])
        .counted
    };
    let expired = paused(None).expired.expect("an expiry");
    assert_eq!((expired.requests, expired.pause), (vec![3], 480));
    assert!(paused(None).missed.is_none());
    let missed = paused(Some("24h")).missed.expect("a miss");
    assert_eq!((missed.requests, missed.pause), (vec![3], Some(480)));
}

#[test]
fn the_first_requests_can_miss_the_cache_too() {
    let told = |reads: [u64; 4]| {
        let lines: Vec<Value> = (0..4)
            .map(|turn| cached(turn, turn as u64, reads[turn], None))
            .collect();
        one(&lines).counted
    };
    let late = told([0, 0, 0, 4_992]);
    let missed = late.missed.expect("a miss");
    assert_eq!(
        (missed.request, missed.requests, late.uncached),
        (2, vec![2, 3], 0)
    );
    // Such a server may not report cached tokens.
    let never = told([0, 0, 0, 0]);
    assert!(never.missed.is_none() && never.uncached == 3, "{never:?}");
}

fn counted_at(all: &[Value], turn: usize, read: u64, time: &str) -> Value {
    counted(&all[turn], read, 5_000 + 100 * turn as u64, time)
}

#[test]
fn a_model_has_a_cache_of_its_own() {
    let mut other = grown("a", 3);
    other[2]["model"] = json!("claude-opus-5");
    assert_eq!(changes(&one(&other)), [("model", 3)]);
}

#[test]
fn too_many_conversations_are_closed_and_told() {
    let mut traffic = Traffic::within(
        compiler(),
        None,
        Limits {
            open: 2,
            texts: 1 << 20,
            stories: 100,
        },
    );
    let lines: Vec<Value> = ["a", "b", "c", "a"]
        .iter()
        .enumerate()
        .map(|(turn, name)| claude(&long("s"), &talk(name, turn / 3)))
        .collect();
    let text = written(&lines);
    traffic.read("log", text.as_bytes()).expect("read");
    let stories = traffic.end();
    assert_eq!((stories.stories.len(), stories.closed_early), (4, 2));
}

#[test]
fn without_texts_a_change_is_still_told() {
    let mut traffic = Traffic::within(
        compiler(),
        None,
        Limits {
            open: 9,
            texts: 0,
            stories: 9,
        },
    );
    let mut lines = [dated(24, 3), dated(25, 4)];
    lines.iter_mut().for_each(|body| {
        body["tools"] = json!([tool("read", "Reads a file of this project, line by line.")]);
    });
    let text = written(&lines);
    traffic.read("log", text.as_bytes()).expect("read");
    let stories = traffic.end().stories;
    assert_eq!(changes(&stories[0]), [("system", 2)]);
}

#[test]
fn forms_of_logs_hold_the_same_story() {
    let system = format!("{}It is 10:00:0", long("a"));
    let bodies: Vec<Value> = (0..3)
        .map(|turn| gpt(&format!("{system}{turn}"), &talk("a", turn)))
        .collect();
    let url = "https://api.openai.com/v1/chat/completions";
    let lines = |of: &dyn Fn(&Value) -> Value| written(&bodies.iter().map(of).collect::<Vec<_>>());
    let entries: Vec<Value> = bodies.iter().map(|body| json!({
        "startedDateTime": "2026-11-25T10:00:00Z", "request": {"method": "POST", "url": url, "postData": {"text": body.to_string()}},
        "response": {"content": {"text": "{\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 1}}"}},
    })).collect();
    let cassette: Vec<String> = bodies.iter().map(|body| format!(
        "- request:\n    body: '{}'\n    method: POST\n    uri: {url}\n  response:\n    body:\n      string: '{{}}'\n", body.to_string().replace('\'', "''")
    )).collect();
    let forms: Vec<(&str, String)> = vec![
        ("bodies", lines(&Value::clone)),
        ("HAR", json!({"log": {"entries": entries}}).to_string()),
        ("VCR cassette", format!("interactions:\n{}version: 1\n", cassette.concat())),
        ("VCR cassette", json!({"interactions": bodies.iter().map(|body| json!({"request": {"uri": url, "body": body.to_string()}, "response": {}})).collect::<Vec<_>>()}).to_string()),
        ("nock cassette", Value::from(bodies.iter().map(|body| json!({"scope": "https://api.openai.com:443", "method": "POST", "path": "/v1/chat/completions", "body": body, "status": 200, "response": {}})).collect::<Vec<_>>()).to_string()),
        ("OpenTelemetry spans", lines(&|body| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": "1764065702120000000", "attributes": [
            {"key": "gen_ai.request.model", "value": {"stringValue": "gpt-5"}},
            {"key": "gen_ai.input.messages", "value": {"stringValue": body["messages"].to_string()}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "5"}},
        ]}]}]}]})
    })),
        ("Vercel AI SDK spans", lines(&|body| {
        json!({"name": "ai.streamText.doStream", "attributes": {
        "ai.operationId": "ai.streamText.doStream", "ai.model.id": "gpt-5", "ai.prompt.messages": body["messages"].to_string()}})
    })),
        ("SDK debug log", bodies.iter().map(debug_line).collect::<Vec<_>>().concat()),
        ("LiteLLM log", lines(&|body| json!({"request_id": "a", "startTime": "2026-11-25T10:00:00Z", "proxy_server_request": body, "messages": {}, "response": {}}))),
        ("LiteLLM log", lines(&|body| json!({"litellm_call_id": "a", "model": "gpt-5", "messages": body["messages"], "model_parameters": {}, "response": {}}))),
        ("Langfuse export", lines(&|body| json!({"type": "GENERATION", "model": "gpt-5", "startTime": "2026-11-25T10:00:00Z", "input": body["messages"], "output": {}}))),
        ("Helicone export", lines(&|body| json!({"request_body": body, "response_body": {}, "request_created_at": "2026-11-25T10:00:00Z"}))),
        ("claude-trace log", lines(&|body| json!({"request": {"timestamp": 1_764_065_702, "url": url, "body": body}, "response": {}, "logged_at": "x"}))),
    ];
    for (form, text) in forms {
        let stories = told_text(&text);
        assert_eq!(stories.forms, [(form, 3)], "{form}: {stories:?}");
        assert_eq!(stories.stories.len(), 1, "{form}");
        assert_eq!(changes(&stories.stories[0]), [("time", 2)], "{form}");
        assert_eq!(stories.stories[0].breaks[0].times, 2, "{form}");
    }
}

/// Returns a cassette with one request to a chat, and an answer.
fn cassette(body: &Value, answer: &str, status: u64) -> String {
    let text = answer.replace('\'', "''").replace('\n', "\n\n");
    format!(
        "interactions:\n- request:\n    body: '{}'\n    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n  \
         response:\n    body:\n      string: '{text}'\n    status:\n      code: {status}\n      message: x\nversion: 1\n",
        body.to_string().replace('\'', "''")
    )
}

#[test]
fn a_stream_in_a_quoted_scalar_of_a_cassette_is_read() {
    let body = json!({"model": "gpt-5", "messages": [user("a")]});
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":117,\"completion_tokens\":14}}\n\ndata: [DONE]\n\n";
    let counted = told_text(&cassette(&body, stream, 200))
        .stories
        .remove(0)
        .counted;
    assert_eq!(
        (counted.answers, counted.input, counted.output),
        (1, 117, 14)
    );
}

#[test]
fn an_answer_with_status_200_accepts_the_request() {
    let call = json!({"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let body =
        json!({"model": "gpt-5", "messages": [user("a"), call, {"role": "tool", "content": "1"}]});
    let stream = "data: {\"object\":\"x\"}\n\ndata: [DONE]\n\n";
    let accepted = told_text(&cassette(&body, stream, 200)).stories.remove(0);
    assert_eq!((accepted.poison.len(), accepted.refused), (0, 0));
    let rejected = told_text(&cassette(&body, "no", 400)).stories.remove(0);
    assert!(!rejected.poison.is_empty() && rejected.refusal.as_deref() == Some("status 400"));
    for answer in [
        json!({"status": 200}),
        json!({"status_code": 200}),
        json!({"status": "200 OK", "code": 200}),
        json!({"choices": [{"message": {"role": "assistant", "content": "a"}}]}),
    ] {
        let story = one(&[json!({"body": body, "response": answer})]);
        assert!(story.poison.is_empty(), "{answer}");
    }
    let story = one(&[
        json!({"scope": "https://api.openai.com:443", "path": "/v1/chat/completions", "body": body, "status": 200, "response": "x"}),
    ]);
    assert!(story.poison.is_empty());
}

#[test]
fn cassettes_in_json_and_in_flow_style_are_read() {
    let url = "https://api.openai.com/v1/responses";
    let json = json!({"interactions": [{
        "request": {"method": "POST", "uri": url, "parsed_body": {"model": "gpt-4o", "input": "hi"}},
        "response": {"status": {"code": 200}, "parsed_body": {"usage": {"input_tokens": 8, "output_tokens": 2}}},
    }]});
    let flow = format!(
        "interactions:\n- request: {{method: POST, uri: '{url}', body: '{{\"model\":\"gpt-4o\",\"input\":\"hi\"}}'}}\n  \
         response: {{status: {{code: 200, message: OK}}, body: {{string: '{{\"usage\": {{\"input_tokens\": 8, \"output_tokens\": 2}}}}'}}}}\nversion: 1\n"
    );
    for text in [json.to_string(), flow] {
        let stories = told_text(&text);
        assert_eq!(stories.forms, [("VCR cassette", 1)], "{text}");
        assert_eq!(stories.stories[0].counted.input, 8, "{text}");
    }
}

/// Returns a request as a log line of the OpenAI Python SDK.
fn debug_line(body: &Value) -> String {
    let options = format!("{{'method': 'post', 'url': '/chat/completions', 'json_data': {body}}}");
    format!("DEBUG:openai._base_client:Request options: {options}\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of forms")]
fn session_files_of_agents_are_conversations() {
    let claude = [
        claude_line("user", "1", "", &user("first")),
        claude_line(
            "assistant",
            "2",
            "1",
            &claude_block("m1", &claude_call("t1"), &claude_usage(0, 20_000)),
        ),
        claude_line("user", "3", "2", &claude_result("t1")),
        claude_line(
            "assistant",
            "4",
            "2",
            &claude_block("m1", &claude_call("t2"), &claude_usage(0, 20_000)),
        ),
        claude_line("user", "5", "4", &claude_result("t2")),
        claude_line(
            "assistant",
            "6",
            "5",
            &claude_block(
                "m2",
                &json!({"type": "text", "text": "Done."}),
                &claude_usage(20_000, 500),
            ),
        ),
        claude_line("user", "7", "6", &user("second")),
        claude_line(
            "assistant",
            "8",
            "7",
            &claude_block(
                "m3",
                &json!({"type": "text", "text": "Again."}),
                &claude_usage(0, 20_600),
            ),
        ),
    ];
    let stories = told(&claude);
    assert_eq!(stories.forms, [("Claude Code session", 3)]);
    let story = &stories.stories[0];
    assert!(story.poison.is_empty() && story.breaks.is_empty());
    let missed = story.counted.missed.as_ref().expect("a miss");
    assert_eq!(
        (missed.request, missed.predicted, missed.counted),
        (3, 20_501, 0)
    );
    // A new prompt whose parent is the first answer removes everything after that answer.
    let rewound = [
        &claude[..],
        &[
            claude_line(
                "user",
                "9",
                "6",
                &json!({"role": "user", "content": "No, wait. Tell me of Rome and of its weather tomorrow, please."})),
            claude_line("assistant", "10", "9", &claude_block("m4", &json!({"type": "text", "text": "No."}), &claude_usage(0, 0))),
        ],
    ]
    .concat();
    let stories = told(&rewound).stories;
    assert_eq!(
        (stories.len(), &stories[1].origin),
        (
            2,
            &Origin::Fork {
                story: 0,
                shared: 6
            }
        )
    );

    let codex = told(&[
        json!({"type": "session_meta", "payload": {"id": "x", "base_instructions": {"text": long("codex")}}}),
        json!({"type": "turn_context", "payload": {"model": "gpt-5.5"}}),
        codex_message("user", "hello"),
        codex_message("assistant", "yes"),
        codex_tokens(3_000),
        codex_tokens(3_000),
        codex_message("user", "more"),
        codex_item(&json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAA"})),
        codex_message("assistant", "yes"),
        codex_tokens(3_100),
        json!({"type": "compacted", "payload": {"message": "Another language model started to solve this problem and produced a summary"}}),
        codex_message("user", "on"),
        codex_message("assistant", "yes"),
        codex_tokens(2_000),
    ]);
    assert_eq!(codex.forms, [("Codex CLI rollout", 3)]);
    let story = &codex.stories[0];
    assert_eq!(
        (
            story.compactions.len(),
            story.counted.answers,
            story.counted.input
        ),
        (1, 3, 8_100),
        "{story:?}"
    );
    assert!(!story.has_findings() && &*story.models[0] == "gpt-5.5");

    let gemini = json!({"sessionId": "s", "messages": [
        {"type": "user", "content": "hello"},
        {"type": "gemini", "content": "yes", "model": "gemini-3-pro", "tokens": {"input": 10, "output": 2, "cached": 0},
         "toolCalls": [{"id": "1", "name": "read", "args": {}, "result": [{"functionResponse": {"id": "1", "name": "read", "response": {"output": "x"}}}]}]},
        {"type": "gemini", "content": "done", "model": "gemini-3-pro", "tokens": {"input": 20, "output": 2, "cached": 0}},
    ]});
    let stories = told(&[gemini]);
    assert_eq!(
        (stories.forms, stories.stories[0].counted.input),
        (vec![("Gemini CLI chat", 2)], 30)
    );
    let list = Value::from(talk("cline", 3));
    assert_eq!(
        told_text(&list.to_string()).forms,
        [("list of messages", 3)]
    );
}

#[test]
fn the_last_line_of_an_answer_of_claude_code_counts() {
    let counted = |output: u64| json!({"input_tokens": 3, "cache_creation_input_tokens": 20_000, "output_tokens": output});
    let text = json!({"type": "text", "text": "I look at it."});
    let line =
        |uuid: &str, parent: &str, message: &Value| claude_line("assistant", uuid, parent, message);
    let mut lines = vec![
        claude_line("user", "1", "", &user("first")),
        line("2", "1", &claude_block("m1", &text, &counted(9))),
        line(
            "3",
            "2",
            &claude_block("m1", &claude_call("t1"), &counted(245)),
        ),
        claude_line("user", "4", "3", &claude_result("t1")),
        line("5", "4", &claude_block("m2", &text, &counted(9))),
    ];
    let story = one(&lines);
    assert_eq!((story.requests, story.counted.output), (2, 245 + 9));
    // A session that begins later and ends first is still reported second.
    let mut other = claude_line("user", "a", "", &user("another"));
    let mut answer = line("b", "a", &claude_block("m3", &text, &counted(5)));
    for line in [&mut other, &mut answer] {
        line["isSidechain"] = json!(true);
    }
    lines.insert(3, answer);
    lines.insert(3, other);
    let stories = told(&lines).stories;
    let outputs: Vec<u64> = stories.iter().map(|story| story.counted.output).collect();
    assert_eq!(outputs, [254, 5]);
}

fn claude_line(kind: &str, id: &str, parent: &str, message: &Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-11-25T10:00:00Z", "message": message})
}

fn claude_usage(read: u64, written: u64) -> Value {
    json!({"input_tokens": 1, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 9})
}

fn claude_block(id: &str, block: &Value, usage: &Value) -> Value {
    json!({"role": "assistant", "id": id, "model": "claude-sonnet-5", "content": [block], "usage": usage})
}

fn claude_call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn claude_result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "text"}]})
}

fn codex_item(payload: &Value) -> Value {
    json!({"timestamp": "2026-11-25T10:00:00Z", "type": "response_item", "payload": payload})
}

fn codex_message(role: &str, text: &str) -> Value {
    codex_item(
        &json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}),
    )
}

fn codex_tokens(input: u64) -> Value {
    json!({"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": input, "cached_input_tokens": 0, "output_tokens": 3}}}})
}

/// Returns a digest of a story that does not depend on its location in the file.
fn digest(story: &Story) -> String {
    let breaks: Vec<String> = story
        .breaks
        .iter()
        .map(|found| {
            format!(
                "{:?} {} {:?} {:?}",
                found.change, found.at, found.loss, found.request
            )
        })
        .collect();
    format!(
        "{:?} {} {} {breaks:?} {:?} {:?}",
        story.models, story.requests, story.retries, story.growth.points, story.growth.steepest
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Interleaving conversations in any order does not change their stories.
    #[test]
    fn the_order_of_interleaving_changes_no_story(order in proptest::collection::vec(0_usize..3, 0..18)) {
        let dated: Vec<Value> = (0..5).map(|turn| claude(&format!("{}Today is 2026-11-2{turn}.", long("c")), &talk("c", turn))).collect();
        let all = [grown("a", 5), grown("b", 4), dated];
        let straight: Vec<Value> = all.iter().flatten().cloned().collect();
        let mut left = all.map(std::collections::VecDeque::from);
        let mut mixed: Vec<Value> = order.iter().filter_map(|which| left[*which].pop_front()).collect();
        mixed.extend(left.into_iter().flatten());
        prop_assert_eq!(sorted(&straight), sorted(&mixed));
    }
}

fn sorted(lines: &[Value]) -> Vec<String> {
    let mut digests: Vec<String> = told(lines).stories.iter().map(digest).collect();
    digests.sort();
    digests
}

#[test]
fn a_short_system_prompt_joins_requests_too() {
    for prompt in ["Be terse.", "You are helpful.", "Answer in French."] {
        let of_claude = |turn: usize| json!({"model": "claude-sonnet-5", "max_tokens": 9, "system": prompt, "messages": talk("a", turn)});
        let of_responses = |turn: usize| json!({"model": "gpt-5", "instructions": prompt, "input": talk("a", turn)});
        assert_eq!(
            one(&[of_claude(0), of_claude(1), of_claude(2)]).requests,
            3,
            "{prompt}"
        );
        assert_eq!(
            one(&[of_responses(0), of_responses(1)]).requests,
            2,
            "{prompt}"
        );
    }
    // Another agent may get the same question.
    let asked = |prompt: &str| json!({"model": "claude-sonnet-5", "max_tokens": 9, "system": prompt, "messages": talk("a", 0)});
    let stories = told(&[asked("Be terse."), asked("Translate to French.")]).stories;
    assert_eq!(stories.len(), 2);
}

#[test]
fn a_short_prompt_that_changes_a_little_is_a_change() {
    let sent = |time: &str, turn: usize| {
        let system = format!("Be terse. It is {time}.");
        json!({"model": "claude-sonnet-5", "max_tokens": 9, "system": system, "messages": talk("a", turn)})
    };
    let story = one(&[sent("10:00:01", 0), sent("10:00:09", 1)]);
    assert_eq!(changes(&story), [("time", 2)]);
}

#[test]
fn requests_of_converse_are_not_judged_by_another_format() {
    let body = json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}], "inferenceConfig": {"maxTokens": 5}});
    let stories = told(&[body.clone(), body]);
    assert_eq!((stories.stories.len(), stories.passed_over), (0, 2));
}

#[test]
fn the_records_of_kimi_are_no_requests() {
    let stories = told(&[
        json!({"type": "turn.prompt", "input": [{"type": "text", "text": "hi"}], "origin": {"kind": "user"}, "time": 1_784_950_605_093_u64}),
        json!({"type": "turn.steer", "input": [{"type": "text", "text": "stop"}], "origin": {"kind": "user"}, "time": 1_784_950_662_523_u64}),
    ]);
    assert_eq!((stories.stories.len(), stories.passed_over), (0, 2));
}

#[test]
fn an_export_of_open_code_is_told_by_its_answers() {
    let tokens = |input: u64, read: u64| json!({"input": input, "output": 20, "reasoning": 0, "cache": {"read": read, "write": 90}});
    let info = |role: &str| json!({"role": role, "sessionID": "s", "time": {"created": 1_784_950_605_093_u64}});
    let answer = |parts: Value, tokens: Value| {
        let mut info = info("assistant");
        info["modelID"] = json!("claude-sonnet-4-5");
        info["providerID"] = json!("anthropic");
        info["tokens"] = tokens;
        json!({"info": info, "parts": parts})
    };
    let call = json!({"type": "tool", "callID": "toolu_1", "tool": "bash", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a\nb"}});
    let export = json!({"info": {"id": "ses_1", "version": "1.0.0"}, "messages": [
        {"info": info("user"), "parts": [{"type": "text", "text": "list the files of this folder, please"}]},
        answer(json!([{"type": "step-start"}, call, {"type": "step-finish", "tokens": {"input": 1, "output": 1}}]), tokens(100, 0)),
        answer(json!([{"type": "step-start"}, {"type": "text", "text": "two"}, {"type": "step-finish"}]), tokens(10, 190)),
    ]});
    let stories = told_text(&export.to_string());
    assert_eq!(stories.forms, [("OpenCode export", 2)]);
    let story = &stories.stories[0];
    assert!(!story.has_findings(), "{:?}", story.poison);
    assert_eq!(
        (story.requests, &*story.models[0]),
        (2, "claude-sonnet-4-5")
    );
    assert_eq!(
        (story.counted.input, story.counted.read),
        (100 + 90 + 10 + 190 + 90, 190)
    );
    let last = story.growth.points.last().expect("a point");
    assert!(
        last.tokens.iter().all(|tokens| *tokens < 100) && last.tokens[3] > 0,
        "{last:?}"
    );
}

#[test]
fn an_answer_that_was_aborted_is_no_answer() {
    let tokens = |input: u64, read: u64, written: u64| json!({"input": input, "output": 75, "reasoning": 25, "total": input + read + written + 100, "cache": {"read": read, "write": written}});
    let zeros = json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    let message = |role: &str, at: u64, tokens: &Value, error: Option<&str>, part: Value| {
        json!({"parts": [part], "info": {
            "role": role, "providerID": "anthropic", "modelID": "claude-sonnet-5", "time": {"created": 1_784_254_000_000 + at * 10_000},
            "tokens": tokens, "error": error.map(|name| json!({"name": name, "data": {"message": "no"}})),
        }})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let asked = |at: u64, said: &str| message("user", at, &Value::Null, None, text(said));
    let thought = json!({"type": "reasoning", "text": "hm"});
    let export = json!({"info": {"id": "ses_1"}, "messages": [
        asked(0, "hi"), message("assistant", 1, &tokens(2, 0, 11_799), None, text("yes")),
        asked(2, "more"), message("assistant", 3, &zeros, Some("MessageAbortedError"), thought.clone()),
        asked(4, "again"), message("assistant", 5, &zeros, Some("APIError"), thought),
        asked(6, "and now?"), message("assistant", 7, &tokens(3, 11_799, 100), None, text("now")),
    ]});
    let story = told_text(&export.to_string()).stories.remove(0);
    let counted = &story.counted;
    assert_eq!(
        (story.requests, counted.answers, counted.output),
        (4, 2, 200)
    );
    assert!(
        counted.missed.is_none() && counted.expired.is_none(),
        "{counted:?}"
    );
    assert_eq!((story.refused, story.refusal.as_deref()), (1, Some("no")));
}

#[test]
fn one_error_of_many_messages_is_told_once_and_where_it_began() {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let mut input = vec![said("user", "a")];
    let mut lines = vec![json!({"model": "gpt-5.6-luna", "input": input})];
    input.extend([said("assistant", "b"), said("user", "c")]);
    lines.push(json!({"model": "gpt-5.6-luna", "input": input}));
    for at in 0..4 {
        let id = format!("c{at}");
        input.extend([
            json!({"type": "function_call", "name": "no name", "call_id": id, "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": id, "output": "done"}),
        ]);
    }
    lines.push(json!({"model": "gpt-5.6-luna", "input": input}));
    let story = one(&lines);
    let found: Vec<_> = story
        .poison
        .iter()
        .map(|poison| (poison.at.as_str(), poison.also, poison.place.line))
        .collect();
    assert_eq!(found, [("input[3]", 3, 3)]);
}

#[test]
fn what_an_answer_follows_in_a_session_file_was_accepted() {
    let call = json!({"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a"}});
    let said = |role: &str, block: Value| json!({"role": role, "content": [block], "ts": 1_777_073_160_794_u64});
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut messages = vec![
        said("user", text("go")),
        said("assistant", call),
        said("user", text("[read_file for a] Result: 1")),
        said("assistant", text("done")),
    ];
    let told_list = |messages: &[Value]| {
        told_text(&Value::from(messages).to_string())
            .stories
            .remove(0)
    };
    assert_eq!(told_list(&messages).poison.len(), 0);
    for (at, provider, tokens) in [
        (
            1,
            "openai",
            json!({"prompt": 10_049, "completion": 64, "cached": 0}),
        ),
        (
            3,
            "anthropic",
            json!({"prompt": 15, "completion": 22, "cached": 13_100}),
        ),
    ] {
        messages[at]["metrics"] = json!({"tokens": tokens});
        messages[at]["modelInfo"] =
            json!({"modelId": "claude-opus-4-5", "providerId": provider, "mode": "act"});
    }
    let story = told_list(&messages);
    assert_eq!(
        (story.poison.len(), &*story.models[0]),
        (0, "claude-opus-4-5")
    );
    let counted = &story.counted;
    assert_eq!(
        (counted.input, counted.output, counted.told),
        (10_049 + 13_115, 86, 1)
    );
    assert!(counted.missed.is_none(), "{counted:?}");
}

#[test]
fn the_results_of_swe_agent_name_their_calls_in_a_list() {
    let message = json!({"role": "tool", "content": "ok", "agent": "main", "tool_call_ids": ["c"]});
    let expected = json!({"role": "tool", "content": "ok", "tool_call_id": "c"});
    assert_eq!(transcript::without_notes(&message), expected);
    let call =
        json!([{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]);
    let history = json!([
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "x", "tool_calls": call}, message,
        {"role": "assistant", "content": "bye"},
    ]);
    let story = one(&[json!({"history": history, "info": {}})]);
    assert_eq!((story.requests, story.poison.len()), (2, 0));
}

#[test]
fn a_message_that_only_failed_requests_follow_poisons_a_session_file() {
    let answer = claude_block(
        "m1",
        &json!({"type": "text", "text": "Yes."}),
        &claude_usage(0, 20_000),
    );
    let empty =
        json!({"role": "user", "content": [{"type": "text", "text": ""}], "note": "of the agent"});
    let mut lines = vec![
        claude_line("user", "1", "", &user("first")),
        claude_line("assistant", "2", "1", &answer),
        claude_line("user", "3", "2", &empty),
    ];
    assert_eq!(one(&lines).poison.len(), 0);
    for uuid in ["4", "5"] {
        let text = json!({"type": "text", "text": "API Error: 400"});
        let mut line = claude_line(
            "assistant",
            uuid,
            "3",
            &json!({"role": "assistant", "content": [text]}),
        );
        line["isApiErrorMessage"] = json!(true);
        lines.push(line);
    }
    let story = one(&lines);
    let found: Vec<_> = story
        .poison
        .iter()
        .map(|poison| (poison.at.as_str(), poison.request))
        .collect();
    assert_eq!(found, [("messages[2]", 2)]);
}

#[test]
fn answers_that_the_agent_wrote_itself_are_no_requests() {
    let line = |kind: &str, uuid: &str, message: Value| json!({"type": kind, "uuid": uuid, "parentUuid": null, "sessionId": "s", "message": message});
    let stories = told(&[
        line("user", "a", json!({"role": "user", "content": "hi"})),
        line(
            "assistant",
            "b",
            json!({"id": "m", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}),
        ),
    ]);
    assert_eq!(stories.stories.len(), 0);
}
