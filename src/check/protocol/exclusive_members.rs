//! `protocol/exclusive-members`: members that an API does not accept together.

use super::conditions::{self, combinations};
use super::{Found, Subject, body_rule};
use crate::provider::WireFormat;

body_rule! {
    Error "protocol/exclusive-members", "fields cannot be combined",
    "Each of the fields is valid, but the API rejects the combination; if it ignores one of them instead, this is a warning. Usually one \
     field comes from a base profile and the other from an agent: `unset` in the agent removes the inherited field.\n\n\
     * wrong: `max_tokens` and `max_completion_tokens` in one body\n\
     * right: the one that the model reads",
    seen "2026-11" {
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini's `GenerateContentConfig` and others say which fields are mutually exclusive",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp rejects combinations of `grammar`, `json_schema`, `tools` and `logprobs`",
        "pkg:github/ollama/ollama@fb30760#server/routes.go":
            "Ollama rejects `raw` with `system`, `template` or `context`",
        "anthropics/claude-code#81084": "Claude rejects high efforts with thinking disabled",
        "vercel/ai#16540": "Groq rejects JSON mode with tools",
        "agno-agi/agno#1065": "Groq: the same error",
        "https://developers.openai.com/api/docs/guides/predicted-outputs":
            "OpenAI lists the fields that `prediction` does not support",
        "Agent-Field/agentfield#584":
            "OpenAI: *'audio.format' does not support 'wav' when stream=true*",
        "https://docs.mistral.ai/capabilities/predicted-outputs":
            "Mistral does not support `n` with `prediction`",
        "https://developers.openai.com/api/docs/guides/background":
            "OpenAI requires `store` for `background`",
        "langchain-ai/langgraph#5943": "OpenAI rejects `max_tokens` with `max_completion_tokens`",
        "omeryasirkucuk/amx#66":
            "OpenRouter rejects `reasoning.effort` with `reasoning.max_tokens`",
        "danny-avila/LibreChat#6076":
            "OpenRouter rejects `include_reasoning` with `reasoning_effort`",
        "HKUDS/nanobot#3939": "Kimi rejects `thinking` with `reasoning_effort`",
        "https://github.com/BerriAI/litellm/blob/main/litellm/llms/fireworks_ai/chat/transformation.py":
            "Fireworks rejects `thinking` with `reasoning_effort`, according to a gateway's code",
        "lobehub/lobehub#7985": "Gemini rejects `includeThoughts` without thinking",
        "pkg:github/vllm-project/vllm#vllm/sampling_params.py":
            "vLLM rejects `min_tokens` above `max_tokens`, and `stop` without `detokenize`",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/sampling_params.py":
            "vLLM: *You can only use one kind of structured outputs constraint*; `response_format` is one of them",
        "https://github.com/HabanaAI/vllm-fork/blob/95af70093fc0dbb1a8b16d4a2913c674a02434ac/vllm/entrypoints/openai/protocol.py":
            "vLLM: *You can only either use guided decoding or tools, not both*",
        "pkg:pypi/sglang@0.5.23":
            "SGLang: *Only one of json_schema, regex, ebnf, or structural_tag can be set*; it also \
             rejects `return_meta_info` in streams, and `background` without `store`",
        "https://github.com/openvinotoolkit/model_server/blob/7e4df0c7ae340972bad15020ad777bbba3ee321d/src/llm/apis/openai_api_handler.cpp":
            "OpenVINO rejects `best_of` in a stream or below `n`",
        "https://github.com/envoyproxy/ai-gateway/blob/c217da8a539570ba3f6014a60c2687c29a945f1f/internal/translator/gemini_helper.go":
            "Envoy AI Gateway: *duplicate json schema specifications*",
        "https://github.com/llamastack/llama-stack/blob/d1b6632946ca1bb953d47ea3317b8f3c30771d88/src/ogx/providers/inline/responses/builtin/responses/openai_responses.py":
            "Llama Stack: *does not yet support 'stream' and 'background' together*",
        "https://www.volcengine.com/docs/82379/1299023": "Volcengine: *caching is not supported for instructions*",
        "umbraco/Umbraco.AI#137":
            "Fireworks: *You cannot specify response format and function call at the same time*",
        "pkg:github/vllm-project/vllm#vllm/entrypoints/openai/completion/serving.py":
            "vLLM: *Streaming is not currently supported with beam search*",
    }
}

