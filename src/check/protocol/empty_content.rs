//! `protocol/empty-content`: empty text and empty messages that the schema allows.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::check::history::{Kind, Part, Role, elements};
use crate::diag::Severity;
use crate::provider::{Server, Site, VLLM, WireFormat, is_claude_model, is_workers_ai_model};

body_rule! {
    Error "protocol/empty-content", "a message or a text block is empty",
    "Most APIs reject empty content, and their schemas report it: blank text for Anthropic, contents without parts for Gemini, \
     assistant messages that have neither text nor tool calls for Mistral and OpenAI. Where reports disagree, it is a warning. This rule \
     covers the cases that schemas allow:\n\n\
     * Vertex AI: a part with empty text in `contents` is rejected (an error); Gemini's own API accepted it in recordings. A part with \
     empty text and a `thoughtSignature` is accepted, because it is the normal end of an answer\n\
     * Vertex AI: reports from 2024 and 2025 say that media without any text in `contents` is rejected (reported as a warning)\n\
     * Responses: an empty assistant message between a reasoning item and its call or message separates them, and the API reports a \
     missing *required following item*\n\
     * OpenAI: a system message whose content is an empty list violates the specification, but was accepted \
     (openai/openai-python#1812)\n\
     * Moonshot: an assistant message that has neither text nor tool calls is rejected (an error). `partial` messages may be empty\n\
     * xAI, Moonshot, Z.ai, Hunyuan and LM Studio: according to user reports, other messages without text are rejected\n\
     * Z.ai and Moonshot: empty text next to other parts or calls is rejected (an error)\n\
     * Claude on GitHub Copilot: blank text is rejected (reported as an error, unless the message also contains tool calls)\n\
     * MiniMax: according to user reports, empty messages are rejected (reported as a warning)\n\
     * Moonshot's, Z.ai's, MiniMax's and xAI's models through OpenRouter or an unknown server: each of these cases is a warning, because \
     the server may pass the request on\n\
     * Workers AI and LM Studio: according to user reports, a content of `null` in a message with tool calls is rejected (reported as a \
     warning). In such messages, missing content (SiliconFlow), an empty string (Moonshot), and an empty string or `null` (Volcengine) are \
     also reported to be rejected\n\
     * unknown servers: a warning if no message has any content, which mlx-vlm rejects\n\
     * vLLM: an empty list of `tools` is rejected, although similar servers accept it\n\
     * Ollama: a request without messages loads the model, and returns an empty answer\n\n\
     Leave out the part or the message; if the message then has no parts, leave out the message.\n\n\
     * wrong: `{ \"role\": \"model\", \"parts\": [{ \"text\": \"\" }, { \"functionCall\": … }] }`\n\
     * right: `{ \"role\": \"model\", \"parts\": [{ \"functionCall\": … }] }`",
    seen "2026-11" {
        "google-gemini/generative-ai-python#727": "Gemini accepts it",
        "Portkey-AI/gateway#462": "Vertex AI: *it has an empty text parameter*",
        "pydantic/pydantic-ai#1409":
            "Vertex AI: *it must have a text parameter*, for an image alone; AI Studio accepted it",
        "PublicAffairs/openai-gemini#31": "the same error",
        "langchain-ai/langchainjs#9922": "Vertex AI: the same error",
        "pydantic/pydantic-ai#2032": "Vertex AI rejects empty text",
        "AstrBotDevs/AstrBot#7200": "Moonshot: *the message … with role 'assistant' must not be empty*",
        "MoonshotAI/kimi-code#1985": "Moonshot: the same error",
        "lobehub/lobehub#8419": "Moonshot: the same error",
        "BerriAI/litellm#42186": "Moonshot: *text content is empty*, for an empty part next to calls",
        "recorded: pydantic-ai, tests/models/cassettes/test_google/test_google_model_empty_user_prompt.yaml":
            "Gemini accepted empty text",
        "pkg:github/vllm-project/vllm#vllm/entrypoints/openai/chat_completion/protocol.py":
            "vLLM: *`tools` must not be an empty array*",
        "recorded: pydantic-ai, tests/models/cassettes/test_huggingface/test_hf_model_instructions.yaml":
            "Hugging Face's router accepts an empty list of `tools`",
        "zed-industries/zed#38153": "Z.ai: *text cannot be empty*",
        "anomalyco/opencode#31259":
            "GitHub Copilot, Claude: *text content blocks must contain non-whitespace text*",
        "CopilotC-Nvim/CopilotChat.nvim#1189": "the same error",
        "microsoft/vscode#307618": "the same error",
        "gptme/gptme#1444": "Z.ai, through OpenRouter: the same error",
        "openclaw/openclaw#64644": "MiniMax: *chat content is empty*",
        "openclaw/openclaw#71296": "MiniMax: the same error",
        "agentscope-ai/QwenPaw#287": "Z.ai: the same error",
        "openclaw/openclaw#73688": "Z.ai rejects an assistant message without content",
        "MoonshotAI/kimi-cli#2621":
            "Moonshot: *text content is empty*, for an empty string next to calls",
        "lidge-jun/opencodex#795":
            "Volcengine: *missing `input.content.text` parameter*, for an empty string next to calls",
        "AstrBotDevs/AstrBot#6852": "Volcengine: *missing `messages.content` parameter*",
        "coze-dev/coze-studio#326": "SiliconFlow: *Field required*",
        "pkg:github/Blaizzy/mlx-vlm@9b13f52#mlx_vlm/server/openai.py":
            "mlx-vlm: *at least one non-empty message content or media input*",
        "langbot-app/LangBot#1205": "xAI: *Every message needs at least one non-empty content element*",
        "MarkPDFdown/markpdfdown#14": "Hunyuan rejects empty content",
        "microsoft/autogen#1521": "LM Studio: *a 'content' field that is not empty*",
        "we-promise/sure#467": "Workers AI requires `content` to be a string",
        "TencentCloud/TencentDB-Agent-Memory#1313": "Workers AI: *Bad input* for `content: null`",
        "lmstudio-ai/lmstudio-bug-tracker#261":
            "LM Studio: *'content' field must be a string or an array of objects*, for `content: null`",
        "zed-industries/zed#62750": "LM Studio: the same error",
        "continuedev/continue#11721": "the answer is empty",
        "pkg:github/ollama/ollama@fb30760#server/routes.go":
            "Ollama loads the model and returns an empty answer",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::OllamaChat if elements(subject.member("messages")).is_empty() => {
            let message =
                "there are no messages: the server loads the model and returns an empty answer";
            let note = match subject.member("messages") {
                Some(messages) => found.at(messages, message),
                None => found.at_top(message),
            };
            note.warning().help("render the conversation");
        }
        WireFormat::AnthropicMessages
        | WireFormat::GoogleGenerateContent
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
    in_history(subject, found);
}

fn in_history<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::GoogleGenerateContent if subject.server == Server::Vertex => {
            subject
                .history()
                .parts()
                .for_each(|(_, part)| empty_part(part.value, found));
            media_alone(subject, found);
        }
        WireFormat::OpenAiResponses if subject.server.is_openai() => {
            empty_messages(subject, found);
        }
        WireFormat::OpenAiChat => {
            empty_prompt(subject, found);
            no_tools(subject, found);
            if let Some(refused) = RefusedContent::of(subject) {
                refused_content(subject, &refused, found);
            }
            nothing_said(subject, found);
            let refusing = REFUSE_EMPTY_TEXT
                .into_iter()
                .find_map(|server| Some((server, subject.level_of(server)?)));
            if let Some((server, level)) = refusing {
                empty_text(subject, server, level, found);
            }
            if subject.headers.is_at(Site::GitHubCopilot)
                && subject.model.is_some_and(is_claude_model)
            {
                blank_text(subject, found);
            }
            if let Some(level) = subject.level_of(Server::ZAi) {
                empty_parts(subject, Server::ZAi, level, found);
            } else if let Some(level) = subject.level_of(Server::Moonshot) {
                empty_parts(subject, Server::Moonshot, level, found);
            }
        }
        WireFormat::MistralChat => mistral_prompt(subject, found),
        WireFormat::AnthropicMessages if subject.server == Server::ZAi => {
            empty_result(subject, found);
        }
        WireFormat::AnthropicMessages
        | WireFormat::GoogleGenerateContent
        | WireFormat::OpenAiResponses
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Reports a part with empty text.
fn empty_part<'b>(part: &'b Value, found: &mut Found<'b>) {
    if part.get("text").is_some_and(|text| text == "") && !is_signed(part) {
        found
            .at_member(part, "text", "empty text, which Vertex AI rejects")
            .help("leave out parts without text");
    }
}

