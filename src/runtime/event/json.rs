//! Converts events to JSON objects, one per line, for other programs.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Event, Outcome, Refusal, ResponseInfo, StopReason, ToolCall};
use crate::conversation::{Block, Message, Usage};
use crate::runtime::Error;

/// Implements serialisation with `to_json`. There is no deserialisation, because messages and
/// images in events are abbreviated.
macro_rules! as_json {
    ($($type:ty),*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_json().serialize(serializer)
            }
        }
    )* };
}

as_json!(Event, Outcome, ToolCall, Error, ResponseInfo);

impl Event {
    /// Returns the event as an object with its name under `event`. `docs/json.md` lists the events.
    pub fn to_json(&self) -> Value {
        match self {
            Event::Message(message) => named("message", message_json(message)),
            Event::Item(item) => {
                json!({"event": "item", "kind": item.kind().name(), "text": &**item.text()})
            }
            Event::Renewed => json!({"event": "renewed"}),
            Event::Compressed {
                messages,
                summary,
                usage,
            } => json!({
                "event": "compressed", "messages": messages, "summary": &**summary, "usage": usage.to_json(),
            }),
            Event::TurnStart { round } => json!({"event": "turn_start", "round": round}),
            Event::AnswerStart(info) => named("answer_start", info.to_json()),
            Event::Text(text) => json!({"event": "text", "text": text}),
            Event::Thinking(text) => json!({"event": "thinking", "text": text}),
            Event::ToolCallStart { id, name } => {
                json!({"event": "tool_call_start", "id": &**id, "name": &**name})
            }
            Event::ToolCallArguments { id, json } => {
                json!({"event": "tool_call_arguments", "id": &**id, "json": json})
            }
            Event::ToolCallEnd(call) => named("tool_call_end", call.to_json()),
            Event::ToolProgress { id, text } => {
                json!({"event": "tool_progress", "id": &**id, "text": text})
            }
            Event::ToolResult { id, name, output } => json!({
                "event": "tool_result", "id": &**id, "name": &**name,
                "content": &*output.content, "is_error": output.is_error, "images": output.images.len(),
            }),
            Event::ProviderBlock {
                block,
                is_open_call,
            } => json!({
                "event": "provider_block", "kind": block.kind(), "origin": &*block.origin, "data": block.data,
                "text": block.text.as_deref(), "is_open_call": is_open_call,
            }),
            Event::Usage(usage) => named("usage", usage.to_json()),
            Event::Cost(usd) => json!({"event": "cost", "usd": usd}),
            Event::Retry {
                attempt,
                delay,
                error,
            } => json!({
                "event": "retry", "attempt": attempt, "delay_ms": delay.as_millis() as u64, "error": error.to_json(),
            }),
            Event::Warning(message) => json!({"event": "warning", "message": message}),
            Event::Refused(Refusal {
                category,
                explanation,
            }) => {
                json!({"event": "refused", "category": category, "explanation": explanation})
            }
            Event::TurnEnd { stop } => named("turn_end", stop_json(stop)),
            Event::TurnCutOff {
                reason,
                kept,
                error,
            } => json!({
                "event": "turn_cut_off", "reason": reason.name(), "kept": kept,
                "error": error.as_ref().map(Error::to_json),
            }),
            Event::Done(outcome) => named("done", outcome.to_json()),
        }
    }
}

impl Outcome {
    /// Returns the outcome: `finished` with a stop reason, `failed` with an error, or `cancelled`.
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
    /// Returns the call; if the arguments are malformed, `input` is null and `malformed` contains
    /// them.
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
    /// Returns the error as an object: the category, the message and the other fields.
    pub fn to_json(&self) -> Value {
        let mut members = json!({
            "category": self.category.name(), "message": self.message, "detail": self.detail,
            "status": self.status, "retryable": self.retryable,
            "retry_after_ms": self.retry_after.map(|wish| wish.as_millis()),
        });
        merge(
            &mut members,
            self.response
                .as_deref()
                .cloned()
                .unwrap_or_default()
                .to_json(),
        );
        members
    }
}

impl ResponseInfo {
    /// Returns the IDs and the model by name, each `null` if unknown.
    pub fn to_json(&self) -> Value {
        json!({
            "request_id": self.request_id.as_deref(), "response_id": self.response_id.as_deref(),
            "model": self.model.as_deref(),
        })
    }
}

impl Usage {
    /// Returns the token counts by name.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

/// Returns an abbreviated message: its text, the IDs of the calls that it answers, and the number
/// of other blocks.
fn message_json(message: &Message) -> Value {
    let (mut text, mut results, mut other) = (String::new(), Vec::new(), 0_usize);
    for block in &message.blocks {
        match block {
            Block::Text(piece) => text.push_str(piece),
            Block::ToolResult { id, .. } => results.push(&**id),
            _ => other += 1,
        }
    }
    json!({"role": message.role.name(), "text": text, "tool_results": results, "other_blocks": other})
}

fn stop_json(stop: &StopReason) -> Value {
    match stop {
        StopReason::Stopped(reason) => json!({"stop": stop.name(), "reason": reason}),
        stop => json!({"stop": stop.name()}),
    }
}

/// Returns a JSON object whose first member is the event's name.
pub(crate) fn named(event: &str, members: Value) -> Value {
    let mut named = Value::Object(Map::from_iter([("event".to_owned(), event.into())]));
    merge(&mut named, members);
    named
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
