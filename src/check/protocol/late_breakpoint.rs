//! `cache/late-breakpoint`: instructions that other conversations cannot reuse from the prompt
//! cache.

use serde_json::Value;

use super::cache_lost::is_marked_in_messages;
use super::value::elements;
use super::{Found, Subject, body_rule};

body_rule! {
    Warning "cache/late-breakpoint", "long tools or instructions do not end with a prompt cache breakpoint",
    "Anthropic caches a prefix only at breakpoints, and looks for a cached prefix only at breakpoints and at most 20 blocks before one. If \
     the first breakpoint is in the messages, the next request of the same conversation finds it. Another conversation with the same tools \
     and system prompt finds nothing, because no breakpoint marks their end.\n\n\
     This is reported if the tools and the system prompt together have at least four bytes for each token of the model's caching minimum, \
     or 16 KiB if the minimum is unknown.\n\n\
     * wrong: `cache_breakpoints = [\"history\"]` with a long system prompt\n\
     * right: `cache_breakpoints = [\"system\", \"history\"]`",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
            "the cache is searched at breakpoints and up to 20 blocks before them",
    }
}

/// The minimum length, in bytes, at which a separate breakpoint for the instructions is worthwhile,
/// if nothing is known about the model.
const LONG: usize = 16 * 1024;

/// The approximate number of bytes per token.
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
            "{bytes} bytes of tools and instructions do not end with a breakpoint, although the messages have one"
        );
        found
            .at(last, message)
            .help("put one on the last block of `system`, so that other conversations can use the cache too");
    }
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}
