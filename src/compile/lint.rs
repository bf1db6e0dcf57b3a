//! Bodies that no profile made, by the same schemas and rules.

use serde_json::Value;

use super::Compiler;
use crate::check::{Checks, Problem};
use crate::provider::{ClientApi, Server, WireFormat};
use crate::repo::Instance;

/// Where a body goes that no profile made.
#[derive(Debug, Clone, Default)]
pub struct LintTarget<'t> {
    /// The provider instance, whose server's fields and rules count.
    pub instance: Option<&'t Instance>,
    /// The server, if no instance is known.
    pub server: Option<Server>,
    /// The model, unless the body names it.
    pub model: Option<&'t str>,
}

impl Compiler {
    /// What is wrong with a body of a wire format, as far as schemas and rules can tell.
    pub fn problems_of_body(&self, body: &Value, wire: WireFormat, target: &LintTarget<'_>) -> Vec<Problem> {
        let api = |instance: &Instance| ClientApi::from_name(&instance.client_api.value);
        let instance = target.instance.and_then(|instance| Some((instance, api(instance)?)));
        let server = target.server.or(instance.map(|(instance, api)| Server::of(instance, api)));
        let server =
            server.unwrap_or_else(|| usual_server(wire, target.model.or(body.get("model").and_then(Value::as_str))));
        Checks::of_wire(&self.schemas, &self.repo.families, wire, server, instance, target.model).problems_of(body)
    }
}

/// The server that a body of a wire format is most likely for: many servers speak OpenAI's formats, and only OpenAI's own
/// models tell that it is OpenAI.
fn usual_server(wire: WireFormat, model: Option<&str>) -> Server {
    let is_openai = |name: &str| {
        let numbered = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        numbered || ["gpt-", "chatgpt-"].iter().any(|prefix| name.starts_with(prefix)) && !name.starts_with("gpt-oss")
    };
    match wire {
        WireFormat::AnthropicMessages => Server::Anthropic,
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses if model.is_some_and(is_openai) => Server::OpenAi,
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => Server::Unknown,
        WireFormat::GoogleGenerateContent => Server::Google,
        WireFormat::MistralChat | WireFormat::MistralFim => Server::Mistral,
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => Server::Ollama,
        WireFormat::LlamaCppInfill => Server::LlamaCpp,
    }
}
