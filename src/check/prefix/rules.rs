//! The rules about pairs of requests of one conversation.

use serde_json::Value;

use super::Difference;
use crate::diag::rules;
use crate::secret::masked;
use crate::text::cut;

rules! {
    THINKING_PREFIX = Error[lowerable] "protocol/thinking-prefix", "a later request of a conversation changes what its thinking is bound to",
        "Newer models of Anthropic's bind each block of thinking to everything that stood before it when it was made: `tools`, `system` and \
         all earlier messages, in that order. If a later request of the conversation sends the block after anything else, the API \
         refuses it (*The block is bound to a different conversation*), or leaves the block and all later ones out. Accounts made \
         since 2026-08-31 are checked by default, others where `thinking.block_binding` asks for it. `cache_control` does not count.\n\n\
         `reqc` compiles the requests that come before: for each chat context those of its earlier turns, as `turns` say them, and \
         those after each message of the user and each result of a tool. The finding names the first place that differs and what wrote it.\n\n\
         * wrong: `system_prompt = \"… The file is written in {{ language }}.\"`: the next turn may be about another file\n\
         * right: the same in `surroundings`, which enters the conversation as a message of the turn in which it changed\n\
         * wrong: `{% if loop.last %}` around a text of a message: once another message follows, the text is gone\n\
         * right: the text in every message, or none\n\
         * wrong: `{% for message in ctx.history[-20:] %}`\n\
         * right: the whole history; or without its thinking\n\n\
         A body that asks for `drop_block` gets a warning. `model-families.toml` tells which models it is about (`bound_thinking`).",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking":
                "what thinking is bound to, and how it is checked",
            "anomalyco/opencode#48637": "*The block is bound to a different conversation*",
            "NousResearch/hermes-agent#106426": "the same refusal",
        };
    VOLATILE = Warning "cache/volatile", "what comes before a breakpoint of the prompt cache changes between turns",
        "A breakpoint asks the server to keep everything up to it, at a higher price than reading it. If something before it is other in the next \
         turn, what was kept is never found: each turn pays for keeping, and none is cheaper for it. What depends on the language of the \
         open file, on the project or on the length of the conversation does that.\n\n\
         It is found as `cache/unstable-prefix` is, by compiling the requests that come before, and told in its place where a \
         breakpoint comes after the change. The messages are also kept for one value of `thinking`, `tool_choice`, `output_config` \
         and `speed` alone: one that depends on the length of the conversation loses them.\n\n\
         * wrong: `cache_prompt = true` and `system_prompt = \"… The file is written in {{ language }}.\"`\n\
         * right: the same in `surroundings`, which enters the conversation as a message of the turn in which it changed",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "what is kept, and what loses it",
        };
    LOOKBACK = Warning "cache/lookback", "a turn adds more blocks than the prompt cache looks back",
        "Anthropic keeps what comes before a breakpoint, and the next request finds it at a breakpoint of its own, or at one of the 20 blocks \
         before one. If a turn adds more, for instance a dozen calls at once with their results, a single breakpoint near the end finds \
         nothing, though the request begins with the same bytes: the whole conversation is read anew, and kept anew at the higher price. \
         A request has four breakpoints.\n\n\
         It is found by compiling the requests that come before: for each chat context the last one before its own, and those of its \
         earlier turns. `cache_prompt` sets a second breakpoint where it is needed, if the body leaves one of the four free.\n\n\
         * wrong: `cache_control` at the last block of the last message alone\n\
         * right: the same, and at the last block of the message of the user before that; or `cache_prompt = true`",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "20 blocks before a breakpoint are looked at",
            "https://gitlab.com/vglafirov/gitlab-ai-provider/commit/5f2e13e":
                "a second breakpoint was needed",
            "https://dev.to/ji_ai/claude-prompt-caching-why-agent-loops-miss-the-20-block-lookback-d36":
                "loops of an agent find nothing",
        };
    UNSTABLE_PREFIX = Warning "cache/unstable-prefix", "a later request of a conversation changes the beginning of earlier ones",
        "Servers keep what they made of a request's beginning, tools first, then instructions, then messages, and use it again if the next \
         request begins with the same. What comes after the first difference is read again: in a long conversation with tools that \
         is most of what a turn costs, and most of the time until the answer begins. `cache_control` does not count.\n\n\
         `reqc` compiles the requests that come before: for each chat context those of its earlier turns, as `turns` say them, and \
         those after each message of the user and each result of a tool. What an agent only adds after the last message, for one \
         request, is not told. OpenAI keeps a prefix for one schema of the answer (`response_format`, `text`) and one `prompt_cache_key`: \
         that these stay is looked at too.\n\n\
         * wrong: `system_prompt = \"… The file is written in {{ language }}.\"`: the next turn may be about another file\n\
         * right: the same in `surroundings`, which enters the conversation as a message of the turn in which it changed\n\
         * wrong: attached files (`ctx.files_metadata`) in `system`\n\
         * right: templates that do not read them: then they are messages of the turn in which they came",
        seen "2026-11" {
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
                "Claude: tools, then instructions, then messages",
            "https://platform.openai.com/docs/guides/prompt-caching": "OpenAI: prefixes that are equal",
            "https://api-docs.deepseek.com/guides/kv_cache": "DeepSeek: prefixes that are equal",
            "pkg:github/ggml-org/llama.cpp#tools/server/README.md":
                "llama.cpp: `cache_prompt` reuses the common prefix of a slot",
        };
}

