//! The rules about pairs of requests in the same conversation.

use serde_json::Value;

use super::Difference;
use crate::diag::rules;
use crate::secret::masked;
use crate::text::cut;

rules! {
    THINKING_PREFIX = Error[lowerable] "protocol/thinking-prefix", "a later request in a conversation changes content that earlier thinking is bound to",
        "Anthropic's newer models bind each thinking block to everything that precedes the block when the model writes it: `tools`, \
         `system` and all earlier messages, in that order. If a later request sends the block after different content, the API either \
         rejects the request (*The block is bound to a different conversation*), or drops the block and all later thinking blocks. By \
         default, the API checks only accounts created since 2026-08-31; for other accounts, `thinking.block_binding` enables the check. \
         Changes to `cache_control` are ignored.\n\n\
         `reqc` compiles the preceding requests: for each chat context, those of its earlier turns, as defined by `turns`, and those after \
         each user message and each tool result. The finding shows the first place that differs and where it was written.\n\n\
         * wrong: `system_prompt = \"… The file is written in {{ language }}.\"`: the next turn may be about another file\n\
         * right: the same in `surroundings`, which are added to the conversation as a message in the turn in which they changed\n\
         * wrong: `{% if loop.last %}` around the text of a message: when another message follows, the text disappears\n\
         * right: the text in every message, or in none\n\
         * wrong: `{% for message in ctx.history[-20:] %}`\n\
         * right: the whole history, or a part of it without thinking\n\n\
         A body that asks for `drop_block` gets a warning. `model-families.toml` lists the models that this applies to (`bound_thinking`).",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking":
                "Claude binds thinking to everything before it, and checks this",
            "anomalyco/opencode#48637": "*The block is bound to a different conversation*",
            "NousResearch/hermes-agent#106426": "the same error",
        };
    VOLATILE = Warning "cache/volatile", "the prefix before a prompt cache breakpoint changes between turns",
        "A breakpoint asks the server to cache everything before it; this costs more than an uncached read. If something before it differs \
         in the next turn, the cached prefix is never found: each turn pays for caching, and none benefits. This happens if the prefix \
         depends on the language of the open file, on the project or on the length of the conversation.\n\n\
         reqc detects this like `cache/unstable-prefix`, by compiling the preceding requests. It reports this rule instead of that one if \
         a breakpoint comes after the change. The messages are also cached separately for each value of `thinking`, `tool_choice`, \
         `output_config` and `speed`: if such a value depends on the length of the conversation, the cache of the messages is lost.\n\n\
         * wrong: `cache_prompt = true` and `system_prompt = \"… The file is written in {{ language }}.\"`\n\
         * right: the same in `surroundings`, which are added to the conversation as a message in the turn in which they changed",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "Claude caches the prefix before each breakpoint; changing it invalidates the cache",
        };
    LOOKBACK = Warning "cache/lookback", "a turn adds more blocks than the prompt cache's lookback covers",
        "Anthropic caches the prefix before a breakpoint; the next request finds this prefix at one of its own breakpoints, or within the \
         20 blocks before one of them. If a turn adds more blocks, for example a dozen calls at once with their results, a single \
         breakpoint near the end finds nothing, although the request begins with the same bytes: the whole conversation is read again, and \
         cached again at the higher price. A request can have four breakpoints.\n\n\
         reqc detects this by compiling the preceding requests: for each chat context, the last one before its own, and those of its \
         earlier turns. `cache_prompt` sets a second breakpoint where it is needed, if the body uses fewer than four.\n\n\
         * wrong: `cache_control` only on the last block of the last message\n\
         * right: `cache_control` also on the last block of the user message before it, or `cache_prompt = true`",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "the cache looks back 20 blocks before a breakpoint",
            "https://gitlab.com/vglafirov/gitlab-ai-provider/commit/5f2e13e":
                "a second breakpoint was needed",
            "https://dev.to/ji_ai/claude-prompt-caching-why-agent-loops-miss-the-20-block-lookback-d36":
                "agent loops miss the cache",
        };
    UNSTABLE_PREFIX = Warning "cache/unstable-prefix", "a later request in a conversation changes the prefix of earlier requests",
        "Servers cache a request's prefix (first the tools, then the instructions, then the messages), and reuse it if the next request \
         begins with the same content. Everything after the first difference is processed again: in a long conversation with tools, this \
         is most of the cost of a turn, and most of the time until the answer begins. Changes to `cache_control` are ignored.\n\n\
         `reqc` compiles the preceding requests: for each chat context, those of its earlier turns, as defined by `turns`, and those \
         after each user message and each tool result. Content that an agent adds only after the last message, for one request, is not \
         reported. OpenAI caches a prefix per answer schema (`response_format`, `text`) and per `prompt_cache_key`: changes to these are \
         reported too.\n\n\
         * wrong: `system_prompt = \"… The file is written in {{ language }}.\"`: the next turn may be about another file\n\
         * right: the same in `surroundings`, which are added to the conversation as a message in the turn in which they changed\n\
         * wrong: attached files (`ctx.files_metadata`) in `system`\n\
         * right: templates that do not read them, so that they become messages in the turn in which they were attached",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "Claude caches tools first, then instructions, then messages",
            "https://platform.openai.com/docs/guides/prompt-caching":
                "OpenAI reuses a cache only for an identical prefix",
            "https://api-docs.deepseek.com/guides/kv_cache":
                "DeepSeek reuses a cache only for an identical prefix",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp: `cache_prompt` reuses the common prefix of a slot",
        };
}

