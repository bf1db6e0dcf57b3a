//! A [`Review`], one file per format. What all of them say is put into words here.

mod html;
mod human;
mod json;
mod markdown;

pub use html::review_html;
pub use human::{review_items, review_text};
pub use json::review_json;
pub use markdown::review_markdown;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::thousands;
use crate::compile::Rerouted;
use crate::diag::count;
use crate::diff::{BodyId, ChangeKind, Group, TextHunk};
use crate::review::{Cause, Class, Edit, EditKind, Review};

/// Changes of one cause that are one to a reader: the same lines of texts, wherever bodies have them, or one change.
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

    /// `23 bodies of 2 agents`; nothing, if these are all that the cause changes.
    fn part(&self, cause: &Cause) -> Option<String> {
        let (number, all) = match self.class {
            Class::Request => (count(self.subjects.len(), "request"), cause.changes.len() - cause.bodies()),
            _ => (count(self.subjects.len(), "body"), cause.bodies()),
        };
        (self.subjects.len() < all).then(|| format!("{number} of {}", count(self.agents().len(), "agent")))
    }
}

/// The blocks of some changes, the gravest first.
fn blocks(groups: &[Group]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for group in groups {
        let hunks = group.change.kind.hunks();
        let is_text = group.change.kind.is_text();
        let same = |block: &&mut Block<'_>| {
            let is_same = if hunks.is_some() { block.hunks == hunks } else { *block.kind == group.change.kind };
            is_text && is_same && !group.is_request && block.class == Class::Text
        };
        if let Some(block) = blocks.iter_mut().find(same) {
            block.pointers.push(&group.pointer);
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

/// `3 causes · 40 of 52 agents · 360 bodies: 1 request, 2 values, 31 texts · prefix of 12 agents lost`.
fn summary(review: &Review) -> String {
    if review.changes.is_empty() {
        return "no changes of bodies".to_owned();
    }
    let mut parts = Vec::new();
    if !review.causes.is_empty() {
        parts.push(count(review.causes.len(), "cause"));
    }
    let (changed, all) = (review.agents().len(), review.report.summary.agents);
    parts.push(format!("{} of {}", thousands(changed), count(all.max(changed), "agent")));
    let kinds = kinds(review);
    let bodies = count(review.bodies(), "body");
    parts.push(if kinds.is_empty() { bodies } else { format!("{bodies}: {kinds}") });
    match review.agents_losing_prefix().len() {
        0 => {}
        agents => parts.push(format!("prefix of {} lost", count(agents, "agent"))),
    }
    parts.join(" · ")
}

/// How many distinct changes of each kind there are.
fn kinds(review: &Review) -> String {
    let groups = review.causes.iter().map(|cause| cause.groups.as_slice());
    let blocks: Vec<Class> = groups.flat_map(blocks).map(|block| block.class).collect();
    let unexplained = review.unexplained.iter().map(|it| Class::of_group(&it.group));
    let classes: Vec<Class> = blocks.into_iter().chain(unexplained).collect();
    let of = |(class, noun): (Class, &str)| match classes.iter().filter(|it| **it == class).count() {
        0 => None,
        many => Some(count(many, noun)),
    };
    let nouns =
        [(Class::Request, "request"), (Class::Removed, "removal"), (Class::Value, "value"), (Class::Text, "text")];
    nouns.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// How many files of a [`Rerouted`] are named.
const MOST_FILES: usize = 4;

/// `roster chat: files like x.rs go to Fixer, no longer to Writer`; `name` makes what is foreign fit for where it goes.
fn rerouted(it: &Rerouted, name: impl Fn(&str) -> String) -> String {
    let mut files: Vec<String> = it.files.iter().take(MOST_FILES).map(|file| name(file)).collect();
    if it.files.len() > MOST_FILES {
        files.push("…".to_owned());
    }
    let what = match (files.is_empty(), it.has_others) {
        (false, true) => format!("files like {}, and those that no pattern speaks of", files.join(", ")),
        (false, false) => format!("files like {}", files.join(", ")),
        (true, _) => "files that no pattern speaks of".to_owned(),
    };
    let goes = match (&it.from, &it.to) {
        (Some(from), Some(to)) => format!("go to {}, no longer to {}", name(to), name(from)),
        (None, Some(to)) => format!("go to {}; no agent accepted them before", name(to)),
        (Some(from), None) => format!("go to no agent; {} accepted them before", name(from)),
        (None, None) => String::new(),
    };
    format!("roster {}: {what} {goes}", name(&it.roster))
}

/// What an edit is, behind its place: `body.temperature`, `new file`.
fn what(edit: &Edit) -> Option<String> {
    match &edit.kind {
        EditKind::Added => Some("new file".to_owned()),
        EditKind::Removed => Some("removed".to_owned()),
        EditKind::Moved { from } => Some(format!("moved from {from}")),
        EditKind::Bundled => Some("another text in this version of reqc".to_owned()),
        EditKind::Key(_) => edit.key().map(str::to_owned),
        _ => None,
    }
}

/// `18 bodies of 2 agents`; request lines are counted where there are no bodies.
fn reach(cause: &Cause) -> String {
    let agents = count(cause.agents().len(), "agent");
    let requests = cause.changes.len() - cause.bodies();
    match (cause.bodies(), requests) {
        (0, requests) => format!("{} of {agents}", count(requests, "request")),
        (bodies, 0) => format!("{} of {agents}", count(bodies, "body")),
        (bodies, requests) => format!("{} and {} of {agents}", count(bodies, "body"), count(requests, "request")),
    }
}

/// Whether bodies are still taken, and what a cached prefix loses.
fn verdict(cause: &Cause) -> String {
    let validity = match cause.broken.len() {
        0 => "still valid".to_owned(),
        broken => format!("{} {} errors", count(broken, "agent"), if broken == 1 { "has" } else { "have" }),
    };
    match prefix(cause) {
        Some(prefix) => format!("{validity} · {prefix}"),
        None => validity,
    }
}

/// `cached prefix lost from /system on (97 % to 100 %)`.
fn prefix(cause: &Cause) -> Option<String> {
    if cause.bodies() == 0 {
        return None;
    }
    let pointers: BTreeSet<&str> = cause.prefix.iter().map(|(_, loss)| loss.pointer.as_str()).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is at most 1")]
    let shares: BTreeSet<u32> = cause.prefix.iter().map(|(_, loss)| (loss.share * 100.0).round() as u32).collect();
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else {
        return Some("cached prefix kept".to_owned());
    };
    let share = if least == most { format!("{most} %") } else { format!("{least} % to {most} %") };
    let from = match pointers.iter().collect::<Vec<_>>().as_slice() {
        [only] => format!("from {only} on"),
        [first, second] => format!("from {first} or {second} on"),
        [first, ..] => format!("from {first} or another place on"),
        [] => String::new(),
    };
    let agents: BTreeSet<&Arc<str>> = cause.prefix.iter().map(|(subject, _)| &subject.agent).collect();
    let of = match agents.len() == cause.agents().len() {
        true => String::new(),
        false => format!(" of {}", count(agents.len(), "agent")),
    };
    Some(format!("cached prefix{of} lost {from} ({share})"))
}

/// Whether a text changed by just the lines that were edited, so that showing them again says nothing.
fn repeats(block: &Block<'_>, cause: &Cause) -> bool {
    let Some(hunks) = &block.hunks else { return false };
    let trimmed = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let edited: Vec<_> = cause.edits.iter().flat_map(|edit| &edit.hunks).collect();
    edited.len() == hunks.len()
        && hunks.iter().zip(edited).all(|(hunk, edit)| {
            trimmed(&hunk.removed) == trimmed(&edit.removed) && trimmed(&hunk.added) == trimmed(&edit.added)
        })
}
