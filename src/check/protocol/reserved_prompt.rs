//! `protocol/reserved-prompt`: a system prompt with a word that some servers reserve.

use serde_json::Value;

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::{Server, Site};

body_rule! {
    Error "protocol/reserved-prompt", "the system prompt contains text that the server reserves",
    "Claude Code puts a line `x-anthropic-billing-header: …` before its system prompt. Anthropic's own API reads it, but Bedrock and \
     GitHub Copilot reject the request: *x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt*. One \
     report says that Claude rejects this line behind OpenRouter (reported as a warning).\n\n\
     * wrong: a gateway that sends Claude Code's prompt to Bedrock unchanged\n\
     * right: the prompt without that line",
    of AnthropicMessages, OpenAiChat;
    seen "2026-11" {
        "anthropics/claude-code#24168": "Bedrock rejects it",
        "musistudio/claude-code-router#1161": "Bedrock rejects it",
        "ericc-ch/copilot-api#174": "GitHub Copilot rejects it",
        "ericc-ch/copilot-api#182": "GitHub Copilot rejects it",
        "farion1231/cc-switch#761": "Claude rejects it behind OpenRouter",
        "BerriAI/litellm#29701": "Anthropic's own API requires it for some keys",
    }
}

/// The prefix of a system prompt that some servers reject.
const RESERVED: &str = "x-anthropic-billing-header";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let server = match subject.server {
        _ if subject.headers.is_at(Site::GitHubCopilot) => "GitHub Copilot",
        Server::Bedrock => "Bedrock",
        Server::OpenRouter => "according to a report, Claude behind OpenRouter",
        _ => return,
    };
    let reserved = prompts(subject)
        .flat_map(|prompt| elements(Some(prompt)).iter().chain([prompt]))
        .filter(|part| is_reserved(part));
    for part in reserved {
        let message = format!("{server} rejects a system prompt with `{RESERVED}`");
        let note = found.at(part, message);
        let note = match subject.server {
            Server::OpenRouter => note.warning(),
            _ => note,
        };
        note.help(
            "remove the line; `CLAUDE_CODE_ATTRIBUTION_HEADER=0` makes Claude Code leave it out",
        );
    }
}

/// Returns the system prompts in a body: strings or lists of text blocks.
fn prompts<'b>(subject: &Subject<'b>) -> impl Iterator<Item = &'b Value> {
    let of_messages = elements(subject.member("messages"))
        .iter()
        .filter(|message| matches!(text_of(message, "role"), Some("system" | "developer")))
        .filter_map(|message| message.get("content"));
    subject.member("system").into_iter().chain(of_messages)
}

/// Returns `true` if a string or a text block begins with the reserved word.
fn is_reserved(part: &Value) -> bool {
    let text = part.as_str().or_else(|| text_of(part, "text"));
    text.is_some_and(|text| text.trim_start().starts_with(RESERVED))
}
