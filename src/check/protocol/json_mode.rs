//! `protocol/json-mode`: JSON mode in a request for which the API rejects it.

use serde_json::Value;

use super::super::history::{History, Role};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, TurnForm, WireFormat};

body_rule! {
    Error "protocol/json-mode", "JSON mode is requested in a way that the API rejects",
    "OpenAI, DeepSeek, Qwen and Groq accept `json_object` only if the word *json* occurs in the messages; the Responses API \
     checks only `input`, not `instructions`. LM Studio supports only `json_schema` and `text`, and Mistral requires a schema \
     for `json_schema`.\n\n\
     * wrong: `{\"type\": \"json_object\"}`, and no message contains the word JSON\n\
     * right: the same with a system message such as *Answer with a JSON object*",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/request.py":
            "Mistral's `ResponseFormat` requires a schema for `json_schema`",
        "mem0ai/mem0#3008": "OpenAI: *must contain the word 'json' in some form*",
        "ultimatejimmy/xray.koplugin#33": "similar servers: the same error",
        "lmstudio-ai/lmstudio-bug-tracker#189":
            "LM Studio: *'response_format.type' must be 'json_schema' or 'text'*",
        "whiteguo233/OpenBiliClaw#12": "LM Studio: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let format = match subject.wire {
        WireFormat::OpenAiChat | WireFormat::MistralChat => subject.member("response_format"),
        WireFormat::OpenAiResponses => subject.member("text").and_then(|text| text.get("format")),
        WireFormat::AnthropicMessages
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => None,
    };
    let Some(format) = format else { return };
    match (format.get("type").and_then(Value::as_str), subject.server) {
        (Some("json_object"), Server::LmStudio) => found
            .at_member(
                format,
                "type",
                "LM Studio accepts only `json_schema` or `text` here",
            )
            .help("use `json_schema` with a schema"),
        (Some("json_object"), server) if wants_word(server) && !says_json(subject) => found
            .at(
                format,
                "JSON mode is rejected unless the messages contain the word *json*",
            )
            .help(match subject.wire.facts().turns {
                TurnForm::Items => {
                    "ask for JSON in an item of `input`; the API does not check `instructions`"
                }
                TurnForm::Blocks | TurnForm::Messages | TurnForm::Contents | TurnForm::None => {
                    "ask for JSON, for example in the system prompt"
                }
            }),
        (Some("json_schema"), Server::Mistral)
            if format.get("json_schema").is_none_or(Value::is_null) =>
        {
            found
                .at(format, "`json_schema` needs a schema")
                .help("add `json_schema` with `name` and `schema`");
        }
        _ => {}
    }
}

fn wants_word(server: Server) -> bool {
    matches!(
        server,
        Server::OpenAi | Server::DeepSeek | Server::Qwen | Server::Groq
    )
}

/// Returns `true` if a message contains the word “JSON”. Content that reqc cannot read is
/// assumed to contain the word.
fn says_json(subject: &Subject<'_>) -> bool {
    let history: &History<'_> = subject.history();
    let said = history.entries.iter().any(|entry| {
        let texts = entry.parts.iter().filter_map(|part| match part.kind {
            super::super::history::Kind::Text(text) => Some(text),
            super::super::history::Kind::Result(_) => {
                part.value.get("content").and_then(Value::as_str)
            }
            _ => None,
        });
        texts
            .into_iter()
            .any(|text| text.to_ascii_lowercase().contains("json"))
    });
    let is_hidden = subject.is_continued() || subject.member("prompt").is_some();
    said || is_hidden
        || history
            .entries
            .iter()
            .all(|entry| entry.role == Role::Other)
}
