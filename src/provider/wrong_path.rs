//! URL paths that end like an endpoint's, but that the server does not have.

use super::Server;
use super::url::UrlParts;
use crate::diag::{Severity, is_misspelling};
use crate::text::cut;

/// A mistake in the path of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrongPath {
    /// The path contains these segments twice in a row.
    Twice {
        /// The repeated segments.
        part: String,
        /// The correct end of the path, from these segments on. The beginning is left out, because
        /// it may contain a key.
        right: String,
        /// `true` if the host belongs to a known server. For other hosts, such as gateways, the
        /// path may be valid.
        is_at_known_host: bool,
    },
    /// The host has the endpoint, but at a different path.
    Elsewhere {
        /// The wrong path.
        path: String,
        /// The path of the endpoint.
        right: String,
        host: String,
    },
}

/// The hosts' endpoint paths. Other paths with the same endings do not exist on these hosts.
/// Sources: the providers' API references, which are listed in docs/wire.
const ENDPOINTS: [(&str, &[&str]); 9] = [
    ("api.anthropic.com", &["/v1/messages"]),
    (
        "api.openai.com",
        &["/v1/chat/completions", "/v1/responses", "/v1/completions"],
    ),
    ("api.mistral.ai", MISTRAL),
    ("codestral.mistral.ai", MISTRAL),
    (
        "api.x.ai",
        &["/v1/chat/completions", "/v1/responses", "/v1/messages"],
    ),
    (
        "api.groq.com",
        &["/openai/v1/chat/completions", "/openai/v1/responses"],
    ),
    (
        "openrouter.ai",
        &[
            "/api/v1/chat/completions",
            "/api/v1/responses",
            "/api/v1/messages",
            "/api/v1/completions",
            "/api/alpha/responses",
        ],
    ),
    (
        "api.deepseek.com",
        &[
            "/chat/completions",
            "/v1/chat/completions",
            "/beta/chat/completions",
            "/beta/completions",
            "/anthropic/v1/messages",
        ],
    ),
    ("localhost:11434", &["/api/chat", "/api/generate"]),
];

const MISTRAL: &[&str] = &[
    "/v1/chat/completions",
    "/v1/fim/completions",
    "/v1/agents/completions",
];

/// The host of Gemini's API, the versions of its paths, and the collections of its models.
const GEMINI: &str = "generativelanguage.googleapis.com";
const GEMINI_VERSIONS: [&str; 3] = ["v1beta", "v1", "v1alpha"];
const GEMINI_COLLECTIONS: [&str; 2] = ["models", "tunedModels"];

/// Segments that occur only once in the path of an endpoint. Other segments may be names that users
/// choose, such as project names.
const ONCE: [&str; 10] = [
    "api",
    "chat",
    "completions",
    "generate",
    "messages",
    "models",
    "openai",
    "responses",
    "v1",
    "v1beta",
];

/// Parts of paths that end like an endpoint but are correct: threads of OpenAI's assistants, and
/// OpenRouter's presets (`/api/v1/presets/NAME/chat/completions`).
const OTHER: [&str; 2] = ["/threads/", "/presets/"];

impl WrongPath {
    /// Returns the mistake in the URL of a request to an endpoint; `None` if there is none.
    pub(crate) fn of(url: &str) -> Option<WrongPath> {
        let parts = UrlParts::of(url);
        let host = if url.contains("://") {
            parts.host()
        } else {
            ""
        };
        let segments: Vec<&str> = parts
            .path()
            .split('/')
            .filter(|it| !it.is_empty())
            .collect();
        if let Some((at, length)) = repeated(&segments) {
            let (part, rest) = segments[at..].split_at(length);
            return Some(WrongPath::Twice {
                part: part.join("/"),
                right: format!("/{}", rest.join("/")),
                is_at_known_host: Server::by_host(host).is_some(),
            });
        }
        let right = if host == GEMINI {
            gemini(&segments)?
        } else {
            let port = parts.port().map(|port| format!(":{port}"));
            let host = format!("{host}{}", port.unwrap_or_default());
            elsewhere(&host, &segments)?.to_owned()
        };
        Some(WrongPath::Elsewhere {
            path: format!("/{}", segments.join("/")),
            right,
            host: host.to_owned(),
        })
    }

