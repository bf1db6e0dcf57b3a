//! The step that adds prompt-cache breakpoints to bodies in Anthropic's format.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::json::Pointer;
use crate::profile::Breakpoint;

/// The maximum number of breakpoints in a request.
/// Source: <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>.
const MAX_BREAKPOINTS: usize = 4;

/// The number of blocks in which the API looks for an earlier cache entry. They are counted back
/// from a breakpoint and include the breakpoint's own block. Source: the same page;
/// <https://gitlab.com/vglafirov/gitlab-ai-provider/commit/5f2e13e>.
pub(crate) const LOOKBACK: usize = 20;

/// The cache settings of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CachePlan {
    /// The locations of breakpoints; empty for all locations.
    pub breakpoints: Vec<Breakpoint>,
    /// The lifetime of cache entries.
    pub ttl: CacheTtl,
}

/// The lifetime of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CacheTtl {
    /// Five minutes, the default of the API.
    #[default]
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// The end of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CachePlace {
    /// A breakpoint at a location that the profile can ask for.
    Asked(Breakpoint),
    /// The end of the previous request's messages. This location is used only if this request's own
    /// breakpoint does not look back far enough to find the previous one.
    RequestBefore,
}

impl CachePlace {
    fn breakpoint(self) -> Breakpoint {
        match self {
            CachePlace::Asked(breakpoint) => breakpoint,
            CachePlace::RequestBefore => Breakpoint::History,
        }
    }

    /// Returns all locations, the most important one first.
    fn all() -> impl Iterator<Item = CachePlace> {
        Breakpoint::ALL
            .into_iter()
            .map(CachePlace::Asked)
            .chain([CachePlace::RequestBefore])
    }
}

/// Returns the member of a body that contains the breakpoint.
fn member_of(breakpoint: Breakpoint) -> &'static str {
    match breakpoint {
        Breakpoint::System => "system",
        Breakpoint::Tools => "tools",
        Breakpoint::History => "messages",
    }
}

/// The position of a breakpoint that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheMark {
    breakpoint: Breakpoint,
    /// The index of the message; 0 unless the breakpoint is [`Breakpoint::History`].
    message: usize,
    /// The index of the block or tool.
    block: usize,
    /// `true` if the list of blocks replaced a string.
    was_text: bool,
}

impl CacheMark {
    /// Returns the pointer that a value had before this step; `None` if the step added the value.
    pub(crate) fn before(&self, pointer: &Pointer) -> Option<Pointer> {
        let list = self.list();
        let block = list.element(self.block);
        if pointer.below(&self.pointer()).is_some() {
            return None;
        }
        match pointer.below(&list) {
            Some(inner) if self.was_text && !inner.as_str().is_empty() => {
                (*pointer == block.member("text")).then_some(list)
            }
            _ => Some(pointer.clone()),
        }
    }

    /// Returns the pointer to the value that the step added.
    pub(crate) fn pointer(&self) -> Pointer {
        self.list().element(self.block).member("cache_control")
    }

    fn list(&self) -> Pointer {
        let member = Pointer::root().member(member_of(self.breakpoint));
        match self.breakpoint {
            Breakpoint::History => member.element(self.message).member("content"),
            Breakpoint::System | Breakpoint::Tools => member,
        }
    }
}

/// A member of a body that can contain breakpoints.
pub(crate) trait Cacheable {
    /// Returns the number of breakpoints that the author set in the member with this name.
    fn authored(&self, name: &str) -> usize;

    /// Adds a breakpoint and returns its position; `None` if the member cannot have one or already
    /// has one.
    fn mark(&mut self, place: CachePlace, ttl: CacheTtl) -> Option<CacheMark>;
}

/// Adds breakpoints until there are four, including those that the body already has. If there is
/// not enough room, the least important locations are dropped. Returns the added breakpoints.
pub(crate) fn add_cache_control<M: Cacheable>(
    members: &mut [(Arc<str>, M)],
    plan: &CachePlan,
) -> Vec<CacheMark> {
    let authored = members
        .iter()
        .map(|(name, member)| member.authored(name))
        .sum();
    let mut free = MAX_BREAKPOINTS.saturating_sub(authored);
    let mut marks = Vec::new();
    for place in CachePlace::all() {
        let breakpoint = place.breakpoint();
        let wanted = plan.breakpoints.is_empty() || plan.breakpoints.contains(&breakpoint);
        let member = members
            .iter_mut()
            .find(|(name, _)| **name == *member_of(breakpoint));
        if let Some((_, member)) = member.filter(|_| wanted && free > 0)
            && let Some(mark) = member.mark(place, plan.ttl)
        {
            free -= 1;
            marks.push(mark);
        }
    }
    marks
}

