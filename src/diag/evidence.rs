//! The evidence for a rule: sources of facts about providers, and their ranks.
//!
//! Sources are written as addresses, and only [`rank`] ranks them. Rules list their sources as
//! [`Evidence`]. [`citations`] finds addresses in other text, such as the `source` of a model
//! family.

use std::fmt;

/// The rank of a source, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// A recorded request that the provider actually answered.
    Recorded,
    /// A publication by the provider: a page, a specification, an SDK, or the server's source code.
    Provider,
    /// A third party's report: an issue, a pull request, or a forum.
    Thread,
    /// Anything else, such as a web page or a different project's code. It carries as much weight
    /// as a thread.
    Other,
}

impl Rank {
    /// All ranks, strongest first.
    pub const ALL: [Rank; 4] = [Rank::Recorded, Rank::Provider, Rank::Thread, Rank::Other];

    /// Returns the rank's name in pages and documents.
    pub fn name(self) -> &'static str {
        match self {
            Rank::Recorded => "recorded",
            Rank::Provider => "provider",
            Rank::Thread => "thread",
            Rank::Other => "other",
        }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A source that supports a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// An address in a form that [`rank`] accepts.
    pub source: &'static str,
    /// The fact that the source shows, as a phrase.
    pub shows: &'static str,
    /// The month in which the source was read, for example `2026-11`.
    pub seen: &'static str,
}

impl Evidence {
    /// Creates an entry for a rule's declaration.
    pub(crate) const fn new(
        source: &'static str,
        shows: &'static str,
        seen: &'static str,
    ) -> Evidence {
        Evidence {
            source,
            shows,
            seen,
        }
    }

    /// Returns the rank of the source.
    pub fn rank(&self) -> Rank {
        rank(self.source)
    }
}

/// Writes one line of Markdown: the rank, the source, the fact, and the month.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence {
            source,
            shows,
            seen,
        } = self;
        match source.strip_prefix(RECORDED) {
            Some(recording) => write!(f, "recorded: {}", recording.trim())?,
            None if source.contains("://") => write!(f, "{}: <{source}>", self.rank())?,
            None if source.starts_with(PACKAGE) => write!(f, "{}: `{source}`", self.rank())?,
            None => write!(f, "{}: {source}", self.rank())?,
        }
        write!(f, ": {shows} (seen {seen})")
    }
}

/// An address that occurs in a string, and its rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Citation {
    /// The rank of the address.
    pub rank: Rank,
    /// The address, in a form that [`rank`] accepts.
    pub address: String,
}

/// The prefix of a recording's address. It is followed by the project and its cassette.
const RECORDED: &str = "recorded:";

/// The prefix of a package URL (<https://github.com/package-url/purl-spec>).
const PACKAGE: &str = "pkg:";

/// Domains whose pages are written by a provider, or by the project that a rule is about.
const PROVIDER_DOMAINS: [&str; 37] = [
    "ai.google.dev",
    "alibabacloud.com",
    "aliyun.com",
    "anthropic.com",
    "anthropic.mintlify.app",
    "api-docs.deepseek.com",
    "cerebras.ai",
    "claude.com",
    "cloud.google.com",
    "cohere.com",
    "console.groq.com",
    "deepseek.com",
    "developers.cloudflare.com",
    "docs.aws.amazon.com",
    "docs.vllm.ai",
    "docs.x.ai",
    "fireworks.ai",
    "groq.com",
    "learn.microsoft.com",
    "lmstudio.ai",
    "mistral.ai",
    "moonshot.ai",
    "moonshot.cn",
    "ollama.com",
    "openai.com",
    "openrouter.ai",
    "perplexity.ai",
    "kimi.ai",
    "kimi.com",
    "sglang.ai",
    "together.ai",
    "volcengine.com",
    "x.ai",
    "xiaomimimo.com",
    "z.ai",
    "bigmodel.cn",
    "minimax.io",
];

/// The first labels of forums' host names. Users write these pages, no matter who owns the domain.
const FORUMS: [&str; 5] = ["community", "discuss", "forum", "forums", "repost"];

