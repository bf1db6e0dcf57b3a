//! `protocol/tool-name`: tool names that some servers reject.

use super::tools::{DeclaredTool, text, tools};
use super::{Found, Subject, body_rule};
use crate::provider::{SGLANG, Server, Software, VLLM, WireFormat};

body_rule! {
    Warning "protocol/tool-name", "the name or the description of a tool may be rejected",
    "Names that a format never accepts are reported by its schema. This rule covers those on which servers and reports disagree:\n\n\
     * Gemini: names of more than 64 characters were rejected up to March 2026; the SDK says 128\n\
     * Chat Completions: OpenAI and most gateways to it reject names with characters other than letters, digits, `_` and `-`, and names \
     longer than 64 characters; vLLM, SGLang, llama.cpp and Ollama accept any name. For unknown servers, this is a warning. In \
     Anthropic's format, a name of more than 64 characters is a warning for Z.ai and for unknown servers, unless the model is Claude\n\
     * OpenAI: descriptions of more than 1,024 characters were rejected in January 2025; the specification has no limit\n\n\
     * wrong: a name of 80 characters, made from a server's name and a path\n\
     * right: `wiki_search`",
    seen "2026-11" {
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini: `FunctionDeclaration.name` has up to 128 characters",
        "https://github.com/openai/openai-openapi":
            "OpenAI: `FunctionObject` has no limit on descriptions",
        "https://github.com/vllm-project/vllm/blob/040a2cc2a6295ea9c313d86526ff90a103eacb3e/vllm/entrypoints/openai/engine/protocol.py":
            "vLLM: `FunctionDefinition.name` is any text",
        "pkg:pypi/sglang@0.5.23#sglang/srt/entrypoints/openai/protocol.py":
            "SGLang: `Function.name` is any text",
        "hackers365/xiaozhi-esp32-server-golang#268": "OpenAI: *string does not match pattern*",
        "hanlulong/stata-mcp#48": "a relay for Anthropic's format: *Tool name too long*",
        "maximhq/bifrost#1979": "Gemini rejected names of more than 64 characters",
        "cline/cline#7339": "Gemini rejected names of more than 64 characters",
        "nanbingxyz/5ire#33": "OpenAI rejected descriptions of more than 1,024 characters",
    }
}

/// The maximum length of a function name that all reports about Gemini agree on, in characters.
const GEMINI_NAME: usize = 64;
/// The maximum length of a function name for OpenAI, in characters.
const OPENAI_NAME: usize = 64;
/// The maximum length of a description that OpenAI accepted in all reports, in characters.
const OPENAI_DESCRIPTION: usize = 1_024;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let check_one: for<'t> fn(&DeclaredTool<'t>, &mut Found<'t>) = match subject.wire {
        WireFormat::GoogleGenerateContent => long_name,
        WireFormat::OpenAiChat if subject.server == Server::OpenAi => long_description,
        WireFormat::OpenAiChat if subject.server == Server::Unknown => {
            if subject.headers.software.is_some_and(takes_any_name) {
                return;
            }
            uncommon_name
        }
        WireFormat::AnthropicMessages
            if matches!(subject.server, Server::Unknown | Server::ZAi) =>
        {
            relayed_name
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => return,
    };
    for tool in tools(subject).iter().filter(|tool| tool.is_function()) {
        check_one(tool, found);
    }
    if subject.server == Server::OpenAi {
        let functions = subject.member("functions");
        let functions = functions.and_then(serde_json::Value::as_array);
        for function in functions.into_iter().flatten() {
            description_of(function, found);
        }
    }
}

fn long_name<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let length = tool.name.map_or(0, |name| name.chars().count());
    // The schema reports names with more than 128 characters.
    if (GEMINI_NAME + 1..=128).contains(&length) {
        let message = format!(
            "the name has {length} characters; according to reports, more than {GEMINI_NAME} are rejected"
        );
        found
            .at_member(tool.object, "name", message)
            .help(format!("use at most {GEMINI_NAME} characters"));
    }
}

/// Returns `true` if software accepts any name.
fn takes_any_name(software: Software) -> bool {
    [VLLM, SGLANG].contains(&software)
}

/// Finds a name that OpenAI rejects, for servers that may be a gateway to OpenAI.
fn uncommon_name<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let name = tool.name.unwrap_or_default();
    let is_common = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let message = if !is_common {
        "vLLM and SGLang accept any name; other servers, and gateways to OpenAI, may reject this one".to_owned()
    } else if name.len() > OPENAI_NAME {
        format!(
            "the name has {} characters; a gateway to OpenAI rejects more than {OPENAI_NAME}",
            name.len()
        )
    } else {
        return;
    };
    found.at_member(tool.object, "name", message).help(format!(
        "use letters, digits, `_` and `-`, at most {OPENAI_NAME}"
    ));
}

/// Finds a name in Anthropic's format that the API behind a relay may reject.
fn relayed_name<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let length = tool.name.map_or(0, |name| name.chars().count());
    if length > OPENAI_NAME {
        let message = format!(
            "the name has {length} characters; Claude accepts 128, but other models' APIs reject more than {OPENAI_NAME}"
        );
        found
            .at_member(tool.object, "name", message)
            .help(format!("use at most {OPENAI_NAME} characters"));
    }
}

fn long_description<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    description_of(tool.object, found);
}

fn description_of<'b>(function: &'b serde_json::Value, found: &mut Found<'b>) {
    let length = text(function, "description").map_or(0, |text| text.chars().count());
    if length > OPENAI_DESCRIPTION {
        let message = format!(
            "the description has {length} characters; according to a report, more than {OPENAI_DESCRIPTION} are rejected"
        );
        found
            .at_member(function, "description", message)
            .help("move details to the system prompt");
    }
}
