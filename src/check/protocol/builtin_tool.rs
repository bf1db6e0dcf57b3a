//! `protocol/builtin-tool`: tools that the server provides, and the members that these tools need.

use std::collections::HashSet;

use serde_json::Value;

use super::tools::{DeclaredTool, lets_tools_mix, text, tools};
use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/builtin-tool", "a built-in tool lacks a required field, or has one that is not allowed",
    "Anthropic:\n\n\
     * web search and web fetch accept `allowed_domains` or `blocked_domains`, not both\n\
     * `computer_…` needs `display_width_px` and `display_height_px`; the advisor needs a `model`\n\
     * tools with a fixed name must use the name of their version: `text_editor_20250728` is `str_replace_based_edit_tool`\n\
     * each entry in `mcp_servers` has a unique name and is used by exactly one `mcp_toolset`; each `mcp_toolset` names one of these \
     entries\n\
     * a tool with `defer_loading` is found by a tool search, so not all tools can be deferred; a deferred tool cannot have \
     `cache_control`; a `tool_reference` names a tool that the request declares\n\n\
     OpenAI, Responses:\n\n\
     * `mcp` needs `server_url`, `connector_id` or `tunnel_id` (a warning for unknown servers)\n\
     * `file_search` needs at least one entry in `vector_store_ids`\n\
     * `computer_use_preview` needs `display_width`, `display_height` and `environment`\n\
     * a tool with `defer_loading` needs a `tool_search`\n\n\
     Gemini:\n\n\
     * in `googleSearch`, `timeRangeFilter` needs a start and an end, and `excludeDomains` exists only on Vertex AI\n\
     * `fileSearch` needs `fileSearchStoreNames`\n\
     * built-in tools together with function declarations need `includeServerSideToolInvocations` in `toolConfig` (Gemini 3 and \
     later; not on Vertex AI, which accepts both without it)\n\n\
     llama.cpp's Responses endpoint accepts only functions: older versions reject other tools, newer ones drop them (reported as a \
     warning). LM Studio rejects `namespace`.\n\n\
     * wrong: `{ \"type\": \"mcp\", \"server_label\": \"wiki\" }`\n\
     * right: `{ \"type\": \"mcp\", \"server_label\": \"wiki\", \"server_url\": \"https://example.org/mcp\" }`",
    seen "2026-11" {
        "pkg:pypi/anthropic@2.12#types/beta":
            "Claude's SDK types list the fields of each tool version",
        "https://platform.claude.com/docs/en/agents-and-tools/mcp-connector":
            "Claude: each MCP server is used by one toolset",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool":
            "Claude rejects a request in which all tools are deferred",
        "https://github.com/openai/openai-openapi":
            "OpenAI requires fields of `MCPTool`, `FileSearchTool` and `ComputerUsePreviewTool`",
        "https://platform.openai.com/docs/guides/tools-tool-search":
            "OpenAI: *Deferred tools require tools.tool_search*",
        "lmstudio-ai/lmstudio-bug-tracker#1812": "LM Studio rejects `namespace`",
        "lmstudio-ai/lmstudio-bug-tracker#1810": "LM Studio: the same error",
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini's `GoogleSearch` and `FileSearch` list their fields",
        "anthropics/anthropic-sdk-csharp#255":
            "Claude: *is defined but not referenced by any `mcp_toolset`*",
        "https://platform.claude.com/docs/en/build-with-claude/claude-in-amazon-bedrock":
            "Bedrock lists the server tools that it supports",
        "8monkey-ai/hebo-platform#451": "Bedrock rejects `web_search_20260209`",
        "ag2ai/ag2#3145":
            "Gemini: *Please enable tool_config.include_server_side_tool_invocations*",
        "cloudwego/eino-ext#761": "Gemini: the same error",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-common.cpp":
            "llama.cpp accepts only functions",
        "https://github.com/ggml-org/llama.cpp/blob/03eb25f39343f1c9ecc6f85ca4f9796a6ab7b230/tools/server/server-chat.cpp":
            "llama.cpp drops other tools",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let tools = match subject.member("tools") {
        Some(_) => tools(subject),
        None => Vec::new(),
    };
    match subject.wire {
        WireFormat::AnthropicMessages if subject.server.is_claude() => {
            anthropic(subject, &tools, found);
        }
        WireFormat::OpenAiResponses => match subject.server {
            Server::OpenAi | Server::ChatGpt => {
                tools.iter().for_each(|tool| responses(tool, found));
                unfound(&tools, found);
            }
            Server::LmStudio => tools.iter().for_each(|tool| lmstudio(tool, found)),
            Server::Unknown => tools
                .iter()
                .for_each(|tool| without_server(tool, false, found)),
            Server::LlamaCpp => tools.iter().for_each(|tool| llamacpp(tool, found)),
            _ => {}
        },
        WireFormat::GoogleGenerateContent => {
            let server = subject.server;
            tools.iter().for_each(|tool| google(tool, server, found));
            if server != Server::Vertex {
                google_beside_functions(subject, &tools, found);
            }
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// The required names of Anthropic's tools, by type prefix. The schema already reports names that
/// belong to no tool, and wrong names of search and fetch tools.
const FIXED_NAMES: [(&str, &str); 9] = [
    ("bash_", "bash"),
    ("text_editor_202504", "str_replace_based_edit_tool"),
    ("text_editor_202507", "str_replace_based_edit_tool"),
    ("text_editor_202", "str_replace_editor"),
    ("code_execution_", "code_execution"),
    ("memory_", "memory"),
    ("computer_2", "computer"),
    ("tool_search_tool_bm25", "tool_search_tool_bm25"),
    ("tool_search_tool_regex", "tool_search_tool_regex"),
];

fn anthropic<'b>(subject: &Subject<'b>, tools: &[DeclaredTool<'b>], found: &mut Found<'b>) {
    for tool in tools {
        deferred(tool, found);
        if !tool.is_function() {
            of_server(tool, found);
            if subject.server == Server::Bedrock {
                not_at_bedrock(tool, found);
            }
        }
    }
    let is_deferred =
        |tool: &DeclaredTool<'_>| tool.object.get("defer_loading") == Some(&Value::Bool(true));
    if let Some(first) = tools.first().filter(|_| tools.iter().all(is_deferred)) {
        let note = found.at_member(
            first.object,
            "defer_loading",
            "all tools are deferred, so the model sees none of them",
        );
        note.help("add a tool search tool, which is not deferred itself");
    }
    mcp_servers(subject, tools, found);
    lost_references(subject, tools, found);
}

/// Reports references in the history to tools that the request does not declare. Requests with MCP
/// toolsets are exempt, because the body does not list those tools.
fn lost_references<'b>(subject: &Subject<'b>, tools: &[DeclaredTool<'b>], found: &mut Found<'b>) {
    if tools.iter().any(|tool| tool.kind == "mcp_toolset") {
        return;
    }
    let declared: HashSet<&str> = tools.iter().filter_map(|tool| tool.name).collect();
    let blocks = elements(subject.member("messages"))
        .iter()
        .flat_map(|message| elements(message.get("content")));
    for block in blocks {
        let content = block.get("content");
        let held = elements(content).iter();
        let searched = elements(content.and_then(|content| content.get("tool_references"))).iter();
        for reference in held.chain(searched) {
            let name = text(reference, "tool_name")
                .filter(|_| text(reference, "type") == Some("tool_reference"));
            let Some(name) = name.filter(|name| !declared.contains(name)) else {
                continue;
            };
            let message = format!(
                "this refers to the tool `{}`, which the request does not declare",
                crate::text::cut(name, 60)
            );
            found
                .at_member(reference, "tool_name", message)
                .help("declare the tool, with `defer_loading`, or leave out the reference");
        }
    }
}

/// The type prefixes of tools that Anthropic's own server runs and Bedrock does not.
const NOT_AT_BEDROCK: [&str; 2] = ["web_search_", "web_fetch_"];

fn not_at_bedrock<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    if NOT_AT_BEDROCK
        .iter()
        .any(|kind| tool.kind.starts_with(kind))
    {
        let message = format!(
            "Bedrock does not support `{}`",
            crate::text::cut(tool.kind, 60)
        );
        found
            .at_member(tool.object, "type", message)
            .help("remove the tool, or declare a function of your own");
    }
}

fn deferred<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    let is_deferred = tool.object.get("defer_loading") == Some(&Value::Bool(true));
    if is_deferred
        && tool
            .object
            .get("cache_control")
            .is_some_and(|mark| !mark.is_null())
    {
        let note = found.at_member(
            tool.object,
            "cache_control",
            "a deferred tool cannot have `cache_control`",
        );
        note.help("move it to a tool that is not deferred");
    }
}

fn of_server<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    if lists("allowed_domains", tool.object) && lists("blocked_domains", tool.object) {
        let note = found.at_member(
            tool.object,
            "blocked_domains",
            "`allowed_domains` and `blocked_domains` cannot be combined",
        );
        note.help("keep one of the two lists");
    }
    if tool.kind.starts_with("computer_2") {
        needs(tool, &["display_width_px", "display_height_px"], found);
    }
    if tool.kind.starts_with("advisor_") {
        needs(tool, &["model"], found);
    }
    let fixed = FIXED_NAMES
        .iter()
        .find(|(kind, _)| tool.kind.starts_with(kind));
    if let Some((_, name)) = fixed.filter(|(_, name)| is_of_another(name, tool)) {
        let message = format!(
            "the name of `{}` must be `{name}`",
            crate::text::cut(tool.kind, 60)
        );
        found
            .at_member(tool.object, "name", message)
            .help(format!("write `{name}`"));
    }
}

