//! `protocol/turn-order`: messages in an order that the API rejects.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Role};
use crate::diag::Severity;
use crate::provider::{Server, WireFormat};
use crate::repo::Property;

body_rule! {
    Error "protocol/turn-order", "the order of the messages is rejected",
    "Formats differ in which message may follow which:\n\n\
     * Gemini: a single content must have the role `user`; a function call must follow a user content, so it cannot be first, and it \
     cannot follow model text in a separate content: put both into one. Contents with calls may follow each other\n\
     * Mistral: no `system` after an assistant or a tool message; a single message cannot have the role `assistant`. `user` after `tool` \
     is rejected for models made before April 2026 (`user_after_results` in `model-families.toml`), when mistral-common 1.11.1 began to \
     accept it; for a model name without a date, it is a warning. `bridge` in the bundled templates puts an assistant message between \
     them\n\
     * llama.cpp: no two assistant messages at the end (a warning for Ollama, which runs llama.cpp)\n\
     * Perplexity: after the system messages, user and tool messages alternate with assistant messages, and the last is not an \
     assistant message\n\
     * MiniMax: only one system message, and not as the only message (reported as a warning)\n\
     * Databricks: a report says that the roles must alternate for models such as Llama (reported as a warning)\n\
     * Qwen: at least one message must have the role `user`\n\
     * Hunyuan and Qianfan: the last message must be a user message or a result; according to user reports, user and assistant must \
     alternate there and on SiliconFlow (reported as a warning). The same applies to models whose chat template requires it \
     (`alternating_turns` in `model-families.toml`)\n\n\
     Anthropic, OpenAI and DeepSeek accept any order. Calls and results have separate rules.\n\n\
     * wrong, Gemini: `user`, `model` with text, `model` with `functionCall`\n\
     * right, Gemini: `user`, `model` with text and `functionCall`",
    seen "2026-11" {
        "recorded: pydantic-ai, test_anthropic_model_empty_message_on_history":
            "Claude accepts an assistant message as the first",
        "recorded: pydantic-ai, test_cross_provider_capability_replay":
            "Gemini accepts two consecutive contents with calls",
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral's validator defines the allowed order",
        "pkg:pypi/mistral-common@1.11.0#protocol/instruct/validator.py":
            "Mistral's validator rejected `user` after `tool`",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp rejects two assistant messages at the end",
        "NousResearch/hermes-agent#80265":
            "Ollama: *Cannot have 2 or more assistant messages at the end of the list*",
        "google-gemini/gemini-cli#11814": "Gemini requires a call to follow a user content",
        "agentscope-ai/agentscope-java#613":
            "Qwen: *do not contain elements with the role of user*",
        "langfuse/langfuse#10513": "Qwen: the same error",
        "MoonlightByte/NeverEndingQuest#179": "llama.cpp: *No user query found in messages*",
        "Mangi-11/Eta#59": "llama.cpp: *System message must be at the beginning*",
        "Gitlawb/openclaude#752": "vLLM: *Unexpected role 'user' after role 'tool'*",
        "openclaw/openclaw#73688": "Z.ai rejects a system prompt without other messages",
        "HKUDS/nanobot#3086": "Z.ai rejects it with error 1214",
        "microsoft/autogen#1037": "vLLM: *Conversation roles must alternate user/assistant/user/assistant/...*",
        "vllm-project/vllm#6862": "vLLM: the same error",
        "nextai-translator/raycast-openai-translator#34": "llama.cpp: the same error",
        "FoundationAgents/OpenManus#894":
            "Hunyuan requires alternating roles, and a user or tool message as the last",
        "langgenius/dify-official-plugins#1302": "Hunyuan: the same error, about the last message",
        "songquanpeng/one-api#1332": "Qianfan: *the role of message with odd index in the messages must be assistant*",
        "NEKOparapa/AiNiee#423": "Qianfan: *the role of last message*",
        "baidubce/bce-qianfan-sdk#866": "Qianfan rejects an assistant message as the last",
        "CherryHQ/cherry-studio#9594": "SiliconFlow: *after user message, next must be assistant or tool message*",
        "anomalyco/opencode#2557": "Z.ai rejects a request without a user message",
        "perplexityai/api-discussion#265":
            "Perplexity: *user and assistant roles should be alternating*",
        "anomalyco/opencode#9416": "Perplexity: the same error",
        "BerriAI/litellm#3918": "Perplexity: *Last message must have role `user`*",
        "pipecat-ai/pipecat#4009": "Perplexity: no system messages after the first turn",
        "openclaw/openclaw#19386": "MiniMax rejects two system messages, and accepts one",
        "can1357/oh-my-pi#954": "MiniMax rejects two system messages, measured",
        "MiniMax-AI/MiniMax-M2#51": "MiniMax's developers confirm it",
        "openclaw/openclaw#74806": "MiniMax: *messages must not be empty*, for a system prompt without other messages",
        "567-labs/instructor#691": "Databricks: *roles must alternate*",
        "microsoft/semantic-kernel#13288": "Gemini: the same error",
        "BerriAI/litellm#17761": "Mistral rejects `user` after `tool`",
        "LibreChat-AI/agents#344": "Mistral rejects `user` after `tool`",
        "zed-industries/zed#31736": "Mistral rejects `user` after `tool`",
        "anomalyco/opencode#45051": "Mistral rejects `user` after `tool`",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let entries = || &subject.history().entries;
    match subject.wire {
        WireFormat::GoogleGenerateContent => google(entries(), found),
        WireFormat::MistralChat => mistral(subject, entries(), found),
        WireFormat::OpenAiChat => {
            of_template(subject, entries(), found);
            of_server(subject, entries(), found);
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Returns the first system message after messages with other roles.
fn later_prompt<'e, 'b>(entries: &'e [Entry<'b>]) -> Option<&'e Entry<'b>> {
    let mut later = entries
        .iter()
        .skip_while(|entry| entry.role == Role::System);
    later.find(|entry| entry.role == Role::System)
}

/// Reports an order that the model's chat template rejects.
fn of_template<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    let help = "put the instructions into the first message";
    if let Some(late) = later_prompt(entries)
        && subject.facts.refuses(Property::SystemMessages).is_some()
    {
        found
            .at_member(
                late.value,
                "role",
                "the chat template of this model accepts `system` only at the beginning",
            )
            .warning()
            .help(help);
    }
    if subject.facts.refuses(Property::UserAfterResults).is_some() {
        let pair = entries
            .windows(2)
            .find(|pair| pair[0].role == Role::Tool && pair[1].role == Role::User);
        if let Some(pair) = pair {
            found
                .at(
                    pair[1].value,
                    "a `user` message follows a tool message, which this model's tokenizer may reject",
                )
                .warning()
                .help("put an assistant message between them");
        }
    }
}

/// Reports an order that a server with OpenAI's format rejects.
fn of_server<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    match subject.server {
        _ if subject.facts.is(Property::AlternatingTurns) => {
            alternating(subject, entries, found);
        }
        Server::LlamaCpp => {
            two_at_end(entries, true, found);
            without_user(subject, entries, false, found);
        }
        Server::Ollama => two_at_end(entries, false, found),
        Server::Qwen => without_user(subject, entries, true, found),
        Server::LmStudio | Server::Unknown => without_user(subject, entries, false, found),
        Server::ZAi => {
            let has_prompt_only = entries.iter().all(|entry| entry.role == Role::System);
            without_user(subject, entries, has_prompt_only, found);
        }
        Server::Hunyuan | Server::Qianfan => {
            alternating(subject, entries, found);
            last_of_model(entries, found);
        }
        Server::SiliconFlow => alternating(subject, entries, found),
        Server::Perplexity => alternating_to_the_user(subject, entries, found),
        Server::Databricks if !is_served_elsewhere(subject) => {
            alternating_to_the_user(subject, entries, found);
        }
        Server::MiniMax => {
            several_prompts(entries, found);
            if entries.iter().all(|entry| entry.role == Role::System) {
                without_user(subject, entries, false, found);
            }
        }
        _ => {}
    }
}

/// Reports a conversation without a user message. `is_sure` is `true` if reports agree that the
/// server rejects it.
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
            "there is no user message, but the API requires one"
        } else {
            "there is no user message; a report says that the API requires one"
        };
        let note = found.at(messages, message);
        let note = if is_sure { note } else { note.warning() };
        note.help("put the question into a user message");
    }
}

