//! `reqc compile --diff`.

use std::sync::Arc;

use super::args::{Compile, Format};
use super::compile::{compare, golden};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, report};
use crate::compile::{Lowered, Purpose, Report};
use crate::diff::ChangedFile;
use crate::report::lowered_text;
use crate::system::GitRevision;
use crate::text::{Text, text};

pub(super) fn run(options: &Options, args: &Compile, revision: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_selected()?;
    options.selection(&opened, terminal)?;
    let (found, changes, lowered) = match revision {
        None => against_golden(&opened, args.all_contexts, terminal.quiet)?,
        Some(revision) => against_revision(options, &opened, revision, args.all_contexts)?,
    };
    if found.fails() {
        let status = report(options, &found, terminal);
        if options.format == Format::Json {
            return Ok(status);
        }
    }
    let groups = opened.compiler.grouped(&changes);
    let is_same = groups.is_empty() && lowered.is_empty();
    match args.text {
        true => textual(options, &changes, &lowered, terminal),
        false => terminal.changes(options.format, &groups, &lowered),
    }
    if is_same && options.format == Format::Human && !args.text {
        terminal.say(&match found.fails() {
            true => text!("no changes in what could be compiled"),
            false => text!("no changes"),
        });
    }
    Ok(match args.exit_code && !is_same || found.fails() {
        true => Status::Findings,
        false => Status::Clean,
    })
}

/// What was found on the way, the files that changed, and what the older side did not lower.
type Changed = (Report, Vec<ChangedFile>, Vec<Lowered>);

fn against_golden(opened: &Opened, all_contexts: bool, quiet: bool) -> Result<Changed, Failure> {
    let (found, comparison) = compare(opened, &golden(opened), Purpose::Show, all_contexts, quiet)?;
    // Golden files do not tell what was lowered when they were written.
    Ok((found, comparison.drifts().iter().map(ChangedFile::from).collect(), Vec::new()))
}

fn against_revision(
    options: &Options,
    opened: &Opened,
    revision: &str,
    all_contexts: bool,
) -> Result<Changed, Failure> {
    let older = options.load_selected(Arc::new(GitRevision::load(&opened.root, revision)?));
    Ok(opened.compiler.compare_older(&older, opened.selection()?, &opened.policy, all_contexts))
}

/// Changes line by line, for those who ask for it.
fn textual(options: &Options, changes: &[ChangedFile], lowered: &[Lowered], terminal: &mut Terminal) {
    if options.format != Format::Json {
        terminal.text(&lowered_text(lowered));
    }
    terminal.text(&changes.iter().map(|file| Text::lines(&file.textual())).collect());
}