/// Reports media in a conversation without any text.
fn media_alone<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let parts = subject.history().parts().map(|(_, part)| part.value);
    let parts: Vec<&Value> = parts.collect();
    if let Some(media) = parts.iter().find(|part| is_media(part))
        && parts.iter().all(|part| part.get("text").is_none())
    {
        let message = "the conversation has media, but no text; according to reports from 2024 and 2025, Vertex AI rejects this";
        found
            .at(media, message)
            .warning()
            .help("add a text part with instructions");
    }
}

fn is_media(part: &Value) -> bool {
    ["inlineData", "inline_data", "fileData", "file_data"]
        .iter()
        .any(|name| part.get(*name).is_some())
}

fn is_signed(part: &Value) -> bool {
    ["thoughtSignature", "thought_signature"]
        .iter()
        .any(|name| part.get(*name).is_some())
}

/// Reports an empty list as the content of a tool result, which Z.ai rejects. Source:
/// can1357/oh-my-pi#8768, measured.
fn empty_result<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let results = subject
        .history()
        .parts()
        .filter(|(_, part)| matches!(part.kind, Kind::Result(_)));
    for (_, result) in results {
        let content = result.value.get("content").and_then(Value::as_array);
        if content.is_some_and(Vec::is_empty) {
            found
                .at_member(
                    result.value,
                    "content",
                    "according to a user report, Z.ai rejects an empty list here",
                )
                .warning()
                .help("write an empty string, or some text");
        }
    }
}

