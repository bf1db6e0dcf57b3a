//! `protocol/prefill`: the beginning of an answer that the API does not continue.

use serde_json::Value;

use super::model_prefill::is_paused;
use super::schemas::answer_format;
use super::value::is_type;
use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::diag::Severity;
use crate::provider::{Server, Site, VLLM, WireFormat};
use crate::repo::Property;

body_rule! {
    Error "protocol/prefill", "the last message has the role `assistant`, in a form that the API rejects",
    "A final assistant message is the beginning of the answer, which the model continues. Whether this is accepted depends on the \
     model; these rules apply to all models:\n\n\
     * Anthropic: the message's text must not end with whitespace; if `thinking` is on, the message must begin with a thinking block; \
     the message is rejected if the request also sets an output format\n\
     * Mistral: the message must have `\"prefix\": true`, and only the last message may have it; a system message cannot be the last\n\
     * GitHub Copilot: a report says that a system message cannot be the last (reported as a warning)\n\
     * Snowflake: a report says that the message is rejected together with `tools` (reported as a warning)\n\
     * DeepSeek: the message is continued only if it has `\"prefix\": true` and is sent to the beta endpoint (otherwise reported as a \
     warning). Reasoning models reject it, which `protocol/model-prefill` reports\n\
     * vLLM: `continue_final_message` needs a final assistant message (a warning, unless vLLM is named as the server)\n\
     * llama.cpp: the message must not contain `tool_calls`; while thinking is enabled, the message is rejected (a warning if only the \
     model's default enables thinking)\n\n\
     * wrong: `{ \"role\": \"assistant\", \"content\": \"The answer is \" }`\n\
     * right: `{ \"role\": \"assistant\", \"content\": \"The answer is\" }`",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking":
            "Claude does not support prefill with thinking",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs":
            "Claude does not support prefill with an output format",
        "agentjido/req_llm#642":
            "Claude: *When using output format, pre-filling the `assistant` response is not supported*",
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral requires `prefix` in the last assistant message",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp rejects prefill with tool calls or thinking",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/tokenizers/mistral.py":
            "vLLM: *Cannot set `continue_final_message` to True when the last message is not from the assistant*",
        "ggml-org/llama.cpp#21889":
            "llama.cpp: *Assistant response prefill is incompatible with enable_thinking*",
        "tailcallhq/forgecode#1872":
            "Claude: *final assistant content cannot end with trailing whitespace*",
        "GCWing/OpenBitFun#825": "Claude: the same error",
        "zed-industries/zed#30346":
            "GitHub Copilot: *The final message must be from the user* after a system message",
        "aaif-goose/goose#5997":
            "Snowflake: *cannot contain `assistant` role in the final position when `tools` are used*",
        "QuantumNous/new-api#2858": "DeepSeek's reasoning models reject it",
        "olimorris/codecompanion.nvim#760": "DeepSeek requires `prefix`",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let [before @ .., last] = elements(subject.member("messages")) else {
        return;
    };
    if subject.headers.counts_tokens() {
        return;
    }
    match subject.wire {
        WireFormat::AnthropicMessages if subject.server.is_claude() => {
            anthropic(subject, last, found);
        }
        WireFormat::MistralChat => mistral(before, last, found),
        WireFormat::OpenAiChat if subject.headers.is_at(Site::GitHubCopilot) => {
            copilot(last, found);
        }
        WireFormat::OpenAiChat => match subject.server {
            Server::DeepSeek => deepseek(subject, last, found),
            Server::LlamaCpp => llamacpp(subject, last, found),
            Server::Snowflake => snowflake(subject, last, found),
            Server::Unknown => {
                if let Some(level) = subject.level_with(VLLM) {
                    nothing_to_continue(subject, last, level, found);
                }
            }
            _ => {}
        },
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Reports `continue_final_message` if the last message is not the assistant's.
fn nothing_to_continue<'b>(
    subject: &Subject<'b>,
    last: &'b Value,
    level: Severity,
    found: &mut Found<'b>,
) {
    let continues = subject.member("continue_final_message");
    if let Some(continues) = continues.filter(|it| is_true(Some(it)) && !is_assistant(last)) {
        found
            .at(
                continues,
                "the last message is not the assistant's, so there is no answer to continue",
            )
            .level(level)
            .help("leave it out, or end with an assistant message that contains the beginning of the answer");
    }
}

fn is_assistant(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == "assistant")
}

fn is_true(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(true))
}

