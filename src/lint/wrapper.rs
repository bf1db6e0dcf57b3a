//! Objects that wrap a body, recognised by their members.

use serde_json::{Map, Value};

use super::litellm::{PROXIED, proxied};

/// The members that contain a body in batches (`body`, `params`, and xAI's), logs and captures.
const WRAPPERS: [&str; 21] = [
    PROXIED,
    "body",
    "params",
    "request",
    "postData",
    "text",
    "request_body",
    "requestBody",
    // Cloudflare's.
    "RequestBody",
    // Bedrock's, under `input`.
    "inputBodyJson",
    // The OpenAI and Anthropic SDKs' debug logs.
    "json_data",
    // The errors of Vercel's AI SDK.
    "requestBodyValues",
    "json",
    "payload",
    "data",
    "input",
    "batch_request",
    "chat_get_completion",
    "responses",
    COUNTED[0],
    COUNTED[1],
];

/// The member of Gemini's `countTokens` that contains the request to count, in both spellings.
pub(super) const COUNTED: [&str; 2] = ["generateContentRequest", "generate_content_request"];

/// Returns the name of the member that may contain the body; `None` if no member may.
pub(super) fn wrapper(members: &Map<String, Value>) -> Option<&'static str> {
    WRAPPERS.into_iter().find(|name| match members.get(*name) {
        Some(_) if *name == PROXIED => proxied(members).is_some(),
        Some(Value::Object(_)) => true,
        Some(Value::String(text)) => text.trim_start().starts_with('{'),
        _ => false,
    })
}
