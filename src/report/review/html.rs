//! A self-contained HTML page: a list of causes on the left, and for each cause the source and one
//! body, before and after the change.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use similar::DiffTag;

use super::{
    Block, blocks, error_line, errors, errors_of, place_of, reach, rerouted, summary, verdict, what,
};
use crate::diag::{Diagnostic, count};
use crate::diff::{ChangedFile, Word, line_operations, words};
use crate::report::escape::{code, html};
use crate::report::thousands;
use crate::review::{Cause, Edit, Listed, Review};
use crate::secret::masked;
use crate::text::Text;

/// The page's content security policy, which allows only the page's own styles.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = include_str!("review.css");

/// The beginning of a table with two sides, each with a line number and a string.
const COLUMNS: &str = "<colgroup><col class=\"n\"><col><col class=\"n\"><col></colgroup>\n";

/// The maximum number of causes shown, and of changes and lines for each.
const MOST_CAUSES: usize = 300;
const MOST_CHANGES: usize = 40;
const MOST_LINES: usize = 600;
/// The number of equal lines shown around differing ones.
const CONTEXT: usize = 3;

/// Returns the review as an HTML document.
pub fn review_html(review: &Review, base: Option<&Text>) -> Text {
    let title = html(&summary(review));
    let base = base
        .map(|base| format!("<p>{}</p>\n", html(base)))
        .unwrap_or_default();
    let items = review
        .causes
        .iter()
        .take(MOST_CAUSES)
        .enumerate()
        .map(|(at, cause)| item(at, cause));
    let sections = review
        .causes
        .iter()
        .take(MOST_CAUSES)
        .enumerate()
        .map(|(at, cause)| section(review, at, cause));
    Text::lines(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>reqc: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<nav>\n<h1>Causes</h1>\n<ol>\n{}</ol>\n</nav>\n<main>\n<p><strong>{title}</strong></p>\n{base}{}{}{}{}</main>\n</body>\n</html>\n",
        items.collect::<String>(),
        broken(review),
        roll(review),
        sections.collect::<String>(),
        rest(review),
    ))
}

fn item(at: usize, cause: &Cause) -> String {
    let place = cause.edits.first().map(Edit::place).unwrap_or_default();
    format!(
        "<li><a href=\"#cause-{at}\">{}</a><br><small>{}</small></li>\n",
        html(&place),
        html(&reach(cause))
    )
}

fn roll(review: &Review) -> String {
    let roll = &review.roll;
    let renamed = roll
        .renamed
        .iter()
        .map(|it| format!("<li>renamed: {} → {}</li>\n", code(&it.from), code(&it.to)));
    let contexts = roll.renamed_contexts.iter();
    let contexts = contexts.map(|it| {
        format!(
            "<li>renamed context: {} → {}</li>\n",
            code(&it.from),
            code(&it.to)
        )
    });
    let rerouted = review
        .rerouted
        .iter()
        .map(|it| format!("<li>{}</li>\n", rerouted(it, code)));
    let lowered = crate::report::lowered_text(&review.lowered);
    let lowered = lowered
        .lines()
        .map(|line| format!("<li>{}</li>\n", html(line.trim())));
    let items = [
        list("new agents", &roll.agents),
        list("removed agents", &roll.gone_agents),
        list("new contexts", &roll.contexts),
        list("removed contexts", &roll.gone_contexts),
        list("contexts that can no longer be read", &roll.broken_contexts),
    ];
    let items: String = items
        .into_iter()
        .chain(renamed)
        .chain(contexts)
        .chain(rerouted)
        .chain(lowered)
        .collect();
    if items.is_empty() {
        items
    } else {
        format!("<ul>\n{items}</ul>\n")
    }
}

fn list(what: &str, list: &[Listed]) -> String {
    let names: Vec<String> = list.iter().map(|it| code(&it.name)).collect();
    let bodies = count(list.iter().map(|it| it.bodies).sum(), "body");
    if names.is_empty() {
        String::new()
    } else {
        format!("<li>{what}: {} ({bodies})</li>\n", names.join(", "))
    }
}

