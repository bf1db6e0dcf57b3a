//! `protocol/unknown-choice`: a tool choice that refers to an undeclared tool.

use super::tools::{Chosen, DeclaredTool, Which, choice, tools};
use super::{Found, Subject, body_rule};
use crate::diag::did_you_mean;
use crate::provider::{Server, TurnForm};

body_rule! {
    Error "protocol/unknown-choice", "`tool_choice` selects a tool that is not in `tools`",
    "`tool_choice`, lists of allowed tools, and Gemini's `allowedFunctionNames` may name only tools that are declared in `tools`. \
     Anthropic, OpenAI, Gemini, Qwen, vLLM, SGLang and LMDeploy reject other names, so these are also an error for unknown servers; for \
     all other servers, they are a warning. Names that come from an MCP server or a tool search are unknown here, and are accepted.\n\n\
     * wrong: `tool_choice = { type = \"tool\", name = \"get_forecast\" }`, with the tool `get_weather`\n\
     * right: `tool_choice = { type = \"tool\", name = \"get_weather\" }`",
    seen "2026-11" {
        "pkg:pypi/google-genai@3.4#types.py":
            "Gemini's `FunctionCallingConfig` accepts only declared functions",
        "pkg:pypi/openai@3.54#types/chat/chat_completion_allowed_tool_choice_param.py":
            "OpenAI's `allowed_tools` accepts only tools in the request",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/chat_completion/protocol.py":
            "vLLM: *The tool specified in `tool_choice` does not match any of the specified `tools`*",
        "pkg:pypi/sglang@0.5.23": "SGLang: *not found in tools list*",
        "https://www.alibabacloud.com/help/en/model-studio/error-code":
            "Qwen: *no function named … was specified in the \"tools\" parameter*",
        "vllm-project/vllm#40399":
            "OpenAI: *Tool choice 'function' not found in 'tools' parameter*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(choice) = choice(subject) else {
        return;
    };
    let Which::These(chosen, _) = choice.which else {
        return;
    };
    let tools = tools(subject);
    // Without tools, any tool choice is wrong; another rule reports it.
    if tools.is_empty() {
        return;
    }
    let is_refused = match subject.wire.facts().turns {
        TurnForm::Contents => true,
        TurnForm::Blocks | TurnForm::Messages | TurnForm::Items | TurnForm::None => {
            subject.server.is_claude()
                || subject.server.is_openai()
                || matches!(subject.server, Server::Qwen | Server::Unknown)
        }
    };
    for chosen in chosen.iter().filter(|chosen| !is_declared(chosen, &tools)) {
        let name = chosen.name.unwrap_or(chosen.kind);
        let message = format!("no tool is called `{}`", crate::text::cut(name, 60));
        let note = found.at(chosen.value, message);
        let note = if is_refused { note } else { note.warning() };
        note.help(help(name, &tools));
    }
}

fn is_declared(chosen: &Chosen<'_>, tools: &[DeclaredTool<'_>]) -> bool {
    tools.iter().any(|tool| {
        is_meant(tool, chosen) || chosen.kind != "mcp" && chosen.name.is_some() && brings_more(tool)
    })
}

fn is_meant(tool: &DeclaredTool<'_>, chosen: &Chosen<'_>) -> bool {
    match (chosen.kind, chosen.name) {
        ("mcp", Some(label)) => {
            tool.kind == "mcp" && super::tools::text(tool.object, "server_label") == Some(label)
        }
        (_, Some(name)) => tool.name == Some(name),
        // The schema reports that the name is missing.
        ("function" | "tool" | "custom" | "mcp", None) => true,
        (kind, None) => {
            tool.kind == kind
                || tool.kind.starts_with("web_search") && kind.starts_with("web_search")
        }
    }
}

fn brings_more(tool: &DeclaredTool<'_>) -> bool {
    ["mcp_toolset", "mcp", "namespace", "mcpServers"].contains(&tool.kind)
        || tool.kind.starts_with("tool_search")
        || tool.kind.contains("toolset")
}

fn help(name: &str, tools: &[DeclaredTool<'_>]) -> String {
    let near = did_you_mean(name, tools.iter().filter_map(|tool| tool.name));
    near.unwrap_or_else(|| "choose one of the declared tools, or declare this one".to_owned())
}
