//! `protocol/cache-breakpoints`: breakpoints of Anthropic's prompt cache that the API rejects.

use serde_json::Value;

use super::value::{elements, is_type};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat, is_claude_model};

body_rule! {
    Error "protocol/cache-breakpoints", "there are too many prompt cache breakpoints, or one is in the wrong order or place",
    "A request to Anthropic, or through OpenRouter to Claude, may contain at most four blocks with `cache_control`, counting tools, \
     system and messages together. The API reads them in that order, and a breakpoint with `ttl` \"1h\" must not come after one with \
     \"5m\", which is also the default. The limit does not apply to other models. Thinking blocks and empty text blocks cannot have a \
     breakpoint; blocks within a tool result should have none (reported as a warning).\n\n\
     * wrong: a tool with `cache_control = { type = \"ephemeral\" }`, and the system prompt with `ttl = \"1h\"`\n\
     * right: `ttl = \"1h\"` on the tool as well",
    seen "2026-11" {
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching":
            "Claude accepts at most four breakpoints, longer TTLs first",
        "tghamm/Anthropic.SDK#50":
            "*A maximum of 4 blocks with cache_control may be provided*",
        "griffinmartin/opencode-claude-auth#121": "the same error",
        "hotovo/aider-desk#513": "OpenRouter: the same error",
        "cecli-dev/cecli#239": "OpenRouter: the same error",
        "askalf/dario#1066": "*cache_control cannot be set for empty text blocks*",
        "NousResearch/hermes-agent#1216": "the same error",
        "caozhiyuan/copilot-api#241":
            "*cache_control may not be specified within `tool_result.content`*",
        "headroomlabs-ai/headroom#2939":
            "*a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block*",
        "vellum-ai/vellum-assistant#22191": "the same error",
    }
}

/// The maximum number of breakpoints in a request.
const MOST: usize = 4;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_passed_on = is_passed_on(subject);
    // Servers of other models ignore breakpoints or interpret them differently.
    let is_of_claude = subject.wire.has_cache_breakpoints() && subject.server.is_claude();
    if !is_of_claude && !is_passed_on {
        return;
    }
    let mut seen = Seen {
        count: usize::from(subject.member("cache_control").is_some()),
        short: false,
        is_passed_on,
    };
    for block in ["tools", "system"]
        .into_iter()
        .flat_map(|name| elements(subject.member(name)))
    {
        seen.block(block, found);
    }
    for message in elements(subject.member("messages")) {
        for block in elements(message.get("content")) {
            elements(block.get("content")).iter().for_each(|inner| {
                seen.block(inner, found);
                seen.within_result(block, inner, found);
            });
            seen.block(block, found);
        }
        // OpenRouter also reads a breakpoint on the whole message.
        if is_passed_on {
            seen.block(message, found);
        }
    }
}

/// Returns `true` if OpenRouter passes the breakpoints of a request on to Claude.
fn is_passed_on(subject: &Subject<'_>) -> bool {
    match subject.wire {
        WireFormat::OpenAiChat | WireFormat::AnthropicMessages => {
            subject.server == Server::OpenRouter && subject.model.is_some_and(is_claude_model)
        }
        WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    }
}

/// The breakpoints seen so far.
struct Seen {
    count: usize,
    short: bool,
    /// `true` if the request goes through OpenRouter, where only the number of breakpoints is known
    /// to matter.
    is_passed_on: bool,
}

impl Seen {
    fn block<'b>(&mut self, block: &'b Value, found: &mut Found<'b>) {
        let Some(mark) = block.get("cache_control").filter(|mark| !mark.is_null()) else {
            return;
        };
        self.count += 1;
        if self.count > MOST {
            let message = format!(
                "this is prompt cache breakpoint {}, but a request can have at most {MOST}",
                self.count
            );
            found
                .at(mark, message)
                .help("keep those with the most stable prefix: tools, system, the last turns");
        }
        if self.is_passed_on {
            return;
        }
        self.in_order(mark, found);
        let text = block.get("text").and_then(Value::as_str);
        if is_type(block, "thinking") || is_type(block, "redacted_thinking") {
            let note = found.at(
                mark,
                "a thinking block cannot have a prompt cache breakpoint",
            );
            note.help("put it on the next block");
        } else if is_type(block, "text") && text.is_some_and(|text| text.trim().is_empty()) {
            let note = found.at(
                mark,
                "an empty text block cannot have a prompt cache breakpoint",
            );
            note.help("remove the empty block, and put the breakpoint on the block before it");
        }
    }

    /// Reports a breakpoint inside the content of a tool result.
    fn within_result<'b>(&self, block: &Value, inner: &'b Value, found: &mut Found<'b>) {
        let mark = inner.get("cache_control").filter(|mark| !mark.is_null());
        if let Some(mark) = mark.filter(|_| !self.is_passed_on && is_type(block, "tool_result")) {
            found
                .at(
                    mark,
                    "this breakpoint is inside a tool result; a report says that the API accepts it only on the `tool_result` itself",
                )
                .warning()
                .help("move it to the `tool_result`");
        }
    }

    /// Reports a breakpoint with a lifetime of one hour after a breakpoint with five minutes.
    fn in_order<'b>(&mut self, mark: &'b Value, found: &mut Found<'b>) {
        let ttl = mark.get("ttl").and_then(Value::as_str).unwrap_or("5m");
        if ttl == "1h" && self.short {
            let message = "a breakpoint with `ttl` \"1h\" comes after one with \"5m\"";
            let note = found.at_member(mark, "ttl", message);
            note.help(
                "give the earlier one \"1h\" too, or this one \"5m\": tools come first, then system, then messages",
            );
        }
        // The schema reports all other values.
        self.short |= ttl == "5m";
    }
}
