//! Recognises the wire format of a body by its shape.
//!
//! The characteristic members of a body narrow the candidates down to one format, or to a few that
//! share these members. Other members, roles, blocks, tools and the model's name then count as
//! evidence for the formats that use them. The format with the most evidence wins; a tie is an
//! error.

use serde_json::{Map, Value};

use super::unsupported::Unsupported;
use crate::provider::WireFormat;
use WireFormat::{
    AnthropicMessages, GoogleGenerateContent, LlamaCppInfill, MistralChat, MistralFim, OllamaChat,
    OllamaGenerate, OpenAiChat, OpenAiResponses,
};

/// The reason a body's wire format is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unrecognised {
    /// The value is not a body in any known format.
    NoBody,
    /// These formats fit equally well.
    Ambiguous(Vec<WireFormat>),
    /// The body has a format that is not checked.
    Unsupported(Unsupported),
}

impl std::fmt::Display for Unrecognised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unrecognised::NoBody => {
                f.write_str("this is not a request body of a known wire format")
            }
            Unrecognised::Ambiguous(formats) => {
                let names: Vec<String> = formats
                    .iter()
                    .map(|wire| format!("`{}`", wire.name()))
                    .collect();
                let (last, first) = names
                    .split_last()
                    .map_or(("", &[][..]), |(last, first)| (last.as_str(), first));
                write!(f, "this body may be {} or {last}", first.join(", "))
            }
            Unrecognised::Unsupported(format) => write!(
                f,
                "this is a request to {}, a format that is not supported",
                format.name()
            ),
        }
    }
}

impl std::error::Error for Unrecognised {}

/// Returns the characteristic members of a format. Each body in the format has at least one of
/// them.
pub(super) fn begins_with(wire: WireFormat) -> &'static [&'static str] {
    wire.facts().begins_with
}

/// Recognises the wire format of a body by its shape.
///
/// ```
/// use reqc::lint::{WireFormat, recognise};
/// use serde_json::json;
///
/// let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": []});
/// assert_eq!(recognise(&body), Ok(WireFormat::AnthropicMessages));
/// let message = recognise(&json!({"model": "ours", "messages": []})).unwrap_err().to_string();
/// assert_eq!(message, "this body may be `anthropic-messages`, `openai-chat` or `ollama-chat`");
/// ```
///
/// # Errors
///
/// Returns an error if the value is not a body, if several formats fit equally well, or if the
/// format is not supported.
pub fn recognise(body: &Value) -> Result<WireFormat, Unrecognised> {
    recognise_among(body, &WireFormat::ALL)
}

/// Recognises the wire format of a body among the given formats. If only one is given, it is
/// returned without checks.
pub(crate) fn recognise_among(
    body: &Value,
    among: &[WireFormat],
) -> Result<WireFormat, Unrecognised> {
    if let [only] = among {
        return Ok(*only);
    }
    let members = body.as_object().ok_or(Unrecognised::NoBody)?;
    let unsupported = Unsupported::by_shape(members)
        .or_else(|| is_text_completion(members).then_some(Unsupported::TextCompletion));
    if let Some(format) = unsupported {
        return Err(Unrecognised::Unsupported(format));
    }
    let mut votes = candidates(members);
    if votes.is_empty() {
        return Err(Unrecognised::NoBody);
    }
    if votes.iter().any(|(wire, _)| among.contains(wire)) {
        votes.retain(|(wire, _)| among.contains(wire));
    }
    let most = votes
        .iter()
        .map(|(_, votes)| *votes)
        .max()
        .unwrap_or_default();
    let mut best: Vec<WireFormat> = votes
        .iter()
        .filter(|(_, votes)| *votes == most)
        .map(|(wire, _)| *wire)
        .collect();
    // Mistral's format differs from OpenAI's in a few members and names. A body without any of them
    // is treated as OpenAI's.
    if best.contains(&OpenAiChat) {
        best.retain(|wire| wire.facts().only_at.is_none());
    }
    match best.as_slice() {
        [one] => Ok(*one),
        _ => Err(Unrecognised::Ambiguous(best)),
    }
}

