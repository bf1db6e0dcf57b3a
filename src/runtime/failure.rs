//! Parses all known forms of provider errors, from HTTP responses and from streams.
//!
//! Input: a status and a body, or a JSON value from a stream. Output: an [`Error`] with a message
//! of our own, and the provider's message as its detail.
//!
//! | provider | shape |
//! | --- | --- |
//! | Anthropic | `{"type": "error", "error": {"type", "message"}}` |
//! | OpenAI, OpenRouter, llama.cpp | `{"error": {"message", "type", "code"}}`; `code` may be an HTTP status |
//! | OpenAI Responses, in streams | `{"type": "error", "code", "message"}`, `{"response": {"error": {"code", "message"}}}` |
//! | Google | `{"error": {"code", "message", "status"}}`, also in a list |
//! | Mistral | `{"object": "error", "message", "type", "code"}`, `{"detail": [{"loc", "msg"}]}`, `{"message"}` |
//! | Ollama, LM Studio | `{"error": "…"}` |
//! | `MiniMax` | `{"base_resp": {"status_code", "status_msg"}}` |
//! | gateways | `{"code", "message", "success": false}`, `{"errorMessage"}`, plain text |

use std::sync::Arc;

use serde_json::Value;

use super::{Category, Error, ResponseInfo};

/// The maximum number of characters kept from a provider's message.
const LONGEST: usize = 300;

/// Google's code for an invalid key.
const BAD_KEY: &str = "API_KEY_INVALID";

/// Returns the error for an HTTP response without a success status. The status determines the
/// category and whether a retry may succeed, unless the body reports an invalid key or an empty
/// account. The body also provides the detail.
pub(crate) fn from_status(status: u16, content_type: Option<&str>, body: &[u8]) -> Error {
    let parsed = parse(body);
    let reported = parsed.as_ref().and_then(reported);
    let bad_key = reported.as_ref().is_some_and(Reported::is_bad_key);
    let (category, phrase, retryable) = meaning(if bad_key { 401 } else { status });
    let unpaid = reported.as_ref().is_some_and(Reported::is_unpaid);
    let detail = reported.map_or_else(
        || body_snippet(content_type, body),
        |reported| reported.words(),
    );
    Error {
        category,
        message: format!("{phrase} (HTTP {status})"),
        detail: (!detail.is_empty()).then_some(detail),
        status: Some(status),
        retryable: retryable && !unpaid,
        retry_after: None,
        response: None,
    }
    .with_response(&parsed.as_ref().map(named).unwrap_or_default())
}

/// Returns the IDs in an error: `request_id` from Anthropic and `DashScope`, and `requestId` from
/// Google's details.
fn named(value: &Value) -> ResponseInfo {
    if let Value::Array(values) = value {
        return values.first().map(named).unwrap_or_default();
    }
    let places = [
        "/request_id",
        "/error/request_id",
        "/response/request_id",
        "/error/metadata/request_id",
    ];
    let id = places
        .iter()
        .filter_map(|place| value.pointer(place)?.as_str())
        .find_map(id);
    ResponseInfo {
        request_id: id.or_else(|| google_id(value)),
        ..ResponseInfo::default()
    }
}

/// Returns the ID from a `google.rpc.RequestInfo` in an error's details.
fn google_id(value: &Value) -> Option<Arc<str>> {
    let details = value.pointer("/error/details")?.as_array()?;
    details
        .iter()
        .filter_map(|detail| detail.get("requestId")?.as_str())
        .find_map(id)
}

/// Returns the delay that Google asks for, from a `google.rpc.RetryInfo` in an error's details.
pub(crate) fn retry_delay(body: &[u8]) -> Option<String> {
    let value = parse(body)?;
    let error = value.get(0).unwrap_or(&value);
    let details = error.pointer("/error/details")?.as_array()?;
    details
        .iter()
        .find_map(|detail| Some(detail.get("retryDelay")?.as_str()?.to_owned()))
}

/// Returns a provider's ID; `None` if it is too long or more than one word, and thus unsuitable for
/// display.
pub(crate) fn id(text: &str) -> Option<Arc<str>> {
    let is_id = !text.is_empty()
        && text.len() <= LONGEST_ID
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_id.then(|| text.into())
}

/// The maximum length of an ID that is reported, in bytes. It is large because proxies combine
/// several facts in one ID.
const LONGEST_ID: usize = 1_000;

