//! `protocol/thinking-turn`: reasoning that is misplaced, or missing where it is required.

use serde_json::Value;

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};
use crate::repo::Property;
use crate::text::cut;

body_rule! {
    Error "protocol/thinking-turn", "reasoning is in a place where it is not allowed, or is missing where it is required",
    "Reasoning is sent back as part of the turn that it led to.\n\n\
     Anthropic rejects an assistant message whose last block is thinking. With `thinking.type` \"enabled\", an assistant turn whose calls \
     are being answered must start with its thinking: *Expected `thinking` or `redacted_thinking`, but found `tool_use`*. A message that \
     contains thinking must begin with it; this fails if two assistant messages were joined. If thinking is off, a prefilled final message \
     must not contain thinking. OpenAI's Responses API requires a reasoning item to be followed directly by the item that it led to, with \
     that item's `id` if the reasoning has an `id`; if nothing is stored (`store = false`), the reasoning needs `encrypted_content`. A \
     message with an `id` must keep its place before the calls of its turn, according to user reports (reported as a warning). Some \
     reports say that `content` in a replayed item is not recognised, and that a thinking model's call with an `id` is rejected without \
     its reasoning: these are warnings. Kimi and DeepSeek reject calls without their `reasoning_content` while thinking is enabled. Mistral requires \
     reasoning to be the first part of its message.\n\n\
     * wrong: reasoning, then the user\n\
     * right: reasoning, the answer or call that followed it, then the user\n\n\
     Reasoning with an `id` before a call without an `id` is a warning, unless the reasoning has `encrypted_content`.",
    seen "2026-11" {
        "recorded: pydantic-ai, tests/models/cassettes/test_openai_responses/test_openai_responses_thinking_with_modified_history.yaml":
            "OpenAI: *was provided without its required following item*",
        "recorded: ellmer, inst/_vcr/tool.yml":
            "OpenAI accepts reasoning with its `id` and `encrypted_content` before a call without one",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "Claude requires thinking to be sent back with its turn",
        "tailcallhq/forgecode#1195": "Claude requires thinking to be sent back with its turn",
        "tailcallhq/forgecode#1853": "Claude: the same error",
        "tailcallhq/forgecode#2107": "Claude rejects thinking as the last block",
        "anthropics/claude-code#20691":
            "Claude: *If an assistant message contains any thinking blocks, the first block must be `thinking`*",
        "anthropics/claude-code#20705": "Claude: the same error",
        "zed-industries/zed#33317":
            "Claude: *Expected `thinking` or `redacted_thinking`, but found `tool_use`*",
        "vercel/ai#7099": "OpenAI rejects reasoning without the item that it led to",
        "vercel/ai#7543": "OpenAI rejects reasoning that is not stored",
        "continuedev/continue#11994":
            "OpenAI rejects a call without its reasoning, and a message after the calls",
        "zendev-sh/goai#141": "OpenAI rejects a message that was moved after the calls",
        "jin-bo/agentao#321": "OpenAI accepts a call without its reasoning",
        "decolua/9router#2497": "OpenAI rejects `content` in a reasoning item as unknown",
        "continuedev/continue#11600": "Kimi rejects calls without `reasoning_content`",
        "n8n-io/n8n#29142": "Kimi: the same error",
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/messages.py":
            "Mistral: *ThinkChunks must be leading*",
        "https://api-docs.deepseek.com/guides/thinking_mode":
            "DeepSeek requires calls to keep their `reasoning_content` in all later requests",
        "continuedev/continue#11285": "DeepSeek: *Missing `reasoning_content` field*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::AnthropicMessages if subject.server.is_claude() => {
            anthropic(subject, found);
        }
        WireFormat::OpenAiResponses if subject.server.is_openai() => {
            responses(subject, found);
        }
        WireFormat::AnthropicMessages => {
            reasoned_calls(subject, "thinking", lacks_thinking, found);
        }
        WireFormat::OpenAiChat => {
            reasoned_calls(subject, "`reasoning_content`", lacks_reasoning, found);
        }
        WireFormat::MistralChat => leading(subject, found),
        WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let messages = elements(subject.member("messages"));
    for message in messages.iter().filter(|message| is_assistant(message)) {
        if let Some(last) = elements(message.get("content"))
            .last()
            .filter(|block| is_thinking(block))
        {
            let note = found.at(
                last,
                "the last block of an assistant message cannot be thinking",
            );
            note.help("send the answer or call that followed it, or leave out the thinking");
        }
    }
    if subject
        .member("thinking")
        .is_some_and(|thinking| is_type(thinking, "enabled"))
    {
        answered_turn(messages, found);
        late_thinking(messages, found);
    }
    final_thinking(subject, messages, found);
}

