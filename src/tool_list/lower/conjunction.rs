//! Merges several schemas into one: the parts of an `allOf`, or the alternatives of an `anyOf`.

use serde_json::{Map, Value, json};

use super::speech::{is_annotation, types};

/// Keywords that are only meaningful together. They must all come from the same schema.
const GROUPS: [&[&str]; 3] = [
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    &["prefixItems", "items", "additionalItems"],
];

/// Merges the schema `part` into `out`. If both have a keyword with different values, keeps the
/// value in `out` and returns the keyword.
pub(super) fn join(out: &mut Map<String, Value>, part: &Map<String, Value>) -> Vec<String> {
    let mut lost = Vec::new();
    for group in GROUPS {
        let is_taken = group.iter().any(|name| out.contains_key(*name));
        let is_same = group.iter().all(|name| out.get(*name) == part.get(*name));
        for name in group.iter().filter(|name| part.contains_key(**name)) {
            match is_taken {
                false => drop(out.insert((*name).to_owned(), part[*name].clone())),
                true if is_same => {}
                true => lost.push((*name).to_owned()),
            }
        }
    }
    if closes(out) && part.contains_key("properties")
        || closes(part) && out.contains_key("properties")
    {
        lost.push("additionalProperties".to_owned());
    }
    for (name, value) in part
        .iter()
        .filter(|(name, _)| !GROUPS.iter().any(|group| group.contains(&name.as_str())))
    {
        join_one(out, name, value, &mut lost);
    }
    lost
}

fn closes(schema: &Map<String, Value>) -> bool {
    schema
        .get("additionalProperties")
        .is_some_and(|it| *it != Value::Bool(true))
}

fn join_one(out: &mut Map<String, Value>, name: &str, value: &Value, lost: &mut Vec<String>) {
    match (name, out.get_mut(name), value) {
        ("$defs" | "definitions", ..) => {}
        ("unevaluatedProperties" | "unevaluatedItems", ..) => lost.push(name.to_owned()),
        (_, None, value) => drop(out.insert(name.to_owned(), value.clone())),
        ("properties", Some(Value::Object(own)), Value::Object(others)) => {
            for (property, schema) in others {
                match (own.get_mut(property), schema) {
                    (None, schema) => drop(own.insert(property.clone(), schema.clone())),
                    (Some(Value::Object(mine)), Value::Object(theirs)) => {
                        lost.extend(join(mine, theirs));
                    }
                    (Some(mine), theirs) if mine == theirs => {}
                    (Some(_), _) => lost.push(name.to_owned()),
                }
            }
        }
        ("required", Some(Value::Array(own)), Value::Array(others)) => {
            let new: Vec<Value> = others
                .iter()
                .filter(|name| !own.contains(name))
                .cloned()
                .collect();
            own.extend(new);
        }
        ("type", Some(own), other) => match both_types(own, other) {
            Some(both) => *own = both,
            None => lost.push(name.to_owned()),
        },
        (_, Some(own), other) if own == other => {}
        (name, Some(_), _) if is_annotation(name) => {}
        (name, Some(_), _) => lost.push(name.to_owned()),
    }
}

/// Returns the types that both schemas allow; `None` if they have none in common.
fn both_types(first: &Value, second: &Value) -> Option<Value> {
    let (first, second) = (types(first), types(second));
    let mut both: Vec<&String> = first.iter().filter(|name| fits(name, &second)).collect();
    both.extend(
        second
            .iter()
            .filter(|name| fits(name, &first) && !first.contains(name)),
    );
    match both.as_slice() {
        [] => None,
        [one] => Some(json!(one)),
        several => Some(json!(several)),
    }
}

fn fits(name: &str, among: &[String]) -> bool {
    among
        .iter()
        .any(|it| it == name || name == "integer" && it == "number")
}

/// Merges the properties of alternatives. A property is optional unless all alternatives require
/// it.
pub(super) fn alternatives(out: &mut Map<String, Value>, any: &[Value]) {
    let objects: Vec<&Map<String, Value>> = any
        .iter()
        .filter_map(Value::as_object)
        .filter(|schema| {
            schema
                .get("type")
                .is_none_or(|it| types(it).iter().any(|name| name == "object"))
        })
        .collect();
    let is_open = any.contains(&Value::Bool(true));
    let mut names: Vec<&String> = Vec::new();
    for schema in &objects {
        let own = properties(schema).into_iter().flat_map(Map::keys);
        own.for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
    }
    let mut declared = out
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for name in names {
        if !declared.contains_key(name) {
            declared.insert(name.clone(), alternative(name, &objects, is_open));
        }
    }
    out.insert("properties".to_owned(), Value::Object(declared));
    let Some((first, others)) = objects.split_first().filter(|_| !is_open) else {
        return;
    };
    let shared = required(first)
        .into_iter()
        .filter(|name| others.iter().all(|other| required(other).contains(name)));
    let mut all = required(out);
    shared.for_each(|name| {
        if !all.contains(&name) {
            all.push(name);
        }
    });
    if !all.is_empty() {
        let all: Vec<Value> = all.into_iter().cloned().collect();
        out.insert("required".to_owned(), Value::Array(all));
    }
}

/// Returns a schema for a property that accepts every value that any of the alternatives accepts.
fn alternative(name: &str, objects: &[&Map<String, Value>], is_open: bool) -> Value {
    let mut found: Vec<&Value> = Vec::new();
    let mut is_free = is_open;
    for schema in objects {
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !schema.contains_key("patternProperties");
        match properties(schema).and_then(|own| own.get(name)) {
            Some(own) if !found.contains(&own) => found.push(own),
            Some(_) => {}
            None => is_free |= !is_closed,
        }
    }
    match found.as_slice() {
        found if is_free => {
            let described = found.iter().find_map(|schema| schema.get("description"));
            described.map_or_else(
                || json!({}),
                |description| json!({"description": description}),
            )
        }
        [one] => (*one).clone(),
        several => json!({"anyOf": several}),
    }
}

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn required(schema: &Map<String, Value>) -> Vec<&Value> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect()
}
