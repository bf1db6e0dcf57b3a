//! What a place does to an agent in whose bodies it wrote nothing: it puts the agent together, decides what templates write, or
//! nobody can tell. What surely does nothing is told apart: comments, and what a descendant says anew.

use std::ops::Range;

use super::Compiler;
use crate::source::{FileId, Span};
use crate::unit::Plan;

/// Keys of a profile that are for people and for choosing an agent.
const ASIDE: [&str; 5] = ["schema_version", "description", "tags", "hidden", "match"];

const PUTS_TOGETHER: &str = "decides how the agent is put together, which is not followed";
const DECIDES: &str = "decides what is written, which is not followed";

impl Compiler {
    /// What a place does that wrote nothing in an agent's bodies; `None` if it does nothing there. `unknown` says why not all is
    /// known of the bodies.
    pub(super) fn unfollowed(
        &self,
        plan: &Plan<'_>,
        (file, range): (FileId, &Range<usize>),
        unknown: Option<&'static str>,
    ) -> Option<&'static str> {
        let source = self.sources().get(file);
        let (text, path) = (source.text(), source.path());
        let is_profile = plan.profile.chain.iter().any(|profile| profile.file == file);
        let is_instance = plan.instance.name.span.file == file;
        let is_read = path.trim_start_matches("bundled:").starts_with("roles/");
        if is_comment(path, text, range) || !(is_profile || is_instance || is_read || self.includes(plan, file)) {
            return None;
        }
        if text[range.clone()].trim().is_empty() {
            return unknown;
        }
        match is_profile {
            true if self.is_replaced(plan, file, range) => None,
            true if puts_together(plan, text, file, range) => Some(PUTS_TOGETHER),
            _ if is_instance => Some(PUTS_TOGETHER),
            _ if !is_read && (text[range.clone()].contains("{%") || is_in_statement(&text[..range.start])) => {
                unknown.or(Some(DECIDES))
            }
            _ => unknown,
        }
    }

    /// Whether a place of a profile is for people, or a descendant says something else instead.
    pub(super) fn is_aside(&self, plan: &Plan<'_>, file: FileId, range: &Range<usize>) -> bool {
        let is_profile = plan.profile.chain.iter().any(|profile| profile.file == file);
        is_profile && self.is_replaced(plan, file, range)
    }

    /// Whether a template of an agent includes a partial, directly or not.
    fn includes(&self, plan: &Plan<'_>, file: FileId) -> bool {
        let mut left = usize::MAX;
        let files = plan.profile.chain.iter().map(|profile| profile.file);
        let mut names =
            files.flat_map(|file| self.engine.partials_of_file(file, &mut left)).collect::<Vec<_>>().into_iter();
        names.any(|name| self.repo.partials.get(&name).is_some_and(|partial| partial.file == file))
    }

    /// Whether a descendant of the profile says something else instead, or the key is for people.
    fn is_replaced(&self, plan: &Plan<'_>, file: FileId, range: &Range<usize>) -> bool {
        let settings = plan.profile.chain.iter().filter(|profile| profile.file == file);
        let mut entries = settings.flat_map(|profile| &profile.settings.entries);
        let asked = entries.find(|(key, node)| {
            overlaps(&key.span, range) || overlaps(&node.span, range) && self.is_alone(file, &node.span, range)
        });
        let Some((key, _)) = asked else { return false };
        let merged = plan.profile.merged.get(&key.name);
        let is_older = merged.is_none_or(|merged| merged.file != file && merged.table().is_none());
        ASIDE.contains(&key.name.as_str()) || is_older
    }

    /// Whether a range is inside of a value.
    fn is_alone(&self, file: FileId, value: &Range<usize>, range: &Range<usize>) -> bool {
        let asked = self.sources().get(file).text()[range.clone()].trim();
        range.start >= value.start && range.start + asked.len() <= value.end
    }
}

/// Whether a place of a profile says what the agent is made of: its parent, what is removed, a table's head, or a setting.
fn puts_together(plan: &Plan<'_>, text: &str, file: FileId, range: &Range<usize>) -> bool {
    let of_file = plan.profile.chain.iter().filter(|profile| profile.file == file);
    let mut said = of_file.flat_map(|profile| {
        let extends = profile.extends.iter().map(|extends| extends.span);
        extends.chain(profile.unset.iter().map(|path| path.span))
    });
    let is_head = text[range.clone()].trim_start().starts_with('[');
    let is_setting = plan.profile.merged.iter().any(|(name, merged)| {
        let [key, value] = [merged.key_span(), merged.span()];
        name != "body" && [key, value].iter().any(|span| span.file == file && overlaps(&span.range(), range))
    });
    let is_line_of = |span: Span| {
        let line = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1)..span.end as usize;
        overlaps(&line, range)
    };
    is_head || is_setting || said.any(is_line_of)
}

/// Whether a text ends inside of a `{%` tag.
fn is_in_statement(before: &str) -> bool {
    before.rfind("{%").is_some_and(|open| !before[open..].contains("%}"))
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether nothing but a comment stands somewhere.
pub(super) fn is_comment(path: &str, text: &str, range: &Range<usize>) -> bool {
    let asked = text[range.clone()].trim();
    let before = &text[..range.start];
    let is_inside = before.rfind("{#").is_some_and(|open| !before[open..].contains("#}"));
    let ends = |asked: &str| asked.find("#}").is_none_or(|end| end + 2 == asked.len());
    let is_of_toml = asked.starts_with('#') && path.ends_with(".toml");
    is_of_toml || asked.starts_with("{#") && ends(asked) || is_inside && ends(asked)
}
