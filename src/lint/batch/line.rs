//! The mistakes in one line of a batch, independent of other lines.

use serde_json::Value;

use super::{Envelope, Flaw, Form, Held, Service, rules};
use crate::diag::Severity;
use crate::provider::{UrlParts, is_claude_model, is_openai_model};
use crate::text::cut;

/// The maximum length of an ID for Anthropic, in characters.
const LONGEST_ID: usize = 64;

/// The maximum number of characters of a value that a message shows.
const SHOWN: usize = 80;

/// The endpoints to which OpenAI's batches can send requests.
const ENDPOINTS: [&str; 8] = [
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/videos",
];

impl Envelope {
    /// Returns the mistakes in the line itself, for the service that accepts it.
    pub(super) fn flaws(&self, service: Service) -> Vec<Flaw> {
        let found = [
            self.id_flaw(service),
            self.held_flaw(),
            self.misplaced_flaw(service),
            self.method_flaw(service),
            self.url_flaw(service),
            self.stream_flaw(service),
        ];
        found.into_iter().flatten().collect()
    }

    /// Reports an ID that the service does not accept.
    fn id_flaw(&self, service: Service) -> Option<Flaw> {
        let key = self.form.id_key();
        if let Some(almost) = &self.almost_id {
            let message = format!(
                "`{}` is not the id of a request: use `custom_id`",
                cut(almost, SHOWN)
            );
            return Some(
                self.flaw(&rules::ID, almost, message, "rename it to `custom_id`")
                    .about_key(),
            );
        }
        let Some(id) = self.id.as_ref()?.as_str() else {
            let message = format!("`{key}` must be a string");
            return Some(self.flaw(&rules::ID, key, message, "write it in quotes"));
        };
        let flaw = match () {
            () if id.is_empty() && self.form != Form::Record => self.flaw(
                &rules::ID,
                key,
                format!("`{key}` is empty"),
                "give each request a unique id",
            ),
            () if service == Service::Anthropic && id.chars().count() > LONGEST_ID => {
                let message = format!(
                    "`{key}` has {} characters, but Anthropic accepts at most {LONGEST_ID}",
                    id.chars().count()
                );
                self.flaw(&rules::ID, key, message, "shorten it")
            }
            () if service == Service::Anthropic && !id.chars().all(is_in_id) => {
                let message = format!(
                    "`{key}` is `{}`, but Anthropic accepts only letters, digits, `_` and `-`",
                    cut(id, SHOWN)
                );
                self.flaw(
                    &rules::ID,
                    key,
                    message,
                    "replace the other characters, for example by `_`",
                )
            }
            () => return None,
        };
        Some(flaw)
    }

    /// Returns the mistake in a line without an ID. Other lines may determine whether the object is
    /// a line of a batch.
    pub(super) fn missing_id(&self, service: Service) -> Option<Flaw> {
        if self.id.is_some() || self.almost_id.is_some() || self.form == Form::Record {
            return None;
        }
        let key = self.form.id_key();
        let flaw = self.flaw(
            &rules::ID,
            key,
            format!("`{key}` is missing"),
            "give each request a unique id",
        );
        // Mistral's specification makes the ID optional; Gemini's guide shows an ID, and requests
        // to Vertex have none.
        Some(if matches!(service, Service::Mistral | Service::Gemini) {
            flaw.warning()
        } else {
            flaw
        })
    }

    /// Reports a request that is missing or not an object.
    fn held_flaw(&self) -> Option<Flaw> {
        let key = self.form.request_key();
        let (message, help) = match self.held {
            Held::Object => return None,
            Held::Other => (
                format!("`{key}` must be an object: the request itself"),
                "write the request as a JSON object, not as a string",
            ),
            Held::Nothing if self.form == Form::Params => (
                "the line contains no request".to_owned(),
                "put it into `params` (Anthropic) or `body` (OpenAI, Mistral)",
            ),
            Held::Nothing => (format!("`{key}` is missing"), "put the request into it"),
            Held::Misnamed(name) => {
                let message = format!("the request is in `{name}`, but must be in `{key}`");
                return Some(
                    self.flaw(&rules::REQUEST, name, message, "rename the key")
                        .about_key(),
                );
            }
            Held::Beside => (
                "the members of the request are next to its id".to_owned(),
                "put them into `body` (OpenAI, Mistral) or `params` (Anthropic)",
            ),
        };
        Some(self.flaw(&rules::REQUEST, key, message, help))
    }

