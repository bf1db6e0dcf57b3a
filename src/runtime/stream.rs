//! Decodes the bytes of an answer into events and an [`Answer`].
//!
//! The decoder is pure: it uses no clock and no network, so every transcript can be replayed with
//! every possible split. A [`Decoder`] has three stages: framing (SSE, lines, or one JSON value),
//! the parser of a wire format (frame → parts), and the builder, which turns parts into events and
//! blocks. [`Limits`] bounds all of them.
//!
//! Events are created per frame, not per chunk, so they do not depend on how the bytes were split.
//! The parser of a wire format reads both streams and whole answers.

mod builder;
mod frame;
mod json;
mod shape;
mod anthropic;
mod gemini;
mod infill;
mod chat;
mod ollama;
mod responses;
mod sse;
mod framing;

use serde_json::Value;

use super::{Answer, Category, Error, Event, ResponseInfo, StopReason, failure};
use crate::provider::{AnswerForm, ClientApi, WireFormat};
use builder::AnswerBuilder;
use frame::{Frame, within};
use framing::Framer;
use shape::Shape;

/// The maximum sizes of an answer and its parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of one line in a stream.
    pub line: usize,
    /// The maximum size of one event in a stream, or of an answer that is a single JSON value.
    pub event: usize,
    /// The maximum size of a whole answer, as transmitted.
    pub answer: usize,
}

impl Default for Limits {
    /// Returns 16 MiB per line, 16 MiB per event, and 64 MiB per answer, which is enough for a 10
    /// MB image in base64.
    fn default() -> Limits {
        const MIB: usize = 1024 * 1024;
        Limits {
            line: 16 * MIB,
            event: 16 * MIB,
            answer: 64 * MIB,
        }
    }
}

/// The way an answer is divided into JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// One JSON value per line.
    Lines,
    /// One JSON value as the whole answer.
    Whole,
}

impl Framing {
    /// Returns the framing for a `content-type`. If that is missing or unknown, returns the usual
    /// framing of the wire format's streams.
    pub fn of(content_type: Option<&str>, wire: WireFormat) -> Framing {
        let kind = content_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match kind.as_str() {
            "text/event-stream" => Framing::Sse,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Framing::Lines,
            "application/json" => Framing::Whole,
            _ if wire.streams_lines() => Framing::Lines,
            _ => Framing::Sse,
        }
    }
}

/// The facts about a request that are needed to decode its answer.
#[derive(Debug, Clone)]
pub struct Source {
    /// The client API. Its name becomes the origin of thinking.
    pub api: ClientApi,
    /// The wire format.
    pub wire: WireFormat,
    /// The prefix of IDs for calls without an ID from the provider, such as `call_3_`; unique in a
    /// history.
    pub id_prefix: String,
}

/// A parser for the frames of a wire format.
trait AnswerParser: Send {
    /// Reads one JSON value of the answer. `kind` is the value's `type` or, if there is none, the
    /// name of the event, which may be empty.
    fn read(&mut self, kind: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error>;

    /// Ends all open parts, because no more values follow.
    fn end(&mut self, _: &mut AnswerBuilder) {}
}

/// Decodes one answer.
pub struct Decoder {
    framer: Framer,
    parser: Box<dyn AnswerParser>,
    answer: AnswerBuilder,
    wire: WireFormat,
    /// The number of further bytes allowed.
    room: usize,
    limit: usize,
    /// The beginning of the answer, which errors may show.
    head: Vec<u8>,
    /// `true` if at least one value of the wire format was received.
    begun: bool,
    /// The first JSON value that is not in the wire format, if no other value preceded it.
    foreign: Option<Value>,
    /// `true` if the connection ended in the middle of a JSON value.
    cut: bool,
    info: ResponseInfo,
    outcome: Option<Result<StopReason, Error>>,
}

/// The number of bytes at the beginning of an answer that are kept for errors.
const HEAD: usize = 1024;

impl Decoder {
    /// Returns a decoder for the answer to one request.
    pub fn new(source: Source, framing: Framing, limits: Limits) -> Decoder {
        Decoder {
            framer: Framer::new(framing, limits),
            parser: parser(source.wire),
            wire: source.wire,
            answer: AnswerBuilder::new(source),
            room: limits.answer,
            limit: limits.answer,
            head: Vec::new(),
            begun: false,
            foreign: None,
            cut: false,
            info: ResponseInfo::default(),
            outcome: None,
        }
    }

