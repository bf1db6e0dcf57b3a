//! `protocol/strict-schema`: a schema that strict mode rejects.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::pattern::unread_by_claude;
use super::references;
use super::schemas::{
    answer_schema, check_groq_patterns, check_items, check_lookaround, is_of_type, strict,
    strict_format,
};
use super::tools::{DeclaredTool, tools};
use super::{Found, Subject, body_rule};
use crate::check::history::elements;
use crate::json::subschemas::{no_schemas, visit};
use crate::json::{Pointer, kind_of};
use crate::provider::{Server, Site, WireFormat};

body_rule! {
    Error "protocol/strict-schema", "a strict schema is rejected",
    "With `strict`, the model must follow the schema, and the API accepts only schemas that it can enforce:\n\n\
     | | OpenAI, Groq | Anthropic |\n\
     | --- | --- | --- |\n\
     | objects | `\"additionalProperties\": false` | the same |\n\
     | properties | all of them in `required`; an optional one is `[\"string\", \"null\"]` | may be optional |\n\
     | root | an object, without `anyOf` | an object |\n\
     | rejected | `allOf`, `oneOf`, `not`, `if`, `patternProperties`, `uniqueItems` and others; keywords next to `$ref` | numeric limits, \
     string lengths, `maxItems`, `minItems` over 1, `uniqueItems`, `oneOf`, circular references; look-around, back-references and word \
     boundaries in patterns |\n\
     | string formats | `date-time`, `time`, `date`, `duration`, `email`, `hostname`, `ipv4`, `ipv6`, `uuid` (OpenAI; nothing is \
     known about Groq) | the same, and `uri` |\n\
     | in a request | | 20 strict tools; in all strict schemas together, 24 optional properties and 16 with `anyOf` or several types; \
     in one schema, fewer |\n\n\
     Anthropic does not list `not`, `if`, `contains` and some other keywords (reported as warnings). \
     For OpenAI, each part of a strict schema needs a `type` (or `anyOf`, `$ref`, `enum`, `const`), `required` can name only properties, \
     objects can be nested 10 levels deep, and there can be 5,000 properties. OpenAI accepted an object without \
     `\"additionalProperties\": false` whose type is `[\"object\", \"null\"]`, although a report says that it is rejected (reported as a \
     warning). OpenAI rejected `default` until 2025 and now accepts it; \
     according to user reports, Azure still rejects it, so it is a warning there. Cerebras rejects a list of tools if only some of them \
     are strict. One report says that it also rejects length limits, `pattern` and `format`; reqc reports these as warnings.\n\n\
     This applies to tools with `strict` and to answer formats: `response_format` and `text.format` with `strict`, and each \
     `output_config.format`. One report says that OpenAI rejects an invalid JSON Schema even without `strict` (reported as a warning). \
     Other servers ignore `strict`, or nothing is known about them; for them, an unknown `type` in the answer's schema, or a `required` \
     that is not a list, is a warning. Anthropic and Ollama reject a `$ref` in the answer's schema to a definition that the schema does \
     not contain; for other servers, this is a warning.\n\n\
     * wrong: `{ \"type\": \"object\", \"properties\": { \"city\": { \"type\": \"string\" } } }`\n\
     * right: the same with `\"required\": [\"city\"], \"additionalProperties\": false`",
    seen "2026-11" {
        "https://platform.openai.com/docs/guides/structured-outputs":
            "OpenAI lists what strict schemas can contain, with the string formats",
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs":
            "Claude lists what schemas can contain, with the string formats",
        "pkg:github/Ascend/MindIE-LLM@8b4871a#src/server/endpoint/utils/infer_param.cpp":
            "MindIE: *unsupported type*, also without `strict`",
        "mastra-ai/mastra#6548": "OpenAI: *schema must have a 'type' key*",
        "tidyverse/ellmer#671": "OpenAI: *levels of nesting exceeds limit*",
        "RooCodeInc/Roo-Code#10334": "Cerebras: *Tools with mixed values for 'strict' are not allowed*",
        "mpfaffenberger/code_puppy#368": "Cerebras: the same error",
        "musistudio/claude-code-router#708": "Cerebras: *Unsupported JSON schema fields*",
        "https://inference-docs.cerebras.ai/capabilities/structured-outputs":
            "Cerebras lists what strict schemas can contain",
        "openai/openai-agents-python#4390":
            "Azure rejects `default`, which OpenAI accepts",
        "dottxt-ai/outlines#1254": "OpenAI in 2024: *'default' is not permitted*",
        "tldraw/ai-template#2": "OpenAI: *Please ensure it is a valid JSON Schema*",
        "agno-agi/agno#6013": "Cerebras requires `additionalProperties` to be false",
        "theopenco/llmgateway#1455": "Cerebras requires the same for tools",
        "google/adk-go#1178": "OpenAI requires `additionalProperties`",
        "dotnet/extensions#6656": "OpenAI: *array schema missing items*, in an answer format, for an array in a list of types",
        "docker/docker-agent#2168": "OpenAI requires it for `[\"object\", \"null\"]`, too",
        "recorded: dspy.rb, spec/vcr_cassettes/react_structured_course_output_with_structured_outputs.yml":
            "OpenAI accepts `[\"object\", \"null\"]` without it",
        "docker/docker-agent#1871": "OpenAI rejects an optional property",
        "bytedance/trae-agent#68": "OpenAI rejects an open object",
        "vercel/ai#12876": "Claude: *Schema type 'oneOf' is not supported*",
        "vercel/ai#16612": "Claude: the same error, measured",
        "pkg:github/anthropics/anthropic-sdk-python@009b035#src/anthropic/lib/_parse/_transform.py":
            "Claude's SDK writes `anyOf` for `oneOf`, and moves unknown keywords into the description",
        "veryfront/veryfront-code#3921": "Claude rejects numeric limits",
        "ax-llm/ax#458": "Claude: the same error",
        "elie222/inbox-zero#2323": "Claude accepts at most 24 optional properties",
        "recorded: rig, tests/cassettes/anthropic/strict_schema_limits/twenty_four_optional_parameters_in_one_schema_hit_internal_limit.yaml":
            "24 of them in one schema are too complex",
        "recorded: rig, tests/cassettes/anthropic/strict_schema_matrix/boolean_true_subschema_is_rejected_by_strict_compiler.yaml":
            "Claude rejects `true` as the schema of a property",
        "elizaOS/eliza#16499": "Claude accepts at most 20 strict tools",
        "camel-ai/camel#4171": "Claude enforces all three limits",
        "egonSchiele/agency-lang#487": "Claude: *Circular reference detected*",
        "langchain4j/langchain4j#5131": "Claude: *Reference to non-existent definition*",
        "datalab-to/marker#984": "Ollama: *invalid JSON schema in format*, for a lost reference",
    }
}

