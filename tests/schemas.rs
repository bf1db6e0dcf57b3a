//! The schemas for editors agree with the code: both accept every correct file, and both reject the
//! same wrong files.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads schemas and cases and runs the binary"
)]

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use jsonschema::Validator;
use reqc::check::check_families;
use reqc::compile::all_rules;
use reqc::context::{self, Origins};
use reqc::conversation::{ContentKind, ItemKind};
use reqc::profile::{self, Breakpoint, MATCH_KEYS};
use reqc::provider::{ApiHeaders, ClientApi, NamedServer, Server, WireFormat, check_instances};
use reqc::repo::{
    self, ALLOW_KEYS, BUDGET_KEYS, CONFIG_KEYS, EXTENSION_KEYS, FAMILIES_KEYS, FAMILY_KEYS,
    INSTANCE_KEYS, LayerKind, LoadOptions, PRICE_KEYS, REFUSES_KEYS, ROSTER_KEYS, ROSTERS_KEYS,
    SERVER_KEYS, TAKES_KEYS, TOOL_KEYS, TOOLS_KEYS,
};
use reqc::source::{SourceText, Sources};
use reqc::system::Embedded;
use reqc::toml::{self, Kind, Node, Table};
use reqc::world::{MemoryWorld, World};
use serde_json::{Map, Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&read(&root().join(format!("schemas/{name}.schema.json"))))
        .expect("schemas are JSON")
}

fn validator(name: &str) -> Validator {
    jsonschema::validator_for(&schema(name)).expect("a valid schema")
}

/// Returns the name of the schema for files at this path.
fn name_of(path: &str) -> Option<&'static str> {
    let is_toml = path.ends_with(".toml");
    match path.split('/').next()? {
        "agents" if is_toml => Some("profile"),
        "providers" if is_toml => Some("provider"),
        "contexts" if path.ends_with(".json") => Some("context"),
        "reqc.toml" => Some("reqc"),
        "rosters.toml" => Some("rosters"),
        "tools.toml" => Some("tools"),
        "model-families.toml" => Some("model-families"),
        _ => None,
    }
}

/// Returns the content of a file; `None` if it is neither TOML nor JSON.
fn value(path: &str, text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    match path.ends_with(".toml") {
        true => toml::parse(&text).ok().map(|table| object(&table)),
        false => serde_json::from_str(&text).ok(),
    }
}

fn object(table: &Table) -> Value {
    Value::Object(
        table
            .entries
            .iter()
            .map(|(key, node)| (key.name.clone(), json(node)))
            .collect(),
    )
}

fn json(node: &Node) -> Value {
    match &node.kind {
        Kind::String(text) | Kind::Datetime(text) => json!(text),
        Kind::Integer(number) => json!(number),
        Kind::Float(number) => json!(number),
        Kind::Boolean(flag) => json!(flag),
        Kind::Array(elements) => elements.iter().map(json).collect(),
        Kind::Table(table) => object(table),
    }
}

fn assert_valid(path: &str, text: &str) {
    let name = name_of(path).unwrap_or_else(|| panic!("{path} has no schema"));
    let value = value(path, text).unwrap_or_else(|| panic!("{path} cannot be parsed"));
    let problems: Vec<String> = validator(name)
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{path}: {problems:#?}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder)
        .expect("below")
        .to_string_lossy()
        .replace('\\', "/")
}

#[test]
fn every_schema_is_a_valid_schema() {
    let schemas = files(&root().join("schemas"));
    let schemas: Vec<PathBuf> = schemas
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(".schema.json"))
        .collect();
    assert_eq!(schemas.len(), 8 + WireFormat::ALL.len());
    for path in schemas {
        let schema: Value = serde_json::from_str(&read(&path)).expect("JSON");
        jsonschema::meta::validate(&schema)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        jsonschema::validator_for(&schema)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(
            schema["title"].is_string() && schema["description"].is_string(),
            "{}",
            path.display()
        );
    }
}

