//! Extensions: fields that compatible servers take beyond the schema of a wire format.
//!
//! They are written into the schema before it is compiled, so that a misspelt extension is found like any other field.
//! The form of the file is described in `schemas/README.md`.

use serde_json::{Map, Value};

use super::node::follow;

/// Adds the fields that an extension file lists under one of `names`.
pub(crate) fn extend(schema: &mut Value, extensions: &Value, names: &[String]) {
    let listed: Vec<&Map<String, Value>> = names.iter().filter_map(|name| extensions.get(name)?.as_object()).collect();
    for (place, fields) in listed.iter().flat_map(|places| places.iter()) {
        for target in targets(schema, place) {
            add(schema, &target, fields);
        }
    }
}

fn add(schema: &mut Value, target: &str, fields: &Value) {
    let properties = schema.pointer_mut(&format!("{target}/properties")).and_then(Value::as_object_mut);
    if let (Some(properties), Value::Object(fields)) = (properties, fields) {
        properties.extend(fields.iter().map(|(name, fragment)| (name.clone(), fragment.clone())));
    }
}

/// JSON pointers, within the schema, of the object schemas that a place names.
fn targets(schema: &Value, place: &str) -> Vec<String> {
    let segments = place.split('/').filter(|segment| !segment.is_empty());
    segments.fold(vec![String::new()], |found, segment| found.iter().flat_map(|at| step(schema, at, segment)).collect())
}

/// The schemas of a member: a property, `*` for every element, `key=value` for the elements that the value picks.
fn step(schema: &Value, at: &str, segment: &str) -> Vec<String> {
    let at = resolve(schema, at);
    let Some(node) = schema.pointer(&at) else { return Vec::new() };
    let picked = segment.split_once('=');
    if segment != "*" && picked.is_none() {
        let is_there = node.get("properties").is_some_and(|properties| properties.get(segment).is_some());
        return if is_there { options(schema, &format!("{at}/properties/{segment}")) } else { Vec::new() };
    }
    let mut elements = if node.get("items").is_some() { options(schema, &format!("{at}/items")) } else { Vec::new() };
    if let Some((key, value)) = picked {
        elements.retain(|element| schema.pointer(element).is_some_and(|element| picks(element, key, value)));
    }
    elements
}

/// A schema's alternatives, or itself.
fn options(schema: &Value, at: &str) -> Vec<String> {
    let at = resolve(schema, at);
    let branches = schema.pointer(&at).and_then(|node| node.get("oneOf")).and_then(Value::as_array).map(Vec::len);
    match branches {
        Some(count) => (0..count).flat_map(|index| options(schema, &format!("{at}/oneOf/{index}"))).collect(),
        None => vec![at],
    }
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

fn picks(schema: &Value, key: &str, value: &str) -> bool {
    let Some(property) = follow(schema, schema).get("properties").and_then(|properties| properties.get(key)) else {
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
        extend(&mut schema, &extensions, &["Other".to_owned()]);
        assert_eq!(schema, before);
        extend(&mut schema, &extensions, &["Other".to_owned(), "Mine".to_owned()]);
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
        let takes = |document: &Value, field: &str, value: &Value| {
            let schema = json!({"$ref": format!("#/whole{field}"), "whole": document, "$defs": document["$defs"]});
            super::super::document::compile(&schema).expect("a schema").is_valid(value)
        };
        let listed = extensions.as_object().expect("an object").iter().filter(|(name, _)| *name != "$comment");
        for (name, places) in listed {
            let mut extended = plain.clone();
            extend(&mut extended, &extensions, std::slice::from_ref(name));
            for (place, fields) in places.as_object().expect("an object") {
                let found = targets(&plain, place);
                assert_ne!(found, [""; 0], "{name} {place} names something");
                for target in found {
                    let object = plain.pointer(&target).expect("a schema");
                    assert_eq!(object["additionalProperties"], false, "{name} {place}: other fields are refused");
                    for field in fields.as_object().expect("an object").keys() {
                        let replaced = format!("{target}/properties/{field}");
                        let took =
                            |value: &&Value| plain.pointer(&replaced).is_some() && takes(&plain, &replaced, value);
                        for value in values.iter().filter(took) {
                            assert!(takes(&extended, &replaced, value), "{name} {place} {field} still takes {value}");
                        }
                    }
                }
            }
        }
    }
}
