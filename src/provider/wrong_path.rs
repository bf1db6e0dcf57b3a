//! Paths of URLs that a server does not answer, although they end like an endpoint.

use super::Server;
use super::url::UrlParts;
use crate::diag::Severity;
use crate::text::cut;

/// A mistake in the path of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrongPath {
    /// The path contains these segments twice in a row.
    Twice {
        /// The segments.
        part: String,
        /// The end of the path as it should be, from these segments on. What is before them may
        /// contain a key.
        right: String,
        /// `true` if the host belongs to a known server. A gateway may have such a path.
        is_at_known_host: bool,
    },
    /// The path lacks the version, at a host that always requires it.
    NoVersion {
        /// The path.
        path: String,
        /// The version, which comes first in the path.
        version: &'static str,
    },
}

/// The hosts whose paths all begin with a version.
const VERSIONS: [(&str, &str); 2] = [("api.anthropic.com", "v1"), ("api.openai.com", "v1")];

/// Segments that occur only once in the path of an endpoint. Others may be names that users choose,
/// such as those of projects.
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
        let version = VERSIONS.iter().find(|(versioned, _)| *versioned == host);
        if let Some((at, length)) = repeated(&segments) {
            let (part, rest) = segments[at..].split_at(length);
            return Some(WrongPath::Twice {
                part: part.join("/"),
                right: format!("/{}", rest.join("/")),
                is_at_known_host: Server::by_host(host).is_some(),
            });
        }
        let (_, version) = version.filter(|(_, version)| !segments.contains(version))?;
        Some(WrongPath::NoVersion {
            path: format!("/{}", segments.join("/")),
            version,
        })
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> String {
        match self {
            WrongPath::Twice { part, .. } => {
                format!("the path of the URL contains `{}` twice", cut(part, 40))
            }
            WrongPath::NoVersion { path, version } => {
                format!("the path `{}` lacks the version `{version}`", cut(path, 60))
            }
        }
    }

    /// Returns the advice.
    pub(crate) fn help(&self) -> String {
        let right = match self {
            WrongPath::Twice { right, .. } => format!("a path that ends with `{}`", cut(right, 80)),
            WrongPath::NoVersion { path, version } => format!("`/{version}{}`", cut(path, 80)),
        };
        format!(
            "send the request to {right}; the client probably adds part of the path to its base URL"
        )
    }

    /// Returns the severity.
    pub(crate) fn severity(&self) -> Severity {
        match self {
            WrongPath::Twice {
                is_at_known_host: false,
                ..
            } => Severity::Warning,
            WrongPath::Twice { .. } | WrongPath::NoVersion { .. } => Severity::Error,
        }
    }
}

/// Returns the index and the length of the longest run of segments that is followed by itself.
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
    fn names_may_occur_twice() {
        assert_eq!(told("https://gateway.example/team/team/v1/messages"), None);
        assert_eq!(
            told("https://api.openai.com/v1/responses/input_tokens"),
            None
        );
        assert_eq!(told("/v1/chat/completions"), None);
    }
}
