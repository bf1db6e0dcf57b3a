//! `reqc check --fix`: fixes findings with exactly one correct fix.

use std::sync::Arc;

use super::options::Options;
use super::{Failure, Outcome, Terminal, report_from};
use crate::compile::Report;
use crate::compile::mend::{MendedFile, mend};
use crate::diag::count;
use crate::diff::unified;
use crate::text::{Text, text};
use crate::world::{Output, World};

/// Applies fixes and reports the remaining findings. With `dry_run`, shows the edits and reports
/// the current findings.
pub(super) fn run(
    options: &Options,
    dry_run: bool,
    deny_warnings: bool,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open()?;
    opened.selection()?;
    let world = Arc::clone(&opened.disk) as Arc<dyn World>;
    // An edit may change the number of agents, so the agents are selected again after each edit.
    let mended = mend(&world, |world: Arc<dyn World>| -> Report {
        let compiler = options.load_all(world);
        match options.select(&compiler) {
            Ok(selection) => compiler.report(&selection, &opened.policy),
            Err(_) => compiler.report(&crate::compile::Selection::default(), &opened.policy),
        }
    });
    let told = text!(
        "{} of {}",
        count(mended.edits, "edit"),
        count(mended.files.len(), "file")
    );
    if dry_run {
        mended
            .files
            .iter()
            .for_each(|file| terminal.text(&diff(file)));
        let found = opened.compiler.report(opened.selection()?, &opened.policy);
        terminal.say(&text!("not written: {}", told));
        return report_from(&opened.root, options, &found, deny_warnings, terminal);
    }
    for file in &mended.files {
        // The file may have been edited in the meantime.
        if opened.disk.current(&file.path)?.as_deref() != Some(&*file.old) {
            return Err(
                Failure::new(format!("`{}` has changed in the meantime", file.path))
                    .help("run the command again"),
            );
        }
        opened.disk.replace(&file.path, &file.new)?;
    }
    if options.is_for_people() {
        terminal.say(&text!("fixed: {}", told));
    }
    report_from(
        &opened.root,
        options,
        &mended.report,
        deny_warnings,
        terminal,
    )
}

/// Returns the edits of a file in the format of `diff -u`.
fn diff(file: &MendedFile) -> Text {
    let [old, new] =
        [&file.old, &file.new].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    text!("{}\n{}", file.path, Text::lines(&unified(&old, &new)))
}
