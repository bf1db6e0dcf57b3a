//! Client APIs: the wire format, authentication and capabilities of each.

use super::capability::Capability;
use super::headers::ApiHeaders;
use super::named::NamedServer;
use super::server::Server;
use super::wire::WireFormat;
use crate::repo::Instance;

/// An API that a client uses to talk to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientApi {
    /// Anthropic's Messages API.
    Claude,
    /// Google's Gemini API.
    GoogleAi,
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Any server that implements Chat Completions.
    OpenAiCompatible,
    /// OpenRouter.
    OpenRouter,
    /// LM Studio's Chat Completions.
    LmStudioChat,
    /// LM Studio's Responses.
    LmStudioResponses,
    /// Ollama's Chat Completions.
    OllamaOpenAi,
    /// llama.cpp's server.
    LlamaCpp,
    /// Mistral's API.
    Mistral,
    /// Codestral's API.
    Codestral,
    /// Ollama's own API.
    OllamaNative,
}

/// The way in which requests authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// The header `authorization: Bearer KEY`.
    Bearer,
    /// A header with this name, whose value is the key.
    Header(&'static str),
}

impl ClientApi {
    /// All client APIs.
    pub const ALL: [ClientApi; 13] = [
        ClientApi::Claude,
        ClientApi::GoogleAi,
        ClientApi::OpenAiChat,
        ClientApi::OpenAiResponses,
        ClientApi::OpenAiCompatible,
        ClientApi::OpenRouter,
        ClientApi::LmStudioChat,
        ClientApi::LmStudioResponses,
        ClientApi::OllamaOpenAi,
        ClientApi::LlamaCpp,
        ClientApi::Mistral,
        ClientApi::Codestral,
        ClientApi::OllamaNative,
    ];

