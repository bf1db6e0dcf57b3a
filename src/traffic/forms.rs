//! The formats of logs. Finds the requests in a document, each with the data next to it. Also
//! recognises transcripts, in which an agent records the conversation rather than the requests.

mod spans;
pub(super) mod transcript;

use serde_json::{Map, Value, json};

use super::sent::Answer;
use super::usage;
use crate::json::rewritten;
use crate::lint::{Content, Decoder, Endpoint, FoundBody, cassette, content, find, is_of_litellm};
use crate::provider::{ApiHeaders, WireFormat};

/// A request body in a log, with the data next to it.
pub(super) struct Logged {
    pub(super) body: Value,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) headers: ApiHeaders,
    pub(super) answer: Answer,
    pub(super) time: Option<i64>,
    pub(super) form: &'static str,
    /// `true` if the log stores the conversation in its own format, from which the body was
    /// built.
    pub(super) is_converted: bool,
}

/// A document that contains one request, with its format.
struct Unit {
    document: Value,
    form: &'static str,
    is_converted: bool,
}

/// Returns the document on a line of a log; `None` if the line contains none.
pub(super) fn of_line(line: &str) -> Option<Result<Value, serde_json::Error>> {
    if let Some(options) = options(line) {
        return Some(Ok(options));
    }
    match content(line) {
        Content::Document => Some(serde_json::from_str(
            line.trim_start_matches('\u{feff}').trim(),
        )),
        Content::DocumentFrom(at) => Some(serde_json::from_str(line[at..].trim())),
        Content::Text => None,
    }
}

/// Returns the request options in a line of the OpenAI and Anthropic SDKs' debug logs, which is a
/// Python dictionary: `Request options: {'method': 'post', 'json_data': {…}}`. Returns `None` if
/// there are none.
///
/// Source: `openai/openai-python`, `src/openai/_base_client.py`
/// (`log.debug("Request options: %s", …)`). The Anthropic SDK writes the same.
fn options(line: &str) -> Option<Value> {
    const MARK: &str = "Request options: ";
    let start = line.find(MARK)? + MARK.len();
    let options = rewritten(line, start).ok()?;
    serde_json::from_str(&options.json).ok()
}

/// Returns the requests in a document.
pub(super) fn requests(document: Value, wire: Option<WireFormat>) -> Vec<Logged> {
    let mut units = Vec::new();
    split(document, &mut Decoder::default(), &mut units);
    units
        .into_iter()
        .flat_map(|unit| logged(unit, wire))
        .collect()
}

