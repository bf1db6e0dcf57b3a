//! `reqc check`: compiles agents in contexts and reports the findings.

use super::args::Part;
use super::options::Options;
use super::progress::Progress;
use super::{Outcome, Terminal, part, report_from};

pub(super) fn run(
    options: &Options,
    part: &Part,
    deny_warnings: bool,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = part::open(options, part, false)?;
    let selection = options.selection(&opened, terminal)?;
    let progress = Progress::start(opened.compiler.agents().len(), terminal.quiet);
    let (found, _) = opened
        .compiler
        .report_each(selection, &opened.policy, |_| progress.tick());
    drop(progress);
    options.tell_memory(&opened.compiler, terminal);
    report_from(&opened.root, options, &found, deny_warnings, terminal)
}
