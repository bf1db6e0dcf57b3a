//! `protocol/unanswered-call`: a tool call without its result.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pairing::{Answers, MatchedCall, Pairs, is_refused};
use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, History, Kind, Part, Role, text_of};
use crate::provider::{Server, TurnForm};

body_rule! {
    Error "protocol/unanswered-call", "a tool call has no result where the API expects it",
    "After a tool call, the model waits for the result. Anthropic expects all results in the next message, Chat Completions and Mistral \
     in tool messages before anything else, Gemini the same number of responses as calls in the next content, and the Responses API an \
     output with the same `call_id` somewhere later. Results in several messages in a row are a warning for Anthropic's own API and for \
     Gemini's own API (unlike Vertex AI): reports say that they are rejected, but recordings show that Claude Sonnet 4 and Gemini 2.5 \
     Flash accepted them. Anthropic and Gemini merge consecutive messages from the model: there, two messages \
     with calls are one turn. DeepSeek converts the items of the Responses API to messages, and expects the outputs directly after the \
     calls of a message. If a message comes in between, or a template drops a result, the API rejects the request. Local and unknown \
     servers accept such a request, but the model has to guess the result (reported as a warning).\n\n\
     A call to a tool that Anthropic runs itself has its result in the same message, or in a later one after a pause.\n\n\
     The finding points to the call. If one message separates the call from its result, the finding points to that message; if Gemini gets \
     fewer responses than there are calls, it points to the content with the responses.\n\n\
     * wrong: assistant with `tool_calls`, then `user`\n\
     * wrong: Vertex AI, two calls, and their responses in two contents\n\
     * right: assistant with `tool_calls`, `tool` for each of them, then `user`",
    seen "2026-11" {
        "recorded: pydantic-ai, test_cross_provider_capability_replay":
            "Claude and Gemini accept calls in two messages in a row, followed by all results",
        "recorded: pydantic-ai, test_deepseek_responses_rejects_interleaved_function_calls":
            "DeepSeek: *No tool output found for tool call*",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls":
            "Claude requires results to follow immediately",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/parallel-tool-use":
            "Claude requires all results in one message",
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral requires a result for every call",
        "anthropics/claude-code#8210": "Claude: *ids were found without `tool_result` blocks*",
        "AnswerDotAI/lisette#108":
            "Claude: *found without a corresponding `web_search_tool_result` block*",
        "vercel/ai#13046": "Claude: the same error",
        "recorded: ruby_llm-mcp, spec/fixtures/vcr_cassettes/with_stdio-native_with_anthropic_claude-sonnet-4_mixed_parameter_types_handles_both_RubyLLM_Parameter_and_MCP_Parameter_tools_in_same_chat.yml":
            "Claude accepts results in two messages in a row (Sonnet 4)",
        "rowboatlabs/rowboat#378": "Claude rejects results that are spread over several messages",
        "MoonshotAI/kosong#45": "Claude rejects results that are spread over several messages",
        "langchain-ai/langchain#27799": "Gemini requires as many responses as calls",
        "recorded: crewAI, lib/crewai/tests/cassettes/agents/TestGeminiNativeToolCalling.test_gemini_parallel_native_tool_calling_test_crew.yaml":
            "Gemini's API accepts responses in several contents in a row (2.5 Flash)",
        "microsoft/semantic-kernel#10597": "Gemini rejects responses in several contents",
        "docker/docker-agent#2959": "Vertex AI rejects responses in several contents",
        "GoogleCloudPlatform/generative-ai#368": "Gemini: *number of function response parts*",
        "BerriAI/litellm#10083": "OpenAI: *must be followed by tool messages*",
        "bytedance/trae-agent#245": "OpenAI: *No tool output found*",
        "microsoft/agent-framework#8663": "OpenAI: *No tool output found for shell call*",
        "QwenLM/qwen-code#606": "Qwen: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.wire.facts().turns == TurnForm::Blocks {
        server_calls(subject, found);
    }
    let answers = Answers::of(subject);
    if answers == Answers::Anywhere {
        return;
    }
    let history = subject.history();
    let pairs = Pairs::of(history, answers);
    let mut told = BTreeSet::new();
    let is_told =
        |asked: &&MatchedCall<'_>| asked.call.id.is_some() || !subject.wire.facts().has_ids;
    for asked in pairs
        .calls
        .iter()
        .filter(|asked| !asked.is_answered())
        .filter(is_told)
    {
        let at = place(subject, history, answers, asked);
        if at.is_some_and(|at| !told.insert(at)) {
            continue;
        }
        let entry = at.map(|at| &history.entries[at]);
        let value = entry.map_or(asked.value, |entry| entry.value);
        if is_spread(subject, history, asked) {
            spread(subject, value, asked, found);
            continue;
        }
        let note = found.at(value, message(&pairs, answers, asked, entry));
        let note = if is_refused(subject) {
            note
        } else {
            note.warning()
        };
        note.help(
            "render every result directly after its call, and other content after the results",
        );
    }
}

