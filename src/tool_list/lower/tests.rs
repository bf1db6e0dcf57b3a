//! Tests that lowered schemas accept everything that the originals accept, with generated schemas
//! and values, and with examples.

use fastrand::Rng;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::*;
use crate::tool_list::target::ToolTarget;

fn speech(name: &str) -> Speech {
    Speech::of(&ToolTarget::from_name(name).expect("a target"))
}

fn lowered(name: &str, schema: &Value) -> Result<(Value, Vec<String>), String> {
    let lowered =
        lower(schema, &speech(name)).map_err(|why| format!("{}: {}", why.pointer, why.why))?;
    let losses = lowered
        .losses
        .iter()
        .map(|loss| format!("{} {}", loss.pointer, loss.keyword));
    Ok((lowered.schema, losses.collect()))
}

#[test]
fn a_root_of_alternatives_becomes_one_object() {
    let schema = json!({"type": "object", "anyOf": [
        {"properties": {"path": {"type": "string"}}, "required": ["path", "mode"], "additionalProperties": false},
        {"properties": {"url": {"type": "string"}, "path": {"type": "integer"}}, "required": ["url", "mode"], "additionalProperties": false},
    ]});
    let (schema, losses) = lowered("openai", &schema).expect("a schema");
    let path = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    assert_eq!(
        schema["properties"],
        json!({"path": path, "url": {"type": "string"}})
    );
    assert_eq!(
        (&schema["required"], schema.get("anyOf")),
        (&json!(["mode"]), None)
    );
    assert_eq!(losses, [" anyOf"]);
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let tree = json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": {
        "type": "object", "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
    let (schema, losses) = lowered("ollama", &tree).expect("a schema");
    let below = &schema["properties"]["node"]["properties"]["below"];
    assert_eq!(
        (below, &schema["$defs"]),
        (
            &tree["$defs"]["node"]["properties"]["below"],
            &tree["$defs"]
        ),
        "Ollama keeps `items` and `$defs`"
    );
    assert!(losses.is_empty(), "{losses:?}");
    assert_eq!(
        lowered("openai", &tree).expect("a schema"),
        (tree.clone(), Vec::new())
    );
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}]}),
    ] {
        for target in ToolTarget::ALL {
            drop(lower(&schema, &Speech::of(&target)));
        }
    }
}

#[test]
fn what_is_no_schema_is_left_out() {
    for schema in [
        json!(true),
        json!({}),
        json!([]),
        json!(null),
        json!("object"),
        json!({"properties": ["a"]}),
    ] {
        let (schema, _) = lowered("openai", &schema).expect("a schema");
        assert_eq!(schema, json!({"type": "object", "properties": {}}));
    }
    let (schema, losses) = lowered(
        "mistral",
        &json!({"type": "obj", "required": "a", "additionalProperties": false}),
    )
    .expect("a schema");
    assert_eq!(
        (schema, losses.len()),
        (json!({"additionalProperties": false}), 2)
    );
}

#[test]
fn nothing_below_not_becomes_weaker() {
    let schema = json!({"type": "object", "properties": {"a": {"not": {"type": "string", "pattern": "x"}}, "b": {"not": {"type": "null"}}}});
    let (schema, losses) = lowered("ollama", &schema).expect("a schema");
    assert_eq!(schema["properties"], json!({"a": {}, "b": {}}));
    assert_eq!(losses, ["/properties/a not", "/properties/b not"]);
    let patterns = json!({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": false, "properties": {"l": {"type": "array"}},
        "uniqueItems": true});
    let (schema, _) = lowered(
        "anthropic-strict",
        &json!({"type": "object", "properties": {"o": patterns}, "additionalProperties": false}),
    )
    .unwrap_or_default();
    assert_eq!(
        schema,
        Value::Null,
        "an object that loses its patterns is open"
    );
}

#[test]
fn patterns_that_openai_rejects_are_dropped() {
    let email = json!({"type": "string", "pattern": "^(?!x)a"});
    let plain = json!({"type": "string", "pattern": "^(?:a|\\(?=)"});
    let schema =
        json!({"type": "object", "properties": {"a": email, "b": plain, "c": {"not": email}}});
    let (schema, losses) = lowered("openai", &schema).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({"a": {"type": "string"}, "b": plain, "c": {}})
    );
    assert_eq!(losses, ["/properties/a pattern", "/properties/c not"]);
}

