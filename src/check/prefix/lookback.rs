//! Checks whether a request's breakpoints find the cache entry of the previous request, because
//! Anthropic's cache looks back only a few blocks.

use serde_json::Value;

use super::{Broken, Checks, problem, rules};
use crate::json::Pointer;
use crate::provider::LOOKBACK;
use crate::unit::Body;

/// A breakpoint in the messages.
struct Mark {
    /// The number of blocks before the breakpoint's own block.
    at: usize,
    pointer: Pointer,
}

impl Checks {
    /// Reports a breakpoint that is too far behind the last breakpoint of the previous request. The
    /// later request must begin with the earlier one.
    pub(super) fn lookback(&self, earlier: &Body, later: &Body) -> Option<Broken> {
        if !self.wire.has_cache_breakpoints() {
            return None;
        }
        let (older, newer) = (messages(earlier), messages(later));
        if !is_next(older, newer) || blocks_from(newer, older.len().saturating_sub(2)) <= LOOKBACK {
            return None;
        }
        let kept = marks(older).pop()?;
        let next = marks(newer).into_iter().find(|mark| mark.at >= kept.at)?;
        let distance = next.at - kept.at;
        (distance > LOOKBACK).then(|| {
            let (message, help) = (rules::lookback_message(distance), rules::LOOKBACK_HELP);
            let problem = problem(&rules::LOOKBACK, message, help, next.pointer);
            Broken {
                problem,
                is_in_later: true,
                is_in_both: false,
                from: None,
            }
        })
    }
}

/// Returns `true` if exactly one answer was added, with or without messages after it.
fn is_next(older: &[Value], newer: &[Value]) -> bool {
    let added = newer.get(older.len()..).unwrap_or_default();
    added.first().is_some_and(is_answer) && !added.iter().skip(1).any(is_answer)
}

fn is_answer(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == "assistant")
}

fn messages(body: &Body) -> &[Value] {
    let member = body.members().find(|member| member.name == "messages");
    member
        .and_then(|member| member.value().as_array())
        .map_or(&[], Vec::as_slice)
}

/// Returns the blocks in a message; an empty slice for text.
fn blocks(message: &Value) -> &[Value] {
    message
        .get("content")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the number of blocks in the messages from an index on.
fn blocks_from(messages: &[Value], from: usize) -> usize {
    messages
        .iter()
        .skip(from)
        .map(|message| blocks(message).len().max(1))
        .sum()
}

fn marks(messages: &[Value]) -> Vec<Mark> {
    let (mut marks, mut before) = (Vec::new(), 0);
    for (index, message) in messages.iter().enumerate() {
        let content = Pointer::root()
            .member("messages")
            .element(index)
            .member("content");
        for (block, value) in blocks(message).iter().enumerate() {
            if let Some(pointer) = mark_of(value, &content.element(block)) {
                marks.push(Mark {
                    at: before + block,
                    pointer,
                });
            }
        }
        before += blocks(message).len().max(1);
    }
    marks
}

/// Returns the pointer to the breakpoint on a block, or on a block inside it.
fn mark_of(block: &Value, at: &Pointer) -> Option<Pointer> {
    if block
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
    {
        return Some(at.member("cache_control"));
    }
    let inner = blocks(block).iter().enumerate();
    { inner }.find_map(|(index, inner)| mark_of(inner, &at.member("content").element(index)))
}
