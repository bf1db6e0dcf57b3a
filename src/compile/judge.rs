//! Checks a body that was not compiled from a profile, with the schemas and rules for all bodies.

use serde_json::Value;

use super::compiler::Compiler;
use crate::check::{About, Checks, Problem, Recipient};
use crate::json::Pointer;
use crate::lint::{Endpoint, Unrecognised, recognise_among};
use crate::provider::{
    ApiHeaders, ClientApi, KnownModels, MODEL_PLACEHOLDER, NamedServer, Server, Site, UrlParts,
    WireFormat, is_claude_model, is_openai_model, unserved_model,
};
use crate::repo::{Instance, LayerKind};

/// The destination of a body that was not compiled from a profile.
#[derive(Debug, Clone, Default)]
pub struct LintTarget<'t> {
    /// The provider instance. Its extra fields are allowed, and the rules of its server apply.
    pub instance: Option<&'t Instance>,
    /// The server, if there is no instance.
    pub server: Option<Server>,
    /// The server that the user names; it takes precedence over URLs and over the instance.
    pub named: Option<NamedServer>,
    /// The model, unless the body specifies a model.
    pub model: Option<&'t str>,
    /// The headers of the request. If they are unknown, the instance's headers apply, if there is
    /// an instance.
    pub headers: Option<ApiHeaders>,
}

impl LintTarget<'_> {
    /// Returns the headers of the request, or else the instance's headers.
    pub(super) fn all_headers(&self) -> Option<ApiHeaders> {
        self.headers.clone().or_else(|| {
            let instance = self.instance?;
            Some(api(instance)?.api_headers(instance, []))
        })
    }

    /// Returns the named server or, if no server is named, the given one.
    pub(crate) fn given_server(&self) -> Option<Server> {
        self.named.and_then(NamedServer::server).or(self.server)
    }

    /// Returns a body's model under the name that its vendor uses. GitHub Models puts the vendor
    /// before the names of OpenAI's models, but applies OpenAI's rules to them.
    fn model_of<'b>(&'b self, body: &'b Value) -> Option<&'b str> {
        let model = self.model.or(body.get("model").and_then(Value::as_str))?;
        let headers = self.headers.as_ref();
        let is_at_github = headers.is_some_and(|it| it.is_at(Site::GitHubModels));
        match model.strip_prefix("openai/") {
            Some(of_openai) if is_at_github => Some(of_openai),
            _ => Some(model),
        }
    }

    /// Returns the server, if it is given, or if the instance's host implies it.
    fn known_server(&self) -> Option<Server> {
        self.given_server()
            .or_else(|| self.instance.and_then(Server::named_or_by_host))
    }

    /// Returns the instance's wire formats, or all wire formats if there is no instance.
    pub(super) fn formats(&self) -> Vec<WireFormat> {
        let api = self.instance.and_then(api);
        WireFormat::ALL
            .into_iter()
            .filter(|wire| api.is_none_or(|api| api.speaks(*wire)))
            .collect()
    }
}

/// The result of checking a body.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Linted {
    /// The body's wire format.
    pub wire: WireFormat,
    /// The problems, at pointers into the body, before any policy.
    pub problems: Vec<Problem>,
}

/// Checks bodies from any source against the schemas of their wire formats and the rules of their
/// servers.
pub struct Judge<'a> {
    compiler: &'a Compiler,
}

impl<'a> Judge<'a> {
    /// Creates a judge with the schemas, provider instances and model families of a repository.
    pub fn new(compiler: &'a Compiler) -> Judge<'a> {
        Judge { compiler }
    }

    /// Checks a body as [`Compiler::lint`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if the wire format is not given and cannot be recognised.
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
        let mut problems = self.problems(
            body,
            wire,
            &LintTarget {
                server: Some(server),
                ..target.clone()
            },
        );
        problems.extend(self.unserved_model(body, target));
        Ok(Linted { wire, problems })
    }

    /// Returns the problem about a model that the destination does not serve, unless the
    /// destination is only guessed from the body.
    fn unserved_model(&self, body: &Value, target: &LintTarget<'_>) -> Option<Problem> {
        let server = target.known_server()?;
        let in_body = body.get("model").and_then(Value::as_str);
        let model = in_body
            .or(target.model)
            .filter(|model| *model != MODEL_PLACEHOLDER)?;
        let verdict = unserved_model(
            server,
            model,
            &KnownModels::new(&self.compiler.repo.families),
        )?;
        let pointer = match in_body {
            Some(_) => Pointer::root().member("model"),
            None => Pointer::root(),
        };
        Some(Problem {
            rule: verdict.rule(),
            severity: Some(verdict.severity(server)),
            pointer,
            message: verdict.message(model, server),
            help: Some(verdict.help(server, "send the request to another server")),
            sense: None,
            about: About::Meaning,
            sources: &[],
            is_of_model: true,
            lacks: Vec::new(),
            place: None,
        })
    }