/// Returns the formats whose characteristic members a body has, each with the weight of the
/// evidence for it.
fn candidates(body: &Map<String, Value>) -> Vec<(WireFormat, u32)> {
    if begins(GoogleGenerateContent, body) {
        return vec![(GoogleGenerateContent, 0)];
    }
    if begins(LlamaCppInfill, body) {
        return vec![(LlamaCppInfill, 0)];
    }
    if body.contains_key("messages") {
        return counted(
            &[AnthropicMessages, OpenAiChat, MistralChat, OllamaChat],
            &chat_evidence(body),
        );
    }
    match body.get("prompt") {
        Some(Value::Object(_)) => return vec![(OpenAiResponses, 0)],
        Some(_) => return counted(&[MistralFim, OllamaGenerate], &completion_evidence(body)),
        None => {}
    }
    match begins(OpenAiResponses, body) && !is_for_other_models(body) {
        true => vec![(OpenAiResponses, 0)],
        false => Vec::new(),
    }
}

fn begins(wire: WireFormat, body: &Map<String, Value>) -> bool {
    begins_with(wire)
        .iter()
        .any(|name| body.contains_key(*name))
}

/// A piece of evidence: the formats that have a feature, and the feature's weight.
type Evidence = (&'static [WireFormat], u32);

fn counted(formats: &[WireFormat], evidence: &[Evidence]) -> Vec<(WireFormat, u32)> {
    formats
        .iter()
        .map(|wire| {
            (
                *wire,
                evidence
                    .iter()
                    .filter(|(of, _)| of.contains(wire))
                    .map(|(_, votes)| votes)
                    .sum(),
            )
        })
        .collect()
}

const ANTHROPIC: &[WireFormat] = &[AnthropicMessages];
const OPENAI: &[WireFormat] = &[OpenAiChat];
const MISTRAL: &[WireFormat] = &[MistralChat];
const OLLAMA: &[WireFormat] = &[OllamaChat];
const NOT_OLLAMA: &[WireFormat] = &[AnthropicMessages, OpenAiChat, MistralChat];
const NOT_ANTHROPIC: &[WireFormat] = &[OpenAiChat, MistralChat, OllamaChat];
const OPENAI_LIKE: &[WireFormat] = &[OpenAiChat, MistralChat];
const TAGGED: &[WireFormat] = &[OpenAiChat, OllamaChat, OllamaGenerate];

/// The members in chat bodies that only some formats have.
const CHAT_MEMBERS: &[(&[WireFormat], &[&str])] = &[
    (
        ANTHROPIC,
        &[
            "system",
            "stop_sequences",
            "anthropic_version",
            "anthropic_beta",
            "output_config",
            "context_management",
            "mcp_servers",
            "container",
        ],
    ),
    (
        OPENAI,
        &[
            "max_completion_tokens",
            "stream_options",
            "logit_bias",
            "seed",
            "store",
            "user",
            "functions",
            "function_call",
            "modalities",
            "audio",
            "verbosity",
            "web_search_options",
            "prompt_cache_key",
            "safety_identifier",
            "reasoning",
            "models",
            "chat_template_kwargs",
            "enable_thinking",
            "thinking_budget",
            "enable_search",
            "translation_options",
            "structured_outputs",
            "guided_json",
            "separate_reasoning",
            "min_p",
            "repetition_penalty",
            "repeat_penalty",
            "grammar",
            "json_schema",
            "lora",
            "cache_prompt",
            "n_predict",
            "provider",
            "plugins",
        ],
    ),
    (TAGGED, &["logprobs", "top_logprobs"]),
    (
        MISTRAL,
        &[
            "random_seed",
            "safe_prompt",
            "prompt_mode",
            "document_image_limit",
            "document_page_limit",
        ],
    ),
    (
        OLLAMA,
        &[
            "options",
            "keep_alive",
            "think",
            "format",
            "num_ctx",
            "truncate",
            "shift",
        ],
    ),
    (
        OPENAI_LIKE,
        &[
            "response_format",
            "frequency_penalty",
            "presence_penalty",
            "n",
            "stop",
            "parallel_tool_calls",
            "prediction",
            "reasoning_effort",
        ],
    ),
    (
        NOT_OLLAMA,
        &[
            "max_tokens",
            "temperature",
            "top_p",
            "tool_choice",
            "metadata",
        ],
    ),
];

/// The maximum number of messages and tools that are examined.
const LOOKED_AT: usize = 500;

fn chat_evidence(body: &Map<String, Value>) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for (formats, names) in CHAT_MEMBERS {
        evidence.extend(
            names
                .iter()
                .filter(|name| body.contains_key(**name))
                .map(|_| (*formats, 1)),
        );
    }
    evidence.extend(
        body.get("model")
            .and_then(Value::as_str)
            .and_then(model_evidence),
    );
    for message in elements(body.get("messages")) {
        message_evidence(message, &mut evidence);
    }
    for tool in elements(body.get("tools")) {
        evidence.extend(tool.get("input_schema").map(|_| (ANTHROPIC, 2)));
        evidence.extend(tool.get("function").map(|_| (NOT_ANTHROPIC, 2)));
    }
    // Each feature is counted once, however often it occurs.
    evidence.sort_unstable();
    let (members, mut kinds): (Vec<Evidence>, Vec<Evidence>) =
        evidence.into_iter().partition(|(_, votes)| *votes == 1);
    kinds.dedup();
    members.into_iter().chain(kinds).collect()
}

