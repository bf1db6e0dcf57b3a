//! `protocol/model-parameter`: a member that the model refuses or ignores, or a value that it does not take.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::check::About;
use crate::check::families::Breach;
use crate::repo::Demand;
use crate::text::cut;

body_rule! {
    Options, Error "protocol/model-parameter", "the model refuses a member of the request, or its value",
    "Models of one API differ in what they take. Claude Opus 4.7 and later refuse `temperature`; GPT-5 and the o-series want \
     `max_completion_tokens` for `max_tokens`; each model has its own efforts of reasoning, and its own largest `max_tokens`. \
     The API answers with status 400, for every request. What a model ignores, what reports disagree on, and what was seen at \
     another server than the one that is asked, is a warning.\n\n\
     * wrong: `temperature = 0.2` with `claude-opus-4-7`\n\
     * right: no `temperature`\n\
     * wrong: `reasoning_effort = \"minimal\"` with `gpt-5.1`\n\
     * right: `reasoning_effort = \"low\"`\n\n\
     What is known of models stands in `model-families.toml`, with the source of each fact and the day on which it was seen; \
     `reqc models NAME` prints what holds for a model. A repository has a file of that name to add models, or to correct an \
     entry: docs/models.md describes it.",
    seen "2026-11" {
        "recorded: pydantic-ai, tests/models/cassettes/test_anthropic/test_anthropic_explicit_effort_xhigh_unsupported_model_errors.yaml":
            "Claude Opus 4.6 refuses the effort `xhigh`",
        "https://platform.claude.com/docs/en/build-with-claude/effort": "Claude: efforts by model",
        "https://developers.openai.com/api/docs/guides/latest-model":
            "OpenAI: sampling by model and effort",
        "https://ai.google.dev/gemini-api/docs/thinking": "Gemini: budgets and levels by model",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for breach in subject.facts.breaches(subject) {
        let note = found.at(breach.value, message(&breach, subject.model.unwrap_or("this model")));
        let note = match breach.fact.demand {
            Demand::Absent { .. } => note.about(About::Presence),
            Demand::Value { .. } => note.about(About::Form),
        };
        note.of_model().level(breach.severity).help(help(&breach));
    }
}

fn message(breach: &Breach<'_, '_>, model: &str) -> String {
    let (fact, name, model) = (breach.fact, breach.place.name(), cut(model, 60));
    if let Some(says) = &fact.says {
        return format!("`{name}` with {model}: {says}");
    }
    let conditions = fact.conditions();
    match &fact.demand {
        Demand::Absent { .. } => format!("{model} refuses `{name}`{conditions}"),
        demand @ Demand::Value { .. } => {
            let value = cut(&shown(breach.value), 60).into_owned();
            format!("`{name}` is {value}, and {model} takes {}{conditions}", demand.taken())
        }
    }
}

fn help(breach: &Breach<'_, '_>) -> String {
    if let Some(help) = &breach.fact.help {
        return help.to_string();
    }
    match &breach.fact.demand {
        Demand::Absent { instead: Some(other) } => format!("write `{other}` for it"),
        Demand::Absent { instead: None } => "leave it out".to_owned(),
        demand @ Demand::Value { one_of, .. } if one_of.is_empty() => format!("write {}", demand.taken()),
        Demand::Value { .. } => "write a value that the model takes, or leave it out".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    }
}
