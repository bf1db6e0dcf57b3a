//! `protocol/context-window`: a request that exceeds the model's context window.

use serde_json::{Map, Value};

use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::diag::Severity;
use crate::provider::{Server, Site};
use crate::repo::Property;
use crate::text::{cut, thousands};
use crate::tokens::{self, TokenEstimate};

body_rule! {
    Error "protocol/context-window", "a request does not fit into the model's context window",
    "A model can process a limited number of tokens at once, including its answer. Older OpenAI and Anthropic models also reject a \
     request if the input plus `max_tokens` exceeds the context window: *This model's maximum context length is 8192 tokens. However, \
     you requested 8300 tokens (108 in the messages, 8192 in the completion)*. GPT-5 reserves a part of its window for the answer: *Input \
     tokens exceed the configured limit of 272000 tokens*. `model-families.toml` lists the windows (`context_window`, \
     `longest_request`, `answer_counts`), each with its source.\n\n\
     * wrong: 300,000 words for a model with a window of 200,000 tokens\n\
     * right: a summary of the conversation, or a model with a larger window\n\
     * wrong: `\"max_tokens\": 8192` for `gpt-4`\n\
     * right: `\"max_tokens\": 4096`\n\n\
     This is an error if 70 % of the estimated tokens in all text exceed the window. The margin is twice the measured error of the \
     estimate. Images, documents and text that the server adds are not counted. If only the whole estimate exceeds the window, this is a \
     warning. If `max_tokens` alone exceeds the window, this is also a warning, except for llama.cpp and the servers that use it. \
     OpenRouter adds `max_tokens` to the input for every model. Nothing is reported if the server shortens the history itself \
     (`context_management`, `\"truncation\": \"auto\"`; for OpenRouter, `transforms` and the compression plugin). vLLM's \
     `truncate_prompt_tokens` must not exceed the window either (reported as a warning). Reasoning from earlier turns and tools that are \
     loaded later are not counted.",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/context-windows":
            "Claude documents its windows, which content counts, and that models up to 4.1 count `max_tokens`",
        "recorded: ruby_llm, chat_real_error_scenarios_openai_gpt-5-nano_handles_context_length_exceeded_errors.yml":
            "OpenAI: *Your input exceeds the context window of this model*",
        "danny-avila/LibreChat#1571": "OpenAI: *your messages resulted in 8210 tokens*",
        "gencay/vscode-chatgpt#184": "OpenAI: *121 in the messages, 4096 in the completion*",
        "cline/cline#5474": "OpenAI: *Input tokens exceed the configured limit of 272000 tokens*",
        "RooCodeInc/Roo-Code#6856": "OpenAI: the same error, GPT-5 mini",
        "MoonshotAI/kimi-code#476":
            "OpenRouter: *This endpoint's maximum context length is …*, for `max_tokens`",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/renderers/params.py":
            "vLLM: *max_tokens … cannot be greater than max_model_len*",
        "cline/cline#3120": "xAI: *maximum prompt length is 131072*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(limit) = limit(subject) else {
        return;
    };
    if request(subject, &limit, found) {
        return;
    }
    if let Some((window, _)) = subject.facts.context_window() {
        answer_alone(subject, tokens_of(window), found);
        prompt_cut(subject, tokens_of(window), found);
    }
}

/// Reports a request that exceeds the limit, including its answer if the answer counts. Returns
/// `true` if the limit is exceeded.
fn request<'b>(subject: &Subject<'b>, limit: &Limit, found: &mut Found<'b>) -> bool {
    let Limit {
        tokens: window,
        level,
        what,
    } = *limit;
    let answer = longest_answer(subject).filter(|_| answer_counts(subject));
    let members =
        || tokens::members(subject.wire).filter_map(|name| Some((name, subject.member(name)?)));
    let bytes: u64 = members().map(|(_, value)| size(value)).sum();
    let asked = answer.map_or(0, |(_, tokens)| tokens);
    // A token has at least one byte, so a body with fewer bytes cannot be too long.
    if bytes.saturating_add(asked) <= window || is_shortened(subject) {
        return false;
    }
    let body: Value = members()
        .map(|(name, value)| (name.to_owned(), read(value)))
        .collect::<Map<_, _>>()
        .into();
    let model = subject.model.unwrap_or_default();
    let least = tokens::at_least(&body, subject.wire, model);
    let about = TokenEstimate::of(&body, subject.wire, model).total();
    let is_sure = least.saturating_add(asked) > window;
    if !is_sure && about.saturating_add(asked) <= window {
        return false;
    }
    let name = name_of(subject);
    let of_window = thousands(window);
    let of_request = thousands(about);
    let answer = answer.filter(|_| least <= window && about <= window);
    let note = match answer {
        Some((value, asked)) => found.at(
            value,
            format!(
                "the request (about {of_request} tokens) and the answer ({}) exceed the context window of {name} ({of_window} tokens)",
                thousands(asked)
            ),
        ),
        None => {
            let message =
                format!("the request has about {of_request} tokens, but {what} {name} has only {of_window}");
            match longest(subject) {
                Some(value) => found.at(value, message),
                None => found.at_top(message),
            }
        }
    };
    let note = if is_sure {
        note.level(level)
    } else {
        note.warning()
    };
    note.of_model().help(match answer {
        Some(_) => SHORTER_ANSWER,
        None => "shorten or summarise the history, or choose a model with a larger window",
    });
    true
}

const SHORTER_ANSWER: &str = "ask for a shorter answer, or remove the field";

