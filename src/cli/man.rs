//! `reqc man`: the manual pages for packages, generated from the arguments.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::options::Options;
use super::shared;
use super::{Outcome, Status, Terminal};
use crate::diag::count;
use crate::system::Disk;
use crate::text::text;
use crate::world::Output;

pub(super) fn run(options: &Options, folder: &Path, terminal: &mut Terminal) -> Outcome {
    let mut command = shared::command().disable_help_subcommand(true);
    command.build();
    let pages = pages(&command);
    let path = options.directory().join(folder);
    let disk = Disk::create(&path, None)?;
    pages
        .iter()
        .try_for_each(|(name, page)| disk.replace(name, page.as_bytes()))?;
    terminal.say(&text!(
        "{}: {} written",
        path.display().to_string(),
        count(pages.len(), "page")
    ));
    Ok(Status::Clean)
}

/// Returns the manual pages of the command and of each visible subcommand: file names and texts.
fn pages(command: &Command) -> Vec<(String, String)> {
    let below = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .flat_map(pages);
    std::iter::once(page(command)).chain(below).collect()
}

fn page(command: &Command) -> (String, String) {
    // Shared options come after the command's own. Only the top-level command has a version.
    let sorted = command
        .clone()
        .mut_args(|argument| match argument.is_global_set() {
            true => argument.help_heading("Shared options"),
            false => argument,
        });
    let source = format!("reqc {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(sorted).source(source).manual("reqc Manual");
    let mut page = Vec::new();
    man.render(&mut page)
        .expect("writing to memory never fails");
    page.extend(exit_status().to_roff().into_bytes());
    (
        man.get_filename(),
        String::from_utf8(page).expect("man pages are UTF-8"),
    )
}

fn exit_status() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in [
        ("0", "No errors."),
        ("1", "At least one error, or outdated golden files."),
        ("2", "The command could not run, or a request failed."),
        ("130", "reqc send was cancelled."),
    ] {
        section
            .control("TP", [])
            .text([bold(status)])
            .text([roman(meaning)]);
    }
    section
}
