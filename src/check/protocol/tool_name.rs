//! `protocol/tool-name`: tool names that some servers reject.

use super::tools::{DeclaredTool, text, tools};
use super::{Found, Subject, body_rule};
use crate::provider::{SGLANG, Server, Software, VLLM, WireFormat};

body_rule! {
    Error "protocol/tool-name", "the name or the description of a tool is or may be rejected",
    "A format's schema reports the names that the format never accepts. This rule covers names that only some servers accept. Where \
     servers and reports disagree, it is a warning:\n\n\
     * Moonshot: a name must start with a letter, and contain only letters, digits, `_` and `-` (an error). Reports \
     disagree on names that start with `_`, which are not reported\n\
     * Gemini: names of more than 64 characters were rejected up to March 2026; the SDK says 128\n\
     * Chat Completions: OpenAI and most gateways to it reject names with characters other than letters, digits, `_` and `-`, and names \
     longer than 64 characters; vLLM, SGLang, llama.cpp and Ollama accept any name. For unknown servers, this is a warning. In \
     Anthropic's format, a name of more than 64 characters is a warning for Z.ai and for unknown servers, unless the model is Claude\n\
     * OpenAI and Azure: descriptions of more than 1,048,576 characters are rejected (an error); until 2025, the limit was 1,024\n\n\
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
        "MoonshotAI/kimi-cli#1773": "Moonshot: *function name is invalid, must start with a letter*",
        "MoonshotAI/kimi-cli#2531": "Moonshot: the same error, for names that start with `21st_`",
        "openclaw/openclaw#79179": "Moonshot: the same error, for names that start with `12306_`",
        "MoonshotAI/kimi-cli#1806": "Moonshot: a name must start with a letter or `_`",
        "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/models":
            "Azure: *Expected a string with maximum length 1048576*, for a description",
        "nanbingxyz/5ire#33": "OpenAI rejected descriptions of more than 1,024 characters until 2025",
        "run-llama/llama_index#18784": "OpenAI accepts a description of 36,000 characters, measured",
        "OpenHands/OpenHands#10184": "OpenAI: gpt-5 accepts longer descriptions",
    }
}

/// The maximum length of a function name that all reports about Gemini agree on, in characters.
const GEMINI_NAME: usize = 64;
/// The maximum length of a function name for OpenAI, in characters.
const OPENAI_NAME: usize = 64;
/// The maximum length of a description for OpenAI, in characters.
const OPENAI_DESCRIPTION: usize = 1_048_576;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let check_one: for<'t> fn(&DeclaredTool<'t>, &mut Found<'t>) = match subject.wire {
        WireFormat::GoogleGenerateContent => long_name,
        WireFormat::OpenAiChat if subject.server == Server::Moonshot => moonshot_name,
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
            .warning()
            .help(format!("use at most {GEMINI_NAME} characters"));
    }
}

/// Finds a name that Moonshot rejects.
fn moonshot_name<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let name = tool.name.unwrap_or_default();
    let is_begun = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if name.is_empty() || is_begun && is_plain {
        return;
    }
    let message = match is_begun {
        true => "Moonshot accepts only letters, digits, `_` and `-` in a name",
        false => "Moonshot requires that a name starts with a letter",
    };
    found
        .at_member(tool.object, "name", message)
        .known_from(&[
            "MoonshotAI/kimi-cli#1773",
            "MoonshotAI/kimi-cli#2531",
            "openclaw/openclaw#79179",
            "MoonshotAI/kimi-cli#1806",
        ])
        .help("begin with a letter, then use only letters, digits, `_` and `-`");
}

/// Returns `true` if software accepts any name.
fn takes_any_name(software: Software) -> bool {
    [VLLM, SGLANG].contains(&software)
}

/// Reports a name that OpenAI rejects, for servers that may be a gateway to OpenAI.
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
    found
        .at_member(tool.object, "name", message)
        .warning()
        .help(format!(
            "use letters, digits, `_` and `-`, at most {OPENAI_NAME}"
        ));
}

/// Reports a name in Anthropic's format that the API behind a relay may reject.
fn relayed_name<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let length = tool.name.map_or(0, |name| name.chars().count());
    if length > OPENAI_NAME {
        let message = format!(
            "the name has {length} characters; Claude accepts 128, but other models' APIs reject more than {OPENAI_NAME}"
        );
        found
            .at_member(tool.object, "name", message)
            .warning()
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
            "the description has {length} characters; OpenAI rejects more than {OPENAI_DESCRIPTION}"
        );
        found
            .at_member(function, "description", message)
            .help("move details to the system prompt");
    }
}
