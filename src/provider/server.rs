//! The server that receives a request. Servers of one wire format may accept different requests.

use super::url::UrlParts;

/// The operator of a server, or its software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    OpenAi,
    /// Google's Gemini API.
    Google,
    /// Vertex AI, Google's cloud, which also serves Claude.
    Vertex,
    /// Amazon Bedrock, for Claude only.
    Bedrock,
    /// Mistral AI, including Codestral.
    Mistral,
    /// OpenRouter.
    OpenRouter,
    /// `DeepSeek`.
    DeepSeek,
    /// Alibaba's Model Studio (Qwen).
    Qwen,
    /// Groq.
    Groq,
    /// xAI.
    XAi,
    /// Moonshot AI (Kimi).
    Moonshot,
    /// Z.ai, including Zhipu's `BigModel` (GLM).
    ZAi,
    /// `MiniMax`.
    MiniMax,
    /// `ChatGPT`'s own backend, which Codex uses with a subscription.
    ChatGpt,
    /// Fireworks.
    Fireworks,
    /// Perplexity.
    Perplexity,
    /// Databricks' serving endpoints.
    Databricks,
    /// Snowflake Cortex.
    Snowflake,
    /// `DeepInfra`.
    DeepInfra,
    /// Cerebras.
    Cerebras,
    /// `SiliconFlow`.
    SiliconFlow,
    /// Volcengine Ark, also known as `BytePlus` `ModelArk` (Doubao).
    Volcengine,
    /// Tencent's Hunyuan.
    Hunyuan,
    /// Baidu's Qianfan (ERNIE).
    Qianfan,
    /// Xiaomi's `MiMo`.
    MiMo,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
    /// llama.cpp.
    LlamaCpp,
    /// Any other server, such as `vLLM`, `SGLang`, or a gateway.
    Unknown,
}

impl Server {
    /// All servers.
    pub const ALL: [Server; 30] = [
        Server::Anthropic,
        Server::OpenAi,
        Server::Google,
        Server::Vertex,
        Server::Bedrock,
        Server::Mistral,
        Server::OpenRouter,
        Server::DeepSeek,
        Server::Qwen,
        Server::Groq,
        Server::XAi,
        Server::Moonshot,
        Server::ZAi,
        Server::MiniMax,
        Server::ChatGpt,
        Server::Fireworks,
        Server::Perplexity,
        Server::Databricks,
        Server::Snowflake,
        Server::DeepInfra,
        Server::Cerebras,
        Server::SiliconFlow,
        Server::Volcengine,
        Server::Hunyuan,
        Server::Qianfan,
        Server::MiMo,
        Server::LmStudio,
        Server::Ollama,
        Server::LlamaCpp,
        Server::Unknown,
    ];

