//! `protocol/item-kind`: items of the Responses API that the server does not support.

use serde_json::Value;

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::Server;

body_rule! {
    Error "protocol/item-kind", "the server does not support an item, or the form of an item",
    "Local servers and xAI support fewer kinds of items in the Responses API than OpenAI:\n\n\
     * llama.cpp supports messages, `function_call`, `function_call_output` and `reasoning`. An assistant message needs \
     `\"type\": \"message\"`, the output of a call must be text, and reasoning must have its text in `content`; otherwise: \
     *Cannot determine type of 'item'*\n\
     * Ollama supports these and `web_search_call`. Parts can be `input_text`, `output_text` and `input_image`; files: *file inputs are \
     not currently supported*\n\
     * the ChatGPT backend requires `input` to be a list\n\
     * xAI rejects `additional_tools`. It does not list some other item types that OpenAI's clients send (reported as a warning). It \
     accepts reasoning without `content`; according to user reports, it rejects `\"content\": null` and calls to custom tools\n\n\
     * wrong: `{ \"role\": \"assistant\", \"content\": \"Hello\" }` for llama.cpp\n\
     * right: `{ \"type\": \"message\", \"role\": \"assistant\", \"content\": \"Hello\" }`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://github.com/ggml-org/llama.cpp/blob/03eb25f39343f1c9ecc6f85ca4f9796a6ab7b230/tools/server/server-chat.cpp":
            "llama.cpp converts only these items, in `server_chat_convert_responses_to_chatcmpl`",
        "bakks/butterfish#53": "llama.cpp: *Cannot determine type of 'item'*",
        "ggml-org/llama.cpp#23465": "llama.cpp: *Output of tool call should be 'Input text'*",
        "pkg:github/ollama/ollama@fb30760#openai/responses.go":
            "Ollama reads only these items, in `unmarshalResponsesInputItem`",
        "zyycn/codex-proxy-rs#178": "ChatGPT: *Input must be a list*",
        "duolahypercho/codex-router#862": "ChatGPT: the same error",
        "router-for-me/CLIProxyAPI#4434": "xAI rejects `additional_tools`, tested live",
        "Wei-Shaw/sub2api#3982": "xAI rejects `additional_tools`",
        "https://raw.githubusercontent.com/api-evangelist/xai/refs/heads/main/openapi/xai-responses-api-openapi.yml":
            "a copy of xAI's specification lists its items in `ModelInputPart`",
        "router-for-me/CLIProxyAPI#4282": "xAI: *data did not match any variant of untagged enum ModelInput*",
        "Wei-Shaw/sub2api#4237": "xAI rejects `\"content\": null` in reasoning",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let input = subject.member("input");
    if let Some(text) = input.filter(|input| input.is_string() && subject.server == Server::ChatGpt)
    {
        found
            .at(text, "the ChatGPT backend requires `input` to be a list")
            .help("write a list with one user message");
    }
    for item in elements(subject.member("input")) {
        match subject.server {
            Server::LlamaCpp => llamacpp(item, found),
            Server::Ollama => ollama(item, found),
            Server::XAi => xai(item, found),
            _ => return,
        }
    }
}

/// Checks an item. The order of the tests is the order in which llama.cpp distinguishes the kinds.
fn llamacpp<'b>(item: &'b Value, found: &mut Found<'b>) {
    let kind = text_of(item, "type");
    match (text_of(item, "role"), kind) {
        (Some("user" | "system" | "developer"), _)
        | (Some("assistant"), Some("message"))
        | (_, Some("function_call")) => {}
        (Some("assistant"), None) => found
            .at(item, "llama.cpp requires `type` on assistant messages")
            .help("write `\"type\": \"message\"`"),
        (_, Some("function_call_output")) => {
            for part in elements(item.get("output")) {
                if text_of(part, "type") != Some("input_text") {
                    found
                        .at(part, "llama.cpp accepts only text as the output of a call")
                        .help("put images into a user message after it");
                }
            }
        }
        (_, Some("reasoning")) => {
            let text = elements(item.get("content")).first();
            if text.and_then(|part| text_of(part, "text")).is_none() {
                found
                    .at(
                        item,
                        "llama.cpp requires reasoning to have its text in `content`",
                    )
                    .help("add `content` with a `reasoning_text`, or remove the item");
            }
        }
        (_, kind) => unread(item, "llama.cpp", kind, found),
    }
}

/// The kinds of items that Ollama supports.
const OLLAMA_ITEMS: [&str; 5] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "web_search_call",
];
/// The kinds of parts that Ollama supports.
const OLLAMA_PARTS: [&str; 3] = ["input_text", "output_text", "input_image"];

fn ollama<'b>(item: &'b Value, found: &mut Found<'b>) {
    let kind = text_of(item, "type").or_else(|| item.get("role").map(|_| "message"));
    if !kind.is_some_and(|kind| OLLAMA_ITEMS.contains(&kind)) {
        unread(item, "Ollama", kind, found);
        return;
    }
    let parts = match kind {
        Some("message") => item.get("content"),
        Some("function_call_output") => item.get("output"),
        _ => None,
    };
    for part in elements(parts) {
        let kind = text_of(part, "type");
        if !kind.is_some_and(|kind| OLLAMA_PARTS.contains(&kind)) {
            unread(part, "Ollama", kind, found);
        }
    }
}

/// The kinds of items in xAI's list, and references to items that xAI stores.
const XAI_ITEMS: [&str; 14] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "compaction",
    "item_reference",
    "web_search_call",
    "x_search_call",
    "file_search_call",
    "code_interpreter_call",
    "mcp_call",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
];

fn xai<'b>(item: &'b Value, found: &mut Found<'b>) {
    let kind = text_of(item, "type");
    if kind == Some("additional_tools") {
        found
            .at(item, "xAI does not support `additional_tools`")
            .help("write the tools into `tools`");
    } else if let Some(kind) = kind.filter(|kind| kind.starts_with("custom_tool_call")) {
        let message = format!("a report says that xAI does not support `{kind}`");
        found
            .at(item, message)
            .warning()
            .help("describe the tool as a function, and send the call as `function_call`");
    } else if let Some(kind) = kind.filter(|kind| !XAI_ITEMS.contains(kind)) {
        let kind = crate::text::cut(kind, 60);
        found
            .at(
                item,
                format!("xAI does not list `{kind}` among its item types"),
            )
            .warning()
            .help("remove it, or describe its content in a message");
    }
    let is_null = item.get("content").is_some_and(Value::is_null);
    if is_null && text_of(item, "type") == Some("reasoning") {
        found
            .at_member(
                item,
                "content",
                "a report says that xAI rejects reasoning whose `content` is `null`",
            )
            .warning()
            .help("remove `content`");
    }
}

fn unread<'b>(value: &'b Value, server: &str, kind: Option<&str>, found: &mut Found<'b>) {
    let message = match kind {
        Some(kind) => format!("{server} does not support `{}`", crate::text::cut(kind, 60)),
        None => format!("{server} cannot recognise this: it has no `type`"),
    };
    found
        .at(value, message)
        .help("remove it, or describe its content in a message");
}