/// GitHub owners that publish a provider's SDK, specification, or server, or a project that a rule
/// is about.
const PROVIDER_OWNERS: [&str; 39] = [
    "anthropics",
    "ascend",
    "aws",
    "azure",
    "blaizzy",
    "deepjavalibrary",
    "deepseek-ai",
    "docker",
    "envoyproxy",
    "ericlbuehler",
    "ggml-org",
    "google-gemini",
    "googleapis",
    "groq",
    "internlm",
    "llamastack",
    "lmstudio-ai",
    "microsoftdocs",
    "minimax-ai",
    "mistralai",
    "ml-explore",
    "mlc-ai",
    "moonshotai",
    "ollama",
    "oobabooga",
    "openai",
    "openrouterteam",
    "openvinotoolkit",
    "palm1r",
    "pantor",
    "qwenlm",
    "raullenchai",
    "sgl-project",
    "theroyallab",
    "veniceai",
    "vllm-project",
    "waybarrios",
    "xai-org",
    "zai-org",
];

/// Packages published by a provider, each as the `type/name` part of its package URL.
const PROVIDER_PACKAGES: [&str; 15] = [
    "npm/@anthropic-ai/sdk",
    "npm/@google/genai",
    "npm/@mistralai/mistralai",
    "npm/openai",
    "pypi/anthropic",
    "pypi/dashscope",
    "pypi/google-genai",
    "pypi/groq",
    "pypi/lmdeploy",
    "pypi/mistral-common",
    "pypi/mistralai",
    "pypi/mlx-lm",
    "pypi/ollama",
    "pypi/openai",
    "pypi/sglang",
];

/// Sections of a GitHub repository whose pages are written by users.
const TALK: [&str; 4] = ["issues", "pull", "pulls", "discussions"];

/// Returns the rank of an address: `recorded: PROJECT, CASSETTE`, `https://…`, a package URL
/// (`pkg:pypi/openai@3.54`), or `OWNER/REPOSITORY#NUMBER`. Any other text has the weakest rank.
pub fn rank(address: &str) -> Rank {
    let address = address.trim();
    if address.starts_with(RECORDED) {
        return Rank::Recorded;
    }
    let is_provider = match address.strip_prefix(PACKAGE) {
        Some(package) => is_of_provider(package),
        None => address
            .split_once("://")
            .is_some_and(|(_, rest)| is_page_of_provider(rest)),
    };
    match () {
        () if is_provider => Rank::Provider,
        () if is_thread(address) => Rank::Thread,
        () => Rank::Other,
    }
}

/// Returns `true` for the address of an issue, a pull request, a discussion, or a forum page.
fn is_thread(address: &str) -> bool {
    match address.split_once("://") {
        Some((_, rest)) => {
            let mut parts = rest.split(['/', '?', '#']);
            let label = parts.next().and_then(|host| host.split('.').next());
            label.is_some_and(|label| FORUMS.contains(&label))
                || parts.any(|part| TALK.contains(&part))
        }
        None => address
            .split_once('#')
            .is_some_and(|(name, number)| is_repository(name) && is_number(number)),
    }
}

/// Returns `true` if a package URL (without its scheme) refers to a provider's package.
fn is_of_provider(package: &str) -> bool {
    let end = package.find(['@', '#', '?']).filter(|at| *at > 0);
    let scoped = package.find("/@").map(|at| at + 2);
    let end = match scoped {
        Some(begin) => package[begin..].find(['@', '#', '?']).map(|at| begin + at),
        None => end,
    };
    let name = package[..end.unwrap_or(package.len())].to_lowercase();
    match name
        .strip_prefix("github/")
        .and_then(|path| path.split('/').next())
    {
        Some(owner) => PROVIDER_OWNERS.contains(&owner),
        None => PROVIDER_PACKAGES.contains(&name.as_str()),
    }
}

/// Returns `true` if a web address (without its scheme) is a provider's own page.
fn is_page_of_provider(rest: &str) -> bool {
    let rest = rest.to_lowercase();
    let mut parts = rest.split(['/', '?', '#']);
    let host = parts.next().unwrap_or_default();
    if matches!(
        host,
        "github.com" | "www.github.com" | "raw.githubusercontent.com"
    ) {
        let owner = parts.next().unwrap_or_default();
        return PROVIDER_OWNERS.contains(&owner)
            && !parts.nth(1).is_some_and(|page| TALK.contains(&page));
    }
    let is_forum = host
        .split('.')
        .next()
        .is_some_and(|label| FORUMS.contains(&label));
    !is_forum
        && PROVIDER_DOMAINS
            .iter()
            .any(|domain| is_within(host, domain))
}

