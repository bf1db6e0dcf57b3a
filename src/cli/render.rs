//! `reqc render`: prints one body, or the curl command that sends it.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::args::Format;
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, lint, show_findings};
use crate::compile::Body;
use crate::compile::live::Live;
use crate::diag::Diagnostic;
use crate::golden;
use crate::resolve::ProfileId;
use crate::source::{MAX_SOURCE_BYTES, SourceText};
use crate::text::{Text, text};
use crate::tokens::{TokenEstimate, TokenPart};
use crate::unit::Plan;

/// The part of a request that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The body on several lines.
    Pretty,
    /// The body on one line.
    Compact,
    /// A curl command.
    Curl,
    /// The token estimate.
    Tokens,
}

pub(super) fn run(
    options: &Options,
    agent: &str,
    shape: Shape,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open_one(agent)?;
    let id = opened.agent(agent)?;
    let compiler = &opened.compiler;
    let Some(plan) = compiler.plan(id) else {
        return Ok(show_findings(
            options,
            &opened.report_of(opened.findings_of(id)),
            terminal,
        ));
    };
    let model = compiler
        .repo()
        .client_model(plan.name(), options.model.as_deref());
    let made = match options.conversation_file() {
        Some(file) => of_file(options, &opened, &plan, file, model)?,
        None => {
            options.selection(&opened, terminal)?;
            of_context(&opened, id, agent, model)?
        }
    };
    match made {
        // There is no body, regardless of the severity of the findings.
        Err(findings) => {
            show_findings(options, &opened.report_of(findings), terminal);
            return Ok(Status::Findings);
        }
        Ok(body) if shape == Shape::Tokens => {
            let estimate = TokenEstimate::of(body.value(), plan.wire, plan.model(model));
            match options.format {
                Format::Json => terminal.json(&tokens_document(&estimate)),
                _ => terminal.text(&tokens_table(&estimate)),
            }
        }
        Ok(body) if shape == Shape::Curl => {
            terminal.text(&crate::export::curl(
                &plan.request_line(model),
                &body.pretty(),
                &opened.root,
            ));
        }
        Ok(body) if options.format == Format::Json => {
            terminal.json_data(&request(&plan, model, &body));
        }
        Ok(body) if shape == Shape::Compact => terminal.body(&(body.compact() + "\n")),
        Ok(body) => terminal.body(&body.pretty()),
    }
    Ok(Status::Clean)
}

/// A body, or the findings that prevented it.
pub(super) type Made = Result<Body, Vec<Diagnostic>>;

/// Compiles the body for a context in the repository.
pub(super) fn of_context(
    opened: &Opened,
    id: ProfileId,
    agent: &str,
    model: Option<&str>,
) -> Result<Made, Failure> {
    let context = pick_context(opened, id)?;
    opened.compiler.body(id, &context, model).ok_or_else(|| {
        let kind = opened.compiler.plan(id).map_or("", |plan| plan.kind.name());
        Failure::new(format!(
            "`{agent}` is a {kind} agent, but `{context}` is not a {kind} context"
        ))
        .help("`reqc contexts` shows the kind of each")
    })
}

/// Compiles the body for a conversation that is read from a file or standard input, in the format
/// of contexts.
fn of_file(
    options: &Options,
    opened: &Opened,
    plan: &Plan<'_>,
    file: &str,
    model: Option<&str>,
) -> Result<Made, Failure> {
    let (shown, reader) = lint::open(options, &opened.root, Path::new(file))?;
    let mut bytes = Vec::new();
    let most = MAX_SOURCE_BYTES as u64;
    reader
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|why| Failure::new(format!("`{shown}`: {why}")))?;
    if bytes.len() as u64 > most {
        return Err(Failure::new(format!(
            "`{shown}` has more than {} MiB",
            most >> 20
        )));
    }
    let text = SourceText::from_bytes(&bytes)
        .map_err(|_| Failure::new(format!("`{shown}` is not UTF-8 text")))?;
    let (conversation, setting) = match Live::new(&opened.compiler, plan).read(shown.clone(), text)
    {
        Ok(read) => read,
        Err(findings) => return Ok(Err(findings)),
    };
    if conversation.kind() != plan.kind {
        let kind = plan.kind.name();
        return Err(Failure::new(format!(
            "`{}` is a {kind} agent, but `{shown}` is not a {kind}",
            plan.name()
        )));
    }
    Ok(Live::new(&opened.compiler, plan).body(conversation, &setting, model))
}

/// Returns the estimate in human-readable form, with a line for each part.
fn tokens_table(estimate: &TokenEstimate) -> Text {
    let how = if estimate.is_tokenized {
        "counted"
    } else {
        "estimated"
    };
    let mut table = text!("");
    for part in &estimate.parts {
        let place = Text::line(&part.pointer).cut(WIDEST_POINTER);
        table.push(&text!(
            "{} {} {}\n",
            format!("{:>9}", part.tokens),
            format!("{:<8}", part.kind.name()),
            place
        ));
    }
    table.push(&text!(
        "{} total, {} with the vocabulary {}\n",
        format!("{:>9}", estimate.total()),
        how,
        estimate.vocabulary.name()
    ));
    table
}

/// The maximum width of a pointer, in columns.
const WIDEST_POINTER: usize = 60;

/// Returns the estimate as JSON.
fn tokens_document(estimate: &TokenEstimate) -> Value {
    json!({
        "total": estimate.total(), "vocabulary": estimate.vocabulary.name(), "is_tokenized": estimate.is_tokenized,
        "parts": estimate.parts.iter().map(part_document).collect::<Vec<_>>(),
    })
}

fn part_document(part: &TokenPart) -> Value {
    json!({"kind": part.kind.name(), "pointer": part.pointer, "tokens": part.tokens})
}

/// Returns the whole request as JSON: the members of `request.json`, and the body.
pub(super) fn request(plan: &Plan<'_>, model: Option<&str>, body: &Body) -> Value {
    let mut request: Value =
        serde_json::from_str(&golden::request_json(plan, model)).unwrap_or_default();
    request["body"] = body.value().clone();
    request
}

/// Returns the requested context, or an error unless exactly one was requested.
pub(super) fn pick_context(opened: &Opened, id: ProfileId) -> Result<String, Failure> {
    let kind = opened.compiler.plan(id).map(|plan| plan.kind);
    let fitting = opened
        .compiler
        .contexts()
        .iter()
        .filter(|loaded| Some(loaded.context.kind()) == kind);
    let fitting: Vec<&str> = fitting.map(|loaded| loaded.context.name.as_ref()).collect();
    let help = format!("for this agent: {}", fitting.join(", "));
    match opened.selection()?.contexts.as_deref() {
        Some([name]) => Ok(name.to_string()),
        Some(names) => {
            let names: Vec<&str> = names
                .iter()
                .map(AsRef::as_ref)
                .filter(|name| fitting.contains(name))
                .collect();
            match names.as_slice() {
                [only] => Ok((*only).to_owned()),
                _ => Err(Failure::new("`--context` must name exactly one context").help(help)),
            }
        }
        None => Err(Failure::new("no context given: use `--context NAME`").help(help)),
    }
}
