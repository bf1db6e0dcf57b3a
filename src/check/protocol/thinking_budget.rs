//! `protocol/thinking-budget`: how many tokens the model may think, where a format has limits for all its models.

use serde_json::Value;

use super::value::{either, is_type};
use super::{Found, Subject, body_rule};
use crate::provider::WireFormat;

body_rule! {
    Body, Error "protocol/thinking-budget", "the budget for thinking is outside of what the API takes",
    "Anthropic counts thinking as a part of the answer: `budget_tokens` is 1,024 or more, and less than `max_tokens`. With tools \
     and interleaved thinking, which a header turns on, it may be more: with `tools` this is a warning. Gemini's \
     `thinkingBudget` is 0 for none, -1 for what the model thinks fit, or a number of tokens; the range of each model stands in \
     `model-families.toml`, and `protocol/model-parameter` tells of it.\n\n\
     * wrong: `max_tokens = 2048` with `thinking = { type = \"enabled\", budget_tokens = 4096 }`\n\
     * right: `max_tokens = 8192`\n\n\
     Sources, seen in November 2026: Anthropic's SDK 2.12, `thinking_config_enabled_param.py`, and its page on extended thinking; \
     google-genai 3.4, `ThinkingConfig`."
}

/// The least budget at Anthropic, in tokens.
const LEAST: f64 = 1024.0;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::AnthropicMessages => anthropic(subject, found),
        WireFormat::GoogleGenerateContent => google(subject, found),
        _ => {}
    }
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(thinking) = subject.member("thinking").filter(|thinking| is_type(thinking, "enabled")) else { return };
    let Some(budget) = thinking.get("budget_tokens") else { return };
    let Some(tokens) = budget.as_f64() else { return };
    if tokens < LEAST {
        found.at(budget, format!("`budget_tokens` is {budget}, and the least is 1024")).help("write 1024 or more");
        return;
    }
    let Some(most) = subject.member("max_tokens").filter(|most| most.as_f64().is_some_and(|most| tokens >= most))
    else {
        return;
    };
    let note =
        found.at(budget, format!("`budget_tokens` is {budget}, and must be less than `max_tokens`, which is {most}"));
    let has_tools = subject.member("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let note = if has_tools { note.warning() } else { note };
    note.help("lower the budget, or raise `max_tokens`: thinking is a part of the answer");
}

fn google<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let config = subject.either("generationConfig", "generation_config");
    let thinking = config.and_then(|config| either(config, "thinkingConfig", "thinking_config"));
    let Some(budget) = thinking.and_then(|thinking| either(thinking, "thinkingBudget", "thinking_budget")) else {
        return;
    };
    if budget.as_f64().is_some_and(|tokens| tokens < -1.0) {
        let message = format!("`thinkingBudget` is {budget}, and the least is -1, for what the model thinks fit");
        found.at(budget, message).help("write -1, 0, or a number of tokens");
    }
}
