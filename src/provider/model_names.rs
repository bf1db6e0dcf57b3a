//! Model names that a vendor's own API does not serve.
//!
//! Gateways and servers for open models serve names that cannot be listed here. A vendor's own API
//! serves only the vendor's models, by their plain names.

use super::retired::Retirement;
use super::server::is_openai_model;
use super::spelling::{KnownModels, misplaced, misspelt};
use super::{Server, rules};
use crate::diag::{Rule, Severity, is_misspelling};
use crate::repo::normal_name;
use crate::text::cut;

/// A name that a vendor's own API does not recognise.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnservedModel {
    /// A model from another vendor.
    OfAnother(Server),
    /// A gateway's or a cloud's name for a model; contains the vendor's own name.
    OfGateway(String),
    /// A name whose version is written with dots; contains the correct spelling.
    Dotted(String),
    /// Probably a misspelling; contains the intended name.
    Misspelt(String),
    /// A model that the vendor has shut down, or for which it has announced a date.
    Retired(&'static Retirement),
}

impl UnservedModel {
    /// Returns the message about a model that a server does not serve.
    pub(crate) fn message(&self, model: &str, server: Server) -> String {
        let (maker, written) = (server.name(), cut(model, 60));
        match self {
            UnservedModel::OfAnother(other) => format!(
                "`{written}` is one of {}'s models, which {maker}'s own API does not serve",
                other.name()
            ),
            UnservedModel::OfGateway(_) => format!(
                "`{written}` is the name that a gateway or a cloud uses for the model; {maker}'s own API accepts only the plain name"
            ),
            UnservedModel::Dotted(_) => {
                format!(
                    "`{written}` is not one of {maker}'s models: {maker} writes this version with `-`"
                )
            }
            UnservedModel::Misspelt(_) => {
                format!("`{written}` is probably not one of {maker}'s models")
            }
            UnservedModel::Retired(it) => {
                format!("{maker}'s shutdown date for `{written}` is {}", it.on)
            }
        }
    }

    /// Returns the advice on how to fix the name. `otherwise` is the advice for a correct model
    /// with the wrong server; it follows *choose one of …'s models, or*.
    pub(crate) fn help(&self, server: Server, otherwise: &str) -> String {
        match self {
            UnservedModel::OfAnother(_) => {
                format!("choose one of {}'s models, or {otherwise}", server.name())
            }
            UnservedModel::OfGateway(plain) | UnservedModel::Dotted(plain) => {
                format!("write `{}`", cut(plain, 60))
            }
            UnservedModel::Misspelt(known) => format!("did you mean `{}`?", cut(known, 60)),
            UnservedModel::Retired(it) => format!(
                "from that day, requests fail or go to another model; {} recommends `{}`",
                server.name(),
                it.instead
            ),
        }
    }

    /// Returns the rule that reports the model.
    pub(crate) fn rule(&self) -> &'static Rule {
        match self {
            UnservedModel::Retired(_) => &rules::RETIRED_MODEL,
            UnservedModel::OfAnother(_)
            | UnservedModel::OfGateway(_)
            | UnservedModel::Dotted(_)
            | UnservedModel::Misspelt(_) => &rules::UNSERVED_MODEL,
        }
    }

    /// Returns the severity for a server.
    pub(crate) fn severity(&self, server: Server) -> Severity {
        // For Mistral, a single thread is the only evidence of such rejections.
        let is_uncertain = matches!(self, UnservedModel::Misspelt(_) | UnservedModel::Retired(_));
        match is_uncertain || server == Server::Mistral {
            true => Severity::Warning,
            false => Severity::Error,
        }
    }
}

