//! Extensions: fields and values that compatible servers accept in addition to the schema of a wire
//! format.
//!
//! Extensions are added to a schema before it is compiled, so a misspelled extension field is
//! reported like any other field. `schemas/README.md` describes the form of extension files.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::node::follow;

/// The maximum number of values that extensions may add to a schema.
const MAX_ADDED: usize = 50_000;
/// The maximum number of schemas that are visited to resolve locations.
const MAX_STEPS: usize = 500_000;

/// The key that lists required fields that may be omitted at a location. It is next to the
/// location's fields.
pub(crate) const OPTIONAL: &str = "x-reqc-optional";
/// The key that contains schemas to add to a location's `oneOf`. It is next to the location's
/// fields.
pub(crate) const ALTERNATIVES: &str = "x-reqc-alternatives";
/// The key that lists the schema's fields that become required at a location. It is next to the
/// location's fields.
pub(crate) const REQUIRED: &str = "x-reqc-required";
/// The key that lists fields of the schema that are not known at a location. It is next to the
/// location's fields.
pub(crate) const UNKNOWN: &str = "x-reqc-unknown";
/// The key that lists the entries that an entry extends. It is next to the entry's locations.
pub(crate) const BASE: &str = "x-reqc-base";
/// All special keys next to a location's fields.
const BESIDE: [&str; 4] = [OPTIONAL, ALTERNATIVES, REQUIRED, UNKNOWN];

/// Adds the entries that an extension file lists under `names` to a schema.
///
/// # Errors
///
/// Returns an error if the entries add more than any wire format needs.
pub(crate) fn extend(schema: &mut Value, extensions: &Value, names: &[String]) -> Result<(), ()> {
    let listed = entries(extensions, names);
    let (mut steps, mut added) = (0, 0);
    if let Some(definitions) = extensions.get(DEFINITIONS).filter(|_| !listed.is_empty()) {
        added += count(definitions);
        define(schema, definitions);
    }
    let places = listed.iter().flat_map(|places| places.iter());
    for (place, fields) in places.filter(|(place, _)| *place != BASE) {
        let targets = targets(schema, place, &mut steps)?;
        let unions = match fields.get(ALTERNATIVES) {
            Some(_) => unions(schema, place, &mut steps)?,
            None => Vec::new(),
        };
        added += (targets.len() + unions.len()).saturating_mul(count(fields));
        if added > MAX_ADDED {
            return Err(());
        }
        unions
            .iter()
            .for_each(|union| add_alternatives(schema, union, fields));
        targets
            .iter()
            .for_each(|target| add(schema, target, fields));
    }
    Ok(())
}

/// Returns the entries with these names, each after the entries that it extends, without
/// duplicates.
fn entries<'e>(extensions: &'e Value, wanted: &[String]) -> Vec<&'e Map<String, Value>> {
    let mut order: Vec<&str> = Vec::new();
    let mut pending: Vec<(&str, bool)> = wanted.iter().rev().map(|it| (&**it, false)).collect();
    let mut seen = HashSet::new();
    while let Some((name, is_after_bases)) = pending.pop() {
        if is_after_bases {
            order.push(name);
        } else if seen.insert(name) {
            pending.push((name, true));
            let bases: Vec<&str> =
                names(extensions.get(name).and_then(|it| it.get(BASE))).collect();
            pending.extend(bases.into_iter().rev().map(|base| (base, false)));
        }
    }
    order
        .into_iter()
        .filter_map(|name| extensions.get(name)?.as_object())
        .collect()
}

/// The member that contains the targets of references, in schemas and extension files.
pub(crate) const DEFINITIONS: &str = "$defs";

/// Adds the definitions that the schema does not have yet.
fn define(schema: &mut Value, definitions: &Value) {
    let (Value::Object(schema), Value::Object(definitions)) = (schema, definitions) else {
        return;
    };
    let known = schema
        .entry(DEFINITIONS)
        .or_insert_with(|| Value::Object(Map::new()));
    for (name, definition) in definitions {
        if let Some(known) = known.as_object_mut() {
            known.entry(name).or_insert_with(|| definition.clone());
        }
    }
}

