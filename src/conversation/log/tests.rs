use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::conversation::{
    Audio, Document, DocumentSource, Image, ItemKind, PodEvent, ProviderBlock,
};

fn user(text: &str) -> Entry {
    Entry::Message(Message {
        role: Role::User,
        blocks: vec![Block::Text(text.into())],
        item: None,
    })
}

fn answer(blocks: Vec<Block>) -> Entry {
    Entry::Message(Message {
        role: Role::Assistant,
        blocks,
        item: None,
    })
}

fn problem(lines: &str) -> (usize, String) {
    let error = Log::parse(lines.as_bytes()).expect_err(lines);
    (error.line, error.message)
}

const HEADER: &str = "{\"kind\":\"session\",\"version\":1,\"agent\":\"A\"}\n";

#[test]
fn a_log_tells_agent_history_and_usage() {
    let mut log = Log::new("A");
    assert_eq!(log.to_text(), HEADER);
    log.append(user("one"));
    log.append(Entry::Item(Item::Interrupt {
        text: "stop\u{2028}\u{7}\n".into(),
        reason: None,
    }));
    log.append(Entry::Retract { messages: 9 });
    log.append(user("two"));
    log.append(Entry::Usage(Usage {
        input: 3,
        output: u64::MAX,
        ..Usage::default()
    }));
    log.append(Entry::Usage(Usage {
        input: 4,
        output: 1,
        ..Usage::default()
    }));
    assert_eq!(
        log.history(),
        [Message {
            role: Role::User,
            blocks: vec![Block::Text("two".into())],
            item: None
        }]
    );
    assert_eq!(
        (log.agent(), log.usage().input, log.usage().output),
        ("A", 7, u64::MAX)
    );
    let loaded = Log::parse(log.to_text().as_bytes()).expect("it was written here");
    assert_eq!(
        loaded,
        Loaded {
            log: Some(log),
            tail_bytes: 0
        }
    );
}

#[test]
fn results_that_come_one_by_one_are_one_message_in_the_order_of_the_calls() {
    let mut log = Log::new("A");
    log.append(answer(vec![tool_call("a"), tool_call("b"), tool_call("c")]));
    for id in ["c", "a"] {
        log.append(Entry::ToolResult(tool_result(id)));
        log.append(Entry::Usage(Usage::default()));
    }
    assert_eq!(
        log.history()[1].blocks,
        [tool_result("a"), tool_result("c")]
    );
    assert_eq!(
        (log.open_calls(), log.is_interrupted()),
        (vec![&tool_call("b")], true)
    );
    log.append(Entry::ToolResult(tool_result("b")));
    assert_eq!(
        (log.history()[1].blocks.len(), log.open_calls().len()),
        (3, 0)
    );
    log.append(user("next"));
    log.append(Entry::ToolResult(tool_result("x")));
    assert_eq!(log.history().len(), 4, "a message parts them");
}

fn tool_call(id: &str) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: "t".into(),
        input: json!({}),
    }
}

fn tool_result(id: &str) -> Block {
    Block::ToolResult {
        id: id.into(),
        content: "".into(),
        is_error: false,
        images: vec![],
    }
}

#[test]
fn an_answer_that_was_cut_off_is_marked_until_it_is_taken_back() {
    let mut log = Log::new("A");
    let Entry::Message(message) = answer(vec![Block::Text("half".into())]) else {
        unreachable!()
    };
    let line = log
        .append(Entry::Partial {
            message,
            cut_off: CutOff::Broken,
        })
        .to_owned();
    assert!(
        line.ends_with(",\"cut_off\":\"broken\",\"line\":2}\n"),
        "{line}"
    );
    assert_eq!(
        (log.cut_off(), log.is_interrupted()),
        (Some(CutOff::Broken), true)
    );
    log.append(Entry::Item(Item::cut_off(CutOff::Broken)));
    assert_eq!(
        (log.cut_off(), log.is_interrupted()),
        (Some(CutOff::Broken), false),
        "it is told"
    );
    log.append(Entry::Retract { messages: 2 });
    log.append(answer(vec![Block::Text("whole".into())]));
    assert_eq!((log.cut_off(), log.is_interrupted()), (None, false));
    assert!(
        problem(&format!("{HEADER}{}", line.replace("broken", "lost")))
            .1
            .contains("`lost` is not a valid value")
    );
}