/// The usual prefixes of each vendor's model names. For OpenAI, see [`is_openai_model`].
const BEGINNINGS: [(Server, &[&str]); 9] = [
    (Server::Anthropic, &["claude-"]),
    (Server::Google, &["gemini-", "gemma-"]),
    (
        Server::Mistral,
        &[
            "mistral-",
            "open-mistral-",
            "mixtral-",
            "open-mixtral-",
            "codestral-",
            "ministral-",
            "magistral-",
            "devstral-",
            "pixtral-",
        ],
    ),
    (Server::DeepSeek, &["deepseek-"]),
    (Server::Qwen, &["qwen"]),
    (Server::XAi, &["grok-"]),
    (Server::Moonshot, &["kimi-", "moonshot-", "k3-"]),
    (Server::ZAi, &["glm-"]),
    (Server::MiniMax, &["minimax-"]),
];

/// Model names that have none of the usual prefixes.
const WHOLE: [(Server, &str); 1] = [(Server::Moonshot, "k3")];

/// Vendors' accounts in the model names that gateways and clouds use.
const ACCOUNTS: [(Server, &[&str]); 4] = [
    (
        Server::Anthropic,
        &[
            "publishers/anthropic/models/",
            "anthropic/",
            "anthropic.",
            "anthropic:",
        ],
    ),
    (Server::OpenAi, &["openai/", "openai.", "openai:"]),
    (
        Server::Google,
        &["publishers/google/models/", "google/", "gemini/"],
    ),
    (
        Server::Mistral,
        &[
            "publishers/mistralai/models/",
            "mistralai/",
            "mistral/",
            "mistral.",
        ],
    ),
];

/// The prefixes of Claude models whose versions are written with dots.
const DOTTED: [&str; 3] = ["claude-1.", "claude-2.", "claude-instant-1."];

/// Returns the reason why a server does not serve a model.
pub(crate) fn unserved(
    server: Server,
    model: &str,
    models: &KnownModels<'_>,
) -> Option<UnservedModel> {
    let lower = model.trim().to_lowercase();
    let is_capitalised =
        server == Server::OpenAi && lower != model.trim() && is_openai_model(&lower);
    Retirement::of(server, &lower)
        .map(UnservedModel::Retired)
        .or_else(|| misnamed(server, &lower, models))
        .or_else(|| is_capitalised.then(|| UnservedModel::Misspelt(lower.clone())))
}

/// The servers whose model names are checked for misspellings only.
const SPELT: [Server; 7] = [
    Server::DeepSeek,
    Server::Groq,
    Server::Moonshot,
    Server::OpenRouter,
    Server::Qwen,
    Server::XAi,
    Server::ZAi,
];

/// Returns the mistake in a model name that is given in lower case. Only vendors that reject other
/// vendors' names are checked, because others may answer such requests with their own model.
fn misnamed(server: Server, lower: &str, models: &KnownModels<'_>) -> Option<UnservedModel> {
    if has_own_name(lower) {
        return None;
    }
    if SPELT.contains(&server) {
        let start = lower.rfind('/').map_or(0, |at| at + 1);
        let (account, plain) = lower.split_at(start);
        let spelt = spelling(server, plain, models);
        let meant = maker_of(plain).and_then(|maker| meant_account(account, maker));
        if spelt.is_none() && meant.is_none() {
            return None;
        }
        let (account, plain) = (meant.unwrap_or(account), spelt.as_deref().unwrap_or(plain));
        return Some(UnservedModel::Misspelt(format!("{account}{plain}")));
    }
    let (_, accounts) = ACCOUNTS.iter().find(|(maker, _)| *maker == server)?;
    let maker = maker_of(lower);
    if let Some(other) = maker.filter(|maker| *maker != server) {
        return Some(UnservedModel::OfAnother(other));
    }
    let of_account = accounts.iter().find_map(|it| after(lower, it));
    let plain = match of_account {
        Some(rest) => Some(plain_name(rest)),
        None if maker.is_some() => Some(plain_name(without_gateway(server, lower))),
        None => None,
    };
    if let Some(plain) = plain.filter(|plain| *plain != *lower && !plain.is_empty()) {
        let plain = served_spelling(server, &plain);
        let spelt = spelling(server, &plain, models);
        return Some(UnservedModel::OfGateway(spelt.unwrap_or(plain)));
    }
    let dashed = served_spelling(server, lower);
    if maker.is_some() && dashed != lower {
        let spelt = spelling(server, &dashed, models);
        return Some(UnservedModel::Dotted(spelt.unwrap_or(dashed)));
    }
    spelling(server, lower, models).map(UnservedModel::Misspelt)
}

