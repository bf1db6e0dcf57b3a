//! Checks addresses: whether requests can be sent to a URL and an endpoint, and whether either
//! contains a secret.
//!
//! Input: a string as written. Output: the mistake in it, with a message that never quotes text
//! that may contain a key. An accepted base URL determines the host, and no endpoint appended to it
//! can change this host.

use crate::diag::did_you_mean;
use crate::secret::{is_key_in_path, is_secret_name, is_secret_value, places_to_hide};

/// The reason an address was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoAddress {
    /// The mistake, described in words.
    pub(crate) why: String,
    /// The suggested correction, if there is one.
    pub(crate) help: Option<String>,
    /// `true` if the address contains a secret, so it must not be shown.
    pub(crate) holds_secret: bool,
}

impl NoAddress {
    fn wrong(why: &str) -> NoAddress {
        NoAddress {
            why: why.to_owned(),
            help: None,
            holds_secret: false,
        }
    }

    fn secret(why: &str) -> NoAddress {
        NoAddress {
            holds_secret: true,
            ..NoAddress::wrong(why)
        }
    }

    fn help(self, help: impl Into<String>) -> NoAddress {
        NoAddress {
            help: Some(help.into()),
            ..self
        }
    }
}

/// Rejects a URL to which no endpoint can be appended or no request can be sent. The pattern in
/// `schemas/provider.schema.json` rejects the same URLs, except for large ports and some characters
/// in host names.
pub(crate) fn base_url(url: &str) -> Result<(), NoAddress> {
    if url.is_empty() {
        return Err(NoAddress::wrong("it is empty"));
    }
    no_secret(url)?;
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(NoAddress::wrong("a URL cannot contain whitespace"));
    }
    if url.contains("${") {
        return Err(
            NoAddress::wrong("variables in a URL are not expanded").help("write the value itself")
        );
    }
    let rest = behind_scheme(url)?;
    if rest.contains(['?', '#']) {
        let help =
            "keep only the path: the profiles' `endpoint` is appended, and may contain a query";
        return Err(NoAddress::wrong("it has a query or a fragment").help(help));
    }
    let place = rest.split('/').next().unwrap_or_default();
    let address = place.rfind(']').unwrap_or_default();
    let (host, port) = match place[address..].split_once(':') {
        Some((rest, port)) => (&place[..address + rest.len()], Some(port)),
        None => (place, None),
    };
    if host.is_empty() {
        return Err(NoAddress::wrong("it has no host"));
    }
    if !is_host(host) {
        return Err(NoAddress::wrong(
            "a host consists of letters, digits, `-` and `.`, or is an IP address",
        ));
    }
    if port.is_some_and(|port| {
        !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<u16>().is_err()
    }) {
        return Err(NoAddress::wrong("a port is a number up to 65535"));
    }
    plain_path(&rest[place.len()..])
}

/// Checks that requests can be sent to a URL exactly as written, including its query.
pub(crate) fn server_url(url: &str) -> Result<(), NoAddress> {
    no_secret(url)?;
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(NoAddress::wrong("a URL cannot contain whitespace"));
    }
    if url.contains('#') {
        return Err(NoAddress::wrong("the part after `#` would not be sent"));
    }
    if url.contains("${") {
        return Err(
            NoAddress::wrong("variables in a URL are not expanded").help("write the value itself")
        );
    }
    base_url(url.split('?').next().unwrap_or_default())
}

/// Checks that an endpoint can be appended to a base URL, and that clients do not change the
/// meaning of the result.
pub(crate) fn endpoint(text: &str) -> Result<(), NoAddress> {
    no_secret(text)?;
    if text.contains("://") {
        let help = "keep only the path: the `url` of the provider instance has the scheme and host";
        return Err(NoAddress::wrong("this is a complete URL").help(help));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(NoAddress::wrong("an endpoint cannot contain whitespace"));
    }
    if text.contains('#') {
        return Err(NoAddress::wrong("the part after `#` would not be sent"));
    }
    plain_path(text.split('?').next().unwrap_or_default())
}

/// Returns the part of a URL after the scheme and its `//`.
fn behind_scheme(url: &str) -> Result<&str, NoAddress> {
    let schemes = ["https", "http"];
    if let Some((scheme, rest)) = url.split_once("://") {
        return match schemes.contains(&scheme) {
            true => Ok(rest),
            false => Err(NoAddress {
                help: did_you_mean(scheme, schemes),
                ..other_scheme(scheme)
            }),
        };
    }
    let written = url.split_once(':').map(|(scheme, _)| scheme);
    let near = written.and_then(|scheme| did_you_mean(scheme, schemes));
    match (written, near) {
        (Some("https" | "http"), _) => Err(NoAddress::wrong("`//` is missing after the scheme")),
        (Some(scheme), Some(help)) => Err(other_scheme(scheme).help(help)),
        _ => {
            let shown = if places_to_hide(url).is_empty() && !url.contains(['?', '#', '=']) {
                url
            } else {
                "…"
            };
            let help = format!(
                "write `https://{shown}`, or `http://{shown}` if the server does not use TLS"
            );
            Err(NoAddress::wrong("the scheme is missing").help(help))
        }
    }
}

