//! Where a host can step in.

use serde_json::Value;

use super::tools::BoxFuture;
use super::{Event, ToolCall};

/// What a host does while an agent works. Every method has a default that lets things go their way.
pub trait Hooks: Send + Sync {
    /// Before a body is sent; rounds count from 1. May stop the request, which then is finished with the reason.
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        let _ = round;
        Box::pin(async { RoundDecision::Go })
    }

    /// Before a tool runs; calls of one answer are asked about in order, before any of them runs.
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        let _ = call;
        Box::pin(async { ToolDecision::Run })
    }

    /// Sees every event, in order, before the receiver does: also messages of the person and items that join the history.
    fn observe(&self, event: &Event) {
        let _ = event;
    }
}

/// Who sees messages before they are shown: [`AgentLoop::with_message_hook`](super::AgentLoop::with_message_hook).
pub trait MessageHook: Send + Sync {
    /// Before the text of an answer is shown, once it is complete. The history keeps the original.
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, MessageDecision>;
}

/// What becomes of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundDecision {
    /// Its body is sent.
    Go,
    /// It does not take place, and the request is finished with this reason; an empty one is replaced.
    Stop(String),
}

/// What becomes of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolDecision {
    /// The tool runs.
    Run,
    /// The tool does not run; the model sees the reason as the tool's error; an empty one is replaced.
    Refuse(String),
    /// The tool runs with these arguments; the history keeps those of the model. What is no object is ignored.
    Rewrite(Value),
}

/// What is shown of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDecision {
    /// The whole text.
    AsIs,
    /// No text.
    Suppress,
    /// This text instead.
    Replace(String),
}

/// No hooks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
