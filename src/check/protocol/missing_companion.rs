//! `protocol/missing-companion`: a member that needs another one.

use super::conditions::{self, Combination, Condition, Test};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Body, Error "protocol/missing-companion", "a member needs another one that is missing",
    "Some members mean something only together with another one, and the API refuses them alone; where it passes over them \
     instead, this is a warning.\n\n\
     * wrong: `stream_options` without `stream`\n\
     * right: `stream_options` and `stream = true`\n\n\
     Sources, seen in November 2026: the errors of the APIs, as reported for their SDKs, and their reference pages."
}

const CHAT: &[WireFormat] = &[WireFormat::OpenAiChat];
const GEMINI: &[WireFormat] = &[WireFormat::GoogleGenerateContent];
/// Those that refuse it, and vLLM among the unknown ones.
const STRICT: &[Server] =
    &[Server::OpenAi, Server::DeepSeek, Server::Qwen, Server::Groq, Server::XAi, Server::Moonshot, Server::Unknown];

static TABLE: &[Combination] = &[
    Combination {
        wires: &[WireFormat::OpenAiResponses],
        servers: STRICT,
        at: Condition(&["stream_options"], Test::Is),
        with: &[Condition(&["stream"], Test::IsNotTrue)],
        warns: true,
        says: "`stream_options` means nothing unless `stream` is true",
        help: "leave it out, or stream",
    },
    Combination {
        wires: &[WireFormat::OpenAiResponses],
        servers: &[Server::LmStudio],
        at: Condition(&["text"], Test::IsObject),
        with: &[Condition(&["text", "format"], Test::IsNot)],
        warns: false,
        says: "LM Studio refuses `text` without `format`",
        help: "leave `text` out",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::Ollama],
        at: Condition(&["max_completion_tokens"], Test::Is),
        with: &[Condition(&["max_tokens"], Test::IsNot)],
        warns: true,
        says: "Ollama does not read `max_completion_tokens`, so there is no limit",
        help: "use `max_tokens`",
    },
    Combination {
        wires: CHAT,
        servers: STRICT,
        at: Condition(&["stream_options"], Test::IsObject),
        with: &[Condition(&["stream"], Test::IsNot)],
        warns: false,
        says: "`stream_options` is taken only when `stream` is true",
        help: "leave it out, or stream",
    },
    Combination {
        wires: CHAT,
        servers: STRICT,
        at: Condition(&["stream"], Test::IsFalse),
        with: &[Condition(&["stream_options"], Test::IsObject)],
        warns: false,
        says: "`stream_options` is taken only when `stream` is true",
        help: "leave `stream_options` out (`unset = [\"stream_options\"]` if it is inherited), or stream",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenAi, Server::LlamaCpp, Server::DeepSeek, Server::Groq, Server::XAi],
        at: Condition(&["top_logprobs"], Test::Is),
        with: &[Condition(&["logprobs"], Test::IsNotTrue)],
        warns: false,
        says: "`top_logprobs` needs `logprobs`",
        help: "set `logprobs` to `true`, or leave out `top_logprobs`",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenAi],
        at: Condition(&["modalities"], Test::Lists("audio")),
        with: &[Condition(&["audio"], Test::IsNot)],
        warns: false,
        says: "audio is asked for, and `audio` does not say which voice and format",
        help: "add `audio` with `voice` and `format`",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenAi],
        at: Condition(&["metadata"], Test::Holds),
        with: &[Condition(&["store"], Test::IsNotTrue)],
        warns: false,
        says: "`metadata` is taken only when `store` is true",
        help: "leave it out, or set `store` to `true`",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::Qwen],
        at: Condition(&["enable_thinking"], Test::IsTrue),
        with: &[Condition(&["stream"], Test::IsNotTrue)],
        warns: false,
        says: "models that think are to be streamed",
        help: "set `stream` to `true`, or `enable_thinking` to `false`",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "responseSchema"], Test::Is),
        with: &[Condition(&["generationConfig", "responseMimeType"], Test::IsNot)],
        warns: false,
        says: "`responseSchema` needs a `responseMimeType`",
        help: "add `\"responseMimeType\": \"application/json\"`",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "responseJsonSchema"], Test::Is),
        with: &[Condition(&["generationConfig", "responseMimeType"], Test::IsNot)],
        warns: false,
        says: "`responseJsonSchema` needs a `responseMimeType`",
        help: "add `\"responseMimeType\": \"application/json\"`",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "logprobs"], Test::Is),
        with: &[Condition(&["generationConfig", "responseLogprobs"], Test::IsNotTrue)],
        warns: false,
        says: "`logprobs` needs `responseLogprobs`",
        help: "set `responseLogprobs` to `true`",
    },
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    conditions::check(TABLE, subject, found);
}