fn is_of_another(name: &str, tool: &DeclaredTool<'_>) -> bool {
    FIXED_NAMES
        .iter()
        .any(|(_, known)| tool.name == Some(known) && *known != name)
}

fn lists(name: &str, tool: &Value) -> bool {
    tool.get(name).is_some_and(|domains| !domains.is_null())
}

/// Reports required members that a tool lacks.
fn needs<'b>(tool: &DeclaredTool<'b>, members: &[&'static str], found: &mut Found<'b>) {
    for name in members
        .iter()
        .filter(|name| tool.object.get(**name).is_none_or(Value::is_null))
    {
        let message = format!("`{}` needs `{name}`", crate::text::cut(tool.kind, 60));
        found
            .at_member(tool.object, name, message)
            .help(format!("add `{name}`"));
    }
}

fn mcp_servers<'b>(subject: &Subject<'b>, tools: &[DeclaredTool<'b>], found: &mut Found<'b>) {
    let servers = elements(subject.member("mcp_servers"));
    let toolsets = || tools.iter().filter(|tool| tool.kind == "mcp_toolset");
    let of_server = |name: Option<&str>| {
        toolsets()
            .filter(|set| text(set.object, "mcp_server_name") == name)
            .count()
    };
    // In the older form, each server provides its tools without a toolset.
    let needs_toolset = toolsets().next().is_some()
        || subject.headers.has_beta("mcp-client-2025-11-20") == Some(true);
    for set in toolsets() {
        let name = text(set.object, "mcp_server_name");
        if !servers.iter().any(|server| text(server, "name") == name) {
            let note = found.at_member(
                set.object,
                "mcp_server_name",
                "no server of `mcp_servers` has this name",
            );
            note.help("use the name of one of the servers, or add the server");
        }
    }
    for (at, server) in servers.iter().enumerate() {
        let name = text(server, "name");
        if servers[..at]
            .iter()
            .any(|other| text(other, "name") == name)
        {
            found
                .at_member(server, "name", "another MCP server already has this name")
                .help("give it a different name");
        } else if of_server(name) > 1 {
            found
                .at(server, "several `mcp_toolset` entries use this MCP server")
                .help("keep one of them");
        } else if needs_toolset && of_server(name) == 0 {
            let note = found.at(server, "no `mcp_toolset` in `tools` uses this MCP server");
            note.help("add a toolset with this name as `mcp_server_name`, or remove the server");
        }
    }
}

