//! `protocol/orphan-result`: a tool result without its call.

use super::pairing::{Answers, is_refused};
use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Outcome};

body_rule! {
    History, Error "protocol/orphan-result", "a tool result answers no call",
    "A result refers to a call that the model made directly before. One whose call was dropped, has another id or stands too far \
     away is refused by the APIs; local and unknown servers take it, which is a warning. Most often a template leaves out \
     assistant messages without text, and the calls with them.\n\n\
     * wrong: `user`, then `tool`\n\
     * right: `user`, assistant with `tool_calls`, then `tool`\n\n\
     Sources, seen in November 2026: Anthropic's error *unexpected `tool_use_id` found in `tool_result` blocks*; OpenAI's *messages \
     with role 'tool' must be a response to a preceding message with 'tool_calls'* and *No tool call found for function call \
     output*; mistral-common's validator; Gemini's *function response turn comes immediately after a function call turn*."
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let answers = Answers::of(subject.wire);
    if answers == Answers::Anywhere || subject.is_continued() {
        return;
    }
    let entries = &subject.history().entries;
    for (at, entry) in entries.iter().enumerate() {
        for part in &entry.parts {
            let Some(result) = part.outcome() else { continue };
            if calls_before(entries, at, answers).any(|entry| has_call(entry, &result)) {
                continue;
            }
            let note = found.at(part.value, message(&result));
            let note = if is_refused(subject) { note } else { note.warning() };
            note.help("keep the message that calls the tool whenever its result is kept, with the same id");
        }
    }
}

/// The entries whose calls the results of an entry may answer.
fn calls_before<'e, 'b>(
    entries: &'e [Entry<'b>],
    at: usize,
    answers: Answers,
) -> impl Iterator<Item = &'e Entry<'b>> + 'e {
    let before = &entries[..at];
    let first = match answers {
        Answers::Next => at.saturating_sub(1),
        Answers::Following => {
            let tools = before.iter().rev().take_while(|entry| entry.role == super::Role::Tool).count();
            (at - tools).saturating_sub(1)
        }
        Answers::Later | Answers::Anywhere => 0,
    };
    before[first..].iter()
}

fn has_call(entry: &Entry<'_>, result: &Outcome<'_>) -> bool {
    entry.parts.iter().filter_map(|part| part.call()).any(|call| match (call.id, result.id) {
        (Some(id), Some(of)) => id == of,
        _ => call.name == result.name || result.name.is_none(),
    })
}

fn message(result: &Outcome<'_>) -> String {
    match result.id.or(result.name) {
        Some(id) => format!("the result of `{}` answers no call before it", crate::text::cut(id, 60)),
        None => "this result answers no call before it".to_owned(),
    }
}
