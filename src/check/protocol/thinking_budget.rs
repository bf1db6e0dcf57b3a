//! `protocol/thinking-budget`: a thinking budget that does not fit below `max_tokens`.

use serde_json::Value;

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat, is_claude_model};

body_rule! {
    Error "protocol/thinking-budget", "the thinking budget leaves no tokens for the answer",
    "Anthropic counts thinking as part of the answer: `budget_tokens` must be less than `max_tokens`. With tools and interleaved \
     thinking, which a header enables, the budget may be larger than `max_tokens`: a larger budget is only a warning if the request has \
     `tools`, and is not reported if the request is known to have the header. It is also a warning for servers of other models, and for \
     Claude behind an unknown server that uses OpenAI's format and may pass the budget on (`thinking.budget_tokens` or \
     `reasoning.max_tokens`). The schema checks the minimum of 1,024 tokens, and this rule checks it in OpenAI's format; the ranges of \
     Gemini's `thinkingBudget` depend on the model, are listed in `model-families.toml`, and are checked by \
     `protocol/model-parameter`.\n\n\
     * wrong: `max_tokens = 2048` with `thinking = { type = \"enabled\", budget_tokens = 4096 }`\n\
     * right: `max_tokens = 8192`",
    of AnthropicMessages, OpenAiChat;
    seen "2026-11" {
        "pkg:pypi/anthropic@2.12#types/thinking_config_enabled_param.py":
            "Claude requires the budget to be less than `max_tokens`",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "Claude has this rule, with an exception for interleaved thinking",
        "pkg:github/MartialBE/one-hub@387f8bf#providers": "one-hub: *budget_token must be greater than 1024*",
        "liuw1535/antigravity2api-nodejs#149":
            "*`max_tokens` must be greater than `thinking.budget_tokens`*",
    }
}

/// The beta feature for thinking between tool calls. It also allows a larger budget.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

const CHAT: &[WireFormat] = &[WireFormat::OpenAiChat];
/// Claude's minimum budget, in tokens.
const LEAST: f64 = 1024.0;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if CHAT.contains(&subject.wire) {
        at_gateway(subject, found);
    } else {
        at_claude(subject, found);
    }
}

/// Reports a budget that an unknown server may pass on to Claude.
fn at_gateway<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_passed_on =
        subject.server == Server::Unknown && subject.model.is_some_and(is_claude_model);
    let Some(value) = passed_on_budget(subject).filter(|_| is_passed_on) else {
        return;
    };
    let Some(budget) = value.as_f64().filter(|budget| *budget > 0.0) else {
        return;
    };
    let most = ["max_tokens", "max_completion_tokens"]
        .into_iter()
        .find_map(|name| subject.member(name)?.as_f64());
    if budget < LEAST {
        let message =
            format!("Claude's thinking budget is at least 1,024 tokens, but this is {value}");
        let note = found.at(value, message).warning();
        note.help("raise the budget, or remove it");
    } else if let Some(most) = most.filter(|most| budget >= *most && !is_interleaved(subject)) {
        let message = format!(
            "the budget is {value}, but must be less than the limit for the answer, which is {most}"
        );
        found.at(value, message).warning().help(TOO_LARGE);
    }
}

/// Returns the thinking budget in a chat request, in the form of Anthropic or of `OpenRouter`,
/// unless thinking is turned off.
fn passed_on_budget<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    let thinking = subject
        .member("thinking")
        .filter(|thinking| is_type(thinking, "enabled"));
    let reasoning = subject
        .member("reasoning")
        .filter(|reasoning| reasoning.get("enabled") != Some(&Value::Bool(false)));
    thinking
        .and_then(|thinking| thinking.get("budget_tokens"))
        .or_else(|| reasoning?.get("max_tokens"))
}

/// Returns `true` if the request is known to allow thinking between tool calls.
fn is_interleaved(subject: &Subject<'_>) -> bool {
    !elements(subject.member("tools")).is_empty()
        && subject.headers.has_beta(INTERLEAVED) == Some(true)
}

const TOO_LARGE: &str = "lower the budget, or raise `max_tokens`: thinking is part of the answer";

fn at_claude<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let thinking = subject
        .member("thinking")
        .filter(|thinking| is_type(thinking, "enabled"));
    let (Some(budget), Some(most)) = (
        thinking.and_then(|it| it.get("budget_tokens")),
        subject.member("max_tokens"),
    ) else {
        return;
    };
    if !budget
        .as_f64()
        .zip(most.as_f64())
        .is_some_and(|(budget, most)| budget >= most)
    {
        return;
    }
    let has_tools = !elements(subject.member("tools")).is_empty();
    if is_interleaved(subject) {
        return;
    }
    let message =
        format!("`budget_tokens` is {budget}, but must be less than `max_tokens`, which is {most}");
    let note = found.at(budget, message);
    let note = if has_tools || !subject.server.is_claude() {
        note.warning()
    } else {
        note
    };
    note.help(TOO_LARGE);
}
