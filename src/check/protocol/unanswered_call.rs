//! `protocol/unanswered-call`: a tool call without its result.

use super::pairing::{Answers, is_refused};
use super::{Found, Subject, body_rule};
use crate::check::history::Call;

body_rule! {
    History, Error "protocol/unanswered-call", "a tool call has no result where the API looks for it",
    "A model that called a tool waits for what it gave. Anthropic wants every result in the next message, Chat Completions and \
     Mistral in tool messages before anything else, Gemini as many responses as calls in the next content, and the Responses API \
     an output with the same `call_id` later on. A message in between, or a result that a template drops, makes the API refuse the \
     request. Local and unknown servers take it, and the model has to guess: there it is a warning.\n\n\
     * wrong: assistant with `tool_calls`, then `user`\n\
     * right: assistant with `tool_calls`, `tool` for each of them, then `user`\n\n\
     Sources, seen in November 2026: Anthropic's page on handling tool calls; OpenAI's error *must be followed by tool messages*; \
     mistral-common's validator; Gemini's error *number of function response parts*; OpenAI's error *No tool output found*."
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let answers = Answers::of(subject.wire);
    if answers == Answers::Anywhere {
        return;
    }
    let history = subject.history();
    for (at, entry) in history.entries.iter().enumerate() {
        let calls: Vec<(&'b serde_json::Value, Call<'b>)> =
            entry.parts.iter().filter_map(|part| Some((part.value, part.call()?))).collect();
        if calls.is_empty() {
            continue;
        }
        let mut results: Vec<_> = answers.results(history, at).collect();
        for (value, call) in calls {
            // Formats without ids pair by order and name.
            let answered = results.iter().position(|result| match (call.id, result.id) {
                (Some(id), Some(of)) => id == of,
                (None, None) => call.name == result.name || result.name.is_none(),
                _ => call.name == result.name && call.name.is_some(),
            });
            match answered {
                Some(index) => drop(results.swap_remove(index)),
                None => report(subject, found, value, &call, answers),
            }
        }
    }
}

fn report<'b>(
    subject: &Subject<'b>,
    found: &mut Found<'b>,
    value: &'b serde_json::Value,
    call: &Call<'b>,
    answers: Answers,
) {
    let message = match call.name {
        Some(name) => format!("the call of `{}` has no result {}", crate::text::cut(name, 60), answers.place()),
        None => format!("this call has no result {}", answers.place()),
    };
    let note = found.at(value, message);
    let note = if is_refused(subject) { note } else { note.warning() };
    note.help("render every result directly behind its call, and what else there is after them");
}