/// Keywords that OpenAI rejects in strict schemas.
pub(crate) const OPENAI_REFUSES: [&str; 14] = [
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
/// The string formats that OpenAI and Anthropic accept in strict schemas.
pub(crate) const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];
/// The string format that only Anthropic accepts.
pub(crate) const ANTHROPIC_FORMAT: &str = "uri";

/// Keywords that Anthropic rejects in strict schemas.
pub(crate) const ANTHROPIC_REFUSES: [&str; 13] = [
    "oneOf",
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

/// Keywords that Anthropic's documentation of strict schemas does not list. No report shows what
/// the API does with them.
pub(crate) const ANTHROPIC_OMITS: [&str; 9] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "contains",
    "prefixItems",
];

/// Keywords that Cerebras does not enforce, and that it was observed to reject.
const CEREBRAS_REFUSES: [&str; 6] = [
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server == Server::Cerebras {
        cerebras(subject, found);
    }
    let is_openai = match (subject.wire, subject.server) {
        (WireFormat::AnthropicMessages, server) if server.is_claude() => false,
        (
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses,
            Server::OpenAi | Server::ChatGpt | Server::Groq,
        ) => true,
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
        ) => {
            if let Some(answer) = answer_schema(subject) {
                answer_types(subject, answer, found);
            }
            return;
        }
    };
    let schemas = strict(subject);
    if !is_openai {
        limits(subject, &schemas, found);
    }
    let is_of_openai = subject.server == Server::OpenAi;
    let is_at_azure = subject.headers.is_at(Site::Azure);
    for schema in schemas {
        if is_of_openai {
            depth(schema, found);
            count(schema, found);
        }
        if is_openai {
            check_root(schema, found);
        } else {
            check_references(schema, found);
        }
        visit(schema, &mut |inner| {
            check_node(inner, is_openai, found);
            if !is_openai {
                check_claude(inner, found);
            }
            if is_of_openai {
                check_names(inner, found);
                check_type(inner, found);
            }
            if subject.server != Server::Groq {
                check_format(inner, is_openai, found);
            }
            if is_at_azure && inner.get("default").is_some() {
                let message =
                    "according to user reports, Azure rejects `default` in strict schemas";
                found
                    .at_member(inner, "default", message)
                    .warning()
                    .help("state the default in the description instead, or remove `strict`");
            }
        });
    }
    let Some(answer) = answer_schema(subject) else {
        return;
    };
    if is_of_openai {
        let is_strict = strict_format(subject).is_some();
        visit(answer, &mut |inner| {
            check_form(inner, is_strict, found);
            check_lost(answer, inner, false, found);
            if is_strict {
                check_items(inner, found);
            }
            check_lookaround(inner, found);
        });
    } else {
        answer_types(subject, answer, found);
    }
    if subject.server == Server::Groq {
        visit(answer, &mut |inner| check_groq_patterns(inner, found));
    }
}

