//! The step that adds the model, and the other parts of a request besides its body.

use std::fmt;

use super::url::UrlParts;
use super::{Auth, ClientApi};
use crate::repo::{Instance, SecretRef};

/// The placeholder for the model, in endpoints and wherever the model is unknown.
pub const MODEL_PLACEHOLDER: &str = "${MODEL}";

/// A request without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// The HTTP method.
    pub method: &'static str,
    /// The whole URL.
    pub url: String,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

/// A request header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name, in lower case.
    pub name: String,
    /// The value, which may refer to a key.
    pub value: HeaderValue,
}

/// The value of a header. It never contains a secret. Its `Display` form is used in golden files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// A value without a key.
    Plain(String),
    /// A key after a prefix.
    Key {
        /// The text before the key, for example `Bearer `.
        prefix: &'static str,
        /// The location from which the key is read.
        key: SecretRef,
    },
}

impl fmt::Display for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderValue::Plain(value) => f.write_str(value),
            HeaderValue::Key { prefix, key } => write!(f, "{prefix}{}", placeholder(key)),
        }
    }
}

/// Returns the request URL.
pub(crate) fn request_url(instance: &Instance, endpoint: &str) -> String {
    format!(
        "{}/{}",
        instance.url.value.trim_end_matches('/'),
        endpoint.trim_start_matches('/')
    )
}

/// Returns the request line for an instance and an endpoint, with `${MODEL}` replaced. The
/// profile's headers, whose names are in lower case, override those of the instance.
pub fn request_line<'h>(
    instance: &'h Instance,
    api: ClientApi,
    endpoint: &str,
    model: &str,
    own: impl IntoIterator<Item = (&'h str, &'h str)>,
) -> RequestLine {
    let url = request_url(instance, &endpoint.replace(MODEL_PLACEHOLDER, model));
    let mut headers = vec![plain("content-type", "application/json")];
    if let Some(secret) = &instance.api_key_ref {
        let (name, prefix) = match api.auth() {
            Auth::Bearer => ("authorization", "Bearer "),
            Auth::Header(name) => (name, ""),
        };
        headers.push(Header {
            name: name.to_owned(),
            value: HeaderValue::Key {
                prefix,
                key: secret.value.clone(),
            },
        });
    }
    headers.extend(api.headers().iter().map(|(name, value)| plain(name, value)));
    for (name, value) in instance
        .headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .chain(own)
    {
        match headers.iter_mut().find(|known| *known.name == *name) {
            Some(known) => known.value = HeaderValue::Plain(value.to_owned()),
            None => headers.push(plain(name, value)),
        }
    }
    RequestLine {
        method: "POST",
        url,
        headers,
    }
}

fn plain(name: &str, value: &str) -> Header {
    Header {
        name: name.to_owned(),
        value: HeaderValue::Plain(value.to_owned()),
    }
}

/// Returns `true` if data sent to the URL is not encrypted: it is a plain HTTP URL for a different
/// machine.
pub(crate) fn is_in_the_clear(url: &str) -> bool {
    url.starts_with("http://") && !is_loopback(UrlParts::of(url).host())
}

/// Returns `true` if a host name or address refers to this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_address || host == "localhost" || host.ends_with(".localhost")
}

/// Returns the text that golden files show instead of a key.
pub(crate) fn placeholder(secret: &SecretRef) -> String {
    match secret {
        SecretRef::Env(name) => format!("${{{name}}}"),
        SecretRef::File(path) => format!("${{file:{path}}}"),
        SecretRef::Keyring { service, user } => format!("${{keyring:{service}/{user}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls() {
        assert_eq!(UrlParts::of("http://user:pw@[::1]:8080/v1").host(), "::1");
        assert_eq!(
            UrlParts::of("https://api.example.com:443/x?y").host(),
            "api.example.com"
        );
        assert_eq!(UrlParts::of("https://api.example.com:443/x?y").port(), None);
        assert_eq!(UrlParts::of("http://[::1]:8080/v1").port(), Some(8080));
        assert_eq!(UrlParts::of("http://[::1]/v1").port(), None);
        assert!(is_loopback(UrlParts::of("http://127.0.0.1:1/").host()));
        assert!(is_loopback("localhost"));
        assert!(!is_loopback("localhost.example.com"));
    }

    fn instance(api: ClientApi, headers: &[(&str, &str)]) -> Instance {
        let file = crate::source::Sources::default()
            .add("p.toml", crate::source::SourceText::salvage(b""));
        let spanned = |text: &str| crate::source::Spanned {
            value: std::sync::Arc::from(text),
            span: crate::source::Span::file_start(file),
        };
        let key = crate::source::Spanned {
            value: SecretRef::Env("KEY".into()),
            span: spanned("").span,
        };
        Instance {
            name: spanned("P"),
            bases: Vec::new(),
            layer: crate::repo::LayerKind::Own,
            client_api: spanned(api.name()),
            url: spanned("https://p.example"),
            server: None,
            api_key_ref: Some(key),
            description: None,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            header_spans: Vec::new(),
        }
    }

    #[test]
    fn a_key_counts_for_every_client_api() {
        for api in ClientApi::ALL {
            let line = request_line(&instance(api, &[]), api, "x", "m", []);
            let keys = line
                .headers
                .iter()
                .filter(|header| matches!(header.value, HeaderValue::Key { .. }))
                .count();
            assert_eq!(keys, 1, "{}", api.name());
        }
    }

    #[test]
    fn headers_of_the_profile_go_over_those_of_the_instance_and_of_the_api() {
        let instance = instance(
            ClientApi::Claude,
            &[("anthropic-version", "2023-06-01"), ("x-team", "a")],
        );
        let own = [("x-team", "b"), ("anthropic-beta", "c")];
        let line = request_line(&instance, ClientApi::Claude, "x", "m", own);
        let told: Vec<String> = line
            .headers
            .iter()
            .map(|it| format!("{}: {}", it.name, it.value))
            .collect();
        assert_eq!(
            told,
            [
                "content-type: application/json",
                "x-api-key: ${KEY}",
                "anthropic-version: 2023-06-01",
                "x-team: b",
                "anthropic-beta: c"
            ]
        );
        let headers = ClientApi::Claude.api_headers(&instance, own);
        assert_eq!(
            (headers.version.as_deref(), headers.has_beta("c")),
            (Some("2023-06-01"), Some(true))
        );
        let headers =
            ClientApi::Claude.api_headers(&instance, [("anthropic-version", "2026-10-21")]);
        assert_eq!(headers.version.as_deref(), Some("2026-10-21"));
    }
}
