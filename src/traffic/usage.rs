//! Extracts the token counts, signed thinking, and error message of an answer.

use serde_json::{Map, Value};

use super::read::{count, holds};
use super::sent::Answer;
use crate::conversation::Usage;

/// The maximum nesting depth in an answer at which token counts are searched for.
const DEEPEST: usize = 5;

/// Reads an answer, which is an object, a JSON text, or a stream of events.
pub(super) fn answer(value: &Value) -> Answer {
    let mut found = Answer::default();
    read(value, DEEPEST, &mut found);
    found.usage = found.usage.filter(is_counted);
    found
}

fn read(value: &Value, depth: usize, found: &mut Answer) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(members) => {
            for name in ["usage", "usageMetadata", "usage_metadata"] {
                if let Some(value) = members.get(name)
                    && let Some(counts) = counts(value)
                {
                    found.usage = Some(later(found.usage, counts));
                    found.tells_cache |= tells_cache(value);
                    found.hour_written = found.hour_written.max(hour_written(value));
                }
            }
            if members.contains_key("prompt_eval_count") {
                found.usage = counts(value).or(found.usage);
            }
            found.is_answered |= is_answer(members);
            found.is_signed |= is_signed(value);
            if found.refusal.is_none() {
                found.refusal = refusal(value);
            }
            members
                .values()
                .for_each(|inner| read(inner, depth - 1, found));
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|inner| read(inner, depth - 1, found)),
        Value::String(text) => read_text(text, depth, found),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn read_text(text: &str, depth: usize, found: &mut Answer) {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json && let Ok(value) = serde_json::from_str::<Value>(text) {
        return read(&value, depth, found);
    }
    for line in text.lines() {
        // Ollama writes a stream as JSON Lines.
        let event = match line.strip_prefix("data:") {
            Some(event) => event,
            None if is_json => line,
            None => continue,
        };
        found.is_signed |= event.contains("signature_delta");
        found.is_answered |= OF_ANSWERS.iter().any(|name| event.contains(name));
        if OF_INTEREST.iter().any(|name| event.contains(name))
            && let Ok(value) = serde_json::from_str::<Value>(event.trim())
        {
            read(&value, depth, found);
        }
    }
}

/// Text in the events of a stream that are read; all other events are skipped.
const OF_INTEREST: [&str; 4] = ["usage", "Usage", "\"error\"", "\"prompt_eval_count\""];

/// Text in the events of a stream that contain a part of an answer.
const OF_ANSWERS: [&str; 4] = [
    "\"choices\":[{",
    "\"content_block_delta\"",
    "\"response.output_",
    "\"candidates\":[{",
];

/// Returns `true` if an object looks like an answer in any provider's format.
fn is_answer(members: &Map<String, Value>) -> bool {
    let is_list = ["choices", "candidates", "output"].iter().any(|name| {
        let list = members.get(*name).and_then(Value::as_array);
        list.is_some_and(|list| list.first().is_some_and(Value::is_object))
    });
    let role = members.get("role").and_then(Value::as_str);
    is_list || matches!(role, Some("assistant" | "model"))
}

/// Combines two token counts for the same answer. The last event of a stream is more complete, but
/// may lack the input tokens.
fn later(first: Option<Usage>, second: Usage) -> Usage {
    let first = first.unwrap_or_default();
    Usage {
        input: first.input.max(second.input),
        output: first.output.max(second.output),
        cache_read: first.cache_read.max(second.cache_read),
        cache_write: first.cache_write.max(second.cache_write),
        reasoning: first.reasoning.max(second.reasoning),
    }
}

/// Returns `true` if the input was counted. An answer that was aborted has only zeros.
fn is_counted(usage: &Usage) -> bool {
    usage.input > 0
}

/// Returns an answer with only its token counts, which may be in the form of any provider.
pub(super) fn counted(value: Option<&Value>) -> Answer {
    let usage = value.and_then(counts).filter(is_counted);
    Answer {
        usage,
        tells_cache: usage.is_some() && value.is_some_and(tells_cache),
        hour_written: value.map_or(0, hour_written),
        ..Answer::default()
    }
}

/// The pointers to counts of cached tokens that are not included in the input.
const CACHE_BESIDE: [&str; 2] = ["/cache_read_input_tokens", "/cacheReadInputTokens"];

/// The pointers to counts of cached tokens that are included in the input.
const CACHE_WITHIN: [&str; 7] = [
    "/prompt_tokens_details/cached_tokens",
    "/input_tokens_details/cached_tokens",
    "/cached_input_tokens",
    "/cachedInputTokens",
    "/cachedContentTokenCount",
    "/prompt_cache_hit_tokens",
    "/cached",
];

