//! Reads tools from bodies of all wire formats.

use serde_json::{Map, Value, json};

use super::lost::Lost;
use crate::conversation::Tool;

/// The names of the member that contains a tool schema.
const SCHEMA: [&str; 4] = [
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
];

pub(super) fn read<'b>(tools: Option<&'b Value>, lost: &mut Lost<'b>) -> Vec<Tool> {
    let tools = tools
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    tools.iter().flat_map(|tool| group(tool, lost)).collect()
}

/// Reads the tools in one list element. Elements of Gemini's list may declare several tools.
fn group<'b>(tool: &'b Value, lost: &mut Lost<'b>) -> Vec<Tool> {
    let names = ["functionDeclarations", "function_declarations"];
    match names
        .into_iter()
        .find_map(|name| tool.get(name)?.as_array())
    {
        Some(declarations) => {
            lost.rest(tool, &names, HOSTED);
            declarations
                .iter()
                .filter_map(|declaration| one(declaration, lost))
                .collect()
        }
        None => one(tool, lost).into_iter().collect(),
    }
}

const HOSTED: &str =
    "a context can contain only function tools, not server tools or free-text tools";

fn one<'b>(tool: &'b Value, lost: &mut Lost<'b>) -> Option<Tool> {
    let function = tool.get("function").unwrap_or(tool);
    let is_function = matches!(
        tool.get("type").and_then(Value::as_str),
        None | Some("function" | "custom")
    );
    let Some(name) = function
        .get("name")
        .and_then(Value::as_str)
        .filter(|_| is_function)
    else {
        lost.tell(tool, HOSTED);
        return None;
    };
    // A default value need not be kept.
    let strict: &[&str] = if function.get("strict") == Some(&Value::Bool(false)) {
        &["strict"]
    } else {
        &[]
    };
    let read = [
        &["type", "function", "name", "description"],
        &SCHEMA[..],
        strict,
    ]
    .concat();
    lost.rest(tool, &read, "contexts do not support this");
    if tool.get("function").is_some() {
        lost.rest(function, &read, "contexts do not support this");
    }
    let description = function
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(Tool {
        name: name.into(),
        description: description.into(),
        schema: schema(function),
    })
}

/// Returns a tool's argument schema. A tool without a schema has no arguments.
pub(super) fn schema(function: &Value) -> Map<String, Value> {
    let written = SCHEMA
        .into_iter()
        .find_map(|name| function.get(name)?.as_object().cloned());
    let schema = written.or_else(|| {
        json!({"type": "object", "properties": {}})
            .as_object()
            .cloned()
    });
    let mut schema = schema.unwrap_or_default();
    schema.values_mut().for_each(lower_types);
    lower_type(&mut schema);
    schema
}

/// Converts types to lower case: Gemini's own dialect writes `OBJECT`.
fn lower_types(value: &mut Value) {
    match value {
        Value::Object(members) => {
            lower_type(members);
            members.values_mut().for_each(lower_types);
        }
        Value::Array(elements) => elements.iter_mut().for_each(lower_types),
        _ => {}
    }
}

fn lower_type(schema: &mut Map<String, Value>) {
    const TYPES: [&str; 7] = [
        "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL",
    ];
    if let Some(Value::String(name)) = schema.get_mut("type")
        && TYPES.contains(&name.as_str())
    {
        *name = name.to_ascii_lowercase();
    }
}