/// Returns the number of values in a value, including itself.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn add(schema: &mut Value, target: &str, fields: &Value) {
    let properties = schema
        .pointer_mut(&format!("{target}/properties"))
        .and_then(Value::as_object_mut);
    if let (Some(properties), Value::Object(members)) = (properties, fields) {
        let own = members
            .iter()
            .filter(|(name, _)| !BESIDE.contains(&name.as_str()));
        let added = own.map(|(name, fragment)| (name.clone(), fragment.clone()));
        properties.extend(added);
        properties.retain(|name, _| !names(fields.get(UNKNOWN)).any(|unknown| unknown == name));
    }
    if names(fields.get(REQUIRED)).next().is_some()
        && let Some(Value::Object(object)) = schema.pointer_mut(target)
        && !object.contains_key("required")
    {
        object.insert("required".to_owned(), Value::Array(Vec::new()));
    }
    let required = schema
        .pointer_mut(&format!("{target}/required"))
        .and_then(Value::as_array_mut);
    if let Some(required) = required {
        retain(required, fields);
        for name in names(fields.get(REQUIRED)) {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
    let conditions = schema
        .pointer_mut(&format!("{target}/allOf"))
        .and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if let Some(Value::Array(required)) = condition.pointer_mut("/then/required") {
            retain(required, fields);
        }
    }
}

/// Removes the names of optional and unknown fields from the required fields.
fn retain(required: &mut Vec<Value>, fields: &Value) {
    let may_lack = |name: &Value| {
        let mut left_out = names(fields.get(OPTIONAL)).chain(names(fields.get(UNKNOWN)));
        left_out.any(|known| name == known)
    };
    required.retain(|name| !may_lack(name));
}

/// Returns the names in a list.
fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

fn add_alternatives(schema: &mut Value, union: &str, fields: &Value) {
    let branches = schema
        .pointer_mut(&format!("{union}/oneOf"))
        .and_then(Value::as_array_mut);
    if let (Some(branches), Some(Value::Array(added))) = (branches, fields.get(ALTERNATIVES)) {
        branches.extend(added.iter().cloned());
    }
}

/// Returns JSON pointers to the schemas with alternatives that match a location, without
/// duplicates.
fn unions(schema: &Value, place: &str, steps: &mut usize) -> Result<Vec<String>, ()> {
    let Some((parent, last)) = place.rsplit_once('/') else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for parent in targets(schema, parent, steps)? {
        let parent = resolve(schema, &parent);
        let at = match last {
            "*" => format!("{parent}/items"),
            name => format!("{parent}/properties/{}", name.replace('~', "~0")),
        };
        let at = resolve(schema, &at);
        let is_union = schema
            .pointer(&at)
            .is_some_and(|node| node.get("oneOf").is_some_and(Value::is_array));
        if is_union && !found.contains(&at) {
            found.push(at);
        }
    }
    Ok(found)
}

/// Returns JSON pointers to the object schemas that match a location, without duplicates.
fn targets(schema: &Value, place: &str, steps: &mut usize) -> Result<Vec<String>, ()> {
    let mut found = vec![String::new()];
    for segment in place.split('/').filter(|segment| !segment.is_empty()) {
        let (mut seen, mut next) = (HashSet::new(), Vec::new());
        for at in &found {
            step(
                schema,
                at,
                segment,
                &mut Search {
                    seen: &mut seen,
                    found: &mut next,
                    steps,
                },
            )?;
        }
        found = next;
    }
    Ok(found)
}

/// The state of a search for one segment in a location.
struct Search<'s> {
    seen: &'s mut HashSet<String>,
    found: &'s mut Vec<String>,
    steps: &'s mut usize,
}

