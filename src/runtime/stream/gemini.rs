//! Gemini `generateContent` and `streamGenerateContent`.
//!
//! Chunks are `GenerateContentResponse` of the Python SDK google-genai 3.4 (`types.py`); a whole answer is one chunk, and
//! without `alt=sse` a stream is a JSON array of them. There is no terminal event: an answer is complete when a chunk had
//! a `finishReason`. Reasons (`types.py`, `FinishReason`):
//!
//! | provider | here |
//! | --- | --- |
//! | `STOP` | end of turn, or tool use if there are calls |
//! | `MAX_TOKENS`, `CONTINUATION` | limit of tokens |
//! | `SAFETY`, `RECITATION`, `LANGUAGE`, `BLOCKLIST`, `PROHIBITED_CONTENT`, `SPII`, `IMAGE_…`, `MODEL_ARMOR`, `ESCALATION`, `PUP_LIMITED_DISABLED` | refusal |
//! | `MALFORMED_FUNCTION_CALL`, `MALFORMED_RESPONSE`, `UNEXPECTED_TOOL_CALL`, `MISSING_THOUGHT_SIGNATURE` | an error |
//! | others | in their own word |
//!
//! The errors among them end answers that hold nothing to go on with: as successes they make agents ask again for ever
//! (Wei-Shaw/sub2api#7098). A prompt that was blocked (`promptFeedback.blockReason`) has no answer: an error too.
//!
//! A `thoughtSignature` stands on a call or on a text; here it belongs to the thinking block before that, so that the
//! bundled partials can put it back where it was. Usage: thoughts are not in `candidatesTokenCount`, cached content is in
//! `promptTokenCount`.
//!
//! Not read: images, code that the server runs, further candidates.

use serde_json::Value;

use super::AnswerParser;
use super::builder::AnswerBuilder;
use super::json::{count, items, text};
use crate::runtime::{Category, Error, StopReason, failure};

pub(super) struct Gemini;

impl AnswerParser for Gemini {
    fn read(&mut self, _: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        usage(&value["usageMetadata"], answer);
        let blocked = text(&value["promptFeedback"], "blockReason");
        if !blocked.is_empty() {
            let feedback = &value["promptFeedback"];
            let detail = with_message(&with_ratings(blocked, feedback), text(feedback, "blockReasonMessage"));
            return Err(Error::new(Category::Validation, "the provider blocked the prompt").detail(detail));
        }
        let first = |candidate: &&Value| count(candidate, "/index").unwrap_or_default() == 0;
        if let Some(candidate) = items(value, "candidates").iter().find(first) {
            items(&candidate["content"], "parts").iter().for_each(|part| read_part(part, answer));
            if let Some(stop) = stop_reason(candidate)? {
                if stop == StopReason::Refusal {
                    let category = with_ratings(text(candidate, "finishReason"), candidate);
                    answer.refused_for(&category, text(candidate, "finishMessage"));
                }
                answer.stop(stop);
            }
        }
        Ok(())
    }
}

fn read_part(part: &Value, answer: &mut AnswerBuilder) {
    let signature = text(part, "thoughtSignature");
    if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
        if !signature.is_empty() {
            answer.sign_next(signature);
        }
        let place = answer.open_call(text(call, "id"), text(call, "name"));
        match &call["args"] {
            Value::Null => answer.arguments_value(place, &Value::Object(serde_json::Map::new())),
            arguments => answer.arguments_value(place, arguments),
        }
        return answer.end_call(place);
    }
    if part["thought"] == Value::Bool(true) {
        answer.thinking(text(part, "text"));
    } else {
        answer.text(text(part, "text"));
    }
    if !signature.is_empty() {
        answer.sign_text(signature);
    }
}

fn stop_reason(candidate: &Value) -> Result<Option<StopReason>, Error> {
    Ok(Some(match text(candidate, "finishReason") {
        "" => return Ok(None),
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" | "CONTINUATION" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => StopReason::Refusal,
        image if image.starts_with("IMAGE_") => StopReason::Refusal,
        reason @ ("MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL") => {
            let error = Error::new(Category::Provider, "the model's answer is malformed");
            return Err(error.detail(with_message(reason, text(candidate, "finishMessage"))).retryable());
        }
        reason @ "MISSING_THOUGHT_SIGNATURE" => {
            let error = Error::new(Category::Validation, "the provider misses a signature in the request");
            return Err(error.detail(with_message(reason, text(candidate, "finishMessage"))));
        }
        other => StopReason::Other(other.to_owned()),
    }))
}

/// A reason with the categories that a filter stopped (`safetyRatings`), if it names any.
fn with_ratings(reason: &str, value: &Value) -> String {
    let blocked = items(value, "safetyRatings").iter().filter(|rating| rating["blocked"] == Value::Bool(true));
    let blocked: Vec<&str> = blocked.map(|rating| text(rating, "category")).collect();
    if blocked.is_empty() { reason.to_owned() } else { format!("{reason} ({})", blocked.join(", ")) }
}

/// A reason with the provider's explanation, if there is one.
fn with_message(reason: &str, message: &str) -> String {
    let separator = if message.is_empty() { "" } else { ": " };
    failure::snippet(format!("{reason}{separator}{message}").as_bytes())
}

fn usage(value: &Value, answer: &mut AnswerBuilder) {
    if !value.is_object() {
        return;
    }
    let count = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let usage = answer.usage();
    usage.input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    usage.reasoning = count("thoughtsTokenCount");
    usage.output = count("candidatesTokenCount").saturating_add(usage.reasoning);
    usage.cache_read = count("cachedContentTokenCount");
}