fn elements(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(LOOKED_AT)
}

/// Collects evidence from the members and blocks of a message. Each piece of this evidence has more
/// weight than a member of the body.
fn message_evidence(message: &Value, evidence: &mut Vec<Evidence>) {
    match message.get("role").and_then(Value::as_str) {
        Some("developer" | "function") => evidence.push((OPENAI, 2)),
        Some("tool" | "system") => evidence.push((NOT_ANTHROPIC, 2)),
        _ => {}
    }
    if has_any(message, &["tool_call_id"]) {
        evidence.push((OPENAI_LIKE, 2));
    }
    if has_any(message, &["tool_name", "images", "thinking"]) {
        evidence.push((OLLAMA, 3));
    }
    let of_openai = [
        "refusal",
        "function_call",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "partial",
    ];
    if has_any(message, &of_openai) {
        evidence.push((OPENAI, 2));
    }
    for call in elements(message.get("tool_calls")) {
        let is_object = call
            .pointer("/function/arguments")
            .is_some_and(Value::is_object);
        evidence.push(if is_object {
            (OLLAMA, 3)
        } else {
            (OPENAI_LIKE, 3)
        });
    }
    for block in elements(message.get("content")) {
        evidence.extend(block_evidence(block));
    }
}

/// Returns `true` if a message has one of these members, with a value other than `null`.
fn has_any(message: &Value, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| message.get(name).is_some_and(|value| !value.is_null()))
}

fn block_evidence(block: &Value) -> Option<Evidence> {
    Some(match block.get("type").and_then(Value::as_str)? {
        "text" => (NOT_OLLAMA, 2),
        "thinking" if block.get("thinking").is_some_and(Value::is_array) => (MISTRAL, 4),
        "thinking" | "redacted_thinking" | "tool_use" | "tool_result" | "image" | "document"
        | "server_tool_use" => (ANTHROPIC, 4),
        "document_url" | "reference" => (MISTRAL, 4),
        "file" if block.get("file_id").is_some() => (MISTRAL, 4),
        "image_url" if block.get("image_url").is_some_and(Value::is_string) => (MISTRAL, 4),
        "image_url" => (OPENAI_LIKE, 4),
        "input_audio" if block.get("input_audio").is_some_and(Value::is_string) => (MISTRAL, 4),
        "input_audio" | "refusal" | "file" | "video" | "video_url" => (OPENAI, 4),
        _ => return None,
    })
}

/// The name prefixes of models that one provider serves in its own format.
const MODELS: [(&[WireFormat], &[&str]); 3] = [
    (ANTHROPIC, &["claude"]),
    (
        OPENAI,
        &[
            "gpt-", "chatgpt-", "ft:", "deepseek", "grok-", "gemini", "o1", "o3", "o4", "kimi",
            "glm-", "qwen-",
        ],
    ),
    (
        &[MistralChat, MistralFim],
        &[
            "mistral-",
            "ministral-",
            "magistral-",
            "codestral-",
            "devstral-",
            "pixtral-",
            "voxtral-",
            "open-mistral-",
            "open-mixtral-",
        ],
    ),
];