#[test]
fn unknown_keys_and_spaces_survive() {
    let text = format!(
        "{}{} {{ \"kind\" : \"notification\",\"text\":\"\\u0041\",\"seen\":1.50 }}\r\n",
        HEADER.replace("}\n", ",\"x\":[]}\n"),
        "{\"kind\":\"usage\",\"input\":1,\"cost\":0.10}\n"
    );
    let log = Log::parse(text.as_bytes())
        .expect("valid")
        .log
        .expect("a header");
    assert_eq!(log.to_text(), text);
    assert_eq!(log.history()[0].blocks, [Block::Text("A".into())]);
    assert_eq!(log.history()[0].item, Some(ItemKind::Notification));
}

#[test]
fn a_byte_order_mark_is_kept_and_does_not_count() {
    let text = format!("\u{feff}{HEADER}");
    let log = Log::parse(text.as_bytes())
        .expect("valid")
        .log
        .expect("a header");
    assert_eq!((log.agent(), log.to_text().as_str()), ("A", text.as_str()));
    assert_eq!(problem(&format!("{HEADER}\u{feff}{{}}\n")).0, 2);
}

#[test]
fn an_unterminated_tail_is_counted_and_ignored() {
    let never_began = Log::parse(b"{\"kind\":\"session\",\"version\":1,\"agent\":\"A\"}")
        .expect("no complete line");
    assert_eq!((never_began.log, never_began.tail_bytes), (None, 42));
    let text = format!("{HEADER}{{\"kind\":\"message\"\u{e9}");
    let cut_in_a_character = &text.as_bytes()[..text.len() - 1];
    let loaded = Log::parse(cut_in_a_character).expect("the tail does not count");
    assert_eq!(loaded.tail_bytes, cut_in_a_character.len() - HEADER.len());
}

#[test]
fn a_corrupt_line_is_named() {
    let said = |line: &str| problem(&format!("{HEADER}{line}\n"));
    let blank = "the line is blank: every line of a log must be an object";
    assert_eq!(
        (problem("\n"), said(" \r")),
        ((1, blank.into()), (2, blank.into()))
    );
    assert_eq!(
        problem("{\"kind\":\"usage\"}\n"),
        (1, "a log must begin with a line of kind `session`".into())
    );
    assert!(
        problem("{\"kind\":\"session\",\"version\":2,\"agent\":\"A\"}\n")
            .1
            .contains("upgrade")
    );
    assert_eq!(
        said("{\"kind\":\"message\",\"role\":\"user\"}"),
        (2, "`content` is missing".into())
    );
    assert_eq!(
        said("{\"kind\":\"mesage\"}"),
        (2, "`mesage` is not a kind of line".into())
    );
    assert_eq!(
        said("{\"kind\":\"usage\",\"input\":-1}"),
        (2, "`input` is not a count".into())
    );
    assert_eq!(
        said("{\"kind\":\"retract\",\"messages\":1}"),
        (2, "1 messages are removed, but there are only 0".into())
    );
    assert_eq!(
        said(HEADER.trim()),
        (2, "the session begins a second time".into())
    );
    assert!(
        said("{\"kind\":\"message\"")
            .1
            .starts_with("not JSON at column 1: this `{` is never closed")
    );
    assert_eq!(said("[]"), (2, "the line is not an object".into()));
    let bytes = [HEADER.as_bytes(), b"{\"\xff\"}\n"].concat();
    assert_eq!(
        Log::parse(&bytes).expect_err("no text").message,
        "byte 3 is not UTF-8"
    );
}

#[test]
fn who_waits_is_known() {
    let mut log = Log::new("A");
    assert!(!log.is_interrupted());
    log.append(user("do it"));
    assert!(log.is_interrupted());
    let call = Block::ToolUse {
        id: "1".into(),
        name: "t".into(),
        input: json!({}),
    };
    log.append(answer(vec![Block::Text("so".into()), call]));
    assert!(log.is_interrupted());
    let result = Block::ToolResult {
        id: "1".into(),
        content: "".into(),
        is_error: false,
        images: vec![],
    };
    log.append(Entry::Message(Message {
        role: Role::User,
        blocks: vec![result],
        item: None,
    }));
    assert!(log.is_interrupted());
    log.append(answer(vec![Block::Text("done".into())]));
    log.append(Entry::Item(Item::Notification {
        text: "n".into(),
        title: None,
        source: None,
    }));
    assert!(!log.is_interrupted());
}

