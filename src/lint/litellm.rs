//! Records of `LiteLLM`'s loggers: a request in OpenAI's form, whose settings and answer are beside
//! the messages.

use serde_json::{Map, Value};

use super::address::Endpoint;
use crate::provider::WireFormat;

/// The member with the body that a client sent to `LiteLLM`'s proxy.
pub(super) const PROXIED: &str = "proxy_server_request";

/// The members with the settings of a request.
const SETTINGS: [&str; 2] = ["model_parameters", "optional_params"];

/// The members of a record that belong to the request.
const OF_REQUEST: [&str; 4] = ["model", "messages", "input", "tools"];

/// Returns `true` if an object is a record with a request.
pub(super) fn is_record(members: &Map<String, Value>) -> bool {
    let has_settings = SETTINGS
        .iter()
        .any(|name| members.get(*name).is_some_and(Value::is_object));
    let has_history = ["messages", "input"]
        .iter()
        .any(|name| members.get(*name).is_some_and(Value::is_array));
    has_history && has_settings
}

/// Returns the request of a record: its members, and the settings beside them. They keep their
/// places, except for the settings.
pub(super) fn request(mut members: Map<String, Value>) -> (Map<String, Value>, Option<Endpoint>) {
    let endpoint = members
        .get("call_type")
        .and_then(Value::as_str)
        .and_then(endpoint);
    let settings = SETTINGS
        .iter()
        .find_map(|name| match members.remove(*name) {
            Some(Value::Object(settings)) => Some(settings),
            _ => None,
        })
        .unwrap_or_default();
    members.retain(|name, _| OF_REQUEST.contains(&name.as_str()));
    for (name, value) in settings {
        members.entry(name).or_insert(value);
    }
    (members, endpoint)
}

/// Returns the endpoint of a kind of call: a function of `LiteLLM`, with or without `a` for the
/// asynchronous one.
fn endpoint(call: &str) -> Option<Endpoint> {
    let wire = match call {
        "completion" | "acompletion" => WireFormat::OpenAiChat,
        "responses" | "aresponses" => WireFormat::OpenAiResponses,
        "anthropic_messages" => WireFormat::AnthropicMessages,
        _ => return None,
    };
    Some(Endpoint {
        wire,
        host: String::new(),
        port: None,
        server: None,
        model: None,
    })
}
