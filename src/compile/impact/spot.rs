//! Determines the effect of a location that contributes no value to an agent's bodies. Such a
//! location may control how the agent is assembled or what templates write, or the effect of the
//! location may be unknown. Comments, and settings that a descendant overrides, certainly have no
//! effect.

use std::ops::Range;

use crate::compile::compiler::Compiler;
use crate::profile::Profile;
use crate::source::{BUNDLED, FileId, Span};
use crate::toml::{self, Kind, Table};
use crate::unit::Plan;

/// Profile keys that never affect a body, or that only choose an agent.
const ASIDE: [&str; 5] = ["schema_version", "description", "tags", "hidden", "match"];

/// The settings that are templates, whose output is traced.
const TEMPLATES: [&str; 2] = ["system_prompt", "surroundings"];

const PUTS_TOGETHER: &str = "controls how the agent is assembled, which is not traced";
const DECIDES: &str = "controls what is written, which is not traced";

/// A location in a file, in relation to an agent.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) compiler: &'a Compiler,
    pub(super) plan: &'a Plan<'a>,
    pub(super) file: FileId,
    pub(super) range: &'a Range<usize>,
}

impl Spot<'_> {
    /// Returns the effect of a location that contributes no value to the agent's bodies; `None` if
    /// it has no effect. `unknown` is the reason some bodies are unknown, if there is one.
    pub(super) fn unfollowed(&self, unknown: Option<&'static str>) -> Option<&'static str> {
        let text = self.text();
        let is_profile = self.is_of_profile();
        let is_instance = self.plan.instance.name.span.file == self.file;
        let is_read = self
            .path()
            .trim_start_matches(BUNDLED)
            .starts_with("roles/");
        if self.is_comment() || !(is_profile || is_instance || is_read || self.is_included()) {
            return None;
        }
        let asked = &text[self.range.clone()];
        if asked.trim().is_empty() {
            return unknown;
        }
        match is_profile {
            true if self.is_replaced() => None,
            true if self.puts_together() => Some(PUTS_TOGETHER),
            _ if is_instance => Some(PUTS_TOGETHER),
            _ if !is_read
                && (asked.contains("{%") || is_in_statement(&text[..self.range.start])) =>
            {
                unknown.or(Some(DECIDES))
            }
            _ => unknown,
        }
    }

    /// Returns `true` if the location is part of the agent's files and is not a comment.
    pub(super) fn takes_part(&self) -> bool {
        let takes_part = match self.is_of_profile() {
            true => !self.is_replaced(),
            false => self.is_included(),
        };
        takes_part && !self.is_comment()
    }

    /// Returns the locations that this location belongs to: for a tag that ends or splits a block,
    /// the tag that begins it; for a key or the quotes of a string, the whole string; for a table
    /// header, the content of the table.
    pub(super) fn belongs_to(&self) -> Vec<Range<usize>> {
        let mut around = openers(self.text(), self.range);
        for profile in self.profiles() {
            hold(self.text(), &profile.settings, self.range, &mut around);
        }
        around
    }

    /// Returns `true` if the location is in a profile, and its key never affects a body or is
    /// overridden by a descendant.
    pub(super) fn is_aside(&self) -> bool {
        self.is_of_profile() && self.is_replaced()
    }

    fn text(&self) -> &str {
        self.compiler.sources().get(self.file).text()
    }

    fn path(&self) -> &str {
        self.compiler.sources().get(self.file).path()
    }

    fn is_comment(&self) -> bool {
        is_comment(self.path(), self.text(), self.range)
    }

    /// Returns the profiles in the file that belong to the agent's chain.
    fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.plan
            .profile
            .chain
            .iter()
            .copied()
            .filter(|profile| profile.file == self.file)
    }

    fn is_of_profile(&self) -> bool {
        self.profiles().next().is_some()
    }

    /// Returns `true` if one of the agent's templates includes the file, directly or indirectly.
    fn is_included(&self) -> bool {
        let mut left = usize::MAX;
        let templates = self.plan.profile.strings_in_effect();
        templates.into_iter().any(|template| {
            let names = self.compiler.engine.partials_of(template, &mut left);
            let mut files = names
                .iter()
                .filter_map(|name| self.compiler.repo.partial_file(name));
            files.any(|file| file == self.file)
        })
    }

    /// Returns `true` if a descendant of the profile overrides the setting, or the key never
    /// affects a body.
    fn is_replaced(&self) -> bool {
        let mut entries = self
            .profiles()
            .flat_map(|profile| &profile.settings.entries);
        let asked = entries.find(|(key, node)| {
            overlaps(&key.span, self.range)
                || overlaps(&node.span, self.range) && self.is_inside(&node.span)
        });
        let Some((key, _)) = asked else { return false };
        let merged = self.plan.profile.merged.get(&key.name);
        let is_older =
            merged.is_none_or(|merged| merged.file != self.file && merged.table().is_none());
        ASIDE.contains(&key.name.as_str()) || is_older
    }

    /// Returns `true` if the location is inside a value.
    fn is_inside(&self, value: &Range<usize>) -> bool {
        let asked = self.text()[self.range.clone()].trim();
        self.range.start >= value.start && self.range.start + asked.len() <= value.end
    }

    /// Returns `true` if the location in a profile determines how the agent is assembled: its
    /// parent, an `unset` entry, a table header, or a setting.
    fn puts_together(&self) -> bool {
        self.text()[self.range.clone()]
            .trim_start()
            .starts_with('[')
            || self.is_of_setting()
            || self.profiles().any(|profile| {
                let extends = profile.extends.iter().map(|extends| extends.span);
                extends
                    .chain(profile.unset.iter().map(|path| path.span))
                    .any(|span| self.is_on_line_of(span))
            })
    }

    fn is_of_setting(&self) -> bool {
        self.plan.profile.merged.iter().any(|(name, merged)| {
            let places = [merged.key_span(), merged.span()];
            name != "body"
                && !TEMPLATES.contains(&name)
                && places
                    .iter()
                    .any(|span| span.file == self.file && overlaps(&span.range(), self.range))
        })
    }

    fn is_on_line_of(&self, span: Span) -> bool {
        let start = self.text()[..span.start as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        overlaps(&(start..span.end as usize), self.range)
    }
}

