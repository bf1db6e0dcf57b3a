//! OpenTelemetry spans, as defined by the semantic conventions for generative AI, by `OpenLLMetry`,
//! and by the Vercel AI SDK.
//!
//! Sources: <https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>
//! (`gen_ai.input.messages`, `gen_ai.system_instructions`, `gen_ai.tool.definitions`);
//! `traceloop/openllmetry` (`gen_ai.prompt.0.content`); `vercel/ai`, `packages/ai/src/telemetry`
//! and its snapshots (`ai.prompt.messages`, `ai.prompt.tools`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Unit;

/// The attributes of a span.
type Attributes = Map<String, Value>;

/// Returns the requests in the spans of an object, or in the object itself if it is a span; `None`
/// if there are none.
pub(super) fn of(members: &mut Map<String, Value>) -> Option<Vec<Unit>> {
    if let Some(Value::Array(resources)) = members.get_mut("resourceSpans").map(Value::take) {
        let spans = resources
            .into_iter()
            .flat_map(|resource| list(resource, &["scopeSpans", "instrumentationLibrarySpans"]));
        let spans = spans.flat_map(|scope| list(scope, &["spans"]));
        return Some(spans.filter_map(|span| request(&span)).collect());
    }
    let attributes = members.get("attributes")?;
    let is_span = attributes_of(attributes)
        .keys()
        .any(|name| name.starts_with("gen_ai.") || name.starts_with("ai.prompt"));
    is_span.then(|| {
        request(&Value::Object(std::mem::take(members)))
            .into_iter()
            .collect()
    })
}

fn list(mut value: Value, names: &[&str]) -> Vec<Value> {
    let found = names
        .iter()
        .find_map(|name| value.get_mut(*name).map(Value::take));
    match found {
        Some(Value::Array(elements)) => elements,
        _ => Vec::new(),
    }
}

/// Returns attributes by name, given as an object or as OTLP's list of keys and values.
fn attributes_of(value: &Value) -> Attributes {
    match value {
        Value::Object(members) => members.clone(),
        Value::Array(pairs) => pairs
            .iter()
            .filter_map(|pair| {
                Some((
                    pair.get("key")?.as_str()?.to_owned(),
                    plain(pair.get("value")?),
                ))
            })
            .collect(),
        _ => Map::new(),
    }
}

/// Returns the plain value in OTLP's `{"stringValue": …}` and similar objects.
fn plain(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|members| members.iter().next()) else {
        return value.clone();
    };
    match kind.as_str() {
        "intValue" => inner
            .as_str()
            .and_then(|text| text.parse::<i64>().ok())
            .map_or(inner.clone(), Value::from),
        "arrayValue" => inner
            .get("values")
            .and_then(Value::as_array)
            .map_or(Value::Null, |values| values.iter().map(plain).collect()),
        "kvlistValue" => Value::Object(attributes_of(inner.get("values").unwrap_or(&Value::Null))),
        _ => inner.clone(),
    }
}

fn request(span: &Value) -> Option<Unit> {
    let attributes = attributes_of(span.get("attributes")?);
    // The span of an agent, and the AI SDK's outer span, repeat the content of the requests in
    // their inner spans.
    if text(&attributes, "gen_ai.operation.name").is_some_and(|name| {
        matches!(
            name,
            "invoke_agent" | "execute_tool" | "create_agent" | "embeddings"
        )
    }) {
        return None;
    }
    if text(&attributes, "ai.operationId").is_some_and(|name| !name.contains(".do")) {
        return None;
    }
    let is_of_sdk = attributes.contains_key("ai.prompt.messages");
    let messages = read(&attributes, "gen_ai.input.messages")
        .or_else(|| read(&attributes, "ai.prompt.messages"));
    let messages = messages.or_else(|| numbered(&attributes))?;
    let system = read(&attributes, "gen_ai.system_instructions")
        .map(|parts| json!({"role": "system", "content": texts(&parts)}));
    let messages: Vec<Value> = system
        .into_iter()
        .chain(messages.as_array()?.iter().flat_map(message))
        .collect();
    let tools = ["gen_ai.tool.definitions", "ai.prompt.tools"]
        .into_iter()
        .find_map(|name| read(&attributes, name));
    let model = [
        "gen_ai.request.model",
        "ai.model.id",
        "gen_ai.response.model",
    ]
    .into_iter()
    .find_map(|it| text(&attributes, it))
    .unwrap_or_default();
    let mut body = json!({"model": model, "messages": messages});
    if let Some(Value::Array(tools)) = tools {
        body["tools"] = tools.iter().map(tool).collect();
    }
    let started = [
        "startTimeUnixNano",
        "start_time_unix_nano",
        "startTime",
        "start_time",
        "timestamp",
    ];
    let started = started.into_iter().find_map(|name| span.get(name)).cloned();
    let document = json!({
        "url": "/v1/chat/completions", "body": body, "timestamp": started, "response": {"usage": usage(&attributes)},
    });
    let form = if is_of_sdk {
        "Vercel AI SDK spans"
    } else {
        "OpenTelemetry spans"
    };
    Some(Unit {
        document,
        form,
        is_converted: true,
    })
}

