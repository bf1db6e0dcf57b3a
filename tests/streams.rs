//! Transcripts of answers, replayed: `tests/streams/<folder>/<name>.sse`, `.ndjson` or `.json` holds the bytes of an
//! answer, `<name>.<kind>.expected` beside it what the decoder makes of them. The folder tells client API and wire format,
//! the file's kind the framing. Adding a file adds a named test. `llama.cpp` holds recordings of a real server; the others
//! are written after the documented shapes.
//!
//! Each transcript is replayed whole, byte by byte, and cut in two at every place: the events must be the same. Each
//! beginning of one must fail, or give the same answer as the whole. Altered ones must end, without a panic, in one way.
//!
//! `REQC_UPDATE_STREAMS=1 cargo test --test streams` writes the expectations. Read them.

#![expect(clippy::disallowed_methods, reason = "the test itself reads and writes the transcripts")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqc::conversation::Block;
use reqc::provider::{ClientApi, WireFormat};
use reqc::runtime::stream::{Decoder, Framing, Limits, Source};
use reqc::runtime::{Answer, Category, Error, Event, StopReason, ToolCall, Usage};
use serde_json::json;

/// Which folder holds answers of which client API and wire format.
const FOLDERS: [(&str, ClientApi, WireFormat); 15] = [
    ("claude", ClientApi::Claude, WireFormat::AnthropicMessages),
    ("codestral", ClientApi::Codestral, WireFormat::MistralFim),
    ("compatible", ClientApi::OpenAiCompatible, WireFormat::OpenAiChat),
    ("google", ClientApi::GoogleAi, WireFormat::GoogleGenerateContent),
    ("llama.cpp/chat", ClientApi::LlamaCpp, WireFormat::OpenAiChat),
    ("llama.cpp/infill", ClientApi::LlamaCpp, WireFormat::LlamaCppInfill),
    ("llama.cpp/messages", ClientApi::Claude, WireFormat::AnthropicMessages),
    ("llama.cpp/responses", ClientApi::OpenAiResponses, WireFormat::OpenAiResponses),
    ("mistral", ClientApi::Mistral, WireFormat::MistralChat),
    ("ollama", ClientApi::OllamaNative, WireFormat::OllamaChat),
    ("ollama_generate", ClientApi::OllamaNative, WireFormat::OllamaGenerate),
    ("infill", ClientApi::LlamaCpp, WireFormat::LlamaCppInfill),
    ("openai", ClientApi::OpenAiChat, WireFormat::OpenAiChat),
    ("openrouter", ClientApi::OpenRouter, WireFormat::OpenAiChat),
    ("responses", ClientApi::OpenAiResponses, WireFormat::OpenAiResponses),
];

/// A recorded answer.
#[derive(Clone)]
struct Transcript {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
    source: Source,
    framing: Framing,
}

/// What a decoder made of an answer.
#[derive(Debug, PartialEq)]
struct Played {
    events: Vec<Event>,
    outcome: Result<StopReason, Error>,
    answer: Answer,
}

fn main() {
    let arguments = Arguments::from_args();
    let all = transcripts();
    let mut trials: Vec<Trial> = all.iter().cloned().map(|transcript| trial(transcript, check)).collect();
    trials.push(Trial::test("altered", move || altered(&all)));
    trials.push(Trial::test("random", random));
    trials.push(Trial::test("limits", limits));
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(transcript: Transcript, test: fn(&Transcript) -> Result<(), Failed>) -> Trial {
    Trial::test(transcript.name.clone(), move || test(&transcript))
}

fn transcripts() -> Vec<Transcript> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let of_folder = |(folder, api, wire): &(&str, ClientApi, WireFormat)| {
        let source = Source { api: *api, wire: *wire, id_prefix: "call_1_".to_owned() };
        let entries = fs::read_dir(root.join(folder)).expect("a folder of the table");
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().filter_map(move |path| transcript(folder, path, &source)).collect::<Vec<_>>()
    };
    FOLDERS.iter().flat_map(of_folder).collect()
}

fn transcript(folder: &str, path: PathBuf, source: &Source) -> Option<Transcript> {
    let framing = match path.extension()?.to_str()? {
        "sse" => Framing::Sse,
        "ndjson" => Framing::Lines,
        "json" => Framing::Whole,
        _ => return None,
    };
    let name = format!("{folder}/{}", path.file_name()?.to_str()?);
    let bytes = fs::read(&path).expect("a readable file");
    Some(Transcript { name, path, bytes, source: source.clone(), framing })
}

impl Transcript {
    fn play<'a>(&self, chunks: impl IntoIterator<Item = &'a [u8]>) -> Played {
        self.play_within(Limits::default(), chunks)
    }

    fn play_within<'a>(&self, limits: Limits, chunks: impl IntoIterator<Item = &'a [u8]>) -> Played {
        let mut decoder = Decoder::new(self.source.clone(), self.framing, limits);
        let mut events = Vec::new();
        for chunk in chunks {
            if decoder.push(chunk, &mut events).is_err() || decoder.is_complete() {
                break;
            }
        }
        let outcome = decoder.finish(&mut events);
        assert_eq!(decoder.finish(&mut events), outcome, "asked again, it says the same");
        Played { events, outcome, answer: decoder.into_answer() }
    }
}

