//! The knowledge that a URL gives of the body that is sent to it.

use crate::provider::{Server, UrlParts, WireFormat};

/// Where a body was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The wire format that the path takes.
    pub wire: WireFormat,
    /// The host, without a port; empty if the URL is a path alone.
    pub host: String,
    /// The server of the host, if it is a public one.
    pub server: Option<Server>,
    /// The model, if the path names it.
    pub model: Option<String>,
}

/// The kind of address that a URL is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Address {
    /// An endpoint of a wire format.
    Known(Endpoint),
    /// An endpoint that takes something else: embeddings, files, counting.
    Other,
    /// No URL, or one that says nothing.
    #[default]
    Unknown,
}

/// How the paths of other endpoints of the same servers end.
const OTHERS: [&str; 19] = [
    "/completions",
    "/embeddings",
    "/moderations",
    "/count_tokens",
    "/input_tokens",
    ":countTokens",
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

impl Address {
    pub(super) fn of(url: &str) -> Address {
        let parts = UrlParts::of(url);
        let path = parts.path().trim_end_matches('/');
        let host = if url.contains("://") {
            parts.host()
        } else {
            ""
        };
        let server = Server::by_host(host);
        let Some(wire) = wire_of(path, server) else {
            return if OTHERS.iter().any(|end| path.ends_with(end)) {
                Address::Other
            } else {
                Address::Unknown
            };
        };
        Address::Known(Endpoint {
            wire,
            host: host.to_owned(),
            server,
            model: model(path).map(str::to_owned),
        })
    }
}

/// Returns the wire format that a server takes at a path. Messages of an assistant's thread are no
/// requests to a model.
fn wire_of(path: &str, server: Option<Server>) -> Option<WireFormat> {
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

/// The model that a path names: `models/NAME:generateContent` at Google,
/// `deployments/NAME/chat/completions` at Azure.
fn model(path: &str) -> Option<&str> {
    let name = match path.rsplit_once("/deployments/") {
        Some((_, rest)) => rest.split('/').next(),
        None => path
            .rsplit_once("/models/")
            .and_then(|(_, rest)| rest.split(':').next()),
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
    fn other_endpoints_and_unknown_ones() {
        assert_eq!(Address::of("/v1/embeddings"), Address::Other);
        assert_eq!(
            Address::of("https://api.anthropic.com/v1/messages/count_tokens"),
            Address::Other
        );
        assert_eq!(
            Address::of("https://api.openai.com/v1/threads/t/messages"),
            Address::Unknown
        );
        assert_eq!(Address::of("https://example.com/"), Address::Unknown);
        assert_eq!(Address::of(""), Address::Unknown);
    }
}
