//! Finds the first location where one body is not a prefix of another.

use serde_json::{Map, Value};

use super::Part;
use crate::json::Pointer;

/// The location where two requests differ.
#[derive(Debug)]
pub(crate) struct Difference<'v> {
    pub(crate) pointer: Pointer,
    /// The value in the earlier request.
    pub(crate) older: Option<&'v Value>,
    /// The value in the later request.
    pub(crate) newer: Option<&'v Value>,
    /// The first byte that differs, if the value is text.
    pub(crate) from: Option<usize>,
    /// `true` if the requests differ only in content at the end of the earlier one.
    pub(crate) is_tail: bool,
    /// The member that differs; the fields below narrow down the location inside it.
    member: &'static str,
    index: Option<usize>,
    path: Vec<Step<'v>>,
    /// `true` if the difference is in the first message and that message contains the system
    /// prompt.
    is_instruction: bool,
}

/// A step from a value to one of its members or elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'v> {
    Member(&'v str),
    Element(usize),
}

/// Two values that differ, and the path to them, last step first.
struct Spot<'v> {
    path: Vec<Step<'v>>,
    older: Option<&'v Value>,
    newer: Option<&'v Value>,
}

/// Finds the first location where `older` is not a prefix of `newer`.
pub(crate) fn difference<'v>(older: &[Part<'v>], newer: &[Part<'v>]) -> Option<Difference<'v>> {
    for (at, part) in older.iter().enumerate() {
        let Some(other) = newer.get(at) else {
            return Some(Difference::whole(*part, true));
        };
        if (part.member, part.index.is_some()) != (other.member, other.index.is_some()) {
            return Some(Difference::apart(*part, *other));
        }
        let Some(mut spot) = first(part.value, other.value) else {
            continue;
        };
        spot.path.reverse();
        let is_last = at + 1 == older.len() && part.grows();
        if !(is_last && spot.is_growth()) {
            let is_tail = is_last
                && (spot.is_tail()
                    || sort(part.value) != sort(other.value)
                    || spot.ends_alike(part.value, newer));
            return Some(Difference::within(*part, spot, is_tail));
        }
    }
    newer
        .get(older.len())
        .filter(|part| !part.grows())
        .map(|part| Difference::whole(*part, false))
}

/// Returns the role and the type of a message.
fn sort(message: &Value) -> [Option<&Value>; 2] {
    ["role", "type"].map(|name| message.get(name))
}

impl<'v> Difference<'v> {
    /// Returns the difference for a part that only one request has.
    fn whole(part: Part<'v>, is_older: bool) -> Difference<'v> {
        let (older, newer) = if is_older {
            (Some(part.value), None)
        } else {
            (None, Some(part.value))
        };
        Difference::new(
            part,
            Spot {
                path: Vec::new(),
                older,
                newer,
            },
            false,
        )
    }

    /// Returns the difference between parts of two different members. Such a difference means that
    /// one request has an additional member earlier in the order.
    fn apart(older: Part<'v>, newer: Part<'v>) -> Difference<'v> {
        if older.member == newer.member {
            let part = Part {
                index: None,
                ..older
            };
            let spot = Spot {
                path: Vec::new(),
                older: Some(older.value),
                newer: Some(newer.value),
            };
            return Difference::new(part, spot, false);
        }
        let is_older = rank(older.member) < rank(newer.member);
        Difference::whole(if is_older { older } else { newer }, is_older)
    }

    fn within(part: Part<'v>, spot: Spot<'v>, is_tail: bool) -> Difference<'v> {
        Difference::new(part, spot, is_tail)
    }

    fn new(part: Part<'v>, spot: Spot<'v>, is_tail: bool) -> Difference<'v> {
        let Spot { path, older, newer } = spot;
        let pointer = path.iter().fold(part.pointer(), |at, step| match step {
            Step::Member(name) => at.member(name),
            Step::Element(index) => at.element(*index),
        });
        let texts = older
            .and_then(Value::as_str)
            .zip(newer.and_then(Value::as_str));
        let from = texts.map(|(older, newer)| common(older, newer));
        let role = part.value.get("role").and_then(Value::as_str);
        let is_instruction = part.index == Some(0) && matches!(role, Some("system" | "developer"));
        let (member, index) = (part.member, part.index);
        Difference {
            pointer,
            older,
            newer,
            from,
            is_tail,
            member,
            index,
            path,
            is_instruction,
        }
    }

    /// Returns `true` if the location is in the messages rather than before them.
    pub(crate) fn is_in_history(&self) -> bool {
        matches!(self.member, "messages" | "input" | "contents")
    }

    /// Returns `true` if the location is in the system prompt, for formats in which that is the
    /// first message.
    pub(crate) fn is_instruction(&self) -> bool {
        self.is_instruction
    }

    /// Returns the member of the body that differs.
    pub(crate) fn member(&self) -> &'static str {
        self.member
    }

    /// Returns `true` if the later request has a cache breakpoint at the location or after it.
    pub(crate) fn has_breakpoint_behind(&self, newer: &[Part<'_>]) -> bool {
        newer
            .iter()
            .filter(|part| (rank(part.member), part.index) >= (rank(self.member), self.index))
            .any(|part| has_mark(part.value))
    }

    /// Returns `true` if one of the first `end` messages in the later request contains Anthropic
    /// thinking after the location.
    pub(crate) fn has_thinking_behind(&self, newer: &[Part<'_>], end: usize) -> bool {
        let message = self.index.filter(|_| self.is_in_history()).unwrap_or(0);
        let block = match self.path.as_slice() {
            [Step::Member("content"), Step::Element(block), ..] => *block,
            _ => 0,
        };
        let messages = newer
            .iter()
            .filter(|part| part.member == "messages")
            .filter_map(|part| Some((part.index?, part)));
        messages
            .filter(|(index, _)| (message..end).contains(index))
            .any(|(index, part)| {
                let from = if index == message && self.is_in_history() {
                    block
                } else {
                    0
                };
                let blocks = part
                    .value
                    .get("content")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                blocks.skip(from).any(|block| {
                    block
                        .get("type")
                        .is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking")
                })
            })
    }
}

fn rank(name: &str) -> Option<usize> {
    super::ORDER.iter().position(|known| *known == name)
}

impl Spot<'_> {
    /// Returns `true` if a message only gained blocks. Adjacent messages with the same role count
    /// as one message.
    fn is_growth(&self) -> bool {
        self.is_block() && self.older.is_none()
    }

    /// Returns `true` if a message only lost blocks at its end.
    fn is_tail(&self) -> bool {
        self.is_block() && self.newer.is_none()
    }

    /// Returns `true` if both requests end with the same content, that is, with content that is
    /// appended to every conversation.
    fn ends_alike(&self, older: &Value, newer: &[Part<'_>]) -> bool {
        let Some(end) = newer.last().map(|part| part.value) else {
            return false;
        };
        match self.path.as_slice() {
            [Step::Member(name), Step::Element(at), ..] => {
                match (blocks(older, name), blocks(end, name)) {
                    (Some(older), Some(end)) => at + 1 == older.len() && older.last() == end.last(),
                    _ => older == end,
                }
            }
            _ => older == end,
        }
    }

    fn is_block(&self) -> bool {
        matches!(
            self.path.as_slice(),
            [Step::Member("content" | "parts"), Step::Element(_)]
        )
    }
}

fn blocks<'v>(message: &'v Value, name: &str) -> Option<&'v Vec<Value>> {
    message.get(name).and_then(Value::as_array)
}