/// Reports invalid JSON Schema in the response schema, for a server other than OpenAI. Servers that
/// compile the schema to a grammar reject it.
fn answer_types<'b>(subject: &Subject<'b>, answer: &'b Value, found: &mut Found<'b>) {
    let rejects_lost = match subject.wire {
        WireFormat::AnthropicMessages => subject.server.is_claude(),
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => true,
        WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::LlamaCppInfill => false,
    };
    visit(answer, &mut |inner| {
        check_form(inner, false, found);
        check_lost(answer, inner, rejects_lost, found);
    });
}

/// Reports a reference in the response schema to a definition that the schema does not contain.
/// Another rule checks tool schemas.
fn check_lost<'b>(root: &'b Value, inner: &'b Value, is_rejected: bool, found: &mut Found<'b>) {
    if references::is_lost(root, inner) {
        let message = "this reference points to a schema that does not exist";
        let note = found.at_member(inner, "$ref", message);
        let note = if is_rejected { note } else { note.warning() };
        note.known_from(&["langchain4j/langchain4j#5131", "datalab-to/marker#984"])
            .help("add the schema under `$defs` at the root of the schema, or write it here");
    }
}

/// Reports keywords that Cerebras does not support in strict schemas, and strict tools next to
/// tools that are not strict.
fn cerebras<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let tools = tools(subject);
    let lax = tools.iter().find(|tool| !tool.is_strict());
    if let Some(tool) = lax.filter(|_| tools.iter().any(DeclaredTool::is_strict)) {
        found
            .at(
                tool.object,
                "Cerebras requires `strict` on all tools or on none",
            )
            .help("set `strict` for all tools");
    }
    for schema in strict(subject) {
        visit(schema, &mut |inner| {
            if is_of_type(inner, "object") {
                check_object(inner, false, found);
            }
            for name in present(inner, &CEREBRAS_REFUSES) {
                let message =
                    format!("a report says that Cerebras rejects `{name}` in strict schemas");
                found
                    .at_member(inner, name, message)
                    .warning()
                    .help("state the default in the description instead, or remove `strict`");
            }
        });
    }
}

