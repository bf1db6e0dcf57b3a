//! Names of models that a maker's own API cannot know.
//!
//! Gateways and servers for open models serve names that nobody here can list. The own API of a
//! maker serves the maker's models only, by their plain names.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Server;
use super::server::is_openai_model;
use crate::diag::is_misspelling;
use crate::repo::{Family, ModelName, ModelPattern};

/// A name that a maker's own API does not know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnservedModel {
    /// The model of another maker.
    OfAnother(Server),
    /// The name that a gateway or a cloud gives to one of its models, whose own name is this.
    OfGateway(String),
    /// A name whose version is written with dots; the name is spelt like this.
    Dotted(String),
    /// Probably a misspelling of this name.
    Misspelt(String),
}

/// How the names of a maker's models begin.
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
    (Server::Moonshot, &["kimi-"]),
    (Server::ZAi, &["glm-"]),
    (Server::MiniMax, &["minimax-"]),
];

/// The accounts of makers in the names that gateways and clouds use.
const ACCOUNTS: [(Server, &[&str]); 4] = [
    (
        Server::Anthropic,
        &["anthropic/", "anthropic.", "anthropic:"],
    ),
    (Server::OpenAi, &["openai/", "openai.", "openai:"]),
    (Server::Google, &["google/", "gemini/"]),
    (Server::Mistral, &["mistralai/", "mistral/", "mistral."]),
];

/// Returns what is wrong with the name of a model at a server. Only makers are judged that refuse
/// the names of others: some answer them with a model of their own.
pub(crate) fn unserved(
    server: Server,
    model: &str,
    families: &[Arc<Family>],
) -> Option<UnservedModel> {
    let (_, accounts) = ACCOUNTS.iter().find(|(maker, _)| *maker == server)?;
    let lower = model.to_lowercase();
    if let Some(plain) = accounts.iter().find_map(|it| after(&lower, it)) {
        return Some(UnservedModel::OfGateway(
            without_cloud_version(plain).to_owned(),
        ));
    }
    match maker_of(&lower) {
        Some(maker) if maker != server => return Some(UnservedModel::OfAnother(maker)),
        Some(Server::Anthropic) if lower.contains('.') => {
            return Some(UnservedModel::Dotted(lower.replace('.', "-")));
        }
        _ => {}
    }
    misspelt(&lower, families).map(UnservedModel::Misspelt)
}

/// Returns the rest of a name after an account, before which clouds name a region.
fn after<'n>(name: &'n str, account: &str) -> Option<&'n str> {
    let (before, rest) = name.split_once(account)?;
    let is_region = before
        .strip_suffix('.')
        .is_some_and(|region| region.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    ((before.is_empty() || is_region) && !rest.is_empty()).then_some(rest)
}

/// Removes the version that Bedrock adds to a name: `-v1:0`.
fn without_cloud_version(name: &str) -> &str {
    match name.rsplit_once("-v") {
        Some((plain, version))
            if version.contains(':')
                && version.bytes().all(|b| b.is_ascii_digit() || b == b':') =>
        {
            plain
        }
        _ => name,
    }
}

fn maker_of(name: &str) -> Option<Server> {
    if is_openai_model(name) || name.starts_with("gpt-") {
        return Some(Server::OpenAi);
    }
    BEGINNINGS
        .iter()
        .find(|(_, beginnings)| beginnings.iter().any(|it| name.starts_with(it)))
        .map(|(maker, _)| *maker)
}

/// Returns the known name that differs from a name in the spelling of one word. Other versions of
/// known models, and new words, are no misspellings.
pub(crate) fn misspelt(name: &str, families: &[Arc<Family>]) -> Option<String> {
    let patterns: Vec<&ModelPattern> = families.iter().flat_map(|it| &it.models).collect();
    let all: BTreeSet<&str> = patterns
        .iter()
        .flat_map(|pattern| words(&pattern.text.value))
        .collect();
    let unknown: Vec<&str> = words(name).filter(|word| !all.contains(word)).collect();
    let [word] = unknown[..] else {
        return None;
    };
    let before = ModelName::new(name);
    let known = all.into_iter().filter(|known| is_misspelling(word, known));
    let mut spelt = known.map(|known| name.replacen(word, known, 1));
    spelt.find(|spelt| {
        let after = ModelName::new(spelt);
        patterns
            .iter()
            .any(|pattern| pattern.is_match(&after) && !pattern.is_match(&before))
    })
}

/// The length of the shortest word whose spelling is judged.
const SHORTEST_WORD: usize = 4;

/// Returns the words of a name or a pattern: the runs of letters that are long enough.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() >= SHORTEST_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::LoadOptions;
    use crate::system::Embedded;
    use crate::world::MemoryWorld;

    fn unserved_at(server: Server) -> impl Fn(&str) -> Option<UnservedModel> {
        let loaded = crate::repo::load(
            Arc::new(MemoryWorld::default()),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let families = loaded.repo.families;
        move |model| unserved(server, model, &families)
    }

    #[test]
    fn makers_do_not_serve_the_models_of_others() {
        let anthropic = unserved_at(Server::Anthropic);
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
        assert_eq!(
            anthropic("claude-sonnet-5.5"),
            Some(UnservedModel::Dotted("claude-sonnet-5-5".to_owned()))
        );
        let openai = unserved_at(Server::OpenAi);
        assert_eq!(
            openai("Claude-Sonnet-5-5"),
            Some(UnservedModel::OfAnother(Server::Anthropic))
        );
        assert_eq!(openai("openai/gpt-5.1"), gateway("gpt-5.1"));
        let google = unserved_at(Server::Google);
        assert_eq!(
            google("grok-4"),
            Some(UnservedModel::OfAnother(Server::XAi))
        );
    }

    #[test]
    fn misspelt_words_are_found() {
        let misspelt = |name: &str| Some(UnservedModel::Misspelt(name.to_owned()));
        let anthropic = unserved_at(Server::Anthropic);
        assert_eq!(anthropic("claude-sonet-5-5"), misspelt("claude-sonnet-5-5"));
        assert_eq!(
            anthropic("cluade-sonnet-5-5"),
            misspelt("claude-sonnet-5-5")
        );
        assert_eq!(anthropic("claude-hiaku-4-5"), misspelt("claude-haiku-4-5"));
        let google = unserved_at(Server::Google);
        assert_eq!(google("gemini-2.5-flahs"), misspelt("gemini-2.5-flash"));
        assert_eq!(google("gemni-2.5-pro"), misspelt("gemini-2.5-pro"));
    }

    #[test]
    fn new_models_and_those_of_gateways_are_not_judged() {
        let anthropic = unserved_at(Server::Anthropic);
        for name in [
            "claude-opus-9",
            "claude-sonnet-5-5-20261001",
            "claude-3-7-sonnet-latest",
            "claude-symphony-1",
            "${MODEL}",
            "m",
            "",
        ] {
            assert_eq!(anthropic(name), None, "{name}");
        }
        let openai = unserved_at(Server::OpenAi);
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
        let google = unserved_at(Server::Google);
        assert_eq!(google("models/gemini-2.5-pro"), None);
        assert_eq!(google("gemma-3-27b-it"), None);
        for server in [
            Server::OpenRouter,
            Server::Unknown,
            Server::DeepSeek,
            Server::ZAi,
        ] {
            assert_eq!(unserved_at(server)("claude-sonet-5-5"), None);
        }
    }
}
