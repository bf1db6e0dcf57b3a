//! Bodies in another spelling than their schema's.
//!
//! A server that reads protocol buffers takes the names of fields in `camelCase` and in `snake_case`, and those of
//! enumerations in any case. A schema with `"x-reqc-spelling": "protobuf"` says each name once, in `camelCase`: a body is
//! respelt before it is asked, and what is wrong is told in the body's own names.
//! Source: the JSON mapping of protocol buffers, <https://protobuf.dev/programming-guides/json/>, seen in November 2026.

use serde_json::{Map, Value};

use super::node::follow;
use crate::json::Pointer;

/// A body in the names of its schema; `None` if it is that already, or the schema knows one spelling only.
pub(super) fn respelt<'b>(schema: &Value, body: impl FnOnce() -> &'b Value) -> Option<Value> {
    if !has_two(schema) {
        return None;
    }
    let mut respelt = body().clone();
    respell(schema, schema, &mut respelt).then_some(respelt)
}

/// Whether the fields of a schema have two spellings.
pub(super) fn has_two(schema: &Value) -> bool {
    schema.get("x-reqc-spelling").is_some_and(|spelling| spelling == "protobuf")
}

/// Where a place of a respelt body is in the body as it was written.
pub(super) fn original(place: &str, body: &Value) -> Pointer {
    let mut found = Some(body);
    let mut pointer = Pointer::root();
    for token in Pointer::parse(place).tokens() {
        let members = found.and_then(Value::as_object).filter(|members| !members.contains_key(&token));
        let written = members.and_then(|members| members.keys().find(|name| camel_case(name).as_ref() == Some(&token)));
        pointer = pointer.member(written.unwrap_or(&token));
        found = body.pointer(pointer.as_str());
    }
    pointer
}

/// The `camelCase` of a name in `snake_case`.
pub(super) fn camel_case(name: &str) -> Option<String> {
    let mut words = name.split('_');
    let mut camel = words.next().filter(|word| !word.is_empty())?.to_owned();
    for word in words {
        let first = word.chars().next().filter(char::is_ascii_lowercase)?;
        camel.push(first.to_ascii_uppercase());
        camel.push_str(&word[1..]);
    }
    (camel != name).then_some(camel)
}

/// Gives a value the names of its schema. Returns whether that changed anything.
fn respell(document: &Value, schema: &Value, value: &mut Value) -> bool {
    let schema = follow(document, schema);
    match value {
        Value::Object(members) => {
            let renamed = rename(schema, members);
            members.iter_mut().fold(renamed, |changed, (name, member)| match schema_of(schema, name) {
                Some(schema) => respell(document, schema, member) || changed,
                None => changed,
            })
        }
        Value::Array(elements) => match schema.get("items") {
            Some(items) => {
                elements.iter_mut().map(|it| respell(document, items, it)).filter(|changed| *changed).count() > 0
            }
            None => false,
        },
        Value::String(text) => match listed(schema, text) {
            Some(listed) if listed != text => {
                listed.clone_into(text);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn schema_of<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| schema.get("additionalProperties")).filter(|schema| schema.is_object())
}

/// Renames members in `snake_case`, except where both spellings stand: then one is unknown.
fn rename(schema: &Value, members: &mut Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    if schema.get("x-reqc-free").is_some() {
        return false;
    }
    let known = |name: &String| {
        let camel = camel_case(name).filter(|_| !properties.contains_key(name))?;
        (properties.contains_key(&camel) && !members.contains_key(&camel)).then_some((name.clone(), camel))
    };
    let renamed: Vec<(String, String)> = members.keys().filter_map(known).collect();
    for (name, camel) in &renamed {
        if let Some(value) = members.shift_remove(name) {
            members.insert(camel.clone(), value);
        }
    }
    !renamed.is_empty()
}

/// The value of an enumeration that a text means.
fn listed<'s>(schema: &'s Value, text: &str) -> Option<&'s str> {
    let values = schema.get("enum")?.as_array()?;
    let mut values = values.iter().filter_map(Value::as_str);
    let is_exact = values.clone().any(|value| value == text);
    values.find(|value| value.eq_ignore_ascii_case(text)).filter(|_| !is_exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "x-reqc-spelling": "protobuf",
            "properties": {
                "systemInstruction": {"$ref": "#/$defs/content"},
                "thinkingLevel": {"enum": ["LOW", "HIGH"]},
                "schema": {"x-reqc-free": true, "properties": {"twoWords": {}}, "additionalProperties": {"$ref": "#/$defs/content"}}
            },
            "$defs": {"content": {"properties": {"parts": {"items": {"properties": {"inlineData": {}, "text": {}}}}}}}
        })
    }

    #[test]
    fn names_are_respelt_at_every_depth_and_told_as_they_were_written() {
        let body =
            json!({"system_instruction": {"parts": [{"text": "a"}, {"inline_data": 1}]}, "thinkingLevel": "low"});
        let respelt = respelt(&schema(), || &body).expect("it was in snake_case");
        let expected =
            json!({"systemInstruction": {"parts": [{"text": "a"}, {"inlineData": 1}]}, "thinkingLevel": "LOW"});
        assert_eq!(respelt, expected);
        let place = original("/systemInstruction/parts/1/inlineData/x", &body);
        assert_eq!(place.as_str(), "/system_instruction/parts/1/inline_data/x");
    }

    #[test]
    fn the_authors_own_names_and_both_spellings_stay() {
        let own = json!({"schema": {"two_words": {"parts": []}}});
        assert_eq!(respelt(&schema(), || &own), None);
        let both = json!({"system_instruction": {}, "systemInstruction": {}});
        assert_eq!(respelt(&schema(), || &both), None);
        assert_eq!(respelt(&json!({"properties": {"twoWords": {}}}), || &own), None);
    }

    #[test]
    fn only_plain_snake_case_is_another_spelling() {
        assert_eq!(camel_case("inline_data").as_deref(), Some("inlineData"));
        for other in ["inlineData", "text", "inline__data", "_data", "data_", "inline_Data"] {
            assert_eq!(camel_case(other), None, "{other}");
        }
    }
}