/// Returns `true` if a JSON value in an answer reports an error.
pub(crate) fn is_reported(value: &Value) -> bool {
    let error = value.get("error").is_some_and(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        other => !matches!(other, Value::Null | Value::Bool(false)),
    });
    let has_failed = value
        .pointer("/base_resp/status_code")
        .and_then(Value::as_i64)
        .is_some_and(|code| code != 0);
    error
        || has_failed
        || ["type", "object"]
            .iter()
            .any(|key| value.get(key).and_then(Value::as_str) == Some("error"))
}

/// Returns the error for a response with a success status that is not in its wire format. If the
/// response contains a provider's error, that error determines the category. Otherwise, the detail
/// is the beginning of the response.
pub(crate) fn not_of_format(message: String, value: Option<&Value>, head: &[u8]) -> Error {
    let reported = value.and_then(reported);
    let told = reported.as_ref().and_then(Reported::meaning);
    let (category, _, retryable) = told.unwrap_or((Category::Provider, "", false));
    let words = reported
        .filter(|reported| !reported.message.is_empty())
        .map(|reported| reported.words());
    let error = Error::new(category, message).detail(words.unwrap_or_else(|| snippet(head)));
    let error = error.with_response(&value.map(named).unwrap_or_default());
    if retryable { error.retryable() } else { error }
}

/// Returns the error for a JSON value in the middle of an answer. The provider's code, type or
/// message determines the category. Without any of these, it is treated as a temporary failure of
/// the provider.
pub(crate) fn in_stream(value: &Value) -> Error {
    let reported = reported(value).unwrap_or_else(|| Reported {
        kind: String::new(),
        code: None,
        message: value.to_string(),
    });
    let (category, phrase, retryable) = reported.meaning().unwrap_or(FAILED);
    let error = Error::new(category, phrase).with_response(&named(value));
    let error = if retryable { error.retryable() } else { error };
    match reported.words() {
        words if words.is_empty() => error,
        words => error.detail(words),
    }
}

/// Returns a short excerpt of a response that could not be parsed, with whitespace collapsed and
/// tags removed.
pub(crate) fn snippet(body: &[u8]) -> String {
    body_snippet(None, body)
}

/// The parts of a provider's error.
struct Reported {
    /// The error type, or the code if the code is a word.
    kind: String,
    /// The code, if it is an HTTP status.
    code: Option<u16>,
    message: String,
}

impl Reported {
    fn words(&self) -> String {
        match (self.kind.as_str(), self.message.as_str()) {
            ("", message) => squeeze(message),
            (kind, "") => squeeze(kind),
            (kind, message) => squeeze(&format!("{kind}: {message}")),
        }
    }

    /// Returns `true` for an empty account, which OpenAI reports with status 429, although no retry
    /// can succeed.
    fn is_unpaid(&self) -> bool {
        meaning_of_kind(&self.kind) == Some(UNPAID)
    }

    /// Returns `true` for an invalid key, which Google reports with status 400 and
    /// `INVALID_ARGUMENT`.
    fn is_bad_key(&self) -> bool {
        self.kind == BAD_KEY
    }

    /// Returns the meaning of the error, from its code, type or message.
    fn meaning(&self) -> Option<Meaning> {
        match self.code {
            Some(status) if !self.is_bad_key() => Some(meaning(status)),
            _ => meaning_of_kind(&self.kind).or_else(|| meaning_of_words(&self.message)),
        }
    }
}

