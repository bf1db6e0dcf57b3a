//! Redacts a provider's own blocks. Types, IDs, tool names and the format's own words stay, because
//! the provider requires them. Everything else is replaced.

use serde_json::Value;

use super::{Ids, text, url, value};

/// The members that contain an ID or refer to one.
const IDS: [&str; 4] = ["id", "call_id", "tool_use_id", "approval_request_id"];

/// The members that name a tool or a server, in a block or a call.
const NAMES: [&str; 3] = ["name", "server_name", "server_label"];

/// The members that contain the arguments of a call. All words in them are replaced, because none
/// belongs to the format.
const ARGUMENTS: [&str; 3] = ["input", "arguments", "args"];

/// Words that belong to the formats, by the members that contain them.
const WORDS: [(&str, &[&str]); 5] = [
    (
        "role",
        &["user", "assistant", "system", "developer", "tool", "model"],
    ),
    (
        "status",
        &[
            "in_progress",
            "completed",
            "incomplete",
            "failed",
            "searching",
            "generating",
            "interpreting",
            "calling",
        ],
    ),
    ("phase", &["commentary", "final_answer"]),
    ("language", &["PYTHON", "LANGUAGE_UNSPECIFIED"]),
    (
        "outcome",
        &[
            "OUTCOME_OK",
            "OUTCOME_FAILED",
            "OUTCOME_DEADLINE_EXCEEDED",
            "OUTCOME_UNSPECIFIED",
        ],
    ),
];

/// The maximum depth in a block at which tool names occur: in the block itself, or in its `custom`.
const NAMED_DEPTH: usize = 2;

pub(super) fn redact(data: &mut Value, ids: &mut Ids) {
    below(data, ids, 1);
}

fn below(it: &mut Value, ids: &mut Ids, depth: usize) {
    match it {
        Value::Object(members) => {
            members
                .iter_mut()
                .for_each(|(name, inner)| member(name, inner, ids, depth));
        }
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|element| below(element, ids, depth + 1)),
        Value::String(said) => {
            *said = if said.contains("://") {
                url(said)
            } else {
                text(said)
            }
        }
        other => value(other),
    }
}

fn member(name: &str, it: &mut Value, ids: &mut Ids, depth: usize) {
    let Value::String(said) = it else {
        return if ARGUMENTS.contains(&name) {
            value(it);
        } else {
            below(it, ids, depth + 1);
        };
    };
    if IDS.contains(&name) {
        *said = ids.in_own(said);
    } else if !stays(name, said, depth) {
        below(it, ids, depth);
    }
}

/// Returns `true` if a member's value comes from the format, not from the conversation, so it is
/// not redacted.
fn stays(name: &str, said: &str, depth: usize) -> bool {
    let is_made_of = |also: &str| {
        said.len() <= 64
            && said
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || also.contains(c))
    };
    match name {
        "type" => is_made_of("_.") && !said.contains(|c: char| c.is_ascii_uppercase()),
        _ if NAMES.contains(&name) => depth <= NAMED_DEPTH && is_made_of("_-.:/"),
        _ => WORDS
            .iter()
            .any(|(word, known)| *word == name && known.contains(&said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_the_format_stay_and_no_others() {
        let mut block = json!({
            "type": "server_tool_use", "id": "srvtoolu_9z", "name": "web_search", "status": "my own",
            "input": {"type": "secret", "name": "ann", "id": "b"}
        });
        let mut ids = Ids::default();
        redact(&mut block, &mut ids);
        let expected = json!({
            "type": "server_tool_use", "id": "srvtoolu_call_1", "name": "web_search", "status": "xx xxx",
            "input": {"type": "xxxxxx", "name": "xxx", "id": "x"}
        });
        assert_eq!(block, expected);
        let mut result = json!({
            "type": "web_search_tool_result", "tool_use_id": "srvtoolu_9z",
            "content": [{"type": "web_search_result", "name": "Ann", "url": "https://ann.example/7", "page": 417}]
        });
        redact(&mut result, &mut ids);
        let expected = json!({
            "type": "web_search_tool_result", "tool_use_id": "srvtoolu_call_1",
            "content": [{"type": "web_search_result", "name": "Xxx", "url": "https://xxx.xxxxxxx/0", "page": 100}]
        });
        assert_eq!(result, expected);
        let mut custom =
            json!({"type": "custom", "id": "9z", "custom": {"name": "sql", "input": "select 1"}});
        redact(&mut custom, &mut ids);
        assert_eq!(
            custom,
            json!({"type": "custom", "id": "call_2", "custom": {"name": "sql", "input": "xxxxxx 0"}})
        );
    }
}
