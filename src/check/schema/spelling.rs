//! Bodies whose spelling differs from that of their schema.
//!
//! A server that reads protocol buffers accepts field names in `camelCase` and in `snake_case`,
//! enum values in any case and as numbers (if the schema lists them), a single value instead of a
//! list with one element, numbers as strings, and `null` for absent fields. A schema with
//! `"x-reqc-spelling": "protobuf"` contains each name once, in `camelCase`. A body is respelled
//! before validation, and mistakes are reported at their original locations. Protocol rules also
//! use the respelled body.
//!
//! Servers that ignore unknown fields accept `null` for absent fields: see [`without_nulls`].
//! Source: the JSON mapping of protocol buffers, <https://protobuf.dev/programming-guides/json/>,
//! seen in November 2026.

use serde_json::{Map, Value};

use super::node::follow;
use crate::json::Pointer;

/// Returns a body in the spelling of its schema; `None` if nothing changes, or if the schema allows
/// only one spelling.
pub(super) fn respelt<'b>(schema: &Value, body: impl FnOnce() -> &'b Value) -> Option<Value> {
    if !has_two(schema) {
        return None;
    }
    let mut respelt = body().clone();
    respell(schema, schema, &mut respelt).then_some(respelt)
}

/// Returns `true` if a schema allows two spellings of its fields.
pub(super) fn has_two(schema: &Value) -> bool {
    schema
        .get("x-reqc-spelling")
        .is_some_and(|spelling| spelling == "protobuf")
}

/// Converts a location in the respelled body to the location in the original one.
pub(crate) fn original(place: &str, body: &Value) -> Pointer {
    let mut found = Some(body);
    let mut pointer = Pointer::root();
    for token in Pointer::parse(place).tokens() {
        // A single value may represent a list with one element.
        if token == "0" && found.is_some_and(|value| !value.is_array() && value.get("0").is_none())
        {
            continue;
        }
        let members = found
            .and_then(Value::as_object)
            .filter(|members| !members.contains_key(&token));
        let written = members.and_then(|members| {
            members
                .keys()
                .find(|name| camel_case(name).as_ref() == Some(&token))
        });
        pointer = pointer.member(written.unwrap_or(&token));
        found = body.pointer(pointer.as_str());
    }
    pointer
}

/// Returns a body without the members that are `null` at the given locations; `None` if there are
/// no such members.
pub(super) fn without_nulls<'p>(
    body: &Value,
    places: impl Iterator<Item = &'p Pointer>,
) -> Option<Value> {
    let mut without = None;
    for place in places {
        let (Some(object), Some(name)) = (place.parent(), place.tokens().last()) else {
            continue;
        };
        if body.pointer(place.as_str()).is_some_and(Value::is_null) {
            let copy: &mut Value = without.get_or_insert_with(|| body.clone());
            let members = copy
                .pointer_mut(object.as_str())
                .and_then(Value::as_object_mut);
            members.and_then(|members| members.shift_remove(&name));
        }
    }
    without
}

/// Converts a name from `snake_case` to `camelCase`; `None` if it is not in `snake_case`.
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

/// Converts a value to the names and forms that its schema has. Returns `true` if anything changed.
fn respell(document: &Value, schema: &Value, value: &mut Value) -> bool {
    let schema = follow(document, schema);
    let reshaped = reshape(schema, value);
    let inner = match value {
        Value::Object(members) => respell_members(document, schema, members),
        Value::Array(elements) => match schema.get("items") {
            Some(items) => {
                // Counts the changed elements, because `any` would not respell the elements after
                // the first changed one.
                elements
                    .iter_mut()
                    .map(|element| usize::from(respell(document, items, element)))
                    .sum::<usize>()
                    > 0
            }
            None => false,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    inner || reshaped
}

fn respell_members(document: &Value, schema: &Value, members: &mut Map<String, Value>) -> bool {
    let is_known = schema.get("properties").is_some() && schema.get("x-reqc-free").is_none();
    let before = members.len();
    if is_known {
        members.retain(|_, member| !member.is_null());
    }
    let changed = rename(schema, members) || members.len() < before;
    members.iter_mut().fold(changed, |changed, (name, member)| {
        match schema_of(schema, name) {
            Some(schema) => respell(document, schema, member) || changed,
            None => changed,
        }
    })
}

/// Converts a value to the type that its schema requires, if there is an equivalent value. Returns
/// `true` if the value changed.
fn reshape(schema: &Value, value: &mut Value) -> bool {
    let reshaped = match &*value {
        Value::String(text) => match listed(schema, text) {
            Some(listed) => Some(Value::from(listed)),
            None if is_type("integer", schema) => text.parse::<i64>().ok().map(Value::from),
            None if is_type("number", schema) => text.parse::<f64>().ok().map(Value::from),
            None if is_type("array", schema) => Some(Value::from(vec![value.clone()])),
            None => None,
        },
        Value::Number(number) if schema.get(NUMBERS).is_some() => {
            numbered(schema, number).map(Value::from)
        }
        Value::Object(_) | Value::Number(_) | Value::Bool(_) if is_type("array", schema) => {
            Some(Value::from(vec![value.clone()]))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    };
    let is_other = reshaped.as_ref().is_some_and(|reshaped| reshaped != value);
    if let Some(reshaped) = reshaped.filter(|_| is_other) {
        *value = reshaped;
    }
    is_other
}

fn is_type(name: &str, schema: &Value) -> bool {
    schema.get("type").is_some_and(|wanted| wanted == name)
}

fn schema_of<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(name));
    property
        .or_else(|| schema.get("additionalProperties"))
        .filter(|schema| schema.is_object())
}

/// Renames `snake_case` members to `camelCase`. If both spellings are present, the member is not
/// renamed, so it is reported as unknown.
fn rename(schema: &Value, members: &mut Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    if schema.get("x-reqc-free").is_some() {
        return false;
    }
    let renamed: Vec<(String, String)> = members
        .keys()
        .filter_map(|name| {
            let camel = camel_case(name).filter(|_| !properties.contains_key(name))?;
            (properties.contains_key(&camel) && !members.contains_key(&camel))
                .then_some((name.clone(), camel))
        })
        .collect();
    for (name, camel) in &renamed {
        if let Some(value) = members.shift_remove(name) {
            members.insert(camel.clone(), value);
        }
    }
    !renamed.is_empty()
}

/// The keyword that lists the values of an enum by their numbers, from 0 on. A number without a
/// value has an empty string.
const NUMBERS: &str = "x-reqc-numbers";

/// Returns the enum value with a number.
fn numbered<'s>(schema: &'s Value, number: &serde_json::Number) -> Option<&'s str> {
    let index = usize::try_from(number.as_u64()?).ok()?;
    let value = schema.get(NUMBERS)?.get(index)?.as_str()?;
    Some(value).filter(|value| !value.is_empty())
}

