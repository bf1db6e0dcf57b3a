//! `protocol/strict-schema`: a schema that strict mode refuses.

use serde_json::{Map, Value};

use super::schemas::{is_of_type, no_schemas, strict, visit};
use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::json::kind_of;
use crate::provider::{Server, WireFormat};

body_rule! {
    Error "protocol/strict-schema", "a schema that is to be kept strictly is refused",
    "With `strict`, the model cannot but keep to the schema, and the API takes only schemas that it can keep to:\n\n\
     | | OpenAI, Groq | Anthropic |\n| --- | --- | --- |\n\
     | objects | `\"additionalProperties\": false` | the same |\n\
     | properties | all of them in `required`; an optional one is `[\"string\", \"null\"]` | may be optional |\n\
     | root | an object, without `anyOf` | an object |\n\
     | refused | `allOf`, `oneOf`, `not`, `if`, `patternProperties`, `uniqueItems` and others; members beside `$ref` | bounds of \
     numbers, lengths of texts, `maxItems`, `minItems` over 1, `uniqueItems` |\n\n\
     It holds for tools with `strict` and for formats of answers: `response_format` and `text.format` with `strict`, and each \
     `output_config.format`. Other servers ignore `strict`, or nothing is known of them.\n\n\
     * wrong: `{ \"type\": \"object\", \"properties\": { \"city\": { \"type\": \"string\" } } }`\n\
     * right: the same with `\"required\": [\"city\"], \"additionalProperties\": false`",
    seen "2026-11" {
        "https://platform.openai.com/docs/guides/structured-outputs":
            "OpenAI: what strict schemas may hold",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs":
            "Claude: what schemas may hold",
        "google/adk-go#1178": "OpenAI: `additionalProperties` is missing",
        "docker/docker-agent#1871": "OpenAI: an optional property",
        "bytedance/trae-agent#68": "OpenAI: an open object",
        "veryfront/veryfront-code#3921": "Claude: bounds of numbers",
        "ax-llm/ax#458": "Claude: the same refusal",
    }
}

/// Keywords that OpenAI refuses in strict schemas.
const OPENAI_REFUSES: [&str; 14] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "uniqueItems",
    "contains",
    "prefixItems",
];
/// Keywords that Anthropic refuses in strict schemas.
const ANTHROPIC_REFUSES: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_openai = match (subject.wire, subject.server) {
        (WireFormat::AnthropicMessages, server) if server.is_claude() => false,
        (WireFormat::OpenAiChat | WireFormat::OpenAiResponses, Server::OpenAi | Server::Groq) => {
            true
        }
        (
            WireFormat::AnthropicMessages
            | WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::GoogleGenerateContent
            | WireFormat::MistralChat
            | WireFormat::MistralFim
            | WireFormat::OllamaChat
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill,
            _,
        ) => return,
    };
    for schema in strict(subject) {
        if is_openai {
            check_root(schema, found);
        }
        visit(schema, &mut |inner| check_node(inner, is_openai, found));
    }
}

fn check_root<'b>(schema: &'b Value, found: &mut Found<'b>) {
    if schema.get("anyOf").is_some() {
        let note = found.at_member(
            schema,
            "anyOf",
            "the root of a strict schema cannot be `anyOf`",
        );
        note.help("wrap the alternatives in an object with one property");
    } else if !is_of_type(schema, "object") && schema.get("$ref").is_none() {
        let note = found.at_member(
            schema,
            "type",
            "the root of a strict schema must be an object",
        );
        note.help("wrap it in an object with one property");
    }
}

fn check_node<'b>(inner: &'b Value, is_openai: bool, found: &mut Found<'b>) {
    let Some(members) = inner.as_object() else {
        return;
    };
    if is_of_type(inner, "object") || members.contains_key("properties") {
        check_object(inner, is_openai, found);
    }
    let refused: &[&str] = if is_openai {
        &OPENAI_REFUSES
    } else {
        &ANTHROPIC_REFUSES
    };
    for (name, value) in members
        .iter()
        .filter(|(name, value)| is_refused(name, value, refused, is_openai))
    {
        let note = found.at(value, format!("strict schemas cannot hold `{name}`"));
        note.help("leave it out and say it in the description, or leave out `strict`");
    }
    for value in no_schemas(inner) {
        let note = found.at(
            value,
            format!("a schema belongs here, not {}", kind_of(value)),
        );
        note.help("write an object: `{ \"type\": … }`");
    }
    if is_openai
        && members.len() > 1
        && members.contains_key("$ref")
        && !members.contains_key("$defs")
    {
        let note = found.at_member(inner, "$ref", "strict schemas hold nothing beside `$ref`");
        note.help("move what is beside it into the schema that it refers to");
    }
}

fn is_refused(name: &str, value: &Value, refused: &[&str], is_openai: bool) -> bool {
    let is_long = !is_openai && name == "minItems" && value.as_u64().is_some_and(|least| least > 1);
    refused.contains(&name) || is_long
}

fn check_object<'b>(inner: &'b Value, is_openai: bool, found: &mut Found<'b>) {
    if inner.get("additionalProperties") != Some(&Value::Bool(false)) {
        let note = found.at_member(
            inner,
            "additionalProperties",
            "objects of strict schemas need `\"additionalProperties\": false`",
        );
        note.help("add it to every object of the schema");
    }
    let required = elements(inner.get("required"));
    let properties = inner.get("properties").and_then(Value::as_object);
    let optional = properties
        .into_iter()
        .flat_map(Map::keys)
        .find(|name| !is_listed(name, required));
    if let Some(name) = optional.filter(|_| is_openai) {
        let message = format!(
            "`required` of a strict schema lists all properties: `{}` is missing",
            crate::text::cut(name, 60)
        );
        let note = found.at_member(inner, "required", message);
        note.help("list it; what may be absent is `null`: `\"type\": [\"string\", \"null\"]`");
    }
}

fn is_listed(name: &str, required: &[Value]) -> bool {
    required.iter().any(|listed| listed == name)
}
