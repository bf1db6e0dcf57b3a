//! `reqc render`: one body, or the curl command that sends it.

use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::resolve::ProfileId;

pub(super) fn run(options: &Options, agent: &str, curl: bool, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_one(agent)?;
    options.selection(&opened, terminal)?;
    let id = opened.agent(agent)?;
    let compiler = &opened.compiler;
    let Some(plan) = compiler.plan(id) else {
        return Ok(show_findings(options, &opened.report_of(opened.findings_of(id)), terminal));
    };
    let context = pick_context(&opened, id)?;
    let model = compiler.client_model(&plan, options.model.as_deref());
    match compiler.body(id, &context, model) {
        Some(Ok(body)) if curl => {
            terminal.text(&crate::export::curl(&plan.request_line(model), &body.pretty(), &opened.root));
        }
        Some(Ok(body)) => terminal.body(&body.pretty()),
        Some(Err(findings)) => return Ok(show_findings(options, &opened.report_of(findings), terminal)),
        None => {
            let message = format!("`{agent}` is a {} agent, and `{context}` is no {0} context", plan.kind.name());
            return Err(Failure::new(message).help("`reqc contexts` shows the kind of each"));
        }
    }
    Ok(Status::Clean)
}

/// The one context that was asked for.
pub(super) fn pick_context(opened: &Opened, id: ProfileId) -> Result<String, Failure> {
    let kind = opened.compiler.plan(id).map(|plan| plan.kind);
    let fitting = opened.compiler.contexts().iter().filter(|ready| Some(ready.context.kind()) == kind);
    let fitting: Vec<&str> = fitting.map(|ready| ready.context.name.as_ref()).collect();
    let help = format!("for this agent: {}", fitting.join(", "));
    match opened.selection()?.contexts.as_deref() {
        Some([name]) => Ok(name.to_string()),
        Some(names) => {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| fitting.contains(name)).collect();
            match names.as_slice() {
                [only] => Ok((*only).to_owned()),
                _ => Err(Failure::new("`--context` must name one context").help(help)),
            }
        }
        None => Err(Failure::new("which context? `--context NAME` is needed").help(help)),
    }
}