/// Returns the length of two strings' common prefix, in bytes of whole characters.
fn common(older: &str, newer: &str) -> usize {
    older
        .chars()
        .zip(newer.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum()
}

/// Finds the first location where two values differ, ignoring cache breakpoints.
fn first<'v>(older: &'v Value, newer: &'v Value) -> Option<Spot<'v>> {
    match (older, newer) {
        (Value::Object(a), Value::Object(b)) => in_objects(a, b),
        (Value::Array(a), Value::Array(b)) => in_arrays(a, b),
        _ if older == newer || text_of(older).is_some_and(|text| text_of(newer) == Some(text)) => {
            None
        }
        _ => Some(Spot {
            path: Vec::new(),
            older: Some(older),
            newer: Some(newer),
        }),
    }
}

/// Returns the text of a value. Text with a breakpoint is written as a list that contains one
/// block.
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(blocks) => match blocks.as_slice() {
            [block] if block.get(MARK).is_some() => block.get("text")?.as_str(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `true` if a block, or a block inside it, has a breakpoint.
pub(super) fn has_mark(value: &Value) -> bool {
    let is_set = value.get(MARK).is_some_and(|mark| !mark.is_null());
    let inner = value
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    is_set || inner.into_iter().any(has_mark)
}

/// The member that sets a cache breakpoint.
pub(super) const MARK: &str = "cache_control";

fn in_objects<'v>(
    older: &'v Map<String, Value>,
    newer: &'v Map<String, Value>,
) -> Option<Spot<'v>> {
    let of_older = older
        .iter()
        .filter(|(name, _)| *name != MARK)
        .find_map(|(name, value)| match newer.get(name) {
            Some(other) => first(value, other).map(|spot| spot.in_step(Step::Member(name))),
            None => Some(Spot {
                path: vec![Step::Member(name)],
                older: Some(value),
                newer: None,
            }),
        });
    of_older.or_else(|| {
        let (name, value) = newer
            .iter()
            .find(|(name, _)| *name != MARK && !older.contains_key(*name))?;
        Some(Spot {
            path: vec![Step::Member(name)],
            older: None,
            newer: Some(value),
        })
    })
}

fn in_arrays<'v>(older: &'v [Value], newer: &'v [Value]) -> Option<Spot<'v>> {
    let pairs = older.iter().zip(newer).enumerate();
    let within = { pairs }.find_map(|(at, (a, b))| Some(first(a, b)?.in_step(Step::Element(at))));
    within.or_else(|| {
        let at = older.len().min(newer.len());
        let (older, newer) = (older.get(at), newer.get(at));
        older.or(newer)?;
        Some(Spot {
            path: vec![Step::Element(at)],
            older,
            newer,
        })
    })
}

impl<'v> Spot<'v> {
    fn in_step(mut self, step: Step<'v>) -> Spot<'v> {
        self.path.push(step);
        self
    }
}
