//! Ollama's `/api/chat` and `/api/generate`.
//!
//! Lines as in ollama's `api/types.go` (`ChatResponse`, `GenerateResponse`); a whole answer is one such line. The
//! terminal line has `"done": true`. `done_reason` (`llm/server.go`, `DoneReason`):
//!
//! | provider | here |
//! | --- | --- |
//! | `stop`, none | end of turn |
//! | `length` | limit of tokens |
//! | `load`, `unload` and others | in their own word |
//!
//! Usage: `prompt_eval_count` counts the whole prompt, `eval_count` what was generated.

use serde_json::Value;

use super::AnswerParser;
use super::builder::AnswerBuilder;
use super::json::{count, items, set, text};
use crate::runtime::{Error, StopReason};

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
        if let Some(images) = message.get("images").filter(|images| images.as_array().is_some_and(|it| !it.is_empty()))
        {
            answer.own(serde_json::json!({ "images": images }));
        }
        set(&mut answer.usage().input, count(value, "/prompt_eval_count"));
        set(&mut answer.usage().output, count(value, "/eval_count"));
        if value["done"] == Value::Bool(true) {
            answer.stop(stop_reason(text(value, "done_reason")));
            answer.close();
        }
        Ok(())
    }
}

/// A call, which always comes whole.
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
