//! `protocol/turn-order`: messages in an order that the API refuses.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Kind, Role};
use crate::provider::{Server, WireFormat};
use crate::repo::Property;

body_rule! {
    Error "protocol/turn-order", "the order of the messages is refused",
    "Formats differ in what may follow what:\n\n\
     * Anthropic: older reports say that the first message has to be the user's, unless it holds a compaction. It is taken by now: a \
     warning. Messages of one role in a row are put together by the server\n\
     * Gemini: a conversation of one content is the user's; a call of a function follows a content of the user, so it cannot be \
     first, nor follow a text of the model in a content of its own: put both into one. Contents with calls may follow each other\n\
     * Mistral: after an assistant message no `system`, after a tool message none either; a single message is not the assistant's. \
     `user` after `tool` is refused by deployments older than mistral-common 1.11.1 of April 2026: a warning, but for models that \
     are newer (`user_after_results = true` in `model-families.toml`). `bridge` in the bundled templates puts words of the assistant \
     between them\n\
     * llama.cpp: no two assistant messages at the end\n\n\
     OpenAI, DeepSeek and Ollama take any order. What calls and results need has rules of its own.\n\n\
     * wrong, Gemini: `user`, `model` with text, `model` with `functionCall`\n\
     * right, Gemini: `user`, `model` with text and `functionCall`",
    seen "2026-11" {
        "recorded: pydantic-ai, test_anthropic_model_empty_message_on_history":
            "Claude: a first message of the assistant, taken",
        "recorded: pydantic-ai, test_cross_provider_capability_replay":
            "Gemini: two contents with calls in a row, taken",
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral: what may follow what",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp: no two assistant messages at the end",
        "lobehub/lobehub#1601": "Claude: the first message is the user's",
        "livekit/agents#669": "Claude: the same refusal",
        "google-gemini/gemini-cli#11814": "Gemini: a call follows a content of the user",
        "agentscope-ai/agentscope-java#613":
            "Qwen: *do not contain elements with the role of user*",
        "openclaw/openclaw#73688": "Z.ai: a prompt alone is refused",
        "HKUDS/nanobot#3086": "Z.ai: the same refusal, error 1214",
        "anomalyco/opencode#2557": "Z.ai: no message of the user",
        "microsoft/semantic-kernel#13288": "Gemini: the same refusal",
        "BerriAI/litellm#17761": "Mistral: `user` after `tool`",
        "LibreChat-AI/agents#344": "Mistral: `user` after `tool`",
        "zed-industries/zed#31736": "Mistral: `user` after `tool`",
        "anomalyco/opencode#45051": "Mistral: `user` after `tool`",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let entries = || &subject.history().entries;
    match subject.wire {
        WireFormat::AnthropicMessages if subject.server.is_claude() => {
            anthropic(entries(), found);
        }
        WireFormat::GoogleGenerateContent => google(entries(), found),
        WireFormat::MistralChat => mistral(subject, entries(), found),
        WireFormat::OpenAiChat => match subject.server {
            Server::LlamaCpp => llamacpp(entries(), found),
            Server::Qwen => without_user(subject, entries(), false, found),
            Server::ZAi => {
                let has_prompt_only = entries().iter().all(|entry| entry.role == Role::System);
                without_user(subject, entries(), has_prompt_only, found);
            }
            _ => {}
        },
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

fn anthropic<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    // A compaction leaves its summary in an assistant message.
    let first = entries
        .first()
        .filter(|entry| entry.role == Role::Assistant && !is_compaction(entry));
    if let Some(first) = first {
        let note = found.at_member(
            first.value,
            "role",
            "the first message is the assistant's: some reports say that the API wants the user's first",
        );
        note.warning().help("begin with a message of the user");
    }
}

fn is_compaction(entry: &Entry<'_>) -> bool {
    matches!(
        entry.parts.first().map(|part| part.kind),
        Some(Kind::Other("compaction"))
    )
}

/// Finds a conversation in which the user says nothing; `is_sure` if reports agree that it is
/// refused.
fn without_user<'b>(
    subject: &Subject<'b>,
    entries: &[Entry<'b>],
    is_sure: bool,
    found: &mut Found<'b>,
) {
    if let Some(messages) = subject
        .member("messages")
        .filter(|_| entries.iter().all(|entry| entry.role != Role::User))
    {
        let message = if is_sure {
            "no message is the user's: the API wants one"
        } else {
            "no message is the user's: a report says that the API wants one"
        };
        let note = found.at(messages, message);
        let note = if is_sure { note } else { note.warning() };
        note.help("put the question into a message of the user");
    }
}

fn google<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let [alone] = entries
        && alone.role == Role::Assistant
    {
        let note = found.at_member(
            alone.value,
            "role",
            "the only content is the model's: the API wants one of the user",
        );
        note.help("begin with a content of the user");
        return;
    }
    let before = std::iter::once(None).chain(entries.iter().map(Some));
    for (entry, before) in entries.iter().zip(before) {
        let calls =
            entry.role == Role::Assistant && entry.parts.iter().any(|part| part.call().is_some());
        let message = match before.map(|before| before.role) {
            None => "the first content calls a function: a call follows a content of the user",
            Some(Role::Assistant) => {
                "this content calls a function, and the one before it is the model's too"
            }
            Some(_) => continue,
        };
        let goes_on =
            before.is_some_and(|before| before.parts.iter().any(|part| part.call().is_some()));
        if calls && !goes_on {
            found
                .at(entry.value, message)
                .help("put what the model says and calls into one content, behind one of the user");
        }
    }
}

fn mistral<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let [alone] = entries
        && alone.role == Role::Assistant
    {
        let note = found.at(
            alone.value,
            "the only message is the assistant's: the API wants one of the user",
        );
        note.help("begin with a message of the user");
    }
    for pair in entries.windows(2) {
        let entry = pair[1].value;
        match (pair[0].role, pair[1].role) {
            (Role::Assistant, Role::System) => {
                let note = found.at(
                    entry,
                    "a `system` message cannot follow an assistant message",
                );
                note.help("put instructions into the first message, or into one of the user");
            }
            (Role::Tool, Role::System) => {
                let note = found.at(entry, "a `system` message cannot follow a tool message");
                note.help("put instructions into the first message, or into one of the user");
            }
            (Role::Tool, Role::User) if !subject.facts.is(Property::UserAfterResults) => {
                let note =
                    found.at(entry, "a `user` message follows a tool message: some deployments of Mistral refuse it");
                note.warning().help(
                    "put an assistant message between them, or accept the risk with `[[allow]]`",
                );
            }
            _ => {}
        }
    }
}

fn llamacpp<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let [.., before, last] = entries
        && before.role == Role::Assistant
        && last.role == Role::Assistant
    {
        let note = found.at(
            last.value,
            "there are two assistant messages at the end: the server refuses that",
        );
        note.help("end with a message of the user, or put both into one");
    }
}
