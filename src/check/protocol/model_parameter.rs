//! `protocol/model-parameter`: a member that the model rejects or ignores, or a value that it does
//! not accept.

use serde_json::Value;

use super::taken::Taken;
use super::{Found, Subject, body_rule};
use crate::check::About;
use crate::check::families::Breach;
use crate::repo::{Demand, Family, MemberPath};
use crate::text::cut;

body_rule! {
    Error "protocol/model-parameter", "the model rejects a field of the request, or its value",
    "Models of the same API accept different fields. Claude Opus 4.7 and later reject `temperature`; GPT-5 and the o-series \
     require `max_completion_tokens` instead of `max_tokens`; each model has its own reasoning efforts, and its own maximum \
     for `max_tokens`. The API rejects every such request with status 400. It is a warning if the model ignores the field, if reports \
     disagree, or if the rejection was observed on a different server. It is also a warning if a fact applies only from a certain API \
     version on and the request's headers are unknown: the message then names the version.\n\n\
     Some servers have such rules for all models. DeepSeek, for example, accepts only `text` and `json_object` as \
     `response_format.type`, and no `developer` messages.\n\n\
     * wrong: `temperature = 0.2` with `claude-opus-4-7`\n\
     * right: no `temperature`\n\
     * wrong: `reasoning_effort = \"minimal\"` with `gpt-5.1`\n\
     * right: `reasoning_effort = \"low\"`\n\n\
     `model-families.toml` lists the known facts about models, with the source of each fact and the date on which it was seen; \
     `reqc models NAME` prints the facts that apply to a model. A repository can contain a file with that name to add models or to \
     correct an entry: see docs/models.md.",
    seen "2026-11" {
        "recorded: pydantic-ai, tests/models/cassettes/test_anthropic/test_anthropic_explicit_effort_xhigh_unsupported_model_errors.yaml":
            "Claude Opus 4.6 rejects the effort `xhigh`",
        "https://platform.claude.com/docs/en/build-with-claude/effort":
            "Claude's efforts depend on the model",
        "https://developers.openai.com/api/docs/guides/latest-model":
            "OpenAI's sampling settings depend on the model and its effort",
        "https://ai.google.dev/gemini-api/docs/thinking":
            "Gemini's thinking budgets and levels depend on the model",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let mut known: Vec<(&MemberPath, Taken)> = Vec::new();
    for breach in subject.facts.breaches(subject) {
        let at = known.iter().position(|(place, _)| *place == breach.place);
        let at = at.unwrap_or_else(|| {
            known.push((breach.place, Taken::instead_of(&breach, subject)));
            known.len() - 1
        });
        let taken = &known[at].1;
        let note = found.at(breach.value, message(&breach, taken, subject));
        let note = match &breach.fact.demand {
            Demand::Absent { values, .. } if values.is_empty() => note.about(About::Presence),
            Demand::Absent { .. } | Demand::Value { .. } => note.about(About::Form),
        };
        let note = if breach.family.is_of_whole_server() {
            note
        } else {
            note.of_model()
        };
        note.level(breach.severity).help(help(&breach, taken));
    }
}

fn message(breach: &Breach<'_, '_>, taken: &Taken, subject: &Subject<'_>) -> String {
    let (fact, name) = (breach.fact, breach.place.name());
    let who = match breach.family.is_of_whole_server() {
        true => server_of(breach.family, subject),
        false => subject.model.unwrap_or("this model"),
    };
    let (who, when) = (cut(who, 60), condition(breach));
    if let Some(says) = &fact.says {
        return format!("`{name}` with {who}{when}: {says}");
    }
    let conditions = fact.conditions();
    let value = cut(&shown(breach.value), 60).into_owned();
    match &fact.demand {
        Demand::Absent { values, .. } if values.is_empty() => {
            format!("{who} rejects `{name}`{when}{conditions}")
        }
        Demand::Absent { .. } => {
            format!("`{name}` is {value}, which {who} rejects{when}{conditions}")
        }
        Demand::Value { .. } if taken.is_nothing() => {
            format!("{who} does not accept `{name}` in this request{conditions}{when}")
        }
        Demand::Value { .. } => format!(
            "`{name}` is {value}, but {who} accepts {}{conditions}{when}",
            taken.told()
        ),
    }
}

/// Returns the name of a server that a family lists: the body's server if it is listed, or else the
/// first one.
fn server_of<'f>(family: &'f Family, subject: &Subject<'_>) -> &'f str {
    let own = family
        .servers
        .iter()
        .find(|server| *server.value == *subject.server.name());
    let named = own.or_else(|| family.servers.first());
    named.map_or("this server", |server| &server.value)
}

/// Returns a phrase with the API version or the beta feature that the fact depends on.
fn condition(breach: &Breach<'_, '_>) -> String {
    let version = breach
        .family
        .from_version
        .as_ref()
        .map(|from| format!(" from `anthropic-version` {from} on"));
    let beta = breach
        .family
        .without_betas()
        .map(|without| format!(" {without}"));
    let conditions: Vec<String> = version.into_iter().chain(beta).collect();
    match (conditions.is_empty(), breach.is_conditional) {
        (true, _) => String::new(),
        (false, false) => conditions.concat(),
        (false, true) => format!(
            "{} (the headers of this request are unknown)",
            conditions.concat()
        ),
    }
}

fn help(breach: &Breach<'_, '_>, taken: &Taken) -> String {
    if let Some(help) = &breach.fact.help {
        return help.to_string();
    }
    match &breach.fact.demand {
        Demand::Absent {
            instead: Some(other),
            ..
        } => format!("write `{other}` instead"),
        Demand::Absent {
            instead: None,
            values,
            ..
        } if values.is_empty() => "leave it out".to_owned(),
        Demand::Absent { .. } => "leave it out, or write another value".to_owned(),
        Demand::Value { .. } if taken.is_nothing() => "leave it out".to_owned(),
        Demand::Value { one_of, .. } if one_of.is_empty() => format!("write {}", taken.told()),
        Demand::Value { .. } => "write a value that the model accepts, or leave it out".to_owned(),
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