/// Returns the names of an object's properties, in alphabetical order.
fn properties(schema: &Value, pointer: &str) -> Vec<String> {
    let object = schema
        .pointer(pointer)
        .unwrap_or_else(|| panic!("nothing at {pointer}"));
    assert!(
        object["additionalProperties"] != true && object["additionalProperties"] != Value::Null,
        "{pointer} is open"
    );
    let properties = object["properties"].as_object().expect("properties");
    for (name, property) in properties {
        let described = property.get("$ref").is_some() || property["description"].is_string();
        assert!(described, "{pointer}: `{name}` has no description");
    }
    sorted(properties.keys().map(String::as_str))
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names
        .into_iter()
        .map(str::to_owned)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn choices(schema: &Value, pointer: &str) -> Vec<String> {
    let values = schema
        .pointer(pointer)
        .and_then(Value::as_array)
        .unwrap_or_else(|| panic!("nothing at {pointer}"));
    sorted(values.iter().map(|value| value.as_str().expect("a string")))
}

#[test]
fn the_schemas_have_the_keys_of_the_code() {
    let [profile, provider, context, reqc] = ["profile", "provider", "context", "reqc"].map(schema);
    assert_eq!(properties(&profile, ""), sorted(profile::KEYS));
    assert_eq!(
        properties(&profile, "/properties/match"),
        sorted(MATCH_KEYS)
    );
    assert_eq!(properties(&provider, ""), sorted(INSTANCE_KEYS));
    assert_eq!(properties(&context, ""), sorted(context::KEYS));
    assert_eq!(properties(&reqc, ""), sorted(CONFIG_KEYS));
    assert_eq!(properties(&reqc, "/definitions/allow"), sorted(ALLOW_KEYS));
    assert_eq!(
        properties(&reqc, "/definitions/extension"),
        sorted(EXTENSION_KEYS)
    );
    assert_eq!(
        properties(&reqc, "/definitions/budget"),
        sorted(BUDGET_KEYS)
    );
    let rosters = schema("rosters");
    assert_eq!(properties(&rosters, ""), sorted(ROSTERS_KEYS));
    assert_eq!(
        properties(&rosters, "/definitions/roster"),
        sorted(ROSTER_KEYS)
    );
    let tools = schema("tools");
    assert_eq!(properties(&tools, ""), sorted(TOOLS_KEYS));
    assert_eq!(properties(&tools, "/definitions/tool"), sorted(TOOL_KEYS));
    assert_eq!(
        properties(&tools, "/definitions/server"),
        sorted(SERVER_KEYS)
    );
    let families = schema("model-families");
    assert_eq!(properties(&families, ""), sorted(FAMILIES_KEYS));
    assert_eq!(
        properties(&families, "/definitions/family"),
        sorted(FAMILY_KEYS)
    );
    assert_eq!(
        properties(&families, "/definitions/refuses"),
        sorted(REFUSES_KEYS)
    );
    assert_eq!(
        properties(&families, "/definitions/takes"),
        sorted(TAKES_KEYS)
    );
    assert_eq!(
        properties(&families, "/definitions/price"),
        sorted(PRICE_KEYS)
    );
}

#[test]
fn the_schemas_have_the_choices_of_the_code() {
    let [profile, provider, context, reqc] = ["profile", "provider", "context", "reqc"].map(schema);
    assert_eq!(
        profile["properties"]["schema_version"]["maximum"],
        profile::SCHEMA_VERSION
    );
    assert_eq!(
        choices(&profile, "/properties/cache_breakpoints/items/enum"),
        sorted(Breakpoint::ALL.map(Breakpoint::name))
    );
    assert_eq!(
        choices(&profile, "/properties/leaves_out/items/enum"),
        sorted(ContentKind::ALL.map(ContentKind::name))
    );
    let families = schema("model-families");
    let servers = Server::ALL
        .into_iter()
        .filter(|server| *server != Server::Unknown);
    assert_eq!(
        choices(
            &families,
            "/definitions/family/properties/servers/items/anyOf/0/enum"
        ),
        sorted(
            servers
                .map(Server::name)
                .chain(ApiHeaders::names_of_addresses())
        )
    );
    assert_eq!(
        choices(&families, "/definitions/wires/items/enum"),
        sorted(WireFormat::ALL.map(WireFormat::name))
    );
    assert_eq!(
        choices(&provider, "/properties/client_api/enum"),
        sorted(ClientApi::ALL.map(ClientApi::name))
    );
    assert_eq!(
        choices(&provider, "/properties/server/enum"),
        sorted(NamedServer::names())
    );
    let kinds = ItemKind::ALL.iter().map(|kind| kind.name());
    assert_eq!(
        choices(&context, "/definitions/system_item/properties/kind/enum"),
        sorted(kinds)
    );
    let code = reqc["definitions"]["allow"]["properties"]["code"].clone();
    assert!(
        reqc["properties"]["rules"]["patternProperties"]
            .get(code["pattern"].as_str().expect("text"))
            .is_some()
    );
    let code = jsonschema::validator_for(&code).expect("a valid schema");
    for rule in all_rules() {
        let family = rule.code.split('/').next().expect("a family");
        assert!(
            code.is_valid(&json!(rule.code)) && code.is_valid(&json!(format!("{family}/*"))),
            "{}",
            rule.code
        );
    }
    assert!(!code.is_valid(&json!("key")) && !code.is_valid(&json!("*")));
}

#[test]
fn every_bundled_file_is_valid() {
    let bundled = Embedded::bundled();
    let mut seen = BTreeSet::new();
    for folder in ["agents", "providers", "contexts"] {
        for entry in bundled
            .walk(folder)
            .entries
            .into_iter()
            .filter(|entry| name_of(&entry.path).is_some())
        {
            let text =
                String::from_utf8(bundled.read(&entry.path).expect("it was listed")).expect("text");
            assert_valid(&entry.path, &text);
            seen.insert(folder);
        }
    }
    assert_eq!(seen.len(), 3);
    assert_valid("reqc.toml", &read(&root().join("reqc.toml")));
    assert_valid(
        "model-families.toml",
        &read(&root().join("model-families.toml")),
    );
}

#[test]
fn what_init_writes_is_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Command::new(program::path())
        .arg("init")
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    assert!(run.status.success());
    let mut seen = BTreeSet::new();
    for path in files(folder.path()) {
        let name = relative(&path, folder.path());
        if let Some(schema) = name_of(&name) {
            assert_valid(&name, &read(&path));
            seen.insert(schema);
        }
    }
    assert_eq!(sorted(seen), sorted(["profile", "context", "reqc"]));
    // The new `reqc.toml` shows settings as comments.
    let settings = read(&folder.path().join("reqc.toml"));
    let lines = settings.lines().map(|line| {
        line.strip_prefix("# ")
            .filter(|line| line.contains(['=', '[']))
            .unwrap_or("")
    });
    let shown: Vec<&str> = lines.filter(|line| toml::parse(line).is_ok()).collect();
    assert!(shown.len() > 6, "{shown:?}");
    assert_valid("reqc.toml", &shown.join("\n"));
}