fn text<'v>(attributes: &'v Attributes, name: &str) -> Option<&'v str> {
    attributes.get(name).and_then(Value::as_str)
}

/// Parses an attribute that is a string containing JSON, or a list of such strings.
fn read(attributes: &Attributes, name: &str) -> Option<Value> {
    let value = attributes.get(name)?;
    match value {
        Value::String(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| value.clone())),
        Value::Array(elements) => {
            let inner = elements.iter().map(|element| {
                element
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok())
                    .unwrap_or_else(|| element.clone())
            });
            Some(inner.collect())
        }
        _ => Some(value.clone()),
    }
}

/// Collects messages from `OpenLLMetry`'s numbered attributes, such as `gen_ai.prompt.3.role`.
fn numbered(attributes: &Attributes) -> Option<Value> {
    let mut messages: BTreeMap<usize, Map<String, Value>> = BTreeMap::new();
    for (name, value) in attributes {
        let Some((index, member)) = name
            .strip_prefix("gen_ai.prompt.")
            .and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let Ok(index) = index.parse() else { continue };
        messages
            .entry(index)
            .or_default()
            .insert(member.to_owned(), value.clone());
    }
    (!messages.is_empty()).then(|| messages.into_values().map(Value::Object).collect())
}

/// Converts a message to the format of a chat API. A message with results may become several
/// messages.
fn message(message: &Value) -> Vec<Value> {
    let role = message
        .get("role")
        .cloned()
        .unwrap_or_else(|| json!("user"));
    let parts = message.get("parts").or(message.get("content"));
    let Some(parts) = parts.and_then(Value::as_array) else {
        return vec![message.clone()];
    };
    let (mut content, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match kind(part).as_str() {
            "text" => content.push(json!({"type": "text", "text": member(part, &["text", "content"])})),
            "tool_call" => calls.push(json!({
                "id": member(part, &["id", "toolCallId"]), "type": "function",
                "function": {"name": member(part, &["name", "toolName"]), "arguments": written(&member(part, &["arguments", "input", "args"]))},
            })),
            "tool_call_response" | "tool_result" => results.push(json!({
                "role": "tool", "tool_call_id": member(part, &["id", "toolCallId"]),
                "content": written(&member(part, &["response", "result", "output"])),
            })),
            _ => content.push(part.clone()),
        }
    }
    if content.is_empty() && calls.is_empty() {
        return results;
    }
    let mut whole = json!({"role": role, "content": content});
    if !calls.is_empty() {
        whole["tool_calls"] = calls.into();
    }
    results.insert(0, whole);
    results
}

fn kind(part: &Value) -> String {
    part.get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .replace('-', "_")
}

fn member(part: &Value, names: &[&str]) -> Value {
    names
        .iter()
        .find_map(|name| part.get(*name))
        .cloned()
        .unwrap_or_default()
}

fn written(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(parts: &Value) -> String {
    match parts {
        Value::Array(parts) => parts.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => part
            .get("content")
            .or(part.get("text"))
            .map(texts)
            .unwrap_or_default(),
        other => written(other),
    }
}

fn tool(tool: &Value) -> Value {
    if tool.get("function").is_some() {
        return tool.clone();
    }
    let schema = ["parameters", "inputSchema", "input_schema"]
        .into_iter()
        .find_map(|name| tool.get(name));
    json!({"type": "function", "function": {"name": tool.get("name"), "description": tool.get("description"), "parameters": schema}})
}

fn usage(attributes: &Attributes) -> Value {
    let input = count(
        attributes,
        &[
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "ai.usage.promptTokens",
            "ai.usage.inputTokens",
        ],
    );
    let cached = count(
        attributes,
        &[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "ai.usage.cachedInputTokens",
        ],
    );
    let output = count(
        attributes,
        &[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "ai.usage.completionTokens",
            "ai.usage.outputTokens",
        ],
    );
    json!({"prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}})
}

fn count(attributes: &Attributes, names: &[&str]) -> Option<u64> {
    names
        .iter()
        .find_map(|name| attributes.get(*name)?.as_u64())
}
