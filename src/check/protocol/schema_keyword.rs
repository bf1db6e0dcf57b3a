//! `protocol/schema-keyword`: keywords that Gemini rejects in its own schema dialect.

use serde_json::Value;

use super::references;
use super::schemas::is_of_type;
use super::tools::{DeclaredTool, text, tools};
use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::diag::Severity;
use crate::json::subschemas::visit;
use crate::provider::Server;

body_rule! {
    Error "protocol/schema-keyword", "a schema in Gemini's own format is rejected",
    "`parameters`, `response` and `responseSchema` accept a subset of OpenAPI, not JSON Schema. The API checks more than the names of \
     keywords:\n\n\
     * every schema has a `type` or `anyOf`\n\
     * an array has `items`, an object has `properties`, and `required` lists existing properties\n\
     * a keyword for one type is not used with another type: for example, `enum` is used only with strings\n\
     * `enum` must list at least one value, and none of them may be empty\n\
     * length limits are integers\n\n\
     The format's schema reports keywords outside the subset. `additionalProperties` is reported as a warning: the API rejected it until \
     2026, but Google's SDK has included it since. `oneOf` is not in Google's lists, although the API reads it (reported as a warning). \
     Reports say that the `format` of a string must be `enum` or `date-time`, but Google's page says that any value is allowed (a \
     warning). A function without parameters may have an empty `properties`: recordings of both APIs show it.\n\n\
     Vertex AI requires the parameters of a function to be an object. According to user reports, it rejects keywords such as `type` \
     and `default` next to `anyOf` (reported as a warning).\n\n\
     In `parametersJsonSchema` and `responseJsonSchema`, a `$ref` must point to an existing schema, and only `description` and `default` \
     may be next to it.\n\n\
     Apart from that, these two fields accept any JSON Schema: use them instead of `parameters`, `response` and `responseSchema`.\n\n\
     * wrong: `\"parameters\": { \"type\": \"object\", \"properties\": { \"tags\": { \"type\": \"array\" } } }`\n\
     * right: `\"parametersJsonSchema\": …` with the same schema",
    of GoogleGenerateContent;
    seen "2026-11" {
        "https://ai.google.dev/api/caching#Schema":
            "Gemini documents the fields of a schema; any value is allowed as `format`",
        "hideya/langchain-mcp-tools-ts#36":
            "*only 'enum' and 'date-time' are supported for STRING type*",
        "enechange/collmbo#195": "the same error",
        "google-gemini/gemini-cli#3178": "the same error, for `uri`",
        "weave-os/router#387": "Gemini 3.1 rejects requests with the formats `email` and `uri`, in June 2026",
        "pkg:pypi/google-genai@3.4#types.py": "Gemini's SDK lists the fields of `Schema`",
        "BerriAI/litellm#18442": "Vertex AI: *schema should be of type OBJECT*",
        "vercel/ai#12183": "Vertex AI: the same error",
        "BerriAI/litellm#11164":
            "Vertex AI: *When using any_of, it must be the only field set*",
        "anomalyco/opencode#15795": "Vertex AI: the same error",
        "cline/cline#7339": "*items: missing field*",
        "browser-use/browser-use#3786": "*should be non-empty for OBJECT type*",
        "https://github.com/google-gemini/cookbook/blob/main/quickstarts/rest/Function_calling_config_REST.ipynb":
            "Gemini accepts `\"parameters\": { \"type\": \"object\" }`",
        "virattt/dexter#258":
            "*Unknown name \"const\" at … one_of*: the API reads `oneOf`",
        "BerriAI/litellm#9289": "a function without parameters is accepted",
        "bug-ops/zeph#1641": "a function without parameters is accepted",
        "recorded: pydantic-ai, tests/models/cassettes/test_google/test_google_model_thinking_part_iter.yaml":
            "a function without parameters is accepted with an empty `properties`",
        "anomalyco/opencode#11889": "*only allowed for OBJECT type*",
        "diegosouzapw/OmniRoute#760": "*enum: only allowed for STRING type*",
        "directus/directus#27100": "the same error",
        "Kilo-Org/kilocode#11955": "Gemini rejects `required` with a property that does not exist",
        "elastic/kibana#286302": "*should be non-empty for STRING type with enum format*",
        "anomalyco/opencode#12295":
            "*was set alongside unsupported fields*",
        "su-kaka/gcli2api#374": "the same error",
        "diegosouzapw/OmniRoute#1416": "the same error",
        "google-gemini/gemini-cli#13326": "*reference to undefined schema*",
        "agent-infra/sandbox#83": "the same error",
        "brightwave-inc/tidebreak#1537": "*didn't specify the schema type field*",
        "anomalyco/opencode#49392": "*field predicate failed: $type == Type.ARRAY*, for `items` next to `anyOf`",
        "google-gemini/gemini-cli#23382": "*requires unspecified property*, in `parametersJsonSchema`",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let tools = tools(subject);
    let functions = tools.iter().filter(|tool| tool.is_function());
    let of_tools =
        functions.flat_map(|tool| [tool.object.get("parameters"), tool.object.get("response")]);
    let config = subject.either("generationConfig", "generation_config");
    let answer = config.and_then(|config| {
        config
            .get("responseSchema")
            .or_else(|| config.get("response_schema"))
    });
    let holders = functions_of(&tools).chain(config);
    holders
        .flat_map(|holder| JSON_SCHEMAS.map(|name| holder.get(name)))
        .flatten()
        .for_each(|schema| check_references(schema, found));
    for schema in of_tools.chain([answer]).flatten() {
        let is_parameters = tools.iter().any(|tool| {
            tool.object
                .get("parameters")
                .is_some_and(|it| std::ptr::eq(it, schema))
        });
        let json_schema = match is_parameters {
            true => "parametersJsonSchema",
            false => "responseJsonSchema",
        };
        visit(schema, &mut |inner| {
            let is_whole = is_parameters && std::ptr::eq(inner, schema);
            check_node(inner, is_whole, json_schema, found);
            if is_parameters && subject.server == Server::Vertex {
                alternatives_alone(inner, found);
            }
        });
        let is_other = ["string", "number", "integer", "boolean", "array"]
            .iter()
            .any(|name| is_of_type(schema, name));
        if is_parameters && is_other && subject.server == Server::Vertex {
            found
                .at_member(
                    schema,
                    "type",
                    "the parameters of a function must be an object",
                )
                .help("write `\"type\": \"object\"`, with the value as a property");
        }
    }
}

fn functions_of<'b>(tools: &[DeclaredTool<'b>]) -> impl Iterator<Item = &'b Value> {
    tools
        .iter()
        .filter(|tool| tool.is_function())
        .map(|tool| tool.object)
}

