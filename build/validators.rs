//! Splits the bundled wire schemas into parts, and generates Rust code with a validator for each
//! member of a body.
//!
//! A body is checked member by member, so that a value that occurs in many bodies is checked only
//! once. Constraints on several members together form one more validator. The types are defined in
//! `src/check/schema/bundled.rs`, which includes the generated code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::extend::extend;

const SCHEMA_ENDING: &str = ".schema.json";
const EXTENSIONS_ENDING: &str = ".extensions.json";

/// Keywords in a root schema that are checked separately for each member, or that do not constrain
/// a body.
const APART: [&str; 10] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "$defs",
];
/// Keywords in a root schema that constrain several members together.
const TOGETHER: [&str; 2] = ["allOf", "dependentSchemas"];
/// Keywords that apply to unnamed members, or refer to other locations.
const UNBOUNDED: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
];
/// Keywords that do not constrain values.
const ANNOTATIONS: [&str; 5] = ["title", "description", "$comment", "examples", "format"];

/// Returns the generated source code for all schemas in a folder.
pub(crate) fn generate(folder: &Path) -> String {
    let mut source = Source::default();
    let files = fs::read_dir(folder)
        .expect("a folder of schemas")
        .map(|file| file.expect("a schema").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    for schema in files {
        let name = schema
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let Some(format) = name.strip_suffix(SCHEMA_ENDING) else {
            continue;
        };
        let extensions = schema.with_file_name(format!("{format}{EXTENSIONS_ENDING}"));
        let plain = read(&schema);
        source.add(format, &schema, None, &plain);
        if extensions.exists() {
            let listed = read(&extensions);
            for name in listed
                .as_object()
                .expect("an object")
                .keys()
                .filter(|name| !name.starts_with('$'))
            {
                let mut extended = plain.clone();
                extend(&mut extended, &listed, std::slice::from_ref(name)).expect("few extensions");
                source.add(format, &schema, Some((&extensions, name)), &extended);
            }
        }
    }
    source.finish()
}

/// Returns the SHA-256 digest of a file's text, with normalised line endings, as an array literal.
fn digest(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a readable file");
    let digest: [u8; 32] = Sha256::digest(text.replace("\r\n", "\n").as_bytes()).into();
    format!("{digest:?}")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a readable file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The source code that is being generated.
#[derive(Default)]
struct Source {
    /// The index of each validator, by the JSON of its schema.
    validators: BTreeMap<String, usize>,
    /// The index of each regular expression. Equal expressions are compiled only once.
    patterns: BTreeMap<String, usize>,
    /// The entries in the generated table.
    entries: String,
}

impl Source {
    /// Adds a schema. `extension` contains the path and the name of the schema's extension, if the
    /// schema is an extension.
    fn add(&mut self, format: &str, path: &Path, extension: Option<(&Path, &str)>, schema: &Value) {
        let root = schema.as_object().expect("an object");
        let is_closed = root.get("type") == Some(&"object".into())
            && root.get("additionalProperties") == Some(&false.into());
        let is_known = |key: &str| {
            APART.contains(&key) || TOGETHER.contains(&key) || key.starts_with("x-reqc-")
        };
        let unknown = root.keys().find(|key| !is_known(key));
        assert!(
            is_closed,
            "{}: the root is not a closed object",
            path.display()
        );
        assert_eq!(
            unknown,
            None,
            "{}: a keyword in the root cannot be checked member by member",
            path.display()
        );
        let mut members: Vec<(&String, usize)> = root["properties"]
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, member)| (name, self.validator(schema, member)))
            .collect();
        members.sort_by_key(|(name, _)| (name.len(), *name));
        let together: Map<String, Value> = root
            .iter()
            .filter(|(key, _)| TOGETHER.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let together = (!together.is_empty())
            .then(|| Value::Object(together))
            .map(|keywords| {
                let mut names = BTreeSet::new();
                assert!(
                    collect_names(&keywords, &mut names),
                    "{}: {keywords} applies to members that it does not name",
                    path.display()
                );
                names.retain(|name| root["properties"].get(name).is_some());
                let looked_at = names
                    .intersection(&names_of_properties(&keywords))
                    .cloned()
                    .collect::<Vec<_>>();
                (names, looked_at, self.validator(schema, &keywords))
            });

        let entry = &mut self.entries;
        let required: Vec<&str> = root
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let _ = writeln!(
            entry,
            "    Bundled {{\n        format: {format:?},\n        schema: {},",
            digest(path)
        );
        let extension = extension
            .map(|(file, name)| format!("Extension {{ file: {}, name: {name:?} }}", digest(file)));
        let _ = writeln!(entry, "        extension: {},", option(extension));
        let _ = writeln!(
            entry,
            "        required: &{required:?},\n        members: &["
        );
        for (name, id) in members {
            let _ = writeln!(entry, "            ({name:?}, {}),", check(id));
        }
        let together = together.map(|(names, looked_at, id)| {
            let names: Vec<String> = names.into_iter().collect();
            format!(
                "Together {{ names: &{names:?}, looked_at: &{looked_at:?}, check: {} }}",
                check(id)
            )
        });
        let _ = writeln!(
            entry,
            "        ],\n        together: {},\n    }},",
            option(together)
        );
    }

    /// Returns the index of the validator for a part of a schema. Equal parts share a validator.
    fn validator(&mut self, schema: &Value, part: &Value) -> usize {
        let mut alone = part.clone();
        let mut definitions = BTreeMap::new();
        collect_definitions(schema, part, &mut definitions);
        if let (false, Value::Object(keywords)) = (definitions.is_empty(), &mut alone) {
            keywords.insert("$defs".to_owned(), definitions.into_iter().collect());
        }
        strip_annotations(&mut alone);
        self.share_patterns(&mut alone);
        let next = self.validators.len();
        *self.validators.entry(alone.to_string()).or_insert(next)
    }

    /// Replaces each `pattern` with a `format`, whose function matches the pattern.
    fn share_patterns(&mut self, schema: &mut Value) {
        for_each_schema(schema, &mut |keywords| {
            if let Some(Value::String(pattern)) = keywords.remove("pattern") {
                let next = self.patterns.len();
                let id = *self.patterns.entry(pattern).or_insert(next);
                keywords.insert("format".to_owned(), pattern_name(id).into());
            }
        });
    }

    fn finish(self) -> String {
        let mut source = String::new();
        for (pattern, id) in &self.patterns {
            let (schema, name) = (
                serde_json::json!({"pattern": pattern}).to_string(),
                pattern_name(*id),
            );
            let _ = writeln!(source, "{}\nstruct Pattern{id};", attribute(&schema, ""));
            let body = format!("Pattern{id}::is_valid(&Value::from(text))");
            let _ = writeln!(source, "fn {name}(text: &str) -> bool {{ {body} }}");
        }
        for (schema, id) in self.validators {
            let used = self.patterns.values().map(|id| pattern_name(*id));
            let used = used.filter(|name| schema.contains(&format!("{name:?}")));
            let formats: Vec<String> = used
                .map(|name| format!("{name:?} => crate::check::schema::bundled::{name}"))
                .collect();
            let formats = format!(
                "validate_formats = true, formats = {{ {} }}, ",
                formats.join(", ")
            );
            let _ = writeln!(source, "{}\nstruct Part{id};", attribute(&schema, &formats));
        }
        let entries = self.entries;
        let _ = writeln!(source, "static ALL: &[Bundled] = &[\n{entries}];");
        source
    }
}

fn option(value: Option<String>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("Some({value})"))
}