/// The meaning of an error: its category, a phrase for users, and whether a retry may succeed.
type Meaning = (Category, &'static str, bool);

/// A failure of the provider. A retry may succeed, as after a 5xx status.
const FAILED: Meaning = (Category::Provider, "the provider failed", true);

/// A failure that persists until the account has credit again.
const UNPAID: Meaning = (
    Category::Provider,
    "the provider rejects further requests",
    false,
);

/// Returns the meaning of an HTTP status.
fn meaning(status: u16) -> Meaning {
    match status {
        401 => (Category::Auth, "the provider did not accept the key", false),
        403 => (Category::Auth, "the provider does not allow this", false),
        408 => (Category::Provider, "the provider timed out", true),
        409 => (
            Category::Provider,
            "the provider is busy with a conflicting request",
            true,
        ),
        429 => (
            Category::Provider,
            "the provider's rate limit was reached",
            true,
        ),
        503 | 529 => (Category::Provider, "the provider is overloaded", true),
        500..600 => (Category::Provider, "the provider failed", true),
        404 => (
            Category::Validation,
            "the provider has no such endpoint or model",
            false,
        ),
        413 => (
            Category::Validation,
            "the request is too large for the provider",
            false,
        ),
        400..500 => (
            Category::Validation,
            "the provider rejects the request",
            false,
        ),
        300..400 => (
            Category::Provider,
            "the provider redirects the request",
            false,
        ),
        _ => (
            Category::Provider,
            "the provider sent an unexpected HTTP status",
            false,
        ),
    }
}

/// Returns the meaning of an error type: that of the first family whose keyword occurs in the type.
/// Only letters and digits are compared. Sources of types: the error pages of Anthropic and OpenAI
/// and the classes of their SDKs, `google.rpc.Code`, `ResponseErrorCode` of OpenAI's API document,
/// `DashScope`'s error codes, llama.cpp's `format_error_response`, the classes of `vLLM` and
/// `LiteLLM`.
fn meaning_of_kind(kind: &str) -> Option<Meaning> {
    let letters: String = kind
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    let family = KINDS
        .iter()
        .find(|(words, _)| words.iter().any(|word| letters.contains(word)))?;
    Some(family.1.meaning())
}

/// Returns the meaning of a message without a type. This is less reliable, because a message may
/// quote any text.
fn meaning_of_words(message: &str) -> Option<Meaning> {
    let start: String = message
        .chars()
        .take(LONGEST)
        .collect::<String>()
        .to_ascii_lowercase();
    let words: Vec<&str> = start
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let text = format!(" {} ", words.join(" "));
    let family = PHRASES
        .iter()
        .find(|(phrases, _)| phrases.iter().any(|phrase| text.contains(phrase)))?;
    Some(family.1.meaning())
}

/// The meaning of a family of error types or phrases.
enum Family {
    /// The same meaning as this HTTP status.
    Status(u16),
    Unpaid,
    Failed,
}

impl Family {
    fn meaning(&self) -> Meaning {
        match self {
            Family::Status(status) => meaning(*status),
            Family::Unpaid => UNPAID,
            Family::Failed => FAILED,
        }
    }
}

/// Keywords in error types, reduced to letters and digits.
const KINDS: &[(&[&str], Family)] = &[
    (
        &[
            "insufficientquota",
            "insufficientbalance",
            "insufficientfund",
            "billing",
            "credit",
            "payment",
            "arrear",
            "overdue",
        ],
        Family::Unpaid,
    ),
    (
        &[
            "apikey",
            "unauthenticated",
            "unauthorized",
            "authentication",
            "invalidtoken",
            "accesstoken",
        ],
        Family::Status(401),
    ),
    (
        &[
            "permission",
            "forbidden",
            "accessdenied",
            "unsupportedcountry",
        ],
        Family::Status(403),
    ),
    (
        &[
            "ratelimit",
            "rateexceeded",
            "resourceexhausted",
            "toomanyrequests",
            "throttl",
            "quota",
        ],
        Family::Status(429),
    ),
    (
        &[
            "overload",
            "unavailable",
            "capacity",
            "busy",
            "engineoverloaded",
        ],
        Family::Status(503),
    ),
    (&["notfound"], Family::Status(404)),
    (&["toolarge"], Family::Status(413)),
    (&["timeout", "timedout", "deadline"], Family::Status(408)),
    (
        &[
            "invalid",
            "badrequest",
            "unknownparam",
            "unknownfield",
            "unknownmodel",
            "validation",
            "unprocessable",
            "failedprecondition",
            "outofrange",
            "contextlength",
            "contextwindow",
            "exceedcontext",
            "contentfilter",
            "contentpolicy",
            "image",
            "unsupported",
            "typeerror",
            "valueerror",
        ],
        Family::Status(400),
    ),
    (
        &[
            "server",
            "apierror",
            "internal",
            "upstream",
            "gateway",
            "connection",
            "network",
            "stream",
            "temporar",
            "transient",
            "retry",
            "aborted",
        ],
        Family::Failed,
    ),
];

/// Prefixes of words that identify an error in a message.
const PHRASES: &[(&[&str], Family)] = &[
    (
        &[
            " insufficient balance",
            " insufficient quota",
            " insufficient credit",
            " insufficient fund",
            " billing",
            " credit",
            " payment",
        ],
        Family::Unpaid,
    ),
    (
        &[
            " unauthorized",
            " not authenticated",
            " unauthenticated",
            " authentication",
            " api key",
        ],
        Family::Status(401),
    ),
    (
        &[" permission denied", " forbidden", " access denied"],
        Family::Status(403),
    ),
    (
        &[
            " rate limit",
            " ratelimit",
            " too many requests",
            " throttl",
            " quota",
            " resource exhausted",
            " slow down",
        ],
        Family::Status(429),
    ),
    (
        &[
            " overload",
            " unavailable",
            " at capacity",
            " over capacity",
            " busy",
        ],
        Family::Status(503),
    ),
    (
        &[" timed out", " timeout", " deadline exceeded"],
        Family::Status(408),
    ),
    (&[" not found ", " does not exist "], Family::Status(404)),
    (
        &[
            " bad request",
            " invalid ",
            " not supported ",
            " unsupported ",
            " exceeds ",
            " too long ",
            " must be ",
        ],
        Family::Status(400),
    ),
    (
        &[
            " try again",
            " try later",
            " retry",
            " internal error",
            " internal server error",
            " bad gateway",
            " upstream",
            " connection reset",
            " connection closed",
            " connection error",
            " connection refused",
            " stream error",
            " temporar",
        ],
        Family::Failed,
    ),
];

/// Parses an error in any of the known forms.
fn reported(value: &Value) -> Option<Reported> {
    if let Value::Array(values) = value {
        return values.iter().find_map(reported);
    }
    let value = match value.get("response") {
        Some(response) if response.is_object() => response,
        _ => value,
    };
    let error = ["error", "base_resp"]
        .iter()
        .find_map(|key| value.get(key).filter(|error| says_something(error)));
    let error = error.unwrap_or(value);
    let message = message(error);
    let code = code(error);
    let kind = ["type", "status", "code", "error_code", "errorCode"]
        .iter()
        .filter_map(|key| error.get(key)?.as_str())
        .find(|word| is_kind(word));
    let kind = if is_bad_key(error) {
        BAD_KEY
    } else {
        kind.unwrap_or_default()
    }
    .to_owned();
    (!message.is_empty() || !kind.is_empty()).then_some(Reported {
        kind,
        code,
        message,
    })
}

/// Returns `true` if a member may describe an error.
fn says_something(error: &Value) -> bool {
    matches!(error, Value::Object(_)) || error.as_str().is_some_and(|text| !text.is_empty())
}

/// Returns `true` for a word that is more specific than "error".
fn is_kind(word: &str) -> bool {
    !word.is_empty() && word != "error" && word != "failed" && word.parse::<u16>().is_err()
}

/// Returns `true` if a `google.rpc.ErrorInfo` reports an invalid key.
fn is_bad_key(error: &Value) -> bool {
    let details = error
        .get("details")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    details
        .filter_map(|detail| detail.get("reason")?.as_str())
        .any(|reason| reason == BAD_KEY)
}

/// Returns the code if it is an HTTP status. Mistral's codes are not, but its `raw_status_code` is.
fn code(error: &Value) -> Option<u16> {
    [
        "code",
        "raw_status_code",
        "status_code",
        "statusCode",
        "status",
    ]
    .into_iter()
    .find_map(|key| {
        let code = match error.get(key)? {
            Value::String(text) => text.parse().ok()?,
            value => u16::try_from(value.as_u64()?).ok()?,
        };
        (300..600).contains(&code).then_some(code)
    })
}

/// The members that may contain a provider's message.
const MESSAGES: [&str; 8] = [
    "message",
    "detail",
    "error_description",
    "msg",
    "status_msg",
    "errorMessage",
    "error_message",
    "error_msg",
];

fn message(error: &Value) -> String {
    let raw = error
        .pointer("/metadata/raw")
        .map(plain)
        .unwrap_or_default();
    let said = MESSAGES
        .iter()
        .filter_map(|key| error.get(key))
        .find(|said| !said.is_null());
    let said = match error {
        Value::String(text) => text.clone(),
        _ => said.map(plain).unwrap_or_default(),
    };
    if raw.is_empty() {
        said
    } else {
        format!("{said}: {raw}")
    }
}

/// Returns the message in a string, in a list of validation errors (`{"loc": […], "msg": "…"}`), or
/// in an object that contains either.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(findings) => findings.iter().map(finding).collect::<Vec<_>>().join("; "),
        Value::Object(object) => object
            .get("detail")
            .map_or_else(|| value.to_string(), plain),
        other => other.to_string(),
    }
}

