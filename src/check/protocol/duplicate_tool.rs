//! `protocol/duplicate-tool`: two tools with the same name.

use std::collections::HashSet;

use super::tools::{text, tools};
use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/duplicate-tool", "two tools have the same name",
    "A call identifies its tool by name, so names must be unique. Anthropic and DeepSeek (*Tool names must be unique*, server tools \
     included) and Gemini (*Duplicate function declaration found*) reject the request; for other servers, the behaviour is unknown, so it \
     is a warning. Functions in a namespace of the Responses API have separate names. MCP servers need unique labels (reported as a \
     warning).\n\n\
     * wrong: your own tool `web_search` next to Anthropic's `web_search_20260209`\n\
     * right: `search_wiki`",
    seen "2026-11" {
        "danny-avila/LibreChat#13162": "Claude: *tools: Tool names must be unique*",
        "microsoft/vscode#278073": "Claude: the same error",
        "decolua/9router#3333": "DeepSeek: the same error, measured; Kimi, GLM and MiniMax accept them",
        "smg-project/smg#479":
            "a gateway follows OpenAI's specification: *Duplicate MCP server_label*",
        "openakita/openakita#477": "DeepSeek: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.member("tools").is_none() {
        return;
    }
    let is_refused = match subject.wire {
        WireFormat::AnthropicMessages => subject.server.is_claude(),
        WireFormat::GoogleGenerateContent => true,
        WireFormat::OpenAiChat => subject.server == Server::DeepSeek,
        WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    };
    duplicate_servers(subject, found);
    let mut seen = HashSet::new();
    for tool in tools(subject).iter().filter(|tool| !tool.is_nested) {
        let Some(name) = tool.name.filter(|name| !seen.insert(*name)) else {
            continue;
        };
        let message = format!(
            "another tool is already called `{}`",
            crate::text::cut(name, 60)
        );
        let note = found.at_member(tool.object, "name", message);
        let note = if is_refused { note } else { note.warning() };
        note.help("give every tool a unique name, or declare it once");
    }
}

/// Reports MCP servers with the same label, because a call identifies its server by the label.
fn duplicate_servers<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let mut seen = HashSet::new();
    for tool in tools(subject).iter().filter(|tool| tool.kind == "mcp") {
        let Some(label) = text(tool.object, "server_label").filter(|label| !seen.insert(*label))
        else {
            continue;
        };
        let message = format!(
            "another MCP server is already called `{}`",
            crate::text::cut(label, 60)
        );
        found
            .at_member(tool.object, "server_label", message)
            .warning()
            .help("give every server a unique label, or declare it once");
    }
}
