//! `protocol/empty-content`: empty texts and messages that the schema allows.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::check::history::{Kind, Part, Role, elements};
use crate::provider::{Server, WireFormat};

body_rule! {
    Warning "protocol/empty-content", "a message or a text block is empty",
    "Most APIs reject empty content, and their schemas report it: blank text for Anthropic, contents without parts for Gemini, \
     assistant messages without text and calls for Mistral and OpenAI. This rule covers cases on which reports disagree:\n\n\
     * Gemini: a part with an empty text is rejected in some reports (v1beta) and accepted in others. With a `thoughtSignature` it \
     is the normal end of an answer, and fine\n\
     * Responses: an empty assistant message between a reasoning item and its call or message separates them, and the API reports a \
     missing *required following item*\n\
     * OpenAI: a system message whose content is an empty list violates the specification, but was accepted \
     (openai/openai-python#1812)\n\
     * Z.ai: an empty text next to other parts is rejected\n\
     * MiniMax: empty messages are rejected, as reports say: a warning\n\
     * vLLM: an empty list of `tools` is rejected, although similar servers accept it\n\
     * Ollama: a request without messages loads the model, and returns an empty answer\n\n\
     Leave out the part or the message; if the message then has no parts, leave out the message.\n\n\
     * wrong: `{ \"role\": \"model\", \"parts\": [{ \"text\": \"\" }, { \"functionCall\": … }] }`\n\
     * right: `{ \"role\": \"model\", \"parts\": [{ \"functionCall\": … }] }`",
    seen "2026-11" {
        "router-for-me/CLIProxyAPI#1292": "Gemini rejects an empty text",
        "glowingjade/obsidian-smart-composer#218": "Gemini rejects it too",
        "google-gemini/generative-ai-python#727": "Gemini accepts it",
        "recorded: pydantic-ai, tests/models/cassettes/test_google/test_google_model_empty_user_prompt.yaml":
            "Gemini accepted an empty text",
        "pkg:github/vllm-project/vllm#vllm/entrypoints/openai/chat_completion/protocol.py":
            "vLLM: *`tools` must not be an empty array*",
        "zed-industries/zed#38153": "Z.ai: *text cannot be empty*",
        "openclaw/openclaw#64644": "MiniMax: *chat content is empty*",
        "openclaw/openclaw#71296": "MiniMax: the same refusal",
        "agentscope-ai/QwenPaw#287": "Z.ai: the same refusal",
        "openclaw/openclaw#73688": "Z.ai: an assistant message without content",
        "continuedev/continue#11721": "the answer is empty",
        "pkg:github/ollama/ollama@fb30760#server/routes.go":
            "Ollama loads the model and returns an empty answer",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::GoogleGenerateContent => {
            let prompt = subject.either("systemInstruction", "system_instruction");
            let parts = elements(prompt.and_then(|prompt| prompt.get("parts")));
            parts.iter().for_each(|part| empty_part(part, found));
        }
        WireFormat::OllamaChat if elements(subject.member("messages")).is_empty() => {
            let message =
                "there are no messages: the server loads the model and returns an empty answer";
            let note = match subject.member("messages") {
                Some(messages) => found.at(messages, message),
                None => found.at_top(message),
            };
            note.help("render the conversation");
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
    in_history(subject, found);
}

fn in_history<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::GoogleGenerateContent => {
            subject
                .history()
                .parts()
                .for_each(|(_, part)| empty_part(part.value, found));
        }
        WireFormat::OpenAiResponses if subject.server.is_openai() => {
            empty_messages(subject, found);
        }
        WireFormat::OpenAiChat => {
            empty_prompt(subject, found);
            no_tools(subject, found);
            if matches!(
                subject.server,
                Server::XAi | Server::Moonshot | Server::ZAi | Server::MiniMax
            ) {
                empty_text(subject, found);
            }
            if subject.server == Server::ZAi {
                empty_parts(subject, found);
            }
        }
        WireFormat::MistralChat => mistral_prompt(subject, found),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

fn empty_part<'b>(part: &'b Value, found: &mut Found<'b>) {
    if part.get("text").is_some_and(|text| text == "") && !is_signed(part) {
        let note = found.at_member(
            part,
            "text",
            "an empty text: some reports say that the API rejects it",
        );
        note.help("leave out parts without text");
    }
}

fn is_signed(part: &Value) -> bool {
    ["thoughtSignature", "thought_signature"]
        .iter()
        .any(|name| part.get(*name).is_some())
}

/// Reports an empty list of tools.
fn no_tools<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let tools = subject.member("tools").filter(|tools| {
        subject.server == Server::Unknown && tools.as_array().is_some_and(Vec::is_empty)
    });
    if let Some(tools) = tools {
        found
            .at(tools, "vLLM rejects an empty list of `tools`")
            .help("leave it out");
    }
}

/// Reports instructions that are an empty list.
fn empty_prompt<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role == Role::System)
    {
        let content = entry.value.get("content").and_then(Value::as_array);
        if content.is_some_and(Vec::is_empty) {
            let message = "the prompt is an empty list: the specification requires one part, although the API was seen to accept none";
            found
                .at_member(entry.value, "content", message)
                .warning()
                .help("leave the message out");
        }
    }
}

/// Reports empty messages at xAI, Moonshot, Z.ai and `MiniMax`.
fn empty_text<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let told = subject.history().entries.iter().filter(|entry| {
        let is_told_of_model = matches!(
            subject.server,
            Server::Moonshot | Server::ZAi | Server::MiniMax
        );
        is_asked(entry.role) || entry.role == Role::Assistant && is_told_of_model
    });
    for entry in told {
        let is_empty = entry
            .parts
            .iter()
            .all(|part| matches!(part.kind, Kind::Text("")));
        if is_empty && entry.value.get("content").is_some() {
            let note = found.at_member(
                entry.value,
                "content",
                format!(
                    "a report says that {} rejects a message without text",
                    subject.server.name()
                ),
            );
            note.warning().help("leave the message out");
        }
    }
}

/// Reports parts that are empty texts beside others at Z.ai.
fn empty_parts<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in &subject.history().entries {
        let has_parts = entry.value.get("content").is_some_and(Value::is_array);
        if !has_parts || entry.parts.len() < 2 {
            continue;
        }
        for part in &entry.parts {
            if !matches!(part.kind, Kind::Text("")) {
                continue;
            }
            found
                .at(part.value, "Z.ai rejects a part with an empty text")
                .help("remove the part");
        }
    }
}

fn is_asked(role: Role) -> bool {
    matches!(role, Role::System | Role::User)
}

/// Reports instructions without text at Mistral.
fn mistral_prompt<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role == Role::System)
    {
        if entry
            .value
            .get("content")
            .and_then(Value::as_str)
            .is_some_and(str::is_empty)
        {
            let note = found.at_member(
                entry.value,
                "content",
                "the system prompt is empty, which the API rejects",
            );
            note.help("leave the message out");
        }
    }
}

fn empty_messages<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for pair in subject.history().entries.windows(2) {
        let is_reasoning = pair[0].parts.iter().any(Part::is_thinking);
        let is_empty = pair[1]
            .parts
            .iter()
            .all(|part| matches!(part.kind, Kind::Text("")));
        if is_reasoning && pair[1].role == Role::Assistant && is_empty {
            let note = found.at(
                pair[1].value,
                "an empty message separates the reasoning from the item that belongs to it",
            );
            note.help("leave out messages without text");
        }
    }
}
