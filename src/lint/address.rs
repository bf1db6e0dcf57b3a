//! Facts about a body that follow from its URL.

use super::unsupported::Unsupported;
use crate::provider::{ApiHeaders, Server, UrlParts, WireFormat};

/// The endpoint that a body was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The wire format that the path accepts.
    pub wire: WireFormat,
    /// The host, without a port; empty if the URL is only a path.
    pub host: String,
    /// The port, unless it is the default of the URL's scheme.
    pub port: Option<u16>,
    /// The server at the host, if the host is public.
    pub server: Option<Server>,
    /// `true` if a known operator runs the host and forwards requests.
    pub(crate) is_at_operator: bool,
    /// The model, if the path contains it.
    pub model: Option<String>,
}

impl Endpoint {
    /// Returns the server that answers: a public host's server, or [`Server::Unknown`] for an
    /// unknown host. At an unknown host, an OpenAI model does not mean that OpenAI answers, because
    /// gateways add fields (such as `LiteLLM`'s `fallbacks`), and local servers accept any model's
    /// name. Returns `None` if only the body can identify the server.
    pub fn likely_server(&self) -> Option<Server> {
        let is_unknown_host = !self.host.is_empty() && !self.is_at_operator;
        self.server.or(match self.wire {
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses if is_unknown_host => {
                Some(Server::Unknown)
            }
            WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::AnthropicMessages
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => None,
        })
    }
}

/// A URL, classified by the kind of endpoint that it points to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Address {
    /// An endpoint of a wire format.
    Known(Endpoint),
    /// An endpoint of a format that is not checked.
    Unsupported(Unsupported),
    /// An endpoint for other requests, such as embeddings or files.
    Other,
    /// Bedrock's endpoint for a model other than Claude. The path contains the model, and the
    /// model's maker defines the format.
    Invoke,
    /// No URL, or an unknown one.
    #[default]
    Unknown,
}

/// Path suffixes of endpoints for other requests on the same servers.
const OTHERS: [&str; 17] = [
    "/completions",
    "/embeddings",
    "/moderations",
    "/count-tokens",
    ":embedContent",
    ":batchEmbedContents",
    "/images/generations",
    "/images/edits",
    "/audio/speech",
    "/api/embed",
    "/api/show",
    "/api/pull",
    "/rerank",
    "/tokenize",
    "/files",
    "/batches",
    "/models",
];

/// Path endings below an endpoint that accept bodies in the endpoint's format. These endpoints
/// count tokens, compact a conversation, or answer many requests (Anthropic's batches).
const BELOW: [(&str, &str); 4] = [
    ("/messages", "/count_tokens"),
    ("/messages", "/batches"),
    ("/responses", "/input_tokens"),
    ("/responses", "/compact"),
];

impl Address {
    pub(super) fn of(url: &str) -> Address {
        let parts = UrlParts::of(url);
        let path = parts.path().trim_end_matches('/');
        let path = BELOW
            .iter()
            .filter_map(|(endpoint, end)| Some((endpoint, path.strip_suffix(end)?)))
            .find_map(|(endpoint, above)| above.ends_with(endpoint).then_some(above))
            .unwrap_or(path);
        // Gemini's batches contain whole requests, too.
        let path = path.replace(":batchGenerateContent", ":generateContent");
        let path = path.as_str();
        let host = if url.contains("://") {
            parts.host()
        } else {
            ""
        };
        if let Some(format) = Unsupported::by_address(host, path) {
            return Address::Unsupported(format);
        }
        let cloud = cloud_of_claude(host, path);
        let server = cloud.or_else(|| Server::by_host(host));
        let wire = match cloud {
            Some(_) => Some(WireFormat::AnthropicMessages),
            None => wire_of(path, server),
        };
        let Some(wire) = wire else {
            return if invoked(host, path).is_some() {
                Address::Invoke
            } else if OTHERS.iter().any(|end| path.ends_with(end)) {
                Address::Other
            } else {
                Address::Unknown
            };
        };
        Address::Known(Endpoint {
            wire,
            host: host.to_owned(),
            port: parts.port(),
            server,
            is_at_operator: ApiHeaders::default().at(url).is_at_operator(),
            model: model(path, server)
                .filter(|name| *name != "count-tokens")
                .map(|name| name.replace("%3A", ":").replace("%3a", ":")),
        })
    }
}