/// Reports thinking in a final assistant message while thinking is off. If the message ends with
/// thinking, another check reports it.
fn final_thinking<'b>(subject: &Subject<'b>, messages: &'b [Value], found: &mut Found<'b>) {
    let is_off = subject
        .member("thinking")
        .map_or(!subject.facts.is(Property::ThinksByDefault), |thinking| {
            is_type(thinking, "disabled")
        });
    let Some(last) = messages.last().filter(|last| is_off && is_assistant(last)) else {
        return;
    };
    let blocks = elements(last.get("content"));
    let is_told = blocks.last().is_some_and(is_thinking);
    if let Some(block) = blocks
        .iter()
        .find(|block| is_thinking(block))
        .filter(|_| !is_told)
    {
        let note = found.at(
            block,
            "the last message contains thinking, but thinking is off",
        );
        note.help("turn thinking on, or leave out the block");
    }
}

/// Reports messages in which thinking is not first. Another check covers the turn whose calls are
/// answered by the last message.
///
/// Exempts a message that follows another assistant message or begins with a server tool's result,
/// because it may be the rest of a paused turn.
fn late_thinking<'b>(messages: &'b [Value], found: &mut Found<'b>) {
    let last = messages.iter().rposition(is_assistant);
    for (at, message) in messages.iter().enumerate() {
        let goes_on = at > 0 && is_assistant(&messages[at - 1]);
        if !is_assistant(message) || goes_on {
            continue;
        }
        let blocks = elements(message.get("content"));
        let is_told = Some(at) == last && has(message, "tool_use");
        let Some(first) = blocks.first().filter(|_| !is_told) else {
            continue;
        };
        let is_own = is_type(first, "text") || is_type(first, "tool_use");
        if is_own && blocks.iter().any(is_thinking) {
            let note = found.at(first, "a message that contains thinking must begin with it");
            note.help("keep the blocks in the order in which they came, and do not join assistant messages");
        }
    }
}

/// Reports a turn that does not begin with thinking, if the last message contains the results of
/// the turn's calls.
fn answered_turn<'b>(messages: &'b [Value], found: &mut Found<'b>) {
    let [.., turn, answer] = messages else { return };
    if !is_assistant(turn) || !has(turn, "tool_use") || !has(answer, "tool_result") {
        return;
    }
    if let Some(first) = elements(turn.get("content"))
        .first()
        .filter(|block| !is_thinking(block))
    {
        let note = found.at(
            first,
            "with thinking enabled, an assistant turn that contains answered calls must begin with its thinking",
        );
        note.help("send back the thinking that came before the call; it is not needed with \"adaptive\" thinking or with thinking off");
    }
}

fn has(message: &Value, kind: &str) -> bool {
    elements(message.get("content"))
        .iter()
        .any(|block| is_type(block, kind))
}