fn check(id: usize) -> String {
    format!("Check {{ id: CheckId({id}), accepts: Part{id}::is_valid }}")
}

/// Collects the definitions to which a part of a schema refers, directly or indirectly.
fn collect_definitions(schema: &Value, part: &Value, found: &mut BTreeMap<String, Value>) {
    match part {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).map(|target| {
                target
                    .strip_prefix("#/$defs/")
                    .unwrap_or_else(|| panic!("{target} is not a definition of the file"))
            });
            if let Some(name) = name.filter(|name| !found.contains_key(*name)) {
                let definition = &schema["$defs"][name];
                found.insert(name.to_owned(), definition.clone());
                collect_definitions(schema, definition, found);
            }
            members
                .values()
                .for_each(|member| collect_definitions(schema, member, found));
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| collect_definitions(schema, element, found)),
        _ => {}
    }
}

/// Returns the attribute that turns a struct into a validator.
fn attribute(schema: &str, options: &str) -> String {
    let methods = "methods = { is_valid = true, validate = false, iter_errors = false }";
    format!(
        "#[jsonschema::validator(schema = {schema:?}, draft = Draft202012, {options}{methods})]"
    )
}

/// Returns the name of the function for a regular expression, which is also the name of its format.
fn pattern_name(id: usize) -> String {
    format!("pattern_{id}")
}

/// Removes keywords that do not constrain values.
fn strip_annotations(schema: &mut Value) {
    for_each_schema(schema, &mut |keywords| {
        keywords.retain(|keyword, _| {
            !ANNOTATIONS.contains(&keyword.as_str()) && !keyword.starts_with("x-reqc-")
        });
    });
}

/// Applies a change to a schema and to all schemas in it. The keys under `properties` and similar
/// keywords are names of members, not keywords, so they are left unchanged.
fn for_each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(keywords) = schema else {
        return;
    };
    change(keywords);
    for (keyword, value) in keywords.iter_mut() {
        match (keyword.as_str(), value) {
            (
                "properties" | "$defs" | "dependentSchemas" | "patternProperties",
                Value::Object(schemas),
            ) => {
                schemas
                    .values_mut()
                    .for_each(|schema| for_each_schema(schema, change));
            }
            ("const" | "enum" | "default", _) => {}
            (_, Value::Array(schemas)) => schemas
                .iter_mut()
                .for_each(|schema| for_each_schema(schema, change)),
            (_, schema) => for_each_schema(schema, change),
        }
    }
}

/// Collects all keys and strings in a schema, which include the names of all members that it
/// mentions. Returns `false` if the schema may apply to other members, too.
fn collect_names(schema: &Value, names: &mut BTreeSet<String>) -> bool {
    match schema {
        Value::String(text) => {
            names.insert(text.clone());
            true
        }
        Value::Array(elements) => elements.iter().all(|element| collect_names(element, names)),
        Value::Object(members) => members.iter().all(|(key, value)| {
            names.insert(key.clone());
            let compares_objects =
                matches!(key.as_str(), "const" | "enum") && !holds_only_leaves(value);
            !compares_objects && !UNBOUNDED.contains(&key.as_str()) && collect_names(value, names)
        }),
        _ => true,
    }
}

/// Returns the names of the members whose values a schema constrains. For other members, the schema
/// can only require their presence or absence.
fn names_of_properties(schema: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for_each_schema(&mut schema.clone(), &mut |keywords| {
        let properties = keywords.get("properties").and_then(Value::as_object);
        names.extend(properties.into_iter().flat_map(Map::keys).cloned());
    });
    names
}

fn holds_only_leaves(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().all(holds_only_leaves),
        Value::Object(_) => false,
        _ => true,
    }
}
