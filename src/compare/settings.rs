//! Reads a request's settings by their meaning: `max_tokens` in one format is `maxOutputTokens` in
//! another.
//!
//! `api-names.toml` lists the names of settings whose values mean the same in all formats. Other
//! settings are converted here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Side;
use super::piece::canonical;
use crate::check::history::{self, text_of};
use crate::import::forms;
use crate::provider::names;

/// A setting in a body.
#[derive(Debug)]
pub(super) struct Setting<'b> {
    /// The meaning of the value, in a form that all formats share.
    pub(super) meaning: String,
    /// The value in the body.
    pub(super) value: &'b Value,
}

/// The settings of a body: everything except its content.
#[derive(Debug, Default)]
pub(super) struct Settings<'b> {
    /// The settings that exist in several formats, by common name.
    pub(super) known: BTreeMap<&'static str, Setting<'b>>,
    /// The settings that are present with their default values, by name.
    pub(super) defaults: BTreeMap<&'static str, Setting<'b>>,
    /// All other members, by name.
    pub(super) other: BTreeMap<String, &'b Value>,
    /// The value of `model`, if present.
    pub(super) model: Option<&'b Value>,
}

/// The members that contain settings of several kinds.
const CONTAINERS: [&str; 6] = [
    "generationconfig",
    "options",
    "text",
    "reasoning",
    "outputconfig",
    "toolconfig",
];

/// Reads the settings of a body.
pub(super) fn settings(side: Side<'_>) -> Settings<'_> {
    let mut settings = Settings::default();
    let content = [
        forms::prompt_members(side.wire),
        &forms::TOOLS,
        history::member_of(side.wire).as_slice(),
    ]
    .concat();
    let beside = [
        "prompt",
        "suffix",
        "images",
        "input_prefix",
        "input_suffix",
        "input_extra",
    ];
    let has_history = history::member_of(side.wire).is_some();
    for (name, value) in side.body.as_object().into_iter().flatten() {
        let is_content =
            content.contains(&name.as_str()) || !has_history && beside.contains(&name.as_str());
        if is_content || value.is_null() {
            continue;
        }
        match value {
            Value::Object(members) if CONTAINERS.contains(&names::plain(name).as_str()) => {
                for (inner, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                    settings.read(&format!("{name}/{inner}"), value);
                }
            }
            _ => settings.read(name, value),
        }
    }
    settings
}

impl<'b> Settings<'b> {
    fn read(&mut self, name: &str, value: &'b Value) {
        let place = names::plain(name);
        let own_name = name.rsplit('/').next().unwrap_or(name);
        if let Some(setting) = names::of_setting(own_name).find_map(|one| one.meaning.as_deref()) {
            return self.set(setting, &canonical(value), value);
        }
        match place.as_str() {
            "model" => self.model = Some(value),
            "stop" | "stopsequences" | "generationconfig/stopsequences" | "options/stop" => {
                let list = if value.is_array() {
                    canonical(value)
                } else {
                    format!("[{}]", canonical(value))
                };
                self.set("stop", &list, value);
            }
            "toolchoice" | "toolconfig/functioncallingconfig" => {
                self.set("tool-choice", &tool_choice(value), value);
                if value.get("disable_parallel_tool_use") == Some(&Value::Bool(true)) {
                    self.set("parallel-calls", "false", value);
                }
            }
            "thinking" | "think" | "generationconfig/thinkingconfig" => self.thinking(value),
            "reasoningeffort" | "reasoning/effort" | "outputconfig/effort" => {
                self.set("effort", &lower(value), value);
            }
            "responseformat"
            | "text/format"
            | "outputconfig/format"
            | "outputformat"
            | "format" => {
                self.set("response-format", &response_format(value), value);
            }
            "generationconfig/responseschema" | "generationconfig/responsejsonschema" => {
                self.set(
                    "response-format",
                    &format!("schema {}", canonical(value)),
                    value,
                );
            }
            "generationconfig/responsemimetype" if value == "application/json" => {
                self.known.entry("response-format").or_insert(Setting {
                    meaning: "json".to_owned(),
                    value,
                });
            }
            "user" | "safetyidentifier" => self.set("user", &canonical(value), value),
            "metadata"
                if value
                    .as_object()
                    .is_some_and(|it| it.len() == 1 && it.contains_key("user_id")) =>
            {
                self.set("user", &canonical(&value["user_id"]), value);
            }
            _ => drop(self.other.insert(name.to_owned(), value)),
        }
    }

    /// Adds a setting.
    fn set(&mut self, name: &'static str, meaning: &str, value: &'b Value) {
        let default = match name {
            "stream" => "false",
            "parallel-calls" => "true",
            "answers" => "1",
            "tool-choice" | "service-tier" => "auto",
            "response-format" => "text",
            "thinking" => "off",
            _ => "",
        };
        let settings = match meaning.trim_matches('"') == default {
            true => &mut self.defaults,
            false => &mut self.known,
        };
        settings.insert(
            name,
            Setting {
                meaning: meaning.to_owned(),
                value,
            },
        );
    }

    /// Adds the thinking setting: Anthropic's object, Gemini's object, or Ollama's switch.
    fn thinking(&mut self, value: &'b Value) {
        let budget = ["budget_tokens", "thinkingBudget", "thinking_budget"]
            .into_iter()
            .find_map(|name| value.get(name)?.as_i64());
        let level = ["thinkingLevel", "thinking_level"]
            .into_iter()
            .find_map(|name| value.get(name));
        let meaning = match (value, budget) {
            (Value::Bool(is_on), _) => if *is_on { "on" } else { "off" }.to_owned(),
            (Value::String(effort), _) => effort.to_lowercase(),
            (_, Some(0)) => "off".to_owned(),
            (_, Some(-1)) => "as the model decides".to_owned(),
            (_, Some(budget)) => format!("up to {budget} tokens"),
            _ => match text_of(value, "type") {
                Some("disabled") => "off".to_owned(),
                Some("adaptive") => "as the model decides".to_owned(),
                _ if level.is_some() => "on".to_owned(),
                _ => canonical(value),
            },
        };
        self.set("thinking", &meaning, value);
        if let Some(level) = level {
            self.set("effort", &lower(level), value);
        }
    }
}

fn lower(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| canonical(value), str::to_lowercase)
}

