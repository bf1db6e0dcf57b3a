//! `protocol/item-id`: item IDs that the Responses API rejects.

use std::collections::HashSet;

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::provider::Server;
use crate::secret::is_redacted;

body_rule! {
    Error "protocol/item-id", "OpenAI rejects the id of an item",
    "Items in the Responses API may have the `id` that the API gave them. The API checks it: its prefix must match the kind of item \
     (`fc` for a call, `rs` for reasoning, `msg` for a message, `ws` for a web search), it can have at most 64 letters, digits, \
     underscores and dashes, and it may occur only once in the input. The id of a file must begin with `file`. With \
     `previous_response_id`, the items of that response are already known and must not be sent again. With `\"store\": false`, the \
     server stores nothing, so a reference to an item is invalid.\n\n\
     Ids are optional: without them, these errors cannot occur.\n\n\
     * wrong: `{ \"type\": \"function_call\", \"id\": \"msg_1\", … }`\n\
     * right: `{ \"type\": \"function_call\", \"call_id\": \"call_1\", … }`",
    of OpenAiResponses;
    seen "2026-11" {
        "continuedev/continue#11785": "*Expected an ID that begins with 'fc'*",
        "can1357/oh-my-pi#284": "OpenAI rejects an id of more than 64 characters",
        "vercel/ai#7883": "*Duplicate item found*",
        "vercel/ai#13307": "*Duplicate item found*",
        "openai/openai-agents-js#425": "*Duplicate item found*",
        "MacPaw/OpenAI#432": "OpenAI rejects an item that `previous_response_id` already contains",
        "vercel/ai#7543": "*Items are not persisted when `store` is set to false*",
        "smixs/iva-agent#19": "the same error",
        "danny-avila/LibreChat#8178": "*Expected an ID that begins with 'file'*",
        "langchain-ai/langchainjs#11044": "*Expected an ID that contains letters, numbers, underscores, or dashes*",
    }
}

/// The maximum length of an item ID, in characters.
const MOST_CHARACTERS: usize = 64;

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.server.is_openai() {
        return;
    }
    let is_stored = subject.member("store") != Some(&Value::Bool(false));
    let is_resumed = subject.member("previous_response_id").is_some();
    let mut seen = HashSet::new();
    for item in elements(subject.member("input")) {
        if subject.server == Server::OpenAi {
            other_files(item, found);
        }
        let Some(id) = item.get("id").and_then(Value::as_str) else {
            continue;
        };
        if !is_stored
            && item
                .get("type")
                .is_some_and(|kind| kind == "item_reference")
        {
            let note = found.at(item, "this refers to a stored item, but `store` is false");
            note.help("send the item itself, or leave out `\"store\": false`");
        } else if !seen.insert(id) {
            let note = found.at(
                item,
                format!(
                    "the input already contains an item with the id `{}`",
                    crate::text::cut(id, 60)
                ),
            );
            note.help("send each item once, or leave out the ids");
        } else if is_resumed && prefix(item).is_some() {
            let note = found.at(
                item,
                "with `previous_response_id`, the server already knows this item",
            );
            note.help("send only the items since that response");
        } else if let Some(fault) = fault(item, id) {
            let is_reference = item
                .get("type")
                .is_some_and(|kind| kind == "item_reference");
            found.at_member(item, "id", fault).help(match is_reference {
                true => "send the item itself",
                false => "leave out the id, or send the one that the API returned",
            });
        }
    }
}

/// Reports file IDs in a message that were not issued by OpenAI. Other servers have their own IDs.
fn other_files<'b>(item: &'b Value, found: &mut Found<'b>) {
    for part in elements(item.get("content")) {
        let id = part.get("file_id").and_then(Value::as_str);
        if id.is_some_and(|id| !id.starts_with("file")) {
            found
                .at_member(part, "file_id", "the id of a file must begin with `file`")
                .help("upload the file with the Files API, and send the id that it returns");
        }
    }
}

/// Returns the prefix that the ID of a model's item must have; `None` for items of other kinds.
fn prefix(item: &Value) -> Option<&'static str> {
    match item.get("type").and_then(Value::as_str) {
        Some("function_call") => Some("fc"),
        Some("reasoning") => Some("rs"),
        Some("custom_tool_call") => Some("ctc"),
        Some("web_search_call") => Some("ws"),
        None | Some("message") if item.get("role").is_some_and(|role| role == "assistant") => {
            Some("msg")
        }
        _ => None,
    }
}

fn is_in_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn fault(item: &Value, id: &str) -> Option<String> {
    let length = id.chars().count();
    if length > MOST_CHARACTERS {
        return Some(format!(
            "the id has {length} characters; the limit is {MOST_CHARACTERS}"
        ));
    }
    if let Some(other) = id.chars().find(|c| !is_in_id(*c)) {
        return Some(format!(
            "the id contains `{other}`, but may contain only letters, digits, `_` and `-`"
        ));
    }
    let begins = prefix(item).filter(|prefix| !id.starts_with(prefix) && !is_redacted(id))?;
    Some(format!(
        "the id of this kind of item must begin with `{begins}`, not with `{}`",
        crate::text::cut(id, 60)
    ))
}
