//! The server behind a request: servers of one wire format differ in what they accept.

/// The operator or maker of a server.
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
    /// Volcengine Ark, also as `BytePlus` `ModelArk` (Doubao).
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
    /// Any other, such as `vLLM`, `SGLang`, or a gateway.
    Unknown,
}

impl Server {
    /// Every server.
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

    /// Returns the common name.
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

    /// Returns the name under which `<format>.extensions.json` lists its fields.
    pub fn extensions(self) -> &'static str {
        match self {
            Server::Unknown
            | Server::MiniMax
            | Server::Fireworks
            | Server::Perplexity
            | Server::Databricks
            | Server::Snowflake
            | Server::DeepInfra => "compatible servers",
            Server::ChatGpt => Server::OpenAi.name(),
            server => server.name(),
        }
    }

    /// Returns `true` if it refuses requests with unknown fields. Others ignore such fields, so
    /// that their content is lost, or read more fields than are documented.
    pub fn refuses_unknown_fields(self) -> bool {
        match self {
            Server::Anthropic
            | Server::OpenAi
            | Server::Google
            | Server::Vertex
            | Server::Bedrock
            | Server::Mistral
            | Server::Groq
            | Server::Cerebras => true,
            Server::OpenRouter
            | Server::DeepSeek
            | Server::Qwen
            | Server::XAi
            | Server::Moonshot
            | Server::ZAi
            | Server::MiniMax
            | Server::ChatGpt
            | Server::Fireworks
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

    /// Returns `true` if it refuses a call without a result, and a result without a call, in Chat
    /// Completions. Others pass them on to the model.
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

    /// Returns `true` if it serves OpenAI's models by OpenAI's rules: OpenAI itself, or the backend
    /// of `ChatGPT`, which has a few more.
    pub fn is_openai(self) -> bool {
        matches!(self, Server::OpenAi | Server::ChatGpt)
    }

    /// Returns `true` if it serves Claude by Anthropic's rules: Anthropic itself, or a cloud that
    /// passes requests on to it.
    pub fn is_claude(self) -> bool {
        self == Server::Anthropic || self.is_cloud_of_claude()
    }

    /// Returns `true` if it is a cloud that serves Claude, with the model in the URL and the
    /// version in the body.
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

    /// Returns the server of a public host.
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
        // A region comes first: `europe-west4-aiplatform.googleapis.com`.
        if host.ends_with("-aiplatform.googleapis.com") {
            return Some(Server::Vertex);
        }
        known
            .into_iter()
            .find(|(domain, _)| is_below(host, domain))
            .map(|(_, server)| server)
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns `true` if a model with this name is served or was tuned only by OpenAI.
pub(crate) fn is_openai_model(name: &str) -> bool {
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let is_numbered = name
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_gpt = name.starts_with("gpt-") || name.starts_with("chatgpt-");
    is_numbered || is_gpt && !name.starts_with("gpt-oss")
}

/// Returns `true` if a model with this name is Claude, also by the names that gateways give it.
pub(crate) fn is_claude_model(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["claude", "sonnet", "opus", "haiku"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::request::UrlParts;
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
        // An Azure deployment has a name of its own, and fields that OpenAI does not accept.
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
}