fn responses<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let items = elements(subject.member("input"));
    let is_stored = subject.member("store") != Some(&Value::Bool(false));
    let effort = subject.member("reasoning").and_then(|it| it.get("effort"));
    let effort = effort.and_then(Value::as_str);
    let thinks_by_default = subject.facts.is(Property::ThinksByDefault);
    let thinks = effort.map_or(thinks_by_default, |it| it != "none");
    // The last item that is not a call, and the last item that is not a function call. They matter
    // because all calls in a turn share the reasoning that precedes the first call.
    let (mut before_calls, mut before_functions) = (None, None);
    for (at, item) in items.iter().enumerate() {
        if is_type(item, "reasoning") {
            reasoning_item(item, items.get(at + 1), is_stored, found);
        } else if is_type(item, "function_call") && !is_stored {
            if thinks && item.get("id").is_some() && !before_functions.is_some_and(is_of_assistant)
            {
                let note = found.at_member(
                    item,
                    "id",
                    "a call with an `id` has no reasoning before it; some reports say that this is rejected",
                );
                note.warning()
                    .help("leave out the `id`, or send the reasoning item before it");
            }
        } else if is_stored && thinks_by_default {
            stored_item(item, before_calls, found);
        }
        moved_message(items, at, found);
        before_calls = Some(item).filter(|item| !is_call(item)).or(before_calls);
        before_functions = Some(item)
            .filter(|item| !is_type(item, "function_call"))
            .or(before_functions);
    }
}

/// Reports a message that comes after the calls in its turn. The model wrote the message before the
/// calls, directly after the reasoning.
fn moved_message<'b>(items: &'b [Value], at: usize, found: &mut Found<'b>) {
    let message = &items[at];
    let before = &items[..at];
    let is_called = before.last().is_some_and(ends_turn);
    let led_by = before.iter().rev().find(|other| !ends_turn(other));
    let is_moved = is_called
        && is_assistant(message)
        && has_id(message)
        && led_by.is_some_and(|first| is_type(first, "reasoning") && has_id(first));
    if is_moved {
        found
            .at_member(
                message,
                "id",
                "this message is separated from its reasoning by calls, which is rejected according to user reports",
            )
            .warning()
            .help("put it before the calls, directly after the reasoning, as the model wrote it");
    }
}

/// Returns `true` if the item is a call whose result the model waits for.
fn ends_turn(item: &Value) -> bool {
    is_type(item, "function_call") || is_type(item, "custom_tool_call")
}

/// The kinds of calls that OpenAI's models make after reasoning.
const CALLS: [&str; 4] = [
    "function_call",
    "custom_tool_call",
    "web_search_call",
    "file_search_call",
];

/// Reports a stored call or message that comes first in its turn, but without the reasoning that
/// led to it. `before` is the last earlier item that is not a call.
fn stored_item<'b>(item: &'b Value, before: Option<&Value>, found: &mut Found<'b>) {
    if !has_id(item) || !(is_call(item) || is_answer(item)) {
        return;
    }
    let is_first =
        before.is_none_or(|before| before.get("role").is_some_and(|role| role == "user"));
    if is_first {
        found
            .at_member(
                item,
                "id",
                "an item with an `id` comes without the reasoning that led to it, which is rejected according to user reports",
            )
            .warning()
            .help(if !is_call(item) || ends_turn(item) {
                "leave out the `id`, or send the reasoning item before it"
            } else {
                // Calls that the server runs need their `id` (openai/codex#6926).
                "send the reasoning item before it, or leave out the call"
            });
    }
}

/// Returns `true` for a message from the model.
fn is_answer(item: &Value) -> bool {
    is_type(item, "message") && is_assistant(item)
}

fn is_call(item: &Value) -> bool {
    CALLS.iter().any(|kind| is_type(item, kind))
}

fn reasoning_item<'b>(
    item: &'b Value,
    next: Option<&'b Value>,
    is_stored: bool,
    found: &mut Found<'b>,
) {
    if !next.is_some_and(is_of_assistant) {
        let note = found.at(item, "no item from the model follows this reasoning");
        note.help("send the message or call that came after it, or leave out the reasoning");
    } else if !is_stored && item.get("encrypted_content").is_none_or(Value::is_null) {
        let note =
            found.at(item, "this reasoning has no `encrypted_content` and nothing is stored, so the API cannot find it");
        note.help("send back its `encrypted_content`, or leave out the item");
    }
    if let Some(next) = next.filter(|next| is_of_assistant(next)) {
        lost_id(item, next, found);
    }
    if !elements(item.get("content")).is_empty() {
        let note = found.at_member(
            item,
            "content",
            "according to some user reports, the API does not recognise `content` in a reasoning item",
        );
        note.warning()
            .help("omit `content`: `encrypted_content` contains the reasoning");
    }
}