/// Reports an answer limit that exceeds the context window even without the input. llama.cpp and
/// the servers that use it stop at the end of the window instead.
fn answer_alone<'b>(subject: &Subject<'b>, window: u64, found: &mut Found<'b>) {
    let is_of_llamacpp = matches!(
        subject.server,
        Server::LmStudio | Server::Ollama | Server::LlamaCpp
    ) || subject.headers.is_at(Site::DockerModelRunner);
    let answer = longest_answer(subject).filter(|(_, tokens)| *tokens > window);
    if let Some((value, answer)) = answer
        && !is_of_llamacpp
        && !is_shortened(subject)
    {
        let message = format!(
            "an answer of {} tokens does not fit into the context window of {} ({} tokens)",
            thousands(answer),
            name_of(subject),
            thousands(window)
        );
        let note = found.at(value, message).warning();
        note.of_model().help(SHORTER_ANSWER);
    }
}

/// Reports `truncate_prompt_tokens`, the length to which vLLM cuts a prompt, if it exceeds the
/// context window.
fn prompt_cut<'b>(subject: &Subject<'b>, window: u64, found: &mut Found<'b>) {
    let kept = subject
        .member("truncate_prompt_tokens")
        .filter(|kept| kept.as_u64().is_some_and(|tokens| tokens > window));
    if let Some(kept) = kept {
        let message = format!(
            "the context window of {} has only {} tokens",
            name_of(subject),
            thousands(window)
        );
        let note = found.at(kept, message).warning();
        note.of_model()
            .help("keep fewer tokens of the prompt, or set -1");
    }
}

/// Returns the model's name for use in messages.
fn name_of<'b>(subject: &Subject<'b>) -> std::borrow::Cow<'b, str> {
    cut(subject.model.unwrap_or_default(), 60)
}

/// Returns `true` if the answer's limit counts towards the context window: for the models that
/// `model-families.toml` lists, and for `OpenRouter`.
fn answer_counts(subject: &Subject<'_>) -> bool {
    subject.server == Server::OpenRouter || subject.facts.is(Property::AnswerCounts)
}

/// The maximum length of a request.
struct Limit {
    /// The number of tokens.
    tokens: u64,
    /// The severity of exceeding the limit.
    level: Severity,
    /// The name of the limit, which precedes the model's name in the message.
    what: &'static str,
}

/// Returns the maximum length of a request: the context window, or less if a part of the window is
/// reserved for the answer.
fn limit(subject: &Subject<'_>) -> Option<Limit> {
    let longest = subject.facts.value(|family| family.longest_request);
    let window = subject.facts.context_window().or_else(|| {
        let elsewhere = subject.facts.window_elsewhere()?;
        Some((elsewhere, Severity::Warning))
    });
    let (tokens, level, what) = match (longest, window) {
        (Some((tokens, level)), _) => (
            tokens,
            level,
            "the part of the context window that is left for requests to",
        ),
        (None, Some((tokens, level))) => (tokens, level, "the context window of"),
        (None, None) => return None,
    };
    Some(Limit {
        tokens: tokens_of(tokens),
        level,
        what,
    })
}

/// Returns a family's number of tokens; a negative number means that there is no limit.
fn tokens_of(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns the member that limits the length of the answer, and the limit.
fn longest_answer<'b>(subject: &Subject<'b>) -> Option<(&'b Value, u64)> {
    let names = subject.wire.facts().longest_answer;
    names
        .iter()
        .find_map(|name| subject.member(name))
        .and_then(|value| Some((value, value.as_u64()?)))
}

/// Returns `true` if the server shortens a request that is too long. OpenRouter:
/// <https://openrouter.ai/docs/guides/features/message-transforms>.
fn is_shortened(subject: &Subject<'_>) -> bool {
    subject.member("context_management").is_some()
        || subject.member("truncation").and_then(Value::as_str) == Some("auto")
        || subject.server == Server::OpenRouter && is_compressed(subject)
}

fn is_compressed(subject: &Subject<'_>) -> bool {
    let transforms = elements(subject.member("transforms"));
    let plugins = elements(subject.member("plugins"));
    transforms.iter().any(|name| name == "middle-out")
        || plugins.iter().any(|plugin| {
            plugin
                .get("id")
                .is_some_and(|id| id == "context-compression")
                && plugin.get("enabled") != Some(&Value::Bool(false))
        })
}

/// Returns the largest of the members that count towards the context window.
fn longest<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    tokens::members(subject.wire)
        .filter_map(|name| subject.member(name))
        .max_by_key(|value| size(value))
}

/// Returns the total length of all strings and member names in a value, in bytes. Any other scalar
/// counts as 8 bytes.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() as u64 + size(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Returns a copy of a value with only the content that every server reads. Most servers drop
/// reasoning from earlier turns, and deferred tools are not loaded yet.
fn read(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements
            .iter()
            .filter(|element| !is_unread(element))
            .map(read)
            .collect(),
        Value::Object(members) => {
            let counted = members
                .iter()
                .filter(|(name, _)| !REASONING.contains(&name.as_str()));
            counted
                .map(|(name, value)| (name.clone(), read(value)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The names of message members, and the types of blocks and items, that contain reasoning.
const REASONING: [&str; 5] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "redacted_thinking",
];

fn is_unread(element: &Value) -> bool {
    element
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| REASONING.contains(&kind))
        || is_true("thought", element)
        || is_true("defer_loading", element)
}

fn is_true(name: &str, element: &Value) -> bool {
    element.get(name).and_then(Value::as_bool) == Some(true)
}
