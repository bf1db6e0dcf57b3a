//! Transcripts of answers: `tests/streams/<folder>/<name>.sse`, `.ndjson` or `.json` contains the
//! bytes of an answer, and `<name>.<kind>.expected` the decoder's result. The folder determines the
//! client API and the wire format, the extension the framing. Each file is a test. `llama.cpp`
//! contains recordings of a real server; the others follow the documentation.
//!
//! Each transcript is replayed whole, byte by byte, and cut in two at every position: the events
//! must be the same. Each prefix of a transcript must fail or give the same answer as the whole.
//! Altered transcripts must end in exactly one outcome, without a panic. Unknown content is added
//! to each of them and must be kept or reported (`lost`). Content that a decoder's table lists as
//! read is altered in each of them and must change the result (`known`).
//!
//! `REQC_UPDATE_STREAMS=1 cargo test --test streams` writes the expected results. Read them.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself reads and writes the transcripts"
)]

#[path = "streams/known.rs"]
mod known;
#[path = "streams/lost.rs"]
mod lost;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqc::compile::Compiler;
use reqc::conversation::Block;
use reqc::provider::{ClientApi, WireFormat};
use reqc::repo::LoadOptions;
use reqc::runtime::stream::{Decoder, Framing, Limits, Source};
use reqc::runtime::{Answer, Category, Error, Event, ResponseInfo, StopReason, ToolCall, Usage};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::{Value, json};

/// The client API and wire format of each folder, and the bundled agent that sends its answers
/// back.
const FOLDERS: [(&str, ClientApi, WireFormat, Option<&str>); 16] = [
    (
        "claude",
        ClientApi::Claude,
        WireFormat::AnthropicMessages,
        Some("Claude Chat Tools"),
    ),
    (
        "codestral",
        ClientApi::Codestral,
        WireFormat::MistralFim,
        None,
    ),
    (
        "compatible",
        ClientApi::OpenAiCompatible,
        WireFormat::OpenAiChat,
        Some("OpenAI Compatible Chat"),
    ),
    (
        "deepseek",
        ClientApi::OpenAiCompatible,
        WireFormat::OpenAiChat,
        Some("DeepSeek Chat Tools"),
    ),
    (
        "google",
        ClientApi::GoogleAi,
        WireFormat::GoogleGenerateContent,
        Some("Gemini Chat Tools"),
    ),
    (
        "infill",
        ClientApi::LlamaCpp,
        WireFormat::LlamaCppInfill,
        None,
    ),
    (
        "llama.cpp/chat",
        ClientApi::LlamaCpp,
        WireFormat::OpenAiChat,
        Some("llama.cpp Chat Tools"),
    ),
    (
        "llama.cpp/infill",
        ClientApi::LlamaCpp,
        WireFormat::LlamaCppInfill,
        None,
    ),
    (
        "llama.cpp/messages",
        ClientApi::Claude,
        WireFormat::AnthropicMessages,
        Some("Claude Chat Tools"),
    ),
    (
        "llama.cpp/responses",
        ClientApi::OpenAiResponses,
        WireFormat::OpenAiResponses,
        Some("OpenAI Responses Chat Tools"),
    ),
    (
        "mistral",
        ClientApi::Mistral,
        WireFormat::MistralChat,
        Some("Mistral Chat Tools"),
    ),
    (
        "ollama",
        ClientApi::OllamaNative,
        WireFormat::OllamaChat,
        Some("Ollama Chat Tools"),
    ),
    (
        "ollama_generate",
        ClientApi::OllamaNative,
        WireFormat::OllamaGenerate,
        None,
    ),
    (
        "openai",
        ClientApi::OpenAiChat,
        WireFormat::OpenAiChat,
        Some("OpenAI Chat Tools"),
    ),
    (
        "openrouter",
        ClientApi::OpenRouter,
        WireFormat::OpenAiChat,
        Some("OpenRouter Chat Tools"),
    ),
    (
        "responses",
        ClientApi::OpenAiResponses,
        WireFormat::OpenAiResponses,
        Some("OpenAI Responses Chat Tools"),
    ),
];

/// The wire formats that share a decoder, and therefore a table.
const FORMATS: [(&str, &[WireFormat]); 6] = [
    ("anthropic", &[WireFormat::AnthropicMessages]),
    (
        "chat",
        &[
            WireFormat::OpenAiChat,
            WireFormat::MistralChat,
            WireFormat::MistralFim,
        ],
    ),
    ("responses", &[WireFormat::OpenAiResponses]),
    ("google", &[WireFormat::GoogleGenerateContent]),
    (
        "ollama",
        &[WireFormat::OllamaChat, WireFormat::OllamaGenerate],
    ),
    ("infill", &[WireFormat::LlamaCppInfill]),
];

