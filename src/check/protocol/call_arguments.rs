//! `protocol/call-arguments`: call arguments that are not a JSON object.

use serde::de::IgnoredAny;

use super::{Found, Subject, body_rule};
use crate::provider::Server;
use crate::repo::Property;

body_rule! {
    Error "protocol/call-arguments", "the arguments of a tool call are not a JSON object",
    "Chat Completions, Responses and Mistral send the arguments of a call as a string that contains a JSON object. Servers that render the \
     history with the model's template parse this string: llama.cpp, Ollama, Qwen, MiniMax, vLLM and SGLang reject arguments that they \
     cannot parse. OpenAI accepts any text. For OpenAI and other providers, arguments that are not JSON are a warning, because the model \
     sees something that it would never write itself. For open-weight models on unknown servers, they are an error, because vLLM, SGLang \
     and LMDeploy reject them; a gateway may pass other models on to OpenAI. JSON that is not an object is also a warning, except for \
     Ollama, which rejects it. Most servers accept an empty string; llama.cpp and Ollama reject it; according to user reports, xAI and \
     Qwen do too (reported as a warning).\n\n\
     * wrong: `\"arguments\": \"{\\\"city\\\": \\\"Ber\"` (an answer that was cut off)\n\
     * wrong: `\"arguments\": \"[\\\"Bergen\\\"]\"`\n\
     * right: `\"arguments\": \"{\\\"city\\\": \\\"Bergen\\\"}\"`, which `{{ tojson(tojson(block.input)) }}` writes",
    seen "2026-11" {
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp: *Failed to parse tool call arguments as JSON*",
        "pkg:github/ollama/ollama@fb30760#openai/openai.go": "Ollama parses arguments as an object",
        "HKUDS/nanobot#1487": "Qwen rejects arguments that are not JSON",
        "HKUDS/nanobot#2469": "Qwen rejects them too",
        "NousResearch/hermes-agent#12167":
            "MiniMax: *invalid function arguments json string*",
        "HKUDS/nanobot#2373": "MiniMax: the same error",
        "OpenHands/software-agent-sdk#2887":
            "llama.cpp and vLLM reject arguments that are not JSON",
        "sgl-project/sglang#28035": "SGLang fails on them",
        "pkg:pypi/sglang@0.5.23": "SGLang: *function.arguments must be valid JSON*",
        "https://github.com/InternLM/lmdeploy/blob/1263d5cd889b7ad500e85b8eb20401327a4516ab/lmdeploy/serve/openai/api_server.py":
            "LMDeploy: *Tool call arguments contain invalid JSON*",
        "spiceai/spiceai#4734": "xAI rejects an empty string",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.wire.facts().has_arguments_as_text {
        return;
    }
    for (_, _, call) in subject.history().calls() {
        let Some(value) = call.arguments else {
            continue;
        };
        let Some((fault, refusing)) = value.as_str().and_then(fault) else {
            continue;
        };
        let is_refused = refusing.contains(&subject.server)
            && (subject.server != Server::Unknown || subject.facts.is(Property::OpenWeights));
        let is_empty = value.as_str().is_some_and(|text| text.trim().is_empty());
        let is_doubted = matches!(subject.server, Server::XAi | Server::Qwen);
        if is_refused || is_doubted || !is_empty {
            let note = found.at(value, fault);
            let note = if is_refused { note } else { note.warning() };
            note.help("write the arguments as a string that contains a JSON object; if the model's answer was cut off, remove the call");
        }
    }
}

/// Returns the mistake in the text of the arguments, and the servers that reject it.
fn fault(text: &str) -> Option<(&'static str, &'static [Server])> {
    let text = text.trim();
    if text.is_empty() {
        let refusing = &[Server::LlamaCpp, Server::Ollama];
        return Some((
            "the arguments are an empty string: write `{}` if there are none",
            refusing,
        ));
    }
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Some((
            "the arguments are not JSON",
            &[
                Server::LlamaCpp,
                Server::Ollama,
                Server::Qwen,
                Server::MiniMax,
                Server::Unknown,
            ],
        ));
    }
    (!text.starts_with('{')).then_some((
        "the arguments are JSON, but not an object",
        &[Server::Ollama],
    ))
}
