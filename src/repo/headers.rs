//! Reads `[headers]` in provider instances and profiles, and checks which headers a repository may
//! add to its requests and which are reserved for reqc.

use std::sync::Arc;

use super::{Reader, rules};
use crate::diag::Diagnostic;
use crate::secret::{is_secret_name, is_secret_value};
use crate::source::Span;
use crate::text::cut;
use crate::toml::{Kind, Table};

/// Reads the table. Returns the names in lower case, and omits headers that have findings.
pub(crate) fn read(reader: &mut Reader<'_, '_>, table: &Table) -> Vec<(Arc<str>, Arc<str>)> {
    let mut headers: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (key, node) in &table.entries {
        let span = reader.span(node);
        let Kind::String(value) = &node.kind else {
            let message = format!(
                "header `{}` must be a string, not {}",
                key.name,
                node.describe()
            );
            reader.report(Diagnostic::new(&rules::WRONG_TYPE, span, message));
            continue;
        };
        let [named, valued] = [Span::new(span.file, key.span.clone()), span];
        match problem(&key.name, value, [named, valued]) {
            Some(finding) => reader.report(finding),
            None if headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(&key.name)) =>
            {
                let message = format!(
                    "the `{}` header is set twice: header names are case-insensitive",
                    key.name
                );
                reader.report(
                    Diagnostic::new(&rules::INVALID_VALUE, named, message)
                        .help("keep one of the two"),
                );
            }
            None => headers.push((
                Arc::from(key.name.to_ascii_lowercase()),
                Arc::from(value.as_str()),
            )),
        }
    }
    headers
}

/// Returns a finding if a header is invalid, located at its name or its value.
fn problem(name: &str, value: &str, [named, span]: [Span; 2]) -> Option<Diagnostic> {
    if !value.is_empty()
        && (is_secret_name(name) || is_secret_value(name) || is_secret_value(value))
    {
        let finding = Diagnostic::new(&rules::LITERAL_SECRET, span, "a header contains a key");
        return Some(
            finding
                .label("this looks like the key itself")
                .help(KEY_HELP),
        );
    }
    if !is_name(name) {
        let help = "write ASCII letters, digits and `-`";
        let message = format!("`{}` is not a valid header name", cut(name, 60));
        return Some(Diagnostic::new(&rules::INVALID_VALUE, named, message).help(help));
    }
    if let Some(why) = reserved(name) {
        let message = format!(
            "the `{}` header cannot be set here",
            name.to_ascii_lowercase()
        );
        return Some(
            Diagnostic::new(&rules::INVALID_VALUE, named, message)
                .label(why)
                .help("remove it"),
        );
    }
    let is_value = value
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    (!is_value).then(|| {
        let message = format!(
            "the value of `{}` cannot be sent over HTTP",
            name.to_ascii_lowercase()
        );
        Diagnostic::new(&rules::INVALID_VALUE, span, message)
            .help("write printable ASCII characters on one line")
    })
}

/// Returns `true` if a header may contain a key, that is, if its name is valid and it does not
/// concern the connection or the body.
pub(super) fn is_key_header(name: &str) -> bool {
    let is_for_keys = matches!(
        &*name.to_ascii_lowercase(),
        "authorization" | "x-api-key" | "x-goog-api-key"
    );
    is_name(name) && (is_for_keys || reserved(name).is_none())
}

/// Returns `true` if a string is a token of RFC 9110, section 5.6.2.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Returns why a repository must not set this header; `None` if it may.
fn reserved(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" | "content-encoding" | "trailer" | "te" => {
            "it marks the end of the body; reqc sends it itself"
        }
        "connection" | "keep-alive" | "upgrade" | "expect" | "http2-settings" | "close" => {
            "it is about the connection, which reqc controls"
        }
        "host" => "the host comes from `url`",
        "content-type" => "every body is JSON; reqc sends this header itself",
        "authorization" | "x-api-key" | "x-goog-api-key" => {
            "`api_key_ref` of the provider instance sets it"
        }
        "accept-encoding" | "range" => {
            "reqc always asks for the complete answer, without compression"
        }
        name if name.starts_with("proxy-") => "proxies are configured only by the environment",
        name if name.starts_with("sec-") => "it is about the connection, which reqc controls",
        _ => return None,
    })
}

const KEY_HELP: &str = "put the key in `api_key_ref` of the provider instance, which sets the right header; if a real key was committed, revoke it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, Sources};

    fn found(name: &str, value: &str) -> Option<String> {
        let file = Sources::default().add("a.toml", SourceText::salvage(b""));
        problem(name, value, [Span::file_start(file); 2]).map(|finding| finding.message)
    }

    #[test]
    fn only_harmless_headers_pass() {
        for (name, value) in [
            ("x-title", "reqc"),
            ("HTTP-Referer", "https://a.example"),
            ("anthropic-beta", "a-1,b-2"),
            ("x-key-points", "3"),
        ] {
            assert_eq!(found(name, value), None, "{name}");
        }
        for name in [
            "Content-Length",
            "Content-Type",
            "transfer-encoding",
            "HOST",
            "connection",
            "te",
            "Proxy-Connection",
            "expect",
            "upgrade",
        ] {
            assert_eq!(
                found(name, "0"),
                Some(format!(
                    "the `{}` header cannot be set here",
                    name.to_ascii_lowercase()
                ))
            );
        }
        for name in [":authority", "", "a b", "a\r\nb", "é"] {
            assert!(
                found(name, "x").is_some_and(|it| it.contains("is not a valid header name")),
                "{name}"
            );
        }
        for value in ["a\r\nx: y", "a\nb", "\0", "é"] {
            assert!(
                found("x-a", value).is_some_and(|it| it.contains("sent over HTTP")),
                "{value:?}"
            );
        }
        for name in [
            "Authorization",
            "x_api_key",
            "Api-Key",
            "X-Amz-Security-Token",
            "cookie",
            "Set-Cookie",
            "proxy-authorization",
        ] {
            assert_eq!(
                found(name, "x").as_deref(),
                Some("a header contains a key"),
                "{name}"
            );
        }
    }
}
