//! The rules about provider instances and requests.

crate::diag::rules! {
    UNKNOWN_INSTANCE = Error "provider/unknown-instance", "`provider_instance` is not a known instance",
        "The value must be the `name` inside a file in `providers/`, in the repository or bundled, not the name of the file. `reqc list` \
         shows which instance each agent uses.\n\n\
         * wrong: `provider_instance = \"openai.toml\"`\n\
         * right: `provider_instance = \"OpenAI\"`";
    UNKNOWN_API = Error "provider/unknown-client-api", "`client_api` is not a known client API",
        "`client_api` determines the wire format, authentication and capabilities. `docs/profiles.md` lists the known client \
         APIs; a server that speaks Chat Completions is `OpenAI Compatible`.";
    UNKNOWN_SERVER = Error "provider/unknown-server", "`server` is not a known server",
        "A URL such as `http://10.0.0.7:8000/v1` does not reveal which server answers. `server` names it, so that its rules apply: the \
         operator to whom a proxy passes requests on unchanged (`Groq`, `Azure`), or the software (`vLLM`, `LiteLLM`).\n\n\
         * wrong: `server = \"vllm\"`\n\
         * right: `server = \"vLLM\"`";
    PLAIN_HTTP = Warning "provider/plain-http", "a key would be sent over plain HTTP",
        "The provider instance has a key, but its URL begins with `http://` and points to another machine, so anyone \
         on the network path can read the key. `reqc send` warns as well.\n\n\
         Write `https://`. For a server in a trusted network, allow the finding in `reqc.toml` and give the reason.";
    CAPABILITY = Error "provider/capability", "a profile enables a feature that its API does not have",
        "`enable_tools` and `enable_thinking` must match the client API and the endpoint: Codestral cannot \
         think, and completion endpoints accept no tools. Otherwise the provider would reject the request or \
         ignore the field.\n\n\
         Both are often inherited: set the switch to `false` in the profile that changes the endpoint.",
        seen "2026-11" {
            "https://docs.mistral.ai/api/endpoint/fim":
                "Codestral's completions support neither tools nor thinking",
            "pkg:github/ollama/ollama@fb30760#docs/api.md":
                "Ollama: `/api/generate` accepts no tools",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp: `/infill` accepts no tools",
        };
    OTHER_FORMAT = Error[lowerable] "provider/other-format", "a profile sends an inherited body to a provider with a different wire format",
        "`provider_instance` determines the wire format of the body. An inherited body is written for the parent's provider: another \
         instance of the same format accepts it, but an instance of a different format rejects it.\n\n\
         * wrong: `extends = \"OpenAI Chat\"` with `provider_instance = \"Claude\"`\n\
         * right: `extends = \"Claude Chat\"`\n\n\
         The finding points to the line that sets the new instance, and its label shows one part of the body that does not fit. \
         Consequences of the wrong format, such as a wrong endpoint, an unknown model or lost content, are not reported separately. If the \
         new instance has the same format, anything that its server rejects in the inherited body is also reported on this line.";
    TOOLS_TWICE = Error "provider/tools-twice", "a tool in the body has the same name as a tool of the request",
        "With `enable_tools`, the request's tool definitions are added after the body's own `tools`, the provider's built-in \
         tools. A call identifies its tool by name, so two tools with the same name cannot be told apart, and most providers \
         reject them.\n\n\
         * wrong: Anthropic's `{ type = \"web_search_20260209\", name = \"web_search\" }` in `[body] tools`, and a tool \
         `web_search` of the request\n\
         * right: one of the two, or a tool `search_wiki` of the request";
    NO_PROMPT_CACHE = Warning "provider/no-prompt-cache", "`cache_prompt` has no effect with this API",
        "Only Anthropic's format has breakpoints for prompt caching; other providers cache automatically or \
         not at all. The profile enables caching, but nothing is sent for it.\n\n\
         Remove the key, or set it to `false` if it is inherited.",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "Claude caches at breakpoints",
            "https://platform.openai.com/docs/guides/prompt-caching": "OpenAI caches on its own",
            "https://api-docs.deepseek.com/guides/kv_cache": "DeepSeek caches on its own",
        };
    UNSERVED_ENDPOINT = Error[lowerable] "provider/unserved-endpoint", "the client API has no such endpoint",
        "`endpoint` is appended to the provider instance's URL. A server answers every request to an unknown path with 404, and the \
         endpoint of another API rejects the body. If an instance's URL is on a provider's own host, the endpoint must be one of its \
         client API's; for other hosts, such as gateways, only typos and endpoints of other APIs are reported. `${MODEL}` is the only \
         placeholder.\n\n\
         * wrong: `endpoint = \"v1/mesages\"` with `client_api = \"Claude\"`\n\
         * right: `endpoint = \"v1/messages\"`\n\
         * wrong: `endpoint = \"messages\"` with `url = \"https://api.anthropic.com\"`, whose paths begin with `v1`\n\
         * right: `endpoint = \"v1/messages\"`\n\
         * wrong: `endpoint = \"responses\"` with `client_api = \"OpenAI (Chat Completions)\"`\n\
         * right: `endpoint = \"chat/completions\"`";
    DOUBLED_PATH = Error "provider/doubled-path", "the URL, the endpoint and the model repeat the same part of the path",
        "The request URL is the instance's `url`, a slash, and the profile's `endpoint`, with `${MODEL}` replaced by the model. The \
         path contains a part twice, and the server answers 404, in two cases:\n\n\
         * the URL already ends with the first part of the endpoint, such as `v1`, or with all of it\n\
         * the endpoint has `models/` before `${MODEL}`, and the model's name begins with `models/` too\n\n\
         * wrong: `url = \"https://host/v1\"` and `endpoint = \"v1/chat/completions\"`\n\
         * right: `url = \"https://host/v1\"` and `endpoint = \"chat/completions\"`\n\
         * wrong: `url = \"https://host/v1/chat/completions\"` and `endpoint = \"chat/completions\"`\n\
         * right: `url = \"https://host/v1\"` and `endpoint = \"chat/completions\"`";
    RETIRED_MODEL = Warning "provider/retired-model", "the provider has shut down the model, or will do so",
        "Anthropic, Google and OpenAI announce the date on which a model is shut down, and answer requests for it with 404 afterwards. \
         The finding names this date and the recommended model, as listed on the provider's page on 2026-07-18; some dates were postponed \
         later. Bedrock, Vertex AI and Azure have schedules of their own, and are not checked.\n\n\
         * wrong: `model = \"claude-3-opus-20240229\"` with Anthropic's own API\n\
         * right: `model = \"claude-opus-4-8\"`\n\n\
         The finding points to the model or, if the model is inherited, to the line that sets another instance. `reqc lint` reports it \
         for requests whose URL or `--provider` names the server.",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/about-claude/model-deprecations": "Anthropic's shutdown dates and replacement models",
            "https://ai.google.dev/gemini-api/docs/deprecations": "Google's shutdown dates and replacement models",
            "https://developers.openai.com/api/docs/deprecations": "OpenAI's shutdown dates and replacement models",
            "pkg:github/quora/model-deprecation-tracker#README.md": "the three pages, as read on 2026-07-18",
            "mozilla/sumo#2794": "Google postponed the end of Gemini 2.5 by four months",
        };
    UNSERVED_MODEL = Error[lowerable] "provider/unserved-model", "the provider serves no model with this name",
        "The APIs of Anthropic, OpenAI, Google and Mistral serve only their own models. They reject the names of other vendors' \
         models, and names that a gateway or a cloud gives to their models. For Mistral, this is a warning. A name that differs from a \
         known one only in the spelling of a word causes a warning, and so does a name with capitals for OpenAI; new models and new \
         versions are not reported. For DeepSeek, Groq, Moonshot, OpenRouter, Qwen, xAI and Z.ai, only the spelling is checked; for other \
         hosts, nothing is.\n\n\
         * wrong: `model = \"gpt-5.1\"` with Anthropic's own API\n\
         * wrong: `model = \"anthropic/claude-sonnet-5.5\"` there\n\
         * right: `model = \"claude-sonnet-5-5\"`\n\n\
         The finding points to the model or, if the model is inherited, to the line that sets another instance. `reqc lint` reports it \
         for requests whose URL or `--provider` names the server.",
        seen "2026-11" {
            "presidio-oss/factif-ai#34": "Anthropic answers 404 for Bedrock's name for a model",
            "Aider-AI/aider#747": "Anthropic answers 404 for a version that is written with a dot",
            "rksm/org-ai#110": "OpenAI knows no `GPT-4o`",
            "aristoteleo/PantheonOS#6": "OpenAI answers 404 for one of Anthropic's models",
            "earendil-works/pi#2893": "Google answers 404 for an unknown name",
            "google-gemini/gemini-cli#24131": "Google answers 404 for another unknown name",
            "tmc/langchaingo#1233": "Mistral rejects an unknown name",
        };
}