/// Returns `auto`, `none`, `any`, or `only` and tool names.
fn tool_choice(value: &Value) -> String {
    if let Value::String(mode) = value {
        return word(mode);
    }
    let names = ["allowedFunctionNames", "allowed_function_names"]
        .into_iter()
        .find_map(|name| value.get(name)?.as_array());
    if let Some(names) = names {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        return format!("only {}", names.join(", "));
    }
    let name = value
        .get("name")
        .or_else(|| value.pointer("/function/name"))
        .and_then(Value::as_str);
    let kind = text_of(value, "mode").or_else(|| text_of(value, "type"));
    match (name, kind) {
        (Some(name), _) => format!("only {name}"),
        (None, Some(kind)) => word(kind),
        (None, None) => canonical(value),
    }
}

fn word(word: &str) -> String {
    match word.to_lowercase().as_str() {
        "required" | "any" => "any".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns `text`, `json`, or `schema` and the schema.
fn response_format(value: &Value) -> String {
    let schema = value
        .get("schema")
        .or_else(|| value.pointer("/json_schema/schema"));
    match (value, schema, text_of(value, "type")) {
        (Value::String(word), _, _) => word.clone(),
        (_, Some(schema), _) => format!("schema {}", canonical(schema)),
        (_, None, Some("json_object")) => "json".to_owned(),
        (_, None, Some("text")) => "text".to_owned(),
        // Ollama's `format` is the schema itself.
        _ => format!("schema {}", canonical(value)),
    }
}

/// Shortens a meaning for a message.
pub(super) fn shown(meaning: &str) -> String {
    const LONGEST: usize = 60;
    format!("`{}`", crate::text::cut(meaning, LONGEST))
}

/// Returns `true` if two meanings are equal. Numbers are compared by value.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || number(one).is_some_and(|one| number(other) == Some(one))
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok()
}