/// Mistakes that a schema cannot detect, such as an invalid glob or a device name.
const ONLY_REQC_KNOWS: [&str; 6] = [
    "config/bad-glob/reqc.toml",
    "config/glob-too-long/reqc.toml",
    "context/device-name/contexts/mine.json",
    "models/bad-glob/model-families.toml",
    "profile/glob-too-deep/agents/a.toml",
    "roster/bad-glob/agents/a.toml",
];

#[test]
fn what_cases_show_to_be_wrong_is_refused() {
    let cases = root().join("tests/cases");
    let codes = [
        "key/unknown",
        "key/wrong-type",
        "key/invalid-value",
        "context/invalid",
        "context/unknown-key",
    ];
    let (mut refused, mut accepted) = (0, 0);
    for path in files(&cases) {
        let full = relative(&path, &cases);
        let case = path
            .ancestors()
            .find(|folder| folder.join("report.snap").exists());
        let Some(case) = case else { continue };
        let name = relative(&path, case);
        let Some(schema) = name_of(&name) else {
            continue;
        };
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let Some(value) = value(&name, &text) else {
            continue;
        };
        let listed = fs::read_to_string(case.join("expected")).unwrap_or_default();
        let marks: Vec<&str> = listed
            .lines()
            .filter(|line| line.starts_with(&format!("{name}:")))
            .collect();
        let is_marked = |code: &&str| {
            text.contains(&format!(" {code}")) || marks.iter().any(|mark| mark.ends_with(code))
        };
        let is_wrong = codes.iter().any(is_marked) && !ONLY_REQC_KNOWS.contains(&full.as_str());
        if is_wrong {
            assert!(!validator(schema).is_valid(&value), "{full} is accepted");
            refused += 1;
        } else if !text.contains("#~") && marks.is_empty() {
            let problems: Vec<String> = validator(schema)
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert!(problems.is_empty(), "{full}: {problems:#?}");
            accepted += 1;
        }
    }
    assert!(
        refused > 20 && accepted > 50,
        "{refused} refused, {accepted} accepted"
    );
}

