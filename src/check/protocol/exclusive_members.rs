//! `protocol/exclusive-members`: members that an API does not take together.

use super::conditions::{self, Combination, Condition, Test};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Body, Error "protocol/exclusive-members", "members exclude each other",
    "Each of the members is right, and the API refuses them together; where it passes over one of them instead, this is a \
     warning. Most often one comes from a base profile and the other from an agent: `unset` in the agent removes the inherited \
     one.\n\n\
     * wrong: `max_tokens` and `max_completion_tokens` in one body\n\
     * right: the one that the model reads\n\n\
     Sources, seen in November 2026: the errors of the APIs, as reported for their SDKs; llama.cpp's and OpenRouter's servers."
}

const CHAT: &[WireFormat] = &[WireFormat::OpenAiChat];
const RESPONSES: &[WireFormat] = &[WireFormat::OpenAiResponses];
const GEMINI: &[WireFormat] = &[WireFormat::GoogleGenerateContent];
const ANTHROPIC: &[WireFormat] = &[WireFormat::AnthropicMessages];
const OLLAMA: &[WireFormat] = &[WireFormat::OllamaGenerate];

static TABLE: &[Combination] = &[
    Combination {
        wires: CHAT,
        servers: &[Server::OpenAi],
        at: Condition(&["max_tokens"], Test::Is),
        with: &[Condition(&["max_completion_tokens"], Test::Is)],
        warns: false,
        says: "`max_tokens` and `max_completion_tokens` exclude each other",
        help: "leave out `max_tokens`, which newer models refuse",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenRouter],
        at: Condition(&["reasoning", "max_tokens"], Test::Is),
        with: &[Condition(&["reasoning", "effort"], Test::Is)],
        warns: false,
        says: "`reasoning.effort` and `reasoning.max_tokens` exclude each other",
        help: "keep the one that the model understands",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenRouter],
        at: Condition(&["reasoning_effort"], Test::Is),
        with: &[Condition(&["reasoning"], Test::Is)],
        warns: false,
        says: "`reasoning` and `reasoning_effort` exclude each other",
        help: "write the effort as `reasoning.effort`",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::OpenRouter],
        at: Condition(&["reasoning_effort"], Test::Is),
        with: &[Condition(&["include_reasoning"], Test::Is)],
        warns: false,
        says: "`include_reasoning` stands for `reasoning`, which excludes `reasoning_effort`",
        help: "write `reasoning.effort`, and `reasoning.exclude` to hide the text",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::Groq],
        at: Condition(&["response_format"], Test::Is),
        with: &[
            Condition(&["response_format", "type"], Test::Says(&["json_object", "json_schema"])),
            Condition(&["tools"], Test::Holds),
        ],
        warns: false,
        says: "JSON mode and tools exclude each other",
        help: "ask for JSON in a request without tools",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::LlamaCpp],
        at: Condition(&["grammar"], Test::Holds),
        with: &[Condition(&["tools"], Test::Holds)],
        warns: false,
        says: "`grammar` and `tools` exclude each other",
        help: "leave out one of them: calls are constrained by a grammar of the server's own",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::LlamaCpp],
        at: Condition(&["grammar"], Test::Holds),
        with: &[Condition(&["json_schema"], Test::Is)],
        warns: false,
        says: "`grammar` and `json_schema` exclude each other",
        help: "keep one of them",
    },
    Combination {
        wires: &[WireFormat::LlamaCppInfill],
        servers: &[],
        at: Condition(&["json_schema"], Test::Is),
        with: &[Condition(&["grammar"], Test::Holds)],
        warns: true,
        says: "with `grammar`, llama.cpp passes over `json_schema`",
        help: "keep one of them",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::LlamaCpp],
        at: Condition(&["grammar"], Test::Holds),
        with: &[Condition(&["response_format", "type"], Test::Says(&["json_object", "json_schema"]))],
        warns: false,
        says: "`grammar` and `response_format` exclude each other",
        help: "keep one of them",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::LlamaCpp],
        at: Condition(&["logprobs"], Test::IsTrue),
        with: &[Condition(&["tools"], Test::Holds), Condition(&["stream"], Test::IsTrue)],
        warns: false,
        says: "`logprobs` cannot be streamed together with `tools`",
        help: "leave out `logprobs`, or do not stream",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::Qwen],
        at: Condition(&["response_format"], Test::Is),
        with: &[
            Condition(&["response_format", "type"], Test::Says(&["json_object"])),
            Condition(&["enable_thinking"], Test::IsTrue),
        ],
        warns: false,
        says: "JSON mode and thinking exclude each other",
        help: "set `enable_thinking` to `false`",
    },
    Combination {
        wires: CHAT,
        servers: &[Server::Moonshot],
        at: Condition(&["reasoning_effort"], Test::Is),
        with: &[Condition(&["thinking"], Test::Is)],
        warns: false,
        says: "`thinking` and `reasoning_effort` exclude each other",
        help: "keep one of them",
    },
    Combination {
        wires: RESPONSES,
        servers: &[],
        at: Condition(&["conversation"], Test::Is),
        with: &[Condition(&["previous_response_id"], Test::Is)],
        warns: false,
        says: "`previous_response_id` and `conversation` exclude each other",
        help: "keep the one that holds the history",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["toolConfig", "functionCallingConfig", "allowedFunctionNames"], Test::Holds),
        with: &[Condition(
            &["toolConfig", "functionCallingConfig", "mode"],
            Test::SaysNoneOf(&["ANY", "VALIDATED", "any"]),
        )],
        warns: false,
        says: "`allowedFunctionNames` goes with mode `ANY` or `VALIDATED` only",
        help: "set `mode` to `ANY`, or leave the names out",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "responseSchema"], Test::Is),
        with: &[Condition(&["generationConfig", "responseJsonSchema"], Test::Is)],
        warns: false,
        says: "`responseSchema` and `responseJsonSchema` exclude each other",
        help: "keep `responseJsonSchema`, which takes JSON Schema as it is",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "thinkingConfig", "thinkingBudget"], Test::Is),
        with: &[Condition(&["generationConfig", "thinkingConfig", "thinkingLevel"], Test::Is)],
        warns: false,
        says: "`thinkingBudget` and `thinkingLevel` exclude each other",
        help: "keep `thinkingLevel` for Gemini 3 and later, `thinkingBudget` for older models",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "responseMimeType"], Test::Says(&["application/json"])),
        with: &[
            Condition(&["tools"], Test::Holds),
            Condition(&["toolConfig", "functionCallingConfig", "mode"], Test::Says(&["ANY"])),
        ],
        warns: false,
        says: "JSON mode and a forced call of a function exclude each other",
        help: "use mode `AUTO`, or leave out `responseMimeType`",
    },
    Combination {
        wires: GEMINI,
        servers: &[],
        at: Condition(&["generationConfig", "speechConfig", "voiceConfig"], Test::Is),
        with: &[Condition(&["generationConfig", "speechConfig", "multiSpeakerVoiceConfig"], Test::Is)],
        warns: false,
        says: "`voiceConfig` and `multiSpeakerVoiceConfig` exclude each other",
        help: "keep one of them",
    },
    Combination {
        wires: ANTHROPIC,
        servers: &[Server::Anthropic],
        at: Condition(&["output_config", "effort"], Test::Says(&["xhigh", "max"])),
        with: &[Condition(&["thinking", "type"], Test::Says(&["disabled"]))],
        warns: false,
        says: "this effort needs thinking, which is disabled",
        help: "use `high` or less, or let the model think",
    },
    Combination {
        wires: OLLAMA,
        servers: &[],
        at: Condition(&["system"], Test::Holds),
        with: &[Condition(&["raw"], Test::IsTrue)],
        warns: false,
        says: "with `raw`, Ollama takes no `system`",
        help: "leave out one of them: `raw` sends the prompt as it is",
    },
    Combination {
        wires: OLLAMA,
        servers: &[],
        at: Condition(&["template"], Test::Holds),
        with: &[Condition(&["raw"], Test::IsTrue)],
        warns: false,
        says: "with `raw`, Ollama takes no `template`",
        help: "leave out one of them: `raw` sends the prompt as it is",
    },
    Combination {
        wires: OLLAMA,
        servers: &[],
        at: Condition(&["context"], Test::Holds),
        with: &[Condition(&["raw"], Test::IsTrue)],
        warns: false,
        says: "with `raw`, Ollama takes no `context`",
        help: "leave out one of them: `raw` sends the prompt as it is",
    },
    Combination {
        wires: OLLAMA,
        servers: &[],
        at: Condition(&["system"], Test::Holds),
        with: &[Condition(&["suffix"], Test::Holds), Condition(&["raw"], Test::IsNotTrue)],
        warns: true,
        says: "with `suffix`, Ollama drops `system`",
        help: "leave it out: a template for insertion has no place for it",
    },
    Combination {
        wires: OLLAMA,
        servers: &[],
        at: Condition(&["images"], Test::Holds),
        with: &[Condition(&["suffix"], Test::Holds), Condition(&["raw"], Test::IsNotTrue)],
        warns: true,
        says: "with `suffix`, Ollama drops `images`",
        help: "leave them out: a template for insertion has no place for them",
    },
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    conditions::check(TABLE, subject, found);
}
