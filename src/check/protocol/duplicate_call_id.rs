//! `protocol/duplicate-call-id`: two calls with the same id.

use std::collections::HashMap;

use super::pairing::Answers;
use super::{Found, Subject, body_rule};
use crate::provider::TurnForm;

body_rule! {
    Error "protocol/duplicate-call-id", "two tool calls have the same id",
    "A result names its call by the id. With two calls of one id in a turn nobody can tell them apart: Anthropic refuses the request \
     (*`tool_use` ids must be unique*), other servers pair the results with one of them, which is a warning. So is an id that comes \
     again in a later turn: Anthropic takes it, since results are looked for right after their calls.\n\n\
     * wrong: two calls `call_1` in one message\n\
     * right: an id of its own for every call of the conversation\n\n\
     Results are looked for right after their calls.",
    seen "2026-11" {
        "recorded: pydantic-ai, test_cross_provider_capability_replay":
            "Claude: one id in two turns, taken",
        "anthropics/claude-code#28515": "*`tool_use` ids must be unique*",
        "anthropics/claude-code#20700": "the same refusal",
        "NachoSEO/claudegram#12": "the same refusal",
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
            "another call has the id `{}` already",
            crate::text::cut(id, 60)
        );
        let note = found.at_member(call.identified, call.id_key, message);
        let is_same_turn = at < answers.start(entries, before);
        let is_refused = subject.wire.facts().turns == TurnForm::Blocks && is_same_turn;
        let note = if is_refused { note } else { note.warning() };
        note.help("give every call of the conversation an id of its own");
    }
}