    /// Returns the common name of the server.
    pub fn name(self) -> &'static str {
        match self {
            Server::Anthropic => "Anthropic",
            Server::OpenAi => "OpenAI",
            Server::Google => "Google",
            Server::Vertex => "Vertex AI",
            Server::Bedrock => "Amazon Bedrock",
            Server::Mistral => "Mistral",
            Server::OpenRouter => "OpenRouter",
            Server::DeepSeek => "DeepSeek",
            Server::Qwen => "Qwen",
            Server::Groq => "Groq",
            Server::XAi => "xAI",
            Server::Moonshot => "Moonshot",
            Server::ZAi => "Z.ai",
            Server::MiniMax => "MiniMax",
            Server::ChatGpt => "ChatGPT",
            Server::Fireworks => "Fireworks",
            Server::Perplexity => "Perplexity",
            Server::Databricks => "Databricks",
            Server::Snowflake => "Snowflake",
            Server::DeepInfra => "DeepInfra",
            Server::Cerebras => "Cerebras",
            Server::SiliconFlow => "SiliconFlow",
            Server::Volcengine => "Volcengine",
            Server::Hunyuan => "Hunyuan",
            Server::Qianfan => "Qianfan",
            Server::MiMo => "Xiaomi MiMo",
            Server::LmStudio => "LM Studio",
            Server::Ollama => "Ollama",
            Server::LlamaCpp => "llama.cpp",
            Server::Unknown => "this server",
        }
    }

    /// Returns the name under which `<format>.extensions.json` lists the server's fields.
    pub fn extensions(self) -> &'static str {
        match self {
            Server::Unknown => "compatible servers",
            Server::ChatGpt => Server::OpenAi.name(),
            server => server.name(),
        }
    }

    /// Returns `true` if a server that rejects unknown fields ignores those in a message to this
    /// model. OpenAI's models up to GPT-4 Turbo reject them. Sources: recorded: magentic,
    /// `tests/cassettes/test_prompt_function/test_decorator_max_retries.yaml`, with `gpt-4o`;
    /// openai/openai-node#1161 and microsoft/agent-framework#2344.
    pub(crate) fn ignores_fields_of_messages(self, model: Option<&str>) -> bool {
        let is_old = |model: &str| {
            let model = model.trim_start_matches("ft:");
            model == "gpt-4" || ["gpt-3", "gpt-4-"].iter().any(|old| model.starts_with(old))
        };
        self == Server::OpenAi && !model.is_some_and(is_old)
    }

    /// Returns `true` if a server that rejects unknown fields ignores those in a tool of a Chat
    /// Completions request and in its function. Sources: recorded: sublayer,
    /// `spec/vcr_cassettes/openai`, 19 requests with `required` next to the `parameters` of a
    /// function, with `gpt-4-turbo` and `gpt-4o`; recorded: lmnr-python,
    /// `test_litellm_completion_streaming_with_tool_call_openai.yaml`.
    pub(crate) fn ignores_fields_of_tools(self) -> bool {
        self == Server::OpenAi
    }

    /// Returns `true` if the server rejects requests with unknown fields. Other servers ignore such
    /// fields (so that their content is lost), or accept more fields than they document. Sources
    /// for Fireworks: vercel/ai#18306, measured; web-infra-dev/midscene#1322.
    pub fn refuses_unknown_fields(self) -> bool {
        match self {
            Server::Anthropic
            | Server::OpenAi
            | Server::Google
            | Server::Vertex
            | Server::Bedrock
            | Server::Mistral
            | Server::Groq
            | Server::Cerebras
            | Server::Fireworks => true,
            Server::OpenRouter
            | Server::DeepSeek
            | Server::Qwen
            | Server::XAi
            | Server::Moonshot
            | Server::ZAi
            | Server::MiniMax
            | Server::ChatGpt
            | Server::Perplexity
            | Server::Databricks
            | Server::Snowflake
            | Server::DeepInfra
            | Server::SiliconFlow
            | Server::Volcengine
            | Server::Hunyuan
            | Server::Qianfan
            | Server::MiMo
            | Server::LmStudio
            | Server::Ollama
            | Server::LlamaCpp
            | Server::Unknown => false,
        }
    }

    /// Returns `true` if the server rejects calls without results and results without calls in Chat
    /// Completions. Other servers pass them on to the model.
    pub(crate) fn refuses_unpaired_calls(self) -> bool {
        match self {
            Server::Anthropic
            | Server::OpenAi
            | Server::Google
            | Server::Vertex
            | Server::Bedrock
            | Server::Mistral
            | Server::OpenRouter
            | Server::DeepSeek
            | Server::Qwen
            | Server::Groq
            | Server::XAi
            | Server::Moonshot
            | Server::ZAi
            | Server::MiniMax
            | Server::ChatGpt => true,
            Server::Fireworks
            | Server::Perplexity
            | Server::Databricks
            | Server::Snowflake
            | Server::DeepInfra
            | Server::Cerebras
            | Server::SiliconFlow
            | Server::Volcengine
            | Server::Hunyuan
            | Server::Qianfan
            | Server::MiMo
            | Server::LmStudio
            | Server::Ollama
            | Server::LlamaCpp
            | Server::Unknown => false,
        }
    }

    /// Returns `true` if the server serves OpenAI's models by OpenAI's rules: OpenAI itself, or the
    /// backend of `ChatGPT`, which has a few additional rules.
    pub fn is_openai(self) -> bool {
        matches!(self, Server::OpenAi | Server::ChatGpt)
    }

    /// Returns `true` if the server serves Claude by Anthropic's rules: Anthropic itself, or a
    /// cloud that passes requests on to it.
    pub fn is_claude(self) -> bool {
        self == Server::Anthropic || self.is_cloud_of_claude()
    }

    /// Returns `true` if the server is a cloud that serves Claude, with the model in the URL and
    /// the version in the body.
    pub(crate) fn is_cloud_of_claude(self) -> bool {
        matches!(self, Server::Vertex | Server::Bedrock)
    }

    /// Returns the cloud for a body of Anthropic's format, by the version in the body.
    pub(crate) fn by_version_in_body(version: &str) -> Option<Server> {
        [("bedrock-", Server::Bedrock), ("vertex-", Server::Vertex)]
            .into_iter()
            .find(|(begin, _)| version.starts_with(begin))
            .map(|(_, server)| server)
    }

    /// Returns the server that `LiteLLM` selects by a prefix of the model's name.
    /// Source: <https://docs.litellm.ai/docs/providers>.
    pub fn by_prefix(prefix: &str) -> Option<Server> {
        let known = [
            ("cerebras", Server::Cerebras),
            ("dashscope", Server::Qwen),
            ("databricks", Server::Databricks),
            ("deepinfra", Server::DeepInfra),
            ("deepseek", Server::DeepSeek),
            ("fireworks_ai", Server::Fireworks),
            ("groq", Server::Groq),
            ("minimax", Server::MiniMax),
            ("moonshot", Server::Moonshot),
            ("openrouter", Server::OpenRouter),
            ("perplexity", Server::Perplexity),
            ("volcengine", Server::Volcengine),
            ("xai", Server::XAi),
            ("zai", Server::ZAi),
        ];
        known
            .into_iter()
            .find(|(name, _)| *name == prefix)
            .map(|(_, server)| server)
    }

    /// Returns the server of a public host; `None` if the host is unknown.
    pub fn by_host(host: &str) -> Option<Server> {
        let known = [
            ("anthropic.com", Server::Anthropic),
            ("openai.com", Server::OpenAi),
            ("aiplatform.googleapis.com", Server::Vertex),
            ("googleapis.com", Server::Google),
            ("mistral.ai", Server::Mistral),
            ("openrouter.ai", Server::OpenRouter),
            ("deepseek.com", Server::DeepSeek),
            ("aliyuncs.com", Server::Qwen),
            ("groq.com", Server::Groq),
            ("x.ai", Server::XAi),
            ("grok.com", Server::XAi),
            ("moonshot.ai", Server::Moonshot),
            ("moonshot.cn", Server::Moonshot),
            ("kimi.com", Server::Moonshot),
            ("z.ai", Server::ZAi),
            ("bigmodel.cn", Server::ZAi),
            ("minimax.io", Server::MiniMax),
            ("minimaxi.com", Server::MiniMax),
            ("minimax.chat", Server::MiniMax),
            ("chatgpt.com", Server::ChatGpt),
            ("fireworks.ai", Server::Fireworks),
            ("perplexity.ai", Server::Perplexity),
            ("databricks.com", Server::Databricks),
            ("azuredatabricks.net", Server::Databricks),
            ("snowflakecomputing.com", Server::Snowflake),
            ("deepinfra.com", Server::DeepInfra),
            ("cerebras.ai", Server::Cerebras),
            ("siliconflow.cn", Server::SiliconFlow),
            ("siliconflow.com", Server::SiliconFlow),
            ("volces.com", Server::Volcengine),
            ("bytepluses.com", Server::Volcengine),
            ("hunyuan.cloud.tencent.com", Server::Hunyuan),
            ("baidubce.com", Server::Qianfan),
            ("xiaomimimo.com", Server::MiMo),
        ];
        // The host name begins with a region: `europe-west4-aiplatform.googleapis.com`.
        if host.ends_with("-aiplatform.googleapis.com") {
            return Some(Server::Vertex);
        }
        known
            .into_iter()
            .find(|(domain, _)| is_below(host, domain))
            .map(|(_, server)| server)
    }
}

