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
//! | `MALFORMED_FUNCTION_CALL` and others | in their own word |
//!
//! A prompt that was blocked (`promptFeedback.blockReason`) has no answer: an error.
//!
//! A `thoughtSignature` stands on a call or on a text; here it belongs to the thinking block before that, so that the
//! bundled partials can put it back where it was. Usage: thoughts are not in `candidatesTokenCount`, cached content is in
//! `promptTokenCount`.
//!
//! Not read: images, code that the server runs, further candidates.

use serde_json::Value;

use super::Dialect;
use super::assembly::Assembly;
use super::json::{count, items, text};
use crate::runtime::{Category, Error, StopReason};

pub(super) struct Gemini;

impl Dialect for Gemini {
    fn read(&mut self, _: &str, value: &Value, answer: &mut Assembly) -> Result<(), Error> {
        usage(&value["usageMetadata"], answer);
        let blocked = text(&value["promptFeedback"], "blockReason");
        if !blocked.is_empty() {
            return Err(refused_prompt(blocked, text(&value["promptFeedback"], "blockReasonMessage")));
        }
        let first = |candidate: &&Value| count(candidate, "/index").unwrap_or_default() == 0;
        if let Some(candidate) = items(value, "candidates").iter().find(first) {
            items(&candidate["content"], "parts").iter().for_each(|part| read_part(part, answer));
            if let Some(stop) = stop_reason(text(candidate, "finishReason")) {
                answer.stop(stop);
            }
        }
        Ok(())
    }
}

fn refused_prompt(reason: &str, message: &str) -> Error {
    let detail = if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    Error::new(Category::Validation, "the provider blocked the prompt").detail(detail)
}

fn read_part(part: &Value, answer: &mut Assembly) {
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

fn stop_reason(reason: &str) -> Option<StopReason> {
    Some(match reason {
        "" => return None,
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
        other => StopReason::Other(other.to_owned()),
    })
}

fn usage(value: &Value, answer: &mut Assembly) {
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
