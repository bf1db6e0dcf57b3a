//! `protocol/choice-without-tools`: a tool choice in a request without tools.

use serde_json::Value;

use super::tools::{Choice, DeclaredTool, Which, choice, lets_tools_mix, text, tools};
use super::{Found, Subject, body_rule};
use crate::diag::Severity;
use crate::provider::{Server, ToolForm, WireFormat, is_claude_model};
use crate::repo::Property;

body_rule! {
    Error "protocol/choice-without-tools", "a tool choice is set, but there are no tools",
    "Members that control tool calls need tools; an empty list counts as none:\n\n\
     | format | rejected without tools |\n\
     | --- | --- |\n\
     | OpenAI, Chat Completions | `tool_choice` (except `none`), `parallel_tool_calls`; `function_call` without `functions` |\n\
     | OpenAI, Responses | `tool_choice` that asks for a call; `auto` and `none` are accepted |\n\
     | Anthropic | `any` and `tool`; `none` was rejected in a report of 2025 (reported as a warning); `auto` is accepted |\n\
     | Gemini | `functionCallingConfig` without tools, unless they are in `cachedContent`; also with only built-in tools, for models up to \
     2.5 (`builtin_choice` in `model-families.toml`); for others, this is a warning, unless `includeServerSideToolInvocations` is set. \
     Vertex AI was observed to accept the configuration (reported as a warning) |\n\n\
     For other servers, a choice that requires a call is reported as a warning, since the model has no tool to call. For unknown servers, \
     such a choice is an error, because vLLM, SGLang and LMDeploy reject it; `auto`, which only vLLM and xAI reject, is a warning. In \
     Anthropic's format, SGLang rejects a forced choice if all tools are Anthropic's built-in ones; vLLM does the same for OpenAI's \
     built-in tools in the Responses API (both reported as warnings). An empty list of `allowed_tools` is also a warning: mistral.rs \
     rejects it.\n\n\
     * wrong: `tool_choice = \"required\"` in a body without `tools`\n\
     * right: both under the same condition: `{% if ctx.tools is defined %}`",
    seen "2026-11" {
        "recorded: pydantic-ai, test_google_image_generation_with_web_search":
            "Gemini accepts mode `ANY` with only a search",
        "writer/writer-framework#1013":
            "OpenAI: *'tool_choice' is only allowed when 'tools' are specified*",
        "PlexPt/chatgpt-java#150":
            "OpenAI: *'function_call' is only allowed when 'functions' are specified*",
        "Azure-Samples/azure-search-openai-demo#1175": "OpenAI: the same error",
        "vllm-project/vllm#40399":
            "OpenAI's Responses API rejects a forced call without tools, measured",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/chat_completion/protocol.py":
            "vLLM: *When using `tool_choice`, `tools` must be set*",
        "OpenHands/OpenHands#7078": "xAI: *Tool_choice set but no tools specified*",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/tool_parsers/utils.py":
            "vLLM: *tools contains no function tool the model can call*",
        "pkg:pypi/sglang@0.5.23": "SGLang: *Tools cannot be empty if tool choice is set to required*",
        "https://github.com/sgl-project/sglang/blob/v0.5.23/python/sglang/srt/entrypoints/anthropic/serving.py":
            "SGLang: *all supplied tools were server-side Anthropic built-ins*",
        "https://github.com/EricLBuehler/mistral.rs/blob/9e922623f24b32d41f3892b74f0eed18707f4e6c/mistralrs-server-core/src/openai.rs":
            "mistral.rs: *tool_choice.allowed_tools requires at least one function tool*",
        "vercel/ai#16987": "Claude rejects `any` and `tool`",
        "anthropics/claude-cookbooks#142": "Claude rejected `none` in 2025",
        "pydantic/pydantic-ai#5791": "Gemini rejects the configuration; Vertex AI accepts it, measured",
        "maximhq/bifrost#4959": "Gemini rejects the configuration too",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server.is_openai() {
        chosen_function(subject, found);
    }
    let parallel = parallel(subject);
    let choice = choice(subject);
    if let Some(choice) = choice.as_ref().filter(|_| has_tools(subject)) {
        nothing_allowed(choice, found);
    }
    let is_cached = subject.either("cachedContent", "cached_content").is_some();
    if choice.is_none() && parallel.is_none() || has_tools(subject) || is_cached {
        return;
    }
    if let Some(parallel) = parallel.filter(|_| subject.server.is_openai()) {
        let note = found.at(
            parallel,
            "`parallel_tool_calls` is accepted only together with `tools`",
        );
        note.help("omit `parallel_tool_calls` if there are no tools");
    }
    let Some(choice) = choice else { return };
    let is_none = matches!(choice.which, Which::None);
    let is_sure = match subject.wire {
        WireFormat::OpenAiChat if subject.server.is_openai() && !is_none => true,
        WireFormat::GoogleGenerateContent => {
            let refused = subject.facts.refuses(Property::BuiltinChoice);
            let is_told = tools(subject).is_empty() || refused == Some(Severity::Error);
            is_told && subject.server != Server::Vertex
        }
        WireFormat::AnthropicMessages if subject.server.is_claude() && is_none => false,
        // vLLM and xAI also reject `auto`.
        WireFormat::OpenAiChat
            if matches!(subject.server, Server::Unknown | Server::XAi)
                && !is_none
                && !choice.is_forced() =>
        {
            false
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill
            if !choice.is_forced() =>
        {
            return;
        }
        WireFormat::AnthropicMessages => subject.server.is_claude(),
        WireFormat::OpenAiResponses => subject.server.is_openai(),
        WireFormat::OpenAiChat => subject.server == Server::Unknown,
        WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    };
    let message = match tools(subject).is_empty() {
        true => "this controls tool calls, but there are no tools",
        false => "this controls function calls, but the request has only built-in tools",
    };
    let note = found.at(choice.value, message);
    let note = if is_sure { note } else { note.warning() };
    note.help("leave it out if there are no tools");
}

/// Reports an empty list of allowed tools, which mistral.rs rejects.
fn nothing_allowed<'b>(choice: &Choice<'b>, found: &mut Found<'b>) {
    let is_list = text(choice.value, "type") == Some("allowed_tools");
    if is_list && matches!(&choice.which, Which::These(chosen, _) if chosen.is_empty()) {
        found
            .at(choice.value, "this list of allowed tools is empty")
            .warning()
            .help("list the tools that may be called, or write `none`");
    }
}

/// Reports a choice in the 2023 form, `function_call`, if `functions` is missing.
fn chosen_function<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let has_functions = subject
        .member("functions")
        .and_then(Value::as_array)
        .is_some_and(|functions| !functions.is_empty());
    if let Some(choice) = subject.member("function_call").filter(|_| !has_functions) {
        found
            .at(
                choice,
                "`function_call` is accepted only together with `functions`",
            )
            .help("remove it; for `tools`, use `tool_choice`");
    }
}