#[test]
fn patterns_that_an_engine_cannot_compile_are_dropped() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\p{L}+$"},
        "b": {"type": "string", "pattern": "^(?=x)"}}, "patternProperties": {"^\\p{L}$": {}}});
    let (a, b) = ("/properties/a pattern", "/properties/b pattern");
    for (target, expected) in [
        ("openai", &[a, b, " patternProperties"][..]),
        ("groq", &[b]),
        ("mistral", &[]),
    ] {
        let (_, losses) = lowered(target, &schema).expect("a schema");
        assert_eq!(losses, expected, "{target}");
    }
}

#[test]
fn ollama_keeps_items_and_drops_the_rest() {
    let items = json!({"type": "string", "minLength": 2, "default": "ab", "pattern": "^[a-z]+$"});
    let escaped = json!({"type": "array", "items": {"type": "string", "pattern": "^\\/a$"}});
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": items}, "e": escaped,
        "d": {"type": "integer", "default": 3, "minimum": 1}}, "additionalProperties": false});
    let (schema, losses) = lowered("ollama", &schema).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({"l": {"type": "array", "items": items}, "e": {"type": "array", "items": {"type": "string"}},
            "d": {"type": "integer"}})
    );
    assert_eq!(
        losses,
        [
            "/properties/e/items pattern",
            "/properties/d default",
            "/properties/d minimum",
            " additionalProperties"
        ]
    );
    let root = json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}]});
    let (schema, losses) = lowered("ollama", &root).expect("a schema");
    assert_eq!(
        (schema.get("anyOf"), losses),
        (None, vec![" anyOf".to_owned()])
    );
}

#[test]
fn moonshot_has_one_type_for_each_schema() {
    let schema = json!({"type": "object", "properties": {
        "e": {"enum": ["x", null]}, "f": {"enum": [true, "a", 3], "description": "d"},
        "g": {"type": ["string", "integer"], "minLength": 2, "minimum": 1},
        "h": {"type": "string", "enum": ["a", 1]}, "i": {"type": ["string", "null"], "enum": ["a", null]},
        "j": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "^a"}]}, "k": {"type": "array", "items": {"enum": [1, "b"]}}}});
    let (schema, losses) = lowered("moonshot", &schema).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({
            "e": {"anyOf": [{"enum": [null], "type": "null"}, {"enum": ["x"], "type": "string"}]},
            "f": {"description": "d", "anyOf": [{"enum": [true], "type": "boolean"}, {"enum": [3], "type": "number"},
                {"enum": ["a"], "type": "string"}]},
            "g": {"anyOf": [{"minLength": 2, "type": "string"}, {"minimum": 1, "type": "integer"}]},
            "h": {"type": "string", "enum": ["a"]}, "i": {"type": ["string", "null"], "enum": ["a", null]},
            "j": {"anyOf": [{"minLength": 1, "type": "string"}, {"pattern": "^a", "type": "string"}]},
            "k": {"type": "array", "items": {"anyOf": [{"enum": [1], "type": "number"}, {"enum": ["b"], "type": "string"}]}}})
    );
    assert!(losses.is_empty(), "{losses:?}");
}

#[test]
fn moonshot_has_nothing_twice_beside_alternatives() {
    let inner = json!({"type": "object", "properties": {"q": {"type": "string"}}, "anyOf": [{"required": ["q"]},
        {"properties": {"r": {"type": "integer"}}}]});
    let schema = json!({"type": "object", "properties": {"o": inner}});
    let (schema, losses) = lowered("moonshot", &schema).expect("a schema");
    assert_eq!(
        schema["properties"]["o"],
        json!({"anyOf": [{"required": ["q"], "type": "object", "properties": {"q": {"type": "string"}}},
            {"type": "object", "properties": {"r": {"type": "integer"}, "q": {"type": "string"}}}]})
    );
    assert!(losses.is_empty(), "{losses:?}");
    let root = json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {}]});
    let (schema, losses) = lowered("moonshot", &root).expect("a schema");
    assert_eq!(
        (schema.get("anyOf"), losses),
        (None, vec![" anyOf".to_owned()])
    );
}

#[test]
fn claude_has_no_one_of_in_strict_mode() {
    let schema = json!({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}, "additionalProperties": false});
    let (schema, losses) = lowered("anthropic-strict", &schema).expect("a schema");
    assert_eq!(
        schema["properties"]["a"],
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]})
    );
    assert_eq!(losses, ["/properties/a oneOf"]);
}

#[test]
fn groq_requires_nothing_without_properties() {
    let schema = json!({"type": "object", "properties": {}, "required": []});
    let (schema, losses) = lowered("groq", &schema).expect("a schema");
    assert_eq!(schema, json!({"type": "object", "properties": {}}));
    assert!(losses.is_empty(), "{losses:?}");
}