fn anthropic<'b>(subject: &Subject<'b>, last: &'b Value, found: &mut Found<'b>) {
    if !is_assistant(last) {
        return;
    }
    let content = last.get("content");
    let end = elements(content)
        .last()
        .map_or(content, |block| block.get("text"));
    if let Some(value) = end
        && value
            .as_str()
            .is_some_and(|text| text.ends_with(char::is_whitespace) && !text.trim().is_empty())
    {
        found
            .at(
                value,
                "the text of the last assistant message ends with whitespace",
            )
            .help("trim the end of the text");
    }
    let format = answer_format(subject).filter(|format| !format.is_null());
    let goes_on = is_paused(last)
        || elements(content)
            .iter()
            .any(|block| is_type(block, "tool_use"));
    // `protocol/model-prefill` already reports models that reject a prefill.
    if format.is_some() && !goes_on && subject.facts.refuses(Property::Prefill).is_none() {
        let note = found.at(
            last,
            "the last message is the assistant's, which Claude does not continue if an output format is set",
        );
        note.help("end with a user message, or remove the output format");
        return;
    }
    let is_thinking = subject
        .member("thinking")
        .and_then(|thinking| thinking.get("type"))
        == Some(&"enabled".into());
    let kinds: Vec<String> = elements(content).iter().map(kind).collect();
    let begins_with_thinking = kinds.first().is_some_and(|kind| kind.ends_with("thinking"));
    if is_thinking && !begins_with_thinking && !kinds.iter().any(|kind| kind == "tool_use") {
        let note =
            found.at(last, "thinking is on, but the last message is an assistant message that does not begin with thinking");
        note.help("end with a user message, or turn thinking off");
    }
}

fn kind(block: &Value) -> String {
    block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn mistral<'b>(before: &'b [Value], last: &'b Value, found: &mut Found<'b>) {
    for message in before
        .iter()
        .filter(|message| is_true(message.get("prefix")))
    {
        let note = found.at_member(message, "prefix", "only the last message can be a prefix");
        note.help("leave out `prefix` in all other messages");
    }
    if last.get("role").is_some_and(|role| role == "system") {
        let note = found.at(last, "the last message cannot be a system message");
        note.help("end with a user or tool message");
    }
    let is_alone = before.is_empty();
    let has_calls = !elements(last.get("tool_calls")).is_empty();
    if is_assistant(last) && !is_true(last.get("prefix")) && !has_calls && !is_alone {
        let note = found.at(
            last,
            "the last message has the role `assistant`, but no `\"prefix\": true`",
        );
        note.help("end with a user or tool message, or write `\"prefix\": true`");
    }
}

/// Reports a system message that comes last, for GitHub Copilot.
fn copilot<'b>(last: &'b Value, found: &mut Found<'b>) {
    if last.get("role").is_some_and(|role| role == "system") {
        found
            .at(
                last,
                "a report says that GitHub Copilot requires a user message after the system message",
            )
            .warning()
            .help("put it at the beginning, or end with a user turn");
    }
}

fn snowflake<'b>(subject: &Subject<'b>, last: &'b Value, found: &mut Found<'b>) {
    let has_tools = !elements(subject.member("tools")).is_empty();
    if is_assistant(last) && has_tools {
        found
            .at(
                last,
                "the last message has the role `assistant`; a report says that Snowflake rejects it together with `tools`",
            )
            .warning()
            .help("end with a user or tool message");
    }
}

fn deepseek<'b>(subject: &Subject<'b>, last: &'b Value, found: &mut Found<'b>) {
    let has_calls = !elements(last.get("tool_calls")).is_empty();
    // `protocol/model-prefill` already reports models that reject a prefill.
    let is_told = subject.facts.refuses(Property::Prefill).is_some();
    if !is_assistant(last) || is_true(last.get("prefix")) || has_calls || is_told {
        return;
    }
    let note = found.at(
        last,
        "the last message has the role `assistant`; without `prefix`, the model does not continue it",
    );
    note.warning()
        .help("end with a user message, or write `\"prefix\": true` and use the beta endpoint");
}

fn llamacpp<'b>(subject: &Subject<'b>, last: &'b Value, found: &mut Found<'b>) {
    if !is_assistant(last) {
        return;
    }
    if let Some(calls) = last
        .get("tool_calls")
        .filter(|calls| !elements(Some(*calls)).is_empty())
    {
        let note = found.at(
            calls,
            "the last message has the role `assistant` and contains calls; the server cannot continue it",
        );
        note.help("add the results of these calls after this message");
    }
    let thinks = subject
        .member("chat_template_kwargs")
        .and_then(|arguments| arguments.get("enable_thinking"));
    if is_true(thinks) {
        let note = found.at(
            last,
            "the last message has the role `assistant`, which is not allowed with `enable_thinking`",
        );
        note.help("end with a user message, or turn thinking off");
    } else if thinks.is_none() && subject.facts.is(Property::ThinksByDefault) {
        let note = found.at(
            last,
            "the last message has the role `assistant`, which llama.cpp rejects while the model thinks",
        );
        note.warning()
            .help("end with a user message, or set `enable_thinking` to `false` in `chat_template_kwargs`");
    }
}