/// The fields that contain JSON Schema, in function declarations and in the generation config.
const JSON_SCHEMAS: [&str; 4] = [
    "parametersJsonSchema",
    "parameters_json_schema",
    "responseJsonSchema",
    "response_json_schema",
];

/// The keywords that Gemini accepts next to `$ref`. Next to a `$ref` at the root, definitions are
/// also accepted.
const BESIDE_REFERENCE: [&str; 8] = [
    "$ref",
    "title",
    "description",
    "default",
    "$defs",
    "definitions",
    "$schema",
    "$id",
];

/// Checks the references in a JSON Schema.
fn check_references<'b>(root: &'b Value, found: &mut Found<'b>) {
    visit(root, &mut |inner| {
        // The schema around an alternative may declare the properties that the alternative
        // requires.
        if has("properties", inner) {
            check_required(inner, Severity::Warning, found);
        }
        let Some(target) = text(inner, "$ref") else {
            return;
        };
        if !target.starts_with('#') {
            found
                .at_member(
                    inner,
                    "$ref",
                    "Gemini follows only references that begin with `#`",
                )
                .warning()
                .help("write the schema under `$defs`, and `#/$defs/NAME` here");
        }
        if references::is_lost(root, inner) {
            found
                .at_member(
                    inner,
                    "$ref",
                    "this reference points to a schema that does not exist",
                )
                .help("add the schema under `$defs` at the root, or write it here");
        }
        let members = inner.as_object().into_iter().flatten();
        let other = members
            .map(|(name, _)| name.as_str())
            .find(|name| !BESIDE_REFERENCE.contains(name));
        if let Some(name) = other {
            let message = format!(
                "Gemini accepts only `title`, `description` and `default` next to `$ref`, not `{}`",
                crate::text::cut(name, 40)
            );
            found
                .at_member(inner, name, message)
                .help("remove this member, or write the schema here in place of the reference");
        }
    });
}

/// Reports keywords next to `anyOf`, which Vertex AI rejects according to user reports.
fn alternatives_alone<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let beside = ["type", "default", "enum", "properties"];
    let other = beside.into_iter().find(|name| has(name, inner));
    if let Some(name) = other.filter(|_| has("anyOf", inner)) {
        found
            .at_member(
                inner,
                name,
                format!("according to user reports, Vertex AI rejects `{name}` next to `anyOf`"),
            )
            .warning()
            .help("remove it, or write it in each alternative");
    }
}