    /// Returns the correct path or, for repeated segments, only its end.
    pub(crate) fn right(&self) -> &str {
        match self {
            WrongPath::Twice { right, .. } | WrongPath::Elsewhere { right, .. } => right,
        }
    }

    /// Returns the URL of the endpoint; `None` if only the end of its path is known.
    pub(crate) fn right_url(&self) -> Option<String> {
        match self {
            WrongPath::Elsewhere { right, host, .. } => Some(format!("https://{host}{right}")),
            WrongPath::Twice { .. } => None,
        }
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> String {
        match self {
            WrongPath::Twice { part, .. } => {
                format!("the path of the URL contains `{}` twice", cut(part, 40))
            }
            WrongPath::Elsewhere { path, right, host } => {
                let before = right.strip_suffix(path.as_str());
                let path = cut(path, 60);
                match before.map(|it| it.trim_start_matches('/')) {
                    Some(version @ ("v1" | "v1beta")) => {
                        format!("the path `{path}` lacks the version `{version}`")
                    }
                    _ => format!("{host} has no path `{path}`"),
                }
            }
        }
    }

    /// Returns the advice.
    pub(crate) fn help(&self) -> String {
        match self {
            WrongPath::Twice { right, .. } => format!(
                "send the request to a path that ends with `{}`; the client probably adds part of the path to its base URL",
                cut(right, 80)
            ),
            WrongPath::Elsewhere { right, .. } => format!(
                "send the request to `{}`; check the base URL of the client",
                cut(right, 80)
            ),
        }
    }

    /// Returns the severity.
    pub(crate) fn severity(&self) -> Severity {
        match self {
            WrongPath::Twice {
                is_at_known_host: false,
                ..
            } => Severity::Warning,
            WrongPath::Twice { .. } | WrongPath::Elsewhere { .. } => Severity::Error,
        }
    }
}

/// Returns the endpoint path that was probably meant by a different path at this host; `None` if
/// the given path is correct, or does not resemble an endpoint.
fn elsewhere(host: &str, segments: &[&str]) -> Option<&'static str> {
    let (_, endpoints) = ENDPOINTS.iter().find(|(known, _)| *known == host)?;
    let path = format!("/{}", segments.join("/"));
    if endpoints.contains(&path.as_str()) {
        return None;
    }
    let mut endpoints = endpoints.iter().copied();
    endpoints.find(|endpoint| {
        let name = without_version(endpoint);
        let depth = name.matches('/').count();
        let end = &segments[segments.len().saturating_sub(depth)..];
        let last = format!("/{}", end.join("/"));
        is_misspelling(&last, name) && !OTHER.iter().any(|part| path.contains(part))
    })
}

/// Returns the end of a path after its version: `/chat/completions`.
fn without_version(path: &str) -> &str {
    let start = ["/v1/", "/alpha/", "/beta/", "/api/"]
        .iter()
        .find_map(|version| path.find(version).map(|at| at + version.len() - 1));
    &path[start.unwrap_or_default()..]
}

/// Returns the path of the Gemini endpoint that a path refers to; `None` if the path is correct, or
/// does not resemble an endpoint.
fn gemini(segments: &[&str]) -> Option<String> {
    let [before @ .., last] = segments else {
        return None;
    };
    let (_, action) = last.rsplit_once(':')?;
    let is_endpoint = ["generateContent", "streamGenerateContent"].contains(&action);
    let is_right = matches!(before, [version, collection]
        if GEMINI_VERSIONS.contains(version) && GEMINI_COLLECTIONS.contains(collection));
    let version = before.iter().find(|it| GEMINI_VERSIONS.contains(it));
    (is_endpoint && !is_right).then(|| {
        let version = version.copied().unwrap_or(GEMINI_VERSIONS[0]);
        format!("/{version}/{}/{last}", GEMINI_COLLECTIONS[0])
    })
}

