//! The rules about schema violations.

crate::diag::rules! {
    UNKNOWN_FIELD = Error[lowerable, about_key] "schema/unknown-field", "the API has no such field",
        "If the wire format does not have a field, most providers reject it (HTTP 400); others silently ignore it, which is worse. Usually \
         the field is misspelled, or it is one level too high or too deep. OpenAI ignores such fields in messages, except for models up to \
         GPT-4 Turbo; in Chat Completions, it also ignores them in tools and their functions, for all models (both are reported as \
         warnings).\n\n\
         If the server has its own extension, allow it for its provider instance in `reqc.toml`:\n\n\
         ```toml\n\
         [[extension]]\n\
         provider_instance = \"OpenAI Compatible\"\n\
         fields = [\"/top_k\", \"/messages/*/name\"]\n\
         reason = \"vLLM's sampling parameters\"\n\
         ```",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi":
                "OpenAI's API description lists the fields of Chat Completions and Responses",
            "pkg:pypi/anthropic@2.12#types": "Claude's SDK types list the fields of a request",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini's SDK types list the fields of a request",
            "https://docs.mistral.ai/openapi.yaml":
                "Mistral's API description lists the fields of chat and FIM requests",
            "pkg:github/ollama/ollama@fb30760#api/types.go": "Ollama ignores unknown fields",
            "https://openrouter.ai/openapi.json":
                "OpenRouter's API description lists the fields of a request",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp documents the fields of a request",
            "recorded: magentic, tests/cassettes/test_prompt_function/test_decorator_max_retries.yaml":
                "OpenAI ignores unknown fields in messages to GPT-4o",
            "recorded: sublayer, spec/vcr_cassettes/openai/generators/sentiment_from_text_generator/positive.yml":
                "OpenAI ignores unknown fields in the function of a tool (GPT-4 Turbo)",
            "openai/openai-node#1161": "OpenAI's older models reject them in messages",
            "microsoft/agent-framework#2203": "OpenAI's Responses API rejects unknown fields",
            "janhq/jan#8136": "Groq rejects `reasoning_content`",
        };
    MISSING_FIELD = Error[lowerable] "schema/missing-field", "a field that the API requires is missing",
        "The provider rejects the request without it. If a template leaves the field out on purpose for some \
         conversations, these conversations cannot be sent in this format.",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi": "OpenAI's API description lists the required fields",
            "pkg:pypi/anthropic@2.12#types": "Claude's SDK types mark the required fields",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini's SDK types mark the required fields",
            "https://docs.mistral.ai/openapi.yaml": "Mistral's API description lists the required fields",
        };
    WRONG_TYPE = Error[lowerable] "schema/wrong-type", "a field has the wrong type",
        "For example, a number is in quotes, there is an object instead of a list of objects, or arguments are an object where \
         the API expects a JSON string.",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi":
                "OpenAI's API description states each field's type",
            "pkg:pypi/anthropic@2.12#types": "Claude's SDK states each field's type",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini's SDK states each field's type",
            "https://docs.mistral.ai/openapi.yaml":
                "Mistral's API description states each field's type",
            "pkg:github/ollama/ollama@fb30760#api/types.go":
                "Ollama's code states each field's type",
        };
    INVALID_VALUE = Error[lowerable] "schema/invalid-value", "a field has a value that the API does not accept",
        "The type is right, but the value is not one that the API knows, is out of range, or does not have the required \
         form.",
        seen "2026-11" {
            "recorded: pydantic-ai, tests/models/cassettes/test_openai_responses/test_openai_responses_model_http_error.yaml":
                "OpenAI: *decimal below minimum value* for `temperature`",
            "https://github.com/openai/openai-openapi":
                "OpenAI's API description states allowed values and bounds",
            "pkg:pypi/anthropic@2.12#types": "Claude's SDK states allowed values and bounds",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini's SDK states allowed values and bounds",
            "https://docs.mistral.ai/openapi.yaml":
                "Mistral's API description states allowed values and bounds",
        };
    BAD_SCHEMA = Error "schema/unusable", "one of the repository's schemas cannot be used",
        "In a repository, `schemas/wire/<format>.schema.json` tightens the bundled schema of the format, and `<format>.extensions.json` \
         adds fields to it. Together they must be a valid JSON Schema (draft 2020-12) that refers to nothing outside its file. Until they \
         are valid, this is reported for every body in this format: an unusable schema never means that everything is accepted.\n\n\
         Checking a body must take a predictable amount of work, so these are rejected:\n\n\
         * files of more than 1 MiB or 50,000 values, and more than 64 names in one file of extensions\n\
         * schemas that refer to themselves without descending into the value, that apply more than 32 nested schemas to one value, or \
         whose references apply more than 100,000 schemas to one value\n\
         * `unevaluatedProperties`, `unevaluatedItems`, `$dynamicRef`, `$anchor`, and `$id` inside a schema: list the fields, \
         and write `$ref` with a JSON pointer\n\
         * patterns with look-around or back references, or with more than a few thousand states: patterns run in linear \
         time\n\n\
         This is also reported for a body if checking the body would still exceed the work limit, because of the body's size and the \
         schema's alternatives.\n\n\
         * wrong: `{ \"$ref\": \"common.json#/model\" }`: another file\n\
         * right: `{ \"$ref\": \"#/$defs/model\" }`, with the definition in the same file\n\
         * wrong: `\"pattern\": \"^(?!gpt-3)\"`\n\
         * right: `\"enum\": [\"gpt-5\", \"gpt-5-mini\"]`";
}