/// Returns the enum value that equals a string except for its case.
fn listed<'s>(schema: &'s Value, text: &str) -> Option<&'s str> {
    let values = schema.get("enum")?.as_array()?;
    let mut values = values.iter().filter_map(Value::as_str);
    let is_exact = values.clone().any(|value| value == text);
    values
        .find(|value| value.eq_ignore_ascii_case(text))
        .filter(|_| !is_exact)
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
                "thinkingLevel": {"enum": ["LOW", "HIGH"], "x-reqc-numbers": ["", "LOW", "HIGH"]},
                "schema": {"x-reqc-free": true, "properties": {"twoWords": {}}, "additionalProperties": {"$ref": "#/$defs/content"}}
            },
            "$defs": {"content": {"properties": {"parts": {"items": {"properties": {"inlineData": {}, "text": {}}}}}}}
        })
    }

    #[test]
    fn names_are_respelt_at_every_depth_and_told_as_they_were_written() {
        let body = json!({"system_instruction": {"parts": [{"text": "a"}, {"inline_data": 1}]}, "thinkingLevel": "low"});
        let respelt = respelt(&schema(), || &body).expect("it was in snake_case");
        let expected = json!({"systemInstruction": {"parts": [{"text": "a"}, {"inlineData": 1}]}, "thinkingLevel": "LOW"});
        assert_eq!(respelt, expected);
        let place = original("/systemInstruction/parts/1/inlineData/x", &body);
        assert_eq!(place.as_str(), "/system_instruction/parts/1/inline_data/x");
    }

    #[test]
    fn lists_of_one_numbers_and_nulls_have_several_forms() {
        let schema = json!({
            "x-reqc-spelling": "protobuf",
            "properties": {
                "tools": {"type": "array", "items": {"properties": {"functionDeclarations": {"type": "array", "items": {}}}}},
                "config": {"properties": {"topK": {"type": "integer"}, "temperature": {"type": "number"}, "seed": {}}}
            }
        });
        let body = json!({
            "tools": {"function_declarations": {"name": "a"}},
            "config": {"top_k": "5", "temperature": "0.5", "seed": null}
        });
        let respelt = respelt(&schema, || &body).expect("other forms");
        let expected = json!({
            "tools": [{"functionDeclarations": [{"name": "a"}]}],
            "config": {"topK": 5, "temperature": 0.5}
        });
        assert_eq!(respelt, expected);
        let place = original("/tools/0/functionDeclarations/0/name", &body);
        assert_eq!(place.as_str(), "/tools/function_declarations/name");
    }

    #[test]
    fn an_enum_value_may_be_its_number() {
        let high = json!({"thinkingLevel": 2});
        assert_eq!(
            respelt(&schema(), || &high),
            Some(json!({"thinkingLevel": "HIGH"}))
        );
        for other in [0.into(), 3.into(), json!(1.5)] {
            let other = json!({"thinkingLevel": other});
            assert_eq!(respelt(&schema(), || &other), None, "{other}");
        }
    }

    #[test]
    fn nulls_at_some_places_are_left_out() {
        let body = json!({"a": null, "b": [{"c": null, "d": 1}]});
        let places = [Pointer::parse("/b/0/c"), Pointer::parse("/b/0/d")];
        assert_eq!(
            without_nulls(&body, places.iter()),
            Some(json!({"a": null, "b": [{"d": 1}]}))
        );
        assert_eq!(without_nulls(&body, places[1..].iter()), None);
    }

    #[test]
    fn the_authors_own_names_and_both_spellings_stay() {
        let own = json!({"schema": {"two_words": {"parts": []}}});
        assert_eq!(respelt(&schema(), || &own), None);
        let both = json!({"system_instruction": {}, "systemInstruction": {}});
        assert_eq!(respelt(&schema(), || &both), None);
        assert_eq!(
            respelt(&json!({"properties": {"twoWords": {}}}), || &own),
            None
        );
    }

    #[test]
    fn only_plain_snake_case_is_another_spelling() {
        assert_eq!(camel_case("inline_data").as_deref(), Some("inlineData"));
        for other in [
            "inlineData",
            "text",
            "inline__data",
            "_data",
            "data_",
            "inline_Data",
        ] {
            assert_eq!(camel_case(other), None, "{other}");
        }
    }
}
