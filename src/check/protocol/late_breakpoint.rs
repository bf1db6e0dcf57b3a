//! `cache/late-breakpoint`: instructions that other conversations cannot reuse from the prompt
//! cache.

use serde_json::Value;

use super::cache_lost::is_marked_in_messages;
use super::value::elements;
use super::{Found, Subject, body_rule};

body_rule! {
    Warning "cache/late-breakpoint", "long tools or instructions have no breakpoint of the prompt cache at their end",
    "Anthropic keeps a beginning of a request at breakpoints only, and looks for what is kept at breakpoints and at most 20 blocks before \
     one. If the first breakpoint stands in the messages, the next request of the same conversation finds it. Another conversation with the \
     same tools and system prompt finds nothing: it has no breakpoint that ends where they end.\n\n\
     It is reported if tools and system prompt have at least four bytes for each token that the model keeps at the least, 16 KiB if that is \
     not known.\n\n\
     * wrong: `cache_breakpoints = [\"history\"]` with a long system prompt\n\
     * right: `cache_breakpoints = [\"system\", \"history\"]`",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
            "what is kept is looked for at breakpoints, and 20 blocks before",
    }
}

/// The length from which instructions are worth a breakpoint, if nothing is known about the model.
const LONG: usize = 16 * 1024;

/// The approximate number of bytes in a token.
const BYTES_OF_TOKEN: usize = 4;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.wire.has_cache_breakpoints() || !is_marked_in_messages(subject) {
        return;
    }
    let Some(last) = ["system", "tools"]
        .into_iter()
        .find_map(|name| subject.member(name))
    else {
        return;
    };
    let blocks = || {
        ["tools", "system"]
            .into_iter()
            .flat_map(|name| elements(subject.member(name)))
    };
    if blocks().any(|block| {
        block
            .get("cache_control")
            .is_some_and(|mark| !mark.is_null())
    }) {
        return;
    }
    let minimum = subject
        .facts
        .value(|family| family.cache_minimum)
        .and_then(|(it, _)| usize::try_from(it).ok());
    let worth = minimum.map_or(LONG, |minimum| minimum * BYTES_OF_TOKEN);
    let bytes: usize = ["tools", "system"]
        .into_iter()
        .filter_map(|name| subject.member(name))
        .map(length)
        .sum();
    if bytes >= worth {
        let message = format!(
            "{bytes} bytes of tools and instructions have no breakpoint at their end, messages have one"
        );
        found
            .at(last, message)
            .help("put one at the last block of `system`, so that other conversations find it too");
    }
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}