fn other_scheme(scheme: &str) -> NoAddress {
    match scheme.len() <= 8 && scheme.bytes().all(|b| b.is_ascii_alphabetic()) {
        true => NoAddress::wrong(&format!("`{scheme}` is not a supported scheme")),
        false => NoAddress::wrong("requests are sent over `https` or `http`"),
    }
}

/// Returns `true` if a string may be an IP address or a host name, in any script. Only letters and
/// digits are allowed, so that invisible characters, and characters that resemble dots and slashes,
/// are rejected.
fn is_host(text: &str) -> bool {
    match text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_')),
    }
}

/// Rejects a path that clients would change before they send it, because they replace `\` with `/`
/// and resolve `.` and `..`.
fn plain_path(path: &str) -> Result<(), NoAddress> {
    if path.contains('\\') {
        return Err(NoAddress::wrong("a URL cannot contain `\\`").help("write `/`"));
    }
    match path.split('/').any(is_dots) {
        true => {
            Err(NoAddress::wrong("`.` and `..` would change the path").help("write the final path"))
        }
        false => Ok(()),
    }
}

/// Returns `true` for `.` and `..`, including their percent-encoded forms.
fn is_dots(part: &str) -> bool {
    matches!(
        part.to_ascii_lowercase().replace("%2e", ".").as_str(),
        "." | ".."
    )
}

/// Rejects a string that contains a login, or a parameter that is a key. Both are also detected
/// after one or two levels of percent-encoding.
fn no_secret(text: &str) -> Result<(), NoAddress> {
    if holds_login(text) {
        let help = "remove the part before `@`, and put the key in `api_key_ref`; if a real password was committed, change it";
        return Err(NoAddress::secret("it contains credentials").help(help));
    }
    if holds_key(text) || text.contains('%') && holds_encoded_key(text) {
        let help =
            "remove it, and put the key in `api_key_ref`; if a real key was committed, revoke it";
        return Err(NoAddress::secret("it contains a key").help(help));
    }
    Ok(())
}

/// Returns `true` if a string contains a key after one or two levels of percent-encoding.
fn holds_encoded_key(text: &str) -> bool {
    let decoded = percent_decoded(text);
    holds_key(&decoded) || holds_key(&percent_decoded(&decoded))
}

/// Returns `true` if the host is preceded by a login, according to the lenient rules of clients:
/// they skip tabs and line ends, treat `\` as `/`, and accept any number of slashes and any case in
/// a scheme.
fn holds_login(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim_start();
    let rest = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => text,
    };
    let authority = rest
        .trim_start_matches(['/', '\\'])
        .split(['/', '\\', '?', '#'])
        .next()
        .unwrap_or_default();
    // An endpoint such as `@scope/x` or `v1/users@x` is a path and contains no login.
    let is_path =
        rest.len() == text.len() && !rest.starts_with(['/', '\\']) && !authority.contains(':');
    !is_path
        && (authority.contains(['@', '＠', '﹫']) || authority.to_ascii_lowercase().contains("%40"))
}