    /// Decodes the next bytes, and adds the events that they complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the answer is broken, that is, if the provider reported an error, sent a
    /// different format, or sent too much. After an error, do not push more bytes;
    /// [`Decoder::into_answer`] returns the content before the error.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        if let Some(outcome) = &self.outcome {
            return outcome.clone().map(|_| ());
        }
        let result = self.take(bytes, events);
        self.answer.drain(events);
        if let Err(error) = &result {
            self.outcome = Some(Err(error.clone()));
        }
        result
    }

    /// Returns `true` if the answer has begun, that is, if a value of its wire format was received.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns the response metadata received so far.
    pub fn info(&self) -> &ResponseInfo {
        &self.info
    }

    /// Returns the number of content bytes received so far. Comments and whitespace, which servers
    /// send to keep a connection alive, are not included.
    pub fn content_bytes(&self) -> usize {
        self.framer.content_bytes()
    }

    /// Returns `true` if the answer has ended, so further bytes are irrelevant.
    pub fn is_complete(&self) -> bool {
        self.answer.is_closed() || self.outcome.is_some()
    }

    /// Ends the answer because the connection has ended, and adds the last events. Further calls
    /// return the same result.
    ///
    /// # Errors
    ///
    /// Returns an error if the answer is incomplete.
    pub fn finish(&mut self, events: &mut Vec<Event>) -> Result<StopReason, Error> {
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        let outcome = self.end(events);
        self.answer.drain(events);
        self.outcome = Some(outcome.clone());
        outcome
    }

    /// Returns the content received so far. It includes partial text and thinking, but no partial
    /// calls or signatures. A call that was cut off by the output token limit is partial.
    pub fn into_answer(self) -> Answer {
        self.answer.into_answer()
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        let allowed = bytes.len().min(self.room);
        self.room -= allowed;
        let shown = HEAD.saturating_sub(self.head.len()).min(allowed);
        self.head.extend_from_slice(&bytes[..shown]);
        let mut rest = &bytes[..allowed];
        while !rest.is_empty() && !self.answer.is_closed() {
            let (taken, frame) = self.framer.take(rest)?;
            rest = &rest[taken..];
            self.tell_of_fields();
            if let Some(frame) = frame {
                self.read(&frame, false, events)?;
            }
        }
        let over = if self.answer.is_closed() {
            0
        } else {
            bytes.len() - allowed
        };
        within(
            self.limit.saturating_add(over),
            self.limit,
            "the answer",
            "bytes",
        )
    }

    /// Warns about stream fields that the standard does not define.
    fn tell_of_fields(&mut self) {
        if !self.begun {
            return;
        }
        for field in self.framer.unknown_fields() {
            let what = format!(
                "a line of the stream has the unknown field `{}`",
                json::name(&field)
            );
            self.answer.not_read(&what);
        }
    }

    /// Reads text that has no final newline, and then ends the answer.
    fn end(&mut self, events: &mut Vec<Event>) -> Result<StopReason, Error> {
        if !self.answer.is_closed()
            && let Some(frame) = self.framer.finish()
        {
            self.read(&frame, true, events)?;
        }
        if self.begun && !self.cut && self.framer.is_whole() {
            // A single JSON value is a complete answer.
            self.answer.close();
        }
        self.parser.end(&mut self.answer);
        let is_foreign = self.foreign.is_some() && !self.cut;
        if self.begun
            || self.answer.is_closed()
            || (could_begin_an_answer(&self.head) && !is_foreign)
        {
            return self.answer.end();
        }
        let message = format!(
            "the answer is not in the wire format `{}`",
            self.wire.name()
        );
        Err(failure::not_of_format(
            message,
            self.foreign.as_ref(),
            &self.head,
        ))
    }

    /// Reads the JSON values of a frame, usually one. Invalid JSON in the `last` frame may be
    /// truncated.
    fn read(&mut self, frame: &Frame, last: bool, events: &mut Vec<Event>) -> Result<(), Error> {
        let name = frame.event.as_deref().unwrap_or_default();
        if frame.has_replacements {
            self.answer.warn(REPLACED);
        }
        for value in json::values(&frame.data) {
            match value {
                Ok(json::Element::Done) => self.answer.close(),
                Ok(json::Element::Value(value)) => self.read_value(name, &value, events)?,
                Ok(json::Element::Mended(value)) => {
                    self.answer.warn(REPLACED);
                    self.read_value(name, &value, events)?;
                }
                Err(_) if last && json::is_cut(&frame.data) => self.cut = true,
                Err(_) if self.is_beside_the_answer(name, &frame.data) => {
                    if !KEEP_ALIVE.contains(&name) {
                        let name = json::name(name);
                        self.answer
                            .not_read(&format!("the event `{name}` is unknown and is not JSON"));
                    }
                }
                Err(_) if name == "error" => {
                    return Err(failure::in_stream(&Value::String(frame.data.clone())));
                }
                Err(problem) => {
                    let message = format!("part of the answer is not JSON: {problem}");
                    let error = Error::new(Category::Provider, message).retryable();
                    return Err(error.detail(failure::snippet(frame.data.as_bytes())));
                }
            }
            if self.answer.is_closed() {
                break;
            }
        }
        Ok(())
    }

    /// Returns `true` if an event without JSON, such as `event: ping`, is not part of the answer:
    /// the wire format has no event with this name, and its data does not resemble JSON.
    fn is_beside_the_answer(&self, name: &str, data: &str) -> bool {
        let is_named = !matches!(name, "" | "error" | "message" | "data" | "completion");
        let of_format = self
            .wire
            .facts()
            .events
            .iter()
            .any(|beginning| name.starts_with(beginning));
        is_named && !of_format && !data.starts_with(['{', '['])
    }

    /// Marks the answer as begun. A foreign value received before is then part of the answer.
    fn begin(&mut self) {
        self.begun = true;
        if let Some(before) = self.foreign.take().filter(Value::is_object) {
            shape_of(self.wire).look_over("", &before, &mut self.answer);
        }
    }

    fn read_value(
        &mut self,
        name: &str,
        value: &Value,
        events: &mut Vec<Event>,
    ) -> Result<(), Error> {
        if let Value::Array(values) = value {
            if values.is_empty() {
                self.foreign.get_or_insert_with(|| value.clone());
            }
            return values
                .iter()
                .try_for_each(|value| self.read_value(name, value, events));
        }
        if !value.is_object() && !shape::is_nothing(value) && !KEEP_ALIVE.contains(&name) {
            self.answer.not_read("a JSON value that is not an object");
        }
        let is_error = name == "error" || failure::is_reported(value);
        if is_error || !name.is_empty() || is_of(self.wire, value) {
            self.begin();
        } else {
            self.foreign.get_or_insert_with(|| value.clone());
        }
        let kind = match json::text(value, "type") {
            "" => name,
            kind => kind,
        };
        if is_error {
            return Err(failure::in_stream(value));
        }
        json::note_info(&mut self.info, value);
        // If the response is not an answer, its error already covers the unknown parts.
        if value.is_object() && self.begun {
            shape_of(self.wire).look_over(kind, value, &mut self.answer);
        }
        let result = self.parser.read(kind, value, &mut self.answer);
        self.answer.drain(events);
        within(
            self.answer.block_count(),
            builder::MOST_BLOCKS,
            "the answer",
            "blocks",
        )
        .and(result)
    }
}

