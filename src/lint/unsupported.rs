//! Request formats that are not checked. They are recognised so that they are not mistaken for
//! supported ones.

use serde_json::{Map, Value};

/// A request format that reqc does not check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// Amazon Bedrock's Converse API, and Amazon Nova.
    Converse,
    /// The models' own prompt formats on Amazon Bedrock (`invoke`), for Llama, Titan, and older
    /// models from Mistral and Anthropic.
    BedrockPrompt,
    /// Cohere's own chat API, in both versions.
    CohereChat,
    /// `DashScope`'s own generation API: the messages are in `input`, the settings in `parameters`.
    DashScope,
    /// Cloudflare's own API for Workers AI, which runs all kinds of models.
    WorkersAi,
    /// LM Studio's own chat API.
    LmStudioChat,
    /// Text completions: OpenAI's (the predecessor of chat) and llama.cpp's.
    TextCompletion,
    /// Gemini's Interactions API.
    Interactions,
    /// Naver CLOVA Studio's own chat API.
    ClovaChat,
    /// Snowflake Cortex's own completion API.
    CortexComplete,
    /// IBM watsonx.ai's own chat API.
    WatsonxChat,
    /// Yandex Cloud's own completion API.
    YandexCompletion,
}

/// Addresses of a format that is not checked.
struct Addresses {
    format: Unsupported,
    /// The end of the host; empty if the path alone identifies the format.
    host: &'static str,
    /// A part of the path.
    within: &'static str,
    /// The possible ends of the path.
    ends: &'static [&'static str],
}

/// The addresses of all formats that are not checked.
const ADDRESSES: [Addresses; 13] = [
    at(
        Unsupported::Converse,
        "",
        "/model/",
        &["/converse", "/converse-stream"],
    ),
    at(
        Unsupported::CohereChat,
        "cohere.com",
        "",
        &["/v1/chat", "/v2/chat"],
    ),
    at(
        Unsupported::CohereChat,
        "cohere.ai",
        "",
        &["/v1/chat", "/v2/chat"],
    ),
    // vLLM's copy of it: <https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/renderers/cohere.py>.
    at(Unsupported::CohereChat, "", "", &["/cohere/v2/chat"]),
    at(
        Unsupported::DashScope,
        "",
        "/services/aigc/",
        &["-generation/generation"],
    ),
    at(
        Unsupported::WorkersAi,
        "api.cloudflare.com",
        "/ai/run",
        &[""],
    ),
    at(Unsupported::LmStudioChat, "", "", &["/api/v1/chat"]),
    at(Unsupported::TextCompletion, "", "", &["/v1/completions"]),
    // Source: <https://ai.google.dev/gemini-api/docs/interactions>.
    at(
        Unsupported::Interactions,
        "googleapis.com",
        "",
        &["/interactions"],
    ),
    // Source: <https://api.ncloud-docs.com/docs/en/clovastudio-chatcompletionsv3>. The path of its
    // OpenAI-compatible format contains `/openai/chat/completions`.
    at(
        Unsupported::ClovaChat,
        "ntruss.com",
        "/chat-completions/",
        &[""],
    ),
    // Source: <https://docs.snowflake.com/developer-guide/snowflake-rest-api/reference/cortex-inference>.
    at(
        Unsupported::CortexComplete,
        "",
        "/cortex/",
        &["/inference:complete"],
    ),
    // Source: <https://cloud.ibm.com/apidocs/watsonx-ai#text-chat>.
    at(
        Unsupported::WatsonxChat,
        "",
        "/ml/v1/",
        &["/text/chat", "/text/chat_stream"],
    ),
    // Source: <https://yandex.cloud/en/docs/ai-studio/text-generation/api-ref/TextGeneration/completion>.
    at(
        Unsupported::YandexCompletion,
        "",
        "/foundationModels/",
        &["/completion", "/completionAsync"],
    ),
];

const fn at(
    format: Unsupported,
    host: &'static str,
    within: &'static str,
    ends: &'static [&'static str],
) -> Addresses {
    Addresses {
        format,
        host,
        within,
        ends,
    }
}