/// The maximum nesting depth of objects in a strict schema for OpenAI.
const MOST_LEVELS: usize = 10;
/// The maximum number of properties in a strict schema for OpenAI.
const MOST_PROPERTIES: usize = 5_000;

/// Reports a schema whose objects are nested too deeply.
fn depth<'b>(schema: &'b Value, found: &mut Found<'b>) {
    let Some(deepest) = below(schema, MOST_LEVELS) else {
        return;
    };
    let message =
        format!("objects in a strict schema can be nested at most {MOST_LEVELS} levels deep");
    found
        .at(deepest, message)
        .help("flatten the schema, or remove `strict`");
}

/// Returns an object that is nested more than `levels` objects deep in a schema. The recursion ends
/// because bodies have a maximum depth.
fn below(schema: &Value, levels: usize) -> Option<&Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_some() && levels == 0 {
        return Some(schema);
    }
    let levels = levels - usize::from(properties.is_some());
    let items = schema.get("items").filter(|items| items.is_object());
    let alternatives = elements(schema.get("anyOf")).iter();
    properties
        .into_iter()
        .flat_map(Map::values)
        .chain(items)
        .chain(alternatives)
        .find_map(|inner| below(inner, levels))
}

/// Reports a schema with too many properties.
fn count<'b>(schema: &'b Value, found: &mut Found<'b>) {
    let mut properties = 0;
    visit(schema, &mut |inner| {
        properties += inner
            .get("properties")
            .and_then(Value::as_object)
            .map_or(0, Map::len);
    });
    if properties > MOST_PROPERTIES {
        let message = format!(
            "a strict schema can have at most {MOST_PROPERTIES} properties, but this one has {properties}"
        );
        found
            .at(schema, message)
            .help("split the tool or the answer, or remove `strict`");
    }
}

/// Reports a name in `required` that is not a property.
fn check_names<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let Some(properties) = inner.get("properties").and_then(Value::as_object) else {
        return;
    };
    let extra = elements(inner.get("required")).iter().find(|name| {
        name.as_str()
            .is_some_and(|name| !properties.contains_key(name))
    });
    if let Some(extra) = extra {
        found
            .at(
                extra,
                "`required` in a strict schema can list only existing properties",
            )
            .help("remove the name from `required`, or declare the property");
    }
}

/// Keywords that declare a type. A strict schema must have at least one of them.
const SAYS_TYPE: [&str; 5] = ["type", "anyOf", "$ref", "enum", "const"];

/// Reports a schema that does not declare its type.
fn check_type<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let has_refused = present(inner, &OPENAI_REFUSES).next().is_some();
    if !has_refused && present(inner, &SAYS_TYPE).next().is_none() {
        found
            .at_member(
                inner,
                "type",
                "every part of a strict schema needs a `type`",
            )
            .known_from(&["mastra-ai/mastra#6548"])
            .help("write the type, or `anyOf` with several");
    }
}

/// Reports invalid JSON Schema in the response schema. Another rule checks tool schemas.
fn check_form<'b>(inner: &'b Value, is_strict: bool, found: &mut Found<'b>) {
    let required = inner.get("required");
    if let Some(required) = required.filter(|required| !required.is_array()) {
        let note = found.at(
            required,
            "this is not JSON Schema: `required` is a list of names",
        );
        let note = if is_strict { note } else { note.warning() };
        note.help("write a list, or omit `required`");
    }
    let unknown = match inner.get("type") {
        Some(Value::Array(names)) => names.iter().find(|name| !is_type_name(name)),
        Some(name) => Some(name).filter(|name| !is_type_name(name)),
        None => None,
    };
    if let Some(unknown) = unknown {
        let note = found.at(unknown, "this is not a type of JSON Schema");
        let note = if is_strict { note } else { note.warning() };
        note.help("write `string`, `number`, `integer`, `boolean`, `object`, `array` or `null`");
    }
}