#[test]
fn deep_arguments_stay_readable() {
    for levels in [1, 95, 99, 100, 120, 126] {
        let input: Value = serde_json::from_str(&format!(
            "{}1{}",
            "{\"a\":".repeat(levels),
            "}".repeat(levels)
        ))
        .expect("within serde_json's limit");
        let mut log = Log::new("A");
        log.append(answer(vec![Block::ToolUse {
            id: "1".into(),
            name: "t".into(),
            input,
        }]));
        let loaded = Log::parse(log.to_text().as_bytes())
            .unwrap_or_else(|error| panic!("{levels}: {error}"));
        assert_eq!(loaded.log, Some(log));
    }
}

fn text() -> impl Strategy<Value = Arc<str>> {
    let hostile = prop::sample::select(vec![
        "",
        "\u{2028}\n\r\u{0}\u{7f}\u{85}",
        "\"\\},]{{ }}",
        "\u{1f600}\u{202e}",
    ]);
    prop_oneof![
        hostile.prop_map(Arc::from),
        any::<String>().prop_map(Arc::from)
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Document> {
    let source = prop::sample::select(DocumentSource::ALL.to_vec());
    (source, text(), text(), prop::option::of(text())).prop_map(
        |(source, data, media_type, title)| Document {
            source,
            data,
            media_type,
            title,
        },
    )
}

fn image() -> impl Strategy<Value = Image> {
    (text(), text(), any::<bool>()).prop_map(|(data, media_type, is_url)| Image {
        data,
        media_type,
        is_url,
    })
}

fn block() -> impl Strategy<Value = Block> {
    let origin = || prop::option::of(text());
    prop_oneof![
        text().prop_map(Block::Text),
        (text(), text(), origin()).prop_map(|(text, signature, origin)| Block::Thinking {
            text,
            signature,
            origin
        }),
        (text(), origin()).prop_map(|(data, origin)| Block::RedactedThinking { data, origin }),
        (
            text(),
            text(),
            prop::collection::btree_map(any::<String>(), value(), 0..3)
        )
            .prop_map(|(id, name, input)| {
                Block::ToolUse {
                    id,
                    name,
                    input: Value::Object(input.into_iter().collect::<Map<_, _>>()),
                }
            }),
        result(),
        image().prop_map(Block::Image),
        document().prop_map(Block::Document),
        (text(), text()).prop_map(|(data, media_type)| Block::Audio(Audio { data, media_type })),
        (text(), any::<u64>(), origin()).prop_map(|(origin, number, text)| {
            Block::Provider(ProviderBlock {
                origin,
                data: json!({"type": "x", "b": [number, null]}),
                text,
            })
        }),
    ]
}

fn result() -> impl Strategy<Value = Block> {
    (
        text(),
        text(),
        any::<bool>(),
        prop::collection::vec(image(), 0..3),
    )
        .prop_map(|(id, content, is_error, images)| Block::ToolResult {
            id,
            content,
            is_error,
            images,
        })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::User, Role::Assistant, Role::System]);
    let item = prop::option::of(prop::sample::select(ItemKind::ALL.to_vec()));
    (role, prop::collection::vec(block(), 0..4), item).prop_map(|(role, blocks, item)| Message {
        role,
        blocks,
        item,
    })
}

fn item() -> impl Strategy<Value = Item> {
    let maybe = || prop::option::of(text());
    let event = prop::sample::select(PodEvent::ALL.to_vec());
    prop_oneof![
        (text(), maybe(), maybe()).prop_map(|(text, title, source)| Item::Notification {
            text,
            title,
            source
        }),
        (text(), text(), event, maybe()).prop_map(|(text, agent, event, detail)| Item::PodEvent {
            text,
            agent,
            event,
            detail
        }),
        (text(), text(), any::<Option<u64>>()).prop_map(|(text, file_path, bytes)| {
            Item::FileAttachment {
                text,
                file_path,
                bytes,
            }
        }),
        (text(), maybe(), prop::collection::vec(text(), 0..3)).prop_map(
            |(text, query, sources)| Item::Knowledge {
                text,
                query,
                sources
            }
        ),
        (text(), text(), text(), text()).prop_map(|(text, name, step, state)| Item::Workflow {
            text,
            name,
            step,
            state
        }),
        (text(), maybe()).prop_map(|(text, reason)| Item::Interrupt { text, reason }),
    ]
}

