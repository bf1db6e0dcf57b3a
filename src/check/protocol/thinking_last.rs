//! `protocol/thinking-last`: a turn of the model that ends with its thinking.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Part, Role};
use crate::provider::{Server, WireFormat};

body_rule! {
    History, Error "protocol/thinking-last", "a turn of the model ends with its thinking",
    "Thinking leads to something: a text or a call. Anthropic refuses an assistant message whose last block is `thinking` or \
     `redacted_thinking`. OpenAI's Responses API refuses a reasoning item that no message or call follows (*was provided without its \
     required following item*); whether it does so for items without an `id` is not known, which is a warning. Answers that were cut \
     off are often of this kind, and so is what remains when a template leaves out empty texts.\n\n\
     * wrong: `[thinking]`\n\
     * right: `[thinking, text]`, or no message at all\n\n\
     Sources, seen in November 2026: tailcallhq/forgecode#2107, #3073 (*The final block in an assistant message cannot be \
     `thinking`*); vercel/ai#7099."
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match (subject.wire, subject.server) {
        (WireFormat::AnthropicMessages, _) => anthropic(subject, found),
        (WireFormat::OpenAiResponses, Server::OpenAi) => responses(&subject.history().entries, found),
        _ => {}
    }
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in subject.history().entries.iter().filter(|entry| entry.role == Role::Assistant) {
        let Some(last) = entry.parts.last().filter(|part| part.is_thinking()) else { continue };
        let note = found.at(last.value, "the assistant message ends with thinking");
        let note = if subject.server == Server::Anthropic { note } else { note.warning() };
        note.help("leave out thinking that no text and no call follows, and the message if nothing is left");
    }
}

fn responses<'b>(entries: &[Entry<'b>], found: &mut Found<'b>) {
    let is_reasoning = |entry: &Entry<'_>| entry.parts.iter().any(Part::is_thinking);
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| is_reasoning(entry)) {
        let next = entries.get(at + 1).map(|next| next.role);
        if matches!(next, Some(Role::Assistant | Role::Other)) {
            continue;
        }
        let note = found.at(entry.value, "no message and no call of the model follows this reasoning item");
        let note = if entry.value.get("id").is_some_and(|id| !id.is_null()) { note } else { note.warning() };
        note.help("send reasoning together with the item that it led to, or leave it out");
    }
}
