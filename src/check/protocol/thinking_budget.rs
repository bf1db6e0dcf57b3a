//! `protocol/thinking-budget`: a thinking budget that does not fit below `max_tokens`.

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};

body_rule! {
    Error "protocol/thinking-budget", "the thinking budget leaves no tokens for the answer",
    "Anthropic counts thinking as part of the answer: `budget_tokens` must be less than `max_tokens`. With tools and interleaved thinking, \
     which a header enables, it may be more: with `tools`, this is only a warning, and nothing is reported if the request is known to have \
     the header. It is also a warning at servers of other models. The minimum of 1,024 is checked by the schema; the ranges of Gemini's \
     `thinkingBudget` depend on the model, are listed in `model-families.toml`, and are checked by `protocol/model-parameter`.\n\n\
     * wrong: `max_tokens = 2048` with `thinking = { type = \"enabled\", budget_tokens = 4096 }`\n\
     * right: `max_tokens = 8192`",
    of AnthropicMessages;
    seen "2026-11" {
        "pkg:pypi/anthropic@2.12#types/thinking_config_enabled_param.py":
            "Claude requires the budget to be less than `max_tokens`",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "Claude has this rule, with an exception for interleaved thinking",
        "liuw1535/antigravity2api-nodejs#149":
            "*`max_tokens` must be greater than `thinking.budget_tokens`*",
    }
}

/// The beta feature for thinking between tool calls. It also allows a larger budget.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
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
    if has_tools && subject.headers.has_beta(INTERLEAVED) == Some(true) {
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
    note.help("lower the budget, or raise `max_tokens`: thinking is part of the answer");
}