fn instructions() -> impl Strategy<Value = Instructions> {
    let tool = (text(), text()).prop_map(move |(name, description)| Tool {
        name,
        description,
        schema: schema(),
    });
    let layer = (text(), any::<i64>(), text()).prop_map(|(name, priority, text)| SystemLayer {
        name,
        priority,
        text,
    });
    let (tools, layers) = (
        prop::collection::vec(tool, 0..3),
        prop::collection::vec(layer, 0..3),
    );
    (text(), text(), tools, layers, 0..3usize).prop_map(
        |(agent, prompt, tools, layers, bound_from)| Instructions {
            agent,
            prompt,
            tools,
            layers,
            bound_from,
        },
    )
}

fn schema() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into())])
}

fn entry() -> impl Strategy<Value = Entry> {
    let usage = any::<[u64; 5]>().prop_map(
        |[input, output, cache_read, cache_write, reasoning]| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        },
    );
    prop_oneof![
        4 => message().prop_map(Entry::Message),
        2 => (message(), prop::sample::select(CutOff::ALL.to_vec()))
            .prop_map(|(message, cut_off)| Entry::Partial { message, cut_off }),
        2 => result().prop_map(Entry::ToolResult),
        2 => item().prop_map(Entry::Item),
        1 => (0..3usize).prop_map(|messages| Entry::Retract { messages }),
        1 => usage.prop_map(Entry::Usage),
        1 => instructions().prop_map(Entry::Instructions),
        1 => (0..3usize, text()).prop_map(|(parts, digest)| Entry::Sent(Sent { parts, digest })),
        1 => (1..5usize, text()).prop_map(|(messages, text)| Entry::Summary(Summary::new(messages, text))),
    ]
}

