//! `protocol/beta-header`: beta features in a header that the endpoint does not recognise.

use super::{Found, Subject, body_rule};
use crate::diag::Severity;
use crate::provider::{Server, Site};

body_rule! {
    Error "protocol/beta-header", "a header requests a beta feature that the endpoint does not recognise",
    "Anthropic and Vertex AI reject a request whose `anthropic-beta` header contains a name that they do not recognise: *Unexpected \
     value(s) … for the `anthropic-beta` header*. Anthropic recognises the names of all features, and those of features that have left \
     beta. Which names Vertex AI recognises depends on the endpoint, the model and the date:\n\n\
     * the token-counting endpoint rejects the web search and tool search features, which other endpoints accept\n\
     * according to reports, Vertex AI rejects some features that Claude Code requests (a warning if there is only one report)\n\n\
     * wrong: `anthropic-beta: web-search-2025-03-05` in a request to `count-tokens:rawPredict`\n\
     * right: no such header",
    of AnthropicMessages;
    seen "2026-11" {
        "BerriAI/litellm#39597": "the token-counting endpoint rejects web search and tool search, other endpoints accept them, measured",
        "anthropics/claude-code#12429": "the token-counting endpoint rejects web search",
        "QuantumNous/new-api#2975": "Vertex AI rejects `prompt-caching-scope` and `structured-outputs`",
        "Wei-Shaw/sub2api#3358": "Vertex AI rejects `prompt-caching-scope`, `redact-thinking` and others",
        "anthropics/claude-code#11672": "Vertex AI rejects `tool-examples`",
        "anthropics/claude-agent-sdk-typescript#307": "Vertex AI rejects `effort`",
        "anthropics/claude-code#34802": "Vertex AI rejects `adaptive-thinking`",
    }
}

/// The features that Vertex AI's token-counting endpoint was observed to reject.
const NOT_TO_COUNT: [&str; 2] = ["web-search-2025-03-05", "tool-search-tool-2025-10-19"];

/// The features that Vertex AI was observed to reject, each with the severity that the evidence
/// justifies.
const NOT_AT_VERTEX: [(&str, Severity); 8] = [
    ("prompt-caching-scope-2026-01-05", Severity::Error),
    ("redact-thinking-2026-02-12", Severity::Warning),
    ("structured-outputs-2025-12-15", Severity::Warning),
    ("advisor-tool-2026-03-01", Severity::Warning),
    ("thinking-token-count-2026-05-13", Severity::Warning),
    ("tool-examples-2025-10-29", Severity::Warning),
    ("adaptive-thinking-2026-01-28", Severity::Warning),
    ("effort-2025-11-24", Severity::Warning),
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server != Server::Vertex {
        return;
    }
    for name in subject.headers.betas.iter().flatten() {
        let is_count = subject.headers.is_at(Site::VertexTokenCount);
        let (who, level) = if is_count && NOT_TO_COUNT.contains(&name.as_str()) {
            ("Vertex AI's token-counting endpoint", Severity::Error)
        } else if let Some((_, level)) = NOT_AT_VERTEX.iter().find(|(known, _)| known == name) {
            ("Vertex AI", *level)
        } else {
            continue;
        };
        found
            .at_top(format!("{who} rejects the beta feature `{name}`"))
            .level(level)
            .help("leave it out of the `anthropic-beta` header");
    }
}
