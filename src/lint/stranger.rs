//! Values that are found in place of a request body, and what to do with them.

use serde_json::{Map, Value};

use super::session::Agent;

/// The kind of a value that is not a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// A session file of an agent, or a line of one.
    Session(Agent),
    /// A log's record of a call, in the log's own form.
    Record,
    /// One message of a conversation.
    Message,
    /// A model answer.
    Answer,
    /// An answer that rejects a request.
    Refusal,
    /// A string that contains an object.
    Encoded,
    /// Anything else.
    Unknown,
}

impl Stranger {
    /// Returns the kind of an object that is neither a body nor part of a session file.
    pub(super) fn of(members: &Map<String, Value>) -> Stranger {
        let is_answer = members.contains_key("choices")
            || members.contains_key("candidates")
            || matches!(
                text(members, "object"),
                Some("response" | "chat.completion" | "chat.completion.chunk" | "text_completion")
            )
            || text(members, "role") == Some("assistant")
                && (members.contains_key("stop_reason") || members.contains_key("usage"))
            || members.contains_key("done")
                && (members.contains_key("message") || members.contains_key("response"));
        if is_answer {
            return Stranger::Answer;
        }
        let refusal = members.get("error");
        if refusal.is_some_and(|error| error.is_string() || error.get("message").is_some()) {
            return Stranger::Refusal;
        }
        if text(members, "role").is_some()
            && (members.contains_key("content") || members.contains_key("parts"))
        {
            return Stranger::Message;
        }
        let is_record = members.contains_key("input")
            && (text(members, "type").is_some() || members.contains_key("output"))
            || members.contains_key("messages") && members.contains_key("response")
            || members.contains_key("resourceSpans");
        match is_record {
            true => Stranger::Record,
            false => Stranger::Unknown,
        }
    }

    /// Returns the problem in words.
    pub(crate) fn message(self) -> String {
        match self {
            Stranger::Session(agent) => format!(
                "this is not a request body: it belongs to a session file ({})",
                agent.form()
            ),
            Stranger::Record => "this is a log record without a request body".to_owned(),
            Stranger::Message => "this is one message, not a request body".to_owned(),
            Stranger::Answer => "this is a model's answer, not a request body".to_owned(),
            Stranger::Refusal => "this is an error response, not a request body".to_owned(),
            Stranger::Encoded => {
                "this is JSON encoded as a string, so the API would receive a string".to_owned()
            }
            Stranger::Unknown => "this is not a request body and does not contain one".to_owned(),
        }
    }

    /// Returns the next step.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Stranger::Session(_) => {
                "`reqc lint --session` reads session files; a request body has the whole conversation as a list"
            }
            Stranger::Record => {
                "`reqc lint --session` reads such logs; if the file is a log, suppress this finding with `--allow lint/no-body`"
            }
            Stranger::Message => {
                "a request body has all messages as a list: `messages`, `input` or `contents`"
            }
            Stranger::Answer => "check the request that it answers",
            Stranger::Refusal => "`reqc why400` explains it; check the request that it answers",
            Stranger::Encoded => "the body was written as JSON twice: send the inner text",
            Stranger::Unknown => {
                "if it is meant to be a request body, name its wire format with `--wire`; `reqc lint --session` reads agents' session files"
            }
        }
    }

    /// Returns `true` if this kind needs to be reported only once per file.
    pub(crate) fn is_of_file(self) -> bool {
        matches!(self, Stranger::Session(_))
    }
}

fn text<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    members.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_known_by_their_members() {
        for (value, expected) in [
            (
                json!({"object": "chat.completion", "choices": []}),
                Stranger::Answer,
            ),
            (
                json!({"object": "response", "output": []}),
                Stranger::Answer,
            ),
            (
                json!({"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}),
                Stranger::Answer,
            ),
            (json!({"candidates": []}), Stranger::Answer),
            (
                json!({"model": "m", "message": {}, "done": true}),
                Stranger::Answer,
            ),
            (json!({"error": {"message": "no"}}), Stranger::Refusal),
            (
                json!({"type": "error", "error": {"type": "a", "message": "no"}}),
                Stranger::Refusal,
            ),
            (json!({"role": "user", "content": "a"}), Stranger::Message),
            (
                json!({"type": "turn.prompt", "input": [{"type": "text"}]}),
                Stranger::Record,
            ),
            (
                json!({"id": "a", "input": [], "output": "b"}),
                Stranger::Record,
            ),
            (json!({"a": 1}), Stranger::Unknown),
        ] {
            assert_eq!(
                Stranger::of(value.as_object().expect("an object")),
                expected,
                "{value}"
            );
        }
    }
}