/// Returns a name with the version in the vendor's spelling: Anthropic writes dashes.
fn served_spelling(server: Server, name: &str) -> String {
    let has_dashes =
        server == Server::Anthropic && !DOTTED.iter().any(|begin| name.starts_with(begin));
    match has_dashes {
        true => name.replace('.', "-"),
        false => name.to_owned(),
    }
}

/// The prefix of models that users train with OpenAI and Mistral; the base model follows it.
const TRAINED: &str = "ft:";

/// Returns `true` if users choose the last part of the name, as for models that they train and for
/// endpoints.
fn has_own_name(name: &str) -> bool {
    name.starts_with("tunedmodels/") || name.contains("/endpoints/")
}

/// Returns the rest of a name after an account. The account may follow a cloud's name (for
/// gateways), or a region or a project (for clouds).
fn after<'n>(name: &'n str, account: &str) -> Option<&'n str> {
    let (before, rest) = name.split_once(account)?;
    let is_account = before.is_empty() || before.ends_with(['.', '/']);
    (is_account && !rest.is_empty()).then_some(rest)
}

/// Returns a model name without its gateway prefix, such as `vertex_ai/`. Google's own names may
/// begin with `models/`.
fn without_gateway(server: Server, name: &str) -> &str {
    match name.rsplit_once('/') {
        Some(("models", _)) if server == Server::Google => name,
        Some((_, rest)) => rest,
        None => name,
    }
}

/// Converts a gateway's or cloud's name for a model to the vendor's own name. Removes the version
/// that Bedrock adds (`-v1:0`) and gateway variants (`:thinking`). Clouds put dates after an `@`.
/// Only models that users train have a `:` in their own name.
fn plain_name(name: &str) -> String {
    if name.starts_with(TRAINED) {
        return name.to_owned();
    }
    let name = name.split(':').next().unwrap_or(name);
    let (name, date) = name.split_once('@').unwrap_or((name, ""));
    let name = without_cloud_version(name);
    match !date.is_empty() && date.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{name}-{date}"),
        false => name.to_owned(),
    }
}

/// Removes the version that Bedrock adds to a name that has its own version: `-v1`.
fn without_cloud_version(name: &str) -> &str {
    match name.rsplit_once("-v") {
        Some((plain, version))
            if version.bytes().all(|b| b.is_ascii_digit())
                && plain.contains(|c: char| c.is_ascii_digit()) =>
        {
            plain
        }
        _ => name,
    }
}

/// Returns the vendor of a model, by the model's name in any spelling; `None` if it is unknown.
pub(crate) fn maker_of(model: &str) -> Option<Server> {
    let model = model.strip_prefix(TRAINED).unwrap_or(model);
    let name = normal_name(model);
    if is_openai_model(&name) || name.starts_with("gpt-") {
        return Some(Server::OpenAi);
    }
    let whole = WHOLE.iter().filter(|(_, whole)| name == *whole);
    let begun = BEGINNINGS
        .iter()
        .filter(|(_, beginnings)| beginnings.iter().any(|it| name.starts_with(it)));
    let makers = whole.map(|(maker, _)| *maker);
    makers.chain(begun.map(|(maker, _)| *maker)).next()
}

/// Returns the name that a vendor or a router serves, if a name is probably a misspelling of it.
fn spelling(server: Server, name: &str, models: &KnownModels<'_>) -> Option<String> {
    misspelt(name, models).or_else(|| {
        misplaced(name, models)
            .filter(|spelt| server == Server::OpenRouter || maker_of(spelt) == Some(server))
    })
}