/// Returns `true` if a value is the name of a JSON Schema type.
fn is_type_name(name: &Value) -> bool {
    let types = [
        "string", "number", "integer", "boolean", "object", "array", "null",
    ];
    name.as_str().is_some_and(|name| types.contains(&name))
}

/// The maximum number of strict tools in a request to Anthropic.
const MOST_TOOLS: usize = 20;
/// The maximum number of optional properties in all strict schemas in a request together.
const MOST_OPTIONAL: usize = 24;
/// The maximum number of properties with `anyOf` or several types, in all strict schemas together.
const MOST_UNIONS: usize = 16;

/// Reports a strict schema that alone reaches a limit for the whole request. Anthropic rejects it:
/// *Schema is too complex for compilation*.
fn limits_of_one<'b>(schema: &'b Value, found: &mut Found<'b>) {
    let (mut optional, mut unions) = (0, 0);
    for_each_property(schema, &mut |property, is_required| {
        optional += usize::from(!is_required);
        unions += usize::from(is_union(property));
    });
    let (count, what, help) = if optional == MOST_OPTIONAL {
        (
            optional,
            "optional properties",
            "list more of them in `required`",
        )
    } else if unions == MOST_UNIONS {
        (
            unions,
            "properties with several types",
            "give each property one type",
        )
    } else {
        return;
    };
    found
        .at(schema, format!("a strict schema with {count} {what} is too complex"))
        .known_from(&["recorded: rig, tests/cassettes/anthropic/strict_schema_limits/twenty_four_optional_parameters_in_one_schema_hit_internal_limit.yaml"])
        .help(format!("{help}, or distribute them over several tools"));
}

/// Reports properties whose schema is `true`, which Anthropic cannot enforce.
fn unconstrained<'b>(schema: &'b Value, found: &mut Found<'b>) {
    for_each_property(schema, &mut |property, _| {
        if property == &Value::Bool(true) {
            found
                .at(property, "a property of a strict schema needs a type, not `true`")
                .known_from(&["recorded: rig, tests/cassettes/anthropic/strict_schema_matrix/boolean_true_subschema_is_rejected_by_strict_compiler.yaml"])
                .help("write the type of the value");
        }
    });
}

/// Calls a function with each property in a schema, and with `true` if the property is required.
fn for_each_property<'b>(schema: &'b Value, act: &mut impl FnMut(&'b Value, bool)) {
    visit(schema, &mut |inner| {
        let required = required(inner);
        let properties = inner.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            act(property, required.contains(name.as_str()));
        }
    });
}

/// Reports strict schemas that, counted over the whole request, exceed Anthropic's limits.
fn limits<'b>(subject: &Subject<'b>, schemas: &[&'b Value], found: &mut Found<'b>) {
    let tools = tools(subject);
    if let Some(further) = tools.iter().filter(|tool| tool.is_strict()).nth(MOST_TOOLS) {
        let message = format!("a request can have at most {MOST_TOOLS} tools with `strict`");
        found
            .at_member(further.object, "strict", message)
            .known_from(&[
                "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
                "elizaOS/eliza#16499",
                "camel-ai/camel#4171",
            ])
            .help("keep `strict` for the tools that need it");
    }
    let (mut optional, mut unions) = (Limit::of(MOST_OPTIONAL), Limit::of(MOST_UNIONS));
    for schema in schemas {
        limits_of_one(schema, found);
        unconstrained(schema, found);
        for_each_property(schema, &mut |property, is_required| {
            optional.count(property, !is_required);
            unions.count(property, is_union(property));
        });
    }
    if let Some(further) = optional.first_beyond {
        let message = format!(
            "the strict schemas have {} optional properties in total, but the API accepts at most {MOST_OPTIONAL}",
            optional.seen
        );
        found
            .at(further, message)
            .known_from(&[
                "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
                "elie222/inbox-zero#2323",
                "camel-ai/camel#4171",
            ])
            .help("list more of them in `required`, or remove `strict` from some tools");
    }
    if let Some(further) = unions.first_beyond {
        let message = format!(
            "the strict schemas have {} properties with several types in total, but the API accepts at most {MOST_UNIONS}",
            unions.seen
        );
        found
            .at(further, message)
            .known_from(&[
                "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
                "camel-ai/camel#4171",
            ])
            .help("give each property one type, or remove `strict` from some tools");
    }
}

