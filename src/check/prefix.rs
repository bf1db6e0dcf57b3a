//! Checks whether a request continues an earlier one in the same conversation.
//!
//! Input: the bodies of two requests; the later request has more messages. Output: the first
//! location at which the earlier body is not a prefix of the later one. Servers read tools first,
//! then instructions, then messages. They cannot use their cache for anything after a change, and
//! they reject thinking if content before it has changed. Cache breakpoints (`cache_control`) are
//! ignored in the comparison.

mod place;
pub(crate) mod rules;
mod lookback;
#[cfg(feature = "runtime")]
pub(crate) mod sent;
mod settings;

use serde_json::Value;

use super::{About, Checks, Problem};
use crate::diag::{Rule, Severity};
use crate::json::Pointer;
use crate::memory::Question;
use crate::repo::Property;
use crate::unit::{Body, MemberRef, Sameness};
use place::Difference;
pub(crate) use place::difference;
pub(crate) use settings::cache_settings;

/// The members in all formats, in the order in which servers read them.
const ORDER: [&str; 11] = [
    "tools",
    "tool_config",
    "toolConfig",
    "system",
    "instructions",
    "system_instruction",
    "systemInstruction",
    "messages",
    "input",
    "contents",
    "prompt",
];

/// A part of a prefix: a member, or one element of a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'v> {
    pub(crate) member: &'static str,
    /// The index of the element, if the member is a list.
    pub(crate) index: Option<usize>,
    pub(crate) value: &'v Value,
}

impl Part<'_> {
    pub(crate) fn pointer(&self) -> Pointer {
        let member = Pointer::root().member(self.member);
        self.index
            .map_or(member.clone(), |index| member.element(index))
    }

    /// Returns `true` if the part is in a list that grows with the conversation.
    fn grows(&self) -> bool {
        self.index.is_some() && matches!(self.member, "messages" | "input" | "contents")
    }
}

/// Returns the parts of a body that belong to its prefix, in order.
pub(crate) fn parts<'v>(member: impl Fn(&str) -> Option<&'v Value>) -> Vec<Part<'v>> {
    let mut parts = Vec::new();
    for name in ORDER {
        match member(name) {
            None | Some(Value::Null) => {}
            Some(Value::Array(elements)) => {
                parts.extend(elements.iter().enumerate().map(|(index, value)| Part {
                    member: name,
                    index: Some(index),
                    value,
                }));
            }
            Some(value) => parts.push(Part {
                member: name,
                index: None,
                value,
            }),
        }
    }
    parts
}

/// The difference that stops a later request from continuing an earlier one.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) problem: Problem,
    /// `true` if the later body has a value at the location.
    pub(crate) is_in_later: bool,
    /// `true` if both bodies have a value at the location.
    pub(crate) is_in_both: bool,
    /// The first byte that differs, if the value is text.
    pub(crate) from: Option<usize>,
}

impl Checks {
    /// Returns the first part of an earlier request that a later one in the same conversation
    /// changes, or `None` if the later request only adds to the earlier one. If the host may have
    /// renewed the system prompt and the tools between the requests (`is_renewed`), only thinking
    /// from before the renewal is checked.
    pub(crate) fn prefix_problem(
        &self,
        earlier: &Body,
        later: &Body,
        is_renewed: bool,
    ) -> Option<Broken> {
        let beside = || {
            self.lookback(earlier, later)
                .or_else(|| self.setting_problem(earlier, later).filter(|_| !is_renewed))
        };
        if is_same_but_for_prompt(earlier, later) && is_shared_beginning(earlier, later) {
            return beside();
        }
        let (older, newer) = (own(earlier), own(later));
        let Some(found) = difference(&older, &newer) else {
            return beside();
        };
        let bound = self.bound_thinking();
        // The answer to the earlier request is the message that follows the request's last message.
        let end = if is_renewed {
            messages(&older) + 1
        } else {
            usize::MAX
        };
        let is_bound = bound.is_some() && found.has_thinking_behind(&newer, end);
        let (rule, severity) = match bound.filter(|_| is_bound) {
            Some(severity) => (&rules::THINKING_PREFIX, Some(severity.min(outcome(later)))),
            None if is_renewed || found.is_tail => return None,
            None if found.has_breakpoint_behind(&newer) => (&rules::VOLATILE, None),
            None => (&rules::UNSTABLE_PREFIX, None),
        };
        let message = rules::message(&found, is_bound);
        let help = rules::help(&found, is_bound);
        let problem = Problem {
            severity,
            ..problem(rule, message, help, found.pointer)
        };
        let is_in_both = found.older.is_some() && found.newer.is_some();
        Some(Broken {
            problem,
            is_in_later: found.newer.is_some(),
            is_in_both,
            from: found.from,
        })
    }

