//! The model step, and everything of a request that is not its body.

use super::{Auth, ClientApi};
use crate::repo::{Instance, SecretRef};

/// What stands for the model while none is known, and in endpoints.
pub const MODEL_PLACEHOLDER: &str = "${MODEL}";

/// A request without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// The HTTP method.
    pub method: &'static str,
    /// The whole URL.
    pub url: String,
    /// Headers in order, names in lower case; secrets are placeholders.
    pub headers: Vec<(String, String)>,
}

/// The request line for an instance and an endpoint; `${MODEL}` in the endpoint is replaced.
pub fn request_line(instance: &Instance, api: ClientApi, endpoint: &str, model: &str) -> RequestLine {
    let endpoint = endpoint.replace(MODEL_PLACEHOLDER, model);
    let url = format!("{}/{}", instance.url.value.trim_end_matches('/'), endpoint.trim_start_matches('/'));
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if let (Some(auth), Some(secret)) = (api.auth(), &instance.api_key_ref) {
        let secret = placeholder(&secret.value);
        headers.push(match auth {
            Auth::Bearer => ("authorization".to_owned(), format!("Bearer {secret}")),
            Auth::Header(name) => (name.to_owned(), secret),
        });
    }
    headers.extend(api.headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    for (name, value) in &instance.headers {
        match headers.iter_mut().find(|(known, _)| **known == **name) {
            Some((_, known)) => *known = value.to_string(),
            None => headers.push((name.to_string(), value.to_string())),
        }
    }
    RequestLine { method: "POST", url, headers }
}

/// What a golden file shows instead of a key.
fn placeholder(secret: &SecretRef) -> String {
    match secret {
        SecretRef::Env(name) => format!("${{{name}}}"),
        SecretRef::File(path) => format!("${{file:{path}}}"),
        SecretRef::Keyring { service, user } => format!("${{keyring:{service}/{user}}}"),
    }
}
