//! Strings that may contain a refusal, and exchanges in captures.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::wrapping::without_headers;
use crate::lint::{Decoder, cassette};

/// A rejected request and its answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// The server's answer, as text.
    pub answer: String,
    /// The URL, if known.
    pub url: Option<String>,
    /// The request body as text, if known.
    pub request: Option<String>,
}

impl Exchange {
    /// Creates an exchange from an answer alone.
    pub fn of_answer(answer: String) -> Exchange {
        Exchange {
            answer,
            url: None,
            request: None,
        }
    }
}

/// The maximum number of objects that are searched for in a string.
const MOST_OBJECTS: usize = 64;

/// The maximum depth of JSON inside JSON strings.
const DEEPEST: usize = 6;

/// Returns the JSON objects in a string, in order. The text is JSON itself, or a log line or dump
/// that contains objects.
fn objects(text: &str) -> Vec<Value> {
    parts(text)
        .into_iter()
        .filter_map(|part| match part {
            Part::Object { value, .. } => Some(value),
            Part::Text(_) => None,
        })
        .collect()
}

/// A part of a string.
enum Part<'t> {
    Object { value: Value, written: &'t str },
    Text(&'t str),
}

/// Splits a string into JSON objects and the text between them.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    let mut tries = 0;
    while let Some(start) = text[at..]
        .find('{')
        .map(|offset| at + offset)
        .filter(|_| tries < MOST_OBJECTS)
    {
        tries += 1;
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        at = start + 1;
        if let Some(Ok(value)) = values.next() {
            parts.push(Part::Text(&text[from..start]));
            at = start + values.byte_offset();
            parts.push(Part::Object {
                value,
                written: &text[start..at],
            });
            from = at;
        }
    }
    parts.push(Part::Text(&text[from..]));
    parts
}

/// The maximum length, in bytes, of a string whose lines may have been wrapped by a terminal, even
/// within words.
const LONGEST_WRAPPED: usize = 4096;

/// Returns the strings that may contain a sentence: JSON strings, lines, the text without line
/// breaks (which may have been within words), and finally the whole text.
pub(super) fn candidates(text: &str) -> Vec<String> {
    let mut candidates = texts(text);
    if let Some(whole) = candidates.pop() {
        if whole.len() <= LONGEST_WRAPPED && whole.trim().contains('\n') {
            let words: Vec<&str> = whole.split_whitespace().collect();
            candidates.extend([unwrapped(&whole), words.join(" ")]);
        }
        candidates.push(whole);
    }
    candidates
}

/// Returns a text as one line. A terminal breaks a word only at the end of a full line. In a box,
/// each line begins and ends with a character that draws the frame.
fn unwrapped(text: &str) -> String {
    let width = text.lines().map(length).max().unwrap_or_default();
    let mut line = String::new();
    for part in text.lines() {
        let is_full = length(part) == width;
        let part = part.trim_matches(draws_frames);
        line.push_str(part.trim());
        if !is_full || part.ends_with(char::is_whitespace) {
            line.push(' ');
        }
    }
    line
}

/// Returns the number of characters in a line, without trailing spaces.
fn length(line: &str) -> usize {
    line.trim_end().chars().count()
}

/// Returns `true` for Unicode's box-drawing characters and block elements.
fn draws_frames(character: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&character)
}

/// Returns the strings in an answer: JSON strings, lines, and finally the whole text. Requests are
/// omitted, because text in a conversation is not a provider's answer.
fn texts(text: &str) -> Vec<String> {
    let (mut candidates, mut between) = (Vec::new(), String::new());
    for part in parts(text) {
        match part {
            Part::Object { value, written } => {
                strings(&value, 0, &mut candidates);
                // Some sentences contain an object.
                if !holds_request(&value) {
                    between.push_str(written);
                    candidates.push(written.to_owned());
                }
            }
            Part::Text(text) => between.push_str(text),
        }
    }
    candidates.extend(
        between
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned),
    );
    candidates.push(between);
    let mut known = HashSet::new();
    candidates.retain(|candidate| known.insert(candidate.trim().to_owned()));
    candidates
}

/// The maximum length, in bytes, of a message that is searched for phrases. Longer strings contain
/// more than one message.
const LONGEST_MESSAGE: usize = 600;

