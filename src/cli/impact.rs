//! `reqc impact`: the values that a location in a file affects.

use std::collections::BTreeSet;

use serde_json::json;

use super::args::Format;
use super::options::Options;
use super::{Failure, Outcome, Status, Terminal};
use crate::compile::impact::{ImpactError, ImpactQuery, Reached, impact};
use crate::diag::count;
use crate::json::Pointer;
use crate::text::{Text, text};

/// The maximum number of pointers shown for an agent.
const SHOWN: usize = 6;

pub(super) fn run(options: &Options, place: &str, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let asked = ImpactQuery::parse(place);
    let selection = opened.selection()?;
    let reached = impact(&opened.compiler, &asked, selection.agents.as_deref())
        .map_err(|why| failed(&why))?;
    match options.format {
        Format::Json => terminal.json(&document(place, &reached)),
        _ => terminal.text(&shown(place, &reached)),
    }
    Ok(Status::Clean)
}

fn failed(why: &ImpactError) -> Failure {
    let failure = Failure::new(why.to_string());
    match why {
        ImpactError::UnknownFile {
            help: Some(near), ..
        } => failure.help(near),
        ImpactError::NoSuchLine { .. } | ImpactError::NoSuchColumn { .. } => {
            failure.help("the numbers after the path are a line and a column, as in a finding")
        }
        ImpactError::LeftOut { .. } => failure.help("`reqc check` shows the errors"),
        _ => failure.help("write a file as in a finding: `partials/x.jinja:3:7`"),
    }
}

fn shown(place: &str, reached: &[Reached]) -> Text {
    if reached.is_empty() {
        return text!("{} affects nothing\n", place);
    }
    let mut shown = text!("{} reaches {}\n", place, summary(reached));
    let width = reached
        .iter()
        .map(|it| it.agent.chars().count())
        .max()
        .unwrap_or(0);
    for it in reached {
        let name = Text::line(&it.agent).padded(width);
        shown.push(&match (it.unfollowed, it.contexts.len()) {
            (Some(unfollowed), _) => text!("  {}  {}\n", name, unfollowed),
            (None, 0) => text!("  {}  {}\n", name, values(it)),
            (None, contexts) => text!(
                "  {}  {}  {}\n",
                name,
                count(contexts, "context"),
                values(it)
            ),
        });
    }
    shown
}

/// Summarises what is affected.
fn summary(reached: &[Reached]) -> Text {
    let with_bodies = reached.iter().filter(|it| !it.contexts.is_empty()).count();
    let requests = reached.iter().filter(|it| it.request).count();
    let bodies: usize = reached.iter().map(|it| it.contexts.len()).sum();
    let of_bodies = text!(
        "{} of {}",
        count(bodies, "body"),
        count(with_bodies, "agent")
    );
    let of_requests = text!(
        "the requests of {}, outside their bodies",
        count(requests, "agent")
    );
    match (with_bodies, requests) {
        (0, 0) => text!("no value that can be traced"),
        (0, _) => of_requests,
        (_, 0) => of_bodies,
        (_, _) => text!("{}, and {}", of_bodies, of_requests),
    }
}

fn values(it: &Reached) -> Text {
    let pointers: BTreeSet<&Pointer> = it.contexts.values().flatten().collect();
    let mut parts: Vec<Text> = pointers
        .iter()
        .take(SHOWN)
        .map(|pointer| Text::line(pointer.as_str()))
        .collect();
    if pointers.len() > SHOWN {
        parts.push(text!("and {} more", (pointers.len() - SHOWN).to_string()));
    }
    if pointers.is_empty() && !it.contexts.is_empty() {
        parts.push(text!("controls what is written"));
    }
    if it.request {
        parts.push(text!("the request outside the body"));
    }
    Text::join(&parts, ", ")
}

fn document(place: &str, reached: &[Reached]) -> serde_json::Value {
    let agents = reached.iter().map(|it| {
        let contexts = it.contexts.iter().map(|(name, pointers)| {
            let pointers: Vec<&str> = pointers.iter().map(Pointer::as_str).collect();
            json!({"context": &**name, "pointers": pointers})
        });
        let contexts: Vec<_> = contexts.collect();
        json!({"agent": &*it.agent, "request": it.request, "unfollowed": it.unfollowed, "contexts": contexts})
    });
    json!({"version": 1, "place": place, "agents": agents.collect::<Vec<_>>()})
}