    /// Returns the name used in provider instances.
    pub fn name(self) -> &'static str {
        match self {
            ClientApi::Claude => "Claude",
            ClientApi::GoogleAi => "Google AI",
            ClientApi::OpenAiChat => "OpenAI (Chat Completions)",
            ClientApi::OpenAiResponses => "OpenAI (Responses API)",
            ClientApi::OpenAiCompatible => "OpenAI Compatible",
            ClientApi::OpenRouter => "OpenRouter",
            ClientApi::LmStudioChat => "LM Studio (Chat Completions)",
            ClientApi::LmStudioResponses => "LM Studio (Responses API)",
            ClientApi::OllamaOpenAi => "Ollama (OpenAI-compatible)",
            ClientApi::LlamaCpp => "llama.cpp",
            ClientApi::Mistral => "Mistral AI",
            ClientApi::Codestral => "Codestral",
            ClientApi::OllamaNative => "Ollama (Native)",
        }
    }

    /// Returns the client API with this name.
    pub fn from_name(name: &str) -> Option<ClientApi> {
        ClientApi::ALL.into_iter().find(|api| api.name() == name)
    }

    /// Returns the wire format of a request to `endpoint`.
    pub fn wire(self, endpoint: &str) -> WireFormat {
        let path = endpoint
            .split(['?', '#'])
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        match self {
            ClientApi::Claude => WireFormat::AnthropicMessages,
            ClientApi::GoogleAi => WireFormat::GoogleGenerateContent,
            ClientApi::OpenAiResponses | ClientApi::LmStudioResponses => {
                WireFormat::OpenAiResponses
            }
            ClientApi::Mistral if path.contains("fim/") => WireFormat::MistralFim,
            ClientApi::Codestral if !path.ends_with("chat/completions") => WireFormat::MistralFim,
            ClientApi::Mistral | ClientApi::Codestral => WireFormat::MistralChat,
            ClientApi::OllamaNative if path.ends_with("api/generate") => WireFormat::OllamaGenerate,
            ClientApi::OllamaNative => WireFormat::OllamaChat,
            ClientApi::LlamaCpp if path == "infill" || path.ends_with("/infill") => {
                WireFormat::LlamaCppInfill
            }
            ClientApi::OpenAiChat
            | ClientApi::OpenAiCompatible
            | ClientApi::OpenRouter
            | ClientApi::LmStudioChat
            | ClientApi::OllamaOpenAi
            | ClientApi::LlamaCpp => WireFormat::OpenAiChat,
        }
    }

    /// Returns the endings of the paths that the API's servers answer, the usual one first.
    pub(crate) fn endpoints(self) -> &'static [&'static str] {
        match self {
            ClientApi::Claude => &["messages"],
            ClientApi::GoogleAi => &["streamGenerateContent", "generateContent"],
            ClientApi::OpenAiResponses | ClientApi::LmStudioResponses => &["responses"],
            ClientApi::OpenAiChat
            | ClientApi::OpenAiCompatible
            | ClientApi::OpenRouter
            | ClientApi::LmStudioChat
            | ClientApi::OllamaOpenAi => &["chat/completions"],
            ClientApi::LlamaCpp => &["chat/completions", "infill"],
            ClientApi::Mistral => &["chat/completions", "fim/completions", "agents/completions"],
            ClientApi::Codestral => &["fim/completions", "chat/completions"],
            ClientApi::OllamaNative => &["api/chat", "api/generate"],
        }
    }

    /// Returns the wire format of conversations. Some APIs have a different endpoint for
    /// completions.
    pub fn chat_wire(self) -> WireFormat {
        self.wire("v1/chat/completions")
    }

    /// Returns `true` if one of the API's endpoints accepts the wire format.
    pub fn speaks(self, wire: WireFormat) -> bool {
        const ENDPOINTS: [&str; 5] = [
            "v1/chat/completions",
            "v1/fim/completions",
            "api/chat",
            "api/generate",
            "infill",
        ];
        ENDPOINTS.iter().any(|endpoint| self.wire(endpoint) == wire)
    }

    /// Returns how requests authenticate if a key is configured.
    ///
    /// Anthropic uses `x-api-key` with `anthropic-version`, Google `x-goog-api-key`, and the others
    /// a bearer token. Ollama needs no key on the local machine, but ollama.com and proxies require
    /// one: <https://docs.ollama.com/api/authentication>.
    pub fn auth(self) -> Auth {
        match self {
            ClientApi::Claude => Auth::Header("x-api-key"),
            ClientApi::GoogleAi => Auth::Header("x-goog-api-key"),
            ClientApi::OpenAiChat
            | ClientApi::OpenAiResponses
            | ClientApi::OpenAiCompatible
            | ClientApi::OpenRouter
            | ClientApi::LmStudioChat
            | ClientApi::LmStudioResponses
            | ClientApi::OllamaOpenAi
            | ClientApi::LlamaCpp
            | ClientApi::Mistral
            | ClientApi::Codestral
            | ClientApi::OllamaNative => Auth::Bearer,
        }
    }

    /// Returns the headers of every request, other than `content-type`.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Sent by the SDKs since October 2026:
            // https://platform.claude.com/docs/en/api/versioning. This version accepts less than
            // 2023-06-01, which an instance or a profile can still request.
            ClientApi::Claude => &[("anthropic-version", "2026-10-21")],
            ClientApi::GoogleAi
            | ClientApi::OpenAiChat
            | ClientApi::OpenAiResponses
            | ClientApi::OpenAiCompatible
            | ClientApi::OpenRouter
            | ClientApi::LmStudioChat
            | ClientApi::LmStudioResponses
            | ClientApi::OllamaOpenAi
            | ClientApi::LlamaCpp
            | ClientApi::Mistral
            | ClientApi::Codestral
            | ClientApi::OllamaNative => &[],
        }
    }

    /// Returns the version and the beta features that requests ask for in the headers of the
    /// instance and the profile. For APIs without such headers, both are unknown.
    pub fn api_headers<'h>(
        self,
        instance: &'h Instance,
        own: impl IntoIterator<Item = (&'h str, &'h str)>,
    ) -> ApiHeaders {
        let usual = self.headers();
        if !usual.iter().any(|(name, _)| *name == "anthropic-version") {
            return ApiHeaders::default().of_instance(instance);
        }
        let of_instance = instance
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value));
        ApiHeaders::read(usual.iter().copied().chain(of_instance).chain(own)).of_instance(instance)
    }

    /// Returns `true` if a profile can ask for the capability.
    pub fn can(self, wire: WireFormat, capability: Capability) -> bool {
        let refuses = match self {
            ClientApi::Codestral => capability == Capability::Thinking,
            ClientApi::Claude
            | ClientApi::GoogleAi
            | ClientApi::OpenAiChat
            | ClientApi::OpenAiResponses
            | ClientApi::OpenAiCompatible
            | ClientApi::OpenRouter
            | ClientApi::LmStudioChat
            | ClientApi::LmStudioResponses
            | ClientApi::OllamaOpenAi
            | ClientApi::LlamaCpp
            | ClientApi::Mistral
            | ClientApi::OllamaNative => false,
        };
        !refuses && wire.can(capability)
    }
}

