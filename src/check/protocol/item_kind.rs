//! `protocol/item-kind`: items of the Responses API that the server does not read.

use serde_json::Value;

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::Server;

body_rule! {
    Error "protocol/item-kind", "an item is of a kind or in a form that the server does not read",
    "Servers that speak the Responses API beside others read fewer kinds of items than OpenAI:\n\n\
     * llama.cpp reads messages, `function_call`, `function_call_output` and `reasoning`. A message of the assistant says \
     `\"type\": \"message\"`, the output of a call is text, and reasoning has its text in `content`: *Cannot determine type of 'item'*\n\
     * Ollama reads these and `web_search_call`. Parts are `input_text`, `output_text`, `input_image` and `input_file`\n\
     * xAI takes reasoning without `content`, and a report says that it refuses `\"content\": null`\n\n\
     * wrong: `{ \"role\": \"assistant\", \"content\": \"Hello\" }` for llama.cpp\n\
     * right: `{ \"type\": \"message\", \"role\": \"assistant\", \"content\": \"Hello\" }`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://github.com/ggml-org/llama.cpp/blob/03eb25f39343f1c9ecc6f85ca4f9796a6ab7b230/tools/server/server-chat.cpp":
            "llama.cpp: `server_chat_convert_responses_to_chatcmpl`",
        "bakks/butterfish#53": "llama.cpp: *Cannot determine type of 'item'*",
        "ggml-org/llama.cpp#23465": "llama.cpp: *Output of tool call should be 'Input text'*",
        "pkg:github/ollama/ollama@fb30760#openai/responses.go": "Ollama: `unmarshalResponsesInputItem`",
        "Wei-Shaw/sub2api#4237": "xAI refuses `\"content\": null` in reasoning",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for item in elements(subject.member("input")) {
        match subject.server {
            Server::LlamaCpp => llamacpp(item, found),
            Server::Ollama => ollama(item, found),
            Server::XAi => xai(item, found),
            _ => return,
        }
    }
}

/// Checks an item in the order in which llama.cpp tells the kinds apart.
fn llamacpp<'b>(item: &'b Value, found: &mut Found<'b>) {
    let kind = text_of(item, "type");
    match (text_of(item, "role"), kind) {
        (Some("user" | "system" | "developer"), _)
        | (Some("assistant"), Some("message"))
        | (_, Some("function_call")) => {}
        (Some("assistant"), None) => found
            .at(
                item,
                "llama.cpp needs the type of a message of the assistant",
            )
            .help("write `\"type\": \"message\"`"),
        (_, Some("function_call_output")) => {
            for part in elements(item.get("output")) {
                if text_of(part, "type") != Some("input_text") {
                    found
                        .at(part, "llama.cpp takes texts alone as the output of a call")
                        .help("put an image into a message of the user after it");
                }
            }
        }
        (_, Some("reasoning")) => {
            let text = elements(item.get("content")).first();
            if text.and_then(|part| text_of(part, "text")).is_none() {
                found
                    .at(item, "llama.cpp wants the text of reasoning in `content`")
                    .help("give `content` with a `reasoning_text`, or leave the item out");
            }
        }
        (_, kind) => unread(item, "llama.cpp", kind, found),
    }
}

/// The kinds of items that Ollama reads.
const OLLAMA_ITEMS: [&str; 5] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "web_search_call",
];
/// The kinds of parts that Ollama reads.
const OLLAMA_PARTS: [&str; 4] = ["input_text", "output_text", "input_image", "input_file"];

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

fn xai<'b>(item: &'b Value, found: &mut Found<'b>) {
    let is_null = item.get("content").is_some_and(Value::is_null);
    if is_null && text_of(item, "type") == Some("reasoning") {
        found
            .at_member(
                item,
                "content",
                "a report says that xAI refuses reasoning whose `content` is `null`",
            )
            .warning()
            .help("leave `content` out");
    }
}

fn unread<'b>(value: &'b Value, server: &str, kind: Option<&str>, found: &mut Found<'b>) {
    let message = match kind {
        Some(kind) => format!("{server} does not read `{}`", crate::text::cut(kind, 60)),
        None => format!("{server} cannot tell what this is: it has no `type`"),
    };
    found
        .at(value, message)
        .help("leave it out, or say in a message what it holds");
}