    /// Returns the problems that schemas and rules find in a body with this wire format.
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
        let headers = target.all_headers().unwrap_or_default();
        let headers = match target.named {
            Some(named) => headers.to(named),
            None => headers,
        };
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

    /// Returns the provider instance for a host and port. The repository's own instances come
    /// first. One machine may run several servers, so the port matters.
    pub(super) fn instance_at(
        &self,
        endpoint: &Endpoint,
        wire: WireFormat,
    ) -> Option<&'a Instance> {
        self.instances_at(endpoint)
            .filter(|instance| api(instance).is_some_and(|api| api.speaks(wire)))
            .min_by_key(|instance| instance.layer != LayerKind::Own)
    }

    /// Returns the local server at a host and port, regardless of the wire format.
    pub(super) fn local_server_at(&self, endpoint: &Endpoint) -> Option<Server> {
        self.instances_at(endpoint)
            .filter(|instance| local_server(instance).is_some())
            .min_by_key(|instance| instance.layer != LayerKind::Own)
            .and_then(local_server)
    }

    /// Returns the local server that the port alone suggests. This is a guess, because other
    /// software uses the same port by default (mistral.rs uses LM Studio's port, and mlx-lm and
    /// `LocalAI` use llama.cpp's port). Returns `None` if an instance of the repository has the
    /// address.
    pub(super) fn guessed_server_at(&self, endpoint: &Endpoint) -> Option<Server> {
        let is_known = self
            .instances_at(endpoint)
            .any(|instance| instance.layer == LayerKind::Own);
        self.local_server_at(endpoint)
            .filter(|server| !is_known && matches!(server, Server::LmStudio | Server::LlamaCpp))
    }

    fn instances_at(&self, endpoint: &Endpoint) -> impl Iterator<Item = &'a Instance> {
        let instances = self.compiler.repo.instances.values();
        instances.filter(|instance| {
            let url = UrlParts::of(&instance.url.value);
            !endpoint.host.is_empty() && url.host() == endpoint.host && url.port() == endpoint.port
        })
    }
}

/// Returns the server of an instance if that server is local. A local server supports several wire
/// formats at one address.
pub(super) fn local_server(instance: &Instance) -> Option<Server> {
    let server = Server::of(instance, api(instance)?);
    matches!(server, Server::Ollama | Server::LmStudio | Server::LlamaCpp).then_some(server)
}

/// Returns the server that receives a body.
fn server_of(body: &Value, wire: WireFormat, target: &LintTarget<'_>) -> Server {
    let of_version = || {
        let version = body.get("anthropic_version").and_then(Value::as_str)?;
        Server::by_version_in_body(version).filter(|server| wire.facts().clouds.contains(server))
    };
    target
        .given_server()
        .or_else(|| {
            target
                .instance
                .and_then(|instance| Some(Server::of(instance, api(instance)?)))
        })
        .or_else(of_version)
        .unwrap_or_else(|| usual_server(wire, target.model_of(body)))
}

pub(super) fn api(instance: &Instance) -> Option<ClientApi> {
    ClientApi::from_name(&instance.client_api.value)
}

/// Returns a copy of the body with this model added; `None` if the body needs no model.
fn completed(body: &Value, wire: WireFormat, model: Option<&str>) -> Option<Value> {
    let model = model.filter(|_| wire.has_model_in_body() && body.get("model").is_none())?;
    let mut body = body.clone();
    body.as_object_mut()?
        .insert("model".to_owned(), model.into());
    Some(body)
}

/// Returns `true` if the name cannot belong to a Claude model on any platform.
fn is_of_another_maker(model: &str) -> bool {
    model != MODEL_PLACEHOLDER && !is_claude_model(model)
}

/// Returns the most likely server for a body in a wire format. Many servers speak OpenAI's formats,
/// so only an OpenAI model identifies OpenAI. Anthropic's format identifies Anthropic, unless the
/// model is from a different vendor.
pub(crate) fn usual_server(wire: WireFormat, model: Option<&str>) -> Server {
    match wire {
        WireFormat::AnthropicMessages if model.is_some_and(is_of_another_maker) => Server::Unknown,
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
