//! A [`Review`] in several formats, one file each. This module contains the wording that they
//! share.

mod html;
mod human;
mod json;
mod markdown;

pub use html::review_html;
pub use human::{review_broken, review_items, review_text};
pub use json::review_json;
pub use markdown::review_markdown;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LONGEST, thousands};
use crate::compile::route::Rerouted;
use crate::diag::{Diagnostic, Severity, count};
use crate::diff::{BodyId, ChangeKind, Group, TextHunk};
use crate::json::Pointer;
use crate::review::{Cause, Class, Edit, EditKind, Review};
use crate::secret::masked;
use crate::text::cut;

/// A cause's changes that are shown together: changes of the same lines of text, at any locations
/// in bodies, or a single change.
struct Block<'c> {
    pointers: Vec<&'c str>,
    kind: &'c ChangeKind,
    class: Class,
    hunks: Option<Vec<TextHunk>>,
    subjects: BTreeSet<&'c BodyId>,
    variants: usize,
}

impl Block<'_> {
    fn agents(&self) -> BTreeSet<&Arc<str>> {
        self.subjects.iter().map(|subject| &subject.agent).collect()
    }

    /// Returns `23 bodies of 2 agents`; `None` if these are all the bodies that the cause changes.
    fn part(&self, cause: &Cause) -> Option<String> {
        let (number, all) = match self.class {
            Class::Request => (
                count(self.subjects.len(), "request"),
                cause.changes.len() - cause.bodies(),
            ),
            _ => (count(self.subjects.len(), "body"), cause.bodies()),
        };
        (self.subjects.len() < all)
            .then(|| format!("{number} of {}", count(self.agents().len(), "agent")))
    }
}

/// Groups changes into blocks, the most severe first.
fn blocks(groups: &[Group]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for group in groups {
        let hunks = group.change.kind.hunks();
        let is_text = group.change.kind.is_text();
        let same = |block: &&mut Block<'_>| {
            let is_same = if hunks.is_some() {
                block.hunks == hunks
            } else {
                *block.kind == group.change.kind
            };
            is_text && is_same && !group.is_request && block.class == Class::Text
                || is_same_order(block, group)
        };
        if let Some(block) = blocks.iter_mut().find(same) {
            if !block.pointers.contains(&group.pointer.as_str()) {
                block.pointers.push(&group.pointer);
            }
            block.subjects.extend(&group.subjects);
            continue;
        }
        blocks.push(Block {
            pointers: vec![&group.pointer],
            kind: &group.change.kind,
            class: Class::of_group(group),
            hunks,
            subjects: group.subjects.iter().collect(),
            variants: group.variants,
        });
    }
    blocks.sort_by_key(|block| std::cmp::Reverse(block.class));
    blocks
}

/// Returns `true` if two changes reorder the same keys, even if the objects differ in other ways.
fn is_same_order(block: &Block<'_>, group: &Group) -> bool {
    let is_request = block.class == Class::Request;
    is_order(block.kind)
        && is_order(&group.change.kind)
        && is_request == group.is_request
        && block.kind.describe(LONGEST) == group.change.kind.describe(LONGEST)
}

fn is_order(kind: &ChangeKind) -> bool {
    matches!(kind, ChangeKind::Reordered(..))
}

/// Returns the pointer of a change, marked if the change is in a request line rather than in a
/// body.
fn place_of(block: &Block<'_>, pointer: &str) -> String {
    match block.class {
        Class::Request => format!("request {pointer}"),
        _ => pointer.to_owned(),
    }
}

/// Returns the summary:
/// `2 agents no longer compile · 3 causes · 40 of 52 agents · 360 bodies: 1 request, 2 values, 31 texts · prefix of 12 agents lost · +1,240 tokens in 22 bodies`.
fn summary(review: &Review) -> String {
    let mut parts = verdicts(review);
    if review.changes.is_empty() {
        parts.push(
            if parts.is_empty() {
                "no changes in bodies"
            } else {
                "no changes in other bodies"
            }
            .to_owned(),
        );
        return parts.join(" · ");
    }
    if !review.causes.is_empty() {
        parts.push(count(review.causes.len(), "cause"));
    }
    let (changed, all) = (review.agents().len(), review.report.summary.agents);
    parts.push(format!(
        "{} of {}",
        thousands(changed),
        count(all.max(changed), "agent")
    ));
    let kinds = kinds(review);
    let bodies = count(review.bodies(), "body");
    parts.push(if kinds.is_empty() {
        bodies
    } else {
        format!("{bodies}: {kinds}")
    });
    match review.agents_losing_prefix().len() {
        0 => {}
        agents => parts.push(format!("prefix of {} lost", count(agents, "agent"))),
    }
    parts.extend(growth(review));
    parts.join(" · ")
}