fn log() -> impl Strategy<Value = Log> {
    (text(), prop::collection::vec(entry(), 0..6)).prop_map(|(agent, entries)| {
        let mut log = Log::new(agent);
        for entry in entries {
            log.append(entry);
        }
        log
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A log that was written can be read back: it has the same entries, history, and usage, and
    /// writes the same bytes again.
    #[test]
    fn a_log_survives_its_file(log in log()) {
        let text = log.to_text();
        prop_assert_eq!(text.lines().count(), text.matches('\n').count());
        let loaded = Log::parse(text.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(loaded.log.as_ref().map(Log::to_text), Some(text));
        prop_assert_eq!(loaded, Loaded { log: Some(log), tail_bytes: 0 });
    }

    /// The serde form of an entry is its line without the number. Messages, items, and blocks have
    /// the form of contexts.
    #[test]
    fn serde_has_the_form_of_lines(entry in entry()) {
        // The log is empty, so it contains nothing to remove.
        let entry = match entry {
            Entry::Retract { .. } => Entry::Retract { messages: 0 },
            Entry::Summary(summary) => Entry::Summary(Summary { messages: 0, ..summary }),
            entry => entry,
        };
        let mut log = Log::new("A");
        let line = log.append(entry.clone()).to_owned();
        let without_number = line.replace(",\"line\":2}\n", "}");
        prop_assert_eq!(serde_json::to_string(&entry).expect("no maps with odd keys"), without_number);
        prop_assert_eq!(&serde_json::from_str::<Entry>(&line).expect("it was written here"), &entry);
        for message in log.history() {
            let text = serde_json::to_string(message).expect("no maps with odd keys");
            prop_assert_eq!(&serde_json::from_str::<Message>(&text).expect(&text), message);
        }
        if let Entry::Item(item) = &entry {
            let text = serde_json::to_string(item).expect("no maps with odd keys");
            prop_assert_eq!(&serde_json::from_str::<Item>(&text).expect(&text), item);
        }
    }

    /// A file that is cut off after any byte can be loaded, and contains a prefix of the entries.
    #[test]
    fn every_prefix_loads(log in log()) {
        let text = log.to_text();
        for length in 0..text.len() {
            let cut = &text.as_bytes()[..length];
            let loaded = Log::parse(cut).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let kept = loaded.log.as_ref().map(Log::to_text).unwrap_or_default();
            prop_assert!(text.starts_with(&kept));
            prop_assert_eq!(kept.len() + loaded.tail_bytes, length);
            let entries = loaded.log.iter().flat_map(Log::entries);
            prop_assert!(entries.zip(log.entries()).all(|(a, b)| a == b));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Log::parse(&bytes);
        let _ = Log::parse(&[HEADER.as_bytes(), &bytes, b"\n"].concat());
    }
}

/// Returns the lines of a log that contains one round of tool calls.
fn round_of_tools() -> Vec<String> {
    let mut log = Log::new("A");
    log.append(user("one"));
    log.append(answer(vec![tool_call("a"), tool_call("b")]));
    log.append(Entry::ToolResult(tool_result("b")));
    log.append(Entry::ToolResult(tool_result("a")));
    log.append(answer(vec![Block::Text("done".into())]));
    log.append(Entry::Usage(Usage::default()));
    log.lines().map(str::to_owned).collect()
}

#[test]
fn a_line_that_is_missing_as_a_whole_is_missed_where_others_follow() {
    let lines = round_of_tools();
    for first in 1..lines.len() {
        for last in first..lines.len() - 1 {
            let mut left = lines.clone();
            left.drain(first..=last);
            let (line, message) = problem(&left.concat());
            assert_eq!(line, first + 1, "{message}");
            assert!(message.contains("missing"), "{message}");
        }
        assert!(
            Log::parse(lines[..first].concat().as_bytes()).is_ok(),
            "the end of a log is a moment of it"
        );
    }
    let (one, several) = (
        [&lines[..2], &lines[3..]].concat(),
        [&lines[..1], &lines[3..]].concat(),
    );
    assert_eq!(
        problem(&one.concat()).1,
        "a line before it is missing (this was line 4 when it was written): restore the removed lines, or remove this line and all lines \
         after it"
    );
    assert!(
        problem(&several.concat())
            .1
            .starts_with("2 lines before it are missing (this was line 4 when it was written)")
    );
}

#[test]
fn lines_of_two_sessions_and_of_older_programs_are_taken() {
    let lines = round_of_tools();
    // Both sessions wrote the next lines after the header, without knowing each other's lines.
    let twice: Vec<&String> = lines
        .iter()
        .take(1)
        .chain(lines[1..].iter().flat_map(|line| [line, line]))
        .collect();
    let twice: String = twice.into_iter().map(String::as_str).collect();
    assert_eq!(
        Log::parse(twice.as_bytes())
            .expect("it loads")
            .log
            .expect("a header")
            .lines()
            .count(),
        13
    );
    let old: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut line: Map<String, Value> = serde_json::from_str(line).expect("JSON");
            line.shift_remove("line");
            Value::Object(line).to_string() + "\n"
        })
        .collect();
    assert!(Log::parse(old.concat().as_bytes()).is_ok());
    // Without line numbers, a missing line is detected only if it contains the call for a result.
    let without = |index: usize| [&old[..index], &old[index + 1..]].concat().concat();
    let (line, message) = problem(&without(2));
    assert_eq!(line, 3);
    assert!(
        message.starts_with("the line with its call is missing: "),
        "{message}"
    );
    assert!(
        [1, 3, 4, 5, 6]
            .iter()
            .all(|index| Log::parse(without(*index).as_bytes()).is_ok())
    );
    // Lines that are appended to such a log are numbered.
    let mut log = Log::parse(old.concat().as_bytes())
        .expect("it loads")
        .log
        .expect("a header");
    assert!(log.append(user("two")).ends_with(",\"line\":8}\n"));
    let whole = log.to_text();
    let cut = whole.replacen(&old[1], "", 1);
    assert_eq!(problem(&cut).0, 7);
}

#[test]
fn a_result_may_answer_a_call_in_the_providers_own_form() {
    let call = ProviderBlock {
        origin: "OpenAI (Chat Completions)".into(),
        data: json!({"id": "c", "type": "custom", "custom": {"name": "t", "input": ""}}),
        text: None,
    };
    let call = json!({"kind": "message", "role": "assistant", "content": [block_json(&Block::Provider(call))]});
    let result = json!({"kind": "tool_result", "tool_use_id": "c", "content": ""});
    assert!(Log::parse(format!("{HEADER}{call}\n{result}\n").as_bytes()).is_ok());
}

/// Returns a log with two turns: the first contains surroundings and a file, the second an answer
/// that was cut off.
fn two_turns() -> Log {
    let mut log = Log::new("A");
    log.append(Entry::Item(Item::surroundings("Here.".into())));
    log.append(Entry::Item(file("old")));
    log.append(user("one"));
    log.append(answer(vec![Block::Text("1".into())]));
    log.append(Entry::Item(file("new")));
    log.append(user("two"));
    let message = Message::assistant("2");
    log.append(Entry::Partial {
        message,
        cut_off: CutOff::Cancelled,
    });
    log
}

fn file(content: &str) -> Item {
    Item::FileAttachment {
        text: content.into(),
        file_path: "a".into(),
        bytes: None,
    }
}

fn texts(log: &Log) -> Vec<String> {
    log.history().iter().map(Message::text).collect()
}

#[test]
fn a_summary_stands_for_the_beginning_and_what_is_known_of_the_rest_moves_along() {
    let mut log = two_turns();
    let usage = Usage {
        input: 7,
        ..Usage::default()
    };
    let line = log
        .append(Entry::Summary(Summary {
            agent: Some("B".into()),
            usage,
            ..Summary::new(5, "S")
        }))
        .to_owned();
    let begins = "{\"kind\":\"summary\",\"messages\":5,\"text\":\"S\",\"agent\":\"B\",\"usage\":{\"input\":7,";
    assert!(
        line.starts_with(begins) && line.ends_with(",\"line\":9}\n"),
        "{line}"
    );
    assert_eq!(texts(&log), ["S", "Here.", "new", "two", "2"]);
    assert_eq!(
        (log.cut_off(), log.is_interrupted()),
        (Some(CutOff::Cancelled), true)
    );
    assert_eq!(
        log.items().map(Item::kind).collect::<Vec<_>>(),
        [ItemKind::Notification, ItemKind::FileAttachment]
    );
    assert_eq!(
        (log.bound_from(), log.usage().input, log.is_summarised()),
        (5, 7, true)
    );
    let loaded = Log::parse(log.to_text().as_bytes())
        .expect("it was written here")
        .log;
    assert_eq!(loaded.as_ref(), Some(&log));

    // A second summary replaces the first, and retractions refer to the remaining messages.
    log.append(Entry::Summary(Summary::new(9, "T")));
    assert_eq!(texts(&log), ["T", "Here.", "new"]);
    assert!(log.ends_with_summary() && !log.is_interrupted());
    log.append(Entry::Retract { messages: 2 });
    log.append(user("three"));
    assert_eq!(
        (texts(&log), log.is_interrupted()),
        (vec!["T".to_owned(), "three".to_owned()], true)
    );
    log.append(Entry::Retract { messages: 2 });
    assert!(!log.is_summarised() && log.history().is_empty());
    let text = log.to_text();
    assert_eq!(
        Log::parse(text.as_bytes())
            .expect("it was written here")
            .log,
        Some(log)
    );
}

#[test]
fn a_summary_of_what_is_not_there_is_an_error() {
    let lines = format!(
        "{HEADER}{}{{\"kind\":\"summary\",\"messages\":3,\"text\":\"S\"}}\n",
        two_lines()
    );
    assert_eq!(
        problem(&lines),
        (
            4,
            "a summary replaces 3 messages, but there are 2".to_owned()
        )
    );
    let lines = format!(
        "{HEADER}{}{{\"kind\":\"summary\",\"messages\":2,\"text\":\"S\"}}\n",
        two_lines()
    );
    let log = Log::parse(lines.as_bytes())
        .expect("a usage is not needed")
        .log
        .expect("a header");
    assert_eq!(texts(&log), ["S"]);
}

/// Returns a question and an answer as lines.
fn two_lines() -> String {
    let mut log = Log::new("A");
    log.append(user("one"));
    log.append(answer(vec![Block::Text("1".into())]));
    log.lines().skip(1).collect()
}