/// A property of a URL in addition to the server: a host operator that forwards requests to other
/// operators' servers, an API version, or an endpoint that counts the tokens of a request. Families
/// and extensions refer to a site by name, as they do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Site {
    Azure,
    GitHubModels,
    GitHubCopilot,
    Nvidia,
    Cloudflare,
    SambaNova,
    Venice,
    Vercel,
    Requesty,
    HuggingFace,
    /// Docker Model Runner, a local server.
    DockerModelRunner,
    /// The API behind Gemini CLI and Google's editor extensions.
    CodeAssist,
    /// Version 1 of the Gemini API, which has fewer fields than `v1beta`.
    GeminiV1,
    /// An endpoint that counts the tokens of the body itself.
    TokenCount,
    /// An endpoint on Vertex AI that counts the tokens of the body itself. The model is in a
    /// different location than in requests for answers.
    VertexTokenCount,
    /// An endpoint that counts the tokens of a request inside the body. The inner request is
    /// checked.
    CountedRequest,
}

impl Site {
    /// All sites. Azure comes after the sites whose hosts are subdomains of Azure's hosts.
    pub(super) const ALL: [Site; 16] = [
        Site::GitHubModels,
        Site::Azure,
        Site::GitHubCopilot,
        Site::Nvidia,
        Site::Cloudflare,
        Site::SambaNova,
        Site::Venice,
        Site::Vercel,
        Site::Requesty,
        Site::HuggingFace,
        Site::DockerModelRunner,
        Site::CodeAssist,
        Site::GeminiV1,
        Site::TokenCount,
        Site::VertexTokenCount,
        Site::CountedRequest,
    ];

