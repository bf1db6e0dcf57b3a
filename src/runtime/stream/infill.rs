//! llama.cpp's `/infill`, whose answers are those of its `/completion`.
//!
//! Fields as in llama.cpp's `tools/server/README.md` (`/completion`, result JSON). The terminal event has `"stop":
//! true`. `stop_type`:
//!
//! | provider | here |
//! | --- | --- |
//! | `eos`, none | end of turn |
//! | `limit` | limit of tokens |
//! | `word` | stop sequence |
//! | others | in their own word |
//!
//! Servers before 2025 said the same by `stopped_limit` and `stopped_word`. Usage: `tokens_evaluated` counts the whole
//! prompt, `timings.cache_n` its part that was cached.

use serde_json::Value;

use super::AnswerParser;
use super::builder::AnswerBuilder;
use super::json::{count, set, text};
use crate::runtime::{Error, StopReason};

pub(super) struct Infill;

impl AnswerParser for Infill {
    fn read(&mut self, _: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        answer.text(text(value, "content"));
        let usage = answer.usage();
        set(&mut usage.input, count(value, "/tokens_evaluated"));
        set(&mut usage.output, count(value, "/tokens_predicted"));
        set(&mut usage.cache_read, count(value, "/timings/cache_n"));
        if value["stop"] == Value::Bool(true) {
            answer.stop(stop_reason(value));
            answer.close();
        }
        Ok(())
    }
}

fn stop_reason(value: &Value) -> StopReason {
    let flag = |key: &str| value[key] == Value::Bool(true);
    match text(value, "stop_type") {
        "limit" => StopReason::MaxTokens,
        "word" => StopReason::StopSequence,
        "" if flag("stopped_limit") => StopReason::MaxTokens,
        "" if flag("stopped_word") => StopReason::StopSequence,
        "" | "eos" | "none" => StopReason::EndTurn,
        other => StopReason::Other(other.to_owned()),
    }
}
