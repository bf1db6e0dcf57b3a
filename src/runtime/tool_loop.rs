//! The tool loop: decides when tools run and when to stop.

use std::collections::HashMap;
use std::sync::Arc;

use super::tool_output::ToolOutput;
use super::{Category, Error, ToolCall};
use crate::conversation::Block;

/// The maximum number of tool rounds in one request without hooks.
pub const PLAIN_LIMIT: u32 = 10;
/// The maximum number of tool rounds in one request of an agent loop.
pub const AGENT_LIMIT: u32 = 50;
/// The default for the maximum number of tools from one answer that run at the same time; the
/// others wait.
pub const TOOLS_AT_ONCE: usize = 16;

/// The complete policy for tool calls. It can handle several requests at once, independently of
/// each other.
///
/// A request is [opened](ToolLoop::open). In each round, the loop is given the calls that the model
/// [answered](ToolLoop::answered) with, and the results that the tools
/// [returned](ToolLoop::returned). Finally, the request is [closed](ToolLoop::close), regardless of its
/// outcome.
#[derive(Debug, Default)]
pub struct ToolLoop {
    opened: u64,
    requests: HashMap<RequestId, Request>,
}

/// Identifies a request of a tool loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

#[derive(Debug)]
struct Request {
    limit: u32,
    rounds: u32,
    waiting: Vec<ToolCall>,
}

/// The next step after an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Finish: the model called no tool.
    Finish,
    /// Run these tools, and send back their results.
    Run(Vec<ToolCall>),
}

impl ToolLoop {
    /// Opens a request in which tools may run for `limit` rounds; 0 means no limit.
    pub fn open(&mut self, limit: u32) -> RequestId {
        self.opened += 1;
        let id = RequestId(self.opened);
        self.requests.insert(
            id,
            Request {
                limit,
                rounds: 0,
                waiting: Vec::new(),
            },
        );
        id
    }

    /// Records the calls of an answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the round limit is reached, the request is closed, or results are
    /// missing.
    pub fn answered(&mut self, id: RequestId, calls: Vec<ToolCall>) -> Result<Next, Error> {
        let request = self.request(id)?;
        if calls.is_empty() {
            return Ok(Next::Finish);
        }
        if !request.waiting.is_empty() {
            return Err(failure("tools were called while others are still running"));
        }
        if request.limit != 0 && request.rounds == request.limit {
            return Err(failure(format!(
                "the model still calls tools after {} rounds of tool calls",
                request.limit
            )));
        }
        request.rounds += 1;
        request.waiting.clone_from(&calls);
        Ok(Next::Run(calls))
    }

    /// Records the results of tools. Returns the blocks of the next message, with one result per
    /// call in call order. A call without a result gets an error.
    ///
    /// # Errors
    ///
    /// Returns an error if no call is open, there are no results, or the request is closed. In that
    /// case, nothing may be sent, and open calls stay open.
    pub fn returned(
        &mut self,
        id: RequestId,
        outputs: Vec<(Arc<str>, ToolOutput)>,
    ) -> Result<Vec<Block>, Error> {
        let waiting = &mut self.request(id)?.waiting;
        if waiting.is_empty() || outputs.is_empty() {
            return Err(failure("there is no tool result to continue with"));
        }
        let calls = std::mem::take(waiting);
        let mut outputs: HashMap<Arc<str>, ToolOutput> = outputs.into_iter().collect();
        Ok(calls
            .into_iter()
            .map(|call| {
                let output = outputs.remove(&call.id);
                let output = output.unwrap_or_else(|| {
                    ToolOutput::error(format!("`{}` returned nothing", call.name))
                });
                output.into_block(call.id)
            })
            .collect())
    }

    /// Closes a request, regardless of its outcome, and forgets everything about it.
    pub fn close(&mut self, id: RequestId) {
        self.requests.remove(&id);
    }

    /// Returns the number of open requests.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    fn request(&mut self, id: RequestId) -> Result<&mut Request, Error> {
        self.requests
            .get_mut(&id)
            .ok_or_else(|| failure("the request is closed"))
    }
}