/// Returns `+1,240 tokens in 22 bodies`, or `None` if the size of no body changes.
fn growth(review: &Review) -> Option<String> {
    let growth = review.growth?;
    let about = if growth.is_tokenized { "" } else { "about " };
    let sign = if growth.tokens < 0 { "−" } else { "+" };
    let tokens = thousands(growth.tokens.unsigned_abs());
    Some(format!(
        "{about}{sign}{tokens} tokens in {}",
        count(growth.bodies, "body")
    ))
}

/// Returns the numbers of agents that compile on one side only, or on neither.
fn verdicts(review: &Review) -> Vec<String> {
    let new = review.new_and_broken().count();
    let broken = review.no_longer_compiled().count();
    let told = [
        (broken, "agent", "no longer compiles", "no longer compile"),
        (new, "new agent", "does not compile", "do not compile"),
        (review.mended.len(), "agent", "compiles now", "compile now"),
        (
            review.uncompared().count(),
            "agent",
            "compiles on neither side",
            "compile on neither side",
        ),
    ];
    let told = told.into_iter().filter(|(number, ..)| *number > 0);
    let told = told.map(|(number, noun, one, many)| {
        format!(
            "{} {}",
            count(number, noun),
            if number == 1 { one } else { many }
        )
    });
    told.collect()
}

/// Returns the first errors in these agents.
fn errors<'r>(review: &'r Review, agents: &BTreeSet<Arc<str>>) -> Vec<&'r Diagnostic> {
    errors_of_agents(review, agents)
        .into_iter()
        .take(MOST_ERRORS)
        .collect()
}

/// Returns the errors that a cause introduces: those in its lines, or else all errors of the agents
/// that it breaks.
fn errors_of<'r>(review: &'r Review, cause: &Cause) -> Vec<&'r Diagnostic> {
    let mut all = errors_of_agents(review, &cause.broken);
    // No finding names an agent whose name cannot be read.
    if all.is_empty() && !cause.broken.is_empty() {
        all = review
            .report
            .findings
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .collect();
    }
    let sources = &review.report.sources;
    let inside: Vec<&Diagnostic> = all
        .iter()
        .copied()
        .filter(|error| {
            let file = sources.get(error.primary.span.file);
            let line = file.position(error.primary.span.start as usize).line;
            cause
                .edits
                .iter()
                .any(|edit| edit.path == *file.path() && edit.has_line(line))
        })
        .collect();
    let told = if inside.is_empty() { all } else { inside };
    told.into_iter().take(MOST_ERRORS).collect()
}

fn errors_of_agents<'r>(review: &'r Review, agents: &BTreeSet<Arc<str>>) -> Vec<&'r Diagnostic> {
    let errors = review
        .report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors
        .filter(|error| error.agents.iter().any(|agent| agents.contains(agent)))
        .collect()
}

/// The maximum number of errors listed for a cause.
const MOST_ERRORS: usize = 3;

/// Returns `agents/a.toml:5: error[schema/invalid]: message`.
fn error_line(review: &Review, error: &Diagnostic) -> String {
    let place = review.report.sources.describe(error.primary.span);
    format!(
        "{place}: error[{}]: {}",
        error.rule.code,
        cut(error.message.trim_end(), LONGEST)
    )
}

/// Returns the number of distinct changes of each kind.
fn kinds(review: &Review) -> String {
    let groups = review.causes.iter().map(|cause| cause.groups.as_slice());
    let blocks: Vec<Class> = groups.flat_map(blocks).map(|block| block.class).collect();
    let unexplained = review
        .unexplained
        .iter()
        .map(|it| Class::of_group(&it.group));
    let classes: Vec<Class> = blocks.into_iter().chain(unexplained).collect();
    let nouns = [
        (Class::Request, "request"),
        (Class::Removed, "removal"),
        (Class::Value, "value"),
        (Class::Text, "text"),
    ];
    nouns
        .into_iter()
        .filter_map(
            |(class, noun)| match classes.iter().filter(|it| **it == class).count() {
                0 => None,
                many => Some(count(many, noun)),
            },
        )
        .collect::<Vec<_>>()
        .join(", ")
}

/// The maximum number of files listed for a [`Rerouted`].
const MOST_FILES: usize = 4;

/// Returns `roster chat: files like x.rs go to Fixer, no longer to Writer`. `name` escapes
/// untrusted text for the output format.
fn rerouted(it: &Rerouted, name: impl Fn(&str) -> String) -> String {
    let mut files: Vec<String> = it
        .files
        .iter()
        .take(MOST_FILES)
        .map(|file| name(&example(file)))
        .collect();
    if it.files.len() > MOST_FILES {
        files.push("…".to_owned());
    }
    let what = match (files.is_empty(), it.has_others) {
        (false, true) => format!(
            "files like {}, and those that no pattern covers",
            files.join(", ")
        ),
        (false, false) => format!("files like {}", files.join(", ")),
        (true, _) => "files that no pattern covers".to_owned(),
    };
    let goes = match (&it.from, &it.to) {
        (Some(from), Some(to)) => format!("now go to {} instead of {}", name(to), name(from)),
        (None, Some(to)) => format!("now go to {}; no agent accepted them before", name(to)),
        (Some(from), None) => format!("now go to no agent; {} accepted them before", name(from)),
        (None, None) => String::new(),
    };
    format!("roster {}: {what} {goes}", name(&it.roster))
}