/// Returns the tokens that Anthropic wrote to the cache for an hour.
fn hour_written(value: &Value) -> u64 {
    count(value, &["/cache_creation/ephemeral_1h_input_tokens"]).unwrap_or_default()
}

/// Returns `true` if token counts say how many tokens came from the cache. Gemini leaves out a zero.
fn tells_cache(value: &Value) -> bool {
    let is_of_gemini = value.get("promptTokenCount").is_some();
    let is_told = count(value, &CACHE_BESIDE).or_else(|| count(value, &CACHE_WITHIN));
    is_of_gemini || is_told.is_some()
}

/// Reads token counts. An event of a stream may contain only some of them: the last event of a
/// stream in Anthropic's format counts only the output.
fn counts(value: &Value) -> Option<Usage> {
    let written = count(
        value,
        &[
            "/cache_creation_input_tokens",
            "/cache_write_input_tokens",
            "/cacheWriteInputTokens",
        ],
    );
    let read = count(value, &CACHE_BESIDE);
    // Anthropic counts cached tokens separately from the input. Other providers include them in the
    // input.
    let is_within = ["/cached_input_tokens", "/prompt_tokens"]
        .iter()
        .any(|at| value.pointer(at).is_some());
    let beside = if is_within {
        0
    } else {
        written.unwrap_or_default() + read.unwrap_or_default()
    };
    let input = count(
        value,
        &[
            "/input_tokens",
            "/prompt_tokens",
            "/promptTokenCount",
            "/prompt_token_count",
            "/prompt_eval_count",
            "/inputTokens",
            "/promptTokens",
            "/input",
        ],
    );
    let within = count(value, &CACHE_WITHIN);
    let output = count(
        value,
        &[
            "/output_tokens",
            "/completion_tokens",
            "/candidatesTokenCount",
            "/candidates_token_count",
            "/eval_count",
            "/outputTokens",
            "/completionTokens",
            "/output",
        ],
    );
    // Gemini counts thinking separately from the output.
    let thoughts = count(
        value,
        &["/thoughtsTokenCount", "/thoughts_token_count", "/thoughts"],
    );
    input.or(output)?;
    Some(Usage {
        input: input.unwrap_or_default() + beside,
        output: output.unwrap_or_default() + thoughts.unwrap_or_default(),
        cache_read: read.filter(|read| *read > 0).or(within).unwrap_or_default(),
        cache_write: written.unwrap_or_default(),
        reasoning: 0,
    })
}

fn is_signed(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("thinking") => holds(block, "signature"),
        Some("redacted_thinking") => holds(block, "data"),
        Some("reasoning") => holds(block, "encrypted_content"),
        _ => holds(block, "thoughtSignature"),
    }
}

/// Returns the message of an error, if the value contains one.
fn refusal(value: &Value) -> Option<String> {
    let message = value.pointer("/error/message")?.as_str()?;
    Some(message.chars().take(300).collect())
}

/// Parses a time, which is an ISO 8601 date and time, or a number of seconds, milliseconds, … since
/// 1970. Returns milliseconds since 1970.
pub(super) fn time(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => text
            .parse::<f64>()
            .ok()
            .and_then(of_number)
            .or_else(|| of_text(text)),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "times in logs are far below 2^53"
)]
fn of_number(number: f64) -> Option<i64> {
    // For times in this century, the ranges of seconds, milliseconds, microseconds, and nanoseconds
    // since 1970 do not overlap.
    let scale = match number {
        1e9..1e11 => 1e3,
        1e12..1e14 => 1.0,
        1e15..1e17 => 1e-3,
        1e18..1e20 => 1e-6,
        _ => return None,
    };
    Some((number * scale) as i64)
}

fn of_text(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let separators = text.as_bytes();
    if separators.get(4) != Some(&b'-') || !matches!(separators.get(10), Some(b'T' | b' ')) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let rest = &text[19..];
    let fraction = rest.strip_prefix('.').map(|rest| {
        rest.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    });
    let digits = fraction.as_ref().map_or(0, String::len);
    let milliseconds = fraction
        .and_then(|digits| format!("{digits:0<3}")[..3].parse::<i64>().ok())
        .unwrap_or(0);
    let zone = rest
        .get(if digits > 0 { digits + 1 } else { 0 }..)
        .unwrap_or_default();
    let seconds =
        days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone);
    Some(seconds * 1000 + milliseconds)
}