fn finding(value: &Value) -> String {
    let Some(message) = value.get("msg").and_then(Value::as_str) else {
        return plain(value);
    };
    let place = value
        .get("loc")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let place: Vec<String> = place
        .map(|step| {
            step.as_str()
                .map_or_else(|| step.to_string(), str::to_owned)
        })
        .collect();
    if place.is_empty() {
        message.to_owned()
    } else {
        format!("{}: {message}", place.join("."))
    }
}

/// Parses a body as JSON, or as a stream whose first event contains JSON.
fn parse(body: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(body);
    serde_json::from_str(&text)
        .ok()
        .or_else(|| serde_json::from_str(event_data(&text)?).ok())
}

/// Returns the data of the first event in a stream.
fn event_data(stream: &str) -> Option<&str> {
    stream.lines().find_map(|line| {
        line.strip_prefix("data:")
            .or_else(|| line.strip_prefix("error:"))
    })
}

fn body_snippet(content_type: Option<&str>, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let html = content_type.is_some_and(|kind| kind.contains("html"))
        || text.trim_start().starts_with('<');
    if html {
        squeeze(&without_tags(&text))
    } else {
        squeeze(&text)
    }
}

/// Returns the text of an HTML page, without tags, scripts and styles.
fn without_tags(page: &str) -> String {
    let mut rest = page;
    let mut text = String::new();
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        text.push(' ');
        rest = after_tag(&rest[start..]);
    }
    text.push_str(rest);
    text
}

