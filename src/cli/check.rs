//! `reqc check`.

use super::options::Options;
use super::progress::Progress;
use super::{Outcome, Terminal, report_from};

pub(super) fn run(options: &Options, deny_warnings: bool, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    let opened = options.open_selected()?;
    let selection = options.selection(&opened, terminal)?;
    let progress = Progress::start(opened.compiler.agents().len(), terminal.quiet);
    let (found, _) = opened.compiler.report_each(selection, &opened.policy, |_| progress.tick());
    drop(progress);
    report_from(&opened.root, options, &found, deny_warnings, terminal)
}