#[test]
fn strict_mode_is_left_where_it_would_forbid_something() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert!(
        lowered("openai-strict", &open)
            .is_err_and(|why| why.contains("allows undeclared properties"))
    );
    let closed = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 2}, "b": {"enum": ["x"]}}, "required": ["a"],
        "additionalProperties": false});
    let (schema, losses) = lowered("openai-strict", &closed).expect("a schema");
    assert_eq!(schema["required"], json!(["a", "b"]));
    assert_eq!(
        schema["properties"]["b"],
        json!({"anyOf": [{"enum": ["x"]}, {"type": "null"}]})
    );
    assert_eq!(losses, ["/properties/b required"]);
    let (schema, losses) = lowered("anthropic-strict", &closed).expect("a schema");
    assert_eq!(
        (schema["properties"]["a"].clone(), losses),
        (
            json!({"type": "string"}),
            vec!["/properties/a minLength".to_owned()]
        )
    );
}

#[test]
fn gemini_has_one_type_for_each_schema() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": ["string", "null"], "format": "uri"}, "b": {"type": ["string", "integer"], "minLength": 1, "minimum": 0},
        "c": {"const": "x"}, "d": {"type": "integer", "exclusiveMinimum": 0}}, "required": ["a", "e"]});
    let (schema, losses) = lowered("gemini-openapi", &schema).expect("a schema");
    assert_eq!(
        schema["properties"],
        json!({
        "a": {"type": "string", "nullable": true},
        "b": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}]},
        "c": {"enum": ["x"], "type": "string"}, "d": {"type": "integer", "minimum": 0}})
    );
    assert_eq!((&schema["required"], losses.len()), (&json!(["a"]), 3));
    assert!(
        lowered("gemini-openapi", &json!({"properties": {"a": {}}}))
            .is_err_and(|why| why.starts_with("/properties/a"))
    );
}

#[test]
fn names_of_properties_that_claude_refuses_are_not_declared() {
    let schema = json!({"type": "object", "properties": {"filter[id]": {}, "b": {}}, "required": ["filter[id]", "b"], "additionalProperties": false});
    let (schema, losses) = lowered("anthropic", &schema).expect("a schema");
    assert_eq!(
        schema,
        json!({"type": "object", "properties": {"b": {}}, "required": ["b"]})
    );
    assert_eq!(losses, ["/properties filter[id]", " additionalProperties"]);
}

const NAMES: [&str; 4] = ["a", "b", "c", "x[1]"];

/// Returns a random schema.
fn schema(rng: &mut Rng, depth: usize) -> Value {
    if depth == 0 || rng.usize(..12) == 0 {
        return match rng.usize(..8) {
            0 => json!(true),
            1 => json!({}),
            2 => json!(false),
            3 => json!({"$ref": (["#/$defs/one", "#/$defs/two", "#"][rng.usize(..3)])}),
            _ => json!({"type": kind(rng)}),
        };
    }
    let mut members = Map::new();
    for _ in 0..rng.usize(1..5) {
        let (name, value) = keyword(rng, depth);
        members.insert(name.to_owned(), value);
    }
    Value::Object(members)
}

fn kind(rng: &mut Rng) -> &'static str {
    [
        "string", "number", "integer", "boolean", "object", "array", "null", "object",
    ][rng.usize(..8)]
}