/// Returns the vendor's account that a misspelled account is probably meant to be. Both end with a
/// slash.
fn meant_account(account: &str, maker: Server) -> Option<&'static str> {
    let (_, accounts) = ACCOUNTS.iter().find(|(known, _)| *known == maker)?;
    let is_plain = account
        .chars()
        .all(|character| character.is_ascii_alphabetic() || character == '/');
    if !is_plain || accounts.contains(&account) {
        return None;
    }
    accounts
        .iter()
        .copied()
        .find(|known| known.ends_with('/') && is_misspelling(account, known))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::repo::LoadOptions;
    use crate::system::Embedded;
    use crate::world::MemoryWorld;

    fn misnamed_at(server: Server) -> impl Fn(&str) -> Option<UnservedModel> {
        let loaded = crate::repo::load(
            Arc::new(MemoryWorld::default()),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let families = loaded.repo.families;
        move |model| {
            let models = KnownModels::new(&families);
            misnamed(server, &model.trim().to_lowercase(), &models)
        }
    }

    #[test]
    fn makers_do_not_serve_the_models_of_others() {
        let anthropic = misnamed_at(Server::Anthropic);
        assert_eq!(
            anthropic("gpt-5.1"),
            Some(UnservedModel::OfAnother(Server::OpenAi))
        );
        assert_eq!(
            anthropic("gemini-2.5-pro"),
            Some(UnservedModel::OfAnother(Server::Google))
        );
        let gateway = |name: &str| Some(UnservedModel::OfGateway(name.to_owned()));
        assert_eq!(
            anthropic("anthropic/claude-opus-4-5"),
            gateway("claude-opus-4-5")
        );
        assert_eq!(
            anthropic("us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
            gateway("claude-3-7-sonnet-20250219")
        );
        for (name, plain) in [
            (
                "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                "claude-sonnet-4-5-20250929",
            ),
            (
                "vertex_ai/claude-sonnet-4-5@20250929",
                "claude-sonnet-4-5-20250929",
            ),
            (
                "claude-3-5-sonnet-v2@20241022",
                "claude-3-5-sonnet-20241022",
            ),
            ("claude-opus-4@", "claude-opus-4"),
        ] {
            assert_eq!(anthropic(name), gateway(plain), "{name}");
            assert_eq!(anthropic(plain), None, "{plain}");
        }
        assert_eq!(
            anthropic("claude-sonnet-5.5"),
            Some(UnservedModel::Dotted("claude-sonnet-5-5".to_owned()))
        );
        let openai = misnamed_at(Server::OpenAi);
        assert_eq!(
            openai("openai/ft:gpt-4o-mini:acme::abc"),
            gateway("ft:gpt-4o-mini:acme::abc")
        );
        assert_eq!(openai("gpt-4o@"), gateway("gpt-4o"));
        for empty in ["openai/:x", "openai/@x", "openai/"] {
            assert_eq!(openai(empty), None, "{empty}");
        }
        assert_eq!(
            openai("Claude-Sonnet-5-5"),
            Some(UnservedModel::OfAnother(Server::Anthropic))
        );
        assert_eq!(openai("openai/gpt-5.1"), gateway("gpt-5.1"));
        let google = misnamed_at(Server::Google);
        assert_eq!(
            google("grok-4"),
            Some(UnservedModel::OfAnother(Server::XAi))
        );
    }

    #[test]
    fn names_of_gateways_and_clouds_lead_to_names_that_are_served() {
        let anthropic = misnamed_at(Server::Anthropic);
        for (name, plain) in [
            ("anthropic/claude-sonnet-5.5", "claude-sonnet-5-5"),
            ("anthropic/claude-sonet-5.5", "claude-sonnet-5-5"),
            ("claude-opus-4@20250514", "claude-opus-4-20250514"),
            ("anthropic/claude-3.7-sonnet:thinking", "claude-3-7-sonnet"),
            ("claude-3-7-sonnet:thinking", "claude-3-7-sonnet"),
            ("anthropic.claude-opus-4-5-v1", "claude-opus-4-5"),
            (
                "us.anthropic.claude-opus-4-20250514-v1:0",
                "claude-opus-4-20250514",
            ),
            (
                "publishers/anthropic/models/claude-opus-4@20250514",
                "claude-opus-4-20250514",
            ),
            ("anthropic/claude-2.1", "claude-2.1"),
        ] {
            assert_eq!(
                anthropic(name),
                Some(UnservedModel::OfGateway(plain.to_owned())),
                "{name}"
            );
            assert_eq!(anthropic(plain), None, "{plain}");
        }
        let google = misnamed_at(Server::Google);
        for name in [
            "google/gemini-2.5-pro:free",
            "publishers/google/models/gemini-2.5-pro",
            "projects/p/locations/l/publishers/google/models/gemini-2.5-pro",
        ] {
            assert_eq!(
                google(name),
                Some(UnservedModel::OfGateway("gemini-2.5-pro".to_owned())),
                "{name}"
            );
        }
        assert_eq!(
            anthropic("anthropic/gpt-5.1"),
            Some(UnservedModel::OfAnother(Server::OpenAi))
        );
        assert_eq!(
            google("us.anthropic.claude-opus-4-20250514-v1:0"),
            Some(UnservedModel::OfAnother(Server::Anthropic))
        );
        for name in ["tunedModels/gpt-like", "projects/p/locations/l/endpoints/1"] {
            assert_eq!(google(name), None, "{name}");
        }
    }

    #[test]
    fn makers_are_known_by_names_in_any_spelling() {
        for (name, maker) in [
            ("moonshotai/Kimi-K2.5", Some(Server::Moonshot)),
            ("moonshot-v1-8k", Some(Server::Moonshot)),
            ("k3", Some(Server::Moonshot)),
            ("moonshotai/k3:free", Some(Server::Moonshot)),
            ("k3-turbo", Some(Server::Moonshot)),
            ("k3s-helper", None),
            ("k30", None),
            ("x-ai/grok-4", Some(Server::XAi)),
            ("openai/o4-mini", Some(Server::OpenAi)),
            (
                "ft:open-mistral-7b:acme:20250101:abc",
                Some(Server::Mistral),
            ),
            ("openrouter/auto", None),
            ("", None),
        ] {
            assert_eq!(maker_of(name), maker, "{name}");
        }
    }

    #[test]
    fn misspelt_words_are_found() {
        let misspelt = |name: &str| Some(UnservedModel::Misspelt(name.to_owned()));
        let anthropic = misnamed_at(Server::Anthropic);
        assert_eq!(anthropic("claude-sonet-5-5"), misspelt("claude-sonnet-5-5"));
        assert_eq!(
            anthropic("cluade-sonnet-5-5"),
            misspelt("claude-sonnet-5-5")
        );
        assert_eq!(anthropic("claude-hiaku-4-5"), misspelt("claude-haiku-4-5"));
        let google = misnamed_at(Server::Google);
        assert_eq!(google("gemini-2.5-flahs"), misspelt("gemini-2.5-flash"));
        assert_eq!(google("gemni-2.5-pro"), misspelt("gemini-2.5-pro"));
        assert_eq!(google("gemini-2.5-por"), misspelt("gemini-2.5-pro"));
        assert_eq!(
            google("gemini-3.1-pro-preveiw"),
            misspelt("gemini-3.1-pro-preview")
        );
        assert_eq!(
            google("gemini-2.5-flash-lit"),
            misspelt("gemini-2.5-flash-lite")
        );
    }

    #[test]
    fn known_parts_in_another_order_are_found() {
        let misspelt = |name: &str| Some(UnservedModel::Misspelt(name.to_owned()));
        for (server, name, right) in [
            (Server::Anthropic, "claude-5-5-sonnet", "claude-sonnet-5-5"),
            (Server::Anthropic, "claude-4-opus", "claude-opus-4"),
            (Server::Google, "gemini-pro-2.5", "gemini-2.5-pro"),
            (
                Server::Google,
                "gemini-flash-lite-2.5",
                "gemini-2.5-flash-lite",
            ),
            (Server::OpenAi, "gpt-mini-5.4", "gpt-5.4-mini"),
            (Server::OpenAi, "gpt5.6-luna", "gpt-5.6-luna"),
            (Server::ZAi, "glm4.6", "glm-4.6"),
            (
                Server::OpenRouter,
                "antropic/claude-sonnet-4.6",
                "anthropic/claude-sonnet-4.6",
            ),
            (
                Server::OpenRouter,
                "anthropic/claude-4.6-sonnet",
                "anthropic/claude-sonnet-4.6",
            ),
        ] {
            assert_eq!(misnamed_at(server)(name), misspelt(right), "{name}");
        }
        let dotted = Some(UnservedModel::Dotted("claude-sonnet-5-5".to_owned()));
        assert_eq!(misnamed_at(Server::Anthropic)("claude-5.5-sonnet"), dotted);
        for (server, name) in [
            (Server::Anthropic, "claude-3-5-sonnet-20241022"),
            (Server::Anthropic, "claude-opus-4-5-20251101"),
            (Server::Google, "gemini-embedding-001"),
            (Server::Google, "gemini-live-2.5-flash-preview"),
            (Server::OpenAi, "gpt-image-5"),
            (Server::OpenAi, "gpt-realtime-2"),
            (Server::OpenAi, "gpt-oss-120b"),
            (Server::Groq, "gemma2-9b-it"),
            (Server::Groq, "llama3-70b-8192"),
            (Server::OpenRouter, "qwen/qwen-2.5-72b-instruct"),
            (Server::OpenRouter, "anthropic/claude-3.7-sonnet:thinking"),
            (Server::OpenRouter, "~anthropic/claude-sonnet-latest"),
            (Server::OpenRouter, "anthracite-org/magnum-v4-72b"),
            (Server::OpenRouter, "deepseek/deepseek-chat-v3.1"),
            (Server::OpenRouter, "x-ai/grok-4-fast"),
            (Server::OpenRouter, "mistralai/mistral-nemo"),
        ] {
            assert_eq!(misnamed_at(server)(name), None, "{name}");
        }
    }

    #[test]
    fn new_models_and_those_of_gateways_are_not_judged() {
        let anthropic = misnamed_at(Server::Anthropic);
        for name in [
            "claude-opus-9",
            "claude-sonnet-5-5-20261001",
            "claude-3-7-sonnet-latest",
            "claude-symphony-1",
            "claude-2.1",
            "claude-instant-1.2",
            "${MODEL}",
            "m",
            "",
        ] {
            assert_eq!(anthropic(name), None, "{name}");
        }
        let openai = misnamed_at(Server::OpenAi);
        for name in [
            "gpt-9",
            "o5-mini",
            "ft:gpt-4o-mini-2024-07-18:acme:tera:abc",
            "chatgpt-4o-latest",
            "codex-mini-latest",
            "computer-use-preview",
        ] {
            assert_eq!(openai(name), None, "{name}");
        }
        let google = misnamed_at(Server::Google);
        assert_eq!(google("models/gemini-2.5-pro"), None);
        assert_eq!(google("gemini-2.5-pro-exp-03-25"), None);
        assert_eq!(google("gemini-2.5-flash-tts-preview"), None);
        assert_eq!(google("gemini-4-max"), None);
        assert_eq!(google("gemma-3-27b-it"), None);
        assert_eq!(misnamed_at(Server::Unknown)("claude-sonet-5-5"), None);
        for (server, name) in [
            (Server::OpenRouter, "openrouter/auto"),
            (Server::DeepSeek, "deepseek-chat"),
            (Server::Qwen, "qwen3-coder-plus"),
            (Server::ZAi, "glm-4.6v-flash"),
            (Server::Groq, "compound-beta"),
        ] {
            assert_eq!(misnamed_at(server)(name), None, "{name}");
        }
    }

    #[test]
    fn other_servers_names_are_only_spelt() {
        let misspelt = |name: &str| Some(UnservedModel::Misspelt(name.to_owned()));
        let openrouter = misnamed_at(Server::OpenRouter)("anthropic/claude-sonet-4.6");
        assert_eq!(openrouter, misspelt("anthropic/claude-sonnet-4.6"));
        let deepseek = misnamed_at(Server::DeepSeek);
        assert_eq!(deepseek("deepseek-v4-por"), misspelt("deepseek-v4-pro"));
    }
}
