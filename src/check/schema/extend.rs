//! Extensions: fields that compatible servers take beyond the schema of a wire format.
//!
//! They are written into the schema before it is compiled, so that a misspelt extension is found like any other field.
//! The form of the file is described in `schemas/README.md`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::node::follow;

/// The most values that extensions may add to a schema.
const MAX_ADDED: usize = 50_000;
/// The most schemas that are looked at to find what places name.
const MAX_STEPS: usize = 500_000;

/// Adds the fields that an extension file lists under one of `names`.
///
/// # Errors
///
/// If that is more than any wire format needs.
pub(crate) fn extend(schema: &mut Value, extensions: &Value, names: &[String]) -> Result<(), ()> {
    let listed: Vec<&Map<String, Value>> = names.iter().filter_map(|name| extensions.get(name)?.as_object()).collect();
    let (mut steps, mut added) = (0, 0);
    for (place, fields) in listed.iter().flat_map(|places| places.iter()) {
        let targets = targets(schema, place, &mut steps)?;
        added += targets.len().saturating_mul(count(fields));
        if added > MAX_ADDED {
            return Err(());
        }
        targets.iter().for_each(|target| add(schema, target, fields));
    }
    Ok(())
}

/// How many values a value holds, itself included.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn add(schema: &mut Value, target: &str, fields: &Value) {
    let properties = schema.pointer_mut(&format!("{target}/properties")).and_then(Value::as_object_mut);
    if let (Some(properties), Value::Object(fields)) = (properties, fields) {
        properties.extend(fields.iter().map(|(name, fragment)| (name.clone(), fragment.clone())));
    }
}

/// JSON pointers, within the schema, of the object schemas that a place names: each once.
fn targets(schema: &Value, place: &str, steps: &mut usize) -> Result<Vec<String>, ()> {
    let mut found = vec![String::new()];
    for segment in place.split('/').filter(|segment| !segment.is_empty()) {
        let (mut seen, mut next) = (HashSet::new(), Vec::new());
        for at in &found {
            step(schema, at, segment, &mut Search { seen: &mut seen, found: &mut next, steps })?;
        }
        found = next;
    }
    Ok(found)
}

/// What a step of a place has found.
struct Search<'s> {
    seen: &'s mut HashSet<String>,
    found: &'s mut Vec<String>,
    steps: &'s mut usize,
}

/// The schemas of a member: a property, `*` for every element, `key=value` for the elements that the value picks.
fn step(schema: &Value, at: &str, segment: &str, search: &mut Search<'_>) -> Result<(), ()> {
    let at = resolve(schema, at);
    let Some(node) = schema.pointer(&at) else { return Ok(()) };
    let picked = segment.split_once('=');
    if segment != "*" && picked.is_none() {
        let name = segment.replace('~', "~0");
        let is_there = node.get("properties").is_some_and(|properties| properties.get(segment).is_some());
        return if is_there { options(schema, format!("{at}/properties/{name}"), search, |_| true) } else { Ok(()) };
    }
    if node.get("items").is_none() {
        return Ok(());
    }
    options(schema, format!("{at}/items"), search, |element| {
        picked.is_none_or(|(key, value)| {
            schema.pointer(element).is_some_and(|element| picks(schema, element, key, value))
        })
    })
}

/// Finds a schema's alternatives, or itself.
fn options(schema: &Value, at: String, search: &mut Search<'_>, is_meant: impl Fn(&str) -> bool) -> Result<(), ()> {
    let mut pending = vec![at];
    while let Some(at) = pending.pop() {
        *search.steps += 1;
        if *search.steps > MAX_STEPS {
            return Err(());
        }
        let at = resolve(schema, &at);
        if !search.seen.insert(at.clone()) {
            continue;
        }
        let branches = schema.pointer(&at).and_then(|node| node.get("oneOf")).and_then(Value::as_array).map(Vec::len);
        match branches {
            Some(count) => pending.extend((0..count).rev().map(|index| format!("{at}/oneOf/{index}"))),
            None if is_meant(&at) => search.found.push(at),
            None => {}
        }
    }
    Ok(())
}

