//! Human-readable output for a terminal.

use std::collections::BTreeSet;
use std::sync::Arc;

use owo_colors::Style;

use super::{
    Block, blocks, changed, error_line, errors, errors_of, place_of, repeats, rerouted, summary,
    verdict, what,
};
use crate::diag::count;
use crate::diff::{ChangeKind, ChangedFile, TextHunk, Word, words};
use crate::report::{LONGEST, Layout, changes_text, lowered_text, name, thousands};
use crate::review::{Cause, Edit, EditKind, Hunk, Listed, Review};
use crate::secret::masked;
use crate::text::{Text, text};

/// The maximum number of names listed on a line; the others are only counted.
const NAMES: usize = 3;
/// The maximum number of changes and edits shown for a cause, and of lines for each.
const MOST_CHANGES: usize = 12;
const MOST_EDITS: usize = 12;
const MOST_LINES: usize = 40;
/// The maximum number of causes shown.
const MOST_CAUSES: usize = 200;
/// The number of unchanged characters shown around a change.
const CONTEXT: usize = 24;

/// Writes a whole review: the summary, then each cause. `base` describes the older side.
pub fn review_text(review: &Review, base: Option<&Text>, layout: Layout) -> Text {
    let mut all = names(review, layout);
    all.push(&lowered_text(&review.lowered));
    if let Some(base) = base {
        all.push(&text!("{}\n", base));
    }
    let is_nothing =
        review.is_empty() && review.broken.is_empty() && review.beside().next().is_none();
    if is_nothing && review.report.fails() {
        all.push(&text!("no changes in the bodies that compile\n"));
    } else if is_nothing {
        all.push(&text!("no changes\n"));
    } else {
        all.push(&text!(
            "{}\n",
            Text::line(&summary(review)).styled(Style::new().bold(), layout.colour)
        ));
    }
    all.push(&roll(review));
    for cause in review.causes.iter().take(MOST_CAUSES) {
        all.push(&text!("\n{}", cause_text(review, cause, layout)));
    }
    if review.causes.len() > MOST_CAUSES {
        all.push(&more(review.causes.len() - MOST_CAUSES, "cause"));
    }
    if !review.unexplained.is_empty() {
        let heading = if review.has_sources {
            text!("no edit is known to cause these:\n")
        } else {
            Text::new()
        };
        all.push(&text!(
            "\n{}{}",
            heading,
            changes_text(&review.unexplained, layout)
        ));
    }
    all.push(&beside(review));
    all
}

/// Returns the items that can be accepted separately, with the paths of their files: each cause,
/// the added and removed agents and contexts, and the changes that no edit explains.
pub fn review_items(review: &Review, layout: Layout) -> Vec<(Text, Vec<String>)> {
    let causes = review
        .causes
        .iter()
        .filter(|cause| !cause.changes.is_empty());
    let mut items: Vec<(Text, Vec<String>)> = causes
        .map(|cause| (cause_text(review, cause, layout), paths(&cause.changes)))
        .collect();
    let explained: BTreeSet<&str> = items
        .iter()
        .flat_map(|(_, paths)| paths)
        .map(String::as_str)
        .collect();
    let others = review
        .changes
        .iter()
        .filter(|file| !explained.contains(file.path.as_str()));
    let (both, one): (Vec<ChangedFile>, Vec<ChangedFile>) = others
        .cloned()
        .partition(|file| file.old.is_some() && file.new.is_some());
    let both = (
        text!(
            "{}{}",
            counted("no edit is known to cause these", &both),
            changes_text(&review.unexplained, layout)
        ),
        paths(&both),
    );
    let one = (
        text!(
            "{}{}",
            counted("added or removed files", &one),
            roll(review)
        ),
        paths(&one),
    );
    items.extend(
        [both, one]
            .into_iter()
            .filter(|(_, paths)| !paths.is_empty()),
    );
    items
}

fn counted(what: &'static str, files: &[ChangedFile]) -> Text {
    text!("{}: {}\n", what, count(files.len(), "file"))
}

fn paths(files: &[ChangedFile]) -> Vec<String> {
    files
        .iter()
        .map(|file| file.path.clone())
        .collect::<Vec<_>>()
}

/// Lists the agents that stopped or started to compile, and the edits that have no other effect.
pub fn review_broken(review: &Review, layout: Layout) -> Text {
    let mut all = names(review, layout);
    for cause in review
        .causes
        .iter()
        .filter(|cause| cause.changes.is_empty())
        .take(MOST_CAUSES)
    {
        all.push(&text!("\n{}", cause_text(review, cause, layout)));
    }
    all
}

