//! `protocol/result-order`: tool results with other content before or between them.

use super::{Found, Subject, body_rule};
use crate::check::history::{Entry, Role};
use crate::diag::Severity;
use crate::provider::TurnForm;
use crate::repo::Property;

body_rule! {
    Error "protocol/result-order", "something is in the wrong place of a message with tool results",
    "In a message with results, the results come first. Anthropic refuses text, images or documents before or between `tool_result` \
     blocks, as if the results were missing (*tool_use ids were found without tool_result blocks immediately after*); what follows \
     them is fine.\n\nGemini 3 and later refuse a last content with something behind the responses, with an error \
     that does not say so: *Requests ending with a model turn are not supported*. In contents before the last one, and for other \
     models, it is a warning. Which models refuse it stands in `model-families.toml` (`mixed_results = false`). A content of its own is right everywhere.\n\n\
     * wrong, Anthropic: `[text, tool_result]`\n\
     * right, Anthropic: `[tool_result, tool_result, text]`\n\
     * wrong, Gemini: `[functionResponse, text]`\n\
     * right, Gemini: `[functionResponse]`, then a content with the text",
    of AnthropicMessages, GoogleGenerateContent;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls":
            "Claude: results come first in their message",
        "google/oss-rebuild#1559": "Gemini 3.6 refuses what comes after responses",
        "agentgateway/agentgateway#2811": "gemini-3.6-flash refuses, gemini-3.5-flash takes it",
        "BerriAI/litellm#35236": "Gemini: an image after responses",
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
        "this comes before a `tool_result` of the same message",
    );
    let note = if subject.server.is_claude() {
        note
    } else {
        note.warning()
    };
    note.help("put all results first, and what else there is after them");
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
        "this comes after the function responses of the same content",
    );
    note.level(refused.unwrap_or(Severity::Warning))
        .help("put it into a content of its own after the responses");
}
