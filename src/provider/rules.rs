//! The rules of the provider step.

crate::diag::rules! {
    UNKNOWN_INSTANCE = Error "provider/unknown-instance", "`provider_instance` names nothing",
        "The name must be that of a file's `name` in `providers/`, of the repository or bundled; the file's own \
         name does not matter. `reqc list` shows which instance each agent uses.\n\n\
         * wrong: `provider_instance = \"openai.toml\"`\n\
         * right: `provider_instance = \"OpenAI\"`";
    UNKNOWN_API = Error "provider/unknown-client-api", "`client_api` names nothing",
        "`client_api` decides wire format, authentication and capabilities. The known ones are listed in `docs/profiles.md`; a \
         server that speaks Chat Completions is `OpenAI Compatible`.";
    PLAIN_HTTP = Warning "provider/plain-http", "a key would travel by plain HTTP",
        "The provider instance has a key, and its URL begins with `http://` and leads to another machine: everybody on \
         the way can read the key. `reqc send` warns as well.\n\n\
         Write `https://`. For a server in a network that you trust, allow the finding in `reqc.toml` and say why.";
    CAPABILITY = Error "provider/capability", "a profile asks for what its API cannot do",
        "`enable_tools` and `enable_thinking` must fit the client API and the endpoint: Codestral cannot think, \
         completion endpoints take no tools. Sent anyway, the request would be refused, or the field ignored.\n\n\
         Both are often inherited: set the switch to `false` in the profile that changes the endpoint.",
        seen "2026-11" {
            "https://docs.mistral.ai/api/endpoint/fim":
                "Codestral's completions take no tools and do not think",
            "pkg:github/ollama/ollama@fb30760#docs/api.md":
                "Ollama: `/api/generate` takes no tools",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp: `/infill` takes no tools",
        };
    OTHER_FORMAT = Error[lowerable] "provider/other-format", "a profile sends an inherited body to a provider of another wire format",
        "`provider_instance` decides the wire format of the body. A body that is taken over from a parent is written for the parent's \
         provider: another instance of the same format takes it, one of another format refuses it.\n\n\
         * wrong: `extends = \"OpenAI Chat\"` with `provider_instance = \"Claude\"`\n\
         * right: `extends = \"Claude Chat\"`\n\n\
         The finding stands at the instance that is named again, and its label shows one place that does not fit.";
    TOOLS_TWICE = Error "provider/tools-twice", "the body's `tools` and the request's have one of the same name",
        "With `enable_tools` the request's tool definitions follow what the body's own `tools` says: the provider's built-in tools. \
         A call names its tool, so two of one name cannot be told apart, and most providers refuse them.\n\n\
         * wrong: Anthropic's `{ type = \"web_search_20260209\", name = \"web_search\" }` in `[body] tools`, and a tool \
         `web_search` of the request\n\
         * right: one of the two, or a tool `search_wiki` of the request";
    NO_PROMPT_CACHE = Warning "provider/no-prompt-cache", "`cache_prompt` has no effect with this API",
        "Breakpoints for prompt caching exist in Anthropic's format only; other providers cache on their own or \
         not at all. The profile says that it caches, and nothing is sent for it.\n\n\
         Remove the key, or set it to `false` if it is inherited.",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "Claude: breakpoints",
            "https://platform.openai.com/docs/guides/prompt-caching": "OpenAI caches on its own",
            "https://api-docs.deepseek.com/guides/kv_cache": "DeepSeek caches on its own",
        };
    UNSERVED_ENDPOINT = Error[lowerable] "provider/unserved-endpoint", "no server of the client API answers at the endpoint",
        "`endpoint` is appended to the URL of the provider instance. At a path that the server does not have, every request is answered with \
         404; at that of another API, the body is refused. An instance at a provider's own host must name an endpoint of its client API; \
         elsewhere, at a gateway for instance, only slips and endpoints of other APIs are reported.\n\n\
         * wrong: `endpoint = \"v1/mesages\"` with `client_api = \"Claude\"`\n\
         * right: `endpoint = \"v1/messages\"`\n\
         * wrong: `endpoint = \"responses\"` with `client_api = \"OpenAI (Chat Completions)\"`\n\
         * right: `endpoint = \"chat/completions\"`";
    DOUBLED_PATH = Error "provider/doubled-path", "the URL and the endpoint both have the same part of the path",
        "A request goes to the instance's `url`, a slash, and the profile's `endpoint`. If both name the version of the API, the path \
         has it twice, and the server answers 404.\n\n\
         * wrong: `url = \"https://host/v1\"` and `endpoint = \"v1/chat/completions\"`\n\
         * right: `url = \"https://host/v1\"` and `endpoint = \"chat/completions\"`";
}
