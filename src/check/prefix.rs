//! Says whether a request goes on from an earlier one of the same conversation.
//!
//! Input: the bodies of two requests, the later of which holds more messages. Output: the first
//! place at which the earlier one is not a beginning of the later one. Servers read tools first,
//! then instructions, then messages; what is after a change is not found in their caches, and
//! thinking that is bound to it is refused. Cache breakpoints (`cache_control`) do not count.

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

/// Members of the formats in the order in which servers read them.
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

/// A part of a body that a prefix is made of: a member, or an element of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'v> {
    pub(crate) member: &'static str,
    /// Its index, if the member is a list.
    pub(crate) index: Option<usize>,
    pub(crate) value: &'v Value,
}

impl Part<'_> {
    pub(crate) fn pointer(&self) -> Pointer {
        let member = Pointer::root().member(self.member);
        self.index
            .map_or(member.clone(), |index| member.element(index))
    }

    /// Returns `true` if messages are added after it as the conversation grows.
    fn grows(&self) -> bool {
        self.index.is_some() && matches!(self.member, "messages" | "input" | "contents")
    }
}

/// The parts of a body that prefixes are made of, in order.
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

/// How a later request differs from an earlier one of its conversation.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) problem: Problem,
    /// `true` if the place is one of the later body; else the later body lacks it.
    pub(crate) is_in_later: bool,
    /// `true` if both bodies have a value there.
    pub(crate) is_in_both: bool,
    /// Of a text, the first byte that differs.
    pub(crate) from: Option<usize>,
}

impl Checks {
    /// Returns what of an earlier request changed in a later one of the same conversation; `None`
    /// if that only added to it. Between the two the host may have renewed system prompt and tools:
    /// then only thinking is asked for that was made before.
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
        // The answer to the earlier request is the message after its last one.
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

    /// Returns how bad it is that something changes to which thinking is bound; `None` if the model
    /// is not known to bind it.
    pub(crate) fn bound_thinking(&self) -> Option<Severity> {
        let known = self
            .facts
            .property(Property::BoundThinking)
            .filter(|_| self.wire.binds_thinking());
        known.and_then(|(is_bound, severity)| is_bound.then_some(severity))
    }
}

/// Returns `true` if a member is looked at in both of two requests.
pub(crate) fn is_compared(name: &str) -> bool {
    ORDER.contains(&name) || settings::is_setting(name)
}

/// Returns what the API does with thinking whose prefix changed, as the body asks for it: it
/// refuses the request, or leaves the thinking out.
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

/// Asks whether a body is the beginning of another, by the members that servers read first, of
/// both.
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
    /// `None` if a member is of one body alone.
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

/// Returns `true` if one body is the beginning of another, with a placeholder for the system prompt
/// of both.
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

/// The parts with the placeholder for the agent's own system prompt, as other agents may share
/// them.
fn shared(body: &Body) -> Vec<Part<'_>> {
    parts(|name| {
        body.members()
            .find(|member| member.name == name)
            .map(|member| member.shared_value())
    })
}

/// Returns `true` if what the two hold is the same if it is the same with a placeholder for the
/// system prompt.
fn is_same_but_for_prompt(earlier: &Body, later: &Body) -> bool {
    let prompt = |body: &Body| {
        body.members()
            .find_map(|member: MemberRef<'_>| member.prompt().cloned())
    };
    prompt(earlier) == prompt(later)
}

/// Returns what is wrong with two requests of one conversation: a message, a help, and where.
fn problem(rule: &'static Rule, message: String, help: &str, pointer: Pointer) -> Problem {
    Problem {
        rule,
        severity: None,
        message,
        help: Some(help.to_owned()),
        sense: None,
        about: About::Meaning,
        is_of_model: false,
        lacks: Vec::new(),
        place: None,
        pointer,
    }
}