/// Lists the agents that compile on one side only, or on neither. The list precedes the causes.
fn names(review: &Review, layout: Layout) -> Text {
    let (red, plain) = (Style::new().red().bold(), Style::new());
    let lists: [(&str, Style, Vec<&Arc<str>>); 4] = [
        (
            "no longer compile",
            red,
            review.no_longer_compiled().collect(),
        ),
        (
            "new, and do not compile",
            red,
            review.new_and_broken().collect(),
        ),
        ("compile now", plain, review.mended.iter().collect()),
        (
            "compile on neither side",
            plain,
            review.uncompared().collect(),
        ),
    ];
    let mut all = Text::new();
    for (what, style, agents) in lists.into_iter().filter(|(.., agents)| !agents.is_empty()) {
        all.push(&text!(
            "{}: {}\n",
            Text::line(what).styled(style, layout.colour),
            some_names(&agents, NAMES * 4)
        ));
    }
    let unknown: BTreeSet<Arc<str>> = review.broken_by_nothing_known().cloned().collect();
    for error in errors(review, &unknown) {
        all.push(&text!("  {}\n", Text::line(&error_line(review, error))));
    }
    all
}

/// Lists up to `most` names, and counts the rest.
fn some_names(names: &[&Arc<str>], most: usize) -> Text {
    let shown: Vec<Text> = names.iter().take(most).map(|agent| name(agent)).collect();
    let rest = names.len().saturating_sub(most);
    let rest = if rest > 0 {
        text!(", … (+{})", rest)
    } else {
        Text::new()
    };
    text!("{}{}", Text::join(&shown, ", "), rest)
}

fn more(number: usize, noun: &str) -> Text {
    text!(
        "… and {} more {}; `--format json` lists all of them\n",
        thousands(number),
        if number == 1 {
            noun.to_owned()
        } else {
            format!("{noun}s")
        }
    )
}

/// Lists the agents and contexts that were added or removed.
fn roll(review: &Review) -> Text {
    let roll = &review.roll;
    let mut all = Text::new();
    let lists = [
        ("new agents", &roll.agents),
        ("removed agents", &roll.gone_agents),
        ("new contexts", &roll.contexts),
        ("removed contexts", &roll.gone_contexts),
        ("contexts that can no longer be read", &roll.broken_contexts),
    ];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .for_each(|(what, list)| all.push(&listed(what, list)));
    for renamed in &roll.renamed {
        all.push(&text!(
            "renamed: {} → {}\n",
            name(&renamed.from),
            name(&renamed.to)
        ));
    }
    for renamed in &roll.renamed_contexts {
        all.push(&text!(
            "renamed context: {} → {}\n",
            name(&renamed.from),
            name(&renamed.to)
        ));
    }
    for it in &review.rerouted {
        all.push(&text!(
            "{}\n",
            Text::line(&rerouted(it, |foreign| name(foreign).to_string()))
        ));
    }
    let (new, gone): (Vec<_>, Vec<_>) = roll.bodies.iter().partition(|file| file.new.is_some());
    for (what, files) in [("other new bodies", new), ("other removed bodies", gone)] {
        if !files.is_empty() {
            let names: Vec<Text> = files
                .iter()
                .take(NAMES)
                .map(|file| name(&file.path))
                .collect();
            let rest = files.len().saturating_sub(NAMES);
            let rest = if rest > 0 {
                text!(", … (+{})", rest)
            } else {
                Text::new()
            };
            all.push(&text!("{}: {}{}\n", what, Text::join(&names, ", "), rest));
        }
    }
    all
}

fn listed(what: &'static str, list: &[Listed]) -> Text {
    let names: Vec<Text> = list
        .iter()
        .take(NAMES * 4)
        .map(|it| name(&it.name))
        .collect();
    let rest = list.len().saturating_sub(NAMES * 4);
    let rest = if rest > 0 {
        text!(", … (+{})", rest)
    } else {
        Text::new()
    };
    let bodies = list.iter().map(|it| it.bodies).sum();
    text!(
        "{}: {}{} ({})\n",
        what,
        Text::join(&names, ", "),
        rest,
        count(bodies, "body")
    )
}

/// Lists the edits that change no compared body.
fn beside(review: &Review) -> Text {
    let edits = Edit::shown(review.beside());
    if edits.is_empty() {
        return Text::new();
    }
    let mut all = text!("\nedits that change no compared body:\n");
    for edit in edits.iter().take(MOST_EDITS) {
        all.push(&text!("  {}{}\n", name(&edit.place()), short(edit)));
    }
    if edits.len() > MOST_EDITS {
        all.push(&more(edits.len() - MOST_EDITS, "edit"));
    }
    all
}

