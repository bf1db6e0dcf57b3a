//! `protocol/citations`: citations that are enabled for only some documents, or that are in a user
//! message.

use serde_json::Value;

use super::super::history::{Kind, Role, elements};
use super::schemas::answer_format;
use super::{Found, Subject, body_rule};
use crate::repo::Property;

body_rule! {
    Error "protocol/citations", "citations are enabled on only some documents, or are in user text",
    "Anthropic cites either all documents of a request or none: it rejects a request in which `citations.enabled` is true on one document \
     and not on another.\n\n\
     * wrong: two documents, one with `\"citations\": {\"enabled\": true}`\n\
     * right: `citations` on both documents, or on neither\n\n\
     Citations are interleaved with text, so they are incompatible with a response schema (`output_config.format`): the API rejects the \
     combination.\n\n\
     From `anthropic-version` 2026-10-21 on, user text, including the text in search results, cannot have citations; citations in the \
     assistant's text are sent back unchanged.",
    of AnthropicMessages;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/citations":
            "Claude cites all documents of a request, or none",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs":
            "Claude answers 400 if citations are enabled with `output_config.format`",
        "prism-php/prism#967": "Claude rejects citations with `output_config.format`",
        "https://platform.claude.com/docs/en/api/migration-2026-10-21":
            "user text cannot have citations",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    by_user(subject, found);
    let documents = subject
        .history()
        .parts()
        .filter(|(_, part)| matches!(part.kind, Kind::Media));
    let documents = documents
        .map(|(_, part)| part.value)
        .filter(|value| value.get("type") == Some(&"document".into()));
    let is_formed = answer_format(subject).is_some_and(|format| !format.is_null());
    let mut first = None;
    for document in documents {
        let cites = document.pointer("/citations/enabled") == Some(&Value::Bool(true));
        if cites && is_formed {
            found
                .at_member(
                    document,
                    "citations",
                    "citations cannot be combined with a response schema",
                )
                .help("turn citations off, or remove the response schema");
        } else if *first.get_or_insert(cites) != cites {
            found
                .at_member(
                    document,
                    "citations",
                    "citations must be enabled on all documents of a request or on none",
                )
                .help("use the same setting for every document");
        }
    }
}

/// Reports citations in user messages.
fn by_user<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(severity) = subject.facts.refuses(Property::UserCitations) else {
        return;
    };
    let of_user = subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role == Role::User);
    let of_user = of_user
        .flat_map(|entry| &entry.parts)
        .map(|part| part.value);
    let inner = |block: &'b Value| {
        elements(
            block
                .get("content")
                .filter(|_| is_of_type(block, "search_result")),
        )
    };
    let texts = of_user.flat_map(|block| std::iter::once(block).chain(inner(block)));
    for text in texts
        .filter(|block| is_of_type(block, "text") && !elements(block.get("citations")).is_empty())
    {
        let note = found.at_member(
            text,
            "citations",
            "user text cannot have citations from `anthropic-version` 2026-10-21 on",
        );
        note.of_model()
            .level(severity)
            .help("remove them here; keep those in the assistant's text");
    }
}

fn is_of_type(block: &Value, name: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(name)
}