impl ApiHeaders {
    /// Adds the facts that an instance's URL and the name of its server reveal.
    fn of_instance(self, instance: &Instance) -> ApiHeaders {
        self.at(&instance.url.value).at_server_of(instance)
    }

    /// Adds the server that an instance names, if it names one.
    pub(crate) fn at_server_of(self, instance: &Instance) -> ApiHeaders {
        match instance.named_server() {
            Some(named) => self.to(named),
            None => self,
        }
    }
}

impl Instance {
    /// Returns the server that the instance names, if it exists.
    pub(super) fn named_server(&self) -> Option<NamedServer> {
        NamedServer::from_name(&self.server.as_ref()?.value)
    }
}

impl Server {
    /// Returns the server that a client API is designed for, regardless of its URL.
    pub fn by_api(api: ClientApi) -> Server {
        match api {
            ClientApi::Claude => Server::Anthropic,
            ClientApi::GoogleAi => Server::Google,
            ClientApi::OpenAiChat | ClientApi::OpenAiResponses => Server::OpenAi,
            ClientApi::OpenAiCompatible => Server::Unknown,
            ClientApi::OpenRouter => Server::OpenRouter,
            ClientApi::LmStudioChat | ClientApi::LmStudioResponses => Server::LmStudio,
            ClientApi::OllamaOpenAi | ClientApi::OllamaNative => Server::Ollama,
            ClientApi::LlamaCpp => Server::LlamaCpp,
            ClientApi::Mistral | ClientApi::Codestral => Server::Mistral,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_pick_the_wire_format() {
        assert_eq!(
            ClientApi::Mistral.wire("/v1/fim/completions"),
            WireFormat::MistralFim
        );
        assert_eq!(
            ClientApi::Mistral.wire("v1/chat/completions"),
            WireFormat::MistralChat
        );
        assert_eq!(
            ClientApi::Codestral.wire("v1/fim/completions"),
            WireFormat::MistralFim
        );
        assert_eq!(
            ClientApi::Codestral.wire("v1/chat/completions"),
            WireFormat::MistralChat
        );
        assert_eq!(
            ClientApi::LlamaCpp.wire("/infill"),
            WireFormat::LlamaCppInfill
        );
        assert_eq!(
            ClientApi::LlamaCpp.wire("/v1/chat/completions"),
            WireFormat::OpenAiChat
        );
        assert_eq!(
            ClientApi::OllamaNative.wire("api/generate"),
            WireFormat::OllamaGenerate
        );
        assert!(
            ClientApi::ALL
                .iter()
                .all(|api| ClientApi::from_name(api.name()) == Some(*api))
        );
    }

    #[test]
    fn some_speak_several_wire_formats() {
        let spoken = |api: ClientApi| {
            WireFormat::ALL
                .into_iter()
                .filter(move |wire| api.speaks(*wire))
        };
        assert_eq!(
            spoken(ClientApi::Claude).collect::<Vec<_>>(),
            [WireFormat::AnthropicMessages]
        );
        assert_eq!(spoken(ClientApi::Codestral).count(), 2);
        let all: std::collections::BTreeSet<_> =
            ClientApi::ALL.into_iter().flat_map(spoken).collect();
        assert_eq!(all.len(), WireFormat::ALL.len());
    }

    #[test]
    fn codestral_cannot_think() {
        assert!(!ClientApi::Codestral.can(WireFormat::MistralChat, Capability::Thinking));
        assert!(ClientApi::Codestral.can(WireFormat::MistralChat, Capability::Tools));
        assert!(!ClientApi::LlamaCpp.can(WireFormat::LlamaCppInfill, Capability::Tools));
    }
}
