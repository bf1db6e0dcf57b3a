//! `reqc route`: the agent in a roster for a file.

use serde_json::{Value, json};

use super::args::{Format, Route as Arguments};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::compile::route::{PassedOver, Route, Router};
use crate::diag::{Diagnostic, did_you_mean};
use crate::repo::{FileToRoute, Roster};
use crate::text::text;

pub(super) fn run(options: &Options, arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let roster = match roster(&opened, &arguments.roster) {
        Ok(roster) => roster,
        // The roster may be in a file that could not be read.
        Err(failure) => match unread(&opened) {
            found if found.is_empty() => return Err(failure),
            found => return Ok(show_findings(options, &opened.report_of(found), terminal)),
        },
    };
    let subject = FileToRoute::new(&arguments.file, arguments.project.as_deref());
    let route = Router::new(&opened.compiler).route(roster, &subject);
    let agent = route
        .agent
        .map(|id| opened.compiler.hierarchy().get(id).name.value.to_string());
    match options.format {
        Format::Json => terminal.json(&to_json(&arguments.roster, agent.as_deref(), &route)),
        _ => write(arguments, agent.as_deref(), &route, terminal),
    }
    Ok(if agent.is_some() {
        Status::Clean
    } else {
        Status::Findings
    })
}

fn roster<'o>(opened: &'o Opened, name: &str) -> Result<&'o Roster, Failure> {
    let rosters = &opened.compiler.repo().rosters;
    let found = rosters.iter().find(|roster| &*roster.name.value == name);
    found.ok_or_else(|| {
        let near = did_you_mean(
            name,
            rosters.iter().map(|roster| roster.name.value.as_ref()),
        );
        let names: Vec<&str> = rosters
            .iter()
            .map(|roster| roster.name.value.as_ref())
            .collect();
        let help = match names.is_empty() {
            true => "`rosters.toml` defines none".to_owned(),
            false => format!("rosters: {}", names.join(", ")),
        };
        Failure::new(format!("there is no roster `{name}`")).help(near.unwrap_or(help))
    })
}

/// Returns the errors that explain why rosters of `rosters.toml` are missing. `roster/*` errors are
/// excluded, because they concern rosters that were read.
fn unread(opened: &Opened) -> Vec<Diagnostic> {
    let errors =
        opened.errors(|file| opened.compiler.sources().get(file).path().as_ref() == "rosters.toml");
    errors
        .into_iter()
        .filter(|finding| !finding.rule.code.starts_with("roster/"))
        .collect()
}

/// Writes the agent on a separate line for scripts; with `-q`, nothing else.
fn write(arguments: &Arguments, agent: Option<&str>, route: &Route, terminal: &mut Terminal) {
    match agent {
        Some(agent) => terminal.text(&text!("{}\n", agent)),
        None => terminal.say(&text!(
            "no agent in the roster `{}` accepts `{}`",
            arguments.roster,
            arguments.file
        )),
    }
    for (name, why) in &route.passed {
        terminal.say(&text!("  not {}: {}", name, why.to_string()));
    }
}

fn to_json(roster: &str, agent: Option<&str>, route: &Route) -> Value {
    let passed = route.passed.iter().map(|(name, why)| {
        let mismatches: Vec<Value> = match why {
            PassedOver::Unusable => Vec::new(),
            PassedOver::Mismatch(found) => found
                .iter()
                .map(|it| {
                    let wanted: Vec<&str> = it.wanted.iter().map(AsRef::as_ref).collect();
                    json!({"key": it.dimension.key(), "wanted": wanted, "found": it.found})
                })
                .collect(),
        };
        json!({"agent": &**name, "why": why.to_string(), "mismatches": mismatches})
    });
    json!({"roster": roster, "agent": agent, "passed": passed.collect::<Vec<Value>>()})
}