/// The name prefixes of models that anyone can run.
const OPEN: [&str; 9] = [
    "llama",
    "qwen",
    "gemma",
    "phi",
    "codellama",
    "starcoder",
    "granite",
    "smollm",
    "gpt-oss",
];

fn model_evidence(model: &str) -> Option<Evidence> {
    let known = MODELS
        .iter()
        .find(|(_, names)| names.iter().any(|name| model.starts_with(name)));
    match known {
        Some((formats, _))
            if !model.starts_with("gpt-oss")
                && !model.contains('/')
                && (!model.contains(':') || model.starts_with("ft:")) =>
        {
            Some((formats, 3))
        }
        // Gateways and local servers with OpenAI's format name models `provider/model`.
        _ if model.contains('/') => Some((OPENAI, 3)),
        // A name of the form `model:tag` is evidence for Ollama's two formats, and so is the name
        // of a model that anyone can run.
        _ if model.contains(':') || OPEN.iter().any(|name| model.starts_with(name)) => {
            Some((TAGGED, 3))
        }
        _ => None,
    }
}

fn completion_evidence(body: &Map<String, Value>) -> Vec<Evidence> {
    const FIM: &[&str] = &[
        "max_tokens",
        "min_tokens",
        "random_seed",
        "stop",
        "temperature",
        "top_p",
    ];
    const GENERATE: &[&str] = &[
        "options",
        "keep_alive",
        "raw",
        "template",
        "context",
        "images",
        "format",
        "system",
        "think",
    ];
    let mut evidence: Vec<Evidence> = vec![(&[MistralFim], 1); named(FIM, body)];
    evidence.extend(vec![
        (&[OllamaGenerate] as &[WireFormat], 2);
        named(GENERATE, body)
    ]);
    evidence.extend(
        body.get("model")
            .and_then(Value::as_str)
            .and_then(model_evidence),
    );
    evidence
}

fn named(names: &[&str], body: &Map<String, Value>) -> usize {
    names
        .iter()
        .filter(|name| body.contains_key(**name))
        .count()
}

/// Returns `true` if a body is for the text completion endpoint, the predecessor of chat.
fn is_text_completion(body: &Map<String, Value>) -> bool {
    let is_prompted = body.get("prompt").is_some_and(|prompt| !prompt.is_object());
    if !is_prompted || has_history(body) {
        return false;
    }
    let model = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let names = [
        "echo",
        "best_of",
        "n",
        "logit_bias",
        "frequency_penalty",
        "presence_penalty",
        "n_predict",
    ];
    names.iter().any(|name| body.contains_key(*name))
        || body.get("logprobs").is_some_and(Value::is_number)
        || ["gpt-3", "davinci", "babbage"]
            .iter()
            .any(|name| model.starts_with(name))
}

/// Returns `true` if a body has a member with a conversation.
fn has_history(body: &Map<String, Value>) -> bool {
    ["messages", "contents", "input", "input_prefix"]
        .iter()
        .any(|name| body.contains_key(*name))
}

/// Returns `true` if a body with `input` is for embeddings, moderation or speech.
fn is_for_other_models(body: &Map<String, Value>) -> bool {
    let model = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    ["encoding_format", "dimensions", "voice", "input_type"]
        .iter()
        .any(|name| body.contains_key(*name))
        || ["embed", "moderation", "tts-", "whisper", "rerank"]
            .iter()
            .any(|word| model.contains(word))
        || body.get("input").is_some_and(Value::is_object)
        || is_list_of_texts(body)
}

/// Returns `true` if a body has only texts or tokens as its `input`, as requests for embeddings have.
fn is_list_of_texts(body: &Map<String, Value>) -> bool {
    let elements = body.get("input").and_then(Value::as_array);
    let are_texts = elements
        .is_some_and(|elements| !elements.is_empty() && elements.iter().all(is_text_or_tokens));
    let has_other_members = body
        .keys()
        .any(|name| !["model", "input", "user"].contains(&name.as_str()));
    are_texts && !has_other_members
}

