//! `reqc explain`: the source of a value in a body.

use super::args::Format;
use super::options::{Opened, Options};
use super::render::pick_context;
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::compile::ProfileId;
use crate::compile::explain::Explainer;
use crate::json::Pointer;
use crate::report;

/// The value or the piece of the context to explain.
pub(super) struct Wanted<'w> {
    /// A value in the body.
    pub(super) pointer: Option<&'w str>,
    /// A piece of the context.
    pub(super) content: Option<&'w str>,
}

pub(super) fn run(
    options: &Options,
    agent: &str,
    wanted: &Wanted<'_>,
    terminal: &mut Terminal,
) -> Outcome {
    let pointer = wanted.pointer;
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
    options.selection(&opened, terminal)?;
    let context = pick_context(&opened, id)?;
    let model = compiler
        .repo()
        .client_model(plan.name(), options.model.as_deref());
    if let Some(content) = wanted.content {
        return content_fate(
            options,
            &opened,
            &Asked {
                id,
                agent,
                context: &context,
                model,
            },
            content,
            terminal,
        );
    }
    let wanted = pointer.map(Pointer::parse);
    let explained = match Explainer::new(compiler).explain(id, &context, model, wanted.as_ref()) {
        Some(Ok(explained)) => explained,
        Some(Err(findings)) => {
            return Ok(show_findings(
                options,
                &opened.report_of(findings),
                terminal,
            ));
        }
        None => {
            return Err(Failure::new(format!(
                "`{agent}` has no body for `{context}`"
            )));
        }
    };
    if explained.values.is_empty() {
        let message = format!("the body has nothing at `{}`", pointer.unwrap_or_default());
        let removed = wanted
            .as_ref()
            .and_then(|pointer| Explainer::new(compiler).unset_at(id, pointer));
        let help = match removed {
            Some(entry) => format!("`unset` removes it: {}", compiler.sources().describe(entry)),
            None => {
                "omit the pointer to see the whole body with the source of each line".to_owned()
            }
        };
        return Err(Failure::new(message).help(help));
    }
    let sources = compiler.sources();
    match (options.format, wanted) {
        (Format::Json, _) => {
            terminal.text(&report::explanation_json(
                plan.name(),
                &context,
                &explained.values,
                sources,
            ));
        }
        (_, Some(_)) => explained
            .values
            .iter()
            .for_each(|it| terminal.text(&report::explanation_text(it, sources))),
        (_, None) => {
            terminal.text(&report::margin_text(
                explained.body.value(),
                &explained.values,
                sources,
                terminal.width(),
            ));
        }
    }
    Ok(Status::Clean)
}

/// The body to explain.
struct Asked<'a> {
    id: ProfileId,
    agent: &'a str,
    context: &'a str,
    model: Option<&'a str>,
}

/// Reports where a piece of a context is used.
fn content_fate(
    options: &Options,
    opened: &Opened,
    asked: &Asked<'_>,
    piece: &str,
    terminal: &mut Terminal,
) -> Outcome {
    let Asked {
        id,
        agent,
        context,
        model,
    } = *asked;
    let compiler = &opened.compiler;
    let fate =
        match Explainer::new(compiler).content_fate(id, context, model, &Pointer::parse(piece)) {
            Some(Ok(fate)) => fate,
            Some(Err(findings)) => {
                return Ok(show_findings(
                    options,
                    &opened.report_of(findings),
                    terminal,
                ));
            }
            None => {
                return Err(Failure::new(format!(
                    "`{agent}` has no body for `{context}`"
                )));
            }
        };
    if !fate.is_there {
        let message = format!("the context `{context}` has nothing at `{piece}`");
        return Err(Failure::new(message)
            .help("messages are `/history/0`, their blocks `/history/0/blocks/0`"));
    }
    let sources = compiler.sources();
    match options.format {
        Format::Json => terminal.text(&report::content_json(agent, context, piece, &fate, sources)),
        _ => terminal.text(&report::content_text(&fate, sources)),
    }
    Ok(Status::Clean)
}
