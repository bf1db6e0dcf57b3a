//! `protocol/result-order`: tool results with other content before or between them.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Role};
use crate::diag::Severity;
use crate::provider::TurnForm;
use crate::repo::Property;

body_rule! {
    Error "protocol/result-order", "a message with tool results has other content in the wrong place",
    "In a message with results, the results come first. Anthropic rejects text, images or documents before or between `tool_result` blocks \
     as if the results were missing (*tool_use ids were found without tool_result blocks immediately after*); content after them is \
     fine.\n\n\
     Gemini 3 and later reject a final content that has anything after the responses, with a misleading error: *Requests ending with a \
     model turn are not supported*. In earlier contents, and for other models, this is a warning. `model-families.toml` lists the models \
     that reject it (`mixed_results = false`). A separate content for the text is always accepted.\n\n\
     * wrong, Anthropic: `[text, tool_result]`\n\
     * right, Anthropic: `[tool_result, tool_result, text]`\n\
     * wrong, Gemini: `[functionResponse, text]`\n\
     * right, Gemini: `[functionResponse]`, then a content with the text",
    of AnthropicMessages, GoogleGenerateContent;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls":
            "Claude requires results to come first in their message",
        "google/oss-rebuild#1559": "Gemini 3.6 rejects content after responses",
        "agentgateway/agentgateway#2811": "gemini-3.6-flash rejects it, gemini-3.5-flash accepts it",
        "BerriAI/litellm#35236": "Gemini rejects an image after responses",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let entries = &subject.history().entries;
    for (at, entry) in entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.role != Role::Assistant)
    {
        match subject.wire.facts().turns {
            TurnForm::Blocks => before_results(subject, entry, found),
            TurnForm::Contents => after_responses(subject, entry, at + 1 == entries.len(), found),
            TurnForm::Messages | TurnForm::Items | TurnForm::None => {}
        }
    }
}

fn before_results<'b>(subject: &Subject<'b>, entry: &Entry<'b>, found: &mut Found<'b>) {
    let Some(last) = entry
        .parts
        .iter()
        .rposition(|part| part.outcome().is_some())
    else {
        return;
    };
    let Some(early) = entry.parts[..last]
        .iter()
        .find(|part| part.outcome().is_none())
    else {
        return;
    };
    let note = found.at(
        early.value,
        "this comes before a `tool_result` in the same message",
    );
    let note = if subject.server.is_claude() {
        note
    } else {
        note.warning()
    };
    note.help("put all results first, and other content after them");
}

fn after_responses<'b>(
    subject: &Subject<'b>,
    entry: &Entry<'b>,
    is_last: bool,
    found: &mut Found<'b>,
) {
    let Some(last) = entry
        .parts
        .iter()
        .rposition(|part| part.outcome().is_some())
    else {
        return;
    };
    let Some(late) = entry.parts.get(last + 1) else {
        return;
    };
    let refused = subject
        .facts
        .refuses(Property::MixedResults)
        .filter(|_| is_last);
    let note = found.at(
        late.value,
        "this comes after the function responses in the same content",
    );
    note.level(refused.unwrap_or(Severity::Warning))
        .help("put it into a separate content after the responses");
}
