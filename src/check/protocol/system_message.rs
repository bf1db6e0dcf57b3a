//! `protocol/system-message`: a system message at a position where the API does not accept one.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Part, Role};
use crate::provider::{Server, VLLM};
use crate::repo::Property;

body_rule! {
    Error "protocol/system-message", "a system message is in a place where the API does not accept one",
    "Anthropic's newest models (from Opus 4.8 on) accept messages with the role `system` within the conversation, for later instructions. \
     The prompt itself is the `system` field. Such a message must meet these conditions:\n\n\
     * it is not the first message\n\
     * it follows a user message, or an assistant message that ends with a server tool\n\
     * it is the last message, or an assistant message follows it\n\
     * it is not between a call and its result\n\n\
     Two consecutive system messages are a warning: the API rejected them in May 2026, but Anthropic's documentation now shows them, with \
     a beta header.\n\n\
     DeepSeek's and MiniMax's endpoints for this format accept only the roles `user` and `assistant`. According to one report each, Z.ai's \
     and Xiaomi's endpoints have the same restriction (reported as a warning). So do vLLM up to version 0.22 and several gateways; for \
     unknown servers, other roles are therefore a warning.\n\n\
     * wrong: `system`, `user`\n\
     * wrong: `user`, `system`, `user`\n\
     * right: `user`, `assistant`, `user`, `system`",
    of AnthropicMessages;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages":
            "Claude documents where such a message is allowed",
        "maximhq/bifrost#3945": "quotes these requirements from that page",
        "langchain4j/langchain4j#5603": "quotes these requirements from that page",
        "LeenHawk/gproxy#209": "older Claude models reject it",
        "simonw/llm-anthropic#73": "*not supported on this model*",
        "MiniMax-AI/MiniMax-M2.7#43":
            "MiniMax: *chat content has invalid message role: system*",
        "BigPizzaV3/CodexPlusPlus#267": "MiniMax: the same error",
        "0Chencc/clawgod#87":
            "Xiaomi MiMo: *role must be either 'user' or 'assistant', but got 'system'*",
        "zai-org/GLM-5#74": "Z.ai: *Input should be 'user' or 'assistant'*",
        "vllm-project/vllm#44000": "vLLM 0.20: *Input should be 'user' or 'assistant'*",
        "1CatAI/1Cat-vLLM#86": "vLLM accepts it from version 0.23 on",
        "ogx-ai/ogx#5982": "OGX: *Input should be 'user' or 'assistant'*",
        "jwadow/kiro-gateway#197": "Kiro's gateway: *Input should be 'user' or 'assistant'*",
        "deepseek-ai/awesome-deepseek-integration#639":
            "DeepSeek's endpoint accepts only `user` and `assistant`",
    }
}

const HELP: &str = "put the instructions into the `system` field, or into a user message";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let refused = subject.facts.refuses(Property::SystemMessages);
    let entries = &subject.history().entries;
    for (at, entry) in entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| is_instruction(entry))
    {
        if let Some(level) = refused {
            let note = found.at_member(
                entry.value,
                "role",
                "this model does not accept messages with the role `system`",
            );
            note.of_model().level(level).help(HELP);
            continue;
        }
        match subject.server {
            server if server.is_claude() => {
                let before = at.checked_sub(1).map(|before| &entries[before]);
                let Some((message, help)) = fault(before, entries.get(at + 1)) else {
                    continue;
                };
                let is_disputed = before.is_some_and(|before| before.role == Role::System);
                let note = found.at(entry.value, message);
                let note = if is_disputed { note.warning() } else { note };
                note.help(help);
            }
            Server::DeepSeek | Server::MiniMax | Server::MiMo | Server::ZAi => {
                let note = found.at_member(
                    entry.value,
                    "role",
                    "this server accepts only the roles `user` and `assistant`",
                );
                let note = if matches!(subject.server, Server::MiMo | Server::ZAi) {
                    note.warning()
                } else {
                    note
                };
                note.help(HELP);
            }
            Server::Unknown if subject.may_run(VLLM) => {
                let message = "vLLM up to version 0.22 and several gateways accept only the roles `user` and `assistant`";
                let note = found.at_member(entry.value, "role", message);
                note.warning().help(HELP);
            }
            _ => {}
        }
    }
}

/// Returns `true` if a message contains instructions. Messages that change settings or tools are
/// allowed anywhere.
fn is_instruction(entry: &Entry<'_>) -> bool {
    let is_text = !entry.parts.is_empty() && entry.parts.iter().all(Part::is_text);
    entry.role == Role::System && is_text && entry.value.get("output_config").is_none()
}

/// Returns the mistake in the position of a system message between two other messages, and the
/// advice.
fn fault(
    before: Option<&Entry<'_>>,
    after: Option<&Entry<'_>>,
) -> Option<(&'static str, &'static str)> {
    let Some(before) = before else {
        return Some((
            "the first message is a system message",
            "put the prompt into the `system` field",
        ));
    };
    match (before.role, after.map(|after| after.role)) {
        (Role::System, _) => Some((
            "a system message follows another one, which requires a beta header",
            "put the text of both into one message",
        )),
        // If the message is between a call and its result, the rule about calls reports it.
        (Role::Assistant, _) if before.parts.iter().any(|part| part.call().is_some()) => None,
        (Role::Assistant, _) if !ends_with_server_tool(before) => Some((
            "a system message follows an assistant message",
            "put it after the next user message",
        )),
        (_, Some(Role::User)) => Some((
            "a system message is followed by a user message",
            "put it after that message, so that it is the last one or the assistant comes next",
        )),
        _ => None,
    }
}

fn ends_with_server_tool(entry: &Entry<'_>) -> bool {
    let last = entry
        .parts
        .last()
        .and_then(|part| part.value.get("type"))
        .and_then(serde_json::Value::as_str);
    last.is_some_and(|kind| {
        kind != "tool_use" && (kind.ends_with("_tool_use") || kind.ends_with("_tool_result"))
    })
}