/// The maximum length of a value in a message, in characters.
const SHOWN: usize = 60;

/// The number of characters that are shown before the first differing character.
const BEFORE: usize = 20;

pub(super) fn message(found: &Difference<'_>, is_bound: bool) -> String {
    let what = match (found.older, found.newer) {
        (Some(older), Some(newer)) => {
            format!(
                "`{}` changes from {} to {}",
                found.pointer,
                shown(older, found.from),
                shown(newer, found.from)
            )
        }
        (Some(older), None) => {
            format!(
                "`{}` is {} and disappears later",
                found.pointer,
                shown(older, None)
            )
        }
        (None, newer) => {
            let newer = newer.map(|newer| shown(newer, None)).unwrap_or_default();
            format!("`{}` is missing and later becomes {newer}", found.pointer)
        }
    };
    let why = if is_bound {
        "; later thinking is bound to its earlier value"
    } else {
        ""
    };
    format!("{what} as the conversation grows{why}")
}

pub(super) const LOOKBACK_HELP: &str = "add a breakpoint where the previous request had its last one: the cache looks back at most 20 blocks from a breakpoint";

pub(super) fn lookback_message(distance: usize) -> String {
    format!(
        "the cache lookup misses the previous request: the last breakpoint of that request is {distance} blocks before this one"
    )
}

pub(super) const SETTING_HELP: &str = "keep the same value throughout a conversation: the server caches the messages for this value only";

/// Formats a value for a message, starting a little before the first byte that differs.
fn shown(value: &Value, from: Option<usize>) -> String {
    let (Some(text), Some(from)) = (value.as_str(), from) else {
        return format!("`{}`", cut(&value.to_string(), SHOWN));
    };
    // Keys are masked before the text is cut, because a fragment of a key would not be recognised.
    let text = masked(text);
    let start = text[..from]
        .char_indices()
        .rev()
        .nth(BEFORE)
        .map_or(0, |(at, _)| at);
    let dots = if start > 0 { "…" } else { "" };
    let text = text[start..].replace('\n', " ");
    if text.is_empty() {
        "empty".to_owned()
    } else {
        format!("`{dots}{}`", cut(&text, SHOWN))
    }
}

pub(super) fn help(found: &Difference<'_>, is_bound: bool) -> &'static str {
    match (found.is_in_history(), found.member(), is_bound) {
        (false, "tools" | "tool_config" | "toolConfig", true) => {
            "send the tools that the conversation began with; if they must change, let the host renew them (`renew`), so that earlier thinking is dropped"
        }
        (false, "tools" | "tool_config" | "toolConfig", false) => {
            "send the tools that the conversation began with"
        }
        _ if !found.is_in_history() || found.is_instruction() => {
            "keep it as it was first sent: content that changes between turns belongs in `surroundings`, which are added to the conversation as a message"
        }
        (_, _, true) => {
            "render each message identically, no matter how many messages follow it, or leave thinking out"
        }
        (_, _, false) => "render each message identically, no matter how many messages follow it",
    }
}
