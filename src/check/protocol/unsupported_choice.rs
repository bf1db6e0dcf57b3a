//! `protocol/unsupported-choice`: a tool choice that the server does not support.

use serde_json::Value;

use super::tools::{Choice, Which, choice, text};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, VLLM, WireFormat};

body_rule! {
    Error "protocol/unsupported-choice", "the server does not accept this tool choice",
    "Servers that use OpenAI's format accept different `tool_choice` values:\n\n\
     * LM Studio accepts `none`, `auto` and `required`, and rejects an object\n\
     * llama.cpp silently treats an object as `auto` (reported as a warning)\n\
     * Ollama does not read `tool_choice` at all (a warning, unless it is `auto`)\n\
     * DeepInfra accepts only `auto` and `none`, according to user reports (reported as a warning)\n\
     * vLLM accepts only `auto` and `none` for gpt-oss in its Responses API (reported as a warning)\n\n\
     Gemini accepts `allowedFunctionNames` only with the modes `ANY` and `VALIDATED`, in upper or lower \
     case.\n\n\
     * wrong, for LM Studio: `tool_choice = { type = \"function\", function = { name = \"get_weather\" } \
     }`\n\
     * right: `tool_choice = \"required\"`, with only that tool in `tools`",
    seen "2026-11" {
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini's `FunctionCallingConfig` accepts names only with some modes",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp treats an object as `auto`",
        "pkg:github/ollama/ollama@fb30760#docs/api/openai-compatibility.mdx":
            "Ollama does not read `tool_choice`",
        "BerriAI/litellm#4655": "DeepInfra accepts `auto` and `none`",
        "vllm-project/vllm#53626":
            "vLLM: *Only 'auto' or 'none' tool_choice is supported in response API with Harmony*",
        "lmstudio-ai/lmstudio-bug-tracker#670": "LM Studio rejects an object",
        "can1357/oh-my-pi#6925": "LM Studio: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::GoogleGenerateContent => names_without_mode(subject, found),
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => of_server(subject, found),
        WireFormat::AnthropicMessages
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

fn of_server<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_ollama = subject.server == Server::Ollama;
    let is_deepinfra = subject.level_of(Server::DeepInfra).is_some();
    let is_harmony = is_harmony_of_vllm(subject);
    let is_known = is_deepinfra || matches!(subject.server, Server::LmStudio | Server::LlamaCpp);
    if !is_ollama && !is_known && !is_harmony {
        return;
    }
    let Some(choice) = choice(subject) else {
        return;
    };
    if is_ollama && !matches!(choice.which, Which::Free) {
        let note = found.at(
            choice.value,
            "Ollama does not read `tool_choice`: the model may call any tool or none",
        );
        note.warning()
            .help("omit `tool_choice`, and name the tool to call in the prompt");
    } else if is_deepinfra && !is_auto_or_none(choice.value) {
        let note = found.at(
            choice.value,
            "according to user reports, DeepInfra accepts only `auto` and `none`",
        );
        note.warning()
            .help("write `auto`, and name the tool to call in the prompt");
    } else if is_harmony && !is_auto_or_none(choice.value) {
        let note = found.at(
            choice.value,
            "vLLM accepts only `auto` and `none` for gpt-oss in its Responses API",
        );
        note.warning().help("write `auto`, or use Chat Completions");
    } else if subject.server == Server::LmStudio && choice.value.is_object() {
        let note = found.at(
            choice.value,
            "LM Studio accepts only `none`, `auto` and `required`",
        );
        note.help("write `required`, and declare only the tool to call");
    } else if subject.server == Server::LlamaCpp && choice.value.is_object() {
        let note = found.at(
            choice.value,
            "llama.cpp treats an object in `tool_choice` as `auto`",
        );
        note.warning()
            .help("write `required`, and declare only the tool to call");
    }
}

/// Returns `true` if vLLM, which is one of the unknown servers, would render the request in
/// Harmony's format.
fn is_harmony_of_vllm(subject: &Subject<'_>) -> bool {
    match subject.wire {
        WireFormat::OpenAiResponses => {
            subject.may_run(VLLM) && subject.model.is_some_and(|model| model.contains("gpt-oss"))
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    }
}

fn is_auto_or_none(choice: &Value) -> bool {
    choice
        .as_str()
        .is_some_and(|choice| ["auto", "none"].contains(&choice))
}

fn names_without_mode<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(Choice {
        value,
        which: Which::These(..),
    }) = choice(subject)
    else {
        return;
    };
    if !text(value, "mode").is_some_and(takes_names) {
        let camel = value.get("allowedFunctionNames").is_some();
        let name = if camel {
            "allowedFunctionNames"
        } else {
            "allowed_function_names"
        };
        let note = found.at_member(
            value,
            name,
            "function names are accepted only with the modes `ANY` and `VALIDATED`",
        );
        note.help("write `\"mode\": \"ANY\"`, or leave out the names");
    }
}

fn takes_names(mode: &str) -> bool {
    ["ANY", "VALIDATED"]
        .iter()
        .any(|known| mode.eq_ignore_ascii_case(known))
}
