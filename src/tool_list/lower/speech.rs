//! The abilities of each provider's schema dialect.

use serde_json::{Map, Value, json};

use super::{Loss, Unsayable, is_type};
use crate::check::protocol::{
    ANTHROPIC_FORMAT, ANTHROPIC_OMITS, ANTHROPIC_REFUSES, Engine, FORMATS, MOONSHOT_RESERVED,
    OPENAI_REFUSES, has_lookaround, patterns_of, unread, unread_by_claude, unread_by_deepseek,
    unread_by_grammar,
};
use crate::json::Pointer;
use crate::provider::{Server, WireFormat};
use crate::tool_list::target::{Form, ToolTarget};

/// The abilities of a provider's schema dialect.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is independent")]
pub struct Speech {
    keywords: Keywords,
    pub(super) takes_refs: bool,
    pub(super) takes_booleans: bool,
    /// `true` if a `$ref` must be the only keyword of its schema.
    pub(super) has_lone_refs: bool,
    /// `true` if the root must be an object with properties, and few other keywords are allowed.
    pub(super) is_plain_root: bool,
    pub(super) refuses_at_root: &'static [&'static str],
    pub(super) needs_items: bool,
    /// `true` if `required` can only contain names of properties that the same schema describes.
    pub(super) defines_required: bool,
    /// `true` if `required` is not allowed in a schema without properties.
    pub(super) requires_properties: bool,
    /// `true` if `items`, and `$defs` at the root, are kept as they are, with all keywords.
    pub(super) keeps_items: bool,
    pub(super) most_min_items: Option<u64>,
    /// A function that returns `true` for the allowed names of root properties; `None` if all names
    /// are allowed.
    pub(super) takes_property: Option<fn(&str) -> bool>,
    /// The allowed string formats; `None` if all are allowed.
    formats: Option<Lists>,
    /// A function that returns `true` for allowed patterns; `None` if all patterns are allowed.
    takes_pattern: Option<fn(&str) -> bool>,
    pub(super) finish: Finish,
}

/// Lists of names, which rules about single bodies also use.
type Lists = &'static [&'static [&'static str]];

/// The keywords in a dialect.
#[derive(Debug, Clone, Copy)]
enum Keywords {
    All,
    /// All but those in these lists.
    AllBut(Lists),
    Only(&'static [&'static str]),
}

/// The final step of lowering to a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    AsItIs,
    /// Every schema must have exactly one type, and objects must have properties.
    OpenApi,
    /// Every property must have a type, alternatives or a reference, and every schema one type.
    Typed,
    /// Objects must be closed. With `needs_all`, all properties must be required.
    Closed {
        needs_all: bool,
    },
}

/// The abilities of full JSON Schema.
const WHOLE: Speech = Speech {
    keywords: Keywords::All,
    takes_refs: true,
    takes_booleans: true,
    has_lone_refs: false,
    is_plain_root: false,
    refuses_at_root: &[],
    needs_items: false,
    defines_required: false,
    requires_properties: false,
    keeps_items: false,
    most_min_items: None,
    takes_property: None,
    formats: None,
    takes_pattern: None,
    finish: Finish::AsItIs,
};

fn is_in(lists: Lists, name: &str) -> bool {
    lists.iter().any(|list| list.contains(&name))
}

/// Keywords whose meaning depends on the surrounding schema. They are kept only if nothing is
/// omitted.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

const CLAUDE: Speech = Speech {
    keywords: Keywords::AllBut(&[&UNEVALUATED]),
    is_plain_root: true,
    refuses_at_root: &["anyOf", "oneOf", "allOf"],
    takes_property: Some(is_claude_property),
    ..WHOLE
};

/// Keywords that only have a meaning next to `contains`.
const BESIDE_CONTAINS: [&str; 2] = ["minContains", "maxContains"];

const CLAUDE_STRICT: Speech = Speech {
    keywords: Keywords::AllBut(&[
        &UNEVALUATED,
        &ANTHROPIC_REFUSES,
        &ANTHROPIC_OMITS,
        &BESIDE_CONTAINS,
    ]),
    takes_pattern: Some(is_claude_pattern),
    most_min_items: Some(1),
    formats: Some(&[&FORMATS, &[ANTHROPIC_FORMAT]]),
    finish: Finish::Closed { needs_all: false },
    ..CLAUDE
};

const OPENAI: Speech = Speech {
    keywords: Keywords::AllBut(&[&UNEVALUATED]),
    is_plain_root: true,
    refuses_at_root: &["anyOf", "oneOf", "allOf", "enum", "not"],
    needs_items: true,
    takes_pattern: Some(is_openai_pattern),
    ..WHOLE
};

