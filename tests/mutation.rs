//! The schemas detect mistakes: each key of each bundled body is renamed, and the type of
//! each scalar is changed.
//!
//! Positions that a schema declares free (`x-reqc-free`) are not changed. A mutation is tried once
//! per provider instance and location. A location is a pointer with the `role` or `type` of an
//! element instead of its index: the same key of another user message would only count the same gap
//! again. `cargo test --features long-tests --test mutation -- --nocapture` prints a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use reqc::check::{AgentSchemas, Schemas};
use reqc::compile::{Compiler, Selection};
use reqc::json::Pointer;
use reqc::repo::LoadOptions;
use reqc::system::{Disk, Embedded};
use serde_json::{Map, Value, json};

/// The share of mutations that must be rejected, for each format.
const WANTED: f64 = 0.98;

#[test]
fn mutated_bodies_are_rejected() {
    let disk = Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the repository");
    let compiler = Compiler::load(
        Arc::new(disk),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let (schemas, findings) = Schemas::new(compiler.repo(), &Arc::default());
    assert_eq!(findings, []);
    let schemas = Arc::new(schemas);
    let run = compiler.run(&Selection::default(), |agent| Sample {
        wire: agent.plan.wire.name(),
        instance: agent.plan.instance.name.value.to_string(),
        agent: agent.plan.name().to_string(),
        schemas: schemas.of(agent.plan.wire, Some((agent.plan.instance, agent.plan.api))),
        bodies: agent
            .bodies
            .iter()
            .map(|(ready, body)| (ready.context.name.to_string(), body.value().clone()))
            .collect(),
    });

    let (mut scores, mut seen) = (BTreeMap::<&str, Score>::new(), BTreeSet::new());
    for sample in &run.results {
        sample.mutate(&mut seen, scores.entry(sample.wire).or_default());
    }
    println!("{}", table(&scores));
    assert_eq!(scores.len(), 9, "every format has bodies");
    let weak: Vec<&&str> = scores
        .iter()
        .filter(|(_, score)| score.part() < WANTED)
        .map(|(wire, _)| wire)
        .collect();
    assert!(
        weak.is_empty(),
        "too much is accepted in {weak:?}\n{}",
        table(&scores)
    );
}

/// The bodies of one agent.
struct Sample {
    wire: &'static str,
    instance: String,
    agent: String,
    schemas: AgentSchemas,
    /// Each with the name of its context.
    bodies: Vec<(String, Value)>,
}

#[derive(Default)]
struct Score {
    /// The numbers of rejected and of all mutations, for renamed keys and for changed types.
    counts: [(u32, u32); 2],
    survivors: Vec<String>,
    /// Locations that the schema declares free.
    free: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mutation {
    Rename,
    Type,
}

impl Score {
    fn part(&self) -> f64 {
        let [(a, n), (b, m)] = self.counts;
        f64::from(a + b) / f64::from(n + m)
    }
}

fn table(scores: &BTreeMap<&str, Score>) -> String {
    let mut text = format!(
        "{:24} {:>11} {:>11} {:>9}\n",
        "format", "renames", "types", "rejected"
    );
    for (wire, score) in scores {
        let [renames, types] = score
            .counts
            .map(|(rejected, tried)| format!("{rejected}/{tried}"));
        let _ = writeln!(
            text,
            "{wire:24} {renames:>11} {types:>11} {:>7.2} %",
            100.0 * score.part()
        );
    }
    for (wire, score) in scores.iter().filter(|(_, score)| !score.free.is_empty()) {
        let places: Vec<&str> = score.free.iter().map(String::as_str).collect();
        let _ = writeln!(text, "  left alone: {wire} {}", places.join(", "));
    }
    for (wire, survivor) in scores
        .iter()
        .flat_map(|(wire, score)| score.survivors.iter().map(move |it| (wire, it)))
    {
        let _ = writeln!(text, "  accepted: {wire} {survivor}");
    }
    text
}

impl Sample {
    fn mutate(&self, seen: &mut BTreeSet<(String, String, Mutation)>, score: &mut Score) {
        for (context, body) in &self.bodies {
            assert_eq!(
                self.schemas.problems(body),
                [],
                "{} in {context}",
                self.agent
            );
            let mut free = Free::default();
            let mut validators = Vec::new();
            for schema in self.schemas.documents() {
                free.collect(schema, schema, body, &Pointer::root());
                validators.push(
                    jsonschema::draft202012::options()
                        .build(schema)
                        .expect("a schema"),
                );
            }
            let mut found = Vec::new();
            visit(
                body,
                &free,
                &Pointer::root(),
                "",
                &mut found,
                &mut score.free,
            );
            for position in found {
                for mutation in position.mutations() {
                    let kind = (
                        format!("{} {}", self.wire, self.instance),
                        position.place.clone(),
                        mutation,
                    );
                    if seen.insert(kind) {
                        let mutated = position.mutated(body, mutation);
                        let rejected = !self.schemas.problems(&mutated).is_empty();
                        // The validators compiled into the program and the one made from the file
                        // must agree.
                        let is_broken = validators
                            .iter()
                            .any(|validator| !validator.is_valid(&mutated));
                        assert_eq!(
                            rejected, is_broken,
                            "{} {} in {context}",
                            position.place, self.agent
                        );
                        let count = &mut score.counts[mutation as usize];
                        *count = (count.0 + u32::from(rejected), count.1 + 1);
                        if !rejected {
                            let (place, changed) = (&position.place, position.changed(mutation));
                            score
                                .survivors
                                .push(format!("{place} {changed} ({}, {context})", self.agent));
                        }
                    }
                }
            }
        }
    }
}

/// A member or element of a body that can be mutated.
struct Position {
    parent: Pointer,
    token: String,
    /// The pointer, with the role or type of each element instead of its index.
    place: String,
    is_member: bool,
    is_scalar: bool,
}

impl Position {
    fn mutations(&self) -> impl Iterator<Item = Mutation> {
        let rename = self.is_member.then_some(Mutation::Rename);
        rename
            .into_iter()
            .chain(self.is_scalar.then_some(Mutation::Type))
    }

    /// Describes the mutation, which the schema accepts by mistake.
    fn changed(&self, mutation: Mutation) -> String {
        match mutation {
            Mutation::Rename => format!(
                "may be called `{}_`: an object on the way there is open",
                self.token
            ),
            Mutation::Type => "may have another type: its schema names none".to_owned(),
        }
    }

    fn mutated(&self, body: &Value, mutation: Mutation) -> Value {
        let mut body = body.clone();
        let parent = body
            .pointer_mut(self.parent.as_str())
            .expect("it was there");
        match (parent, mutation) {
            (Value::Object(members), Mutation::Rename) => *members = renamed(members, &self.token),
            (Value::Object(members), Mutation::Type) => {
                members[&self.token] = swapped(&members[&self.token]);
            }
            (Value::Array(elements), _) => {
                let index: usize = self.token.parse().expect("an index");
                elements[index] = swapped(&elements[index]);
            }
            (parent, _) => unreachable!("{parent} has no members"),
        }
        body
    }
}

fn renamed(members: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let rename = |key: &String| {
        if key == name {
            format!("{key}_")
        } else {
            key.clone()
        }
    };
    members
        .iter()
        .map(|(key, value)| (rename(key), value.clone()))
        .collect()
}

fn swapped(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!(value.to_string()),
        // Servers that use protocol buffers accept numbers as strings.
        Value::Number(_) => json!(true),
        Value::String(_) => json!(7),
        _ => json!({}),
    }
}

/// Finds all positions that can be mutated, and the locations that are free.
fn visit(
    value: &Value,
    free: &Free,
    at: &Pointer,
    place: &str,
    found: &mut Vec<Position>,
    left: &mut BTreeSet<String>,
) {
    if free.whole.contains(at.as_str()) {
        left.insert(place.to_owned());
        return;
    }
    let is_partly_free = free.rest.contains(at.as_str());
    let described = |name: &str| !is_partly_free || name == "type";
    for (token, child, is_member) in children(value)
        .into_iter()
        .filter(|(token, ..)| described(token))
    {
        let place = if is_member {
            format!("{place}/{token}")
        } else {
            format!("{place}/{}", what(child))
        };
        let is_scalar = !child.is_object() && !child.is_array();
        if is_member || is_scalar {
            let (parent, token, place) = (at.clone(), token.clone(), place.clone());
            found.push(Position {
                parent,
                token,
                place,
                is_member,
                is_scalar,
            });
        }
        visit(child, free, &at.member(&token), &place, found, left);
    }
}

/// Returns the token and value of each child, and `true` if it is a member of an object.
fn children(value: &Value) -> Vec<(String, &Value, bool)> {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, child)| (key.clone(), child, true))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, child)| (index.to_string(), child, false))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the role and the type of an element.
fn what(element: &Value) -> String {
    let says = |key: &str| element.get(key).and_then(Value::as_str);
    let said: Vec<&str> = [says("role"), says("type")].into_iter().flatten().collect();
    if said.is_empty() {
        "*".to_owned()
    } else {
        said.join(" ")
    }
}

