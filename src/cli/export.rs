//! `reqc compile --out DIR --layout LAYOUT`: writes requests in the formats of other programs.

use std::path::Path;

use super::args::{Compile, Format};
use super::options::Options;
use super::{Failure, Outcome, Terminal, part, report};
use crate::compile::compare::Comparing;
use crate::diag::count;
use crate::export::{Layout, export};
use crate::system::Disk;
use crate::text::text;
use crate::world::Output;

pub(super) fn run(
    options: &Options,
    args: &Compile,
    folder: &Path,
    layout: Layout,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = part::open(options, &args.part, true)?;
    let selection = options.selection(&opened, terminal)?;
    let (compiler, all_contexts) = (&*opened.compiler, args.all_contexts);
    let (found, requests) = Comparing {
        compiler,
        selection,
        options: &opened.policy,
        all_contexts,
    }
    .requests();
    let status = report(options, &found, terminal);
    let exported = export(layout, &requests, &opened.root);
    let path = options.directory().join(folder);
    let disk = Disk::create(&path, Some(&opened.root))?;
    // Existing files belong to the user: they may be the only record of an earlier batch.
    for (name, text) in &exported.files {
        if disk
            .current(name)?
            .is_some_and(|there| there != text.as_bytes())
        {
            let message = format!(
                "`{}` already exists with different content",
                path.join(name).display()
            );
            return Err(
                Failure::new(message).help("remove it, or name another folder with `--out`")
            );
        }
    }
    exported
        .files
        .iter()
        .try_for_each(|(name, text)| disk.replace(name, text.as_bytes()))?;
    if options.format == Format::Human {
        let files = count(exported.files.len(), "file");
        let left_out = match exported.left_out {
            0 => String::new(),
            some => format!(", {some} left out because they are for another service"),
        };
        let requests = count(exported.requests, "request");
        terminal.say(&text!(
            "{}: {} in {}{}",
            path.display().to_string(),
            requests,
            files,
            left_out
        ));
    }
    Ok(status)
}