/// Answers that mark every chunk as the last one, so that any prefix looks complete.
const ALWAYS_COMPLETE: [&str; 1] = ["google/stop_in_every_chunk.sse"];

/// A recorded answer.
#[derive(Clone)]
struct Transcript {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
    source: Source,
    framing: Framing,
    agent: Option<&'static str>,
}

/// The result of decoding an answer.
#[derive(Debug, PartialEq)]
struct Played {
    events: Vec<Event>,
    outcome: Result<StopReason, Error>,
    info: ResponseInfo,
    answer: Answer,
}

fn main() {
    let arguments = Arguments::from_args();
    let all = transcripts();
    let compiler = Arc::new(compiler(&all));
    let mut trials: Vec<Trial> = all
        .iter()
        .cloned()
        .map(|transcript| trial(transcript, &compiler))
        .collect();
    let lost = all.iter().cloned().map(|transcript| {
        let name = format!("lost/{}", transcript.name);
        Trial::test(name, move || lost::check(&transcript))
    });
    trials.extend(lost);
    trials.extend(FORMATS.into_iter().map(|(name, wires)| {
        let of_format: Vec<Transcript> = all
            .iter()
            .filter(|transcript| wires.contains(&transcript.source.wire))
            .cloned()
            .collect();
        Trial::test(format!("known/{name}"), move || {
            known::check(&of_format.iter().collect::<Vec<_>>())
        })
    }));
    trials.push(Trial::test("altered", move || altered(&all)));
    trials.push(Trial::test("random", random));
    trials.push(Trial::test("limits", limits));
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(transcript: Transcript, compiler: &Arc<Compiler>) -> Trial {
    let compiler = Arc::clone(compiler);
    Trial::test(transcript.name.clone(), move || {
        check(&transcript, &compiler)
    })
}

fn transcripts() -> Vec<Transcript> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let of_folder =
        |(folder, api, wire, agent): &(&str, ClientApi, WireFormat, Option<&'static str>)| {
            let source = Source {
                api: *api,
                wire: *wire,
                id_prefix: "call_1_".to_owned(),
            };
            let entries = fs::read_dir(root.join(folder)).expect("a folder of the table");
            let agent = *agent;
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            paths
                .into_iter()
                .filter_map(move |path| transcript(folder, path, &source, agent))
                .collect::<Vec<_>>()
        };
    FOLDERS.iter().flat_map(of_folder).collect()
}

fn transcript(
    folder: &str,
    path: PathBuf,
    source: &Source,
    agent: Option<&'static str>,
) -> Option<Transcript> {
    let framing = match path.extension()?.to_str()? {
        "sse" => Framing::Sse,
        "ndjson" => Framing::Lines,
        "json" => Framing::Whole,
        _ => return None,
    };
    let name = format!("{folder}/{}", path.file_name()?.to_str()?);
    let bytes = fs::read(&path).expect("a readable file");
    Some(Transcript {
        name,
        path,
        bytes,
        source: source.clone(),
        framing,
        agent,
    })
}

impl Transcript {
    /// Returns the name of the context for this answer.
    fn context(&self) -> String {
        self.name.replace('/', "-")
    }

    fn play<'a>(&self, chunks: impl IntoIterator<Item = &'a [u8]>) -> Played {
        self.play_within(Limits::default(), chunks)
    }

    fn play_within<'a>(
        &self,
        limits: Limits,
        chunks: impl IntoIterator<Item = &'a [u8]>,
    ) -> Played {
        let mut decoder = Decoder::new(self.source.clone(), self.framing, limits);
        let mut events = Vec::new();
        for chunk in chunks {
            if decoder.push(chunk, &mut events).is_err() || decoder.is_complete() {
                break;
            }
        }
        let outcome = decoder.finish(&mut events);
        assert_eq!(
            decoder.finish(&mut events),
            outcome,
            "a second call returns the same"
        );
        Played {
            events,
            outcome,
            info: decoder.info().clone(),
            answer: decoder.into_answer(),
        }
    }
}

/// The distance in bytes between the places at which transcripts are cut: every place, in the long
/// tests.
const CUT_EVERY: usize = if cfg!(feature = "long-tests") { 1 } else { 7 };

