//! `protocol/cached-content`: members that are already part of a Gemini cache.

use super::{Found, Subject, body_rule};

body_rule! {
    Error "protocol/cached-content", "a request uses a cache, and also sets fields that the cache contains",
    "Gemini's `cachedContent` replaces the system instruction, the tools and their configuration, which were set when the cache \
     was created. A request with `cachedContent` and any of these is rejected: *CachedContent can not be used with \
     GenerateContent request setting system_instruction, tools or tool_config*.\n\n\
     * wrong: `cachedContent` with `systemInstruction`\n\
     * right: `cachedContent` and `contents`",
    of GoogleGenerateContent;
    seen "2026-11" {
        "BerriAI/litellm#17304":
            "*CachedContent can not be used with GenerateContent request setting \
             system_instruction, tools or tool_config*",
        "langchain-ai/langchain-google#978": "the same error, with an answer schema",
        "567-labs/instructor#2580": "*should not be set in the request when using cached content*",
        "vercel/ai#3333": "the same error",
    }
}

/// The members that a request must not contain if it uses a cache, in both spellings.
const HELD: [(&str, &str); 3] = [
    ("systemInstruction", "system_instruction"),
    ("tools", "tools"),
    ("toolConfig", "tool_config"),
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.either("cachedContent", "cached_content").is_none() {
        return;
    }
    for (camel, snake) in HELD {
        if let Some(value) = subject.either(camel, snake) {
            let note = found.at(
                value,
                format!("`{camel}` cannot be combined with `cachedContent`, which contains it"),
            );
            note.help(
                "remove it here and set it when you create the cache, or leave out `cachedContent`",
            );
        }
    }
}
