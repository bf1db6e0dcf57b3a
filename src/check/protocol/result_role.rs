//! `protocol/result-role`: results in an assistant message.

use super::{Found, Subject, body_rule};
use crate::check::history::Role;

body_rule! {
    Error "protocol/result-role", "function responses have the wrong role",
    "Results come from the client: Gemini rejects `functionResponse` under the role `model`. According to reports from 2026, it also \
     rejects a `functionResponse` in a content without a role, if the conversation has several turns (a warning, because Gemini 2.5 \
     Flash-Lite accepted one). In other formats, a result is a separate kind of message or item, so their schemas report such mistakes.\n\n\
     * wrong: `{ \"role\": \"model\", \"parts\": [{ \"functionResponse\": … }] }`\n\
     * right: `{ \"role\": \"user\", \"parts\": [{ \"functionResponse\": … }] }`",
    of GoogleGenerateContent;
    seen "2026-11" {
        "maximhq/bifrost#2222": "Gemini rejects responses under the role `model`",
        "BerriAI/litellm#20694": "Gemini rejects responses without a role",
        "BerriAI/litellm#20806": "Gemini rejects responses without a role",
        "recorded: lmnr-python, tests/cassettes/test_litellm/test_litellm_completion_with_tool_call_history.yaml":
            "Gemini 2.5 Flash-Lite accepts them",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let entries = &subject.history().entries;
    for entry in entries
        .iter()
        .filter(|entry| entry.parts.iter().any(|part| part.outcome().is_some()))
    {
        if entry.role == Role::Assistant {
            let response = entry
                .parts
                .iter()
                .find(|part| part.outcome().is_some())
                .map_or(entry.value, |part| part.value);
            let note = found.at(
                response,
                "function responses have the role `model` instead of `user`",
            );
            note.help("write `\"role\": \"user\"`");
        } else if entry.value.get("role").is_none() && entries.len() > 1 {
            let note = found.at(
                entry.value,
                "a content with function responses has no role, which is rejected according to user reports",
            );
            note.warning().help("write `\"role\": \"user\"`");
        }
    }
}