/// Returns `true` if a JSON value has the characteristics of a wire format.
fn is_of(wire: WireFormat, value: &Value) -> bool {
    let kind = json::text(value, "type");
    match wire.facts().answers {
        AnswerForm::Claude => ["message", "content_block", "ping"]
            .iter()
            .any(|it| kind.starts_with(it)),
        AnswerForm::Chat => {
            has(&["choices", "usage", "timings"], value)
                || json::text(value, "object").contains("completion")
        }
        AnswerForm::Responses => {
            kind.starts_with("response.") || json::text(value, "object") == "response"
        }
        AnswerForm::Gemini => has(
            &[
                "candidates",
                "usageMetadata",
                "promptFeedback",
                "responseId",
            ],
            value,
        ),
        AnswerForm::Ollama => has(&["response", "done"], value) || value["message"].is_object(),
        AnswerForm::Infill => has(&["content", "stop", "tokens_predicted"], value),
    }
}

fn has(names: &[&str], value: &Value) -> bool {
    names
        .iter()
        .any(|name| value.get(name).is_some_and(|member| !member.is_null()))
}

/// Returns `true` if the bytes may begin a stream or JSON.
fn could_begin_an_answer(head: &[u8]) -> bool {
    let head = head
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(head)
        .trim_ascii_start();
    matches!(head.first(), None | Some(b'{' | b'[')) || sse::could_begin(head)
}