    /// Returns the names of all sites.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Site::ALL.into_iter().map(Site::name)
    }

    /// Returns the name of the site.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Site::Azure => "Azure",
            Site::GitHubModels => "GitHub Models",
            Site::GitHubCopilot => "GitHub Copilot",
            Site::Nvidia => "NVIDIA",
            Site::Cloudflare => "Cloudflare",
            Site::SambaNova => "SambaNova",
            Site::Venice => "Venice",
            Site::Vercel => "Vercel",
            Site::Requesty => "Requesty",
            Site::HuggingFace => "Hugging Face",
            Site::DockerModelRunner => "Docker Model Runner",
            Site::CodeAssist => "Gemini Code Assist",
            Site::GeminiV1 => "v1 of the Gemini API",
            Site::TokenCount => "token count",
            Site::VertexTokenCount => "token count of Vertex AI",
            Site::CountedRequest => "request to count",
        }
    }

    /// Returns the domains of an operator's hosts; an empty list for an endpoint.
    fn domains(self) -> &'static [&'static str] {
        match self {
            Site::Azure => &[
                "openai.azure.com",
                "cognitiveservices.azure.com",
                "ai.azure.com",
            ],
            Site::GitHubModels => &["models.github.ai", "models.inference.ai.azure.com"],
            Site::GitHubCopilot => &["githubcopilot.com"],
            Site::Nvidia => &["integrate.api.nvidia.com"],
            Site::Cloudflare => &["api.cloudflare.com"],
            Site::SambaNova => &["sambanova.ai"],
            Site::Venice => &["venice.ai"],
            Site::Vercel => &["ai-gateway.vercel.sh"],
            Site::Requesty => &["requesty.ai"],
            Site::HuggingFace => &["router.huggingface.co"],
            Site::DockerModelRunner => &["model-runner.docker.internal"],
            Site::CodeAssist => &[
                "cloudcode-pa.googleapis.com",
                "daily-cloudcode-pa.googleapis.com",
                "daily-cloudcode-pa.sandbox.googleapis.com",
            ],
            Site::GeminiV1 | Site::TokenCount | Site::VertexTokenCount | Site::CountedRequest => {
                &[]
            }
        }
    }

    /// Returns `true` if the site operates a host.
    pub(crate) fn is_operator(self) -> bool {
        !self.domains().is_empty()
    }

    /// Returns `true` if the site rejects requests with unknown fields, even if its models' vendors
    /// accept them. Sources for NVIDIA: sipeed/picoclaw#1019, Kilo-Org/kilocode#9652,
    /// NVIDIA/garak#748.
    pub(crate) fn refuses_unknown_fields(self) -> bool {
        matches!(
            self,
            Site::Azure | Site::Nvidia | Site::Venice | Site::TokenCount | Site::VertexTokenCount
        )
    }

    /// Returns `true` if the site runs other vendors' models on its own machines.
    pub(crate) fn runs_models(self) -> bool {
        match self {
            Site::Azure
            | Site::GitHubModels
            | Site::Nvidia
            | Site::Cloudflare
            | Site::SambaNova => true,
            Site::GitHubCopilot
            | Site::Venice
            | Site::Vercel
            | Site::Requesty
            | Site::HuggingFace
            | Site::DockerModelRunner
            | Site::CodeAssist
            | Site::GeminiV1
            | Site::TokenCount
            | Site::VertexTokenCount
            | Site::CountedRequest => false,
        }
    }

    /// Returns `true` if the site responds with a token count.
    pub(crate) fn counts_tokens(self) -> bool {
        matches!(
            self,
            Site::TokenCount | Site::VertexTokenCount | Site::CountedRequest
        )
    }

    /// Returns the sites that a URL belongs to.
    pub(crate) fn of(url: &str) -> Vec<Site> {
        let parts = UrlParts::of(url);
        let host = if url.contains("://") {
            parts.host()
        } else {
            ""
        };
        let of_host = Site::ALL.into_iter().find(|site| {
            let mut domains = site.domains().iter();
            domains.any(|domain| is_below(host, domain))
        });
        let path = parts.path().trim_end_matches('/');
        let of_version = (Server::by_host(host) == Some(Server::Google)
            && path.starts_with("/v1/models/"))
        .then_some(Site::GeminiV1);
        let of_docker = is_of_docker(&parts).then_some(Site::DockerModelRunner);
        of_host
            .into_iter()
            .chain(of_docker)
            .chain(of_version)
            .chain(Site::of_count(host, path))
            .collect()
    }

    /// Returns the site of a path that counts tokens. For Gemini on Vertex AI, such a path is not a
    /// site, because requests to count tokens have the same members as requests for answers.
    fn of_count(host: &str, path: &str) -> Option<Site> {
        let is_vertex = Server::by_host(host) == Some(Server::Vertex);
        if path.ends_with("/models/count-tokens:rawPredict") {
            return Some(Site::VertexTokenCount);
        }
        let is_count = ["/messages/count_tokens", "/responses/input_tokens"]
            .iter()
            .any(|end| path.ends_with(end))
            || path.ends_with(":countTokens") && !is_vertex;
        is_count.then_some(Site::TokenCount)
    }
}