fn failure(message: impl Into<String>) -> Error {
    Error::new(Category::Tool, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            input: Ok(json!({})),
        }
    }

    fn output(id: &str, text: &str) -> (Arc<str>, ToolOutput) {
        (id.into(), ToolOutput::text(text))
    }

    fn texts(blocks: &[Block]) -> Vec<(&str, &str, bool)> {
        blocks
            .iter()
            .map(|block| match block {
                &Block::ToolResult {
                    ref id,
                    ref content,
                    is_error,
                    ..
                } => (id.as_ref(), content.as_ref(), is_error),
                _ => panic!("only results come back"),
            })
            .collect()
    }

    #[test]
    fn interleaved_requests_never_mix() {
        let mut tools = ToolLoop::default();
        let (first, second) = (tools.open(1), tools.open(1));
        tools.answered(first, vec![call("x", "a")]).unwrap();
        tools.answered(second, vec![call("x", "b")]).unwrap();
        assert_eq!(
            texts(&tools.returned(second, vec![output("x", "of b")]).unwrap()),
            [("x", "of b", false)]
        );
        assert_eq!(
            texts(&tools.returned(first, vec![output("x", "of a")]).unwrap()),
            [("x", "of a", false)]
        );
    }

    #[test]
    fn the_limit_ends_in_an_error_of_its_own_category() {
        let mut tools = ToolLoop::default();
        let id = tools.open(2);
        for _ in 0..2 {
            tools.answered(id, vec![call("x", "a")]).unwrap();
            tools.returned(id, vec![output("x", "ok")]).unwrap();
        }
        let error = tools.answered(id, vec![call("x", "a")]).unwrap_err();
        assert_eq!(
            (error.category, error.message.as_str()),
            (
                Category::Tool,
                "the model still calls tools after 2 rounds of tool calls"
            )
        );
        assert_eq!(tools.answered(id, vec![]), Ok(Next::Finish));
    }

    #[test]
    fn zero_is_no_limit() {
        let mut tools = ToolLoop::default();
        let id = tools.open(0);
        for _ in 0..200 {
            tools.answered(id, vec![call("x", "a")]).unwrap();
            tools.returned(id, vec![output("x", "ok")]).unwrap();
        }
    }

    #[test]
    fn an_empty_continuation_is_an_error() {
        let mut tools = ToolLoop::default();
        let id = tools.open(10);
        assert_eq!(
            tools
                .returned(id, vec![output("x", "ok")])
                .unwrap_err()
                .category,
            Category::Tool
        );
        tools.answered(id, vec![call("x", "a")]).unwrap();
        assert_eq!(
            tools.returned(id, vec![]).unwrap_err().message,
            "there is no tool result to continue with"
        );
        tools.returned(id, vec![output("x", "ok")]).unwrap();
    }

    #[test]
    fn nothing_is_left_of_a_closed_request() {
        let mut tools = ToolLoop::default();
        let id = tools.open(10);
        tools.answered(id, vec![call("x", "a")]).unwrap();
        tools.close(id);
        assert_eq!(tools.open_requests(), 0);
        assert_eq!(
            tools
                .returned(id, vec![output("x", "late")])
                .unwrap_err()
                .message,
            "the request is closed"
        );
        assert_eq!(
            tools.answered(id, vec![]).unwrap_err().category,
            Category::Tool
        );
    }

    #[test]
    fn the_same_id_may_come_again_in_the_next_round() {
        let mut tools = ToolLoop::default();
        let id = tools.open(10);
        for text in ["first", "second"] {
            tools.answered(id, vec![call("call_0", "a")]).unwrap();
            assert_eq!(
                texts(&tools.returned(id, vec![output("call_0", text)]).unwrap()),
                [("call_0", text, false)]
            );
        }
    }

    #[test]
    fn results_come_in_the_order_of_the_calls_and_none_is_missing() {
        let mut tools = ToolLoop::default();
        let id = tools.open(10);
        tools
            .answered(id, vec![call("1", "a"), call("2", "b"), call("3", "c")])
            .unwrap();
        let blocks = tools
            .returned(
                id,
                vec![output("3", "c"), output("1", "a"), output("other", "?")],
            )
            .unwrap();
        assert_eq!(
            texts(&blocks),
            [
                ("1", "a", false),
                ("2", "`b` returned nothing", true),
                ("3", "c", false)
            ]
        );
    }
}
