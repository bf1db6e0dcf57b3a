//! `protocol/participant-name`: a participant name that OpenAI does not accept.

use super::{Found, Subject, body_rule};
use crate::check::history::{Role, text_of};
use crate::provider::Server;

body_rule! {
    Error "protocol/participant-name", "a participant's name contains a character that OpenAI rejects",
    "Messages in Chat Completions may name the speaker. OpenAI accepts names without whitespace and without `<`, `|`, `\\\\`, `/` and \
     `>`.\n\n\
     * wrong: `{ \"role\": \"user\", \"name\": \"Ada Lovelace\", … }`\n\
     * right: `{ \"role\": \"user\", \"name\": \"ada_lovelace\", … }`",
    of OpenAiChat;
    seen "2026-11" {
        "FlowiseAI/Flowise#2948": "OpenAI: *string does not match pattern*",
        "danny-avila/LibreChat#1075": "the same error",
        "ag2ai/ag2#451": "the same error",
        "langchain-ai/langgraph#277": "the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server != Server::OpenAi {
        return;
    }
    // OpenAI ignores the name of a result.
    for entry in subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role != Role::Tool)
    {
        let Some(name) = text_of(entry.value, "name") else {
            continue;
        };
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let Some(odd) = name.chars().find(|c| !is_plain(c)) else {
            continue;
        };
        let refused = name
            .chars()
            .find(|c| c.is_whitespace() || "<|\\/>".contains(*c));
        let message = match refused {
            Some(wrong) => format!("a name cannot contain {}", shown(wrong)),
            None => format!(
                "according to some user reports, a name cannot contain {}",
                shown(odd)
            ),
        };
        let note = found.at_member(entry.value, "name", message);
        let note = if refused.is_some() {
            note
        } else {
            note.warning()
        };
        note.help("write letters, digits, `_` and `-`");
    }
}

fn shown(wrong: char) -> String {
    if wrong.is_whitespace() {
        "whitespace".to_owned()
    } else {
        format!("`{wrong}`")
    }
}
