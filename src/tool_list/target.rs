//! The providers for which tool lists are checked, and the smallest request to each.

use serde_json::{Value, json};

use super::ListedTool;
use crate::provider::{Server, TurnForm, WireFormat, shaped};

/// A provider and the form in which it accepts tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolTarget {
    /// The name of the target on the command line.
    pub name: &'static str,
    /// A phrase that describes the target.
    pub what: &'static str,
    /// The wire format of the requests.
    pub wire: WireFormat,
    /// The server that receives the requests.
    pub server: Server,
    /// The model in the requests.
    pub model: &'static str,
    /// The form of the tools' schemas.
    pub form: Form,
    /// `true` if the target is checked by default.
    pub is_usual: bool,
}

/// The forms of schemas in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The format's usual form. The model reads the schema, but may violate it.
    Plain,
    /// The strict form. The server forces the model to follow the schema.
    Strict,
    /// Gemini's own schema dialect, a subset of `OpenAPI`.
    OpenApi,
}

/// Creates a target for an OpenAI-compatible server.
const fn compatible(
    name: &'static str,
    what: &'static str,
    server: Server,
    model: &'static str,
) -> ToolTarget {
    ToolTarget {
        name,
        what,
        wire: WireFormat::OpenAiChat,
        server,
        model,
        form: Form::Plain,
        is_usual: false,
    }
}

const CLAUDE: ToolTarget = ToolTarget {
    name: "anthropic",
    what: "Claude",
    wire: WireFormat::AnthropicMessages,
    server: Server::Anthropic,
    model: "claude-sonnet-5-5",
    form: Form::Plain,
    is_usual: true,
};

const OPENAI: ToolTarget = ToolTarget {
    name: "openai",
    what: "OpenAI's Responses",
    wire: WireFormat::OpenAiResponses,
    server: Server::OpenAi,
    model: "gpt-5.4",
    form: Form::Plain,
    is_usual: true,
};

const GEMINI: ToolTarget = ToolTarget {
    name: "gemini",
    what: "Gemini, `parametersJsonSchema`",
    wire: WireFormat::GoogleGenerateContent,
    server: Server::Google,
    model: "gemini-3.5-flash",
    form: Form::Plain,
    is_usual: true,
};

impl ToolTarget {
    /// All targets, grouped by provider.
    pub const ALL: [ToolTarget; 16] = [
        CLAUDE,
        ToolTarget {
            name: "anthropic-strict",
            what: "Claude, strict tools",
            form: Form::Strict,
            ..CLAUDE
        },
        OPENAI,
        ToolTarget {
            name: "openai-strict",
            what: "OpenAI's Responses, strict tools",
            form: Form::Strict,
            ..OPENAI
        },
        ToolTarget {
            name: "openai-chat",
            what: "OpenAI's Chat Completions",
            wire: WireFormat::OpenAiChat,
            model: "gpt-4.1",
            ..OPENAI
        },
        GEMINI,
        ToolTarget {
            name: "gemini-openapi",
            what: "Gemini, `parameters`",
            form: Form::OpenApi,
            ..GEMINI
        },
        ToolTarget {
            name: "mistral",
            what: "Mistral",
            wire: WireFormat::MistralChat,
            server: Server::Mistral,
            model: "mistral-medium-latest",
            form: Form::Plain,
            is_usual: true,
        },
        ToolTarget {
            name: "ollama",
            what: "Ollama",
            wire: WireFormat::OllamaChat,
            server: Server::Ollama,
            model: "qwen3:8b",
            form: Form::Plain,
            is_usual: true,
        },
        ToolTarget {
            is_usual: true,
            ..compatible(
                "compatible",
                "any other compatible server",
                Server::Unknown,
                "m",
            )
        },
        compatible("deepseek", "DeepSeek", Server::DeepSeek, "deepseek-chat"),
        compatible("groq", "Groq", Server::Groq, "openai/gpt-oss-120b"),
        compatible("moonshot", "Moonshot", Server::Moonshot, "kimi-k2.6"),
        compatible(
            "openrouter",
            "OpenRouter",
            Server::OpenRouter,
            "openrouter/auto",
        ),
        compatible("qwen", "Alibaba's Model Studio", Server::Qwen, "qwen3-max"),
        compatible("xai", "xAI", Server::XAi, "grok-4"),
    ];

    /// Returns the target with this name.
    pub fn from_name(name: &str) -> Option<ToolTarget> {
        ToolTarget::ALL
            .into_iter()
            .find(|target| target.name == name)
    }

    /// Returns the plain form of the same provider, which accepts more schemas; `None` if this is
    /// already the plain form.
    pub(super) fn wider(&self) -> Option<ToolTarget> {
        ToolTarget::ALL
            .into_iter()
            .find(|other| {
                other.form == Form::Plain && (other.wire, other.server) == (self.wire, self.server)
            })
            .filter(|_| self.form != Form::Plain)
    }

    /// Returns the declaration of a tool in this target's requests.
    pub(super) fn declared(&self, tool: &ListedTool) -> Value {
        let mut declared = shaped(self.wire, &tool.name, &tool.description, &tool.schema);
        match self.form {
            Form::Plain => {}
            Form::Strict => {
                let holder = match declared.get("function") {
                    Some(_) => &mut declared["function"],
                    None => &mut declared,
                };
                holder["strict"] = true.into();
            }
            Form::OpenApi => {
                if let Some(members) = declared.as_object_mut() {
                    let schema = members.remove("parametersJsonSchema").unwrap_or_default();
                    // A function without parameters has no schema.
                    if !schema.is_null() {
                        members.insert("parameters".to_owned(), schema);
                    }
                }
            }
        }
        declared
    }

    /// Returns the value of the `tools` member with these declarations.
    pub(super) fn member(&self, declared: Vec<Value>) -> Value {
        self.wire.facts().tools.list(declared)
    }

    /// Returns the JSON pointer, within the body, of the declaration with this index.
    pub(super) fn place(&self, index: usize) -> String {
        self.wire.facts().tools.place(index)
    }

    /// Returns the smallest request with these tools.
    pub(super) fn body(&self, tools: &[&ListedTool]) -> Value {
        self.request(tools.iter().map(|tool| self.declared(tool)).collect())
    }

    /// Returns the smallest request with these declarations of tools.
    pub(super) fn request(&self, declared: Vec<Value>) -> Value {
        let mut body = match self.wire.facts().turns {
            TurnForm::Blocks => {
                json!({"model": self.model, "max_tokens": 1_024, "messages": [{"role": "user", "content": "Hi"}]})
            }
            TurnForm::Items => json!({"model": self.model, "input": "Hi"}),
            TurnForm::Contents => {
                json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
            }
            TurnForm::Messages | TurnForm::None => {
                json!({"model": self.model, "messages": [{"role": "user", "content": "Hi"}]})
            }
        };
        if !declared.is_empty() {
            body["tools"] = self.member(declared);
        }
        body
    }
}