const OPENAI_STRICT: Speech = Speech {
    keywords: Keywords::AllBut(&[
        &UNEVALUATED,
        &OPENAI_REFUSES,
        &BESIDE_CONTAINS,
        &["dependencies", "additionalItems", "default"],
    ]),
    has_lone_refs: true,
    takes_booleans: false,
    formats: Some(&[&FORMATS]),
    finish: Finish::Closed { needs_all: true },
    ..OPENAI
};

const MOONSHOT: Speech = Speech {
    keywords: Keywords::AllBut(&[&UNEVALUATED]),
    takes_refs: false,
    takes_booleans: false,
    is_plain_root: true,
    refuses_at_root: &["anyOf"],
    defines_required: true,
    takes_property: Some(is_moonshot_property),
    finish: Finish::Typed,
    ..WHOLE
};

const DEEPSEEK: Speech = Speech {
    keywords: Keywords::AllBut(&[&UNEVALUATED]),
    is_plain_root: true,
    takes_pattern: Some(is_deepseek_pattern),
    ..WHOLE
};

const GROQ: Speech = Speech {
    keywords: Keywords::AllBut(&[&UNEVALUATED]),
    requires_properties: true,
    takes_pattern: Some(is_groq_pattern),
    ..WHOLE
};

const OLLAMA: Speech = Speech {
    keywords: Keywords::Only(&[
        "type",
        "items",
        "description",
        "enum",
        "anyOf",
        "properties",
        "required",
        "$defs",
    ]),
    takes_refs: false,
    takes_booleans: false,
    is_plain_root: true,
    refuses_at_root: &["anyOf", "enum"],
    keeps_items: true,
    takes_pattern: Some(is_grammar_pattern),
    ..WHOLE
};

/// The abilities of JSON Schema as Gemini reads it.
const GEMINI: Speech = Speech {
    has_lone_refs: true,
    ..WHOLE
};

const GEMINI_OPEN_API: Speech = Speech {
    keywords: Keywords::Only(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "pattern",
        "anyOf",
        "default",
        "example",
        "propertyOrdering",
    ]),
    takes_refs: false,
    takes_booleans: false,
    formats: Some(&[&["date-time", "float", "double", "int32", "int64"]]),
    finish: Finish::OpenApi,
    ..WHOLE
};

impl Speech {
    /// Returns the abilities of a target's schema dialect.
    pub fn of(target: &ToolTarget) -> Speech {
        match (target.wire, target.form, target.server) {
            (WireFormat::AnthropicMessages, Form::Strict, _) => CLAUDE_STRICT,
            (WireFormat::AnthropicMessages, ..) => CLAUDE,
            (WireFormat::OpenAiChat | WireFormat::OpenAiResponses, Form::Strict, _) => {
                OPENAI_STRICT
            }
            (WireFormat::OpenAiChat | WireFormat::OpenAiResponses, _, Server::OpenAi) => OPENAI,
            (WireFormat::OpenAiChat, _, Server::Moonshot) => MOONSHOT,
            (WireFormat::OpenAiChat, _, Server::DeepSeek) => DEEPSEEK,
            (WireFormat::OpenAiChat, _, Server::Groq) => GROQ,
            (WireFormat::GoogleGenerateContent, Form::OpenApi, _) => GEMINI_OPEN_API,
            (WireFormat::GoogleGenerateContent, ..) => GEMINI,
            (WireFormat::OllamaChat, ..) => OLLAMA,
            (
                WireFormat::OpenAiChat
                | WireFormat::OpenAiResponses
                | WireFormat::MistralChat
                | WireFormat::MistralFim
                | WireFormat::OllamaGenerate
                | WireFormat::LlamaCppInfill,
                ..,
            ) => WHOLE,
        }
    }

    /// Returns `true` if the dialect is full JSON Schema.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.keywords, Keywords::All)
    }

    pub(super) fn keeps(&self, keyword: &str) -> bool {
        match self.keywords {
            Keywords::All => true,
            Keywords::AllBut(others) => !is_in(others, keyword),
            Keywords::Only(own) => own.contains(&keyword),
        }
    }

    pub(super) fn keeps_annotation(&self, keyword: &str) -> bool {
        is_annotation(keyword) && self.keeps(keyword)
    }

    pub(super) fn takes_format(&self, format: &str) -> bool {
        self.formats.is_none_or(|formats| is_in(formats, format))
    }

    /// Returns the keywords among `pattern` and `patternProperties` that have a pattern which is
    /// not allowed.
    pub(super) fn refused_patterns(&self, schema: &Map<String, Value>) -> Vec<&'static str> {
        let Some(takes) = self.takes_pattern else {
            return Vec::new();
        };
        let mut refused = Vec::new();
        for (_, pattern, is_name) in patterns_of(schema) {
            let keyword = match is_name {
                true => "patternProperties",
                false => "pattern",
            };
            if !takes(pattern) && !refused.contains(&keyword) {
                refused.push(keyword);
            }
        }
        refused
    }
}