fn is_scheme(scheme: &str) -> bool {
    scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Returns `true` if a URL contains a key, either as a parameter, wherever parameters begin, or as
/// a part of the host or path.
fn holds_key(text: &str) -> bool {
    let (path, query) = text.split_once(['?', '#']).unwrap_or((text, ""));
    path.split(['/', '&', ';'])
        .any(|part| is_named(part) || is_key(part))
        || query
            .split(['/', '&', ';', '?', '#'])
            .any(|part| is_named(part) || is_secret_value(part))
}

fn is_key(part: &str) -> bool {
    is_key_in_path(part) || part.split([':', '.', '=', '@']).any(is_key_in_path)
}

fn is_named(part: &str) -> bool {
    let pair = part.split_once('=');
    pair.is_some_and(|(name, value)| !value.is_empty() && is_secret_name(name))
}

/// Returns a string in which the `%XX` sequences of ASCII characters are decoded.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(u8::is_ascii);
        match byte {
            Some(byte) => {
                decoded.extend(std::iter::once(char::from(byte)).chain(part[2..].chars()));
            }
            None => decoded.extend(std::iter::once('%').chain(part.chars())),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_that_requests_can_be_sent_to_is_taken() {
        for url in [
            "https://api.example.com",
            "https://api.example.com/v1/",
            "http://localhost:8080/v1",
            "http://127.0.0.1:1",
            "http://[::1]:8080/v1",
            "http://[::1]",
            "https://bücher.example/a%20b",
            "https://api.example.com/@scope/v1",
            "http://llama_box:8080",
        ] {
            assert_eq!(base_url(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn another_base_url_is_told_what_is_wrong_with_it() {
        for (url, why) in [
            ("", "it is empty"),
            ("https://a b.example", "a URL cannot contain whitespace"),
            ("https://a.example/v1 ", "a URL cannot contain whitespace"),
            ("https://${HOST}/v1", "variables in a URL are not expanded"),
            ("localhost:8080", "the scheme is missing"),
            ("api.example.com", "the scheme is missing"),
            ("http:/x", "`//` is missing after the scheme"),
            ("htp:/x", "`htp` is not a supported scheme"),
            ("ftp://a.example", "`ftp` is not a supported scheme"),
            ("HTTP://a.example", "`HTTP` is not a supported scheme"),
            ("https://", "it has no host"),
            ("https:///v1", "it has no host"),
            ("http://:8080", "it has no host"),
            ("http://a.example:http/v1", "a port is a number up to 65535"),
            ("http://a.example:99999", "a port is a number up to 65535"),
            ("http://a.example:+80", "a port is a number up to 65535"),
            ("http://a.example:/v1", "a port is a number up to 65535"),
            (
                "http://a<b",
                "a host consists of letters, digits, `-` and `.`, or is an IP address",
            ),
            (
                "http://[::1",
                "a host consists of letters, digits, `-` and `.`, or is an IP address",
            ),
            (
                "https://a\u{200b}.example",
                "a host consists of letters, digits, `-` and `.`, or is an IP address",
            ),
            (
                "https://good.example\\.evil.example",
                "a host consists of letters, digits, `-` and `.`, or is an IP address",
            ),
            (
                "https://good.example／x",
                "a host consists of letters, digits, `-` and `.`, or is an IP address",
            ),
            (
                "https://a.example/v1?mode=x",
                "it has a query or a fragment",
            ),
            ("https://a.example/v1\\..", "a URL cannot contain `\\`"),
            (
                "https://a.example/v1/%2E%2e/x",
                "`.` and `..` would change the path",
            ),
        ] {
            assert_eq!(base_url(url).expect_err(url).why, why, "{url}");
        }
    }

    #[test]
    fn a_scheme_that_is_missing_or_mistyped_is_suggested() {
        let wrong = |url: &str| base_url(url).expect_err(url);
        assert_eq!(
            wrong("htps://a.example").help.as_deref(),
            Some("did you mean `https`?")
        );
        let help = "write `https://localhost:8080`, or `http://localhost:8080` if the server does not use TLS";
        assert_eq!(wrong("localhost:8080").help.as_deref(), Some(help));
    }

    #[test]
    fn logins_are_found_in_every_spelling() {
        for url in [
            "https://me:pw@a.example/v1",
            "https://me@a.example",
            "HTTPS://me:pw@a.example",
            "https:me:pw@a.example",
            "https:/me:pw@a.example",
            "https:\\\\me:pw@a.example",
            "https:////me:pw@a.example",
            "//me:pw@a.example",
            "\\\\me@a.example",
            "me:pw@a.example/v1",
            "ht\ntps://me:pw@a.example",
            " https://me:pw@a.example",
            "https://me:pw%40a.example",
            "https://me:pw＠a.example",
            "https://${MODEL}:pw@a.example",
            "https://a@b@host",
            "https://a.example/v1?key=abc",
            "https://a.example/v1?x=1&API_KEY=abc",
            "https://a.example/v1?x=1;access%5Ftoken=abc",
            "https://a.example/v1?x=sk-abcdefgh",
            "https://a.example/v1?x=1?token=abc",
            "https://a.example/v1?x=1#private_token=abc",
            "https://a.example/v1;token=abc/x",
            "https://a.example/glpat-a1B2c3D4e5F6g7H8i9J0/v1",
            "https://a.example/v1/sk%2Dabcdef123456/x",
            "https://a.example/v1?x%3D1%26api_key%3Dabc",
            "https://a.example/v1?x=1%2526token%253Dabc",
            "https://gsk_a1B2c3D4e5F6.a.example/v1",
            "https://a.example/v1?openai_api_key=abc",
        ] {
            let wrong = base_url(url).expect_err(url);
            assert!(
                wrong.holds_secret && !wrong.why.contains("pw"),
                "{url}: {wrong:?}"
            );
        }
    }

    #[test]
    fn an_endpoint_is_a_path_with_a_query() {
        for text in [
            "v1/chat/completions",
            "/v1/messages",
            "models/${MODEL}:streamGenerateContent?alt=sse",
            "@scope/model",
            "v1/users@x",
            "",
            "v1/a..b/.well-known/...",
        ] {
            assert_eq!(endpoint(text), Ok(()), "{text}");
        }
        for (text, why) in [
            ("https://evil.example/v1", "this is a complete URL"),
            ("//me:pw@evil.example", "it contains credentials"),
            ("v1/\tx", "an endpoint cannot contain whitespace"),
            ("v1/x#y", "the part after `#` would not be sent"),
            ("\\\\evil", "a URL cannot contain `\\`"),
            ("../v2", "`.` and `..` would change the path"),
            ("v1/.%2e/x", "`.` and `..` would change the path"),
            ("v1/x?key=AIzaabc", "it contains a key"),
            ("v1/x?alt=sse&%6Bey=abc", "it contains a key"),
        ] {
            assert_eq!(endpoint(text).expect_err(text).why, why, "{text}");
        }
    }
}