/// Returns `true` if a URL of this machine has the port or the path of Docker Model Runner. Source:
/// <https://docs.docker.com/ai/model-runner/api-reference/>.
fn is_of_docker(url: &UrlParts<'_>) -> bool {
    let is_here = ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"].contains(&url.host());
    is_here && (url.port() == Some(12_434) || url.path().starts_with("/engines/"))
}

/// Returns `true` if a host is a domain or one of its subdomains.
pub(super) fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns `true` if a name belongs to an OpenAI model, fine-tuned or not. Open models such as
/// `gpt-oss` are excluded, because other servers have them, too.
pub(crate) fn is_openai_model(name: &str) -> bool {
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let is_numbered = name
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_gpt = name.starts_with("gpt-") || name.starts_with("chatgpt-");
    is_numbered || is_gpt && !name.starts_with("gpt-oss")
}

/// Returns `true` if a name belongs to a Claude model, including the names that gateways use.
pub(crate) fn is_claude_model(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["claude", "sonnet", "opus", "haiku"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns `true` if a name belongs to a model on Cloudflare's Workers AI, such as
/// `@cf/meta/llama-4-scout-17b-16e-instruct`.
pub(crate) fn is_workers_ai_model(name: &str) -> bool {
    name.starts_with("@cf/") || name.contains("/@cf/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_tell_the_server() {
        assert_eq!(Server::by_host("api.openai.com"), Some(Server::OpenAi));
        assert_eq!(
            Server::by_host("dashscope-intl.aliyuncs.com"),
            Some(Server::Qwen)
        );
        assert_eq!(Server::by_host("notopenai.com"), None);
        assert_eq!(Server::by_host("open.bigmodel.cn"), Some(Server::ZAi));
        assert_eq!(Server::by_host("api.z.ai"), Some(Server::ZAi));
        // The name of an Azure deployment is arbitrary, and Azure has fields that OpenAI does not
        // accept.
        assert_eq!(Server::by_host("my-resource.openai.azure.com"), None);
        assert_eq!(
            Server::by_host("europe-west4-aiplatform.googleapis.com"),
            Some(Server::Vertex)
        );
        assert_eq!(
            Server::by_host("aiplatform.googleapis.com"),
            Some(Server::Vertex)
        );
        assert_eq!(
            Server::by_host("generativelanguage.googleapis.com"),
            Some(Server::Google)
        );
        assert_eq!(
            Server::by_host(UrlParts::of("https://user@api.x.ai:443/v1?a").host()),
            Some(Server::XAi)
        );
        assert_eq!(
            Server::by_host(UrlParts::of("http://localhost:8080/v1").host()),
            None
        );
    }

    #[test]
    fn addresses_tell_operators_and_endpoints() {
        let of = |url: &str| Site::of(url);
        assert_eq!(
            of("https://x.services.ai.azure.com/openai/v1/responses"),
            [Site::Azure]
        );
        assert_eq!(
            of("https://models.inference.ai.azure.com/chat/completions"),
            [Site::GitHubModels]
        );
        assert_eq!(
            of("https://api.githubcopilot.com/v1/messages/count_tokens"),
            [Site::GitHubCopilot, Site::TokenCount]
        );
        let gemini = "/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro:countTokens";
        let vertex = format!("https://aiplatform.googleapis.com{gemini}");
        assert!(of(&vertex).is_empty());
        assert!(of("https://api.openai.com/v1/responses").is_empty());
        assert!(of("http://vllm:8000/v1/chat/completions").is_empty());
        assert_eq!(
            of("http://localhost:12434/engines/llama.cpp/v1/chat/completions"),
            [Site::DockerModelRunner]
        );
    }
}