    /// Reports a request to OpenAI in Anthropic's form, or the other way round.
    fn misplaced_flaw(&self, service: Service) -> Option<Flaw> {
        let model = self.model.as_deref()?;
        let (key, of, maker, help) = match self.form {
            Form::Params if is_openai_model(model) => (
                "params",
                "Anthropic",
                "OpenAI",
                "write `body` instead of `params`, with `method` and `url` next to it",
            ),
            Form::Plain if service == Service::Mistral && is_claude_model(model) => (
                "body",
                "OpenAI and Mistral",
                "Anthropic",
                "write `params` instead of `body`",
            ),
            Form::Params | Form::Plain | Form::Http | Form::Keyed | Form::Record => return None,
        };
        let message = format!(
            "`{key}` is for {of}, but `{}` is one of {maker}'s models",
            cut(model, SHOWN)
        );
        Some(self.flaw(&rules::REQUEST, key, message, help).about_key())
    }

    fn method_flaw(&self, service: Service) -> Option<Flaw> {
        let message = match &self.method {
            None if self.wants_http(service) => "`method` is missing".to_owned(),
            Some(method) if self.form == Form::Http && method != "POST" => {
                format!(
                    "`method` is {}, but batch requests are sent with `POST`",
                    cut(&method.to_string(), SHOWN)
                )
            }
            Some(_) | None => return None,
        };
        let flaw = self.flaw(
            &rules::REQUEST,
            "method",
            message,
            "write `\"method\": \"POST\"`",
        );
        Some(if service == Service::Unknown {
            flaw.warning()
        } else {
            flaw
        })
    }

    fn url_flaw(&self, service: Service) -> Option<Flaw> {
        let message = match &self.url {
            None if self.wants_http(service) => "`url` is missing".to_owned(),
            None => return None,
            Some(_) if self.form != Form::Http => return None,
            Some(Value::String(url)) if is_endpoint(url, service) => return None,
            Some(Value::String(url)) => format!(
                "`url` is `{}`, which is not a batch endpoint",
                cut(url, SHOWN)
            ),
            Some(_) => "`url` must be a string".to_owned(),
        };
        let flaw = self.flaw(
            &rules::REQUEST,
            "url",
            message,
            "write only the path, such as `/v1/chat/completions`",
        );
        Some(if service == Service::Unknown {
            flaw.warning()
        } else {
            flaw
        })
    }

    /// Returns `true` if the service requires a method and an address.
    fn wants_http(&self, service: Service) -> bool {
        self.form == Form::Http || self.form == Form::Plain && service == Service::OpenAi
    }

    fn stream_flaw(&self, service: Service) -> Option<Flaw> {
        if !self.streams {
            return None;
        }
        let flaw = Flaw {
            at: self.inner("stream"),
            ..self.flaw(
                &rules::STREAM,
                "",
                "answers in a batch cannot be streamed".to_owned(),
                "leave `stream` out",
            )
        };
        let is_refused = matches!(
            service,
            Service::OpenAi | Service::Azure | Service::Anthropic
        );
        Some(if is_refused { flaw } else { flaw.warning() })
    }

    pub(super) fn flaw(
        &self,
        rule: &'static crate::diag::Rule,
        member: &str,
        message: String,
        help: &'static str,
    ) -> Flaw {
        Flaw {
            rule,
            severity: rule.severity,
            at: self.member(member),
            is_about_key: false,
            message,
            help,
        }
    }
}

impl Flaw {
    fn about_key(self) -> Flaw {
        Flaw {
            is_about_key: true,
            ..self
        }
    }

    pub(super) fn warning(self) -> Flaw {
        Flaw {
            severity: Severity::Warning,
            ..self
        }
    }
}

fn is_in_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns `true` if batches of a service can send requests to an address. For unknown services,
/// any path is accepted.
fn is_endpoint(url: &str, service: Service) -> bool {
    let path = UrlParts::of(url).path();
    match service {
        Service::OpenAi => ENDPOINTS.contains(&url),
        Service::Azure => {
            path.starts_with("/openai/") || ENDPOINTS.iter().any(|end| end.ends_with(url))
        }
        Service::Unknown => url.starts_with('/'),
        Service::Anthropic | Service::Mistral | Service::Gemini | Service::Bedrock => true,
    }
}
