//! The output of an answer: human-readable, as events, or as a single result.

use serde_json::{Value, json};

use super::super::Terminal;
use super::super::args::Format;
use crate::compile::Report;
use crate::conversation::Task;
use crate::provider::Header;
use crate::report::findings_json;
use crate::runtime::clean::{AnswerPlace, clean};
use crate::runtime::{Compiled, Error, Event, Outcome, Refusal, Session, Usage, named};
use crate::text::{Text, cut, mask_strings, text};

/// Returns the request as it would be sent, with placeholders for keys.
pub(super) fn dry_run(compiled: &Compiled) -> Text {
    let mut head = text!("{} {}\n", compiled.line.method, compiled.line.url);
    for Header { name, value } in &compiled.line.headers {
        head.push(&text!("{}: {}\n", name, value.to_string()));
    }
    text!("{}\n{}", head, Text::json_text(&compiled.body.pretty()))
}

/// The end of the JSON output if nothing was sent.
pub(super) struct Ending<'e> {
    request: Value,
    outcome: Value,
    found: Option<&'e Report>,
}

impl<'e> Ending<'e> {
    /// Creates the ending for an error, with the findings that caused it.
    pub(super) fn failed(error: Error, found: Option<&'e Report>) -> Ending<'e> {
        Ending {
            request: Value::Null,
            outcome: Outcome::Failed(error).to_json(),
            found,
        }
    }

    /// Creates the ending for a run that was not meant to send anything.
    pub(super) fn as_asked() -> Ending<'e> {
        Ending {
            request: Value::Null,
            outcome: json!({"state": "not_sent"}),
            found: None,
        }
    }

    /// Adds the request.
    pub(super) fn with_request(self, request: Value) -> Ending<'e> {
        Ending { request, ..self }
    }

    /// Prints the ending, on one or two lines or as one document. Keys in it are masked, except in
    /// the request, which is printed unchanged on demand.
    pub(super) fn print(mut self, format: Format, terminal: &mut Terminal) {
        mask_strings(&mut self.outcome);
        let mut found = self.found.map(|found| Value::from(findings_json(found)));
        found.iter_mut().for_each(mask_strings);
        match format {
            Format::Events => self.print_events(found, terminal),
            _ => self.print_document(found, terminal),
        }
    }

    fn print_events(self, found: Option<Value>, terminal: &mut Terminal) {
        if !self.request.is_null() {
            terminal.json_line(&named("request", self.request));
        }
        let mut last = named("done", self.outcome);
        if let Some(found) = found {
            last["diagnostics"] = found;
        }
        terminal.json_line(&last);
    }

    fn print_document(self, found: Option<Value>, terminal: &mut Terminal) {
        let mut document = json!({
            "request": self.request,
            "outcome": self.outcome,
            "text": "",
            "tool_calls": [],
            "provider_blocks": [],
            "usage": Usage::default().to_json(),
            "cost_usd": null,
        });
        if let Some(found) = found {
            document["diagnostics"] = found;
        }
        terminal.json_data(&document);
    }
}

/// Prints events as they arrive.
pub(super) struct Printer<'t> {
    format: Format,
    terminal: &'t mut Terminal,
    text: String,
    /// `true` if standard output ends with an incomplete line.
    mid_line: bool,
    calls: Vec<Value>,
    own: Vec<Value>,
    /// The text of a round, which is cleaned when it is complete.
    held: Option<Held>,
}

/// Text that is held back, and the text around the place where it will be inserted.
#[derive(Default)]
pub(super) struct Held {
    text: String,
    prefix: String,
    suffix: String,
}

impl Held {
    /// Creates an empty buffer for the answer to this task.
    pub(super) fn for_task(task: &Task) -> Held {
        match task {
            Task::Completion { prefix, suffix } => Held {
                text: String::new(),
                prefix: prefix.clone(),
                suffix: suffix.clone(),
            },
            Task::Chat(_) => Held::default(),
        }
    }

    /// Returns the text received since the last call, cleaned.
    fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        let place = AnswerPlace {
            prefix: &self.prefix,
            suffix: &self.suffix,
            ..AnswerPlace::default()
        };
        clean(&text, &place).into_owned()
    }
}