/// Finds the schemas for a segment of a location: a property, `*` for all elements, or `key=value`
/// for the elements that this value selects. If a schema has no `items`, `key=value` finds the
/// schema itself, provided that the value selects it.
fn step(schema: &Value, at: &str, segment: &str, search: &mut Search<'_>) -> Result<(), ()> {
    let at = resolve(schema, at);
    let Some(node) = schema.pointer(&at) else {
        return Ok(());
    };
    let picked = segment.split_once('=');
    if segment != "*" && picked.is_none() {
        let name = segment.replace('~', "~0");
        let is_there = node
            .get("properties")
            .is_some_and(|properties| properties.get(segment).is_some());
        return if is_there {
            let place = format!("{at}/properties/{name}");
            options(schema, place, search, |option| {
                may_have_members(schema, option)
            })
        } else {
            Ok(())
        };
    }
    if node.get("items").is_none() {
        if picked.is_some_and(|(key, value)| picks(schema, node, key, value))
            && search.seen.insert(at.clone())
        {
            search.found.push(at);
        }
        return Ok(());
    }
    options(schema, format!("{at}/items"), search, |element| {
        picked.is_none_or(|(key, value)| {
            schema
                .pointer(element)
                .is_some_and(|element| picks(schema, element, key, value))
        })
    })
}

/// Returns `true` unless a schema accepts only null.
fn may_have_members(schema: &Value, at: &str) -> bool {
    let named = schema.pointer(at).and_then(|node| node.get("type"));
    named.and_then(Value::as_str) != Some("null")
}

/// Finds the alternatives of a schema that `is_meant` accepts. A schema without alternatives is
/// treated as the only one.
fn options(
    schema: &Value,
    at: String,
    search: &mut Search<'_>,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), ()> {
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
        let branches = schema
            .pointer(&at)
            .and_then(|node| node.get("oneOf"))
            .and_then(Value::as_array)
            .map(Vec::len);
        match branches {
            Some(count) => {
                pending.extend((0..count).rev().map(|index| format!("{at}/oneOf/{index}")));
            }
            None if is_meant(&at) => search.found.push(at),
            None => {}
        }
    }
    Ok(())
}

/// Follows the `$ref`s of a schema, and returns its final location.
fn resolve(schema: &Value, at: &str) -> String {
    let mut at = at.to_owned();
    for _ in 0..16 {
        let target = schema
            .pointer(&at)
            .and_then(|node| node.get("$ref"))
            .and_then(Value::as_str);
        match target.and_then(|target| target.strip_prefix('#')) {
            Some(target) => target.clone_into(&mut at),
            None => break,
        }
    }
    at
}

