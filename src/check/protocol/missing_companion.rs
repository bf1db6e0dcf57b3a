//! `protocol/missing-companion`: a member that needs another member.

use super::conditions::{self, combinations};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/missing-companion", "a field requires another one that is missing",
    "Some fields have a meaning only together with another one, and the API rejects them alone; if it ignores them instead, this is a \
     warning. A profile drops an inherited field with `unset`.\n\n\
     * wrong: `stream_options` without `stream`\n\
     * right: `stream_options` and `stream = true`",
    seen "2026-11" {
        "https://github.com/openai/openai-openapi":
            "OpenAI: `audio`, `top_logprobs` and `stream_options` depend on other fields",
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini: `response_schema` needs `response_mime_type`",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp: `top_logprobs` needs `logprobs`",
        "https://github.com/sgl-project/sglang/blob/v0.5.23/python/sglang/srt/entrypoints/openai/serving_chat.py":
            "SGLang: *schema_ is required for json_schema response format request*",
        "tmc/langchaingo#1484": "OpenAI: `metadata` needs `store`",
        "looplj/axonhub#1380": "OpenAI: the same error",
        "BerriAI/litellm#5803": "OpenAI: `stream_options` needs `stream`",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/sampling_params.py":
            "vLLM: `logprob_token_ids` needs `logprobs`",
        "https://openrouter.ai/docs/api-reference/overview":
            "OpenRouter: either `messages` or `prompt` is required",
        "nextlevelbuilder/goclaw#660": "Fireworks: *must have stream=true*",
        "nullclaw/nullclaw#231": "Fireworks: the same error",
        "openclaw/openclaw#138395": "ChatGPT: *Store must be set to false* without `store`",
        "tinyhumansai/openhuman#3201": "ChatGPT: the same error",
        "duolahypercho/codex-router#862": "ChatGPT: *Stream must be set to true*",
        "QuantumNous/new-api#5819": "ChatGPT rejects a request without `stream`",
        "diegosouzapw/OmniRoute#746": "ChatGPT: *Instructions are required*",
        "lmstudio-ai/lmstudio-bug-tracker#1576": "LM Studio: `text` needs `format`",
        "n8n-io/n8n#24492": "LM Studio: the same error",
    }
}

const CHAT: &[WireFormat] = &[WireFormat::OpenAiChat];
const RESPONSES: &[WireFormat] = &[WireFormat::OpenAiResponses];
const GEMINI: &[WireFormat] = &[WireFormat::GoogleGenerateContent];
/// The servers that accept `stream_options` only together with `stream`. vLLM is one of the unknown
/// servers.
const STRICT: &[Server] = &[
    Server::OpenAi,
    Server::DeepSeek,
    Server::Qwen,
    Server::Groq,
    Server::XAi,
    Server::Moonshot,
    Server::ZAi,
    Server::Unknown,
];