fn check(transcript: &Transcript, compiler: &Compiler) -> Result<(), Failed> {
    let bytes = transcript.bytes.as_slice();
    let whole = transcript.play([bytes]);
    agrees(&whole)?;
    survives(&whole)?;
    same(&whole, &transcript.play(bytes.chunks(1)), "byte by byte")?;
    for cut in (1..bytes.len()).step_by(CUT_EVERY) {
        same(
            &whole,
            &transcript.play([&bytes[..cut], &bytes[cut..]]),
            &format!("cut at {cut}"),
        )?;
        let beginning = transcript.play([&bytes[..cut]]);
        let another = beginning.outcome.is_ok() && beginning.answer.blocks != whole.answer.blocks;
        if another && !ALWAYS_COMPLETE.contains(&transcript.name.as_str()) {
            return Err(format!(
                "cut off at {cut}, it succeeds with a different answer: {beginning:#?}"
            )
            .into());
        }
    }
    compare(
        transcript,
        &format!("{}{}", shown(&whole), sent_back(transcript, compiler)?),
    )
}

/// Returns a compiler of the bundled agents, with a context for each answer that can be sent back.
fn compiler(all: &[Transcript]) -> Compiler {
    let context = |transcript: &Transcript| {
        let blocks = transcript.play([transcript.bytes.as_slice()]).answer.blocks;
        let text = conversation(&transcript.context(), &blocks)?.to_string();
        Some((format!("contexts/{}.json", transcript.context()), text))
    };
    let own: MemoryWorld = all.iter().filter_map(context).collect();
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    Compiler::load(Arc::new(own), Arc::new(Embedded::bundled()), options)
}

/// Returns a chat with this answer, in which its calls have results.
fn conversation(name: &str, blocks: &[Block]) -> Option<Value> {
    let answer: Vec<Value> = blocks.iter().map(|block| json!(block)).collect();
    let result = |id: String| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let mut reply: Vec<Value> = blocks.iter().filter_map(used).map(result).collect();
    reply.push(json!({"type": "text", "text": "And now?"}));
    let history = json!([
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": reply},
    ]);
    let context =
        json!({"name": name, "why": "An answer goes back.", "kind": "chat", "history": history});
    (!blocks.is_empty()).then_some(context)
}

/// Returns the part of the next request that contains the answer, with one message or item per
/// line.
fn sent_back(transcript: &Transcript, compiler: &Compiler) -> Result<String, Failed> {
    let Some(agent) = transcript.agent else {
        return Ok(String::new());
    };
    let id = compiler.hierarchy().by_name(agent).ok_or("no such agent")?;
    let body = match compiler.body(id, &transcript.context(), None) {
        None => return Ok(String::new()),
        Some(Ok(body)) => body,
        Some(Err(findings)) => {
            return Err(format!("the answer cannot go back: {findings:?}").into());
        }
    };
    let messages = ["messages", "contents", "input"]
        .iter()
        .find_map(|key| body.value().get(key)?.as_array());
    let own = messages
        .into_iter()
        .flatten()
        .filter(|message| is_the_models(message));
    Ok(own.cloned().fold("---\n".to_owned(), |text, message| {
        format!("{text}{}\n", without_marks(message))
    }))
}

/// Removes cache marks, which depend on the agent and not on the answer.
fn without_marks(mut message: Value) -> Value {
    let blocks = message
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    blocks
        .filter_map(Value::as_object_mut)
        .for_each(|block| drop(block.remove("cache_control")));
    message
}

fn is_the_models(message: &Value) -> bool {
    let is = |key: &str, words: [&str; 2]| {
        message[key]
            .as_str()
            .is_some_and(|word| words.contains(&word))
    };
    let is_item = message["role"].is_null() && !is("type", ["function_call_output", "message"]);
    is("role", ["assistant", "model"]) || is_item
}

fn same(whole: &Played, other: &Played, how: &str) -> Result<(), Failed> {
    if whole == other {
        return Ok(());
    }
    Err(format!(
        "{how}, it is not the same:\n{}\nbut:\n{}",
        shown(whole),
        shown(other)
    )
    .into())
}

/// Blocks survive a round trip through serde, and events are written as `reqc send` writes them.
fn survives(played: &Played) -> Result<(), Failed> {
    for block in &played.answer.blocks {
        let text = serde_json::to_string(block)?;
        if serde_json::from_str::<Block>(&text)? != *block {
            return Err(format!("it does not come back as it was: {text}").into());
        }
    }
    match played
        .events
        .iter()
        .find(|event| json!(event) != event.to_json())
    {
        Some(event) => Err(format!("serde writes it otherwise: {event:?}").into()),
        None => Ok(()),
    }
}