/// Checks one schema; `is_whole` means that the schema describes all parameters of a function, and
/// `json_schema` is the member that accepts JSON Schema instead.
fn check_node<'b>(
    inner: &'b Value,
    is_whole: bool,
    json_schema: &'static str,
    found: &mut Found<'b>,
) {
    let (is_object, is_array) = (is_of_type(inner, "object"), is_of_type(inner, "array"));
    let is_empty = inner
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(serde_json::Map::is_empty);
    if has("oneOf", inner) {
        let message = "Google does not list `oneOf`, although the API reads it";
        let note = found.at_member(inner, "oneOf", message);
        note.warning()
            .help(format!("write `anyOf`, or use `{json_schema}`"));
    }
    if !["type", "anyOf", "oneOf"]
        .iter()
        .any(|name| has(name, inner))
    {
        found.at(inner, "this schema has no `type`").help(format!(
            "give every schema a `type`, or use `{json_schema}`"
        ));
    }
    if is_array && !has("items", inner) {
        found
            .at_member(inner, "items", "an array needs `items`")
            .help("add `items` with the schema of the elements");
    }
    if is_object && is_empty && !is_whole {
        found
            .at_member(inner, "properties", "an object needs at least one property")
            .help(format!("add its properties, or use `{json_schema}`"));
    }
    for name in ["additionalProperties", "additional_properties"]
        .into_iter()
        .filter(|name| has(name, inner))
    {
        let note = found.at_member(
            inner,
            name,
            "according to user reports, the API does not recognise `additionalProperties`",
        );
        note.warning()
            .help(format!("leave it out, or use `{json_schema}`"));
    }
    for (name, belongs, kind) in [
        ("properties", is_object, "objects"),
        ("items", is_array, "arrays"),
    ] {
        let is_beside_union = name == "items" && has("anyOf", inner);
        if has(name, inner) && (has("type", inner) || is_beside_union) && !belongs {
            found
                .at_member(inner, name, format!("`{name}` is allowed only for {kind}"))
                .help(match is_beside_union {
                    true => "move `items` into the alternative that is the array",
                    false => "remove this keyword, or fix the type",
                });
        }
    }
    check_required(inner, Severity::Error, found);
    check_values(inner, found);
}

fn has(name: &str, inner: &Value) -> bool {
    inner.get(name).is_some()
}

/// Reports names in `required` that are not properties of the schema.
fn check_required<'b>(inner: &'b Value, level: Severity, found: &mut Found<'b>) {
    let properties = inner.get("properties");
    for required in elements(inner.get("required")) {
        let Some(name) = required.as_str() else {
            continue;
        };
        if properties.is_none_or(|properties| properties.get(name).is_none()) {
            let message = format!(
                "`{}` is required, but is not a property here",
                crate::text::cut(name, 60)
            );
            found
                .at(required, message)
                .level(level)
                .help("declare the property, or remove its name from `required`");
        }
    }
}

/// The keywords whose value is an integer.
const COUNTS: [&str; 6] = [
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
];

/// Returns `true` if proto3 JSON cannot read a value as an integer. Proto3 JSON also accepts a
/// string of digits.
fn is_no_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| number.fract() != 0.0),
        Value::String(text) => text.parse::<i64>().is_err(),
        Value::Null => false,
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
    }
}

fn check_values<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if let Some(empty) = elements(inner.get("enum"))
        .iter()
        .find(|value| *value == "")
    {
        found
            .at(empty, "a value of `enum` cannot be empty")
            .help("remove the empty value, or replace it with a non-empty string");
    }
    let is_of_other = ["integer", "number", "boolean", "array", "object"]
        .iter()
        .any(|name| is_of_type(inner, name));
    if is_of_other && !elements(inner.get("enum")).is_empty() {
        found
            .at_member(inner, "enum", "`enum` is allowed only for strings")
            .help("make it a string, or list the values in the description");
    }
    let is_enum = text(inner, "format") == Some("enum") && is_of_type(inner, "string");
    if is_enum && elements(inner.get("enum")).is_empty() {
        found
            .at_member(inner, "format", "the format `enum` needs values in `enum`")
            .help("list the values in `enum`, or leave the format out");
    }
    for name in COUNTS
        .iter()
        .filter(|name| inner.get(**name).is_some_and(is_no_integer))
    {
        found
            .at_member(inner, name, format!("`{name}` must be an integer"))
            .help("write a number without a fraction");
    }
    let format = text(inner, "format").filter(|_| is_of_type(inner, "string"));
    if let Some(format) = format.filter(|format| !["enum", "date-time"].contains(format)) {
        let message = format!(
            "according to user reports, the API rejects the string format `{}`",
            crate::text::cut(format, 40)
        );
        found
            .at_member(inner, "format", message)
            .warning()
            .known_from(&[
                "https://ai.google.dev/api/caching#Schema",
                "hideya/langchain-mcp-tools-ts#36",
                "enechange/collmbo#195",
                "google-gemini/gemini-cli#3178",
                "weave-os/router#387",
            ])
            .help("leave it out and state it in the description");
    }
}
