//! Lists the models that a server offers. The supported servers are OpenAI and compatible ones,
//! Anthropic, Gemini, Mistral, OpenRouter, LM Studio, llama.cpp, and Ollama.
//!
//! Input: a provider instance. Output: [`InstalledModel`]s, each with the families that it belongs
//! to. The list is requested in the same way as an answer: with the same key in the same header,
//! with retries and limits, and without following redirects.
//!
//! | client API | list | next page |
//! | --- | --- | --- |
//! | Claude | `v1/models` (<https://platform.claude.com/docs/en/api/models-list>) | `after_id`, while `has_more` |
//! | Google AI | `v1beta/models` (<https://ai.google.dev/api/models>) | `pageToken` |
//! | Ollama (Native) | `api/tags` (<https://docs.ollama.com/api/tags>) | none |
//! | Mistral AI, Codestral, llama.cpp | `v1/models` | none |
//! | all others | `models`, after a URL that ends in the API's version | `after`, while `has_more` |

use std::sync::Arc;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::transport::{Backoff, HttpBody, Outgoing, Refused, Transport, broken};
use super::{Category, Error, failure};
use crate::compile::Compiler;
use crate::diag::did_you_mean;
use crate::provider::{ClientApi, RequestLine, request_line, which_instance};
use crate::repo::{Family, Instance, ModelName};

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledModel {
    /// The model's name in requests.
    pub id: Arc<str>,
    /// The display name, if the server reports one.
    pub title: Option<Arc<str>>,
    /// The maximum number of tokens in a request and its answer together, if the server reports it.
    pub context_window: Option<u64>,
    /// The size of the model's weights on the server's disk in bytes, if the server reports it.
    pub size_bytes: Option<u64>,
    /// The families of `model-families.toml` that the model belongs to, in the order of that file;
    /// empty if there are none.
    pub families: Vec<Arc<str>>,
}

impl InstalledModel {
    /// Returns the fields by name, `null` if unknown.
    pub fn to_json(&self) -> Value {
        let families: Vec<&str> = self.families.iter().map(AsRef::as_ref).collect();
        json!({
            "id": &*self.id, "title": self.title.as_deref(), "context_window": self.context_window,
            "size_bytes": self.size_bytes, "families": families,
        })
    }
}

/// A request for a list of models. It can be displayed before it is sent.
#[derive(Debug, Clone)]
pub struct ModelList {
    line: RequestLine,
    instance: Arc<str>,
    api: ClientApi,
    families: Vec<Arc<Family>>,
}

/// The maximum number of pages to read.
const MOST_PAGES: usize = 100;

/// The maximum number of models to read.
const MOST_MODELS: usize = 20_000;

/// The maximum size of a page, in bytes.
const PAGE_BYTES: usize = 16 * 1024 * 1024;

impl ModelList {
    /// Returns the request for a provider instance's list of models.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such instance, or its client API is unknown.
    pub fn of_instance(compiler: &Compiler, name: &str) -> Result<ModelList, Error> {
        let instances = &compiler.repo().instances;
        let Some(instance) = instances.get(name) else {
            let error = Error::new(
                Category::Config,
                format!("there is no provider instance `{name}`"),
            );
            let spelt = did_you_mean(name, instances.keys().map(AsRef::as_ref));
            let help = spelt.unwrap_or_else(|| which_instance(name, instances));
            return Err(error.detail(help));
        };
        let api = &instance.client_api.value;
        let api = ClientApi::from_name(api).ok_or_else(|| {
            Error::new(
                Category::Config,
                format!("`{name}` has the unknown client API `{api}`"),
            )
        })?;
        Ok(ModelList::new(
            instance,
            api,
            compiler.repo().families.clone(),
        ))
    }

    pub(super) fn new(
        instance: &Instance,
        api: ClientApi,
        families: Vec<Arc<Family>>,
    ) -> ModelList {
        let mut line = request_line(instance, api, &endpoint(instance, api), "", []);
        line.method = "GET";
        line.headers.retain(|header| header.name != "content-type");
        ModelList {
            line,
            instance: Arc::clone(&instance.name.value),
            api,
            families,
        }
    }

