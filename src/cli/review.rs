//! `reqc review`: accepts changes to golden files by cause.

use std::collections::{BTreeMap, BTreeSet};

use super::args::{Compile, Review as Args};
use super::goldens::{compare, golden};
use super::options::Options;
use super::terminal::Answer;
use super::{Failure, Outcome, Status, Terminal, diff, report};
use crate::compile::compare::Purpose;
use crate::diag::count;
use crate::report::{review_broken, review_items};
use crate::text::{Text, text};

pub(super) fn run(options: &Options, args: &Args, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_selected()?;
    let compile = Compile {
        all_contexts: args.all_contexts,
        ..Compile::default()
    };
    let review = diff::against_golden(options, &compile, &opened, terminal)?;
    terminal.text(&review_broken(&review, terminal.layout()));
    if review.report.fails() {
        report(options, &review.report, terminal);
    }
    let items = review_items(&review, terminal.layout());
    if items.is_empty() {
        if review.report.fails() {
            return Ok(Status::Findings);
        }
        terminal.say(&text!("up to date"));
        return Ok(Status::Clean);
    }
    let accepted = match args.accept.as_slice() {
        [] => asked(&items, terminal)?,
        numbers => named(numbers, items.len())?,
    };
    // A file that several causes change is written only if all of them are accepted.
    let mut wanted: BTreeMap<&str, bool> = BTreeMap::new();
    for (at, (_, paths)) in items.iter().enumerate() {
        paths
            .iter()
            .for_each(|path| *wanted.entry(path).or_insert(true) &= accepted.contains(&at));
    }
    let (_, mut comparison) = compare(
        &opened,
        &golden(&opened),
        Purpose::Write,
        args.all_contexts,
        terminal.quiet,
    )?;
    comparison.keep(|drift| wanted.get(drift.path.as_str()) == Some(&true));
    let (written, all) = (comparison.drifts().len(), wanted.len());
    comparison.write()?;
    terminal.say(&text!(
        "{} written, {} left unchanged",
        count(written, "file"),
        all - written
    ));
    if let Some(waiting) = waiting(&items, &accepted) {
        terminal.say(&waiting);
    }
    Ok(if written == all && !review.report.fails() {
        Status::Clean
    } else {
        Status::Findings
    })
}

/// Returns a note with the number of files that belong to accepted items but are not written yet,
/// because items that were not accepted change them too.
fn waiting(items: &[Acceptable], accepted: &BTreeSet<usize>) -> Option<Text> {
    let others: Vec<(usize, BTreeSet<&str>)> = { items.iter().enumerate() }
        .filter(|(at, _)| !accepted.contains(at))
        .map(|(at, (_, paths))| (at + 1, paths.iter().map(String::as_str).collect()))
        .collect();
    let paths = accepted.iter().flat_map(|&at| &items[at].1);
    let waiting: BTreeSet<&str> = paths
        .map(String::as_str)
        .filter(|path| others.iter().any(|(_, paths)| paths.contains(path)))
        .collect();
    if waiting.is_empty() {
        return None;
    }
    let numbers = others
        .iter()
        .filter(|(_, paths)| waiting.iter().any(|path| paths.contains(path)));
    let numbers: Vec<Text> = numbers.map(|(number, _)| text!("{}", *number)).collect();
    Some(text!(
        "{} not written yet: also accept {} {}, because a file is written only after all of its causes are accepted",
        Text::line(&match waiting.len() {
            1 => "1 file is".to_owned(),
            more => format!("{more} files are"),
        }),
        Text::line(if numbers.len() == 1 {
            "cause"
        } else {
            "causes"
        }),
        Text::join(&numbers, ", ")
    ))
}

/// An item that can be accepted, as the text that describes it and the paths of its files.
type Acceptable = (Text, Vec<String>);

/// Asks about each item, and returns the indices of the accepted ones.
fn asked(items: &[Acceptable], terminal: &mut Terminal) -> Result<BTreeSet<usize>, Failure> {
    let mut accepted = BTreeSet::new();
    for (at, (shown, _)) in items.iter().enumerate() {
        terminal.text(&text!("\n{} of {}\n{}", at + 1, items.len(), shown));
        match Terminal::choice(&text!("accept? [y]es, [n]o, [a]ll remaining, [q]uit: "))? {
            Answer::Yes => {
                accepted.insert(at);
            }
            Answer::No => {}
            Answer::All => {
                accepted.extend(at..items.len());
                break;
            }
            Answer::Quit => break,
            Answer::Nobody => {
                return Err(Failure::new("cannot ask: this is not a terminal")
                    .help("`reqc review --accept 1,3` accepts causes by number; `reqc compile` writes all of them"));
            }
        }
    }
    Ok(accepted)
}

/// Converts item numbers to indices.
fn named(numbers: &[usize], all: usize) -> Result<BTreeSet<usize>, Failure> {
    numbers
        .iter()
        .map(|number| {
            let at = number.checked_sub(1).filter(|at| *at < all);
            at.ok_or_else(|| {
                Failure::new(format!("there is no cause {number}: the causes are {all}"))
            })
        })
        .collect()
}
