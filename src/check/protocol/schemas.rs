//! The argument and response schemas in a body, for the rules about schemas.

use serde_json::{Map, Value};

use super::super::found::Found;
use super::super::subject::Subject;
use super::pattern::{Engine, has_lookaround, has_property, unread};
use super::tools::tools;
use crate::provider::WireFormat;

/// Returns `true` if a schema's `type` includes the given type.
pub(super) fn is_of_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one.eq_ignore_ascii_case(name),
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Reports an array without `items`, for OpenAI.
pub(super) fn check_items<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if !is_of_type(inner, "array") || inner.get("items").is_some() {
        return;
    }
    // One report is about a list of types: dotnet/extensions#6656.
    let is_sure = inner.get("type").is_some_and(Value::is_string);
    let message = match is_sure {
        true => "an array needs `items`",
        false => "an array needs `items`, according to a report also in a list of types",
    };
    let note = found.at_member(inner, "items", message);
    let note = if is_sure { note } else { note.warning() };
    note.help("add `items` with the schema of the elements, or write `\"items\": {}`");
}

/// Returns the properties' schemas that have none of the given keywords.
pub(super) fn properties_without<'b>(
    schema: &'b Value,
    keywords: &'static [&str],
) -> impl Iterator<Item = &'b Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|properties| properties.values())
        .filter_map(|property| Some((property, property.as_object()?)))
        .filter(|(_, members)| !keywords.iter().any(|name| members.contains_key(*name)))
        .map(|(property, _)| property)
}

/// Returns the answer's schema if the body requests strict mode for the answer.
pub(super) fn strict_format<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    let format = answer_format(subject)?;
    let is_always_strict = match subject.wire {
        WireFormat::AnthropicMessages => true,
        WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => false,
    };
    Some(format)
        .filter(|format| is_always_strict || is_strict(format))?
        .get("schema")
}

/// Returns the object that contains the answer's schema, strict or not.
pub(super) fn answer_format<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    match subject.wire {
        WireFormat::OpenAiChat => subject.member("response_format")?.get("json_schema"),
        WireFormat::OpenAiResponses => subject.member("text")?.get("format"),
        WireFormat::AnthropicMessages => subject
            .member("output_config")
            .and_then(|config| config.get("format"))
            .or_else(|| subject.member("output_format")),
        WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => None,
    }
}

/// Returns the answer's schema, strict or not.
pub(super) fn answer_schema<'b>(subject: &Subject<'b>) -> Option<&'b Value> {
    match subject.wire {
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => {
            subject.member("format").filter(|it| it.is_object())
        }
        WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::AnthropicMessages
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::LlamaCppInfill => answer_format(subject)?.get("schema"),
    }
}

fn is_strict(format: &Value) -> bool {
    format.get("strict") == Some(&Value::Bool(true))
}

/// Returns the argument and response schemas for which a body requests strict mode.
pub(super) fn strict<'b>(subject: &Subject<'b>) -> Vec<&'b Value> {
    let tools = tools(subject);
    let of_tools = tools
        .iter()
        .filter(|tool| tool.is_strict())
        .filter_map(super::tools::DeclaredTool::schema);
    of_tools.chain(strict_format(subject)).collect()
}

/// Reports a pattern with lookahead or lookbehind, which OpenAI does not support.
pub(super) fn check_lookaround<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let pattern = inner.get("pattern").and_then(Value::as_str);
    if pattern.is_some_and(has_lookaround) {
        found
            .at_member(inner, "pattern", "OpenAI rejects patterns with lookahead or lookbehind")
            .known_from(&["tombii/better-ccflare#357", "vercel/ai#21037", "anomalyco/opencode#32073"])
            .help("leave out the pattern and state it in the description, or write it without `(?=`, `(?!`, `(?<=` and `(?<!`");
    }
}

/// The advice about a pattern that an engine cannot compile.
const WITHOUT_PATTERN: &str =
    "leave out the pattern and state it in the description, or write it without this part";

/// Reports patterns in tool schemas that OpenAI rejects. OpenAI compiles patterns with Python's
/// `re`, and then rejects those with lookahead or lookbehind.
pub(super) fn check_openai_patterns<'b>(inner: &'b Value, found: &mut Found<'b>) {
    check_lookaround(inner, found);
    for (value, pattern, is_name) in inner.as_object().into_iter().flat_map(patterns_of) {
        if !is_name && has_lookaround(pattern) {
            continue;
        }
        if let Some(what) = unread(pattern, Engine::Python) {
            let note = found.at(
                value,
                format!(
                    "OpenAI compiles patterns with Python's `re`, which rejects this one: {what}"
                ),
            );
            // OpenAI's rejection was measured only for Unicode properties, and not for the names in
            // `patternProperties`.
            let is_measured = !is_name && has_property(pattern);
            let note = if is_measured { note } else { note.warning() };
            note.known_from(&[
                "BerriAI/litellm#40485",
                "bman654/clodex#195",
                "langfuse/langfuse#14770",
                "pleaseai/shunt#488",
            ])
            .help(WITHOUT_PATTERN);
        }
    }
}

/// Reports patterns that Groq rejects. Groq compiles patterns with Go's `regexp`, which lacks
/// look-around (reports confirm that Groq rejects it) and other JavaScript constructs.
pub(super) fn check_groq_patterns<'b>(inner: &'b Value, found: &mut Found<'b>) {
    for (value, pattern, is_name) in inner.as_object().into_iter().flat_map(patterns_of) {
        if let Some(what) = unread(pattern, Engine::Go) {
            let note = found.at(
                value,
                format!(
                    "Groq compiles patterns with Go's `regexp`, which rejects this one: {what}"
                ),
            );
            let is_confirmed = has_lookaround(pattern) && !is_name;
            let note = if is_confirmed { note } else { note.warning() };
            note.known_from(&[
                "CodeWithCJ/SparkyFitness#1649",
                "CodeWithCJ/SparkyFitness#1688",
                "colinhacks/zod#5034",
            ])
            .help(WITHOUT_PATTERN);
        }
    }
}

/// Returns the patterns in a schema, without those in its subschemas. Each comes with the value at
/// which a problem with the pattern is reported, and with `true` if the pattern is a name in
/// `patternProperties`.
pub(crate) fn patterns_of(
    schema: &Map<String, Value>,
) -> impl Iterator<Item = (&Value, &str, bool)> {
    let own = schema.get("pattern").into_iter();
    let own = own.filter_map(|value| Some((value, value.as_str()?, false)));
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flatten();
    own.chain(names.map(|(name, value)| (value, name.as_str(), true)))
}