/// Returns `true` for a text, a token, or a list of tokens.
fn is_text_or_tokens(value: &Value) -> bool {
    let tokens = value.as_array();
    let are_tokens =
        tokens.is_some_and(|tokens| !tokens.is_empty() && tokens.iter().all(Value::is_number));
    value.is_string() || value.is_number() || are_tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ambiguous(body: &Value) -> Vec<WireFormat> {
        match recognise(body) {
            Err(Unrecognised::Ambiguous(formats)) => formats,
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn shapes_tell_the_format() {
        let user = json!([{"role": "user", "content": "Hello"}]);
        let known = [
            (json!({"contents": []}), GoogleGenerateContent),
            (
                json!({"model": "gpt-5.6-luna", "input": "Hello"}),
                OpenAiResponses,
            ),
            (
                json!({"model": "claude-x", "messages": [{"role": "system", "content": "a"}]}),
                AnthropicMessages,
            ),
            (
                json!({"model": "ours", "system": "a", "max_tokens": 1, "messages": user}),
                AnthropicMessages,
            ),
            (
                json!({"model": "gpt-5.6-luna", "messages": user}),
                OpenAiChat,
            ),
            (
                json!({"model": "anthropic/claude-x", "messages": user}),
                OpenAiChat,
            ),
            (
                json!({"model": "ours", "max_tokens": 1, "messages": [{"role": "system", "content": ""}]}),
                OpenAiChat,
            ),
            (
                json!({"model": "mistral-small-latest", "messages": user}),
                MistralChat,
            ),
            (
                json!({"model": "llama3.2:3b", "options": {}, "messages": user}),
                OllamaChat,
            ),
            (
                json!({"model": "llama3.2:3b", "max_tokens": 9, "messages": user}),
                OpenAiChat,
            ),
            (json!({"model": "llama3.2", "prompt": "a"}), OllamaGenerate),
            (
                json!({"model": "gpt-oss:20b", "prompt": "a", "think": "low", "logprobs": true}),
                OllamaGenerate,
            ),
            (
                json!({"messages": user, "grammar": "root ::= \"a\""}),
                OpenAiChat,
            ),
            (
                json!({"model": "codestral-latest", "prompt": "a", "suffix": "b"}),
                MistralFim,
            ),
            (
                json!({"model": "codestral:22b", "prompt": "a", "suffix": "b"}),
                OllamaGenerate,
            ),
            (
                json!({"input_prefix": "a", "input_suffix": "b"}),
                LlamaCppInfill,
            ),
        ];
        for (body, wire) in known {
            assert_eq!(recognise(&body), Ok(wire), "{body}");
        }
    }

    #[test]
    fn a_draw_is_told() {
        let user = json!([{"role": "user", "content": "Hello"}]);
        assert_eq!(
            ambiguous(&json!({"model": "llama3.2:3b", "messages": user})),
            [OpenAiChat, OllamaChat]
        );
        assert_eq!(
            ambiguous(&json!({"model": "ours", "max_tokens": 1, "messages": user})),
            [AnthropicMessages, OpenAiChat]
        );
        assert_eq!(
            ambiguous(&json!({"model": "ours", "prompt": "a"})),
            [MistralFim, OllamaGenerate]
        );
    }

    #[test]
    fn what_is_for_other_endpoints_is_no_body() {
        for body in [
            json!({"model": "ours", "prompt": "a", "logprobs": 5}),
            json!({"model": "gpt-3.5-turbo-instruct", "prompt": "a"}),
            json!({"model": "ours", "prompt": ["a", "b"], "best_of": 2}),
        ] {
            let expected = Unrecognised::Unsupported(Unsupported::TextCompletion);
            assert_eq!(recognise(&body), Err(expected), "{body}");
        }
        for body in [
            json!({"model": "text-embedding-3-small", "input": "a"}),
            json!({"model": "ours", "input": ["a", "b"]}),
            json!({"input": [[1, 2], [3]]}),
            json!({"id": "chatcmpl-1", "choices": []}),
            json!([]),
        ] {
            assert_eq!(recognise(&body), Err(Unrecognised::NoBody), "{body}");
        }
    }
}
