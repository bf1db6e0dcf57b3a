//! Anthropic Messages.
//!
//! Events as in the Python SDK 2.12 (`types/raw_message_stream_event.py`, `types/raw_content_block_delta.py`); a whole
//! answer is `types/message.py`. The terminal event is `message_stop`; gateways leave it out (esengine/DeepSeek-Reasonix#8756,
//! tombii/better-ccflare#307). Stop reasons (`types/stop_reason.py`):
//!
//! | provider | here |
//! | --- | --- |
//! | `end_turn` | end of turn |
//! | `tool_use` | tool use |
//! | `max_tokens`, `model_context_window_exceeded` | limit of tokens |
//! | `stop_sequence` | stop sequence |
//! | `refusal` | refusal |
//! | `pause_turn` | paused: the session asks again |
//! | others | in their own word |
//!
//! Usage (`types/usage.py`): `input_tokens` counts neither what was read from a cache nor what was written to one; the
//! figures of `message_delta` are cumulative and replace those of `message_start`.
//!
//! Blocks of other types, among them those of tools that the server runs, are kept as the provider's own: as they came, with
//! the pieces of `input_json_delta` as their `input` and those of other deltas put together. So is a text with citations. A call
//! that a program of the server made (`caller`) becomes a call like any other, with a warning.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex};
use super::json::{count, items, set, text};
use crate::runtime::{Error, StopReason};

#[derive(Default)]
pub(super) struct Anthropic {
    blocks: HashMap<u64, Open>,
    stop: Option<StopReason>,
    tokens: Tokens,
}

/// A block on its way.
struct Open {
    place: BlockIndex,
    /// The arguments of the block's start, which count if no pieces follow.
    input: Value,
    /// Whether the block is the provider's own.
    own: bool,
    /// The pieces of its arguments.
    json: String,
    citations: Vec<Value>,
}

#[derive(Default)]
struct Tokens {
    fresh: u64,
    read: u64,
    written: u64,
}

impl AnswerParser for Anthropic {
    fn read(&mut self, kind: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        let index = count(value, "/index").unwrap_or_default();
        match kind {
            "message_start" => self.usage(&value["message"], answer),
            "content_block_start" => self.start(index, &value["content_block"], answer),
            "content_block_delta" => self.delta(index, &value["delta"], answer),
            "content_block_stop" => self.end_block(index, answer),
            "message_delta" => {
                self.usage(value, answer);
                self.stop_reason(&value["delta"], answer);
            }
            "message_stop" => self.complete(answer),
            "message" => self.whole(value, answer),
            _ => {}
        }
        Ok(())
    }

    /// Some gateways close the stream without `message_stop`. With a reason to stop, and each block ended, nothing is missing.
    fn end(&mut self, answer: &mut AnswerBuilder) {
        if self.stop.is_some() && self.blocks.is_empty() {
            self.complete(answer);
        }
    }
}

impl Anthropic {
    fn whole(&mut self, message: &Value, answer: &mut AnswerBuilder) {
        self.usage(message, answer);
        for (index, block) in (0..).zip(items(message, "content")) {
            self.start(index, block, answer);
            self.end_block(index, answer);
        }
        self.stop_reason(message, answer);
        self.complete(answer);
    }

    fn start(&mut self, index: u64, block: &Value, answer: &mut AnswerBuilder) {
        let place = match text(block, "type") {
            "text" => answer.open_text(),
            "thinking" => answer.open_thinking(),
            "redacted_thinking" => return answer.redacted(text(block, "data")),
            "tool_use" => {
                if is_of_program(block) {
                    answer.warn("a program that the server runs called a tool: the next request says so no more");
                }
                answer.open_call(text(block, "id"), text(block, "name"))
            }
            "" => return,
            _ => answer.open_own(block.clone()),
        };
        let own = answer.own_data(place).is_some();
        answer.text_at(place, text(block, "text"));
        answer.thinking_at(place, text(block, "thinking"));
        answer.signature_at(place, text(block, "signature"));
        let citations = items(block, "citations").to_vec();
        self.blocks.insert(index, Open { place, input: block["input"].clone(), own, json: String::new(), citations });
    }