/// Values of every type; most of them are wrong for any given key.
const VALUES: [&str; 16] = [
    "true",
    "1",
    "2",
    "1.5",
    "\"text\"",
    "\"\"",
    "\"5m\"",
    "\"localhost:8080\"",
    "\"https://a.example:8080/v1\"",
    "[]",
    "[\"text\"]",
    "[1]",
    "[{}]",
    "{}",
    "{ zzz = 1 }",
    "2027-01-31",
];

/// Returns the findings about a single file, read without any other files.
fn findings(path: &str, text: &str) -> Vec<String> {
    let own = MemoryWorld::from_iter([(path, text)]);
    if path == "tools.toml" {
        let (_, findings) = repo::read_tools(&own, path, &mut Sources::default());
        return findings
            .iter()
            .map(|finding| finding.message.clone())
            .collect();
    }
    let loaded = repo::load(
        Arc::new(own),
        Arc::new(MemoryWorld::default()),
        LoadOptions::default(),
    );
    let mut findings = loaded.findings;
    findings.extend(profile::read_all(&loaded.repo).1);
    findings.extend(check_instances(&loaded.repo));
    findings.extend(check_families(&loaded.repo));
    findings.retain(|finding| finding.rule.code != "provider/extends");
    findings
        .iter()
        .map(|finding| finding.message.clone())
        .collect()
}

/// Compares code and schema for each key with each value, appended to lines that are correct on
/// their own. `skip` selects the pairs that only one of the two can check.
fn compare(path: &str, before: &str, keys: &[&str], skip: impl Fn(&str, &str) -> bool) {
    let validator = validator(name_of(path).expect("a schema"));
    assert!(findings(path, before).is_empty(), "{before}");
    for key in keys.iter().chain(&["zzz"]) {
        let others: Vec<&str> = before
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")))
            .collect();
        for written in VALUES.into_iter().filter(|written| !skip(key, written)) {
            let text = format!("{}\n{key} = {written}\n", others.join("\n"));
            let (found, value) = (findings(path, &text), value(path, &text).expect("TOML"));
            let problems: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(
                found.is_empty(),
                problems.is_empty(),
                "{path}:\n{text}\n{found:#?}\n{problems:#?}"
            );
        }
    }
}