/// Describes an edit on one line, with both values if a value was replaced.
fn short(edit: &Edit) -> Text {
    let what = what(edit).map_or(Text::new(), |what| {
        text!("  {}", Text::line(&what).cut(LONGEST))
    });
    let values = match (&edit.kind, edit.hunks.as_slice()) {
        (EditKind::Key(_), [Hunk { removed, added, .. }]) => value(removed).zip(value(added)),
        _ => None,
    };
    match values.filter(|(old, new)| old != new) {
        Some((old, new)) => text!(
            "{}: {} → {}",
            what,
            Text::line(&old).cut(60),
            Text::line(&new).cut(60)
        ),
        None => what,
    }
}

fn value(lines: &[String]) -> Option<String> {
    match lines {
        [line] => line
            .split_once('=')
            .map(|(_, value)| value.trim().to_owned()),
        _ => None,
    }
}

fn cause_text(review: &Review, cause: &Cause, layout: Layout) -> Text {
    let mut all = Text::new();
    let edits = Edit::shown(&cause.edits);
    for edit in edits.iter().take(MOST_EDITS) {
        all.push(&edit_text(edit, layout));
    }
    if edits.len() > MOST_EDITS {
        all.push(&more(edits.len() - MOST_EDITS, "edit"));
    }
    all.push(&reached_text(review, cause));
    let blocks = blocks(&cause.groups);
    for block in blocks.iter().take(MOST_CHANGES) {
        all.push(&block_text(block, cause, layout));
    }
    if blocks.len() > MOST_CHANGES {
        all.push(&text!(
            "    {}",
            more(blocks.len() - MOST_CHANGES, "change")
        ));
    }
    if let (true, Some(first)) = (cause.changes.len() > 1, cause.changes.first()) {
        let context = first.subject.context.as_deref().unwrap_or("request");
        all.push(&text!(
            "  for example {}/{}\n",
            name(&first.subject.agent),
            name(context)
        ));
    }
    if let Some(verdict) = verdict(cause) {
        all.push(&text!(
            "  {}\n",
            Text::line(&verdict).styled(Style::new().dimmed(), layout.colour)
        ));
    }
    all
}

/// Lists what a cause reaches: agents that it breaks, with their errors, agents that it fixes, and
/// bodies.
fn reached_text(review: &Review, cause: &Cause) -> Text {
    let mut all = Text::new();
    for (what, agents) in [("breaks", &cause.broken), ("fixes", &cause.mended)] {
        if !agents.is_empty() {
            let names: Vec<&Arc<str>> = agents.iter().collect();
            all.push(&text!(
                "  {} {} ({})\n",
                what,
                count(agents.len(), "agent"),
                some_names(&names, NAMES)
            ));
        }
    }
    for error in errors_of(review, cause) {
        all.push(&text!("    {}\n", Text::line(&error_line(review, error))));
    }
    if !cause.changes.is_empty() {
        let agents: Vec<&Arc<str>> = cause.agents().into_iter().collect();
        all.push(&text!(
            "  in {} ({})\n",
            changed(cause),
            some_names(&agents, NAMES)
        ));
    }
    all
}

fn edit_text(edit: &Edit, layout: Layout) -> Text {
    let place = name(&edit.place()).styled(Style::new().bold(), layout.colour);
    let mut all = match what(edit) {
        Some(what) => text!("{}  {}\n", place, Text::line(&what).cut(LONGEST)),
        None => text!("{}\n", place),
    };
    for hunk in &edit.hunks {
        all.push(&lines_text(&hunk.removed, &hunk.added, "  ", layout));
    }
    all
}

/// Writes removed and added lines, with their differences marked.
fn lines_text(removed: &[String], added: &[String], indent: &'static str, layout: Layout) -> Text {
    // Masks keys before lines are split, because part of a key would not be recognised.
    let (removed, added) = (without_keys(removed), without_keys(added));
    let pairs: Vec<(Vec<Word>, Vec<Word>)> = match removed.len() == added.len() {
        true => removed
            .iter()
            .zip(&added)
            .map(|(old, new)| words(old, new))
            .collect(),
        false => Vec::new(),
    };
    let whole = |line: &String| vec![Word::whole(line)];
    let olds = (0..removed.len()).map(|at| {
        pairs
            .get(at)
            .map_or_else(|| whole(&removed[at]), |pair| pair.0.clone())
    });
    let news = (0..added.len()).map(|at| {
        pairs
            .get(at)
            .map_or_else(|| whole(&added[at]), |pair| pair.1.clone())
    });
    let signed = |sign: &'static str, words: Vec<Word>, style: Style| {
        let line = line_text(&words, style, layout);
        text!(
            "{}{} {}\n",
            indent,
            text!("{}", sign).styled(style, layout.colour),
            line
        )
    };
    let (red, green) = (Style::new().red(), Style::new().green());
    let lines: Vec<Text> = olds
        .map(|line| signed("-", line, red))
        .chain(news.map(|line| signed("+", line, green)))
        .collect();
    let hidden = lines.len().saturating_sub(MOST_LINES);
    let mut all: Text = lines.into_iter().take(MOST_LINES).collect();
    if hidden > 0 {
        all.push(&text!("{}… {} more lines\n", indent, thousands(hidden)));
    }
    all
}

