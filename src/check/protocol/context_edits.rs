//! `protocol/context-edits`: context edits in an order that the API rejects.

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};

body_rule! {
    Error "protocol/context-edits", "the context edits are in the wrong order",
    "`context_management.edits` lists the content that Anthropic's API clears from the history before the model sees it. \
     `clear_thinking_20251015` must come first: clearing thinking changes the counts that the other edits use.\n\n\
     * wrong: `\"edits\": [{ \"type\": \"clear_tool_uses_20250919\" }, { \"type\": \"clear_thinking_20251015\" }]`\n\
     * right: `\"edits\": [{ \"type\": \"clear_thinking_20251015\" }, { \"type\": \"clear_tool_uses_20250919\" }]`",
    of AnthropicMessages;
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/context-editing":
            "Claude requires the strategy for thinking to be listed first",
        "forkwright/aletheia#44": "reports the same requirement",
    }
}

/// The edit that must come first.
const FIRST: &str = "clear_thinking_20251015";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.server.is_claude() {
        return;
    }
    let edits = subject
        .member("context_management")
        .and_then(|management| management.get("edits"));
    let late = elements(edits)
        .iter()
        .skip(1)
        .find(|edit| is_type(edit, FIRST));
    if let Some(late) = late {
        found
            .at(late, format!("`{FIRST}` must be the first edit"))
            .help("move it before the other edits");
    }
}
