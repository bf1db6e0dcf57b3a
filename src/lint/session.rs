//! Recognises the session files of agents: a document, or one line of many.

use serde_json::{Map, Value};

/// The agents whose session files are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
    GeminiCli,
    OpenCode,
    /// A list of messages.
    Messages,
}

impl Agent {
    /// Returns the agent that wrote a document or, for a line, the file to which the line belongs.
    pub(crate) fn of(document: &Value) -> Option<Agent> {
        match document {
            Value::Array(elements) => Agent::of_list(elements),
            Value::Object(members) => Agent::of_object(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }

    /// Returns the agent that wrote a list.
    pub(super) fn of_list(elements: &[Value]) -> Option<Agent> {
        are_messages(elements).then_some(Agent::Messages)
    }

    /// Returns the agent that wrote an object or, if the object is a line, the file to which the
    /// line belongs.
    pub(super) fn of_object(document: &Map<String, Value>) -> Option<Agent> {
        if document.contains_key("uuid")
            && document.contains_key("sessionId")
            && (document.contains_key("message") || document.contains_key("parentUuid"))
        {
            return Some(Agent::ClaudeCode);
        }
        let kind = document.get("type").and_then(Value::as_str);
        if matches!(
            kind,
            Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted")
        ) && document.contains_key("payload")
        {
            return Some(Agent::Codex);
        }
        if document.contains_key("sessionId")
            && list(document, "messages").is_some_and(|messages| messages.iter().any(is_of_gemini))
        {
            return Some(Agent::GeminiCli);
        }
        let has_info =
            document.get("info").is_some_and(Value::is_object) && !document.contains_key("model");
        if has_info
            && list(document, "messages")
                .is_some_and(|messages| messages.iter().any(is_of_open_code))
        {
            return Some(Agent::OpenCode);
        }
        let is_trajectory = has_info
            && (list(document, "messages").or(list(document, "history")))
                .is_some_and(|it| are_messages(it));
        is_trajectory.then_some(Agent::Messages)
    }

    /// Returns the name of the format for reports.
    pub(crate) fn form(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "Claude Code session",
            Agent::Codex => "Codex CLI rollout",
            Agent::GeminiCli => "Gemini CLI chat",
            Agent::OpenCode => "OpenCode export",
            Agent::Messages => "list of messages",
        }
    }
}

fn list<'v>(document: &'v Map<String, Value>, name: &str) -> Option<&'v Vec<Value>> {
    document.get(name).and_then(Value::as_array)
}

fn is_of_gemini(message: &Value) -> bool {
    message
        .get("type")
        .is_some_and(|kind| kind == "gemini" || kind == "user")
        && message.get("content").is_some()
}

fn is_of_open_code(message: &Value) -> bool {
    message.pointer("/info/role").is_some_and(Value::is_string)
        && message.get("parts").is_some_and(Value::is_array)
}

fn are_messages(elements: &[Value]) -> bool {
    !elements.is_empty() && elements.iter().take(8).all(is_message)
}

fn is_message(element: &Value) -> bool {
    element.get("role").is_some_and(Value::is_string) && element.get("content").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn agents_are_known_by_the_members_of_their_files() {
        let said = json!([{"role": "user", "content": "a"}]);
        for (document, expected) in [
            (
                json!({"uuid": "a", "sessionId": "b", "message": {}}),
                Some(Agent::ClaudeCode),
            ),
            (json!({"info": {}, "messages": said}), Some(Agent::Messages)),
            (
                json!({"info": {}, "messages": [{"info": {"role": "user"}, "parts": []}]}),
                Some(Agent::OpenCode),
            ),
            (json!({"model": "m", "messages": said, "info": {}}), None),
        ] {
            assert_eq!(Agent::of(&document), expected, "{document}");
        }
    }
}
