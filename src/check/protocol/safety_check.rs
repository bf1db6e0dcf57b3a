//! `protocol/safety-check`: an unacknowledged safety check of the computer tool.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;

body_rule! {
    Error "protocol/safety-check", "a safety check of the computer tool is not acknowledged",
    "A `computer_call` can contain `pending_safety_checks`. The output of that call must repeat them as `acknowledged_safety_checks`, after \
     a person has agreed; otherwise OpenAI rejects the request: *Computer tool has unacknowledged safety check*.\n\n\
     * wrong: `computer_call_output` without `acknowledged_safety_checks`, after a call with `pending_safety_checks`\n\
     * right: the same checks in `acknowledged_safety_checks`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://developers.openai.com/api/docs/guides/tools-computer-use":
            "OpenAI requires pending checks to be acknowledged in the next request",
        "openai/openai-agents-python#843": "*Computer tool has unacknowledged safety check*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.server.is_openai() {
        return;
    }
    let items = elements(subject.member("input"));
    let calls: HashMap<&str, &Value> = items
        .iter()
        .filter(|item| is_type(item, "computer_call"))
        .filter_map(|call| Some((text_of(call, "call_id")?, call)))
        .collect();
    for output in items
        .iter()
        .filter(|item| is_type(item, "computer_call_output"))
    {
        let call = text_of(output, "call_id").and_then(|id| calls.get(id));
        let pending = call.and_then(|call| call.get("pending_safety_checks"));
        let acknowledged = elements(output.get("acknowledged_safety_checks"));
        let known: HashSet<Option<&str>> = acknowledged.iter().map(id_of).collect();
        if elements(pending)
            .iter()
            .any(|check| !known.contains(&id_of(check)))
        {
            found
                .at(
                    output,
                    "the call has a pending safety check that its output does not acknowledge",
                )
                .help(
                    "after a person has approved them, repeat the checks in `acknowledged_safety_checks`",
                );
        }
    }
}

fn id_of(check: &Value) -> Option<&str> {
    text_of(check, "id")
}