fn check(transcript: &Transcript) -> Result<(), Failed> {
    let bytes = transcript.bytes.as_slice();
    let whole = transcript.play([bytes]);
    agrees(&whole)?;
    same(&whole, &transcript.play(bytes.chunks(1)), "byte by byte")?;
    for cut in 1..bytes.len() {
        same(&whole, &transcript.play([&bytes[..cut], &bytes[cut..]]), &format!("cut at {cut}"))?;
        let beginning = transcript.play([&bytes[..cut]]);
        if beginning.outcome.is_ok() && beginning.answer.blocks != whole.answer.blocks {
            return Err(format!("cut off at {cut}, it ends well with another answer: {beginning:#?}").into());
        }
    }
    compare(transcript, &shown(&whole))
}

fn same(whole: &Played, other: &Played, how: &str) -> Result<(), Failed> {
    if whole == other {
        return Ok(());
    }
    Err(format!("{how}, it is not the same:\n{}\nbut:\n{}", shown(whole), shown(other)).into())
}

/// What must hold between the events, the blocks and the calls of any answer.
fn agrees(played: &Played) -> Result<(), Failed> {
    let said: String = played.events.iter().filter_map(Event::said).collect();
    let kept: String = played.answer.blocks.iter().filter_map(kept).collect();
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

/// Events, blocks, usage and outcome, one a line.
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
        Err(error) => format!("error{} {error}\n", if error.retryable { " retryable" } else { "" }),
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
            Err(input) => format!("end {id} {name} malformed {}: {}", json!(input.text), input.problem),
        },
        Event::Usage(usage) => usage_line(*usage),
        other => format!("{other:?}"),
    }
}

fn usage_line(usage: Usage) -> String {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    format!("usage input {input} output {output} read {cache_read} written {cache_write} reasoning {reasoning}")
}

fn block_line(block: &Block) -> String {
    let value = match block {
        Block::Text(text) => json!({"text": **text}),
        Block::Thinking { text, signature, origin } => {
            json!({"thinking": **text, "signature": **signature, "origin": origin.as_deref()})
        }
        Block::RedactedThinking { data, origin } => json!({"redacted": **data, "origin": origin.as_deref()}),
        Block::ToolUse { id, name, input } => json!({"call": **id, "name": **name, "input": input}),
        other => json!(format!("{other:?}")),
    };
    value.to_string()
}

/// An alteration of bytes.
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
    let input = (0..all.len(), prop::collection::vec(alteration(), 1..4), 1..60usize);
    property(1500, &input, |(index, alterations, size)| {
        let mut transcript = all[index].clone();
        alterations.iter().for_each(|alteration| alteration.apply(&mut transcript.bytes));
        holds(&transcript, size)
    })
}

fn random() -> Result<(), Failed> {
    let framing = prop_oneof![Just(Framing::Sse), Just(Framing::Lines), Just(Framing::Whole)];
    let bytes = prop::collection::vec(any::<u8>(), 0..400);
    property(1500, &(0..FOLDERS.len(), framing, bytes, 1..20usize), |(index, framing, bytes, size)| {
        let (_, api, wire) = FOLDERS[index];
        let source = Source { api, wire, id_prefix: "call_1_".to_owned() };
        holds(&Transcript { name: String::new(), path: PathBuf::new(), bytes, source, framing }, size)
    })
}

/// What holds for any bytes: no panic, one outcome, the same in chunks, and events that agree with the answer.
fn holds(transcript: &Transcript, size: usize) -> Result<(), Failed> {
    let whole = transcript.play([transcript.bytes.as_slice()]);
    agrees(&whole)?;
    same(&whole, &transcript.play(transcript.bytes.chunks(size)), "in chunks")
}

fn property<S: Strategy>(cases: u32, input: &S, test: impl Fn(S::Value) -> Result<(), Failed>) -> Result<(), Failed> {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let checked =
        |value| test(value).map_err(|failed| TestCaseError::fail(failed.message().unwrap_or_default().to_owned()));
    runner.run(input, checked).map_err(|error| error.to_string().into())
}

/// Garbage for ever is cut, in every format and framing, whatever it is.
fn limits() -> Result<(), Failed> {
    let limits = Limits { line: 64, event: 256, answer: 4096 };
    let garbage: [&[u8]; 6] = [b"x", b": keep-alive\n\n", b"data: {}\n\n", b"\n", b"{\"a\":[", b"{}\n"];
    for (folder, api, wire) in FOLDERS {
        for framing in [Framing::Sse, Framing::Lines, Framing::Whole] {
            for piece in garbage {
                let source = Source { api, wire, id_prefix: String::new() };
                let transcript =
                    Transcript { name: String::new(), path: PathBuf::new(), bytes: vec![], source, framing };
                let played = transcript.play_within(limits, std::iter::repeat_n(piece, 10_000));
                let cut = played.outcome.as_ref().err().is_some_and(|error| error.category == Category::Provider);
                if !cut {
                    let piece = String::from_utf8_lossy(piece);
                    return Err(format!("{folder}, {framing:?}, {piece:?}: {:?}", played.outcome).into());
                }
            }
        }
    }
    Ok(())
}
