//! Reads Gemini's `contents`. Each part has one member, whose name is the part's kind. The server
//! accepts both spellings of every name (proto3 JSON).

use serde_json::{Map, Value};

use super::{Call, Entry, Kind, Outcome, Part, Role, elements, text_of};

pub(super) fn read(contents: Option<&Value>) -> Vec<Entry<'_>> {
    elements(contents).iter().map(content).collect()
}

fn content(value: &Value) -> Entry<'_> {
    // Content without a role comes from the user; `function` is an older role for results.
    let role = match text_of(value, "role") {
        None | Some("function") => Role::User,
        named => Role::named(named),
    };
    Entry {
        role,
        value,
        parts: elements(value.get("parts")).iter().map(part).collect(),
    }
}

/// Returns a member by either of its two names.
fn either<'b>(value: &'b Value, camel: &str, snake: &str) -> Option<&'b Value> {
    value.get(camel).or_else(|| value.get(snake))
}

fn part(value: &Value) -> Part<'_> {
    let is_media = || {
        either(value, "inlineData", "inline_data")
            .or_else(|| either(value, "fileData", "file_data"))
    };
    let kind = if let Some(function) = either(value, "functionCall", "function_call") {
        Kind::Call(call(function))
    } else if let Some(response) = either(value, "functionResponse", "function_response") {
        Kind::Result(outcome(response))
    } else if value.get("thought") == Some(&Value::Bool(true)) {
        Kind::Thinking
    } else if let Some(text) = text_of(value, "text") {
        Kind::Text(text)
    } else if is_media().is_some() {
        Kind::Media
    } else {
        Kind::Other(
            value
                .as_object()
                .and_then(|members| members.keys().next())
                .map_or("", String::as_str),
        )
    };
    Part { kind, value }
}

fn call(function: &Value) -> Call<'_> {
    Call {
        id: text_of(function, "id"),
        id_key: "id",
        identified: function,
        name: text_of(function, "name"),
        arguments: function.get("args"),
    }
}

fn outcome(response: &Value) -> Outcome<'_> {
    let given = response.get("response");
    Outcome {
        id: text_of(response, "id"),
        id_key: "id",
        identified: response,
        name: text_of(response, "name"),
        is_error: given.is_some_and(|given| given.get("error").is_some()),
        is_empty: given.and_then(Value::as_object).is_none_or(Map::is_empty),
    }
}