/// Returns a body's breakpoints: the one at its top level, and those in its system blocks, tools
/// and message blocks, at any depth. Tool arguments and tool schemas are not searched, because they
/// are data, even if a member in them has the same name.
#[cfg(feature = "runtime")]
pub(crate) fn breakpoints_of(body: &Value) -> Vec<&Value> {
    let mut found: Vec<&Value> = body.get("cache_control").into_iter().collect();
    for list in ["system", "tools", "messages"]
        .iter()
        .filter_map(|member| body.get(member))
    {
        collect_breakpoints(list, &mut found);
    }
    found.retain(|mark| !mark.is_null());
    found
}

#[cfg(feature = "runtime")]
fn collect_breakpoints<'v>(list: &'v Value, found: &mut Vec<&'v Value>) {
    for element in elements(list) {
        found.extend(element.get("cache_control"));
        for inner in ["/content", "/source/content"]
            .iter()
            .filter_map(|inner| element.pointer(inner))
        {
            collect_breakpoints(inner, found);
        }
    }
}

impl Cacheable for Value {
    fn authored(&self, name: &str) -> usize {
        match name {
            "cache_control" => usize::from(!self.is_null()),
            "system" | "tools" => count(self),
            "messages" => elements(self)
                .iter()
                .filter_map(|message| message.get("content"))
                .map(count)
                .sum(),
            _ => 0,
        }
    }

    fn mark(&mut self, place: CachePlace, ttl: CacheTtl) -> Option<CacheMark> {
        let value = match ttl {
            CacheTtl::FiveMinutes => json!({"type": "ephemeral"}),
            CacheTtl::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
        };
        let (block, mark) = target(self, place)?;
        if block.contains_key("cache_control") {
            return None;
        }
        block.insert("cache_control".to_owned(), value);
        Some(mark)
    }
}

fn count(list: &Value) -> usize {
    elements(list)
        .iter()
        .filter(|value| {
            value
                .get("cache_control")
                .is_some_and(|mark| !mark.is_null())
        })
        .count()
}

/// Returns the elements in an array; an empty slice for other values.
fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the object that the breakpoint is added to, and its position; `None` if there is none.
fn target(member: &mut Value, place: CachePlace) -> Option<(&mut Map<String, Value>, CacheMark)> {
    let mark = CacheMark {
        breakpoint: place.breakpoint(),
        message: 0,
        block: 0,
        was_text: false,
    };
    match place {
        CachePlace::Asked(Breakpoint::System) => last_block(member, mark),
        CachePlace::Asked(Breakpoint::Tools) => {
            let tools = member.as_array_mut()?;
            let block = tools.len().checked_sub(1)?;
            Some((tools[block].as_object_mut()?, CacheMark { block, ..mark }))
        }
        CachePlace::Asked(Breakpoint::History) => {
            let messages = member.as_array_mut()?;
            let message = messages.len().checked_sub(2)?;
            last_block(
                messages[message].get_mut("content")?,
                CacheMark { message, ..mark },
            )
        }
        CachePlace::RequestBefore => {
            let message = before_out_of_reach(elements(member))?;
            last_block(
                member.as_array_mut()?[message].get_mut("content")?,
                CacheMark { message, ..mark },
            )
        }
    }
}

/// Returns the index of the message with the previous request's breakpoint, if this request's
/// breakpoint does not look back far enough to find it.
fn before_out_of_reach(messages: &[Value]) -> Option<usize> {
    let answer = messages
        .iter()
        .rposition(|message| message.get("role").is_some_and(|role| role == "assistant"))?;
    let (before, now) = (answer.checked_sub(2)?, messages.len().checked_sub(2)?);
    let between = messages.get(before + 1..now)?;
    // A string counts as one block.
    let (first, last) = (
        block(before, messages).unwrap_or(0),
        block(now, messages).unwrap_or(0),
    );
    let behind = content(&messages[before]).len().max(1) - first;
    let distance = behind
        + between
            .iter()
            .map(|message| content(message).len().max(1))
            .sum::<usize>()
        + last;
    (distance >= LOOKBACK).then_some(before)
}

fn block(at: usize, messages: &[Value]) -> Option<usize> {
    content(&messages[at]).iter().rposition(can_carry)
}

