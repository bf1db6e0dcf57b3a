//! Models that a vendor's own API has shut down, or for which it has announced a date.

use super::Server;

/// Models that a vendor's own API serves only until a certain date.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Retirement {
    server: Server,
    /// The model names, in lower case. A final `*` matches any ending.
    models: &'static [&'static str],
    /// The date from which requests fail: `2026-06-15`.
    pub(super) on: &'static str,
    /// The model that the vendor recommends instead.
    pub(super) instead: &'static str,
}

impl Retirement {
    /// Returns the retirement of a model on a server, by the model's name in lower case.
    pub(super) fn of(server: Server, model: &str) -> Option<&'static Retirement> {
        RETIREMENTS
            .iter()
            .filter(|it| it.server == server)
            .find(|it| it.models.iter().any(|name| is_named(model, name)))
    }
}

/// Returns `true` if a model matches a name in the table.
fn is_named(model: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning),
        None => model == name,
    }
}

/// Returns an entry of [`RETIREMENTS`].
const fn until(
    on: &'static str,
    server: Server,
    models: &'static [&'static str],
    instead: &'static str,
) -> Retirement {
    Retirement {
        server,
        models,
        on,
        instead,
    }
}

/// The retirements, as the vendors' pages announced them by 2026-07-18; those of Gemini 2.5, by
/// 2026-11-10. The rule `provider/retired-model` cites the pages.
const RETIREMENTS: [Retirement; 38] = [
    until(
        "2024-11-06",
        Server::Anthropic,
        &["claude-1*", "claude-instant-1*"],
        "claude-haiku-4-5-20251001",
    ),
    until(
        "2025-07-21",
        Server::Anthropic,
        &["claude-2*", "claude-3-sonnet-20240229"],
        "claude-sonnet-4-6",
    ),
    until(
        "2025-10-28",
        Server::Anthropic,
        &["claude-3-5-sonnet-*"],
        "claude-sonnet-4-6",
    ),
    until(
        "2026-01-05",
        Server::Anthropic,
        &["claude-3-opus-*"],
        "claude-opus-4-8",
    ),
    until(
        "2026-02-19",
        Server::Anthropic,
        &["claude-3-7-sonnet-*"],
        "claude-sonnet-4-6",
    ),
    until(
        "2026-02-19",
        Server::Anthropic,
        &["claude-3-5-haiku-*"],
        "claude-haiku-4-5-20251001",
    ),
    until(
        "2026-04-20",
        Server::Anthropic,
        &["claude-3-haiku-20240307"],
        "claude-haiku-4-5-20251001",
    ),
    until(
        "2026-06-15",
        Server::Anthropic,
        &["claude-opus-4-0", "claude-opus-4-20250514"],
        "claude-opus-4-8",
    ),
    until(
        "2026-06-15",
        Server::Anthropic,
        &["claude-sonnet-4-0", "claude-sonnet-4-20250514"],
        "claude-sonnet-4-6",
    ),
    until(
        "2026-08-05",
        Server::Anthropic,
        &["claude-opus-4-1", "claude-opus-4-1-20250805"],
        "claude-opus-4-8",
    ),
    until(
        "2025-02-15",
        Server::Google,
        &["gemini-pro", "gemini-pro-vision", "gemini-1.0-*"],
        "gemini-3.5-flash",
    ),
    until(
        "2025-09-24",
        Server::Google,
        &["gemini-1.5-*"],
        "gemini-3.5-flash",
    ),
    until(
        "2026-03-09",
        Server::Google,
        &["gemini-3-pro-preview"],
        "gemini-3.1-pro-preview",
    ),
    until(
        "2026-05-25",
        Server::Google,
        &["gemini-3.1-flash-lite-preview"],
        "gemini-3.1-flash-lite",
    ),
    until(
        "2026-06-01",
        Server::Google,
        &["gemini-2.0-flash-lite", "gemini-2.0-flash-lite-001"],
        "gemini-3.1-flash-lite",
    ),
    until(
        "2026-06-01",
        Server::Google,
        &["gemini-2.0-flash", "gemini-2.0-flash-001"],
        "gemini-3.5-flash",
    ),
    until(
        "2026-06-25",
        Server::Google,
        &["gemini-3.1-flash-image-preview"],
        "gemini-3.1-flash-image",
    ),
    until(
        "2026-06-25",
        Server::Google,
        &["gemini-3-pro-image-preview"],
        "gemini-3-pro-image",
    ),
    until(
        "2026-12-01",
        Server::Google,
        &["gemini-2.5-pro"],
        "gemini-3.8-flash",
    ),
    until(
        "2026-12-01",
        Server::Google,
        &["gemini-2.5-flash"],
        "gemini-3.5-flash-lite",
    ),
    until(
        "2024-09-13",
        Server::OpenAi,
        &[
            "gpt-3.5-turbo-0301",
            "gpt-3.5-turbo-0613",
            "gpt-3.5-turbo-16k-0613",
        ],
        "gpt-5.4-mini",
    ),
    until(
        "2024-12-06",
        Server::OpenAi,
        &["gpt-4-vision-preview", "gpt-4-1106-vision-preview"],
        "gpt-5.5",
    ),
    until(
        "2025-06-06",
        Server::OpenAi,
        &["gpt-4-32k", "gpt-4-32k-0314", "gpt-4-32k-0613"],
        "gpt-5.5",
    ),
    until(
        "2025-07-14",
        Server::OpenAi,
        &["gpt-4.5-preview", "gpt-4.5-preview-2025-02-27"],
        "gpt-5.5",
    ),
    until(
        "2025-07-28",
        Server::OpenAi,
        &["o1-preview", "o1-preview-2024-09-12"],
        "gpt-5.5",
    ),
    until(
        "2025-10-27",
        Server::OpenAi,
        &["o1-mini", "o1-mini-2024-09-12"],
        "gpt-5.5",
    ),
    until(
        "2026-03-26",
        Server::OpenAi,
        &["gpt-4-0314", "gpt-4-0125-preview", "gpt-4-turbo-preview"],
        "gpt-5.5",
    ),
    until(
        "2026-05-07",
        Server::OpenAi,
        &["gpt-4o-audio-preview"],
        "gpt-audio-1.5",
    ),
    until(
        "2026-05-07",
        Server::OpenAi,
        &["gpt-4o-mini-audio-preview"],
        "gpt-audio-mini",
    ),
    until(
        "2026-07-23",
        Server::OpenAi,
        &[
            "computer-use-preview",
            "computer-use-preview-2025-03-11",
            "gpt-4o-search-preview-2025-03-11",
            "gpt-4o-mini-search-preview-2025-03-11",
            "gpt-5.1-codex-mini",
        ],
        "gpt-5.4-mini",
    ),
    until(
        "2026-07-23",
        Server::OpenAi,
        &[
            "gpt-5-chat-latest",
            "gpt-5-codex",
            "gpt-5.1-chat-latest",
            "gpt-5.1-codex",
            "gpt-5.1-codex-max",
            "gpt-5.2-codex",
        ],
        "gpt-5.5",
    ),
    until(
        "2026-07-23",
        Server::OpenAi,
        &[
            "o3-deep-research",
            "o3-deep-research-2025-06-26",
            "o4-mini-deep-research",
            "o4-mini-deep-research-2025-06-26",
        ],
        "gpt-5.5-pro",
    ),
    until(
        "2026-08-10",
        Server::OpenAi,
        &["gpt-5.2-chat-latest", "gpt-5.3-chat-latest"],
        "gpt-5.5",
    ),
    until(
        "2026-09-28",
        Server::OpenAi,
        &[
            "gpt-3.5-turbo-instruct",
            "gpt-3.5-turbo-1106",
            "babbage-002",
            "davinci-002",
        ],
        "gpt-5.4-mini",
    ),
    until(
        "2026-10-23",
        Server::OpenAi,
        &[
            "gpt-3.5-turbo",
            "gpt-3.5-turbo-0125",
            "o4-mini",
            "o4-mini-2025-04-16",
        ],
        "gpt-5.4-mini",
    ),
    until(
        "2026-10-23",
        Server::OpenAi,
        &["gpt-4.1-nano", "gpt-4.1-nano-2025-04-14"],
        "gpt-5.4-nano",
    ),
    until(
        "2026-10-23",
        Server::OpenAi,
        &[
            "gpt-4",
            "gpt-4-0613",
            "gpt-4-1106-preview",
            "gpt-4-turbo",
            "gpt-4-turbo-2024-04-09",
            "gpt-4o-2024-05-13",
            "o1",
            "o1-2024-12-17",
            "o3-mini",
            "o3-mini-2025-01-31",
        ],
        "gpt-5.5",
    ),
    until(
        "2026-10-23",
        Server::OpenAi,
        &["o1-pro", "o1-pro-2025-03-19"],
        "gpt-5.5-pro",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_model_is_found_by_its_name_and_its_server() {
        let of = |server, model| Retirement::of(server, model).map(|it| it.on);
        assert_eq!(
            of(Server::Anthropic, "claude-3-opus-20240229"),
            Some("2026-01-05")
        );
        assert_eq!(of(Server::Bedrock, "claude-3-opus-20240229"), None);
        assert_eq!(of(Server::Anthropic, "claude-opus-4-8"), None);
        assert_eq!(of(Server::Google, "gemini-2.5-flash"), Some("2026-12-01"));
        assert_eq!(of(Server::Google, "gemini-2.5-flash-lite"), None);
        assert_eq!(of(Server::OpenAi, "gpt-4o"), None);
    }

    #[test]
    fn no_recommended_model_is_retired_itself() {
        for it in &RETIREMENTS {
            let next = Retirement::of(it.server, it.instead);
            assert_eq!(next, None, "{}", it.instead);
        }
    }
}