/// Returns the wire format that a server accepts at a path. Messages that are added to an
/// assistant's thread are not requests to a model.
fn wire_of(path: &str, server: Option<Server>) -> Option<WireFormat> {
    if is_databricks(path, server) {
        return Some(WireFormat::OpenAiChat);
    }
    let fits = |wire: &WireFormat| {
        let facts = wire.facts();
        let is_here = facts.only_at.is_none() || facts.only_at == server;
        is_here && facts.paths.iter().any(|end| path.ends_with(end))
    };
    let known = WireFormat::ALL.into_iter().filter(fits);
    known
        .max_by_key(|wire| wire.facts().only_at.is_some())
        .filter(|_| !path.contains("/threads/"))
}

/// Returns `true` for a serving endpoint of Databricks: `serving-endpoints/NAME/invocations`.
fn is_databricks(path: &str, server: Option<Server>) -> bool {
    server == Some(Server::Databricks)
        && path.contains("/serving-endpoints/")
        && path.ends_with("/invocations")
}

/// Returns the cloud that serves Claude at a path: Vertex AI at
/// `publishers/anthropic/models/NAME:rawPredict`, Bedrock at `model/NAME/invoke`. Bedrock also
/// serves other models, in other formats.
fn cloud_of_claude(host: &str, path: &str) -> Option<Server> {
    let is_vertex = path.contains("/publishers/anthropic/models/")
        && [":rawPredict", ":streamRawPredict"]
            .iter()
            .any(|end| path.ends_with(end));
    if is_vertex {
        return Some(Server::Vertex);
    }
    let is_claude = invoked(host, path)?.contains("anthropic.claude");
    is_claude.then_some(Server::Bedrock)
}

/// Returns the model that a Bedrock path invokes, by its identifier or its ARN.
fn invoked<'p>(host: &str, path: &'p str) -> Option<&'p str> {
    let is_amazon = host.is_empty() || host.ends_with(".amazonaws.com");
    let (_, rest) = path.split_once("/model/").filter(|_| is_amazon)?;
    ["/invoke", "/invoke-with-response-stream"]
        .iter()
        .find_map(|end| rest.strip_suffix(end))
}