/// Splits a document into list elements, capture entries, cassette interactions, and spans.
fn split(document: Value, decoder: &mut Decoder, units: &mut Vec<Unit>) {
    match document {
        Value::Array(elements) => elements
            .into_iter()
            .for_each(|element| split(element, decoder, units)),
        Value::Object(mut members) => {
            if let Some(Value::Array(entries)) = members
                .get_mut("log")
                .and_then(|log| log.get_mut("entries"))
                .map(Value::take)
            {
                units.extend(entries.into_iter().map(|it| entry(it, decoder)));
            } else if let Some(Value::Array(interactions)) =
                members.get_mut("interactions").map(Value::take)
            {
                units.extend(interactions.into_iter().map(|mut interaction| {
                    cassette::settle(&mut interaction, decoder);
                    plain(interaction, "VCR cassette")
                }));
            } else if let Some(spans) = spans::of(&mut members) {
                units.extend(spans);
            } else {
                units.push(object(members));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn plain(document: Value, form: &'static str) -> Unit {
    Unit {
        document,
        form,
        is_converted: false,
    }
}

/// Returns an entry of a capture without splitting it further, because most entries are not
/// requests to a model.
fn entry(mut entry: Value, decoder: &mut Decoder) -> Unit {
    decoder.decode_exchange(&mut entry);
    let answer = entry.get_mut("response").map(Value::take);
    let started = entry.get("startedDateTime").cloned();
    let document =
        json!({"log": {"entries": [entry]}, "response": answer, "startedDateTime": started});
    plain(document, "HAR")
}

/// Returns an object that contains one request, in the format of a known program or in any other
/// format.
fn object(members: Map<String, Value>) -> Unit {
    if is_of_litellm(&members) {
        return plain(Value::Object(members), "LiteLLM log");
    }
    if members.get("type").is_some_and(|kind| kind == "GENERATION") && members.contains_key("input")
    {
        return of_langfuse(members);
    }
    if ["request_body", "helicone_metadata"]
        .iter()
        .any(|name| members.contains_key(*name))
        && members.contains_key("response_body")
    {
        return plain(Value::Object(members), "Helicone export");
    }
    if members.contains_key("scope") && members.contains_key("path") && members.contains_key("body")
    {
        return plain(Value::Object(members), "nock cassette");
    }
    if members.contains_key("logged_at") && members.contains_key("request") {
        return plain(Value::Object(members), "claude-trace log");
    }
    if members.contains_key("json_data") {
        return plain(Value::Object(members), "SDK debug log");
    }
    plain(Value::Object(members), "bodies")
}

/// Converts a Langfuse generation, whose `input` is a list of messages or an object that contains
/// one.
fn of_langfuse(mut members: Map<String, Value>) -> Unit {
    let input = members.remove("input").unwrap_or_default();
    let input = match input {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    let mut body = match input {
        Value::Object(body) => body,
        messages => Map::from_iter([("messages".to_owned(), messages)]),
    };
    if let Some(model) = members.get("model").filter(|model| model.is_string()) {
        body.entry("model").or_insert(model.clone());
    }
    members.insert("body".to_owned(), Value::Object(body));
    let usage = ["usageDetails", "usage"]
        .into_iter()
        .find_map(|name| members.remove(name));
    members.insert("output".to_owned(), json!({"usage": usage}));
    Unit {
        document: Value::Object(members),
        form: "Langfuse export",
        is_converted: true,
    }
}

/// The names of the members that are next to a request and contain its answer.
const ANSWERS: [&str; 9] = [
    "response",
    "response_body",
    "responseBody",
    "response_data",
    "output",
    "answer",
    "reply",
    "res",
    "usage",
];

/// The names of the members that contain a request's time. They are next to the request or in it.
const TIMES: [&str; 11] = [
    "startedDateTime",
    "timestamp",
    "time",
    "ts",
    "startTime",
    "start_time",
    "created_at",
    "request_created_at",
    "recorded_at",
    "started_at",
    "logged_at",
];

fn logged(unit: Unit, wire: Option<WireFormat>) -> Vec<Logged> {
    let Unit {
        mut document,
        form,
        is_converted,
    } = unit;
    let Value::Object(members) = &mut document else {
        return Vec::new();
    };
    let time = time_of(members);
    let mut answer = Answer::default();
    let mut code = STATUSES
        .into_iter()
        .find_map(|at| status(at_in(members, at)?));
    for name in ANSWERS {
        if let Some(value) = members.remove(name) {
            let own = STATUSES
                .into_iter()
                .find_map(|at| status(value.pointer(at)?));
            code = own.or(code);
            let value = if name == "usage" {
                json!({"usage": value})
            } else {
                value
            };
            answer = merged(answer, usage::answer(&value));
        }
    }
    let answer = with_status(answer, code);
    let found = find(document, wire).bodies;
    // A request that only counts tokens is not part of a conversation.
    found
        .into_iter()
        .filter(|found| !found.headers.counts_tokens())
        .map(|found| of_found(found, form, is_converted, &answer, time))
        .collect()
}

/// The pointers to the HTTP status, in an answer or next to it, in the formats of HAR, nock,
/// `vcrpy`, `go-vcr`, and others.
const STATUSES: [&str; 7] = [
    "/status",
    "/status/code",
    "/status_code",
    "/statusCode",
    "/response_status",
    "/responseStatus",
    "/code",
];

/// Returns the value at a JSON pointer in an object.
fn at_in<'m>(members: &'m Map<String, Value>, at: &str) -> Option<&'m Value> {
    let (name, rest) = at[1..].split_once('/').unwrap_or((&at[1..], ""));
    let value = members.get(name)?;
    if rest.is_empty() {
        return Some(value);
    }
    value.get(rest)
}

/// Reads an HTTP status: a number, or text such as `200 OK`.
fn status(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.get(..3)?.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|status| (100..600).contains(status))
}

/// Records whether the provider accepted the request, according to the HTTP status: a status below
/// 300 means that it did, and a status of 400 or more that it did not.
fn with_status(answer: Answer, status: Option<u64>) -> Answer {
    match status {
        Some(200..300) => Answer {
            is_answered: true,
            ..answer
        },
        Some(status @ 400..) => Answer {
            refusal: answer.refusal.or_else(|| Some(format!("status {status}"))),
            ..answer
        },
        Some(_) | None => answer,
    }
}

fn of_found(
    found: FoundBody,
    form: &'static str,
    is_converted: bool,
    answer: &Answer,
    time: Option<i64>,
) -> Logged {
    let FoundBody {
        value: body,
        endpoint,
        headers,
        ..
    } = found;
    Logged {
        body,
        endpoint,
        headers,
        answer: answer.clone(),
        time,
        form,
        is_converted,
    }
}

fn time_of(members: &Map<String, Value>) -> Option<i64> {
    let of = |members: &Map<String, Value>| {
        TIMES
            .into_iter()
            .find_map(|name| usage::time(members.get(name)?))
    };
    of(members).or_else(|| of(members.get("request")?.as_object()?))
}

fn merged(one: Answer, other: Answer) -> Answer {
    let with_usage = if one.usage.is_some() { &one } else { &other };
    Answer {
        usage: with_usage.usage,
        tells_cache: with_usage.tells_cache,
        hour_written: with_usage.hour_written,
        is_signed: one.is_signed || other.is_signed,
        is_answered: one.is_answered || other.is_answered,
        refusal: one.refusal.or(other.refusal),
    }
}
