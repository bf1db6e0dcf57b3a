use proptest::prelude::*;

use super::*;

fn call(id: &str) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: "t".into(),
        input: serde_json::json!({}),
    }
}

fn result(id: &str) -> Block {
    Block::ToolResult {
        id: id.into(),
        content: "".into(),
        is_error: false,
        images: vec![],
    }
}

fn text(text: &str) -> Block {
    Block::Text(text.into())
}

fn thinking(signature: &str, origin: Option<&str>) -> Block {
    Block::Thinking {
        text: "t".into(),
        signature: signature.into(),
        origin: origin.map(Into::into),
    }
}

fn message(role: Role, blocks: Vec<Block>) -> Message {
    Message {
        role,
        blocks,
        item: None,
    }
}

fn user(blocks: Vec<Block>) -> Message {
    message(Role::User, blocks)
}

fn assistant(blocks: Vec<Block>) -> Message {
    message(Role::Assistant, blocks)
}

fn item(text: &str) -> Message {
    Message {
        role: Role::System,
        blocks: vec![Block::Text(text.into())],
        item: Some(crate::conversation::ItemKind::Notification),
    }
}

/// Returns an abbreviated normal form for any target: the role and blocks of each message, and the
/// reported changes.
fn shown(history: &[Message]) -> (Vec<String>, Vec<String>) {
    shown_for(history, &NormalFormRules::default())
}

fn shown_for(history: &[Message], rules: &NormalFormRules) -> (Vec<String>, Vec<String>) {
    let normal = normalise(history, rules);
    (
        normal
            .history
            .iter()
            .map(|message| {
                let blocks: Vec<String> = message
                    .blocks
                    .iter()
                    .map(|block| match block {
                        Block::Text(text) => format!("{text:?}"),
                        Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                            "thinking".to_owned()
                        }
                        Block::ToolUse { id, .. } => format!("call {id}"),
                        Block::ToolResult {
                            id,
                            is_error: true,
                            content,
                            ..
                        } => format!("error {id} {content:?}"),
                        Block::ToolResult { id, .. } => format!("result {id}"),
                        Block::Image(_) => "image".to_owned(),
                        Block::Document(_) => "document".to_owned(),
                        Block::Audio(_) => "audio".to_owned(),
                        Block::Stored(_) => "stored".to_owned(),
                        Block::Provider(own) => {
                            format!("own {}", own.data["type"].as_str().unwrap_or_default())
                        }
                    })
                    .collect();
                format!("{}: {}", message.role.name(), blocks.join(", "))
            })
            .collect(),
        normal
            .changes
            .iter()
            .map(|change| format!("{}: {}", change.message(), change.describe()))
            .collect(),
    )
}

