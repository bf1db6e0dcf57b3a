//! Records of `LiteLLM`'s loggers: a request in OpenAI's form, whose settings and answer are next
//! to the messages.

use serde_json::{Map, Value};

use super::address::Endpoint;
use crate::json::Pointer;
use crate::provider::WireFormat;

/// The member with the body that a client sent to `LiteLLM`'s proxy.
pub(super) const PROXIED: &str = "proxy_server_request";

/// The members with the settings of a request.
const SETTINGS: [&str; 2] = ["model_parameters", "optional_params"];

/// The members in a record that belong to the request.
const OF_REQUEST: [&str; 4] = ["model", "messages", "input", "tools"];

/// Members that only a log has.
const OF_LOG: [&str; 7] = [
    "additional_args",
    "call_type",
    "litellm_call_id",
    "response",
    "error_str",
    "startTime",
    "status",
];

/// The settings of a record, which are members of the body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// The member of the record that contains the settings.
    member: &'static str,
    names: Vec<String>,
}

/// Returns the location of a value in a body at `at`; `settings` contains the members of the body
/// that are elsewhere in the record.
pub(crate) fn place(at: &Pointer, settings: Option<&Settings>, pointer: &Pointer) -> Pointer {
    let first = pointer.tokens().next();
    let settings = settings.filter(|it| first.is_some_and(|name| it.names.contains(&name)));
    match settings {
        Some(settings) => at.member(settings.member).join(pointer),
        None => at.join(pointer),
    }
}

/// Returns `true` if `LiteLLM` wrote an object to a log.
pub(crate) fn is_of_litellm(members: &Map<String, Value>) -> bool {
    members.contains_key("litellm_call_id") || proxied(members).is_some() || is_record(members)
}

/// Returns the body that a client sent to the proxy, if the record contains it.
pub(super) fn proxied(members: &Map<String, Value>) -> Option<&Value> {
    members.get(PROXIED).filter(|sent| match sent {
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => {
            let inner = text.trim_start().strip_prefix('{');
            inner.is_some_and(|inner| !inner.trim_start().starts_with('}'))
        }
        _ => false,
    })
}

/// Returns `true` if an object is a record with a request in its own members.
pub(super) fn is_record(members: &Map<String, Value>) -> bool {
    let has_settings = SETTINGS
        .iter()
        .any(|name| members.get(*name).is_some_and(Value::is_object));
    let has_history = ["messages", "input"]
        .iter()
        .any(|name| members.get(*name).is_some_and(Value::is_array));
    let is_logged = OF_LOG.iter().any(|name| members.contains_key(*name));
    has_history && has_settings && is_logged && proxied(members).is_none()
}

/// The request in a record.
pub(super) struct Recorded {
    pub(super) body: Map<String, Value>,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) settings: Option<Settings>,
}

/// Returns the request in a record: its members, and the settings next to them.
pub(super) fn request(mut members: Map<String, Value>) -> Recorded {
    let endpoint = members
        .get("call_type")
        .and_then(Value::as_str)
        .and_then(endpoint);
    let given = SETTINGS
        .iter()
        .find_map(|name| match members.remove(*name) {
            Some(Value::Object(settings)) if !settings.is_empty() => Some((*name, settings)),
            _ => None,
        });
    members.retain(|name, _| OF_REQUEST.contains(&name.as_str()));
    let settings = given.map(|(member, settings)| {
        let mut names = Vec::new();
        for (name, value) in settings {
            if !members.contains_key(&name) {
                names.push(name.clone());
                members.insert(name, value);
            }
        }
        Settings { member, names }
    });
    Recorded {
        body: members,
        endpoint,
        settings,
    }
}

/// Returns the endpoint for a kind of call, which is the name of a `LiteLLM` function, with the
/// prefix `a` if it is asynchronous.
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
        is_at_operator: false,
        model: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_members_of_a_record_count_as_absent() {
        let settings = json!({"temperature": 1});
        for (sent, model_parameters) in [
            (json!({}), json!({})),
            (json!("{}"), json!({})),
            (json!(" { }"), Value::Null),
            (Value::Null, Value::Null),
        ] {
            let record = json!({
                "call_type": "acompletion", "messages": [], "proxy_server_request": sent,
                "model_parameters": model_parameters, "optional_params": settings,
            });
            let members = record.as_object().expect("an object").clone();
            assert!(proxied(&members).is_none() && is_record(&members));
            let recorded = request(members);
            assert_eq!(recorded.body.get("temperature"), Some(&json!(1)));
        }
    }
}