/// The maximum number of characters of a value in a message.
const SHOWN: usize = 60;

/// The number of characters shown before the first one that differs.
const BEFORE: usize = 20;

pub(super) fn message(found: &Difference<'_>, is_bound: bool) -> String {
    let what = match (found.older, found.newer) {
        (Some(older), Some(newer)) => {
            format!(
                "`{}` was {} and becomes {}",
                found.pointer,
                shown(older, found.from),
                shown(newer, found.from)
            )
        }
        (Some(older), None) => {
            format!("`{}` was {} and is gone", found.pointer, shown(older, None))
        }
        (None, newer) => {
            let newer = newer.map(|newer| shown(newer, None)).unwrap_or_default();
            format!("`{}` was not there and becomes {newer}", found.pointer)
        }
    };
    let why = if is_bound {
        ", to which later thinking is bound"
    } else {
        ""
    };
    format!("as the conversation grows, {what}{why}")
}

pub(super) const LOOKBACK_HELP: &str = "put a breakpoint also where the request before had its last one: at most 20 blocks are looked at before one";

pub(super) fn lookback_message(distance: usize) -> String {
    format!(
        "nothing of the request before is found in the cache: its last breakpoint is {distance} blocks before this one"
    )
}

pub(super) const SETTING_HELP: &str =
    "keep one value throughout a conversation: the server keeps what was said for this one alone";

/// Returns a value for a message, from a little before its first byte that differs.
fn shown(value: &Value, from: Option<usize>) -> String {
    let (Some(text), Some(from)) = (value.as_str(), from) else {
        return format!("`{}`", cut(&value.to_string(), SHOWN));
    };
    // Masked first: a fragment of a key would not be recognised as one.
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
            "send the tools that the conversation began with; if they must change, let the host renew them (`renew`) so that earlier thinking is left out"
        }
        (false, "tools" | "tool_config" | "toolConfig", false) => {
            "send the tools that the conversation began with"
        }
        _ if !found.is_in_history() || found.is_instruction() => {
            "keep it as it was first sent: what changes between turns belongs in `surroundings`, which enter the conversation as a message of their turn"
        }
        (_, _, true) => {
            "render each message identically, no matter how many messages follow it, or leave thinking out"
        }
        (_, _, false) => "render each message identically, no matter how many messages follow it",
    }
}