impl Printer<'_> {
    pub(super) fn new(format: Format, terminal: &mut Terminal) -> Printer<'_> {
        let (calls, own) = (Vec::new(), Vec::new());
        Printer {
            format,
            terminal,
            text: String::new(),
            mid_line: false,
            calls,
            own,
            held: None,
        }
    }

    /// Holds back the text of each round until it is complete, and cleans it.
    pub(super) fn cleaning(self, held: Option<Held>) -> Self {
        Printer { held, ..self }
    }

    /// Prints the text that was held back.
    fn release(&mut self) {
        let text = self.held.as_mut().map(Held::take).unwrap_or_default();
        if !text.is_empty() {
            self.show(&Event::Text(text));
        }
    }

    /// Returns `true` if the reader of the output has gone away.
    pub(super) fn is_closed(&self) -> bool {
        self.terminal.is_closed()
    }

    pub(super) fn event(&mut self, event: &Event) {
        match (event, &mut self.held) {
            (Event::Text(text), Some(held)) => return held.text.push_str(text),
            (Event::TurnEnd { .. } | Event::TurnCutOff { .. }, Some(_)) => self.release(),
            _ => {}
        }
        self.show(event);
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Text(text) => self.text.push_str(text),
            Event::ToolCallEnd(call) => self.calls.push(call.to_json()),
            Event::ProviderBlock { .. } => self.own.push(event.to_json()),
            _ => {}
        }
        match self.format {
            Format::Events => self.terminal.json_line(&event.to_json()),
            Format::Json => {}
            _ => self.tell(event),
        }
    }

    /// Writes the answer to standard output, and everything else to standard error.
    fn tell(&mut self, event: &Event) {
        match event {
            Event::Text(text) => {
                self.terminal.foreign(text);
                self.mid_line = !text.ends_with('\n');
            }
            Event::ToolCallEnd(call) => {
                let input = call
                    .input
                    .as_ref()
                    .map_or_else(|malformed| malformed.text.clone(), Value::to_string);
                self.note(&format!("{}({})", call.name, shortened(&input)));
            }
            Event::ToolProgress { text, .. } => self.note(&shortened(text)),
            Event::ToolResult { name, output, .. } => {
                let what = if output.is_error {
                    "failed"
                } else {
                    "returned"
                };
                let said = match shortened(&output.content) {
                    said if said.is_empty() && output.images.is_empty() => "(no output)".to_owned(),
                    said => said,
                };
                self.note(&format!("{name} {what}: {said}"));
            }
            Event::ProviderBlock {
                block,
                is_open_call: true,
            } => {
                let name = ["/name", "/custom/name"]
                    .into_iter()
                    .find_map(|at| block.data.pointer(at)?.as_str());
                let name = shortened(name.unwrap_or_default());
                let called = if name.is_empty() {
                    block.kind().to_owned()
                } else {
                    format!("{} {name}", block.kind())
                };
                self.note(&format!(
                    "{called}: a provider-specific call, which no tool here handles"
                ));
            }
            Event::Compressed { messages, .. } => {
                self.note(&format!("{messages} messages were replaced with a summary"));
            }
            Event::Renewed => {
                self.note(
                    "the system prompt and the tools were renewed; earlier thinking may be left out",
                );
            }
            Event::Warning(message) => self.note(message),
            Event::Refused(refusal) => self.note(&refused(refusal)),
            Event::Retry {
                attempt,
                delay,
                error,
            } => {
                self.note(&format!(
                    "{error}; attempt {attempt} in {:.1} s",
                    delay.as_secs_f64()
                ));
            }
            _ => {}
        }
    }

    fn note(&mut self, line: &str) {
        self.end_line();
        self.terminal.note(line);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            self.terminal.text(&text!("\n"));
        }
    }

    pub(super) fn end(mut self, session: &Session, compiled: &Compiled, ended: &Outcome) {
        self.release();
        match self.format {
            Format::Events => self
                .terminal
                .json_line(&Event::Done(ended.clone()).to_json()),
            Format::Json => {
                let result = json!({
                    "request": {"method": compiled.line.method, "url": compiled.line.url},
                    "outcome": ended.to_json(),
                    "text": self.text,
                    "tool_calls": self.calls,
                    "provider_blocks": self.own,
                    "usage": session.usage().to_json(),
                    "cost_usd": session.cost(),
                });
                self.terminal.json_data(&result);
            }
            _ => {
                self.end_line();
                match ended {
                    Outcome::Finished(stop) if self.text.trim().is_empty() => {
                        self.terminal.note(&format!(
                            "the answer has no text (stop reason: {})",
                            stop.name()
                        ));
                    }
                    Outcome::Finished(stop) if stop.name() == "end_turn" => {}
                    Outcome::Finished(stop) => {
                        self.terminal.note(&format!("stopped: {}", stop.name()));
                    }
                    Outcome::Failed(error) => Terminal::fail(&error.to_string(), None),
                    Outcome::Cancelled => self.terminal.note("cancelled"),
                }
            }
        }
    }
}

/// Returns the provider's reason for refusing an answer, if it gave one.
fn refused(refusal: &Refusal) -> String {
    let words = [refusal.category.as_deref(), refusal.explanation.as_deref()];
    let words: Vec<String> = words.into_iter().flatten().map(shortened).collect();
    let why = if words.is_empty() {
        "the provider does not give a reason".to_owned()
    } else {
        words.join(": ")
    };
    format!("refused: {why}")
}

/// Returns the beginning of a string, on one line.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 160;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, MOST).into_owned()
}