fn keyword(rng: &mut Rng, depth: usize) -> (&'static str, Value) {
    let below = depth - 1;
    match rng.usize(..40) {
        0..4 => ("type", json!(kind(rng))),
        4 => (
            "type",
            json!(
                ([
                    ["string", "null"],
                    ["object", "string"],
                    ["integer", "array"]
                ][rng.usize(..3)])
            ),
        ),
        5..10 => {
            let named = (0..rng.usize(1..4))
                .map(|_| (NAMES[rng.usize(..4)].to_owned(), schema(rng, below)));
            ("properties", Value::Object(named.collect()))
        }
        10..12 => ("required", json!([(NAMES[rng.usize(..4)])])),
        12..14 => (
            "additionalProperties",
            if rng.bool() {
                json!(false)
            } else {
                schema(rng, below)
            },
        ),
        14 => ("patternProperties", json!({"^[ab]": schema(rng, below)})),
        15..17 => ("items", schema(rng, below)),
        17 => ("prefixItems", json!([schema(rng, below)])),
        18 => ("anyOf", json!([schema(rng, below), schema(rng, below)])),
        19 => ("oneOf", json!([schema(rng, below), schema(rng, below)])),
        20..22 => ("allOf", json!([schema(rng, below), schema(rng, below)])),
        22 => ("not", schema(rng, below)),
        23 => ("if", schema(rng, below)),
        24 => ("then", schema(rng, below)),
        25 => ("else", schema(rng, below)),
        26 => ("contains", schema(rng, below)),
        27 => (
            ["maxContains", "minContains"][rng.usize(..2)],
            json!(rng.usize(..2)),
        ),
        28 => (
            ["minItems", "maxItems", "minLength", "maxLength"][rng.usize(..4)],
            json!(rng.usize(..3)),
        ),
        29 => (
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"][rng.usize(..4)],
            json!(rng.usize(..3)),
        ),
        30 => (
            ["minProperties", "maxProperties"][rng.usize(..2)],
            json!(rng.usize(..3)),
        ),
        31 => ("uniqueItems", json!(true)),
        32 => (
            "pattern",
            json!(["^a", "^(?!b)", "^\\p{L}", "^\\/?[a-z]"][rng.usize(..4)]),
        ),
        33 => ("enum", json!([value(rng, 1), value(rng, 1), "a"])),
        34 => ("const", value(rng, 1)),
        35 => ("propertyNames", json!({"maxLength": 1})),
        36 => (
            ["unevaluatedProperties", "unevaluatedItems"][rng.usize(..2)],
            if rng.bool() {
                json!(false)
            } else {
                schema(rng, below)
            },
        ),
        37 => ("dependentRequired", json!({"a": ["b"]})),
        38 => ("dependentSchemas", json!({"a": schema(rng, below)})),
        _ => ("multipleOf", json!(2)),
    }
}

/// Returns a random value.
fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.usize(..if depth == 0 { 6 } else { 10 }) {
        0 => json!(null),
        1 => json!(rng.bool()),
        2 => json!(rng.i64(-1..4)),
        3 => json!(0.5),
        4 => json!("a"),
        5 => json!(["", "abc", "b"][rng.usize(..3)]),
        6 | 7 => (0..rng.usize(..3)).map(|_| value(rng, depth - 1)).collect(),
        _ => object(rng, depth),
    }
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let members = (0..rng.usize(..4)).map(|_| {
        (
            NAMES[rng.usize(..4)].to_owned(),
            value(rng, depth.saturating_sub(1)),
        )
    });
    Value::Object(members.collect())
}

fn validator(schema: &Value) -> Option<Validator> {
    jsonschema::draft202012::options()
        .offline()
        .build(schema)
        .ok()
}

/// Converts a schema in Gemini's own dialect to JSON Schema.
fn meant(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let same = members
                .iter()
                .filter(|(name, _)| *name != "nullable")
                .map(|(name, value)| (name.clone(), meant(value)));
            let same = Value::Object(same.collect());
            match members.get("nullable") {
                Some(Value::Bool(true)) => json!({"anyOf": [same, {"type": "null"}]}),
                _ => same,
            }
        }
        Value::Array(elements) => elements.iter().map(meant).collect(),
        other => other.clone(),
    }
}

/// Returns the possible representations of a value in strict mode, in which required properties
/// that the value lacks are `null`.
fn encodings(value: &Value, node: &Value, root: &Value, depth: usize) -> Vec<Value> {
    let Some(depth) = depth.checked_sub(1) else {
        return vec![value.clone()];
    };
    if let Some(target) = node.get("$ref").and_then(Value::as_str) {
        let found = root
            .pointer(target.trim_start_matches('#'))
            .cloned()
            .unwrap_or_default();
        return encodings(value, &found, root, depth);
    }
    if let Some(any) = node.get("anyOf").and_then(Value::as_array) {
        let mut all: Vec<Value> = any
            .iter()
            .flat_map(|inner| encodings(value, inner, root, depth))
            .collect();
        all.push(value.clone());
        // There may be properties next to the alternatives.
        let rest = Value::Object(
            node.as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "anyOf")
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        );
        let mut more: Vec<Value> = all
            .iter()
            .flat_map(|value| encodings(value, &rest, root, depth))
            .collect();
        more.truncate(64);
        return more;
    }
    match (
        value,
        node.get("properties").and_then(Value::as_object),
        node.get("items"),
    ) {
        (Value::Object(members), Some(properties), _) => {
            let mut all = vec![Map::new()];
            for (name, inner) in properties {
                let own = match members.get(name) {
                    Some(value) => encodings(value, inner, root, depth),
                    None => vec![Value::Null],
                };
                all = all
                    .iter()
                    .flat_map(|before| {
                        own.iter().map(|value| {
                            let mut with = before.clone();
                            with.insert(name.clone(), value.clone());
                            with
                        })
                    })
                    .take(64)
                    .collect();
            }
            let others = || {
                members
                    .iter()
                    .filter(|(name, _)| !properties.contains_key(*name))
                    .map(|(name, value)| (name.clone(), value.clone()))
            };
            all.into_iter()
                .map(|mut with| {
                    with.extend(others());
                    Value::Object(with)
                })
                .collect()
        }
        (Value::Array(elements), _, Some(items)) => {
            let mut all: Vec<Vec<Value>> = vec![Vec::new()];
            for element in elements {
                let own = encodings(element, items, root, depth);
                all = all
                    .iter()
                    .flat_map(|before| {
                        own.iter().map(|value| {
                            let mut with = before.clone();
                            with.push(value.clone());
                            with
                        })
                    })
                    .take(64)
                    .collect();
            }
            all.into_iter().map(Value::Array).collect()
        }
        (value, _, _) => vec![value.clone()],
    }
}

