//! `reqc explain`: who wrote a value of a body.

use super::args::Format;
use super::options::Options;
use super::render::pick_context;
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::json::Pointer;
use crate::report;

pub(super) fn run(options: &Options, agent: &str, pointer: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_one(agent)?;
    let id = opened.agent(agent)?;
    let compiler = &opened.compiler;
    let Some(plan) = compiler.plan(id) else {
        return Ok(show_findings(options, &opened.report_of(opened.findings_of(id)), terminal));
    };
    options.selection(&opened, terminal)?;
    let context = pick_context(&opened, id)?;
    let model = compiler.client_model(&plan, options.model.as_deref());
    let wanted = pointer.map(Pointer::parse);
    let explained = match compiler.explain(id, &context, model, wanted.as_ref()) {
        Some(Ok(explained)) => explained,
        Some(Err(findings)) => return Ok(show_findings(options, &opened.report_of(findings), terminal)),
        None => return Err(Failure::new(format!("`{agent}` has no body for `{context}`"))),
    };
    if explained.values.is_empty() {
        let message = format!("there is nothing at `{}` in the body", pointer.unwrap_or_default());
        let removed = wanted.as_ref().and_then(|pointer| compiler.unset_at(id, pointer));
        let help = match removed {
            Some(entry) => format!("`unset` removes it: {}", compiler.sources().describe(entry)),
            None => "without a pointer, the whole body is shown with the source of each line".to_owned(),
        };
        return Err(Failure::new(message).help(help));
    }
    let sources = compiler.sources();
    match (options.format, wanted) {
        (Format::Json, _) => {
            terminal.text(&report::explanation_json(plan.name(), &context, &explained.values, sources));
        }
        (_, Some(_)) => explained.values.iter().for_each(|it| terminal.text(&report::explanation_text(it, sources))),
        (_, None) => {
            terminal.text(&report::margin_text(explained.body.value(), &explained.values, sources, terminal.width()));
        }
    }
    Ok(Status::Clean)
}
