//! Markdown for a comment on a pull request, in collapsed sections, with the most severe changes
//! first, and within the length limit of comments.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    Block, blocks, error_line, errors, errors_of, place_of, reach, repeats, rerouted, summary,
    verdict, what,
};
use crate::diag::{Diagnostic, count};
use crate::report::escape::{code, html};
use crate::report::{LONGEST_NAME, thousands};
use crate::report::{MOST_OF_COMMENT, units};
use crate::review::{Cause, Edit, Listed, Review};
use crate::text::{Text, cut, fence};

/// The number of bytes in a comment that are reserved for the sentence about omitted content.
const FRAME: usize = 200;
/// The maximum number of characters shown for one cause.
const LONGEST_CAUSE: usize = 12_000;
/// The maximum number of changes shown for a cause, and of names in a list.
const MOST_CHANGES: usize = 20;
const MOST_NAMES: usize = 10;
/// The maximum number of lines shown for a hunk, and of characters shown for a line.
const MOST_LINES: usize = 60;
const LONGEST_LINE: usize = 400;

/// Writes the review as Markdown for GitHub and GitLab.
pub fn review_markdown(review: &Review, base: Option<&Text>) -> Text {
    let mut all = format!("### {}\n\n", html(&summary(review)));
    if let Some(base) = base {
        all.push_str(&format!("{}\n\n", html(base)));
    }
    all.push_str(&broken(review));
    all.push_str(&findings(review));
    all.push_str(&lowered(review));
    all.push_str(&roll(review));
    let rest = rest(review);
    let mut room = MOST_OF_COMMENT.saturating_sub(units(&all) + units(&rest) + FRAME);
    let mut left = review.causes.len();
    for cause in &review.causes {
        let shown = cause_markdown(review, cause);
        room = match room.checked_sub(units(&shown)) {
            Some(room) => room,
            None => break,
        };
        all.push_str(&shown);
        left -= 1;
    }
    if left > 0 {
        all.push_str(&format!(
            "\n… and {} more: `reqc compile --diff` shows all.\n",
            count(left, "cause")
        ));
    }
    all.push_str(&rest);
    Text::lines(&all)
}

/// Returns a name, path, or pointer as code.
fn name(foreign: &str) -> String {
    code(&cut(foreign, LONGEST_NAME))
}

/// Lists the first names, and counts the rest.
fn some_names<'n>(names: impl IntoIterator<Item = &'n Arc<str>>) -> String {
    let names: Vec<&Arc<str>> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|it| name(it)).collect();
    let rest = names.len().saturating_sub(MOST_NAMES);
    let rest = if rest > 0 {
        format!(", … (+{rest})")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}

/// Lists the agents that compile on one side only, or on neither.
fn broken(review: &Review) -> String {
    let lists: [(&str, Vec<&Arc<str>>); 4] = [
        (
            "**No longer compile**",
            review.no_longer_compiled().collect(),
        ),
        (
            "**New, and do not compile**",
            review.new_and_broken().collect(),
        ),
        ("Compile now", review.mended.iter().collect()),
        ("Compile on neither side", review.uncompared().collect()),
    ];
    let lists = lists.into_iter().filter(|(_, agents)| !agents.is_empty());
    let items: Vec<String> = lists
        .map(|(what, agents)| format!("- {what}: {}\n", some_names(agents)))
        .collect();
    let mut all = items.concat();
    let unknown: BTreeSet<Arc<str>> = review.broken_by_nothing_known().cloned().collect();
    all.extend(
        errors(review, &unknown)
            .into_iter()
            .map(|error| error_item(review, error)),
    );
    if all.is_empty() {
        all
    } else {
        format!("{all}\n")
    }
}

fn error_item(review: &Review, error: &Diagnostic) -> String {
    format!("- {}\n", code(&error_line(review, error)))
}