/// Returns the agents that compile on one side only, or on neither.
fn broken(review: &Review) -> String {
    let lists: [(&str, Vec<&Arc<str>>); 4] = [
        (
            "<strong class=\"old\">no longer compile</strong>",
            review.no_longer_compiled().collect(),
        ),
        (
            "<strong class=\"old\">new, and do not compile</strong>",
            review.new_and_broken().collect(),
        ),
        ("compile now", review.mended.iter().collect()),
        ("compile on neither side", review.uncompared().collect()),
    ];
    let lists = lists.into_iter().filter(|(_, agents)| !agents.is_empty());
    let items = lists.map(|(what, agents)| {
        let names: Vec<String> = agents.into_iter().map(|agent| code(agent)).collect();
        format!("<li>{what}: {}</li>\n", names.join(", "))
    });
    let unknown: BTreeSet<Arc<str>> = review.broken_by_nothing_known().cloned().collect();
    let items: String = items
        .chain(error_items(review, errors(review, &unknown)))
        .collect();
    if items.is_empty() {
        items
    } else {
        format!("<ul>\n{items}</ul>\n")
    }
}

fn error_items(review: &Review, errors: Vec<&Diagnostic>) -> Vec<String> {
    errors
        .into_iter()
        .map(|error| format!("<li>{}</li>\n", code(&error_line(review, error))))
        .collect()
}

fn section(review: &Review, at: usize, cause: &Cause) -> String {
    let edits: String = Edit::shown(&cause.edits).iter().map(edit).collect();
    let blocks = blocks(&cause.groups);
    let changes = blocks.iter().take(MOST_CHANGES).map(|it| block(it, cause));
    let items: String = error_items(review, errors_of(review, cause))
        .into_iter()
        .chain(changes)
        .collect();
    let more = match blocks.len().saturating_sub(MOST_CHANGES) {
        0 => String::new(),
        more => format!("<li>… and {} more</li>\n", count(more, "change")),
    };
    let broken = cause
        .broken
        .iter()
        .chain(&cause.mended)
        .map(|agent| code(agent));
    let bodies: Vec<String> = broken
        .chain(cause.changes.iter().map(|file| code(&file.path)))
        .collect();
    format!(
        "<section id=\"cause-{at}\">\n<h2>{}</h2>\n<p class=\"dim\">{}</p>\n{edits}<ul>\n{items}{more}</ul>\n{}\
         <details><summary>{}</summary>\n<p>{}</p>\n</details>\n</section>\n",
        html(&reach(cause)),
        html(&verdict(cause).unwrap_or_default()),
        cause.changes.first().map(body).unwrap_or_default(),
        html(&reach(cause)),
        bodies.join(", "),
    )
}

/// Returns the lines of an edit, side by side.
fn edit(edit: &Edit) -> String {
    let what = what(edit)
        .map(|what| format!(" {}", code(&what)))
        .unwrap_or_default();
    let rows: String = edit
        .hunks
        .iter()
        .map(|hunk| {
            let [removed, added] = [&hunk.removed, &hunk.added]
                .map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
            let old = Numbered {
                lines: &removed,
                first: hunk.old_line,
            };
            let new = Numbered {
                lines: &added,
                first: hunk.new_line,
            };
            rows(old, new)
        })
        .collect();
    format!(
        "<table>\n{COLUMNS}<tr><th colspan=\"4\">{}{what}</th></tr>\n{rows}</table>\n",
        html(&edit.place())
    )
}

fn block(block: &Block<'_>, cause: &Cause) -> String {
    let pointers: Vec<String> = block
        .pointers
        .iter()
        .map(|pointer| code(&place_of(block, pointer)))
        .collect();
    let shown = match &block.hunks {
        Some(hunks) => format!("text, {}", count(hunks.len(), "place")),
        None => block.kind.describe(300),
    };
    let part = block
        .part(cause)
        .map(|part| format!(" <span class=\"dim\">({})</span>", html(&part)));
    format!(
        "<li>{} {}{}</li>\n",
        pointers.join(", "),
        code(&shown),
        part.unwrap_or_default()
    )
}