#[test]
fn schema_and_code_take_the_same_values() {
    // Schemas see a date as a string.
    let dates = |_: &str, written: &str| written == "2027-01-31";
    compare("agents/a.toml", "name = \"A\"", &profile::KEYS, dates);
    compare("agents/a.toml", "name = \"A\"\n[match]", &MATCH_KEYS, dates);
    compare(
        "providers/a.toml",
        "name = \"A\"\nurl = \"https://x\"\nclient_api = \"Claude\"",
        &INSTANCE_KEYS,
        dates,
    );
    compare("reqc.toml", "", &CONFIG_KEYS, dates);
    compare("reqc.toml", "[golden]", &["contexts"], dates);
    compare(
        "reqc.toml",
        "[rules]",
        &["\"key/unknown\"", "\"key/*\""],
        dates,
    );
    let allow = "[[allow]]\ncode = \"key/unknown\"\nreason = \"x\"";
    // An unknown code is not reported here but at the end of a run.
    let codes = |key: &str, written: &str| match key {
        "expires" => false,
        "code" => written.starts_with('"') || dates(key, written),
        _ => dates(key, written),
    };
    compare("reqc.toml", allow, &ALLOW_KEYS, codes);
    let extension = "[[extension]]\nprovider_instance = \"x\"\nfields = [\"/a\"]\nreason = \"x\"";
    compare("reqc.toml", extension, &EXTENSION_KEYS, dates);
    compare("reqc.toml", "[[budget]]\ntokens = 1", &BUDGET_KEYS, dates);
    compare("rosters.toml", "", &ROSTERS_KEYS, dates);
    compare("tools.toml", "", &TOOLS_KEYS, dates);
    compare("model-families.toml", "", &FAMILIES_KEYS, dates);
    // `seen` must be a date.
    let days = |key: &str, written: &str| key != "seen" && dates(key, written);
    let family = "[[family]]\nname = \"x\"\nmodels = [\"x*\"]\nwires = [\"openai-chat\"]\nsource = \"x\"\nseen = 2026-11-22";
    compare("model-families.toml", family, &FAMILY_KEYS, days);
    compare(
        "model-families.toml",
        &format!("{family}\n[[family.refuses]]\nat = \"/x\""),
        &REFUSES_KEYS,
        days,
    );
    compare(
        "model-families.toml",
        &format!("{family}\n[[family.takes]]\nat = \"/x\"\nmost = 1"),
        &TAKES_KEYS,
        days,
    );
    compare(
        "model-families.toml",
        &format!("{family}\n[family.price]\ninput = 1\noutput = 1"),
        &PRICE_KEYS,
        days,
    );
    // Files that a path refers to are checked when they are read.
    let paths = |key: &str, written: &str| {
        dates(key, written)
            || (["schema_file", "working_directory"].contains(&key) && written.starts_with('"'))
    };
    compare(
        "tools.toml",
        "[[tool]]\nname = \"x\"\ndescription = \"x\"\ncommand = [\"x\"]",
        &TOOL_KEYS,
        paths,
    );
    compare(
        "tools.toml",
        "[[server]]\nname = \"x\"\ncommand = [\"x\"]",
        &SERVER_KEYS,
        paths,
    );
    compare(
        "tools.toml",
        "[[server]]\nname = \"x\"\nurl = \"https://x\"\napi_key_ref = \"env:X\"",
        &SERVER_KEYS,
        paths,
    );
    compare(
        "rosters.toml",
        "[[roster]]\nname = \"x\"\nagents = [\"A\"]",
        &ROSTER_KEYS,
        dates,
    );
}

/// Returns every variant of a value with one member removed, replaced or added.
fn variants(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(members) => {
            let with = |key: &str, value: Value| {
                let mut members = members.clone();
                members.insert(key.to_owned(), value);
                Value::Object(members)
            };
            found.push(with("zzz", json!(1)));
            for (key, member) in members {
                let mut without = members.clone();
                without.shift_remove(key);
                found.push(Value::Object(without));
                let others = [
                    json!(null),
                    json!(true),
                    json!(1),
                    json!("text"),
                    json!(""),
                    json!([]),
                    json!([{}]),
                    json!({}),
                ];
                found.extend(others.into_iter().map(|other| with(key, other)));
                found.extend(
                    variants(member)
                        .into_iter()
                        .map(|variant| with(key, variant)),
                );
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                for variant in variants(element) {
                    let mut elements = elements.clone();
                    elements[index] = variant;
                    found.push(Value::Array(elements));
                }
            }
        }
        _ => {}
    }
    found
}

