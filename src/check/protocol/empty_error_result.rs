//! `protocol/empty-error-result`: an error result without content.

use super::{Found, Subject, body_rule};

body_rule! {
    Error "protocol/empty-error-result", "an error result has no content",
    "A failed tool call needs an error message: Anthropic rejects a `tool_result` with `is_error` and without content (*content cannot be \
     empty if `is_error` is true*). Without `is_error`, an empty result is fine. For other servers that use Anthropic's format, this is a \
     warning.\n\n\
     * wrong: `{ \"type\": \"tool_result\", \"tool_use_id\": \"toolu_1\", \"is_error\": true, \"content\": \"\" }`\n\
     * right: the same with `\"content\": \"the tool failed\"`",
    of AnthropicMessages;
    seen "2026-11" {
        "can1357/oh-my-pi#2250": "*content cannot be empty if `is_error` is true*",
        "bytedance/trae-agent#230": "the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for (_, part, result) in subject.history().results() {
        if result.is_error && result.is_empty {
            let note = found.at_member(part.value, "content", "an error result needs content");
            let note = if subject.server.is_claude() {
                note
            } else {
                note.warning()
            };
            note.help("describe what failed, or leave out `is_error`");
        }
    }
}