/// Returns a body before and after the change, with unchanged parts folded. Multi-line strings are
/// shown line by line.
fn body(file: &ChangedFile) -> String {
    let text =
        |side: &Option<String>| masked(side.as_deref().unwrap_or_default()).replace("\\n", "\\n\n");
    let (old, new) = (text(&file.old), text(&file.new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut all = format!(
        "<table>\n{COLUMNS}<tr><th colspan=\"2\">{0} before</th><th colspan=\"2\">after</th></tr>\n",
        html(&file.path)
    );
    let mut left = MOST_LINES;
    for operation in line_operations(&old, &new) {
        let (tag, before, after) = operation.as_tag_tuple();
        let shown = match tag {
            DiffTag::Equal => equal(&old, before, after.start),
            _ => {
                let lines = before.len().max(after.len()).min(left);
                left -= lines;
                rows(
                    Numbered::of(&old, before, lines),
                    Numbered::of(&new, after, lines),
                )
            }
        };
        all.push_str(&shown);
        if left == 0 {
            all.push_str(&fold("the rest is not shown"));
            break;
        }
    }
    all + "</table>\n"
}

fn fold(text: &str) -> String {
    format!(
        "<tr><td class=\"fold\" colspan=\"4\">{}</td></tr>\n",
        html(text)
    )
}

/// Returns lines that are equal on both sides.
fn equal(lines: &[&str], range: Range<usize>, new_start: usize) -> String {
    let first = range.start;
    let row = |at: usize| {
        let text = html(lines[at]);
        let new = new_start + at - first + 1;
        format!(
            "<tr><td class=\"n\">{}</td><td>{text}</td><td class=\"n\">{new}</td><td>{text}</td></tr>\n",
            at + 1
        )
    };
    let head = if range.start == 0 {
        range.start
    } else {
        (range.start + CONTEXT).min(range.end)
    };
    let tail = if range.end == lines.len() {
        range.end
    } else {
        range.end.saturating_sub(CONTEXT).max(head)
    };
    let hidden = tail - head;
    if hidden <= 1 {
        return range.map(row).collect();
    }
    let folded = fold(&format!("{} equal lines", thousands(hidden)));
    (range.start..head)
        .map(row)
        .chain([folded])
        .chain((tail..range.end).map(row))
        .collect()
}

/// Lines of one side, with the number of the first.
#[derive(Clone, Copy)]
struct Numbered<'l> {
    lines: &'l [&'l str],
    first: usize,
}

impl<'l> Numbered<'l> {
    /// Returns the lines in a range, up to `most` of them.
    fn of(all: &'l [&'l str], range: Range<usize>, most: usize) -> Numbered<'l> {
        Numbered {
            lines: &all[range.start..range.end.min(range.start + most)],
            first: range.start + 1,
        }
    }
}

/// Returns differing lines, side by side.
fn rows(old: Numbered<'_>, new: Numbered<'_>) -> String {
    let mut rows = String::new();
    for at in 0..old.lines.len().max(new.lines.len()) {
        let (before, after) = match (old.lines.get(at), new.lines.get(at)) {
            (Some(old), Some(new)) => {
                let (old, new) = words(old, new);
                (Some(old), Some(new))
            }
            (old, new) => (
                old.map(|line| vec![Word::whole(line)]),
                new.map(|line| vec![Word::whole(line)]),
            ),
        };
        let before = cell("old", old.lines.get(at).map(|_| old.first + at), before);
        let after = cell("new", new.lines.get(at).map(|_| new.first + at), after);
        rows.push_str(&format!("<tr>{before}{after}</tr>\n"));
    }
    rows
}

fn cell(class: &str, line: Option<usize>, words: Option<Vec<Word>>) -> String {
    match (line, words) {
        (Some(line), Some(words)) => {
            format!(
                "<td class=\"n\">{line}</td><td class=\"{class}\">{}</td>",
                marked(&words)
            )
        }
        _ => "<td class=\"n\"></td><td></td>".to_owned(),
    }
}

fn marked(words: &[Word]) -> String {
    let is_whole = words.len() == 1;
    words
        .iter()
        .map(|word| match word.is_changed && !is_whole {
            true => format!("<mark>{}</mark>", html(&word.text)),
            false => html(&word.text),
        })
        .collect()
}

fn rest(review: &Review) -> String {
    let mut all = String::new();
    if !review.unexplained.is_empty() {
        let mut items = String::new();
        for it in review.unexplained.iter().take(MOST_CAUSES) {
            let bodies = count(it.group.subjects.len(), "body");
            let change = code(&it.group.change.kind.describe(200));
            items.push_str(&format!(
                "<li>{} {change} ({bodies})</li>\n",
                code(&it.group.pointer)
            ));
        }
        all.push_str(&format!(
            "<section>\n<h2>No edit is known to cause these</h2>\n<ul>\n{items}</ul>\n</section>\n"
        ));
    }
    let beside: Vec<String> = Edit::shown(review.beside())
        .iter()
        .map(|it| format!("<li>{}</li>\n", code(&it.place())))
        .collect();
    let beside = beside.concat();
    if !beside.is_empty() {
        all.push_str(&format!(
            "<section>\n<h2>Edits that change no compared body</h2>\n<ul>\n{beside}</ul>\n</section>\n"
        ));
    }
    all
}