combinations! {
    warned RESPONSES among STRICT: ("stream_options", Is) with ("stream", IsNotTrue);
        "`stream_options` has no effect unless `stream` is true";
        "omit `stream_options`, or set `stream` to `true`";

    refused RESPONSES at [LmStudio]: ("text", IsObject) with ("text.format", IsNot);
        "LM Studio rejects `text` without `format`";
        "leave `text` out";

    warned CHAT at [Ollama]: ("max_completion_tokens", Is) with ("max_tokens", IsNot);
        "Ollama does not read `max_completion_tokens`, so the answer has no limit";
        "use `max_tokens`";

    refused CHAT among STRICT: ("stream_options", IsObject) with ("stream", IsNot);
        "`stream_options` is accepted only if `stream` is true";
        "omit `stream_options`, or set `stream` to `true`";

    refused CHAT among STRICT: ("stream", IsFalse) with ("stream_options", IsObject);
        "`stream_options` is accepted only if `stream` is true";
        "leave `stream_options` out, or set `stream` to `true`";

    refused CHAT at [OpenAi, LlamaCpp, DeepSeek, Groq, XAi]: ("top_logprobs", Is) with ("logprobs", IsNotTrue);
        "`top_logprobs` needs `logprobs`";
        "set `logprobs` to `true`, or leave out `top_logprobs`";

    warned CHAT at [Unknown]: ("top_logprobs", IsNotZero) with ("logprobs", IsNotTrue);
        "vLLM and others require `logprobs` for `top_logprobs`";
        "set `logprobs` to `true`, or leave out `top_logprobs`";

    refused CHAT at [Unknown] running [VLLM]: ("logprob_token_ids", Holds) with ("logprobs", IsNotTrue);
        "`logprob_token_ids` needs `logprobs`";
        "set `logprobs` to `true`, or leave out `logprob_token_ids`";

    refused CHAT at [OpenAi]: ("modalities", Lists("audio")) with ("audio", IsNot);
        "the request asks for audio, but has no `audio` with a voice and a format";
        "add `audio` with `voice` and `format`";

    refused CHAT at [OpenAi]: ("metadata", Holds) with ("store", IsNotTrue);
        "`metadata` is accepted only if `store` is true";
        "omit `metadata`, or set `store` to `true`";

    refused CHAT at [OpenRouter]: ("messages", IsNot) with ("prompt", IsNot);
        "the request has neither `messages` nor a `prompt`";
        "add `messages`";

    refused RESPONSES at [OpenAi, Unknown]: ("input", IsEmpty)
        with ("previous_response_id", IsNot), ("conversation", IsNot), ("prompt", IsNot), ("prompt_id", IsNot);
        "`input` is missing or empty, and no other field refers to a conversation or a prompt";
        "put the question into `input`";

    warned CHAT at [Unknown] running [SGLANG, MINDIE]: ("response_format.json_schema", IsObject)
        with ("response_format.json_schema.schema", IsNot);
        "the answer format has no schema, which SGLang and MindIE reject";
        "add the schema";

    refused CHAT at [Fireworks]: ("max_tokens", IsAbove(4096)) with ("stream", IsNotTrue);
        "an answer of more than 4,096 tokens must be streamed";
        "set `stream` to `true`, or lower `max_tokens`";

    refused RESPONSES at [ChatGpt]: ("store", IsNot) with ("model", Is);
        "the ChatGPT backend accepts only requests with `store` set to `false`";
        "add `\"store\": false`";

    refused RESPONSES at [ChatGpt]: ("stream", IsNot) with ("model", Is);
        "the ChatGPT backend supports only streaming";
        "add `\"stream\": true`";

    warned RESPONSES at [ChatGpt]: ("instructions", IsNot) with ("model", Is);
        "a report says that the ChatGPT backend requires `instructions`";
        "add `instructions`";

    refused GEMINI: ("generationConfig.responseSchema", Is) with ("generationConfig.responseMimeType", IsNot);
        "`responseSchema` needs a `responseMimeType`";
        "add `\"responseMimeType\": \"application/json\"`";

    refused GEMINI: ("generationConfig.responseJsonSchema", Is) with ("generationConfig.responseMimeType", IsNot);
        "`responseJsonSchema` needs a `responseMimeType`";
        "add `\"responseMimeType\": \"application/json\"`";

    refused GEMINI: ("generationConfig.logprobs", Is) with ("generationConfig.responseLogprobs", IsNotTrue);
        "`logprobs` needs `responseLogprobs`";
        "set `responseLogprobs` to `true`";
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    conditions::check(TABLE, subject, found);
    if NEED_MODELS.contains(&subject.server) {
        without_model(subject, found);
    }
}

/// The servers for which this rule, instead of the schema, reports a missing model. The schema does
/// not require a model, because the schema also applies to unknown servers, some of which need no
/// model.
const NEED_MODELS: [Server; 5] = [
    Server::Unknown,
    Server::MiniMax,
    Server::Fireworks,
    Server::Perplexity,
    Server::DeepInfra,
];

/// The members in a Responses request that refer to a stored object, which determines the model: a
/// prompt, an Azure AI Foundry agent, or a Perplexity preset.
const NAME_MODELS: [&str; 4] = ["prompt", "agent_reference", "agent", "preset"];

/// Reports a request in one of OpenAI's formats that specifies no model, because most servers need
/// one.
fn without_model<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_of_openai = CHAT.contains(&subject.wire) || RESPONSES.contains(&subject.wire);
    let is_said_elsewhere = RESPONSES.contains(&subject.wire)
        && NAME_MODELS
            .iter()
            .any(|name| subject.member(name).is_some());
    if is_of_openai
        && !is_said_elsewhere
        && subject.model.is_none()
        && subject.member("model").is_none()
    {
        found
            .at_top("the request has no `model`, which most servers require")
            .warning()
            .help("add `model`");
    }
}