fn without_keys(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| masked(line).into_owned()).collect()
}

/// Returns a line with its changed words in full. If the line is long, its unchanged text is
/// shortened to the part needed to locate the changes.
fn line_text(words: &[Word], style: Style, layout: Layout) -> Text {
    let length: usize = words.iter().map(|word| word.text.chars().count()).sum();
    let is_long = length + 6 > layout.width;
    let last = words.len().saturating_sub(1);
    let mut line = Text::new();
    for (at, word) in words.iter().enumerate() {
        let shown = match is_long && !word.is_changed {
            true => shortened(&word.text, at > 0, at < last),
            false => word.text.clone(),
        };
        let style = if word.is_changed && words.len() > 1 {
            style.underline()
        } else {
            style
        };
        line.push(&Text::line(&shown).cut(LONGEST).styled(style, layout.colour));
    }
    line
}

/// Returns the beginning or end of a string, or both, where the text is next to a change.
fn shortened(text: &str, has_before: bool, has_after: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let kept = CONTEXT * (usize::from(has_before) + usize::from(has_after)).max(2);
    if chars.len() <= kept + 1 {
        return text.to_owned();
    }
    let head: String = if has_before || !has_after {
        chars[..CONTEXT].iter().collect()
    } else {
        String::new()
    };
    let tail: String = if has_after || !has_before {
        chars[chars.len() - CONTEXT..].iter().collect()
    } else {
        String::new()
    };
    format!("{head}…{tail}")
}

fn block_text(block: &Block<'_>, cause: &Cause, layout: Layout) -> Text {
    let pointers: Vec<Text> = block
        .pointers
        .iter()
        .take(NAMES)
        .map(|pointer| Text::line(&place_of(block, pointer)).cut(LONGEST))
        .collect();
    let rest = block.pointers.len().saturating_sub(NAMES);
    let rest = if rest > 0 {
        text!(", … (+{})", rest)
    } else {
        Text::new()
    };
    let pointer =
        text!("{}{}", Text::join(&pointers, ", "), rest).styled(Style::new().cyan(), layout.colour);
    let part = block
        .part(cause)
        .map_or(Text::new(), |part| text!("  ({})", part));
    let mut all = match &block.hunks {
        Some(hunks) if repeats(block, cause) => {
            text!("    {} the same {}{}\n", pointer, lines(hunks), part)
        }
        Some(hunks) => {
            let shown = hunks
                .iter()
                .map(|hunk| lines_text(&hunk.removed, &hunk.added, "      ", layout));
            text!("    {}{}\n{}", pointer, part, shown.collect::<Text>())
        }
        None => value_text(block.kind, &pointer, &part, layout),
    };
    if block.variants > 1 {
        all.push(&text!(
            "      … and {} more of this kind, with other values\n",
            thousands(block.variants - 1)
        ));
    }
    all
}

fn lines(hunks: &[TextHunk]) -> String {
    match hunks {
        [_] => "lines".to_owned(),
        hunks => format!("lines, at {} places", hunks.len()),
    }
}

fn value_text(kind: &ChangeKind, pointer: &Text, part: &Text, layout: Layout) -> Text {
    let room = layout.width.saturating_sub(8).max(20);
    let shown = Text::line(&kind.describe(room));
    if let ChangeKind::File(_) = kind {
        return text!("    {}{}\n", shown, part);
    }
    if pointer.width() + shown.width() + part.width() + 6 <= layout.width {
        return text!("    {} {}{}\n", pointer, shown, part);
    }
    match kind {
        ChangeKind::Replaced(old, new) => {
            let lines = lines_text(&[old.to_string()], &[new.to_string()], "      ", layout);
            text!("    {}{}\n{}", pointer, part, lines)
        }
        _ => text!("    {}{}\n      {}\n", pointer, part, shown),
    }
}
