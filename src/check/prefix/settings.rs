//! Settings outside the conversation that affect a server's cache: if one of them changes, the
//! server does not use the cache.

use super::place::{Difference, difference, has_mark};
use super::{Broken, Checks, Part, problem, rules};
use crate::diag::Rule;
use crate::provider::{Server, WireFormat};
use crate::unit::Body;

/// The members whose values affect Anthropic's cache of messages.
const ANTHROPIC: &[&str] = &["speed", "output_config", "thinking", "tool_choice"];

/// The members whose values affect OpenAI's cache. OpenAI puts the answer's schema before the first
/// message, and has a separate cache for each key.
const CHAT: &[&str] = &["response_format", "prompt_cache_key"];
const RESPONSES: &[&str] = &["text", "prompt_cache_key"];

/// Returns `true` if a member is a setting that affects a server's cache, in any wire format.
pub(super) fn is_setting(name: &str) -> bool {
    [ANTHROPIC, CHAT, RESPONSES]
        .iter()
        .any(|settings| settings.contains(&name))
}

/// Returns the settings that affect a server's cache.
pub(crate) fn cache_settings(wire: WireFormat, server: Server) -> &'static [&'static str] {
    match (wire, server) {
        (WireFormat::AnthropicMessages, server) if server.is_claude() => ANTHROPIC,
        (WireFormat::OpenAiChat, Server::OpenAi) => CHAT,
        (WireFormat::OpenAiResponses, Server::OpenAi) => RESPONSES,
        (
            WireFormat::AnthropicMessages
            | WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill,
            _,
        ) => &[],
    }
}

impl Checks {
    /// Reports a setting that changes during a conversation, if the server had cached content for
    /// the earlier value.
    pub(super) fn setting_problem(&self, earlier: &Body, later: &Body) -> Option<Broken> {
        let settings = cache_settings(self.wire, self.server);
        let rule: &'static Rule = if self.wire.has_cache_breakpoints() {
            &rules::VOLATILE
        } else {
            &rules::UNSTABLE_PREFIX
        };
        // Anthropic caches only content before a breakpoint.
        if self.wire.has_cache_breakpoints() && !keeps_messages(later) {
            return None;
        }
        settings
            .iter()
            .find_map(|name| difference(&setting(earlier, name), &setting(later, name)))
            .map(|found| broken(rule, found))
    }
}

fn broken(rule: &'static Rule, found: Difference<'_>) -> Broken {
    let (is_in_later, is_in_both) = (
        found.newer.is_some(),
        found.older.is_some() && found.newer.is_some(),
    );
    let from = found.from;
    let problem = problem(
        rule,
        rules::message(&found, false),
        rules::SETTING_HELP,
        found.pointer,
    );
    Broken {
        problem,
        is_in_later,
        is_in_both,
        from,
    }
}

/// Returns a setting as a part; an empty list if the body does not have the setting.
fn setting<'v>(body: &'v Body, name: &'static str) -> Vec<Part<'v>> {
    let value = body
        .members()
        .find(|member| member.name == name)
        .map(|member| member.value());
    let value = value.filter(|value| !value.is_null());
    value
        .map(|value| Part {
            member: name,
            index: None,
            value,
        })
        .into_iter()
        .collect()
}

/// Returns `true` if the body has a cache breakpoint in its messages.
fn keeps_messages(body: &Body) -> bool {
    let messages = body
        .members()
        .find(|member| member.name == "messages")
        .map(|member| member.value());
    messages
        .and_then(|messages| messages.as_array())
        .is_some_and(|messages| messages.iter().any(has_mark))
}