fn picks(document: &Value, schema: &Value, key: &str, value: &str) -> bool {
    let Some(property) = follow(document, schema)
        .get("properties")
        .and_then(|properties| properties.get(key))
    else {
        return false;
    };
    let listed = property
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|values| values.iter().any(|it| it == value));
    listed
        || property
            .get("const")
            .is_some_and(|constant| constant == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_begins_with_its_bases() {
        let extensions = json!({
            "A": {"x-reqc-base": ["B", "C"], "/": {"a": {}, "c": {"const": "A"}}},
            "B": {"x-reqc-base": ["A"], "/": {"b": {}}},
            "C": {"/": {"c": {"const": "C"}}}
        });
        let mut schema = json!({"properties": {}});
        extend(&mut schema, &extensions, &["A".to_owned()]).expect("small");
        assert_eq!(
            schema,
            json!({"properties": {"a": {}, "b": {}, "c": {"const": "A"}}})
        );
    }

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
        extend(
            &mut schema,
            &extensions,
            &["Other".to_owned(), "Mine".to_owned()],
        )
        .expect("small");
        assert_eq!(schema["properties"]["top"]["type"], "integer");
        assert!(
            schema["$defs"]["assistant"]["properties"]
                .get("reasoning")
                .is_some()
        );
        assert!(
            schema["$defs"]["user"]["properties"]
                .get("reasoning")
                .is_none()
        );
        assert!(schema["$defs"]["user"]["properties"].get("tag").is_some());
    }

    #[test]
    fn alternatives_are_added_and_required_fields_become_optional() {
        let mut schema = json!({
            "required": ["model", "tools"],
            "allOf": [{"if": {"required": ["tools"]}, "then": {"required": ["model", "format"]}}],
            "properties": {"model": {}, "tools": {"items": {"$ref": "#/$defs/tool"}}, "format": {"oneOf": [
                {"properties": {"type": {"const": "text"}}, "required": ["type"]}
            ]}},
            "$defs": {"tool": {"oneOf": []}, "text": {"minLength": 1}}
        });
        let extensions = json!({
            "$defs": {"search": {"type": "object"}, "text": {}},
            "Mine": {
                "/": {"x-reqc-optional": ["model"]},
                "/tools/*": {"x-reqc-alternatives": [{"$ref": "#/$defs/search"}]},
                "/format": {"x-reqc-alternatives": [{"properties": {"type": {"const": "grammar"}}}]},
                "/format/type=text": {"schema": {"type": "object"}}
            }
        });
        extend(&mut schema, &extensions, &["Mine".to_owned()]).expect("small");
        assert_eq!(schema["required"], json!(["tools"]));
        assert_eq!(schema["allOf"][0]["then"]["required"], json!(["format"]));
        assert!(schema["properties"].get("x-reqc-optional").is_none());
        assert_eq!(
            schema["$defs"]["tool"]["oneOf"],
            json!([{"$ref": "#/$defs/search"}])
        );
        assert_eq!(
            schema["$defs"]["text"],
            json!({"minLength": 1}),
            "the schema's own definition stays"
        );
        assert_eq!(schema["$defs"]["search"], json!({"type": "object"}));
        let branches = schema["properties"]["format"]["oneOf"]
            .as_array()
            .expect("a list");
        assert_eq!(branches.len(), 2);
        assert!(branches[0]["properties"].get("schema").is_some());
        assert!(branches[1]["properties"].get("schema").is_none());
    }

    /// Compatible servers accept everything that OpenAI accepts, and more. A bundled extension adds
    /// fields, or makes a field accept at least the same values as before.
    #[test]
    fn the_bundled_extensions_only_widen() {
        let parse = |text| -> Value { serde_json::from_str(text).expect("JSON") };
        let plain = parse(include_str!(
            "../../../schemas/wire/openai-chat.schema.json"
        ));
        let extensions = parse(include_str!(
            "../../../schemas/wire/openai-chat.extensions.json"
        ));
        let listed = extensions
            .as_object()
            .expect("an object")
            .iter()
            .filter(|(name, _)| !name.starts_with('$'));
        for (name, places) in listed {
            let mut extended = plain.clone();
            extend(&mut extended, &extensions, std::slice::from_ref(name)).expect("small");
            let places = places.as_object().expect("an object").iter();
            for (place, fields) in places.filter(|(place, _)| *place != BASE) {
                let found = targets(&plain, place, &mut 0).expect("few");
                assert_ne!(found, [""; 0], "{name} {place} names something");
                for target in found {
                    let object = plain.pointer(&target).expect("a schema");
                    assert_eq!(
                        object["additionalProperties"], false,
                        "{name} {place}: other fields are rejected"
                    );
                    for field in fields
                        .as_object()
                        .expect("an object")
                        .keys()
                        .filter(|name| !name.starts_with("x-"))
                    {
                        takes_what_it_took(
                            &plain,
                            &extended,
                            &format!("{target}/properties/{field}"),
                        );
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
            super::super::document::Compiled::new(schema, &std::sync::Weak::default())
                .expect("a schema")
                .accepts(value)
        };
        for value in values
            .iter()
            .filter(|value| plain.pointer(field).is_some() && takes(plain, value))
        {
            assert!(takes(extended, value), "{field} still takes {value}");
        }
    }
}
