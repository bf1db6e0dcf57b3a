//! Anthropic Messages.
//!
//! The events are those in the Python SDK 2.12 (`types/raw_message_stream_event.py`,
//! `types/raw_content_block_delta.py`); a whole answer is a message (`types/message.py`). The
//! terminal event is `message_stop`, which gateways omit (esengine/DeepSeek-Reasonix#8756,
//! tombii/better-ccflare#307). Stop reasons (`types/stop_reason.py`):
//!
//! | provider | here |
//! | --- | --- |
//! | `end_turn` | end of turn |
//! | `tool_use` | tool use |
//! | `max_tokens`, `model_context_window_exceeded` | token limit |
//! | `stop_sequence` | stop sequence |
//! | `refusal` | refusal |
//! | `pause_turn` | paused: the session asks again |
//! | others | the provider's own word |
//!
//! Usage (`types/usage.py`): `input_tokens` excludes the tokens read from and written to a cache;
//! the figures of `message_delta` are cumulative and replace those of `message_start`.
//!
//! Blocks of other types, including those of server tools, are kept unchanged as provider-specific
//! blocks; the pieces of `input_json_delta` become their `input`, and other deltas are merged. Text
//! with citations is kept in the same way. A call made by a program on the server (`caller`)
//! becomes an ordinary call, with a warning.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex};
use super::json::{self, count, items, set, text};
use super::shape::{self, EVENTS, Kind, Member, Shape};
use super::shape::{always, any, apart, beside, ignored, is_nothing, kept, kind, number, within};
use crate::runtime::{Error, StopReason};

/// The table of events, and of the whole answer.
pub(super) static SHAPE: Shape = Shape::new(EVENTS, &[]).with_kinds(KINDS);

const KINDS: &[Kind] = &[
    kind(&["message_start"], START),
    kind(&["content_block_start"], BLOCK_START),
    kind(&["content_block_delta"], BLOCK_DELTA),
    kind(&["content_block_stop"], &[number(&["index"])]),
    kind(&["message_delta"], MESSAGE_DELTA),
    kind(
        &["message_stop"],
        &[ignored(&["amazon-bedrock-invocationMetrics"], GATEWAY)],
    ),
    kind(&["ping"], &[]),
    kind(&["message"], MEMBERS),
];

const START: &[Member] = &[within(&["message"], &MESSAGE)];

const BLOCK_START: &[Member] = &[number(&["index"]), within(&["content_block"], &BLOCK)];

const BLOCK_DELTA: &[Member] = &[number(&["index"]), apart(&["delta"], &DELTA)];

const GATEWAY: &str = "a gateway's measurements of time and tokens";

const MESSAGE_DELTA: &[Member] = &[
    within(&["delta"], &STOP),
    within(&["usage"], &USAGE),
    beside(&["context_management", "container"]),
];

static MESSAGE: Shape = Shape::new("message", MEMBERS);

const MEMBERS: &[Member] = &[
    shape::text(&["id", "model", "stop_reason"]),
    within(&["content"], &BLOCK),
    within(&["stop_details"], &STOP_DETAILS),
    within(&["usage"], &USAGE),
    beside(&["container", "context_management"]),
    always(&["type"], &["message"]),
    always(&["role"], &["assistant"]),
    ignored(&["stop_sequence"], STOP_SEQUENCE),
];

const STOP_SEQUENCE: &str = "the outcome already reports the stop sequence";

static STOP: Shape = Shape::new(
    "message_delta.delta",
    &[
        shape::text(&["stop_reason"]),
        within(&["stop_details"], &STOP_DETAILS),
        beside(&["container", "context_management"]),
        ignored(&["stop_sequence"], STOP_SEQUENCE),
    ],
);

static STOP_DETAILS: Shape = Shape::new(
    "stop_details",
    &[
        shape::text(&["category", "explanation"]),
        always(&["type"], &["refusal"]),
    ],
);

