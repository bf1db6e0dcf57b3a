//! Requests and their answers in logs and dumps, as SDKs, `curl` and exceptions print them.

use std::ops::Range;

use serde_json::Value;

use super::said::{Exchange, is_refused};
use super::{Basis, Dictionary};
use crate::json;
use crate::lint::{Excerpt, FoundBody, excerpts, find, recognise};

/// A request in a log.
struct Request {
    /// The value of the body.
    body: Value,
    /// The object that contains the body.
    excerpt: Range<usize>,
    /// The body.
    range: Range<usize>,
    url: Option<String>,
}

/// Returns the request bodies that a text contains, as JSON or as a program printed them.
pub fn requests(text: &str) -> Vec<Value> {
    found(text)
        .into_iter()
        .map(|request| request.body)
        .collect()
}

/// Returns the requests in a log, each with the text up to the next request. If there are several,
/// returns those that were rejected, as far as that is known.
pub fn exchanges_of_log(text: &str) -> Vec<Exchange> {
    let requests = found(text);
    if let [request] = requests.as_slice() {
        let after = request.with_answer(text, request.excerpt.start..text.len());
        return match says_why(&after.answer) {
            true => vec![after],
            false => vec![request.with_answer(text, 0..text.len())],
        };
    }
    let starts = requests.iter().map(|request| request.excerpt.start);
    let ends = starts.skip(1).chain([text.len()]);
    let mut exchanges: Vec<Exchange> = requests
        .iter()
        .zip(ends)
        .map(|(request, end)| request.with_answer(text, request.excerpt.start..end))
        .collect();
    if exchanges.iter().any(|it| is_refused(&it.answer)) {
        exchanges.retain(|it| is_refused(&it.answer));
        exchanges
    } else {
        exchanges.pop().into_iter().collect()
    }
}

/// Returns `true` if a part of a log contains a known message that says why a request was rejected.
fn says_why(text: &str) -> bool {
    let explained = Dictionary::bundled().explain(text);
    explained
        .iter()
        .any(|it| it.basis == Basis::Sentence && !it.refusal.wraps && !it.provider.is_general())
}

impl Request {
    /// Returns the request with a part of the log as its answer. The text of the conversation is
    /// not part of the answer.
    fn with_answer(&self, text: &str, part: Range<usize>) -> Exchange {
        let (before, after) = (part.start..self.range.start, self.range.end..part.end);
        Exchange {
            answer: format!("{}{{}}{}", &text[before], &text[after]),
            url: self.url.clone(),
            request: serde_json::to_string_pretty(&self.body).ok(),
        }
    }
}

fn found(text: &str) -> Vec<Request> {
    let mut requests = Vec::new();
    for excerpt in excerpts(text) {
        let Ok(document) = json::parse(&excerpt.json) else {
            continue;
        };
        for body in find(document, None).bodies {
            let is_sent = is_request(&body.value) || is_likely_request(&body.value);
            let Some(range) = range_of(&body, &excerpt).filter(|_| is_sent) else {
                continue;
            };
            requests.push(Request {
                range,
                body: body.value,
                excerpt: excerpt.range.clone(),
                url: excerpt.url.clone(),
            });
        }
    }
    requests
}

/// Returns the range of a body in the text that contains its excerpt.
fn range_of(body: &FoundBody, excerpt: &Excerpt) -> Option<Range<usize>> {
    let tree = json::parse_tree(&excerpt.json).ok()?;
    let value = tree.locate(body.string.as_ref().unwrap_or(&body.at))?;
    Some(excerpt.to_text(value.span.clone()))
}

/// Returns `true` for a body with a conversation.
pub fn is_request(value: &Value) -> bool {
    has_history(value) && recognise(value).is_ok()
}

/// Returns `true` for a request whose wire format its shape does not determine.
fn is_likely_request(value: &Value) -> bool {
    has_history(value) && value.get("model").is_some()
}

/// Returns `true` if an object has the member that contains the conversation in a request.
pub fn has_history(value: &Value) -> bool {
    let history = ["messages", "contents", "input"]
        .into_iter()
        .find_map(|name| value.get(name));
    history.is_some_and(|history| history.is_array() || history.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_debug_log_has_the_request_and_its_answer() {
        let log = "DEBUG:openai._base_client:Request options: {'method': 'post', 'url': '/chat/completions', 'json_data': {'messages': \
            [{'role': 'user', 'content': 'Error code: 500'}], 'model': 'm'}}\n\
            INFO:httpx:HTTP Request: POST https://api.openai.com/v1/chat/completions \"HTTP/1.1 400 Bad Request\"\n\
            openai.BadRequestError: Error code: 400 - {'error': {'message': 'no'}}\n";
        let exchange = exchanges_of_log(log).remove(0);
        assert_eq!(
            exchange.url.as_deref(),
            Some("https://api.openai.com/v1/chat/completions")
        );
        assert!(!exchange.answer.contains("500") && exchange.answer.contains("'message': 'no'"));
        let body: Value = serde_json::from_str(&exchange.request.expect("a body")).expect("JSON");
        assert_eq!(
            body,
            json!({"messages": [{"role": "user", "content": "Error code: 500"}], "model": "m"})
        );
    }

    #[test]
    fn of_several_requests_those_that_were_rejected_are_returned() {
        let one = |text: &str, status: u16| {
            format!(
                "Request options: {{'json_data': {{'messages': [{{'role': 'user', 'content': '{text}'}}], 'model': 'm'}}}}\n\
                 HTTP Request: POST https://h/v1 \"HTTP/1.1 {status} OK\"\n"
            )
        };
        let log = [one("a", 200), one("b", 400), one("c", 200)].concat();
        let found = exchanges_of_log(&log);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .request
                .as_ref()
                .is_some_and(|it| it.contains("\"b\""))
        );
        assert!(exchanges_of_log("nothing").is_empty());
    }
}
