//! `reqc check --fix`: fixes what has one right answer.

use std::sync::Arc;

use similar::TextDiff;

use super::options::Options;
use super::{Failure, Outcome, Terminal, report_from};
use crate::compile::Report;
use crate::compile::mend::{MendedFile, mend};
use crate::diag::count;
use crate::text::{Text, text};
use crate::world::{Output, World};

/// Fixes and reports what is left; with `dry_run` shows the edits and reports what is there.
pub(super) fn run(
    options: &Options,
    dry_run: bool,
    deny_warnings: bool,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open()?;
    opened.selection()?;
    let world = Arc::clone(&opened.disk) as Arc<dyn World>;
    // The number of agents may change with an edit, so each state is selected from again.
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
        // Somebody may have edited it meanwhile.
        if opened.disk.current(&file.path)?.as_deref() != Some(&*file.old) {
            return Err(
                Failure::new(format!("`{}` has changed meanwhile", file.path))
                    .help("run the command again"),
            );
        }
        opened.disk.replace(&file.path, &file.new)?;
    }
    if options.is_for_people() {
        terminal.say(&text!("mended: {}", told));
    }
    report_from(
        &opened.root,
        options,
        &mended.report,
        deny_warnings,
        terminal,
    )
}

/// The file and its edits, as `diff -u` shows them.
fn diff(file: &MendedFile) -> Text {
    let [old, new] =
        [&file.old, &file.new].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let diff = TextDiff::from_lines(&old, &new);
    text!(
        "{}\n{}",
        file.path,
        Text::lines(&diff.unified_diff().to_string())
    )
}