/// Reports an empty list of tools.
fn no_tools<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let level = subject
        .level_with(VLLM)
        .filter(|_| !subject.headers.is_at_operator());
    let tools = subject
        .member("tools")
        .filter(|tools| tools.as_array().is_some_and(Vec::is_empty));
    if let Some((tools, level)) = tools.zip(level) {
        found
            .at(tools, "vLLM rejects an empty list of `tools`")
            .level(level)
            .help("leave it out");
    }
}

/// A kind of blank content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    /// `null`, in any message.
    Null,
    /// An empty string in a message with calls.
    Empty,
    /// No content in a message with calls.
    Absent,
}

impl Blank {
    fn of(message: &Value) -> Option<Blank> {
        let has_calls = !elements(message.get("tool_calls")).is_empty();
        match message.get("content") {
            Some(Value::Null) => Some(Blank::Null),
            Some(Value::String(text)) if has_calls && text.is_empty() => Some(Blank::Empty),
            None if has_calls => Some(Blank::Absent),
            _ => None,
        }
    }

    fn told(self) -> &'static str {
        match self {
            Blank::Null => "a message whose content is null",
            Blank::Empty => "tool calls with empty content",
            Blank::Absent => "tool calls without content",
        }
    }
}

/// The kinds of blank content that a server was reported to reject.
struct RefusedContent {
    server: &'static str,
    blanks: &'static [Blank],
    help: &'static str,
}

impl RefusedContent {
    fn of(subject: &Subject<'_>) -> Option<RefusedContent> {
        if subject.model.is_some_and(is_workers_ai_model) {
            return Some(RefusedContent {
                server: "Workers AI",
                blanks: &[Blank::Null],
                help: "send an empty string",
            });
        }
        let (blanks, help): (&[Blank], _) = match subject.server {
            Server::LmStudio => (&[Blank::Null], "send an empty string"),
            Server::SiliconFlow => (&[Blank::Absent], "send an empty string"),
            Server::Volcengine => (&[Blank::Null, Blank::Empty], "send some text"),
            Server::Moonshot => (&[Blank::Empty], "omit `content`"),
            _ => return None,
        };
        Some(RefusedContent {
            server: subject.server.name(),
            blanks,
            help,
        })
    }
}

/// Reports messages whose content a server may reject.
fn refused_content<'b>(subject: &Subject<'b>, refused: &RefusedContent, found: &mut Found<'b>) {
    for entry in &subject.history().entries {
        let blank = Blank::of(entry.value).filter(|blank| refused.blanks.contains(blank));
        if let Some(blank) = blank {
            let (server, what) = (refused.server, blank.told());
            found
                .at_member(
                    entry.value,
                    "content",
                    format!("according to user reports, {server} rejects {what}"),
                )
                .warning()
                .help(refused.help);
        }
    }
}

/// Members other than `content` that can hold a message's text.
const ELSEWHERE: [&str; 3] = ["refusal", "reasoning_content", "reasoning"];

/// Reports a conversation in which every message is empty, if the server is unknown.
fn nothing_said<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let entries = &subject.history().entries;
    let is_said = entries
        .iter()
        .flat_map(|entry| &entry.parts)
        .any(|part| !matches!(part.kind, Kind::Text(text) if text.trim().is_empty()));
    let is_said_elsewhere = subject.member("documents").is_some()
        || entries.iter().any(|entry| {
            ELSEWHERE
                .iter()
                .any(|name| entry.value.get(*name).is_some())
        });
    if subject.server == Server::Unknown
        && !is_said
        && !is_said_elsewhere
        && let Some(last) = entries
            .iter()
            .rfind(|entry| entry.value.get("content").is_some())
    {
        let message = "no message has any content, which some servers reject (mlx-vlm)";
        found
            .at_member(last.value, "content", message)
            .warning()
            .help("send at least one message with text or media");
    }
}

