//! The wire formats, with a file of facts for each.

mod facts;
mod anthropic_messages;
mod google_generate_content;
mod llamacpp_infill;
mod mistral_chat;
mod mistral_fim;
mod ollama_chat;
mod ollama_generate;
mod openai_chat;
mod openai_responses;

#[cfg(feature = "runtime")]
pub(crate) use facts::AnswerForm;
pub(crate) use facts::{BatchService, Facts, OwnPlace, ToolForm, TurnForm};

use super::Capability;
use crate::conversation::{NormalFormRules, ProviderBlockKinds};
use crate::render::IdRule;

/// Declares the wire formats, each with its file of facts.
macro_rules! wire_formats {
    ($($(#[$doc:meta])* $format:ident: $file:ident,)+) => {
        /// The shape of a request body.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum WireFormat {
            $($(#[$doc])* $format,)+
        }

        impl WireFormat {
            /// All wire formats.
            pub const ALL: [WireFormat; [$(stringify!($format)),+].len()] =
                [$(WireFormat::$format),+];

            /// Returns the facts of the wire format.
            pub(crate) fn facts(self) -> &'static Facts {
                match self {
                    $(WireFormat::$format => &$file::FACTS,)+
                }
            }
        }
    };
}

wire_formats! {
    /// Anthropic Messages.
    AnthropicMessages: anthropic_messages,
    /// OpenAI Chat Completions.
    OpenAiChat: openai_chat,
    /// OpenAI Responses.
    OpenAiResponses: openai_responses,
    /// Gemini `generateContent`.
    GoogleGenerateContent: google_generate_content,
    /// Mistral chat completions.
    MistralChat: mistral_chat,
    /// Mistral fill-in-the-middle.
    MistralFim: mistral_fim,
    /// Ollama `/api/chat`.
    OllamaChat: ollama_chat,
    /// Ollama `/api/generate`.
    OllamaGenerate: ollama_generate,
    /// llama.cpp `/infill`.
    LlamaCppInfill: llamacpp_infill,
}

impl WireFormat {
    /// Returns the stable name of the wire format.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the wire format with this name.
    pub fn from_name(name: &str) -> Option<WireFormat> {
        WireFormat::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// Returns `true` if the body contains the model. For Gemini, the model is in the path;
    /// `/infill` uses the loaded model.
    pub fn has_model_in_body(self) -> bool {
        self.facts().has_model_in_body
    }

    /// Returns the rule for tool-call IDs.
    pub fn ids(self) -> IdRule {
        self.facts().ids
    }

    /// Returns the rules for the normal form of a history, for the client API with this name. No
    /// format accepts open calls in the last message.
    pub fn normal_form(self, client_api: &str) -> NormalFormRules {
        let Facts {
            checks_reasoning,
            own_blocks,
            names,
            ..
        } = *self.facts();
        NormalFormRules {
            origin: Some(client_api.into()),
            needs_signature: checks_reasoning,
            needs_end: checks_reasoning,
            drops_open_calls: true,
            own_blocks,
            names,
            bound_from: 0,
        }
    }

    /// Returns `true` if the format's models reject thinking after a change in the messages before
    /// it, as newer Anthropic models do.
    pub(crate) fn binds_thinking(self) -> bool {
        self.facts().binds_thinking
    }

    /// Returns `true` if the format's requests are conversations. Other requests ask the model to
    /// fill in code, and the surrounding code may be empty.
    pub(crate) fn is_chat(self) -> bool {
        self.facts().history.is_some()
    }

    pub(super) fn can(self, capability: Capability) -> bool {
        self.facts().capabilities.contains(&capability)
    }

    /// Returns how the format's own blocks are treated.
    pub(crate) fn own_blocks(self) -> ProviderBlockKinds {
        self.facts().own_blocks
    }

    /// Returns `true` if bodies can contain prompt-cache breakpoints.
    pub fn has_cache_breakpoints(self) -> bool {
        self.facts().has_cache_breakpoints
    }

    /// Returns `true` if streamed answers consist of one JSON value per line; otherwise, they are
    /// server-sent events.
    #[cfg(feature = "runtime")]
    pub(crate) fn streams_lines(self) -> bool {
        self.facts().streams_lines
    }
}