const CHAT: &[WireFormat] = &[WireFormat::OpenAiChat];
const RESPONSES: &[WireFormat] = &[WireFormat::OpenAiResponses];
const MISTRAL: &[WireFormat] = &[WireFormat::MistralChat];
const GEMINI: &[WireFormat] = &[WireFormat::GoogleGenerateContent];
const ANTHROPIC: &[WireFormat] = &[WireFormat::AnthropicMessages];
const OLLAMA: &[WireFormat] = &[WireFormat::OllamaGenerate];
const INFILL: &[WireFormat] = &[WireFormat::LlamaCppInfill];

combinations! {
    refused CHAT at [OpenAi]: ("max_tokens", Is) with ("max_completion_tokens", Is);
        "`max_tokens` and `max_completion_tokens` cannot be combined";
        "leave out `max_tokens`, which newer models reject";

    refused CHAT at [OpenAi]: ("n", IsAbove(1)) with ("prediction", Is);
        "`prediction` allows only one answer";
        "leave out `n` or `prediction`";

    refused CHAT at [OpenAi]: ("logprobs", IsTrue) with ("prediction", Is);
        "`prediction` cannot be combined with `logprobs`";
        "leave out one of them";

    refused CHAT at [OpenAi]: ("presence_penalty", IsAbove(0)) with ("prediction", Is);
        "`prediction` cannot be combined with a `presence_penalty` above 0";
        "leave out one of them";

    refused CHAT at [OpenAi]: ("frequency_penalty", IsAbove(0)) with ("prediction", Is);
        "`prediction` cannot be combined with a `frequency_penalty` above 0";
        "leave out one of them";

    refused CHAT at [OpenAi]: ("audio.format", SaysNoneOf(&["pcm16"])) with ("stream", IsTrue);
        "audio can be streamed only as `pcm16`";
        "set `format` to `pcm16`, or do not stream";

    warned MISTRAL: ("n", IsAbove(1)) with ("prediction", Is);
        "`prediction` allows only one answer";
        "leave out `n` or `prediction`";

    refused RESPONSES at [OpenAi, Unknown]: ("store", IsFalse) with ("background", IsTrue);
        "a background answer must be stored";
        "leave out `store` or `background`";

    warned RESPONSES at [Unknown] running [LLAMA_STACK]: ("stream", IsTrue) with ("background", IsTrue);
        "Llama Stack does not support `stream` together with `background`";
        "leave out one of them";

    refused CHAT at [Google]: ("reasoning_effort", Is) with ("extra_body.google.thinking_config", Is);
        "Gemini does not accept `reasoning_effort` with `thinking_config`";
        "keep one of them";

    refused CHAT at [OpenRouter]: ("reasoning.max_tokens", Is) with ("reasoning.effort", Is);
        "`reasoning.effort` and `reasoning.max_tokens` cannot be combined";
        "keep the one that the model supports";

    refused CHAT at [OpenRouter]: ("reasoning_effort", Is) with ("reasoning", Is);
        "`reasoning` and `reasoning_effort` cannot be combined";
        "write the effort as `reasoning.effort`";

    refused CHAT at [OpenRouter]: ("reasoning_effort", Is) with ("include_reasoning", Is);
        "`include_reasoning` sets `reasoning`, which cannot be combined with `reasoning_effort`";
        "write `reasoning.effort`, and `reasoning.exclude` to hide the text";

    refused CHAT at [Groq]: ("response_format", Is)
        with ("response_format.type", Says(&["json_object", "json_schema"])), ("tools", Holds);
        "JSON mode and tools cannot be combined";
        "ask for JSON in a request without tools";

    refused CHAT at [LlamaCpp]: ("grammar", Holds) with ("tools", Holds);
        "`grammar` and `tools` cannot be combined";
        "leave out one of them: the server constrains calls with its own grammar";

    refused CHAT at [LlamaCpp]: ("grammar", Holds) with ("json_schema", Is);
        "`grammar` and `json_schema` cannot be combined";
        "keep one of them";

    warned INFILL: ("json_schema", Is) with ("grammar", Holds);
        "with `grammar`, llama.cpp ignores `json_schema`";
        "keep one of them";

    refused CHAT at [LlamaCpp]: ("grammar", Holds) with ("response_format.type", Says(&["json_object", "json_schema"]));
        "`grammar` and `response_format` cannot be combined";
        "keep one of them";

    refused CHAT at [LlamaCpp, Unknown]: ("continue_final_message", IsTrue) with ("add_generation_prompt", IsTrue);
        "`continue_final_message` and `add_generation_prompt` cannot be combined";
        "keep the one that describes how the answer should begin";

    refused CHAT at [Unknown] running [VLLM]: ("prompt_logprobs", IsNotZero) with ("stream", IsTrue);
        "`prompt_logprobs` cannot be streamed";
        "omit `prompt_logprobs`, or do not stream";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.json", Is) with ("structured_outputs.regex", Is);
        "`json` and `regex` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.json", Is) with ("structured_outputs.choice", Is);
        "`json` and `choice` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.regex", Is) with ("structured_outputs.choice", Is);
        "`regex` and `choice` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM, ENVOY]: ("guided_json", Is) with ("guided_regex", Is);
        "`guided_json` and `guided_regex` cannot be combined";
        "keep one of them";

    warned CHAT at [Unknown] running [ENVOY]: ("guided_json", Is) with ("response_format.type", Says(&["json_schema"]));
        "`guided_json` and `response_format` both contain a schema, which Envoy AI Gateway rejects";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM, ENVOY]: ("guided_json", Is) with ("guided_choice", Is);
        "`guided_json` and `guided_choice` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM, ENVOY]: ("guided_regex", Is) with ("guided_choice", Is);
        "`guided_regex` and `guided_choice` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.json", Is) with ("structured_outputs.grammar", Is);
        "`json` and `grammar` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.regex", Is) with ("structured_outputs.grammar", Is);
        "`regex` and `grammar` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs.choice", Is) with ("structured_outputs.grammar", Is);
        "`choice` and `grammar` in `structured_outputs` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs", Holds) with ("response_format.type", Says(&["json_schema", "json_object", "structural_tag"]));
        "`structured_outputs` and `response_format` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("structured_outputs", Is) with ("tool_choice", IsObject);
        "`structured_outputs` cannot be combined with a `tool_choice` that selects one tool";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [VLLM]: ("guided_json", Is) with ("tool_choice", IsObject);
        "`guided_json` cannot be combined with a `tool_choice` that selects one tool";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [VLLM]: ("guided_regex", Is) with ("tool_choice", IsObject);
        "`guided_regex` cannot be combined with a `tool_choice` that selects one tool";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [VLLM]: ("guided_choice", Is) with ("tool_choice", IsObject);
        "`guided_choice` cannot be combined with a `tool_choice` that selects one tool";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [SGLANG]: ("ebnf", Is) with ("regex", Is);
        "`ebnf` and `regex` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [SGLANG]: ("regex", Is) with ("response_format.type", Says(&["json_schema"]));
        "`regex` cannot be combined with a JSON schema in `response_format`";
        "keep one of them";

    refused CHAT at [Unknown] running [SGLANG]: ("regex", Is) with ("tool_choice", Says(&["required"]));
        "`regex` cannot be combined with a forced tool call";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [SGLANG]: ("ebnf", Is) with ("response_format.type", Says(&["json_schema"]));
        "`ebnf` cannot be combined with a JSON schema in `response_format`";
        "keep one of them";

    refused CHAT at [Unknown] running [SGLANG]: ("ebnf", Is) with ("tool_choice", Says(&["required"]));
        "`ebnf` cannot be combined with a forced tool call";
        "leave out one of them: `tool_choice` already constrains the output";

    refused CHAT at [Unknown] running [SGLANG]: ("return_meta_info", IsTrue) with ("stream", IsTrue);
        "`return_meta_info` cannot be streamed";
        "omit `return_meta_info`, or do not stream";

    refused CHAT at [Unknown] running [OPENVINO]: ("best_of", IsAbove(1)) with ("stream", IsTrue);
        "`best_of` above 1 cannot be combined with `stream`";
        "leave out `best_of`, or do not stream";

    refused CHAT at [Unknown] running [VLLM, OPENVINO, MINDIE]: ("n", Exceeds("best_of")) with ("best_of", Is);
        "`n` must not exceed `best_of`";
        "raise `best_of`, or lower `n`";

    refused CHAT at [Unknown] running [VLLM]: ("stream", IsTrue) with ("use_beam_search", IsTrue);
        "`use_beam_search` cannot be combined with `stream`";
        "do not stream, or remove `use_beam_search`";

    refused CHAT at [Unknown] running [VLLM]: ("stop", Holds) with ("detokenize", IsFalse);
        "`stop` needs the text of the answer, but `detokenize` is `false`";
        "leave out `detokenize`, or use `stop_token_ids`";

    refused CHAT at [Unknown]: ("min_tokens", Exceeds("max_tokens")) with ("max_tokens", Is);
        "`min_tokens` is above `max_tokens`";
        "lower `min_tokens`, or raise `max_tokens`";

    refused CHAT at [Unknown]: ("min_tokens", Exceeds("max_completion_tokens")) with ("max_completion_tokens", Is);
        "`min_tokens` is above `max_completion_tokens`";
        "lower `min_tokens`, or raise `max_completion_tokens`";

    refused CHAT at [LlamaCpp]: ("logprobs", IsTrue) with ("tools", Holds), ("stream", IsTrue);
        "`logprobs` cannot be streamed together with `tools`";
        "leave out `logprobs`, or do not stream";

    refused CHAT at [Moonshot]: ("reasoning_effort", Is) with ("thinking", Is);
        "`thinking` and `reasoning_effort` cannot be combined";
        "keep one of them";

    warned CHAT at [Fireworks]: ("response_format.type", Says(&["json_object", "json_schema"])) with ("tools", Holds);
        "a report says that Fireworks does not accept tools together with a response format";
        "leave out one of them";

    warned CHAT at [Fireworks]: ("reasoning_effort", Is) with ("thinking", Is);
        "Fireworks rejects `thinking` together with `reasoning_effort` (source: a gateway's code)";
        "keep one of them";

    refused RESPONSES at [Unknown] running [VLLM]: ("structured_outputs", Is)
        with ("text.format.type", Says(&["json_schema", "json_object"]));
        "`structured_outputs` and `text.format` cannot be combined";
        "keep one of them";

    refused CHAT at [Unknown] running [VLLM]: ("logprob_token_ids", Is) with ("use_beam_search", IsTrue);
        "`logprob_token_ids` and `use_beam_search` cannot be combined";
        "leave out one of them";

    warned RESPONSES at [XAi]: ("instructions", Is) with ("previous_response_id", Is);
        "a report says that xAI does not accept `instructions` together with `previous_response_id`";
        "put the instructions into the first request: the server stores its history";

    refused RESPONSES at [Volcengine]: ("caching", Is) with ("instructions", Is);
        "`caching` and `instructions` cannot be combined";
        "put the instructions into a system message in `input`";

    refused RESPONSES at [Unknown] running [VLLM]: ("previous_input_messages", Is) with ("previous_response_id", Is);
        "`previous_input_messages` and `previous_response_id` cannot be combined";
        "keep one of them";

    refused ANTHROPIC at [Unknown] running [SGLANG]: ("thinking.budget_tokens", Is) with ("thinking.type", Says(&["disabled", "adaptive"]));
        "`budget_tokens` is accepted only with thinking of type `enabled`";
        "omit `budget_tokens`";

    refused GEMINI: ("toolConfig.functionCallingConfig.allowedFunctionNames", Holds)
        with ("toolConfig.functionCallingConfig.mode", SaysNoneOf(&["ANY", "VALIDATED"]));
        "`allowedFunctionNames` is allowed only with mode `ANY` or `VALIDATED`";
        "set `mode` to `ANY`, or leave out the names";

    refused GEMINI: ("generationConfig.responseSchema", Is) with ("generationConfig.responseJsonSchema", Is);
        "`responseSchema` and `responseJsonSchema` cannot be combined";
        "keep `responseJsonSchema`, which accepts any JSON Schema";

    refused GEMINI: ("generationConfig.thinkingConfig.thinkingBudget", Is)
        with ("generationConfig.thinkingConfig.thinkingLevel", Is);
        "`thinkingBudget` and `thinkingLevel` cannot be combined";
        "keep `thinkingLevel` for Gemini 3 and later, `thinkingBudget` for older models";

    warned GEMINI: ("generationConfig.thinkingConfig.includeThoughts", IsTrue)
        with ("generationConfig.thinkingConfig.thinkingBudget", IsZero);
        "`includeThoughts` is set, but the budget of 0 turns thinking off; a report says that this is rejected";
        "leave out `includeThoughts`";

    refused GEMINI: ("generationConfig.responseMimeType", Says(&["application/json"]))
        with ("tools", Holds), ("toolConfig.functionCallingConfig.mode", Says(&["ANY"]));
        "JSON mode and a forced function call cannot be combined";
        "use mode `AUTO`, or leave out `responseMimeType`";

    refused GEMINI: ("generationConfig.speechConfig.voiceConfig", Is)
        with ("generationConfig.speechConfig.multiSpeakerVoiceConfig", Is);
        "`voiceConfig` and `multiSpeakerVoiceConfig` cannot be combined";
        "keep one of them";

    refused ANTHROPIC at [Anthropic, Bedrock, Vertex]: ("output_config.effort", Says(&["xhigh", "max"]))
        with ("thinking.type", Says(&["disabled"]));
        "this effort requires thinking, which is disabled";
        "use `high` or lower, or enable thinking";

    refused OLLAMA: ("system", Holds) with ("raw", IsTrue);
        "Ollama does not accept `system` with `raw`";
        "leave out one of them: `raw` sends the prompt without changes";

    refused OLLAMA: ("template", Holds) with ("raw", IsTrue);
        "Ollama does not accept `template` with `raw`";
        "leave out one of them: `raw` sends the prompt without changes";

    refused OLLAMA: ("context", Holds) with ("raw", IsTrue);
        "Ollama does not accept `context` with `raw`";
        "leave out one of them: `raw` sends the prompt without changes";

    warned OLLAMA: ("system", Holds) with ("suffix", Holds), ("raw", IsNotTrue);
        "with `suffix`, Ollama drops `system`";
        "leave it out: a fill-in-the-middle template cannot contain it";

    warned OLLAMA: ("images", Holds) with ("suffix", Holds), ("raw", IsNotTrue);
        "with `suffix`, Ollama drops `images`";
        "leave them out: a fill-in-the-middle template cannot contain them";
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    conditions::check(TABLE, subject, found);
}