/// Returns `true` if OpenAI accepts the pattern.
fn is_openai_pattern(pattern: &str) -> bool {
    !has_lookaround(pattern) && unread(pattern, Engine::Python).is_none()
}

/// Returns `true` if Claude accepts the pattern in strict mode.
fn is_claude_pattern(pattern: &str) -> bool {
    unread_by_claude(pattern).is_none()
}

/// Returns `true` if `DeepSeek` accepts the pattern.
fn is_deepseek_pattern(pattern: &str) -> bool {
    unread_by_deepseek(pattern).is_none()
}

/// Returns `true` if llama.cpp, which Ollama uses, can make a grammar of the pattern.
fn is_grammar_pattern(pattern: &str) -> bool {
    unread_by_grammar(pattern).is_none()
}

/// Returns `true` if Groq accepts the pattern.
fn is_groq_pattern(pattern: &str) -> bool {
    unread(pattern, Engine::Go).is_none()
}

/// Returns `true` if Anthropic accepts the name of a root property: `^[a-zA-Z0-9_.-]{1,64}$`.
fn is_claude_property(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Returns `true` if Moonshot accepts the name of a property.
fn is_moonshot_property(name: &str) -> bool {
    !MOONSHOT_RESERVED.contains(&name)
}

/// Returns `true` if a keyword only describes values, without checking them.
pub(super) fn is_annotation(keyword: &str) -> bool {
    const ANNOTATIONS: [&str; 14] = [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "nullable",
        "propertyOrdering",
        "contentMediaType",
        "contentEncoding",
        "contentSchema",
    ];
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

/// Returns `true` if a keyword has no effect by itself, like an identifier or a definition.
pub(super) fn says_nothing(keyword: &str) -> bool {
    matches!(
        keyword,
        "$schema"
            | "$id"
            | "$anchor"
            | "$defs"
            | "definitions"
            | "$vocabulary"
            | "minContains"
            | "additionalItems"
    )
}

/// Returns `true` if a keyword applies to a type in Gemini's own schema dialect.
fn belongs(keyword: &str, kind: &str) -> bool {
    match keyword {
        "properties" | "required" | "minProperties" | "maxProperties" | "propertyOrdering" => {
            kind == "object"
        }
        "items" | "minItems" | "maxItems" => kind == "array",
        "minLength" | "maxLength" | "pattern" | "enum" => kind == "string",
        "minimum" | "maximum" => matches!(kind, "number" | "integer"),
        _ => true,
    }
}

/// Converts a schema to Gemini's own dialect.
pub(super) fn open_api(
    root: Map<String, Value>,
    losses: &mut Vec<Loss>,
) -> Result<Value, Unsayable> {
    let mut root = root;
    root.insert("type".to_owned(), "object".into());
    for name in ["anyOf", "enum"] {
        if root.remove(name).is_some() {
            lose(
                losses,
                &Pointer::root(),
                name,
                "is not allowed at the root, and is not checked",
            );
        }
    }
    let is_empty = root
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty);
    match is_empty {
        // A function without parameters has no schema.
        true => Ok(Value::Null),
        false => of_type(&root, "object", &Pointer::root(), losses).map(Value::Object),
    }
}

pub(super) fn lose(losses: &mut Vec<Loss>, at: &Pointer, keyword: &str, became: &str) {
    let loss = Loss {
        pointer: at.as_str().to_owned(),
        keyword: keyword.to_owned(),
        became: became.to_owned(),
    };
    if !losses.contains(&loss) {
        losses.push(loss);
    }
}

fn unsayable(at: &Pointer, why: &str) -> Unsayable {
    Unsayable {
        pointer: at.as_str().to_owned(),
        why: why.to_owned(),
    }
}

fn open_api_node(node: &Value, at: &Pointer, losses: &mut Vec<Loss>) -> Result<Value, Unsayable> {
    let Some(node) = node.as_object() else {
        return Err(unsayable(
            at,
            "any value is accepted here, but every schema needs a `type`",
        ));
    };
    let mut kinds = node.get("type").map(types).unwrap_or_default();
    if kinds.is_empty() && node.get("enum").is_some_and(holds_texts) {
        kinds.push("string".to_owned());
    }
    let is_nullable = kinds.len() > 1 && kinds.iter().any(|kind| kind == "null");
    kinds.retain(|kind| !is_nullable || kind != "null");
    let mut said = match (
        kinds.as_slice(),
        node.get("anyOf").and_then(Value::as_array),
    ) {
        ([], Some(any)) => {
            let each = any.iter().enumerate();
            let each = each.map(|(index, inner)| {
                open_api_node(inner, &at.member("anyOf").element(index), losses)
            });
            let each = each.collect::<Result<Vec<Value>, Unsayable>>()?;
            for name in node
                .keys()
                .filter(|name| !is_annotation(name) && *name != "anyOf")
            {
                lose(losses, at, name, "is next to `anyOf`, and is not checked");
            }
            let mut said = Map::from_iter([("anyOf".to_owned(), Value::Array(each))]);
            said.extend(
                node.get("description")
                    .map(|text| ("description".to_owned(), text.clone())),
            );
            said
        }
        ([], None) => {
            return Err(unsayable(
                at,
                "any value is accepted here, but every schema needs a `type`",
            ));
        }
        ([one], _) => of_type(node, one, at, losses)?,
        (several, _) => {
            let each = several
                .iter()
                .map(|kind| of_type(node, kind, at, losses).map(Value::Object));
            let each = each.collect::<Result<Vec<Value>, Unsayable>>()?;
            Map::from_iter([("anyOf".to_owned(), Value::Array(each))])
        }
    };
    if is_nullable {
        said.insert("nullable".to_owned(), true.into());
    }
    Ok(Value::Object(said))
}

fn holds_texts(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_string) && !list.is_empty())
}