/// Returns the model in a path: `models/NAME:generateContent` for Google, `model/NAME/invoke` on
/// Amazon Bedrock, `deployments/NAME/chat/completions` on Azure,
/// `serving-endpoints/NAME/invocations` on Databricks, `endpoints/NUMBER/chat/completions` for a
/// user's own model on Vertex AI.
fn model(path: &str, server: Option<Server>) -> Option<&str> {
    let own = (server == Some(Server::Vertex)).then_some("/endpoints/");
    let within = ["/deployments/", "/serving-endpoints/", "/model/"]
        .into_iter()
        .chain(own)
        .find_map(|before| path.rsplit_once(before))
        .filter(|(_, rest)| !rest.starts_with("openapi/"));
    let name = match within {
        Some((_, rest)) => rest.split('/').next(),
        None => path
            .rsplit_once("/models/")
            .and_then(|(_, rest)| Some(rest.split_once(':')?.0)),
    };
    name.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(url: &str) -> (WireFormat, Option<Server>, Option<String>) {
        match Address::of(url) {
            Address::Known(endpoint) => (endpoint.wire, endpoint.server, endpoint.model),
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn urls_tell_wire_format_server_and_model() {
        let gemini = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
        let model = Some("gemini-3-pro".to_owned());
        assert_eq!(
            known(gemini),
            (
                WireFormat::GoogleGenerateContent,
                Some(Server::Google),
                model
            )
        );
        let azure =
            "https://x.openai.azure.com/openai/deployments/ours/chat/completions?api-version=1";
        assert_eq!(
            known(azure),
            (WireFormat::OpenAiChat, None, Some("ours".to_owned()))
        );
        let databricks = "https://dbc-1.cloud.databricks.com/serving-endpoints/databricks-claude-opus-4-7/invocations";
        assert_eq!(
            known(databricks),
            (
                WireFormat::OpenAiChat,
                Some(Server::Databricks),
                Some("databricks-claude-opus-4-7".to_owned())
            )
        );
        assert_eq!(
            known("/v1/chat/completions"),
            (WireFormat::OpenAiChat, None, None)
        );
        assert_eq!(
            known("https://api.mistral.ai/v1/chat/completions").0,
            WireFormat::MistralChat
        );
        assert_eq!(
            known("https://codestral.mistral.ai/v1/fim/completions").0,
            WireFormat::MistralFim
        );
        assert_eq!(
            known("http://localhost:11434/api/chat/").0,
            WireFormat::OllamaChat
        );
        assert_eq!(
            known("https://api.anthropic.com/v1/messages").1,
            Some(Server::Anthropic)
        );
    }

    #[test]
    fn clouds_serve_claude_at_paths_of_their_own() {
        let bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke";
        let model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0".to_owned();
        assert_eq!(
            known(bedrock),
            (
                WireFormat::AnthropicMessages,
                Some(Server::Bedrock),
                Some(model)
            )
        );
        let vertex = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-4-5@20251101:streamRawPredict";
        assert_eq!(
            known(vertex),
            (
                WireFormat::AnthropicMessages,
                Some(Server::Vertex),
                Some("claude-opus-4-5@20251101".to_owned())
            )
        );
        let titan = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.titan-text-express-v1/invoke";
        assert_eq!(Address::of(titan), Address::Invoke);
    }

    #[test]
    fn endpoints_of_formats_that_are_not_checked() {
        let converse = Address::Unsupported(Unsupported::Converse);
        let cohere = Address::Unsupported(Unsupported::CohereChat);
        let bedrock =
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/eu.amazon.nova-pro-v1%3A0";
        assert_eq!(Address::of(&format!("{bedrock}/converse")), converse);
        assert_eq!(Address::of(&format!("{bedrock}/converse-stream")), converse);
        assert_eq!(Address::of("https://api.cohere.com/v2/chat"), cohere);
        assert_eq!(
            known("https://api.cohere.ai/compatibility/v1/chat/completions").0,
            WireFormat::OpenAiChat
        );
    }

    #[test]
    fn counted_bodies_have_the_format_of_requests() {
        let of = |url: &str| (known(url).0, known(url).2);
        let claude = WireFormat::AnthropicMessages;
        assert_eq!(of("/v1/messages/count_tokens?beta=true"), (claude, None));
        let vertex = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict";
        assert_eq!(of(vertex), (claude, None));
        assert_eq!(
            of("/v1/responses/input_tokens").0,
            WireFormat::OpenAiResponses
        );
        let gemini = Some("gemini-3-pro".to_owned());
        assert_eq!(
            of("/v1beta/models/gemini-3-pro:countTokens"),
            (WireFormat::GoogleGenerateContent, gemini)
        );
        assert_eq!(
            of("/v1beta/models/gemini-3-pro:batchGenerateContent").0,
            WireFormat::GoogleGenerateContent
        );
        let claude_batch = "https://api.anthropic.com/v1/messages/batches";
        assert_eq!(of(claude_batch), (claude, None));
        assert_eq!(of("/v1/responses/compact").0, WireFormat::OpenAiResponses);
        let vertex = "https://aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints";
        assert_eq!(
            of(&format!("{vertex}/46/chat/completions")),
            (WireFormat::OpenAiChat, Some("46".to_owned()))
        );
        assert_eq!(
            of(&format!("{vertex}/openapi/chat/completions")),
            (WireFormat::OpenAiChat, None)
        );
        // Azure serves several models at one path.
        let azure = "https://x.services.ai.azure.com/models/chat/completions?api-version=1";
        assert_eq!(of(azure), (WireFormat::OpenAiChat, None));
    }

    #[test]
    fn other_endpoints_and_unknown_ones() {
        assert_eq!(Address::of("/v1/embeddings"), Address::Other);
        assert_eq!(
            Address::of("https://api.openai.com/v1/threads/t/messages"),
            Address::Unknown
        );
        assert_eq!(Address::of("https://example.com/"), Address::Unknown);
        assert_eq!(Address::of(""), Address::Unknown);
    }
}