/// A message in an answer that is not JSON: a Python dictionary or object, or JSON that was cut off
/// or escaped. It begins and ends with the same kind of quote.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?sx) (?: ["'] (?:message|msg|detail|error|reason) \\* ["'] \s* : | (?-u:\b) (?:message|detail) = )
        \s* \\* (?: "(.+?)\\*" | '(.+?)\\*' ) \s* [,})\]]"#,
    )
});

/// An error of Google's SDK for Go: `Error 400, Message: …, Status: NAME, Details: []`.
static GO_ERROR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"Error [45]\d\d, Message: (.+?), Status: [A-Z_]*, Details:"));

/// The parameter that an answer specifies in addition to its message. OpenAI's library for .NET
/// writes it on its own line.
static PARAM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?m)["']param\\*["']\s*:\s*\\*["']([^"'\\]+)\\*["']|^\s*Parameter: (\S+)\s*$"#)
});

/// Returns the parameter that an answer specifies in addition to its message, such as
/// `input[3].action.type`.
fn param(text: &str) -> Option<String> {
    let found = PARAM.captures(text)?;
    let param = found.get(1).or(found.get(2))?.as_str().to_owned();
    // Some gateways repeat the message there, and Cerebras writes the kind of error.
    let is_place = param != "None" && !param.contains(char::is_whitespace);
    (is_place && !param.ends_with("_error")).then_some(param)
}

/// The location that pydantic or zod reports next to its message:
/// `'loc': ('body', 'messages', 0, 'content')`, `"path": ["messages", 0]`.
static LOC: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"["'](?:loc|path)\\*["']\s*:\s*\\*[(\[]([^()\[\]]*(?:\[[^\]]*\][^()\[\]]*)*)[)\]]"#)
});

/// The location that pydantic reports in an error's text, on the line before its message:
/// `tools.0.name\n  Field required [type=missing, …]`. If the first lines were joined, it follows the
/// name of the class.
static LOC_OF_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)
        (?: (?: \n | \\n ) [\ \t]* ([a-z_][\w.]*) (?: \n | \\n ) [\ \t]+
          | validation\ errors?\ for\ \w+ [\ \n] [\ \t]* ([a-z_][\w.]*) (?: \n | \\n | \ ) [\ \t]* )
        [A-Z] [^\n\[]* \[type=\w+,\ input_",
    )
});

/// The location that older versions of pydantic report in an error's text:
/// `body -> tools -> 0\n  field required (type=value_error.missing)`.
static LOC_WITH_ARROWS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:^|["'\n]|\\n)(?:body -> )?([a-z_]\w*(?: -> \w+)*)(?:\n|\\n)[ \t]+[^\n(]*\(type=\w"#,
    )
});

/// Returns the paths in the fields next to an answer's message: OpenAI's `param`, or else those of
/// pydantic's errors.
pub(super) fn fields(text: &str) -> Vec<String> {
    if let Some(path) = param(text) {
        return vec![path];
    }
    let paths = locs(text);
    if !paths.is_empty() {
        return paths;
    }
    let newer = LOC_OF_TEXT.captures_iter(text);
    let older = LOC_WITH_ARROWS.captures_iter(text);
    let found = newer.chain(older);
    let paths = found.filter_map(|it| it.get(1).or_else(|| it.get(2)));
    told_once(paths.map(|path| path.as_str().replace(" -> ", ".")))
}

/// Returns the path that pydantic's errors in an answer point to (`messages.0.content`), or several
/// fields at the top level of the body. Several paths into one value belong to alternatives of the
/// value's type, and the request needs to match only one alternative. Exceptions are paths to fields
/// that must not be present, and paths to one field of several elements.
fn locs(text: &str) -> Vec<String> {
    let paths = LOC.captures_iter(text).map(|it| path_of_loc(&it[1]));
    let paths = told_once(paths.filter(|path| path.contains(char::is_alphabetic)));
    let shapes = paths
        .iter()
        .map(|path| path.replace(|c: char| c.is_ascii_digit(), ""));
    let are_clear = told_once(shapes).len() < 2
        || text.contains("extra_forbidden")
        || !paths.iter().any(|path| path.contains('.'));
    if are_clear { paths } else { Vec::new() }
}

fn told_once(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    paths.filter(|path| known.insert(path.clone())).collect()
}

/// Returns the path of a location such as `'body', 'messages', 0, 'content'`. The names of
/// pydantic's own types are left out.
fn path_of_loc(place: &str) -> String {
    let steps = place
        .split(',')
        .map(|step| step.trim_matches(|c: char| c.is_whitespace() || "'\"\\".contains(c)))
        .skip_while(|step| *step == "body")
        .filter(|step| is_step(step));
    steps.collect::<Vec<_>>().join(".")
}

