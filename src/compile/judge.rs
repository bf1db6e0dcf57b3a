//! One body that no profile made, by the same schemas and rules.

use serde_json::Value;

use super::compiler::Compiler;
use crate::check::{Checks, Problem, Recipient};
use crate::lint::{Endpoint, Unrecognised, recognise_among};
use crate::provider::{ApiHeaders, ClientApi, Server, UrlParts, WireFormat, is_openai_model};
use crate::repo::{Instance, LayerKind};

/// The destination of a body that no profile made.
#[derive(Debug, Clone, Default)]
pub struct LintTarget<'t> {
    /// The provider instance, whose server's fields and rules count.
    pub instance: Option<&'t Instance>,
    /// The server, if no instance is known.
    pub server: Option<Server>,
    /// The model, unless the body names it.
    pub model: Option<&'t str>,
    /// The headers of the request; without them those that the instance sends count, if it is
    /// known.
    pub headers: Option<ApiHeaders>,
}

impl LintTarget<'_> {
    /// The wire formats of the instance; all of them if none is known.
    pub(super) fn formats(&self) -> Vec<WireFormat> {
        let api = self.instance.and_then(api);
        WireFormat::ALL
            .into_iter()
            .filter(|wire| api.is_none_or(|api| api.speaks(*wire)))
            .collect()
    }
}

/// A body that was judged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Linted {
    /// Its wire format.
    pub wire: WireFormat,
    /// The problems, at pointers into the body. No policy was applied.
    pub problems: Vec<Problem>,
}

/// Judges bodies, whoever made them, by the schemas of their wire formats and the rules of their
/// servers.
pub struct Judge<'a> {
    compiler: &'a Compiler,
}

impl<'a> Judge<'a> {
    /// Takes the schemas, provider instances and model families of a repository.
    pub fn new(compiler: &'a Compiler) -> Judge<'a> {
        Judge { compiler }
    }

    /// Judges a body as [`Compiler::lint`] does.
    ///
    /// # Errors
    ///
    /// The wire format is not named, and not certain.
    pub(super) fn lint(
        &self,
        body: &Value,
        wire: Option<WireFormat>,
        target: &LintTarget<'_>,
    ) -> Result<Linted, Unrecognised> {
        let wire = wire.map_or_else(|| recognise_among(body, &target.formats()), Ok)?;
        let server = server_of(body, wire, target);
        let is_in_address = wire.facts().clouds.contains(&server);
        let model = target.model.filter(|_| !is_in_address);
        let completed = completed(body, wire, model);
        let body = completed.as_ref().unwrap_or(body);
        let problems = self.problems(
            body,
            wire,
            &LintTarget {
                server: Some(server),
                ..target.clone()
            },
        );
        Ok(Linted { wire, problems })
    }

    /// Returns what is wrong with a body of a wire format, as far as schemas and rules can tell.
    pub fn problems(
        &self,
        body: &Value,
        wire: WireFormat,
        target: &LintTarget<'_>,
    ) -> Vec<Problem> {
        let instance = target
            .instance
            .and_then(|instance| Some((instance, api(instance)?)));
        let server = server_of(body, wire, target);
        let headers = target
            .headers
            .clone()
            .or_else(|| instance.map(|(instance, api)| api.api_headers(instance, [])))
            .unwrap_or_default();
        let headers = match wire.facts().clouds.contains(&server) {
            true => headers.with_betas_of(body),
            false => headers,
        };
        let to = Recipient {
            wire,
            server,
            instance,
            model: target.model,
            headers,
        };
        Checks::of_recipient(&self.compiler.schemas, &self.compiler.repo.families, to)
            .problems_of(body)
    }

    /// The provider instance of a host and port, the repository's own first: one machine may run
    /// several servers.
    pub(super) fn instance_at(
        &self,
        endpoint: &Endpoint,
        wire: WireFormat,
    ) -> Option<&'a Instance> {
        if endpoint.host.is_empty() {
            return None;
        }
        let fitting = self.compiler.repo.instances.values().filter(|instance| {
            let url = UrlParts::of(&instance.url.value);
            url.host() == endpoint.host
                && url.port() == endpoint.port
                && api(instance).is_some_and(|api| api.speaks(wire))
        });
        fitting.min_by_key(|instance| instance.layer != LayerKind::Own)
    }
}

/// The server that a body goes to.
fn server_of(body: &Value, wire: WireFormat, target: &LintTarget<'_>) -> Server {
    let model = || target.model.or(body.get("model").and_then(Value::as_str));
    let of_version = || {
        let version = body.get("anthropic_version").and_then(Value::as_str)?;
        Server::by_version_in_body(version).filter(|server| wire.facts().clouds.contains(server))
    };
    target
        .server
        .or_else(|| {
            target
                .instance
                .and_then(|instance| Some(Server::of(instance, api(instance)?)))
        })
        .or_else(of_version)
        .unwrap_or_else(|| usual_server(wire, model()))
}

pub(super) fn api(instance: &Instance) -> Option<ClientApi> {
    ClientApi::from_name(&instance.client_api.value)
}

/// A body with the model that is named beside it, if it names none.
fn completed(body: &Value, wire: WireFormat, model: Option<&str>) -> Option<Value> {
    let model = model.filter(|_| wire.has_model_in_body() && body.get("model").is_none())?;
    let mut body = body.clone();
    body.as_object_mut()?
        .insert("model".to_owned(), model.into());
    Some(body)
}

/// The server that a body of a wire format is most likely for: many servers speak OpenAI's formats,
/// and only OpenAI's own models tell that it is OpenAI.
pub(crate) fn usual_server(wire: WireFormat, model: Option<&str>) -> Server {
    match wire {
        WireFormat::AnthropicMessages => Server::Anthropic,
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses
            if model.is_some_and(is_openai_model) =>
        {
            Server::OpenAi
        }
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => Server::Unknown,
        WireFormat::GoogleGenerateContent => Server::Google,
        WireFormat::MistralChat | WireFormat::MistralFim => Server::Mistral,
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => Server::Ollama,
        WireFormat::LlamaCppInfill => Server::LlamaCpp,
    }
}
