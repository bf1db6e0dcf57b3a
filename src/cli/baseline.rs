//! `reqc baseline`: today's findings as `[[allow]]` entries.

use super::args::Baseline as Arguments;
use super::options::{Opened, Options};
use super::{Failure, Outcome, Terminal, report_from};
use crate::compile::baseline::Baseline;
use crate::diag::count;
use crate::repo::{Date, folders};
use crate::text::{Text, text};
use crate::toml;
use crate::world::{Output, World};

const FILE: &str = folders::CONFIG;
/// The default number of days for which entries are valid.
const DAYS: u32 = 90;

pub(super) fn run(options: &Options, arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_selected()?;
    let found = opened
        .compiler
        .report(options.selection(&opened, terminal)?, &opened.policy);
    let today = opened
        .disk
        .today()
        .and_then(|(year, month, day)| Date { year, month, day }.is_valid());
    let today =
        today.ok_or_else(|| Failure::new("the date cannot be read from this machine's clock"))?;
    let expires = expires(arguments, today)?;
    let reason = arguments
        .reason
        .clone()
        .unwrap_or_else(|| format!("in the baseline of {today}"));
    let baseline = Baseline::of(&found, &reason, expires);
    write(&opened, &baseline)?;
    if options.is_for_people() {
        terminal.say(&told(&baseline, expires));
    }
    let after = options.open_selected()?;
    let left = after
        .compiler
        .report(options.selection(&after, terminal)?, &after.policy);
    report_from(&after.root, options, &left, false, terminal)
}

fn expires(arguments: &Arguments, today: Date) -> Result<Date, Failure> {
    let Some(text) = &arguments.expires else {
        return Ok(today.after(DAYS));
    };
    match Date::parse(text).filter(|date| *date >= today) {
        Some(date) => Ok(date),
        None => Err(
            Failure::new(format!("`{text}` is not a date in the future"))
                .help("write year, month and day: 2027-01-31"),
        ),
    }
}

/// Appends the entries to the file, and keeps its existing content.
fn write(opened: &Opened, baseline: &Baseline) -> Result<(), Failure> {
    if baseline.entries == 0 {
        return Ok(());
    }
    let old = opened.disk.current(FILE)?.unwrap_or_default();
    let old = String::from_utf8(old).map_err(|_| Failure::new(format!("`{FILE}` is not UTF-8")))?;
    let separated = if old.is_empty() || old.ends_with('\n') {
        old.clone()
    } else {
        format!("{old}\n")
    };
    let added = if separated.is_empty() {
        baseline.text.trim_start()
    } else {
        &baseline.text
    };
    let added = if old.contains("\r\n") {
        added.replace('\n', "\r\n")
    } else {
        added.to_owned()
    };
    let new = format!("{separated}{added}");
    let without_mark = new
        .strip_prefix('\u{feff}')
        .unwrap_or(&new)
        .replace("\r\n", "\n");
    if toml::parse(&without_mark).is_err() {
        let help = "write `[[allow]]` tables instead of `allow = […]`, and fix the errors in the file first";
        return Err(Failure::new(format!("entries cannot be added to `{FILE}`")).help(help));
    }
    Ok(opened.disk.replace(FILE, new.as_bytes())?)
}

fn told(baseline: &Baseline, expires: Date) -> Text {
    let Baseline {
        entries,
        silenced,
        left,
        ..
    } = baseline;
    if *entries == 0 && *left == 0 {
        return text!("there is nothing to allow");
    }
    let rest = match left {
        0 => Text::new(),
        left => text!("; {} cannot be allowed", count(*left, "finding")),
    };
    let entries = if *entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{entries} entries")
    };
    text!(
        "{}: {} for {}, until {}{}",
        FILE,
        entries,
        count(*silenced, "finding"),
        expires.to_string(),
        rest
    )
}