/// Pointers of a body at which the schema describes neither names nor values.
#[derive(Default)]
struct Free {
    whole: BTreeSet<String>,
    /// All members except the listed ones; these are not distinguished here.
    rest: BTreeSet<String>,
}

impl Free {
    fn collect(&mut self, root: &Value, schema: &Value, value: &Value, at: &Pointer) {
        let schema = follow(root, schema);
        match &schema["x-reqc-free"] {
            Value::Bool(true) if !value.is_string() => drop(self.whole.insert(at.to_string())),
            Value::String(_) => drop(self.rest.insert(at.to_string())),
            _ => {}
        }
        for part in parts(root, schema, value) {
            self.collect(root, part, value, at);
        }
        for (token, child, _) in children(value) {
            let described = match value {
                Value::Array(_) => schema.get("items"),
                _ => schema["properties"]
                    .get(&token)
                    .or_else(|| schema.get("additionalProperties")),
            };
            if let Some(described) = described {
                self.collect(root, described, child, &at.member(&token));
            }
        }
    }
}

fn follow<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    while let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        schema = root
            .pointer(target.trim_start_matches('#'))
            .expect("references lead somewhere");
    }
    schema
}

/// Returns the schemas that describe the same value as part of this one. If there are alternatives,
/// includes only the one that the value selects.
fn parts<'s>(root: &'s Value, schema: &'s Value, value: &Value) -> Vec<&'s Value> {
    let list = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let member = schema["x-reqc-discriminator"].as_str();
    let picked = |branch: &&Value| {
        let given = member
            .and_then(|member| value.get(member))
            .unwrap_or(&schema["x-reqc-discriminator-default"]);
        let property = member.map(|member| &follow(root, branch)["properties"][member]);
        property.is_some_and(|it| {
            &it["const"] == given || it["enum"].as_array().is_some_and(|all| all.contains(given))
        })
    };
    let conditional = ["then", "else"]
        .into_iter()
        .filter_map(|key| schema.get(key));
    list("allOf")
        .chain(list("anyOf"))
        .chain(list("oneOf").filter(picked))
        .chain(conditional)
        .collect()
}
