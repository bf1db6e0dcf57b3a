//! `protocol/forced-choice`: a tool choice that forces a call while thinking is on.

use serde_json::Value;

use super::tools::{choice, text};
use super::{Found, Subject, body_rule};
use crate::diag::Severity;
use crate::provider::{Server, WireFormat};
use crate::repo::Property;

body_rule! {
    Error "protocol/forced-choice", "a tool call is forced while thinking is on",
    "A thinking model decides for itself whether to call a tool. Anthropic rejects a `tool_choice` that asks for a call together with a \
     thinking budget (`thinking.type` \"enabled\"), but accepts it with \"adaptive\" thinking. Claude Opus 5.5, Sonnet 5.5, Fable 5.1 and \
     Mythos 5.1, however, always think and never accept it. DeepSeek, Qwen and Kimi reject a forced call together with thinking. \
     `model-families.toml` lists the facts about models (`thinks_by_default`, `forced_calls`). OpenRouter silently drops the reasoning of \
     Anthropic's models (reported as a warning).\n\n\
     * wrong: `thinking = { type = \"enabled\", budget_tokens = 2048 }` and `tool_choice = { type = \"any\" }`\n\
     * right: `tool_choice = { type = \"auto\" }`, and an instruction in the prompt",
    of AnthropicMessages, OpenAiChat, OpenAiResponses;
    seen "2026-11" {
        "recorded: pydantic-ai, test_anthropic_opus_46_adaptive_thinking_accepts_tool_output":
            "Claude Opus 4.6 accepts `any` with adaptive thinking",
        "https://platform.claude.com/docs/en/about-claude/models/opus-5-5/whats-new-opus-5-5":
            "Claude Opus 5.5 always thinks",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "Claude accepts only `auto` and `none` with a thinking budget",
        "can1357/oh-my-pi#341":
            "Claude: *Thinking may not be enabled when tool_choice forces tool use*",
        "pydantic/pydantic-ai#6957": "Claude: the same error",
        "cloudwego/eino#994": "DeepSeek and Qwen reject it while thinking is enabled",
        "QwenLM/qwen-code#7659": "Qwen: the same error",
        "agentscope-ai/agentscope#1608": "Qwen: the same error",
        "can1357/oh-my-pi#1077":
            "Kimi: *tool_choice 'specified' is incompatible with thinking enabled*",
    }
}

/// The advice if thinking cannot be turned off.
const LET_CHOOSE: &str = "write `auto`, and name the tool to call in the prompt";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(choice) = choice(subject).filter(super::tools::Choice::is_forced) else {
        return;
    };
    if let Some(reasoning) = dropped_reasoning(subject) {
        let note = found.at(
            reasoning,
            "OpenRouter drops the reasoning of this model because `tool_choice` asks for a call",
        );
        note.warning()
            .help("let the model choose, or leave out `reasoning`");
        return;
    }
    let Some(Refusal { level, is_always }) = refused(subject) else {
        return;
    };
    let (message, help) = match is_always {
        true => (
            "this forces a tool call, which the model rejects",
            LET_CHOOSE,
        ),
        false => (
            "this forces a tool call, which the server rejects while the model thinks",
            "let the model choose and name the tool in the prompt, or turn thinking off",
        ),
    };
    let note = found.at(choice.value, message);
    let note = if is_always { note.of_model() } else { note };
    note.level(level).help(help);
}

/// A server's rejection of a forced tool call.
struct Refusal {
    level: Severity,
    /// `true` if the model rejects a forced tool call even without thinking.
    is_always: bool,
}

impl Refusal {
    fn while_thinking(level: Severity) -> Refusal {
        Refusal {
            level,
            is_always: false,
        }
    }
}

/// Returns the rejection of a forced tool call; `None` if the server and the model accept it.
fn refused(subject: &Subject<'_>) -> Option<Refusal> {
    let thinking = subject
        .member("thinking")
        .and_then(|thinking| text(thinking, "type"));
    let of_model = || {
        let thinks = thinking == Some("enabled")
            || thinking.is_none() && subject.facts.is(Property::ThinksByDefault);
        subject
            .facts
            .refuses(Property::ForcedCalls)
            .filter(|_| thinks)
    };
    let level = match subject.wire {
        WireFormat::AnthropicMessages => {
            if let Some(level) = subject.facts.refuses(Property::ForcedCalls) {
                return Some(Refusal {
                    level,
                    is_always: true,
                });
            }
            let is_error = subject.server.is_claude();
            let level = if is_error {
                Severity::Error
            } else {
                Severity::Warning
            };
            (thinking == Some("enabled")).then_some(level)
        }
        WireFormat::OpenAiChat => match subject.server {
            Server::DeepSeek if thinking == Some("enabled") => Some(Severity::Error),
            Server::Qwen => (subject.member("enable_thinking") == Some(&Value::Bool(true)))
                .then_some(Severity::Error),
            _ => of_model(),
        },
        WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => None,
    };
    level.map(Refusal::while_thinking)
}

/// Returns the reasoning setting that OpenRouter drops.
fn dropped_reasoning<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    let is_dropped = subject
        .model
        .is_some_and(|model| model.starts_with("anthropic/"));
    subject
        .member("reasoning")
        .filter(|_| subject.server == Server::OpenRouter && is_dropped)
}