/// Where a schema stands once its `$ref`s are followed.
fn resolve(schema: &Value, at: &str) -> String {
    let mut at = at.to_owned();
    for _ in 0..16 {
        let target = schema.pointer(&at).and_then(|node| node.get("$ref")).and_then(Value::as_str);
        match target.and_then(|target| target.strip_prefix('#')) {
            Some(target) => target.clone_into(&mut at),
            None => break,
        }
    }
    at
}

fn picks(document: &Value, schema: &Value, key: &str, value: &str) -> bool {
    let Some(property) = follow(document, schema).get("properties").and_then(|properties| properties.get(key)) else {
        return false;
    };
    let listed =
        property.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(|it| it == value));
    listed || property.get("const").is_some_and(|constant| constant == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_name_objects_through_references_and_alternatives() {
        let mut schema = json!({
            "properties": {"messages": {"items": {"$ref": "#/$defs/message"}}, "x": {}},
            "$defs": {
                "message": {"oneOf": [{"$ref": "#/$defs/user"}, {"$ref": "#/$defs/assistant"}]},
                "user": {"properties": {"role": {"const": "user"}}},
                "assistant": {"properties": {"role": {"enum": ["assistant"]}}}
            }
        });
        let extensions = json!({
            "Mine": {"/": {"top": {"type": "integer"}}, "/messages/role=assistant": {"reasoning": {}}, "/messages/*": {"tag": {}}}
        });
        let before = schema.clone();
        extend(&mut schema, &extensions, &["Other".to_owned()]).expect("small");
        assert_eq!(schema, before);
        extend(&mut schema, &extensions, &["Other".to_owned(), "Mine".to_owned()]).expect("small");
        assert_eq!(schema["properties"]["top"]["type"], "integer");
        assert!(schema["$defs"]["assistant"]["properties"].get("reasoning").is_some());
        assert!(schema["$defs"]["user"]["properties"].get("reasoning").is_none());
        assert!(schema["$defs"]["user"]["properties"].get("tag").is_some());
    }

    /// Compatible servers take what OpenAI takes, and more: a bundled extension adds fields that were refused before, or has a
    /// field take at least what it took.
    #[test]
    fn the_bundled_extensions_only_widen() {
        let parse = |text| -> Value { serde_json::from_str(text).expect("JSON") };
        let plain = parse(include_str!("../../../schemas/wire/openai-chat.schema.json"));
        let extensions = parse(include_str!("../../../schemas/wire/openai-chat.extensions.json"));
        let listed = extensions.as_object().expect("an object").iter().filter(|(name, _)| *name != "$comment");
        for (name, places) in listed {
            let mut extended = plain.clone();
            extend(&mut extended, &extensions, std::slice::from_ref(name)).expect("small");
            for (place, fields) in places.as_object().expect("an object") {
                let found = targets(&plain, place, &mut 0).expect("few");
                assert_ne!(found, [""; 0], "{name} {place} names something");
                for target in found {
                    let object = plain.pointer(&target).expect("a schema");
                    assert_eq!(object["additionalProperties"], false, "{name} {place}: other fields are refused");
                    for field in fields.as_object().expect("an object").keys() {
                        takes_what_it_took(&plain, &extended, &format!("{target}/properties/{field}"));
                    }
                }
            }
        }
    }

    fn takes_what_it_took(plain: &Value, extended: &Value, field: &str) {
        let values = [
            json!(null),
            json!(true),
            json!(1),
            json!(""),
            json!("a"),
            json!({}),
            json!([]),
            json!(["a"]),
            json!([{"type": "text", "text": "a"}]),
            json!([{"type": "image_url", "image_url": {"url": "https://a"}}]),
        ];
        let takes = |document: &Value, value: &Value| {
            let schema = json!({"$ref": format!("#/whole{field}"), "whole": document, "$defs": document["$defs"]});
            super::super::document::Compiled::new(schema).expect("a schema").accepts(value)
        };
        for value in values.iter().filter(|value| plain.pointer(field).is_some() && takes(plain, value)) {
            assert!(takes(extended, value), "{field} still takes {value}");
        }
    }
}
