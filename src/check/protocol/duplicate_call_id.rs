//! `protocol/duplicate-call-id`: two calls with one id.

use std::collections::HashSet;

use super::{Found, Subject, body_rule};

body_rule! {
    History, Error "protocol/duplicate-call-id", "two tool calls have the same id",
    "A result names its call by the id. With two calls of one id nobody can tell them apart: Anthropic refuses the request \
     (*`tool_use` ids must be unique*), other servers pair the results with one of them.\n\n\
     * wrong: `call_1` in the first and in the third turn\n\
     * right: an id of its own for every call of the conversation\n\n\
     For other servers it is a warning.",
    seen "2026-11" {
        "anthropics/claude-code#28515": "*`tool_use` ids must be unique*",
        "anthropics/claude-code#20700": "the same refusal",
        "NachoSEO/claudegram#12": "the same refusal",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let mut seen = HashSet::new();
    for (_, _, call) in subject.history().calls() {
        let Some(id) = call.id.filter(|id| !seen.insert(*id)) else { continue };
        let message = format!("another call has the id `{}` already", crate::text::cut(id, 60));
        let note = found.at_member(call.identified, call.id_key, message);
        let note = match subject.wire {
            crate::provider::WireFormat::AnthropicMessages => note,
            _ => note.warning(),
        };
        note.help("give every call of the conversation an id of its own");
    }
}