/// Returns the name of a file that matches a pattern. Keys in the name are masked here, because the
/// `x` that replaces a wildcard may directly precede a key.
fn example(file: &str) -> String {
    let mut shown = masked(file).into_owned();
    for (at, _) in file.match_indices('x') {
        if let Cow::Owned(rest) = masked(&file[at + 1..]) {
            shown.replace_range(at + 1.., &rest);
        }
    }
    shown
}

/// Returns a short description of an edit, to follow its location: `body.temperature`, `new file`.
fn what(edit: &Edit) -> Option<String> {
    match &edit.kind {
        EditKind::Added => Some("new file".to_owned()),
        EditKind::Removed => Some("removed".to_owned()),
        EditKind::Moved { from } => Some(format!("moved from {from}")),
        EditKind::Bundled => Some("different text in this version of reqc".to_owned()),
        EditKind::Key(_) => edit.key().map(str::to_owned),
        _ => None,
    }
}

/// Returns `breaks 3 agents, 18 bodies of 2 agents`; request lines are counted if there are no
/// bodies.
fn reach(cause: &Cause) -> String {
    let verdicts = [
        agents("breaks", cause.broken.len()),
        agents("fixes", cause.mended.len()),
    ];
    let changed = (!cause.changes.is_empty()).then(|| changed(cause));
    verdicts
        .into_iter()
        .flatten()
        .chain(changed)
        .collect::<Vec<_>>()
        .join(", ")
}

fn agents(verb: &str, number: usize) -> Option<String> {
    (number > 0).then(|| format!("{verb} {}", count(number, "agent")))
}

fn changed(cause: &Cause) -> String {
    let agents = count(cause.agents().len(), "agent");
    let requests = cause.changes.len() - cause.bodies();
    match (cause.bodies(), requests) {
        (0, requests) => format!("{} of {agents}", count(requests, "request")),
        (bodies, 0) => format!("{} of {agents}", count(bodies, "body")),
        (bodies, requests) => format!(
            "{} and {} of {agents}",
            count(bodies, "body"),
            count(requests, "request")
        ),
    }
}

/// Returns a line that says whether bodies are still accepted and how much of a cached prefix is
/// lost; `None` for a cause that changes no body.
fn verdict(cause: &Cause) -> Option<String> {
    let is_valid = cause.broken.is_empty() && !cause.changes.is_empty();
    let told = [is_valid.then(|| "still valid".to_owned()), prefix(cause)];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(" · "))
}

/// Returns `cached prefix lost at /system (97 % to 100 %)`.
fn prefix(cause: &Cause) -> Option<String> {
    if cause.bodies() == 0 {
        return None;
    }
    let pointers: BTreeSet<Pointer> = cause
        .prefix
        .iter()
        .map(|(_, loss)| Pointer::parse(&loss.pointer))
        .collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is at most 1"
    )]
    let shares: BTreeSet<u32> = cause
        .prefix
        .iter()
        .map(|(_, loss)| (loss.share * 100.0).round() as u32)
        .collect();
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else {
        return Some("cached prefix kept".to_owned());
    };
    let share = if least == most {
        format!("{most} %")
    } else {
        format!("{least} % to {most} %")
    };
    let from = match pointers.iter().collect::<Vec<_>>().as_slice() {
        [only] => format!("at {only}"),
        [first, second] => format!("at {first} or {second}"),
        [first, ..] => format!("at {first} or another place"),
        [] => String::new(),
    };
    let agents: BTreeSet<&Arc<str>> = cause
        .prefix
        .iter()
        .map(|(subject, _)| &subject.agent)
        .collect();
    let of = match agents.len() == cause.agents().len() {
        true => String::new(),
        false => format!(" of {}", count(agents.len(), "agent")),
    };
    Some(format!("cached prefix{of} lost {from} ({share})"))
}

/// Returns `true` if a string changed only by the edited lines, so it need not be shown again.
fn repeats(block: &Block<'_>, cause: &Cause) -> bool {
    let Some(hunks) = &block.hunks else {
        return false;
    };
    let edits = Edit::shown(&cause.edits);
    let edited: Vec<_> = edits.iter().flat_map(|edit| &edit.hunks).collect();
    edited.len() == hunks.len()
        && hunks.iter().zip(edited).all(|(hunk, edit)| {
            trimmed(&hunk.removed) == trimmed(&edit.removed)
                && trimmed(&hunk.added) == trimmed(&edit.added)
        })
}

fn trimmed(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}
