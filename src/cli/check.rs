//! `reqc check`.

use super::options::{Found, Options, report};
use super::progress::Progress;
use super::{Outcome, Terminal};

pub(super) fn run(options: &Options, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    let opened = options.open()?;
    let selection = options.selection(&opened, terminal)?;
    let progress = Progress::start(opened.compiler.agents().len(), terminal.quiet);
    let run = opened.compiler.run(selection, |_| progress.tick());
    drop(progress);
    let findings = options.settle(&opened, Found { findings: run.findings, more: Vec::new(), bodies: run.bodies });
    let summary = options.summary(&opened, run.results.len(), run.bodies, &findings);
    Ok(report(options, &opened, &summary, &findings, terminal))
}
