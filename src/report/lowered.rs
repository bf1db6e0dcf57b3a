//! Lowered checks, in one line, as a list, and as JSON.

use serde_json::{Value, json};

use super::{name, thousands};
use crate::compile::policy::{Lowered, LoweredKind, LoweredTo};
use crate::diag::count;
use crate::text::{Text, text};

/// The label of each kind, in report order.
const KINDS: [(LoweredKind, &str); 6] = [
    (LoweredKind::Rule, "rule"),
    (LoweredKind::Allow, "[[allow]]"),
    (LoweredKind::Extension, "[[extension]]"),
    (LoweredKind::Schema, "schema"),
    (LoweredKind::Golden, "golden context"),
    (LoweredKind::Argument, "--allow"),
];

/// The maximum number of checks listed individually.
const MOST: usize = 100;

/// Returns `checks reduced: 2 rules, 1 [[allow]]; …`, or nothing if no check was lowered.
pub(super) fn counted(lowered: &[Lowered]) -> Option<Text> {
    let mut parts: Vec<String> = Vec::new();
    for (kind, noun) in KINDS {
        match lowered.iter().filter(|it| it.kind == kind).count() {
            0 => {}
            many if noun.starts_with(['[', '-']) => parts.push(format!("{many} {noun}")),
            many => parts.push(count(many, noun)),
        }
    }
    if lowered
        .iter()
        .any(|it| it.kind == LoweredKind::Layer && it.to == Some(LoweredTo::Removed))
    {
        parts.push("a bundled layer without schemas".to_owned());
    }
    (!parts.is_empty()).then(|| {
        text!(
            "checks reduced: {}; `--format json` lists them\n",
            parts.join(", ")
        )
    })
}

/// Returns a line for each check that a change lowered.
pub fn lowered_text(lowered: &[Lowered]) -> Text {
    if lowered.is_empty() {
        return Text::new();
    }
    let heading = text!("this change reduces what is checked:\n");
    let lines = lowered
        .iter()
        .take(MOST)
        .map(|it| text!("  {}\n", line(it)));
    let more = lowered.len().saturating_sub(MOST);
    let more = (more > 0).then(|| {
        text!(
            "  … and {} more; `--format json` lists all\n",
            thousands(more)
        )
    });
    std::iter::once(heading).chain(lines).chain(more).collect()
}

fn line(it: &Lowered) -> Text {
    let place = it.place.as_ref().map_or(Text::new(), |(path, line)| {
        text!("{}:{}: ", name(path), *line)
    });
    let until = it
        .expires
        .as_ref()
        .map_or(Text::new(), |date| text!(" until {}", date));
    let scope = text!(
        "{}{}{}",
        of(" for agents ", it.agent.as_deref()),
        of(" in files ", it.path.as_deref()),
        until
    );
    let reason = it.reason.as_ref().map_or(Text::new(), |reason| {
        text!(": {}", Text::line(reason).cut(200))
    });
    let what = name(&it.what);
    let said = match (it.kind, it.to) {
        (LoweredKind::Rule, Some(LoweredTo::Default)) => text!("{} is no longer an error", what),
        (LoweredKind::Rule, to) => text!("{} = \"{}\"", what, to.map_or("", LoweredTo::name)),
        (LoweredKind::Allow, _) => text!("[[allow]] {}", what),
        (LoweredKind::Extension, _) => text!("[[extension]] of {}: {}", what, fields(it)),
        (LoweredKind::Schema, Some(LoweredTo::Removed)) => text!("{} was removed", what),
        (LoweredKind::Schema, _) => text!("a schema of the repository"),
        (LoweredKind::Layer, _) => {
            text!("reqc.toml: layer = \"bundled\": nothing bundled with reqc is used")
        }
        (LoweredKind::Argument, _) => text!("--allow {}", what),
        (LoweredKind::Golden, _) => text!("the context {} no longer has golden bodies", what),
        (LoweredKind::Context, _) => text!("the context {} was removed", what),
        (LoweredKind::Agent, Some(LoweredTo::Abstract)) => {
            text!("the agent {} is now abstract, so it is not compiled", what)
        }
        (LoweredKind::Agent, _) => text!("the agent {} was removed", what),
        (LoweredKind::Model, Some(LoweredTo::Removed)) => {
            text!("models.toml no longer sets a model for {}", what)
        }
        (LoweredKind::Model, _) => {
            text!("the model of {} is{}", what, of(" ", it.value.as_deref()))
        }
        (LoweredKind::Dialect, _) => {
            text!("reqc.toml: the dialect is{}", of(" ", it.value.as_deref()))
        }
    };
    text!("{}{}{}{}", place, said, scope, reason)
}

fn of(before: &'static str, value: Option<&str>) -> Text {
    value.map_or(Text::new(), |value| text!("{}`{}`", before, name(value)))
}

fn fields(it: &Lowered) -> Text {
    const SHOWN: usize = 5;
    let shown: Vec<Text> = it
        .fields
        .iter()
        .take(SHOWN)
        .map(|field| name(field))
        .collect();
    let more = if it.fields.len() > SHOWN { ", …" } else { "" };
    text!("{}{}", Text::join(&shown, ", "), more)
}

/// Returns the lowered checks as JSON.
pub(super) fn values(lowered: &[Lowered]) -> Vec<Value> {
    lowered.iter().map(value).collect()
}

fn value(it: &Lowered) -> Value {
    let (file, line) = it
        .place
        .as_ref()
        .map(|(file, line)| (&**file, *line))
        .unzip();
    json!({
        "kind": it.kind.name(),
        "what": &*it.what,
        "to": it.to.map(LoweredTo::name),
        "value": it.value.as_deref(),
        "agent": it.agent,
        "path": it.path,
        "fields": it.fields.iter().map(|field| &**field).collect::<Vec<_>>(),
        "reason": it.reason.as_deref(),
        "expires": it.expires,
        "file": file,
        "line": line,
    })
}