/// Returns the index and the length of the longest run of segments that is immediately repeated.
fn repeated(segments: &[&str]) -> Option<(usize, usize)> {
    let longest = segments.len() / 2;
    let runs = (1..=longest).rev().flat_map(|length| {
        let last = segments.len() - 2 * length;
        (0..=last).map(move |at| (at, length))
    });
    let mut repeated = runs.filter(|&(at, length)| {
        let (run, next) = segments[at..at + 2 * length].split_at(length);
        run == next && run.iter().all(|segment| ONCE.contains(segment))
    });
    repeated.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(url: &str) -> Option<(Severity, String, String)> {
        let wrong = WrongPath::of(url)?;
        Some((wrong.severity(), wrong.message(), wrong.help()))
    }

    #[test]
    fn a_part_of_a_path_occurs_twice() {
        let twice = told("https://api.anthropic.com/v1/v1/messages?beta=true").expect("a mistake");
        assert_eq!(twice.0, Severity::Error);
        assert_eq!(twice.1, "the path of the URL contains `v1` twice");
        assert!(twice.2.contains("`/v1/messages`"), "{}", twice.2);
        let whole = told("http://localhost:8000/v1/chat/completions/chat/completions");
        let whole = whole.expect("a mistake");
        assert_eq!(whole.0, Severity::Warning);
        assert!(whole.1.contains("`chat/completions` twice"), "{}", whole.1);
        assert!(whole.2.contains("`/chat/completions`"), "{}", whole.2);
        let models = "https://generativelanguage.googleapis.com/v1beta/models/models/gemini-3-pro:generateContent";
        assert!(told(models).is_some());
    }

    #[test]
    fn a_version_is_missing() {
        let (level, message, help) = told("https://api.openai.com/chat/completions").expect("one");
        assert_eq!(level, Severity::Error);
        assert!(message.contains("lacks the version `v1`"), "{message}");
        assert!(help.contains("`/v1/chat/completions`"), "{help}");
        assert_eq!(told("https://api.deepseek.com/chat/completions"), None);
        assert_eq!(told("/chat/completions"), None);
    }

    #[test]
    fn a_host_has_the_endpoint_at_another_path() {
        for (url, right) in [
            ("https://api.anthropic.com/v2/messages", "/v1/messages"),
            (
                "https://api.anthropic.com/anthropic/v1/mesages",
                "/v1/messages",
            ),
            (
                "https://api.groq.com/v1/chat/completions",
                "/openai/v1/chat/completions",
            ),
            (
                "https://openrouter.ai/v1/chat/completion",
                "/api/v1/chat/completions",
            ),
            ("http://localhost:11434/chat", "/api/chat"),
            (
                "https://generativelanguage.googleapis.com/v1beta/model/gemini-3-pro:generateContent",
                "/v1beta/models/gemini-3-pro:generateContent",
            ),
        ] {
            let (level, message, help) = told(url).expect(url);
            assert_eq!(level, Severity::Error);
            assert!(message.contains("has no path"), "{message}");
            assert!(help.contains(&format!("`{right}`")), "{help}");
        }
        for url in [
            "https://api.anthropic.com/v1/messages/batches",
            "https://api.openai.com/v1/threads/a/messages",
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "https://api.openai.com/v1/embeddings",
            "http://localhost:11434/v1/chat/completions",
        ] {
            assert_eq!(told(url), None, "{url}");
        }
    }

    #[test]
    fn names_may_occur_twice() {
        assert_eq!(told("https://gateway.example/team/team/v1/messages"), None);
        assert_eq!(
            told("https://api.openai.com/v1/responses/input_tokens"),
            None
        );
        assert_eq!(told("/v1/chat/completions"), None);
    }
}