/// The warning about undecodable characters.
const REPLACED: &str = "the answer contains invalid UTF-8, which was replaced by U+FFFD";

/// The names of events that only keep a connection alive.
const KEEP_ALIVE: [&str; 5] = ["ping", "keepalive", "keep-alive", "keep_alive", "heartbeat"];

/// Returns the table of known parts in answers of a wire format.
fn shape_of(wire: WireFormat) -> &'static Shape {
    match wire.facts().answers {
        AnswerForm::Claude => &anthropic::SHAPE,
        AnswerForm::Chat => &chat::SHAPE,
        AnswerForm::Responses => &responses::SHAPE,
        AnswerForm::Gemini => &gemini::SHAPE,
        AnswerForm::Ollama => &ollama::SHAPE,
        AnswerForm::Infill => &infill::SHAPE,
    }
}

/// Returns a Markdown table for the documentation. It lists the parts of an answer that are read,
/// kept, or ignored, with reasons.
#[doc(hidden)]
pub fn markdown_of(wire: WireFormat) -> String {
    shape::markdown(shape_of(wire))
}

fn parser(wire: WireFormat) -> Box<dyn AnswerParser> {
    match wire.facts().answers {
        AnswerForm::Claude => Box::new(anthropic::Anthropic::default()),
        AnswerForm::Chat => Box::new(chat::Chat::default()),
        AnswerForm::Responses => Box::new(responses::Responses::default()),
        AnswerForm::Gemini => Box::new(gemini::Gemini::default()),
        AnswerForm::Ollama => Box::new(ollama::Ollama),
        AnswerForm::Infill => Box::new(infill::Infill),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(wire: WireFormat, framing: Framing, limits: Limits) -> Decoder {
        Decoder::new(
            Source {
                api: ClientApi::Claude,
                wire,
                id_prefix: "call_".to_owned(),
            },
            framing,
            limits,
        )
    }

    #[test]
    fn the_content_type_tells_the_framing() {
        let cases = [
            (
                Some("text/event-stream; charset=utf-8"),
                WireFormat::OllamaChat,
                Framing::Sse,
            ),
            (
                Some("application/x-ndjson"),
                WireFormat::OpenAiChat,
                Framing::Lines,
            ),
            (
                Some("Application/JSON;charset=utf-8"),
                WireFormat::OpenAiChat,
                Framing::Whole,
            ),
            (
                Some("text/plain"),
                WireFormat::OllamaGenerate,
                Framing::Lines,
            ),
            (None, WireFormat::MistralFim, Framing::Sse),
        ];
        for (kind, wire, framing) in cases {
            assert_eq!(Framing::of(kind, wire), framing, "{kind:?}");
        }
    }

    #[test]
    fn after_an_error_there_is_nothing_but_the_error() {
        let mut decoder = decoder(
            WireFormat::AnthropicMessages,
            Framing::Sse,
            Limits::default(),
        );
        let mut events = Vec::new();
        let failed = decoder.push(
            b"event: error\ndata: {\"error\":{\"message\":\"no\"}}\n\ndata: {}\n\n",
            &mut events,
        );
        let error = failed.expect_err("an error event");
        assert!(decoder.is_complete());
        assert_eq!(
            decoder.push(b"data: {}\n\n", &mut events),
            Err(error.clone())
        );
        assert_eq!(decoder.finish(&mut events), Err(error));
        assert!(events.is_empty());
    }

    #[test]
    fn what_was_cut_is_not_called_strange() {
        for text in [
            "",
            "\n",
            ": waiting\n\n",
            "da",
            "event: message_start\nda",
            "data: {\"ty",
            "\u{feff}data: {",
            "{\"ty",
        ] {
            let mut decoder = decoder(
                WireFormat::AnthropicMessages,
                Framing::Sse,
                Limits::default(),
            );
            let mut events = Vec::new();
            assert_eq!(
                decoder.push(text.as_bytes(), &mut events),
                Ok(()),
                "{text:?}"
            );
            let error = decoder.finish(&mut events).expect_err("not complete");
            assert_eq!(error.category, Category::Network, "{text:?}: {error}");
        }
    }

    #[test]
    fn a_whole_value_of_another_shape_is_told_in_its_words() {
        let told = |framing, text: &str| {
            let mut decoder = decoder(WireFormat::OpenAiChat, framing, Limits::default());
            let mut events = Vec::new();
            decoder
                .push(text.as_bytes(), &mut events)
                .and_then(|()| decoder.finish(&mut events))
                .expect_err("no answer")
        };
        let cases = [
            (
                r#"{"detail":"Not authenticated"}"#,
                Category::Auth,
                "Not authenticated",
                false,
            ),
            (
                r#"{"code":40001,"message":"quota exceeded","success":false}"#,
                Category::Provider,
                "quota exceeded",
                true,
            ),
            (
                r#"{"errorMessage":"Server busy"}"#,
                Category::Provider,
                "Server busy",
                true,
            ),
            (r#"{"status":"ok","x":1}"#, Category::Provider, "ok", false),
            ("{}", Category::Provider, "{}", false),
            ("[]", Category::Provider, "[]", false),
        ];
        for (text, category, detail, retryable) in cases {
            for error in [
                told(Framing::Whole, text),
                told(Framing::Sse, &format!("data: {text}\n\n")),
            ] {
                assert_eq!(
                    error.message, "the answer is not in the wire format `openai-chat`",
                    "{text}"
                );
                assert_eq!(
                    (error.category, error.retryable),
                    (category, retryable),
                    "{text}"
                );
                assert!(
                    error
                        .detail
                        .as_deref()
                        .is_some_and(|told| told.contains(detail)),
                    "{text}: {error}"
                );
            }
            let cut = told(Framing::Whole, &text[..text.len() - 1]);
            assert_eq!(cut.category, Category::Network, "{text}: {cut}");
        }
        let unpaid = told(
            Framing::Whole,
            r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
        );
        assert_eq!(
            (unpaid.detail.as_deref(), unpaid.retryable),
            (Some("insufficient balance"), false)
        );
    }

    #[test]
    fn reasoning_alone_is_nothing_of_the_providers_own() {
        let mut decoder = decoder(WireFormat::OpenAiChat, Framing::Whole, Limits::default());
        let detail = r#"{"type":"reasoning.text","text":"Hm.","index":0}"#;
        let answer = format!(
            r#"{{"choices":[{{"message":{{"reasoning_details":[{detail}]}},"finish_reason":"stop"}}]}}"#
        );
        decoder
            .push(answer.as_bytes(), &mut Vec::new())
            .expect("an answer");
        decoder.finish(&mut Vec::new()).expect("complete");
        let blocks = decoder.into_answer().blocks;
        assert!(
            matches!(
                blocks.as_slice(),
                [crate::conversation::Block::Thinking { .. }]
            ),
            "{blocks:?}"
        );
    }

    #[test]
    fn an_answer_has_few_blocks() {
        let mut decoder = decoder(WireFormat::OllamaChat, Framing::Lines, Limits::default());
        let call = b"{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}}\n";
        let pushed = (0..10_000).find_map(|_| decoder.push(call, &mut Vec::new()).err());
        assert_eq!(
            pushed.expect("too many").message,
            "the answer has more than 1024 blocks"
        );
    }

    #[test]
    fn one_frame_cannot_bring_more_blocks_than_an_answer_has() {
        let calls: Vec<String> = (0..50_000)
            .map(|at| format!(r#"{{"index":{at},"function":{{"name":"f"}}}}"#))
            .collect();
        let frame = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}]}}}}]}}\n\n",
            calls.join(",")
        );
        let mut decoder = decoder(WireFormat::OpenAiChat, Framing::Sse, Limits::default());
        let mut events = Vec::new();
        decoder
            .push(frame.as_bytes(), &mut events)
            .expect_err("too many");
        assert!(
            events.len() <= 1025,
            "what comes after the last block is not even looked at"
        );
    }

    #[test]
    fn names_ids_and_reasons_are_short_and_on_one_line() {
        let long = "x".repeat(300);
        for (id, name, reason) in [
            ("a\nb", "f", "tool_calls"),
            (long.as_str(), "f", "a\u{1b}[31m"),
            ("a", "f", &long),
        ] {
            let calls = format!(
                r#"{{"index":0,"id":{},"function":{{"name":"{name}","arguments":"{{}}"}}}}"#,
                Value::from(id)
            );
            let frame = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}},\"finish_reason\":{}}}]}}\n\ndata: [DONE]\n\n",
                Value::from(reason)
            );
            let mut decoder = decoder(WireFormat::OpenAiChat, Framing::Sse, Limits::default());
            let mut events = Vec::new();
            decoder
                .push(frame.as_bytes(), &mut events)
                .expect("a frame");
            decoder.finish(&mut events).expect("complete");
            let told = format!("{events:?}");
            assert!(
                told.len() < 700 && !told.contains("\\n") && !told.contains("u{1b}"),
                "{told}"
            );
        }
        let call = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{long}\",\"arguments\":\"{{}}\"}}}}]}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let mut decoder = decoder(WireFormat::OpenAiChat, Framing::Sse, Limits::default());
        decoder
            .push(call.as_bytes(), &mut Vec::new())
            .expect("a frame");
        let error = decoder
            .finish(&mut Vec::new())
            .expect_err("no tool has this name");
        assert_eq!(
            error.message,
            "the answer has a tool call whose name is not a valid tool name"
        );
    }

    #[test]
    fn ids_that_were_minted_stay_unique() {
        let mut decoder = decoder(WireFormat::OllamaChat, Framing::Lines, Limits::default());
        let mut events = Vec::new();
        let calls = r#"{"message":{"tool_calls":[{"id":"call_1","function":{"name":"a"}},{"function":{"name":"b"}}]},"done":true}"#;
        decoder.push(calls.as_bytes(), &mut events).expect("a line");
        assert_eq!(decoder.finish(&mut events), Ok(StopReason::ToolUse));
        let ids: Vec<String> = decoder
            .into_answer()
            .calls
            .iter()
            .map(|call| call.id.to_string())
            .collect();
        assert_eq!(ids, ["call_1", "call_2"]);
    }
}