/// Returns `true` for the name of a member or an index, but not for the name of a type.
fn is_step(step: &str) -> bool {
    !step.is_empty()
        && !step.starts_with(char::is_uppercase)
        && step.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The beginning of a web page.
static PAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)<!doctype\s+html|<html[\s>]"));

/// Returns `true` if a string contains a web page.
pub(super) fn is_page(text: &str) -> bool {
    PAGE.is_match(text)
}

/// An HTML tag, with its attributes.
static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"</?[A-Za-z!][^<>]*>"));

/// The maximum number of lines of a pasted message without a status. A longer text may be about
/// anything.
const MOST_LINES: usize = 15;

/// Returns the strings that may be unknown messages: strings of an answer, or else the lines of a
/// string that has a status or is short.
pub(super) fn messages(text: &str, status: Option<u16>) -> Vec<String> {
    let text = &*without_headers(text);
    let mut messages = members(text);
    let is_short = text.trim().lines().count() <= MOST_LINES;
    if status.is_some() || !messages.is_empty() || is_short {
        messages.extend(texts(text));
    }
    messages
        .iter()
        .map(|message| TAG.replace_all(message, " ").trim().to_owned())
        .filter(|message| message.len() <= LONGEST_MESSAGE && !message.contains(['{', '\n']))
        .collect()
}

/// Returns the messages in an answer that is not JSON, each on one line, including those inside
/// other messages.
fn members(text: &str) -> Vec<String> {
    let of_go = GO_ERROR.captures_iter(text);
    let mut messages: Vec<String> = of_go.map(|found| found[1].to_owned()).collect();
    let mut from = 0;
    while let Some(found) = MEMBER.captures_at(text, from)
        && let Some(message) = found.get(1).or(found.get(2))
    {
        let lines = message.as_str().lines().map(str::trim);
        messages.push(lines.collect::<Vec<_>>().join(" "));
        // A message that contains an object continues there.
        from = match message.as_str().find('{') {
            Some(at) => message.start() + at,
            None => message.end(),
        };
    }
    messages
}

/// Returns `true` if a candidate ends where the whole text or a quoted part of it ends. Any other
/// line may have been wrapped in the middle of a sentence.
pub(super) fn is_ended(whole: &str, candidate: &str) -> bool {
    let candidate = candidate.trim();
    whole.find(candidate).is_none_or(|at| {
        let rest = whole[at + candidate.len()..].trim();
        rest.is_empty() || rest.starts_with(['"', '\'', '`'])
    })
}

/// A status after words that introduce one: `Error code: 400`, `HTTP/2 400`, `(status 400)`,
/// `错误码: 400`.
static NAMED_STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?ix)
        (?: (?-u:\b) (?: error | status | http )? [\ _-]? (?: code | status )
          | (?-u:\b) http (?: / [\d.]+ )?
          | (?-u:\b) api [\ _-]? error
          | 状态码 | 错误码 | 狀態碼 | 錯誤碼 | ステータスコード | エラーコード | (?:код|статус) [\ ] (?:ошибки|ответа) )
        ["'`]* (?: \s+ (?: is | was | of ) )?  [\s:：=(\["'`]* ([45]\d\d) (?-u:\b)"#,
    )
});

/// A number after a word such as `error`. It is not necessarily a status.
static NUMBERED_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?i)(?:error|failed)["'`]*[\s:：(\["'`]*([45]\d\d)(?-u:\b)(?:\s*$|\s*[^\s\w])"#)
});

/// A status after the name of an error class: `APIError: 400 the odd thing`.
static STATUS_OF_CLASS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?-u:\b)[A-Z]\w*(?:Error|Exception):\s+([45]\d\d)(?-u:\b)"));

/// A status before its meaning: `400 - Bad Request`.
static EXPLAINED_STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?ix) (?-u:\b) ([45]\d\d) ["'`]* \s* [-:(–—]* \s* ["'`]*
        (?: bad \s* request | unauthorized | payment \s* required | forbidden | not \s* found | request \s* timeout
          | too \s* many \s* requests | internal \s* server \s* error | bad \s* gateway | service \s* unavailable
          | gateway \s* timeout | client \s* error | server \s* error | unprocessable | status \s* code \s* \( )"#,
    )
});