/// Reports consecutive user or assistant messages, for servers that were observed to reject them.
fn alternating<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    let doubled = entries.windows(2).find(|pair| {
        pair[0].role == pair[1].role && matches!(pair[1].role, Role::User | Role::Assistant)
    });
    if let Some(pair) = doubled {
        let server = subject.server.name();
        let message = format!(
            "two consecutive messages have the same role; according to user reports, {server} or the model's template rejects this"
        );
        found
            .at(pair[1].value, message)
            .warning()
            .help("merge the two messages");
    }
    led_by_model(subject, entries, found);
}

/// Reports an assistant message that is the first one after the system messages.
fn led_by_model<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    let first = entries.iter().find(|entry| entry.role != Role::System);
    if let Some(first) = first.filter(|first| first.role == Role::Assistant) {
        let server = subject.server.name();
        let message = format!(
            "the first message has the role `assistant`; according to user reports, {server} or the model's template rejects this"
        );
        found
            .at(first.value, message)
            .warning()
            .help("begin with a user message");
    }
}

/// Reports an assistant message that is the last message.
fn last_of_model<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let Some(last) = entries.last().filter(|last| last.role == Role::Assistant) {
        let note = found.at(
            last.value,
            "the last message must have the role `user` or be a tool result",
        );
        note.help("end with a user message");
    }
}