static USAGE: Shape = Shape::new(
    "usage",
    &[
        number(&["input_tokens", "output_tokens"]),
        number(&["cache_read_input_tokens", "cache_creation_input_tokens"]),
        within(&["output_tokens_details"], &OUTPUT_DETAILS),
        ignored(
            &["cache_creation"],
            "it splits `cache_creation_input_tokens` by lifetime",
        ),
        ignored(
            &["server_tool_use"],
            "it counts calls, not tokens; the calls are kept",
        ),
        ignored(
            &["service_tier", "inference_geo", "speed"],
            "how the request was served",
        ),
        ignored(&["iterations"], "the parts of the sums above"),
    ],
);

static OUTPUT_DETAILS: Shape = Shape::new(
    "usage.output_tokens_details",
    &[number(&["thinking_tokens"])],
);

static BLOCK: Shape = Shape::new("content_block", &[])
    .with_kinds(BLOCKS)
    .keeping_other_kinds();

const BLOCKS: &[Kind] = &[
    kind(&["text"], &[shape::text(&["text"]), kept(&["citations"])]),
    kind(&["thinking"], &[shape::text(&["thinking", "signature"])]),
    kind(&["redacted_thinking"], &[shape::text(&["data"])]),
    kind(&["tool_use"], TOOL_USE),
];

const TOOL_USE: &[Member] = &[
    shape::text(&["id", "name"]),
    any(&["input"]),
    within(&["caller"], &CALLER),
];

static CALLER: Shape = Shape::new(
    "content_block.caller",
    &[
        shape::text(&["type"]),
        ignored(
            &["tool_id"],
            "the warning already says that a program made the call",
        ),
    ],
);

/// The table of deltas for known blocks. Provider-specific blocks accept any delta.
static DELTA: Shape = Shape::new("delta", &[]).with_kinds(&[
    kind(&["text_delta"], &[shape::text(&["text"])]),
    kind(
        &["thinking_delta"],
        &[
            shape::text(&["thinking"]),
            ignored(&["estimated_tokens"], ESTIMATE),
        ],
    ),
    kind(&["signature_delta"], &[shape::text(&["signature"])]),
    kind(&["input_json_delta"], &[shape::text(&["partial_json"])]),
    kind(&["citations_delta"], &[kept(&["citation"])]),
]);

const ESTIMATE: &str = "an estimate that the final usage replaces";

#[derive(Default)]
pub(super) struct Anthropic {
    blocks: HashMap<u64, Open>,
    stop: Option<StopReason>,
    tokens: Tokens,
}