/// Returns the text after a tag or, for a script or style, after its closing tag.
fn after_tag(tag: &str) -> &str {
    let hidden = ["script", "style"].into_iter().find(|name| is(name, tag));
    let end = hidden
        .and_then(|name| tag.find(&format!("</{name}")))
        .unwrap_or_default();
    let inside = &tag[end..];
    inside.find('>').map_or("", |close| &inside[close + 1..])
}

fn is(name: &str, tag: &str) -> bool {
    tag.get(1..=name.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
}

/// Collapses whitespace, removes control characters, and truncates the text to [`LONGEST`]
/// characters.
fn squeeze(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let joined = words.join(" ");
    match joined.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", joined[..end].trim_end()),
        None => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, body: &str) -> String {
        let error = from_status(status, None, body.as_bytes());
        format!(
            "{}{}",
            error,
            if error.retryable { " (may pass)" } else { "" }
        )
    }

    #[test]
    fn ids_as_long_as_those_of_proxies_are_told() {
        // LiteLLM's IDs for Responses have more than 400 characters.
        assert!(id(&"r".repeat(421)).is_some());
        assert!(id(&"r".repeat(2_000)).is_none());
    }

    #[test]
    fn every_shape_gives_its_words() {
        for (status, body, expected) in ANSWERS {
            assert_eq!(shown(*status, body), *expected, "{body}");
        }
    }

    /// A status, the body of the response, and the resulting message.
    type Answer = (u16, &'static str, &'static str);

    const ANSWERS: &[Answer] = &[
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
            "provider: the provider is overloaded (HTTP 529): overloaded_error: Overloaded (request req_1) (may pass)",
        ),
        (
            400,
            r#"{"error":{"message":"Unknown parameter: 'x'.","type":"invalid_request_error","param":"x","code":"unknown_parameter"}}"#,
            "validation: the provider rejects the request (HTTP 400): invalid_request_error: Unknown parameter: 'x'.",
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            "provider: the provider's rate limit was reached (HTTP 429): insufficient_quota: You exceeded your current quota.",
        ),
        (
            403,
            r#"[{"error":{"code":403,"message":"Method doesn't allow unregistered callers.","status":"PERMISSION_DENIED"}}]"#,
            "auth: the provider does not allow this (HTTP 403): PERMISSION_DENIED: Method doesn't allow unregistered callers.",
        ),
        (
            422,
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"name"],"msg":"Extra inputs are not permitted","input":"x"}]}"#,
            "validation: the provider rejects the request (HTTP 422): body.messages.0.name: Extra inputs are not permitted",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            "auth: the provider did not accept the key (HTTP 400): API_KEY_INVALID: API key not valid.",
        ),
        (
            422,
            r#"{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"wrong"}]},"type":"invalid_request_error","code":null}"#,
            "validation: the provider rejects the request (HTTP 422): invalid_request_error: body.n: wrong",
        ),
        (
            401,
            r#"{"message":"Unauthorized","request_id":"r"}"#,
            "auth: the provider did not accept the key (HTTP 401): Unauthorized (request r)",
        ),
        (
            401,
            r#"{"detail":"Unauthorized"}"#,
            "auth: the provider did not accept the key (HTTP 401): Unauthorized",
        ),
        (
            404,
            r#"{"error":"model 'x' not found"}"#,
            "validation: the provider has no such endpoint or model (HTTP 404): model 'x' not found",
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"'messages' is required","type":"server_error"}}"#,
            "provider: the provider failed (HTTP 500): server_error: 'messages' is required (may pass)",
        ),
        (
            502,
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream gone","provider_name":"X"}}}"#,
            "provider: the provider failed (HTTP 502): Provider returned error: upstream gone (may pass)",
        ),
        (
            400,
            "data: {\"error\":{\"message\":\"no\"}}\n\n",
            "validation: the provider rejects the request (HTTP 400): no",
        ),
        (
            307,
            "",
            "provider: the provider redirects the request (HTTP 307)",
        ),
        (
            413,
            "  too\n\n big ",
            "validation: the request is too large for the provider (HTTP 413): too big",
        ),
    ];

    #[test]
    fn pages_lose_their_markup_and_length() {
        let page = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>a{b:c}</style></head>\
                    <body><script>if (1<2) {}</script><h1>Bad  Gateway</h1></body></html>";
        assert_eq!(snippet(page.as_bytes()), "502 Bad Gateway Bad Gateway");
        assert_eq!(
            snippet("ü".repeat(1000).as_bytes()).chars().count(),
            LONGEST + 1
        );
        assert_eq!(snippet(b"<"), "");
    }

    #[test]
    fn google_says_when_to_come_back() {
        let error = r#"{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"34s"}]}}"#;
        assert_eq!(retry_delay(error.as_bytes()).as_deref(), Some("34s"));
        assert_eq!(
            retry_delay(format!("[{error}]").as_bytes()).as_deref(),
            Some("34s")
        );
        assert_eq!(retry_delay(b"{}"), None);
    }

    #[test]
    fn in_a_stream_the_type_decides() {
        let of = |kind: &str| {
            in_stream(
                &serde_json::json!({"type": "error", "error": {"type": kind, "message": "m"}}),
            )
        };
        let cases = [
            ("overloaded_error", Category::Provider, true),
            ("rate_limit_error", Category::Provider, true),
            ("api_error", Category::Provider, true),
            ("invalid_request_error", Category::Validation, false),
            ("authentication_error", Category::Auth, false),
            ("permission_error", Category::Auth, false),
            ("insufficient_quota", Category::Provider, false),
            ("something_new", Category::Provider, true),
            ("RateLimitError", Category::Provider, true),
            ("Throttling.RateQuota", Category::Provider, true),
            ("server_busy", Category::Provider, true),
            ("upstream_error", Category::Provider, true),
            ("connection_error", Category::Provider, true),
            ("stream_error", Category::Provider, true),
            ("APIConnectionError", Category::Provider, true),
            ("APITimeoutError", Category::Provider, true),
            ("InternalServerError", Category::Provider, true),
            ("Service-Unavailable", Category::Provider, true),
            ("BadRequestError", Category::Validation, false),
            ("InvalidParameter", Category::Validation, false),
            ("NotFoundError", Category::Validation, false),
            ("InvalidApiKey", Category::Auth, false),
            ("PermissionDeniedError", Category::Auth, false),
            ("InsufficientBalance", Category::Provider, false),
        ];
        for (kind, category, retryable) in cases {
            assert_eq!(
                (of(kind).category, of(kind).retryable),
                (category, retryable),
                "{kind}"
            );
        }
        let told = |text: &str| in_stream(&serde_json::json!({ "error": text })).retryable;
        for text in [
            "overloaded, try later",
            "Internal error",
            "rate limit reached",
            "upstream connection error",
            "Server busy",
            "broken",
        ] {
            assert!(told(text), "{text}");
        }
        for text in [
            "model 'x' not found",
            "insufficient balance",
            "Incorrect API key",
            "`n` must be 1",
        ] {
            assert!(!told(text), "{text}");
        }
        let coded = in_stream(&serde_json::json!({"error": {"code": 429, "message": "slow down"}}));
        assert_eq!(
            (coded.category, coded.retryable),
            (Category::Provider, true)
        );
    }
}
