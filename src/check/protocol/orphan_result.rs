//! `protocol/orphan-result`: a tool result without its call.

use super::pairing::{Answers, Pairs, is_refused};
use super::{Found, Subject, body_rule};
use crate::check::history::{Kind, Outcome, Part, text_of};
use crate::provider::TurnForm;
use crate::text::cut;

body_rule! {
    Error "protocol/orphan-result", "a tool result has no matching call",
    "A result refers to a call that the model made directly before. APIs reject a result whose call was dropped or has a different id; \
     local and unknown servers accept it (reported as a warning). Usually a template leaves out assistant messages without text, together \
     with their calls. A result that comes too late is reported at its call: `protocol/unanswered-call`. Gemini counts the \
     responses to a turn's calls, and accepts one with another name (reported as a warning).\n\n\
     * wrong: `user`, then `tool`\n\
     * right: `user`, assistant with `tool_calls`, then `tool`\n\n\
     A result of a tool that Anthropic runs itself (`web_search_tool_result`, …) comes after its `server_tool_use`, in the same message or, \
     after a pause, in a later one.",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral requires a result to follow its call",
        "anthropics/claude-code#18947":
            "Claude: *unexpected `tool_use_id` found in `tool_result` blocks*",
        "anthropics/claude-code#62577":
            "Claude: *must have a corresponding `server_tool_use` block before it*",
        "anthropics/claude-code#64383": "Claude: the same error",
        "langchain-ai/langchain#27799": "Gemini requires a response right after its call",
        "recorded: docker-agent, e2e/testdata/cassettes/TestExec_Gemini_ToolCall.yaml":
            "Gemini accepted a response with another name",
        "agentjido/req_llm#966":
            "OpenAI: *must be a response to a preceding message with 'tool_calls'*",
        "vercel/ai#8216": "OpenAI: *No tool call found for function call output*",
        "continuedev/continue#11785": "OpenAI: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.wire.facts().turns == TurnForm::Blocks {
        server_results(subject, found);
    }
    let answers = Answers::of(subject);
    if answers == Answers::Anywhere || subject.is_continued() {
        return;
    }
    let is_told = |result: &Outcome<'_>| {
        (result.id.is_some() || !subject.wire.facts().has_ids)
            && !answers_other_item(subject, result.id)
    };
    let pairs = Pairs::of(subject.history(), answers);
    for stray in pairs
        .strays
        .iter()
        .filter(|stray| !stray.is_second && is_told(&stray.result))
    {
        let note = found.at(stray.value, message(&stray.result));
        let note = if is_refused(subject) {
            note
        } else {
            note.warning()
        };
        note.help(
            "if a result is kept, keep the message that calls the tool too, with the same id",
        );
    }
    for call in &pairs.calls {
        if let (Some(result), Some(name)) = (call.misnamed, call.call.name) {
            let message = format!(
                "this response stands in place of that of `{}`, but has another name: Gemini accepts it, but the model may not know what \
                 it answers",
                cut(name, 60)
            );
            found
                .at(result, message)
                .warning()
                .help("write the name of the called function");
        }
    }
}

/// Checks results of tools that the server runs. Each result must come after its call, which is in
/// the same message or, if the turn was paused, in an earlier one.
fn server_results<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let mut calls: Vec<&str> = Vec::new();
    for (_, part) in subject.history().parts() {
        match part.kind {
            Kind::Other("server_tool_use" | "mcp_tool_use") => {
                calls.extend(text_of(part.value, "id"));
            }
            Kind::Other(kind) if kind.ends_with("_tool_result") => {
                let stray = text_of(part.value, "tool_use_id").filter(|id| !calls.contains(id));
                if let Some(id) = stray {
                    let message = format!(
                        "the result of `{}` has no `server_tool_use` before it",
                        cut(id, 60)
                    );
                    let note = found.at(part.value, message);
                    let note = if is_refused(subject) {
                        note
                    } else {
                        note.warning()
                    };
                    note.help("send the call back before its result, or leave both out");
                }
            }
            _ => {}
        }
    }
}

/// Returns `true` if the ID belongs to an item of a different kind: the Responses API also accepts
/// a `function_call_output` for a `tool_search_call`.
fn answers_other_item(subject: &Subject<'_>, id: Option<&str>) -> bool {
    subject.wire.facts().turns == TurnForm::Items
        && id.is_some()
        && subject
            .history()
            .parts()
            .any(|(_, part)| is_other_with_id(part, id))
}

fn is_other_with_id(part: &Part<'_>, id: Option<&str>) -> bool {
    matches!(part.kind, Kind::Other(_)) && text_of(part.value, "call_id") == id
}

fn message(result: &Outcome<'_>) -> String {
    match result.id.or(result.name) {
        Some(id) => format!(
            "the result of `{}` has no matching call before it",
            cut(id, 60)
        ),
        None => "this result has no matching call before it".to_owned(),
    }
}