    /// Returns the method, URL and headers of the request for the first page. Further pages differ
    /// only in the query.
    pub fn line(&self) -> &RequestLine {
        &self.line
    }

    /// Returns the provider instance's name.
    pub fn instance(&self) -> &Arc<str> {
        &self.instance
    }

    /// Fetches the list, page by page.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be reached, rejects the request, or does not return a
    /// list of models.
    pub async fn fetch(&self, transport: &Transport) -> Result<Vec<InstalledModel>, Error> {
        let mut models = Vec::new();
        let mut page = self.clone();
        let mut tokens: Vec<String> = Vec::new();
        for _ in 0..MOST_PAGES {
            let list = page.fetch_page(transport).await?;
            models.extend(self.models(&list, transport)?);
            let Some(token) = self.next_page(&list) else {
                return Ok(models);
            };
            if tokens.contains(&token) || models.len() > MOST_MODELS {
                break;
            }
            page.line.url = self.url_of_page(&token);
            tokens.push(token);
        }
        Err(self.error(&format!(
            "the list of models does not end: {} models were read",
            models.len()
        )))
    }

    /// Fetches one page as JSON. Retries temporary failures.
    async fn fetch_page(&self, transport: &Transport) -> Result<Value, Error> {
        let mut backoff = Backoff::new(&transport.options.retry);
        let mut body = loop {
            let Refused {
                error,
                again,
                retry_after,
            } = match transport.attempt(self).await {
                Ok(response) => break response.into_body(),
                Err(refused) => refused,
            };
            match if again {
                backoff.next(retry_after)
            } else {
                None
            } {
                Some(delay) => tokio::time::sleep(delay).await,
                None => {
                    return Err(Error {
                        retry_after,
                        ..error
                    });
                }
            }
        };
        let bytes = self.read(transport, &mut body).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let detail = transport.redactor().text(&failure::snippet(&bytes));
            self.error(&format!("the list of models is not JSON: {error}"))
                .detail(detail)
        })
    }

    async fn read(&self, transport: &Transport, body: &mut HttpBody) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let piece = tokio::time::timeout(transport.options.idle_timeout, body.piece()).await;
            match piece {
                Err(_) => {
                    return Err(self.error(
                        "the server stopped responding in the middle of its list of models",
                    ));
                }
                Ok(Err(error)) => return Err(broken(&error, self)),
                Ok(Ok(None)) => return Ok(bytes),
                Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            }
            if bytes.len() > PAGE_BYTES {
                return Err(self.error(&format!(
                    "a page of the list of models is larger than {PAGE_BYTES} bytes"
                )));
            }
        }
    }

    fn models(&self, list: &Value, transport: &Transport) -> Result<Vec<InstalledModel>, Error> {
        // llama.cpp sends both, but only `data` contains details about a model.
        let entries = ["data", "models"]
            .iter()
            .find_map(|name| list.get(*name)?.as_array());
        // A few compatible servers send the list without an enclosing object.
        let Some(entries) = entries.or_else(|| list.as_array()) else {
            // Gemini omits an empty list.
            if self.api == ClientApi::GoogleAi
                && list.as_object().is_some_and(serde_json::Map::is_empty)
            {
                return Ok(Vec::new());
            }
            let detail = transport
                .redactor()
                .text(&failure::snippet(list.to_string().as_bytes()));
            return Err(self
                .error("the answer is not a list of models")
                .detail(detail));
        };
        Ok(entries
            .iter()
            .filter_map(|entry| self.model(entry, transport))
            .collect())
    }

    fn model(&self, entry: &Value, transport: &Transport) -> Option<InstalledModel> {
        let redactor = transport.redactor();
        let id = text(&["id", "model", "name"], entry, &redactor)
            .or_else(|| entry.as_str().map(|id| redactor.text(id)))?;
        let id: Arc<str> = id.strip_prefix("models/").unwrap_or(&id).into();
        let title = text(&["display_name", "displayName", "name"], entry, &redactor)
            .filter(|title| title.strip_prefix("models/").unwrap_or(title) != &*id);
        let model = ModelName::new(&id);
        let families = self
            .families
            .iter()
            .filter(|family| family.is_about(&model));
        Some(InstalledModel {
            title: title.map(Into::into),
            context_window: WINDOWS
                .iter()
                .find_map(|place| entry.pointer(place)?.as_u64()),
            size_bytes: ["/size", "/meta/size"]
                .iter()
                .find_map(|place| entry.pointer(place)?.as_u64()),
            families: families
                .map(|family| Arc::clone(&family.name.value))
                .collect(),
            id,
        })
    }

    /// Returns the token of the next page, if there is one.
    fn next_page(&self, list: &Value) -> Option<String> {
        match self.api {
            ClientApi::GoogleAi => filled_text(list, "nextPageToken"),
            _ if list.get("has_more") == Some(&Value::Bool(true)) => filled_text(list, "last_id"),
            _ => None,
        }
    }

    fn url_of_page(&self, token: &str) -> String {
        let name = match self.api {
            ClientApi::GoogleAi => "pageToken",
            ClientApi::Claude => "after_id",
            _ => "after",
        };
        let sign = if self.line.url.contains('?') {
            '&'
        } else {
            '?'
        };
        format!(
            "{}{sign}{name}={}",
            self.line.url,
            utf8_percent_encode(token, PLAIN)
        )
    }

    fn error(&self, message: &str) -> Error {
        Error::new(
            Category::Provider,
            format!("{message} (provider instance `{}`)", self.instance),
        )
    }
}

