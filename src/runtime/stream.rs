//! Bytes of an answer → events and an [`Answer`].
//!
//! Pure: bytes in, events out, no clock and no network, so that every transcript can be replayed at every split. A
//! [`Decoder`] is made of three parts: framing (SSE, lines, or one JSON value), the dialect of a wire format (a
//! frame → parts), and the assembly of parts into events and blocks. All are bounded by [`Limits`].
//!
//! Events are made per frame, never per chunk: they are the same however the bytes were cut. A stream and a whole
//! answer have the same shapes in all but one wire format, so a dialect reads both.

mod anthropic;
mod assembly;
mod chat;
mod framing;
mod gemini;
mod infill;
mod json;
mod ollama;
mod responses;
mod sse;

use serde_json::Value;

use super::{Answer, Category, Error, Event, StopReason, failure};
use crate::provider::{ClientApi, WireFormat};
use assembly::Assembly;
use framing::{Frame, Framer};

/// How much of an answer is taken before it counts as broken, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One line of a stream.
    pub line: usize,
    /// One event of a stream, or one whole answer.
    pub event: usize,
    /// Everything together, as it comes over the wire.
    pub answer: usize,
}

impl Default for Limits {
    /// 16 MiB a line, 16 MiB an event, 64 MiB an answer: an image of 10 MB in base64 fits.
    fn default() -> Limits {
        const MIB: usize = 1024 * 1024;
        Limits { line: 16 * MIB, event: 16 * MIB, answer: 64 * MIB }
    }
}

/// How an answer is cut into JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// One JSON value a line.
    Lines,
    /// One JSON value.
    Whole,
}

impl Framing {
    /// The framing of an answer by its `content-type`; what the wire format streams with, if that says nothing.
    pub fn of(content_type: Option<&str>, wire: WireFormat) -> Framing {
        let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "text/event-stream" => Framing::Sse,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Framing::Lines,
            "application/json" => Framing::Whole,
            _ if matches!(wire, WireFormat::OllamaChat | WireFormat::OllamaGenerate) => Framing::Lines,
            _ => Framing::Sse,
        }
    }
}

/// What a decoder must know of the request whose answer it reads.
#[derive(Debug, Clone)]
pub struct Source {
    /// The client API: thinking gets its name as origin.
    pub api: ClientApi,
    /// The wire format.
    pub wire: WireFormat,
    /// What ids of calls begin with that the provider gave none, for instance `call_3_`; unique in a history.
    pub id_prefix: String,
}

/// What a wire format makes of a frame.
trait Dialect: Send {
    /// Reads one JSON value of the answer. `kind` is its `type`, or else the name of its event, or else empty.
    fn read(&mut self, kind: &str, value: &Value, answer: &mut Assembly) -> Result<(), Error>;
}

/// Reads one answer.
pub struct Decoder {
    framer: Framer,
    dialect: Box<dyn Dialect>,
    answer: Assembly,
    wire: WireFormat,
    /// Bytes that may still come.
    room: usize,
    limit: usize,
    /// How the answer begins, to show when it is none.
    head: Vec<u8>,
    /// Whether any JSON came.
    begun: bool,
    outcome: Option<Result<StopReason, Error>>,
}

/// How many bytes of an answer are kept to show them.
const HEAD: usize = 1024;

impl Decoder {
    /// A decoder for the answer to one request.
    pub fn new(source: Source, framing: Framing, limits: Limits) -> Decoder {
        Decoder {
            framer: Framer::new(framing, limits),
            dialect: dialect(source.wire),
            wire: source.wire,
            answer: Assembly::new(source),
            room: limits.answer,
            limit: limits.answer,
            head: Vec::new(),
            begun: false,
            outcome: None,
        }
    }

    /// Takes the next bytes and adds the events that they complete.
    ///
    /// # Errors
    ///
    /// The answer broke: the provider reported an error, sent what is not its format, or too much. Nothing more may be
    /// pushed; [`Decoder::into_answer`] has what came before.
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

