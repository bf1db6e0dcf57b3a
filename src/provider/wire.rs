//! The wire formats.

use super::Capability;
use crate::conversation::{NameRule, NormalFormRules};
use crate::render::IdRule;

/// The shape of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WireFormat {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Gemini `generateContent`.
    GoogleGenerateContent,
    /// Mistral chat completions.
    MistralChat,
    /// Mistral fill-in-the-middle.
    MistralFim,
    /// Ollama `/api/chat`.
    OllamaChat,
    /// Ollama `/api/generate`.
    OllamaGenerate,
    /// llama.cpp `/infill`.
    LlamaCppInfill,
}

impl WireFormat {
    /// Every wire format.
    pub const ALL: [WireFormat; 9] = [
        WireFormat::AnthropicMessages,
        WireFormat::OpenAiChat,
        WireFormat::OpenAiResponses,
        WireFormat::GoogleGenerateContent,
        WireFormat::MistralChat,
        WireFormat::MistralFim,
        WireFormat::OllamaChat,
        WireFormat::OllamaGenerate,
        WireFormat::LlamaCppInfill,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            WireFormat::AnthropicMessages => "anthropic-messages",
            WireFormat::OpenAiChat => "openai-chat",
            WireFormat::OpenAiResponses => "openai-responses",
            WireFormat::GoogleGenerateContent => "google-generate-content",
            WireFormat::MistralChat => "mistral-chat",
            WireFormat::MistralFim => "mistral-fim",
            WireFormat::OllamaChat => "ollama-chat",
            WireFormat::OllamaGenerate => "ollama-generate",
            WireFormat::LlamaCppInfill => "llamacpp-infill",
        }
    }

    /// The wire format with a name.
    pub fn from_name(name: &str) -> Option<WireFormat> {
        WireFormat::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// Returns `true` if the body carries the model. Gemini has it in the path; `/infill` serves
    /// what is loaded.
    pub fn has_model_in_body(self) -> bool {
        match self {
            WireFormat::GoogleGenerateContent | WireFormat::LlamaCppInfill => false,
            WireFormat::AnthropicMessages
            | WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate => true,
        }
    }

    /// Returns what tool ids must look like.
    ///
    /// Anthropic: `^[a-zA-Z0-9_-]+$`. OpenAI Chat: at most 40 characters. OpenAI Responses
    /// `call_id`: 1 to 64. Mistral: exactly nine letters and digits (mistral-common,
    /// `validator.py`). The others take any string.
    pub fn ids(self) -> IdRule {
        match self {
            WireFormat::AnthropicMessages => IdRule::Word,
            WireFormat::OpenAiChat => IdRule::AtMost(40),
            WireFormat::OpenAiResponses => IdRule::AtMost(64),
            WireFormat::MistralChat => IdRule::Alphanumeric(9),
            WireFormat::GoogleGenerateContent
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => IdRule::Any,
        }
    }

    /// Returns what names of tools must look like; the schemas say the same. Sources: Anthropic
    /// `^[a-zA-Z0-9_-]{1,128}$`; OpenAI's specification (`FunctionObject`, `FunctionToolCall`),
    /// Mistral's likewise; Gemini `FunctionDeclaration.name`. Ollama takes any.
    fn names(self) -> NameRule {
        match self {
            WireFormat::AnthropicMessages | WireFormat::OpenAiResponses => NameRule::Word(128),
            WireFormat::OpenAiChat | WireFormat::MistralChat => NameRule::Word(64),
            WireFormat::GoogleGenerateContent => NameRule::Dotted(128),
            WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => NameRule::Any,
        }
    }

    /// Returns what a history must be like for a client API with this name. Anthropic refuses
    /// unsigned thinking, and a Responses reasoning item without its encrypted content refers to
    /// nothing. Both refuse a turn that ends with reasoning (tailcallhq/forgecode#2107,
    /// vercel/ai#7099). No format takes a last message with open calls.
    pub fn normal_form(self, client_api: &str) -> NormalFormRules {
        let reasoning_is_checked = match self {
            WireFormat::AnthropicMessages | WireFormat::OpenAiResponses => true,
            WireFormat::OpenAiChat
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => false,
        };
        NormalFormRules {
            origin: Some(client_api.into()),
            needs_signature: reasoning_is_checked,
            needs_end: reasoning_is_checked,
            drops_open_calls: true,
            own_blocks: self.own_blocks(),
            names: self.names(),
            bound_from: 0,
        }
    }

    /// Returns `true` if models of the format bind thinking to what is before it: newer models of
    /// Anthropic's do.
    pub(crate) fn binds_thinking(self) -> bool {
        self == WireFormat::AnthropicMessages
    }

    /// Returns `true` if its requests are conversations; others ask for code to fill in, which may
    /// be nothing.
    pub(crate) fn is_chat(self) -> bool {
        match self {
            WireFormat::MistralFim | WireFormat::OllamaGenerate | WireFormat::LlamaCppInfill => {
                false
            }
            WireFormat::AnthropicMessages
            | WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::OllamaChat => true,
        }
    }

    pub(super) fn can(self, capability: Capability) -> bool {
        self.is_chat() || (self == WireFormat::OllamaGenerate && capability != Capability::Tools)
    }

    /// Returns `true` if bodies carry breakpoints of a prompt cache.
    pub fn has_cache_breakpoints(self) -> bool {
        match self {
            WireFormat::AnthropicMessages => true,
            WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => false,
        }
    }

    /// Returns `true` if answers are streamed as one JSON value a line; else they are server-sent
    /// events.
    #[cfg(feature = "runtime")]
    pub(crate) fn streams_lines(self) -> bool {
        match self {
            WireFormat::OllamaChat | WireFormat::OllamaGenerate => true,
            WireFormat::AnthropicMessages
            | WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::LlamaCppInfill => false,
        }
    }
}