fn google<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let [alone] = entries
        && alone.role == Role::Assistant
    {
        let note = found.at_member(
            alone.value,
            "role",
            "the only content has the role `model`, but the API requires a user content",
        );
        note.help("begin with a user content");
        return;
    }
    let before = std::iter::once(None).chain(entries.iter().map(Some));
    for (entry, before) in entries.iter().zip(before) {
        let calls =
            entry.role == Role::Assistant && entry.parts.iter().any(|part| part.call().is_some());
        let message = match before.map(|before| before.role) {
            None => "the first content calls a function, but a call must follow a user content",
            Some(Role::Assistant) => {
                "this content calls a function, but the content before it also has the role `model`"
            }
            Some(_) => continue,
        };
        let goes_on =
            before.is_some_and(|before| before.parts.iter().any(|part| part.call().is_some()));
        if calls && !goes_on {
            found
                .at(entry.value, message)
                .help("put the model's text and calls into one content, after a user content");
        }
    }
}

fn mistral<'b>(subject: &Subject<'b>, entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let [alone] = entries
        && alone.role == Role::Assistant
    {
        let note = found.at(
            alone.value,
            "the only message has the role `assistant`, but the API requires a user message",
        );
        note.help("begin with a user message");
    }
    for pair in entries.windows(2) {
        let entry = pair[1].value;
        match (pair[0].role, pair[1].role) {
            (Role::Assistant, Role::System) => {
                let note = found.at(
                    entry,
                    "a `system` message cannot follow an assistant message",
                );
                note.help("put instructions into the first message, or into a user message");
            }
            (Role::Tool, Role::System) => {
                let note = found.at(entry, "a `system` message cannot follow a tool message");
                note.help("put instructions into the first message, or into a user message");
            }
            (Role::Tool, Role::User) if !subject.facts.is(Property::UserAfterResults) => {
                let refused = subject.facts.refuses(Property::UserAfterResults);
                let message = match refused {
                    Some(_) => {
                        "a `user` message follows a tool message, which Mistral rejects for this model"
                    }
                    None => {
                        "a `user` message follows a tool message, which some Mistral deployments reject"
                    }
                };
                found
                    .at(entry, message)
                    .level(refused.unwrap_or(Severity::Warning))
                    .help("put an assistant message between them");
            }
            _ => {}
        }
    }
}

/// Returns `true` if Databricks passes requests for the model on to the model's vendor.
fn is_served_elsewhere(subject: &Subject<'_>) -> bool {
    let makers = ["claude", "gpt", "gemini"];
    subject
        .model
        .is_some_and(|model| makers.iter().any(|maker| model.contains(maker)))
}

/// Reports consecutive messages with the same role, and a last message from the assistant.
fn alternating_to_the_user<'b>(
    subject: &Subject<'b>,
    entries: &[Entry<'b>],
    found: &mut Found<'b>,
) {
    let is_sure = subject.server == Server::Perplexity;
    let server = subject.server.name();
    if is_sure {
        late_prompt(entries, found);
        led_by_model(subject, entries, found);
    }
    for pair in entries.windows(2) {
        let is_same = match (pair[0].role, pair[1].role) {
            (Role::User, Role::User) | (Role::Assistant, Role::Assistant) => true,
            (Role::Tool, Role::User) => is_sure,
            _ => false,
        };
        if is_same {
            let message = format!("{server} requires user and assistant messages to alternate");
            let note = found.at_member(pair[1].value, "role", message);
            let note = if is_sure { note } else { note.warning() };
            note.help("merge the two messages into one");
        }
    }
    if let Some(last) = entries.last()
        && last.role == Role::Assistant
    {
        let message =
            format!("a report says that {server} requires the last message to be a user message");
        found
            .at_member(last.value, "role", message)
            .warning()
            .help("end with a user message");
    }
}

/// Reports a system message after other messages, for Perplexity.
fn late_prompt<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    if let Some(late) = later_prompt(entries) {
        found
            .at_member(
                late.value,
                "role",
                "a report says that Perplexity accepts system messages only at the beginning",
            )
            .warning()
            .help("put the instructions into the first message");
    }
}

/// Reports a second system message, for `MiniMax`.
fn several_prompts<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    let mut prompts = entries.iter().filter(|entry| entry.role == Role::System);
    if let Some(second) = prompts.nth(1) {
        found
            .at(second.value, "MiniMax accepts a single system message")
            .help("put all instructions into the first one");
    }
}

/// Reports two assistant messages at the end. `is_sure` is `true` if every version of the server
/// rejects them.
fn two_at_end<'b>(entries: &[Entry<'b>], is_sure: bool, found: &mut Found<'b>) {
    if let [.., before, last] = entries
        && before.role == Role::Assistant
        && last.role == Role::Assistant
    {
        let note = found.at(
            last.value,
            "there are two assistant messages at the end, which the server rejects",
        );
        let note = if is_sure { note } else { note.warning() };
        note.help("end with a user message, or merge the two");
    }
}