#[test]
fn unpaired_halves_go_and_the_last_round_stays() {
    let history = [
        user(vec![text("q"), result("none")]),
        assistant(vec![call("a"), call("b")]),
        user(vec![result("a")]),
        assistant(vec![call("c")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "user: \"q\"",
            "assistant: call a",
            "user: result a",
            "assistant: call c"
        ]
    );
    assert_eq!(
        told,
        [
            "0: the tool result for `none` has no matching call before it",
            "1: the tool call `b` has no result"
        ]
    );
    let rules = NormalFormRules {
        drops_open_calls: true,
        ..NormalFormRules::default()
    };
    let (normal, told) = shown_for(&history, &rules);
    assert_eq!(
        normal,
        ["user: \"q\"", "assistant: call a", "user: result a"]
    );
    assert_eq!(
        told[2..],
        [
            "3: the tool call `c` has no result",
            "3: a message without content"
        ]
    );
}

#[test]
fn results_move_right_behind_their_calls_and_items_behind_the_results() {
    let history = [
        assistant(vec![call("a"), call("b")]),
        item("built"),
        user(vec![result("b")]),
        item("again"),
        user(vec![text("first"), result("a"), text("second")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "assistant: call a, call b",
            "user: result b, result a",
            "system: \"built\"",
            "system: \"again\"",
            "user: \"first\", \"second\""
        ]
    );
    let apart = |at, id| {
        format!(
            "{at}: the tool result for `{id}` is not at the start of the user message after its call"
        )
    };
    assert_eq!(told, [apart(2, "b"), apart(4, "a")]);
}

#[test]
fn results_of_a_system_message_are_moved_to_a_user_message() {
    let result_alone = [
        assistant(vec![call("a")]),
        message(Role::System, vec![result("a")]),
    ];
    let result_and_text = [
        assistant(vec![call("a")]),
        message(Role::System, vec![result("a"), text("built")]),
    ];
    let moved =
        ["1: the tool result for `a` is not at the start of the user message after its call"];

    let (normal, told) = shown(&result_alone);
    assert_eq!(normal, ["assistant: call a", "user: result a"]);
    assert_eq!(told, moved);

    let (normal, told) = shown(&result_and_text);
    assert_eq!(
        normal,
        ["assistant: call a", "user: result a", "system: \"built\""]
    );
    assert_eq!(told, moved);
}

#[test]
fn results_over_several_messages_are_put_together() {
    let history = [
        assistant(vec![call("a"), call("b")]),
        user(vec![result("a")]),
        user(vec![result("b"), text("and?")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "assistant: call a, call b",
            "user: result a, result b, \"and?\""
        ]
    );
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_turn_may_be_several_messages() {
    let history = [
        assistant(vec![call("a")]),
        assistant(vec![text("and"), call("b")]),
        user(vec![result("b"), result("a")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "assistant: call a",
            "user: result a",
            "assistant: \"and\", call b",
            "user: result b"
        ]
    );
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn ids_are_made_unique_and_second_results_go() {
    let history = [
        assistant(vec![call("a"), call("a")]),
        user(vec![result("a"), result("a"), result("a")]),
        assistant(vec![call("a"), call("a_2")]),
        user(vec![result("a_2"), result("a")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "assistant: call a, call a_2",
            "user: result a, result a_2",
            "assistant: call a_3, call a_2_2",
            "user: result a_2_2, result a_3"
        ]
    );
    assert_eq!(
        told,
        [
            "0: an earlier tool call also has the id `a`",
            "1: the tool call `a` already has a result",
            "2: an earlier tool call also has the id `a`",
            "2: an earlier tool call also has the id `a_2`"
        ]
    );
}

#[test]
fn a_call_without_an_id_gets_one() {
    let history = [
        assistant(vec![call(""), call("call_1"), call("")]),
        user(vec![result(""), result("call_1"), result("")]),
        user(vec![text("go on")]),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(
        normal,
        [
            "assistant: call call_1, call call_1_2, call call_2",
            "user: result call_1, result call_1_2, result call_2",
            "user: \"go on\""
        ]
    );
    assert_eq!(told[0], "0: a tool call has no id");
}

#[test]
fn an_error_says_something() {
    let (normal, told) = shown(&[assistant(vec![call("a")]), user(vec![error(" \n")])]);
    assert_eq!(
        normal[1],
        "user: error a \"The tool failed without a message.\""
    );
    assert_eq!(told, ["1: the error result for `a` has no text"]);
    assert!(
        shown(&[assistant(vec![call("a")]), user(vec![error("no")])])
            .1
            .is_empty()
    );
}

fn error(content: &str) -> Block {
    Block::ToolResult {
        id: "a".into(),
        content: content.into(),
        is_error: true,
        images: vec![],
    }
}

#[test]
fn messages_that_say_nothing_go() {
    let history = [
        user(vec![text("q")]),
        assistant(vec![thinking("s", None), text(" ")]),
        user(vec![text("")]),
        item("\n"),
    ];
    let (normal, told) = shown(&history);
    assert_eq!(normal, ["user: \"q\""]);
    assert_eq!(
        told,
        [
            "1: thinking without content after it",
            "2: a message without content",
            "3: a message without content"
        ]
    );
}

#[test]
fn thinking_between_calls_stays() {
    let history = [
        user(vec![text("q")]),
        assistant(vec![thinking("s", None), call("a")]),
        user(vec![result("a")]),
        assistant(vec![thinking("s", None), call("b")]),
        user(vec![result("b")]),
        assistant(vec![
            thinking("s", None),
            text("so"),
            thinking("s", None),
            call("c"),
        ]),
    ];
    let normal = normalise(
        &history,
        &NormalFormRules {
            needs_end: true,
            ..NormalFormRules::default()
        },
    );
    assert_eq!(
        (normal.history.as_slice(), normal.changes.as_slice()),
        (history.as_slice(), [].as_slice())
    );
}

#[test]
fn thinking_at_the_end_of_a_turn_goes_where_something_must_follow() {
    let history = [
        user(vec![text("q")]),
        assistant(vec![thinking("s", None), text("so"), thinking("s", None)]),
        user(vec![text("q")]),
        assistant(vec![thinking("s", None)]),
        assistant(vec![text("so")]),
    ];
    assert_eq!(shown(&history).1, [""; 0]);
    let (normal, told) = shown_for(
        &history,
        &NormalFormRules {
            needs_end: true,
            ..NormalFormRules::default()
        },
    );
    assert_eq!(normal[1], "assistant: thinking, \"so\"");
    assert_eq!(
        (normal.len(), told),
        (5, vec!["1: thinking without content after it".to_owned()])
    );
}

#[test]
fn thinking_must_be_signed_and_of_the_same_origin() {
    let blocks = vec![
        thinking("s", Some("Claude")),
        thinking("s", Some("Google AI")),
        thinking("", None),
        thinking("s", None),
        text("so"),
    ];
    let history = [assistant(blocks)];
    let rules = NormalFormRules {
        origin: Some("Claude".into()),
        needs_signature: true,
        ..NormalFormRules::default()
    };
    let normal = normalise(&history, &rules);
    assert_eq!(normal.history[0].blocks.len(), 3);
    assert_eq!(normalise(&history, &NormalFormRules::default()).changes, []);
}

/// Returns a provider-specific Claude block.
fn own(kind: &str, id: &str, text: Option<&str>) -> Block {
    let key = if kind.ends_with("_result") {
        "tool_use_id"
    } else {
        "id"
    };
    Block::Provider(crate::conversation::ProviderBlock {
        origin: "Claude".into(),
        data: serde_json::json!({"type": kind, key: id}),
        text: text.map(Into::into),
    })
}

/// Returns the rules of the client API with this name.
fn rules_of(api: &str) -> NormalFormRules {
    let api = crate::provider::ClientApi::from_name(api).expect("a client API");
    api.chat_wire().normal_form(api.name())
}

#[test]
fn own_blocks_go_back_to_their_origin_and_their_text_elsewhere() {
    let history = [
        user(vec![text("q")]),
        assistant(vec![
            own("server_tool_use", "s", None),
            own("web_search_tool_result", "s", None),
            own("text", "", Some("cited")),
        ]),
        user(vec![text("q")]),
    ];
    let (normal, told) = shown_for(&history, &rules_of("Claude"));
    assert_eq!(
        normal[1],
        "assistant: own server_tool_use, own web_search_tool_result, own text"
    );
    assert_eq!(told, [""; 0]);
    let (normal, told) = shown_for(&history, &rules_of("Google AI"));
    assert_eq!(
        (normal[1].as_str(), told.len()),
        ("assistant: \"cited\"", 3)
    );
    assert_eq!(shown(&history).1, [""; 0]);
}

#[test]
fn a_servers_own_call_needs_its_result_unless_the_turn_goes_on() {
    let rules = rules_of("Claude");
    let paused = [user(vec![text("q")]), assistant(turn())];
    assert_eq!(shown_for(&paused, &rules).1, [""; 0]);
    let mut with_call = turn();
    with_call.push(call("a"));
    let in_between = [
        user(vec![text("q")]),
        assistant(with_call),
        user(vec![result("a")]),
    ];
    assert_eq!(shown_for(&in_between, &rules).1, [""; 0]);
    let later = [
        &in_between[..],
        &[assistant(vec![
            own("code_execution_tool_result", "s", None),
            text("so"),
        ])],
    ]
    .concat();
    assert_eq!(shown_for(&later, &rules).1, [""; 0]);
    let cut_off = [
        user(vec![text("q")]),
        assistant(turn()),
        user(vec![text("go on")]),
    ];
    let (normal, told) = shown_for(&cut_off, &rules);
    assert_eq!(normal[1], "assistant: \"so\"");
    assert_eq!(
        told,
        ["1: a call to a provider tool without its result, or a result without its call"]
    );
}

fn turn() -> Vec<Block> {
    vec![text("so"), own("server_tool_use", "s", None)]
}

/// Content that was sent in the middle of a turn is kept even if its result never arrives. Only an
/// error is added, at a location that no earlier request contained.
#[test]
fn a_servers_own_call_that_was_sent_stays_and_gets_an_error() {
    let rules = rules_of("Claude");
    let asked = [
        user(vec![text("q")]),
        assistant(vec![search("s"), call("a")]),
        user(vec![result("a")]),
    ];
    let answered = [
        &asked[..],
        &[assistant(vec![thinks(), text("so")]), user(vec![text("q")])],
    ]
    .concat();
    let (normal, told) = shown_for(&answered, &rules);
    let expected = [
        "user: \"q\"",
        "assistant: own server_tool_use, call a",
        "user: result a",
        "assistant: own web_search_tool_result, thinking, \"so\"",
        "user: \"q\"",
    ];
    assert_eq!(
        (normal, told.len()),
        (expected.map(str::to_owned).to_vec(), 1)
    );
    let once = normalise(&answered, &rules).history;
    assert_eq!(normalise(&once, &rules).changes, []);
    let cut_off = [&asked[..], &[user(vec![text("go on")])]].concat();
    let (normal, _) = shown_for(&cut_off, &rules);
    assert_eq!(normal[..3], expected[..3]);
    assert_eq!(
        normal[3..],
        ["assistant: own web_search_tool_result", "user: \"go on\""]
    );
    let unknown = [
        user(vec![text("q")]),
        assistant(vec![own("server_tool_use", "s", None), call("a")]),
    ];
    let unknown = [&unknown[..], &answered[2..]].concat();
    assert_eq!(shown_for(&unknown, &rules).0[1], "assistant: call a");
}

fn search(id: &str) -> Block {
    let data =
        serde_json::json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
    Block::Provider(crate::conversation::ProviderBlock {
        origin: "Claude".into(),
        data,
        text: None,
    })
}

fn thinks() -> Block {
    thinking("s", Some("Claude"))
}

#[test]
fn a_call_of_a_custom_tool_is_answered_as_any_other() {
    let call = Block::Provider(crate::conversation::ProviderBlock {
        origin: "OpenAI (Chat Completions)".into(),
        data: serde_json::json!({"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}),
        text: None,
    });
    let history = [
        user(vec![text("q")]),
        assistant(vec![call]),
        user(vec![result("c"), text("go on")]),
    ];
    let (normal, told) = shown_for(&history, &rules_of("OpenAI (Chat Completions)"));
    assert_eq!(
        normal[1..],
        ["assistant: own custom", "user: result c, \"go on\""]
    );
    assert_eq!(told, [""; 0]);
    assert_eq!(shown(&history).1, [""; 0]);
    let (normal, _) = shown_for(&history, &rules_of("Claude"));
    assert_eq!(normal, ["user: \"q\"", "user: \"go on\""]);
}

#[test]
fn a_name_that_the_target_refuses_is_another_one_always_the_same() {
    assert_eq!(named("read_file", "Claude"), ("read_file".to_owned(), 0));
    assert_eq!(named("a.b", "Google AI"), ("a.b".to_owned(), 0));
    assert_eq!(named("a.b", "Ollama (Native)"), ("a.b".to_owned(), 0));
    let (other, changes) = named("a.b", "Claude");
    assert!(
        other.starts_with("a_b_") && other.len() == 13 && changes == 1,
        "{other}"
    );
    assert_eq!(named("a.b", "Mistral AI").0, other);
    assert_eq!(named("a.b", "Codestral").0, other);
    assert_ne!(named("a b", "Claude").0, other);
    assert_eq!(
        named(&"x".repeat(65), "OpenAI (Chat Completions)").0.len(),
        64
    );
    assert!(named("1", "Google AI").0.starts_with("__"));
    for api in ["Claude", "Ollama (Native)"] {
        assert!(named("", api).0.starts_with('_'), "{api}");
    }
    assert!(depends_on_target(&[
        assistant(vec![call_of("a", "a.b")]),
        user(vec![result("a")])
    ]));
}

fn call_of(id: &str, name: &str) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: name.into(),
        input: serde_json::json!({}),
    }
}

fn named(name: &str, api: &str) -> (String, usize) {
    let history = [assistant(vec![call_of("a", name)]), user(vec![result("a")])];
    let normal = normalise(&history, &rules_of(api));
    let Block::ToolUse { name, .. } = &normal.history[0].blocks[0] else {
        panic!("a call")
    };
    (name.to_string(), normal.changes.len())
}

/// Twice as many messages take about twice as long. Quadratic work would take minutes.
#[test]
fn long_runs_are_linear() {
    let mut history = vec![assistant(
        (0..50_000).map(|id| call(&id.to_string())).collect(),
    )];
    history.push(user(
        (0..50_000).map(|id| result(&id.to_string())).collect(),
    ));
    history.extend((0..50_000).map(|_| user(vec![text("x")])));
    let normal = normalise(&history, &NormalFormRules::default());
    assert_eq!(
        (normal.history.len(), normal.changes.len()),
        (history.len(), 0)
    );
    history.splice(
        1..2,
        (0..50_000).map(|id| user(vec![result(&id.to_string())])),
    );
    let normal = normalise(&history, &NormalFormRules::default());
    assert_eq!(
        (normal.history.len(), normal.changes.len()),
        (50_002, 49_999)
    );
    history.splice(0..1, (0..50_000).map(|_| assistant(vec![call("0")])));
    assert_eq!(
        normalise(&history, &NormalFormRules::default())
            .history
            .len(),
        50_002
    );
    for id in ["", "0"] {
        let calls = assistant((0..50_000).map(|_| call(id)).collect());
        let results = user((0..50_000).map(|_| result(id)).collect());
        assert_eq!(
            normalise(&[calls, results], &NormalFormRules::default()).history[1]
                .blocks
                .len(),
            50_000
        );
    }
}

fn histories() -> impl Strategy<Value = Vec<Message>> {
    let block = (0..6u8, 0..3u8).prop_map(|(kind, id)| match kind {
        0 => text("x"),
        1 => text(" "),
        2 => thinking("s", None),
        3 | 4 => call(["", "1", "call_1"][usize::from(id)]),
        _ => result(["", "1", "call_1"][usize::from(id)]),
    });
    let message = (0..3u8, prop::collection::vec(block, 0..4)).prop_map(|(role, blocks)| {
        let role = [Role::User, Role::Assistant, Role::System][role as usize];
        message(role, blocks)
    });
    prop::collection::vec(message, 0..7)
}

fn rules() -> impl Strategy<Value = NormalFormRules> {
    any::<(bool, bool)>().prop_map(|(needs_end, drops_open_calls)| NormalFormRules {
        needs_end,
        drops_open_calls,
        ..NormalFormRules::default()
    })
}

/// Returns `true` if each call has its result directly in the next message, except for calls in the
/// last message.
fn is_paired(history: &[Message]) -> bool {
    history.iter().enumerate().all(|(at, message)| {
        let mut calls = ids(message, Block::call_id);
        let Some(next) = history.get(at + 1) else {
            return true;
        };
        let leading = next
            .blocks
            .iter()
            .take_while(|block| block.result_id().is_some())
            .count();
        let mut results = ids(next, Block::result_id);
        let all_lead = results.len() == leading;
        calls.sort();
        results.sort();
        calls == results && all_lead
    })
}

fn ids(message: &Message, id: fn(&Block) -> Option<&Arc<str>>) -> Vec<Arc<str>> {
    message.blocks.iter().filter_map(id).cloned().collect()
}

proptest! {
    #[test]
    fn normal_form_is_a_fixed_point(history in histories(), rules in rules()) {
        let once = normalise(&history, &rules);
        let twice = normalise(&once.history, &rules);
        prop_assert_eq!(&twice.history, &once.history);
        prop_assert_eq!(twice.changes, vec![]);
    }

    #[test]
    fn no_change_is_kept_quiet(history in histories(), rules in rules()) {
        let normal = normalise(&history, &rules);
        prop_assert_eq!(normal.changes.is_empty(), normal.history == history);
    }

    #[test]
    fn calls_and_results_are_next_to_each_other(history in histories(), rules in rules()) {
        let normal = normalise(&history, &rules);
        prop_assert!(is_paired(&normal.history), "{:?}", normal.history);
        let ids: Vec<_> = normal.history.iter().flat_map(|message| &message.blocks).filter_map(Block::call_id).collect();
        let unique: std::collections::HashSet<_> = ids.iter().collect();
        prop_assert_eq!(unique.len(), ids.len());
    }

    #[test]
    fn text_is_never_lost_and_stays_in_order(history in histories(), rules in rules()) {
        let normal = normalise(&history, &rules);
        for role in [Role::User, Role::Assistant] {
            prop_assert_eq!(texts(&history, role), texts(&normal.history, role));
        }
    }

    /// If messages are added to an answered history, what was rendered before is unchanged.
    #[test]
    fn a_history_that_grows_keeps_its_beginning(history in histories(), more in histories()) {
        let rules = NormalFormRules { needs_end: true, drops_open_calls: true, ..NormalFormRules::default() };
        let asked = [history, vec![user(vec![text("x")])]].concat();
        let before = normalise(&asked, &rules).history;
        let grown = [asked, vec![assistant(vec![text("x")])], more].concat();
        let after = normalise(&grown, &rules).history;
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }
}

fn texts(history: &[Message], role: Role) -> String {
    let said = history
        .iter()
        .filter(|message| (message.role == Role::Assistant) == (role == Role::Assistant));
    said.flat_map(|message| &message.blocks)
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.trim()),
            _ => None,
        })
        .collect()
}