/// Checks that the events, the blocks and the calls of an answer agree.
fn agrees(played: &Played) -> Result<(), Failed> {
    // The last event of an answer can contain its parts in a different order.
    let in_any_order = |text: String| {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters
    };
    let said = in_any_order(played.events.iter().filter_map(Event::said).collect());
    let kept = in_any_order(played.answer.blocks.iter().filter_map(kept).collect());
    let ended: Vec<&ToolCall> = played.events.iter().filter_map(Event::ended).collect();
    let ids = |calls: &mut dyn Iterator<Item = String>| {
        let mut ids: Vec<String> = calls.collect();
        ids.sort();
        ids
    };
    let of_events = ids(&mut ended.iter().map(|call| call.id.to_string()));
    let of_calls = ids(&mut played.answer.calls.iter().map(|call| call.id.to_string()));
    let of_blocks = ids(&mut played.answer.blocks.iter().filter_map(used));
    let unique = of_calls.windows(2).all(|pair| pair[0] != pair[1]);
    if said == kept && of_events == of_calls && of_calls == of_blocks && unique {
        return Ok(());
    }
    Err(format!("events, blocks and calls do not agree:\n{}", shown(played)).into())
}

trait Told {
    fn said(&self) -> Option<&str>;
    fn ended(&self) -> Option<&ToolCall>;
}

impl Told for Event {
    fn said(&self) -> Option<&str> {
        match self {
            Event::Text(text) => Some(text),
            _ => None,
        }
    }

    fn ended(&self) -> Option<&ToolCall> {
        match self {
            Event::ToolCallEnd(call) => Some(call),
            _ => None,
        }
    }
}

fn kept(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text),
        Block::Provider(own) => own.text.as_deref(),
        _ => None,
    }
}

fn used(block: &Block) -> Option<String> {
    match block {
        Block::ToolUse { id, .. } => Some(id.to_string()),
        _ => None,
    }
}

fn compare(transcript: &Transcript, found: &str) -> Result<(), Failed> {
    let mut path = transcript.path.clone().into_os_string();
    path.push(".expected");
    if std::env::var_os("REQC_UPDATE_STREAMS").is_some_and(|value| value == "1") {
        return fs::write(path, found).map_err(Into::into);
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    Err(format!("expected:\n{expected}\nfound:\n{found}").into())
}

/// Returns events, blocks, usage and outcome, one per line.
fn shown(played: &Played) -> String {
    let mut text = String::new();
    for event in &played.events {
        let _ = writeln!(text, "{}", event_line(event));
    }
    text.push_str("---\n");
    for block in &played.answer.blocks {
        let _ = writeln!(text, "{}", block_line(block));
    }
    text.push_str("---\n");
    let _ = writeln!(text, "{}", usage_line(played.answer.usage));
    text.push_str(&match &played.outcome {
        Ok(stop) => format!("stop {}\n", stop.name()),
        Err(error) => format!(
            "error{} {error}\n",
            if error.retryable { " retryable" } else { "" }
        ),
    });
    text
}

fn event_line(event: &Event) -> String {
    match event {
        Event::Text(text) => format!("text {}", json!(text)),
        Event::Thinking(text) => format!("thinking {}", json!(text)),
        Event::ToolCallStart { id, name } => format!("start {id} {name}"),
        Event::ToolCallArguments { id, json } => format!("arguments {id} {}", json!(json)),
        Event::ToolCallEnd(ToolCall { id, name, input }) => match input {
            Ok(input) => format!("end {id} {name} {input}"),
            Err(input) => format!(
                "end {id} {name} malformed {}: {}",
                json!(input.text),
                input.problem
            ),
        },
        Event::Usage(usage) => usage_line(*usage),
        Event::Warning(message) => format!("warning {message}"),
        other => format!("{other:?}"),
    }
}

fn usage_line(usage: Usage) -> String {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    } = usage;
    format!(
        "usage input {input} output {output} read {cache_read} written {cache_write} reasoning {reasoning}"
    )
}

fn block_line(block: &Block) -> String {
    let value = match block {
        Block::Text(text) => json!({"text": **text}),
        Block::Thinking {
            text,
            signature,
            origin,
        } => {
            json!({"thinking": **text, "signature": **signature, "origin": origin.as_deref()})
        }
        Block::RedactedThinking { data, origin } => {
            json!({"redacted": **data, "origin": origin.as_deref()})
        }
        Block::ToolUse { id, name, input } => json!({"call": **id, "name": **name, "input": input}),
        Block::Provider(own) => {
            json!({"own": own.data, "origin": *own.origin, "text": own.text.as_deref()})
        }
        other => json!(format!("{other:?}")),
    };
    value.to_string()
}