    /// A piece of a block. Pieces of a block that never started are dropped.
    fn delta(&mut self, index: u64, delta: &Value, answer: &mut AnswerBuilder) {
        let Some(Open { place, own, json, citations, .. }) = self.blocks.get_mut(&index) else { return };
        match text(delta, "type") {
            "input_json_delta" if *own => json.push_str(text(delta, "partial_json")),
            _ if *own => grow(*place, delta, answer),
            "citations_delta" => citations.extend(delta.get("citation").cloned()),
            "text_delta" => answer.text_at(*place, text(delta, "text")),
            "thinking_delta" => answer.thinking_at(*place, text(delta, "thinking")),
            "signature_delta" => answer.signature_at(*place, text(delta, "signature")),
            "input_json_delta" => answer.arguments(*place, text(delta, "partial_json")),
            _ => {}
        }
    }

    fn end_block(&mut self, index: u64, answer: &mut AnswerBuilder) {
        let Some(Open { place, input, own, json, citations }) = self.blocks.remove(&index) else { return };
        if own {
            return end_own(place, &json, answer);
        }
        // The API refuses a blank text, also one with citations.
        if !citations.is_empty() && answer.has_words(place) {
            return answer.text_as_own(place, |text| json!({"type": "text", "text": text, "citations": citations}));
        }
        answer.seal(place);
        let empty = input.as_object().is_some_and(serde_json::Map::is_empty);
        if answer.is_blank(place) && !empty {
            answer.arguments_value(place, &input);
        }
        answer.end_call(place);
    }

    fn stop_reason(&mut self, value: &Value, answer: &mut AnswerBuilder) {
        let details = &value["stop_details"];
        answer.refused_for(text(details, "category"), text(details, "explanation"));
        self.stop = match text(value, "stop_reason") {
            "" => return,
            "end_turn" => Some(StopReason::EndTurn),
            "tool_use" => Some(StopReason::ToolUse),
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
            "stop_sequence" => Some(StopReason::StopSequence),
            "refusal" => Some(StopReason::Refusal),
            "pause_turn" => Some(StopReason::Paused),
            other => Some(StopReason::Other(other.to_owned())),
        };
    }

    fn complete(&mut self, answer: &mut AnswerBuilder) {
        answer.stop(self.stop.take().unwrap_or(StopReason::EndTurn));
        answer.close();
    }

    fn usage(&mut self, value: &Value, answer: &mut AnswerBuilder) {
        set(&mut self.tokens.fresh, count(value, "/usage/input_tokens"));
        set(&mut self.tokens.read, count(value, "/usage/cache_read_input_tokens"));
        set(&mut self.tokens.written, count(value, "/usage/cache_creation_input_tokens"));
        let usage = answer.usage();
        usage.cache_read = self.tokens.read;
        usage.cache_write = self.tokens.written;
        usage.input = self.tokens.fresh.saturating_add(self.tokens.read).saturating_add(self.tokens.written);
        set(&mut usage.output, count(value, "/usage/output_tokens"));
        set(&mut usage.reasoning, count(value, "/usage/output_tokens_details/thinking_tokens"));
    }
}

/// Whether a call was not made by the model itself (`anthropic` 2.12, `types/tool_use_block.py`).
fn is_of_program(call: &Value) -> bool {
    let caller = text(&call["caller"], "type");
    !caller.is_empty() && caller != "direct"
}

/// A piece of a block of the provider's own: its texts go on with those of the block, other members replace them.
fn grow(place: BlockIndex, delta: &Value, answer: &mut AnswerBuilder) {
    let Some(Value::Object(block)) = answer.own_data(place) else { return };
    for (key, piece) in delta.as_object().into_iter().flatten().filter(|(key, _)| *key != "type") {
        match (block.get_mut(key), piece) {
            (Some(Value::String(text)), Value::String(piece)) => text.push_str(piece),
            _ => drop(block.insert(key.clone(), piece.clone())),
        }
    }
}

/// The end of a block of the provider's own. One whose arguments are no JSON is not whole.
fn end_own(place: BlockIndex, arguments: &str, answer: &mut AnswerBuilder) {
    let Some(block) = answer.own_data(place) else { return };
    if !arguments.trim().is_empty() {
        match serde_json::from_str::<Value>(arguments) {
            Ok(input) => block["input"] = input,
            Err(_) => return answer.warn("a call of the provider's own tool has malformed arguments"),
        }
    }
    answer.seal(place);
}
