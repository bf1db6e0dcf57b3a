//! Requests and their answers in logs and dumps, as SDKs, `curl` and exceptions print them.

use std::ops::Range;

use serde_json::Value;

use super::said::{Exchange, exchanges_of_capture, is_accepted, is_answer};
use super::{Basis, Dictionary};
use crate::json;
use crate::lint::{Unrecognised, cassette, excerpts, find, recognise};

/// A request in a log.
struct Request {
    /// `false` for other requests, such as those for embeddings. Their text is not an answer either.
    is_supported: bool,
    /// The value of the body.
    body: Value,
    /// The range of the body in the log.
    range: Range<usize>,
    url: Option<String>,
}

/// Returns the request bodies that a text contains, as JSON or as a program printed them.
pub fn requests(text: &str) -> Vec<Value> {
    let found = found(text).into_iter();
    found
        .filter(|request| request.is_supported)
        .map(|request| request.body)
        .collect()
}

/// Returns the rejected requests in a text: in a HAR file, in a cassette, or in the log of a program.
/// If a log does not say why its only request was rejected, the whole log is the answer. Returns an
/// empty list for other JSON, and for text without a request.
pub fn exchanges(text: &str) -> Vec<Exchange> {
    match serde_json::from_str(text) {
        Ok(mut document) => exchanges_of_capture(&mut document),
        Err(_) => exchanges_of_cassette(text).unwrap_or_else(|| exchanges_of_log(text)),
    }
}

/// Returns the rejected requests in a cassette in YAML; `None` if there are none.
fn exchanges_of_cassette(text: &str) -> Option<Vec<Exchange>> {
    let found = exchanges_of_capture(&mut cassette::document(text)?);
    (!found.is_empty()).then_some(found)
}

/// Returns the requests in a log that were rejected, each with the text of its answer: the text up
/// to the next request or, if the log shows messages before bodies, the text from the previous
/// request on. If no text says why a request was rejected, returns the whole log as one answer, with
/// the request if there is only one.
fn exchanges_of_log(text: &str) -> Vec<Exchange> {
    let requests = found(text);
    let bounds = requests.iter().map(|request| request.range.clone());
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(bounds.clone().map(|it| it.end))
        .collect();
    let ends: Vec<usize> = bounds.map(|it| it.start).chain([text.len()]).collect();
    let gaps: Vec<&str> = starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| text.get(start..end).unwrap_or_default())
        .collect();
    let line = gaps[0].rsplit('\n').next().unwrap_or_default();
    let is_only_before = requests.len() == 1 && says_why(gaps[0]) && !says_why(gaps[1]);
    let are_messages_first = is_only_before || says_why(line);
    let answers = match are_messages_first {
        true => &gaps[..],
        false => &gaps[1..],
    };
    let rejected: Vec<Exchange> = requests
        .iter()
        .zip(answers)
        .filter(|(request, answer)| request.is_supported && says_why(answer))
        .map(|(request, answer)| request.with_answer((*answer).to_owned()))
        .collect();
    if !rejected.is_empty() {
        return rejected;
    }
    let whole = gaps.join("{}");
    match requests.as_slice() {
        [] => Vec::new(),
        [request] if request.is_supported => vec![request.with_answer(whole)],
        _ => vec![Exchange::of_answer(whole)],
    }
}

/// Returns `true` if a part of a log contains a known message that says why a request was rejected,
/// and does not show that the request was accepted.
fn says_why(text: &str) -> bool {
    if is_accepted(text) {
        return false;
    }
    let explained = Dictionary::bundled().explain(text);
    explained
        .iter()
        .any(|it| it.basis == Basis::Sentence && !it.refusal.wraps && !it.provider.is_general())
}

impl Request {
    fn with_answer(&self, answer: String) -> Exchange {
        Exchange {
            answer,
            url: self.url.clone(),
            request: serde_json::to_string_pretty(&self.body).ok(),
        }
    }
}

fn found(text: &str) -> Vec<Request> {
    let mut requests = Vec::new();
    for excerpt in excerpts(text).flatten() {
        let Ok(document) = json::parse(&excerpt.json) else {
            continue;
        };
        let bodies = find(document, None).bodies;
        let tree = match bodies.is_empty() {
            true => None,
            false => json::parse_tree(&excerpt.json).ok(),
        };
        for body in bodies {
            let is_wanted = is_request(&body.value);
            let at = body.string.as_ref().unwrap_or(&body.at);
            let value = tree.as_ref().and_then(|tree| tree.locate(at));
            if let Some(value) = value.filter(|_| is_wanted) {
                requests.push(Request {
                    is_supported: recognise(&body.value) != Err(Unrecognised::NoBody),
                    body: body.value,
                    range: excerpt.to_text(value.span.clone()),
                    url: excerpt.url.clone(),
                });
            }
        }
    }
    requests
}