#[test]
fn schema_and_code_take_the_same_contexts() {
    let validator = validator("context");
    let file = Sources::default().add(
        "contexts/a.json",
        SourceText::from_bytes(b"{}").expect("text"),
    );
    let every_key = json!({
        "$schema": "x", "name": "a", "why": "x", "kind": "chat", "golden": true, "language": "Rust",
        "project": {"name": "p", "files": {"a.rs": "x"}},
        "tools": [{"name": "t", "description": "d", "schema": {}}],
        "system_layers": [{"name": "l", "priority": 1, "text": "x"}],
        "system_prompt": "omit",
        "files": [{"file_path": "a", "content": "x"}],
        "history": [
            {"role": "user", "content": "x"},
            {"kind": "workflow", "text": "x"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "x", "signature": "x", "origin": "Claude"},
                {"type": "redacted_thinking", "data": "x", "origin": "Claude"},
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "1", "name": "t", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "is_error": true, "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image", "data": "x", "media_type": "image/png", "is_url": false},
                ]},
                {"type": "image", "data": "x", "media_type": "image/png", "is_url": true},
            ]},
        ],
        "turns": [{
            "history": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}],
            "language": "C", "project": {"name": "q", "files": {}}, "files": [], "tools": [], "renew": true,
            "system_layers": [{"name": "l", "text": "x"}],
        }],
    });
    let completion =
        json!({"name": "a", "why": "x", "kind": "completion", "prefix": "x", "suffix": "y"});
    let mut compared = 0;
    for base in [every_key, completion] {
        for value in std::iter::once(base.clone()).chain(variants(&base)) {
            let mut findings = Vec::new();
            context::read(
                file,
                LayerKind::Own,
                &value.to_string(),
                &Origins::default(),
                &mut findings,
            );
            // A schema cannot detect these.
            findings.retain(|finding| {
                !["context/not-normal", "context/media-type"].contains(&finding.rule.code)
            });
            let found: Vec<&str> = findings
                .iter()
                .map(|finding| finding.message.as_str())
                .collect();
            let problems: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(
                found.is_empty(),
                problems.is_empty(),
                "{value:#}\n{found:#?}\n{problems:#?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn schemas_of_files_are_no_schemas_of_bodies() {
    let loaded = repo::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let names = loaded
        .repo
        .schemas
        .keys()
        .filter(|name| !name.ends_with(".extensions"));
    assert_eq!(
        sorted(names.map(AsRef::as_ref)),
        sorted(WireFormat::ALL.map(WireFormat::name))
    );
}

#[test]
fn the_command_prints_every_schema() {
    let run = |arguments: &[&str]| {
        let run = Command::new(program::path())
            .arg("schema")
            .args(arguments)
            .output()
            .expect("it runs");
        (
            run.status.code(),
            String::from_utf8(run.stdout).expect("text"),
            String::from_utf8(run.stderr).expect("text"),
        )
    };
    let (_, list, _) = run(&[]);
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names.len(), 8 + WireFormat::ALL.len());
    for name in names {
        let is_wire = WireFormat::ALL.iter().any(|wire| wire.name() == name);
        let path = if is_wire {
            format!("wire/{name}")
        } else {
            name.to_owned()
        };
        assert_eq!(
            run(&[name]),
            (
                Some(0),
                read(&root().join(format!("schemas/{path}.schema.json"))),
                String::new()
            )
        );
    }
    let listed: Vec<Map<String, Value>> =
        serde_json::from_str(&run(&["--format", "json"]).1).expect("JSON");
    assert_eq!(listed.len(), list.lines().count());
    let (status, printed, error) = run(&["profiel"]);
    assert_eq!((status, printed.as_str()), (Some(2), ""));
    assert!(error.contains("did you mean `profile`?"), "{error}");
}