/// Reports an item without an ID after reasoning with an ID, because the server matches the two by
/// their IDs. Before a call, `encrypted_content` was enough in recordings.
fn lost_id<'b>(item: &'b Value, next: &'b Value, found: &mut Found<'b>) {
    if !has_id(item) || has_id(next) {
        return;
    }
    let is_before_message = is_assistant(next);
    if !is_before_message && item.get("encrypted_content").is_some_and(Value::is_string) {
        return;
    }
    let message = "this reasoning has an `id`, but the item after it no longer has one, so the server cannot match them";
    let note = found.at(item, message);
    let note = if is_before_message {
        note
    } else {
        note.warning()
    };
    note.help(if is_before_message || ends_turn(next) {
        "send both with their original ids, send both without, or leave out the reasoning"
    } else {
        "send both with their original ids, or leave out both"
    });
}

fn has_id(item: &Value) -> bool {
    item.get("id").is_some_and(|id| !id.is_null())
}

/// Returns `true` if an item was created by the model.
fn is_of_assistant(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str) {
        None | Some("message") => is_assistant(item),
        // An item reference can refer to any item.
        Some(kind) => !kind.ends_with("_output") && kind != "mcp_approval_response",
    }
}

/// Reports calls without the reasoning that led to them, if the model requires this reasoning.
/// `lacks` detects messages without the reasoning, and `name` is the reasoning's name in the
/// finding.
fn reasoned_calls<'b>(
    subject: &Subject<'b>,
    name: &str,
    lacks: fn(&Value) -> bool,
    found: &mut Found<'b>,
) {
    let Some((level, likely)) = subject.facts.value(|family| family.reasoned_calls) else {
        return;
    };
    if subject
        .member("thinking")
        .is_some_and(|thinking| !is_type(thinking, "enabled"))
        || matches!(subject.server, Server::SiliconFlow | Server::MiMo)
            && !is_told_to_think(subject)
            && !subject.facts.is(Property::ThinksByDefault)
    {
        return;
    }
    for message in elements(subject.member("messages"))
        .iter()
        .filter(|message| lacks(message))
    {
        let model = cut(subject.model.unwrap_or("this model"), 60);
        let note = found.at(
            message,
            format!("these calls have no {name}, which {model} requires while thinking is enabled"),
        );
        note.level(level.min(likely))
            .help("send back the reasoning that came with the calls, or turn thinking off");
    }
}

/// Returns `true` for a message with calls in Anthropic's format and without thinking.
fn lacks_thinking(message: &Value) -> bool {
    has(message, "tool_use") && !elements(message.get("content")).iter().any(is_thinking)
}

/// Returns `true` for a message with calls in OpenAI's format and without its reasoning.
fn lacks_reasoning(message: &Value) -> bool {
    let has_calls = !elements(message.get("tool_calls")).is_empty();
    has_calls && message.get("reasoning_content").is_none_or(Value::is_null)
}

/// Reports reasoning that comes after other parts of a message, which Mistral does not accept.
fn leading<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for message in elements(subject.member("messages")) {
        let parts = elements(message.get("content"));
        let first = parts.iter().position(|part| !is_type(part, "thinking"));
        let late =
            first.and_then(|first| parts[first..].iter().find(|part| is_type(part, "thinking")));
        if let Some(late) = late.filter(|_| is_assistant(message)) {
            found
                .at(
                    late,
                    "reasoning must come before the other parts of a message",
                )
                .help("put the reasoning first");
        }
    }
}

/// Returns `true` if the request turns thinking on.
fn is_told_to_think(subject: &Subject<'_>) -> bool {
    subject.member("enable_thinking") == Some(&Value::Bool(true))
        || subject
            .member("thinking")
            .is_some_and(|thinking| is_type(thinking, "enabled"))
}

fn is_assistant(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == "assistant")
}

fn is_thinking(block: &Value) -> bool {
    is_type(block, "thinking") || is_type(block, "redacted_thinking")
}