    /// Returns the severity of changing content that precedes earlier thinking; `None` if the model
    /// is not known to check that content.
    pub(crate) fn bound_thinking(&self) -> Option<Severity> {
        let known = self
            .facts
            .property(Property::BoundThinking)
            .filter(|_| self.wire.binds_thinking());
        known.and_then(|(is_bound, severity)| is_bound.then_some(severity))
    }
}

/// Returns `true` if a member is compared between two requests.
pub(crate) fn is_compared(name: &str) -> bool {
    ORDER.contains(&name) || settings::is_setting(name)
}

/// Returns the severity of changed content before thinking: an error, or a warning if the body asks
/// the API to drop such thinking.
fn outcome(body: &Body) -> Severity {
    let thinking = body
        .members()
        .find(|member| member.name == "thinking")
        .map(|member| member.value());
    let behaviour = thinking.and_then(|it| it.pointer("/block_binding/prefix_mismatch_behavior"));
    if behaviour.is_some_and(|it| it == "drop_block") {
        Severity::Warning
    } else {
        Severity::Error
    }
}

/// The [`Question`] of whether one body is a prefix of another. It contains the members of both
/// bodies that belong to the prefix.
#[derive(PartialEq, Eq, Hash)]
struct IsBeginning {
    earlier: Vec<(Box<str>, Sameness)>,
    later: Vec<(Box<str>, Sameness)>,
}

impl Question for IsBeginning {
    type Answer = bool;

    fn weight(&self, _: &bool) -> usize {
        let members = self.earlier.iter().chain(&self.later);
        128 + members
            .map(|(_, member)| 32 + member.weight())
            .sum::<usize>()
    }
}

impl IsBeginning {
    /// Returns the question; `None` if one of the bodies has a value that is not shared with other
    /// bodies.
    fn of(earlier: &Body, later: &Body) -> Option<IsBeginning> {
        let members = |body: &Body| {
            let members = body.members().filter(|member| ORDER.contains(&member.name));
            members
                .map(|member| Some((member.name.into(), member.sameness()?)))
                .collect::<Option<_>>()
        };
        Some(IsBeginning {
            earlier: members(earlier)?,
            later: members(later)?,
        })
    }
}

/// Returns `true` if one body is a prefix of another when a placeholder replaces the system prompt
/// in both.
fn is_shared_beginning(earlier: &Body, later: &Body) -> bool {
    let compare = || difference(&shared(earlier), &shared(later)).is_none();
    match later.memory().zip(IsBeginning::of(earlier, later)) {
        Some((memory, asked)) => memory.ask(asked, compare),
        None => compare(),
    }
}

fn messages(parts: &[Part<'_>]) -> usize {
    parts.iter().filter(|part| part.grows()).count()
}

fn own(body: &Body) -> Vec<Part<'_>> {
    parts(|name| {
        body.members()
            .find(|member| member.name == name)
            .map(|member| member.value())
    })
}

/// Returns the parts of a body, with a placeholder for the agent's own system prompt, so that
/// agents can share the result of a comparison.
fn shared(body: &Body) -> Vec<Part<'_>> {
    parts(|name| {
        body.members()
            .find(|member| member.name == name)
            .map(|member| member.shared_value())
    })
}

/// Returns `true` if both bodies have the same system prompt. They can then be compared with a
/// placeholder in its place.
fn is_same_but_for_prompt(earlier: &Body, later: &Body) -> bool {
    let prompt = |body: &Body| {
        body.members()
            .find_map(|member: MemberRef<'_>| member.prompt().cloned())
    };
    prompt(earlier) == prompt(later)
}

/// Creates a problem that concerns two requests in the same conversation.
fn problem(rule: &'static Rule, message: String, help: &str, pointer: Pointer) -> Problem {
    Problem {
        rule,
        severity: None,
        message,
        help: Some(help.to_owned()),
        sense: None,
        about: About::Meaning,
        sources: &[],
        is_of_model: false,
        lacks: Vec::new(),
        place: None,
        pointer,
    }
}