/// A status at the beginning of the text, or in brackets before a message.
static LEADING_STATUS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*["'`]*([45]\d\d)["'`]*(?::|\s|$)|\[([45]\d\d)\]:"#));

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Returns the HTTP status in a string: at the beginning, or after the words that SDKs use to
/// introduce a status. Returns `None` if there are several. For example, if a proxy answers 500
/// because a server answered 400, the status does not show the reason.
pub(super) fn status(text: &str) -> Option<u16> {
    let mut all = statuses(text);
    let status = all.next()?;
    all.all(|other: u16| other == status).then_some(status)
}

/// The status of an answer in a log: of `httpx`, `OkHttp` and `curl -v`.
static LOGGED_STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?:"HTTP/[\d.]+ |(?m:^)<-- |(?m:^)< HTTP/[\d.]+ )([1-5]\d\d)(?-u:\b)"#)
});

/// Returns `true` if a part of a log shows the status of an accepted request, and none of a rejected
/// one.
pub(super) fn is_accepted(text: &str) -> bool {
    let mut statuses = LOGGED_STATUS.captures_iter(text).peekable();
    statuses.peek().is_some() && statuses.all(|status| status[1].starts_with(['1', '2', '3']))
}

/// Returns the statuses of errors in a string.
fn statuses(text: &str) -> impl Iterator<Item = u16> {
    let patterns = [
        &LEADING_STATUS,
        &NAMED_STATUS,
        &NUMBERED_ERROR,
        &STATUS_OF_CLASS,
        &EXPLAINED_STATUS,
    ];
    patterns
        .into_iter()
        .flat_map(|pattern| pattern.captures_iter(text))
        .flat_map(|found| found.iter().skip(1).flatten().collect::<Vec<_>>())
        .filter_map(|number| number.as_str().parse().ok())
}

/// The members in a request that contain its conversation.
const HISTORY: [&str; 3] = ["messages", "contents", "input"];

/// The members that identify an object as an answer, even if it repeats a part of the request. For
/// example, pydantic shows the rejected value as `input`, Cloudflare has `messages` next to its
/// errors, and `LiteLLM`'s logs have both in one record.
const OF_ANSWER: [&str; 7] = [
    "error",
    "errors",
    "success",
    "msg",
    "error_str",
    "error_information",
    "exception",
];

/// Returns `true` if an object contains a conversation, judging by its first members.
fn has_history(members: &serde_json::Map<String, Value>) -> bool {
    HISTORY
        .iter()
        .filter_map(|name| members.get(*name)?.as_array())
        .any(|history| !history.is_empty())
}

pub(super) fn is_answer(members: &serde_json::Map<String, Value>) -> bool {
    OF_ANSWER.iter().any(|name| members.contains_key(*name))
}

fn holds_request(value: &Value) -> bool {
    match value {
        Value::Object(members) => has_history(members) || members.values().any(holds_request),
        Value::Array(elements) => elements.iter().any(holds_request),
        Value::String(text) => text.contains('{') && objects(text).iter().any(holds_request),
        _ => false,
    }
}

/// Collects the strings in a value, including those in JSON inside strings.
fn strings(value: &Value, depth: usize, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            if depth < DEEPEST && text.contains('{') {
                objects(text)
                    .iter()
                    .for_each(|inner| strings(inner, depth + 1, found));
            }
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| strings(element, depth, found)),
        Value::Object(members) if has_history(members) && !is_answer(members) => {}
        Value::Object(members) => members
            .iter()
            .filter(|(name, member)| !(member.is_array() && HISTORY.contains(&name.as_str())))
            .for_each(|(_, member)| strings(member, depth, found)),
        _ => {}
    }
}

/// Returns the rejected requests in a capture: entries in a HAR file, or interactions in a
/// cassette. Returns an empty list for other documents.
pub(super) fn exchanges_of_capture(document: &mut Value) -> Vec<Exchange> {
    let place = ["/log/entries", "/interactions"]
        .into_iter()
        .find(|place| document.pointer(place).is_some());
    let entries = place
        .and_then(|place| document.pointer_mut(place))
        .and_then(Value::as_array_mut);
    let mut decoder = Decoder::default();
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| exchange(entry, &mut decoder))
        .collect()
}

fn exchange(entry: &mut Value, decoder: &mut Decoder) -> Option<Exchange> {
    let response = entry.get("response")?;
    let status = [response.get("status"), response.pointer("/status/code")];
    let status = status.into_iter().flatten().find_map(Value::as_i64)?;
    if status < 400 {
        return None;
    }
    cassette::settle(entry, decoder);
    let (request, response) = (entry.get("request")?, entry.get("response")?);
    Some(Exchange {
        answer: text(response, &["/content/text", "/body"])?,
        url: text(request, &["/url"]),
        request: text(request, &["/postData/text", "/body"]),
    })
}

