//! The rules of wire-format schemas.

crate::diag::rules! {
    UNKNOWN_FIELD = Error[lowerable, about_key] "schema/unknown-field", "the API knows no such field",
        "A field that the wire format does not have is refused by most providers (HTTP 400) and silently ignored by others, \
         which is worse. Most often it is misspelt or stands one level too high or too deep.\n\nIf the server has an \
         extension of its own, allow it for its provider instance in `reqc.toml`:\n\n```toml\n[[extension]]\n\
         provider_instance = \"OpenAI Compatible\"\nfields = [\"/top_k\", \"/messages/*/name\"]\nreason = \"vLLM's sampling parameters\"\n```",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi":
                "OpenAI: Chat Completions and Responses, closed objects",
            "pkg:pypi/anthropic@2.12#types": "Claude: the members of a request",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini: the members of a request",
            "https://docs.mistral.ai/openapi.yaml": "Mistral: chat and FIM",
            "pkg:github/ollama/ollama@fb30760#api/types.go":
                "Ollama: members that it does not know are ignored",
            "https://openrouter.ai/openapi.json": "OpenRouter: the members of a request",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp: the members of a request",
            "microsoft/agent-framework#2203": "OpenAI's Responses refuse every unknown member",
            "janhq/jan#8136": "Groq refuses `reasoning_content`",
        };
    MISSING_FIELD = Error[lowerable] "schema/missing-field", "a field that the API requires is missing",
        "The provider refuses the request without it. If a template leaves the field out on purpose for some conversations, \
         these conversations cannot be sent in this format.",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi": "OpenAI: members that are required",
            "pkg:pypi/anthropic@2.12#types": "Claude: members that are required",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini: members that are required",
            "https://docs.mistral.ai/openapi.yaml": "Mistral: members that are required",
        };
    WRONG_TYPE = Error[lowerable] "schema/wrong-type", "a field has the wrong type",
        "For instance a number in quotes, an object where a list of objects belongs, or arguments as an object where the API \
         wants a JSON string.",
        seen "2026-11" {
            "https://github.com/openai/openai-openapi": "OpenAI: types of members",
            "pkg:pypi/anthropic@2.12#types": "Claude: types of members",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini: types of members",
            "https://docs.mistral.ai/openapi.yaml": "Mistral: types of members",
            "pkg:github/ollama/ollama@fb30760#api/types.go": "Ollama: types of members",
        };
    INVALID_VALUE = Error[lowerable] "schema/invalid-value", "a field has a value that the API does not take",
        "The type is right, but the value is not among the ones the API knows, is out of range, or does not have the form \
         that it asks for.",
        seen "2026-11" {
            "recorded: pydantic-ai, tests/models/cassettes/test_openai_responses/test_openai_responses_model_http_error.yaml":
                "OpenAI: *decimal below minimum value* for `temperature`",
            "https://github.com/openai/openai-openapi": "OpenAI: values and bounds",
            "pkg:pypi/anthropic@2.12#types": "Claude: values and bounds",
            "pkg:pypi/google-genai@3.4#types.py": "Gemini: values and bounds",
            "https://docs.mistral.ai/openapi.yaml": "Mistral: values and bounds",
        };
    BAD_SCHEMA = Error "schema/unusable", "a schema of the repository cannot be used",
        "`schemas/wire/<format>.schema.json` of a repository tightens the bundled schema of the format, and \
         `<format>.extensions.json` adds fields to it. Together they must be a valid JSON Schema (draft 2020-12) that refers to \
         nothing outside its file. As long as they are not, every body that they are for has this finding: a schema that \
         cannot be used never means that anything is accepted.\n\n\
         The work of checking a body has to be foreseeable. So these are refused:\n\n\
         * files of more than 1 MiB or 50,000 values, and more than 64 names in one file of extensions\n\
         * schemas that lead back to themselves without looking at a part of the value, that look at one value more than \
         32 deep, or that repeat others until one value is looked at more than 100,000 times\n\
         * `unevaluatedProperties`, `unevaluatedItems`, `$dynamicRef`, `$anchor`, and `$id` inside a schema: list the \
         fields, and write `$ref` with a JSON pointer\n\
         * patterns with look-around or back references, or larger than some thousand states: patterns run in linear time\n\n\
         A body whose check would still take too much work, because of its size and the schema's alternatives, has this finding \
         as well.\n\n\
         * wrong: `{ \"$ref\": \"common.json#/model\" }`: another file\n\
         * right: `{ \"$ref\": \"#/$defs/model\" }`, with the definition in the same file\n\
         * wrong: `\"pattern\": \"^(?!gpt-3)\"`\n\
         * right: `\"enum\": [\"gpt-5\", \"gpt-5-mini\"]`";
}