/// Returns the blocks in a message; an empty slice for a string.
fn content(message: &Value) -> &[Value] {
    message.get("content").map_or(&[], elements)
}

/// Returns the last block that can have a breakpoint, and its position. Converts a string to a
/// block, and skips thinking and empty blocks.
fn last_block(
    content: &mut Value,
    mark: CacheMark,
) -> Option<(&mut Map<String, Value>, CacheMark)> {
    let was_text = content.is_string();
    if let Value::String(text) = content {
        if text.is_empty() {
            return None;
        }
        *content = json!([{"type": "text", "text": text}]);
    }
    let blocks = content.as_array_mut()?.iter_mut().enumerate().rev();
    let (block, found) = { blocks }.find(|(_, block)| can_carry(block))?;
    Some((
        found.as_object_mut()?,
        CacheMark {
            block,
            was_text,
            ..mark
        },
    ))
}

fn can_carry(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("thinking" | "redacted_thinking") | None => false,
        Some("text") => block
            .get("text")
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty()),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(body: Value, breakpoints: &[Breakpoint]) -> Value {
        let Value::Object(body) = body else {
            panic!("an object")
        };
        let mut members: Vec<(Arc<str>, Value)> = body
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        add_cache_control(
            &mut members,
            &CachePlan {
                breakpoints: breakpoints.to_vec(),
                ttl: CacheTtl::FiveMinutes,
            },
        );
        members
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    #[test]
    fn strings_are_wrapped_and_thinking_is_stepped_over() {
        let body = cached(
            json!({
                "system": "s",
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": [
                        {"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "thinking", "thinking": "t"}]},
                    {"role": "user", "content": "r"}],
                "tools": [{"name": "a"}, {"name": "b"}]
            }),
            &[],
        );
        assert_eq!(
            body["system"],
            json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}])
        );
        assert_eq!(
            body["tools"][1]["cache_control"],
            json!({"type": "ephemeral"})
        );
        assert_eq!(
            body["messages"][1]["content"][0]["cache_control"],
            json!({"type": "ephemeral"})
        );
        assert_eq!(body["messages"][0]["content"], "q");
    }

    #[test]
    fn single_messages_and_empty_systems_are_left_alone() {
        let body = json!({"system": "", "messages": [{"role": "user", "content": "q"}]});
        assert_eq!(cached(body.clone(), &[]), body);
    }

    #[test]
    fn never_more_than_four_and_history_gives_way() {
        let mark = json!({"type": "ephemeral"});
        let body = cached(
            json!({
                "system": [{"type": "text", "text": "1", "cache_control": mark}, {"type": "text", "text": "2", "cache_control": mark}, {"type": "text", "text": "3"}],
                "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
                "tools": [{"name": "a"}]
            }),
            &[],
        );
        assert_eq!(body["system"][2]["cache_control"], mark);
        assert_eq!(body["tools"][0]["cache_control"], mark);
        assert_eq!(body["messages"][0]["content"], "q");
    }

    /// Returns a history with two rounds of answered calls, each with this number of calls.
    fn rounds(calls: usize) -> Value {
        let blocks = |kind: &str, count: usize| vec![json!({"type": kind}); count];
        json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": blocks("tool_use", calls)},
            {"role": "user", "content": blocks("tool_result", calls)},
            {"role": "assistant", "content": blocks("tool_use", calls)},
            {"role": "user", "content": blocks("tool_result", calls)}]})
    }

    fn marks(body: &Value) -> Vec<(usize, usize)> {
        let messages = elements(&body["messages"]).iter().enumerate();
        let blocks = messages.flat_map(|(at, it)| {
            content(it)
                .iter()
                .enumerate()
                .map(move |(n, block)| (at, n, block))
        });
        blocks
            .filter(|(.., block)| block.get("cache_control").is_some())
            .map(|(at, block, _)| (at, block))
            .collect()
    }

    #[test]
    fn a_long_turn_keeps_the_breakpoint_of_the_request_before() {
        assert_eq!(marks(&cached(rounds(9), &[])), [(3, 8)]);
        assert_eq!(marks(&cached(rounds(10), &[])), [(1, 9), (3, 9)]);
        assert_eq!(marks(&cached(rounds(30), &[Breakpoint::System])), []);
    }

    #[test]
    fn a_subset_marks_only_that() {
        let body = cached(
            json!({"system": "s", "tools": [{"name": "a"}]}),
            &[Breakpoint::Tools],
        );
        assert_eq!(body["system"], "s");
        assert!(body["tools"][0].get("cache_control").is_some());
    }
}