fn text(value: &Value, places: &[&str]) -> Option<String> {
    places
        .iter()
        .find_map(|place| as_text(value.pointer(place)?))
}

/// Returns a string unchanged, and any other value as JSON; `None` for an empty value.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(_) | Value::Array(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_joined_as_terminals_break_them() {
        // A terminal breaks words at the end of full lines, but keeps short lines.
        assert_eq!(
            unwrapped("each message mu\nst have content"),
            "each message must have content"
        );
        assert_eq!(
            unwrapped("no\nmessages.3: is empty"),
            "no messages.3: is empty"
        );
        // Boxes pad their lines, and may draw a frame.
        assert_eq!(
            unwrapped("\u{2502} must be   \n\u{2502} greater   "),
            "must be greater "
        );
    }

    #[test]
    fn messages_and_parameters_of_libraries_are_found() {
        let python = "ChatCompletion(id=None, code=400, message=\"it is odd\", param=None)";
        assert_eq!(members(python), ["it is odd"]);
        let net = "HTTP 400 (invalid_request_error)\nParameter: messages[0].role\n\nIt is odd.";
        assert_eq!(fields(net), ["messages[0].role"]);
    }

    #[test]
    fn objects_of_a_dump_are_found() {
        let dump = "> POST /v1/messages\n{\"model\": \"m\"}\n< HTTP/1.1 400\n{\"error\": {\"message\": \"no\"}}\n";
        assert_eq!(
            objects(dump),
            [json!({"model": "m"}), json!({"error": {"message": "no"}})]
        );
        assert!(objects("{'error': {'message': 'no'}}").is_empty());
    }

    #[test]
    fn a_record_of_litellm_has_the_request_and_the_error() {
        let record = json!({
            "model": "gpt-4o", "messages": [{"role": "user", "content": "a question"}], "model_parameters": {"temperature": 3},
            "status": "failure", "error_str": "litellm.BadRequestError: no such thing",
        });
        let found = candidates(&record.to_string());
        assert!(found.iter().any(|it| it.contains("no such thing")));
        assert!(!found.iter().any(|it| it.contains("a question")));
    }

    #[test]
    fn an_answer_with_a_list_of_messages_is_no_request() {
        for answer in [
            json!({"success": false, "errors": [{"message": "no"}], "messages": []}),
            json!({"error": [{"message": "no"}], "messages": []}),
            json!({"detail": [{"msg": "no", "input": ["yes"]}]}),
            json!({"error": "no", "messages": [{"role": "user", "content": "yes"}]}),
        ] {
            let candidates = candidates(&answer.to_string());
            assert!(candidates.contains(&"no".to_owned()), "{answer}");
            assert!(!candidates.iter().any(|it| it.contains("yes")), "{answer}");
        }
        let request = json!({"messages": [{"role": "user", "content": "no"}]});
        assert!(candidates(&request.to_string()).iter().all(|it| it != "no"));
    }

    #[test]
    fn a_status_is_read_where_it_is_one() {
        for text in [
            "401 Authentication Failed",
            "Error code: 401 - {}",
            r#"{"error": {"code": 401}}"#,
            "API Error (401 {})",
            "Request failed with status code 401",
            "Error 401 Unauthorized",
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url",
            "HTTP/2 401",
            "the server answered with status=401",
            "401: no such key",
            "request failed: 401 Unauthorized (after 3 attempts)",
            "upstream said 401 - Unauthorized",
            "[401]: no such key",
            "请求失败，状态码: 401",
            "错误码401，无效的密钥",
            "HTTP/1.1 401 Unauthorized",
            "status_code: 401, message: no such key",
            "statusCode=401",
            "the request failed (status 401)",
            "no such key (status code: 401)",
            "Error [401] no such key",
            "HTTP status client error (401 Unauthorized)",
            "the response status is 401",
            "CAPIError: 401 2 validation errors",
            "401 status code (no body)",
            "HTTP 401: no such key",
        ] {
            assert_eq!(status(text), Some(401), "{text}");
        }
        let wrapped = r#"500 {"error":{"message":"API error 400: odd","code":500}}"#;
        assert_eq!(status(wrapped), None);
        assert_eq!(status("these are 401 tokens of code"), None);
        assert_eq!(status("Error: 401 tokens are too many"), None);
        assert_eq!(status("the error is in line 401"), None);
        assert_eq!(status(r#"{"code": 40100}"#), None);
    }

    #[test]
    fn the_place_that_pydantic_names_is_a_path() {
        for (text, expected) in [
            (
                "[{'loc': ('body', 'messages', 0, 'content'), 'msg': 'odd'}]",
                vec!["messages.0.content"],
            ),
            (
                r#"{"loc": ["body", "odd", "OddParam", "literal['a','b']", "type"]}"#,
                vec!["odd.type"],
            ),
            ("{'loc': ('body',)}", vec![]),
            (
                "{'loc': ('body', 'a')}, {'loc': ('body', 'b')}",
                vec!["a", "b"],
            ),
            (
                "{'loc': ('body', 'a', 'str')}, {'loc': ('body', 'a', 'list')}",
                vec![],
            ),
            (
                "{'type': 'extra_forbidden', 'loc': ('body', 'a', 0, 'b')}, {'loc': ('body', 'a', 0, 'c')}",
                vec!["a.0.b", "a.0.c"],
            ),
        ] {
            assert_eq!(locs(text), expected, "{text}");
        }
    }

    #[test]
    fn the_place_above_a_message_of_pydantic_is_a_path() {
        let text = "2 validation errors for Request\ntools.0.name\n  Field required [type=missing, input_value={}, input_type=dict]\n    \
                    For further information visit https://errors.pydantic.dev/2.7/v/missing\n\
                    odd\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]\n";
        for text in [text.to_owned(), text.replace('\n', "\\n")] {
            assert_eq!(fields(&text), ["tools.0.name", "odd"], "{text}");
        }
        let joined = "1 validation error for UserMessage odd Extra inputs are not permitted [type=extra_forbidden, input_value=1]";
        assert_eq!(fields(joined), ["odd"]);
        assert!(fields("a\nerror Validation failed [type=missing, input_value={}]").is_empty());
        let text = "{\"detail\": \"body -> odd\\n  Extra inputs are not permitted (type=extra_forbidden)\\n\
                    body -> tools -> 0\\n  field required (type=value_error.missing)\"}";
        assert_eq!(fields(text), ["odd", "tools.0"]);
    }

    #[test]
    fn a_message_is_read_from_an_answer_that_is_no_json() {
        for text in [
            r#"Error code: 400 - {'error': {'message': "it's odd", 'code': None}}"#,
            r#"400 {"error": {"message": "it's odd", "cod"#,
            r#"body="{\"error\":{\"message\":\"it's odd\",\"code\":1"#,
            "400 {\"error\": {\"message\":\"it's\n    odd\",\n    \"code\": 1",
            "400 {\"error\":{\"message\":\"from\n  a server: {\\\"error\\\":{\\\"message\\\":\\\"it's\n  odd\\\",\\\"code\\\":1}}",
        ] {
            assert_eq!(messages(text, None)[0], "it's odd", "{text}");
        }
        let text = "400 it's odd\nand more of it";
        assert_eq!(
            messages(text, Some(400)),
            ["400 it's odd", "and more of it"]
        );
        assert_eq!(
            messages("it's odd\nand more of it", None),
            ["it's odd", "and more of it"]
        );
        assert!(messages(&"a line\n".repeat(MOST_LINES + 1), None).is_empty());
        let page = "400 <meta charset=\"utf-8\"><p>it's odd</p>";
        assert_eq!(messages(page, Some(400)), ["400   it's odd"]);
    }

    #[test]
    fn refused_requests_of_captures() {
        let entry = |status: u16| {
            json!({"request": {"url": "https://a.example", "postData": {"text": "{}"}},
                   "response": {"status": status, "content": {"text": "no"}}})
        };
        let mut har = json!({"log": {"entries": [entry(200), entry(400)]}});
        let expected = Exchange {
            answer: "no".to_owned(),
            url: Some("https://a.example".to_owned()),
            request: Some("{}".to_owned()),
        };
        assert_eq!(exchanges_of_capture(&mut har), [expected]);
        let mut cassette = json!({"interactions": [
            {"request": {"uri": "u", "body": {"a": 1}}, "response": {"status": {"code": 422}, "body": {"string": "no"}}}
        ]});
        assert_eq!(
            exchanges_of_capture(&mut cassette)[0].request.as_deref(),
            Some("{\"a\":1}")
        );
    }
}
