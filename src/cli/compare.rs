//! `reqc compare`: the content that one of two bodies for a conversation lacks.

use std::path::Path;

use super::args::{Compare, Format};
use super::options::Options;
use super::render::{Made, of_context};
use super::{Failure, Outcome, Status, Terminal, lint};
use crate::compare::{Allowed, ComparedFiles, NamedBodies, PlacedBody, bodies};
use crate::diag::{did_you_mean, listed};
use crate::provider::WireFormat;
use crate::report::{comparison_json, comparison_markdown, comparison_text};
use crate::system::is_input;

pub(super) fn run(options: &Options, args: &Compare, terminal: &mut Terminal) -> Outcome {
    let allowed = allowed(&args.allow)?;
    if !args.files.is_empty() && !args.agents.is_empty() {
        return Err(Failure::new(
            "a file cannot be compared with an agent: name two files or two agents",
        ));
    }
    let [first, second] = match args.files.as_slice() {
        [first, second] => of_files(options, args, first, second)?,
        _ => of_agents(options, &args.agents, terminal)?,
    };
    let compared = ComparedFiles::of(first, second, &allowed);
    match options.format {
        Format::Json => terminal.json(&comparison_json(&compared)),
        Format::Markdown => terminal.text(&comparison_markdown(&compared)),
        _ => terminal.text(&comparison_text(&compared)),
    }
    Ok(if compared.loses() {
        Status::Findings
    } else {
        Status::Clean
    })
}

fn of_files(
    options: &Options,
    args: &Compare,
    first: &Path,
    second: &Path,
) -> Result<[NamedBodies; 2], Failure> {
    if is_input(first) && is_input(second) {
        return Err(Failure::new(
            "standard input can be only one of the two files",
        ));
    }
    let root = options.root()?;
    let wire = |name: &Option<String>| name.as_deref().map(lint::wire_named).transpose();
    let read = |file: &Path, wire: Option<WireFormat>| -> Result<NamedBodies, Failure> {
        let (shown, reader) = lint::open(options, &root, file)?;
        let found = bodies(reader, wire).map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
        Ok(NamedBodies {
            name: shown,
            bodies: found,
        })
    };
    Ok([
        read(first, wire(&args.from)?)?,
        read(second, wire(&args.to)?)?,
    ])
}

fn of_agents(
    options: &Options,
    agents: &[String],
    terminal: &mut Terminal,
) -> Result<[NamedBodies; 2], Failure> {
    let [first, second] = agents else {
        let help =
            "write `reqc compare A.json B.json`, or `reqc compare --agent A --agent B --context C`";
        return Err(Failure::new("name two files or two agents to compare").help(help));
    };
    Ok([
        of_agent(options, first, terminal)?,
        of_agent(options, second, terminal)?,
    ])
}

fn of_agent(
    options: &Options,
    agent: &str,
    terminal: &mut Terminal,
) -> Result<NamedBodies, Failure> {
    let opened = options.open_one(agent)?;
    let id = opened.agent(agent)?;
    let Some(plan) = opened.compiler.plan(id) else {
        return Err(Failure::new(format!("`{agent}` cannot be compiled"))
            .help(format!("`reqc check {agent}` shows why")));
    };
    options.selection(&opened, terminal)?;
    let model = opened
        .compiler
        .repo()
        .client_model(plan.name(), options.model.as_deref());
    let made: Made = of_context(&opened, id, agent, model)?;
    let Ok(body) = made else {
        return Err(
            Failure::new(format!("`{agent}` has no body in this context"))
                .help(format!("`reqc check {agent}` shows why")),
        );
    };
    Ok(NamedBodies {
        name: agent.to_owned(),
        bodies: vec![PlacedBody::whole(
            body.value().clone(),
            plan.wire,
            &body.pretty(),
        )],
    })
}

/// Parses `--allow`: kinds, or kinds with a subject.
fn allowed(names: &[String]) -> Result<Allowed, Failure> {
    Allowed::parse(names).map_err(|unknown| {
        let help = did_you_mean(&unknown, Allowed::kinds())
            .unwrap_or_else(|| format!("known kinds: {}", listed(Allowed::kinds())));
        Failure::new(format!("unknown kind of difference: `{unknown}`")).help(help)
    })
}