/// A change of some bytes.
#[derive(Debug, Clone)]
enum Alteration {
    Replace(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Truncate(usize),
}

fn alteration() -> impl Strategy<Value = Alteration> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Alteration::Replace(at, byte)),
        (any::<usize>(), 1..40usize).prop_map(|(at, length)| Alteration::Remove(at, length)),
        (any::<usize>(), 1..400usize).prop_map(|(at, length)| Alteration::Repeat(at, length)),
        any::<usize>().prop_map(Alteration::Truncate),
    ]
}

impl Alteration {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let span = |at: &usize, length: &usize, bytes: &[u8]| {
            let start = at % (bytes.len() + 1);
            start..(start + length).min(bytes.len())
        };
        match self {
            Alteration::Replace(at, byte) => {
                let at = at % (bytes.len() + 1);
                bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
            }
            Alteration::Remove(at, length) => drop(bytes.drain(span(at, length, bytes))),
            Alteration::Repeat(at, length) => {
                let span = span(at, length, bytes);
                let again = bytes[span.clone()].to_vec();
                bytes.splice(span.end..span.end, again);
            }
            Alteration::Truncate(at) => bytes.truncate(at % (bytes.len() + 1)),
        }
    }
}

fn altered(all: &[Transcript]) -> Result<(), Failed> {
    let input = (
        0..all.len(),
        prop::collection::vec(alteration(), 1..4),
        1..60usize,
    );
    property(1500, &input, |(index, alterations, size)| {
        let mut transcript = all[index].clone();
        alterations
            .iter()
            .for_each(|alteration| alteration.apply(&mut transcript.bytes));
        holds(&transcript, size)
    })
}

fn random() -> Result<(), Failed> {
    let framing = prop_oneof![
        Just(Framing::Sse),
        Just(Framing::Lines),
        Just(Framing::Whole)
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..400);
    property(
        1500,
        &(0..FOLDERS.len(), framing, bytes, 1..20usize),
        |(index, framing, bytes, size)| {
            let (_, api, wire, agent) = FOLDERS[index];
            let source = Source {
                api,
                wire,
                id_prefix: "call_1_".to_owned(),
            };
            holds(
                &Transcript {
                    name: String::new(),
                    path: PathBuf::new(),
                    bytes,
                    source,
                    framing,
                    agent,
                },
                size,
            )
        },
    )
}

/// Checks the properties that hold for any bytes: no panic, one outcome, the same result in chunks,
/// and events that agree with the answer.
fn holds(transcript: &Transcript, size: usize) -> Result<(), Failed> {
    let whole = transcript.play([transcript.bytes.as_slice()]);
    agrees(&whole)?;
    same(
        &whole,
        &transcript.play(transcript.bytes.chunks(size)),
        "in chunks",
    )
}

fn property<S: Strategy>(
    cases: u32,
    input: &S,
    test: impl Fn(S::Value) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let checked = |value| {
        test(value)
            .map_err(|failed| TestCaseError::fail(failed.message().unwrap_or_default().to_owned()))
    };
    runner
        .run(input, checked)
        .map_err(|error| error.to_string().into())
}

/// Endless garbage is stopped at a limit, in every format and framing.
fn limits() -> Result<(), Failed> {
    let limits = Limits {
        line: 64,
        event: 256,
        answer: 4096,
    };
    let garbage: [&[u8]; 6] = [
        b"x",
        b": keep-alive\n\n",
        b"data: {}\n\n",
        b"\n",
        b"{\"a\":[",
        b"{}\n",
    ];
    for (folder, api, wire, agent) in FOLDERS {
        for framing in [Framing::Sse, Framing::Lines, Framing::Whole] {
            for piece in garbage {
                let source = Source {
                    api,
                    wire,
                    id_prefix: String::new(),
                };
                let transcript = Transcript {
                    name: String::new(),
                    path: PathBuf::new(),
                    bytes: vec![],
                    source,
                    framing,
                    agent,
                };
                let played = transcript.play_within(limits, std::iter::repeat_n(piece, 10_000));
                let cut = played
                    .outcome
                    .as_ref()
                    .err()
                    .is_some_and(|error| error.category == Category::Provider);
                if !cut {
                    let piece = String::from_utf8_lossy(piece);
                    return Err(
                        format!("{folder}, {framing:?}, {piece:?}: {:?}", played.outcome).into(),
                    );
                }
            }
        }
    }
    Ok(())
}