/// Returns `true` if the result of a call to a tool is in one of several messages in a row, which
/// contain only results; other parts may follow the results in the last one. Chat Completions has
/// one message for each result.
fn is_spread(subject: &Subject<'_>, history: &History<'_>, asked: &MatchedCall<'_>) -> bool {
    Answers::of(subject) == Answers::Next
        && asked.answer.is_some_and(|(late, _)| {
            let is_first_in_last = history.entries[late]
                .parts
                .first()
                .is_some_and(|part| part.outcome().is_some());
            is_first_in_last
                && history.entries[asked.entry + 1..late]
                    .iter()
                    .all(|entry| responses(entry) > 0 && responses(entry) == entry.parts.len())
        })
}

fn spread<'b>(
    subject: &Subject<'b>,
    value: &'b Value,
    asked: &MatchedCall<'b>,
    found: &mut Found<'b>,
) {
    let name = crate::text::cut(asked.call.name.unwrap_or("a tool"), 60);
    let (message, help) = match subject.wire.facts().turns {
        TurnForm::Contents => (
            format!("the response of `{name}` is not in this content, but in a later one"),
            "put the responses to all calls of a turn into one content",
        ),
        TurnForm::Blocks | TurnForm::Messages | TurnForm::Items | TurnForm::None => (
            format!("the result of `{name}` is not in the next message, but in a later one"),
            "put the results of all calls of a turn into one message",
        ),
    };
    let note = found.at(value, message);
    let note = match subject.server {
        // Recorded: crewAI, agents/TestGeminiNativeToolCalling, with Gemini 2.5 Flash;
        // ruby_llm-mcp, mixed_parameter_types, with Claude Sonnet 4.
        Server::Google | Server::Anthropic => note.warning(),
        _ => note,
    };
    note.help(help);
}

/// Reports calls to server tools that have no results. In the last assistant message, such calls
/// may be open because the turn was paused.
fn server_calls<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let history = subject.history();
    let paused = history
        .entries
        .iter()
        .rposition(|entry| entry.role == Role::Assistant)
        .filter(|last| may_go_on(&history.entries, *last));
    let answered: BTreeSet<&str> = history
        .parts()
        .filter(|(_, part)| is_server_result(part))
        .filter_map(|(_, part)| text_of(part.value, "tool_use_id"))
        .collect();
    for (at, part) in history.parts() {
        let is_open = matches!(part.kind, Kind::Other("server_tool_use"))
            && Some(at) != paused
            && text_of(part.value, "id").is_some_and(|id| !answered.contains(id));
        if !is_open {
            continue;
        }
        let name = crate::text::cut(text_of(part.value, "name").unwrap_or("a tool"), 60);
        let note = found.at(
            part.value,
            format!("the call to `{name}`, which the server runs, has no result after it"),
        );
        let note = if is_refused(subject) {
            note
        } else {
            note.warning()
        };
        note.help("send the result back after the call, or leave both out");
    }
}

/// Returns `true` if the turn of the last assistant message may continue, because no message
/// follows that message, or because it contains calls whose results follow.
fn may_go_on(entries: &[Entry<'_>], last: usize) -> bool {
    let has_calls = entries[last].parts.iter().any(|part| part.call().is_some());
    has_calls || last + 1 == entries.len()
}

fn is_server_result(part: &Part<'_>) -> bool {
    matches!(part.kind, Kind::Other(kind) if kind.ends_with("_tool_result"))
}

/// Returns the index of the entry to report: content with too few responses, or the only entry
/// between the call and its result. Returns `None` if the entry with the call itself is to be
/// reported.
fn place(
    subject: &Subject<'_>,
    history: &History<'_>,
    answers: Answers,
    asked: &MatchedCall<'_>,
) -> Option<usize> {
    let next = answers.start(&history.entries, asked.entry);
    let has_contents = subject.wire.facts().turns == TurnForm::Contents;
    if has_contents
        && history
            .entries
            .get(next)
            .is_some_and(|entry| responses(entry) > 0)
    {
        return Some(next);
    }
    let (late, _) = asked.answer?;
    let mut between =
        (answers.end(&history.entries, asked.entry).max(next)..late).collect::<Vec<_>>();
    if answers == Answers::Next {
        between = (next..late)
            .filter(|at| responses(&history.entries[*at]) == 0)
            .collect();
    }
    match between.as_slice() {
        [at] if late == at + 1 || matches!(answers, Answers::Following | Answers::BehindCalls) => {
            Some(*at)
        }
        _ => None,
    }
}

fn responses(entry: &Entry<'_>) -> usize {
    entry
        .parts
        .iter()
        .filter(|part| part.outcome().is_some())
        .count()
}

fn message(
    pairs: &Pairs<'_>,
    answers: Answers,
    asked: &MatchedCall<'_>,
    entry: Option<&Entry<'_>>,
) -> String {
    let name = crate::text::cut(asked.call.name.unwrap_or("a tool"), 60);
    match entry.map(responses) {
        Some(0) => format!("this comes between the call to `{name}` and its result"),
        Some(given) => {
            let calls = pairs
                .calls
                .iter()
                .filter(|other| other.entry == asked.entry)
                .count();
            format!(
                "{given} of {calls} calls are answered here: the response of `{name}` is missing"
            )
        }
        None => format!("the call to `{name}` has no result {}", answers.place()),
    }
}
