//! `protocol/thinking-sampling`: sampling settings that Anthropic rejects while thinking is on.

use serde_json::Value;

use super::value::is_type;
use super::{Found, Subject, body_rule};
use crate::check::families::Breach;
use crate::diag::Severity;

body_rule! {
    Error "protocol/thinking-sampling", "the sampling settings are not allowed with thinking",
    "While thinking is enabled, Anthropic's API accepts only a `temperature` of 1 and a `top_p` from 0.95 to 1, and rejects \
     `top_k`: *temperature may only be set to 1 when thinking is enabled*.\n\n\
     * wrong: `temperature = 0.2` with `thinking = { type = \"adaptive\" }`\n\
     * right: no `temperature`\n\n\
     Later models reject these fields altogether; then only `protocol/model-parameter` reports them.",
    of AnthropicMessages;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "*feature compatibility*",
        "MartialBE/one-hub#529": "*temperature may only be set to 1 when thinking is enabled*",
        "quarkiverse/quarkus-langchain4j#1812": "*`top_k` must be unset when thinking is enabled*",
    }
}

/// The values that are accepted while thinking is on: minimum, maximum, and the range in words. The
/// range for `top_k` is empty, because none of its values is accepted.
const TAKEN: [(&str, f64, f64, &str); 3] = [
    ("temperature", 1.0, 1.0, "only 1"),
    ("top_p", 0.95, 1.0, "only 0.95 to 1"),
    ("top_k", f64::INFINITY, 0.0, "no value"),
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.member("thinking").is_some_and(is_on) {
        return;
    }
    let refused = subject.facts.breaches(subject);
    for (name, least, most, takes) in TAKEN {
        let Some(value) = subject
            .member(name)
            .filter(|value| {
                value
                    .as_f64()
                    .is_some_and(|number| number < least || number > most)
            })
            .filter(|value| !is_refused(value, &refused))
        else {
            continue;
        };
        let message = format!("`{name}` is {value}, but with thinking on, the API accepts {takes}");
        found
            .at(value, message)
            .help("omit this parameter, or turn thinking off");
    }
}

fn is_on(thinking: &Value) -> bool {
    is_type(thinking, "enabled") || is_type(thinking, "adaptive")
}

fn is_refused(value: &Value, refused: &[Breach<'_, '_>]) -> bool {
    refused
        .iter()
        .any(|breach| breach.severity == Severity::Error && std::ptr::eq(breach.value, value))
}