/// Adds the ranges of the values whose key, quotes or header are queried.
fn hold(text: &str, table: &Table, range: &Range<usize>, around: &mut Vec<Range<usize>>) {
    let asked = text[range.clone()].trim();
    let is_quotes = !asked.is_empty() && asked.chars().all(|c| matches!(c, '"' | '\''));
    for (key, node) in &table.entries {
        let (at_key, at_node) = (overlaps(&key.span, range), overlaps(&node.span, range));
        match &node.kind {
            Kind::String(_) if at_key || at_node && is_quotes => around.push(node.span.clone()),
            Kind::Table(table) if at_key || at_node => all_of(table, around),
            Kind::Table(table) => hold(text, table, range, around),
            _ => {}
        }
    }
}

/// Adds the keys and values of a table, at any depth.
fn all_of(table: &Table, around: &mut Vec<Range<usize>>) {
    for (key, node) in &table.entries {
        around.extend([key.span.clone(), node.span.clone()]);
        if let Kind::Table(inner) = &node.kind {
            all_of(inner, around);
        }
    }
}

/// Returns the tags that begin the blocks that a location splits or ends.
fn openers(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut open: Vec<(&str, Range<usize>)> = Vec::new();
    let mut found = Vec::new();
    for tag in tags(text) {
        let word = word_of(&text[tag.clone()]);
        let (is_end, is_part) = (word.starts_with("end"), matches!(word, "else" | "elif"));
        if is_end {
            while open.pop_if(|(opener, _)| *opener != &word[3..]).is_some() {}
        }
        if let Some((_, opener)) = open
            .last()
            .filter(|_| (is_end || is_part) && overlaps(&tag, range))
        {
            found.push(opener.clone());
        }
        match word {
            _ if is_end => drop(open.pop()),
            "if" | "for" | "macro" | "call" | "filter" | "with" | "block" | "autoescape" => {
                open.push((word, tag));
            }
            "set" if !text[tag.clone()].contains('=') => open.push((word, tag)),
            _ => {}
        }
    }
    found
}

/// Returns the range of each `{% … %}` in a string, except in comments and raw text.
fn tags(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find("{%").map(|start| at + start) {
        let comment = text[at..start].find("{#").map(|open| at + open);
        if let Some(end) = comment.map(|open| {
            text[open..]
                .find("#}")
                .map_or(text.len(), |end| open + end + 2)
        }) && end > start
        {
            at = end;
            continue;
        }
        let Some(end) = text[start..].find("%}").map(|end| start + end + 2) else {
            break;
        };
        found.push(start..end);
        let is_raw = word_of(&text[start..end]) == "raw";
        at = match text[end..].find("endraw").filter(|_| is_raw) {
            Some(close) => text[end + close..]
                .find("%}")
                .map_or(text.len(), |close_end| end + close + close_end + 2),
            None => end,
        };
    }
    found
}

/// Returns the first word of a tag.
fn word_of(tag: &str) -> &str {
    let inner = tag
        .trim_start_matches("{%")
        .trim_start_matches(['-', '+'])
        .trim_start();
    inner
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// Returns `true` if a string ends inside a `{%` tag.
fn is_in_statement(before: &str) -> bool {
    before
        .rfind("{%")
        .is_some_and(|open| !before[open..].contains("%}"))
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Returns `true` if a range contains only a comment.
pub(super) fn is_comment(path: &str, text: &str, range: &Range<usize>) -> bool {
    let asked = text[range.clone()].trim();
    let before = &text[..range.start];
    let is_inside = before
        .rfind("{#")
        .is_some_and(|open| !before[open..].contains("#}"));
    let is_to_the_end = asked.find("#}").is_none_or(|end| end + 2 == asked.len());
    let begin = range.start + text[range.clone()].len() - text[range.clone()].trim_start().len();
    let is_of_toml =
        asked.starts_with('#') && path.ends_with(".toml") && toml::begins_comment(text, begin);
    is_of_toml || (asked.starts_with("{#") || is_inside) && is_to_the_end
}
