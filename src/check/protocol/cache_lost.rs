//! `cache/lost`: breakpoints after a prefix that is too short for the model to cache.

use serde_json::Value;

use super::value::elements;
use super::{Found, Subject, body_rule};

body_rule! {
    Warning "cache/lost", "the prefix before a prompt cache breakpoint is too short to be cached",
    "Anthropic's models do not cache a prefix below a minimum number of tokens, which depends on the model: 512 for Claude Opus 5, 1,024 \
     for Sonnet 5, 2,048 for Opus 4.7, 4,096 for Haiku 4.5. There is no error: the request is answered at full price, and \
     `cache_creation_input_tokens` is 0.\n\n\
     This is reported only if it is certain: all text up to the last breakpoint, including tools, has fewer *bytes* than the model's \
     minimum number of tokens. The bytes include 64 for each block, and 1,024 for the text that the API adds to tools. A breakpoint in \
     messages is not reported, because its prefix grows with the conversation. Models whose minimum is missing in \
     `model-families.toml` (`cache_minimum`) are not checked.\n\n\
     * wrong: `cache_prompt = true` with `cache_breakpoints = [\"system\"]`, and a system prompt of two lines\n\
     * right: `\"history\"` among the breakpoints, or no `cache_prompt`",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
            "Claude caches only prefixes of a minimum length, which depends on the model",
        "anthropics/anthropic-sdk-python#1194": "shorter prefixes are answered without an error",
        "affaan-m/ECC#3173": "quotes the minimum lengths from that page",
    }
}

/// The maximum number of tokens that the API adds to each block. [`TOOLS`] is the number that it
/// adds once for all tools.
const BLOCK: usize = 64;
const TOOLS: usize = 1_024;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.wire.has_cache_breakpoints() || subject.headers.counts_tokens() {
        return;
    }
    let Some((minimum, _)) = subject.facts.value(|family| family.cache_minimum) else {
        return;
    };
    let Some((mark, tokens)) = last_mark(subject) else {
        return;
    };
    let has_more = subject.member("cache_control").is_some() || is_marked_in_messages(subject);
    // The first request of a conversation has only one message, so no other message could have a
    // breakpoint.
    let is_grown = elements(subject.member("messages")).len() > 1;
    if usize::try_from(minimum).is_ok_and(|minimum| tokens < minimum) && is_grown && !has_more {
        let message = format!(
            "nothing is cached here: the model caches only prefixes of {minimum} tokens or more, and this one has at most {tokens}"
        );
        found
            .at(mark, message)
            .help("also put a breakpoint into the messages, or remove this one");
    }
}

/// Returns the last breakpoint in `tools` and `system`, and an upper bound on the number of tokens
/// before it.
fn last_mark<'b>(subject: &Subject<'b>) -> Option<(&'b Value, usize)> {
    let (mut last, mut tokens) = (None, 0);
    for (name, more) in [("tools", TOOLS), ("system", 0)] {
        let blocks = elements(subject.member(name));
        tokens += if blocks.is_empty() { 0 } else { more };
        for block in blocks {
            tokens += BLOCK + block.to_string().len();
            last = mark_of(block).map(|mark| (mark, tokens)).or(last);
        }
    }
    last
}

fn mark_of(block: &Value) -> Option<&Value> {
    block.get("cache_control").filter(|mark| !mark.is_null())
}

/// Returns `true` if a block in a message has a breakpoint.
pub(super) fn is_marked_in_messages(subject: &Subject<'_>) -> bool {
    let messages = elements(subject.member("messages")).iter();
    messages
        .flat_map(|message| elements(message.get("content")))
        .any(|block| {
            mark_of(block).is_some()
                || elements(block.get("content"))
                    .iter()
                    .any(|inner| mark_of(inner).is_some())
        })
}
