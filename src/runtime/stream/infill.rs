//! llama.cpp's `/infill`, whose answers have the form of its `/completion`.
//!
//! The fields are described in llama.cpp's `tools/server/README.md` (`/completion`, result JSON).
//! The terminal event has `"stop": true`. `stop_type`:
//!
//! | provider | here |
//! | --- | --- |
//! | `eos`, none | end of turn |
//! | `limit` | token limit |
//! | `word` | stop sequence |
//! | others | the provider's own word |
//!
//! Servers before 2025 used `stopped_limit` and `stopped_word` instead. Usage: `tokens_evaluated`
//! is the size of the whole prompt, and `timings.cache_n` is the size of its cached part.

use serde_json::Value;

use super::AnswerParser;
use super::builder::AnswerBuilder;
use super::json::{count, set, text};
use super::shape::{self, Shape, beside_in_pieces, flag, ignored, number, within};
use crate::runtime::{Error, StopReason};

pub(super) static SHAPE: Shape = Shape::new(
    "answer",
    &[
        shape::text(&["content", "stop_type", "model"]),
        flag(&["stop", "stopped_limit", "stopped_word"]),
        number(&["tokens_evaluated", "tokens_predicted"]),
        within(&["timings"], &OWN_TIMINGS),
        beside_in_pieces(&["completion_probabilities", "probs"]),
        ignored(
            &["stopped_eos"],
            "the end of turn, unless another flag is set",
        ),
        ignored(
            &["stopping_word"],
            "the outcome already reports the stop sequence",
        ),
        ignored(
            &["generation_settings", "prompt", "multimodal"],
            "a copy of request values",
        ),
        ignored(
            &["id_slot", "slot_id", "index"],
            "the server's slot for the request",
        ),
        ignored(
            &["tokens", "has_new_line", "truncated"],
            "facts about `content`",
        ),
        ignored(
            &["tokens_cached"],
            "the total size of the server's cache; `timings.cache_n` counts the tokens read from it",
        ),
        ignored(&["oaicompat_token_ctr"], "a counter of the server's own"),
    ],
);

/// The table of llama.cpp's measurements (`tools/server/README.md`, `timings`).
pub(super) static TIMINGS: Shape = Shape::new(
    "timings",
    &[
        number(&["cache_n", "prompt_n", "predicted_n"]),
        ignored(TIMES, "how long it took"),
        ignored(
            &["draft_n", "draft_n_accepted"],
            "statistics of speculative decoding",
        ),
    ],
);

/// The table of llama.cpp's measurements for answers that contain token counts themselves.
static OWN_TIMINGS: Shape = Shape::new(
    "timings",
    &[
        number(&["cache_n"]),
        ignored(
            &["prompt_n", "predicted_n"],
            "`tokens_evaluated` and `tokens_predicted` contain it",
        ),
        ignored(TIMES, "how long it took"),
        ignored(
            &["draft_n", "draft_n_accepted"],
            "statistics of speculative decoding",
        ),
    ],
);

const TIMES: &[&str] = &[
    "prompt_ms",
    "prompt_per_token_ms",
    "prompt_per_second",
    "predicted_ms",
    "predicted_per_token_ms",
    "predicted_per_second",
];

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
    match text(value, "stop_type") {
        "limit" => StopReason::MaxTokens,
        "word" => StopReason::StopSequence,
        "" if value["stopped_limit"] == true => StopReason::MaxTokens,
        "" if value["stopped_word"] == true => StopReason::StopSequence,
        "" | "eos" | "none" => StopReason::EndTurn,
        other => StopReason::Other(other.to_owned()),
    }
}