/// Returns `true` for a body with a conversation. Returns `false` for an answer that repeats part
/// of the conversation, and for a tool call, whose `input` may be a string, too.
pub(crate) fn is_request(value: &Value) -> bool {
    let history = ["messages", "contents", "input"]
        .into_iter()
        .find_map(|name| value.get(name));
    let is_call = value.get("input").is_some_and(Value::is_string) && value.get("model").is_none();
    history.is_some_and(|history| history.is_array() || history.is_string())
        && !is_call
        && !value.as_object().is_some_and(is_answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NO: &str = "Error code: 400 - {'error': {'message': \"Invalid value: 'usr'. Supported values are: 'a'.\"}}";
    const OTHER: &str = "Error code: 400 - {'error': {'message': \"Unknown parameter: 'odd'.\"}}";

    fn body(text: &str) -> String {
        format!("{{'messages': [{{'role': 'user', 'content': '{text}'}}], 'model': 'm'}}")
    }

    /// Returns the content of the first message of each request, and whether its answer contains
    /// the first or the second message.
    fn told(log: &str) -> Vec<(String, bool, bool)> {
        let content = |exchange: &Exchange| {
            let request: Value =
                serde_json::from_str(exchange.request.as_deref().unwrap_or("{}")).expect("JSON");
            request["messages"][0]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        exchanges_of_log(log)
            .iter()
            .map(|it| {
                (
                    content(it),
                    it.answer.contains("usr"),
                    it.answer.contains("odd"),
                )
            })
            .collect()
    }

    #[test]
    fn a_debug_log_has_the_request_and_its_answer() {
        let log = format!(
            "DEBUG:openai._base_client:Request options: {{'method': 'post', 'url': '/chat/completions', 'json_data': {}}}\n\
             INFO:httpx:HTTP Request: POST https://api.openai.com/v1/chat/completions \"HTTP/1.1 400 Bad Request\"\n\
             openai.BadRequestError: {NO}\n",
            body("Error code: 500")
        );
        let exchange = exchanges_of_log(&log).remove(0);
        assert_eq!(
            exchange.url.as_deref(),
            Some("https://api.openai.com/v1/chat/completions")
        );
        assert!(!exchange.answer.contains("500") && exchange.answer.contains("'message': "));
        let body: Value = serde_json::from_str(&exchange.request.expect("a body")).expect("JSON");
        assert_eq!(
            body,
            json!({"messages": [{"role": "user", "content": "Error code: 500"}], "model": "m"})
        );
    }

    #[test]
    fn each_message_belongs_to_its_request() {
        let (a, b, c) = (body("a"), body("b"), body("c"));
        let ok = "HTTP Request: POST https://h/v1 \"HTTP/1.1 200 OK\"\n";
        let found = |content: &str, usr: bool, odd: bool| (content.to_owned(), usr, odd);
        // Of several requests, those that were rejected.
        assert_eq!(
            told(&format!("{a}\n{ok}{b}\n{NO}\n{c}\n{ok}")),
            [found("b", true, false)]
        );
        // Messages before their bodies, as in `print(error, error.request.content)`.
        assert_eq!(
            told(&format!("{NO} {a}\n{OTHER} {b}\n")),
            [found("a", true, false), found("b", false, true)]
        );
        assert_eq!(
            told(&format!("{NO} {a}\n{OTHER} {b}\nTraceback:\n{OTHER}\n")),
            [found("a", true, false), found("b", false, true)]
        );
        assert_eq!(told(&format!("{NO} {a}\n")), [found("a", true, false)]);
        // Text from the model is not an answer from the provider.
        assert_eq!(
            told(&format!(
                "{a}\n{ok}{{'choices': [{{'message': {{'content': \"{NO}\"}}}}]}}\n{b}\n{OTHER}"
            )),
            [found("b", false, true)]
        );
        // A message before several bodies, and an unknown message, may belong to any of the bodies.
        assert_eq!(told(&format!("{NO}\n{a}\n{b}\n")), [found("", true, false)]);
        assert_eq!(
            told(&format!("{a}\n{b}\nit is quite odd")),
            [found("", false, true)]
        );
        assert_eq!(
            told(&format!("{a}\nit is quite odd")),
            [found("a", false, true)]
        );
        // Several bodies in one object.
        let batch = format!(
            "INFO {{'requests': [{{'custom_id': 'a', 'body': {a}}}, {{'custom_id': 'b', 'body': {b}}}]}}\n{NO}"
        );
        assert_eq!(told(&batch), [found("b", true, false)]);
        assert!(told("nothing").is_empty());
    }
}