impl Unsupported {
    /// Returns the name of the API.
    pub fn name(self) -> &'static str {
        match self {
            Unsupported::Converse => "Amazon Bedrock's Converse API",
            Unsupported::BedrockPrompt => "a model's own prompt format on Amazon Bedrock",
            Unsupported::CohereChat => "Cohere's chat API",
            Unsupported::DashScope => "DashScope's own generation API",
            Unsupported::WorkersAi => "Cloudflare's own API for Workers AI (`/ai/run`)",
            Unsupported::LmStudioChat => "LM Studio's own chat API (`/api/v1/chat`)",
            Unsupported::TextCompletion => {
                "a text completions API (`/v1/completions`, llama.cpp's `/completion`)"
            }
            Unsupported::Interactions => "Gemini's Interactions API",
            Unsupported::ClovaChat => "CLOVA Studio's own chat API",
            Unsupported::CortexComplete => {
                "Snowflake Cortex's own completion API (`inference:complete`)"
            }
            Unsupported::WatsonxChat => "watsonx.ai's own chat API (`/ml/v1/text/chat`)",
            Unsupported::YandexCompletion => "Yandex Cloud's own completion API",
        }
    }

    /// Returns the unsupported format of the server at an address; `host` is empty if only a path
    /// is known.
    pub(super) fn by_address(host: &str, path: &str) -> Option<Unsupported> {
        ADDRESSES
            .iter()
            .find(|at| {
                host.ends_with(at.host)
                    && path.contains(at.within)
                    && at.ends.iter().any(|end| path.ends_with(end))
            })
            .map(|at| at.format)
    }

    /// Returns the unsupported format that a body has, judged by its members.
    pub(super) fn by_shape(body: &Map<String, Value>) -> Option<Unsupported> {
        if is_dashscope(body) {
            return Some(Unsupported::DashScope);
        }
        if is_interaction(body) {
            return Some(Unsupported::Interactions);
        }
        if body.contains_key("modelUri") {
            return Some(Unsupported::YandexCompletion);
        }
        let Some(messages) = body.get("messages") else {
            return has_any(body, &BEDROCK_PROMPT).then_some(Unsupported::BedrockPrompt);
        };
        let messages = messages.as_array()?;
        if is_converse(body, messages) {
            return Some(Unsupported::Converse);
        }
        if has_any(body, &["model_id"]) && has_any(body, &["project_id", "space_id"]) {
            return Some(Unsupported::WatsonxChat);
        }
        let is_cohere = has_any(body, &COHERE)
            || body.contains_key("documents")
                && body
                    .get("model")
                    .and_then(Value::as_str)
                    .is_some_and(|model| model.starts_with("command"));
        is_cohere.then_some(Unsupported::CohereChat)
    }
}

/// The members that only Cohere's bodies have.
const COHERE: [&str; 3] = ["citation_options", "safety_mode", "strict_tools"];

/// The members in the prompt formats on Bedrock: those for Llama, Titan, and older Claude models.
///
/// Source: <https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html>.
const BEDROCK_PROMPT: [&str; 3] = [
    "max_gen_len",
    "textGenerationConfig",
    "max_tokens_to_sample",
];

/// The members that Converse bodies have and chat formats do not. The model is in the address.
const CONVERSE: [&str; 5] = [
    "inferenceConfig",
    "additionalModelRequestFields",
    "guardrailConfig",
    "performanceConfig",
    "modelId",
];

/// The kinds of Converse blocks. The name of a block's only member is its kind; there is no `type`.
const BLOCKS: [&str; 11] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "cachePoint",
    "guardContent",
    "reasoningContent",
    "citationsContent",
];

/// The maximum number of messages that are examined.
const LOOKED_AT: usize = 500;

/// Returns `true` if the model and the settings of a body are next to the object that contains its
/// messages. Source: <https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-dashscope>.
fn is_dashscope(body: &Map<String, Value>) -> bool {
    let has_settings = body.get("parameters").is_some_and(Value::is_object);
    let messages = body.get("input").and_then(|input| input.get("messages"));
    body.contains_key("model") && has_settings && messages.is_some_and(Value::is_array)
}

/// Returns `true` if a body has an `input`, and members that only Gemini's Interactions API has.
/// Source: <https://ai.google.dev/gemini-api/docs/interactions>.
fn is_interaction(body: &Map<String, Value>) -> bool {
    const OWN: [&str; 5] = [
        "system_instruction",
        "generation_config",
        "previous_interaction_id",
        "response_modalities",
        "agent_config",
    ];
    // In Azure's format, an agent is an object.
    let has_agent = body.get("agent").is_some_and(Value::is_string);
    let is_own = has_agent || has_any(body, &OWN);
    is_own && body.contains_key("input") && !body.contains_key("contents")
}

fn is_converse(body: &Map<String, Value>, messages: &[Value]) -> bool {
    if has_any(body, &["model", "max_tokens"]) {
        return false;
    }
    let has_specs = body
        .get("toolConfig")
        .and_then(|config| config.get("tools")?.as_array())
        .is_some_and(|tools| tools.iter().any(|tool| tool.get("toolSpec").is_some()));
    let mut blocks = messages
        .iter()
        .take(LOOKED_AT)
        .filter_map(|message| message.get("content")?.as_array())
        .flatten()
        .peekable();
    has_specs
        || has_any(body, &CONVERSE)
        || blocks.peek().is_some() && blocks.all(is_block_of_converse)
}

fn is_block_of_converse(block: &Value) -> bool {
    block
        .as_object()
        .is_some_and(|members| members.len() == 1 && has_any(members, &BLOCKS))
}