/// The labels of the tools that gpt-oss was trained with. Servers provide these tools without an
/// address.
const GPT_OSS_LABELS: [&str; 3] = ["code_interpreter", "container", "web_search_preview"];

/// Reports an MCP server that is not identified; a warning unless the API is known to reject it.
fn without_server<'b>(tool: &DeclaredTool<'b>, is_sure: bool, found: &mut Found<'b>) {
    let has_server = ["server_url", "connector_id", "tunnel_id"]
        .iter()
        .any(|name| tool.object.get(*name).is_some_and(|value| !value.is_null()));
    // vLLM recognises the built-in tools of gpt-oss by these labels.
    let label = text(tool.object, "server_label").unwrap_or_default();
    let is_builtin = !is_sure && GPT_OSS_LABELS.contains(&label);
    if tool.kind == "mcp" && !has_server && !is_builtin {
        let note = found.at(
            tool.object,
            "an MCP server needs `server_url`, `connector_id` or `tunnel_id`",
        );
        let note = if is_sure { note } else { note.warning() };
        note.help("add one of them");
    }
}

fn responses<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    without_server(tool, true, found);
    match tool.kind {
        "file_search"
            if tool
                .object
                .get("vector_store_ids")
                .and_then(Value::as_array)
                .is_some_and(Vec::is_empty) =>
        {
            let note = found.at_member(
                tool.object,
                "vector_store_ids",
                "a file search needs at least one store",
            );
            note.help("add a store, or remove the tool");
        }
        "computer_use_preview" => needs(
            tool,
            &["display_width", "display_height", "environment"],
            found,
        ),
        _ => {}
    }
}

