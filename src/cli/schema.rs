//! `reqc schema`: the JSON Schemas of files, reports and request bodies.

use serde_json::{Value, json};

use super::args::Format;
use super::options::Options;
use super::{Failure, Outcome, Status, Terminal};
use crate::diag::did_you_mean;
use crate::provider::WireFormat;
use crate::system::Embedded;
use crate::text::text;
use crate::world::World;

/// The schemas for files that people write and for reqc's reports.
const NAMES: [&str; 8] = [
    "profile",
    "provider",
    "context",
    "rosters",
    "tools",
    "model-families",
    "reqc",
    "report",
];

pub(super) fn run(options: &Options, name: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let bundled = Embedded::bundled();
    if let Some(name) = name {
        let known = names()
            .find(|known| *known == name)
            .ok_or_else(|| unknown(name))?;
        terminal.script(&schema(&bundled, known));
        return Ok(Status::Clean);
    }
    let schemas: Vec<(&str, String)> = names()
        .map(|name| (name, title(&schema(&bundled, name))))
        .collect();
    if options.format == Format::Json {
        let values = schemas
            .iter()
            .map(|(name, title)| json!({"name": name, "title": title}));
        terminal.json(&values.collect());
        return Ok(Status::Clean);
    }
    for (name, title) in schemas {
        terminal.text(&text!("{:<26} {}\n", name, title));
    }
    Ok(Status::Clean)
}

/// Returns the names of all schemas: first the schemas of files, then those of wire formats.
fn names() -> impl Iterator<Item = &'static str> {
    NAMES
        .into_iter()
        .chain(WireFormat::ALL.map(WireFormat::name))
}

fn schema(bundled: &Embedded, name: &str) -> String {
    let folder = if NAMES.contains(&name) {
        "schemas"
    } else {
        "schemas/wire"
    };
    let bytes = bundled
        .read(&format!("{folder}/{name}.schema.json"))
        .expect("every schema is embedded");
    String::from_utf8(bytes).expect("schemas are text")
}

fn title(schema: &str) -> String {
    let schema: Value = serde_json::from_str(schema).expect("schemas are JSON");
    schema["title"].as_str().unwrap_or_default().to_owned()
}

fn unknown(name: &str) -> Failure {
    let help = did_you_mean(name, names());
    Failure::new(format!("there is no schema `{name}`"))
        .help(help.unwrap_or_else(|| "`reqc schema` lists all names".to_owned()))
}