/// Returns the types in a `type` keyword.
pub(super) fn types(value: &Value) -> Vec<String> {
    match value {
        Value::Array(several) => several.iter().filter_map(text_of).collect(),
        one => text_of(one).into_iter().collect(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the part of a schema that applies to one of its types.
fn of_type(
    node: &Map<String, Value>,
    kind: &str,
    at: &Pointer,
    losses: &mut Vec<Loss>,
) -> Result<Map<String, Value>, Unsayable> {
    let mut said = Map::new();
    for (name, value) in node.iter().filter(|(name, _)| belongs(name, kind)) {
        match name.as_str() {
            "type" => drop(said.insert("type".to_owned(), kind.into())),
            "anyOf" => lose(losses, at, name, "is next to `type`, and is not checked"),
            "enum" => {
                let texts: Vec<&Value> = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|value| value.is_string())
                    .collect();
                match texts.is_empty() || texts.iter().any(|text| **text == "") {
                    true => lose(losses, at, name, "has an empty value, and is not checked"),
                    false => drop(said.insert(name.clone(), json!(texts))),
                }
            }
            "format" => {
                let is_of_numbers =
                    matches!(value.as_str(), Some("float" | "double" | "int32" | "int64"));
                match is_of_numbers == matches!(kind, "number" | "integer") {
                    true => drop(said.insert(name.clone(), value.clone())),
                    false => lose(losses, at, name, "is not checked"),
                }
            }
            "items" => {
                let items = open_api_node(value, &at.member(name), losses)?;
                said.insert(name.clone(), items);
            }
            "properties" => {
                let at = at.member(name);
                let inner = value.as_object().into_iter().flatten();
                let inner = inner.map(|(key, schema)| {
                    Ok((key.clone(), open_api_node(schema, &at.member(key), losses)?))
                });
                let inner = inner.collect::<Result<Map<String, Value>, Unsayable>>()?;
                said.insert(name.clone(), Value::Object(inner));
            }
            _ => drop(said.insert(name.clone(), value.clone())),
        }
    }
    said.entry("type").or_insert_with(|| kind.into());
    let other_enum = kind != "string" && node.get("enum").is_some_and(Value::is_array);
    if other_enum {
        lose(
            losses,
            at,
            "enum",
            "is not a list of strings, and is not checked",
        );
    }
    if kind == "array" && !said.contains_key("items") {
        return Err(unsayable(
            at,
            "an array needs `items`, but any element is accepted here",
        ));
    }
    if kind == "object" {
        if said
            .get("properties")
            .and_then(Value::as_object)
            .is_none_or(Map::is_empty)
        {
            return Err(unsayable(
                at,
                "an object needs properties, but this one declares none",
            ));
        }
        let properties: Vec<String> = said["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        if let Some(Value::Array(required)) = said.get_mut("required") {
            let is_property = |name: &Value| {
                name.as_str()
                    .is_some_and(|name| properties.iter().any(|it| it == name))
            };
            if !required.iter().all(is_property) {
                required.retain(is_property);
                lose(
                    losses,
                    at,
                    "required",
                    "lists an unknown property, and is not checked",
                );
            }
        }
    }
    Ok(said)
}

/// Converts a schema to strict mode, in which every object is closed.
pub(super) fn closed(
    root: Map<String, Value>,
    needs_all: bool,
    losses: &mut Vec<Loss>,
) -> Result<Value, Unsayable> {
    closed_node(Value::Object(root), needs_all, &Pointer::root(), losses)
}

fn closed_node(
    node: Value,
    needs_all: bool,
    at: &Pointer,
    losses: &mut Vec<Loss>,
) -> Result<Value, Unsayable> {
    let mut node = match node {
        Value::Object(node) => node,
        other => return Ok(other),
    };
    let says_what = ["type", "anyOf", "$ref", "enum", "const", "properties"]
        .iter()
        .any(|name| node.contains_key(*name));
    if needs_all && !says_what {
        return Err(unsayable(
            at,
            "any value is accepted here, but a strict schema must describe each value",
        ));
    }
    if (is_type(&node, "object") || node.contains_key("properties"))
        && node.get("additionalProperties") != Some(&Value::Bool(false))
    {
        return Err(unsayable(
            at,
            "the object allows undeclared properties, which strict mode forbids",
        ));
    }
    for name in [
        "properties",
        "$defs",
        "definitions",
        "patternProperties",
        "dependentSchemas",
    ] {
        let Some(Value::Object(inner)) = node.get(name).cloned() else {
            continue;
        };
        let at = at.member(name);
        let inner = inner.into_iter();
        let inner = inner.map(|(key, schema)| {
            let schema = closed_node(schema, needs_all, &at.member(&key), losses)?;
            Ok((key, schema))
        });
        let inner = inner.collect::<Result<Map<String, Value>, Unsayable>>()?;
        node.insert(name.to_owned(), Value::Object(inner));
    }
    for name in [
        "items",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
    ] {
        if let Some(inner @ Value::Object(_)) = node.get(name).cloned() {
            let inner = closed_node(inner, needs_all, &at.member(name), losses)?;
            node.insert(name.to_owned(), inner);
        }
    }
    for name in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        let Some(Value::Array(inner)) = node.get(name).cloned() else {
            continue;
        };
        let inner = inner.into_iter().enumerate();
        let inner = inner.map(|(index, schema)| {
            closed_node(schema, needs_all, &at.member(name).element(index), losses)
        });
        node.insert(
            name.to_owned(),
            Value::Array(inner.collect::<Result<Vec<Value>, Unsayable>>()?),
        );
    }
    if needs_all {
        require_all(&mut node, at, losses);
    }
    Ok(Value::Object(node))
}

/// Makes all properties required. Properties that were optional may be `null` instead of absent.
fn require_all(node: &mut Map<String, Value>, at: &Pointer, losses: &mut Vec<Loss>) {
    let required: Vec<Value> = node
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = node.get_mut("properties") else {
        // A closed object that has no properties but requires one accepts no value.
        node.remove("required");
        return;
    };
    for (name, schema) in properties
        .iter_mut()
        .filter(|(name, _)| !required.iter().any(|it| it == name.as_str()))
    {
        *schema = nullable(schema.take());
        lose(
            losses,
            &at.member("properties").member(name),
            "required",
            "now includes this property, which is `null` instead of absent",
        );
    }
    let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
    node.insert("required".to_owned(), Value::Array(names));
}

/// Returns a schema that also accepts `null`.
fn nullable(schema: Value) -> Value {
    let Value::Object(mut members) = schema else {
        return schema;
    };
    let is_plain = ["anyOf", "$ref", "const", "enum"]
        .iter()
        .all(|name| !members.contains_key(*name));
    match members.get("type").map(types) {
        Some(kinds) if is_plain => {
            let kinds = kinds
                .iter()
                .map(String::as_str)
                .filter(|kind| *kind != "null")
                .chain(["null"]);
            members.insert("type".to_owned(), kinds.collect());
            Value::Object(members)
        }
        _ => {
            let description = members.remove("description");
            let mut either =
                Map::from_iter([("anyOf".to_owned(), json!([members, {"type": "null"}]))]);
            either.extend(description.map(|text| ("description".to_owned(), text)));
            Value::Object(either)
        }
    }
}