/// Reports a deferred tool that no tool search can load.
fn unfound<'b>(tools: &[DeclaredTool<'b>], found: &mut Found<'b>) {
    if tools.iter().any(|tool| tool.kind == "tool_search") {
        return;
    }
    let deferred = tools
        .iter()
        .find(|tool| tool.object.get("defer_loading") == Some(&Value::Bool(true)));
    if let Some(tool) = deferred {
        found
            .at_member(
                tool.object,
                "defer_loading",
                "a deferred tool needs a `tool_search` that loads it",
            )
            .help("add `{ \"type\": \"tool_search\" }` to `tools`, or leave `defer_loading` out");
    }
}

fn lmstudio<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    if tool.kind == "namespace" {
        found
            .at(
                tool.object,
                "LM Studio does not support tools of type `namespace`",
            )
            .help("declare its functions individually");
    }
}

fn llamacpp<'b>(tool: &DeclaredTool<'b>, found: &mut Found<'b>) {
    if !tool.is_function() {
        let message = "llama.cpp supports only tools of type `function`: it rejects or drops others, depending on its version";
        found
            .at(tool.object, message)
            .warning()
            .help("remove the tool");
    }
}

/// The tools that Gemini's server runs, in both spellings. Tools that the client runs are not
/// listed, because they can be combined with functions.
const RUN_BY_GOOGLE: [&str; 12] = [
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "googleMaps",
    "google_maps",
    "codeExecution",
    "code_execution",
    "urlContext",
    "url_context",
    "fileSearch",
    "file_search",
];

/// Reports server tools that are combined with functions.
fn google_beside_functions<'b>(
    subject: &Subject<'b>,
    tools: &[DeclaredTool<'b>],
    found: &mut Found<'b>,
) {
    // Models before Gemini 3 reject every such request; the facts about these models report it.
    let is_older = subject
        .model
        .is_some_and(|model| model.contains("gemini-2") || model.contains("gemini-1"));
    if is_older || !tools.iter().any(DeclaredTool::is_function) || lets_tools_mix(subject) {
        return;
    }
    if let Some(builtin) = tools.iter().find(|tool| RUN_BY_GOOGLE.contains(&tool.kind)) {
        let message = format!(
            "combining `{}` with functions must be enabled explicitly",
            crate::text::cut(builtin.kind, 60)
        );
        let note = found.at(builtin.object, message);
        note.help("set `includeServerSideToolInvocations` in `toolConfig` to `true`");
    }
}

fn google<'b>(tool: &DeclaredTool<'b>, server: Server, found: &mut Found<'b>) {
    if tool.kind == "googleSearch" || tool.kind == "google_search" {
        for name in [
            "excludeDomains",
            "exclude_domains",
            "blockingConfidence",
            "blocking_confidence",
        ] {
            if server != Server::Vertex && tool.object.get(name).is_some() {
                found
                    .at_member(
                        tool.object,
                        name,
                        format!("the Gemini API does not support `{name}`; only Vertex AI does"),
                    )
                    .help("leave it out");
            }
        }
        let Some(range) = either(tool.object, "timeRangeFilter", "time_range_filter") else {
            return;
        };
        if either(range, "startTime", "start_time").is_none()
            || either(range, "endTime", "end_time").is_none()
        {
            found
                .at(range, "a time range needs both `startTime` and `endTime`")
                .help("add the missing one");
        }
    } else if tool.kind == "fileSearch" || tool.kind == "file_search" {
        let stores = either(
            tool.object,
            "fileSearchStoreNames",
            "file_search_store_names",
        );
        if elements(stores).is_empty() {
            let note = found.at_member(
                tool.object,
                "fileSearchStoreNames",
                "a file search needs at least one store",
            );
            note.help("add a store, or remove the tool");
        }
    }
}

fn either<'b>(object: &'b Value, camel: &str, snake: &str) -> Option<&'b Value> {
    object.get(camel).or_else(|| object.get(snake))
}