    /// Whether the answer has come to its end: nothing that follows matters.
    pub fn is_complete(&self) -> bool {
        self.answer.is_closed() || self.outcome.is_some()
    }

    /// Ends the answer where the connection ends, and adds the last events. Asked again, it says the same again.
    ///
    /// # Errors
    ///
    /// The answer is not complete.
    pub fn finish(&mut self, events: &mut Vec<Event>) -> Result<StopReason, Error> {
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        let outcome = self.end(events);
        self.answer.drain(events);
        self.outcome = Some(outcome.clone());
        outcome
    }

    /// What the model said, as far as it came: partial text and thinking are there, partial calls and partial signatures
    /// are not. A call that the limit of output tokens cut is partial.
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
            if let Some(frame) = frame {
                self.read(&frame, events)?;
            }
        }
        if allowed < bytes.len() && !self.answer.is_closed() {
            let message = format!("the answer is longer than {} bytes", self.limit);
            return Err(Error::new(Category::Provider, message));
        }
        Ok(())
    }

    /// Reads what was never ended by a line end, then ends the answer. A last frame that is no JSON was cut off.
    fn end(&mut self, events: &mut Vec<Event>) -> Result<StopReason, Error> {
        if !self.answer.is_closed()
            && let Some(frame) = self.framer.finish()
        {
            let cut = json::is_cut(&frame.data);
            match self.read(&frame, events) {
                Err(error) if !(cut && error.category == Category::Provider) => return Err(error),
                _ => {}
            }
        }
        let strange = !self.begun && !self.answer.is_closed() && !self.head.trim_ascii().is_empty();
        if strange && !matches!(self.head.trim_ascii_start().first(), Some(b'{' | b'[')) {
            return Err(self.not_an_answer());
        }
        self.answer.end()
    }

    fn not_an_answer(&self) -> Error {
        let message = format!("the answer is not of the wire format `{}`", self.wire.name());
        Error::new(Category::Provider, message).detail(failure::snippet(&self.head))
    }

    /// Reads the JSON values of a frame: usually one.
    fn read(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<(), Error> {
        let name = frame.event.as_deref().unwrap_or_default();
        for value in json::values(&frame.data) {
            match value {
                Ok(json::Item::Done) => self.answer.close(),
                Ok(json::Item::Value(value)) => self.read_value(name, &value, events)?,
                Err(_) if name == "error" => return Err(failure::in_stream(&Value::String(frame.data.clone()))),
                Err(problem) => {
                    let message = format!("a part of the answer is no JSON: {problem}");
                    return Err(Error::new(Category::Provider, message).detail(failure::snippet(frame.data.as_bytes())));
                }
            }
            if self.answer.is_closed() {
                break;
            }
        }
        Ok(())
    }

    fn read_value(&mut self, name: &str, value: &Value, events: &mut Vec<Event>) -> Result<(), Error> {
        if let Value::Array(values) = value {
            return values
                .iter()
                .filter(|value| value.is_object())
                .try_for_each(|value| self.read_value(name, value, events));
        }
        self.begun = true;
        let kind = match json::text(value, "type") {
            "" => name,
            kind => kind,
        };
        if name == "error" || failure::is_reported(value) {
            return Err(failure::in_stream(value));
        }
        let result = self.dialect.read(kind, value, &mut self.answer);
        self.answer.drain(events);
        result
    }
}

fn dialect(wire: WireFormat) -> Box<dyn Dialect> {
    match wire {
        WireFormat::AnthropicMessages => Box::new(anthropic::Anthropic::default()),
        WireFormat::OpenAiChat | WireFormat::MistralChat | WireFormat::MistralFim => Box::new(chat::Chat::default()),
        WireFormat::OpenAiResponses => Box::new(responses::Responses::default()),
        WireFormat::GoogleGenerateContent => Box::new(gemini::Gemini),
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => Box::new(ollama::Ollama),
        WireFormat::LlamaCppInfill => Box::new(infill::Infill),
    }
}