/// Returns the number of seconds in an offset such as `+02:00`.
fn offset(zone: &str) -> i64 {
    let sign = match zone.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return 0,
    };
    let minutes = if zone.as_bytes().get(3) == Some(&b':') {
        part(zone, 4..6)
    } else {
        part(zone, 3..5)
    };
    sign * (part(zone, 1..3) * 3600 + minutes * 60)
}

fn part(zone: &str, range: std::ops::Range<usize>) -> i64 {
    zone.get(range)
        .and_then(|part| part.parse::<i64>().ok())
        .unwrap_or(0)
}

/// Returns the number of days from 1970-01-01 to a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_count_is_not_added() {
        let most = u64::MAX;
        let counts =
            json!({"input_tokens": most, "cache_read_input_tokens": most, "output_tokens": 5});
        assert_eq!(counted(Some(&counts)).usage, None);
        let counts =
            json!({"input_tokens": 1, "cache_read_input_tokens": most, "output_tokens": 5});
        assert_eq!(
            counted(Some(&counts)).usage.map(|usage| usage.input),
            Some(1)
        );
    }

    #[test]
    fn counts_of_all_providers_mean_the_same() {
        let all = [
            json!({"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10, "output_tokens": 5}),
            json!({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}),
            json!({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 80}}),
            json!({"promptTokenCount": 100, "candidatesTokenCount": 5, "cachedContentTokenCount": 80}),
            json!({"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 5}),
            json!({"input_tokens": 100, "cached_input_tokens": 80, "cache_write_input_tokens": 20, "output_tokens": 5}),
            json!({"prompt_tokens": 100, "cache_read_input_tokens": 80, "completion_tokens": 5}),
            json!({"input": 100, "output": 5, "cached": 80}),
        ];
        for value in all {
            let usage = counted(Some(&value)).usage.expect("counts");
            assert_eq!(
                (usage.input, usage.cache_read, usage.output),
                (100, 80, 5),
                "{value}"
            );
        }
    }

    #[test]
    fn a_stream_tells_its_usage_and_its_signature() {
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\
            \"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":\
            {\"type\":\"signature_delta\",\"signature\":\"x\"}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":0,\"output_tokens\":9}}\n";
        let found = answer(&json!({"content": {"text": stream}}));
        let usage = found.usage.expect("counts");
        assert_eq!(
            (usage.input, usage.cache_read, usage.output, found.is_signed),
            (10, 3, 9, true)
        );
        let refused = answer(&json!({"error": {"type": "x", "message": "no"}}));
        assert_eq!(refused.refusal.as_deref(), Some("no"));
    }

    #[test]
    fn the_last_event_of_a_stream_counts_the_output() {
        let anthropic = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":4,\
            \"cache_creation_input_tokens\":15032,\"cache_read_input_tokens\":0,\"output_tokens\":2}}}\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":174}}\n";
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":15036,\"completion_tokens\":174}}\n\ndata: [DONE]\n";
        let responses = "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
            data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":15036,\"output_tokens\":174}}}\n";
        let gemini = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":15036}}\n\n\
            data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":15036,\"candidatesTokenCount\":100,\"thoughtsTokenCount\":74}}\n";
        let ollama = "{\"message\":{\"content\":\"a\"},\"done\":false}\n\
            {\"message\":{\"content\":\"\"},\"done\":true,\"prompt_eval_count\":15036,\"eval_count\":174}\n";
        for stream in [anthropic, chat, responses, gemini, ollama] {
            let usage = answer(&json!({"body_raw": stream})).usage;
            let counts = usage.map(|usage| (usage.input, usage.output));
            assert_eq!(counts, Some((15_036, 174)), "{stream}");
        }
    }

    #[test]
    fn an_answer_with_only_zeros_is_not_counted() {
        let zeros = json!({"input": 0, "output": 0, "cached": 0});
        assert_eq!(counted(Some(&zeros)).usage, None);
        assert_eq!(answer(&json!({"usage": {"output_tokens": 5}})).usage, None);
    }

    #[test]
    fn times_are_read() {
        let expected = Some(1_764_065_702_120);
        for text in [
            "2025-11-25T10:15:02.12Z",
            "2025-11-25T12:15:02.120+02:00",
            "2025-11-25 10:15:02.120",
            "1764065702.12",
        ] {
            assert_eq!(time(&json!(text)), expected, "{text}");
        }
        assert_eq!(time(&json!(1_764_065_702_120_i64)), expected);
        assert_eq!(time(&json!("soon")), None);
    }
}