fn is_union(property: &Value) -> bool {
    property.get("anyOf").is_some() || property.get("type").is_some_and(Value::is_array)
}

/// A count of schemas, and the maximum for it.
struct Limit<'b> {
    most: usize,
    seen: usize,
    first_beyond: Option<&'b Value>,
}

impl<'b> Limit<'b> {
    fn of(most: usize) -> Limit<'b> {
        Limit {
            most,
            seen: 0,
            first_beyond: None,
        }
    }

    fn count(&mut self, schema: &'b Value, counts: bool) {
        self.seen += usize::from(counts);
        if counts && self.seen == self.most + 1 {
            self.first_beyond = Some(schema);
        }
    }
}

/// Reports references that Anthropic does not follow: references to other documents, and circular
/// references.
fn check_references<'b>(root: &'b Value, found: &mut Found<'b>) {
    let circular = references::in_circles(root);
    let mut is_told = false;
    visit(root, &mut |inner| {
        let Some(reference) = references::of(inner) else {
            return;
        };
        let Some(target) = Pointer::of_fragment(reference) else {
            let note = found.at_member(
                inner,
                "$ref",
                "a strict schema can refer only to itself, but this refers to another document",
            );
            note.help("define the schema under `$defs`, and write `#/$defs/NAME`");
            return;
        };
        if !is_told && circular.contains(&target) {
            is_told = true;
            let note = found.at_member(
                inner,
                "$ref",
                "a strict schema cannot contain itself, but this reference is part of a cycle",
            );
            note.known_from(&["egonSchiele/agency-lang#487"])
                .help("write out as many levels as needed, or remove `strict`");
        }
    });
}

fn check_root<'b>(schema: &'b Value, found: &mut Found<'b>) {
    if schema.get("anyOf").is_some() {
        let note = found.at_member(
            schema,
            "anyOf",
            "the root of a strict schema cannot be `anyOf`",
        );
        note.known_from(&["https://platform.openai.com/docs/guides/structured-outputs"])
            .help("wrap the alternatives in an object with one property");
    } else if !is_of_type(schema, "object") && schema.get("$ref").is_none() {
        let note = found.at_member(
            schema,
            "type",
            "the root of a strict schema must be an object",
        );
        note.help("wrap it in an object with one property");
    }
}

/// The sources of the rule about `oneOf`.
const ONE_OF: [&str; 4] = [
    "pkg:github/anthropics/anthropic-sdk-python@009b035#src/anthropic/lib/_parse/_transform.py",
    "vercel/ai#12876",
    "vercel/ai#16612",
    "https://platform.openai.com/docs/guides/structured-outputs",
];
/// The sources of the rule about other keywords.
const KEYWORDS: [&str; 4] = [
    "https://platform.openai.com/docs/guides/structured-outputs",
    "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
    "veryfront/veryfront-code#3921",
    "ax-llm/ax#458",
];

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
        let note = found.at(value, format!("strict schemas cannot contain `{name}`"));
        let note = match name.as_str() {
            "oneOf" => note.known_from(&ONE_OF),
            _ => note.known_from(&KEYWORDS),
        };
        note.help(match name.as_str() {
            "oneOf" => "write `anyOf`, or remove `strict`",
            _ => "state it in the description instead, or remove `strict`",
        });
    }
    for value in no_schemas(inner) {
        let note = found.at(
            value,
            format!("this must be a schema, not {}", kind_of(value)),
        );
        note.help("write an object: `{ \"type\": … }`");
    }
    if is_openai
        && members.len() > 1
        && members.contains_key("$ref")
        && !members.contains_key("$defs")
    {
        let note = found.at_member(
            inner,
            "$ref",
            "strict schemas cannot have anything next to `$ref`",
        );
        note.help("move the other keywords into the referenced schema");
    }
}