/// Closes every object of a schema, and adapts other keywords for strict modes.
fn close(schema: &mut Value) {
    if let Value::Array(elements) = schema {
        elements.iter_mut().for_each(close);
    }
    let Value::Object(members) = schema else {
        return;
    };
    members
        .retain(|name, _| !matches!(name.as_str(), "patternProperties" | "unevaluatedProperties"));
    members.values_mut().for_each(close);
    if members.get("type").is_some_and(Value::is_array) {
        members.insert("type".to_owned(), "string".into());
    }
    if members.contains_key("properties") || members.get("type") == Some(&"object".into()) {
        members.insert("additionalProperties".to_owned(), false.into());
    }
}

/// For each target, the number of values that both an original and its lowered schema accepted.
type Held = std::collections::BTreeMap<&'static str, usize>;

/// Returns an error if the schema generated from a seed becomes stricter when it is lowered.
fn stricter(seed: u64, held: &mut Held) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let mut original = schema(&mut rng, 3);
    if let Some(members) = original.as_object_mut() {
        members.insert(
            "$defs".to_owned(),
            json!({"one": schema(&mut rng, 2), "two": schema(&mut rng, 2)}),
        );
        if seed % 2 == 1 {
            members.retain(|name, _| {
                matches!(name.as_str(), "$defs" | "required" | "anyOf" | "allOf")
            });
            let named = (0..3).map(|_| {
                (
                    NAMES[rng.usize(..3)].to_owned(),
                    json!({"type": kind(&mut rng), "items": {"type": "string"}}),
                )
            });
            let named: Map<String, Value> = named.collect();
            members.insert("properties".to_owned(), Value::Object(named));
            members.values_mut().for_each(close);
            members.insert("additionalProperties".to_owned(), false.into());
        }
    }
    let Some(accepts) = validator(&original) else {
        return Ok(());
    };
    let values: Vec<Value> = (0..40)
        .map(|_| object(&mut rng, 3))
        .filter(|value| accepts.is_valid(value))
        .collect();
    for target in ToolTarget::ALL {
        let Ok(lowered) = lower(&original, &Speech::of(&target)) else {
            continue;
        };
        // A tool without parameters checks nothing.
        let meaning = if lowered.schema.is_null() {
            json!({})
        } else {
            meant(&lowered.schema)
        };
        let Some(weaker) = validator(&meaning) else {
            return Err(format!("{}: no schema: {meaning}", target.name));
        };
        for value in &values {
            let is_held = match target.name {
                "openai-strict" => encodings(value, &meaning, &meaning, 12)
                    .iter()
                    .any(|value| weaker.is_valid(value)),
                _ => weaker.is_valid(value),
            };
            if !is_held {
                return Err(format!(
                    "{} refuses {value}\n  from {original}\n  to {}",
                    target.name, lowered.schema
                ));
            }
            *held.entry(target.name).or_default() += 1;
        }
    }
    Ok(())
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
#[expect(clippy::disallowed_methods, reason = "a variable asks for more seeds")]
fn lowered_schemas_accept_whatever_the_original_accepts() {
    let seeds: u64 = std::env::var("REQC_LOWERED")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(1_000);
    let mut held = Held::new();
    for seed in 0..seeds {
        if let Err(why) = stricter(seed, &mut held) {
            panic!("seed {seed}: {why}");
        }
    }
    for target in ToolTarget::ALL {
        let values = held.get(target.name).copied().unwrap_or_default();
        assert!(
            values >= 200,
            "{}: only {values} values were accepted",
            target.name
        );
    }
}
