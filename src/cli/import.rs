//! `reqc context import`: converts a real request body to a context.

use std::path::Path;

use indexmap::IndexMap;

use super::args::Import;
use super::options::Options;
use super::{Failure, Outcome, Status, Terminal, lint};
use crate::diag::count;
use crate::import::{Choice, Imported, Loss, Picked, Request, import, pick};
use crate::system::Disk;
use crate::text::text;
use crate::world::Output;

pub(super) fn run(options: &Options, args: &Import, terminal: &mut Terminal) -> Outcome {
    let wire = args.from.as_deref().map(lint::wire_named).transpose()?;
    let root = options.root()?;
    let (shown, reader) = lint::open(options, &root, &args.file)?;
    let choice = Choice {
        line: number(args.line),
        body: number(args.body),
    };
    let picked =
        pick(reader, wire, choice).map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| name_of(args.out.as_deref().unwrap_or(&args.file)));
    let request = Request {
        body: &picked.value,
        wire: picked.wire,
        name: &name,
        redact: args.redact,
    };
    let imported = import(&request).map_err(|why| {
        Failure::new(format!("`{shown}` cannot be converted to a context: {why}"))
    })?;
    match &args.out {
        None => terminal.body(&imported.text),
        Some(out) => {
            write_new(&options.path(out), &root, &imported.text, "--out", terminal)?;
        }
    }
    tell(&picked, choice, &imported, terminal);
    Ok(Status::Clean)
}

fn number(n: Option<u32>) -> Option<usize> {
    n.and_then(|n| usize::try_from(n).ok())
}

/// Returns a name made from a file's name, with only the characters that names may contain.
pub(super) fn name_of(file: &Path) -> String {
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name: String = stem
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() {
        "imported".to_owned()
    } else {
        name.to_owned()
    }
}

/// Writes a new file. An existing file is not overwritten; `option` is the option that sets a
/// different path.
pub(super) fn write_new(
    path: &Path,
    root: &Path,
    text: &str,
    option: &str,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::new(format!("`{shown}` is not a file name")))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let disk = Disk::create(folder, Some(root))?;
    if disk.current(name)?.is_some() {
        return Err(Failure::new(format!("`{shown}` already exists"))
            .help(format!("remove it, or name another file with `{option}`")));
    }
    disk.replace(name, text.as_bytes())?;
    terminal.say(&text!("{}: written", shown));
    Ok(())
}

/// Reports the content of the file that is missing from the context.
fn tell(picked: &Picked, choice: Choice, imported: &Imported, terminal: &Terminal) {
    if picked.bodies > 1 {
        let which = choice.body.unwrap_or(1);
        terminal.note(&format!(
            "the file has {}: this is number {which}, use `--body N` for another",
            count(picked.bodies, "body")
        ));
    }
    let mut reasons: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for Loss { pointer, why } in &imported.losses {
        reasons.entry(why).or_default().push(pointer.as_str());
    }
    if !reasons.is_empty() {
        terminal.note("left out or changed:");
    }
    for (why, places) in reasons.iter().take(MOST) {
        terminal.note(&format!("  {}: {why}", shown(places)));
    }
    if let more @ 1.. = reasons.len().saturating_sub(MOST) {
        terminal.note(&format!("  and more, for {}", count(more, "other reason")));
    }
}

/// The maximum number of reasons reported, and of locations for each.
const MOST: usize = 20;

/// Lists the first locations, and counts the rest.
fn shown(places: &[&str]) -> String {
    let first = places
        .iter()
        .take(MOST)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match places.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