/// Returns the keywords that a schema has.
fn present<'k>(schema: &Value, keywords: &'k [&'k str]) -> impl Iterator<Item = &'k str> {
    let keywords = keywords.iter().copied();
    keywords.filter(|name| schema.get(*name).is_some())
}

/// Reports keywords that Anthropic's documentation does not list, and patterns that the
/// documentation excludes.
fn check_claude<'b>(inner: &'b Value, found: &mut Found<'b>) {
    for name in present(inner, &ANTHROPIC_OMITS) {
        let message =
            format!("Anthropic does not list `{name}` among the keywords of strict schemas");
        found
            .at_member(inner, name, message)
            .warning()
            .known_from(&[
                "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
            ])
            .help("state it in the description instead, or remove `strict`");
    }
    let pattern = inner.get("pattern").and_then(Value::as_str);
    if let Some(what) = pattern.and_then(unread_by_claude) {
        let message = format!("a pattern in a strict schema cannot contain `{what}`");
        found
            .at_member(inner, "pattern", message)
            .known_from(&[
                "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
            ])
            .help("leave out the pattern and state it in the description, or remove `strict`");
    }
}

fn check_format<'b>(inner: &'b Value, is_openai: bool, found: &mut Found<'b>) {
    let format = inner.get("format").and_then(Value::as_str);
    let unknown = format
        .filter(|format| !FORMATS.contains(format))
        .filter(|format| is_openai || *format != ANTHROPIC_FORMAT);
    if let Some(format) = unknown.filter(|_| is_of_type(inner, "string")) {
        let message = format!(
            "strict schemas do not support the format `{}`",
            crate::text::cut(format, 40)
        );
        let note = found.at_member(inner, "format", message);
        note.known_from(&[
            "https://platform.openai.com/docs/guides/structured-outputs",
            "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
        ])
        .help("remove it and state it in the description, or write a `pattern`");
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
            "objects in strict schemas need `\"additionalProperties\": false`",
        );
        let is_disputed = is_openai && is_of_type(inner, "null");
        let note = if is_disputed { note.warning() } else { note };
        note.known_from(&[
            "https://platform.openai.com/docs/guides/structured-outputs",
            "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
            "google/adk-go#1178",
            "bytedance/trae-agent#68",
            "agno-agi/agno#6013",
            "theopenco/llmgateway#1455",
        ])
        .help("add it to every object of the schema");
    }
    let required = required(inner);
    let properties = inner.get("properties").and_then(Value::as_object);
    let optional = properties
        .into_iter()
        .flat_map(Map::keys)
        .find(|name| !required.contains(name.as_str()));
    if let Some(name) = optional.filter(|_| is_openai) {
        let message = format!(
            "`required` in a strict schema must list all properties: `{}` is missing",
            crate::text::cut(name, 60)
        );
        let note = found.at_member(inner, "required", message);
        note.known_from(&[
            "https://platform.openai.com/docs/guides/structured-outputs",
            "docker/docker-agent#1871",
        ])
        .help("list it; if it may be absent, allow `null`: `\"type\": [\"string\", \"null\"]`");
    }
}

/// Returns the names in `required`.
fn required(schema: &Value) -> HashSet<&str> {
    let names = elements(schema.get("required")).iter();
    names.filter_map(Value::as_str).collect()
}
