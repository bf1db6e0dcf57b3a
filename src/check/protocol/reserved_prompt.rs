//! `protocol/reserved-prompt`: a system prompt that begins with a word that a cloud keeps for
//! itself.

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::Server;

body_rule! {
    Error "protocol/reserved-prompt", "the system prompt holds a text that Bedrock keeps for itself",
    "Claude Code puts a line `x-anthropic-billing-header: …` in front of its system prompt. Anthropic's own API reads it; Bedrock \
     refuses the request: *x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt*.\n\n\
     * wrong: a gateway that sends Claude Code's prompt to Bedrock as it is\n\
     * right: the prompt without that block",
    of AnthropicMessages;
    seen "2026-11" {
        "anthropics/claude-code#24168": "Bedrock refuses it",
        "musistudio/claude-code-router#1161": "Bedrock refuses it",
        "BerriAI/litellm#29701": "Anthropic's own API needs it for some keys",
    }
}

/// The beginning that Bedrock refuses.
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
            .at(value, format!("Bedrock refuses a prompt with `{RESERVED}`"))
            .help("leave the line out: `CLAUDE_CODE_ATTRIBUTION_HEADER=0` makes Claude Code do so");
    }
}

fn is_reserved(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.trim_start().starts_with(RESERVED))
}