/// Returns the setting for parallel calls, which OpenAI's Chat Completions accepts only together
/// with tools.
fn parallel<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    match subject.wire {
        WireFormat::OpenAiChat => subject.member("parallel_tool_calls"),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => None,
    }
}

/// Returns `true` if the request has tools.
fn has_tools(subject: &Subject<'_>) -> bool {
    match subject.wire.facts().tools {
        ToolForm::Declarations => {
            lets_tools_mix(subject) || tools(subject).iter().any(DeclaredTool::is_function)
        }
        ToolForm::Plain if is_elsewhere(subject) => {
            tools(subject).iter().any(DeclaredTool::is_function)
        }
        // A gateway may pass the request on to a server with such tools.
        ToolForm::Typed if is_elsewhere(subject) && subject.headers.is_private() => {
            let declared = tools(subject);
            declared
                .iter()
                .any(|tool| tool.is_function() || tool.kind == "custom")
        }
        ToolForm::Plain | ToolForm::Typed | ToolForm::Function => subject
            .member("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| !tools.is_empty()),
    }
}

/// Returns `true` if a body is for a model other than Claude at an unknown server. Such a server
/// does not have the built-in tools of Anthropic and OpenAI.
fn is_elsewhere(subject: &Subject<'_>) -> bool {
    subject.server == Server::Unknown && subject.model.is_some_and(|model| !is_claude_model(model))
}