/// Reports instructions given as an empty list.
fn empty_prompt<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role == Role::System)
    {
        let content = entry.value.get("content").and_then(Value::as_array);
        if content.is_some_and(Vec::is_empty) {
            let message = "the prompt is an empty list: the specification requires a part, although the API has accepted an empty list";
            found
                .at_member(entry.value, "content", message)
                .warning()
                .help("leave the message out");
        }
    }
}

/// The servers that were observed to reject empty messages.
const REFUSE_EMPTY_TEXT: [Server; 6] = [
    Server::XAi,
    Server::Moonshot,
    Server::ZAi,
    Server::MiniMax,
    Server::Hunyuan,
    Server::LmStudio,
];

/// Reports empty messages that a server rejects: the one that receives the body, or the model's
/// vendor behind a gateway.
fn empty_text<'b>(subject: &Subject<'b>, refusing: Server, level: Severity, found: &mut Found<'b>) {
    let is_told_of_model = refusing != Server::Hunyuan;
    let told =
        subject.history().entries.iter().filter(|entry| {
            is_asked(entry.role) || entry.role == Role::Assistant && is_told_of_model
        });
    for entry in told {
        let is_empty = entry
            .parts
            .iter()
            .all(|part| matches!(part.kind, Kind::Text("")));
        if !is_empty || entry.value.get("content").is_none() || is_continued(entry.value) {
            continue;
        }
        let server = refusing.name();
        let help = "leave the message out";
        if refusing == Server::Moonshot && entry.role == Role::Assistant {
            let message = format!(
                "{server} rejects an assistant message that has neither text nor tool calls"
            );
            let note = found.at_member(entry.value, "content", message);
            note.level(level).help(help);
        } else {
            let message = format!("a report says that {server} rejects a message without text");
            found
                .at_member(entry.value, "content", message)
                .warning()
                .help(help);
        }
    }
}

/// Reports blank text in messages to Claude, which GitHub Copilot passes on to Anthropic. Messages
/// with calls are exempt, because clients send them with empty text.
fn blank_text<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let messages = subject.history().entries.iter().filter(|entry| {
        let is_of_client = is_asked(entry.role) || entry.role == Role::Assistant;
        is_of_client && elements(entry.value.get("tool_calls")).is_empty()
    });
    for part in messages.flat_map(|entry| &entry.parts) {
        if let Kind::Text(text) = part.kind
            && text.trim().is_empty()
        {
            found
                .at(part.value, "this text is blank, which Claude's API rejects")
                .help("remove the part; if the message then has no parts, remove the message");
        }
    }
}

/// Reports parts with empty text. Messages without any text are reported by [`empty_text`], unless
/// they have calls.
fn empty_parts<'b>(
    subject: &Subject<'b>,
    refusing: Server,
    level: Severity,
    found: &mut Found<'b>,
) {
    for entry in &subject.history().entries {
        let has_parts = entry.value.get("content").is_some_and(Value::is_array);
        if !has_parts || entry.parts.len() < 2 {
            continue;
        }
        for part in &entry.parts {
            if !matches!(part.kind, Kind::Text("")) {
                continue;
            }
            found
                .at(
                    part.value,
                    format!("{} rejects parts with empty text", refusing.name()),
                )
                .level(level)
                .help("remove the part");
        }
    }
}

/// Returns `true` if the model continues this message.
fn is_continued(message: &Value) -> bool {
    message.get("partial") == Some(&Value::Bool(true))
}

fn is_asked(role: Role) -> bool {
    matches!(role, Role::System | Role::User)
}

/// Reports a system message without text, which Mistral rejects.
fn mistral_prompt<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for entry in subject
        .history()
        .entries
        .iter()
        .filter(|entry| entry.role == Role::System)
    {
        if entry
            .value
            .get("content")
            .and_then(Value::as_str)
            .is_some_and(str::is_empty)
        {
            let note = found.at_member(
                entry.value,
                "content",
                "the system prompt is empty, which the API rejects",
            );
            note.warning().help("leave the message out");
        }
    }
}

fn empty_messages<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for pair in subject.history().entries.windows(2) {
        let is_reasoning = pair[0].parts.iter().any(Part::is_thinking);
        let is_empty = pair[1]
            .parts
            .iter()
            .all(|part| matches!(part.kind, Kind::Text("")));
        if is_reasoning && pair[1].role == Role::Assistant && is_empty {
            let note = found.at(
                pair[1].value,
                "an empty message separates the reasoning from the item that belongs to it",
            );
            note.warning().help("leave out messages without text");
        }
    }
}