fn has_any(members: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().any(|name| members.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(body: &Value) -> Option<Unsupported> {
        Unsupported::by_shape(body.as_object().expect("an object"))
    }

    #[test]
    fn addresses_tell_formats_that_are_not_checked() {
        for (host, path, expected) in [
            (
                "bedrock-runtime.us-east-1.amazonaws.com",
                "/model/a/converse",
                Some(Unsupported::Converse),
            ),
            ("api.cohere.com", "/v2/chat", Some(Unsupported::CohereChat)),
            ("example.com", "/v2/chat", None),
            (
                "localhost",
                "/cohere/v2/chat",
                Some(Unsupported::CohereChat),
            ),
            (
                "dashscope.aliyuncs.com",
                "/api/v1/services/aigc/text-generation/generation",
                Some(Unsupported::DashScope),
            ),
            (
                "localhost",
                "/v1/completions",
                Some(Unsupported::TextCompletion),
            ),
            ("localhost", "/v1/chat/completions", None),
            (
                "generativelanguage.googleapis.com",
                "/v1beta/interactions",
                Some(Unsupported::Interactions),
            ),
            (
                "clovastudio.stream.ntruss.com",
                "/testapp/v3/chat-completions/HCX-005",
                Some(Unsupported::ClovaChat),
            ),
            (
                "clovastudio.stream.ntruss.com",
                "/v1/openai/chat/completions",
                None,
            ),
            (
                "a.snowflakecomputing.com",
                "/api/v2/cortex/inference:complete",
                Some(Unsupported::CortexComplete),
            ),
            (
                "us-south.ml.cloud.ibm.com",
                "/ml/v1/text/chat",
                Some(Unsupported::WatsonxChat),
            ),
            (
                "llm.api.cloud.yandex.net",
                "/foundationModels/v1/completion",
                Some(Unsupported::YandexCompletion),
            ),
        ] {
            assert_eq!(Unsupported::by_address(host, path), expected, "{path}");
        }
    }

    #[test]
    fn shapes_tell_formats_that_are_not_checked() {
        let user = json!([{"role": "user", "content": [{"text": "Hello"}]}]);
        let calls = json!([{"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "a", "name": "find", "input": {}}}, {"text": "Wait."}
        ]}]);
        let plain = json!([{"role": "user", "content": "Hello"}]);
        for body in [
            json!({"messages": user}),
            json!({"messages": calls}),
            json!({"messages": plain, "inferenceConfig": {}}),
            json!({"messages": plain, "toolConfig": {"tools": [{"toolSpec": {}}]}}),
        ] {
            assert_eq!(of(&body), Some(Unsupported::Converse), "{body}");
        }
        for body in [
            json!({"model": "command-a-03-2025", "documents": [], "messages": plain}),
            json!({"model": "ours", "citation_options": {}, "messages": plain}),
        ] {
            assert_eq!(of(&body), Some(Unsupported::CohereChat), "{body}");
        }
    }

    #[test]
    fn members_tell_interactions_and_formats_of_clouds() {
        let messages = json!([{"role": "user", "text": "Hello"}]);
        for (body, expected) in [
            (
                json!({"model": "gemini-3-pro", "input": "Hi", "system_instruction": "Be brief."}),
                Some(Unsupported::Interactions),
            ),
            (
                json!({"agent": "deep-research", "input": "Hi", "background": true}),
                Some(Unsupported::Interactions),
            ),
            (
                json!({"agent": {"type": "agent_reference"}, "input": "Hi"}),
                None,
            ),
            (
                json!({"modelUri": "gpt://a/yandexgpt", "messages": messages}),
                Some(Unsupported::YandexCompletion),
            ),
            (
                json!({"model_id": "ibm/granite", "project_id": "a", "messages": messages}),
                Some(Unsupported::WatsonxChat),
            ),
            (
                json!({"prompt": "Hi", "max_gen_len": 100}),
                Some(Unsupported::BedrockPrompt),
            ),
            (
                json!({"inputText": "Hi", "textGenerationConfig": {}}),
                Some(Unsupported::BedrockPrompt),
            ),
            // A field of the older format in a chat is a mistake.
            (
                json!({"messages": messages, "max_tokens_to_sample": 5}),
                None,
            ),
        ] {
            assert_eq!(of(&body), expected, "{body}");
        }
    }

    #[test]
    fn settings_beside_the_input_tell_dashscope() {
        let input = json!({"messages": []});
        let body = json!({"model": "qwen-max", "input": input, "parameters": {}});
        assert_eq!(of(&body), Some(Unsupported::DashScope));
        let logged = json!({"model": "qwen-max", "input": input, "output": {}});
        assert_eq!(of(&logged), None);
    }

    #[test]
    fn a_forgotten_type_makes_no_other_format() {
        let user = json!([{"role": "user", "content": [{"text": "Hello"}]}]);
        for body in [
            json!({"model": "claude-x", "max_tokens": 1, "messages": user}),
            json!({"model": "ours", "documents": [], "messages": user}),
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]}),
            json!({"messages": [{"role": "user", "content": []}]}),
            json!({"contents": [], "toolConfig": {}}),
        ] {
            assert_eq!(of(&body), None, "{body}");
        }
    }
}