/// Returns a member if it is a non-empty string.
fn filled_text(list: &Value, name: &str) -> Option<String> {
    list.get(name)?
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn text(names: &[&str], entry: &Value, redactor: &super::redact::Redactor) -> Option<String> {
    let found = names
        .iter()
        .find_map(|name| entry.get(*name)?.as_str().filter(|text| !text.is_empty()));
    found.map(|text| redactor.text(text))
}

impl Outgoing for ModelList {
    fn line(&self) -> &RequestLine {
        &self.line
    }

    fn instance(&self) -> &str {
        &self.instance
    }

    fn body(&self) -> Bytes {
        Bytes::new()
    }
}

/// The members that contain a model's context window, in the lists of OpenRouter and Mistral, vLLM,
/// Anthropic, Gemini, llama.cpp (as started and as trained), and LM Studio.
const WINDOWS: [&str; 8] = [
    "/context_length",
    "/max_context_length",
    "/max_model_len",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
    "/context_window",
];

/// The characters that are not escaped in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the path of the list's endpoint, relative to the instance's URL.
fn endpoint(instance: &Instance, api: ClientApi) -> String {
    match api {
        ClientApi::Claude => format!("{}models?limit=1000", version("v1", instance)),
        ClientApi::GoogleAi => format!("{}models?pageSize=1000", version("v1beta", instance)),
        ClientApi::OllamaNative => "api/tags".to_owned(),
        ClientApi::Mistral | ClientApi::Codestral | ClientApi::LlamaCpp => {
            format!("{}models", version("v1", instance))
        }
        ClientApi::OpenAiChat
        | ClientApi::OpenAiResponses
        | ClientApi::OpenAiCompatible
        | ClientApi::OpenRouter
        | ClientApi::LmStudioChat
        | ClientApi::LmStudioResponses
        | ClientApi::OllamaOpenAi => "models".to_owned(),
    }
}

fn version(version: &str, instance: &Instance) -> String {
    match has_version(&instance.url.value) {
        true => String::new(),
        false => format!("{version}/"),
    }
}

/// Returns `true` if a URL ends with an API version, such as `v1` or `v1beta`.
fn has_version(url: &str) -> bool {
    let last = url
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    last.strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
