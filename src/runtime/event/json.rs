//! Events as JSON: one line each, for programs.

use serde_json::{Map, Value, json};

use super::{Event, Outcome, StopReason, ToolCall};
use crate::conversation::Usage;
use crate::runtime::Error;

impl Event {
    /// The event as an object with its name under `event`; `docs/json.md` lists them.
    pub fn to_json(&self) -> Value {
        match self {
            Event::TurnStart { round } => json!({"event": "turn_start", "round": round}),
            Event::Text(text) => json!({"event": "text", "text": text}),
            Event::Thinking(text) => json!({"event": "thinking", "text": text}),
            Event::ToolCallStart { id, name } => json!({"event": "tool_call_start", "id": &**id, "name": &**name}),
            Event::ToolCallArguments { id, json } => {
                json!({"event": "tool_call_arguments", "id": &**id, "json": json})
            }
            Event::ToolCallEnd(call) => named("tool_call_end", call.to_json()),
            Event::ToolProgress { id, text } => json!({"event": "tool_progress", "id": &**id, "text": text}),
            Event::ToolResult { id, name, output } => json!({
                "event": "tool_result", "id": &**id, "name": &**name,
                "content": &*output.content, "is_error": output.is_error, "images": output.images.len(),
            }),
            Event::Usage(usage) => named("usage", usage.to_json()),
            Event::Retry { attempt, delay, error } => json!({
                "event": "retry", "attempt": attempt, "delay_ms": delay.as_millis() as u64, "error": error.to_json(),
            }),
            Event::Warning(message) => json!({"event": "warning", "message": message}),
            Event::TurnEnd { stop } => named("turn_end", stop_json(stop)),
            Event::Done(outcome) => named("done", outcome.to_json()),
        }
    }
}

impl Outcome {
    /// `finished` with a stop reason, `failed` with an error, or `cancelled`.
    pub fn to_json(&self) -> Value {
        match self {
            Outcome::Finished(stop) => {
                let mut members = json!({"state": "finished"});
                merge(&mut members, stop_json(stop));
                members
            }
            Outcome::Failed(error) => json!({"state": "failed", "error": error.to_json()}),
            Outcome::Cancelled => json!({"state": "cancelled"}),
        }
    }
}

impl ToolCall {
    /// The call; `input` is null if the arguments are malformed, and `malformed` has what they were.
    pub fn to_json(&self) -> Value {
        match &self.input {
            Ok(input) => json!({"id": &*self.id, "name": &*self.name, "input": input}),
            Err(malformed) => json!({
                "id": &*self.id, "name": &*self.name, "input": null,
                "malformed": {"text": malformed.text, "problem": malformed.problem},
            }),
        }
    }
}

impl Error {
    /// Category, message and what else is known.
    pub fn to_json(&self) -> Value {
        json!({
            "category": self.category.name(), "message": self.message, "detail": self.detail,
            "status": self.status, "retryable": self.retryable,
        })
    }
}

impl Usage {
    /// The counts by name.
    pub fn to_json(&self) -> Value {
        json!({
            "input": self.input, "output": self.output, "cache_read": self.cache_read,
            "cache_write": self.cache_write, "reasoning": self.reasoning,
        })
    }
}

fn stop_json(stop: &StopReason) -> Value {
    match stop {
        StopReason::Stopped(reason) => json!({"stop": stop.name(), "reason": reason}),
        stop => json!({"stop": stop.name()}),
    }
}

/// An object with the event's name as its first member.
fn named(event: &str, members: Value) -> Value {
    let mut named = Value::Object(Map::from_iter([("event".to_owned(), event.into())]));
    merge(&mut named, members);
    named
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
