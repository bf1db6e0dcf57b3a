//! Writes an HTTP archive of requests that were not sent.

use serde_json::{Value, json};

use super::Request;

/// The placeholder for times in an archive, because nothing was sent.
const NO_TIME: &str = "1970-01-01T00:00:00.000Z";

/// Returns a log with an entry for each request, and with placeholders for keys.
pub(super) fn archive(requests: &[Request]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "reqc", "version": version},
        "entries": requests.iter().map(entry).collect::<Vec<_>>(),
    }})
}

fn entry(request: &Request) -> Value {
    json!({
        "startedDateTime": NO_TIME,
        "time": 0,
        "request": {
            "method": request.line.method,
            "url": request.line.url,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": request.line.headers.iter().map(|it| json!({"name": it.name, "value": it.value.to_string()})).collect::<Vec<_>>(),
            "queryString": [],
            "postData": {"mimeType": "application/json", "text": request.body},
            "headersSize": -1,
            "bodySize": request.body.len(),
        },
        "response": {
            "status": 0, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
            "content": {"size": 0, "mimeType": ""}, "redirectURL": "", "headersSize": -1, "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
        "comment": format!("{}, {}", request.agent, request.context),
    })
}
