//! `protocol/safety-check`: a warning of the computer tool that is not acknowledged.

use serde_json::Value;

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;
use crate::provider::Server;

body_rule! {
    Error "protocol/safety-check", "a safety check of the computer tool is not acknowledged",
    "A `computer_call` may hold `pending_safety_checks`. The output of that call repeats them as `acknowledged_safety_checks`, once \
     a person has agreed; otherwise OpenAI refuses the request: *Computer tool has unacknowledged safety check*.\n\n\
     * wrong: `computer_call_output` without `acknowledged_safety_checks` after a call with pending ones\n\
     * right: the checks of the call, repeated",
    of OpenAiResponses;
    seen "2026-11" {
        "https://developers.openai.com/api/docs/guides/tools-computer-use":
            "pending checks are acknowledged in the next request",
        "openai/openai-agents-python#843": "*Computer tool has unacknowledged safety check*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server != Server::OpenAi {
        return;
    }
    let items = elements(subject.member("input"));
    for output in items
        .iter()
        .filter(|item| is_type(item, "computer_call_output"))
    {
        let call = items.iter().find(|item| {
            is_type(item, "computer_call") && text_of(item, "call_id") == text_of(output, "call_id")
        });
        let pending = call.and_then(|call| call.get("pending_safety_checks"));
        let known = elements(output.get("acknowledged_safety_checks"));
        if elements(pending)
            .iter()
            .any(|check| !is_among(check, known))
        {
            found
                .at(
                    output,
                    "the call has a pending safety check that its output does not acknowledge",
                )
                .help("repeat the checks as `acknowledged_safety_checks`, after a person agreed");
        }
    }
}

fn is_among(check: &Value, known: &[Value]) -> bool {
    let id = text_of(check, "id");
    known.iter().any(|other| text_of(other, "id") == id)
}
