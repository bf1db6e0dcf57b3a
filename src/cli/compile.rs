//! `reqc compile`: writes golden bodies or compares with them.

use std::sync::Arc;

use super::args::{Compile, Format};
use super::goldens::{compare, golden};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, diff, export, part, report_from};
use crate::compile::Report;
use crate::compile::compare::{Purpose, grouped};
use crate::diag::{Severity, count};
use crate::diff::ChangedFile;
use crate::export::Layout;
use crate::golden::{Comparison, Drift, GoldenFolder};
use crate::system::{self, Disk};
use crate::text::{Text, text};

pub(super) fn run(options: &Options, args: &Compile, terminal: &mut Terminal) -> Outcome {
    if let Some(revision) = &args.diff {
        return diff::run(options, args, revision.as_deref(), terminal);
    }
    if !args.check && !args.write && args.out.is_none() && system::is_ci() {
        return Err(Failure::new("golden files are not written if the `CI` variable is set")
            .help("compare them with `reqc compile --check`, or write them anyway with `reqc compile --write`"));
    }
    if let (Some(folder), Some(layout)) = (
        &args.out,
        args.layout.filter(|layout| *layout != Layout::Tree),
    ) {
        return export::run(options, args, folder, layout, terminal);
    }
    let opened = part::open(options, &args.part, true)?;
    options.selection(&opened, terminal)?;
    let folder = folder(options, &opened, args)?;
    let purpose = if args.check {
        Purpose::Check
    } else {
        Purpose::Write
    };
    let (found, comparison) =
        compare(&opened, &folder, purpose, args.all_contexts, terminal.quiet)?;
    options.tell_memory(&opened.compiler, terminal);
    let status = report_from(&opened.root, options, &found, args.deny_warnings, terminal)?;
    if args.check {
        if options.format == Format::Human {
            let changes: Vec<ChangedFile> =
                comparison.drifts().iter().map(ChangedFile::from).collect();
            terminal.changes(&grouped(&opened.compiler, &changes));
        }
        reconcile(options, &found, terminal);
        return Ok(status);
    }
    // A run that compiled no bodies cannot know which golden files should exist.
    if found.summary.bodies == 0 && status == Status::Findings {
        return Ok(status);
    }
    let written = written(comparison.drifts(), folder.shown(), found.fails());
    write(comparison)?;
    if options.format == Format::Human {
        terminal.say(&written);
    }
    Ok(status)
}

/// Ends the output of a failed run with a command that makes the next run pass, if there is one.
fn reconcile(options: &Options, found: &Report, terminal: &mut Terminal) {
    let mut errors = found
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .peekable();
    if options.is_for_people()
        && errors.peek().is_some()
        && errors.all(|finding| finding.rule.code == DRIFT)
    {
        terminal.say(&text!(
            "to accept the changes: {}",
            options.command("compile")
        ));
    }
}

/// The code of findings about outdated golden files.
const DRIFT: &str = "golden/drift";

/// Returns the folder for bodies.
fn folder(options: &Options, opened: &Opened, args: &Compile) -> Result<GoldenFolder, Failure> {
    match &args.out {
        None => Ok(golden(opened)),
        Some(path) if path.as_os_str().is_empty() => Err(Failure::new("`--out` is empty")),
        Some(path) => {
            let path = options.directory().join(path);
            let disk = Disk::create(&path, Some(&opened.root))?;
            Ok(GoldenFolder::named(
                Arc::new(disk),
                path.display().to_string(),
            ))
        }
    }
}

fn write(comparison: Comparison) -> Result<(), Failure> {
    if let Err(why) = comparison.check() {
        return Err(Failure::new(why).help("name another folder with `--out`, or delete the file"));
    }
    Ok(comparison.write()?)
}

fn written(drifts: &[Drift], folder: &str, fails: bool) -> Text {
    let written = drifts.iter().filter(|drift| drift.new.is_some()).count();
    let removed = drifts.len() - written;
    let what = match (written, removed) {
        (0, 0) if fails => text!("nothing written"),
        (0, 0) => text!("up to date"),
        (0, removed) => text!("{} removed", count(removed, "file")),
        (written, 0) => text!("{} written", count(written, "file")),
        (written, removed) => text!("{} written, {} removed", count(written, "file"), removed),
    };
    match fails {
        true => text!("{}: {}; agents with errors were left out", folder, what),
        false => text!("{}: {}", folder, what),
    }
}
