//! `protocol/duplicate-call-id`: two calls with the same ID.

use std::collections::HashMap;

use super::pairing::Answers;
use super::{Found, Subject, body_rule};
use crate::provider::TurnForm;

body_rule! {
    Error "protocol/duplicate-call-id", "two tool calls have the same id",
    "A result refers to its call by id. If two calls in a turn have the same id, results cannot be matched: Anthropic rejects the \
     request (*`tool_use` ids must be unique*); other servers pair the results with one of the calls (reported as a warning). An id \
     that is repeated in a later turn is also a warning: Anthropic accepts it, since it looks for results directly after their \
     calls.\n\n\
     * wrong: two calls `call_1` in one message\n\
     * right: a unique id for every call in the conversation",
    seen "2026-11" {
        "recorded: pydantic-ai, test_cross_provider_capability_replay":
            "Claude accepts the same id in two turns",
        "anthropics/claude-code#28515": "*`tool_use` ids must be unique*",
        "anthropics/claude-code#20700": "the same error",
        "NachoSEO/claudegram#12": "the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let answers = Answers::of(subject);
    let entries = &subject.history().entries;
    for (at, _, call) in subject.history().calls() {
        let Some(id) = call.id else { continue };
        let Some(before) = seen.insert(id, at) else {
            continue;
        };
        let message = format!(
            "another call already has the id `{}`",
            crate::text::cut(id, 60)
        );
        let note = found.at_member(call.identified, call.id_key, message);
        let is_same_turn = at < answers.start(entries, before);
        let is_refused = subject.wire.facts().turns == TurnForm::Blocks && is_same_turn;
        let note = if is_refused { note } else { note.warning() };
        note.help("give every call of the conversation a unique id");
    }
}