fn findings(review: &Review) -> String {
    let summary = &review.report.summary;
    match summary.errors {
        0 => String::new(),
        errors => format!(
            "**{}**: `reqc check` shows them.\n\n",
            count(errors, "error")
        ),
    }
}

fn lowered(review: &Review) -> String {
    if review.lowered.is_empty() {
        return String::new();
    }
    let lines = crate::report::lowered_text(&review.lowered);
    let mut lines = lines.lines().map(|line| html(line.trim()));
    let heading = lines.next().unwrap_or_default();
    let items: Vec<String> = lines
        .take(MOST_NAMES)
        .map(|line| format!("- {line}\n"))
        .collect();
    format!("**{heading}**\n\n{}\n", items.concat())
}

fn roll(review: &Review) -> String {
    let roll = &review.roll;
    let mut all = String::new();
    let mut list = |what: &str, list: &[Listed]| {
        if !list.is_empty() {
            let names: Vec<String> = list
                .iter()
                .take(MOST_NAMES)
                .map(|it| name(&it.name))
                .collect();
            let rest = list.len().saturating_sub(MOST_NAMES);
            let rest = if rest > 0 {
                format!(", … (+{rest})")
            } else {
                String::new()
            };
            let bodies = count(list.iter().map(|it| it.bodies).sum(), "body");
            all.push_str(&format!(
                "- {what}: {}{rest} ({bodies})\n",
                names.join(", ")
            ));
        }
    };
    list("new agents", &roll.agents);
    list("removed agents", &roll.gone_agents);
    list("new contexts", &roll.contexts);
    list("removed contexts", &roll.gone_contexts);
    list("contexts that can no longer be read", &roll.broken_contexts);
    for it in roll.renamed.iter().take(MOST_NAMES) {
        all.push_str(&format!(
            "- renamed: {} → {}\n",
            name(&it.from),
            name(&it.to)
        ));
    }
    for it in roll.renamed_contexts.iter().take(MOST_NAMES) {
        all.push_str(&format!(
            "- renamed context: {} → {}\n",
            name(&it.from),
            name(&it.to)
        ));
    }
    for it in review.rerouted.iter().take(MOST_NAMES) {
        all.push_str(&format!("- {}\n", rerouted(it, name)));
    }
    if all.is_empty() {
        all
    } else {
        format!("{all}\n")
    }
}

fn heading(cause: &Cause) -> String {
    let edits = Edit::shown(&cause.edits);
    let edit = edits.first();
    let place = edit.map(|edit| name(&edit.place())).unwrap_or_default();
    let what = edit
        .and_then(what)
        .map(|what| format!(" {}", code(cut(&what, 80).as_ref())))
        .unwrap_or_default();
    let more = edits.len().saturating_sub(1);
    let more = if more > 0 {
        format!(" and {}", count(more, "more edit"))
    } else {
        String::new()
    };
    format!("{place}{what}{more}: {}", html(&reach(cause)))
}

fn cause_markdown(review: &Review, cause: &Cause) -> String {
    let open = if cause.broken.is_empty() { "" } else { " open" };
    let mut all = format!("<details{open}><summary>{}</summary>\n\n", heading(cause));
    all.extend(verdict(cause).map(|verdict| format!("{}\n\n", html(&verdict))));
    let errors: String = errors_of(review, cause)
        .into_iter()
        .map(|error| error_item(review, error))
        .collect();
    if !errors.is_empty() {
        all.push_str(&format!("{errors}\n"));
    }
    for edit in &Edit::shown(&cause.edits) {
        if units(&all) > LONGEST_CAUSE {
            break;
        }
        all.push_str(&edit_markdown(edit));
    }
    let agents: BTreeSet<&Arc<str>> = cause
        .agents()
        .into_iter()
        .chain(&cause.broken)
        .chain(&cause.mended)
        .collect();
    all.push_str(&format!("Agents: {}\n\n", some_names(agents)));
    let blocks = blocks(&cause.groups);
    let mut left = blocks.len();
    for block in blocks.iter().take(MOST_CHANGES) {
        let shown = block_markdown(block, cause);
        if units(&all) + units(&shown) > LONGEST_CAUSE {
            break;
        }
        all.push_str(&shown);
        left -= 1;
    }
    if left > 0 {
        all.push_str(&format!("- … and {} more\n", count(left, "change")));
    }
    all.push_str("\n</details>\n");
    all
}

