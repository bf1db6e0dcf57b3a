//! Ollama's `/api/chat` and `/api/generate`.
//!
//! The lines are those in ollama's `api/types.go` (`ChatResponse`, `GenerateResponse`); a whole
//! answer is one such line. The terminal line has `"done": true`. `done_reason` (`llm/server.go`,
//! `DoneReason`):
//!
//! | provider | here |
//! | --- | --- |
//! | `stop`, none | end of turn |
//! | `length` | token limit |
//! | `load`, `unload` and others | the provider's own word |
//!
//! Usage: `prompt_eval_count` is the size of the whole prompt, and `eval_count` is the number of
//! generated tokens.

use serde_json::Value;

use super::AnswerParser;
use super::builder::AnswerBuilder;
use super::json::{count, items, set, text};
use super::shape::{
    self, Shape, always, any, beside_in_pieces, flag, ignored, kept, number, within,
};
use crate::runtime::{Error, StopReason};

pub(super) static SHAPE: Shape = Shape::new(
    "line",
    &[
        shape::text(&["model", "response", "thinking", "done_reason"]),
        within(&["message"], &MESSAGE),
        flag(&["done"]),
        number(&["prompt_eval_count", "eval_count"]),
        beside_in_pieces(&["logprobs"]),
        ignored(&["created_at"], "the server's clock"),
        ignored(
            &["context"],
            "tokens of the conversation, which the history contains as text",
        ),
        ignored(
            &["remote_model", "remote_host"],
            "the server that runs the model",
        ),
        ignored(TIMES, "how long it took"),
    ],
);

const TIMES: &[&str] = &[
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
];

static MESSAGE: Shape = Shape::new(
    "message",
    &[
        shape::text(&["content", "thinking"]),
        within(&["tool_calls"], &CALL),
        kept(&["images"]),
        always(&["role"], &["assistant"]),
    ],
);

static CALL: Shape = Shape::new(
    "message.tool_calls[]",
    &[
        shape::text(&["id"]),
        within(&["function"], &FUNCTION),
        always(&["type"], &["function"]),
    ],
);

static FUNCTION: Shape = Shape::new(
    "message.tool_calls[].function",
    &[
        shape::text(&["name"]),
        any(&["arguments"]),
        ignored(&["index"], "calls come whole and in order"),
    ],
);

pub(super) struct Ollama;

impl AnswerParser for Ollama {
    fn read(&mut self, _: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        let message = &value["message"];
        answer.thinking(text(message, "thinking"));
        answer.thinking(text(value, "thinking"));
        answer.text(text(message, "content"));
        answer.text(text(value, "response"));
        for call in items(message, "tool_calls") {
            self::call(call, answer);
        }
        if let Some(images) = message
            .get("images")
            .filter(|images| images.as_array().is_some_and(|it| !it.is_empty()))
        {
            answer.own(serde_json::json!({ "images": images }));
        }
        set(
            &mut answer.usage().input,
            count(value, "/prompt_eval_count"),
        );
        set(&mut answer.usage().output, count(value, "/eval_count"));
        if value["done"] == Value::Bool(true) {
            answer.stop(stop_reason(text(value, "done_reason")));
            answer.close();
        }
        Ok(())
    }
}

/// Reads a call, which always arrives whole.
fn call(call: &Value, answer: &mut AnswerBuilder) {
    let function = &call["function"];
    let place = answer.open_call(text(call, "id"), text(function, "name"));
    answer.arguments_value(place, &function["arguments"]);
    answer.end_call(place);
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "" | "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        other => StopReason::Other(other.to_owned()),
    }
}