/// Returns `true` if the host is the domain or one of its subdomains.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns the addresses in a string, strongest first and without duplicates.
/// `OWNER/REPOSITORY#1, #2` contains two threads.
pub fn citations(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for part in text.split(';') {
        match part.trim() {
            recorded if recorded.starts_with(RECORDED) => found.push(Citation::of(recorded)),
            part => addresses(part, &mut found),
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Adds the addresses found in a part of a string.
fn addresses(part: &str, found: &mut Vec<Citation>) {
    let mut repository = None;
    for word in part.split(|c: char| c.is_whitespace() || "()<>,".contains(c)) {
        let word = word.trim_matches(|c: char| "[]{}'\"`*.:".contains(c));
        if word.contains("://") || word.starts_with(PACKAGE) {
            found.push(Citation::of(word));
        } else if let Some((name, number)) =
            word.split_once('#').filter(|(_, number)| is_number(number))
        {
            let of = if name.is_empty() {
                repository
            } else {
                Some(name).filter(|name| is_repository(name))
            };
            repository = of.or(repository);
            found.extend(of.map(|name| Citation::of(&format!("{name}#{number}"))));
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `true` if a string is `OWNER/REPOSITORY`.
fn is_repository(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

impl Citation {
    fn of(address: &str) -> Citation {
        Citation {
            rank: rank(address),
            address: address.to_owned(),
        }
    }
}

/// Returns `true` if sources of these ranks, all independent, justify an error: one recording, one
/// publication by the provider, or two other sources that agree.
pub fn carry_an_error(ranks: impl IntoIterator<Item = Rank>) -> bool {
    let mut threads = 0;
    for rank in ranks {
        match rank {
            Rank::Recorded | Rank::Provider => return true,
            Rank::Thread | Rank::Other => threads += 1,
        }
    }
    threads >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_rank_of_who_wrote_it() {
        for (address, expected) in [
            (
                "recorded: pydantic-ai, test_openai/test_stop.yaml",
                Rank::Recorded,
            ),
            (
                "https://platform.claude.com/docs/en/build-with-claude/effort",
                Rank::Provider,
            ),
            (
                "https://ai.google.dev/gemini-api/docs/thinking?hl=ja",
                Rank::Provider,
            ),
            ("https://github.com/openai/openai-openapi", Rank::Provider),
            (
                "https://github.com/openai/openai-python/blob/main/README.md",
                Rank::Provider,
            ),
            (
                "https://github.com/openai/openai-python/issues/2194",
                Rank::Thread,
            ),
            ("https://community.openai.com/t/1", Rank::Thread),
            ("https://notopenai.com/docs", Rank::Other),
            ("https://dev.to/somebody/post", Rank::Other),
            (
                "pkg:pypi/anthropic@2.12#types/tool_param.py",
                Rank::Provider,
            ),
            ("pkg:npm/@google/genai@2.0", Rank::Provider),
            ("pkg:npm/@ai-sdk/google@4.0", Rank::Other),
            (
                "pkg:github/ollama/ollama@fb30760#server/routes.go",
                Rank::Provider,
            ),
            ("pkg:github/vercel/ai", Rank::Other),
            ("ollama/ollama#1", Rank::Thread),
            ("a word", Rank::Other),
        ] {
            assert_eq!(rank(address), expected, "{address}");
        }
    }

    #[test]
    fn texts_are_searched_for_addresses() {
        let text = "refused: a/b#1, #2 (2026-03), see <https://docs.x.ai/docs>; recorded: p, a.yaml; a/b#1 and c/d.e#7: \"x #9\"";
        let found = citations(text);
        let found: Vec<&str> = found.iter().map(|it| it.address.as_str()).collect();
        assert_eq!(
            found,
            [
                "recorded: p, a.yaml",
                "https://docs.x.ai/docs",
                "a/b#1",
                "a/b#2",
                "c/d.e#7",
                "c/d.e#9"
            ]
        );
        assert!(citations("near what the rules refuse, 3.4/2 #x").is_empty());
    }

    #[test]
    fn one_thread_carries_no_error() {
        assert!(!carry_an_error([]));
        assert!(!carry_an_error([Rank::Thread]));
        assert!(carry_an_error([Rank::Thread, Rank::Other]));
        assert!(carry_an_error([Rank::Provider]));
        assert!(carry_an_error([Rank::Recorded]));
    }
}
