//! `protocol/reserved-prompt`: a system prompt that begins with a word that Bedrock reserves.

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::Server;

body_rule! {
    Error "protocol/reserved-prompt", "the system prompt contains text that Bedrock reserves",
    "Claude Code puts a line `x-anthropic-billing-header: …` before its system prompt. Anthropic's own API reads it, but Bedrock \
     rejects the request: *x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt*.\n\n\
     * wrong: a gateway that sends Claude Code's prompt to Bedrock unchanged\n\
     * right: the prompt without that line",
    of AnthropicMessages;
    seen "2026-11" {
        "anthropics/claude-code#24168": "Bedrock rejects it",
        "musistudio/claude-code-router#1161": "Bedrock rejects it",
        "BerriAI/litellm#29701": "Anthropic's own API requires it for some keys",
    }
}

/// The beginning of a system prompt that Bedrock rejects.
const RESERVED: &str = "x-anthropic-billing-header";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(system) = subject
        .member("system")
        .filter(|_| subject.server == Server::Bedrock)
    else {
        return;
    };
    let blocks = elements(Some(system)).iter();
    let reserved = blocks
        .filter(|block| is_reserved(text_of(block, "text")))
        .chain([system].into_iter().filter(|it| is_reserved(it.as_str())));
    for value in reserved {
        found
            .at(value, format!("Bedrock rejects a system prompt with `{RESERVED}`"))
            .help("remove the line; `CLAUDE_CODE_ATTRIBUTION_HEADER=0` makes Claude Code leave it out");
    }
}

fn is_reserved(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.trim_start().starts_with(RESERVED))
}
