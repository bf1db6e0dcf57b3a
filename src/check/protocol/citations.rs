//! `protocol/citations`: citations that are enabled for some documents only, or that a user message
//! contains.

use serde_json::Value;

use super::super::history::{Kind, Role, elements};
use super::{Found, Subject, body_rule};
use crate::repo::Property;

body_rule! {
    Error "protocol/citations", "citations are asked for on some documents only, or are on texts of the user",
    "Anthropic cites all documents of a request or none: it refuses a request in which `citations.enabled` is true on one document \
     and not on another.\n\n\
     * wrong: two documents, one with `\"citations\": {\"enabled\": true}`\n\
     * right: both with it, or none\n\n\
     Citations stand between texts, which a schema of the answer (`output_config.format`) has no place for: the API refuses both together.\n\n\
     From `anthropic-version` 2026-10-21 on, texts of the user carry no citations themselves, search results included; those that the \
     assistant gave go back as they came.",
    of AnthropicMessages;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/citations":
            "all documents of a request, or none",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs":
            "400 if citations are enabled with `output_config.format`",
        "prism-php/prism#967": "the same",
        "https://platform.claude.com/docs/en/api/migration-2026-10-21":
            "texts of the user carry no citations",
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
    let is_formed = subject
        .member("output_config")
        .and_then(|config| config.get("format"))
        .or_else(|| subject.member("output_format"))
        .is_some_and(|format| !format.is_null());
    let mut first = None;
    for document in documents {
        let cites = document.pointer("/citations/enabled") == Some(&Value::Bool(true));
        if cites && is_formed {
            found
                .at_member(
                    document,
                    "citations",
                    "an answer that is held to a schema cannot have citations",
                )
                .help("turn citations off, or leave the format out");
        } else if *first.get_or_insert(cites) != cites {
            found
                .at_member(
                    document,
                    "citations",
                    "citations are enabled on all documents of a request or on none",
                )
                .help("write the same for every document");
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
            "a text of the user carries no citations from `anthropic-version` 2026-10-21 on",
        );
        note.of_model()
            .level(severity)
            .help("leave them out: those of the assistant's texts stay");
    }
}

fn is_of_type(block: &Value, name: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(name)
}
