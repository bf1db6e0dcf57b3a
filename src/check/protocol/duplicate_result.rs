//! `protocol/duplicate-result`: a second result for one call.

use super::pairing::{Answers, Pairs};
use super::{Found, Subject, body_rule};
use crate::check::history::Outcome;
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/duplicate-result", "a tool call has two results",
    "Each call has one result. Anthropic, Mistral and Gemini reject a second one; other servers show both to the model (reported as a \
     warning). Usually a template renders a result together with its call, and again at its place in the conversation.\n\n\
     * wrong: two `tool_result` blocks with the `tool_use_id` of one call\n\
     * right: one result per call; if a tool returns several pieces, put them into one `content`",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral: *Duplicate tool call id … in tool results*",
        "microsoft/vscode#299295": "Gemini requires as many responses as calls",
        "GoogleCloudPlatform/generative-ai#368": "Gemini: the same error",
        "langchain-ai/langchain#27799": "Gemini: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let answers = Answers::of(subject);
    if answers == Answers::Anywhere {
        return;
    }
    let is_refused = match subject.wire {
        WireFormat::AnthropicMessages => subject.server.is_claude(),
        WireFormat::MistralChat => subject.server == Server::Mistral,
        WireFormat::GoogleGenerateContent => true,
        WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    };
    for stray in Pairs::of(subject.history(), answers)
        .strays
        .iter()
        .filter(|stray| stray.is_second)
    {
        let note = found.at(stray.value, message(&stray.result));
        let note = if is_refused { note } else { note.warning() };
        note.help("render one result for each call");
    }
}

fn message(result: &Outcome<'_>) -> String {
    match result.id.or(result.name) {
        Some(id) => format!(
            "the call `{}` already has a result",
            crate::text::cut(id, 60)
        ),
        None => "the call already has a result".to_owned(),
    }
}
