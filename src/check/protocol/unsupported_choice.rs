//! `protocol/unsupported-choice`: a tool choice that the server does not support.

use super::tools::{Choice, Which, choice, text};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/unsupported-choice", "the server does not take this choice of tools",
    "Servers of OpenAI's format differ in what `tool_choice` may be:\n\n\
     * LM Studio takes `none`, `auto` and `required`, and refuses an object\n\
     * llama.cpp takes an object as `auto`, without a word: a warning\n\
     * Ollama reads no `tool_choice` at all: a warning, unless it is `auto`\n\n\
     Gemini takes `allowedFunctionNames` with the modes `ANY` and `VALIDATED` only, written in any case.\n\n\
     * wrong, for LM Studio: `tool_choice = { type = \"function\", function = { name = \"get_weather\" } }`\n\
     * right: `tool_choice = \"required\"`, with that tool alone in `tools`",
    seen "2026-11" {
        "pkg:pypi/google-genai@3.4#types.py": "Gemini: `FunctionCallingConfig`",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp: an object is read as `auto`",
        "pkg:github/ollama/ollama@fb30760#docs/api/openai-compatibility.mdx":
            "Ollama: `tool_choice` is not read",
        "lmstudio-ai/lmstudio-bug-tracker#670": "LM Studio refuses an object",
        "can1357/oh-my-pi#6925": "LM Studio: the same refusal",
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
    if !is_ollama && !matches!(subject.server, Server::LmStudio | Server::LlamaCpp) {
        return;
    }
    let Some(choice) = choice(subject) else {
        return;
    };
    if is_ollama && !matches!(choice.which, Which::Free) {
        let note = found.at(
            choice.value,
            "Ollama does not read `tool_choice`: the model calls what it likes",
        );
        note.warning()
            .help("leave it out, and say in the prompt which tool to call");
    } else if subject.server == Server::LmStudio && choice.value.is_object() {
        let note = found.at(
            choice.value,
            "LM Studio takes `none`, `auto` and `required` only",
        );
        note.help("write `required`, and declare only the tool that is to be called");
    } else if subject.server == Server::LlamaCpp && choice.value.is_object() {
        let note = found.at(
            choice.value,
            "llama.cpp reads a choice that is an object as `auto`",
        );
        note.warning()
            .help("write `required`, and declare only the tool that is to be called");
    }
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
            "names of functions are taken with the modes `ANY` and `VALIDATED` only",
        );
        note.help("write `\"mode\": \"ANY\"`, or leave out the names");
    }
}

fn takes_names(mode: &str) -> bool {
    ["ANY", "VALIDATED"]
        .iter()
        .any(|known| mode.eq_ignore_ascii_case(known))
}