fn edit_markdown(edit: &Edit) -> String {
    let mut all = format!("{}\n\n", name(&edit.place()));
    let lines: Vec<String> = edit
        .hunks
        .iter()
        .flat_map(|hunk| signed(&hunk.removed, &hunk.added))
        .collect();
    all.push_str(&diff(&lines, ""));
    all
}

fn signed(removed: &[String], added: &[String]) -> Vec<String> {
    let line =
        |sign: char| move |line: &String| format!("{sign}{}", cut(&Text::line(line), LONGEST_LINE));
    removed
        .iter()
        .map(line('-'))
        .chain(added.iter().map(line('+')))
        .collect()
}

/// Returns a code block of differing lines.
fn diff(lines: &[String], indent: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let hidden = lines.len().saturating_sub(MOST_LINES);
    let shown: Vec<String> = lines
        .iter()
        .take(MOST_LINES)
        .map(|line| format!("{indent}{line}\n"))
        .collect();
    let mut shown = shown.concat();
    if hidden > 0 {
        shown.push_str(&format!("{indent} … {} more lines\n", thousands(hidden)));
    }
    let fence = fence(&shown);
    format!("{indent}{fence}diff\n{shown}{indent}{fence}\n\n")
}

fn block_markdown(block: &Block<'_>, cause: &Cause) -> String {
    let pointers: Vec<String> = block
        .pointers
        .iter()
        .take(MOST_NAMES)
        .map(|pointer| name(&place_of(block, pointer)))
        .collect();
    let part = block
        .part(cause)
        .map(|part| format!(" ({part})"))
        .unwrap_or_default();
    let variants = match block.variants {
        0 | 1 => String::new(),
        variants => format!(" … and {} more with other values", variants - 1),
    };
    let head = format!("- {}{part}", pointers.join(", "));
    match &block.hunks {
        Some(_) if repeats(block, cause) => format!("{head}: the same lines{variants}\n"),
        Some(hunks) => {
            let lines: Vec<String> = hunks
                .iter()
                .flat_map(|hunk| signed(&hunk.removed, &hunk.added))
                .collect();
            format!("{head}{variants}\n\n{}", diff(&lines, "  "))
        }
        None => format!("{head} {}{variants}\n", code(&block.kind.describe(200))),
    }
}

/// Lists the changes that no edit explains, and the edits that change no compared body.
fn rest(review: &Review) -> String {
    let mut all = String::new();
    if !review.unexplained.is_empty() {
        all.push_str(if review.has_sources {
            "\nNo edit is known to cause these:\n\n"
        } else {
            "\n"
        });
        for it in review.unexplained.iter().take(MOST_NAMES) {
            let bodies = count(it.group.subjects.len(), "body");
            all.push_str(&format!(
                "- {} {} ({bodies})\n",
                name(&it.group.pointer),
                code(&it.group.change.kind.describe(100))
            ));
        }
    }
    let beside = Edit::shown(review.beside());
    if !beside.is_empty() {
        let places: Vec<String> = beside
            .iter()
            .take(MOST_NAMES)
            .map(|edit| name(&edit.place()))
            .collect();
        let rest = beside.len().saturating_sub(MOST_NAMES);
        let rest = if rest > 0 {
            format!(", … (+{rest})")
        } else {
            String::new()
        };
        all.push_str(&format!(
            "\nEdits that change no compared body: {}{rest}\n",
            places.join(", ")
        ));
    }
    all
}