/// A block that is being received.
struct Open {
    place: BlockIndex,
    /// The arguments at the beginning of the block, which are used if no pieces follow.
    input: Value,
    /// `true` if the block is provider-specific.
    own: bool,
    /// The pieces of the arguments, joined.
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
            // The shape table reports other kinds of events.
            _ => {}
        }
        Ok(())
    }

    /// Completes the answer if a gateway closes the stream without `message_stop`. The answer is
    /// complete if it has a stop reason and all its blocks have ended.
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
                    answer.warn("a program on the server called a tool; later requests do not say that a program made the call");
                }
                answer.open_call(text(block, "id"), text(block, "name"))
            }
            "" => return,
            _ => answer.open_own(block.clone()),
        };
        let own = answer.own_data(place).is_some();
        match text(block, "type") {
            "text" => answer.text_at(place, text(block, "text")),
            "thinking" => {
                answer.thinking_at(place, text(block, "thinking"));
                answer.signature_at(place, text(block, "signature"));
            }
            // Other kinds contain no text, or are kept whole.
            _ => {}
        }
        let citations = items(block, "citations").to_vec();
        self.blocks.insert(
            index,
            Open {
                place,
                input: block["input"].clone(),
                own,
                json: String::new(),
                citations,
            },
        );
    }

    /// Reads a delta of a block. Deltas for a block that has not started are dropped.
    fn delta(&mut self, index: u64, delta: &Value, answer: &mut AnswerBuilder) {
        let Some(Open {
            place,
            own,
            json,
            citations,
            ..
        }) = self.blocks.get_mut(&index)
        else {
            let kind = json::name(text(delta, "type"));
            return answer.not_read(&format!("a `{kind}` arrived for no open block"));
        };
        let is_of_own_call = *own && text(delta, "type") == "input_json_delta";
        if !*own || is_of_own_call {
            DELTA.look_over("", delta, answer);
        }
        match text(delta, "type") {
            "input_json_delta" if *own => json.push_str(text(delta, "partial_json")),
            _ if *own => grow(*place, delta, answer),
            "citations_delta" if !answer.takes_text(*place) => {
                answer.not_read("a citation arrived for a block that is not text");
            }
            "citations_delta" => citations.extend(delta.get("citation").cloned()),
            "text_delta" => answer.text_at(*place, text(delta, "text")),
            "thinking_delta" => answer.thinking_at(*place, text(delta, "thinking")),
            "signature_delta" => answer.signature_at(*place, text(delta, "signature")),
            "input_json_delta" => answer.arguments(*place, text(delta, "partial_json")),
            // The shape table reports other kinds of deltas.
            _ => {}
        }
    }

    fn end_block(&mut self, index: u64, answer: &mut AnswerBuilder) {
        let Some(Open {
            place,
            input,
            own,
            json,
            citations,
        }) = self.blocks.remove(&index)
        else {
            return;
        };
        if own {
            return end_own(place, &json, answer);
        }
        let is_replaced = !answer.is_blank(place) && !is_nothing(&input);
        if is_replaced && !answer.has_arguments(place, &input) {
            answer.not_read(REPLACED);
        }
        // The API rejects blank text even if it has citations.
        if !citations.is_empty() && answer.has_words(place) {
            return answer.text_as_own(
                place,
                |text| json!({"type": "text", "text": text, "citations": citations}),
            );
        }
        if !citations.is_empty() {
            answer.not_read("citations arrived with text that is only whitespace");
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
        set(
            &mut self.tokens.read,
            count(value, "/usage/cache_read_input_tokens"),
        );
        set(
            &mut self.tokens.written,
            count(value, "/usage/cache_creation_input_tokens"),
        );
        let usage = answer.usage();
        usage.cache_read = self.tokens.read;
        usage.cache_write = self.tokens.written;
        usage.input = self
            .tokens
            .fresh
            .saturating_add(self.tokens.read)
            .saturating_add(self.tokens.written);
        set(&mut usage.output, count(value, "/usage/output_tokens"));
        set(
            &mut usage.reasoning,
            count(value, "/usage/output_tokens_details/thinking_tokens"),
        );
    }
}

/// Returns `true` if a call was made by something other than the model (`anthropic` 2.12,
/// `types/tool_use_block.py`).
fn is_of_program(call: &Value) -> bool {
    let caller = text(&call["caller"], "type");
    !caller.is_empty() && caller != "direct"
}

/// The warning about arguments that are sent twice.
const REPLACED: &str = "arguments at the start of a block whose arguments also arrive in pieces";

/// Adds a delta to a provider-specific block: text is appended, other members are replaced.
fn grow(place: BlockIndex, delta: &Value, answer: &mut AnswerBuilder) {
    let Some(Value::Object(block)) = answer.own_data(place) else {
        return;
    };
    for (key, piece) in delta
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "type")
    {
        match (block.get_mut(key), piece) {
            (Some(Value::String(text)), Value::String(piece)) => text.push_str(piece),
            _ => drop(block.insert(key.clone(), piece.clone())),
        }
    }
}

/// Ends a provider-specific block. The block is incomplete if its arguments are not JSON.
fn end_own(place: BlockIndex, arguments: &str, answer: &mut AnswerBuilder) {
    let Some(block) = answer.own_data(place) else {
        return;
    };
    if !arguments.trim().is_empty() {
        match serde_json::from_str::<Value>(arguments) {
            Ok(input) => {
                let before = std::mem::replace(&mut block["input"], input.clone());
                if !is_nothing(&before) && before != input {
                    answer.not_read(REPLACED);
                }
            }
            Err(_) => {
                return answer.warn("a call to the provider's own tool has malformed arguments");
            }
        }
    }
    answer.seal(place);
}
